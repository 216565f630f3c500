//! Derivatives of factorizations.
//!
//! A factorization's defining equations are differentiated and solved for the factors' tangents; the
//! rules in reverse mode are the transposes of these maps. Of what is symmetric only one triangle is
//! read, but derivatives are those by a symmetric matrix: they are symmetric, too, and only the
//! symmetric part of a tangent counts.
//!
//! M. Giles, *An extended collection of matrix derivative results for forward and reverse mode
//! algorithmic differentiation*, 2008. Of complex matrices, cotangents pair with tangents as Re(c·t),
//! so that their conjugates are the gradients of the formulas.
//!
//! Singular and eigenvectors are determined up to a sign, complex ones up to a phase, which is taken
//! as fixed. So are the phases of the diagonal of R, which is real.

use super::matrix::{
    adjoint, by_column, by_row, conj, diagonal, divide_by_triangular, dot, embedded, over_gaps,
    part, real_part, scaled_columns, scaled_rows, skew, solve_triangular, transposed,
};
use super::{Linalg, Vectors};
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::prim::record::{
    add, broadcast, cast, concatenate, div, expand_dims, mul, neg, or_zeros, scale, slice_axis,
    sub, sum_of,
};
use crate::prim::{Compare, GatherAxis, Reverse, Sort, Tangents, Unary};

pub(super) fn jvp(
    op: &Linalg,
    inputs: &[Array],
    outputs: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    if tangents.iter().all(Option::is_none) {
        return Ok(vec![None; outputs.len()]);
    }
    let solves = matches!(op, Linalg::Solve | Linalg::SolveTriangular { .. });
    if solves {
        return Ok(vec![solution_jvp(op, inputs, &outputs[0], tangents)?]);
    }
    let (a, Some(da)) = (&inputs[0], &tangents[0]) else {
        return Ok(vec![None; outputs.len()]);
    };
    Ok(match op {
        Linalg::Cholesky => vec![Some(cholesky_jvp(&outputs[0], da)?)],
        Linalg::Lu => vec![Some(lu_jvp(outputs, da)?), None, None],
        Linalg::Qr => {
            let (dq, dr) = qr_jvp(&outputs[0], &outputs[1], da)?;
            vec![Some(dq), Some(dr)]
        }
        Linalg::Svd(Vectors::None) => {
            let factors = Array::apply_multi(Linalg::Svd(Vectors::Thin), &[a])?;
            vec![Some(svd_jvp(&factors, da)?.swap_remove(1))]
        }
        Linalg::Svd(Vectors::Thin | Vectors::Full) => {
            svd_jvp(outputs, da)?.into_iter().map(Some).collect()
        }
        Linalg::Eigh { vectors } => {
            let factors = eigh_factors(*vectors, a, outputs)?;
            let (dw, dv) = eigh_jvp(&factors[0], &factors[1], da)?;
            if *vectors { vec![Some(dw), Some(dv)] } else { vec![Some(dw)] }
        }
        Linalg::Eig { vectors } => {
            let factors = eig_factors(*vectors, a, outputs)?;
            let (dw, dv) = eig_jvp(&factors[0], &factors[1], da)?;
            if *vectors { vec![Some(dw), Some(dv)] } else { vec![Some(dw)] }
        }
        Linalg::Pinv => vec![Some(pinv_jvp(a, &outputs[0], da)?)],
        Linalg::Solve | Linalg::SolveTriangular { .. } => vec![None],
    })
}

