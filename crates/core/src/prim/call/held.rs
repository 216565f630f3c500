//! Calls without rules, and what is held by rules.
//!
//! Only derivatives and batches ask for rules. What is merely computed goes without them, and so do plans: rules
//! may hold whatever a program put into them.

use std::sync::Arc;

use super::{Call, Held};
use crate::array::Array;
use crate::graph::Graph;
use crate::prim::Op;

impl Call {
    /// The same without rules, also within its body.
    pub(crate) fn plain(self: &Arc<Call>) -> Arc<Call> {
        let plain = self.plain.get_or_init(|| {
            let body = without_rules(&self.body);
            (body.is_some() || self.rules.is_some()).then(|| {
                Call::new(self.name, body.map_or_else(|| self.body.clone(), Arc::new), None)
            })
        });
        plain.as_ref().unwrap_or(self).clone()
    }

    /// What to record on these inputs: rules only where a transform may ask for them.
    pub(crate) fn for_inputs(self: &Arc<Call>, inputs: &[&Array]) -> Arc<Call> {
        let plain = self.plain();
        match !Arc::ptr_eq(&plain, self) && inputs.iter().any(|x| x.is_traced()) {
            true => self.clone(),
            false => plain,
        }
    }

    /// Shows what rules hold that nothing but this call leads to: its own, and those within its body.
    pub(crate) fn held(self: &Arc<Call>, visit: &mut dyn FnMut(&Held)) {
        if Arc::strong_count(self) > 1 {
            return;
        }
        let rules = self.rules.as_ref();
        if let Some(rules) = rules.filter(|rules| Arc::strong_count(rules) == 1)
            && let Some(held) = rules.held()
        {
            visit(held);
        }
        let own = 1 + usize::from(rules.is_some_and(|rules| rules.has_body()));
        if Arc::strong_count(&self.body) == own {
            let bodies = self.body.nodes.iter().flat_map(|node| node.op.bodies());
            bodies.for_each(|body| body.held(visit));
        }
    }
}

/// The same graph without rules; `None` where it has none.
fn without_rules(graph: &Graph) -> Option<Graph> {
    let has_rules = |op: &Op| op.bodies().into_iter().any(|body| !Arc::ptr_eq(&body.plain(), body));
    if !graph.nodes.iter().any(|node| has_rules(&node.op)) {
        return None;
    }
    let mut plain = graph.clone();
    for node in &mut plain.nodes {
        if let Op::Call(call) = &mut node.op {
            *call = call.plain();
        }
        if let Op::Control(control) = &mut node.op {
            *control = Arc::new(control.plain());
        }
    }
    Some(plain)
}
