//! Functions with derivatives or memory of their own.

use std::sync::Arc;

use super::grad::trace_inputs;
use super::rules;
use crate::array::Array;
use crate::array::scope::Scope;
use crate::autocast::Moment;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::ops::conjugate;
use crate::prim::call::CallRules;
use crate::prim::{Batched, Call, Held, Mark, Reverse, Tangents};

/// Inputs, outputs, cotangents of the outputs: cotangents of the inputs.
type Vjp = dyn Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + Send + Sync;
/// Inputs, outputs, tangents of the inputs: tangents of the outputs.
type Jvp = dyn Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + Send + Sync;

/// Inputs that are batched along axis 0 or not at all, the size of the batch: outputs, likewise.
type Vmap = dyn Fn(&[Batched], usize) -> Result<Vec<Batched>> + Send + Sync;

/// A function whose derivatives may be given; see [`custom_function`].
pub struct CustomFunction<F> {
    f: F,
    vjp: Option<Arc<Vjp>>,
    jvp: Option<Arc<Jvp>>,
    vmap: Option<Arc<Vmap>>,
    held: Option<Held>,
}

/// A function whose derivatives can be replaced by [`CustomFunction::with_vjp`] and
/// [`CustomFunction::with_jvp`]. Where one is not given, `f` itself is differentiated.
///
/// # Example
/// ```
/// use cupola::{Array, transform::{custom_function, grad}};
/// let clipped = custom_function(|x: &[Array]| Ok(vec![&x[0] * 100.0]))
///     .with_vjp(|_, _, ct| Ok(vec![&ct[0] * 1.0]));
/// let df = grad(move |x: &[Array]| clipped.call(x), &[0]);
/// assert_eq!(df(&[Array::scalar(2.0f32)])?[0].item::<f32>()?, 1.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn custom_function<F: Fn(&[Array]) -> Result<Vec<Array>>>(f: F) -> CustomFunction<F> {
    CustomFunction { f, vjp: None, jvp: None, vmap: None, held: None }
}

impl<F: Fn(&[Array]) -> Result<Vec<Array>>> CustomFunction<F> {
    /// Gives cotangents of the inputs from inputs, outputs and cotangents of the outputs; of complex
    /// numbers as [`vjp`](super::vjp). Those of the last inputs may be left out where nobody asks for them.
    pub fn with_vjp(
        mut self,
        vjp: impl Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    ) -> Self {
        self.vjp = Some(Arc::new(vjp));
        self
    }

    /// Gives tangents of the outputs from inputs, outputs and tangents of the inputs.
    pub fn with_jvp(
        mut self,
        jvp: impl Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    ) -> Self {
        self.jvp = Some(Arc::new(jvp));
        self
    }

    /// Gives the outputs over a batch: which inputs are batched along axis 0, and which outputs.
    pub fn with_vmap(
        mut self,
        vmap: impl Fn(&[Batched], usize) -> Result<Vec<Batched>> + Send + Sync + 'static,
    ) -> Self {
        self.vmap = Some(Arc::new(vmap));
        self
    }

    /// Says what the rules hold, for the garbage collector of a binding.
    pub fn holding(mut self, held: Held) -> Self {
        self.held = Some(held);
        self
    }

    /// Records the function on `inputs`.
    ///
    /// # Errors
    /// Where the function fails under trace, or has derivatives of its own and uses an array that
    /// is being traced without taking it as an input.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let (body, captures) = traced("custom_function", &self.f, inputs)?;
        let given = self.vjp.is_some() || self.jvp.is_some();
        if let Some(captured) = captures.iter().find(|c| given && c.node.is_traced()) {
            // The given derivatives say nothing of it: its gradient would silently be zero.
            return Err(Error::argument(
                "custom_function",
                format!(
                    "the function uses an array ({}) that is being traced and is not among its \
                     inputs: pass it as an input",
                    captured.aval()
                ),
            ));
        }
        let rules = Given {
            vjp: self.vjp.clone(),
            jvp: self.jvp.clone(),
            vmap: self.vmap.clone(),
            held: self.held.clone(),
            inputs: inputs.len(),
            moment: Moment::now(),
        };
        record("custom_function", body, Arc::new(rules), inputs, &captures)
    }
}

/// A function like `f` that keeps none of its intermediate results for the backward pass: they are
/// computed again from the inputs. It trades time for memory.
///
/// # Errors
/// The returned function fails where `f` does under trace.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::{checkpoint, grad}};
/// let block = checkpoint(|x: &[Array]| Ok(vec![ops::sin(&ops::exp(&x[0])?)?]));
/// let slope = grad(block, &[0])(&[Array::scalar(0.0f32)])?;
/// assert!((slope[0].item::<f32>()? - 1f32.cos()).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn checkpoint<'f>(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + 'f,
) -> impl Fn(&[Array]) -> Result<Vec<Array>> + 'f {
    move |inputs| {
        let (body, captures) = traced("checkpoint", &f, inputs)?;
        let rules = recompute(&body);
        record("checkpoint", body, rules, inputs, &captures)
    }
}

