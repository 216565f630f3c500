//! Loops and branches. Their bodies are graphs inside of the model's, and see what is around them.

use cupola_core::graph::Graph;
use cupola_core::prim::Control;
use cupola_core::prim::control::{Cond, Scan, While};
use cupola_core::{Aval, DType, Result, Shape};

use super::super::proto::GraphProto;
use super::writer::{Attr, Val, Writer};
use super::{value_info, walk};

/// The operators of control flow on operands that have all their elements.
pub fn control(
    w: &mut Writer,
    control: &Control,
    args: &[Val],
    outputs: &[Aval],
) -> Result<Vec<Val>> {
    match control {
        Control::Scan(scan) => scanned(w, scan, args, outputs),
        Control::While(looped) => repeated(w, looped, args, outputs),
        Control::Cond(cond) => chosen(w, cond, 0, args, outputs),
    }
}

/// A value of a body's own, like `aval`.
fn parameter(w: &mut Writer, aval: &Aval) -> Val {
    Val { name: w.name("given"), shape: aval.shape.clone(), dtype: aval.dtype }
}

fn info(val: &Val) -> super::ValueInfoProto {
    value_info(&val.name, &Aval { shape: val.shape.clone(), dtype: val.dtype })
}

/// A graph of `parameters`, in which `write` writes nodes and gives the outputs.
fn inner(
    w: &mut Writer,
    parameters: &[Val],
    write: impl FnOnce(&mut Writer) -> Result<Vec<Val>>,
) -> Result<GraphProto> {
    let around = std::mem::take(&mut w.nodes);
    let made = write(w).map(|found| {
        // Under names of their own: an output may be a parameter, or something around.
        let own = |val: Val| {
            let name = w.op("Identity", &[&val.name], &[]);
            Val { name, ..val }
        };
        found.into_iter().map(own).collect::<Vec<_>>()
    });
    let node = std::mem::replace(&mut w.nodes, around);
    let outputs = made?;
    Ok(GraphProto {
        name: w.name("body"),
        input: parameters.iter().map(info).collect(),
        output: outputs.iter().map(info).collect(),
        node,
        ..Default::default()
    })
}

/// The outputs of a body, with all their elements.
fn whole(w: &mut Writer, graph: &Graph, inputs: Vec<Val>) -> Result<Vec<Val>> {
    let found = walk(w, graph, inputs)?;
    let pairs = found.iter().zip(graph.output_avals());
    pairs.map(|(val, aval)| w.full(val, &aval.shape)).collect()
}

/// What a node with these inputs gives.
fn node(
    w: &mut Writer,
    op: &str,
    inputs: &[&str],
    attrs: &[Attr<'_>],
    outputs: &[Aval],
) -> Vec<Val> {
    let names = w.node(op, inputs, attrs, outputs.len());
    let val =
        |(name, aval): (String, &Aval)| Val { name, shape: aval.shape.clone(), dtype: aval.dtype };
    names.into_iter().zip(outputs).map(val).collect()
}

fn scanned(w: &mut Writer, scan: &Scan, args: &[Val], outputs: &[Aval]) -> Result<Vec<Val>> {
    let graph = &*scan.body.body;
    let (carried, others) = args.split_at(scan.carries);
    let (sequences, rest) = others.split_at(scan.sequences);
    if scan.length == 0 {
        let mut all = carried.to_vec();
        for aval in &outputs[scan.carries..] {
            let zero = w.scalar(0, aval.dtype)?;
            all.push(w.full(&zero, &aval.shape)?);
        }
        return Ok(all);
    }
    let avals: Vec<Aval> = graph.input_avals().cloned().collect();
    let mut parameters: Vec<Val> =
        avals[..scan.carries + scan.sequences].iter().map(|aval| parameter(w, aval)).collect();
    let mut inputs: Vec<&str> = carried.iter().chain(sequences).map(|v| v.name.as_str()).collect();
    let values = parameters.iter().chain(rest).cloned().collect();
    // A scan goes over something: numbers, where nobody reads any.
    let numbers: Vec<i64> = (0..scan.length as i64).collect();
    let numbers = w.ints(&numbers)?;
    if sequences.is_empty() {
        inputs.push(&numbers.name);
        parameters.push(parameter(w, &Aval { shape: Shape::from(()), dtype: DType::I64 }));
    }
    let body = inner(w, &parameters, |w| whole(w, graph, values))?;
    let count = inputs.len() - scan.carries;
    let back = |count: usize| vec![i64::from(scan.reverse); count];
    let attributes = [
        Attr::Graph("body", body),
        Attr::Int("num_scan_inputs", count as i64),
        Attr::Ints("scan_input_directions", back(count)),
        Attr::Ints("scan_output_directions", back(outputs.len() - scan.carries)),
    ];
    let used = if outputs.len() > scan.carries { &attributes[..] } else { &attributes[..3] };
    Ok(node(w, "Scan", &inputs, used, outputs))
}

fn repeated(w: &mut Writer, looped: &While, args: &[Val], outputs: &[Aval]) -> Result<Vec<Val>> {
    let (graph, cond) = (&*looped.body.body, &*looped.cond.body);
    let (carried, rest) = args.split_at(looped.carries);
    let first = whole(w, cond, args.to_vec())?;
    let flag = Aval { shape: Shape::from(()), dtype: DType::Bool };
    let number = Aval { shape: Shape::from(()), dtype: DType::I64 };
    let mut parameters = vec![parameter(w, &number), parameter(w, &flag)];
    let own: Vec<Val> = outputs.iter().map(|aval| parameter(w, aval)).collect();
    parameters.extend(own.iter().cloned());
    let body = inner(w, &parameters, |w| {
        let next = whole(w, graph, own.iter().chain(rest).cloned().collect())?;
        let mut all = whole(w, cond, next.iter().chain(rest).cloned().collect())?;
        all.extend(next);
        Ok(all)
    })?;
    let mut inputs = vec!["", first[0].name.as_str()];
    inputs.extend(carried.iter().map(|val| val.name.as_str()));
    Ok(node(w, "Loop", &inputs, &[Attr::Graph("body", body)], outputs))
}

/// The branch that is taken of those from `from` on.
fn chosen(
    w: &mut Writer,
    cond: &Cond,
    from: usize,
    args: &[Val],
    outputs: &[Aval],
) -> Result<Vec<Val>> {
    let (which, operands) = (&args[0], &args[1..]);
    let own = |w: &mut Writer| whole(w, &cond.branches[from].body, operands.to_vec());
    if from + 1 == cond.branches.len() {
        return own(w);
    }
    let is_own = match which.dtype {
        DType::Bool => w.map("Not", &[which], DType::Bool),
        _ => {
            let which = w.cast(which, DType::I64)?;
            let number = w.scalar(from as i64, DType::I64)?;
            w.map("LessOrEqual", &[&which, &number], DType::Bool)
        }
    };
    let then = inner(w, &[], own)?;
    let or = inner(w, &[], |w| chosen(w, cond, from + 1, args, outputs))?;
    let attributes = [Attr::Graph("then_branch", then), Attr::Graph("else_branch", or)];
    Ok(node(w, "If", &[&is_own.name], &attributes, outputs))
}
