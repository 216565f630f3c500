//! Running folds along an axis.
//!
//! Short axes, and axes of many lanes, take a thread a lane, or a part of one where neighbouring
//! lanes lie side by side. Elsewhere a block takes a lane, or a part of one, tile by tile. A lane that
//! is cut into parts takes three launches: the parts' totals, the scan of these, and the scan of each
//! part from where the one before it ended. Where blocks may wait for each other, a tile is read once:
//! its block posts its total and waits for those of the tiles before it. Where a lane is cut, and what
//! is joined with what, depends on shapes and the device alone, so results repeat.

use cupola_core::DType;
use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Scan, ScanKind};

use super::view::{Axes, View, place, unflatten};
use super::{BufferRef, Draft, Launch, Missing, Program, join};
use crate::ir::{Access, Atomic, Buf, Number, NumberVar, SharedNumber, Target, Ty, Val};

/// Threads in a block.
pub(super) const BLOCK: u32 = 256;
/// Axes up to this length take a thread a lane.
const SHORT: usize = 64;
/// The least elements of a part of a lane for a thread.
const THREAD_PART: usize = 32;
/// The least elements of a part of a lane for a block.
const BLOCK_PART: usize = 1 << 12;
/// Parts for every block that runs at once.
const PARTS: u64 = 2;
/// Blocks that wait for others, on a multiprocessor at once.
const WAITING: u32 = 4;
/// Elements that a thread asks for before it stores one.
const UNDER_WAY: u32 = 4;

/// Adds the launches of a scan.
pub fn scan(
    program: &mut Program,
    op: &Scan,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let without = |operand: &Operand| -> Vec<isize> {
        let kept = operand.strides.iter().enumerate().filter(|(axis, _)| *axis != op.axis);
        kept.map(|(_, &s)| s).collect()
    };
    let sizes = x.aval.shape.without(&[op.axis]);
    let lanes = Lanes {
        op: *op,
        dtype: x.aval.dtype,
        ends: [BufferRef::Input(0), BufferRef::Output(0)],
        outer: Axes::joined(&sizes, &[&without(x), &without(out)]),
        along: [x.strides[op.axis], out.strides[op.axis]],
        size: x.aval.shape[op.axis],
    };
    lanes.launches(program, segment, target)
}

/// Adds the launches that put into `to`, for each word of every row of `from`, the sum of the row's
/// words before it.
pub(super) fn sums_before(
    program: &mut Program,
    [from, to]: [usize; 2],
    [rows, size]: [usize; 2],
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let strides: &[isize] = &[size as isize];
    let lanes = Lanes {
        op: Scan { axis: 1, kind: ScanKind::Sum, reverse: false, exclusive: true },
        dtype: DType::U32,
        ends: [BufferRef::Scratch(from), BufferRef::Scratch(to)],
        outer: Axes::joined(&[rows], &[strides, strides]),
        along: [1, 1],
        size,
    };
    lanes.launches(program, segment, target)
}

/// What is done with a part of a lane in one pass over it.
#[derive(Clone, Copy)]
enum Pass {
    /// The part is the lane.
    Whole,
    /// Only the part's total is stored.
    Totals(BufferRef),
    /// The part goes on from a number.
    From(BufferRef),
}

/// The lanes of a scan.
struct Lanes {
    op: Scan,
    dtype: DType,
    /// Where they are read and written.
    ends: [BufferRef; 2],
    /// The other axes, with the strides of both.
    outer: Axes,
    /// The strides of both along the axis.
    along: [isize; 2],
    size: usize,
}

/// How elements are joined.
#[derive(Clone, Copy)]
pub(super) struct Fold {
    pub kind: ScanKind,
    pub dtype: DType,
}

impl Fold {
    fn join<'k>(self, x: Number<'k>, y: Number<'k>) -> Number<'k> {
        let joined = x.binary(self.kind.join(), y, self.dtype).wrapped(self.dtype);
        match (self.kind, x, y, joined) {
            // The first of equal ones, zeros of both signs, too.
            (ScanKind::Max | ScanKind::Min, Number::Real(x), Number::Real(y), Number::Real(v))
                if v.ty.is_float() =>
            {
                Number::Real(x.eq(y).select(x, v))
            }
            _ => joined,
        }
    }

