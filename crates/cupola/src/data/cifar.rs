//! CIFAR-10 and CIFAR-100, binary version.
//!
//! A file is a row of records without a header: the label (CIFAR-100 has two, the coarse one
//! first) and 32×32 bytes each of red, green and blue.

use std::path::Path;

use super::stream::Stream;
use super::{Error, Result};

/// Width and height of an image.
pub(super) const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;
const PIXELS: usize = 3 * PLANE;
/// The most records that a published file has; a compressed file is not read beyond that.
const MOST: usize = 50_000;

/// What stands before the pixels of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// CIFAR-10: one of 10 classes.
    Ten,
    /// CIFAR-100: of the two labels, the one of 100 classes.
    Fine,
    /// CIFAR-100: of the two labels, the one of 20 classes.
    Coarse,
}

impl Labels {
    /// How many label bytes a record has, which of them is taken, and its number of classes.
    fn layout(self) -> (usize, usize, usize) {
        match self {
            Self::Ten => (1, 0, 10),
            Self::Coarse => (2, 0, 20),
            Self::Fine => (2, 1, 100),
        }
    }
}

/// The records of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// Shape `[n, 32, 32, 3]`, the channels of a pixel side by side.
    pub images: Vec<u8>,
    /// One label an image.
    pub labels: Vec<u8>,
}

/// Reads a file of the binary version; gzip is recognised by its first bytes.
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be read, [`Error::Format`] if it is damaged, empty, ends in the
/// middle of a record, has a label that is not below the number of classes, or has more than the
/// 50,000 records of the largest published file.
pub fn read(path: impl AsRef<Path>, labels: Labels) -> Result<Records> {
    let (label_bytes, taken, classes) = labels.layout();
    let size = label_bytes + PIXELS;
    let mut stream = Stream::open(path.as_ref())?;
    let mut records = Records { images: Vec::new(), labels: Vec::new() };
    loop {
        let number = records.labels.len();
        let start = (number * size) as u64;
        if number == MOST {
            stream.end()?;
            return Ok(records);
        }
        let record = stream.up_to(size)?;
        if record.is_empty() && number > 0 {
            return Ok(records);
        }
        if record.len() < size {
            let detail = format!(
                "the file ends: record {number} takes {size} bytes from byte {start}, {} are there",
                record.len()
            );
            return Err(stream.wrong(start + record.len() as u64, detail));
        }
        let label = record[taken];
        if usize::from(label) >= classes {
            let detail = format!(
                "label {label} of record {number} is not below {classes}, the number of classes"
            );
            return Err(stream.wrong(start + taken as u64, detail));
        }
        records.labels.push(label);
        push_pixels(&mut records.images, &record[label_bytes..]);
    }
}

/// Appends an image, from planes of one channel to pixels of three.
fn push_pixels(images: &mut Vec<u8>, planes: &[u8]) {
    let (red, rest) = planes.split_at(PLANE);
    let (green, blue) = rest.split_at(PLANE);
    let pixels = red.iter().zip(green).zip(blue);
    images.extend(pixels.flat_map(|((&r, &g), &b)| [r, g, b]));
}

/// The class names of the published sets.
pub(super) fn class_names(labels: Labels) -> Vec<String> {
    let names: &[&str] = match labels {
        Labels::Ten => &CIFAR10,
        Labels::Fine => &CIFAR100_FINE,
        Labels::Coarse => &CIFAR100_COARSE,
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Reads files that make up one set.
pub(super) fn read_all(paths: &[std::path::PathBuf], labels: Labels) -> Result<Records, Error> {
    let mut all = Records { images: Vec::new(), labels: Vec::new() };
    for path in paths {
        let mut records = read(path, labels)?;
        all.images.append(&mut records.images);
        all.labels.append(&mut records.labels);
    }
    Ok(all)
}

#[rustfmt::skip]
const CIFAR10: [&str; 10] = [
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
];

#[rustfmt::skip]
const CIFAR100_COARSE: [&str; 20] = [
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables",
    "household_electrical_devices", "household_furniture", "insects", "large_carnivores",
    "large_man-made_outdoor_things", "large_natural_outdoor_scenes",
    "large_omnivores_and_herbivores", "medium_mammals", "non-insect_invertebrates", "people",
    "reptiles", "small_mammals", "trees", "vehicles_1", "vehicles_2",
];

#[rustfmt::skip]
const CIFAR100_FINE: [&str; 100] = [
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle",
    "bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle",
    "caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch",
    "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox",
    "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom",
    "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
    "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road",
    "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake",
    "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle",
    "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
];
