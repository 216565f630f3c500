//! Arrays from little, counters and random bits, and bytes read as another dtype.

use cupola_core::DType;
use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Iota, RandomBits};

use super::{Draft, Missing, Place, Program};
use crate::ir::{Access, Build, Number, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// Adds the launch of a counter, or of the part of one that starts at `first`.
pub fn iota(
    program: &mut Program,
    iota: &Iota,
    first: Option<u32>,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let out = &segment.outputs[0];
    let mut draft = Draft::new("iota", BLOCK, segment, target)?;
    let to = draft.view(Place::Output(0), iota.dtype, Access::Write)?;
    let total = iota.shape.size() as u64;
    let first = first.map(|first| draft.word(first));
    draft.each(total, |draft, at| {
        let place = draft.unflatten(at, &iota.shape);
        let end = draft.place(to.offset, &place, &out.strides);
        let b = &mut draft.build;
        let count = match first {
            Some(first) => {
                let first = b.convert(first, place[iota.axis].ty);
                b.add(place[iota.axis], first)
            }
            None => place[iota.axis],
        };
        let v = b.convert(count, Ty::of(iota.dtype));
        let v = b.wrapped(v, iota.dtype);
        let number = match iota.dtype {
            cupola_core::DType::C64 => Number::Complex(v, b.f32(0.0)),
            _ => Number::Real(v),
        };
        b.store_number(to.buf, end, number);
    });
    program.launches.push(draft.launch_over(total));
    Ok(())
}

/// Adds the launch of random bits: a thread a hash, which gives two words of a key's bytes. The
/// layout is that of the CPU's kernel, so that a seed gives the same numbers everywhere.
pub fn random(
    program: &mut Program,
    bits: &RandomBits,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (keys, out) = (&segment.inputs[0], &segment.outputs[0]);
    let mut draft = Draft::new("random_bits", BLOCK, segment, target)?;
    let from = draft.view(Place::Input(0), keys.aval.dtype, Access::Read)?;
    let to = draft.view(Place::Output(0), out.aval.dtype, Access::Write)?;
    let elements = bits.shape.size();
    let words = (elements * bits.width).div_ceil(4);
    let (half, odd) = (words / 2, words % 2);
    let hashes = half + odd;
    let count = keys.aval.shape.size() / 2;
    let rank = keys.strides.len();
    let total = (count * hashes) as u64;
    draft.each(total, |draft, at| {
        let split = draft.unflatten(at, &[count, hashes]);
        let (key, hash) = (split[0], split[1]);
        let place = draft.unflatten(key, &keys.aval.shape[..rank - 1]);
        let row = draft.place(from.offset, &place, &keys.strides[..rank - 1]);
        let second = draft.index(1);
        let after = draft.place(row, &[second], &keys.strides[rank - 1..]);
        let b = &mut draft.build;
        let key_words = [b.load(from.buf, row), b.load(from.buf, after)];
        let first = b.convert(hash, Ty::U32);
        // The words `i` and `half + odd + i` come from one hash; the middle one of an odd count
        // is a hash of its own, whose second counter is 0.
        let start = b.u32((half + odd) as u32);
        let counter = b.add(start, first);
        let counter = match odd {
            0 => counter,
            _ => {
                let (middle, zero) = (b.u32(half as u32), b.u32(0));
                let alone = b.eq(first, middle);
                b.select(alone, zero, counter)
            }
        };
        let results = threefry(b, key_words, first, counter);
        let per = 4 / bits.width;
        let base = draft.index(elements as i64);
        let base = draft.build.mul(key, base);
        for (which, word) in results.into_iter().enumerate() {
            let number = match which {
                0 => hash,
                _ => {
                    let away = draft.index((half + odd) as i64);
                    draft.build.add(hash, away)
                }
            };
            // The middle word has no second result.
            let words = draft.index(words as i64);
            let there = draft.build.lt(number, words);
            draft.build.open_when();
            let per_word = draft.index(per as i64);
            let start = draft.build.mul(number, per_word);
            for part in 0..per {
                let away = draft.index(part as i64);
                let element = draft.build.add(start, away);
                let limit = draft.index(elements as i64);
                let within = draft.build.lt(element, limit);
                draft.build.open_when();
                let at = draft.build.add(base, element);
                let place = draft.unflatten(at, &out.aval.shape);
                let end = draft.place(to.offset, &place, &out.strides);
                let b = &mut draft.build;
                let down = b.u32((part * bits.width * 8) as u32);
                let own = b.shr(word, down);
                let own = b.wrapped(own, out.aval.dtype);
                b.store(to.buf, end, own);
                draft.build.close_when(within);
            }
            draft.build.close_when(there);
        }
    });
    program.launches.push(draft.launch_over(total));
    Ok(())
}

/// Adds the launch of a part of a key's random bits, from its element `first` on: a thread an
/// element, which finds the hash that its bits come from.
pub fn random_part(
    program: &mut Program,
    bits: &RandomBits,
    first: u32,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (keys, out) = (&segment.inputs[0], &segment.outputs[0]);
    let mut draft = Draft::new("random_bits_part", BLOCK, segment, target)?;
    let from = draft.view(Place::Input(0), keys.aval.dtype, Access::Read)?;
    let to = draft.view(Place::Output(0), out.aval.dtype, Access::Write)?;
    let first = draft.word(first);
    let words = (bits.shape.size() * bits.width).div_ceil(4);
    let hashes = words.div_ceil(2);
    let total = out.aval.shape.size() as u64;
    let rank = keys.strides.len();
    draft.each(total, |draft, at| {
        let second = draft.index(1);
        let after = draft.place(from.offset, &[second], &keys.strides[rank - 1..]);
        let b = &mut draft.build;
        let key = [b.load(from.buf, from.offset), b.load(from.buf, after)];
        let at32 = b.convert(at, Ty::U32);
        let element = b.add(first, at32);
        let (per, hashes_val) = (b.u32((4 / bits.width) as u32), b.u32(hashes as u32));
        let (word, part) = (b.div(element, per), b.rem(element, per));
        let is_first = b.lt(word, hashes_val);
        let other = b.sub(word, hashes_val);
        let hash = b.select(is_first, word, other);
        // As in `random`: the middle hash of an odd count has 0 for its second counter.
        let counter = b.add(hashes_val, hash);
        let counter = match words % 2 {
            0 => counter,
            _ => {
                let (middle, zero) = (b.u32(hashes as u32 - 1), b.u32(0));
                let alone = b.eq(hash, middle);
                b.select(alone, zero, counter)
            }
        };
        let results = threefry(b, key, hash, counter);
        let word = b.select(is_first, results[0], results[1]);
        let width = b.u32(bits.width as u32 * 8);
        let down = b.mul(part, width);
        let own = b.shr(word, down);
        let own = b.wrapped(own, out.aval.dtype);
        let place = draft.unflatten(at, &out.aval.shape);
        let end = draft.place(to.offset, &place, &out.strides);
        draft.build.store(to.buf, end, own);
    });
    program.launches.push(draft.launch_over(total));
    Ok(())
}

/// Threefry-2x32 with 20 rounds (J. K. Salmon et al., *Parallel random numbers: as easy as 1, 2,
/// 3*, SC 2011).
fn threefry(b: &mut Build<'_>, key: [Val; 2], x: Val, y: Val) -> [Val; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let parity = b.u32(0x1bd1_1bda);
    let both = b.xor(key[0], key[1]);
    let keys = [key[0], key[1], b.xor(both, parity)];
    let (mut x, mut y) = (b.add(x, keys[0]), b.add(y, keys[1]));
    for round in 0..5 {
        for rotation in ROTATIONS[round % 2] {
            x = b.add(x, y);
            let (up, down) = (b.u32(rotation), b.u32(32 - rotation));
            let (high, low) = (b.shl(y, up), b.shr(y, down));
            let turned = b.or(high, low);
            y = b.xor(turned, x);
        }
        x = b.add(x, keys[(round + 1) % 3]);
        let number = b.u32(round as u32 + 1);
        let next = b.add(keys[(round + 2) % 3], number);
        y = b.add(y, next);
    }
    [x, y]
}

/// Adds the launch that copies bytes: a thread for each unit of the smaller dtype, or of a word.
pub fn bitcast(program: &mut Program, segment: &Segment, target: &Target) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let (from, to) = (x.aval.dtype.size(), out.aval.dtype.size());
    let unit = from.min(to).min(4);
    let dtype = match unit {
        1 => DType::U8,
        2 => DType::U16,
        _ => DType::U32,
    };
    let mut draft = Draft::new("view", BLOCK, segment, target)?;
    let source = draft.view(Place::Input(0), dtype, Access::Read)?;
    let end = draft.view(Place::Output(0), dtype, Access::Write)?;
    let total = (x.aval.shape.size() * from / unit) as u64;
    draft.each(total, |draft, at| {
        // Where the unit is in an operand: which of its elements, and which unit of that.
        let mut place = |start: Val, operand: &Operand, size: usize| {
            let units = draft.index((size / unit) as i64);
            let (element, part) = (draft.build.div(at, units), draft.build.rem(at, units));
            let index = draft.unflatten(element, &operand.aval.shape);
            let element = draft.place(start, &index, &operand.strides);
            let first = draft.build.mul(element, units);
            draft.build.add(first, part)
        };
        let read = place(source.offset, x, from);
        let written = place(end.offset, out, to);
        let value = draft.build.load(source.buf, read);
        draft.build.store(end.buf, written, value);
    });
    program.launches.push(draft.launch_over(total));
    Ok(())
}
