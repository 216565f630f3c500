//! Calls for one matrix after the other.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cudarc::cublas::sys as blas;
use cudarc::cusolver::sys;
use cupola_core::prim::Vectors;
use cupola_core::{DType, Result};

use super::solver::{
    Factor, Handles, LOWER, UPPER, Workspace, blas_data, complex_data, data, diagonal, explain,
    explain_blas, fill, job, mode, small, typed,
};
use super::{Call, Task};
use crate::cuda::gpu::Gpu;

/// Bytes of the device and of the host that a call needs.
pub fn workspace(gpu: &Arc<Gpu>, handles: &Handles, call: &Call) -> Result<[usize; 2]> {
    let (mut device, mut host) = (0, 0);
    let (solver, params) = (handles.solver, handles.params);
    let (of, of_real) = (data(call.dtype), data(call.dtype.real()));
    // Nothing is read or written there.
    let somewhere = gpu.workspace()?;
    let at = somewhere as *const c_void;
    // SAFETY: the handles are alive, and so are the places of the answers.
    unsafe {
        let code = match call.task {
            Task::Cholesky { n } => {
                let n = n as i64;
                sys::cusolverDnXpotrf_bufferSize(
                    solver,
                    params,
                    UPPER,
                    n,
                    of,
                    at,
                    n,
                    of,
                    &mut device,
                    &mut host,
                )
            }
            Task::Lu { m, n } => {
                let (m, n) = (m as i64, n as i64);
                sys::cusolverDnXgetrf_bufferSize(
                    solver,
                    params,
                    m,
                    n,
                    of,
                    at,
                    m,
                    of,
                    &mut device,
                    &mut host,
                )
            }
            Task::Reflections { m, n } => {
                let (m, n) = (m as i64, n as i64);
                sys::cusolverDnXgeqrf_bufferSize(
                    solver,
                    params,
                    m,
                    n,
                    of,
                    at,
                    m,
                    of,
                    at,
                    of,
                    &mut device,
                    &mut host,
                )
            }
            Task::Columns { m, n } => {
                let (k, m) = (small(gpu, m.min(n))?, small(gpu, m)?);
                let mut elements = 0;
                let code = typed!(
                    call.dtype,
                    [
                        sys::cusolverDnSorgqr_bufferSize,
                        sys::cusolverDnDorgqr_bufferSize,
                        sys::cusolverDnCungqr_bufferSize
                    ],
                    solver,
                    m,
                    k,
                    k,
                    at.cast(),
                    m,
                    at.cast(),
                    &mut elements
                );
                device = usize::try_from(elements).unwrap_or(0) * call.dtype.size();
                code
            }
            Task::Svd { m, n, vectors } => {
                let (m, n, job) = (m as i64, n as i64, job(vectors));
                sys::cusolverDnXgesvd_bufferSize(
                    solver,
                    params,
                    job,
                    job,
                    m,
                    n,
                    of,
                    at,
                    m,
                    of_real,
                    at,
                    of,
                    at,
                    m,
                    of,
                    at,
                    n,
                    of,
                    &mut device,
                    &mut host,
                )
            }
            Task::Eigh { n, vectors } => {
                let n = n as i64;
                sys::cusolverDnXsyevd_bufferSize(
                    solver,
                    params,
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
                )
            }
            Task::Eig { n, vectors } => {
                let n = n as i64;
                sys::cusolverDnXgeev_bufferSize(
                    solver,
                    params,
                    mode(false),
                    mode(vectors),
                    n,
                    of,
                    at,
                    n,
                    complex_data(call.dtype),
                    at,
                    of,
                    at,
                    n,
                    of,
                    at,
                    n,
                    of,
                    &mut device,
                    &mut host,
                )
            }
            Task::Solve { .. } | Task::Triangle { .. } | Task::Product { .. } => return Ok([0; 2]),
        };
        explain(gpu, code)?;
    }
    Ok([device, host])
}

