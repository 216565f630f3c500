//! Takes the expected files, and nothing else, out of a `.tar.gz`.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use cupola_core::file;
use flate2::read::GzDecoder;

use super::super::{Error, Result};
use super::catalogue::Member;

/// Unpacks `members` of `archive` into `folder`, each under the last part of its path.
///
/// An entry is taken only if its whole path is that of a member, so no entry's name decides where
/// anything is written.
pub(super) fn unpack(archive: &Path, members: &[Member], folder: &Path) -> Result<()> {
    let damaged =
        |cause: std::io::Error| Error::content(archive, format!("the archive is damaged: {cause}"));
    let (file, _) = file::open(archive).map_err(|cause| Error::io(archive, cause))?;
    let mut tar = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    let mut missing: Vec<&Member> = members.iter().collect();
    for entry in tar.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let path = entry.path_bytes();
        let path = path.strip_prefix(b"./").unwrap_or(&path);
        let Some(place) = missing.iter().position(|member| member.path.as_bytes() == path) else {
            continue;
        };
        let member = missing.swap_remove(place);
        if !entry.header().entry_type().is_file() || entry.size() != member.bytes {
            let (found, expected) = (entry.size(), member.bytes);
            let detail = format!(
                "{} is no file of {expected} bytes in the archive (it has {found})",
                member.path
            );
            return Err(Error::content(archive, detail));
        }
        write(&mut entry, &folder.join(member.name()), archive)?;
        if missing.is_empty() {
            return Ok(());
        }
    }
    let names: Vec<&str> = missing.iter().map(|member| member.path.as_str()).collect();
    Err(Error::content(archive, format!("the archive lacks {}", names.join(", "))))
}

/// Writes beside `path` first, so that a file under its own name is whole.
fn write(entry: &mut impl Read, path: &Path, archive: &Path) -> Result<()> {
    let part = path.with_extension("unpacked");
    let mut file = File::create(&part).map_err(|cause| Error::io(&part, cause))?;
    std::io::copy(entry, &mut file).map_err(|cause| {
        Error::content(archive, format!("unpacking {}: {cause}", path.display()))
    })?;
    std::fs::rename(&part, path).map_err(|cause| Error::io(path, cause))
}
