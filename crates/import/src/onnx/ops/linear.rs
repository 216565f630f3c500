//! Products of matrices.

use super::prelude::*;

fn matmul(n: &Node<'_>) -> Outcome {
    n.like(ops::matmul(n.x(0)?, n.x(1)?)?, 0)
}

/// x times a number, in x's dtype.
fn scaled(x: &Array, by: f64) -> Made {
    if by == 1.0 {
        return Ok(x.clone());
    }
    Ok(ops::astype(&ops::multiply(x, by)?, x.dtype())?)
}

fn gemm(n: &Node<'_>) -> Outcome {
    let turned = |x: &Array, turn: bool| match turn {
        true => ops::swapaxes(x, -1, -2),
        false => Ok(x.clone()),
    };
    let (a, b) = (n.x(0)?, n.x(1)?);
    if a.rank() != 2 || b.rank() != 2 {
        return Err(Fault::invalid(format!("{} and {} are no matrices", a.shape(), b.shape())));
    }
    let a = turned(a, n.flag("transA", false)?)?;
    let b = turned(b, n.flag("transB", false)?)?;
    let mut out = scaled(&ops::matmul(&a, &b)?, n.float("alpha", 1.0)?)?;
    if let Some(c) = n.maybe(2)? {
        out = ops::add(&out, &scaled(c, n.float("beta", 1.0)?)?)?;
    }
    n.like(out, 0)
}

fn einsum(n: &Node<'_>) -> Outcome {
    let equation: String = n.text("equation", "")?.split_whitespace().collect();
    n.like(ops::einsum(&equation, &n.all()?)?, 0)
}

pub const OPS: &[Entry] = &[("Einsum", 12, einsum), ("Gemm", 1, gemm), ("MatMul", 1, matmul)];
