//! Which ops a device has kernels for, in which dtypes.

use std::collections::BTreeMap;

use cupola_core::backend::Backend;
use cupola_core::graph::Graph;
use cupola_core::plan::lacking;
use cupola_core::prim::Op;
use cupola_core::{Aval, DType, Result};

use crate::family::Family;

/// How a device runs an op in a dtype.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Support {
    /// By kernels of its own, for every sample of the suite.
    Native,
    /// On the CPU, for some samples at least; why.
    Fallback(String),
}

/// An op, and how a device runs it in each dtype that it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpSupport {
    /// The family that it is of.
    pub family: Family,
    /// Its name.
    pub op: String,
    /// By dtype; those that the op does not take are not there.
    pub dtypes: BTreeMap<DType, Support>,
}

/// How a device runs the ops of a family, in the order of their samples: what its planner and the writer of its kernels
/// say. Nothing is compiled or run but the masks and counts that the shapes of some functions depend on.
///
/// # Errors
/// Where a sample cannot be planned, which is a mistake in the sample.
///
/// # Example
/// ```no_run
/// # use cupola_core::{Device, backend::backend};
/// // In a program that links the CPU backend.
/// let cpu = backend(Device::CPU)?;
/// for op in cupola_suite::support(&**cpu, cupola_suite::Family::Sort)? {
///     println!("{}: {} dtypes", op.op, op.dtypes.len());
/// }
/// # Ok::<(), cupola_core::Error>(())
/// ```
pub fn support(backend: &dyn Backend, family: Family) -> Result<Vec<OpSupport>> {
    let mut found: Vec<OpSupport> = Vec::new();
    for sample in family.samples() {
        for dtype in DType::ALL {
            let Some((op, inputs)) = sample.in_dtype(dtype) else { continue };
            let avals: Vec<&Aval> = inputs.iter().map(|host| &host.aval).collect();
            if op.infer(&avals).is_err() {
                continue;
            }
            let known = found.iter().position(|known| known.op == op.name());
            let at = known.unwrap_or_else(|| {
                let dtypes = BTreeMap::new();
                found.push(OpSupport { family, op: op.name().to_owned(), dtypes });
                found.len() - 1
            });
            let lacks = graph(op, &avals).and_then(|graph| lacking(&graph, backend))?;
            let own = found[at].dtypes.entry(dtype).or_insert(Support::Native);
            if let (Support::Native, Some(reason)) = (&own, lacks.into_iter().next()) {
                *own = Support::Fallback(reason);
            }
        }
    }
    Ok(found)
}

/// The graph of one op.
fn graph(op: Op, avals: &[&Aval]) -> Result<Graph> {
    let mut graph = Graph::default();
    let inputs: Vec<_> = avals.iter().map(|&aval| graph.input(aval.clone())).collect();
    let node = graph.push(op, &inputs)?;
    let outputs = graph.nodes[node as usize].outputs.len() as u32;
    graph.outputs = (0..outputs).map(|output| cupola_core::graph::Ref { node, output }).collect();
    Ok(graph)
}
