//! Running folds along an axis.
//!
//! Short axes, and axes of many lanes, take a thread a lane, or a part of one where neighbouring
//! lanes lie side by side. Elsewhere a block takes a lane, or a part of one, tile by tile. A lane that
//! is cut into parts takes three launches: the parts' totals, the scan of these, and the scan of each
//! part from where the one before it ended. Where blocks may wait for each other, a tile is read once:
//! its block posts its total and waits for those of the tiles before it. Where a lane is cut, and what
//! is joined with what, depends on shapes and the device alone, so results repeat.
//!
//! A sum or product of floats of what lies between may overflow, or a product vanish, where that from the start
//! does not ([`Fold::apart`]). Such a tile is folded again, in order by one thread; a lane that is cut and has one is
//! walked once more as a whole.

use cupola_core::DType;
use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Scan, ScanKind};

use super::view::{Axes, View, place, unflatten};
use super::{BufferRef, Draft, Launch, Missing, Program, join};
use crate::ir::{Access, Atomic, Buf, Number, NumberVar, Shared, SharedNumber, Target, Ty, Val};

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
/// Elements that one thread folds in order at a time.
const IN_ORDER: u32 = 16;

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
    /// The part is the lane, where one of its parts is lost.
    Again,
}

/// Where it stands which lanes have a part that is lost.
#[derive(Clone, Copy)]
struct Lost {
    buffer: BufferRef,
    dtype: DType,
    /// The place of the first lane.
    first: usize,
}

/// That, bound.
#[derive(Clone, Copy)]
struct LostLanes<'k> {
    buf: Buf,
    first: Val<'k>,
}

impl<'k> LostLanes<'k> {
    fn set(self, lane: Val<'k>, lost: bool) {
        let value = lane.k().u32(u32::from(lost));
        self.buf.store(self.first + lane, value);
    }

    fn has(self, lane: Val<'k>) -> Val<'k> {
        self.buf.load(self.first + lane).ne(0)
    }
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

    /// Whether numbers that are joined apart may be lost: see [`Fold::apart`].
    fn can_lose(self) -> bool {
        matches!(self.kind, ScanKind::Sum | ScanKind::Prod) && self.dtype.is_inexact()
    }

    /// Whether what leaves every element as it is does so but for infinite ones and the signs of zeros.
    fn begins(self) -> bool {
        self.kind == ScanKind::Prod && self.dtype.is_complex()
    }

    /// Numbers that are joined without what comes before them: infinite or NaN where a fold from the start may be
    /// neither, or has digits that a small product lacks.
    fn apart<'k>(self, x: Number<'k>, y: Number<'k>) -> Number<'k> {
        let joined = self.join(x, y);
        if self.kind != ScanKind::Prod || !self.can_lose() {
            return joined;
        }
        let small = every(joined, Val::is_small);
        let lost = small & any(x, Val::is_nonzero) & any(y, Val::is_nonzero);
        joined.map(|v| lost.select(v.like(f32::NAN), v))
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

fn every<'k>(x: Number<'k>, f: impl Fn(Val<'k>) -> Val<'k>) -> Val<'k> {
    match x {
        Number::Real(v) => f(v),
        Number::Complex(re, im) => f(re) & f(im),
    }
}

fn any<'k>(x: Number<'k>, f: impl Fn(Val<'k>) -> Val<'k>) -> Val<'k> {
    match x {
        Number::Real(v) => f(v),
        Number::Complex(re, im) => f(re) | f(im),
    }
}

fn is_finite(x: Number<'_>) -> Val<'_> {
    every(x, Val::is_finite)
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
        let pass = |part, pass, lost| match by_threads {
            true => self.by_threads(segment, target, part, pass, lost),
            false => self.by_blocks(segment, target, part, pass, lost),
        };
        let parts = self.size.div_ceil(part);
        if parts <= 1 {
            program.launches.push(pass(self.size, Pass::Whole, None)?);
            return Ok(());
        }
        if target.awaits && !by_threads {
            return self.in_order(program, segment, target);
        }
        let bytes = lanes as usize * parts * self.dtype.accumulator().size();
        let first = program.scratch.len();
        program.scratch.extend([bytes, bytes]);
        let (totals, carries) = (BufferRef::Scratch(first), BufferRef::Scratch(first + 1));
        let lost = self.fold().can_lose().then(|| {
            program.scratch.push(lanes as usize * DType::U32.size());
            Lost { buffer: BufferRef::Scratch(first + 2), dtype: DType::U32, first: 0 }
        });
        program.launches.push(pass(part, Pass::Totals(totals), lost)?);
        program.launches.push(self.joined(segment, target, parts, totals, carries)?);
        program.launches.push(pass(part, Pass::From(carries), lost)?);
        if lost.is_some() {
            program.launches.push(pass(self.size, Pass::Again, lost)?);
        }
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
            Pass::Whole | Pass::Again => None,
            Pass::Totals(buffer) => Some(k.bind(buffer, self.dtype.accumulator(), Access::Write)),
            Pass::From(buffer) => Some(k.bind(buffer, self.dtype.accumulator(), Access::Read)),
        }
    }

