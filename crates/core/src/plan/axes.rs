//! The order of axes in which work runs: that in which what it reads lies in memory.
//!
//! Networks that name channels first have kernels that make them last. What stands between two kernels
//! keeps to their order, so that nothing is put in another one and back; whatever reads it sees the axes
//! that it was given.

use std::cell::OnceCell;
use std::rc::Rc;

use smallvec::SmallVec;

use super::fuse::{Form, Fusion, Slot, Val, ValKind, View};
use crate::prim::Movement;
use crate::prim::movement::view_layout;
use crate::shape::{Layout, Shape};

/// Where in memory each axis lies.
pub(super) type Places = SmallVec<[usize; 4]>;

/// Shapes that no node of a graph has: of memory in which axes lie in another order.
#[derive(Default)]
pub(super) struct Shapes(OnceCell<Box<(Shape, Shapes)>>);

impl Shapes {
    /// Keeps a shape, and gives where the next one goes.
    fn keep(&self, shape: Shape) -> (&Shape, &Shapes) {
        let (shape, next) = &**self.0.get_or_init(|| Box::new((shape, Shapes::default())));
        (shape, next)
    }
}

impl Drop for Shapes {
    /// One after the other: a call for each would be as deep as they are many.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut kept) = next {
            next = kept.1.0.take();
        }
    }
}

/// Numbers along the axes, as the axes lie in memory.
pub(super) fn turned<T: Copy + Default>(numbers: &[T], places: &[usize]) -> SmallVec<[T; 4]>
where
    [T; 4]: smallvec::Array<Item = T>,
{
    let mut out = SmallVec::from_elem(T::default(), numbers.len());
    places.iter().zip(numbers).for_each(|(&place, &number)| out[place] = number);
    out
}

/// `val` over the axes as they lie, with the shape that they have then.
pub(super) fn turn<'a>(val: Val<'a>, places: &[usize], shape: &'a Shape) -> Val<'a> {
    let kind = match val.kind {
        ValKind::Constant(source, Form { dtype, .. }) => {
            ValKind::Constant(source, Form { shape, dtype })
        }
        ValKind::Array(view) => {
            let View { slot, ref form, ref strides, ref offset } = *view;
            let form = Form { shape, dtype: form.dtype };
            let (strides, offset) = (turned(strides, places), offset.clone());
            ValKind::Array(Rc::new(View { slot, form, strides, offset }))
        }
    };
    Val { kind, after: val.after }
}

