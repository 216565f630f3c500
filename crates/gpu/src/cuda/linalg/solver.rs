//! cuSOLVER and cuBLAS on a device: each call for every matrix of a batch, one after the other.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use cudarc::cublas::sys as blas;
use cudarc::cusolver::sys::{self, cudaDataType as Data, cusolverEigMode_t as Mode};
use cudarc::driver::sys::CUstream;
use cupola_core::prim::{Linalg, Vectors};
use cupola_core::{DType, Error, Result};

use super::{Call, Task, real};
use crate::cuda::commands::Library;
use crate::cuda::gpu::{Gpu, lock, slower};
use crate::cuda::library;

/// The libraries on a device.
pub struct Solvers {
    /// One thread at a time may use them.
    handles: Mutex<Handles>,
}

struct Handles {
    solver: sys::cusolverDnHandle_t,
    params: sys::cusolverDnParams_t,
    blas: blas::cublasHandle_t,
}

// SAFETY: handles may be used by any thread, one at a time.
unsafe impl Send for Handles {}

impl Solvers {
    /// Why there is nothing for `op` on any device, if so.
    pub fn check(op: Linalg) -> Result<(), String> {
        Self::load()?;
        match op {
            Linalg::Eig { .. } => library::GENERAL.load(),
            Linalg::Cholesky
            | Linalg::SolveTriangular { .. }
            | Linalg::Solve
            | Linalg::Lu
            | Linalg::Qr
            | Linalg::Svd(_)
            | Linalg::Eigh { .. }
            | Linalg::Pinv => Ok(()),
        }
    }

    fn load() -> Result<(), String> {
        library::BLAS.load()?;
        library::SOLVER.load()
    }

    /// The libraries on `gpu`, which has been entered; none where one is missing.
    pub fn on(gpu: &Arc<Gpu>) -> Option<&Solvers> {
        let made = gpu.solvers.get_or_init(|| {
            Self::load().ok()?;
            Self::new(gpu).map_err(|error| slower("linear algebra", &error)).ok()
        });
        made.as_ref()
    }

    fn new(gpu: &Gpu) -> Result<Solvers> {
        let mut handles = Handles {
            solver: std::ptr::null_mut(),
            params: std::ptr::null_mut(),
            blas: std::ptr::null_mut(),
        };
        // SAFETY: the libraries are loaded, a context is current, and the places are there.
        unsafe {
            explain(gpu, sys::cusolverDnCreate(&mut handles.solver))?;
            explain(gpu, sys::cusolverDnCreateParams(&mut handles.params))?;
            explain_blas(gpu, blas::cublasCreate_v2(&mut handles.blas))?;
        }
        Ok(Solvers { handles: Mutex::new(handles) })
    }

    fn get(gpu: &Arc<Gpu>) -> Result<&Solvers> {
        Self::on(gpu).ok_or_else(|| Error::Unsupported {
            device: gpu.device().to_string(),
            reason: "cuSOLVER is not there".to_owned(),
        })
    }
}

fn explain(gpu: &Gpu, code: sys::cusolverStatus_t) -> Result<()> {
    match code {
        sys::cusolverStatus_t::CUSOLVER_STATUS_SUCCESS => Ok(()),
        other => Err(gpu.error(&format!("cuSOLVER failed: {other:?}"))),
    }
}

fn explain_blas(gpu: &Gpu, code: blas::cublasStatus_t) -> Result<()> {
    match code {
        blas::cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        other => Err(gpu.error(&format!("cuBLAS failed: {other:?}"))),
    }
}

/// A call that is ready to run. Its last region is memory that it needs meanwhile.
pub struct Solver {
    call: Call,
    /// Bytes of the device and of the host.
    workspace: [usize; 2],
}

impl Solver {
    /// Prepares a call; the device has been entered.
    pub fn new(gpu: &Arc<Gpu>, call: Call) -> Result<Solver> {
        let handles = lock(&Solvers::get(gpu)?.handles);
        let workspace = workspace(gpu, &handles, &call)?;
        Ok(Solver { call, workspace })
    }

    /// How many bytes of the device's memory it needs.
    pub fn workspace(&self) -> usize {
        self.workspace[0]
    }
}

fn data(dtype: DType) -> Data {
    match dtype {
        DType::F64 => Data::CUDA_R_64F,
        DType::C64 => Data::CUDA_C_32F,
        _ => Data::CUDA_R_32F,
    }
}

