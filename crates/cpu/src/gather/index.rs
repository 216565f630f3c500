//! Index arrays: from indices along axes to offsets, with every index checked.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cupola_core::backend::Operand;
use cupola_core::{DType, Error, Result, Shape};

use crate::op::Io;
use crate::walk::Walk;

/// The index arrays of an op, of one shape.
pub struct Indices {
    op: &'static str,
    shape: Shape,
    arrays: Vec<IndexArray>,
}

struct IndexArray {
    /// Which input of the op it is.
    input: usize,
    dtype: DType,
    walk: Walk<1>,
    target: Target,
}

/// What an index array indexes.
pub struct Target {
    /// The axis.
    pub axis: usize,
    /// Its size.
    pub size: usize,
    /// How many elements each index takes along it.
    pub span: usize,
    /// Elements between neighbours along it.
    pub stride: isize,
}

impl Target {
    /// How many places an index may name.
    fn places(&self) -> u64 {
        (self.size + 1).saturating_sub(self.span) as u64
    }
}

impl Indices {
    /// The index arrays of `op`: the inputs from `first` on, one a target.
    pub fn new(
        op: &'static str,
        inputs: &[Operand],
        first: usize,
        targets: impl IntoIterator<Item = Target>,
    ) -> Self {
        let array = |(i, target)| {
            let Operand { aval, strides } = &inputs[first + i];
            let walk = Walk::new(&aval.shape, [strides]);
            IndexArray { input: first + i, dtype: aval.dtype, walk, target }
        };
        let arrays = targets.into_iter().enumerate().map(array).collect();
        let shape = inputs.get(first).map(|i| i.aval.shape.clone()).unwrap_or_default();
        Indices { op, shape, arrays }
    }

    /// How many positions the arrays have.
    pub fn len(&self) -> usize {
        self.shape.size()
    }

    /// Adds, for each position in `range`, the offset of what is indexed there to `offsets`.
    ///
    /// # Safety
    /// The arrays can be read from the inputs of `io`.
    pub unsafe fn add(
        &self,
        io: &Io<'_>,
        range: Range<usize>,
        offsets: &mut [isize],
    ) -> Result<()> {
        macro_rules! arms {
            ($array:expr, $($dtype:ident $t:ty),*) => {
                match $array.dtype {
                    // SAFETY: the caller vouches for the array, whose elements are of this type.
                    $(DType::$dtype => unsafe {
                        self.add_typed::<$t>($array, io, range.clone(), offsets)
                    },)*
                    DType::Bool | DType::F16 | DType::BF16 | DType::F32 | DType::F64
                    | DType::C32 | DType::C64 => Err(Error::dtype(
                        self.op,
                        format!("indices are integers, not {}", $array.dtype),
                    )),
                }
            };
        }
        for array in &self.arrays {
            arms!(array, U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64)?;
        }
        Ok(())
    }

    /// # Safety
    /// As for `add`; the array's elements are `T`.
    unsafe fn add_typed<T: Integer>(
        &self,
        array: &IndexArray,
        io: &Io<'_>,
        range: Range<usize>,
        offsets: &mut [isize],
    ) -> Result<()> {
        let ptr = io.inputs[array.input].cast::<T>();
        let [step] = array.walk.steps();
        let (places, stride) = (array.target.places(), array.target.stride);
        let mut result = Ok(());
        array.walk.runs(range.clone(), |at, [offset], len| {
            let out = &mut offsets[at - range.start..][..len];
            let mut outside = false;
            for (i, out) in out.iter_mut().enumerate() {
                // SAFETY: the walk stays inside the array.
                let index = unsafe { *ptr.offset(offset + i as isize * step) }.place();
                outside |= index >= places;
                *out = out.wrapping_add((index as isize).wrapping_mul(stride));
            }
            if outside && result.is_ok() {
                // SAFETY: as above.
                let read = |i: usize| unsafe { *ptr.offset(offset + i as isize * step) };
                let bad = (0..len).find(|&i| read(i).place() >= places);
                result = bad.map_or(Ok(()), |i| Err(self.outside(array, at + i, read(i).show())));
            }
        });
        result
    }

    fn outside(&self, array: &IndexArray, mut at: usize, index: i128) -> Error {
        let mut position = vec![0; self.shape.rank()];
        for (place, &size) in position.iter_mut().zip(self.shape.iter()).rev() {
            *place = at % size;
            at /= size;
        }
        let Target { axis, size, span, .. } = array.target;
        let of = if span == 1 { String::new() } else { format!(", in slices of {span}") };
        let which = format!("index {index} at position {position:?}");
        Error::index(self.op, format!("{which} is outside axis {axis} of size {size}{of}"))
    }
}

/// An element type of index arrays.
trait Integer: Copy {
    /// The index; beyond any axis if negative.
    fn place(self) -> u64;
    /// The number, for errors.
    fn show(self) -> i128;
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Integer for $t {
            #[inline(always)]
            fn place(self) -> u64 {
                self as u64
            }
            fn show(self) -> i128 {
                self as i128
            }
        }
    )*};
}
integer!(u8, u16, u32, u64, i8, i16, i32, i64);

/// The error of the first chunk that failed.
#[derive(Default)]
pub struct FirstError(Mutex<Option<(usize, Error)>>);

impl FirstError {
    /// Takes note of how a chunk ended; says whether it went well.
    pub fn note(&self, chunk: usize, result: Result<()>) -> bool {
        let Err(error) = result else { return true };
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(earlier, _)| chunk < *earlier) {
            *first = Some((chunk, error));
        }
        false
    }

    /// How all chunks ended.
    pub fn result(self) -> Result<()> {
        let first = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}
