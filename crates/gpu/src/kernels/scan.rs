//! Running folds along an axis.
//!
//! Short axes, and axes of many lanes, take a thread a lane. Elsewhere a block takes a lane, or a
//! part of one, tile by tile: a tile's elements are joined with the ones 1, 2, 4, .. places before
//! them in shared memory, and then with the total of the tiles before. A lane that is cut into parts
//! takes three launches: the parts' totals, the scan of these, and the scan of each part from where
//! the one before it ended. Where a lane is cut depends on shapes alone, so results repeat.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{Scan, ScanKind};

use super::view::Axes;
use super::{Draft, Launch, Missing, Place, Program};
use crate::ir::{Access, Buf, Build, Number, Shared, Target, Ty, Val, Var};

/// Threads in a block, and elements of a tile.
const BLOCK: u32 = 256;
/// Axes up to this length take a thread a lane.
const SHORT: usize = 64;
/// Elements of a part of a lane that is cut.
const PART: usize = 1 << 13;

/// Adds the launches of a scan.
pub fn scan(
    program: &mut Program,
    op: &Scan,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let without = |strides: &[isize]| -> Vec<isize> {
        let kept = strides.iter().enumerate().filter(|(axis, _)| *axis != op.axis);
        kept.map(|(_, &s)| s).collect()
    };
    let sizes = x.aval.shape.without(&[op.axis]);
    let outer = Axes::joined(&sizes, &[&without(&x.strides), &without(&out.strides)]);
    let along = [x.strides[op.axis], out.strides[op.axis]];
    let size = x.aval.shape[op.axis];
    let lanes = outer.count();
    let scan = Lanes { op: *op, dtype: x.aval.dtype, outer, along, size, lanes };
    if size <= SHORT || lanes >= u64::from(target.threads) {
        program.launches.push(scan.by_threads(segment, target)?);
        return Ok(());
    }
    let parts = size.div_ceil(PART);
    if parts == 1 || lanes * u64::from(BLOCK) >= u64::from(target.threads) {
        program.launches.push(scan.by_blocks(segment, target, size, Work::Whole)?);
        return Ok(());
    }
    // Totals are kept as registers hold them: halves in single precision.
    let held = held(scan.dtype);
    let bytes = lanes as usize * parts * held.size();
    let first = program.scratch.len();
    program.scratch.extend([bytes, bytes]);
    let (totals, carries) = (Place::Scratch(first), Place::Scratch(first + 1));
    program.launches.push(scan.by_blocks(segment, target, PART, Work::Totals(totals))?);
    program.launches.push(scan.joined(segment, target, parts, totals, carries)?);
    program.launches.push(scan.by_blocks(segment, target, PART, Work::From(carries))?);
    Ok(())
}

/// The dtype that totals are kept in.
fn held(dtype: DType) -> DType {
    if dtype.is_float() && dtype != DType::F64 { DType::F32 } else { dtype }
}

/// What blocks do with their part of a lane.
#[derive(Clone, Copy)]
enum Work {
    /// The part is the lane.
    Whole,
    /// Only the part's total is stored.
    Totals(Place),
    /// The part goes on from a number.
    From(Place),
}

/// The lanes of a scan.
struct Lanes {
    op: Scan,
    dtype: DType,
    /// The other axes, with the strides of input and output.
    outer: Axes,
    /// The strides of input and output along the axis.
    along: [isize; 2],
    size: usize,
    lanes: u64,
}

/// Joins numbers, and keeps the first failure.
struct Fold {
    kind: ScanKind,
    dtype: DType,
    failed: Result<(), Missing>,
}

impl Fold {
    fn join(&mut self, b: &mut Build<'_>, x: Number, y: Number) -> Number {
        let result = b.binary(self.kind.join(), x, y, self.dtype).unwrap_or_else(|missing| {
            self.failed = Err(missing);
            x
        });
        match result {
            Number::Real(v) => Number::Real(b.wrapped(v, self.dtype)),
            complex => complex,
        }
    }

    /// What leaves every element as it is.
    fn first(&self, b: &mut Build<'_>) -> Number {
        match self.kind {
            ScanKind::Sum => b.number(0, self.dtype),
            ScanKind::Prod => b.number(1, self.dtype),
            ScanKind::Max | ScanKind::LogAddExp => Number::Real(b.extreme(false, self.dtype)),
            ScanKind::Min => Number::Real(b.extreme(true, self.dtype)),
        }
    }
}

fn variables(b: &mut Build<'_>, number: Number) -> Vec<Var> {
    number.parts().map(|v| b.var(v)).collect()
}

fn set(b: &mut Build<'_>, variables: &[Var], number: Number) {
    variables.iter().zip(number.parts()).for_each(|(&var, v)| b.set(var, v));
}

impl Lanes {
    fn fold(&self) -> Fold {
        Fold { kind: self.op.kind, dtype: self.dtype, failed: Ok(()) }
    }

    /// Where the element at a place of the walk is in its lane.
    fn position(&self, draft: &mut Draft<'_>, at: Val) -> Val {
        if !self.op.reverse {
            return at;
        }
        let last = draft.index(self.size as i64 - 1);
        draft.build.sub(last, at)
    }

