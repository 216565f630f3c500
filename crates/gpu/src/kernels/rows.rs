//! Programs over rows: each row is read once, and its elements stay in registers.
//!
//! The threads of a row have its elements in turn, a few neighbours at a time. A fold goes through
//! a thread's own elements first, and then through shared memory. The order is fixed by the shape.

use cupola_core::DType;
use cupola_core::backend::{Fold, Segment};
use cupola_core::plan::body::{Body, Reg};

use super::view::{Axes, View};
use super::{Draft, Launch, Missing, Place};
use crate::ir::{Access, Number, Shared, Target, Ty, Val};

/// The least threads in a block.
const BLOCK: u32 = 256;
/// Threads that a long row gets, as long as a thread has no more elements than `HELD`: two such
/// blocks fit beside each other, so that one reads while the other folds.
const WIDE: u32 = 512;
/// The most elements that a thread of a block of `WIDE` threads has.
const HELD: u64 = 32;
/// How many values a thread folds at a level of the way from all threads to one value.
const RADIX: u32 = 8;

/// How rows are spread over threads.
#[derive(Clone, Copy)]
struct Shape {
    rows: u64,
    /// Elements of a row, in steps of `count` neighbours.
    steps: u64,
    count: u32,
    /// Threads a row; a power of two.
    lanes: u32,
    block: u32,
}

impl Shape {
    fn of(rows: u64, length: u64, count: u32, target: &Target) -> Shape {
        let steps = length / u64::from(count);
        // Four loads under way at once.
        let wanted = steps.div_ceil(4).next_power_of_two();
        let wide = WIDE.min(target.max_threads);
        let fits = steps.div_ceil(u64::from(wide)) * u64::from(count) <= HELD;
        let most = if fits { wide } else { target.max_threads };
        let lanes = wanted.clamp(1, u64::from(most)) as u32;
        Shape { rows, steps, count, lanes, block: lanes.max(BLOCK) }
    }

    fn rows_a_block(&self) -> u32 {
        self.block / self.lanes
    }

    /// How many steps a thread has.
    fn held(&self) -> usize {
        self.steps.div_ceil(u64::from(self.lanes)) as usize
    }
}

/// The launch of a program over rows.
pub fn rows(
    body: &Body,
    folds: &[Fold],
    segment: &Segment,
    target: &Target,
) -> Result<Launch, Missing> {
    let operands = || segment.inputs.iter().chain(&segment.outputs);
    let strides: Vec<Vec<isize>> = operands().map(|o| o.strides.clone()).collect();
    let last = body.shape.rank() - 1;
    let whole = Axes { sizes: body.shape.to_vec(), strides };
    let of_elements: Vec<usize> =
        (0..whole.strides.len()).filter(|&i| whole.strides[i][last] != 0).collect();
    let dtypes: Vec<DType> = operands().map(|o| o.aval.dtype).collect();
    let own: Vec<DType> = of_elements.iter().map(|&i| dtypes[i]).collect();
    let count = whole.of(of_elements).vector(&own, target.vector_bytes);
    let length = body.shape[last];
    let rows = body.shape.size() / length;
    let shape = Shape::of(rows as u64, length as u64, count, target);

    let mut draft = Draft::new("rows", shape.block, segment, target)?;
    let mut views = Vec::new();
    for (index, operand) in segment.inputs.iter().enumerate() {
        views.push(draft.view(Place::Input(index), operand.aval.dtype, Access::Read)?);
    }
    for (index, operand) in segment.outputs.iter().enumerate() {
        views.push(draft.view(Place::Output(index), operand.aval.dtype, Access::Write)?);
    }
    let outer: Vec<&[isize]> = whole.strides.iter().map(|s| &s[..last]).collect();
    let outer = Axes::joined(&body.shape[..last], &outer);
    let along: Vec<isize> = whole.strides.iter().map(|s| s[last]).collect();
    let scalars = draft.scalars(body)?;
    let given = Given { body, folds, scalars, shape, views, outer, along };
    let shared: Vec<Shared> = match shape.lanes {
        1 => Vec::new(),
        _ => (folds.iter())
            .map(|fold| draft.build.shared(Ty::of(body.dtype_of(fold.input)), shape.block))
            .collect(),
    };
    let mut done = Ok(());
    let blocks = shape.rows.div_ceil(u64::from(shape.rows_a_block()));
    draft.blocks(blocks, |draft, block| {
        done = Row::new(draft, &given, block).run(draft, segment, &shared);
        if !shared.is_empty() {
            draft.build.barrier();
        }
    });
    done?;
    let most = u64::from(target.max_blocks);
    Ok(draft.launch([blocks.clamp(1, most) as u32, 1]))
}

