//! What every optimiser keeps: the count of steps, the learning rate, moments.

use std::collections::BTreeMap;

use cupola_core::tree::{self, Leaf, Path, Tree};
use cupola_core::{Array, Error, Result, ops};

use super::schedule::{LearningRate, Schedule};
use crate::nn::{Gradients, Param, Parts, each_param};

/// An optimiser's arrays, under the names `step`, `learning_rate` and `<parameter>.<moment>`.
#[derive(Clone)]
pub struct State {
    /// `int32`; the updates made so far.
    step: Array,
    /// `float32`; the rate of the last update.
    rate: Array,
    schedule: Option<Schedule>,
    moments: BTreeMap<String, Array>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("scheduled", &self.schedule.is_some())
            .field("moments", &self.moments.keys())
            .finish()
    }
}

/// One update of the parameters.
pub(super) struct Update {
    /// Its number, from 1, as `float32`.
    pub number: Array,
    /// Its learning rate, as `float32`.
    pub rate: Array,
}

impl State {
    pub(super) fn new(op: &'static str, rate: LearningRate) -> Result<Self> {
        // Arrays, not constants: a constant would be part of a compiled step.
        let step = Array::from_slice(&[0i32], ())?;
        let (rate, schedule) = match rate {
            LearningRate::Constant(rate) => (checked_rate(op, rate)?, None),
            LearningRate::Schedule(schedule) => (schedule(&step)?, Some(schedule)),
        };
        Ok(State { step, rate, schedule, moments: BTreeMap::new() })
    }

    /// How many updates were made, as `int32`.
    pub fn step(&self) -> Array {
        self.step.clone()
    }

    /// The learning rate of the last update, or of the first where none was made.
    pub fn learning_rate(&self) -> Array {
        self.rate.clone()
    }

    pub(super) fn set_learning_rate(&mut self, rate: f64) -> Result<()> {
        self.rate = checked_rate("set_learning_rate", rate)?;
        self.schedule = None;
        Ok(())
    }

    /// Every leaf by name.
    pub fn leaves(&self) -> BTreeMap<String, Array> {
        tree::leaves(self).into_iter().collect()
    }

    pub(super) fn load(&mut self, mut leaves: BTreeMap<String, Array>) -> Result<()> {
        let mut take = |name: &str, like: &Array| match leaves.remove(name) {
            Some(array) if array.aval() == like.aval() => Ok(array),
            Some(array) => {
                let detail = format!("{name} is {}, not {}", array.aval(), like.aval());
                Err(Error::argument("Optimizer::load", detail))
            }
            None => Err(Error::argument("Optimizer::load", format!("{name} is missing"))),
        };
        let (step, rate) = (take("step", &self.step)?, take("learning_rate", &self.rate)?);
        (self.step, self.rate, self.moments) = (step, rate, leaves);
        Ok(())
    }

