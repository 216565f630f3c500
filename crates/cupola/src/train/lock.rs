//! One training a folder at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use cupola_core::{Error, Result};

use crate::io;

/// The name of the lock in a run's folder; it holds the number of the process.
pub const LOCK_FILE: &str = ".cupola.lock";

/// The right to write into a run's folder, which one process has at a time. The system takes it back
/// from a process that ends, however it ends, so that no lock is stale.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    file: File,
}

impl RunLock {
    /// Takes the lock of `folder`, and removes what a run that was killed had not finished writing.
    ///
    /// # Errors
    /// Where another process has it, which the error names, or the folder cannot be written to.
    ///
    /// # Example
    /// ```
    /// use cupola::train::RunLock;
    /// let folder = tempfile::tempdir()?;
    /// let lock = RunLock::take(folder.path())?;
    /// assert!(RunLock::take(folder.path()).is_err());
    /// drop(lock);
    /// RunLock::take(folder.path())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take(folder: impl AsRef<Path>) -> Result<RunLock> {
        let folder = folder.as_ref();
        let path = folder.join(LOCK_FILE);
        let failed =
            |cause: std::io::Error| Error::io(&path, format!("cannot be written: {cause}"));
        // What a link leads to is somebody else's, and to open a pipe would wait.
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return Err(Error::io(&path, "is no file"));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        loop {
            let mut file = options.open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut owner = String::new();
                    let _ = file.read_to_string(&mut owner);
                    let owner = match owner.trim() {
                        "" => "another process".to_owned(),
                        number => format!("process {number}"),
                    };
                    return Err(Error::io(folder, format!("{owner} is training here")));
                }
                Err(TryLockError::Error(cause)) => {
                    // Where nobody can lock, a file without an owner's number is of no use.
                    if file.metadata().is_ok_and(|file| file.len() == 0) {
                        let _ = std::fs::remove_file(&path);
                    }
                    return Err(failed(cause));
                }
            }
            // Who had it before may have removed the file between the two steps.
            if !is_at(&file, &path) {
                continue;
            }
            let mut lock = RunLock { path: path.clone(), file };
            let written = lock.file.set_len(0);
            written.and_then(|()| writeln!(lock.file, "{}", std::process::id())).map_err(failed)?;
            io::sweep(folder);
            return Ok(lock);
        }
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // While it is locked: nobody else can have taken it for theirs.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Whether `file` is the one that has the name `path`.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        match (file.metadata(), std::fs::metadata(path)) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_in_the_making_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".cupola-x1.tmp", ".cupola-mine", "notes", ".hidden"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        // Left by a process that was killed: nobody holds it.
        std::fs::write(folder.path().join(LOCK_FILE), "1\n").unwrap();
        let lock = RunLock::take(folder.path()).unwrap();
        let error = RunLock::take(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("process {} is training", std::process::id())), "{error}");
        drop(lock);
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [".cupola-mine", ".hidden", "notes"]);
    }
}
