//! General convolution over any number of spatial axes, and its two gradients.
//!
//! The three roles are the transposes of one trilinear form, so each one's derivatives are the
//! other two, to any order.

mod batch;

use super::record::cast;
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Linearity, Primitive, Sizes, expect_inputs,
    one, same_dtypes,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::precision::MatmulPrecision;
use crate::shape::{Aval, Dims, Shape, extent};

/// Which of its three operands a convolution computes from the other two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConvRole {
    /// Inputs x, w; gives y.
    Forward,
    /// Inputs dy, w; gives the gradient by x: a transposed convolution.
    InputGrad,
    /// Inputs x, dy; gives the gradient by w.
    WeightGrad,
}

impl ConvRole {
    /// The name in errors and graphs.
    pub const fn name(self) -> &'static str {
        match self {
            ConvRole::Forward => "conv",
            ConvRole::InputGrad => "conv_input_grad",
            ConvRole::WeightGrad => "conv_weight_grad",
        }
    }

    /// The two inputs and the result of this role as x, w and y; or x, w and y as inputs and result,
    /// since each role exchanges two of them at most.
    pub fn arranged<T>(self, operands: [T; 3]) -> [T; 3] {
        let [a, b, c] = operands;
        match self {
            ConvRole::Forward => [a, b, c],
            ConvRole::InputGrad => [c, b, a],
            ConvRole::WeightGrad => [a, c, b],
        }
    }
}

/// A convolution of x `[N, input.., C]` with w `[O, kernel.., C/groups]` to y `[N, output.., O]`:
///
/// y\[n, o, co\] = Σ x̃\[n, o·stride + k·dilation − low, ci\] · w\[co, k, ci\]
///
/// over k and the input channels of co's group. x̃ is x with `input_dilation − 1` zeros between
/// neighbours and zeros outside; with `flip` the kernel runs backwards along every spatial axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Conv {
    /// What is computed.
    pub role: ConvRole,
    /// Spatial sizes of x.
    pub input: Dims,
    /// Spatial sizes of w.
    pub kernel: Dims,
    /// Steps between outputs along each spatial axis.
    pub stride: Dims,
    /// Zeros before and after each spatial axis of the dilated input.
    pub padding: Vec<(usize, usize)>,
    /// Steps between kernel elements along each spatial axis.
    pub dilation: Dims,
    /// Steps between input elements along each spatial axis.
    pub input_dilation: Dims,
    /// Channels are split into this many independent groups.
    pub groups: usize,
    /// Whether the kernel runs backwards.
    pub flip: bool,
    /// The dtype of the sums.
    pub accumulate: DType,
    /// The dtype of the output.
    pub result: DType,
    /// How factors of `float32` may be rounded.
    pub precision: MatmulPrecision,
}

impl Conv {
    /// The same convolution, computing another operand.
    pub fn with_role(&self, role: ConvRole) -> Conv {
        Conv { role, ..self.clone() }
    }

    /// The spatial sizes of y, or an error where the kernel does not fit.
    pub fn output(&self) -> Result<Dims> {
        let op = self.role.name();
        let rank = self.input.len();
        let lengths = [
            self.kernel.len(),
            self.stride.len(),
            self.padding.len(),
            self.dilation.len(),
            self.input_dilation.len(),
        ];
        if rank == 0 || lengths.iter().any(|&l| l != rank) {
            return Err(Error::argument(
                op,
                format!(
                    "stride, padding, dilation and kernel do not all have {rank} entries: {self:?}"
                ),
            ));
        }
        let positive = |dims: &Dims| dims.iter().all(|&d| d > 0);
        if !positive(&self.stride) || !positive(&self.dilation) || !positive(&self.input_dilation) {
            return Err(Error::argument(
                op,
                format!(
                    "stride {:?}, dilation {:?} and input dilation {:?} must be at least 1",
                    self.stride, self.dilation, self.input_dilation
                ),
            ));
        }
        (0..rank)
            .map(|i| {
                if self.kernel[i] == 0 {
                    return Err(Error::shape(op, format!("kernel {:?} is empty", self.kernel)));
                }
                let input = extent(self.input[i], self.input_dilation[i], self.padding[i]);
                let reach = extent(self.kernel[i], self.dilation[i], (0, 0));
                let (Some(padded), Some(reach)) = (input, reach) else {
                    return Err(Error::shape(
                        op,
                        format!(
                            "input {:?} with padding {:?} and dilation {:?}, or kernel {:?} with \
                             dilation {:?}, is larger than an address space",
                            self.input,
                            self.padding,
                            self.input_dilation,
                            self.kernel,
                            self.dilation
                        ),
                    ));
                };
                if reach > padded {
                    return Err(Error::shape(
                        op,
                        format!(
                            "kernel {:?} with dilation {:?} is larger than the padded input \
                             (input {:?}, padding {:?})",
                            self.kernel, self.dilation, self.input, self.padding
                        ),
                    ));
                }
                Ok((padded - reach) / self.stride[i] + 1)
            })
            .collect()
    }
}

