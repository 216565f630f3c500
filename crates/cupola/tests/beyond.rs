//! Functions that MLX lacks: derivatives both ways against differences, nested transforms, and what has no shape
//! before its values are there.

use cupola::ops::{self, Between, Beyond, Bins, Interpolation, Outside, S, Target, Windows};
use cupola::transform::{compile, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap};
use cupola::{Array, DType, Result};

fn f64s(data: &[f64], shape: &[usize]) -> Array {
    Array::from_slice(data, shape).unwrap()
}

/// Numbers between 0.1 and 0.9 without an order or repeats.
fn numbers(seed: usize, shape: &[usize]) -> Array {
    let size: usize = shape.iter().product();
    let data = (0..size).map(|i| 0.1 + 0.8 * (((i + seed) * 37 % 101) as f64 / 101.0));
    f64s(&data.collect::<Vec<_>>(), shape)
}

fn read(x: &Array) -> Result<Vec<f64>> {
    x.astype(DType::F64)?.to_vec()
}

fn close(what: &str, have: &[f64], want: &[f64], tolerance: f64) {
    let near = |(h, w): (&f64, &f64)| (h - w).abs() <= tolerance * w.abs().max(1.0);
    let apart = have.len() != want.len() || !have.iter().zip(want).all(near);
    assert!(!apart, "{what}: {have:?}, should be {want:?}");
}

/// Checks vjp and jvp of a function of one array against differences, and those of its derivative.
fn check(what: &str, x: &Array, f: impl Fn(&Array) -> Result<Array>) -> Result<()> {
    let call = |x: &[Array]| Ok(vec![f(&x[0])?]);
    let size = x.size();
    let along = f64s(&read(&numbers(7, &[size]))?, x.shape());
    let y = f(x)?;
    let seed = numbers(3, y.shape());
    let (_, back) = vjp(call, &[x.clone()], &[seed.clone()])?;
    let (_, moved) = jvp(call, &[x.clone()], &[along.clone()])?;
    let product = |a: &Array, b: &Array| -> Result<f64> {
        Ok(read(a)?.iter().zip(read(b)?).map(|(a, b)| a * b).sum())
    };
    let (one, other) = (product(&back[0], &along)?, product(&seed, &moved[0])?);
    close(what, &[one], &[other], 1e-9);
    let h = 1e-6;
    let shifted = |by: f64| f(&ops::add(x, &ops::multiply(&along, by)?)?);
    let slope = ops::divide(&ops::subtract(&shifted(h)?, &shifted(-h)?)?, 2.0 * h)?;
    close(what, &read(&moved[0])?, &read(&slope)?, 2e-5);
    // The derivative of the derivative.
    let inner = |x: &[Array]| {
        let (_, back) = vjp(call, &[x[0].clone()], &[seed.clone()])?;
        Ok(vec![back[0].clone()])
    };
    let (_, twice) = jvp(inner, &[x.clone()], &[along.clone()])?;
    let inner_at = |by: f64| inner(&[ops::add(x, &ops::multiply(&along, by)?)?]);
    let slope = ops::divide(&ops::subtract(&inner_at(h)?[0], &inner_at(-h)?[0])?, 2.0 * h)?;
    close(&format!("{what}, twice"), &read(&twice[0])?, &read(&slope)?, 1e-4);
    // A batch is its examples.
    let batch = ops::stack(&[x, &ops::multiply(x, 0.5)?], 0)?;
    let both = vmap(call, &[Some(0)], &[0])(&[batch])?;
    let each = ops::stack(&[&f(x)?, &f(&ops::multiply(x, 0.5)?)?], 0)?;
    close(&format!("{what}, batched"), &read(&both[0])?, &read(&each)?, 1e-12);
    Ok(())
}

