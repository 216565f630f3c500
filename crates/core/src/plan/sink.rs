//! Values that are needed much later are computed where they are needed, if what they are made from
//! takes less memory meanwhile; and those that several groups need by each of these, if they would read no
//! more for it.
//!
//! What the backward pass makes of nothing but a value of the forward pass would else be made beside
//! that value, and lie in memory until then.

use std::rc::Rc;

use smallvec::SmallVec;

use super::fuse::{
    Form, Fusion, Group, GroupKind, Member, Offset, Slot, Use, Val, ValKind, View, Work, distinct,
};
use super::rows::fits_rows;
use crate::backend::Limits;
use crate::prim::{Binary, Elementwise, Unary};
use crate::shape::is_row_major;

/// How many groups later is much later.
const FAR: usize = 8;

/// Bytes of the smallest array that is worth it.
pub(super) const LARGE: usize = 1 << 16;

/// How many groups compute the same.
const SEVERAL: usize = 4;

/// How many times the bytes of a result may be read more where several groups make it for themselves: a `bool` that would
/// lie in memory from the forward pass to the backward pass is made from a result of 16 bits that lies there anyhow.
const READ_MORE: usize = 3;

/// How many instructions are done once more.
const MOST: usize = 12;

/// Members of one group that are to run in another, too.
struct Sinking {
    target: usize,
    /// In order.
    members: SmallVec<[usize; 8]>,
    /// What they make that the target reads.
    wanted: SmallVec<[Slot; 4]>,
    /// Those of them that nobody in their own group needs then.
    moved: SmallVec<[usize; 8]>,
    /// What they read that only their own group knew until now.
    kept: SmallVec<[Slot; 4]>,
}

impl<'a> Fusion<'a> {
    /// Computes what some groups need in each of them: it is neither written nor read then.
    pub(super) fn repeat(&mut self) {
        for source in 1..self.groups.len() {
            let sinkings = self.repeats(source);
            if sinkings.is_empty() {
                continue;
            }
            for sinking in &sinkings {
                self.sink_into(source, sinking);
            }
            self.drop_unread(source);
        }
    }

    /// Drops a group whose results nobody reads.
    pub(super) fn forget(&mut self, source: usize) {
        let Some(group) = self.groups[source].take() else { return };
        for view in group.members.iter().flat_map(|m| &m.args).filter_map(Val::view) {
            self.slots[view.slot as usize].uses.retain(|u| !is_of(u, source));
        }
    }

    /// What groups are to compute for themselves of what a group gives them: a result of it goes where all
    /// that read it do.
    fn repeats(&self, source: usize) -> SmallVec<[Sinking; 4]> {
        let Some(from) = &self.groups[source] else { return SmallVec::new() };
        if !matches!(from.kind, GroupKind::Map) || from.dest.is_some() {
            return SmallVec::new();
        }
        // The results, and who reads them.
        let mut results: SmallVec<[(usize, SmallVec<[usize; 4]>); 4]> = SmallVec::new();
        for (at, member) in from.members.iter().enumerate() {
            let info = &self.slots[member.slot as usize];
            let outside = info.uses.iter().filter(|u| !is_of(u, source));
            let readers: Option<SmallVec<[usize; 4]>> = outside
                .map(|u| match *u {
                    Use::Direct(target) => Some(target),
                    Use::Indirect(_) | Use::Output => None,
                })
                .collect();
            if let Some(mut readers) = readers.filter(|readers| !readers.is_empty())
                && info.form.shape == from.shape
            {
                readers.sort_unstable();
                readers.dedup();
                results.push((at, readers));
            }
        }
        loop {
            let mut targets: SmallVec<[usize; 8]> =
                results.iter().flat_map(|(_, readers)| readers).copied().collect();
            targets.sort_unstable();
            targets.dedup();
            if targets.len() > SEVERAL {
                return SmallVec::new();
            }
            let mut sinkings = SmallVec::new();
            let failed = targets.iter().find(|&&target| {
                let wanted = results.iter().filter(|(_, readers)| readers.contains(&target));
                let found = self.repeated_in(source, target, wanted.map(|(at, _)| *at).collect());
                sinkings.extend(found);
                sinkings.last().is_none_or(|last: &Sinking| last.target != target)
            });
            match failed {
                None => return sinkings,
                // What this one reads is written for all.
                Some(target) => results.retain(|(_, readers)| !readers.contains(target)),
            }
        }
    }

