//! Primitives with kernels of their own, but for windows.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::prim::{
    ArgReduce, Gather, GatherAxis, Iota, KernelOp, Scan, ScanKind, Scatter, ScatterAxis,
    ScatterMode, Sort, SortPart,
};
use cupola_core::{Aval, DType, Result, Shape};

use super::window::{conv, pool};
use super::writer::{Attr, Val, Writer, unsupported};

pub fn kernel(w: &mut Writer, op: &KernelOp, args: &[Val], outputs: &[Aval]) -> Result<Vec<Val>> {
    let out = &outputs[0];
    Ok(vec![match op {
        KernelOp::Iota(iota) => self::iota(w, iota)?,
        KernelOp::ArgReduce(op) => arg_reduce(w, op, &args[0], &out.shape)?,
        KernelOp::Scan(op) => scan(w, op, &args[0])?,
        KernelOp::Gather(op) => gather(w, op, &args[0], &args[1..], &out.shape)?,
        KernelOp::Scatter(op) => scatter(w, op, &args[0], &args[1], &args[2..])?,
        KernelOp::GatherAxis(GatherAxis { axis }) => {
            let indices = w.cast(&args[1], DType::I64)?;
            let along = Attr::Int("axis", *axis as i64);
            let inputs = [&args[0], &indices];
            w.val("GatherElements", &inputs, &[along], out.shape.clone(), out.dtype)
        }
        KernelOp::ScatterAxis(ScatterAxis { mode, axis }) => {
            let indices = w.cast(&args[2], DType::I64)?;
            let attributes =
                [Attr::Int("axis", *axis as i64), Attr::Text("reduction", joined(w, *mode)?)];
            let inputs = [&args[0], &indices, &args[1]];
            w.val("ScatterElements", &inputs, &attributes, out.shape.clone(), out.dtype)
        }
        KernelOp::Dot(dot) => {
            let wide = multiplied(args[0].dtype)?;
            let (a, b) = (w.cast(&args[0], wide)?, w.cast(&args[1], wide)?);
            let product = w.val("MatMul", &[&a, &b], &[], out.shape.clone(), wide);
            w.cast(&product, dot.result)?
        }
        KernelOp::Conv(op) => conv(w, op, args, out)?,
        KernelOp::Pool(op) => pool(w, op, &args[0], out)?,
        KernelOp::Sort(op) => sort(w, op, &args[0], out)?,
        KernelOp::Bitcast(_) | KernelOp::RandomBits(_) | KernelOp::Fft(_) | KernelOp::Linalg(_) => {
            return Err(unsupported(format!("'{}' has no operator", op.name())));
        }
    }])
}

/// The dtype in which operands of products and convolutions are multiplied.
pub fn multiplied(dtype: DType) -> Result<DType> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Ok(DType::F32),
        DType::F64 => Ok(DType::F64),
        DType::U8 | DType::I8 | DType::U16 | DType::I16 | DType::U32 | DType::I64 => Ok(DType::I64),
        DType::I32 | DType::U64 => Ok(dtype),
        DType::Bool | DType::C32 | DType::C64 => {
            Err(unsupported(format!("products of {dtype} have no operator")))
        }
    }
}

fn iota(w: &mut Writer, iota: &Iota) -> Result<Val> {
    let count = iota.shape[iota.axis];
    let (start, end, step) =
        (w.scalar(0, DType::I64)?, w.scalar(count as i64, DType::I64)?, w.scalar(1, DType::I64)?);
    let row = w.val("Range", &[&start, &end, &step], &[], [count], DType::I64);
    let row = w.cast(&row, iota.dtype)?;
    let mut shape = vec![1; iota.shape.rank()];
    shape[iota.axis] = count;
    w.reshape(&row, &shape)
}

fn arg_reduce(w: &mut Writer, op: &ArgReduce, x: &Val, shape: &Shape) -> Result<Val> {
    let x = w.cast(x, ordered(x.dtype)?)?;
    let name = if op.max { "ArgMax" } else { "ArgMin" };
    let attributes = [Attr::Int("axis", op.axis as i64), Attr::Int("keepdims", 0)];
    let place = w.val(name, &[&x], &attributes, shape.clone(), DType::I64);
    w.cast(&place, DType::U32)
}

/// The dtype in which elements are compared.
fn ordered(dtype: DType) -> Result<DType> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Ok(DType::F32),
        DType::F64 => Ok(DType::F64),
        DType::Bool | DType::U8 | DType::I8 | DType::U16 | DType::I16 | DType::I32 => {
            Ok(DType::I32)
        }
        DType::U32 | DType::I64 => Ok(DType::I64),
        DType::U64 | DType::C32 | DType::C64 => {
            Err(unsupported(format!("the order of {dtype} has no operator")))
        }
    }
}

fn scan(w: &mut Writer, op: &Scan, x: &Val) -> Result<Val> {
    if op.kind != ScanKind::Sum {
        return Err(unsupported(format!("'{}' has no operator", op.kind.name())));
    }
    let own = x.dtype;
    let x = w.cast(x, multiplied(own)?)?;
    let axis = w.scalar(op.axis as i64, DType::I64)?;
    let attributes = [
        Attr::Int("exclusive", i64::from(op.exclusive)),
        Attr::Int("reverse", i64::from(op.reverse)),
    ];
    let sums = w.val("CumSum", &[&x, &axis], &attributes, x.shape.clone(), x.dtype);
    w.cast(&sums, own)
}

