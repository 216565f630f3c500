//! Running a program on one tile after the other.

use cupola_core::DType;
use cupola_simd::prefetch;
use half::{bf16, f16};

use super::RawArgs;
use super::chain;
use super::copy::{Axis, between, copy, end_of_streams, into_tile, move_bytes, out_of_tile};
use super::program::{Ahead, Fill, Load, LoadKind, Loop, Program, Store, StoreKind};

/// A program with the memory to run it on.
pub(crate) struct Runner<'a> {
    program: &'a Program,
    args: &'a RawArgs<'a>,
    scratch: *mut u8,
    /// A bit for each output that cannot be computed in place, because an input lies there.
    indirect: u64,
}

impl<'a> Runner<'a> {
    /// Prepares for tiles of up to `limit` elements, whose cut extents are at most `cuts`.
    ///
    /// # Safety
    /// `args` are what the program was made for, `scratch` has the bytes that it needs, and both
    /// stay valid while the runner is used.
    pub unsafe fn new(
        program: &'a Program,
        args: &'a RawArgs<'a>,
        scratch: *mut u8,
        cuts: [usize; 2],
        limit: usize,
    ) -> Self {
        // SAFETY: the same contract.
        unsafe {
            let runner = Runner::filled(program, args, scratch);
            runner.fill(cuts, limit);
            runner
        }
    }

    /// Prepares with what was filled before, for tiles no larger than then.
    ///
    /// # Safety
    /// As [`Runner::new`]; the scratch memory was filled for these arguments, or [`Runner::fill`] comes next.
    pub unsafe fn filled(program: &'a Program, args: &'a RawArgs<'a>, scratch: *mut u8) -> Self {
        let mut indirect = 0;
        for store in &program.stores {
            if let StoreKind::Direct { conflicts, .. } = &store.kind {
                let out = args.outputs[store.output].cast_const();
                let taken = conflicts.iter().any(|&i| args.inputs[i] == out);
                let stream = program.stream && !args.inputs.contains(&out);
                indirect |= u64::from(taken || stream) << (store.output % 64);
            }
        }
        let runner = Runner { program, args, scratch, indirect };
        for &(location, at) in &program.tiles {
            // SAFETY: the caller vouches for the scratch memory.
            unsafe { runner.set(location, scratch.add(at)) };
        }
        runner
    }

    /// Fills the locations whose elements are the same for every tile.
    ///
    /// # Safety
    /// As [`Runner::new`].
    pub unsafe fn fill(&self, cuts: [usize; 2], limit: usize) {
        let limit = limit.min(self.program.tile);
        for fill in &self.program.fills {
            // SAFETY: the caller vouches for the scratch memory and the arguments.
            unsafe {
                match fill {
                    Fill::Input(load) => self.load(load, 0, cuts, limit),
                    Fill::Scalar { scalar, location, dtype, is_one } => {
                        let to = self.get(*location).cast_mut();
                        let count = if *is_one { 1 } else { limit };
                        splat(*dtype, self.args.scalars[*scalar], to, count);
                    }
                }
            }
        }
    }

    /// Fills the locations of inputs from `first` on that are the same for every tile, once more.
    ///
    /// # Safety
    /// As [`Runner::new`].
    pub unsafe fn refill(&self, first: usize, cuts: [usize; 2], limit: usize) {
        for fill in &self.program.fills {
            if let Fill::Input(load) = fill
                && load.input >= first
            {
                // SAFETY: the caller vouches for the arguments.
                unsafe { self.load(load, 0, cuts, limit.min(self.program.tile)) };
            }
        }
    }

    /// # Safety
    /// `location` is one of the program's.
    unsafe fn set(&self, location: u16, at: *const u8) {
        // SAFETY: the table of locations starts the scratch memory.
        unsafe { *self.scratch.cast::<*const u8>().add(usize::from(location)) = at }
    }

    /// The address of a location.
    ///
    /// # Safety
    /// `location` is one of the program's, and was set.
    pub unsafe fn get(&self, location: u16) -> *const u8 {
        // SAFETY: as above.
        unsafe { *self.scratch.cast::<*const u8>().add(usize::from(location)) }
    }

    /// Runs a tile of `n` elements, which starts at these offsets of the operands.
    ///
    /// # Safety
    /// The tile lies within the space that the program was made for.
    pub unsafe fn tile(&self, offsets: &[isize], cuts: [usize; 2], n: usize) {
        let program = self.program;
        // SAFETY: locations hold a tile's elements, or point to as many of an operand.
        unsafe {
            for load in &program.loads {
                self.load(load, offsets[load.input], cuts, n);
            }
            for store in &program.stores {
                if let StoreKind::Direct { location, tile, .. } = &store.kind {
                    let at = match self.is_indirect(store.output) {
                        true => self.scratch.add(*tile),
                        false => self.output(store, offsets),
                    };
                    self.set(*location, at);
                }
            }
            let share = n.div_ceil(program.loops.len().max(1));
            for (i, each) in program.loops.iter().enumerate() {
                if let Some(ahead) = program.ahead {
                    let first = ahead.by.unwrap_or(n);
                    self.prefetch(ahead, first + i * share..first + (i + 1) * share);
                }
                let to = self.get(each.to).cast_mut();
                match &each.run {
                    Loop::One(run, from) => {
                        let [a, b, c] = from.map(|p| self.get(p));
                        run(to, a, b, c, n);
                    }
                    Loop::Chain(chain) => {
                        chain::run(program.isa, chain, self.scratch.cast(), to.cast(), n);
                    }
                }
            }
            for store in &program.stores {
                self.store(store, offsets, cuts, n);
            }
        }
    }

