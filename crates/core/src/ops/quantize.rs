//! Matrices in a few bits an element, with a scale and a bias for each group of neighbours.
//!
//! Numbers lie in `uint32` words as in MLX: one after the other from the lowest bit on, across words
//! where their bits do not divide 32.

use super::block::chosen;
use super::operand::{cast, constant_like};
use super::{
    abs, add, bitwise_and, bitwise_or, clip, divide, equal, expand_dims, flatten, gather_mm,
    greater, iota, left_shift, matmul, matrix_transpose, max, maximum, min, multiply, negative,
    right_shift, round, subtract, sum, take, unflatten, where_,
};
use crate::array::Array;
use crate::autocast;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::precision::matmul_precision;
use crate::prim::QuantizedDot;

/// How a matrix is quantized.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quantization {
    /// How many neighbours of a row share a scale and a bias: 32, 64 or 128; 64.
    pub group_size: usize,
    /// Bits of an element: 1, 2, 3, 4, 5, 6 or 8; 4.
    pub bits: usize,
}

impl Default for Quantization {
    fn default() -> Self {
        Quantization { group_size: 64, bits: 4 }
    }
}

/// A quantized matrix, or a stack of them.
#[derive(Clone, Debug)]
pub struct Quantized {
    /// The numbers, in words: `uint32[.., m, n·bits/32]`.
    pub words: Array,
    /// What a group's numbers are multiplied by: `[.., m, n/group]`.
    pub scales: Array,
    /// What is added to them, of the same shape.
    pub biases: Array,
}

impl Quantized {
    /// How many matrices there are in a stack; none where words, scales and biases are of others.
    fn count(&self) -> usize {
        let Some(lead) = self.words.rank().checked_sub(2) else { return 0 };
        let stack = &self.words.shape()[..lead];
        let fits = |x: &Array| x.rank() == lead + 2 && x.shape()[..lead] == *stack;
        if fits(&self.scales) && fits(&self.biases) { stack.iter().product() } else { 0 }
    }

    /// The matrices at `indices`, counted over all axes but the last two.
    fn chosen(&self, indices: &Array) -> Result<Quantized> {
        let at = |x: &Array| chosen("gather_qmm", x, Some(indices));
        let (words, scales, biases) = (at(&self.words)?, at(&self.scales)?, at(&self.biases)?);
        Ok(Quantized { words, scales, biases })
    }
}

impl Quantization {
    fn check(self, op: &'static str) -> Result<()> {
        if matches!(self.group_size, 32 | 64 | 128) && matches!(self.bits, 1..=6 | 8) {
            return Ok(());
        }
        Err(Error::argument(op, format!("{self:?} is not supported: groups of 32, 64 or 128")))
    }

    /// In which of a block's words each of its 32 numbers starts, and at which bit.
    fn places(self) -> Result<(Array, Array)> {
        let start = multiply(&iota(32, 0, DType::U32)?, self.bits)?;
        Ok((right_shift(&start, 5)?, bitwise_and(&start, 31)?))
    }

    /// Where each number of a word starts, where words hold whole ones.
    fn bits_in_word(self) -> Result<Array> {
        multiply(&iota(32 / self.bits, 0, DType::U32)?, self.bits)
    }

    /// Numbers `uint32[.., n]` as words.
    pub(super) fn packed(self, numbers: &Array) -> Result<Array> {
        if self.bits.is_power_of_two() {
            let words = unflatten(numbers, -1, [-1, 32 / self.bits as isize])?;
            return sum(&left_shift(&words, &self.bits_in_word()?)?, -1, false);
        }
        let blocks = unflatten(numbers, -1, [-1, 32])?;
        let (word, bit) = self.places()?;
        let low = left_shift(&blocks, &bit)?;
        // What does not fit goes to the next word; two shifts, because one by 32 has no meaning.
        let high = right_shift(&right_shift(&blocks, 1)?, &subtract(31, &bit)?)?;
        let words = iota(self.bits, 0, DType::U32)?;
        let of = |part: &Array, word: &Array| -> Result<Array> {
            let here = equal(&expand_dims(word, -1)?, &words)?;
            sum(&where_(&here, &expand_dims(part, -1)?, 0)?, -2, false)
        };
        let out = add(&of(&low, &word)?, &of(&high, &add(&word, 1)?)?)?;
        flatten(&out, -2, -1)
    }

