//! Calls: the language's functions, atomics, and functions of the header.

use super::value::{Value, binary, compare, convert, fit, literal, truth, unary};
use super::{Inside, Parser, Symbol, library};
use crate::error::Pos;
use crate::lex::{Token, Wrong};
use crate::tree::{
    Atomic, Binary, Compare, Expr, Function, Kind, Math, Place, Program, Unary, Variable,
};
use crate::types::{Scalar, Ty};

/// The operation of an atomic function: Metal's names, C's and CUDA's.
fn atomic(name: &str) -> Option<Atomic> {
    let plain = name.strip_suffix("_explicit").unwrap_or(name);
    let plain = plain.strip_prefix("atomic_fetch_").or(plain.strip_prefix("atomic_"));
    let plain = plain.or(name.strip_prefix("atomic"))?;
    Some(match plain {
        "add" | "Add" => Atomic::Add,
        "sub" | "Sub" => Atomic::Subtract,
        "max" | "Max" => Atomic::Max,
        "min" | "Min" => Atomic::Min,
        "and" | "And" => Atomic::And,
        "or" | "Or" => Atomic::Or,
        "xor" | "Xor" => Atomic::Xor,
        "exchange" | "Exch" | "store" => Atomic::Exchange,
        _ => return None,
    })
}

impl Parser {
    /// The arguments of a call, with where they stand.
    fn arguments(&mut self) -> Result<Vec<(Value, Pos)>, Wrong> {
        self.expect("(")?;
        let mut found = Vec::new();
        while !self.eat(")") {
            if !found.is_empty() {
                self.expect(",")?;
            }
            let at = self.pos();
            if matches!(self.peek(), Token::Name(name) if name.starts_with("memory_order")) {
                self.at += 1;
                continue;
            }
            found.push((self.assignment()?, at));
        }
        Ok(found)
    }

    fn values(&mut self, name: &str, count: usize, at: Pos) -> Result<Vec<Expr>, Wrong> {
        let arguments = self.arguments()?;
        self.counted(name, count, arguments.len(), at)?;
        arguments.into_iter().map(|(value, at)| self.value(value, at)).collect()
    }

    fn counted(&self, name: &str, count: usize, found: usize, at: Pos) -> Result<(), Wrong> {
        if found == count {
            return Ok(());
        }
        Err((at, format!("'{name}' takes {count} arguments, here are {found}")))
    }

    /// A call of a function of the language.
    pub fn function_named(&mut self, name: &str, at: Pos) -> Result<Value, Wrong> {
        if self.eat("<") {
            return self.cast(name, at);
        }
        if let Some(op) = atomic(name) {
            return self.atomic(name, op, at).map(Value::Expr);
        }
        if name == "atomicCAS" {
            return self.swap(at).map(Value::Expr);
        }
        if name.strip_suffix("_explicit").unwrap_or(name) == "atomic_compare_exchange_weak" {
            return self.compare_exchange(name, at).map(Value::Expr);
        }
        if ["atomic_load_explicit", "atomic_load"].contains(&name) {
            let [(value, here)] = self.some(name, at)?;
            let (place, scalar) = self.atomic_place(value, here)?;
            let zero = literal(0, scalar.register(), at);
            let kind = Kind::Atomic(Atomic::Or, place, Box::new(zero));
            if scalar.register().is_float() {
                return Err((at, "an atomic load is of whole numbers here".into()));
            }
            return Ok(Value::Expr(Expr { ty: scalar.register(), kind, at }));
        }
        if name == "elem_to_loc" {
            return self.location(at);
        }
        if let Some((math, count)) = Math::named(name) {
            let values = self.values(name, count, at)?;
            return Ok(Value::Expr(self.math(math, values, at)));
        }
        let two = |parser: &mut Self, op: Binary| {
            let values = parser.values(name, 2, at)?;
            let ty = values.iter().fold(Ty::Bool, |ty, v| ty.common(v.ty));
            let mut values = values.into_iter().map(|v| convert(v, ty));
            match (values.next(), values.next()) {
                (Some(a), Some(b)) => Ok(Value::Expr(binary(op, ty, a, b, at))),
                _ => Err((at, format!("'{name}' takes 2 arguments"))),
            }
        };
        match name {
            "max" | "fmax" | "fmaxf" => two(self, Binary::Max),
            "min" | "fmin" | "fminf" => two(self, Binary::Min),
            "abs" | "fabs" | "fabsf" => {
                let [x] = self.exactly(name, at)?;
                let ty = x.ty.common(x.ty);
                Ok(Value::Expr(unary(Unary::Abs, ty, x, at)))
            }
            "clamp" => {
                let [x, low, high] = self.exactly(name, at)?;
                let ty = x.ty.common(low.ty).common(high.ty);
                let above = binary(Binary::Max, ty, x, low, at);
                Ok(Value::Expr(binary(Binary::Min, ty, above, high, at)))
            }
            "select" => {
                let [other, first, condition] = self.exactly(name, at)?;
                let ty = other.ty.common(first.ty);
                let (other, first) = (convert(other, ty), convert(first, ty));
                let kind =
                    Kind::Select(Box::new(truth(condition)), Box::new(first), Box::new(other));
                Ok(Value::Expr(Expr { ty, kind, at }))
            }
            "__ones" | "__leading" | "__reversed" => {
                let [x] = self.exactly(name, at)?;
                let op = match name {
                    "__ones" => Unary::Ones,
                    "__leading" => Unary::Leading,
                    _ => Unary::Reversed,
                };
                let ty = x.ty.common(x.ty);
                self.check_bits(ty, at)?;
                Ok(Value::Expr(unary(op, ty, x, at)))
            }
            _ => self.library_call(name, at),
        }
    }

