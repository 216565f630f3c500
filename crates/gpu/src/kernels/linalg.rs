//! What surrounds a library that factorizes matrices: copies of matrices from and to where it wants them,
//! looks at what is wrong with them, and the signs of vectors.

use cupola_core::DType;
use cupola_core::backend::Segment;

use super::view::{View, place, unflatten};
use super::{BufferRef, Draft, Launch, Missing};
use crate::ir::{Access, Atomic, Number, Target, Ty, Val, complex};

/// Threads in a block.
const BLOCK: u32 = 256;
/// A vector's first element of this share of its largest one is made positive, as on the CPU.
const LARGE: f32 = 0.5;

/// What kernels of a batch of matrices have in common.
pub struct Batch<'a> {
    /// The segment that they belong to.
    pub segment: &'a Segment,
    /// What they are written for.
    pub target: &'a Target,
    /// The sizes of the axes before those of a matrix.
    pub lead: Vec<usize>,
}

/// Where matrices lie.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrices {
    /// The buffer.
    pub buffer: BufferRef,
    /// The dtype of the elements.
    pub dtype: DType,
    /// Elements from a matrix to the next, along each axis before those of a matrix.
    pub lead: Vec<isize>,
    /// Elements from a row to the next.
    pub row: isize,
    /// Elements from a column to the next.
    pub column: isize,
}

/// Which part of a matrix is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// All of it.
    All,
    /// The lower triangle of a Hermitian one, whose diagonal is real; zeros above.
    Hermitian,
    /// The upper triangle; zeros below.
    Upper,
    /// Nothing: ones are written to the diagonal, and zeros beside it.
    Identity,
}

/// A number by which each row, or each column, of the copy is multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factors {
    /// Where the numbers are.
    pub buffer: BufferRef,
    /// How many there are for a matrix.
    pub per: usize,
    /// Whether there is one for a row.
    pub is_of_rows: bool,
}

/// How matrices are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    /// Which part.
    pub part: Part,
    /// Whether elements are conjugated before they are multiplied, and after it.
    pub conjugated: [bool; 2],
    /// By what they are multiplied.
    pub factors: Option<Factors>,
    /// Where it is noted that an element is not finite.
    pub status: Option<BufferRef>,
    /// Where it is noted which is the first column with a flaw: what it lacks of the largest word.
    pub noted: Option<(BufferRef, Flaw)>,
    /// By such notes, what becomes NaN in the copy: cuSOLVER takes NaN for 0 in pivots and lengths.
    pub spoilt: Option<(BufferRef, Spoilt)>,
}

/// What a flaw in a matrix leaves of what is computed from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spoilt {
    /// The columns before it are numbers.
    FromItsColumn,
    /// There is no number.
    All,
}

impl How {
    /// A copy of a part as it is.
    pub const fn of(part: Part) -> Self {
        How { part, conjugated: [false; 2], factors: None, status: None, noted: None, spoilt: None }
    }

    /// A copy of all of it, in which flaws are noted.
    pub const fn noting(notes: BufferRef, flaw: Flaw) -> Self {
        How { noted: Some((notes, flaw)), ..How::of(Part::All) }
    }
}

/// What counts as a flaw of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// That it is 0.
    Zero,
    /// That a part of it is NaN.
    Nan,
    /// That a part of it is infinite or NaN.
    NotFinite,
}

impl Flaw {
    fn is_in<'k>(self, number: Number<'k>) -> Option<Val<'k>> {
        match self {
            Flaw::Zero => number.parts().map(|v| v.eq(0.0)).reduce(|a, b| a & b),
            Flaw::Nan => number.parts().map(Val::is_nan).reduce(|a, b| a | b),
            Flaw::NotFinite => {
                let is_beyond = |v: Val<'k>| v.is_nan() | v.abs().eq(f32::INFINITY);
                number.parts().map(is_beyond).reduce(|a, b| a | b)
            }
        }
    }
}

impl Matrices {
    /// An input of a segment.
    pub fn input(segment: &Segment, index: usize) -> Self {
        let operand = &segment.inputs[index];
        let (lead, own) = operand.strides.split_at(operand.strides.len() - 2);
        Matrices {
            buffer: BufferRef::Input(index),
            dtype: operand.aval.dtype,
            lead: lead.to_vec(),
            row: own[0],
            column: own[1],
        }
    }

