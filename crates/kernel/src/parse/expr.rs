//! Expressions.

use super::value::{Value, binary, compare, convert, fit, literal, promoted, truth, unary};
use super::{Parser, Symbol};
use crate::error::Pos;
use crate::lex::{Token, Wrong};
use crate::tree::{Binary, Builtin, Compare, Expr, Kind, Place, Unary};
use crate::types::{Scalar, Ty};

/// What an operator between two values does.
enum Between {
    Arithmetic(Binary),
    Compare(Compare),
    And,
    Or,
}

/// The operator of a sign, and how strongly it binds.
fn between(sign: &str) -> Option<(Between, u8)> {
    use Between::{And, Arithmetic, Compare as Compares, Or};
    Some(match sign {
        "||" => (Or, 1),
        "&&" => (And, 2),
        "|" => (Arithmetic(Binary::Or), 3),
        "^" => (Arithmetic(Binary::Xor), 4),
        "&" => (Arithmetic(Binary::And), 5),
        "==" => (Compares(Compare::Equal), 6),
        "!=" => (Compares(Compare::NotEqual), 6),
        "<" => (Compares(Compare::Less), 7),
        "<=" => (Compares(Compare::LessEqual), 7),
        ">" => (Compares(Compare::Greater), 7),
        ">=" => (Compares(Compare::GreaterEqual), 7),
        "<<" => (Arithmetic(Binary::Left), 8),
        ">>" => (Arithmetic(Binary::Right), 8),
        "+" => (Arithmetic(Binary::Add), 9),
        "-" => (Arithmetic(Binary::Subtract), 9),
        "*" => (Arithmetic(Binary::Multiply), 10),
        "/" => (Arithmetic(Binary::Divide), 10),
        "%" => (Arithmetic(Binary::Remainder), 10),
        _ => return None,
    })
}

/// The operation of an assignment's sign.
fn assigned(sign: &str) -> Option<Option<Binary>> {
    Some(match sign {
        "=" => None,
        "+=" => Some(Binary::Add),
        "-=" => Some(Binary::Subtract),
        "*=" => Some(Binary::Multiply),
        "/=" => Some(Binary::Divide),
        "%=" => Some(Binary::Remainder),
        "&=" => Some(Binary::And),
        "|=" => Some(Binary::Or),
        "^=" => Some(Binary::Xor),
        "<<=" => Some(Binary::Left),
        ">>=" => Some(Binary::Right),
        _ => return None,
    })
}

fn is_bitwise(op: Binary) -> bool {
    matches!(op, Binary::And | Binary::Or | Binary::Xor | Binary::Left | Binary::Right)
}

/// The number of the launch that a name stands for.
pub fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "thread_position_in_grid" => Builtin::Thread,
        "thread_position_in_threadgroup" | "threadIdx" => Builtin::Local,
        "threadgroup_position_in_grid" | "blockIdx" => Builtin::Group,
        "threads_per_threadgroup" | "dispatch_threads_per_threadgroup" | "blockDim" => {
            Builtin::GroupSize
        }
        "threads_per_grid" | "grid_size" => Builtin::Grid,
        "threadgroups_per_grid" | "gridDim" => Builtin::Groups,
        _ => return None,
    })
}

impl Parser {
    /// A value.
    pub fn expr(&mut self) -> Result<Expr, Wrong> {
        let at = self.pos();
        let value = self.assignment()?;
        self.value(value, at)
    }

    /// An expression, assignments included; what it stands for may be more than a value.
    pub fn assignment(&mut self) -> Result<Value, Wrong> {
        self.deeper(Self::assigns)
    }

    fn assigns(&mut self) -> Result<Value, Wrong> {
        let at = self.pos();
        let left = self.ternary()?;
        let Token::Sign(sign) = *self.peek() else { return Ok(left) };
        let Some(op) = assigned(sign) else { return Ok(left) };
        let here = self.pos();
        self.at += 1;
        let right = self.expr()?;
        let (place, scalar) = self.changeable(left, at)?;
        Ok(Value::Expr(self.assign(place, scalar, op, right, false, here)?))
    }

    /// A place that may be written.
    pub fn changeable(&mut self, value: Value, at: Pos) -> Result<(Place, Scalar), Wrong> {
        let Value::Place(place, scalar) = value else {
            return Err((at, "only variables and elements can be changed".into()));
        };
        match &place {
            Place::Array(number, _) if *number < self.program.inputs => {
                let name = &self.program.arrays[*number].name;
                Err((at, format!("'{name}' is an input: it cannot be changed")))
            }
            Place::Variable(number) => {
                self.program.variables[*number].is_constant = false;
                Ok((place, scalar))
            }
            Place::Array(..) | Place::Local(..) | Place::Shared(..) => Ok((place, scalar)),
        }
    }