    /// Makes `change` of every parameter of `model` that has a gradient, in the dtype to compute
    /// in, and counts the step. `change` sees the moments, the parameter and its gradient.
    pub(super) fn update<C>(
        &mut self,
        model: &dyn Parts,
        gradients: &Gradients,
        prepare: impl FnOnce(&Update) -> Result<C>,
        change: impl Fn(&C, &mut Moments<'_>, &Array, &Array) -> Result<Array>,
    ) -> Result<()> {
        let targets = matched(model, gradients)?;
        let rate = match &self.schedule {
            Some(schedule) => ops::astype(&schedule(&self.step)?, self.rate.dtype())?,
            None => self.rate.clone(),
        };
        let count = ops::add(&self.step, 1)?;
        let update = Update { number: ops::astype(&count, rate.dtype())?, rate };
        let context = prepare(&update)?;
        let mut changed = Vec::with_capacity(targets.len());
        for (path, param, gradient) in targets {
            let value = param.get();
            let dtype = value.dtype();
            let (wide, gradient) = (widened(&value)?, ops::astype(gradient, dtype.accumulator())?);
            let mut moments = Moments { held: &self.moments, path: &path, new: Vec::new() };
            let new = change(&context, &mut moments, &wide, &gradient)?;
            let moments = moments
                .new
                .into_iter()
                .map(|(name, moment)| {
                    let moment = ops::astype(&moment, dtype)?;
                    // They start from zero.
                    let former = match self.moments.get(&name) {
                        Some(former) => former.clone(),
                        None => ops::zeros_like(&moment)?,
                    };
                    Ok((name, ops::update(&moment, &former)?))
                })
                .collect::<Result<Vec<_>>>()?;
            changed.push((param, ops::update(&ops::astype(&new, dtype)?, &value)?, moments));
        }
        for (param, value, moments) in changed {
            param.set(value);
            self.moments.extend(moments);
        }
        (self.step, self.rate) = (count, update.rate);
        Ok(())
    }
}

fn checked_rate(op: &'static str, rate: f64) -> Result<Array> {
    let rate = super::not_negative(op, "learning rate", rate)?;
    Array::from_slice(&[rate as f32], ())
}

/// `x` in the dtype to compute in.
fn widened(x: &Array) -> Result<Array> {
    ops::astype(x, x.dtype().accumulator())
}

/// The parameters that gradients belong to.
fn matched<'g>(
    model: &dyn Parts,
    gradients: &'g Gradients,
) -> Result<Vec<(String, Param, &'g Array)>> {
    let mut targets = Vec::with_capacity(gradients.len());
    let mut problem = None;
    each_param(model, &mut |path, param| {
        let Some(gradient) = gradients.get(path) else { return };
        if *gradient.shape() != param.shape() {
            let (g, p) = (gradient.shape(), param.shape());
            problem.get_or_insert(format!("the gradient of {path} is {g}, the parameter {p}"));
        }
        targets.push((path.to_owned(), param.clone(), gradient));
    });
    if problem.is_none() && targets.len() < gradients.len() {
        let stray = gradients.keys().find(|k| !targets.iter().any(|(path, ..)| path == *k));
        problem = stray.map(|path| format!("the model has no parameter {path}"));
    }
    match problem {
        Some(detail) => Err(Error::shape("Optimizer::update", detail)),
        None => Ok(targets),
    }
}

/// The moments of one parameter.
pub(super) struct Moments<'a> {
    held: &'a BTreeMap<String, Array>,
    path: &'a str,
    new: Vec<(String, Array)>,
}

impl Moments<'_> {
    /// A moment in the dtype to compute in; `None` at the first update.
    pub fn get(&self, name: &str) -> Result<Option<Array>> {
        self.held.get(&format!("{}.{name}", self.path)).map(widened).transpose()
    }

    /// Keeps a moment.
    pub fn set(&mut self, name: &str, value: &Array) {
        self.new.push((format!("{}.{name}", self.path), value.clone()));
    }

    /// Moves a moment towards `value`, decay·moment + (1 − decay)·value, from zero at first.
    pub fn follow(&mut self, name: &str, decay: f64, value: &Array) -> Result<Array> {
        let part = ops::multiply(value, 1.0 - decay)?;
        let moved = match self.get(name)? {
            Some(former) => ops::add(&ops::multiply(&former, decay)?, &part)?,
            None => part,
        };
        self.set(name, &moved);
        Ok(moved)
    }
}

impl Tree for State {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        path.with("learning_rate", |path| self.rate.visit(path, f));
        path.with("step", |path| self.step.visit(path, f));
        self.moments.visit(path, f);
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        path.with("learning_rate", |path| self.rate.visit_mut(path, f));
        path.with("step", |path| self.step.visit_mut(path, f));
        self.moments.visit_mut(path, f);
    }

    /// The schedule, which `set_learning_rate` takes away.
    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        f(self.schedule.as_ref().map_or(0, |s| std::sync::Arc::as_ptr(s).addr() as u64));
    }
}
