//! A GPU with little memory: what a step finds no room for costs nothing else. Nothing is tested where there is no
//! device.

#![cfg(feature = "wgpu")]

use cupola::backend::devices_of;
use cupola::device::{DeviceKind, Stream, with_stream};
use cupola::ops::{FftNorm, ScanOptions};
use cupola::{Array, Error, Result, eval, ops};
use cupola_gpu::wgpu::{Restrictions, restrict};

const MEMORY: usize = 8 << 20;

type Work = fn(&Array) -> Result<Array>;

/// An array that only the caller holds: the next step may overwrite it.
fn fresh(size: usize) -> Result<Array> {
    let x = ops::add(&Array::from_vec((0..size).map(|i| (i % 61) as f32).collect(), [size])?, 1.0)?;
    x.eval()?;
    Ok(x)
}

/// An update that overwrites what it updates, and after it work that needs memory of its own, beside so much that is
/// held: once that is gone, the update is as if nothing had been.
fn fails(work: Work, held: usize) -> Result<bool> {
    let size = 1 << 17;
    let state = fresh(size)?;
    let want: Vec<f32> = state.to_vec::<f32>()?.iter().map(|x| x * 2.0).collect();
    let ballast: Vec<Array> = (0..held).map(|_| fresh(1 << 14)).collect::<Result<_>>()?;
    let next = ops::multiply(&state, 2.0)?;
    let other = work(&next)?;
    drop(state);
    let done = eval(&[next.clone(), other.clone()]);
    drop(ballast);
    assert!(next.to_vec::<f32>()? == want, "the update is lost with {held} arrays held: {done:?}");
    other.eval()?;
    match done {
        Ok(()) => Ok(false),
        Err(Error::OutOfMemory { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

#[test]
fn scratch_memory_that_is_not_there_costs_no_update() -> Result<()> {
    restrict(Restrictions { memory: Some(MEMORY as u64), ..Default::default() });
    let Some(device) = devices_of(DeviceKind::Wgpu).first().map(|b| b.device()) else {
        println!("there is no wgpu device: nothing was tested");
        return Ok(());
    };
    with_stream(Stream::of(device), || {
        let works: [(&str, Work); 4] = [
            ("a sort", |x| ops::sort(x, -1)),
            ("a sum", |x| ops::sum(x, (), false)),
            ("a running sum", |x| ops::cumsum(x, 0, ScanOptions::default())),
            ("a transform", |x| ops::real(&ops::fft(x, None, -1, FftNorm::Backward)?)),
        ];
        for (what, work) in works {
            let mut failed = 0;
            for held in (0..MEMORY >> 16).step_by(4) {
                match fails(work, held) {
                    Ok(is_short) => failed += usize::from(is_short),
                    // What is held does not fit.
                    Err(Error::OutOfMemory { .. }) => break,
                    Err(error) => return Err(error),
                }
            }
            println!("{what}: {failed} failed");
            assert!(failed > 0, "{what} never lacked memory");
        }
        Ok(())
    })
}
