//! Kernels of one's own.
//!
//! A [`Kernel`] is the body of a function that every thread of a grid runs, in a small common C-like language
//! that all devices run, or in a device's own. `docs/kernels.md` describes the language.
//!
//! ```
//! use cupola::kernel::{Kernel, Launch};
//! use cupola::{Array, DType};
//!
//! let double = Kernel::new(
//!     "double",
//!     ["x"],
//!     ["y"],
//!     "uint i = thread_position_in_grid.x; y[i] = 2 * x[i];",
//! )?;
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
//! let launch = Launch::new([3, 1, 1], [3, 1, 1]).output([3], DType::F32);
//! let y = double.call(&[&x], &launch)?;
//! assert_eq!(y[0].to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//! # Ok::<(), cupola::Error>(())
//! ```

mod op;
mod stored;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use cupola_core::prim::{Batched, Custom, Held};
use cupola_core::{Array, Aval, DType, Error, Result, Shape, transform};
pub use cupola_kernel::Parameter;
use cupola_kernel::{Program, Scalar, Signature, is_identifier, is_name};

use op::Called;

/// Cotangents of the inputs, from inputs, outputs and cotangents of the outputs.
pub type Vjp = Arc<dyn Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + Send + Sync>;

/// Tangents of the outputs, from inputs, outputs and tangents of the inputs.
pub type Jvp = Vjp;

/// The outputs over a batch, from the inputs and the size of the batch.
pub type Vmap = Arc<dyn Fn(&[Batched], usize) -> Result<Vec<Batched>> + Send + Sync>;

/// A kernel of one's own.
///
/// ```
/// use cupola::kernel::{Kernel, Launch};
/// use cupola::{Array, DType, ops, transform::grad};
///
/// // Softshrink, whose derivative is a kernel, too.
/// let launch = Launch::new([4, 1, 1], [4, 1, 1]).output([4], DType::F32);
/// let back = Kernel::new(
///     "softshrink_vjp",
///     ["x", "dy"],
///     ["dx"],
///     "uint i = thread_position_in_grid.x; dx[i] = abs(x[i]) > 0.5f ? dy[i] : 0;",
/// )?;
/// let own = launch.clone();
/// let softshrink = Kernel::new(
///     "softshrink",
///     ["x"],
///     ["y"],
///     "uint i = thread_position_in_grid.x;
///      y[i] = x[i] > 0.5f ? x[i] - 0.5f : (x[i] < -0.5f ? x[i] + 0.5f : 0);",
/// )?
/// .with_vjp(move |x, _, dy| back.call(&[&x[0], &dy[0]], &own));
/// let x = Array::from_slice(&[-2.0f32, -0.25, 0.25, 1.0], [4])?;
/// let y = softshrink.call(&[&x], &launch)?;
/// assert_eq!(y[0].to_vec::<f32>()?, [-1.5, 0.0, 0.0, 0.5]);
/// let loss = move |x: &[Array]| {
///     let y = softshrink.call(&[&x[0]], &launch)?;
///     Ok(vec![ops::sum(&(&y[0] * &y[0]), (), false)?])
/// };
/// assert_eq!(grad(loss, &[0])(&[x])?[0].to_vec::<f32>()?, [-3.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone)]
pub struct Kernel {
    name: &'static str,
    inputs: Vec<String>,
    outputs: Vec<String>,
    sources: Sources,
    takes_strides: bool,
    has_atomic_outputs: bool,
    vjp: Option<Vjp>,
    held: Option<Held>,
    jvp: Option<Jvp>,
    vmap: Option<Vmap>,
    known: Known,
}

/// The common source as it was read for what it was called with.
type Known = Arc<Mutex<HashMap<Signature, Arc<Program>>>>;

/// How many readings of a source are kept.
const KEPT: usize = 64;

/// What a kernel's body is written in.
#[derive(Clone, Default, Debug, PartialEq, Eq, Hash)]
struct Sources {
    header: String,
    common: Option<String>,
    wgsl: Option<String>,
    cuda: Option<String>,
    metal: Option<String>,
}

impl Sources {
    /// Whether an array or what a template says may have this name; the common language has words of its own.
    fn allow(&self, name: &str) -> bool {
        if self.common.is_some() { is_name(name) } else { is_identifier(name) }
    }
}

/// How a kernel is called: its grid, its outputs and what its template's names stand for.
#[derive(Clone, Debug)]
pub struct Launch {
    grid: [u32; 3],
    threadgroup: [u32; 3],
    outputs: Vec<Aval>,
    template: Vec<(String, Parameter)>,
    init: Option<f64>,
}

