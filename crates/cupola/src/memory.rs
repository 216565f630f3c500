//! How much memory a device uses, who holds it, and how that goes over time.
//!
//! ```
//! use cupola::{Array, DType, Device, memory, ops};
//! let recording = memory::History::record(10_000)?;
//! let x = ops::ones([256, 256], DType::F32)?;
//! (&x + &x).eval()?;
//! let history = recording.stop()?;
//! assert!(history.peak(Device::CPU) >= 256 * 256 * 4);
//! assert!(history.to_svg(Device::CPU).starts_with("<svg"));
//! # Ok::<(), cupola::Error>(())
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use cupola_core::backend::{backend, memory_guideline, memory_limit, set_memory_limit};
use cupola_core::holders::{self, Change};
use cupola_core::plan::cache;
use cupola_core::{Device, Error, Result};
use serde_json::{Value, json};

use crate::markup::escaped;
use crate::origin;

pub use cupola_core::holders::{Holder, largest};

/// What a device's memory is used for, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Held by arrays, and by what runs.
    pub active: usize,
    /// The most that was ever active, or since the peak was reset.
    pub peak: usize,
    /// Freed, and kept for reuse.
    pub cached: usize,
    /// Of the host: the plans of what was computed.
    pub plans: usize,
    /// What the driver, or the system, gave: active and cached.
    pub driver_allocated: usize,
    /// What the device has, where it says.
    pub recommended_max: Option<usize>,
    /// The bound past which an evaluation fails.
    pub limit: Option<usize>,
    /// The bound past which freed memory goes back.
    pub guideline: Option<usize>,
    /// What arrays of 64 KiB and more hold, by the operation that made them.
    pub by_op: BTreeMap<&'static str, usize>,
}

/// What the memory of `device` is used for.
///
/// # Errors
/// Where there is no such device.
pub fn stats(device: Device) -> Result<Stats> {
    let on = backend(device)?;
    let memory = on.memory();
    let mut by_op = BTreeMap::new();
    for holder in holders::all(device) {
        *by_op.entry(holder.op).or_insert(0) += holder.bytes;
    }
    Ok(Stats {
        active: memory.active,
        peak: memory.peak,
        cached: memory.cached,
        plans: cache::stats().bytes,
        driver_allocated: memory.active + memory.cached,
        recommended_max: on.capacity(),
        limit: memory_limit(),
        guideline: memory_guideline(),
        by_op,
    })
}

/// Bounds the memory that arrays of one device may hold to a part of what `device` has: an evaluation that
/// needs more fails. Gives the bound, in bytes.
///
/// # Errors
/// Where the part is not above 0 and at most 1, or the device does not say what it has.
pub fn set_fraction(device: Device, fraction: f64) -> Result<usize> {
    const OP: &str = "set_memory_fraction";
    if !(fraction > 0.0 && fraction <= 1.0) {
        return Err(Error::argument(OP, format!("{fraction} is not above 0 and at most 1")));
    }
    let Some(capacity) = backend(device)?.capacity() else {
        let detail = format!("{device} does not say how much memory it has; set a limit in bytes");
        return Err(Error::argument(OP, detail));
    };
    let limit = (capacity as f64 * fraction) as usize;
    set_memory_limit(Some(limit));
    Ok(limit)
}

/// Who held memory, over time.
#[derive(Clone, Debug)]
pub struct History(holders::History);

/// A [`History`] in the making. Dropped, it ends, and nothing was noted.
#[derive(Debug)]
pub struct Recording {
    is_stopped: bool,
}

impl Recording {
    /// Ends the recording.
    ///
    /// # Errors
    /// Where it ended already.
    pub fn stop(mut self) -> Result<History> {
        self.is_stopped = true;
        Ok(History(holders::stop_history()?))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.is_stopped {
            drop(holders::stop_history());
        }
    }
}

