//! Elementwise work that continues a kernel: it runs on an element as soon as the kernel has it, before that is
//! written.

use std::rc::Rc;

use super::fuse::{Fusion, Group, GroupKind, Member, Offset, Use, Val, ValKind, View, Work};
use super::rows::WIDEST;
use crate::backend::Kernel;
use crate::shape::{Shape, is_row_major, reshape_strides};

impl<'a> Fusion<'a> {
    /// Lets the groups that alone read a kernel's result continue it, however often they read it: `x * sigmoid(x)`.
    pub(super) fn join_kernels(&mut self) {
        let mut place: Vec<usize> = (0..self.groups.len()).collect();
        for (source, place) in place.iter_mut().enumerate() {
            let Some(target) = self.continues(source) else { continue };
            self.lie_as(source, target);
            let Some(joined) = self.taken(source, target) else { continue };
            if let Some(group) = &mut self.groups[target] {
                group.members.extend(joined.members);
            }
            *place = target;
        }
        // Who waited for a group that is none any more waits for the kernel.
        self.groups.iter_mut().flatten().for_each(|group| group.after = place[group.after]);
    }

    /// The kernel that a group of elementwise work continues: it reads all of the result that nobody else reads, and
    /// gives one of the same form, or what can be read as that.
    fn continues(&self, source: usize) -> Option<usize> {
        let from = self.groups[source].as_ref()?;
        if !matches!(from.kind, GroupKind::Map) || from.dest.is_some() {
            return None;
        }
        // Who made it may have gone into another group since.
        let after = |v: &Val<'a>| {
            let maker = v.view().map_or(0, |view| self.slots[view.slot as usize].group);
            (maker != source).then(|| maker.max(v.after))
        };
        let target = from.members.iter().flat_map(|m| &m.args).filter_map(after).max()?;
        let into = self.groups[target].as_ref()?;
        let GroupKind::Own { kernel, slots, .. } = &into.kind else { return None };
        let [slot] = slots[..] else { return None };
        if !takes_epilogue(kernel) {
            return None;
        }
        let result = into.members.last().map_or(slot, |m| m.slot);
        let memory = self.slots[result as usize].form;
        let (last, inner) = from.members.split_last()?;
        let of_source = |u: &Use| *u == Use::Direct(source) || *u == Use::Indirect(source);
        let is_alone = self.slots[result as usize].uses.iter().all(of_source);
        let views = || from.members.iter().flat_map(|m| &m.args).filter_map(Val::view);
        let mut of_result = views().filter(|view| view.slot == result);
        let is_whole = |view: &Rc<View<'a>>| {
            view.form.shape == from.shape
                && view.offset == Offset::default()
                && is_row_major(from.shape, &view.strides)
        };
        // What a device may have no numbers for would take the kernel to the CPU with it.
        let widest = WIDEST.max(memory.dtype.size());
        let is_inner = |m: &Member<'a>| {
            matches!(m.work, Work::Compute(_))
                && m.dtype.size() <= widest
                && self.slots[m.slot as usize].uses.iter().all(|u| *u == Use::Direct(source))
        };
        // In another shape, a reader that would go on element by element would see other axes.
        let lies_alike = from.shape == memory.shape
            || from.shape.size() == memory.shape.size()
                && views().all(|view| lying(view, memory.shape).is_some())
                && (self.slots[last.slot as usize].uses.iter())
                    .all(|u| matches!(u, Use::Indirect(_) | Use::Output));
        let fits = is_alone
            && of_result.next().is_some_and(is_whole)
            && of_result.all(is_whole)
            && last.dtype == memory.dtype
            && matches!(last.work, Work::Compute(_))
            && inner.iter().all(is_inner)
            && lies_alike
            && into.members.len() + from.members.len() <= self.limits.body_instructions
            && self.operands(&[&into.members, &from.members], &[]) <= self.limits.body_operands;
        fits.then_some(target)
    }

    /// Gives a group the shape in which the result of the kernel lies that it continues. Who reads what it makes
    /// sees the same axes as ever.
    fn lie_as(&mut self, source: usize, target: usize) {
        let Some(into) = &self.groups[target] else { return };
        let shape = into.shape;
        let Some(Group { shape: own, members, .. }) = &mut self.groups[source] else { return };
        if *own == shape {
            return;
        }
        *own = shape;
        for member in members {
            self.slots[member.slot as usize].form.shape = shape;
            for val in &mut member.args {
                match &mut val.kind {
                    ValKind::Constant(_, form) => form.shape = shape,
                    ValKind::Array(view) => {
                        if let Some(strides) = lying(view, shape) {
                            let view = Rc::make_mut(view);
                            (view.form.shape, view.strides) = (shape, strides);
                        }
                    }
                }
            }
        }
    }
}

/// The strides of the same elements in the same order, over another shape, where there are such.
fn lying(view: &View<'_>, shape: &Shape) -> Option<smallvec::SmallVec<[isize; 4]>> {
    reshape_strides(view.form.shape, &view.strides, shape)
}

/// Whether elementwise work on a kernel's result can run inside it.
pub(super) fn takes_epilogue(kernel: &Kernel) -> bool {
    match kernel {
        Kernel::Op(op) => op.facts().takes_epilogue,
        Kernel::Map(_)
        | Kernel::Reduce { .. }
        | Kernel::Rows { .. }
        | Kernel::Composite(_)
        | Kernel::Control(_)
        | Kernel::Custom(_) => false,
    }
}
