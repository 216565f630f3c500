//! Reading `crates/py/docs.txt`: what Python shows beside the documentation of the operations.
//!
//! An entry begins with a name in brackets: `[clip]`, `[random.uniform]`, `[array]`. Lines before
//! the first prompt are text, for what has none in Rust; from there on they are an example, in
//! which `mx` is `cupola.core`.

use std::collections::BTreeMap;
use std::path::Path;

/// What the file says of one name.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub text: Vec<String>,
    pub example: Vec<String>,
}

/// The entries by name.
pub type Entries = BTreeMap<String, Entry>;

pub fn read(path: &Path) -> Result<Entries, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut entries = Entries::new();
    let mut current: Option<Entry> = None;
    let mut name = String::new();
    for line in text.lines().chain(["[]"]) {
        let heading = line.strip_prefix('[').and_then(|l| l.strip_suffix(']'));
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        if let Some(heading) = heading.filter(|h| h.chars().all(is_name)) {
            if let Some(done) = current.replace(Entry::default())
                && entries.insert(std::mem::take(&mut name), done).is_some()
            {
                return Err(format!("{}: an entry comes twice before [{heading}]", path.display()));
            }
            heading.clone_into(&mut name);
            continue;
        }
        let Some(entry) = &mut current else { continue };
        if line.starts_with(">>> ") || !entry.example.is_empty() {
            entry.example.push(line.to_owned());
        } else if !line.is_empty() || !entry.text.is_empty() {
            entry.text.push(line.to_owned());
        }
    }
    for entry in entries.values_mut() {
        for lines in [&mut entry.text, &mut entry.example] {
            while lines.last().is_some_and(String::is_empty) {
                lines.pop();
            }
        }
    }
    Ok(entries)
}

impl Entry {
    /// What comes after `own`: the text, or that of the operation, and the example.
    pub fn added(&self, name: &str, own: &[String], op: &[String]) -> Result<Vec<String>, String> {
        let mut added = match (own.is_empty(), self.text.is_empty()) {
            (true, true) => op.to_vec(),
            (true, false) => self.text.clone(),
            (false, true) => Vec::new(),
            (false, false) => return Err(format!("[{name}] has a text in Rust, and another")),
        };
        if !self.example.is_empty() {
            if !own.is_empty() || !added.is_empty() {
                added.push(String::new());
            }
            added.push("Example:".into());
            added.extend(self.example.iter().map(|line| format!("    {line}")));
        }
        Ok(added)
    }
}
