//! `fmod`: a long division of mantissas.

use super::INFINITY;
use crate::ir::{Build, Ty, Val};

/// The mantissa and the exponent of the number with these bits: m·2ᵉ⁻¹⁵⁰, with e ≥ 1.
fn mantissa(b: &mut Build, bits: Val) -> (Val, Val) {
    let (field, fraction) = (b.down(bits, 23), b.and_bits(bits, 0x7f_ffff));
    let (zero, hidden, one) = (b.u32(0), b.u32(0x80_0000), b.u32(1));
    let normal = b.ne(field, zero);
    let top = b.select(normal, hidden, zero);
    (b.or(fraction, top), b.max_int(field, one))
}

/// The remainder of x/y towards zero; exact, and of subnormals too.
pub(super) fn fmod(b: &mut Build, x: Val, y: Val) -> Val {
    let (x_size, y_size) = (b.magnitude(x), b.magnitude(y));
    let (zero, one) = (b.u32(0), b.u32(1));
    let ((x_m, x_e), (y_m, y_e)) = (mantissa(b, x_size), mantissa(b, y_size));
    let divisor = b.max_int(y_m, one);
    let small = b.lt(x_size, y_size);
    let first = b.rem(x_m, divisor);
    let steps = b.sub(x_e, y_e);
    let steps = b.select(small, zero, steps);
    let (remainder, left) = (b.var(first), b.var(steps));
    // A remainder has 24 bits, so that 8 more fit below it.
    b.repeat(
        |b| {
            let left = b.get(left);
            b.ne(left, zero)
        },
        |b| {
            let (most, n, r) = (b.u32(8), b.get(left), b.get(remainder));
            let taken = b.min_int(n, most);
            let r = b.shl(r, taken);
            let r = b.rem(r, divisor);
            let n = b.sub(n, taken);
            b.set(remainder, r);
            b.set(left, n);
        },
    );
    let r = b.get(remainder);
    // The bits of r·2ᵉ⁻¹⁵⁰, where e is that of y.
    let float = b.convert(r, Ty::F32);
    let float = b.bits(float, Ty::U32);
    let (field, middle) = (b.down(float, 23), b.u32(150));
    let place = b.add(field, y_e);
    let (subnormal, none) = (b.le(place, middle), b.eq(r, zero));
    let subnormal = b.or(subnormal, none);
    let (shift, up) = (b.sub(y_e, middle), b.sub(y_e, one));
    let shift = b.up(shift, 23);
    let normal = b.add(float, shift);
    let up = b.and_bits(up, 31);
    let low = b.shl(r, up);
    let bits = b.select(subnormal, low, normal);
    let bits = b.select(small, x_size, bits);
    let sign = b.sign(x);
    let bits = b.or(bits, sign);
    // Of infinity, by zero, or with NaN.
    let infinity = b.u32(INFINITY);
    let (x_bad, y_bad, by_zero) =
        (b.ge(x_size, infinity), b.gt(y_size, infinity), b.eq(y_size, zero));
    let bad = b.or(x_bad, y_bad);
    let bad = b.or(bad, by_zero);
    let result = b.float_of(bits);
    b.put(bad, f32::NAN, result)
}
