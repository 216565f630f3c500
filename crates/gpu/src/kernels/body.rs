//! The instructions of an elementwise program.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::DType;
use cupola_core::backend::{Body, Instr, Reg};
use cupola_core::prim::{Binary, Compare, Elementwise, Unary};

use super::{Arg, Draft, Missing, check_dtype, join};
use crate::ir::{Cmp, Math, Number, Ty, Val, complex};

use Number::{Complex, Real};

/// What becomes of an instruction's result.
#[derive(Clone, Copy, PartialEq)]
pub enum Then {
    /// It is read as a value of its dtype.
    Read,
    /// It is stored and nothing else: the store rounds it.
    Stored,
}

impl Draft {
    /// The run-time scalars of `body`, which are the segment's.
    pub fn scalars(&self, body: &Body) -> Vec<Number<'_>> {
        (body.scalars.iter().enumerate())
            .map(|(index, &dtype)| {
                self.require(dtype);
                let low = self.arg_of(Arg::Scalar(index));
                decoded(low, self.arg(), dtype)
            })
            .collect()
    }

    /// Notes where the device cannot hold elements of `dtype`.
    fn require(&self, dtype: DType) {
        if let Err(missing) = check_dtype(dtype, &self.target) {
            self.fail(missing);
        }
    }

    /// The outputs of `body` for one element, where they are stored.
    pub fn run<'k>(
        &'k self,
        body: &Body,
        inputs: &[Number<'k>],
        scalars: &[Number<'k>],
    ) -> Vec<Number<'k>> {
        self.results(body, inputs, scalars, |register| match body.reads(register) {
            true => Then::Read,
            false => Then::Stored,
        })
    }

    /// The outputs of `body` for one element, where folds read them.
    pub fn folded<'k>(
        &'k self,
        body: &Body,
        inputs: &[Number<'k>],
        scalars: &[Number<'k>],
    ) -> Vec<Number<'k>> {
        self.results(body, inputs, scalars, |_| Then::Read)
    }

    fn results<'k>(
        &'k self,
        body: &Body,
        inputs: &[Number<'k>],
        scalars: &[Number<'k>],
        then: impl Fn(Reg) -> Then,
    ) -> Vec<Number<'k>> {
        let mut registers = [inputs, scalars].concat();
        for instr in &body.code {
            let args: Vec<Number<'k>> =
                instr.args.iter().map(|&r| registers[usize::from(r)]).collect();
            let then = then(registers.len() as Reg);
            registers.push(self.instruction(body, instr, &args, then));
        }
        body.outputs.iter().map(|&register| registers[usize::from(register)]).collect()
    }

    /// What one instruction of `body` gives.
    pub fn instruction<'k>(
        &'k self,
        body: &Body,
        instr: &Instr,
        args: &[Number<'k>],
        then: Then,
    ) -> Number<'k> {
        self.require(instr.dtype);
        let from = body.dtype_of(instr.args[0]);
        let result = match instr.op {
            Elementwise::Unary(op) => args[0].unary(op),
            Elementwise::Binary(op) => args[0].binary(op, args[1], from),
            Elementwise::Compare(op) => Real(args[0].compare(op, args[1])),
            Elementwise::Select(_) => args[0].real().choose(args[1], args[2]),
            Elementwise::Cast(_) if then == Then::Stored && is_half(instr.dtype) => {
                Real(args[0].real().convert(Ty::F32))
            }
            Elementwise::Cast(_) => args[0].cast(from, instr.dtype),
        };
        match body.rounds(instr) && then == Then::Read {
            true => result.rounded(instr.dtype),
            false => result.wrapped(instr.dtype),
        }
    }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// The element of `dtype` whose bytes are in two words.
fn decoded<'k>(low: Val<'k>, high: Val<'k>, dtype: DType) -> Number<'k> {
    Real(match dtype {
        DType::Bool => low.ne(0),
        DType::U8 | DType::U16 => low.wrapped(dtype),
        DType::U32 => low,
        DType::I8 | DType::I16 | DType::I32 => low.bits(Ty::I32).wrapped(dtype),
        DType::F32 => low.bits(Ty::F32),
        DType::F16 => (low & 0xffff).half_to_float(),
        DType::BF16 => (low << 16).bits(Ty::F32),
        DType::C32 => return Number::of_halves(low),
        DType::C64 => return Complex(low.bits(Ty::F32), high.bits(Ty::F32)),
        DType::U64 | DType::I64 | DType::F64 => join(low, high, Ty::of(dtype)),
    })
}

