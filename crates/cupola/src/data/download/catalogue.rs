//! Where the published files are, how long they are, and their checksums.

use std::io::Read;
use std::path::Path;

use md5::{Digest, Md5};

use super::super::{Error, Published, Result};

/// A file that can be fetched.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    pub(super) name: String,
    /// Addresses that have the same bytes, in the order in which they are tried.
    pub(super) urls: Vec<String>,
    pub(super) bytes: u64,
    /// The MD5 sum that the authors publish: it tells damage, not malice.
    pub(super) md5: String,
    /// What is unpacked from the file, if it is an archive.
    pub(super) members: Vec<Member>,
}

/// A file in an archive.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its path in the archive; it is unpacked under the last part of it.
    pub(super) path: String,
    pub(super) bytes: u64,
}

impl Member {
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

impl Remote {
    /// Whether `folder` has the file, or what the archive unpacks to, whole.
    pub(super) fn is_in(&self, folder: &Path) -> Result<bool> {
        if !self.members.is_empty() {
            let whole = |member: &Member| length(&folder.join(member.name())) == Some(member.bytes);
            return Ok(self.members.iter().all(whole));
        }
        let path = folder.join(&self.name);
        Ok(length(&path) == Some(self.bytes) && md5(&path)? == self.md5)
    }
}

/// The length of a file, if it is there.
pub(super) fn length(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|data| data.len())
}

/// The MD5 sum of a file, in hexadecimal.
pub(super) fn md5(path: &Path) -> Result<String> {
    let io = |cause| Error::io(path, cause);
    let (mut file, _) = cupola_core::file::open(path).map_err(io)?;
    let mut hasher = Md5::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(io)? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The files of a set.
pub(super) fn files(set: Published) -> Vec<Remote> {
    match set {
        Published::Mnist => idx_files(&MNIST_MIRRORS, &MNIST),
        Published::FashionMnist => idx_files(&FASHION_MIRRORS, &FASHION),
        Published::Cifar10 => {
            let batches = (1..=5).map(|number| format!("data_batch_{number}.bin"));
            let names = batches.chain(std::iter::once("test_batch.bin".to_owned()));
            let member = |name| Member {
                path: format!("cifar-10-batches-bin/{name}"),
                bytes: 10_000 * 3_073,
            };
            let sum = "c32a1d4ab5d03f1284b67883e8d87530";
            vec![archive("cifar-10-binary.tar.gz", 170_052_171, sum, names.map(member).collect())]
        }
        Published::Cifar100 => {
            let member = |name, images: u64| Member {
                path: format!("cifar-100-binary/{name}"),
                bytes: images * 3_074,
            };
            let members = vec![member("train.bin", 50_000), member("test.bin", 10_000)];
            let sum = "03b5dce01913d631647c71ecec9e9cb8";
            vec![archive("cifar-100-binary.tar.gz", 168_513_733, sum, members)]
        }
    }
}

fn archive(name: &str, bytes: u64, md5: &str, members: Vec<Member>) -> Remote {
    let urls = vec![format!("https://www.cs.toronto.edu/~kriz/{name}")];
    Remote { name: name.to_owned(), urls, bytes, md5: md5.to_owned(), members }
}

fn idx_files(mirrors: &[&str], files: &[(&str, u64, &str)]) -> Vec<Remote> {
    let remote = |&(name, bytes, md5): &(&str, u64, &str)| Remote {
        name: name.to_owned(),
        urls: mirrors.iter().map(|mirror| format!("{mirror}/{name}")).collect(),
        bytes,
        md5: md5.to_owned(),
        members: Vec::new(),
    };
    files.iter().map(remote).collect()
}

const MNIST_MIRRORS: [&str; 2] = [
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
];

const MNIST: [(&str, u64, &str); 4] = [
    ("train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    ("train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
    ("t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
    ("t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
];

const FASHION_MIRRORS: [&str; 3] = [
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
];

const FASHION: [(&str, u64, &str); 4] = [
    ("train-images-idx3-ubyte.gz", 26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    ("train-labels-idx1-ubyte.gz", 29_515, "25c81989df183df01b3e8a0aad5dffbe"),
    ("t10k-images-idx3-ubyte.gz", 4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
    ("t10k-labels-idx1-ubyte.gz", 5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
];