/// How many columns a picture has.
const COLUMNS: usize = 400;
/// How many groups have a colour of their own.
const GROUPS: usize = 10;
const COLOURS: [&str; GROUPS + 1] = [
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#bcbd22",
    "#17becf", "#aec7e8", "#c7c7c7",
];

impl History {
    /// Begins to note what happens to buffers of 64 KiB and more; at most `most` changes are kept.
    ///
    /// # Errors
    /// Where one is being recorded already.
    pub fn record(most: usize) -> Result<Recording> {
        origin::note();
        holders::start_history(most)?;
        Ok(Recording { is_stopped: false })
    }

    /// What happened, in order.
    pub fn changes(&self) -> &[Change] {
        &self.0.changes
    }

    /// How many changes were not kept.
    pub fn lost(&self) -> usize {
        self.0.lost
    }

    /// The most bytes that large buffers of `device` held.
    pub fn peak(&self, device: Device) -> usize {
        let (mut most, mut now) = (0, 0);
        self.follow(device, |_, held| {
            now = held.values().map(|(_, bytes)| bytes).sum();
            most = most.max(now);
        });
        most
    }

    /// Calls `f` after each change with its time and what each buffer then holds: by whom, and bytes.
    fn follow(&self, device: Device, mut f: impl FnMut(f64, &HashMap<u64, (String, usize)>)) {
        let mut held: HashMap<u64, (String, usize)> = HashMap::new();
        for change in &self.0.changes {
            match &change.holder {
                Some(holder) if holder.device == device => {
                    held.insert(change.buffer, (group(holder), holder.bytes));
                }
                _ if held.remove(&change.buffer).is_none() => continue,
                _ => {}
            }
            f(change.at.as_secs_f64(), &held);
        }
    }

    /// Bytes by group for each column of time: where the sum was largest in it.
    fn columns(&self, device: Device) -> Vec<BTreeMap<String, usize>> {
        let length = self.0.length.as_secs_f64().max(f64::MIN_POSITIVE);
        let mut columns: Vec<Option<BTreeMap<String, usize>>> = vec![None; COLUMNS];
        let mut last = BTreeMap::new();
        let total = |groups: &BTreeMap<String, usize>| groups.values().sum::<usize>();
        let mut filled = 0;
        self.follow(device, |at, held| {
            let column = ((at / length * COLUMNS as f64) as usize).min(COLUMNS - 1);
            // What held before the change held until here.
            for empty in &mut columns[filled..=column] {
                empty.get_or_insert_with(|| last.clone());
            }
            filled = column;
            last.clear();
            for (group, bytes) in held.values() {
                *last.entry(group.clone()).or_insert(0) += bytes;
            }
            if let Some(most) = columns[column].as_mut().filter(|most| total(most) < total(&last)) {
                *most = last.clone();
            }
        });
        columns.into_iter().map(|column| column.unwrap_or_else(|| last.clone())).collect()
    }

    /// All of it, for programs: times in microseconds, sizes in bytes.
    pub fn to_json(&self) -> Value {
        let change = |change: &Change| match &change.holder {
            Some(holder) => json!({
                "us": change.at.as_micros() as u64,
                "buffer": change.buffer,
                "device": holder.device.to_string(),
                "bytes": holder.bytes,
                "op": holder.op,
                "shape": holder.aval.shape.to_vec(),
                "dtype": holder.aval.dtype.to_string(),
                "line": holder.line.as_deref(),
            }),
            None => {
                json!({"us": change.at.as_micros() as u64, "buffer": change.buffer, "bytes": 0})
            }
        };
        json!({
            "us": self.0.length.as_micros() as u64,
            "lost": self.0.lost,
            "changes": self.0.changes.iter().map(change).collect::<Vec<_>>(),
        })
    }

