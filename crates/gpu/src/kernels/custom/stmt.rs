//! Statements of the common language, and places.

use cupola_core::backend::Operand;
use cupola_core::prim::call::language::{self, Expr, Kind, Place, Pos, Scalar, Stmt};
use cupola_core::{DType, Error};

use super::super::{BufferRef, Draft, Missing, Program};
use super::{Grid, access, dtype};
use crate::ir::{Buf, Local, Shared, Ty, Val, Var};

/// An array of the kernel.
struct Bound<'k> {
    buf: Buf,
    offset: Val<'k>,
    len: usize,
}

/// Writes a kernel of the common language.
pub struct Writer<'k, 'a> {
    pub k: &'k Draft,
    pub out: &'a mut Program,
    pub name: &'static str,
    pub source: &'a language::Program,
    pub grid: &'a Grid<'k>,
    pub places: &'a [(BufferRef, Operand)],
    arrays: Vec<Bound<'k>>,
    /// Variables that change, and values that do not, by the number of the variable.
    variables: Vec<Option<Var<'k>>>,
    values: Vec<Option<Val<'k>>>,
    /// What those values are below.
    pub limits: Vec<Option<u64>>,
    locals: Vec<Local>,
    shared: Vec<Shared>,
    /// Functions that are being written: how many loops are open in each, and what tells their loops to end.
    functions: Vec<(usize, Option<Var<'k>>)>,
    faults: Option<Buf>,
}

/// A place whose index is computed.
pub enum At<'k> {
    Variable(usize),
    Array(usize, Val<'k>, Option<Val<'k>>),
    Local(usize, Val<'k>, Option<Val<'k>>),
    Shared(usize, Val<'k>, Option<Val<'k>>),
}

impl<'k, 'a> Writer<'k, 'a> {
    /// Binds the arrays.
    pub fn new(
        k: &'k Draft,
        out: &'a mut Program,
        name: &'static str,
        source: &'a language::Program,
        grid: &'a Grid<'k>,
        places: &'a [(BufferRef, Operand)],
    ) -> Result<Self, Missing> {
        if source.has_barriers && grid.inside.is_some() {
            let message =
                "its threads wait for each other, and the grid is no multiple of the threadgroup";
            return Err(Missing(message.into()));
        }
        let bind = |(number, (buffer, operand)): (usize, &(BufferRef, Operand))| {
            let array = &source.arrays[number];
            let access = access(number < source.inputs, array.is_atomic);
            let view = match *buffer {
                BufferRef::Scratch(scratch) => k.scratch(scratch, operand.aval.dtype, access),
                other => k.view(other, operand.aval.dtype, access),
            };
            Bound { buf: view.buf, offset: view.offset, len: operand.aval.shape.size() }
        };
        let arrays = places.iter().enumerate().map(bind).collect();
        let memory = |m: &language::Memory| match Ty::of(dtype(m.scalar)) {
            Ty::Bool => (Ty::U32, m.len),
            ty => (ty, m.len),
        };
        let locals = source.locals.iter().map(memory).map(|(ty, len)| k.local(ty, len)).collect();
        let shared: Vec<Shared> =
            source.shared.iter().map(memory).map(|(ty, len)| k.shared(ty, len)).collect();
        let bytes: u64 = shared.iter().map(|s| u64::from(s.len) * s.ty.size() as u64).sum();
        if bytes > k.target.shared_bytes.into() {
            let most = k.target.shared_bytes;
            return Err(Missing(format!("a threadgroup shares {bytes} bytes: {most} is the most")));
        }
        let count = source.variables.len();
        Ok(Writer {
            k,
            out,
            name,
            source,
            grid,
            places,
            arrays,
            variables: vec![None; count],
            values: vec![None; count],
            limits: vec![None; count],
            locals,
            shared,
            functions: Vec::new(),
            faults: None,
        })
    }

