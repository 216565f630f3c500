//! Calls for all matrices of a batch at once, where these are small.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cudarc::cublas::sys as blas;
use cudarc::cusolver::sys;
use cupola_core::{DType, Result};

use super::solver::{
    Factor, Handles, LOWER, UPPER, Workspace, data, diagonal, explain, explain_blas, fill, mode,
    small, typed,
};
use super::{Call, Task};
use crate::cuda::gpu::Gpu;

/// How many lists of places a task takes, one place for each matrix.
fn lists(task: Task) -> usize {
    match task {
        Task::Cholesky { .. } | Task::Lu { .. } => 1,
        Task::Solve { .. } | Task::Triangle { .. } => 2,
        Task::Reflections { .. }
        | Task::Columns { .. }
        | Task::Svd { .. }
        | Task::Eigh { .. }
        | Task::Eig { .. }
        | Task::Product { .. } => 0,
    }
}

/// Bytes of the device that a call needs.
pub fn workspace(gpu: &Arc<Gpu>, handles: &Handles, call: &Call) -> Result<usize> {
    let at = gpu.workspace()? as *const c_void;
    let count = small(gpu, call.count)?;
    let (of, of_real) = (data(call.dtype), data(call.dtype.real()));
    // SAFETY: the handles are alive, and so are the places of the answers; nothing is read or written at
    // the place of the matrices.
    unsafe {
        match call.task {
            Task::Svd { m, n, .. } => {
                let (m, n, mode) = (small(gpu, m)?, small(gpu, n)?, mode(true));
                let mut elements = 0;
                let code = typed!(
                    call.dtype,
                    [
                        sys::cusolverDnSgesvdjBatched_bufferSize,
                        sys::cusolverDnDgesvdjBatched_bufferSize,
                        sys::cusolverDnCgesvdjBatched_bufferSize
                    ],
                    handles.solver,
                    mode,
                    m,
                    n,
                    at.cast(),
                    m,
                    at.cast(),
                    at.cast(),
                    m,
                    at.cast(),
                    n,
                    &mut elements,
                    handles.rotations,
                    count
                );
                explain(gpu, code)?;
                Ok(usize::try_from(elements).unwrap_or(0) * call.dtype.size())
            }
            Task::Eigh { n, vectors } => {
                let (n, mut device, mut host) = (n as i64, 0, 0);
                let code = sys::cusolverDnXsyevBatched_bufferSize(
                    handles.solver,
                    handles.params,
                    mode(vectors),
                    LOWER,
                    n,
                    of,
                    at,
                    n,
                    of_real,
                    at,
                    of,
                    &mut device,
                    &mut host,
                    call.count as i64,
                );
                explain(gpu, code)?;
                match host {
                    0 => Ok(device),
                    _ => Err(gpu.error("cuSOLVER wants memory of the host for a batch")),
                }
            }
            task => Ok(lists(task) * call.count * size_of::<u64>()),
        }
    }
}

