//! Calls: the language's functions, atomics, and functions of the header.

use super::value::{Value, binary, convert, fit, literal, promoted, truth, unary};
use super::{Inside, Parser, Symbol};
use crate::error::Pos;
use crate::lex::{Token, Wrong};
use crate::tree::{Atomic, Binary, Expr, Function, Kind, Math, Place, Unary, Variable};
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
            _ => Err((at, format!("there is no function '{name}' here"))),
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
            "static_cast" => Ok(Value::Expr(promoted(fit(x, scalar), scalar))),
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
        let bits = matches!(op, Atomic::And | Atomic::Or | Atomic::Xor);
        if scalar == Scalar::F32 && bits {
            return Err((at, "bits are those of whole numbers, not of floats".into()));
        }
        let value = self.value(value, value_at)?;
        let value = Box::new(convert(value, scalar.register()));
        Ok(Expr { ty: scalar.register(), kind: Kind::Atomic(op, place, value), at })
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
        let Function { name, parameters, result, .. } = self.program.functions[number].clone();
        let values = self.values(&name, parameters.len(), at)?;
        let scalars: Vec<Scalar> =
            parameters.iter().map(|&v| self.program.variables[v].scalar).collect();
        let values = values.into_iter().zip(scalars).map(|(v, scalar)| fit(v, scalar)).collect();
        let kind = Kind::Call(number, values);
        match result.map(|variable| self.program.variables[variable].scalar) {
            Some(scalar) => {
                let expr = Expr { ty: scalar.register(), kind, at };
                Ok(Value::Expr(promoted(expr, scalar)))
            }
            None => Ok(Value::Nothing(Expr { ty: Ty::Bool, kind, at })),
        }
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