    /// The members of a group that give these of its results, if `target` can have them for no more than it
    /// reads now.
    fn repeated_in(
        &self,
        source: usize,
        target: usize,
        wanted: SmallVec<[usize; 4]>,
    ) -> Option<Sinking> {
        let (from, into) = (self.groups[source].as_ref()?, self.groups[target].as_ref()?);
        let slot = |at: usize| from.members[at].slot;
        let size: usize = wanted.iter().map(|&at| bytes(self.slots[slot(at) as usize].form)).sum();
        // What reads it as it is may be more of a kernel than a program that makes it.
        let is_kernel = matches!(into.kind, GroupKind::Own { .. });
        if is_kernel || size < LARGE || !wanted.iter().all(|&at| computes(from, into, slot(at))) {
            return None;
        }
        let mut members: SmallVec<[usize; 8]> = SmallVec::from_slice(&wanted);
        let (mut read, mut next) = (0, 0);
        let mut seen: SmallVec<[Slot; 8]> = SmallVec::new();
        while let Some(&at) = members.get(next) {
            next += 1;
            if next > MOST || !self.is_cheap(&from.members[at]) {
                return None;
            }
            for view in from.members[at].args.iter().filter_map(Val::view) {
                let info = &self.slots[view.slot as usize];
                if info.group != source {
                    if !seen.contains(&view.slot) {
                        seen.push(view.slot);
                        read += bytes(info.form);
                    }
                    continue;
                }
                let maker = from.members.iter().position(|m| m.slot == view.slot)?;
                if !is_whole(view, from) {
                    return None;
                }
                if !members.contains(&maker) {
                    members.push(maker);
                }
            }
        }
        if read > size + size / 8 {
            return None;
        }
        members.sort_unstable();
        let wanted = wanted.into_iter().map(slot).collect();
        let sinking =
            Sinking { target, members, wanted, moved: SmallVec::new(), kept: SmallVec::new() };
        self.has_room(from, into, &sinking).then_some(sinking)
    }

    /// Computes what is needed much later where it is needed.
    pub(super) fn sink(&mut self) {
        for source in 1..self.groups.len() {
            let count = self.groups[source].as_ref().map_or(0, |group| group.members.len());
            let mut is_less = false;
            for at in (0..count).rev() {
                for sinking in self.sinkings(source, at) {
                    self.sink_into(source, &sinking);
                    is_less = true;
                }
            }
            if is_less {
                self.drop_unread(source);
            }
        }
    }

    /// How member `at` of a group and what it needs are run later, if that is better: in the group that needs it, or in
    /// each of a few that do.
    fn sinkings(&self, source: usize, at: usize) -> SmallVec<[Sinking; 4]> {
        let Some(from) = &self.groups[source] else { return SmallVec::new() };
        let info = &self.slots[from.members[at].slot as usize];
        let outside = info.uses.iter().filter(|u| !is_of(u, source));
        let targets = outside.map(|u| match *u {
            Use::Direct(target) | Use::Indirect(target) => Some(target),
            Use::Output => None,
        });
        let Some(mut targets) = targets.collect::<Option<SmallVec<[usize; 4]>>>() else {
            return SmallVec::new();
        };
        targets.sort_unstable();
        targets.dedup();
        if targets.len() > SEVERAL {
            return SmallVec::new();
        }
        let all = targets.iter().map(|&target| self.sinking(source, at, target));
        let Some(all) = all.collect::<Option<SmallVec<[Sinking; 4]>>>() else {
            return SmallVec::new();
        };
        if all.len() > 1 {
            // Each runs them, and reads what they are made from where it read the result.
            let is_cheap = |&m: &usize| self.is_cheap(&from.members[m]);
            let read: usize = all.iter().map(|sinking| self.read_for(from, sinking)).sum();
            let most = bytes(info.form).saturating_mul(all.len() + READ_MORE);
            if read > most || !all.iter().all(|sinking| sinking.members.iter().all(is_cheap)) {
                return SmallVec::new();
            }
        }
        all
    }

