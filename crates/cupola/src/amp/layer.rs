//! A layer with a policy of its own.

use std::hash::{DefaultHasher, Hash, Hasher};

use cupola_core::autocast::{Policy, autocast};
use cupola_core::tree::{Leaf, Path, Tree};
use cupola_core::{Array, Result};

use crate::nn::{Layer, Part, Parts};

/// A layer that is recorded under its own policy, whatever holds around it; `None` records it as it
/// is written. Its parameters keep their names.
///
/// # Example
/// ```
/// use cupola::{DType, amp::{Policy, WithPolicy, autocast}, nn::{Layer, Linear}, ops};
/// let exact = WithPolicy::new(Linear::new(4, 2)?, Some(Policy::new(DType::F32)?));
/// let x = ops::ones([1, 4], DType::F32)?;
/// let y = autocast(Some(&Policy::new(DType::BF16)?), || exact.forward(&x))?;
/// assert_eq!(y.dtype(), DType::F32);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WithPolicy<L> {
    /// The layer.
    pub layer: L,
    policy: Option<Policy>,
}

impl<L> WithPolicy<L> {
    /// `layer` under `policy`.
    pub fn new(layer: L, policy: Option<Policy>) -> Self {
        WithPolicy { layer, policy }
    }

    /// What the layer is recorded under.
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }
}

impl<L: Layer> Layer for WithPolicy<L> {
    fn forward(&self, x: &Array) -> Result<Array> {
        autocast(self.policy.as_ref(), || self.layer.forward(x))
    }
}

impl<L: Parts> Parts for WithPolicy<L> {
    fn parts(&self, path: &mut Path, f: &mut dyn FnMut(&str, Part<'_>)) {
        self.layer.parts(path, f);
    }
}

impl<L: Tree> Tree for WithPolicy<L> {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        self.layer.visit(path, f);
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        self.layer.visit_mut(path, f);
    }

    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        let mut hasher = DefaultHasher::new();
        self.policy.hash(&mut hasher);
        f(hasher.finish());
        self.layer.visit_settings(f);
    }
}
