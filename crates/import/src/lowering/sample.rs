//! Pictures at other places, and axes of other sizes.

use std::ops::Range;

use cupola_core::{Array, DType, ops};

use super::Made;
use super::movement::{known, part};
use crate::error::Fault;

/// For each place of the output the places of the input and their weights; `None` where it lies outside.
pub type Picks = Vec<Option<Pick>>;

/// Places and their weights.
pub type Pick = (Vec<i64>, Vec<f64>);

/// An axis of `x` resized.
pub fn resized(x: &Array, axis: usize, picks: &Picks, outside: f64) -> Made {
    if let Some(times) = repeats(picks, x.shape()[axis]) {
        return Ok(ops::repeat(x, times, axis as isize)?);
    }
    if let Some(phases) = phases(picks, x.shape()[axis]) {
        return by_phases(x, axis, picks, &phases);
    }
    let width = picks.iter().flatten().map(|(p, _)| p.len()).max().unwrap_or(1);
    let mut sizes = vec![1; x.rank()];
    sizes[axis] = picks.len();
    let column = |f: &dyn Fn(&Pick) -> f64| -> Vec<f64> {
        picks.iter().map(|pick| pick.as_ref().map_or(0.0, f)).collect()
    };
    let mut terms = Vec::with_capacity(width);
    for k in 0..width {
        let places = column(&|(places, _)| places.get(k).copied().unwrap_or(0) as f64);
        let places: Vec<i64> = places.into_iter().map(|p| p as i64).collect();
        let weights = column(&|(_, weights)| weights.get(k).copied().unwrap_or(0.0));
        terms.push((ops::take(x, &known(&places)?, axis as isize)?, weights));
    }
    let sum = weighted(terms, &sizes)?;
    if picks.iter().all(Option::is_some) {
        return Ok(sum);
    }
    let inside: Vec<bool> = picks.iter().map(Option::is_some).collect();
    Ok(ops::where_(&Array::from_slice(&inside, &sizes)?, &sum, outside)?)
}

/// The sum of arrays times their weights, which have these sizes.
fn weighted(terms: Vec<(Array, Vec<f64>)>, sizes: &[usize]) -> Made {
    let mut sum: Option<Array> = None;
    for (x, weights) in terms {
        let term = match weights.iter().all(|&w| w == 1.0) {
            true => x,
            false => {
                let weights = Array::from_slice(&weights, sizes)?;
                ops::multiply(&x, &ops::astype(&weights, x.dtype())?)?
            }
        };
        sum = Some(match sum {
            Some(sum) => ops::add(&sum, &term)?,
            None => term,
        });
    }
    sum.ok_or_else(|| Fault::invalid("nothing is picked"))
}

/// How many times each of `size` places follows itself, where that is all.
fn repeats(picks: &Picks, size: usize) -> Option<usize> {
    let times = picks.len().checked_div(size).filter(|times| times * size == picks.len())?;
    let is_repeat = |(at, pick): (usize, &Option<Pick>)| {
        pick.as_ref().is_some_and(|(places, weights)| {
            places[..] == [(at / times) as i64] && weights[..] == [1.0]
        })
    };
    picks.iter().enumerate().all(is_repeat).then_some(times)
}

/// Places of the output that follow each other, of every so many, and how far their places lie from that of the input
/// which these are made of.
struct Phase {
    places: Range<usize>,
    offsets: Vec<i64>,
}

/// The farthest that a phase reads.
const FARTHEST: i64 = 4;

