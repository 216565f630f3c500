//! What a primitive gives, before it is computed.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use crate::shape::Aval;

/// The abstract outputs of a primitive; nearly always one. Clones share several.
///
/// # Example
/// ```
/// use cupola_core::{Aval, DType, prim::Avals};
/// let one = Avals::from(Aval::new([2, 3], DType::F32));
/// assert_eq!(one.len(), 1);
/// let two: Avals = [one[0].clone(), one[0].clone()].into_iter().collect();
/// assert_eq!(two[1].shape.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Avals(Kind);

#[derive(Clone, Debug)]
enum Kind {
    One(Aval),
    Several(Arc<[Aval]>),
}

impl Deref for Avals {
    type Target = [Aval];

    #[inline]
    fn deref(&self) -> &[Aval] {
        match &self.0 {
            Kind::One(aval) => std::slice::from_ref(aval),
            Kind::Several(avals) => avals,
        }
    }
}

impl From<Aval> for Avals {
    fn from(aval: Aval) -> Avals {
        Avals(Kind::One(aval))
    }
}

impl From<Vec<Aval>> for Avals {
    fn from(mut avals: Vec<Aval>) -> Avals {
        match (avals.len(), avals.pop()) {
            (1, Some(aval)) => aval.into(),
            (_, last) => {
                avals.extend(last);
                Avals(Kind::Several(avals.into()))
            }
        }
    }
}

impl FromIterator<Aval> for Avals {
    fn from_iter<I: IntoIterator<Item = Aval>>(avals: I) -> Avals {
        Vec::from_iter(avals).into()
    }
}

impl Default for Avals {
    fn default() -> Avals {
        Vec::new().into()
    }
}

impl<'a> IntoIterator for &'a Avals {
    type Item = &'a Aval;
    type IntoIter = std::slice::Iter<'a, Aval>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Avals {
    fn eq(&self, other: &Avals) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Avals {}

impl Hash for Avals {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}
