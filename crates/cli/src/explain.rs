//! `cupola explain`.

use std::path::Path;

use cupola::device::{Stream, with_stream};
use cupola::explain::{Report, Roofline};
use cupola::io::write_whole;
use cupola::nn::{self, Layer, Reduction};
use cupola::train::{MODEL_FILE, Model};
use cupola::{Array, DType, ops, plan};

use crate::args::ExplainArgs;
use crate::failure::Outcome;
use crate::output::{Output, replaceable, spared, spinner};

pub fn run(args: &ExplainArgs) -> Outcome {
    let output = Output::new(args.json.as_deref())?;
    output.spares("the model", || [args.run.join(MODEL_FILE)])?;
    if let Some(path) = &args.svg {
        spared("--svg", path, "the model", [args.run.join(MODEL_FILE)])?;
        replaceable("--svg", path)?;
    }
    with_stream(Stream::of(args.device), || {
        let model = Model::load(args.run.join(MODEL_FILE))?;
        let results = recorded(&model, args.batch_size, args.training)?;
        let busy = spinner(&format!("measuring {}", args.device));
        let report = Report::new(plan::explain(&results)?, Roofline::measure(args.device)?);
        busy.finish_and_clear();
        output.line(report.to_string().trim_end());
        if let Some(path) = &args.svg {
            write_whole(Path::new(path), report.to_svg())?;
        }
        output.json(&report.to_json())
    })
}

/// What the model makes of a batch of images: its scores, or with `training` the loss and the gradients.
fn recorded(model: &Model, batch: usize, training: bool) -> Outcome<Vec<Array>> {
    let description = &model.description;
    let (side, channels) = (description.side, description.channels);
    let images = ops::zeros([batch, side, side, channels], DType::F32)?;
    let labels = ops::zeros([batch], DType::I32)?;
    cupola::eval(&[images.clone(), labels.clone()])?;
    if !training {
        return Ok(vec![model.network.forward(&images)?]);
    }
    let ((loss, ()), gradients) = nn::value_and_grad(&model.network, |network| {
        Ok((nn::nll_loss(&network.forward(&images)?, &labels, Reduction::Mean)?, ()))
    })?;
    Ok(std::iter::once(loss).chain(gradients.values().cloned()).collect())
}
