//! Which values of a plan lie in the same memory, a room, one after the other.
//!
//! The largest are placed first: each takes the smallest room that is free while it lives, or a new one of its own size
//! ("greedy by size" for shared objects, Y. Pisarchyk and J. Lee, Efficient Memory Management for Deep Neural Net
//! Inference, 2020). So what is large is used again and again, and stays in the caches.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::together::last_at_once;
use super::{ScratchSpec, SlotSpec, Step};

/// Smaller values, in bytes, take what is there when they come.
const SMALL: usize = 4 << 10;

/// How many rooms are looked at for a value: more are there only in plans of many thousand steps.
const LOOKED_AT: usize = 2048;

/// Memory for some of a plan's slots.
pub(super) struct Room {
    pub bytes: usize,
    /// The step that makes the largest of them, and which of its outputs that is.
    pub maker: (usize, usize),
}

/// Values of which each overwrites the one before, and so are in one place.
struct Chain {
    bytes: usize,
    /// The step that makes it, and which of its outputs it is.
    maker: (usize, usize),
    /// The first step that writes to it, and the last that reads it.
    first: usize,
    last: usize,
    /// Whether it outlives the run, in memory of its own size.
    is_output: bool,
    /// Whether it begins in the memory of a leaf, where that may be overwritten: no other may count on a room for it.
    is_of_leaf: bool,
    /// How many of its values are alive.
    live: usize,
}

/// What lies in a room: from which step to which, in order.
#[derive(Default)]
struct Taken(SmallVec<[(usize, usize); 4]>);

impl Taken {
    /// Where a chain comes in, if nothing else is there while it lives.
    fn place(&self, chain: &Chain) -> Option<usize> {
        let at = self.0.partition_point(|&(first, _)| first <= chain.last);
        // Of what begins until the chain ends only the last can still be there when it begins.
        let before = at.checked_sub(1).map(|before| self.0[before]);
        before.is_none_or(|(_, last)| last < chain.first).then_some(at)
    }
}

/// Notes in which room each slot is to lie that no leaf has, and which one is each step's own while it runs, and gives
/// the rooms.
pub(super) fn note_rooms(
    (steps, at_once): (&[Arc<Step>], &[Range<usize>]),
    slots: &mut [SlotSpec],
    scratch: &mut [ScratchSpec],
    leaves: usize,
) -> Vec<Room> {
    let (mut chains, chain_of) = chains((steps, at_once), slots, leaves);
    let count = chains.len();
    chains.extend(scratch.iter().map(Chain::of_scratch));
    let (rooms, room_of) = assign(&chains);
    for (slot, chain) in slots.iter_mut().zip(chain_of) {
        slot.room = chain.and_then(|chain| room_of[chain]);
    }
    for (own, room) in scratch.iter_mut().zip(&room_of[count..]) {
        own.memory.room = *room;
    }
    rooms
}

impl Chain {
    fn of_scratch(&ScratchSpec { step, ref memory }: &ScratchSpec) -> Chain {
        let bytes = memory.bytes;
        let (maker, is_output, is_of_leaf, live) = ((step, 0), false, false, 0);
        Chain { bytes, maker, first: step, last: step, is_output, is_of_leaf, live }
    }
}

/// The rooms, and the one of each chain that is not small.
fn assign(chains: &[Chain]) -> (Vec<Room>, Vec<Option<u32>>) {
    let mut order: Vec<usize> =
        (0..chains.len()).filter(|&c| chains[c].bytes >= SMALL && !chains[c].is_of_leaf).collect();
    order.sort_by_key(|&c| std::cmp::Reverse(chains[c].bytes));
    let mut rooms: Vec<(Room, Taken)> = Vec::new();
    let mut room_of: Vec<Option<u32>> = vec![None; chains.len()];
    for index in order {
        let chain = &chains[index];
        let free = |(at, (room, taken)): (usize, &(Room, Taken))| {
            let fits = !chain.is_output || room.bytes == chain.bytes;
            fits.then(|| taken.place(chain)).flatten().map(|place| (at, place))
        };
        let found = rooms.iter().enumerate().rev().take(LOOKED_AT).find_map(free);
        let (at, place) = found.unwrap_or_else(|| {
            rooms.push((Room { bytes: chain.bytes, maker: chain.maker }, Taken::default()));
            (rooms.len() - 1, 0)
        });
        rooms[at].1.0.insert(place, (chain.first, chain.last));
        room_of[index] = Some(at as u32);
    }
    (rooms.into_iter().map(|(room, _)| room).collect(), room_of)
}

