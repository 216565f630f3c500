//! Steps that run at once: none needs what another does, and the device does alike work in one launch. Such are the
//! updates of a network's small parameters, and the parts of a concatenation.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::fuse::Slot;
use super::{Access, SlotSpec, Step};
use crate::backend::Fails;

/// Bytes that steps write and read, besides leaves, to wait for others: so much memory is used later again.
const LARGE: usize = 4 << 20;
/// Those of all that wait.
const MOST_BYTES: usize = 32 << 20;
/// Steps that run at once, at most.
const MOST: usize = 64;

/// Which steps of a plan run at once, as ranges of two and more steps in their order.
pub(super) type AtOnce = Vec<Range<usize>>;

/// The last step of those that run at once with a step.
pub(super) fn last_at_once(at_once: &[Range<usize>], step: usize) -> usize {
    let after = at_once.partition_point(|range| range.end <= step);
    at_once.get(after).filter(|range| range.contains(&step)).map_or(step, |range| range.end - 1)
}

/// Those of the ranges whose steps, which are for other sizes now, may still run at once: one may have memory for its own
/// use now, or be able to take another's.
pub(super) fn still_at_once(steps: &[Arc<Step>], at_once: &[Range<usize>]) -> AtOnce {
    let may = |range: &&Range<usize>| {
        let steps = &steps[(*range).clone()];
        let is_free = |one: &Arc<Step>| {
            let mut others = steps.iter().filter(|other| !Arc::ptr_eq(other, one));
            one.prepared.executable.kind().is_some() && !others.any(|other| takes(one, other))
        };
        steps.iter().all(is_free)
    };
    at_once.iter().filter(may).cloned().collect()
}

/// The order in which steps run, in which alike ones wait for each other as long as nobody needs what they do, and
/// which of them run at once. `order`, `waits` and `slots` are as for [`order`](super::order::order).
pub(super) fn together(
    steps: &[Step],
    order: Vec<usize>,
    waits: &[Option<usize>],
    slots: &[SlotSpec],
    leaves: usize,
) -> (Vec<usize>, AtOnce) {
    let mut queue = Queue {
        steps,
        slots,
        waiting: Vec::new(),
        held: vec![None; steps.len()],
        writers: vec![0; slots.len()],
        readers: vec![0; slots.len()],
        bytes: 0,
        order: Vec::with_capacity(order.len()),
        at_once: Vec::new(),
    };
    for step in order {
        let Step { prepared, inputs, outputs, .. } = &steps[step];
        let executable = &prepared.executable;
        queue.release_for(step, waits[step]);
        let of_slot = |access: &Access| match access.slot as usize {
            leaf if leaf < leaves => 0,
            slot => slots[slot].bytes,
        };
        let bytes: usize = inputs.iter().chain(outputs).map(of_slot).sum();
        let may_wait = bytes <= LARGE && executable.fails() == Fails::Never;
        match executable.kind().filter(|_| may_wait) {
            Some(kind) => queue.wait(kind, step, bytes),
            None => queue.order.push(step),
        }
    }
    queue.release(|_| true);
    (queue.order, queue.at_once)
}

/// Steps on their way to a new order.
struct Queue<'a> {
    steps: &'a [Step],
    slots: &'a [SlotSpec],
    /// Those that wait, by their kind. None of them needs what another does.
    waiting: Vec<(u64, SmallVec<[usize; 8]>)>,
    /// The bytes that each of them writes and reads.
    held: Vec<Option<usize>>,
    /// How many of them write to each slot, and read it.
    writers: Vec<u32>,
    readers: Vec<u32>,
    /// Those of all.
    bytes: usize,
    order: Vec<usize>,
    at_once: AtOnce,
}

