//! The stored form of each primitive: its name, its version, its fields.
//!
//! Names and the numbers of variants are forever. Where a primitive gets a field, its version goes up, and
//! reading the older one says what the field is then.

#![deny(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use super::code::{Reader, Stored, Writer, choice, named, record};
use super::rules::Rules;
use crate::graph::Graph;
use crate::prim::call::made;
use crate::prim::composite::attention::Scores;
use crate::prim::control::{Cond, Scan as Scanned, While};
use crate::prim::{
    ArgReduce, Attention, AttentionGrad, AttentionMaskKind, BatchNorm, Binary, Bitcast, Call, Cast,
    Compare, Composite, Constant, Control, Conv, ConvRole, Dot, Elementwise, Fft, FftKind,
    FftScale, Gather, GatherAxis, Input, Iota, Linalg, Mark, Movement, Op, Pool, PoolRole,
    Primitive, QuantizedDot, RandomBits, Reduce, ReduceKind, Scan, ScanKind, Scatter, ScatterAxis,
    ScatterMode, Select, Sort, SortPart, Unary, Vectors,
};
use crate::shape::Dims;
use crate::with_kernel_payload;

record!(Input { aval });
record!(Constant { value, aval });
record!(Iota { shape, dtype, axis });
named!(Unary);
named!(Binary);
named!(Compare);
record!(Select {});
record!(Cast { to });
record!(Bitcast { to });
choice!(Mark { 0 StopGradient; 1 Depends; 2 Update; });
choice!(Movement {
    0 Reshape(shape);
    1 Flatten { start, end };
    2 Unflatten { axis, sizes };
    3 Squeeze(axes);
    4 ExpandDims(axes);
    5 Transpose(axes);
    6 Broadcast(shape);
    7 Flip(axes);
    8 Slice { start, sizes, strides };
    9 SliceUpdate { start, strides };
    10 Pad { low, high, interior };
    11 Concatenate { axis };
});
named!(ReduceKind);
record!(Reduce { kind, axes });
record!(ArgReduce { max, axis });
named!(ScanKind);
record!(Scan { kind, axis, reverse, exclusive });
choice!(ScatterMode { 0 Set; 1 Add; 2 Prod; 3 Max; 4 Min; });
record!(Gather { axes, sizes });
record!(Scatter { mode, axes });
record!(GatherAxis { axis });
record!(ScatterAxis { mode, axis });
record!(Dot { accumulate, result, precision });
choice!(ConvRole { 0 Forward; 1 InputGrad; 2 WeightGrad; });
record!(Conv {
    role,
    input,
    kernel,
    stride,
    padding,
    dilation,
    input_dilation,
    groups,
    flip,
    accumulate,
    result,
    precision
});
choice!(PoolRole { 0 Max; 1 MaxGather; 2 MaxScatter; 3 Sum; 4 SumTranspose; });
record!(Pool { role, input, window, stride, padding, dilation });
record!(RandomBits { shape, width });
choice!(SortPart { 0 Whole; 1 Range { start, count }; 2 Around(place); });
record!(Sort { axis, indices, part });
choice!(FftKind { 0 Forward; 1 Inverse; 2 Real; 3 HalfComplex { odd }; });
choice!(FftScale { 0 One; 1 Root; 2 Whole; });
record!(Fft { kind, axes, scale });
choice!(Vectors { 0 None; 1 Thin; 2 Full; });
choice!(Linalg {
    0 Cholesky;
    1 SolveTriangular { upper, unit };
    2 Solve;
    3 Lu;
    4 Qr;
    5 Svd(vectors);
    6 Eigh { vectors };
    7 Eig { vectors };
    8 Pinv;
});
choice!(AttentionMaskKind { 0 None; 1 Causal; 2 Array; });
record!(Scores { scale, mask, precision });
record!(Attention { scores, sinks });
record!(AttentionGrad { scores });
record!(BatchNorm { eps });
record!(QuantizedDot { group_size, bits, transpose, precision });

/// A payload under its name in files.
trait Known: Stored {
    const NAME: &'static str;
    const VERSION: u16;
}

macro_rules! primitives {
    ($($name:literal $version:literal $payload:ident $(, $older:literal $read:ident)*;)*) => {
        $(impl Known for $payload {
            const NAME: &'static str = $name;
            const VERSION: u16 = $version;
        })*

        /// The primitive of this name, read; `None` where there is no such.
        fn of(name: &str, version: u16, from: &mut Reader<'_>) -> Option<Result<Op, String>> {
            match name {
                $($name => Some(match version {
                    $($older => $read(from).map(Op::from),)*
                    _ => known::<$payload>(version, from),
                }),)*
                _ => None,
            }
        }
    };
}

