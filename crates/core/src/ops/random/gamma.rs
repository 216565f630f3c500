//! Numbers of the gamma distribution, and how they move with its parameter. Beta and Dirichlet distributions are made
//! of them.

use super::distributions::{keys, rounds_of};
use super::{normal, unit};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::operand::{Operand, cast, constant_like};
use crate::ops::{
    abs, add, digamma, divide, equal, exp, expm1, greater, isnan, less, log, log1p, logical_and,
    logical_or, maximum, minimum, multiply, negative, reshape, sqrt, square, stop_gradient,
    subtract, sum, unstack, where_, zeros_like,
};
use crate::shape::Shape;
use crate::transform::custom_function;

/// Numbers of the gamma distribution of scale 1.
pub(super) struct Gamma {
    pub(super) numbers: Array,
    /// Their logarithms: where numbers are too small for their dtype, these are not.
    pub(super) logarithms: Array,
}

impl Gamma {
    /// Numbers of `dtype`'s accumulator with the parameter `a`. Of an array's negative parameters they are NaN.
    pub(super) fn draw(
        a: Operand<'_>,
        shape: &Shape,
        dtype: DType,
        key: Option<&Array>,
    ) -> Result<Gamma> {
        let is_array = matches!(a, Operand::Array(_));
        let a = a.to(dtype.accumulator(), shape)?;
        let parts = Parts::draw(&stop_gradient(&a)?, shape, key)?;
        let (numbers, logarithms) = (parts.numbers()?, parts.logarithms()?);
        if !is_array {
            return Ok(Gamma { numbers, logarithms });
        }
        moving(&a, numbers, logarithms, parts.ratios()?)
    }
}

/// Drawn numbers in parts: each is d·r³·eᵇ.
struct Parts {
    a: Array,
    d: Array,
    r: Array,
    b: Array,
    /// What d is beyond a.
    beyond: Array,
    /// Where the parameter is 0, and where there is no distribution.
    is_zero: Array,
    is_invalid: Array,
}

impl Parts {
    /// G. Marsaglia and W. W. Tsang, *A simple method for generating gamma variables*, ACM Transactions on
    /// Mathematical Software 26 (2000): of the candidates at least 95 % are accepted, so that 8 of them fail once in
    /// 10¹⁰ times. The mode then stands for them. A parameter below 1 is that of one more, times u^(1/a).
    fn draw(a: &Array, shape: &Shape, key: Option<&Array>) -> Result<Parts> {
        const ROUNDS: usize = 8;
        let (keys, wide) = (keys(key, 3)?, a.dtype());
        let many = rounds_of(ROUNDS, shape);
        let normals = unstack(&normal(many.clone(), wide, Some(&keys[0]))?, 0)?;
        let evens = unstack(&unit("gamma", &many, wide, Some(&keys[1]))?, 0)?;
        let below = less(a, 1)?;
        let d = subtract(&where_(&below, &add(a, 1)?, a)?, 1.0 / 3.0)?;
        let c = divide(1, &multiply(&sqrt(&d)?, 3)?)?;
        let mut r = constant_like(&d, 1.0);
        for (x, u) in normals.iter().zip(&evens).rev() {
            let root = add(&multiply(&c, x)?, 1)?;
            let inside = greater(&root, 0)?;
            let root = where_(&inside, &root, 1)?;
            let cube = multiply(&multiply(&root, &root)?, &root)?;
            let bound = add(&subtract(1, &cube)?, &multiply(&log(&root)?, 3)?)?;
            let bound = add(&multiply(&square(x)?, 0.5)?, &multiply(&d, &bound)?)?;
            let accepted = logical_and(&inside, &less(&log(u)?, &bound)?)?;
            r = where_(&accepted, &root, &r)?;
        }
        let u = subtract(1, &unit("gamma", shape, wide, Some(&keys[2]))?)?;
        let safe = positive(a)?;
        let b = where_(&below, &divide(&log(&u)?, &safe)?, 0)?;
        let beyond = where_(&below, &constant_like(a, 2.0 / 3.0), -1.0 / 3.0)?;
        let is_invalid = logical_or(&less(a, 0)?, &isnan(a)?)?;
        Ok(Parts { a: safe, d, r, b, beyond, is_zero: equal(a, 0)?, is_invalid })
    }

