//! Running a plan: first all of its memory is found, then the steps run.
//!
//! A leaf that nobody else holds gives its memory to what comes after it, but not before the plan's
//! point of no return: until then a run may fail or be interrupted, has overwritten nothing, and can
//! be tried again. After it nothing fails, and nobody is asked whether to stop. A device that looks at
//! indices where it uses them is waited for before that point; not where the host knows that they are
//! good.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::control::Place;
use super::fuse::ScalarSource;
use super::rooms::Room;
use super::together::last_at_once;
use super::{Access, Plan, SlotSpec, Step, little_more};
use crate::array::Value;
use crate::backend::{Args, Backend, Buffer, Fails, Region, Sequence, Stopped, backend, wait_for};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::fallback;
use crate::graph::Graph;
use crate::holders;
use crate::prim::{Argument, Op};
use crate::profile::{self, Watch};
use crate::shape::Layout;

/// What may differ from run to run: constants and slice starts, by node of the evaluated graph.
pub(crate) trait Parameters {
    /// The argument of a node of the evaluated graph.
    fn argument(&self, node: u32) -> Argument<'_>;

    /// The line of the program that recorded a node of the evaluated graph, or what is within it, where lines
    /// are noted: see [`Graph::line`](crate::graph::Graph).
    fn line(&self, path: &[u32]) -> Option<Arc<str>>;

    /// What the lines follow from.
    fn origins(&self) -> Vec<Origin>;

    /// Whether its lines follow from these.
    fn has_origins(&self, known: &[Origin]) -> bool;
}

/// What the lines of a node, and of what is within it, follow from. It keeps no graph.
pub(crate) struct Origin {
    line: Option<Arc<str>>,
    body: Option<Weak<Graph>>,
}

impl Origin {
    /// That of a node.
    pub fn new(line: Option<&Arc<str>>, op: &Op) -> Origin {
        Origin { line: line.cloned(), body: op.body().map(Arc::downgrade) }
    }

    /// Whether it is that of this node, or may be, where noting lines pauses. Lines may be the same where it is not.
    pub fn is_of(&self, line: Option<&Arc<str>>, op: &Op) -> bool {
        let same_line = match (&self.line, line) {
            (Some(own), Some(line)) => Arc::ptr_eq(own, line),
            (None, None) => true,
            (Some(_), None) => holders::pauses(),
            (None, Some(_)) => false,
        };
        let same_body = match (&self.body, op.body()) {
            (Some(own), Some(body)) => std::ptr::eq(own.as_ptr(), Arc::as_ptr(body)),
            (None, None) => true,
            _ => false,
        };
        same_line && same_body
    }
}

/// Why a run failed.
pub(crate) struct Failure {
    pub error: Error,
    /// Whether a leaf may have been overwritten: then the run cannot be tried again.
    pub overwritten: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { error, overwritten: false }
    }
}

/// Which of a run's memories a slot lies in.
type Home = u32;

/// A slot without a memory yet.
const NOWHERE: Home = u32::MAX;

/// The memory of a run.
struct Memory<'a> {
    leaves: &'a [Value],
    /// What was allocated for this run; its homes follow those of the leaves.
    own: Vec<Buffer>,
    /// How many live slots lie in each home; a leaf that somebody else reads never becomes free.
    live: Vec<u32>,
    /// The homes that no slot lies in any more and that may be overwritten.
    free: Vec<Home>,
    /// The home of each slot.
    homes: Vec<Home>,
    /// The home that each of the plan's rooms is.
    rooms: Vec<Home>,
    /// The homes of what steps are given for their own use, in the plan's order.
    scratch: Vec<Home>,
    /// The steps that have nothing left to do: copies onto themselves.
    skipped: Vec<u32>,
    /// The homes of leaves that are free, but not to be overwritten yet.
    kept: Vec<Home>,
    /// The first step that overwrites a leaf.
    overwrites: usize,
    /// Whether it is the memory of a body: what was given away may be overwritten at any time, since the run that
    /// the body is a step of begins anew where it fails.
    is_inside: bool,
    /// Where in their home outputs start that were given one.
    given: SmallVec<[(u32, isize); 4]>,
}

/// The memory of a body's run but for its leaves, to be used by the next run.
pub(super) struct Frame {
    own: Vec<Buffer>,
    homes: Vec<Home>,
    scratch: Vec<Home>,
    skipped: Vec<u32>,
    given: SmallVec<[(u32, isize); 4]>,
}

