//! Values and variables of a kernel, with their operators.

use std::fmt;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use super::{Bin, Build, Cmp, Expr, Reg, Slot, Stmt, Ty, Un};

/// A value: assigned once. What is done with it is appended to its kernel.
#[derive(Clone, Copy)]
pub struct Val<'k> {
    pub(super) k: &'k Build,
    pub(super) id: u32,
    /// Its type.
    pub ty: Ty,
}

impl fmt::Debug for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}: {:?}", self.id, self.ty)
    }
}

/// A variable of one thread.
#[derive(Clone, Copy)]
pub struct Var<'k> {
    pub(super) k: &'k Build,
    pub(super) slot: Slot,
}

impl<'k> Var<'k> {
    /// What it holds.
    pub fn get(self) -> Val<'k> {
        self.k.value(self.slot.ty, Expr::Read(self.slot))
    }

    /// Changes it.
    pub fn set(self, value: impl Operand<'k>) {
        let value = value.value(self.k, self.slot.ty);
        self.k.push(Stmt::Set(self.slot, value.reg()));
    }
}

/// What can stand beside a value: another one, or a number, which takes the value's type. Numbers of the
/// types that count elements are sizes ([`Build::size`]), the others are literals.
pub trait Operand<'k>: Copy {
    /// The type that it has by itself.
    fn ty(self) -> Option<Ty>;
    /// It as a value; a number as a literal of type `ty`.
    fn value(self, k: &'k Build, ty: Ty) -> Val<'k>;
}

impl<'k> Operand<'k> for Val<'k> {
    fn ty(self) -> Option<Ty> {
        Some(self.ty)
    }

    fn value(self, _: &'k Build, _: Ty) -> Val<'k> {
        self
    }
}

macro_rules! literals {
    ($($number:ident, $k:ident, $v:ident, $ty:ident => $literal:expr;)*) => {$(
        impl<'k> Operand<'k> for $number {
            fn ty(self) -> Option<Ty> {
                None
            }

            fn value(self, $k: &'k Build, $ty: Ty) -> Val<'k> {
                let $v = self;
                $literal
            }
        }
    )*};
}

literals! {
    i32, k, v, ty => k.int(v.into(), ty);
    u32, k, v, ty => k.int(v.into(), ty);
    i64, k, v, ty => k.int(v, ty);
    u64, k, v, ty => k.size(v as i64, ty);
    usize, k, v, ty => k.size(v as i64, ty);
    isize, k, v, ty => k.step(v as i64, ty);
    f32, k, v, ty => k.float(v.into(), ty);
}

macro_rules! operators {
    ($($Trait:ident $name:ident;)*) => {$(
        impl<'k, R: Operand<'k>> $Trait<R> for Val<'k> {
            type Output = Val<'k>;

            fn $name(self, other: R) -> Val<'k> {
                self.k.bin(Bin::$Trait, self, other.value(self.k, self.ty))
            }
        }
    )*};
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
    Rem rem;
}

macro_rules! bit_operators {
    ($($Trait:ident $name:ident $op:ident;)*) => {$(
        impl<'k, R: Operand<'k>> $Trait<R> for Val<'k> {
            type Output = Val<'k>;

            fn $name(self, other: R) -> Val<'k> {
                self.k.bin(Bin::$op, self, other.value(self.k, self.ty))
            }
        }
    )*};
}

bit_operators! {
    BitAnd bitand And;
    BitOr bitor Or;
    BitXor bitxor Xor;
}

macro_rules! shifts {
    ($($Trait:ident $name:ident;)*) => {$(
        impl<'k, R: Operand<'k>> $Trait<R> for Val<'k> {
            type Output = Val<'k>;

            fn $name(self, by: R) -> Val<'k> {
                self.k.bin(Bin::$Trait, self, by.value(self.k, Ty::U32))
            }
        }
    )*};
}

shifts! {
    Shl shl;
    Shr shr;
}

macro_rules! numbers_first {
    ($($number:ident $Trait:ident $name:ident;)*) => {$(
        impl<'k> $Trait<Val<'k>> for $number {
            type Output = Val<'k>;

            fn $name(self, other: Val<'k>) -> Val<'k> {
                self.value(other.k, other.ty).$name(other)
            }
        }
    )*};
}

numbers_first! {
    u32 Sub sub;
    f32 Sub sub;
    f32 Div div;
}

impl<'k> Neg for Val<'k> {
    type Output = Val<'k>;

    fn neg(self) -> Val<'k> {
        self.un(Un::Neg)
    }
}

