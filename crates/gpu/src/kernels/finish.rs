//! What a kernel has computed, on its way to where it belongs: through the epilogue that continues it.

use cupola_core::backend::{Epilogue, Operand, Segment};

use super::Draft;
use super::view::View;
use crate::ir::{Number, Val};

/// Where results go.
pub struct Finish<'k> {
    k: &'k Draft,
    out: View<'k>,
    epilogue: Option<(&'k Epilogue, Vec<View<'k>>, Vec<Number<'k>>)>,
}

/// The operands of [`Finish`] in order: the output, and then what the epilogue reads.
pub fn operands(segment: &Segment) -> Vec<&Operand> {
    let more = segment.epilogue.as_ref().map(|more| &segment.inputs[more.first_input..]);
    std::iter::once(&segment.outputs[0]).chain(more.into_iter().flatten()).collect()
}

/// Binds the outputs of a kernel with so many results, and what the epilogue of the first reads.
pub fn all<'k>(k: &'k Draft, segment: &'k Segment, results: usize) -> Vec<Finish<'k>> {
    let others = 1..results;
    let other = |output| Finish { k, out: k.output(segment, output), epilogue: None };
    std::iter::once(Finish::new(k, segment)).chain(others.map(other)).collect()
}

impl<'k> Finish<'k> {
    /// Binds the output, and what the epilogue reads.
    pub fn new(k: &'k Draft, segment: &'k Segment) -> Self {
        let out = k.output(segment, 0);
        let epilogue = (segment.epilogue.as_ref())
            .map(|more| (more, k.inputs(segment, more.first_input), k.scalars(&more.body)));
        Finish { k, out, epilogue }
    }

    /// Stores neighbours from `index` on, as the operands are walked with `strides`.
    pub fn store(&self, index: &[Val<'k>], strides: &[Vec<Val<'k>>], mut numbers: Vec<Number<'k>>) {
        if let Some((epilogue, views, scalars)) = &self.epilogue {
            let count = numbers.len() as u32;
            let more: Vec<Vec<Number<'k>>> = (views.iter().zip(&strides[1..]))
                .map(|(view, strides)| view.load_many(index, strides, count))
                .collect();
            for (at, number) in numbers.iter_mut().enumerate() {
                let value = number.rounded(self.out.buf.dtype);
                let own = std::iter::once(value).chain(more.iter().map(|list| list[at]));
                let own: Vec<Number<'k>> = own.collect();
                *number = self.k.run(&epilogue.body, &own, scalars)[0];
            }
        }
        self.out.store_many(index, &strides[0], &numbers);
    }
}
