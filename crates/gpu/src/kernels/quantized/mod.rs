//! Products of a few rows with a quantized matrix, which is unpacked in registers as it is read.
//!
//! A *unit* is 32 neighbours of a row of the matrix: `bits` words, of one group. By the transpose, the
//! lanes of an output go through the units of some of the matrix's rows, so that what they load of `x`
//! serves all of these. By the matrix as it is, a thread has the 32 columns of a unit and goes through
//! the matrix's rows. Sums are in `float32`, in an order that follows from the matrix's shape alone.
//!
//! A number is made a float without a conversion: its bits become the lowest of 2²³, which is taken away
//! again. So it comes times the power of two at which it lies in its word, by which `x` is divided.

mod warps;

use cupola_core::backend::Segment;
use cupola_core::prim::{QuantizedDot, ReduceKind};
use cupola_core::{Aval, DType};

use super::reduce::{Fold, Spread};
use super::view::{Axes, View, side_by_side, unflatten};
use super::{Draft, Missing, Program};
use crate::ir::{Divisor, Number, Target, Ty, Val, Var};

/// Threads in a block.
const BLOCK: u32 = 256;
/// Numbers of a unit.
const UNIT: usize = 32;
/// Neighbours of `x` that are loaded at once.
const CHUNK: usize = 8;
/// The most threads of an output.
const LANES: usize = 32;
/// The most rows of the matrix that a thread goes through at once, and of `x`.
const TILE: [usize; 2] = [4, 8];
/// The same where there are no matrix units: fewer registers, and a text that takes less time to compile.
const SMALL_TILE: [usize; 2] = [2, 4];
/// The most rows of `x` for which the matrix is read where it is: by the transpose, and as it is. For
/// more it is cheaper to unpack it once, but on matrix units.
const FEW: [usize; 2] = [8, 4];

/// Whether there are kernels for inputs of these avals, each of at most `binding` bytes.
pub fn claims(op: &QuantizedDot, inputs: &[&Aval], binding: u64, target: &Target) -> bool {
    let x = inputs[0];
    let rows = x.shape.size() / x.shape.last().copied().unwrap_or(1).max(1);
    let most = match warps::takes_dtype(x.dtype, op, target) {
        true => warps::MOST_ROWS,
        false => FEW[usize::from(!op.transpose)],
    };
    x.dtype != DType::F64
        && rows <= most
        && inputs.iter().all(|aval| aval.shape.size() > 0 && aval.bytes() as u64 <= binding)
}

/// Adds the launches of a product.
pub fn quantized(
    program: &mut Program,
    op: &QuantizedDot,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    match op.transpose {
        true if warps::takes(op, segment, target) => warps::rows(program, op, segment, target),
        true => by_transpose(program, op, segment, target),
        false => as_it_is(program, op, segment, target),
    }
}

/// A quantized matrix that a kernel has bound.
struct Matrix<'k> {
    bits: usize,
    words: View<'k>,
    /// How many words are loaded at once.
    at_once: u32,
    /// Scales and biases.
    terms: [View<'k>; 2],
    /// Strides along rows, and along columns.
    strides: [[Val<'k>; 2]; 3],
    /// How many units have the same scale.
    units: Divisor<'k>,
}

/// A unit of a row.
struct Unit<'k> {
    words: Vec<Val<'k>>,
    scale: Val<'k>,
    bias: Val<'k>,
}

impl<'k> Matrix<'k> {
    fn new(k: &'k Draft, op: &QuantizedDot, segment: &Segment) -> Self {
        let operand = |n: usize| &segment.inputs[n];
        let strides = [1, 2, 3].map(|n| {
            let strides = k.strides(&operand(n).strides);
            [strides[0], strides[1]]
        });
        // A unit starts at a multiple of its words.
        let most = (k.target.vector_bytes / 4).clamp(1, 4).min(1 << op.bits.trailing_zeros());
        Matrix {
            bits: op.bits,
            words: k.input(segment, 1),
            at_once: side_by_side(operand(1), 1, most as u32),
            terms: [k.input(segment, 2), k.input(segment, 3)],
            strides,
            units: k.fixed((op.group_size / UNIT) as u32, k.index),
        }
    }

    fn unit(&self, row: Val<'k>, unit: Val<'k>) -> Unit<'k> {
        let first = unit * self.bits;
        let words = (0..self.bits).step_by(self.at_once as usize).flat_map(|word| {
            let at = self.words.at(&[row, first + word], &self.strides[0]);
            self.words.load_at(at, false, self.at_once)
        });
        let words = words.map(Number::real).collect();
        let group = unit.div_rem(&self.units).0;
        let term = |n: usize| {
            let view = &self.terms[n];
            view.load(&[row, group], &self.strides[n + 1]).real()
        };
        Unit { words, scale: term(0), bias: term(1) }
    }
}

