//! The article's figures as SVG: curves over the epochs, the spread of epoch times, bars a device.

use std::ops::Range;
use std::path::Path;

use cupola::io::write_whole;
use cupola::train::{EpochMetrics, panels};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::failure::{Failure, Outcome};

const CURVES: &str = "curves.svg";
const EPOCH_TIMES: &str = "epoch_times.svg";

/// The names of a run's figures.
pub const OF_A_RUN: [&str; 2] = [CURVES, EPOCH_TIMES];

// Two colours that the colour-blind tell apart, too.
const BLUE: RGBColor = RGBColor(0, 114, 178);
const ORANGE: RGBColor = RGBColor(213, 94, 0);
const INK: RGBColor = RGBColor(60, 60, 60);
const GRID: RGBColor = RGBColor(225, 225, 225);
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Draws the figures of a run, whose history is not empty, into its folder.
pub fn draw_run(folder: &Path, history: &[EpochMetrics]) -> Outcome {
    write_whole(folder.join(CURVES), curves(history))?;
    draw(&folder.join(EPOCH_TIMES), (480, 380), |area| epoch_times(area, history))
}

fn draw(path: &Path, size: (u32, u32), figure: impl FnOnce(&Area<'_>) -> Drawn) -> Outcome {
    Ok(write_whole(path, picture(&path.display().to_string(), size, figure)?)?)
}

fn picture(
    name: &str,
    size: (u32, u32),
    figure: impl FnOnce(&Area<'_>) -> Drawn,
) -> Outcome<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| figure(&area))
            .and_then(|()| area.present().map_err(Into::into))
            .map_err(|cause| Failure::new(format!("{name}: {cause}")))?;
    }
    Ok(text)
}

/// Accuracy in percent, and loss.
fn curves(history: &[EpochMetrics]) -> String {
    let curve = |name, value: fn(&EpochMetrics) -> f64| (name, history.iter().map(value).collect());
    panels(&[
        curve("training_accuracy, %", |m| 100.0 * m.train_accuracy),
        curve("validation_accuracy, %", |m| 100.0 * m.val_accuracy),
        curve("training_loss", |m| m.train_loss),
        curve("validation_loss", |m| m.val_loss),
    ])
}

/// A box from the lower to the upper quartile, a line at the median, whiskers to the ends, and every
/// epoch as a point beside it.
fn epoch_times(area: &Area<'_>, history: &[EpochMetrics]) -> Drawn {
    let mut seconds: Vec<f64> = history.iter().map(|metrics| metrics.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let mut chart = column_chart(area, "Time of an epoch, s", 1, spread(seconds.iter().copied()))?;
    let at = |part: f64| quantile(&seconds, part);
    let line = |from, to| PathElement::new(vec![from, to], BLUE.stroke_width(2));
    let (low, high, half) = (at(0.25), at(0.75), 0.12);
    chart.draw_series([Rectangle::new([(-half, low), (half, high)], BLUE.mix(0.2).filled())])?;
    chart.draw_series([Rectangle::new([(-half, low), (half, high)], BLUE.stroke_width(2))])?;
    chart.draw_series([
        line((-half, at(0.5)), (half, at(0.5))),
        line((0.0, at(0.0)), (0.0, low)),
        line((0.0, high), (0.0, at(1.0))),
        line((-half / 2.0, at(0.0)), (half / 2.0, at(0.0))),
        line((-half / 2.0, at(1.0)), (half / 2.0, at(1.0))),
    ])?;
    chart.draw_series(seconds.iter().map(|&s| Circle::new((0.25, s), 3, ORANGE.filled())))?;
    let label = match seconds.len() {
        1 => "1 epoch".to_owned(),
        count => format!("{count} epochs"),
    };
    label_columns(area, &chart, [label.as_str()])
}

/// One bar a label, written into a file of its own.
pub fn draw_bars(path: &Path, title: &str, all: &[(String, f64)]) -> Outcome {
    Ok(write_whole(path, bars(title, all)?)?)
}

/// One bar a label.
pub fn bars(title: &str, bars: &[(String, f64)]) -> Outcome<String> {
    picture(title, (480, 380), |area| {
        let top = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let heights = 0.0..if top > 0.0 { 1.15 * top } else { 1.0 };
        let mut chart = column_chart(area, title, bars.len(), heights)?;
        chart.draw_series(bars.iter().enumerate().map(|(index, (_, value))| {
            let place = index as f64;
            Rectangle::new([(place - 0.25, 0.0), (place + 0.25, *value)], BLUE.filled())
        }))?;
        for (index, (_, value)) in bars.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(index as f64, *value));
            let style = centred(14, VPos::Bottom);
            area.draw(&Text::new(significant(*value), (x, y - 4), style))?;
        }
        label_columns(area, &chart, bars.iter().map(|(label, _)| label.as_str()))
    })
}