    /// Writes the whole kernel.
    pub fn write(mut self) -> Result<(), Missing> {
        let source = self.source;
        if let Some(inside) = self.grid.inside {
            self.k.when(!inside, || self.k.quit());
        }
        for (number, variable) in source.variables.iter().enumerate() {
            if !variable.is_constant {
                let ty = Ty::of(dtype(variable.scalar));
                self.needs(ty);
                self.variables[number] = Some(self.k.var(self.k.int(0, ty)));
            }
        }
        self.list(&source.body);
        Ok(())
    }

    /// Notes that the device has no such values.
    pub fn needs(&self, ty: Ty) {
        let missing = match ty {
            Ty::I64 | Ty::U64 => !self.k.target.int64,
            Ty::F64 => !self.k.target.float64,
            Ty::Bool | Ty::I32 | Ty::U32 | Ty::F32 => false,
        };
        if missing {
            self.k.fail(Missing(format!("the device has no {ty:?}")));
        }
    }

    fn list(&mut self, list: &'a [Stmt]) {
        list.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        let k = self.k;
        match stmt {
            Stmt::Do(expr) => {
                self.expr(expr);
            }
            Stmt::If(condition, then, other) => {
                let holds = self.expr(condition);
                // Both closures write with the same writer, one after the other.
                let writer = std::cell::RefCell::new(&mut *self);
                k.either(
                    holds,
                    || writer.borrow_mut().list(then),
                    || writer.borrow_mut().list(other),
                );
            }
            Stmt::Loop { condition, runs_once, step, body, .. } => {
                self.rounds(condition.as_ref(), *runs_once, step, body);
            }
            Stmt::Break => k.leave(),
            Stmt::Continue => k.again(),
            Stmt::Return => match self.functions.last() {
                None => k.quit(),
                Some((0, _)) => k.leave(),
                Some((_, left)) => {
                    if let Some(left) = left {
                        left.set(k.bool(true));
                    }
                    k.leave();
                }
            },
            Stmt::Barrier(_) => k.barrier(),
        }
    }

    fn rounds(
        &mut self,
        condition: Option<&'a Expr>,
        runs_once: bool,
        step: &'a [Expr],
        body: &'a [Stmt],
    ) {
        let k = self.k;
        // What runs between rounds stands before the condition where a round may be cut short.
        let before = runs_once || !step.is_empty() && cuts(body);
        let first = before.then(|| k.var(k.bool(true)));
        if let Some((open, _)) = self.functions.last_mut() {
            *open += 1;
        }
        let writer = std::cell::RefCell::new(&mut *self);
        k.repeat(
            || {
                let mut writer = writer.borrow_mut();
                let Some(first) = first else {
                    return match condition {
                        Some(condition) => writer.expr(condition),
                        None => k.bool(true),
                    };
                };
                let holds = k.var(k.bool(true));
                let again = !first.get();
                first.set(k.bool(false));
                if runs_once {
                    k.when(again, || {
                        step.iter().for_each(|expr| {
                            writer.expr(expr);
                        });
                        if let Some(condition) = condition {
                            holds.set(writer.expr(condition));
                        }
                    });
                } else {
                    k.when(again, || {
                        step.iter().for_each(|expr| {
                            writer.expr(expr);
                        });
                    });
                    if let Some(condition) = condition {
                        holds.set(writer.expr(condition));
                    }
                }
                holds.get()
            },
            || {
                let mut writer = writer.borrow_mut();
                writer.list(body);
                if !before {
                    step.iter().for_each(|expr| {
                        writer.expr(expr);
                    });
                }
            },
        );
        if let Some((open, left)) = self.functions.last_mut() {
            *open -= 1;
            if let Some(left) = left {
                k.when(left.get(), || k.leave());
            }
        }
    }

