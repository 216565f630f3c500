//! cuSOLVER and cuBLAS on a device.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use cudarc::cublas::sys as blas;
use cudarc::cusolver::sys::{self, cudaDataType as Data, cusolverEigMode_t as Mode};
use cudarc::driver::sys::CUstream;
use cupola_core::prim::{Linalg, Vectors};
use cupola_core::{DType, Error, Result};

use super::one::{self, Regions};
use super::{Call, Task, together};
use crate::cuda::commands::Library;
use crate::cuda::gpu::{Gpu, lock, slower};
use crate::cuda::library;

/// The libraries on a device.
pub struct Solvers {
    /// One thread at a time may use them.
    handles: Mutex<Handles>,
}

pub struct Handles {
    pub solver: sys::cusolverDnHandle_t,
    pub params: sys::cusolverDnParams_t,
    /// How exact rotations of columns make singular vectors: as exact as the dtype, in the library's order.
    pub rotations: sys::gesvdjInfo_t,
    pub blas: blas::cublasHandle_t,
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
            rotations: std::ptr::null_mut(),
            blas: std::ptr::null_mut(),
        };
        // SAFETY: the libraries are loaded, a context is current, and the places are there.
        unsafe {
            explain(gpu, sys::cusolverDnCreate(&mut handles.solver))?;
            explain(gpu, sys::cusolverDnCreateParams(&mut handles.params))?;
            explain(gpu, sys::cusolverDnCreateGesvdjInfo(&mut handles.rotations))?;
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

pub fn explain(gpu: &Gpu, code: sys::cusolverStatus_t) -> Result<()> {
    match code {
        sys::cusolverStatus_t::CUSOLVER_STATUS_SUCCESS => Ok(()),
        other => Err(gpu.error(&format!("cuSOLVER failed: {other:?}"))),
    }
}

pub fn explain_blas(gpu: &Gpu, code: blas::cublasStatus_t) -> Result<()> {
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
        let is_there = !matches!(call.task, Task::Eigh { .. }) || library::BATCHES.load().is_ok();
        let call = Call { together: call.together && is_there, ..call };
        let workspace = match call.together {
            true => [together::workspace(gpu, &handles, &call)?, 0],
            false => one::workspace(gpu, &handles, &call)?,
        };
        Ok(Solver { call, workspace })
    }

    /// How many bytes of the device's memory it needs.
    pub fn workspace(&self) -> usize {
        self.workspace[0]
    }
}

pub fn data(dtype: DType) -> Data {
    match dtype {
        DType::F64 => Data::CUDA_R_64F,
        DType::C64 => Data::CUDA_C_32F,
        _ => Data::CUDA_R_32F,
    }
}

pub fn blas_data(dtype: DType) -> blas::cudaDataType {
    match dtype {
        DType::F64 => blas::cudaDataType::CUDA_R_64F,
        DType::C64 => blas::cudaDataType::CUDA_C_32F,
        _ => blas::cudaDataType::CUDA_R_32F,
    }
}

/// The complex numbers whose parts have the precision of a dtype.
pub fn complex_data(dtype: DType) -> Data {
    if dtype == DType::F64 { Data::CUDA_C_64F } else { Data::CUDA_C_32F }
}

/// 1 and 0 as the libraries read them, of any dtype.
pub struct Factor([u64; 1]);

impl Factor {
    pub const ZERO: Factor = Factor([0]);

    pub fn one(dtype: DType) -> Factor {
        match dtype {
            DType::F64 => Factor([1.0_f64.to_bits()]),
            // The imaginary part of a complex one is in the upper half.
            _ => Factor([u64::from(1.0_f32.to_bits()).to_le()]),
        }
    }

    pub fn place<T>(&self) -> *const T {
        self.0.as_ptr().cast()
    }
}

pub fn mode(vectors: bool) -> Mode {
    if vectors { Mode::CUSOLVER_EIG_MODE_VECTOR } else { Mode::CUSOLVER_EIG_MODE_NOVECTOR }
}

/// How the library is asked for singular vectors.
pub fn job(vectors: Vectors) -> i8 {
    match vectors {
        Vectors::None => b'N' as i8,
        Vectors::Thin => b'S' as i8,
        Vectors::Full => b'A' as i8,
    }
}

/// The triangle that is read.
pub fn fill(upper: bool) -> blas::cublasFillMode_t {
    match upper {
        true => blas::cublasFillMode_t::CUBLAS_FILL_MODE_UPPER,
        false => blas::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER,
    }
}

/// Whether the diagonal counts as ones.
pub fn diagonal(unit: bool) -> blas::cublasDiagType_t {
    match unit {
        true => blas::cublasDiagType_t::CUBLAS_DIAG_UNIT,
        false => blas::cublasDiagType_t::CUBLAS_DIAG_NON_UNIT,
    }
}

/// A size as the older functions take it.
pub fn small(gpu: &Gpu, size: usize) -> Result<c_int> {
    c_int::try_from(size).map_err(|_| gpu.error(&format!("a matrix of {size} rows is too large")))
}

pub const LOWER: sys::cublasFillMode_t = sys::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER;
pub const UPPER: sys::cublasFillMode_t = sys::cublasFillMode_t::CUBLAS_FILL_MODE_UPPER;

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
pub(super) use typed;

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
        let memory = Workspace {
            device: workspace as *mut c_void,
            device_bytes: self.workspace[0],
            host: host.as_mut_ptr().cast(),
            host_bytes: host.len(),
        };
        // SAFETY: the plan has laid the regions out as the task wants them, and the workspace is as large
        // as the library asked for.
        unsafe {
            if self.call.together {
                return together::run(gpu, &handles, &self.call, places, &memory);
            }
            (0..self.call.count).try_for_each(|matrix| {
                let regions = Regions { places, matrix };
                one::run(gpu, &handles, &self.call, &regions, &memory)
            })
        }
    }
}

/// Memory that a call needs while it runs.
pub struct Workspace {
    pub device: *mut c_void,
    pub device_bytes: usize,
    pub host: *mut c_void,
    pub host_bytes: usize,
}
