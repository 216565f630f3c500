//! Grouping: which nodes of the flat graph run together, and in what order.
//!
//! Groups run in the order in which they stand. An elementwise node joins the group that makes its
//! latest input when everything else it needs comes from earlier groups; then groups whose results
//! only the next one reads are drawn into it, and those that walk the same rows become one
//! (`rows.rs`). Movement is no work: it changes how a slot is read (`movement.rs`).

use std::rc::Rc;
use std::sync::LazyLock;

use smallvec::SmallVec;

use super::axes::{Shapes, turn};
use super::continued::takes_epilogue;
use super::flat::{Flat, FlatGraph};
use crate::backend::{Kernel, Limits};
use crate::dtype::{DType, Scalar};
use crate::graph::Ref;
use crate::prim::{Cast, Elementwise, KernelOp, Op, Reduce, ReduceKind};
use crate::shape::{Aval, Shape, is_row_major};

/// Memory that one leaf or one group output lives in.
pub(super) type Slot = u32;

/// Where a view starts, in elements: a fixed part, and slice starts that are known at each run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Offset {
    pub fixed: isize,
    /// Slice nodes of the evaluated graph, and the strides that their starts are counted in.
    pub starts: Vec<(u32, SmallVec<[isize; 4]>)>,
}

/// Shape and dtype, as a node of the flat graph has them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Form<'a> {
    pub shape: &'a Shape,
    pub dtype: DType,
}

impl<'a> From<&'a Aval> for Form<'a> {
    fn from(aval: &'a Aval) -> Self {
        Form { shape: &aval.shape, dtype: aval.dtype }
    }
}

impl Form<'_> {
    pub fn aval(self) -> Aval {
        Aval { shape: self.shape.clone(), dtype: self.dtype }
    }
}

/// A way to read or write a slot.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct View<'a> {
    pub slot: Slot,
    pub form: Form<'a>,
    pub strides: SmallVec<[isize; 4]>,
    pub offset: Offset,
}

/// Where a scalar's value comes from at a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ScalarSource {
    /// The constant at this node of the evaluated graph.
    Node(u32),
    /// A constant of a call's body.
    Fixed(Scalar),
}

/// What a node's output is to its consumers.
#[derive(Clone, Debug)]
pub(super) struct Val<'a> {
    pub kind: ValKind<'a>,
    /// The group after which it may be read; 0 for what is there from the start.
    pub after: usize,
}

#[derive(Clone, Debug)]
pub(super) enum ValKind<'a> {
    Constant(ScalarSource, Form<'a>),
    Array(Rc<View<'a>>),
}

impl<'a> Val<'a> {
    pub fn array(view: View<'a>, after: usize) -> Self {
        Val { kind: ValKind::Array(Rc::new(view)), after }
    }

    /// How memory is read, where it is no constant.
    pub fn view(&self) -> Option<&Rc<View<'a>>> {
        match &self.kind {
            ValKind::Array(view) => Some(view),
            ValKind::Constant(..) => None,
        }
    }
}

/// One elementwise instruction of a group, or a copy.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub work: Work,
    pub args: SmallVec<[Val<'a>; 3]>,
    pub slot: Slot,
    pub dtype: DType,
}

/// What a member does with its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// Its result is its one argument, elsewhere.
    Copy,
    Compute(Elementwise),
}

#[derive(Debug)]
pub(super) enum GroupKind<'a> {
    /// Elementwise members only.
    Map,
    /// The members feed a reduction of `input` into `slot`, and like ones `beside` it (`beside.rs`).
    Reduce { op: &'a Reduce, input: Val<'a>, slot: Slot, beside: Vec<(Val<'a>, Slot)> },
    /// Groups that walk the rows of one shape, whose members have values a row or an element.
    Rows { folds: Vec<RowFold<'a>> },
    /// A kernel of its own; the members follow it, in place in its output.
    Own { kernel: Kernel, inputs: Vec<Rc<View<'a>>>, slots: Vec<Slot> },
}

/// A value of each row, folded from those of its elements.
#[derive(Debug)]
pub(super) struct RowFold<'a> {
    /// How many members come before it.
    pub after: usize,
    pub kind: ReduceKind,
    pub input: Val<'a>,
    pub slot: Slot,
}

#[derive(Debug)]
pub(super) struct Group<'a> {
    pub kind: GroupKind<'a>,
    /// What the members run over.
    pub shape: &'a Shape,
    pub members: Vec<Member<'a>>,
    /// The last group that has to run before, whoever it is that reads it.
    pub after: usize,
    /// The last member writes here instead of to memory of its own; nothing may join.
    pub dest: Option<View<'a>>,
}

/// Who reads a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Use {
    /// A member of a group, element by element at the same place.
    Direct(usize),
    /// A group, in any other way.
    Indirect(usize),
    /// Whoever asked for the evaluation.
    Output,
}

