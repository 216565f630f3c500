//! Text files that are whole at any time.

use std::io::Write;
use std::path::Path;

use cupola_core::{Error, Result};

/// Writes `text` to another file in the same folder first, which then takes the name of `path`.
///
/// # Errors
///
/// Where the file cannot be written; one that was there is then as before.
pub fn write_whole(path: impl AsRef<Path>, text: &str) -> Result<()> {
    let path = path.as_ref();
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let failed = |cause: std::io::Error| Error::io(path, format!("cannot be written: {cause}"));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".cupola-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}