#[test]
fn derivatives_of_elementwise_functions() -> Result<()> {
    let x = numbers(1, &[2, 3]);
    let y = &numbers(20, &[2, 3]);
    let below = &ops::subtract(&ops::negative(&x)?, 2.0)?;
    check("copysign", &x, |x| ops::copysign(x, below))?;
    check("frac", &x, |x| ops::frac(&ops::multiply(x, 1.3)?))?;
    check("fmax", &x, |x| ops::fmax(x, y))?;
    check("fmin", &x, |x| ops::fmin(y, x))?;
    check("fmod", below, |x| ops::fmod(x, y))?;
    check("fmod by", &ops::multiply(&x, 0.37)?, |x| ops::fmod(below, x))?;
    check("hypot", &x, |x| ops::hypot(x, y))?;
    check("ldexp", &x, |x| ops::ldexp(x, 3))?;
    check("ldexp by", &x, |x| ops::ldexp(y, x))?;
    check("frexp", &x, |x| Ok(ops::frexp(&ops::multiply(x, 0.9)?)?.0))?;
    check("xlogy", &x, |x| ops::xlogy(x, y))?;
    check("xlogy by", &x, |x| ops::xlogy(y, x))?;
    check("logit", &x, |x| ops::logit(x, None))?;
    check("sinc", &x, |x| ops::sinc(&ops::multiply(x, 3.0)?))?;
    check("lgamma", &x, |x| ops::lgamma(&ops::multiply(x, 20.0)?))?;
    check("lgamma below", &x, |x| ops::lgamma(&ops::negative(x)?))?;
    check("digamma", &x, |x| ops::digamma(&ops::multiply(x, 20.0)?))?;
    check("digamma below", &x, |x| ops::digamma(&ops::negative(x)?))?;
    check("i0", &x, |x| ops::i0(&ops::multiply(x, -3.0)?))?;
    check("lerp", &x, |x| ops::lerp(x, y, 0.3))?;
    check("lerp by", &x, |x| ops::lerp(y, 2.0, x))?;
    check("addcmul", &x, |x| ops::addcmul(y, x, x, 0.5))?;
    check("addcdiv", &x, |x| ops::addcdiv(y, y, x, 0.5))
}

/// The slopes of a function of elements.
fn slopes(x: &[f64], f: impl Fn(&Array) -> Result<Array>) -> Result<Vec<f64>> {
    let x = f64s(x, &[x.len()]);
    let sum = |x: &[Array]| Ok(vec![ops::sum(&f(&x[0])?, (), false)?]);
    read(&grad(sum, &[0])(&[x])?[0])
}

/// The same numbers, NaN among them.
fn same(what: &str, have: &[f64], want: &[f64]) {
    let equal = have.iter().zip(want).all(|(h, w)| h == w || h.is_nan() && w.is_nan());
    assert!(have.len() == want.len() && equal, "{what}: {have:?}, should be {want:?}");
}

#[test]
fn derivatives_at_poles_and_ends() -> Result<()> {
    const NONE: f64 = f64::NAN;
    let (end, below) = (f64::INFINITY, f64::NEG_INFINITY);
    same("lgamma", &slopes(&[0.0, -0.0, end, NONE], ops::lgamma)?, &[below, end, end, NONE]);
    same("lgamma", &read(&ops::lgamma(&f64s(&[0.0, end, below, -2.0], &[4]))?)?, &[end; 4]);
    same("digamma", &slopes(&[-1.0, -3.0], ops::digamma)?, &[NONE; 2]);
    let logit = |x: &Array| ops::logit(x, None);
    let outside = [-1.0, 2.5, below, end, NONE];
    same("logit", &slopes(&outside, logit)?, &[NONE; 5]);
    same("logit", &read(&logit(&f64s(&outside, &[5]))?)?, &[NONE; 5]);
    same("logit", &slopes(&[0.0, 1.0, 0.5], logit)?, &[end, end, 4.0]);
    close(
        "logit",
        &slopes(&[0.1, 0.75, 0.9], logit)?,
        &[1.0 / 0.09, 16.0 / 3.0, 1.0 / 0.09],
        1e-12,
    );
    let xlogy = |y: f64| move |x: &Array| ops::xlogy(x, y);
    same("xlogy", &slopes(&[0.0, 2.0], xlogy(end))?, &[end; 2]);
    same("xlogy", &slopes(&[0.0], xlogy(0.0))?, &[0.0]);
    same("xlogy", &read(&xlogy(end)(&f64s(&[0.0], &[1]))?)?, &[0.0]);
    Ok(())
}