fn sort(w: &mut Writer, op: &Sort, x: &Val, out: &Aval) -> Result<Val> {
    let own = x.dtype;
    let x = w.cast(x, ordered(own)?)?;
    let count = x.shape[op.axis];
    let (start, wanted) = match op.part {
        SortPart::Whole | SortPart::Around(_) => (0, count),
        SortPart::Range { start, count } => (start, count),
    };
    let many = w.ints(&[(start + wanted) as i64])?;
    let attributes =
        [Attr::Int("axis", op.axis as i64), Attr::Int("largest", 0), Attr::Int("sorted", 1)];
    let mut names = w.node("TopK", &[&x.name, &many.name], &attributes, 2);
    let (name, dtype) = match op.indices {
        true => (names.swap_remove(1), DType::I64),
        false => (names.swap_remove(0), x.dtype),
    };
    let mut shape = x.shape.to_vec();
    shape[op.axis] = start + wanted;
    let found = Val { name, shape: Shape::from(&shape[..]), dtype };
    let mut from = vec![0; shape.len()];
    from[op.axis] = start;
    let found = w.slice(&found, &from, &out.shape, &vec![1; shape.len()])?;
    w.cast(&found, out.dtype)
}

/// How updates join, by the format's name.
fn joined(w: &Writer, mode: ScatterMode) -> Result<&'static str> {
    let name = match mode {
        ScatterMode::Set => "none",
        ScatterMode::Add => "add",
        ScatterMode::Prod => "mul",
        ScatterMode::Max => "max",
        ScatterMode::Min => "min",
    };
    match mode {
        ScatterMode::Max | ScatterMode::Min if w.opset < 18 => {
            Err(unsupported(format!("a scatter that keeps the {name} is of opset 18 and later")))
        }
        ScatterMode::Set
        | ScatterMode::Add
        | ScatterMode::Prod
        | ScatterMode::Max
        | ScatterMode::Min => Ok(name),
    }
}

/// The axes of x with those that are indexed first, and indices as the last axis of one array.
fn indexed(
    w: &mut Writer,
    rank: usize,
    axes: &[usize],
    indices: &[Val],
) -> Result<(Vec<usize>, Val)> {
    let rest = (0..rank).filter(|axis| !axes.contains(axis));
    let order: Vec<usize> = axes.iter().copied().chain(rest).collect();
    let mut columns = Vec::with_capacity(indices.len());
    for index in indices {
        let wide = w.cast(index, DType::I64)?;
        let mut shape = index.shape.to_vec();
        shape.push(1);
        columns.push(w.reshape(&wide, &shape)?);
    }
    let mut shape = indices[0].shape.to_vec();
    shape.push(indices.len());
    let columns: Vec<&Val> = columns.iter().collect();
    let along = Attr::Int("axis", shape.len() as i64 - 1);
    Ok((order, w.val("Concat", &columns, &[along], &shape[..], DType::I64)))
}

fn gather(w: &mut Writer, op: &Gather, x: &Val, indices: &[Val], shape: &Shape) -> Result<Val> {
    let whole = (0..x.shape.rank()).all(|axis| match op.axes.contains(&axis) {
        true => op.sizes[axis] == 1,
        false => op.sizes[axis] == x.shape[axis],
    });
    if !whole || indices.is_empty() {
        return Err(unsupported("'gather' of parts of slices has no operator"));
    }
    let (order, places) = indexed(w, x.shape.rank(), &op.axes, indices)?;
    let x = w.transpose(x, &order);
    let rest = &x.shape[op.axes.len()..];
    let found: Vec<usize> = indices[0].shape.iter().chain(rest).copied().collect();
    let dtype = x.dtype;
    let taken = w.val("GatherND", &[&x, &places], &[], &found[..], dtype);
    w.reshape(&taken, shape)
}

fn scatter(w: &mut Writer, op: &Scatter, x: &Val, updates: &Val, indices: &[Val]) -> Result<Val> {
    let Some(lead) = indices.first().map(|index| index.shape.rank()) else {
        return Err(unsupported("'scatter' without indices has no operator"));
    };
    let slice = &updates.shape[lead..];
    let whole = (0..x.shape.rank()).all(|axis| match op.axes.contains(&axis) {
        true => slice[axis] == 1,
        false => slice[axis] == x.shape[axis],
    });
    if !whole {
        return Err(unsupported("'scatter' of parts of slices has no operator"));
    }
    let (order, places) = indexed(w, x.shape.rank(), &op.axes, indices)?;
    let reduction = joined(w, op.mode)?;
    let moved = w.transpose(x, &order);
    let rest = &moved.shape[op.axes.len()..];
    let shape: Vec<usize> = indices[0].shape.iter().chain(rest).copied().collect();
    let updates = w.reshape(updates, &shape)?;
    let inputs = [&moved, &places, &updates];
    let attributes = [Attr::Text("reduction", reduction)];
    let found = w.val("ScatterND", &inputs, &attributes, moved.shape.clone(), x.dtype);
    let mut back = vec![0; order.len()];
    for (at, &axis) in order.iter().enumerate() {
        back[axis] = at;
    }
    Ok(w.transpose(&found, &back))
}