    /// A change of a place.
    fn assign(
        &self,
        place: Place,
        scalar: Scalar,
        op: Option<Binary>,
        right: Expr,
        gives_old: bool,
        at: Pos,
    ) -> Result<Expr, Wrong> {
        let register = scalar.register();
        let (value, operation) = match op {
            None => (fit(right, scalar), None),
            Some(op) => {
                let own = promoted(literal(0, register, at), scalar).ty;
                let shifts = matches!(op, Binary::Left | Binary::Right);
                let ty = if shifts { own.common(own) } else { own.common(right.ty) };
                self.check_operands(op, ty, at)?;
                (convert(right, if shifts { Ty::U32 } else { ty }), Some((op, ty)))
            }
        };
        let value = Box::new(value);
        Ok(Expr { ty: register, kind: Kind::Assign { place, value, operation, gives_old }, at })
    }

    fn check_operands(&self, op: Binary, ty: Ty, at: Pos) -> Result<(), Wrong> {
        if is_bitwise(op) { self.check_bits(ty, at) } else { Ok(()) }
    }

    /// Whether a type has bits to compute with.
    pub fn check_bits(&self, ty: Ty, at: Pos) -> Result<(), Wrong> {
        if ty.is_float() {
            return Err((at, "bits are those of whole numbers, not of floats".into()));
        }
        Ok(())
    }

    fn ternary(&mut self) -> Result<Value, Wrong> {
        let at = self.pos();
        let condition = self.levels(1)?;
        let here = self.pos();
        if !self.eat("?") {
            return Ok(condition);
        }
        let condition = truth(self.value(condition, at)?);
        let first = self.expr()?;
        self.expect(":")?;
        let other = self.expr()?;
        let ty = if first.ty == other.ty { first.ty } else { first.ty.common(other.ty) };
        let (first, other) = (convert(first, ty), convert(other, ty));
        let kind = Kind::Select(Box::new(condition), Box::new(first), Box::new(other));
        Ok(Value::Expr(Expr { ty, kind, at: here }))
    }

    fn levels(&mut self, least: u8) -> Result<Value, Wrong> {
        let start = self.pos();
        let mut left = self.prefix()?;
        while let Token::Sign(sign) = *self.peek() {
            let Some((op, level)) = between(sign).filter(|(_, level)| *level >= least) else {
                break;
            };
            let at = self.pos();
            self.at += 1;
            let right_at = self.pos();
            let right = self.deeper(|parser| parser.levels(level + 1))?;
            left = match (left, right, &op) {
                (Value::Pointer(p), right, Between::Arithmetic(Binary::Add))
                    if p.inner.is_empty() =>
                {
                    let by = self.value(right, right_at)?;
                    Value::Pointer(self.moved(p, by, at))
                }
                (left, right, _) => {
                    let (a, b) = (self.value(left, start)?, self.value(right, right_at)?);
                    Value::Expr(self.joined(op, a, b, at)?)
                }
            };
        }
        Ok(left)
    }

    fn joined(&self, op: Between, a: Expr, b: Expr, at: Pos) -> Result<Expr, Wrong> {
        Ok(match op {
            Between::And | Between::Or => {
                let (a, b) = (Box::new(truth(a)), Box::new(truth(b)));
                let kind =
                    if matches!(op, Between::And) { Kind::And(a, b) } else { Kind::Or(a, b) };
                Expr { ty: Ty::Bool, kind, at }
            }
            Between::Compare(op) => compare(op, a, b, at),
            Between::Arithmetic(op) => {
                let shifts = matches!(op, Binary::Left | Binary::Right);
                let both = a.ty == Ty::Bool && b.ty == Ty::Bool;
                let ty = match (op, shifts, both) {
                    (_, true, _) => a.ty.common(a.ty),
                    (Binary::And | Binary::Or | Binary::Xor, _, true) => Ty::Bool,
                    _ => a.ty.common(b.ty),
                };
                self.check_operands(op, ty, at)?;
                if shifts && b.ty.is_float() {
                    return Err((at, "bits are shifted by whole numbers".into()));
                }
                binary(op, ty, a, b, at)
            }
        })
    }

    fn prefix(&mut self) -> Result<Value, Wrong> {
        self.deeper(Self::prefixed)
    }

