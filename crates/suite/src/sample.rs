//! A sample: parameters and inputs that reach a case of a primitive.

use cupola_core::prim::Op;
use cupola_core::{Aval, DType, Dims, Error, Shape};

use crate::host::Host;
use crate::number::Number;

/// An input of a sample.
pub struct Input {
    shape: Shape,
    /// Its dtype, by the one that the sample runs in.
    dtype: Box<dyn Fn(DType) -> DType>,
    value: Box<dyn Fn(usize) -> f64>,
}

/// How close a result has to be to the reference.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Accuracy {
    /// A few units in the last place, and more for sums.
    Usual,
    /// The same numbers.
    Exact,
    /// On the CPU so many units in the last place, and zeros have their sign; elsewhere as usual.
    Ulps(f64),
}

/// What a vjp is known to give.
pub struct Slopes {
    /// The cotangent of the output.
    pub seed: Vec<f64>,
    /// The cotangents of the float inputs.
    pub want: Vec<Vec<f64>>,
}

/// A primitive with inputs, for every dtype that it takes.
pub struct Sample {
    /// What tells it apart within its family.
    pub name: String,
    op: Box<dyn Fn(DType) -> Op>,
    inputs: Box<dyn Fn(DType) -> Vec<Host>>,
    /// Whether the op is differentiable at these inputs, with room for finite differences.
    pub smooth: bool,
    /// Whether it is of symmetric, or Hermitian, matrices, of which one triangle is read.
    pub hermitian: bool,
    /// How close the value has to be.
    pub accuracy: Accuracy,
    /// Whether only devices run it that make kernels at once.
    pub cheap_kernels: bool,
    /// What its elements are of those of the inputs of its shape, where that is known.
    pub formula: Option<fn(&[f64]) -> f64>,
    /// What its vjp is in float64, where that is known and differences are not.
    pub slopes: Option<Slopes>,
    /// The dtypes that it runs in, of those that the op takes.
    takes: Box<dyn Fn(DType) -> bool>,
}

impl Sample {
    /// `op`, by dtype, on these inputs.
    pub fn new(
        name: impl Into<String>,
        op: impl Fn(DType) -> Op + 'static,
        inputs: Vec<Input>,
    ) -> Self {
        Sample::of(name, op, |_| Vec::new()).on(inputs)
    }

    /// `op` on these inputs, both by dtype.
    pub fn of(
        name: impl Into<String>,
        op: impl Fn(DType) -> Op + 'static,
        inputs: impl Fn(DType) -> Vec<Host> + 'static,
    ) -> Self {
        Sample {
            name: name.into(),
            op: Box::new(op),
            inputs: Box::new(inputs),
            smooth: false,
            hermitian: false,
            accuracy: Accuracy::Usual,
            cheap_kernels: false,
            formula: None,
            slopes: None,
            takes: Box::new(|_| true),
        }
    }

    /// The same on these inputs.
    pub fn on(self, inputs: Vec<Input>) -> Self {
        let hosts = move |dtype| inputs.iter().enumerate().map(|(n, i)| i.host(n, dtype)).collect();
        Sample { inputs: Box::new(hosts), ..self }
    }

    /// The same under another name.
    pub fn named(self, name: String) -> Self {
        Sample { name, ..self }
    }

    /// The same, with derivatives.
    pub fn smooth(self) -> Self {
        Sample { smooth: true, ..self }
    }

    /// The same, of symmetric or Hermitian matrices.
    pub fn hermitian(self) -> Self {
        Sample { hermitian: true, ..self }
    }

    /// The same, whose value has to be so close.
    pub fn within(self, accuracy: Accuracy) -> Self {
        Sample { accuracy, ..self }
    }

    /// The same, one of many alike, or one about rules, that only devices run that make kernels at
    /// once.
    pub fn where_kernels_are_cheap(self) -> Self {
        Sample { cheap_kernels: true, ..self }
    }

    /// The same in float64, with the vjp of `seed`.
    pub fn slopes(self, seed: &[f64], want: &[&[f64]]) -> Self {
        let want = want.iter().map(|w| w.to_vec()).collect();
        let sample = self.only(|dtype| dtype == DType::F64).where_kernels_are_cheap();
        Sample { slopes: Some(Slopes { seed: seed.to_vec(), want }), ..sample }
    }

