//! A graph as text, for people and for snapshots.

use std::fmt;

use super::{Graph, Ref};
use crate::prim::{Elementwise, Op};

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
                Op::Elementwise(Elementwise::Cast(c)) => write!(f, " {}", c.to)?,
                Op::Input(_) | Op::Elementwise(_) => {}
                Op::Movement(p) => write!(f, " {p:?}")?,
                Op::Mark(p) => write!(f, " {p:?}")?,
                Op::Reduce(p) => write!(f, " {p:?}")?,
                Op::Kernel(p) => write!(f, " {p:?}")?,
                Op::Composite(p) => write!(f, " {p:?}")?,
                Op::Call(p) => write!(f, " {p:?}")?,
                Op::Control(p) => write!(f, " {p:?}")?,
                Op::Custom(p) => write!(f, " {p:?}")?,
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
