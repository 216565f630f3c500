//! A body made ready to run tile by tile: loops chosen, registers placed.
//!
//! A register lives at a location: a tile in scratch memory, which is reused when its value is
//! dead, or directly in an operand's memory where that lies as the tile does.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::backend::{Body, Reg};
use cupola_core::prim::Elementwise;
use cupola_core::{DType, Error, Result};
use cupola_simd::Isa;
use smallvec::{SmallVec, smallvec};

use super::binary::{binary, compare, select};
use super::cast::{cast, held, narrow, round, widen};
use super::chain::{Chain, Other, Simple, Step};
use super::lanes::TileFn;
use super::space::{Group, Space, Tiling, groups};
use super::unary::unary;

/// The number of a location.
pub(crate) type Location = u16;

/// Scalars, each with its location.
pub(crate) type Placed = SmallVec<[(usize, Location); 8]>;

/// A body for tiles of one space and tiling.
pub(crate) struct Program {
    pub isa: Isa,
    pub loops: Vec<TileLoop>,
    pub loads: Vec<Load>,
    pub fills: Vec<Fill>,
    pub stores: Vec<Store>,
    /// Where the locations that are tiles lie in scratch memory.
    pub tiles: Vec<(Location, usize)>,
    /// How many locations there are.
    pub locations: usize,
    /// The scratch memory that the program needs, with the table of locations at its start.
    pub bytes: usize,
    /// A tile for elements of half types on their way from or to memory.
    pub staging: usize,
    /// How many elements a whole tile has.
    pub tile: usize,
    /// What to ask for while a tile is worked on: where operands are larger than a cache, and there
    /// is work to hide it behind.
    pub ahead: Option<Ahead>,
    /// Whether to write outputs past the caches: where they are so large that nobody finds them
    /// there.
    pub stream: bool,
    /// Where the outputs are that stay in their locations.
    pub results: SmallVec<[Location; 2]>,
}

/// Memory that is needed after a tile.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    /// How many elements further the tile is whose memory it is; that of the next for none.
    pub by: Option<usize>,
    /// Of how many inputs.
    pub inputs: usize,
    /// Whether of outputs, too.
    pub outputs: bool,
}

/// One loop over a tile.
pub(crate) struct TileLoop {
    pub run: Loop,
    pub to: Location,
}

pub(crate) enum Loop {
    One(TileFn, [Location; 3]),
    Chain(Chain<Location>),
}

/// How an input reaches its location for each tile.
pub(crate) struct Load {
    pub input: usize,
    pub location: Location,
    pub bytes: usize,
    pub kind: LoadKind,
}

pub(crate) enum LoadKind {
    /// The location is the operand's memory.
    Direct,
    /// The location is an element of the operand, the same for the whole tile.
    One,
    /// Elements are gathered and, for a half type, widened.
    Gather { groups: SmallVec<[Group; 4]>, widen: Option<TileFn>, dense: bool },
}

/// A location that holds the same elements for every tile.
pub(crate) enum Fill {
    Input(Load),
    /// Once, where all loops that read it need no more.
    Scalar {
        scalar: usize,
        location: Location,
        dtype: DType,
        is_one: bool,
    },
}

/// How an output leaves.
pub(crate) struct Store {
    pub output: usize,
    pub bytes: usize,
    pub kind: StoreKind,
}

pub(crate) enum StoreKind {
    /// Nothing to do: a loop writes to `location`, which is the output's memory, or `tile` where an
    /// input of `conflicts`, still needed by then, lies in that memory.
    Direct { location: Location, tile: usize, conflicts: SmallVec<[usize; 4]> },
    /// From a location; narrowed first for a half type.
    Scatter {
        location: Location,
        groups: SmallVec<[Group; 4]>,
        narrow: Option<TileFn>,
        dense: bool,
    },
    /// From an input's memory.
    Through { input: usize, groups: SmallVec<[Group; 4]> },
}

/// What is to become of a body's outputs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sink {
    /// They are stored to operands, whose strides follow those of the inputs in the space.
    Operands,
    /// So many outputs, the last, stay where their registers are, to be folded; the others are
    /// stored to operands that are read again soon.
    Registers(usize),
}

/// Elements from which on operands are larger than a cache, and asked for ahead.
pub(crate) const LARGE: usize = 1 << 18;

