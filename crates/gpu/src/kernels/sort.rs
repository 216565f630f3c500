//! Sorts, and the order that they put elements in: a stable radix sort.
//!
//! Elements become keys, numbers without a sign that lie in the same order; what moves are keys and
//! the places that they came from. A block sorts a tile by four bits at a time: every thread counts
//! the digits of its run of elements, the counts are summed in the order of digits and then of threads,
//! and each element has its place. Rows that fit into a tile are sorted by one launch, several in a
//! tile where they are short: then the rows' numbers are the last digits. Longer ones take three
//! steps for every eight bits: the tiles' digits are counted, the counts are summed, and the tiles,
//! sorted by the digit, are spread over the row. Where only a part of the order is wanted, it is selected first
//! ([`select`]). (N. Satish, M. Harris and M. Garland, *Designing
//! efficient sorting algorithms for manycore GPUs*, IPDPS 2009.)

mod select;

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{ScanKind, Sort, SortPart};

use super::scan::{BLOCK, Fold, Totals, items, padded, padded_size, sums_before};
use super::view::{Axes, place, unflatten};
use super::{Draft, Launch, Missing, Program};
use crate::ir::{Access, Buf, Number, Shared, Target, Ty, Val, Var};
use select::{Selection, Wanted};

/// Bits by which a block sorts at once.
const NIBBLE: u32 = 4;
/// Bits by which rows are sorted at once, and the digits that these make.
const DIGIT: u32 = 8;
const DIGITS: u32 = 1 << DIGIT;

/// Adds the launches of a sort.
pub fn sort(
    program: &mut Program,
    sort: &Sort,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let without = |strides: &[isize]| {
        let mut strides = strides.to_vec();
        strides.remove(sort.axis);
        strides
    };
    let sizes = x.aval.shape.without(&[sort.axis]);
    let outer = Axes::joined(&sizes, &[&without(&x.strides), &without(&out.strides)]);
    let work = Radix {
        name: sort.name(),
        rows: outer.count() as usize,
        length: x.aval.shape[sort.axis],
        bits: match x.aval.dtype {
            DType::Bool => 1,
            other => other.size() as u32 * 8,
        },
        ends: Ends::Operands {
            outer,
            along: [x.strides[sort.axis], out.strides[sort.axis]],
            dtype: x.aval.dtype,
            indices: sort.indices,
            range: match sort.part {
                SortPart::Range { start, count } => Some([start, count]),
                SortPart::Whole | SortPart::Around(_) => None,
            },
        },
        first: None,
        segment,
        target,
    };
    match wanted(sort, &work) {
        Some(wanted) => work.selected(wanted, program),
        None => work.launches(program),
    }
}

/// What is selected of rows before anything is sorted, if it is little enough.
fn wanted(sort: &Sort, work: &Radix<'_>) -> Option<Wanted> {
    let length = work.length;
    if work.rows * length == 0 || length <= work.tile() as usize {
        return None;
    }
    match sort.part {
        SortPart::Around(place) => Some(Wanted::Around(place)),
        SortPart::Range { count, .. } if count == 0 || 2 * count > length => None,
        SortPart::Range { start: 0, count } => Some(Wanted::First(count)),
        SortPart::Range { start, count } if start + count == length => Some(Wanted::Last(count)),
        SortPart::Range { .. } | SortPart::Whole => None,
    }
}

/// Adds the launches that sort `length` words with so many `bits` that lie in the scratch memory
/// `keys`, into `sorted`, and give the place of each in `order`.
pub(super) fn order(
    program: &mut Program,
    [keys, sorted, order]: [usize; 3],
    length: usize,
    bits: u32,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let ends = Ends::Scratch { keys, sorted, order };
    let work = Radix { name: "order", rows: 1, length, bits, ends, first: None, segment, target };
    work.launches(program)
}

