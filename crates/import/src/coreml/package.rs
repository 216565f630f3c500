//! A package of Core ML: a folder whose manifest says where its model lies.

use std::path::{Path, PathBuf};

use cupola_core::file;
use serde_json::Value;

use crate::error::{Error, Fault, Result};
use crate::folder::Folder;

/// The largest manifest that is read; those that tools write have a few hundred bytes.
const MOST_MANIFEST: u64 = 1 << 20;

/// The model's file of a package, or the file itself.
pub fn model_file(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let manifest = path.join("Manifest.json");
    let shown = manifest.display().to_string();
    let wrong = |detail: &str| Error::file(&shown, detail);
    let text = file::read(&manifest, MOST_MANIFEST).map_err(|e| wrong(&e.to_string()))?;
    let text: Value =
        serde_json::from_slice(&text).map_err(|e| wrong(&format!("is no manifest: {e}")))?;
    let root = text.get("rootModelIdentifier").and_then(Value::as_str);
    let root = root.ok_or_else(|| wrong("has no rootModelIdentifier"))?;
    let item = text.get("itemInfoEntries").and_then(|items| items.get(root)?.get("path")?.as_str());
    let item = item.ok_or_else(|| wrong(&format!("has no path of the item '{root}'")))?;
    let inside = Folder::at(&path.join("Data")).inside(item);
    inside.map_err(|fault: Fault| wrong(&format!("the item '{root}': {fault}")))
}