impl<'k> Unit<'k> {
    /// Number `i`, as a float, times 2 to the power of what comes with it.
    fn number(&self, i: usize, bits: usize) -> (Val<'k>, u32) {
        let (word, start) = (i * bits / 32, (i * bits % 32) as u32);
        let (own, end) = (self.words[word], start + bits as u32);
        let (held, at) = match (start, end) {
            (_, ..=16) => (own, start),
            (16.., ..=32) => (own >> 16u32, start - 16),
            (_, ..=32) => (own >> start, 0),
            _ => ((own >> start) | (self.words[word + 1] << (32 - start)), 0),
        };
        let mask = ((1u32 << bits) - 1) << at;
        // 2²³ as a float, whose last bit counts as 1.
        let number = ((held & mask) | 0x4b00_0000u32).bits(Ty::F32) - (1u32 << 23) as f32;
        (number, at)
    }
}

/// 2 to the power of `-of`.
fn half_to(of: u32) -> f32 {
    1.0 / (1u32 << of) as f32
}

/// The lanes of an output share the terms of its sum.
fn by_transpose(
    program: &mut Program,
    op: &QuantizedDot,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, words, out) = (&segment.inputs[0], &segment.inputs[1], &segment.outputs[0]);
    let last = x.aval.shape.rank() - 1;
    let rows: usize = x.aval.shape[..last].iter().product();
    let (units, width) = (x.aval.shape[last] / UNIT, words.aval.shape[0]);
    let lanes = units.next_power_of_two().min(LANES) as u32;
    let tile = if target.matrix { TILE } else { SMALL_TILE };
    let together = rows.next_power_of_two().min(tile[1]);
    // Fewer rows a thread where that would leave the device idle.
    let mut tall = tile[0];
    while tall > 1 && width / tall * (lanes as usize) < target.threads as usize / 4 {
        tall /= 2;
    }
    let k = Draft::new("quantized_matvec", BLOCK, segment, target)?;
    let from = k.input(segment, 0);
    let matrix = Matrix::new(&k, op, segment);
    let to = k.output(segment, 0);
    let outer = Axes::joined(&x.aval.shape[..last], &[&x.strides[..last], &out.strides[..last]]);
    let outer = k.walk(&outer);
    let [along_x, along_out] =
        [x, out].map(|operand| k.step(operand.strides[last] as i64, k.index));
    let most = (target.vector_bytes / x.aval.dtype.size()).clamp(1, CHUNK);
    let neighbours = side_by_side(x, last, most as u32);
    let [ends, last_row, last_column] = [units, rows - 1, width - 1].map(|n| k.extent(n));

    let fold = Fold::new(&k, ReduceKind::Sum, DType::F32, Spread::among(lanes), 1);
    let shared = fold.shared((tall * together) as u32);
    let owners = (BLOCK / lanes) as usize;
    let tiles = width.div_ceil(tall * owners);
    let by_tiles = k.divisor(tiles, k.index);
    let (own, lane) = (k.thread() / lanes, k.thread() % lanes);
    let (own, lane_wide) = (k.as_index(own), k.as_index(lane));
    let count = tiles * rows.div_ceil(together);
    k.blocks(count as u64, |block| {
        let (batch, tile) = block.div_rem(&by_tiles);
        let first = (tile * owners + own) * tall;
        // What is not there is the last again.
        let columns: Vec<Val<'_>> = (0..tall).map(|i| first + i).collect();
        let clamped: Vec<Val<'_>> = columns.iter().map(|&c| c.min(last_column)).collect();
        let indices: Vec<Val<'_>> = (0..together).map(|i| batch * together + i).collect();
        let places: Vec<Vec<Val<'_>>> =
            (indices.iter()).map(|&row| unflatten(row.min(last_row), &outer.sizes)).collect();
        let starts: Vec<Val<'_>> =
            places.iter().map(|place| from.at(place, &outer.strides[0])).collect();
        let sums: Vec<Vec<Var<'_>>> =
            (0..tall).map(|_| (0..together).map(|_| k.var(k.f32(0.0))).collect()).collect();
        k.range(lane_wide, ends, lanes as usize, |unit| {
            let held: Vec<Unit<'_>> = clamped.iter().map(|&row| matrix.unit(row, unit)).collect();
            let mut products = vec![vec![k.f32(0.0); together]; tall];
            let mut totals = vec![k.f32(0.0); together];
            for chunk in (0..UNIT).step_by(CHUNK) {
                let mut values = Vec::with_capacity(together);
                for (&start, total) in starts.iter().zip(&mut totals) {
                    let mut row = Vec::with_capacity(CHUNK);
                    for step in (chunk..chunk + CHUNK).step_by(neighbours as usize) {
                        let at = start + (unit * UNIT + step) * along_x;
                        row.extend(
                            from.load_at(at, false, neighbours).into_iter().map(Number::real),
                        );
                    }
                    *total = row.iter().fold(*total, |total, &value| total + value);
                    values.push(row);
                }
                for (unit, products) in held.iter().zip(&mut products) {
                    for i in 0..CHUNK {
                        let (number, at) = unit.number(chunk + i, op.bits);
                        for (product, row) in products.iter_mut().zip(&values) {
                            let value = if at == 0 { row[i] } else { row[i] * half_to(at) };
                            *product = number.fma(value, *product);
                        }
                    }
                }
            }
            for ((unit, products), sums) in held.iter().zip(&products).zip(&sums) {
                for ((&product, &total), sum) in products.iter().zip(&totals).zip(sums) {
                    let scaled = unit.scale.fma(product, sum.get());
                    sum.set(unit.bias.fma(total, scaled));
                }
            }
        });
        let values = sums.iter().flatten().map(|sum| Number::Real(sum.get())).collect();
        let values = fold.across(values, &shared, k.thread(), lane);
        k.when(lane.eq(0), || {
            for (i, &column) in columns.iter().enumerate() {
                for (j, (&row, place)) in indices.iter().zip(&places).enumerate() {
                    k.when(column.le(last_column) & row.le(last_row), || {
                        let at = to.at(place, &outer.strides[1]) + column * along_out;
                        to.store_at(at, &[values[i * together + j]]);
                    });
                }
            }
        });
    });
    program.launches.push(k.launch_blocks(count as u64)?);
    Ok(())
}

