//! Attention and its gradient.

use cupola_core::precision::MatmulPrecision;
use cupola_core::prim::composite::attention::{Scores, lowest};
use cupola_core::prim::{Attention, AttentionGrad, AttentionMaskKind as Mask};
use cupola_core::{Aval, DType, Scalar};

use crate::host::Host;
use crate::number::Number;
use crate::sample::{Input, Sample, fixed, from, spread, summed, whole};

/// What a sample is about: batch, heads, groups, queries, keys, features, values.
type Sizes = [usize; 7];

/// What hides keys.
#[derive(Clone, Copy)]
enum Hides {
    Nothing,
    Causal,
    /// Bool, of this shape; every fifth row is hidden whole.
    Bool([usize; 4]),
    /// Numbers, of this shape.
    Numbers([usize; 4]),
    /// Of the numbers, −∞ for some keys.
    Infinite([usize; 4]),
}

pub fn samples() -> Vec<Sample> {
    use Hides::{Bool, Causal, Infinite, Nothing, Numbers};
    let small = [
        ("all keys", [2, 2, 2, 3, 4, 3, 2], Nothing, false),
        ("groups", [1, 4, 2, 2, 3, 2, 3], Nothing, false),
        ("causal", [1, 2, 1, 3, 5, 2, 2], Causal, false),
        ("causal, rows that see nothing", [1, 1, 1, 5, 3, 2, 2], Causal, false),
        ("bool mask", [2, 2, 1, 5, 3, 2, 2], Bool([1, 2, 5, 3]), false),
        ("numbers as a mask", [2, 2, 2, 2, 3, 2, 2], Numbers([2, 1, 1, 3]), false),
        ("sinks", [2, 2, 1, 3, 2, 2, 2], Nothing, true),
        ("sinks and causal", [1, 2, 2, 2, 3, 2, 2], Causal, true),
        ("one query", [1, 4, 2, 1, 6, 3, 2], Nothing, false),
        ("one of everything", [1; 7], Nothing, false),
    ];
    let large = [
        ("many keys", [1, 4, 2, 70, 133, 24, 24], Nothing, false),
        ("many keys, causal", [1, 2, 1, 133, 133, 16, 16], Causal, false),
        ("causal, a suffix", [1, 2, 2, 37, 150, 16, 16], Causal, false),
        ("causal, a prefix sees nothing", [1, 2, 2, 150, 37, 16, 16], Causal, true),
        ("many rows hidden", [2, 3, 1, 35, 67, 24, 8], Bool([2, 1, 35, 67]), false),
        ("padding", [2, 2, 2, 20, 90, 8, 8], Infinite([2, 1, 1, 90]), false),
        ("wide heads", [1, 1, 1, 9, 41, 200, 256], Numbers([1, 1, 9, 41]), true),
        ("wide heads, causal", [1, 2, 1, 20, 40, 72, 128], Causal, false),
        ("one query, many keys", [1, 4, 2, 1, 530, 16, 20], Nothing, false),
        ("one query, some hidden", [2, 4, 1, 1, 333, 20, 24], Bool([2, 1, 1, 333]), true),
        ("a few queries, many keys", [1, 6, 1, 2, 530, 8, 16], Causal, true),
        ("two queries, causal", [1, 2, 2, 2, 300, 20, 16], Causal, false),
        ("no keys", [1, 2, 1, 3, 0, 2, 2], Nothing, false),
        ("no queries", [1, 2, 1, 0, 3, 2, 2], Causal, false),
        ("no features", [1, 2, 1, 2, 3, 0, 2], Nothing, true),
        ("nothing", [0, 2, 1, 2, 3, 4, 2], Nothing, false),
    ];
    let mut all = Vec::new();
    for (name, sizes, hides, sinks) in small {
        all.push(forward(name, sizes, hides, sinks).smooth());
    }
    for (name, sizes, hides, sinks) in large {
        all.push(forward(name, sizes, hides, sinks));
    }
    let small = small.iter().filter(|sample| !sample.3).map(|sample| (*sample, true));
    for ((name, sizes, hides, _), smooth) in small.chain(large.map(|sample| (sample, false))) {
        let sample = backward(name, sizes, hides);
        // Kernels know no sizes, but a few rows have their own.
        let alike = smooth || sizes[3] <= 2;
        let sample = if smooth { sample.smooth() } else { sample };
        all.push(if alike { sample.where_kernels_are_cheap() } else { sample });
    }
    all
}

