//! A run on one page of HTML: it needs no other file, and prints well.

mod sections;

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cupola_core::backend::backends;
use cupola_core::{Error, Result};

use super::{Callback, Moment};
use crate::io::{check_file, write_whole};
use crate::markup::escaped;

pub use sections::{Picture, confusion};

const STYLE: &str = "body{font:15px/1.4 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:.5em 0}td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid \
#ddd}td:first-child,th:first-child{text-align:left}figure{display:inline-block;margin:.3em;text-align:center;\
font-size:12px;break-inside:avoid}img{width:84px;height:84px;image-rendering:pixelated;border:1px solid #ccc}\
h2{margin-top:1.6em;break-after:avoid}svg{max-width:100%;height:auto}td.right{font-weight:bold}";

/// Writes a page about a training when it is over: settings, what the epochs came to as curves and as a table,
/// devices and their memory, and what is added to it until then. Clones are of one page, so that one can be added to
/// after another was given away.
///
/// # Example
/// ```
/// use cupola::train::{Callbacks, Report};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("report.html");
/// let model = cupola::nn::Linear::new(2, 1)?;
/// let report = Report::new(&path, "A line").row("learning rate", "0.1");
/// let mut callbacks = Callbacks::new().with(report.clone());
/// callbacks.epoch(&[("train_loss", 0.5), ("val_loss", 0.6)], &model)?;
/// report.confusion(&["below", "above"], &[0, 0, 1], &[0, 1, 1])?;
/// callbacks.end()?;
/// let page = std::fs::read_to_string(&path)?;
/// assert!(page.contains("<h1>A line</h1>") && page.contains("0 below"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    path: PathBuf,
    title: String,
    content: Arc<Mutex<Content>>,
}

/// What a page has below its title.
#[derive(Default, Debug)]
struct Content {
    rows: Vec<(String, String)>,
    /// The name and metrics of each epoch.
    epochs: Vec<(String, Vec<(String, f64)>)>,
    sections: String,
    /// Whether there was a look at whether the file can be written.
    is_checked: bool,
}

