//! The closed set of primitives: what every array, gradient and imported model is made of.
//!
//! One file per family. A family's payload holds the parameters; its [`Primitive`] implementation
//! says what comes out ([`Primitive::infer`]), how it differentiates ([`Primitive::diff`]) and how
//! it runs over a batch ([`Primitive::vmap`]). Nothing matches over [`Op`] with a wildcard, so a
//! new primitive does not compile until every rule and every backend has met it.

pub mod arg_reduce;
pub(crate) mod batch;
pub mod binary;
pub mod bitcast;
pub mod call;
pub mod cast;
pub mod compare;
pub mod conv;
pub mod create;
pub mod dot;
pub mod gather;
pub mod mark;
pub mod movement;
pub mod pool;
pub mod random;
pub(crate) mod record;
pub mod reduce;
pub mod scan;
pub mod select;
pub mod sort;
pub mod unary;

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::array::Array;
use crate::error::Result;
use crate::ops;
use crate::shape::Aval;

pub use arg_reduce::ArgReduce;
pub use binary::Binary;
pub use bitcast::Bitcast;
pub use call::{Call, Custom, CustomOp};
pub use cast::Cast;
pub use compare::Compare;
pub use conv::{Conv, ConvRole};
pub use create::{Constant, Input, Iota};
pub use dot::Dot;
pub use gather::{Gather, GatherAxis, Scatter, ScatterAxis, ScatterMode};
pub use mark::Mark;
pub use movement::Movement;
pub use pool::{Pool, PoolRole};
pub use random::RandomBits;
pub use reduce::{Reduce, ReduceKind};
pub use scan::{Scan, ScanKind};
pub use select::Select;
pub use sort::Sort;
pub use unary::Unary;

/// The abstract outputs of a primitive; nearly always one.
pub type Avals = SmallVec<[Aval; 1]>;

/// A primitive with its parameters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// A graph's input.
    Input(Input),
    /// One number, repeated to a shape.
    Constant(Constant),
    /// 0, 1, 2, … along an axis.
    Iota(Iota),
    /// One operand, element by element.
    Unary(Unary),
    /// Two operands, element by element.
    Binary(Binary),
    /// Two operands, element by element, to bool.
    Compare(Compare),
    /// One of two operands, by a third.
    Select(Select),
    /// Another dtype.
    Cast(Cast),
    /// The same bytes as another dtype.
    Bitcast(Bitcast),
    /// The same values, with a meaning for transforms or the planner.
    Mark(Mark),
    /// The same elements, elsewhere.
    Movement(Movement),
    /// Axes folded to one value.
    Reduce(Reduce),
    /// Where an axis has its extreme value.
    ArgReduce(ArgReduce),
    /// An axis folded up to each of its elements.
    Scan(Scan),
    /// Slices at computed places.
    Gather(Gather),
    /// Slices put at computed places.
    Scatter(Scatter),
    /// Elements along one axis at computed places.
    GatherAxis(GatherAxis),
    /// Elements put along one axis at computed places.
    ScatterAxis(ScatterAxis),
    /// A batched matrix product.
    Dot(Dot),
    /// A convolution or one of its gradients.
    Conv(Box<Conv>),
    /// A pooling or one of its gradients.
    Pool(Box<Pool>),
    /// Random bits from a key.
    RandomBits(RandomBits),
    /// Elements of an axis in order.
    Sort(Sort),
    /// A composite with a body of primitives.
    Call(Arc<Call>),
    /// A user's operator.
    Custom(Custom),
}

/// What a primitive's payload knows about itself.
pub trait Primitive: Clone + Eq + Hash + Debug {
    /// The outputs' shapes and dtypes, or an error that names the op and the inputs.
    fn infer(&self, inputs: &[&Aval]) -> Result<Avals>;

    /// The derivative, stated once: both jvp and vjp come from it.
    fn diff(&self) -> Diff<Self>;

    /// The same operation on inputs of which some carry a batch of `size` along axis 0.
    /// At least one does.
    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>>;
}

/// An input or output under `vmap`.
#[derive(Clone, Debug)]
pub struct Batched {
    /// The array; its axis 0 is the batch where `batched`.
    pub array: Array,
    /// Whether axis 0 is the batch.
    pub batched: bool,
}

/// A factor of an elementwise derivative. Masks select, they never multiply: 0·∞ is NaN.
#[derive(Clone, Debug)]
pub enum Partial {
    /// The derivative is 1.
    One,
    /// The derivative is −1.
    NegOne,
    /// The derivative is this array.
    Times(Array),
    /// The derivative is 1 over this array.
    Over(Array),
    /// The derivative is 1 where this bool array is true, and 0 elsewhere.
    Where(Array),
}

