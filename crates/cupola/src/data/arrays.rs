//! Arrays in memory that share their first axis.

use std::sync::Arc;

use cupola_core::{Array, DType};

use super::dataset::out_of_range;
use super::{Dataset, Error, Result};

/// Arrays of equal length along their first axis; a clone shares the memory.
///
/// # Shapes
///
/// Of arrays `[n, …]`, a sample is a row `[…]` of each, and a batch of `b` samples `[b, …]` of each.
///
/// # Example
///
/// ```
/// use cupola::Array;
/// use cupola::data::{ArrayDataset, Dataset};
///
/// let x = Array::from_slice(&[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0], [3, 2])?;
/// let y = Array::from_slice(&[7_i32, 8, 9], [3])?;
/// let rows = ArrayDataset::new(&[x, y])?;
/// assert_eq!(rows.len(), 3);
/// let batch = rows.get_batch(&[2, 0])?;
/// assert_eq!(batch[0].to_vec::<f32>()?, [4.0, 5.0, 0.0, 1.0]);
/// assert_eq!(batch[1].to_vec::<i32>()?, [9, 7]);
/// # Ok::<(), cupola::data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArrayDataset {
    fields: Arc<[Field]>,
    length: usize,
}

/// One array, on the host, so that a worker gathers rows without waiting for a device.
struct Field {
    bytes: Vec<u8>,
    dtype: DType,
    /// The shape of a row.
    row: Vec<usize>,
    row_bytes: usize,
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.row)
    }
}

impl ArrayDataset {
    /// The rows of `arrays`, which are evaluated now.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if there is no array, one has no axis, or their lengths differ;
    /// [`Error::Array`] if one cannot be evaluated.
    pub fn new(arrays: &[Array]) -> Result<Self> {
        let wrong = |detail| Error::argument("ArrayDataset", detail);
        let first = arrays.first().ok_or_else(|| wrong("no arrays".to_owned()))?;
        let field = |array: &Array| {
            let Some((&length, row)) = array.shape().split_first() else {
                return Err(wrong("an array without axes has no rows".to_owned()));
            };
            if length != first.shape()[0] {
                let (first, other) = (first.aval(), array.aval());
                return Err(wrong(format!("{first} and {other} differ in their first axis")));
            }
            let dtype = array.dtype();
            let row_bytes = row.iter().product::<usize>() * dtype.size();
            Ok(Field { bytes: array.to_bytes()?, dtype, row: row.to_vec(), row_bytes })
        };
        let fields: Result<Vec<Field>> = arrays.iter().map(field).collect();
        Ok(Self { fields: fields?.into(), length: first.shape()[0] })
    }

    fn check(&self, index: usize) -> Result<()> {
        if index < self.length { Ok(()) } else { Err(out_of_range(index, self.length)) }
    }
}

impl Field {
    fn row(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.row_bytes..(index + 1) * self.row_bytes]
    }
}

impl Dataset for ArrayDataset {
    type Sample = Vec<Array>;

    fn len(&self) -> usize {
        self.length
    }

    fn get(&self, index: usize) -> Result<Vec<Array>> {
        self.check(index)?;
        let row = |field: &Field| {
            Ok(Array::from_bytes(field.row(index), field.dtype, field.row.as_slice())?)
        };
        self.fields.iter().map(row).collect()
    }

    fn get_batch(&self, indices: &[usize]) -> Result<Vec<Array>> {
        indices.iter().try_for_each(|&index| self.check(index))?;
        let gather = |field: &Field| {
            let mut bytes = Vec::with_capacity(indices.len() * field.row_bytes);
            for &index in indices {
                bytes.extend_from_slice(field.row(index));
            }
            let shape: Vec<usize> =
                std::iter::once(indices.len()).chain(field.row.iter().copied()).collect();
            Ok(Array::from_bytes(&bytes, field.dtype, shape)?)
        };
        self.fields.iter().map(gather).collect()
    }
}
