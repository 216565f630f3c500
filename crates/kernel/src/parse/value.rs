//! What expressions stand for, conversions between types, and constants.

use super::Parser;
use crate::error::Pos;
use crate::lex::Wrong;
use crate::run::compute;
use crate::tree::{Binary, Builtin, Compare, Expr, Kind, Place, Unary};
use crate::types::{Scalar, Ty};

/// Memory that is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    Array(usize),
    Local(usize),
    Shared(usize),
}

/// A place in memory from which indices count.
#[derive(Clone, Debug)]
pub struct Pointer {
    pub store: Store,
    /// What is added to every index.
    pub offset: Option<Box<Expr>>,
    /// The lengths of an array's further axes.
    pub inner: Vec<u32>,
}

/// What an expression stands for.
pub enum Value {
    Expr(Expr),
    /// A value of a type that arithmetic may promote.
    Held(Expr, Scalar),
    Place(Place, Scalar),
    Pointer(Pointer),
    /// What is behind `&`.
    Address(Place, Scalar),
    Shape(usize),
    Strides(usize),
    Vector(Builtin),
    Nothing(Expr),
}

/// A literal.
pub fn literal(bits: u64, ty: Ty, at: Pos) -> Expr {
    Expr { ty, kind: Kind::Literal(bits), at }
}

fn known(expr: &Expr) -> Option<u64> {
    match expr.kind {
        Kind::Literal(bits) => Some(bits),
        _ => None,
    }
}

/// `expr` as a value of `ty`.
pub fn convert(expr: Expr, ty: Ty) -> Expr {
    held(expr, ty.scalar())
}

/// `expr` in the register of a `scalar`.
fn held(expr: Expr, scalar: Scalar) -> Expr {
    let (ty, at) = (scalar.register(), expr.at);
    if expr.ty == ty {
        return expr;
    }
    match known(&expr) {
        Some(bits) => literal(compute::convert(expr.ty, scalar)(bits), ty, at),
        None => Expr { ty, kind: Kind::Convert(scalar, Box::new(expr)), at },
    }
}

/// `expr` as what a `scalar` holds.
pub fn fit(expr: Expr, scalar: Scalar) -> Expr {
    let expr = held(expr, scalar);
    match known(&expr) {
        _ if !scalar.is_narrow() => expr,
        Some(bits) => literal(compute::narrow(scalar)(bits), expr.ty, expr.at),
        None => {
            let (ty, at) = (expr.ty, expr.at);
            Expr { ty, kind: Kind::Narrow(scalar, Box::new(expr)), at }
        }
    }
}

/// A value that arithmetic can begin with: of a small unsigned integer an `int`.
pub fn promoted(expr: Expr, scalar: Scalar) -> Expr {
    match scalar {
        Scalar::U8 | Scalar::U16 => convert(expr, Ty::I32),
        _ => expr,
    }
}

/// Whether something holds.
pub fn truth(expr: Expr) -> Expr {
    convert(expr, Ty::Bool)
}

/// A function of two values of type `ty`.
pub fn binary(op: Binary, ty: Ty, a: Expr, b: Expr, at: Pos) -> Expr {
    let shifts = matches!(op, Binary::Left | Binary::Right);
    let (a, b) = (convert(a, ty), convert(b, if shifts { Ty::U32 } else { ty }));
    if let (Some(x), Some(y)) = (known(&a), known(&b)) {
        return literal(compute::binary(op, ty)(x, y), ty, at);
    }
    Expr { ty, kind: Kind::Binary(op, Box::new(a), Box::new(b)), at }
}

/// A comparison.
pub fn compare(op: Compare, a: Expr, b: Expr, at: Pos) -> Expr {
    let ty = a.ty.common(b.ty);
    let (a, b) = (convert(a, ty), convert(b, ty));
    if let (Some(x), Some(y)) = (known(&a), known(&b)) {
        return literal(compute::compare(op, ty)(x, y), Ty::Bool, at);
    }
    Expr { ty: Ty::Bool, kind: Kind::Compare(op, Box::new(a), Box::new(b)), at }
}

