//! Recurrent cells, which take one step.

use std::sync::Arc;

use cupola_core::{Array, DType, Error, Result, Shape, ops};

use crate::amp;
use crate::nn::cell::Param;
use crate::nn::linear::project;
use crate::nn::{Layer, Module, Tanh, init};

/// One step of [`Rnn`](crate::nn::Rnn): h' = tanh(W·x + U·h + b).
///
/// # Shapes
/// Input `[.., in]` and hidden state `[.., hidden]` give `[.., hidden]`. `Wxh` (W) is
/// `[hidden, in]`, `Whh` (U) `[hidden, hidden]` and `bias` `[hidden]`; they start even over
/// ±1/√hidden.
///
/// # Dtypes
/// Input, state and parameters promote.
///
/// # Example
/// ```
/// use cupola::{DType, nn::RnnCell, ops};
/// let (cell, x) = (RnnCell::new(3, 4)?, ops::ones([2, 3], DType::F32)?);
/// let hidden = cell.forward(&x, None)?;
/// assert_eq!(cell.forward(&x, Some(&hidden))?.shape()[..], [2, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Module)]
pub struct RnnCell {
    /// The matrix of the input.
    #[module(name = "Wxh")]
    pub wxh: Param,
    /// The matrix of the hidden state.
    #[module(name = "Whh")]
    pub whh: Param,
    /// What is added.
    pub bias: Option<Param>,
    nonlinearity: Arc<dyn Layer>,
}

/// One step of [`Gru`](crate::nn::Gru).
///
/// With the logistic function σ,
/// - r = σ(Wᵣ·x + bᵣ + Uᵣ·h),
/// - z = σ(W_z·x + b_z + U_z·h),
/// - n = tanh(Wₙ·x + bₙ + r·(Uₙ·h + b')),
/// - h' = (1 − z)·n + z·h.
///
/// K. Cho et al., *Learning phrase representations using RNN encoder–decoder*, EMNLP 2014; the reset
/// gate r stands behind the product, as in cuDNN, PyTorch and MLX.
///
/// # Shapes
/// Input `[.., in]` and hidden state `[.., hidden]` give `[.., hidden]`. What belongs to r, z and n
/// lies below one another in `Wx` `[3·hidden, in]`, `Wh` (U) `[3·hidden, hidden]` and `b`
/// `[3·hidden]`; `bhn` (b') is `[hidden]`. They start even over ±1/√hidden.
///
/// # Dtypes
/// Input, state and parameters promote.
///
/// # Example
/// ```
/// use cupola::{DType, nn::GruCell, ops};
/// let (cell, x) = (GruCell::new(3, 4)?, ops::ones([2, 3], DType::F32)?);
/// let hidden = cell.forward(&x, None)?;
/// assert_eq!(cell.forward(&x, Some(&hidden))?.shape()[..], [2, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct GruCell {
    /// The matrices of the input.
    #[module(name = "Wx")]
    pub wx: Param,
    /// The matrices of the hidden state.
    #[module(name = "Wh")]
    pub wh: Param,
    /// What is added.
    pub b: Option<Param>,
    /// What is added to the hidden state's part of n.
    pub bhn: Option<Param>,
}

/// One step of [`Lstm`](crate::nn::Lstm).
///
/// With the logistic function σ,
/// - i = σ(Wᵢ·x + Uᵢ·h + bᵢ),
/// - f = σ(W_f·x + U_f·h + b_f),
/// - g = tanh(W_g·x + U_g·h + b_g),
/// - o = σ(Wₒ·x + Uₒ·h + bₒ),
/// - c' = f·c + i·g,
/// - h' = o·tanh(c').
///
/// S. Hochreiter, J. Schmidhuber, *Long short-term memory*, Neural Computation 9, 1997; the forget
/// gate f: F. Gers, J. Schmidhuber, F. Cummins, *Learning to forget*, Neural Computation 12, 2000.
///
/// # Shapes
/// Input `[.., in]`, hidden and cell state `[.., hidden]` give two states `[.., hidden]`. What
/// belongs to i, f, g and o lies below one another in `Wx` (W) `[4·hidden, in]`, `Wh` (U)
/// `[4·hidden, hidden]` and `bias` `[4·hidden]`. They start even over ±1/√hidden.
///
/// # Dtypes
/// Input, states and parameters promote.
///
/// # Example
/// ```
/// use cupola::{DType, nn::LstmCell, ops};
/// let (layer, x) = (LstmCell::new(3, 4)?, ops::ones([2, 3], DType::F32)?);
/// let (hidden, cell) = layer.forward(&x, None, None)?;
/// assert_eq!(layer.forward(&x, Some(&hidden), Some(&cell))?.1.shape()[..], [2, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct LstmCell {
    /// The matrices of the input.
    #[module(name = "Wx")]
    pub wx: Param,
    /// The matrices of the hidden state.
    #[module(name = "Wh")]
    pub wh: Param,
    /// What is added.
    pub bias: Option<Param>,
}

