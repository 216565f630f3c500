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

use super::view::{Axes, place, unflatten};
use super::{BufferRef, Draft, Launch, Missing, Program};
use crate::ir::{Access, Number, NumberVar, SharedNumber, Target, Ty, Val};

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
        program.launches.push(scan.by_blocks(segment, target, size, Pass::Whole)?);
        return Ok(());
    }
    // Totals are kept as registers hold them: halves in single precision.
    let held = held(scan.dtype);
    let bytes = lanes as usize * parts * held.size();
    let first = program.scratch.len();
    program.scratch.extend([bytes, bytes]);
    let (totals, carries) = (BufferRef::Scratch(first), BufferRef::Scratch(first + 1));
    program.launches.push(scan.by_blocks(segment, target, PART, Pass::Totals(totals))?);
    program.launches.push(scan.joined(segment, target, parts, totals, carries)?);
    program.launches.push(scan.by_blocks(segment, target, PART, Pass::From(carries))?);
    Ok(())
}

/// The dtype that totals are kept in.
fn held(dtype: DType) -> DType {
    if dtype.is_float() && dtype != DType::F64 { DType::F32 } else { dtype }
}

/// What blocks do with their part of a lane in one pass over it.
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
    /// The other axes, with the strides of input and output.
    outer: Axes,
    /// The strides of input and output along the axis.
    along: [isize; 2],
    size: usize,
    lanes: u64,
}

/// How elements are joined.
#[derive(Clone, Copy)]
struct Fold {
    kind: ScanKind,
    dtype: DType,
}

impl Fold {
    fn join<'k>(self, x: Number<'k>, y: Number<'k>) -> Number<'k> {
        x.binary(self.kind.join(), y, self.dtype).wrapped(self.dtype)
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

    /// Where the element at a place of the walk is in its lane, which ends with `last`.
    fn position<'k>(&self, at: Val<'k>, last: Val<'k>) -> Val<'k> {
        if self.op.reverse { last - at } else { at }
    }

    /// A thread a lane.
    fn by_threads(&self, segment: &Segment, target: &Target) -> Result<Launch, Missing> {
        let k = Draft::new(self.op.kind.name(), BLOCK, segment, target)?;
        let (from, to) = (k.input(segment, 0), k.output(segment, 0));
        let fold = self.fold();
        let (outer, along) = (k.walk(&self.outer), k.strides(&self.along));
        let [size, last] = [self.size, self.size - 1].map(|n| k.extent(n));
        k.each(self.lanes, |lane| {
            let index = unflatten(lane, &outer.sizes);
            let source = from.at(&index, &outer.strides[0]);
            let end = to.at(&index, &outer.strides[1]);
            let total = k.number_var(fold.first(&k));
            k.count(size, |at| {
                let at = self.position(at, last);
                let x = from.buf.load_number(place(source, &[at], &along[..1]));
                let before = total.get();
                let joined = fold.join(before, x);
                let result = if self.op.exclusive { before } else { joined };
                to.buf.store_number(place(end, &[at], &along[1..]), result);
                total.set(joined);
            });
        });
        k.launch_over(self.lanes)
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
        let from = k.input(segment, 0);
        let to = match pass {
            Pass::Totals(_) => None,
            _ => Some(k.output(segment, 0)),
        };
        let totals = match pass {
            Pass::Whole => None,
            Pass::Totals(buffer) => Some(k.bind(buffer, held(self.dtype), Access::Write)),
            Pass::From(buffer) => Some(k.bind(buffer, held(self.dtype), Access::Read)),
        };
        let parts = self.size.div_ceil(part) as u64;
        let tile = Tile::new(&k, self.fold());
        let blocks = self.lanes * parts;
        let (outer, along) = (k.walk(&self.outer), k.strides(&self.along));
        let [size, last, part] = [self.size, self.size - 1, part].map(|n| k.extent(n));
        let parts = k.divisor(parts as usize, k.index);
        k.blocks(blocks, |block| {
            let (lane, number) = block.div_rem(&parts);
            let index = unflatten(lane, &outer.sizes);
            let source = from.at(&index, &outer.strides[0]);
            let end = to.map(|to| to.at(&index, &outer.strides[1]));
            let carry = k.number_var(match (pass, totals) {
                (Pass::From(_), Some(totals)) => totals.load_number(block),
                _ => tile.fold.first(&k),
            });
            let start = number * part;
            let stop = (start + part).min(size);
            let load = |at| {
                let at = self.position(at, last);
                from.buf.load_number(place(source, &[at], &along[..1]))
            };
            let store = |at, value| {
                if let (Some(to), Some(end)) = (to, end) {
                    let at = self.position(at, last);
                    to.buf.store_number(place(end, &[at], &along[1..]), value);
                }
            };
            tile.walk([start, stop], carry, self.op.exclusive, load, store);
            if let (Pass::Totals(_), Some(totals)) = (pass, totals) {
                k.when(k.thread().eq(0), || totals.store_number(block, carry.get()));
            }
        });
        k.launch_blocks(blocks)
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
        let totals = k.bind(totals, held(self.dtype), Access::Read);
        let carries = k.bind(carries, held(self.dtype), Access::Write);
        let tile = Tile::new(&k, self.fold());
        let parts = k.extent(parts);
        k.blocks(self.lanes, |lane| {
            let carry = k.number_var(tile.fold.first(&k));
            let row = lane * parts;
            let ends = [k.index(0), parts];
            let load = |at| totals.load_number(row + at);
            let store = |at, value| carries.store_number(row + at, value);
            tile.walk(ends, carry, true, load, store);
        });
        k.launch_blocks(self.lanes)
    }
}

/// The shared memory of a block that scans.
struct Tile<'k> {
    k: &'k Draft,
    fold: Fold,
    shared: SharedNumber,
}

