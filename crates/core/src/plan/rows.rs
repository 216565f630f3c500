//! Rows: groups that walk the last axis of one array together, and read it once.
//!
//! A softmax is a largest element, a map, a sum and a map, each over the same rows. Where a device
//! can hold a row ([`crate::backend::Limits::row`]), such groups become one.

use std::rc::Rc;

use smallvec::SmallVec;

use super::fuse::{
    Fusion, Group, GroupKind, Offset, RowFold, Slot, Use, Val, ValKind, View, distinct,
};
use crate::shape::{Shape, is_row_major};

/// Bytes of the widest elements: every device that holds rows has these.
pub(super) const WIDEST: usize = 4;

/// Elements that lie closer are found by 32 bits.
pub(super) const FARTHEST: usize = 1 << 31;

/// Whether programs over the rows of a shape may read or write this.
pub(super) fn fits_rows(view: &View<'_>, shape: &Shape) -> bool {
    let reach: usize = (view.form.shape.iter().zip(&view.strides))
        .map(|(&d, &s)| d.saturating_sub(1).saturating_mul(s.unsigned_abs()))
        .fold(shape.size(), usize::saturating_add);
    view.form.dtype.size() <= WIDEST && reach < FARTHEST
}

/// At which grain a group works on the rows of a shape.
#[derive(Clone, Copy, PartialEq)]
enum Grain {
    /// Something with each element; a fold gives one value a row in the end.
    Elements,
    /// Something with one value a row.
    Row,
}

/// The rows of a shape, and the groups that walk them.
struct Cluster<'a> {
    shape: &'a Shape,
    /// In order.
    groups: SmallVec<[usize; 8]>,
}

impl<'a> Fusion<'a> {
    /// Joins groups that walk the same rows.
    pub(super) fn join_rows(&mut self) {
        for seed in 1..self.groups.len() {
            if let Some(cluster) = self.cluster(seed) {
                self.join_cluster(&cluster);
            }
        }
    }

