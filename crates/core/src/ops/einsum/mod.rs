//! Sums of products in Einstein's notation.

mod path;

pub use path::einsum_path;

use super::dot::matmul;
use super::movement::{permute, squeeze_axes};
use super::operand::cast;
use super::{diagonal, multiply, reshape, sum};
use crate::array::Array;
use crate::autocast;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Dims, Shape};
use path::Path;

/// An axis' label: a letter, or a place counted from the end of an ellipsis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Label {
    Letter(char),
    Dot(usize),
}

/// An operand with a label for each axis; no label twice.
struct Term {
    array: Array,
    labels: Vec<Label>,
}

/// The sum of products that `subscripts` say: letters name axes, operands are parted by commas, and
/// letters that are not behind `->` are summed over.
///
/// # Shapes
/// Without `->` the result has the letters that come up once, in alphabetical order. A letter twice
/// in one operand takes the diagonal. `...` stands for axes that broadcast.
///
/// # Dtypes
/// All operands promote to one dtype, in which every product of the way is.
///
/// # Errors
/// Where the subscripts do not fit the operands.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(ops::einsum("ij,jk->ik", &[&x, &x])?.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
/// assert_eq!(ops::einsum("ii", &[&x])?.item::<f32>()?, 5.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn einsum(subscripts: &str, operands: &[&Array]) -> Result<Array> {
    autocast::apply_all("einsum", operands, |operands| summed(subscripts, operands))
}

/// [`einsum`] in the dtypes of its operands.
fn summed(subscripts: &str, operands: &[&Array]) -> Result<Array> {
    let bad = bad(subscripts);
    let read = Subscripts::read(subscripts, operands)?;
    let mut terms = Vec::with_capacity(operands.len());
    let dtype = operands.iter().map(|operand| operand.dtype()).reduce(DType::promote);
    for (labels, operand) in read.listed.iter().zip(operands) {
        // A product of narrow integers would wrap before it meets a wide one.
        let array = cast(operand, dtype.unwrap_or(operand.dtype()))?;
        let term = Term { array, labels: labels.clone() };
        terms.push(take_diagonals(term, &bad)?);
    }
    let named = terms.iter().map(|term| (&term.labels[..], &term.array.shape()[..]));
    check_sizes(named, &bad)?;
    let output = &read.output;
    for step in Path::greedy(&read, operands).steps {
        let [i, j] = step[..] else { continue };
        let (right, left) = (terms.remove(j), terms.remove(i));
        let needed = |label: &Label| {
            output.contains(label) || terms.iter().any(|t| t.labels.contains(label))
        };
        let product = contract(left, &right, needed)?;
        terms.push(product);
    }
    let Some(last) = terms.pop() else {
        return Err(bad("no operands".into()));
    };
    let last = sum_out(last, |label| output.contains(label))?;
    let place = |label: &Label| last.labels.iter().position(|l| l == label);
    permute(&last.array, output.iter().filter_map(place).collect())
}

/// An error about `subscripts`.
fn bad(subscripts: &str) -> impl Fn(String) -> Error + '_ {
    move |detail| Error::argument("einsum", format!("'{subscripts}': {detail}"))
}

/// Subscripts that fit their operands.
struct Subscripts {
    /// The labels of each operand.
    listed: Vec<Vec<Label>>,
    output: Vec<Label>,
}

impl Subscripts {
    fn read(subscripts: &str, operands: &[&Array]) -> Result<Subscripts> {
        let bad = bad(subscripts);
        let compact: String = subscripts.chars().filter(|c| !c.is_whitespace()).collect();
        let (inputs, output) = match compact.split_once("->") {
            Some((inputs, output)) => (inputs, Some(output)),
            None => (&compact[..], None),
        };
        let inputs: Vec<&str> = inputs.split(',').collect();
        if inputs.len() != operands.len() || operands.is_empty() {
            return Err(bad(format!("{} terms for {} operands", inputs.len(), operands.len())));
        }
        let mut listed: Vec<Vec<Label>> = Vec::new();
        for (text, operand) in inputs.iter().zip(operands) {
            let labels = parse(text, operand.rank())
                .map_err(|detail| bad(format!("{detail} (operand {})", operand.aval())))?;
            listed.push(labels);
        }
        let dots = listed.iter().flatten().filter_map(|l| match l {
            Label::Dot(place) => Some(place + 1),
            Label::Letter(_) => None,
        });
        let dots = dots.max().unwrap_or(0);
        let output = match output {
            Some(text) => {
                let mut rank = text.chars().filter(|&c| c != '.').count();
                if text.contains('.') {
                    rank += dots;
                }
                parse(text, rank).map_err(&bad)?
            }
            None => implicit_output(&listed, dots),
        };
        let known = |label: &Label| listed.iter().any(|labels| labels.contains(label));
        let repeats = (1..output.len()).any(|i| output[..i].contains(&output[i]));
        if repeats || !output.iter().all(known) {
            return Err(bad("the output repeats a letter, or has one that no operand has".into()));
        }
        Ok(Subscripts { listed, output })
    }

