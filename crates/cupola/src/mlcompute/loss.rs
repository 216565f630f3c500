//! Layers that compare predictions with labels.

use cupola_core::{Array, DType, Result, ops};

use super::Layer;
use super::layer::{Given, wrong};

/// What is compared how.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Loss {
    /// |x − y|.
    MeanAbsoluteError,
    /// (x − y)².
    MeanSquaredError,
    /// Along the classes, the second dimension, with logits.
    SoftmaxCrossEntropy,
    /// Of each element, with logits.
    SigmoidCrossEntropy,
    /// Along the classes, with probabilities.
    CategoricalCrossEntropy,
    /// max(1 − x·y, 0), with labels ±1.
    Hinge,
    /// Quadratic within this distance, linear beyond.
    Huber(f64),
    /// 1 − x·y of vectors of length 1 along the second dimension.
    CosineDistance,
    /// Of each element, with probabilities.
    Log,
}

/// What becomes of the losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// Nothing.
    None,
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    fn of(self, losses: &Array) -> Result<Array> {
        match self {
            Reduction::None => Ok(losses.clone()),
            Reduction::Mean => ops::mean(losses, (), false),
            Reduction::Sum => ops::sum(losses, (), false),
        }
    }
}

/// What keeps logarithms from 0.
const EPSILON: f64 = 1e-7;

/// How far predictions, the first tensor, are from labels, the second. A third weighs the losses.
///
/// Labels of a cross entropy along classes are shares of these, or integers without that dimension, or with it of size
/// 1; they are smoothed towards equal shares.
pub fn loss(kind: Loss, reduction: Reduction, label_smoothing: f64) -> Layer {
    Layer::one(format!("loss {kind:?}"), 2..=3, Vec::new(), move |given| {
        let mut losses = compared(given, kind, label_smoothing)?;
        if let Some(weights) = given.inputs.get(2) {
            let weights = match weights.size() {
                1 => weights.clone(),
                _ => ops::reshape(weights, losses.shape().clone())?,
            };
            losses = ops::multiply(&losses, &weights)?;
        }
        reduction.of(&losses)
    })
}

fn compared(given: &Given<'_>, kind: Loss, smoothing: f64) -> Result<Array> {
    let (x, y) = (&given.inputs[0], &given.inputs[1]);
    let axis = usize::from(x.rank() > 1);
    let y = match kind {
        Loss::SoftmaxCrossEntropy | Loss::CategoricalCrossEntropy => shares(x, y, axis, smoothing)?,
        _ => ops::astype(y, x.dtype())?,
    };
    if x.aval().shape != y.aval().shape {
        let text = format!("predictions {} and labels {} do not match", x.aval(), y.aval());
        return Err(wrong("loss", text));
    }
    let along = |terms: &Array| ops::negative(&ops::sum(&ops::multiply(&y, terms)?, axis, false)?);
    let log = |x: &Array| ops::log(&ops::add(x, EPSILON)?);
    match kind {
        Loss::MeanAbsoluteError => ops::abs(&ops::subtract(x, &y)?),
        Loss::MeanSquaredError => ops::square(&ops::subtract(x, &y)?),
        Loss::SoftmaxCrossEntropy => along(&ops::log_softmax(x, axis)?),
        Loss::CategoricalCrossEntropy => along(&log(x)?),
        Loss::CosineDistance => ops::add(&along(x)?, 1),
        Loss::SigmoidCrossEntropy => {
            let smooth = ops::add(&ops::multiply(&y, 1.0 - smoothing)?, 0.5 * smoothing)?;
            ops::subtract(&ops::softplus(x)?, &ops::multiply(x, &smooth)?)
        }
        Loss::Hinge => ops::maximum(&ops::subtract(1, &ops::multiply(x, &y)?)?, 0),
        Loss::Huber(delta) => {
            let far = ops::abs(&ops::subtract(x, &y)?)?;
            let near = ops::multiply(&ops::square(&far)?, 0.5)?;
            let line = ops::multiply(&ops::subtract(&far, 0.5 * delta)?, delta)?;
            ops::where_(&ops::less_equal(&far, delta)?, &near, &line)
        }
        Loss::Log => {
            let one = ops::multiply(&y, &log(x)?)?;
            let other = ops::multiply(&ops::subtract(1, &y)?, &log(&ops::subtract(1, x)?)?)?;
            ops::negative(&ops::add(&one, &other)?)
        }
    }
}