#[test]
fn samples_at_no_place_are_the_first_pixels() -> Result<()> {
    let image = f64s(&(1..=16).map(f64::from).collect::<Vec<_>>(), &[1, 4, 4, 1]);
    for (mode, want) in [(Interpolation::Linear, [7.8, 2.7]), (Interpolation::Nearest, [9.0, 3.0])]
    {
        for beyond in [Beyond::Border, Beyond::Reflection] {
            for place in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY] {
                // The last pixel is beside +∞.
                if beyond == Beyond::Border && place > 0.0 {
                    continue;
                }
                let places = f64s(&[place, 0.1, 0.1, place], &[1, 2, 2]);
                let f = |g: &Array| ops::grid_sample(&image, g, mode, beyond, false);
                close("grid_sample", &read(&f(&places)?)?, &want, 1e-6);
                let sum = |g: &[Array]| Ok(vec![ops::sum(&f(&g[0])?, (), false)?]);
                let slopes = read(&grad(sum, &[0])(&[places])?[0])?;
                same("grid_sample", &[slopes[0], slopes[3]], &[0.0; 2]);
            }
        }
    }
    Ok(())
}

#[test]
fn derivatives_of_statistics() -> Result<()> {
    let x = numbers(2, &[4, 5]);
    let row = &numbers(30, &[5]);
    let edges = &f64s(&[0.0, 0.3, 0.7, 1.0], &[4]);
    check("nansum", &x, |x| ops::nansum(&ops::square(x)?, 0, false))?;
    check("nanmean", &x, |x| ops::nanmean(&ops::square(x)?, 1, true))?;
    check("nanmax", &x, |x| ops::square(&ops::nanmax(x, 1, false)?))?;
    check("nanmedian", &x, |x| ops::square(&ops::nanmedian(x, 0, false)?))?;
    check("quantile", &x, |x| {
        ops::square(&ops::quantile(x, &[0.2, 0.6], 1, false, Between::Linear)?)
    })?;
    check("cov", &x, |x| ops::cov(x, 1.0, None, Some(row)))?;
    check("corrcoef", &x, ops::corrcoef)?;
    check("cdist", &x, |x| ops::cdist(x, &ops::add(x, 1)?, 2.0))?;
    check("cdist 3", &x, |x| ops::cdist(x, &ops::add(x, 1)?, 3.0))?;
    check("trapezoid", &x, |x| ops::trapezoid(&ops::square(x)?, Some(row), 1.0, 1))?;
    check("polyval", &x, |x| ops::polyval(row, x))?;
    check("interp", &x, |x| {
        let at = f64s(&[0.05, 0.41, 0.93], &[3]);
        ops::interp(
            &at,
            edges,
            &ops::index(&ops::square(x)?, &[S::range(..), S::at(0)])?,
            Outside::default(),
        )
    })?;
    check("histogram", &x, |x| {
        let places = Array::from_slice(&[0.1f64; 20], [4, 5])?;
        Ok(ops::histogram(&places, Bins::Edges(edges), Some(&ops::square(x)?), false)?.0)
    })?;
    let segments = &Array::from_slice(&[0, 2, 0, 2], [4])?;
    check("segment_sum", &x, |x| ops::segment_sum(&ops::square(x)?, segments, 3))?;
    check("segment_mean", &x, |x| {
        ops::index(&ops::segment_mean(&ops::square(x)?, segments, 3)?, &[S::at(0)])
    })?;
    let mask = &ops::greater(&x, 0.4)?;
    check("masked_fill", &x, |x| ops::masked_fill(&ops::square(x)?, mask, 2))?;
    let column = &Array::from_slice(&[1, -1], [2])?;
    check("index_fill", &x, |x| ops::index_fill(&ops::square(x)?, 1, column, 2))
}

