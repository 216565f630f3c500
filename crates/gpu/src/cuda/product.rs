//! Matrix products through cuBLASLt.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use cudarc::cublaslt::sys::{self, cublasComputeType_t as Compute, cudaDataType as Data};
use cudarc::driver::sys::CUstream;
use cupola_core::backend::Buffer;
use cupola_core::{DType, Error, Result};

use super::commands::Library;
use super::gpu::Gpu;
use super::library;
use super::shape::{Matrix, Product};

/// Bytes that a product may use beside its operands.
const WORKSPACE: usize = 32 << 20;
/// The alignments that products are prepared for: less than what is asked for is always true.
const ALIGNMENTS: [u32; 5] = [256, 16, 8, 4, 2];

/// How `float32` products are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MatmulPrecision {
    /// On the matrix units, which round factors to TF32: ten bits behind the point, and sums in
    /// `float32`.
    Tf32,
    /// In `float32`.
    Full,
}

/// 0 while nothing was set.
static PRECISION: AtomicU8 = AtomicU8::new(0);

/// Sets how `float32` products are computed from now on, in this process. At first it is
/// [`MatmulPrecision::Tf32`], or [`MatmulPrecision::Full`] where the environment has
/// `CUPOLA_TF32=0`.
pub fn set_matmul_precision(precision: MatmulPrecision) {
    let before = PRECISION.swap(precision as u8 + 1, Ordering::Relaxed);
    if before != 0 && before != precision as u8 + 1 {
        // Plans hold kernels that were chosen for the former precision.
        cupola_core::plan::cache::clear();
    }
}

/// How `float32` products are computed.
pub fn matmul_precision() -> MatmulPrecision {
    match PRECISION.load(Ordering::Relaxed) {
        1 => MatmulPrecision::Tf32,
        2 => MatmulPrecision::Full,
        _ => {
            let precision = match std::env::var("CUPOLA_TF32").as_deref() {
                Ok("0") => MatmulPrecision::Full,
                _ => MatmulPrecision::Tf32,
            };
            set_matmul_precision(precision);
            precision
        }
    }
}

/// The library on a device.
pub struct Products {
    handle: sys::cublasLtHandle_t,
    workspace: u64,
    /// Holds the workspace.
    _memory: Buffer,
}

// SAFETY: a handle may be used by any thread, many at a time.
unsafe impl Send for Products {}
// SAFETY: as above.
unsafe impl Sync for Products {}

impl Products {
    /// The library on `gpu`, which has been entered; none where it is missing.
    pub fn on(gpu: &Arc<Gpu>) -> Option<&Products> {
        let made = gpu.products.get_or_init(|| {
            library::PRODUCTS.load().ok()?;
            let mut handle = std::ptr::null_mut();
            // SAFETY: the library is loaded and a context is current.
            explain(gpu, unsafe { sys::cublasLtCreate(&mut handle) }).ok()?;
            let memory = gpu.alloc(WORKSPACE).ok()?;
            Some(Products { handle, workspace: gpu.start(&memory).ok()?, _memory: memory })
        });
        made.as_ref()
    }
}

fn explain(gpu: &Gpu, code: sys::cublasStatus_t) -> Result<()> {
    match code {
        sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        other => {
            Err(Error::Device(format!("{}: a matrix product failed: {other:?}", gpu.device())))
        }
    }
}

/// A product that is ready to run.
pub struct Prepared {
    product: Product,
    /// For full precision and for TF32, by alignment.
    choices: [[OnceLock<Result<Choice>>; ALIGNMENTS.len()]; 2],
}