impl Launch {
    /// A launch with so many threads along each axis, in groups of so many.
    pub fn new(grid: [u32; 3], threadgroup: [u32; 3]) -> Self {
        Launch { grid, threadgroup, outputs: Vec::new(), template: Vec::new(), init: None }
    }

    /// The same with no outputs yet.
    #[must_use]
    pub fn without_outputs(&self) -> Self {
        Launch { outputs: Vec::new(), ..self.clone() }
    }

    /// The same over a batch: each axis 0 of an output is the batch's, and the grid has its third axis for every
    /// element.
    ///
    /// # Errors
    /// Where the grid has too many threads.
    pub fn over(&self, batch: usize) -> Result<Self> {
        let many = u32::try_from(batch).ok().and_then(|batch| self.grid[2].checked_mul(batch));
        let Some(depth) = many else {
            let detail = format!("a grid of {:?} for {batch} elements is too large", self.grid);
            return Err(Error::argument("vmap", detail));
        };
        let over = |aval: &Aval| {
            let sizes = [&[batch], &aval.shape[..]].concat();
            Aval::new(sizes, aval.dtype)
        };
        let outputs = self.outputs.iter().map(over).collect();
        let grid = [self.grid[0], self.grid[1], depth.max(1)];
        Ok(Launch { grid, outputs, ..self.clone() })
    }

    /// Adds an output.
    #[must_use]
    pub fn output(mut self, shape: impl Into<Shape>, dtype: DType) -> Self {
        self.outputs.push(Aval::new(shape, dtype));
        self
    }

    /// Says which dtype a name of the source stands for.
    ///
    /// # Errors
    /// If kernels have no elements of that dtype.
    pub fn dtype(mut self, name: &str, dtype: DType) -> Result<Self> {
        self.template.push((name.to_owned(), Parameter::Type(scalar(dtype)?)));
        Ok(self)
    }

    /// Says which number, or which truth value, a name of the source stands for.
    #[must_use]
    pub fn parameter(mut self, name: &str, parameter: Parameter) -> Self {
        self.template.push((name.to_owned(), parameter));
        self
    }

    /// Gives every element of the outputs a value before the kernel runs.
    #[must_use]
    pub fn init(mut self, value: f64) -> Self {
        self.init = Some(value);
        self
    }
}

/// The most threads of a group, on every device.
const GROUP: u64 = 1024;

impl Kernel {
    /// A kernel of the common language: the names of its inputs and outputs, and its body.
    ///
    /// # Errors
    /// If a name is not one of C's, or there twice.
    pub fn new<I: Into<String>, O: Into<String>>(
        name: &str,
        inputs: impl IntoIterator<Item = I>,
        outputs: impl IntoIterator<Item = O>,
        source: &str,
    ) -> Result<Kernel> {
        let sources = Sources { common: Some(source.into()), ..Sources::default() };
        Self::with(name, inputs, outputs, sources)
    }

    /// A kernel that has no source yet: see [`Kernel::wgsl`], [`Kernel::cuda`] and [`Kernel::metal`].
    ///
    /// # Errors
    /// As those of [`Kernel::new`].
    pub fn empty<I: Into<String>, O: Into<String>>(
        name: &str,
        inputs: impl IntoIterator<Item = I>,
        outputs: impl IntoIterator<Item = O>,
    ) -> Result<Kernel> {
        Self::with(name, inputs, outputs, Sources::default())
    }

    fn with<I: Into<String>, O: Into<String>>(
        name: &str,
        inputs: impl IntoIterator<Item = I>,
        outputs: impl IntoIterator<Item = O>,
        sources: Sources,
    ) -> Result<Kernel> {
        let name = kept(name);
        let inputs: Vec<String> = inputs.into_iter().map(Into::into).collect();
        let outputs: Vec<String> = outputs.into_iter().map(Into::into).collect();
        let mut known = BTreeSet::new();
        for own in inputs.iter().chain(&outputs) {
            if !sources.allow(own) {
                return Err(Error::argument(name, format!("'{own}' is no name of an array")));
            }
            if !known.insert(own) {
                return Err(Error::argument(name, format!("two arrays have the name '{own}'")));
            }
        }
        if outputs.is_empty() {
            return Err(Error::argument(name, "a kernel has at least one output"));
        }
        let (vjp, jvp, vmap, held) = (None, None, None, None);
        let (takes_strides, has_atomic_outputs) = (false, false);
        Ok(Kernel {
            name,
            inputs,
            outputs,
            sources,
            takes_strides,
            has_atomic_outputs,
            vjp,
            held,
            jvp,
            vmap,
            known: Known::default(),
        })
    }

