//! Blocks of weights that share scales.
//!
//! The layouts are those of ggml (`ggml-common.h`). Numbers with more than a byte are little-endian.

use half::f16;

use super::tables::{IQ1, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS};

/// How a type of the format lies in memory.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// The format's number.
    pub code: u32,
    /// The format's name.
    pub name: &'static str,
    /// Weights of a block.
    pub size: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// How it becomes arrays.
    pub way: Way,
}

/// How blocks become arrays.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// As packed weights with scales and biases.
    Packed,
    /// As numbers.
    Unpacked(fn(&[u8], &mut [f32])),
}

const fn packed(code: u32, name: &'static str, bytes: usize) -> Blocks {
    Blocks { code, name, size: GROUP, bytes, way: Way::Packed }
}

const fn unpacked(
    code: u32,
    name: &'static str,
    size: usize,
    bytes: usize,
    unpack: fn(&[u8], &mut [f32]),
) -> Blocks {
    Blocks { code, name, size, bytes, way: Way::Unpacked(unpack) }
}

/// Weights that share a scale in the simple types.
pub const GROUP: usize = 32;
/// Weights of a block with scales of its own for parts of it.
const SUPER: usize = 256;

/// The types whose blocks are read.
pub const BLOCKS: [Blocks; 27] = [
    packed(2, "Q4_0", 18),
    packed(3, "Q4_1", 20),
    unpacked(6, "Q5_0", GROUP, 22, q5_0),
    unpacked(7, "Q5_1", GROUP, 24, q5_1),
    packed(8, "Q8_0", 34),
    unpacked(9, "Q8_1", GROUP, 36, q8_1),
    unpacked(10, "Q2_K", SUPER, 84, q2_k),
    unpacked(11, "Q3_K", SUPER, 110, q3_k),
    unpacked(12, "Q4_K", SUPER, 144, q4_k),
    unpacked(13, "Q5_K", SUPER, 176, q5_k),
    unpacked(14, "Q6_K", SUPER, 210, q6_k),
    unpacked(15, "Q8_K", SUPER, 292, q8_k),
    unpacked(16, "IQ2_XXS", SUPER, 66, iq2_xxs),
    unpacked(17, "IQ2_XS", SUPER, 74, iq2_xs),
    unpacked(18, "IQ3_XXS", SUPER, 98, iq3_xxs),
    unpacked(19, "IQ1_S", SUPER, 50, iq1_s),
    unpacked(20, "IQ4_NL", GROUP, 18, iq4_nl),
    unpacked(21, "IQ3_S", SUPER, 110, iq3_s),
    unpacked(22, "IQ2_S", SUPER, 82, iq2_s),
    unpacked(23, "IQ4_XS", SUPER, 136, iq4_xs),
    unpacked(29, "IQ1_M", SUPER, 56, iq1_m),
    unpacked(34, "TQ1_0", SUPER, 54, tq1_0),
    unpacked(35, "TQ2_0", SUPER, 66, tq2_0),
    unpacked(39, "MXFP4", GROUP, 17, mxfp4),
    unpacked(40, "NVFP4", 64, 36, nvfp4),
    unpacked(41, "Q1_0", 128, 18, q1_0),
    unpacked(42, "Q2_0", 64, 18, q2_0),
];

