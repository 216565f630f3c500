//! What a target lacks, done with what it has.
//!
//! A graph is recorded again with other dtypes in the place of those that the target lacks: `float32`, rounded after
//! every operation, for `bfloat16`, and integers of 32 bits for those of 64 where what they may be is known to fit.

use cupola_core::graph::{Graph, Ref};
use cupola_core::prim::{
    Binary, Cast, Constant, Conv, Dot, Elementwise, Iota, KernelOp, Mark, Movement, Op, ReduceKind,
    ScanKind, Unary,
};
use cupola_core::{Array, Aval, DType, Error, Result, Scalar, ops};

use super::target::Target;
use super::{Port, Trace, Weight};

/// What an input of 64 bits is taken to be within, so that sizes may be added to it.
const GIVEN: i128 = 1 << 30;

/// The least and the largest that integers may be.
type Range = (i128, i128);

/// A value of the graph: its array in the new one, where there is one, and what integers are within.
#[derive(Clone)]
struct Known {
    array: Option<Array>,
    range: Option<Range>,
}

/// A node that cannot be done otherwise, and the dtype.
pub type Offender = (usize, DType);

impl Target {
    /// What takes the place of a dtype.
    fn dtype(self, dtype: DType) -> Option<DType> {
        let other = match dtype {
            _ if self.has(dtype) => dtype,
            DType::BF16 => DType::F32,
            DType::F64 if self.narrow => DType::F32,
            DType::I64 => DType::I32,
            DType::U64 => DType::U32,
            DType::F64
            | DType::Bool
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::F16
            | DType::F32
            | DType::C32
            | DType::C64 => return None,
        };
        self.has(other).then_some(other)
    }

    /// The trace in what the target has, or all nodes that hinder it.
    pub(super) fn decomposed(self, trace: &Trace) -> Result<Result<Trace, Vec<Offender>>> {
        let lacks = |aval: &Aval| !self.has(aval.dtype);
        if !within(&trace.graph, &lacks) {
            let (inputs, outputs) = (trace.inputs.clone(), trace.outputs.clone());
            let (weights, formulas) = (trace.weights.clone(), trace.formulas.clone());
            return Trace::new(trace.graph.clone(), inputs, outputs, weights, formulas).map(Ok);
        }
        let mut walk = Walk { target: self, offenders: Vec::new(), node: 0 };
        let mut weights = Vec::with_capacity(trace.weights.len());
        let mut given: Vec<Known> = Vec::new();
        let mut avals: Vec<Aval> = Vec::new();
        for (number, (aval, &node)) in
            trace.graph.input_avals().zip(&trace.graph.inputs).enumerate()
        {
            walk.node = node as usize;
            let weight = number.checked_sub(trace.inputs.len()).map(|at| &trace.weights[at]);
            let range = match weight {
                Some(weight) if lacks(aval) => range_of(&weight.array)?,
                None if lacks(aval) => {
                    within_dtype(aval.dtype).map(|(low, high)| (low.max(-GIVEN), high.min(GIVEN)))
                }
                _ => within_dtype(aval.dtype),
            };
            let Some(dtype) = walk.dtype(aval.dtype, range) else {
                given.push(Known { array: None, range });
                continue;
            };
            if let Some(Weight { name, array }) = weight {
                weights.push(Weight { name: name.clone(), array: ops::astype(array, dtype)? });
            }
            given.push(Known { array: None, range });
            avals.push(Aval { shape: aval.shape.clone(), dtype });
        }
        if !walk.offenders.is_empty() {
            // Without all inputs nothing is recorded: the rest is looked at for what hinders it, too.
            walk.graph(&trace.graph, given, true)?;
            return Ok(Err(walk.offenders));
        }
        let mut offenders = Vec::new();
        avals.truncate(trace.inputs.len());
        let recorded = |tracers: &[Array], weights: &[Array]| {
            let own = |(array, port): (&Array, &Port)| Aval {
                shape: array.aval().shape.clone(),
                dtype: port.dtype,
            };
            let own: Vec<Aval> = tracers.iter().zip(&trace.inputs).map(own).collect();
            let graph = match trace.graph.input_avals().zip(&own).all(|(a, b)| a == b) {
                true => trace.graph.clone(),
                false => trace.with_sizes(&own.iter().collect::<Vec<_>>())?,
            };
            let arrays = tracers.iter().chain(weights).cloned();
            let given = given.iter().zip(arrays);
            let given =
                given.map(|(known, array)| Known { array: Some(array), range: known.range });
            let mut walk = Walk { target: self, offenders: Vec::new(), node: 0 };
            let outputs = walk.graph(&graph, given.collect(), true)?;
            if offenders.is_empty() {
                offenders = walk.offenders;
            }
            let arrays: Option<Vec<Array>> = outputs.into_iter().map(|known| known.array).collect();
            Ok(arrays.unwrap_or_default())
        };
        let port = |(port, aval): (&Port, &Aval)| Port { dtype: aval.dtype, ..port.clone() };
        let inputs = trace.inputs.iter().zip(&avals).map(port).collect();
        let made = Trace::holding(inputs, &avals, weights, recorded);
        if !offenders.is_empty() {
            return Ok(Err(offenders));
        }
        let names = trace.outputs.iter().map(|port| port.name.clone());
        made.map(|made| Ok(made.named(names, |_| None)))
    }
}