    /// What leaves every element as it is.
    fn first(self, k: &Draft) -> Number<'_> {
        match self.kind {
            ScanKind::Sum => k.number(0, self.dtype),
            ScanKind::Prod => k.number(1, self.dtype),
            ScanKind::Max | ScanKind::LogAddExp => Number::Real(k.extreme(false, self.dtype)),
            ScanKind::Min => Number::Real(k.extreme(true, self.dtype)),
        }
    }
}

impl Lanes {
    fn fold(&self) -> Fold {
        Fold { kind: self.op.kind, dtype: self.dtype }
    }

    fn launches(
        &self,
        program: &mut Program,
        segment: &Segment,
        target: &Target,
    ) -> Result<(), Missing> {
        let (lanes, threads) = (self.outer.count(), u64::from(target.threads));
        // What is read side by side is read so by neighbouring threads.
        let by_threads = self.size <= SHORT
            || lanes >= threads
            || lanes >= u64::from(BLOCK) && self.along[0].unsigned_abs() != 1;
        let wanted = if by_threads {
            threads / lanes.max(1)
        } else if lanes * u64::from(BLOCK) < threads {
            PARTS * threads / u64::from(BLOCK) / lanes.max(1)
        } else {
            1
        };
        let least = if by_threads { THREAD_PART } else { BLOCK_PART };
        let part = self.size.div_ceil(wanted.max(1) as usize).next_multiple_of(least);
        let pass = |part, pass| match by_threads {
            true => self.by_threads(segment, target, part, pass),
            false => self.by_blocks(segment, target, part, pass),
        };
        let parts = self.size.div_ceil(part);
        if parts <= 1 {
            program.launches.push(pass(self.size, Pass::Whole)?);
            return Ok(());
        }
        if target.awaits && !by_threads {
            return self.in_order(program, segment, target);
        }
        let bytes = lanes as usize * parts * self.dtype.accumulator().size();
        let first = program.scratch.len();
        program.scratch.extend([bytes, bytes]);
        let (totals, carries) = (BufferRef::Scratch(first), BufferRef::Scratch(first + 1));
        program.launches.push(pass(part, Pass::Totals(totals))?);
        program.launches.push(self.joined(segment, target, parts, totals, carries)?);
        program.launches.push(pass(part, Pass::From(carries))?);
        Ok(())
    }

