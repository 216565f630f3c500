//! The cache of plans keeps to its limit: also where keys and values that grow by one make a new graph
//! at every step.
//!
//! Alone in its program, because plans and memory are counted for the whole process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola_core::backend::backend;
use cupola_core::ops::{self, AttentionOptions};
use cupola_core::plan::cache;
use cupola_core::{Array, DType, Device, Result, eval};
use cupola_cpu as _;

const LAYERS: usize = 3;
const HEADS: usize = 2;
const WIDTH: usize = 16;
const STEPS: usize = 2000;

/// Every test here counts: they take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn the_cache_keeps_to_its_limit() -> Result<()> {
    let _turn = turn();
    let former = cache::set_limit(32 << 10);
    let before = cache::stats().evictions;
    for n in 1..40 {
        (&ops::ones([n], DType::F32)? + 1.0).eval()?;
    }
    let stats = cache::stats();
    cache::set_limit(former);
    assert!(stats.bytes <= 32 << 10 && stats.plans > 2, "{stats:?}");
    assert!(stats.evictions > before, "{stats:?}");
    Ok(())
}

#[test]
fn the_plan_that_was_used_last_stays() -> Result<()> {
    let _turn = turn();
    let former = cache::set_limit(16 << 10);
    let x = ops::ones([7], DType::F32)?;
    x.eval()?;
    let used = || (&x * 3.0).eval();
    used()?;
    for n in 10..100 {
        (&ops::ones([n], DType::F32)? + 1.0).eval()?;
        let misses = cache::stats().misses;
        used()?;
        assert_eq!(cache::stats().misses, misses, "the plan went after {n}");
    }
    cache::set_limit(former);
    Ok(())
}

#[test]
fn nothing_is_left_of_plans_that_are_forgotten() -> Result<()> {
    let _turn = turn();
    let x = ops::full([3, 5], 0.5, DType::F32)?;
    ops::softmax(&ops::matmul(&x, &ops::ones([5, 4], DType::F32)?)?, -1)?.eval()?;
    assert!(cache::stats().bytes > 0);
    cache::clear();
    let stats = cache::stats();
    assert_eq!((stats.plans, stats.bytes), (0, 0), "{stats:?}");
    Ok(())
}

#[test]
fn equal_segments_are_prepared_once() -> Result<()> {
    let _turn = turn();
    cache::clear();
    let run = |layers: usize, rows: usize| -> Result<usize> {
        let w = ops::full([8, 8], 0.5, DType::F32)?;
        let mut x = ops::ones([rows, 8], DType::F32)?;
        eval(&[w.clone(), x.clone()])?;
        for _ in 0..layers {
            x = ops::softmax(&ops::matmul(&x, &w)?, -1)?;
        }
        x.eval()?;
        Ok(cache::stats().bytes)
    };
    let (few, many) = (run(2, 4)?, run(40, 4)?);
    let wide = run(2, 6)?;
    // Forty layers hold their own wiring and the programs of the first two, so they hold less than
    // half of what twenty times two layers of a new size would.
    assert!(many - few < 10 * (wide - many), "{few}, {many}, {wide}");
    Ok(())
}

/// The pages that the process has in memory, in bytes; nothing where the system does not say.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}

/// One more token through attention over all so far, and a network of two matrices.
fn layer(x: &Array, w: &[Array], cache: &mut [Array; 2]) -> Result<Array> {
    let heads =
        |y: Array| ops::transpose(&ops::reshape(&y, [1, 1, HEADS, WIDTH / HEADS])?, [0, 2, 1, 3]);
    let q = heads(ops::matmul(x, &w[0])?)?;
    for (cache, w) in cache.iter_mut().zip(&w[1..]) {
        *cache = ops::concatenate(&[cache, &heads(ops::matmul(x, w)?)?], 2)?;
    }
    let [k, v] = cache;
    let y = ops::scaled_dot_product_attention(&q, k, v, &AttentionOptions::new(0.5))?;
    let x = x + &ops::reshape(&ops::transpose(&y, [0, 2, 1, 3])?, [1, 1, WIDTH])?;
    Ok(&x + &ops::matmul(&ops::tanh(&ops::matmul(&x, &w[3])?)?, &w[4])?)
}

#[test]
fn a_cache_that_grows_by_one_keeps_plans_and_memory_level() -> Result<()> {
    const LIMIT: usize = 4 << 20;
    let _turn = turn();
    let former = cache::set_limit(LIMIT);
    // Freed arrays of former sizes are none of the plans' memory.
    backend(Device::CPU)?.set_cache_limit(Some(0));
    let weight = |_| ops::full([WIDTH, WIDTH], 0.05, DType::F32);
    let weights: Vec<Vec<Array>> =
        (0..LAYERS).map(|_| (0..5).map(weight).collect()).collect::<Result<_>>()?;
    let none = ops::zeros([1, HEADS, 1, WIDTH / HEADS], DType::F32)?;
    let mut caches: Vec<[Array; 2]> = (0..LAYERS).map(|_| [none.clone(), none.clone()]).collect();
    let x = ops::ones([1, 1, WIDTH], DType::F32)?;
    eval(&weights.concat())?;
    let (mut settled, mut plans, mut memory) = (None, [usize::MAX, 0], [usize::MAX, 0]);
    for step in 0..STEPS {
        let mut y = x.clone();
        for (cache, weights) in caches.iter_mut().zip(&weights) {
            y = layer(&y, weights, cache)?;
        }
        let mut wanted = caches.concat();
        wanted.push(y);
        eval(&wanted)?;
        let stats = cache::stats();
        assert!(stats.bytes <= LIMIT, "step {step}: {stats:?}");
        if stats.evictions < 200 {
            continue;
        }
        settled.get_or_insert(step);
        plans = [plans[0].min(stats.plans), plans[1].max(stats.plans)];
        if let Some(bytes) = resident() {
            memory = [memory[0].min(bytes), memory[1].max(bytes)];
        }
    }
    cache::set_limit(former);
    backend(Device::CPU)?.set_cache_limit(None);
    assert!(settled.is_some_and(|step| step < STEPS / 2), "settled at step {settled:?}");
    assert!(plans[1] <= plans[0] + plans[0] / 5, "between {plans:?} plans");
    let grown = memory[1].saturating_sub(memory[0]);
    assert!(grown < 4 << 20, "the process went from {} to {} bytes", memory[0], memory[1]);
    Ok(())
}
