//! What functions do not take, and how they say so.

use super::super::*;
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;

fn floats(shape: &[usize]) -> Array {
    ones(shape, DType::F32).unwrap()
}

fn integers(count: usize) -> Array {
    zeros(count, DType::I32).unwrap()
}

/// The error's text.
fn says<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => "nothing".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn errors_name_the_function_and_what_it_was_given() {
    let (m, t) = (floats(&[3, 4]), floats(&[2, 3, 4]));
    let complex = full(2, 1, DType::C64).unwrap();
    let found = [
        (says(matrix_transpose(&floats(&[3]))), "matrix_transpose: float32[3] is not a matrix"),
        (says(broadcast_shapes(&[])), "broadcast_shapes: needs at least one shape"),
        (
            says(as_strided(&m, [4, 4], [4, 1], 0)),
            "as_strided: shape [4, 4], strides [4, 1] and offset 0 reach outside of float32[3, 4]",
        ),
        (
            says(as_strided(&m, [2], [-1], 0)),
            "as_strided: shape [2], strides [-1] and offset 0 reach outside of float32[3, 4]",
        ),
        (
            says(as_strided(&m, [2], [1, 1], 0)),
            "as_strided: strides [1, 1] are not one for each axis of [2]",
        ),
        (
            says(partition(&m, 4, -1)),
            "partition: index 4 is out of range for an axis of size 4 (input float32[3, 4])",
        ),
        (
            says(searchsorted(&m, &t, Side::Left)),
            "searchsorted: float32[3, 4] is not sorted for the values float32[2, 3, 4]",
        ),
        (
            says(unique(&zeros(0, DType::I8).unwrap(), 2, None)),
            "unique: int8[0] has no first element to fill 2 with",
        ),
        (
            says(convolve(&m, &m, ConvolveMode::Full)),
            "convolve: takes vectors that are not empty, not float32[3, 4] and float32[3, 4]",
        ),
        (says(trunc(&complex)), "trunc: does not take complex64[2]"),
        (says(fftfreq(0, 1.0)), "fftfreq: a transform of 0 points has no frequencies"),
        (
            says(view(&floats(&[]), DType::I8)),
            "view: float32[] has no axis that int8 of another size could stretch",
        ),
        (
            says(view(&ones(3, DType::I8).unwrap(), DType::I16)),
            "view: the 3 bytes of the last axis of int8[3] do not divide into int16",
        ),
        (
            says(slice_at(&m, &integers(1), 0, [4, 1])),
            "slice: no slice of float32[3, 4] has shape [4, 1]",
        ),
        (
            says(slice_at(&m, &integers(1), [0, 1], [1, 1])),
            "slice: start int32[1] is not a number for each of axes [0, 1]",
        ),
        (
            says(linalg::norm(&m, 3.0, (), false)),
            "norm: Power(3.0) of matrices is not defined (input float32[3, 4])",
        ),
        (
            says(linalg::norm(&t, 1.0, (), false)),
            "norm: is of one axis or two, not of axes [0, 1, 2] of float32[2, 3, 4]",
        ),
        (says(linalg::cross(&m, &m, -1)), "cross: axis 1 of float32[3, 4] is not of size 2 or 3"),
        (
            says(segmented_mm(&m, &floats(&[4, 2]), &integers(3))),
            "segmented_mm: segments int32[3] are not pairs",
        ),
        (
            says(hadamard_transform(&floats(&[6]), None)),
            "hadamard_transform: takes a last axis of m·2ᵏ, m of 1, 12, 20 or 28 \
             (input float32[6])",
        ),
        (
            says(cross_entropy(&m, &integers(2))),
            "cross_entropy: targets int32[2] are not one for each row of float32[3, 4]",
        ),
        (
            says(rope(&t, &RopeOptions::new(3))),
            "rope: 3 features of float32[2, 3, 4] do not turn: three axes or more, pairs",
        ),
        (
            says(scaled_dot_product_attention(&m, &m, &m, &AttentionOptions::new(1.0))),
            "scaled_dot_product_attention: takes arrays of four axes \
             (query float32[3, 4], keys float32[3, 4], values float32[3, 4])",
        ),
        // What can be said of dtypes comes before shapes.
        (
            says(bitwise_and(&floats(&[2]), &integers(3))),
            "bitwise_and: takes integers and bool, not float32",
        ),
        (
            says(left_shift(&integers(2), &complex)),
            "left_shift: takes integers and bool, not complex64",
        ),
        (says(softmax(&floats(&[]), -1)), "softmax: an array of 0 axes has none to name"),
        (says(logsumexp(&floats(&[]), 0, true)), "logsumexp: an array of 0 axes has none to name"),
        (says(to_fp8(&integers(1))), "to_fp8: takes floats, not int32[1]"),
        (says(isdtype(DType::F32, "float")), "isdtype: 'float' is not a kind of dtypes"),
        (says(einsum_path("ij,jk", &[&m])), "einsum: 'ij,jk': 2 terms for 1 operands"),
    ];
    for (found, wanted) in found {
        assert_eq!(found, wanted);
    }
}

