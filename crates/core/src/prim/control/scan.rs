//! A body for each element of sequences: inference, derivatives, batches.
//!
//! The backward pass is a loop in the other direction. It needs what was carried into each iteration, and
//! what cost much to compute there: the forward loop is recorded again with these as further output
//! sequences, and the planner makes one loop of the two (`plan/flat.rs`). The rest is computed again.

use smallvec::SmallVec;

use super::trace::body;
use super::{
    Control, Scan, Traced, carried, chosen, count, element, expect, gather, sequence, spread, trace,
};
use crate::array::Array;
use crate::error::Result;
use crate::graph::{Graph, Node, Ref};
use crate::prim::batch::prepend;
use crate::prim::record::{move_axis, or_zeros, zeros};
use crate::prim::{Avals, Batched, Binary, Dot, KernelOp, Op, Reverse, Tangents, record};
use crate::shape::Aval;
use crate::transform::rules;

/// Arrays as the three kinds of a loop's inputs.
struct Parts<'a, T> {
    carried: &'a [T],
    sequences: &'a [T],
    rest: &'a [T],
}

impl Scan {
    fn parts<'a, T>(&self, all: &'a [T]) -> Parts<'a, T> {
        let (carried, others) = all.split_at(self.carries);
        let (sequences, rest) = others.split_at(self.sequences);
        Parts { carried, sequences, rest }
    }

    pub(super) fn infer(&self, op: &'static str, inputs: &[&Aval]) -> Result<Avals> {
        let body = &self.body.body;
        let want: Vec<&Aval> = body.input_avals().collect();
        count(op, "inputs", inputs.len(), want.len())?;
        // A body that was read from a file may be too small.
        let carries = self.carries.min(body.outputs.len()).min(want.len());
        count(op, "carried arrays", self.carries, carries)?;
        count(op, "sequences", self.sequences, self.sequences.min(want.len() - carries))?;
        carried(op, body, self.carries)?;
        for (number, (have, want)) in inputs.iter().zip(want).enumerate() {
            match number.checked_sub(self.carries).filter(|&n| n < self.sequences) {
                Some(number) => {
                    let one = element(op, number, have, self.length)?;
                    expect(op, &format!("an element of sequence {number}"), &one, want)?;
                }
                None => expect(op, &format!("input {number}"), have, want)?,
            }
        }
        let outputs = body.output_avals().enumerate().map(|(number, aval)| {
            if number < self.carries { aval.clone() } else { sequence(aval, self.length) }
        });
        Ok(outputs.collect())
    }

    /// Records a loop of the same length and direction.
    fn record(
        &self,
        traced: Traced,
        carries: usize,
        inputs: Vec<Array>,
        sequences: usize,
    ) -> Result<Vec<Array>> {
        let (body, captures) = traced.body();
        if body.body.outputs.is_empty() {
            return Ok(Vec::new());
        }
        let scan = Scan { body, carries, sequences, length: self.length, reverse: self.reverse };
        let inputs: Vec<&Array> = inputs.iter().chain(&captures).collect();
        Array::apply_multi(Op::from(Control::Scan(scan)), &inputs)
    }

    pub(super) fn jvp(&self, inputs: &[Array], tangents: &[Option<Array>]) -> Result<Tangents> {
        let graph = &*self.body.body;
        let mut moves: Vec<bool> = tangents.iter().map(Option::is_some).collect();
        spread(graph, self.carries, &mut moves);
        let avals: Vec<Aval> = graph.input_avals().cloned().collect();
        let (all, flags) = (self.parts(&avals), self.parts(&moves));
        // What is carried with its tangents, the sequences with theirs, the rest with its.
        let kinds = [
            (all.carried, flags.carried),
            (all.sequences, flags.sequences),
            (all.rest, flags.rest),
        ];
        let arguments: Vec<Aval> = kinds
            .iter()
            .flat_map(|(avals, flags)| avals.iter().chain(chosen(avals, flags)).cloned())
            .collect();
        let mut results: Vec<bool> = Vec::new();
        let traced = trace("scan", &arguments, |given| {
            let (mut own, mut own_tangents) = (Vec::new(), Vec::new());
            let mut given = given.iter().cloned();
            for (avals, flags) in kinds {
                own.extend(given.by_ref().take(avals.len()));
                let tangent = |&moves: &bool| if moves { given.next() } else { None };
                own_tangents.extend(flags.iter().map(tangent).collect::<Vec<_>>());
            }
            let values = graph.replay_all(&own)?;
            let tangents = rules::tangents_of(graph, &values, &own_tangents)?;
            let value = |r: &Ref| values[r.node as usize][r.output as usize].clone();
            let (carried, sequences) = graph.outputs.split_at(self.carries);
            let (carried_tangents, others) = tangents.split_at(self.carries);
            let mut outputs: Vec<Array> = carried.iter().map(value).collect();
            for ((r, tangent), _) in
                carried.iter().zip(carried_tangents).zip(flags.carried).filter(|(_, moves)| **moves)
            {
                outputs.push(or_zeros(tangent.as_ref(), graph.aval(*r)));
            }
            outputs.extend(sequences.iter().map(value));
            results = others.iter().map(Option::is_some).collect();
            outputs.extend(others.iter().flatten().cloned());
            Ok(outputs)
        })?;
        let (values, changes) = (self.parts(inputs), self.parts(tangents));
        let mut operands = values.carried.to_vec();
        for (value, tangent) in values
            .carried
            .iter()
            .zip(changes.carried)
            .zip(flags.carried)
            .filter(|(_, m)| **m)
            .map(|(p, _)| p)
        {
            operands.push(or_zeros(tangent.as_ref(), value.aval()));
        }
        for (values, changes) in
            [(values.sequences, changes.sequences), (values.rest, changes.rest)]
        {
            operands.extend(values.iter().chain(changes.iter().flatten()).cloned());
        }
        let moving = |flags: &[bool]| flags.iter().filter(|moves| **moves).count();
        let carries = self.carries + moving(flags.carried);
        let sequences = self.sequences + moving(flags.sequences);
        let mut outputs =
            self.record(traced, carries, operands, sequences)?.into_iter().skip(self.carries);
        let mut take = |there: &bool| if *there { outputs.next() } else { None };
        let mut found: Tangents = flags.carried.iter().map(&mut take).collect();
        let mut outputs = outputs.skip(graph.outputs.len() - self.carries);
        let mut take = |there: &bool| if *there { outputs.next() } else { None };
        found.extend(results.iter().map(&mut take));
        Ok(found)
    }

    pub(super) fn vjp(&self, r: &Reverse<'_>) -> Result<Tangents> {
        let graph = &*self.body.body;
        // What leads from what is wanted to what has a cotangent.
        let mut moves = r.wanted.to_vec();
        spread(graph, self.carries, &mut moves);
        let mut given: Vec<bool> = r.cotangents.iter().map(Option::is_some).collect();
        let leads = gather(graph, self.carries, &mut given);
        let differentiable = |n: usize| {
            graph.aval(Ref { node: graph.inputs[n], output: 0 }).dtype.is_differentiable()
        };
        let leads = |n: usize| if n < self.carries { given[n] } else { leads[n] };
        let active: Vec<bool> =
            (0..moves.len()).map(|n| moves[n] && leads(n) && differentiable(n)).collect();
        let active = self.parts(&active);
        let avals: Vec<Aval> = graph.input_avals().cloned().collect();
        let avals = self.parts(&avals);
        let results: Vec<Aval> = graph.output_avals().skip(self.carries).cloned().collect();
        let has_cotangent = &given[self.carries..];
        let kept = kept(graph, self);
        // Carried: cotangents of what was carried, sums of cotangents of the rest. Sequences: what was
        // carried, what was kept, the sequences, cotangents of the output sequences. The rest.
        let back: Vec<Aval> = chosen(avals.carried, active.carried)
            .chain(chosen(avals.rest, active.rest))
            .cloned()
            .collect();
        let saved: Vec<Aval> = (avals.carried.iter().cloned())
            .chain(kept.iter().map(|&r| graph.aval(r).clone()))
            .collect();
        let sequences: Vec<Aval> =
            avals.sequences.iter().chain(chosen(&results, has_cotangent)).cloned().collect();
        let arguments: Vec<Aval> = [&back[..], &saved, &sequences, avals.rest].concat();
        let mut traced = trace("scan", &arguments, |all| {
            let mut all = all.iter().cloned();
            let mut take = |count: usize| all.by_ref().take(count).collect::<Vec<Array>>();
            let moving = chosen(avals.carried, active.carried).count();
            let (cotangents, sums) = (take(moving), take(back.len() - moving));
            let (carried, kept_values) = (take(self.carries), take(kept.len()));
            let (elements, given) = (take(self.sequences), take(sequences.len() - self.sequences));
            let rest = take(avals.rest.len());
            let own: Vec<Array> = [carried, elements, rest].concat();
            let known = kept.iter().copied().zip(kept_values).collect();
            let values = graph.replay_with(&own, &known)?;
            let mut cotangents = cotangents.into_iter();
            let mut given = given.into_iter();
            let mut of_outputs: Tangents = (active.carried.iter())
                .map(|&active| if active { cotangents.next() } else { None })
                .collect();
            of_outputs
                .extend(has_cotangent.iter().map(|&there| if there { given.next() } else { None }));
            let wanted: Vec<bool> = [active.carried, active.sequences, active.rest].concat();
            let found = rules::cotangents_of(graph, &values, &of_outputs, &wanted)?;
            let found = self.parts(&found);
            let zeros = |(found, aval): (&Option<Array>, &Aval)| or_zeros(found.as_ref(), aval);
            let mut outputs: Vec<Array> = chosen(found.carried, active.carried)
                .zip(chosen(avals.carried, active.carried))
                .map(zeros)
                .collect();
            for (found, sum) in chosen(found.rest, active.rest).zip(sums) {
                outputs.push(match found {
                    Some(more) => record::add(&sum, more)?,
                    None => sum,
                });
            }
            let of_sequences = chosen(found.sequences, active.sequences)
                .zip(chosen(avals.sequences, active.sequences));
            outputs.extend(of_sequences.map(zeros));
            Ok(outputs)
        })?;
        let values = self.parts(r.inputs);
        let moving = chosen(avals.carried, active.carried).count();
        let products = take_products(&mut traced.graph, moving, back.len());
        // Of what could be saved only what the way back reads, and of the sums those that are none of products.
        let first = back.len();
        let is_read = read_inputs(&traced.graph);
        let is_saved = &is_read[first..first + saved.len()];
        let places: Vec<Ref> = (graph.inputs.iter().take(self.carries))
            .map(|&node| Ref { node, output: 0 })
            .chain(kept.iter().copied())
            .collect();
        let places: Vec<Ref> = chosen(&places, is_saved).copied().collect();
        let stacks = self.with_outputs(r.inputs, &places)?;
        let unread: Vec<bool> = (0..is_read.len())
            .map(|n| match n.checked_sub(moving).and_then(|sum| products.get(sum)) {
                Some(product) => product.is_some(),
                None => (first..first + saved.len()).contains(&n) && !is_read[n],
            })
            .collect();
        traced.graph = without(traced.graph, &unread);
        let of_carried = r.cotangents[..self.carries].iter().zip(values.carried);
        let mut operands: Vec<Array> = of_carried
            .zip(active.carried)
            .filter(|(_, active)| **active)
            .map(|((cotangent, like), _)| or_zeros(cotangent.as_ref(), like.aval()))
            .collect();
        let sums = chosen(values.rest, active.rest).zip(&products);
        operands.extend(sums.filter(|(_, p)| p.is_none()).map(|(array, _)| zeros(array.aval())));
        let carries = operands.len();
        operands.extend(stacks);
        operands.extend(values.sequences.iter().cloned());
        let given = r.cotangents[self.carries..].iter().zip(&r.outputs[self.carries..]);
        operands.extend(
            given
                .zip(has_cotangent)
                .filter(|(_, there)| **there)
                .map(|((cotangent, like), _)| or_zeros(cotangent.as_ref(), like.aval())),
        );
        let sequences = operands.len() - carries;
        operands.extend(values.rest.iter().cloned());
        let back = Scan { reverse: !self.reverse, ..self.clone() };
        let mut found = back.record(traced, carries, operands, sequences)?;
        // Outputs come as carried, rest, sequences, factors of products.
        let factors = 2 * products.iter().flatten().count();
        let mut factors = found.split_off(found.len().saturating_sub(factors)).into_iter();
        let mut found = found.into_iter();
        let mut next = |active: &bool| if *active { found.next() } else { None };
        let of_carried: Tangents = active.carried.iter().map(&mut next).collect();
        let mut products = products.iter();
        let mut of_rest = Tangents::with_capacity(active.rest.len());
        for active in active.rest {
            let product = if *active { products.next().and_then(Option::as_ref) } else { None };
            of_rest.push(match product {
                Some(dot) => match (factors.next(), factors.next()) {
                    (Some(left), Some(right)) => Some(product_of(dot, &left, &right)?),
                    _ => None,
                },
                None => next(active),
            });
        }
        let of_sequences: Tangents = active.sequences.iter().map(&mut next).collect();
        let all = [of_carried, of_sequences, of_rest].concat();
        // What is only carried on the way needs no cotangent in the end.
        Ok(all.into_iter().zip(r.wanted).map(|(found, &wanted)| found.filter(|_| wanted)).collect())
    }

    /// The values of `places` in every iteration, as further outputs of this loop on `inputs`.
    fn with_outputs(&self, inputs: &[Array], places: &[Ref]) -> Result<Vec<Array>> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let mut graph = (*self.body.body).clone();
        let own = graph.outputs.len();
        graph.outputs.extend(places);
        let scan = Scan { body: body(graph), ..self.clone() };
        let inputs: Vec<&Array> = inputs.iter().collect();
        let mut outputs = Array::apply_multi(Op::from(Control::Scan(scan)), &inputs)?;
        Ok(outputs.split_off(own))
    }

    /// Whether this loop on the same inputs gives what `other` gives, in its first outputs.
    pub(crate) fn covers(&self, other: &Scan) -> bool {
        let like = |scan: &Scan| (scan.carries, scan.sequences, scan.length, scan.reverse);
        let (own, body) = (&*self.body.body, &*other.body.body);
        like(self) == like(other)
            && own.outputs.starts_with(&body.outputs)
            && own.inputs == body.inputs
            && own.nodes == body.nodes
    }

    pub(super) fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        let graph = &*self.body.body;
        let mut flags: Vec<bool> = inputs.iter().map(|input| input.batched).collect();
        spread(graph, self.carries, &mut flags);
        let elements: Vec<Aval> = graph.input_avals().cloned().collect();
        loop {
            let batched = |(aval, &batched): (&Aval, &bool)| match batched {
                true => Aval { shape: prepend(size, &aval.shape), dtype: aval.dtype },
                false => aval.clone(),
            };
            let arguments: Vec<Aval> = elements.iter().zip(&flags).map(batched).collect();
            let mut results: Vec<bool> = Vec::new();
            let traced = trace("scan", &arguments, |given| {
                let given = given.iter().zip(&flags);
                let given: Vec<Batched> = given
                    .map(|(array, &batched)| Batched { array: array.clone(), batched })
                    .collect();
                let outputs = rules::vmap_body(graph, &given, size)?;
                results = outputs.iter().map(|output| output.batched).collect();
                let whole = |(number, output): (usize, &Batched)| {
                    let carried = number < self.carries && flags[number];
                    if carried { output.with_batch(size) } else { Ok(output.array.clone()) }
                };
                outputs.iter().enumerate().map(whole).collect()
            })?;
            // A rule may batch what does not depend on the batch.
            let more: Vec<usize> =
                (0..self.carries).filter(|&number| results[number] && !flags[number]).collect();
            if !more.is_empty() {
                more.into_iter().for_each(|number| flags[number] = true);
                continue;
            }
            let operands =
                inputs.iter().zip(&flags).enumerate().map(|(number, (input, &batched))| {
                    let is_sequence =
                        (self.carries..self.carries + self.sequences).contains(&number);
                    match batched {
                        true if is_sequence => move_axis(&input.array, 0, 1),
                        true => input.with_batch(size),
                        false => Ok(input.array.clone()),
                    }
                });
            let operands = operands.collect::<Result<Vec<_>>>()?;
            let outputs = self.record(traced, self.carries, operands, self.sequences)?;
            let outputs = outputs.into_iter().enumerate().map(|(number, array)| {
                Ok(match number < self.carries {
                    true => Batched { array, batched: flags[number] },
                    false if results[number] => Batched::each(move_axis(&array, 1, 0)?),
                    false => Batched::shared(array),
                })
            });
            return outputs.collect();
        }
    }
}

