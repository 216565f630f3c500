//! Right operands that stay packed for as long as nobody writes to their memory.

use std::any::TypeId;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupola_core::backend::{Kept, Lookup};
use cupola_simd::Real;

use crate::memory::Scratch;

/// The most rows of products that keep their right operand: with more it is little of the work to pack it anew.
pub(super) const MOST_ROWS: usize = 512;
/// The least bytes that are kept.
const LEAST_BYTES: usize = 64 << 10;
/// The most bytes of all that is kept.
const MOST_BYTES: usize = 512 << 20;

/// The bytes of all that is kept.
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
    /// By what it is looked for; what is found has to be compared.
    fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        // Convolutions count from 0.
        hasher.finish() | 1 << 63
    }
}

/// A packed right operand.
pub(super) struct PackedRight<A> {
    pub data: Scratch<A>,
    layout: Layout,
    _share: Share,
}

/// A share of the bytes that may be kept.
struct Share(usize);

impl Share {
    fn of(bytes: usize) -> Option<Share> {
        let share = Share(bytes);
        (BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes <= MOST_BYTES).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.0, Ordering::Relaxed);
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
            Lookup::Have(packed) => (packed.layout == layout).then_some(packed),
            Lookup::First => None,
            Lookup::Again => {
                let share = Share::of(bytes)?;
                let mut data = Scratch::lasting(count)?;
                pack(&mut data);
                let packed = Arc::new(PackedRight { data, layout, _share: share });
                self.kept.keep(key, packed.clone());
                Some(packed)
            }
        }
    }
}
