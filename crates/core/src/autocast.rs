//! Mixed precision as a property of recording: inside of a scope, operations cast their operands as
//! a policy says.
//!
//! The casts are recorded like any other, so derivatives, batches, compiled functions and plans know
//! nothing of policies. An operation is cast as a whole: what it is made of is recorded as it is, and
//! so are derivatives and rules for batches, whose dtypes follow from what was recorded before.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::record::{cast, transpose};

/// What a policy does to the floats that an operation is given. `float64` and numbers that are no
/// floats stay as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Category {
    /// They are cast to the policy's dtype: products, where matrix units pay. Of norms and embeddings, which compute
    /// in `float32` inside or not at all, the result is cast instead: that is half the bytes, and no digit of what
    /// they are given is lost.
    Lower,
    /// They are cast to `float32`: sums and exponentials, whose range or digits a half type lacks.
    Float32,
    /// They are cast to the widest of them.
    Widest,
    /// They stay.
    Unchanged,
}

/// The operations that ask for a policy, what a new one says of them, and what kind of layers is made of them, if
/// one is. It is PyTorch's choice, by the names that the operations have here, but for norms and embeddings.
const OPS: &[(Category, &str, &[&str])] = &[
    (
        Category::Lower,
        "convolutions",
        &[
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_general",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
        ],
    ),
    (
        Category::Lower,
        "products",
        &[
            "addmm",
            "block_masked_mm",
            "einsum",
            "gather_mm",
            "gather_qmm",
            "matmul",
            "quantized_matmul",
            "segmented_mm",
        ],
    ),
    (Category::Lower, "attention", &["scaled_dot_product_attention"]),
    (Category::Lower, "normalisations", &["group_norm", "layer_norm", "normalize", "rms_norm"]),
    (Category::Unchanged, "normalisations", &["batch_norm"]),
    (Category::Lower, "embeddings", &["embedding"]),
    (Category::Lower, "activations", &["prelu"]),
    (Category::Float32, "activations", &["softmax"]),
    (Category::Unchanged, "activations", &["erf", "sigmoid", "tanh"]),
    (
        Category::Float32,
        "losses",
        &["cross_entropy", "log_softmax", "logsumexp", "mse_loss", "nll_loss"],
    ),
    (
        Category::Float32,
        "",
        &[
            "arccos",
            "arcsin",
            "binary_cross_entropy",
            "cosh",
            "cosine_similarity_loss",
            "cumprod",
            "cumsum",
            "erfinv",
            "exp",
            "expm1",
            "gaussian_nll_loss",
            "hinge_loss",
            "huber_loss",
            "kl_div_loss",
            "l1_loss",
            "log",
            "log10",
            "log1p",
            "log2",
            "log_cosh_loss",
            "logaddexp",
            "logcumsumexp",
            "margin_ranking_loss",
            "norm",
            "power",
            "prod",
            "rsqrt",
            "sinh",
            "smooth_l1_loss",
            "sum",
            "tan",
            "triplet_loss",
        ],
    ),
    (Category::Widest, "", &["addcdiv", "addcmul", "arctan2", "concatenate", "cross", "stack"]),
    (
        Category::Unchanged,
        "",
        &[
            "arccosh", "arcsinh", "arctan", "arctanh", "cos", "erfc", "mean", "sin", "sqrt", "std",
            "var",
        ],
    ),
];

/// The operations that layers of a kind are made of, by the kind, those first that a half type pays most for.
pub fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for &(_, group, ops) in OPS.iter().filter(|(_, group, _)| !group.is_empty()) {
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, all)) => all.extend(ops),
            None => groups.push((group, ops.to_vec())),
        }
    }
    groups
}

/// Which dtype each operation computes in.
///
/// # Example
/// ```
/// use cupola::{DType, amp::{Category, Policy}};
/// let policy = Policy::new(DType::BF16)?.with("tanh", Category::Float32)?;
/// assert!(policy.ops(Category::Lower).any(|op| op == "matmul"));
/// assert_eq!(policy.category("tanh"), Category::Float32);
/// assert!(policy.with("tahn", Category::Lower).is_err());
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    dtype: DType,
    categories: BTreeMap<&'static str, Category>,
}