/// What is the same for all rows.
struct Given<'a> {
    body: &'a Body,
    folds: &'a [Fold],
    scalars: Vec<Number>,
    shape: Shape,
    /// The inputs and then the outputs.
    views: Vec<View>,
    /// How rows are walked, for each operand.
    outer: Axes,
    /// Each operand's stride along the row: 0 where it has a value a row.
    along: Vec<isize>,
}

/// A row that a thread has a part of.
struct Row<'a> {
    given: &'a Given<'a>,
    /// Whether a register has a value an element.
    of_elements: Vec<bool>,
    /// The thread's number among those of its row, and in the block.
    lane: Val,
    thread: Val,
    /// Whether there is such a row; nothing where there always is. Else it is the last again.
    is_there: Option<Val>,
    /// Where each operand's row starts.
    starts: Vec<Val>,
    /// What is known of the row, by register.
    once: Vec<Option<Number>>,
    /// What is known of each step's elements, by register.
    each: Vec<Vec<Option<Vec<Number>>>>,
}

impl<'a> Row<'a> {
    /// The thread's row among those of `block`.
    fn new(draft: &mut Draft<'_>, given: &'a Given<'a>, block: Val) -> Self {
        let Given { body, shape, along, scalars, .. } = given;
        let wide = draft.index;
        let b = &mut draft.build;
        let (thread, lanes) = (b.thread(), b.u32(shape.lanes));
        let (own, lane) = (b.div(thread, lanes), b.rem(thread, lanes));
        let own = b.convert(own, wide);
        let a_block = b.int(i64::from(shape.rows_a_block()), wide);
        let first = b.mul(block, a_block);
        let mut row = b.add(first, own);
        let mut is_there = None;
        if !shape.rows.is_multiple_of(u64::from(shape.rows_a_block())) {
            let last = b.int(shape.rows as i64 - 1, wide);
            is_there = Some(b.le(row, last));
            row = b.min_int(row, last);
        }
        let registers = body.registers();
        let inputs = body.inputs.len() - given.folds.len();
        let mut of_elements: Vec<bool> = along[..inputs].iter().map(|&s| s != 0).collect();
        of_elements.resize(body.inputs.len() + scalars.len(), false);
        for instr in &body.code {
            let any = instr.args.iter().any(|&r| of_elements[usize::from(r)]);
            of_elements.push(any);
        }
        let mut once = vec![None; registers];
        let known = scalars.iter().enumerate();
        known.for_each(|(i, &scalar)| once[body.inputs.len() + i] = Some(scalar));
        let each = vec![vec![None; shape.held()]; registers];
        let index = draft.unflatten(row, &given.outer.sizes);
        let starts = (given.views.iter().zip(&given.outer.strides))
            .map(|(view, strides)| draft.place(view.offset, &index, strides))
            .collect();
        Row { given, of_elements, lane, thread, is_there, starts, once, each }
    }

    /// Where the elements of a step start along the row; steps after the last start with it.
    fn place(&self, draft: &mut Draft<'_>, step: usize) -> Val {
        let before = draft.build.u32(step as u32 * self.given.shape.lanes);
        let mut at = draft.build.add(self.lane, before);
        if self.may_be_out(step) {
            let last = draft.build.u32(self.given.shape.steps as u32 - 1);
            at = draft.build.min_int(at, last);
        }
        let count = draft.build.u32(self.given.shape.count);
        let first = draft.build.mul(at, count);
        draft.build.convert(first, draft.index)
    }

