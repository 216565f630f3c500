//! One array in NumPy's file format: a header that says dtype and shape, then the elements.
//!
//! `bfloat16`, which the format does not know, is written as two raw bytes (`V2`), as MLX does.

use std::path::Path;

use cupola_core::{Array, DType, Error, Result, ops};

const MAGIC: &[u8] = b"\x93NUMPY";

/// What the header is padded to.
const ALIGNMENT: usize = 64;

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
    let mut header = format!(
        "{{'descr': '{order}{}', 'fortran_order': False, 'shape': ({}{tail}), }}",
        code(dtype),
        sizes.join(", ")
    );
    let start = MAGIC.len() + 4;
    let length = (start + header.len() + 1).next_multiple_of(ALIGNMENT) - start;
    header.extend(std::iter::repeat_n(' ', length - header.len() - 1));
    header.push('\n');
    let bytes = array.to_bytes()?;
    let mut out = Vec::with_capacity(start + length + bytes.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
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
    let path = path.as_ref();
    let wrong = |detail: &str| Error::io(path, format!("no array in NumPy's format: {detail}"));
    let rest = content.strip_prefix(MAGIC).ok_or_else(|| wrong("it starts otherwise"))?;
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        _ => return Err(wrong("its version is unknown, or it ends there")),
    };
    let header = rest.get(..length).ok_or_else(|| wrong("the header is cut short"))?;
    let header = std::str::from_utf8(header).map_err(|_| wrong("the header is no text"))?;
    let field = |name: &str| {
        let (_, value) = header.split_once(&format!("'{name}':"))?;
        Some(value.trim_start())
    };
    let descr = field("descr")
        .and_then(|v| v.strip_prefix('\''))
        .and_then(|v| v.split_once('\''))
        .ok_or_else(|| wrong("the header has no dtype"))?
        .0;
    let (order, name) = descr.split_at_checked(1).ok_or_else(|| wrong("the dtype is empty"))?;
    let dtype = DType::ALL.into_iter().find(|d| code(*d) == name);
    let dtype = dtype.ok_or_else(|| wrong(&format!("dtype '{descr}' is none of an array's")))?;
    let is_fortran = field("fortran_order").is_some_and(|v| v.starts_with("True"));
    let shape = field("shape")
        .and_then(|v| v.strip_prefix('('))
        .and_then(|v| v.split_once(')'))
        .ok_or_else(|| wrong("the header has no shape"))?
        .0;
    let mut sizes = Vec::new();
    for size in shape.split(',').map(str::trim).filter(|s| !s.is_empty()) {
        sizes.push(size.parse::<usize>().map_err(|_| wrong("the shape has other than numbers"))?);
    }
    let count = sizes.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d));
    let data = &rest[length..];
    let Some(data) = count.and_then(|count| data.get(..count)) else {
        return Err(wrong(&format!("{} bytes do not fill {sizes:?} of {dtype}", data.len())));
    };
    let swapped;
    let is_native = match order {
        ">" => cfg!(target_endian = "big"),
        "<" => cfg!(target_endian = "little"),
        _ => true,
    };
    let data = if is_native {
        data
    } else {
        let width = if dtype == DType::C64 { 4 } else { dtype.size() };
        let mut bytes = data.to_vec();
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