    /// Words as numbers `uint32[.., n]`.
    pub(super) fn unpacked(self, words: &Array) -> Result<Array> {
        let mask = (1u32 << self.bits) - 1;
        if self.bits.is_power_of_two() {
            let bit = self.bits_in_word()?;
            let numbers = bitwise_and(&right_shift(&expand_dims(words, -1)?, &bit)?, mask)?;
            return flatten(&numbers, -2, -1);
        }
        let blocks = unflatten(words, -1, [-1, self.bits as isize])?;
        let axis = blocks.rank() - 1;
        let (word, bit) = self.places()?;
        let next = super::minimum(&add(&word, 1)?, self.bits - 1)?;
        let low = right_shift(&take(&blocks, &word, axis)?, &bit)?;
        let high = left_shift(&left_shift(&take(&blocks, &next, axis)?, 1)?, &subtract(31, &bit)?)?;
        flatten(&bitwise_and(&bitwise_or(&low, &high)?, mask)?, -2, -1)
    }
}

/// A matrix in a few bits an element: each group of neighbours in a row as whole numbers times a
/// scale plus a bias, with the group's end that is farther from 0 exact, and 0.
///
/// # Shapes
/// The last of at least two axes divides into groups.
///
/// # Dtypes
/// Scales and biases have w's dtype.
///
/// # Errors
/// Where `w` is not of floats, or does not divide.
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::Quantization};
/// let w = ops::ones([2, 64], DType::F32)?;
/// let q = ops::quantize(&w, Quantization::default())?;
/// assert_eq!((q.words.shape()[1], q.scales.shape()[1]), (8, 1));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn quantize(w: &Array, how: Quantization) -> Result<Quantized> {
    let op = "quantize";
    how.check(op)?;
    if !w.dtype().is_float() {
        return Err(Error::dtype(op, format!("takes floats, not {}", w.aval())));
    }
    if w.rank() < 2 || !w.shape()[w.rank() - 1].is_multiple_of(how.group_size) {
        return Err(Error::shape(
            op,
            format!("the rows of {} do not divide into groups of {}", w.aval(), how.group_size),
        ));
    }
    let groups = unflatten(&cast(w, w.dtype().accumulator())?, -1, [-1, how.group_size as isize])?;
    let (low, high) = (min(&groups, -1, true)?, max(&groups, -1, true)?);
    let steps = ((1u32 << how.bits) - 1) as f64;
    let scale = maximum(&divide(&subtract(&high, &low)?, steps)?, 1e-7)?;
    let (scale, bias) = match how.bits {
        1 => (scale, low),
        _ => {
            let from_low = greater(&abs(&low)?, &abs(&high)?)?;
            let scale = where_(&from_low, &scale, &negative(&scale)?)?;
            let edge = where_(&from_low, &low, &high)?;
            let count = round(&divide(&edge, &scale)?, 0)?;
            let there = equal(&count, 0)?;
            let one = constant_like(&count, 1);
            let fitted = divide(&edge, &where_(&there, &one, &count)?)?;
            (where_(&there, &scale, &fitted)?, where_(&there, 0, &edge)?)
        }
    };
    let numbers = round(&divide(&subtract(&groups, &bias)?, &scale)?, 0)?;
    let numbers = cast(&clip(&numbers, 0, steps)?, DType::U32)?;
    let kept = |x: &Array| cast(&super::squeeze(x, -1)?, w.dtype());
    Ok(Quantized {
        words: how.packed(&flatten(&numbers, -2, -1)?)?,
        scales: kept(&scale)?,
        biases: kept(&bias)?,
    })
}

/// The matrix that [`quantize`] made small, in the dtype of its scales.
///
/// # Errors
/// Where words, scales and biases do not fit each other.
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::Quantization};
/// let w = ops::ones([2, 64], DType::F32)?;
/// let how = Quantization::default();
/// let back = ops::dequantize(&ops::quantize(&w, how)?, how)?;
/// assert_eq!(back.to_vec::<f32>()?, [1.0; 128]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn dequantize(w: &Quantized, how: Quantization) -> Result<Array> {
    let op = "dequantize";
    how.check(op)?;
    let Quantized { words, scales, biases } = w;
    if words.dtype() != DType::U32 || !scales.dtype().is_float() {
        return Err(Error::dtype(
            op,
            format!("takes uint32 and floats, not {} and {}", words.aval(), scales.aval()),
        ));
    }
    let fits = words.rank() >= 2
        && scales.shape() == biases.shape()
        && scales.rank() == words.rank()
        && scales.shape()[..words.rank() - 1] == words.shape()[..words.rank() - 1]
        && words.shape()[words.rank() - 1] * 32
            == scales.shape()[words.rank() - 1] * how.group_size * how.bits;
    if !fits {
        return Err(Error::shape(
            op,
            format!(
                "words {}, scales {} and biases {} do not fit {how:?}",
                words.aval(),
                scales.aval(),
                biases.aval()
            ),
        ));
    }
    let dtype = scales.dtype();
    let numbers = cast(&how.unpacked(words)?, dtype)?;
    let groups = unflatten(&numbers, -1, [-1, how.group_size as isize])?;
    let scaled = multiply(&groups, &expand_dims(scales, -1)?)?;
    flatten(&add(&scaled, &expand_dims(&cast(biases, dtype)?, -1)?)?, -2, -1)
}