impl<'k> Number<'k> {
    /// Notes that there is no such function; what it gives does not matter.
    fn no_kernel(self, reason: String) -> Number<'k> {
        self.real().k().fail(Missing(reason));
        self
    }

    fn unary(self, op: Unary) -> Number<'k> {
        match self {
            Complex(re, im) => self.unary_complex(op, re, im),
            Real(x) if x.ty.is_float() => self.unary_float(op, x),
            Real(x) => Real(unary_int(op, x)),
        }
    }

    fn unary_float(self, op: Unary, x: Val<'k>) -> Number<'k> {
        Real(match op {
            Unary::Neg => -x,
            Unary::Abs => x.abs(),
            Unary::Sign => {
                // 0 and NaN stay as they are; −0 becomes 0.
                let (above, below) = (x.gt(0.0), x.lt(0.0));
                let rest = below.select(-1.0, x.eq(0.0).select(0.0, x));
                above.select(1.0, rest)
            }
            Unary::Square => x * x,
            Unary::Floor => x.floor(),
            Unary::Ceil => x.ceil(),
            Unary::Round => x.round(),
            Unary::Sqrt => x.sqrt(),
            Unary::Rsqrt => 1.0 / x.sqrt(),
            Unary::Exp => x.math(Math::Exp),
            Unary::Expm1 => x.math(Math::Expm1),
            Unary::Log => x.math(Math::Log),
            Unary::Log2 => x.math(Math::Log2),
            Unary::Log10 => x.math(Math::Log10),
            Unary::Log1p => x.math(Math::Log1p),
            Unary::Sin => x.math(Math::Sin),
            Unary::Cos => x.math(Math::Cos),
            Unary::Tan => x.math(Math::Tan),
            Unary::Asin => x.math(Math::Asin),
            Unary::Acos => x.math(Math::Acos),
            Unary::Atan => x.math(Math::Atan),
            Unary::Sinh => x.math(Math::Sinh),
            Unary::Cosh => x.math(Math::Cosh),
            Unary::Tanh => x.math(Math::Tanh),
            Unary::Asinh => x.math(Math::Asinh),
            Unary::Acosh => x.math(Math::Acosh),
            Unary::Atanh => x.math(Math::Atanh),
            Unary::Erf => x.math(Math::Erf),
            Unary::Erfc => x.math(Math::Erfc),
            Unary::ErfInv => x.math(Math::ErfInv),
            Unary::Sigmoid => {
                // Only powers of at most 1, so that nothing overflows.
                let e = (-x.abs()).math(Math::Exp);
                x.lt(0.0).select(e, 1.0) / (e.like(1.0) + e)
            }
            Unary::Not | Unary::Invert | Unary::Conj | Unary::Real | Unary::Imag => {
                return self.no_kernel(format!("{} of a float", op.name()));
            }
        })
    }

    fn unary_complex(self, op: Unary, re: Val<'k>, im: Val<'k>) -> Number<'k> {
        let z = (re, im);
        let (re, im) = match op {
            Unary::Real => return Real(re),
            Unary::Imag => return Real(im),
            Unary::Abs => return Real(complex::abs(z)),
            Unary::Neg => (-re, -im),
            Unary::Conj => (re, -im),
            Unary::Square => {
                let (xx, yy, xy) = (re * re, im * im, re * im);
                (xx - yy, xy + xy)
            }
            Unary::Round => (re.round(), im.round()),
            Unary::Sqrt => complex::sqrt(z),
            Unary::Rsqrt => complex::rsqrt(z),
            Unary::Exp => complex::exp(z),
            Unary::Expm1 => complex::expm1(z),
            Unary::Log => complex::log(z),
            Unary::Log2 => complex::log2(z),
            Unary::Log10 => complex::log10(z),
            Unary::Log1p => complex::log1p(z),
            Unary::Sin => complex::sin(z),
            Unary::Cos => complex::cos(z),
            Unary::Tan => complex::tan(z),
            Unary::Asin => complex::asin(z),
            Unary::Acos => complex::acos(z),
            Unary::Atan => complex::atan(z),
            Unary::Sinh => complex::sinh(z),
            Unary::Cosh => complex::cosh(z),
            Unary::Tanh => complex::tanh(z),
            Unary::Asinh => complex::asinh(z),
            Unary::Acosh => complex::acosh(z),
            Unary::Atanh => complex::atanh(z),
            Unary::Sign
            | Unary::Floor
            | Unary::Ceil
            | Unary::Sigmoid
            | Unary::Erf
            | Unary::Erfc
            | Unary::ErfInv
            | Unary::Not
            | Unary::Invert => {
                return self.no_kernel(format!("{} of a complex number", op.name()));
            }
        };
        Complex(re, im)
    }

    /// It joined with another element of `dtype`.
    pub fn binary(self, op: Binary, other: Number<'k>, dtype: DType) -> Number<'k> {
        match (self, other) {
            (Complex(ar, ai), Complex(br, bi)) => match op {
                Binary::Add => Complex(ar + br, ai + bi),
                Binary::Sub => Complex(ar - br, ai - bi),
                Binary::Mul => {
                    let (rr, ii) = (ar * br, ai * bi);
                    let (ri, ir) = (ar * bi, ai * br);
                    Complex(rr - ii, ri + ir)
                }
                Binary::Div => ratio((ar, ai), (br, bi)),
                Binary::FloorDivide
                | Binary::Remainder
                | Binary::Power
                | Binary::Maximum
                | Binary::Minimum
                | Binary::Atan2
                | Binary::LogAddExp
                | Binary::BitAnd
                | Binary::BitOr
                | Binary::BitXor
                | Binary::ShiftLeft
                | Binary::ShiftRight => self.no_kernel(format!("{} of complex numbers", op.name())),
            },
            _ if self.real().ty.is_float() => self.binary_float(op, self.real(), other.real()),
            _ => self.binary_int(op, self.real(), other.real(), dtype),
        }
    }

    fn binary_float(self, op: Binary, a: Val<'k>, b: Val<'k>) -> Number<'k> {
        Real(match op {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
            Binary::FloorDivide => (a / b).floor(),
            Binary::Remainder => {
                let r = a.fmod(b);
                let zero = a.like(0.0);
                // The remainder has the sign of a, the result that of b.
                let moves = (r.lt(zero) ^ b.lt(zero)) & r.ne(zero);
                let r = moves.select(r + b, r);
                r.eq(zero).select(with_sign(zero, b), r)
            }
            Binary::Power => a.pow(b),
            Binary::Atan2 => a.atan2(b),
            Binary::Maximum | Binary::Minimum => {
                let wins = if op == Binary::Maximum { a.gt(b) } else { a.lt(b) };
                either_nan(a, b, wins.select(a, b))
            }
            Binary::LogAddExp => {
                let e = (-(a - b).abs()).math(Math::Exp);
                let rest = e.math(Math::Log1p);
                let sum = a.gt(b).select(a, b) + rest;
                // Equal infinities differ by NaN.
                let ln2 = a.k().float(std::f64::consts::LN_2, a.ty);
                let sum = a.eq(b).select(a + ln2, sum);
                either_nan(a, b, sum)
            }
            Binary::BitAnd
            | Binary::BitOr
            | Binary::BitXor
            | Binary::ShiftLeft
            | Binary::ShiftRight => return self.no_kernel(format!("{} of floats", op.name())),
        })
    }

    fn binary_int(self, op: Binary, a: Val<'k>, b: Val<'k>, dtype: DType) -> Number<'k> {
        Real(match op {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::FloorDivide | Binary::Remainder => {
                let nothing = b.eq(0);
                let divisor = nothing.select(1, b);
                let (mut q, mut r) = (a / divisor, a % divisor);
                if a.ty.is_signed() {
                    // Division goes towards zero, the result down.
                    let moves = (r.lt(0) ^ b.lt(0)) & r.ne(0);
                    (q, r) = (moves.select(q - 1, q), moves.select(r + divisor, r));
                }
                nothing.select(0, if op == Binary::FloorDivide { q } else { r })
            }
            Binary::Power => int_power(a, b),
            Binary::Maximum if a.ty == Ty::Bool => a | b,
            Binary::Minimum if a.ty == Ty::Bool => a & b,
            Binary::Maximum => a.max(b),
            Binary::Minimum => a.min(b),
            Binary::BitAnd => a & b,
            Binary::BitOr => a | b,
            Binary::BitXor => a ^ b,
            shift @ (Binary::ShiftLeft | Binary::ShiftRight) => {
                let bits = dtype.size() as u32 * 8;
                // A negative number is beyond the width, too.
                let unsigned = if a.ty.size() == 8 { Ty::U64 } else { Ty::U32 };
                let fits = b.convert(unsigned).lt(bits);
                let by = b.convert(Ty::U32) & (bits - 1);
                if shift == Binary::ShiftLeft {
                    fits.select(a << by, 0)
                } else if a.ty.is_signed() {
                    let beyond = a.lt(0).select(a.like(-1), 0);
                    fits.select(a >> by, beyond)
                } else {
                    fits.select(a >> by, 0)
                }
            }
            Binary::Div | Binary::Atan2 | Binary::LogAddExp => {
                return self.no_kernel(format!("{} of integers", op.name()));
            }
        })
    }

    /// A comparison with an element of the same dtype.
    pub fn compare(self, op: Compare, other: Number<'k>) -> Val<'k> {
        let cmp = match op {
            Compare::Eq => Cmp::Eq,
            Compare::Ne => Cmp::Ne,
            Compare::Lt => Cmp::Lt,
            Compare::Le => Cmp::Le,
            Compare::Gt => Cmp::Gt,
            Compare::Ge => Cmp::Ge,
        };
        match (self, other) {
            (Complex(ar, ai), Complex(br, bi)) => {
                let (re, im) = (compare_real(cmp, ar, br), compare_real(cmp, ai, bi));
                if cmp == Cmp::Eq { re & im } else { re | im }
            }
            _ => compare_real(cmp, self.real(), other.real()),
        }
    }

    /// An element of `from` as one of `to`.
    pub fn cast(self, from: DType, to: DType) -> Number<'k> {
        if from == to {
            return self;
        }
        match (self, to) {
            (Complex(re, im), DType::Bool) => Real(re.is_nonzero() | im.is_nonzero()),
            (Complex(..), DType::C32 | DType::C64) => self.rounded(to),
            (Real(x), DType::C32 | DType::C64) => {
                let re = cast_real(x, to.real());
                Complex(re, re.like(0.0))
            }
            (x, to) => Real(cast_real(x.real(), to)),
        }
    }
}

