//! The instructions of an elementwise program.

use cupola_core::DType;
use cupola_core::plan::body::{Body, BodyOp, Instr};
use cupola_core::prim::{Binary, Compare, Unary};

use super::{Arg, Draft, Missing};
use crate::ir::{Build, Cmp, Math, Number, Ty, Un, Val};

use Number::{Complex, Real};

impl Draft<'_> {
    /// The run-time scalars of `body`, which are the segment's.
    pub fn scalars(&mut self, body: &Body) -> Result<Vec<Number>, Missing> {
        (body.scalars.iter().enumerate())
            .map(|(index, &dtype)| {
                super::check_dtype(dtype, self.build.target)?;
                self.args.push(Arg::Scalar(index));
                let (low, high) = (self.build.arg(), self.build.arg());
                Ok(self.decoded(low, high, dtype))
            })
            .collect()
    }

    /// The element of `dtype` whose bytes are in two words.
    fn decoded(&mut self, low: Val, high: Val, dtype: DType) -> Number {
        let b = &mut self.build;
        Real(match dtype {
            DType::Bool => {
                let zero = b.u32(0);
                b.ne(low, zero)
            }
            DType::U8 | DType::U16 => b.wrapped(low, dtype),
            DType::U32 => low,
            DType::I8 | DType::I16 | DType::I32 => {
                let signed = b.bits(low, Ty::I32);
                b.wrapped(signed, dtype)
            }
            DType::F32 => b.bits(low, Ty::F32),
            DType::F16 => {
                let mask = b.u32(0xffff);
                let half = b.and(low, mask);
                b.un(Un::HalfToFloat, half)
            }
            DType::BF16 => {
                let up = b.u32(16);
                let bits = b.shl(low, up);
                b.bits(bits, Ty::F32)
            }
            DType::C64 => return Complex(b.bits(low, Ty::F32), b.bits(high, Ty::F32)),
            DType::U64 | DType::I64 | DType::F64 => {
                return Real(self.join(low, high, Ty::of(dtype)));
            }
        })
    }

    /// Every register of `body` for one element.
    pub fn run(
        &mut self,
        body: &Body,
        inputs: &[Number],
        scalars: &[Number],
    ) -> Result<Vec<Number>, Missing> {
        let mut registers = [inputs, scalars].concat();
        for instr in &body.code {
            let args: Vec<Number> = instr.args.iter().map(|&r| registers[usize::from(r)]).collect();
            registers.push(self.instruction(body, instr, &args)?);
        }
        Ok(registers)
    }

    /// What one instruction of `body` gives.
    pub fn instruction(
        &mut self,
        body: &Body,
        instr: &Instr,
        args: &[Number],
    ) -> Result<Number, Missing> {
        super::check_dtype(instr.dtype, self.build.target)?;
        let from = body.dtype_of(instr.args[0]);
        let b = &mut self.build;
        let result = match instr.op {
            BodyOp::Unary(op) => b.unary(op, args[0])?,
            BodyOp::Binary(op) => b.binary(op, args[0], args[1], from)?,
            BodyOp::Compare(op) => Real(b.compare(op, args[0], args[1])),
            BodyOp::Select(_) => b.choose(args[0].real(), args[1], args[2]),
            BodyOp::Cast(_) => b.cast(args[0], from, instr.dtype),
        };
        Ok(match result {
            Real(v) => Real(b.wrapped(v, instr.dtype)),
            complex => complex,
        })
    }
}

