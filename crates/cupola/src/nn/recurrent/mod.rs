//! Recurrent layers, which take one step after the other.

mod cells;

use cupola_core::ops::S;
use cupola_core::transform::{LoopOptions, scan};
use cupola_core::tree::{Leaf, Path, Tree};
use cupola_core::{Array, Error, Result, ops};

use super::Layer;
use super::parts::{Part, Parts, visit_leaves, visit_leaves_mut, visit_settings};
use cells::{expect_state, recurrent};

pub use cells::{GruCell, LstmCell, RnnCell};

/// The steps of [`RnnCell`] along the last axis but one.
///
/// J. L. Elman, *Finding structure in time*, Cognitive Science 14, 1990.
///
/// # Shapes
/// `[.., L, in]` gives the hidden state after each step, `[.., L, hidden]`. Parameters are the
/// cell's.
///
/// # Dtypes
/// Input, state and parameters promote.
///
/// # Errors
/// `forward` fails where the last axis is not `in`, there are no steps, or a state does not fit.
///
/// # Example
/// ```
/// use cupola::{DType, nn::{Layer, Relu, Rnn}, ops};
/// let layer = Rnn::new(3, 4)?.nonlinearity(Relu);
/// let y = layer.forward(&ops::ones([2, 5, 3], DType::F32)?)?;
/// assert_eq!(y.shape()[..], [2, 5, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone)]
pub struct Rnn {
    /// What a step does.
    pub cell: RnnCell,
}

/// The steps of [`GruCell`] along the last axis but one: gated recurrent units.
///
/// # Shapes
/// `[.., L, in]` gives the hidden state after each step, `[.., L, hidden]`. Parameters are the
/// cell's.
///
/// # Dtypes
/// Input, state and parameters promote.
///
/// # Errors
/// `forward` fails where the last axis is not `in`, there are no steps, or a state does not fit.
///
/// # Example
/// ```
/// use cupola::{DType, nn::{Gru, Layer}, ops};
/// let y = Gru::new(3, 4)?.forward(&ops::ones([2, 5, 3], DType::F32)?)?;
/// assert_eq!(y.shape()[..], [2, 5, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gru {
    /// What a step does.
    pub cell: GruCell,
}

/// The steps of [`LstmCell`] along the last axis but one: long short-term memory.
///
/// # Shapes
/// `[.., L, in]` gives the states after each step, `[.., L, hidden]`: [`Lstm::forward_from`] those
/// of h and of c, `forward` those of h alone. Parameters are the cell's.
///
/// # Dtypes
/// Input, states and parameters promote.
///
/// # Errors
/// `forward` fails where the last axis is not `in`, there are no steps, or a state does not fit.
///
/// # Example
/// ```
/// use cupola::{DType, nn::Lstm, ops};
/// let x = ops::ones([2, 5, 3], DType::F32)?;
/// let (hidden, cell) = Lstm::new(3, 4)?.forward_from(&x, None, None)?;
/// assert_eq!((&hidden.shape()[..], &cell.shape()[..]), (&[2, 5, 4][..], &[2, 5, 4][..]));
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lstm {
    /// What a step does.
    pub cell: LstmCell,
}

/// A layer whose parts are its cell's, under the same names.
macro_rules! over_steps {
    ($($name:ident $cell:ident $biases:literal;)*) => {$(
        impl Parts for $name {
            fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
                self.cell.parts(path, f);
            }
        }

        impl Tree for $name {
            fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
                visit_leaves(self, path, f);
            }

            fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
                visit_leaves_mut(self, path, f);
            }

            fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
                visit_settings(self, f);
            }
        }

        impl $name {
            #[doc = concat!("A layer of `hidden` features for `inputs` of them, with ", $biases, ".")]
            ///
            /// # Errors
            /// Where a number is 0.
            pub fn new(inputs: usize, hidden: usize) -> Result<Self> {
                Ok(Self { cell: $cell::new(inputs, hidden)? })
            }

            #[doc = concat!("With ", $biases, ", or without.")]
            pub fn bias(mut self, bias: bool) -> Self {
                self.cell = self.cell.bias(bias);
                self
            }
        }
    )*};
}

over_steps! {
    Rnn RnnCell "a bias";
    Gru GruCell "biases";
    Lstm LstmCell "a bias";
}

impl Rnn {
    /// With this in the place of tanh.
    pub fn nonlinearity(mut self, nonlinearity: impl Layer + 'static) -> Self {
        self.cell = self.cell.nonlinearity(nonlinearity);
        self
    }

    /// The hidden state after each step; `hidden` is the one before the first, and 0 otherwise.
    ///
    /// # Errors
    /// Where `x` or `hidden` does not fit.
    pub fn forward_from(&self, x: &Array, hidden: Option<&Array>) -> Result<Array> {
        let x = steps("Rnn", x, |x| self.cell.inward(x))?;
        let recurrent = recurrent(&self.cell.whh)?;
        expect_state("Rnn", "hidden", hidden, &first(&x)?, recurrent.shape()[0])?;
        let step = |x: &Array, h: &[Option<Array>]| {
            Ok(vec![self.cell.step(x, h[0].as_ref(), &recurrent)?])
        };
        Ok(states(&x, vec![hidden.cloned()], step)?.remove(0))
    }
}

