//! The published sets, read from a folder.

use std::path::{Path, PathBuf};

use super::cifar::{self, Labels};
use super::{Error, ImageDataset, Result, idx};

/// Width and height of an image of MNIST and of Fashion-MNIST.
const SIDE: usize = 28;

/// Which of the images of a set.
#[derive(Clone, Copy)]
enum Part {
    Training,
    Test,
}

/// A set of images that its authors publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Published {
    /// Handwritten digits, 28×28 grey, 60,000 + 10,000.
    Mnist,
    /// Articles of clothing, 28×28 grey, 60,000 + 10,000.
    FashionMnist,
    /// Photographs of 10 classes, 32×32 in colour, 50,000 + 10,000.
    Cifar10,
    /// Photographs of 100 classes, 32×32 in colour, 50,000 + 10,000.
    Cifar100,
}

impl Published {
    /// Every published set that can be read.
    pub const ALL: [Self; 4] = [Self::Mnist, Self::FashionMnist, Self::Cifar10, Self::Cifar100];

    /// The name that users write, such as `fashion-mnist`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::FashionMnist => "fashion-mnist",
            Self::Cifar10 => "cifar10",
            Self::Cifar100 => "cifar100",
        }
    }

    /// The set of that name, of whatever case, with or without hyphens.
    pub fn from_name(name: &str) -> Option<Self> {
        let plain = |s: &str| s.to_ascii_lowercase().replace(['-', '_'], "");
        Self::ALL.into_iter().find(|set| plain(set.name()) == plain(name))
    }

    /// Reads the set's training and test images from `folder`.
    ///
    /// # Errors
    ///
    /// Those of [`mnist`], [`fashion_mnist`], [`cifar10`] and [`cifar100`].
    pub fn read(self, folder: impl AsRef<Path>) -> Result<(ImageDataset, ImageDataset)> {
        let part = |part| self.part(folder.as_ref(), part);
        Ok((part(Part::Training)?, part(Part::Test)?))
    }

    /// Reads the set's test images alone from `folder`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Example
    /// ```no_run
    /// use cupola::data::{Dataset, Published};
    /// let test = Published::Mnist.read_test("data")?;
    /// assert_eq!(test.len(), 10_000);
    /// # Ok::<(), cupola::data::Error>(())
    /// ```
    pub fn read_test(self, folder: impl AsRef<Path>) -> Result<ImageDataset> {
        self.part(folder.as_ref(), Part::Test)
    }

    /// The files that are there and that [`read`](Self::read) may read, for whoever is not to write over them.
    ///
    /// # Example
    /// ```
    /// use cupola::data::Published;
    /// assert!(Published::Mnist.files("no/such/folder").is_empty());
    /// ```
    pub fn files(self, folder: impl AsRef<Path>) -> Vec<PathBuf> {
        let entries = self.places(folder.as_ref()).filter_map(|place| place.read_dir().ok());
        let paths = entries.flatten().flatten().map(|entry| entry.path());
        let is_data = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.strip_suffix(".gz").unwrap_or(&name);
            name.ends_with("-ubyte") || name.ends_with(".bin")
        };
        paths.filter(is_data).collect()
    }

    fn part(self, folder: &Path, part: Part) -> Result<ImageDataset> {
        match self {
            Self::Mnist => read_idx(self, folder, part, DIGITS),
            Self::FashionMnist => read_idx(self, folder, part, CLOTHING),
            Self::Cifar10 => read_cifar(self, folder, part, Labels::Ten),
            Self::Cifar100 => read_cifar(self, folder, part, Labels::Fine),
        }
    }

    /// The sub folders in which the files are looked for besides the folder itself; a download
    /// goes to the first.
    pub(super) fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Mnist => &["mnist", "MNIST/raw", "MNIST"],
            Self::FashionMnist => &["fashion-mnist", "fashion_mnist", "FashionMNIST/raw"],
            Self::Cifar10 => &["cifar-10-batches-bin"],
            Self::Cifar100 => &["cifar-100-binary"],
        }
    }

    /// The folders that its files are looked for in.
    fn places(self, folder: &Path) -> impl Iterator<Item = PathBuf> {
        let parts = self.folders().iter().map(|part| folder.join(part));
        std::iter::once(folder.to_owned()).chain(parts)
    }

    /// The path of the file of the first of `names` that is there.
    fn find(self, folder: &Path, names: &[&str]) -> Result<PathBuf> {
        let parts = self.folders();
        for place in self.places(folder) {
            for name in names.iter().flat_map(|name| [(*name).to_owned(), format!("{name}.gz")]) {
                let path = place.join(name);
                if path.is_file() {
                    return Ok(path);
                }
            }
        }
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Err(Error::Missing {
            folder: folder.to_owned(),
            names: owned(names),
            parts: owned(parts),
            advice: format!(
                "`cupola download {}` or `cupola::data::Downloader` fetches it",
                self.name()
            ),
        })
    }
}

