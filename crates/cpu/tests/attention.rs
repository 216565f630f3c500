//! Attention as a whole: what is planned, for which sizes, and how much memory it takes.

use cupola_core::backend::backend;
use cupola_core::ops::{AttentionMask, AttentionOptions};
use cupola_core::transform::{checkpoint, compile, grad};
use cupola_core::{Array, DType, Device, Result, eval, ops, plan};
// For the backend.
use cupola_cpu as _;

fn arrays(length: usize, groups: usize) -> Result<[Array; 3]> {
    let of = |heads| ops::random::normal([2, heads, length, 16], DType::F32, None);
    Ok([of(4)?, of(groups)?, of(groups)?])
}

fn attend(x: &[Array]) -> Result<Array> {
    let options = AttentionOptions { mask: AttentionMask::Causal, ..AttentionOptions::new(0.25) };
    ops::scaled_dot_product_attention(&x[0], &x[1], &x[2], &options)
}

fn slopes(x: &[Array]) -> Result<Vec<Array>> {
    let loss = |x: &[Array]| Ok(vec![ops::sum(&ops::square(&attend(x)?)?, (), false)?]);
    grad(loss, &[0, 1, 2])(x)
}

#[test]
fn it_is_one_step_and_its_gradient_another() -> Result<()> {
    let x = arrays(70, 2)?;
    eval(&x)?;
    let forward = plan::explain(&[attend(&x)?])?.to_string();
    assert!(forward.contains("scaled_dot_product_attention (") && forward.contains("1 steps"));
    let backward = plan::explain(&slopes(&x)?)?.to_string();
    assert!(backward.contains("scaled_dot_product_attention_grad ("), "{backward}");
    assert!(!backward.contains("matmul"), "{backward}");
    Ok(())
}

#[test]
fn a_trace_is_made_for_other_lengths() -> Result<()> {
    let compiled = compile(|_: &mut (), x: &[Array]| slopes(x));
    compiled.call(&mut (), &arrays(70, 2)?)?;
    let other = arrays(45, 2)?;
    assert!(compiled.fit(&mut (), &other));
    for (got, want) in compiled.call(&mut (), &other)?.iter().zip(slopes(&other)?) {
        assert_eq!(got.to_vec::<f32>()?, want.to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn a_checkpoint_gives_the_same_slopes() -> Result<()> {
    let x = arrays(70, 4)?;
    let block = checkpoint(|x: &[Array]| Ok(vec![ops::square(&attend(x)?)?]));
    let kept = grad(|x: &[Array]| Ok(vec![ops::sum(&block(x)?[0], (), false)?]), &[0, 1, 2])(&x)?;
    for (got, want) in kept.iter().zip(slopes(&x)?) {
        assert_eq!(got.to_vec::<f32>()?, want.to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn memory_is_linear_in_the_length() -> Result<()> {
    let x = arrays(2048, 4)?;
    eval(&x)?;
    let cpu = backend(Device::CPU)?;
    cpu.set_peak(0);
    let before = cpu.memory().active;
    eval(&slopes(&x)?)?;
    let used = cpu.memory().peak - before;
    // One matrix of scores of one head.
    assert!(used < 2048 * 2048 * 4, "{used}");
    Ok(())
}
