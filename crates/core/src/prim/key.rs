//! The exact key of a plan: everything that its structure depends on.
//!
//! Payloads already say what identifies them through `Hash`; here a hasher that forgets nothing
//! writes it down, so that a cache hit compares the whole key and not its hash.

use std::hash::Hasher;
use std::sync::Arc;

use super::Call;

/// The key of a plan, and the hasher that writes it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Key {
    pub(crate) words: Vec<u64>,
    /// The bodies of calls, in the order in which they come.
    bodies: Vec<CallBody>,
}

/// A call whose body is part of a key.
#[derive(Clone)]
struct CallBody(Arc<Call>);

impl PartialEq for CallBody {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || Arc::ptr_eq(&self.0.body, &other.0.body)
            || self.0.body == other.0.body
    }
}

impl Eq for CallBody {}

impl Key {
    /// Adds the whole of a call's body.
    pub(crate) fn body(&mut self, call: &Arc<Call>) {
        self.words.push(call.fingerprint());
        self.bodies.push(CallBody(call.clone()));
    }
}

impl Hasher for Key {
    fn finish(&self) -> u64 {
        hash_words(&self.words)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.words.push(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, v: u8) {
        self.words.push(v.into());
    }

    fn write_u16(&mut self, v: u16) {
        self.words.push(v.into());
    }

    fn write_u32(&mut self, v: u32) {
        self.words.push(v.into());
    }

    fn write_u64(&mut self, v: u64) {
        self.words.push(v);
    }

    fn write_usize(&mut self, v: usize) {
        self.words.push(v as u64);
    }

    fn write_isize(&mut self, v: isize) {
        self.words.push(v as u64);
    }
}

/// A hash of words by multiplying and folding; it only picks the bucket.
pub(crate) fn hash_words(words: &[u64]) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64 ^ words.len() as u64;
    for &word in words {
        let wide = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f_u128;
        hash = (wide as u64) ^ ((wide >> 64) as u64) ^ word.rotate_left(23);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::prim::{Movement, Op, Unary};
    use crate::shape::Dims;

    fn key(op: &Op) -> Key {
        let mut writer = Key::default();
        op.write_key(&mut writer);
        writer
    }

    #[test]
    fn starts_are_no_part_of_the_key_and_sizes_are() {
        let slice = |start: usize, size: usize| {
            Op::from(Movement::Slice {
                start: Dims::from_slice(&[start]),
                sizes: Dims::from_slice(&[size]),
                strides: Dims::from_slice(&[1]),
            })
        };
        assert!(key(&slice(0, 4)) == key(&slice(8, 4)));
        assert!(key(&slice(0, 4)) != key(&slice(0, 5)));
        assert!(key(&Unary::Exp.into()) != key(&Unary::Log.into()));
        let cast = |to| key(&crate::prim::Cast { to }.into());
        assert!(cast(DType::F16) != cast(DType::F32));
    }
}
