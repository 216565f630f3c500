//! Fetches the published sets: over HTTP, resumed where it broke off, checked, unpacked.

mod archive;
mod catalogue;
#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;
mod transfer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Error, Published, Result};
use catalogue::Remote;

/// How a download gets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The file is there and whole; nothing is fetched.
    Present {
        /// The published file.
        file: &'a str,
    },
    /// More of the file has come.
    Received {
        /// The published file.
        file: &'a str,
        /// How many bytes are there, those of an earlier try among them.
        bytes: u64,
        /// How many there will be.
        total: u64,
    },
    /// The transfer broke off and is tried again.
    Retrying {
        /// The published file.
        file: &'a str,
        /// What happened.
        reason: &'a str,
    },
    /// The file is here and being checked and unpacked.
    Checking {
        /// The published file.
        file: &'a str,
    },
}

/// Fetches published sets into a folder from which [`Published::read`] reads them.
///
/// What broke off or was stopped is resumed by the next try. A file counts as fetched once its
/// length and its checksum are those that its authors publish; until then its name ends in
/// `.part`.
///
/// # Example
///
/// ```no_run
/// use cupola::data::{Downloader, Progress, Published};
///
/// let mut downloader = Downloader::new().progress(|step| {
///     if let Progress::Received { file, bytes, total } = step {
///         eprintln!("{file}: {bytes} of {total}");
///     }
/// });
/// downloader.fetch(Published::Mnist, "data")?;
/// let (train, test) = Published::Mnist.read("data")?;
/// # let _ = (train, test);
/// # Ok::<(), cupola::data::Error>(())
/// ```
pub struct Downloader<'a> {
    agent: ureq::Agent,
    progress: Box<dyn FnMut(Progress<'_>) + 'a>,
    stop: Option<&'a AtomicBool>,
    /// How long the first wait before another try is.
    pause: Duration,
}

impl Default for Downloader<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Downloader<'a> {
    /// A downloader that reports to nobody.
    pub fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_recv_response(Some(Duration::from_secs(30)))
            .timeout_per_read(Some(Duration::from_secs(30)));
        Self {
            agent: config.build().into(),
            progress: Box::new(|_| {}),
            stop: None,
            pause: Duration::from_millis(500),
        }
    }

    /// Calls `report` as the download gets on.
    pub fn progress(self, report: impl FnMut(Progress<'_>) + 'a) -> Self {
        Self { progress: Box::new(report), ..self }
    }

    /// Stops with [`Error::Stopped`] soon after `flag` turns true; what has come is kept.
    pub fn stop(self, flag: &'a AtomicBool) -> Self {
        Self { stop: Some(flag), ..self }
    }

    /// Fetches what `folder` lacks of `set`, into a sub folder, and returns the sub folder.
    ///
    /// # Errors
    ///
    /// [`Error::Download`] says what each mirror answered, [`Error::Stopped`] that the flag was
    /// raised, [`Error::Io`] and [`Error::Content`] what went wrong on the disk and in an archive.
    pub fn fetch(&mut self, set: Published, folder: impl AsRef<Path>) -> Result<PathBuf> {
        let target = folder.as_ref().join(set.folders()[0]);
        std::fs::create_dir_all(&target).map_err(|cause| Error::io(&target, cause))?;
        for remote in catalogue::files(set) {
            self.fetch_file(&remote, &target)?;
        }
        Ok(target)
    }

    fn fetch_file(&mut self, remote: &Remote, target: &Path) -> Result<()> {
        let file = &remote.name;
        if remote.is_in(target)? {
            (self.progress)(Progress::Present { file });
            return Ok(());
        }
        let part = target.join(format!("{file}.part"));
        self.transfer(remote, &part)?;
        if remote.members.is_empty() {
            let whole = target.join(file);
            return std::fs::rename(&part, &whole).map_err(|cause| Error::io(&whole, cause));
        }
        archive::unpack(&part, &remote.members, target)?;
        std::fs::remove_file(&part).map_err(|cause| Error::io(&part, cause))
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl std::fmt::Debug for Downloader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Downloader").field("stop", &self.stop).finish_non_exhaustive()
    }
}