    /// Bytes that a target reads for members that it runs, and else does not.
    fn read_for(&self, from: &Group<'a>, sinking: &Sinking) -> usize {
        let Some(into) = &self.groups[sinking.target] else { return 0 };
        let mut seen: SmallVec<[Slot; 8]> =
            sinking.members.iter().map(|&m| from.members[m].slot).collect();
        seen.extend(read_by(into).filter_map(Val::view).map(|view| view.slot));
        let args = sinking.members.iter().flat_map(|&m| &from.members[m].args);
        let mut read = 0;
        for view in args.filter_map(Val::view) {
            if !seen.contains(&view.slot) {
                seen.push(view.slot);
                read += bytes(self.slots[view.slot as usize].form);
            }
        }
        read
    }

    /// Which members of a group go with member `at` to the group `target`, if they are better run there.
    fn sinking(&self, source: usize, at: usize, target: usize) -> Option<Sinking> {
        let from = self.groups[source].as_ref()?;
        let slot = from.members[at].slot;
        let info = &self.slots[slot as usize];
        let is_plain = matches!(from.kind, GroupKind::Map | GroupKind::Rows { .. });
        if !is_plain
            || from.dest.is_some()
            || info.form.shape != from.shape
            || bytes(info.form) < LARGE
        {
            return None;
        }
        let into = self.groups[target].as_ref()?;
        if target < source + FAR || !computes(from, into, slot) {
            return None;
        }
        let mut sinking = Sinking {
            target,
            members: SmallVec::from_slice(&[at]),
            wanted: SmallVec::from_slice(&[slot]),
            moved: SmallVec::new(),
            kept: SmallVec::new(),
        };
        let (mut cost, mut next) = (0, 0);
        let mut seen: SmallVec<[Slot; 8]> = SmallVec::new();
        while let Some(&at) = sinking.members.get(next) {
            next += 1;
            let member = &from.members[at];
            let Work::Compute(_) = member.work else { return None };
            match self.is_unread(from, member.slot, source, &sinking.moved) {
                true => sinking.moved.push(at),
                false if self.is_cheap(member) => {}
                false => return None,
            }
            if next > MOST {
                return None;
            }
            for view in member.args.iter().filter_map(Val::view) {
                if seen.contains(&view.slot) {
                    continue;
                }
                seen.push(view.slot);
                cost += self.follow(from, source, view, &mut sinking)?;
            }
        }
        sinking.members.sort_unstable();
        let gain = bytes(info.form).saturating_mul(target - source);
        (cost.saturating_mul(2) <= gain && self.has_room(from, into, &sinking)).then_some(sinking)
    }

    /// Takes what makes `view` along, or keeps it; gives the bytes that lie longer in memory, times for
    /// how many groups.
    fn follow(
        &self,
        from: &Group<'a>,
        source: usize,
        view: &View<'a>,
        sinking: &mut Sinking,
    ) -> Option<usize> {
        let info = &self.slots[view.slot as usize];
        let size = bytes(info.form);
        if info.group == source && info.uses.iter().all(|u| is_of(u, source)) {
            let maker = from.members.iter().position(|m| m.slot == view.slot);
            let along = maker.filter(|&maker| {
                let is_cheap = self.is_cheap(&from.members[maker]);
                let whole = info.form.shape == from.shape && is_whole(view, from);
                whole && (is_cheap || self.is_unread(from, view.slot, source, &sinking.moved))
            });
            if let Some(maker) = along {
                sinking.members.push(maker);
                return Some(0);
            }
            sinking.kept.push(view.slot);
            return Some(size.saturating_mul(sinking.target - source));
        }
        if info.group == 0 {
            return Some(0);
        }
        let until = info.uses.iter().map(|u| match *u {
            Use::Direct(group) | Use::Indirect(group) => group,
            Use::Output => usize::MAX,
        });
        Some(size.saturating_mul(sinking.target.saturating_sub(until.max()?)))
    }

    /// Whether nobody but these members of the group `source`, and later groups, reads a slot.
    fn is_unread(&self, from: &Group<'a>, slot: Slot, source: usize, members: &[usize]) -> bool {
        let reads = |val: &Val<'a>| val.view().is_some_and(|view| view.slot == slot);
        let uses = self.slots[slot as usize].uses.iter().filter(|u| is_of(u, source)).count();
        let known: usize = members
            .iter()
            .map(|&m| from.members[m].args.iter().filter(|val| reads(val)).count())
            .sum();
        uses == known
    }

    /// Whether a member takes less time than to write and read its result.
    fn is_cheap(&self, member: &Member<'a>) -> bool {
        matches!(member.work, Work::Compute(op) if is_cheap(op, self.limits))
    }

