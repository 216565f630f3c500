//! The interpreter: many threads at once, step by step.
//!
//! Every expression is computed for all threads of a group before the next, as on a GPU, so that the work of
//! finding out what to do is shared by them; which threads a branch concerns says a mask. So a barrier is
//! where all threads are already. A kernel without barriers and shared arrays runs in groups of a size that
//! suits the interpreter.

pub(crate) mod compute;
mod exec;
mod memory;

use crate::error::{Error, Pos};
use crate::tree::Program;

/// How a kernel is run.
#[derive(Clone)]
pub struct Run<'a> {
    /// Threads along each axis.
    pub grid: [u32; 3],
    /// Threads of a group along each axis; those at the end of the grid are smaller.
    pub threadgroup: [u32; 3],
    /// The shape of every array, inputs first. Their elements lie in row-major order.
    pub shapes: Vec<Vec<usize>>,
    /// How often a loop may go round before it counts as one without end.
    pub rounds: u64,
    /// Says whether to go on; asked now and then.
    pub goes_on: Option<&'a dyn Fn() -> bool>,
}

impl Run<'_> {
    /// A run over a grid.
    pub fn new(grid: [u32; 3], threadgroup: [u32; 3]) -> Self {
        Run { grid, threadgroup, shapes: Vec::new(), rounds: 1 << 28, goes_on: None }
    }
}

/// How many threads run at once where the kernel leaves it open.
const LANES: usize = 512;

impl Program {
    /// Computes the outputs: a slice of bytes for every array, of as many as its shape says.
    ///
    /// # Errors
    /// An index outside its array, a barrier that only some threads of a group reach, a loop without end, or
    /// [`Error::Stopped`].
    pub fn run(
        &self,
        run: &Run<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        let bytes = inputs.iter().map(|b| b.len()).chain(outputs.iter().map(|b| b.len()));
        let wanted = self.arrays.iter().zip(&run.shapes);
        let fits = bytes.clone().zip(wanted).all(|(have, (array, shape))| {
            have == shape.iter().product::<usize>() * array.scalar.size()
        });
        if !fits || inputs.len() != self.inputs || bytes.count() != self.arrays.len() {
            let message = "its arrays are not those that it was read for".into();
            return Err(Error::Run { at: Pos::default(), message });
        }
        let mut lanes = exec::Lanes::new(self, run, inputs, outputs);
        let [gx, gy, gz] = run.grid.map(|n| n as usize);
        if self.has_barriers || !self.shared.is_empty() {
            let [sx, sy, sz] = run.threadgroup.map(|n| n.max(1) as usize);
            for z in (0..gz).step_by(sz) {
                for y in (0..gy).step_by(sy) {
                    for x in (0..gx).step_by(sx) {
                        let ends = [(x + sx).min(gx), (y + sy).min(gy), (z + sz).min(gz)];
                        lanes.group([x, y, z], ends)?;
                    }
                }
            }
            return Ok(());
        }
        let total = gx * gy * gz;
        for start in (0..total).step_by(LANES) {
            let end = (start + LANES).min(total);
            lanes.start((start..end).map(|i| [i % gx, i / gx % gy, i / gx / gy]))?;
        }
        Ok(())
    }
}