#[test]
fn derivatives_of_images() -> Result<()> {
    let x = numbers(4, &[1, 4, 3, 4]);
    let square = |x: &Array| ops::square(x);
    check("pixel_shuffle", &x, |x| ops::pixel_shuffle(&square(x)?, 2))?;
    for mode in [
        Interpolation::Nearest,
        Interpolation::NearestExact,
        Interpolation::Linear,
        Interpolation::Cubic,
        Interpolation::Area,
    ] {
        let target = Target::Sizes(vec![3, 5]);
        check("interpolate", &x, |x| ops::interpolate(&square(x)?, &target, mode, false))?;
    }
    let places = &ops::subtract(&ops::multiply(&numbers(9, &[1, 2, 3, 2]), 2)?, 1)?;
    for mode in [Interpolation::Nearest, Interpolation::Linear, Interpolation::Cubic] {
        for beyond in [Beyond::Zeros, Beyond::Border, Beyond::Reflection] {
            check("grid_sample", &x, |x| {
                ops::grid_sample(&square(x)?, places, mode, beyond, false)
            })?;
        }
    }
    check("grid_sample at", places, |at| {
        ops::grid_sample(&x, at, Interpolation::Linear, Beyond::Zeros, false)
    })?;
    let windows = &Windows::new(2).padding(1);
    check("unfold", &x, |x| ops::unfold(&square(x)?, windows))?;
    check("fold", &x, |x| ops::fold(&ops::unfold(&square(x)?, windows)?, &[4, 3], windows))?;
    check("adaptive_avg_pool", &x, |x| ops::adaptive_avg_pool(&square(x)?, &[3, 2]))?;
    check("adaptive_max_pool", &x, |x| ops::adaptive_max_pool(&square(x)?, &[3, 2]))
}

#[test]
fn images_between_pixels_are_floats() -> Result<()> {
    let target = Target::Sizes(vec![3]);
    for dtype in DType::ALL {
        let x = ops::ones([1, 2, 1], dtype)?;
        assert_eq!(ops::interpolate(&x, &target, Interpolation::Nearest, false)?.dtype(), dtype);
        let smooth = ops::interpolate(&x, &target, Interpolation::Linear, false);
        match dtype {
            DType::C32 | DType::C64 => assert!(smooth.is_err()),
            dtype => assert_eq!(smooth?.dtype(), dtype.to_inexact()),
        }
    }
    Ok(())
}

#[test]
fn jacobians_agree_and_nest() -> Result<()> {
    let x = numbers(5, &[3]);
    let f = |x: &[Array]| {
        let y = ops::multiply(&ops::sin(&x[0])?, &x[1])?;
        Ok(vec![ops::cumsum(&y, 0, Default::default())?, ops::sum(&y, (), false)?])
    };
    let at = [x.clone(), numbers(11, &[3])];
    let (columns, rows) = (jacfwd(f, &[1, 0])(&at)?, jacrev(f, &[1, 0])(&at)?);
    for (one, other) in columns.iter().flatten().zip(rows.iter().flatten()) {
        assert_eq!(one.aval(), other.aval());
        close("jacobians", &read(one)?, &read(other)?, 1e-14);
    }
    assert_eq!(columns[0][0].shape()[..], [3, 3]);
    assert_eq!(columns[1][1].shape()[..], [3]);
    let (_, slope) = linearize(f, &at)?;
    let moved = slope.apply(&[numbers(1, &[3]), numbers(2, &[3])])?;
    let (_, want) = jvp(f, &at, &[numbers(1, &[3]), numbers(2, &[3])])?;
    for (one, other) in moved.iter().zip(&want) {
        close("linearize", &read(one)?, &read(other)?, 1e-14);
    }
    // Of x³: 6x on the diagonal, through every pair of transforms.
    let cube = |x: &[Array]| Ok(vec![ops::sum(&ops::power(&x[0], 3)?, (), false)?]);
    let want: Vec<f64> = read(&x)?
        .iter()
        .enumerate()
        .flat_map(|(i, v)| (0..3).map(move |j| if i == j { 6.0 * v } else { 0.0 }))
        .collect();
    let flat = |x: Vec<Vec<Array>>| -> Vec<Array> { x.into_iter().flatten().collect() };
    let forward = |x: &[Array]| Ok(flat(jacfwd(cube, &[0])(x)?));
    let reverse = |x: &[Array]| Ok(flat(jacrev(cube, &[0])(x)?));
    let point = [x.clone()];
    let found = [
        jacfwd(forward, &[0])(&point)?,
        jacrev(forward, &[0])(&point)?,
        jacfwd(reverse, &[0])(&point)?,
        jacrev(reverse, &[0])(&point)?,
        jacfwd(grad(cube, &[0]), &[0])(&point)?,
        hessian(cube, &[0])(&point)?.remove(0),
    ];
    for hessian in found {
        close("hessian", &read(&hessian[0][0])?, &want, 1e-12);
    }
    Ok(())
}

