//! Segments cut into pieces, for devices that bind only so much of a buffer at once.
//!
//! A piece is a segment of its own whose operands lie in the whole's, further on. What can be cut
//! is an axis that no element's computation crosses: all of an elementwise program's, those that a
//! reduction keeps, rows and batches of a product. A reduction is also cut along the axes that it
//! folds, and its pieces' results are folded again. What is little but lies far apart, as a few
//! columns of a matrix, is copied together first.

#![deny(clippy::wildcard_enum_match_arm)]

#[cfg(test)]
mod tests;

use cupola_core::DType;
use cupola_core::backend::Body;
use cupola_core::backend::{Kernel, Operand, Segment};
use cupola_core::prim::{Accumulates, ConvRole, KernelOp, ReduceKind};

use super::view::{is_far, span};
use super::{BufferRef, Missing};
use crate::ir::Ty;

/// The most pieces that a segment is cut into: beyond it the CPU is faster.
const MOST_PIECES: usize = 1 << 12;

/// A piece of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// What it computes.
    pub segment: Segment,
    /// Where each input lies, and how many elements further on than the whole one.
    pub inputs: Vec<(BufferRef, isize)>,
    /// Likewise each output.
    pub outputs: Vec<(BufferRef, isize)>,
    /// Which number it starts with, of a cut [`KernelOp::Iota`], or which element, of cut
    /// [`KernelOp::RandomBits`].
    pub first: Option<u32>,
}

/// A segment as its pieces, in the order in which they run.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// The pieces.
    pub pieces: Vec<Piece>,
    /// Bytes of the memory that they share.
    pub scratch: Vec<usize>,
    /// What of it no later piece reads.
    free: Vec<usize>,
}

/// An axis that may be cut: which axis of each input, of the outputs and of the body it is, if any.
/// Without an output it is folded.
struct Free {
    size: usize,
    inputs: Vec<Option<usize>>,
    output: Option<usize>,
    body: Option<usize>,
}

/// Cuts `segment` until no operand of a piece reaches over more than `bytes` bytes.
pub fn split(segment: &Segment, bytes: u64) -> Result<Split, Missing> {
    let whole = Piece {
        segment: segment.clone(),
        inputs: (0..segment.inputs.len()).map(|i| (BufferRef::Input(i), 0)).collect(),
        outputs: (0..segment.outputs.len()).map(|i| (BufferRef::Output(i), 0)).collect(),
        first: None,
    };
    let mut split = Split::default();
    split.add(whole, bytes)?;
    Ok(split)
}

/// The bytes that a kernel for `operand` has to bind; sorts also keep the elements' numbers.
fn needs(segment: &Segment, operand: &Operand) -> u64 {
    let own = span(operand).map_or(0, |(low, high)| (high - low + 1) as u64);
    let bytes = own.saturating_mul(operand.aval.dtype.size() as u64);
    match &segment.kernel {
        Kernel::Op(KernelOp::Sort(_)) => bytes.max(4 * operand.aval.shape.size() as u64),
        Kernel::Map(_)
        | Kernel::Reduce { .. }
        | Kernel::Rows { .. }
        | Kernel::Op(_)
        | Kernel::Composite(_)
        | Kernel::Control(_)
        | Kernel::Custom(_) => bytes,
    }
}

