//! Inputs past 2³¹ elements: what no sample of the suite is large enough for.
//!
//! One array of `uint8` has 2³¹ zeros and then 1 to 16, so what loses the upper bits of an index
//! reads a zero. Every check works on it and keeps nothing: two arrays of 2 GiB are there at once.

use cupola_core::backend::backend;
use cupola_core::device::with_stream;
use cupola_core::ops::ScatterMode;
use cupola_core::{Array, DType, Device, Error, Result, Stream, ops};

/// Where the numbers start.
const FAR: usize = 1 << 31;
/// How many there are.
const TAIL: usize = 16;

/// What became of a check.
#[derive(Clone, Debug)]
pub struct LargeReport {
    /// Its name, `large/…`.
    pub name: String,
    /// Whether it passed; [`Error::Unsupported`] where the device has no kernel for it.
    pub result: Result<()>,
}

type Check = fn(&Array) -> Result<()>;

const CHECKS: [(&str, Check); 10] = [
    ("concatenate", concatenate),
    ("elementwise", elementwise),
    ("bool", bools),
    ("views", views),
    ("reduce", reduce),
    ("arg_reduce", arg_reduce),
    ("gather", gather),
    ("scatter", scatter),
    ("transpose", transpose),
    ("dot", dot),
];

/// Runs the checks whose name contains `filter` on `device`, and shows `report` each as soon as it
/// is done. They need 5 GiB of the device's memory; nothing falls back to the CPU meanwhile.
pub fn run_large(device: Device, filter: Option<&str>, report: &mut dyn FnMut(LargeReport)) {
    let trim = || {
        if let Ok(backend) = backend(device) {
            backend.trim();
        }
    };
    super::without_fallback(|| {
        with_stream(Stream::of(device), || {
            let mut numbers = None;
            for (name, check) in CHECKS {
                let name = format!("large/{name}");
                if filter.is_some_and(|f| !name.contains(f)) {
                    continue;
                }
                let x = match numbers.take() {
                    Some(x) => Ok(x),
                    None => make(),
                };
                let result = x.and_then(|x| check(numbers.insert(x)));
                trim();
                report(LargeReport { name, result });
            }
            drop(numbers);
            trim();
        });
    });
}

/// The array.
fn make() -> Result<Array> {
    let tail: Vec<u8> = (1..=TAIL as u8).collect();
    let (zeros, tail) = (ops::zeros([FAR], DType::U8)?, Array::from_vec(tail, [TAIL])?);
    let x = ops::concatenate(&[&zeros, &tail], 0isize)?;
    x.eval()?;
    Ok(x)
}

/// A few elements of `x`, from `start` on.
fn some(x: &Array, start: usize, count: usize) -> Result<Array> {
    ops::slice(x, &[start as isize], &[(start + count) as isize], &[1])
}

fn expect(what: &str, got: &Array, want: &[u8]) -> Result<()> {
    let got = got.to_bytes()?;
    match got == want {
        true => Ok(()),
        false => Err(Error::User(format!("{what}: {got:?}, not {want:?}"))),
    }
}

/// `got` as an `int64` against `want`; it is computed where `got` is.
fn expect_number(what: &str, got: &Array, want: i64) -> Result<()> {
    let got: Vec<u8> = got.to_bytes()?;
    let mut wide = [0; 8];
    let known = got.len().min(8);
    wide[..known].copy_from_slice(&got[..known]);
    match i64::from_le_bytes(wide) {
        got if got == want => Ok(()),
        got => Err(Error::User(format!("{what}: {got}, not {want}"))),
    }
}

fn concatenate(x: &Array) -> Result<()> {
    expect("the first elements", &some(x, 0, 4)?, &[0; 4])?;
    expect("around 2³¹", &some(x, FAR - 2, 6)?, &[0, 0, 1, 2, 3, 4])?;
    expect("the last elements", &some(x, FAR + TAIL - 3, 3)?, &[14, 15, 16])
}

fn elementwise(x: &Array) -> Result<()> {
    let y = ops::add(&ops::multiply(x, 3)?, 1)?;
    y.eval()?;
    expect("the first elements", &some(&y, 0, 3)?, &[1; 3])?;
    expect("around 2³¹", &some(&y, FAR - 1, 4)?, &[1, 4, 7, 10])?;
    expect("the last elements", &some(&y, FAR + TAIL - 2, 2)?, &[46, 49])
}

fn bools(x: &Array) -> Result<()> {
    let large = ops::greater(x, 14)?;
    large.eval()?;
    expect("the last elements", &some(&large, FAR + TAIL - 4, 4)?, &[0, 0, 1, 1])?;
    expect("any", &ops::any(&large, (), false)?, &[1])?;
    let chosen = ops::select(&large, x, 5)?;
    drop(large);
    chosen.eval()?;
    expect("select", &some(&chosen, FAR + TAIL - 4, 4)?, &[5, 5, 15, 16])
}

