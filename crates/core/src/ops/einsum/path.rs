//! The order in which the operands of an einsum are contracted.

use super::{Label, Subscripts};
use crate::array::Array;
use crate::error::Result;

/// A contraction of several operands, two at a time.
pub(super) struct Path {
    /// Which operands each step takes out of the list; their product goes to its end.
    pub steps: Vec<Vec<usize>>,
    /// Multiplications and additions of all steps, and of one nest of loops over all labels.
    costs: [f64; 2],
    /// The most labels of a step, and all of them.
    depths: [usize; 2],
}

impl Path {
    /// The pair next that takes away most elements, of those that share a label if any do; of
    /// equal ones the cheapest, and then the first.
    pub fn greedy(subscripts: &Subscripts, operands: &[&Array]) -> Path {
        let sizes = Sizes::of(subscripts, operands);
        let output = &subscripts.output;
        let all = union(&subscripts.listed.iter().flatten().copied().collect::<Vec<_>>(), &[]);
        let naive = sizes.work(&all, output, operands.len());
        let mut terms: Vec<Vec<Label>> = subscripts.listed.iter().map(|t| union(t, &[])).collect();
        let mut path = Path { steps: Vec::new(), costs: [0.0, naive], depths: [0, all.len()] };
        if terms.len() <= 2 {
            path.steps.push((0..terms.len()).collect());
            (path.costs[0], path.depths[0]) = (naive, all.len());
            return path;
        }
        while terms.len() > 1 {
            let mut best: Option<(bool, f64, f64, [usize; 2])> = None;
            for i in 0..terms.len() {
                for j in i + 1..terms.len() {
                    let both = union(&terms[i], &terms[j]);
                    let kept = kept(&terms, [i, j], &both, output);
                    let apart = !terms[i].iter().any(|l| terms[j].contains(l));
                    let gone = sizes.count(&kept) - sizes.count(&terms[i]) - sizes.count(&terms[j]);
                    let found = (apart, gone, sizes.work(&both, &kept, 2), [i, j]);
                    if best
                        .is_none_or(|best| (found.0, found.1, found.2) < (best.0, best.1, best.2))
                    {
                        best = Some(found);
                    }
                }
            }
            let Some((_, _, work, [i, j])) = best else { break };
            let both = union(&terms[i], &terms[j]);
            let product = kept(&terms, [i, j], &both, output);
            terms.remove(j);
            terms.remove(i);
            terms.push(product);
            path.steps.push(vec![i, j]);
            path.costs[0] += work;
            path.depths[0] = path.depths[0].max(both.len());
        }
        path
    }

    fn report(&self, subscripts: &str) -> String {
        let ([cost, naive], [depth, all]) = (self.costs, self.depths);
        format!(
            "  Complete contraction:  {subscripts}\n         Naive scaling:  {all}\n     \
             Optimized scaling:  {depth}\n      Naive FLOP count:  {naive}\n  \
             Optimized FLOP count:  {cost}\n"
        )
    }
}

/// The labels of two terms, each once.
fn union(a: &[Label], b: &[Label]) -> Vec<Label> {
    let mut all = Vec::new();
    for label in a.iter().chain(b) {
        if !all.contains(label) {
            all.push(*label);
        }
    }
    all
}

/// The labels of a pair that the output or another term has.
fn kept(terms: &[Vec<Label>], pair: [usize; 2], both: &[Label], output: &[Label]) -> Vec<Label> {
    let needed = |l: &&Label| {
        let elsewhere = |(i, term): (usize, &Vec<Label>)| !pair.contains(&i) && term.contains(l);
        output.contains(l) || terms.iter().enumerate().any(elsewhere)
    };
    both.iter().filter(needed).copied().collect()
}

/// The size of each label.
struct Sizes(Vec<(Label, f64)>);

impl Sizes {
    fn of(subscripts: &Subscripts, operands: &[&Array]) -> Sizes {
        let mut sizes: Vec<(Label, f64)> = Vec::new();
        for (labels, operand) in subscripts.listed.iter().zip(operands) {
            for (&label, &size) in labels.iter().zip(operand.shape().iter()) {
                match sizes.iter_mut().find(|(known, _)| *known == label) {
                    Some((_, known)) => *known = known.max(size as f64),
                    None => sizes.push((label, size as f64)),
                }
            }
        }
        Sizes(sizes)
    }

    /// The elements of an array with these labels.
    fn count(&self, labels: &[Label]) -> f64 {
        let size = |l: &Label| self.0.iter().find(|(known, _)| known == l).map_or(1.0, |(_, s)| *s);
        labels.iter().map(size).product()
    }

    /// The operations of a product of `terms` arrays with these labels, of which `kept` remain.
    fn work(&self, labels: &[Label], kept: &[Label], terms: usize) -> f64 {
        let adds = labels.iter().any(|l| !kept.contains(l));
        let each = terms.saturating_sub(1).max(1) + usize::from(adds && terms > 1);
        self.count(labels) * each as f64
    }
}

/// The order in which [`einsum`](super::einsum) contracts its operands, and a report of what that
/// saves.
///
/// Each step lists the operands that it takes out of the list; their product goes to the end.
///
/// # Errors
/// Where the subscripts do not fit the operands.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let (x, y) = (ops::ones([10, 20], DType::F32)?, ops::ones([20, 30], DType::F32)?);
/// let z = ops::ones([30], DType::F32)?;
/// let (path, _) = ops::einsum_path("ij,jk,k->i", &[&x, &y, &z])?;
/// assert_eq!(path, [[1, 2], [0, 1]]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn einsum_path(subscripts: &str, operands: &[&Array]) -> Result<(Vec<Vec<usize>>, String)> {
    let read = Subscripts::read(subscripts, operands)?;
    read.expect_sizes(subscripts, operands)?;
    let path = Path::greedy(&read, operands);
    let report = path.report(subscripts);
    Ok((path.steps, report))
}
