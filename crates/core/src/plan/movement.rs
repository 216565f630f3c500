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
        is_result: bool,
    ) -> Val<'a> {
        let form = Form::from(&node.avals[0]);
        // What is written in parts lies as most of them do. Who asked for it gets it row-major.
        let places = |fusion: &Self, parts: &[Val<'a>]| match is_result {
            true => (0..form.shape.rank()).collect(),
            false => fusion.most(parts, form),
        };
        match movement {
            Movement::SliceUpdate { start, strides } => {
                let places = places(self, &inputs[..1]);
                let whole = self.turned_slot(form, &places);
                self.write_turned(inputs[0].clone(), whole.clone(), &places);
                let mut dest = whole.clone();
                dest.form = self.graph.aval(node.inputs[1]).into();
                for axis in 0..strides.len() {
                    dest.strides[axis] *= strides[axis] as isize;
                }
                add_start(&mut dest.offset, node.source, start, &whole.strides);
                self.write_turned(inputs[1].clone(), dest, &places);
                self.filled(whole)
            }
            Movement::Pad { low, high: _, interior } => {
                let places = places(self, &inputs[..1]);
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
                let whole = self.turned_slot(form, &places);
                self.write_turned(value, whole.clone(), &places);
                let mut dest = whole.clone();
                dest.form = self.graph.aval(node.inputs[0]).into();
                for axis in 0..low.len() {
                    dest.offset.fixed += dest.strides[axis] * low[axis] as isize;
                    dest.strides[axis] *= interior[axis] as isize + 1;
                }
                if dest.form.shape.size() > 0 {
                    self.write_turned(inputs[0].clone(), dest, &places);
                }
                self.filled(whole)
            }
            Movement::Concatenate { axis } => {
                let places = places(self, inputs);
                let whole = self.turned_slot(form, &places);
                let mut at = 0;
                for (index, piece) in inputs.iter().enumerate() {
                    let part = Form::from(self.graph.aval(node.inputs[index]));
                    let fixed = at * whole.strides[*axis];
                    at += part.shape[*axis] as isize;
                    if part.shape.size() > 0 || inputs.len() == index + 1 {
                        let offset = Offset { fixed, ..Offset::default() };
                        let dest = View { form: part, offset, ..whole.clone() };
                        self.write_turned(piece.clone(), dest, &places);
                    }
                }
                self.filled(whole)
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

    /// A slot after its last writer.
    fn filled(&self, whole: View<'a>) -> Val<'a> {
        let group = self.slots[whole.slot as usize].group;
        Val::array(whole, group)
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
                if let Some(copied) = self.copy_in_order(input, movement, form) {
                    return copied;
                }
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
