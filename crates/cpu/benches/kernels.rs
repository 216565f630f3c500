//! Convolutions, pools and products against a multiply-add loop measured in the same run.
//!
//! `cargo bench -p cupola-cpu --bench kernels -- [filter]`

use std::hint::black_box;
use std::time::Instant;

use cupola_core::prim::ConvRole;
use cupola_cpu::conv::{ConvProblem, ConvTail, PackedConv, conv};
use cupola_cpu::dot::{DotElement, DotProblem, dot};
use cupola_cpu::pool::{self, PoolProblem};
use cupola_cpu::threads::{num_threads, parallel_for};
use cupola_simd::{Element, Isa, Out, Rows, Run, Tail, Tile, Tiled};
use half::{bf16, f16};

/// The least time of a call in seconds, over about `budget` seconds.
fn time(budget: f64, mut f: impl FnMut()) -> f64 {
    f();
    let (mut best, start) = (f64::INFINITY, Instant::now());
    for round in 0.. {
        let t = Instant::now();
        f();
        best = best.min(t.elapsed().as_secs_f64());
        if round >= 4 && start.elapsed().as_secs_f64() > budget {
            break;
        }
    }
    best
}

/// GFLOP/s of register tiles on operands in the first-level cache, on all threads.
fn peak() -> f64 {
    let isa = Isa::best();
    let set = f32::tiles(isa);
    let v = set.rows.len().min(2);
    let (m, len, tiles) = (set.rows[v - 1], 256, 64);
    let kernel = f32::kernel(isa, m, v, Rows::Together);
    let chunks = num_threads() * 8;
    let seconds = time(0.3, || {
        parallel_for(chunks, |_| {
            let (a, b) = (vec![1.0f32; m * len], vec![1.0f32; v * set.lanes * len]);
            let mut c = vec![0.0f32; m * v * set.lanes];
            let tile = Tile {
                a: a.as_ptr(),
                a_unit: 1,
                a_step: m,
                rows: &[],
                row_step: 0,
                b: b.as_ptr(),
                b_unit: 1,
                b_step: v * set.lanes / 4,
                soon: 0,
                columns: [0, set.lanes, 0, 0],
                runs: &[Run { a: 0, b: 0, len }],
                c: c.as_mut_ptr(),
                c_step: v * set.lanes,
                last: set.lanes,
                add: false,
                tail: Tail::NONE,
            };
            for _ in 0..tiles {
                // SAFETY: the operands have the sizes that the tile says.
                unsafe { kernel(&tile) };
            }
            black_box(c);
        });
    });
    (2 * m * v * set.lanes * len * tiles * chunks) as f64 / seconds / 1e9
}

fn random(n: usize) -> Vec<f32> {
    let mut s = 88172645463325252u64;
    (0..n)
        .map(|_| {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            (s >> 40) as f32 / (1 << 24) as f32 - 0.5
        })
        .collect()
}

fn square(batch: usize, size: usize, ci: usize, co: usize, k: usize, stride: usize) -> ConvProblem {
    let output = (size + 2 * (k / 2) - k) / stride + 1;
    ConvProblem {
        batch,
        groups: 1,
        in_channels: ci,
        out_channels: co,
        input: vec![size; 2],
        kernel: vec![k; 2],
        output: vec![output; 2],
        stride: vec![stride; 2],
        padding: vec![(k / 2, k / 2); 2],
        dilation: vec![1; 2],
        input_dilation: vec![1; 2],
        flip: false,
    }
}

struct Bench {
    filter: String,
    peak: f64,
}

impl Bench {
    fn row(&self, name: &str, flops: f64, f: impl FnMut()) {
        if !name.contains(&self.filter) {
            return;
        }
        let seconds = time(0.5, f);
        let rate = flops / seconds / 1e9;
        let (us, part) = (seconds * 1e6, rate / self.peak * 100.0);
        println!("{name:44} {us:10.1} us {rate:8.1} GFLOP/s {part:5.0} % of peak");
    }

    /// Work is counted as if zeros were multiplied too, as other libraries count it.
    fn conv(&self, name: &str, p: &ConvProblem) {
        let (x, w) = (random(p.input_len()), random(p.weight_len()));
        let dy = random(p.output_len());
        let flops = 2.0 * (p.output_len() * p.weight_len() / p.out_channels) as f64;
        for (role, a, b, len) in [
            (ConvRole::Forward, &x, &w, dy.len()),
            (ConvRole::InputGrad, &dy, &w, x.len()),
            (ConvRole::WeightGrad, &x, &dy, w.len()),
        ] {
            if p.batch == 1 && role != ConvRole::Forward {
                continue;
            }
            let mut out = vec![0.0f32; len];
            self.row(&format!("{name} {role:?}"), flops, || {
                conv(p, role, a, b, Out::new(&mut out), ConvTail::default(), None);
            });
        }
        if p.batch == 1 {
            let mut out = vec![0.0f32; dy.len()];
            let packed = PackedConv::new(p, ConvRole::Forward, &w);
            self.row(&format!("{name} Forward packed"), flops, || {
                assert!(packed.run(&x, Out::new(&mut out), ConvTail::default(), None));
            });
        }
    }

