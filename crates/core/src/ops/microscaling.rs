//! Matrices of floats of 4 or 8 bits, with a scale of 8 bits for each group of neighbours.
//!
//! The formats are those of the Open Compute Project, *Microscaling Formats (MX) Specification 1.0*,
//! 2023, and NVIDIA's NVFP4. Numbers lie in words as in [`quantize`](super::quantize).

use super::operand::cast;
use super::quantize::Quantization;
use super::{
    abs, add, bitwise_and, bitwise_or, divide, equal, expand_dims, flatten, from_fp8, gather_mm,
    greater, less, logical_and, matmul, matrix_transpose, max, minimum, multiply, right_shift, sum,
    take, to_fp8, unflatten, view, where_,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::transform::custom_function;

/// The numbers of four bits (e2m1) without their sign.
const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// The largest e4m3 number times the largest e2m1 number: what a global scale is relative to.
const GLOBAL: f64 = 448.0 * 6.0;

/// A format of small floats with common scales.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Microscaling {
    /// e2m1 numbers, 32 with one power of two.
    Mxfp4,
    /// e4m3 numbers, 32 with one power of two.
    Mxfp8,
    /// e2m1 numbers, 16 with one e4m3 scale.
    Nvfp4,
}

impl Microscaling {
    /// How many neighbours of a row share a scale.
    pub fn group_size(self) -> usize {
        if self == Microscaling::Nvfp4 { 16 } else { 32 }
    }

    /// Bits of an element.
    pub fn bits(self) -> usize {
        if self == Microscaling::Mxfp8 { 8 } else { 4 }
    }

    fn words(self) -> Quantization {
        Quantization { group_size: self.group_size(), bits: self.bits() }
    }

    /// The largest number without its scale.
    fn largest(self) -> f64 {
        if self == Microscaling::Mxfp8 { 448.0 } else { 6.0 }
    }

    fn allows(self, op: &'static str, global: Option<&Array>) -> Result<()> {
        match global {
            Some(scale) if self != Microscaling::Nvfp4 => Err(Error::argument(
                op,
                format!("a global scale ({}) belongs to Nvfp4, not {self:?}", scale.aval()),
            )),
            Some(scale) if scale.size() != 1 => Err(Error::shape(
                op,
                format!("the global scale is one number, not {}", scale.aval()),
            )),
            _ => Ok(()),
        }
    }

    /// The code of the scale for groups whose largest number is `largest`.
    fn scale_code(self, largest: &Array, global: Option<&Array>) -> Result<Array> {
        let ratio = divide(largest, self.largest())?;
        if self == Microscaling::Nvfp4 {
            return match global {
                Some(global) => {
                    let relative = divide(GLOBAL, &number(global)?)?;
                    to_fp8(&multiply(&cast(&ratio, DType::F32)?, &relative)?)
                }
                None => to_fp8(&ratio),
            };
        }
        // The exponent of the next power of two: it carries where the mantissa is not 0.
        let bits = view(&cast(&ratio, DType::F32)?, DType::U32)?;
        let exponent = minimum(&right_shift(&add(&bits, 0x7f_ffffu32)?, 23)?, 254)?;
        cast(&where_(&equal(largest, 0)?, 127, &exponent)?, DType::U8)
    }

    /// The scales of `codes`.
    fn scales(self, codes: &Array, global: Option<&Array>) -> Result<Array> {
        if self == Microscaling::Nvfp4 {
            let scales = from_fp8(codes, DType::F32)?;
            return match global {
                Some(global) => multiply(&scales, &divide(&number(global)?, GLOBAL)?),
                None => Ok(scales),
            };
        }
        // As the exponent of a float; of code 0, 2⁻¹²⁷, one bit of its mantissa.
        let bits = super::left_shift(&cast(codes, DType::U32)?, 23)?;
        view(&where_(&equal(codes, 0)?, 0x40_0000u32, &bits)?, DType::F32)
    }
}

fn number(global: &Array) -> Result<Array> {
    super::reshape(&cast(global, DType::F32)?, [1isize; 0])
}

/// The codes of the nearest e2m1 numbers, of two the one nearer to 0.
fn to_e2m1(x: &Array) -> Result<Array> {
    let between: Vec<f32> = E2M1.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
    let between = Array::from_slice(&between, [between.len()])?;
    let above = greater(&expand_dims(&abs(x)?, -1)?, &between)?;
    let code = sum(&cast(&above, DType::U32)?, -1, false)?;
    let negative = logical_and(&less(x, 0)?, &greater(&code, 0)?)?;
    bitwise_or(&code, &multiply(&cast(&negative, DType::U32)?, 8)?)
}