    /// A thread a lane.
    fn by_threads(&self, segment: &Segment, target: &Target) -> Result<Launch, Missing> {
        let mut draft = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let from = draft.view(Place::Input(0), self.dtype, Access::Read)?;
        let to = draft.view(Place::Output(0), self.dtype, Access::Write)?;
        let mut fold = self.fold();
        draft.each(self.lanes, |draft, lane| {
            let place = draft.unflatten(lane, &self.outer.sizes);
            let source = draft.place(from.offset, &place, &self.outer.strides[0]);
            let end = draft.place(to.offset, &place, &self.outer.strides[1]);
            let first = fold.first(&mut draft.build);
            let total = variables(&mut draft.build, first);
            let (zero, one) = (draft.index(0), draft.index(1));
            let size = draft.index(self.size as i64);
            draft.range(zero, size, one, |draft, at| {
                let at = self.position(draft, at);
                let source = draft.place(source, &[at], &self.along[..1]);
                let x = draft.build.load_number(from.buf, source);
                let before = draft.build.get_number(&total);
                let joined = fold.join(&mut draft.build, before, x);
                let end = draft.place(end, &[at], &self.along[1..]);
                let result = if self.op.exclusive { before } else { joined };
                draft.build.store_number(to.buf, end, result);
                set(&mut draft.build, &total, joined);
            });
        });
        fold.failed?;
        Ok(draft.launch_over(self.lanes))
    }

    /// A block a part of a lane.
    fn by_blocks(
        &self,
        segment: &Segment,
        target: &Target,
        part: usize,
        work: Work,
    ) -> Result<Launch, Missing> {
        let mut draft = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let from = draft.view(Place::Input(0), self.dtype, Access::Read)?;
        let to = match work {
            Work::Totals(_) => None,
            _ => Some(draft.view(Place::Output(0), self.dtype, Access::Write)?),
        };
        let totals = match work {
            Work::Whole => None,
            Work::Totals(place) => Some(draft.bind(place, held(self.dtype), Access::Write)?),
            Work::From(place) => Some(draft.bind(place, held(self.dtype), Access::Read)?),
        };
        let parts = self.size.div_ceil(part) as u64;
        let mut tile = Tile::new(&mut draft, self.fold());
        let blocks = self.lanes * parts;
        tile.each_block(&mut draft, blocks, |draft, tile, block| {
            let count = draft.index(parts as i64);
            let (lane, number) = (draft.build.div(block, count), draft.build.rem(block, count));
            let place = draft.unflatten(lane, &self.outer.sizes);
            let source = draft.place(from.offset, &place, &self.outer.strides[0]);
            let end = to.map(|to| draft.place(to.offset, &place, &self.outer.strides[1]));
            let carry = match (work, totals) {
                (Work::From(_), Some(totals)) => draft.build.load_number(totals, block),
                _ => tile.fold.first(&mut draft.build),
            };
            let carry = variables(&mut draft.build, carry);
            let length = draft.index(part as i64);
            let start = draft.build.mul(number, length);
            let stop = draft.build.add(start, length);
            let size = draft.index(self.size as i64);
            let stop = draft.build.min_int(stop, size);
            let load = |draft: &mut Draft<'_>, at: Val| {
                let at = self.position(draft, at);
                let source = draft.place(source, &[at], &self.along[..1]);
                draft.build.load_number(from.buf, source)
            };
            let store = |draft: &mut Draft<'_>, at: Val, value: Number| {
                if let (Some(to), Some(end)) = (to, end) {
                    let at = self.position(draft, at);
                    let end = draft.place(end, &[at], &self.along[1..]);
                    draft.build.store_number(to.buf, end, value);
                }
            };
            tile.walk(draft, [start, stop], &carry, self.op.exclusive, load, store);
            if let (Work::Totals(_), Some(totals)) = (work, totals) {
                let zero = draft.build.u32(0);
                let thread = draft.build.thread();
                let leads = draft.build.eq(thread, zero);
                draft.build.open_when();
                let total = draft.build.get_number(&carry);
                draft.build.store_number(totals, block, total);
                draft.build.close_when(leads);
            }
        });
        tile.fold.failed?;
        let grid = blocks.clamp(1, u64::from(target.max_blocks)) as u32;
        Ok(draft.launch([grid, 1]))
    }

    /// The scan of the parts' totals, each without its own: a block a lane.
    fn joined(
        &self,
        segment: &Segment,
        target: &Target,
        parts: usize,
        totals: Place,
        carries: Place,
    ) -> Result<Launch, Missing> {
        let mut draft = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let totals = draft.bind(totals, held(self.dtype), Access::Read)?;
        let carries: Buf = draft.bind(carries, held(self.dtype), Access::Write)?;
        let mut tile = Tile::new(&mut draft, self.fold());
        tile.each_block(&mut draft, self.lanes, |draft, tile, lane| {
            let first = tile.fold.first(&mut draft.build);
            let carry = variables(&mut draft.build, first);
            let count = draft.index(parts as i64);
            let row = draft.build.mul(lane, count);
            let zero = draft.index(0);
            let load = |draft: &mut Draft<'_>, at: Val| {
                let at = draft.build.add(row, at);
                draft.build.load_number(totals, at)
            };
            let store = |draft: &mut Draft<'_>, at: Val, value: Number| {
                let at = draft.build.add(row, at);
                draft.build.store_number(carries, at, value);
            };
            tile.walk(draft, [zero, count], &carry, true, load, store);
        });
        tile.fold.failed?;
        let grid = self.lanes.clamp(1, u64::from(target.max_blocks)) as u32;
        Ok(draft.launch([grid, 1]))
    }
}

