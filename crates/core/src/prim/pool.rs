//! Pooling over windows of spatial axes, and its gradients.

use super::batch::on_merged;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Linearity, Primitive, Sizes, expect_inputs,
    one, same_dtypes,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Aval, Dims, Shape, extent};

/// What a pooling computes. x is `[N, input.., C]`, y is `[N, output.., C]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PoolRole {
    /// Input x; gives the largest of each window as y. Padding is the least value. NaN wins.
    Max,
    /// Inputs x, t (of x's shape); gives t where x has each window's first largest value, as y.
    MaxGather,
    /// Inputs x, dy; adds each dy at the place of its window's first largest value, as x.
    MaxScatter,
    /// Input x; gives the sum of each window as y. Padding is 0.
    Sum,
    /// Input dy; adds each dy to every place of its window, as x.
    SumTranspose,
}

impl PoolRole {
    /// The name in errors and graphs.
    pub const fn name(self) -> &'static str {
        match self {
            PoolRole::Max => "max_pool",
            PoolRole::MaxGather => "max_pool_gather",
            PoolRole::MaxScatter => "max_pool_scatter",
            PoolRole::Sum => "sum_pool",
            PoolRole::SumTranspose => "sum_pool_transpose",
        }
    }
}

/// A pooling over windows of the spatial axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// What is computed.
    pub role: PoolRole,
    /// Spatial sizes of x.
    pub input: Dims,
    /// The window's size along each spatial axis.
    pub window: Dims,
    /// Steps between windows along each spatial axis.
    pub stride: Dims,
    /// Padding before and after each spatial axis.
    pub padding: Vec<(usize, usize)>,
    /// Steps between the elements of a window along each spatial axis.
    pub dilation: Dims,
}

impl Pool {
    /// The same pooling, computing something else.
    pub fn with_role(&self, role: PoolRole) -> Pool {
        Pool { role, ..self.clone() }
    }

    /// From a window's first element to behind its last along a spatial axis.
    pub fn span(&self, axis: usize) -> usize {
        extent(self.window[axis], self.dilation[axis], (0, 0)).unwrap_or(usize::MAX)
    }

    /// The spatial sizes of y, or an error where the window does not fit.
    pub fn output(&self) -> Result<Dims> {
        let op = self.role.name();
        let rank = self.input.len();
        let lengths =
            [self.window.len(), self.stride.len(), self.padding.len(), self.dilation.len()];
        if rank == 0 || lengths.iter().any(|&l| l != rank) {
            return Err(Error::argument(
                op,
                format!(
                    "window, stride, padding and dilation do not all have {rank} entries: {self:?}"
                ),
            ));
        }
        (0..rank)
            .map(|i| {
                if self.dilation[i] > isize::MAX as usize {
                    return Err(Error::argument(
                        op,
                        format!("dilation {:?} is larger than an address space", self.dilation),
                    ));
                }
                let Some(padded) = extent(self.input[i], 1, self.padding[i]) else {
                    return Err(Error::shape(
                        op,
                        format!(
                            "input {:?} with padding {:?} is larger than an address space",
                            self.input, self.padding
                        ),
                    ));
                };
                if [self.stride[i], self.window[i], self.dilation[i]].contains(&0) {
                    return Err(Error::argument(
                        op,
                        format!(
                            "window {:?}, stride {:?} and dilation {:?} must be at least 1",
                            self.window, self.stride, self.dilation
                        ),
                    ));
                }
                let Some(room) = padded.checked_sub(self.span(i)) else {
                    return Err(Error::shape(
                        op,
                        format!(
                            "window {:?} of dilation {:?} is larger than the padded input (input {:?}, padding {:?})",
                            self.window, self.dilation, self.input, self.padding
                        ),
                    ));
                };
                Ok(room / self.stride[i] + 1)
            })
            .collect()
    }
}

