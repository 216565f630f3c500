//! The files of a package: in a folder, or stored as they are in one zip, each from a multiple of 64 bytes
//! on, so that they can be mapped.
//!
//! Archives are written with the fields of zip64 throughout: one form for any size. When one is read, what
//! is compressed, encrypted, twice there or outside of the file is an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use cupola_core::backend::{Buffer, reserve};
use cupola_core::{Error, Result};
use sha2::{Digest, Sha256};

use super::FILES;
use crate::io::{Replacement, folder_beside};

/// What data in an archive is aligned to.
pub const ALIGNMENT: u64 = 64;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR: u32 = 0x0706_4b50;
/// The version that knows zip64.
const VERSION: u16 = 45;
/// Names are UTF-8.
const UTF_8: u16 = 1 << 11;
/// The first of January 1980: nothing of the time is written.
const DATE: u16 = 0x21;
/// The extra field of long sizes, and the one that Android fills up with.
const LONG: u16 = 1;
const FILLER: u16 = 0xd935;
/// The lengths of a local header and of the end record.
const LOCAL_LENGTH: u64 = 30;
const END_LENGTH: u64 = 22;
const LOCATOR_LENGTH: u64 = 20;
const END_64_LENGTH: u64 = 56;

/// So long the list of an archive's files may be.
const MOST_LIST: u64 = 1 << 20;

/// What was written of a file.
pub struct Written {
    pub bytes: u64,
    pub sha256: String,
}

/// A writer that counts and hashes what goes through.
struct Counted<'w> {
    to: &'w mut dyn Write,
    bytes: u64,
    sum: flate2::Crc,
    hash: Sha256,
}

impl<'w> Counted<'w> {
    fn new(to: &'w mut dyn Write) -> Self {
        Counted { to, bytes: 0, sum: flate2::Crc::new(), hash: Sha256::new() }
    }

