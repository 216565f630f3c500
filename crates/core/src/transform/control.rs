//! Loops and branches whose bodies are functions. Each is called once, with arrays that have no values, and
//! becomes a graph that is planned once ([`Control`]).

use crate::array::scope::{Scope, ScopeGuard};
use crate::array::{Array, recording_body};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::generator;
use crate::graph::Graph;
use crate::ops;
use crate::prim::control::{Control, Scan, Traced, record_choice, record_while};
use crate::prim::{Op, record};
use crate::shape::{Aval, Shape};

/// How [`scan`] walks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopOptions {
    /// How many iterations there are; that of the sequences, where there are some.
    pub length: Option<usize>,
    /// From the last element to the first; false.
    pub reverse: bool,
}

/// A function that was called with arrays that have no values.
struct Called {
    scope: ScopeGuard,
    arguments: Vec<Array>,
    /// The state of the random generator before and after.
    key: Array,
    random: Array,
    outputs: Vec<Array>,
}

impl Called {
    /// Calls `f` with arguments of these avals. Random numbers that it draws come from a key that is an input.
    fn of(
        op: &'static str,
        arguments: Vec<Aval>,
        f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    ) -> Result<Called> {
        let scope = Scope::enter(op);
        let placeholder = |aval: Aval| Array::placeholder(aval, &scope.0);
        let arguments: Vec<Array> = arguments.into_iter().map(placeholder).collect();
        let key = Array::placeholder(generator::state().aval().clone(), &scope.0);
        let (outputs, random) =
            generator::with_state(key.clone(), || recording_body(|| f(&arguments)));
        Ok(Called { outputs: outputs?, scope, arguments, key, random })
    }

    fn draws(&self) -> bool {
        !self.random.same(&self.key)
    }

    /// The body whose first `inputs` arguments and `outputs` results come before the generator's state, if that
    /// is part of it.
    fn body(mut self, key: bool, inputs: usize, outputs: usize) -> Result<Traced> {
        if key {
            self.arguments.insert(inputs, self.key);
            self.outputs.insert(outputs, self.random);
        }
        let (graph, captures) = Graph::from_trace(&self.arguments, &self.outputs, &self.scope.0)?;
        Ok(Traced { graph, captures })
    }
}

fn avals(arrays: &[Array]) -> impl Iterator<Item = Aval> {
    arrays.iter().map(|array| array.aval().clone())
}

/// An iteration has to give what it takes.
fn same(op: &'static str, before: &[Array], after: &[Array]) -> Result<()> {
    if before.len() != after.len() {
        let (before, after) = (before.len(), after.len());
        return Err(Error::argument(
            op,
            format!("{before} arrays are carried, and an iteration gives {after}"),
        ));
    }
    let differs = |(before, after): &(&Array, &Array)| before.aval() != after.aval();
    match before.iter().zip(after).enumerate().find(|(_, pair)| differs(pair)) {
        None => Ok(()),
        Some((number, (before, after))) => Err(Error::shape(
            op,
            format!(
                "carried array {number} is {} before an iteration and {} after it",
                before.aval(),
                after.aval()
            ),
        )),
    }
}

