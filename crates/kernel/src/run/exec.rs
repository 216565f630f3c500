//! Statements and expressions, for all threads of a group.

use super::memory::Places;
use super::{Run, compute};
use crate::error::{Error, Pos};
use crate::tree::{Builtin, Expr, Kind, Program, Stmt};
use crate::types::Ty;

/// The threads that run at once.
pub struct Lanes<'a, 'b> {
    pub program: &'a Program,
    run: &'a Run<'a>,
    pub inputs: &'a [&'a [u8]],
    pub outputs: &'a mut [&'b mut [u8]],
    /// Elements of every array.
    pub lens: Vec<usize>,
    /// How many threads there are, and for how many there is room.
    pub count: usize,
    pub width: usize,
    pub positions: Vec<[usize; 3]>,
    /// The threads that are here.
    pub active: Vec<bool>,
    /// A column for every variable.
    pub variables: Vec<Vec<u64>>,
    pub locals: Vec<Vec<u64>>,
    pub shared: Vec<Vec<u64>>,
    /// Those that left the kernel or the function.
    gone: Vec<Vec<bool>>,
    /// Those that left the round, and those that left the loop, of each open loop.
    rounds: Vec<[Vec<bool>; 2]>,
    /// Columns that nobody needs.
    spare: Vec<Vec<u64>>,
    asked: u32,
}