    fn done(self) -> (Written, u32) {
        (Written { bytes: self.bytes, sha256: hex(&self.hash.finalize()) }, self.sum.sum())
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.to.write(bytes)?;
        self.bytes += count as u64;
        self.sum.update(&bytes[..count]);
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Bytes as digits, as the manifest has them.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What writes the content of a file.
pub type Content<'c> = &'c mut dyn FnMut(&mut dyn Write) -> Result<()>;

/// A package that is written.
pub enum Sink {
    /// One archive, and what is listed at its end.
    Archive { file: Replacement, listed: Vec<u8>, count: u16 },
    /// A new folder, which takes the name in the end.
    Folder { new: tempfile::TempDir, path: PathBuf, _held: Option<File> },
}

impl Sink {
    /// An archive at `path`, or a folder where one is there or the path ends like one.
    pub fn new(path: &Path) -> Result<Sink> {
        let text = path.as_os_str().to_string_lossy();
        if path.is_dir() || text.ends_with(std::path::MAIN_SEPARATOR) || text.ends_with('/') {
            return Self::folder(path);
        }
        Ok(Sink::Archive { file: Replacement::in_any_order(path)?, listed: Vec::new(), count: 0 })
    }

    fn folder(path: &Path) -> Result<Sink> {
        let failed = |cause: std::io::Error| Error::io(path, format!("cannot be written: {cause}"));
        // Without the sign at its end that makes it a folder's name, which would follow links.
        let mut place: PathBuf = path.components().collect();
        if place.symlink_metadata().is_ok() {
            place = place.canonicalize().map_err(failed)?;
            if let Some(name) = foreign(&place).map_err(failed)? {
                let detail = format!("is a folder of something else: it holds {name}");
                return Err(Error::io(path, detail));
            }
        }
        let (new, held) = folder_beside(&place).map_err(failed)?;
        Ok(Sink::Folder { new, path: place, _held: held })
    }

    /// Writes the file `name`.
    pub fn add(&mut self, name: &str, content: Content<'_>) -> Result<Written> {
        match self {
            Sink::Folder { new, path, .. } => {
                let to = new.path().join(name);
                let failed = |cause: std::io::Error| {
                    Error::io(path.join(name), format!("cannot be written: {cause}"))
                };
                let mut file = std::io::BufWriter::new(File::create(&to).map_err(failed)?);
                let mut counted = Counted::new(&mut file);
                content(&mut counted)?;
                let (written, _) = counted.done();
                file.flush().map_err(failed)?;
                // A file keeps its permissions where another takes its place.
                if let Ok(known) = path.join(name).metadata() {
                    file.get_ref().set_permissions(known.permissions()).map_err(failed)?;
                }
                file.get_ref().sync_all().map_err(failed)?;
                Ok(written)
            }
            Sink::Archive { file, listed, count } => {
                let path = file.name().to_owned();
                let failed =
                    |cause: std::io::Error| Error::io(&path, format!("cannot be written: {cause}"));
                let to = file.file();
                let start = to.stream_position().map_err(failed)?;
                // What is not known yet is written over it.
                let space = local(name, start, &Written { bytes: 0, sha256: String::new() }, 0);
                to.write_all(&space).map_err(failed)?;
                let mut buffered = std::io::BufWriter::new(&mut *to);
                let mut counted = Counted::new(&mut buffered);
                content(&mut counted)?;
                let (written, sum) = counted.done();
                buffered.flush().map_err(failed)?;
                drop(buffered);
                let end = to.stream_position().map_err(failed)?;
                to.seek(SeekFrom::Start(start)).map_err(failed)?;
                to.write_all(&local(name, start, &written, sum)).map_err(failed)?;
                to.seek(SeekFrom::Start(end)).map_err(failed)?;
                listed.extend(central(name, start, &written, sum));
                *count += 1;
                Ok(written)
            }
        }
    }

    /// Gives the package its name.
    pub fn keep(self) -> Result<()> {
        match self {
            Sink::Archive { mut file, listed, count } => {
                let path = file.name().to_owned();
                let failed =
                    |cause: std::io::Error| Error::io(&path, format!("cannot be written: {cause}"));
                let to = file.file();
                let start = to.stream_position().map_err(failed)?;
                to.write_all(&listed).map_err(failed)?;
                to.write_all(&ends(start, listed.len() as u64, count)).map_err(failed)?;
                file.keep()
            }
            Sink::Folder { new, path, .. } => swap(new, &path)
                .map_err(|cause| Error::io(&path, format!("cannot be written: {cause}"))),
        }
    }
}

/// The name of something in a folder that does not make it a package, to be replaced as a whole: what is no file of
/// one, or any where others are missing.
fn foreign(folder: &Path) -> std::io::Result<Option<String>> {
    let mut names = Vec::new();
    for entry in folder.read_dir()? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let is_whole = FILES.iter().all(|own| names.iter().any(|name| name == own));
    Ok(names.into_iter().find(|name| !is_whole || !FILES.contains(&name.as_str())))
}

/// Gives a folder its name; one that was there goes, and leaves its permissions.
fn swap(new: tempfile::TempDir, path: &Path) -> std::io::Result<()> {
    let Ok(known) = path.metadata() else {
        std::fs::rename(new.path(), path)?;
        // What lies there under its old name is nothing.
        let _ = new.keep();
        return Ok(());
    };
    std::fs::set_permissions(new.path(), known.permissions())?;
    if exchange(new.path(), path).is_ok() {
        // The package is there; whether the old one can be removed is another question.
        let _ = new.close();
        return Ok(());
    }
    // Where two cannot change places at once there is none between two renames: a folder cannot take the place of
    // another one that has files.
    // Nobody sweeps a folder of this name: it may be all there is.
    let kept = new.path().with_extension("old");
    std::fs::rename(path, &kept)?;
    if let Err(cause) = std::fs::rename(new.path(), path) {
        std::fs::rename(&kept, path)?;
        return Err(cause);
    }
    let _ = (new.keep(), std::fs::remove_dir_all(kept));
    Ok(())
}

/// Lets two folders change places.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Little-endian numbers one after the other.
macro_rules! fields {
    ($($field:expr),* $(,)?) => {{
        let mut out: Vec<u8> = Vec::new();
        $(out.extend_from_slice(&$field.to_le_bytes());)*
        out
    }};
}

fn local(name: &str, start: u64, written: &Written, sum: u32) -> Vec<u8> {
    // Long sizes take 20 bytes, and the filler's own header 4.
    let bare = start + LOCAL_LENGTH + name.len() as u64 + 20 + 4;
    let filler = bare.next_multiple_of(ALIGNMENT) - bare;
    let mut out = fields![LOCAL, VERSION, UTF_8, 0u16, 0u16, DATE, sum, u32::MAX, u32::MAX];
    out.extend(fields![name.len() as u16, 24 + filler as u16]);
    out.extend(name.as_bytes());
    out.extend(fields![LONG, 16u16, written.bytes, written.bytes, FILLER, filler as u16]);
    out.resize(out.len() + filler as usize, 0);
    out
}

fn central(name: &str, start: u64, written: &Written, sum: u32) -> Vec<u8> {
    let mut out = fields![CENTRAL, VERSION, VERSION, UTF_8, 0u16, 0u16, DATE, sum];
    out.extend(fields![u32::MAX, u32::MAX, name.len() as u16, 28u16, 0u16, 0u16, 0u16, 0u32]);
    out.extend(fields![u32::MAX]);
    out.extend(name.as_bytes());
    out.extend(fields![LONG, 24u16, written.bytes, written.bytes, start]);
    out
}

fn ends(start: u64, length: u64, count: u16) -> Vec<u8> {
    let all = u64::from(count);
    let mut out = fields![END_64, END_64_LENGTH - 12, VERSION, VERSION, 0u32, 0u32, all, all];
    out.extend(fields![length, start, LOCATOR, 0u32, start + length, 1u32]);
    out.extend(fields![END, 0u16, 0u16, count, count, u32::MAX, u32::MAX, 0u16]);
    out
}

/// Where a file of a package lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    start: u64,
    bytes: u64,
}

/// A package that is read.
pub struct Source {
    path: PathBuf,
    /// The files of an archive; `None` of a folder.
    listed: Option<BTreeMap<String, Place>>,
}

impl Source {
    /// Looks what is in the package at `path`.
    pub fn open(path: &Path) -> Result<Source> {
        let path = path.to_owned();
        if path.is_dir() {
            return Ok(Source { path, listed: None });
        }
        let opened = cupola_core::file::open(&path);
        let (mut file, length) = opened.map_err(|e| unreadable(&path, &e))?;
        let listed = list(&mut file, length).map_err(|detail| Error::io(&path, detail))?;
        Ok(Source { path, listed: Some(listed) })
    }