    /// The same with rows for columns.
    pub fn transposed(&self) -> Self {
        Matrices { row: self.column, column: self.row, ..self.clone() }
    }
}

/// Where matrices lie, as a kernel knows it.
struct Steps<'k> {
    view: View<'k>,
    lead: Vec<Val<'k>>,
    own: [Val<'k>; 2],
}

impl<'k> Steps<'k> {
    fn new(k: &'k Draft, matrices: &Matrices, access: Access) -> Self {
        let own = k.strides(&[matrices.row, matrices.column]);
        Steps {
            view: k.view(matrices.buffer, matrices.dtype, access),
            lead: k.strides(&matrices.lead),
            own: [own[0], own[1]],
        }
    }

    /// Where a matrix starts.
    fn start(&self, lead: &[Val<'k>]) -> Val<'k> {
        self.view.at(lead, &self.lead)
    }

    /// An element of the matrix that starts there.
    fn load(&self, start: Val<'k>, index: [Val<'k>; 2]) -> Number<'k> {
        self.view.buf.load_number(place(start, &index, &self.own))
    }
}

impl Batch<'_> {
    /// How many matrices there are.
    pub fn count(&self) -> usize {
        self.lead.iter().product()
    }

    /// Matrices of `rows` and `columns` without gaps, row by row.
    pub fn by_rows(
        &self,
        buffer: BufferRef,
        dtype: DType,
        rows: usize,
        columns: usize,
    ) -> Matrices {
        let mut step = rows * columns;
        let mut lead = vec![0; self.lead.len()];
        for (stride, &size) in lead.iter_mut().zip(&self.lead).rev() {
            *stride = step as isize;
            step *= size;
        }
        Matrices { buffer, dtype, lead, row: columns as isize, column: 1 }
    }

    /// Likewise, column by column.
    pub fn by_columns(
        &self,
        buffer: BufferRef,
        dtype: DType,
        rows: usize,
        columns: usize,
    ) -> Matrices {
        self.by_rows(buffer, dtype, columns, rows).transposed()
    }

    fn draft(&self, name: &str) -> Result<Draft, Missing> {
        Draft::new(name, BLOCK, self.segment, self.target)
    }

    /// Writes 0 to words.
    pub fn zeros(&self, words: BufferRef, count: usize) -> Result<Launch, Missing> {
        let k = self.draft("zeros")?;
        let to = k.view(words, DType::U32, Access::Write);
        k.each(count as u64, |at| to.buf.store(at, k.u32(0)));
        k.launch_over(count as u64)
    }

    /// Copies matrices of `rows` and `columns`.
    pub fn copied(
        &self,
        from: &Matrices,
        to: &Matrices,
        [rows, columns]: [usize; 2],
        how: How,
    ) -> Result<Launch, Missing> {
        let k = self.draft("matrices")?;
        let x = (how.part != Part::Identity).then(|| Steps::new(&k, from, Access::Read));
        let y = Steps::new(&k, to, Access::Write);
        let factors = how.factors.map(|f| (f, k.view(f.buffer, from.dtype, Access::Read)));
        let status = how.status.map(|status| k.view(status, DType::U32, Access::Atomic));
        let noted =
            how.noted.map(|(notes, flaw)| (k.view(notes, DType::U32, Access::Atomic), flaw));
        let spoilt =
            how.spoilt.map(|(notes, what)| (k.view(notes, DType::U32, Access::Read), what));
        // Neighbours in memory are written by neighbours.
        let is_across = to.row == 1 && to.column != 1;
        let (outer, inner) = if is_across { (columns, rows) } else { (rows, columns) };
        let sizes = k.divisors(&[self.count(), outer, inner]);
        let lead = k.divisors(&self.lead);
        let total = (self.count() * rows * columns) as u64;
        k.each(total, |flat| {
            let index = unflatten(flat, &sizes);
            let matrix = index[0];
            let (i, j) = if is_across { (index[2], index[1]) } else { (index[1], index[2]) };
            let at = unflatten(matrix, &lead);
            let is_inside = match how.part {
                Part::All => None,
                Part::Hermitian => Some(i.ge(j)),
                Part::Upper => Some(i.le(j)),
                Part::Identity => Some(i.eq(j)),
            };
            let mut number = match &x {
                Some(x) => x.load(x.start(&at), [i, j]),
                None => k.number(1, from.dtype),
            };
            if let (Part::Hermitian, Number::Complex(re, im)) = (how.part, number) {
                number = Number::Complex(re, i.eq(j).select(0.0, im));
            }
            let lack = || k.u32(u32::MAX) - j.convert(Ty::U32);
            if let Some((notes, flaw)) = noted {
                let note = || {
                    notes.buf.atomic(Atomic::Max, matrix, lack());
                };
                flaw.is_in(number).into_iter().for_each(|flaw| k.when(flaw, note));
            }
            if let Some((notes, what)) = spoilt {
                let note = notes.buf.load(matrix);
                let is_spoilt = match what {
                    Spoilt::FromItsColumn => note.ge(lack()),
                    Spoilt::All => note.gt(k.u32(0)),
                };
                number = number.map(|v| is_spoilt.select(v.like(f32::NAN), v));
            }
            if let Some(inside) = is_inside {
                number = number.map(|v| inside.select(v, v.like(0.0)));
            }
            if let Some(status) = status {
                let note = || {
                    status.buf.atomic(Atomic::Max, matrix, k.u32(1));
                };
                Flaw::NotFinite.is_in(number).into_iter().for_each(|wrong| k.when(wrong, note));
            }
            if how.conjugated[0] {
                number = conjugate(number);
            }
            if let Some((Factors { per, is_of_rows, .. }, factors)) = factors {
                let own = if is_of_rows { i } else { j };
                let factor = factors.buf.load_number(matrix * k.extent(per) + own);
                number = product(number, factor);
            }
            if how.conjugated[1] {
                number = conjugate(number);
            }
            y.view.buf.store_number(place(y.start(&at), &[i, j], &y.own), number);
        });
        k.launch_over(total)
    }

    /// What makes the first large element of each column of `rows` positive: `per` places for each
    /// matrix, of which those of its columns are written.
    pub fn turns(
        &self,
        vectors: &Matrices,
        [rows, columns]: [usize; 2],
        is_conjugated: bool,
        turns: BufferRef,
        per: usize,
    ) -> Result<Launch, Missing> {
        let k = self.draft("turns")?;
        let x = Steps::new(&k, vectors, Access::Read);
        let to = k.view(turns, vectors.dtype, Access::Write);
        let sizes = k.divisors(&[self.count(), columns]);
        let lead = k.divisors(&self.lead);
        let total = (self.count() * columns) as u64;
        k.each(total, |flat| {
            let index = unflatten(flat, &sizes);
            let (matrix, j) = (index[0], index[1]);
            let start = x.start(&unflatten(matrix, &lead));
            let place = matrix * k.extent(per) + j;
            to.buf.store_number(place, k.number(1, vectors.dtype));
            let largest = k.var(k.float(0.0, Ty::of(vectors.dtype)));
            k.count(k.extent(rows), |i| {
                let size = modulus(x.load(start, [i, j]));
                largest.set(size.gt(largest.get()).select(size, largest.get()));
            });
            let enough = largest.get() * LARGE;
            k.when(largest.get().gt(0.0), || {
                k.count(k.extent(rows), |i| {
                    let number = x.load(start, [i, j]);
                    let size = modulus(number);
                    k.when(size.ge(enough), || {
                        let turn = match number {
                            Number::Real(v) => {
                                Number::Real(v.lt(0.0).select(v.like(-1.0), v.like(1.0)))
                            }
                            Number::Complex(re, im) => {
                                let im = if is_conjugated { im } else { -im };
                                Number::Complex(re / size, im / size)
                            }
                        };
                        to.buf.store_number(place, turn);
                        k.leave();
                    });
                });
            });
        });
        k.launch_over(total)
    }

    /// The inverses of `count` values for each matrix, in `dtype`: 0 of those of at most `least`·ε times
    /// the first.
    pub fn inverses(
        &self,
        [values, inverses]: [BufferRef; 2],
        dtype: DType,
        count: usize,
        least: usize,
    ) -> Result<Launch, Missing> {
        let k = self.draft("inverses")?;
        let real = dtype.real();
        let from = k.view(values, real, Access::Read);
        let to = k.view(inverses, dtype, Access::Write);
        let total = (self.count() * count) as u64;
        let sizes = k.divisors(&[self.count(), count]);
        k.each(total, |flat| {
            let matrix = unflatten(flat, &sizes)[0];
            let first = from.buf.load(matrix * k.extent(count));
            let value = from.buf.load(flat);
            let epsilon = if real == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
            let least = k.extent(least).convert(Ty::of(real)) * k.float(epsilon, Ty::of(real));
            let is_large = value.gt(first * least);
            let one = value.like(1.0);
            let inverse = is_large.select(one / is_large.select(value, one), value.like(0.0));
            to.buf.store_number(
                flat,
                match dtype {
                    DType::C64 => Number::Complex(inverse, inverse.like(0.0)),
                    _ => Number::Real(inverse),
                },
            );
        });
        k.launch_over(total)
    }

    /// Notes the first element of each diagonal of `size` that has a flaw: what it lacks of the largest
    /// word. Matrices that have a word in `except` are passed over.
    pub fn diagonal(
        &self,
        matrices: &Matrices,
        size: usize,
        flaw: Flaw,
        status: BufferRef,
        except: Option<BufferRef>,
    ) -> Result<Launch, Missing> {
        let k = self.draft("diagonal")?;
        let x = Steps::new(&k, matrices, Access::Read);
        let except = except.map(|words| k.view(words, DType::U32, Access::Read));
        let status = k.view(status, DType::U32, Access::Atomic);
        let sizes = k.divisors(&[self.count(), size]);
        let lead = k.divisors(&self.lead);
        let total = (self.count() * size) as u64;
        k.each(total, |flat| {
            let index = unflatten(flat, &sizes);
            let (matrix, i) = (index[0], index[1]);
            let number = x.load(x.start(&unflatten(matrix, &lead)), [i, i]);
            let has_flaw = flaw.is_in(number).map(|flaw| match except {
                Some(words) => flaw & words.buf.load(matrix).eq(k.u32(0)),
                None => flaw,
            });
            let note = || {
                let lack = k.u32(u32::MAX) - i.convert(Ty::U32);
                status.buf.atomic(Atomic::Max, matrix, lack);
            };
            has_flaw.into_iter().for_each(|flaw| k.when(flaw, note));
        });
        k.launch_over(total)
    }

    /// What follows from the rows that were exchanged, counted from 1: the second and the third output
    /// of an LU factorization of `rows`. `order` has a word for each row.
    pub fn exchanges(
        &self,
        pivots: BufferRef,
        of_pivots: DType,
        order: BufferRef,
        [rows, steps]: [usize; 2],
    ) -> Result<Launch, Missing> {
        let k = self.draft("exchanges")?;
        let pivots = k.view(pivots, of_pivots, Access::Read);
        let order = k.view(order, DType::U32, Access::Write);
        let (exchanges, places) = (k.output(self.segment, 1), k.output(self.segment, 2));
        let total = self.count() as u64;
        k.each(total, |matrix| {
            let first = matrix * k.extent(rows);
            let row = |i| first + i;
            k.count(k.extent(rows), |i| order.buf.store(row(i), i.convert(Ty::U32)));
            k.count(k.extent(steps), |i| {
                let step = matrix * k.extent(steps) + i;
                let other = pivots.buf.load(step).convert(Ty::U32) - 1;
                exchanges.buf.store(exchanges.offset + step, other);
                let (one, other) = (row(i), row(k.as_index(other)));
                let (x, y) = (order.buf.load(one), order.buf.load(other));
                order.buf.store(one, y);
                order.buf.store(other, x);
            });
            k.count(k.extent(rows), |i| {
                let place = row(k.as_index(order.buf.load(row(i))));
                places.buf.store(places.offset + place, i.convert(Ty::U32));
            });
        });
        k.launch_over(total)
    }

    /// Complex numbers of `float64`, `count` for each matrix, as `complex64`.
    pub fn narrowed(
        &self,
        from: BufferRef,
        to: BufferRef,
        count: usize,
    ) -> Result<Launch, Missing> {
        let k = self.draft("narrowed")?;
        let x = k.view(from, DType::F64, Access::Read);
        let y = k.view(to, DType::C64, Access::Write);
        let total = (self.count() * count) as u64;
        k.each(total, |at| {
            let [re, im] = [at * 2, at * 2 + 1].map(|at| x.buf.load(at).convert(Ty::F32));
            y.buf.store_number(y.offset + at, Number::Complex(re, im));
        });
        k.launch_over(total)
    }

    /// The eigenvectors of a general matrix of `dtype` and `size`, of length 1, in the segment's second
    /// output: of a real matrix they are packed, where two columns are the parts of two vectors whose
    /// values are conjugates. The first large element of each is made positive.
    pub fn unpacked(
        &self,
        [values, packed]: [BufferRef; 2],
        dtype: DType,
        size: usize,
    ) -> Result<Launch, Missing> {
        let k = self.draft("unpacked")?;
        let of_values = if dtype == DType::F64 { DType::F64 } else { DType::C64 };
        let values = k.view(values, of_values, Access::Read);
        let packed = k.view(packed, dtype, Access::Read);
        let to = k.output(self.segment, 1);
        let sizes = k.divisors(&[self.count(), size]);
        let total = (self.count() * size) as u64;
        k.each(total, |flat| {
            let index = unflatten(flat, &sizes);
            let (n, j) = (k.extent(size), index[1]);
            let first = index[0] * n * n;
            // The columns of the parts, and whether the imaginary one counts, and how.
            let imaginary = match of_values {
                DType::F64 => values.buf.load(flat * 2 + 1),
                _ => values
                    .buf
                    .load_number(values.offset + flat)
                    .parts()
                    .last()
                    .unwrap_or_else(|| k.f32(0.0)),
            };
            let zero = imaginary.like(0.0);
            let (is_above, is_below) = (imaginary.gt(0.0), imaginary.lt(0.0));
            let re_at = is_below.select(j - 1, j);
            let im_at = is_above.select(j + 1, j);
            let load = |i| match dtype {
                DType::C64 => packed.buf.load_number(first + j * n + i),
                _ => {
                    let re = packed.buf.load(first + re_at * n + i);
                    let im = packed.buf.load(first + im_at * n + i);
                    let im = is_above.select(im, is_below.select(-im, zero));
                    Number::Complex(re, im)
                }
            };
            let largest = k.var(zero);
            k.count(n, |i| {
                let size = length(load(i));
                largest.set(size.gt(largest.get()).select(size, largest.get()));
            });
            let turn = k.number_var(Number::Complex(zero.like(1.0), zero));
            let enough = largest.get() * LARGE;
            k.when(largest.get().gt(0.0), || {
                k.count(n, |i| {
                    let number = load(i);
                    let size = length(number);
                    k.when(size.ge(enough), || {
                        turn.set(conjugate(number).map(|part| part / size));
                        k.leave();
                    });
                });
            });
            k.count(n, |i| {
                let number = product(load(i), turn.get()).map(|part| part.convert(Ty::F32));
                to.buf.store_number(to.offset + first + i * n + j, number);
            });
        });
        k.launch_over(total)
    }
}

/// The length of a number that is not far from 1, of either precision.
fn length(number: Number<'_>) -> Val<'_> {
    match number {
        Number::Real(v) => v.abs(),
        Number::Complex(re, im) => (re * re + im * im).sqrt(),
    }
}

fn modulus(number: Number<'_>) -> Val<'_> {
    match number {
        Number::Real(v) => v.abs(),
        Number::Complex(re, im) => complex::abs((re, im)),
    }
}

fn conjugate(number: Number<'_>) -> Number<'_> {
    match number {
        Number::Complex(re, im) => Number::Complex(re, -im),
        real => real,
    }
}

fn product<'k>(a: Number<'k>, b: Number<'k>) -> Number<'k> {
    match (a, b) {
        (Number::Complex(x, y), Number::Complex(u, v)) => {
            Number::Complex(x * u - y * v, x * v + y * u)
        }
        (a, b) => Number::Real(a.real() * b.real()),
    }
}