/// A function of one value.
pub fn unary(op: Unary, ty: Ty, x: Expr, at: Pos) -> Expr {
    let x = convert(x, ty);
    match known(&x) {
        Some(bits) => literal(compute::unary(op, ty)(bits), ty, at),
        None => Expr { ty, kind: Kind::Unary(op, Box::new(x)), at },
    }
}

impl Store {
    /// The place of that number.
    pub fn at(self, index: Expr) -> Place {
        let index = Box::new(index);
        match self {
            Store::Array(number) => Place::Array(number, index),
            Store::Local(number) => Place::Local(number, index),
            Store::Shared(number) => Place::Shared(number, index),
        }
    }
}

impl Parser {
    /// The elements of a store.
    pub fn scalar_of(&self, store: Store) -> Scalar {
        match store {
            Store::Array(number) => self.program.arrays[number].scalar,
            Store::Local(number) => self.program.locals[number].scalar,
            Store::Shared(number) => self.program.shared[number].scalar,
        }
    }

    /// A value as something to compute with.
    pub fn value(&self, value: Value, at: Pos) -> Result<Expr, Wrong> {
        match value {
            Value::Expr(expr) => Ok(expr),
            Value::Held(expr, scalar) => Ok(promoted(expr, scalar)),
            Value::Place(place, scalar) => {
                let expr = Expr { ty: scalar.register(), kind: Kind::Load(place), at };
                Ok(promoted(expr, scalar))
            }
            Value::Pointer(_) | Value::Address(..) => {
                Err((at, "this is an array: an index in [] is missing".into()))
            }
            Value::Shape(_) | Value::Strides(_) => {
                Err((at, "these are several numbers: an axis in [] is missing".into()))
            }
            Value::Vector(_) => {
                Err((at, "these are three numbers: write .x, .y or .z behind it".into()))
            }
            Value::Nothing(_) => Err((at, "this function gives no value".into())),
        }
    }

    /// A whole number that is known.
    pub fn constant(&self, expr: &Expr) -> Option<i64> {
        let bits = known(expr)?;
        (!expr.ty.is_float()).then(|| compute::convert(expr.ty, Scalar::I64)(bits) as i64)
    }

    /// Moves a pointer, or is what it is if there is nothing to add.
    pub fn moved(&self, pointer: Pointer, by: Expr, at: Pos) -> Pointer {
        let offset = match pointer.offset {
            None => by,
            Some(before) => {
                let ty = before.ty.common(by.ty);
                binary(Binary::Add, ty, *before, by, at)
            }
        };
        Pointer { offset: Some(Box::new(offset)), ..pointer }
    }

    /// What an index picks.
    pub fn indexed(&self, pointer: Pointer, index: Expr, at: Pos) -> Result<Value, Wrong> {
        if index.ty.is_float() {
            return Err((index.at, "an index is a whole number, not a float".into()));
        }
        let index = if index.ty == Ty::Bool { convert(index, Ty::I32) } else { index };
        let rest: u32 = pointer.inner.iter().product();
        let by = match rest {
            1 => index,
            _ => {
                let ty = index.ty;
                let length = convert(literal(u64::from(rest), Ty::U32, at), ty);
                binary(Binary::Multiply, ty, index, length, at)
            }
        };
        let is_last = pointer.inner.is_empty();
        let moved = self.moved(pointer, by, at);
        if !is_last {
            return Ok(Value::Pointer(Pointer { inner: moved.inner[1..].to_vec(), ..moved }));
        }
        self.pointed(moved, at)
    }

    /// What a pointer points at.
    pub fn pointed(&self, pointer: Pointer, at: Pos) -> Result<Value, Wrong> {
        let index = pointer.offset.map_or_else(|| literal(0, Ty::U32, at), |offset| *offset);
        Ok(Value::Place(pointer.store.at(index), self.scalar_of(pointer.store)))
    }
}
