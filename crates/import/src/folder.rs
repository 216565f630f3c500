//! The folder of a model of several files. No path leaves it.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cupola_core::backend::reserve;
use cupola_core::file;

use crate::error::Fault;

/// Where external data may lie: the model's folder.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    at: Option<PathBuf>,
    /// The files that were asked for.
    asked: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Folder {
    /// A folder.
    pub fn at(folder: &Path) -> Folder {
        Folder { at: Some(folder.to_owned()), asked: Arc::default() }
    }

    /// The folder of a model's file.
    pub fn of(file: &Path) -> Folder {
        let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
        Folder::at(parent.unwrap_or(Path::new(".")))
    }

    /// So many bytes of a file in the folder, from an offset on.
    pub fn read(&self, location: &str, offset: u64, want: usize) -> Result<Vec<u8>, Fault> {
        let path = self.inside(location)?;
        let failed = |e: std::io::Error| Fault::invalid(format!("external data '{location}': {e}"));
        let (mut file, size) = file::open(&path).map_err(failed)?;
        if offset.checked_add(want as u64).is_none_or(|end| end > size) {
            return Err(Fault::invalid(format!(
                "external data '{location}' has {size} bytes, {want} at {offset} are wanted"
            )));
        }
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let mut bytes = reserve(want, "external data")?;
        bytes.resize(want, 0);
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// The path of a file in the folder, and nowhere else.
    pub fn inside(&self, location: &str) -> Result<PathBuf, Fault> {
        let Some(folder) = &self.at else {
            return Err(Fault::invalid("a model from memory has no external data"));
        };
        let leaves = || Fault::invalid(format!("external data '{location}' leaves the folder"));
        let path = Path::new(location);
        let plain = |c: Component<'_>| matches!(c, Component::Normal(_) | Component::CurDir);
        if location.is_empty() || location.contains('\\') || !path.components().all(plain) {
            return Err(leaves());
        }
        let failed = |e: std::io::Error| Fault::invalid(format!("external data '{location}': {e}"));
        let folder = folder.canonicalize().map_err(failed)?;
        // Links count as what they point at.
        let path = folder.join(path).canonicalize().map_err(failed)?;
        if !path.starts_with(&folder) || !path.is_file() {
            return Err(leaves());
        }
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone());
        Ok(path)
    }

    /// The files in it that were asked for.
    pub fn asked(&self) -> Vec<PathBuf> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().cloned().collect()
    }
}
