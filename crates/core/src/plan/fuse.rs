//! Grouping: which nodes of the flat graph run together, and in what order.
//!
//! Groups run in the order in which they stand. An elementwise node joins the group that makes its
//! latest input when everything else it needs comes from earlier groups; then groups whose results
//! only the next one reads are drawn into it, and those that walk the same rows become one
//! (`rows.rs`). Movement is no work: it changes how a slot is read.

use smallvec::SmallVec;

use super::flat::{Flat, FlatGraph};
use crate::backend::{Kernel, Limits};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::graph::Ref;
use crate::prim::movement::view_layout;
use crate::prim::{Elementwise, Movement, Op};
use crate::shape::{Aval, Layout, Shape, is_row_major};

/// Memory that one leaf or one group output lives in.
pub(super) type Slot = u32;

/// Where a view starts, in elements: a fixed part, and slice starts that are known at each run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Offset {
    pub fixed: isize,
    /// A slice node of the evaluated graph, and the strides its starts are counted in.
    pub starts: SmallVec<[(u32, SmallVec<[isize; 4]>); 1]>,
}

/// A way to read or write a slot.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct View {
    pub slot: Slot,
    pub aval: Aval,
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
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Val {
    pub kind: ValKind,
    /// The group after which it may be read; 0 for what is there from the start.
    pub after: usize,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum ValKind {
    Constant(ScalarSource, Aval),
    Array(View),
}

/// One elementwise instruction of a group, or a copy.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub work: Work,
    pub args: SmallVec<[Val; 3]>,
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

#[derive(Clone, Debug)]
pub(super) enum GroupKind {
    /// Elementwise members only.
    Map,
    /// The members feed a reduction of `input` into `slot`.
    Reduce { op: crate::prim::Reduce, input: Val, slot: Slot },
    /// Groups that walk the rows of one shape, whose members have values a row or an element.
    Rows { folds: Vec<RowFold> },
    /// A kernel of its own; the members follow it, in place in its output.
    Own { kernel: Kernel, inputs: Vec<View>, slots: Vec<Slot> },
}

/// A value of each row, folded from those of its elements.
#[derive(Clone, Debug)]
pub(super) struct RowFold {
    /// How many members come before it.
    pub after: usize,
    pub kind: crate::prim::ReduceKind,
    pub input: Val,
    pub slot: Slot,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub kind: GroupKind,
    /// What the members run over.
    pub shape: Shape,
    pub members: Vec<Member>,
    /// The last member writes here instead of to memory of its own; nothing may join.
    pub dest: Option<View>,
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

pub(super) struct SlotInfo {
    pub aval: Aval,
    /// The group that makes it; 0 for leaves.
    pub group: usize,
    pub uses: Vec<Use>,
}

/// The groups, numbered from 1; group 0 stands for what is there before the plan runs.
pub(super) struct Fusion<'a> {
    graph: &'a FlatGraph,
    pub limits: &'a Limits,
    pub groups: Vec<Option<Group>>,
    pub slots: Vec<SlotInfo>,
    pub outputs: Vec<View>,
    vals: Vec<SmallVec<[Val; 1]>>,
}

impl<'a> Fusion<'a> {
    /// Groups `graph`, whose leaves lie in memory as `leaves` say, in input order.
    pub fn new(
        graph: &'a FlatGraph,
        leaves: &[SmallVec<[isize; 4]>],
        limits: &'a Limits,
    ) -> Result<Fusion<'a>> {
        let mut fusion = Fusion {
            graph,
            limits,
            groups: vec![None],
            slots: Vec::new(),
            outputs: Vec::new(),
            vals: Vec::with_capacity(graph.nodes.len()),
        };
        let mut leaves = leaves.iter();
        for node in &graph.nodes {
            let vals = fusion.place(node, &mut leaves)?;
            fusion.vals.push(vals);
        }
        for r in &graph.outputs {
            let val = fusion.val(*r);
            let (view, _) = fusion.materialize(val);
            fusion.slots[view.slot as usize].uses.push(Use::Output);
            fusion.outputs.push(view);
        }
        for group in (1..fusion.groups.len()).rev() {
            while fusion.absorb_one(group) {}
        }
        fusion.join_rows();
        Ok(fusion)
    }

    fn val(&self, r: Ref) -> Val {
        self.vals[r.node as usize][r.output as usize].clone()
    }

    fn slot(&mut self, aval: &Aval, group: usize) -> Slot {
        self.slots.push(SlotInfo { aval: aval.clone(), group, uses: Vec::new() });
        self.slots.len() as Slot - 1
    }

    fn push_group(&mut self, kind: GroupKind, shape: Shape) -> usize {
        self.groups.push(Some(Group { kind, shape, members: Vec::new(), dest: None }));
        self.groups.len() - 1
    }

    fn place<'l>(
        &mut self,
        node: &Flat,
        leaves: &mut impl Iterator<Item = &'l SmallVec<[isize; 4]>>,
    ) -> Result<SmallVec<[Val; 1]>> {
        let inputs: SmallVec<[Val; 3]> = node.inputs.iter().map(|r| self.val(*r)).collect();
        let aval = &node.avals[0];
        let val = match &node.op {
            Op::Input(_) => {
                let slot = self.slot(aval, 0);
                let strides = leaves.next().cloned().unwrap_or_else(|| aval.shape.row_major());
                let view = View { slot, aval: aval.clone(), strides, offset: Offset::default() };
                Val { kind: ValKind::Array(view), after: 0 }
            }
            Op::Constant(c) => {
                let source = node.source.map_or(ScalarSource::Fixed(c.value), ScalarSource::Node);
                Val { kind: ValKind::Constant(source, aval.clone()), after: 0 }
            }
            Op::Elementwise(op) => self.elementwise(*op, inputs, aval),
            // An identity to whoever runs it; only the order that it asks for is kept.
            Op::Mark(_) => {
                let after = inputs.iter().map(|v| v.after).max().unwrap_or(0);
                Val { after, ..inputs[0].clone() }
            }
            Op::Movement(movement) => self.movement(movement, node, &inputs)?,
            Op::Reduce(reduce) => {
                let shape = self.graph.aval(node.inputs[0]).shape.clone();
                let group = self.push_group(GroupKind::Map, shape);
                let slot = self.slot(aval, group);
                self.note_use(&inputs[0], group, true);
                let kind = GroupKind::Reduce { op: reduce.clone(), input: inputs[0].clone(), slot };
                if let Some(g) = &mut self.groups[group] {
                    g.kind = kind;
                }
                self.array(slot, group)
            }
            Op::Kernel(op) => return Ok(self.own(Kernel::Op(op.clone()), inputs, &node.avals)),
            Op::Composite(op) => {
                return Ok(self.own(Kernel::Composite(op.clone()), inputs, &node.avals));
            }
            Op::Call(_) => return Err(Error::argument("plan", "a call was left in place")),
            Op::Custom(op) => return Ok(self.own(Kernel::Custom(op.clone()), inputs, &node.avals)),
        };
        Ok(SmallVec::from_buf([val]))
    }

    /// A group that is a kernel of its own.
    fn own(
        &mut self,
        kernel: Kernel,
        inputs: SmallVec<[Val; 3]>,
        outputs: &[Aval],
    ) -> SmallVec<[Val; 1]> {
        let inputs: Vec<View> = inputs.into_iter().map(|v| self.materialize(v).0).collect();
        let group = self.push_group(GroupKind::Map, outputs[0].shape.clone());
        for view in &inputs {
            self.slots[view.slot as usize].uses.push(Use::Indirect(group));
        }
        let slots: Vec<Slot> = outputs.iter().map(|aval| self.slot(aval, group)).collect();
        let vals = slots.iter().map(|&slot| self.array(slot, group)).collect();
        if let Some(g) = &mut self.groups[group] {
            g.kind = GroupKind::Own { kernel, inputs, slots };
        }
        vals
    }

    /// A slot that a group makes, read as it lies.
    fn array(&self, slot: Slot, group: usize) -> Val {
        let aval = self.slots[slot as usize].aval.clone();
        let strides = aval.shape.row_major();
        let view = View { slot, aval, strides, offset: Offset::default() };
        Val { kind: ValKind::Array(view), after: group }
    }

    /// Whether `val` is what group `group` makes, at the same place of `shape`.
    fn is_direct(&self, val: &Val, group: usize, shape: &Shape) -> bool {
        match &val.kind {
            ValKind::Constant(..) => false,
            ValKind::Array(view) => {
                self.slots[view.slot as usize].group == group
                    && view.aval.shape == *shape
                    && self.slots[view.slot as usize].aval.shape == *shape
                    && view.offset == Offset::default()
                    && is_row_major(shape, &view.strides)
            }
        }
    }

    fn note_use(&mut self, val: &Val, group: usize, same_place: bool) {
        let ValKind::Array(view) = &val.kind else { return };
        let maker = self.slots[view.slot as usize].group;
        let direct = same_place && self.is_direct(val, maker, &view.aval.shape);
        let entry = if direct { Use::Direct(group) } else { Use::Indirect(group) };
        self.slots[view.slot as usize].uses.push(entry);
    }

    fn elementwise(&mut self, op: Elementwise, args: SmallVec<[Val; 3]>, aval: &Aval) -> Val {
        let last = args.iter().map(|v| v.after).max().unwrap_or(0);
        let group = if self.can_join(last, &args, aval) {
            last
        } else {
            self.push_group(GroupKind::Map, aval.shape.clone())
        };
        let slot = self.slot(aval, group);
        for arg in &args {
            self.note_use(arg, group, true);
        }
        if let Some(g) = &mut self.groups[group] {
            g.members.push(Member { work: Work::Compute(op), args, slot, dtype: aval.dtype });
        }
        self.array(slot, group)
    }

    /// Whether an elementwise node with these arguments can run in group `last`, the latest one
    /// that it depends on.
    fn can_join(&self, last: usize, args: &[Val], aval: &Aval) -> bool {
        let Some(group) = &self.groups[last] else { return false };
        if group.dest.is_some() || group.shape != aval.shape {
            return false;
        }
        let from_group = |v: &Val| v.after == last && matches!(v.kind, ValKind::Array(_));
        if !args.iter().filter(|v| from_group(v)).all(|v| self.is_direct(v, last, &group.shape)) {
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
                let reads =
                    |v: &&Val| matches!(&v.kind, ValKind::Array(view) if view.slot == result);
                let of_group = |v: &&Val| {
                    matches!(&v.kind, ValKind::Array(view)
                        if self.slots[view.slot as usize].group == last)
                };
                self.slots[slots[0] as usize].aval == *aval
                    && args.iter().filter(of_group).all(|v| reads(&v))
                    && args.iter().any(|v| reads(&v))
                    && self.consumers(result) == 1
                    && self.fits(group, args)
            }
        }
    }

    /// How many nodes of the flat graph, and outputs, read what is in `slot` now. Only exact for
    /// the newest result of an op's group, whose consumers are all still to come.
    fn consumers(&self, slot: Slot) -> usize {
        let here = |v: &Val| matches!(&v.kind, ValKind::Array(view) if view.slot == slot);
        let Some(node) = self.vals.iter().rposition(|vals| vals.iter().any(here)) else {
            return usize::MAX;
        };
        let first = self.vals.iter().position(|vals| vals.iter().any(here));
        if first != Some(node) {
            return usize::MAX;
        }
        let reads = |inputs: &[Ref]| inputs.iter().any(|r| r.node as usize == node);
        let by_nodes = self.graph.nodes.iter().filter(|n| reads(&n.inputs)).count();
        by_nodes + usize::from(reads(&self.graph.outputs))
    }

    fn fits(&self, group: &Group, args: &[Val]) -> bool {
        group.members.len() < self.limits.body_instructions
            && self.operands(group, args) <= self.limits.body_operands
    }

    /// At most how many arrays the members of a group, and one more member on `args`, touch.
    fn operands(&self, group: &Group, args: &[Val]) -> usize {
        let mut slots: SmallVec<[Slot; 16]> = SmallVec::new();
        let all = group.members.iter().flat_map(|m| &m.args).chain(args);
        for val in all {
            if let ValKind::Array(view) = &val.kind
                && !slots.contains(&view.slot)
                && !group.members.iter().any(|m| m.slot == view.slot)
            {
                slots.push(view.slot);
            }
        }
        let made = |m: &&Member| {
            let info = &self.slots[m.slot as usize];
            info.uses.iter().any(|u| *u != Use::Direct(info.group))
        };
        slots.len() + group.members.iter().filter(made).count() + 1
    }

    /// `val` as memory: a constant is written out, in a group of its own.
    fn materialize(&mut self, val: Val) -> (View, usize) {
        match val.kind {
            ValKind::Array(view) => (view, val.after),
            ValKind::Constant(_, ref aval) => {
                let aval = aval.clone();
                let made = self.copy(val, &aval);
                match made.kind {
                    ValKind::Array(view) => (view, made.after),
                    ValKind::Constant(..) => unreachable!("a copy is an array"),
                }
            }
        }
    }

    /// A group that copies `val` to memory of its own, row-major.
    fn copy(&mut self, val: Val, aval: &Aval) -> Val {
        let group = self.push_group(GroupKind::Map, aval.shape.clone());
        let slot = self.slot(aval, group);
        self.note_use(&val, group, true);
        if let Some(g) = &mut self.groups[group] {
            let args = SmallVec::from_iter([val]);
            g.members.push(Member { work: Work::Copy, args, slot, dtype: aval.dtype });
        }
        self.array(slot, group)
    }

    /// A group that copies `val` into a part of `slot`.
    fn write(&mut self, val: Val, dest: View) {
        let aval = dest.aval.clone();
        let group = self.push_group(GroupKind::Map, aval.shape.clone());
        self.note_use(&val, group, true);
        let slot = dest.slot;
        // Whoever reads the slot reads it after its last writer.
        self.slots[slot as usize].group = group;
        if let Some(g) = &mut self.groups[group] {
            let args = SmallVec::from_iter([val]);
            g.members.push(Member { work: Work::Copy, args, slot, dtype: aval.dtype });
            g.dest = Some(dest);
        }
    }

    fn movement(&mut self, movement: &Movement, node: &Flat, inputs: &[Val]) -> Result<Val> {
        let aval = &node.avals[0];
        let input = &inputs[0];
        match movement {
            Movement::SliceUpdate { start, strides } => {
                let whole = self.copy(input.clone(), &self.graph.aval(node.inputs[0]).clone());
                let ValKind::Array(view) = &whole.kind else { return Ok(whole) };
                let update = self.graph.aval(node.inputs[1]).clone();
                let mut dest = View { aval: update, ..view.clone() };
                let from = dest.strides.clone();
                for axis in 0..strides.len() {
                    dest.strides[axis] *= strides[axis] as isize;
                }
                add_start(&mut dest.offset, node.source, start, &from);
                self.write(inputs[1].clone(), dest);
                Ok(self.array(view.slot, self.slots[view.slot as usize].group))
            }
            Movement::Pad { low, high: _, interior } => {
                let value = match &inputs[1].kind {
                    ValKind::Constant(source, _) => ValKind::Constant(*source, aval.clone()),
                    ValKind::Array(view) => ValKind::Array(View {
                        aval: aval.clone(),
                        strides: SmallVec::from_elem(0, aval.shape.rank()),
                        ..view.clone()
                    }),
                };
                let filled = self.copy(Val { kind: value, after: inputs[1].after }, aval);
                let ValKind::Array(view) = &filled.kind else { return Ok(filled) };
                let mut dest =
                    View { aval: self.graph.aval(node.inputs[0]).clone(), ..view.clone() };
                for axis in 0..low.len() {
                    dest.offset.fixed += dest.strides[axis] * low[axis] as isize;
                    dest.strides[axis] *= interior[axis] as isize + 1;
                }
                if dest.aval.shape.size() > 0 {
                    self.write(input.clone(), dest);
                }
                Ok(self.array(view.slot, self.slots[view.slot as usize].group))
            }
            Movement::Concatenate { axis } => {
                let slot = self.slot(aval, 0);
                let mut at = 0;
                for (index, piece) in inputs.iter().enumerate() {
                    let part = self.graph.aval(node.inputs[index]).clone();
                    let strides = aval.shape.row_major();
                    let fixed = at * strides[*axis];
                    at += part.shape[*axis] as isize;
                    let offset = Offset { fixed, ..Offset::default() };
                    if part.shape.size() > 0 || inputs.len() == index + 1 {
                        self.write(piece.clone(), View { slot, aval: part, strides, offset });
                    }
                }
                Ok(self.array(slot, self.slots[slot as usize].group))
            }
            Movement::Reshape(_)
            | Movement::Flatten { .. }
            | Movement::Unflatten { .. }
            | Movement::Squeeze(_)
            | Movement::ExpandDims(_)
            | Movement::Transpose(_)
            | Movement::Broadcast(_)
            | Movement::Flip(_)
            | Movement::Slice { .. } => Ok(self.view(movement, node, input)),
        }
    }

    fn view(&mut self, movement: &Movement, node: &Flat, input: &Val) -> Val {
        let aval = &node.avals[0];
        let view = match &input.kind {
            ValKind::Constant(source, _) => {
                let kind = ValKind::Constant(*source, aval.clone());
                return Val { kind, after: input.after };
            }
            ValKind::Array(view) => view,
        };
        let mut out = View { aval: aval.clone(), ..view.clone() };
        if let Movement::Slice { start, strides, .. } = movement {
            let from = view.strides.clone();
            for axis in 0..strides.len() {
                out.strides[axis] *= strides[axis] as isize;
            }
            add_start(&mut out.offset, node.source, start, &from);
            return Val { kind: ValKind::Array(out), after: input.after };
        }
        let layout = Layout { strides: view.strides.clone(), offset: 0 };
        match view_layout(movement, &view.aval, &layout, aval) {
            Some(layout) => {
                out.strides = layout.strides;
                out.offset.fixed += layout.offset;
                Val { kind: ValKind::Array(out), after: input.after }
            }
            None => {
                // The elements in row-major order, and then the new shape.
                let copied = self.copy(input.clone(), &view.aval.clone());
                self.view(movement, node, &copied)
            }
        }
    }

    /// Draws one group whose results only `target` needs into it; gives whether there was one.
    fn absorb_one(&mut self, target: usize) -> bool {
        let Some(group) = &self.groups[target] else { return false };
        let mut slots: SmallVec<[Slot; 16]> = SmallVec::new();
        let mut note = |val: &Val| {
            if let ValKind::Array(view) = &val.kind
                && !slots.contains(&view.slot)
            {
                slots.push(view.slot);
            }
        };
        group.members.iter().flat_map(|m| &m.args).for_each(&mut note);
        if let GroupKind::Reduce { input, .. } = &group.kind {
            note(input);
        }
        let found = slots
            .iter()
            .map(|&s| self.slots[s as usize].group)
            .find(|&source| source != target && self.can_absorb(source, target));
        let Some(source) = found else { return false };
        let Some(absorbed) = self.groups[source].take() else { return false };
        for slot in self.slots.iter_mut() {
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
        if let Some(group) = &mut self.groups[target] {
            let mut members = absorbed.members;
            members.append(&mut group.members);
            group.members = members;
        }
        true
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
        uses_fit && {
            let mut joined = from.clone();
            joined.members.extend(into.members.iter().cloned());
            joined.members.len() <= self.limits.body_instructions
                && self.operands(&joined, &[]) <= self.limits.body_operands
        }
    }
}

/// Adds a slice's start to an offset: fixed inside a call's body, else read at each run.
fn add_start(offset: &mut Offset, source: Option<u32>, start: &[usize], strides: &[isize]) {
    match source {
        Some(node) => offset.starts.push((node, SmallVec::from_slice(strides))),
        None => {
            offset.fixed += start.iter().zip(strides).map(|(&s, &t)| s as isize * t).sum::<isize>();
        }
    }
}

/// Whether elementwise work on a kernel's result can run inside it.
fn takes_epilogue(kernel: &Kernel) -> bool {
    match kernel {
        Kernel::Op(op) => op.facts().takes_epilogue,
        Kernel::Map(_)
        | Kernel::Reduce { .. }
        | Kernel::Rows { .. }
        | Kernel::Composite(_)
        | Kernel::Custom(_) => false,
    }
}
