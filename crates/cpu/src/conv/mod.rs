//! Convolution of any number of spatial dimensions: forward, input gradient, weight gradient.
//!
//! Arrays are channels-last and contiguous: x `[batch, input.., in_channels]`, w
//! `[out_channels, kernel.., in_channels / groups]`, y `[batch, output.., out_channels]`.

mod naive;
mod shape;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::simd::{Element, Out};

pub(crate) use shape::{Axis, Shape};

/// Sizes and parameters of a convolution.
///
/// `y[n, o, co] = Σ x~[n, o·stride + k·dilation − pad_lo, g·Cg + ci] · w[co, k, ci]`, where `x~` is
/// `x` with `input_dilation − 1` zeros between its elements, and `flip` reverses `k`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ConvProblem {
    /// Images.
    pub batch: usize,
    /// Channel groups; divides both channel counts.
    pub groups: usize,
    /// Channels of x.
    pub in_channels: usize,
    /// Channels of y.
    pub out_channels: usize,
    /// Spatial sizes of x.
    pub input: Vec<usize>,
    /// Spatial sizes of w.
    pub kernel: Vec<usize>,
    /// Spatial sizes of y.
    pub output: Vec<usize>,
    /// Steps between windows.
    pub stride: Vec<usize>,
    /// Zeros before and after each spatial dimension.
    pub padding: Vec<(usize, usize)>,
    /// Steps between taps.
    pub dilation: Vec<usize>,
    /// Steps between elements of x.
    pub input_dilation: Vec<usize>,
    /// Reverses the taps: convolution instead of correlation.
    pub flip: bool,
}

/// Which of the three products of a convolution to compute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// `(x, w) -> y`
    Forward,
    /// `(dy, w) -> dx`
    InputGrad,
    /// `(x, dy) -> dw`
    WeightGrad,
}

/// Called once for each part of the output, when the part is final and still in cache.
pub type Epilogue<'a> = Option<&'a (dyn Fn(Range<usize>) + Sync)>;

impl ConvProblem {
    /// Elements of x.
    pub fn input_len(&self) -> usize {
        self.batch * self.input.iter().product::<usize>() * self.in_channels
    }

    /// Elements of w.
    pub fn weight_len(&self) -> usize {
        let taps = self.kernel.iter().product::<usize>();
        self.out_channels * taps * (self.in_channels / self.groups)
    }

    /// Elements of y.
    pub fn output_len(&self) -> usize {
        self.batch * self.output.iter().product::<usize>() * self.out_channels
    }
}

/// Computes one role of a convolution, overwriting `out`.
pub fn conv<T: Element>(
    p: &ConvProblem,
    role: Role,
    a: &[T],
    b: &[T],
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
) {
    let (x, w, y) = (p.input_len(), p.weight_len(), p.output_len());
    let lens = match role {
        Role::Forward => [x, w, y],
        Role::InputGrad => [y, w, x],
        Role::WeightGrad => [x, y, w],
    };
    assert_eq!([a.len(), b.len(), out.len()], lens, "conv {role:?}: lengths of {p:?}");
    if out.len() == 0 {
        return;
    }
    match role {
        Role::Forward => naive::forward(&Shape::forward(p), a, b, out, epilogue),
        Role::InputGrad => naive::forward(&Shape::input_grad(p), a, b, out, epilogue),
        Role::WeightGrad => naive::weight_grad(&Shape::forward(p), a, b, out, epilogue),
    }
}
