//! CIFAR's binary files: records in the order of the file, channel by channel.

use cupola::data::cifar::{self, Labels, Records};

use crate::scratch;

const PLANE: usize = 32 * 32;

/// The first byte says which labels; the others are the file.
pub fn seeds() -> Vec<Vec<u8>> {
    let pixels: Vec<u8> = (0..3 * PLANE).map(|value| value as u8).collect();
    let record = |labels: &[u8]| [labels, &pixels[..]].concat();
    vec![
        [&[0][..], &record(&[9]), &record(&[1])].concat(),
        [&[1][..], &record(&[19, 99])].concat(),
        [&[2][..], &record(&[19, 99])].concat(),
    ]
}

pub fn check(data: &[u8]) {
    let Some((which, data)) = data.split_first() else { return };
    let labels = [Labels::Ten, Labels::Fine, Labels::Coarse][usize::from(which % 3)];
    let path = scratch::file("cifar", data);
    let Ok(Records { images, labels: found }) = cifar::read(path, labels) else { return };
    assert_eq!(images.len(), found.len() * 3 * PLANE);
    if data.starts_with(&[0x1f, 0x8b]) {
        return;
    }
    let (label_bytes, taken) = match labels {
        Labels::Ten => (1, 0),
        Labels::Fine => (2, 1),
        Labels::Coarse => (2, 0),
    };
    let records = data.chunks(label_bytes + 3 * PLANE);
    for ((record, label), image) in records.zip(found).zip(images.chunks(3 * PLANE)) {
        assert_eq!(record[taken], label);
        let plane = |channel: usize| image.iter().skip(channel).step_by(3);
        let planes = plane(0).chain(plane(1)).chain(plane(2));
        assert!(planes.eq(&record[label_bytes..]), "the pixels are others");
    }
}
