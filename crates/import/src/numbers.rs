//! Axes, counts and numbers that a model gives, checked.

use cupola_core::backend::reserve;
use cupola_core::{Array, DType, Shape, ops};

use crate::error::Fault;

/// An axis counted from the start.
pub fn axis(axis: i64, rank: usize) -> Result<usize, Fault> {
    let at = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    match usize::try_from(at) {
        Ok(at) if at < rank => Ok(at),
        _ => Err(Fault::invalid(format!("axis {axis} is out of range for {rank} axes"))),
    }
}

/// Axes counted from the start, each once.
pub fn axes(given: &[i64], rank: usize) -> Result<Vec<usize>, Fault> {
    let mut out = Vec::with_capacity(given.len().min(rank));
    for &one in given {
        let at = axis(one, rank)?;
        if out.contains(&at) {
            return Err(Fault::invalid(format!("the axis {one} is there twice in {given:?}")));
        }
        out.push(at);
    }
    Ok(out)
}

/// A number of things.
pub fn count(value: i64) -> Result<usize, Fault> {
    match usize::try_from(value) {
        Ok(count) if count <= 1 << 48 => Ok(count),
        _ => Err(Fault::invalid(format!("{value} is out of range for a size"))),
    }
}

/// Numbers of things.
pub fn counts(values: &[i64]) -> Result<Vec<usize>, Fault> {
    values.iter().map(|&v| count(v)).collect()
}

/// As many elements as a model says, each as `of` makes it of its place.
pub fn filled<T>(count: usize, of: impl Fn(usize) -> T) -> Result<Vec<T>, Fault> {
    let mut out = reserve(count, "the elements of a tensor")?;
    out.extend((0..count).map(of));
    Ok(out)
}

/// The integers of an array, which is evaluated.
pub fn ints(array: &Array) -> Result<Vec<i64>, Fault> {
    Ok(ops::astype(array, DType::I64)?.to_vec::<i64>()?)
}

/// The real numbers of an array, which is evaluated.
pub fn floats(array: &Array) -> Result<Vec<f64>, Fault> {
    Ok(ops::astype(array, DType::F64)?.to_vec::<f64>()?)
}

/// Sizes as a shape, and how many elements there are.
pub fn shape_of(dims: &[i64]) -> Result<(Shape, usize), Fault> {
    let mut count = 1usize;
    let mut sizes = Vec::with_capacity(dims.len());
    for &dim in dims {
        let wrong = || Fault::invalid(format!("sizes {dims:?} are no shape"));
        let size = usize::try_from(dim).map_err(|_| wrong())?;
        sizes.push(size);
        count = count.checked_mul(size.max(1)).filter(|&n| n <= 1 << 48).ok_or_else(wrong)?;
    }
    let shape = Shape::from(sizes);
    shape.check_rank("tensor")?;
    let count = if shape.contains(&0) { 0 } else { count };
    Ok((shape, count))
}

/// Whether so few elements are computed on the CPU where they hang on sizes and constants alone: what is
/// likely to be a size, not a weight.
pub fn is_small(count: usize, float: bool) -> bool {
    count <= if float { 8 } else { 1024 }
}