impl<'k> Not for Val<'k> {
    type Output = Val<'k>;

    fn not(self) -> Val<'k> {
        self.un(Un::Not)
    }
}

macro_rules! compares {
    ($($name:ident $op:ident $doc:literal;)*) => {
        impl<'k> Val<'k> {
            $(#[doc = $doc]
            pub fn $name(self, other: impl Operand<'k>) -> Val<'k> {
                self.compare(Cmp::$op, other)
            })*
        }
    };
}

compares! {
    eq Eq "Whether it is `other`.";
    ne Ne "Whether it is another than `other`.";
    lt Lt "Whether it is below `other`.";
    le Le "Whether it is `other` or below.";
    gt Gt "Whether it is above `other`.";
    ge Ge "Whether it is `other` or above.";
}

macro_rules! functions {
    ($($name:ident $op:ident $doc:literal;)*) => {
        impl<'k> Val<'k> {
            $(#[doc = $doc]
            pub fn $name(self) -> Val<'k> {
                self.un(Un::$op)
            })*
        }
    };
}

functions! {
    abs Abs "|x| of a float.";
    sqrt Sqrt "√x of a float.";
    floor Floor "The largest integer not above a float.";
    ceil Ceil "The smallest integer not below a float.";
    trunc Trunc "A float towards zero.";
    round Round "The integer nearest to a float, ties to even.";
    opaque Opaque "The `f32` itself, hidden from reassociation.";
    tf32 Tf32 "An `f32` with the digits that matrix units read.";
    exp2 Exp2 "2ˣ of an `f32`, fast.";
}

impl<'k> Val<'k> {
    pub(super) fn of(k: &'k Build, Reg { id, ty }: Reg) -> Val<'k> {
        Val { k, id, ty }
    }

    /// The kernel that it is a value of.
    pub fn k(self) -> &'k Build {
        self.k
    }

    /// As statements name it.
    pub(crate) fn reg(self) -> Reg {
        Reg { id: self.id, ty: self.ty }
    }

    /// A function of it.
    pub fn un(self, op: Un) -> Val<'k> {
        let ty = match op {
            Un::HalfToFloat | Un::BfloatToFloat => Ty::F32,
            Un::FloatToHalf | Un::FloatToBfloat => Ty::U32,
            _ => self.ty,
        };
        self.k.value(ty, Expr::Un(op, self.reg()))
    }

    /// Whether it is a literal 0.
    pub fn is_literal_zero(self) -> bool {
        self.k.known(self).is_some_and(|lit| lit.bits == 0)
    }

    /// A literal of its type.
    pub fn like(self, v: impl Operand<'k>) -> Val<'k> {
        v.value(self.k, self.ty)
    }

    /// A comparison.
    pub fn compare(self, op: Cmp, other: impl Operand<'k>) -> Val<'k> {
        self.k.compare(op, self, self.like(other))
    }

    /// The larger of two numbers.
    pub fn max(self, other: impl Operand<'k>) -> Val<'k> {
        self.k.bin(Bin::Max, self, self.like(other))
    }

    /// The smaller of two integers.
    pub fn min(self, other: impl Operand<'k>) -> Val<'k> {
        self.k.bin(Bin::Min, self, self.like(other))
    }

    /// x·b + c, rounded once where the device can.
    pub fn fma(self, b: impl Operand<'k>, c: impl Operand<'k>) -> Val<'k> {
        let (b, c) = (self.like(b), self.like(c));
        self.k.value(self.ty, Expr::Fma(self.reg(), b.reg(), c.reg()))
    }

    /// `a` where this bool is true, else `b`; one of them is a value.
    pub fn select(self, a: impl Operand<'k>, b: impl Operand<'k>) -> Val<'k> {
        let ty = a.ty().or(b.ty()).unwrap_or(Ty::U32);
        let (a, b) = (a.value(self.k, ty), b.value(self.k, ty));
        self.k.value(a.ty, Expr::Select(self.reg(), a.reg(), b.reg()))
    }

    /// A number as another type: integers wrap; a float to an integer is in range.
    pub fn convert(self, ty: Ty) -> Val<'k> {
        self.k.convert(self, ty)
    }

    /// The same bits as another type of the same size.
    pub fn bits(self, ty: Ty) -> Val<'k> {
        if self.ty == ty { self } else { self.k.value(ty, Expr::Bits(self.reg())) }
    }
}
