//! Plans that are made from one for other sizes give what plans that are made anew give, bit for bit.
//!
//! Alone in its program, because plans are counted for the whole process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola::ops::{self, AttentionMask, AttentionOptions, ScanOptions};
use cupola::plan::{cache, explain};
use cupola::transform::{compile, grad};
use cupola::{Array, Aval, DType, Error, Result, eval};
use proptest::prelude::*;

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ramp(shape: &[usize]) -> Result<Array> {
    let size: usize = shape.iter().product();
    let data: Vec<f32> = (0..size).map(|i| (i * 37 % 101) as f32 * 0.02 - 1.0).collect();
    Array::from_vec(data, shape)
}

fn bits(arrays: &[Array]) -> Result<Vec<Vec<u32>>> {
    let of = |array: &Array| {
        let values = ops::astype(array, DType::F32)?.to_vec::<f32>()?;
        Ok(values.into_iter().map(f32::to_bits).collect())
    };
    arrays.iter().map(of).collect()
}

/// What a plan does, in no order; where a result takes the memory of an operand depends on the order.
fn work_of(arrays: &[Array]) -> Result<Vec<String>> {
    let steps = explain(arrays)?.steps;
    let avals = |operands: &[(Aval, u32)]| {
        operands.iter().map(|(aval, _)| aval.to_string()).collect::<Vec<_>>().join(", ")
    };
    let mut work: Vec<String> = steps
        .iter()
        .map(|s| {
            format!(
                "{} {} {:?}: {} -> {}",
                s.kind,
                s.over,
                s.fused,
                avals(&s.inputs),
                avals(&s.outputs)
            )
        })
        .collect();
    work.sort_unstable();
    Ok(work)
}

/// Computes `f` of each size, with the plans that are there by then, and with none; gives how many were made for
/// other sizes.
fn the_same(sizes: &[usize], f: impl Fn(usize) -> Result<Vec<Array>>) -> Result<u64> {
    compared(sizes, work_of, f)
}

/// As [`the_same`], with what is compared of the plan.
fn compared(
    sizes: &[usize],
    work_of: impl Fn(&[Array]) -> Result<Vec<String>>,
    f: impl Fn(usize) -> Result<Vec<Array>>,
) -> Result<u64> {
    let at = |size: usize| {
        let arrays = f(size)?;
        let work = work_of(&arrays)?;
        eval(&arrays)?;
        Ok::<_, Error>((work, bits(&arrays)?))
    };
    cache::clear();
    let before = cache::stats().resized;
    let with = sizes.iter().map(|&size| at(size)).collect::<Result<Vec<_>>>()?;
    let resized = cache::stats().resized - before;
    for (&size, with) in sizes.iter().zip(&with) {
        cache::clear();
        let anew = at(size)?;
        assert_eq!(with.0, anew.0, "at {size}");
        assert!(with.1 == anew.1, "at {size}: {with:?}\n{anew:?}");
    }
    Ok(resized)
}

/// What does not depend on the size, so that most of a graph is the same.
fn rest(x: &Array) -> Result<Array> {
    let w = ramp(&[8, 8])?;
    let mut y = x.clone();
    for _ in 0..6 {
        y = ops::tanh(&ops::matmul(&(&y * 0.5), &w)?)? + &y;
    }
    Ok(y)
}

/// Its own bytes, whoever holds another handle.
fn there(array: Array) -> Result<Array> {
    array.eval()?;
    Ok(array)
}

const SIZES: [usize; 8] = [16, 17, 18, 19, 20, 24, 30, 17];

#[test]
fn caches_that_grow() -> Result<()> {
    let _turn = turn();
    let resized = the_same(&SIZES, |size| {
        let past = there(ramp(&[1, 2, size, 4])?)?;
        let x = rest(&there(ramp(&[1, 8])?)?)?;
        let heads = ops::reshape(&x, [1, 2, 1, 4])?;
        let keys = ops::concatenate(&[&past, &heads], 2)?;
        let y =
            ops::scaled_dot_product_attention(&heads, &keys, &keys, &AttentionOptions::new(0.3))?;
        Ok(vec![rest(&ops::reshape(&y, [1, 8])?)?, keys])
    })?;
    assert!(resized >= 4, "{resized}");
    Ok(())
}