    /// Checks that the sizes of the operands meet.
    fn expect_sizes(&self, subscripts: &str, operands: &[&Array]) -> Result<()> {
        let shapes = operands.iter().map(|operand| &operand.shape()[..]);
        let labels = self.listed.iter().map(|labels| &labels[..]);
        check_sizes(labels.zip(shapes), &bad(subscripts))
    }
}

/// The labels that `text` gives to an operand of `rank` axes.
fn parse(text: &str, rank: usize) -> Result<Vec<Label>, String> {
    let (head, tail) = match text.split_once("...") {
        Some((head, tail)) => (head, Some(tail)),
        None => (text, None),
    };
    let mut labels = Vec::new();
    let letters = |text: &str, labels: &mut Vec<Label>| -> Result<(), String> {
        for c in text.chars() {
            if !c.is_ascii_alphabetic() {
                return Err(format!("'{c}' is not a letter"));
            }
            labels.push(Label::Letter(c));
        }
        Ok(())
    };
    letters(head, &mut labels)?;
    if let Some(tail) = tail {
        let named = head.len() + tail.len();
        let count = rank.checked_sub(named).ok_or(format!("'{text}' names too many axes"))?;
        labels.extend((0..count).rev().map(Label::Dot));
        letters(tail, &mut labels)?;
    }
    if labels.len() != rank {
        return Err(format!("'{text}' names {} axes of {rank}", labels.len()));
    }
    Ok(labels)
}

/// What an output that is not said has: the ellipsis, then what comes up once.
fn implicit_output(listed: &[Vec<Label>], dots: usize) -> Vec<Label> {
    let all: Vec<Label> = listed.iter().flatten().copied().collect();
    let mut letters: Vec<char> = all
        .iter()
        .filter_map(|l| match l {
            Label::Letter(c) if all.iter().filter(|&o| o == l).count() == 1 => Some(*c),
            Label::Letter(_) | Label::Dot(_) => None,
        })
        .collect();
    letters.sort_unstable();
    (0..dots).rev().map(Label::Dot).chain(letters.into_iter().map(Label::Letter)).collect()
}

/// The diagonal over each letter that an operand has twice.
fn take_diagonals(mut term: Term, bad: &impl Fn(String) -> Error) -> Result<Term> {
    while let Some((i, j)) = repeated(&term.labels) {
        let (a, b) = (term.array.shape()[i], term.array.shape()[j]);
        if a != b {
            return Err(bad(format!("a diagonal of {} has sizes {a} and {b}", term.array.aval())));
        }
        let label = term.labels[i];
        term.array = diagonal(&term.array, 0, i as isize, j as isize)?;
        term.labels.remove(j);
        term.labels.remove(i);
        term.labels.push(label);
    }
    Ok(term)
}

fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    (0..labels.len()).find_map(|j| (0..j).find(|&i| labels[i] == labels[j]).map(|i| (i, j)))
}

/// Checks that each label has one size wherever it comes up, or 1.
fn check_sizes<'a>(
    terms: impl Iterator<Item = (&'a [Label], &'a [usize])>,
    bad: &impl Fn(String) -> Error,
) -> Result<()> {
    let mut sizes: Vec<(Label, usize)> = Vec::new();
    for (labels, shape) in terms {
        for (&label, &size) in labels.iter().zip(shape) {
            match sizes.iter_mut().find(|(l, _)| *l == label) {
                None => sizes.push((label, size)),
                Some((_, known)) if *known == size || size == 1 => {}
                Some((_, known)) if *known == 1 => *known = size,
                Some((_, known)) => {
                    return Err(bad(format!("an axis is of size {known} and of size {size}")));
                }
            }
        }
    }
    Ok(())
}