    /// Binds where lanes are read, and where they are written if they are.
    fn bind<'k>(&self, k: &'k Draft, pass: Pass) -> (View<'k>, Option<View<'k>>) {
        let bound = |end, access| match self.ends[end] {
            BufferRef::Scratch(index) => k.scratch(index, self.dtype, access),
            operand => k.view(operand, self.dtype, access),
        };
        let writes = !matches!(pass, Pass::Totals(_));
        (bound(0, Access::Read), writes.then(|| bound(1, Access::Write)))
    }

    /// Binds what the parts of lanes have in common with each other.
    fn bind_totals(&self, k: &Draft, pass: Pass) -> Option<Buf> {
        match pass {
            Pass::Whole => None,
            Pass::Totals(buffer) => Some(k.bind(buffer, self.dtype.accumulator(), Access::Write)),
            Pass::From(buffer) => Some(k.bind(buffer, self.dtype.accumulator(), Access::Read)),
        }
    }

    /// Where the element at a place of the walk lies, in a lane that begins at `start` and has `last` as its last
    /// place, each a step from the one before.
    fn along<'k>(&self, start: Val<'k>, at: Val<'k>, last: Val<'k>, step: Val<'k>) -> Val<'k> {
        let at = if self.op.reverse { last - at } else { at };
        place(start, &[at], &[step])
    }

    /// A thread a part of a lane.
    fn by_threads(
        &self,
        segment: &Segment,
        target: &Target,
        part: usize,
        pass: Pass,
    ) -> Result<Launch, Missing> {
        let k = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let (from, to) = self.bind(&k, pass);
        let totals = self.bind_totals(&k, pass);
        let fold = self.fold();
        let (lanes, parts) = (self.outer.count(), self.size.div_ceil(part));
        let (outer, along) = (k.walk(&self.outer), k.strides(&self.along));
        let [size, last, part] = [self.size, self.size - 1, part].map(|n| k.extent(n));
        let count = lanes * parts as u64;
        let (lanes, parts) = (k.divisor(lanes as usize, k.index), k.extent(parts));
        k.each(count, |at| {
            let (number, lane) = at.div_rem(&lanes);
            let index = unflatten(lane, &outer.sizes);
            let source = from.at(&index, &outer.strides[0]);
            let total_at = lane * parts + number;
            let total = k.number_var(match (pass, totals) {
                (Pass::From(_), Some(totals)) => totals.load_number(total_at),
                _ => fold.first(&k),
            });
            let start = number * part;
            let stop = (start + part).min(size);
            k.range(start, stop, UNDER_WAY, |at| {
                let places = (0..UNDER_WAY).map(|i| at + i);
                let load = |at| from.buf.load_number(self.along(source, at, last, along[0]));
                let loaded: Vec<_> = places.map(|at| (at, load(at.min(last)))).collect();
                for (at, x) in loaded {
                    k.when(at.lt(stop), || {
                        let before = total.get();
                        let joined = fold.join(before, x);
                        if let Some(to) = to {
                            let end = to.at(&index, &outer.strides[1]);
                            let result = if self.op.exclusive { before } else { joined };
                            to.buf.store_number(self.along(end, at, last, along[1]), result);
                        }
                        total.set(joined);
                    });
                }
            });
            if let (Pass::Totals(_), Some(totals)) = (pass, totals) {
                totals.store_number(total_at, total.get());
            }
        });
        k.launch_over(count)
    }

    /// A block a part of a lane.
    fn by_blocks(
        &self,
        segment: &Segment,
        target: &Target,
        part: usize,
        pass: Pass,
    ) -> Result<Launch, Missing> {
        let k = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let (from, to) = self.bind(&k, pass);
        let totals = self.bind_totals(&k, pass);
        let parts = self.size.div_ceil(part) as u64;
        let tile = Tile::new(&k, self.fold(), items(target));
        let blocks = self.outer.count() * parts;
        let (outer, along) = (k.walk(&self.outer), k.strides(&self.along));
        let [size, last, part] = [self.size, self.size - 1, part].map(|n| k.extent(n));
        let parts = k.divisor(parts as usize, k.index);
        k.blocks(blocks, |block| {
            let (lane, number) = block.div_rem(&parts);
            let index = unflatten(lane, &outer.sizes);
            let source = from.at(&index, &outer.strides[0]);
            let start = number * part;
            let ends = [start, (start + part).min(size)];
            let load = |at| from.buf.load_number(self.along(source, at, last, along[0]));
            let Some(to) = to else {
                let total = tile.total(ends, load);
                if let Some(totals) = totals {
                    k.when(k.thread().eq(0), || totals.store_number(block, total));
                }
                return;
            };
            let end = to.at(&index, &outer.strides[1]);
            let carry = match totals {
                Some(totals) => totals.load_number(block),
                None => tile.fold.first(&k),
            };
            tile.walk(ends, k.number_var(carry), self.op.exclusive, load, |at, value| {
                to.buf.store_number(self.along(end, at, last, along[1]), value);
            });
        });
        k.launch_blocks(blocks)
    }

    /// A block a tile, in the order in which blocks begin: those of the tiles before have begun, too.
    fn in_order(
        &self,
        program: &mut Program,
        segment: &Segment,
        target: &Target,
    ) -> Result<(), Missing> {
        let k = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let lanes = self.outer.count() as usize;
        k.at_once(WAITING);
        // What waits for others has more to do between.
        let tile = Tile::new(&k, self.fold(), 2 * items(target));
        let length = tile.items * BLOCK;
        let tiles = self.size.div_ceil(length as usize);
        let groups = tiles.div_ceil(BLOCK as usize);
        let posts = lanes * (tiles + groups) * words(self.dtype);
        let board = BufferRef::Scratch(program.scratch.len());
        program.scratch.push((posts + 1) * DType::U64.size());
        program.launches.push(cleared(board, posts + 1, segment, target)?);

        let (from, to) = self.bind(&k, Pass::Whole);
        let board = Board { buf: k.bind(board, DType::U64, Access::Atomic), dtype: self.dtype };
        let (outer, along) = (k.walk(&self.outer), k.strides(&self.along));
        let [size, last] = [self.size, self.size - 1].map(|n| k.extent(n));
        let [begun, groups] = [posts, groups].map(|n| k.extent(n));
        let (tiles, blocks) = (k.divisor(tiles, k.index), (lanes * tiles) as u64);
        let (ticket, is_first) = (k.shared(k.index, 1), k.thread().eq(0));
        let one = k.int(1, Ty::U64);
        k.blocks(blocks, |_| {
            // None draws before it can begin: others wait for it from then on.
            k.when(is_first, || {
                let number = board.buf.atomic(Atomic::Add, begun, one);
                ticket.store(k.u32(0), k.as_index(number));
            });
            k.barrier();
            let (lane, number) = ticket.load(k.u32(0)).div_rem(&tiles);
            let index = unflatten(lane, &outer.sizes);
            let source = from.at(&index, &outer.strides[0]);
            let load = |at| from.buf.load_number(self.along(source, at, last, along[0]));
            let end = to.map(|to| (to, to.at(&index, &outer.strides[1])));
            let store = |at, value| {
                if let Some((to, end)) = end {
                    to.buf.store_number(self.along(end, at, last, along[1]), value);
                }
            };
            let row = lane * (tiles.size + groups);
            tile.step([number * length, size], self.op.exclusive, load, store, |total| {
                tile.before(board, [row, row + groups], number, total)
            });
        });
        program.launches.push(k.launch_blocks(blocks)?);
        Ok(())
    }

    /// The scan of the parts' totals, each without its own: a block a lane.
    fn joined(
        &self,
        segment: &Segment,
        target: &Target,
        parts: usize,
        totals: BufferRef,
        carries: BufferRef,
    ) -> Result<Launch, Missing> {
        let k = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let totals = k.bind(totals, self.dtype.accumulator(), Access::Read);
        let carries = k.bind(carries, self.dtype.accumulator(), Access::Write);
        let tile = Tile::new(&k, self.fold(), items(target));
        let parts = k.extent(parts);
        let lanes = self.outer.count();
        k.blocks(lanes, |lane| {
            let carry = k.number_var(tile.fold.first(&k));
            let row = lane * parts;
            let ends = [k.index(0), parts];
            let load = |at| totals.load_number(row + at);
            let store = |at, value| carries.store_number(row + at, value);
            tile.walk(ends, carry, true, load, store);
        });
        k.launch_blocks(lanes)
    }
}

