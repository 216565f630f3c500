//! One of several bodies: inference, derivatives, batches.

use super::while_loop::{select_each, with_inputs};
use super::{Cond, Control, Traced, chosen, count, expect, spread, trace};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::record::{compare, or_zeros};
use crate::prim::{Avals, Batched, Compare, Mark, Op, Reverse, Tangents};
use crate::shape::Aval;
use crate::transform::rules;

impl Cond {
    pub(super) fn infer(&self, op: &'static str, inputs: &[&Aval]) -> Result<Avals> {
        let Some(first) = self.branches.first() else {
            return Err(Error::argument(op, "there is no branch"));
        };
        let Some((which, operands)) = inputs.split_first() else {
            return Err(Error::argument(op, "what says which branch to take is missing"));
        };
        if which.shape.rank() != 0 {
            return Err(Error::shape(
                op,
                format!("what says which branch to take has no axes, it is {which}"),
            ));
        }
        if which.dtype != DType::Bool && !which.dtype.is_integer() {
            let detail = format!("a bool or an integer says which branch to take, not {which}");
            return Err(Error::dtype(op, detail));
        }
        let outputs: Avals = first.body.output_avals().cloned().collect();
        for (number, branch) in self.branches.iter().enumerate() {
            count(op, "operands", operands.len(), branch.body.inputs.len())?;
            for (at, (have, want)) in operands.iter().zip(branch.body.input_avals()).enumerate() {
                expect(op, &format!("operand {at} of branch {number}"), have, want)?;
            }
            let own: Vec<&Aval> = branch.body.output_avals().collect();
            if !own.iter().copied().eq(&outputs) {
                return Err(Error::shape(
                    op,
                    format!("branch 0 gives {:?}, branch {number} gives {own:?}", &outputs[..]),
                ));
            }
        }
        Ok(outputs)
    }

    pub(super) fn jvp(&self, inputs: &[Array], tangents: &[Option<Array>]) -> Result<Tangents> {
        let (operands, tangents) = (&inputs[1..], &tangents[1..]);
        let moves: Vec<bool> = tangents.iter().map(Option::is_some).collect();
        let reached = self.reached(&moves);
        let own = operands.iter().map(|o| o.aval().clone());
        let arguments: Vec<Aval> =
            own.chain(tangents.iter().flatten().map(|t| t.aval().clone())).collect();
        let branches = self.branches.iter().map(|branch| {
            trace("cond", &arguments, |given| {
                let (own, rest) = given.split_at(operands.len());
                let mut rest = rest.iter().cloned();
                let changes: Tangents =
                    moves.iter().map(|&moves| if moves { rest.next() } else { None }).collect();
                let graph = &*branch.body;
                let found = rules::jvp_body(graph, own, &changes)?;
                let found = found.iter().zip(graph.output_avals()).collect::<Vec<_>>();
                Ok(chosen(&found, &reached).map(|(t, aval)| or_zeros(t.as_ref(), aval)).collect())
            })
        });
        let branches = branches.collect::<Result<Vec<_>>>()?;
        let operands = operands.iter().chain(tangents.iter().flatten()).cloned().collect();
        let mut found = record(&inputs[0], branches, operands)?.into_iter();
        Ok(reached.iter().map(|&there| if there { found.next() } else { None }).collect())
    }

    pub(super) fn vjp(&self, r: &Reverse<'_>) -> Result<Tangents> {
        let (operands, wanted) = (&r.inputs[1..], &r.wanted[1..]);
        let given: Vec<bool> = r.cotangents.iter().map(Option::is_some).collect();
        // The operands that are wanted and that some branch makes an output with a cotangent of.
        let mut leads = vec![false; operands.len()];
        for branch in &self.branches {
            let mut given = given.clone();
            let own = super::gather(&branch.body, 0, &mut given);
            leads.iter_mut().zip(own).for_each(|(all, own)| *all |= own);
        }
        leads.iter_mut().zip(wanted).for_each(|(leads, &wanted)| *leads &= wanted);
        let cotangents = r.cotangents.iter().flatten();
        let arguments: Vec<Aval> =
            operands.iter().chain(cotangents.clone()).map(|a| a.aval().clone()).collect();
        let branches = self.branches.iter().map(|branch| {
            trace("cond", &arguments, |all| {
                let (own, rest) = all.split_at(operands.len());
                let mut rest = rest.iter().cloned();
                let cotangents: Tangents =
                    given.iter().map(|&there| if there { rest.next() } else { None }).collect();
                let found = rules::vjp_body(&branch.body, own, &cotangents, &leads)?;
                let found = found.iter().zip(operands).collect::<Vec<_>>();
                Ok(chosen(&found, &leads).map(|(c, o)| or_zeros(c.as_ref(), o.aval())).collect())
            })
        });
        let branches = branches.collect::<Result<Vec<_>>>()?;
        let arrays = operands.iter().chain(cotangents).cloned().collect();
        let mut found = record(&r.inputs[0], branches, arrays)?.into_iter();
        let of_operands = leads.iter().map(|&there| if there { found.next() } else { None });
        Ok(std::iter::once(None).chain(of_operands).collect())
    }

