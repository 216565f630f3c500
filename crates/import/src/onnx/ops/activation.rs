//! Activations.

use super::prelude::*;

macro_rules! activation {
    ($($f:ident: $n:ident, $x:ident => $made:expr;)*) => {$(
        fn $f($n: &Node<'_>) -> Outcome {
            let $x = $n.x(0)?;
            $n.like($made?, 0)
        }
    )*};
}

activation! {
    relu: n, x => ops::maximum(x, 0);
    sigmoid: n, x => ops::sigmoid(x);
    softsign: n, x => ops::softsign(x);
    softplus: n, x => ops::softplus(x);
    mish: n, x => ops::mish(x);
    elu: n, x => ops::elu(x, n.float("alpha", 1.0)?);
    celu: n, x => ops::celu(x, n.float("alpha", 1.0)?);
    leaky_relu: n, x => ops::leaky_relu(x, n.float("alpha", 0.01)?);
    hard_sigmoid: n, x => hard_sigmoid_of(x, n.float("alpha", 0.2)?, n.float("beta", 0.5)?);
    hard_swish: n, x => ops::multiply(x, &hard_sigmoid_of(x, 1.0 / 6.0, 0.5)?);
    swish: n, x => ops::multiply(x, &ops::sigmoid(&ops::multiply(x, n.float("alpha", 1.0)?)?)?);
}

/// max(0, min(1, αx + β)).
pub fn hard_sigmoid_of(x: &Array, alpha: f64, beta: f64) -> cupola_core::Result<Array> {
    let line = ops::add(&ops::multiply(x, alpha)?, beta)?;
    ops::maximum(&ops::minimum(&line, 1.0)?, 0.0)
}

fn selu(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let alpha = n.float("alpha", 1.673_263_192_176_818_8)?;
    let gamma = n.float("gamma", 1.050_701_022_148_132_3)?;
    n.like(ops::multiply(&ops::elu(x, alpha)?, gamma)?, 0)
}

fn gelu(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let out = match n.text("approximate", "none")? {
        "none" => ops::gelu(x)?,
        "tanh" => ops::gelu_approx(x)?,
        other => return Err(Fault::invalid(format!("approximate '{other}' is not none or tanh"))),
    };
    n.like(out, 0)
}

fn prelu(n: &Node<'_>) -> Outcome {
    let (x, slope) = (n.x(0)?, n.x(1)?);
    // Before version 7 the slope of a channel lies along axis 1.
    let channels = n.version() < 7 && slope.rank() == 1 && slope.size() > 1 && x.rank() > 2;
    let slope = match channels {
        true => {
            let mut sizes = vec![1; x.rank() - 1];
            sizes[0] = slope.size();
            ops::reshape(slope, sizes)?
        }
        false => slope.clone(),
    };
    let out = ops::where_(&ops::less(x, 0)?, &ops::multiply(x, &slope)?, x)?;
    n.like(out, 0)
}

fn thresholded_relu(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let above = ops::greater(x, n.float("alpha", 1.0)?)?;
    n.like(ops::where_(&above, x, 0)?, 0)
}

fn shrink(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let (bias, lambda) = (n.float("bias", 0.0)?, n.float("lambd", 0.5)?);
    let dtype = x.dtype();
    let up = ops::astype(&ops::add(x, bias)?, dtype)?;
    let down = ops::astype(&ops::subtract(x, bias)?, dtype)?;
    let high = ops::where_(&ops::greater(x, lambda)?, &down, 0)?;
    n.like(ops::where_(&ops::less(x, -lambda)?, &up, &high)?, 0)
}

/// The axes that a softmax goes over; before version 13 all from one on.
fn over(n: &Node<'_>, rank: usize) -> Result<Vec<usize>, Fault> {
    match n.version() >= 13 {
        true => Ok(vec![n.axis("axis", -1, rank)?]),
        false => Ok((n.axis("axis", 1, rank.max(2))?..rank).collect()),
    }
}

fn softmax(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    n.like(ops::softmax(x, over(n, x.rank())?)?, 0)
}

fn log_softmax(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    n.like(ops::log_softmax(x, over(n, x.rank())?)?, 0)
}

fn hardmax(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axes = over(n, x.rank())?;
    // The axes, as one behind the others.
    let first = axes.first().copied().unwrap_or(0);
    let (flat, axis) = match n.version() >= 13 {
        true => (x.clone(), first as isize),
        false => {
            let rows: usize = x.shape()[..first].iter().product();
            let columns: usize = x.shape()[first..].iter().product();
            (ops::reshape(x, [rows, columns])?, 1)
        }
    };
    let best = ops::argmax(&flat, axis, true)?;
    let size = flat.shape()[axis as usize];
    let mut sizes = vec![1; flat.rank()];
    sizes[axis as usize] = size;
    let places = ops::reshape(&ops::arange_in(0, size, 1, DType::U32)?, sizes)?;
    let out = ops::astype(&ops::equal(&best, &places)?, x.dtype())?;
    n.like(ops::reshape(&out, &x.shape()[..])?, 0)
}

fn swiglu(n: &Node<'_>) -> Outcome {
    let (gate, x) = (n.x(0)?, n.x(1)?);
    let open = ops::sigmoid(&ops::multiply(gate, n.float("alpha", 1.0)?)?)?;
    n.like(ops::multiply(&ops::multiply(gate, &open)?, x)?, 0)
}

pub const OPS: &[Entry] = &[
    ("Celu", 12, celu),
    ("Elu", 1, elu),
    ("Gelu", 20, gelu),
    ("HardSigmoid", 1, hard_sigmoid),
    ("HardSwish", 14, hard_swish),
    ("Hardmax", 1, hardmax),
    ("LeakyRelu", 1, leaky_relu),
    ("LogSoftmax", 1, log_softmax),
    ("Mish", 18, mish),
    ("PRelu", 1, prelu),
    ("Relu", 1, relu),
    ("Selu", 1, selu),
    ("Shrink", 9, shrink),
    ("Sigmoid", 1, sigmoid),
    ("Softmax", 1, softmax),
    ("Softplus", 1, softplus),
    ("Softsign", 1, softsign),
    ("SwiGLU", 28, swiglu),
    ("Swish", 24, swish),
    ("ThresholdedRelu", 10, thresholded_relu),
];