/// The shared memory of a block that scans.
struct Tile {
    fold: Fold,
    shared: Vec<Shared>,
}

impl Tile {
    fn new(draft: &mut Draft<'_>, fold: Fold) -> Tile {
        let ty = Ty::of(fold.dtype);
        let count = if fold.dtype == DType::C64 { 2 } else { 1 };
        // A shared bool is a word of its own.
        let ty = if ty == Ty::Bool { Ty::U32 } else { ty };
        let shared = (0..count).map(|_| draft.build.shared(ty, BLOCK)).collect();
        Tile { fold, shared }
    }

    /// Runs `each` for every number below `count`, spread over the blocks.
    fn each_block(
        &mut self,
        draft: &mut Draft<'_>,
        count: u64,
        each: impl FnOnce(&mut Draft<'_>, &mut Tile, Val),
    ) {
        let index = draft.index;
        let (block, blocks) = (draft.build.block_x(), draft.build.blocks());
        let (block, blocks) =
            (draft.build.convert(block, index), draft.build.convert(blocks, index));
        let all = draft.index(count as i64);
        draft.range(block, all, blocks, |draft, block| each(draft, self, block));
    }

    fn put(&self, b: &mut Build<'_>, at: Val, number: Number) {
        for (&shared, v) in self.shared.iter().zip(number.parts()) {
            let v = if v.ty == Ty::Bool { b.convert(v, Ty::U32) } else { v };
            b.store_shared(shared, at, v);
        }
    }

    fn take(&self, b: &mut Build<'_>, at: Val) -> Number {
        let re = b.load_shared(self.shared[0], at);
        if self.fold.dtype == DType::Bool {
            let zero = b.u32(0);
            return Number::Real(b.ne(re, zero));
        }
        match self.shared.get(1) {
            Some(&im) => Number::Complex(re, b.load_shared(im, at)),
            None => Number::Real(re),
        }
    }

    /// Folds the places from start to stop onto `carry`, tile by tile.
    fn walk(
        &mut self,
        draft: &mut Draft<'_>,
        [start, stop]: [Val; 2],
        carry: &[Var],
        exclusive: bool,
        load: impl Fn(&mut Draft<'_>, Val) -> Number,
        store: impl Fn(&mut Draft<'_>, Val, Number),
    ) {
        let thread = draft.build.thread();
        let wide = draft.build.convert(thread, draft.index);
        let step = draft.index(i64::from(BLOCK));
        draft.range(start, stop, step, |draft, tile| {
            let at = draft.build.add(tile, wide);
            let inside = draft.build.lt(at, stop);
            let first = self.fold.first(&mut draft.build);
            let own = variables(&mut draft.build, first);
            draft.build.open_when();
            let x = load(draft, at);
            set(&mut draft.build, &own, x);
            draft.build.close_when(inside);
            let b = &mut draft.build;
            let mine = b.get_number(&own);
            b.barrier();
            self.put(b, thread, mine);
            b.barrier();
            let mut distance = 1;
            while distance < BLOCK {
                // All read before any writes.
                let away = b.u32(distance);
                let below = b.lt(thread, away);
                let reaches = b.not(below);
                b.open_when();
                let other = b.sub(thread, away);
                let before = self.take(b, other);
                let known = b.get_number(&own);
                let joined = self.fold.join(b, before, known);
                set(b, &own, joined);
                b.close_when(reaches);
                b.barrier();
                let mine = b.get_number(&own);
                self.put(b, thread, mine);
                b.barrier();
                distance *= 2;
            }
            let before = b.get_number(carry);
            let result = match exclusive {
                false => {
                    let known = b.get_number(&own);
                    self.fold.join(b, before, known)
                }
                true => {
                    let one = b.u32(1);
                    let zero = b.u32(0);
                    let is_first = b.eq(thread, zero);
                    let previous = b.sub(thread, one);
                    let previous = b.select(is_first, zero, previous);
                    let previous = self.take(b, previous);
                    let joined = self.fold.join(b, before, previous);
                    b.choose(is_first, before, joined)
                }
            };
            draft.build.open_when();
            store(draft, at, result);
            draft.build.close_when(inside);
            let b = &mut draft.build;
            let last = b.u32(BLOCK - 1);
            let total = self.take(b, last);
            let total = self.fold.join(b, before, total);
            set(b, carry, total);
            b.barrier();
        });
    }
}