fn from_e2m1(codes: &Array) -> Result<Array> {
    let all: Vec<f32> = E2M1.iter().copied().chain(E2M1.map(|x| -x)).collect();
    take(&Array::from_slice(&all, [16])?, codes, 0)
}

/// A matrix as small floats with a scale for each group of neighbours in a row: its words
/// `uint32[.., m, n·bits/32]` and the codes of its scales `uint8[.., m, n/group]`.
///
/// # Shapes
/// The last of at least two axes divides into groups, and into words. `global`, a number by which
/// [`Microscaling::Nvfp4`] divides its scales, is a scalar.
///
/// # Errors
/// Where `w` is not of floats or does not divide, and for a global scale of another format.
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::Microscaling};
/// let w = ops::ones([2, 64], DType::F32)?;
/// let (words, scales) = ops::quantize_microscaling(&w, Microscaling::Mxfp4, None)?;
/// assert_eq!((words.shape()[1], scales.shape()[1]), (8, 2));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn quantize_microscaling(
    w: &Array,
    format: Microscaling,
    global: Option<&Array>,
) -> Result<(Array, Array)> {
    let op = "quantize";
    format.allows(op, global)?;
    if !w.dtype().is_float() {
        return Err(Error::dtype(op, format!("takes floats, not {}", w.aval())));
    }
    let groups = format.group_size();
    if w.rank() < 2 || !w.shape()[w.rank() - 1].is_multiple_of(groups) {
        return Err(Error::shape(
            op,
            format!("the rows of {} do not divide into groups of {groups}", w.aval()),
        ));
    }
    let grouped = unflatten(w, -1, [-1, groups as isize])?;
    let codes = format.scale_code(&max(&abs(&grouped)?, -1, false)?, global)?;
    let scales = cast(&format.scales(&codes, global)?, w.dtype())?;
    let scales = expand_dims(&scales, -1)?;
    let scaled = where_(&equal(&scales, 0)?, 0, &divide(&grouped, &scales)?)?;
    let scaled = flatten(&cast(&scaled, DType::F32)?, -2, -1)?;
    let numbers = match format {
        Microscaling::Mxfp8 => cast(&to_fp8(&scaled)?, DType::U32)?,
        _ => to_e2m1(&scaled)?,
    };
    Ok((format.words().packed(&numbers)?, codes))
}

/// The matrix that [`quantize_microscaling`] made small, in `dtype`.
///
/// # Errors
/// Where words and scales do not fit each other or the format.
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::Microscaling};
/// let (w, format) = (ops::ones([2, 32], DType::F32)?, Microscaling::Mxfp8);
/// let (words, scales) = ops::quantize_microscaling(&w, format, None)?;
/// let back = ops::dequantize_microscaling(&words, &scales, format, None, DType::F32)?;
/// assert_eq!(back.to_vec::<f32>()?, [1.0; 64]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn dequantize_microscaling(
    words: &Array,
    scales: &Array,
    format: Microscaling,
    global: Option<&Array>,
    dtype: DType,
) -> Result<Array> {
    let op = "dequantize";
    format.allows(op, global)?;
    if words.dtype() != DType::U32 || scales.dtype() != DType::U8 {
        return Err(Error::dtype(
            op,
            format!("takes uint32 and uint8, not {} and {}", words.aval(), scales.aval()),
        ));
    }
    let rank = words.rank();
    let fits = rank >= 2
        && scales.rank() == rank
        && scales.shape()[..rank - 1] == words.shape()[..rank - 1]
        && words.shape()[rank - 1] * 32
            == scales.shape()[rank - 1] * format.group_size() * format.bits();
    if !fits {
        return Err(Error::shape(
            op,
            format!("words {} and scales {} do not fit {format:?}", words.aval(), scales.aval()),
        ));
    }
    let codes = format.words().unpacked(words)?;
    let numbers = match format {
        Microscaling::Mxfp8 => from_fp8(&cast(&codes, DType::U8)?, DType::F32)?,
        _ => from_e2m1(&bitwise_and(&codes, 15u32)?)?,
    };
    let numbers = unflatten(&numbers, -1, [-1, format.group_size() as isize])?;
    let scales = expand_dims(&format.scales(scales, global)?, -1)?;
    cast(&flatten(&multiply(&numbers, &scales)?, -2, -1)?, dtype)
}

