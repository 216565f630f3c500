//! Between arrays and the host: elements in, elements out. Reading computes.

use smallvec::SmallVec;

use crate::array::{Array, Progress, Value, is_in_body};
use crate::backend::{Buffer, backend, reserve, upload, wait_to_read};
use crate::device::{Device, default_stream, working_for};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::fork;
use crate::holders;
use crate::profile::{self, What};
use crate::shape::{Aval, Layout, Shape};

impl Array {
    /// An array of `shape` with the elements of `data` in row-major order, on the default device.
    ///
    /// # Errors
    /// Where the count of elements is not the shape's size, or the device has no memory left.
    ///
    /// # Example
    /// ```
    /// use cupola::Array;
    /// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(x.shape()[..], [2, 2]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn from_slice<T: Element>(data: &[T], shape: impl Into<Shape>) -> Result<Array> {
        Self::from_bytes(T::to_bytes(data), T::DTYPE, shape)
    }

    /// Like [`Array::from_slice`], from a vector.
    pub fn from_vec<T: Element>(data: Vec<T>, shape: impl Into<Shape>) -> Result<Array> {
        Self::from_slice(&data, shape)
    }

    /// An array of `shape` and `dtype` from its elements' bytes in row-major order and the
    /// machine's byte order, on the default device.
    ///
    /// # Errors
    /// Where the count of bytes does not fit, or the device has no memory left.
    pub fn from_bytes(bytes: &[u8], dtype: DType, shape: impl Into<Shape>) -> Result<Array> {
        let shape = shape.into();
        let want = shape.checked_size("array", dtype)? * dtype.size();
        if bytes.len() != want {
            return Err(Error::shape(
                "array",
                format!(
                    "{} elements of {dtype} do not fill shape {shape}",
                    bytes.len() / dtype.size()
                ),
            ));
        }
        let on = backend(default_stream().device)?;
        let start = profile::begin();
        let uploaded = upload(&**on, bytes);
        profile::end(start, || What::Copy { from: Device::CPU, to: on.device(), bytes: want });
        let mut buffer = uploaded?;
        let layout = Layout::contiguous(&shape);
        let aval = Aval { shape, dtype };
        holders::hold(&mut buffer, "array", &aval, holders::line(false));
        let value = Value { buffer, layout, range: range_of(bytes, dtype) };
        Ok(Self::from_value(aval, value))
    }

    /// Computes the array, and waits for it.
    ///
    /// # Errors
    /// Where the computation fails, or the array is traced by `vmap` or `compile` and so has no
    /// values.
    pub fn eval(&self) -> Result<()> {
        super::eval(std::slice::from_ref(self))
    }

    /// The computed value.
    pub(crate) fn value(&self) -> Result<Value> {
        self.eval()?;
        loop {
            let inside = fork::inside();
            let state = self.node.state();
            match &state.progress {
                Progress::Ready(values) => {
                    let value = values.get(self.output).cloned().ok_or_else(|| self.lost())?;
                    return value.buffer.check().map(|()| value);
                }
                Progress::Failed(error) => return Err(Error::Failed(error.clone())),
                Progress::Pending(event) => {
                    let event = event.clone();
                    drop((state, inside));
                    event.wait()?;
                }
                Progress::Lazy => {
                    return Err(Error::Traced("the array was not evaluated".into()));
                }
            }
        }
    }

    /// The memory of the computed array, and where in it the elements lie. Nothing is written
    /// there as long as the buffer is held.
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn storage(&self) -> Result<(Buffer, Layout)> {
        let Value { buffer, layout, .. } = self.value()?;
        Ok((buffer, layout))
    }

    /// An array over memory that is there.
    ///
    /// # Errors
    /// Where there are too many axes or elements, the layout reaches outside the buffer, or elements
    /// in memory of the host are not aligned to their size.
    pub fn from_storage(aval: Aval, buffer: Buffer, layout: Layout) -> Result<Array> {
        aval.shape.checked_size("array", aval.dtype)?;
        let reach = layout.reach(&aval.shape);
        let size = aval.dtype.size();
        let fits = layout.strides.len() == aval.shape.rank()
            && reach.start >= 0
            && reach.end as usize * size <= buffer.bytes();
        if !fits {
            let bytes = buffer.bytes();
            return Err(Error::argument(
                "array",
                format!("elements {reach:?} of {aval} do not lie in {bytes} bytes"),
            ));
        }
        if let Some(bytes) = buffer.host()
            && !bytes.as_ptr().addr().is_multiple_of(size)
        {
            return Err(Error::argument(
                "array",
                format!("elements of {aval} are not aligned to {size} bytes"),
            ));
        }
        Ok(Self::from_value(aval, Value { buffer, layout, range: None }))
    }

    /// The elements' bytes in row-major order.
    ///
    /// # Errors
    /// As [`Array::eval`], and where the host has no memory for them.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let value = self.value()?;
        let size = self.dtype().size();
        let shape = self.shape();
        if shape.size() == 0 {
            return Ok(Vec::new());
        }
        let reach = value.layout.reach(shape);
        let low = reach.start;
        let (from, to) = (low as usize * size, reach.end as usize * size);
        let staging;
        let bytes = match value.buffer.host() {
            Some(bytes) => &bytes[from..to],
            None => {
                let mut copy = reserve(to - from, "elements that are read")?;
                copy.resize(to - from, 0);
                working_for(self.node.stream, || {
                    wait_to_read(&value.buffer)?;
                    let (start, on) = (profile::begin(), value.buffer.device());
                    backend(on)?.download(&value.buffer, from, &mut copy)?;
                    let bytes = copy.len();
                    profile::end(start, || What::Copy { from: on, to: Device::CPU, bytes });
                    Ok(())
                })?;
                staging = copy;
                &staging[..]
            }
        };
        if value.layout.is_contiguous(shape) {
            let mut out = reserve(bytes.len(), "elements that are read")?;
            out.extend_from_slice(bytes);
            return Ok(out);
        }
        let mut out = reserve(self.aval().bytes(), "elements that are read")?;
        let strides = &value.layout.strides;
        let (inner, step) = match shape.last() {
            Some(&d) => (d, strides[shape.rank() - 1]),
            None => (1, 0),
        };
        let mut index: SmallVec<[usize; 4]> =
            SmallVec::from_elem(0, shape.rank().saturating_sub(1));
        let mut at = value.layout.offset - low;
        for _ in 0..shape.size() / inner {
            for i in 0..inner as isize {
                let start = (at + i * step) as usize * size;
                out.extend_from_slice(&bytes[start..start + size]);
            }
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                at += strides[axis];
                if index[axis] < shape[axis] {
                    break;
                }
                at -= strides[axis] * shape[axis] as isize;
                index[axis] = 0;
            }
        }
        Ok(out)
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// Where `T` does not hold the array's dtype, and as [`Array::eval`].
    ///
    /// # Example
    /// ```
    /// use cupola::Array;
    /// let x = Array::from_slice(&[1i32, 2, 3], [3])?;
    /// assert_eq!((&x + &x).to_vec::<i32>()?, [2, 4, 6]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Error::dtype(
                "to_vec",
                format!("the array is {}, {} was asked for", self.aval(), T::DTYPE),
            ));
        }
        let bytes = self.to_bytes()?;
        let mut out = reserve(self.size(), "elements that are read")?;
        for some in bytes.chunks(T::DTYPE.size() << 16) {
            out.extend(T::from_bytes(some));
        }
        Ok(out)
    }

    /// The only element.
    ///
    /// # Errors
    /// Where there is not exactly one element, and as [`Array::to_vec`].
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.size() != 1 {
            return Err(Error::shape(
                "item",
                format!("{} has {} elements, not one", self.aval(), self.size()),
            ));
        }
        Ok(self.to_vec::<T>()?[0])
    }
}

