//! From groups to segments: numbered registers, operands, and which buffers die when.

use smallvec::SmallVec;

use super::fuse::{
    Fusion, Group, GroupKind, Member, RowFold, ScalarSource, Slot, Use, Val, ValKind, View, Work,
};
use super::{Access, LateCheck, OutputSpec, Parameters, Plan, SlotSpec, Step};
use crate::backend::{Backend, Epilogue, Fails, Fold, Kernel, Operand, Segment};
use crate::backend::{Body, Instr, Reg};
use crate::dtype::DType;
use crate::error::Result;
use crate::fallback;
use crate::prim::{Argument, Elementwise, ReduceKind};
use crate::shape::{Aval, Shape};

/// Turns the groups into a plan for `backend`.
pub(super) fn lower(fusion: Fusion<'_>, leaves: usize, backend: &dyn Backend) -> Result<Plan> {
    let groups = fusion.groups.iter().enumerate();
    let drafts: Vec<Draft> =
        groups.filter_map(|(at, group)| Some(Draft::of(&fusion, at, group.as_ref()?))).collect();
    let segments: Vec<&Segment> = drafts.iter().map(|draft| &draft.segment).collect();
    let prepared = fallback::prepare(&segments, backend)?;
    let step = |(draft, executable): (Draft, _)| Step {
        executable,
        is_copy: matches!(&draft.segment.kernel, Kernel::Map(b) if b.code.is_empty()),
        aliases: draft.aliases(),
        segment: draft.segment,
        inputs: draft.inputs,
        outputs: draft.outputs,
        scalars: draft.scalars,
        frees: SmallVec::new(),
    };
    let mut steps: Vec<Step> = drafts.into_iter().zip(prepared).map(step).collect();
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
    let executables: Vec<_> = steps.iter().map(|step: &Step| step.executable.clone()).collect();
    let sequence = backend.sequence(&executables);
    let (point_of_no_return, late) = point_of_no_return(&steps);
    let makers = if late.is_empty() { Vec::new() } else { makers(&steps, slots.len()) };
    let device = backend.device();
    Ok(Plan { steps, sequence, outputs, slots, leaves, point_of_no_return, late, makers, device })
}

/// The first step that may overwrite a leaf: every step that can fail is done by then, or is that
/// step and fails before it writes. Indices that a former step looked at are known to be good. And what
/// the device tells late.
fn point_of_no_return(steps: &[Step]) -> (usize, Vec<LateCheck>) {
    let mut late = Vec::new();
    let mut checked: Vec<(&Access, &Operand, usize)> = Vec::new();
    let mut point = 0;
    for (index, step) in steps.iter().enumerate() {
        let bounds = match &step.segment.kernel {
            Kernel::Op(op) => {
                let inputs: SmallVec<[&Aval; 4]> =
                    step.segment.inputs.iter().map(|input| &input.aval).collect();
                op.index_bounds(&inputs)
            }
            Kernel::Map(_)
            | Kernel::Reduce { .. }
            | Kernel::Rows { .. }
            | Kernel::Composite(_)
            | Kernel::Custom(_) => SmallVec::new(),
        };
        let is_known = |&(input, bound): &(usize, usize)| {
            let (access, operand) = (&step.inputs[input], &step.segment.inputs[input]);
            checked.iter().any(|known| known.0 == access && known.1 == operand && known.2 <= bound)
        };
        if !bounds.is_empty() && bounds.iter().all(is_known) {
            continue;
        }
        match step.executable.fails() {
            Fails::Never => {}
            Fails::Early => point = index,
            Fails::Anywhere => point = index + 1,
            Fails::Late => {
                point = index + 1;
                let of = |&(input, bound): &(usize, usize)| LateCheck {
                    slot: step.inputs[input].slot,
                    bound,
                };
                late.extend(bounds.iter().map(of));
            }
        }
        for (input, bound) in bounds {
            checked.push((&step.inputs[input], &step.segment.inputs[input], bound));
        }
    }
    (point, late)
}

/// The step that writes to each slot; none where several write parts of it.
fn makers(steps: &[Step], slots: usize) -> Vec<Option<u32>> {
    let mut count = vec![0; slots];
    let mut makers = vec![None; slots];
    for (index, step) in steps.iter().enumerate() {
        let mut own: SmallVec<[Slot; 4]> = step.outputs.iter().map(|out| out.slot).collect();
        own.dedup();
        for slot in own {
            count[slot as usize] += 1;
            makers[slot as usize] = (count[slot as usize] == 1).then_some(index as u32);
        }
    }
    makers
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
    Fold(usize),
    Scalar(usize),
    Code(usize),
}