/// How many elements a tile should have, so that what is alive in it fits in the first cache, and of the next tile what
/// `is_ahead` asks for.
pub(crate) fn tile_size(body: &Body, is_ahead: bool) -> usize {
    let budget = if is_ahead { 12 << 10 } else { 24 << 10 };
    if body.code.is_empty() {
        let copies = body.inputs.iter().chain(&body.scalars).all(|d| d.accumulator() == *d);
        return if copies { 16 << 10 } else { 4 << 10 };
    }
    let first = body.registers() - body.code.len();
    let mut last = vec![0; body.registers()];
    for (i, instr) in body.code.iter().enumerate() {
        instr.args.iter().for_each(|&r| last[usize::from(r)] = i);
    }
    body.outputs.iter().for_each(|&r| last[usize::from(r)] = body.code.len());
    // Most loops need one element of a scalar float.
    let scalars = body.inputs.len()..body.inputs.len() + body.scalars.len();
    let size = |r: usize| {
        let dtype = held(body.dtype_of(r as Reg));
        if dtype == DType::F32 && scalars.contains(&r) { 0 } else { dtype.size() }
    };
    let widest = (0..body.code.len())
        .map(|i| {
            let alive = (0..=first + i).filter(|&r| last[r] >= i);
            alive.map(size).sum::<usize>()
        })
        .max();
    (budget / widest.unwrap_or(1).max(1)).clamp(256, 2048) / 64 * 64
}

impl Program {
    /// A program for the boxes of `tiling`. The space's operands are the body's inputs, then, if
    /// the sink is operands, its outputs.
    pub fn new(body: &Body, space: &Space, tiling: &Tiling, sink: Sink, isa: Isa) -> Result<Self> {
        let mut build = Build::new(body, space, tiling, sink, isa)?;
        build.place_inputs();
        build.place_scalars();
        for index in 0..build.loops.len() {
            build.place_loop(index);
        }
        build.place_outputs();
        Ok(build.finish())
    }

    /// The chain that it is, where that reads nothing but its input, which it overwrites, and scalars; and each scalar
    /// with its location.
    pub fn as_chain(&self) -> Option<(&Chain<Location>, Placed)> {
        let [TileLoop { run: Loop::Chain(chain), .. }] = &self.loops[..] else { return None };
        let [Load { input: 0, location, kind: LoadKind::Direct, .. }] = self.loads[..] else {
            return None;
        };
        let [Store { output: 0, kind: StoreKind::Direct { .. }, .. }] = &self.stores[..] else {
            return None;
        };
        let is_own = |other: Other<Location>| !matches!(other, Other::Each(l) if l != location);
        let reads_own = chain.steps.iter().all(|step| match step {
            Step::Apply(_, other, _) => is_own(*other),
            Step::Save | Step::Call(_) => true,
        });
        let scalar = |fill: &Fill| match fill {
            Fill::Scalar { scalar, location, dtype: DType::F32, is_one: true } => {
                Some((*scalar, *location))
            }
            Fill::Scalar { .. } | Fill::Input(_) => None,
        };
        let scalars = self.fills.iter().map(scalar).collect::<Option<_>>()?;
        (chain.from == Other::Each(location) && reads_own).then_some((chain, scalars))
    }

    /// About how much memory it holds besides its own.
    pub fn memory(&self) -> usize {
        size_of_val(&self.loops[..])
            + size_of_val(&self.loads[..])
            + size_of_val(&self.fills[..])
            + size_of_val(&self.stores[..])
            + size_of_val(&self.tiles[..])
    }
}

/// A loop before its operands have locations: registers stand for themselves.
struct RegLoop {
    run: RegRun,
    /// The function, where it may be part of a chain.
    op: Option<Simple>,
    to: usize,
    from: SmallVec<[usize; 3]>,
}

enum RegRun {
    One(TileFn),
    /// Operands count in `from`.
    Chain(Chain<usize>),
}

struct Build<'a> {
    body: &'a Body,
    space: &'a Space,
    tiling: &'a Tiling,
    sink: Sink,
    isa: Isa,
    loops: Vec<RegLoop>,
    /// The register whose value each register has: another one where a cast changes nothing, or
    /// where what was computed in a wider type is rounded.
    root: Vec<usize>,
    /// The dtypes of the registers: those of the body, and then those that rounding adds.
    dtypes: Vec<DType>,
    /// The last loop that reads a register; beyond the loops if it is stored, `None` if dead.
    last: Vec<Option<usize>>,
    location: Vec<Option<Location>>,
    /// Free tiles by element size: their locations.
    free: [Vec<Location>; 4],
    out: Program,
    bytes: usize,
}