    /// The file, for messages.
    pub fn name(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// The file that a file of the package lies in, and where.
    fn place(&self, name: &str) -> Result<(PathBuf, Place)> {
        match &self.listed {
            None => {
                let label = self.name(name);
                let known = std::fs::metadata(&label).map_err(|e| unreadable(&label, &e))?;
                match known.is_file() {
                    true => Ok((label, Place { start: 0, bytes: known.len() })),
                    false => Err(Error::io(&label, "is no file")),
                }
            }
            Some(listed) => {
                let place = listed.get(name);
                let missing = || Error::io(&self.path, format!("has no {name}: no package"));
                Ok((self.path.clone(), *place.ok_or_else(missing)?))
            }
        }
    }

    /// The content of a file of it: memory, and its bytes there.
    pub fn memory(&self, name: &str) -> Result<(Buffer, Range<usize>)> {
        let (path, Place { start, bytes }) = self.place(name)?;
        let memory = crate::io::content(&path)?;
        let (start, end) = (start as usize, (start + bytes) as usize);
        match end <= memory.bytes() {
            true => Ok((memory, start..end)),
            false => Err(Error::io(path, format!("ends before byte {end}, where {name} ends"))),
        }
    }

    /// A file of it from its start on, and how long it is.
    pub fn file(&self, name: &str) -> Result<(std::io::Take<File>, u64)> {
        let label = self.name(name);
        let (path, place) = self.place(name)?;
        let mut file = File::open(&path).map_err(|e| unreadable(&path, &e))?;
        file.seek(SeekFrom::Start(place.start)).map_err(|e| unreadable(&label, &e))?;
        Ok((file.take(place.bytes), place.bytes))
    }

    /// The content of a file that has at most so many bytes.
    pub fn content(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        let (mut file, bytes) = self.file(name)?;
        let label = self.name(name);
        if bytes > most {
            return Err(Error::io(label, format!("{bytes} bytes are more than {most}")));
        }
        let mut content = reserve(bytes as usize, name)?;
        file.read_to_end(&mut content).map_err(|e| unreadable(&label, &e))?;
        match content.len() as u64 == bytes {
            true => Ok(content),
            false => {
                Err(Error::io(label, format!("ends after {} of {bytes} bytes", content.len())))
            }
        }
    }

    /// The hash of a file's content.
    pub fn sha256(&self, name: &str) -> Result<String> {
        let (mut file, _) = self.file(name)?;
        let mut hash = Sha256::new();
        let mut block = vec![0; 1 << 16];
        loop {
            match file.read(&mut block).map_err(|e| unreadable(&self.name(name), &e))? {
                0 => return Ok(hex(&hash.finalize())),
                count => hash.update(&block[..count]),
            }
        }
    }
}

fn unreadable(path: &Path, cause: &std::io::Error) -> Error {
    Error::io(path, format!("cannot be read: {cause}"))
}

/// Numbers of a header, read one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("a header is cut short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.take(2).map(|b| u16::from_le_bytes([b[0], b[1]]))
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.take(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    fn u64(&mut self) -> Result<u64, String> {
        let (low, high) = (self.u32()?, self.u32()?);
        Ok(u64::from(low) | u64::from(high) << 32)
    }
}

/// So many bytes of a file from `start` on.
fn at(file: &mut File, start: u64, bytes: u64) -> Result<Vec<u8>, String> {
    let mut out = vec![0; bytes as usize];
    let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut out));
    read.map(|()| out).map_err(|cause| format!("byte {start}: cannot be read: {cause}"))
}