pub(super) fn vjp(op: &Linalg, r: &Reverse<'_>) -> Result<Tangents> {
    let (a, outputs, cts) = (&r.inputs[0], r.outputs, r.cotangents);
    let filled = |i: usize| or_zeros(cts[i].as_ref(), outputs[i].aval());
    let none = Ok(vec![None; r.inputs.len()]);
    Ok(vec![Some(match op {
        Linalg::Solve | Linalg::SolveTriangular { .. } => {
            return match &cts[0] {
                Some(ct) => solution_vjp(op, r, ct),
                None => none,
            };
        }
        Linalg::Cholesky => match &cts[0] {
            Some(ct) => cholesky_vjp(&outputs[0], ct)?,
            None => return none,
        },
        Linalg::Lu => match &cts[0] {
            Some(ct) => lu_vjp(outputs, ct)?,
            None => return none,
        },
        Linalg::Qr => qr_vjp(&outputs[0], &outputs[1], &filled(0), &filled(1))?,
        Linalg::Svd(Vectors::None) => match &cts[0] {
            Some(ct) => {
                let factors = Array::apply_multi(Linalg::Svd(Vectors::Thin), &[a])?;
                svd_vjp(&factors, &[None, Some(ct.clone()), None])?
            }
            None => return none,
        },
        Linalg::Svd(Vectors::Thin | Vectors::Full) => svd_vjp(outputs, cts)?,
        Linalg::Eigh { vectors } => {
            let factors = eigh_factors(*vectors, a, outputs)?;
            let of_vectors = if *vectors { cts[1].as_ref() } else { None };
            eigh_vjp(&factors[0], &factors[1], cts[0].as_ref(), of_vectors)?
        }
        Linalg::Eig { vectors } => {
            let factors = eig_factors(*vectors, a, outputs)?;
            let of_vectors = if *vectors { cts[1].as_ref() } else { None };
            eig_vjp(a.dtype(), &factors[0], &factors[1], cts[0].as_ref(), of_vectors)?
        }
        Linalg::Pinv => match &cts[0] {
            Some(ct) => pinv_vjp(a, &outputs[0], ct)?,
            None => return none,
        },
    })])
}

/// A·X = B: dA·X + A·dX = dB.
fn solution_jvp(
    op: &Linalg,
    inputs: &[Array],
    x: &Array,
    tangents: &[Option<Array>],
) -> Result<Option<Array>> {
    let by_a = match &tangents[0] {
        Some(da) => Some(neg(&dot(&read(op, da)?, x)?)?),
        None => None,
    };
    let right = sum_of([tangents[1].clone(), by_a])?;
    right.map(|right| Array::apply(*op, &[&inputs[0], &right])).transpose()
}

fn solution_vjp(op: &Linalg, r: &Reverse<'_>, ct: &Array) -> Result<Tangents> {
    let back = if let Linalg::SolveTriangular { upper, unit } = *op {
        Linalg::SolveTriangular { upper: !upper, unit }
    } else {
        *op
    };
    let of_b = Array::apply(back, &[&transposed(&r.inputs[0])?, ct])?;
    let of_a = match r.wanted[0] {
        true => Some(read(op, &neg(&dot(&of_b, &transposed(&r.outputs[0])?)?)?)?),
        false => None,
    };
    Ok(vec![of_a, Some(of_b)])
}

/// What of a matrix like A is read.
fn read(op: &Linalg, x: &Array) -> Result<Array> {
    let Linalg::SolveTriangular { upper, unit } = op else {
        return Ok(x.clone());
    };
    let read = match (upper, unit) {
        (false, false) => Compare::Ge,
        (false, true) => Compare::Gt,
        (true, false) => Compare::Le,
        (true, true) => Compare::Lt,
    };
    part(x, read)
}

/// (x + xᴴ)/2.
fn symmetric(x: &Array) -> Result<Array> {
    scale(&add(x, &adjoint(x)?)?, 0.5)
}

/// The lower triangle with half of the diagonal.
fn half_lower(x: &Array) -> Result<Array> {
    add(&part(x, Compare::Gt)?, &scale(&part(x, Compare::Eq)?, 0.5)?)
}

/// L⁻¹·dA·L⁻ᴴ = L⁻¹·dL + (L⁻¹·dL)ᴴ.
fn cholesky_jvp(l: &Array, da: &Array) -> Result<Array> {
    let left = solve_triangular(l, &symmetric(da)?, false, false)?;
    let both = divide_by_triangular(&left, &adjoint(l)?, true, false)?;
    dot(l, &half_lower(&both)?)
}

fn cholesky_vjp(l: &Array, ct: &Array) -> Result<Array> {
    let inner = half_lower(&dot(&adjoint(l)?, &conj(ct)?)?)?;
    let left = solve_triangular(&adjoint(l)?, &symmetric(&inner)?, true, false)?;
    conj(&divide_by_triangular(&left, l, false, false)?)
}

