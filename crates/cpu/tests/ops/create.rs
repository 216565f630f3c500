//! Arrays from little: counters, random bits; and users' operators.

use std::sync::Arc;

use cupola_core::prim::call::HostInput;
use cupola_core::prim::{Custom, CustomOp, Iota, RandomBits};
use cupola_core::{Aval, DType, Error, Result, Shape};
use cupola_cpu::threads::with_threads;

use crate::common::{LAYOUTS, Tensor, elements, indices, run};

#[test]
fn counters_count_along_their_axis() {
    let cases: [(&[usize], usize); 7] = [
        (&[5], 0),
        (&[3, 4, 5], 0),
        (&[3, 4, 5], 1),
        (&[3, 4, 5], 2),
        (&[2, 0], 0),
        (&[1], 0),
        (&[40_000], 0),
    ];
    for (shape, axis) in cases {
        for dtype in DType::ALL.into_iter().filter(|&d| d != DType::Bool) {
            let got = run(Iota { shape: shape.into(), dtype, axis }, &[]).unwrap();
            let want: Vec<f64> = indices(shape).iter().map(|i| i[axis] as f64).collect();
            assert_eq!(got[0], elements(dtype, &want), "{shape:?} {axis} {dtype}");
        }
    }
}

/// How many elements each of the recorded arrays has.
const COUNTS: [usize; 11] = [2, 3, 4, 5, 6, 7, 8, 9, 11, 33, 1001];

/// FNV-1a hashes of what MLX 0.32's `random::bits` gives: width, seed, and one hash a count.
const RECORDED: [(usize, u64, [u64; 11]); 6] = [
    (
        4,
        0x7,
        [
            0xad8e2178ac24a1f4,
            0x6f167f83ef7080f4,
            0x1e111c0cba95bc1b,
            0x7364b35e248efb6a,
            0x521d149ce954b0b8,
            0xf3955be2e74d6a93,
            0x823bc41d90c026ea,
            0x33eb89e6c4141f6f,
            0x9cd6d6a33051b8a7,
            0xc0d6bc12911a1411,
            0x7ce4d8fdd9d6812a,
        ],
    ),
    (
        4,
        0x123456789abcdef,
        [
            0x851d040423c8a4a5,
            0xa6b5a1050b3c9f0c,
            0x1fdc5cd8fe0a19bb,
            0x6e75ff7d38c64a90,
            0xe6b5705fe9b984e1,
            0x0539d32452791207,
            0xe3fe159bdc3f9c47,
            0xa066fb0636805b1c,
            0x199476c95aa1c5ca,
            0x2325057e8684a793,
            0x329f4a8d7a1a7df4,
        ],
    ),
    (
        2,
        0x7,
        [
            0x2261bcf671673f2d,
            0xec377d67949224da,
            0xad8e2178ac24a1f4,
            0x40e22b45fe5fad87,
            0x6f167f83ef7080f4,
            0xfe7a7f9229caaa3a,
            0x1e111c0cba95bc1b,
            0xc5a7abab22a0985e,
            0xf83973abcb0873c2,
            0x63e0f1243ed0b406,
            0xeb7f7e452bb14cda,
        ],
    ),
    (
        2,
        0x123456789abcdef,
        [
            0x991940785db7cf88,
            0xa483d868e6180086,
            0x851d040423c8a4a5,
            0x1c051847cefd31f5,
            0xa6b5a1050b3c9f0c,
            0xa7d5ce30d2f9d559,
            0x1fdc5cd8fe0a19bb,
            0xe35c77a495597a07,
            0xa77c9b3ec9b93180,
            0x21c22c6b51e896be,
            0xe32286dd491ea4b0,
        ],
    ),
    (
        1,
        0x7,
        [
            0x0a044207b6773e0a,
            0x7c7a501b0c9e8b47,
            0x2261bcf671673f2d,
            0x47a9dbf3e12696e8,
            0xec377d67949224da,
            0xf46f11017454d4ce,
            0xad8e2178ac24a1f4,
            0xe5d8881ff0b1f263,
            0x9ffd1fef3c93f948,
            0x8e9c2deab4778c7c,
            0x564880b07a79c85d,
        ],
    ),
    (
        1,
        0x123456789abcdef,
        [
            0x082f5b07b4e8ed9f,
            0xd164c51867cade15,
            0x991940785db7cf88,
            0x473b9948a09a3ede,
            0xa483d868e6180086,
            0xa409663efac92444,
            0x851d040423c8a4a5,
            0xbc4afcb14e2899e3,
            0x99d95704b83a66af,
            0x4437a5a42deaf264,
            0x539f422dd0fe51cf,
        ],
    ),
];