    /// Gives functions and constants that stand before the body.
    #[must_use]
    pub fn header(mut self, text: &str) -> Self {
        self.known = Known::default();
        text.clone_into(&mut self.sources.header);
        self
    }

    /// Gives a body in WGSL, for devices through wgpu.
    #[must_use]
    pub fn wgsl(mut self, source: &str) -> Self {
        self.sources.wgsl = Some(source.to_owned());
        self
    }

    /// Gives a body in CUDA C++.
    #[must_use]
    pub fn cuda(mut self, source: &str) -> Self {
        self.sources.cuda = Some(source.to_owned());
        self
    }

    /// Gives a body in Metal's language. Where there is no common one and this is of the common language, too, every
    /// device runs it as such. What is more is kept and never compiled: devices through wgpu, those of Metal among
    /// them, take a body in WGSL or the common one.
    ///
    /// ```
    /// use cupola::kernel::{Kernel, Launch};
    /// use cupola::{Array, DType};
    ///
    /// let launch = Launch::new([2, 1, 1], [2, 1, 1]).output([2], DType::F32);
    /// let x = Array::from_slice(&[0.0f32, 1.0], [2])?;
    /// let more = Kernel::empty("sum", ["x"], ["y"])?
    ///     .metal("uint i = thread_position_in_grid.x; y[i] = simd_sum(x[i]);");
    /// let error = more.call(&[&x], &launch)?[0].eval().unwrap_err().to_string();
    /// assert!(error.contains("its source is in Metal's language, which the CPU does not run"));
    /// let common = Kernel::empty("double", ["x"], ["y"])?
    ///     .metal("uint i = thread_position_in_grid.x; y[i] = 2 * metal::abs(x[i]);");
    /// assert_eq!(common.call(&[&x], &launch)?[0].to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    #[must_use]
    pub fn metal(mut self, source: &str) -> Self {
        self.known = Known::default();
        self.sources.metal = Some(source.to_owned());
        self
    }

    /// Takes inputs as they lie, which `NAME_strides` says. Else they come in row-major order.
    #[must_use]
    pub fn takes_strides(mut self, takes: bool) -> Self {
        self.takes_strides = takes;
        self
    }

    /// Binds outputs as atomics, in a body of WGSL. The common language needs no word for it.
    #[must_use]
    pub fn atomic_outputs(mut self, atomic: bool) -> Self {
        self.has_atomic_outputs = atomic;
        self
    }

    /// Gives the cotangents of the inputs, from inputs, outputs and cotangents of the outputs.
    #[must_use]
    pub fn with_vjp(
        mut self,
        rule: impl Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    ) -> Self {
        self.vjp = Some(Arc::new(rule));
        self
    }

    /// Gives the tangents of the outputs, from inputs, outputs and tangents of the inputs.
    #[must_use]
    pub fn with_jvp(
        mut self,
        rule: impl Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    ) -> Self {
        self.jvp = Some(Arc::new(rule));
        self
    }

    /// Gives the outputs over a batch. Without it a batch calls the kernel for each of its elements.
    #[must_use]
    pub fn with_vmap(
        mut self,
        rule: impl Fn(&[Batched], usize) -> Result<Vec<Batched>> + Send + Sync + 'static,
    ) -> Self {
        self.vmap = Some(Arc::new(rule));
        self
    }