/// Rows in the order of `rows`.
fn rows_of(x: &Array, rows: &Array) -> Result<Array> {
    let places = broadcast(&expand_dims(rows, &[rows.rank()])?, x.shape())?;
    Array::apply(GatherAxis { axis: x.rank() - 2 }, &[x, &places])
}

/// Some rows or columns of matrices.
fn slab(x: &Array, rows: bool, start: usize, count: usize) -> Result<Array> {
    slice_axis(x, x.rank() - 1 - usize::from(rows), start, count)
}

/// L and U of the matrix that has both, with what is under a tall one or beside a wide one: the square
/// part of both, L's rows below, U's columns behind.
struct Halves {
    k: usize,
    below: usize,
    behind: usize,
    square: Array,
}

impl Halves {
    fn new(lu: &Array) -> Result<Self> {
        let rank = lu.rank();
        let (m, n) = (lu.shape()[rank - 2], lu.shape()[rank - 1]);
        let k = m.min(n);
        let square = slab(&slab(lu, true, 0, k)?, false, 0, k)?;
        Ok(Halves { k, below: m - k, behind: n - k, square })
    }

    /// The square part of a matrix of the same shape.
    fn square_of(&self, x: &Array) -> Result<Array> {
        slab(&slab(x, true, 0, self.k)?, false, 0, self.k)
    }

    /// The rows below, if there are any.
    fn below_of(&self, x: &Array) -> Result<Option<Array>> {
        (self.below > 0).then(|| slab(x, true, self.k, self.below)).transpose()
    }

    /// The columns behind, if there are any.
    fn behind_of(&self, x: &Array) -> Result<Option<Array>> {
        (self.behind > 0).then(|| slab(x, false, self.k, self.behind)).transpose()
    }

    /// The three parts as one matrix.
    fn joined(&self, square: Array, below: Option<Array>, behind: Option<Array>) -> Result<Array> {
        let rank = square.rank();
        match (below, behind) {
            (Some(below), _) => concatenate(&[&square, &below], rank - 2),
            (_, Some(behind)) => concatenate(&[&square, &behind], rank - 1),
            (None, None) => Ok(square),
        }
    }

    /// L⁻¹·x.
    fn by_l(&self, x: &Array) -> Result<Array> {
        solve_triangular(&self.square, x, false, true)
    }

    /// x·U⁻¹.
    fn by_u(&self, x: &Array) -> Result<Array> {
        divide_by_triangular(x, &self.square, true, false)
    }

    /// L⁻ᵀ·x.
    fn by_lt(&self, x: &Array) -> Result<Array> {
        solve_triangular(&transposed(&self.square)?, x, true, true)
    }

    /// x·U⁻ᵀ.
    fn by_ut(&self, x: &Array) -> Result<Array> {
        divide_by_triangular(x, &transposed(&self.square)?, false, false)
    }

    /// L, with its diagonal.
    fn l(&self) -> Result<Array> {
        let ones = super::matrix::identity_like(&self.square)?;
        add(&part(&self.square, Compare::Gt)?, &ones)
    }

    fn u(&self) -> Result<Array> {
        part(&self.square, Compare::Le)
    }
}

/// L⁻¹·(P·dA)·U⁻¹ = L⁻¹·dL + dU·U⁻¹: a strictly lower triangle and an upper one.
fn lu_jvp(outputs: &[Array], da: &Array) -> Result<Array> {
    let (lu, places) = (&outputs[0], &outputs[2]);
    let order = Array::apply(Sort::new(places.rank() - 1).places(), &[places])?;
    let da = rows_of(da, &order)?;
    let halves = Halves::new(lu)?;
    let inner = halves.by_u(&halves.by_l(&halves.square_of(&da)?)?)?;
    let dl = dot(&halves.l()?, &part(&inner, Compare::Gt)?)?;
    let du = dot(&part(&inner, Compare::Le)?, &halves.u()?)?;
    let below = match (halves.below_of(&da)?, halves.below_of(lu)?) {
        (Some(da), Some(l)) => Some(halves.by_u(&sub(&da, &dot(&l, &du)?)?)?),
        _ => None,
    };
    let behind = match (halves.behind_of(&da)?, halves.behind_of(lu)?) {
        (Some(da), Some(u)) => Some(halves.by_l(&sub(&da, &dot(&dl, &u)?)?)?),
        _ => None,
    };
    halves.joined(add(&dl, &du)?, below, behind)
}

