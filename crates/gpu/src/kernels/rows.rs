//! Programs over rows: each row is read once, and its elements stay in registers.
//!
//! The threads of a row have its elements in turn, a few neighbours at a time. A fold goes through
//! a thread's own elements first, and then through shared memory. The order is fixed by the shape.

use cupola_core::DType;
use cupola_core::backend::{Body, Reg};
use cupola_core::backend::{Fold, Segment};

use super::body::Then;
use super::view::{Axes, View, Walk, place, unflatten};
use super::{Draft, Launch, Missing};
use crate::ir::{Number, Shared, Target, Ty, Val};

/// The least threads in a block.
const BLOCK: u32 = 256;
/// Threads that a long row gets, as long as a thread has no more elements than `HELD`: two such
/// blocks fit beside each other, so that one reads while the other folds.
const WIDE: u32 = 512;
/// The most elements that a thread of a block of `WIDE` threads has.
const HELD: u64 = 32;
/// So many rows are fewer than a device has multiprocessors, or not many more.
const FEW_ROWS: u64 = 128;
/// So many steps of a thread are counted exactly.
const FEW: usize = 4;
/// How many values a thread folds at a level of the way from all threads to one value.
const RADIX: u32 = 8;

/// How rows are spread over threads.
#[derive(Clone, Copy)]
struct Spread {
    rows: u64,
    /// Elements of a row, in steps of `count` neighbours.
    steps: u64,
    count: u32,
    /// Threads a row; a power of two.
    lanes: u32,
    block: u32,
}

impl Spread {
    fn of(rows: u64, length: u64, count: u32, target: &Target) -> Spread {
        let steps = length / u64::from(count);
        // Four loads under way at once, where there are rows for all of the device; else what takes least time.
        let each = if rows <= FEW_ROWS { 1 } else { 4 };
        let wanted = steps.div_ceil(each).next_power_of_two();
        let wide = WIDE.min(target.max_threads);
        let fits = steps.div_ceil(u64::from(wide)) * u64::from(count) <= HELD;
        let most = if fits { wide } else { target.max_threads };
        let lanes = wanted.clamp(1, u64::from(most)) as u32;
        Spread { rows, steps, count, lanes, block: lanes.max(BLOCK) }
    }

    fn rows_a_block(&self) -> u32 {
        self.block / self.lanes
    }

    /// How many steps a thread has room for. Of many some more than it needs: a kernel is written for
    /// so many, and rows of other lengths have the same.
    fn held(&self) -> usize {
        let needed = self.steps.div_ceil(u64::from(self.lanes)) as usize;
        if needed <= FEW { needed } else { needed.next_multiple_of(FEW) }
    }

