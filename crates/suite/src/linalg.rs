//! Factorizations of matrices, and equations.

use cupola_core::prim::{Linalg, Vectors};
use cupola_core::{Aval, DType};
use num_complex::Complex64;

use crate::host::Host;
use crate::number::Number;
use crate::sample::{Input, Sample, from, input, numbers, spread};

pub fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for shape in [&[1, 1][..], &[2, 2], &[3, 3], &[5, 5], &[2, 3, 3], &[0, 2, 2], &[2, 0, 0]] {
        let n = shape[shape.len() - 1];
        let definite = move || vec![from(shape, move |i| symmetric(i, n, 4.0))];
        let apart = move || vec![from(shape, move |i| symmetric(i, n, 0.5))];
        all.push(of(Linalg::Cholesky, shape, definite()).hermitian());
        for vectors in [false, true] {
            all.push(of(Linalg::Eigh { vectors }, shape, apart()).hermitian());
        }
        for columns in [0, 1, n, 4] {
            let mut other = shape.to_vec();
            other[shape.len() - 1] = columns;
            let b = move |other: &[usize]| from(other, |i| spread(i + 11));
            let name = format!("{shape:?} by {columns}");
            let general = vec![from(shape, move |i| spread(i) + dominant(i, n, 3.0)), b(&other)];
            all.push(named(Linalg::Solve, &name, general));
            for (upper, unit) in [(false, false), (false, true), (true, false), (true, true)] {
                let a = from(shape, move |i| 0.5 * spread(i) + dominant(i, n, 3.0));
                let op = Linalg::SolveTriangular { upper, unit };
                let name = format!("{name}, upper {upper}, unit {unit}");
                all.push(named(op, &name, vec![a, b(&other)]));
            }
        }
    }
    for shape in [
        &[1, 1][..],
        &[3, 3],
        &[5, 5],
        &[4, 3],
        &[3, 4],
        &[1, 3],
        &[2, 3, 2],
        &[2, 5, 2],
        &[2, 2, 5],
        &[0, 3],
        &[3, 0],
        &[0, 3, 2],
    ] {
        let [m, n] = [shape[shape.len() - 2], shape[shape.len() - 1]];
        for op in [Linalg::Lu, Linalg::Qr, Linalg::Pinv] {
            all.push(of(op, shape, vec![from(shape, spread)]));
        }
        for vectors in [Vectors::None, Vectors::Thin, Vectors::Full] {
            // More than one vector beyond the singular values may turn with the others of them.
            if vectors == Vectors::Full && m.min(n) > 0 && m.abs_diff(n) > 1 {
                continue;
            }
            all.push(of(Linalg::Svd(vectors), shape, vec![input(shape)]));
        }
    }
    // A row that is exchanged, a column that is 0, and pivots of the other sign.
    let exchanged = vec![numbers([3, 3], &[0.0, 2.0, 1.0, -4.0, 1.0, 0.5, 1.0, 0.0, 3.0])];
    all.push(named(Linalg::Lu, "of exchanged rows", exchanged));
    // Columns without a pivot are left as they are.
    let of_row = |i: usize| [1.0, 2.0, -4.0, 0.5, 8.0][i / 4 % 5];
    let rank_one = || vec![from([5, 4], move |i| of_row(i) * ((i % 4) as f64 + 0.5))];
    let zeros = || vec![from([2, 3, 3], |i| if i < 9 { 0.0 } else { [1.0, 0.0, 2.0][i % 3] })];
    for (name, inputs) in [("lu of rank 1", rank_one()), ("lu of zeros", zeros())] {
        let sample = Sample::new(name, |_| Linalg::Lu.into(), inputs);
        all.push(sample.only(|dtype| takes(Linalg::Lu, dtype)).where_kernels_are_cheap());
    }
    let of_rank_one = || vec![numbers([3, 2], &[1.0, 2.0, 2.0, 4.0, -1.0, -2.0])];
    let plain = |op: Linalg, name: &str, inputs| {
        Sample::new(name, move |_| op.into(), inputs).only(move |dtype| takes(op, dtype))
    };
    all.push(plain(Linalg::Pinv, "pinv of rank 1", of_rank_one()));
    all.push(plain(Linalg::Svd(Vectors::None), "singular values of rank 1", of_rank_one()));
    // What is not a number leaves none, and other matrices as they are.
    let nan_at = |shape: &[usize], place: usize| {
        let n = shape[shape.len() - 1];
        let number = move |i| if i == place { f64::NAN } else { spread(i) + dominant(i, n, 3.0) };
        from(shape, number)
    };
    let b = || from([2, 3, 2], |i| spread(i + 11));
    for (op, name, inputs) in [
        (Linalg::Solve, "solve of a NaN", vec![nan_at(&[3, 3], 4), numbers([3, 1], &[1.0; 3])]),
        (Linalg::Solve, "solve of a NaN in a batch", vec![nan_at(&[2, 3, 3], 11), b()]),
        (Linalg::Qr, "qr of a NaN", vec![nan_at(&[4, 3], 3)]),
        (Linalg::Qr, "qr of a NaN in a batch", vec![nan_at(&[2, 3, 4], 16)]),
    ] {
        all.push(plain(op, name, inputs).only(move |dtype| dtype != DType::C64));
    }
    // What goes through blocks.
    for size in [40, 130] {
        let shape = [size, size];
        let general = || from(shape, move |i| 0.3 * spread(i) + dominant(i, size, 9.0));
        let b = from([size, 7], |i| spread(i + 11));
        let definite =
            from(shape, move |i| 0.1 * symmetric(i, size, 0.0) + dominant(i, size, 30.0));
        let large = [
            (Linalg::Solve, vec![general(), b]),
            (Linalg::Lu, vec![general()]),
            (Linalg::Qr, vec![general()]),
            (Linalg::Cholesky, vec![definite]),
        ];
        for (op, inputs) in large {
            let sample = plain(op, &format!("{} of {size} rows", op.name()), inputs);
            all.push(if op == Linalg::Cholesky { sample.hermitian() } else { sample });
        }
    }
    // What kernels are made for where that takes long.
    for shape in [&[2, 3, 3][..], &[0, 3, 3], &[2, 0, 0]] {
        let n = shape[shape.len() - 1];
        let general = move || from(shape, move |i| spread(i) + dominant(i, n, 3.0));
        let mut several = shape.to_vec();
        several[shape.len() - 1] = 2;
        let b = || from(&several[..], |i| spread(i + 11));
        let one = |op: Linalg, inputs: Vec<Input>| {
            plain(op, &format!("{op:?} of a batch {shape:?}"), inputs)
        };
        let definite = vec![from(shape, move |i| symmetric(i, n, 4.0))];
        all.push(one(Linalg::Cholesky, definite).hermitian());
        for vectors in [false, true] {
            let apart = vec![from(shape, move |i| symmetric(i, n, 0.5))];
            all.push(one(Linalg::Eigh { vectors }, apart).hermitian());
        }
        all.push(one(Linalg::Solve, vec![general(), b()]));
        for (upper, unit) in [(false, false), (false, true), (true, false), (true, true)] {
            let a = from(shape, move |i| 0.5 * spread(i) + dominant(i, n, 3.0));
            all.push(one(Linalg::SolveTriangular { upper, unit }, vec![a, b()]));
        }
    }
    for shape in [&[4, 3][..], &[3, 4], &[2, 3, 4], &[0, 3], &[3, 0]] {
        let decompositions = [Vectors::None, Vectors::Thin, Vectors::Full].map(Linalg::Svd);
        for op in [Linalg::Lu, Linalg::Qr, Linalg::Pinv].into_iter().chain(decompositions) {
            let name = format!("{op:?} of a batch {shape:?}");
            all.push(plain(op, &name, vec![from(shape, spread)]));
        }
    }
    all
}