    /// A call of a function: its body, in place.
    pub fn call(&mut self, number: usize, arguments: &'a [Expr]) -> Val<'k> {
        let (k, source) = (self.k, self.source);
        let function = &source.functions[number];
        let values: Vec<Val<'k>> = arguments.iter().map(|argument| self.expr(argument)).collect();
        for (&parameter, value) in function.parameters.iter().zip(values) {
            self.set(parameter, value);
        }
        match function.body.split_last() {
            Some((Stmt::Return, rest)) if !returns(rest) => self.list(rest),
            _ if !returns(&function.body) => self.list(&function.body),
            _ => {
                let left = k.var(k.bool(false));
                self.functions.push((0, Some(left)));
                let writer = std::cell::RefCell::new(&mut *self);
                k.repeat(
                    || k.bool(true),
                    || {
                        writer.borrow_mut().list(&function.body);
                        k.leave();
                    },
                );
                self.functions.pop();
            }
        }
        match function.result {
            Some(result) => self.get(result),
            None => k.bool(false),
        }
    }

    /// What a variable holds.
    pub fn get(&self, number: usize) -> Val<'k> {
        match (self.variables[number], self.values[number]) {
            (Some(variable), _) => variable.get(),
            (None, Some(value)) => value,
            (None, None) => self.k.int(0, Ty::of(dtype(self.source.variables[number].scalar))),
        }
    }

    /// Changes a variable, or names a value.
    pub fn set(&mut self, number: usize, value: Val<'k>) {
        match self.variables[number] {
            Some(variable) => variable.set(value),
            None => self.values[number] = Some(value),
        }
    }

    /// What an index that is computed for a place comes to, and whether it is within it: so many elements, of
    /// which some come before the one at 0.
    fn checked(
        &mut self,
        index: &'a Expr,
        [before, len]: [usize; 2],
        array: &str,
        ty: Ty,
    ) -> (Val<'k>, Option<Val<'k>>) {
        let raw = self.expr(index);
        if self.below(index).is_some_and(|below| below <= (len - before) as u64) {
            return (raw.convert(ty), None);
        }
        let k = self.k;
        let wide = if matches!(raw.ty, Ty::I32 | Ty::U32) { Ty::U32 } else { Ty::U64 };
        let most = if wide == Ty::U32 { len.min(u32::MAX as usize) } else { len };
        let from_first = match before {
            0 => raw.convert(wide),
            _ => raw.convert(wide) + k.size(before as i64, wide),
        };
        let within = from_first.lt(k.size(most as i64, wide));
        let fault = self.fault(index.at, array, len);
        let faults = match self.faults {
            Some(faults) => faults,
            None => *self.faults.insert(k.faults()),
        };
        k.when(!within, || faults.store(k.u32(0), fault));
        (within.select(raw, 0).convert(ty), Some(within))
    }

