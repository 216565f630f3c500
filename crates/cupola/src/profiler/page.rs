//! A profile as one page that needs nothing else.

use std::fmt::Write;

use cupola_core::Device;
use cupola_core::profile::What;
use serde_json::{Value, json};

use super::table::{self, By, Row};
use super::{Noted, Profile, trace};
use crate::markup::escaped;

/// How a page begins.
pub const START: &str = r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Profile</title>"#;

/// The most events that the timeline draws: the longest.
const MOST_DRAWN: usize = 20_000;

/// The most rows of a table.
const MOST_ROWS: usize = 100;

pub fn html(profile: &Profile) -> String {
    let mut out = [START, HEAD].concat();
    let steps = profile.events().filter(|event| matches!(event.what, What::Step { .. })).count();
    let _ = write!(
        out,
        "<h1>Profile</h1><p>{:.3} ms, {} events, {steps} steps of plans{}</p>",
        profile.length.as_secs_f64() * 1e3,
        profile.events.len(),
        if profile.lost > 0 {
            format!(", {} events had no room", profile.lost)
        } else {
            String::new()
        },
    );
    let (drawn, left_out) = timeline(profile);
    out.push_str(
        "<h2>Timeline</h2><p>The wheel zooms, dragging moves, and what is under the pointer is told below.",
    );
    if left_out > 0 {
        let _ = write!(out, " The {left_out} shortest events are not drawn.");
    }
    out.push_str("</p><canvas id=\"timeline\"></canvas><pre id=\"about\"> </pre>");
    out.push_str("<h2>Memory in use</h2>");
    memory(&mut out, profile);
    for (title, by) in [
        ("What took longest", By::Step),
        ("By operation", By::Op),
        ("By line of the program", By::Line),
        ("By module", By::Module),
    ] {
        let _ = write!(out, "<h2>{title}</h2>");
        rows(&mut out, &table::rows(profile, by));
    }
    let _ =
        write!(out, "<script>const events = {};\n{SCRIPT}</script></body></html>", inline(&drawn));
    out
}

/// JSON within a script: nothing in it ends the script.
fn inline(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// The events that are drawn, by when they begin, and how many are not.
fn timeline(profile: &Profile) -> (Value, usize) {
    let is_drawn = |noted: &&Noted| !matches!(noted.event.what, What::Memory { .. });
    let mut longest: Vec<_> = profile.events.iter().filter(is_drawn).collect();
    longest.sort_by_key(|noted| std::cmp::Reverse(noted.event.length));
    let left_out = longest.len().saturating_sub(MOST_DRAWN);
    longest.truncate(MOST_DRAWN);
    longest.sort_by_key(|noted| (noted.event.start, std::cmp::Reverse(noted.event.length)));
    let each = longest.iter().map(|noted| {
        let (category, title, args) = trace::described(&noted.event.what);
        let lane = match (category, args.get("device").and_then(Value::as_str)) {
            ("step", Some(device)) => device.to_owned(),
            (category, _) => category.to_owned(),
        };
        json!([
            lane,
            title,
            trace::micros(profile, noted.event.start),
            noted.event.length.as_secs_f64() * 1e6,
            args,
        ])
    });
    (each.collect(), left_out)
}

/// The memory in use when plans began and after each evaluation, as a picture.
fn memory(out: &mut String, profile: &Profile) {
    let mut curves: Vec<(Device, Vec<(f64, usize)>)> = Vec::new();
    for event in profile.events() {
        if let What::Evaluation { device, memory, .. } | What::Memory { device, memory } =
            &event.what
        {
            let point = (trace::micros(profile, event.start + event.length), memory.active);
            match curves.iter_mut().find(|(known, _)| known == device) {
                Some((_, points)) => points.push(point),
                None => curves.push((*device, vec![point])),
            }
        }
    }
    let length = (profile.length.as_secs_f64() * 1e6).max(1.0);
    for (device, mut points) in curves {
        // Evaluations are told of by when they begin, and end after what is within them.
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let most = points.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0).max(1);
        let mut path = String::new();
        for (at, bytes) in &points {
            let (x, y) = (at / length * 1000.0, 100.0 - *bytes as f64 / most as f64 * 100.0);
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        let _ = write!(
            out,
            "<svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\"><polyline points=\"{path}\"/></svg>\
             <p>{device}: at most {:.1} MiB.</p>",
            most as f64 / f64::from(1 << 20)
        );
    }
}

fn rows(out: &mut String, rows: &[Row]) {
    let all = table::worked(rows);
    out.push_str(
        "<table><tr><th>what</th><th>device</th><th>count</th><th>ms</th><th>share</th>\
         <th>GB/s</th><th>GFLOP/s</th><th>roofline</th></tr>",
    );
    for row in rows.iter().take(MOST_ROWS) {
        let seconds = row.time.as_secs_f64();
        let rate = |amount: u64| match amount {
            0 => String::new(),
            _ if row.is_hosts => "–".to_owned(),
            _ => format!("{:.1}", amount as f64 / seconds.max(1e-9) / 1e9),
        };
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}{}</td><td>{}</td><td>{:.3}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&row.name),
            escaped(&row.device),
            if row.is_hosts { " (host's time)" } else { "" },
            row.count,
            seconds * 1e3,
            row.share(all).map_or_else(String::new, |share| format!("{share:.1} %")),
            rate(row.bytes),
            rate(row.operations),
            row.of_roofline().map_or_else(String::new, |part| format!("{:.0} %", 100.0 * part)),
        );
    }
    out.push_str("</table>");
    if rows.len() > MOST_ROWS {
        let _ = write!(out, "<p>{} more rows are not shown.</p>", rows.len() - MOST_ROWS);
    }
}