    /// Makes what was stored visible to the threads that this one meets from now on.
    pub fn finish(&self) {
        if self.program.stream {
            end_of_streams();
        }
    }

    /// Asks for elements of the operands that lie in place, counted from the tile's start.
    ///
    /// # Safety
    /// The locations of this tile are set.
    unsafe fn prefetch(&self, ahead: Ahead, elements: std::ops::Range<usize>) {
        let lines = |at: *const u8, bytes: usize| {
            (elements.start * bytes..elements.end * bytes).step_by(64).for_each(|i| {
                prefetch(at.wrapping_add(i));
            });
        };
        let program = self.program;
        let direct = |l: &&Load| l.input < ahead.inputs && matches!(l.kind, LoadKind::Direct);
        for load in program.loads.iter().filter(direct) {
            // SAFETY: the caller vouches for the location.
            lines(unsafe { self.get(load.location) }, load.bytes);
        }
        for store in program.stores.iter().filter(|_| ahead.outputs && !program.stream) {
            let inputs = self.args.inputs;
            if let StoreKind::Direct { location, .. } = store.kind
                && !self.is_indirect(store.output)
                && !inputs.contains(&self.args.outputs[store.output].cast_const())
            {
                // SAFETY: as above.
                lines(unsafe { self.get(location) }, store.bytes);
            }
        }
    }

    fn is_indirect(&self, output: usize) -> bool {
        self.indirect >> (output % 64) & 1 == 1
    }

    /// # Safety
    /// The offset lies within the operand.
    unsafe fn output(&self, store: &Store, offsets: &[isize]) -> *mut u8 {
        let offset = offsets[self.args.inputs.len() + store.output];
        // SAFETY: the caller vouches for the offset.
        unsafe { self.args.outputs[store.output].offset(offset * store.bytes as isize) }
    }

    /// # Safety
    /// As [`Runner::tile`].
    unsafe fn load(&self, load: &Load, offset: isize, cuts: [usize; 2], n: usize) {
        // SAFETY: the caller vouches for the tile; its location holds `n` elements.
        unsafe {
            let from = self.args.inputs[load.input].offset(offset * load.bytes as isize);
            match &load.kind {
                LoadKind::Direct | LoadKind::One => self.set(load.location, from),
                LoadKind::Gather { groups, widen, dense } => {
                    let to = self.get(load.location).cast_mut();
                    match widen {
                        None => copy(load.bytes, from, to, &into_tile(groups, cuts)),
                        Some(widen) => {
                            let staging = self.scratch.add(self.program.staging);
                            let mut from = from;
                            if !dense {
                                copy(load.bytes, from, staging, &into_tile(groups, cuts));
                                from = staging;
                            }
                            widen(to, from, from, from, n);
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`Runner::tile`].
    unsafe fn store(&self, store: &Store, offsets: &[isize], cuts: [usize; 2], n: usize) {
        // SAFETY: the caller vouches for the tile.
        unsafe {
            let to = self.output(store, offsets);
            match &store.kind {
                StoreKind::Direct { location, .. } => {
                    if self.is_indirect(store.output) {
                        let from = self.get(*location);
                        move_bytes(from, to, n * store.bytes, self.program.stream);
                    }
                }
                StoreKind::Through { input, groups } => {
                    let offset = offsets[*input] * store.bytes as isize;
                    let from = self.args.inputs[*input].offset(offset);
                    match &between(groups, cuts)[..] {
                        [Axis { size, from: 1, to: 1 }] => {
                            move_bytes(from, to, size * store.bytes, self.program.stream);
                        }
                        axes => copy(store.bytes, from, to, axes),
                    }
                }
                StoreKind::Scatter { location, groups, narrow, dense } => {
                    let mut from = self.get(*location);
                    if let Some(narrow) = narrow {
                        if *dense {
                            return narrow(to, from, from, from, n);
                        }
                        let staging = self.scratch.add(self.program.staging);
                        narrow(staging, from, from, from, n);
                        from = staging;
                    }
                    copy(store.bytes, from, to, &out_of_tile(groups, cuts));
                }
            }
        }
    }
}

/// Fills `n` elements, as registers of `dtype` are held, with one value.
///
/// # Safety
/// `to` is valid for `n` aligned elements.
unsafe fn splat(dtype: DType, value: [u8; 8], to: *mut u8, n: usize) {
    let [a, b, c, d, ..] = value;
    let fill = Axis { size: n, from: 0, to: 1 };
    let mut element = value;
    let low = f16::from_ne_bytes([a, b]).to_f32().to_ne_bytes();
    match dtype {
        DType::F16 => element[..4].copy_from_slice(&low),
        DType::BF16 => {
            element[..4].copy_from_slice(&bf16::from_ne_bytes([a, b]).to_f32().to_ne_bytes());
        }
        DType::C32 => {
            element[..4].copy_from_slice(&low);
            element[4..].copy_from_slice(&f16::from_ne_bytes([c, d]).to_f32().to_ne_bytes());
        }
        _ => {}
    }
    let element = u64::from_ne_bytes(element);
    // SAFETY: a `u64` is aligned for every element.
    unsafe { copy(dtype.accumulator().size(), (&raw const element).cast(), to, &[fill]) }
}
