//! What was recorded as a drawing: text in the DOT language of Graphviz.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::trace::{Handle, handle, tape_where};
use crate::array::Array;
use crate::prim::Op;

/// The drawing of all that was recorded for `outputs` and is not computed: a box an operation, a circle
/// an array. Arrays that `names` lists have these names, others letters.
///
/// # Example
/// ```
/// use cupola::{Array, graph::to_dot, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// let y = ops::exp(&x)?;
/// let text = to_dot(&[y.clone()], &[("x".into(), x), ("y".into(), y)]);
/// assert!(text.starts_with("digraph {\n{ rank=source; \"x\"; }\n{ 0 [label =\"exp\""));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn to_dot(outputs: &[Array], names: &[(String, Array)]) -> String {
    // A constant is a number that is there.
    let is_leaf = |a: &Array| a.is_ready() || matches!(a.node.op, Op::Constant(_));
    let all: Vec<Array> =
        outputs.iter().cloned().chain(names.iter().map(|(_, array)| array.clone())).collect();
    let tape = tape_where(&all, |a| !is_leaf(a));
    let used: HashSet<Handle> =
        tape.iter().flat_map(|(_, inputs)| inputs.iter().map(handle)).collect();
    let mut drawing = Drawing::default();
    for (name, array) in names {
        drawing.names.insert(handle(array), quoted(name));
    }
    for (index, (array, inputs)) in tape.iter().enumerate() {
        for input in inputs.iter().filter(|input| is_leaf(input)) {
            drawing.circle("rank=source; ", handle(input));
        }
        let op = array.node.op.name();
        let _ = writeln!(drawing.text, "{{ {index} [label ={}, shape=rectangle]; }}", quoted(op));
        for input in inputs {
            let name = drawing.name(handle(input));
            let _ = writeln!(drawing.text, "{name} -> {index}");
        }
        for output in 0..array.node.avals.len() as u32 {
            let made = (handle(array).0, output);
            let rank = if used.contains(&made) { "" } else { "rank=sink; " };
            drawing.circle(rank, made);
            let name = drawing.name(made);
            let _ = writeln!(drawing.text, "{index} -> {name}");
        }
    }
    // What was there already, and nothing reads.
    for array in all.iter().filter(|array| is_leaf(array)) {
        drawing.circle("rank=source; ", handle(array));
    }
    format!("digraph {{\n{}}}\n", drawing.text)
}

/// The text so far, and the names of the arrays in it.
#[derive(Default)]
struct Drawing {
    text: String,
    names: HashMap<Handle, String>,
    drawn: HashSet<Handle>,
    letters: usize,
}

impl Drawing {
    /// The name of an array: A, B, … Z, AA, … where it has none.
    fn name(&mut self, of: Handle) -> String {
        let letters = &mut self.letters;
        let next = || {
            let (mut number, mut text) = (*letters + 1, Vec::new());
            *letters += 1;
            while number > 0 {
                text.push(b'A' + ((number - 1) % 26) as u8);
                number = (number - 1) / 26;
            }
            let text: String = text.iter().rev().map(|&letter| char::from(letter)).collect();
            quoted(&text)
        };
        self.names.entry(of).or_insert_with(next).clone()
    }

    fn circle(&mut self, rank: &str, of: Handle) {
        if self.drawn.insert(of) {
            let name = self.name(of);
            let _ = writeln!(self.text, "{{ {rank}{name}; }}");
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
