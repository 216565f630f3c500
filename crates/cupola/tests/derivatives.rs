//! Derivatives of functions of several primitives, of composites and of given derivatives. Those of the
//! primitives are in the suite.

use cupola::prim::*;
use cupola::transform::{checkpoint, custom_function, grad, jvp, vjp, vmap};
use cupola::{Array, DType, Dims, Result, nn, ops};

fn f64s(data: &[f64], shape: &[usize]) -> Array {
    Array::from_slice(data, shape).unwrap()
}

/// As many of one number as `like` has.
fn filled(value: f64, like: &Array) -> Array {
    f64s(&vec![value; like.size()], like.shape())
}

fn read(x: &Array) -> Result<Vec<f64>> {
    x.astype(DType::F64)?.to_vec()
}

/// Numbers between −1 and 1 without an order.
fn numbers(seed: usize, shape: &[usize]) -> Array {
    let size: usize = shape.iter().product();
    let data = (0..size).map(|i| ((i + seed) * 37 % 23) as f64 / 11.5 - 1.0);
    f64s(&data.collect::<Vec<_>>(), shape)
}

fn close(what: &str, have: &[f64], want: &[f64]) {
    let apart = have.iter().zip(want).any(|(h, w)| (h - w).abs() > 1e-12);
    assert!(have.len() == want.len() && !apart, "{what}: {have:?}, should be {want:?}");
}

#[test]
fn a_masked_infinity_stays_out() -> Result<()> {
    // The branch that is not taken has an infinite slope at 0: 0·∞ must not come back.
    let x = f64s(&[0.0, 4.0], &[2]);
    let flags = Array::from_slice(&[false, true], [2])?;
    let f = |x: &[Array]| {
        let one = filled(1.0, &x[0]);
        let safe = Array::apply(Select, &[&flags, &x[0], &one])?;
        Ok(vec![Array::apply(Unary::Sqrt, &[&safe])?])
    };
    let (_, given) = vjp(f, std::slice::from_ref(&x), &[filled(1.0, &x)])?;
    assert_eq!(read(&given[0])?, [0.0, 0.25]);
    Ok(())
}

#[test]
fn narrow_operands_of_a_wide_product_get_narrow_cotangents() -> Result<()> {
    let narrow = |x: &Array| Array::apply(Cast { to: DType::BF16 }, &[x]);
    let a = narrow(&numbers(5, &[2, 3]))?;
    let b = narrow(&numbers(10, &[3, 2]))?;
    let dot = Dot::of(DType::F32);
    let f = |x: &[Array]| Ok(vec![Array::apply(dot, &[&x[0], &x[1]])?]);
    let seed = Array::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2])?;
    let (y, given) = vjp(f, &[a.clone(), b.clone()], &[seed])?;
    assert_eq!(y[0].dtype(), DType::F32);
    assert_eq!((given[0].aval(), given[1].aval()), (a.aval(), b.aval()));
    // ct·bᵀ in float32, rounded once.
    let wide = read(&Array::apply(Cast { to: DType::F32 }, &[&b])?)?;
    let first = wide[0] + 2.0 * wide[1];
    let found = read(&Array::apply(Cast { to: DType::F32 }, &[&given[0]])?)?[0];
    assert!((found - first).abs() <= first.abs() / 256.0, "{found}, should be {first}");
    Ok(())
}

#[test]
fn powers_differentiate_at_zero_until_nothing_is_left() -> Result<()> {
    let cube = |x: &[Array]| {
        let three = filled(3.0, &x[0]);
        Ok(vec![Array::apply(Binary::Power, &[&x[0], &three])?])
    };
    let x = f64s(&[0.0], &[1]);
    let first = grad(cube, &[0]);
    let second = grad(&first, &[0]);
    let third = grad(&second, &[0]);
    let fourth = grad(&third, &[0]);
    let at = |f: &dyn Fn(&[Array]) -> Result<Vec<Array>>| read(&f(std::slice::from_ref(&x))?[0]);
    assert_eq!(at(&first)?, [0.0]);
    assert_eq!(at(&second)?, [0.0]);
    assert_eq!(at(&third)?, [6.0]);
    assert_eq!(at(&fourth)?, [0.0]);
    Ok(())
}