    /// Which outputs depend, in some branch, on operands with these flags.
    fn reached(&self, flags: &[bool]) -> Vec<bool> {
        let mut reached = vec![false; self.branches[0].body.outputs.len()];
        for branch in &self.branches {
            let own = spread(&branch.body, 0, &mut flags.to_vec());
            reached.iter_mut().zip(own).for_each(|(all, own)| *all |= own);
        }
        reached
    }

    /// Where all elements of the batch take the same branch, that branch over the batch; else all branches,
    /// and of each element the one that it takes.
    pub(super) fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        let (which, operands) = (&inputs[0], &inputs[1..]);
        if which.batched {
            return self.select(&which.array, operands, size);
        }
        let flags: Vec<bool> = operands.iter().map(|o| o.batched).collect();
        let arguments: Vec<Aval> = operands.iter().map(|o| o.array.aval().clone()).collect();
        let branches = self.branches.iter().map(|branch| {
            trace("cond", &arguments, |given| {
                let given = given.iter().zip(&flags);
                let given: Vec<Batched> = given
                    .map(|(array, &batched)| Batched { array: array.clone(), batched })
                    .collect();
                let outputs = rules::vmap_body(&branch.body, &given, size)?;
                outputs.iter().map(|output| output.with_batch(size)).collect()
            })
        });
        let branches = branches.collect::<Result<Vec<_>>>()?;
        let arrays = operands.iter().map(|o| o.array.clone()).collect();
        Ok(record(&which.array, branches, arrays)?.into_iter().map(Batched::each).collect())
    }

    /// All branches, and of each element of the batch the one that it takes. No derivative passes to what an element
    /// gave to the others, so that one that is not finite there stays there.
    fn select(&self, which: &Array, operands: &[Batched], size: usize) -> Result<Vec<Batched>> {
        let last = self.branches.len() - 1;
        let number = |number: usize| Array::constant(number as i64, which.aval().clone());
        // Numbers outside of the branches stand for the first and the last one.
        let taken = |branch: usize| -> Result<Array> {
            match (which.dtype(), branch) {
                (DType::Bool, 0) => compare(Compare::Eq, which, &number(0)),
                (DType::Bool, _) => Ok(which.clone()),
                (_, 0) if last > 0 => compare(Compare::Lt, which, &number(1)),
                (_, at) if at < last => compare(Compare::Eq, which, &number(at)),
                (_, at) => compare(Compare::Le, &number(at), which),
            }
        };
        let mut found: Option<Vec<Array>> = None;
        for (at, branch) in self.branches.iter().enumerate() {
            let takes = taken(at)?;
            let operands = operands.iter().map(|operand| match operand.batched {
                true if last > 0 && operand.array.dtype().is_inexact() => {
                    let kept = Array::apply(Mark::StopGradient, &[&operand.array])?;
                    Ok(Batched::each(select_each(&takes, &operand.array, &kept)?))
                }
                _ => Ok(operand.clone()),
            });
            let operands = operands.collect::<Result<Vec<_>>>()?;
            let own = rules::vmap_body(&branch.body, &operands, size)?;
            let own = own.iter().map(|o| o.with_batch(size)).collect::<Result<Vec<_>>>()?;
            found = Some(match found {
                None => own,
                Some(before) => {
                    let pairs = own.iter().zip(&before);
                    pairs
                        .map(|(own, before)| select_each(&takes, own, before))
                        .collect::<Result<_>>()?
                }
            });
        }
        Ok(found.unwrap_or_default().into_iter().map(Batched::each).collect())
    }
}

/// Records a choice between branches that take the same, and capture what they like.
pub(crate) fn record(
    which: &Array,
    branches: Vec<Traced>,
    operands: Vec<Array>,
) -> Result<Vec<Array>> {
    let captures: Vec<Array> = branches.iter().flat_map(|b| b.captures.iter().cloned()).collect();
    let mut before = 0;
    let mut all = Vec::with_capacity(branches.len());
    for branch in branches {
        let own = branch.captures.len();
        let after = before + own;
        // Each takes the captures of all, in one order.
        let mut graph = with_inputs(branch.graph, operands.len(), &captures[..before]);
        for capture in &captures[after..] {
            graph.input(capture.aval().clone());
        }
        all.push(super::trace::body(graph));
        before = after;
    }
    if all.first().is_none_or(|branch| branch.body.outputs.is_empty()) {
        return Ok(Vec::new());
    }
    let inputs: Vec<&Array> = std::iter::once(which).chain(&operands).chain(&captures).collect();
    Array::apply_multi(Op::from(Control::Cond(Cond { branches: all })), &inputs)
}