fn named(op: Linalg, name: &str, inputs: Vec<Input>) -> Sample {
    let name = format!("{} {name}", op.name());
    let sample = Sample::new(name, move |_| op.into(), inputs).only(move |dtype| takes(op, dtype));
    sample.smooth().where_kernels_are_cheap()
}

fn of(op: Linalg, shape: &[usize], inputs: Vec<Input>) -> Sample {
    let vectors = match op {
        Linalg::Svd(vectors) => format!(" with vectors {vectors:?}"),
        Linalg::Eigh { vectors } => format!(" with vectors {vectors}"),
        _ => String::new(),
    };
    named(op, &format!("of {shape:?}{vectors}"), inputs)
}

/// Whether a sample is of complex matrices, too. Not where the result has phases, which differences do
/// not know, or pivots, of which another may count as the largest; nor where the matrix has to be
/// definite, or its inverse is not exact enough for differences.
fn takes(op: Linalg, dtype: DType) -> bool {
    match op {
        _ if dtype != DType::C64 => true,
        Linalg::Svd(vectors) => vectors == Vectors::None,
        Linalg::Eigh { vectors } | Linalg::Eig { vectors } => !vectors,
        Linalg::Solve | Linalg::SolveTriangular { .. } => true,
        Linalg::Cholesky | Linalg::Lu | Linalg::Qr | Linalg::Pinv => false,
    }
}

