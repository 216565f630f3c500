//! Random bits.

use cupola_core::prim::RandomBits;
use cupola_core::{Aval, DType, Shape};

use crate::host::Host;
use crate::number::Number;
use crate::sample::{Accuracy, Sample, fixed};

pub fn samples() -> Vec<Sample> {
    let sample = |(width, count)| {
        let op = RandomBits { shape: Shape::from([count]), width };
        let keys = fixed([3, 2], DType::U32, |i| (i * 2_654_435_761 % 4_294_967_291) as f64);
        Sample::new(format!("{count} of {width} bytes"), move |_| op.clone().into(), vec![keys])
            // The dtype of what comes out is a parameter.
            .only(|dtype| dtype == DType::U32)
    };
    let mut all: Vec<Sample> = [(4, 7), (4, 8), (2, 9), (1, 5), (4, 1), (1, 33)].map(sample).into();
    for width in [1, 2, 4] {
        for count in COUNTS {
            let name = format!("{count} of {width} bytes, as recorded");
            let few = of_keys(&name, &[count], width, &[2, 2], |i| KEYS[i % 4] as f64);
            all.push(few.where_kernels_are_cheap());
        }
        for shape in [&[][..], &[7], &[3, 3], &[0], &[20_001]] {
            let name = format!("{shape:?} of {width} bytes for six keys");
            let word = |i| ((i / 2 % 6) * (1 + i % 2 * 2)) as f64 + (i % 2 * 7) as f64;
            all.push(of_keys(&name, shape, width, &[2, 3, 2], word).where_kernels_are_cheap());
        }
    }
    all
}

/// How many elements each of the recorded arrays has.
const COUNTS: [usize; 11] = [2, 3, 4, 5, 6, 7, 8, 9, 11, 33, 1001];

/// The halves of the seeds of the recorded arrays.
const KEYS: [u32; 4] = [0, 7, 0x0123_4567, 0x89ab_cdef];

fn of_keys(
    name: &str,
    shape: &[usize],
    width: usize,
    keys: &[usize],
    word: impl Fn(usize) -> f64 + 'static,
) -> Sample {
    let op = RandomBits { shape: Shape::from(shape), width };
    Sample::new(name, move |_| op.clone().into(), vec![fixed(keys, DType::U32, word)])
        .only(|dtype| dtype == DType::U32)
        .within(Accuracy::Exact)
}

/// Threefry-2x32 with 20 rounds (Salmon et al., SC 2011), laid out as MLX 0.32 does: word i of the
/// first half and its partner in the second half come from the counter (i, i + half).
pub fn reference(r: &RandomBits, keys: &Host, out: &Aval) -> Host {
    let bytes = r.shape.size() * r.width;
    let words = bytes.div_ceil(4);
    let half = words / 2;
    let odd = words % 2;
    let mut data = Vec::new();
    for key in keys.data.chunks(2) {
        let key = [key[0].int() as u32, key[1].int() as u32];
        let mut stream = vec![0u32; words];
        for i in 0..half {
            let second = half + odd + i;
            [stream[i], stream[second]] = threefry(key, [i as u32, second as u32]);
        }
        if odd == 1 {
            stream[half] = threefry(key, [half as u32, 0])[0];
        }
        let stream: Vec<u8> = stream.iter().flat_map(|w| w.to_le_bytes()).collect();
        for element in stream.chunks(r.width).take(r.shape.size()) {
            let value = element.iter().rev().fold(0u64, |v, &b| v << 8 | u64::from(b));
            data.push(Number::Int(value.into()));
        }
    }
    Host::from_fn(out.clone(), |i| data[i])
}

fn threefry(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD1_1BDA];
    let rotations = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let mut x = [counter[0].wrapping_add(keys[0]), counter[1].wrapping_add(keys[1])];
    for round in 0..5usize {
        for rotation in rotations[round % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(keys[(round + 1) % 3]);
        x[1] = x[1].wrapping_add(keys[(round + 2) % 3]).wrapping_add(round as u32 + 1);
    }
    x
}

#[cfg(test)]
mod tests {
    use cupola_core::prim::Primitive;

    use super::*;

