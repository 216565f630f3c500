//! A composite over a batch.
//!
//! One without derivatives of its own becomes the primitives of its body over the batch. One with
//! derivatives stays a composite, so that they still hold: its body and its derivatives are
//! batched alike.

use std::sync::Arc;

use super::{Call, CallRules};
use crate::array::Array;
use crate::array::scope::Scope;
use crate::error::Result;
use crate::graph::Graph;
use crate::prim::{Batched, Reverse, Tangents, record};
use crate::shape::Aval;
use crate::transform::rules::vmap_body;

pub(super) fn vmap(call: &Call, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
    let Some(single) = &call.rules else {
        return vmap_body(&call.body, inputs, size);
    };
    let scope = Scope::enter("vmap");
    let placeholders: Vec<Array> =
        inputs.iter().map(|i| Array::placeholder(i.array.aval().clone(), &scope.0)).collect();
    let traced: Vec<Batched> = placeholders
        .iter()
        .zip(inputs)
        .map(|(array, i)| Batched { array: array.clone(), batched: i.batched })
        .collect();
    // Every output gets the batch, so that every cotangent belongs to one element of it.
    let outputs: Vec<Array> = vmap_body(&call.body, &traced, size)?
        .iter()
        .map(|o| o.with_batch(size))
        .collect::<Result<_>>()?;
    let (body, captures) = Graph::from_trace(&placeholders, &outputs, &scope.0)?;
    let batched = inputs.iter().map(|i| i.batched).collect();
    let rules = BatchedRules { single: single.clone(), batched, size };
    let whole = Call::new(call.name, Arc::new(body), Some(Arc::new(rules)));
    let arguments: Vec<&Array> = inputs.iter().map(|i| &i.array).chain(&captures).collect();
    let outputs = Array::apply_multi(whole, &arguments)?;
    Ok(outputs.into_iter().map(Batched::each).collect())
}

/// A composite's derivatives, over a batch that some of its inputs and all of its outputs carry.
struct BatchedRules {
    single: Arc<dyn CallRules>,
    /// Which inputs carry the batch. What the batched body captured follows them, and is constant.
    batched: Vec<bool>,
    size: usize,
}

impl BatchedRules {
    /// Inputs, outputs and what there is of `changes`, as arguments over the batch.
    fn arguments(
        &self,
        inputs: &[Array],
        outputs: &[Array],
        changes: impl Iterator<Item = Batched>,
    ) -> Vec<Batched> {
        let own = inputs
            .iter()
            .zip(&self.batched)
            .map(|(array, &batched)| Batched { array: array.clone(), batched });
        own.chain(outputs.iter().cloned().map(Batched::each)).chain(changes).collect()
    }

    /// Runs a rule on one element's inputs, outputs and changes, and batches what it records.
    fn over_batch(
        &self,
        arguments: &[Batched],
        present: &[bool],
        outputs: usize,
        rule: impl FnOnce(&[Array], &[Array], &[Option<Array>]) -> Result<Option<Tangents>>,
    ) -> Result<Option<Vec<Option<Batched>>>> {
        let scope = Scope::enter("vmap");
        let element = |a: &Batched| Aval::new(a.shape(), a.array.dtype());
        let placeholders: Vec<Array> =
            arguments.iter().map(|a| Array::placeholder(element(a), &scope.0)).collect();
        let (own, rest) = placeholders.split_at(self.batched.len());
        let (outputs, given) = rest.split_at(outputs);
        let mut given = given.iter().cloned();
        let changes: Vec<Option<Array>> =
            present.iter().map(|&there| if there { given.next() } else { None }).collect();
        let Some(found) = rule(own, outputs, &changes)? else {
            return Ok(None);
        };
        let results: Vec<Array> = found.iter().flatten().cloned().collect();
        let (graph, captures) = Graph::from_trace(&placeholders, &results, &scope.0)?;
        let all: Vec<Batched> =
            arguments.iter().cloned().chain(captures.into_iter().map(Batched::shared)).collect();
        let mut results = vmap_body(&graph, &all, self.size)?.into_iter();
        Ok(Some(found.iter().map(|f| f.as_ref().and_then(|_| results.next())).collect()))
    }
}

impl CallRules for BatchedRules {
    fn jvp(
        &self,
        inputs: &[Array],
        outputs: &[Array],
        tangents: &[Option<Array>],
    ) -> Result<Option<Tangents>> {
        let own = &tangents[..self.batched.len()];
        let changes = own
            .iter()
            .zip(&self.batched)
            .filter_map(|(t, &batched)| t.clone().map(|array| Batched { array, batched }));
        let arguments = self.arguments(inputs, outputs, changes);
        let present: Vec<bool> = own.iter().map(Option::is_some).collect();
        let rule = |x: &[Array], y: &[Array], t: &[Option<Array>]| self.single.jvp(x, y, t);
        let Some(found) = self.over_batch(&arguments, &present, outputs.len(), rule)? else {
            return Ok(None);
        };
        let whole = |found: Option<Batched>| found.map(|f| f.with_batch(self.size)).transpose();
        found.into_iter().map(whole).collect::<Result<_>>().map(Some)
    }

    fn vjp(&self, r: &Reverse<'_>) -> Result<Option<Tangents>> {
        let Reverse { inputs, outputs, cotangents, wanted } = *r;
        let changes = cotangents.iter().flatten().cloned().map(Batched::each);
        let arguments = self.arguments(inputs, outputs, changes);
        let present: Vec<bool> = cotangents.iter().map(Option::is_some).collect();
        let rule = |x: &[Array], y: &[Array], c: &[Option<Array>]| {
            self.single.vjp(&Reverse { inputs: x, outputs: y, cotangents: c, wanted })
        };
        let Some(found) = self.over_batch(&arguments, &present, outputs.len(), rule)? else {
            return Ok(None);
        };
        let mut all: Tangents = found
            .into_iter()
            .zip(&self.batched)
            .map(|(found, &batched)| {
                let Some(found) = found else { return Ok(None) };
                let each = found.with_batch(self.size)?;
                // An input that the elements share gets the sum of what they give.
                Ok(Some(if batched { each } else { record::sum(&each, &[0])? }))
            })
            .collect::<Result<_>>()?;
        all.resize(inputs.len(), None);
        Ok(Some(all))
    }
}