/// The launch after which nothing is posted.
fn cleared(
    board: BufferRef,
    count: usize,
    segment: &Segment,
    target: &Target,
) -> Result<Launch, Missing> {
    let k = Draft::new("clear", BLOCK, segment, target)?;
    let board = k.bind(board, DType::U64, Access::Write);
    let nothing = k.int(0, Ty::U64);
    k.each(count as u64, |at| board.store(at, nothing));
    k.launch_over(count as u64)
}

/// Words that a number of `dtype` is posted in.
fn words(dtype: DType) -> usize {
    dtype.accumulator().size().div_ceil(4)
}

/// Where blocks post numbers for each other.
#[derive(Clone, Copy)]
struct Board {
    buf: Buf,
    dtype: DType,
}

impl Board {
    fn post<'k>(self, at: Val<'k>, number: Number<'k>) {
        let words_of = |part: Val<'k>| match part.ty {
            Ty::F32 => vec![part.bits(Ty::U32)],
            Ty::Bool | Ty::I32 | Ty::U32 => vec![part.convert(Ty::U32)],
            Ty::I64 | Ty::U64 | Ty::F64 => {
                let bits = part.bits(Ty::U64);
                vec![bits.convert(Ty::U32), (bits >> 32).convert(Ty::U32)]
            }
        };
        let first = at * words(self.dtype) as u32;
        (0u32..).zip(number.parts().flat_map(words_of)).for_each(|(i, word)| {
            self.buf.post(first + i, word);
        });
    }

    /// The number that is posted there, in registers as those of `like`.
    fn awaited<'k>(self, at: Val<'k>, like: Number<'k>) -> Number<'k> {
        let mut at = at * words(self.dtype) as u32;
        let mut next = || {
            let word = self.buf.awaited(at);
            at = at + 1;
            word
        };
        like.map(|part| match part.ty {
            Ty::F32 => next().bits(Ty::F32),
            Ty::Bool => next().ne(0),
            Ty::I32 | Ty::U32 => next().convert(part.ty),
            Ty::I64 | Ty::U64 | Ty::F64 => {
                let (low, high) = (next(), next());
                join(low, high, part.ty)
            }
        })
    }
}