fn views(x: &Array) -> Result<()> {
    let back = ops::flip(x, 0isize)?;
    expect("flip", &ops::add(&some(&back, 0, 3)?, 0)?, &[16, 15, 14])?;
    let (from, to) = (FAR as isize - 3, (FAR + TAIL) as isize);
    let sparse = ops::slice(x, &[from], &[to], &[5])?;
    expect("every fifth", &ops::add(&sparse, 1)?, &[1, 4, 9, 14])?;
    // Three elements, 2³⁰ apart.
    let spread = ops::slice(x, &[1], &[to], &[1 << 30])?;
    expect("2³⁰ apart", &ops::add(&spread, 1)?, &[1, 1, 3])?;
    let rows = ops::reshape(x, [(FAR + TAIL) / 8, 8])?;
    let last = rows.shape()[0] as isize - 1;
    let row = ops::slice(&rows, &[last, 0], &[last + 1, 8], &[1, 1])?;
    expect("the last row", &ops::add(&row, 0)?, &[9, 10, 11, 12, 13, 14, 15, 16])
}

fn reduce(x: &Array) -> Result<()> {
    let tail = (TAIL * (TAIL + 1) / 2) as i64;
    expect_number("sum", &ops::sum(x, (), false)?, tail)?;
    // More than 2³¹, from a program that feeds the sum.
    let counted = ops::sum(&ops::less(x, 9)?.astype(DType::U32)?, (), false)?;
    expect_number("how many are below 9", &counted, (FAR + TAIL - 8) as i64)?;
    expect_number("max", &ops::max(x, (), false)?, TAIL as i64)?;
    let rows = ops::reshape(x, [(FAR + TAIL) / 16, 16])?;
    let columns = ops::max(&rows, 0isize, false)?;
    expect("max of columns", &columns, &(1..=TAIL as u8).collect::<Vec<_>>())?;
    let sums = ops::max(&rows, 1isize, false)?;
    expect("max of rows", &some(&sums, FAR / 16 - 1, 2)?, &[0, 16])
}

fn arg_reduce(x: &Array) -> Result<()> {
    expect_number("argmax", &ops::argmax(x, (), false)?, (FAR + TAIL - 1) as i64)?;
    let three = ops::argmax(&ops::equal(x, 3)?, (), false)?;
    expect_number("the place of 3", &three, FAR as i64 + 2)
}

fn gather(x: &Array) -> Result<()> {
    let far = FAR as i64;
    let at = Array::from_vec(vec![far + 3, 0, far + 15, -2, far - 1], [5])?;
    expect("int64 indices", &ops::take(x, &at, 0isize)?, &[4, 0, 16, 15, 0])?;
    let at = Array::from_vec(vec![FAR as u32 + 6, 5, FAR as u32], [3])?;
    expect("uint32 indices", &ops::take(x, &at, 0isize)?, &[7, 0, 1])?;
    let along = ops::take_along_axis(x, &at, 0isize)?;
    expect("take_along_axis", &along, &[7, 0, 1])
}

fn scatter(x: &Array) -> Result<()> {
    let at = Array::from_vec(vec![FAR as u32 + 4, 7, FAR as u32 + 4], [3])?;
    let updates = Array::from_vec(vec![100u8, 50, 20], [3, 1])?;
    let y = ops::scatter(x, &[(0, &at)], &updates, ScatterMode::Add)?;
    y.eval()?;
    expect("the first elements", &some(&y, 6, 3)?, &[0, 50, 0])?;
    expect("around 2³¹", &some(&y, FAR + 3, 3)?, &[4, 125, 6])
}

fn transpose(x: &Array) -> Result<()> {
    let rows = (FAR + TAIL) / 16;
    let turned = ops::transpose(&ops::reshape(x, [rows, 16])?, ())?;
    let flat = ops::reshape(&turned, [FAR + TAIL])?;
    flat.eval()?;
    // Element 2³¹ + k of x is element k·rows + 2³¹/16 of the transposed.
    for k in [0, 7, 15] {
        let own = k as u8 + 1;
        expect(&format!("column {k}"), &some(&flat, k * rows + FAR / 16 - 1, 2)?, &[0, own])?;
    }
    Ok(())
}

fn dot(x: &Array) -> Result<()> {
    let columns = 16;
    let rows = (FAR + TAIL) / columns;
    let ones = ops::ones([columns, 1], DType::U8)?;
    let sums = ops::matmul(&ops::reshape(x, [rows, columns])?, &ones)?;
    let sums = ops::reshape(&sums, [rows])?;
    sums.eval()?;
    expect("the last rows", &some(&sums, rows - 2, 2)?, &[0, 136])
}