/// Reads MNIST from `folder`, or from `mnist` or `MNIST/raw` in it: training and test images.
///
/// # Shapes
///
/// Images `[60000, 28, 28, 1]` and `[10000, 28, 28, 1]`, 10 classes.
///
/// # Errors
///
/// [`Error::Missing`] names the files that were looked for; [`Error::Format`] and
/// [`Error::Content`] the file that is damaged or does not fit.
pub fn mnist(folder: impl AsRef<Path>) -> Result<(ImageDataset, ImageDataset)> {
    Published::Mnist.read(folder)
}

/// Reads Fashion-MNIST from `folder`, or from `fashion-mnist` or `FashionMNIST/raw` in it.
///
/// # Shapes
///
/// Images `[60000, 28, 28, 1]` and `[10000, 28, 28, 1]`, 10 classes.
///
/// # Errors
///
/// As [`mnist`].
pub fn fashion_mnist(folder: impl AsRef<Path>) -> Result<(ImageDataset, ImageDataset)> {
    Published::FashionMnist.read(folder)
}

/// Reads CIFAR-10 from `folder`, or from `cifar-10-batches-bin` in it: training and test images.
///
/// # Shapes
///
/// Images `[50000, 32, 32, 3]` and `[10000, 32, 32, 3]`, 10 classes.
///
/// # Errors
///
/// As [`mnist`].
pub fn cifar10(folder: impl AsRef<Path>) -> Result<(ImageDataset, ImageDataset)> {
    Published::Cifar10.read(folder)
}

/// Reads CIFAR-100 with its fine labels from `folder`, or from `cifar-100-binary` in it.
///
/// # Shapes
///
/// Images `[50000, 32, 32, 3]` and `[10000, 32, 32, 3]`, 100 classes.
///
/// # Errors
///
/// As [`mnist`].
pub fn cifar100(folder: impl AsRef<Path>) -> Result<(ImageDataset, ImageDataset)> {
    Published::Cifar100.read(folder)
}

/// Reads CIFAR-100 with its coarse labels: as [`cifar100`], with 20 classes.
///
/// # Errors
///
/// As [`mnist`].
pub fn cifar100_coarse(folder: impl AsRef<Path>) -> Result<(ImageDataset, ImageDataset)> {
    let part = |part| read_cifar(Published::Cifar100, folder.as_ref(), part, Labels::Coarse);
    Ok((part(Part::Training)?, part(Part::Test)?))
}

#[rustfmt::skip]
const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

#[rustfmt::skip]
const CLOTHING: [&str; 10] = [
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
    "Ankle boot",
];

fn read_idx(
    set: Published,
    folder: &Path,
    part: Part,
    classes: [&str; 10],
) -> Result<ImageDataset> {
    let stem = match part {
        Part::Training => "train",
        Part::Test => "t10k",
    };
    let find = |what: &str, axes: u8| {
        let names =
            [b'-', b'.'].map(|dot| format!("{stem}-{what}{}idx{axes}-ubyte", char::from(dot)));
        set.find(folder, &[&names[0], &names[1]])
    };
    let (image_file, label_file) = (find("images", 3)?, find("labels", 1)?);
    let (images, labels) = idx::read_labelled(&image_file, &label_file, SIDE, classes.len())?;
    let labels = labels.into_iter().map(i32::from).collect();
    let classes = classes.map(str::to_owned).to_vec();
    ImageDataset::new(set.name(), images, [SIDE, SIDE, 1], labels, classes)
}

fn read_cifar(set: Published, folder: &Path, part: Part, labels: Labels) -> Result<ImageDataset> {
    let names: &[&str] = match (labels, part) {
        (Labels::Ten, Part::Training) => &[
            "data_batch_1.bin",
            "data_batch_2.bin",
            "data_batch_3.bin",
            "data_batch_4.bin",
            "data_batch_5.bin",
        ],
        (Labels::Ten, Part::Test) => &["test_batch.bin"],
        (Labels::Fine | Labels::Coarse, Part::Training) => &["train.bin"],
        (Labels::Fine | Labels::Coarse, Part::Test) => &["test.bin"],
    };
    let paths: Result<Vec<PathBuf>> = names.iter().map(|name| set.find(folder, &[name])).collect();
    let records = cifar::read_all(&paths?, labels)?;
    let targets = records.labels.into_iter().map(i32::from).collect();
    let shape = [cifar::SIDE, cifar::SIDE, 3];
    ImageDataset::new(set.name(), records.images, shape, targets, cifar::class_names(labels))
}