/// `x` by a quantized matrix, or by its transpose.
///
/// # Errors
/// As [`dequantize`] and [`matmul`].
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::Quantization};
/// let (w, how) = (ops::ones([3, 64], DType::F32)?, Quantization::default());
/// let y = ops::quantized_matmul(&w, &ops::quantize(&w, how)?, true, how)?;
/// assert_eq!(y.to_vec::<f32>()?, [64.0; 9]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn quantized_matmul(
    x: &Array,
    w: &Quantized,
    transpose: bool,
    how: Quantization,
) -> Result<Array> {
    let Quantized { words, scales, biases } = w;
    autocast::apply("quantized_matmul", [x, scales, biases], |[x, scales, biases]| {
        let [words, scales, biases] = [words, scales, biases].map(Array::clone);
        multiplied(x, &Quantized { words, scales, biases }, transpose, how)
    })
}

/// [`quantized_matmul`] in the dtype that the floats promote to.
fn multiplied(x: &Array, w: &Quantized, transpose: bool, how: Quantization) -> Result<Array> {
    let (x, w) = promoted(x, w)?;
    let Quantized { words, scales, biases } = &w;
    let dtype = x.dtype();
    let plain = x.rank() < 2 || words.rank() != 2 || !dtype.is_float();
    if plain || scales.dtype() != dtype || biases.dtype() != dtype {
        let w = dequantize(&w, how)?;
        return matmul(&x, &if transpose { matrix_transpose(&w)? } else { w });
    }
    how.check("quantized_matmul")?;
    let Quantization { group_size, bits } = how;
    let dot = QuantizedDot { group_size, bits, transpose, precision: matmul_precision() };
    Array::apply(dot, &[&x, words, scales, biases])
}

/// Floats in the dtype of the product, so that no weight is rounded to fewer bits than it has.
fn promoted(x: &Array, w: &Quantized) -> Result<(Array, Quantized)> {
    let Quantized { words, scales, biases } = w;
    if !(x.dtype().is_float() && scales.dtype().is_float() && biases.dtype().is_float()) {
        return Ok((x.clone(), w.clone()));
    }
    let dtype = x.dtype().promote(scales.dtype()).promote(biases.dtype());
    let (scales, biases) = (cast(scales, dtype)?, cast(biases, dtype)?);
    Ok((cast(x, dtype)?, Quantized { words: words.clone(), scales, biases }))
}

/// The products of the matrices of `x` and of the quantized ones that indices choose, as in
/// [`gather_mm`].
///
/// # Errors
/// As [`dequantize`] and [`gather_mm`].
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops, ops::{Quantization, QuantizedGather}};
/// let (w, how) = (ops::ones([4, 2, 64], DType::F32)?, Quantization::default());
/// let at = Array::from_slice(&[0, 3], [2])?;
/// let options = QuantizedGather { right: Some(&at), ..Default::default() };
/// let x = ops::ones([1, 64], DType::F32)?;
/// let y = ops::gather_qmm(&x, &ops::quantize(&w, how)?, options, how)?;
/// assert_eq!(y.shape()[..], [2, 1, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn gather_qmm(
    x: &Array,
    w: &Quantized,
    options: QuantizedGather<'_>,
    how: Quantization,
) -> Result<Array> {
    let Quantized { words, scales, biases } = w;
    autocast::apply("gather_qmm", [x, scales, biases], |[x, scales, biases]| {
        let [words, scales, biases] = [words, scales, biases].map(Array::clone);
        gathered(x, &Quantized { words, scales, biases }, options, how)
    })
}

/// [`gather_qmm`] in the dtype that the floats promote to.
fn gathered(
    x: &Array,
    w: &Quantized,
    options: QuantizedGather<'_>,
    how: Quantization,
) -> Result<Array> {
    let (x, w) = promoted(x, w)?;
    // Fewer matrices than there are: no other is dequantized.
    let few = options.right.filter(|at| at.size() < w.count());
    let (w, right) = match few {
        Some(at) => (w.chosen(at)?, None),
        None => (w, options.right),
    };
    let w = dequantize(&w, how)?;
    let w = if options.transpose { matrix_transpose(&w)? } else { w };
    gather_mm(&x, &w, options.left, right)
}

/// What [`gather_qmm`] multiplies.
#[derive(Clone, Copy, Debug)]
pub struct QuantizedGather<'a> {
    /// The matrices on the left; all.
    pub left: Option<&'a Array>,
    /// The quantized matrices; all.
    pub right: Option<&'a Array>,
    /// Whether to multiply by the transposes; true.
    pub transpose: bool,
}

impl Default for QuantizedGather<'_> {
    fn default() -> Self {
        QuantizedGather { left: None, right: None, transpose: true }
    }
}
