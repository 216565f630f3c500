//! One of two operands, by a condition.

use super::operand::{Operand, common_dtype, common_shape};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::prim::{Mark, Select};

/// `a` where the condition is true and `b` elsewhere.
///
/// # Shapes
/// All three broadcast.
///
/// # Dtypes
/// A condition that is not bool is true where it is not 0; `a` and `b` promote.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.0f32, 2.0], [2])?;
/// let y = ops::where_(&ops::greater(&x, 0)?, &x, 0)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn where_<'a, 'b, 'c>(
    condition: impl Into<Operand<'c>>,
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
) -> Result<Array> {
    let (condition, a, b) = (condition.into(), a.into(), b.into());
    let dtype = common_dtype(&[a, b]);
    let shape = common_shape("where", &[condition, a, b])?;
    let condition = condition.to(DType::Bool, &shape)?;
    Array::apply(Select, &[&condition, &a.to(dtype, &shape)?, &b.to(dtype, &shape)?])
}

/// The same as [`where_`], by the primitive's name.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::select(true, 1, 2)?.item::<i32>()?, 1);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn select<'a, 'b, 'c>(
    condition: impl Into<Operand<'c>>,
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
) -> Result<Array> {
    where_(condition, a, b)
}

/// `x` itself, as a constant: derivatives do not pass.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::scalar(2.0f32);
/// assert_eq!(ops::stop_gradient(&x)?.item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn stop_gradient(x: &Array) -> Result<Array> {
    Array::apply(Mark::StopGradient, &[x])
}

/// `x` itself, once `dependencies` are computed: the planner merges nothing across it.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let (x, y) = (Array::scalar(2.0f32), Array::scalar(3.0f32));
/// assert_eq!(ops::depends(&x, &[&y])?.item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn depends(x: &Array, dependencies: &[&Array]) -> Result<Array> {
    let mut inputs = vec![x];
    inputs.extend_from_slice(dependencies);
    Array::apply(Mark::Depends, &inputs)
}

/// `x` itself, as what `former` becomes: where values keep `x` from being computed, as an index outside its axis or a
/// singular matrix, the error is given once, and from then on the result is `former`, as if `x` had never been: also for
/// what was recorded of the result before. Where there is no memory to compute `x`, or a file or a user's operator fails,
/// this happens to all updates that were to be computed together: none of them is made. Optimisers and compiled functions
/// with a state record updates, so that a step that fails leaves the weights and the state of before.
///
/// Where `x` and `former` differ in shape or dtype, the result goes on giving the error, and [`Array::before_undone`] is
/// `former`.
///
/// # Errors
/// None.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let (w, index) = (Array::from_slice(&[1.0f32, 2.0], [2])?, ops::add(&Array::scalar(5i32), 2)?);
/// let fresh = ops::update(&ops::add(&w, &ops::take(&w, &index, 0)?)?, &w)?;
/// assert!(fresh.eval().is_err());
/// assert_eq!(fresh.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn update(x: &Array, former: &Array) -> Result<Array> {
    // A transform keeps what it is given, and computes nothing while it traces.
    let is_traced = x.is_traced() || former.is_traced();
    if is_traced || x.is_update_of(former) || x.same(former) {
        return Ok(x.clone());
    }
    // Of an array that nobody else has, and that keeps `former` itself, no second one is recorded.
    if x.may_fail() || x.is_lazy() && !(x.is_only_handle() && x.is_of(former)) {
        return x.updating(former);
    }
    x.note_former(former);
    Ok(x.clone())
}
