//! CUDA's libraries: where they are, and whether they have what is called.
//!
//! The bindings look a library up by its name when it is first used, and panic where it is missing.
//! So each one is looked for here before, in more places. It stays loaded: the loader then finds
//! it by its name.

use std::collections::BTreeSet;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

/// A library, and what must be in it.
pub struct Wanted {
    /// The name without prefix and suffix; another one where the system has another.
    name: &'static str,
    symbols: &'static [&'static str],
    /// Libraries beside it that it opens by their names.
    companions: &'static str,
    found: OnceLock<Result<(), String>>,
}

/// The driver, which comes with the GPU.
pub static DRIVER: Wanted = Wanted {
    name: if cfg!(windows) { "nvcuda" } else { "cuda" },
    symbols: &[
        "cuCtxSetCurrent",
        "cuDeviceGet",
        "cuDeviceGetAttribute",
        "cuDeviceGetCount",
        "cuDeviceGetDefaultMemPool",
        "cuDeviceGetName",
        "cuDevicePrimaryCtxRetain",
        "cuDeviceTotalMem_v2",
        "cuEventCreate",
        "cuEventDestroy_v2",
        "cuEventQuery",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuFuncSetAttribute",
        "cuGetErrorString",
        "cuInit",
        "cuLaunchKernel",
        "cuMemAllocAsync",
        "cuMemAlloc_v2",
        "cuMemFreeAsync",
        "cuMemFree_v2",
        "cuMemHostAlloc",
        "cuMemHostGetDevicePointer_v2",
        "cuMemPoolSetAttribute",
        "cuMemPoolTrimTo",
        "cuMemcpyDtoHAsync_v2",
        "cuMemcpyHtoDAsync_v2",
        "cuModuleGetFunction",
        "cuModuleLoadData",
        "cuStreamCreate",
        "cuStreamQuery",
        "cuStreamSynchronize",
    ],
    companions: "",
    found: OnceLock::new(),
};

/// What of the driver runs many launches as one.
pub static GRAPHS: Wanted = Wanted {
    name: if cfg!(windows) { "nvcuda" } else { "cuda" },
    symbols: &[
        "cuGraphAddChildGraphNode",
        "cuGraphAddKernelNode_v2",
        "cuGraphCreate",
        "cuGraphDestroy",
        "cuGraphExecChildGraphNodeSetParams",
        "cuGraphExecDestroy",
        "cuGraphExecKernelNodeSetParams_v2",
        "cuGraphInstantiateWithFlags",
        "cuGraphLaunch",
        "cuStreamBeginCapture_v2",
        "cuStreamEndCapture",
    ],
    companions: "",
    found: OnceLock::new(),
};

/// What of the driver lets a kernel of a graph take its place while the one before ends: of 12.3 and
/// later.
pub static OVERLAP: Wanted = Wanted {
    name: if cfg!(windows) { "nvcuda" } else { "cuda" },
    symbols: &["cuGraphAddDependencies_v2"],
    companions: "",
    found: OnceLock::new(),
};

/// What of the driver measures between events: of 12.8 and later.
pub static TIMES: Wanted = Wanted {
    name: if cfg!(windows) { "nvcuda" } else { "cuda" },
    symbols: &["cuEventElapsedTime_v2"],
    companions: "",
    found: OnceLock::new(),
};

/// The run-time compiler.
pub static COMPILER: Wanted = Wanted {
    name: "nvrtc",
    symbols: &[
        "nvrtcCompileProgram",
        "nvrtcCreateProgram",
        "nvrtcDestroyProgram",
        "nvrtcGetCUBIN",
        "nvrtcGetCUBINSize",
        "nvrtcGetNumSupportedArchs",
        "nvrtcGetPTX",
        "nvrtcGetPTXSize",
        "nvrtcGetProgramLog",
        "nvrtcGetProgramLogSize",
        "nvrtcGetSupportedArchs",
        "nvrtcVersion",
    ],
    companions: "nvrtc-builtins",
    found: OnceLock::new(),
};

