//! Which values of a plan lie in the same memory, one after the other.
//!
//! The largest are placed first: each takes the smallest memory that has room for it and is free while it lives, or new
//! memory of its own size ("greedy by size" for shared objects, Y. Pisarchyk and J. Lee, Efficient Memory Management for
//! Deep Neural Net Inference, 2020). So what is large is used again and again, and stays in the caches.

use std::collections::BTreeMap;

use super::{SlotSpec, Step};

/// Smaller values, in bytes, take what is there when they come.
const SMALL: usize = 4 << 10;

/// How many pieces of memory are looked at for a value: planning takes no longer for more.
const LOOKED_AT: usize = 64;

/// Values of which each overwrites the one before, and so are in one place.
struct Chain {
    bytes: usize,
    /// The first step that writes to it, and the last that reads it.
    first: usize,
    last: usize,
    /// Whether it outlives the run, in memory of its own size.
    is_output: bool,
    /// Whether it begins in the memory of a leaf, where that may be overwritten: no other may count on a home for it.
    is_of_leaf: bool,
    /// How many of its values are alive.
    live: usize,
}

/// Memory for some of the chains: its size, and the last step of what lies there from each first step.
struct Home {
    bytes: usize,
    taken: BTreeMap<usize, usize>,
}

impl Home {
    fn takes(&self, chain: &Chain) -> bool {
        let fits = if chain.is_output { self.bytes == chain.bytes } else { true };
        // Of what begins until the chain ends only the last can still be there when it begins.
        let before = self.taken.range(..=chain.last).next_back();
        fits && before.is_none_or(|(_, &last)| last < chain.first)
    }
}

/// Notes in which home each slot is to lie that no leaf has, and gives the sizes of the homes.
pub(super) fn note_homes(steps: &[Step], slots: &mut [SlotSpec], leaves: usize) -> Vec<usize> {
    let (chains, chain_of) = chains(steps, slots, leaves);
    let (homes, home_of) = assign(&chains);
    for (slot, chain) in slots.iter_mut().zip(chain_of) {
        slot.home = chain.and_then(|chain| home_of[chain]);
    }
    homes
}

/// The sizes of the homes, and the one of each chain that is not small.
fn assign(chains: &[Chain]) -> (Vec<usize>, Vec<Option<u32>>) {
    let mut order: Vec<usize> =
        (0..chains.len()).filter(|&c| chains[c].bytes >= SMALL && !chains[c].is_of_leaf).collect();
    order.sort_by_key(|&c| std::cmp::Reverse(chains[c].bytes));
    let mut homes: Vec<Home> = Vec::new();
    let mut home_of: Vec<Option<u32>> = vec![None; chains.len()];
    for index in order {
        let chain = &chains[index];
        let place = (0..homes.len()).rev().take(LOOKED_AT).find(|&home| homes[home].takes(chain));
        let place = place.unwrap_or_else(|| {
            homes.push(Home { bytes: chain.bytes, taken: BTreeMap::new() });
            homes.len() - 1
        });
        homes[place].taken.insert(chain.first, chain.last);
        home_of[index] = Some(place as u32);
    }
    (homes.iter().map(|home| home.bytes).collect(), home_of)
}

/// The chains, and that of each slot. A slot joins the one that it may overwrite, as a run lets it where no leaf is
/// overwritten.
fn chains(steps: &[Step], slots: &[SlotSpec], leaves: usize) -> (Vec<Chain>, Vec<Option<usize>>) {
    let mut chains: Vec<Chain> = Vec::new();
    let mut chain_of: Vec<Option<usize>> = vec![None; slots.len()];
    for (index, step) in steps.iter().enumerate() {
        for (at, output) in step.outputs.iter().enumerate() {
            let slot = output.slot as usize;
            if slot < leaves || chain_of[slot].is_some() {
                continue;
            }
            let SlotSpec { bytes, is_output, .. } = slots[slot];
            let donor = step.aliases.iter().find(|pair| usize::from(pair.0) == at);
            let donor = donor.map(|pair| step.inputs[usize::from(pair.1)].slot).filter(|donor| {
                step.frees.contains(donor) && slots[*donor as usize].bytes == bytes
            });
            let is_of_leaf = donor.is_some_and(|donor| (donor as usize) < leaves);
            let chain = donor.and_then(|donor| chain_of[donor as usize]);
            let chain = chain.filter(|&chain| chains[chain].live == 1).unwrap_or_else(|| {
                let (first, last, is_output, live) = (index, index, false, 0);
                chains.push(Chain { bytes, first, last, is_output, is_of_leaf, live });
                chains.len() - 1
            });
            chains[chain].live += 1;
            if is_output {
                chains[chain].is_output = true;
                chains[chain].last = usize::MAX;
            }
            chain_of[slot] = Some(chain);
        }
        for &slot in &step.frees {
            if let Some(chain) = chain_of[slot as usize] {
                chains[chain].live -= 1;
                chains[chain].last = chains[chain].last.max(index);
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
        Chain { bytes: bytes * 1024, first, last, is_output, is_of_leaf: false, live: 0 }
    }

    #[test]
    fn what_becomes_larger_and_smaller_again_takes_what_it_needs_at_once() {
        // Of a network that reads a picture: each value lives until the next is there.
        let sizes = [1600, 1600, 800, 4800, 1200, 300, 1800, 1800, 300];
        let chains: Vec<Chain> =
            sizes.iter().enumerate().map(|(at, &size)| chain((size, at, 1, false))).collect();
        let (homes, _) = assign(&chains);
        // The largest; those of two that are there at once later; and one that both of these are busy for.
        assert_eq!(homes, [4800 * 1024, 1800 * 1024, 300 * 1024]);
    }

    #[test]
    fn an_output_has_its_own_size() {
        let chains = [chain((64, 0, 1, false)), chain((32, 2, 0, true)), chain((32, 0, 1, false))];
        let (homes, of) = assign(&chains);
        assert_eq!(homes, [64 * 1024, 32 * 1024]);
        // What is there before an output may lie in its memory.
        assert_eq!(of, [Some(0), Some(1), Some(1)]);
    }

    proptest! {
        #[test]
        fn what_is_there_at_once_lies_apart(
            all in prop::collection::vec((1_usize..200, 0_usize..40, 0_usize..12, prop::bool::weighted(0.1)), 1..120)
        ) {
            let chains: Vec<Chain> = all.into_iter().map(chain).collect();
            let (homes, of) = assign(&chains);
            for (i, a) in chains.iter().enumerate() {
                let Some(home) = of[i] else {
                    prop_assert!(a.bytes < SMALL);
                    continue;
                };
                let has = homes[home as usize];
                prop_assert!(has >= a.bytes && (!a.is_output || has == a.bytes));
                for (j, b) in chains.iter().enumerate().skip(i + 1) {
                    let is_at_once = a.first <= b.last && b.first <= a.last;
                    prop_assert!(!is_at_once || of[j] != of[i], "{i} and {j}");
                }
            }
        }
    }
}
