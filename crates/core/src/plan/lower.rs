//! From groups to segments: numbered registers, operands, and which buffers die when.

use smallvec::SmallVec;

use super::body::{Body, Instr, Reg};
use super::fuse::{Fusion, Group, GroupKind, Member, ScalarSource, Slot, Use, Val, ValKind, View};
use super::{Access, OutputSpec, Plan, SlotSpec, Step};
use crate::backend::{Backend, Epilogue, Kernel, Operand, Segment};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::fallback;

/// Turns the groups into a plan for `backend`.
pub(super) fn lower(fusion: Fusion<'_>, leaves: usize, backend: &dyn Backend) -> Result<Plan> {
    let mut steps = Vec::new();
    for (index, group) in fusion.groups.iter().enumerate() {
        if let Some(group) = group {
            let draft = Draft::of(&fusion, index, group);
            let executable = fallback::prepare(&draft.segment, backend)?;
            let aliases = draft.aliases();
            steps.push(Step {
                executable,
                is_copy: matches!(&draft.segment.kernel, Kernel::Map(b) if b.code.is_empty()),
                segment: draft.segment,
                inputs: draft.inputs,
                outputs: draft.outputs,
                scalars: draft.scalars,
                aliases,
                frees: SmallVec::new(),
            });
        }
    }
    let outputs: Vec<OutputSpec> = fusion
        .outputs
        .iter()
        .map(|view| OutputSpec { access: access(view), strides: view.strides.clone() })
        .collect();
    note_frees(&mut steps, &outputs, fusion.slots.len());
    let slots = fusion.slots.iter().map(|s| SlotSpec { bytes: s.aval.bytes(), is_output: false });
    let mut slots: Vec<SlotSpec> = slots.collect();
    for output in &outputs {
        slots[output.access.slot as usize].is_output = true;
    }
    Ok(Plan { steps, outputs, slots, leaves, device: backend.device() })
}

fn access(view: &View) -> Access {
    Access { slot: view.slot, offset: view.offset.clone() }
}

/// Notes after which step each slot is read no more.
fn note_frees(steps: &mut [Step], outputs: &[OutputSpec], slots: usize) {
    let mut seen = vec![false; slots];
    for output in outputs {
        seen[output.access.slot as usize] = true;
    }
    for step in steps.iter_mut().rev() {
        let touched = step.inputs.iter().chain(&step.outputs).map(|a| a.slot);
        for slot in touched.collect::<SmallVec<[Slot; 8]>>() {
            if !std::mem::replace(&mut seen[slot as usize], true) {
                step.frees.push(slot);
            }
        }
    }
}

/// A segment in the making, with where its operands lie.
struct Draft {
    segment: Segment,
    inputs: Vec<Access>,
    outputs: Vec<Access>,
    scalars: Vec<(ScalarSource, DType)>,
}

/// An argument before registers are numbered.
#[derive(Clone, Copy)]
enum Arg {
    Input(usize),
    Scalar(usize),
    Code(usize),
}

/// Collects what the members of a group read.
struct BodyDraft<'a> {
    views: Vec<&'a View>,
    scalars: Vec<(ScalarSource, DType)>,
    code: Vec<(&'a Member, SmallVec<[Arg; 3]>)>,
    /// The slots that instructions make.
    made: Vec<(Slot, Arg)>,
}

impl<'a> BodyDraft<'a> {
    fn arg(&mut self, val: &'a Val) -> Arg {
        match &val.kind {
            ValKind::Constant(source, aval) => {
                let entry = (*source, aval.dtype);
                let known = self.scalars.iter().position(|s| *s == entry);
                Arg::Scalar(known.unwrap_or_else(|| {
                    self.scalars.push(entry);
                    self.scalars.len() - 1
                }))
            }
            ValKind::Array(view) => {
                if let Some(&(_, arg)) = self.made.iter().find(|(slot, _)| *slot == view.slot) {
                    return arg;
                }
                let known = self.views.iter().position(|v| *v == view);
                Arg::Input(known.unwrap_or_else(|| {
                    self.views.push(view);
                    self.views.len() - 1
                }))
            }
        }
    }

    fn members(&mut self, members: &'a [Member]) {
        for member in members {
            let args: SmallVec<[Arg; 3]> = member.args.iter().map(|a| self.arg(a)).collect();
            if member.op.is_none() {
                self.made.push((member.slot, args[0]));
            } else {
                self.made.push((member.slot, Arg::Code(self.code.len())));
                self.code.push((member, args));
            }
        }
    }

    /// The program over the group's shape; `lead` inputs come before the collected views.
    fn body(&self, group: &Group, lead: &[DType], outputs: &[Arg]) -> Body {
        let inputs: Vec<DType> =
            lead.iter().copied().chain(self.views.iter().map(|v| v.aval.dtype)).collect();
        let first_scalar = inputs.len();
        let first_code = first_scalar + self.scalars.len();
        let number = |arg: &Arg| -> Reg {
            let index = match *arg {
                Arg::Input(i) if i == RESULT => 0,
                Arg::Input(i) => lead.len() + i,
                Arg::Scalar(i) => first_scalar + i,
                Arg::Code(i) => first_code + i,
            };
            index as Reg
        };
        let code = self.code.iter().filter_map(|(member, args)| {
            let args = args.iter().map(number).collect();
            member.op.map(|op| Instr { op, args, dtype: member.dtype })
        });
        Body {
            shape: group.shape.clone(),
            code: code.collect(),
            inputs,
            scalars: self.scalars.iter().map(|s| s.1).collect(),
            outputs: outputs.iter().map(number).collect(),
        }
    }

    fn operands(&self) -> impl Iterator<Item = Operand> {
        self.views.iter().map(|v| operand(v))
    }
}