    /// Says what the rules hold, for the garbage collector of a binding.
    #[must_use]
    pub fn holding(mut self, held: Held) -> Self {
        self.held = Some(held);
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Records a call: an array for every output.
    ///
    /// # Errors
    /// If the arrays are not as many as the names, the grid or the threadgroup is none, or the source is not
    /// of the language, with its line.
    pub fn call(&self, inputs: &[&Array], launch: &Launch) -> Result<Vec<Array>> {
        let avals = inputs.iter().map(|x| x.aval().clone()).collect();
        let op = Arc::new(self.called(avals, launch)?);
        if self.vjp.is_none() && self.jvp.is_none() && self.vmap.is_none() {
            return Array::apply_multi(Custom(op), inputs);
        }
        let body = move |x: &[Array]| {
            Array::apply_multi(Custom(op.clone()), &x.iter().collect::<Vec<_>>())
        };
        let mut custom = transform::custom_function(body);
        if let Some(rule) = self.vjp.clone() {
            custom = custom.with_vjp(move |x, y, dy| rule(x, y, dy));
        }
        if let Some(rule) = self.jvp.clone() {
            custom = custom.with_jvp(move |x, y, dx| rule(x, y, dx));
        }
        if let Some(rule) = self.vmap.clone() {
            custom = custom.with_vmap(move |inputs, size| rule(inputs, size));
        }
        if let Some(held) = self.held.clone() {
            custom = custom.holding(held);
        }
        let inputs: Vec<Array> = inputs.iter().map(|&x| x.clone()).collect();
        custom.call(&inputs)
    }

    /// The common source, if there is one, read for these arrays.
    fn read(&self, signature: &Signature) -> Result<Option<Arc<Program>>> {
        let Sources { common, metal, .. } = &self.sources;
        let Some(source) = common.as_ref().or(metal.as_ref()) else { return Ok(None) };
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = known().get(signature) {
            return Ok(Some(program.clone()));
        }
        let program = match cupola_kernel::parse(source, &self.sources.header, signature) {
            Ok(program) => Arc::new(program),
            // Metal's language is more than the common one.
            Err(_) if common.is_none() => return Ok(None),
            Err(error) => return Err(Error::argument(self.name, error.to_string())),
        };
        let mut known = known();
        if known.len() == KEPT {
            known.clear();
        }
        known.insert(signature.clone(), program.clone());
        Ok(Some(program))
    }

    fn called(&self, inputs: Vec<Aval>, launch: &Launch) -> Result<Called> {
        let counts = [
            ("inputs", self.inputs.len(), inputs.len()),
            ("outputs", self.outputs.len(), launch.outputs.len()),
        ];
        for (what, wanted, found) in counts {
            if wanted != found {
                let detail = format!("it has {wanted} {what}, the call gives {found}");
                return Err(Error::argument(self.name, detail));
            }
        }
        let mut known: BTreeSet<&String> = self.inputs.iter().chain(&self.outputs).collect();
        for (own, _) in &launch.template {
            if !self.sources.allow(own) {
                let detail = format!("'{own}' is no name for what a template says");
                return Err(Error::argument(self.name, detail));
            }
            if !known.insert(own) {
                let detail = format!("the template says what '{own}' is, which is there already");
                return Err(Error::argument(self.name, detail));
            }
        }
        // Of nothing there is nothing to compute, and as many threads as elements are none.
        let is_empty = launch.outputs.iter().all(|aval| aval.shape.size() == 0);
        for (what, sizes) in [("grid", launch.grid), ("threadgroup", launch.threadgroup)] {
            if sizes.contains(&0) && !is_empty {
                let detail = format!("a {what} of {sizes:?} has no threads");
                return Err(Error::argument(self.name, detail));
            }
        }
        let threads =
            |sizes: [u32; 3]| sizes.iter().fold(1u64, |all, &size| all.saturating_mul(size.into()));
        if threads(launch.grid) > u32::MAX.into() {
            let detail = format!("a grid of {:?} has more than 2³² threads", launch.grid);
            return Err(Error::argument(self.name, detail));
        }
        let (grid, mut threadgroup) = (launch.grid.map(|n| n.max(1)), launch.threadgroup);
        threadgroup.iter_mut().zip(grid).for_each(|(own, all)| *own = (*own).clamp(1, all));
        if threads(threadgroup) > GROUP {
            let detail = format!("a threadgroup of {threadgroup:?} has more than {GROUP} threads");
            return Err(Error::argument(self.name, detail));
        }
        Called::new(self, inputs, Launch { grid, threadgroup, ..launch.clone() })
    }
}

/// The element of a kernel's array of that dtype.
pub fn scalar(dtype: DType) -> Result<Scalar> {
    Ok(match dtype {
        DType::Bool => Scalar::Bool,
        DType::U8 => Scalar::U8,
        DType::I8 => Scalar::I8,
        DType::U16 => Scalar::U16,
        DType::I16 => Scalar::I16,
        DType::U32 => Scalar::U32,
        DType::I32 => Scalar::I32,
        DType::U64 => Scalar::U64,
        DType::I64 => Scalar::I64,
        DType::F16 => Scalar::F16,
        DType::BF16 => Scalar::BF16,
        DType::F32 => Scalar::F32,
        DType::F64 => Scalar::F64,
        DType::C32 | DType::C64 => {
            return Err(Error::dtype(
                "kernel",
                "kernels have no complex numbers: take their parts",
            ));
        }
    })
}

/// A name that lives as long as the program, as errors and plans need it: each is kept once.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}