    fn may_be_out(&self, step: usize) -> bool {
        (step as u64 + 1) * u64::from(self.given.shape.lanes) > self.given.shape.steps
    }

    /// Whether a step is in the row; nothing where each thread has it.
    fn is_in(&self, draft: &mut Draft<'_>, step: usize) -> Option<Val> {
        self.may_be_out(step).then(|| {
            let before = draft.build.u32(step as u32 * self.given.shape.lanes);
            let at = draft.build.add(self.lane, before);
            let steps = draft.build.u32(self.given.shape.steps as u32);
            draft.build.lt(at, steps)
        })
    }

    fn run(
        &mut self,
        draft: &mut Draft<'_>,
        segment: &Segment,
        shared: &[Shared],
    ) -> Result<(), Missing> {
        for number in 0..self.given.folds.len() {
            let value = self.folded(draft, number, shared.get(number).copied())?;
            let register = self.given.body.inputs.len() - self.given.folds.len() + number;
            self.once[register] = Some(value);
        }
        // Everything is computed before the first store, so that no load waits for one.
        let results = self.given.body.outputs.clone();
        let mut values = Vec::new();
        for (&register, along) in results.iter().zip(&self.given.along[segment.inputs.len()..]) {
            values.push(match along {
                0 => vec![vec![self.of_row(draft, register)?]],
                _ => (0..self.given.shape.held())
                    .map(|step| self.of_step(draft, register, step))
                    .collect::<Result<_, _>>()?,
            });
        }
        if self.is_there.is_some() {
            draft.build.open_when();
        }
        for (i, steps) in values.into_iter().enumerate() {
            self.store(draft, segment.inputs.len() + i, steps);
        }
        if let Some(is_there) = self.is_there {
            draft.build.close_when(is_there);
        }
        Ok(())
    }

    fn store(&self, draft: &mut Draft<'_>, operand: usize, steps: Vec<Vec<Number>>) {
        let (view, start) = (self.given.views[operand], self.starts[operand]);
        if self.given.along[operand] == 0 {
            let zero = draft.build.u32(0);
            let leads = draft.build.eq(self.lane, zero);
            draft.build.open_when();
            draft.store_at(view, start, &steps[0]);
            return draft.build.close_when(leads);
        }
        for (step, numbers) in steps.into_iter().enumerate() {
            let at = self.place(draft, step);
            let at = draft.place(start, &[at], &[self.given.along[operand]]);
            let is_in = self.is_in(draft, step);
            if is_in.is_some() {
                draft.build.open_when();
            }
            draft.store_at(view, at, &numbers);
            if let Some(is_in) = is_in {
                draft.build.close_when(is_in);
            }
        }
    }

    /// A register that has one value a row.
    fn of_row(&mut self, draft: &mut Draft<'_>, register: Reg) -> Result<Number, Missing> {
        let at = usize::from(register);
        if let Some(known) = self.once[at] {
            return Ok(known);
        }
        let value = match self.code(at) {
            None => draft.build.load_number(self.given.views[at].buf, self.starts[at]),
            Some(code) => {
                let instr = &self.given.body.code[code];
                let args = (instr.args.iter())
                    .map(|&arg| self.of_row(draft, arg))
                    .collect::<Result<Vec<_>, _>>()?;
                draft.instruction(self.given.body, instr, &args)?
            }
        };
        self.once[at] = Some(value);
        Ok(value)
    }