    /// Whether both groups keep to the limits.
    fn has_room(&self, from: &Group<'a>, into: &Group<'a>, sinking: &Sinking) -> bool {
        let most = self.limits.body_operands;
        let views = || {
            let args = sinking.members.iter().flat_map(|&m| &from.members[m].args);
            args.filter_map(Val::view)
        };
        let dense = |view: &Rc<View<'a>>| {
            fits_rows(view, into.shape) && matches!(view.strides.last(), Some(0 | 1))
        };
        let narrow = |&at: &usize| from.members[at].dtype.size() <= super::rows::WIDEST;
        let fits = match into.kind {
            GroupKind::Rows { .. } => views().all(dense) && sinking.members.iter().all(narrow),
            GroupKind::Map | GroupKind::Reduce { .. } => true,
            // What a device may have no numbers for would take the kernel to the CPU with it.
            GroupKind::Own { .. } => {
                let is_narrow = |view: &Rc<View<'a>>| view.form.dtype.size() <= super::rows::WIDEST;
                sinking.members.iter().all(narrow) && views().all(is_narrow)
            }
        };
        // What they make for each other is no operand, and what several read is one.
        let own = |slot: Slot| sinking.members.iter().any(|&m| from.members[m].slot == slot);
        let extra = distinct(views().filter(|view| !own(view.slot))).len();
        fits && into.members.len() + sinking.members.len() + self.folds(into)
            < self.limits.body_instructions
            && self.operands(&[&into.members], &[]) + self.folds(into) + extra <= most
            && self.operands(&[&from.members], &[]) + self.folds(from) + sinking.kept.len() <= most
    }

    /// How many values of rows a group folds.
    pub(super) fn folds(&self, group: &Group<'a>) -> usize {
        match &group.kind {
            GroupKind::Rows { folds } => folds.len(),
            GroupKind::Map | GroupKind::Reduce { .. } | GroupKind::Own { .. } => 1,
        }
    }

    /// Copies members to the front of the group that needs the last of them.
    fn sink_into(&mut self, source: usize, sinking: &Sinking) {
        let Sinking { target, members, wanted, .. } = sinking;
        self.compute_in(*target, source, members, wanted, &|view| View::clone(view));
    }

    /// Computes members of the group `source` in front of those of `target`, over its shape, and lets it read the
    /// `wanted` ones of their results there. What they read themselves is read as `lay` says.
    pub(super) fn compute_in(
        &mut self,
        target: usize,
        source: usize,
        members: &[usize],
        wanted: &[Slot],
        lay: &dyn Fn(&View<'a>) -> View<'a>,
    ) {
        let Some(after) = self.groups[source].as_ref().map(|from| from.after) else { return };
        let Some(into) = &mut self.groups[target] else { return };
        into.after = into.after.max(after);
        let shape = into.shape;
        let mut new: Vec<(Slot, Val<'a>)> = Vec::with_capacity(members.len());
        let mut copies = Vec::with_capacity(members.len());
        for &at in members {
            let Some(from) = &self.groups[source] else { return };
            let Member { work, ref args, slot, dtype } = from.members[at];
            let mut args = args.clone();
            for val in &mut args {
                let ValKind::Array(view) = &val.kind else {
                    if let ValKind::Constant(_, form) = &mut val.kind {
                        form.shape = shape;
                    }
                    continue;
                };
                let (kind, entry) = match new.iter().find(|(old, _)| *old == view.slot) {
                    Some((_, own)) => (own.kind.clone(), Use::Direct(target)),
                    None => (ValKind::Array(Rc::new(lay(view))), Use::Indirect(target)),
                };
                val.kind = kind;
                if let Some(view) = val.view() {
                    self.slots[view.slot as usize].uses.push(entry);
                }
            }
            let own = self.slot(Form { shape, dtype }, target);
            new.push((slot, self.array(own, target)));
            copies.push(Member { work, args, slot: own, dtype });
        }
        new.retain(|(old, _)| wanted.contains(old));
        let Some(into) = &mut self.groups[target] else { return };
        let mut inputs: Vec<&mut Val<'a>> = Vec::new();
        match &mut into.kind {
            GroupKind::Reduce { input, .. } => inputs.push(input),
            GroupKind::Rows { folds } => {
                for fold in folds {
                    fold.after += copies.len();
                    inputs.push(&mut fold.input);
                }
            }
            GroupKind::Map | GroupKind::Own { .. } => {}
        }
        inputs.extend(into.members.iter_mut().flat_map(|m| &mut m.args));
        for val in inputs {
            let Some(view) = val.view() else { continue };
            let Some((_, own)) = new.iter().find(|(old, _)| *old == view.slot) else { continue };
            val.kind = own.kind.clone();
            if let Some(view) = own.view() {
                self.slots[view.slot as usize].uses.push(Use::Direct(target));
            }
        }
        into.members.splice(0..0, copies);
        for (old, _) in new {
            self.slots[old as usize].uses.retain(|u| !is_of(u, target));
        }
    }

    /// Drops the members of a group that nobody reads any more, and a group of which none are left.
    fn drop_unread(&mut self, source: usize) {
        let Some(mut group) = self.groups[source].take() else { return };
        let least = if matches!(group.kind, GroupKind::Map) { 0 } else { 1 };
        for at in (0..group.members.len()).rev() {
            let is_read = !self.slots[group.members[at].slot as usize].uses.is_empty();
            if is_read || group.members.len() == least || group.dest.is_some() {
                continue;
            }
            let member = group.members.remove(at);
            if let GroupKind::Rows { folds } = &mut group.kind {
                folds.iter_mut().filter(|fold| fold.after > at).for_each(|fold| fold.after -= 1);
            }
            for view in member.args.iter().filter_map(Val::view) {
                let uses = &mut self.slots[view.slot as usize].uses;
                if let Some(at) = uses.iter().position(|u| is_of(u, source)) {
                    uses.swap_remove(at);
                }
            }
        }
        if least > 0 || !group.members.is_empty() {
            self.groups[source] = Some(group);
        }
    }
}

/// Everything that a group reads, or makes and reads.
pub(super) fn read_by<'g, 'a>(group: &'g Group<'a>) -> impl Iterator<Item = &'g Val<'a>> {
    let (folded, folds): (_, &[_]) = match &group.kind {
        GroupKind::Reduce { input, .. } => (Some(input), &[]),
        GroupKind::Rows { folds } => (None, folds),
        GroupKind::Map | GroupKind::Own { .. } => (None, &[]),
    };
    let members = group.members.iter().flat_map(|m| &m.args);
    members.chain(folded).chain(folds.iter().map(|fold| &fold.input))
}

/// Whether members of `into` could compute the slot of `from` that they read.
fn computes<'a>(from: &Group<'a>, into: &Group<'a>, slot: Slot) -> bool {
    let mut views = read_by(into).filter_map(Val::view).filter(|view| view.slot == slot);
    // What continues a kernel computes, and not what the kernel itself reads.
    let may = match &into.kind {
        GroupKind::Map | GroupKind::Reduce { .. } | GroupKind::Rows { .. } => true,
        GroupKind::Own { inputs, .. } => {
            !into.members.is_empty() && inputs.iter().all(|view| view.slot != slot)
        }
    };
    may && into.dest.is_none() && into.shape == from.shape && views.all(|view| is_whole(view, from))
}

/// Whether `view` reads each element where a member of `group` makes it.
fn is_whole(view: &View<'_>, group: &Group<'_>) -> bool {
    view.form.shape == group.shape
        && view.offset == Offset::default()
        && is_row_major(group.shape, &view.strides)
}

fn is_of(u: &Use, group: usize) -> bool {
    match *u {
        Use::Direct(g) | Use::Indirect(g) => g == group,
        Use::Output => false,
    }
}

pub(super) fn bytes(form: Form<'_>) -> usize {
    form.shape.size().saturating_mul(form.dtype.size())
}

/// Whether an instruction takes less time than to write and read its result.
fn is_cheap(op: Elementwise, limits: &Limits) -> bool {
    match op {
        Elementwise::Unary(op) => {
            let at_once =
                matches!(op, Unary::Neg | Unary::Abs | Unary::Sign | Unary::Square | Unary::Not);
            at_once || op == Unary::Exp || limits.computes_again
        }
        Elementwise::Binary(op) => {
            limits.computes_again
                || !matches!(op, Binary::Power | Binary::Atan2 | Binary::Remainder)
        }
        Elementwise::Compare(_) | Elementwise::Select(_) | Elementwise::Cast(_) => true,
    }
}
