//! The closed set of primitives: what every array, gradient and imported model is made of.
//!
//! One file per family. A family's payload holds the parameters; its [`Primitive`] implementation
//! says what comes out ([`Primitive::infer`]), how it differentiates ([`Primitive::diff`]), how
//! it runs over a batch ([`Primitive::vmap`]), and what the planner and the transforms must know
//! of it besides ([`Primitive::facts`]).
//!
//! [`Op`] sorts primitives by how they run: [`Elementwise`] ones are the instructions of programs
//! that are fused, a [`KernelOp`] has a kernel of its own. Nothing matches over them with a
//! wildcard, so a new primitive does not compile until every rule and every backend has met it.

#![deny(clippy::wildcard_enum_match_arm)]

pub mod arg_reduce;
mod avals;
pub(crate) mod batch;
pub mod binary;
pub mod bitcast;
pub mod call;
pub mod cast;
pub mod compare;
pub mod composite;
pub mod control;
pub mod conv;
pub mod create;
pub mod dot;
pub mod elementwise;
pub mod facts;
pub mod fft;
pub mod gather;
pub mod kernel;
pub mod key;
pub mod linalg;
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

use self::key::Key;
use crate::array::Array;
use crate::autocast::suspended;
use crate::error::Result;
use crate::graph::Graph;
use crate::shape::{Aval, Dims};

pub use arg_reduce::ArgReduce;
pub use avals::Avals;
pub use binary::Binary;
pub use bitcast::Bitcast;
pub use call::{Call, Custom, CustomOp, Held};
pub use cast::Cast;
pub use compare::Compare;
pub use composite::{
    Attention, AttentionGrad, AttentionMaskKind, BatchNorm, Composite, QuantizedDot,
};
pub use control::Control;
pub use conv::{Conv, ConvRole};
pub use create::{Constant, Input, Iota};
pub use dot::Dot;
pub use elementwise::Elementwise;
pub use facts::{Accumulates, Argument, Facts, Sizes};
pub use fft::{Fft, FftKind, FftScale};
pub use gather::{Gather, GatherAxis, Scatter, ScatterAxis, ScatterMode};
pub use kernel::KernelOp;
pub use linalg::{Linalg, Vectors};
pub use mark::Mark;
pub use movement::Movement;
pub use pool::{Pool, PoolRole};
pub use random::RandomBits;
pub use reduce::{Reduce, ReduceKind};
pub use scan::{Scan, ScanKind};
pub use select::Select;
pub use sort::{Sort, SortPart};
pub use unary::Unary;

/// A primitive with its parameters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// A graph's input.
    Input(Input),
    /// One number, repeated to a shape.
    Constant(Constant),
    /// The same elements, elsewhere.
    Movement(Movement),
    /// The same values, with a meaning for transforms or the planner.
    Mark(Mark),
    /// Each element from the elements at its place: an instruction of a program.
    Elementwise(Elementwise),
    /// Axes folded to one value.
    Reduce(Reduce),
    /// What has a kernel of its own.
    Kernel(KernelOp),
    /// What a backend may have a kernel for, and else is made of primitives.
    Composite(Composite),
    /// A traced function.
    Call(Arc<Call>),
    /// A loop, or a choice between branches.
    Control(Arc<Control>),
    /// A user's operator.
    Custom(Custom),
}

/// What a primitive's payload knows about itself.
pub trait Primitive: Clone + Eq + Hash + Debug {
    /// The name in errors, graphs and profiles.
    fn name(&self) -> &'static str;

    /// The outputs' shapes and dtypes, or an error that names the op and the inputs.
    fn infer(&self, inputs: &[&Aval]) -> Result<Avals>;

    /// The derivative, stated once: both jvp and vjp come from it.
    fn diff(&self) -> Diff<Self>;

    /// The same operation on inputs of which some carry a batch of `size` along axis 0.
    /// At least one does.
    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>>;

    /// What the planner and the transforms must know besides.
    fn facts(&self) -> Facts<'_>;

