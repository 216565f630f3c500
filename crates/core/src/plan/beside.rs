//! Reductions of much the same elements: they are read once for all of them. Such are the two sums of a batch norm's or
//! a layer norm's gradient, and a mean beside a mean of squares.

use std::rc::Rc;

use smallvec::SmallVec;

use super::fuse::{Form, Fusion, Group, GroupKind, Member, Slot, Use, Val, ValKind, View, Work};
use super::sink::{LARGE, bytes};

/// How many reductions after one are looked at.
const NEAR: usize = 8;

impl<'a> Fusion<'a> {
    /// Joins reductions that read the same.
    pub(super) fn join_reductions(&mut self) {
        if self.limits.folds < 2 {
            return;
        }
        let is_reduction = |index: &usize| {
            let group = self.groups[*index].as_ref();
            group.is_some_and(|group| matches!(group.kind, GroupKind::Reduce { .. }))
        };
        let all: Vec<usize> = (1..self.groups.len()).filter(is_reduction).collect();
        for (at, &target) in all.iter().enumerate() {
            let mut count = 1;
            for &source in all[at + 1..].iter().take(NEAR) {
                if count < self.limits.folds && self.reduce_alike(target, source) {
                    self.join_reduction(target, source);
                    count += 1;
                }
            }
        }
    }

    /// Whether two reductions fold over the same axes, read much the same, and the later one can run where the earlier
    /// one stands.
    fn reduce_alike(&self, target: usize, source: usize) -> bool {
        let (Some(into), Some(from)) = (&self.groups[target], &self.groups[source]) else {
            return false;
        };
        let (
            GroupKind::Reduce { op, slot, .. },
            GroupKind::Reduce { op: other, input, slot: last, .. },
        ) = (&into.kind, &from.kind)
        else {
            return false;
        };
        let form = |slot: Slot| self.slots[slot as usize].form;
        if into.shape != from.shape || op != other || form(*slot) != form(*last) {
            return false;
        }
        let own = |view: &View<'a>| from.members.iter().any(|m| m.slot == view.slot);
        // A group that is none any more is in one that makes what it made.
        let waits = |after: usize| after >= target && self.groups[after].is_some();
        let is_there = |val: &Val<'a>| {
            val.view().is_none_or(|view| {
                own(view) || self.slots[view.slot as usize].group < target && !waits(val.after)
            })
        };
        let mut args = from.members.iter().flat_map(|m| &m.args).chain([input]);
        if waits(from.after) || !args.all(is_there) {
            return false;
        }
        let (mine, theirs) = (self.read(into), self.read(from));
        let total = |views: &[&View<'a>]| -> usize {
            views.iter().map(|view| bytes(self.slots[view.slot as usize].form)).sum()
        };
        let common: SmallVec<[&View<'a>; 8]> =
            theirs.iter().copied().filter(|view| mine.contains(view)).collect();
        let common = total(&common);
        common >= LARGE
            && 2 * common >= total(&mine).min(total(&theirs))
            && into.members.len() + from.members.len() <= self.limits.body_instructions
            && self.operands(&[&into.members, &from.members], &[]) + self.limits.folds
                <= self.limits.body_operands
    }

    /// What a reduction reads from memory.
    fn read<'g>(&self, group: &'g Group<'a>) -> SmallVec<[&'g View<'a>; 8]> {
        let folded = match &group.kind {
            GroupKind::Reduce { input, beside, .. } => {
                std::iter::once(input).chain(beside.iter().map(|(input, _)| input))
            }
            GroupKind::Map | GroupKind::Rows { .. } | GroupKind::Own { .. } => {
                return SmallVec::new();
            }
        };
        let views = group.members.iter().flat_map(|m| &m.args).chain(folded).filter_map(Val::view);
        let mut read: SmallVec<[&View<'a>; 8]> = SmallVec::new();
        for view in views {
            let is_made = group.members.iter().any(|m| m.slot == view.slot);
            if !is_made && !read.contains(&&**view) {
                read.push(view);
            }
        }
        read
    }

    /// Does the reduction `source` where `target` is. What both compute of the same is computed once.
    fn join_reduction(&mut self, target: usize, source: usize) {
        let Some(from) = self.taken(source, target) else { return };
        let GroupKind::Reduce { input, slot, .. } = from.kind else { return };
        if let Some(view) = input.view() {
            for entry in &mut self.slots[view.slot as usize].uses {
                if let Use::Direct(group) | Use::Indirect(group) = entry
                    && *group == source
                {
                    *group = target;
                }
            }
        }
        self.slots[slot as usize].group = target;
        let Some(Group { kind: GroupKind::Reduce { beside, .. }, members, after, .. }) =
            &mut self.groups[target]
        else {
            return;
        };
        // What is there already, by what stands for it.
        let mut same: SmallVec<[(Slot, Slot); 8]> = SmallVec::new();
        let renamed = |mut val: Val<'a>, same: &[(Slot, Slot)]| {
            if let ValKind::Array(view) = &mut val.kind
                && let Some(&(_, known)) = same.iter().find(|(own, _)| *own == view.slot)
            {
                Rc::make_mut(view).slot = known;
            }
            val
        };
        for member in from.members {
            let args = member.args.into_iter().map(|arg| renamed(arg, &same)).collect();
            let member = Member { args, ..member };
            match members.iter().find(|known| is_same(known, &member)) {
                Some(known) => same.push((member.slot, known.slot)),
                None => members.push(member),
            }
        }
        beside.push((renamed(input, &same), slot));
        *after = (*after).max(from.after);
        for group in self.groups.iter_mut().flatten() {
            if group.after == source {
                group.after = target;
            }
        }
    }
}

/// Whether two members compute the same of the same.
fn is_same(a: &Member<'_>, b: &Member<'_>) -> bool {
    let (Work::Compute(one), Work::Compute(other)) = (a.work, b.work) else { return false };
    let is_equal = |(a, b): (&Val<'_>, &Val<'_>)| match (&a.kind, &b.kind) {
        (ValKind::Array(a), ValKind::Array(b)) => a == b,
        (ValKind::Constant(a, form), ValKind::Constant(b, other)) => {
            a == b && Form::eq(form, other)
        }
        (ValKind::Array(_), ValKind::Constant(..)) | (ValKind::Constant(..), ValKind::Array(_)) => {
            false
        }
    };
    one == other
        && a.dtype == b.dtype
        && a.args.len() == b.args.len()
        && a.args.iter().zip(&b.args).all(is_equal)
}
