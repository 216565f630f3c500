//! Files that are whole at any time: what is written takes its name when all of it is there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions, TryLockError, remove_dir_all, remove_file};
use std::io::{ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cupola_core::{Error, Result, fork};
use tempfile::{NamedTempFile, TempDir};

/// How the names of files in the making begin.
const PREFIX: &str = ".cupola-";

/// How those end that their maker has locked.
const SUFFIX: &str = ".tmp";

/// How many symbolic links lead to a file at most, as on Linux.
const MOST_LINKS: usize = 40;

/// The new content of a file: written to another one in the same folder, which takes the name in the
/// end ([`Replacement::keep`]). Dropped before, it leaves nothing behind, and a file that was there as
/// it was. What a process that is killed leaves behind goes, on Unix, when a later one writes to that folder.
///
/// The file keeps its permissions, its owner where the process may give files away, and a symbolic link
/// stays one: what it leads to is replaced. Other hard links to it keep the old content. What is no regular
/// file (a pipe, a device), or is open already (`/dev/stdout`), is written in place.
pub struct Replacement {
    name: PathBuf,
    /// Where the links lead.
    path: PathBuf,
    content: Content,
}

enum Content {
    New(NamedTempFile),
    Through(File),
    /// What is written to `to` in one go.
    Gathered {
        file: File,
        to: File,
    },
}

impl Replacement {
    /// For the file `path`, which may be there or not.
    ///
    /// # Errors
    /// Where it is a folder or read-only, or no file can be made beside it.
    pub fn new(path: impl AsRef<Path>) -> Result<Replacement> {
        let name = path.as_ref();
        let failed = |cause: std::io::Error| failed(name, &cause);
        let (path, is_open) = followed(name).map_err(failed)?;
        let content = match there(&path).map_err(failed)? {
            Some(known) if is_open || !known.is_file() && !known.is_dir() => {
                Content::Through(in_place(name, &path, is_open, &known)?)
            }
            known => Content::New(beside(&path, known.as_ref()).map_err(failed)?),
        };
        Ok(Replacement { name: name.to_owned(), path, content })
    }

    /// The same for content that is not written from its beginning to its end: what is written in place gets all of it
    /// in the end.
    ///
    /// # Errors
    /// As [`Replacement::new`].
    pub fn in_any_order(path: impl AsRef<Path>) -> Result<Replacement> {
        let mut new = Replacement::new(path)?;
        if let Content::Through(to) = new.content {
            let file = tempfile::tempfile().map_err(|cause| failed(&new.name, &cause))?;
            new.content = Content::Gathered { file, to };
        }
        Ok(new)
    }

    /// The file's name, as the caller gave it.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// What is written to.
    pub fn file(&mut self) -> &mut File {
        match &mut self.content {
            Content::New(file) => file.as_file_mut(),
            Content::Through(file) | Content::Gathered { file, .. } => file,
        }
    }

    /// The same, for who opens it by name.
    pub fn path(&self) -> &Path {
        match &self.content {
            Content::New(file) => file.path(),
            Content::Through(_) | Content::Gathered { .. } => &self.path,
        }
    }

    /// Gives the new content its name.
    ///
    /// # Errors
    /// Where the device does not take all of it; a file that was there is then as before.
    pub fn keep(self) -> Result<()> {
        let Replacement { name, path, content } = self;
        let kept = match content {
            Content::Through(_) => Ok(()),
            Content::Gathered { mut file, mut to } => {
                file.rewind().and_then(|()| std::io::copy(&mut file, &mut to)).map(|_| ())
            }
            Content::New(file) => file.as_file().sync_all().and_then(|()| {
                file.persist(&path).map_err(|error| error.error)?;
                // The name, too, is to outlast a loss of power. Not every file system syncs folders.
                let _ = File::open(folder(&path)).and_then(|folder| folder.sync_all());
                Ok(())
            }),
        };
        kept.map_err(|cause| failed(&name, &cause))
    }
}

/// Writes `content` as the [`Replacement`] of a file: all of it, or nothing.
///
/// # Errors
/// Where the file cannot be written; one that was there is then as before.
///
/// # Example
/// ```
/// use cupola::io::write_whole;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("notes.txt");
/// write_whole(&path, "first")?;
/// assert_eq!(std::fs::read_to_string(&path)?, "first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_whole(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
    let mut new = Replacement::new(&path)?;
    new.file().write_all(content.as_ref()).map_err(|cause| failed(path.as_ref(), &cause))?;
    new.keep()
}

