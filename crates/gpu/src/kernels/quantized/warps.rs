//! Products of rows of halves with the transpose of a quantized matrix, on matrix units.
//!
//! A warp has 16 rows of the matrix and goes through them in *steps*, of which four neighbouring threads
//! have a quarter each: so what a thread loads of the matrix are its factors of a product of matrices,
//! once they are halves. Which of `x` they meet is free, so numbers are paired as they lie in their words:
//! a mask makes two of them the last bits of two halves, from which what comes before is taken away.
//! Products of halves are exact, and so are the sums of a step but for their own rounding, so scales and
//! biases come to sums of steps. Another product, by ones, has the sums of `x`. Warps of a block share the
//! steps of their rows, and add what they have in order.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::QuantizedDot;

use crate::ir::{Buf, Divisor, Factors, Number, Target, Ty, Val, Var};
use crate::kernels::gemm::Unit;
use crate::kernels::view::{Axes, View, side_by_side, unflatten};
use crate::kernels::{Access, BufferRef, Draft, Missing, Program};

/// Warps of a block, and its threads.
const WARPS: u32 = 8;
const BLOCK: u32 = 32 * WARPS;
/// Rows of the matrix that a warp has, and rows of `x` in one product.
const TALL: u32 = 16;
const WIDE: u32 = 8;
/// Steps of a chunk: their words are on the way while the chunk before is multiplied.
const AHEAD: u32 = 4;
/// The most rows of `x`.
pub const MOST_ROWS: usize = 32;

/// Whether this kernel takes rows of such a dtype.
pub fn takes_dtype(dtype: DType, op: &QuantizedDot, target: &Target) -> bool {
    op.transpose && dtype != DType::F32 && Unit::rounds(dtype, DType::F32, target)
}

/// Whether it takes a segment.
pub fn takes(op: &QuantizedDot, segment: &Segment, target: &Target) -> bool {
    let (x, words) = (&segment.inputs[0], &segment.inputs[1]);
    let last = x.aval.shape.rank() - 1;
    // One row is no matrix: lanes that share it are as fast.
    x.aval.shape[..last].iter().product::<usize>() > 1
        && takes_dtype(x.aval.dtype, op, target)
        && target.vector_bytes >= 16
        && side_by_side(x, last, 8) == 8
        && words.strides[1] == 1
}

/// How the numbers of a step lie in the words of a thread.
struct Layout {
    bits: usize,
    /// Numbers of a thread.
    own: usize,
    /// Words that it loads, and those of the whole step.
    count: usize,
    all: usize,
    /// Whether its numbers begin within a word, at another bit in each thread.
    is_shifted: bool,
}

impl Layout {
    fn of(op: &QuantizedDot) -> Layout {
        // A step is within a group.
        let own = if op.group_size.is_multiple_of(64) { 16 } else { 8 };
        let length = own * op.bits;
        let ends = (0..4).map(|t| (t * length % 32 + length).div_ceil(32));
        Layout {
            bits: op.bits,
            own,
            count: ends.max().unwrap_or(1),
            all: length / 8,
            is_shifted: !length.is_multiple_of(32),
        }
    }

    /// Numbers of a step.
    fn step(&self) -> usize {
        4 * self.own
    }

    /// Which numbers stand beside each other.
    fn pairs(&self) -> Vec<[usize; 2]> {
        let apart = if 16 % self.bits == 0 { 16 / self.bits } else { 1 };
        let apart = if self.own.is_multiple_of(2 * apart) { apart } else { 1 };
        let first = (0..self.own).filter(|i| i / apart % 2 == 0);
        first.map(|i| [i, i + apart]).collect()
    }
}