#[test]
fn powers_have_no_slope_by_the_exponent_below_zero() -> Result<()> {
    let power = |x: &[Array]| Ok(vec![Array::apply(Binary::Power, &[&x[0], &x[1]])?]);
    let (a, b) = (f64s(&[-2.0, 0.0, 1.0], &[3]), f64s(&[3.0; 3], &[3]));
    let (_, given) = vjp(power, &[a, b], &[f64s(&[1.0; 3], &[3])])?;
    assert_eq!(read(&given[0])?, [12.0, 0.0, 3.0]);
    let slopes = read(&given[1])?;
    assert!(slopes[0].is_nan() && slopes[1..] == [0.0, 0.0], "{slopes:?}");
    Ok(())
}

/// Complex numbers.
fn complex(numbers: &[(f32, f32)]) -> Array {
    let bytes: Vec<u8> = numbers
        .iter()
        .flat_map(|&(re, im)| [re.to_le_bytes(), im.to_le_bytes()].concat())
        .collect();
    Array::from_bytes(&bytes, DType::C64, [numbers.len()]).unwrap()
}

/// Their parts.
fn parts(z: &Array) -> Result<Vec<(f64, f64)>> {
    let (re, im) = (read(&ops::real(z)?)?, read(&ops::imag(z)?)?);
    Ok(re.into_iter().zip(im).collect())
}

fn agree(what: &str, have: &Array, want: &[(f64, f64)]) -> Result<()> {
    let have = parts(have)?;
    let near = |h: f64, w: f64| h == w || h.is_nan() && w.is_nan() || (h - w).abs() < 1e-5;
    let equal = have.iter().zip(want).all(|(h, w)| near(h.0, w.0) && near(h.1, w.1));
    assert!(have.len() == want.len() && equal, "{what}: {have:?}, should be {want:?}");
    Ok(())
}

#[test]
fn complex_powers_and_signs_differentiate_at_zero() -> Result<()> {
    let zero = complex(&[(0.0, 0.0)]);
    let real = |f: &dyn Fn(&Array) -> Result<Array>, z: &[Array]| Ok(vec![ops::real(&f(&z[0])?)?]);
    for (exponent, want) in [
        (0.0, [0.0, 0.0, 0.0]),
        (1.0, [1.0, 0.0, 0.0]),
        (1.5, [0.0; 3]),
        (2.0, [0.0, 2.0, 0.0]),
        (3.0, [0.0, 0.0, 6.0]),
        (4.0, [0.0; 3]),
    ] {
        let power = |z: &[Array]| real(&|z| ops::power(z, &complex(&[(exponent, 0.0)])), z);
        let first = grad(power, &[0]);
        let second = grad(|z: &[Array]| Ok(vec![ops::real(&first(z)?[0])?]), &[0]);
        let third = grad(|z: &[Array]| Ok(vec![ops::real(&second(z)?[0])?]), &[0]);
        let zero = std::slice::from_ref(&zero);
        for (have, want) in [first(zero)?, second(zero)?, third(zero)?].iter().zip(want) {
            agree(&format!("to the power of {exponent}"), &have[0], &[(want, 0.0)])?;
        }
    }
    let sign = grad(|z: &[Array]| real(&|z| ops::sign(z), z), &[0]);
    agree("sign", &sign(&[zero.clone()])?[0], &[(0.0, 0.0)])?;
    let (end, none) = (f64::INFINITY, f64::NAN);
    let exponents = complex(&[(0.0, 1.0), (-1.0, 0.0), (0.0, 0.0), (1.0, 0.5)]);
    let want = [(none, none), (end, none), (1.0, 0.0), (0.0, 0.0)];
    agree("powers of 0", &ops::power(&complex(&[(0.0, 0.0); 4]), &exponents)?, &want)
}