#[test]
fn windows_of_a_cache_and_masks_that_all_layers_share() -> Result<()> {
    let _turn = turn();
    let resized = the_same(&SIZES, |size| {
        let past = there(ramp(&[1, 2, 64, 4])?)?;
        let mut x = there(ramp(&[1, 8])?)?;
        let places = ops::arange(0, size as i32, 1)?;
        let mask = ops::less(&places, (size - 3) as i32)?;
        let mut given = Vec::new();
        for layer in 0..3 {
            let heads = ops::reshape(&rest(&x)?, [1, 2, 1, 4])?;
            let row = size as isize - 1 - layer;
            let (start, stop) = ([0, 0, row, 0], [1, 2, row + 1, 4]);
            let all = ops::slice_update(&past, &heads, &start, &stop, &[1; 4])?;
            let seen = ops::slice(&all, &[0; 4], &[1, 2, size as isize, 4], &[1; 4])?;
            // By hand, and as one.
            let scores = ops::matmul(&heads, &ops::swapaxes(&seen, 2, 3)?)?;
            let hidden = ops::where_(&mask, &(&scores * 0.3), f32::NEG_INFINITY)?;
            let by_hand = ops::matmul(&ops::softmax(&hidden, -1)?, &seen)?;
            let options = AttentionOptions {
                mask: AttentionMask::Array(&mask),
                ..AttentionOptions::new(0.3)
            };
            let as_one = ops::scaled_dot_product_attention(&heads, &seen, &seen, &options)?;
            x = ops::reshape(&(by_hand + as_one), [1, 8])?;
            given.push(all);
        }
        given.push(rest(&x)?);
        Ok(given)
    })?;
    assert!(resized >= 4, "{resized}");
    Ok(())
}

#[test]
fn outputs_that_are_read_in_another_way() -> Result<()> {
    let _turn = turn();
    let resized = the_same(&SIZES, |size| {
        let x = there(ramp(&[size, 3])?)?;
        let y = rest(&there(ramp(&[2, 8])?)?)?;
        let turned = ops::transpose(&(&x * 2.0), [1, 0])?;
        let part = ops::slice(&turned, &[1, 2], &[3, size as isize], &[1, 2])?;
        let spread = ops::broadcast_to(&ops::reshape(&y, [16, 1])?, [16, size])?;
        let full = ops::full([4, 2], 3.0, DType::F32)?;
        let flat = ops::reshape(&turned, [3 * size])?;
        Ok(vec![x, turned, part, spread, y, full, flat])
    })?;
    assert!(resized >= 3, "{resized}");
    Ok(())
}

#[test]
fn constants_that_are_asked_for() -> Result<()> {
    let _turn = turn();
    the_same(&SIZES, |size| {
        let y = rest(&there(ramp(&[2, 8])?)?)?;
        Ok(vec![y, ops::full([size, 2], 3.0, DType::F32)?])
    })?;
    Ok(())
}

#[test]
fn gradients_of_what_changes_its_size() -> Result<()> {
    let _turn = turn();
    let resized = the_same(&SIZES, |size| {
        let rows = there(ramp(&[size, 8])?)?;
        let x = there(ramp(&[4, 8])?)?;
        let loss = |a: &[Array]| {
            let y = rest(&a[0])?;
            let scores = ops::softmax(&ops::matmul(&y, &ops::swapaxes(&rows, 0, 1)?)?, -1)?;
            let y = rest(&ops::matmul(&scores, &rows)?)?;
            Ok(vec![ops::sum(&ops::square(&y)?, (), false)?])
        };
        grad(loss, &[0])(std::slice::from_ref(&x))
    })?;
    assert!(resized >= 4, "{resized}");
    Ok(())
}

#[test]
fn indices_are_looked_at_for_the_size_that_is_there() -> Result<()> {
    let _turn = turn();
    cache::clear();
    let before = cache::stats().resized;
    for size in SIZES {
        let of = |last: usize| -> Result<Array> {
            let table = there(ramp(&[size, 8])?)?;
            let places = Array::from_vec(vec![0, 1, last as i32], [3])?;
            there(places.clone())?;
            // Recorded of a computed array, so that nobody knows them before.
            let places = &places + &Array::from_vec(vec![0, 0, 0], [3])?;
            let rows = rest(&ops::take(&table, &places, Some(0))?)?;
            eval(std::slice::from_ref(&rows))?;
            Ok(rows)
        };
        assert!(of(size - 1).is_ok(), "{size}");
        assert!(matches!(of(size), Err(Error::Index { .. })), "{size}");
    }
    assert!(cache::stats().resized > before);
    Ok(())
}

#[test]
fn leaves_that_are_given_away_are_overwritten_as_ever() -> Result<()> {
    let _turn = turn();
    the_same(&SIZES, |size| {
        let mut state = there(ramp(&[size, 8])?)?;
        let x = there(ramp(&[1, 8])?)?;
        for _ in 0..2 {
            let delta = rest(&x)?;
            state = &(&state * 0.9) + &delta;
            eval(std::slice::from_ref(&state))?;
        }
        Ok(vec![state])
    })?;
    Ok(())
}

#[test]
fn a_structure_whose_sizes_change_what_is_done_is_planned_anew() -> Result<()> {
    let _turn = turn();
    // One row, and as many as something else has, mean another work.
    the_same(&[8, 7, 1, 2, 8, 9, 1, 6, 16, 3, 0, 5], |size| {
        let x = there(ramp(&[size, 8])?)?;
        let square = there(ramp(&[8, 8])?)?;
        let y = rest(&square)?;
        let both = ops::concatenate(&[&x, &y], 0)?;
        Ok(vec![ops::sum(&both, [0], false)?, &ops::sum(&x, [0], true)? * &y, both])
    })?;
    Ok(())
}

