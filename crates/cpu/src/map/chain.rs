//! Chains of simple functions of floats: what lies between them stays in registers.

use cupola_core::prim::{Binary, Elementwise, Unary};
#[cfg(target_arch = "x86_64")]
use cupola_simd::{F32x8, F32x16};
use cupola_simd::{Isa, Level, PortableF32};

use super::functions::Functions;
use super::program::Location;

/// A step of a chain: what the chain has becomes the result of a function of it and an operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Step<T> {
    /// What the chain has is an operand later on.
    Save,
    /// The function of one operand.
    Call(Unary),
    /// The function, its other operand, and whether that is the left one.
    Apply(Binary, Other<T>, bool),
}

/// The other operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Other<T> {
    /// An element for each.
    Each(T),
    /// One element for all.
    One(T),
    /// What was saved.
    Saved,
}

impl<T: Copy> Other<T> {
    pub fn map<U>(self, f: impl Fn(T) -> U) -> Other<U> {
        match self {
            Other::Each(at) => Other::Each(f(at)),
            Other::One(at) => Other::One(f(at)),
            Other::Saved => Other::Saved,
        }
    }
}

impl<T: Copy> Step<T> {
    pub fn map<U>(self, f: impl Fn(T) -> U) -> Step<U> {
        match self {
            Step::Save => Step::Save,
            Step::Call(op) => Step::Call(op),
            Step::Apply(op, other, is_left) => Step::Apply(op, other.map(f), is_left),
        }
    }
}

/// What becomes of the elements at `from`.
pub(crate) struct Chain<T> {
    pub from: Other<T>,
    pub steps: Vec<Step<T>>,
    /// All of its steps, where they are one of those that often come together.
    gate: Option<Gate<T>>,
}

impl<T: Copy> Chain<T> {
    /// What it begins with is saved.
    pub fn new(from: Other<T>, steps: Vec<Step<T>>) -> Chain<T> {
        let gate = Gate::of(from, &steps);
        Chain { from, steps, gate }
    }

    pub fn map<U: Copy>(&self, f: impl Fn(T) -> U + Copy) -> Chain<U> {
        Chain::new(self.from.map(f), self.steps.iter().map(|step| step.map(f)).collect())
    }
}

/// `x * bounded(f(scale * x) + shift) * ratio`: hard swish, swish and GELU. They are loops of their own, since the steps of a
/// chain cost more than most functions. Numbers are one for all elements, and each result is rounded as it is in steps.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Gate<T> {
    from: T,
    form: Form,
    scale: Option<T>,
    shift: Option<T>,
    /// What is at least, and at most; both or none.
    bounds: Option<[T; 2]>,
    ratio: Option<T>,
}

/// The function in a [`Gate`].
#[derive(Clone, Copy, PartialEq, Debug)]
enum Form {
    /// None, and the bounds in this order.
    AtLeastThenAtMost,
    AtMostThenAtLeast,
    /// This one without a shift and a ratio.
    Sigmoid,
    Tanh,
    Erf,
}

impl<T: Copy> Gate<T> {
    fn of(from: Other<T>, steps: &[Step<T>]) -> Option<Gate<T>> {
        let Other::Each(from) = from else { return None };
        let number = |steps: &mut &[Step<T>], op| match **steps {
            [Step::Apply(has, Other::One(number), _), ref rest @ ..] if has == op => {
                *steps = rest;
                Some(number)
            }
            _ => None,
        };
        let mut left = steps;
        let scale = number(&mut left, Binary::Mul);
        let called = match *left {
            [Step::Call(Unary::Sigmoid), ..] => Some(Form::Sigmoid),
            [Step::Call(Unary::Tanh), ..] => Some(Form::Tanh),
            [Step::Call(Unary::Erf), ..] => Some(Form::Erf),
            _ => None,
        };
        left = &left[usize::from(called.is_some())..];
        let shift = number(&mut left, Binary::Add);
        let (form, bounds) = match (called, left) {
            (Some(form), _) => (form, None),
            // Where both are equal the number is the result: it is the right one.
            (
                None,
                &[
                    Step::Apply(first, Other::One(a), false),
                    Step::Apply(second, Other::One(b), false),
                    ref rest @ ..,
                ],
            ) => {
                left = rest;
                match (first, second) {
                    (Binary::Maximum, Binary::Minimum) => (Form::AtLeastThenAtMost, Some([a, b])),
                    (Binary::Minimum, Binary::Maximum) => (Form::AtMostThenAtLeast, Some([b, a])),
                    _ => return None,
                }
            }
            (None, _) => return None,
        };
        let [Step::Apply(Binary::Mul, Other::Saved, _), ref rest @ ..] = *left else { return None };
        left = rest;
        let ratio = number(&mut left, Binary::Mul);
        let is_plain = form != Form::Sigmoid || shift.is_none() && ratio.is_none();
        (left.is_empty() && is_plain).then_some(Gate { from, form, scale, shift, bounds, ratio })
    }
}