/// How many indices are looked at where they are recorded, at most: reading more would be felt beside what is
/// done with them.
const MOST_INDICES: usize = 1 << 16;

impl Array {
    /// Checks that at integers which are there already slices of `span` elements lie in an axis of `size`, negative
    /// ones counted from its end. What is not known of them without waiting is looked at where they are used.
    ///
    /// # Errors
    /// Where one is outside; `op` and `axis` are named in it.
    pub(crate) fn expect_inside(
        &self,
        op: &'static str,
        axis: usize,
        (size, span): (usize, usize),
    ) -> Result<()> {
        // A branch that is never taken may have any.
        if is_in_body() {
            return Ok(());
        }
        let Some(Value { buffer, layout, range }) = self.ready() else { return Ok(()) };
        let (shape, dtype) = (&self.aval().shape, self.dtype());
        let count = shape.size();
        let known = match (range, buffer.host()) {
            (Some(range), _) => Some(range),
            (None, Some(bytes)) if (1..=MOST_INDICES).contains(&count) => {
                let reach = layout.reach(shape);
                let at = |element: isize| element as usize * dtype.size();
                range_of(&bytes[at(reach.start)..at(reach.end)], dtype)
            }
            (None, _) => None,
        };
        let (size, span) = (size as i128, span as i128);
        let is_inside = |index: i128| {
            let from_start = if index < 0 { index + size } else { index };
            (0..=size - span).contains(&from_start)
        };
        // Between two that are inside lie others that are not, where longer slices are counted from both ends.
        let is_known = |(least, most): (i64, i64)| {
            is_inside(least.into()) && is_inside(most.into()) && (least >= 0 || span <= 1)
        };
        if known.is_none_or(is_known) {
            return Ok(());
        }
        // What is known may be of more than these: then they are looked at, but for those that a device has.
        let strides = shape.iter().zip(&layout.strides).filter(|(_, stride)| **stride != 0);
        let distinct: usize = strides.map(|(size, _)| size).product();
        if buffer.host().is_none() && buffer.bytes() != distinct * dtype.size() {
            return Ok(());
        }
        let bytes = self.to_bytes()?;
        let all = bytes.chunks_exact(dtype.size());
        let all = all.map(|element| extremes(element, dtype).map_or(0, |(index, _)| index));
        let Some((mut at, index)) = all.enumerate().find(|(_, index)| !is_inside(*index)) else {
            return Ok(());
        };
        let mut position = vec![0; shape.rank()];
        for (place, &size) in position.iter_mut().zip(shape.iter()).rev() {
            *place = at % size;
            at /= size;
        }
        let which = format!("index {index} at position {position:?}");
        let of = if span == 1 { String::new() } else { format!(", in slices of {span}") };
        Err(Error::index(op, format!("{which} is outside axis {axis} of size {size}{of}")))
    }
}