impl Split {
    fn add(&mut self, piece: Piece, bytes: u64) -> Result<(), Missing> {
        let operands = || piece.segment.inputs.iter().chain(&piece.segment.outputs);
        // Of what is empty nothing is bound, however long its other axes are.
        let large = |o: &&Operand| {
            o.aval.shape.size() > 0 && (is_far(o) || needs(&piece.segment, o) > bytes)
        };
        let Some((worst, operand)) = operands().enumerate().find(|(_, o)| large(o)) else {
            if self.pieces.len() == MOST_PIECES {
                let reason = format!("it would run in more than {MOST_PIECES} parts");
                return Err(Missing(reason));
            }
            self.pieces.push(piece);
            return Ok(());
        };
        // Elementwise programs can be cut along every axis.
        let gathers = !matches!(piece.segment.kernel, Kernel::Map(_));
        let dense = operand.aval.shape.size() as u64 * operand.aval.dtype.size() as u64;
        if gathers && dense <= bytes && needs(&piece.segment, operand) > dense {
            return self.bring_together(&piece, worst, bytes);
        }
        let axes = free_axes(&piece.segment);
        // How much it helps to cut an axis, and into what.
        let candidate = |free: &Free| -> Option<(u64, usize)> {
            let axis = if worst < piece.inputs.len() { free.inputs[worst] } else { free.output };
            let stride = operand.strides[axis?].unsigned_abs() as u64;
            // Repeated elements are not bound, but may be too many to count.
            if free.size == 1 || stride == 0 && !is_far(operand) {
                return None;
            }
            let step = chunk(operand, free.size, stride, bytes, gathers);
            let helps = free.output.is_some() || piece.shrinks(free.size.div_ceil(step));
            helps.then_some((stride * (free.size as u64 - 1), step))
        };
        let candidates = axes.iter().filter_map(|free| Some((free, candidate(free)?)));
        // What a product sums over is cut where nothing else can be: its results are not few.
        let is_op = matches!(piece.segment.kernel, Kernel::Op(_));
        let best = candidates
            .max_by_key(|(free, (gain, _))| (!is_op || free.output.is_some(), *gain, free.size));
        let Some((free, (_, step))) = best else {
            return Err(Missing(format!(
                "an operand of {} reaches over {} bytes, the device binds {bytes} at once",
                operand.aval,
                needs(&piece.segment, operand)
            )));
        };
        match free.output {
            Some(_) => (0..free.size)
                .step_by(step)
                .try_for_each(|start| self.add(piece.cut(free, start, step), bytes)),
            None => self.fold(&piece, free, step, bytes),
        }
    }

    /// Memory that the pieces share.
    fn take(&mut self, bytes: usize) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.scratch.push(0);
            self.scratch.len() - 1
        });
        self.scratch[at] = self.scratch[at].max(bytes);
        at
    }

    /// Runs `piece` on a copy without gaps of the operand `worst`, whose elements lie far apart.
    fn bring_together(&mut self, piece: &Piece, worst: usize, bytes: u64) -> Result<(), Missing> {
        let mut inner = piece.clone();
        let inputs = piece.inputs.len();
        let (own, at) = match worst.checked_sub(inputs) {
            None => (&mut inner.segment.inputs[worst], &mut inner.inputs[worst]),
            Some(output) => (&mut inner.segment.outputs[output], &mut inner.outputs[output]),
        };
        let dense = Operand::contiguous(&own.aval);
        let spread = (std::mem::replace(own, dense.clone()), *at);
        let scratch = self.take(dense.aval.shape.size() * dense.aval.dtype.size());
        *at = (BufferRef::Scratch(scratch), 0);
        let dense = (dense, *at);
        if worst < inputs {
            self.add(copy(spread, dense), bytes)?;
            self.add(inner, bytes)?;
        } else {
            self.add(inner, bytes)?;
            self.add(copy(dense, spread), bytes)?;
        }
        self.free.push(scratch);
        Ok(())
    }

    /// Cuts a reduction or a product along an axis that it folds.
    fn fold(&mut self, piece: &Piece, free: &Free, step: usize, bytes: u64) -> Result<(), Missing> {
        let mut aval = piece.segment.outputs[0].aval.clone();
        let (kind, dtype) = match &piece.segment.kernel {
            Kernel::Reduce { kind, .. } => (*kind, aval.dtype.accumulator()),
            Kernel::Op(op) => (ReduceKind::Sum, sum_dtype(op).unwrap_or(aval.dtype)),
            Kernel::Map(_)
            | Kernel::Rows { .. }
            | Kernel::Composite(_)
            | Kernel::Control(_)
            | Kernel::Custom(_) => return Ok(()),
        };
        aval.dtype = dtype;
        let (kept, count) = (aval.shape.size(), free.size.div_ceil(step));
        let scratch = self.take(count * kept * aval.dtype.size());
        let one = Operand::contiguous(&aval);
        for (number, start) in (0..free.size).step_by(step).enumerate() {
            let mut cut = piece.cut(free, start, step);
            cut.drop_epilogue(dtype);
            cut.segment.outputs = vec![one.clone()];
            cut.outputs = vec![(BufferRef::Scratch(scratch), (number * kept) as isize)];
            self.add(cut, bytes)?;
        }
        self.add(join(kind, count, &one, scratch, piece), bytes)?;
        if let Some(epilogue) = piece.epilogue() {
            self.add(epilogue, bytes)?;
        }
        self.free.push(scratch);
        Ok(())
    }
}