impl Report {
    /// A page at `path`, which is written at the end. Whether it can be is looked at when the first step or epoch is
    /// over.
    pub fn new(path: impl Into<PathBuf>, title: impl Into<String>) -> Self {
        Self { path: path.into(), title: title.into(), content: Arc::default() }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With a row in the table at the top: a setting, or a result.
    pub fn row(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.content().rows.push((name.into(), value.into()));
        self
    }

    /// With HTML after what is there: text within it is to be [escaped].
    pub fn section(self, html: &str) -> Self {
        self.content().sections += html;
        self
    }

    /// Adds how often each class was taken for each, of samples with these labels; of more than 100 classes those that
    /// were mistaken most.
    ///
    /// # Errors
    /// Where there are not as many labels as predictions, or one is no class.
    pub fn confusion<S: AsRef<str>>(
        &self,
        classes: &[S],
        labels: &[usize],
        predicted: &[usize],
    ) -> Result<()> {
        let names: Vec<String> = classes.iter().map(|name| name.as_ref().to_owned()).collect();
        let html = sections::mistaken(&names, labels, predicted)?;
        self.content().sections += &html;
        Ok(())
    }

    /// Adds images below a heading and a line about them: those that the model is surest of and wrong about, say.
    ///
    /// # Errors
    /// Where one has other bytes than its shape says, or channels that no picture has.
    pub fn pictures(&self, title: &str, about: &str, all: &[Picture<'_>]) -> Result<()> {
        let html = sections::pictures(title, about, all)?;
        self.content().sections += &html;
        Ok(())
    }

    /// Adds an epoch under way to those that are over.
    pub fn unfinished(&self, epoch: usize, steps: usize, metrics: &[(&str, f64)]) {
        self.add(format!("{epoch}, {steps} steps"), metrics);
    }

    fn add(&self, name: String, metrics: &[(&str, f64)]) {
        let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        self.content().epochs.push((name, metrics));
    }

    /// Looks whether the file can be written, once: before hours of training.
    fn check(&self) -> Result<()> {
        let mut content = self.content();
        if !content.is_checked {
            check_file(&self.path, "a report")?;
            content.is_checked = true;
        }
        Ok(())
    }

    /// The page.
    pub fn html(&self) -> String {
        let content = self.content();
        let title = escaped(&self.title);
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title>\
             <style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n<table>\n"
        );
        let mut row = |name: &str, value: &str| {
            let _ =
                writeln!(page, "<tr><td>{}</td><td>{}</td></tr>", escaped(name), escaped(value));
        };
        content.rows.iter().for_each(|(name, value)| row(name, value));
        for on in backends() {
            let peak = on.memory().peak as f64 / f64::from(1 << 20);
            let about = format!("{}; {peak:.1} MiB in arrays, at most", on.description());
            row(&format!("device {}", on.device()), &about);
        }
        row("made by", &format!("cupola {}", env!("CARGO_PKG_VERSION")));
        page += "</table>\n";
        content.put_epochs(&mut page);
        page += &content.sections;
        page + "</body>\n</html>\n"
    }
}

impl Content {
    fn put_epochs(&self, page: &mut String) {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.epochs.iter().flat_map(|(_, metrics)| metrics) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        if names.is_empty() {
            return;
        }
        let value = |metrics: &[(String, f64)], name: &str| {
            metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
        };
        // A curve has no point where nothing was measured.
        let point =
            |metrics: &[(String, f64)], name: &str| value(metrics, name).unwrap_or(f64::NAN);
        let curves: Vec<(&str, Vec<f64>)> = names
            .iter()
            .map(|name| (*name, self.epochs.iter().map(|(_, all)| point(all, name)).collect()))
            .collect();
        *page += "<h2>Epochs</h2>\n";
        *page += &panels(&curves);
        *page += "<table>\n<tr><th>epoch</th>";
        for name in &names {
            let _ = write!(page, "<th>{}</th>", escaped(&name.replace('_', " ")));
        }
        *page += "</tr>\n";
        for (number, metrics) in &self.epochs {
            let _ = write!(page, "<tr><td>{number}</td>");
            for name in &names {
                let shown = value(metrics, name).map_or_else(String::new, shown);
                let _ = write!(page, "<td>{shown}</td>");
            }
            *page += "</tr>\n";
        }
        *page += "</table>\n";
    }
}

impl Callback for Report {
    fn past(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.epoch(at)
    }

    fn step(&mut self, _: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.check().map(ControlFlow::Continue)
    }

    fn epoch(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.check()?;
        self.add(at.epoch.to_string(), at.metrics);
        Ok(ControlFlow::Continue(()))
    }