/// A kernel that is being written.
struct Warps<'k> {
    k: &'k Draft,
    layout: Layout,
    factors: Factors,
    words: View<'k>,
    at_once: u32,
    /// Scales and biases.
    terms: [View<'k>; 2],
    /// Strides along rows, and along columns: of words, scales and biases.
    strides: [[Val<'k>; 2]; 3],
    /// Steps of a group, and how many groups' terms are loaded at once.
    steps: Divisor<'k>,
    steps_of_group: u32,
    terms_at_once: u32,
    /// The last step, where a chunk may reach past it.
    last_step: Option<Val<'k>>,
    /// The thread's place among those of a product.
    t: Val<'k>,
}

/// What a thread has of its two rows in some steps that follow each other.
struct Chunk<'k> {
    /// By step and row.
    words: Vec<[Vec<Val<'k>>; 2]>,
    /// Scales and biases, by row and group.
    terms: [[Vec<Val<'k>>; 2]; 2],
}

impl<'k> Chunk<'k> {
    fn values(&self) -> impl Iterator<Item = &Val<'k>> {
        let words = self.words.iter().flatten().flatten();
        words.chain(self.terms.iter().flatten().flatten())
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut Val<'k>> {
        let words = self.words.iter_mut().flatten().flatten();
        words.chain(self.terms.iter_mut().flatten().flatten())
    }
}

impl<'k> Warps<'k> {
    fn new(k: &'k Draft, op: &QuantizedDot, segment: &Segment, t: Val<'k>) -> Self {
        let layout = Layout::of(op);
        let strides = [1, 2, 3].map(|n| {
            let strides = k.strides(&segment.inputs[n].strides);
            [strides[0], strides[1]]
        });
        let steps = segment.inputs[0].aval.shape.last().map_or(1, |&terms| terms / layout.step());
        let is_cut = !steps.is_multiple_of(AHEAD as usize);
        let steps_of_group = (op.group_size / layout.step()) as u32;
        let most_terms = if is_cut { 1 } else { (AHEAD / steps_of_group).max(1) };
        let terms_at_once =
            [2, 3].map(|n| side_by_side(&segment.inputs[n], 1, most_terms)).into_iter().min();
        let terms_at_once = terms_at_once.unwrap_or(1);
        let most = if layout.is_shifted { 1 } else { 1 << layout.count.trailing_zeros() };
        let factors = match segment.inputs[0].aval.dtype {
            DType::F16 => Factors::F16,
            _ => Factors::Bf16,
        };
        Warps {
            k,
            factors,
            words: k.input(segment, 1),
            at_once: side_by_side(&segment.inputs[1], 1, most.min(4)),
            terms: [k.input(segment, 2), k.input(segment, 3)],
            strides,
            steps: k.fixed(steps_of_group, k.index),
            steps_of_group,
            terms_at_once,
            last_step: is_cut.then(|| k.extent(steps - 1)),
            t,
            layout,
        }
    }

    /// Loads the thread's part of a row in a step.
    fn part(&self, row: Val<'k>, step: Val<'k>) -> Vec<Val<'k>> {
        let (k, layout) = (self.k, &self.layout);
        let (count, all) = (layout.count as u32, layout.all as u32);
        let length = (layout.own * layout.bits) as u32;
        let first = self.t * length / 32;
        let start = step * all;
        // The last thread may have fewer words to look at.
        let reaches = (0..4).all(|t| t * length / 32 + count <= all);
        (0..count)
            .step_by(self.at_once as usize)
            .flat_map(|i| {
                let word = first + i;
                let word = if reaches { word } else { word.min(all - 1) };
                let at = self.words.at(&[row, start + k.as_index(word)], &self.strides[0]);
                self.words.load_at(at, false, self.at_once)
            })
            .map(Number::real)
            .collect()
    }

    /// Loads the thread's part of the steps from `step` on, at a multiple of as many as there are.
    fn chunk(&self, rows: [Val<'k>; 2], step: Val<'k>) -> Chunk<'k> {
        let last = self.last_step;
        let steps = (0..AHEAD).map(|i| step + i).map(|at| last.map_or(at, |last| at.min(last)));
        let steps: Vec<Val<'k>> = steps.collect();
        let words = steps.iter().map(|&at| rows.map(|row| self.part(row, at))).collect();
        let group = |at: Val<'k>| at.div_rem(&self.steps).0;
        let groups = (AHEAD / self.steps_of_group).max(1);
        let term = |n: usize, row: Val<'k>| -> Vec<Val<'k>> {
            let view = &self.terms[n];
            let at = |group| view.at(&[row, group], &self.strides[n + 1]);
            let some = (0..groups).step_by(self.terms_at_once as usize).flat_map(|i| {
                let step = steps[(i * AHEAD / groups) as usize];
                view.load_at(at(group(step)), false, self.terms_at_once)
            });
            some.map(Number::real).collect()
        };
        Chunk { words, terms: rows.map(|row| [0, 1].map(|n| term(n, row))) }
    }

    /// The numbers of loaded words, from the first bit on.
    fn aligned(&self, loaded: &[Val<'k>]) -> Vec<Val<'k>> {
        if !self.layout.is_shifted {
            return loaded.to_vec();
        }
        let shift = self.t * (self.layout.own * self.layout.bits) as u32 % 32;
        let joined = |(i, &word): (usize, &Val<'k>)| match loaded.get(i + 1) {
            // In two steps, since no shift by 32 is defined.
            Some(&next) => (word >> shift) | ((next << 1) << (self.k.u32(31) - shift)),
            None => word >> shift,
        };
        loaded.iter().enumerate().map(joined).collect()
    }

    /// Two numbers of a part as halves.
    fn pair(&self, words: &[Val<'k>], [i, j]: [usize; 2]) -> Val<'k> {
        let (k, bits) = (self.k, self.layout.bits);
        let (a, b) = (i * bits, j * bits);
        let held = if a / 32 == b / 32 && b == a + 16 {
            words[a / 32] >> (a % 32) as u32
        } else {
            let mask = (1u32 << bits) - 1;
            (bits_at(words, a, bits, 0) & mask) | (bits_at(words, b, bits, 16) & (mask << 16))
        };
        // A half whose last bit counts as 1, and takes so many bits behind its first.
        let (first, one, places) = match self.factors {
            Factors::F16 => (0x6400u32, 0x3c00u32, 10),
            Factors::Bf16 | Factors::Tf32 => (0x4300, 0x3f80, 7),
        };
        let both = |half: u32| half | half << 16;
        let mask = (1u32 << bits.min(places)) - 1;
        let number = (held & both(mask)) | both(first);
        let less = match bits > places {
            false => k.u32(both(first | 0x8000)),
            // The last bit that there is no place for counts as much as what is taken away.
            true => (!held & both(1 << places)) * ((first | 0x8000) >> places),
        };
        number.fma_pairs(k.u32(both(one)), less, self.factors)
    }
}

/// The word whose bits from `to` on are those from `bit` on.
fn bits_at<'k>(words: &[Val<'k>], bit: usize, bits: usize, to: usize) -> Val<'k> {
    let (word, start) = (words[bit / 32], bit % 32);
    let own = match start >= to {
        true => word >> (start - to) as u32,
        false => word << (to - start) as u32,
    };
    match start + bits <= 32 {
        true => own,
        false => own | (words[bit / 32 + 1] << (32 - start + to) as u32),
    }
}

/// Halves `i` and `j` of words as one.
fn halves<'k>(words: &[Val<'k>], [i, j]: [usize; 2]) -> Val<'k> {
    let (a, b) = (words[i / 2], words[j / 2]);
    if i.is_multiple_of(2) && j == i + 1 {
        return a;
    }
    let low = if i.is_multiple_of(2) { a & 0xffffu32 } else { a >> 16u32 };
    let high = if j.is_multiple_of(2) { b << 16u32 } else { b & 0xffff_0000u32 };
    low | high
}