impl Policy {
    /// The default lists, with `dtype` for what is cheap in it: a half type, or `float32`, which
    /// brings halves back up.
    ///
    /// # Errors
    /// Where `dtype` is none of `float16`, `bfloat16` and `float32`.
    pub fn new(dtype: DType) -> Result<Policy> {
        if !is_cast(dtype) {
            return Err(Error::dtype(
                "autocast",
                format!("takes float16, bfloat16 or float32, not {dtype}"),
            ));
        }
        let all = OPS.iter().flat_map(|(category, _, ops)| ops.iter().map(|&op| (op, *category)));
        Ok(Policy { dtype, categories: all.collect() })
    }

    /// With another category for the operation of this name.
    ///
    /// # Errors
    /// Where no operation of this name asks for a policy.
    pub fn with(mut self, op: &str, category: Category) -> Result<Policy> {
        match self.categories.get_mut(op) {
            Some(entry) => *entry = category,
            None => {
                let known: Vec<&str> = self.categories.keys().copied().collect();
                return Err(Error::argument(
                    "autocast",
                    format!("no operation {op:?} is cast; there are {}", known.join(", ")),
                ));
            }
        }
        Ok(self)
    }

    /// What the operations of [`Category::Lower`] compute in.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// What is done to the operands of the operation of this name.
    pub fn category(&self, op: &str) -> Category {
        self.categories.get(op).copied().unwrap_or(Category::Unchanged)
    }

    /// The operations of a category, by name.
    pub fn ops(&self, category: Category) -> impl Iterator<Item = &'static str> {
        self.categories.iter().filter(move |(_, c)| **c == category).map(|(op, _)| *op)
    }

    /// All of it as words, which two policies share where they are equal: what `compile` traces
    /// anew for.
    fn words(&self) -> impl Iterator<Item = u64> {
        [self.dtype as u64].into_iter().chain(self.categories.values().map(|&c| c as u64))
    }

    /// What `op` computes in, given `inputs`; `None` where they stay.
    fn dtype_for(&self, op: &str, inputs: &[&Array]) -> Option<DType> {
        match self.category(op) {
            Category::Lower => Some(self.dtype),
            Category::Float32 => Some(DType::F32),
            Category::Widest => {
                let floats = inputs.iter().map(|x| x.dtype()).filter(|&dtype| is_cast(dtype));
                floats.reduce(DType::promote)
            }
            Category::Unchanged => None,
        }
    }
}

/// Whether a policy casts arrays of this dtype.
fn is_cast(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32)
}

/// What a thread records under.
#[derive(Clone, Debug, Default)]
enum State {
    /// What the process does.
    #[default]
    Common,
    /// A scope of its own; `None` records what is written.
    Own(Option<Arc<Policy>>),
}

thread_local! {
    static STATE: RefCell<State> = const { RefCell::new(State::Common) };
    /// The operations that asked for a policy, where somebody wants to know.
    static ASKED: RefCell<Option<BTreeSet<&'static str>>> = const { RefCell::new(None) };
}

/// The policy of threads outside of a scope, and whether there is one: nobody takes the lock for
/// nothing.
static COMMON: RwLock<Option<Arc<Policy>>> = RwLock::new(None);
static HAS_COMMON: AtomicBool = AtomicBool::new(false);

/// Puts back what a thread recorded under.
struct Restore(State);

impl Drop for Restore {
    fn drop(&mut self) {
        STATE.set(std::mem::take(&mut self.0));
    }
}

fn with_state<R>(state: State, f: impl FnOnce() -> R) -> R {
    let _restore = Restore(STATE.replace(state));
    f()
}

/// The policy that this thread records under.
fn current() -> Option<Arc<Policy>> {
    STATE.with_borrow(|state| match state {
        State::Own(policy) => policy.clone(),
        State::Common if HAS_COMMON.load(Ordering::Relaxed) => {
            COMMON.read().ok().and_then(|policy| policy.clone())
        }
        State::Common => None,
    })
}

/// Whether this thread records under a policy.
pub(crate) fn is_on() -> bool {
    STATE.with_borrow(|state| match state {
        State::Own(policy) => policy.is_some(),
        State::Common => HAS_COMMON.load(Ordering::Relaxed),
    })
}