impl Primitive for Pool {
    fn name(&self) -> &'static str {
        self.role.name()
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = self.role.name();
        let count = match self.role {
            PoolRole::Max | PoolRole::Sum | PoolRole::SumTranspose => 1,
            PoolRole::MaxGather | PoolRole::MaxScatter => 2,
        };
        expect_inputs(op, inputs, count)?;
        same_dtypes(op, inputs)?;
        if inputs[0].dtype == DType::Bool || inputs[0].dtype.is_complex() {
            return Err(Error::dtype(op, format!("does not take {}", inputs[0])));
        }
        let output = self.output()?;
        let first = inputs[0];
        let rank = self.input.len() + 2;
        if first.shape.rank() != rank {
            return Err(Error::shape(
                op,
                format!("{first} does not have {} spatial axes", rank - 2),
            ));
        }
        let spaced = |space: &Dims| -> Shape {
            let (n, c) = (first.shape[0], first.shape[rank - 1]);
            std::iter::once(n).chain(space.iter().copied()).chain([c]).collect()
        };
        let (x, y) = (spaced(&self.input), spaced(&output));
        let (wants, gives): (&[&Shape], &Shape) = match self.role {
            PoolRole::Max | PoolRole::Sum => (&[&x], &y),
            PoolRole::MaxGather => (&[&x, &x], &y),
            PoolRole::MaxScatter => (&[&x, &y], &x),
            PoolRole::SumTranspose => (&[&y], &x),
        };
        if inputs.iter().zip(wants).any(|(have, want)| have.shape != **want) {
            return Err(Error::shape(op, format!("inputs {inputs:?} are not of shapes {wants:?}")));
        }
        one(Aval { shape: gives.clone(), dtype: first.dtype })
    }

    fn diff(&self) -> Diff<Self> {
        match self.role {
            PoolRole::Max => Diff::Custom {
                jvp: |pool, inputs, _, tangents| {
                    let gather = |t| pool.at_maxima(PoolRole::MaxGather, &inputs[0], t);
                    Ok(vec![tangents[0].as_ref().map(gather).transpose()?])
                },
                vjp: |pool, r| {
                    let scatter = |ct| pool.at_maxima(PoolRole::MaxScatter, &r.inputs[0], ct);
                    Ok(vec![r.cotangents[0].as_ref().map(scatter).transpose()?])
                },
            },
            PoolRole::MaxGather | PoolRole::MaxScatter => Diff::Linear {
                linearity: Linearity::Joint,
                operand: |_, operand| operand == 1,
                transpose: |pool, inputs, _, ct| {
                    let gathers = pool.role == PoolRole::MaxGather;
                    let role = if gathers { PoolRole::MaxScatter } else { PoolRole::MaxGather };
                    Ok(Some(pool.at_maxima(role, &inputs[0], ct)?))
                },
            },
            PoolRole::Sum | PoolRole::SumTranspose => Diff::Linear {
                linearity: Linearity::Joint,
                operand: |_, _| true,
                transpose: |pool, _, _, ct| {
                    let sums = pool.role == PoolRole::Sum;
                    let role = if sums { PoolRole::SumTranspose } else { PoolRole::Sum };
                    Ok(Some(Array::apply(pool.with_role(role), &[ct])?))
                },
            },
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_merged(self.clone(), inputs, size)
    }

    fn operations(&self, inputs: &[&Aval], outputs: &[&Aval]) -> f64 {
        let windows = match self.role {
            PoolRole::Max | PoolRole::MaxGather | PoolRole::Sum => outputs[0],
            PoolRole::MaxScatter => inputs[1],
            PoolRole::SumTranspose => inputs[0],
        };
        windows.shape.size() as f64 * self.window.iter().product::<usize>() as f64
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: true,
            accumulates: Accumulates::Wide,
            sizes: Sizes::Fixed,
        }
    }
}

impl Pool {
    /// `t` taken from, or added at, the places of x's maxima.
    fn at_maxima(&self, role: PoolRole, x: &Array, t: &Array) -> Result<Array> {
        Array::apply(self.with_role(role), &[x, t])
    }
}
