use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::data::{
    Dataset, Error, ImageDataset, Published, Result, cifar, cifar10, cifar100, cifar100_coarse,
    fashion_mnist, idx, mnist,
};

fn header(kind: u8, shape: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0, 0, kind, shape.len() as u8];
    bytes.extend(shape.iter().flat_map(|length| length.to_be_bytes()));
    bytes
}

fn idx_file(shape: &[u32], values: &[u8]) -> Vec<u8> {
    [header(8, shape), values.to_vec()].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn read_idx(bytes: &[u8]) -> Result<idx::Idx> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    idx::read(path)
}

/// What the error says after the file's name.
fn complaint<T: std::fmt::Debug>(result: Result<T>) -> String {
    let text = result.unwrap_err().to_string();
    text.split_once(": ").unwrap().1.to_owned()
}

#[test]
fn idx_is_read_with_and_without_gzip() {
    let bytes = idx_file(&[2, 1, 3], &[1, 2, 3, 4, 5, 6]);
    let expected = idx::Idx { shape: vec![2, 1, 3], values: vec![1, 2, 3, 4, 5, 6] };
    assert_eq!(read_idx(&bytes).unwrap(), expected);
    assert_eq!(read_idx(&gzip(&bytes)).unwrap(), expected);
    let members = [gzip(&bytes[..9]), gzip(&bytes[9..])].concat();
    assert_eq!(read_idx(&members).unwrap(), expected);
    assert_eq!(read_idx(&idx_file(&[0], &[])).unwrap().values, Vec::<u8>::new());
}

#[test]
fn damaged_idx_says_where_and_what() {
    let good = idx_file(&[2, 3], &[1, 2, 3, 4, 5, 6]);
    let cases: [(Vec<u8>, &str); 9] = [
        (vec![], "byte 0: the file ends: the header takes 4 bytes from byte 0, 0 are there"),
        (
            good[..10].to_vec(),
            "byte 10: the file ends: the length of the axes takes 8 bytes from byte 4, 6 are there",
        ),
        (
            good[..15].to_vec(),
            "byte 15: the file ends: [2, 3] takes 6 bytes from byte 12, 3 are there",
        ),
        (
            gzip(&good[..15]),
            "byte 15: the file ends: [2, 3] takes 6 bytes from byte 12, 3 are there",
        ),
        ([&good[..], b"x"].concat(), "byte 18: the file should end here, and goes on"),
        (
            b"\x89PNG\r\n".to_vec(),
            "byte 0: an IDX file starts with 00 00, this one with 89 50 4e 47",
        ),
        (header(0x0D, &[1]), "byte 2: the values have type 0x0d, only bytes (0x08) are read"),
        (vec![0, 0, 8, 0], "byte 3: 0 axes, where 1 to 4 are expected"),
        (
            header(8, &[u32::MAX; 4]),
            "byte 4: [4294967295, 4294967295, 4294967295, 4294967295] is larger than an address space",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(complaint(read_idx(&bytes)), expected);
    }
}

#[test]
fn damaged_gzip_is_an_error_that_says_so() {
    let values: Vec<u8> = (0..10_000_u32).map(|i| ((i * i) >> 3) as u8).collect();
    let good = gzip(&idx_file(&[10_000], &values));
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 0x55;
    let mut wrong_sum = good.clone();
    wrong_sum[good.len() - 6] ^= 1;
    let cut = good[..good.len() / 2].to_vec();
    let trailing = [&good[..], b"garbage"].concat();
    for bytes in [flipped, wrong_sum, cut, trailing] {
        let text = complaint(read_idx(&bytes));
        assert!(text.contains("the gzip data is damaged: "), "{text}");
    }
}

#[test]
fn a_header_cannot_make_a_reader_reserve_or_unpack_more() {
    // A gigabyte is announced, ten bytes are there.
    let text = complaint(read_idx(&idx_file(&[1 << 30], &[0; 10])));
    assert_eq!(
        text,
        "byte 8: [1073741824] takes 1073741824 bytes, more than the file or the memory holds"
    );
    // Ten bytes are announced, and the gzip data would unpack to many.
    let text = complaint(read_idx(&gzip(&idx_file(&[10], &vec![0; 1 << 24]))));
    assert_eq!(text, "byte 18: the file should end here, and goes on");
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let text = idx::read("no/such/file").unwrap_err().to_string();
    assert!(text.starts_with("no/such/file: "), "{text}");
    #[cfg(unix)]
    {
        let text = idx::read("/dev/zero").unwrap_err().to_string();
        assert_eq!(text, "/dev/zero: it is no file");
    }
}

/// Writes the four files of MNIST, small, into `folder`; `change` may damage one.
fn write_mnist(folder: &Path, suffix: &str, change: impl Fn(&str, &mut Vec<u8>)) {
    std::fs::create_dir_all(folder).unwrap();
    for (stem, count) in [("train", 3_u8), ("t10k", 2)] {
        let images: Vec<u8> = (0..u32::from(count) * 784).map(|i| (i % 251) as u8).collect();
        let labels: Vec<u8> = (0..count).map(|i| 9 - i).collect();
        for (name, mut bytes) in [
            (format!("{stem}-images-idx3-ubyte"), idx_file(&[count.into(), 28, 28], &images)),
            (format!("{stem}-labels-idx1-ubyte"), idx_file(&[count.into()], &labels)),
        ] {
            change(&name, &mut bytes);
            let bytes = if suffix == ".gz" { gzip(&bytes) } else { bytes };
            std::fs::write(folder.join(name + suffix), bytes).unwrap();
        }
    }
}

#[test]
fn mnist_is_found_where_people_keep_it() {
    for (part, suffix) in [("", ""), ("", ".gz"), ("mnist", ".gz"), ("MNIST/raw", "")] {
        let folder = tempfile::tempdir().unwrap();
        write_mnist(&folder.path().join(part), suffix, |_, _| {});
        let (train, test) = mnist(folder.path()).unwrap();
        assert_eq!((train.len(), test.len()), (3, 2));
        assert_eq!((train.shape(), train.labels()), ([28, 28, 1], &[9, 8, 7][..]));
        assert_eq!(train.image(1)[..3], [31, 32, 33]);
        assert_eq!(train.classes()[7], "7");
    }
    let folder = tempfile::tempdir().unwrap();
    write_mnist(&folder.path().join("fashion-mnist"), ".gz", |_, _| {});
    let (train, _) = fashion_mnist(folder.path()).unwrap();
    assert_eq!((train.name(), train.classes()[9].as_str()), ("fashion-mnist", "Ankle boot"));
    // The two have the same file names, and one is not taken for the other.
    assert!(matches!(mnist(folder.path()), Err(Error::Missing { .. })));
}

#[test]
fn a_missing_file_says_what_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let text = mnist(folder.path()).unwrap_err().to_string();
    let expected = "no train-images-idx3-ubyte or train-images.idx3-ubyte (.gz or not) there, nor \
        in its mnist, MNIST/raw, MNIST; `cupola download mnist` or `cupola::data::Downloader` \
        fetches it";
    assert_eq!(text, format!("{}: {expected}", folder.path().display()));
}

