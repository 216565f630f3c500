//! From groups to segments: numbered registers, operands, and which buffers die when.

use std::borrow::Borrow;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::flat::Origin;
use super::fuse::{
    Form, Fusion, Group, GroupKind, Member, RowFold, ScalarSource, Slot, SlotInfo, Use, Val,
    ValKind, View, Work,
};
use super::order::order;
use super::prepared::{Prepared, prepare};
use super::rooms::note_rooms;
use super::together::{AtOnce, together};
use super::{Access, LateCheck, OutputSpec, Parameters, Plan, ScratchSpec, SlotSpec, Step};
use crate::backend::{Backend, Epilogue, Fails, Fold, Kernel, Operand, Segment};
use crate::backend::{Body, Instr, Reg};
use crate::dtype::DType;
use crate::error::Result;
use crate::prim::{Argument, Elementwise, ReduceKind};
use crate::shape::{Aval, Shape};

/// The segments of a plan, in order.
pub(super) fn segments(fusion: &Fusion<'_>) -> Vec<Segment> {
    let groups = fusion.groups.iter().enumerate();
    groups
        .filter_map(|(index, group)| Some(Draft::of(fusion, index, group.as_ref()?).segment))
        .collect()
}

/// What is lowered: a plan, and the number of the group that each of its steps is, in the order of the groups.
pub(super) struct Lowered {
    pub plan: Plan,
    pub order: Vec<usize>,
}

/// A step before it is made ready.
pub(super) struct Drafted {
    pub segment: Segment,
    pub operands: Operands,
}

/// Where the operands of a step lie.
pub(super) struct Operands {
    pub inputs: Vec<Access>,
    pub outputs: Vec<Access>,
    scalars: Vec<(ScalarSource, DType)>,
    aliases: SmallVec<[(u16, u16); 2]>,
}

impl Operands {
    /// The step, which frees nothing yet.
    pub fn step(self, prepared: Arc<Prepared>, origin: Option<Origin>) -> Step {
        let Operands { inputs, outputs, scalars, aliases } = self;
        Step { prepared, inputs, outputs, scalars, aliases, frees: SmallVec::new(), origin }
    }
}

impl Drafted {
    /// What group number `index` does.
    pub fn of<'a>(fusion: &Fusion<'a>, index: usize, group: &Group<'a>) -> Drafted {
        let draft = Draft::of(fusion, index, group);
        let aliases = draft.aliases(fusion);
        let Draft { segment, inputs, outputs, scalars } = draft;
        Drafted { segment, operands: Operands { inputs, outputs, scalars, aliases } }
    }
}

