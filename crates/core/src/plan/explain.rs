//! What a plan does, as text.

use std::fmt;

use super::Plan;
use crate::array::Array;
use crate::backend::Kernel;
use crate::error::Result;
use crate::prim::Elementwise;

/// The plan that evaluating `arrays` would run, a line a step.
///
/// # Errors
/// As evaluation, but nothing runs.
pub fn explain(arrays: &[Array]) -> Result<String> {
    Ok(crate::eval::plan_of(arrays)?.to_string())
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan on {}, {} steps", self.device, self.steps.len())?;
        for step in &self.steps {
            let names = |accesses: &[super::Access]| {
                accesses.iter().map(|a| format!("#{}", a.slot)).collect::<Vec<_>>().join(" ")
            };
            write!(f, "{} = ", names(&step.outputs))?;
            match &step.prepared.segment.kernel {
                Kernel::Map(body) if body.code.is_empty() => write!(f, "copy {}", body.shape)?,
                Kernel::Map(body) => write!(f, "map {} of {}", body.shape, listing(body))?,
                Kernel::Reduce { body, kind, axes } => {
                    write!(f, "{} over {axes:?} of {} {}", kind.name(), body.shape, listing(body))?;
                }
                Kernel::Rows { body, folds } => {
                    let kinds: Vec<_> = folds.iter().map(|fold| fold.kind.name()).collect();
                    let kinds = kinds.join(", ");
                    write!(f, "rows of {} with {kinds} and {}", body.shape, listing(body))?;
                }
                Kernel::Op(op) => write!(f, "{}", op.name())?,
                Kernel::Composite(composite) => write!(f, "{}", composite.name())?,
                Kernel::Custom(custom) => write!(f, "{}", custom.0.name())?,
            }
            if let Some(epilogue) = &step.prepared.segment.epilogue {
                write!(f, " then {}", listing(&epilogue.body))?;
            }
            write!(f, " ({})", names(&step.inputs))?;
            if !step.aliases.is_empty() {
                write!(f, " in place where it can")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn listing(body: &crate::backend::Body) -> String {
    let name = |op: &Elementwise| match op {
        Elementwise::Cast(cast) => format!("{} {}", op.name(), cast.to),
        Elementwise::Unary(_)
        | Elementwise::Binary(_)
        | Elementwise::Compare(_)
        | Elementwise::Select(_) => op.name().to_owned(),
    };
    body.code.iter().map(|i| name(&i.op)).collect::<Vec<_>>().join(", ")
}
