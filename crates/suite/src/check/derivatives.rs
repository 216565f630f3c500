//! Derivatives against differences, against each other, and where they are known.

use cupola_core::prim::{Binary, Cast, Unary};
use cupola_core::transform::{jvp, vjp};
use cupola_core::{Array, Aval, DType, Error, Result, Scalar, ops};

use crate::host::Host;
use crate::number::Number;

use super::close::near;
use super::{Case, arrays, hosts, kernels_are_cheap};

/// A function of the inputs that have derivatives.
type Function<'f> = dyn Fn(&[Array]) -> Result<Vec<Array>> + 'f;

/// Which directions a function is differentiated in.
#[derive(Clone, Copy, PartialEq)]
enum Directions {
    /// Every one.
    All,
    /// Those that keep matrices symmetric.
    Symmetric,
    /// Those that keep matrices Hermitian, of real and imaginary parts in turn.
    Hermitian,
}

/// How differences are taken, and how close they come.
#[derive(Clone, Copy)]
struct Differences {
    step: f64,
    tolerance: f64,
}

const DOUBLE: Differences = Differences { step: 1e-5, tolerance: 2e-6 };
const SINGLE: Differences = Differences { step: 1e-2, tolerance: 5e-3 };

/// The jvp against a central difference, which is exact to second order in the step.
pub fn forward(case: &Case<'_>) -> Result<()> {
    let (f, primals) = smooth_part(case);
    pushes(&f, &primals, ways_of(case), DOUBLE)
}

/// ⟨u, J·v⟩ from the jvp against ⟨Jᵀ·u, v⟩ from the vjp.
pub fn backward(case: &Case<'_>) -> Result<()> {
    let (f, primals) = smooth_part(case);
    pulls(&f, &primals, ways_of(case), 1e-9)
}

/// The same for the function that gives the vjp: its derivatives are the second ones.
pub fn second_order(case: &Case<'_>) -> Result<()> {
    let (f, mut arguments) = smooth_part(case);
    let count = arguments.len();
    let outputs = hosts(&f(&arrays(&arguments)?)?)?;
    arguments.extend(outputs.iter().map(|y| wave(&y.aval, 29, 19)));
    let pulled = |x: &[Array]| Ok(vjp(&f, &x[..count], &x[count..])?.1);
    pushes(&pulled, &arguments, ways_of(case), Differences { tolerance: 2e-5, ..DOUBLE })?;
    pulls(&pulled, &arguments, ways_of(case), 1e-8)
}

/// Both where the result is a float32.
pub fn narrowed(case: &Case<'_>) -> Result<()> {
    let (f, primals) = smooth_part(case);
    pushes(&f, &primals, ways_of(case), Differences { step: 0.05, tolerance: 2e-3 })?;
    pulls(&f, &primals, ways_of(case), 2e-3)
}

/// The derivatives of a function of complex numbers as those of its parts.
pub fn complex(case: &Case<'_>) -> Result<()> {
    // Of a function of real numbers, these.
    let is_complex = |h: &Host| h.aval.dtype == DType::C64;
    let of_reals = !case.inputs.iter().any(is_complex);
    let varies = |h: &Host| is_complex(h) || of_reals && h.aval.dtype == DType::F32;
    let mut primals = Vec::new();
    for host in case.inputs.iter().filter(|h| varies(h)) {
        if of_reals {
            primals.push(host.clone());
            continue;
        }
        let aval = Aval { shape: host.aval.shape.clone(), dtype: DType::F32 };
        let part =
            |f: fn(Number) -> f64| Host::from_fn(aval.clone(), |i| Number::Float(f(host.data[i])));
        primals.extend([part(|v| v.complex().re), part(|v| v.complex().im)]);
    }
    let fixed = case.arrays()?;
    let f = |x: &[Array]| -> Result<Vec<Array>> {
        let mut given = x.chunks_exact(if of_reals { 1 } else { 2 });
        let inputs: Vec<Array> = (case.inputs.iter().zip(&fixed))
            .map(|(host, fixed)| match varies(host).then(|| given.next()).flatten() {
                Some([x]) => Ok(x.clone()),
                Some(parts) => joined(&parts[0], &parts[1]),
                None => Ok(fixed.clone()),
            })
            .collect::<Result<_>>()?;
        let mut outputs = Vec::new();
        for y in case.run(&inputs)? {
            match y.dtype() {
                DType::C64 => {
                    outputs.push(Array::apply(Unary::Real, &[&y])?);
                    outputs.push(Array::apply(Unary::Imag, &[&y])?);
                }
                _ => outputs.push(y),
            }
        }
        Ok(outputs)
    };
    let ways = if case.sample.hermitian { Directions::Hermitian } else { Directions::All };
    pushes(&f, &primals, ways, SINGLE)?;
    pulls(&f, &primals, ways, 2e-4)
}

