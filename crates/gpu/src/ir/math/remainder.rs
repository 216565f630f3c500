//! `fmod`: a long division of mantissas.

use super::INFINITY;
use crate::ir::{Ty, Val};

/// The mantissa and the exponent of the number with these bits: m·2ᵉ⁻¹⁵⁰, with e ≥ 1.
fn mantissa(bits: Val<'_>) -> (Val<'_>, Val<'_>) {
    let (field, fraction) = (bits >> 23, bits & 0x7f_ffff);
    let top = field.ne(0).select(field.like(0x80_0000), 0);
    (fraction | top, field.max(1))
}

/// The remainder of x/y towards zero; exact, and of subnormals too.
pub(super) fn fmod<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let k = x.k();
    let (x_size, y_size) = (x.magnitude(), y.magnitude());
    let ((x_m, x_e), (y_m, y_e)) = (mantissa(x_size), mantissa(y_size));
    let divisor = y_m.max(1);
    let small = x_size.lt(y_size);
    let remainder = k.var(x_m % divisor);
    let left = k.var(small.select(0, x_e - y_e));
    // A remainder has 24 bits, so that 8 more fit below it.
    k.repeat(
        || left.get().ne(0),
        || {
            let (n, r) = (left.get(), remainder.get());
            let taken = n.min(8);
            remainder.set((r << taken) % divisor);
            left.set(n - taken);
        },
    );
    let r = remainder.get();
    // The bits of r·2ᵉ⁻¹⁵⁰, where e is that of y.
    let float = r.convert(Ty::F32).bits(Ty::U32);
    let place = (float >> 23) + y_e;
    let subnormal = place.le(150) | r.eq(0);
    let normal = float + ((y_e - 150) << 23);
    let low = r << ((y_e - 1) & 31);
    let bits = small.select(x_size, subnormal.select(low, normal));
    let bits = bits | x.sign();
    // Of infinity, by zero, or with NaN.
    let bad = x_size.ge(INFINITY) | y_size.gt(INFINITY) | y_size.eq(0);
    bad.select(f32::NAN, bits.bits(Ty::F32))
}
