//! Operands without gaps, for kernels that take no strides.

use cupola_core::backend::Body;
use cupola_core::backend::Operand;
use cupola_core::{Result, is_row_major};

use crate::map::{MapKernel, RawArgs};
use crate::memory::HostMemory;
use crate::threads::parallel_for;

/// How an operand becomes row-major.
pub struct Contiguous {
    /// `None` where it is already.
    copy: Option<MapKernel>,
    /// Bytes of all elements.
    bytes: usize,
}

/// A row-major operand: in its place, or copied.
pub struct Dense {
    ptr: *const u8,
    _scratch: Option<HostMemory>,
}

impl Dense {
    /// The first element.
    pub fn ptr<T>(&self) -> *const T {
        self.ptr.cast()
    }

    /// The elements.
    ///
    /// # Safety
    /// The operand has `len` elements of `T`, and nobody writes them while the slice lives.
    pub unsafe fn slice<T>(&self, len: usize) -> &[T] {
        if len == 0 {
            return &[];
        }
        // SAFETY: the caller vouches for length and type; the pointer is into a live buffer.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), len) }
    }
}

impl Contiguous {
    /// Prepares for an operand of these strides.
    pub fn new(operand: &Operand) -> Result<Self> {
        let Operand { aval, strides } = operand;
        let bytes = aval.bytes();
        if is_row_major(&aval.shape, strides) {
            return Ok(Contiguous { copy: None, bytes });
        }
        let body = Body::copy(aval.shape.clone(), aval.dtype);
        let target = Operand::contiguous(aval);
        let copy = MapKernel::new(&body, std::slice::from_ref(operand), &[target])?;
        Ok(Contiguous { copy: Some(copy), bytes })
    }

    /// Prepares for an operand that the kernel takes with its strides.
    pub fn as_is() -> Self {
        Contiguous { copy: None, bytes: 0 }
    }

    /// Bytes of the copies that are made of these operands.
    pub fn own<'a>(operands: impl IntoIterator<Item = &'a Contiguous>) -> usize {
        let copied = operands.into_iter().filter(|operand| operand.copy.is_some());
        copied.map(|operand| operand.bytes).sum()
    }

    /// The operand without gaps.
    ///
    /// # Safety
    /// Every element that the operand reaches from `ptr` can be read.
    pub unsafe fn dense(&self, ptr: *const u8) -> Result<Dense> {
        if self.copy.is_none() {
            return Ok(Dense { ptr, _scratch: None });
        }
        let scratch = HostMemory::new(self.bytes, "a contiguous copy")?;
        // SAFETY: the scratch holds every element; the caller vouches for the operand.
        unsafe { self.copy_to(ptr, scratch.as_ptr()) };
        Ok(Dense { ptr: scratch.as_ptr(), _scratch: Some(scratch) })
    }

    /// Copies the operand to `out`, without gaps.
    ///
    /// # Safety
    /// Every element that the operand reaches from `ptr` can be read, and as many from `out` on
    /// written; they do not overlap.
    pub unsafe fn copy_to(&self, ptr: *const u8, out: *mut u8) {
        let args = RawArgs { inputs: &[ptr], outputs: &[out], scalars: &[] };
        match &self.copy {
            // SAFETY: the caller vouches for both.
            Some(copy) => unsafe { copy.run(&args) },
            // SAFETY: as above.
            None => unsafe { copy_bytes(ptr, out, self.bytes) },
        }
    }
}

/// Copies bytes, on all threads where there are many.
///
/// # Safety
/// `bytes` bytes can be read from `from` and written to `to`; they do not overlap.
pub unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    const CHUNK: usize = 1 << 20;
    let (from, to) = (Source(from), Source(to.cast_const()));
    parallel_for(bytes.div_ceil(CHUNK), |chunk| {
        let at = chunk * CHUNK;
        let len = CHUNK.min(bytes - at);
        // SAFETY: the caller vouches for the range; chunks are disjoint.
        unsafe {
            std::ptr::copy_nonoverlapping(from.get().add(at), to.get().cast_mut().add(at), len);
        }
    });
}

/// An operand's first element, for the chunks of a `parallel_for`.
pub struct Source<T>(pub *const T);

impl<T> Source<T> {
    /// The pointer.
    pub fn get(&self) -> *const T {
        self.0
    }
}

impl<T> Clone for Source<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<T> {}

// SAFETY: a pointer is only an address; who follows it says why that is sound.
unsafe impl<T: Sync> Sync for Source<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Send for Source<T> {}