/// A copy between operands of one shape.
fn copy(from: (Operand, (BufferRef, isize)), to: (Operand, (BufferRef, isize))) -> Piece {
    let segment = Segment {
        kernel: Kernel::Map(Body::copy(from.0.aval.shape.clone(), from.0.aval.dtype)),
        inputs: vec![from.0],
        outputs: vec![to.0],
        scalars: Vec::new(),
        epilogue: None,
    };
    Piece { segment, inputs: vec![from.1], outputs: vec![to.1], first: None }
}

/// What a product sums in.
fn sum_dtype(op: &KernelOp) -> Option<DType> {
    match op.facts().accumulates {
        Accumulates::In(dtype) => Some(dtype),
        Accumulates::Nothing | Accumulates::Wide => None,
    }
}

/// Folds `count` results that lie one after another in `scratch`.
fn join(kind: ReduceKind, count: usize, one: &Operand, scratch: usize, whole: &Piece) -> Piece {
    let mut aval = one.aval.clone();
    aval.shape = std::iter::once(count).chain(aval.shape.iter().copied()).collect();
    let body = Body::copy(aval.shape.clone(), aval.dtype);
    let segment = Segment {
        kernel: Kernel::Reduce { body, kind, axes: [0].into_iter().collect() },
        inputs: vec![Operand::contiguous(&aval)],
        outputs: whole.segment.outputs.clone(),
        scalars: Vec::new(),
        epilogue: None,
    };
    let inputs = vec![(BufferRef::Scratch(scratch), 0)];
    Piece { segment, inputs, outputs: whole.outputs.clone(), first: None }
}

/// How much of an axis of `size` a piece has, so that `operand` with its `stride` along it fits, or
/// fits when it has been brought together: at most half.
fn chunk(operand: &Operand, size: usize, stride: u64, bytes: u64, together: bool) -> usize {
    let reach = span(operand).map_or(0, |(low, high)| (high - low) as u64);
    let most = (bytes / operand.aval.dtype.size() as u64).min(1 << 30);
    let others = reach - stride * (size as u64 - 1);
    let each = (operand.aval.shape.size() / size) as u64;
    let fits = match stride {
        0 => size as u64,
        _ if others < most => (most - others - 1) / stride + 1,
        _ if together => (most / each).max(1),
        _ => 1,
    };
    let step = (fits as usize).min(size.div_ceil(2));
    // Pieces start at whole words where there is a choice.
    if step > 64 { step / 64 * 64 } else { step }
}

impl Piece {
    /// Whether the results of `count` pieces of a reduction are much fewer than what it folds.
    fn shrinks(&self, count: usize) -> bool {
        match &self.segment.kernel {
            Kernel::Reduce { body, .. } => {
                2 * count * self.segment.outputs[0].aval.shape.size() <= body.shape.size()
            }
            Kernel::Map(_)
            | Kernel::Rows { .. }
            | Kernel::Op(_)
            | Kernel::Composite(_)
            | Kernel::Control(_)
            | Kernel::Custom(_) => true,
        }
    }

    /// Makes an axis of an op's result `size` long, from `start` on.
    fn shorten_op(&mut self, axis: usize, start: usize, size: usize) {
        let Kernel::Op(op) = &mut self.segment.kernel else { return };
        let out = &self.segment.outputs[0].aval.shape;
        let further = |by: usize| Some(self.first.unwrap_or(0) + by as u32);
        if let KernelOp::Iota(iota) = op {
            iota.shape.0[axis] = size;
            if axis == iota.axis {
                self.first = further(start);
            }
        } else if let KernelOp::RandomBits(bits) = op {
            if axis >= out.rank() - bits.shape.rank() {
                self.first = further(start * out[axis + 1..].iter().product::<usize>());
            }
        } else if let KernelOp::Gather(gather) = op
            && let Some(axis) = axis.checked_sub(out.rank() - gather.sizes.len())
        {
            gather.sizes[axis] = size;
        }
    }

    /// Leaves a product of `dtype` without what continues it.
    fn drop_epilogue(&mut self, dtype: DType) {
        if let Some(epilogue) = self.segment.epilogue.take() {
            self.segment.inputs.truncate(epilogue.first_input);
            self.inputs.truncate(epilogue.first_input);
            self.segment.scalars.clear();
        }
        if let Kernel::Op(KernelOp::Dot(dot)) = &mut self.segment.kernel {
            dot.result = dtype;
        }
        if let Kernel::Op(KernelOp::Conv(conv)) = &mut self.segment.kernel {
            conv.result = dtype;
        }
    }

