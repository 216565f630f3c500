//! Random changes of images that are trained on: other pixels, the same label.

use cupola_core::{Array, DType, Error, Result, Shape, ops};
use ops::random;

/// The sizes of a batch of images, or an error that names `op`.
fn sizes(op: &'static str, images: &Array) -> Result<[usize; 4]> {
    match images.shape()[..] {
        [count, height, width, channels] => Ok([count, height, width, channels]),
        _ => Err(Error::shape(op, format!("takes [N, H, W, C], not {}", images.aval()))),
    }
}

/// Each image of a batch mirrored, left for right, with probability one half.
///
/// # Shapes
/// `images` is `[N, H, W, C]`, and so is the result. The key is the next one of the default generator where
/// none is given.
///
/// # Errors
/// Where `images` has not four axes.
///
/// # Example
/// ```
/// use cupola::{Array, data::random_flip, ops::random};
/// let image = Array::from_slice(&[1.0f32, 2.0], [1, 1, 2, 1])?;
/// let flipped = random_flip(&image, Some(&random::key(0)))?.to_vec::<f32>()?;
/// assert!(flipped == [1.0, 2.0] || flipped == [2.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn random_flip(images: &Array, key: Option<&Array>) -> Result<Array> {
    let [count, ..] = sizes("random_flip", images)?;
    let coin = random::bernoulli(0.5, [count, 1, 1, 1], key)?;
    ops::where_(&coin, &ops::flip(images, 2)?, images)
}

/// Of each image of a batch, with a border of `padding` zeros, a part of its own size at a random place.
///
/// # Shapes
/// `images` is `[N, H, W, C]`, and so is the result. The key is the next one of the default generator where
/// none is given.
///
/// # Errors
/// Where `images` has not four axes.
///
/// # Example
/// ```
/// use cupola::{Array, data::random_crop};
/// let image = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [1, 2, 2, 1])?;
/// assert_eq!(random_crop(&image, 1, None)?.shape()[..], [1, 2, 2, 1]);
/// assert_eq!(random_crop(&image, 0, None)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn random_crop(images: &Array, padding: usize, key: Option<&Array>) -> Result<Array> {
    let [count, height, width, channels] = sizes("random_crop", images)?;
    let border = (padding, padding);
    let padded = ops::pad(images, [(0, 0), border, border, (0, 0)], 0)?;
    let places = 2 * padding as i64 + 1;
    let starts = random::randint(0, places, [2, count, 1, 1, 1], DType::I32, key)?;
    let part = |x: &Array, axis: usize, length: usize| {
        let mut along = [1; 4];
        along[axis] = length;
        let start = ops::take(&starts, axis as i64 - 1, 0)?;
        let steps = ops::arange_in(0, length as i64, 1, DType::I32)?;
        let indices = ops::add(&start, &ops::reshape(&steps, along)?)?;
        let mut shape = [count, x.shape()[1], x.shape()[2], channels];
        shape[axis] = length;
        let indices = ops::broadcast_to(&indices, Shape::from(shape))?;
        ops::take_along_axis(x, &indices, axis as isize)
    };
    part(&part(&padded, 1, height)?, 2, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crops_are_parts_of_the_padded_image() -> Result<()> {
        let count = 64;
        let image: Vec<f32> = (1..=12).map(|i| i as f32).collect();
        let x = Array::from_vec(image.repeat(count), [count, 2, 3, 2])?;
        let cropped = random_crop(&x, 1, Some(&random::key(3)))?.to_vec::<f32>()?;
        let padded = ops::pad(&x, [(0, 0), (1, 1), (1, 1), (0, 0)], 0)?.to_vec::<f32>()?;
        let at = |y: usize, x: usize, c: usize| padded[(y * 5 + x) * 2 + c];
        let mut seen = std::collections::BTreeSet::new();
        for part in cropped.chunks(12) {
            let place = (0..9).find(|place| {
                let (top, left) = (place / 3, place % 3);
                let all = (0..12).map(|i| at(top + i / 6, left + i / 2 % 3, i % 2));
                all.eq(part.iter().copied())
            });
            seen.insert(place.expect("a part of the padded image"));
        }
        assert_eq!(seen.len(), 9, "every place comes up");
        Ok(())
    }

    #[test]
    fn about_half_is_mirrored() -> Result<()> {
        let x = Array::from_vec([1.0f32, 2.0, 3.0].repeat(200), [200, 1, 3, 1])?;
        let flipped = random_flip(&x, Some(&random::key(1)))?.to_vec::<f32>()?;
        let mirrored = flipped.chunks(3).filter(|row| *row == [3.0, 2.0, 1.0]).count();
        assert!(flipped.chunks(3).all(|row| row[1] == 2.0));
        assert!((70..130).contains(&mirrored), "{mirrored}");
        Ok(())
    }

    #[test]
    fn what_is_no_batch_of_images_is_refused() {
        let x = ops::ones([2, 3], DType::F32).unwrap();
        assert!(random_flip(&x, None).unwrap_err().to_string().contains("random_flip"));
        assert!(random_crop(&x, 1, None).unwrap_err().to_string().contains("[N, H, W, C]"));
    }
}
