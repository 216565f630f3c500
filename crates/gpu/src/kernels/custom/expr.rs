//! Expressions of the common language.

use cupola_core::prim::call::language::{
    self as language, Binary, Builtin, Compare, Expr, Kind, Scalar, Unary,
};

use super::super::Missing;
use super::super::body::cast_real;
use super::super::view::{place, unflatten};
use super::stmt::{At, Writer, is_plain};
use super::{dtype, register};
use crate::ir::{Atomic, Buf, Cmp, Math, Ty, Un, Val};

impl<'k, 'a> Writer<'k, 'a> {
    /// The value of an expression.
    pub fn expr(&mut self, expr: &'a Expr) -> Val<'k> {
        let (k, ty) = (self.k, register(expr.ty));
        self.needs(ty);
        match &expr.kind {
            Kind::Literal(bits) => k.lit(*bits, ty),
            Kind::Load(place) => {
                let at = self.place(place);
                self.load(&at)
            }
            Kind::Builtin(builtin, axis) => self.builtin(*builtin, *axis),
            Kind::Shape(array, axis) => self.axis(*array, axis, false),
            Kind::Stride(array, axis) => self.axis(*array, axis, true),
            Kind::Location(array, element) => {
                let element = self.expr(element);
                let operand = &self.places[*array].1;
                let sizes = k.divisors(&operand.aval.shape);
                let index = unflatten(k.as_index(element), &sizes);
                let strides = k.strides(&operand.strides);
                place(k.index(0), &index, &strides).convert(Ty::U32)
            }
            Kind::Unary(op, x) => {
                let x = self.expr(x);
                unary(*op, x)
            }
            Kind::Binary(op, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                binary(*op, a, b)
            }
            Kind::Compare(op, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                a.compare(comparison(*op), b)
            }
            Kind::And(a, b) | Kind::Or(a, b) => {
                let is_and = matches!(expr.kind, Kind::And(..));
                let first = self.expr(a);
                if is_plain(b) {
                    let second = self.expr(b);
                    return if is_and { first & second } else { first | second };
                }
                let found = k.var(first);
                let goes_on = if is_and { first } else { !first };
                k.when(goes_on, || {
                    let second = self.expr(b);
                    found.set(second);
                });
                found.get()
            }
            Kind::Select(condition, first, other) => {
                let holds = self.expr(condition);
                if is_plain(first) && is_plain(other) {
                    let (first, other) = (self.expr(first), self.expr(other));
                    return holds.select(first, other);
                }
                let found = k.var(k.int(0, ty));
                let writer = std::cell::RefCell::new(&mut *self);
                k.either(
                    holds,
                    || found.set(writer.borrow_mut().expr(first)),
                    || found.set(writer.borrow_mut().expr(other)),
                );
                found.get()
            }
            Kind::Convert(to, x) => {
                let x = self.expr(x);
                convert(x, *to)
            }
            Kind::Bits(x) => self.expr(x).bits(ty),
            Kind::Narrow(scalar, x) => {
                let x = self.expr(x);
                self.narrow(*scalar, x)
            }
            Kind::Math(op, arguments) => {
                let values: Vec<Val<'k>> = arguments.iter().map(|x| self.expr(x)).collect();
                match values[..] {
                    [x] => function(*op, x, x, x),
                    [x, y] => function(*op, x, y, y),
                    [x, y, z] => function(*op, x, y, z),
                    _ => k.int(0, ty),
                }
            }
            Kind::Assign { place, value, operation, gives_old } => {
                let at = self.place(place);
                if let (At::Variable(number), None) = (&at, operation)
                    && self.source.variables[*number].is_constant
                {
                    self.limits[*number] = self.below(value);
                }
                let value = self.expr(value);
                let Some((op, between)) = operation else {
                    self.store(&at, value);
                    return value;
                };
                let old = self.load(&at);
                let new = binary(*op, convert(old, between.scalar()), value);
                let scalar = self.scalar(&at);
                let mut new = convert(new, scalar);
                if scalar.is_narrow() {
                    new = self.narrow(scalar, new);
                }
                self.store(&at, new);
                if *gives_old { old } else { new }
            }
            Kind::Atomic(op, place, value) => {
                let at = self.place(place);
                let value = self.expr(value);
                self.atomic(*op, &at, value)
            }
            Kind::Swap(place, expected, value) => {
                let at = self.place(place);
                let (expected, value) = (self.expr(expected), self.expr(value));
                self.within(&at, value, |buf, index| buf.swap(index, expected, value))
            }
            Kind::Call(number, arguments) => self.call(*number, arguments),
        }
    }

    fn builtin(&self, builtin: Builtin, axis: usize) -> Val<'k> {
        let (k, grid) = (self.k, self.grid);
        let size = |sizes: [u32; 3]| k.size(sizes[axis].into(), Ty::U32);
        match builtin {
            Builtin::Thread => grid.position[axis],
            Builtin::Local => grid.local[axis],
            Builtin::Group => grid.block[axis],
            Builtin::GroupSize => k.u32(grid.group[axis]),
            Builtin::Grid => size(grid.threads),
            Builtin::Groups => size(grid.groups),
            Builtin::Index => grid.index,
        }
    }