impl Primitive for Conv {
    fn name(&self) -> &'static str {
        self.role.name()
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = self.role.name();
        expect_inputs(op, inputs, 2)?;
        same_dtypes(op, inputs)?;
        let (a, b) = (inputs[0], inputs[1]);
        if !a.dtype.is_float() {
            return Err(Error::dtype(op, format!("does not take {a} and {b}")));
        }
        let output = self.output()?;
        let rank = self.input.len() + 2;
        if a.shape.rank() != rank || b.shape.rank() != rank {
            return Err(Error::shape(
                op,
                format!("{a} and {b} do not have {} spatial axes", rank - 2),
            ));
        }
        let spatial = |v: &Aval, want: &Dims| v.shape[1..rank - 1] == want[..];
        let (first, last) = (|v: &Aval| v.shape[0], |v: &Aval| v.shape[rank - 1]);
        let groups = self.groups;
        let mismatch = || {
            Error::shape(
                op,
                format!(
                    "{a} and {b} do not fit input {:?}, kernel {:?}, output {:?}, groups {groups}",
                    self.input, self.kernel, output
                ),
            )
        };
        let build = |lead: usize, space: &Dims, trail: usize| -> Shape {
            std::iter::once(lead).chain(space.iter().copied()).chain([trail]).collect()
        };
        if groups == 0 {
            return Err(Error::argument(op, "groups is 0"));
        }
        let shape = match self.role {
            ConvRole::Forward => {
                if !spatial(a, &self.input) || !spatial(b, &self.kernel) {
                    return Err(mismatch());
                }
                let (o, per_group) = (first(b), last(b));
                if last(a) != per_group.saturating_mul(groups) || o % groups != 0 {
                    return Err(Error::shape(
                        op,
                        format!(
                            "weight expects {} input channels in {groups} groups, input has {} \
                             (input {a}, weight {b})",
                            per_group.saturating_mul(groups),
                            last(a)
                        ),
                    ));
                }
                build(first(a), &output, o)
            }
            ConvRole::InputGrad => {
                if !spatial(a, &output) || !spatial(b, &self.kernel) {
                    return Err(mismatch());
                }
                if last(a) != first(b) || first(b) % groups != 0 {
                    return Err(mismatch());
                }
                build(first(a), &self.input, last(b).saturating_mul(groups))
            }
            ConvRole::WeightGrad => {
                if !spatial(a, &self.input) || !spatial(b, &output) || first(a) != first(b) {
                    return Err(mismatch());
                }
                if last(a) % groups != 0 || last(b) % groups != 0 {
                    return Err(mismatch());
                }
                build(last(b), &self.kernel, last(a) / groups)
            }
        };
        one(Aval { shape, dtype: self.result })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Linear { linearity: Linearity::Each, operand: |_, _| true, transpose }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        batch::vmap(self, inputs, size)
    }

    fn operations(&self, inputs: &[&Aval], outputs: &[&Aval]) -> f64 {
        let [_, w, y] = self.role.arranged([inputs[0], inputs[1], outputs[0]]);
        let channels = w.shape[0].max(1);
        2.0 * y.shape.size() as f64 * (w.shape.size() / channels) as f64
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: true,
            accumulates: Accumulates::In(self.accumulate),
            sizes: Sizes::Fixed,
        }
    }
}

/// The cotangent of one operand is the convolution whose role computes it, on the cotangent in the
/// place of the output. Where the result is wider than the operands, it runs at the wider dtype.
fn transpose(conv: &Conv, inputs: &[Array], operand: usize, ct: &Array) -> Result<Option<Array>> {
    let narrow = inputs[0].dtype();
    let wide = narrow.promote(ct.dtype());
    // The roles that give x, w and y.
    let roles = [ConvRole::InputGrad, ConvRole::WeightGrad, ConvRole::Forward];
    let role = conv.role.arranged(roles)[operand];
    let named = conv.role.arranged([&inputs[0], &inputs[1], ct]);
    let [first, second, _] = role.arranged(named);
    let mut product = conv.with_role(role);
    product.result = wide;
    if wide != narrow {
        product.accumulate = wide.accumulator();
    }
    let gradient = Array::apply(product, &[&cast(first, wide)?, &cast(second, wide)?])?;
    Ok(Some(cast(&gradient, narrow)?))
}
