//! Planning ahead: the plans that an evaluation would run, in order. None of them runs.
//!
//! What one plan would compute the next takes as there: a layout of memory that nobody has. Plans ask for no more.

use std::sync::Arc;

use super::unfinished;
use super::walk::{Leaf, WALK, Walk, Walked};
use crate::array::{Array, Node, Value, Values};
use crate::backend::Buffer;
use crate::device::Device;
use crate::error::Result;
use crate::fork;
use crate::graph::trace::ById;
use crate::plan::Plan;
use crate::shape::Layout;

/// A plan, and whether it was there already.
type Planned = (Arc<Plan>, bool);

/// The plans that evaluating `arrays` would run, in order: the last, and those before it. Where there is nothing to
/// compute, it has no steps.
pub(crate) fn plans_of(arrays: &[Array]) -> Result<(Vec<Planned>, Planned)> {
    let (mut ahead, mut plans) = (Ahead::default(), Vec::new());
    ahead.at_once(arrays, &mut plans)?;
    let last = match plans.pop() {
        Some(last) => last,
        None => ahead.plan(&[], &mut plans)?,
    };
    Ok((plans, last))
}

/// What would be computed by then, as if it were there.
#[derive(Default)]
pub(super) struct Ahead(ById<usize, (Arc<Node>, Values)>);

impl Ahead {
    /// What the outputs of a node would be.
    pub fn values(&self, node: &Node) -> Option<&Values> {
        self.0.get(&(std::ptr::from_ref(node) as usize)).map(|(_, values)| values)
    }

    /// Whether an array would be there.
    pub fn has(&self, array: &Array) -> bool {
        self.values(&array.node).is_some_and(|values| values.get(array.output).is_some())
    }

    /// [`super::at_once`], but that plans do not run.
    fn at_once(&mut self, arrays: &[Array], plans: &mut Vec<Planned>) -> Result<()> {
        let mut roots = unfinished(arrays)?;
        while let Some(first) = roots.first() {
            let device = first.node.stream.device;
            let (here, elsewhere): (Vec<_>, Vec<_>) =
                roots.into_iter().partition(|r| r.node.stream.device == device);
            let plan = self.plan(&here, plans)?;
            plans.push(plan);
            roots = unfinished(&elsewhere)?;
            roots.retain(|root| !self.has(root));
        }
        Ok(())
    }

    /// The plan of `roots`, all on one device. Those of what is to be computed elsewhere first go to `before`.
    fn plan(&mut self, roots: &[Array], before: &mut Vec<Planned>) -> Result<Planned> {
        let walk = loop {
            let walked = Walk::over(roots, None, self, &mut fork::lock(&WALK))?;
            match walked {
                Walked::Done(walk) => break walk,
                Walked::Wait(event) => event.wait()?,
                Walked::Elsewhere(array) => self.at_once(&[array], before)?,
            }
        };
        let device = roots.first().map_or(Device::CPU, |r| r.node.stream.device);
        let (plan, reused) = walk.plan(device, walk.leaves.iter().flat_map(Leaf::values))?;
        let nowhere = Buffer::constant([]);
        let mut values = plan.output_strides().map(|strides| Value {
            buffer: nowhere.clone(),
            layout: Layout { strides: strides.into(), offset: 0 },
            range: None,
        });
        for node in walk.outputs() {
            // What nobody has an array of goes when it is computed.
            let is_kept = |output| node.is_traced() || node.arrays_of(output) != Some(0);
            let own = (0..node.avals.len() as u32).zip(&mut values);
            let own = own.map(|(output, value)| is_kept(output).then_some(value)).collect();
            self.0.insert(Arc::as_ptr(node) as usize, (node.clone(), own));
        }
        drop(values);
        Ok((plan, reused))
    }
}
