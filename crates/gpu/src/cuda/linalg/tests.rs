//! What a factorization is made of, for matrices of many kinds.

use cupola_core::backend::{Kernel, Operand, Segment};
use cupola_core::prim::{KernelOp, Linalg, Primitive, Vectors};
use cupola_core::{Aval, DType};

use super::{Check, Checked, Plan, Stage, Task, plan};
use crate::ir::Target;
use crate::kernels::BufferRef;

fn card() -> Target {
    Target {
        int64: true,
        float64: true,
        language: cupola_core::prim::call::Language::Cuda,
        native_math: true,
        wide_offsets: true,
        max_threads: 1024,
        max_blocks: 1 << 30,
        shared_bytes: 227 << 10,
        max_bindings: 64,
        int16: true,
        subgroup: 32,
        copies: true,
        vector_bytes: 16,
        threads: 132 * 2048,
        matrix: true,
        wide: true,
        tf32: true,
        mul_high: true,
        rounds: usize::MAX,
        awaits: true,
    }
}

fn segment(op: Linalg, shapes: &[&[usize]], dtype: DType) -> Segment {
    let avals: Vec<Aval> = shapes.iter().map(|&shape| Aval::new(shape, dtype)).collect();
    let refs: Vec<&Aval> = avals.iter().collect();
    let outputs = op.infer(&refs).unwrap_or_default();
    Segment {
        kernel: Kernel::Op(KernelOp::Linalg(op)),
        inputs: avals.iter().map(Operand::contiguous).collect(),
        outputs: outputs.iter().map(Operand::contiguous).collect(),
        scalars: Vec::new(),
        epilogue: None,
    }
}

fn planned(op: Linalg, shapes: &[&[usize]], dtype: DType) -> Plan {
    match plan(op, &segment(op, shapes, dtype), &card()) {
        Ok(plan) => plan,
        Err(missing) => panic!("{op:?} of {shapes:?}: {missing:?}"),
    }
}

/// The names of kernels, tasks and checks.
fn names(plan: &Plan) -> Vec<String> {
    let name = |stage: &Stage| match stage {
        Stage::Launch(launch) => launch.kernel.name.clone(),
        Stage::Call(call, _) => format!("{:?}", call.task),
        Stage::Check { check, .. } => format!("{check:?}"),
    };
    plan.stages.iter().map(name).collect()
}

const ALL: [Linalg; 16] = [
    Linalg::Eig { vectors: false },
    Linalg::Eig { vectors: true },
    Linalg::Cholesky,
    Linalg::Lu,
    Linalg::Qr,
    Linalg::Pinv,
    Linalg::Svd(Vectors::None),
    Linalg::Svd(Vectors::Thin),
    Linalg::Svd(Vectors::Full),
    Linalg::Eigh { vectors: false },
    Linalg::Eigh { vectors: true },
    Linalg::Solve,
    Linalg::SolveTriangular { upper: false, unit: false },
    Linalg::SolveTriangular { upper: false, unit: true },
    Linalg::SolveTriangular { upper: true, unit: false },
    Linalg::SolveTriangular { upper: true, unit: true },
];

const SHAPES: [&[usize]; 9] = [
    &[1, 1],
    &[5, 5],
    &[2, 2, 4, 4],
    &[4, 3],
    &[2, 3, 4],
    &[0, 3],
    &[3, 0],
    &[2, 0, 0],
    &[0, 3, 3],
];

/// Whether an op is of matrices of a shape; its inputs, the second of `columns`.
fn inputs(op: Linalg, a: &[usize], columns: usize) -> Option<Vec<Vec<usize>>> {
    let [.., m, n] = *a else { return None };
    let takes_any = matches!(op, Linalg::Lu | Linalg::Qr | Linalg::Pinv | Linalg::Svd(_));
    if m != n && !takes_any {
        return None;
    }
    let mut shapes = vec![a.to_vec()];
    if matches!(op, Linalg::Solve | Linalg::SolveTriangular { .. }) {
        let mut b = a.to_vec();
        b[a.len() - 1] = columns;
        shapes.push(b);
    }
    Some(shapes)
}

#[test]
fn libraries_get_regions_that_are_there_and_matrices_as_they_take_them() {
    for dtype in [DType::F32, DType::F64, DType::C64] {
        for (op, a) in ALL.into_iter().flat_map(|op| SHAPES.map(|shape| (op, shape))) {
            let Some(shapes) = inputs(op, a, 3) else { continue };
            let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
            let plan = planned(op, &shapes, dtype);
            let outputs = segment(op, &shapes, dtype).outputs.len();
            for stage in &plan.stages {
                let regions = match stage {
                    Stage::Launch(launch) => launch.buffers.clone(),
                    Stage::Call(_, regions) => regions.clone(),
                    Stage::Check { status, .. } => vec![*status],
                };
                let is_there = |region: &BufferRef| match *region {
                    BufferRef::Scratch(at) => at < plan.scratch.len(),
                    BufferRef::Output(at) => at < outputs,
                    BufferRef::Input(at) => at < shapes.len(),
                    BufferRef::Fault => false,
                };
                assert!(regions.iter().all(is_there), "{op:?} of {a:?}: {stage:?}");
                if let Stage::Call(call, _) = stage
                    && let Task::Svd { m, n, .. } = call.task
                {
                    assert!(m >= n && n > 0, "{a:?}: {m} {n}");
                }
            }
        }
    }
}