primitives! {
    "input" 1 Input;
    "constant" 1 Constant;
    "iota" 1 Iota;
    "unary" 1 Unary;
    "binary" 1 Binary;
    "compare" 1 Compare;
    "select" 1 Select;
    "cast" 1 Cast;
    "bitcast" 1 Bitcast;
    "mark" 1 Mark;
    "movement" 1 Movement;
    "reduce" 1 Reduce;
    "arg_reduce" 1 ArgReduce;
    "scan" 1 Scan;
    "gather" 1 Gather;
    "scatter" 1 Scatter;
    "gather_axis" 1 GatherAxis;
    "scatter_axis" 1 ScatterAxis;
    "dot" 1 Dot;
    "conv" 1 Conv;
    "pool" 2 Pool, 1 dense_pool;
    "random_bits" 1 RandomBits;
    "sort" 1 Sort;
    "fft" 1 Fft;
    "linalg" 1 Linalg;
    "attention" 2 Attention;
    "attention_grad" 2 AttentionGrad;
    "batch_norm" 1 BatchNorm;
    "quantized_dot" 1 QuantizedDot;
}

/// A pooling before windows had a dilation.
fn dense_pool(from: &mut Reader<'_>) -> Result<Pool, String> {
    let (role, input) = (Stored::read(from)?, Dims::read(from)?);
    let (window, stride, padding) = (Stored::read(from)?, Stored::read(from)?, Stored::read(from)?);
    let dilation = input.iter().map(|_| 1).collect();
    Ok(Pool { role, input, window, stride, padding, dilation })
}

/// A call, whose body is a graph of its own.
const CALL: (&str, u16) = ("call", 1);

/// Control flow, whose bodies are graphs of their own.
const SCAN_LOOP: (&str, u16) = ("scan_loop", 1);
const WHILE_LOOP: (&str, u16) = ("while_loop", 1);
/// A loop that says how often it runs at most.
const BOUNDED_LOOP: (&str, u16) = ("bounded_loop", 1);
const COND: (&str, u16) = ("cond", 1);

/// A kernel of one's own: its kind, and what it is made from.
const CUSTOM: (&str, u16) = ("custom", 1);

