//! Small arrays that are repeated along larger ones, as the weights of a norm are, which a few simple instructions
//! make from others: who reads them computes them for each element. Beside a kernel of their own that costs nothing.

use smallvec::SmallVec;

use super::fuse::{Form, Fusion, Group, GroupKind, Member, Offset, Slot, Use, Val, View, Work};
use super::rows::{WIDEST, fits_rows};
use super::sink::{LARGE, bytes, read_by};
use crate::prim::{Binary, Elementwise, Unary};
use crate::shape::Shape;

/// How many groups compute the same.
const SEVERAL: usize = 4;

/// How many instructions are done for each element.
const MOST: usize = 3;

/// How many times as many elements there may be where computing takes longer than reading.
const TIMES: usize = 8;

/// Which axis of a small array each axis of a larger one walks, if any.
type Walked = SmallVec<[Option<usize>; 4]>;

/// What a group computes for itself.
struct Spread {
    target: usize,
    walked: Walked,
    /// The members that it needs, in order, and those that it reads.
    members: SmallVec<[usize; MOST]>,
    wanted: SmallVec<[Slot; MOST]>,
}

impl<'a> Fusion<'a> {
    /// Computes what is small in each of the groups that need it.
    pub(super) fn spread(&mut self) {
        for source in 1..self.groups.len() {
            let Some(spreads) = self.spreads(source) else { continue };
            for Spread { target, walked, members, wanted } in spreads {
                let Some(shape) = self.groups[target].as_ref().map(|into| into.shape) else {
                    continue;
                };
                self.compute_in(target, source, &members, &wanted, &|view| {
                    repeated(view, &walked, shape)
                });
            }
            self.forget(source);
        }
    }

    /// The groups that alone read what a group makes, where each of them can compute it.
    fn spreads(&self, source: usize) -> Option<SmallVec<[Spread; SEVERAL]>> {
        let from = self.groups[source].as_ref()?;
        let is_plain = matches!(from.kind, GroupKind::Map) && from.dest.is_none();
        // What is large lies in memory no longer for it.
        let reads_little = |m: &Member<'a>| {
            let mut views = m.args.iter().filter_map(Val::view);
            views.all(|view| bytes(self.slots[view.slot as usize].form) < LARGE)
        };
        let is_small = |m: &Member<'a>| bytes(self.slots[m.slot as usize].form) < LARGE;
        let is_little = from.members.len() <= MOST
            && from.members.iter().all(|m| is_simple(m) && is_small(m) && reads_little(m));
        if !is_plain || !is_little {
            return None;
        }
        let mut targets: SmallVec<[usize; SEVERAL]> = SmallVec::new();
        for entry in from.members.iter().flat_map(|m| &self.slots[m.slot as usize].uses) {
            match *entry {
                Use::Direct(group) | Use::Indirect(group) if group == source => {}
                Use::Direct(group) | Use::Indirect(group) if targets.contains(&group) => {}
                Use::Direct(group) | Use::Indirect(group) if targets.len() < SEVERAL => {
                    targets.push(group);
                }
                Use::Direct(_) | Use::Indirect(_) | Use::Output => return None,
            }
        }
        let found: Option<SmallVec<_>> =
            targets.into_iter().map(|target| self.spread_in(from, target)).collect();
        found.filter(|targets| !targets.is_empty())
    }

    /// What `target` computes of `from`, if it can.
    fn spread_in(&self, from: &Group<'a>, target: usize) -> Option<Spread> {
        let into = self.groups[target].as_ref()?;
        let takes = match into.kind {
            GroupKind::Map | GroupKind::Reduce { .. } | GroupKind::Rows { .. } => {
                into.dest.is_none()
            }
            GroupKind::Own { .. } => false,
        };
        let is_little = self.limits.computes_again
            || into.shape.size() <= from.shape.size().saturating_mul(TIMES);
        if !takes || !is_little {
            return None;
        }
        let maker = |view: &View<'a>| from.members.iter().position(|m| m.slot == view.slot);
        let mut walked: Option<Walked> = None;
        let mut members: SmallVec<[usize; MOST]> = SmallVec::new();
        for view in read_by(into).filter_map(Val::view) {
            let Some(at) = maker(view) else { continue };
            let own = walks(view, into.shape, from.shape)?;
            if walked.get_or_insert_with(|| own.clone()) != &own {
                return None;
            }
            if !members.contains(&at) {
                members.push(at);
            }
        }
        let walked = walked?;
        let wanted = members.iter().map(|&at| from.members[at].slot).collect();
        // And what these are made of.
        let mut next = 0;
        while let Some(&at) = members.get(next) {
            next += 1;
            for view in from.members[at].args.iter().filter_map(Val::view) {
                if let Some(at) = maker(view).filter(|at| !members.contains(at)) {
                    members.push(at);
                }
            }
        }
        members.sort_unstable();
        let in_rows = matches!(into.kind, GroupKind::Rows { .. });
        let own = || members.iter().map(|&at| &from.members[at]);
        let args = || own().flat_map(|m| &m.args).filter_map(Val::view);
        let outer = || args().filter(|view| maker(view).is_none());
        let fits = outer().all(|view| {
            let view = repeated(view, &walked, into.shape);
            // What has to be read across is put in order once.
            let is_dense = matches!(view.strides.last(), None | Some(0 | 1));
            is_dense && (!in_rows || fits_rows(&view, into.shape))
        });
        let is_narrow = !in_rows || own().all(|m| m.dtype.size() <= WIDEST);
        let folds = self.folds(into);
        let has_room = into.members.len() + members.len() + folds <= self.limits.body_instructions
            && self.operands(&[&into.members], &[]) + folds + outer().count()
                <= self.limits.body_operands;
        (fits && is_narrow && has_room).then_some(Spread { target, walked, members, wanted })
    }
}

/// Which axes of `small`, an array in row-major order, are walked by a view of it over `shape`, if they are in order.
fn walks(view: &View<'_>, shape: &Shape, small: &Shape) -> Option<Walked> {
    if view.form.shape != shape || view.offset != Offset::default() {
        return None;
    }
    let steps = small.row_major();
    let mut walked = Walked::new();
    let mut first = 0;
    for (&size, &stride) in shape.iter().zip(&view.strides) {
        if size == 1 || stride == 0 {
            walked.push(None);
            continue;
        }
        let at = (first..small.rank()).find(|&at| steps[at] == stride && small[at] == size)?;
        walked.push(Some(at));
        first = at + 1;
    }
    Some(walked)
}

/// A view over the axes of a small array as one over the larger `shape`, each of whose axes walks one of them or
/// repeats.
fn repeated<'a>(view: &View<'a>, walked: &Walked, shape: &'a Shape) -> View<'a> {
    let strides = walked.iter().map(|at| at.map_or(0, |at| view.strides[at])).collect();
    let form = Form { shape, dtype: view.form.dtype };
    View { slot: view.slot, form, strides, offset: view.offset.clone() }
}

/// Whether a member takes no more time than reading what it makes.
fn is_simple(member: &Member<'_>) -> bool {
    match member.work {
        Work::Compute(Elementwise::Cast(_)) => true,
        Work::Compute(Elementwise::Unary(op)) => matches!(op, Unary::Neg | Unary::Abs),
        Work::Compute(Elementwise::Binary(op)) => {
            matches!(op, Binary::Add | Binary::Sub | Binary::Mul)
        }
        Work::Compute(Elementwise::Compare(_) | Elementwise::Select(_)) | Work::Copy => false,
    }
}
