//! What holds for every rule.

use cupola::transform::{jvp, vjp, vmap};
use cupola::{Array, Result, ops};

use crate::cases::Case;
use crate::values::{Source, close, inner, read, rolled, stacked, written};

type Checked = Result<(), String>;
type Function<'f> = dyn Fn(&[Array]) -> Result<Vec<Array>> + 'f;

fn text(error: cupola::Error) -> String {
    error.to_string()
}

/// jvp against central differences, and vjp against jvp.
pub fn first_order(case: &Case) -> Checked {
    if case.smooth().is_empty() {
        return Ok(());
    }
    differentiates(&|x| case.call(x), &case.smooth(), case.step, case.tolerance)
}

/// The same for the function that gives the vjp: its derivatives are the second ones.
pub fn second_order(case: &Case) -> Checked {
    let primals = case.smooth();
    if primals.is_empty() {
        return Ok(());
    }
    let outputs = case.call(&primals).map_err(text)?;
    let mut source = Source::new(5);
    let seeds = outputs.iter().map(|y| random_like(y, &mut source));
    let arguments: Vec<Array> = primals.iter().cloned().chain(seeds).collect();
    let count = primals.len();
    let pulled = |x: &[Array]| Ok(vjp(|x| case.call(x), &x[..count], &x[count..])?.1);
    differentiates(&pulled, &arguments, case.step, case.tolerance * 10.0)
}

fn random_like(x: &Array, source: &mut Source) -> Array {
    let numbers: Vec<f64> = (0..x.size()).map(|_| source.next(-1.0, 1.0)).collect();
    written(&numbers, x)
}

fn all_numbers(arrays: &[Array]) -> Result<Vec<f64>, String> {
    let mut all = Vec::new();
    for array in arrays {
        all.extend(read(array).map_err(text)?);
    }
    Ok(all)
}

fn moved(primals: &[Array], directions: &[Array], by: f64) -> Result<Vec<Array>, String> {
    primals
        .iter()
        .zip(directions)
        .map(|(x, d)| {
            let (x_numbers, d) = (read(x).map_err(text)?, read(d).map_err(text)?);
            let sum: Vec<f64> = x_numbers.iter().zip(d).map(|(x, d)| x + by * d).collect();
            Ok(written(&sum, x))
        })
        .collect()
}

fn differentiates(f: &Function<'_>, primals: &[Array], step: f64, tolerance: f64) -> Checked {
    let mut source = Source::new(3);
    let directions: Vec<Array> = primals.iter().map(|x| random_like(x, &mut source)).collect();
    // Each operand alone, then all together.
    let count = primals.len();
    for only in (0..count).map(Some).chain([None]) {
        let directions: Vec<Array> = directions
            .iter()
            .enumerate()
            .map(|(i, d)| match only {
                Some(only) if only != i => written(&vec![0.0; d.size()], d),
                _ => d.clone(),
            })
            .collect();
        let (outputs, tangents) = jvp(f, primals, &directions).map_err(text)?;
        let tangents = all_numbers(&tangents)?;
        let ahead = all_numbers(&f(&moved(primals, &directions, step)?).map_err(text)?)?;
        let behind = all_numbers(&f(&moved(primals, &directions, -step)?).map_err(text)?)?;
        let slope: Vec<f64> =
            ahead.iter().zip(&behind).map(|(a, b)| (a - b) / (2.0 * step)).collect();
        close(&format!("jvp by operand {only:?}"), &tangents, &slope, tolerance)?;

        let seeds: Vec<Array> = outputs.iter().map(|y| random_like(y, &mut source)).collect();
        let (_, cotangents) = vjp(f, primals, &seeds).map_err(text)?;
        for (cotangent, primal) in cotangents.iter().zip(primals) {
            if cotangent.aval() != primal.aval() {
                return Err(format!("{} is the cotangent of {}", cotangent.aval(), primal.aval()));
            }
        }
        let forward = inner(&all_numbers(&seeds)?, &tangents);
        let backward = inner(&all_numbers(&cotangents)?, &all_numbers(&directions)?);
        close(&format!("vjp by operand {only:?}"), &[backward], &[forward], tolerance)?;
    }
    Ok(())
}

/// vmap over every choice of batched inputs, against the op on each element.
pub fn batched(case: &Case) -> Checked {
    const SIZE: usize = 3;
    for choice in 1..1usize << case.inputs.len() {
        let is_batched = |i: usize| choice >> i & 1 == 1;
        let element = |b: usize| -> Result<Vec<Array>> {
            let each = |(i, x): (usize, &Array)| match is_batched(i) {
                true => rolled(x, b * 5),
                false => Ok(x.clone()),
            };
            case.inputs.iter().enumerate().map(each).collect()
        };
        let elements: Vec<Vec<Array>> =
            (0..SIZE).map(element).collect::<Result<_>>().map_err(text)?;
        let mut arguments = Vec::new();
        for i in 0..case.inputs.len() {
            arguments.push(match is_batched(i) {
                true => {
                    let parts: Vec<Array> = elements.iter().map(|e| e[i].clone()).collect();
                    stacked(&parts).map_err(text)?
                }
                false => case.inputs[i].clone(),
            });
        }
        let axes: Vec<Option<isize>> =
            (0..case.inputs.len()).map(|i| is_batched(i).then_some(0)).collect();
        let single: Vec<Vec<Array>> = elements
            .iter()
            .map(|inputs| case.record(inputs))
            .collect::<Result<_>>()
            .map_err(text)?;
        let out_axes = vec![0; single[0].len()];
        let whole = vmap(|x: &[Array]| case.record(x), &axes, &out_axes)(&arguments)
            .map_err(|e| format!("batched {axes:?}: {e}"))?;
        let nothing: Vec<Array> = arguments
            .iter()
            .enumerate()
            .map(|(i, x)| match is_batched(i) {
                true => ops::zeros([&[0], &x.shape()[1..]].concat(), x.dtype()),
                false => Ok(x.clone()),
            })
            .collect::<Result<_>>()
            .map_err(text)?;
        let of_nothing = vmap(|x: &[Array]| case.record(x), &axes, &out_axes)(&nothing)
            .map_err(|e| format!("an empty batch {axes:?}: {e}"))?;
        for (of_nothing, one) in of_nothing.iter().zip(&single[0]) {
            let shape: Vec<usize> = std::iter::once(0).chain(one.shape().iter().copied()).collect();
            if of_nothing.shape()[..] != shape[..] || of_nothing.dtype() != one.dtype() {
                return Err(format!("an empty batch {axes:?} gives {}", of_nothing.aval()));
            }
            read(of_nothing).map_err(text)?;
        }
        for (output, whole) in whole.iter().enumerate() {
            let parts: Vec<Array> = single.iter().map(|outputs| outputs[output].clone()).collect();
            let want = stacked(&parts).map_err(text)?;
            if whole.aval() != want.aval() {
                return Err(format!(
                    "batched {axes:?}: {}, should be {}",
                    whole.aval(),
                    want.aval()
                ));
            }
            let (have, want) = (read(whole).map_err(text)?, read(&want).map_err(text)?);
            close(&format!("batched {axes:?}"), &have, &want, 1e-6)?;
        }
    }
    Ok(())
}
