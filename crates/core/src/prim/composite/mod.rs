//! Composites: what is made of primitives, and what a backend may have one kernel for.
//!
//! A composite infers, differentiates and batches by rules of its own. Its body (the primitives that
//! it stands for) is recorded only where somebody asks: the planner, for a device that does not claim
//! it, and the derivatives and batches that it has no rule for.

#![deny(clippy::wildcard_enum_match_arm)]

pub mod attention;
pub mod batch_norm;
pub mod quantized;

use std::fmt::Debug;
use std::hash::Hash;

use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Op, Primitive, Reverse, Sizes, Tangents,
};
use crate::array::Array;
use crate::array::scope::Scope;
use crate::autocast::suspended;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::shape::Aval;
use crate::transform::rules;

pub use attention::{Attention, AttentionGrad, AttentionMaskKind};
pub use batch_norm::BatchNorm;
pub use quantized::QuantizedDot;

/// A composite with its parameters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Composite {
    /// Values weighted by how well queries and keys agree.
    Attention(Attention),
    /// The cotangents of queries, keys and values.
    AttentionGrad(AttentionGrad),
    /// Channels normalized over a batch.
    BatchNorm(BatchNorm),
    /// A product with a quantized matrix.
    QuantizedDot(QuantizedDot),
}

/// What a composite's payload knows about itself.
pub trait Compose: Clone + Eq + Hash + Debug {
    /// The name in errors, graphs and plans.
    fn name(&self) -> &'static str;

    /// The outputs' shapes and dtypes, or an error that names the composite and the inputs.
    fn infer(&self, inputs: &[&Aval]) -> Result<Avals>;

    /// About how many arithmetic operations it takes.
    fn operations(&self, inputs: &[&Aval], outputs: &[&Aval]) -> f64;

    /// Records what it stands for; its outputs. The inputs are such as [`Compose::infer`] takes.
    fn body(&self, inputs: &[Array]) -> Result<Vec<Array>>;

    /// Tangents of the outputs from inputs, outputs and tangents of the inputs; `None` to
    /// differentiate the body.
    fn jvp(&self, _: &[Array], _: &[Array], _: &[Option<Array>]) -> Result<Option<Tangents>> {
        Ok(None)
    }

    /// Cotangents of the inputs; `None` to differentiate the body.
    fn vjp(&self, _: &Reverse<'_>) -> Result<Option<Tangents>> {
        Ok(None)
    }

    /// The composite over a batch of the size given along axis 0 of the batched inputs; `None` to
    /// batch the body.
    fn vmap(&self, _: &[Batched], _: usize) -> Result<Option<Vec<Batched>>> {
        Ok(None)
    }
}

/// Runs `$body` with `$p` bound to the payload of the [`Composite`] `$composite`.
macro_rules! with_composite {
    ($composite:expr, $p:ident => $body:expr) => {
        match $composite {
            Composite::Attention($p) => $body,
            Composite::AttentionGrad($p) => $body,
            Composite::BatchNorm($p) => $body,
            Composite::QuantizedDot($p) => $body,
        }
    };
}

impl Composite {
    /// The name in errors and plans.
    pub fn name(&self) -> &'static str {
        with_composite!(self, p => Compose::name(p))
    }

    /// The primitives that it stands for, for inputs of these avals.
    ///
    /// # Errors
    /// Where it does not take them.
    pub fn graph(&self, inputs: &[&Aval]) -> Result<Graph> {
        self.infer(inputs)?;
        let scope = Scope::enter(self.name());
        let placeholders: Vec<Array> =
            inputs.iter().map(|&aval| Array::placeholder(aval.clone(), &scope.0)).collect();
        let outputs = suspended(|| with_composite!(self, p => p.body(&placeholders)))?;
        let (graph, captures) = Graph::from_record(&placeholders, &outputs)?;
        match captures.first() {
            None => Ok(graph),
            Some(array) => Err(Error::argument(
                self.name(),
                format!("its body uses {}, which is no input of it", array.aval()),
            )),
        }
    }

    fn graph_of(&self, inputs: &[Array]) -> Result<Graph> {
        let avals: Vec<&Aval> = inputs.iter().map(Array::aval).collect();
        self.graph(&avals)
    }
}

impl Primitive for Composite {
    fn name(&self) -> &'static str {
        Composite::name(self)
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        with_composite!(self, p => p.infer(inputs))
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Custom { jvp, vjp }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        if let Some(found) = with_composite!(self, p => p.vmap(inputs, size))? {
            return Ok(found);
        }
        let examples: Vec<Aval> =
            inputs.iter().map(|i| Aval::new(i.shape(), i.array.dtype())).collect();
        let graph = self.graph(&examples.iter().collect::<Vec<_>>())?;
        rules::vmap_body(&graph, inputs, size)
    }

    fn operations(&self, inputs: &[&Aval], outputs: &[&Aval]) -> f64 {
        with_composite!(self, p => p.operations(inputs, outputs))
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Inferred,
        }
    }
}

fn jvp(
    composite: &Composite,
    inputs: &[Array],
    outputs: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    match with_composite!(composite, p => p.jvp(inputs, outputs, tangents))? {
        Some(found) => Ok(found),
        None => rules::jvp_body(&composite.graph_of(inputs)?, inputs, tangents),
    }
}

fn vjp(composite: &Composite, r: &Reverse<'_>) -> Result<Tangents> {
    match with_composite!(composite, p => p.vjp(r))? {
        Some(found) => Ok(found),
        None => rules::vjp_body(&composite.graph_of(r.inputs)?, r.inputs, r.cotangents, r.wanted),
    }
}

/// Wraps a payload as a [`Composite`] and as an [`Op`].
macro_rules! into_composite {
    ($($type:ident;)*) => {$(
        impl From<$type> for Composite {
            fn from(payload: $type) -> Composite {
                Composite::$type(payload)
            }
        }

        impl From<$type> for Op {
            fn from(payload: $type) -> Op {
                Op::Composite(payload.into())
            }
        }
    )*};
}

into_composite! {
    Attention;
    AttentionGrad;
    BatchNorm;
    QuantizedDot;
}
