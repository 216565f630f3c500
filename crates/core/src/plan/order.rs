//! The order in which steps run: what frees as much memory as it takes runs as soon as it can.
//!
//! The order of the graph is that of the first thing that was asked for: gradients would wait, with
//! all that they are made from, until the last one is there. So after each step come those whose
//! operands are there now, if they leave no more memory in use than before, by themselves or together
//! with what they make possible: the gradient of a weight, and the weight's update.

use smallvec::SmallVec;

use super::fuse::Slot;
use super::{SlotSpec, Step};

/// How many steps may go together.
const TOGETHER: usize = 4;

/// Bytes that are not worth waiting for.
const SMALL: isize = 256;

/// The steps in the order in which they are to run. Each entry of `waits` is a step that comes before
/// that one, whatever they read; `risky` says which steps may fail, after which alone leaves are
/// overwritten.
pub(super) fn order(
    steps: &[Step],
    waits: &[Option<usize>],
    risky: &[usize],
    slots: &[SlotSpec],
    leaves: usize,
) -> Vec<usize> {
    let mut run = Run::new(steps, waits, risky, slots, leaves);
    let ready: Vec<usize> = (0..steps.len()).filter(|&step| run.missing[step] == 0).collect();
    for step in ready {
        if !run.is_done[step] && run.pays(step) {
            run.follow();
        }
    }
    for step in 0..steps.len() {
        if !run.is_done[step] {
            run.go(step);
            run.follow();
        }
    }
    run.order
}

/// Which steps there are no more, or not yet.
struct Run<'a> {
    steps: &'a [Step],
    slots: &'a [SlotSpec],
    leaves: usize,
    /// The steps that wait for each.
    next: Vec<SmallVec<[u32; 4]>>,
    /// For how many steps each waits still.
    missing: Vec<u32>,
    /// The steps that touch each slot, and how many of them are still to come.
    touch: Vec<SmallVec<[u32; 4]>>,
    left: Vec<u32>,
    is_risky: Vec<bool>,
    risks: usize,
    is_done: Vec<bool>,
    order: Vec<usize>,
    /// How many of those were asked what they make possible.
    followed: usize,
}

impl<'a> Run<'a> {
    fn new(
        steps: &'a [Step],
        waits: &[Option<usize>],
        risky: &[usize],
        slots: &'a [SlotSpec],
        leaves: usize,
    ) -> Self {
        let mut run = Run {
            steps,
            slots,
            leaves,
            next: vec![SmallVec::new(); steps.len()],
            missing: vec![0; steps.len()],
            touch: vec![SmallVec::new(); slots.len()],
            left: vec![0; slots.len()],
            is_risky: vec![false; steps.len()],
            risks: risky.len(),
            is_done: vec![false; steps.len()],
            order: Vec::with_capacity(steps.len()),
            followed: 0,
        };
        risky.iter().for_each(|&step| run.is_risky[step] = true);
        let mut writer: Vec<Option<u32>> = vec![None; slots.len()];
        for (at, step) in steps.iter().enumerate() {
            let mut before: SmallVec<[u32; 8]> =
                waits[at].map(|step| step as u32).into_iter().collect();
            for slot in touched(step) {
                before.extend(writer[slot as usize]);
                run.touch[slot as usize].push(at as u32);
                run.left[slot as usize] += 1;
            }
            step.outputs.iter().for_each(|out| writer[out.slot as usize] = Some(at as u32));
            before.sort_unstable();
            before.dedup();
            run.missing[at] = before.len() as u32;
            before.iter().for_each(|&step| run.next[step as usize].push(at as u32));
        }
        run
    }

    /// Takes a step.
    fn go(&mut self, step: usize) {
        self.is_done[step] = true;
        self.risks -= usize::from(self.is_risky[step]);
        self.order.push(step);
        self.next[step].iter().for_each(|&next| self.missing[next as usize] -= 1);
        for slot in touched(&self.steps[step]) {
            self.left[slot as usize] -= 1;
        }
    }

    /// Takes the last step back.
    fn back(&mut self) {
        let Some(step) = self.order.pop() else { return };
        self.is_done[step] = false;
        self.risks += usize::from(self.is_risky[step]);
        self.next[step].iter().for_each(|&next| self.missing[next as usize] += 1);
        for slot in touched(&self.steps[step]) {
            self.left[slot as usize] += 1;
        }
    }

    /// Takes every step that is worth it after those that were taken last.
    fn follow(&mut self) {
        while self.followed < self.order.len() {
            let step = self.order[self.followed];
            self.followed += 1;
            for candidate in self.candidates(step) {
                if !self.is_done[candidate] && self.missing[candidate] == 0 {
                    self.pays(candidate);
                }
            }
        }
    }

    /// The steps that may be worth it now that `step` ran: those that waited for it, and the last to
    /// read what it read, too.
    fn candidates(&self, step: usize) -> SmallVec<[usize; 8]> {
        let mut found: SmallVec<[usize; 8]> = self.next[step].iter().map(|&s| s as usize).collect();
        for input in
            self.steps[step].inputs.iter().filter(|input| self.left[input.slot as usize] == 1)
        {
            let mut touching = self.touch[input.slot as usize].iter().map(|&s| s as usize);
            found.extend(touching.find(|&s| !self.is_done[s]));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Takes `step`, and what it makes possible, if no more memory is in use then. Nobody is asked
    /// whether to stop once a leaf is overwritten, so that has to free some.
    fn pays(&mut self, step: usize) -> bool {
        let (first, mut bytes, mut most, mut next) = (self.order.len(), 0, SMALL, Some(step));
        while let Some(step) = next.filter(|_| self.order.len() < first + TOGETHER) {
            let (growth, takes_leaf) = self.growth(step);
            bytes += growth;
            if takes_leaf {
                most = -1;
            }
            self.go(step);
            if bytes <= most {
                return true;
            }
            next = (self.next[step].iter().map(|&s| s as usize))
                .find(|&next| self.missing[next] == 0 && !self.is_done[next]);
        }
        while self.order.len() > first {
            self.back();
        }
        false
    }

    /// How much more memory is in use after a step, and whether it overwrites a leaf.
    fn growth(&self, step: usize) -> (isize, bool) {
        let Step { inputs, outputs, aliases, .. } = &self.steps[step];
        let bytes = |slot: Slot| self.slots[slot as usize].bytes as isize;
        let dies =
            |slot: Slot| self.left[slot as usize] == 1 && !self.slots[slot as usize].is_output;
        let is_leaf = |slot: Slot| (slot as usize) < self.leaves;
        let (mut growth, mut takes_leaf) = (0, false);
        for (at, output) in outputs.iter().enumerate() {
            let slot = output.slot;
            let is_first = self.left[slot as usize] as usize == self.touch[slot as usize].len();
            // A leaf may take the output, and is not counted as freed.
            let in_leaf = aliases.iter().any(|&(out, input)| {
                let input = inputs[usize::from(input)].slot;
                usize::from(out) == at && is_leaf(input) && dies(input) && self.risks == 0
            });
            takes_leaf |= in_leaf;
            if is_first && !in_leaf {
                growth += bytes(slot);
            }
        }
        let freed = touched(&self.steps[step]).into_iter();
        let freed: isize = freed.filter(|&slot| !is_leaf(slot) && dies(slot)).map(bytes).sum();
        (growth - freed, takes_leaf)
    }
}

/// The slots that a step touches, each once.
fn touched(step: &Step) -> SmallVec<[Slot; 8]> {
    let mut slots: SmallVec<[Slot; 8]> =
        step.inputs.iter().chain(&step.outputs).map(|access| access.slot).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}