/// A place on the diagonal counts `by`, and more from row to row.
fn dominant(i: usize, n: usize, by: f64) -> f64 {
    let (row, column) = (i / n % n, i % n);
    if row == column { by + row as f64 } else { 0.0 }
}

/// A symmetric matrix whose diagonal is larger than its other elements by about `by` a row.
fn symmetric(i: usize, n: usize, by: f64) -> f64 {
    let (row, column) = (i / n % n, i % n);
    let (low, high) = (row.min(column), row.max(column));
    0.3 * spread(i / (n * n) * 31 + high * n + low) + dominant(i, n, by) * by
}

/// A matrix of complex numbers.
#[derive(Clone)]
struct Matrix {
    rows: usize,
    columns: usize,
    data: Vec<Complex64>,
}

impl Matrix {
    fn from_fn(rows: usize, columns: usize, f: impl Fn(usize, usize) -> Complex64) -> Self {
        let data = (0..rows * columns).map(|i| f(i / columns, i % columns)).collect();
        Matrix { rows, columns, data }
    }

    fn identity(n: usize) -> Self {
        Matrix::from_fn(n, n, |i, j| Complex64::from(f64::from(i == j)))
    }

    fn at(&self, i: usize, j: usize) -> Complex64 {
        self.data[i * self.columns + j]
    }

    fn set(&mut self, i: usize, j: usize, v: Complex64) {
        self.data[i * self.columns + j] = v;
    }

    fn adjoint(&self) -> Self {
        Matrix::from_fn(self.columns, self.rows, |i, j| self.at(j, i).conj())
    }

    fn times(&self, other: &Matrix) -> Self {
        Matrix::from_fn(self.rows, other.columns, |i, j| {
            (0..self.columns).map(|k| self.at(i, k) * other.at(k, j)).sum()
        })
    }

    fn swap_rows(&mut self, i: usize, j: usize) {
        for k in 0..self.columns {
            self.data.swap(i * self.columns + k, j * self.columns + k);
        }
    }

    /// Some of the columns, in this order.
    fn columns_of(&self, which: &[usize]) -> Self {
        Matrix::from_fn(self.rows, which.len(), |i, j| self.at(i, which[j]))
    }
}