    fn end(&mut self) -> Result<()> {
        write_whole(&self.path, self.html()).map_err(|error| match error {
            Error::Io { path, detail } => Error::io(path, format!("the report: {detail}")),
            other => other,
        })
    }
}

/// About four digits.
fn shown(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

// Colours that the colour-blind tell apart, too.
const COLOURS: [&str; 8] = [
    "rgb(0,114,178)",
    "rgb(213,94,0)",
    "rgb(0,158,115)",
    "rgb(204,121,167)",
    "rgb(230,159,0)",
    "rgb(86,180,233)",
    "rgb(90,90,90)",
    "rgb(180,160,0)",
];

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 380.0;

/// Curves over the epochs as one picture: those whose names end in the same word share a panel, as `train_loss`
/// and `val_loss` do. Values that are not finite are left out.
///
/// # Example
/// ```
/// let curves = [("train_loss", vec![2.0, 1.0]), ("val_loss", vec![2.1, 1.2]), ("seconds", vec![3.0, 3.1])];
/// let svg = cupola::train::panels(&curves);
/// assert!(svg.starts_with("<svg") && svg.matches("<polyline").count() == 3);
/// ```
pub fn panels(curves: &[(&str, Vec<f64>)]) -> String {
    type Lines<'c> = Vec<(&'c str, &'c [f64])>;
    let mut panels: Vec<(&str, Lines<'_>)> = Vec::new();
    for (name, values) in curves {
        let (who, what) = name.rsplit_once('_').unwrap_or(("", name));
        match panels.iter_mut().find(|(known, _)| *known == what) {
            Some((_, lines)) => lines.push((who, values)),
            None => panels.push((what, vec![(who, values)])),
        }
    }
    let columns = panels.len().clamp(1, 2);
    let rows = panels.len().div_ceil(2).max(1);
    let (width, height) = (WIDTH * columns as f64, HEIGHT * rows as f64);
    let mut svg = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"13\" fill=\"rgb(60,60,60)\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (index, (what, lines)) in panels.iter().enumerate() {
        let (x, y) = (WIDTH * (index % 2) as f64, HEIGHT * (index / 2) as f64);
        let _ = writeln!(svg, "<g transform=\"translate({x},{y})\">");
        panel(&mut svg, what, lines);
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

fn panel(svg: &mut String, what: &str, lines: &[(&str, &[f64])]) {
    let (left, right, top, bottom) = (64.0, WIDTH - 14.0, 42.0, HEIGHT - 48.0);
    let all = || lines.iter().flat_map(|(_, values)| values.iter().copied());
    let (low, high) = all()
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let room = (0.08 * (high - low)).max(0.01 * high.abs()).max(1e-6);
    let (low, high) = (low - room, high + room);
    let count = lines.iter().map(|(_, values)| values.len()).max().unwrap_or(1).max(1);
    let across = |index: f64| left + (right - left) * (index + 0.5) / count as f64;
    let up = |value: f64| bottom - (bottom - top) * (value - low) / (high - low);
    let title = escaped(what);
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"26\" font-size=\"18\" text-anchor=\"middle\">{title}</text>",
        WIDTH / 2.0
    );
    for mark in marks(low, high) {
        let y = up(mark.0);
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {y:.1}H{right}\" stroke=\"rgb(225,225,225)\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            y + 4.0,
            mark.1
        );
    }
    let step = count.div_ceil(10);
    for index in (0..count).step_by(step) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            across(index as f64),
            bottom + 18.0,
            index + 1
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{left} {top}V{bottom}H{right}\" stroke=\"rgb(60,60,60)\" fill=\"none\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">epoch</text>",
        0.5 * (left + right),
        bottom + 38.0
    );
    for (place, (who, values)) in lines.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let points: Vec<(f64, f64)> = values
            .iter()
            .enumerate()
            .filter(|(_, value)| value.is_finite())
            .map(|(index, value)| (across(index as f64), up(*value)))
            .collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in points {
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        if !who.is_empty() {
            let y = top + 14.0 + 18.0 * place as f64;
            let _ = writeln!(
                svg,
                "<path d=\"M{} {}h18\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{}\" y=\"{y}\">{}</text>",
                right - 110.0,
                y - 4.0,
                right - 86.0,
                escaped(who)
            );
        }
    }
}

/// Round numbers between `low` and `high`, with their text.
fn marks(low: f64, high: f64) -> Vec<(f64, String)> {
    let raw = (high - low) / 6.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= raw).unwrap_or(10.0);
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    let first = (low / step).ceil() as i64;
    let all = (0..8).map(|index| (first + index) as f64 * step);
    all.take_while(|mark| *mark <= high).map(|mark| (mark, format!("{mark:.decimals$}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_within() {
        let all: Vec<String> = marks(0.13, 0.91).into_iter().map(|mark| mark.1).collect();
        assert_eq!(all, ["0.2", "0.4", "0.6", "0.8"]);
        let all: Vec<String> = marks(-1.0, 25.0).into_iter().map(|mark| mark.1).collect();
        assert_eq!(all, ["0", "5", "10", "15", "20", "25"]);
    }

    #[test]
    fn what_is_not_finite_is_left_out() {
        let svg = panels(&[("loss", vec![f64::NAN, 1.0, f64::INFINITY]), ("none", vec![])]);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 1);
        assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
    }
}