/// A function that a chain may have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Simple {
    Unary(Unary),
    Binary(Binary),
}

impl Simple {
    /// The function of an instruction on floats.
    pub fn of(op: Elementwise) -> Option<Simple> {
        use Binary::{Add, Div, Maximum, Minimum, Mul, Sub};
        use Unary::{Abs, Erf, Exp, Neg, Sigmoid, Sqrt, Square, Tanh};
        match op {
            Elementwise::Unary(op @ (Abs | Erf | Exp | Neg | Sigmoid | Sqrt | Square | Tanh)) => {
                Some(Simple::Unary(op))
            }
            Elementwise::Binary(op @ (Add | Sub | Mul | Div | Maximum | Minimum)) => {
                Some(Simple::Binary(op))
            }
            _ => None,
        }
    }
}

/// Calls the function compiled for an instruction set with its vectors: those of AVX-512, of AVX2, or none.
macro_rules! by_isa {
    ($isa:expr, ($($arg:ident: $ty:ty),*), $avx512:path, $avx2:path, $portable:path) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            unsafe fn avx512($($arg: $ty),*) {
                // SAFETY: the caller vouches for the instruction set and the addresses.
                unsafe { $avx512($($arg),*) }
            }
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2($($arg: $ty),*) {
                // SAFETY: as above.
                unsafe { $avx2($($arg),*) }
            }
            match $isa.level() {
                // SAFETY: an `Isa` of this level exists only where its features are.
                Level::Avx512 | Level::Avx512Bf16 => return unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                Level::Avx2 => return unsafe { avx2($($arg),*) },
                Level::Portable => {}
            }
        }
        let _ = $isa;
        // SAFETY: as above.
        unsafe { $portable($($arg),*) }
    }};
}

/// Runs a chain over `n` elements; `table` has the address of each location.
///
/// # Safety
/// The addresses are valid for as many elements as they stand for; `to` may be one of them, and overlaps none else.
pub(super) unsafe fn run(
    isa: Isa,
    chain: &Chain<Location>,
    table: *const *const u8,
    to: *mut f32,
    n: usize,
) {
    by_isa!(
        isa, (chain: &Chain<Location>, table: *const *const u8, to: *mut f32, n: usize),
        all::<F32x16, 8>, all::<F32x8, 4>, all::<PortableF32, 4>
    );
}

/// Runs a chain over rows of `width` elements, `step` apart, in place: what is an element for each is one of theirs.
///
/// # Safety
/// The rows are there, and so are the numbers whose addresses `table` has.
pub(super) unsafe fn run_rows(
    isa: Isa,
    chain: &Chain<Location>,
    table: *const *const u8,
    rows: Rows,
) {
    by_isa!(
        isa, (chain: &Chain<Location>, table: *const *const u8, rows: Rows),
        each_row::<F32x16>, each_row::<F32x8>, each_row::<PortableF32>
    );
}

/// Rows of elements, which overlap nowhere: those of a tile, with few vectors each.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub first: *mut f32,
    pub step: usize,
    pub count: usize,
    pub width: usize,
}

