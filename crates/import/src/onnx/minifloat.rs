//! Floats of 8 bits and fewer: their values, and rounding to them.

use cupola_core::{Array, DType, Result, ops};

use super::element::Element;

/// Which bit patterns are not numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Infinities and NaN as in IEEE 754.
    Ieee,
    /// No infinities; NaN where all bits but the sign are set.
    Nan,
    /// No infinities, no negative zero, whose pattern is NaN.
    Unsigned,
    /// Numbers only.
    Finite,
}

/// The layout of a small float with a sign.
#[derive(Clone, Copy)]
pub struct Format {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    special: Special,
}

/// How a number is rounded to a small float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounding {
    /// Whether what is too large becomes the largest number.
    pub saturate: bool,
    /// The direction for powers of two.
    pub direction: Direction,
}

/// Where a number between two powers of two goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Away from zero.
    Up,
    /// Towards zero.
    Down,
    /// To the nearest, ties up.
    Nearest,
}

impl Default for Rounding {
    fn default() -> Self {
        Rounding { saturate: true, direction: Direction::Up }
    }
}

impl Format {
    /// The layout of an element type; `None` where it is no small float with a sign.
    pub fn of(element: Element) -> Option<Format> {
        let format =
            |exponent, mantissa, bias, special| Some(Format { exponent, mantissa, bias, special });
        match element {
            Element::Float8E4M3FN => format(4, 3, 7, Special::Nan),
            Element::Float8E4M3FNUZ => format(4, 3, 8, Special::Unsigned),
            Element::Float8E5M2 => format(5, 2, 15, Special::Ieee),
            Element::Float8E5M2FNUZ => format(5, 2, 16, Special::Unsigned),
            Element::Float4E2M1 => format(2, 1, 1, Special::Finite),
            Element::Float6E2M3 => format(2, 3, 1, Special::Finite),
            Element::Float6E3M2 => format(3, 2, 3, Special::Finite),
            _ => None,
        }
    }

    /// The largest number.
    fn largest(self) -> f32 {
        let ones = (1 << (self.exponent + self.mantissa)) - 1;
        self.decode(match self.special {
            Special::Ieee => ones - (1 << self.mantissa),
            Special::Nan => ones - 1,
            Special::Unsigned | Special::Finite => ones,
        })
    }

    /// The value of a bit pattern.
    pub fn decode(self, bits: u8) -> f32 {
        let width = self.exponent + self.mantissa;
        let sign = if bits >> width & 1 == 1 { -1.0 } else { 1.0 };
        let magnitude = bits & ((1u16 << width) - 1) as u8;
        let exponent = i32::from(magnitude >> self.mantissa);
        let fraction = f32::from(magnitude & ((1 << self.mantissa) - 1));
        let all = (1u16 << width) - 1;
        match self.special {
            Special::Nan if u16::from(magnitude) == all => return f32::NAN,
            Special::Unsigned if sign < 0.0 && magnitude == 0 => return f32::NAN,
            Special::Ieee if exponent == (1 << self.exponent) - 1 => {
                return if fraction == 0.0 { sign * f32::INFINITY } else { f32::NAN };
            }
            _ => {}
        }
        let unit = 2f32.powi(-(self.mantissa as i32));
        match exponent {
            0 => sign * fraction * unit * 2f32.powi(1 - self.bias),
            e => sign * (1.0 + fraction * unit) * 2f32.powi(e - self.bias),
        }
    }

    /// Records the rounding of a `float32` array to the format, ties to even.
    fn round(self, x: &Array, saturate: bool) -> Result<Array> {
        let bits = ops::view(x, DType::U32)?;
        let exponent = ops::bitwise_and(&ops::right_shift(&bits, 23u32)?, 255u32)?;
        let least = (1 - self.bias + 127) as u32;
        let place = ops::subtract(&ops::maximum(&exponent, least)?, self.mantissa)?;
        let unit = ops::view(&ops::left_shift(&place, 23u32)?, DType::F32)?;
        let rounded = ops::multiply(&ops::round(&ops::divide(x, &unit)?, 0)?, &unit)?;
        let largest = self.largest();
        let large = ops::greater(&ops::abs(&rounded)?, largest)?;
        let limit = ops::multiply(&ops::sign(x)?, largest)?;
        let beyond = match (saturate || self.special == Special::Finite, self.special) {
            (true, _) => limit,
            (false, Special::Ieee) => ops::multiply(&ops::sign(x)?, f32::INFINITY)?,
            (false, _) => ops::full_like(x, f32::NAN)?,
        };
        let out = ops::where_(&large, &beyond, &rounded)?;
        match self.special {
            Special::Unsigned => ops::add(&out, 0.0f32),
            Special::Finite => ops::where_(&ops::isnan(x)?, -0.0f32, &out),
            Special::Ieee | Special::Nan => Ok(out),
        }
    }
}