/// Adds the launch of a product.
pub fn rows(
    program: &mut Program,
    op: &QuantizedDot,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, words, out) = (&segment.inputs[0], &segment.inputs[1], &segment.outputs[0]);
    let last = x.aval.shape.rank() - 1;
    let rows: usize = x.aval.shape[..last].iter().product();
    let (columns, width) = (x.aval.shape[last], words.aval.shape[0]);
    let products = rows.div_ceil(WIDE as usize) as u32;
    let k = Draft::new("quantized_rows", BLOCK, segment, target)?;
    // Two of `x` in a word.
    let from = k.bind(BufferRef::Input(0), DType::U32, Access::Read);
    let start = k.offset(BufferRef::Input(0));
    k.assume(BufferRef::Input(0), 8);
    let (warp, lane) = (k.thread() / 32, k.thread() % 32);
    let (g, t) = (lane / 4, lane % 4);
    let warps = Warps::new(&k, op, segment, t);
    let to = k.output(segment, 0);
    let step = warps.layout.step();
    let tiles = width.div_ceil(TALL as usize);
    // Fewer warps for the same rows where there are many.
    let mut split = WARPS;
    while split > 1 && tiles as u64 * u64::from(split / 2) * 32 >= u64::from(target.threads) {
        split /= 2;
    }
    let owners = WARPS / split;
    let outer = Axes::joined(&x.aval.shape[..last], &[&x.strides[..last], &out.strides[..last]]);
    let outer = k.walk(&outer);
    let along_out = k.step(out.strides[last] as i64, k.index);
    let chunks = (columns / step).div_ceil(AHEAD as usize);
    let [steps, ends, last_chunk] = [columns / step, chunks, chunks - 1].map(|n| k.extent(n));
    let [last_row, last_column] = [rows - 1, width - 1].map(|n| k.extent(n));
    let shared = (split > 1).then(|| k.shared(Ty::F32, BLOCK * 4 * products));
    let (own, part) = (k.as_index(warp / split), warp % split);
    // The thread's rows of `x`: what is not there is the last again.
    let starts: Vec<Val<'_>> = (0..products)
        .map(|n| {
            let row = (k.as_index(g) + n * WIDE).min(last_row);
            let row = unflatten(row, &outer.sizes);
            crate::kernels::view::place(start, &row, &outer.strides[0])
        })
        .collect();
    let count = tiles.div_ceil(owners as usize);
    k.blocks(count as u64, |block| {
        let first = (block * owners + own) * TALL + k.as_index(g);
        let matrix_rows = [0, WIDE].map(|more| (first + more).min(last_column));
        let totals: Vec<[Var<'_>; 4]> =
            (0..products).map(|_| [0; 4].map(|_| k.var(k.f32(0.0)))).collect();
        // The words of the next chunk are on their way while this one is multiplied.
        let load = |chunk| warps.chunk(matrix_rows, Val::min(chunk, last_chunk) * AHEAD);
        let mut held = load(k.as_index(part));
        let kept: Vec<Var<'_>> = held.values().map(|&value| k.var(value)).collect();
        k.range(k.as_index(part), ends, split, |chunk| {
            let next = load(chunk + split);
            held.values_mut().zip(&kept).for_each(|(value, var)| *value = var.get());
            for i in 0..AHEAD {
                let number = chunk * AHEAD + i;
                let is_there = (i > 0 && warps.last_step.is_some()).then(|| number.lt(steps));
                k.when_any(is_there, || {
                    warps.multiply(&held, i, number, (from, &starts), &totals);
                });
            }
            next.values().zip(&kept).for_each(|(&value, var)| var.set(value));
        });
        let is_first = shared.map(|shared| {
            let at = k.thread() * (4 * products);
            for (i, total) in totals.iter().flatten().enumerate() {
                shared.store(at + i as u32, total.get());
            }
            k.barrier();
            let is_first = part.eq(0);
            k.when(is_first, || {
                for other in 1..split {
                    let at = (k.thread() + other * 32) * (4 * products);
                    for (i, total) in totals.iter().flatten().enumerate() {
                        total.set(total.get() + shared.load(at + i as u32));
                    }
                }
            });
            k.barrier();
            is_first
        });
        k.when_any(is_first, || {
            for (n, totals) in (0..).zip(&totals) {
                for (i, total) in totals.iter().enumerate() {
                    let row = k.as_index(t * 2 + (i % 2) as u32) + n * WIDE;
                    let column = first + i as u32 / 2 * WIDE;
                    k.when(row.le(last_row) & column.le(last_column), || {
                        let place = unflatten(row, &outer.sizes);
                        let at = to.at(&place, &outer.strides[1]) + column * along_out;
                        to.store_at(at, &[Number::Real(total.get())]);
                    });
                }
            }
        });
    });
    program.launches.push(k.launch_blocks(count as u64)?);
    Ok(())
}