fn blas_data(dtype: DType) -> blas::cudaDataType {
    match dtype {
        DType::F64 => blas::cudaDataType::CUDA_R_64F,
        DType::C64 => blas::cudaDataType::CUDA_C_32F,
        _ => blas::cudaDataType::CUDA_R_32F,
    }
}

/// The complex numbers whose parts have the precision of a dtype.
fn complex_data(dtype: DType) -> Data {
    if dtype == DType::F64 { Data::CUDA_C_64F } else { Data::CUDA_C_32F }
}

/// 1 and 0 as the libraries read them, of any dtype.
struct Factor([u64; 1]);

impl Factor {
    const ZERO: Factor = Factor([0]);

    fn one(dtype: DType) -> Factor {
        match dtype {
            DType::F64 => Factor([1.0_f64.to_bits()]),
            // The imaginary part of a complex one is in the upper half.
            _ => Factor([u64::from(1.0_f32.to_bits()).to_le()]),
        }
    }

    fn place<T>(&self) -> *const T {
        self.0.as_ptr().cast()
    }
}

fn mode(vectors: bool) -> Mode {
    if vectors { Mode::CUSOLVER_EIG_MODE_VECTOR } else { Mode::CUSOLVER_EIG_MODE_NOVECTOR }
}

/// How the library is asked for singular vectors.
fn job(vectors: Vectors) -> i8 {
    match vectors {
        Vectors::None => b'N' as i8,
        Vectors::Thin => b'S' as i8,
        Vectors::Full => b'A' as i8,
    }
}

/// A size as the older functions take it.
fn small(gpu: &Gpu, size: usize) -> Result<c_int> {
    c_int::try_from(size).map_err(|_| gpu.error(&format!("a matrix of {size} rows is too large")))
}

const LOWER: sys::cublasFillMode_t = sys::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER;
const UPPER: sys::cublasFillMode_t = sys::cublasFillMode_t::CUBLAS_FILL_MODE_UPPER;

/// Calls the function for a dtype.
macro_rules! typed {
    ($dtype:expr, [$f32:path, $f64:path, $c64:path], $($argument:expr),*) => {
        match $dtype {
            DType::F64 => $f64($($argument),*),
            DType::C64 => $c64($($argument),*),
            _ => $f32($($argument),*),
        }
    };
}

/// Bytes of the device and of the host that a call needs.
fn workspace(gpu: &Arc<Gpu>, handles: &Handles, call: &Call) -> Result<[usize; 2]> {
    let (mut device, mut host) = (0, 0);
    let (solver, params) = (handles.solver, handles.params);
    let (of, of_real) = (data(call.dtype), data(real(call.dtype)));
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
struct Regions<'a> {
    places: &'a [u64],
    matrix: usize,
}

impl Regions<'_> {
    /// Where this matrix starts in a region, in which each has so many bytes.
    fn at<T>(&self, region: usize, bytes: usize) -> *mut T {
        (self.places[region] + (self.matrix * bytes) as u64) as *mut T
    }

    /// Where the library says how it went: behind our own words.
    fn info(&self, region: usize, count: usize) -> *mut c_int {
        (self.places[region] + ((count + self.matrix) * size_of::<c_int>()) as u64) as *mut c_int
    }
}

impl Library for Solver {
    fn enqueue(&self, gpu: &Arc<Gpu>, stream: CUstream, places: &[u64]) -> Result<()> {
        let Some((&workspace, places)) = places.split_last() else {
            return Err(gpu.error("a factorization has regions"));
        };
        let mut host = vec![0_u8; self.workspace[1]];
        let handles = lock(&Solvers::get(gpu)?.handles);
        // SAFETY: the handles are alive, and the stream lives as long as the program.
        unsafe {
            explain(gpu, sys::cusolverDnSetStream(handles.solver, stream.cast()))?;
            explain_blas(gpu, blas::cublasSetStream_v2(handles.blas, stream.cast()))?;
        }
        for matrix in 0..self.call.count {
            let regions = Regions { places, matrix };
            let memory = Workspace {
                device: workspace as *mut c_void,
                device_bytes: self.workspace[0],
                host: host.as_mut_ptr().cast(),
                host_bytes: host.len(),
            };
            // SAFETY: the plan has laid the regions out as the task wants them, and the workspace is as
            // large as the library asked for.
            unsafe { run(gpu, &handles, &self.call, &regions, &memory)? };
        }
        Ok(())
    }
}

