//! What a thread is at, shown to tools as ranges with names, one within the other.

use std::sync::OnceLock;

use super::is_on;

/// A tool that shows what a thread is at as ranges with names, one within the other.
pub trait Ranges: Send + Sync {
    /// A range of this name begins on this thread.
    fn push(&self, name: &str);

    /// The innermost range of this thread ends.
    fn pop(&self);
}

/// How a crate makes such a tool known: `inventory::submit!` one of these.
pub struct Tool {
    /// Whether the tool watches this process now. It is asked before each range.
    pub watches: fn() -> bool,
    /// The tool, where it can be reached. It is asked once, when there is somebody to show something to.
    pub open: fn() -> Option<Box<dyn Ranges>>,
}

inventory::collect!(Tool);

/// Who is shown ranges now: nobody while nobody listens, but for the tools that watch this process.
fn shown() -> Option<&'static dyn Ranges> {
    static OPEN: OnceLock<Option<Box<dyn Ranges>>> = OnceLock::new();
    let tools = || inventory::iter::<Tool>();
    match is_on() || tools().any(|tool| (tool.watches)()) {
        true => OPEN.get_or_init(|| tools().find_map(|tool| (tool.open)())).as_deref(),
        false => None,
    }
}

/// A range that ends where this is dropped.
pub(crate) struct Range(&'static dyn Ranges);

/// Begins a range, where there is somebody to show it to.
pub(crate) fn range(name: &str) -> Option<Range> {
    shown().map(|tool| Range::begin(tool, name))
}

/// Begins a range for each of some steps, where there is somebody to show them to.
pub(crate) fn ranges() -> Option<impl Fn(&str) -> Range> {
    shown().map(|tool| move |name: &str| Range::begin(tool, name))
}

impl Range {
    fn begin(tool: &'static dyn Ranges, name: &str) -> Range {
        tool.push(name);
        Range(tool)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        self.0.pop();
    }
}