#[test]
fn what_was_equal_may_be_another() -> Result<()> {
    let _turn = turn();
    let x = there(ramp(&[8, 8])?)?;
    // Equal nodes are one, until one of them is another, be it by a size or not.
    let by = |axes: [isize; 2], sizes: [usize; 2]| {
        let y = rest(&rest(&x)?)?;
        let part = |size: usize| {
            let line = ops::cumsum(&ops::arange(0, size as i32, 1)?, 0, ScanOptions::default())?;
            ops::sum(&ops::astype(&line, DType::F32)?, (), false)
        };
        let of = |axis: isize| ops::argmax(&y, [axis], false);
        let body = compile(|_: &mut (), a: &[Array]| Ok(vec![ops::argmax(&a[0], [0], false)?]));
        let inside = body.call(&mut (), std::slice::from_ref(&y))?.remove(0);
        Ok(vec![of(axes[0])?, of(axes[1])?, inside, part(sizes[0])?, &part(sizes[1])? + 1.0, y])
    };
    let cases = [
        ([0, 0], [20, 20]),
        ([1, 1], [21, 21]),
        ([0, 0], [22, 22]),
        ([0, 0], [23, 23]),
        ([0, 1], [24, 24]),
        ([1, 0], [24, 25]),
        ([1, 1], [26, 25]),
        ([1, 0], [25, 26]),
    ];
    let places: Vec<usize> = (0..cases.len()).collect();
    // What is compiled is traced in each case, and may be planned in another way than in the one before.
    compared(&places, |_| Ok(Vec::new()), |case| by(cases[case].0, cases[case].1))?;
    Ok(())
}

/// One operation on a value of `size` rows and one of eight.
#[derive(Clone, Copy, Debug)]
enum Work {
    Scale,
    Turn,
    Drop,
    Join,
    Pad,
    Fold,
    Rows,
    Product,
    Spread,
    Gather,
    Update,
    Half,
    Sort,
}

const WORK: [Work; 13] = {
    use Work::*;
    [Scale, Turn, Drop, Join, Pad, Fold, Rows, Product, Spread, Gather, Update, Half, Sort]
};

fn done(works: &[Work], size: usize) -> Result<Vec<Array>> {
    let (mut x, mut y) = (there(ramp(&[size, 8])?)?, there(ramp(&[1, 8])?)?);
    let mut given = Vec::new();
    for (at, work) in works.iter().enumerate() {
        let rows = x.shape()[0];
        match work {
            Work::Scale => x = &(&x * 0.75) + &y,
            Work::Turn => {
                x = ops::transpose(&(&ops::transpose(&x, [1, 0])? + 0.5), [1, 0])?;
            }
            Work::Drop if rows > 4 => x = ops::slice(&x, &[1, 0], &[rows as isize, 8], &[1, 1])?,
            Work::Join => x = ops::concatenate(&[&x, &ops::tanh(&y)?], 0)?,
            Work::Pad => {
                x = ops::concatenate(&[&ops::full([2, 8], 0.25, DType::F32)?, &x], 0)?;
            }
            Work::Fold => y = ops::tanh(&(&ops::mean(&x, [0], true)? + &y))?,
            Work::Rows => x = ops::softmax(&x, if at % 2 == 0 { -1 } else { 0 })?,
            Work::Product => {
                let scores = ops::matmul(&y, &ops::transpose(&x, [1, 0])?)?;
                y = ops::matmul(&ops::softmax(&scores, -1)?, &x)?;
            }
            Work::Spread => x = &x * &ops::broadcast_to(&y, [rows, 8])?,
            Work::Gather => {
                let places = Array::from_vec(vec![rows as i32 - 1, 0], [2])?;
                y = ops::sum(&ops::take(&x, &places, Some(0))?, [0], true)?;
            }
            Work::Update => {
                let row = rows as isize / 2;
                x = ops::slice_update(&x, &y, &[row, 0], &[row + 1, 8], &[1, 1])?;
            }
            Work::Half => x = ops::astype(&ops::astype(&x, DType::BF16)?, DType::F32)?,
            Work::Sort => x = ops::sort(&x, 0)?,
            Work::Drop => {}
        }
        y = rest(&y)?;
        if at % 3 == 2 {
            given.push(x.clone());
        }
    }
    given.extend([x, y]);
    Ok(given)
}

#[test]
fn two_after_each_other() -> Result<()> {
    let _turn = turn();
    let mut resized = 0;
    for first in WORK {
        for second in WORK {
            resized += the_same(&[12, 13, 14, 15, 17], |size| done(&[first, second], size))?;
        }
    }
    // Of five sizes the last two can be.
    let most = 2 * (WORK.len() * WORK.len()) as u64;
    assert!(resized > most * 3 / 4, "{resized} of {most}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done(works in prop::collection::vec(prop::sample::select(&WORK[..]), 1..7), first in 5_usize..12) {
        let _turn = turn();
        let sizes = [first, first + 1, first + 2, first + 3, first, 2 * first];
        the_same(&sizes, |size| done(&works, size)).map_err(|e| TestCaseError::fail(e.to_string()))?;
    }
}