    fn exactly<const N: usize>(&mut self, name: &str, at: Pos) -> Result<[Expr; N], Wrong> {
        let values = self.values(name, N, at)?;
        values.try_into().map_err(|_| (at, format!("'{name}' takes {N} arguments")))
    }

    fn some<const N: usize>(&mut self, name: &str, at: Pos) -> Result<[(Value, Pos); N], Wrong> {
        let values = self.arguments()?;
        let found = values.len();
        let wrong = |_| (at, format!("'{name}' takes {N} arguments, here are {found}"));
        values.try_into().map_err(wrong)
    }

    fn math(&self, math: Math, values: Vec<Expr>, at: Pos) -> Expr {
        let ty = values.iter().fold(Ty::F32, |ty, v| ty.common(v.ty));
        let values = values.into_iter().map(|v| convert(v, ty)).collect();
        let ty = if math.is_test() { Ty::Bool } else { ty };
        Expr { ty, kind: Kind::Math(math, values), at }
    }

    /// `static_cast<T>(x)` and `as_type<T>(x)`.
    fn cast(&mut self, name: &str, at: Pos) -> Result<Value, Wrong> {
        let Some(scalar) = self.type_here() else {
            return Err((self.pos(), format!("there is no type {}", self.described())));
        };
        self.expect(">")?;
        let [x] = self.exactly(name, at)?;
        match name {
            "static_cast" => Ok(Value::Held(fit(x, scalar), scalar)),
            "as_type" | "bitcast" => {
                let ty = scalar.register();
                if scalar.is_narrow()
                    || [ty, x.ty].contains(&Ty::Bool)
                    || ty.is_wide() != x.ty.is_wide()
                {
                    return Err((at, "bits are read as another type of the same size".into()));
                }
                let same = x.ty == ty;
                let kind = Kind::Bits(Box::new(x.clone()));
                Ok(Value::Expr(if same { x } else { Expr { ty, kind, at } }))
            }
            _ => Err((at, format!("there is no function '{name}' here"))),
        }
    }

    /// An element that may be changed atomically.
    fn atomic_place(&mut self, value: Value, at: Pos) -> Result<(Place, Scalar), Wrong> {
        let value = match value {
            Value::Address(place, scalar) => Value::Place(place, scalar),
            Value::Pointer(pointer) => self.pointed(pointer, at)?,
            other => other,
        };
        match value {
            Value::Place(Place::Array(number, index), scalar) if number >= self.program.inputs => {
                if !matches!(scalar, Scalar::I32 | Scalar::U32 | Scalar::F32) {
                    let message =
                        format!("atomics are of int, uint and float, not {}", scalar.name());
                    return Err((at, message));
                }
                self.program.arrays[number].is_atomic = true;
                Ok((Place::Array(number, index), scalar))
            }
            _ => Err((at, "atomics change an output: write &NAME[index]".into())),
        }
    }