/// The term summed over the labels that are not needed.
fn sum_out(term: Term, needed: impl Fn(&Label) -> bool) -> Result<Term> {
    let gone: Dims = (0..term.labels.len()).filter(|&i| !needed(&term.labels[i])).collect();
    if gone.is_empty() {
        return Ok(term);
    }
    let labels = term.labels.into_iter().filter(|l| needed(l)).collect();
    Ok(Term { array: sum(&term.array, &gone, false)?, labels })
}

/// The product of two terms, summed over the labels that are not needed: one matrix product, with
/// the labels of both that are needed as its batch.
fn contract(left: Term, right: &Term, needed: impl Fn(&Label) -> bool) -> Result<Term> {
    let right = Term { array: right.array.clone(), labels: right.labels.clone() };
    // An axis of size 1 only repeats: without it, both sizes of a shared label are the same.
    let left = drop_units(left, &right)?;
    let right = drop_units(right, &left)?;
    let left = sum_out(left, |l| needed(l) || right.labels.contains(l))?;
    let right = sum_out(right, |l| needed(l) || left.labels.contains(l))?;
    let shared = |l: &&Label| right.labels.contains(l);
    let batch: Vec<Label> =
        left.labels.iter().filter(|l| shared(l) && needed(l)).copied().collect();
    let inner: Vec<Label> =
        left.labels.iter().filter(|l| shared(l) && !needed(l)).copied().collect();
    let rows: Vec<Label> = left.labels.iter().filter(|l| !shared(l)).copied().collect();
    let columns: Vec<Label> =
        right.labels.iter().filter(|l| !left.labels.contains(l)).copied().collect();
    let labels: Vec<Label> = batch.iter().chain(&rows).chain(&columns).copied().collect();
    let sizes = |term: &Term, labels: &[Label]| -> Dims {
        let size = |l| term.labels.iter().position(|o| o == l).map(|i| term.array.shape()[i]);
        labels.iter().filter_map(size).collect()
    };
    let count = |sizes: &[usize]| sizes.iter().product::<usize>();
    let (batches, inners) = (sizes(&left, &batch), sizes(&left, &inner));
    let (heights, widths) = (sizes(&left, &rows), sizes(&right, &columns));
    let shape: Shape = batches.iter().chain(&heights).chain(&widths).copied().collect();
    let order = |term: &Term, groups: [&[Label]; 3]| -> Result<Array> {
        let place = |l| term.labels.iter().position(|o| o == l);
        permute(&term.array, groups.into_iter().flatten().filter_map(place).collect())
    };
    let a = order(&left, [&batch, &rows, &inner])?;
    let b = order(&right, [&batch, &inner, &columns])?;
    if inner.is_empty() {
        // Nothing is summed: an outer product, element by element.
        let high: Shape =
            batches.iter().chain(&heights).copied().chain(widths.iter().map(|_| 1)).collect();
        let low: Shape =
            batches.iter().copied().chain(heights.iter().map(|_| 1)).chain(widths).collect();
        return Ok(Term { array: multiply(&reshape(&a, high)?, &reshape(&b, low)?)?, labels });
    }
    let product = matmul(
        &reshape(&a, [count(&batches), count(&heights), count(&inners)])?,
        &reshape(&b, [count(&batches), count(&inners), count(&widths)])?,
    )?;
    Ok(Term { array: reshape(&product, shape)?, labels })
}

/// The term without its axes of size 1 whose label is longer in the other term.
fn drop_units(term: Term, other: &Term) -> Result<Term> {
    let longer = |l: &Label| {
        let place = other.labels.iter().position(|o| o == l);
        place.is_some_and(|i| other.array.shape()[i] != 1)
    };
    let gone: Dims = (0..term.labels.len())
        .filter(|&i| term.array.shape()[i] == 1 && longer(&term.labels[i]))
        .collect();
    let kept = (0..term.labels.len()).filter(|i| !gone.contains(i));
    let labels = kept.map(|i| term.labels[i]).collect();
    Ok(Term { array: squeeze_axes(&term.array, gone)?, labels })
}