/// Looks whether the file `path` can be written, or one be made there, for `what`, such as "a report", before there is
/// anything to write. A pipe is not opened for it.
///
/// # Errors
/// Where the folder is not there, `path` is one, or it could not be written.
///
/// # Example
/// ```
/// use cupola::io::check_file;
/// assert!(check_file("report.html", "a report").is_ok());
/// assert!(check_file("no/such/folder/report.html", "a report").is_err());
/// ```
pub fn check_file(path: impl AsRef<Path>, what: &str) -> Result<()> {
    let path = path.as_ref();
    let name = path.as_os_str().as_encoded_bytes();
    if name.is_empty() || name.contains(&0) {
        return Err(Error::io(path, format!("{path:?} is no name of a file")));
    }
    let folder = folder(path);
    if !folder.is_dir() {
        return Err(Error::io(path, format!("the folder {} is not there", folder.display())));
    }
    if path.is_dir() {
        return Err(Error::io(path, format!("is a folder, no file that {what} can be written to")));
    }
    match path.metadata() {
        Ok(known) if !known.is_file() => Ok(()),
        _ => Replacement::new(path).map(drop),
    }
}

/// Opens what is written in place. To wait until somebody reads a pipe can be
/// [interrupted](cupola_core::interrupt).
fn in_place(name: &Path, path: &Path, is_open: bool, known: &Metadata) -> Result<File> {
    let mut options = OpenOptions::new();
    options.append(is_open).write(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
        if !is_open && known.file_type().is_fifo() {
            options.custom_flags(OFlags::NONBLOCK.bits() as i32);
            let file = loop {
                match options.open(path) {
                    Ok(file) => break file,
                    Err(cause)
                        if cause.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) =>
                    {
                        cupola_core::interrupt::check_outside()?;
                        std::thread::sleep(std::time::Duration::from_millis(10));
                    }
                    Err(cause) => return Err(failed(name, &cause)),
                }
            };
            rustix::fs::fcntl_setfl(&file, OFlags::empty())
                .map_err(|cause| failed(name, &cause.into()))?;
            return Ok(file);
        }
    }
    let _ = known;
    options.open(path).map_err(|cause| failed(name, &cause))
}

/// The file whose place new content of `path` would take, if one is there and it is not written in place.
pub(crate) fn replaced(path: &Path) -> Option<PathBuf> {
    let (path, is_open) = followed(path).ok()?;
    (!is_open && path.is_file()).then_some(path)
}

fn failed(path: &Path, cause: &std::io::Error) -> Error {
    Error::io(path, format!("cannot be written: {cause}"))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn there(path: &Path) -> std::io::Result<Option<Metadata>> {
    match std::fs::metadata(path) {
        Ok(known) => Ok(Some(known)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where the symbolic links at `path` lead, if there are any, also where nothing is yet; and whether
/// that is a file that a process has open.
fn followed(path: &Path) -> std::io::Result<(PathBuf, bool)> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        // What these lead to need not have a name.
        if ["/dev/fd", "/proc"].iter().any(|open| path.starts_with(open)) {
            return Ok((path, true));
        }
        match std::fs::symlink_metadata(&path) {
            Ok(known) if known.is_symlink() => {
                path = folder(&path).join(std::fs::read_link(&path)?);
            }
            _ => return Ok((path, false)),
        }
    }
    Err(std::io::Error::other("too many symbolic links"))
}

/// A file in the folder of `path` that goes when it is dropped, with the owner and the permissions that the
/// file `path` has, or that a new file gets.
fn beside(path: &Path, known: Option<&Metadata>) -> std::io::Result<NamedTempFile> {
    if let Some(known) = known {
        if known.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        let refused = |why| Err(std::io::Error::new(ErrorKind::PermissionDenied, why));
        if known.permissions().readonly() {
            return refused("the file is read-only");
        }
        // Who may not write to a file is not to replace it either. Opened, it stays as it is.
        OpenOptions::new().write(true).open(path)?;
        if !is_replaceable(path, known)? {
            return refused(
                "the file is another user's, and in this folder only owners replace files",
            );
        }
    }
    sweep_once(folder(path));
    let file = loop {
        let file = making(0o666).tempfile_in(folder(path)).map_err(unnamed)?;
        if is_held(file.as_file(), file.path()) {
            break file;
        }
    };
    if let Some(known) = known {
        take_after(file.as_file(), path, known)?;
    }
    Ok(file)
}

/// An error without the name of a file in the making, which says nothing to anybody.
fn unnamed(cause: std::io::Error) -> std::io::Error {
    let inner = cause.get_ref().and_then(|error| error.source());
    let code = inner.and_then(|inner| inner.downcast_ref::<std::io::Error>()?.raw_os_error());
    code.map_or(cause, std::io::Error::from_raw_os_error)
}

/// Whether another file may take the name: in a folder that is sticky, as `/tmp`, only the owner of the file or of the
/// folder may do that.
#[cfg(unix)]
fn is_replaceable(path: &Path, known: &Metadata) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (within, own) = (folder(path).metadata()?, rustix::process::geteuid().as_raw());
    Ok(within.mode() & 0o1000 == 0 || own == 0 || [known.uid(), within.uid()].contains(&own))
}

#[cfg(not(unix))]
fn is_replaceable(_: &Path, _: &Metadata) -> std::io::Result<bool> {
    Ok(true)
}

/// A folder beside `path` that goes when it is dropped, as a file in the making does, and what holds it meanwhile.
pub(crate) fn folder_beside(path: &Path) -> std::io::Result<(TempDir, Option<File>)> {
    sweep_once(folder(path));
    loop {
        let new = making(0o777).tempdir_in(folder(path)).map_err(unnamed)?;
        let held = if cfg!(unix) { Some(File::open(new.path())?) } else { None };
        if held.as_ref().is_none_or(|held| is_held(held, new.path())) {
            return Ok((new, held));
        }
    }
}

/// What makes files and folders in the making; what the process masks is taken off `mode`.
fn making(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    let _ = mode;
    builder
}

/// Whether a file has the name of one in the making.
fn is_in_the_making(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// Locks what is in the making, which tells it from that whose maker was killed: the system takes the lock back. False
/// where another process took it for such before.
fn is_held(file: &File, path: &Path) -> bool {
    // Elsewhere a lock would keep those out who open the file by name.
    !cfg!(unix) || !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && path.exists()
}

/// Removes what processes that were killed had not finished writing in `folder`, where this process has not looked yet:
/// a folder may have many files.
fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let is_new = |folder| fork::lock(&SWEPT).insert(folder);
    if cfg!(unix) && std::path::absolute(folder).is_ok_and(is_new) {
        sweep(folder);
    }
}

/// Removes what is in the making in `folder` and held by nobody; elsewhere than on Unix that is all of it, so that nobody
/// else may be writing there.
pub(crate) fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        // To open a pipe would wait.
        if !is_in_the_making(&entry.file_name()) || !kind.is_file() && !kind.is_dir() {
            continue;
        }
        // Held until it is gone, so that whoever has just made it sees that.
        let held = if cfg!(unix) { File::open(&path).map(Some) } else { Ok(None) };
        let Ok(held) = held else { continue };
        if held.as_ref().is_none_or(|held| held.try_lock().is_ok()) {
            let _ = if kind.is_dir() { remove_dir_all(path) } else { remove_file(path) };
        }
    }
}