impl RnnCell {
    /// A cell of `hidden` features for `inputs` of them, with a bias.
    ///
    /// # Errors
    /// Where a number is 0.
    pub fn new(inputs: usize, hidden: usize) -> Result<Self> {
        let [wxh, whh, bias] = draw("Rnn", inputs, hidden, 1)?;
        Ok(RnnCell { wxh, whh, bias: Some(bias), nonlinearity: Arc::new(Tanh) })
    }

    /// With a bias, or without.
    pub fn bias(mut self, bias: bool) -> Self {
        if !bias {
            self.bias = None;
        }
        self
    }

    /// With this in the place of tanh.
    pub fn nonlinearity(mut self, nonlinearity: impl Layer + 'static) -> Self {
        self.nonlinearity = Arc::new(nonlinearity);
        self
    }

    /// The hidden state after a step; without one before, that is 0.
    ///
    /// # Errors
    /// Where the last axis of `x` or `hidden` does not fit, or their other axes do not.
    pub fn forward(&self, x: &Array, hidden: Option<&Array>) -> Result<Array> {
        let x = self.inward(x)?;
        expect_state("Rnn", "hidden", hidden, &x, self.whh.shape()[1])?;
        self.step(&x, hidden, &recurrent(&self.whh)?)
    }

    pub(super) fn inward(&self, x: &Array) -> Result<Array> {
        project("Rnn", x, &self.wxh, self.bias.as_ref())
    }

    /// A step from the input's part.
    pub(super) fn step(
        &self,
        x: &Array,
        hidden: Option<&Array>,
        recurrent: &Array,
    ) -> Result<Array> {
        self.nonlinearity.forward(&plus_product(x, hidden, recurrent)?)
    }
}

impl GruCell {
    /// A cell of `hidden` features for `inputs` of them, with biases.
    ///
    /// # Errors
    /// Where a number is 0.
    pub fn new(inputs: usize, hidden: usize) -> Result<Self> {
        let [wx, wh, b] = draw("Gru", inputs, hidden, 3)?;
        let bhn = Some(even(hidden, &[hidden])?);
        Ok(GruCell { wx, wh, b: Some(b), bhn })
    }

    /// With biases, or without.
    pub fn bias(mut self, bias: bool) -> Self {
        if !bias {
            (self.b, self.bhn) = (None, None);
        }
        self
    }

    /// The hidden state after a step; without one before, that is 0.
    ///
    /// # Errors
    /// Where the last axis of `x` or `hidden` does not fit, or their other axes do not.
    pub fn forward(&self, x: &Array, hidden: Option<&Array>) -> Result<Array> {
        let x = self.inward(x)?;
        expect_state("Gru", "hidden", hidden, &x, self.wh.shape()[1])?;
        self.step(&x, hidden, &recurrent(&self.wh)?)
    }

    pub(super) fn inward(&self, x: &Array) -> Result<Array> {
        project("Gru", x, &self.wx, self.b.as_ref())
    }

    /// A step from the input's part.
    pub(super) fn step(
        &self,
        x: &Array,
        hidden: Option<&Array>,
        recurrent: &Array,
    ) -> Result<Array> {
        let x = ops::split(x, 3, -1)?;
        let h = match hidden {
            Some(hidden) => Some(ops::split(&ops::matmul(hidden, recurrent)?, 3, -1)?),
            None => None,
        };
        let gate = |i: usize| match &h {
            Some(h) => ops::sigmoid(&ops::add(&x[i], &h[i])?),
            None => ops::sigmoid(&x[i]),
        };
        let (r, z) = (gate(0)?, gate(1)?);
        let bias = self.bhn.as_ref().map(|bias| amp::operand("matmul", &bias.get())).transpose()?;
        let inner = match (&h, bias) {
            (Some(h), Some(bias)) => Some(ops::add(&h[2], &bias)?),
            (Some(h), None) => Some(h[2].clone()),
            (None, bias) => bias,
        };
        let new = match inner {
            Some(inner) => ops::add(&x[2], &ops::multiply(&r, &inner)?)?,
            None => x[2].clone(),
        };
        let new = ops::multiply(&ops::subtract(1, &z)?, &ops::tanh(&new)?)?;
        match hidden {
            Some(hidden) => ops::add(&new, &ops::multiply(&z, hidden)?),
            None => Ok(new),
        }
    }
}