fn scores(sizes: &Sizes, hides: Hides) -> Scores {
    let mask = match hides {
        Hides::Nothing => Mask::None,
        Hides::Causal => Mask::Causal,
        Hides::Bool(_) | Hides::Numbers(_) | Hides::Infinite(_) => Mask::Array,
    };
    let scale = Scalar::Float(0.5 / (sizes[5].max(1) as f64).sqrt());
    Scores { scale, mask, precision: MatmulPrecision::Full }
}

/// Queries, keys, values and the mask.
fn operands(
    &[batch, heads, groups, queries, keys, features, values]: &Sizes,
    hides: Hides,
) -> Vec<Input> {
    let number = |at: usize| move |i: usize| spread(i + at) / 2.0;
    let mut inputs = vec![
        from([batch, heads, queries, features], number(0)),
        from([batch, groups, keys, features], number(5)),
        from([batch, groups, keys, values], number(11)),
    ];
    match hides {
        Hides::Nothing | Hides::Causal => {}
        Hides::Bool(shape) => {
            let sees = move |i: usize| i / shape[3] % 5 != 2 && whole(i, 3, 1) > 0.0;
            inputs.push(fixed(shape, DType::Bool, move |i| f64::from(u8::from(sees(i)))));
        }
        Hides::Numbers(shape) => inputs.push(from(shape, number(3))),
        Hides::Infinite(shape) => inputs.push(from(shape, |i| match whole(i, 3, 1) {
            0.0 => f64::NEG_INFINITY,
            _ => 0.0,
        })),
    }
    inputs
}

fn forward(name: &str, sizes: Sizes, hides: Hides, sinks: bool) -> Sample {
    let mut inputs = operands(&sizes, hides);
    if sinks {
        inputs.push(summed([sizes[0].min(1 + sizes[3] % 2), sizes[1]], |i| spread(i + 2) / 2.0));
    }
    let attention = Attention { scores: scores(&sizes, hides), sinks };
    Sample::new(name, move |_| attention.into(), inputs)
}

fn backward(name: &str, sizes: Sizes, hides: Hides) -> Sample {
    let [batch, heads, _, queries, keys, _, values] = sizes;
    let mut inputs = operands(&sizes, hides);
    let row = [batch, heads, queries];
    inputs.push(summed(row, |i| 1.0 + spread(i + 1) / 4.0));
    inputs.push(summed(row, move |i| keys as f64 / 2.0 + 1.0 + spread(i + 4).abs()));
    inputs.push(from([batch, queries, heads, values], |i| spread(i + 6) / 8.0));
    inputs.push(from([batch, queries, heads, values], |i| spread(i + 8) / 8.0));
    let grad = AttentionGrad { scores: scores(&sizes, hides) };
    let name = format!("gradient, {name}");
    Sample::new(name, move |_| grad.into(), inputs)
}

/// An array of four axes, or fewer, as numbers.
struct Table {
    shape: Vec<usize>,
    data: Vec<f64>,
}

impl Table {
    fn new(host: &Host) -> Self {
        Table { shape: host.aval.shape.to_vec(), data: host.floats() }
    }

    fn zeros(aval: &Aval) -> Self {
        Table { shape: aval.shape.to_vec(), data: vec![0.0; aval.shape.size()] }
    }

    /// Where the numbers at these indices along the first axes are.
    fn place(&self, index: &[usize]) -> std::ops::Range<usize> {
        let row: usize = self.shape[index.len()..].iter().product();
        let at = index.iter().zip(&self.shape).fold(0, |at, (&i, &size)| at * size + i) * row;
        at..at + row
    }

    fn row(&self, index: &[usize]) -> &[f64] {
        &self.data[self.place(index)]
    }

    /// Adds `by` times `row` to the numbers at these indices.
    fn add(&mut self, index: &[usize], by: f64, row: &[f64]) {
        let place = self.place(index);
        self.data[place].iter_mut().zip(row).for_each(|(sum, x)| *sum += by * x);
    }

