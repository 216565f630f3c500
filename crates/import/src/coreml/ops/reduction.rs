//! Reductions.

use super::prelude::*;

/// A reduction over axes in a wide dtype for half types.
fn over(n: &Node<'_>, f: impl FnOnce(&Array, Vec<usize>, bool) -> Made) -> Outcome {
    let x = n.x("x")?;
    let (axes, keep) = (n.axes("axes", x.rank())?, n.flag("keep_dims", false)?);
    let wide = match x.dtype().is_float() {
        true => ops::astype(x, x.dtype().accumulator())?,
        false => x.clone(),
    };
    one(ops::astype(&f(&wide, axes, keep)?, x.dtype())?)
}

macro_rules! reductions {
    ($($f:ident: $x:ident, $axes:ident, $keep:ident => $made:expr;)*) => {$(
        fn $f(n: &Node<'_>) -> Outcome {
            over(n, |$x, $axes, $keep| Ok($made?))
        }
    )*};
}

reductions! {
    sum: x, axes, keep => ops::sum(x, axes, keep);
    mean: x, axes, keep => ops::mean(x, axes, keep);
    prod: x, axes, keep => ops::prod(x, axes, keep);
    max: x, axes, keep => ops::max(x, axes, keep);
    min: x, axes, keep => ops::min(x, axes, keep);
    l1_norm: x, axes, keep => ops::sum(&ops::abs(x)?, axes, keep);
    l2_norm: x, axes, keep => ops::sqrt(&ops::sum(&ops::square(x)?, axes, keep)?);
    log_sum: x, axes, keep => ops::log(&ops::sum(x, axes, keep)?);
    log_sum_exp: x, axes, keep => ops::logsumexp(x, axes, keep);
    sum_square: x, axes, keep => ops::sum(&ops::square(x)?, axes, keep);
}

/// The place of an extreme along one axis.
fn place(
    n: &Node<'_>,
    f: impl FnOnce(&Array, isize, bool) -> cupola_core::Result<Array>,
) -> Outcome {
    let x = n.x("x")?;
    let axis = n.axis("axis", -1, x.rank())?;
    let dtype = n.element("output_dtype")?.map_or(DType::I32, |element| element.dtype);
    one(ops::astype(&f(x, axis as isize, n.flag("keep_dims", false)?)?, dtype)?)
}

fn argmax(n: &Node<'_>) -> Outcome {
    place(n, ops::argmax)
}

fn argmin(n: &Node<'_>) -> Outcome {
    place(n, ops::argmin)
}

pub const OPS: &[Entry] = &[
    ("reduce_argmax", argmax),
    ("reduce_argmin", argmin),
    ("reduce_l1_norm", l1_norm),
    ("reduce_l2_norm", l2_norm),
    ("reduce_log_sum", log_sum),
    ("reduce_log_sum_exp", log_sum_exp),
    ("reduce_max", max),
    ("reduce_mean", mean),
    ("reduce_min", min),
    ("reduce_prod", prod),
    ("reduce_sum", sum),
    ("reduce_sum_square", sum_square),
];
