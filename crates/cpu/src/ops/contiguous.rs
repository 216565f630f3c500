//! Operands without gaps, for kernels that take no strides.

use cupola_core::backend::Operand;
use cupola_core::{Result, is_row_major};

use super::by_size;
use super::walk::Walk;
use crate::memory::HostMemory;
use crate::simd::Out;
use crate::threads::parallel_for;

/// Elements that one chunk copies.
const CHUNK: usize = 1 << 15;

/// How an operand becomes row-major.
pub struct Contiguous {
    /// `None` where it is already.
    copy: Option<Walk<1>>,
    /// Bytes of an element.
    width: usize,
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
    /// Plans for an operand of these strides.
    pub fn new(operand: &Operand) -> Self {
        let shape = &operand.aval.shape;
        let gaps = !is_row_major(shape, &operand.strides);
        Contiguous {
            copy: gaps.then(|| Walk::new(shape, [&operand.strides])),
            width: operand.aval.dtype.size(),
        }
    }

    /// The operand without gaps.
    ///
    /// # Safety
    /// Every element that the operand reaches from `ptr` can be read.
    pub unsafe fn dense(&self, ptr: *const u8) -> Result<Dense> {
        let Some(walk) = &self.copy else {
            return Ok(Dense { ptr, _scratch: None });
        };
        let scratch = HostMemory::new(walk.size() * self.width, "a contiguous copy")?;
        // SAFETY: the scratch holds every element; the caller vouches for the operand.
        unsafe { self.copy(ptr, scratch.as_ptr()) };
        Ok(Dense { ptr: scratch.as_ptr(), _scratch: Some(scratch) })
    }

    /// Copies the operand to `out`, without gaps.
    ///
    /// # Safety
    /// Every element that the operand reaches from `ptr` can be read, and as many from `out` on
    /// written; they do not overlap.
    pub unsafe fn copy_to(&self, ptr: *const u8, out: *mut u8, size: usize) {
        match &self.copy {
            // SAFETY: the caller vouches for both.
            Some(_) => unsafe { self.copy(ptr, out) },
            // SAFETY: as above.
            None => unsafe { copy_bytes(ptr, out, size * self.width) },
        }
    }

    /// # Safety
    /// As for `copy_to`.
    unsafe fn copy(&self, ptr: *const u8, out: *mut u8) {
        let Some(walk) = &self.copy else { return };
        // SAFETY: the caller vouches for both; the width is that of the elements.
        by_size!(self.width, T => unsafe { copy::<T>(walk, ptr.cast(), out.cast()) });
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

/// # Safety
/// As for `Contiguous::copy_to`.
unsafe fn copy<T: Copy + Send + Sync>(walk: &Walk<1>, from: *const T, to: *mut T) {
    let from = Source(from);
    // SAFETY: the caller vouches for `size` elements.
    let out = unsafe { Out::from_raw(to, walk.size()) };
    let [step] = walk.steps();
    parallel_for(walk.size().div_ceil(CHUNK), |chunk| {
        let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(walk.size());
        walk.runs(range, |at, [offset], len| {
            // SAFETY: runs are disjoint.
            let out = unsafe { out.slice(at..at + len) };
            // SAFETY: the run is inside the operand.
            let from = unsafe { from.get().offset(offset) };
            if step == 1 {
                // SAFETY: the run has no gaps.
                out.copy_from_slice(unsafe { std::slice::from_raw_parts(from, len) });
            } else {
                for (i, out) in out.iter_mut().enumerate() {
                    // SAFETY: inside the run.
                    *out = unsafe { *from.offset(i as isize * step) };
                }
            }
        });
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