/// What the library needs to be told.
struct Choice {
    operation: Descriptor,
    layouts: [Layout; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

// SAFETY: once made, descriptors are only read.
unsafe impl Send for Choice {}
// SAFETY: as above.
unsafe impl Sync for Choice {}

struct Descriptor(sys::cublasLtMatmulDesc_t);
struct Layout(sys::cublasLtMatrixLayout_t);
struct Preference(sys::cublasLtMatmulPreference_t);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once; nothing hangs on the answer.
        let _ = unsafe { sys::cublasLtMatmulDescDestroy(self.0) };
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once; nothing hangs on the answer.
        let _ = unsafe { sys::cublasLtMatrixLayoutDestroy(self.0) };
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once; nothing hangs on the answer.
        let _ = unsafe { sys::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}

impl Prepared {
    /// Prepares a product; the device has been entered. Fails where the library has no way to
    /// compute it.
    pub fn new(gpu: &Arc<Gpu>, product: Product) -> Result<Self> {
        let prepared = Prepared { product, choices: Default::default() };
        let aligned = prepared.product.alignment([0; 3]);
        prepared.choice(gpu, aligned)?;
        Ok(prepared)
    }

    fn products<'g>(&self, gpu: &'g Arc<Gpu>) -> Result<&'g Products> {
        Products::on(gpu).ok_or_else(|| Error::Unsupported {
            device: gpu.device().to_string(),
            reason: "cuBLASLt is not there".to_owned(),
        })
    }

    fn choice(&self, gpu: &Arc<Gpu>, alignment: u32) -> Result<&Choice> {
        let fast = self.product.from == DType::F32 && matmul_precision() == MatmulPrecision::Tf32;
        let class = ALIGNMENTS.iter().position(|&a| a <= alignment).unwrap_or(ALIGNMENTS.len() - 1);
        let made = self.choices[usize::from(fast)][class].get_or_init(|| {
            let products = self.products(gpu)?;
            Choice::new(gpu, products, &self.product, ALIGNMENTS[class], fast)
        });
        made.as_ref().map_err(Error::clone)
    }
}

impl Library for Prepared {
    fn enqueue(&self, gpu: &Arc<Gpu>, stream: CUstream, places: &[u64]) -> Result<()> {
        let &[first, second, result] = places else {
            return Err(gpu.error("a product has two factors and a result"));
        };
        let places = [first, second, result];
        let products = self.products(gpu)?;
        let choice = self.choice(gpu, self.product.alignment(places))?;
        let Product { from, to, matrices, .. } = &self.product;
        let (one, zero) = (Factor::one(*from), Factor::ZERO);
        for start in &self.product.starts {
            let at = |matrix: &Matrix| {
                let size = if matrix.region == 2 { to.size() } else { from.size() };
                places[matrix.region] + (start[matrix.region] * size) as u64
            };
            let [left, right, out] = [0, 1, 2].map(|m| at(&matrices[m]));
            // SAFETY: the descriptors fit the regions, which the planner has laid out so; the
            // factors are read before the call returns.
            let code = unsafe {
                sys::cublasLtMatmul(
                    products.handle,
                    choice.operation.0,
                    one.place(),
                    left as *const c_void,
                    choice.layouts[0].0,
                    right as *const c_void,
                    choice.layouts[1].0,
                    zero.place(),
                    out as *const c_void,
                    choice.layouts[2].0,
                    out as *mut c_void,
                    choice.layouts[2].0,
                    &choice.algorithm,
                    products.workspace as *mut c_void,
                    WORKSPACE,
                    stream.cast(),
                )
            };
            explain(gpu, code)?;
        }
        Ok(())
    }
}

/// A factor of the product or of what was there, as the library reads it.
struct Factor([u8; 8]);

impl Factor {
    const ZERO: Factor = Factor([0; 8]);

    fn one(dtype: DType) -> Factor {
        match dtype {
            DType::F64 => Factor(1.0_f64.to_ne_bytes()),
            _ => {
                let mut bytes = [0; 8];
                bytes[..4].copy_from_slice(&1.0_f32.to_ne_bytes());
                Factor(bytes)
            }
        }
    }

    fn place(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }
}

fn data(dtype: DType) -> Data {
    match dtype {
        DType::F16 => Data::CUDA_R_16F,
        DType::BF16 => Data::CUDA_R_16BF,
        DType::F64 => Data::CUDA_R_64F,
        _ => Data::CUDA_R_32F,
    }
}