/// Labels as a share for each class.
fn shares(x: &Array, labels: &Array, axis: usize, smoothing: f64) -> Result<Array> {
    let classes = x.shape()[axis];
    let own = if labels.dtype().is_float() || labels.aval().shape == x.aval().shape {
        ops::astype(labels, x.dtype())?
    } else {
        let mut without = x.shape().to_vec();
        without.remove(axis);
        let rows = ops::one_hot(&ops::reshape(labels, without)?, classes, x.dtype())?;
        ops::moveaxis(&rows, -1, axis as isize)?
    };
    ops::add(&ops::multiply(&own, 1.0 - smoothing)?, smoothing / classes.max(1) as f64)
}

/// The parameters of a [`yolo_loss`].
#[derive(Clone, PartialEq, Debug)]
pub struct Yolo {
    /// Widths and heights, in cells.
    pub anchors: Vec<[f32; 2]>,
    /// How many classes.
    pub classes: usize,
    /// Whether confidence is to be the overlap, or 1; the overlap.
    pub rescores: bool,
    /// What the position counts; 10.
    pub position: f64,
    /// What the size counts; 10.
    pub size: f64,
    /// What confidence counts where there is no box; 5.
    pub no_object: f64,
    /// What confidence counts where there is a box; 100.
    pub object: f64,
    /// What the class counts; 2.
    pub class: f64,
    /// What overlaps a box by more has to be confident; 0.7.
    pub presence: f64,
    /// What overlaps every box by less must not be confident; 0.3.
    pub absence: f64,
}

impl Yolo {
    /// The usual weights.
    pub fn new(anchors: &[[f32; 2]], classes: usize) -> Self {
        Yolo {
            anchors: anchors.to_vec(),
            classes,
            rescores: true,
            position: 10.0,
            size: 10.0,
            no_object: 5.0,
            object: 100.0,
            class: 2.0,
            presence: 0.7,
            absence: 0.3,
        }
    }
}

/// The loss of YOLO version 2 for boxes on a grid.
///
/// Predictions and labels are `[N, anchors · (5 + classes), H, W]`: for each anchor x, y, width, height, confidence and the
/// classes. Predicted are logits: the middle of a box lies at σ(x), σ(y) in its cell, it is e^width and e^height times its
/// anchor, σ of its confidence says whether there is a box, and the softmax of the classes what it is. Labels are
/// what is meant by that, in cells, 1 where there is a box, and the classes' shares.
///
/// Where a label has a box its position, size and classes count, and the confidence has to be its overlap with what
/// was predicted. Elsewhere the confidence has to be 0 where the prediction overlaps every box by less than
/// `absence`, and that overlap where it is more than `presence`. The loss of an image is a sum; the reduction is over images.
pub fn yolo_loss(options: Yolo, reduction: Reduction) -> Layer {
    Layer::one("loss Yolo", 2..=2, Vec::new(), move |given| {
        reduction.of(&boxes_compared(given, &options)?)
    })
}