    /// A size or a stride along an axis.
    fn axis(&mut self, array: usize, axis: &'a Expr, strides: bool) -> Val<'k> {
        let k = self.k;
        let operand = &self.places[array].1;
        let all: Vec<i64> = match strides {
            true => operand.strides.iter().map(|&stride| stride as i64).collect(),
            false => operand.aval.shape.iter().map(|&size| size as i64).collect(),
        };
        if let Kind::Literal(bits) = axis.kind {
            let Some(&value) = all.get(bits as u32 as usize) else {
                // The CPU says what is wrong with it.
                k.fail(Missing(format!(
                    "an array has {} axes, none is {}",
                    all.len(),
                    bits as i32
                )));
                return k.i32(0);
            };
            return k.size(value, Ty::I32);
        }
        let axis = self.expr(axis);
        let values = all.into_iter().enumerate();
        values.fold(k.i32(0), |other, (number, value)| {
            axis.eq(number as i32).select(k.size(value, Ty::I32), other)
        })
    }

    fn atomic(&mut self, op: language::Atomic, at: &At<'k>, value: Val<'k>) -> Val<'k> {
        let (op, value) = match op {
            language::Atomic::Add => (Atomic::Add, value),
            language::Atomic::Subtract => (Atomic::Add, unary(Unary::Negate, value)),
            language::Atomic::Max => (Atomic::Max, value),
            language::Atomic::Min => (Atomic::Min, value),
            language::Atomic::And => (Atomic::And, value),
            language::Atomic::Or => (Atomic::Or, value),
            language::Atomic::Xor => (Atomic::Xor, value),
            language::Atomic::Exchange => (Atomic::Exchange, value),
        };
        self.within(at, value, |buf, index| buf.atomic(op, index, value))
    }

    /// What a change of an element finds there: nothing where its index is outside.
    fn within(
        &self,
        at: &At<'k>,
        value: Val<'k>,
        change: impl FnOnce(Buf, Val<'k>) -> Val<'k>,
    ) -> Val<'k> {
        let k = self.k;
        let At::Array(number, index, within) = *at else { return value };
        let buf = self.buf(number);
        let Some(within) = within else { return change(buf, index) };
        let found = k.var(k.int(0, value.ty));
        k.when(within, || found.set(change(buf, index)));
        found.get()
    }
}

