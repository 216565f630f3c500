//! The exact key of a plan: everything that its structure depends on.
//!
//! Payloads already say what identifies them through `Hash`; here a hasher that forgets nothing
//! writes it down, so that a cache hit compares the whole key and not its hash.

use std::hash::Hasher;
use std::sync::Arc;

use super::Call;
use crate::graph::Graph;

/// The key of a plan, and the hasher that writes it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Key {
    /// Numbers, one after the other, each in as few bytes as it needs.
    bytes: Vec<u8>,
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
    /// An empty key with room for so many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Key { bytes: Vec::with_capacity(bytes), bodies: Vec::new() }
    }

    /// Adds a number: seven bits a byte, the lowest first, of which all but the last are marked.
    pub(crate) fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Adds the whole of a call's body. Rules are no part of what is computed.
    pub(crate) fn body(&mut self, call: &Arc<Call>) {
        self.push(call.fingerprint());
        self.bodies.push(CallBody(call.plain()));
    }

    /// A hash of the numbers; it only picks the bucket.
    pub(crate) fn bucket(&self) -> u64 {
        let mut mixer = Mixer::default();
        mixer.write(&self.bytes);
        mixer.finish()
    }

    /// The bytes of memory that it holds, without those of the bodies.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.bodies.capacity() * size_of::<CallBody>()
    }

    /// The bodies, which it shares with others; one may come several times.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Arc<Graph>> {
        self.bodies.iter().map(|CallBody(call)| &call.body)
    }
}

impl Hasher for Key {
    fn finish(&self) -> u64 {
        self.bucket()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.push(bytes.len() as u64);
        words(bytes).for_each(|word| self.push(word));
    }

    fn write_u8(&mut self, v: u8) {
        self.push(v.into());
    }

    fn write_u16(&mut self, v: u16) {
        self.push(v.into());
    }

    fn write_u32(&mut self, v: u32) {
        self.push(v.into());
    }

    fn write_u64(&mut self, v: u64) {
        self.push(v);
    }

    fn write_usize(&mut self, v: usize) {
        self.push(v as u64);
    }

    fn write_isize(&mut self, v: isize) {
        self.push(v as u64);
    }
}

/// A quick hash by multiplying and folding, for what nobody chooses to collide.
#[derive(Clone, Copy)]
pub struct Mixer(u64);

impl Default for Mixer {
    fn default() -> Self {
        Mixer(0x9e37_79b9_7f4a_7c15)
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.write_u64(bytes.len() as u64);
        words(bytes).for_each(|word| self.write_u64(word));
    }

    fn write_u8(&mut self, v: u8) {
        self.write_u64(v.into());
    }

    fn write_u16(&mut self, v: u16) {
        self.write_u64(v.into());
    }

    fn write_u32(&mut self, v: u32) {
        self.write_u64(v.into());
    }

    fn write_u64(&mut self, v: u64) {
        let wide = u128::from(self.0 ^ v) * 0xa076_1d64_78bd_642f_u128;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64) ^ v.rotate_left(23);
    }

    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }

    fn write_isize(&mut self, v: isize) {
        self.write_u64(v as u64);
    }
}

/// Bytes as words, the last one filled up with zeros.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
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