/// The mode of a file that has another owner than before. Whoever runs it would act as one who never allowed that:
/// setuid and setgid go.
#[cfg(unix)]
fn of_another_owner(mode: u32) -> u32 {
    mode & 0o1777
}

/// Gives a new file the permissions of the `known` one at `path`, whose place it is to take, and its owner and group as
/// far as this process may.
fn take_after(file: &File, path: &Path, known: &Metadata) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let (own, group) = (file.metadata()?, Some(known.gid()));
        let mut mode = known.mode();
        let is_alike = (own.uid(), own.gid()) == (known.uid(), known.gid());
        if !is_alike && fchown(file, Some(known.uid()), group).is_err() {
            // Whoever is in the group may give it that.
            let _ = fchown(file, None, group);
            mode = of_another_owner(mode);
        }
        let list = access_list(path);
        // Beside a list the bits of the group say what the list may allow, not the group.
        let bare = if list.is_some() { mode & !0o070 } else { mode };
        // That of the folder is for new files.
        set_access_list(file, &[]);
        file.set_permissions(PermissionsExt::from_mode(bare))?;
        if let Some(list) = list.filter(|list| !list.is_empty()) {
            set_access_list(file, &list);
        }
        Ok(())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        file.set_permissions(known.permissions())
    }
}

/// The list of who may do what with a file besides its owner and its group, where it has one.
#[cfg(target_os = "linux")]
const ACCESS_LIST: &str = "system.posix_acl_access";

#[cfg(target_os = "linux")]
fn access_list(path: &Path) -> Option<Vec<u8>> {
    use rustix::io::Errno;
    let read = rustix::fs::getxattr_query(path, ACCESS_LIST).and_then(|length| {
        let mut list = vec![0; length];
        let length = rustix::fs::getxattr(path, ACCESS_LIST, &mut list[..])?;
        list.truncate(length);
        Ok(list)
    });
    match read {
        Ok(list) => Some(list),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => None,
        // There may be one that cannot be read: an empty one allows nobody more.
        Err(_) => Some(Vec::new()),
    }
}

/// Gives a file this list; an empty one is none.
#[cfg(target_os = "linux")]
fn set_access_list(file: &File, list: &[u8]) {
    // Where that is not possible less is allowed than was.
    let _ = match list {
        [] => rustix::fs::fremovexattr(file, ACCESS_LIST),
        list => rustix::fs::fsetxattr(file, ACCESS_LIST, list, rustix::fs::XattrFlags::empty()),
    };
}

