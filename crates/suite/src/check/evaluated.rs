//! Whether a result was computed before what follows it changes no bit.

use cupola_core::graph::Node;
use cupola_core::prim::{Op, ReduceKind};
use cupola_core::{Array, DType, Result, eval, ops};

use super::{Case, hosts, kernels_are_cheap, same};

/// The sample in the middle of a chain, as one graph and with every array evaluated at once.
pub fn evaluated(case: &Case<'_>) -> Result<()> {
    let inputs = case.arrays()?;
    let ends = chain(case, &inputs, &|_| Ok(()))?;
    // Together, so that nobody else holds what is between.
    eval(&ends)?;
    let whole = hosts(&ends)?;
    let step = hosts(&chain(case, &inputs, &|x| x.eval())?)?;
    for (n, (got, want)) in whole.iter().zip(&step).enumerate() {
        same(&format!("end {n}, not evaluated"), got, want)?;
    }
    Ok(())
}

/// Whether it is checked of an op with inputs and outputs of these dtypes: where kernels take long to
/// make few dtypes stand for all.
pub fn holds(mut dtypes: impl Iterator<Item = DType>) -> bool {
    let stands_for_all =
        |dtype| matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::I32);
    kernels_are_cheap() || dtypes.any(stands_for_all)
}

/// Whether the order of its additions may depend on what it reads.
fn sums_floats(case: &Case<'_>) -> bool {
    is_sum(&case.op) && case.inputs[0].aval.dtype.is_inexact()
}

fn is_sum(op: &Op) -> bool {
    matches!(op, Op::Reduce(r) if matches!(r.kind, ReduceKind::Sum | ReduceKind::Prod))
}

/// Whether it is of several steps and adds up floats in one of them: the order of additions within a step is the same
/// on the CPU alone, whatever else the kernel does.
pub fn orders_sums(case: &Case<'_>) -> bool {
    matches!(case.op, Op::Call(_)) && !kernels_are_cheap() && has_sum(&case.op)
}

fn has_sum(op: &Op) -> bool {
    let of_floats = |node: &Node| node.outputs.iter().any(|output| output.dtype.is_inexact());
    match op {
        Op::Call(call) => call.body.nodes.iter().any(|node| of_floats(node) && has_sum(&node.op)),
        op => is_sum(op),
    }
}

/// What the sample gives for inputs that were computed, and what is computed of that: it would show
/// digits that the dtype has not. `done` sees each array as soon as it is recorded.
fn chain(
    case: &Case<'_>,
    inputs: &[Array],
    done: &dyn Fn(&Array) -> Result<()>,
) -> Result<Vec<Array>> {
    let step = |x: Result<Array>| -> Result<Array> {
        let x = x?;
        done(&x)?;
        Ok(x)
    };
    let mut before = Vec::new();
    for x in inputs {
        let x = if x.dtype().is_inexact() { step(ops::multiply(x, 0.9))? } else { x.clone() };
        if sums_floats(case) {
            x.eval()?;
        }
        before.push(x);
    }
    let mut ends = Vec::new();
    for y in case.run(&before)? {
        done(&y)?;
        if y.dtype() == DType::Bool {
            ends.push(step(ops::logical_not(&y))?);
            continue;
        }
        if !y.dtype().is_inexact() {
            ends.push(step(ops::subtract(&step(ops::multiply(&y, 3))?, &y))?);
            continue;
        }
        ends.push(step(ops::subtract(&step(ops::multiply(&y, 1.1))?, &y))?);
        if y.dtype().is_float() {
            let wide = if y.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
            ends.push(step(ops::multiply(&step(ops::astype(&y, wide))?, 3.0))?);
            let most = step(ops::multiply(&y, 1.1))?;
            if most.size() > 0 {
                ends.push(step(ops::max(&most, (), false))?);
            }
        }
        // Once more on what it gave, where that fits.
        if case.inputs.first().is_some_and(|x| x.aval == *y.aval()) {
            let mut again = before.clone();
            again[0] = y;
            for z in case.run(&again)? {
                done(&z)?;
                ends.push(z);
            }
        }
    }
    Ok(ends)
}
