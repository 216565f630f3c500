//! A body as long as a condition holds: inference, derivatives, batches.

use super::{Cond, Control, Scan, While, carried, chosen, count, expect, spread, trace};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Graph, Ref};
use crate::prim::batch::prepend;
use crate::prim::record::{broadcast, expand_dims, or_zeros, select};
use crate::prim::{Avals, Batched, Op, Reduce, ReduceKind, Reverse, Tangents};
use crate::shape::{Aval, Dims, Shape};
use crate::transform::rules;

impl While {
    pub(super) fn infer(&self, op: &'static str, inputs: &[&Aval]) -> Result<Avals> {
        let (cond, body) = (&*self.cond.body, &*self.body.body);
        count(op, "inputs", inputs.len(), body.inputs.len())?;
        count(op, "inputs of the condition", cond.inputs.len(), body.inputs.len())?;
        count(op, "carried arrays", self.carries, body.outputs.len().min(inputs.len()))?;
        carried(op, body, self.carries)?;
        let wanted = body.input_avals().zip(cond.input_avals());
        for (number, (have, (want, also))) in inputs.iter().zip(wanted).enumerate() {
            expect(op, &format!("input {number}"), have, want)?;
            expect(op, &format!("input {number} of the condition"), have, also)?;
        }
        let answer = Aval { shape: Shape::scalar(), dtype: DType::Bool };
        match cond.output_avals().collect::<Vec<_>>()[..] {
            [one] if *one == answer => Ok(body.output_avals().cloned().collect()),
            ref other => Err(Error::shape(
                op,
                format!("the condition must give one bool without axes, it gives {other:?}"),
            )),
        }
    }

    pub(super) fn jvp(&self, inputs: &[Array], tangents: &[Option<Array>]) -> Result<Tangents> {
        let (graph, cond) = (&*self.body.body, &*self.cond.body);
        let mut moves: Vec<bool> = tangents.iter().map(Option::is_some).collect();
        spread(graph, self.carries, &mut moves);
        let avals: Vec<Aval> = graph.input_avals().cloned().collect();
        let (of_carried, of_rest) = avals.split_at(self.carries);
        let (carried, rest) = moves.split_at(self.carries);
        let kinds = [(of_carried, carried), (of_rest, rest)];
        let arguments: Vec<Aval> = kinds
            .iter()
            .flat_map(|(avals, flags)| avals.iter().chain(chosen(avals, flags)).cloned())
            .collect();
        // What the first condition and body take, and the tangents.
        let split = |given: &[Array]| {
            let (mut own, mut changes) = (Vec::new(), Tangents::new());
            let mut given = given.iter().cloned();
            for (avals, flags) in kinds {
                own.extend(given.by_ref().take(avals.len()));
                for &moves in flags {
                    changes.push(if moves { given.next() } else { None });
                }
            }
            (own, changes)
        };
        let body = trace("while_loop", &arguments, |given| {
            let (own, changes) = split(given);
            let values = graph.replay_all(&own)?;
            let tangents = rules::tangents_of(graph, &values, &changes)?;
            let value = |r: &Ref| values[r.node as usize][r.output as usize].clone();
            let mut outputs: Vec<Array> = graph.outputs.iter().map(value).collect();
            let zeros = |(found, aval): (&Option<Array>, &Aval)| or_zeros(found.as_ref(), aval);
            let changes = chosen(&tangents, carried).zip(chosen(of_carried, carried));
            outputs.extend(changes.map(zeros));
            Ok(outputs)
        })?;
        let cond = trace("while_loop", &arguments, |given| cond.replay(&split(given).0))?;
        let mut operands = Vec::with_capacity(arguments.len());
        let (values, changes) = (inputs.split_at(self.carries), tangents.split_at(self.carries));
        operands.extend(values.0.iter().cloned());
        let of_carried = chosen(changes.0, carried).zip(chosen(values.0, carried));
        operands.extend(of_carried.map(|(found, like)| or_zeros(found.as_ref(), like.aval())));
        operands.extend(values.1.iter().chain(changes.1.iter().flatten()).cloned());
        let carries = self.carries + chosen(carried, carried).count();
        let outputs = record(carries, self.most, cond, body, operands)?;
        let mut outputs = outputs.into_iter().skip(self.carries);
        Ok(carried.iter().map(|&moves| if moves { outputs.next() } else { None }).collect())
    }

    /// That of a scan that runs as often as this may, and hands on what is carried from where the condition is
    /// false.
    pub(super) fn vjp(&self, r: &Reverse<'_>) -> Result<Tangents> {
        match self.most {
            Some(most) => self.as_scan(most)?.vjp(r),
            None => Err(Error::NoDerivative {
                op: "while_loop",
                detail: "how often it runs is not known, so what the way back needs cannot be kept: give it a \
                         largest number of iterations, or use scan or fori_loop, for reverse mode; jvp and \
                         jacfwd go through while_loop"
                    .into(),
            }),
        }
    }

    /// The loop as a scan of so many iterations.
    fn as_scan(&self, length: usize) -> Result<Scan> {
        let mut graph = Graph::default();
        let inputs: Vec<Ref> =
            self.body.body.input_avals().map(|aval| graph.input(aval.clone())).collect();
        let mut stays = graph.clone();
        stays.outputs = inputs[..self.carries].to_vec();
        let holds = Ref { node: graph.push(self.cond.clone(), &inputs)?, output: 0 };
        let branches = vec![super::trace::body(stays), self.body.clone()];
        let operands = [&[holds], &inputs[..]].concat();
        let node = graph.push(Op::from(Control::Cond(Cond { branches })), &operands)?;
        graph.outputs = (0..self.carries as u32).map(|output| Ref { node, output }).collect();
        let body = super::trace::body(graph);
        Ok(Scan { body, carries: self.carries, sequences: 0, length, reverse: false })
    }

