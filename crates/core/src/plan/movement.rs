//! Movement: other ways to read a slot, and where no strides can say it, copies.

use super::flat::Flat;
use super::fuse::{Form, Fusion, Offset, Val, ValKind, View};
use crate::prim::Movement;
use crate::prim::movement::view_layout;
use crate::shape::Layout;

impl<'a> Fusion<'a> {
    /// What `movement`, the op of `node`, makes of its inputs.
    pub(super) fn movement(
        &mut self,
        movement: &Movement,
        node: &Flat<'a>,
        inputs: &[Val<'a>],
    ) -> Val<'a> {
        let form = Form::from(&node.avals[0]);
        match movement {
            Movement::SliceUpdate { start, strides } => {
                let whole = self.copy(inputs[0].clone(), self.graph.aval(node.inputs[0]).into());
                let Some(view) = whole.view() else { return whole };
                let update = self.graph.aval(node.inputs[1]).into();
                let mut dest = View { form: update, ..View::clone(view) };
                for axis in 0..strides.len() {
                    dest.strides[axis] *= strides[axis] as isize;
                }
                add_start(&mut dest.offset, node.source, start, &view.strides);
                self.write(inputs[1].clone(), dest);
                self.array(view.slot, self.slots[view.slot as usize].group)
            }
            Movement::Pad { low, high: _, interior } => {
                let value = match &inputs[1].kind {
                    ValKind::Constant(source, _) => {
                        Val { kind: ValKind::Constant(*source, form), after: inputs[1].after }
                    }
                    ValKind::Array(view) => {
                        let strides = smallvec::SmallVec::from_elem(0, form.shape.rank());
                        let spread = View { form, strides, ..View::clone(view) };
                        Val::array(spread, inputs[1].after)
                    }
                };
                let filled = self.copy(value, form);
                let Some(view) = filled.view() else { return filled };
                let inner = self.graph.aval(node.inputs[0]).into();
                let mut dest = View { form: inner, ..View::clone(view) };
                for axis in 0..low.len() {
                    dest.offset.fixed += dest.strides[axis] * low[axis] as isize;
                    dest.strides[axis] *= interior[axis] as isize + 1;
                }
                if dest.form.shape.size() > 0 {
                    self.write(inputs[0].clone(), dest);
                }
                self.array(view.slot, self.slots[view.slot as usize].group)
            }
            Movement::Concatenate { axis } => {
                let slot = self.slot(form, 0);
                let strides = form.shape.row_major();
                let mut at = 0;
                for (index, piece) in inputs.iter().enumerate() {
                    let part = Form::from(self.graph.aval(node.inputs[index]));
                    let offset = Offset { fixed: at * strides[*axis], ..Offset::default() };
                    at += part.shape[*axis] as isize;
                    if part.shape.size() > 0 || inputs.len() == index + 1 {
                        let dest = View { slot, form: part, strides: strides.clone(), offset };
                        self.write(piece.clone(), dest);
                    }
                }
                self.array(slot, self.slots[slot as usize].group)
            }
            Movement::Reshape(_)
            | Movement::Flatten { .. }
            | Movement::Unflatten { .. }
            | Movement::Squeeze(_)
            | Movement::ExpandDims(_)
            | Movement::Transpose(_)
            | Movement::Broadcast(_)
            | Movement::Flip(_)
            | Movement::Slice { .. } => self.moved(movement, node, &inputs[0]),
        }
    }

    /// `input` read in another way, or copied where no strides say it.
    fn moved(&mut self, movement: &Movement, node: &Flat<'a>, input: &Val<'a>) -> Val<'a> {
        let form = Form::from(&node.avals[0]);
        let view = match &input.kind {
            ValKind::Constant(source, _) => {
                return Val { kind: ValKind::Constant(*source, form), after: input.after };
            }
            ValKind::Array(view) => view,
        };
        if let Movement::Slice { start, strides, .. } = movement {
            let mut out = View { form, ..View::clone(view) };
            for axis in 0..strides.len() {
                out.strides[axis] *= strides[axis] as isize;
            }
            add_start(&mut out.offset, node.source, start, &view.strides);
            return Val::array(out, input.after);
        }
        let layout = Layout { strides: view.strides.clone(), offset: view.offset.fixed };
        match view_layout(movement, view.form.shape, &layout, form.shape) {
            Some(Layout { strides, offset: fixed }) => {
                let offset = Offset { fixed, starts: view.offset.starts.clone() };
                Val::array(View { slot: view.slot, form, strides, offset }, input.after)
            }
            None => {
                // The elements in row-major order, and then the new shape.
                let copied = self.copy(input.clone(), view.form);
                self.moved(movement, node, &copied)
            }
        }
    }
}

/// Adds a slice's start to an offset: fixed inside a call's body, else read at each run.
fn add_start(offset: &mut Offset, source: Option<u32>, start: &[usize], strides: &[isize]) {
    match source {
        Some(node) => offset.starts.push((node, strides.into())),
        None => {
            offset.fixed += start.iter().zip(strides).map(|(&s, &t)| s as isize * t).sum::<isize>();
        }
    }
}