fn lu_vjp(outputs: &[Array], ct: &Array) -> Result<Array> {
    let (lu, places) = (&outputs[0], &outputs[2]);
    let halves = Halves::new(lu)?;
    let square = halves.square_of(ct)?;
    let (gl, gu) = (part(&square, Compare::Gt)?, part(&square, Compare::Le)?);
    let mut lower = dot(&transposed(&halves.l()?)?, &gl)?;
    let mut upper = dot(&gu, &transposed(&halves.u()?)?)?;
    let (mut below, mut behind) = (None, None);
    if let (Some(g), Some(l)) = (halves.below_of(ct)?, halves.below_of(lu)?) {
        upper = sub(&upper, &dot(&transposed(&l)?, &g)?)?;
        below = Some(halves.by_ut(&g)?);
    }
    if let (Some(g), Some(u)) = (halves.behind_of(ct)?, halves.behind_of(lu)?) {
        lower = sub(&lower, &dot(&g, &transposed(&u)?)?)?;
        behind = Some(halves.by_lt(&g)?);
    }
    let inner = add(&part(&lower, Compare::Gt)?, &part(&upper, Compare::Le)?)?;
    let square = halves.by_ut(&halves.by_lt(&inner)?)?;
    rows_of(&halves.joined(square, below, behind)?, places)
}

/// With A = (A₁ A₂), R = (R₁ R₂) and A₁ = Q·R₁: Qᴴ·dA₁·R₁⁻¹ = Qᴴ·dQ + dR₁·R₁⁻¹, a skew matrix and an
/// upper triangle with a real diagonal.
fn qr_jvp(q: &Array, r: &Array, da: &Array) -> Result<(Array, Array)> {
    let k = r.shape()[r.rank() - 2];
    let r1 = slab(r, false, 0, k)?;
    let x = divide_by_triangular(&slab(da, false, 0, k)?, &r1, true, false)?;
    let inner = dot(&adjoint(q)?, &x)?;
    let mut turn = skew(&part(&inner, Compare::Gt)?)?;
    if inner.dtype().is_complex() {
        turn = add(&turn, &embedded(&imaginary(&diagonal(&inner)?)?, inner.dtype())?)?;
    }
    let outside = sub(&x, &dot(q, &inner)?)?;
    let dq = add(&dot(q, &turn)?, &outside)?;
    let dr = sub(&dot(&adjoint(q)?, da)?, &dot(&turn, r)?)?;
    Ok((dq, part(&dr, Compare::Le)?))
}

fn qr_vjp(q: &Array, r: &Array, gq: &Array, gr: &Array) -> Result<Array> {
    let rank = r.rank();
    let (k, n) = (r.shape()[rank - 2], r.shape()[rank - 1]);
    let gr = conj(&part(gr, Compare::Le)?)?;
    let (r1, gr1) = (slab(r, false, 0, k)?, slab(&gr, false, 0, k)?);
    let (mut gq, mut behind) = (conj(gq)?, None);
    if n > k {
        // A₂ = Q·R₂, so R₂ = Qᴴ·A₂.
        let (r2, gr2) = (slab(r, false, k, n - k)?, slab(&gr, false, k, n - k)?);
        gq = add(&gq, &dot(&dot(q, &r2)?, &adjoint(&gr2)?)?)?;
        behind = Some(dot(q, &gr2)?);
    }
    let inner = sub(&dot(&gr1, &adjoint(&r1)?)?, &dot(&adjoint(q)?, &gq)?)?;
    let strict = part(&inner, Compare::Lt)?;
    let on_diagonal = embedded(&real_part(&diagonal(&inner)?)?, inner.dtype())?;
    let mirrored = add(&add(&strict, &adjoint(&strict)?)?, &on_diagonal)?;
    let g = add(&gq, &dot(q, &mirrored)?)?;
    let g1 = divide_by_triangular(&g, &adjoint(&r1)?, false, false)?;
    match behind {
        Some(behind) => conj(&concatenate(&[&g1, &behind], rank - 1)?),
        None => conj(&g1),
    }
}

