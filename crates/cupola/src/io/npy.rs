//! One array in NumPy's file format: a header that says dtype and shape, then the elements.
//!
//! `bfloat16`, which the format does not know, is written as two raw bytes (`V2`), as MLX does.

use std::path::Path;

use cupola_core::backend::reserve;
use cupola_core::{Array, DType, Error, MAX_RANK, Result, on_one_line, ops};

use super::array_in;

const MAGIC: &[u8] = b"\x93NUMPY";

/// What the header is padded to.
const ALIGNMENT: usize = 64;

/// The longest header that is read. That of an array with [`MAX_RANK`] axes is far shorter.
const MAX_HEADER: usize = 1 << 16;

/// What stands for `complex32`, which NumPy has not: its parts are the fields of a record.
const HALF_COMPLEX: &str = "re, im";

/// Complex numbers of two `float64`, which are read as `complex64`.
const WIDE_COMPLEX: &str = "c16";

/// How the format names a dtype, without the order of bytes.
fn code(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "b1",
        DType::U8 => "u1",
        DType::U16 => "u2",
        DType::U32 => "u4",
        DType::U64 => "u8",
        DType::I8 => "i1",
        DType::I16 => "i2",
        DType::I32 => "i4",
        DType::I64 => "i8",
        DType::F16 => "f2",
        DType::BF16 => "V2",
        DType::F32 => "f4",
        DType::F64 => "f8",
        DType::C32 => HALF_COMPLEX,
        DType::C64 => "c8",
    }
}

/// The content of a file that holds `array`.
///
/// # Errors
/// Where the array cannot be computed.
///
/// # Example
/// ```
/// use cupola::{Array, io::npy};
/// let x = Array::from_slice(&[1i32, 2, 3], [3])?;
/// let y = npy::read(&npy::write(&x)?, "memory")?;
/// assert_eq!(y.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn write(array: &Array) -> Result<Vec<u8>> {
    let dtype = array.dtype();
    let order = match (dtype.size(), cfg!(target_endian = "big")) {
        (1, _) => '|',
        (_, true) => '>',
        (_, false) => '<',
    };
    let sizes: Vec<String> = array.shape().iter().map(usize::to_string).collect();
    let tail = if sizes.len() == 1 { "," } else { "" };
    let descr = match dtype {
        DType::C32 => format!("[('re', '{order}f2'), ('im', '{order}f2')]"),
        _ => format!("'{order}{}'", code(dtype)),
    };
    let mut header = format!(
        "{{'descr': {descr}, 'fortran_order': False, 'shape': ({}{tail}), }}",
        sizes.join(", ")
    );
    let start = MAGIC.len() + 4;
    let length = (start + header.len() + 1).next_multiple_of(ALIGNMENT) - start;
    header.extend(std::iter::repeat_n(' ', length - header.len() - 1));
    header.push('\n');
    let bytes = array.to_bytes()?;
    let mut out = reserve(start + length + bytes.len(), "a file's content")?;
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    // As many sizes as an array has axes at most are far shorter than 2¹⁶.
    out.extend_from_slice(&(length as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(&bytes);
    Ok(out)
}

/// The array in a file's content; errors call the file `path`.
///
/// # Errors
/// Where the content is damaged or holds a dtype that arrays do not have.
///
/// # Example
/// See [`write()`].
pub fn read(content: &[u8], path: impl AsRef<Path>) -> Result<Array> {
    let Described { dtype, mut sizes, data, is_fortran, is_native, is_wide } =
        Described::of(content, path.as_ref())?;
    let swapped;
    let data = if is_wide {
        swapped = narrowed(data, is_native)?;
        &swapped[..]
    } else if is_native {
        data
    } else {
        let width = dtype.real().size();
        let mut bytes = reserve(data.len(), "an array of a file")?;
        bytes.extend_from_slice(data);
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        swapped = bytes;
        &swapped
    };
    if is_fortran {
        sizes.reverse();
        return ops::transpose(&Array::from_bytes(data, dtype, &sizes[..])?, ());
    }
    Array::from_bytes(data, dtype, &sizes[..])
}

/// The array of a file: in place where the file is mapped and its elements can lie there, see
/// [`content`](super::content()).
///
/// # Errors
/// As [`read`], and where the file cannot be read.
///
/// # Example
/// ```
/// use cupola::{Array, io::npy};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.npy");
/// std::fs::write(&path, npy::write(&Array::from_slice(&[1.0f32, 2.0], [2])?)?)?;
/// assert_eq!(npy::load(&path)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<Array> {
    let memory = super::content(&path)?;
    let content = memory.host().unwrap_or_default();
    let Described { dtype, mut sizes, data, is_fortran, is_native, is_wide } =
        Described::of(content, path.as_ref())?;
    if !is_native || is_wide {
        return read(content, path);
    }
    let at = data.as_ptr().addr() - content.as_ptr().addr();
    if is_fortran {
        sizes.reverse();
        return ops::transpose(&array_in(&memory, at, dtype, &sizes)?, ());
    }
    array_in(&memory, at, dtype, &sizes)
}

