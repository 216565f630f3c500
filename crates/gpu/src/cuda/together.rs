//! Steps that run at once: launches of one kernel become one launch.

use std::sync::{Arc, OnceLock};

use cupola_core::Result;
use cupola_core::backend::Args;
use smallvec::SmallVec;

use super::commands::{Command, Commands, LaunchConfig};
use super::gpu::Gpu;
use super::run::{Prepared, Ready};

/// Bytes of parameters that every device takes.
const MOST_BYTES: usize = 4096;
/// How many launches there are kernels for.
const COUNTS: [usize; 3] = [4, 16, 64];

/// A step, what it works on, and where its own memory starts.
pub type Told<'a> = (&'a Prepared, &'a Args<'a>, u64);

/// Writes down what is to be done for steps of which none needs what another does, in whatever order.
pub fn tell(gpu: &Arc<Gpu>, steps: &[Told<'_>], commands: &mut Commands) -> Result<()> {
    let mut rest: SmallVec<[&Told<'_>; 16]> = steps.iter().collect();
    while let Some(&first) = rest.first() {
        let kernel = |told: &Told<'_>| told.0.launch().map(|ready| ready.config.function);
        let is_alike = |told: &Told<'_>| kernel(first).is_some() && kernel(told) == kernel(first);
        let (mut alike, mut others) = (SmallVec::<[_; 16]>::from_slice(&[first]), SmallVec::new());
        for told in &rest[1..] {
            if is_alike(told) { alike.push(*told) } else { others.push(*told) }
        }
        let mut alike = &alike[..];
        while let Some(count) = as_one(gpu, alike, commands)? {
            alike = &alike[count..];
        }
        for (prepared, args, scratch) in alike {
            prepared.tell(args, *scratch, commands)?;
        }
        rest = others;
    }
    Ok(())
}

/// Writes down the first of these launches of one kernel as one, where there are several and a kernel for that; gives
/// how many.
fn as_one(gpu: &Arc<Gpu>, alike: &[&Told<'_>], commands: &mut Commands) -> Result<Option<usize>> {
    let [(prepared, ..), _, ..] = alike else { return Ok(None) };
    if !is_wanted() {
        return Ok(None);
    }
    let Some(ready) = prepared.launch() else { return Ok(None) };
    let own = own_bytes(ready);
    let Some(most) = most(alike.len(), own) else { return Ok(None) };
    let Some(function) = gpu.kernels.together(gpu, &ready.kernel, most as u32) else {
        return Ok(None);
    };
    let count = most.min(alike.len());
    let mut first: SmallVec<[u32; 65]> = SmallVec::from_slice(&[0]);
    let launches = alike[..count].iter().filter_map(|told| told.0.launch());
    for launch in launches {
        let blocks = first.last().and_then(|last| last.checked_add(launch.config.grid[0]));
        let Some(blocks) = blocks.filter(|&blocks| blocks <= i32::MAX as u32) else {
            return Ok(None);
        };
        first.push(blocks);
    }
    let blocks = first[count];
    let config = LaunchConfig { function, grid: [blocks, 1], ..ready.config };
    commands.begin(Command::Launch(config));
    first.resize(most + 1, blocks);
    first.iter().for_each(|&block| commands.word(block));
    for (prepared, args, scratch) in &alike[..count] {
        commands.fill_to(8);
        prepared
            .launch()
            .map_or(Ok(()), |launch| launch.fill(commands, prepared, args, *scratch))?;
    }
    commands.fill_to(bytes(most, own));
    Ok(Some(count))
}

fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| std::env::var("CUPOLA_CUDA_TOGETHER").as_deref() != Ok("0"))
}

/// Bytes of the parameters of one launch.
fn own_bytes(ready: &Ready) -> usize {
    let kernel = &ready.kernel.kernel;
    (8 * kernel.bindings.len() + 4 * kernel.words() as usize).next_multiple_of(8)
}

/// Bytes of the parameters of so many launches, of which each has `own`.
fn bytes(launches: usize, own: usize) -> usize {
    (4 * (launches + 1)).next_multiple_of(8) + launches * own
}

/// For how many launches the kernel is that does `count` of them, or as many as it can.
fn most(count: usize, own: usize) -> Option<usize> {
    let fits = (2..=COUNTS[COUNTS.len() - 1]).rev().find(|&most| bytes(most, own) <= MOST_BYTES)?;
    Some(COUNTS.into_iter().find(|&most| most >= count).map_or(fits, |most| most.min(fits)))
}

#[cfg(test)]
mod tests {
    use super::{MOST_BYTES, bytes, most};

    #[test]
    fn there_is_a_kernel_for_four_sixteen_and_as_many_as_fit() {
        assert_eq!([2, 4, 5, 16, 17, 64, 90].map(|count| most(count, 32)), {
            [4, 4, 16, 16, 64, 64, 64].map(Some)
        });
        assert_eq!([2, 9, 40].map(|count| most(count, 200)), [4, 16, 20].map(Some));
        assert!(bytes(20, 200) <= MOST_BYTES && bytes(21, 200) > MOST_BYTES);
        assert_eq!(most(2, 4000), None);
    }
}