impl<'k> Warps<'k> {
    /// Adds what a step gives for all rows of `x`, which begin at `starts`.
    fn multiply(
        &self,
        chunk: &Chunk<'k>,
        i: u32,
        number: Val<'k>,
        (from, starts): (Buf, &[Val<'k>]),
        totals: &[[Var<'k>; 4]],
    ) {
        let (k, own) = (self.k, self.layout.own as u32);
        let pairs = self.layout.pairs();
        let factors = chunk.words[i as usize].each_ref().map(|words| {
            let words = self.aligned(words);
            let one = |&pair: &[usize; 2]| self.pair(&words, pair);
            pairs.iter().map(one).collect::<Vec<Val<'k>>>()
        });
        let one = match self.factors {
            Factors::F16 => 0x3c00_3c00,
            Factors::Bf16 | Factors::Tf32 => 0x3f80_3f80,
        };
        let ones = [k.u32(one); 4];
        let begins = number * self.layout.step() as u32 + k.as_index(self.t) * own;
        for (&start, totals) in starts.iter().zip(totals) {
            let at = (start + begins) / 2;
            let x: Vec<Val<'k>> =
                (0..own / 2).step_by(4).flat_map(|i| from.load_vector(at + i, 4)).collect();
            let [sums, sums_of_x] = [(); 2].map(|()| [0; 4].map(|_| k.var(k.f32(0.0))));
            for (depth, both) in pairs.chunks_exact(2).enumerate() {
                let [i, j] = [depth * 2, depth * 2 + 1];
                let rows = [factors[0][i], factors[1][i], factors[0][j], factors[1][j]];
                let columns = [both[0], both[1]].map(|pair| halves(&x, pair));
                k.matrix(self.factors, sums, &rows, &columns);
                k.matrix(self.factors, sums_of_x, &ones, &columns);
            }
            let group = (i / self.steps_of_group) as usize;
            for (i, total) in totals.iter().enumerate() {
                let [scale, bias] = chunk.terms[i / 2].each_ref().map(|terms| terms[group]);
                let scaled = scale.fma(sums[i].get(), total.get());
                total.set(bias.fma(sums_of_x[i].get(), scaled));
            }
        }
    }
}
