//! What a classifier gives: the label and the probabilities.

use super::prelude::*;

/// The number of the best class, or its label where labels are numbers; and the probabilities. Labels
/// that are texts are beside the arrays: `Model::classes` has them.
fn classify(n: &Node<'_>) -> Outcome {
    let probabilities = ops::flatten(n.x("probabilities")?, 0, -1)?;
    let best = ops::astype(&ops::argmax(&probabilities, 0, false)?, DType::I64)?;
    let classes = n.value("classes")?;
    let count = match classes {
        Value::Texts(labels) => labels.len(),
        Value::Tensor(labels) => labels.array.size(),
        other => return Err(Fault::invalid(format!("the classes are {}", other.kind()))),
    };
    if count != probabilities.size() {
        let have = probabilities.size();
        return Err(Fault::invalid(format!("{count} classes for {have} probabilities")));
    }
    let label = match classes {
        Value::Tensor(labels) => ops::take(&labels.array, &best, 0)?,
        _ => best,
    };
    Ok(vec![label.into(), probabilities.into()])
}

pub const OPS: &[Entry] = &[("classify", classify)];