/// Rows that are sorted.
struct Radix<'a> {
    name: &'static str,
    rows: usize,
    length: usize,
    /// How many bits keys have.
    bits: u32,
    ends: Ends,
    /// Where keys and places lie at first, if they are not those of `ends`.
    first: Option<Middle>,
    segment: &'a Segment,
    target: &'a Target,
}

/// Where elements come from, and where the results go.
#[derive(Clone)]
enum Ends {
    /// The operands of a sort.
    Operands {
        /// The other axes, with the strides of both.
        outer: Axes,
        /// The strides of both along the axis.
        along: [isize; 2],
        dtype: DType,
        indices: bool,
        /// The first place of the order that is written, and how many are.
        range: Option<[usize; 2]>,
    },
    /// Scratch memory with one row of words, for the sorted ones, and for their places.
    Scratch { keys: usize, sorted: usize, order: usize },
}

/// Scratch memory between two steps: the words of keys, the low one first, and their places.
#[derive(Clone, Copy)]
struct Middle {
    keys: [usize; 2],
    numbers: usize,
}

impl Middle {
    /// The scratch memory of so many words of keys, and then of their places.
    fn parts(&self, words: usize) -> impl Iterator<Item = usize> {
        self.keys.into_iter().take(words).chain([self.numbers])
    }
}

/// Gives the words of a key and the place that it came from, for a row and a place in it.
type Load<'k> = Box<dyn Fn(Val<'k>, Val<'k>) -> Vec<Val<'k>> + 'k>;
/// Takes the same.
type Store<'k> = Box<dyn Fn(Val<'k>, Val<'k>, &[Val<'k>]) + 'k>;

