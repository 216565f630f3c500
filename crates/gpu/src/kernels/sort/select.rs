//! Selection: the first or the last elements of the order of rows, or what lies before and behind a place of it,
//! without the rest of the order.
//!
//! The key at a place of the order is found digit by digit, from the highest: those elements are counted by their next
//! digit whose higher ones are known, and the sums of the counts tell which digit the place has, and which place it is
//! among these. How many elements are smaller than that key, and how many equal, before each part of a row says where
//! in the result its elements go, in the order in which they are. (T. Alabi, J. Blanchard, B. Gordon and R. Steinbach,
//! *Fast k-selection algorithms for graphics processing units*, 2012.)

use cupola_core::DType;
use cupola_core::prim::ScanKind;

use super::super::scan::{BLOCK, Fold, Totals, items, padded, padded_size, sums_before};
use super::super::{Draft, Launch, Missing, Program};
use super::{DIGIT, DIGITS, Middle, Radix, digit};
use crate::ir::{Access, Atomic, Buf, Number, Ty, Val};

/// Counters of one digit, so that threads with equal ones do not wait for each other.
const COPIES: u32 = 8;
/// What is known of the key of a row: its low word, its high word, and the place among the elements that share what is
/// known. The fourth word is not used.
const KNOWN: u32 = 4;

/// What is selected.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// So many elements from the start of the order.
    First(usize),
    /// So many elements up to its end.
    Last(usize),
    /// All, with the one at this place of the order there, none larger before it and none smaller behind it.
    Around(usize),
}

impl Wanted {
    /// The place of the order whose key is looked for.
    fn place(self, length: usize) -> usize {
        match self {
            Wanted::First(count) => count - 1,
            Wanted::Last(count) => length - count,
            Wanted::Around(place) => place,
        }
    }
}

/// Rows of which a part is selected.
pub(super) struct Selection<'a> {
    pub rows: &'a Radix<'a>,
    pub wanted: Wanted,
    /// Into how many parts rows are cut, and how many elements these have.
    parts: usize,
    part: usize,
    /// Scratch memory: counts by digits, what is known before and after a pass, counts by parts and their sums.
    counts: usize,
    known: [usize; 2],
    by_parts: [usize; 2],
}

/// Whether an element comes before the key that was found, and whether it has the same.
struct Compared<'k> {
    less: Val<'k>,
    equal: Val<'k>,
}

impl<'a> Selection<'a> {
    pub fn new(rows: &'a Radix<'a>, wanted: Wanted, program: &mut Program) -> Self {
        let tile = rows.tile() as usize;
        let blocks = (rows.target.threads / BLOCK).max(1) as usize;
        let part = rows.length.div_ceil((blocks / rows.rows).max(1)).next_multiple_of(tile);
        let parts = rows.length.div_ceil(part);
        let first = program.scratch.len();
        let (known, by_parts) = (rows.rows * KNOWN as usize * 4, rows.rows * 2 * parts * 4);
        let counts = rows.rows * DIGITS as usize * 4;
        program.scratch.extend([counts, known, known, by_parts, by_parts]);
        Selection {
            rows,
            wanted,
            parts,
            part,
            counts: first,
            known: [first + 1, first + 2],
            by_parts: [first + 3, first + 4],
        }
    }