impl<'k> Tile<'k> {
    fn new(k: &'k Draft, fold: Fold) -> Tile<'k> {
        // Bools are shared as numbers.
        let dtype = if fold.dtype == DType::Bool { DType::U32 } else { fold.dtype };
        Tile { k, fold, shared: k.shared_number(dtype, BLOCK) }
    }

    fn put(&self, at: Val<'k>, number: Number<'k>) {
        let is_bool = self.fold.dtype == DType::Bool;
        self.shared.store(at, number.map(|v| if is_bool { v.convert(Ty::U32) } else { v }));
    }

    fn take(&self, at: Val<'k>) -> Number<'k> {
        let is_bool = self.fold.dtype == DType::Bool;
        self.shared.load(at).map(|v| if is_bool { v.ne(0) } else { v })
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
        let (k, fold) = (self.k, self.fold);
        let thread = k.thread();
        let wide = k.as_index(thread);
        k.range(start, stop, BLOCK, |tile| {
            let at = tile + wide;
            let inside = at.lt(stop);
            let own = k.number_var(fold.first(k));
            k.when(inside, || own.set(load(at)));
            let mine = own.get();
            k.barrier();
            self.put(thread, mine);
            k.barrier();
            let mut distance = 1;
            while distance < BLOCK {
                // All read before any writes.
                k.when(!thread.lt(distance), || {
                    let before = self.take(thread - distance);
                    own.set(fold.join(before, own.get()));
                });
                k.barrier();
                self.put(thread, own.get());
                k.barrier();
                distance *= 2;
            }
            let before = carry.get();
            let result = match exclusive {
                false => fold.join(before, own.get()),
                true => {
                    let is_first = thread.eq(0);
                    let previous = self.take(is_first.select(0, thread - 1));
                    is_first.choose(before, fold.join(before, previous))
                }
            };
            k.when(inside, || store(at, result));
            let total = self.take(k.u32(BLOCK - 1));
            carry.set(fold.join(before, total));
            k.barrier();
        });
    }
}
