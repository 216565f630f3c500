//! Matrix products through cuBLASLt.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use cudarc::cublaslt::sys::{
    self, cublasComputeType_t as Compute, cublasLtMatmulDescAttributes_t as Attribute,
    cudaDataType as Data,
};
use cudarc::driver::sys::{CUstream, cuStreamSynchronize};
use cupola_core::{DType, Error, Result};

use super::commands::Library;
use super::gpu::{Gpu, lock};
use super::lane::WORKSPACE;
use super::library;
use super::matrices::{Beside, Matrix, Product};

/// The alignments that products are prepared for: less than what is asked for is always true.
const ALIGNMENTS: [u32; 5] = [256, 16, 8, 4, 2];
/// How many ways are tried of a product that is worth it, and how many multiplications that takes.
const TRIED: usize = 8;
const WORTHWHILE: u64 = 1 << 25;
/// How long a way is tried of a product of many multiplications, and of one of fewer; and all ways, after the first.
const LARGE: u64 = 1 << 32;
const TRIAL: [Duration; 2] = [Duration::from_millis(2), Duration::from_micros(200)];
const TRIALS: Duration = Duration::from_millis(300);

/// The library on a device.
pub struct Products {
    handle: sys::cublasLtHandle_t,
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
            Some(Products { handle })
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
pub struct PreparedProduct {
    product: Product,
    /// By alignment.
    choices: [OnceLock<Result<Choice>>; ALIGNMENTS.len()],
}

/// What the library needs to be told.
struct Choice {
    /// Held from where the row of a call is told to the call.
    operation: Mutex<Descriptor>,
    layouts: [Layout; 3],
    /// The ways that the library knows, those first that it holds to be fast.
    algorithms: Vec<sys::cublasLtMatmulAlgo_t>,
    /// The one that was the fastest.
    fastest: OnceLock<usize>,
    /// Which product this is, for the next process: the same way gives the same bits.
    name: String,
}

// SAFETY: once made, descriptors are only read.
unsafe impl Send for Choice {}
// SAFETY: as above.
unsafe impl Sync for Choice {}

struct Descriptor(sys::cublasLtMatmulDesc_t);
struct Layout(sys::cublasLtMatrixLayout_t);
struct Preference(sys::cublasLtMatmulPreference_t);

impl Descriptor {
    /// Sets an attribute, which is of the value's type.
    fn set<T>(&self, gpu: &Gpu, attribute: Attribute, value: &T) -> Result<()> {
        let (place, size) = bytes_of(value);
        // SAFETY: the library reads so many bytes there, and not after the call.
        explain(gpu, unsafe { sys::cublasLtMatmulDescSetAttribute(self.0, attribute, place, size) })
    }
}

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

impl PreparedProduct {
    /// Prepares a product; the device has been entered. Fails where the library has no way to
    /// compute it.
    pub fn new(gpu: &Arc<Gpu>, product: Product) -> Result<Self> {
        let prepared = PreparedProduct { product, choices: Default::default() };
        let aligned = prepared.product.alignment([0; 3]);
        prepared.choice(gpu, aligned)?;
        gpu.workspace()?;
        Ok(prepared)
    }

    fn products<'g>(&self, gpu: &'g Arc<Gpu>) -> Result<&'g Products> {
        Products::on(gpu).ok_or_else(|| Error::Unsupported {
            device: gpu.device().to_string(),
            reason: "cuBLASLt is not there".to_owned(),
        })
    }

    fn choice(&self, gpu: &Arc<Gpu>, alignment: u32) -> Result<&Choice> {
        let class = ALIGNMENTS.iter().position(|&a| a <= alignment).unwrap_or(ALIGNMENTS.len() - 1);
        let made = self.choices[class].get_or_init(|| {
            let products = self.products(gpu)?;
            Choice::new(gpu, products, &self.product, ALIGNMENTS[class])
        });
        made.as_ref().map_err(Error::clone)
    }
}