impl Choice {
    fn new(
        gpu: &Gpu,
        products: &Products,
        product: &Product,
        alignment: u32,
        fast: bool,
    ) -> Result<Self> {
        let [left, right, out] = &product.matrices;
        let (compute, scale) = match product.from {
            DType::F64 => (Compute::CUBLAS_COMPUTE_64F, Data::CUDA_R_64F),
            _ if fast => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, Data::CUDA_R_32F),
            _ => (Compute::CUBLAS_COMPUTE_32F, Data::CUDA_R_32F),
        };
        let mut operation = std::ptr::null_mut();
        // SAFETY: the place is there.
        explain(gpu, unsafe { sys::cublasLtMatmulDescCreate(&mut operation, compute, scale) })?;
        let operation = Descriptor(operation);
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        for (matrix, attribute) in [
            (left, Attribute::CUBLASLT_MATMUL_DESC_TRANSA),
            (right, Attribute::CUBLASLT_MATMUL_DESC_TRANSB),
        ] {
            // The library's numbers for a matrix as it is, and for its transpose.
            let how = i32::from(matrix.is_transposed);
            // SAFETY: the attribute is a 32-bit number.
            explain(gpu, unsafe {
                let (place, size) = bytes_of(&how);
                sys::cublasLtMatmulDescSetAttribute(operation.0, attribute, place, size)
            })?;
        }
        let layouts = [
            layout(gpu, left, product.from, product.count)?,
            layout(gpu, right, product.from, product.count)?,
            layout(gpu, out, product.to, product.count)?,
        ];
        let algorithm = search(gpu, products, &operation, &layouts, alignment)?;
        Ok(Choice { operation, layouts, algorithm })
    }
}

fn bytes_of<T>(value: &T) -> (*const c_void, usize) {
    (std::ptr::from_ref(value).cast(), size_of::<T>())
}

fn layout(gpu: &Gpu, matrix: &Matrix, dtype: DType, count: usize) -> Result<Layout> {
    let mut layout = std::ptr::null_mut();
    let (rows, columns) = (matrix.rows as u64, matrix.columns as u64);
    // SAFETY: the place is there.
    explain(gpu, unsafe {
        sys::cublasLtMatrixLayoutCreate(&mut layout, data(dtype), rows, columns, matrix.step as i64)
    })?;
    let layout = Layout(layout);
    if count > 1 {
        use sys::cublasLtMatrixLayoutAttribute_t as Attribute;
        let (many, step) = (count as i32, matrix.batch as i64);
        for (attribute, (place, size)) in [
            (Attribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, bytes_of(&many)),
            (Attribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, bytes_of(&step)),
        ] {
            // SAFETY: the attributes are a 32-bit and a 64-bit number.
            explain(gpu, unsafe {
                sys::cublasLtMatrixLayoutSetAttribute(layout.0, attribute, place, size)
            })?;
        }
    }
    Ok(layout)
}

/// The algorithm that the library holds to be the fastest.
fn search(
    gpu: &Gpu,
    products: &Products,
    operation: &Descriptor,
    layouts: &[Layout; 3],
    alignment: u32,
) -> Result<sys::cublasLtMatmulAlgo_t> {
    let mut preference = std::ptr::null_mut();
    // SAFETY: the place is there.
    explain(gpu, unsafe { sys::cublasLtMatmulPreferenceCreate(&mut preference) })?;
    let preference = Preference(preference);
    use sys::cublasLtMatmulPreferenceAttributes_t as Attribute;
    for (attribute, (place, size)) in [
        (Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes_of(&WORKSPACE)),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bytes_of(&alignment)),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, bytes_of(&alignment)),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, bytes_of(&alignment)),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bytes_of(&alignment)),
    ] {
        // SAFETY: the attributes are a 64-bit and four 32-bit numbers.
        explain(gpu, unsafe {
            sys::cublasLtMatmulPreferenceSetAttribute(preference.0, attribute, place, size)
        })?;
    }
    let mut found = std::mem::MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::zeroed();
    let mut count = 0;
    // SAFETY: everything was just made, and there is a place for one answer.
    explain(gpu, unsafe {
        sys::cublasLtMatmulAlgoGetHeuristic(
            products.handle,
            operation.0,
            layouts[0].0,
            layouts[1].0,
            layouts[2].0,
            layouts[2].0,
            preference.0,
            1,
            found.as_mut_ptr(),
            &mut count,
        )
    })?;
    if count == 0 {
        return explain(gpu, sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED)
            .map(|()| sys::cublasLtMatmulAlgo_t { data: [0; 8] });
    }
    // SAFETY: zeros are a valid answer, and the library wrote one over them.
    let found = unsafe { found.assume_init() };
    explain(gpu, found.state)?;
    Ok(found.algo)
}
