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
        ("many keys", [1, 4, 2, 70, 133, 40, 24], Nothing, false),
        ("many keys, causal", [1, 2, 1, 133, 133, 64, 64], Causal, false),
        ("causal, a suffix", [2, 2, 2, 37, 150, 16, 16], Causal, false),
        ("causal, a prefix sees nothing", [1, 2, 2, 150, 37, 16, 16], Causal, true),
        ("many rows hidden", [2, 3, 1, 35, 67, 17, 33], Bool([2, 1, 35, 67]), false),
        ("padding", [2, 4, 4, 20, 90, 32, 32], Infinite([2, 1, 1, 90]), false),
        ("wide heads", [1, 2, 2, 9, 41, 200, 256], Numbers([1, 1, 9, 41]), true),
        ("one query, many keys", [1, 8, 2, 1, 700, 64, 64], Nothing, false),
        ("one query, some hidden", [2, 4, 1, 1, 333, 40, 24], Bool([2, 1, 1, 333]), true),
        ("two queries, causal", [1, 4, 4, 2, 300, 32, 32], Causal, false),
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
        all.push(if smooth { sample.smooth().where_kernels_are_cheap() } else { sample });
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
    inputs.push(summed(row, |i| spread(i + 6) / 8.0));
    inputs.push(from([batch, heads, queries, values], |i| spread(i + 8) / 8.0));
    let grad = AttentionGrad { scores: scores(&sizes, hides) };
    let name = format!("gradient, {name}");
    Sample::new(name, move |_| grad.into(), inputs)
}

/// The scores of one query.
struct Rows<'h> {
    scores: Scores,
    q: &'h Host,
    k: &'h Host,
    mask: Option<&'h Host>,
}

impl<'h> Rows<'h> {
    fn new(scores: Scores, inputs: &'h [Host]) -> Self {
        let mask = (scores.mask == Mask::Array).then(|| &inputs[3]);
        Rows { scores, q: &inputs[0], k: &inputs[1], mask }
    }

    fn keys(&self) -> usize {
        self.k.aval.shape[2]
    }

    /// The group of keys that serves a head.
    fn group(&self, head: usize) -> usize {
        head / (self.q.aval.shape[1] / self.k.aval.shape[1])
    }

    /// Every query: example, head, place.
    fn places(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        let shape = &self.q.aval.shape;
        crate::host::indices(&shape[..3]).map(|index| [index[0], index[1], index[2]])
    }

    /// Each key's score, and whether it depends on query and key.
    fn row(&self, [b, h, i]: [usize; 3]) -> Vec<(f64, bool)> {
        let (queries, lowest) = (self.q.aval.shape[2], lowest(self.q.aval.dtype));
        let score = |j: usize| {
            let features = 0..self.q.aval.shape[3];
            let at = |x: &Host, index: &[usize]| x.at(index).float();
            let g = self.group(h);
            let product: f64 =
                features.map(|d| at(self.q, &[b, h, i, d]) * at(self.k, &[b, g, j, d])).sum();
            let score = product * self.scores.scale.to_f64();
            let hidden = (lowest, false);
            match (self.scores.mask, self.mask) {
                (Mask::Causal, _) if j + queries > i + self.keys() => hidden,
                (Mask::Array, Some(mask)) => {
                    let index: Vec<usize> = (mask.aval.shape.iter().zip([b, h, i, j]))
                        .map(|(&size, at)| at.min(size - 1))
                        .collect();
                    let given = mask.at(&index);
                    match mask.aval.dtype {
                        DType::Bool if given.is_true() => (score, true),
                        DType::Bool => hidden,
                        _ => (score + given.float(), true),
                    }
                }
                (Mask::None | Mask::Causal | Mask::Array, _) => (score, true),
            }
        };
        (0..self.keys()).map(score).collect()
    }
}

fn zeros(outputs: &[Aval]) -> Vec<Host> {
    outputs.iter().map(|aval| Host::from_fn(aval.clone(), |_| Number::Float(0.0))).collect()
}

fn add(to: &mut Host, index: &[usize], value: f64) {
    let at = crate::host::flat(&to.aval.shape, index);
    to.data[at] = Number::Float(to.data[at].float() + value);
}

/// Every number as its dtype holds it, after sums in `f64`.
fn rounded(hosts: Vec<Host>) -> Vec<Host> {
    hosts.into_iter().map(|h| Host::from_fn(h.aval.clone(), |i| h.data[i])).collect()
}

/// The values, the largest scores and the sums of exponentials.
pub fn reference(attention: &Attention, inputs: &[Host], outputs: &[Aval]) -> Vec<Host> {
    let rows = Rows::new(attention.scores, inputs);
    let (v, sinks) = (&inputs[2], inputs.last().filter(|_| attention.sinks));
    let mut out = zeros(outputs);
    for place @ [b, h, i] in rows.places() {
        let row = rows.row(place);
        let sink = sinks.map(|s| s.at(&[b.min(s.aval.shape[0] - 1), h]).float());
        if row.is_empty() {
            add(&mut out[2], &place, 1.0);
            continue;
        }
        let all = || row.iter().map(|score| score.0).chain(sink);
        let largest = all().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = all().map(|score| (score - largest).exp()).sum();
        add(&mut out[1], &place, largest);
        add(&mut out[2], &place, total);
        for (j, (score, _)) in row.iter().enumerate() {
            let weight = (score - largest).exp() / total;
            for e in 0..v.aval.shape[3] {
                add(&mut out[0], &[b, h, i, e], weight * v.at(&[b, rows.group(h), j, e]).float());
            }
        }
    }
    rounded(out)
}

/// The cotangents of queries, keys and values.
pub fn gradient(grad: &AttentionGrad, inputs: &[Host], outputs: &[Aval]) -> Vec<Host> {
    let rows = Rows::new(grad.scores, inputs);
    let (q, k, v) = (&inputs[0], &inputs[1], &inputs[2]);
    let [largest, total, delta, ct] = &inputs[inputs.len() - 4..] else { return Vec::new() };
    let scale = grad.scores.scale.to_f64();
    let mut out = zeros(outputs);
    for place @ [b, h, i] in rows.places() {
        let g = rows.group(h);
        for (j, (score, depends)) in rows.row(place).into_iter().enumerate() {
            let weight = (score - largest.at(&place).float()).exp() / total.at(&place).float();
            let mut slope = -delta.at(&place).float();
            for e in 0..v.aval.shape[3] {
                let ct = ct.at(&[b, h, i, e]).float();
                slope += ct * v.at(&[b, g, j, e]).float();
                add(&mut out[2], &[b, g, j, e], weight * ct);
            }
            if !depends {
                continue;
            }
            for d in 0..q.aval.shape[3] {
                let by = scale * weight * slope;
                add(&mut out[0], &[b, h, i, d], by * k.at(&[b, g, j, d]).float());
                add(&mut out[1], &[b, g, j, d], by * q.at(&[b, h, i, d]).float());
            }
        }
    }
    rounded(out)
}
