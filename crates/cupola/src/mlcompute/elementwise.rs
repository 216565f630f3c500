//! Layers that treat each element alike, softmax and dropout.

use cupola_core::{Array, Result, ops};

use super::Layer;
use super::layer::wrong;

/// A kind of activation, with its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Activation {
    /// x.
    None,
    /// x, below 0 a·x.
    Relu(f64),
    /// a·x + b.
    Linear(f64, f64),
    /// 1/(1 + e⁻ˣ).
    Sigmoid,
    /// a·x + b between 0 and 1.
    HardSigmoid(f64, f64),
    /// a·tanh(b·x).
    Tanh(f64, f64),
    /// |x|.
    Absolute,
    /// a·ln(1 + e^(b·x)).
    SoftPlus(f64, f64),
    /// x/(1 + |x|).
    SoftSign,
    /// x, below 0 a·(eˣ − 1).
    Elu(f64),
    /// x, below 0 a·x, at most b.
    ReluN(f64, f64),
    /// ln of the sigmoid.
    LogSigmoid,
    /// The scaled one of G. Klambauer and others, 2017.
    Selu,
    /// x, below 0 a·(e^(x/a) − 1).
    Celu(f64),
    /// x where |x| > a, else 0.
    HardShrink(f64),
    /// x towards 0 by a.
    SoftShrink(f64),
    /// x − tanh x.
    TanhShrink,
    /// x where it is above a, else b.
    Threshold(f64, f64),
    /// x·Φ(x).
    Gelu,
    /// x·min(max(x + 3, 0), 6)/6.
    HardSwish,
    /// x between a and b.
    Clamp(f64, f64),
}

/// An activation.
///
/// # Example
/// ```
/// use cupola::mlcompute::{self as mlc, Activation};
/// assert_eq!(mlc::activation(Activation::Relu(0.1)).label(), "activation Relu(0.1)");
/// ```
pub fn activation(kind: Activation) -> Layer {
    Layer::unary(format!("activation {kind:?}"), move |x| activated(x, kind))
}

fn activated(x: &Array, kind: Activation) -> Result<Array> {
    match kind {
        Activation::None => Ok(x.clone()),
        Activation::Relu(a) => leaky(x, a),
        Activation::Linear(a, b) => ops::add(&ops::multiply(x, a)?, b),
        Activation::Sigmoid => ops::sigmoid(x),
        Activation::HardSigmoid(a, b) => ops::clip(&ops::add(&ops::multiply(x, a)?, b)?, 0, 1),
        Activation::Tanh(a, b) => ops::multiply(&ops::tanh(&ops::multiply(x, b)?)?, a),
        Activation::Absolute => ops::abs(x),
        Activation::SoftPlus(a, b) => ops::multiply(&ops::softplus(&ops::multiply(x, b)?)?, a),
        Activation::SoftSign => ops::softsign(x),
        Activation::Elu(a) => ops::elu(x, a),
        Activation::ReluN(a, b) => ops::minimum(&leaky(x, a)?, b),
        Activation::LogSigmoid => ops::log_sigmoid(x),
        Activation::Selu => ops::selu(x),
        Activation::Celu(a) => ops::celu(x, a),
        Activation::HardShrink(a) => ops::hard_shrink(x, a),
        Activation::SoftShrink(a) => ops::softshrink(x, a),
        Activation::TanhShrink => ops::tanh_shrink(x),
        Activation::Threshold(a, b) => ops::where_(&ops::greater(x, a)?, x, b),
        Activation::Gelu => ops::gelu(x),
        Activation::HardSwish => ops::hard_swish(x),
        Activation::Clamp(a, b) => ops::clip(x, a, b),
    }
}

fn leaky(x: &Array, slope: f64) -> Result<Array> {
    ops::where_(&ops::greater_equal(x, 0)?, x, &ops::multiply(x, slope)?)
}

/// An operation of two tensors, or of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each is the operation of its name")]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Pow,
    Min,
    Max,
    /// The product; 0 where the second is 0.
    MultiplyNoNan,
    /// The quotient; 0 where the second is 0.
    DivideNoNan,
    Floor,
    Round,
    Ceil,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Exp,
    Exp2,
    Log,
    Log2,
}

/// A function of one array or of two.
enum Function {
    One(fn(&Array) -> Result<Array>),
    Two(fn(&Array, &Array) -> Result<Array>),
}

/// An arithmetic operation. Two tensors broadcast.
pub fn arithmetic(operation: Arithmetic) -> Layer {
    let label = format!("arithmetic {operation:?}");
    match function(operation) {
        Function::One(function) => Layer::unary(label, function),
        Function::Two(function) => Layer::one(label, 2..=2, Vec::new(), move |given| {
            function(&given.inputs[0], &given.inputs[1])
        }),
    }
}