    fn atomic(&mut self, name: &str, op: Atomic, at: Pos) -> Result<Expr, Wrong> {
        let [(place, here), (value, value_at)] = self.some(name, at)?;
        let (place, scalar) = self.atomic_place(place, here)?;
        if matches!(op, Atomic::And | Atomic::Or | Atomic::Xor) {
            self.check_bits(scalar.register(), at)?;
        }
        let value = self.value(value, value_at)?;
        let value = Box::new(convert(value, scalar.register()));
        Ok(Expr { ty: scalar.register(), kind: Kind::Atomic(op, place, value), at })
    }

    /// CUDA's `atomicCAS(&NAME[index], expected, value)`: what was there before.
    fn swap(&mut self, at: Pos) -> Result<Expr, Wrong> {
        let [(place, here), (expected, expected_at), (value, value_at)] =
            self.some("atomicCAS", at)?;
        let (place, scalar) = self.atomic_place(place, here)?;
        let ty = scalar.register();
        let expected = Box::new(convert(self.value(expected, expected_at)?, ty));
        let value = Box::new(convert(self.value(value, value_at)?, ty));
        Ok(Expr { ty, kind: Kind::Swap(place, expected, value), at })
    }

    /// Metal's `atomic_compare_exchange_weak_explicit(&NAME[index], &expected, value, …)`: whether what was there had
    /// the bits of the variable, which takes it. It is never weak.
    fn compare_exchange(&mut self, name: &str, at: Pos) -> Result<Expr, Wrong> {
        let [(place, here), (expected, expected_at), (value, value_at)] = self.some(name, at)?;
        let (place, scalar) = self.atomic_place(place, here)?;
        let expected = match expected {
            Value::Address(place, scalar) => Value::Place(place, scalar),
            Value::Pointer(pointer) if pointer.inner.is_empty() => {
                self.pointed(pointer, expected_at)?
            }
            other => other,
        };
        let expected = match expected {
            Value::Place(Place::Variable(_) | Place::Local(..), own) if own == scalar => {
                self.changeable(expected, expected_at)?.0
            }
            _ => {
                let wanted = scalar.name();
                let message = format!("what is expected is a variable of {wanted}: write &NAME");
                return Err((expected_at, message));
            }
        };
        let [first, again] = self.twice(expected, expected_at);
        let ty = scalar.register();
        let load = |place| Expr { ty, kind: Kind::Load(place), at };
        let value = Box::new(convert(self.value(value, value_at)?, ty));
        let kind = Kind::Swap(place, Box::new(load(again.clone())), value);
        let found = Box::new(Expr { ty, kind, at });
        let kind = Kind::Assign { place: again, value: found, operation: None, gives_old: false };
        let [before, found] = [load(first), Expr { ty, kind, at }].map(|expr| match ty {
            Ty::F32 => Expr { ty: Ty::U32, kind: Kind::Bits(Box::new(expr)), at },
            _ => expr,
        });
        Ok(compare(Compare::Equal, before, found, at))
    }

    /// A place of the thread to be used first, and again: its index is computed once.
    fn twice(&mut self, place: Place, at: Pos) -> [Place; 2] {
        let Place::Local(number, index) = place else { return [place.clone(), place] };
        let ty = index.ty;
        let kept = Place::Variable(self.variable("", ty.scalar()));
        let kind =
            Kind::Assign { place: kept.clone(), value: index, operation: None, gives_old: false };
        let own = [kind, Kind::Load(kept)];
        own.map(|kind| Place::Local(number, Box::new(Expr { ty, kind, at })))
    }

    /// MLX's `elem_to_loc(element, NAME_shape, NAME_strides, NAME_ndim)`.
    fn location(&mut self, at: Pos) -> Result<Value, Wrong> {
        let [(element, here), (shape, _), (strides, _), _] = self.some("elem_to_loc", at)?;
        let element = self.value(element, here)?;
        match (shape, strides) {
            (Value::Shape(array), Value::Strides(other)) if array == other => {
                let kind = Kind::Location(array, Box::new(convert(element, Ty::U32)));
                Ok(Value::Expr(Expr { ty: Ty::U32, kind, at }))
            }
            _ => Err((at, "elem_to_loc takes the shape and the strides of one array".into())),
        }
    }

