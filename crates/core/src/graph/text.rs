//! A graph as text, for people and for snapshots.

use std::fmt;

use super::{Graph, Ref};
use crate::prim::Op;

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.node)?;
        if self.output > 0 {
            write!(f, ".{}", self.output)?;
        }
        Ok(())
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, node) in self.nodes.iter().enumerate() {
            write!(f, "%{index}:")?;
            for aval in &node.outputs {
                write!(f, " {aval}")?;
            }
            write!(f, " = {}", node.op.name())?;
            for r in &node.inputs {
                write!(f, " {r}")?;
            }
            match &node.op {
                Op::Constant(c) => write!(f, " {}", c.value)?,
                Op::Input(_) | Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select(_) => {}
                Op::Cast(c) => write!(f, " {}", c.to)?,
                other => write!(f, " {other:?}")?,
            }
            writeln!(f)?;
        }
        write!(f, "return")?;
        for r in &self.outputs {
            write!(f, " {r}")?;
        }
        writeln!(f)
    }
}
