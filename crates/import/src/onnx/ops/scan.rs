//! Running sums and products.

use cupola_core::ops::ScanOptions;

use super::prelude::*;

fn running(
    n: &Node<'_>,
    f: impl FnOnce(&Array, usize, ScanOptions) -> cupola_core::Result<Array>,
) -> Outcome {
    let x = n.x(0)?;
    let axis = node::axis(n.need_int(1)?, x.rank())?;
    let options =
        ScanOptions { reverse: n.flag("reverse", false)?, exclusive: n.flag("exclusive", false)? };
    n.like(ops::astype(&f(x, axis, options)?, x.dtype())?, 0)
}

fn cum_sum(n: &Node<'_>) -> Outcome {
    running(n, ops::cumsum)
}

fn cum_prod(n: &Node<'_>) -> Outcome {
    running(n, ops::cumprod)
}

pub const OPS: &[Entry] = &[("CumProd", 26, cum_prod), ("CumSum", 11, cum_sum)];
