//! Functions that are written in the language itself: each is read for the type that it is called with.

use std::collections::HashMap;
use std::f64::consts::PI;
use std::sync::LazyLock;

use super::value::{literal, promoted};
use super::{Parser, Symbol};
use crate::error::Pos;
use crate::lex::{Token, Wrong, words};
use crate::types::{Scalar, Ty};

/// What stands for a type in the library: of floats, of whole numbers, of either.
pub const LETTERS: [&str; 3] = ["F", "I", "T"];

/// The library. `U` is the unsigned integer of the type's size, of so many `BITS`, and the type's numbers go from `LEAST`
/// to `MOST`, or have `SMALLEST` as their first normal one.
const SOURCE: &str = "
F sign(F x) { return isnan(x) ? 0 : x > 0 ? 1 : x < 0 ? -1 : x; }
F fract(F x) { F part = x - floor(x); return part == 1 ? 1 - EPSILON / 2 : part; }
F saturate(F x) { return clamp(x, 0, 1); }
F mix(F x, F y, F a) { return x + (y - x) * a; }
F step(F edge, F x) { return x < edge ? 0 : 1; }
F smoothstep(F low, F high, F x) { F t = saturate((x - low) / (high - low)); return t * t * (3 - 2 * t); }
F degrees(F x) { return x * (180 / PI); }
F radians(F x) { return x * (PI / 180); }
F divide(F x, F y) { return x / y; }
F fdim(F x, F y) { return x <= y ? 0 : x - y; }
F hypot(F x, F y) {
    F most = max(abs(x), abs(y)), ratio = min(abs(x), abs(y)) / most;
    F length = most == 0 ? most : most * sqrt(1 + ratio * ratio);
    return isinf(most) ? most : isnan(x) || isnan(y) ? NAN : length;
}
F sinpi(F x) {
    F part = x - 2 * rint(x / 2), n = rint(2 * part), angle = PI * (part - n / 2);
    F value = abs(n) == 1 ? n * cos(angle) : (1 - abs(n)) * sin(angle);
    return value == 0 ? 0 * x : value;
}
F cospi(F x) {
    F part = x - 2 * rint(x / 2), n = rint(2 * part), angle = PI * (part - n / 2);
    return abs(n) == 1 ? 0 - n * sin(angle) : (1 - abs(n)) * cos(angle);
}
F tanpi(F x) { return sinpi(x) / cospi(x); }
F copysign(F x, F y) {
    const U most = (U)-1 >> 1;
    return as_type<F>((as_type<U>(x) & most) | (as_type<U>(y) & ~most));
}
bool signbit(F x) { return as_type<U>(x) > (U)-1 >> 1; }
bool isnormal(F x) { return isfinite(x) && abs(x) >= SMALLEST; }
bool isordered(F x, F y) { return !(isnan(x) || isnan(y)); }
bool isunordered(F x, F y) { return isnan(x) || isnan(y); }

T max3(T x, T y, T z) { return max(x, max(y, z)); }
T min3(T x, T y, T z) { return min(x, min(y, z)); }
T median3(T x, T y, T z) { return max(min(x, y), min(max(x, y), z)); }
F fmax3(F x, F y, F z) { return max3(x, y, z); }
F fmin3(F x, F y, F z) { return min3(x, y, z); }
F fmedian3(F x, F y, F z) { return median3(x, y, z); }

I popcount(I x) { return __ones((U)x); }
I clz(I x) { return __leading((U)x) - max(32 - BITS, 0); }
I ctz(I x) { return __ones((U)(~(U)x & ((U)x - 1))); }
I reverse_bits(I x) { return __reversed((U)x) >> max(32 - BITS, 0); }
I rotate(I x, uint by) { return (U)x << (by & (BITS - 1)) | (U)x >> (-by & (BITS - 1)); }
I extract_bits(I x, uint offset, uint bits) {
    return bits == 0 ? 0 : (I)((U)x << (BITS - offset - bits)) >> (BITS - bits);
}
I insert_bits(I base, I insert, uint offset, uint bits) {
    U mask = bits == 0 ? 0 : (U)-1 >> (BITS - bits) << offset;
    return (base & ~mask) | (insert << offset & mask);
}
U absdiff(I x, I y) { return x > y ? (U)x - (U)y : (U)y - (U)x; }
I addsat(I x, I y) { I sum = x + y; return (sum < x) != (y < 0) ? (y < 0 ? LEAST : MOST) : sum; }
I subsat(I x, I y) { I rest = x - y; return (rest > x) != (y < 0) ? (y < 0 ? MOST : LEAST) : rest; }
I hadd(I x, I y) { return (x & y) + ((x ^ y) >> 1); }
I rhadd(I x, I y) { return (x | y) - ((x ^ y) >> 1); }
I mulhi(I x, I y) {
    const U half = BITS / 2, low = ((U)1 << half) - 1;
    U a = (U)x & low, b = (U)x >> half, c = (U)y & low, d = (U)y >> half;
    U first = b * c + (a * c >> half), second = a * d + (first & low);
    return b * d + (first >> half) + (second >> half) - (x < 0 ? y : 0) - (y < 0 ? x : 0);
}
I madhi(I x, I y, I z) { return mulhi(x, y) + z; }
I mul24(I x, I y) { return x * y; }
I mad24(I x, I y, I z) { return x * y + z; }