    fn fault(&mut self, at: Pos, array: &str, len: usize) -> Val<'k> {
        let elements = if len == 1 { "element" } else { "elements" };
        let detail = format!("{at}: an index is outside '{array}', which has {len} {elements}");
        self.out.faults.push(Error::index(self.name, detail));
        self.k.arg_of(super::Arg::Fault(self.out.faults.len() - 1))
    }

    /// A place with its index.
    pub fn place(&mut self, place: &'a Place) -> At<'k> {
        let source = self.source;
        match place {
            Place::Variable(number) => At::Variable(*number),
            Place::Array(number, index) => {
                let Bound { offset, len, .. } = self.arrays[*number];
                let reach = if self.is_strided(*number) { self.reach(*number) } else { [0, len] };
                let (at, within) =
                    self.checked(index, reach, &source.arrays[*number].name, self.k.index);
                At::Array(*number, offset + at, within)
            }
            Place::Local(number, index) => {
                let memory = &source.locals[*number];
                let (at, within) =
                    self.checked(index, [0, memory.len as usize], &memory.name, Ty::U32);
                At::Local(*number, at, within)
            }
            Place::Shared(number, index) => {
                let memory = &source.shared[*number];
                let (at, within) =
                    self.checked(index, [0, memory.len as usize], &memory.name, Ty::U32);
                At::Shared(*number, at, within)
            }
        }
    }

    fn is_strided(&self, number: usize) -> bool {
        let operand = &self.places[number].1;
        !cupola_core::is_row_major(&operand.aval.shape, &operand.strides)
    }

    /// How many elements a strided array reaches over before its first, and in all.
    fn reach(&self, number: usize) -> [usize; 2] {
        let span = super::super::view::span(&self.places[number].1);
        span.map_or([0, 0], |(low, high)| [low.unsigned_abs(), (high - low).unsigned_abs() + 1])
    }

    /// The elements of a place.
    pub fn scalar(&self, at: &At<'k>) -> Scalar {
        match *at {
            At::Variable(number) => self.source.variables[number].scalar,
            At::Array(number, ..) => self.source.arrays[number].scalar,
            At::Local(number, ..) => self.source.locals[number].scalar,
            At::Shared(number, ..) => self.source.shared[number].scalar,
        }
    }

    /// What is there.
    pub fn load(&self, at: &At<'k>) -> Val<'k> {
        let bool_of = |v: Val<'k>, scalar| if scalar == Scalar::Bool { v.ne(0) } else { v };
        let scalar = self.scalar(at);
        match *at {
            At::Variable(number) => self.get(number),
            At::Array(number, at, _) => self.arrays[number].buf.load(at),
            At::Local(number, at, _) => bool_of(self.locals[number].load(at), scalar),
            At::Shared(number, at, _) => bool_of(self.shared[number].load(at), scalar),
        }
    }

    /// Changes what is there.
    pub fn store(&mut self, at: &At<'k>, value: Val<'k>) {
        let k = self.k;
        let word = |v: Val<'k>| if v.ty == Ty::Bool { v.convert(Ty::U32) } else { v };
        match *at {
            At::Variable(number) => self.set(number, value),
            At::Array(number, at, within) => {
                let buf = self.arrays[number].buf;
                k.when_any(within, || buf.store(at, value));
            }
            At::Local(number, at, within) => {
                let array = self.locals[number];
                let value = word(value);
                k.when_any(within, || array.store(at, value));
            }
            At::Shared(number, at, within) => {
                let array = self.shared[number];
                let value = word(value);
                k.when_any(within, || array.store(at, value));
            }
        }
    }

    /// The buffer of an array.
    pub fn buf(&self, number: usize) -> Buf {
        self.arrays[number].buf
    }

    /// The dtype of a scalar that is narrower than its register.
    pub fn narrow(&self, scalar: Scalar, value: Val<'k>) -> Val<'k> {
        match dtype(scalar) {
            own @ (DType::F16 | DType::BF16) => value.rounded(own),
            own => value.wrapped(own),
        }
    }
}

/// Whether a round of a loop may end early: by a `continue` that is not of a loop within.
fn cuts(list: &[Stmt]) -> bool {
    list.iter().any(|stmt| match stmt {
        Stmt::Continue => true,
        Stmt::If(_, then, other) => cuts(then) || cuts(other),
        Stmt::Do(_) | Stmt::Loop { .. } | Stmt::Break | Stmt::Return | Stmt::Barrier(_) => false,
    })
}

/// Whether a function may be left here.
fn returns(list: &[Stmt]) -> bool {
    list.iter().any(|stmt| match stmt {
        Stmt::Return => true,
        Stmt::If(_, then, other) => returns(then) || returns(other),
        Stmt::Loop { body, .. } => returns(body),
        Stmt::Do(_) | Stmt::Break | Stmt::Continue | Stmt::Barrier(_) => false,
    })
}

/// Whether computing an expression changes nothing and cannot go wrong, so that it may be computed where its value
/// is not needed.
pub fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) | Kind::Builtin(..) | Kind::Load(Place::Variable(_)) => true,
        Kind::Unary(_, x) | Kind::Convert(_, x) | Kind::Bits(x) | Kind::Narrow(_, x) => is_plain(x),
        Kind::Binary(_, a, b) | Kind::Compare(_, a, b) | Kind::And(a, b) | Kind::Or(a, b) => {
            is_plain(a) && is_plain(b)
        }
        Kind::Select(a, b, c) => is_plain(a) && is_plain(b) && is_plain(c),
        Kind::Load(_)
        | Kind::Shape(..)
        | Kind::Stride(..)
        | Kind::Location(..)
        | Kind::Math(..)
        | Kind::Assign { .. }
        | Kind::Atomic(..)
        | Kind::Swap(..)
        | Kind::Call(..) => false,
    }
}