/// U, S and V with as many vectors as singular values, and the vectors beyond these.
struct Singular {
    u: Array,
    s: Array,
    v: Array,
    u_beyond: Option<Array>,
    v_beyond: Option<Array>,
}

impl Singular {
    fn new(outputs: &[Array]) -> Result<Self> {
        let (u, s, v) = (&outputs[0], &outputs[1], adjoint(&outputs[2])?);
        let k = s.shape()[s.rank() - 1];
        let cut = |x: &Array| -> Result<(Array, Option<Array>)> {
            let all = x.shape()[x.rank() - 1];
            let beyond = (all > k).then(|| slab(x, false, k, all - k)).transpose()?;
            Ok((slab(x, false, 0, k)?, beyond))
        };
        let ((u, u_beyond), (v, v_beyond)) = (cut(u)?, cut(&v)?);
        Ok(Singular { u, s: s.clone(), v, u_beyond, v_beyond })
    }
}

/// vⱼ² − vᵢ².
fn square_gap(a: &Array, b: &Array) -> Result<Array> {
    mul(&sub(a, b)?, &add(a, b)?)
}

/// i·Im x of complex numbers.
fn imaginary(x: &Array) -> Result<Array> {
    let i = Array::constant(Scalar::Complex(0.0, 1.0), x.aval().clone());
    mul(&cast(&Array::apply(Unary::Imag, &[x])?, DType::C64)?, &i)
}

/// Uᴴ·dA·V = Uᴴ·dU·S + dS + S·(Vᴴ·dV)ᴴ, with skew Uᴴ·dU and Vᴴ·dV.
fn svd_jvp(outputs: &[Array], da: &Array) -> Result<Vec<Array>> {
    let Singular { u, s, v, u_beyond, v_beyond } = Singular::new(outputs)?;
    let (by_v, by_u) = (dot(da, &v)?, dot(&adjoint(da)?, &u)?);
    let inner = dot(&adjoint(&u)?, &by_v)?;
    let on_diagonal = diagonal(&inner)?;
    let (right, left) = (scaled_columns(&inner, &s)?, scaled_rows(&s, &inner)?);
    let mut turn_u = over_gaps(&add(&right, &adjoint(&right)?)?, &s, square_gap)?;
    let turn_v = over_gaps(&add(&left, &adjoint(&left)?)?, &s, square_gap)?;
    if inner.dtype().is_complex() {
        let phase = div(&imaginary(&on_diagonal)?, &cast(&s, DType::C64)?)?;
        turn_u = add(&turn_u, &embedded(&phase, DType::C64)?)?;
    }
    // What leaves the span of the vectors.
    let moved = |w: &Array, turn: &Array, x: &Array, other: &Array| -> Result<Array> {
        let within = dot(w, turn)?;
        if w.shape()[w.rank() - 2] == w.shape()[w.rank() - 1] {
            return Ok(within);
        }
        let outside = sub(x, &dot(w, other)?)?;
        add(&within, &div(&outside, &by_column(&s, &outside)?)?)
    };
    let du = moved(&u, &turn_u, &by_v, &inner)?;
    let dv = moved(&v, &turn_v, &by_u, &adjoint(&inner)?)?;
    // The vectors beyond stay at right angles to these.
    let whole = |w: &Array, dw: Array, beyond: &Option<Array>| -> Result<Array> {
        let Some(beyond) = beyond else { return Ok(dw) };
        let turned = neg(&dot(w, &dot(&adjoint(&dw)?, beyond)?)?)?;
        concatenate(&[&dw, &turned], dw.rank() - 1)
    };
    let du = whole(&u, du, &u_beyond)?;
    let dv = whole(&v, dv, &v_beyond)?;
    Ok(vec![du, real_part(&on_diagonal)?, adjoint(&dv)?])
}