/// A file's content, as its header describes it.
struct Described<'c> {
    dtype: DType,
    sizes: Vec<usize>,
    /// The elements.
    data: &'c [u8],
    is_fortran: bool,
    /// Whether the bytes of an element have this machine's order.
    is_native: bool,
    /// Whether the elements are of twice the size of the dtype's.
    is_wide: bool,
}

impl<'c> Described<'c> {
    fn of(content: &'c [u8], path: &Path) -> Result<Described<'c>> {
        let wrong = |detail: &str| Error::io(path, format!("no array in NumPy's format: {detail}"));
        let rest = content.strip_prefix(MAGIC).ok_or_else(|| wrong("it starts otherwise"))?;
        let (length, rest) = match rest {
            [1, 0, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
            [2 | 3, 0, a, b, c, d, rest @ ..] => {
                (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest)
            }
            _ => return Err(wrong("its version is unknown, or it ends there")),
        };
        if length > MAX_HEADER {
            return Err(wrong(&format!("a header of {length} bytes is longer than {MAX_HEADER}")));
        }
        let header = rest.get(..length).ok_or_else(|| wrong("the header is cut short"))?;
        let header = std::str::from_utf8(header).map_err(|_| wrong("the header is no text"))?;
        let Header { descr, is_fortran, sizes } =
            Header::parse(header).map_err(|detail| wrong(&format!("the header {detail}")))?;
        if sizes.len() > MAX_RANK {
            return Err(wrong(&format!("{} axes, where {MAX_RANK} are the most", sizes.len())));
        }
        let (order, name) = descr.split_at_checked(1).ok_or_else(|| wrong("the dtype is empty"))?;
        let is_wide = name == WIDE_COMPLEX;
        let name = if is_wide { code(DType::C64) } else { name };
        let dtype = DType::ALL.into_iter().find(|d| code(*d) == name);
        let dtype = dtype.filter(|_| matches!(order, "<" | ">" | "|" | "="));
        let dtype = dtype.ok_or_else(|| {
            let detail = format!("{}: dtype '{descr}' is none of an array's", path.display());
            Error::dtype("load", on_one_line(&detail))
        })?;
        let size = dtype.size() * if is_wide { 2 } else { 1 };
        let count = sizes.iter().try_fold(size, |n, &d| n.checked_mul(d));
        let data = &rest[length..];
        let Some(data) = count.and_then(|count| data.get(..count)) else {
            return Err(wrong(&format!("{} bytes do not fill {sizes:?} of {dtype}", data.len())));
        };
        let is_native = match order {
            ">" => cfg!(target_endian = "big"),
            "<" => cfg!(target_endian = "little"),
            _ => true,
        };
        Ok(Described { dtype, sizes, data, is_fortran, is_native, is_wide })
    }
}

/// The parts of complex numbers of two `float64`, as `float32`.
fn narrowed(data: &[u8], is_native: bool) -> Result<Vec<u8>> {
    let mut out = reserve(data.len() / 2, "an array of a file")?;
    for &part in data.as_chunks::<8>().0 {
        let bits = u64::from_ne_bytes(part);
        let bits = if is_native { bits } else { bits.swap_bytes() };
        out.extend_from_slice(&(f64::from_bits(bits) as f32).to_ne_bytes());
    }
    Ok(out)
}

/// What stands before the elements: a dict of Python with three entries.
struct Header {
    descr: String,
    is_fortran: bool,
    sizes: Vec<usize>,
}

impl Header {
    /// Reads the whole of `text`, or says what is wrong with it.
    fn parse(text: &str) -> Result<Header, String> {
        let mut rest = Rest(text);
        let (mut descr, mut is_fortran, mut sizes) = (None, None, None);
        rest.expect('{')?;
        while !rest.takes('}') {
            let key = rest.quoted()?;
            rest.expect(':')?;
            let is_new = match key {
                "descr" => descr.replace(rest.descr()?).is_none(),
                "fortran_order" => is_fortran.replace(rest.truth()?).is_none(),
                "shape" => sizes.replace(rest.sizes()?).is_none(),
                other => return Err(format!("has an entry '{other}'")),
            };
            if !is_new {
                return Err(format!("has '{key}' twice"));
            }
            if !rest.takes(',') {
                rest.expect('}')?;
                break;
            }
        }
        if !rest.0.trim().is_empty() {
            return Err(format!("goes on with '{}'", rest.0.trim()));
        }
        let missing = |name: &str| format!("has no '{name}'");
        Ok(Header {
            descr: descr.ok_or_else(|| missing("descr"))?,
            is_fortran: is_fortran.ok_or_else(|| missing("fortran_order"))?,
            sizes: sizes.ok_or_else(|| missing("shape"))?,
        })
    }
}

/// What is left to read of a header.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn takes(&mut self, c: char) -> bool {
        let rest = self.0.trim_start().strip_prefix(c);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        match self.takes(c) {
            true => Ok(()),
            false => Err(format!("lacks a '{c}' before '{}'", self.0.trim())),
        }
    }