impl Gru {
    /// The hidden state after each step; `hidden` is the one before the first, and 0 otherwise.
    ///
    /// # Errors
    /// Where `x` or `hidden` does not fit.
    pub fn forward_from(&self, x: &Array, hidden: Option<&Array>) -> Result<Array> {
        let x = steps("Gru", x, |x| self.cell.inward(x))?;
        let recurrent = recurrent(&self.cell.wh)?;
        expect_state("Gru", "hidden", hidden, &first(&x)?, recurrent.shape()[0])?;
        let step = |x: &Array, h: &[Option<Array>]| {
            Ok(vec![self.cell.step(x, h[0].as_ref(), &recurrent)?])
        };
        Ok(states(&x, vec![hidden.cloned()], step)?.remove(0))
    }
}

impl Lstm {
    /// The hidden and the cell state after each step; `hidden` and `cell` are those before the
    /// first, and 0 otherwise.
    ///
    /// # Errors
    /// Where `x` or a state does not fit.
    pub fn forward_from(
        &self,
        x: &Array,
        hidden: Option<&Array>,
        cell: Option<&Array>,
    ) -> Result<(Array, Array)> {
        let x = steps("Lstm", x, |x| self.cell.inward(x))?;
        let recurrent = recurrent(&self.cell.wh)?;
        let start = first(&x)?;
        expect_state("Lstm", "hidden", hidden, &start, recurrent.shape()[0])?;
        expect_state("Lstm", "cell", cell, &start, recurrent.shape()[0])?;
        let step = |x: &Array, state: &[Option<Array>]| {
            let (hidden, cell) = (state[0].as_ref(), state[1].as_ref());
            let (hidden, cell) = self.cell.step(x, (hidden, cell), &recurrent)?;
            Ok(vec![hidden, cell])
        };
        let mut all = states(&x, vec![hidden.cloned(), cell.cloned()], step)?;
        let cells = all.remove(1);
        Ok((all.remove(0), cells))
    }
}

impl Layer for Rnn {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_from(x, None)
    }
}

impl Layer for Gru {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_from(x, None)
    }
}

impl Layer for Lstm {
    fn forward(&self, x: &Array) -> Result<Array> {
        Ok(self.forward_from(x, None, None)?.0)
    }
}

/// The input's part of every step, which one product gives, along axis 0; at least one.
fn steps(
    op: &'static str,
    x: &Array,
    inward: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Array> {
    if x.rank() < 2 || x.shape()[x.rank() - 2] == 0 {
        let detail = format!("takes [.., steps, features] with a step, input is {}", x.aval());
        return Err(Error::shape(op, detail));
    }
    ops::moveaxis(&inward(x)?, -2, 0)
}

/// The first of the steps.
fn first(steps: &Array) -> Result<Array> {
    ops::index(steps, &[S::At(0)])
}

/// From so many steps on they are a loop: it is recorded and planned as one step, and each of its iterations
/// costs a few microseconds more than a step of a longer plan.
const LOOP: usize = 16;

/// The states after each step, along the axis before the last: `step` makes them from those before. Where none
/// is given before the first step, that is 0.
pub(crate) fn states(
    steps: &Array,
    before: Vec<Option<Array>>,
    step: impl Fn(&Array, &[Option<Array>]) -> Result<Vec<Array>>,
) -> Result<Vec<Array>> {
    let next = |x: &Array, held: Vec<Option<Array>>| -> Result<Vec<Option<Array>>> {
        Ok(step(x, &held)?.into_iter().map(Some).collect())
    };
    let along = |array: &Array| ops::moveaxis(array, 0, -2);
    if steps.shape()[0] >= LOOP {
        // What the first step makes of the states says what they are like.
        let one = first(steps)?;
        let like: Vec<Array> = step(&one, &before)?;
        let init = before.iter().zip(&like).map(|(state, like)| match state {
            Some(state) => {
                ops::astype(&ops::broadcast_to(state, like.shape().clone())?, like.dtype())
            }
            None => ops::zeros_like(like),
        });
        let init = init.collect::<Result<Vec<_>>>()?;
        let after = step(&one, &init.iter().cloned().map(Some).collect::<Vec<_>>())?;
        if after.iter().zip(&init).all(|(after, before)| after.aval() == before.aval()) {
            let step = |held: &[Array], x: &[Array]| {
                let held: Vec<Option<Array>> = held.iter().cloned().map(Some).collect();
                let next = step(&x[0], &held)?;
                Ok((next.clone(), next))
            };
            let (_, all) = scan(step, &init, std::slice::from_ref(steps), LoopOptions::default())?;
            return all.iter().map(along).collect();
        }
    }
    let mut held = before;
    let mut all: Vec<Vec<Array>> = vec![Vec::new(); held.len()];
    for x in &ops::unstack(steps, 0)? {
        held = next(x, held)?;
        all.iter_mut().zip(held.iter().flatten()).for_each(|(all, state)| all.push(state.clone()));
    }
    all.iter().map(|states| ops::stack(&states.iter().collect::<Vec<_>>(), -2)).collect()
}