    /// About how many arithmetic operations it takes on inputs and with outputs of these avals: of an
    /// elementwise primitive one for each element.
    fn operations(&self, _inputs: &[&Aval], outputs: &[&Aval]) -> f64 {
        outputs.iter().map(|aval| aval.shape.size() as f64).sum()
    }

    /// Writes down what tells a plan with this primitive from others: all of it but its
    /// [`Facts::argument`].
    fn write_key(&self, key: &mut Key) {
        self.hash(key);
    }
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
            $crate::prim::Op::Movement($p) => $body,
            $crate::prim::Op::Mark($p) => $body,
            $crate::prim::Op::Elementwise(op) => match op {
                $crate::prim::Elementwise::Unary($p) => $body,
                $crate::prim::Elementwise::Binary($p) => $body,
                $crate::prim::Elementwise::Compare($p) => $body,
                $crate::prim::Elementwise::Select($p) => $body,
                $crate::prim::Elementwise::Cast($p) => $body,
            },
            $crate::prim::Op::Reduce($p) => $body,
            $crate::prim::Op::Kernel(op) => $crate::with_kernel_payload!(op, $p => $body),
            $crate::prim::Op::Composite($p) => $body,
            $crate::prim::Op::Call($p) => {
                let $p = &**$p;
                $body
            }
            $crate::prim::Op::Control($p) => {
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
        let outputs = with_payload!(self, p => p.infer(inputs))?;
        for aval in &outputs {
            aval.shape.checked_size(self.name(), aval.dtype)?;
        }
        Ok(outputs)
    }

    /// The body that a call has.
    pub(crate) fn body(&self) -> Option<&Arc<Graph>> {
        match self {
            Op::Call(call) => Some(&call.body),
            Op::Input(_)
            | Op::Constant(_)
            | Op::Movement(_)
            | Op::Mark(_)
            | Op::Elementwise(_)
            | Op::Reduce(_)
            | Op::Kernel(_)
            | Op::Composite(_)
            | Op::Control(_)
            | Op::Custom(_) => None,
        }
    }

    /// The line that recorded what is at `path` in the body that a call has.
    pub(crate) fn line_within(&self, path: &[u32]) -> Option<Arc<str>> {
        self.body().and_then(|body| body.line(path))
    }

