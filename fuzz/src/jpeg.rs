//! JPEG.

use image::{DynamicImage, ImageFormat};

pub use crate::picture::check;

pub fn seeds() -> Vec<Vec<u8>> {
    let pictures = [
        DynamicImage::new_luma8(8, 8),
        DynamicImage::new_rgb8(8, 8),
        DynamicImage::new_rgb8(28, 17),
    ];
    crate::picture::written(&pictures, ImageFormat::Jpeg)
}