    fn numbers(&self) -> Result<Array> {
        let cube = multiply(&multiply(&self.r, &self.r)?, &self.r)?;
        self.masked(&multiply(&multiply(&self.d, &cube)?, &exp(&self.b)?)?, 0.0)
    }

    fn logarithms(&self) -> Result<Array> {
        let main = add(&log(&self.d)?, &multiply(&log(&self.r)?, 3)?)?;
        self.masked(&add(&main, &self.b)?, f64::NEG_INFINITY)
    }

    /// The logarithms of the numbers by the parameter: of large ones they keep digits that the logarithms lose.
    fn ratios(&self) -> Result<Array> {
        let main = add(&multiply(&log(&self.r)?, 3)?, &self.b)?;
        add(&main, &log1p(&divide(&self.beyond, &self.a)?)?)
    }

    fn masked(&self, numbers: &Array, of_zero: f64) -> Result<Array> {
        where_(&self.is_invalid, f64::NAN, &where_(&self.is_zero, of_zero, numbers)?)
    }
}

/// The same numbers as functions of the parameter. One moves as the quantile does that it is: the probability of
/// less than it stays. M. Figurnov, S. Mohamed, A. Mnih, *Implicit reparameterization gradients*, 2018.
fn moving(a: &Array, numbers: Array, logarithms: Array, ratios: Array) -> Result<Gamma> {
    let moved = custom_function(|x: &[Array]| Ok(x[1..].to_vec()))
        .with_jvp(|inputs, outputs, tangents| {
            let (a, moves) = (&inputs[0], &tangents[0]);
            let log_moves = multiply(&slope(a, &outputs[2])?, moves)?;
            Ok(vec![
                multiply(&there(a, &outputs[0])?, &log_moves)?,
                log_moves.clone(),
                subtract(&log_moves, &divide(moves, &positive(a)?)?)?,
            ])
        })
        .with_vjp(|inputs, outputs, cotangents| {
            let (a, ratios) = (&inputs[0], &cotangents[2]);
            let numbers = there(a, &outputs[0])?;
            let of_logs = add(&multiply(&numbers, &cotangents[0])?, &cotangents[1])?;
            let of_logs = multiply(&slope(a, &outputs[2])?, &add(&of_logs, ratios)?)?;
            let mut found = vec![subtract(&of_logs, &divide(ratios, &positive(a)?)?)?];
            found.extend(inputs[1..].iter().map(zeros_like).collect::<Result<Vec<_>>>()?);
            Ok(found)
        });
    let out = moved.call(&[a.clone(), numbers, logarithms, ratios])?;
    Ok(Gamma { numbers: out[0].clone(), logarithms: out[1].clone() })
}

/// The numbers, and 0 where there is no distribution.
fn there(a: &Array, numbers: &Array) -> Result<Array> {
    where_(&greater(a, 0)?, numbers, 0)
}

/// `a`, and 1 where it is no parameter.
fn positive(a: &Array) -> Result<Array> {
    where_(&greater(a, 0)?, a, 1)
}