#[test]
fn what_a_factorization_is_made_of() {
    let of = |op, shapes: &[&[usize]]| names(&planned(op, shapes, DType::F32));
    assert_eq!(
        of(Linalg::Cholesky, &[&[3, 3]]),
        ["zeros", "matrices", "Cholesky { n: 3 }", "diagonal", "Definite"]
    );
    // Of a batch, the library writes to the other triangle, too.
    assert_eq!(
        of(Linalg::Cholesky, &[&[2, 3, 3]]),
        ["zeros", "matrices", "Cholesky { n: 3 }", "matrices", "diagonal", "Definite"]
    );
    let solve = Linalg::SolveTriangular { upper: false, unit: false };
    assert_eq!(
        of(solve, &[&[3, 3], &[3, 2]]),
        [
            "zeros",
            "diagonal",
            "matrices",
            "matrices",
            "Triangle { rows: 2, n: 3, upper: true, unit: false }",
            "Pivots"
        ]
    );
    // Of no columns a pivot may be 0, too.
    assert_eq!(of(solve, &[&[3, 3], &[3, 0]]), ["zeros", "diagonal", "Pivots"]);
    // What has a NaN in it is noted before the library sees it, and NaN in the result.
    assert_eq!(
        of(Linalg::Lu, &[&[3, 2]]),
        ["zeros", "zeros", "matrices", "Lu { m: 3, n: 2 }", "matrices", "exchanges"]
    );
    assert_eq!(
        of(Linalg::Svd(Vectors::None), &[&[2, 5]]),
        ["zeros", "matrices", "Finite", "Svd { m: 5, n: 2, vectors: None }", "Converged"]
    );
}

#[test]
fn small_matrices_of_a_batch_are_solved_at_once() {
    let is_together = |op, shapes: &[&[usize]]| {
        let plan = planned(op, shapes, DType::F32);
        let calls = plan.stages.iter().filter_map(|stage| match stage {
            Stage::Call(call, _) => Some(call.together),
            Stage::Launch(_) | Stage::Check { .. } => None,
        });
        calls.collect::<Vec<_>>()
    };
    assert_eq!(is_together(Linalg::Solve, &[&[4, 9, 9], &[4, 9, 2]]), [true; 2]);
    assert_eq!(is_together(Linalg::Solve, &[&[1, 9, 9], &[1, 9, 2]]), [false; 2]);
    assert_eq!(is_together(Linalg::Cholesky, &[&[4, 500, 500]]), [false]);
    // What exchanges rows of other matrices has no such function.
    assert_eq!(is_together(Linalg::Lu, &[&[4, 3, 3]]), [true]);
    assert_eq!(is_together(Linalg::Lu, &[&[4, 3, 2]]), [false]);
    assert_eq!(is_together(Linalg::Pinv, &[&[4, 30, 20]]), [true, false]);
    assert_eq!(is_together(Linalg::Svd(Vectors::Thin), &[&[4, 40, 20]]), [false]);
}

#[test]
fn nothing_is_done_for_no_matrices_and_little_for_empty_ones() {
    for op in ALL {
        let Some(shapes) = inputs(op, &[0, 3, 3], 2) else { continue };
        let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
        assert!(planned(op, &shapes, DType::F64).stages.is_empty(), "{op:?}");
    }
    let of = |op, shape: &[usize]| names(&planned(op, &[shape], DType::C64));
    // Rows that are not exchanged, and a basis of what nothing is known of.
    assert_eq!(of(Linalg::Lu, &[3, 0]), ["exchanges"]);
    assert_eq!(of(Linalg::Svd(Vectors::Full), &[0, 3]), ["matrices"]);
    assert!(of(Linalg::Qr, &[3, 0]).is_empty() && of(Linalg::Pinv, &[0, 3]).is_empty());
}

#[test]
fn the_first_matrix_with_a_flaw_gives_the_error() {
    let told = |op, check, words: &[u32]| {
        let count = words.len() / 2;
        Checked { op, check, count }.verdict(words).err().map(|error| error.to_string())
    };
    let pivot = |at: u32| u32::MAX - at;
    assert_eq!(told(Linalg::Solve, Check::Pivots, &[0, 0, 0, 5]), None);
    assert_eq!(
        told(Linalg::Solve, Check::Pivots, &[0, pivot(2), pivot(0), 0, 0, 0]).as_deref(),
        Some("solve: matrix 1 is singular: pivot 2 is 0")
    );
    assert_eq!(
        told(Linalg::Cholesky, Check::Definite, &[0, 3]).as_deref(),
        Some("cholesky: the matrix is not positive definite")
    );
    assert_eq!(
        told(Linalg::Pinv, Check::Finite, &[1, 0]).as_deref(),
        Some("pinv: the matrix has an element that is not finite")
    );
    assert_eq!(
        told(Linalg::Eigh { vectors: true }, Check::Converged, &[0, 0, 0, 1]).as_deref(),
        Some("eigh: matrix 1 leads to no end: the iteration does not converge")
    );
}