/// `x` rounded to numbers of a format, in its own dtype. Its gradient is that of `x` itself
/// (Y. Bengio and others, *Estimating or propagating gradients through stochastic neurons*, 2013).
///
/// # Errors
/// As [`quantize_microscaling`].
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops, ops::Microscaling};
/// let x = ops::multiply(&ops::ones([1, 32], DType::F32)?, 1.2)?;
/// let y = ops::round_microscaling(&x, Microscaling::Mxfp4, None)?;
/// assert_eq!(y.to_vec::<f32>()?[0], 1.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn round_microscaling(
    x: &Array,
    format: Microscaling,
    global: Option<&Array>,
) -> Result<Array> {
    let global = global.map(super::stop_gradient).transpose()?;
    let inputs: Vec<Array> = std::iter::once(x.clone()).chain(global).collect();
    let rounded = custom_function(move |inputs: &[Array]| {
        let (x, global) = (&inputs[0], inputs.get(1));
        let (words, scales) = quantize_microscaling(x, format, global)?;
        Ok(vec![dequantize_microscaling(&words, &scales, format, global, x.dtype())?])
    })
    .with_vjp(|inputs, _, cotangents| {
        let rest = inputs[1..].iter().map(|x| super::zeros(x.shape().clone(), x.dtype()));
        std::iter::once(Ok(cotangents[0].clone())).chain(rest).collect()
    })
    .with_jvp(|_, _, tangents| Ok(vec![tangents[0].clone()]));
    let mut out = rounded.call(&inputs)?;
    Ok(out.swap_remove(0))
}

/// The factors of [`qqmm`] and [`gather_qqmm`].
#[derive(Clone, Copy, Debug)]
pub struct QuantizedFactors<'a> {
    /// What is rounded on the way.
    pub x: &'a Array,
    /// The right factor's transpose: a matrix that is rounded, too, or words.
    pub w: &'a Array,
    /// The codes of the scales where `w` is words.
    pub scales: Option<&'a Array>,
    /// What x's scales are relative to.
    pub global_x: Option<&'a Array>,
    /// What w's scales are relative to.
    pub global_w: Option<&'a Array>,
}

impl QuantizedFactors<'_> {
    fn rounded(self, format: Microscaling) -> Result<(Array, Array)> {
        let x = round_microscaling(self.x, format, self.global_x)?;
        let w = match self.scales {
            Some(scales) => {
                dequantize_microscaling(self.w, scales, format, self.global_w, x.dtype())?
            }
            None => round_microscaling(self.w, format, self.global_w)?,
        };
        Ok((x, matrix_transpose(&w)?))
    }
}

/// The product of two matrices that are both rounded to a format, the right one transposed.
/// Gradients are those of the product of the rounded matrices.
///
/// # Errors
/// As [`quantize_microscaling`], [`dequantize_microscaling`] and [`matmul`].
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::{Microscaling, QuantizedFactors}};
/// let (x, w) = (ops::ones([2, 32], DType::F32)?, ops::ones([3, 32], DType::F32)?);
/// let factors =
///     QuantizedFactors { x: &x, w: &w, scales: None, global_x: None, global_w: None };
/// assert_eq!(ops::qqmm(factors, Microscaling::Mxfp8)?.to_vec::<f32>()?, [32.0; 6]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn qqmm(factors: QuantizedFactors<'_>, format: Microscaling) -> Result<Array> {
    let (x, w) = factors.rounded(format)?;
    matmul(&x, &w)
}

/// [`qqmm`] of the matrices that indices choose, as in [`gather_mm`].
///
/// # Errors
/// As [`qqmm`] and [`gather_mm`].
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops, ops::{Microscaling, QuantizedFactors}};
/// let (x, w) = (ops::ones([1, 32], DType::F32)?, ops::ones([4, 3, 32], DType::F32)?);
/// let factors =
///     QuantizedFactors { x: &x, w: &w, scales: None, global_x: None, global_w: None };
/// let at = Array::from_slice(&[0, 3], [2])?;
/// let y = ops::gather_qqmm(factors, None, Some(&at), Microscaling::Mxfp8)?;
/// assert_eq!(y.shape()[..], [2, 1, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn gather_qqmm(
    factors: QuantizedFactors<'_>,
    left: Option<&Array>,
    right: Option<&Array>,
    format: Microscaling,
) -> Result<Array> {
    let (x, w) = factors.rounded(format)?;
    gather_mm(&x, &w, left, right)
}