/// re + i·im.
fn joined(re: &Array, im: &Array) -> Result<Array> {
    let wide = |x: &Array| Array::apply(Cast { to: DType::C64 }, &[x]);
    let i = ops::full(im.shape().clone(), Scalar::Complex(0.0, 1.0), DType::C64)?;
    let imaginary = Array::apply(Binary::Mul, &[&wide(im)?, &i])?;
    Array::apply(Binary::Add, &[&wide(re)?, &imaginary])
}

/// The cotangents of the inputs against the sample's.
pub fn known(case: &Case<'_>) -> Result<()> {
    let Some(slopes) = &case.sample.slopes else { return Ok(()) };
    let (f, primals) = smooth_part(case);
    let primals = arrays(&primals)?;
    let output = f(&primals)?.swap_remove(0);
    let mut seed = slopes.seed.iter();
    let seed = Host::from_fn(output.aval().clone(), |_| {
        Number::Float(seed.next().copied().unwrap_or(f64::NAN))
    });
    let (_, got) = vjp(&f, &primals, &[seed.to_array()?])?;
    for (n, (got, want)) in hosts(&got)?.iter().zip(&slopes.want).enumerate() {
        // NaN stands for any finite number.
        let got = got.floats();
        let known = |(g, w): (&f64, &f64)| if w.is_nan() && g.is_finite() { *g } else { *w };
        let want: Vec<f64> = got.iter().zip(want).map(known).collect();
        near(&format!("the cotangent of input {n}"), &got, &want, 0.0)?;
    }
    Ok(())
}

/// The op as a function of its float64 inputs, and these.
fn smooth_part<'c>(
    case: &'c Case<'_>,
) -> (impl Fn(&[Array]) -> Result<Vec<Array>> + use<'c>, Vec<Host>) {
    let varies = |h: &Host| h.aval.dtype == DType::F64;
    let primals = case.inputs.iter().filter(|h| varies(h)).cloned().collect();
    let f = move |x: &[Array]| {
        let mut given = x.iter();
        let inputs: Vec<Array> = (case.inputs.iter())
            .map(|h| match varies(h).then(|| given.next()).flatten() {
                Some(x) => Ok(x.clone()),
                None => h.to_array(),
            })
            .collect::<Result<_>>()?;
        let refs: Vec<&Array> = inputs.iter().collect();
        let outputs = Array::apply_multi(case.op.clone(), &refs)?;
        Ok(outputs.into_iter().filter(|y| y.dtype().is_float()).collect())
    };
    (f, primals)
}

/// The directions of a function of the sample's real inputs.
fn ways_of(case: &Case<'_>) -> Directions {
    if case.sample.hermitian { Directions::Symmetric } else { Directions::All }
}

/// x with its transpose added, or subtracted where `odd`, if it has square matrices.
fn mirrored(x: &Host, odd: bool) -> Host {
    let shape = &x.aval.shape;
    let rank = shape.rank();
    if rank < 2 || shape[rank - 1] != shape[rank - 2] {
        return x.clone();
    }
    let sign = if odd { -1.0 } else { 1.0 };
    Host::by_index(&x.aval, |index| {
        let mut other = index.to_vec();
        other.swap(rank - 2, rank - 1);
        Number::Float(0.5 * (x.at(index).float() + sign * x.at(&other).float()))
    })
}