/// Whether an aval in a graph, or in the bodies of its nodes, is `such`.
fn within(graph: &Graph, such: &impl Fn(&Aval) -> bool) -> bool {
    graph.nodes.iter().any(|node| node.outputs.iter().any(such) || hides(&node.op, such))
}

/// Whether an aval in the bodies of a node is `such`.
fn hides(op: &Op, such: &impl Fn(&Aval) -> bool) -> bool {
    match op {
        Op::Call(call) => within(&call.body, such),
        Op::Control(control) => control.bodies().iter().any(|body| within(&body.body, such)),
        Op::Input(_)
        | Op::Constant(_)
        | Op::Movement(_)
        | Op::Mark(_)
        | Op::Elementwise(_)
        | Op::Reduce(_)
        | Op::Kernel(_)
        | Op::Composite(_)
        | Op::Custom(_) => false,
    }
}

/// What integers and bools of a dtype are within.
fn within_dtype(dtype: DType) -> Option<Range> {
    let bits = 8 * dtype.size() as u32;
    match dtype {
        DType::Bool => Some((0, 1)),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some((0, (1 << bits) - 1)),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
        }
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::C32 | DType::C64 => None,
    }
}

fn fits((low, high): Range, dtype: DType) -> bool {
    within_dtype(dtype).is_some_and(|(least, most)| least <= low && high <= most)
}

/// What the elements of a weight are within.
fn range_of(array: &Array) -> Result<Option<Range>> {
    Ok(match array.dtype() {
        DType::I64 => ends(array.to_vec::<i64>()?),
        DType::U64 => ends(array.to_vec::<u64>()?),
        _ => None,
    })
}

fn ends<T: Copy + Ord + Into<i128>>(all: Vec<T>) -> Option<Range> {
    let (least, most) = (all.iter().min()?, all.iter().max()?);
    Some(((*least).into(), (*most).into()))
}

/// The values that these name.
fn found(values: &[Vec<Known>], refs: &[Ref]) -> Vec<Known> {
    refs.iter().map(|r| values[r.node as usize][r.output as usize].clone()).collect()
}

struct Walk {
    target: Target,
    offenders: Vec<Offender>,
    /// The node of the trace's graph.
    node: usize,
}

impl Walk {
    /// The dtype in the new graph; `None`, and an offender, where there is none that holds it.
    fn dtype(&mut self, dtype: DType, range: Option<Range>) -> Option<DType> {
        let found = self.target.dtype(dtype).filter(|&other| {
            other == dtype || !dtype.is_integer() || range.is_some_and(|range| fits(range, other))
        });
        if found.is_none() {
            self.hinders(dtype);
        }
        found
    }

    fn hinders(&mut self, dtype: DType) {
        if self.offenders.last().is_none_or(|(node, _)| *node != self.node) {
            self.offenders.push((self.node, dtype));
        }
    }

    fn graph(&mut self, graph: &Graph, inputs: Vec<Known>, is_outer: bool) -> Result<Vec<Known>> {
        let mut inputs = inputs.into_iter();
        let mut values: Vec<Vec<Known>> = Vec::with_capacity(graph.nodes.len());
        for (index, node) in graph.nodes.iter().enumerate() {
            if node.op.is_input() {
                values.push(inputs.next().into_iter().collect());
                continue;
            }
            if is_outer {
                self.node = index;
            }
            let args = found(&values, &node.inputs);
            let avals: Vec<&Aval> = node.inputs.iter().map(|&r| graph.aval(r)).collect();
            values.push(self.node(&node.op, args, &avals, &node.outputs)?);
        }
        Ok(found(&values, &graph.outputs))
    }