impl<'k> Val<'k> {
    /// `a` where it is true, else `b`, of numbers.
    pub fn choose(self, a: Number<'k>, b: Number<'k>) -> Number<'k> {
        match (a, b) {
            (Complex(ar, ai), Complex(br, bi)) => Complex(self.select(ar, br), self.select(ai, bi)),
            _ => Real(self.select(a.real(), b.real())),
        }
    }
}

fn unary_int(op: Unary, x: Val<'_>) -> Val<'_> {
    match op {
        Unary::Neg => x.like(0) - x,
        Unary::Abs if x.ty.is_signed() => x.lt(0).select(x.like(0) - x, x),
        Unary::Sign if x.ty.is_signed() => {
            let rest = x.lt(0).select(x.like(-1), 0);
            x.gt(0).select(1, rest)
        }
        Unary::Sign => x.min(1),
        Unary::Square => x * x,
        Unary::Not | Unary::Invert => !x,
        // What is unsigned has no sign to lose.
        Unary::Abs | Unary::Floor | Unary::Ceil | Unary::Round => x,
        // They take no integers.
        Unary::Sqrt
        | Unary::Rsqrt
        | Unary::Exp
        | Unary::Expm1
        | Unary::Log
        | Unary::Log2
        | Unary::Log10
        | Unary::Log1p
        | Unary::Sin
        | Unary::Cos
        | Unary::Tan
        | Unary::Asin
        | Unary::Acos
        | Unary::Atan
        | Unary::Sinh
        | Unary::Cosh
        | Unary::Tanh
        | Unary::Asinh
        | Unary::Acosh
        | Unary::Atanh
        | Unary::Sigmoid
        | Unary::Erf
        | Unary::Erfc
        | Unary::ErfInv
        | Unary::Conj
        | Unary::Real
        | Unary::Imag => x,
    }
}

/// The quotient, by Smith's way: the divisor's smaller part is taken relative to its larger one, so
/// that no square overflows. (R. L. Smith, Algorithm 116, CACM 1962.) Both numbers are brought away from
/// the ends of the range before, by powers of two, so that no sum overflows or vanishes either.
fn ratio<'k>(a: (Val<'k>, Val<'k>), b: (Val<'k>, Val<'k>)) -> Number<'k> {
    let given = (a, b);
    let ((a, shrunk), (b, grown)) = (centred(a), centred(b));
    let more = b.0.abs().ge(b.1.abs());
    let (large, small) = (more.select(b.0, b.1), more.select(b.1, b.0));
    let r = small / large;
    let whole = large + small * r;
    // With |re| ≥ |im|: (a + b·r, b − a·r)/d; else (a·r + b, b·r − a)/d.
    let (ar, br) = (a.0 * r, a.1 * r);
    let re = more.select(a.0 + br, ar + a.1);
    let im = more.select(a.1 - ar, br - a.0);
    let back = grown / shrunk;
    let (re, im) = (re / whole * back, im / whole * back);
    let (far_re, far_im) = at_limit(given.0, given.1);
    let is_nan = re.is_nan() & im.is_nan();
    Complex(is_nan.select(far_re, re), is_nan.select(far_im, im))
}

/// A complex number times the power of two that takes its larger part away from the ends of the range
/// of `float32`, and that power.
fn centred<'k>(z: (Val<'k>, Val<'k>)) -> ((Val<'k>, Val<'k>), Val<'k>) {
    let (re, im) = (z.0.abs(), z.1.abs());
    let large = re.ge(im).select(re, im);
    let one = large.like(1);
    let power = large.gt(2.0_f32.powi(120)).select(2.0_f32.powi(-8), one);
    let power = large.lt(2.0_f32.powi(-60)).select(2.0_f32.powi(60), power);
    ((z.0 * power, z.1 * power), power)
}