impl Radix<'_> {
    fn words(&self) -> u32 {
        self.bits.div_ceil(32)
    }

    /// Elements of a block.
    fn tile(&self) -> u32 {
        items(self.target) * BLOCK
    }

    fn draft(&self) -> Result<Draft, Missing> {
        Draft::new(self.name, BLOCK, self.segment, self.target)
    }

    /// Adds the launches that select, and sort what was selected.
    fn selected(&self, wanted: Wanted, program: &mut Program) -> Result<(), Missing> {
        let selection = Selection::new(self, wanted, program);
        let (Wanted::First(count) | Wanted::Last(count)) = wanted else {
            return selection.launches(program, None);
        };
        let middle = self.middle(count, program);
        let mut ends = self.ends.clone();
        if let Ends::Operands { range, .. } = &mut ends {
            *range = None;
        }
        let Radix { name, rows, bits, segment, target, .. } = *self;
        let sorted =
            Radix { name, rows, length: count, bits, ends, first: Some(middle), segment, target };
        selection.launches(program, Some((&sorted, middle)))?;
        sorted.launches(program)
    }

    /// Scratch memory for so many elements of every row.
    fn middle(&self, length: usize, program: &mut Program) -> Middle {
        let (first, words) = (program.scratch.len(), self.words() as usize);
        program.scratch.extend(vec![self.rows * length * 4; words + 1]);
        Middle { keys: [first, first + words - 1], numbers: first + words }
    }

    fn launches(&self, program: &mut Program) -> Result<(), Missing> {
        if self.rows * self.length == 0 {
            return Ok(());
        }
        if self.length <= self.tile() as usize {
            program.launches.push(self.within_tiles()?);
            return Ok(());
        }
        let (passes, tiles) =
            (self.bits.div_ceil(DIGIT), self.length.div_ceil(self.tile() as usize));
        let counts = program.scratch.len();
        let row = DIGITS as usize * tiles;
        program.scratch.extend([self.rows * row * 4; 2]);
        let middles: Vec<Middle> = (0..passes.saturating_sub(1).min(2))
            .map(|_| self.middle(self.length, program))
            .collect();
        for pass in 0..passes {
            let from =
                pass.checked_sub(1).map_or(self.first, |last| Some(middles[last as usize % 2]));
            let to = (pass + 1 < passes).then(|| middles[pass as usize % 2]);
            program.launches.push(self.count(counts, tiles, pass, from)?);
            let sums = [counts, counts + 1];
            sums_before(program, sums, [self.rows, row], self.segment, self.target)?;
            program.launches.push(self.spread(counts + 1, tiles, pass, from, to)?);
        }
        Ok(())
    }

    /// How elements are read.
    fn load<'k>(&'k self, k: &'k Draft, from: Option<Middle>) -> Load<'k> {
        let words = self.words() as usize;
        let length = k.extent(self.length);
        let bind = |scratch| k.scratch(scratch, DType::U32, Access::Read).buf;
        match (from, &self.ends) {
            (Some(middle), _) => {
                let bufs: Vec<_> = middle.parts(words).map(bind).collect();
                Box::new(move |row, at| bufs.iter().map(|b| b.load(row * length + at)).collect())
            }
            (None, Ends::Scratch { keys, .. }) => {
                let keys = bind(*keys);
                Box::new(move |_, at| vec![keys.load(at), at.convert(Ty::U32)])
            }
            (None, Ends::Operands { outer, along, dtype, .. }) => {
                let from = k.input(self.segment, 0);
                let (outer, along) = (k.walk(outer), k.strides(&along[..1]));
                Box::new(move |row, at| {
                    let row = from.at(&unflatten(row, &outer.sizes), &outer.strides[0]);
                    let mut words = key(k, from.buf.load(place(row, &[at], &along)), *dtype);
                    words.push(at.convert(Ty::U32));
                    words
                })
            }
        }
    }

    /// How they are written.
    fn store<'k>(&'k self, k: &'k Draft, to: Option<Middle>) -> Store<'k> {
        let words = self.words() as usize;
        let length = k.extent(self.length);
        let bind = |scratch| k.scratch(scratch, DType::U32, Access::Write).buf;
        match (to, &self.ends) {
            (Some(middle), _) => {
                let bufs: Vec<_> = middle.parts(words).map(bind).collect();
                Box::new(move |row, at, element| {
                    bufs.iter()
                        .zip(element)
                        .for_each(|(b, &word)| b.store(row * length + at, word));
                })
            }
            (None, Ends::Scratch { sorted, order, .. }) => {
                let bufs = [bind(*sorted), bind(*order)];
                Box::new(move |_, at, element| {
                    bufs.iter().zip(element).for_each(|(b, &word)| b.store(at, word));
                })
            }
            (None, Ends::Operands { outer, along, dtype, indices, range }) => {
                // What has no key of its own is looked up.
                let looks = !*indices && dtype.is_float();
                let from = looks.then(|| k.input(self.segment, 0));
                let to = k.output(self.segment, 0);
                let (outer, along) = (k.walk(outer), k.strides(along));
                let range = range.map(|range| range.map(|n| k.extent(n)));
                let put = move |row: Val<'k>, at: Val<'k>, element: &[Val<'k>]| {
                    let index = unflatten(row, &outer.sizes);
                    let end = place(to.at(&index, &outer.strides[1]), &[at], &along[1..]);
                    let (number, words) = (element[words], &element[..words]);
                    if *indices {
                        return to.buf.store(end, number);
                    }
                    let (value, is_own) = element_of(k, words, *dtype);
                    let value = k.var(value);
                    if let Some(from) = from {
                        k.when(!is_own, || {
                            let row = from.at(&index, &outer.strides[0]);
                            let at = place(row, &[k.as_index(number)], &along[..1]);
                            value.set(from.buf.load(at));
                        });
                    }
                    to.buf.store(end, value.get());
                };
                Box::new(move |row, at, element| match range {
                    None => put(row, at, element),
                    Some([start, count]) => {
                        let is_kept = at.ge(start) & at.lt(start + count);
                        k.when(is_kept, || put(row, at - start, element));
                    }
                })
            }
        }
    }

    /// The launch that sorts rows that fit into a tile.
    fn within_tiles(&self) -> Result<Launch, Missing> {
        let k = self.draft()?;
        // The places that elements came from, if those are not where they lie.
        let came_from: Option<Buf> =
            self.first.map(|first| k.scratch(first.numbers, DType::U32, Access::Read).buf);
        let (load, store) = (self.load(&k, self.first), self.store(&k, None));
        let block = Block::new(&k, self.words());
        // How many rows a tile has, and the bits of their numbers.
        let together = (self.tile() as usize / self.length).max(1);
        let rows_of_tile = (self.tile() as usize).div_ceil(self.length).min(self.rows);
        let row_bits = rows_of_tile.next_power_of_two().trailing_zeros();
        let blocks = self.rows.div_ceil(together) as u64;
        let length = k.divisor(self.length, Ty::U32);
        let [rows, most] = [self.rows, together].map(|n| k.extent(n));
        // What is beyond has the number of the last row.
        let last_row = k.size((1 << row_bits) - 1, Ty::U32);
        let steps = |bits: u32| k.size(bits.div_ceil(NIBBLE).into(), Ty::U32);
        let (key_steps, row_steps) = (steps(self.bits), steps(row_bits));
        k.blocks(blocks, |number| {
            let first = number * most;
            let count = (rows - first).min(most).convert(Ty::U32) * length.size;
            let inside: Vec<_> = block.places().map(|at| at.lt(count)).collect();
            let loaded: Vec<_> = block
                .places()
                .map(|at| {
                    let (row, at) = at.min(count - 1).div_rem(&length);
                    load(first + k.as_index(row), k.as_index(at))
                })
                .collect();
            // What is beyond comes last.
            let elements = block.places().zip(&inside).zip(loaded);
            let items: Vec<Vec<Val<'_>>> = elements
                .map(|((at, &inside), mut words)| {
                    words.pop();
                    words.iter_mut().for_each(|word| *word = inside.select(*word, u32::MAX));
                    words.push(at);
                    words
                })
                .collect();
            block.start(&items);
            let last = self.words() as usize;
            k.range(k.u32(0), key_steps + row_steps, 1, |step| {
                // The digits of keys, and then those of rows.
                let is_row = step.ge(key_steps);
                let shift = (is_row.select(step - key_steps, step) & 7) << 2;
                block.split(
                    |element| {
                        let row = element[last].div_rem(&length).0.min(last_row);
                        let key = match *element {
                            [low, high, _] => step.lt(8).select(low, high),
                            _ => element[0],
                        };
                        (is_row.select(row, key) >> shift) & 15
                    },
                    Arrangement::Runs,
                    0,
                );
            });
            block.arrange(Arrangement::Apart);
            for ((at, inside), mut element) in block.places().zip(inside).zip(block.elements()) {
                k.when(inside, || {
                    let (row, at) = at.div_rem(&length);
                    let (row, place) = (first + k.as_index(row), element[last].div_rem(&length).1);
                    element[last] = match came_from {
                        Some(places) => {
                            places.load(row * k.extent(self.length) + k.as_index(place))
                        }
                        None => place,
                    };
                    store(row, k.as_index(at), &element);
                });
            }
            k.barrier();
        });
        drop((load, store));
        k.launch_blocks(blocks)
    }

    /// The part of the row that is the tile's: where it starts, and how many elements it has.
    fn part<'k>(&self, k: &'k Draft, number: Val<'k>, length: Val<'k>) -> (Val<'k>, Val<'k>) {
        let start = number * k.index(self.tile().into());
        (start, (length - start).min(self.tile()).convert(Ty::U32))
    }

    /// The word of keys that has the digits of a pass, and by how much it is shifted to them.
    fn digit_of<'k>(&self, k: &'k Draft, pass: u32) -> (usize, Val<'k>) {
        ((pass * DIGIT / 32) as usize, k.word(pass * DIGIT % 32))
    }

    /// The launch that counts the digits of every tile: those of a row lie digit by digit.
    fn count(
        &self,
        counts: usize,
        tiles: usize,
        pass: u32,
        from: Option<Middle>,
    ) -> Result<Launch, Missing> {
        let k = self.draft()?;
        let load = self.load(&k, from);
        let counts = k.scratch(counts, DType::U32, Access::Write).buf;
        let counters = k.counters(DIGITS);
        let (word, shift) = self.digit_of(&k, pass);
        let blocks = (self.rows * tiles) as u64;
        let (tiles, length) = (k.divisor(tiles, k.index), k.extent(self.length));
        let thread = k.thread();
        k.blocks(blocks, |number| {
            let (row, tile) = number.div_rem(&tiles);
            let (start, count) = self.part(&k, tile, length);
            counters.store(thread, 0);
            k.barrier();
            let places = (0..items(self.target)).map(|i| thread + i * BLOCK);
            let one = |at| load(row, start + k.as_index(at))[word];
            let loaded: Vec<_> = places.map(|at| (at, one(at.min(count - 1)))).collect();
            for (at, key) in loaded {
                k.when(at.lt(count), || counters.add(digit(key, shift), 1));
            }
            k.barrier();
            let digit = row * k.index(DIGITS.into()) + k.as_index(thread);
            counts.store(digit * tiles.size + tile, counters.load(thread));
            k.barrier();
        });
        drop(load);
        k.launch_blocks(blocks)
    }

    /// The launch that sorts every tile by a digit, and spreads it over the row.
    fn spread(
        &self,
        offsets: usize,
        tiles: usize,
        pass: u32,
        from: Option<Middle>,
        to: Option<Middle>,
    ) -> Result<Launch, Missing> {
        let k = self.draft()?;
        let (load, store) = (self.load(&k, from), self.store(&k, to));
        let offsets = k.scratch(offsets, DType::U32, Access::Read).buf;
        let block = Block::new(&k, self.words());
        let starts = k.shared(Ty::U32, DIGITS);
        let (word, shift) = self.digit_of(&k, pass);
        let blocks = (self.rows * tiles) as u64;
        let (tiles, length) = (k.divisor(tiles, k.index), k.extent(self.length));
        let thread = k.thread();
        k.blocks(blocks, |number| {
            let (row, tile) = number.div_rem(&tiles);
            let (start, count) = self.part(&k, tile, length);
            let one = |at| load(row, start + k.as_index(at));
            let mut items: Vec<_> = block.places().map(|at| one(at.min(count - 1))).collect();
            for (at, element) in block.places().zip(&mut items) {
                // What is beyond comes last.
                element[word] = at.lt(count).select(element[word], u32::MAX);
            }
            block.start(&items);
            block.split(|element| digit(element[word], shift) & 15, Arrangement::Runs, word);
            block.split(|element| digit(element[word], shift) >> NIBBLE, Arrangement::Apart, word);
            // The keys are still shared: a digit starts where the one before is another.
            for (at, element) in block.places().zip(block.elements()) {
                let own = digit(element[word], shift);
                let before = digit(block.shared_at(at.max(1) - 1), shift);
                let starts_here = at.eq(0) | before.ne(own);
                k.when(starts_here, || starts.store(own, at));
            }
            k.barrier();
            let own = row * k.index(DIGITS.into()) + k.as_index(thread);
            let offset = offsets.load(own * tiles.size + tile);
            starts.store(thread, offset - starts.load(thread));
            k.barrier();
            for (at, element) in block.places().zip(block.elements()) {
                let to = at + starts.load(digit(element[word], shift));
                k.when(at.lt(count), || store(row, k.as_index(to), &element));
            }
            k.barrier();
        });
        drop((load, store));
        k.launch_blocks(blocks)
    }
}