    /// Binds where it stands which lanes are lost.
    fn bind_lost<'k>(&self, k: &'k Draft, pass: Pass, lost: Option<Lost>) -> Option<LostLanes<'k>> {
        let access = if matches!(pass, Pass::Again) { Access::Read } else { Access::Write };
        lost.map(|Lost { buffer, dtype, first }| LostLanes {
            buf: k.bind(buffer, dtype, access),
            first: k.extent(first),
        })
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
        lost: Option<Lost>,
    ) -> Result<Launch, Missing> {
        let k = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let (from, to) = self.bind(&k, pass);
        let totals = self.bind_totals(&k, pass);
        let lost = self.bind_lost(&k, pass, lost);
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
            let stop = match (pass, lost) {
                (Pass::Again, Some(lost)) => lost.has(lane).select(stop, start),
                _ => stop,
            };
            let sound = k.var(is_finite(total.get()));
            k.range(start, stop, UNDER_WAY, |at| {
                let places = (0..UNDER_WAY).map(|i| at + i);
                let load = |at| from.buf.load_number(self.along(source, at, last, along[0]));
                let loaded: Vec<_> = places.map(|at| (at, load(at.min(last)))).collect();
                for (at, x) in loaded {
                    k.when(at.lt(stop), || {
                        let before = total.get();
                        let joined = match pass {
                            Pass::Totals(_) => fold.apart(before, x),
                            _ if fold.begins() => at.eq(0).choose(x, fold.join(before, x)),
                            _ => fold.join(before, x),
                        };
                        if matches!(pass, Pass::From(_)) && lost.is_some() {
                            sound.set(sound.get() & is_finite(fold.apart(before, x)));
                        }
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
            match (pass, lost) {
                (Pass::Totals(_), Some(lost)) => k.when(number.eq(0), || lost.set(lane, false)),
                (Pass::From(_), Some(lost)) => k.when(!sound.get(), || lost.set(lane, true)),
                _ => {}
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
        lost: Option<Lost>,
    ) -> Result<Launch, Missing> {
        let k = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let (from, to) = self.bind(&k, pass);
        let totals = self.bind_totals(&k, pass);
        let lost = self.bind_lost(&k, pass, lost);
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
            let stop = (start + part).min(size);
            let stop = match (pass, lost) {
                (Pass::Again, Some(lost)) => lost.has(lane).select(stop, start),
                _ => stop,
            };
            let ends = [start, stop];
            let load = |at| from.buf.load_number(self.along(source, at, last, along[0]));
            let is_first = k.thread().eq(0);
            let Some(to) = to else {
                let total = tile.total(ends, load);
                if let Some(totals) = totals {
                    k.when(is_first, || totals.store_number(block, total));
                }
                if let Some(lost) = lost {
                    k.when(is_first & number.eq(0), || lost.set(lane, false));
                }
                return;
            };
            let end = to.at(&index, &outer.strides[1]);
            let carry = match totals {
                Some(totals) => totals.load_number(block),
                None => tile.fold.first(&k),
            };
            let carry = k.number_var(carry);
            let store = |at, value| {
                to.buf.store_number(self.along(end, at, last, along[1]), value);
            };
            match (pass, lost) {
                (Pass::From(_), Some(lost)) => {
                    let note = |is_lost| k.when(is_lost, || lost.set(lane, true));
                    tile.walk_on(ends, carry, self.op.exclusive, load, store, note);
                }
                _ => tile.walk(ends, carry, self.op.exclusive, load, store),
            }
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
        let place = BufferRef::Scratch(program.scratch.len());
        let can_lose = self.fold().can_lose();
        let words = posts + 1 + if can_lose { lanes } else { 0 };
        program.scratch.push(words * DType::U64.size());
        program.launches.push(cleared(place, words, segment, target)?);

        let (from, to) = self.bind(&k, Pass::Whole);
        let board = Board { buf: k.bind(place, DType::U64, Access::Atomic), dtype: self.dtype };
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
            let before = |total| tile.before(board, [row, row + groups], number, total);
            let note = |carry, is_lost: Val<'_>| {
                let lost = is_lost | !is_finite(carry);
                k.when(lost, || {
                    board.buf.atomic(Atomic::Max, begun + 1 + lane, one);
                });
                k.barrier();
            };
            let ends = [number * length, size];
            tile.step(ends, self.op.exclusive, load, store, before, note);
        });
        program.launches.push(k.launch_blocks(blocks)?);
        if can_lose {
            let lost = Lost { buffer: place, dtype: DType::U64, first: posts + 1 };
            let again = self.by_blocks(segment, target, self.size, Pass::Again, Some(lost))?;
            program.launches.push(again);
        }
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
        let join = |x: Val<'k>, y: Val<'k>| fold.apart(Number::Real(x), Number::Real(y)).real();
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
            let joined = thread.lt(distance).choose(mine, fold.apart(before, mine));
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
    /// Whether the tile at hand is lost, and what a thread that folds it in order comes to.
    again: Option<(Shared, SharedNumber)>,
}

impl<'k> Tile<'k> {
    /// With so many elements of 4 bytes for a thread: a power of two.
    fn new(k: &'k Draft, fold: Fold, items: u32) -> Tile<'k> {
        let items = items * 4 / fold.dtype.size().max(4) as u32;
        let room = shared(k, fold.dtype, padded_size(items * BLOCK));
        let again = || (k.shared(Ty::U32, 1), shared(k, fold.dtype, 1));
        let again = fold.can_lose().then(again);
        Tile { k, fold, items, shared: room, totals: Totals::new(k, fold), again }
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
                own.set(fold.apart(own.get(), x));
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
        let is_first = self.k.thread().eq(0);
        if let Some((flag, _)) = self.again {
            self.k.when(is_first, || flag.store(self.k.u32(0), 0));
        }
        self.k.range(start, stop, self.items * BLOCK, |tile| {
            let before = |total| self.carried(carry, total);
            let mend = |before, is_lost| {
                self.in_order([tile, stop], exclusive, &load, before, is_lost, carry);
            };
            self.step([tile, stop], exclusive, &load, &store, before, mend);
        });
    }

    /// The same, where `note` is told whether the thread has something that is lost.
    fn walk_on(
        &self,
        [start, stop]: [Val<'k>; 2],
        carry: NumberVar<'k>,
        exclusive: bool,
        load: impl Fn(Val<'k>) -> Number<'k>,
        store: impl Fn(Val<'k>, Number<'k>),
        note: impl Fn(Val<'k>),
    ) {
        note(!is_finite(carry.get()));
        self.k.range(start, stop, self.items * BLOCK, |tile| {
            let before = |total| self.carried(carry, total);
            let mend = |_, is_lost| {
                note(is_lost);
                self.k.barrier();
            };
            self.step([tile, stop], exclusive, &load, &store, before, mend);
        });
    }

    /// What comes before a tile, to which its total is then joined.
    fn carried(&self, carry: NumberVar<'k>, total: Number<'k>) -> Number<'k> {
        let before = carry.get();
        carry.set(self.fold.join(before, total));
        before
    }

    /// Folds a tile in order where a thread has something that is lost, by one thread. Every thread of the block has to
    /// come here.
    fn in_order(
        &self,
        [tile, stop]: [Val<'k>; 2],
        exclusive: bool,
        load: &impl Fn(Val<'k>) -> Number<'k>,
        before: Number<'k>,
        is_lost: Val<'k>,
        carry: NumberVar<'k>,
    ) {
        let (k, fold, dtype) = (self.k, self.fold, self.fold.dtype);
        let Some((flag, end)) = self.again else { return k.barrier() };
        let (thread, none) = (k.thread(), k.u32(0));
        k.when(is_lost, || flag.store(none, 1));
        k.barrier();
        let is_lost = flag.load(none).ne(0);
        k.when(is_lost, || {
            for (i, x) in (0..).zip(self.loaded(tile, stop, load)) {
                put(self.shared, dtype, padded(thread) + padded_size(i * BLOCK), x);
            }
        });
        k.barrier();
        k.when(is_lost & thread.eq(0), || {
            let total = k.number_var(before);
            // To the end of the tile, where nothing changes what is there.
            k.range(none, self.items * BLOCK, IN_ORDER, |first| {
                let at = |i| padded(first + i);
                let loaded: Vec<_> =
                    (0..IN_ORDER).map(|i| take(self.shared, dtype, at(i))).collect();
                for (i, x) in (0..).zip(loaded) {
                    let before = total.get();
                    let mut joined = fold.join(before, x);
                    if fold.begins() && i == 0 {
                        joined = (tile.eq(0) & first.eq(0)).choose(x, joined);
                    }
                    put(self.shared, dtype, at(i), if exclusive { before } else { joined });
                    total.set(joined);
                }
            });
            put(end, dtype, none, total.get());
            flag.store(none, 0);
        });
        k.barrier();
        k.when(is_lost, || carry.set(take(end, dtype, none)));
    }

    /// Folds the places of a tile that are before `stop` onto what `before` gives for their total. `mend` gets that and
    /// whether the thread has something that is lost, when results are in shared memory, and has to come to a barrier.
    fn step(
        &self,
        [tile, stop]: [Val<'k>; 2],
        exclusive: bool,
        load: impl Fn(Val<'k>) -> Number<'k>,
        store: impl Fn(Val<'k>, Number<'k>),
        before: impl FnOnce(Number<'k>) -> Number<'k>,
        mend: impl FnOnce(Number<'k>, Val<'k>),
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
                let next = joined.map_or(x, |before| fold.apart(before, x));
                each(i, joined.replace(next), next);
            }
            joined
        };
        let own = run(&|_, _, _| ()).unwrap_or(fold.first(k));
        let (own, total) = self.totals.before(own);
        let carry = before(total);
        let join = |nothing: Val<'k>, x, y| match fold.begins() {
            true => nothing.choose(y, fold.apart(x, y)),
            false => fold.apart(x, y),
        };
        let begins = tile.eq(0);
        let before = join(begins, carry, own);
        let begins = begins & thread.eq(0);
        let (is_open, sound) = (is_finite(carry), k.var(is_finite(own) & is_finite(total)));
        // What is infinite already stays so.
        let check = |joined, own| {
            sound.set(sound.get() & is_finite(own) & (is_finite(joined) | !is_open));
        };
        if fold.can_lose() {
            check(fold.apart(carry, total), total);
        }
        run(&|i, last, next| {
            let result = match (exclusive, last) {
                (false, _) => join(begins, before, next),
                (true, Some(last)) => join(begins, before, last),
                (true, None) => before,
            };
            if fold.can_lose() {
                check(result, next);
            }
            put(self.shared, dtype, in_a_run(i), result);
        });
        // Nothing is lost of what has no number.
        mend(carry, !sound.get() & any(carry, |v| !v.is_nan()));
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
            k.when(is_first, || board.post(groups + group, fold.apart(before, total)));
            k.barrier();
        });
        k.range(thread, group, BLOCK, |other| {
            own.set(fold.apart(own.get(), board.awaited(groups + other, none)));
        });
        self.totals.before(own.get()).1
    }
}