/// The quotient where the formula gives NaN: of 0 and infinite numbers what C99 says in its Annex G.5.1.
fn at_limit<'k>(a: (Val<'k>, Val<'k>), b: (Val<'k>, Val<'k>)) -> (Val<'k>, Val<'k>) {
    let infinite = |v: Val<'k>| {
        v.bits(Ty::U32).eq(f32::INFINITY.to_bits())
            | v.bits(Ty::U32).eq(f32::NEG_INFINITY.to_bits())
    };
    let any = |z: (Val<'k>, Val<'k>)| infinite(z.0) | infinite(z.1);
    let finite = |z: (Val<'k>, Val<'k>)| !any(z) & !z.0.is_nan() & !z.1.is_nan();
    let unit = |z: (Val<'k>, Val<'k>)| {
        let of = |v: Val<'k>| with_sign(infinite(v).select(v.like(1), 0.0), v);
        (of(z.0), of(z.1))
    };
    let times = |size: f32, a: (Val<'k>, Val<'k>), b: (Val<'k>, Val<'k>)| {
        let re = a.0 * b.0 + a.1 * b.1;
        let im = a.1 * b.0 - a.0 * b.1;
        (re * size, im * size)
    };
    let nan = a.0.like(f32::NAN);
    let by_zero = b.0.eq(0) & b.1.eq(0);
    let size = with_sign(a.0.like(f32::INFINITY), b.0);
    let (far, near) = (times(f32::INFINITY, unit(a), b), times(0.0, a, unit(b)));
    let (is_far, is_near) = (any(a) & finite(b), any(b) & finite(a));
    let of = |zero: Val<'k>, far: Val<'k>, near: Val<'k>| {
        by_zero.select(zero, is_far.select(far, is_near.select(near, nan)))
    };
    (of(size * a.0, far.0, near.0), of(size * a.1, far.1, near.1))
}