/// What the textbooks' loops give, matrix by matrix.
pub fn reference(op: &Linalg, inputs: &[Host], outputs: &[Aval]) -> Vec<Host> {
    let rank = inputs[0].aval.shape.rank();
    let count: usize = inputs[0].aval.shape[..rank - 2].iter().product();
    let matrix = |host: &Host, at: usize| {
        let shape = &host.aval.shape;
        let (rows, columns) = (shape[rank - 2], shape[rank - 1]);
        let data = host.data[at * rows * columns..(at + 1) * rows * columns].iter();
        Matrix { rows, columns, data: data.map(|v| v.complex()).collect() }
    };
    let mut results: Vec<Vec<Complex64>> = vec![Vec::new(); outputs.len()];
    for at in 0..count {
        let a = matrix(&inputs[0], at);
        let b = inputs.get(1).map(|b| matrix(b, at));
        for (all, one) in results.iter_mut().zip(compute(*op, a, b)) {
            all.extend(one);
        }
    }
    let host = |(aval, data): (&Aval, Vec<Complex64>)| {
        let number = |v: &Complex64| match aval.dtype {
            DType::U32 => Number::Int(v.re as i128),
            _ => Number::Complex(*v),
        };
        let data = data.iter().map(|v| number(v).fit(aval.dtype)).collect();
        Host { aval: aval.clone(), data }
    };
    outputs.iter().zip(results).map(host).collect()
}

fn compute(op: Linalg, a: Matrix, b: Option<Matrix>) -> Vec<Vec<Complex64>> {
    let reals = |v: Vec<f64>| v.into_iter().map(Complex64::from).collect();
    match (op, b) {
        (Linalg::Cholesky, _) => vec![cholesky(&a).data],
        (Linalg::Solve, Some(b)) => vec![solve(&a, &b).data],
        (Linalg::SolveTriangular { upper, unit }, Some(b)) => {
            let triangle = Matrix::from_fn(a.rows, a.rows, |i, j| match i.cmp(&j) {
                std::cmp::Ordering::Equal if unit => Complex64::ONE,
                std::cmp::Ordering::Less if !upper => Complex64::ZERO,
                std::cmp::Ordering::Greater if upper => Complex64::ZERO,
                _ => a.at(i, j),
            });
            vec![solve(&triangle, &b).data]
        }
        (Linalg::Solve | Linalg::SolveTriangular { .. }, None) => Vec::new(),
        (Linalg::Lu, _) => {
            let (lu, pivots, places) = lu(&a);
            let counts = |v: Vec<usize>| reals(v.into_iter().map(|v| v as f64).collect());
            vec![lu.data, counts(pivots), counts(places)]
        }
        (Linalg::Qr, _) => {
            let (q, r) = qr(&a);
            vec![q.data, r.data]
        }
        (Linalg::Svd(vectors), _) => {
            let (u, s, v) = svd(&a, vectors == Vectors::Full);
            match vectors {
                Vectors::None => vec![reals(s)],
                Vectors::Thin | Vectors::Full => vec![u.data, reals(s), v.adjoint().data],
            }
        }
        (Linalg::Eigh { vectors }, _) => {
            let whole = Matrix::from_fn(a.rows, a.rows, |i, j| match i >= j {
                true if i == j => Complex64::from(a.at(i, i).re),
                true => a.at(i, j),
                false => a.at(j, i).conj(),
            });
            let (w, v) = eigh(&whole);
            if vectors { vec![reals(w), v.data] } else { vec![reals(w)] }
        }
        (Linalg::Pinv, _) => {
            let (u, s, v) = svd(&a, false);
            let least = 1e-5 * s.first().copied().unwrap_or(0.0);
            let scaled = Matrix::from_fn(v.rows, s.len(), |i, j| {
                if s[j] > least { v.at(i, j) / s[j] } else { Complex64::ZERO }
            });
            vec![scaled.times(&u.adjoint()).data]
        }
        (Linalg::Eig { vectors }, _) => {
            let (w, v) = eig(&a);
            if vectors { vec![w, v.data] } else { vec![w] }
        }
    }
}

fn cholesky(a: &Matrix) -> Matrix {
    let n = a.rows;
    let mut l = Matrix::from_fn(n, n, |_, _| Complex64::ZERO);
    for j in 0..n {
        for i in j..n {
            let sum: Complex64 = (0..j).map(|k| l.at(i, k) * l.at(j, k).conj()).sum();
            let rest = a.at(i, j) - sum;
            l.set(i, j, if i == j { rest.re.sqrt().into() } else { rest / l.at(j, j) });
        }
    }
    l
}