/// The least and the largest element of integers, as far as 64 bits reach; `None` as of [`extremes`].
fn range_of(bytes: &[u8], dtype: DType) -> Option<(i64, i64)> {
    let near = |v: i128| i64::try_from(v).unwrap_or(i64::MAX);
    extremes(bytes, dtype).map(|(least, most)| (near(least), near(most)))
}

/// The least and the largest element of integers; `None` of nothing, and of other dtypes.
fn extremes(bytes: &[u8], dtype: DType) -> Option<(i128, i128)> {
    macro_rules! of {
        ($t:ty) => {{
            let all = bytes.chunks_exact(size_of::<$t>());
            let all = all.map(|b| <$t>::from_ne_bytes(b.try_into().unwrap_or_default()));
            let (least, most) =
                all.fold((<$t>::MAX, <$t>::MIN), |(least, most), v| (least.min(v), most.max(v)));
            (least <= most).then(|| (least.into(), most.into()))
        }};
    }
    match dtype {
        DType::U8 => of!(u8),
        DType::U16 => of!(u16),
        DType::U32 => of!(u32),
        DType::U64 => of!(u64),
        DType::I8 => of!(i8),
        DType::I16 => of!(i16),
        DType::I32 => of!(i32),
        DType::I64 => of!(i64),
        DType::Bool
        | DType::F16
        | DType::BF16
        | DType::F32
        | DType::F64
        | DType::C32
        | DType::C64 => None,
    }
}
