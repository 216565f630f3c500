use cupola_core::Array;

use crate::data::{
    ArrayDataset, Collate, Dataset, Error, ImageDataset, Normalization, Result, digits_sized,
};

struct Numbers(usize);

impl Dataset for Numbers {
    type Sample = usize;

    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, index: usize) -> Result<usize> {
        Ok(index)
    }
}

fn all<D: Dataset>(dataset: &D) -> Vec<D::Sample> {
    (0..dataset.len()).map(|index| dataset.get(index).unwrap()).collect()
}

#[test]
fn map_subset_and_concat_compose() {
    let set = Numbers(5).map(|x| Ok(10 * x)).concat(Numbers(2)).subset([6, 0, 4, 4]).unwrap();
    assert_eq!(all(&set), [1, 0, 40, 40]);
    assert_eq!(set.indices(), [6, 0, 4, 4]);
    let boxed: Box<dyn Dataset<Sample = usize>> = Box::new(set);
    assert_eq!(all(&boxed.map(|x| Ok(x + 1))), [2, 1, 41, 41]);
}

#[test]
fn an_index_out_of_range_is_an_error() {
    let text = Numbers(5).subset([0, 5]).err().unwrap().to_string();
    assert_eq!(text, "subset: index 5 of a data set of 5 samples");
    let subset = Numbers(5).subset([3]).unwrap();
    assert!(matches!(subset.get(1), Err(Error::Argument { .. })));
    let (train, _) = digits_sized(0, 4, 0);
    assert!(matches!(train.get(4), Err(Error::Argument { .. })));
}

#[test]
fn a_subset_names_its_own_index() {
    let fails = Numbers(9).map(|x| if x == 8 { Err(Error::user("eight")) } else { Ok(x as i32) });
    let subset = fails.subset([2, 8]).unwrap();
    assert_eq!(subset.get_batch(&[0, 1]).err().unwrap().to_string(), "sample 1: eight");
}

#[test]
fn a_random_split_is_disjoint_and_exhaustive() {
    let split = |seed| Numbers(100).random_split(&[70, 0, 30], seed).unwrap();
    let parts = split(1);
    let lengths: Vec<_> = parts.iter().map(Dataset::len).collect();
    assert_eq!(lengths, [70, 0, 30]);
    let mut every: Vec<_> = parts.iter().flat_map(all).collect();
    assert_ne!(every, (0..100).collect::<Vec<_>>());
    every.sort_unstable();
    assert_eq!(every, (0..100).collect::<Vec<_>>());
    assert_eq!(all(&parts[2]), all(&split(1)[2]));
    assert_ne!(all(&parts[2]), all(&split(2)[2]));
}

#[test]
fn fractions_round_and_the_rest_goes_first() {
    let lengths = |len, fractions: &[f64]| -> Result<Vec<usize>> {
        let parts = Numbers(len).random_split_fractions(fractions, 0)?;
        Ok(parts.iter().map(Dataset::len).collect())
    };
    assert_eq!(lengths(10, &[0.7, 0.2, 0.1]).unwrap(), [7, 2, 1]);
    assert_eq!(lengths(11, &[0.5, 0.5]).unwrap(), [6, 5]);
    assert_eq!(lengths(2, &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]).unwrap(), [1, 1, 0]);
    for wrong in [&[0.5, 0.6][..], &[1.5, -0.5], &[f64::NAN, 1.0], &[]] {
        assert!(matches!(lengths(10, wrong), Err(Error::Argument { .. })), "{wrong:?}");
    }
    let text = Numbers(5).random_split(&[2, 2], 0).err().unwrap().to_string();
    assert_eq!(text, "random_split: lengths [2, 2] do not add up to 5 samples");
    assert!(Numbers(5).random_split(&[usize::MAX, 6], 0).is_err());
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|class| format!("class {class}")).collect()
}

#[test]
fn normalization_brings_each_channel_to_mean_0_and_deviation_1() {
    let pixels: Vec<u8> = (0..96_u32).map(|i| (i * i % 251) as u8).collect();
    for channels in [1, 2, 3, 4] {
        let count = 96 / (4 * channels);
        let labels = vec![0; count];
        let set =
            ImageDataset::new("noise", pixels.clone(), [2, 2, channels], labels, names(1)).unwrap();
        let measured = set.normalization();
        let indices: Vec<usize> = (0..count).collect();
        let (scaled, _) = set.normalized(measured.clone()).unwrap().gather(&indices).unwrap();
        for channel in 0..channels {
            let values: Vec<f64> =
                scaled.iter().skip(channel).step_by(channels).map(|&x| f64::from(x)).collect();
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-5, "{mean} {variance}");
            let byte = f32::from(pixels[channel]);
            let (mean, std) = (measured.mean()[channel], measured.std()[channel]);
            assert_eq!(scaled[channel], (byte / 255.0 - mean) / std);
        }
    }
}

