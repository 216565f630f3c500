//! Numbers of the half types as `f32` and back, in plain arithmetic that vectorises.

use half::f16;
use num_complex::{Complex, Complex32};

use super::{Isa, Kernel, dispatch};

/// Exact.
#[inline(always)]
pub fn bf16_to_f32(x: u16) -> f32 {
    f32::from_bits(u32::from(x) << 16)
}

/// To nearest even.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    (if x.is_nan() { (bits >> 16) | 0x40 } else { rounded }) as u16
}

/// Exact, without branches: the exponent is moved by a multiplication, which also normalises
/// subnormal numbers.
#[inline(always)]
pub fn f16_to_f32(x: u16) -> f32 {
    let x = u32::from(x);
    let magnitude = f32::from_bits((x & 0x7fff) << 13) * f32::from_bits(0x7780_0000);
    let special = f32::from_bits(magnitude.to_bits() | 0x7f80_0000);
    let y = if x & 0x7c00 == 0x7c00 { special } else { magnitude };
    f32::from_bits(y.to_bits() | ((x & 0x8000) << 16))
}

/// To nearest even, without branches.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let sign = (x.to_bits() >> 16) & 0x8000;
    let a = x.to_bits() & 0x7fff_ffff;
    // Adding a half lines a subnormal's last bit up with that of the sum.
    let small = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let normal = a.wrapping_sub(0x3800_0000).wrapping_add(0xfff + ((a >> 13) & 1)) >> 13;
    let y = if a < 0x3880_0000 { small } else { normal };
    let y = if a >= 0x4780_0000 { 0x7c00 } else { y };
    let y = if a > 0x7f80_0000 { 0x7e00 | ((a >> 13) & 0x3ff) } else { y };
    (y | sign) as u16
}

/// Exact, of both parts.
#[inline(always)]
pub fn c32_to_c64(z: Complex<f16>) -> Complex32 {
    Complex32::new(f16_to_f32(z.re.to_bits()), f16_to_f32(z.im.to_bits()))
}

/// Both parts to nearest even.
#[inline(always)]
pub fn c64_to_c32(z: Complex32) -> Complex<f16> {
    Complex::new(f16::from_bits(f32_to_f16(z.re)), f16::from_bits(f32_to_f16(z.im)))
}

/// What `of` makes of each element.
pub fn convert<A: Copy, B>(src: &[A], dst: &mut [B], of: impl Fn(A) -> B + Copy) {
    dispatch(Isa::best(), Convert { src, dst, of });
}

struct Convert<'a, A, B, F> {
    src: &'a [A],
    dst: &'a mut [B],
    of: F,
}

impl<A: Copy, B, F: Fn(A) -> B> Kernel for Convert<'_, A, B, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (dst, &src) in self.dst.iter_mut().zip(self.src) {
            *dst = (self.of)(src);
        }
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn halves_convert_as_the_half_crate_does() {
        for bits in 0..=u16::MAX {
            let (a, b) = (f16_to_f32(bits), f16::from_bits(bits).to_f32());
            assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{bits:x}");
        }
        for bits in (0..=u32::MAX).step_by(97) {
            let x = f32::from_bits(bits);
            let (a, b) = (f16::from_bits(f32_to_f16(x)), f16::from_f32(x));
            assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{x:e}");
            let (a, b) = (bf16::from_bits(f32_to_bf16(x)), bf16::from_f32(x));
            assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{x:e}");
        }
    }
}