/// The chains, and that of each slot. A slot joins the one that it may overwrite, as a run lets it where no leaf is
/// overwritten. What one of several steps that run at once is the last to need is there until all of them are done.
fn chains(
    (steps, at_once): (&[Arc<Step>], &[Range<usize>]),
    slots: &[SlotSpec],
    leaves: usize,
) -> (Vec<Chain>, Vec<Option<usize>>) {
    let mut chains: Vec<Chain> = Vec::new();
    let mut chain_of: Vec<Option<usize>> = vec![None; slots.len()];
    for (index, step) in steps.iter().enumerate() {
        for (at, output) in step.outputs.iter().enumerate() {
            let slot = output.slot as usize;
            if slot < leaves || chain_of[slot].is_some() {
                continue;
            }
            let SlotSpec { bytes, is_output, .. } = slots[slot];
            let donor = step
                .donors(at)
                .find(|donor| step.frees.contains(donor) && slots[*donor as usize].bytes == bytes);
            let is_of_leaf = donor.is_some_and(|donor| (donor as usize) < leaves);
            let chain = donor.and_then(|donor| chain_of[donor as usize]);
            let chain = chain.filter(|&chain| chains[chain].live == 1).unwrap_or_else(|| {
                let (maker, is_output, live) = ((index, at), false, 0);
                let (first, last) = (index, index);
                chains.push(Chain { bytes, maker, first, last, is_output, is_of_leaf, live });
                chains.len() - 1
            });
            chains[chain].live += 1;
            if is_output {
                chains[chain].is_output = true;
                chains[chain].last = usize::MAX;
            }
            chain_of[slot] = Some(chain);
        }
        let last = last_at_once(at_once, index);
        for &slot in &step.frees {
            if let Some(chain) = chain_of[slot as usize] {
                chains[chain].live -= 1;
                chains[chain].last = chains[chain].last.max(last);
            }
        }
    }
    // What nobody reads and nobody frees is there to the end.
    for chain in chains.iter_mut().filter(|chain| chain.live > 0) {
        chain.last = usize::MAX;
    }
    (chains, chain_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chain((bytes, first, length, is_output): (usize, usize, usize, bool)) -> Chain {
        let last = if is_output { usize::MAX } else { first + length };
        let maker = (first, 0);
        Chain { bytes: bytes * 1024, maker, first, last, is_output, is_of_leaf: false, live: 0 }
    }

    fn sizes(rooms: &[Room]) -> Vec<usize> {
        rooms.iter().map(|room| room.bytes / 1024).collect()
    }

    #[test]
    fn what_becomes_larger_and_smaller_again_takes_what_it_needs_at_once() {
        // Of a network that reads a picture: each value lives until the next is there.
        let network = [1600, 1600, 800, 4800, 1200, 300, 1800, 1800, 300];
        let chains: Vec<Chain> =
            network.iter().enumerate().map(|(at, &size)| chain((size, at, 1, false))).collect();
        let (rooms, _) = assign(&chains);
        // The largest; those of two that are there at once later; and one that both of these are busy for.
        assert_eq!(sizes(&rooms), [4800, 1800, 300]);
        assert_eq!(rooms[0].maker, (3, 0));
    }

    #[test]
    fn many_that_are_kept_do_not_hide_what_is_free() {
        // What is kept on the way there is read on the way back, when there are others of its size.
        let layers = 300;
        let kept = (0..layers).map(|at| chain((64, at, 2 * (layers - at), false)));
        let back = (0..layers).map(|at| chain((64, layers + 1 + 2 * at, 2, false)));
        let (rooms, _) = assign(&kept.chain(back).collect::<Vec<_>>());
        assert!(rooms.len() <= layers + 2, "{}", rooms.len());
    }

    #[test]
    fn an_output_has_its_own_size() {
        let mut chains =
            vec![chain((64, 0, 1, false)), chain((32, 2, 0, true)), chain((32, 0, 1, false))];
        let (rooms, of) = assign(&chains);
        assert_eq!(sizes(&rooms), [64, 32]);
        // What is there before an output may lie in its memory.
        assert_eq!(of, [Some(0), Some(1), Some(1)]);
        // Unless that may be a leaf's.
        chains[1].is_of_leaf = true;
        assert_eq!(assign(&chains).1, [Some(0), None, Some(1)]);
    }

    #[test]
    fn what_a_step_is_given_for_itself_lies_where_nothing_else_does() {
        let spec = |step| ScratchSpec { step, memory: SlotSpec::new(60 << 10) };
        let values = [(64, 0, 1, false), (64, 1, 3, false)].map(chain);
        let given = [1, 2, 5].map(|step| Chain::of_scratch(&spec(step)));
        let (rooms, of) = assign(&values.into_iter().chain(given).collect::<Vec<_>>());
        // In step 1 both values are there, in step 2 the second alone, in step 5 none.
        assert_eq!(sizes(&rooms), [64, 64, 60]);
        assert_eq!(of[2], Some(2));
        assert!(of[3] != of[1] && of[4].is_some());
    }

    proptest! {
        #[test]
        fn what_is_there_at_once_lies_apart(
            all in prop::collection::vec(
                (1_usize..200, 0_usize..40, 0_usize..12, prop::bool::weighted(0.1)),
                1..120,
            )
        ) {
            let chains: Vec<Chain> = all.into_iter().map(chain).collect();
            let (rooms, of) = assign(&chains);
            for (i, a) in chains.iter().enumerate() {
                let Some(room) = of[i] else {
                    prop_assert!(a.bytes < SMALL);
                    continue;
                };
                let has = rooms[room as usize].bytes;
                prop_assert!(has >= a.bytes && (!a.is_output || has == a.bytes));
                for (j, b) in chains.iter().enumerate().skip(i + 1) {
                    let is_at_once = a.first <= b.last && b.first <= a.last;
                    prop_assert!(!is_at_once || of[j] != of[i], "{i} and {j}");
                }
            }
        }
    }
}