/// Which of the lists of free tiles holds elements of `bytes` bytes.
fn class(bytes: usize) -> usize {
    bytes.trailing_zeros() as usize
}

impl<'a> Build<'a> {
    fn new(
        body: &'a Body,
        space: &'a Space,
        tiling: &'a Tiling,
        sink: Sink,
        isa: Isa,
    ) -> Result<Self> {
        let registers = body.registers();
        let mut root: Vec<usize> = (0..registers).collect();
        let mut dtypes: Vec<DType> = (0..registers).map(|r| body.dtype_of(r as Reg)).collect();
        let mut loops = Vec::with_capacity(body.code.len());
        for (i, instr) in body.code.iter().enumerate() {
            let to = registers - body.code.len() + i;
            let from: SmallVec<[usize; 3]> =
                instr.args.iter().map(|&r| root[usize::from(r)]).collect();
            let dtype = |i: usize| body.dtype_of(instr.args[i]);
            let run = match instr.op {
                Elementwise::Unary(op) => unary(op, dtype(0), isa),
                Elementwise::Binary(op) => binary(op, dtype(0), isa),
                Elementwise::Compare(op) => compare(op, dtype(0), isa),
                Elementwise::Select(_) => Some(select(held(dtype(1)).size(), isa)),
                Elementwise::Cast(op) => match cast(dtype(0), op.to, isa) {
                    None => {
                        root[to] = from[0];
                        continue;
                    }
                    some => some,
                },
            };
            let run = run.ok_or_else(|| Error::DType {
                op: "map",
                detail: format!("the CPU has no {:?} of {}", instr.op, dtype(0)),
            })?;
            let op = Simple::of(instr.op).filter(|_| held(dtype(0)) == DType::F32);
            loops.push(RegLoop { run: RegRun::One(run), op, to, from });
            // A store rounds, too.
            if body.rounds(instr) && (sink != Sink::Operands || body.reads(to as Reg)) {
                root[to] = dtypes.len();
                dtypes.push(instr.dtype);
                loops.push(RegLoop {
                    run: RegRun::One(round(instr.dtype, isa)),
                    op: None,
                    to: root[to],
                    from: smallvec![to],
                });
            }
        }
        let registers = dtypes.len();
        let mut build = Build {
            body,
            space,
            tiling,
            sink,
            isa,
            root,
            dtypes,
            last: vec![None; registers],
            location: vec![None; registers],
            free: Default::default(),
            bytes: 0,
            out: Program {
                isa,
                loops: Vec::new(),
                loads: Vec::new(),
                fills: Vec::new(),
                stores: Vec::new(),
                tiles: Vec::new(),
                locations: 0,
                bytes: 0,
                staging: 0,
                tile: tiling.size(),
                ahead: None,
                stream: sink == Sink::Operands && space.size() >= 1 << 23,
                results: SmallVec::new(),
            },
            loops,
        };
        build.chain_loops();
        build.find_last_uses();
        Ok(build)
    }

