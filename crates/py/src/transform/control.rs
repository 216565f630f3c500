//! `scan`, `while_loop`, `fori_loop`, `cond` and `switch`.

use std::cell::RefCell;

use cupola::transform::{self, Branch, LoopOptions};
use cupola::{Array, DType, ops};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyTuple};

use crate::array::PyArray;
use crate::error::{carried, raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::operand::scalar;
use crate::read;
use crate::tree::{self, Template};

/// A tree of arrays, numbers and `None`, with the names of its arrays.
struct Leaves {
    template: Template,
    names: Vec<String>,
    arrays: Vec<Array>,
}

impl Leaves {
    /// Takes `tree`, which is `what` of `op`, apart. Numbers become arrays.
    fn of(op: &str, what: &str, tree: &Bound<'_, PyAny>) -> PyResult<Leaves> {
        let py = tree.py();
        let whole = tree::map_leaves(tree, &mut |leaf| match scalar(leaf)? {
            Some(_) => Ok(Bound::new(py, PyArray::new(read::array(leaf, None)?))?.into_any()),
            None if leaf.is_none() || leaf.is_instance_of::<PyArray>() => Ok(leaf.clone()),
            None => Err(wrong_type(format!(
                "[{op}] {what} should contain only arrays and numbers, not a {}",
                leaf.get_type().name()?
            ))),
        })?;
        let mut arrays = Vec::new();
        let template = Template::of(&whole, &mut arrays)?;
        let mut names = Vec::with_capacity(arrays.len());
        template.names(py, what, &mut names)?;
        Ok(Leaves { template, names, arrays })
    }

    /// These arrays, which a body gave, in the order of `like`, which it took; an error where they are others.
    fn like(self, op: &str, like: &Leaves) -> PyResult<Vec<Array>> {
        self.of_names(op, &like.names, &like.arrays)
    }

    /// These arrays in the order of `names`; an error where they are others than those `taken`.
    fn of_names(mut self, op: &str, names: &[String], taken: &[Array]) -> PyResult<Vec<Array>> {
        let mut found = Vec::with_capacity(self.arrays.len());
        let known = |name: &String| self.names.contains(name);
        if self.names.len() != names.len() || !names.iter().all(known) {
            let all = |names: &[String]| names.join(", ");
            return Err(wrong_value(format!(
                "[{op}] an iteration takes [{}] and gives [{}]",
                all(names),
                all(&self.names)
            )));
        }
        for (name, before) in names.iter().zip(taken) {
            let Some(at) = self.names.iter().position(|own| own == name) else { continue };
            self.names.swap_remove(at);
            let after = self.arrays.swap_remove(at);
            if after.aval() != before.aval() {
                return Err(wrong_value(format!(
                    "[{op}] {name} is {} before an iteration and {} after it",
                    before.aval(),
                    after.aval()
                )));
            }
            found.push(after);
        }
        Ok(found)
    }

    fn fill<'py>(&self, py: Python<'py>, arrays: &[Array]) -> PyResult<Bound<'py, PyAny>> {
        self.template.fill(py, &mut arrays.iter())
    }
}

/// A loop over the elements of arrays along their first axis. `f(carry, x)` takes what is carried and a tree of
/// elements of `xs`, and gives what is carried on and a tree of elements of `ys`, or `None`; the result is what is
/// carried in the end, and `ys`. Trees are of arrays and numbers in lists, tuples and dicts.
///
/// `f` is called once, and the plan of what it records runs for each element: neither recording nor planning takes
/// longer for more of them. Gradients are loops from the end to the start.
#[doc = docs!(scan)]
#[pyfunction]
#[pyo3(signature = (f, init, xs = None, length = None, reverse = false))]
pub fn scan<'py>(
    py: Python<'py>,
    f: &Bound<'py, PyAny>,
    init: &Bound<'py, PyAny>,
    xs: Option<&Bound<'py, PyAny>>,
    length: Option<usize>,
    reverse: bool,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let init = Leaves::of("scan", "carry", init)?;
    let none = py.None().into_bound(py);
    let xs = Leaves::of("scan", "xs", xs.unwrap_or(&none))?;
    let mut outputs = None;
    let call = |before: &[Array], x: &[Array]| {
        let result = (|| -> PyResult<(Vec<Array>, Vec<Array>)> {
            let result = f.call1((init.fill(py, before)?, xs.fill(py, x)?))?;
            let Ok((next, y)) = result.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
                return Err(wrong_value(
                    "[scan] f should give a pair: what is carried, and y or None",
                ));
            };
            let next = Leaves::of("scan", "carry", &next)?.like("scan", &init)?;
            let y = Leaves::of("scan", "y", &y)?;
            let arrays = y.arrays.clone();
            outputs = Some(y);
            Ok((next, arrays))
        })();
        result.map_err(carried)
    };
    let options = LoopOptions { length, reverse };
    let (last, ys) = transform::scan(call, &init.arrays, &xs.arrays, options).map_err(raise)?;
    let ys = match outputs {
        Some(outputs) => outputs.fill(py, &ys)?,
        None => none,
    };
    Ok((init.fill(py, &last)?, ys))
}