    /// The numbers as `aval`'s dtype holds them.
    fn host(&self, aval: &Aval) -> Host {
        Host::from_fn(aval.clone(), |i| Number::Float(self.data[i]))
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The scores of each query.
struct Rows {
    scores: Scores,
    lowest: f64,
    q: Table,
    k: Table,
    mask: Option<(Table, bool)>,
}

impl Rows {
    fn new(scores: Scores, inputs: &[Host]) -> Self {
        let mask = (scores.mask == Mask::Array).then(|| &inputs[3]);
        Rows {
            scores,
            lowest: lowest(inputs[0].aval.dtype),
            q: Table::new(&inputs[0]),
            k: Table::new(&inputs[1]),
            mask: mask.map(|mask| (Table::new(mask), mask.aval.dtype == DType::Bool)),
        }
    }

    /// The group of keys that serves a head.
    fn group(&self, head: usize) -> usize {
        head / (self.q.shape[1] / self.k.shape[1])
    }

    /// Every query: example, head, place.
    fn places(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        crate::host::indices(&self.q.shape[..3]).map(|index| [index[0], index[1], index[2]])
    }

    /// Each key's score, and whether it depends on query and key.
    fn row(&self, place @ [b, h, i]: [usize; 3]) -> Vec<(f64, bool)> {
        let (queries, keys) = (self.q.shape[2], self.k.shape[2]);
        let (q, hidden) = (self.q.row(&place), (self.lowest, false));
        let score = |j: usize| {
            let score = product(q, self.k.row(&[b, self.group(h), j])) * self.scores.scale.to_f64();
            let given = self.mask.as_ref().map(|(mask, is_bool)| {
                let at: Vec<usize> = mask
                    .shape
                    .iter()
                    .zip([b, h, i, j])
                    .map(|(&size, at)| at.min(size - 1))
                    .collect();
                (mask.row(&at)[0], is_bool)
            });
            match (self.scores.mask, given) {
                (Mask::Causal, _) if j + queries > i + keys => hidden,
                (Mask::Array, Some((0.0, true))) => hidden,
                (Mask::Array, Some((more, false))) => (score + more, true),
                (Mask::None | Mask::Causal | Mask::Array, _) => (score, true),
            }
        };
        (0..keys).map(score).collect()
    }
}

/// The values, the largest scores and the sums of exponentials.
pub fn reference(attention: &Attention, inputs: &[Host], outputs: &[Aval]) -> Vec<Host> {
    let rows = Rows::new(attention.scores, inputs);
    let (v, sinks) = (Table::new(&inputs[2]), inputs.last().filter(|_| attention.sinks));
    let mut out: Vec<Table> = outputs.iter().map(Table::zeros).collect();
    for place @ [b, h, q] in rows.places() {
        let row = rows.row(place);
        let sink = sinks.map(|s| s.at(&[b.min(s.aval.shape[0] - 1), h]).float());
        if row.is_empty() {
            out[2].add(&place, 1.0, &[1.0]);
            continue;
        }
        let all = || row.iter().map(|score| score.0).chain(sink);
        let largest = all().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = all().map(|score| (score - largest).exp()).sum();
        out[1].add(&place, 1.0, &[largest]);
        out[2].add(&place, 1.0, &[total]);
        for (j, (score, _)) in row.iter().enumerate() {
            let weight = (score - largest).exp() / total;
            out[0].add(&[b, q, h], weight, v.row(&[b, rows.group(h), j]));
        }
    }
    out.iter().zip(outputs).map(|(out, aval)| out.host(aval)).collect()
}

/// The cotangents of queries, keys and values.
pub fn gradient(grad: &AttentionGrad, inputs: &[Host], outputs: &[Aval]) -> Vec<Host> {
    let rows = Rows::new(grad.scores, inputs);
    let v = Table::new(&inputs[2]);
    let [largest, total, values, ct] = &inputs[inputs.len() - 4..] else { return Vec::new() };
    let (values, ct) = (Table::new(values), Table::new(ct));
    let scale = grad.scores.scale.to_f64();
    let mut out: Vec<Table> = outputs.iter().map(Table::zeros).collect();
    for place @ [b, h, q] in rows.places() {
        let of_row = |x: &Host| x.at(&place).float();
        let (largest, total, token) = (of_row(largest), of_row(total), [b, q, h]);
        let delta = product(values.row(&token), ct.row(&token));
        for (j, (score, depends)) in rows.row(place).into_iter().enumerate() {
            let (key, of_key) = ([b, rows.group(h), j], [b, j, rows.group(h)]);
            let weight = (score - largest).exp() / total;
            out[2].add(&of_key, weight, ct.row(&token));
            if depends {
                let by = scale * weight * (product(ct.row(&token), v.row(&key)) - delta);
                out[0].add(&token, by, rows.k.row(&key));
                out[1].add(&of_key, by, rows.q.row(&place));
            }
        }
    }
    out.iter().zip(outputs).map(|(out, aval)| out.host(aval)).collect()
}