#[test]
fn complex_logarithms_of_sums_keep_their_angle() -> Result<()> {
    const END: f32 = f32::INFINITY;
    let (end, none) = (f64::INFINITY, f64::NAN);
    let a = complex(&[(END, -2.5), (END, 1.0), (END, 1.0), (-END, 1.0), (0.0, 1.0)]);
    let b = complex(&[(0.0, 0.0), (END, 2.0), (END, 1.0), (0.0, 1.0), (2.0, 0.0)]);
    let last = (2.07617, 0.105725);
    let want = [(end, -2.5), (end, none), (end, 1.0), (0.0, 1.0), last];
    agree("logaddexp", &ops::logaddexp(&a, &b)?, &want)?;
    let f = |x: &[Array]| Ok(vec![ops::real(&ops::sum(&ops::logaddexp(&x[0], &b)?, (), false)?)?]);
    agree(
        "its slope",
        &ops::index(&grad(f, &[0])(&[a.clone()])?[0], &[ops::S::at(0)])?.reshape([1])?,
        &[(1.0, 0.0)],
    )?;
    let all = ops::logsumexp(&complex(&[(END, 1.0), (0.0, 0.0)]), (), true)?;
    agree("logsumexp", &all, &[(end, 1.0)])?;
    let x = complex(&[(0.0, 1.0), (2.0, 0.0), (END, 1.0), (0.0, 0.0)]);
    let running =
        |reverse, exclusive| ops::logcumsumexp(&x, 0, ops::ScanOptions { reverse, exclusive });
    let forth = [(0.0, 1.0), last, (end, 1.0), (end, 1.0)];
    agree("logcumsumexp", &running(false, false)?, &forth)?;
    let apart = [(-end, 0.0), forth[0], forth[1], forth[2]];
    agree("without its own", &running(false, true)?, &apart)?;
    let back = [(end, 1.0), (end, 1.0), (0.0, 0.0), (-end, 0.0)];
    agree("reverse", &running(true, true)?, &back)?;
    agree("of nothing", &ops::logcumsumexp(&complex(&[]), (), Default::default())?, &[])
}

#[test]
fn sinc_takes_complex_numbers() -> Result<()> {
    let z = complex(&[(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (2.5, 0.5), (0.1, 0.1), (-2.0, 0.0)]);
    let want = [(3.67608, 0.0), (1.0, 0.0), (0.0, 0.0), (0.30719, -0.061438), (0.99968, -0.032897)];
    agree("sinc", &ops::sinc(&z)?, &[&want[..], &[(0.0, 0.0)]].concat())?;
    let slope =
        grad(|z: &[Array]| Ok(vec![ops::real(&ops::sum(&ops::sinc(&z[0])?, (), false)?)?]), &[0]);
    // (cos πz − sinc z)/z, conjugated.
    agree(
        "its slope",
        &slope(&[complex(&[(1.0, 0.0), (0.0, 0.0)])])?[0],
        &[(-1.0, 0.0), (0.0, 0.0)],
    )
}

fn swish(x: &[Array]) -> Result<Vec<Array>> {
    let gate = Array::apply(Unary::Sigmoid, &[&x[0]])?;
    let y = Array::apply(Binary::Mul, &[&x[0], &gate])?;
    Ok(vec![Array::apply(Binary::Mul, &[&y, &x[1]])?])
}

#[test]
fn composites_differentiate_and_batch_as_their_bodies() -> Result<()> {
    let inputs = [numbers(15, &[4]), numbers(20, &[4])];
    let directions = [numbers(25, &[4]), numbers(30, &[4])];
    let call = |x: &[Array]| custom_function(swish).call(x);
    let kept = checkpoint(swish);
    let want = vjp(swish, &inputs, &directions[..1])?.1;
    let pushed = jvp(swish, &inputs, &directions)?.1;
    for (name, found) in [
        ("call", vjp(call, &inputs, &directions[..1])?.1),
        ("checkpoint", vjp(&kept, &inputs, &directions[..1])?.1),
    ] {
        for (have, want) in found.iter().zip(&want) {
            close(name, &read(have)?, &read(want)?);
        }
    }
    let found = jvp(call, &inputs, &directions)?.1;
    close("jvp", &read(&found[0])?, &read(&pushed[0])?);

    let rows = numbers(35, &[3, 4]);
    let arguments = [rows, inputs[1].clone()];
    let want = vmap(swish, &[Some(0), None], &[0])(&arguments)?;
    let found = vmap(call, &[Some(0), None], &[0])(&arguments)?;
    close("vmap", &read(&found[0])?, &read(&want[0])?);
    Ok(())
}

#[test]
fn a_given_derivative_holds_over_a_batch_too() -> Result<()> {
    let tripled = |x: &[Array]| {
        custom_function(|x: &[Array]| Ok(vec![Array::apply(Binary::Mul, &[&x[0], &x[1]])?]))
            .with_vjp(|x, _, ct| {
                let three = filled(3.0, &x[0]);
                let left = Array::apply(Binary::Mul, &[&ct[0], &three])?;
                Ok(vec![left, ct[0].clone()])
            })
            .call(x)
    };
    let x = f64s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]);
    let shared = f64s(&[5.0, 7.0], &[2]);
    let loss = |x: &[Array]| {
        let y = vmap(tripled, &[Some(0), None], &[0])(x)?;
        let all = Reduce { kind: ReduceKind::Sum, axes: Dims::from_slice(&[0, 1]) };
        Ok(vec![Array::apply(all, &[&y[0]])?])
    };
    let given = grad(loss, &[0, 1])(&[x, shared])?;
    assert_eq!(read(&given[0])?, [3.0; 6]);
    assert_eq!(read(&given[1])?, [3.0, 3.0]);
    Ok(())
}