type Columns<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// An empty chart with room for `columns` columns, at 0, 1, 2 and so on.
fn column_chart<'a>(
    area: &Area<'a>,
    title: &str,
    columns: usize,
    heights: Range<f64>,
) -> Result<Columns<'a>, Box<dyn std::error::Error>> {
    let decimals = decimals(&heights);
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 18, &INK))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(60)
        .build_cartesian_2d(-0.5..columns as f64 - 0.5, heights)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style((FONT, 13, &INK))
        .x_labels(0)
        .y_label_formatter(&|y| format!("{y:.decimals$}"))
        .draw()?;
    Ok(chart)
}

fn label_columns<'l>(
    area: &Area<'_>,
    chart: &Columns<'_>,
    labels: impl IntoIterator<Item = &'l str>,
) -> Drawn {
    let bottom = chart.plotting_area().get_pixel_range().1.end;
    for (index, label) in labels.into_iter().enumerate() {
        let (x, _) = chart.backend_coord(&(index as f64, 0.0));
        area.draw(&Text::new(label.to_owned(), (x, bottom + 8), centred(14, VPos::Top)))?;
    }
    Ok(())
}

fn centred<'a>(size: u32, vertical: VPos) -> TextStyle<'a> {
    TextStyle::from((FONT, size)).color(&INK).pos(Pos::new(HPos::Center, vertical))
}

/// The value that a part `at` of `sorted` does not exceed, between two where it falls there.
fn quantile(sorted: &[f64], at: f64) -> f64 {
    let place = at * sorted.len().saturating_sub(1) as f64;
    let below = sorted.get(place.floor() as usize).copied().unwrap_or(0.0);
    let above = sorted.get(place.ceil() as usize).copied().unwrap_or(below);
    below + (above - below) * place.fract()
}

/// What shows all `values`, with some room, and never nothing.
fn spread(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return 0.0..1.0;
    }
    let room = (0.08 * (high - low)).max(0.01 * high.abs()).max(1e-6);
    low - room..high + room
}

/// How many digits behind the point tell the marks of an axis apart.
fn decimals(range: &Range<f64>) -> usize {
    let step = (range.end - range.start) / 10.0;
    (-step.log10().floor()).clamp(0.0, 6.0) as usize
}

/// About three digits.
pub fn significant(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(epochs: usize) -> Vec<EpochMetrics> {
        let epoch = |number: usize| {
            let loss = 1.0 / (number + 1) as f64;
            EpochMetrics {
                train_loss: loss,
                train_accuracy: 1.0 - 0.2 * loss,
                val_loss: 0.9 * loss,
                val_accuracy: 1.0 - 0.1 * loss,
                seconds: 20.0 + loss,
            }
        };
        (0..epochs).map(epoch).collect()
    }

    #[test]
    fn every_history_has_its_figures() {
        let folder = tempfile::tempdir().unwrap();
        for epochs in [1, 2, 30] {
            draw_run(folder.path(), &history(epochs)).unwrap();
            for file in OF_A_RUN {
                let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
                assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{file}");
                assert!(!text.contains("NaN"), "{file}");
            }
        }
        let curves = std::fs::read_to_string(folder.path().join(CURVES)).unwrap();
        for word in ["accuracy", "loss", "training", "validation", "epoch"] {
            assert!(curves.contains(word), "no {word}");
        }
    }

    #[test]
    fn a_bar_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bars.svg");
        for bars in
            [vec![("cpu".to_owned(), 71.5)], vec![("cpu".to_owned(), 0.0), ("x".to_owned(), 2.0)]]
        {
            draw_bars(&path, "Training, ms a step", &bars).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains("cpu") && text.contains("ms a step"), "{text}");
        }
    }
}
