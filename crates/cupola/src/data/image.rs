//! Images in memory, as bytes, with their labels.

use std::cell::RefCell;
use std::sync::Arc;

use cupola_core::Array;

use super::dataset::out_of_range;
use super::{Dataset, Error, Normalization, Result};

/// Images of one size with a label each; a clone shares the memory.
///
/// # Shapes
///
/// A sample is an image `[h, w, c]` and its label, a batch is images `[n, h, w, c]` and labels
/// `[n]`.
///
/// # Dtypes
///
/// The bytes become `f32` by the [`Normalization`], first that to 0..=1; labels are `i32`.
///
/// # Example
///
/// ```
/// use cupola::data::{Dataset, ImageDataset};
///
/// let classes = vec!["dark".to_owned(), "light".to_owned()];
/// let images = ImageDataset::new("shades", vec![0, 10, 250, 255], [1, 2, 1], vec![0, 1], classes)?;
/// assert_eq!(images.len(), 2);
/// assert_eq!(images.image(1), [250, 255]);
/// let images = images.clone().normalized(images.normalization())?;
/// # let _ = images;
/// # Ok::<(), cupola::data::Error>(())
/// ```
#[derive(Clone)]
pub struct ImageDataset {
    images: Arc<Images>,
    normalization: Normalization,
    /// What each byte becomes, channel by channel.
    table: Arc<[[f32; 256]]>,
}

struct Images {
    name: String,
    pixels: Vec<u8>,
    shape: [usize; 3],
    labels: Vec<i32>,
    classes: Vec<String>,
}

impl ImageDataset {
    /// The images whose bytes are `pixels`, of `shape` `[height, width, channels]` each.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the shape has a zero, if the bytes are not that of one image a label,
    /// or if a label has no class.
    pub fn new(
        name: impl Into<String>,
        pixels: Vec<u8>,
        shape: [usize; 3],
        labels: Vec<i32>,
        classes: Vec<String>,
    ) -> Result<Self> {
        let name = name.into();
        let wrong = |detail| Error::argument("ImageDataset", format!("{name}: {detail}"));
        let area = shape.iter().try_fold(1_usize, |area, &length| area.checked_mul(length));
        let bytes = area.and_then(|area| area.checked_mul(labels.len()));
        if area == Some(0) || bytes != Some(pixels.len()) {
            let count = labels.len();
            let detail = format!("{} bytes for {count} images of {shape:?}", pixels.len());
            return Err(wrong(detail));
        }
        let known = |label: i32| usize::try_from(label).is_ok_and(|label| label < classes.len());
        if let Some(index) = labels.iter().position(|&label| !known(label)) {
            let detail =
                format!("label {} of image {index}, of {} classes", labels[index], classes.len());
            return Err(wrong(detail));
        }
        let normalization = Normalization::unit(shape[2]);
        let table = normalization.table().into();
        let images = Arc::new(Images { name, pixels, shape, labels, classes });
        Ok(Self { images, normalization, table })
    }

    /// These images with every byte brought to the scale of `normalization`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if it has another number of channels.
    pub fn normalized(self, normalization: Normalization) -> Result<Self> {
        let channels = self.images.shape[2];
        if normalization.channels() != channels {
            let given = normalization.channels();
            let detail = format!("{given} channels, and the images have {channels}");
            return Err(Error::argument("normalized", detail));
        }
        let table = normalization.table().into();
        Ok(Self { normalization, table, ..self })
    }

    /// What brings these images to mean 0 and deviation 1 in each channel; of a training set, it
    /// serves its test set too.
    pub fn normalization(&self) -> Normalization {
        Normalization::measure(&self.images.pixels, self.images.shape[2])
    }

    /// What the bytes pass through now.
    pub fn scale(&self) -> &Normalization {
        &self.normalization
    }

    /// The name of the set.
    pub fn name(&self) -> &str {
        &self.images.name
    }

    /// Height, width and channels of each image.
    pub fn shape(&self) -> [usize; 3] {
        self.images.shape
    }

    /// The name of each class, label by label.
    pub fn classes(&self) -> &[String] {
        &self.images.classes
    }

    /// The label of each image.
    pub fn labels(&self) -> &[i32] {
        &self.images.labels
    }

    /// All bytes, in the order `[n, h, w, c]`.
    pub fn pixels(&self) -> &[u8] {
        &self.images.pixels
    }

    /// The bytes of one image, in the order `[h, w, c]`.
    ///
    /// # Panics
    ///
    /// If `index` is not below the length.
    pub fn image(&self, index: usize) -> &[u8] {
        let area: usize = self.images.shape.iter().product();
        &self.images.pixels[index * area..(index + 1) * area]
    }

    /// The images and labels at `indices`, the images scaled and one after the other.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for an index that is not below the length.
    pub fn gather(&self, indices: &[usize]) -> Result<(Vec<f32>, Vec<i32>)> {
        let mut values = Vec::new();
        let labels = self.gather_into(indices, &mut values)?;
        Ok((values, labels))
    }

    /// Puts the scaled images at `indices` in place of what `values` holds; returns the labels.
    fn gather_into(&self, indices: &[usize], values: &mut Vec<f32>) -> Result<Vec<i32>> {
        let length = self.len();
        if let Some(&index) = indices.iter().find(|&&index| index >= length) {
            return Err(out_of_range(index, length));
        }
        let area: usize = self.images.shape.iter().product();
        // Of the same length as the last batch, this touches nothing.
        values.resize(indices.len() * area, 0.0);
        for (&index, out) in indices.iter().zip(values.chunks_exact_mut(area)) {
            self.scale_image(index, out);
        }
        Ok(indices.iter().map(|&index| self.images.labels[index]).collect())
    }

    fn scale_image(&self, index: usize, out: &mut [f32]) {
        let pixels = self.image(index);
        match &*self.table {
            [table] => {
                for (out, &pixel) in out.iter_mut().zip(pixels) {
                    *out = table[usize::from(pixel)];
                }
            }
            [red, green, blue] => {
                let (out, _) = out.as_chunks_mut::<3>();
                let (pixels, _) = pixels.as_chunks::<3>();
                for (out, &[r, g, b]) in out.iter_mut().zip(pixels) {
                    *out = [red[usize::from(r)], green[usize::from(g)], blue[usize::from(b)]];
                }
            }
            tables => {
                for ((out, &pixel), table) in out.iter_mut().zip(pixels).zip(tables.iter().cycle())
                {
                    *out = table[usize::from(pixel)];
                }
            }
        }
    }
}

impl std::fmt::Debug for ImageDataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageDataset")
            .field("name", &self.images.name)
            .field("len", &self.images.labels.len())
            .field("shape", &self.images.shape)
            .field("classes", &self.images.classes.len())
            .finish()
    }
}

impl Dataset for ImageDataset {
    type Sample = (Array, i32);

    fn len(&self) -> usize {
        self.images.labels.len()
    }

    fn get(&self, index: usize) -> Result<(Array, i32)> {
        let (values, labels) = self.gather(&[index])?;
        Ok((Array::from_vec(values, self.images.shape)?, labels[0]))
    }

    fn get_batch(&self, indices: &[usize]) -> Result<(Array, Array)> {
        thread_local! {
            // Fresh memory for every batch costs more in page faults than the gathering does.
            static VALUES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
        }
        VALUES.with_borrow_mut(|values| {
            let labels = self.gather_into(indices, values)?;
            let [height, width, channels] = self.images.shape;
            let images = Array::from_slice(values, [indices.len(), height, width, channels])?;
            Ok((images, Array::from_vec(labels, [indices.len()])?))
        })
    }
}