    fn node(
        &mut self,
        op: &Op,
        args: Vec<Known>,
        avals: &[&Aval],
        outputs: &[Aval],
    ) -> Result<Vec<Known>> {
        let target = self.target;
        let lacks = |aval: &Aval| !target.has(aval.dtype);
        let touches = avals.iter().any(|aval| lacks(aval)) || outputs.iter().any(lacks);
        match op {
            Op::Call(call) if touches || hides(op, &lacks) => {
                return self.graph(&call.body, args, false);
            }
            Op::Composite(composite) if touches => {
                let body = composite.graph(avals)?;
                return self.graph(&body, args, false);
            }
            _ => {}
        }
        let ranges: Vec<Option<Range>> = args.iter().map(|known| known.range).collect();
        let found: Vec<Option<Range>> = outputs
            .iter()
            .map(|aval| {
                let own = range(op, &ranges, avals, aval).filter(|range| fits(*range, aval.dtype));
                // What 64 bits hold is known by its range alone.
                own.or_else(|| within_dtype(aval.dtype).filter(|_| target.has(aval.dtype)))
            })
            .collect();
        let mut dtypes = Vec::with_capacity(outputs.len());
        for (aval, range) in outputs.iter().zip(&found) {
            dtypes.push(self.dtype(aval.dtype, *range));
        }
        if hides(op, &lacks) {
            self.hinders(outputs[0].dtype);
        }
        let arrays: Option<Vec<&Array>> = args.iter().map(|known| known.array.as_ref()).collect();
        let wanted: Option<Vec<DType>> = dtypes.into_iter().collect();
        let made = match (arrays, wanted) {
            (Some(arrays), Some(wanted)) if touches => self.other(op, &arrays, &wanted, outputs)?,
            (Some(arrays), Some(_)) if !hides(op, &lacks) => {
                Some(Array::apply_multi(op.clone(), &arrays)?)
            }
            _ => None,
        };
        let known = |number: usize| Known {
            array: made.as_ref().map(|made| made[number].clone()),
            range: found[number],
        };
        Ok((0..outputs.len()).map(known).collect())
    }