/// A loop over the elements of sequences along their axis 0.
///
/// `f` takes what is carried and one element of each of `xs`, and gives what is carried on and an element of
/// each output sequence: of `([c0, c1], [x])` it makes `([c0', c1'], [y])`. The result is what is carried in the
/// end, and the output sequences. `f` is called once, and the plan of what it records runs for each element, so
/// neither recording nor planning takes longer for more of them.
///
/// Its derivatives are loops, too: the vjp runs from the end to the start, and keeps of each iteration what is
/// carried, and the results of products, reductions and other kernels. Under `vmap` the body is batched. What
/// `f` uses besides its arguments may be traced by any transform. Random numbers are others in each iteration.
///
/// # Errors
/// Where `f` fails or reads a value, where sequences have no axis 0 or differ in its size, where nothing says
/// how many iterations there are, and where what is carried changes its shape or dtype.
///
/// # Example
/// ```
/// use cupola::{Array, transform::scan};
/// // Fibonacci numbers, modulo what is given.
/// let one = Array::scalar(1i32);
/// let modulus = Array::from_slice(&[100i32, 100, 100, 100, 5, 5], [6])?;
/// let step = |c: &[Array], m: &[Array]| {
///     let next = cupola::ops::remainder(&(&c[0] + &c[1]), &m[0])?;
///     Ok((vec![c[1].clone(), next.clone()], vec![next]))
/// };
/// let (last, all) = scan(step, &[one.clone(), one], &[modulus], Default::default())?;
/// assert_eq!(all[0].to_vec::<i32>()?, [2, 3, 5, 8, 3, 1]);
/// assert_eq!(last[1].item::<i32>()?, 1);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn scan(
    f: impl FnOnce(&[Array], &[Array]) -> Result<(Vec<Array>, Vec<Array>)>,
    init: &[Array],
    xs: &[Array],
    options: LoopOptions,
) -> Result<(Vec<Array>, Vec<Array>)> {
    let LoopOptions { length: given, reverse } = options;
    let mut length = given;
    for (number, x) in xs.iter().enumerate() {
        let Some(&size) = x.aval().shape.first() else {
            let detail = format!("sequence {number} is {}: it has no axis 0", x.aval());
            return Err(Error::shape("scan", detail));
        };
        let known = *length.get_or_insert(size);
        if known != size {
            let who = if given.is_some() { "length is" } else { "others have" };
            return Err(Error::shape(
                "scan",
                format!("sequence {number} is {}: {size} elements, where {who} {known}", x.aval()),
            ));
        }
    }
    let Some(length) = length else {
        let detail = "there is no sequence and no length: how often does it run?";
        return Err(Error::argument("scan", detail));
    };
    let element = |x: &Array| Aval { shape: Shape::from(&x.aval().shape[1..]), dtype: x.dtype() };
    let arguments = avals(init).chain(xs.iter().map(element)).collect();
    let mut carries = init.len();
    let called = Called::of("scan", arguments, |given| {
        let (carried, elements) = given.split_at(carries);
        let (next, mut outputs) = f(carried, elements)?;
        same("scan", init, &next)?;
        let mut all = next;
        all.append(&mut outputs);
        Ok(all)
    })?;
    if called.outputs.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let draws = called.draws();
    let (body, captures) = called.body(draws, carries, carries)?.body();
    let random = draws.then(generator::state);
    carries += usize::from(draws);
    let scan = Scan { body, carries, sequences: xs.len(), length, reverse };
    let inputs: Vec<&Array> = init.iter().chain(&random).chain(xs).chain(&captures).collect();
    let mut outputs = Array::apply_multi(Op::from(Control::Scan(scan)), &inputs)?;
    let sequences = outputs.split_off(carries);
    if draws && let Some(state) = outputs.pop() {
        generator::set_state(state);
    }
    Ok((outputs, sequences))
}

/// A loop that runs `body` as long as `cond` is true of what is carried, and at most so often as `most` says.
///
/// Both are called once; `body` takes what is carried and gives what is carried on. A device is waited for in
/// each iteration, since the host has to know whether to go on: where the number of iterations is known,
/// [`fori_loop`] and [`scan`] are faster.
///
/// It has a jvp. It has a vjp where `most` is given: what the way back needs is kept for `most` iterations, so
/// memory and time grow with that number, also where the loop ends before. Without it a vjp is an error. Under
/// `vmap` it goes on until the condition holds for no element of the batch.
///
/// # Errors
/// Where a function fails or reads a value, where `cond` does not give one bool, nothing is carried, what is
/// carried changes its shape or dtype, or `most` is no `int32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::{grad, while_loop}};
/// // Newton's root, and its derivative.
/// let root = |a: &Array| -> cupola::Result<Array> {
///     let far = |x: &[Array]| ops::greater(&ops::abs(&(&x[0] * &x[0] - a))?, 1e-5);
///     let step = |x: &[Array]| Ok(vec![(&x[0] + a / &x[0]) / 2.0]);
///     Ok(while_loop(far, step, &[ops::ones_like(a)?], Some(20))?.remove(0))
/// };
/// let two = Array::scalar(2.0f32);
/// assert!((root(&two)?.item::<f32>()? - 2f32.sqrt()).abs() < 1e-4);
/// let slope = grad(|x: &[Array]| Ok(vec![root(&x[0])?]), &[0])(&[two])?[0].item::<f32>()?;
/// assert!((slope - 0.5 / 2f32.sqrt()).abs() < 1e-3);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn while_loop(
    cond: impl FnOnce(&[Array]) -> Result<Array>,
    body: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    init: &[Array],
    most: Option<usize>,
) -> Result<Vec<Array>> {
    let op = "while_loop";
    if init.is_empty() {
        return Err(Error::argument(op, "nothing is carried"));
    }
    let Some(number) = most else {
        return repeated(cond, body, init, None);
    };
    let Ok(limit) = i32::try_from(number) else {
        return Err(Error::argument(op, format!("{number} iterations are no int32")));
    };
    // The last of what is carried counts.
    let carries = init.len();
    let mut counted = init.to_vec();
    counted.push(Array::scalar(0i32));
    let holds = |now: &[Array]| {
        let answer = cond(&now[..carries])?;
        one_bool(&answer)?;
        ops::logical_and(&answer, &ops::less(&now[carries], limit)?)
    };
    let next = |now: &[Array]| {
        let mut next = body(&now[..carries])?;
        same(op, init, &next)?;
        next.push(ops::add(&now[carries], 1)?);
        Ok(next)
    };
    let mut outputs = repeated(holds, next, &counted, most)?;
    outputs.truncate(carries);
    Ok(outputs)
}