    /// Adds the launches that write what is selected: to `to`, keys with the places that they came from in the order of
    /// these, or all elements where they belong.
    pub fn launches(
        &self,
        program: &mut Program,
        to: Option<(&Radix<'_>, Middle)>,
    ) -> Result<(), Missing> {
        program.launches.push(self.clear()?);
        let passes = self.rows.bits.div_ceil(DIGIT);
        for pass in 0..passes {
            let known = if pass % 2 == 0 { self.known } else { [self.known[1], self.known[0]] };
            program.launches.push(self.count(passes - 1 - pass, known[0])?);
            program.launches.push(self.narrow(passes - 1 - pass, known)?);
        }
        let known = self.known[passes as usize % 2];
        program.launches.push(self.compare(known)?);
        let (rows, segment, target) = (self.rows.rows, self.rows.segment, self.rows.target);
        sums_before(program, self.by_parts, [2 * rows, self.parts], segment, target)?;
        program.launches.push(self.put(known, to)?);
        Ok(())
    }

    fn scratch(&self, k: &Draft, index: usize, access: Access) -> Buf {
        k.scratch(index, DType::U32, access).buf
    }

    /// The launch after which nothing is counted and nothing known.
    fn clear(&self) -> Result<Launch, Missing> {
        let k = self.rows.draft()?;
        let counts = self.scratch(&k, self.counts, Access::Write);
        let known = self.scratch(&k, self.known[0], Access::Write);
        let place = k.size(self.wanted.place(self.rows.length) as i64, Ty::U32);
        let all = k.extent(self.rows.rows * KNOWN as usize);
        let count = self.rows.rows as u64 * u64::from(DIGITS);
        k.each(count, |at| {
            counts.store(at, k.u32(0));
            k.when(at.lt(all), || {
                let is_place = (at.convert(Ty::U32) & (KNOWN - 1)).eq(2);
                known.store(at, is_place.select(place, 0));
            });
        });
        k.launch_over(count)
    }

    /// Runs `each` for every part of a row: with the row, the part, where it starts and where it ends.
    fn each_part<'k>(
        &self,
        k: &'k Draft,
        each: impl FnOnce(Val<'k>, Val<'k>, [Val<'k>; 2]),
    ) -> u64 {
        let blocks = (self.rows.rows * self.parts) as u64;
        let parts = k.divisor(self.parts, k.index);
        let [size, length] = [self.part, self.rows.length].map(|n| k.extent(n));
        k.blocks(blocks, |number| {
            let (row, part) = number.div_rem(&parts);
            let start = part * size;
            each(row, part, [start, (start + size).min(length)]);
        });
        blocks
    }

    /// The launch that counts the elements of rows that share what is known of the key by this digit, of which 0 is the
    /// lowest.
    fn count(&self, number: u32, known: usize) -> Result<Launch, Missing> {
        let k = self.rows.draft()?;
        let load = self.rows.load(&k, None);
        let known = self.scratch(&k, known, Access::Read);
        let counts = self.scratch(&k, self.counts, Access::Atomic);
        let counters = k.counters(DIGITS * COPIES);
        let (is_high, shift) = self.digit_at(&k, number);
        // The bits of both words that are known.
        let bits = (number + 1) * DIGIT;
        let [low_bits, high_bits] = [
            if bits < 32 { u32::MAX << bits } else { 0 },
            if bits <= 32 { u32::MAX } else { u32::MAX.checked_shl(bits - 32).unwrap_or(0) },
        ]
        .map(|mask| k.word(mask));
        let (thread, count) = (k.thread(), items(self.rows.target));
        let blocks = self.each_part(&k, |row, _, [start, stop]| {
            let found = [0, 1].map(|word| known.load(row * k.index(KNOWN.into()) + word));
            for copy in 0..COPIES {
                counters.store(thread + copy * BLOCK, 0);
            }
            k.barrier();
            k.range(start, stop, count * BLOCK, |tile| {
                let places = (0..count).map(|i| tile + k.as_index(thread + i * BLOCK));
                let loaded: Vec<_> = places.map(|at| (at, load(row, at.min(stop - 1)))).collect();
                for (at, words) in loaded {
                    let (differs, word) = match words[..] {
                        [low, high, _] => (
                            ((low ^ found[0]) & low_bits) | ((high ^ found[1]) & high_bits),
                            is_high.select(high, low),
                        ),
                        _ => ((words[0] ^ found[0]) & low_bits, words[0]),
                    };
                    let own = digit(word, shift) * COPIES + (thread & (COPIES - 1));
                    k.when(at.lt(stop) & differs.eq(0), || counters.add(own, 1));
                }
            });
            k.barrier();
            let own = (0..COPIES).map(|copy| counters.load(thread * COPIES + copy));
            let sum = own.reduce(|sum, count| sum + count).unwrap_or(k.u32(0));
            k.when(sum.ne(0), || {
                let at = row * k.index(DIGITS.into()) + k.as_index(thread);
                counts.atomic(Atomic::Add, at, sum);
            });
            k.barrier();
        });
        drop(load);
        k.launch_blocks(blocks)
    }

    /// Whether a digit is in the high word of keys, and by how much that is shifted to it.
    fn digit_at<'k>(&self, k: &'k Draft, number: u32) -> (Val<'k>, Val<'k>) {
        let bit = number * DIGIT;
        (k.word(bit / 32).ne(0), k.word(bit % 32))
    }

    /// The launch that takes the digit with the place into what is known, and forgets the counts.
    fn narrow(&self, number: u32, [from, to]: [usize; 2]) -> Result<Launch, Missing> {
        let k = self.rows.draft()?;
        let counts = self.scratch(&k, self.counts, Access::Write);
        let from = self.scratch(&k, from, Access::Read);
        let to = self.scratch(&k, to, Access::Write);
        let totals = Totals::new(&k, Fold { kind: ScanKind::Sum, dtype: DType::U32 });
        let (is_high, shift) = self.digit_at(&k, number);
        let thread = k.thread();
        let rows = self.rows.rows as u64;
        k.blocks(rows, |row| {
            let at = row * k.index(DIGITS.into()) + k.as_index(thread);
            let own = counts.load(at);
            counts.store(at, k.u32(0));
            let (before, _) = totals.before(Number::Real(own));
            let before = before.real();
            let known = row * k.index(KNOWN.into());
            let [low, high, place] = [0, 1, 2].map(|word| from.load(known + word));
            k.when(place.ge(before) & place.lt(before + own), || {
                let digit = thread << shift;
                to.store(known, is_high.select(low, low | digit));
                to.store(known + 1, is_high.select(high | digit, high));
                to.store(known + 2, place - before);
            });
            k.barrier();
        });
        k.launch_blocks(rows)
    }

    /// How an element compares with the key that was found.
    fn compared<'k>(words: &[Val<'k>], [low, high]: [Val<'k>; 2]) -> Compared<'k> {
        match *words {
            [own_low, own_high, _] => {
                let is_level = own_high.eq(high);
                Compared {
                    less: own_high.lt(high) | (is_level & own_low.lt(low)),
                    equal: is_level & own_low.eq(low),
                }
            }
            _ => Compared { less: words[0].lt(low), equal: words[0].eq(low) },
        }
    }

    /// The launch that counts the elements of parts that are less than the key, and those that are equal.
    fn compare(&self, known: usize) -> Result<Launch, Missing> {
        let k = self.rows.draft()?;
        let load = self.rows.load(&k, None);
        let known = self.scratch(&k, known, Access::Read);
        let by_parts = self.scratch(&k, self.by_parts[0], Access::Write);
        let totals = Totals::new(&k, Fold { kind: ScanKind::Sum, dtype: DType::U32 });
        let (thread, count) = (k.thread(), items(self.rows.target));
        let (less, equal) = (k.var(k.u32(0)), k.var(k.u32(0)));
        let parts = k.extent(self.parts);
        let blocks = self.each_part(&k, |row, part, [start, stop]| {
            let found = [0, 1].map(|word| known.load(row * k.index(KNOWN.into()) + word));
            less.set(k.u32(0));
            equal.set(k.u32(0));
            k.range(start, stop, count * BLOCK, |tile| {
                let places = (0..count).map(|i| tile + k.as_index(thread + i * BLOCK));
                let loaded: Vec<_> = places.map(|at| (at, load(row, at.min(stop - 1)))).collect();
                for (at, words) in loaded {
                    let own = Self::compared(&words, found);
                    let inside = at.lt(stop);
                    less.set(less.get() + (inside & own.less).convert(Ty::U32));
                    equal.set(equal.get() + (inside & own.equal).convert(Ty::U32));
                }
            });
            for (which, own) in [less, equal].into_iter().enumerate() {
                let (_, total) = totals.before(Number::Real(own.get()));
                let at = (row * 2 + which as u32) * parts + part;
                k.when(thread.eq(0), || by_parts.store(at, total.real()));
                k.barrier();
            }
        });
        drop(load);
        k.launch_blocks(blocks)
    }

    /// The launch that writes every element that is wanted to its place.
    fn put(&self, known: usize, to: Option<(&Radix<'_>, Middle)>) -> Result<Launch, Missing> {
        let k = self.rows.draft()?;
        let load = self.rows.load(&k, None);
        let store = match to {
            Some((rows, middle)) => rows.store(&k, Some(middle)),
            None => self.rows.store(&k, None),
        };
        let known = self.scratch(&k, known, Access::Read);
        let [own, before] = self.by_parts.map(|scratch| self.scratch(&k, scratch, Access::Read));
        let totals = Totals::new(&k, Fold { kind: ScanKind::Sum, dtype: DType::U32 });
        let (thread, count) = (k.thread(), items(self.rows.target));
        let shared = k.shared(Ty::U32, padded_size(count * BLOCK));
        let (less, equal) = (k.var(k.u32(0)), k.var(k.u32(0)));
        let parts = k.extent(self.parts);
        let place = k.size(self.wanted.place(self.rows.length) as i64, Ty::U32);
        let blocks = self.each_part(&k, |row, part, [start, stop]| {
            let [low, high, tie] =
                [0, 1, 2].map(|word| known.load(row * k.index(KNOWN.into()) + word));
            let at = row * 2 * parts + part;
            less.set(before.load(at));
            equal.set(before.load(at + parts));
            // A part in which nothing is wanted is not read again.
            let (own_less, own_equal) = (own.load(at), own.load(at + parts));
            let has_some = match self.wanted {
                Wanted::First(_) => (own_less + own_equal).ne(0),
                Wanted::Last(_) => own_less.ne((stop - start).convert(Ty::U32)),
                Wanted::Around(_) => k.u32(1).ne(0),
            };
            k.range(start, has_some.select(stop, start), count * BLOCK, |tile| {
                let loaded: Vec<_> = (0..count)
                    .map(|i| {
                        let at = tile + k.as_index(thread + i * BLOCK);
                        (at, load(row, at.min(stop - 1)))
                    })
                    .collect();
                let compared: Vec<_> = loaded
                    .iter()
                    .map(|(at, words)| {
                        let own = Self::compared(words, [low, high]);
                        let inside = at.lt(stop);
                        Compared { less: inside & own.less, equal: inside & own.equal }
                    })
                    .collect();
                // Those that are less are counted in the lower halves of words, those that are equal in the upper.
                for (i, own) in (0..).zip(&compared) {
                    let both = own.less.convert(Ty::U32) + (own.equal.convert(Ty::U32) << 16);
                    shared.store(padded(thread + i * BLOCK), both);
                }
                k.barrier();
                let run: Vec<_> = (0..count).map(|i| padded(thread * count + i)).collect();
                let numbers: Vec<_> = run.iter().map(|&at| shared.load(at)).collect();
                let sum = numbers.iter().skip(1).fold(numbers[0], |sum, &number| sum + number);
                let (sums, total) = totals.before(Number::Real(sum));
                let mut sums = sums.real();
                for (&at, &number) in run.iter().zip(&numbers) {
                    shared.store(at, sums);
                    sums = sums + number;
                }
                k.barrier();
                for ((i, (at, words)), own) in (0..).zip(&loaded).zip(&compared) {
                    let sums = shared.load(padded(thread + i * BLOCK));
                    let less = less.get() + (sums & 0xffff);
                    let equal = equal.get() + (sums >> 16);
                    let number = at.convert(Ty::U32);
                    let (is_wanted, to) = match self.wanted {
                        Wanted::First(_) => {
                            (own.less | (own.equal & equal.le(tie)), less + equal.min(tie + 1))
                        }
                        Wanted::Last(_) => (
                            !own.less & (!own.equal | equal.ge(tie)),
                            number - less - equal + equal.max(tie) - tie,
                        ),
                        Wanted::Around(_) => {
                            let before = less + equal.min(tie);
                            let is_before = own.less | (own.equal & equal.lt(tie));
                            let is_there = own.equal & equal.eq(tie);
                            let behind =
                                place + 1 + number - before - equal.gt(tie).convert(Ty::U32);
                            let behind = is_there.select(place, behind);
                            (k.u32(1).ne(0), is_before.select(before, behind))
                        }
                    };
                    k.when(at.lt(stop) & is_wanted, || store(row, k.as_index(to), words));
                }
                less.set(less.get() + (total.real() & 0xffff));
                equal.set(equal.get() + (total.real() >> 16));
                k.barrier();
            });
        });
        drop((load, store));
        k.launch_blocks(blocks)
    }
}