/// The types that the format had once.
pub const REMOVED: [(u32, &str); 8] = [
    (4, "Q4_2"),
    (5, "Q4_3"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (36, "IQ4_NL_4_4"),
    (37, "IQ4_NL_4_8"),
    (38, "IQ4_NL_8_8"),
];

/// Packed weights of a block, its scale and its bias: a weight w of it stands for scale·w + bias.
pub fn pack(blocks: Blocks, block: &[u8], weights: &mut Vec<u32>) -> [f16; 2] {
    let scale = half(block, 0);
    let (bias, quants) = match blocks.name {
        "Q4_0" => (f16::from_f32(-8.0 * scale.to_f32()), &block[2..]),
        "Q4_1" => (half(block, 2), &block[4..]),
        _ => (f16::from_f32(-128.0 * scale.to_f32()), &block[2..]),
    };
    if blocks.name == "Q8_0" {
        // −128 is 0.
        let word = |q: &[u8]| q.iter().rev().fold(0, |w, &q| w << 8 | u32::from(q ^ 0x80));
        weights.extend(quants.chunks(4).map(word));
    } else {
        // The lower halves of bytes are the first weights, the upper ones the others.
        for shift in [0, 4] {
            let word =
                |q: &[u8]| q.iter().rev().fold(0, |w, &q| w << 4 | u32::from(q >> shift & 15));
            weights.extend(quants.chunks(8).map(word));
        }
    }
    [scale, bias]
}

fn half(block: &[u8], at: usize) -> f16 {
    f16::from_le_bytes([block[at], block[at + 1]])
}

fn scale(block: &[u8], at: usize) -> f32 {
    half(block, at).to_f32()
}

fn short(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Half of a byte, the lower ones first.
fn nibble(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 2] >> (i % 2 * 4) & 15
}

fn q1_0(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    for (i, out) in out.iter_mut().enumerate() {
        *out = if block[2 + i / 8] >> (i % 8) & 1 == 1 { d } else { -d };
    }
}

fn q2_0(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    for (i, out) in out.iter_mut().enumerate() {
        *out = d * (f32::from(block[2 + i / 4] >> (i % 4 * 2) & 3) - 1.0);
    }
}

/// The fifth bits of 32 weights, those of the first 16 in the lower half.
fn fives(block: &[u8], at: usize, quants: &[u8], mut put: impl FnMut(usize, i32)) {
    let high = word(block, at);
    for (j, &q) in quants.iter().enumerate() {
        let fifth = |i: usize| ((high >> i & 1) << 4) as i32;
        put(j, i32::from(q & 15) | fifth(j));
        put(j + 16, i32::from(q >> 4) | fifth(j + 16));
    }
}

fn q5_0(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    fives(block, 2, &block[6..], |i, q| out[i] = d * (q - 16) as f32);
}

fn q5_1(block: &[u8], out: &mut [f32]) {
    let (d, m) = (scale(block, 0), scale(block, 2));
    fives(block, 4, &block[8..], |i, q| out[i] = d * q as f32 + m);
}

fn q8_1(block: &[u8], out: &mut [f32]) {
    // Behind the scale is d times the sum of the weights, which products use.
    bytes(scale(block, 0), &block[4..], out);
}

/// Weights of a byte each.
fn bytes(d: f32, quants: &[u8], out: &mut [f32]) {
    for (out, &q) in out.iter_mut().zip(quants) {
        *out = d * f32::from(q as i8);
    }
}

/// Weights of two bits as the types with super-blocks have them: for each half of the block and each of
/// four shifts 32 weights, in two groups of 16. Gives the weight's place, its group and its bits, and
/// which of the 32 it is.
fn twos(quants: &[u8], mut put: impl FnMut(usize, usize, u8, usize)) {
    for part in 0..2 {
        for shift in 0..4 {
            for l in 0..32 {
                let group = part * 8 + shift * 2 + l / 16;
                let q = quants[part * 32 + l] >> (2 * shift) & 3;
                put(part * 128 + shift * 32 + l, group, q, l);
            }
        }
    }
}

fn q2_k(block: &[u8], out: &mut [f32]) {
    let (scales, quants) = (&block[..16], &block[16..80]);
    let (d, least) = (scale(block, 80), scale(block, 82));
    twos(quants, |i, group, q, _| {
        let s = scales[group];
        out[i] = d * f32::from(s & 15) * f32::from(q) - least * f32::from(s >> 4);
    });
}

fn q3_k(block: &[u8], out: &mut [f32]) {
    let (highs, quants, packed) = (&block[..32], &block[32..96], &block[96..108]);
    let d = scale(block, 108);
    // Of each of 16 scales the lower four bits, and two more behind them.
    let low = |i: usize| if i < 8 { packed[i] & 15 } else { packed[i - 8] >> 4 };
    let high = |i: usize| packed[8 + i % 4] >> (2 * (i / 4)) & 3;
    let scales: Vec<f32> = (0..16).map(|i| d * (f32::from(low(i) | high(i) << 4) - 32.0)).collect();
    twos(quants, |i, group, q, l| {
        let is_high = highs[l] >> (i / 32) & 1 == 1;
        let q = f32::from(q) - if is_high { 0.0 } else { 4.0 };
        out[i] = scales[group] * q;
    });
}

/// The scale and the least number of eight groups, of six bits each.
fn sixes(packed: &[u8], i: usize) -> (f32, f32) {
    let (s, m) = match i {
        0..4 => (packed[i] & 63, packed[i + 4] & 63),
        _ => {
            (packed[i + 4] & 15 | packed[i - 4] >> 6 << 4, packed[i + 4] >> 4 | packed[i] >> 6 << 4)
        }
    };
    (f32::from(s), f32::from(m))
}

/// Weights of four bits, and a fifth one of each where there are `highs`.
fn fours(block: &[u8], highs: &[u8], quants: &[u8], out: &mut [f32]) {
    let (d, least) = (scale(block, 0), scale(block, 2));
    for (group, out) in out.chunks_mut(32).enumerate() {
        let (s, m) = sixes(&block[4..16], group);
        let (s, m) = (d * s, least * m);
        for (l, out) in out.iter_mut().enumerate() {
            let q = quants[group / 2 * 32 + l] >> (group % 2 * 4) & 15;
            let fifth = highs.get(l).map_or(0, |high| (high >> group & 1) << 4);
            *out = s * f32::from(q | fifth) - m;
        }
    }
}

fn q4_k(block: &[u8], out: &mut [f32]) {
    fours(block, &[], &block[16..], out);
}

fn q5_k(block: &[u8], out: &mut [f32]) {
    fours(block, &block[16..48], &block[48..], out);
}

fn q6_k(block: &[u8], out: &mut [f32]) {
    let (lows, highs, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let d = scale(block, 208);
    for (i, out) in out.iter_mut().enumerate() {
        // Of a half of the block, four times 32 weights.
        let (part, quarter, l) = (i / 128, i / 32 % 4, i % 32);
        let low = lows[part * 64 + quarter % 2 * 32 + l] >> (quarter / 2 * 4) & 15;
        let high = highs[part * 32 + l] >> (quarter * 2) & 3;
        *out = d * f32::from(scales[i / 16] as i8) * (f32::from(low | high << 4) - 32.0);
    }
}

fn q8_k(block: &[u8], out: &mut [f32]) {
    bytes(f32::from_bits(word(block, 0)), &block[4..], out);
}

/// The numbers that four bits stand for in `IQ4_NL` and `IQ4_XS`.
const UNEVEN: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Weights that first the lower and then the upper halves of bytes stand for.
fn looked_up(quants: &[u8], out: &mut [f32], number: impl Fn(usize) -> f32) {
    for (j, &q) in quants.iter().enumerate() {
        out[j] = number(usize::from(q & 15));
        out[j + quants.len()] = number(usize::from(q >> 4));
    }
}

fn iq4_nl(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    looked_up(&block[2..], out, |q| d * f32::from(UNEVEN[q]));
}

fn iq4_xs(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    let (highs, lows) = (short(block, 2), &block[4..8]);
    for (group, out) in out.chunks_mut(32).enumerate() {
        let high = (highs >> (2 * group) & 3) as u8;
        let d = d * (f32::from(nibble(lows, group) | high << 4) - 32.0);
        let quants = &block[8 + group * 16..][..16];
        looked_up(quants, out, |q| d * f32::from(UNEVEN[q]));
    }
}

fn tq1_0(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 52);
    // A byte holds five digits to the base of three, as the fraction of 256 that they make.
    let digit = |byte: u8, n: u32| {
        let moved = byte.wrapping_mul(3u8.pow(n));
        ((u16::from(moved) * 3) >> 8) as f32 - 1.0
    };
    let parts: [(&[u8], u32); 3] = [(&block[..32], 5), (&block[32..48], 5), (&block[48..52], 4)];
    let digits = parts.iter().flat_map(|&(bytes, count)| {
        (0..count).flat_map(move |n| bytes.iter().map(move |&b| (b, n)))
    });
    for (out, (byte, n)) in out.iter_mut().zip(digits) {
        *out = d * digit(byte, n);
    }
}

fn tq2_0(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 64);
    twos(&block[..64], |i, _, q, _| out[i] = d * (f32::from(q) - 1.0));
}

