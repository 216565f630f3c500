//! Running a plan.

use smallvec::SmallVec;

use super::{Access, Plan, Step};
use crate::array::Value;
use crate::backend::{Args, Backend, Buffer, Region, backend};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::shape::Layout;

/// What may differ from run to run: constants and slice starts, by node of the evaluated graph.
pub(crate) trait Parameters {
    /// The value of the constant at `node`.
    fn constant(&self, node: u32) -> Scalar;
    /// The starts of the slice at `node`.
    fn starts(&self, node: u32) -> &[usize];
}

/// A slot's memory at a run, and where a leaf starts in it.
struct Place {
    buffer: Option<Buffer>,
    base: isize,
}

impl Plan {
    /// Runs on `leaves`, in input order. A leaf that nobody else holds may be overwritten.
    pub fn run(&self, leaves: Vec<Value>, parameters: &dyn Parameters) -> Result<Vec<Value>> {
        debug_assert_eq!(leaves.len(), self.leaves);
        let backend = backend(self.device)?;
        let mut slots: Vec<Place> = Vec::with_capacity(self.slot_bytes.len());
        // Leaves have the first slots only among inputs; slots are numbered in graph order, and
        // inputs come first in it.
        slots.extend(
            leaves.into_iter().map(|v| Place { buffer: Some(v.buffer), base: v.layout.offset }),
        );
        slots.resize_with(self.slot_bytes.len(), || Place { buffer: None, base: 0 });
        for step in &self.steps {
            self.step(step, &mut slots, parameters, &**backend)?;
        }
        let value = |spec: &super::OutputSpec| {
            let offset = resolve(&spec.access, &slots, parameters);
            let buffer = slots[spec.access.slot as usize].buffer.clone();
            buffer.map(|buffer| Value {
                buffer,
                layout: Layout { strides: spec.strides.clone(), offset },
            })
        };
        Ok(self.outputs.iter().filter_map(value).collect())
    }

    fn step(
        &self,
        step: &Step,
        slots: &mut [Place],
        parameters: &dyn Parameters,
        backend: &dyn Backend,
    ) -> Result<()> {
        let mut aliased = false;
        for (index, output) in step.outputs.iter().enumerate() {
            let slot = output.slot as usize;
            if slots[slot].buffer.is_some() {
                continue;
            }
            let pair = step.aliases.iter().find(|p| usize::from(p.0) == index);
            let donor = pair.map(|p| step.inputs[usize::from(p.1)].slot).filter(|donor| {
                let place = &slots[*donor as usize];
                step.frees.contains(donor)
                    && place.base == 0
                    && place
                        .buffer
                        .as_ref()
                        .is_some_and(|b| b.is_unique() && b.bytes() == self.slot_bytes[slot])
            });
            slots[slot].buffer = match donor {
                Some(donor) => {
                    aliased = true;
                    slots[donor as usize].buffer.clone()
                }
                None => Some(backend.alloc(self.slot_bytes[slot])?),
            };
        }
        if !(aliased && step.is_copy) {
            let regions = |accesses: &[Access]| -> SmallVec<[(usize, isize); 8]> {
                accesses.iter().map(|a| (a.slot as usize, resolve(a, slots, parameters))).collect()
            };
            let (inputs, outputs) = (regions(&step.inputs), regions(&step.outputs));
            fn region<'s>(slots: &'s [Place], at: &(usize, isize)) -> Option<Region<'s>> {
                slots[at.0].buffer.as_ref().map(|buffer| Region { buffer, offset: at.1 })
            }
            let inputs: SmallVec<[Region<'_>; 8]> =
                inputs.iter().filter_map(|at| region(slots, at)).collect();
            let outputs: SmallVec<[Region<'_>; 4]> =
                outputs.iter().filter_map(|at| region(slots, at)).collect();
            let scalars: SmallVec<[[u8; 8]; 8]> = step
                .scalars
                .iter()
                .map(|(source, dtype)| source.element(*dtype, |n| parameters.constant(n)))
                .collect();
            step.executable.run(&Args { inputs: &inputs, outputs: &outputs, scalars: &scalars })?;
        }
        for &slot in &step.frees {
            slots[slot as usize].buffer = None;
        }
        Ok(())
    }
}

/// Where an access starts in its buffer, in elements.
fn resolve(access: &Access, slots: &[Place], parameters: &dyn Parameters) -> isize {
    let mut offset = slots[access.slot as usize].base + access.offset.fixed;
    for (node, strides) in &access.offset.starts {
        let starts = parameters.starts(*node);
        offset += starts.iter().zip(strides).map(|(&s, &t)| s as isize * t).sum::<isize>();
    }
    offset
}
