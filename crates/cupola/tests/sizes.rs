//! A new size compiles nothing: kernels are written for kinds of work, and run for all sizes.

#![cfg(feature = "wgpu")]

use std::sync::atomic::{AtomicUsize, Ordering};

use cupola::backend::devices_of;
use cupola::device::{DeviceKind, Stream, with_stream};
use cupola::ops::{self, AttentionOptions, ConvOptions, PoolOptions};
use cupola::{Array, Device, Result, Shape};

/// How many kernels were compiled.
static COMPILED: AtomicUsize = AtomicUsize::new(0);

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    /// A number between these two, ends included.
    fn between(&mut self, low: usize, high: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) as usize % (high - low + 1)
    }

    fn array(&mut self, shape: &[usize]) -> Result<Array> {
        let count = shape.iter().product();
        let data = (0..count).map(|_| self.between(0, 2000) as f32 / 1000.0 - 1.0).collect();
        Array::from_vec(data, Shape::from(shape))
    }
}

/// A kind of work on random sizes, and how many kernels it may take.
type Work = (&'static str, usize, fn(&mut Random) -> Result<Array>);

const WORK: [Work; 14] = [
    ("a sum and product with a broadcast row", 12, |r| {
        let (rows, columns) = (r.between(2, 90), r.between(2, 90));
        let (x, row) = (r.array(&[rows, columns])?, r.array(&[columns])?);
        ops::add(&ops::multiply(&x, &row)?, &x)
    }),
    ("a transpose", 12, |r| {
        let (rows, columns) = (r.between(2, 90), r.between(2, 90));
        let turned = ops::transpose(&r.array(&[rows, columns])?, ())?;
        ops::add(&turned, &r.array(&[columns, rows])?)
    }),
    ("a sum along rows", 24, |r| {
        let (rows, columns) = (r.between(2, 40), r.between(2, 700));
        ops::sum(&r.array(&[rows, columns])?, 1, false)
    }),
    ("a sum along columns", 24, |r| {
        let (rows, columns) = (r.between(2, 400), r.between(2, 90));
        ops::sum(&r.array(&[rows, columns])?, 0, false)
    }),
    ("a softmax", 40, |r| {
        let (rows, columns) = (r.between(2, 20), r.between(2, 1000));
        ops::softmax(&r.array(&[rows, columns])?, -1)
    }),
    ("a product of matrices", 40, |r| {
        let [rows, depth, columns] = [(); 3].map(|()| r.between(2, 70));
        ops::matmul(&r.array(&[rows, depth])?, &r.array(&[depth, columns])?)
    }),
    ("a convolution", 40, |r| {
        let [images, side, cin, cout] =
            [r.between(1, 4), r.between(5, 12), r.between(1, 9), r.between(1, 9)];
        let (x, w) = (r.array(&[images, side, side + 1, cin])?, r.array(&[cout, 3, 3, cin])?);
        let options = ConvOptions { padding: vec![(1, 1); 2], ..ConvOptions::default() };
        ops::conv2d(&x, &w, &options)
    }),
    ("elements at indices", 12, |r| {
        let (rows, columns, count) = (r.between(2, 40), r.between(2, 40), r.between(2, 40));
        let at: Vec<i32> = (0..count).map(|_| r.between(0, rows - 1) as i32).collect();
        ops::take(&r.array(&[rows, columns])?, &Array::from_vec(at, [count])?, 0)
    }),
    ("a running sum", 12, |r| {
        let (rows, columns) = (r.between(2, 20), r.between(2, 900));
        ops::cumsum(&r.array(&[rows, columns])?, 1, ops::ScanOptions::default())
    }),
    ("a sort", 12, |r| {
        let (rows, columns) = (r.between(2, 20), r.between(2, 90));
        ops::sort(&r.array(&[rows, columns])?, 1)
    }),
    ("a pooling", 12, |r| {
        let (images, side, channels) = (r.between(1, 4), r.between(4, 15), r.between(1, 20));
        ops::max_pool(&r.array(&[images, side, side, channels])?, &PoolOptions::new([2, 2]))
    }),
    ("attention", 24, |r| {
        let (queries, keys, features) = (r.between(2, 40), r.between(2, 90), 4 * r.between(1, 12));
        let q = r.array(&[1, 2, queries, features])?;
        let [k, v] = [(); 2].map(|()| r.array(&[1, 2, keys, features]));
        ops::scaled_dot_product_attention(&q, &k?, &v?, &AttentionOptions::new(0.3))
    }),
    ("a token with a cache of keys", 30, |r| {
        let keys = r.between(2, 200);
        let x = r.array(&[1, 1, 1, 16])?;
        let (cache, one) = (r.array(&[1, 2, keys, 16])?, r.array(&[1, 2, 1, 16])?);
        let k = ops::concatenate(&[&cache, &one], 2)?;
        let q = ops::multiply(&x, &one)?;
        ops::scaled_dot_product_attention(&q, &k, &k, &AttentionOptions::new(0.3))
    }),
    ("joined matrices", 12, |r| {
        let (rows, columns) = (r.between(2, 40), r.between(2, 40));
        let (x, y) = (r.array(&[rows, columns])?, r.array(&[rows + 3, columns])?);
        ops::concatenate(&[&x, &y], 0)
    }),
];

/// Shapes of each kind of work.
const SHAPES: usize = 100;

#[test]
fn sizes_compile_nothing() -> Result<()> {
    let Some(device) = devices_of(DeviceKind::Wgpu).first().map(|b| b.device()) else {
        println!("there is no wgpu device: nothing was tested");
        return Ok(());
    };
    cupola::wgpu::observe(|_, _| {
        COMPILED.fetch_add(1, Ordering::Relaxed);
    });
    for (name, most, work) in WORK {
        let mut before = [COMPILED.load(Ordering::Relaxed); 2];
        for number in 0..SHAPES {
            if number == SHAPES / 2 {
                before[1] = COMPILED.load(Ordering::Relaxed);
            }
            let seed = Random(number as u64 * 7 + 1);
            let run = |device| {
                let mut seed = Random(seed.0);
                with_stream(Stream::of(device), || work(&mut seed)?.to_vec::<f32>())
            };
            let [have, want] = [run(device)?, run(Device::CPU)?];
            let close = |(x, y): (&f32, &f32)| (x - y).abs() <= 1e-4 * (1.0 + y.abs());
            assert!(have.iter().zip(&want).all(close), "{name}, shapes {number}");
        }
        let now = COMPILED.load(Ordering::Relaxed);
        let [all, late] = before.map(|before| now - before);
        println!("{name}: {all} kernels, {late} of them for the last {}", SHAPES - SHAPES / 2);
        assert!(all <= most && late * 3 <= most, "{name}: {all} kernels, of these {late} late");
    }
    Ok(())
}
