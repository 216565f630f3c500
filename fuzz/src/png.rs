//! PNG.

use image::{DynamicImage, ImageFormat};

pub use crate::picture::check;

pub fn seeds() -> Vec<Vec<u8>> {
    let pictures = [
        DynamicImage::new_luma8(8, 8),
        DynamicImage::new_luma_a8(5, 3),
        DynamicImage::new_rgb8(8, 8),
        DynamicImage::new_rgba8(9, 8),
        DynamicImage::new_luma16(4, 4),
        DynamicImage::new_rgba16(28, 28),
    ];
    crate::picture::written(&pictures, ImageFormat::Png)
}
