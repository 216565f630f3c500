//! Right operands that stay packed for as long as nobody writes to their memory.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cupola_core::backend::{Kept, Lookup};

use crate::simd::{Real, Scratch};

/// The most rows of products that keep their right operand: with more it is little of the work to pack it anew.
pub(super) const ROWS: usize = 512;
/// The least bytes that are kept.
const LEAST_BYTES: usize = 64 << 10;
/// The most bytes of all that is kept.
const MOST_BYTES: usize = 512 << 20;
/// Layouts that are known by a number at a time.
const LAYOUTS: usize = 1024;

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Where what is made of a right operand is kept: its memory, and the operand's place in it.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// What is kept of the memory.
    pub kept: &'a Kept,
    /// The operand's address.
    pub at: usize,
}

/// All that a packed right operand depends on, beside its elements.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Layout {
    pub dtype: TypeId,
    pub sizes: [usize; 2],
    pub strides: [isize; 2],
    /// Lanes of a vector, and steps of the sum in one of a tile.
    pub unit: [usize; 2],
    /// Vectors in each tile of columns.
    pub vectors: Vec<usize>,
}

impl Layout {
    /// The number that this layout alone has.
    fn number(self) -> u64 {
        static NUMBERS: Mutex<Option<HashMap<Layout, u64>>> = Mutex::new(None);
        // Others count from 0.
        static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = numbers.get_or_insert_default();
        if numbers.len() >= LAYOUTS && !numbers.contains_key(&self) {
            numbers.clear();
        }
        *numbers.entry(self).or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A packed right operand.
pub(super) struct PackedRight<A> {
    pub data: Scratch<A>,
    bytes: usize,
}

impl<A> Drop for PackedRight<A> {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Place<'_> {
    /// The right operand of this layout, of `count` elements, which `pack` writes where it is worth keeping: from the
    /// second time on that somebody asks.
    pub(super) fn packed<A: Real>(
        self,
        layout: Layout,
        count: usize,
        pack: impl FnOnce(&mut [A]),
    ) -> Option<Arc<PackedRight<A>>> {
        let bytes = count * size_of::<A>();
        if bytes < LEAST_BYTES {
            return None;
        }
        let key = (layout.number(), self.at);
        match self.kept.find::<PackedRight<A>>(key) {
            Lookup::Have(packed) => Some(packed),
            Lookup::First => None,
            Lookup::Again => {
                let before = BYTES.fetch_add(bytes, Ordering::Relaxed);
                let mut packed = PackedRight { data: Scratch::new(0), bytes };
                if before + bytes > MOST_BYTES {
                    return None;
                }
                packed.data = Scratch::new(count);
                pack(&mut packed.data);
                let packed = Arc::new(packed);
                self.kept.keep(key, packed.clone());
                Some(packed)
            }
        }
    }
}