    /// A picture of what large buffers of `device` held over time, in layers: a layer for each line of the
    /// program that made them, or each operation where lines are not known.
    pub fn to_svg(&self, device: Device) -> String {
        let columns = self.columns(device);
        let mut peaks: BTreeMap<&str, usize> = BTreeMap::new();
        for (group, &bytes) in columns.iter().flatten() {
            let peak = peaks.entry(group).or_insert(0);
            *peak = bytes.max(*peak);
        }
        let mut groups: Vec<(&str, usize)> = peaks.into_iter().collect();
        groups.sort_by_key(|&(group, peak)| (std::cmp::Reverse(peak), group));
        let own: Vec<&str> = groups.iter().take(GROUPS).map(|&(group, _)| group).collect();
        let layer = |group: &str| own.iter().position(|&g| g == group).unwrap_or(GROUPS);
        // What lies below the top of each layer, by column.
        let stacks: Vec<[usize; GROUPS + 1]> = columns
            .iter()
            .map(|column| {
                let mut sums = [0; GROUPS + 1];
                for (group, bytes) in column {
                    sums[layer(group)] += bytes;
                }
                let mut below = 0;
                sums.map(|bytes| {
                    below += bytes;
                    below
                })
            })
            .collect();
        let most = stacks.iter().map(|stack| stack[GROUPS]).max().unwrap_or(0).max(1);
        draw(device, &stacks, most, &groups, self.0.length.as_secs_f64())
    }
}

/// Who a buffer counts for.
fn group(holder: &Holder) -> String {
    match &holder.line {
        Some(line) => format!("{line} {}", holder.op),
        None => holder.op.to_owned(),
    }
}

fn draw(
    device: Device,
    stacks: &[[usize; GROUPS + 1]],
    most: usize,
    groups: &[(&str, usize)],
    seconds: f64,
) -> String {
    const LEFT: f64 = 70.0;
    const TOP: f64 = 40.0;
    const HEIGHT: f64 = 300.0;
    const WIDTH: f64 = 800.0;
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let x = |column: usize| LEFT + WIDTH * column as f64 / stacks.len().max(1) as f64;
    let y = |bytes: usize| TOP + HEIGHT * (1.0 - bytes as f64 / most as f64);
    let bottom = TOP + HEIGHT;
    let height = bottom + 40.0 + 18.0 * (groups.len().min(GROUPS + 1)) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"900\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-weight=\"bold\">Memory of {device} over {seconds:.3} s, at \
         most {:.1} MiB in arrays of 64 KiB and more</text>\n\
         <text x=\"4\" y=\"{TOP}\">{:.1} MiB</text><text x=\"4\" y=\"{bottom}\">0</text>\n",
        mib(most),
        mib(most)
    );
    for layer in 0..=GROUPS {
        let top: String = (0..stacks.len())
            .flat_map(|c| [(c, c), (c + 1, c)])
            .map(|(at, c)| format!("{:.1},{:.1} ", x(at), y(stacks[c][layer])))
            .collect();
        let under = |c: usize| if layer == 0 { 0 } else { stacks[c][layer - 1] };
        let below: String = (0..stacks.len())
            .rev()
            .flat_map(|c| [(c + 1, c), (c, c)])
            .map(|(at, c)| format!("{:.1},{:.1} ", x(at), y(under(c))))
            .collect();
        if (0..stacks.len()).any(|c| stacks[c][layer] > under(c)) {
            let colour = COLOURS[layer];
            let _ = writeln!(svg, "<polygon fill=\"{colour}\" points=\"{top}{below}\"/>");
        }
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{LEFT},{TOP} V{bottom} H{}\" fill=\"none\" stroke=\"black\"/>",
        LEFT + WIDTH
    );
    for (index, (group, peak)) in groups.iter().enumerate().take(GROUPS + 1) {
        let (at, colour) = (bottom + 30.0 + 18.0 * index as f64, COLOURS[index]);
        let name = if index == GROUPS { "everything else" } else { group };
        let most = if index == GROUPS {
            String::new()
        } else {
            format!(" (at most {:.1} MiB)", mib(*peak))
        };
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{at}\">{}{most}</text>",
            at - 11.0,
            LEFT + 18.0,
            escaped(name)
        );
    }
    svg + "</svg>\n"
}