fn traced(
    name: &'static str,
    f: &dyn Fn(&[Array]) -> Result<Vec<Array>>,
    inputs: &[Array],
) -> Result<(Arc<Graph>, Vec<Array>)> {
    let scope = Scope::enter(name);
    // They have values: what `f` keeps of them can be read later.
    let tracers = trace_inputs(inputs, &scope)?;
    let outputs = f(&tracers)?;
    let (graph, captures) = Graph::from_trace(&tracers, &outputs, &scope.0)?;
    Ok((Arc::new(graph), captures))
}

fn record(
    name: &'static str,
    body: Arc<Graph>,
    rules: Arc<dyn CallRules>,
    inputs: &[Array],
    captures: &[Array],
) -> Result<Vec<Array>> {
    let arguments: Vec<&Array> = inputs.iter().chain(captures).collect();
    Array::apply_multi(Call::new(name, body, Some(rules)).for_inputs(&arguments), &arguments)
}

/// The derivatives that a user gave.
struct Given {
    vjp: Option<Arc<Vjp>>,
    jvp: Option<Arc<Jvp>>,
    vmap: Option<Arc<Vmap>>,
    held: Option<Held>,
    /// How many of the call's inputs are the function's own; captures follow.
    inputs: usize,
    /// The precision that the function was recorded in: what is recorded for it later has it, too.
    moment: Moment,
}

fn filled(tangents: &[Option<Array>], like: &[Array]) -> Vec<Array> {
    let zeros = |a: &Array| Array::constant(0.0, a.aval().clone());
    tangents.iter().zip(like).map(|(t, a)| t.clone().unwrap_or_else(|| zeros(a))).collect()
}

impl CallRules for Given {
    fn jvp(
        &self,
        inputs: &[Array],
        outputs: &[Array],
        tangents: &[Option<Array>],
    ) -> Result<Option<Tangents>> {
        let Some(jvp) = &self.jvp else { return Ok(None) };
        let own = &inputs[..self.inputs];
        let tangents = filled(&tangents[..self.inputs], own);
        let found = self.moment.again(|| jvp(own, outputs, &tangents))?;
        Ok(Some(found.into_iter().map(Some).collect()))
    }

    fn vjp(&self, r: &Reverse<'_>) -> Result<Option<Tangents>> {
        let Reverse { inputs, outputs, cotangents, wanted } = *r;
        let Some(vjp) = &self.vjp else { return Ok(None) };
        let own = &inputs[..self.inputs];
        // What a user is given and gives pairs with conjugates; the rules of primitives do without.
        let turned = |of: &[Array]| of.iter().map(conjugate).collect::<Result<Vec<_>>>();
        let cotangents = turned(&filled(cotangents, outputs))?;
        let found = self.moment.again(|| vjp(own, outputs, &cotangents))?;
        let missing = wanted[..own.len()].get(found.len()..);
        if missing.is_none_or(|missing| missing.contains(&true)) {
            let detail = format!("its vjp gave {} arrays for {} inputs", found.len(), own.len());
            return Err(Error::argument("custom_function", detail));
        }
        let mut out: Tangents = turned(&found)?.into_iter().map(Some).collect();
        out.resize(inputs.len(), None);
        Ok(Some(out))
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Option<Vec<Batched>>> {
        match &self.vmap {
            Some(vmap) => self.moment.again(|| vmap(&inputs[..self.inputs], size)).map(Some),
            None => Ok(None),
        }
    }

    fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }
}

/// Differentiates the body on inputs that wait for the cotangents, so that nothing of the first
/// run is used or kept.
struct Recompute {
    body: Arc<Graph>,
}

/// The rules of a [`checkpoint`] of `body`.
pub(crate) fn recompute(body: &Arc<Graph>) -> Arc<dyn CallRules> {
    Arc::new(Recompute { body: body.clone() })
}

impl CallRules for Recompute {
    fn has_body(&self) -> bool {
        true
    }

    fn jvp(&self, _: &[Array], _: &[Array], _: &[Option<Array>]) -> Result<Option<Tangents>> {
        Ok(None)
    }

    fn vjp(&self, r: &Reverse<'_>) -> Result<Option<Tangents>> {
        let Reverse { inputs, cotangents, .. } = *r;
        let given: Vec<&Array> = cotangents.iter().flatten().collect();
        let again = |input: &Array| {
            let operands: Vec<&Array> =
                std::iter::once(input).chain(given.iter().copied()).collect();
            Array::apply(Mark::Depends, &operands)
        };
        let inputs: Vec<Array> = inputs.iter().map(again).collect::<Result<_>>()?;
        let wanted: Vec<bool> = inputs.iter().map(|i| i.dtype().is_differentiable()).collect();
        rules::vjp_body(&self.body, &inputs, cotangents, &wanted).map(Some)
    }
}