    fn prefixed(&mut self) -> Result<Value, Wrong> {
        let at = self.pos();
        let Token::Sign(sign) = *self.peek() else { return self.postfix() };
        match sign {
            "-" | "+" | "~" | "!" => {
                self.at += 1;
                let inner_at = self.pos();
                let x = self.prefix()?;
                let x = self.value(x, inner_at)?;
                let ty = x.ty.common(x.ty);
                Ok(Value::Expr(match sign {
                    "-" => unary(Unary::Negate, ty, x, at),
                    "+" => convert(x, ty),
                    "!" => unary(Unary::Not, Ty::Bool, truth(x), at),
                    _ => {
                        self.check_bits(ty, at)?;
                        unary(Unary::Flip, ty, x, at)
                    }
                }))
            }
            "++" | "--" => {
                self.at += 1;
                let value = self.prefix()?;
                Ok(Value::Expr(self.stepped(value, sign, false, at)?))
            }
            "&" => {
                self.at += 1;
                match self.prefix()? {
                    Value::Place(place, scalar) => Ok(Value::Address(place, scalar)),
                    _ => Err((at, "only elements have an address".into())),
                }
            }
            "*" => {
                self.at += 1;
                match self.prefix()? {
                    Value::Pointer(pointer) if pointer.inner.is_empty() => {
                        self.pointed(pointer, at)
                    }
                    Value::Address(place, scalar) => Ok(Value::Place(place, scalar)),
                    _ => Err((at, "this is no pointer".into())),
                }
            }
            "(" => {
                let start = self.at;
                self.at += 1;
                if let Some(scalar) = self.type_here()
                    && self.eat(")")
                {
                    let inner_at = self.pos();
                    let x = self.prefix()?;
                    let x = self.value(x, inner_at)?;
                    return Ok(Value::Held(fit(x, scalar), scalar));
                }
                self.at = start;
                self.postfix()
            }
            _ => self.postfix(),
        }
    }

    /// `x++` and the like.
    fn stepped(&mut self, value: Value, sign: &str, old: bool, at: Pos) -> Result<Expr, Wrong> {
        let (place, scalar) = self.changeable(value, at)?;
        let op = if sign == "++" { Binary::Add } else { Binary::Subtract };
        self.assign(place, scalar, Some(op), literal(1, Ty::I32, at), old, at)
    }

    fn postfix(&mut self) -> Result<Value, Wrong> {
        let start = self.pos();
        let mut value = self.primary()?;
        loop {
            let at = self.pos();
            if self.eat("[") {
                let index = self.expr()?;
                self.expect("]")?;
                value = match value {
                    Value::Pointer(pointer) => self.indexed(pointer, index, start)?,
                    Value::Shape(array) | Value::Strides(array) if index.ty.is_float() => {
                        let name = &self.program.arrays[array].name;
                        return Err((at, format!("an axis of '{name}' is a whole number")));
                    }
                    Value::Shape(array) => {
                        let kind = Kind::Shape(array, Box::new(convert(index, Ty::I32)));
                        Value::Expr(Expr { ty: Ty::I32, kind, at: start })
                    }
                    Value::Strides(array) => {
                        let kind = Kind::Stride(array, Box::new(convert(index, Ty::I32)));
                        Value::Expr(Expr { ty: Ty::I32, kind, at: start })
                    }
                    Value::Place(Place::Array(number, zero), scalar)
                        if self.program.arrays[number].rank == 0 =>
                    {
                        // A value without axes may be written as an array of one element, too.
                        if self.constant(&index) != Some(0) {
                            let name = &self.program.arrays[number].name;
                            return Err((at, format!("'{name}' has no axes: only index 0")));
                        }
                        Value::Place(Place::Array(number, zero), scalar)
                    }
                    _ => return Err((at, "only arrays have elements".into())),
                };
            } else if self.eat(".") {
                let name = self.name()?;
                let Value::Vector(builtin) = value else {
                    return Err((at, format!("nothing here has a part '{name}'")));
                };
                let Some(axis) = ["x", "y", "z"].iter().position(|&axis| axis == name) else {
                    return Err((at, format!("'.{name}' is not one of .x, .y and .z")));
                };
                let kind = Kind::Builtin(builtin, axis);
                value = Value::Expr(Expr { ty: Ty::U32, kind, at: start });
            } else if self.is("++") || self.is("--") {
                let sign = if self.is("++") { "++" } else { "--" };
                self.at += 1;
                value = Value::Expr(self.stepped(value, sign, true, start)?);
            } else {
                return Ok(value);
            }
        }
    }

