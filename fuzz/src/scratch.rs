//! A folder for readers that want a path.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

/// The path of a file in it.
pub fn path(name: &str) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().expect("a temporary folder")).path().join(name)
}

/// The path of a file that holds `data`.
pub fn file(name: &str, data: &[u8]) -> PathBuf {
    let path = path(name);
    written(&path, data).expect("the temporary folder can be written to");
    path
}

/// Writes over what the file held: file systems take their time over one that is cut off first.
fn written(path: &Path, data: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.write_all(data)?;
    file.set_len(data.len() as u64)
}