/// Numbers between −1 and 1 with no pattern of the inputs'.
fn wave(aval: &Aval, factor: usize, period: usize) -> Host {
    Host::from_fn(aval.clone(), |i| {
        let place = (i * factor + 11) % period;
        Number::Float(2.0 * place as f64 / (period - 1) as f64 - 1.0)
    })
}

/// A direction for each of the inputs, by each alone and by all together.
fn directions(primals: &[Host], ways: Directions) -> Vec<(String, Vec<Host>)> {
    let way = |(n, x): (usize, &Host)| match (ways, wave(&x.aval, 37, 23)) {
        (Directions::All, way) => way,
        (Directions::Symmetric, way) => mirrored(&way, false),
        (Directions::Hermitian, way) => mirrored(&way, n % 2 == 1),
    };
    let all: Vec<Host> = primals.iter().enumerate().map(way).collect();
    let zero = |x: &Host| Host::from_fn(x.aval.clone(), |_| Number::Float(0.0));
    let mut ways = vec![("every input".to_owned(), all.clone())];
    if primals.len() > 1 && kernels_are_cheap() {
        for alone in 0..primals.len() {
            let way = (all.iter().enumerate())
                .map(|(n, x)| if n == alone { x.clone() } else { zero(x) })
                .collect();
            ways.push((format!("input {alone}"), way));
        }
    }
    ways
}

fn floats(arrays: &[Array]) -> Result<Vec<f64>> {
    Ok(hosts(arrays)?.iter().flat_map(Host::floats).collect())
}

fn pushes(f: &Function<'_>, primals: &[Host], ways: Directions, by: Differences) -> Result<()> {
    for (what, directions) in directions(primals, ways) {
        let moved = |by: f64| -> Result<Vec<f64>> {
            let inputs: Vec<Host> = (primals.iter().zip(&directions))
                .map(|(x, v)| {
                    let at = |i: usize| x.data[i].float() + by * v.data[i].float();
                    Host::from_fn(x.aval.clone(), |i| Number::Float(at(i)))
                })
                .collect();
            floats(&f(&arrays(&inputs)?)?)
        };
        let (up, down) = (moved(by.step)?, moved(-by.step)?);
        let want: Vec<f64> = up.iter().zip(&down).map(|(u, d)| (u - d) / (2.0 * by.step)).collect();
        let (_, tangents) = jvp(f, &arrays(primals)?, &arrays(&directions)?)?;
        near(
            &format!("jvp by {what} against differences"),
            &floats(&tangents)?,
            &want,
            by.tolerance,
        )?;
    }
    Ok(())
}

fn pulls(f: &Function<'_>, primals: &[Host], ways: Directions, tolerance: f64) -> Result<()> {
    let inputs = arrays(primals)?;
    for (what, directions) in directions(primals, ways) {
        let (_, out) = jvp(f, &inputs, &arrays(&directions)?)?;
        let out = hosts(&out)?;
        let seeds: Vec<Host> = out.iter().map(|y| wave(&y.aval, 29, 19)).collect();
        let (_, cotangents) = vjp(f, &inputs, &arrays(&seeds)?)?;
        let cotangents = hosts(&cotangents)?;
        for (n, (ct, x)) in cotangents.iter().zip(primals).enumerate() {
            if ct.aval != x.aval {
                let text =
                    format!("the cotangent of input {n} is {}, the input {}", ct.aval, x.aval);
                return Err(Error::User(text));
            }
        }
        let (left, right) = (inner(&out, &seeds), inner(&cotangents, &directions));
        near(&format!("vjp against jvp by {what}"), &[right], &[left], tolerance)?;
    }
    Ok(())
}

/// Σ a·b.
fn inner(a: &[Host], b: &[Host]) -> f64 {
    let products = |(a, b): (&Host, &Host)| -> f64 {
        a.floats().iter().zip(b.floats()).map(|(a, b)| a * b).sum()
    };
    a.iter().zip(b).map(products).sum()
}