/// The factors in one matrix, the exchanges, and where each row went.
fn lu(a: &Matrix) -> (Matrix, Vec<usize>, Vec<usize>) {
    let (mut lu, mut order) = (a.clone(), (0..a.rows).collect::<Vec<_>>());
    let mut pivots = Vec::new();
    for k in 0..a.rows.min(a.columns) {
        let mut pivot = k;
        for i in k + 1..a.rows {
            if lu.at(i, k).norm() > lu.at(pivot, k).norm() {
                pivot = i;
            }
        }
        pivots.push(pivot);
        if lu.at(pivot, k).norm() == 0.0 {
            continue;
        }
        order.swap(k, pivot);
        lu.swap_rows(k, pivot);
        for i in k + 1..a.rows {
            let factor = lu.at(i, k) / lu.at(k, k);
            lu.set(i, k, factor);
            for j in k + 1..a.columns {
                lu.set(i, j, lu.at(i, j) - factor * lu.at(k, j));
            }
        }
    }
    let mut places = vec![0; a.rows];
    order.iter().enumerate().for_each(|(place, &row)| places[row] = place);
    (lu, pivots, places)
}

fn solve(a: &Matrix, b: &Matrix) -> Matrix {
    let (lu, pivots, _) = lu(a);
    let (n, mut x) = (a.rows, b.clone());
    pivots.iter().enumerate().for_each(|(k, &pivot)| x.swap_rows(k, pivot));
    for column in 0..b.columns {
        for i in 0..n {
            let sum: Complex64 = (0..i).map(|k| lu.at(i, k) * x.at(k, column)).sum();
            x.set(i, column, x.at(i, column) - sum);
        }
        for i in (0..n).rev() {
            let sum: Complex64 = (i + 1..n).map(|k| lu.at(i, k) * x.at(k, column)).sum();
            x.set(i, column, (x.at(i, column) - sum) / lu.at(i, i));
        }
    }
    x
}

/// By reflections of real columns: each leaves a number of the other sign on the diagonal.
fn qr(a: &Matrix) -> (Matrix, Matrix) {
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let (mut r, mut q) = (a.clone(), Matrix::identity(m));
    for c in 0..k {
        let below: f64 = (c + 1..m).map(|i| r.at(i, c).re.powi(2)).sum();
        if below == 0.0 {
            continue;
        }
        let head = r.at(c, c).re;
        let length = (head * head + below).sqrt();
        let mut v: Vec<f64> = (0..m).map(|i| if i > c { r.at(i, c).re } else { 0.0 }).collect();
        v[c] = head + if head < 0.0 { -length } else { length };
        let size: f64 = v.iter().map(|x| x * x).sum();
        for matrix in [&mut r, &mut q] {
            for j in 0..matrix.columns {
                let along: Complex64 = (0..m).map(|i| matrix.at(i, j) * v[i]).sum();
                for (i, v) in v.iter().enumerate() {
                    matrix.set(i, j, matrix.at(i, j) - along * (2.0 * v / size));
                }
            }
        }
    }
    let upper = |i: usize, j: usize| if i > j { Complex64::ZERO } else { r.at(i, j) };
    let q = q.adjoint();
    (q.columns_of(&(0..k).collect::<Vec<_>>()), Matrix::from_fn(k, n, upper))
}