fn boxes_compared(given: &Given<'_>, own: &Yolo) -> Result<Array> {
    let (x, y) = (&given.inputs[0], &given.inputs[1]);
    let depth = 5 + own.classes;
    let fits = x.rank() == 4
        && x.aval().shape == y.aval().shape
        && x.shape()[1] == own.anchors.len() * depth;
    if !fits {
        let channels = own.anchors.len() * depth;
        let text = format!("takes [N, {channels}, H, W] twice, not {} and {}", x.aval(), y.aval());
        return Err(wrong("loss Yolo", text));
    }
    let (batch, anchors) = (x.shape()[0], own.anchors.len());
    let (height, width) = (x.shape()[2], x.shape()[3]);
    let parts = |x: &Array| {
        let rows = ops::reshape(x, [batch, anchors, depth, height * width])?;
        ops::split(&rows, [2, 4, 5], 2)
    };
    let (found, meant) = (parts(x)?, parts(y)?);
    let flat: Vec<f32> = own.anchors.iter().flatten().copied().collect();
    let anchor = Array::from_slice(&flat, [1, anchors, 2, 1])?;
    let cell = |of: fn(usize, usize) -> usize| -> Vec<f32> {
        (0..height * width).map(|at| of(at, width) as f32).collect()
    };
    let mut cells = cell(|at, width| at % width);
    cells.extend(cell(|at, width| at / width));
    let cells = Array::from_slice(&cells, [2, height * width])?;
    let middle = ops::sigmoid(&found[0])?;
    let sides = ops::multiply(&anchor, &ops::exp(&found[1])?)?;
    let has = ops::greater(&ops::squeeze(&meant[2], 2)?, 0.5)?;
    let ours = corners(&ops::add(&middle, &cells)?, &sides)?;
    let theirs = corners(&ops::add(&meant[0], &cells)?, &meant[1])?;
    let overlap_own = ops::stop_gradient(&overlap(&ours, &theirs)?)?;
    let count = anchors * height * width;
    let down =
        ours.iter().map(|a| ops::reshape(a, [batch, count, 1])).collect::<Result<Vec<_>>>()?;
    let along =
        theirs.iter().map(|a| ops::reshape(a, [batch, 1, count])).collect::<Result<Vec<_>>>()?;
    let is_box = ops::reshape(&has, [batch, 1, count])?;
    let best = ops::max(&ops::where_(&is_box, &overlap(&down, &along)?, 0)?, -1, false)?;
    let best = ops::stop_gradient(&ops::reshape(&best, has.shape().clone())?)?;
    let over = |terms: &Array| ops::sum(terms, 2, false);
    let position = over(&ops::square(&ops::subtract(&middle, &meant[0])?)?)?;
    // Where there is no box its sides are nothing to take a logarithm of.
    let real = ops::where_(&ops::expand_dims(&has, 2)?, &meant[1], &anchor)?;
    let logs = ops::log(&ops::divide(&real, &anchor)?)?;
    let extent = over(&ops::square(&ops::subtract(&found[1], &logs)?)?)?;
    let class = over(&ops::multiply(&meant[3], &ops::log_softmax(&found[3], 2)?)?)?;
    let confidence = ops::sigmoid(&ops::squeeze(&found[2], 2)?)?;
    let has_none = ops::logical_not(&has)?;
    let is_near = ops::logical_and(&has_none, &ops::greater(&best, own.presence)?)?;
    let is_far = ops::logical_and(&has_none, &ops::less(&best, own.absence)?)?;
    let target = match own.rescores {
        true => ops::where_(&has, &overlap_own, &best)?,
        false => ops::ones(has.shape().clone(), DType::F32)?,
    };
    let times = |x: &Array, by: f64| ops::multiply(x, by);
    let of_boxes = ops::add(&times(&position, own.position)?, &times(&extent, own.size)?)?;
    let of_boxes = ops::subtract(&of_boxes, &times(&class, own.class)?)?;
    let sure = times(&ops::square(&ops::subtract(&confidence, &target)?)?, own.object)?;
    let unsure = times(&ops::square(&confidence)?, own.no_object)?;
    let mut losses = ops::where_(&has, &of_boxes, 0)?;
    losses = ops::add(&losses, &ops::where_(&ops::logical_or(&has, &is_near)?, &sure, 0)?)?;
    losses = ops::add(&losses, &ops::where_(&is_far, &unsure, 0)?)?;
    ops::sum(&losses, [1, 2], false)
}

/// Left, top, right and bottom of boxes `[N, anchors, 2, cells]`: `[N, anchors, cells]` each.
fn corners(middle: &Array, sides: &Array) -> Result<Vec<Array>> {
    let half = ops::multiply(sides, 0.5)?;
    let (low, high) = (ops::subtract(middle, &half)?, ops::add(middle, &half)?);
    let mut all = ops::unstack(&low, 2)?;
    all.extend(ops::unstack(&high, 2)?);
    Ok(all)
}

/// The intersection of boxes over their union.
fn overlap(a: &[Array], b: &[Array]) -> Result<Array> {
    let side = |low: usize, high: usize| {
        let (end, start) = (ops::minimum(&a[high], &b[high])?, ops::maximum(&a[low], &b[low])?);
        ops::maximum(&ops::subtract(&end, &start)?, 0)
    };
    let area = |own: &[Array]| {
        ops::multiply(&ops::subtract(&own[2], &own[0])?, &ops::subtract(&own[3], &own[1])?)
    };
    let both = ops::multiply(&side(0, 2)?, &side(1, 3)?)?;
    let union = ops::subtract(&ops::add(&area(a)?, &area(b)?)?, &both)?;
    ops::divide(&both, &ops::maximum(&union, 1e-12)?)
}