impl Library for PreparedProduct {
    fn enqueue(&self, gpu: &Arc<Gpu>, stream: CUstream, places: &[u64]) -> Result<()> {
        let Beside { array, row, .. } = self.product.beside;
        let [first, second, result, more @ ..] = places else {
            return Err(gpu.error("a product has two factors and a result"));
        };
        let mut more = more.iter().copied();
        let mut next = |is_there: bool| is_there.then(|| more.next()).flatten();
        let places =
            Places { regions: [*first, *second, *result], row: next(row), array: next(array) };
        let choice = self.choice(gpu, self.product.alignment(places.regions))?;
        // What is being recorded for later cannot be timed.
        if stream == gpu.stream() && choice.fastest.get().is_none() {
            let fastest = self.fastest(gpu, choice, places)?;
            let _ = choice.fastest.set(fastest);
        }
        let which = choice.fastest.get().copied().unwrap_or(0);
        self.run(gpu, stream, choice, which, places)
    }
}

impl PreparedProduct {
    /// Multiplications of the whole product.
    fn multiplications(&self) -> u64 {
        let [left, _, out] = &self.product.matrices;
        let depth = if left.is_transposed { left.rows } else { left.columns };
        let sizes = [out.rows, out.columns, depth, self.product.count, self.product.starts.len()];
        sizes.iter().fold(1, |all: u64, &size| all.saturating_mul(size as u64))
    }

    /// Tries some of the ways on the operands themselves: each writes the same result.
    fn fastest(&self, gpu: &Arc<Gpu>, choice: &Choice, places: Places) -> Result<usize> {
        let count = if self.multiplications() < WORTHWHILE { 1 } else { tries() };
        let count = count.min(choice.algorithms.len());
        if count < 2 {
            return Ok(0);
        }
        let known = gpu.kernels.remembered(&choice.name);
        if let Some(&[which]) = known.as_deref()
            && usize::from(which) < count
        {
            return Ok(usize::from(which));
        }
        let time = |which: usize, runs: u32| -> Result<Duration> {
            let start = Instant::now();
            (0..runs).try_for_each(|_| self.run(gpu, gpu.stream(), choice, which, places))?;
            // SAFETY: the stream is the device's own.
            gpu.check("a matrix product", unsafe { cuStreamSynchronize(gpu.stream()) })?;
            Ok(start.elapsed() / runs)
        };
        // The first run also waits for what is before it.
        time(0, 1)?;
        let start = Instant::now();
        let trial = TRIAL[usize::from(self.multiplications() < LARGE)];
        let mut best = (0, Duration::MAX);
        for which in 0..count {
            // A way that does not do is no reason to fail.
            let Ok(once) = time(which, 1) else { continue };
            let runs = (trial.as_nanos() / once.as_nanos().max(1)).clamp(1, 20) as u32;
            let Ok(each) = time(which, runs) else { continue };
            if each < best.1 {
                best = (which, each);
            }
            if start.elapsed() > TRIALS {
                break;
            }
        }
        gpu.kernels.remember(&choice.name, &[best.0 as u8]);
        Ok(best.0)
    }

    /// Computes the product in one of the ways.
    fn run(
        &self,
        gpu: &Arc<Gpu>,
        stream: CUstream,
        choice: &Choice,
        which: usize,
        places: Places,
    ) -> Result<()> {
        let (products, workspace) = (self.products(gpu)?, gpu.workspace()?);
        let Product { from, to, matrices, .. } = &self.product;
        let (one, zero) = (Factor::one(*from), Factor::ZERO);
        let operation = lock(&choice.operation);
        if let Some(row) = &places.row {
            operation.set(gpu, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, row)?;
        }
        for start in &self.product.starts {
            let at = |matrix: &Matrix| {
                let size = if matrix.region == 2 { to.size() } else { from.size() };
                places.regions[matrix.region] + (start[matrix.region] * size) as u64
            };
            let [left, right, out] = [0, 1, 2].map(|m| at(&matrices[m]));
            let (there, factor) = match places.array {
                Some(array) => (array + (start[2] * to.size()) as u64, &one),
                None => (out, &zero),
            };
            // The planner has laid the regions out so.
            let places = [left, right, there, out];
            let given = Given { places, factors: [&one, factor], workspace };
            let code = choice.call(stream, products, &operation, which, &given);
            explain(gpu, code)?;
        }
        Ok(())
    }
}