    /// Whether a step may be after a row's end.
    fn may_be_out(&self, step: usize) -> bool {
        let held = self.held();
        let needed = if held <= FEW { held } else { held - FEW + 1 };
        step + 1 >= needed && self.steps != held as u64 * u64::from(self.lanes)
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
    let strides: Vec<Vec<isize>> = operands().map(|o| o.strides.to_vec()).collect();
    let last = body.shape.rank() - 1;
    let whole = Axes { sizes: body.shape.to_vec(), strides };
    let of_elements: Vec<usize> =
        (0..whole.strides.len()).filter(|&i| whole.strides[i][last] != 0).collect();
    let dtypes: Vec<DType> = operands().map(|o| o.aval.dtype).collect();
    let own: Vec<DType> = of_elements.iter().map(|&i| dtypes[i]).collect();
    let count = whole.of(of_elements).vector(&own, target.vector_bytes);
    let length = body.shape[last];
    let rows = body.shape.size() / length;
    let spread = Spread::of(rows as u64, length as u64, count, target);

    let k = Draft::new("rows", spread.block, segment, target)?;
    let views = [k.inputs(segment, 0), k.outputs(segment)].concat();
    let outer: Vec<&[isize]> = whole.strides.iter().map(|s| &s[..last]).collect();
    let outer = Axes::joined(&body.shape[..last], &outer);
    let along: Vec<isize> = whole.strides.iter().map(|s| s[last]).collect();
    let scalars = k.scalars(body);
    let shared: Vec<Shared> = match spread.lanes {
        1 => Vec::new(),
        _ => (folds.iter())
            .map(|fold| k.shared(Ty::of(body.dtype_of(fold.input)), spread.block))
            .collect(),
    };
    let (walk, to_next) = (k.walk(&outer), k.strides(&along));
    let [steps, last_step] = [spread.steps, spread.steps - 1].map(|n| k.size(n as i64, Ty::U32));
    let last_row = k.extent(spread.rows - 1);
    let given = Given {
        k: &k,
        body,
        folds,
        scalars,
        spread,
        views,
        walk,
        along,
        to_next,
        steps,
        last_step,
        last_row,
        shared,
    };
    let blocks = spread.rows.div_ceil(u64::from(spread.rows_a_block()));
    k.blocks(blocks, |block| {
        Row::new(&given, block).run(segment.inputs.len());
        if !given.shared.is_empty() {
            k.barrier();
        }
    });
    k.launch_blocks(blocks)
}

/// What is the same for all rows.
struct Given<'k, 'a> {
    k: &'k Draft,
    body: &'a Body,
    folds: &'a [Fold],
    scalars: Vec<Number<'k>>,
    spread: Spread,
    /// The inputs and then the outputs.
    views: Vec<View<'k>>,
    /// How rows are walked, for each operand.
    walk: Walk<'k>,
    /// Each operand's stride along the row: 0 where it has a value a row.
    along: Vec<isize>,
    to_next: Vec<Val<'k>>,
    /// How many steps a row has, and the last step and row.
    steps: Val<'k>,
    last_step: Val<'k>,
    last_row: Val<'k>,
    /// Shared memory of each fold, where a row has several threads.
    shared: Vec<Shared>,
}

/// A row that a thread has a part of.
struct Row<'k, 'a> {
    given: &'a Given<'k, 'a>,
    /// Whether a register has a value an element.
    of_elements: Vec<bool>,
    /// The thread's number among those of its row, and in the block.
    lane: Val<'k>,
    thread: Val<'k>,
    /// Whether there is such a row; nothing where there always is. Else it is the last again.
    is_there: Option<Val<'k>>,
    /// Where each operand's row starts.
    starts: Vec<Val<'k>>,
    /// What is known of the row, by register.
    once: Vec<Option<Number<'k>>>,
    /// What is known of each step's elements, by register.
    each: Vec<Vec<Option<Vec<Number<'k>>>>>,
}

impl<'k, 'a> Row<'k, 'a> {
    /// The thread's row among those of `block`.
    fn new(given: &'a Given<'k, 'a>, block: Val<'k>) -> Self {
        let Given { k, body, spread, along, scalars, .. } = given;
        let thread = k.thread();
        let (own, lane) = (thread / spread.lanes, thread % spread.lanes);
        let mut row = block * spread.rows_a_block() + k.as_index(own);
        let mut is_there = None;
        if !spread.rows.is_multiple_of(u64::from(spread.rows_a_block())) {
            is_there = Some(row.le(given.last_row));
            row = row.min(given.last_row);
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
        let each = vec![vec![None; spread.held()]; registers];
        let index = unflatten(row, &given.walk.sizes);
        let starts = (given.views.iter().zip(&given.walk.strides))
            .map(|(view, strides)| view.at(&index, strides))
            .collect();
        Row { given, of_elements, lane, thread, is_there, starts, once, each }
    }

    /// Where the elements of a step start along the row; steps after the last start with it.
    fn place(&self, step: usize) -> Val<'k> {
        let spread = &self.given.spread;
        let mut at = self.lane + step as u32 * spread.lanes;
        if spread.may_be_out(step) {
            at = at.min(self.given.last_step);
        }
        self.given.k.as_index(at * spread.count)
    }

    /// Whether a step is in the row; nothing where each thread has it.
    fn is_in(&self, step: usize) -> Option<Val<'k>> {
        let spread = &self.given.spread;
        let at = || self.lane + step as u32 * spread.lanes;
        spread.may_be_out(step).then(|| at().lt(self.given.steps))
    }

    /// Computes the row, whose outputs come after so many inputs.
    fn run(&mut self, inputs: usize) {
        for number in 0..self.given.folds.len() {
            let value = self.folded(number);
            let register = self.given.body.inputs.len() - self.given.folds.len() + number;
            let dtype = self.given.body.inputs[register];
            self.once[register] = Some(value.rounded(dtype));
        }
        // Everything is computed before the first store, so that no load waits for one.
        let mut values = Vec::new();
        for (&register, along) in self.given.body.outputs.iter().zip(&self.given.along[inputs..]) {
            values.push(match along {
                0 => vec![vec![self.of_row(register)]],
                _ => {
                    (0..self.given.spread.held()).map(|step| self.of_step(register, step)).collect()
                }
            });
        }
        self.given.k.when_any(self.is_there, || {
            for (i, steps) in values.into_iter().enumerate() {
                self.store(inputs + i, steps);
            }
        });
    }

    fn store(&self, operand: usize, steps: Vec<Vec<Number<'k>>>) {
        let (k, view, start) = (self.given.k, self.given.views[operand], self.starts[operand]);
        if self.given.along[operand] == 0 {
            return k.when(self.lane.eq(0), || view.store_at(start, &steps[0]));
        }
        for (step, numbers) in steps.into_iter().enumerate() {
            let at = place(start, &[self.place(step)], &self.given.to_next[operand..=operand]);
            k.when_any(self.is_in(step), || view.store_at(at, &numbers));
        }
    }

