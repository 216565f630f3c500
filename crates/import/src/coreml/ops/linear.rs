//! Products of matrices.

use super::prelude::*;

fn linear(n: &Node<'_>) -> Outcome {
    let w = n.x("weight")?;
    if w.rank() != 2 {
        return Err(Fault::invalid(format!("the weight {} is no matrix", w.shape())));
    }
    let y = ops::matmul(n.x("x")?, &ops::swapaxes(w, -1, -2)?)?;
    one(match n.maybe("bias")? {
        Some(bias) => ops::add(&y, bias)?,
        None => y,
    })
}

fn matmul(n: &Node<'_>) -> Outcome {
    let turned = |name: &str, flag: &str| -> Made {
        let x = n.x(name)?;
        match n.flag(flag, false)? && x.rank() > 1 {
            true => Ok(ops::swapaxes(x, -1, -2)?),
            false => Ok(x.clone()),
        }
    };
    one(ops::matmul(&turned("x", "transpose_x")?, &turned("y", "transpose_y")?)?)
}

fn einsum(n: &Node<'_>) -> Outcome {
    let equation: String = n.text("equation", "")?.split_whitespace().collect();
    one(ops::einsum(&equation, &n.all("values")?)?)
}

pub const OPS: &[Entry] = &[("einsum", einsum), ("linear", linear), ("matmul", matmul)];
