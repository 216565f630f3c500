//! The cotangents of queries, keys and values: weights are computed again from what the forward way
//! knew of each row.

use cupola_core::Result;
use cupola_simd::{Element, Out};

use super::rows::Rows;
use super::tiles::{Product, Slopes, Weight, run};
use super::{Block, KEYS, Problem, ROWS, TASKS};
use crate::memory::{HostMemory, Scratch};
use crate::threads::parallel_for;

/// A gradient: what it reads and what it gives.
pub(super) struct Backward<'p, T: Element> {
    pub problem: Problem<T>,
    /// The largest score of each row.
    pub largest: &'p [T::Acc],
    /// The sum of exponentials of each row.
    pub total: &'p [T::Acc],
    pub out: Rows<T>,
    pub ct: Rows<T>,
    pub dq: Out<'p, T>,
    pub dk: Out<'p, T>,
    pub dv: Out<'p, T>,
}

impl<T: Element<Acc: Weight>> Backward<'_, T> {
    /// Computes the outputs. The blocks of a group are dealt out to parts, each of which has sums of
    /// its own for the keys and the values.
    pub fn run(&self) -> Result<()> {
        let p = &self.problem;
        let (features, values) = (p.sizes.features, p.sizes.values);
        let (wide_k, wide_v) = (p.padded(features), p.padded(values));
        let (groups, keys) = (p.groups(), p.sizes.keys);
        let splits = TASKS.div_ceil(groups).min(p.blocks());
        let size = keys * (wide_k + wide_v);
        let count = groups * splits * size;
        let memory = HostMemory::new(count * size_of::<T::Acc>(), "the sums of an attention")?;
        // SAFETY: the memory is new, and holds so many.
        let sums = unsafe { Out::from_raw(memory.as_ptr().cast::<T::Acc>(), count) };
        parallel_for(groups * splits, |part| {
            // SAFETY: parts are disjoint.
            let sums = unsafe { sums.slice(part * size..(part + 1) * size) };
            sums.fill(T::Acc::default());
            let (dk, dv) = sums.split_at_mut(keys * wide_k);
            for index in (part % splits..p.blocks()).step_by(splits) {
                self.pass(&p.block(part / splits, index), dk, dv);
            }
        });
        let chunks = keys.div_ceil(KEYS);
        parallel_for(groups * chunks, |chunk| {
            let (group, first) = (chunk / chunks, chunk % chunks * KEYS);
            let count = KEYS.min(keys - first);
            let mut row = Scratch::new(wide_k.max(wide_v));
            let outputs = [(self.dk, features, wide_k, 0), (self.dv, values, wide_v, wide_k)];
            for (out, columns, wide, before) in outputs {
                for key in first..first + count {
                    row.fill(T::Acc::default());
                    for split in 0..splits {
                        let at = (group * splits + split) * size + before * keys + key * wide;
                        // SAFETY: nobody writes the sums any more.
                        let part = unsafe { &*sums.slice(at..at + columns) };
                        row.iter_mut().zip(part).for_each(|(sum, &part)| *sum += part);
                    }
                    let (batch, own) = (group / p.sizes.groups, group % p.sizes.groups);
                    let at = ((batch * keys + key) * p.sizes.groups + own) * columns;
                    // SAFETY: chunks have disjoint keys.
                    T::narrow(&row[..columns], unsafe { out.slice(at..at + columns) });
                }
            }
        });
        Ok(())
    }

    /// Takes a block through its keys.
    fn pass(&self, block: &Block, dk: &mut [T::Acc], dv: &mut [T::Acc]) {
        let p = &self.problem;
        let (features, values) = (p.sizes.features, p.sizes.values);
        let (wide_k, wide_v) = (p.padded(features), p.padded(values));
        let (width, count) = (block.width(), block.rows.len());
        let of_lanes = [wide_k, features, wide_v, values, KEYS, KEYS, features, 3, wide_v];
        let size = width * of_lanes.iter().sum::<usize>() + KEYS * (features + values);
        let mut memory = Scratch::new(size);
        let mut rest = &mut memory[..];
        let [q, q_lanes, ct, ct_lanes, weights, slopes, dq, of_rows, out] = of_lanes.map(|n| {
            let (own, after) = std::mem::take(&mut rest).split_at_mut(n * width);
            rest = after;
            own
        });
        let (own_keys, own_values) = rest.split_at_mut(KEYS * features);
        p.copy_rows(&p.q, block, p.scale, wide_k, q);
        p.turn(q, wide_k, q_lanes, [width, features]);
        p.copy_rows(&self.ct, block, T::Acc::ONE, wide_v, ct);
        p.turn(ct, wide_v, ct_lanes, [width, values]);
        p.copy_rows(&self.out, block, T::Acc::ONE, wide_v, out);
        dq.fill(T::Acc::default());
        of_rows.fill(T::Acc::default());
        let first = p.first_row(block);
        let (largest, others) = of_rows.split_at_mut(width);
        let (share, delta) = others.split_at_mut(width);
        for lane in 0..count {
            largest[lane] = self.largest[first + lane];
            share[lane] = T::Acc::ONE / self.total[first + lane];
            let own = lane * wide_v..lane * wide_v + values;
            let products = out[own.clone()].iter().zip(&ct[own]).map(|(&out, &ct)| out * ct);
            delta[lane] = products.fold(T::Acc::default(), |sum, product| sum + product);
        }
        for tile in block.tiles(0..p.sizes.keys) {
            let at = [block.batch, block.group];
            let (k, k_step) = p.k.tile(at, tile.clone(), own_keys);
            let (v, v_step) = p.v.tile(at, tile.clone(), own_values);
            let seen = tile.len();
            let of_keys = |a, a_row, b: &[T::Acc], steps, c: &mut [T::Acc]| Product {
                a,
                a_row,
                a_step: 1,
                rows: seen,
                b: b.as_ptr(),
                b_step: width,
                width,
                steps,
                c: c.as_mut_ptr(),
                c_step: width,
                add: false,
            };
            // SAFETY: the tile has so many keys and values, and the scratch memory a row of lanes for
            // each of them and of their features; so for the products below.
            unsafe {
                of_keys(k, k_step, q_lanes, features, weights).run(p.isa);
                of_keys(v, v_step, ct_lanes, values, slopes).run(p.isa);
            }
            p.hide(block, tile.clone(), weights, [1, width]);
            let slopes_of = Slopes {
                weights: &mut weights[..seen * width],
                slopes: &mut slopes[..seen * width],
                largest,
                share,
                delta,
                hides: p.hides(),
            };
            run(p.isa, slopes_of);
            let to_keys = |a: &[T::Acc], b: &[T::Acc], wide, c: &mut [T::Acc]| Product {
                a: a.as_ptr(),
                a_row: width,
                a_step: 1,
                rows: seen,
                b: b.as_ptr(),
                b_step: wide,
                width: wide,
                steps: count,
                c: c[tile.start * wide..tile.end * wide].as_mut_ptr(),
                c_step: wide,
                add: true,
            };
            let to_rows = Product {
                a: k,
                a_row: 1,
                a_step: k_step,
                rows: features,
                b: slopes.as_ptr(),
                b_step: width,
                width,
                steps: seen,
                c: dq.as_mut_ptr(),
                c_step: width,
                add: true,
            };
            // SAFETY: as above.
            unsafe {
                to_keys(weights, ct, wide_v, dv).run(p.isa);
                to_keys(slopes, q, wide_k, dk).run(p.isa);
                to_rows.run(p.isa);
            }
        }
        // The queries that dk was summed from were multiplied already, the keys of dq were not.
        dq.iter_mut().for_each(|x| *x = *x * p.scale);
        let rows = &mut q[..count * features];
        p.turn(dq, width, rows, [features, count]);
        for (row, own) in block.rows.clone().zip(rows.chunks_exact(features.max(1))) {
            let at = p.token(block, row) * features;
            // SAFETY: blocks have disjoint rows.
            T::narrow(own, unsafe { self.dq.slice(at..at + features) });
        }
        debug_assert!(count <= ROWS);
    }
}