/// The digit of a key that so many bits lie behind.
fn digit<'k>(key: Val<'k>, shift: Val<'k>) -> Val<'k> {
    (key >> shift) & (DIGITS - 1)
}

/// How a block's elements lie among its threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    /// Each thread has neighbours.
    Runs,
    /// Neighbours are neighbouring threads'.
    Apart,
}

/// A block and its elements: the words of a key and a place each.
struct Block<'k> {
    k: &'k Draft,
    /// For each of a thread's elements its words.
    items: Vec<Vec<Var<'k>>>,
    shared: Shared,
    totals: Totals<'k>,
}

impl<'k> Block<'k> {
    fn new(k: &'k Draft, words: u32) -> Self {
        // Two blocks wait for memory in turns; registers for three would not do.
        k.at_once(2);
        let zero = k.u32(0);
        let item = || (0..=words).map(|_| k.var(zero)).collect();
        Block {
            k,
            items: (0..items(&k.target)).map(|_| item()).collect(),
            shared: k.shared(Ty::U32, padded_size(items(&k.target) * BLOCK)),
            totals: Totals::new(k, Fold { kind: ScanKind::Sum, dtype: DType::U32 }),
        }
    }

    /// The places of the thread's elements where neighbours are neighbouring threads'.
    fn places(&self) -> impl Iterator<Item = Val<'k>> + use<'k> {
        let thread = self.k.thread();
        (0..self.count()).map(move |i| thread + i * BLOCK)
    }