/// Stands for the result of the op that an epilogue continues.
const RESULT: usize = usize::MAX;

fn operand(view: &View) -> Operand {
    Operand { aval: view.aval.clone(), strides: view.strides.to_vec() }
}

impl Draft {
    fn of(fusion: &Fusion<'_>, index: usize, group: &Group) -> Draft {
        match &group.kind {
            GroupKind::Map => Self::map(fusion, index, group),
            GroupKind::Reduce { op, input, slot } => {
                let mut body = new_body();
                body.members(&group.members);
                let result = body.arg(input);
                let kernel = Kernel::Reduce {
                    body: body.body(group, &[], &[result]),
                    kind: op.kind,
                    axes: op.axes.clone(),
                };
                let out = &fusion.slots[*slot as usize].aval;
                Self::assemble(kernel, &body, &[], vec![Operand::contiguous(out)], vec![*slot])
            }
            GroupKind::Op { op, inputs, slots } => {
                let mut body = new_body();
                body.made.push((slots[0], Arg::Input(RESULT)));
                body.members(&group.members);
                let result = slots[0] as usize;
                let outputs: Vec<Operand> = slots
                    .iter()
                    .map(|s| Operand::contiguous(&fusion.slots[*s as usize].aval))
                    .collect();
                let Some((last, _)) = body.code.last().cloned() else {
                    return Self::assemble(
                        Kernel::Op(op.clone()),
                        &body,
                        inputs,
                        outputs,
                        slots.clone(),
                    );
                };
                let lead = [fusion.slots[result].aval.dtype];
                let register = Arg::Code(body.code.len() - 1);
                let program = body.body(group, &lead, &[register]);
                let first_input = inputs.len();
                let mut draft =
                    Self::assemble(Kernel::Op(op.clone()), &body, inputs, outputs, vec![last.slot]);
                draft.segment.epilogue = Some(Epilogue { body: program, first_input });
                draft
            }
        }
    }

    fn map(fusion: &Fusion<'_>, index: usize, group: &Group) -> Draft {
        let mut body = new_body();
        body.members(&group.members);
        let mut outputs = Vec::new();
        let mut operands = Vec::new();
        let mut registers = Vec::new();
        let last = group.members.len() - 1;
        for (at, member) in group.members.iter().enumerate() {
            let info = &fusion.slots[member.slot as usize];
            let own = at == last && group.dest.is_some();
            let read_outside =
                info.group != index || info.uses.iter().any(|u| *u != Use::Direct(index));
            if !own && !read_outside {
                continue;
            }
            let register = body.made.iter().rev().find(|(slot, _)| *slot == member.slot);
            registers.extend(register.map(|r| r.1));
            match &group.dest {
                Some(dest) if own => {
                    operands.push(operand(dest));
                    outputs.push(access(dest));
                }
                _ => {
                    operands.push(Operand::contiguous(&sized(&info.aval, group)));
                    outputs.push(Access { slot: member.slot, offset: Default::default() });
                }
            }
        }
        let kernel = Kernel::Map(body.body(group, &[], &registers));
        let mut draft = Self::assemble(kernel, &body, &[], operands, Vec::new());
        draft.outputs = outputs;
        draft
    }

    fn assemble(
        kernel: Kernel,
        body: &BodyDraft<'_>,
        op_inputs: &[View],
        outputs: Vec<Operand>,
        slots: Vec<Slot>,
    ) -> Draft {
        let inputs = op_inputs.iter().map(operand).chain(body.operands()).collect();
        let places = op_inputs.iter().chain(body.views.iter().copied()).map(access).collect();
        Draft {
            segment: Segment {
                kernel,
                inputs,
                outputs,
                scalars: body.scalars.iter().map(|s| s.1).collect(),
                epilogue: None,
            },
            inputs: places,
            outputs: slots
                .into_iter()
                .map(|slot| Access { slot, offset: Default::default() })
                .collect(),
            scalars: body.scalars.clone(),
        }
    }

    /// Which outputs may take the memory of which inputs, if those die here.
    fn aliases(&self) -> SmallVec<[(u16, u16); 2]> {
        let mut pairs: SmallVec<[(u16, u16); 2]> = SmallVec::new();
        for output in 0..self.outputs.len() {
            let fits = |input: &usize| {
                let slot = self.inputs[*input].slot;
                let alone = self.inputs.iter().filter(|a| a.slot == slot).count() == 1;
                // Both start at the same element only where no slice or part says otherwise.
                let fresh = self.outputs[output].offset == Default::default()
                    && self.inputs[*input].offset == Default::default();
                let free = pairs.iter().all(|p| usize::from(p.1) != *input);
                alone && free && fresh && self.segment.may_alias(output, *input)
            };
            if let Some(input) = (0..self.inputs.len()).find(fits) {
                pairs.push((output as u16, input as u16));
            }
        }
        pairs
    }
}

fn new_body<'a>() -> BodyDraft<'a> {
    BodyDraft { views: Vec::new(), scalars: Vec::new(), code: Vec::new(), made: Vec::new() }
}

/// The aval of a group's output as the group walks it: a copy that feeds a reshape makes the same
/// elements in the shape that it reads.
fn sized(aval: &crate::shape::Aval, group: &Group) -> crate::shape::Aval {
    crate::shape::Aval { shape: group.shape.clone(), dtype: aval.dtype }
}

impl ScalarSource {
    /// The value as the element of `dtype`, where `node` gives the constant of a node.
    pub(super) fn element(self, dtype: DType, node: impl Fn(u32) -> Scalar) -> [u8; 8] {
        match self {
            ScalarSource::Node(index) => node(index),
            ScalarSource::Fixed(value) => value,
        }
        .to_element(dtype)
    }
}