/// `result`, but a NaN among `a` and `b` where there is one.
fn either_nan<'k>(a: Val<'k>, b: Val<'k>, result: Val<'k>) -> Val<'k> {
    let (a_nan, b_nan) = (a.is_nan(), b.is_nan());
    let result = b_nan.select(b, result);
    a_nan.select(a, result)
}

/// `size` with the sign of `like`.
fn with_sign<'k>(size: Val<'k>, like: Val<'k>) -> Val<'k> {
    let (ty, sign) = if size.ty == Ty::F64 { (Ty::U64, 1u64 << 63) } else { (Ty::U32, 1 << 31) };
    let k = size.k();
    let (rest, sign) = (k.lit(sign - 1, ty), k.lit(sign, ty));
    ((size.bits(ty) & rest) | (like.bits(ty) & sign)).bits(size.ty)
}

/// aᵇ by squaring; a negative exponent gives what is left of 1/aᵇ.
fn int_power<'k>(a: Val<'k>, b: Val<'k>) -> Val<'k> {
    let k = a.k();
    let negative = b.lt(0);
    let (base, left) = (k.var(a), k.var(negative.select(0, b)));
    let product = k.var(a.like(1));
    k.repeat(
        || left.get().gt(0),
        || {
            let (l, x, p) = (left.get(), base.get(), product.get());
            let odd = (l & 1).ne(0);
            product.set(odd.select(p * x, p));
            base.set(x * x);
            left.set(l >> 1);
        },
    );
    let result = product.get();
    if !a.ty.is_signed() {
        return result;
    }
    let odd = (b & 1).ne(0);
    let of_less = odd.select(a.like(-1), 1);
    let inverse = a.eq(-1).select(of_less, 0);
    let inverse = a.eq(1).select(1, inverse);
    negative.select(inverse, result)
}