#[test]
fn mnist_files_that_do_not_fit_are_named() {
    let complaint = |file: &'static str, bytes: Vec<u8>| {
        let folder = tempfile::tempdir().unwrap();
        write_mnist(folder.path(), "", |name, old| {
            if name == file {
                old.clone_from(&bytes);
            }
        });
        let text = mnist(folder.path()).unwrap_err().to_string();
        let prefix = format!("{}: ", folder.path().join(file).display());
        let rest = text.strip_prefix(&prefix).unwrap_or_else(|| panic!("{text}"));
        rest.replace(folder.path().to_str().unwrap(), "DIR")
    };
    assert_eq!(
        complaint("train-labels-idx1-ubyte", idx_file(&[3], &[9, 10, 0])),
        "byte 9: label 10 of image 1 is not below 10, the number of classes"
    );
    assert_eq!(
        complaint("t10k-labels-idx1-ubyte", idx_file(&[3], &[1, 2, 3])).replace('\\', "/"),
        "3 labels for the 2 images of DIR/t10k-images-idx3-ubyte"
    );
    assert_eq!(
        complaint("train-images-idx3-ubyte", idx_file(&[1, 32, 32], &[0; 1024])),
        "shape [1, 32, 32], where [n, 28, 28] is expected"
    );
    assert_eq!(
        complaint("train-labels-idx1-ubyte", idx_file(&[3, 1], &[0; 3])),
        "shape [3, 1], where [n] is expected"
    );
}

#[test]
fn images_are_unpacked_only_where_they_fit_and_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    write_mnist(folder.path(), "", |name, bytes| {
        if name == "train-images-idx3-ubyte" {
            *bytes = header(8, &[5_000_000, 28, 28]);
        }
    });
    let text = mnist(folder.path()).unwrap_err().to_string();
    assert!(text.contains("3 labels for the 5000000 images of "), "{text}");
    assert_eq!(Published::Mnist.read_test(folder.path()).unwrap().labels(), [9, 8]);
}

