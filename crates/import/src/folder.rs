//! The folder of a model of several files. No path leaves it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use crate::error::Fault;

/// Where external data may lie: the model's folder.
#[derive(Clone, Debug, Default)]
pub struct Folder(Option<PathBuf>);

impl Folder {
    /// A folder.
    pub fn at(folder: &Path) -> Folder {
        Folder(Some(folder.to_owned()))
    }

    /// The folder of a model's file.
    pub fn of(file: &Path) -> Folder {
        let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
        Folder(Some(parent.unwrap_or(Path::new(".")).to_owned()))
    }

    /// So many bytes of a file in the folder, from an offset on.
    pub fn read(&self, location: &str, offset: u64, want: usize) -> Result<Vec<u8>, Fault> {
        let path = self.inside(location)?;
        let failed = |e: std::io::Error| Fault::invalid(format!("external data '{location}': {e}"));
        let mut file = File::open(&path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        if offset.checked_add(want as u64).is_none_or(|end| end > size) {
            return Err(Fault::invalid(format!(
                "external data '{location}' has {size} bytes, {want} at {offset} are wanted"
            )));
        }
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let mut bytes = vec![0; want];
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// The path of a file in the folder, and nowhere else.
    pub fn inside(&self, location: &str) -> Result<PathBuf, Fault> {
        let Some(folder) = &self.0 else {
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
        Ok(path)
    }
}