    /// The same, in some of the dtypes.
    pub fn only(self, takes: impl Fn(DType) -> bool + 'static) -> Self {
        let before = self.takes;
        Sample { takes: Box::new(move |dtype| before(dtype) && takes(dtype)), ..self }
    }

    /// The op's name; `None` where it takes no dtype.
    pub fn op_name(&self) -> Option<&'static str> {
        let dtype = DType::ALL.into_iter().find(|&dtype| (self.takes)(dtype))?;
        Some((self.op)(dtype).name())
    }

    /// The op and its inputs in `dtype`; `None` where the op does not take it.
    pub fn in_dtype(&self, dtype: DType) -> Option<(Op, Vec<Host>)> {
        if !(self.takes)(dtype) {
            return None;
        }
        let (op, inputs) = ((self.op)(dtype), (self.inputs)(dtype));
        let avals: Vec<&Aval> = inputs.iter().map(|h| &h.aval).collect();
        match op.infer(&avals) {
            // A composite whose body does not take the dtype has no output.
            Ok(outputs) => (!outputs.is_empty()).then_some((op, inputs)),
            Err(Error::DType { .. }) => None,
            // Any other error is a mistake in the sample, which the value check will show.
            Err(_) => Some((op, inputs)),
        }
    }
}

impl Input {
    /// Input `n` of a sample in `dtype`.
    pub fn host(&self, n: usize, dtype: DType) -> Host {
        let aval = Aval { shape: self.shape.clone(), dtype: (self.dtype)(dtype) };
        // What is written for signed numbers suits unsigned ones, too.
        let unsigned = aval.dtype.is_integer() && !aval.dtype.is_signed();
        let value = |i: usize| {
            let v = (self.value)(i);
            if unsigned { v.abs() } else { v }
        };
        let dtype = aval.dtype;
        Host::from_fn(aval, |i| Number::of(dtype, value(i), value(i + 7 * n + 3)))
    }
}

/// Numbers between −3 and 3 without ties nearby: a low-discrepancy walk, never near an integer.
pub fn spread(i: usize) -> f64 {
    let t = (i as f64 * 0.618_033_988_749_895 + 0.37).fract();
    let v = (t - 0.5) * 6.0;
    // Keep away from integers and halves, where rounding and comparisons change.
    let cell = (v * 2.0).floor();
    (cell + 0.2 + 0.6 * (v * 2.0 - cell)) / 2.0
}

/// Whole numbers from 0 to `below`, without an order.
pub fn whole(i: usize, below: usize, seed: usize) -> f64 {
    let mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = mixed.wrapping_add((seed as u64).wrapping_mul(0xd1b5_4a32_d192_ed03));
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed >> 33) % below as u64) as f64
}

/// An input of [`spread`] numbers.
pub fn input(shape: impl Into<Shape>) -> Input {
    from(shape, spread)
}

/// An input by place.
pub fn from(shape: impl Into<Shape>, value: impl Fn(usize) -> f64 + 'static) -> Input {
    of_dtype(shape, |dtype| dtype, value)
}

/// An input by place, in one dtype whatever the sample runs in.
pub fn fixed(
    shape: impl Into<Shape>,
    dtype: DType,
    value: impl Fn(usize) -> f64 + 'static,
) -> Input {
    of_dtype(shape, move |_| dtype, value)
}

/// An input by place, in the dtype in which the sample's is summed.
pub fn summed(shape: impl Into<Shape>, value: impl Fn(usize) -> f64 + 'static) -> Input {
    of_dtype(shape, DType::accumulator, value)
}

fn of_dtype(
    shape: impl Into<Shape>,
    dtype: impl Fn(DType) -> DType + 'static,
    value: impl Fn(usize) -> f64 + 'static,
) -> Input {
    Input { shape: shape.into(), dtype: Box::new(dtype), value: Box::new(value) }
}

/// An input of these numbers.
pub fn numbers(shape: impl Into<Shape>, values: &[f64]) -> Input {
    let values = values.to_vec();
    from(shape, move |i| values[i % values.len().max(1)])
}

/// Sizes or axes.
pub fn dims(values: &[usize]) -> Dims {
    Dims::from_slice(values)
}
