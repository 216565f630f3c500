//! Discrete Fourier transforms.
//!
//! A transform is a linear map of whole axes, so its derivative is the map itself, and what takes
//! cotangents back is its transpose: that of a complex transform is the same transform, those of
//! the two real ones are each other's but for the numbers that the half of a spectrum counts twice.

use super::batch::{behind, on_batch};
use super::record::{add, compare, iota, like, scale, select};
use super::{
    Accumulates, Argument, Avals, Batched, Binary, Compare, Diff, Facts, Linearity, Primitive,
    Sizes, Unary, expect_inputs, one,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Aval, Dims};

/// From what to what a transform goes, and the sign of its exponent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FftKind {
    /// `complex64` to `complex64`: yₖ = Σⱼ xⱼ·e^(−2πi·jk/n).
    Forward,
    /// The same with e^(+2πi·jk/n).
    Inverse,
    /// `float32` to the first n/2 + 1 numbers of [`FftKind::Forward`]: the others are their
    /// conjugates.
    Real,
    /// Such a half of m numbers to the `float32` of [`FftKind::Inverse`]: 2·(m − 1) of them, and one
    /// more where `odd`. Imaginary parts that a spectrum of real numbers does not have are not read:
    /// those of the first number and, of an even size, of the last.
    HalfComplex {
        /// Whether the result has an odd size.
        odd: bool,
    },
}

/// What a transform is multiplied with; n is the product of the sizes of its axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FftScale {
    /// 1.
    One,
    /// 1/√n: the transform keeps lengths.
    Root,
    /// 1/n.
    Whole,
}

impl FftScale {
    /// The factor for `n` numbers.
    pub fn factor(self, n: usize) -> f64 {
        match self {
            FftScale::One => 1.0,
            FftScale::Root => 1.0 / (n as f64).sqrt(),
            FftScale::Whole => 1.0 / n as f64,
        }
    }
}

/// A discrete Fourier transform along one axis or several.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fft {
    /// From what to what.
    pub kind: FftKind,
    /// The axes; one for the kinds with half a spectrum.
    pub axes: Dims,
    /// The factor.
    pub scale: FftScale,
}

impl FftKind {
    /// The name in errors and graphs.
    pub const fn name(self) -> &'static str {
        match self {
            FftKind::Forward => "fft",
            FftKind::Inverse => "ifft",
            FftKind::Real => "rfft",
            FftKind::HalfComplex { .. } => "irfft",
        }
    }

    /// The dtypes of input and output.
    pub const fn dtypes(self) -> (DType, DType) {
        match self {
            FftKind::Forward | FftKind::Inverse => (DType::C64, DType::C64),
            FftKind::Real => (DType::F32, DType::C64),
            FftKind::HalfComplex { .. } => (DType::C64, DType::F32),
        }
    }

    /// The size of an axis after the transform; `None` where there is none.
    fn output(self, size: usize) -> Option<usize> {
        let size = match self {
            FftKind::Forward | FftKind::Inverse => size,
            FftKind::Real => (size > 0).then(|| size / 2 + 1)?,
            FftKind::HalfComplex { odd } => size.checked_sub(1)?.checked_mul(2)? + usize::from(odd),
        };
        (size > 0).then_some(size)
    }
}

impl Primitive for Fft {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = self.name();
        expect_inputs(op, inputs, 1)?;
        let x = inputs[0];
        let (from, to) = self.kind.dtypes();
        if x.dtype != from {
            return Err(Error::dtype(op, format!("takes {from}, not {x}")));
        }
        let half = matches!(self.kind, FftKind::Real | FftKind::HalfComplex { .. });
        let repeated = (1..self.axes.len()).any(|i| self.axes[..i].contains(&self.axes[i]));
        if self.axes.is_empty() || repeated || half && self.axes.len() > 1 {
            return Err(Error::argument(op, format!("cannot go along axes {:?}", &self.axes[..])));
        }
        let mut shape = x.shape.clone();
        for &axis in &self.axes {
            if axis >= shape.rank() {
                return Err(Error::shape(op, format!("axis {axis} is not in {x}")));
            }
            shape.0[axis] = self.kind.output(shape[axis]).ok_or_else(|| {
                Error::shape(op, format!("axis {axis} of {x} leaves nothing to transform"))
            })?;
        }
        one(Aval { shape, dtype: to })
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Linear { linearity: Linearity::Joint, operand: |_, _| true, transpose }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(Fft { axes: behind(&self.axes), ..self.clone() }, inputs, size)
    }

    /// 5·n·log₂ n of n complex numbers, as is usual to count; half of it where one side is real.
    fn operations(&self, inputs: &[&Aval], outputs: &[&Aval]) -> f64 {
        let wide =
            if inputs[0].shape.size() > outputs[0].shape.size() { inputs[0] } else { outputs[0] };
        let length: f64 = self.axes.iter().map(|&axis| wide.shape[axis].max(1) as f64).product();
        let both = inputs[0].dtype == outputs[0].dtype;
        (if both { 5.0 } else { 2.5 }) * wide.shape.size() as f64 * length.log2()
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Wide,
            sizes: Sizes::Inferred,
        }
    }
}

/// The matrix of a complex transform is its own transpose. Cotangents pair with tangents as
/// Re(c·t): with the half of a spectrum, each number between the ends stands for itself and for its
/// conjugate.
fn transpose(fft: &Fft, inputs: &[Array], _: usize, ct: &Array) -> Result<Option<Array>> {
    let axis = fft.axes[0];
    let conjugate = |x: &Array| Array::apply(Unary::Conj, &[x]);
    Ok(Some(match fft.kind {
        FftKind::Forward | FftKind::Inverse => Array::apply(fft.clone(), &[ct])?,
        FftKind::Real => {
            let size = inputs[0].shape()[axis];
            let half = between(&conjugate(ct)?, axis, size, |x| scale(x, 0.5))?;
            let kind = FftKind::HalfComplex { odd: size % 2 == 1 };
            Array::apply(Fft { kind, ..fft.clone() }, &[&half])?
        }
        FftKind::HalfComplex { .. } => {
            let spectrum = Array::apply(Fft { kind: FftKind::Real, ..fft.clone() }, &[ct])?;
            let size = ct.shape()[axis];
            between(&conjugate(&spectrum)?, axis, size, |x| add(x, x))?
        }
    }))
}

/// Half a spectrum of `size` numbers along `axis`, with `f` of those between its ends: the first and,
/// of an even size, the last stand for themselves alone.
fn between(
    half: &Array,
    axis: usize,
    size: usize,
    f: impl Fn(&Array) -> Result<Array>,
) -> Result<Array> {
    let place = iota(half.shape().clone(), DType::U32, axis)?;
    let from = compare(Compare::Ge, &place, &like(&place, 1.0))?;
    let below = compare(Compare::Lt, &place, &like(&place, size.div_ceil(2) as f64))?;
    select(&Array::apply(Binary::BitAnd, &[&from, &below])?, &f(half)?, half)
}