/// Calls the library for a batch.
///
/// # Safety
/// The regions are those of the task, and the workspace is as large as the library wants it.
pub unsafe fn run(
    gpu: &Arc<Gpu>,
    handles: &Handles,
    call: &Call,
    places: &[u64],
    memory: &Workspace,
) -> Result<()> {
    let &Handles { solver, params, rotations, blas } = handles;
    let &Call { task, dtype, .. } = call;
    let (size, count) = (dtype.size(), small(gpu, call.count)?);
    let device = memory.device as u64;
    // A list of the places of the matrices of a region, which have so many bytes.
    let list = |number: usize, region: usize, bytes: usize| -> Result<u64> {
        let all = (0..call.count).map(|matrix| places[region] + (matrix * bytes) as u64);
        let bytes: Vec<u8> = all.flat_map(u64::to_ne_bytes).collect();
        let place = device + (number * bytes.len()) as u64;
        gpu.write_at(place, &bytes)?;
        Ok(place)
    };
    let info = |region: usize| (places[region] + u64::from(count.unsigned_abs()) * 4) as *mut c_int;
    // SAFETY: the caller vouches for the places.
    unsafe {
        match task {
            Task::Cholesky { n } => {
                let a = list(0, 0, n * n * size)?;
                let n = small(gpu, n)?;
                explain(
                    gpu,
                    typed!(
                        dtype,
                        [
                            sys::cusolverDnSpotrfBatched,
                            sys::cusolverDnDpotrfBatched,
                            sys::cusolverDnCpotrfBatched
                        ],
                        solver,
                        UPPER,
                        n,
                        a as *mut _,
                        n,
                        info(1),
                        count
                    ),
                )
            }
            Task::Lu { m, n } => {
                let a = list(0, 0, m * n * size)?;
                let n = small(gpu, n)?;
                explain_blas(
                    gpu,
                    typed!(
                        dtype,
                        [
                            blas::cublasSgetrfBatched,
                            blas::cublasDgetrfBatched,
                            blas::cublasCgetrfBatched
                        ],
                        blas,
                        n,
                        a as *const _,
                        n,
                        places[1] as *mut c_int,
                        info(2),
                        count
                    ),
                )
            }
            Task::Solve { n, columns } => {
                let a = list(0, 0, n * n * size)?;
                let b = list(1, 2, n * columns * size)?;
                let (n, columns) = (small(gpu, n)?, small(gpu, columns)?);
                // Says only whether the arguments are in order.
                let mut wrong = 0;
                explain_blas(
                    gpu,
                    typed!(
                        dtype,
                        [
                            blas::cublasSgetrsBatched,
                            blas::cublasDgetrsBatched,
                            blas::cublasCgetrsBatched
                        ],
                        blas,
                        blas::cublasOperation_t::CUBLAS_OP_N,
                        n,
                        columns,
                        a as *const _,
                        n,
                        places[1] as *const c_int,
                        b as *const _,
                        n,
                        &mut wrong,
                        count
                    ),
                )
            }
            Task::Triangle { rows, n, upper, unit } => {
                let a = list(0, 0, n * n * size)?;
                let b = list(1, 1, rows * n * size)?;
                let (m, n) = (small(gpu, rows)?, small(gpu, n)?);
                let one = Factor::one(dtype);
                explain_blas(
                    gpu,
                    typed!(
                        dtype,
                        [
                            blas::cublasStrsmBatched,
                            blas::cublasDtrsmBatched,
                            blas::cublasCtrsmBatched
                        ],
                        blas,
                        blas::cublasSideMode_t::CUBLAS_SIDE_RIGHT,
                        fill(upper),
                        blas::cublasOperation_t::CUBLAS_OP_N,
                        diagonal(unit),
                        m,
                        n,
                        one.place(),
                        a as *const _,
                        n,
                        b as *const _,
                        m,
                        count
                    ),
                )
            }
            Task::Svd { m, n, .. } => {
                // Without vectors it was seen to stop the device.
                let (m, n, mode) = (small(gpu, m)?, small(gpu, n)?, mode(true));
                let elements = small(gpu, memory.device_bytes / size)?;
                explain(
                    gpu,
                    typed!(
                        dtype,
                        [
                            sys::cusolverDnSgesvdjBatched,
                            sys::cusolverDnDgesvdjBatched,
                            sys::cusolverDnCgesvdjBatched
                        ],
                        solver,
                        mode,
                        m,
                        n,
                        places[0] as *mut _,
                        m,
                        places[1] as *mut _,
                        places[2] as *mut _,
                        m,
                        places[3] as *mut _,
                        n,
                        memory.device.cast(),
                        elements,
                        info(4),
                        rotations,
                        count
                    ),
                )
            }
            Task::Eigh { n, vectors } => {
                let (n, of, of_real) = (n as i64, data(dtype), data(dtype.real()));
                explain(
                    gpu,
                    sys::cusolverDnXsyevBatched(
                        solver,
                        params,
                        mode(vectors),
                        LOWER,
                        n,
                        of,
                        places[0] as *mut c_void,
                        n,
                        of_real,
                        places[1] as *mut c_void,
                        of,
                        memory.device,
                        memory.device_bytes,
                        memory.host,
                        memory.host_bytes,
                        info(2),
                        call.count as i64,
                    ),
                )
            }
            Task::Reflections { .. }
            | Task::Columns { .. }
            | Task::Eig { .. }
            | Task::Product { .. } => Err(gpu.error(&format!("{task:?} takes one matrix"))),
        }
    }
}