    /// Makes one loop of those whose results only the next one reads.
    fn chain_loops(&mut self) {
        let mut readers: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); self.dtypes.len()];
        for (i, each) in self.loops.iter().enumerate() {
            each.from.iter().for_each(|&r| readers[r].push(i));
        }
        // What is stored is read by nobody else.
        let stored: Vec<usize> =
            self.body.outputs.iter().map(|&r| self.root[usize::from(r)]).collect();
        stored.iter().for_each(|&r| readers[r].push(usize::MAX));
        let mut member_of = vec![None; self.loops.len()];
        for i in 0..self.loops.len() {
            if member_of[i].is_some() || self.loops[i].op.is_none() {
                continue;
            }
            let members = self.chain_from(i, &readers, &member_of);
            if let Some(&last) = members.last().filter(|_| members.len() > 1) {
                members.iter().for_each(|&m| member_of[m] = Some(last));
                let chain = self.chain(&members, &readers);
                self.loops[last] = chain;
            }
        }
        let mut index = 0;
        self.loops.retain(|_| {
            index += 1;
            member_of[index - 1].is_none_or(|last| last == index - 1)
        });
    }

    /// The loops of the chain that begins with loop `i`.
    fn chain_from(
        &self,
        i: usize,
        readers: &[SmallVec<[usize; 2]>],
        member_of: &[Option<usize>],
    ) -> SmallVec<[usize; 8]> {
        let mut members: SmallVec<[usize; 8]> = smallvec![i];
        // What was saved, who else reads it, and how long the chain was then.
        let mut saved: Option<(usize, usize, usize)> = None;
        let mut at = i;
        loop {
            let has = self.loops[at].to;
            let next = match readers[has][..] {
                [next] => next,
                [next, later] if saved.is_none() => {
                    saved = Some((has, later, members.len()));
                    next
                }
                _ => break,
            };
            let joins = |l: &&RegLoop| l.op.is_some() && member_of[next].is_none();
            let Some(joining) = self.loops.get(next).filter(joins) else { break };
            // What is saved is an operand of nobody else. A function of one operand reads what the chain has.
            let is_binary = matches!(joining.op, Some(Simple::Binary(_)));
            let others = joining.from.iter().filter(|&&r| r != has);
            let reads = |r: &usize| saved.is_some_and(|(saved, ..)| saved == *r);
            let is_self = is_binary && joining.from.iter().all(|&r| r == has);
            if others.clone().any(reads) || is_self {
                match saved {
                    Some((register, later, _))
                        if later == next && (is_self == (register == has)) =>
                    {
                        saved = None;
                    }
                    _ => break,
                }
            }
            members.push(next);
            at = next;
        }
        if let Some((.., length)) = saved {
            members.truncate(length);
        }
        members
    }

    /// The loop of a chain.
    fn chain(&self, members: &[usize], readers: &[SmallVec<[usize; 2]>]) -> RegLoop {
        let mut from: SmallVec<[usize; 3]> = SmallVec::new();
        let mut operand = |r: usize| {
            from.push(r);
            match self.is_one(r) {
                true => Other::One(from.len() - 1),
                false => Other::Each(from.len() - 1),
            }
        };
        let mut has = self.loops[members[0]].from[0];
        let (start, mut steps) = (operand(has), Vec::new());
        // What a chain begins with is saved.
        let mut saved = Some(has);
        for (i, &m) in members.iter().enumerate() {
            let RegLoop { op, from, to, .. } = &self.loops[m];
            if i > 0 && readers[has].len() == 2 {
                saved = Some(has);
                steps.push(Step::Save);
            }
            match *op {
                Some(Simple::Unary(op)) => steps.push(Step::Call(op)),
                Some(Simple::Binary(op)) => {
                    let is_left = has == from[1] && has != from[0];
                    let other = if is_left { from[0] } else { from[1] };
                    let other = if saved == Some(other) { Other::Saved } else { operand(other) };
                    steps.push(Step::Apply(op, other, is_left));
                }
                None => {}
            }
            has = *to;
        }
        RegLoop { run: RegRun::Chain(Chain::new(start, steps)), op: None, to: has, from }
    }

    /// Whether the register has the same float for all elements of a tile.
    fn is_one(&self, register: usize) -> bool {
        let inputs = self.body.inputs.len();
        if register >= inputs {
            return register - inputs < self.body.scalars.len();
        }
        let axes = self.tiling.extents.iter().zip(&self.space.strides[register]);
        let mut inside = axes.filter(|&(&extent, _)| extent > 1);
        self.body.inputs[register] == DType::F32 && inside.all(|(_, &stride)| stride == 0)
    }

    /// Whether all loops that read the register need but one element.
    fn is_read_as_one(&self, register: usize) -> bool {
        let mut all = self.loops.iter().filter(|l| l.from.contains(&register));
        self.is_one(register)
            && all.all(|l| matches!(l.run, RegRun::Chain(_)))
            && !self.body.outputs.iter().any(|&o| self.root[usize::from(o)] == register)
    }

    fn find_last_uses(&mut self) {
        let end = self.loops.len();
        for (o, &reg) in self.body.outputs.iter().enumerate() {
            if self.through(o).is_none() {
                self.last[self.root[usize::from(reg)]] = Some(end);
            }
        }
        // Backwards, so that what only dead loops read is dead.
        let mut kept = Vec::with_capacity(end);
        for (i, each) in self.loops.iter().enumerate().rev() {
            let alive = self.last[each.to].is_some();
            kept.push(alive);
            for &r in each.from.iter().filter(|_| alive) {
                self.last[r] = self.last[r].max(Some(i));
            }
        }
        kept.reverse();
        let mut renumber = vec![0];
        for &k in &kept {
            renumber.push(renumber[renumber.len() - 1] + usize::from(k));
        }
        self.last.iter_mut().flatten().for_each(|l| *l = renumber[*l]);
        let mut keep = kept.iter();
        self.loops.retain(|_| keep.next() == Some(&true));
    }

    /// The input that output `o` copies unchanged. With several outputs the order of reads and
    /// writes would matter where one takes the memory of an input, so then there is none.
    fn through(&self, o: usize) -> Option<usize> {
        let reg = self.body.outputs[o];
        let root = self.root[usize::from(reg)];
        let copies = self.stored() == 1
            && self.body.outputs.len() == 1
            && root < self.body.inputs.len()
            && self.body.inputs[root] == self.body.dtype_of(reg);
        copies.then_some(root)
    }

    /// How many outputs are stored.
    fn stored(&self) -> usize {
        match self.sink {
            Sink::Operands => self.body.outputs.len(),
            Sink::Registers(kept) => self.body.outputs.len() - kept,
        }
    }

    fn new_location(&mut self) -> Location {
        self.out.locations += 1;
        (self.out.locations - 1) as Location
    }

    fn reserve(&mut self, bytes: usize) -> usize {
        let at = self.bytes;
        self.bytes += (self.out.tile * bytes).next_multiple_of(64);
        at
    }

    /// A tile for elements of `bytes` bytes.
    fn tile(&mut self, bytes: usize) -> Location {
        if let Some(location) = self.free[class(bytes)].pop() {
            return location;
        }
        let at = self.reserve(bytes);
        let location = self.new_location();
        self.out.tiles.push((location, at));
        location
    }

    fn held_size(&self, reg: usize) -> usize {
        held(self.dtypes[reg]).size()
    }

    fn place_inputs(&mut self) {
        let end = self.loops.len();
        for input in 0..self.body.inputs.len() {
            let Some(last) = self.last[input] else { continue };
            let dtype = self.body.inputs[input];
            if self.is_read_as_one(input) {
                let location = self.new_location();
                self.location[input] = Some(location);
                self.out.loads.push(Load {
                    input,
                    location,
                    bytes: dtype.size(),
                    kind: LoadKind::One,
                });
                continue;
            }
            let strides = &self.space.strides[input];
            let groups = groups(self.space, self.tiling, strides, strides);
            let dense = is_dense(&groups);
            let half = held(dtype) != dtype;
            let keep = last == end && self.sink == Sink::Operands && self.body.outputs.len() > 1;
            if dense && !half && !keep && !self.is_invariant(input) {
                let location = self.new_location();
                self.location[input] = Some(location);
                let kind = LoadKind::Direct;
                self.out.loads.push(Load { input, location, bytes: dtype.size(), kind });
                continue;
            }
            let location = self.tile(held(dtype).size());
            self.location[input] = Some(location);
            let widen = half.then(|| widen(dtype, self.isa));
            let kind = LoadKind::Gather { groups, widen, dense };
            let load = Load { input, location, bytes: dtype.size(), kind };
            if self.is_invariant(input) {
                self.out.fills.push(Fill::Input(load));
            } else {
                self.out.loads.push(load);
            }
        }
    }

    /// Whether every box holds the same elements of the input, in the same order.
    fn is_invariant(&self, input: usize) -> bool {
        let strides = &self.space.strides[input];
        (0..self.space.dims.len()).all(|axis| {
            let whole = self.tiling.extents[axis] == self.space.dims[axis];
            strides[axis] == 0 || whole && !self.tiling.cuts.contains(&axis)
        })
    }

    fn place_scalars(&mut self) {
        let first = self.body.inputs.len();
        for scalar in 0..self.body.scalars.len() {
            if self.last[first + scalar].is_some() {
                let dtype = self.body.scalars[scalar];
                let location = self.tile(held(dtype).size());
                self.location[first + scalar] = Some(location);
                let is_one = self.is_read_as_one(first + scalar);
                self.out.fills.push(Fill::Scalar { scalar, location, dtype, is_one });
            }
        }
    }

    fn place_loop(&mut self, index: usize) {
        let (to, from) = (self.loops[index].to, self.loops[index].from.clone());
        let location = match self.direct_output(to) {
            Some(output) => {
                let location = self.new_location();
                let tile = self.reserve(self.held_size(to));
                let kind = StoreKind::Direct { location, tile, conflicts: self.conflicts(index) };
                self.out.stores.push(Store { output, bytes: self.held_size(to), kind });
                location
            }
            None => self.tile(self.held_size(to)),
        };
        self.location[to] = Some(location);
        let at = |r: usize| self.location[from[r]].unwrap_or(0);
        let run = match &self.loops[index].run {
            RegRun::One(run) => {
                let mut locations = [0; 3];
                locations.iter_mut().take(from.len()).enumerate().for_each(|(r, l)| *l = at(r));
                Loop::One(*run, locations)
            }
            RegRun::Chain(chain) => Loop::Chain(chain.map(at)),
        };
        self.out.loops.push(TileLoop { run, to: location });
        for (i, &r) in from.iter().enumerate() {
            let varies = r >= self.body.inputs.len() + self.body.scalars.len()
                || r < self.body.inputs.len() && self.is_gathered(r);
            let first_mention = !from[..i].contains(&r);
            if self.last[r] == Some(index) && varies && first_mention {
                let size = self.held_size(r);
                self.free[class(size)].extend(self.location[r]);
            }
        }
    }

    /// Whether the input has a tile that is filled anew for each box.
    fn is_gathered(&self, input: usize) -> bool {
        let mut loads = self.out.loads.iter();
        loads.any(|l| l.input == input && matches!(l.kind, LoadKind::Gather { .. }))
    }

    /// The output that register `reg` can be computed into.
    fn direct_output(&self, reg: usize) -> Option<usize> {
        let stored = &self.body.outputs[..self.stored()];
        let output = stored.iter().position(|&o| self.root[usize::from(o)] == reg)?;
        let dtype = self.body.dtype_of(self.body.outputs[output]);
        let strides = &self.space.strides[self.body.inputs.len() + output];
        let dense = is_dense(&groups(self.space, self.tiling, strides, strides));
        (dense && dtype.size() == self.held_size(reg)).then_some(output)
    }

    /// The inputs read in place by later loops than `index`, or by this one where it may not write over them.
    fn conflicts(&self, index: usize) -> SmallVec<[usize; 4]> {
        let first = match self.loops[index].run {
            RegRun::One(_) => index,
            RegRun::Chain(_) => index + 1,
        };
        let direct = self.out.loads.iter();
        let direct = direct.filter(|l| matches!(l.kind, LoadKind::Direct | LoadKind::One));
        direct.map(|l| l.input).filter(|&i| self.last[i] >= Some(first)).collect()
    }

    fn place_outputs(&mut self) {
        for output in 0..self.body.outputs.len() {
            if self.out.stores.iter().any(|s| s.output == output) {
                continue;
            }
            let reg = self.body.outputs[output];
            let dtype = self.body.dtype_of(reg);
            let root = self.root[usize::from(reg)];
            if output >= self.stored() {
                self.out.results.push(self.location[root].unwrap_or(0));
                continue;
            }
            let strides = &self.space.strides[self.body.inputs.len() + output];
            let kind = match self.through(output) {
                Some(input) => {
                    let from = &self.space.strides[input];
                    StoreKind::Through {
                        input,
                        groups: groups(self.space, self.tiling, from, strides),
                    }
                }
                None => {
                    let groups = groups(self.space, self.tiling, strides, strides);
                    let dense = is_dense(&groups);
                    let half = held(dtype) != dtype;
                    let narrow = half.then(|| narrow(dtype, self.isa));
                    let location = self.location[root].unwrap_or(0);
                    StoreKind::Scatter { location, groups, narrow, dense }
                }
            };
            self.out.stores.push(Store { output, bytes: dtype.size(), kind });
        }
    }

    fn finish(mut self) -> Program {
        // The widest half type that there is.
        let halves = self.dtypes.iter().filter(|&&dtype| held(dtype) != dtype);
        let widest = halves.map(|dtype| dtype.size()).max().unwrap_or(2);
        self.out.staging = self.reserve(widest);
        // The table of locations comes first; everything else moves behind it.
        let table = (self.out.locations * size_of::<*const u8>()).next_multiple_of(64);
        self.out.tiles.iter_mut().for_each(|(_, at)| *at += table);
        self.out.staging += table;
        for store in &mut self.out.stores {
            if let StoreKind::Direct { tile, .. } = &mut store.kind {
                *tile += table;
            }
        }
        self.out.bytes = self.bytes + table;
        let large = self.space.size() >= LARGE;
        let works = self.body.code.len() >= 4 || self.out.stream;
        let all = Ahead { by: None, inputs: self.body.inputs.len(), outputs: true };
        self.out.ahead = (large && works).then_some(all);
        self.out
    }
}

/// Whether the groups run over memory without gaps.
fn is_dense(groups: &[Group]) -> bool {
    groups.is_empty() || groups.len() == 1 && groups[0].from == 1
}