/// The numbers of four bits of the Open Compute Project's microscaling format, E2M1. ggml has no −0.
const TINY: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

fn mxfp4(block: &[u8], out: &mut [f32]) {
    // The exponent of a power of two; 255 is NaN.
    let d = match block[0] {
        255 => f32::NAN,
        e => 2f32.powi(i32::from(e) - 127),
    };
    looked_up(&block[1..], out, |q| d * TINY[q]);
}

/// A scale of the form E4M3, which has no sign.
fn e4m3(byte: u8) -> f32 {
    match byte {
        // What is NaN elsewhere is zero in ggml.
        127 => 0.0,
        // As the bits of a float16, whose exponents are 8 lower.
        _ => f16::from_bits(u16::from(byte & 127) << 7).to_f32() * 256.0,
    }
}

fn nvfp4(block: &[u8], out: &mut [f32]) {
    for (group, out) in out.chunks_mut(16).enumerate() {
        let d = e4m3(block[group]);
        looked_up(&block[4 + group * 8..][..8], out, |q| d * TINY[q]);
    }
}

/// Eight weights in a row, of the types with tables.
struct Octet {
    scale: f32,
    /// The sizes that weights have in units of the scale: three of them, or eight.
    levels: &'static [f32],
    /// Which level each weight has, in two bits or three, the first weight lowest.
    digits: u32,
    /// Which weights are negative.
    signs: u8,
}