    fn pool(&self, name: &str, p: &PoolProblem) {
        let (x, dy) = (random(p.input_len()), random(p.output_len()));
        let (mut y, mut dx) = (vec![0.0f32; dy.len()], vec![0.0f32; x.len()]);
        let bytes = |n: usize| n as f64 * 4.0;
        let (xs, ys) = (x.len(), dy.len());
        self.row(&format!("{name} max (bytes)"), bytes(xs + ys), || {
            pool::max(p, &x, Out::new(&mut y));
        });
        self.row(&format!("{name} max_scatter (bytes)"), bytes(2 * xs + ys), || {
            pool::max_scatter(p, &x, &dy, Out::new(&mut dx));
        });
        self.row(&format!("{name} sum (bytes)"), bytes(xs + ys), || {
            pool::sum(p, &x, Out::new(&mut y));
        });
    }

    fn dot<T: DotElement + Element<Acc = f32>>(&self, [m, k, n]: [usize; 3], ta: bool, tb: bool) {
        let some = |n: usize| -> Vec<T> { random(n).into_iter().map(T::from_acc).collect() };
        let (a, b, mut out) = (some(m * k), some(k * n), some(m * n));
        let strides = |rows: usize, columns: usize, transposed: bool| {
            if transposed { [0, 1, rows as isize] } else { [0, columns as isize, 1] }
        };
        let (a_strides, b_strides) = (strides(m, k, ta), strides(k, n, tb));
        let p = DotProblem { batch: 1, m, k, n, a_strides, b_strides };
        let mark = |t: bool| if t { "t" } else { "" };
        let kind = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
        let name = format!("dot {kind} {m}x{k}{} * {k}x{n}{}", mark(ta), mark(tb));
        self.row(&name, 2.0 * (m * k * n) as f64, || {
            // SAFETY: the operands are dense arrays of the problem's sizes.
            unsafe {
                dot(&p, a.as_ptr(), b.as_ptr(), Out::new(&mut out), Default::default(), None)
            };
        });
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with("--")).unwrap_or_default();
    let bench = Bench { filter, peak: peak() };
    println!("peak {:.1} GFLOP/s on {} threads", bench.peak, num_threads());
    for (name, size, ci, co) in [
        ("mnist1", 28, 1, 20),
        ("mnist2", 14, 20, 50),
        ("mnist3", 7, 50, 100),
        ("cifar1", 32, 3, 20),
        ("cifar2", 16, 20, 50),
        ("cifar3", 8, 50, 100),
    ] {
        for batch in [512, 1] {
            bench.conv(&format!("{name} b{batch}"), &square(batch, size, ci, co, 5, 1));
        }
    }
    bench.conv("resnet 3x3 56 64-64 b32", &square(32, 56, 64, 64, 3, 1));
    bench.conv("resnet 1x1 56 64-256 b8", &square(8, 56, 64, 256, 1, 1));
    bench.conv("strided 3x3/2 56 64-128 b16", &square(16, 56, 64, 128, 3, 2));
    bench.conv("wide 3x3 14 256-256 b16", &square(16, 14, 256, 256, 3, 1));
    let mut depthwise = square(16, 56, 64, 64, 3, 1);
    depthwise.groups = 64;
    bench.conv("depthwise 3x3 56 64 b16", &depthwise);
    for (size, channels) in [(28, 20), (14, 50), (7, 100)] {
        let p = PoolProblem {
            batch: 512,
            channels,
            input: vec![size; 2],
            window: vec![2; 2],
            stride: vec![2; 2],
            padding: vec![(0, 0); 2],
            dilation: vec![1; 2],
            output: vec![size / 2; 2],
        };
        bench.pool(&format!("pool 2x2/2 {size} c{channels} b512"), &p);
    }
    for (m, k, n) in [(512, 900, 450), (512, 450, 225), (512, 225, 10), (1024, 1024, 1024)] {
        bench.dot::<f32>([m, k, n], false, true);
        bench.dot::<f32>([m, n, k], false, false);
        bench.dot::<f32>([k, m, n], true, false);
    }
    for size in [512, 2048] {
        for (ta, tb) in [(false, false), (false, true), (true, false)] {
            bench.dot::<f32>([size; 3], ta, tb);
            bench.dot::<bf16>([size; 3], ta, tb);
            bench.dot::<f16>([size; 3], ta, tb);
        }
    }
    for (k, n) in [(900, 450), (450, 225), (225, 10), (4096, 4096)] {
        for rows in [1, 4, 8] {
            for transposed in [true, false] {
                bench.dot::<f32>([rows, k, n], false, transposed);
                bench.dot::<bf16>([rows, k, n], false, transposed);
                bench.dot::<f16>([rows, k, n], false, transposed);
            }
        }
    }
}
