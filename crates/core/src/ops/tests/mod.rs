//! Result dtypes against MLX's, and what recording costs.

mod errors;

use super::*;
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::Result;

/// The dtypes of MLX, and how the tables below write them.
const DTYPES: [(DType, &str); 13] = [
    (DType::Bool, "b"),
    (DType::U8, "u1"),
    (DType::U16, "u2"),
    (DType::U32, "u4"),
    (DType::U64, "u8"),
    (DType::I8, "i1"),
    (DType::I16, "i2"),
    (DType::I32, "i4"),
    (DType::I64, "i8"),
    (DType::F16, "h"),
    (DType::BF16, "bf"),
    (DType::F32, "f"),
    (DType::C64, "c"),
];

/// The result dtype of MLX 0.32.4 for each operand dtype; `-` is an error.
const MLX: &[(&str, &str)] = &[
    ("abs", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f f"),
    ("negative", "- u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("sign", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("square", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("sqrt", "f f f f f f f f f h bf f c"),
    ("rsqrt", "f f f f f f f f f h bf f c"),
    ("reciprocal", "f f f f f f f f f h bf f c"),
    ("exp", "f f f f f f f f f h bf f c"),
    ("expm1", "f f f f f f f f f h bf f -"),
    ("log", "f f f f f f f f f h bf f c"),
    ("log2", "f f f f f f f f f h bf f c"),
    ("log10", "f f f f f f f f f h bf f c"),
    ("log1p", "f f f f f f f f f h bf f c"),
    ("sin", "f f f f f f f f f h bf f c"),
    ("cos", "f f f f f f f f f h bf f c"),
    ("tan", "f f f f f f f f f h bf f c"),
    ("arcsin", "f f f f f f f f f h bf f c"),
    ("arccos", "f f f f f f f f f h bf f c"),
    ("arctan", "f f f f f f f f f h bf f c"),
    ("sinh", "f f f f f f f f f h bf f c"),
    ("cosh", "f f f f f f f f f h bf f c"),
    ("tanh", "f f f f f f f f f h bf f c"),
    ("arcsinh", "f f f f f f f f f h bf f c"),
    ("arccosh", "f f f f f f f f f h bf f c"),
    ("arctanh", "f f f f f f f f f h bf f c"),
    ("degrees", "f f f f f f f f f h bf f c"),
    ("radians", "f f f f f f f f f h bf f c"),
    ("floor", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("ceil", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("round", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("sigmoid", "f f f f f f f f f h bf f -"),
    ("erf", "f f f f f f f f f h bf f -"),
    ("erfinv", "f f f f f f f f f h bf f -"),
    ("logical_not", "b b b b b b b b b b b b b"),
    ("bitwise_invert", "b u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("isnan", "b b b b b b b b b b b b b"),
    ("isinf", "b b b b b b b b b b b b b"),
    ("isfinite", "b b b b b b b b b b b b b"),
    ("isposinf", "b b b b b b b b b b b b b"),
    ("isneginf", "b b b b b b b b b b b b b"),
    ("nan_to_num", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("real", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f f"),
    ("imag", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f f"),
    ("conjugate", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("sum", "i4 u4 u4 u4 u8 i4 i4 i4 i8 h bf f c"),
    ("prod", "i4 u4 u4 u4 u8 i4 i4 i4 i8 h bf f c"),
    ("max", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("min", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("all", "b b b b b b b b b b b b b"),
    ("any", "b b b b b b b b b b b b b"),
    ("mean", "f f f f f f f f f h bf f c"),
    ("var", "f f f f f f f f f h bf f f"),
    ("std", "f f f f f f f f f h bf f f"),
    ("logsumexp", "f f f f f f f f f h bf f c"),
    ("softmax", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("argmax", "u4 u4 u4 u4 u4 u4 u4 u4 u4 u4 u4 u4 u4"),
    ("argmin", "u4 u4 u4 u4 u4 u4 u4 u4 u4 u4 u4 u4 u4"),
    ("sort", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("argsort", "u4 u4 u4 u4 u4 u4 u4 u4 u4 u4 u4 u4 u4"),
    ("median", "f f f f f f f f f h bf f c"),
    ("add", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("subtract", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("multiply", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("divide", "f f f f f f f f f h bf f c"),
    ("floor_divide", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("remainder", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("power", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("maximum", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("minimum", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("logaddexp", "f f f f f f f f f h bf f c"),
    ("arctan2", "f f f f f f f f f h bf f -"),
    ("bitwise_and", "b u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("bitwise_or", "b u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("bitwise_xor", "b u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("left_shift", "u1 u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("right_shift", "u1 u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("logical_and", "b b b b b b b b b b b b b"),
    ("logical_or", "b b b b b b b b b b b b b"),
    ("equal", "b b b b b b b b b b b b b"),
    ("less", "b b b b b b b b b b b b b"),
    ("outer", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("matmul", "- - - - - - - - - h bf f c"),
    ("kron", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("add true", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("add 1", "i4 u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("add 1.5", "f f f f f f f f f h bf f c"),
    ("add i", "c c c c c c c c c c c c c"),
    ("divide true", "f f f f f f f f f h bf f c"),
    ("divide 1", "f f f f f f f f f h bf f c"),
    ("divide 1.5", "f f f f f f f f f h bf f c"),
    ("divide i", "c c c c c c c c c c c c c"),
    ("arctan2 true", "f f f f f f f f f h bf f -"),
    ("arctan2 1", "f f f f f f f f f h bf f -"),
    ("arctan2 1.5", "f f f f f f f f f h bf f -"),
    ("arctan2 i", "- - - - - - - - - - - - -"),
    ("left_shift true", "u1 u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("left_shift 1", "i4 u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("left_shift 1.5", "- - - - - - - - - - - - -"),
    ("left_shift i", "- - - - - - - - - - - - -"),
    ("power true", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("power 1", "i4 u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("power 1.5", "f f f f f f f f f h bf f c"),
    ("power i", "c c c c c c c c c c c c c"),
    ("bitwise_and true", "b u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("bitwise_and 1", "i4 u1 u2 u4 u8 i1 i2 i4 i8 - - - -"),
    ("bitwise_and 1.5", "- - - - - - - - - - - - -"),
    ("bitwise_and i", "- - - - - - - - - - - - -"),
    ("logaddexp true", "f f f f f f f f f h bf f c"),
    ("logaddexp 1", "f f f f f f f f f h bf f c"),
    ("logaddexp 1.5", "f f f f f f f f f h bf f c"),
    ("logaddexp i", "c c c c c c c c c c c c c"),
    ("maximum true", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("maximum 1", "i4 u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("maximum 1.5", "f f f f f f f f f h bf f c"),
    ("maximum i", "c c c c c c c c c c c c c"),
    ("clip true", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("clip 1", "i4 u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("clip 1.5", "f f f f f f f f f h bf f c"),
    ("clip i", "c c c c c c c c c c c c c"),
    ("where true", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("where 1", "i4 u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("where 1.5", "f f f f f f f f f h bf f c"),
    ("where i", "c c c c c c c c c c c c c"),
];

/// Functions that MLX lacks, with the dtypes of NumPy and PyTorch: what is computed in floats gives `float32` of
/// integers, the rest keeps its dtype, and nothing takes complex numbers but sums and what is linear in them.
const BEYOND: &[(&str, &str)] = &[
    ("signbit", "b b b b b b b b b b b b -"),
    ("frac", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("lgamma", "f f f f f f f f f h bf f -"),
    ("digamma", "f f f f f f f f f h bf f -"),
    ("i0", "f f f f f f f f f h bf f -"),
    ("sinc", "f f f f f f f f f h bf f c"),
    ("copysign", "f f f f f f f f f h bf f -"),
    ("hypot", "f f f f f f f f f h bf f -"),
    ("nextafter", "f f f f f f f f f h bf f -"),
    ("xlogy", "f f f f f f f f f h bf f -"),
    ("ldexp", "f f f f f f f f f h bf f -"),
    ("heaviside", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("fmax", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("fmin", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("fmod", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("nansum", "i4 u4 u4 u4 u8 i4 i4 i4 i8 h bf f c"),
    ("nanmean", "f f f f f f f f f h bf f c"),
    ("nanmax", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("nanmin", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("nanmedian", "f f f f f f f f f h bf f -"),
    ("cov", "f f f f f f f f f h bf f c"),
    ("corrcoef", "f f f f f f f f f h bf f c"),
    ("trapezoid", "f f f f f f f f f h bf f c"),
    ("adaptive_avg_pool", "f f f f f f f f f h bf f c"),
    ("adaptive_max_pool", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f -"),
    ("grid_sample", "f f f f f f f f f h bf f -"),
    ("unfold", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
    ("segment_max", "b u1 u2 u4 u8 i1 i2 i4 i8 h bf f c"),
];

fn call_beyond(name: &str, x: &Array) -> Result<Array> {
    let image = || reshape(x, [1, 2, 2, 1]);
    match name {
        "signbit" => signbit(x),
        "frac" => frac(x),
        "lgamma" => lgamma(x),
        "digamma" => digamma(x),
        "i0" => i0(x),
        "sinc" => sinc(x),
        "copysign" => copysign(x, x),
        "hypot" => hypot(x, x),
        "nextafter" => nextafter(x, x),
        "xlogy" => xlogy(x, x),
        "ldexp" => ldexp(x, 2),
        "heaviside" => heaviside(x, x),
        "fmax" => fmax(x, x),
        "fmin" => fmin(x, x),
        "fmod" => fmod(x, x),
        "nansum" => nansum(x, (), false),
        "nanmean" => nanmean(x, (), false),
        "nanmax" => nanmax(x, (), false),
        "nanmin" => nanmin(x, (), false),
        "nanmedian" => nanmedian(x, (), false),
        "cov" => cov(x, 1.0, None, None),
        "corrcoef" => corrcoef(x),
        "trapezoid" => trapezoid(x, None, 1.0, -1),
        "adaptive_avg_pool" => adaptive_avg_pool(&image()?, &[1, 2]),
        "adaptive_max_pool" => adaptive_max_pool(&image()?, &[1, 2]),
        "grid_sample" => {
            let places = zeros([1, 3, 2], DType::F32)?;
            grid_sample(&image()?, &places, Interpolation::Linear, Beyond::Zeros, false)
        }
        "unfold" => unfold(&image()?, &Windows::new(2)),
        "segment_max" => segment_max(x, &zeros(2, DType::I32)?, 3),
        other => panic!("{other} is not in the table"),
    }
}

#[test]
fn dtypes_beyond_mlx() {
    let mut wrong = Vec::new();
    for (name, row) in BEYOND {
        for ((dtype, _), want) in DTYPES.iter().zip(row.split(' ')) {
            let result = call_beyond(name, &ones([2, 2], *dtype).unwrap());
            let have = result.as_ref().map_or("-", |y| code(y.dtype()));
            if have != want {
                wrong.push(format!("{name} of {dtype}: {have}, not {want} ({result:?})"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Half complex numbers go wherever complex ones do, and their parts are halves.
#[test]
fn half_complex_numbers_keep_their_dtype() {
    let mut wrong = Vec::new();
    let of_mlx = MLX.iter().map(|(name, _)| (*name, call as fn(&str, &Array) -> Result<Array>));
    let beyond = BEYOND.iter().map(|(name, _)| (*name, call_beyond as fn(&str, &Array) -> _));
    for (name, call) in of_mlx.chain(beyond) {
        let [wide, half] = [DType::C64, DType::C32]
            .map(|dtype| call(name, &ones([2, 2], dtype).unwrap()).ok().map(|y| y.dtype()));
        let want = wide.map(|dtype| match dtype {
            DType::C64 => DType::C32,
            DType::F32 => DType::F16,
            other => other,
        });
        if half != want {
            wrong.push(format!("{name}: {half:?}, not {want:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where we differ, on purpose.
fn ours(name: &str, dtype: DType) -> Option<&'static str> {
    let (function, scalar) = name.split_once(' ').unwrap_or((name, ""));
    if dtype == DType::C64 || scalar == "i" {
        // Complex numbers have no floor.
        let all = (function == "floor_divide").then_some("-");
        // MLX has no eᶻ − 1, and leaves NaN in complex numbers.
        let is_beyond = matches!(function, "expm1" | "nan_to_num") && dtype == DType::C64;
        return if is_beyond { Some("c") } else { all };
    }
    match (function, dtype.is_inexact()) {
        // Products of integers are products, not errors.
        ("matmul", false) => Some(code(if dtype == DType::Bool { DType::I32 } else { dtype })),
        // MLX takes integers for their own softmax over several axes, but not over one.
        ("softmax", false) => Some("f"),
        _ => None,
    }
}

/// How the table writes `dtype`.
fn code(dtype: DType) -> &'static str {
    DTYPES.iter().find(|(d, _)| *d == dtype).map_or("?", |(_, code)| code)
}

fn call(name: &str, x: &Array) -> Result<Array> {
    let (name, scalar) = match name.split_once(' ') {
        Some((name, "true")) => (name, Scalar::Bool(true)),
        Some((name, "1")) => (name, Scalar::Int(1)),
        Some((name, "1.5")) => (name, Scalar::Float(1.5)),
        Some((name, _)) => (name, Scalar::Complex(0.0, 1.0)),
        None => return call_on_arrays(name, x),
    };
    match name {
        "add" => add(x, scalar),
        "divide" => divide(x, scalar),
        "arctan2" => arctan2(x, scalar),
        "left_shift" => left_shift(x, scalar),
        "power" => power(x, scalar),
        "bitwise_and" => bitwise_and(x, scalar),
        "logaddexp" => logaddexp(x, scalar),
        "maximum" => maximum(x, scalar),
        "clip" => clip(x, scalar, scalar),
        "where" => where_(x, x, scalar),
        other => panic!("{other} is not in the table"),
    }
}

fn call_on_arrays(name: &str, x: &Array) -> Result<Array> {
    macro_rules! table {
        (unary: $($unary:ident)*; binary: $($binary:ident)*; reduce: $($reduce:ident)*;) => {
            match name {
                $(stringify!($unary) => $unary(x),)*
                $(stringify!($binary) => $binary(x, x),)*
                $(stringify!($reduce) => $reduce(x, (), false),)*
                "round" => round(x, 0),
                "nan_to_num" => nan_to_num(x, Replacements::default()),
                "var" => var(x, (), false, 0),
                "std" => std(x, (), false, 0),
                "softmax" => softmax(x, ()),
                "sort" => sort(x, -1),
                "argsort" => argsort(x, -1),
                other => panic!("{other} is not in the table"),
            }
        };
    }
    table! {
        unary: abs negative sign square sqrt rsqrt reciprocal exp expm1 log log2 log10 log1p sin
            cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians
            floor ceil sigmoid erf erfinv logical_not bitwise_invert isnan isinf isfinite isposinf
            isneginf real imag conjugate;
        binary: add subtract multiply divide floor_divide remainder power maximum minimum logaddexp
            arctan2 bitwise_and bitwise_or bitwise_xor left_shift right_shift logical_and
            logical_or equal less outer matmul kron;
        reduce: sum prod max min all any mean logsumexp argmax argmin median;
    }
}

#[test]
fn dtypes_are_those_of_mlx() {
    let mut wrong = Vec::new();
    for (name, row) in MLX {
        for ((dtype, _), mlx) in DTYPES.iter().zip(row.split(' ')) {
            let x = ones([2, 2], *dtype).unwrap();
            let result = call(name, &x);
            let have = result.as_ref().map_or("-", |y| code(y.dtype()));
            let want = ours(name, *dtype).unwrap_or(mlx);
            if have != want {
                wrong.push(format!("{name} of {dtype}: {have}, not {want} ({result:?})"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn broadcasting_names_the_operation_and_the_shapes() {
    let (a, b) = (zeros([3], DType::F32).unwrap(), zeros([2, 4], DType::F32).unwrap());
    let error = add(&a, &b).unwrap_err().to_string();
    assert_eq!(error, "add: shapes [3] and [2, 4] do not broadcast");
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| &a - &b)).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert_eq!(text, "subtract: shapes [3] and [2, 4] do not broadcast");
}

#[test]
fn a_convolution_that_does_not_fit_says_so() {
    let x = zeros([512, 28, 28, 3], DType::F32).unwrap();
    let w = zeros([50, 5, 5, 20], DType::F32).unwrap();
    let error = conv2d(&x, &w, &ConvOptions::new()).unwrap_err().to_string();
    assert_eq!(
        error,
        "conv2d: weight expects 20 input channels, input has 3 \
         (input [512, 28, 28, 3], weight [50, 5, 5, 20])"
    );
}

#[test]
fn operands_alike_record_one_node() {
    let x = ones([2, 3], DType::F32).unwrap();
    let y = add(&x, &x).unwrap();
    assert!(y.node.state().inputs.iter().all(|input| input.same(&x)));
    assert!(sum(&x, Axes::from([] as [isize; 0]), false).unwrap().same(&x));
    assert!(astype(&x, DType::F32).unwrap().same(&x));
    assert!(reshape(&x, [-1, 3]).unwrap().same(&x));
}

#[test]
fn indices_read_as_in_numpy() {
    let x = zeros([4, 5, 6], DType::F32).unwrap();
    let i = zeros([2, 1], DType::I32).unwrap();
    let j = zeros([7], DType::U32).unwrap();
    let shape = |items: &[S]| index(&x, items).unwrap().shape()[..].to_vec();
    assert_eq!(shape(&[]), [4, 5, 6]);
    assert_eq!(shape(&[S::at(0), S::ellipsis(), S::at(-1)]), [5]);
    assert_eq!(shape(&[S::range(1..).step(2), S::range(..-1), S::range(-2..=-1)]), [2, 4, 2]);
    let before = 1;
    assert_eq!(shape(&[S::range(..).step(-3), S::range(10..), S::range(2..before)]), [2, 0, 0]);
    assert_eq!(shape(&[S::new_axis(), S::ellipsis(), S::new_axis()]), [1, 4, 5, 6, 1]);
    assert_eq!(shape(&[S::range(..), S::array(&i), S::array(&j)]), [4, 2, 7]);
    assert_eq!(shape(&[S::array(&i), S::range(..), S::array(&j)]), [2, 7, 5]);
    assert_eq!(shape(&[S::at(0), S::range(..), S::array(&j)]), [7, 5]);
    assert_eq!(shape(&[S::new_axis(), S::at(1), S::array(&j)]), [1, 7, 6]);
    assert!(index(&x, &[S::at(4)]).is_err());
    assert!(index(&x, &[S::ellipsis(), S::ellipsis()]).is_err());
}