/// Collects what the members of a group read.
struct BodyDraft<'a> {
    views: Vec<&'a View>,
    /// The values of rows that are folded, and their dtypes.
    folds: Vec<(ReduceKind, Arg, DType)>,
    scalars: Vec<(ScalarSource, DType)>,
    code: Vec<(Elementwise, &'a Member, SmallVec<[Arg; 3]>)>,
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
            match member.work {
                Work::Copy => self.made.push((member.slot, args[0])),
                Work::Compute(op) => {
                    self.made.push((member.slot, Arg::Code(self.code.len())));
                    self.code.push((op, member, args));
                }
            }
        }
    }

    /// The register of an argument, where `lead` inputs come before the collected views.
    fn number(&self, lead: usize, arg: &Arg) -> Reg {
        let first_fold = lead + self.views.len();
        let first_scalar = first_fold + self.folds.len();
        let index = match *arg {
            Arg::Input(i) if i == RESULT => 0,
            Arg::Input(i) => lead + i,
            Arg::Fold(i) => first_fold + i,
            Arg::Scalar(i) => first_scalar + i,
            Arg::Code(i) => first_scalar + self.scalars.len() + i,
        };
        index as Reg
    }

    /// The program over the group's shape; `lead` inputs come before the collected views.
    fn body(&self, group: &Group, lead: &[DType], outputs: &[Arg]) -> Body {
        let views = self.views.iter().map(|v| v.aval.dtype);
        let folds = self.folds.iter().map(|f| f.2);
        let inputs = lead.iter().copied().chain(views).chain(folds).collect();
        let number = |arg: &Arg| self.number(lead.len(), arg);
        let code = self.code.iter().map(|(op, member, args)| {
            let args = args.iter().map(number).collect();
            Instr { op: *op, args, dtype: member.dtype }
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
            GroupKind::Rows { folds } => Self::rows(fusion, index, group, folds),
            GroupKind::Own { kernel, inputs, slots } => {
                let mut body = new_body();
                body.made.push((slots[0], Arg::Input(RESULT)));
                body.members(&group.members);
                let result = slots[0] as usize;
                let outputs: Vec<Operand> = slots
                    .iter()
                    .map(|s| Operand::contiguous(&fusion.slots[*s as usize].aval))
                    .collect();
                let Some(&(_, last, _)) = body.code.last() else {
                    let kernel = kernel.clone();
                    return Self::assemble(kernel, &body, inputs, outputs, slots.clone());
                };
                let lead = [fusion.slots[result].aval.dtype];
                let register = Arg::Code(body.code.len() - 1);
                let program = body.body(group, &lead, &[register]);
                let first_input = inputs.len();
                let mut draft =
                    Self::assemble(kernel.clone(), &body, inputs, outputs, vec![last.slot]);
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

    fn rows(fusion: &Fusion<'_>, index: usize, group: &Group, folds: &[RowFold]) -> Draft {
        let mut body = new_body();
        let mut done = 0;
        for fold in folds {
            body.members(&group.members[done..fold.after]);
            done = fold.after;
            let input = body.arg(&fold.input);
            body.made.push((fold.slot, Arg::Fold(body.folds.len())));
            let dtype = fusion.slots[fold.slot as usize].aval.dtype;
            body.folds.push((fold.kind, input, dtype));
        }
        body.members(&group.members[done..]);
        let mut operands = Vec::new();
        let mut slots = Vec::new();
        let mut registers = Vec::new();
        for &(slot, register) in &body.made {
            let info = &fusion.slots[slot as usize];
            if info.group == index && info.uses.iter().all(|u| *u == Use::Direct(index)) {
                continue;
            }
            // What has a value a row only is stored once a row.
            let is_row = info.aval.shape.size() < group.shape.size();
            operands.push(match is_row {
                false => Operand::contiguous(&sized(&info.aval, group)),
                true => once_a_row(&info.aval, group),
            });
            slots.push(slot);
            registers.push(register);
        }
        let program = body.body(group, &[], &registers);
        let folds = (body.folds.iter())
            .map(|(kind, input, _)| Fold { kind: *kind, input: body.number(0, input) })
            .collect();
        Self::assemble(Kernel::Rows { body: program, folds }, &body, &[], operands, slots)
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
    BodyDraft {
        views: Vec::new(),
        folds: Vec::new(),
        scalars: Vec::new(),
        code: Vec::new(),
        made: Vec::new(),
    }
}

/// A value for every row of a group's shape, as an operand over the shape.
fn once_a_row(aval: &Aval, group: &Group) -> Operand {
    let rows = Shape::from(&group.shape[..group.shape.rank() - 1]);
    let strides = rows.row_major().iter().copied().chain([0]).collect();
    Operand { aval: sized(aval, group), strides }
}

/// The aval of a group's output as the group walks it: a copy that feeds a reshape makes the same
/// elements in the shape that it reads.
fn sized(aval: &Aval, group: &Group) -> Aval {
    Aval { shape: group.shape.clone(), dtype: aval.dtype }
}

impl ScalarSource {
    /// The value as the element of `dtype`.
    pub(super) fn element(self, dtype: DType, parameters: &dyn Parameters) -> [u8; 8] {
        let value = match self {
            ScalarSource::Fixed(value) => value,
            ScalarSource::Node(node) => match parameters.argument(node) {
                Argument::Number(value) => value,
                other @ (Argument::None | Argument::Starts(_)) => {
                    unreachable!("node {node} is a constant, its argument is {other:?}")
                }
            },
        };
        value.to_element(dtype)
    }
}