/// # Safety
/// As [`run_rows`]; the instruction set is present.
#[inline(always)]
unsafe fn each_row<V: Functions>(chain: &Chain<Location>, table: *const *const u8, rows: Rows) {
    let Rows { first, step, count, width } = rows;
    if let Some(gate) = &chain.gate {
        let rows = (0..count).map(|row| first.wrapping_add(row * step));
        // SAFETY: the caller vouches for the addresses.
        unsafe { gated::<V>(gate, table, rows.map(|row| (row.cast_const(), row)), width) };
        return;
    }
    let (whole, left) = (width / V::LANES, width % V::LANES);
    // SAFETY: the caller vouches for the addresses.
    unsafe {
        let address = |location: Location| (*table.add(usize::from(location))).cast::<f32>();
        // Enough rows together that there are about eight vectors, which wait less for each other; then one by one.
        macro_rules! columns {
            ($first:expr, $many:literal vectors, $width:literal a row) => {{
                let rows = Rows { first: $first, ..rows };
                let done = some_rows::<V, $many, $width>(chain, address, rows, 0);
                some_rows::<V, $width, $width>(chain, address, rows, done);
            }};
        }
        match whole {
            2 => columns!(first, 8 vectors, 2 a row),
            3 => columns!(first, 6 vectors, 3 a row),
            4 => columns!(first, 8 vectors, 4 a row),
            _ => {
                for column in 0..whole {
                    columns!(first.add(column * V::LANES), 8 vectors, 1 a row);
                }
            }
        }
        for row in (0..count).filter(|_| left > 0) {
            let at = first.add(row * step + width - left);
            let [found] = block::<V, 1, 1>(chain, address, |_| at, (0, left));
            found.store_first(at, left);
        }
    }
}

/// Runs a chain over the first `W` vectors of rows from number `row` on, `N` vectors together; gives the number of the
/// first row that is left.
///
/// # Safety
/// As [`each_row`].
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn some_rows<V: Functions, const N: usize, const W: usize>(
    chain: &Chain<Location>,
    address: impl Fn(Location) -> *const f32,
    rows: Rows,
    mut row: usize,
) -> usize {
    while row + N / W <= rows.count {
        // SAFETY: the caller vouches for the addresses.
        unsafe {
            let start = rows.first.add(row * rows.step);
            let found = block::<V, N, W>(chain, &address, |_| start, (rows.step, V::LANES));
            for i in 0..N {
                found[i].store(start.add(i / W * rows.step + i % W * V::LANES));
            }
        }
        row += N / W;
    }
    row
}

/// # Safety
/// As [`run`]; the instruction set is present.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // As above.
unsafe fn all<V: Functions, const N: usize>(
    chain: &Chain<Location>,
    table: *const *const u8,
    to: *mut f32,
    n: usize,
) {
    // SAFETY: the caller vouches for the addresses.
    unsafe {
        let address = |location: Location| (*table.add(usize::from(location))).cast::<f32>();
        if let Some(gate) = &chain.gate {
            gated::<V>(gate, table, [(address(gate.from), to)], n);
            return;
        }
        let mut at = 0;
        while at + N * V::LANES <= n {
            let found = block::<V, N, N>(chain, address, |l| address(l).add(at), (0, V::LANES));
            for i in 0..N {
                found[i].store(to.add(at + i * V::LANES));
            }
            at += N * V::LANES;
        }
        while at + V::LANES <= n {
            let [found] = block::<V, 1, 1>(chain, address, |l| address(l).add(at), (0, V::LANES));
            found.store(to.add(at));
            at += V::LANES;
        }
        if at < n {
            let [found] = block::<V, 1, 1>(chain, address, |l| address(l).add(at), (0, n - at));
            found.store_first(to.add(at), n - at);
        }
    }
}

/// What becomes of a block of `N` vectors, `W` of them side by side, and `step` elements from these to the next. `first` is
/// where a location's are, and of a block of one vector `count` elements are there.
///
/// # Safety
/// As [`all`].
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn block<V: Functions, const N: usize, const W: usize>(
    chain: &Chain<Location>,
    address: impl Fn(Location) -> *const f32,
    first: impl Fn(Location) -> *const f32,
    (step, count): (usize, usize),
) -> [V; N] {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        // No closures: these may be compiled by themselves, and so without the instruction set.
        macro_rules! load {
            ($location:expr) => {{
                let (from, mut all) = (first($location), [V::zero(); N]);
                for i in 0..N {
                    let place = from.add(i / W * step + i % W * V::LANES);
                    let is_whole = N > 1 || count >= V::LANES;
                    all[i] = if is_whole { V::load(place) } else { V::load_first(place, count) };
                }
                all
            }};
        }
        macro_rules! one {
            ($location:expr) => {
                [V::splat(address($location)); N]
            };
        }
        let mut has = match chain.from {
            Other::Each(l) => load!(l),
            Other::One(l) => one!(l),
            Other::Saved => [V::zero(); N],
        };
        let mut saved = has;
        for step in &chain.steps {
            let (op, other, is_left) = match *step {
                Step::Save => {
                    saved = has;
                    continue;
                }
                Step::Call(op) => {
                    call(op, &mut has);
                    continue;
                }
                Step::Apply(op, Other::Each(l), is_left) => (op, load!(l), is_left),
                Step::Apply(op, Other::One(l), is_left) => (op, one!(l), is_left),
                Step::Apply(op, Other::Saved, is_left) => (op, saved, is_left),
            };
            macro_rules! apply {
                ($f:ident) => {
                    for i in 0..N {
                        has[i] = V::$f(has[i], other[i]);
                    }
                };
                ($f:ident swapped) => {
                    for i in 0..N {
                        has[i] = V::$f(other[i], has[i]);
                    }
                };
            }
            match (op, is_left) {
                (Binary::Add, _) => apply!(add),
                (Binary::Mul, _) => apply!(mul),
                (Binary::Sub, false) => apply!(sub),
                (Binary::Sub, true) => apply!(sub swapped),
                (Binary::Div, false) => apply!(div),
                (Binary::Div, true) => apply!(div swapped),
                (Binary::Maximum, false) => apply!(maximum),
                (Binary::Maximum, true) => apply!(maximum swapped),
                (Binary::Minimum, false) => apply!(minimum),
                (Binary::Minimum, true) => apply!(minimum swapped),
                // `Simple` has no others.
                _ => {}
            }
        }
        has
    }
}