fn compare_real<'k>(cmp: Cmp, a: Val<'k>, b: Val<'k>) -> Val<'k> {
    if a.ty == Ty::Bool {
        return a.convert(Ty::U32).compare(cmp, b.convert(Ty::U32));
    }
    let result = a.compare(cmp, b);
    if !a.ty.is_float() {
        return result;
    }
    // A device may compare as if there were no NaN.
    let unordered = a.is_nan() | b.is_nan();
    unordered.select(a.k().bool(cmp == Cmp::Ne), result)
}

pub(super) fn cast_real(x: Val<'_>, to: DType) -> Val<'_> {
    let ty = Ty::of(to);
    match (x.ty.is_float(), to) {
        (_, DType::Bool) if x.ty == Ty::Bool => x,
        (_, DType::Bool) => x.is_nonzero(),
        (_, DType::F16 | DType::BF16) if x.ty == Ty::F64 => to_odd(x).rounded(to),
        (_, DType::F16 | DType::BF16) => x.convert(Ty::F32).rounded(to),
        (true, _) if !ty.is_float() => saturated(x, to),
        _ => x.convert(ty).wrapped(to),
    }
}

/// A `float64` as the `float32` towards zero, with an odd last digit where that is not exact: to round this to fewer
/// digits is to round once. (S. Boldo, G. Melquiond, *Emulation of a FMA and correctly rounded sums: proved algorithms
/// using rounding to odd*, 2008.)
fn to_odd(x: Val<'_>) -> Val<'_> {
    let near = x.convert(Ty::F32);
    let back = near.convert(Ty::F64);
    let bits = near.bits(Ty::U32);
    let cut = back.abs().gt(x.abs()).select(bits - 1, bits);
    (back.eq(x) | x.is_nan()).select(near, (cut | 1).bits(Ty::F32))
}

/// A float as the nearest integer of `to` towards zero; NaN is 0. What is negative becomes an unsigned
/// integer by way of the signed one, which wraps.
fn saturated(x: Val<'_>, to: DType) -> Val<'_> {
    let inside = clamped(x, to);
    if to.is_signed() {
        return inside;
    }
    let by = if to == DType::U64 { DType::I64 } else { DType::I32 };
    let below = clamped(x, by).convert(Ty::of(to)).wrapped(to);
    x.lt(0.0).select(below, inside)
}

/// A float as the nearest integer of `to` towards zero; NaN is 0.
fn clamped(x: Val<'_>, to: DType) -> Val<'_> {
    let (k, ty) = (x.k(), Ty::of(to));
    let bits = to.size() as i32 * 8;
    let (low, above) = match to.is_signed() {
        true => (-2f64.powi(bits - 1), 2f64.powi(bits - 1)),
        false => (0.0, 2f64.powi(bits)),
    };
    let (most, least) = match to.is_signed() {
        true => (u64::MAX >> (65 - bits), (u64::MAX << (bits - 1))),
        false => (u64::MAX >> (64 - bits), 0),
    };
    let (too_low, too_high) = (x.le(k.float(low, x.ty)), x.ge(k.float(above, x.ty)));
    let nan = x.is_nan();
    let out = too_low | too_high | nan;
    let v = out.select(0.0, x).trunc().convert(ty);
    let v = too_high.select(k.lit(most, ty), v);
    let v = too_low.select(k.lit(least, ty), v);
    nan.select(0, v)
}
