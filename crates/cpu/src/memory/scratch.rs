//! Working memory that a thread keeps: fresh pages cost more than the arithmetic done in them.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use cupola_simd::Real;

use super::arena::Part;
use super::{give_up, room};

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    static KEPT: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Buffers that a thread keeps for later.
const KEEP: usize = 6;
/// From this size what lives long is put in an arena.
const IN_ARENA: usize = 256 << 10;

/// A buffer of floats on cache lines, with arbitrary contents.
pub struct Scratch<T> {
    lines: Lines,
    len: usize,
    kind: PhantomData<T>,
}

enum Lines {
    Own(Vec<Line>),
    InArena(Part),
}

impl Lines {
    fn as_ptr(&self) -> *const u8 {
        match self {
            Lines::Own(lines) => lines.as_ptr().cast(),
            Lines::InArena(part) => part.as_ptr(),
        }
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        match self {
            Lines::Own(lines) => lines.as_mut_ptr().cast(),
            Lines::InArena(part) => part.as_ptr(),
        }
    }
}

impl<T: Real> Scratch<T> {
    /// A buffer of `len` elements and a few more that may be read past its end, of no more memory than that, for what
    /// lives long. `None` where there is no memory for it.
    pub fn lasting(len: usize) -> Option<Self> {
        let count = Self::lines(len);
        let bytes = count.saturating_mul(size_of::<Line>());
        let lines = match bytes < IN_ARENA {
            true => Lines::Own(Self::allocated(count)?),
            false => Lines::InArena(Part::new(bytes)?),
        };
        Some(Scratch { lines, len, kind: PhantomData })
    }

    /// The same content, to live long: copied to other memory, if there is any.
    pub fn into_lasting(self) -> Self {
        let Some(mut copy) = Self::lasting(self.len) else { return self };
        copy.copy_from_slice(&self);
        copy
    }

    fn allocated(count: usize) -> Option<Vec<Line>> {
        let mut lines = room(count)?;
        lines.resize(count, Line([0; 64]));
        Some(lines)
    }

    fn lines(len: usize) -> usize {
        // Of more elements than there are numbers for it is more than there is memory for.
        len.saturating_mul(size_of::<T>()).div_ceil(64) + 4
    }

    /// A buffer of `len` elements and a few more that may be read past its end. Where there is no memory for it the
    /// kernel gives up.
    pub fn new(len: usize) -> Self {
        match Self::try_new(len) {
            Some(scratch) => scratch,
            None => give_up(Self::lines(len).saturating_mul(size_of::<Line>())),
        }
    }

    /// The same of any number of elements; `None` where there is no memory for it.
    pub fn try_new(len: usize) -> Option<Self> {
        let lines = Self::lines(len);
        let mut kept = KEPT.with_borrow_mut(|kept| {
            let sizes = || kept.iter().map(Vec::len).enumerate();
            let best = sizes().filter(|v| v.1 >= lines).min_by_key(|v| v.1);
            let found = best.or(sizes().max_by_key(|v| v.1));
            found.map(|(i, _)| kept.swap_remove(i))
        });
        let buffer = kept.get_or_insert_default();
        if buffer.len() < lines {
            *buffer = Vec::new();
            *buffer = Self::allocated(lines)?;
        }
        Some(Scratch { lines: Lines::Own(kept.unwrap_or_default()), len, kind: PhantomData })
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        let Lines::Own(lines) = &mut self.lines else { return };
        let lines = std::mem::take(lines);
        // The thread may be ending, its store gone.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < KEEP {
                kept.push(lines);
            }
        });
    }
}

impl<T: Real> Deref for Scratch<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold `len` elements, more aligned than needed; any bits are a float.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Real> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn more_than_there_are_addresses_is_no_memory() {
        for len in [1 << 62, (1 << 62) + 3, usize::MAX] {
            assert!(
                Scratch::<f32>::try_new(len).is_none() && Scratch::<f64>::lasting(len).is_none()
            );
        }
        assert!(Scratch::<f32>::try_new(3).is_some_and(|three| three.len() == 3));
    }
}
