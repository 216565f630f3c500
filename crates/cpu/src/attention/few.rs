//! A few rows, as where one token at a time is written: products with vectors along the features.

use std::ops::Range;

use cupola_simd::{Element, InRows, MAX_VECTORS, RowProducts, Rows, Run, Tail, Tile, Tiled};

use super::forward::Part;
use super::tiles::{OnlineRow, Weight, run};
use super::{Block, KEYS, LANES, Problem};
use crate::memory::Scratch;

/// Rows up to which lanes along the features take less than lanes that are mostly empty.
const FEW: usize = 4;

impl<T: Element<Acc: Weight>> Problem<T> {
    /// Whether there are few rows, and values fill a vector.
    pub(super) fn is_few(&self) -> bool {
        self.group_rows() <= FEW && self.sizes.values >= T::Acc::tiles(self.isa).lanes
    }

    /// Goes through some of the keys.
    pub(super) fn pass_few(&self, block: &Block, keys: Range<usize>, part: &mut Part<'_, T::Acc>) {
        let (features, values) = (self.sizes.features, self.sizes.values);
        let set = T::Acc::tiles(self.isa);
        let (count, vectors) = (block.rows.len(), values.div_ceil(set.lanes));
        let wide = vectors * set.lanes;
        // The last vector lies over the one before where it does not fit.
        let start = |v: usize| (v * set.lanes).min(values - set.lanes);
        let size = FEW * (features + KEYS + wide) + KEYS * (features + values);
        let mut memory = Scratch::new(size);
        let (rows, rest) = memory.split_at_mut(FEW * features);
        let (scores, rest) = rest.split_at_mut(FEW * KEYS);
        let (sums, rest) = rest.split_at_mut(FEW * wide);
        let (own_keys, own_values) = rest.split_at_mut(KEYS * features);
        sums.fill(T::Acc::default());
        self.copy_rows(&self.q, block, self.scale, features, &mut rows[..count * features]);
        let offsets: [usize; FEW] = std::array::from_fn(|i| i * KEYS);
        for tile in block.tiles(keys) {
            let at = [block.batch, block.group];
            let (k, k_step) = self.k.tile(at, tile.clone(), own_keys);
            let (v, v_step) = self.v.tile(at, tile.clone(), own_values);
            let products = RowProducts {
                a: k,
                a_step: k_step as isize,
                rows: tile.len(),
                x: rows.as_ptr(),
                x_step: features,
                vectors: count,
                len: features,
                out: scores.as_mut_ptr(),
                out_row: 1,
                out_vector: KEYS,
            };
            // SAFETY: the tile has so many keys, and the scores room for them.
            unsafe { T::Acc::row_products(self.isa, products) };
            self.hide(block, tile.clone(), scores, [KEYS, 1]);
            for (row, scores) in scores.chunks_exact_mut(KEYS).take(count).enumerate() {
                let (own, end) = (tile.len(), tile.len().next_multiple_of(LANES));
                scores[own..end].fill(T::Acc::LEAST);
                run(
                    self.isa,
                    OnlineRow {
                        scores: &mut scores[..end],
                        largest: &mut part.largest[row],
                        total: &mut part.total[row],
                        fade: &mut part.fade[row],
                    },
                );
                let fade = part.fade[row];
                sums[row * wide..][..wide].iter_mut().for_each(|x| *x = *x * fade);
            }
            let runs = [Run { a: 0, b: 0, len: tile.len() }];
            for first in (0..vectors).step_by(set.rows.len()) {
                let some = set.rows.len().min(vectors - first);
                let mut columns = [0; MAX_VECTORS];
                (0..some).for_each(|v| columns[v] = start(first + v));
                let weigh = Tile {
                    a: scores.as_ptr(),
                    a_unit: 1,
                    a_step: 1,
                    rows: &offsets,
                    row_step: 0,
                    b: v,
                    b_unit: 1,
                    b_step: v_step,
                    soon: 0,
                    columns,
                    runs: &runs,
                    c: sums.as_mut_ptr().wrapping_add(first * set.lanes),
                    c_step: wide,
                    last: set.lanes,
                    add: true,
                    tail: Tail::NONE,
                };
                // SAFETY: every vector lies inside of the values, and the sums have one for each.
                unsafe { T::Acc::kernel(self.isa, count, some, Rows::Listed)(&weigh) };
            }
        }
        let width = block.width();
        for (row, sums) in sums.chunks_exact(wide).take(count).enumerate() {
            for (v, sums) in sums.chunks_exact(set.lanes).enumerate() {
                for (i, &sum) in sums.iter().enumerate() {
                    part.sums[(start(v) + i) * width + row] = sum;
                }
            }
        }
    }
}