    fn quoted(&mut self) -> Result<&'a str, String> {
        let quote = if self.takes('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.expect(quote)?;
        }
        let (text, rest) = self.0.split_once(quote).ok_or("ends inside of quotes")?;
        self.0 = rest;
        Ok(text)
    }

    /// The order of bytes and the name of a dtype.
    fn descr(&mut self) -> Result<String, String> {
        if !self.takes('[') {
            return self.quoted().map(str::to_owned);
        }
        let mut order = None;
        for (at, field) in ["re", "im"].into_iter().enumerate() {
            if at > 0 {
                self.expect(',')?;
            }
            self.expect('(')?;
            let name = self.quoted()?;
            self.expect(',')?;
            let dtype = self.quoted()?;
            self.expect(')')?;
            let own = dtype.strip_suffix("f2").filter(|_| name == field);
            if own.is_none() || order.is_some() && order != own {
                return Err("describes records".to_owned());
            }
            order = own;
        }
        self.takes(',');
        self.expect(']')?;
        Ok(format!("{}{HALF_COMPLEX}", order.unwrap_or_default()))
    }

    /// Letters and digits up to something else.
    fn word(&mut self) -> &'a str {
        let text = self.0.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        word
    }

    fn truth(&mut self) -> Result<bool, String> {
        match self.word() {
            "True" => Ok(true),
            "False" => Ok(false),
            other => Err(format!("says '{other}' for True or False")),
        }
    }

    fn sizes(&mut self) -> Result<Vec<usize>, String> {
        self.expect('(')?;
        let mut sizes = Vec::new();
        while !self.takes(')') {
            let word = self.word();
            // Python knows no numbers that begin with 0.
            let size = word.parse().ok().filter(|_| word == "0" || !word.starts_with('0'));
            sizes.push(size.ok_or_else(|| format!("says '{word}' for a size"))?);
            if !self.takes(',') {
                self.expect(')')?;
                // One number in brackets is no tuple.
                return if sizes.len() > 1 { Ok(sizes) } else { Err("has no shape".to_owned()) };
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(header: &str) -> Result<Array> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend([0; 64]);
        read(&file, "memory")
    }

    #[test]
    fn headers_are_read_whole_or_not_at_all() {
        for good in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
            "{\"shape\":(2,3),'descr':'<f4','fortran_order':True}",
        ] {
            assert_eq!(with(good).unwrap().shape()[..], [2, 3], "{good}");
        }
        let half =
            "{'descr': [('re', '>f2'), ('im', '>f2')], 'fortran_order': False, 'shape': (2,)}";
        assert_eq!(with(half).unwrap().dtype(), DType::C32);
        let shape = |text: &str| {
            with(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {text}}}"))
        };
        assert_eq!(shape("()").unwrap().rank(), 0);
        assert_eq!(shape("(5,)").unwrap().shape()[..], [5]);
        for (bad, word) in [
            ("(), 5)", "lacks"),
            ("(5)", "no shape"),
            ("(5 5)", "lacks"),
            ("(-1,)", "size"),
            ("(2,,3)", "size"),
            ("(02, 3)", "size"),
            ("(2,), 'shape': (2,)", "twice"),
            ("(2,), 'order': 3", "entry"),
            ("(99999999999999999999,)", "size"),
            ("(4, 4, 4)", "fill"),
            (&format!("({})", "1,".repeat(129))[..], "128 are the most"),
        ] {
            let error = shape(bad).unwrap_err().to_string();
            assert!(error.contains(word), "{bad}: {error}");
        }
        for bad in [
            "",
            "{",
            "{}",
            "{'descr': '<f4', 'fortran_ordr': False, 'shape': (2,)}",
            "{'descr': '<f4', 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': Falsch, 'shape': (2,)}",
            "{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} 7",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
            "{'descr': [('re', '<f2')], 'fortran_order': False, 'shape': (2,)}",
            "{'descr': [('re', '<f2'), ('im', '>f2')], 'fortran_order': False, 'shape': (2,)}",
            "{'descr': [('im', '<f2'), ('re', '<f2')], 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<V4', 'fortran_order': False, 'shape': (2,)}",
        ] {
            assert!(with(bad).is_err(), "{bad}");
        }
        let long = [MAGIC, &[2, 0], &u32::MAX.to_le_bytes()].concat();
        assert!(read(&long, "memory").unwrap_err().to_string().contains("a header of 4294967295"));
    }

    /// Bytes that have to be swapped are copied, and a file with holes has more than there is memory.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_memory_does_not_hold_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let size = cupola_core::backend::system_memory() as u64 * 2;
        let shape = size / 4;
        let header = format!("{{'descr': '>f4', 'fortran_order': False, 'shape': ({shape},)}}");
        let start = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes()];
        std::fs::write(&path, start.concat()).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(start.concat().len() as u64 + size).unwrap();
        assert!(matches!(load(&path), Err(Error::OutOfMemory { .. })));
    }
}