/// Elements of 4 bytes of a thread: as many as a block has room for.
pub(super) fn items(target: &Target) -> u32 {
    if target.shared_bytes >= 48 << 10 { 16 } else { 8 }
}

/// Where an element is in shared memory: with a gap after every 32, so that threads that have
/// neighbouring runs of elements do not wait for each other's banks.
pub(super) fn padded(at: Val<'_>) -> Val<'_> {
    at + (at >> 5)
}

/// Room for `count` elements with these gaps.
pub(super) fn padded_size(count: u32) -> u32 {
    count + count / 32
}

/// A number for every thread of a block, of which each gets the fold of those before its own.
pub(super) struct Totals<'k> {
    k: &'k Draft,
    fold: Fold,
    shared: SharedNumber,
}

impl<'k> Totals<'k> {
    pub fn new(k: &'k Draft, fold: Fold) -> Self {
        Totals { k, fold, shared: shared(k, fold.dtype, 2 * BLOCK) }
    }

    /// The fold of the numbers before the thread's own, and of all. Every thread of the block has to
    /// come here, and to a barrier between two times.
    pub fn before(&self, own: Number<'k>) -> (Number<'k>, Number<'k>) {
        match own {
            Number::Real(own) if self.k.can_shuffle(1, own.ty) => self.before_by_groups(own),
            _ => self.before_by_threads(own),
        }
    }

    /// The same, where threads exchange values: groups of them by themselves, and then their totals.
    fn before_by_groups(&self, own: Val<'k>) -> (Number<'k>, Number<'k>) {
        let (k, fold) = (self.k, self.fold);
        let thread = k.thread();
        let join = |x: Val<'k>, y: Val<'k>| fold.join(Number::Real(x), Number::Real(y)).real();
        let (mut before, mut total) = (fold.first(k).real(), own);
        let mut size = 1;
        while size < BLOCK && k.can_shuffle(size, own.ty) {
            let other = total.shuffle_xor(size);
            let is_second = (thread & size).ne(0);
            before = is_second.select(join(other, before), before);
            let (first, second) = (is_second.select(other, total), is_second.select(total, other));
            total = join(first, second);
            size *= 2;
        }
        let group = thread / size;
        k.when((thread % size).eq(0), || put(self.shared, fold.dtype, group, Number::Real(total)));
        k.barrier();
        let mut all = fold.first(k).real();
        for other in 0..BLOCK / size {
            let theirs = take(self.shared, fold.dtype, k.u32(other)).real();
            before = group.eq(other).select(join(all, before), before);
            all = join(all, theirs);
        }
        (Number::Real(before), Number::Real(all))
    }

    fn before_by_threads(&self, own: Number<'k>) -> (Number<'k>, Number<'k>) {
        const STEPS: u32 = BLOCK.trailing_zeros();
        let (k, fold) = (self.k, self.fold);
        let thread = k.thread();
        put(self.shared, fold.dtype, thread, own);
        k.barrier();
        // Each number is joined with the one 1, 2, 4, .. places before it, from one half of the memory
        // into the other.
        k.range(k.u32(0), STEPS, 1, |step| {
            let distance = k.u32(1) << step;
            let from = (step & 1) * BLOCK;
            let mine = take(self.shared, fold.dtype, thread + from);
            let before = thread.max(distance) - distance;
            let before = take(self.shared, fold.dtype, before + from);
            let joined = thread.lt(distance).choose(mine, fold.join(before, mine));
            put(self.shared, fold.dtype, thread + (k.u32(BLOCK) - from), joined);
            k.barrier();
        });
        let last = STEPS % 2 * BLOCK;
        let before = take(self.shared, fold.dtype, thread.max(1) - 1 + last);
        let before = thread.eq(0).choose(fold.first(k), before);
        (before, take(self.shared, fold.dtype, k.u32(last + BLOCK - 1)))
    }
}