impl Memory<'_> {
    fn at(&self, home: Home) -> &Buffer {
        match self.leaves.get(home as usize) {
            Some(leaf) => &leaf.buffer,
            None => &self.own[home as usize - self.leaves.len()],
        }
    }

    fn into_frame(self) -> Frame {
        let Memory { own, homes, scratch, skipped, given, .. } = self;
        Frame { own, homes, scratch, skipped, given }
    }

    /// What each step is given for its own use, of all steps in order.
    fn scratch<'m>(&'m self, plan: &'m Plan) -> impl FnMut(usize) -> Option<&'m Buffer> {
        let mut all = plan.scratch.iter().zip(&self.scratch).peekable();
        move |step| {
            let own = all.next_if(|(own, _)| own.step == step);
            own.map(|(_, &home)| self.at(home))
        }
    }

    fn of(&self, slot: u32) -> &Buffer {
        self.at(self.homes[slot as usize])
    }

    /// Where slot 0 of an access starts: a leaf's own offset, or that of the place of an output.
    fn base(&self, slot: u32) -> isize {
        match self.leaves.get(slot as usize) {
            Some(leaf) => leaf.layout.offset,
            None => self.given.iter().find(|(own, _)| *own == slot).map_or(0, |(_, base)| *base),
        }
    }

    /// Where an access starts in its buffer, in elements.
    fn resolve(&self, access: &Access, parameters: &dyn Parameters) -> isize {
        let mut offset = self.base(access.slot) + access.offset.fixed;
        for (node, strides) in &access.offset.starts {
            if let Argument::Starts(starts) = parameters.argument(*node) {
                offset += starts.iter().zip(strides).map(|(&s, &t)| s as isize * t).sum::<isize>();
            }
        }
        offset
    }

    /// Finds a home for every output of `step`, and for what it needs while it runs.
    fn place(
        &mut self,
        (index, step): (usize, &Step),
        plan: &Plan,
        on: &dyn Backend,
        lines: Option<&dyn Parameters>,
    ) -> Result<()> {
        let may_overwrite = self.is_inside || index >= plan.point_of_no_return;
        if may_overwrite {
            self.free.append(&mut self.kept);
        }
        for (at, output) in step.outputs.iter().enumerate() {
            let slot = output.slot as usize;
            if self.homes[slot] != NOWHERE {
                continue;
            }
            let SlotSpec { bytes, is_output: exact, .. } = plan.slots[slot];
            let donor = step.donors(at).find(|&donor| {
                let home = self.homes[donor as usize];
                let has = self.at(home).bytes();
                (may_overwrite || home as usize >= self.leaves.len())
                    && step.frees.contains(&donor)
                    && self.base(donor) == 0
                    && self.live[home as usize] == 1
                    && plan.slots[donor as usize].bytes == bytes
                    && (has == bytes || !exact && home as usize >= self.leaves.len())
            });
            let home = match donor {
                Some(donor) => {
                    if step.prepared.is_copy {
                        self.skipped.push(index as u32);
                    }
                    self.homes[donor as usize]
                }
                None => self.find(&plan.slots[slot], plan, on, (step, at), lines)?,
            };
            self.note_written(home, index);
            self.live[home as usize] += 1;
            self.homes[slot] = home;
        }
        if let Some(own) = plan.scratch.get(self.scratch.len()).filter(|own| own.step == index) {
            let home = self.find(&own.memory, plan, on, (step, 0), lines)?;
            self.note_written(home, index);
            self.scratch.push(home);
            self.free.push(home);
        }
        Ok(())
    }

    /// Notes which homes are free after step `index` that `step` was the last to need something of.
    fn free(&mut self, step: &Step, index: usize, plan: &Plan) {
        let may_overwrite = self.is_inside || index >= plan.point_of_no_return;
        for &slot in &step.frees {
            let home = self.homes[slot as usize];
            let live = &mut self.live[home as usize];
            *live -= 1;
            if *live == 0 {
                let is_kept = (home as usize) < self.leaves.len() && !may_overwrite;
                if is_kept { self.kept.push(home) } else { self.free.push(home) }
            }
        }
    }

    /// Notes that a step writes to a home.
    fn note_written(&mut self, home: Home, step: usize) {
        if (home as usize) < self.leaves.len() {
            self.overwrites = self.overwrites.min(step);
        }
    }

    /// The room that the plan has for something, if it is free. If not, or if there is none yet, a home that is free, no
    /// room, and has little more than it needs: the smallest, and of these the last freed. Else a new one.
    fn find(
        &mut self,
        &SlotSpec { bytes, is_output, room }: &SlotSpec,
        plan: &Plan,
        on: &dyn Backend,
        (step, output): (&Step, usize),
        lines: Option<&dyn Parameters>,
    ) -> Result<Home> {
        let room = room.map(|room| room as usize);
        if let Some(room) = room
            && let Some(at) = self.free.iter().rposition(|&free| free == self.rooms[room])
            && (!is_output || self.at(self.free[at]).bytes() == bytes)
        {
            return Ok(self.free.remove(at));
        }
        let to_make = room.filter(|&room| self.rooms[room] == NOWHERE);
        let most = if is_output { bytes } else { little_more(bytes) };
        let fit = self.free.iter().enumerate().rev().filter_map(|(at, &home)| {
            let size = self.at(home).bytes();
            // A room is for others, where its own only has to be made.
            let may = || to_make.is_none() || !self.rooms.contains(&home);
            ((bytes..=most).contains(&size) && may()).then_some((size, at))
        });
        let home = match fit.min_by_key(|fit| fit.0) {
            Some((_, at)) => self.free.remove(at),
            None => {
                // A room is known by the largest value that lies in it.
                let (bytes, step, output) = match to_make {
                    None => (bytes, step, output),
                    Some(room) => {
                        let Room { bytes, maker: (step, output) } = plan.rooms[room];
                        (bytes, &*plan.steps[step], output)
                    }
                };
                let mut buffer = crate::backend::alloc(on, bytes)?;
                let segment = &step.prepared.segment;
                let line = lines.filter(|_| bytes >= holders::LARGE).and_then(|of| step.line(of));
                if let Some(output) = segment.outputs.get(output) {
                    holders::place(&mut buffer, segment.name(), &output.aval, line);
                }
                self.own.push(buffer);
                self.live.push(0);
                (self.live.len() - 1) as Home
            }
        };
        if let Some(room) = to_make
            && self.at(home).bytes() >= plan.rooms[room].bytes
        {
            self.rooms[room] = home;
        }
        Ok(home)
    }
}