fn one_bool(answer: &Array) -> Result<()> {
    let aval = answer.aval();
    if aval.shape.rank() != 0 || aval.dtype != DType::Bool {
        let detail = format!("cond must give one bool without axes, it gives {aval}");
        return Err(Error::shape("while_loop", detail));
    }
    Ok(())
}

/// A loop whose condition sees to it that it runs at most so often as `most` says.
fn repeated(
    cond: impl FnOnce(&[Array]) -> Result<Array>,
    body: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    init: &[Array],
    most: Option<usize>,
) -> Result<Vec<Array>> {
    let holds = Called::of("while_loop", avals(init).collect(), |given| {
        let answer = cond(given)?;
        one_bool(&answer)?;
        Ok(vec![answer])
    })?;
    if holds.draws() {
        let detail = "cond draws random numbers: draw them in body, and carry them";
        return Err(Error::argument("while_loop", detail));
    }
    let next = Called::of("while_loop", avals(init).collect(), |given| {
        let next = body(given)?;
        same("while_loop", init, &next)?;
        Ok(next)
    })?;
    let draws = next.draws();
    let carries = init.len();
    let mut holds = holds;
    if draws {
        // The condition is given all that is carried.
        holds.arguments.push(holds.key.clone());
    }
    let (holds, next) = (holds.body(false, 0, 0)?, next.body(draws, carries, carries)?);
    let random = draws.then(generator::state);
    let inputs: Vec<Array> = init.iter().chain(&random).cloned().collect();
    let mut outputs = record_while(inputs.len(), most, holds, next, inputs)?;
    if draws && let Some(state) = outputs.pop() {
        generator::set_state(state);
    }
    Ok(outputs)
}

/// A loop of a known number of iterations: `body` takes the number of the iteration, from `lower` to below
/// `upper`, as an `int32`, and what is carried, and gives what is carried on. It is a [`scan`], so it has every
/// derivative.
///
/// # Errors
/// As [`scan`], and where the numbers of iterations are no `int32`.
///
/// # Example
/// ```
/// use cupola::{Array, transform::fori_loop};
/// let factorial = fori_loop(1, 6, |i, x| Ok(vec![&x[0] * i]), &[Array::scalar(1i32)])?;
/// assert_eq!(factorial[0].item::<i32>()?, 120);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fori_loop(
    lower: i64,
    upper: i64,
    body: impl FnOnce(&Array, &[Array]) -> Result<Vec<Array>>,
    init: &[Array],
) -> Result<Vec<Array>> {
    let length = upper.max(lower).saturating_sub(lower);
    let fits = i32::try_from(lower).is_ok() && i32::try_from(upper.saturating_sub(1)).is_ok();
    let Some(length) = usize::try_from(length).ok().filter(|&length| fits || length == 0) else {
        let detail = format!("iterations {lower} to {upper} are no int32");
        return Err(Error::argument("fori_loop", detail));
    };
    let counts = record::iota(Shape::from([length]), DType::I32, 0)?;
    let first = Array::constant(Scalar::Int(lower), Aval::new([], DType::I32));
    let step = |carried: &[Array], x: &[Array]| {
        let next = body(&ops::add(&x[0], &first)?, carried)?;
        Ok((next, Vec::new()))
    };
    Ok(scan(step, init, &[counts], LoopOptions::default())?.0)
}