/// Room in shared memory; bools are kept as numbers.
fn shared(k: &Draft, dtype: DType, len: u32) -> SharedNumber {
    k.shared_number(if dtype == DType::Bool { DType::U32 } else { dtype }, len)
}

fn put<'k>(shared: SharedNumber, dtype: DType, at: Val<'k>, number: Number<'k>) {
    let is_bool = dtype == DType::Bool;
    shared.store(at, number.map(|v| if is_bool { v.convert(Ty::U32) } else { v }));
}

fn take<'k>(shared: SharedNumber, dtype: DType, at: Val<'k>) -> Number<'k> {
    let is_bool = dtype == DType::Bool;
    shared.load(at).map(|v| if is_bool { v.ne(0) } else { v })
}

/// A block that scans tile by tile: its threads load neighbours together, and each folds a run of its
/// own.
struct Tile<'k> {
    k: &'k Draft,
    fold: Fold,
    /// Elements of a thread.
    items: u32,
    shared: SharedNumber,
    totals: Totals<'k>,
}

impl<'k> Tile<'k> {
    /// With so many elements of 4 bytes for a thread: a power of two.
    fn new(k: &'k Draft, fold: Fold, items: u32) -> Tile<'k> {
        let items = items * 4 / fold.dtype.size().max(4) as u32;
        let shared = shared(k, fold.dtype, padded_size(items * BLOCK));
        Tile { k, fold, items, shared, totals: Totals::new(k, fold) }
    }

    /// Whether a tile ends before `stop`.
    fn is_whole(&self, tile: Val<'k>, stop: Val<'k>) -> Val<'k> {
        (stop - tile).ge(self.items * BLOCK)
    }