impl<'a> Fusion<'a> {
    /// The shape whose axes lie as `places` say.
    pub fn turned_shape(&mut self, shape: &Shape, places: &[usize]) -> &'a Shape {
        let (shape, next) = self.shapes.keep(Shape::from(&turned(shape, places)[..]));
        self.shapes = next;
        shape
    }

    /// A slot that its makers fill, whose axes lie as `places` say, read as `form`.
    pub fn turned_slot(&mut self, form: Form<'a>, places: &[usize]) -> View<'a> {
        let shape = match places.is_sorted() {
            true => form.shape,
            false => self.turned_shape(form.shape, places),
        };
        let slot = self.slot(Form { shape, dtype: form.dtype }, 0);
        self.read_turned(slot, form, places)
    }

    /// How memory whose axes lie as `places` say is read as `form`.
    pub fn read_turned(&self, slot: Slot, form: Form<'a>, places: &[usize]) -> View<'a> {
        let steps = self.slots[slot as usize].form.shape.row_major();
        let strides = places.iter().map(|&place| steps[place]).collect();
        View { slot, form, strides, offset: Default::default() }
    }

    /// Copies `val` into `dest`, over axes that lie as `places` say.
    pub fn write_turned(&mut self, val: Val<'a>, dest: View<'a>, places: &[usize]) {
        if places.is_sorted() {
            return self.write(val, dest);
        }
        let shape = self.turned_shape(dest.form.shape, places);
        let form = Form { shape, dtype: dest.form.dtype };
        let dest = View { form, strides: turned(&dest.strides, places), ..dest };
        self.write(turn(val, places, shape), dest);
    }

    /// A copy of `input` that `movement` can read as `form`, as strides say, where that can keep the order of axes
    /// that `input` has and needs not be row-major.
    pub fn copy_in_order(
        &mut self,
        input: &Val<'a>,
        movement: &Movement,
        form: Form<'a>,
    ) -> Option<Val<'a>> {
        let view = input.view().filter(|view| self.slots[view.slot as usize].group != 0)?;
        let shape = view.form.shape;
        let places = by_steps(shape, &view.strides);
        if walk(&places, shape).is_sorted() {
            return None;
        }
        let steps = Shape::from(&turned(shape, &places)[..]).row_major();
        let strides = places.iter().map(|&place| steps[place]).collect();
        let moved = view_layout(movement, shape, &Layout { strides, offset: 0 }, form.shape)?;
        let over = self.turned_shape(shape, &places);
        let after = by_steps(form.shape, &moved.strides);
        let memory = self.turned_shape(form.shape, &after);
        let (slot, group) = self.copy_over(
            turn(input.clone(), &places, over),
            over,
            Form { shape: memory, ..form },
        );
        Some(Val::array(self.read_turned(slot, form, &after), group))
    }

    /// Where the axes of an elementwise node lie, and the shape there, where whatever it reads in full was made in
    /// one other order of axes.
    pub fn order(&mut self, args: &[Val<'a>], form: Form<'a>) -> Option<(Places, &'a Shape)> {
        let mut found: Option<(Places, Option<&'a Shape>, usize)> = None;
        for val in args {
            let Some(view) = val.view().filter(|view| !is_broadcast(view)) else { continue };
            if view.form.shape != form.shape {
                return None;
            }
            let places = self.places(view)?;
            let memory = self.slots[view.slot as usize].form.shape;
            let whole = (memory.size() == form.shape.size()).then_some(memory);
            found = match found {
                Some((known, ..)) if walk(&known, form.shape) != walk(&places, form.shape) => {
                    return None;
                }
                // The last one may be continued.
                Some(known) if whole.is_none() || known.1.is_some() && known.2 > val.after => {
                    Some(known)
                }
                Some(_) | None => Some((places, whole, val.after)),
            };
        }
        let (places, whole, _) = found.filter(|(places, ..)| !places.is_sorted())?;
        let shape = whole.unwrap_or_else(|| self.turned_shape(form.shape, &places));
        Some((places, shape))
    }

    /// Where the axes of most of these elements lie, of which each axis is an axis of memory, in a kernel's order.
    pub fn most(&self, pieces: &[Val<'a>], form: Form<'a>) -> Places {
        let rank = form.shape.rank();
        let mut votes: SmallVec<[(Places, Places, usize); 2]> = SmallVec::new();
        for view in pieces.iter().filter_map(Val::view).filter(|view| !is_broadcast(view)) {
            let places = self.places(view).unwrap_or_else(|| (0..rank).collect());
            let (walk, size) = (walk(&places, form.shape), view.form.shape.size());
            match votes.iter_mut().find(|(known, ..)| *known == walk) {
                Some((.., votes)) => *votes += size,
                None => votes.push((walk, places, size)),
            }
        }
        let most = votes.into_iter().max_by_key(|(.., votes)| *votes);
        let most = most.filter(|(walk, ..)| !walk.is_sorted());
        most.map_or_else(|| (0..rank).collect(), |(_, places, _)| places)
    }

    /// Which axis of memory each axis of `view` walks, if it walks all of them, whole or in part. None of what is
    /// there before the plan runs: others chose its order.
    fn places(&self, view: &View<'a>) -> Option<Places> {
        let info = &self.slots[view.slot as usize];
        let (shape, memory) = (view.form.shape, info.form.shape);
        if info.group == 0 || shape.rank() != memory.rank() {
            return None;
        }
        let steps = memory.row_major();
        let mut places: Places = SmallVec::from_elem(usize::MAX, shape.rank());
        let mut taken = 0u128;
        // Axes of one element lie where the others leave room.
        for is_one in [false, true] {
            for axis in (0..shape.rank()).filter(|&axis| (shape[axis] == 1) == is_one) {
                let fits = |&at: &usize| {
                    let walks = steps[at] == view.strides[axis] && shape[axis] <= memory[at];
                    taken & 1 << at == 0 && (is_one || walks)
                };
                let at = (0..memory.rank()).find(fits)?;
                taken |= 1 << at;
                places[axis] = at;
            }
        }
        Some(places)
    }
}

fn is_broadcast(view: &View<'_>) -> bool {
    view.form.shape.iter().zip(&view.strides).any(|(&size, &stride)| size > 1 && stride == 0)
}

/// Where axes lie whose elements are so far apart. Those of one element, and of repeated ones, lie with the axis
/// before them.
fn by_steps(shape: &Shape, strides: &[isize]) -> Places {
    let mut step = isize::MAX;
    let steps: SmallVec<[isize; 4]> = (shape.iter().zip(strides))
        .map(|(&size, &stride)| {
            step = if size == 1 || stride == 0 { step } else { stride.saturating_abs() };
            step
        })
        .collect();
    let mut order: Places = (0..strides.len()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(steps[axis]));
    let mut places = order.clone();
    order.iter().enumerate().for_each(|(place, &axis)| places[axis] = place);
    places
}

/// The axes that have more than one element, in the order in which they lie.
fn walk(places: &Places, shape: &Shape) -> Places {
    let mut axes: Places = (0..shape.rank()).filter(|&axis| shape[axis] != 1).collect();
    axes.sort_by_key(|&axis| places[axis]);
    axes
}