impl LstmCell {
    /// A cell of `hidden` features for `inputs` of them, with a bias.
    ///
    /// # Errors
    /// Where a number is 0.
    pub fn new(inputs: usize, hidden: usize) -> Result<Self> {
        let [wx, wh, bias] = draw("Lstm", inputs, hidden, 4)?;
        Ok(LstmCell { wx, wh, bias: Some(bias) })
    }

    /// With a bias, or without.
    pub fn bias(mut self, bias: bool) -> Self {
        if !bias {
            self.bias = None;
        }
        self
    }

    /// The hidden and the cell state after a step; what is not given before is 0.
    ///
    /// # Errors
    /// Where the last axis of `x` or a state does not fit, or their other axes do not.
    pub fn forward(
        &self,
        x: &Array,
        hidden: Option<&Array>,
        cell: Option<&Array>,
    ) -> Result<(Array, Array)> {
        let x = self.inward(x)?;
        let size = self.wh.shape()[1];
        expect_state("Lstm", "hidden", hidden, &x, size)?;
        expect_state("Lstm", "cell", cell, &x, size)?;
        self.step(&x, (hidden, cell), &recurrent(&self.wh)?)
    }

    pub(super) fn inward(&self, x: &Array) -> Result<Array> {
        project("Lstm", x, &self.wx, self.bias.as_ref())
    }

    /// A step from the input's part.
    pub(super) fn step(
        &self,
        x: &Array,
        (hidden, cell): (Option<&Array>, Option<&Array>),
        recurrent: &Array,
    ) -> Result<(Array, Array)> {
        let gates = ops::split(&plus_product(x, hidden, recurrent)?, 4, -1)?;
        let mut new = ops::multiply(&ops::sigmoid(&gates[0])?, &ops::tanh(&gates[2])?)?;
        if let Some(cell) = cell {
            new = ops::add(&ops::multiply(&ops::sigmoid(&gates[1])?, cell)?, &new)?;
        }
        Ok((ops::multiply(&ops::sigmoid(&gates[3])?, &ops::tanh(&new)?)?, new))
    }
}

/// The transposed matrices of a hidden state.
pub(super) fn recurrent(weight: &Param) -> Result<Array> {
    ops::transpose(&weight.get(), ())
}

/// `x + hidden·recurrent`, and `x` where there is no state yet.
fn plus_product(x: &Array, hidden: Option<&Array>, recurrent: &Array) -> Result<Array> {
    match hidden {
        Some(hidden) => ops::add(x, &ops::matmul(hidden, recurrent)?),
        None => Ok(x.clone()),
    }
}

/// A state before a step broadcasts to the one after it: the axes of the step, of `size` features.
pub(super) fn expect_state(
    op: &'static str,
    what: &str,
    state: Option<&Array>,
    step: &Array,
    size: usize,
) -> Result<()> {
    let Some(state) = state else { return Ok(()) };
    let lead = &step.aval().shape[..step.rank().saturating_sub(1)];
    let expected = Shape::from([lead, &[size]].concat());
    let own = &state.aval().shape;
    let fits = own.last() == Some(&size)
        && own.broadcast(&expected, op).is_ok_and(|shape| shape == expected);
    if fits && state.dtype().is_float() {
        return Ok(());
    }
    Err(Error::shape(op, format!("{what} state {} is not of floats {expected}", state.aval())))
}

/// Even over ±1/√hidden.
fn even(hidden: usize, shape: &[usize]) -> Result<Param> {
    let bound = 1.0 / (hidden as f64).sqrt();
    Ok(Param::new(init::uniform(-bound, bound, shape, DType::F32)?))
}

/// The input's and the state's matrices and the bias, with so many gates below one another.
fn draw(op: &'static str, inputs: usize, hidden: usize, gates: usize) -> Result<[Param; 3]> {
    if inputs == 0 || hidden == 0 {
        let detail = format!("inputs {inputs} and hidden {hidden} are at least 1");
        return Err(Error::argument(op, detail));
    }
    let rows = hidden.saturating_mul(gates);
    Ok([even(hidden, &[rows, inputs])?, even(hidden, &[rows, hidden])?, even(hidden, &[rows])?])
}
