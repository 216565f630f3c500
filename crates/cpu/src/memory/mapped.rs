//! Files as memory of the CPU.

use std::any::Any;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use cupola_core::backend::{Buffer, Kept, Memory};
use cupola_core::{Device, Error, Result};

/// So many files are mapped at most. Each is held open, of which a process may often have 1024.
const MOST: usize = 256;

static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// The content of `file`, whose name is `path`, as memory that is only read. The system brings in what is read when it
/// is read, so that this costs as much for a large file as for a small one.
///
/// A file that is changed in place takes the arrays in it away: whoever reads them gets an error, or, where the file
/// changes while they are read, what is there. Files that Cupola writes are others under the same name.
///
/// # Errors
/// Where the file is no regular one, is empty, or cannot be mapped, or 256 are mapped already.
pub fn map(file: File, path: &Path) -> std::io::Result<Buffer> {
    let known = file.metadata()?;
    if !known.is_file() {
        return Err(std::io::Error::new(ErrorKind::Unsupported, "only regular files are mapped"));
    }
    let (stamp, place) = (Stamp::of(&known)?, Place::take()?);
    // SAFETY: the memory is only read, and any content is a value. That nobody changes the file meanwhile is asked
    // of the caller: no program can keep others from it.
    let content = unsafe { memmap2::Mmap::map(&file)? };
    let (path, kept) = (path.to_owned(), Kept::default());
    Ok(Buffer::new(Mapped { content, file, path, stamp, kept, _place: place }))
}

/// Memory of [`map`].
struct Mapped {
    content: memmap2::Mmap,
    file: File,
    path: PathBuf,
    stamp: Stamp,
    kept: Kept,
    _place: Place,
}

/// One of the files that may be mapped.
struct Place;

impl Place {
    fn take() -> std::io::Result<Place> {
        let place = Place;
        match MAPPED.fetch_add(1, Ordering::Relaxed) < MOST {
            true => Ok(place),
            false => Err(std::io::Error::other("as many files as may be are mapped")),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What tells whether a file was changed.
#[derive(PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    changed: SystemTime,
}

impl Stamp {
    fn of(known: &Metadata) -> std::io::Result<Stamp> {
        Ok(Stamp { bytes: known.len(), changed: known.modified()? })
    }
}

impl Memory for Mapped {
    fn bytes(&self) -> usize {
        self.content.len()
    }

    fn device(&self) -> Device {
        Device::CPU
    }

    fn host(&self) -> Option<&[u8]> {
        Some(&self.content)
    }

    fn is_lent(&self) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        match self.file.metadata().and_then(|known| Stamp::of(&known)) {
            Ok(now) if now == self.stamp => Ok(()),
            _ => Err(Error::io(
                &self.path,
                "was changed in place after it was loaded, and arrays lie in it: load it again",
            )),
        }
    }

    fn kept(&self) -> Option<&Kept> {
        Some(&self.kept)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::map;

    #[test]
    fn the_content_is_there_and_stays_when_another_file_takes_the_name() {
        let path = std::env::temp_dir().join(format!("cupola-map-{}", std::process::id()));
        std::fs::File::create(&path).and_then(|mut f| f.write_all(b"content")).expect("a file");
        let open = || std::fs::File::open(&path).expect("a file");
        let buffer = map(open(), &path).expect("memory");
        std::fs::remove_file(&path).expect("the file");
        std::fs::write(&path, b"other").expect("a file");
        assert_eq!(buffer.host(), Some(&b"content"[..]));
        assert!(buffer.is_lent() && buffer.check().is_ok());
        let other = map(open(), &path).expect("memory");
        std::fs::write(&path, b"shorter").expect("a file");
        assert!(other.check().unwrap_err().to_string().contains("changed in place"));
        assert!(buffer.check().is_ok());
        std::fs::remove_file(&path).expect("the file");
        let folder = std::env::temp_dir();
        assert!(map(std::fs::File::open(&folder).expect("a folder"), &folder).is_err());
    }
}