    /// The op on inputs of which some carry a batch of `size` along axis 0.
    pub fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        if inputs.iter().any(|i| i.batched) {
            return match size {
                0 => self.vmap_of_nothing(inputs),
                _ => suspended(|| with_payload!(self, p => p.vmap(inputs, size))),
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
        let empty = |aval: &Aval| {
            let none = Aval { shape: batch::prepend(0, &aval.shape), dtype: aval.dtype };
            Ok(Batched { array: record::zeros(&none), batched: true })
        };
        self.infer(&examples)?.iter().map(empty).collect()
    }

    /// The spatial sizes of its first operand, where it says them, too.
    pub(crate) fn spatial(&mut self) -> Option<&mut Dims> {
        match self {
            Op::Kernel(KernelOp::Conv(conv)) => {
                (conv.role == ConvRole::Forward).then_some(&mut conv.input)
            }
            Op::Kernel(KernelOp::Pool(pool)) => {
                let reads =
                    [PoolRole::Max, PoolRole::MaxGather, PoolRole::MaxScatter, PoolRole::Sum];
                reads.contains(&pool.role).then_some(&mut pool.input)
            }
            Op::Kernel(_)
            | Op::Input(_)
            | Op::Constant(_)
            | Op::Movement(_)
            | Op::Mark(_)
            | Op::Elementwise(_)
            | Op::Reduce(_)
            | Op::Composite(_)
            | Op::Call(_)
            | Op::Control(_)
            | Op::Custom(_) => None,
        }
    }

    /// The graphs inside of it.
    pub fn bodies(&self) -> Vec<&Arc<Call>> {
        match self {
            Op::Call(call) => vec![call],
            Op::Control(control) => control.bodies(),
            Op::Input(_)
            | Op::Constant(_)
            | Op::Movement(_)
            | Op::Mark(_)
            | Op::Elementwise(_)
            | Op::Reduce(_)
            | Op::Kernel(_)
            | Op::Composite(_)
            | Op::Custom(_) => Vec::new(),
        }
    }

    /// Whether it may find the values of such inputs wrong when it runs: an index outside its axis, a singular matrix.
    pub(crate) fn looks_at_values(&self, inputs: &[&Aval]) -> bool {
        match self {
            Op::Kernel(KernelOp::Linalg(_)) => true,
            Op::Kernel(op) => !op.index_bounds(inputs).is_empty(),
            Op::Call(call) => call.body.nodes.iter().any(|node| {
                let inputs: SmallVec<[&Aval; 4]> =
                    node.inputs.iter().map(|input| call.body.aval(*input)).collect();
                node.op.looks_at_values(&inputs)
            }),
            Op::Composite(_) | Op::Control(_) | Op::Custom(_) => true,
            Op::Input(_)
            | Op::Constant(_)
            | Op::Movement(_)
            | Op::Mark(_)
            | Op::Elementwise(_)
            | Op::Reduce(_) => false,
        }
    }

    /// Whether it may look at values of `inputs`, told fast.
    pub(crate) fn may_refuse_values(&self, inputs: &[Array]) -> bool {
        match self {
            Op::Call(_) | Op::Composite(_) | Op::Control(_) | Op::Custom(_) => true,
            Op::Kernel(_) => {
                let avals: SmallVec<[&Aval; 4]> = inputs.iter().map(Array::aval).collect();
                self.looks_at_values(&avals)
            }
            Op::Input(_)
            | Op::Constant(_)
            | Op::Movement(_)
            | Op::Mark(_)
            | Op::Elementwise(_)
            | Op::Reduce(_) => false,
        }
    }

    /// Whether it is a graph's input.
    pub fn is_input(&self) -> bool {
        matches!(self, Op::Input(_))
    }

    /// The name in errors, graphs and profiles.
    pub fn name(&self) -> &'static str {
        with_payload!(self, p => Primitive::name(p))
    }

    /// What the planner and the transforms must know of the op.
    pub fn facts(&self) -> Facts<'_> {
        with_payload!(self, p => p.facts())
    }

    /// Writes down what tells a plan with this op from others.
    pub(crate) fn write_key(&self, key: &mut Key) {
        std::mem::discriminant(self).hash(key);
        match self {
            Op::Elementwise(op) => std::mem::discriminant(op).hash(key),
            Op::Kernel(op) => std::mem::discriminant(op).hash(key),
            Op::Call(call) => return key.body(call),
            Op::Control(control) => return control.write_plan_key(key),
            Op::Input(_)
            | Op::Constant(_)
            | Op::Movement(_)
            | Op::Mark(_)
            | Op::Reduce(_)
            | Op::Composite(_)
            | Op::Custom(_) => {}
        }
        with_payload!(self, p => p.write_key(key));
    }
}

/// Wraps a payload as an [`Op`].
macro_rules! into_op {
    ($($type:ty => $variant:ident;)*) => {$(
        impl From<$type> for Op {
            fn from(payload: $type) -> Op {
                Op::$variant(payload)
            }
        }
    )*};
}

impl From<Arc<Call>> for Op {
    fn from(call: Arc<Call>) -> Op {
        Op::Call(call)
    }
}

impl From<Control> for Op {
    fn from(control: Control) -> Op {
        Op::Control(Arc::new(control))
    }
}

into_op! {
    Input => Input;
    Constant => Constant;
    Movement => Movement;
    Mark => Mark;
    Elementwise => Elementwise;
    Reduce => Reduce;
    KernelOp => Kernel;
    Composite => Composite;
    Custom => Custom;
}

/// The one-output result of [`Primitive::infer`].
pub(crate) fn one(aval: Aval) -> Result<Avals> {
    Ok(Avals::from(aval))
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