    /// Where the condition depends on the batch the loop goes on until it holds for no element, and leaves
    /// those alone for which it does not.
    pub(super) fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        let (graph, cond) = (&*self.body.body, &*self.cond.body);
        let mut flags: Vec<bool> = inputs.iter().map(|input| input.batched).collect();
        spread(graph, self.carries, &mut flags);
        let each = spread(cond, 0, &mut flags).contains(&true);
        if each {
            flags[..self.carries].fill(true);
        }
        let elements: Vec<Aval> = graph.input_avals().cloned().collect();
        loop {
            let batched = |(aval, &batched): (&Aval, &bool)| match batched {
                true => Aval { shape: prepend(size, &aval.shape), dtype: aval.dtype },
                false => aval.clone(),
            };
            let arguments: Vec<Aval> = elements.iter().zip(&flags).map(batched).collect();
            let batch = |given: &[Array]| -> Vec<Batched> {
                let given = given.iter().zip(&flags);
                given.map(|(array, &batched)| Batched { array: array.clone(), batched }).collect()
            };
            let holds = |given: &[Array]| -> Result<Array> {
                let answer = rules::vmap_body(cond, &batch(given), size)?;
                if each { answer[0].with_batch(size) } else { Ok(answer[0].array.clone()) }
            };
            let mut results: Vec<bool> = Vec::new();
            let body = trace("while_loop", &arguments, |given| {
                let outputs = rules::vmap_body(graph, &batch(given), size)?;
                results = outputs.iter().map(|output| output.batched).collect();
                let goes_on = if each { Some(holds(given)?) } else { None };
                let next = |(number, output): (usize, &Batched)| {
                    let after =
                        if flags[number] { output.with_batch(size)? } else { output.array.clone() };
                    match &goes_on {
                        Some(goes_on) => select_each(goes_on, &after, &given[number]),
                        None => Ok(after),
                    }
                };
                outputs.iter().enumerate().map(next).collect()
            })?;
            let more: Vec<usize> =
                (0..self.carries).filter(|&number| results[number] && !flags[number]).collect();
            if !more.is_empty() {
                more.into_iter().for_each(|number| flags[number] = true);
                continue;
            }
            let cond = trace("while_loop", &arguments, |given| {
                let answer = holds(given)?;
                Ok(vec![match each {
                    true => {
                        let any = Reduce { kind: ReduceKind::Any, axes: Dims::from_slice(&[0]) };
                        Array::apply(any, &[&answer])?
                    }
                    false => answer,
                }])
            })?;
            let whole = |(input, &batched): (&Batched, &bool)| match batched {
                true => input.with_batch(size),
                false => Ok(input.array.clone()),
            };
            let operands = inputs.iter().zip(&flags).map(whole).collect::<Result<Vec<_>>>()?;
            let outputs = record(self.carries, self.most, cond, body, operands)?.into_iter();
            return Ok(outputs
                .zip(&flags)
                .map(|(array, &batched)| Batched { array, batched })
                .collect());
        }
    }
}

/// Records a loop. Its condition and its body take the same, and what they capture differs.
pub(crate) fn record(
    carries: usize,
    most: Option<usize>,
    cond: super::Traced,
    body: super::Traced,
    inputs: Vec<Array>,
) -> Result<Vec<Array>> {
    let (mut cond, mut body) = (cond, body);
    for capture in &body.captures {
        cond.graph.input(capture.aval().clone());
    }
    // The captures of the condition come first in both.
    let own = body.graph.inputs.len() - body.captures.len();
    body.graph = with_inputs(body.graph, own, &cond.captures);
    let captures: Vec<Array> = cond.captures.iter().chain(&body.captures).cloned().collect();
    let looped = While {
        cond: super::trace::body(cond.graph),
        body: super::trace::body(body.graph),
        carries,
        most,
    };
    let inputs: Vec<&Array> = inputs.iter().chain(&captures).collect();
    Array::apply_multi(Op::from(Control::While(looped)), &inputs)
}

/// The graph with inputs like `more`, which it does not read, behind its first `own`.
pub(super) fn with_inputs(graph: Graph, own: usize, more: &[Array]) -> Graph {
    use crate::graph::Node;
    if more.is_empty() {
        return graph;
    }
    let mut out = Graph::default();
    let mut places: Vec<u32> = Vec::with_capacity(graph.nodes.len());
    let at = |places: &[u32], r: &Ref| Ref { node: places[r.node as usize], output: r.output };
    let add = |out: &mut Graph| {
        for array in more {
            out.input(array.aval().clone());
        }
    };
    let mut inputs = 0;
    for node in graph.nodes {
        if node.op.is_input() {
            if inputs == own {
                add(&mut out);
            }
            inputs += 1;
        }
        places.push(out.nodes.len() as u32);
        match node.op.is_input() {
            true => drop(out.input(node.outputs[0].clone())),
            false => {
                let inputs = node.inputs.iter().map(|r| at(&places, r)).collect();
                out.nodes.push(Node { inputs, ..node });
            }
        }
    }
    if inputs == own {
        add(&mut out);
    }
    out.outputs = graph.outputs.iter().map(|r| at(&places, r)).collect();
    out
}

/// `a` where the condition, one bool an element of the batch, is true, and `b` elsewhere.
pub(super) fn select_each(condition: &Array, a: &Array, b: &Array) -> Result<Array> {
    let axes: Vec<usize> = (1..a.rank()).collect();
    let condition = broadcast(&expand_dims(condition, &axes)?, &a.aval().shape)?;
    select(&condition, a, b)
}