    /// What continues an op, in place in its output, as a program of its own.
    fn epilogue(&self) -> Option<Piece> {
        let epilogue = self.segment.epilogue.as_ref()?;
        let first = epilogue.first_input;
        let (out, at) = (&self.segment.outputs[0], self.outputs[0]);
        let segment = Segment {
            kernel: Kernel::Map(epilogue.body.clone()),
            inputs: std::iter::once(out).chain(&self.segment.inputs[first..]).cloned().collect(),
            outputs: vec![out.clone()],
            scalars: self.segment.scalars.clone(),
            epilogue: None,
        };
        let inputs = std::iter::once(at).chain(self.inputs[first..].iter().copied()).collect();
        Some(Piece { segment, inputs, outputs: vec![at], first: None })
    }

    /// The piece of an axis from `start` on, of `step` or what is left.
    fn cut(&self, free: &Free, start: usize, step: usize) -> Piece {
        let size = step.min(free.size - start);
        let mut piece = self.clone();
        let shorten = |operand: &mut Operand, at: &mut (BufferRef, isize), axis: usize| {
            operand.aval.shape.0[axis] = size;
            at.1 += start as isize * operand.strides[axis];
        };
        let inputs = piece.segment.inputs.iter_mut().zip(&mut piece.inputs);
        for ((operand, at), axis) in inputs.zip(&free.inputs) {
            if let Some(axis) = *axis {
                shorten(operand, at, axis);
            }
        }
        if let Some(axis) = free.output {
            let outputs = piece.segment.outputs.iter_mut().zip(&mut piece.outputs);
            outputs.for_each(|(operand, at)| shorten(operand, at, axis));
            if let Some(epilogue) = &mut piece.segment.epilogue {
                epilogue.body.shape.0[axis] = size;
            }
        }
        match &mut piece.segment.kernel {
            Kernel::Map(body) | Kernel::Reduce { body, .. } | Kernel::Rows { body, .. } => {
                if let Some(axis) = free.body {
                    body.shape.0[axis] = size;
                }
            }
            Kernel::Op(_) => {
                if let Some(axis) = free.output {
                    piece.shorten_op(axis, start, size);
                }
            }
            Kernel::Composite(_) | Kernel::Control(_) | Kernel::Custom(_) => {}
        }
        piece
    }
}

/// The axes along which `segment` may be cut.
fn free_axes(segment: &Segment) -> Vec<Free> {
    let inputs = segment.inputs.len();
    let (body, axes) = match &segment.kernel {
        Kernel::Map(body) => (body, &[][..]),
        Kernel::Reduce { body, axes, .. } => (body, &axes[..]),
        Kernel::Rows { body, .. } => {
            // Rows stay whole.
            let rows = body.shape.rank().saturating_sub(1);
            let each = |axis: usize| Free {
                size: body.shape[axis],
                inputs: vec![Some(axis); inputs],
                output: Some(axis),
                body: Some(axis),
            };
            return (0..rows).map(each).collect();
        }
        Kernel::Op(op) => return of_op(op, segment),
        Kernel::Composite(_) | Kernel::Control(_) | Kernel::Custom(_) => return Vec::new(),
    };
    let mut kept = 0..;
    let each = body.shape.iter().enumerate().map(|(axis, &size)| Free {
        size,
        inputs: vec![Some(axis); inputs],
        output: if axes.contains(&axis) { None } else { kept.next() },
        body: Some(axis),
    });
    each.collect()
}

