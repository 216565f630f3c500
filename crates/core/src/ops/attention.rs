//! Attention, and positions as rotations.

use smallvec::SmallVec;

use super::operand::{Operand, cast};
use super::{
    add, concatenate, cos, divide, expand_axes, expand_dims, full, iota, multiply, power, reshape,
    sin, stack, subtract,
};
use crate::array::Array;
use crate::autocast;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::precision::matmul_precision;
use crate::prim::call::as_one::as_one;
use crate::prim::composite::attention::{AttentionSizes, Scores, heads_last};
use crate::prim::record::slice_axis;
use crate::prim::{Attention, AttentionMaskKind};
use crate::shape::{Aval, Dims, Shape};

/// Which keys a query sees.
#[derive(Clone, Copy, Debug, Default)]
pub enum AttentionMask<'a> {
    /// All of them.
    #[default]
    None,
    /// Those up to its own place, the last query standing at the last key.
    Causal,
    /// Those where this bool array is true; a float array is added to the scores. It broadcasts to
    /// `[batch, heads, queries, keys]`.
    Array(&'a Array),
}

impl<'a> AttentionMask<'a> {
    /// The array, where it is one.
    fn array(&self) -> Option<&'a Array> {
        match self {
            AttentionMask::Array(mask) => Some(mask),
            AttentionMask::None | AttentionMask::Causal => None,
        }
    }
}

/// The parameters of [`scaled_dot_product_attention`].
#[derive(Clone, Copy, Debug)]
pub struct AttentionOptions<'a> {
    /// What queries are multiplied by, as a rule 1/√d.
    pub scale: f64,
    /// Which keys a query sees; all.
    pub mask: AttentionMask<'a>,
    /// For each head the score of a key that takes weight and has no value; none.
    pub sinks: Option<&'a Array>,
}

impl AttentionOptions<'_> {
    /// Without a mask or sinks.
    pub fn new(scale: f64) -> Self {
        AttentionOptions { scale, mask: AttentionMask::None, sinks: None }
    }
}

const SDPA: &str = "scaled_dot_product_attention";

/// Values weighted by the softmax of how well queries and keys agree: softmax(scale·q·kᵀ)·v.
///
/// # Shapes
/// q `[batch, heads, queries, d]`, k `[batch, groups, keys, d]` and v `[batch, groups, keys, e]` give
/// `[batch, heads, queries, e]`; each group of keys serves heads/groups heads that follow each other.
///
/// # Dtypes
/// The three promote; the softmax is taken in `float32` for half types.
///
/// # Errors
/// Where the shapes do not fit, or a float mask is wider than the result.
///
/// A. Vaswani and others, *Attention is all you need*, NeurIPS 2017; groups: J. Ainslie and others,
/// *GQA*, EMNLP 2023; sinks: G. Xiao and others, *Efficient streaming language models with attention
/// sinks*, ICLR 2024.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops, ops::AttentionOptions};
/// let x = ops::ones([1, 2, 3, 4], DType::F32)?;
/// let v = ops::ones([1, 1, 5, 4], DType::F32)?;
/// let y = ops::scaled_dot_product_attention(&x, &v, &v, &AttentionOptions::new(0.5))?;
/// assert_eq!(y.shape()[..], [1, 2, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn scaled_dot_product_attention(
    q: &Array,
    k: &Array,
    v: &Array,
    options: &AttentionOptions<'_>,
) -> Result<Array> {
    let Some(mask) = options.mask.array() else {
        return autocast::apply(SDPA, [q, k, v], |[q, k, v]| attend(q, k, v, options));
    };
    autocast::apply(SDPA, [q, k, v, mask], |[q, k, v, mask]| {
        attend(q, k, v, &AttentionOptions { mask: AttentionMask::Array(mask), ..*options })
    })
}