/// Matrix products.
pub static PRODUCTS: Wanted = Wanted {
    name: "cublasLt",
    symbols: &[
        "cublasLtCreate",
        "cublasLtMatmul",
        "cublasLtMatmulAlgoGetHeuristic",
        "cublasLtMatmulDescCreate",
        "cublasLtMatmulDescDestroy",
        "cublasLtMatmulDescSetAttribute",
        "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulPreferenceDestroy",
        "cublasLtMatmulPreferenceSetAttribute",
        "cublasLtMatrixLayoutCreate",
        "cublasLtMatrixLayoutDestroy",
        "cublasLtMatrixLayoutSetAttribute",
    ],
    companions: "",
    found: OnceLock::new(),
};

/// Convolutions and attention.
pub static DNN: Wanted = Wanted {
    name: "cudnn",
    symbols: &[
        "cudnnBackendCreateDescriptor",
        "cudnnBackendDestroyDescriptor",
        "cudnnBackendExecute",
        "cudnnBackendFinalize",
        "cudnnBackendGetAttribute",
        "cudnnBackendSetAttribute",
        "cudnnCreate",
        "cudnnSetStream",
    ],
    companions: "",
    found: OnceLock::new(),
};

/// Solutions for triangles, and products beside factorizations.
pub static BLAS: Wanted = Wanted {
    name: "cublas",
    symbols: &[
        "cublasCgetrfBatched",
        "cublasCgetrsBatched",
        "cublasCreate_v2",
        "cublasCtrsmBatched",
        "cublasCtrsm_v2",
        "cublasDgetrfBatched",
        "cublasDgetrsBatched",
        "cublasDtrsmBatched",
        "cublasDtrsm_v2",
        "cublasGemmEx",
        "cublasSetStream_v2",
        "cublasSgetrfBatched",
        "cublasSgetrsBatched",
        "cublasStrsmBatched",
        "cublasStrsm_v2",
    ],
    companions: "",
    found: OnceLock::new(),
};

/// Factorizations of matrices.
pub static SOLVER: Wanted = Wanted {
    name: "cusolver",
    symbols: &[
        "cusolverDnCgesvdjBatched",
        "cusolverDnCgesvdjBatched_bufferSize",
        "cusolverDnCpotrfBatched",
        "cusolverDnCreate",
        "cusolverDnCreateGesvdjInfo",
        "cusolverDnCreateParams",
        "cusolverDnCungqr",
        "cusolverDnCungqr_bufferSize",
        "cusolverDnDgesvdjBatched",
        "cusolverDnDgesvdjBatched_bufferSize",
        "cusolverDnDorgqr",
        "cusolverDnDorgqr_bufferSize",
        "cusolverDnDpotrfBatched",
        "cusolverDnSetStream",
        "cusolverDnSgesvdjBatched",
        "cusolverDnSgesvdjBatched_bufferSize",
        "cusolverDnSorgqr",
        "cusolverDnSorgqr_bufferSize",
        "cusolverDnSpotrfBatched",
        "cusolverDnXgeqrf",
        "cusolverDnXgeqrf_bufferSize",
        "cusolverDnXgesvd",
        "cusolverDnXgesvd_bufferSize",
        "cusolverDnXgetrf",
        "cusolverDnXgetrf_bufferSize",
        "cusolverDnXgetrs",
        "cusolverDnXpotrf",
        "cusolverDnXpotrf_bufferSize",
        "cusolverDnXsyevd",
        "cusolverDnXsyevd_bufferSize",
    ],
    companions: "",
    found: OnceLock::new(),
};

/// What of them decomposes any square matrix: of CUDA 12.6 and later.
pub static GENERAL: Wanted = Wanted {
    name: "cusolver",
    symbols: &["cusolverDnXgeev", "cusolverDnXgeev_bufferSize"],
    companions: "",
    found: OnceLock::new(),
};

/// What of them decomposes a batch of Hermitian matrices: of CUDA 12.6 and later.
pub static BATCHES: Wanted = Wanted {
    name: "cusolver",
    symbols: &["cusolverDnXsyevBatched", "cusolverDnXsyevBatched_bufferSize"],
    companions: "",
    found: OnceLock::new(),
};

/// Fourier transforms.
pub static TRANSFORMS: Wanted = Wanted {
    name: "cufft",
    symbols: &[
        "cufftCreate",
        "cufftDestroy",
        "cufftExecC2C",
        "cufftExecR2C",
        "cufftMakePlanMany64",
        "cufftSetAutoAllocation",
        "cufftSetStream",
        "cufftSetWorkArea",
    ],
    companions: "",
    found: OnceLock::new(),
};