/// The derivative by `a` of the logarithm of the number z = a·e^`ratio` of the gamma distribution, whose probability
/// of less than z, P(a, z), stays: −(∂P/∂a)/(z·∂P/∂z). It is 0 where `a` is no parameter, and at most the dtype's largest
/// number.
///
/// With t = z·eᵉ this is ∫ exp(a·e − z·(eᵉ − 1))·(ln z + e − ψ(a)) de over e > 0, and the negative of that over e < 0.
/// Above a + 1 the first is taken, elsewhere the second for a + 1, from which partial integration leads to a: so the
/// exponent falls from the start, and nothing cancels. The integral is a sum over points by H. Takahasi and M. Mori,
/// *Double exponential formulas for numerical integration*, 1974. Beside numbers of 40 digits, for `a` from 10⁻⁴ to
/// 10³, it is right to 4·10⁻⁶ in float32 and 10⁻¹³ in float64.
fn slope(a: &Array, ratio: &Array) -> Result<Array> {
    let (least, most) = match a.dtype() {
        DType::F64 => (1e-300, f64::MAX),
        _ => (1e-30, f32::MAX.into()),
    };
    // Of smaller ones numbers and their slopes are 0.
    let known = maximum(&positive(a)?, least)?;
    let ratio = maximum(ratio, -1.0 / least)?;
    let z = multiply(&known, &exp(&ratio)?)?;
    let next = add(&known, 1)?;
    let above = greater(&z, &next)?;
    let b = where_(&above, &known, &next)?;
    // How soon the exponent falls.
    let past = multiply(&known, &expm1(&ratio)?)?;
    let past = subtract(&past, &where_(&above, 0.0, &constant_like(a, 1.0))?)?;
    let scale = stop_gradient(&divide(1, &add(&abs(&past)?, &sqrt(&z)?)?)?)?;
    let (points, weights) = half_line(a.dtype(), a.rank())?;
    let v = multiply(&scale, &points)?;
    let e = where_(&above, &v, &negative(&v)?)?;
    let risen = expm1(&e)?;
    // ln z − ψ(b).
    let shift = where_(&above, 0.0, &log1p(&divide(1, &known)?)?)?;
    let level = add(&subtract(&ratio, &shift)?, &log_less_digamma(&b)?)?;
    let curved = multiply(&b, &beyond_line(&e, &risen)?)?;
    let exponent = negative(&add(&curved, &multiply(&past, &risen)?)?)?;
    let terms = multiply(&multiply(&exp(&exponent)?, &add(&level, &e)?)?, &weights)?;
    let integral = multiply(&sum(&terms, 0, false)?, &scale)?;
    let below = negative(&divide(&add(&level, &multiply(&z, &integral)?)?, &known)?)?;
    let found = where_(&above, &integral, &below)?;
    where_(&greater(a, 0)?, &minimum(&found, most)?, 0.0)
}

/// eˣ − 1 − x, where eˣ − 1 is `risen`: near 0 by its series, since nothing is left of the difference.
fn beyond_line(x: &Array, risen: &Array) -> Result<Array> {
    const TERMS: i32 = 13;
    let mut series = constant_like(x, 1.0);
    for k in (3..=TERMS).rev() {
        series = add(&multiply(&multiply(&series, x)?, 1.0 / f64::from(k))?, 1)?;
    }
    let near = multiply(&multiply(&square(x)?, &series)?, 0.5)?;
    where_(&less(&abs(x)?, 0.25)?, &near, &subtract(risen, x)?)
}

/// Points and weights of an integral from 0 on of what falls exponentially, along a first axis before `rank` others.
fn half_line(dtype: DType, rank: usize) -> Result<(Array, Array)> {
    let (count, from, to) = match dtype {
        DType::F64 => (80, -3.5, 3.7),
        _ => (40, -2.8, 3.0),
    };
    let step = (to - from) / (count - 1) as f64;
    let at = |i: i32| from + step * f64::from(i);
    let point = |t: f64| (t - (-t).exp()).exp();
    let axis: Shape = [count as usize].into_iter().chain(std::iter::repeat_n(1, rank)).collect();
    let array = |of: &dyn Fn(f64) -> f64| {
        let values: Vec<f64> = (0..count).map(|i| of(at(i))).collect();
        reshape(&cast(&Array::from_slice(&values, [values.len()])?, dtype)?, axis.clone())
    };
    Ok((array(&point)?, array(&|t| step * point(t) * (1.0 + (-t).exp()))?))
}

/// ln x − ψ(x) of positive numbers. For large ones its asymptotic series: M. Abramowitz, I. A. Stegun, *Handbook of
/// mathematical functions*, 1964, 6.3.18.
fn log_less_digamma(x: &Array) -> Result<Array> {
    let is_large = greater(x, 20)?;
    let large = divide(1, &where_(&is_large, x, 20)?)?;
    let second = square(&large)?;
    let mut series = multiply(&second, 1.0 / 240.0)?;
    for coefficient in [1.0 / 252.0, 1.0 / 120.0, 1.0 / 12.0] {
        series = multiply(&second, &subtract(coefficient, &series)?)?;
    }
    let of_large = add(&multiply(&large, 0.5)?, &series)?;
    let small = where_(&is_large, 20, x)?;
    where_(&is_large, &of_large, &subtract(&log(&small)?, &digamma(&small)?)?)
}
