//! Normalization of channels over a batch.

use smallvec::SmallVec;

use super::Compose;
use crate::array::Array;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::prim::call::as_one::as_one;
use crate::prim::record::{add, broadcast, cast, mul, scale, shift, sub, sum};
use crate::prim::{Avals, Reverse, Tangents, Unary, expect_inputs};
use crate::shape::{Aval, Dims, Shape};

/// Channels with mean 0 and variance 1 over a batch, times a weight, plus a bias.
///
/// Inputs: x `[.., C]` of floats; weight and bias `[C]` of the dtype of its sums. Outputs: one of x's shape
/// and dtype; the mean and the variance of each channel, `[C]`, of the dtype of the sums.
///
/// Its derivative, with n elements a channel, x̂ the normalized ones and σ = √(variance + ε), is
/// weight/σ·(ct − Σct/n − x̂·Σ(ct·x̂)/n): S. Ioffe, C. Szegedy, *Batch normalization*, 2015, section 3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BatchNorm {
    /// ε, which is added to the variance.
    pub eps: Scalar,
}

/// What is folded away: all axes but the last.
fn folded(shape: &Shape) -> SmallVec<[usize; 4]> {
    (0..shape.rank() - 1).collect()
}

/// The mean over a channel's elements.
fn mean(x: &Array) -> Result<Array> {
    let shape = &x.aval().shape;
    let count = shape.size() / shape[shape.rank() - 1].max(1);
    scale(&sum(x, &folded(shape))?, 1.0 / count as f64)
}

impl BatchNorm {
    /// 1 over the deviation.
    fn inverse(&self, variance: &Array) -> Result<Array> {
        Array::apply(Unary::Rsqrt, &[&shift(variance, self.eps.to_f64())?])
    }
}

impl Compose for BatchNorm {
    fn name(&self) -> &'static str {
        "batch_norm"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let name = self.name();
        expect_inputs(name, inputs, 3)?;
        let [x, weight, bias] = [inputs[0], inputs[1], inputs[2]];
        let wide = x.dtype.accumulator();
        if !x.dtype.is_float() || [weight, bias].iter().any(|given| given.dtype != wide) {
            return Err(Error::dtype(
                name,
                format!("takes floats, and a weight and bias of {wide}, not {x}, {weight}, {bias}"),
            ));
        }
        let fits = |given: &Aval| given.shape.rank() == 1 && given.shape.last() == x.shape.last();
        if x.shape.rank() == 0 || !fits(weight) || !fits(bias) {
            return Err(Error::shape(
                name,
                format!("weight {weight} and bias {bias} are not one for each channel of {x}"),
            ));
        }
        let channel = Aval { shape: weight.shape.clone(), dtype: wide };
        Ok(vec![x.clone(), channel.clone(), channel].into())
    }

    fn operations(&self, inputs: &[&Aval], _: &[&Aval]) -> f64 {
        // Two sums and one map of a few instructions.
        8.0 * inputs[0].shape.size() as f64
    }

    fn body(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let [x, weight, bias] = [&inputs[0], &inputs[1], &inputs[2]];
        let shape = &x.aval().shape;
        let each = |channel: &Array| broadcast(channel, shape);
        let wide = cast(x, weight.dtype())?;
        let average = mean(&wide)?;
        let centred = sub(&wide, &each(&average)?)?;
        let variance = mean(&mul(&centred, &centred)?)?;
        let factor = mul(&self.inverse(&variance)?, weight)?;
        let y = add(&mul(&centred, &each(&factor)?)?, &each(bias)?)?;
        Ok(vec![cast(&y, x.dtype())?, average, variance])
    }

    fn vjp(&self, r: &Reverse<'_>) -> Result<Option<Tangents>> {
        let (Some(ct), None, None) = (&r.cotangents[0], &r.cotangents[1], &r.cotangents[2]) else {
            return Ok(None);
        };
        let given = [&r.inputs[0], &r.inputs[1], &r.outputs[1], &r.outputs[2], ct];
        if given.iter().any(|array| array.is_symbolic()) {
            return self.cotangents(given, r.wanted[0]).map(Some);
        }
        // Each is a node of its own: the large one is not kept for the sake of the others.
        let one = |index: usize| {
            if !r.wanted[index] {
                return Ok(None);
            }
            let parameters = [self.eps.to_f64().to_bits(), index as u64];
            as_one("batch_norm_grad", &parameters, &given, |x| {
                let all = self.cotangents([&x[0], &x[1], &x[2], &x[3], &x[4]], index == 0)?;
                all.into_iter()
                    .nth(index)
                    .flatten()
                    .ok_or_else(|| Error::argument("batch_norm", "has a cotangent for each input"))
            })
            .map(Some)
        };
        Ok(Some(Tangents::from_iter([one(0)?, one(1)?, one(2)?])))
    }
}

impl BatchNorm {
    /// The cotangents of x, where it is asked for, weight and bias, from x, weight, mean, variance and the cotangent.
    fn cotangents(
        &self,
        [x, weight, average, variance, ct]: [&Array; 5],
        of_x: bool,
    ) -> Result<Tangents> {
        let shape = &x.aval().shape;
        let each = |channel: &Array| broadcast(channel, shape);
        let wide = weight.dtype();
        let ct = cast(ct, wide)?;
        let inverse = self.inverse(variance)?;
        let normal = mul(&sub(&cast(x, wide)?, &each(average)?)?, &each(&inverse)?)?;
        let axes: Dims = folded(shape);
        let total = sum(&ct, &axes)?;
        let slope = sum(&mul(&ct, &normal)?, &axes)?;
        let of_x = match of_x {
            false => None,
            true => {
                let share = 1.0 / (shape.size() / shape[shape.rank() - 1].max(1)) as f64;
                let (total, slope) = (scale(&total, share)?, scale(&slope, share)?);
                let along = mul(&normal, &each(&slope)?)?;
                let left = sub(&sub(&ct, &each(&total)?)?, &along)?;
                let factor = mul(&inverse, weight)?;
                Some(cast(&mul(&left, &each(&factor)?)?, x.dtype())?)
            }
        };
        Ok(Tangents::from_iter([of_x, Some(slope), Some(total)]))
    }
}