/// How operands enter a linear primitive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linearity {
    /// Linear in each differentiable operand while the others are fixed: products.
    Each,
    /// Linear in all differentiable operands together: concatenation, pad, select.
    Joint,
}

/// Tangents or cotangents; `None` is a symbolic zero.
pub type Tangents = Vec<Option<Array>>;

/// The partial derivative of a [`Diff::Partials`] primitive by one input: payload, inputs, output,
/// which input. `None` is zero.
pub type PartialRule<P> = fn(&P, &[Array], &Array, usize) -> Result<Option<Partial>>;
/// The cotangent of one operand of a [`Diff::Linear`] primitive: payload, inputs, which operand,
/// cotangent of the output. `None` is zero.
pub type TransposeRule<P> = fn(&P, &[Array], usize, &Array) -> Result<Option<Array>>;
/// The jvp of a [`Diff::Custom`] primitive: payload, inputs, outputs, tangents of the inputs; gives
/// the tangents of the outputs.
pub type JvpRule<P> = fn(&P, &[Array], &[Array], &[Option<Array>]) -> Result<Tangents>;
/// The vjp of a [`Diff::Custom`] primitive; gives the cotangents of the inputs.
pub type VjpRule<P> = fn(&P, &Reverse<'_>) -> Result<Tangents>;

/// What the vjp of a primitive sees.
pub struct Reverse<'a> {
    /// The primitive's inputs.
    pub inputs: &'a [Array],
    /// What it gave.
    pub outputs: &'a [Array],
    /// The cotangents of the outputs.
    pub cotangents: &'a [Option<Array>],
    /// The inputs whose cotangents somebody will read; the others may be left out.
    pub wanted: &'a [bool],
}

/// A derivative, stated once.
pub enum Diff<P> {
    /// The output does not depend smoothly on any input.
    Zero,
    /// Elementwise: the partial derivative by each input.
    Partials(PartialRule<P>),
    /// Linear: the jvp is the primitive itself on the tangents, the vjp its transpose.
    Linear {
        /// Jointly or operand by operand.
        linearity: Linearity,
        /// Which operands it is linear in; the others (indices, masks) have no derivative.
        operand: fn(&P, usize) -> bool,
        /// The cotangent of one linear operand.
        transpose: TransposeRule<P>,
    },
    /// Anything else.
    Custom {
        /// Forward mode.
        jvp: JvpRule<P>,
        /// Reverse mode.
        vjp: VjpRule<P>,
    },
}

/// Runs `$body` with `$p` bound to the payload of `$op`, whichever family it is.
#[macro_export]
#[doc(hidden)]
macro_rules! with_payload {
    ($op:expr, $p:ident => $body:expr) => {
        match $op {
            $crate::prim::Op::Input($p) => $body,
            $crate::prim::Op::Constant($p) => $body,
            $crate::prim::Op::Iota($p) => $body,
            $crate::prim::Op::Unary($p) => $body,
            $crate::prim::Op::Binary($p) => $body,
            $crate::prim::Op::Compare($p) => $body,
            $crate::prim::Op::Select($p) => $body,
            $crate::prim::Op::Cast($p) => $body,
            $crate::prim::Op::Bitcast($p) => $body,
            $crate::prim::Op::Mark($p) => $body,
            $crate::prim::Op::Movement($p) => $body,
            $crate::prim::Op::Reduce($p) => $body,
            $crate::prim::Op::ArgReduce($p) => $body,
            $crate::prim::Op::Scan($p) => $body,
            $crate::prim::Op::Gather($p) => $body,
            $crate::prim::Op::Scatter($p) => $body,
            $crate::prim::Op::GatherAxis($p) => $body,
            $crate::prim::Op::ScatterAxis($p) => $body,
            $crate::prim::Op::Dot($p) => $body,
            $crate::prim::Op::Conv($p) => {
                let $p = &**$p;
                $body
            }
            $crate::prim::Op::Pool($p) => {
                let $p = &**$p;
                $body
            }
            $crate::prim::Op::RandomBits($p) => $body,
            $crate::prim::Op::Sort($p) => $body,
            $crate::prim::Op::Call($p) => {
                let $p = &**$p;
                $body
            }
            $crate::prim::Op::Custom($p) => $body,
        }
    };
}