/// The files of an archive of `length` bytes.
fn list(file: &mut File, length: u64) -> Result<BTreeMap<String, Place>, String> {
    let no = || "is no package: it does not end as an archive does".to_owned();
    let end = length.checked_sub(END_LENGTH).ok_or_else(no)?;
    let record = at(file, end, END_LENGTH)?;
    let mut fields = Fields(&record);
    if fields.u32()? != END {
        return Err(no());
    }
    fields.take(6)?;
    let (mut count, mut bytes, mut start) =
        (u64::from(fields.u16()?), u64::from(fields.u32()?), u64::from(fields.u32()?));
    if count == u64::from(u16::MAX) || bytes == u64::from(u32::MAX) || start == u64::from(u32::MAX)
    {
        let locator = end.checked_sub(LOCATOR_LENGTH).ok_or_else(no)?;
        let record = at(file, locator, LOCATOR_LENGTH)?;
        let mut fields = Fields(&record);
        if fields.u32()? != LOCATOR {
            return Err(format!("byte {locator}: long sizes are missing"));
        }
        fields.take(4)?;
        let place = fields.u64()?;
        if place > locator.saturating_sub(END_64_LENGTH) {
            return Err(format!(
                "byte {locator}: the end record at {place} is outside of the file"
            ));
        }
        let record = at(file, place, END_64_LENGTH)?;
        let mut fields = Fields(&record);
        if fields.u32()? != END_64 {
            return Err(format!("byte {place}: no end record is there"));
        }
        fields.take(28)?;
        (count, bytes, start) = (fields.u64()?, fields.u64()?, fields.u64()?);
    }
    if bytes > MOST_LIST || start.checked_add(bytes).is_none_or(|end| end > length) {
        return Err(format!("byte {start}: a list of {bytes} bytes does not fit the archive"));
    }
    let list = at(file, start, bytes)?;
    let mut fields = Fields(&list);
    let mut found = BTreeMap::new();
    for number in 0..count {
        let (name, place) = entry(file, length, &mut fields)
            .map_err(|detail| format!("byte {start}: file {number} of the archive: {detail}"))?;
        if found.insert(name.clone(), place).is_some() {
            return Err(format!("byte {start}: {name:?} is there twice"));
        }
    }
    Ok(found)
}

/// The next file of the list.
fn entry(file: &mut File, length: u64, list: &mut Fields<'_>) -> Result<(String, Place), String> {
    if list.u32()? != CENTRAL {
        return Err("its header is damaged".into());
    }
    list.take(4)?;
    let (flags, method) = (list.u16()?, list.u16()?);
    list.take(8)?;
    let (packed, bytes) = (list.u32()?, list.u32()?);
    let (name, extra, comment) = (list.u16()?, list.u16()?, list.u16()?);
    list.take(8)?;
    let offset = list.u32()?;
    let name = std::str::from_utf8(list.take(name.into())?).map_err(|_| "its name is no text")?;
    let mut long = long(list.take(extra.into())?)?;
    list.take(comment.into())?;
    let mut wide = |short: u32| match short {
        u32::MAX => long.u64(),
        short => Ok(u64::from(short)),
    };
    let (bytes, packed, offset) = (wide(bytes)?, wide(packed)?, wide(offset)?);
    if method != 0 || flags & 1 != 0 || packed != bytes {
        return Err(format!("{name:?} is compressed or encrypted: a package's files are stored"));
    }
    let inside = |start: u64, bytes: u64| start.checked_add(bytes).is_some_and(|end| end <= length);
    if !inside(offset, LOCAL_LENGTH) {
        return Err(format!("{name:?} starts at {offset}, outside of the archive"));
    }
    let header = at(file, offset, LOCAL_LENGTH)?;
    let mut local = Fields(&header);
    if local.u32()? != LOCAL {
        return Err(format!("{name:?}: nothing starts at {offset}"));
    }
    local.take(22)?;
    let start = offset + LOCAL_LENGTH + u64::from(local.u16()?) + u64::from(local.u16()?);
    match inside(start, bytes) {
        true => Ok((name.to_owned(), Place { start, bytes })),
        false => Err(format!("{name:?}: {bytes} bytes from {start} on leave the archive")),
    }
}

/// The long sizes among extra fields.
fn long(extra: &[u8]) -> Result<Fields<'_>, String> {
    let mut fields = Fields(extra);
    while fields.0.len() >= 4 {
        let (kind, length) = (fields.u16()?, fields.u16()?);
        let content = fields.take(length.into())?;
        if kind == LONG {
            return Ok(Fields(content));
        }
    }
    Ok(Fields(&[]))
}