/// The values in a body that are kept for the way back: those that are more than instructions and copies, and
/// not the same in every iteration.
fn kept(graph: &Graph, scan: &Scan) -> Vec<Ref> {
    let mut changes: Vec<bool> = vec![false; graph.inputs.len()];
    changes[..scan.carries + scan.sequences].fill(true);
    let changes = rules::depends_on(graph, &changes);
    let is_kept = |node: &Node| match &node.op {
        Op::Input(_) | Op::Constant(_) | Op::Movement(_) | Op::Mark(_) | Op::Elementwise(_) => {
            false
        }
        Op::Reduce(_)
        | Op::Kernel(_)
        | Op::Composite(_)
        | Op::Call(_)
        | Op::Control(_)
        | Op::Custom(_) => true,
    };
    let nodes = graph.nodes.iter().zip(&changes).enumerate();
    nodes
        .filter(|(_, (node, changes))| **changes && is_kept(node))
        .flat_map(|(index, (node, _))| {
            (0..node.outputs.len() as u32).map(move |output| Ref { node: index as u32, output })
        })
        .collect()
}

/// Takes the sums of products out of a body: sums are the outputs from `first` up to `end`, each of the input of
/// its number and what an iteration adds. The factors become further outputs, the products' in turn, and the sum is one
/// product for all iterations, where that is less to write. Gives them, one a sum.
fn take_products(graph: &mut Graph, first: usize, end: usize) -> Vec<Option<Dot>> {
    let mut readers = vec![0; graph.nodes.len()];
    let inputs = graph.nodes.iter().flat_map(|node| &node.inputs);
    inputs.chain(&graph.outputs).for_each(|r| readers[r.node as usize] += 1);
    let mut taken = Vec::with_capacity(end - first);
    let mut factors = Vec::new();
    for number in first..end {
        let (sum, into) = (graph.outputs[number].node as usize, graph.inputs[number] as usize);
        let product = sum_of_product(graph, sum, into).filter(|&(_, product)| {
            let size = |r: &Ref| graph.aval(*r).shape.size();
            let node = &graph.nodes[product];
            let alone = [sum, into, product].iter().all(|&node| readers[node] == 1);
            let factors: usize = node.inputs.iter().map(size).sum();
            alone && factors <= 2 * node.outputs[0].shape.size()
        });
        taken.push(product.map(|(dot, product)| {
            factors.extend(graph.nodes[product].inputs.iter().copied());
            dot
        }));
    }
    let mut number = 0;
    graph.outputs.retain(|_| {
        let is_taken = number >= first && taken.get(number - first).is_some_and(Option::is_some);
        number += 1;
        !is_taken
    });
    graph.outputs.extend(factors);
    *graph = without(std::mem::take(graph), &[]);
    taken
}