    /// A primitive in other dtypes; `None`, and an offender, where it is none that can be.
    fn other(
        &mut self,
        op: &Op,
        args: &[&Array],
        wanted: &[DType],
        outputs: &[Aval],
    ) -> Result<Option<Vec<Array>>> {
        let dtype = wanted[0];
        let target = self.target;
        let held = |dtype: DType| target.dtype(dtype).unwrap_or(dtype);
        let changed = match op {
            Op::Constant(Constant { value, aval }) => {
                let aval = Aval { shape: aval.shape.clone(), dtype };
                Op::from(Constant { value: *value, aval })
            }
            Op::Kernel(KernelOp::Iota(iota)) => Op::from(Iota { dtype, ..iota.clone() }),
            Op::Elementwise(Elementwise::Cast(_)) if args[0].dtype() == dtype => {
                Op::Mark(Mark::Depends)
            }
            Op::Elementwise(Elementwise::Cast(_)) => Op::from(Cast { to: dtype }),
            Op::Kernel(KernelOp::Dot(dot)) => {
                let (accumulate, result) = (held(dot.accumulate), held(dot.result));
                Op::from(Dot { accumulate, result, ..*dot })
            }
            Op::Kernel(KernelOp::Conv(conv)) => {
                let (accumulate, result) = (held(conv.accumulate), held(conv.result));
                Op::from(Conv { accumulate, result, ..(**conv).clone() })
            }
            // What its bytes are is another thing in another dtype.
            Op::Kernel(KernelOp::Bitcast(_)) | Op::Custom(_) | Op::Control(_) => {
                self.hinders(outputs[0].dtype);
                return Ok(None);
            }
            Op::Input(_)
            | Op::Movement(_)
            | Op::Mark(_)
            | Op::Elementwise(_)
            | Op::Reduce(_)
            | Op::Kernel(_)
            | Op::Composite(_)
            | Op::Call(_) => op.clone(),
        };
        let made = match Array::apply_multi(changed, args) {
            Ok(made) if made.iter().zip(wanted).all(|(made, want)| made.dtype() == *want) => made,
            Ok(_) | Err(Error::DType { .. }) => {
                self.hinders(outputs[0].dtype);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let is_kept = matches!(op, Op::Movement(_) | Op::Mark(_))
            || matches!(op, Op::Elementwise(Elementwise::Select(_)));
        let rounds = |aval: &Aval| aval.dtype == DType::BF16 && dtype != DType::BF16 && !is_kept;
        let made = made.into_iter().zip(outputs);
        made.map(|(array, aval)| if rounds(aval) { bfloat(&array) } else { Ok(array) })
            .collect::<Result<Vec<_>>>()
            .map(Some)
    }
}

/// `float32` rounded to what `bfloat16` holds: to the nearest, of two the even one.
fn bfloat(x: &Array) -> Result<Array> {
    let bits = ops::view(x, DType::U32)?;
    let last = ops::bitwise_and(&ops::right_shift(&bits, 16)?, 1)?;
    let moved = ops::add(&ops::add(&bits, &last)?, 0x7fff)?;
    let rounded = ops::view(&ops::bitwise_and(&moved, 0xffff_0000u32)?, DType::F32)?;
    ops::select(&ops::isnan(x)?, x, &rounded)
}

/// What the results of a primitive on integers of these ranges are within, before they wrap.
fn range(op: &Op, args: &[Option<Range>], avals: &[&Aval], output: &Aval) -> Option<Range> {
    if !output.dtype.is_integer() {
        return None;
    }
    let arg = |number: usize| args.get(number).copied().flatten();
    let both = |a: Range, b: Range| (a.0.min(b.0), a.1.max(b.1));
    let all = || {
        let mut ranges = args.iter().copied();
        let first = ranges.next()??;
        ranges.try_fold(first, |sum, range| Some(both(sum, range?)))
    };
    let count = |axes: &[usize]| axes.iter().map(|&axis| avals[0].shape[axis] as i128).product();
    let times = |(low, high): Range, count: i128| {
        (low.min(low.saturating_mul(count)), high.max(high.saturating_mul(count)))
    };
    match op {
        Op::Constant(constant) => match constant.value {
            Scalar::Int(value) => Some((value.into(), value.into())),
            Scalar::Uint(value) => Some((value.into(), value.into())),
            Scalar::Bool(_) | Scalar::Float(_) | Scalar::Complex(..) => None,
        },
        Op::Movement(Movement::Broadcast(_)) | Op::Mark(_) => arg(0),
        Op::Movement(_) => all(),
        Op::Elementwise(op) => elementwise(op, args),
        Op::Reduce(reduce) => match reduce.kind {
            ReduceKind::Max | ReduceKind::Min => arg(0),
            ReduceKind::Sum => Some(times(both(arg(0)?, (0, 0)), count(&reduce.axes))),
            ReduceKind::Prod | ReduceKind::Any | ReduceKind::All => None,
        },
        Op::Kernel(KernelOp::Iota(iota)) => Some((0, (iota.shape[iota.axis] as i128 - 1).max(0))),
        Op::Kernel(KernelOp::ArgReduce(reduce)) => {
            Some((0, (avals[0].shape[reduce.axis] as i128 - 1).max(0)))
        }
        Op::Kernel(KernelOp::Sort(sort)) if sort.indices => {
            Some((0, (avals[0].shape[sort.axis] as i128 - 1).max(0)))
        }
        Op::Kernel(KernelOp::Sort(_)) => arg(0),
        // Outside of an axis they may read nothing.
        Op::Kernel(KernelOp::Gather(_) | KernelOp::GatherAxis(_)) => Some(both(arg(0)?, (0, 0))),
        Op::Kernel(KernelOp::Scan(scan)) => match scan.kind {
            ScanKind::Max | ScanKind::Min => arg(0),
            ScanKind::Sum => Some(times(both(arg(0)?, (0, 0)), count(&[scan.axis]))),
            ScanKind::Prod | ScanKind::LogAddExp => None,
        },
        Op::Kernel(_)
        | Op::Input(_)
        | Op::Composite(_)
        | Op::Call(_)
        | Op::Control(_)
        | Op::Custom(_) => None,
    }
}

fn elementwise(op: &Elementwise, args: &[Option<Range>]) -> Option<Range> {
    let arg = |number: usize| args.get(number).copied().flatten();
    let ends = |[[a, b], [c, d]]: [[i128; 2]; 2]| (a.min(b).min(c).min(d), a.max(b).max(c).max(d));
    let (a, b) = (arg(0), arg(1));
    Some(match op {
        Elementwise::Cast(_) => a?,
        Elementwise::Select(_) => {
            let (b, c) = (b?, arg(2)?);
            (b.0.min(c.0), b.1.max(c.1))
        }
        Elementwise::Unary(unary) => match unary {
            Unary::Neg => (-a?.1, -a?.0),
            Unary::Abs => (0, a?.0.abs().max(a?.1.abs())),
            Unary::Sign => (-1, 1),
            Unary::Floor | Unary::Ceil | Unary::Round => a?,
            Unary::Square => (0, a?.0.abs().max(a?.1.abs()).saturating_pow(2)),
            _ => return None,
        },
        Elementwise::Binary(binary) => match binary {
            Binary::Add => (a?.0 + b?.0, a?.1 + b?.1),
            Binary::Sub => (a?.0 - b?.1, a?.1 - b?.0),
            Binary::Mul => {
                let (a, b) = (a?, b?);
                ends([a.0, a.1].map(|a| [b.0, b.1].map(|b| a.saturating_mul(b))))
            }
            Binary::Maximum => (a?.0.max(b?.0), a?.1.max(b?.1)),
            Binary::Minimum => (a?.0.min(b?.0), a?.1.min(b?.1)),
            // Towards −∞, and 0 where it is by 0.
            Binary::FloorDivide if b?.0 > 0 => (a?.0.min(0), a?.1.max(0)),
            Binary::Remainder if b?.0 >= 0 => (0, b?.1),
            _ => return None,
        },
        Elementwise::Compare(_) => (0, 1),
    })
}