const HEAD: &str = r#"<style>
body { font: 14px system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
table { border-collapse: collapse; } td, th { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd; }
td:first-child, th:first-child { text-align: left; max-width: 60em; overflow-wrap: anywhere; }
canvas { width: 100%; border: 1px solid #ccc; } svg { width: 100%; height: 100px; border: 1px solid #ccc; }
polyline { fill: none; stroke: #2563eb; stroke-width: 1.5; vector-effect: non-scaling-stroke; }
pre { white-space: pre-wrap; min-height: 3em; }
</style></head><body>
"#;

const SCRIPT: &str = r#"
const canvas = document.getElementById('timeline'), about = document.getElementById('about');
const lanes = [...new Set(events.map(e => e[0]))], row = 24;
const end = events.reduce((most, e) => Math.max(most, e[2] + e[3]), 1);
let from = 0, to = end;
function hue(text) { let h = 0; for (const c of text) h = (h * 31 + c.charCodeAt(0)) % 360; return h; }
function draw() {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = lanes.length * row;
  canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + 'px';
  const g = canvas.getContext('2d'); g.scale(ratio, ratio); g.font = '11px system-ui';
  const scale = width / (to - from);
  for (const e of events) {
    if (e[2] + e[3] < from || e[2] > to) continue;
    const x = (e[2] - from) * scale, w = Math.max(e[3] * scale, 1), y = lanes.indexOf(e[0]) * row;
    g.fillStyle = `hsl(${hue(e[1])} 65% 70%)`; g.fillRect(x, y + 2, w, row - 4);
    if (w > 30) { g.save(); g.beginPath(); g.rect(x, y, w, row); g.clip();
      g.fillStyle = '#111'; g.fillText(e[1], Math.max(x, 0) + 3, y + 16); g.restore(); }
  }
  g.fillStyle = '#666'; lanes.forEach((lane, i) => g.fillText(lane, width - g.measureText(lane).width - 4, i * row + 16));
}
canvas.addEventListener('wheel', e => {
  e.preventDefault();
  const at = from + e.offsetX / canvas.clientWidth * (to - from), by = e.deltaY > 0 ? 1.25 : 0.8;
  from = Math.max(0, at - (at - from) * by); to = Math.min(end, at + (to - at) * by); draw();
}, { passive: false });
canvas.addEventListener('mousemove', e => {
  const per = (to - from) / canvas.clientWidth;
  if (e.buttons & 1) {
    const move = Math.min(Math.max(-e.movementX * per, -from), end - to); from += move; to += move; draw(); return;
  }
  const at = from + e.offsetX * per, lane = lanes[Math.floor(e.offsetY / row)];
  const found = events.filter(x => x[0] === lane && x[2] <= at + per && x[2] + Math.max(x[3], per) >= at - per).pop();
  about.textContent = found ? `${found[1]}  ${(found[3] / 1000).toFixed(3)} ms  ${JSON.stringify(found[4])}` : ' ';
});
window.addEventListener('resize', draw); draw();
"#;