    /// Where the thread's elements of a tile are, side by side with its neighbours'.
    fn places(&self, tile: Val<'k>) -> impl Iterator<Item = Val<'k>> {
        let first = tile + self.k.as_index(self.k.thread());
        (0..self.items).map(move |i| first + i * BLOCK)
    }

    /// The elements there, and what leaves others as they are for those that are not before `stop`.
    fn loaded(
        &self,
        tile: Val<'k>,
        stop: Val<'k>,
        load: &impl Fn(Val<'k>) -> Number<'k>,
    ) -> Vec<Number<'k>> {
        let first = self.fold.first(self.k);
        let vars: Vec<_> = (0..self.items).map(|_| self.k.number_var(first)).collect();
        let set = |loaded: Vec<Number<'k>>| vars.iter().zip(loaded).for_each(|(var, x)| var.set(x));
        // None waits for a branch: all are asked for at once.
        let all = || set(self.places(tile).map(load).collect());
        let some = || {
            let loaded: Vec<_> = self.places(tile).map(|at| (at, load(at.min(stop - 1)))).collect();
            set(loaded.into_iter().map(|(at, x)| at.lt(stop).choose(x, first)).collect());
        };
        self.k.either(self.is_whole(tile, stop), all, some);
        vars.into_iter().map(NumberVar::get).collect()
    }

    /// The fold of the places from start to stop.
    fn total(
        &self,
        [start, stop]: [Val<'k>; 2],
        load: impl Fn(Val<'k>) -> Number<'k>,
    ) -> Number<'k> {
        let (k, fold) = (self.k, self.fold);
        let own = k.number_var(fold.first(k));
        k.range(start, stop, self.items * BLOCK, |tile| {
            for x in self.loaded(tile, stop, &load) {
                own.set(fold.join(own.get(), x));
            }
        });
        let (_, total) = self.totals.before(own.get());
        k.barrier();
        total
    }

    /// Folds the places from start to stop onto `carry`, tile by tile.
    fn walk(
        &self,
        [start, stop]: [Val<'k>; 2],
        carry: NumberVar<'k>,
        exclusive: bool,
        load: impl Fn(Val<'k>) -> Number<'k>,
        store: impl Fn(Val<'k>, Number<'k>),
    ) {
        self.k.range(start, stop, self.items * BLOCK, |tile| {
            self.step([tile, stop], exclusive, &load, &store, |total| {
                let before = carry.get();
                carry.set(self.fold.join(before, total));
                before
            });
        });
    }

    /// Folds the places of a tile that are before `stop` onto what `before` gives for their total.
    fn step(
        &self,
        [tile, stop]: [Val<'k>; 2],
        exclusive: bool,
        load: impl Fn(Val<'k>) -> Number<'k>,
        store: impl Fn(Val<'k>, Number<'k>),
        before: impl FnOnce(Number<'k>) -> Number<'k>,
    ) {
        let (k, fold, dtype) = (self.k, self.fold, self.fold.dtype);
        let thread = k.thread();
        // Multiples of 32 have their gaps to themselves.
        let first = padded(thread);
        let apart = |i: u32| first + padded_size(i * BLOCK);
        let start = padded(thread * self.items);
        let in_a_run = |i: u32| start + padded_size(i);
        for (i, x) in (0..).zip(self.loaded(tile, stop, &load)) {
            put(self.shared, dtype, apart(i), x);
        }
        k.barrier();
        // A run is folded twice, and not kept meanwhile: blocks with few registers hide what others
        // wait for.
        let run = |each: &dyn Fn(u32, Option<Number<'k>>, Number<'k>)| {
            let mut joined = None;
            for i in 0..self.items {
                let x = take(self.shared, dtype, in_a_run(i));
                let next = joined.map_or(x, |before| fold.join(before, x));
                each(i, joined.replace(next), next);
            }
            joined
        };
        let own = run(&|_, _, _| ()).unwrap_or(fold.first(k));
        let (own, total) = self.totals.before(own);
        let before = fold.join(before(total), own);
        run(&|i, last, next| {
            let result = match (exclusive, last) {
                (false, _) => fold.join(before, next),
                (true, Some(last)) => fold.join(before, last),
                (true, None) => before,
            };
            put(self.shared, dtype, in_a_run(i), result);
        });
        k.barrier();
        let results = || self.places(tile).zip((0..).map(|i| take(self.shared, dtype, apart(i))));
        let all = || results().for_each(|(at, result)| store(at, result));
        let some = || {
            results().for_each(|(at, result)| k.when(at.lt(stop), || store(at, result)));
        };
        k.either(self.is_whole(tile, stop), all, some);
        k.barrier();
    }

    /// Posts the total of tile `number` of a lane, and waits for those of the tiles before it: their
    /// fold. The lane has a post for every [`BLOCK`] tiles from the first of `posts` on, and one for each
    /// tile from the second on. Every thread of the block has to come here.
    fn before(
        &self,
        board: Board,
        posts: [Val<'k>; 2],
        number: Val<'k>,
        total: Number<'k>,
    ) -> Number<'k> {
        let (k, fold) = (self.k, self.fold);
        let [groups, tiles] = posts;
        let (thread, none) = (k.as_index(k.thread()), fold.first(k));
        let is_first = k.thread().eq(0);
        k.when(is_first, || board.post(tiles + number, total));
        let own = k.number_var(none);
        let (group, place) = (number / BLOCK, number % BLOCK);
        k.when(thread.lt(place), || {
            own.set(board.awaited(tiles + (number - place) + thread, none));
        });
        k.barrier();
        k.when(place.eq(BLOCK - 1), || {
            let (_, before) = self.totals.before(own.get());
            k.when(is_first, || board.post(groups + group, fold.join(before, total)));
            k.barrier();
        });
        k.range(thread, group, BLOCK, |other| {
            own.set(fold.join(own.get(), board.awaited(groups + other, none)));
        });
        self.totals.before(own.get()).1
    }
}
