//! The two places where the set of primitives is open: composites with a body, and users' kernels.

pub(crate) mod as_one;
mod batch;
mod held;
mod launch;

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Primitive, Reverse, Sizes, Tangents,
    expect_inputs,
};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::holders;
use crate::shape::{Aval, Shape};
use crate::transform::rules;

pub use launch::{Language, Launch, Source, Text, language};

/// A composite: a graph of primitives that a backend may claim whole and the planner otherwise
/// puts in its place.
#[derive(Clone)]
pub struct Call {
    /// What the composite is called; a backend claims by it.
    pub name: &'static str,
    /// What it computes.
    pub body: Arc<Graph>,
    /// Derivatives that replace those of the body.
    pub rules: Option<Arc<dyn CallRules>>,
    /// The hash of the body, once it was asked for.
    fingerprint: OnceLock<u64>,
    /// The same without rules, once it was asked for; `None` where there are none.
    plain: OnceLock<Option<Arc<Call>>>,
    /// Its cotangents as calls, where it is recorded again and again.
    cotangents: Option<Arc<as_one::Cotangents>>,
    /// What it gives.
    outputs: Avals,
    /// Where it is an update: the input that each output takes the place of, as for [`super::Mark::Update`].
    updates: SmallVec<[u32; 4]>,
}

impl Call {
    /// A composite of this name and body.
    pub fn new(
        name: &'static str,
        body: Arc<Graph>,
        rules: Option<Arc<dyn CallRules>>,
    ) -> Arc<Call> {
        Call::with(name, body, rules, None, &[])
    }

    /// A composite whose derivatives are kept with it.
    fn recorded_often(name: &'static str, body: Arc<Graph>, updates: &[u32]) -> Arc<Call> {
        Call::with(name, body, None, Some(Arc::default()), updates)
    }

    fn with(
        name: &'static str,
        body: Arc<Graph>,
        rules: Option<Arc<dyn CallRules>>,
        cotangents: Option<Arc<as_one::Cotangents>>,
        updates: &[u32],
    ) -> Arc<Call> {
        let (fingerprint, plain) = Default::default();
        let (outputs, updates) =
            (body.output_avals().cloned().collect(), SmallVec::from_slice(updates));
        Arc::new(Call { name, body, rules, fingerprint, plain, cotangents, outputs, updates })
    }

    /// The input that each output takes the place of, where it is an update.
    pub(crate) fn updates(&self) -> Option<&[u32]> {
        (!self.updates.is_empty()).then_some(&self.updates)
    }

    /// An error where what a rule gave over a batch is not what the body would give.
    fn expect_batch(&self, found: &[Batched], size: usize) -> Result<()> {
        let wrong =
            |detail: String| Err(Error::shape(self.name, format!("its vmap gave {detail}")));
        if found.len() != self.outputs.len() {
            return wrong(format!("{} arrays, not {}", found.len(), self.outputs.len()));
        }
        for (found, one) in found.iter().zip(&self.outputs) {
            let batch = found.batched.then_some(size);
            let shape: Shape = batch.into_iter().chain(one.shape.iter().copied()).collect();
            let want = Aval::new(shape, one.dtype);
            if found.array.aval() != &want {
                return wrong(format!("{}, not {want}", found.array.aval()));
            }
        }
        Ok(())
    }

    /// A hash of name and body.
    pub(crate) fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| {
            let mut hasher = std::hash::DefaultHasher::new();
            (self.name, &self.body).hash(&mut hasher);
            hasher.finish()
        })
    }
}

/// Derivatives, and a batching rule, that replace those of a [`Call`]'s body.
pub trait CallRules: Send + Sync {
    /// Tangents of the outputs from inputs, outputs and tangents of the inputs; `None` to
    /// differentiate the body.
    fn jvp(
        &self,
        inputs: &[Array],
        outputs: &[Array],
        tangents: &[Option<Array>],
    ) -> Result<Option<Tangents>>;

    /// Cotangents of the inputs that are wanted from inputs, outputs and cotangents of the outputs; `None` to
    /// differentiate the body.
    fn vjp(&self, r: &Reverse<'_>) -> Result<Option<Tangents>>;

    /// The call over a batch of `size` along axis 0 of the batched inputs; `None` to batch the
    /// body.
    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Option<Vec<Batched>>> {
        let _ = (inputs, size);
        Ok(None)
    }

    /// What the rules hold of a binding's, for its garbage collector.
    fn held(&self) -> Option<&Held> {
        None
    }

    /// Whether they hold the body, too.
    fn has_body(&self) -> bool {
        false
    }
}

/// What functions of a binding share: a binding knows what it is.
pub type Held = Arc<dyn Any + Send + Sync>;

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        let rules = |c: &Call| c.rules.as_ref().map(|r| Arc::as_ptr(r).cast::<()>());
        self.name == other.name && self.body == other.body && rules(self) == rules(other)
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint().hash(state);
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({}, {} nodes)", self.name, self.body.nodes.len())
    }
}

