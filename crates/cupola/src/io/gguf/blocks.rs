//! Blocks of weights that share scales.
//!
//! The layouts are those of ggml (`ggml-common.h`). Numbers with more than a byte are little-endian.

use half::f16;

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
pub const BLOCKS: [Blocks; 16] = [
    packed(2, "Q4_0", 18),
    packed(3, "Q4_1", 20),
    unpacked(6, "Q5_0", GROUP, 22, q5_0),
    unpacked(7, "Q5_1", GROUP, 24, q5_1),
    packed(8, "Q8_0", 34),
    unpacked(10, "Q2_K", SUPER, 84, q2_k),
    unpacked(11, "Q3_K", SUPER, 110, q3_k),
    unpacked(12, "Q4_K", SUPER, 144, q4_k),
    unpacked(13, "Q5_K", SUPER, 176, q5_k),
    unpacked(14, "Q6_K", SUPER, 210, q6_k),
    unpacked(15, "Q8_K", SUPER, 292, q8_k),
    unpacked(20, "IQ4_NL", GROUP, 18, iq4_nl),
    unpacked(23, "IQ4_XS", SUPER, 136, iq4_xs),
    unpacked(34, "TQ1_0", SUPER, 54, tq1_0),
    unpacked(35, "TQ2_0", SUPER, 66, tq2_0),
    unpacked(39, "MXFP4", GROUP, 17, mxfp4),
];

/// The types that are known by name alone: their weights are places in tables of the format; and `Q8_1`,
/// which is no type of files and had two layouts.
pub const UNREAD: [(u32, &str); 8] = [
    (9, "Q8_1"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (29, "IQ1_M"),
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

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
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
    let d = f32::from_bits(word(block, 0));
    for (out, &q) in out.iter_mut().zip(&block[4..]) {
        *out = d * f32::from(q as i8);
    }
}

/// The numbers that four bits stand for in `IQ4_NL` and `IQ4_XS`.
const UNEVEN: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// 32 weights, which the lower and then the upper halves of 16 bytes stand for.
fn looked_up(quants: &[u8], out: &mut [f32], number: impl Fn(usize) -> f32) {
    for (j, &q) in quants.iter().enumerate() {
        out[j] = number(usize::from(q & 15));
        out[j + 16] = number(usize::from(q >> 4));
    }
}

fn iq4_nl(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    looked_up(&block[2..], out, |q| d * f32::from(UNEVEN[q]));
}

fn iq4_xs(block: &[u8], out: &mut [f32]) {
    let d = scale(block, 0);
    let (highs, lows) = (u16::from_le_bytes([block[2], block[3]]), &block[4..8]);
    for (group, out) in out.chunks_mut(32).enumerate() {
        let low = lows[group / 2] >> (group % 2 * 4) & 15;
        let high = (highs >> (2 * group) & 3) as u8;
        let d = d * (f32::from(low | high << 4) - 32.0);
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

/// The numbers of four bits of the Open Compute Project's microscaling format, E2M1.
const TINY: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

fn mxfp4(block: &[u8], out: &mut [f32]) {
    // The exponent of a power of two; 255 is NaN.
    let d = match block[0] {
        255 => f32::NAN,
        e => 2f32.powi(i32::from(e) - 127),
    };
    let number = |q: usize| if q < 8 { TINY[q] } else { -TINY[q - 8] };
    looked_up(&block[1..], out, |q| d * number(q));
}

/// The bytes of numbers as `float16`.
pub fn halves(numbers: &[f32], bytes: &mut Vec<u8>) {
    bytes.extend(numbers.iter().flat_map(|&v| f16::from_f32(v).to_ne_bytes()));
}
