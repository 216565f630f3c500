//! The first of a lane's elements in order, without sorting the others.
//!
//! Elements go past a limit, the best that is known so far: what does not keep it out of the first `few`
//! is put aside, and when there is no more room, the first `few` of these are kept and the last of them
//! is the new limit. So most elements of a long lane cost one comparison.

use super::rank::Bits;

/// Elements that are compared with the limit at once.
const BLOCK: usize = 64;
/// Room beyond what is kept, at least.
const ROOM: usize = 1 << 10;

/// From which end of the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The smallest.
    Front,
    /// The largest.
    Back,
}

impl End {
    /// The key of an element: no two are equal, and the first of this end are the smallest.
    #[inline(always)]
    pub fn key<T: Bits>(self, rank: T, place: u32) -> T::Numbered {
        match self {
            End::Front => rank.above(place),
            End::Back => !rank.above(place),
        }
    }

    /// The place in a key.
    #[inline(always)]
    pub fn place<T: Bits>(self, key: T::Numbered) -> usize {
        let key = if self == End::Back { !key } else { key };
        T::below(key) as usize
    }
}

/// How many keys [`first`] needs room for.
pub const fn room(few: usize) -> usize {
    2 * few + ROOM
}

/// Puts the keys of the first `few` elements of `lane` at the start of `keys`, in no order. The elements'
/// places count from `start`; `keys` has [`room`] for as many.
pub fn first<T: Bits>(
    lane: &[T],
    start: usize,
    few: usize,
    end: End,
    keys: &mut [T::Numbered],
    rank: impl Fn(&T) -> T + Copy,
) {
    let mut count = 0;
    let mut limit: Option<(T, T::Numbered)> = None;
    for (block, elements) in lane.chunks(BLOCK).enumerate() {
        if let Some((known, _)) = limit {
            // Without branches, so that it becomes vectors.
            let hits = |hit: bool, x: &T| {
                hit | match end {
                    End::Front => rank(x) <= known,
                    End::Back => rank(x) >= known,
                }
            };
            if !elements.iter().fold(false, hits) {
                continue;
            }
        }
        for (i, x) in elements.iter().enumerate() {
            let key = end.key(rank(x), (start + block * BLOCK + i) as u32);
            if limit.is_none_or(|(_, limit)| key < limit) {
                keys[count] = key;
                count += 1;
            }
        }
        if count + BLOCK > keys.len() {
            let (_, &mut last, _) = keys[..count].select_nth_unstable(few - 1);
            count = few;
            let place = end.place::<T>(last) - start;
            limit = Some((rank(&lane[place]), last));
        }
    }
    if count > few {
        keys[..count].select_nth_unstable(few - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::{End, first, room};
    use crate::sort::rank::Bits;

    #[test]
    fn the_first_are_those_of_a_sort() {
        for (size, few, values) in [
            (1, 1, 3),
            (63, 7, 5),
            (5000, 3, 4000),
            (5000, 600, 2),
            (70_000, 1, 1),
            (9000, 90, 9000),
        ] {
            let lane: Vec<u32> =
                (0..size).map(|i: u32| i.wrapping_mul(2_654_435_761) % values).collect();
            for end in [End::Front, End::Back] {
                let mut keys = vec![0u64; room(few)];
                first(&lane, 0, few, end, &mut keys, |&x| x);
                let mut found = keys[..few].to_vec();
                found.sort_unstable();
                let mut all: Vec<u64> =
                    lane.iter().enumerate().map(|(i, &x)| end.key(x, i as u32)).collect();
                all.sort_unstable();
                assert_eq!(found, all[..few], "{size} {few} {values} {end:?}");
                assert_eq!(end.place::<u32>(7u32.above(5)) == 5, end == End::Front);
            }
        }
    }
}