fn key(seed: u64) -> [f64; 2] {
    [(seed >> 32) as f64, (seed & 0xffff_ffff) as f64]
}

fn bits(shape: &[usize], width: usize, lead: &[usize], keys: &[[f64; 2]]) -> Vec<u8> {
    let keys_shape: Shape = lead.iter().copied().chain([2]).collect();
    let keys = Tensor::new(keys_shape, DType::U32, keys.as_flattened());
    let op = RandomBits { shape: shape.into(), width };
    let out = run(op.clone(), std::slice::from_ref(&keys)).unwrap().remove(0);
    for layout in LAYOUTS {
        assert_eq!(run(op.clone(), &[keys.laid(layout)]).unwrap()[0], out);
    }
    out
}

#[test]
fn random_bits_equal_those_of_mlx() {
    let hash = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0xcbf29ce484222325u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100000001b3))
    };
    for (width, seed, hashes) in RECORDED {
        for (count, want) in COUNTS.into_iter().zip(hashes) {
            let got = bits(&[count], width, &[], &[key(seed)]);
            assert_eq!(hash(&got), want, "width {width}, seed {seed}, {count} elements");
        }
    }
    // mx.random.split(mx.random.key(7), 3)
    let words: Vec<u32> = bits(&[3, 2], 4, &[], &[key(7)])
        .chunks(4)
        .map(|w| u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))
        .collect();
    assert_eq!(words, [276534068, 861967409, 1905761346, 1641862660, 2900896126, 1402713516]);
}

#[test]
fn random_bits_of_many_keys_are_those_of_each() {
    let keys: Vec<[f64; 2]> = (0..6).map(|i| key(i * 0x1_0000_0003 + 7)).collect();
    for width in [1, 2, 4] {
        for shape in [&[][..], &[7], &[3, 3], &[0], &[20_001]] {
            let each: Vec<u8> = keys.iter().flat_map(|k| bits(shape, width, &[], &[*k])).collect();
            assert_eq!(bits(shape, width, &[2, 3], &keys), each, "{shape:?} {width}");
            assert_eq!(with_threads(1, || bits(shape, width, &[6], &keys)), each);
        }
    }
}

/// Sums and sizes of two arrays, or an error.
struct Report {
    fails: bool,
}

impl CustomOp for Report {
    fn name(&self) -> &'static str {
        "report"
    }

    fn key(&self) -> Vec<u8> {
        vec![u8::from(self.fails)]
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Vec<Aval>> {
        Ok(vec![inputs[0].clone(), Aval::new([2], DType::U8), Aval::new([0], DType::F32)])
    }

    fn run_host(&self, inputs: &[HostInput<'_>], outputs: &mut [&mut [u8]]) -> Result<()> {
        if self.fails {
            return Err(Error::User("as asked".into()));
        }
        outputs[0].copy_from_slice(inputs[0].bytes);
        outputs[0].reverse();
        outputs[1].copy_from_slice(&[inputs[0].bytes.len() as u8, inputs[1].bytes.len() as u8]);
        assert!(outputs[2].is_empty());
        Ok(())
    }
}

#[test]
fn users_operators_see_contiguous_bytes() {
    let x = Tensor::new([2, 3], DType::I16, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = Tensor::new([0], DType::F64, &[]);
    let mut reversed = x.bytes.clone();
    reversed.reverse();
    for layout in LAYOUTS {
        let custom = Custom(Arc::new(Report { fails: false }));
        let got = run(custom, &[x.laid(layout), y.clone()]).unwrap();
        assert_eq!(got, [reversed.clone(), vec![12, 0], vec![]]);
    }
    let error = run(Custom(Arc::new(Report { fails: true })), &[x, y]).unwrap_err();
    assert_eq!(error.to_string(), "as asked");
}