/// A value in the register of an element.
fn convert(x: Val<'_>, to: Scalar) -> Val<'_> {
    let ty = register(to.register());
    match (x.ty, ty) {
        (from, ty) if from == ty => x,
        (from, _) if from.is_float() => cast_real(x, dtype(to)),
        (_, Ty::Bool) => x.is_nonzero(),
        (Ty::Bool, Ty::U32) => x.convert(ty),
        (Ty::Bool, _) => x.convert(Ty::U32).convert(ty),
        _ => x.convert(ty),
    }
}

fn unary(op: Unary, x: Val<'_>) -> Val<'_> {
    let k = x.k();
    match op {
        Unary::Not | Unary::Flip => !x,
        Unary::Negate if x.ty.is_float() || x.ty == Ty::I32 => -x,
        Unary::Negate => k.int(0, x.ty) - x,
        Unary::Abs if x.ty.is_float() => x.abs(),
        Unary::Abs if x.ty.is_signed() => x.max(k.int(0, x.ty) - x),
        Unary::Abs => x,
        Unary::Ones => words(x, Un::Ones, |low, high| low + high),
        Unary::Leading => words(x, Un::Leading, |low, high| high.eq(32).select(low + high, high)),
        Unary::Reversed if x.ty.size() == 4 => x.convert(Ty::U32).un(Un::Reversed).convert(x.ty),
        Unary::Reversed => {
            let [low, high] = halves(x).map(|word| word.un(Un::Reversed).convert(Ty::U64));
            (low << 32 | high).convert(x.ty)
        }
    }
}

/// The lower and the upper word of an integer of 64 bits.
fn halves(x: Val<'_>) -> [Val<'_>; 2] {
    let bits = x.convert(Ty::U64);
    [bits, bits >> 32].map(|word| word.convert(Ty::U32))
}

/// A count of an integer's bits: of one of 64 bits from those of its words.
fn words<'k>(x: Val<'k>, op: Un, joined: impl FnOnce(Val<'k>, Val<'k>) -> Val<'k>) -> Val<'k> {
    if x.ty.size() == 4 {
        return x.convert(Ty::U32).un(op).convert(x.ty);
    }
    let [low, high] = halves(x).map(|word| word.un(op));
    joined(low, high).convert(x.ty)
}

fn binary<'k>(op: Binary, a: Val<'k>, b: Val<'k>) -> Val<'k> {
    let is_float = a.ty.is_float();
    // Shifts go by what is below the width.
    let by = |b: Val<'k>| b & (8 * a.ty.size() as u32 - 1);
    match op {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide if is_float => a / b,
        Binary::Remainder if is_float => a.fmod(b),
        Binary::Divide | Binary::Remainder => {
            let k = a.k();
            let nothing = b.eq(0);
            let safe = nothing.select(k.int(1, b.ty), b);
            let found = if op == Binary::Divide { a / safe } else { a % safe };
            nothing.select(k.int(0, a.ty), found)
        }
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::Left => a << by(b),
        Binary::Right => a >> by(b),
        Binary::Max => a.max(b),
        Binary::Min if is_float => -((-a).max(-b)),
        Binary::Min => a.min(b),
    }
}

fn comparison(op: Compare) -> Cmp {
    match op {
        Compare::Equal => Cmp::Eq,
        Compare::NotEqual => Cmp::Ne,
        Compare::Less => Cmp::Lt,
        Compare::LessEqual => Cmp::Le,
        Compare::Greater => Cmp::Gt,
        Compare::GreaterEqual => Cmp::Ge,
    }
}

/// Whether a float is infinite or NaN, and whether it is infinite.
fn special(x: Val<'_>) -> [Val<'_>; 2] {
    let nan = x.is_nan();
    let k = x.k();
    let (bits, infinity) = match x.ty {
        Ty::F64 => (x.abs().bits(Ty::U64), k.lit(f64::INFINITY.to_bits(), Ty::U64)),
        _ => (x.abs().bits(Ty::U32), k.u32(f32::INFINITY.to_bits())),
    };
    let infinite = bits.eq(infinity);
    [nan | infinite, infinite]
}

fn function<'k>(op: language::Math, x: Val<'k>, y: Val<'k>, z: Val<'k>) -> Val<'k> {
    use language::Math as M;
    let k = x.k();
    let number = |v: f64| k.float(v, x.ty);
    match op {
        M::Exp => x.math(Math::Exp),
        M::Exp2 => number(2.0).pow(x),
        M::Exp10 => number(10.0).pow(x),
        M::Expm1 => x.math(Math::Expm1),
        M::Log => x.math(Math::Log),
        M::Log2 => x.math(Math::Log2),
        M::Log10 => x.math(Math::Log10),
        M::Log1p => x.math(Math::Log1p),
        M::Sqrt => x.sqrt(),
        M::Rsqrt => number(1.0) / x.sqrt(),
        M::Sin => x.math(Math::Sin),
        M::Cos => x.math(Math::Cos),
        M::Tan => x.math(Math::Tan),
        M::Asin => x.math(Math::Asin),
        M::Acos => x.math(Math::Acos),
        M::Atan => x.math(Math::Atan),
        M::Sinh => x.math(Math::Sinh),
        M::Cosh => x.math(Math::Cosh),
        M::Tanh => x.math(Math::Tanh),
        M::Asinh => x.math(Math::Asinh),
        M::Acosh => x.math(Math::Acosh),
        M::Atanh => x.math(Math::Atanh),
        M::Erf => x.math(Math::Erf),
        M::Erfc => x.math(Math::Erfc),
        M::Floor => x.floor(),
        M::Ceil => x.ceil(),
        M::Trunc => x.trunc(),
        M::Rint => x.round(),
        M::Round => {
            // Halves go away from 0.
            let whole = x.trunc();
            let away = x.lt(0).select(number(-1.0), number(1.0));
            (x - whole).abs().ge(number(0.5)).select(whole + away, whole)
        }
        M::IsNan => x.is_nan(),
        M::IsInf => special(x)[1],
        M::IsFinite => !special(x)[0],
        M::Pow => x.pow(y),
        M::Atan2 => x.atan2(y),
        M::Fmod => x.fmod(y),
        M::Fma => x.fma(y, z),
    }
}