/// A function of a tree that gives a tree like it.
fn next<'py>(
    op: &'static str,
    init: &Leaves,
    call: impl FnOnce(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    py: Python<'py>,
    before: &[Array],
) -> cupola::Result<Vec<Array>> {
    let result = (|| Leaves::of(op, "carry", &call(init.fill(py, before)?)?)?.like(op, init))();
    result.map_err(carried)
}

/// A loop that runs `body_fun` as long as `cond_fun`, of what is carried, is true. Both are called once; what is
/// carried is a tree of arrays and numbers, and keeps its shapes and dtypes. The device is waited for in each
/// iteration. It runs at most `max_iterations` times where that is given, and has gradients then: what these need is
/// kept for so many iterations. Without it there is none, since nobody knows how often it runs.
#[doc = docs!(while_loop)]
#[pyfunction]
#[pyo3(signature = (cond_fun, body_fun, init_val, *, max_iterations = None))]
pub fn while_loop<'py>(
    py: Python<'py>,
    cond_fun: &Bound<'py, PyAny>,
    body_fun: &Bound<'py, PyAny>,
    init_val: &Bound<'py, PyAny>,
    max_iterations: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let init = Leaves::of("while_loop", "carry", init_val)?;
    let count = |most: i64| {
        usize::try_from(most).map_err(|_| {
            wrong_value(format!("[while_loop] max_iterations is {most}; it cannot be negative."))
        })
    };
    let max_iterations = max_iterations.map(count).transpose()?;
    let holds = |now: &[Array]| {
        let answer = (|| read::array(&cond_fun.call1((init.fill(py, now)?,))?, None))();
        answer.map_err(carried)
    };
    let body = |now: &[Array]| next("while_loop", &init, |tree| body_fun.call1((tree,)), py, now);
    let last = transform::while_loop(holds, body, &init.arrays, max_iterations).map_err(raise)?;
    init.fill(py, &last)
}

/// A loop from `lower` to below `upper`: `body_fun(i, carry)` gives what is carried on. Where both are Python's
/// numbers it is a `scan`, and has gradients; where one is an array it is a `while_loop`.
#[doc = docs!(fori_loop)]
#[pyfunction]
pub fn fori_loop<'py>(
    py: Python<'py>,
    lower: &Bound<'py, PyAny>,
    upper: &Bound<'py, PyAny>,
    body_fun: &Bound<'py, PyAny>,
    init_val: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let init = Leaves::of("fori_loop", "carry", init_val)?;
    let array = |i: &Array| Bound::new(py, PyArray::new(i.clone()));
    let body = |i: &Array, now: &[Array]| {
        next("fori_loop", &init, |tree| body_fun.call1((array(i)?, tree)), py, now)
    };
    let is_known = |bound: &Bound<'_, PyAny>| scalar(bound).is_ok_and(|s| s.is_some());
    if is_known(lower) && is_known(upper) {
        let (lower, upper) = (lower.extract::<i64>()?, upper.extract::<i64>()?);
        let last = transform::fori_loop(lower, upper, body, &init.arrays).map_err(raise)?;
        return init.fill(py, &last);
    }
    let bound = |bound: &Bound<'_, PyAny>| -> PyResult<Array> {
        let array = read::array(bound, None)?;
        match array.rank() == 0 && array.dtype().is_integer() {
            true => ops::astype(&array, DType::I32).map_err(raise),
            false => Err(wrong_value(format!(
                "[fori_loop] a bound should be one integer without axes, it is {}",
                array.aval()
            ))),
        }
    };
    let (lower, upper) = (bound(lower)?, bound(upper)?);
    let mut arrays = vec![lower];
    arrays.extend(init.arrays.iter().cloned());
    let holds = |now: &[Array]| ops::less(&now[0], &upper);
    let step = |now: &[Array]| {
        let mut after = vec![ops::add(&now[0], 1)?];
        after.extend(body(&now[0], &now[1..])?);
        Ok(after)
    };
    let last = transform::while_loop(holds, step, &arrays, None).map_err(raise)?;
    init.fill(py, &last[1..])
}