/// Where a product's regions start, and what it takes beside its factors.
#[derive(Clone, Copy)]
struct Places {
    regions: [u64; 3],
    row: Option<u64>,
    array: Option<u64>,
}

/// What a call is given besides what the library was told before.
struct Given<'f> {
    /// The factors, what is added, and the result.
    places: [u64; 4],
    /// What the product and what is added are multiplied by.
    factors: [&'f Factor; 2],
    workspace: u64,
}

/// How many ways are tried: `CUPOLA_CUBLAS_TRIES`, 1 for the library's own first choice.
fn tries() -> usize {
    static TRIES: OnceLock<usize> = OnceLock::new();
    *TRIES.get_or_init(|| {
        let wanted = std::env::var("CUPOLA_CUBLAS_TRIES").ok();
        wanted.and_then(|text| text.parse().ok()).unwrap_or(TRIED).clamp(1, TRIED)
    })
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
    fn new(gpu: &Gpu, products: &Products, product: &Product, alignment: u32) -> Result<Self> {
        let [left, right, out] = &product.matrices;
        let (compute, scale) = match product.from {
            DType::F64 => (Compute::CUBLAS_COMPUTE_64F, Data::CUDA_R_64F),
            _ if product.tf32 => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, Data::CUDA_R_32F),
            _ => (Compute::CUBLAS_COMPUTE_32F, Data::CUDA_R_32F),
        };
        let mut operation = std::ptr::null_mut();
        // SAFETY: the place is there.
        explain(gpu, unsafe { sys::cublasLtMatmulDescCreate(&mut operation, compute, scale) })?;
        let operation = Descriptor(operation);
        for (matrix, attribute) in [
            (left, Attribute::CUBLASLT_MATMUL_DESC_TRANSA),
            (right, Attribute::CUBLASLT_MATMUL_DESC_TRANSB),
        ] {
            // The library's numbers for a matrix as it is, and for its transpose.
            operation.set(gpu, attribute, &i32::from(matrix.is_transposed))?;
        }
        use sys::cublasLtEpilogue_t as Epilogue;
        let epilogue = match (product.beside.row, product.beside.least) {
            (false, false) => None,
            (false, true) => Some(Epilogue::CUBLASLT_EPILOGUE_RELU),
            (true, false) => Some(Epilogue::CUBLASLT_EPILOGUE_BIAS),
            (true, true) => Some(Epilogue::CUBLASLT_EPILOGUE_RELU_BIAS),
        };
        if let Some(epilogue) = epilogue {
            operation.set(gpu, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &(epilogue as i32))?;
        }
        let layouts = [
            layout(gpu, left, product.from, product.count)?,
            layout(gpu, right, product.from, product.count)?,
            layout(gpu, out, product.to, product.count)?,
        ];
        let algorithms = search(gpu, products, &operation, &layouts, alignment)?;
        // SAFETY: the library is loaded; the call has no conditions.
        let version = unsafe { sys::cublasLtGetVersion() };
        let name = format!("cuBLASLt {version} {product:?} {alignment} of {}", tries());
        let operation = Mutex::new(operation);
        let mut made = Choice { operation, layouts, algorithms, fastest: OnceLock::new(), name };
        if product.beside.least {
            made.keep_those_that_keep_nan(gpu, products, product)?;
        }
        Ok(made)
    }

    /// Of some ways the larger of NaN and zero is zero, which no attribute says: they are run on zeros, to which NaN is
    /// added.
    fn keep_those_that_keep_nan(
        &mut self,
        gpu: &Gpu,
        products: &Products,
        product: &Product,
    ) -> Result<()> {
        let question = format!("{} keep NaN", self.name);
        let count = self.algorithms.len();
        let answer = match gpu.kernels.remembered(&question).filter(|known| known.len() == count) {
            Some(known) => known,
            None => {
                let found = (0..count).map(|which| self.keeps_nan(gpu, products, product, which));
                let found = found.map(|keeps| Ok(u8::from(keeps?))).collect::<Result<Vec<u8>>>()?;
                gpu.kernels.remember(&question, &found);
                found
            }
        };
        let mut answer = answer.iter();
        self.algorithms.retain(|_| answer.next() == Some(&1));
        match self.algorithms.is_empty() {
            true => explain(gpu, sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED),
            false => Ok(()),
        }
    }

    fn keeps_nan(
        &self,
        gpu: &Gpu,
        products: &Products,
        product: &Product,
        which: usize,
    ) -> Result<bool> {
        let bytes = |matrix: &Matrix, dtype: DType| {
            let elements = (product.count - 1) * matrix.batch + matrix.columns * matrix.step;
            (elements * dtype.size()).next_multiple_of(256)
        };
        let [left, right, out] = &product.matrices;
        let sizes = [
            (out.rows * product.to.size()).next_multiple_of(256),
            bytes(left, product.from).max(bytes(right, product.from)),
            bytes(out, product.to),
            WORKSPACE,
        ];
        let room = gpu.temporary(sizes.iter().sum())?;
        let mut end = room.place();
        let [row, factors, result, workspace] = sizes.map(|size| {
            let start = end;
            end += size as u64;
            start
        });
        room.fill(row, 0xff, sizes[0])?;
        room.fill(factors, 0, sizes[1] + sizes[2])?;
        let operation = lock(&self.operation);
        operation.set(gpu, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &row)?;
        let places = [factors, factors, result, result];
        let (one, zero) = (Factor::one(product.from), Factor::ZERO);
        let given = Given { places, factors: [&one, &zero], workspace };
        let code = self.call(gpu.stream(), products, &operation, which, &given);
        if code != sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS {
            return Ok(false);
        }
        let mut bits = [0_u8; 4];
        room.read(result, &mut bits[..product.to.size()])?;
        let bits = u32::from_le_bytes(bits);
        Ok(match product.to {
            DType::F16 => bits & 0x7fff > 0x7c00,
            DType::BF16 => bits & 0x7fff > 0x7f80,
            _ => f32::from_bits(bits).is_nan(),
        })
    }

    /// Gives the product to a stream.
    fn call(
        &self,
        stream: CUstream,
        products: &Products,
        operation: &Descriptor,
        which: usize,
        given: &Given<'_>,
    ) -> sys::cublasStatus_t {
        let Given { places: [left, right, there, out], factors: [of_product, of_there], workspace } =
            *given;
        // SAFETY: the descriptors fit the regions; the factors are read before the call returns.
        unsafe {
            sys::cublasLtMatmul(
                products.handle,
                operation.0,
                of_product.place(),
                left as *const c_void,
                self.layouts[0].0,
                right as *const c_void,
                self.layouts[1].0,
                of_there.place(),
                there as *const c_void,
                self.layouts[2].0,
                out as *mut c_void,
                self.layouts[2].0,
                &self.algorithms[which],
                workspace as *mut c_void,
                WORKSPACE,
                stream.cast(),
            )
        }
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

/// The algorithms that the library holds to be fast, in its order.
fn search(
    gpu: &Gpu,
    products: &Products,
    operation: &Descriptor,
    layouts: &[Layout; 3],
    alignment: u32,
) -> Result<Vec<sys::cublasLtMatmulAlgo_t>> {
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
    type Found = sys::cublasLtMatmulHeuristicResult_t;
    let mut found = [const { std::mem::MaybeUninit::<Found>::zeroed() }; TRIED];
    let mut count = 0;
    // SAFETY: everything was just made, and there are places for so many answers.
    explain(gpu, unsafe {
        sys::cublasLtMatmulAlgoGetHeuristic(
            products.handle,
            operation.0,
            layouts[0].0,
            layouts[1].0,
            layouts[2].0,
            layouts[2].0,
            preference.0,
            TRIED as i32,
            found.as_mut_ptr().cast(),
            &mut count,
        )
    })?;
    // SAFETY: zeros are a valid answer, and the library wrote some over them.
    let found = found.map(|found| unsafe { found.assume_init() });
    let found = &found[..usize::try_from(count).unwrap_or(0).min(TRIED)];
    let works = |found: &&Found| found.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS;
    let algorithms: Vec<_> = found.iter().filter(works).map(|found| found.algo).collect();
    match algorithms.is_empty() {
        true => explain(gpu, sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED).map(|()| algorithms),
        false => Ok(algorithms),
    }
}