/// The matrix product, and its node, that node `sum` adds to the input at node `into`.
fn sum_of_product(graph: &Graph, sum: usize, into: usize) -> Option<(Dot, usize)> {
    let node = &graph.nodes[sum];
    let [a, b] = node.inputs[..] else { return None };
    let is_sum = node.op == Op::from(Binary::Add) && a.node as usize == into;
    match &graph.nodes[b.node as usize].op {
        Op::Kernel(KernelOp::Dot(dot)) if is_sum => Some((*dot, b.node as usize)),
        Op::Input(_)
        | Op::Constant(_)
        | Op::Movement(_)
        | Op::Mark(_)
        | Op::Elementwise(_)
        | Op::Reduce(_)
        | Op::Kernel(_)
        | Op::Composite(_)
        | Op::Call(_)
        | Op::Control(_)
        | Op::Custom(_) => None,
    }
}

/// The sum of the products of the elements of two sequences: iterations are more of what a product sums over.
fn product_of(dot: &Dot, left: &Array, right: &Array) -> Result<Array> {
    let rank = left.rank();
    let left = record::flatten(&move_axis(left, 0, rank - 2)?, rank - 2, rank - 1)?;
    let right = record::flatten(&move_axis(right, 0, rank - 3)?, rank - 3, rank - 2)?;
    Array::apply(*dot, &[&left, &right])
}

