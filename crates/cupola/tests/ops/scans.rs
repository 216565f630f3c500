//! Scans of lanes that are cut into parts, against a loop.

use cupola::ops::{self, ScanOptions};
use cupola::{Array, DType, Result};

/// The sums so far of integers that wrap, from either end, with or without each place's own.
fn expected(x: &[i32], options: ScanOptions) -> Vec<i32> {
    let mut out = vec![0; x.len()];
    let mut total = 0i32;
    for i in 0..x.len() {
        let at = if options.reverse { x.len() - 1 - i } else { i };
        let before = total;
        total = total.wrapping_add(x[at]);
        out[at] = if options.exclusive { before } else { total };
    }
    out
}

#[test]
fn long_lanes_are_cut_and_joined() -> Result<()> {
    for size in [63i64, 1023, 1024, 1025, 5000, 131_072, 300_001] {
        let x: Vec<i32> = (0..size).map(|i| (i * 7_654_321 % 1_000_003) as i32 - 400_000).collect();
        let array = Array::from_slice(&x, [x.len()])?;
        for reverse in [false, true] {
            for exclusive in [false, true] {
                let options = ScanOptions { reverse, exclusive };
                let sums = ops::cumsum(&array, 0, options)?.to_vec::<i32>()?;
                assert!(sums == expected(&x, options), "{size} {options:?}");
            }
        }
        let highest = ops::cummax(&array, 0, ScanOptions::default())?.to_vec::<i32>()?;
        assert!(highest.windows(2).all(|w| w[0] <= w[1]));
        assert_eq!(highest.last(), x.iter().max());
    }
    Ok(())
}

#[test]
fn halves_are_summed_in_single_precision() -> Result<()> {
    // In half precision 2048 + 1 is 2048.
    let ones = ops::ones([2, 3000], DType::F16)?;
    for (x, axis) in [(ones.clone(), 1), (ones.transpose(())?, 0)] {
        let sums = ops::cumsum(&x, axis, ScanOptions::default())?.astype(DType::F32)?;
        assert_eq!(ops::max(&sums, (), false)?.item::<f32>()?, 3000.0);
    }
    Ok(())
}

#[test]
fn long_sums_lose_little() -> Result<()> {
    let tenth = ops::full([1 << 20], 0.1, DType::F32)?;
    let sums = ops::cumsum(&tenth, 0, ScanOptions::default())?.to_vec::<f32>()?;
    let exact = f64::from(0.1f32) * f64::from(1 << 20);
    // One sum after the other would be wrong by a part in thirty.
    let wrong = (f64::from(sums[(1 << 20) - 1]) / exact - 1.0).abs();
    assert!(wrong < 2e-5, "{wrong}");
    Ok(())
}