/// An error where memory that was lent has changed; what many arrays lie in is looked at once.
fn check(leaves: &[Value]) -> Result<()> {
    let mut last: Option<&Buffer> = None;
    for Value { buffer, .. } in leaves.iter().filter(|leaf| leaf.buffer.is_lent()) {
        if last.is_none_or(|last| !last.same(buffer)) {
            buffer.check()?;
        }
        last = Some(buffer);
    }
    Ok(())
}

impl Plan {
    /// Runs on `leaves`, in input order. A leaf whose memory nobody else holds may be overwritten.
    pub fn run(
        &self,
        leaves: &[Value],
        parameters: &dyn Parameters,
    ) -> std::result::Result<Vec<Value>, Failure> {
        debug_assert_eq!(leaves.len(), self.leaves);
        let backend = &**backend(self.device)?;
        check(leaves)?;
        let lines = holders::wants_lines().then_some(parameters);
        let memory = self.place(leaves, None, backend, lines)?;
        // Where the device may find a wrong index, it is waited for before anything is overwritten.
        let is_known = self.indices_are_known(leaves, parameters);
        let waits = (!is_known).then(|| memory.overwrites.min(self.steps.len()));
        let as_one = self.sequence.as_ref();
        let as_one = as_one.filter(|_| waits.is_none_or(|at| at == self.steps.len()));
        // Steps that run as one find their memory before the first of them does.
        if as_one.is_none() {
            self.own.iter().try_for_each(|pieces| backend.expect(pieces))?;
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        let on_host = || self.steps.iter().any(|step| step.prepared.is_on_host());
        let watch = Watch::begin(backend, &self.shares, self.steps.len(), on_host);
        let watch = watch.map_err(|error| Failure { error, overwritten: false })?;
        // Who listens may want to know of each step.
        let as_one = as_one.filter(|_| watch.as_ref().is_none_or(|watch| !watch.is_each()));
        let ran = match as_one {
            Some(sequence) => {
                let ran = self.run_as_one(&**sequence, &memory, parameters);
                if let (Ok(()), Some(mut watch)) = (&ran, watch) {
                    watch.passed();
                    watch.end(self.told(parameters), &memory.skipped);
                }
                ran.and_then(|()| waits.map_or(Ok(()), |at| waited(backend, at)))
            }
            None => self.run_in_turn(&memory, parameters, backend, waits, watch),
        };
        ran.map_err(|Stopped { error, begun }| {
            if !is_known {
                backend.forget_faults();
            }
            Failure { error, overwritten: memory.overwrites < begun }
        })?;
        Ok(self.values(&memory, parameters))
    }

    /// Runs as a step of another plan: nobody waits for a device, and outputs are written to their `places`, where
    /// they have one.
    pub(super) fn run_inside(
        &self,
        leaves: &[Value],
        places: &[Place<'_>],
        parameters: &dyn Parameters,
    ) -> Result<Vec<Value>> {
        let backend = &**backend(self.device)?;
        let memory = self.place(leaves, Some(places), backend, None)?;
        let ran = match &self.sequence {
            Some(sequence) => self.run_as_one(&**sequence, &memory, parameters),
            None => self.run_in_turn(&memory, parameters, backend, None, None),
        };
        ran.map_err(|stopped| stopped.error)?;
        Ok(self.values(&memory, parameters))
    }

    /// What [`Plan::run_inside`] needs besides leaves and places, found for these; runs on others of the same sizes
    /// need nothing more.
    pub(super) fn frame(&self, leaves: &[Value], places: &[Place<'_>]) -> Result<Frame> {
        let memory = self.place(leaves, Some(places), &**backend(self.device)?, None)?;
        Ok(memory.into_frame())
    }

    /// Runs in a frame, as [`Plan::run_inside`].
    pub(super) fn run_in(
        &self,
        frame: &mut Frame,
        leaves: &[Value],
        places: &[Place<'_>],
        parameters: &dyn Parameters,
    ) -> Result<()> {
        let backend = &**backend(self.device)?;
        for (given, place) in frame.given.iter_mut().zip(places.iter().flatten()) {
            given.1 = place.offset;
        }
        let memory = Memory {
            leaves,
            own: std::mem::take(&mut frame.own),
            live: Vec::new(),
            free: Vec::new(),
            homes: std::mem::take(&mut frame.homes),
            rooms: Vec::new(),
            scratch: std::mem::take(&mut frame.scratch),
            skipped: std::mem::take(&mut frame.skipped),
            kept: Vec::new(),
            overwrites: usize::MAX,
            is_inside: true,
            given: std::mem::take(&mut frame.given),
        };
        let ran = match &self.sequence {
            Some(sequence) => self.run_as_one(&**sequence, &memory, parameters),
            None => self.run_in_turn(&memory, parameters, backend, None, None),
        };
        *frame = memory.into_frame();
        ran.map_err(|stopped| stopped.error)
    }

    /// After a run in a frame: the first `count` outputs become the first leaves, and the memory of these is where
    /// the next run puts its outputs. Gives whether there is memory for all of them.
    pub(super) fn turn(&self, frame: &mut Frame, leaves: &mut [Value], count: usize) -> bool {
        let homes: SmallVec<[Home; 4]> =
            self.outputs[..count].iter().map(|out| frame.homes[out.access.slot as usize]).collect();
        let mut is_free: SmallVec<[bool; 4]> =
            (0..count).map(|leaf| !homes.contains(&(leaf as Home))).collect();
        let former: SmallVec<[Buffer; 4]> =
            leaves[..count].iter().map(|leaf| leaf.buffer.clone()).collect();
        for (leaf, &home) in homes.iter().enumerate() {
            if let Some(buffer) = former.get(home as usize) {
                leaves[leaf].buffer = buffer.clone();
                continue;
            }
            let own = &mut frame.own[home as usize - leaves.len()];
            let fits = |&place: &usize| is_free[place] && former[place].bytes() == own.bytes();
            let Some(place) = (0..count).find(fits) else { return false };
            is_free[place] = false;
            leaves[leaf].buffer = std::mem::replace(own, former[place].clone());
        }
        true
    }

    /// What a run gave.
    fn values(&self, memory: &Memory<'_>, parameters: &dyn Parameters) -> Vec<Value> {
        let value = |spec: &super::OutputSpec| Value {
            buffer: memory.of(spec.access.slot).clone(),
            layout: Layout {
                strides: spec.strides.clone(),
                offset: memory.resolve(&spec.access, parameters),
            },
            range: self.range(spec.access.slot, memory.leaves, parameters),
        };
        self.outputs.iter().map(value).collect()
    }

    fn run_in_turn(
        &self,
        memory: &Memory<'_>,
        parameters: &dyn Parameters,
        on: &dyn Backend,
        waits: Option<usize>,
        mut watch: Option<Watch<'_>>,
    ) -> std::result::Result<(), Stopped> {
        let shown = profile::ranges();
        let mut skipped = memory.skipped.iter().peekable();
        let mut scratch = memory.scratch(self);
        for (index, step) in self.steps.iter().enumerate() {
            let scratch = scratch(index);
            if waits == Some(index) {
                waited(on, index)?;
            }
            if skipped.next_if(|&&s| s as usize == index).is_some() {
                continue;
            }
            if index <= memory.overwrites {
                crate::interrupt::check().map_err(|error| Stopped { error, begun: index })?;
            }
            let range = shown.as_ref().map(|begin| begin(&self.explained()[index].kind));
            step.run(memory, scratch, parameters).map_err(|error| {
                // What fails early has written nothing: what it was to overwrite is as it was.
                let is_early = step.prepared.executable.fails() == Fails::Early;
                Stopped { error, begun: if is_early { index } else { index + 1 } }
            })?;
            drop(range);
            if let Some(watch) = watch.as_mut().filter(|watch| watch.is_each()) {
                if step.prepared.is_on_host() {
                    watch.ran_on_host(index);
                }
                watch.passed();
            }
        }
        if let Some(mut watch) = watch {
            if !watch.is_each() {
                watch.passed();
            }
            watch.end(self.told(parameters), &memory.skipped);
        }
        match waits {
            Some(at) if at == self.steps.len() => waited(on, at),
            _ => Ok(()),
        }
    }

    fn run_as_one(
        &self,
        sequence: &dyn Sequence,
        memory: &Memory<'_>,
        parameters: &dyn Parameters,
    ) -> std::result::Result<(), Stopped> {
        let operands = |step: &Arc<Step>| step.inputs.len() + step.outputs.len();
        let mut regions = Vec::with_capacity(self.steps.iter().map(operands).sum());
        let mut scalars = Vec::with_capacity(self.steps.iter().map(|s| s.scalars.len()).sum());
        for step in &self.steps {
            regions.extend(Step::regions(&step.inputs, memory, parameters));
            regions.extend(Step::regions(&step.outputs, memory, parameters));
            scalars.extend(step.elements(parameters));
        }
        let (mut regions, mut scalars) = (&regions[..], &scalars[..]);
        let mut skipped = memory.skipped.iter().peekable();
        let mut scratch = memory.scratch(self);
        let mut steps = Vec::with_capacity(self.steps.len());
        for (index, step) in self.steps.iter().enumerate() {
            let args = Args {
                inputs: front(&mut regions, step.inputs.len()),
                outputs: front(&mut regions, step.outputs.len()),
                scalars: front(&mut scalars, step.scalars.len()),
                scratch: scratch(index),
            };
            let is_done = skipped.next_if(|&&s| s as usize == index).is_some();
            steps.push((!is_done).then_some(args));
        }
        crate::interrupt::check().map_err(|error| Stopped { error, begun: 0 })?;
        sequence.run(&steps)
    }

    /// Finds all the memory of a run. Inputs have the first slots. What is new is known by the `lines` that record it.
    fn place<'a>(
        &self,
        leaves: &'a [Value],
        places: Option<&[Place<'_>]>,
        on: &dyn Backend,
        lines: Option<&dyn Parameters>,
    ) -> Result<Memory<'a>> {
        let (mut homes, live) = homes_of(leaves, places.is_some());
        homes.resize(self.slots.len(), NOWHERE);
        let mut memory = Memory {
            leaves,
            own: Vec::new(),
            live,
            free: Vec::new(),
            kept: Vec::new(),
            homes,
            rooms: vec![NOWHERE; self.rooms.len()],
            scratch: Vec::with_capacity(self.scratch.len()),
            skipped: Vec::new(),
            overwrites: usize::MAX,
            is_inside: places.is_some(),
            given: SmallVec::new(),
        };
        let outputs = self.outputs.iter().zip(places.unwrap_or_default());
        for (output, place) in outputs.filter_map(|(output, place)| Some((output, place.as_ref()?)))
        {
            let slot = output.access.slot;
            memory.homes[slot as usize] = memory.live.len() as Home;
            memory.live.push(1);
            memory.own.push(place.buffer.clone());
            memory.given.push((slot, place.offset));
        }
        // What steps that run at once need is free when all of them are done.
        let mut freed = 0;
        for (index, step) in self.steps.iter().enumerate() {
            memory.place((index, step), self, on, lines)?;
            if last_at_once(&self.at_once, index) == index {
                self.steps[freed..=index].iter().for_each(|step| memory.free(step, index, self));
                freed = index + 1;
            }
        }
        Ok(memory)
    }
}

/// The homes of leaves, and how many live in each; one more where somebody else reads it. What several leaves hold and
/// nobody else, such as weights and a view of them, is one home, unless it is that of a body, which takes turns with
/// what the body gives.
fn homes_of(leaves: &[Value], is_inside: bool) -> (Vec<Home>, Vec<u32>) {
    let mut homes: Vec<Home> = (0..leaves.len() as Home).collect();
    let mut live = Vec::with_capacity(leaves.len());
    let mut shared: SmallVec<[(*const (), usize, Home); 32]> = SmallVec::new();
    for (leaf, &home) in leaves.iter().zip(&homes) {
        let is_unique = leaf.buffer.is_unique();
        live.push(if is_unique { 1 } else { 2 });
        if !is_unique && !is_inside && !leaf.buffer.is_lent() {
            let (memory, count) = leaf.buffer.shared();
            shared.push((memory, count, home));
        }
    }
    shared.sort_unstable();
    for alike in shared.chunk_by(|a, b| a.0 == b.0) {
        let (_, count, first) = alike[0];
        if alike.len() == count {
            live[first as usize] = count as u32;
            alike.iter().for_each(|&(.., leaf)| homes[leaf as usize] = first);
        }
    }
    (homes, live)
}

/// Waits for the device before step `index`: what it finds wrong until then is this run's error.
fn waited(on: &dyn Backend, index: usize) -> std::result::Result<(), Stopped> {
    wait_for(on).map_err(|error| Stopped { error, begun: index })
}

/// Takes the first `count` of `all`.
fn front<'a, T>(all: &mut &'a [T], count: usize) -> &'a [T] {
    let (first, rest) = all.split_at(count);
    *all = rest;
    first
}

impl Step {
    fn run(
        &self,
        memory: &Memory<'_>,
        scratch: Option<&Buffer>,
        parameters: &dyn Parameters,
    ) -> Result<()> {
        let inputs: SmallVec<[Region<'_>; 8]> =
            Self::regions(&self.inputs, memory, parameters).collect();
        let outputs: SmallVec<[Region<'_>; 4]> =
            Self::regions(&self.outputs, memory, parameters).collect();
        let scalars: SmallVec<[[u8; 8]; 8]> = self.elements(parameters).collect();
        let args = Args { inputs: &inputs, outputs: &outputs, scalars: &scalars, scratch };
        let run = || self.prepared.executable.run(&args);
        match profile::is_on() && self.prepared.is_taken_over() {
            true => fallback::recorded_at(self.line(parameters), run),
            false => run(),
        }
    }

    /// The line of the program that recorded what it is about, where that is known.
    pub(super) fn line(&self, parameters: &dyn Parameters) -> Option<Arc<str>> {
        self.origin.as_ref().and_then(|path| parameters.line(path))
    }

    fn regions<'a>(
        places: &'a [Access],
        memory: &'a Memory<'_>,
        parameters: &'a dyn Parameters,
    ) -> impl Iterator<Item = Region<'a>> + use<'a> {
        places.iter().map(move |access| Region {
            buffer: memory.of(access.slot),
            offset: memory.resolve(access, parameters),
        })
    }

    fn elements<'a>(
        &'a self,
        parameters: &'a dyn Parameters,
    ) -> impl Iterator<Item = [u8; 8]> + 'a {
        let element = |(source, dtype): &(ScalarSource, DType)| source.element(*dtype, parameters);
        self.scalars.iter().map(element)
    }
}