    /// FNV-1a hashes of what MLX 0.32's `random::bits` gives: width, seed, and one hash a count.
    #[rustfmt::skip]
    const RECORDED: [(usize, u64, [u64; 11]); 6] = [
        (4, 0x7, [
            0xad8e2178ac24a1f4, 0x6f167f83ef7080f4, 0x1e111c0cba95bc1b, 0x7364b35e248efb6a,
            0x521d149ce954b0b8, 0xf3955be2e74d6a93, 0x823bc41d90c026ea, 0x33eb89e6c4141f6f,
            0x9cd6d6a33051b8a7, 0xc0d6bc12911a1411, 0x7ce4d8fdd9d6812a,
        ]),
        (4, 0x123456789abcdef, [
            0x851d040423c8a4a5, 0xa6b5a1050b3c9f0c, 0x1fdc5cd8fe0a19bb, 0x6e75ff7d38c64a90,
            0xe6b5705fe9b984e1, 0x0539d32452791207, 0xe3fe159bdc3f9c47, 0xa066fb0636805b1c,
            0x199476c95aa1c5ca, 0x2325057e8684a793, 0x329f4a8d7a1a7df4,
        ]),
        (2, 0x7, [
            0x2261bcf671673f2d, 0xec377d67949224da, 0xad8e2178ac24a1f4, 0x40e22b45fe5fad87,
            0x6f167f83ef7080f4, 0xfe7a7f9229caaa3a, 0x1e111c0cba95bc1b, 0xc5a7abab22a0985e,
            0xf83973abcb0873c2, 0x63e0f1243ed0b406, 0xeb7f7e452bb14cda,
        ]),
        (2, 0x123456789abcdef, [
            0x991940785db7cf88, 0xa483d868e6180086, 0x851d040423c8a4a5, 0x1c051847cefd31f5,
            0xa6b5a1050b3c9f0c, 0xa7d5ce30d2f9d559, 0x1fdc5cd8fe0a19bb, 0xe35c77a495597a07,
            0xa77c9b3ec9b93180, 0x21c22c6b51e896be, 0xe32286dd491ea4b0,
        ]),
        (1, 0x7, [
            0x0a044207b6773e0a, 0x7c7a501b0c9e8b47, 0x2261bcf671673f2d, 0x47a9dbf3e12696e8,
            0xec377d67949224da, 0xf46f11017454d4ce, 0xad8e2178ac24a1f4, 0xe5d8881ff0b1f263,
            0x9ffd1fef3c93f948, 0x8e9c2deab4778c7c, 0x564880b07a79c85d,
        ]),
        (1, 0x123456789abcdef, [
            0x082f5b07b4e8ed9f, 0xd164c51867cade15, 0x991940785db7cf88, 0x473b9948a09a3ede,
            0xa483d868e6180086, 0xa409663efac92444, 0x851d040423c8a4a5, 0xbc4afcb14e2899e3,
            0x99d95704b83a66af, 0x4437a5a42deaf264, 0x539f422dd0fe51cf,
        ]),
    ];

    fn bits(shape: &[usize], width: usize, seed: u64) -> Host {
        let words = [seed >> 32, seed & 0xffff_ffff].map(|w| Number::Int(w.into()));
        let keys = Host { aval: Aval::new([2], DType::U32), data: words.to_vec() };
        let op = RandomBits { shape: Shape::from(shape), width };
        let out = op.infer(&[&keys.aval]).unwrap()[0].clone();
        reference(&op, &keys, &out)
    }

    #[test]
    fn the_reference_is_what_mlx_gives() {
        for (width, seed, hashes) in RECORDED {
            for (count, want) in COUNTS.into_iter().zip(hashes) {
                let got = bits(&[count], width, seed);
                let bytes = got.data.iter().flat_map(|v| v.bytes(got.aval.dtype));
                let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
                    (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
                });
                assert_eq!(hash, want, "width {width}, seed {seed}, {count} elements");
            }
        }
        // mx.random.split(mx.random.key(7), 3)
        let words: Vec<i128> = bits(&[3, 2], 4, 7).data.iter().map(|v| v.int()).collect();
        let split = [276534068, 861967409, 1905761346, 1641862660, 2900896126, 1402713516];
        assert_eq!(words, split);
    }
}
