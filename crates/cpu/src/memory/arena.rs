//! Arenas: memory for what lives long, side by side in huge pages.
//!
//! A core knows the places of some thousand pages. Weights of a hundred megabytes are read once in an inference, and of
//! small pages each is looked up anew.

use std::sync::{Arc, Mutex, Weak};

use cupola_core::fork;

use super::block::{ALIGN, Block, Class};
use super::trim;

/// Bytes of an arena, which stays until all of its parts are gone. What takes more than half of one has its own.
const BYTES: usize = 8 << 20;

/// The arena that is being filled, which lives as long as a part of it does.
static FILLED: Mutex<Filled> = Mutex::new(Filled { arena: Weak::new(), used: 0 });

struct Filled {
    arena: Weak<Arena>,
    used: usize,
}

struct Arena(Block);

// SAFETY: an arena is memory. Its parts are disjoint, and nobody accesses it but through these.
unsafe impl Sync for Arena {}

/// A part of an arena, from so many bytes on.
pub(super) struct Part {
    arena: Arc<Arena>,
    at: usize,
}

impl Part {
    /// So many bytes, at least one, of undefined but initialised content; `None` where there is no memory for them.
    pub fn new(bytes: usize) -> Option<Part> {
        let bytes = bytes.checked_next_multiple_of(ALIGN)?;
        if bytes > BYTES / 2 {
            return Some(Part { arena: Arc::new(Arena(block(bytes)?)), at: 0 });
        }
        let mut filled = fork::lock(&FILLED);
        let has_room = filled.used + bytes <= BYTES;
        let found = if has_room { filled.arena.upgrade() } else { None };
        let (arena, at) = match found {
            Some(arena) => (arena, filled.used),
            None => (Arc::new(Arena(block(BYTES)?)), 0),
        };
        *filled = Filled { arena: Arc::downgrade(&arena), used: at + bytes };
        Some(Part { arena, at })
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.arena.0.data().wrapping_add(self.at)
    }
}

/// A block, for which kept memory is given back where there is no other.
fn block(bytes: usize) -> Option<Block> {
    let class = Class::of(bytes)?;
    Block::new(class).or_else(|| {
        trim();
        Block::new(class)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap() {
        let sizes = [100, 1 << 20, 40 << 20, 64, 3 << 20, 3 << 20, 3 << 20];
        let parts: Vec<Part> = sizes.iter().map(|&n| Part::new(n).unwrap()).collect();
        for (i, (part, &n)) in parts.iter().zip(&sizes).enumerate() {
            assert_eq!(part.as_ptr() as usize % ALIGN, 0);
            // SAFETY: the part has this many bytes.
            unsafe { part.as_ptr().write_bytes(i as u8 + 1, n) };
        }
        for (i, (part, &n)) in parts.iter().zip(&sizes).enumerate() {
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(part.as_ptr(), n) };
            assert!(bytes.iter().all(|&b| b == i as u8 + 1), "part {i} of {n} bytes");
        }
        assert!(Part::new(usize::MAX).is_none() && Part::new(1 << 62).is_none());
    }

    #[test]
    fn an_arena_goes_with_its_last_part() {
        // Other tests have parts in other arenas: this one is nobody else's.
        let part = Part::new(BYTES).unwrap();
        let arena = Arc::downgrade(&part.arena);
        assert!(arena.upgrade().is_some());
        drop(part);
        assert!(arena.upgrade().is_none());
    }
}