    /// A call of a function of the header.
    pub fn calls(&mut self, number: usize, at: Pos) -> Result<Value, Wrong> {
        let Function { name, parameters, .. } = self.program.functions[number].clone();
        let values = self.values(&name, parameters.len(), at)?;
        Ok(self.called(number, values, at))
    }

    /// What a function gives for these values.
    fn called(&self, number: usize, values: Vec<Expr>, at: Pos) -> Value {
        let Program { functions, variables, .. } = &self.program;
        let Function { parameters, result, .. } = &functions[number];
        let values = values.into_iter().zip(parameters);
        let kind = Kind::Call(number, values.map(|(v, &p)| fit(v, variables[p].scalar)).collect());
        match result.map(|variable| variables[variable].scalar) {
            Some(scalar) => Value::Held(Expr { ty: scalar.register(), kind, at }, scalar),
            None => Value::Nothing(Expr { ty: Ty::Bool, kind, at }),
        }
    }

    /// A call of a function of the library.
    fn library_call(&mut self, name: &str, at: Pos) -> Result<Value, Wrong> {
        let Some(known) = library::find(name) else {
            return Err((at, format!("there is no function '{name}' here")));
        };
        let arguments = self.arguments()?;
        self.counted(name, known.parameters.len(), arguments.len(), at)?;
        let (mut values, mut scalars) = (Vec::new(), Vec::new());
        for ((value, at), letter) in arguments.into_iter().zip(&known.parameters) {
            let own = match value {
                Value::Place(_, scalar) | Value::Held(_, scalar) => Some(scalar),
                _ => None,
            };
            let value = self.value(value, at)?;
            if library::LETTERS.contains(letter) {
                scalars.push(own.unwrap_or(value.ty.scalar()));
            }
            values.push(value);
        }
        let scalar = library::scalar(&known.parameters, &scalars);
        let scalar = scalar.map_err(|message| (at, format!("'{name}' {message}")))?;
        let key = (name.to_owned(), scalar);
        let number = match self.known.get(&key) {
            Some(&number) => number,
            None => {
                let number = self.instance(known.start, scalar)?;
                self.known.insert(key, number);
                number
            }
        };
        Ok(self.called(number, values, at))
    }

    /// A new variable.
    pub fn variable(&mut self, name: &str, scalar: Scalar) -> usize {
        let number = self.program.variables.len();
        let variable = Variable { name: name.to_owned(), scalar, is_constant: true };
        self.program.variables.push(variable);
        number
    }

    /// A function of the header, from its parameters on.
    pub fn function(&mut self, name: String, at: Pos, result: Option<Scalar>) -> Result<(), Wrong> {
        self.expect("(")?;
        let result = result.map(|scalar| {
            let variable = self.variable("", scalar);
            self.program.variables[variable].is_constant = false;
            (variable, scalar)
        });
        let function = self.scoped(|parser| {
            let mut parameters = Vec::new();
            while !parser.eat(")") {
                if !parameters.is_empty() {
                    parser.expect(",")?;
                }
                parser.qualifiers();
                let at = parser.pos();
                let Some(scalar) = parser.type_here() else {
                    return Err((at, format!("there is no type {}", parser.described())));
                };
                if parser.is("*") || parser.is("&") {
                    return Err((parser.pos(), "functions take values, no pointers".into()));
                }
                let at = parser.pos();
                let name = parser.name()?;
                let variable = parser.variable(&name, scalar);
                // Each call gives it another value.
                parser.program.variables[variable].is_constant = false;
                parser.declare(&name, at, Symbol::Variable(variable))?;
                parameters.push(variable);
            }
            let at = parser.pos();
            parser.expect("{")?;
            parser.function = Some(Inside { result });
            let mut body = Vec::new();
            while !parser.eat("}") {
                if parser.peek() == &Token::End {
                    return Err((at, "this bracket is not closed".into()));
                }
                parser.statement(&mut body)?;
            }
            parser.function = None;
            let result = result.map(|(variable, _)| variable);
            Ok(Function { name: name.clone(), parameters, result, body })
        })?;
        self.program.functions.push(function);
        let number = self.program.functions.len() - 1;
        self.declare(&name, at, Symbol::Function(number))
    }
}