/// [`scaled_dot_product_attention`] in the dtype that its operands promote to.
fn attend(q: &Array, k: &Array, v: &Array, options: &AttentionOptions<'_>) -> Result<Array> {
    let dtype = q.dtype().promote(k.dtype()).promote(v.dtype());
    if !dtype.is_float() {
        return Err(Error::dtype(SDPA, format!("takes floats, not {dtype} (query {})", q.aval())));
    }
    let sizes = AttentionSizes::of(q.aval(), k.aval(), v.aval()).map_err(|detail| {
        let shapes = format!("(query {}, keys {}, values {})", q.aval(), k.aval(), v.aval());
        Error::shape(SDPA, format!("{detail} {shapes}"))
    })?;
    let mut inputs = vec![cast(q, dtype)?, cast(k, dtype)?, cast(v, dtype)?];
    let kind = match options.mask {
        AttentionMask::None => AttentionMaskKind::None,
        AttentionMask::Causal => AttentionMaskKind::Causal,
        AttentionMask::Array(mask) => {
            inputs.push(four_axes(mask, &sizes.scores(), dtype)?);
            AttentionMaskKind::Array
        }
    };
    if let Some(sinks) = options.sinks {
        if sinks.rank() != 1 || sinks.aval().shape[0] != sizes.heads {
            return Err(Error::shape(
                SDPA,
                format!("sinks {} are not one for each of {} heads", sinks.aval(), sizes.heads),
            ));
        }
        inputs.push(expand_dims(&cast(sinks, dtype.accumulator())?, 0)?);
    }
    let attention = Attention {
        scores: Scores {
            scale: Scalar::Float(options.scale),
            mask: kind,
            precision: matmul_precision(),
        },
        sinks: options.sinks.is_some(),
    };
    let mut outputs = Array::apply_multi(attention, &inputs.iter().collect::<Vec<_>>())?;
    heads_last(&outputs.swap_remove(0))
}

/// The mask with an axis for each of those of the scores, bool or of `dtype`.
fn four_axes(mask: &Array, scores: &Shape, dtype: DType) -> Result<Array> {
    let own = &mask.aval().shape;
    if own.broadcast(scores, SDPA)? != *scores {
        return Err(Error::shape(
            SDPA,
            format!("mask {} does not fit scores {scores}", mask.aval()),
        ));
    }
    let lead: Dims = (0..scores.rank() - own.rank()).collect();
    let mask = if lead.is_empty() { mask.clone() } else { expand_axes(mask, lead)? };
    if mask.dtype() == DType::Bool {
        return Ok(mask);
    }
    if mask.dtype().promote(dtype) != dtype {
        return Err(Error::dtype(
            SDPA,
            format!("mask {} does not promote to {dtype}", mask.aval()),
        ));
    }
    cast(&mask, dtype)
}

/// How fast [`rope`] turns each pair of features.
#[derive(Clone, Copy, Debug)]
pub enum Frequencies<'a> {
    /// Pair i of n turns by base^(−i/n) a place.
    Base(f64),
    /// Each pair turns by 1 over its element of a vector.
    Periods(&'a Array),
}

/// The parameters of [`rope`].
#[derive(Clone, Copy, Debug)]
pub struct RopeOptions<'a> {
    /// How many features turn; the others stay.
    pub dims: usize,
    /// Whether neighbours are pairs; otherwise feature i and feature i + dims/2. False.
    pub traditional: bool,
    /// How fast pairs turn; a base of 10,000.
    pub frequencies: Frequencies<'a>,
    /// What places are multiplied by; 1.
    pub scale: f64,
    /// The first place: a number, or an integer array, one for all or one for each example; 0.
    pub offset: Operand<'a>,
}

impl RopeOptions<'_> {
    /// The defaults, for so many features.
    pub fn new(dims: usize) -> Self {
        RopeOptions {
            dims,
            traditional: false,
            frequencies: Frequencies::Base(10_000.0),
            scale: 1.0,
            offset: Operand::Scalar(Scalar::Int(0)),
        }
    }
}

/// Pairs of features turned by an angle that grows with their place in the sequence.
///
/// # Shapes
/// `[batch, .., places, features]` stays.
///
/// # Dtypes
/// Half types are turned in `float32`.
///
/// # Errors
/// Where there are fewer than three axes, `dims` is odd, 0 or larger than the last axis, frequencies
/// or offsets do not fit, or the input is not of floats.
///
/// J. Su and others, *RoFormer: enhanced transformer with rotary position embedding*, 2021.
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::RopeOptions};
/// let x = ops::ones([1, 3, 4], DType::F32)?;
/// let y = ops::rope(&x, &RopeOptions::new(4))?;
/// assert_eq!(y.to_vec::<f32>()?[..4], [1.0; 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn rope(x: &Array, options: &RopeOptions<'_>) -> Result<Array> {
    let (op, rank, dims) = ("rope", x.rank(), options.dims);
    if rank < 3 || dims == 0 || dims % 2 == 1 || dims > x.shape()[rank - 1] {
        return Err(Error::shape(
            op,
            format!("{dims} features of {} do not turn: three axes or more, pairs", x.aval()),
        ));
    }
    if !x.dtype().is_float() {
        return Err(Error::dtype(op, format!("takes floats, not {}", x.aval())));
    }
    // Places may be others in the next step: their start is an input, also where it is a number.
    let wide = x.dtype().accumulator();
    let (start, is_number) = match options.offset {
        Operand::Scalar(start) => {
            let aval = Aval { shape: Shape::scalar(), dtype: wide };
            (Array::constant(start.to_f64(), aval), true)
        }
        Operand::Array(start) => (start.clone(), false),
    };
    let base = match options.frequencies {
        Frequencies::Base(base) => base,
        Frequencies::Periods(_) => f64::NAN,
    };
    let parameters = [
        dims as u64,
        options.scale.to_bits(),
        base.to_bits(),
        u64::from(options.traditional) << 1 | u64::from(is_number),
    ];
    let mut inputs: SmallVec<[&Array; 3]> = SmallVec::from_slice(&[x, &start]);
    if let Frequencies::Periods(periods) = options.frequencies {
        inputs.push(periods);
    }
    as_one(op, &parameters, &inputs, |given| {
        turned(&given[0], options, angles(given, options, is_number)?)
    })
}