/// The value of a power of two of 8 bits.
pub fn decode_power(bits: u8) -> f32 {
    match bits {
        255 => f32::NAN,
        0 => f32::from_bits(1 << 22),
        e => f32::from_bits(u32::from(e) << 23),
    }
}

/// Records the rounding of a `float32` array to powers of two.
fn round_power(x: &Array, rounding: Rounding) -> Result<Array> {
    let bits = ops::view(x, DType::U32)?;
    let bits = ops::bitwise_and(&bits, 0x7fff_ffffu32)?;
    // What is added before the fraction goes, and up to where the least power is meant: it has no
    // exponent of its own in `float32`.
    let (carry, small) = match rounding.direction {
        Direction::Up => ((1u32 << 23) - 1, 1u32 << 22),
        Direction::Down => (0, (1 << 23) - 1),
        Direction::Nearest => (1 << 22, (3 << 21) - 1),
    };
    let power = ops::right_shift(&ops::add(&bits, carry)?, 23u32)?;
    let most = ops::minimum(&power, 254u32)?;
    let value = ops::view(&ops::left_shift(&most, 23u32)?, DType::F32)?;
    let least = ops::less_equal(&bits, small)?;
    let value = ops::where_(&least, decode_power(0), &value)?;
    let lost = match rounding.saturate {
        true => ops::isnan(x)?,
        false => {
            let small = ops::less(&ops::abs(x)?, decode_power(0))?;
            let beyond = ops::logical_or(&ops::greater(&power, 254u32)?, &small)?;
            ops::logical_or(&ops::isnan(x)?, &beyond)?
        }
    };
    ops::where_(&lost, f32::NAN, &value)
}

/// Records the rounding of floats to a small float; the result is `float32`.
pub fn round_to(x: &Array, element: Element, rounding: Rounding) -> Result<Array> {
    let wide = ops::astype(x, DType::F32)?;
    match Format::of(element) {
        Some(format) => format.round(&wide, rounding.saturate),
        None if element == Element::Float8E8M0 => round_power(&wide, rounding),
        None => Ok(wide),
    }
}

/// The value of each bit pattern of a small float.
pub fn values(element: Element) -> Option<Vec<f32>> {
    let of = |decode: &dyn Fn(u8) -> f32| (0..=255).map(decode).collect();
    match Format::of(element) {
        Some(format) => Some(of(&|bits| format.decode(bits))),
        None if element == Element::Float8E8M0 => Some(of(&decode_power)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cupola_cpu as _;

    #[test]
    fn every_value_rounds_to_itself() -> Result<()> {
        for &element in Element::ALL {
            let Some(values) = values(element) else { continue };
            let count = if element.bits() < 8 { 1 << element.bits() } else { 256 };
            let x = Array::from_slice(&values[..count], [count])?;
            let rounding = Rounding { saturate: false, direction: Direction::Up };
            let out = round_to(&x, element, rounding)?.to_vec::<f32>()?;
            for (want, got) in values.iter().zip(&out) {
                assert!(want == got || want.is_nan() && got.is_nan(), "{element}: {want} {got}");
            }
        }
        Ok(())
    }

    #[test]
    fn ties_go_to_even_and_large_numbers_saturate() -> Result<()> {
        let x = Array::from_slice(&[17.0f32, 19.0, 1e9, -1e9, f32::INFINITY], [5])?;
        let out = round_to(&x, Element::Float8E4M3FN, Rounding::default())?;
        assert_eq!(out.to_vec::<f32>()?, [16.0, 20.0, 448.0, -448.0, 448.0]);
        Ok(())
    }
}