    /// A register's values for the elements of a step.
    fn of_step(
        &mut self,
        draft: &mut Draft<'_>,
        register: Reg,
        step: usize,
    ) -> Result<Vec<Number>, Missing> {
        let (at, count) = (usize::from(register), self.given.shape.count as usize);
        if !self.of_elements[at] {
            return Ok(vec![self.of_row(draft, register)?; count]);
        }
        if let Some(known) = &self.each[at][step] {
            return Ok(known.clone());
        }
        let values = match self.code(at) {
            None => {
                let place = self.place(draft, step);
                let place = draft.place(self.starts[at], &[place], &[self.given.along[at]]);
                draft.load_at(self.given.views[at], place, false, self.given.shape.count)
            }
            Some(code) => {
                let instr = &self.given.body.code[code];
                let args = (instr.args.iter())
                    .map(|&arg| self.of_step(draft, arg, step))
                    .collect::<Result<Vec<_>, _>>()?;
                (0..count)
                    .map(|lane| {
                        let own: Vec<Number> = args.iter().map(|list| list[lane]).collect();
                        draft.instruction(self.given.body, instr, &own)
                    })
                    .collect::<Result<_, _>>()?
            }
        };
        self.each[at][step] = Some(values.clone());
        Ok(values)
    }

    /// Which instruction gives a register; none where an input does.
    fn code(&self, register: usize) -> Option<usize> {
        register.checked_sub(self.given.body.inputs.len() + self.given.body.scalars.len())
    }

    /// The result of a fold, in every thread of the row.
    fn folded(
        &mut self,
        draft: &mut Draft<'_>,
        number: usize,
        shared: Option<Shared>,
    ) -> Result<Number, Missing> {
        let Fold { kind, input } = self.given.folds[number];
        let dtype = self.given.body.dtype_of(input);
        let identity = draft.build.identity(kind, dtype);
        // Neighbours are folded apart, so that no sum waits for the one before.
        let mut totals: Vec<Option<Number>> = vec![None; self.given.shape.count as usize];
        let steps = (0..self.given.shape.held())
            .map(|step| self.of_step(draft, input, step))
            .collect::<Result<Vec<_>, _>>()?;
        for (step, values) in steps.into_iter().enumerate() {
            let is_in = self.is_in(draft, step);
            for (total, value) in totals.iter_mut().zip(values) {
                let value = match is_in {
                    Some(is_in) => draft.build.choose(is_in, value, identity),
                    None => value,
                };
                *total = Some(match *total {
                    Some(known) => draft.build.fold(kind, dtype, known, value)?,
                    None => value,
                });
            }
        }
        let mut totals: Vec<Number> = totals.into_iter().flatten().collect();
        while totals.len() > 1 {
            let others = totals.split_off(totals.len() / 2);
            let pairs = totals.into_iter().zip(others);
            totals = pairs
                .map(|(x, y)| draft.build.fold(kind, dtype, x, y))
                .collect::<Result<_, _>>()?;
        }
        let own = totals.first().copied().unwrap_or(identity);
        match shared {
            Some(shared) => self.across(draft, number, own, shared),
            None => Ok(own),
        }
    }

    /// Folds the values of the row's threads.
    fn across(
        &self,
        draft: &mut Draft<'_>,
        number: usize,
        own: Number,
        shared: Shared,
    ) -> Result<Number, Missing> {
        let Fold { kind, input } = self.given.folds[number];
        let dtype = self.given.body.dtype_of(input);
        let b = &mut draft.build;
        b.store_shared(shared, self.thread, own.real());
        b.barrier();
        let first = b.sub(self.thread, self.lane);
        let mut left = self.given.shape.lanes;
        while left > RADIX {
            let next = left.div_ceil(RADIX);
            let limit = b.u32(next);
            let works = b.lt(self.lane, limit);
            b.open_when();
            let mut total = None;
            for i in 0..left / next {
                let away = b.u32(i * next);
                let at = b.add(self.thread, away);
                let value = Number::Real(b.load_shared(shared, at));
                total = Some(match total {
                    Some(known) => b.fold(kind, dtype, known, value)?,
                    None => value,
                });
            }
            if let Some(total) = total {
                b.store_shared(shared, self.thread, total.real());
            }
            b.close_when(works);
            b.barrier();
            left = next;
        }
        let mut total = None;
        for i in 0..left {
            let away = b.u32(i);
            let at = b.add(first, away);
            let value = Number::Real(b.load_shared(shared, at));
            total = Some(match total {
                Some(known) => b.fold(kind, dtype, known, value)?,
                None => value,
            });
        }
        Ok(total.unwrap_or(own))
    }
}