/// Regions of a batch, as the libraries see those of one matrix.
pub struct Regions<'a> {
    pub places: &'a [u64],
    pub matrix: usize,
}

impl Regions<'_> {
    /// Where this matrix starts in a region, in which each has so many bytes.
    pub fn at<T>(&self, region: usize, bytes: usize) -> *mut T {
        (self.places[region] + (self.matrix * bytes) as u64) as *mut T
    }

    /// Where the library says how it went: behind our own words.
    pub fn info(&self, region: usize, count: usize) -> *mut c_int {
        (self.places[region] + ((count + self.matrix) * size_of::<c_int>()) as u64) as *mut c_int
    }
}

/// Calls the library for one matrix.
///
/// # Safety
/// The regions are those of the task, and the workspace is as large as the library wants it.
pub unsafe fn run(
    gpu: &Gpu,
    handles: &Handles,
    call: &Call,
    regions: &Regions<'_>,
    memory: &Workspace,
) -> Result<()> {
    let &Handles { solver, params, blas, .. } = handles;
    let &Call { task, dtype, count, .. } = call;
    let (of, size) = (data(dtype), dtype.size());
    let (of_real, real_size) = (data(dtype.real()), dtype.real().size());
    let &Workspace { device, device_bytes, host, host_bytes } = memory;
    // SAFETY: the caller vouches for the places.
    unsafe {
        match task {
            Task::Cholesky { n } => explain(
                gpu,
                sys::cusolverDnXpotrf(
                    solver,
                    params,
                    UPPER,
                    n as i64,
                    of,
                    regions.at(0, n * n * size),
                    n as i64,
                    of,
                    device,
                    device_bytes,
                    host,
                    host_bytes,
                    regions.info(1, count),
                ),
            ),
            Task::Lu { m, n } => explain(
                gpu,
                sys::cusolverDnXgetrf(
                    solver,
                    params,
                    m as i64,
                    n as i64,
                    of,
                    regions.at(0, m * n * size),
                    m as i64,
                    regions.at(1, m.min(n) * size_of::<i64>()),
                    of,
                    device,
                    device_bytes,
                    host,
                    host_bytes,
                    regions.info(2, count),
                ),
            ),
            Task::Solve { n, columns } => explain(
                gpu,
                sys::cusolverDnXgetrs(
                    solver,
                    params,
                    sys::cublasOperation_t::CUBLAS_OP_N,
                    n as i64,
                    columns as i64,
                    of,
                    regions.at::<c_void>(0, n * n * size),
                    n as i64,
                    regions.at::<i64>(1, n * size_of::<i64>()),
                    of,
                    regions.at(2, n * columns * size),
                    n as i64,
                    regions.info(3, count),
                ),
            ),
            Task::Triangle { rows, n, upper, unit } => {
                let (full, m, n) = (n * n * size, small(gpu, rows)?, small(gpu, n)?);
                let one = Factor::one(dtype);
                explain_blas(
                    gpu,
                    typed!(
                        dtype,
                        [blas::cublasStrsm_v2, blas::cublasDtrsm_v2, blas::cublasCtrsm_v2],
                        blas,
                        blas::cublasSideMode_t::CUBLAS_SIDE_RIGHT,
                        fill(upper),
                        blas::cublasOperation_t::CUBLAS_OP_N,
                        diagonal(unit),
                        m,
                        n,
                        one.place(),
                        regions.at(0, full),
                        n,
                        regions.at(1, rows * n as usize * size),
                        m
                    ),
                )
            }
            Task::Reflections { m, n } => explain(
                gpu,
                sys::cusolverDnXgeqrf(
                    solver,
                    params,
                    m as i64,
                    n as i64,
                    of,
                    regions.at(0, m * n * size),
                    m as i64,
                    of,
                    regions.at(1, m.min(n) * size),
                    of,
                    device,
                    device_bytes,
                    host,
                    host_bytes,
                    regions.info(2, count),
                ),
            ),
            Task::Columns { m, n } => {
                let (bytes, steps) = (m * n * size, m.min(n) * size);
                let (k, m) = (small(gpu, m.min(n))?, small(gpu, m)?);
                let elements = small(gpu, device_bytes / size)?;
                explain(
                    gpu,
                    typed!(
                        dtype,
                        [sys::cusolverDnSorgqr, sys::cusolverDnDorgqr, sys::cusolverDnCungqr],
                        solver,
                        m,
                        k,
                        k,
                        regions.at(0, bytes),
                        m,
                        regions.at(1, steps),
                        device.cast(),
                        elements,
                        regions.info(2, count)
                    ),
                )
            }
            Task::Svd { m, n, vectors } => {
                let columns = match vectors {
                    Vectors::None => 0,
                    Vectors::Thin => n,
                    Vectors::Full => m,
                };
                let rows = if columns > 0 { n } else { 0 };
                explain(
                    gpu,
                    sys::cusolverDnXgesvd(
                        solver,
                        params,
                        job(vectors),
                        job(vectors),
                        m as i64,
                        n as i64,
                        of,
                        regions.at(0, m * n * size),
                        m as i64,
                        of_real,
                        regions.at(1, n * real_size),
                        of,
                        regions.at(2, m * columns * size),
                        m as i64,
                        of,
                        regions.at(3, n * rows * size),
                        n as i64,
                        of,
                        device,
                        device_bytes,
                        host,
                        host_bytes,
                        regions.info(4, count),
                    ),
                )
            }
            Task::Eigh { n, vectors } => explain(
                gpu,
                sys::cusolverDnXsyevd(
                    solver,
                    params,
                    mode(vectors),
                    LOWER,
                    n as i64,
                    of,
                    regions.at(0, n * n * size),
                    n as i64,
                    of_real,
                    regions.at(1, n * real_size),
                    of,
                    device,
                    device_bytes,
                    host,
                    host_bytes,
                    regions.info(2, count),
                ),
            ),
            Task::Eig { n, vectors } => {
                let columns = if vectors { n } else { 0 };
                let right = regions.at(2, n * columns * size);
                explain(
                    gpu,
                    sys::cusolverDnXgeev(
                        solver,
                        params,
                        mode(false),
                        mode(vectors),
                        n as i64,
                        of,
                        regions.at(0, n * n * size),
                        n as i64,
                        complex_data(dtype),
                        regions.at(1, n * 2 * real_size),
                        of,
                        std::ptr::null_mut(),
                        n as i64,
                        of,
                        right,
                        n as i64,
                        of,
                        device,
                        device_bytes,
                        host,
                        host_bytes,
                        regions.info(3, count),
                    ),
                )
            }
            Task::Product { m, n, depth, apart } => {
                let (one, zero) = (Factor::one(dtype), Factor::ZERO);
                let adjoint = blas::cublasOperation_t::CUBLAS_OP_C;
                let of = blas_data(dtype);
                let compute = match dtype {
                    DType::F64 => blas::cublasComputeType_t::CUBLAS_COMPUTE_64F,
                    _ => blas::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                };
                let sizes = [depth * m, n * apart, m * n].map(|elements| elements * size);
                let (m, n, depth) = (small(gpu, m)?, small(gpu, n)?, small(gpu, depth)?);
                explain_blas(
                    gpu,
                    blas::cublasGemmEx(
                        blas,
                        adjoint,
                        adjoint,
                        m,
                        n,
                        depth,
                        one.place(),
                        regions.at::<c_void>(0, sizes[0]),
                        of,
                        depth,
                        regions.at::<c_void>(1, sizes[1]),
                        of,
                        n,
                        zero.place(),
                        regions.at(2, sizes[2]),
                        of,
                        m,
                        compute,
                        blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                    ),
                )
            }
        }
    }
}
