//! One file over HTTP: mirrors, tries, ranges, length and checksum.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;

use super::super::{Error, Result};
use super::catalogue::{Remote, length, md5};
use super::{Downloader, Progress};

/// Tries in a row that bring no byte before a mirror is given up.
const FRUITLESS: u32 = 3;
/// Tries before a mirror is given up, however much each brings.
const TRIES: u32 = 100;

/// Why a request did not bring the rest of the file.
enum Failure {
    /// Worth another try at the same mirror.
    Broken(String),
    /// This mirror does not have the file.
    Refused(String),
    /// No mirror can help.
    Final(Error),
}

impl Downloader<'_> {
    /// Fetches `remote` into `part`, from where `part` ends now, and checks it.
    pub(super) fn transfer(&mut self, remote: &Remote, part: &Path) -> Result<()> {
        let mut answers = Vec::new();
        for url in &remote.urls {
            match self.try_mirror(url, remote, part) {
                Ok(()) => return Ok(()),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Broken(answer) | Failure::Refused(answer)) => {
                    answers.push(format!("{url}: {answer}"));
                }
            }
        }
        Err(Error::Download { file: remote.name.clone(), detail: answers.join("; ") })
    }

    fn try_mirror(&mut self, url: &str, remote: &Remote, part: &Path) -> Result<(), Failure> {
        let mut fruitless = 0;
        let mut last = String::new();
        for _ in 0..TRIES {
            let before = length(part).unwrap_or(0);
            let outcome = self.request(url, remote, part);
            match outcome.and_then(|()| self.check(remote, part, before)) {
                Err(Failure::Broken(reason)) => last = reason,
                outcome => return outcome,
            }
            fruitless = if length(part).unwrap_or(0) > before { 0 } else { fruitless + 1 };
            if fruitless == FRUITLESS {
                break;
            }
            (self.progress)(Progress::Retrying { file: &remote.name, reason: &last });
            std::thread::sleep(self.pause * fruitless);
        }
        Err(Failure::Broken(last))
    }

    /// Asks once for what `part` lacks, and appends what comes.
    fn request(&mut self, url: &str, remote: &Remote, part: &Path) -> Result<(), Failure> {
        let start = length(part).unwrap_or(0);
        if start == remote.bytes {
            return Ok(());
        }
        if self.is_stopped() {
            return Err(Failure::Final(Error::Stopped { file: remote.name.clone() }));
        }
        if start > remote.bytes {
            discard(part)?;
            return Err(Failure::Broken(format!("{start} bytes were there already")));
        }
        let mut request = self.agent.get(url);
        if start > 0 {
            request = request.header("Range", format!("bytes={start}-"));
        }
        let mut response = request.call().map_err(|error| Failure::Broken(error.to_string()))?;
        let start = match response.status().as_u16() {
            200 => 0,
            206 if start > 0 && starts_at(response.headers().get("content-range"), start) => start,
            206 | 416 if start > 0 => {
                discard(part)?;
                return Err(Failure::Broken(format!("no rest from byte {start} on")));
            }
            _ => return Err(Failure::Refused(format!("answers {}", response.status()))),
        };
        let announced = response.body().content_length().map(|rest| start.saturating_add(rest));
        if let Some(total) = announced.filter(|&total| total != remote.bytes) {
            let detail = format!("has {total} bytes, where {} are expected", remote.bytes);
            return Err(Failure::Refused(detail));
        }
        self.receive(response.body_mut().as_reader(), remote, part, start)
    }

    /// Writes what `body` gives to `part` from `start` on.
    fn receive(
        &mut self,
        mut body: impl Read,
        remote: &Remote,
        part: &Path,
        start: u64,
    ) -> Result<(), Failure> {
        let disk = |cause| Failure::Final(Error::io(part, cause));
        let mut options = OpenOptions::new();
        options.create(true).write(true);
        let options = if start == 0 { options.truncate(true) } else { options.append(true) };
        let mut file = options.open(part).map_err(disk)?;
        let mut buffer = vec![0; 1 << 16];
        let mut bytes = start;
        while bytes < remote.bytes {
            if self.is_stopped() {
                return Err(Failure::Final(Error::Stopped { file: remote.name.clone() }));
            }
            let room = buffer.len().min((remote.bytes - bytes).try_into().unwrap_or(usize::MAX));
            let count = match body.read(&mut buffer[..room]) {
                Ok(0) => {
                    let detail = format!("ends after {bytes} of {} bytes", remote.bytes);
                    return Err(Failure::Broken(detail));
                }
                Ok(count) => count,
                Err(error) => {
                    let detail = format!("after {bytes} of {} bytes: {error}", remote.bytes);
                    return Err(Failure::Broken(detail));
                }
            };
            file.write_all(&buffer[..count]).map_err(disk)?;
            bytes += count as u64;
            let file = remote.name.as_str();
            (self.progress)(Progress::Received { file, bytes, total: remote.bytes });
        }
        file.sync_all().map_err(disk)
    }

    /// Compares the checksum; a file that fails is removed.
    fn check(&mut self, remote: &Remote, part: &Path, before: u64) -> Result<(), Failure> {
        (self.progress)(Progress::Checking { file: &remote.name });
        let sum = md5(part).map_err(Failure::Final)?;
        if sum == remote.md5 {
            return Ok(());
        }
        discard(part)?;
        let detail = format!("has the MD5 sum {sum}, where {} is expected", remote.md5);
        // The bytes that were there before may be the wrong ones.
        Err(if before > 0 { Failure::Broken(detail) } else { Failure::Refused(detail) })
    }
}

fn discard(part: &Path) -> Result<(), Failure> {
    std::fs::remove_file(part).map_err(|cause| Failure::Final(Error::io(part, cause)))
}

/// Whether a `Content-Range` such as `bytes 100-199/200` starts at `start`.
fn starts_at(range: Option<&ureq::http::HeaderValue>, start: u64) -> bool {
    let range = range.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = range.strip_prefix("bytes ").and_then(|rest| rest.split('-').next());
    first.and_then(|first| first.trim().parse().ok()) == Some(start)
}