float copysignf(float x, float y) { return copysign(x, y); }
float hypotf(float x, float y) { return hypot(x, y); }
float fdimf(float x, float y) { return fdim(x, y); }
float sinpif(float x) { return sinpi(x); }
float cospif(float x) { return cospi(x); }
float __saturatef(float x) { return saturate(x); }
int __popc(uint x) { return popcount(x); }
int __popcll(ulong x) { return popcount(x); }
int __clz(uint x) { return clz(x); }
int __clzll(ulong x) { return clz(x); }
int __ffs(uint x) { return x == 0 ? 0 : ctz(x) + 1; }
int __ffsll(ulong x) { return x == 0 ? 0 : ctz(x) + 1; }
uint __brev(uint x) { return reverse_bits(x); }
ulong __brevll(ulong x) { return reverse_bits(x); }
int __mulhi(int x, int y) { return mulhi(x, y); }
uint __umulhi(uint x, uint y) { return mulhi(x, y); }
";

static WORDS: LazyLock<Vec<(Token, Pos)>> =
    LazyLock::new(|| words(SOURCE, false).unwrap_or_default());

/// A function of the library.
pub struct Known {
    /// The number of its first word, the type of its result.
    pub start: usize,
    /// The types of its parameters, by their names.
    pub parameters: Vec<&'static str>,
}

/// The function of that name.
pub fn find(name: &str) -> Option<Known> {
    let token = |at: usize| WORDS.get(at).map(|(token, _)| token);
    let is_sign = |at: usize, sign: &'static str| token(at) == Some(&Token::Sign(sign));
    let word = |at: usize| match token(at) {
        Some(Token::Name(word)) => Some(&**word),
        _ => None,
    };
    // The first function follows nothing, each other one a bracket.
    let begins = |at: usize| at == 0 || is_sign(at - 1, "}");
    let start = (0..WORDS.len())
        .find(|&at| begins(at) && word(at + 1) == Some(name) && is_sign(at + 2, "("))?;
    let parameters = (start + 3..).step_by(3).map_while(word);
    Some(Known { start, parameters: parameters.collect() })
}

/// The type that a function is read for, where the arguments in the places of its letter have these types.
pub fn scalar(parameters: &[&str], arguments: &[Scalar]) -> Result<Scalar, String> {
    let Some(letter) = LETTERS.iter().find(|letter| parameters.contains(letter)) else {
        return Ok(Scalar::I32);
    };
    let is_integer = |scalar: Scalar| scalar != Scalar::Bool && !scalar.register().is_float();
    let common = match arguments {
        [first, rest @ ..] if is_integer(*first) && rest.iter().all(|other| other == first) => {
            *first
        }
        _ => {
            // Small unsigned integers become `int`, as in all arithmetic.
            let ty = |&scalar: &Scalar| match scalar {
                Scalar::U8 | Scalar::U16 => Ty::I32,
                other => other.register(),
            };
            arguments.iter().map(ty).fold(Ty::Bool, Ty::common).scalar()
        }
    };
    match *letter {
        "F" => Ok(common.register().common(Ty::F32).scalar()),
        "I" if !is_integer(common) => Err("takes whole numbers, not floats".into()),
        _ => Ok(common),
    }
}

impl Parser {
    /// Reads the function that begins at a word of the library: its number.
    pub fn instance(&mut self, start: usize, scalar: Scalar) -> Result<usize, Wrong> {
        let mut inner = Parser {
            words: WORDS.clone(),
            at: start,
            scopes: vec![HashMap::new()],
            program: std::mem::take(&mut self.program),
            known: std::mem::take(&mut self.known),
            loops: 0,
            depth: 0,
            function: None,
        };
        for letter in LETTERS {
            inner.give(letter, Symbol::Type(scalar));
        }
        let at = Pos::default();
        let bits = 8 * scalar.size() as u64;
        let unsigned = match scalar.size() {
            1 => Scalar::U8,
            2 => Scalar::U16,
            4 => Scalar::U32,
            _ => Scalar::U64,
        };
        inner.give("U", Symbol::Type(unsigned));
        inner.give("BITS", Symbol::Constant(literal(bits, Ty::I32, at)));
        let ty = scalar.register();
        let numbers = match ty {
            Ty::F32 => [PI, f32::EPSILON.into(), f32::MIN_POSITIVE.into()],
            _ => [PI, f64::EPSILON, f64::MIN_POSITIVE],
        };
        for (name, number) in ["PI", "EPSILON", "SMALLEST"].into_iter().zip(numbers) {
            inner.give(name, Symbol::Constant(literal(ty.bits(number), ty, at)));
        }
        let most = u64::MAX >> (64 - bits + u64::from(ty.is_signed()));
        let least = if ty.is_signed() { !most } else { 0 };
        let word = |bits: u64| if ty.is_wide() { bits } else { u64::from(bits as u32) };
        for (name, bits) in [("LEAST", least), ("MOST", most)] {
            inner.give(name, Symbol::Constant(promoted(literal(word(bits), ty, at), scalar)));
        }
        let result = inner.type_here();
        let name = inner.name()?;
        inner.function(name, at, result)?;
        (self.program, self.known) = (inner.program, inner.known);
        Ok(self.program.functions.len() - 1)
    }
}