// ggml has these as integers, and their divisor in the scale.
const IQ2_LEVELS: [f32; 3] = [1.0, 3.125, 5.375];
const IQ3_XXS_LEVELS: [f32; 8] = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.5];
const IQ3_S_LEVELS: [f32; 8] = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0];
/// −1, 0 and 1, an eighth above and an eighth below.
const IQ1_LEVELS: [[f32; 3]; 2] = [[-0.875, 0.125, 1.125], [-1.125, -0.125, 0.875]];

fn octets(out: &mut [f32], octet: impl Fn(usize) -> Octet) {
    for (n, out) in out.chunks_mut(8).enumerate() {
        let Octet { scale, levels, digits, signs } = octet(n);
        let bits = levels.len().next_power_of_two().ilog2();
        for (i, out) in (0..).zip(out) {
            let level = levels[(digits >> (bits * i) & ((1 << bits) - 1)) as usize];
            *out = scale * if signs >> i & 1 == 1 { -level } else { level };
        }
    }
}

/// A scale of the types with tables: an odd multiple of the block's.
fn odd(d: f32, steps: impl Into<u32>) -> f32 {
    d * (2 * steps.into() + 1) as f32
}

/// Eight signs of which seven are given: the number of negative ones is even.
fn signs(seven: u32) -> u8 {
    let seven = (seven & 127) as u8;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// An entry of a table by the lower byte of its place and the bits above.
fn entry(table: &[u16], low: u8, high: u8) -> u32 {
    u32::from(table[usize::from(low) | usize::from(high) << 8])
}

fn iq2_xxs(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    octets(out, |n| {
        // Four places, and the signs and the scale of them all.
        let (places, rest) = (&block[2 + n / 4 * 8..], word(block, 6 + n / 4 * 8));
        Octet {
            scale: odd(d, rest >> 28),
            levels: &IQ2_LEVELS,
            digits: entry(&IQ2_XXS, places[n % 4], 0),
            signs: signs(rest >> (7 * (n % 4))),
        }
    });
}

fn iq2_xs(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    octets(out, |n| {
        let high = block[3 + 2 * n];
        Octet {
            scale: odd(d, nibble(&block[66..], n / 2)),
            levels: &IQ2_LEVELS,
            digits: entry(&IQ2_XS, block[2 + 2 * n], high & 1),
            signs: signs(u32::from(high >> 1)),
        }
    });
}

fn iq2_s(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    octets(out, |n| Octet {
        scale: odd(d, nibble(&block[74..], n / 2)),
        levels: &IQ2_LEVELS,
        digits: entry(&IQ2_S, block[2 + n], block[66 + n / 4] >> (n % 4 * 2) & 3),
        signs: block[34 + n],
    });
}

fn iq3_xxs(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    octets(out, |n| {
        let rest = word(block, 66 + n / 4 * 4);
        let four = |n: usize| entry(&IQ3_XXS, block[2 + n], 0);
        Octet {
            scale: odd(d, rest >> 28),
            levels: &IQ3_XXS_LEVELS,
            digits: four(2 * n) | four(2 * n + 1) << 12,
            signs: signs(rest >> (7 * (n % 4))),
        }
    });
}

fn iq3_s(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    octets(out, |n| {
        let high = |n: usize| block[66 + n / 8] >> (n % 8) & 1;
        let four = |n: usize| entry(&IQ3_S, block[2 + n], high(n));
        Octet {
            scale: odd(d, nibble(&block[106..], n / 4)),
            levels: &IQ3_S_LEVELS,
            digits: four(2 * n) | four(2 * n + 1) << 12,
            signs: block[74 + n],
        }
    });
}

fn iq1_s(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    octets(out, |n| {
        let high = short(block, 34 + n / 4 * 2);
        Octet {
            scale: odd(d, high >> 12 & 7),
            levels: &IQ1_LEVELS[high as usize >> 15],
            digits: entry(&IQ1, block[2 + n], (high >> (n % 4 * 3) & 7) as u8),
            signs: 0,
        }
    });
}

fn iq1_m(block: &[u8], out: &mut [f32]) {
    // Four times four scales of three bits, and four bits of the block's scale.
    let scales = |i: usize| short(block, 48 + 2 * i);
    let d = (0..4).fold(0, |d, i| d | (scales(i) >> 12) << (4 * i));
    let d = f16::from_bits(d as u16).to_f32();
    octets(out, |n| {
        let high = nibble(&block[32..], n);
        Octet {
            scale: odd(d, scales(n / 8) >> (n / 2 % 4 * 3) & 7),
            levels: &IQ1_LEVELS[usize::from(high >> 3)],
            digits: entry(&IQ1, block[n], high & 7),
            signs: 0,
        }
    });
}

/// The bytes of numbers as `float16`.
pub fn halves(numbers: &[f32], bytes: &mut Vec<u8>) {
    bytes.extend(numbers.iter().flat_map(|&v| f16::from_f32(v).to_ne_bytes()));
}