    fn place(&self, arrangement: Arrangement, item: u32) -> Val<'k> {
        let thread = self.k.thread();
        padded(match arrangement {
            Arrangement::Runs => thread * self.count() + item,
            Arrangement::Apart => thread + item * BLOCK,
        })
    }

    /// Elements of a thread.
    fn count(&self) -> u32 {
        self.items.len() as u32
    }

    fn elements(&self) -> Vec<Vec<Val<'k>>> {
        self.items.iter().map(|item| item.iter().map(|word| word.get()).collect()).collect()
    }

    /// What is shared of the element at a place.
    fn shared_at(&self, at: Val<'k>) -> Val<'k> {
        self.shared.load(padded(at))
    }

    /// Takes elements that are apart, as runs.
    fn start(&self, elements: &[Vec<Val<'k>>]) {
        for (item, element) in self.items.iter().zip(elements) {
            item.iter().zip(element).for_each(|(var, &word)| var.set(word));
        }
        let apart: Vec<_> = (0..self.count()).map(|i| self.place(Arrangement::Apart, i)).collect();
        self.exchange(&apart, Arrangement::Runs, 0);
    }

    /// Puts runs into another arrangement.
    fn arrange(&self, to: Arrangement) {
        let runs: Vec<_> = (0..self.count()).map(|i| self.place(Arrangement::Runs, i)).collect();
        self.exchange(&runs, to, 0);
    }

    /// Puts the elements at these places, word by word, the word `last` after the others.
    fn exchange(&self, places: &[Val<'k>], to: Arrangement, last: usize) {
        let words = self.items[0].len();
        let own: Vec<_> = (0..self.count()).map(|i| self.place(to, i)).collect();
        for word in (0..words).filter(|&word| word != last).chain([last]) {
            self.k.barrier();
            for (item, &at) in self.items.iter().zip(places) {
                self.shared.store(at, item[word].get());
            }
            self.k.barrier();
            for (item, &at) in self.items.iter().zip(&own) {
                item[word].set(self.shared.load(at));
            }
        }
    }

    /// Sorts the elements, which are runs, by a digit of four bits. Of word `last` the shared memory
    /// has all afterwards.
    fn split(&self, digit: impl Fn(&[Val<'k>]) -> Val<'k>, to: Arrangement, last: usize) {
        let (k, thread) = (self.k, self.k.thread());
        // A word counts two digits of a thread: those below 8 in its lower half.
        const WORDS: u32 = 1 << (NIBBLE - 1);
        k.barrier();
        for word in 0..WORDS {
            self.shared.store(padded(thread + word * BLOCK), 0);
        }
        let counted: Vec<_> = self
            .elements()
            .iter()
            .map(|element| {
                let digit = digit(element);
                let at = padded((digit & (WORDS - 1)) * BLOCK + thread);
                let half = (digit >> 3) << 4;
                let count = self.shared.load(at);
                self.shared.store(at, count + (k.u32(1) << half));
                (at, half, (count >> half) & 0xffff)
            })
            .collect();
        k.barrier();
        // Each thread sums neighbouring words; of both halves at once.
        let own: Vec<_> = (0..WORDS).map(|i| padded(thread * WORDS + i)).collect();
        let counts: Vec<_> = own.iter().map(|&at| self.shared.load(at)).collect();
        let sum = counts.iter().skip(1).fold(counts[0], |sum, &count| sum + count);
        let (before, total) = self.totals.before(Number::Real(sum));
        // The upper halves' digits come after all of the lower ones.
        let mut before = before.real() + (total.real() << 16);
        for (&at, &count) in own.iter().zip(&counts) {
            self.shared.store(at, before);
            before = before + count;
        }
        k.barrier();
        let places: Vec<_> = counted
            .into_iter()
            .map(|(at, half, rank)| padded(((self.shared.load(at) >> half) & 0xffff) + rank))
            .collect();
        self.exchange(&places, to, last);
    }
}

/// The bits by which the elements of a dtype are compared, and the one of the sign.
fn top_bit(k: &Draft, dtype: DType) -> Val<'_> {
    let ty = if dtype.size() == 8 { Ty::U64 } else { Ty::U32 };
    k.lit(1 << (dtype.size() * 8 - 1), ty)
}

fn all_bits(k: &Draft, dtype: DType) -> Val<'_> {
    let ty = if dtype.size() == 8 { Ty::U64 } else { Ty::U32 };
    k.lit(u64::MAX >> (64 - dtype.size() * 8), ty)
}

/// The words of the key of an element. Keys lie as elements do: NaN is the last, and both zeros are
/// one.
fn key<'k>(k: &'k Draft, x: Val<'k>, dtype: DType) -> Vec<Val<'k>> {
    let (top, all) = (top_bit(k, dtype), all_bits(k, dtype));
    let whole = match x.ty {
        Ty::Bool => x.convert(Ty::U32),
        Ty::U32 | Ty::U64 => x,
        Ty::I32 => (x.convert(Ty::U32) ^ top) & all,
        Ty::I64 => x.convert(Ty::U64) ^ top,
        Ty::F32 | Ty::F64 => {
            let bits = x.bits_of(dtype);
            let bits = x.is_nonzero().select(bits, bits.like(0));
            let is_negative = (bits & top).ne(0);
            let ordered = is_negative.select(bits ^ all, bits | top);
            x.is_nan().select(all, ordered)
        }
    };
    match whole.ty {
        Ty::U64 => vec![whole.convert(Ty::U32), (whole >> 32).convert(Ty::U32)],
        _ => vec![whole],
    }
}

/// The element with such a key, and whether no other has the same.
fn element_of<'k>(k: &'k Draft, words: &[Val<'k>], dtype: DType) -> (Val<'k>, Val<'k>) {
    let (top, all) = (top_bit(k, dtype), all_bits(k, dtype));
    let whole = match *words {
        [low, high] => super::join(low, high, Ty::U64),
        [word] => word,
        _ => unreachable!("a key has a word or two"),
    };
    let ty = Ty::of(dtype);
    let element = match ty {
        Ty::Bool => whole.ne(0),
        Ty::U32 | Ty::U64 => whole,
        Ty::I32 => (whole ^ top).convert(ty).wrapped(dtype),
        Ty::I64 => (whole ^ top).convert(ty),
        Ty::F32 | Ty::F64 => {
            let is_negative = (whole & top).eq(0);
            let bits = is_negative.select(whole ^ all, whole ^ top);
            bits.float_of(dtype)
        }
    };
    (element, whole.ne(top) & whole.ne(all))
}
