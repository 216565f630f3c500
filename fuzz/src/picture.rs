//! Pictures to classify, as the program reads them.

use cupola::train::Description;
use image::{DynamicImage, ImageFormat};

use crate::{memory, pictures, scratch};

/// What the decoder asks for at most, however small the file is: its own limit.
const DECODER: usize = 512 << 20;

fn model(channels: usize, side: usize) -> Description {
    Description {
        architecture: String::new(),
        dataset: String::new(),
        classes: vec!["one".to_owned()],
        channels,
        side,
        mean: vec![0.5; channels],
        std: vec![0.5; channels],
    }
}

/// Small pictures of these kinds in a format.
pub fn written(pictures: &[DynamicImage], format: ImageFormat) -> Vec<Vec<u8>> {
    let write = |picture: &DynamicImage| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).expect("a picture in that format");
        bytes.into_inner()
    };
    pictures.iter().map(write).collect()
}

/// A picture is refused, or becomes as many bytes as the model takes.
pub fn check(data: &[u8]) {
    memory::allow(DECODER);
    let path = scratch::file("picture", data);
    for (channels, side, resize) in [(1, 28, true), (3, 8, true), (3, 8, false)] {
        if let Ok(pixels) = pictures::read(&path, &model(channels, side), resize) {
            assert_eq!(pixels.len(), side * side * channels);
        }
    }
}