#[cfg(all(unix, not(target_os = "linux")))]
fn access_list(_: &Path) -> Option<Vec<u8>> {
    None
}

#[cfg(all(unix, not(target_os = "linux")))]
fn set_access_list(_: &File, _: &[u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_what_failed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_whole(&path, "first").unwrap();
        let mut new = Replacement::new(&path).unwrap();
        new.file().write_all(&[b'x'; 100_000]).unwrap();
        drop(new);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = write_whole(folder.path(), "x").unwrap_err().to_string();
        assert!(error.contains("cannot be written"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn what_a_killed_process_left_goes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".cupola-Left12.tmp", ".cupola-notes", "other.tmp", ".cupola-Held12.tmp"] {
            std::fs::write(at(name), "half").unwrap();
        }
        // Another process writes this one.
        let held = File::open(at(".cupola-Held12.tmp")).unwrap();
        held.lock().unwrap();
        let making = Replacement::new(at("a")).unwrap();
        write_whole(at("b"), "whole").unwrap();
        making.keep().unwrap();
        let entries = std::fs::read_dir(folder.path()).unwrap().flatten();
        let mut names: Vec<_> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        assert_eq!(names, [".cupola-Held12.tmp", ".cupola-notes", "a", "b", "other.tmp"]);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_acts_as_another_owner() {
        assert_eq!(
            [0o4755, 0o2640, 0o1777, 0o600].map(of_another_owner),
            [0o755, 0o640, 0o1777, 0o600]
        );
    }

    /// Only root gives files away: for others nothing is to be seen here.
    #[cfg(unix)]
    #[test]
    fn the_owner_stays() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "old").unwrap();
        if chown(&path, Some(1000), Some(1001)).is_err() {
            return;
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4640)).unwrap();
        write_whole(&path, "new").unwrap();
        let known = std::fs::metadata(&path).unwrap();
        assert_eq!((known.uid(), known.gid(), known.mode() & 0o7777), (1000, 1001, 0o4640));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_access_list_stays() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "old").unwrap();
        // The owner, user 1005, the group, the mask and others: tag, permissions and number of each.
        let entries: [(u16, u16, u32); 5] =
            [(1, 6, !0), (2, 6, 1005), (4, 0, !0), (0x10, 6, !0), (0x20, 0, !0)];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, allowed, id) in entries {
            list.extend([tag.to_le_bytes(), allowed.to_le_bytes()].concat());
            list.extend(id.to_le_bytes());
        }
        set_access_list(&File::open(&path).unwrap(), &list);
        // Not every file system has them.
        if access_list(&path).is_none() {
            return;
        }
        write_whole(&path, "new").unwrap();
        assert_eq!(access_list(&path), Some(list));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_written_shows_before() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        check_file(&path, "a report").unwrap();
        assert!(!path.exists());
        check_file("/dev/null", "a report").unwrap();
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o440)).unwrap();
        for path in [path, folder.path().join("x".repeat(300))] {
            let error = check_file(&path, "a report").unwrap_err().to_string();
            assert!(error.contains("cannot be written"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_permissions_and_pipes_stay_what_they_are() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [file, link, ahead] = ["file", "link", "ahead"].map(|name| folder.path().join(name));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        symlink("not-yet", &ahead).unwrap();
        write_whole(&link, "new").unwrap();
        write_whole(&ahead, "there").unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&file), read(&ahead)), ("new".into(), "there".into()));
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(std::fs::symlink_metadata(&ahead).unwrap().is_symlink());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o440)).unwrap();
        assert!(write_whole(&file, "newer").unwrap_err().to_string().contains("read-only"));
        write_whole(Path::new("/dev/null"), "gone").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        assert!(write_whole(Path::new("/dev/full"), "too much").is_err());
        let around = folder.path().join("around");
        symlink("around", &around).unwrap();
        assert!(write_whole(&around, "never").unwrap_err().to_string().contains("symbolic links"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_open_is_written_to() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let (mut reader, writer) = std::io::pipe().unwrap();
        let name = |fd: i32| format!("/dev/fd/{fd}");
        write_whole(name(writer.as_raw_fd()), "through a pipe").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through a pipe");
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut new = Replacement::in_any_order(name(writer.as_raw_fd())).unwrap();
        new.file().write_all(b"first last").unwrap();
        new.file().seek(std::io::SeekFrom::Start(0)).unwrap();
        new.file().write_all(b"FIRST").unwrap();
        new.keep().unwrap();
        drop(writer);
        text.clear();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "FIRST last");
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"first, ").unwrap();
        std::os::unix::fs::symlink(name(file.as_raw_fd()), &link).unwrap();
        write_whole(&link, "second").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first, second");
    }
}
