//! Steps that run at once: none needs what another does, and the device does alike work in one launch. Such are the
//! updates of a network's small parameters, and the parts of a concatenation.

use std::ops::Range;

use smallvec::SmallVec;

use super::fuse::Slot;
use super::{Access, SlotSpec, Step};
use crate::backend::Fails;

/// Bytes that a step may write or read, besides leaves, to wait for others: so much memory is used later again.
const LARGE: usize = 4 << 20;
/// Steps that run at once, at most.
const MOST: usize = 64;

/// Which steps of a plan run at once, as ranges of two and more steps in their order.
pub(super) type AtOnce = Vec<Range<usize>>;

/// The last step of those that run at once with a step.
pub(super) fn last_at_once(at_once: &[Range<usize>], step: usize) -> usize {
    let after = at_once.partition_point(|range| range.end <= step);
    at_once.get(after).filter(|range| range.contains(&step)).map_or(step, |range| range.end - 1)
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
        waiting: Vec::new(),
        is_waiting: vec![false; steps.len()],
        writers: vec![0; slots.len()],
        order: Vec::with_capacity(order.len()),
        at_once: Vec::new(),
    };
    let is_small = |access: &Access| {
        let slot = access.slot as usize;
        slot < leaves || slots[slot].bytes <= LARGE
    };
    for step in order {
        let Step { prepared, inputs, outputs, .. } = &steps[step];
        let executable = &prepared.executable;
        queue.release_for(step, waits[step]);
        match executable.kind() {
            Some(kind)
                if executable.fails() == Fails::Never
                    && inputs.iter().chain(outputs).all(is_small) =>
            {
                queue.wait(kind, step);
            }
            Some(_) | None => queue.order.push(step),
        }
    }
    queue.release(|_| true);
    (queue.order, queue.at_once)
}

/// Steps on their way to a new order.
struct Queue<'a> {
    steps: &'a [Step],
    /// Those that wait, by their kind. None of them needs what another does.
    waiting: Vec<(u64, SmallVec<[usize; 8]>)>,
    is_waiting: Vec<bool>,
    /// How many of them write to each slot.
    writers: Vec<u32>,
    order: Vec<usize>,
    at_once: AtOnce,
}

impl Queue<'_> {
    /// Runs the waiting steps of every kind that has one of these.
    fn release(&mut self, is_one: impl Fn(usize) -> bool) {
        let Queue { steps, waiting, is_waiting, writers, order, at_once } = self;
        waiting.retain(|(_, all)| {
            let is_over = all.iter().any(|&step| is_one(step));
            if is_over {
                if all.len() > 1 {
                    at_once.push(order.len()..order.len() + all.len());
                }
                order.extend(all);
                for &step in all {
                    is_waiting[step] = false;
                    steps[step].outputs.iter().for_each(|out| writers[out.slot as usize] -= 1);
                }
            }
            !is_over
        });
    }

    /// Runs what `step` needs, and what it has to come after.
    fn release_for(&mut self, step: usize, after: Option<usize>) {
        let steps = self.steps;
        let after = after.filter(|&after| self.is_waiting[after]);
        let inputs = &steps[step].inputs;
        if after.is_none() && inputs.iter().all(|input| self.writers[input.slot as usize] == 0) {
            return;
        }
        let reads = |slot: Slot| inputs.iter().any(|input| input.slot == slot);
        self.release(|other| {
            after == Some(other) || steps[other].outputs.iter().any(|output| reads(output.slot))
        });
    }

    /// Lets a step wait.
    fn wait(&mut self, kind: u64, step: usize) {
        let steps = self.steps;
        let alike = self.waiting.iter().find(|(other, _)| *other == kind);
        let is_free = |other: &usize| !overwrites(&steps[step], &steps[*other]);
        if let Some((_, all)) = alike
            && !(all.len() < MOST && all.iter().all(is_free))
        {
            let first = all[0];
            self.release(|other| other == first);
        }
        self.is_waiting[step] = true;
        steps[step].outputs.iter().for_each(|out| self.writers[out.slot as usize] += 1);
        match self.waiting.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, all)) => all.push(step),
            None => self.waiting.push((kind, SmallVec::from_slice(&[step]))),
        }
    }
}

/// Whether one of two steps may overwrite what the other reads.
fn overwrites(a: &Step, b: &Step) -> bool {
    let takes = |one: &Step, other: &Step| {
        let mut taken = one.aliases.iter().map(|&(_, input)| one.inputs[usize::from(input)].slot);
        taken.any(|slot| other.inputs.iter().any(|input| input.slot == slot))
    };
    takes(a, b) || takes(b, a)
}