/// A thread has the columns of a unit and goes through rows of the matrix.
fn as_it_is(
    program: &mut Program,
    op: &QuantizedDot,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let last = x.aval.shape.rank() - 1;
    let rows: usize = x.aval.shape[..last].iter().product();
    let (depth, units) = (x.aval.shape[last], out.aval.shape[last] / UNIT);
    let outputs = (rows * units) as u64;
    let spread = Spread::of(false, UNIT as u32, outputs, depth as u64, units as u64, target);
    let k = Draft::new("quantized_vecmat", BLOCK, segment, target)?;
    let from = k.input(segment, 0);
    let matrix = Matrix::new(&k, op, segment);
    let fold = Fold::new(&k, ReduceKind::Sum, DType::F32, spread, 1).with_parts(program);
    let to = fold.is_whole().then(|| k.output(segment, 0));
    let outer = Axes::joined(&x.aval.shape[..last], &[&x.strides[..last], &out.strides[..last]]);
    let outer = k.walk(&outer);
    let [along_x, along_out] =
        [x, out].map(|operand| k.step(operand.strides[last] as i64, k.index));
    let by_units = k.divisor(units, k.index);
    fold.run(
        |output, ats| {
            let (row, unit) = output.div_rem(&by_units);
            let start = from.at(&unflatten(row, &outer.sizes), &outer.strides[0]);
            ats.iter()
                .map(|&at| scaled(&matrix, at, unit, from.buf.load(start + at * along_x)))
                .collect()
        },
        |output, values| {
            let (row, unit) = output.div_rem(&by_units);
            let Some(to) = to else { return };
            let first = to.at(&unflatten(row, &outer.sizes), &outer.strides[1]);
            for (i, value) in values.into_iter().enumerate() {
                to.buf.store_number(first + (unit * UNIT + i) * along_out, value);
            }
        },
    );
    let ending = fold.ending();
    ending.launches(program, k, segment, target)
}

/// The products of a number of `x` and the columns of a unit.
fn scaled<'k>(matrix: &Matrix<'k>, row: Val<'k>, unit: Val<'k>, value: Val<'k>) -> Vec<Number<'k>> {
    let held = matrix.unit(row, unit);
    let (scale, bias) = (held.scale * value, held.bias * value);
    let term = |i: usize| {
        let (number, at) = held.number(i, matrix.bits);
        Number::Real(number.fma(scale * half_to(at), bias))
    };
    (0..UNIT).map(term).collect()
}