impl Primitive for Call {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs(self.name, inputs, self.body.inputs.len())?;
        for (have, want) in inputs.iter().zip(self.body.input_avals()) {
            if *have != want {
                return Err(Error::shape(
                    self.name,
                    format!("was traced for {want}, input is {have}"),
                ));
            }
        }
        Ok(self.outputs.clone())
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Custom { jvp: call_jvp, vjp: call_vjp }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        if let Some(rules) = &self.rules
            && let Some(found) = holders::afresh(|| rules.vmap(inputs, size))?
        {
            return self.expect_batch(&found, size).map(|()| found);
        }
        batch::vmap(self, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Fixed,
        }
    }
}

fn call_jvp(
    call: &Call,
    inputs: &[Array],
    outputs: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    if let Some(rules) = &call.rules
        && let Some(found) = rules.jvp(inputs, outputs, tangents)?
    {
        return Ok(found);
    }
    rules::jvp_body(&call.body, inputs, tangents)
}

fn call_vjp(call: &Call, r: &Reverse<'_>) -> Result<Tangents> {
    if let Some(rules) = &call.rules
        && let Some(found) = rules.vjp(r)?
    {
        return Ok(found);
    }
    if let Some(cotangents) = &call.cotangents
        && let Some(found) = cotangents.of(call, r)?
    {
        return Ok(found);
    }
    rules::vjp_body(&call.body, r.inputs, r.cotangents, r.wanted)
}

/// An input of a [`CustomOp`]'s kernel: contiguous bytes in row-major order.
pub struct HostInput<'a> {
    /// Shape and dtype.
    pub aval: &'a Aval,
    /// The elements.
    pub bytes: &'a [u8],
}

/// A user's operator, with its own kernel.
pub trait CustomOp: Send + Sync {
    /// The name in errors, graphs and profiles.
    fn name(&self) -> &'static str;

    /// Everything that tells two operators of this name apart: plans are cached by it.
    fn key(&self) -> Vec<u8>;

    /// The outputs' shapes and dtypes.
    fn infer(&self, inputs: &[&Aval]) -> Result<Vec<Aval>>;

    /// Whether [`CustomOp::run_host`] can compute it; else no other device falls back to the host for it.
    fn runs_on_host(&self) -> bool {
        true
    }

    /// Computes the outputs on the host: one byte slice an output, row-major.
    fn run_host(&self, inputs: &[HostInput<'_>], outputs: &mut [&mut [u8]]) -> Result<()>;

    /// How a GPU runs it whose kernels are in that language; `None`: it computes on the host.
    fn launch(&self, _: Language) -> Option<Launch> {
        None
    }

    /// The languages of devices that it has sources in, for the error of a device that runs none of them.
    fn languages(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// What a package keeps of it: the kind of a [`Maker`], and the text from which that makes it again. `None`: no
    /// package can hold it.
    fn stored(&self) -> Option<(&'static str, String)> {
        None
    }

    /// Tangents of the outputs.
    fn jvp(&self, _: &[Array], _: &[Array], _: &[Option<Array>]) -> Result<Tangents> {
        Err(Error::NoDerivative {
            op: self.name(),
            detail: "this custom operator has no jvp".into(),
        })
    }

    /// Cotangents of the inputs.
    fn vjp(&self, _: &[Array], _: &[Array], _: &[Option<Array>]) -> Result<Tangents> {
        Err(Error::NoDerivative {
            op: self.name(),
            detail: "this custom operator has no vjp".into(),
        })
    }

    /// The operator over a batch.
    fn vmap(&self, _: &[Batched], _: usize) -> Result<Vec<Batched>> {
        Err(Error::argument(self.name(), "this custom operator has no batching rule"))
    }
}

/// How a crate makes operators from what a package keeps of them: `inventory::submit!` one of these.
pub struct Maker {
    /// What [`CustomOp::stored`] calls it.
    pub kind: &'static str,
    /// Makes the operator, or says what is wrong with the text.
    pub make: fn(&str) -> Result<Custom>,
}

inventory::collect!(Maker);

/// The operator of a kind that a package keeps as `text`.
pub(crate) fn made(kind: &str, text: &str) -> Result<Custom, String> {
    let maker = inventory::iter::<Maker>().find(|maker| maker.kind == kind);
    let maker =
        maker.ok_or_else(|| format!("'{kind}' is no kind of operator that this program knows"))?;
    (maker.make)(text).map_err(|error| error.to_string())
}

/// A [`CustomOp`] as a primitive.
#[derive(Clone)]
pub struct Custom(pub Arc<dyn CustomOp>);

impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name() && self.0.key() == other.0.key()
    }
}

impl Eq for Custom {}

impl Hash for Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name().hash(state);
        self.0.key().hash(state);
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Custom({})", self.0.name())
    }
}

impl Primitive for Custom {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        Ok(self.0.infer(inputs)?.into())
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Custom {
            jvp: |custom, inputs, outputs, tangents| custom.0.jvp(inputs, outputs, tangents),
            vjp: |custom, r| custom.0.vjp(r.inputs, r.outputs, r.cotangents),
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        self.0.vmap(inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            argument: Argument::None,
            merges: false,
            takes_epilogue: false,
            accumulates: Accumulates::Nothing,
            sizes: Sizes::Fixed,
        }
    }
}