/// What `if_true` or `if_false` gives of `operands`, as `predicate` says: one bool. Both are called once, and
/// one is computed.
///
/// A device is waited for, since the host has to know which. Where both are cheap [`where`](ops::select) is
/// faster. Derivatives go through the branch that was taken. Under `vmap` with a predicate for each element both
/// are computed, and each element takes its own.
///
/// # Errors
/// Where a function fails or reads a value, `predicate` is not one bool, or the two give other shapes or
/// dtypes.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::cond};
/// let x = Array::scalar(4.0f32);
/// let root = |x: &[Array]| Ok(vec![ops::sqrt(&x[0])?]);
/// let zero = |x: &[Array]| Ok(vec![ops::zeros_like(&x[0])?]);
/// let y = cond(&ops::greater(&x, 0)?, root, zero, &[x])?;
/// assert_eq!(y[0].item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cond(
    predicate: &Array,
    if_true: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    if_false: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    operands: &[Array],
) -> Result<Vec<Array>> {
    let aval = predicate.aval();
    if aval.shape.rank() != 0 || aval.dtype != DType::Bool {
        let detail = format!("the predicate must be one bool without axes, it is {aval}");
        return Err(Error::shape("cond", detail));
    }
    choose("cond", predicate, vec![Box::new(if_false), Box::new(if_true)], operands)
}

/// A function that may be what runs.
pub type Branch<'f> = Box<dyn FnOnce(&[Array]) -> Result<Vec<Array>> + 'f>;

/// What branch `index` gives of `operands`; an index outside of the branches counts as the nearest one. All are
/// called once, and one is computed, as [`cond`] says.
///
/// # Errors
/// Where a function fails or reads a value, there is no branch, `index` is not one integer, or branches give
/// other shapes or dtypes.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::{Branch, switch}};
/// let branches: Vec<Branch> = vec![
///     Box::new(|x| Ok(vec![ops::negative(&x[0])?])),
///     Box::new(|x| Ok(vec![ops::square(&x[0])?])),
/// ];
/// let y = switch(&Array::scalar(1i32), branches, &[Array::scalar(3.0f32)])?;
/// assert_eq!(y[0].item::<f32>()?, 9.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn switch(index: &Array, branches: Vec<Branch<'_>>, operands: &[Array]) -> Result<Vec<Array>> {
    let aval = index.aval();
    if aval.shape.rank() != 0 || !aval.dtype.is_integer() {
        let detail = format!("the index must be one integer without axes, it is {aval}");
        return Err(Error::shape("switch", detail));
    }
    choose("switch", index, branches, operands)
}

fn choose(
    op: &'static str,
    which: &Array,
    branches: Vec<Branch<'_>>,
    operands: &[Array],
) -> Result<Vec<Array>> {
    let called = branches.into_iter().map(|f| Called::of(op, avals(operands).collect(), f));
    let called = called.collect::<Result<Vec<_>>>()?;
    let Some(first) = called.first() else {
        return Err(Error::argument(op, "there is no branch"));
    };
    let given = |called: &Called| avals(&called.outputs).collect::<Vec<_>>();
    let own = given(first);
    for (number, other) in called.iter().enumerate().skip(1) {
        let other = given(other);
        if own == other {
            continue;
        }
        let name = |number: usize| match (op, number) {
            ("cond", 0) => "false".to_owned(),
            ("cond", _) => "true".to_owned(),
            (_, number) => number.to_string(),
        };
        return Err(Error::shape(
            op,
            format!("branch {} gives {own:?}, branch {} gives {other:?}", name(0), name(number)),
        ));
    }
    let (inputs, outputs) = (operands.len(), own.len());
    let draws = called.iter().any(Called::draws);
    let branches = called.into_iter().map(|called| called.body(draws, inputs, outputs));
    let branches = branches.collect::<Result<Vec<_>>>()?;
    let random = draws.then(generator::state);
    let operands = operands.iter().chain(&random).cloned().collect();
    let mut outputs = record_choice(which, branches, operands)?;
    if draws && let Some(state) = outputs.pop() {
        generator::set_state(state);
    }
    Ok(outputs)
}