fn svd_vjp(outputs: &[Array], cts: &[Option<Array>]) -> Result<Array> {
    let Singular { u, s, v, u_beyond, v_beyond } = Singular::new(outputs)?;
    let dtype = u.dtype();
    let k = s.shape()[s.rank() - 1];
    // The gradient by the first vectors, with what the vectors beyond say of these.
    let gathered = |g: Option<Array>, w: &Array, beyond: &Option<Array>| -> Result<Option<Array>> {
        let (Some(g), Some(beyond)) = (&g, beyond) else { return Ok(g) };
        let all = g.shape()[g.rank() - 1];
        let (first, rest) = (slab(g, false, 0, k)?, slab(g, false, k, all - k)?);
        Ok(Some(sub(&first, &dot(beyond, &dot(&adjoint(&rest)?, w)?)?)?))
    };
    let gu = gathered(cts[0].as_ref().map(conj).transpose()?, &u, &u_beyond)?;
    // A cotangent of Vᴴ, transposed, is the gradient by V.
    let gv = gathered(cts[2].as_ref().map(transposed).transpose()?, &v, &v_beyond)?;
    let mut inner = match &cts[1] {
        Some(gs) => Some(embedded(gs, dtype)?),
        None => None,
    };
    let mut outside = None;
    let is_square = |w: &Array| w.shape()[w.rank() - 2] == w.shape()[w.rank() - 1];
    if let Some(gu) = &gu {
        let turn = dot(&adjoint(&u)?, gu)?;
        let skewed = over_gaps(&skew(&turn)?, &s, square_gap)?;
        inner = sum_of([inner, Some(scaled_columns(&skewed, &s)?)])?;
        if dtype.is_complex() {
            let phase = div(&imaginary(&diagonal(&turn)?)?, &cast(&s, dtype)?)?;
            inner = sum_of([inner, Some(embedded(&phase, dtype)?)])?;
        }
        if !is_square(&u) {
            let rest = sub(gu, &dot(&u, &turn)?)?;
            let rest = div(&rest, &by_column(&s, &rest)?)?;
            outside = Some(dot(&rest, &adjoint(&v)?)?);
        }
    }
    if let Some(gv) = &gv {
        let turn = dot(&adjoint(&v)?, gv)?;
        let skewed = over_gaps(&skew(&turn)?, &s, square_gap)?;
        inner = sum_of([inner, Some(scaled_rows(&s, &skewed)?)])?;
        if !is_square(&v) {
            let rest = adjoint(&sub(gv, &dot(&v, &turn)?)?)?;
            let rest = div(&rest, &by_row(&s, &rest)?)?;
            outside = sum_of([outside, Some(dot(&u, &rest)?)])?;
        }
    }
    let inner = match inner {
        Some(inner) => Some(dot(&dot(&u, &inner)?, &adjoint(&v)?)?),
        None => None,
    };
    let whole = sum_of([inner, outside])?;
    let mut none = u.aval().clone();
    none.shape.0[u.rank() - 1] = v.shape()[v.rank() - 2];
    conj(&or_zeros(whole.as_ref(), &none))
}

/// Eigenvalues and eigenvectors, where the op gave the values alone.
fn eigh_factors(vectors: bool, a: &Array, outputs: &[Array]) -> Result<Vec<Array>> {
    match vectors {
        true => Ok(outputs.to_vec()),
        false => Array::apply_multi(Linalg::Eigh { vectors: true }, &[a]),
    }
}

/// Vᴴ·dA·V = Vᴴ·dV·W − W·Vᴴ·dV + dW, with a skew Vᴴ·dV.
fn eigh_jvp(w: &Array, v: &Array, da: &Array) -> Result<(Array, Array)> {
    let inner = dot(&dot(&adjoint(v)?, &symmetric(da)?)?, v)?;
    let dv = dot(v, &over_gaps(&inner, w, sub)?)?;
    Ok((real_part(&diagonal(&inner)?)?, dv))
}