/// A [`Gate`] of `n` elements of each row: from where and to where.
///
/// # Safety
/// As [`all`].
#[inline(always)]
unsafe fn gated<V: Functions>(
    gate: &Gate<Location>,
    table: *const *const u8,
    rows: impl IntoIterator<Item = (*const f32, *mut f32)>,
    n: usize,
) {
    // SAFETY: the caller vouches for the addresses.
    unsafe {
        // A number that is not there changes nothing: 1 · x, and −0 + x.
        let or = |location: Option<Location>, other: &'static f32| match location {
            Some(location) => (*table.add(usize::from(location))).cast::<f32>(),
            None => other,
        };
        let (scale, shift) = (V::splat(or(gate.scale, &1.0)), V::splat(or(gate.shift, &-0.0)));
        let [low, high] = gate.bounds.map_or([None; 2], |bounds| bounds.map(Some));
        let (low, high) = (V::splat(or(low, &0.0)), V::splat(or(high, &0.0)));
        let ratio = V::splat(or(gate.ratio, &1.0));
        macro_rules! each {
            (|$x:ident, $scaled:ident| $f:expr) => {
                for (from, to) in rows {
                    let mut at = 0;
                    while at + V::LANES <= n {
                        let $x = V::load(from.add(at));
                        let $scaled = $x.mul(scale);
                        $f.store(to.add(at));
                        at += V::LANES;
                    }
                    if at < n {
                        let $x = V::load_first(from.add(at), n - at);
                        let $scaled = $x.mul(scale);
                        $f.store_first(to.add(at), n - at);
                    }
                }
            };
        }
        match gate.form {
            Form::AtLeastThenAtMost => {
                each!(|x, y| y.add(shift).maximum(low).minimum(high).mul(x).mul(ratio))
            }
            Form::AtMostThenAtLeast => {
                each!(|x, y| y.add(shift).minimum(high).maximum(low).mul(x).mul(ratio))
            }
            Form::Sigmoid => each!(|x, y| y.sigmoid().mul(x)),
            Form::Tanh => each!(|x, y| y.tanh().add(shift).mul(x).mul(ratio)),
            Form::Erf => each!(|x, y| y.erf().add(shift).mul(x).mul(ratio)),
        }
    }
}

/// A function of one operand, of all of a block.
///
/// # Safety
/// The instruction set is present.
#[inline(always)]
unsafe fn call<V: Functions, const N: usize>(op: Unary, has: &mut [V; N]) {
    macro_rules! each {
        (|$x:ident| $body:expr) => {
            for lanes in has {
                let $x = *lanes;
                // SAFETY: the caller vouches for the instruction set.
                *lanes = unsafe { $body };
            }
        };
    }
    match op {
        Unary::Abs => each!(|x| x.abs()),
        Unary::Erf => each!(|x| x.erf()),
        Unary::Exp => each!(|x| x.exp()),
        Unary::Neg => each!(|x| x.neg()),
        Unary::Sigmoid => each!(|x| x.sigmoid()),
        Unary::Sqrt => each!(|x| x.sqrt()),
        Unary::Square => each!(|x| x.mul(x)),
        Unary::Tanh => each!(|x| x.tanh()),
        // `Simple` has no others.
        _ => {}
    }
}
