//! Activations.

use super::prelude::*;
use crate::lowering::conv::per_channel;

macro_rules! activation {
    ($($f:ident: $n:ident, $x:ident => $made:expr;)*) => {$(
        fn $f($n: &Node<'_>) -> Outcome {
            let $x = $n.x("x")?;
            one($made?)
        }
    )*};
}

activation! {
    relu: n, x => ops::maximum(x, 0);
    relu6: n, x => ops::relu6(x);
    sigmoid: n, x => ops::sigmoid(x);
    silu: n, x => ops::silu(x);
    softplus: n, x => ops::softplus(x);
    softsign: n, x => ops::softsign(x);
    elu: n, x => ops::elu(x, n.float("alpha")?);
    leaky_relu: n, x => ops::leaky_relu(x, n.float("alpha")?);
    linear_activation: n, x => line(x, n.float("alpha")?, n.float("beta")?);
    softmax: n, x => ops::softmax(x, n.axis("axis", -1, x.rank())?);
}

/// αx + β.
fn line(x: &Array, alpha: f64, beta: f64) -> cupola_core::Result<Array> {
    ops::add(&ops::multiply(x, alpha)?, beta)
}

fn sigmoid_hard(n: &Node<'_>) -> Outcome {
    let line = line(n.x("x")?, n.float("alpha")?, n.float("beta")?)?;
    one(ops::minimum(&ops::maximum(&line, 0.0)?, 1.0)?)
}

fn scaled_tanh(n: &Node<'_>) -> Outcome {
    let inner = ops::tanh(&ops::multiply(n.x("x")?, n.float("beta")?)?)?;
    one(ops::multiply(&inner, n.float("alpha")?)?)
}

/// Below 0 times α, and nowhere above β.
fn clamped_relu(n: &Node<'_>) -> Outcome {
    let y = ops::leaky_relu(n.x("x")?, n.float("alpha")?)?;
    one(ops::minimum(&y, n.float("beta")?)?)
}

fn thresholded_relu(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let above = ops::greater_equal(x, n.float("alpha")?)?;
    one(ops::where_(&above, x, 0)?)
}

fn gelu(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    one(match n.text("mode", "EXACT")? {
        "EXACT" => ops::gelu(x)?,
        "TANH_APPROXIMATION" => ops::gelu_approx(x)?,
        "SIGMOID_APPROXIMATION" => ops::multiply(x, &ops::sigmoid(&ops::multiply(x, 1.702)?)?)?,
        other => return Err(Fault::invalid(format!("the mode '{other}' is not known"))),
    })
}

fn prelu(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let slope = per_channel(n.x("alpha")?, x.rank())?;
    one(ops::where_(&ops::less(x, 0)?, &ops::multiply(x, &slope)?, x)?)
}

fn softplus_parametric(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let (alpha, beta) =
        (per_channel(n.x("alpha")?, x.rank())?, per_channel(n.x("beta")?, x.rank())?);
    one(ops::multiply(&ops::softplus(&ops::multiply(x, &beta)?)?, &alpha)?)
}

pub const OPS: &[Entry] = &[
    ("clamped_relu", clamped_relu),
    ("elu", elu),
    ("gelu", gelu),
    ("leaky_relu", leaky_relu),
    ("linear_activation", linear_activation),
    ("prelu", prelu),
    ("relu", relu),
    ("relu6", relu6),
    ("scaled_tanh", scaled_tanh),
    ("sigmoid", sigmoid),
    ("sigmoid_hard", sigmoid_hard),
    ("silu", silu),
    ("softmax", softmax),
    ("softplus", softplus),
    ("softplus_parametric", softplus_parametric),
    ("softsign", softsign),
    ("thresholded_relu", thresholded_relu),
];