type Unit = fn(&Array) -> Result<Array>;

/// Slopes of a function at these numbers.
fn slopes(f: Unit, x: &Array) -> Result<Vec<f64>> {
    let (_, given) = vjp(|x| Ok(vec![f(&x[0])?]), std::slice::from_ref(x), &[filled(1.0, x)])?;
    read(&given[0])
}

#[test]
fn exponential_units_are_smooth_at_zero_and_keep_nan() -> Result<()> {
    let x = f64s(&[0.0, -0.0, f64::NAN], &[3]);
    let units: [(&str, Unit, f64); 5] = [
        ("elu", |x| ops::elu(x, 1.0), 1.0),
        ("elu of 2", |x| ops::elu(x, 2.0), 2.0),
        ("celu", |x| ops::celu(x, 2.0), 1.0),
        ("selu", ops::selu, 1.050_700_987_355_480_5 * 1.673_263_242_354_377_2),
        ("relu2", nn::relu2, 0.0),
    ];
    for (name, unit, at_zero) in units {
        let found = slopes(unit, &x)?;
        close(name, &found[..2], &[at_zero; 2]);
        assert!(found[2].is_nan() && read(&unit(&x)?)?[2].is_nan(), "{name}: NaN is lost");
        assert_eq!(read(&unit(&x)?)?[0], 0.0, "{name}");
    }
    Ok(())
}

#[test]
fn a_nan_extreme_has_nan_slopes_in_both_directions() -> Result<()> {
    let x = f64s(&[1.0, f64::NAN, 2.0, 2.0, f64::NEG_INFINITY, f64::INFINITY], &[3, 2]);
    for (kind, want) in
        [(ReduceKind::Max, [0.5, 0.5, 0.0, 1.0]), (ReduceKind::Min, [0.5, 0.5, 1.0, 0.0])]
    {
        let f = |x: &[Array]| {
            Ok(vec![Array::apply(Reduce { kind, axes: Dims::from_slice(&[1]) }, &[&x[0]])?])
        };
        let (_, given) = vjp(f, std::slice::from_ref(&x), &[f64s(&[1.0; 3], &[3])])?;
        let given = read(&given[0])?;
        assert!(given[0].is_nan() && given[1].is_nan(), "{kind:?}: {given:?}");
        assert_eq!(given[2..], want, "{kind:?}");
        let (_, moved) = jvp(f, std::slice::from_ref(&x), &[filled(1.0, &x)])?;
        let moved = read(&moved[0])?;
        assert!(moved[0].is_nan() && moved[1..] == [1.0, 1.0], "{kind:?}: {moved:?}");
    }
    Ok(())
}

#[test]
fn a_given_derivative_may_leave_out_what_nobody_asks_for() -> Result<()> {
    let call = |x: &[Array]| {
        custom_function(|x: &[Array]| Ok(vec![Array::apply(Binary::Mul, &[&x[0], &x[1]])?]))
            .with_vjp(|x, _, ct| Ok(vec![Array::apply(Binary::Mul, &[&ct[0], &x[1]])?]))
            .call(x)
    };
    let x = [f64s(&[2.0], &[]), f64s(&[3.0], &[])];
    assert_eq!(read(&grad(call, &[0])(&x)?[0])?, [3.0]);
    let rows = vmap(grad(call, &[0]), &[Some(0), None], &[0]);
    assert_eq!(read(&rows(&[f64s(&[2.0, 4.0], &[2]), x[1].clone()])?[0])?, [3.0, 3.0]);
    let error = grad(call, &[0, 1])(&x).unwrap_err().to_string();
    assert_eq!(error, "custom_function: its vjp gave 1 arrays for 2 inputs");
    Ok(())
}