/// What a device does better with, and does not need.
pub static OPTIONAL: [&Wanted; 5] = [&PRODUCTS, &DNN, &BLAS, &SOLVER, &TRANSFORMS];

impl Wanted {
    /// Loads the library, or says in a line why that cannot be. It is looked for once.
    pub fn load(&self) -> Result<(), String> {
        self.found.get_or_init(|| self.look()).clone()
    }

    fn look(&self) -> Result<(), String> {
        let names = cudarc::get_lib_name_candidates(self.name);
        let library = names.iter().find_map(open).or_else(|| {
            folders().iter().find_map(|folder| {
                let path = names.iter().map(|name| folder.join(name)).find(|path| path.exists())?;
                self.open_companions(folder);
                open(path)
            })
        });
        let usual = match self.name {
            "cuda" => format!("{DLL_PREFIX}cuda{DLL_SUFFIX}.1"),
            name => format!("{DLL_PREFIX}{name}{DLL_SUFFIX}"),
        };
        let library = library.ok_or_else(|| format!("{usual} was not found"))?;
        for symbol in self.symbols {
            // SAFETY: the symbol is only looked for.
            let there = unsafe { library.get::<*const ()>(*symbol) }.is_ok();
            if !there {
                return Err(format!("{usual} is too old: it has no {symbol}"));
            }
        }
        // It stays for the rest of the program: what it made does, too.
        std::mem::forget(library);
        Ok(())
    }

    fn open_companions(&self, folder: &Path) {
        if self.companions.is_empty() {
            return;
        }
        let start = format!("{DLL_PREFIX}{}", self.companions);
        for path in entries(folder) {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let is_library = name.ends_with(DLL_SUFFIX) || name.contains(&format!("{DLL_SUFFIX}."));
            if name.starts_with(&start)
                && is_library
                && let Some(library) = open(path)
            {
                std::mem::forget(library);
            }
        }
    }
}

pub(super) fn open(path: impl AsRef<std::ffi::OsStr>) -> Option<Library> {
    // SAFETY: these are NVIDIA's libraries, whose initialisation has no conditions.
    unsafe { Library::new(path.as_ref()) }.ok()
}

/// The folders beyond the loader's own where CUDA's libraries may be.
pub(super) fn folders() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let mut all = Vec::new();
        let roots = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].map(std::env::var_os);
        for root in roots.into_iter().flatten().map(PathBuf::from).chain(["/usr/local/cuda".into()])
        {
            all.extend(["lib64", "lib", "bin", "bin/x64"].map(|folder| root.join(folder)));
            all.extend(entries(&root.join("targets")).map(|target| target.join("lib")));
        }
        all.extend(["/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"].map(PathBuf::from));
        for packages in site_packages() {
            for package in entries(&packages.join("nvidia")) {
                all.extend(["lib", "bin"].map(|folder| package.join(folder)));
            }
        }
        all.retain(|folder| folder.is_dir());
        all
    })
}

/// Where the Pythons of this machine keep their packages.
fn site_packages() -> BTreeSet<PathBuf> {
    let mut prefixes: BTreeSet<PathBuf> = BTreeSet::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(std::env::var_os(name).map(PathBuf::from));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        let python = folder.join(format!("python3{}", std::env::consts::EXE_SUFFIX));
        // Where the link is and where it leads may be two installations.
        for place in [Some(python.clone()), python.canonicalize().ok()].into_iter().flatten() {
            if place.exists() {
                prefixes.extend(place.ancestors().nth(2).map(Path::to_path_buf));
            }
        }
    }
    if let Some(home) = std::env::home_dir() {
        prefixes.insert(home.join(".local"));
    }
    let mut found = BTreeSet::new();
    for prefix in prefixes {
        found.insert(prefix.join("Lib").join("site-packages"));
        for lib in [prefix.join("lib"), prefix.join("local/lib")] {
            for python in entries(&lib).filter(|path| is_python(path)) {
                found.extend(["site-packages", "dist-packages"].map(|name| python.join(name)));
            }
        }
    }
    found
}

fn is_python(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python3"))
}

/// What is in a folder, in order; nothing where it cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    all.collect::<BTreeSet<_>>().into_iter()
}