/// Everything up to each element along `axis`, put together by an associative function: of a, b, c it gives a,
/// fn(a, b), fn(fn(a, b), c). `fn` takes two trees like `elems`, with several elements along the axis, and works on all
/// at once; it is called about 2·log2 n times. Where `reverse` is true what comes behind is put together.
#[doc = docs!(associative_scan)]
#[pyfunction]
#[pyo3(signature = (r#fn, elems, reverse = false, axis = 0))]
pub fn associative_scan<'py>(
    py: Python<'py>,
    r#fn: &Bound<'py, PyAny>,
    elems: &Bound<'py, PyAny>,
    reverse: bool,
    axis: isize,
) -> PyResult<Bound<'py, PyAny>> {
    let op = "associative_scan";
    let elems = Leaves::of(op, "elems", elems)?;
    let call = |a: &[Array], b: &[Array]| {
        let pair = || r#fn.call1((elems.fill(py, a)?, elems.fill(py, b)?));
        let made = (|| Leaves::of(op, "elems", &pair()?)?.of_names(op, &elems.names, b))();
        made.map_err(carried)
    };
    let all = transform::associative_scan(call, &elems.arrays, axis, reverse).map_err(raise)?;
    elems.fill(py, &all)
}

/// The branches of a choice, each of which is called once, and the tree that they give.
fn choose<'py>(
    py: Python<'py>,
    op: &'static str,
    branches: &[Bound<'py, PyAny>],
    operands: &Bound<'py, PyTuple>,
    record: impl FnOnce(Vec<Branch<'_>>, &[Array]) -> cupola::Result<Vec<Array>>,
) -> PyResult<Bound<'py, PyAny>> {
    let operands = Leaves::of(op, "operand", operands.as_any())?;
    let given: RefCell<Option<Leaves>> = RefCell::new(None);
    let branch = |f: &Bound<'py, PyAny>| -> Branch<'_> {
        let (f, operands, given) = (f.clone(), &operands, &given);
        Box::new(move |now: &[Array]| {
            let call = || -> PyResult<Vec<Array>> {
                let arguments = operands.fill(py, now)?.cast_into::<PyTuple>()?;
                let own = Leaves::of(op, "result", &f.call1(arguments)?)?;
                let arrays = own.arrays.clone();
                let mut given = given.borrow_mut();
                match &*given {
                    None => *given = Some(own),
                    Some(first) if first.names == own.names => {}
                    Some(first) => {
                        return Err(wrong_value(format!(
                            "[{op}] a branch gives [{}], another [{}]",
                            first.names.join(", "),
                            own.names.join(", ")
                        )));
                    }
                }
                Ok(arrays)
            };
            call().map_err(carried)
        })
    };
    let all: Vec<Branch<'_>> = branches.iter().map(branch).collect();
    let found = record(all, &operands.arrays).map_err(raise)?;
    match &*given.borrow() {
        Some(given) => given.fill(py, &found),
        None => Ok(py.None().into_bound(py)),
    }
}

/// What `true_fun` or `false_fun` gives of the operands, as one bool says. Both are called once, and one is computed;
/// the device is waited for. Gradients go through the branch that was taken. Under `vmap`, with a bool for each
/// example, both are computed.
#[doc = docs!(cond)]
#[pyfunction]
#[pyo3(signature = (pred, true_fun, false_fun, *operands))]
pub fn cond<'py>(
    py: Python<'py>,
    pred: &Bound<'py, PyAny>,
    true_fun: Bound<'py, PyAny>,
    false_fun: Bound<'py, PyAny>,
    operands: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let pred = read::array(pred, None)?;
    choose(py, "cond", &[false_fun, true_fun], operands, |branches, operands| {
        let mut branches = branches.into_iter();
        match (branches.next(), branches.next()) {
            (Some(no), Some(yes)) => transform::cond(&pred, yes, no, operands),
            _ => unreachable!("two branches were given"),
        }
    })
}

/// What the branch of this number gives of the operands; a number outside of the branches counts as the nearest one.
/// All are called once, and one is computed, as `cond` says.
#[doc = docs!(switch)]
#[pyfunction]
#[pyo3(signature = (index, branches, *operands))]
pub fn switch<'py>(
    py: Python<'py>,
    index: &Bound<'py, PyAny>,
    branches: Vec<Bound<'py, PyAny>>,
    operands: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let index = read::array(index, None)?;
    choose(py, "switch", &branches, operands, |branches, operands| {
        transform::switch(&index, branches, operands)
    })
}