#[test]
fn shapes_that_depend_on_values_are_errors_where_there_are_none() {
    let x = Array::from_slice(&[0.0f32, 2.0, 3.0, 0.0], [2, 2]).unwrap();
    type Function = fn(&Array) -> Result<Array>;
    let functions: [Function; 5] = [
        ops::argwhere,
        |x| Ok(ops::nonzero(x)?.remove(0)),
        |x| ops::masked_select(x, &ops::greater(x, 1)?),
        |x| ops::index(x, &[S::array(&ops::greater(x, 1)?)]),
        |x| ops::repeat_interleave(x, &x.astype(DType::I32)?.reshape(-1)?, ()),
    ];
    for f in functions {
        f(&x).unwrap();
        let call = |x: &[Array]| Ok(vec![f(&x[0])?]);
        let compiled = compile(move |_: &mut (), x: &[Array]| call(x));
        let error = compiled.call(&mut (), &[x.clone()]).unwrap_err().to_string();
        assert!(error.contains("compile"), "{error}");
        let batch = ops::stack(&[&x, &x], 0).unwrap();
        let error = vmap(call, &[Some(0)], &[0])(&[batch]).unwrap_err().to_string();
        assert!(error.contains("vmap"), "{error}");
    }
}

#[test]
fn transposed_convolutions_with_steps_as_large_as_their_kernels() -> Result<()> {
    // With its kernel backwards one goes the way of all others.
    for (sizes, kernel, inputs, outputs) in [
        (vec![7], vec![2], 3, 5),
        (vec![4, 5], vec![2, 3], 3, 4),
        (vec![4, 5], vec![3, 1], 1, 2),
        (vec![2, 3, 4], vec![2, 2, 2], 2, 1),
        (vec![3, 3], vec![2, 2], 0, 3),
    ] {
        let axes = sizes.len();
        let x = numbers(1, &[&[2], &sizes[..], &[inputs]].concat());
        let w = numbers(5, &[&[outputs], &kernel[..], &[inputs]].concat());
        let backwards = ops::flip(&w, (1..=axes as isize).collect::<Vec<_>>())?;
        let convolve = |x: &Array, w: &Array, flip: bool| {
            let options = ops::ConvOptions::new().stride(&kernel[..]).flip(flip);
            match axes {
                1 => ops::conv_transpose1d(x, w, &options),
                2 => ops::conv_transpose2d(x, w, &options),
                _ => ops::conv_transpose3d(x, w, &options),
            }
        };
        let (have, want) = (convolve(&x, &w, false)?, convolve(&x, &backwards, true)?);
        assert_eq!(have.shape(), want.shape());
        close("transposed", &read(&have)?, &read(&want)?, 1e-12);
        // As a convolution over an input with gaps.
        let mut gaps = ops::ConvOptions::new().input_dilation(&kernel[..]).flip(true);
        gaps.padding = kernel.iter().map(|&k| (k - 1, k - 1)).collect();
        close("with gaps", &read(&ops::conv_general(&x, &w, &gaps)?)?, &read(&want)?, 1e-12);
        if x.size() > 0 {
            check("by its input", &x, |x| convolve(x, &w, false))?;
            check("by its kernel", &w, |w| convolve(&x, w, false))?;
        }
    }
    Ok(())
}