/// Turns the groups into a plan for `backend`.
pub(super) fn lower(fusion: &Fusion<'_>, leaves: usize, backend: &dyn Backend) -> Result<Lowered> {
    let (mut segments, mut rest, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    let mut step_of: Vec<Option<usize>> = vec![None; fusion.groups.len()];
    for (index, group) in fusion.groups.iter().enumerate() {
        if let Some(group) = group {
            let Drafted { segment, operands } = Drafted::of(fusion, index, group);
            step_of[index] = Some(segments.len());
            waits.push(step_of[group.after]);
            segments.push(segment);
            let maker = main_slot(&group.kind)
                .into_iter()
                .chain(operands.outputs.iter().map(|out| out.slot))
                .find_map(|slot| fusion.slots[slot as usize].maker);
            let origin = maker.map(|node| fusion.graph.nodes[node as usize].origin.clone());
            rest.push((operands, origin));
        }
    }
    let steps = prepare(segments, backend)?.into_iter().zip(rest);
    let steps: Vec<Step> =
        steps.map(|(prepared, (operands, origin))| operands.step(prepared, origin)).collect();
    let outputs: Vec<OutputSpec> = fusion.outputs.iter().map(|view| output(view)).collect();
    let slot = |info: &SlotInfo<'_>| SlotSpec::new(bytes(info));
    let mut slots: Vec<SlotSpec> = fusion.slots.iter().map(slot).collect();
    for output in &outputs {
        slots[output.access.slot as usize].is_output = true;
    }
    let order = order(&steps, &waits, &risks(&steps).0, &slots, leaves);
    let (order, at_once) = together(&steps, order, &waits, &slots, leaves);
    let mut unordered: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    let mut steps: Vec<Step> = order.iter().filter_map(|&at| unordered[at].take()).collect();
    note_frees(&mut steps, &outputs, slots.len());
    let steps = steps.into_iter().map(Arc::new).collect();
    Ok(Lowered { plan: finish((steps, at_once), outputs, slots, leaves, backend), order })
}

/// How an output is read.
pub(super) fn output(view: &View<'_>) -> OutputSpec {
    OutputSpec { access: access(view), strides: view.strides.clone() }
}

/// The bytes of what is in a slot.
pub(super) fn bytes(info: &SlotInfo<'_>) -> usize {
    info.form.shape.size().saturating_mul(info.form.dtype.size())
}

/// The plan of steps in their order, of which some may run at once.
pub(super) fn finish(
    (steps, at_once): (Vec<Arc<Step>>, AtOnce),
    outputs: Vec<OutputSpec>,
    mut slots: Vec<SlotSpec>,
    leaves: usize,
    backend: &dyn Backend,
) -> Plan {
    let executables: Vec<_> = steps.iter().map(|step| step.prepared.executable.clone()).collect();
    let wanted = executables.iter().map(|executable| executable.scratch()).enumerate();
    let mut scratch: Vec<ScratchSpec> = wanted
        .filter(|&(_, bytes)| bytes > 0)
        .map(|(step, bytes)| ScratchSpec { step, memory: SlotSpec::new(bytes) })
        .collect();
    let rooms = note_rooms((&steps, &at_once), &mut slots, &mut scratch, leaves);
    let sequence = backend.sequence(&executables, &at_once);
    let (risks, late) = risks(&steps);
    // The first step that may overwrite a leaf: what can fail is done by then, or fails before it
    // writes.
    let point_of_no_return = risks.last().map_or(0, |&last| {
        let is_early = steps[last].prepared.executable.fails() == Fails::Early;
        if is_early { last } else { last + 1 }
    });
    let own = most(executables.iter().map(|executable| executable.own()).collect());
    let are_wanted = !late.is_empty() || gives_integers(&steps, &outputs);
    let makers = if are_wanted { makers(&steps, slots.len()) } else { Vec::new() };
    Plan {
        runs: AtomicU64::new(0),
        steps,
        at_once,
        sequence,
        outputs,
        slots,
        rooms,
        scratch,
        leaves,
        point_of_no_return,
        own,
        late,
        makers,
        device: backend.device(),
        explained: OnceLock::new(),
        shares: Default::default(),
        told: Default::default(),
        structure: 0,
        template: None,
        from: None,
        held: OnceLock::new(),
    }
}

/// The slot of what a group is about, where that is not what it writes last.
fn main_slot(kind: &GroupKind<'_>) -> Option<Slot> {
    match kind {
        GroupKind::Own { slots, .. } => slots.first().copied(),
        GroupKind::Reduce { slot, .. } => Some(*slot),
        GroupKind::Map | GroupKind::Rows { .. } => None,
    }
}

/// Those of lists of pieces that do not fit into the pieces of another.
fn most(mut lists: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    for pieces in &mut lists {
        pieces.retain(|&bytes| bytes > 0);
        pieces.sort_unstable_by(|a, b| b.cmp(a));
    }
    let fits = |pieces: &[usize], into: &[usize]| {
        pieces.len() <= into.len() && pieces.iter().zip(into).all(|(own, room)| own <= room)
    };
    let mut kept: Vec<Vec<usize>> = Vec::new();
    for pieces in lists.into_iter().filter(|pieces| !pieces.is_empty()) {
        if !kept.iter().any(|other| fits(&pieces, other)) {
            kept.retain(|other| !fits(other, &pieces));
            kept.push(pieces);
        }
    }
    kept
}

/// The steps that can fail, and what the device tells late. Indices that a former step looked at are
/// known to be good.
fn risks<S: Borrow<Step>>(steps: &[S]) -> (Vec<usize>, Vec<LateCheck>) {
    let mut late = Vec::new();
    let mut checked: Vec<(&Access, &Operand, usize)> = Vec::new();
    let mut risks = Vec::new();
    for (index, step) in steps.iter().map(Borrow::borrow).enumerate() {
        let segment = &step.prepared.segment;
        let bounds = match &segment.kernel {
            Kernel::Op(op) => {
                let inputs: SmallVec<[&Aval; 4]> =
                    segment.inputs.iter().map(|input| &input.aval).collect();
                op.index_bounds(&inputs)
            }
            Kernel::Map(_)
            | Kernel::Reduce { .. }
            | Kernel::Rows { .. }
            | Kernel::Composite(_)
            | Kernel::Control(_)
            | Kernel::Custom(_) => SmallVec::new(),
        };
        let is_known = |&(input, bound): &(usize, usize)| {
            let (access, operand) = (&step.inputs[input], &segment.inputs[input]);
            checked.iter().any(|known| known.0 == access && known.1 == operand && known.2 <= bound)
        };
        if !bounds.is_empty() && bounds.iter().all(is_known) {
            continue;
        }
        let fails = step.prepared.executable.fails();
        if fails != Fails::Never {
            risks.push(index);
        }
        if fails == Fails::Late {
            let of = |&(input, bound): &(usize, usize)| LateCheck::Indices {
                slot: step.inputs[input].slot,
                bound,
            };
            late.extend(bounds.iter().map(of));
        }
        let is_own = fails == Fails::Late && bounds.is_empty();
        let control = step.prepared.control.as_ref();
        if is_own || control.is_some_and(|control| control.tells_late()) {
            late.push(LateCheck::Inside);
        }
        for (input, bound) in bounds {
            checked.push((&step.inputs[input], &segment.inputs[input], bound));
        }
    }
    (risks, late)
}

/// Whether an output is of integers that a step makes: they may be indices of another plan.
fn gives_integers(steps: &[Arc<Step>], outputs: &[OutputSpec]) -> bool {
    let is_output = |slot| outputs.iter().any(|output| output.access.slot == slot);
    steps.iter().any(|step| {
        let mut made = step.outputs.iter().zip(&step.prepared.segment.outputs);
        made.any(|(out, operand)| operand.aval.dtype.is_integer() && is_output(out.slot))
    })
}

/// The step that writes to each slot; none where several write parts of it.
fn makers(steps: &[Arc<Step>], slots: usize) -> Vec<Option<u32>> {
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

fn access(view: &View<'_>) -> Access {
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
struct BodyDraft<'g, 'a> {
    views: SmallVec<[&'g View<'a>; 8]>,
    /// The values of rows that are folded, and their dtypes.
    folds: Vec<(ReduceKind, Arg, DType)>,
    scalars: SmallVec<[(ScalarSource, DType); 4]>,
    code: Vec<(Elementwise, &'g Member<'a>, SmallVec<[Arg; 3]>)>,
    /// The slots that instructions make.
    made: SmallVec<[(Slot, Arg); 8]>,
}

impl<'g, 'a> BodyDraft<'g, 'a> {
    fn new(members: usize) -> Self {
        BodyDraft {
            views: SmallVec::new(),
            folds: Vec::new(),
            scalars: SmallVec::new(),
            code: Vec::with_capacity(members),
            made: SmallVec::new(),
        }
    }

    fn arg(&mut self, val: &'g Val<'a>) -> Arg {
        match &val.kind {
            ValKind::Constant(source, form) => {
                let entry = (*source, form.dtype);
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
                let known = self.views.iter().position(|v| *v == &**view);
                Arg::Input(known.unwrap_or_else(|| {
                    self.views.push(view);
                    self.views.len() - 1
                }))
            }
        }
    }

    fn members(&mut self, members: &'g [Member<'a>]) {
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
    fn body(&self, group: &Group<'a>, lead: &[DType], outputs: &[Arg]) -> Body {
        let views = self.views.iter().map(|v| v.form.dtype);
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
}

/// Stands for the result of the op that an epilogue continues.
const RESULT: usize = usize::MAX;

fn operand(view: &View<'_>) -> Operand {
    Operand { aval: view.form.aval(), strides: view.strides.clone() }
}

impl Draft {
    fn of<'a>(fusion: &Fusion<'a>, index: usize, group: &Group<'a>) -> Draft {
        match &group.kind {
            GroupKind::Map => Self::map(fusion, index, group),
            GroupKind::Reduce { op, input, slot, beside } => {
                let mut body = BodyDraft::new(group.members.len());
                body.members(&group.members);
                let inputs = std::iter::once(input).chain(beside.iter().map(|(input, _)| input));
                let results: SmallVec<[Arg; 4]> = inputs.map(|input| body.arg(input)).collect();
                let kernel = Kernel::Reduce {
                    body: body.body(group, &[], &results),
                    kind: op.kind,
                    axes: op.axes.clone(),
                };
                let slots: SmallVec<[Slot; 4]> =
                    std::iter::once(*slot).chain(beside.iter().map(|&(_, slot)| slot)).collect();
                let out = slots.iter().map(|&s| contiguous(fusion.slots[s as usize].form));
                Self::assemble(kernel, &body, &[], out.collect(), &slots)
            }
            GroupKind::Rows { folds } => Self::rows(fusion, index, group, folds),
            GroupKind::Own { kernel, inputs, slots } => {
                let mut body = BodyDraft::new(group.members.len());
                body.made.push((slots[0], Arg::Input(RESULT)));
                body.members(&group.members);
                let result = slots[0] as usize;
                let outputs: Vec<Operand> =
                    slots.iter().map(|s| contiguous(fusion.slots[*s as usize].form)).collect();
                let Some(&(_, last, _)) = body.code.last() else {
                    let kernel = kernel.clone();
                    return Self::assemble(kernel, &body, inputs, outputs, slots);
                };
                let lead = [fusion.slots[result].form.dtype];
                let register = Arg::Code(body.code.len() - 1);
                let program = body.body(group, &lead, &[register]);
                let first_input = inputs.len();
                let mut draft =
                    Self::assemble(kernel.clone(), &body, inputs, outputs, &[last.slot]);
                draft.segment.epilogue = Some(Epilogue { body: program, first_input });
                draft
            }
        }
    }

    fn map<'a>(fusion: &Fusion<'a>, index: usize, group: &Group<'a>) -> Draft {
        let mut body = BodyDraft::new(group.members.len());
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
                    operands.push(contiguous(sized(info.form.dtype, group)));
                    outputs.push(Access { slot: member.slot, offset: Default::default() });
                }
            }
        }
        let kernel = Kernel::Map(body.body(group, &[], &registers));
        let mut draft = Self::assemble(kernel, &body, &[], operands, &[]);
        draft.outputs = outputs;
        draft
    }

    fn rows<'a>(
        fusion: &Fusion<'a>,
        index: usize,
        group: &Group<'a>,
        folds: &[RowFold<'a>],
    ) -> Draft {
        let mut body = BodyDraft::new(group.members.len());
        let mut done = 0;
        for fold in folds {
            body.members(&group.members[done..fold.after]);
            done = fold.after;
            let input = body.arg(&fold.input);
            body.made.push((fold.slot, Arg::Fold(body.folds.len())));
            let dtype = fusion.slots[fold.slot as usize].form.dtype;
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
            let is_row = info.form.shape.size() < group.shape.size();
            let form = sized(info.form.dtype, group);
            operands.push(if is_row { once_a_row(form) } else { contiguous(form) });
            slots.push(slot);
            registers.push(register);
        }
        let program = body.body(group, &[], &registers);
        let folds = (body.folds.iter())
            .map(|(kind, input, _)| Fold { kind: *kind, input: body.number(0, input) })
            .collect();
        Self::assemble(Kernel::Rows { body: program, folds }, &body, &[], operands, &slots)
    }

    fn assemble(
        kernel: Kernel,
        body: &BodyDraft<'_, '_>,
        op_inputs: &[Rc<View<'_>>],
        outputs: Vec<Operand>,
        slots: &[Slot],
    ) -> Draft {
        let views = || op_inputs.iter().map(|view| &**view).chain(body.views.iter().copied());
        let whole = |&slot: &Slot| Access { slot, offset: Default::default() };
        Draft {
            segment: Segment {
                kernel,
                inputs: views().map(operand).collect(),
                outputs,
                scalars: body.scalars.iter().map(|s| s.1).collect(),
                epilogue: None,
            },
            inputs: views().map(access).collect(),
            outputs: slots.iter().map(whole).collect(),
            scalars: body.scalars.to_vec(),
        }
    }

    /// Which outputs may take the memory of which inputs, if those die here; of several that an output may take, the
    /// first that does.
    ///
    /// What the plan gives takes the memory of a leaf before that of what the plan made: new weights that of the old
    /// ones, and the gradients of all weights lie where there is room for a while.
    fn aliases(&self, fusion: &Fusion<'_>) -> SmallVec<[(u16, u16); 2]> {
        let info = |access: &Access| &fusion.slots[access.slot as usize];
        let is_leaf = |input: usize| info(&self.inputs[input]).group == 0;
        let is_given = |output: usize| info(&self.outputs[output]).uses.contains(&Use::Output);
        let mut pairs: SmallVec<[(u16, u16); 2]> = SmallVec::new();
        let mut pair = |output: usize, may: &dyn Fn(usize) -> bool| {
            let fits = |input: &usize| {
                let slot = self.inputs[*input].slot;
                let alone = self.inputs.iter().filter(|a| a.slot == slot).count() == 1;
                // Both start at the same element only where no slice or part says otherwise.
                let fresh = self.outputs[output].offset == Default::default()
                    && self.inputs[*input].offset == Default::default();
                let free = pairs.iter().all(|p| usize::from(p.1) != *input);
                alone && free && fresh && may(*input) && self.segment.may_alias(output, *input)
            };
            if let Some(input) = (0..self.inputs.len()).find(fits) {
                pairs.push((output as u16, input as u16));
            }
        };
        let (given, inner): (SmallVec<[usize; 8]>, SmallVec<[usize; 8]>) =
            (0..self.outputs.len()).partition(|&output| is_given(output));
        given.iter().for_each(|&output| pair(output, &is_leaf));
        given.iter().for_each(|&output| pair(output, &|input| !is_leaf(input)));
        inner.iter().for_each(|&output| pair(output, &|_| true));
        pairs
    }
}

/// An operand without gaps.
fn contiguous(form: Form<'_>) -> Operand {
    Operand { aval: form.aval(), strides: form.shape.row_major() }
}

/// A value for every row of a group's shape, as an operand over the shape.
fn once_a_row(form: Form<'_>) -> Operand {
    let rows = Shape::from(&form.shape[..form.shape.rank() - 1]);
    let strides = rows.row_major().iter().copied().chain([0]).collect();
    Operand { aval: form.aval(), strides }
}

/// The form of a group's output as the group walks it: a copy that feeds a reshape makes the same
/// elements in the shape that it reads.
fn sized<'a>(dtype: DType, group: &Group<'a>) -> Form<'a> {
    Form { shape: group.shape, dtype }
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