/// Which inputs of a graph something reads.
fn read_inputs(graph: &Graph) -> Vec<bool> {
    let mut is_read = vec![false; graph.nodes.len()];
    let inputs = graph.nodes.iter().flat_map(|node| &node.inputs);
    inputs.chain(&graph.outputs).for_each(|r| is_read[r.node as usize] = true);
    graph.inputs.iter().map(|&node| is_read[node as usize]).collect()
}

/// The graph without what no output needs, but for its inputs; of these without those that are `unread`.
fn without(graph: Graph, unread: &[bool]) -> Graph {
    let mut is_live = vec![false; graph.nodes.len()];
    graph.outputs.iter().for_each(|r| is_live[r.node as usize] = true);
    for (index, node) in graph.nodes.iter().enumerate().rev() {
        if is_live[index] {
            node.inputs.iter().for_each(|r| is_live[r.node as usize] = true);
        }
    }
    let mut out = Graph::default();
    let mut places: Vec<u32> = Vec::with_capacity(graph.nodes.len());
    let mut unread = unread.iter();
    let at = |places: &[u32], r: &Ref| Ref { node: places[r.node as usize], output: r.output };
    for (node, is_live) in graph.nodes.into_iter().zip(is_live) {
        places.push(out.nodes.len() as u32);
        if node.op.is_input() {
            if unread.next() != Some(&true) {
                out.input(node.outputs[0].clone());
            }
        } else if is_live {
            let inputs: SmallVec<[Ref; 3]> = node.inputs.iter().map(|r| at(&places, r)).collect();
            out.nodes.push(Node { inputs, ..node });
        }
    }
    out.outputs = graph.outputs.iter().map(|r| at(&places, r)).collect();
    out
}