    /// The groups around the reduction `seed` that are better run as one.
    fn cluster(&self, seed: usize) -> Option<Cluster<'a>> {
        let group = self.groups[seed].as_ref()?;
        let length = *group.shape.last()?;
        let folds = matches!(group.kind, GroupKind::Reduce { .. });
        if !folds || !(2..=self.limits.row).contains(&length) {
            return None;
        }
        let mut cluster = Cluster { shape: group.shape, groups: SmallVec::from_iter([seed]) };
        if !self.is_whole(&cluster) {
            return None;
        }
        while let Some(larger) = self.grown(&cluster) {
            cluster = larger;
        }
        self.reads_once(&cluster).then_some(cluster)
    }

    /// `cluster` with one more of the groups that read what it makes, or make what it reads.
    fn grown(&self, cluster: &Cluster<'a>) -> Option<Cluster<'a>> {
        let mut near: SmallVec<[usize; 32]> = SmallVec::new();
        for &index in &cluster.groups {
            let Some(group) = &self.groups[index] else { continue };
            near.extend(values(group).filter_map(Val::view).map(|view| self.maker(view)));
            near.extend(made(group).flat_map(|slot| self.readers(slot)));
        }
        near.sort_unstable();
        near.dedup();
        near.retain(|index| {
            let group = self.groups[*index].as_ref().filter(|_| !cluster.groups.contains(index));
            group.is_some_and(|group| grain(group, cluster.shape).is_some())
        });
        near.into_iter().find_map(|index| {
            let mut larger = Cluster { shape: cluster.shape, groups: cluster.groups.clone() };
            larger.groups.push(index);
            larger.groups.sort_unstable();
            self.is_whole(&larger).then_some(larger)
        })
    }

    fn maker(&self, view: &View<'a>) -> usize {
        self.slots[view.slot as usize].group
    }

    fn readers(&self, slot: Slot) -> impl Iterator<Item = usize> {
        self.slots[slot as usize].uses.iter().filter_map(|u| match *u {
            Use::Direct(group) | Use::Indirect(group) => Some(group),
            Use::Output => None,
        })
    }

    /// Whether a cluster can run where its last group stands.
    fn is_whole(&self, cluster: &Cluster<'a>) -> bool {
        let last = cluster.groups.last().copied().unwrap_or(0);
        let mut instructions = 0;
        let mut views: SmallVec<[&Rc<View<'a>>; 32]> = SmallVec::new();
        let mut kept = 0;
        for &index in &cluster.groups {
            let Some(group) = &self.groups[index] else { return false };
            let Some(grain) = grain(group, cluster.shape) else { return false };
            let fits = values(group).all(|val| self.is_at_its_place(val, grain, cluster));
            let before = |slot: Slot| {
                self.readers(slot).all(|reader| reader >= last || cluster.groups.contains(&reader))
            };
            let narrow = group.members.iter().all(|m| m.dtype.size() <= WIDEST);
            if !fits || !narrow || !made(group).all(before) {
                return false;
            }
            instructions += group.members.len() + 1;
            views.extend(values(group).filter_map(Val::view));
            kept += made(group).filter(|&slot| self.is_kept(slot, cluster)).count();
        }
        let outer =
            |view: &&Rc<View<'a>>| !cluster.groups.contains(&self.slots[view.slot as usize].group);
        distinct(views.into_iter().filter(outer)).len() + kept <= self.limits.body_operands
            && instructions <= self.limits.body_instructions
    }

    /// Whether somebody outside of the cluster that makes `slot` reads it.
    fn is_kept(&self, slot: Slot, cluster: &Cluster<'a>) -> bool {
        self.slots[slot as usize].uses.iter().any(|u| match u {
            Use::Direct(group) | Use::Indirect(group) => !cluster.groups.contains(group),
            Use::Output => true,
        })
    }

    /// Whether what is read at a grain is of the same row, and of the same element in what the
    /// cluster makes; of other arrays their dense axis, of a type that every device has.
    fn is_at_its_place(&self, val: &Val<'a>, grain: Grain, cluster: &Cluster<'a>) -> bool {
        let Some(view) = val.view() else { return true };
        let shape = cluster.shape;
        let (rows, last) = (&shape[..shape.rank() - 1], shape.rank() - 1);
        if !fits_rows(view, shape) {
            return false;
        }
        if !cluster.groups.contains(&self.maker(view)) {
            return grain == Grain::Row || matches!(view.strides[last], 0 | 1);
        }
        let maker = self.groups[self.maker(view)].as_ref();
        let made_by = maker.and_then(|group| makes(group, view.slot, shape));
        let Some(made_by) = made_by else { return false };
        view.offset == Offset::default()
            && match (made_by, grain) {
                (Grain::Elements, Grain::Elements) => {
                    view.form.shape == shape && is_row_major(shape, &view.strides)
                }
                (Grain::Elements, Grain::Row) => false,
                (Grain::Row, Grain::Elements) => {
                    view.form.shape == shape
                        && view.strides[last] == 0
                        && is_row_major(&Shape::from(rows), &view.strides[..last])
                }
                (Grain::Row, Grain::Row) => is_row_major(view.form.shape, &view.strides),
            }
    }

    /// Whether running as one saves a walk over all elements: two groups read the same ones.
    fn reads_once(&self, cluster: &Cluster<'a>) -> bool {
        let mut seen: SmallVec<[Slot; 32]> = SmallVec::new();
        cluster.groups.iter().any(|&index| {
            let Some(group) = &self.groups[index] else { return false };
            if grain(group, cluster.shape) != Some(Grain::Elements) {
                return false;
            }
            let mut own: SmallVec<[Slot; 16]> = values(group)
                .filter_map(Val::view)
                .filter(|view| view.strides.last().is_some_and(|&s| s != 0))
                .map(|view| view.slot)
                .collect();
            own.sort_unstable();
            own.dedup();
            own.retain(|slot| !made(group).any(|made| made == *slot));
            let again = own.iter().any(|slot| seen.contains(slot));
            seen.extend(own);
            if !matches!(group.kind, GroupKind::Reduce { .. }) {
                seen.extend(made(group));
            }
            again
        })
    }

    fn join_cluster(&mut self, cluster: &Cluster<'a>) {
        let Some(&last) = cluster.groups.last() else { return };
        let groups = cluster.groups.iter().filter_map(|&index| self.groups[index].as_ref());
        let touched = groups.flat_map(|group| {
            made(group).chain(values(group).filter_map(Val::view).map(|view| view.slot))
        });
        for slot in touched.collect::<SmallVec<[Slot; 32]>>() {
            let slot = &mut self.slots[slot as usize];
            if cluster.groups.contains(&slot.group) {
                slot.group = last;
            }
            for entry in &mut slot.uses {
                match entry {
                    Use::Direct(g) | Use::Indirect(g) if cluster.groups.contains(g) => {
                        *entry = Use::Direct(last);
                    }
                    Use::Direct(_) | Use::Indirect(_) | Use::Output => {}
                }
            }
        }
        let mut members = Vec::new();
        let mut folds = Vec::new();
        let mut after = 0;
        for &index in &cluster.groups {
            let Some(mut group) = self.groups[index].take() else { continue };
            if grain(&group, cluster.shape) == Some(Grain::Row) {
                let args = group.members.iter_mut().flat_map(|m| &mut m.args);
                args.for_each(|val| spread(val, cluster.shape));
            }
            members.append(&mut group.members);
            after = after.max(group.after);
            if let GroupKind::Reduce { op, input, slot, .. } = group.kind {
                folds.push(RowFold { after: members.len(), kind: op.kind, input, slot });
            }
        }
        let kind = GroupKind::Rows { folds };
        self.groups[last] = Some(Group { kind, shape: cluster.shape, members, after, dest: None });
    }
}

/// The grain of a group to the rows of `shape`, if it walks them.
fn grain(group: &Group<'_>, shape: &Shape) -> Option<Grain> {
    let rank = shape.rank();
    match &group.kind {
        _ if group.dest.is_some() => None,
        GroupKind::Reduce { op, .. } => {
            (group.shape == shape && op.axes[..] == [rank - 1]).then_some(Grain::Elements)
        }
        GroupKind::Map if group.shape == shape => Some(Grain::Elements),
        GroupKind::Map if is_rows(group.shape, shape) => Some(Grain::Row),
        GroupKind::Map | GroupKind::Own { .. } | GroupKind::Rows { .. } => None,
    }
}

/// The grain of what a group that walks the rows of `shape` has in `slot`.
fn makes(group: &Group<'_>, slot: Slot, shape: &Shape) -> Option<Grain> {
    match group.kind {
        GroupKind::Reduce { slot: folded, .. } if folded == slot => Some(Grain::Row),
        GroupKind::Map
        | GroupKind::Reduce { .. }
        | GroupKind::Rows { .. }
        | GroupKind::Own { .. } => grain(group, shape),
    }
}

/// Whether `own` has one place for each row of `shape`: the last axis is gone, or of size 1.
fn is_rows(own: &Shape, shape: &Shape) -> bool {
    let rows = &shape[..shape.rank() - 1];
    own[..] == *rows || own.split_last() == Some((&1, rows))
}

/// A value of every row as one of every element.
fn spread<'a>(val: &mut Val<'a>, shape: &'a Shape) {
    if let ValKind::Array(view) = &mut val.kind {
        let view = Rc::make_mut(view);
        view.form.shape = shape;
        view.strides.truncate(shape.rank() - 1);
        view.strides.push(0);
    }
}

/// Everything that a group reads, or makes and reads.
fn values<'g, 'a>(group: &'g Group<'a>) -> impl Iterator<Item = &'g Val<'a>> {
    let folded = match &group.kind {
        GroupKind::Reduce { input, .. } => Some(input),
        GroupKind::Map | GroupKind::Own { .. } | GroupKind::Rows { .. } => None,
    };
    group.members.iter().flat_map(|m| &m.args).chain(folded)
}

/// The slots that a group makes.
fn made(group: &Group<'_>) -> impl Iterator<Item = Slot> + use<> {
    let folded = match &group.kind {
        GroupKind::Reduce { slot, .. } => Some(*slot),
        GroupKind::Map | GroupKind::Own { .. } | GroupKind::Rows { .. } => None,
    };
    let slots: SmallVec<[Slot; 8]> = group.members.iter().map(|m| m.slot).chain(folded).collect();
    slots.into_iter()
}
