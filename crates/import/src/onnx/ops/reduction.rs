//! Reductions.

use super::prelude::*;

/// What is folded: the axes, and whether they stay.
struct Fold {
    axes: Vec<usize>,
    keep: bool,
}

fn fold(n: &Node<'_>) -> Result<Fold, Fault> {
    let rank = n.x(0)?.rank();
    let given = n.axes("axes", 1)?.filter(|axes| !axes.is_empty());
    let axes = match given {
        Some(axes) => node::axes(&axes, rank)?,
        None if n.flag("noop_with_empty_axes", false)? => Vec::new(),
        None => (0..rank).collect(),
    };
    Ok(Fold { axes, keep: n.flag("keepdims", true)? })
}

impl Fold {
    fn is_empty(&self, x: &Array) -> bool {
        self.axes.iter().any(|&a| x.shape()[a] == 0)
    }

    /// One number in the shape of the result.
    fn full(&self, x: &Array, value: f64, dtype: DType) -> Made {
        let kept = |a: usize| {
            if self.axes.contains(&a) { self.keep.then_some(1) } else { Some(x.shape()[a]) }
        };
        let sizes: Vec<usize> = (0..x.rank()).filter_map(kept).collect();
        Ok(ops::full(sizes, value, dtype)?)
    }

    fn sum(&self, x: &Array) -> Made {
        Ok(ops::sum(x, self.axes.clone(), self.keep)?)
    }
}

/// A reduction in a wide dtype: `float64` for integers, `float32` for half types.
fn wide(n: &Node<'_>, f: impl FnOnce(&Fold, &Array) -> Made) -> Outcome {
    let x = n.x(0)?;
    let dtype = x.dtype();
    let wide = if dtype.is_float() { dtype.accumulator() } else { DType::F64 };
    let made = f(&fold(n)?, &ops::astype(x, wide)?)?;
    n.like(ops::astype(&made, dtype)?, 0)
}

/// A reduction in the input's own arithmetic.
fn own(n: &Node<'_>, f: impl FnOnce(&Fold, &Array) -> Made) -> Outcome {
    let x = n.x(0)?;
    let made = f(&fold(n)?, x)?;
    n.like(ops::astype(&made, x.dtype())?, 0)
}

fn reduce_sum(n: &Node<'_>) -> Outcome {
    own(n, |fold, x| fold.sum(x))
}

fn reduce_prod(n: &Node<'_>) -> Outcome {
    own(n, |fold, x| Ok(ops::prod(x, fold.axes.clone(), fold.keep)?))
}

fn reduce_mean(n: &Node<'_>) -> Outcome {
    wide(n, |fold, x| Ok(ops::mean(x, fold.axes.clone(), fold.keep)?))
}

fn reduce_l1(n: &Node<'_>) -> Outcome {
    own(n, |fold, x| fold.sum(&ops::abs(x)?))
}

fn reduce_l2(n: &Node<'_>) -> Outcome {
    wide(n, |fold, x| Ok(ops::sqrt(&fold.sum(&ops::square(x)?)?)?))
}

fn reduce_sum_square(n: &Node<'_>) -> Outcome {
    own(n, |fold, x| fold.sum(&ops::square(x)?))
}

fn reduce_log_sum(n: &Node<'_>) -> Outcome {
    wide(n, |fold, x| Ok(ops::log(&fold.sum(x)?)?))
}

fn reduce_log_sum_exp(n: &Node<'_>) -> Outcome {
    wide(n, |fold, x| match fold.is_empty(x) {
        true => fold.full(x, f64::NEG_INFINITY, x.dtype()),
        false if fold.axes.is_empty() => Ok(x.clone()),
        false => Ok(ops::logsumexp(x, fold.axes.clone(), fold.keep)?),
    })
}

/// The least and largest value of a dtype.
pub fn limits(dtype: DType) -> (f64, f64) {
    Element::of(dtype).range().unwrap_or((f64::NEG_INFINITY, f64::INFINITY))
}

fn reduce_max(n: &Node<'_>) -> Outcome {
    own(n, |fold, x| match x.dtype() {
        DType::Bool => Ok(ops::any(x, fold.axes.clone(), fold.keep)?),
        dtype if fold.is_empty(x) => fold.full(x, limits(dtype).0, dtype),
        _ => Ok(ops::max(x, fold.axes.clone(), fold.keep)?),
    })
}

fn reduce_min(n: &Node<'_>) -> Outcome {
    own(n, |fold, x| match x.dtype() {
        DType::Bool => Ok(ops::all(x, fold.axes.clone(), fold.keep)?),
        dtype if fold.is_empty(x) => fold.full(x, limits(dtype).1, dtype),
        _ => Ok(ops::min(x, fold.axes.clone(), fold.keep)?),
    })
}

/// The index of an extreme; the last one of several, where the node says so.
fn arg(n: &Node<'_>, find: impl Fn(&Array, isize, bool) -> cupola_core::Result<Array>) -> Outcome {
    let x = n.x(0)?;
    let axis = n.axis("axis", 0, x.rank())?;
    let keep = n.flag("keepdims", true)?;
    let last = n.flag("select_last_index", false)?;
    let x = if last { ops::flip(x, axis)? } else { x.clone() };
    let found = ops::astype(&find(&x, axis as isize, keep)?, DType::I64)?;
    match last {
        true => one(ops::subtract(x.shape()[axis] as i64 - 1, &found)?),
        false => one(found),
    }
}

fn arg_max(n: &Node<'_>) -> Outcome {
    arg(n, ops::argmax)
}

fn arg_min(n: &Node<'_>) -> Outcome {
    arg(n, ops::argmin)
}

pub const OPS: &[Entry] = &[
    ("ArgMax", 1, arg_max),
    ("ArgMin", 1, arg_min),
    ("ReduceL1", 1, reduce_l1),
    ("ReduceL2", 1, reduce_l2),
    ("ReduceLogSum", 1, reduce_log_sum),
    ("ReduceLogSumExp", 1, reduce_log_sum_exp),
    ("ReduceMax", 1, reduce_max),
    ("ReduceMean", 1, reduce_mean),
    ("ReduceMin", 1, reduce_min),
    ("ReduceProd", 1, reduce_prod),
    ("ReduceSum", 1, reduce_sum),
    ("ReduceSumSquare", 1, reduce_sum_square),
];
