//! Random bits.

use cupola_core::backend::Segment;
use cupola_core::prim::RandomBits;

use super::view::{place, unflatten};
use super::{Draft, Missing, Program};
use crate::ir::{Number, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// The second counter of `hash`, whose first one is its number. The words `i` and `hashes + i` come
/// from one hash; the middle one of an odd count of words is a hash of its own, with 0.
fn second_counter<'k>(hash: Val<'k>, words: usize) -> Val<'k> {
    let hashes = words.div_ceil(2);
    let counter = hash.like(hashes) + hash;
    match words % 2 {
        0 => counter,
        _ => hash.eq(hashes - 1).select(0, counter),
    }
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
    let k = Draft::new("random_bits", BLOCK, segment, target)?;
    let (from, to) = (k.input(segment, 0), k.output(segment, 0));
    let elements = bits.shape.size();
    let words = (elements * bits.width).div_ceil(4);
    let hashes = words.div_ceil(2);
    let count = keys.aval.shape.size() / 2;
    let last = keys.strides.len() - 1;
    let total = (count * hashes) as u64;
    let each_hash = k.divisors(&[count, hashes]);
    let [(key_sizes, key_strides), (sizes, strides)] = [k.walk_of(keys), k.walk_of(out)];
    let [all_words, all_elements] = [words, elements].map(|n| k.extent(n));
    let of_a_key = each_hash[1].size;
    k.each(total, |at| {
        let split = unflatten(at, &each_hash);
        let (key, hash) = (split[0], split[1]);
        let row = from.at(&unflatten(key, &key_sizes[..last]), &key_strides[..last]);
        let after = place(row, &[k.index(1)], &key_strides[last..]);
        let key_words = [from.buf.load(row), from.buf.load(after)];
        let first = hash.convert(Ty::U32);
        let results = threefry(key_words, first, second_counter(first, words));
        let (per, width) = (4 / bits.width as u32, bits.width as u32);
        let base = key * all_elements;
        for (which, word) in results.into_iter().enumerate() {
            let number = if which == 0 { hash } else { hash + of_a_key };
            // The middle word has no second result.
            k.when(number.lt(all_words), || {
                let start = number * per;
                for part in 0..per {
                    let element = start + part;
                    k.when(element.lt(all_elements), || {
                        let index = unflatten(base + element, &sizes);
                        let own = (word >> (part * width * 8)).wrapped(out.aval.dtype);
                        to.store(&index, &strides, Number::Real(own));
                    });
                }
            });
        }
    });
    program.launches.push(k.launch_over(total)?);
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
    let k = Draft::new("random_bits_part", BLOCK, segment, target)?;
    let (from, to) = (k.input(segment, 0), k.output(segment, 0));
    let first = k.word(first);
    let words = (bits.shape.size() * bits.width).div_ceil(4);
    let hashes = words.div_ceil(2);
    let total = out.aval.shape.size() as u64;
    let (sizes, strides) = k.walk_of(out);
    let along = k.strides(&keys.strides[keys.strides.len() - 1..]);
    k.each(total, |at| {
        let after = from.at(&[k.index(1)], &along);
        let key = [from.buf.load(from.offset), from.buf.load(after)];
        let element = first + at.convert(Ty::U32);
        let (per, width) = (4 / bits.width as u32, bits.width as u32);
        let (word, part) = (element / per, element % per);
        let is_first = word.lt(hashes);
        let hash = is_first.select(word, word - hashes);
        let results = threefry(key, hash, second_counter(hash, words));
        let word = is_first.select(results[0], results[1]);
        let own = (word >> (part * (width * 8))).wrapped(out.aval.dtype);
        to.store(&unflatten(at, &sizes), &strides, Number::Real(own));
    });
    program.launches.push(k.launch_over(total)?);
    Ok(())
}

/// Threefry-2x32 with 20 rounds (J. K. Salmon et al., *Parallel random numbers: as easy as 1, 2,
/// 3*, SC 2011).
fn threefry<'k>(key: [Val<'k>; 2], x: Val<'k>, y: Val<'k>) -> [Val<'k>; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd1_1bda];
    let (mut x, mut y) = (x + keys[0], y + keys[1]);
    for round in 0..5 {
        for rotation in ROTATIONS[round % 2] {
            x = x + y;
            y = ((y << rotation) | (y >> (32 - rotation))) ^ x;
        }
        x = x + keys[(round + 1) % 3];
        y = y + (keys[(round + 2) % 3] + (round + 1));
    }
    [x, y]
}