/// Where an axis is stretched by a whole number, the phases in which each place of `size` becomes so many: those places
/// that read the same neighbours, of which the outermost stand for what lies beyond them.
fn phases(picks: &Picks, size: usize) -> Option<Vec<Phase>> {
    let times = picks.len().checked_div(size).filter(|t| *t >= 2 && t * size == picks.len())?;
    let picks: Vec<&Pick> = picks.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let (middle, last) = (size / 2, size as i64 - 1);
    let mut phases: Vec<Phase> = Vec::new();
    for p in 0..times {
        let pick = |i: usize| picks[i * times + p];
        let offsets: Vec<i64> = pick(middle).0.iter().map(|place| place - middle as i64).collect();
        // What has no weight may be any place.
        let is_so = |i: usize| {
            let (places, weights) = pick(i);
            let mut pairs = places.iter().zip(weights).zip(&offsets);
            let all = places.len() == offsets.len() && weights.len() == offsets.len();
            all && pairs.all(|((&at, &w), d)| w == 0.0 || at == (i as i64 + d).clamp(0, last))
        };
        if offsets.iter().any(|d| d.abs() > FARTHEST) || !(0..size).all(is_so) {
            return None;
        }
        match phases.last_mut() {
            Some(phase) if phase.offsets == offsets => phase.places.end = p + 1,
            _ => phases.push(Phase { places: p..p + 1, offsets }),
        }
    }
    Some(phases)
}

/// An axis resized in phases: nothing is gathered, and what is read stays near.
fn by_phases(x: &Array, axis: usize, picks: &Picks, phases: &[Phase]) -> Made {
    let size = x.shape()[axis];
    let times = picks.len() / size;
    let offsets = || phases.iter().flat_map(|phase| phase.offsets.iter().copied());
    let (low, high) = (offsets().fold(0, i64::min), offsets().fold(0, i64::max));
    let mut widths = vec![(0, 0); x.rank()];
    widths[axis] = (low.unsigned_abs() as usize, high.unsigned_abs() as usize);
    let wide = ops::pad(x, &widths[..], ops::PadMode::Edge)?;
    let mut parts = Vec::with_capacity(phases.len());
    for Phase { places, offsets } in phases {
        let mut sizes = vec![1; x.rank() + 1];
        (sizes[axis], sizes[axis + 1]) = (size, places.len());
        let mut terms = Vec::with_capacity(offsets.len());
        for (k, offset) in offsets.iter().enumerate() {
            let weight = |i: usize| {
                places
                    .clone()
                    .map(move |p| picks[i * times + p].as_ref().map_or(0.0, |pick| pick.1[k]))
            };
            let first = (offset - low) as usize;
            let neighbour = part(&wide, axis, first, first + size)?;
            let neighbour = ops::expand_dims(&neighbour, axis as isize + 1)?;
            terms.push((neighbour, (0..size).flat_map(weight).collect()));
        }
        let sum = weighted(terms, &sizes)?;
        let mut whole = sum.shape().to_vec();
        whole[axis + 1] = places.len();
        parts.push(ops::broadcast_to(&sum, whole)?);
    }
    let all = ops::concatenate(&parts.iter().collect::<Vec<_>>(), axis as isize + 1)?;
    let mut sizes = x.shape().to_vec();
    sizes[axis] = picks.len();
    Ok(ops::reshape(&all, sizes)?)
}

/// What lies beyond a picture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    Zeros,
    Border,
    Reflection,
}

/// Places reflected at the ends of a range until they lie in it.
fn reflected(x: &Array, least: f64, most: f64) -> Made {
    let span = most - least;
    if span <= 0.0 {
        return Ok(ops::full_like(x, least)?);
    }
    let turned = ops::remainder(&ops::subtract(x, least)?, 2.0 * span)?;
    let turned = ops::minimum(&turned, &ops::subtract(2.0 * span, &turned)?)?;
    Ok(ops::add(&turned, least)?)
}

/// A picture's axis with the places on it that are sampled, one for each sample.
pub struct Line {
    pub size: usize,
    pub places: Array,
    pub range: (f64, f64),
}