    /// A register that has one value a row.
    fn of_row(&mut self, register: Reg) -> Number<'k> {
        let at = usize::from(register);
        if let Some(known) = self.once[at] {
            return known;
        }
        let value = match self.code(at) {
            None => self.given.views[at].buf.load_number(self.starts[at]),
            Some(code) => {
                let instr = &self.given.body.code[code];
                let args: Vec<Number<'k>> =
                    instr.args.iter().map(|&arg| self.of_row(arg)).collect();
                self.given.k.instruction(self.given.body, instr, &args, self.then(register))
            }
        };
        self.once[at] = Some(value);
        value
    }

    /// A register's values for the elements of a step.
    fn of_step(&mut self, register: Reg, step: usize) -> Vec<Number<'k>> {
        let (at, count) = (usize::from(register), self.given.spread.count);
        if !self.of_elements[at] {
            return vec![self.of_row(register); count as usize];
        }
        if let Some(known) = &self.each[at][step] {
            return known.clone();
        }
        let values: Vec<Number<'k>> = match self.code(at) {
            None => {
                let to_next = &self.given.to_next[at..=at];
                let start = place(self.starts[at], &[self.place(step)], to_next);
                self.given.views[at].load_at(start, false, count)
            }
            Some(code) => {
                let instr = &self.given.body.code[code];
                let then = self.then(register);
                let args: Vec<Vec<Number<'k>>> =
                    instr.args.iter().map(|&arg| self.of_step(arg, step)).collect();
                (0..count as usize)
                    .map(|lane| {
                        let own: Vec<Number<'k>> = args.iter().map(|list| list[lane]).collect();
                        self.given.k.instruction(self.given.body, instr, &own, then)
                    })
                    .collect()
            }
        };
        self.each[at][step] = Some(values.clone());
        values
    }

    fn then(&self, register: Reg) -> Then {
        let folded = self.given.folds.iter().any(|fold| fold.input == register);
        match folded || self.given.body.reads(register) {
            true => Then::Read,
            false => Then::Stored,
        }
    }

    /// Which instruction gives a register; none where an input does.
    fn code(&self, register: usize) -> Option<usize> {
        register.checked_sub(self.given.body.inputs.len() + self.given.body.scalars.len())
    }

    /// The result of a fold, in every thread of the row.
    fn folded(&mut self, number: usize) -> Number<'k> {
        let Fold { kind, input } = self.given.folds[number];
        let dtype = self.given.body.dtype_of(input);
        let identity = self.given.k.identity(kind, dtype);
        // Neighbours are folded apart, so that no sum waits for the one before.
        let mut totals: Vec<Option<Number<'k>>> = vec![None; self.given.spread.count as usize];
        let steps: Vec<Vec<Number<'k>>> =
            (0..self.given.spread.held()).map(|step| self.of_step(input, step)).collect();
        for (step, values) in steps.into_iter().enumerate() {
            let is_in = self.is_in(step);
            for (total, value) in totals.iter_mut().zip(values) {
                let value = is_in.map_or(value, |is_in| is_in.choose(value, identity));
                *total = Some(total.map_or(value, |known| known.fold(kind, dtype, value)));
            }
        }
        let mut totals: Vec<Number<'k>> = totals.into_iter().flatten().collect();
        while totals.len() > 1 {
            let others = totals.split_off(totals.len() / 2);
            let pairs = totals.into_iter().zip(others);
            totals = pairs.map(|(x, y)| x.fold(kind, dtype, y)).collect();
        }
        let own = totals.first().copied().unwrap_or(identity);
        match self.given.shared.get(number) {
            Some(&shared) => self.across(number, own, shared),
            None => own,
        }
    }

    /// Folds the values of the row's threads.
    fn across(&self, number: usize, own: Number<'k>, shared: Shared) -> Number<'k> {
        let (k, thread) = (self.given.k, self.thread);
        let Fold { kind, input } = self.given.folds[number];
        let dtype = self.given.body.dtype_of(input);
        // Some values, so far apart, of which there is one at least.
        let folded = |first: Val<'k>, count: u32, apart: u32| -> Number<'k> {
            let load = |i| Number::Real(shared.load(first + i * apart));
            (1..count).fold(load(0), |total, i| total.fold(kind, dtype, load(i)))
        };
        shared.store(thread, own.real());
        k.barrier();
        let first = thread - self.lane;
        let mut left = self.given.spread.lanes;
        while left > RADIX {
            let next = left.div_ceil(RADIX);
            k.when(self.lane.lt(next), || {
                let total = folded(thread, left / next, next);
                shared.store(thread, total.real());
            });
            k.barrier();
            left = next;
        }
        folded(first, left, 1)
    }
}