impl Build<'_> {
    /// `a` where `condition`, else `b`, of numbers.
    pub fn choose(&mut self, condition: Val, a: Number, b: Number) -> Number {
        match (a, b) {
            (Complex(ar, ai), Complex(br, bi)) => {
                Complex(self.select(condition, ar, br), self.select(condition, ai, bi))
            }
            _ => Real(self.select(condition, a.real(), b.real())),
        }
    }

    fn unary(&mut self, op: Unary, x: Number) -> Result<Number, Missing> {
        match x {
            Complex(re, im) => self.unary_complex(op, re, im),
            Real(x) if x.ty.is_float() => self.unary_float(op, x).map(Real),
            Real(x) => Ok(Real(self.unary_int(op, x))),
        }
    }

    fn unary_int(&mut self, op: Unary, x: Val) -> Val {
        match op {
            Unary::Neg => {
                let zero = self.int(0, x.ty);
                self.sub(zero, x)
            }
            Unary::Abs if x.ty.is_signed() => {
                let zero = self.int(0, x.ty);
                let (negative, opposite) = (self.lt(x, zero), self.sub(zero, x));
                self.select(negative, opposite, x)
            }
            Unary::Sign if x.ty.is_signed() => {
                let (zero, one, less) = (self.int(0, x.ty), self.int(1, x.ty), self.int(-1, x.ty));
                let (above, below) = (self.gt(x, zero), self.lt(x, zero));
                let rest = self.select(below, less, zero);
                self.select(above, one, rest)
            }
            Unary::Sign => {
                let one = self.int(1, x.ty);
                self.min_int(x, one)
            }
            Unary::Square => self.mul(x, x),
            Unary::Not | Unary::Invert => self.not(x),
            // The others leave integers alone, or do not take them.
            _ => x,
        }
    }

    fn unary_float(&mut self, op: Unary, x: Val) -> Result<Val, Missing> {
        Ok(match op {
            Unary::Neg => self.neg(x),
            Unary::Abs => self.abs(x),
            Unary::Sign => {
                let (zero, one, less) =
                    (self.float(0.0, x.ty), self.float(1.0, x.ty), self.float(-1.0, x.ty));
                let (above, below) = (self.gt(x, zero), self.lt(x, zero));
                let rest = self.add(x, zero);
                let rest = self.select(below, less, rest);
                self.select(above, one, rest)
            }
            Unary::Square => self.mul(x, x),
            Unary::Floor => self.un(Un::Floor, x),
            Unary::Ceil => self.un(Un::Ceil, x),
            Unary::Round => self.un(Un::Round, x),
            Unary::Sqrt => self.un(Un::Sqrt, x),
            Unary::Rsqrt => {
                let (one, root) = (self.float(1.0, x.ty), self.un(Un::Sqrt, x));
                self.div(one, root)
            }
            Unary::Exp => self.math(Math::Exp, x)?,
            Unary::Expm1 => self.math(Math::Expm1, x)?,
            Unary::Log => self.math(Math::Log, x)?,
            Unary::Log2 => self.math(Math::Log2, x)?,
            Unary::Log10 => self.math(Math::Log10, x)?,
            Unary::Log1p => self.math(Math::Log1p, x)?,
            Unary::Sin => self.math(Math::Sin, x)?,
            Unary::Cos => self.math(Math::Cos, x)?,
            Unary::Tan => self.math(Math::Tan, x)?,
            Unary::Asin => self.math(Math::Asin, x)?,
            Unary::Acos => self.math(Math::Acos, x)?,
            Unary::Atan => self.math(Math::Atan, x)?,
            Unary::Sinh => self.math(Math::Sinh, x)?,
            Unary::Cosh => self.math(Math::Cosh, x)?,
            Unary::Tanh => self.math(Math::Tanh, x)?,
            Unary::Asinh => self.math(Math::Asinh, x)?,
            Unary::Acosh => self.math(Math::Acosh, x)?,
            Unary::Atanh => self.math(Math::Atanh, x)?,
            Unary::Erf => self.math(Math::Erf, x)?,
            Unary::ErfInv => self.math(Math::ErfInv, x)?,
            Unary::Sigmoid => {
                // Only powers of at most 1, so that nothing overflows.
                let size = self.abs(x);
                let less = self.neg(size);
                let e = self.math(Math::Exp, less)?;
                let (zero, one) = (self.float(0.0, x.ty), self.float(1.0, x.ty));
                let below = self.lt(x, zero);
                let top = self.select(below, e, one);
                let bottom = self.add(one, e);
                self.div(top, bottom)
            }
            Unary::Not | Unary::Invert | Unary::Conj | Unary::Real | Unary::Imag => {
                return Err(Missing(format!("{} of a float", op.name())));
            }
        })
    }

    fn unary_complex(&mut self, op: Unary, re: Val, im: Val) -> Result<Number, Missing> {
        Ok(match op {
            Unary::Neg => Complex(self.neg(re), self.neg(im)),
            Unary::Conj => Complex(re, self.neg(im)),
            Unary::Real => Real(re),
            Unary::Imag => Real(im),
            Unary::Abs => Real(self.modulus(re, im)),
            Unary::Square => {
                let (xx, yy, xy) = (self.mul(re, re), self.mul(im, im), self.mul(re, im));
                Complex(self.sub(xx, yy), self.add(xy, xy))
            }
            Unary::Exp => {
                let e = self.math(Math::Exp, re)?;
                let (c, s) = (self.math(Math::Cos, im)?, self.math(Math::Sin, im)?);
                Complex(self.mul(e, c), self.mul(e, s))
            }
            other => return Err(Missing(format!("{} of a complex number", other.name()))),
        })
    }

    /// √(x² + y²), without overflow on the way.
    fn modulus(&mut self, x: Val, y: Val) -> Val {
        let (x, y) = (self.abs(x), self.abs(y));
        let more = self.gt(x, y);
        let (large, small) = (self.select(more, x, y), self.select(more, y, x));
        let (zero, one) = (self.f32(0.0), self.f32(1.0));
        let none = self.eq(large, zero);
        let divisor = self.select(none, one, large);
        let ratio = self.div(small, divisor);
        let square = self.mul(ratio, ratio);
        let sum = self.add(one, square);
        let root = self.un(Un::Sqrt, sum);
        let length = self.mul(large, root);
        let infinity = self.f32(f32::INFINITY);
        let endless = self.eq(large, infinity);
        let length = self.select(endless, infinity, length);
        // NaN in either part, unless the other is infinite.
        let (nx, ny) = (self.is_nan(x), self.is_nan(y));
        let (ix, iy) = (self.eq(x, infinity), self.eq(y, infinity));
        let bad_x = self.select(nx, x, length);
        let bad = self.select(ny, y, bad_x);
        let either = self.or(ix, iy);
        self.select(either, infinity, bad)
    }

    /// Joins two elements of `dtype`.
    pub fn binary(
        &mut self,
        op: Binary,
        x: Number,
        y: Number,
        dtype: DType,
    ) -> Result<Number, Missing> {
        Ok(match (x, y) {
            (Complex(ar, ai), Complex(br, bi)) => match op {
                Binary::Add => Complex(self.add(ar, br), self.add(ai, bi)),
                Binary::Sub => Complex(self.sub(ar, br), self.sub(ai, bi)),
                Binary::Mul => self.complex_product((ar, ai), (br, bi)),
                Binary::Div => self.ratio((ar, ai), (br, bi)),
                other => return Err(Missing(format!("{} of complex numbers", other.name()))),
            },
            _ => {
                let (x, y) = (x.real(), y.real());
                Real(match x.ty.is_float() {
                    true => self.binary_float(op, x, y)?,
                    false => self.binary_int(op, x, y, dtype)?,
                })
            }
        })
    }

    fn complex_product(&mut self, a: (Val, Val), b: (Val, Val)) -> Number {
        let (rr, ii) = (self.mul(a.0, b.0), self.mul(a.1, b.1));
        let (ri, ir) = (self.mul(a.0, b.1), self.mul(a.1, b.0));
        Complex(self.sub(rr, ii), self.add(ri, ir))
    }

    /// The quotient, by Smith's way: the divisor's smaller part is taken relative to its larger
    /// one, so that no square overflows. (R. L. Smith, Algorithm 116, CACM 1962.)
    fn ratio(&mut self, a: (Val, Val), b: (Val, Val)) -> Number {
        let (size_r, size_i) = (self.abs(b.0), self.abs(b.1));
        let more = self.ge(size_r, size_i);
        let (large, small) = (self.select(more, b.0, b.1), self.select(more, b.1, b.0));
        let r = self.div(small, large);
        let step = self.mul(small, r);
        let whole = self.add(large, step);
        // With |re| ≥ |im|: (a + b·r, b − a·r)/d; else (a·r + b, b·r − a)/d.
        let (ar, br) = (self.mul(a.0, r), self.mul(a.1, r));
        let (re_first, re_other) = (self.add(a.0, br), self.add(ar, a.1));
        let (im_first, im_other) = (self.sub(a.1, ar), self.sub(br, a.0));
        let re = self.select(more, re_first, re_other);
        let im = self.select(more, im_first, im_other);
        Complex(self.div(re, whole), self.div(im, whole))
    }

    fn binary_float(&mut self, op: Binary, a: Val, b: Val) -> Result<Val, Missing> {
        Ok(match op {
            Binary::Add => self.add(a, b),
            Binary::Sub => self.sub(a, b),
            Binary::Mul => self.mul(a, b),
            Binary::Div => self.div(a, b),
            Binary::FloorDivide => {
                let quotient = self.div(a, b);
                self.un(Un::Floor, quotient)
            }
            Binary::Remainder => {
                let r = self.fmod(a, b)?;
                let zero = self.float(0.0, a.ty);
                let (below, wants) = (self.lt(r, zero), self.lt(b, zero));
                let (differ, some) = (self.xor(below, wants), self.ne(r, zero));
                let moves = self.and(differ, some);
                let moved = self.add(r, b);
                let r = self.select(moves, moved, r);
                let nothing = self.eq(r, zero);
                let signed = self.with_sign(zero, b);
                self.select(nothing, signed, r)
            }
            Binary::Power => self.pow(a, b)?,
            Binary::Atan2 => self.atan2(a, b)?,
            Binary::Maximum | Binary::Minimum => {
                let wins = match op {
                    Binary::Maximum => self.gt(a, b),
                    _ => self.lt(a, b),
                };
                let best = self.select(wins, a, b);
                let (na, nb) = (self.is_nan(a), self.is_nan(b));
                let best = self.select(nb, b, best);
                self.select(na, a, best)
            }
            Binary::LogAddExp => {
                let difference = self.sub(a, b);
                let distance = self.abs(difference);
                let less = self.neg(distance);
                let e = self.math(Math::Exp, less)?;
                let rest = self.math(Math::Log1p, e)?;
                let more = self.gt(a, b);
                let larger = self.select(more, a, b);
                let sum = self.add(larger, rest);
                // Equal infinities differ by NaN.
                let (same, ln2) = (self.eq(a, b), self.float(std::f64::consts::LN_2, a.ty));
                let twice = self.add(a, ln2);
                let sum = self.select(same, twice, sum);
                let (na, nb) = (self.is_nan(a), self.is_nan(b));
                let sum = self.select(nb, b, sum);
                self.select(na, a, sum)
            }
            Binary::BitAnd
            | Binary::BitOr
            | Binary::BitXor
            | Binary::ShiftLeft
            | Binary::ShiftRight => return Err(Missing(format!("{} of floats", op.name()))),
        })
    }

    /// `size` with the sign of `like`.
    fn with_sign(&mut self, size: Val, like: Val) -> Val {
        let bits = if size.ty == Ty::F64 { Ty::U64 } else { Ty::U32 };
        let (sign, rest) = match bits {
            Ty::U64 => (self.lit(1 << 63, bits), self.lit(u64::MAX >> 1, bits)),
            _ => (self.u32(1 << 31), self.u32(u32::MAX >> 1)),
        };
        let (s, l) = (self.bits(size, bits), self.bits(like, bits));
        let (s, l) = (self.and(s, rest), self.and(l, sign));
        let both = self.or(s, l);
        self.bits(both, size.ty)
    }

    fn binary_int(&mut self, op: Binary, a: Val, b: Val, dtype: DType) -> Result<Val, Missing> {
        let zero = self.int(0, a.ty);
        Ok(match op {
            Binary::Add => self.add(a, b),
            Binary::Sub => self.sub(a, b),
            Binary::Mul => self.mul(a, b),
            Binary::FloorDivide | Binary::Remainder => {
                let (nothing, one) = (self.eq(b, zero), self.int(1, a.ty));
                let divisor = self.select(nothing, one, b);
                let (mut q, mut r) = (self.div(a, divisor), self.rem(a, divisor));
                if a.ty.is_signed() {
                    let (below, wants, some) =
                        (self.lt(r, zero), self.lt(b, zero), self.ne(r, zero));
                    let differ = self.xor(below, wants);
                    let moves = self.and(differ, some);
                    let (down, moved) = (self.sub(q, one), self.add(r, divisor));
                    q = self.select(moves, down, q);
                    r = self.select(moves, moved, r);
                }
                let result = if op == Binary::FloorDivide { q } else { r };
                self.select(nothing, zero, result)
            }
            Binary::Power => self.int_power(a, b),
            Binary::Maximum | Binary::Minimum if a.ty == Ty::Bool => match op {
                Binary::Maximum => self.or(a, b),
                _ => self.and(a, b),
            },
            Binary::Maximum => self.max_int(a, b),
            Binary::Minimum => self.min_int(a, b),
            Binary::BitAnd => self.and(a, b),
            Binary::BitOr => self.or(a, b),
            Binary::BitXor => self.xor(a, b),
            Binary::ShiftLeft | Binary::ShiftRight => {
                let bits = dtype.size() as u32 * 8;
                // A negative number is beyond the width, too.
                let unsigned = if a.ty.size() == 8 { Ty::U64 } else { Ty::U32 };
                let (count, width) = (self.convert(b, unsigned), self.int(bits.into(), unsigned));
                let fits = self.lt(count, width);
                let (by, most) = (self.convert(b, Ty::U32), self.u32(bits - 1));
                let by = self.and(by, most);
                let (shifted, beyond) = match op {
                    Binary::ShiftLeft => (self.shl(a, by), zero),
                    _ => {
                        let (below, less) = (self.lt(a, zero), self.int(-1, a.ty));
                        let rest = match a.ty.is_signed() {
                            true => self.select(below, less, zero),
                            false => zero,
                        };
                        (self.shr(a, by), rest)
                    }
                };
                self.select(fits, shifted, beyond)
            }
            Binary::Div | Binary::Atan2 | Binary::LogAddExp => {
                return Err(Missing(format!("{} of integers", op.name())));
            }
        })
    }

    /// aᵇ by squaring; a negative exponent gives what is left of 1/aᵇ.
    fn int_power(&mut self, a: Val, b: Val) -> Val {
        let (zero, one) = (self.int(0, a.ty), self.int(1, a.ty));
        let shift = self.u32(1);
        let negative = self.lt(b, zero);
        let first = self.select(negative, zero, b);
        let (base, left, product) = (self.var(a), self.var(first), self.var(one));
        self.repeat(
            |k| {
                let left = k.get(left);
                k.gt(left, zero)
            },
            |k| {
                let (l, x, p) = (k.get(left), k.get(base), k.get(product));
                let last = k.and(l, one);
                let odd = k.ne(last, zero);
                let more = k.mul(p, x);
                let next = k.select(odd, more, p);
                k.set(product, next);
                let square = k.mul(x, x);
                k.set(base, square);
                let rest = k.shr(l, shift);
                k.set(left, rest);
            },
        );
        let result = self.get(product);
        if !a.ty.is_signed() {
            return result;
        }
        let less = self.int(-1, a.ty);
        let last = self.and(b, one);
        let odd = self.ne(last, zero);
        let of_less = self.select(odd, less, one);
        let (is_one, is_less) = (self.eq(a, one), self.eq(a, less));
        let inverse = self.select(is_less, of_less, zero);
        let inverse = self.select(is_one, one, inverse);
        self.select(negative, inverse, result)
    }

    /// A comparison of elements of one dtype.
    pub fn compare(&mut self, op: Compare, a: Number, b: Number) -> Val {
        let cmp = match op {
            Compare::Eq => Cmp::Eq,
            Compare::Ne => Cmp::Ne,
            Compare::Lt => Cmp::Lt,
            Compare::Le => Cmp::Le,
            Compare::Gt => Cmp::Gt,
            Compare::Ge => Cmp::Ge,
        };
        match (a, b) {
            (Complex(ar, ai), Complex(br, bi)) => {
                let (re, im) = (self.compare_real(cmp, ar, br), self.compare_real(cmp, ai, bi));
                if cmp == Cmp::Eq { self.and(re, im) } else { self.or(re, im) }
            }
            _ => self.compare_real(cmp, a.real(), b.real()),
        }
    }

    fn compare_real(&mut self, cmp: Cmp, a: Val, b: Val) -> Val {
        if a.ty == Ty::Bool {
            let (a, b) = (self.convert(a, Ty::U32), self.convert(b, Ty::U32));
            return self.cmp(cmp, a, b);
        }
        let result = self.cmp(cmp, a, b);
        if !a.ty.is_float() {
            return result;
        }
        // A device may compare as if there were no NaN.
        let (na, nb) = (self.is_nan(a), self.is_nan(b));
        let unordered = self.or(na, nb);
        let wrong = self.bool(cmp == Cmp::Ne);
        self.select(unordered, wrong, result)
    }

    /// An element of `from` as one of `to`.
    pub fn cast(&mut self, x: Number, from: DType, to: DType) -> Number {
        if from == to {
            return x;
        }
        match (x, to) {
            (Complex(re, im), DType::Bool) => {
                let (a, b) = (self.is_nonzero(re), self.is_nonzero(im));
                Real(self.or(a, b))
            }
            (x, DType::C64) => Complex(self.convert(x.real(), Ty::F32), self.f32(0.0)),
            (x, to) => Real(self.cast_real(x.real(), to)),
        }
    }

    fn cast_real(&mut self, x: Val, to: DType) -> Val {
        let ty = Ty::of(to);
        match (x.ty.is_float(), to) {
            (_, DType::Bool) if x.ty == Ty::Bool => x,
            (_, DType::Bool) => self.is_nonzero(x),
            (_, DType::F16 | DType::BF16) => {
                let single = self.convert(x, Ty::F32);
                self.rounded(single, to)
            }
            (true, _) if !ty.is_float() => self.saturated(x, to),
            _ => {
                let v = self.convert(x, ty);
                self.wrapped(v, to)
            }
        }
    }

    /// A float as the nearest integer of `to` towards zero; NaN is 0.
    fn saturated(&mut self, x: Val, to: DType) -> Val {
        let ty = Ty::of(to);
        let bits = to.size() as i32 * 8;
        let (low, above) = match to.is_signed() {
            true => (-2f64.powi(bits - 1), 2f64.powi(bits - 1)),
            false => (0.0, 2f64.powi(bits)),
        };
        let (most, least) = match to.is_signed() {
            true => (u64::MAX >> (65 - bits), (u64::MAX << (bits - 1))),
            false => (u64::MAX >> (64 - bits), 0),
        };
        let (low, above) = (self.float(low, x.ty), self.float(above, x.ty));
        let (too_low, too_high) = (self.le(x, low), self.ge(x, above));
        let nan = self.is_nan(x);
        let out = self.or(too_low, too_high);
        let out = self.or(out, nan);
        let zero = self.float(0.0, x.ty);
        let safe = self.select(out, zero, x);
        let whole = self.un(Un::Trunc, safe);
        let v = self.convert(whole, ty);
        let (most, least) = (self.lit(most, ty), self.lit(least, ty));
        let v = self.select(too_high, most, v);
        let v = self.select(too_low, least, v);
        let nothing = self.int(0, ty);
        self.select(nan, nothing, v)
    }
}