/// Runs `f`, whose operations are recorded as `policy` says; `None` records them as they are
/// written, as outside of any scope. Scopes nest: the innermost holds.
///
/// A scope is the thread's. Derivatives of what was recorded in it follow its dtypes wherever they
/// are taken, and [`compile`](crate::transform::compile) traces a function anew for another policy.
///
/// # Example
/// ```
/// use cupola::{DType, amp, ops};
/// let x = ops::ones([2, 2], DType::F32)?;
/// let policy = amp::Policy::new(DType::BF16)?;
/// amp::autocast(Some(&policy), || {
///     let y = ops::matmul(&x, &x)?;
///     assert_eq!(y.dtype(), DType::BF16);
///     assert_eq!(ops::softmax(&y, -1)?.dtype(), DType::F32);
///     amp::autocast(None, || {
///         assert_eq!(ops::matmul(&x, &x)?.dtype(), DType::F32);
///         Ok::<(), cupola::Error>(())
///     })
/// })?;
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn autocast<R>(policy: Option<&Policy>, f: impl FnOnce() -> R) -> R {
    with_state(State::Own(policy.cloned().map(Arc::new)), f)
}

/// The policy that this thread records under now, if any.
pub fn policy() -> Option<Policy> {
    current().map(|policy| (*policy).clone())
}

/// Runs `f`, and gives the names of the operations that this thread recorded under a policy meanwhile: also those
/// that it leaves as they are.
///
/// # Example
/// ```
/// use cupola::{DType, amp, ops};
/// let (x, policy) = (ops::ones([2, 2], DType::F32)?, amp::Policy::new(DType::BF16)?);
/// let (y, asked) = amp::asked(|| amp::autocast(Some(&policy), || ops::tanh(&ops::matmul(&x, &x)?)));
/// assert_eq!((y?.dtype(), asked.into_iter().collect()), (DType::BF16, vec!["matmul", "tanh"]));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn asked<R>(f: impl FnOnce() -> R) -> (R, BTreeSet<&'static str>) {
    let outer = ASKED.replace(Some(BTreeSet::new()));
    let result = f();
    let own = ASKED.replace(outer).unwrap_or_default();
    ASKED.with_borrow_mut(|outer| outer.iter_mut().for_each(|outer| outer.extend(&own)));
    (result, own)
}

/// Makes `policy` that of every thread outside of an [`autocast`] scope; `None` ends it.
///
/// # Example
/// ```
/// use cupola::{DType, amp, ops};
/// amp::set_global_policy(Some(amp::Policy::new(DType::BF16)?));
/// let x = ops::ones([2, 2], DType::F32)?;
/// assert_eq!(ops::matmul(&x, &x)?.dtype(), DType::BF16);
/// amp::set_global_policy(None);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn set_global_policy(policy: Option<Policy>) {
    let mut common = COMMON.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    HAS_COMMON.store(policy.is_some(), Ordering::Relaxed);
    *common = policy.map(Arc::new);
}

/// The policy that [`set_global_policy`] set.
pub fn global_policy() -> Option<Policy> {
    COMMON.read().ok().and_then(|policy| policy.as_deref().cloned())
}

/// Records `op` on what the policy makes of `inputs`, and what `f` records for it as it is written.
///
/// # Errors
/// Where `f` fails.
pub fn apply<const N: usize, R>(
    op: &'static str,
    inputs: [&Array; N],
    f: impl FnOnce([&Array; N]) -> Result<R>,
) -> Result<R> {
    apply_all(op, &inputs, |inputs| f(std::array::from_fn(|i| inputs[i])))
}

/// [`apply`] for any number of inputs.
pub(crate) fn apply_all<R>(
    op: &'static str,
    inputs: &[&Array],
    f: impl FnOnce(&[&Array]) -> Result<R>,
) -> Result<R> {
    let Some(policy) = current() else { return f(inputs) };
    note(op);
    let Some(dtype) = policy.dtype_for(op, inputs) else { return f(inputs) };
    let held = inputs.iter().map(|x| cast_to(x, dtype)).collect::<Result<Vec<Array>>>()?;
    suspended(|| f(&held.iter().collect::<Vec<_>>()))
}