/// A CIFAR record whose red, green and blue planes start at 10, 90 and 170.
fn record(labels: &[u8]) -> Vec<u8> {
    let plane = |start: u8| (0..1024_u32).map(move |i| start + (i % 80) as u8);
    labels.iter().copied().chain([10, 90, 170].into_iter().flat_map(plane)).collect()
}

fn write(path: PathBuf, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn cifar_planes_become_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("cifar-10-batches-bin");
    for number in 1..=5 {
        write(inner.join(format!("data_batch_{number}.bin")), &record(&[number]));
    }
    write(inner.join("test_batch.bin.gz"), &gzip(&[record(&[9]), record(&[0])].concat()));
    let (train, test) = cifar10(folder.path()).unwrap();
    assert_eq!((train.labels(), test.labels()), (&[1, 2, 3, 4, 5][..], &[9, 0][..]));
    assert_eq!(train.shape(), [32, 32, 3]);
    assert_eq!(test.image(1)[..6], [10, 90, 170, 11, 91, 171]);
    assert_eq!(train.classes()[6], "frog");
}

#[test]
fn cifar100_has_fine_and_coarse_labels() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("cifar-100-binary");
    write(inner.join("train.bin"), &record(&[11, 71]));
    write(inner.join("test.bin"), &record(&[19, 99]));
    let (fine, _) = cifar100(folder.path()).unwrap();
    assert_eq!(
        (fine.labels(), fine.classes()[71].as_str(), fine.classes().len()),
        (&[71][..], "sea", 100)
    );
    let (_, coarse) = cifar100_coarse(folder.path()).unwrap();
    assert_eq!((coarse.labels(), coarse.classes()[19].as_str()), (&[19][..], "vehicles_2"));
}

#[test]
fn damaged_cifar_says_where_and_what() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.bin");
    let complaint = |bytes: &[u8], labels| {
        std::fs::write(&path, bytes).unwrap();
        complaint(cifar::read(&path, labels))
    };
    let two = [record(&[1]), record(&[2])].concat();
    assert_eq!(
        complaint(&two[..4000], cifar::Labels::Ten),
        "byte 4000: the file ends: record 1 takes 3073 bytes from byte 3073, 927 are there"
    );
    assert_eq!(
        complaint(&[], cifar::Labels::Ten),
        "byte 0: the file ends: record 0 takes 3073 bytes from byte 0, 0 are there"
    );
    assert_eq!(
        complaint(&[record(&[1]), record(&[10])].concat(), cifar::Labels::Ten),
        "byte 3073: label 10 of record 1 is not below 10, the number of classes"
    );
    assert_eq!(
        complaint(&record(&[3, 100]), cifar::Labels::Fine),
        "byte 1: label 100 of record 0 is not below 100, the number of classes"
    );
    assert_eq!(
        complaint(&record(&[20, 1]), cifar::Labels::Coarse),
        "byte 0: label 20 of record 0 is not below 20, the number of classes"
    );
}

#[test]
fn names_of_sets_are_forgiving() {
    for set in Published::ALL {
        assert_eq!(Published::from_name(set.name()), Some(set));
    }
    assert_eq!(Published::from_name("Fashion_MNIST"), Some(Published::FashionMnist));
    assert_eq!(Published::from_name("CIFAR-100"), Some(Published::Cifar100));
    assert_eq!(Published::from_name("cifar"), None);
}

/// The folder with the real data, or a printed line that says why there is none.
fn real_data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("CUPOLA_TEST_DATA").map_or(beside, PathBuf::from);
    if folder.join("mnist").is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: {} has no mnist; CUPOLA_TEST_DATA names another folder", folder.display());
    None
}

#[test]
fn the_real_mnist_is_read() {
    let Some(folder) = real_data() else { return };
    let (train, test): (ImageDataset, ImageDataset) = mnist(&folder).unwrap();
    assert_eq!((train.len(), test.len()), (60_000, 10_000));
    assert_eq!(train.labels()[..8], [5, 0, 4, 1, 9, 2, 1, 3]);
    assert_eq!(test.labels()[..8], [7, 2, 1, 0, 4, 1, 4, 9]);
    // The values that everybody normalises MNIST by.
    let normalization = train.normalization();
    assert!((normalization.mean()[0] - 0.1307).abs() < 5e-5, "{normalization:?}");
    assert!((normalization.std()[0] - 0.3081).abs() < 5e-5, "{normalization:?}");
}
