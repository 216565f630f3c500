//! Products with quantized matrices.

use cupola_core::precision::MatmulPrecision;
use cupola_core::prim::QuantizedDot;
use cupola_core::{Aval, DType};

use crate::host::Host;
use crate::number::Number;
use crate::sample::{Accuracy, Sample, fixed, from, spread, whole};

pub fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for (i, bits) in [1, 2, 3, 4, 5, 6, 8].into_iter().enumerate() {
        for transpose in [true, false] {
            for (j, rows) in [1, 3, 17].into_iter().enumerate() {
                let group_size = [32, 64, 128][(i + j + usize::from(transpose)) % 3];
                let sample = exact(&[rows], 13, 2, dot(group_size, bits, transpose));
                let is_everywhere = j == (i + usize::from(transpose)) % 3;
                all.push(if is_everywhere { sample } else { sample.where_kernels_are_cheap() });
            }
        }
    }
    all.push(exact(&[2, 3], 6, 5, dot(32, 4, true)));
    all.push(exact(&[70], 67, 3, dot(64, 4, true)));
    all.push(exact(&[70], 67, 3, dot(64, 3, false)));
    all.push(exact(&[3], 0, 1, dot(32, 4, true)));
    all.push(exact(&[3], 0, 1, dot(32, 4, false)));
    for transpose in [true, false] {
        let dot = dot(32, 2, transpose);
        let terms = if transpose { 32 } else { 3 };
        let inputs = vec![
            from([2, terms], |i| spread(i) / 4.0),
            words(3, 2),
            from([3, 1], |i| 0.5 + spread(i + 3) / 8.0),
            from([3, 1], |i| spread(i + 7) / 4.0),
        ];
        let sample = Sample::new(format!("slopes, {}", name(&dot)), move |_| dot.into(), inputs);
        all.push(sample.smooth().only(DType::is_float).where_kernels_are_cheap());
    }
    all
}

fn dot(group_size: usize, bits: usize, transpose: bool) -> QuantizedDot {
    QuantizedDot { group_size, bits, transpose, precision: MatmulPrecision::Full }
}

fn name(dot: &QuantizedDot) -> String {
    let how = if dot.transpose { " of the transpose" } else { "" };
    format!("{} bits in groups of {}{how}", dot.bits, dot.group_size)
}

/// A product of rows of whole numbers with a matrix of so many rows and groups, whose elements are
/// small multiples of a power of two: no dtype rounds one, nor a sum.
fn exact(lead: &[usize], matrix: usize, groups: usize, dot: QuantizedDot) -> Sample {
    let QuantizedDot { group_size, bits, transpose, .. } = dot;
    let terms = if transpose { groups * group_size } else { matrix };
    let shape: Vec<usize> = lead.iter().copied().chain([terms]).collect();
    let scale =
        move |i: usize| if i.is_multiple_of(3) && bits < 8 { 1.0 / 64.0 } else { 1.0 / 128.0 };
    let below = 1 << (bits - 1);
    let inputs = vec![
        from(&shape[..], |i| whole(i, 5, 1) - 2.0),
        words(matrix, groups * group_size * bits / 32),
        from([matrix, groups], scale),
        from([matrix, groups], move |i| -scale(i) * whole(i, below, 2)),
    ];
    let label = format!("{lead:?} rows by {matrix} of {}", name(&dot));
    let sample = Sample::new(label, move |_| dot.into(), inputs);
    sample.within(Accuracy::Exact).only(DType::is_float)
}

/// Words of any bits.
fn words(rows: usize, columns: usize) -> crate::sample::Input {
    let word = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    fixed([rows, columns], DType::U32, move |i| word(i) as f64)
}

pub fn reference(dot: &QuantizedDot, inputs: &[Host], out: &Aval) -> Host {
    let [x, words, scales, biases] = [0, 1, 2, 3].map(|n: usize| inputs[n].floats());
    let terms = inputs[0].aval.shape[inputs[0].aval.shape.rank() - 1];
    let columns = inputs[2].aval.shape[1] * dot.group_size;
    let element = |row: usize, column: usize| {
        let bit = |i: usize| {
            let at = column * dot.bits + i;
            let word = words[row * columns * dot.bits / 32 + at / 32] as u64;
            (word >> (at % 32) & 1) << i
        };
        let number: u64 = (0..dot.bits).map(bit).sum();
        let group = (row * columns + column) / dot.group_size;
        number as f64 * scales[group] + biases[group]
    };
    let width = out.shape[out.shape.rank() - 1].max(1);
    Host::from_fn(out.clone(), |i| {
        let (row, to) = (i / width, i % width);
        let factor = |k: usize| if dot.transpose { element(to, k) } else { element(k, to) };
        Number::Float((0..terms).map(|k| x[row * terms + k] * factor(k)).sum())
    })
}