fn known<P: Known>(version: u16, from: &mut Reader<'_>) -> Result<Op, String>
where
    Op: From<P>,
{
    match version == P::VERSION {
        true => Ok(Op::from(P::read(from)?)),
        false => Err(newer(version, P::VERSION)),
    }
}

fn newer(version: u16, own: u16) -> String {
    format!("has version {version}; this program knows version {own}")
}

fn put<P: Known>(payload: &P, out: &mut Writer) -> (&'static str, u16) {
    payload.write(out);
    (P::NAME, P::VERSION)
}

/// Writes the fields of an op, whose bodies have these numbers; gives its name and version.
pub fn write(op: &Op, bodies: &[u32], out: &mut Writer) -> Result<(&'static str, u16), String> {
    Ok(match op {
        Op::Input(p) => put(p, out),
        Op::Constant(p) => put(p, out),
        Op::Movement(p) => put(p, out),
        Op::Mark(p) => put(p, out),
        Op::Elementwise(op) => match op {
            Elementwise::Unary(p) => put(p, out),
            Elementwise::Binary(p) => put(p, out),
            Elementwise::Compare(p) => put(p, out),
            Elementwise::Select(p) => put(p, out),
            Elementwise::Cast(p) => put(p, out),
        },
        Op::Reduce(p) => put(p, out),
        Op::Kernel(op) => with_kernel_payload!(op, p => put(p, out)),
        Op::Composite(op) => match op {
            Composite::Attention(p) => put(p, out),
            Composite::AttentionGrad(p) => put(p, out),
            Composite::BatchNorm(p) => put(p, out),
            Composite::QuantizedDot(p) => put(p, out),
        },
        Op::Call(call) => {
            bodies.first().ok_or("a call without a body")?.write(out);
            Rules::of(call).write(out);
            CALL
        }
        Op::Control(control) => match &**control {
            Control::Scan(Scanned { body: _, carries, sequences, length, reverse }) => {
                bodies.iter().for_each(|body| body.write(out));
                [carries, sequences, length].into_iter().for_each(|number| number.write(out));
                reverse.write(out);
                SCAN_LOOP
            }
            Control::While(While { cond: _, body: _, carries, most }) => {
                bodies.iter().for_each(|body| body.write(out));
                carries.write(out);
                most.inspect(|most| most.write(out)).map_or(WHILE_LOOP, |_| BOUNDED_LOOP)
            }
            Control::Cond(Cond { branches: _ }) => {
                bodies.to_vec().write(out);
                COND
            }
        },
        Op::Custom(custom) => {
            let Some((kind, text)) = custom.0.stored() else {
                return Err(format!(
                    "'{}' is an operator of the program's own: no package can hold its kernel",
                    custom.name()
                ));
            };
            out.text(kind);
            out.long_text(&text);
            CUSTOM
        }
    })
}

/// Reads the fields of the primitive of this name and version; `body` gives the graph of a number.
pub fn read(
    (name, version): (&str, u16),
    from: &mut Reader<'_>,
    body: &mut dyn FnMut(u32) -> Result<Arc<Graph>, String>,
) -> Result<Op, String> {
    if name == CALL.0 {
        if version != CALL.1 {
            return Err(newer(version, CALL.1));
        }
        let body = body(u32::read(from)?)?;
        return Ok(Op::from(Rules::read(from)?.call(body)));
    }
    let known =
        [SCAN_LOOP, WHILE_LOOP, BOUNDED_LOOP, COND].into_iter().find(|known| known.0 == name);
    if let Some((_, own)) = known {
        return match version == own {
            true => control(name, from, body).map(Op::from),
            false => Err(newer(version, own)),
        };
    }
    if name == CUSTOM.0 {
        if version != CUSTOM.1 {
            return Err(newer(version, CUSTOM.1));
        }
        let (kind, text) = (from.text()?, from.long_text()?);
        return made(kind, text).map(Op::Custom);
    }
    let op = of(name, version, from)
        .unwrap_or_else(|| Err("is a primitive that this program does not know".into()))?;
    sound(&op).map(|()| op)
}

/// Reads control flow of one of these names.
fn control(
    name: &str,
    from: &mut Reader<'_>,
    body: &mut dyn FnMut(u32) -> Result<Arc<Graph>, String>,
) -> Result<Control, String> {
    let mut call = |number: u32| Ok::<_, String>(Call::new("body", body(number)?, None));
    if name == COND.0 {
        let branches: Vec<u32> = Stored::read(from)?;
        let branches = branches.into_iter().map(call).collect::<Result<_, _>>()?;
        return Ok(Control::Cond(Cond { branches }));
    }
    if name == WHILE_LOOP.0 || name == BOUNDED_LOOP.0 {
        let (cond, body) = (call(u32::read(from)?)?, call(u32::read(from)?)?);
        let carries = usize::read(from)?;
        let most = if name == BOUNDED_LOOP.0 { Some(usize::read(from)?) } else { None };
        return Ok(Control::While(While { cond, body, carries, most }));
    }
    let body = call(u32::read(from)?)?;
    let (carries, sequences) = (usize::read(from)?, usize::read(from)?);
    let (length, reverse) = (usize::read(from)?, bool::read(from)?);
    Ok(Control::Scan(Scanned { body, carries, sequences, length, reverse }))
}

/// What a recorded op keeps to and inference does not look at.
fn sound(op: &Op) -> Result<(), String> {
    let rising = |axes: &[usize]| match axes.windows(2).all(|pair| pair[0] < pair[1]) {
        true => Ok(()),
        false => Err(format!("axes {axes:?} do not rise")),
    };
    match op {
        Op::Movement(Movement::Squeeze(a) | Movement::ExpandDims(a) | Movement::Flip(a)) => {
            rising(a)
        }
        Op::Reduce(reduce) => rising(&reduce.axes),
        Op::Composite(Composite::QuantizedDot(q)) => {
            match matches!(q.bits, 1..=6 | 8) && matches!(q.group_size, 32 | 64 | 128) {
                true => Ok(()),
                false => Err(format!("{} bits in groups of {}", q.bits, q.group_size)),
            }
        }
        Op::Input(_)
        | Op::Constant(_)
        | Op::Movement(_)
        | Op::Mark(_)
        | Op::Elementwise(_)
        | Op::Kernel(_)
        | Op::Composite(_)
        | Op::Call(_)
        | Op::Control(_)
        | Op::Custom(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pooling_of_the_first_version_is_dense() {
        let sizes = |of: [usize; 2]| Dims::from_slice(&of);
        let pool = Pool {
            role: PoolRole::Sum,
            input: sizes([7, 5]),
            window: sizes([3, 2]),
            stride: sizes([2, 1]),
            padding: vec![(1, 0), (0, 2)],
            dilation: sizes([1, 1]),
        };
        let bytes = |version| {
            let mut out = Writer::default();
            pool.role.write(&mut out);
            [&pool.input, &pool.window, &pool.stride].into_iter().for_each(|of| of.write(&mut out));
            pool.padding.write(&mut out);
            if version > 1 {
                pool.dilation.write(&mut out);
            }
            out.finish()
        };
        let read = |version| {
            let bytes = bytes(version);
            read(("pool", version), &mut Reader::new(&bytes), &mut |_| Err("no body".into()))
        };
        assert_eq!(read(1), Ok(pool.clone().into()));
        assert_eq!(read(2), Ok(pool.clone().into()));
        let error = read(3).unwrap_err();
        assert!(error.contains("version 3"), "{error}");
    }
}
