//! What planning costs beside running: a language model that decodes a token at a time, whose keys
//! and values grow by one, so that every token is a graph of new sizes.
//!
//! `cargo bench -p cupola-cpu --bench planning`

use std::time::Instant;

use cupola_core::ops::{self, AttentionOptions};
use cupola_core::plan::{cache, explain};
use cupola_core::{Array, DType, Result, eval};
use cupola_cpu as _;

const LAYERS: usize = 12;
const WIDTH: usize = 32;
const HEADS: usize = 4;
const TOKENS: usize = 256;

/// A layer's weights, and the keys and values of the tokens so far.
struct Layer {
    weights: Vec<Array>,
    keys: Array,
    values: Array,
}

impl Layer {
    fn new() -> Result<Layer> {
        let matrix = |rows: usize, columns: usize| ops::full([rows, columns], 0.01, DType::F32);
        let sizes = [(WIDTH, WIDTH); 4].into_iter().chain([(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]);
        let weights = sizes.map(|(rows, columns)| matrix(rows, columns)).collect::<Result<_>>()?;
        let none = ops::zeros([1, HEADS, 1, WIDTH / HEADS], DType::F32)?;
        Ok(Layer { weights, keys: none.clone(), values: none })
    }

    fn forward(&mut self, x: &Array) -> Result<Array> {
        let w = &self.weights;
        let heads = |y: Array| {
            ops::transpose(&ops::reshape(&y, [1, 1, HEADS, WIDTH / HEADS])?, [0, 2, 1, 3])
        };
        let normal = ops::layer_norm(x, None, None, 1e-5)?;
        let q = heads(ops::matmul(&normal, &w[0])?)?;
        self.keys = ops::concatenate(&[&self.keys, &heads(ops::matmul(&normal, &w[1])?)?], 2)?;
        self.values = ops::concatenate(&[&self.values, &heads(ops::matmul(&normal, &w[2])?)?], 2)?;
        let options = AttentionOptions::new(0.5);
        let y = ops::scaled_dot_product_attention(&q, &self.keys, &self.values, &options)?;
        let y = ops::reshape(&ops::transpose(&y, [0, 2, 1, 3])?, [1, 1, WIDTH])?;
        let x = x + &ops::matmul(&y, &w[3])?;
        let normal = ops::layer_norm(&x, None, None, 1e-5)?;
        Ok(&x + &ops::matmul(&ops::gelu(&ops::matmul(&normal, &w[4])?)?, &w[5])?)
    }
}

/// Seconds of recording, planning and running each token.
fn decode() -> Result<Vec<[f64; 3]>> {
    let mut layers = (0..LAYERS).map(|_| Layer::new()).collect::<Result<Vec<_>>>()?;
    let everything = layers.iter().flat_map(|l| l.weights.iter().chain([&l.keys, &l.values]));
    eval(&everything.cloned().collect::<Vec<_>>())?;
    let x = ops::ones([1, 1, WIDTH], DType::F32)?;
    x.eval()?;
    let mut times = Vec::with_capacity(TOKENS);
    for _ in 0..TOKENS {
        let start = Instant::now();
        let mut y = x.clone();
        for layer in &mut layers {
            y = layer.forward(&y)?;
        }
        let wanted: Vec<Array> =
            layers.iter().flat_map(|l| [l.keys.clone(), l.values.clone()]).chain([y]).collect();
        let recorded = Instant::now();
        explain(&wanted)?;
        let planned = Instant::now();
        eval(&wanted)?;
        let spans = [recorded - start, planned - recorded, planned.elapsed()];
        times.push(spans.map(|span| span.as_secs_f64()));
    }
    Ok(times)
}

fn main() -> Result<()> {
    cache::clear();
    let fresh = decode()?;
    let known = decode()?;
    println!("{:?}", cache::stats());
    for (index, what) in ["recording", "planning and printing", "running"].iter().enumerate() {
        let least =
            |all: &[[f64; 3]]| all.iter().map(|t| t[index] * 1e6).fold(f64::INFINITY, f64::min);
        println!(
            "{what:25}{:10.1} µs a token of a new size, {:10.1} of a known one",
            least(&fresh),
            least(&known)
        );
    }
    Ok(())
}