pub(super) struct SlotInfo<'a> {
    pub form: Form<'a>,
    /// The group that makes it; 0 for leaves.
    pub group: usize,
    pub uses: SmallVec<[Use; 4]>,
    /// The node whose values alone lie in it, where there is one.
    node: Alone,
    /// The first node that has values in it.
    pub maker: Option<u32>,
}

/// How many nodes have values in a slot.
#[derive(Clone, Copy, PartialEq)]
enum Alone {
    None,
    One(u32),
    Several,
}

/// What the outputs of a plan lie in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outputs<'r> {
    /// Whatever they are there in: leaves, parts of each other.
    Any,
    /// Each in memory of its own, in row-major order.
    Own,
    /// Whatever they are there in, of a part of a larger graph.
    Within(Surroundings<'r>),
}

/// What a part of a larger graph has to do with the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Surroundings<'r> {
    /// The outputs that somebody outside of the larger graph asked for.
    pub asked: &'r [Ref],
    /// For each input, the shape of the memory that it lies in, where the rest makes it: it is a leaf otherwise.
    pub made: &'r [Option<Shape>],
}

/// In a part of a larger graph, the group that stands for what the rest makes.
const REST: usize = 1;

/// The groups, numbered from 1; group 0 stands for what is there before the plan runs.
pub(super) struct Fusion<'a> {
    pub graph: &'a FlatGraph<'a>,
    pub limits: &'a Limits,
    pub groups: Vec<Option<Group<'a>>>,
    pub slots: Vec<SlotInfo<'a>>,
    pub outputs: Vec<Rc<View<'a>>>,
    /// Where the next shape is kept that no node has.
    pub shapes: &'a Shapes,
    /// What each node gives.
    pub vals: Vec<SmallVec<[Val<'a>; 1]>>,
    /// How many nodes, and outputs, read each node.
    readers: Vec<u32>,
}