fn function(operation: Arithmetic) -> Function {
    use Function::{One, Two};
    match operation {
        Arithmetic::Add => Two(|x, y| ops::add(x, y)),
        Arithmetic::Subtract => Two(|x, y| ops::subtract(x, y)),
        Arithmetic::Multiply => Two(|x, y| ops::multiply(x, y)),
        Arithmetic::Divide => Two(|x, y| ops::divide(x, y)),
        Arithmetic::Pow => Two(|x, y| ops::power(x, y)),
        Arithmetic::Min => Two(|x, y| ops::minimum(x, y)),
        Arithmetic::Max => Two(|x, y| ops::maximum(x, y)),
        Arithmetic::MultiplyNoNan => {
            Two(|x, y| ops::where_(&ops::equal(y, 0)?, 0, &ops::multiply(x, y)?))
        }
        Arithmetic::DivideNoNan => Two(|x, y| {
            let is_zero = ops::equal(y, 0)?;
            let by = ops::where_(&is_zero, 1, y)?;
            ops::where_(&is_zero, 0, &ops::divide(x, &by)?)
        }),
        Arithmetic::Floor => One(ops::floor),
        Arithmetic::Round => One(|x| ops::round(x, 0)),
        Arithmetic::Ceil => One(ops::ceil),
        Arithmetic::Sqrt => One(ops::sqrt),
        Arithmetic::Rsqrt => One(ops::rsqrt),
        Arithmetic::Sin => One(ops::sin),
        Arithmetic::Cos => One(ops::cos),
        Arithmetic::Tan => One(ops::tan),
        Arithmetic::Asin => One(ops::arcsin),
        Arithmetic::Acos => One(ops::arccos),
        Arithmetic::Atan => One(ops::arctan),
        Arithmetic::Sinh => One(ops::sinh),
        Arithmetic::Cosh => One(ops::cosh),
        Arithmetic::Tanh => One(ops::tanh),
        Arithmetic::Asinh => One(ops::arcsinh),
        Arithmetic::Acosh => One(ops::arccosh),
        Arithmetic::Atanh => One(ops::arctanh),
        Arithmetic::Exp => One(ops::exp),
        Arithmetic::Exp2 => One(|x| ops::exp(&ops::multiply(x, std::f64::consts::LN_2)?)),
        Arithmetic::Log => One(ops::log),
        Arithmetic::Log2 => One(ops::log2),
    }
}

/// A comparison, or a logical operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each is the operation of its name")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    And,
    Or,
    /// Of one tensor.
    Not,
    Nand,
    Nor,
    Xor,
}

/// A comparison of two tensors, or a logical operation; it gives bool.
pub fn comparison(operation: Comparison) -> Layer {
    let count = if operation == Comparison::Not { 1 } else { 2 };
    Layer::one(format!("comparison {operation:?}"), count..=count, Vec::new(), move |given| {
        let (x, y) = (given.x(), &given.inputs[count - 1]);
        match operation {
            Comparison::Equal => ops::equal(x, y),
            Comparison::NotEqual => ops::not_equal(x, y),
            Comparison::Less => ops::less(x, y),
            Comparison::Greater => ops::greater(x, y),
            Comparison::LessOrEqual => ops::less_equal(x, y),
            Comparison::GreaterOrEqual => ops::greater_equal(x, y),
            Comparison::And => ops::logical_and(x, y),
            Comparison::Or => ops::logical_or(x, y),
            Comparison::Not => ops::logical_not(x),
            Comparison::Nand => ops::logical_not(&ops::logical_and(x, y)?),
            Comparison::Nor => ops::logical_not(&ops::logical_or(x, y)?),
            Comparison::Xor => ops::logical_xor(x, y),
        }
    })
}

/// The elements of the second tensor where the first, the condition, is true, else those of the third.
pub fn selection() -> Layer {
    Layer::one("selection", 3..=3, Vec::new(), |given| {
        ops::where_(&given.inputs[0], &given.inputs[1], &given.inputs[2])
    })
}

/// The softmax along a dimension.
pub fn softmax(dimension: isize) -> Layer {
    Layer::unary("softmax", move |x| ops::softmax(x, dimension))
}

/// The logarithm of the softmax along a dimension.
pub fn log_softmax(dimension: isize) -> Layer {
    Layer::unary("log_softmax", move |x| ops::log_softmax(x, dimension))
}

/// Puts a share of the elements to 0 while a graph trains, and divides the others by what is left. With a seed
/// these are the same at every execution.
///
/// # Errors
/// Where the rate is not in [0, 1).
pub fn dropout(rate: f64, seed: Option<u64>) -> Result<Layer> {
    if !(0.0..1.0).contains(&rate) {
        return Err(wrong("dropout", format!("the rate {rate} is not in [0, 1)")));
    }
    Ok(Layer::one("dropout", 1..=1, Vec::new(), move |given| {
        let key = seed.map(ops::random::key);
        if given.training { dropped(given.x(), rate, key.as_ref()) } else { Ok(given.x().clone()) }
    }))
}

/// `x` with a share of it 0.
pub(super) fn dropped(x: &Array, rate: f64, key: Option<&Array>) -> Result<Array> {
    if rate == 0.0 {
        return Ok(x.clone());
    }
    let kept = ops::random::bernoulli(1.0 - rate, x.shape().clone(), key)?;
    ops::where_(&kept, &ops::divide(x, 1.0 - rate)?, 0)
}
