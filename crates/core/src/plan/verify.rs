//! What holds after each stage of the planner, checked where debug assertions are on.

use super::Plan;
use super::flat::{Flat, FlatGraph};
use super::fuse::{Fusion, GroupKind, Slot, Val, View};
use crate::backend::{Backend, Body, Kernel, Segment};
use crate::error::{Error, Result};
use crate::graph;
use crate::prim::Op;

impl FlatGraph<'_> {
    /// Every node follows its inputs and infers its avals; no call is left, nor a composite that the
    /// backend does not claim.
    pub(super) fn verify(&self, backend: &dyn Backend) -> Result<()> {
        graph::verify(self.nodes.iter().map(|n| (n.op, &n.inputs[..], n.avals)), &self.outputs)?;
        let left = |node: &Flat<'_>| match node.op {
            Op::Call(_) => true,
            Op::Composite(composite) => {
                let avals: Vec<_> = node.inputs.iter().map(|&r| self.aval(r)).collect();
                !backend.claims(composite, &avals)
            }
            Op::Input(_)
            | Op::Constant(_)
            | Op::Movement(_)
            | Op::Mark(_)
            | Op::Elementwise(_)
            | Op::Reduce(_)
            | Op::Kernel(_)
            | Op::Control(_)
            | Op::Custom(_) => false,
        };
        match self.nodes.iter().position(left) {
            Some(node) => bad("flatten", format!("node {node} has a body and was left in place")),
            None => Ok(()),
        }
    }
}

impl Fusion<'_> {
    /// Every group reads what earlier groups made, or its own members before.
    pub(super) fn verify(&self) -> Result<()> {
        for (index, group) in self.groups.iter().enumerate() {
            let Some(group) = group else { continue };
            let reads_early = |view: &View<'_>| self.slots[view.slot as usize].group < index;
            let mut own: Vec<Slot> = Vec::new();
            let mut folds: &[_] = &[];
            match &group.kind {
                GroupKind::Own { inputs, slots, .. } => {
                    if !inputs.iter().all(|view| reads_early(view)) {
                        return bad("fuse", format!("group {index} reads what is not made yet"));
                    }
                    own.extend(slots);
                }
                GroupKind::Rows { folds: all } => folds = all,
                GroupKind::Map | GroupKind::Reduce { .. } => {}
            }
            let is_there =
                |view: &View<'_>, own: &[Slot]| own.contains(&view.slot) || reads_early(view);
            for (at, member) in group.members.iter().enumerate() {
                own.extend(folds.iter().filter(|f| f.after == at).map(|f| f.slot));
                let mut views = member.args.iter().filter_map(Val::view);
                if let Some(view) = views.find(|view| !is_there(view, &own)) {
                    let slot = view.slot;
                    let detail = format!("member {at} of group {index} reads slot {slot} early");
                    return bad("fuse", detail);
                }
                own.push(member.slot);
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Every step reads leaves or what earlier steps wrote to the end, and its programs are in single
    /// assignment form.
    pub(super) fn verify(&self) -> Result<()> {
        let mut made = vec![false; self.slots.len()];
        made[..self.leaves].fill(true);
        let mut writers = vec![0; self.slots.len()];
        let outputs = self.steps.iter().flat_map(|step| &step.outputs);
        outputs.for_each(|output| writers[output.slot as usize] += 1);
        for (index, step) in self.steps.iter().enumerate() {
            let is_there = |slot: Slot| made[slot as usize] && writers[slot as usize] == 0;
            if let Some(input) = step.inputs.iter().find(|input| !is_there(input.slot)) {
                let slot = input.slot;
                return bad("lower", format!("step {index} reads slot {slot} early:\n{self}"));
            }
            verify_segment(index, &step.prepared.segment)?;
            for output in &step.outputs {
                made[output.slot as usize] = true;
                writers[output.slot as usize] -= 1;
            }
        }
        match self.outputs.iter().find(|output| !made[output.access.slot as usize]) {
            Some(output) => bad("lower", format!("no step makes slot {}", output.access.slot)),
            None => Ok(()),
        }
    }
}

fn verify_segment(index: usize, segment: &Segment) -> Result<()> {
    let fits = |body: &Body, inputs: usize, outputs: usize| -> Result<()> {
        let first = body.inputs.len() + body.scalars.len();
        let ordered = (body.code.iter().enumerate())
            .all(|(at, instr)| instr.args.iter().all(|&r| usize::from(r) < first + at));
        let stored = body.outputs.iter().all(|&r| usize::from(r) < body.registers());
        let counts = body.inputs.len() == inputs && body.outputs.len() == outputs;
        match ordered && stored && counts && body.scalars == segment.scalars {
            true => Ok(()),
            false => bad("lower", format!("the program of step {index} does not fit: {body:?}")),
        }
    };
    let (inputs, outputs) = (segment.inputs.len(), segment.outputs.len());
    match &segment.kernel {
        Kernel::Map(body) => fits(body, inputs, outputs)?,
        Kernel::Reduce { body, .. } => fits(body, inputs, outputs)?,
        Kernel::Rows { body, folds } => fits(body, inputs + folds.len(), outputs)?,
        Kernel::Op(_) | Kernel::Composite(_) | Kernel::Control(_) | Kernel::Custom(_) => {}
    }
    match &segment.epilogue {
        Some(epilogue) => fits(&epilogue.body, inputs - epilogue.first_input + 1, 1),
        None => Ok(()),
    }
}

fn bad(stage: &str, detail: String) -> Result<()> {
    Err(Error::argument("plan", format!("{stage}: {detail}")))
}