impl Op {
    /// The outputs' shapes and dtypes, or an error that names the op and the inputs.
    pub fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        with_payload!(self, p => p.infer(inputs))
    }

    /// The op on inputs of which some carry a batch of `size` along axis 0.
    pub fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        if inputs.iter().any(|i| i.batched) {
            return match size {
                0 => self.vmap_of_nothing(inputs),
                _ => with_payload!(self, p => p.vmap(inputs, size)),
            };
        }
        let arrays: SmallVec<[&Array; 4]> = inputs.iter().map(|i| &i.array).collect();
        let outputs = record::op(self, &arrays)?;
        Ok(outputs.into_iter().map(Batched::shared).collect())
    }

    /// Over an empty batch, which no rule that folds the batch into another axis can tell apart
    /// from an empty example.
    fn vmap_of_nothing(&self, inputs: &[Batched]) -> Result<Vec<Batched>> {
        let example = |input: &Batched| match input.batched {
            true => Aval::new(&input.array.shape()[1..], input.array.dtype()),
            false => input.array.aval().clone(),
        };
        let examples: SmallVec<[Aval; 4]> = inputs.iter().map(example).collect();
        let examples: SmallVec<[&Aval; 4]> = examples.iter().collect();
        let empty = |aval: Aval| {
            let shape: Vec<usize> = std::iter::once(0).chain(aval.shape.iter().copied()).collect();
            Ok(Batched { array: ops::zeros(shape, aval.dtype)?, batched: true })
        };
        self.infer(&examples)?.into_iter().map(empty).collect()
    }

    /// Whether the op computes each output element from the input elements at the same place.
    pub fn is_elementwise(&self) -> bool {
        matches!(self, Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select(_) | Op::Cast(_))
    }

    /// The name in errors, graphs and profiles.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Input(_) => "input",
            Op::Constant(_) => "constant",
            Op::Iota(_) => "iota",
            Op::Unary(u) => u.name(),
            Op::Binary(b) => b.name(),
            Op::Compare(c) => c.name(),
            Op::Select(_) => "select",
            Op::Cast(_) => "astype",
            Op::Bitcast(_) => "view",
            Op::Mark(m) => m.name(),
            Op::Movement(m) => m.name(),
            Op::Reduce(r) => r.kind.name(),
            Op::ArgReduce(a) => a.name(),
            Op::Scan(s) => s.kind.name(),
            Op::Gather(_) => "gather",
            Op::Scatter(_) => "scatter",
            Op::GatherAxis(_) => "take_along_axis",
            Op::ScatterAxis(_) => "put_along_axis",
            Op::Dot(_) => "matmul",
            Op::Conv(c) => c.role.name(),
            Op::Pool(p) => p.role.name(),
            Op::RandomBits(_) => "random_bits",
            Op::Sort(s) => s.name(),
            Op::Call(c) => c.name,
            Op::Custom(c) => c.0.name(),
        }
    }
}

/// Wraps a payload as an [`Op`].
macro_rules! into_op {
    ($($type:ty => $variant:ident $(, $wrap:path)?;)*) => {$(
        impl From<$type> for Op {
            fn from(payload: $type) -> Op {
                Op::$variant($($wrap)?(payload))
            }
        }
    )*};
}

into_op! {
    Input => Input;
    Constant => Constant;
    Iota => Iota;
    Unary => Unary;
    Binary => Binary;
    Compare => Compare;
    Select => Select;
    Cast => Cast;
    Bitcast => Bitcast;
    Mark => Mark;
    Movement => Movement;
    Reduce => Reduce;
    ArgReduce => ArgReduce;
    Scan => Scan;
    Gather => Gather;
    Scatter => Scatter;
    GatherAxis => GatherAxis;
    ScatterAxis => ScatterAxis;
    Dot => Dot;
    Conv => Conv, Box::new;
    Pool => Pool, Box::new;
    RandomBits => RandomBits;
    Sort => Sort;
    Call => Call, Arc::new;
    Custom => Custom;
}

/// The one-output result of [`Primitive::infer`].
pub(crate) fn one(aval: Aval) -> Result<Avals> {
    Ok(SmallVec::from_buf([aval]))
}

/// Checks how many inputs came.
pub(crate) fn expect_inputs(op: &'static str, inputs: &[&Aval], count: usize) -> Result<()> {
    if inputs.len() == count {
        return Ok(());
    }
    Err(crate::error::Error::argument(
        op,
        format!("takes {count} inputs, {} were given", inputs.len()),
    ))
}

/// Checks that elementwise inputs have one shape; [`crate::ops`] broadcasts before it records.
pub(crate) fn same_shapes(op: &'static str, inputs: &[&Aval]) -> Result<()> {
    if inputs.windows(2).all(|w| w[0].shape == w[1].shape) {
        return Ok(());
    }
    Err(crate::error::Error::shape(op, format!("inputs {inputs:?} differ in shape")))
}

/// Checks that inputs have one dtype; [`crate::ops`] promotes before it records.
pub(crate) fn same_dtypes(op: &'static str, inputs: &[&Aval]) -> Result<()> {
    if inputs.windows(2).all(|w| w[0].dtype == w[1].dtype) {
        return Ok(());
    }
    Err(crate::error::Error::dtype(op, format!("inputs {inputs:?} differ in dtype")))
}