impl<'a> Fusion<'a> {
    /// Groups `graph`, whose leaves lie in memory as `leaves` say, in input order.
    pub fn new(
        graph: &'a FlatGraph<'a>,
        leaves: &[SmallVec<[isize; 4]>],
        limits: &'a Limits,
        outputs: Outputs<'a>,
    ) -> Fusion<'a> {
        let count = graph.nodes.len();
        let mut fusion = Fusion {
            graph,
            limits,
            groups: Vec::with_capacity(count + 1),
            slots: Vec::with_capacity(count),
            outputs: Vec::with_capacity(graph.outputs.len()),
            shapes: &graph.shapes,
            vals: Vec::with_capacity(count),
            readers: readers(graph),
        };
        fusion.groups.push(None);
        let mut is_result = vec![false; count];
        let (asked, made) = match outputs {
            Outputs::Any | Outputs::Own => (&graph.outputs[..], None),
            Outputs::Within(Surroundings { asked, made }) => {
                fusion.groups.push(None);
                (asked, Some(made))
            }
        };
        asked.iter().for_each(|r| is_result[r.node as usize] = true);
        let made = made.unwrap_or_default().iter().map(Option::as_ref);
        let mut leaves = leaves.iter().zip(made.chain(std::iter::repeat(None)));
        for (index, node) in graph.nodes.iter().enumerate() {
            let vals = fusion.place(node, is_result[index], &mut leaves);
            for view in vals.iter().filter_map(Val::view) {
                let info = &mut fusion.slots[view.slot as usize];
                info.maker.get_or_insert(index as u32);
                info.node = match info.node {
                    Alone::None => Alone::One(index as u32),
                    // What only moves it, and reads it alone, stands for it.
                    Alone::One(node) if fusion.readers[node as usize] == 1 => {
                        Alone::One(index as u32)
                    }
                    Alone::One(_) | Alone::Several => Alone::Several,
                };
            }
            fusion.vals.push(vals);
        }
        for r in &graph.outputs {
            let val = fusion.val(*r);
            let (mut view, after) = fusion.materialize(val);
            if outputs == Outputs::Own && !fusion.is_own(&view) {
                let form = view.form;
                let copied = fusion.copy(Val { kind: ValKind::Array(view), after }, form);
                view = fusion.materialize(copied).0;
            }
            fusion.slots[view.slot as usize].uses.push(Use::Output);
            fusion.outputs.push(view);
        }
        fusion.join_kernels();
        for group in (1..fusion.groups.len()).rev() {
            while fusion.absorb_one(group) {}
        }
        fusion.join_rows();
        fusion.spread();
        fusion.repeat();
        fusion.sink();
        // Groups that are one now may be all that reads a result.
        fusion.join_kernels();
        fusion.join_reductions();
        fusion.split();
        fusion
    }

    fn val(&self, r: Ref) -> Val<'a> {
        self.vals[r.node as usize][r.output as usize].clone()
    }

    pub fn slot(&mut self, form: Form<'a>, group: usize) -> Slot {
        self.slots.push(SlotInfo {
            form,
            group,
            uses: SmallVec::new(),
            node: Alone::None,
            maker: None,
        });
        self.slots.len() as Slot - 1
    }

    fn push_group(&mut self, kind: GroupKind<'a>, shape: &'a Shape, after: usize) -> usize {
        self.groups.push(Some(Group { kind, shape, members: Vec::new(), after, dest: None }));
        self.groups.len() - 1
    }

    fn place<'l>(
        &mut self,
        node: &Flat<'a>,
        is_result: bool,
        leaves: &mut impl Iterator<Item = (&'l SmallVec<[isize; 4]>, Option<&'a Shape>)>,
    ) -> SmallVec<[Val<'a>; 1]> {
        let inputs: SmallVec<[Val<'a>; 3]> = node.inputs.iter().map(|r| self.val(*r)).collect();
        let form = Form::from(&node.avals[0]);
        let val = match node.op {
            Op::Input(_) => {
                let (strides, made) = match leaves.next() {
                    Some((strides, made)) => (strides.clone(), made),
                    None => (form.shape.row_major(), None),
                };
                let group = if made.is_some() { REST } else { 0 };
                let memory = Form { shape: made.unwrap_or(form.shape), dtype: form.dtype };
                let slot = self.slot(memory, group);
                Val::array(View { slot, form, strides, offset: Offset::default() }, group)
            }
            Op::Constant(c) => {
                let source = node.source.map_or(ScalarSource::Fixed(c.value), ScalarSource::Node);
                Val { kind: ValKind::Constant(source, form), after: 0 }
            }
            // Who asked for it gets it row-major: else the next run would find other strides.
            Op::Elementwise(op) if is_result => self.elementwise_as_is(*op, inputs, form),
            Op::Elementwise(op) => self.elementwise(*op, inputs, form),
            // An identity to whoever runs it; only the order that it asks for is kept.
            Op::Mark(_) => {
                let after = inputs.iter().map(|v| v.after).max().unwrap_or(0);
                Val { after, ..inputs[0].clone() }
            }
            Op::Movement(movement) => self.movement(movement, node, &inputs, is_result),
            Op::Reduce(op) => {
                let shape = &self.graph.aval(node.inputs[0]).shape;
                let group = self.push_group(GroupKind::Map, shape, inputs[0].after);
                let slot = self.slot(form, group);
                self.note_use(&inputs[0], group, true);
                let kind =
                    GroupKind::Reduce { op, input: inputs[0].clone(), slot, beside: Vec::new() };
                if let Some(g) = &mut self.groups[group] {
                    g.kind = kind;
                }
                self.array(slot, group)
            }
            Op::Kernel(op) => return self.kernel(op, inputs, node.avals),
            Op::Composite(op) => {
                return self.own(Kernel::Composite(op.clone()), inputs, node.avals);
            }
            Op::Call(_) => unreachable!("flattening puts bodies in the place of calls"),
            Op::Control(op) => {
                let inputs = self.in_rows(inputs, op.carries());
                return self.own(Kernel::Control(op.clone()), inputs, node.avals);
            }
            Op::Custom(op) => return self.own(Kernel::Custom(op.clone()), inputs, node.avals),
        };
        SmallVec::from_buf([val])
    }

    /// The group of a primitive's kernel. What only picks elements picks them before a cast: of the whole
    /// that is cast nothing else may be needed in memory.
    fn kernel(
        &mut self,
        op: &KernelOp,
        mut inputs: SmallVec<[Val<'a>; 3]>,
        outputs: &'a [Aval],
    ) -> SmallVec<[Val<'a>; 1]> {
        let picks = matches!(op, KernelOp::Gather(_) | KernelOp::GatherAxis(_));
        let picked = outputs[0].shape.size();
        let first = inputs.first().and_then(Val::view).filter(|_| picks);
        let uncast = first.and_then(|view| self.before_cast(view));
        let Some((uncast, after)) = uncast.filter(|(view, _)| view.form.shape.size() > picked)
        else {
            return self.own(Kernel::Op(op.clone()), inputs, outputs);
        };
        let dtype = uncast.form.dtype;
        inputs[0] = Val::array(uncast, after);
        let vals = self.own(Kernel::Op(op.clone()), inputs, outputs);
        let Some(view) = vals[0].view() else { return vals };
        let (slot, group) = (view.slot, vals[0].after);
        self.slots[slot as usize].form.dtype = dtype;
        let args = SmallVec::from_iter([self.array(slot, group)]);
        let cast = Elementwise::Cast(Cast { to: outputs[0].dtype });
        SmallVec::from_buf([self.elementwise(cast, args, Form::from(&outputs[0]))])
    }

    /// The same elements of what was cast to what `view` reads, if that is so, and the group that they come after.
    fn before_cast(&self, view: &View<'a>) -> Option<(View<'a>, usize)> {
        let info = &self.slots[view.slot as usize];
        let members = &self.groups.get(info.group)?.as_ref()?.members;
        let member = members.iter().rfind(|member| member.slot == view.slot)?;
        let Work::Compute(Elementwise::Cast(_)) = member.work else { return None };
        let [arg] = &member.args[..] else { return None };
        let from = arg.view()?;
        let whole = from.form.shape == info.form.shape
            && from.offset == Offset::default()
            && is_row_major(info.form.shape, &from.strides);
        whole.then(|| {
            let form = Form { shape: view.form.shape, dtype: from.form.dtype };
            let (strides, offset) = (view.strides.clone(), view.offset.clone());
            (View { slot: from.slot, form, strides, offset }, arg.after)
        })
    }

    /// `inputs`, of which the first `count` lie in row-major order.
    fn in_rows(
        &mut self,
        mut inputs: SmallVec<[Val<'a>; 3]>,
        count: usize,
    ) -> SmallVec<[Val<'a>; 3]> {
        for input in &mut inputs[..count] {
            let (view, after) = self.materialize(input.clone());
            let form = view.form;
            let is_there = is_row_major(form.shape, &view.strides);
            let val = Val { kind: ValKind::Array(view), after };
            *input = if is_there { val } else { self.copy(val, form) };
        }
        inputs
    }

    /// What a view is of the outputs so far: all of memory that no other has.
    fn is_own(&self, view: &View<'a>) -> bool {
        let info = &self.slots[view.slot as usize];
        info.group != 0
            && view.form.dtype == info.form.dtype
            && view.form.shape.size() == info.form.shape.size()
            && view.offset == Offset::default()
            && is_row_major(view.form.shape, &view.strides)
            && self.outputs.iter().all(|output| output.slot != view.slot)
    }

    /// A group that is a kernel of its own.
    fn own(
        &mut self,
        kernel: Kernel,
        inputs: SmallVec<[Val<'a>; 3]>,
        outputs: &'a [Aval],
    ) -> SmallVec<[Val<'a>; 1]> {
        let mut after = 0;
        let mut memory = |val: Val<'a>| {
            let (view, made) = self.repeated(val);
            after = after.max(made);
            view
        };
        let inputs: Vec<Rc<View<'a>>> = inputs.into_iter().map(&mut memory).collect();
        let group = self.push_group(GroupKind::Map, &outputs[0].shape, after);
        for view in &inputs {
            self.slots[view.slot as usize].uses.push(Use::Indirect(group));
        }
        let slots: Vec<Slot> = outputs.iter().map(|aval| self.slot(aval.into(), group)).collect();
        let vals = slots.iter().map(|&slot| self.array(slot, group)).collect();
        if let Some(g) = &mut self.groups[group] {
            g.kind = GroupKind::Own { kernel, inputs, slots };
        }
        vals
    }

    /// A slot that a group makes, read as it lies.
    pub fn array(&self, slot: Slot, group: usize) -> Val<'a> {
        let form = self.slots[slot as usize].form;
        let strides = form.shape.row_major();
        Val::array(View { slot, form, strides, offset: Offset::default() }, group)
    }

    /// Whether `view` is what group `group` makes, at the same place of `shape`.
    fn is_direct(&self, view: &View<'a>, group: usize, shape: &Shape) -> bool {
        let slot = &self.slots[view.slot as usize];
        slot.group == group
            && view.form.shape == shape
            && slot.form.shape == shape
            && view.offset == Offset::default()
            && is_row_major(shape, &view.strides)
    }

    fn note_use(&mut self, val: &Val<'a>, group: usize, same_place: bool) {
        let Some(view) = val.view() else { return };
        let maker = self.slots[view.slot as usize].group;
        let direct = same_place && self.is_direct(view, maker, view.form.shape);
        let entry = if direct { Use::Direct(group) } else { Use::Indirect(group) };
        self.slots[view.slot as usize].uses.push(entry);
    }

    /// An elementwise node. Where what it reads is there in another order of axes, it runs in that order, so that
    /// it can continue who made it; what comes after sees the same axes as ever.
    fn elementwise(
        &mut self,
        op: Elementwise,
        args: SmallVec<[Val<'a>; 3]>,
        form: Form<'a>,
    ) -> Val<'a> {
        let Some((places, shape)) = self.order(&args, form) else {
            return self.elementwise_as_is(op, args, form);
        };
        let args = args.into_iter().map(|val| turn(val, &places, shape)).collect();
        let made = self.elementwise_as_is(op, args, Form { shape, dtype: form.dtype });
        let Some(view) = made.view() else { return made };
        Val::array(self.read_turned(view.slot, form, &places), made.after)
    }

    fn elementwise_as_is(
        &mut self,
        op: Elementwise,
        args: SmallVec<[Val<'a>; 3]>,
        form: Form<'a>,
    ) -> Val<'a> {
        let last = args.iter().map(|v| v.after).max().unwrap_or(0);
        let group = match self.can_join(last, &args, form) {
            true => last,
            false => self.push_group(GroupKind::Map, form.shape, last),
        };
        let slot = self.slot(form, group);
        for arg in &args {
            self.note_use(arg, group, true);
        }
        if let Some(g) = &mut self.groups[group] {
            g.members.push(Member { work: Work::Compute(op), args, slot, dtype: form.dtype });
        }
        self.array(slot, group)
    }

    /// Whether an elementwise node with these arguments can run in group `last`, the latest one
    /// that it depends on.
    fn can_join(&self, last: usize, args: &[Val<'a>], form: Form<'a>) -> bool {
        let Some(group) = &self.groups[last] else { return false };
        if group.dest.is_some() || group.shape != form.shape {
            return false;
        }
        let mut from_group = args.iter().filter(|v| v.after == last).filter_map(Val::view);
        if !from_group.all(|view| self.is_direct(view, last, group.shape)) {
            return false;
        }
        match &group.kind {
            GroupKind::Map => self.fits(group, args),
            GroupKind::Reduce { .. } | GroupKind::Rows { .. } => false,
            GroupKind::Own { kernel, slots, .. } => {
                if !takes_epilogue(kernel) || slots.len() != 1 {
                    return false;
                }
                let result = group.members.last().map_or(slots[0], |m| m.slot);
                let views = || args.iter().filter_map(Val::view);
                let mut of_group = views().filter(|v| self.slots[v.slot as usize].group == last);
                self.slots[slots[0] as usize].form == form
                    && of_group.all(|view| view.slot == result)
                    && views().any(|view| view.slot == result)
                    && self.is_read_once(result)
                    && self.fits(group, args)
            }
        }
    }

    /// Whether one node of the flat graph, or the outputs, alone read what is in `slot`. Only exact
    /// for the newest result of an op's group, whose readers are all still to come.
    fn is_read_once(&self, slot: Slot) -> bool {
        match self.slots[slot as usize].node {
            Alone::One(node) => self.readers[node as usize] == 1,
            Alone::None | Alone::Several => false,
        }
    }

    fn fits(&self, group: &Group<'a>, args: &[Val<'a>]) -> bool {
        group.members.len() < self.limits.body_instructions
            && self.operands(&[&group.members], args) <= self.limits.body_operands
    }

    /// At most how many arrays the members of groups, and one more member on `args`, touch. Two ways to read one slot
    /// are two arrays.
    pub fn operands(&self, groups: &[&[Member<'a>]], args: &[Val<'a>]) -> usize {
        let members = || groups.iter().copied().flatten();
        let views = members().flat_map(|m| &m.args).chain(args).filter_map(Val::view);
        let read = distinct(views);
        let read = read.iter().filter(|view| members().all(|m| m.slot != view.slot)).count();
        let made = |m: &&Member<'a>| {
            let info = &self.slots[m.slot as usize];
            info.uses.iter().any(|u| *u != Use::Direct(info.group))
        };
        read + members().filter(made).count() + 1
    }

    /// `val` as memory: a constant is written out, in a group of its own.
    fn materialize(&mut self, val: Val<'a>) -> (Rc<View<'a>>, usize) {
        match val.kind {
            ValKind::Array(view) => (view, val.after),
            ValKind::Constant(_, form) => {
                let made = self.copy(val, form);
                match made.kind {
                    ValKind::Array(view) => (view, made.after),
                    ValKind::Constant(..) => unreachable!("a copy is an array"),
                }
            }
        }
    }

    /// `val` as memory for a kernel, which reads any strides: a constant is written out once.
    fn repeated(&mut self, val: Val<'a>) -> (Rc<View<'a>>, usize) {
        static ONE: LazyLock<Shape> = LazyLock::new(Shape::scalar);
        let ValKind::Constant(source, form) = val.kind else { return self.materialize(val) };
        let one = Form { shape: &ONE, dtype: form.dtype };
        let (view, after) =
            self.materialize(Val { kind: ValKind::Constant(source, one), after: val.after });
        let strides = SmallVec::from_elem(0, form.shape.rank());
        let View { slot, ref offset, .. } = *view;
        (Rc::new(View { slot, form, strides, offset: offset.clone() }), after)
    }

    /// A group that copies `val` to memory of its own, row-major.
    pub fn copy(&mut self, val: Val<'a>, form: Form<'a>) -> Val<'a> {
        let (slot, group) = self.copy_over(val, form.shape, form);
        self.array(slot, group)
    }

    /// A group that copies `val`, which has the shape `over`, to a slot of as many elements.
    pub fn copy_over(&mut self, val: Val<'a>, over: &'a Shape, form: Form<'a>) -> (Slot, usize) {
        let group = self.push_group(GroupKind::Map, over, val.after);
        let slot = self.slot(form, group);
        self.note_use(&val, group, true);
        if let Some(g) = &mut self.groups[group] {
            let args = SmallVec::from_iter([val]);
            g.members.push(Member { work: Work::Copy, args, slot, dtype: form.dtype });
        }
        (slot, group)
    }

    /// A group that copies `val` into a part of `slot`.
    pub fn write(&mut self, val: Val<'a>, dest: View<'a>) {
        let View { form, slot, .. } = dest;
        let group = self.push_group(GroupKind::Map, form.shape, val.after);
        self.note_use(&val, group, true);
        // Whoever reads the slot reads it after its last writer.
        self.slots[slot as usize].group = group;
        if let Some(g) = &mut self.groups[group] {
            let args = SmallVec::from_iter([val]);
            g.members.push(Member { work: Work::Copy, args, slot, dtype: form.dtype });
            g.dest = Some(dest);
        }
    }

    /// Draws one group whose results only `target` needs into it; gives whether there was one.
    fn absorb_one(&mut self, target: usize) -> bool {
        let Some(group) = &self.groups[target] else { return false };
        let folded = match &group.kind {
            GroupKind::Reduce { input, .. } => Some(input),
            GroupKind::Map | GroupKind::Rows { .. } | GroupKind::Own { .. } => None,
        };
        let read = group.members.iter().flat_map(|m| &m.args).chain(folded);
        let found = (read.filter_map(Val::view))
            .map(|view| self.slots[view.slot as usize].group)
            .find(|&source| source != target && self.can_absorb(source, target));
        let Some(source) = found else { return false };
        let Some(absorbed) = self.taken(source, target) else { return false };
        if let Some(group) = &mut self.groups[target] {
            let mut members = absorbed.members;
            members.append(&mut group.members);
            group.members = members;
            // What comes after the source comes after what that came after.
            let own = if group.after == source { 0 } else { group.after };
            group.after = own.max(absorbed.after);
        }
        true
    }

    /// Group `source`, which is none any more: what it reads and makes, `target` does from now on.
    pub(super) fn taken(&mut self, source: usize, target: usize) -> Option<Group<'a>> {
        let group = self.groups[source].take()?;
        let read = group.members.iter().flat_map(|m| &m.args).filter_map(Val::view);
        let made = group.members.iter().map(|m| m.slot);
        for slot in read.map(|view| view.slot).chain(made) {
            let slot = &mut self.slots[slot as usize];
            if slot.group == source {
                slot.group = target;
            }
            for entry in &mut slot.uses {
                match entry {
                    Use::Direct(g) | Use::Indirect(g) if *g == source => *g = target,
                    Use::Direct(_) | Use::Indirect(_) | Use::Output => {}
                }
            }
        }
        Some(group)
    }

    fn can_absorb(&self, source: usize, target: usize) -> bool {
        let (Some(from), Some(into)) = (&self.groups[source], &self.groups[target]) else {
            return false;
        };
        if !matches!(from.kind, GroupKind::Map) || from.dest.is_some() || from.shape != into.shape {
            return false;
        }
        // Every use must be inside, or come no earlier than the target; only elementwise groups
        // can give the intermediate results to others as well.
        let may_give = matches!(into.kind, GroupKind::Map) && into.dest.is_none();
        let fits_use = |u: &Use| match *u {
            Use::Direct(g) => g == source || g == target || (may_give && g > target),
            Use::Indirect(g) => may_give && g > target,
            Use::Output => may_give,
        };
        let uses_fit =
            from.members.iter().all(|m| self.slots[m.slot as usize].uses.iter().all(fits_use));
        uses_fit
            && from.members.len() + into.members.len() <= self.limits.body_instructions
            && self.operands(&[&from.members, &into.members], &[]) <= self.limits.body_operands
    }
}

/// The views, each once: every one is an array that a kernel reads.
pub(super) fn distinct<'v, 'a: 'v>(
    views: impl Iterator<Item = &'v Rc<View<'a>>>,
) -> SmallVec<[&'v View<'a>; 32]> {
    let mut known: SmallVec<[&View<'a>; 32]> = SmallVec::new();
    for view in views {
        if !known.iter().any(|other| std::ptr::eq(*other, &**view) || **other == **view) {
            known.push(view);
        }
    }
    known
}

/// How many nodes, and outputs, read each node.
fn readers(graph: &FlatGraph<'_>) -> Vec<u32> {
    let mut readers = vec![0; graph.nodes.len()];
    let mut last = vec![usize::MAX; graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for r in &node.inputs {
            let is_new = std::mem::replace(&mut last[r.node as usize], index) != index;
            readers[r.node as usize] += u32::from(is_new);
        }
    }
    graph.outputs.iter().for_each(|r| readers[r.node as usize] += 1);
    readers
}