    fn primary(&mut self) -> Result<Value, Wrong> {
        let at = self.pos();
        match self.peek().clone() {
            Token::Integer { value, is_decimal, suffix } => {
                self.at += 1;
                let (unsigned, long) = (suffix.contains('u'), suffix.contains('l'));
                // The first type that holds it, as C has it; decimal numbers are unsigned where they say so alone.
                let (signed, may_be_unsigned) = (!unsigned, unsigned || !is_decimal);
                let ty = if signed && !long && i32::try_from(value).is_ok() {
                    Ty::I32
                } else if may_be_unsigned && !long && u32::try_from(value).is_ok() {
                    Ty::U32
                } else if signed && i64::try_from(value).is_ok() {
                    Ty::I64
                } else if may_be_unsigned {
                    Ty::U64
                } else {
                    return Err((at, format!("'{value}' is too large for a long")));
                };
                Ok(Value::Expr(literal(value, ty, at)))
            }
            Token::Float(v, suffix) => {
                self.at += 1;
                let x = literal(Ty::F32.bits(v), Ty::F32, at);
                Ok(Value::Expr(if suffix == "h" { fit(x, Scalar::F16) } else { x }))
            }
            Token::Sign("(") => {
                self.at += 1;
                let inner = self.assignment()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Name(_) => {
                self.skip_namespaces();
                self.named()
            }
            _ => Err((at, format!("there should be a value before {}", self.described()))),
        }
    }

    fn named(&mut self) -> Result<Value, Wrong> {
        let at = self.pos();
        let start = self.at;
        if let Some(scalar) = self.type_here() {
            if !self.eat("(") {
                return Err((at, format!("a type, {}, is no value", scalar.name())));
            }
            if self.eat(")") {
                return Ok(Value::Expr(literal(0, scalar.register(), at)));
            }
            let x = self.expr()?;
            self.expect(")")?;
            return Ok(Value::Held(fit(x, scalar), scalar));
        }
        self.at = start;
        let name = self.name()?;
        match self.find(&name).cloned() {
            Some(Symbol::Constant(expr)) => Ok(Value::Expr(Expr { at, ..expr })),
            Some(Symbol::Variable(number)) => {
                let scalar = self.program.variables[number].scalar;
                Ok(Value::Place(Place::Variable(number), scalar))
            }
            Some(Symbol::Array(number)) => {
                let zero = Box::new(literal(0, Ty::U32, at));
                Ok(Value::Place(Place::Array(number, zero), self.program.arrays[number].scalar))
            }
            Some(Symbol::Pointer(pointer)) => Ok(Value::Pointer(pointer)),
            Some(Symbol::Shape(number)) => Ok(Value::Shape(number)),
            Some(Symbol::Strides(number)) => Ok(Value::Strides(number)),
            Some(Symbol::Rank(number)) => {
                let rank = self.program.arrays[number].rank as u64;
                Ok(Value::Expr(literal(rank, Ty::I32, at)))
            }
            Some(Symbol::Vector(builtin)) => Ok(Value::Vector(builtin)),
            Some(Symbol::Function(number)) => self.calls(number, at),
            Some(Symbol::Type(_)) | None => self.unknown(&name, at),
        }
    }

    /// A name that the source did not make: one of the language.
    fn unknown(&mut self, name: &str, at: Pos) -> Result<Value, Wrong> {
        if let Some(vector) = builtin(name) {
            return Ok(Value::Vector(vector));
        }
        let number = |v: f64| Ok(Value::Expr(literal(Ty::F32.bits(v), Ty::F32, at)));
        match name {
            "true" | "false" => {
                return Ok(Value::Expr(literal(u64::from(name == "true"), Ty::Bool, at)));
            }
            "thread_index_in_threadgroup" => {
                let kind = Kind::Builtin(Builtin::Index, 0);
                return Ok(Value::Expr(Expr { ty: Ty::U32, kind, at }));
            }
            "INFINITY" | "HUGE_VALF" => return number(f64::INFINITY),
            "NAN" => return number(f64::NAN),
            "M_PI_F" | "M_PI" => return number(std::f64::consts::PI),
            "M_E_F" | "M_E" => return number(std::f64::consts::E),
            "FLT_MAX" => return number(f32::MAX.into()),
            "FLT_MIN" => return number(f32::MIN_POSITIVE.into()),
            "FLT_EPSILON" => return number(f32::EPSILON.into()),
            "INT_MAX" => {
                return Ok(Value::Expr(literal(i32::MAX as u64, Ty::I32, at)));
            }
            "UINT_MAX" => {
                return Ok(Value::Expr(literal(u32::MAX.into(), Ty::U32, at)));
            }
            _ => {}
        }
        if self.is("(") || self.is("<") && matches!(self.ahead(2), Token::Sign(">")) {
            return self.function_named(name, at);
        }
        Err((at, format!("there is no '{name}' here")))
    }
}