fn of_op(op: &KernelOp, segment: &Segment) -> Vec<Free> {
    let out = &segment.outputs[0].aval.shape;
    let shape = |input: usize| &segment.inputs[input].aval.shape;
    let own = match &segment.epilogue {
        Some(epilogue) => epilogue.first_input,
        None => segment.inputs.len(),
    };
    // Where an axis of the output is among the op's own inputs; an epilogue reads what it writes.
    let axis = |output: usize, of: &[Option<usize>]| {
        let rest = segment.inputs.len() - own;
        let inputs = of.iter().copied().chain(std::iter::repeat_n(Some(output), rest)).collect();
        Free { size: out[output], inputs, output: Some(output), body: None }
    };
    let same = |output: usize| axis(output, &vec![Some(output); own]);
    // An axis of both operands that is summed over.
    let summed = |axes: [usize; 2]| {
        let rest = segment.inputs.len() - own;
        let of = axes.map(Some).into_iter().chain(std::iter::repeat_n(None, rest));
        let (from, to) = (sum_dtype(op)?, segment.outputs[0].aval.dtype);
        let size = shape(0)[axes[0]];
        (Ty::of(from) == Ty::of(to)).then(|| Free {
            size,
            inputs: of.collect(),
            output: None,
            body: None,
        })
    };
    match op {
        KernelOp::Iota(_) => (0..out.rank()).map(|a| axis(a, &[])).collect(),
        KernelOp::RandomBits(p) => {
            // Keys first; of one key's elements, those that are neighbours.
            let long = |a: &usize| out[*a] > 1;
            let lead = out.rank() - p.shape.rank();
            let keys: Vec<Free> = (0..lead).filter(long).map(same).collect();
            match (keys.is_empty(), u32::try_from(p.shape.size())) {
                (true, Ok(_)) => {
                    (lead..out.rank()).find(long).map(|a| axis(a, &[None])).into_iter().collect()
                }
                _ => keys,
            }
        }
        KernelOp::Scan(p) => (0..out.rank()).filter(|&a| a != p.axis).map(same).collect(),
        // Along the last axis elements may change their number.
        KernelOp::Bitcast(_) => (0..out.rank().saturating_sub(1)).map(same).collect(),
        KernelOp::Sort(p) => (0..out.rank()).filter(|&a| a != p.axis).map(same).collect(),
        KernelOp::ArgReduce(p) => {
            (0..out.rank()).map(|a| axis(a, &[Some(if a < p.axis { a } else { a + 1 })])).collect()
        }
        KernelOp::Gather(p) => {
            let lead = out.rank() - p.sizes.len();
            let positions = (0..lead).map(|a| {
                let indices = std::iter::repeat_n(Some(a), p.axes.len());
                axis(a, &std::iter::once(None).chain(indices).collect::<Vec<_>>())
            });
            let slices = (0..p.sizes.len()).filter(|a| !p.axes.contains(a)).map(|a| {
                let indices = std::iter::repeat_n(None, p.axes.len());
                axis(lead + a, &std::iter::once(Some(a)).chain(indices).collect::<Vec<_>>())
            });
            positions.chain(slices).collect()
        }
        KernelOp::GatherAxis(p) => {
            let along = axis(p.axis, &[None, Some(p.axis)]);
            (0..out.rank()).filter(|&a| a != p.axis).map(same).chain([along]).collect()
        }
        KernelOp::Scatter(p) => {
            let lead = shape(1).rank() - out.rank();
            let whole = |a: &usize| !p.axes.contains(a) && shape(1)[lead + a] == out[*a];
            let each = (0..out.rank()).filter(whole).map(|a| {
                let indices = std::iter::repeat_n(None, p.axes.len());
                let of = [Some(a), Some(lead + a)].into_iter().chain(indices);
                axis(a, &of.collect::<Vec<_>>())
            });
            each.collect()
        }
        KernelOp::ScatterAxis(p) => (0..out.rank()).filter(|&a| a != p.axis).map(same).collect(),
        KernelOp::Dot(_) => {
            let (rows, columns) = (out.rank() - 2, out.rank() - 1);
            let batch = (0..rows).map(same);
            let summed = summed([columns, rows]);
            batch
                .chain([axis(rows, &[Some(rows), None]), axis(columns, &[None, Some(columns)])])
                .chain(summed)
                .collect()
        }
        KernelOp::Conv(p) => {
            let last = p.input.len() + 1;
            let mut axes = match p.role {
                ConvRole::Forward | ConvRole::InputGrad => vec![axis(0, &[Some(0), None])],
                // The images are summed over.
                ConvRole::WeightGrad => summed([0, 0]).into_iter().collect(),
            };
            if p.groups == 1 {
                axes.extend(match p.role {
                    ConvRole::Forward => vec![axis(last, &[None, Some(0)])],
                    ConvRole::InputGrad => vec![axis(last, &[None, Some(last)])],
                    ConvRole::WeightGrad => {
                        vec![axis(0, &[None, Some(last)]), axis(last, &[Some(last), None])]
                    }
                });
            }
            axes
        }
        KernelOp::Pool(_) => vec![same(0), same(out.rank() - 1)],
        // No kernel is there to run the parts.
        KernelOp::Fft(_) | KernelOp::Linalg(_) => Vec::new(),
    }
}