/// `x` with its pairs turned by `angles`.
fn turned(x: &Array, options: &RopeOptions<'_>, angles: Array) -> Result<Array> {
    let (rank, dims) = (x.rank(), options.dims);
    let (cosine, sine) = (cos(&angles)?, sin(&angles)?);
    let wide = cast(x, x.dtype().accumulator())?;
    let (last, half) = (rank - 1, dims / 2);
    let turning = slice_axis(&wide, last, 0, dims)?;
    let (a, b) = if options.traditional {
        let pairs = super::unflatten(&turning, -1, [half, 2])?;
        let part = |i| super::squeeze(&slice_axis(&pairs, rank, i, 1)?, -1);
        (part(0)?, part(1)?)
    } else {
        (slice_axis(&turning, last, 0, half)?, slice_axis(&turning, last, half, half)?)
    };
    let left = subtract(&multiply(&a, &cosine)?, &multiply(&b, &sine)?)?;
    let right = add(&multiply(&a, &sine)?, &multiply(&b, &cosine)?)?;
    let turned = match options.traditional {
        true => super::flatten(&stack(&[&left, &right], -1)?, -2, -1)?,
        false => concatenate(&[&left, &right], last)?,
    };
    let rest = slice_axis(&wide, last, dims, x.shape()[last] - dims)?;
    let whole =
        if rest.shape()[last] == 0 { turned } else { concatenate(&[&turned, &rest], last)? };
    cast(&whole, x.dtype())
}

/// The angle of each pair at each place, of a shape that broadcasts to the pairs of `x`.
/// `given` are `x`, the first place, and periods where frequencies come by these.
fn angles(given: &[Array], options: &RopeOptions<'_>, is_number: bool) -> Result<Array> {
    let (x, start) = (&given[0], &given[1]);
    let (op, half) = ("rope", options.dims / 2);
    let dtype = x.dtype().accumulator();
    let speed = match options.frequencies {
        Frequencies::Base(base) => {
            let exponent = multiply(&iota(half, 0, dtype)?, -1.0 / half as f64)?;
            power(&full((), base, dtype)?, &exponent)?
        }
        Frequencies::Periods(_) if given[2].shape()[..] == [half] => {
            divide(1, &cast(&given[2], dtype)?)?
        }
        Frequencies::Periods(_) => {
            return Err(Error::shape(
                op,
                format!("frequencies {} are not a vector of {half}", given[2].aval()),
            ));
        }
    };
    let places = iota(x.shape()[x.rank() - 2], 0, dtype)?;
    let places = if is_number {
        add(&places, start)?
    } else {
        let fits = start.rank() == 0
            || start.rank() == 1 && { start.size() == 1 || start.size() == x.shape()[0] };
        if !fits || !start.dtype().is_integer() {
            return Err(Error::shape(
                op,
                format!("offset {} is not an integer, or one an example", start.aval()),
            ));
        }
        add(&places, &reshape(&cast(start, dtype)?, [-1, 1])?)?
    };
    let angles = multiply(&expand_dims(&multiply(&places, options.scale)?, -1)?, &speed)?;
    // One row of places an example: the axes between are the same for all.
    if angles.rank() < 3 {
        return Ok(angles);
    }
    let mut shape = Shape::from(vec![1; x.rank()]);
    shape.0[0] = angles.shape()[0];
    shape.0[x.rank() - 2] = angles.shape()[1];
    shape.0[x.rank() - 1] = half;
    reshape(&angles, shape)
}
