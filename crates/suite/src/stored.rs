//! Every primitive as a package holds it: written and read again it is the same, and damaged bytes are
//! an error.

use std::sync::Arc;

use cupola_core::graph::{Graph, Ref};
use cupola_core::package::{Program, read, write};
use cupola_core::prim::Op;
use cupola_core::{Aval, DType};

use crate::Family;

/// A graph of the op and nothing else.
fn program(op: &Op, inputs: &[Aval]) -> Program {
    let mut graph = Graph::default();
    let inputs: Vec<Ref> = inputs.iter().map(|aval| graph.input(aval.clone())).collect();
    let node = graph.push(op.clone(), &inputs).unwrap();
    let outputs = graph.nodes[node as usize].outputs.len() as u32;
    graph.outputs.extend((0..outputs).map(|output| Ref { node, output }));
    Program { graph: Arc::new(graph), weights: vec![0; inputs.len().min(1)], formulas: None }
}

/// The families of what a package holds. Functions are graphs of what the others have, and some of them compute arrays
/// that they are given, for which there is no device here.
fn families() -> impl Iterator<Item = Family> {
    Family::ALL.iter().copied().filter(|&family| family != Family::Functions)
}

/// The samples of a family as programs, in every dtype, or in one.
fn programs(family: Family, all: bool) -> Vec<(String, Op, Program)> {
    let mut found = Vec::new();
    for sample in family.samples() {
        let in_dtypes = DType::ALL.into_iter().filter_map(|d| Some((d, sample.in_dtype(d)?)));
        for (dtype, (op, inputs)) in in_dtypes.take(if all { usize::MAX } else { 1 }) {
            let avals: Vec<Aval> = inputs.iter().map(|host| host.aval.clone()).collect();
            let name = format!("{}/{} in {dtype}", family.name(), sample.name);
            found.push((name, op.clone(), program(&op, &avals)));
        }
    }
    found
}

#[test]
fn what_is_written_is_read() {
    let mut count = 0;
    for family in families() {
        for (name, op, program) in programs(family, true) {
            let programs = [program];
            if matches!(op, Op::Custom(_)) {
                let error = write(&programs).unwrap_err().to_string();
                assert!(error.contains(op.name()), "{name}: {error}");
                continue;
            }
            let bytes = write(&programs).unwrap();
            let again = read(&bytes, "graph.bin").unwrap();
            // A call's name is not kept: nothing that it does depends on it.
            match op {
                Op::Call(_) => assert_eq!(write(&again).unwrap(), bytes, "{name}"),
                _ => assert_eq!(again, programs, "{name}"),
            }
            count += 1;
        }
    }
    assert!(count > 1000, "{count} samples");
}

#[test]
fn damaged_bytes_are_an_error() {
    let (mut errors, mut sound) = (0, 0);
    for family in families() {
        let programs = programs(family, false);
        // Some of each family: many samples are alike, and large ones are more of the same.
        let step = programs.len().div_ceil(6);
        for (name, _, program) in programs.into_iter().step_by(step) {
            let Ok(bytes) = write(&[program]) else { continue };
            if bytes.len() > 1000 {
                continue;
            }
            for end in 0..bytes.len() {
                let error = read(&bytes[..end], "graph.bin").expect_err(&name).to_string();
                assert!(error.starts_with("graph.bin: byte "), "{name}: {error}");
            }
            let mut damaged = bytes.clone();
            for place in 0..bytes.len() {
                for change in [bytes[place] ^ 1, !bytes[place], 0x7f] {
                    damaged[place] = change;
                    match read(&damaged, "graph.bin") {
                        Ok(_) => sound += 1,
                        Err(_) => errors += 1,
                    }
                }
                damaged[place] = bytes[place];
            }
        }
    }
    assert!(errors > sound, "{errors} of {} damages were seen", errors + sound);
}

#[test]
fn calls_that_grow_without_bound_are_refused() {
    let mut body = Graph::default();
    let x = body.input(Aval::new([2], DType::F32));
    body.outputs.push(x);
    let mut body = Arc::new(body);
    // Each calls the former one twice.
    for _ in 0..40 {
        let mut next = Graph::default();
        let mut x = next.input(Aval::new([2], DType::F32));
        for _ in 0..2 {
            let call = cupola_core::prim::Call::new("call", body.clone(), None);
            x = Ref { node: next.push(call, &[x]).unwrap(), output: 0 };
        }
        next.outputs.push(x);
        body = Arc::new(next);
    }
    let bytes = write(&[Program { graph: body, weights: vec![], formulas: None }]).unwrap();
    let error = read(&bytes, "graph.bin").unwrap_err().to_string();
    assert!(error.contains("nodes in all"), "{error}");
}
