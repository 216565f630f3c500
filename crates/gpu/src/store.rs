//! Compiled kernels on disk.
//!
//! A file is found by a hash of what it was made from, and holds all of that, so that another
//! text with the same hash is not taken for it. Whatever goes wrong only costs a compilation.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use cupola_core::file;

/// What a file begins with.
const MAGIC: &[u8; 8] = b"cupola\x02\n";
/// How many files there may be: each has some ten thousand bytes.
const MOST: usize = 16_384;

/// Where hashes start.
const FIRST: u64 = 0xcbf2_9ce4_8422_2325;
const SECOND: u64 = 0x6a09_e667_f3bc_c908;

/// FNV-1a, which stays the same from one build of the program to the next.
fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Kernels that one compiler made for one kind of device.
pub struct Store {
    folder: PathBuf,
    /// Which compiler, which flags, which device.
    origin: String,
}

/// The folder of this user for what can be made again.
fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = match std::env::consts::OS {
        "windows" => set("LOCALAPPDATA"),
        _ => set("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache"))),
    };
    Some(folder?.join("cupola").join("kernels"))
}

impl Store {
    /// The store of this user; none where there is no place for it.
    pub fn open(origin: &str) -> Option<Store> {
        Self::open_in(cache_folder()?, origin)
    }

    fn open_in(folder: PathBuf, origin: &str) -> Option<Store> {
        fs::create_dir_all(&folder).ok()?;
        Some(Store { folder, origin: origin.to_owned() })
    }

    fn path(&self, text: &str) -> PathBuf {
        let both = [self.origin.as_bytes(), &[0], text.as_bytes()].concat();
        let (first, second) = (hash(FIRST, &both), hash(SECOND, &both));
        self.folder.join(format!("{first:016x}{second:016x}.kernel"))
    }

    /// What was made from `text`.
    pub fn get(&self, text: &str) -> Option<Vec<u8>> {
        let bytes = file::read(self.path(text), u64::MAX).ok()?;
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut next = || {
            let (length, after) = rest.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (part, after) = after.split_at_checked(length)?;
            rest = after;
            Some(part)
        };
        let same = next()? == self.origin.as_bytes() && next()? == text.as_bytes();
        let image = next()?;
        let whole = next()? == hash(FIRST, image).to_le_bytes();
        (same && whole).then(|| image.to_vec())
    }

    /// Keeps what was made from `text`.
    pub fn put(&self, text: &str, image: &[u8]) {
        let mut bytes = MAGIC.to_vec();
        let check = hash(FIRST, image).to_le_bytes();
        for part in [self.origin.as_bytes(), text.as_bytes(), image, &check] {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| self.sweep());
        // Others see the whole file or none.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}-{count}.new", std::process::id());
        let fresh: &Path = &self.folder.join(name);
        if fs::write(fresh, bytes).and_then(|()| fs::rename(fresh, self.path(text))).is_err() {
            let _ = fs::remove_file(fresh);
        }
    }

    /// Removes the oldest files where there are too many.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, PathBuf)> = (entries.flatten())
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        if files.len() > MOST {
            files.sort_unstable();
            for (_, path) in &files[..files.len() - MOST / 2] {
                let _ = fs::remove_file(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Store;

    #[test]
    fn what_is_kept_is_found_and_what_is_damaged_is_not() {
        let folder = std::env::temp_dir().join(format!("cupola-store-{}", std::process::id()));
        let store = Store::open_in(folder.clone(), "a compiler").expect("a folder");
        assert_eq!(store.get("text"), None);
        store.put("text", b"image");
        assert_eq!(store.get("text").as_deref(), Some(&b"image"[..]));
        assert_eq!(store.get("other"), None);
        let other = Store { folder: folder.clone(), origin: "another".into() };
        assert_eq!(other.get("text"), None);
        let path = store.path("text");
        let bytes = fs::read(&path).expect("the file");
        fs::write(&path, &bytes[..bytes.len() - 1]).expect("the file");
        assert_eq!(store.get("text"), None);
        let image = bytes.windows(5).position(|window| window == b"image").expect("the image");
        let mut changed = bytes.clone();
        changed[image] ^= 1;
        fs::write(&path, &changed).expect("the file");
        assert_eq!(store.get("text"), None);
        fs::remove_dir_all(folder).expect("the folder");
    }
}