fn eigh_vjp(w: &Array, v: &Array, gw: Option<&Array>, gv: Option<&Array>) -> Result<Array> {
    let by_values = gw.map(|gw| embedded(gw, v.dtype())).transpose()?;
    let by_vectors = match gv {
        Some(gv) => Some(over_gaps(&dot(&adjoint(v)?, &conj(gv)?)?, w, sub)?),
        None => None,
    };
    let inner = sum_of([by_values, by_vectors])?;
    let inner = or_zeros(inner.as_ref(), v.aval());
    conj(&dot(&dot(v, &symmetric(&inner)?)?, &adjoint(v)?)?)
}

/// Eigenvalues and eigenvectors, where the op gave the values alone.
fn eig_factors(vectors: bool, a: &Array, outputs: &[Array]) -> Result<Vec<Array>> {
    match vectors {
        true => Ok(outputs.to_vec()),
        false => Array::apply_multi(Linalg::Eig { vectors: true }, &[a]),
    }
}

/// Column j of `x` without the real part of its product with column j of V: what leaves the length of that as it is.
fn of_same_length(v: &Array, x: &Array) -> Result<Array> {
    let along = real_part(&diagonal(&dot(&adjoint(v)?, x)?)?)?;
    sub(x, &scaled_columns(v, &along)?)
}

/// V⁻¹·dA·V = V⁻¹·dV·W − W·V⁻¹·dV + dW, where columns of V keep their length 1 and their phase.
fn eig_jvp(w: &Array, v: &Array, da: &Array) -> Result<(Array, Array)> {
    let inner = Array::apply(Linalg::Solve, &[v, &dot(&cast(da, DType::C64)?, v)?])?;
    let dv = of_same_length(v, &dot(v, &over_gaps(&inner, w, sub)?)?)?;
    Ok((diagonal(&inner)?, dv))
}

fn eig_vjp(
    dtype: DType,
    w: &Array,
    v: &Array,
    gw: Option<&Array>,
    gv: Option<&Array>,
) -> Result<Array> {
    let by_values = gw.map(|gw| embedded(&conj(gw)?, DType::C64)).transpose()?;
    let vh = adjoint(v)?;
    let by_vectors = match gv {
        Some(gv) => {
            let turn = dot(&vh, &of_same_length(v, &conj(gv)?)?)?;
            Some(over_gaps(&turn, &conj(w)?, sub)?)
        }
        None => None,
    };
    let inner = sum_of([by_values, by_vectors])?;
    let inner = or_zeros(inner.as_ref(), v.aval());
    let all = conj(&Array::apply(Linalg::Solve, &[&vh, &dot(&inner, &vh)?])?)?;
    if dtype.is_complex() { Ok(all) } else { cast(&real_part(&all)?, dtype) }
}

/// dP = −P·dA·P + P·Pᴴ·dAᴴ·(1 − A·P) + (1 − P·A)·dAᴴ·Pᴴ·P, where the rank stays as it is.
///
/// G. H. Golub, V. Pereyra, *The differentiation of pseudo-inverses and nonlinear least squares problems
/// whose variables separate*, 1973.
fn pinv_jvp(a: &Array, p: &Array, da: &Array) -> Result<Array> {
    let (pt, dat) = (adjoint(p)?, adjoint(da)?);
    let first = neg(&dot(&dot(p, da)?, p)?)?;
    let left = dot(&dot(p, &pt)?, &dat)?;
    let second = sub(&left, &dot(&dot(&left, a)?, p)?)?;
    let right = dot(&dat, &dot(&pt, p)?)?;
    let third = sub(&right, &dot(p, &dot(a, &right)?)?)?;
    add(&add(&first, &second)?, &third)
}

fn pinv_vjp(a: &Array, p: &Array, g: &Array) -> Result<Array> {
    let g = conj(g)?;
    let (pt, gt) = (adjoint(p)?, adjoint(&g)?);
    let first = neg(&dot(&dot(&pt, &g)?, &pt)?)?;
    // (1 − A·P)·Gᴴ·P·Pᴴ and Pᴴ·P·Gᴴ·(1 − P·A).
    let left = dot(&gt, &dot(p, &pt)?)?;
    let second = sub(&left, &dot(a, &dot(p, &left)?)?)?;
    let right = dot(&dot(&pt, p)?, &gt)?;
    let third = sub(&right, &dot(&dot(&right, p)?, a)?)?;
    conj(&add(&add(&first, &second)?, &third)?)
}