#[test]
fn a_channel_of_one_colour_keeps_its_scale() {
    let set = ImageDataset::new("flat", vec![51; 4], [2, 2, 1], vec![0], names(1)).unwrap();
    assert_eq!(set.normalization(), Normalization::new([0.2], [1.0]).unwrap());
    assert_eq!(set.gather(&[0]).unwrap().0, [0.2; 4]);
}

#[test]
fn images_that_do_not_fit_are_errors() {
    let new = |pixels: usize, shape, labels: &[i32]| {
        ImageDataset::new("set", vec![0; pixels], shape, labels.to_vec(), names(2))
    };
    let text = |result: Result<ImageDataset>| result.unwrap_err().to_string();
    let expected = "ImageDataset: set: 9 bytes for 2 images of [2, 2, 1]";
    assert_eq!(text(new(9, [2, 2, 1], &[0, 1])), expected);
    let expected = "ImageDataset: set: label -1 of image 1, of 2 classes";
    assert_eq!(text(new(8, [2, 2, 1], &[0, -1])), expected);
    assert!(new(8, [2, 2, 1], &[0, 2]).is_err());
    assert!(new(0, [0, 2, 1], &[0]).is_err());
    assert!(new(0, [usize::MAX, 2, 1], &[]).is_err());
    assert_eq!(new(0, [2, 2, 1], &[]).unwrap().len(), 0);

    let grey = new(8, [2, 2, 1], &[0, 1]).unwrap();
    let text = grey.normalized(Normalization::unit(3)).unwrap_err().to_string();
    assert_eq!(text, "normalized: 3 channels, and the images have 1");
    for (mean, std) in [(vec![0.0], vec![0.0]), (vec![], vec![]), (vec![0.0], vec![1.0; 2])] {
        assert!(Normalization::new(mean, std).is_err());
    }
}

#[test]
fn rows_of_arrays_come_in_any_order() {
    let x = Array::from_vec((0..12).map(|i| i as f32).collect(), [3, 2, 2]).unwrap();
    let y = Array::from_slice(&[true, false, true], [3]).unwrap();
    let rows = ArrayDataset::new(&[x, y]).unwrap();
    let row = rows.get(2).unwrap();
    assert_eq!((&row[0].shape()[..], row[1].rank()), (&[2, 2][..], 0));
    let batch = rows.get_batch(&[2, 2, 1]).unwrap();
    let expected = [8.0, 9.0, 10.0, 11.0, 8.0, 9.0, 10.0, 11.0, 4.0, 5.0, 6.0, 7.0];
    assert_eq!(batch[0].shape()[..], [3, 2, 2]);
    assert_eq!(batch[0].to_vec::<f32>().unwrap(), expected);
    assert_eq!(batch[1].to_vec::<bool>().unwrap(), [true, true, false]);

    // By the type of the samples it is the same batch.
    let slow = rows.clone().map(Ok).get_batch(&[2, 2, 1]).unwrap();
    assert_eq!(slow[0].to_vec::<f32>().unwrap(), expected);
    assert_eq!(slow[1].shape()[..], [3]);
    assert!(matches!(rows.get_batch(&[0, 3]), Err(Error::Argument { .. })));
}

#[test]
fn arrays_that_have_no_common_rows_are_errors() {
    let array =
        |shape: &[usize]| Array::from_vec(vec![0_i32; shape.iter().product()], shape).unwrap();
    let text = |arrays: &[Array]| ArrayDataset::new(arrays).unwrap_err().to_string();
    assert_eq!(text(&[]), "ArrayDataset: no arrays");
    assert_eq!(text(&[array(&[])]), "ArrayDataset: an array without axes has no rows");
    let text = text(&[array(&[3, 2]), array(&[2])]);
    assert!(text.contains("[3, 2]") && text.ends_with("differ in their first axis"), "{text}");
}

#[test]
fn samples_that_differ_do_not_collate() {
    let array = |length| Array::from_vec(vec![0.0_f32; length], [length]).unwrap();
    let text = Collate::collate(vec![(array(2), 1), (array(3), 2)]).err().unwrap().to_string();
    assert!(text.starts_with("collate: sample 0 of the batch is "), "{text}");
    assert!(text.contains("[2]") && text.contains("[3]"), "{text}");
    let text = Collate::collate(vec![vec![1, 2], vec![1]]).err().unwrap().to_string();
    assert_eq!(text, "collate: sample 0 of the batch has 2 parts, sample 1 has 1");
    let (names, (a, b)) =
        Collate::collate(vec![("x".to_owned(), (1_u8, 0.5_f64)), ("y".to_owned(), (2, 1.5))])
            .unwrap();
    assert_eq!(names, ["x", "y"]);
    assert_eq!(a.to_vec::<u8>().unwrap(), [1, 2]);
    assert_eq!(b.to_vec::<f64>().unwrap(), [0.5, 1.5]);
}