#[test]
fn a_path_contracts_what_shrinks_most_first() {
    let m = floats(&[3, 4]);
    let n = transpose(&m, ()).unwrap();
    // As mlx.core.einsum_path reports it.
    let (path, text) = einsum_path("ij,jk,kl,lm->im", &[&m, &n, &m, &n]).unwrap();
    assert_eq!(path, [[0, 1], [0, 1], [0, 1]]);
    assert_eq!(
        text,
        "  Complete contraction:  ij,jk,kl,lm->im\n         Naive scaling:  5\n     \
         Optimized scaling:  3\n      Naive FLOP count:  1728\n  Optimized FLOP count:  198\n"
    );
    let square = floats(&[3, 3]);
    let four = floats(&[3, 3, 3, 3]);
    let operands = [&square, &square, &four, &square, &square];
    let (path, text) = einsum_path("ea,fb,abcd,gc,hd->efgh", &operands).unwrap();
    assert_eq!(path, [[0, 2], [0, 3], [0, 2], [0, 1]]);
    assert!(text.contains("Naive FLOP count:  32805\n  Optimized FLOP count:  1944\n"), "{text}");
    assert_eq!(einsum_path("ij,ij", &[&m, &m]).unwrap().0, [[0, 1]]);
    assert_eq!(einsum_path("ij->ji", &[&m]).unwrap().0, [[0]]);
}

#[test]
fn dtypes_meet_as_in_mlx() {
    let x = integers(1);
    let half = full(1, 1, DType::F16).unwrap();
    assert_eq!(result_type(&[(&x).into(), (&half).into()]).unwrap(), DType::F16);
    assert!(result_type(&[]).is_err());
    let kinds = ["bool", "signed integer", "unsigned integer", "real floating", "complex floating"];
    for dtype in DType::ALL {
        assert!(can_cast(dtype, dtype) && can_cast(DType::Bool, dtype));
        let of = kinds.iter().filter(|kind| isdtype(dtype, kind).unwrap()).count();
        assert_eq!(of, 1, "{dtype}");
        assert_eq!(isdtype(dtype, "numeric").unwrap(), dtype != DType::Bool);
    }
    assert!(!can_cast(DType::F32, DType::I64) && can_cast(DType::U8, DType::I16));
}

#[test]
fn errors_of_functions_beyond_mlx() {
    let (m, image) = (floats(&[3, 4]), floats(&[1, 3, 4, 6]));
    let complex = full(2, 1, DType::C64).unwrap();
    let mask = ones([3, 4], DType::Bool).unwrap();
    let linear = Interpolation::Linear;
    let found = [
        (says(lgamma(&complex)), "lgamma: does not take complex64[2]"),
        (says(fmax(&m, &complex)), "fmax: does not take complex64[2]"),
        (says(hypot(&m, &integers(5))), "hypot: shapes [3, 4] and [5] do not broadcast"),
        (
            says(quantile(&m, &[1.5], (), false, Between::Linear)),
            "quantile: 1.5 is not within [0, 1]",
        ),
        (
            says(quantile(&floats(&[0]), &[0.5], (), false, Between::Linear)),
            "quantile: has no value for the empty axes of float32[0]",
        ),
        (
            says(histogram(&m, Bins::Count(2, Some((1.0, 0.0))), None, false)),
            "histogram: 1 to 0 is no range",
        ),
        (
            says(cov(&floats(&[2, 3, 4]), 1.0, None, None)),
            "cov: takes at most two axes, not float32[2, 3, 4]",
        ),
        (
            says(cdist(&m, &floats(&[3, 5]), 2.0)),
            "cdist: vectors of one size, not float32[3, 4] and float32[3, 5]",
        ),
        (says(cdist(&m, &m, -1.0)), "cdist: there is no -1-norm"),
        (says(polyval(&m, 2.0)), "polyval: takes a vector of coefficients, not float32[3, 4]"),
        (says(geomspace(-1.0, 2.0, 3, DType::F32)), "geomspace: no multiples lead from -1 to 2"),
        (says(logspace(0.0, 1.0, 3, 10.0, DType::Bool)), "logspace: does not give bool"),
        (says(nonzero(&floats(&[]))), "nonzero: float32[] has no axes"),
        (
            says(masked_fill(&integers(4), &mask, 0)),
            "masked_fill: mask bool[3, 4] does not fit int32[4]",
        ),
        (
            says(masked_fill(&integers(4), &ones(4, DType::Bool).unwrap(), 0.5)),
            "masked_fill: 0.5 does not fit into int32[4]",
        ),
        (says(masked_select(&m, &m)), "masked_select: a mask is bool, not float32[3, 4]"),
        (
            says(index(&m, &[S::array(&ones(4, DType::Bool).unwrap())])),
            "index: mask bool[4] does not fit float32[3, 4] from axis 0 on",
        ),
        (
            says(segment_sum(&m, &integers(4), 2)),
            "segment_sum: a segment for each row of float32[3, 4], not int32[4]",
        ),
        (
            says(pixel_shuffle(&image, 4)),
            "pixel_shuffle: 4² does not divide the channels of float32[1, 3, 4, 6]",
        ),
        (
            says(interpolate(&image, &Target::Factors(vec![-1.0]), linear, false)),
            "interpolate: -1 is no factor",
        ),
        (
            says(grid_sample(&image, &m, linear, Beyond::Zeros, false)),
            "grid_sample: places float32[3, 4] do not fit float32[1, 3, 4, 6]",
        ),
        (
            says(unfold(&image, &Windows::new(5))),
            "unfold: a window that reaches 5 does not fit into 3",
        ),
        (
            says(adaptive_avg_pool(&image, &[0])),
            "adaptive_avg_pool: axis 1 of float32[1, 3, 4, 6] cannot become 0",
        ),
        (
            says(random::gamma(-1.0, [2], DType::F32, None)),
            "gamma: there is no distribution for the shape parameter -1.0",
        ),
        (
            says(random::choice(2, [3], false, None, None)),
            "choice: 3 of 2 are not to be had without putting back",
        ),
    ];
    for (have, want) in found {
        assert_eq!(have, want);
    }
}
