//! Elementwise groups that touch more arrays than a program may become several.
//!
//! While a group grows nobody knows who will read what its members make, and each result that somebody reads is one more
//! array: of a hundred members that a gradient looks at again each has one.

use std::ops::Range;

use smallvec::SmallVec;

use super::fuse::{Fusion, Group, GroupKind, Member, Slot, Use, Val, distinct};

/// A member reads at most three arrays and makes one.
const MOST_TOUCHED: usize = 4;

impl<'a> Fusion<'a> {
    /// Divides what is too large. It comes last: what values say of the groups that they wait for is not told anew.
    pub(super) fn split(&mut self) {
        let cuts: Vec<Vec<Range<usize>>> = (self.groups.iter().enumerate())
            .map(|(index, group)| group.as_ref().map_or_else(Vec::new, |g| self.cuts(index, g)))
            .collect();
        if cuts.iter().all(Vec::is_empty) {
            return;
        }
        let mut pieces: Vec<Vec<usize>> = Vec::with_capacity(cuts.len());
        let mut groups = Vec::with_capacity(cuts.len());
        for (group, cuts) in std::mem::take(&mut self.groups).into_iter().zip(&cuts) {
            let first = groups.len();
            match group {
                Some(mut group) if !cuts.is_empty() => {
                    let mut members = std::mem::take(&mut group.members).into_iter();
                    for cut in cuts {
                        let members: Vec<Member<'a>> = members.by_ref().take(cut.len()).collect();
                        let Group { shape, after, .. } = group;
                        let kind = GroupKind::Map;
                        groups.push(Some(Group { kind, shape, members, after, dest: None }));
                    }
                }
                group => groups.push(group),
            }
            pieces.push((first..groups.len()).collect());
        }
        let last = |group: usize| pieces[group].last().copied().unwrap_or(0);
        for group in groups.iter_mut().flatten() {
            group.after = last(group.after);
        }
        for info in &mut self.slots {
            info.group = last(info.group);
        }
        // Only who makes and reads the arrays of what was divided is somebody else.
        let is_piece = |index: usize| cuts[index].len() > 1;
        let mut readers: Vec<SmallVec<[usize; 4]>> = vec![SmallVec::new(); self.slots.len()];
        for &piece in (0..cuts.len()).filter(|&index| is_piece(index)).flat_map(|i| &pieces[i]) {
            for member in groups[piece].iter().flat_map(|group| &group.members) {
                self.slots[member.slot as usize].group = piece;
                for view in member.args.iter().filter_map(Val::view) {
                    let readers = &mut readers[view.slot as usize];
                    if !readers.contains(&piece) {
                        readers.push(piece);
                    }
                }
            }
        }
        for (info, readers) in self.slots.iter_mut().zip(&readers) {
            let mut uses: SmallVec<[Use; 4]> = SmallVec::new();
            for used in std::mem::take(&mut info.uses) {
                let (Use::Direct(group) | Use::Indirect(group)) = used else {
                    uses.push(used);
                    continue;
                };
                let own = readers.iter().copied().filter(|reader| pieces[group].contains(reader));
                let now: SmallVec<[usize; 4]> = match is_piece(group) {
                    true => own.collect(),
                    false => SmallVec::from_slice(&[last(group)]),
                };
                let told = |now| match used {
                    Use::Direct(_) => Use::Direct(now),
                    Use::Indirect(_) | Use::Output => Use::Indirect(now),
                };
                uses.extend(now.into_iter().map(told));
            }
            info.uses = uses;
        }
        self.groups = groups;
    }

    /// The members of the groups that an elementwise group becomes; none where it stays as it is.
    fn cuts(&self, index: usize, group: &Group<'a>) -> Vec<Range<usize>> {
        let (members, most) = (&group.members, self.limits.body_operands);
        let is_map = matches!(group.kind, GroupKind::Map) && group.dest.is_none();
        if !is_map
            || MOST_TOUCHED * members.len() <= most
            || self.touched(index, members, 0..members.len()) <= most
        {
            return Vec::new();
        }
        let mut cuts: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        while start < members.len() {
            let fits = |&end: &usize| self.touched(index, members, start..end) <= most;
            let end = (start + 1..=members.len()).rev().find(fits).unwrap_or(start + 1);
            cuts.push(start..end);
            start = end;
        }
        cuts
    }

    /// How many arrays these of the members of a group read, and make for others.
    fn touched(&self, index: usize, members: &[Member<'a>], own: Range<usize>) -> usize {
        let makes = |slot: Slot| members[own.clone()].iter().any(|m| m.slot == slot);
        let views = members[own.clone()].iter().flat_map(|m| &m.args).filter_map(Val::view);
        let read = distinct(views.filter(|view| !makes(view.slot))).len();
        let later = || members[own.end..].iter().flat_map(|m| &m.args).filter_map(Val::view);
        let is_read = |m: &&Member<'a>| {
            self.slots[m.slot as usize].uses.iter().any(|used| *used != Use::Direct(index))
                || later().any(|view| view.slot == m.slot)
        };
        read + members[own.clone()].iter().filter(is_read).count()
    }
}