impl Queue<'_> {
    /// Runs the waiting steps of every kind that has one of these.
    fn release(&mut self, is_one: impl Fn(usize) -> bool) {
        let Queue { steps, waiting, held, writers, readers, bytes, order, at_once, .. } = self;
        waiting.retain(|(_, all)| {
            let is_over = all.iter().any(|&step| is_one(step));
            if is_over {
                if all.len() > 1 {
                    at_once.push(order.len()..order.len() + all.len());
                }
                order.extend(all);
                for &step in all {
                    *bytes -= held[step].take().unwrap_or(0);
                    let Step { inputs, outputs, .. } = &steps[step];
                    outputs.iter().for_each(|out| writers[out.slot as usize] -= 1);
                    inputs.iter().for_each(|input| readers[input.slot as usize] -= 1);
                }
            }
            !is_over
        });
    }

    /// Runs what `step` has to come after: the step `after`, what makes what it reads or overwrites a part of, and what
    /// reads what it may take the memory of.
    fn release_for(&mut self, step: usize, after: Option<usize>) {
        let (steps, slots) = (self.steps, self.slots);
        let after = after.filter(|&after| self.held[after].is_some());
        let Step { inputs, outputs, .. } = &steps[step];
        let is_touched = inputs.iter().any(|input| self.writers[input.slot as usize] > 0)
            || outputs.iter().any(|output| self.writers[output.slot as usize] > 0)
            || taken(&steps[step]).any(|slot| self.readers[slot as usize] > 0);
        if after.is_none() && !is_touched {
            return;
        }
        self.release(|other| {
            after == Some(other)
                || needs(&steps[step], &steps[other])
                || overlaps(&steps[step], &steps[other], slots)
                || takes(&steps[step], &steps[other])
        });
    }

    /// Lets a step wait, which writes and reads so many bytes.
    fn wait(&mut self, kind: u64, step: usize, bytes: usize) {
        let steps = self.steps;
        if self.bytes + bytes > MOST_BYTES {
            self.release(|_| true);
        }
        let alike = self.waiting.iter().find(|(other, _)| *other == kind);
        if let Some((_, all)) = alike
            && (all.len() == MOST || all.iter().any(|&other| takes(&steps[other], &steps[step])))
        {
            let first = all[0];
            self.release(|other| other == first);
        }
        self.held[step] = Some(bytes);
        self.bytes += bytes;
        let Step { inputs, outputs, .. } = &steps[step];
        outputs.iter().for_each(|out| self.writers[out.slot as usize] += 1);
        inputs.iter().for_each(|input| self.readers[input.slot as usize] += 1);
        match self.waiting.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, all)) => all.push(step),
            None => self.waiting.push((kind, SmallVec::from_slice(&[step]))),
        }
    }
}

/// Whether `step` reads what `other` writes.
fn needs(step: &Step, other: &Step) -> bool {
    step.inputs.iter().any(|input| other.outputs.iter().any(|output| output.slot == input.slot))
}

/// Whether two steps write to one slot, and not to parts of it as a concatenation does: one of them to all of it, as the
/// filling of what is padded.
fn overlaps(step: &Step, other: &Step, slots: &[SlotSpec]) -> bool {
    let is_whole = |step: &Step, at: usize| {
        let slot = step.outputs[at].slot as usize;
        step.prepared.segment.outputs[at].aval.bytes() >= slots[slot].bytes
    };
    let mut pairs = (0..step.outputs.len())
        .flat_map(|at| (0..other.outputs.len()).map(move |beside| (at, beside)));
    pairs.any(|(at, beside)| {
        step.outputs[at].slot == other.outputs[beside].slot
            && (is_whole(step, at) || is_whole(other, beside))
    })
}

/// The slots whose memory a step may take for an output.
fn taken(step: &Step) -> impl Iterator<Item = Slot> {
    step.aliases.iter().map(|&(_, input)| step.inputs[usize::from(input)].slot)
}

/// Whether `step` may take the memory of what `other` reads.
fn takes(step: &Step, other: &Step) -> bool {
    taken(step).any(|slot| other.inputs.iter().any(|input| input.slot == slot))
}