impl Line {
    /// The places of the neighbours, and their weights; 0 where they lie outside.
    pub fn neighbours(&self, mode: &str, beyond: Beyond) -> Result<Vec<(Array, Array)>, Fault> {
        let (least, most) = self.range;
        let mut x = self.places.clone();
        if mode == "nearest" {
            x = ops::round(&x, 0)?;
        }
        let last = self.size.max(1) as f64 - 1.0;
        x = match beyond {
            Beyond::Zeros => x,
            Beyond::Border => ops::minimum(&ops::maximum(&x, 0.0)?, last)?,
            Beyond::Reflection => reflected(&x, least, most)?,
        };
        let floor = ops::floor(&x)?;
        let ratio = ops::subtract(&x, &floor)?;
        let weights: Vec<(f64, Array)> = match mode {
            "nearest" => vec![(0.0, ops::ones_like(&x)?)],
            "linear" => vec![(0.0, ops::subtract(1.0, &ratio)?), (1.0, ratio)],
            _ => (-1..3)
                .map(|i| Ok((i as f64, cubic(&ratio, i as f64)?)))
                .collect::<Result<_, Fault>>()?,
        };
        let mut out = Vec::with_capacity(weights.len());
        for (offset, weight) in weights {
            let at = if mode == "nearest" { x.clone() } else { ops::add(&floor, offset)? };
            let (at, weight) = match beyond {
                Beyond::Zeros => {
                    let inside = ops::logical_and(
                        &ops::greater_equal(&at, 0)?,
                        &ops::less_equal(&at, last)?,
                    )?;
                    (at, ops::where_(&inside, &weight, 0)?)
                }
                Beyond::Border => (at, weight),
                Beyond::Reflection => (ops::trunc(&reflected(&at, least, most)?)?, weight),
            };
            // A place that is no number counts as the first.
            let at = ops::where_(&ops::isfinite(&at)?, &at, 0)?;
            let at = ops::minimum(&ops::maximum(&at, 0)?, last)?;
            out.push((ops::astype(&at, DType::I64)?, weight));
        }
        Ok(out)
    }
}

/// The weight of the neighbour `offset` from the floor in a cubic.
fn cubic(ratio: &Array, offset: f64) -> Made {
    let a = -0.75;
    let x = ops::abs(&ops::subtract(ratio, offset)?)?;
    let poly = |c: [f64; 4]| -> Made {
        let mut y = ops::full_like(&x, c[0])?;
        for c in &c[1..] {
            y = ops::add(&ops::multiply(&y, &x)?, *c)?;
        }
        Ok(y)
    };
    match offset as i64 {
        0 | 1 => poly([a + 2.0, -(a + 3.0), 0.0, 1.0]),
        _ => poly([a, -5.0 * a, 8.0 * a, -4.0 * a]),
    }
}

/// The weighted sum over all combinations of neighbours: `[N, places.., C]`, moved to `[N, C, places..]`.
pub fn sampled(x: &Array, lines: &[Vec<(Array, Array)>]) -> Made {
    let batch = x.shape()[0];
    let mut first = vec![1; lines.first().map_or(1, |l| l[0].0.rank())];
    first[0] = batch;
    let rows = ops::reshape(&ops::arange_in(0, batch, 1, DType::I64)?, first)?;
    let mut sizes = x.shape().to_vec();
    sizes[0] = 1;
    sizes[2..].fill(1);
    let mut sum: Option<Array> = None;
    let combinations: usize = lines.iter().map(Vec::len).product();
    for number in 0..combinations {
        let mut rest = number;
        let mut places = vec![(0, &rows)];
        let mut weight: Option<Array> = None;
        for (axis, line) in lines.iter().enumerate() {
            let (place, w) = &line[rest % line.len()];
            rest /= line.len();
            places.push((axis + 2, place));
            weight = Some(match weight {
                Some(so_far) => ops::multiply(&so_far, w)?,
                None => w.clone(),
            });
        }
        let Some(weight) = weight else { continue };
        let found = ops::gather(x, &places, &sizes[..])?;
        let mut shape = weight.shape().to_vec();
        shape.push(x.shape()[1]);
        let found = ops::astype(&ops::reshape(&found, shape)?, weight.dtype())?;
        let term = ops::multiply(&found, &ops::expand_dims(&weight, -1)?)?;
        sum = Some(match sum {
            Some(sum) => ops::add(&sum, &term)?,
            None => term,
        });
    }
    let sum = sum.ok_or_else(|| Fault::invalid("there are no spatial axes"))?;
    Ok(ops::moveaxis(&sum, -1, 1)?)
}
