//! Products with a quantized matrix.

use super::Compose;
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{self, Quantization, Quantized};
use crate::precision::MatmulPrecision;
use crate::prim::{Avals, Batched, Tangents, expect_inputs, one};
use crate::shape::Aval;

/// `x` by a quantized matrix, or by its transpose.
///
/// Inputs: x `[.., K]` of floats; words `uint32[R, C·bits/32]`; scales and biases `[R, C/group]` of x's
/// dtype. Output: `[.., C]`, where K is R, or transposed `[.., R]`, where it is C.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QuantizedDot {
    /// How many neighbours of a row share a scale and a bias.
    pub group_size: usize,
    /// Bits of an element.
    pub bits: usize,
    /// Whether to multiply by the transpose.
    pub transpose: bool,
    /// How factors of `float32` may be rounded.
    pub precision: MatmulPrecision,
}

impl QuantizedDot {
    /// Which input is the packed words.
    pub(crate) const WORDS: usize = 1;

    /// The error of a derivative by packed words, as in MLX: nobody means that.
    pub(crate) fn refuse_words() -> Error {
        Error::NoDerivative {
            op: "quantized_matmul",
            detail: "there is no derivative by quantized weights: freeze them".to_owned(),
        }
    }
}

impl Compose for QuantizedDot {
    fn name(&self) -> &'static str {
        "quantized_matmul"
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let name = self.name();
        expect_inputs(name, inputs, 4)?;
        let [x, words, scales, biases] = [inputs[0], inputs[1], inputs[2], inputs[3]];
        let floats = x.dtype.is_float() && scales.dtype == x.dtype && biases.dtype == x.dtype;
        if !floats || words.dtype != DType::U32 {
            return Err(Error::dtype(
                name,
                format!("takes floats of one dtype and uint32 words, not {x}, {words}, {scales}"),
            ));
        }
        let fits = x.shape.rank() >= 2
            && words.shape.rank() == 2
            && scales.shape.rank() == 2
            && scales.shape == biases.shape
            && scales.shape[0] == words.shape[0]
            && words.shape[1].checked_mul(32).is_some_and(|bits| {
                scales.shape[1].checked_mul(self.group_size * self.bits) == Some(bits)
            });
        let (rows, columns) = match fits {
            true => (words.shape[0], scales.shape[1] * self.group_size),
            false => (0, 0),
        };
        let (terms, width) = if self.transpose { (columns, rows) } else { (rows, columns) };
        if !fits || x.shape[x.shape.rank() - 1] != terms {
            return Err(Error::shape(
                name,
                format!(
                    "{x} and words {words} with scales {scales} and biases {biases} do not fit {self:?}"
                ),
            ));
        }
        let mut shape = x.shape.clone();
        let last = shape.rank() - 1;
        shape.0[last] = width;
        one(Aval { shape, dtype: x.dtype })
    }

    fn operations(&self, inputs: &[&Aval], outputs: &[&Aval]) -> f64 {
        let terms = inputs[0].shape.last().map_or(0, |&terms| terms);
        2.0 * outputs[0].shape.size() as f64 * terms as f64
    }

    fn body(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let how = Quantization { group_size: self.group_size, bits: self.bits };
        let [x, words, scales, biases] = [0, 1, 2, 3].map(|n: usize| inputs[n].clone());
        let w = ops::dequantize(&Quantized { words, scales, biases }, how)?;
        let w = if self.transpose { ops::matrix_transpose(&w)? } else { w };
        Ok(vec![ops::matmul_in(&x, &w, self.precision)?])
    }

    fn jvp(
        &self,
        _: &[Array],
        _: &[Array],
        tangents: &[Option<Array>],
    ) -> Result<Option<Tangents>> {
        match tangents[QuantizedDot::WORDS] {
            Some(_) => Err(QuantizedDot::refuse_words()),
            None => Ok(None),
        }
    }

    fn vmap(&self, inputs: &[Batched], _: usize) -> Result<Option<Vec<Batched>>> {
        // More rows of the same product.
        if !inputs[0].batched || inputs[1..].iter().any(|input| input.batched) {
            return Ok(None);
        }
        let arrays: Vec<&Array> = inputs.iter().map(|input| &input.array).collect();
        Ok(Some(vec![Batched::each(Array::apply(*self, &arrays)?)]))
    }
}