/// [`apply`] for a norm: `x` stays as it is in [`Category::Lower`], and the result is cast.
pub(crate) fn apply_norm(
    op: &'static str,
    x: &Array,
    f: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Array> {
    match current() {
        Some(policy) if policy.category(op) == Category::Lower => {
            note(op);
            cast_to(&suspended(|| f(x))?, policy.dtype)
        }
        _ => apply(op, [x], |[x]| f(x)),
    }
}

/// What the policy makes of an operand of `op` that a layer adds afterwards, as the bias of a
/// convolution.
///
/// # Errors
/// None but those of a cast.
pub fn operand(op: &str, x: &Array) -> Result<Array> {
    let dtype = current().and_then(|policy| policy.dtype_for(op, &[x]));
    dtype.map_or_else(|| Ok(x.clone()), |dtype| cast_to(x, dtype))
}

/// What the policy makes of `x`, the result of `op` where a layer computes that by itself: the vectors
/// that an `embedding` has taken, the affine part of a norm.
///
/// # Errors
/// None but those of a cast.
///
/// # Example
/// ```
/// use cupola::{DType, amp, ops};
/// let (x, policy) = (ops::ones([2], DType::F32)?, amp::Policy::new(DType::BF16)?);
/// let cast = amp::autocast(Some(&policy), || amp::result("embedding", &x))?;
/// assert_eq!(cast.dtype(), DType::BF16);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn result(op: &str, x: &Array) -> Result<Array> {
    let Some(policy) = current() else { return Ok(x.clone()) };
    if let Some((&op, _)) = policy.categories.get_key_value(op) {
        note(op);
    }
    operand(op, x)
}

/// Keeps the name for [`asked`].
fn note(op: &'static str) {
    ASKED.with_borrow_mut(|asked| asked.iter_mut().for_each(|asked| _ = asked.insert(op)));
}

/// `x` in another dtype. Of weights that a layer transposes while a transform looks on, it is the weights as they lie
/// that are cast: the copy is written in the order in which it is read, and shared by whoever reads it in another order.
fn cast_to(x: &Array, dtype: DType) -> Result<Array> {
    if !is_cast(x.dtype()) || x.dtype() == dtype {
        return Ok(x.clone());
    }
    match x.untransposed() {
        Some((lying, axes)) => transpose(&cast(&lying, dtype)?, axes),
        None => cast(x, dtype),
    }
}

/// Runs `f`, whose operations are recorded as they are written: rules and bodies.
pub(crate) fn suspended<R>(f: impl FnOnce() -> R) -> R {
    with_state(State::Own(None), f)
}

/// The policy at one moment, for what is recorded later in the name of that moment.
#[derive(Clone)]
pub(crate) struct Moment(Option<Arc<Policy>>);

impl Moment {
    pub fn now() -> Moment {
        Moment(current())
    }

    pub fn again<R>(&self, f: impl FnOnce() -> R) -> R {
        with_state(State::Own(self.0.clone()), f)
    }
}

/// How often it was said that functions are recorded in another way now, by what their arguments do not show.
static RENEWED: AtomicU64 = AtomicU64::new(0);

/// [`crate::binding::renew_traces`].
pub(crate) fn renew() {
    RENEWED.fetch_add(1, Ordering::Relaxed);
}

/// The policy of this thread as words, for the signature of a trace.
pub(crate) fn signature(words: &mut Vec<u64>) {
    words.push(RENEWED.load(Ordering::Relaxed));
    match current() {
        Some(policy) => words.extend(policy.words()),
        None => words.push(u64::MAX),
    }
}

/// A scope of this thread that somebody else ends: [`crate::binding::replace_thread_policy`].
#[derive(Debug)]
pub struct Former(State);

/// [`crate::binding::replace_thread_policy`].
pub(crate) fn replace_own(policy: Option<Policy>) -> Former {
    Former(STATE.replace(State::Own(policy.map(Arc::new))))
}

/// [`crate::binding::restore_thread_policy`].
pub(crate) fn restore_own(former: Former) {
    STATE.set(former.0);
}