/// Memory that a call needs while it runs.
struct Workspace {
    device: *mut c_void,
    device_bytes: usize,
    host: *mut c_void,
    host_bytes: usize,
}

/// Calls the library for one matrix.
///
/// # Safety
/// The regions are those of the task, and the workspace is as large as the library wants it.
unsafe fn run(
    gpu: &Gpu,
    handles: &Handles,
    call: &Call,
    regions: &Regions<'_>,
    memory: &Workspace,
) -> Result<()> {
    let &Handles { solver, params, blas } = handles;
    let &Call { task, dtype, count } = call;
    let (of, size) = (data(dtype), dtype.size());
    let (of_real, real_size) = (data(real(dtype)), real(dtype).size());
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
                let fill = match upper {
                    true => blas::cublasFillMode_t::CUBLAS_FILL_MODE_UPPER,
                    false => blas::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER,
                };
                let diagonal = match unit {
                    true => blas::cublasDiagType_t::CUBLAS_DIAG_UNIT,
                    false => blas::cublasDiagType_t::CUBLAS_DIAG_NON_UNIT,
                };
                explain_blas(
                    gpu,
                    typed!(
                        dtype,
                        [blas::cublasStrsm_v2, blas::cublasDtrsm_v2, blas::cublasCtrsm_v2],
                        blas,
                        blas::cublasSideMode_t::CUBLAS_SIDE_RIGHT,
                        fill,
                        blas::cublasOperation_t::CUBLAS_OP_N,
                        diagonal,
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
            Task::Product { m, n, depth } => {
                let (one, zero) = (Factor::one(dtype), Factor::ZERO);
                let adjoint = blas::cublasOperation_t::CUBLAS_OP_C;
                let of = blas_data(dtype);
                let compute = match dtype {
                    DType::F64 => blas::cublasComputeType_t::CUBLAS_COMPUTE_64F,
                    _ => blas::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                };
                let sizes = [depth * m, n * depth, m * n].map(|elements| elements * size);
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

/// What the host looks for once a batch is done, or before its numbers are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// That every element that is read is finite.
    Finite,
    /// That no pivot is 0.
    Pivots,
    /// That the library found the matrix positive definite, and nothing is NaN.
    Definite,
    /// That the library's iteration came to its end.
    Converged,
}

/// A check that is ready to run: it waits for the device.
pub struct Checked {
    pub op: Linalg,
    pub check: Check,
    /// How many matrices there are.
    pub count: usize,
}

impl Check {
    /// What is wrong with a matrix by its words: ours, and the library's.
    fn flaw(self, own: u32, info: i32) -> Option<String> {
        match self {
            Check::Finite if own != 0 => Some("has an element that is not finite".to_owned()),
            Check::Pivots if own != 0 => {
                Some(format!("is singular: pivot {} is 0", u32::MAX - own))
            }
            Check::Definite if own != 0 || info > 0 => Some("is not positive definite".to_owned()),
            Check::Converged if info > 0 => {
                Some("leads to no end: the iteration does not converge".to_owned())
            }
            Check::Finite | Check::Pivots | Check::Definite | Check::Converged => None,
        }
    }
}

impl Checked {
    /// The error of the first matrix that has a flaw.
    pub(super) fn verdict(&self, words: &[u32]) -> Result<()> {
        let (own, infos) = words.split_at(self.count.min(words.len()));
        let mut flaws =
            own.iter().zip(infos).map(|(&own, &info)| self.check.flaw(own, info as i32));
        let found = flaws.by_ref().enumerate().find_map(|(i, flaw)| Some((i, flaw?)));
        let Some((i, reason)) = found else { return Ok(()) };
        let which = if self.count > 1 { format!("matrix {i} ") } else { "the matrix ".into() };
        Err(Error::numeric(self.op.name(), which + &reason))
    }
}

impl Library for Checked {
    fn enqueue(&self, gpu: &Arc<Gpu>, _: CUstream, places: &[u64]) -> Result<()> {
        let &[words] = places else { return Err(gpu.error("a check has a region")) };
        let mut bytes = vec![0; 2 * self.count * size_of::<u32>()];
        gpu.read_at(words, &mut bytes)?;
        let (chunks, _) = bytes.as_chunks::<4>();
        let words: Vec<u32> = chunks.iter().map(|&chunk| u32::from_ne_bytes(chunk)).collect();
        self.verdict(&words)
    }
}