/// Jacobi's rotations until nothing is left beside the diagonal; eigenvalues ascend.
fn eigh(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.rows;
    let (mut a, mut v) = (a.clone(), Matrix::identity(n));
    for _ in 0..60 {
        for p in 0..n {
            for q in p + 1..n {
                let off = a.at(p, q);
                if off.norm() == 0.0 {
                    continue;
                }
                let phase = off / off.norm();
                let tau = (a.at(q, q).re - a.at(p, p).re) / (2.0 * off.norm());
                let t =
                    if tau >= 0.0 { 1.0 } else { -1.0 } / (tau.abs() + (1.0 + tau * tau).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                let s = t * c;
                // Columns p and q of the rotation: (c, −s·phase̅) and (s·phase, c).
                let turned = |x: &Matrix| {
                    let mut y = x.clone();
                    for i in 0..x.rows {
                        let (xp, xq) = (x.at(i, p), x.at(i, q));
                        y.set(i, p, xp * c - xq * phase.conj() * s);
                        y.set(i, q, xp * phase * s + xq * c);
                    }
                    y
                };
                a = turned(&turned(&a).adjoint()).adjoint();
                v = turned(&v);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a.at(i, i).re.total_cmp(&a.at(j, j).re));
    let values = order.iter().map(|&i| a.at(i, i).re).collect();
    (values, positive(&v.columns_of(&order)))
}

/// The roots of the characteristic polynomial, and what inverse iteration makes of them: for few rows. Their order is
/// nobody's, nor are the phases of vectors, so only what depends on neither is compared.
fn eig(a: &Matrix) -> (Vec<Complex64>, Matrix) {
    let n = a.rows;
    // Faddeev and LeVerrier: the coefficients below the highest power, from the last to the first.
    let (mut power, mut coefficients) = (Matrix::from_fn(n, n, |_, _| Complex64::ZERO), Vec::new());
    let mut last = Complex64::ONE;
    for k in 1..=n {
        let product = a.times(&power);
        power = Matrix::from_fn(n, n, |i, j| {
            product.at(i, j) + if i == j { last } else { Complex64::ZERO }
        });
        let product = a.times(&power);
        last = -(0..n).map(|i| product.at(i, i)).sum::<Complex64>() / k as f64;
        coefficients.push(last);
    }
    // Durand and Kerner: all roots at once.
    let polynomial = |z: Complex64| coefficients.iter().fold(Complex64::ONE, |sum, c| sum * z + c);
    let mut roots: Vec<Complex64> =
        (0..n).map(|i| Complex64::new(0.4, 0.9).powu(i as u32)).collect();
    for _ in 0..500 {
        for i in 0..n {
            let others = (0..n).filter(|&j| j != i).map(|j| roots[i] - roots[j]);
            let step = polynomial(roots[i]) / others.product::<Complex64>();
            if step.is_finite() {
                roots[i] -= step;
            }
        }
    }
    let vector = |root: Complex64| {
        let near = root + 1e-10 * (1.0 + root.norm());
        let shifted =
            Matrix::from_fn(n, n, |i, j| a.at(i, j) - if i == j { near } else { Complex64::ZERO });
        let mut x = Matrix::from_fn(n, 1, |i, _| Complex64::from(1.0 + i as f64 / 7.0));
        for _ in 0..3 {
            x = solve(&shifted, &x);
            let length = x.data.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt();
            x.data.iter_mut().for_each(|v| *v /= length);
        }
        x.data
    };
    let columns: Vec<Vec<Complex64>> = roots.iter().map(|&root| vector(root)).collect();
    (roots, Matrix::from_fn(n, n, |i, j| columns[j][i]))
}

/// Columns whose first element of at least half the size of the largest is positive.
fn positive(v: &Matrix) -> Matrix {
    let turns: Vec<Complex64> = (0..v.columns).map(|j| turn(v, j)).collect();
    Matrix::from_fn(v.rows, v.columns, |i, j| v.at(i, j) * turns[j])
}

fn turn(v: &Matrix, j: usize) -> Complex64 {
    let largest = (0..v.rows).map(|i| v.at(i, j).norm()).fold(0.0, f64::max);
    let first = (0..v.rows).map(|i| v.at(i, j)).find(|x| x.norm() >= 0.5 * largest);
    first.filter(|x| x.norm() > 0.0).map_or(Complex64::ONE, |x| x.conj() / x.norm())
}

/// From the eigenvectors of Aᴴ·A or A·Aᴴ, whichever is smaller; values descend.
fn svd(a: &Matrix, full: bool) -> (Matrix, Vec<f64>, Matrix) {
    if a.rows < a.columns {
        let (v, s, u) = svd(&a.adjoint(), full);
        // The signs are those of U.
        let turns: Vec<Complex64> = (0..s.len()).map(|j| turn(&u, j)).collect();
        let with = |x: &Matrix| {
            Matrix::from_fn(x.rows, x.columns, |i, j| {
                x.at(i, j) * turns.get(j).copied().unwrap_or(Complex64::ONE)
            })
        };
        return (with(&u), s, with(&v));
    }
    let (k, rows) = (a.columns, a.rows);
    // One-sided rotations, so that small values are as exact as large ones.
    let (mut w, mut v) = (a.clone(), Matrix::identity(k));
    for _ in 0..60 {
        for p in 0..k {
            for q in p + 1..k {
                let inner = |x: usize, y: usize| -> Complex64 {
                    (0..rows).map(|i| w.at(i, x).conj() * w.at(i, y)).sum()
                };
                let gram = Matrix {
                    rows: 2,
                    columns: 2,
                    data: vec![inner(p, p), inner(p, q), inner(q, p), inner(q, q)],
                };
                if gram.at(0, 1).norm() == 0.0 {
                    continue;
                }
                let turns = eigh_two(&gram);
                for x in [&mut w, &mut v] {
                    for i in 0..x.rows {
                        let (xp, xq) = (x.at(i, p), x.at(i, q));
                        x.set(i, p, xp * turns[0] + xq * turns[1]);
                        x.set(i, q, xp * turns[2] + xq * turns[3]);
                    }
                }
            }
        }
    }
    let length = |j: usize| (0..rows).map(|i| w.at(i, j).norm_sqr()).sum::<f64>().sqrt();
    let lengths: Vec<f64> = (0..k).map(length).collect();
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by(|&i, &j| lengths[j].total_cmp(&lengths[i]));
    let s: Vec<f64> = order.iter().map(|&j| lengths[j]).collect();
    let u = Matrix::from_fn(rows, k, |i, j| {
        if s[j] > 0.0 { w.at(i, order[j]) / s[j] } else { Complex64::ZERO }
    });
    let v = v.columns_of(&order);
    let turns: Vec<Complex64> = (0..k).map(|j| turn(&u, j)).collect();
    let with = |x: &Matrix| Matrix::from_fn(x.rows, k, |i, j| x.at(i, j) * turns[j]);
    let (mut u, v) = (with(&u), with(&v));
    if full {
        u = completed(&u);
    }
    (u, s, v)
}

/// The rotation that diagonalizes a Hermitian matrix of two rows: its columns one after the other.
fn eigh_two(a: &Matrix) -> [Complex64; 4] {
    let off = a.at(0, 1);
    let phase = off / off.norm();
    let tau = (a.at(1, 1).re - a.at(0, 0).re) / (2.0 * off.norm());
    let t = if tau >= 0.0 { 1.0 } else { -1.0 } / (tau.abs() + (1.0 + tau * tau).sqrt());
    let c = 1.0 / (1.0 + t * t).sqrt();
    let s = t * c;
    [Complex64::from(c), -phase.conj() * s, phase * s, Complex64::from(c)]
}

/// Columns with one more for each unit vector that they do not span.
fn completed(u: &Matrix) -> Matrix {
    let n = u.rows;
    let mut columns: Vec<Vec<Complex64>> =
        (0..u.columns).map(|j| (0..n).map(|i| u.at(i, j)).collect()).collect();
    for unit in 0..n {
        let mut x: Vec<Complex64> = (0..n).map(|i| Complex64::from(f64::from(i == unit))).collect();
        for _ in 0..2 {
            for column in &columns {
                let along: Complex64 = column.iter().zip(&x).map(|(c, x)| c.conj() * x).sum();
                x.iter_mut().zip(column).for_each(|(x, c)| *x -= along * c);
            }
        }
        let length = x.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt();
        if length > 1e-6 && columns.len() < n {
            columns.push(x.iter().map(|v| v / length).collect());
        }
    }
    let all = Matrix::from_fn(n, columns.len(), |i, j| columns[j][i]);
    let turns: Vec<Complex64> =
        (0..n).map(|j| if j < u.columns { Complex64::ONE } else { turn(&all, j) }).collect();
    Matrix::from_fn(n, n, |i, j| all.at(i, j) * turns[j])
}