impl<'a, 'b> Lanes<'a, 'b> {
    pub fn new(
        program: &'a Program,
        run: &'a Run<'a>,
        inputs: &'a [&'a [u8]],
        outputs: &'a mut [&'b mut [u8]],
    ) -> Self {
        Lanes {
            program,
            run,
            inputs,
            outputs,
            lens: run.shapes.iter().map(|shape| shape.iter().product()).collect(),
            count: 0,
            width: 0,
            positions: Vec::new(),
            active: Vec::new(),
            variables: vec![Vec::new(); program.variables.len()],
            locals: vec![Vec::new(); program.locals.len()],
            shared: vec![Vec::new(); program.shared.len()],
            gone: Vec::new(),
            rounds: Vec::new(),
            spare: Vec::new(),
            asked: 0,
        }
    }

    /// Runs the threads of a group, from a corner to before another.
    pub fn group(&mut self, first: [usize; 3], ends: [usize; 3]) -> Result<(), Error> {
        let mut positions = Vec::new();
        for z in first[2]..ends[2] {
            for y in first[1]..ends[1] {
                positions.extend((first[0]..ends[0]).map(|x| [x, y, z]));
            }
        }
        self.start(positions)
    }

    /// Runs threads from the beginning.
    pub fn start(&mut self, positions: impl IntoIterator<Item = [usize; 3]>) -> Result<(), Error> {
        self.positions.clear();
        self.positions.extend(positions);
        self.count = self.positions.len();
        self.width = self.width.max(self.count);
        self.spare.retain(|column| column.len() == self.count);
        let width = self.width;
        self.active = vec![true; self.count];
        self.gone = vec![vec![false; self.count]];
        self.rounds.clear();
        for column in &mut self.variables {
            column.clear();
            column.resize(width, 0);
        }
        for (memory, known) in self.locals.iter_mut().zip(&self.program.locals) {
            memory.clear();
            memory.resize(known.len as usize * width, 0);
        }
        for (memory, known) in self.shared.iter_mut().zip(&self.program.shared) {
            memory.clear();
            memory.resize(known.len as usize, 0);
        }
        self.ask()?;
        self.list(&self.program.body)
    }

    fn ask(&mut self) -> Result<(), Error> {
        self.asked = self.asked.wrapping_add(1);
        if self.asked.is_multiple_of(16) && self.run.goes_on.is_some_and(|goes_on| !goes_on()) {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// A column to write to.
    pub fn column(&mut self) -> Vec<u64> {
        self.spare.pop().unwrap_or_else(|| vec![0; self.count])
    }

    fn free(&mut self, column: Vec<u64>) {
        self.spare.push(column);
    }

    fn any(&self) -> bool {
        self.active.contains(&true)
    }

    fn list(&mut self, list: &'a [Stmt]) -> Result<(), Error> {
        for stmt in list {
            if !self.any() {
                return Ok(());
            }
            self.stmt(stmt)?;
        }
        Ok(())
    }

    /// Keeps those threads here for which a column holds; gives those that were here before.
    fn keep(&mut self, column: &[u64], wanted: bool) -> Vec<bool> {
        let before = self.active.clone();
        for (active, &bits) in self.active.iter_mut().zip(column) {
            *active &= (bits != 0) == wanted;
        }
        before
    }

    /// Nobody is here any more; gives who was.
    fn leave(&mut self) -> Vec<bool> {
        let none = vec![false; self.count];
        std::mem::replace(&mut self.active, none)
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<(), Error> {
        match stmt {
            Stmt::Do(expr) => {
                let column = self.eval(expr)?;
                self.free(column);
            }
            Stmt::If(condition, then, other) => {
                let holds = self.eval(condition)?;
                let before = self.keep(&holds, true);
                self.list(then)?;
                let after = std::mem::replace(&mut self.active, before);
                self.keep(&holds, false);
                self.list(other)?;
                join(&mut self.active, &after);
                self.free(holds);
            }
            Stmt::Loop { condition, runs_once, step, body, at } => {
                self.rounds(condition.as_ref(), *runs_once, step, body, *at)?;
            }
            Stmt::Break => {
                let here = self.leave();
                if let Some([_, left]) = self.rounds.last_mut() {
                    join(left, &here);
                }
            }
            Stmt::Continue => {
                let here = self.leave();
                if let Some([resting, _]) = self.rounds.last_mut() {
                    join(resting, &here);
                }
            }
            Stmt::Return => {
                let here = self.leave();
                if let Some(gone) = self.gone.last_mut() {
                    join(gone, &here);
                }
            }
            Stmt::Barrier(at) => self.barrier(*at)?,
        }
        Ok(())
    }

    fn barrier(&self, at: Pos) -> Result<(), Error> {
        let gone = &self.gone[0];
        let rest = gone.iter().filter(|&&gone| !gone).count();
        let here = self.active.iter().filter(|&&active| active).count();
        if here == rest {
            return Ok(());
        }
        let message = format!("only {here} of {rest} threads of a threadgroup reach this barrier");
        Err(Error::Run { at, message })
    }

    fn rounds(
        &mut self,
        condition: Option<&'a Expr>,
        runs_once: bool,
        step: &'a [Expr],
        body: &'a [Stmt],
        at: Pos,
    ) -> Result<(), Error> {
        let none = vec![false; self.count];
        self.rounds.push([none.clone(), none.clone()]);
        let mut done = none;
        let mut round: u64 = 0;
        while self.any() {
            if let Some(condition) = condition
                && !(runs_once && round == 0)
            {
                let holds = self.eval(condition)?;
                let before = self.keep(&holds, true);
                for ((done, before), active) in done.iter_mut().zip(before).zip(&self.active) {
                    *done |= before && !active;
                }
                self.free(holds);
                if !self.any() {
                    break;
                }
            }
            if round == self.run.rounds {
                let message = format!("this loop has not ended after {round} rounds");
                return Err(Error::Run { at, message });
            }
            round += 1;
            self.ask()?;
            self.list(body)?;
            if let Some([resting, _]) = self.rounds.last_mut() {
                join(&mut self.active, resting);
                resting.fill(false);
            }
            for expr in step {
                let column = self.eval(expr)?;
                self.free(column);
            }
        }
        if let Some([_, left]) = self.rounds.pop() {
            join(&mut self.active, &left);
        }
        join(&mut self.active, &done);
        Ok(())
    }

    fn map(&mut self, x: &'a Expr, f: fn(u64) -> u64) -> Result<Vec<u64>, Error> {
        let mut column = self.eval(x)?;
        column.iter_mut().for_each(|v| *v = f(*v));
        Ok(column)
    }

    fn zip(&mut self, a: &'a Expr, b: &'a Expr, f: fn(u64, u64) -> u64) -> Result<Vec<u64>, Error> {
        let mut column = self.eval(a)?;
        let other = self.eval(b)?;
        column.iter_mut().zip(&other).for_each(|(a, &b)| *a = f(*a, b));
        self.free(other);
        Ok(column)
    }

    /// The value of an expression for every thread; of those that are not here anything.
    pub fn eval(&mut self, expr: &'a Expr) -> Result<Vec<u64>, Error> {
        match &expr.kind {
            Kind::Literal(bits) => {
                let mut column = self.column();
                column.fill(*bits);
                Ok(column)
            }
            Kind::Load(place) => {
                let places = self.places(place)?;
                let found = self.load(&places);
                self.done(places);
                Ok(found)
            }
            Kind::Builtin(builtin, axis) => Ok(self.builtin(*builtin, *axis)),
            Kind::Shape(array, axis) => self.axes(*array, axis, expr.at, false),
            Kind::Stride(array, axis) => self.axes(*array, axis, expr.at, true),
            // What the interpreter is given lies in order.
            Kind::Location(_, element) => self.eval(element),
            Kind::Unary(op, x) => self.map(x, compute::unary(*op, expr.ty)),
            Kind::Binary(op, a, b) => self.zip(a, b, compute::binary(*op, expr.ty)),
            Kind::Compare(op, a, b) => self.zip(a, b, compute::compare(*op, a.ty)),
            Kind::And(a, b) => self.shortened(a, b, true),
            Kind::Or(a, b) => self.shortened(a, b, false),
            Kind::Select(condition, first, other) => {
                let holds = self.eval(condition)?;
                let before = self.keep(&holds, true);
                let mut found = if self.any() { self.eval(first)? } else { self.column() };
                self.active.clone_from(&before);
                self.keep(&holds, false);
                if self.any() {
                    let other = self.eval(other)?;
                    for ((found, &other), &bits) in found.iter_mut().zip(&other).zip(&holds) {
                        *found = if bits != 0 { *found } else { other };
                    }
                    self.free(other);
                }
                self.active = before;
                self.free(holds);
                Ok(found)
            }
            Kind::Convert(to, x) => self.map(x, compute::convert(x.ty, *to)),
            Kind::Bits(x) => self.eval(x),
            Kind::Narrow(scalar, x) => self.map(x, compute::narrow(*scalar)),
            Kind::Math(op, arguments) => {
                let ty = arguments.first().map_or(Ty::F32, |x| x.ty);
                let f = compute::math(*op, ty);
                let mut columns = Vec::new();
                for argument in arguments {
                    columns.push(self.eval(argument)?);
                }
                let mut found = self.column();
                let at = |which: usize, lane: usize| columns.get(which).map_or(0, |c| c[lane]);
                for (lane, found) in found.iter_mut().enumerate() {
                    *found = f(at(0, lane), at(1, lane), at(2, lane));
                }
                columns.into_iter().for_each(|column| self.free(column));
                Ok(found)
            }
            Kind::Assign { place, value, operation, gives_old } => {
                let places = self.places(place)?;
                let mut value = self.eval(value)?;
                let mut old = None;
                if let Some((op, ty)) = operation {
                    let before = self.load(&places);
                    let to = compute::convert(expr.ty, ty.scalar());
                    let back = compute::convert(*ty, self.scalar(&places));
                    let f = compute::binary(*op, *ty);
                    value.iter_mut().zip(&before).for_each(|(v, &b)| *v = back(f(to(b), *v)));
                    if *gives_old {
                        old = Some(before);
                    } else {
                        self.free(before);
                    }
                }
                self.store(&places, &mut value);
                self.done(places);
                Ok(match old {
                    Some(old) => {
                        self.free(value);
                        old
                    }
                    None => value,
                })
            }
            Kind::Atomic(op, place, value) => {
                let places = self.places(place)?;
                let values = self.eval(value)?;
                let of = compute::atomic(*op, expr.ty);
                let found = self.exchange(&places, |lane, old| of(old, values[lane]));
                self.free(values);
                self.done(places);
                Ok(found)
            }
            Kind::Swap(place, expected, value) => {
                let places = self.places(place)?;
                let expected = self.eval(expected)?;
                let values = self.eval(value)?;
                let of = |lane: usize, old| if old == expected[lane] { values[lane] } else { old };
                let found = self.exchange(&places, of);
                self.free(values);
                self.free(expected);
                self.done(places);
                Ok(found)
            }
            Kind::Call(number, arguments) => self.call(*number, arguments),
        }
    }

    fn done(&mut self, places: Places) {
        match places {
            Places::Variable(_) => {}
            Places::Array(_, at) | Places::Local(_, at) | Places::Shared(_, at) => self.free(at),
        }
    }

    fn shortened(&mut self, a: &'a Expr, b: &'a Expr, is_and: bool) -> Result<Vec<u64>, Error> {
        let mut found = self.eval(a)?;
        let before = self.keep(&found, is_and);
        if self.any() {
            let second = self.eval(b)?;
            for ((found, &second), &active) in found.iter_mut().zip(&second).zip(&self.active) {
                *found = if active { second } else { *found };
            }
            self.free(second);
        }
        self.active = before;
        Ok(found)
    }

    fn call(&mut self, number: usize, arguments: &'a [Expr]) -> Result<Vec<u64>, Error> {
        let function = &self.program.functions[number];
        let mut columns = Vec::new();
        for argument in arguments {
            columns.push(self.eval(argument)?);
        }
        for (&variable, mut column) in function.parameters.iter().zip(columns) {
            self.store(&Places::Variable(variable), &mut column);
            self.free(column);
        }
        let before = self.active.clone();
        self.gone.push(vec![false; self.count]);
        self.list(&function.body)?;
        self.gone.pop();
        self.active = before;
        match function.result {
            Some(variable) => Ok(self.load(&Places::Variable(variable))),
            None => Ok(self.column()),
        }
    }

    fn builtin(&mut self, builtin: Builtin, axis: usize) -> Vec<u64> {
        let mut column = self.column();
        let (grid, group) =
            (self.run.grid.map(u64::from), self.run.threadgroup.map(|n| u64::from(n.max(1))));
        for (found, position) in column.iter_mut().zip(&self.positions) {
            let at = position[axis] as u64;
            *found = match builtin {
                Builtin::Thread => at,
                Builtin::Local => at % group[axis],
                Builtin::Group => at / group[axis],
                Builtin::GroupSize => group[axis],
                Builtin::Grid => grid[axis],
                Builtin::Groups => grid[axis].div_ceil(group[axis]),
                Builtin::Index => {
                    let [x, y, z] = [0, 1, 2].map(|axis| position[axis] as u64 % group[axis]);
                    x + group[0] * (y + group[1] * z)
                }
            };
        }
        column
    }

    fn axes(
        &mut self,
        array: usize,
        axis: &'a Expr,
        at: Pos,
        strides: bool,
    ) -> Result<Vec<u64>, Error> {
        let mut column = self.eval(axis)?;
        let shape = &self.run.shapes[array];
        for (lane, found) in column.iter_mut().enumerate() {
            let axis = *found as u32 as usize;
            if !self.active[lane] {
                continue;
            }
            let Some(&length) = shape.get(axis) else {
                let (name, rank) = (&self.program.arrays[array].name, shape.len());
                let message = format!("'{name}' has {rank} axes, none is {}", *found as i32);
                return Err(Error::Index { at, message });
            };
            let stride = || shape[axis + 1..].iter().product();
            *found = if strides { stride() } else { length } as u64;
        }
        Ok(column)
    }
}

fn join(into: &mut [bool], more: &[bool]) {
    into.iter_mut().zip(more).for_each(|(a, &b)| *a |= b);
}
