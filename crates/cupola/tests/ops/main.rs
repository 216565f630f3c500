//! Functions of `ops` against MLX 0.32: shapes, dtypes and values, which scripts/ops_reference.py
//! wrote down.

// Generated: the numbers are as the oracle prints them.
#[allow(clippy::excessive_precision, clippy::type_complexity)]
mod cases;
mod scans;

use std::collections::HashMap;

use cupola::{Array, DType, Element, Result};

/// What MLX gave for an expression.
struct Expected {
    tolerance: f64,
    dtype: DType,
    shape: Vec<usize>,
    values: Vec<f64>,
}

fn reference() -> HashMap<&'static str, Expected> {
    let numbers = |text: &'static str| text.split_whitespace();
    let lines = include_str!("../reference/ops.txt").lines();
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let dtype: DType = fields[2].parse().unwrap();
            let number = |v: &str| -> f64 {
                if dtype.is_inexact() {
                    v.parse::<f32>().unwrap().into()
                } else {
                    v.parse().unwrap()
                }
            };
            let expected = Expected {
                tolerance: fields[1].parse().unwrap(),
                dtype,
                shape: numbers(fields[3]).map(|d| d.parse().unwrap()).collect(),
                values: numbers(fields[4]).map(number).collect(),
            };
            (fields[0], expected)
        })
        .collect()
}

/// The elements as numbers; of complex ones real and imaginary parts.
fn numbers(x: &Array) -> Result<Vec<f64>> {
    if x.dtype() == DType::C64 {
        let parts = <f32 as Element>::from_bytes(&x.to_bytes()?);
        return Ok(parts.into_iter().map(f64::from).collect());
    }
    x.astype(DType::F64)?.to_vec()
}

/// What is wrong with `have`, if anything.
fn difference(have: &Array, want: &Expected) -> Result<Option<String>> {
    if have.dtype() != want.dtype || have.shape()[..] != want.shape {
        return Ok(Some(format!("is {}, not {}{:?}", have.aval(), want.dtype, want.shape)));
    }
    let values = numbers(have)?;
    let apart = |(a, b): (&f64, &f64)| {
        let same = a == b || (a.is_nan() && b.is_nan());
        let close = (a - b).abs() <= want.tolerance * (1.0 + b.abs());
        !same && !close
    };
    let wrong = values.iter().zip(&want.values).position(apart);
    Ok(wrong.map(|i| format!("is {} at {i}, not {}", values[i], want.values[i])))
}

#[test]
fn functions_agree_with_mlx() {
    let reference = reference();
    let mut wrong = Vec::new();
    let mut count = 0;
    let each = cases::each(&mut |name, call| {
        count += 1;
        let found = call().and_then(|have| difference(&have, &reference[name]));
        match found {
            Ok(None) => {}
            Ok(Some(text)) => wrong.push(format!("{name} {text}")),
            Err(error) => wrong.push(format!("{name} fails: {error}")),
        }
    });
    each.unwrap();
    assert!(count >= reference.len());
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}
