//! The graphs of a package: what is read is sound, and the same after it was written.

use std::sync::Arc;

use cupola::graph::{Graph, Ref};
use cupola::ops::{AttentionMask, AttentionOptions};
use cupola::package::binary::{Program, read, write};
use cupola::package::{Port, Trace};
use cupola::{Array, Aval, DType, Result, ops, transform};

/// A traced function as a program.
fn traced(avals: &[Aval], f: impl FnMut(&[Array]) -> Result<Vec<Array>>) -> Program {
    let port = |(n, aval): (usize, &Aval)| Port::new(format!("x{n}"), aval);
    let ports = avals.iter().enumerate().map(port).collect();
    program(Trace::of(ports, avals, f).expect("a trace"))
}

fn program(trace: Trace) -> Program {
    let weights = (0..trace.weights().len() as u32).collect();
    let formulas = trace.formulas().cloned();
    Program { graph: Arc::clone(trace.graph()), weights, formulas }
}

/// A function of any rows and columns, whose sizes are in shapes, starts, means and the body of a call.
fn of_any_size() -> Program {
    let aval = Aval::new([4, 3], DType::F32);
    let ports = vec![Port::new("x", &aval)];
    let trace = Trace::of_any_size(ports, &[aval], |x| {
        let [rows, columns] = x[0].shape()[..] else { panic!("{}", x[0].aval()) };
        let flat = ops::reshape(&x[0], [rows * columns])?;
        let last = ops::take(&x[0], &Array::scalar(rows as i32 - 1), 0)?;
        let block = transform::checkpoint(|x: &[Array]| Ok(vec![ops::mean(&x[0], 0, false)?]));
        let places = ops::arange(0, rows as i32, 1)?;
        Ok(vec![ops::cumsum(&flat, 0, Default::default())?, &block(x)?[0] + &last, places])
    });
    program(trace.expect("a trace"))
}

/// Programs with every kind of primitive: elementwise, movement, kernels, composites, calls.
pub fn programs() -> Vec<Vec<Program>> {
    let matrix = Aval::new([4, 4], DType::F32);
    let image = Aval::new([1, 6, 6, 2], DType::F32);
    let kernel = Aval::new([3, 3, 3, 2], DType::F32);
    let heads = Aval::new([1, 2, 5, 4], DType::F16);
    let layers = traced(std::slice::from_ref(&matrix), |x| {
        let w = Array::from_slice(&[0.5f32; 16], [4, 4])?;
        let y = ops::softmax(&ops::tanh(&ops::matmul(&x[0], &w)?)?, -1)?;
        let sorted = ops::sort(&y, -1)?;
        Ok(vec![ops::cumsum(&sorted, 0, Default::default())?, ops::argmax(&y, -1, false)?])
    });
    let slopes = traced(&[matrix.clone()], |x| {
        let block =
            transform::checkpoint(|x: &[Array]| Ok(vec![ops::sum(&ops::sin(&x[0])?, (), false)?]));
        transform::grad(block, &[0])(x)
    });
    let attention = traced(&[heads], |x| {
        let options =
            AttentionOptions { mask: AttentionMask::Causal, ..AttentionOptions::new(0.5) };
        Ok(vec![ops::scaled_dot_product_attention(&x[0], &x[0], &x[0], &options)?])
    });
    let moved = traced(&[image, kernel], |x| {
        let flipped = ops::flip(&x[0], 1)?;
        let joined = ops::concatenate(&[&x[0], &flipped], 0)?;
        Ok(vec![ops::transpose(&joined, ())?, ops::sum(&x[1], [0, 1], true)?])
    });
    let mut empty = Graph::default();
    let input = empty.input(Aval::new([0, 3], DType::C64));
    empty.outputs = vec![input, Ref { ..input }];
    let empty = Program { graph: Arc::new(empty), weights: vec![7], formulas: None };
    let sized = vec![of_any_size()];
    vec![vec![layers, slopes], vec![attention], vec![moved], vec![empty], vec![], sized]
}

pub fn seeds() -> Vec<Vec<u8>> {
    programs().iter().map(|programs| write(programs).expect("programs are written")).collect()
}

pub fn check(data: &[u8]) {
    let programs = match read(data, "memory") {
        Ok(programs) => programs,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    };
    for program in &programs {
        program.graph.verify().expect("what was read is sound");
        let Some(formulas) = &program.formulas else { continue };
        for size in [1, 5, 1000] {
            if let Ok(graph) = formulas.graph(&program.graph, &[size; 6]) {
                graph.verify().expect("what formulas make is sound");
            }
        }
    }
    let bytes = write(&programs).expect("what was read is written");
    let again = read(&bytes, "memory").expect("what was written is read");
    assert!(write(&again).expect("it is written") == bytes, "the bytes are others");
}
