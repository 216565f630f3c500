//! Files as memory of the CPU.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};

use cupola_core::backend::Buffer;

/// The content of a file as memory that is only read. The system brings in what is read when it is read, so
/// that this costs as much for a large file as for a small one.
///
/// Whoever changes the file in place changes the arrays in it, and whoever makes it shorter ends the program that
/// reads what was there. Files that Cupola writes are others under the same name.
///
/// # Errors
/// Where the file is no regular one, is empty, or cannot be mapped.
pub fn map(file: &File) -> Result<Buffer> {
    if !file.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::Unsupported, "only regular files are mapped"));
    }
    // SAFETY: the memory is only read, and any content is a value. That nobody changes the file meanwhile is asked
    // of the caller: no program can keep others from it.
    let content = unsafe { memmap2::Mmap::map(file)? };
    Ok(Buffer::constant(content))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::map;

    #[test]
    fn the_content_is_there_and_stays_when_another_file_takes_the_name() {
        let path = std::env::temp_dir().join(format!("cupola-map-{}", std::process::id()));
        std::fs::File::create(&path).and_then(|mut f| f.write_all(b"content")).expect("a file");
        let buffer = map(&std::fs::File::open(&path).expect("a file")).expect("memory");
        std::fs::remove_file(&path).expect("the file");
        std::fs::write(&path, b"other").expect("a file");
        assert_eq!(buffer.host(), Some(&b"content"[..]));
        assert!(buffer.is_lent());
        std::fs::remove_file(&path).expect("the file");
        assert!(map(&std::fs::File::open(std::env::temp_dir()).expect("a folder")).is_err());
    }
}
