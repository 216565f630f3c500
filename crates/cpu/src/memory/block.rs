//! Blocks from the system, and the sizes that they come in.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// The alignment of every block: a cache line and an AVX-512 register.
pub const ALIGN: usize = 64;

/// Blocks up to this many bytes are small.
const SMALL: usize = 4096;
/// From this size blocks are aligned to pages.
const PAGED: usize = 32 << 10;
const PAGE: usize = 4096;
/// From this size blocks are aligned to huge pages, and ask for them.
const HUGE_PAGE: usize = 2 << 20;

/// A size that blocks come in: 0, a multiple of 64 up to 512, and from there 8 steps an octave, so
/// that at most an eighth is wasted and sizes that are nearly equal share their blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class {
    bytes: usize,
    index: usize,
}

/// How many classes of small blocks there are.
pub const SMALL_CLASSES: usize = index_of(SMALL) + 1;
/// How many classes there are.
pub const CLASSES: usize = index_of(1 << (isize::BITS - 2)) + 1;

/// The place of a class among all, from the least number of bytes that it holds.
const fn index_of(bytes: usize) -> usize {
    let shift = step_of(bytes);
    // From 512 on the octave counts 8 steps, of which `bytes` is between the 8th and the 16th.
    let steps = (bytes + (1 << shift) - 1) >> shift;
    if bytes <= 512 { steps } else { (shift as usize - 6) * 8 + steps }
}

/// The distance of classes around this many bytes, as a power of two: a shift, since a division
/// would be a good part of the time that a small block takes.
const fn step_of(bytes: usize) -> u32 {
    if bytes <= 512 { 6 } else { (bytes - 1).ilog2() - 3 }
}

impl Class {
    /// The least class of at least `bytes` bytes; `None` where no address space holds it.
    pub fn of(bytes: usize) -> Option<Class> {
        if bytes > 1 << (isize::BITS - 2) {
            return None;
        }
        let last = (1 << step_of(bytes)) - 1;
        Some(Class { bytes: (bytes + last) & !last, index: index_of(bytes) })
    }

    pub fn bytes(self) -> usize {
        self.bytes
    }

    pub fn index(self) -> usize {
        self.index
    }

    pub fn is_small(self) -> bool {
        self.bytes <= SMALL
    }

    /// The alignment of its data, and what is asked of the system. An alignment above the
    /// system's own is made by hand from a larger block: asked for one, the system clears fresh
    /// memory that is zero already, and touches every page.
    fn layout(self) -> (usize, Layout) {
        let (align, size, system) = match self.bytes {
            n if n < PAGED => (ALIGN, n, ALIGN),
            n if n < HUGE_PAGE => (PAGE, n + PAGE, 16),
            n => (HUGE_PAGE, n + HUGE_PAGE, 16),
        };
        let Ok(layout) = Layout::from_size_align(size, system) else {
            unreachable!("a class is at most a quarter of the address space");
        };
        (align, layout)
    }
}

/// Memory from the system, all of it initialised; it goes back on drop.
pub struct Block {
    class: Class,
    base: NonNull<u8>,
    data: NonNull<u8>,
}

// SAFETY: a block is memory and belongs to no thread.
unsafe impl Send for Block {}

impl Block {
    /// A block of zeros; `None` where the system has no memory.
    pub fn new(class: Class) -> Option<Block> {
        if class.bytes == 0 {
            return Some(Block::empty());
        }
        let (align, layout) = class.layout();
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skip = base.as_ptr().align_offset(align);
        // SAFETY: `layout` adds `align` bytes where the system does not align to it.
        let data = unsafe { base.add(skip) };
        advise(data, class.bytes);
        Some(Block { class, base, data })
    }

    fn empty() -> Block {
        /// What an aligned pointer to nothing points at.
        #[repr(align(64))]
        struct Aligned;
        let data = NonNull::<Aligned>::dangling().cast();
        Block { class: Class { bytes: 0, index: 0 }, base: data, data }
    }

    /// The block, with nothing left in its place.
    pub fn take(&mut self) -> Block {
        std::mem::replace(self, Block::empty())
    }

    pub fn data(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    pub fn bytes(&self) -> usize {
        self.class.bytes
    }

    pub fn class(&self) -> Class {
        self.class
    }

    pub fn is_small(&self) -> bool {
        self.class.is_small()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.class.bytes > 0 {
            // SAFETY: `base` came from `alloc_zeroed` with this layout.
            unsafe { dealloc(self.base.as_ptr(), self.class.layout().1) };
        }
    }
}

/// Asks for huge pages: a fault for 2 MiB instead of 512.
#[cfg(target_os = "linux")]
fn advise(data: NonNull<u8>, bytes: usize) {
    if bytes >= HUGE_PAGE {
        let whole = bytes / HUGE_PAGE * HUGE_PAGE;
        // SAFETY: the range is inside a live block and starts at a page; the advice changes no
        // content, and may be refused.
        unsafe { libc::madvise(data.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: NonNull<u8>, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_grow_by_an_eighth_at_most() {
        let mut last = Class::of(0).unwrap();
        assert_eq!((last.bytes, last.index), (0, 0));
        for bytes in (1..10_000).chain((1..40).map(|i| (1usize << 20) + i * 12_345)) {
            let class = Class::of(bytes).unwrap();
            assert!(class.bytes >= bytes && class.bytes.is_multiple_of(64), "{bytes}: {class:?}");
            assert!(bytes <= 512 || class.bytes - bytes < bytes / 8 + 1, "{bytes}: {class:?}");
            assert_eq!(class.index == last.index, class.bytes == last.bytes, "{bytes}");
            if class.index != last.index && bytes < 10_000 {
                assert_eq!(class.index, last.index + 1, "{bytes}");
            }
            assert_eq!(Class::of(class.bytes), Some(class));
            last = class;
        }
        assert_eq!(Class::of(1 << 62).unwrap().index, CLASSES - 1);
        assert_eq!(Class::of((1 << 62) + 1), None);
        assert_eq!(Class::of(usize::MAX), None);
    }

    #[test]
    fn blocks_are_aligned_and_zero() {
        for bytes in [1, 64, 4096, 4097, 40_000, 5 << 20] {
            let block = Block::new(Class::of(bytes).unwrap()).unwrap();
            let align = block.class.layout().0;
            assert_eq!(block.data() as usize % align, 0, "{bytes}");
            // SAFETY: the block has this many bytes.
            let content = unsafe { std::slice::from_raw_parts(block.data(), block.bytes()) };
            assert!(content.iter().all(|&b| b == 0));
        }
        assert_eq!(Block::empty().data() as usize % ALIGN, 0);
    }
}
