//! What cannot be read off the operations: MLX's names, arguments and defaults.

use super::parse::Function;

/// The public names of `mlx.core` 0.32 that are functions, by submodule. What of it is not bound
/// raises `NotImplementedError`: this is the one list of what there should be.
pub const SURFACE: &[(&str, &str)] = &[
    (
        "",
        "__array_namespace_info__ abs acos acosh add addmm all allclose any arange arccos arccosh arcsin arcsinh arctan
         arctan2 arctanh argmax argmin argpartition argsort array_equal as_strided asarray asin
         asinh astype async_eval atan atan2 atanh atleast_1d atleast_2d atleast_3d bartlett
         bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
         blackman block_masked_mm broadcast_arrays broadcast_shapes broadcast_to can_cast ceil
         checkpoint clear_cache clear_streams clip compile concat concatenate conj conjugate
         contiguous conv1d conv2d conv3d conv_general conv_transpose1d conv_transpose2d
         conv_transpose3d convolve cos cosh count_nonzero cummax cummin cumprod cumsum
         cumulative_prod cumulative_sum default_device default_stream degrees depends dequantize
         device_count device_info diag diagonal diff disable_compile divide divmod einsum
         einsum_path empty empty_like enable_compile equal erf erfinv eval exp expand_dims expm1
         export_function export_to_dot exporter eye flatten flip floor floor_divide from_dlpack
         from_fp8 full full_like gather_mm gather_qmm gather_qqmm get_active_memory
         get_array_buffer_size get_cache_memory get_memory_limit get_peak_memory get_printoptions
         grad greater greater_equal hadamard_transform hamming hanning identity imag
         import_function inner is_available isclose isdtype isfinite isinf isnan isneginf isposinf
         issubdtype jvp kron left_shift less less_equal linspace load log log10 log1p log2 logaddexp
         logcumsumexp logical_and logical_not logical_or logical_xor logsumexp matmul matrix_norm
         matrix_transpose max maximum mean median meshgrid min minimum minmax moveaxis multiply
         nan_to_num negative new_stream new_thread_local_stream new_thread_unsafe_stream not_equal
         ones ones_like outer pad partition permute_dims positive pow power printoptions prod
         put_along_axis qqmm quantize quantized_matmul radians real reciprocal remainder repeat
         reset_peak_memory reshape result_type right_shift roll round rsqrt save save_gguf
         save_safetensors savez savez_compressed searchsorted segmented_mm set_cache_limit
         set_default_device set_default_stream set_memory_limit set_printoptions set_wired_limit
         sigmoid sign sin sinh slice slice_update softmax sort split sqrt square squeeze stack std
         stop_gradient stream subtract sum swapaxes synchronize take take_along_axis tan tanh
         tensordot tile to_fp8 topk trace transpose tri tril triu trunc unflatten unique unstack
         value_and_grad var vecdot view vjp vmap where zeros zeros_like",
    ),
    ("cuda", "is_available"),
    (
        "distributed",
        "all_gather all_max all_min all_sum init is_available recv recv_like send sum_scatter",
    ),
    (
        "fast",
        "cross_entropy cuda_kernel gated_delta_update group_norm layer_norm metal_kernel
         precompiled_cuda_kernel rms_norm rope scaled_dot_product_attention",
    ),
    (
        "fft",
        "fft fft2 fftfreq fftn fftshift ifft ifft2 ifftn ifftshift irfft irfft2 irfftn istft rfft
         rfft2 rfftfreq rfftn stft",
    ),
    (
        "linalg",
        "cholesky cholesky_inv cross det eig eigh eigvals eigvalsh inv lu lu_factor norm pinv qr
         slogdet solve solve_triangular svd tri_inv",
    ),
    (
        "metal",
        "clear_cache device_info get_active_memory get_cache_memory get_peak_memory is_available
         reset_peak_memory set_cache_limit set_memory_limit set_wired_limit start_capture
         stop_capture",
    ),
    (
        "random",
        "bernoulli categorical gumbel key laplace multivariate_normal normal permutation randint
         seed split truncated_normal uniform",
    ),
];

/// Other names of the same function: submodule, name, and what it is.
pub const ALIASES: &[(&str, &str, &str)] = &[
    ("", "acos", "arccos"),
    ("", "acosh", "arccosh"),
    ("", "asin", "arcsin"),
    ("", "asinh", "arcsinh"),
    ("", "atan", "arctan"),
    ("", "atan2", "arctan2"),
    ("", "atanh", "arctanh"),
    ("", "bitwise_left_shift", "left_shift"),
    ("", "bitwise_right_shift", "right_shift"),
    ("", "concat", "concatenate"),
    ("", "conj", "conjugate"),
    ("", "cumulative_prod", "cumprod"),
    ("", "cumulative_sum", "cumsum"),
    ("", "empty", "zeros"),
    ("", "empty_like", "zeros_like"),
    ("", "permute_dims", "transpose"),
    ("", "pow", "power"),
];

/// The functions that are methods of `array`, too, where they are bound by rule.
pub const METHODS: &str = "abs all any argmax argmin astype conj cos cummax cummin cumprod cumsum \
    diag diagonal exp flatten log log10 log1p log2 logcumsumexp logsumexp max mean min moveaxis \
    prod reciprocal round rsqrt sin sqrt square squeeze sum swapaxes view";

/// Python's arguments, where the rules for names and defaults do not give them: one for each
/// parameter of the operation, in its order.
const ARGUMENTS: &[(&str, &str)] = &[
    ("astype", "a, dtype"),
    ("view", "a, dtype"),
    ("expand_dims", "a, axis"),
    ("transpose", "a, axes=None"),
    ("reshape", "a, shape"),
    ("unflatten", "a, axis, shape"),
    ("flatten", "a, start_axis=0, end_axis=-1"),
    ("repeat", "array, repeats, axis=None"),
    ("diagonal", "a, offset=0, axis1=0, axis2=1"),
    ("take_along_axis", "a, indices, axis=-1"),
    ("sort", "a, axis=-1"),
    ("argsort", "a, axis=-1"),
    ("where_", "condition, x, y"),
    ("addmm", "c, a, b, alpha=1.0, beta=1.0"),
    ("vecdot", "a, b, axis=-1"),
    ("concatenate", "arrays, axis=0"),
    ("stack", "arrays, axis=0"),
    ("identity", "n, dtype=float32"),
    ("round", "a, decimals=0"),
    ("tril", "x, k=0"),
    ("triu", "x, k=0"),
    ("leaky_relu", "a, negative_slope=0.01"),
    ("elu", "a, alpha=1.0"),
    ("celu", "a, alpha=1.0"),
    ("glu", "a, axis=-1"),
    ("step", "a, threshold=0.0"),
    ("hard_shrink", "a, lambd=0.5"),
    ("softshrink", "a, lambd=0.5"),
    ("softmin", "a, axis=-1"),
    ("log_softmax", "a, axis=-1"),
    ("normalize", "a, axis=-1, eps=1e-12"),
    ("layer_norm", "a, weight=None, bias=None, eps=1e-5"),
    ("rms_norm", "a, weight=None, eps=1e-5"),
    ("batch_norm", "a, weight=None, bias=None, eps=1e-5"),
    ("topk", "a, k, axis=-1"),
    ("partition", "a, kth, axis=-1"),
    ("argpartition", "a, kth, axis=-1"),
    ("diff", "a, n=1, axis=-1, prepend=None, append=None"),
    ("fftfreq", "n, d=1.0"),
    ("rfftfreq", "n, d=1.0"),
    ("fftshift", "a, axes=None"),
    ("ifftshift", "a, axes=None"),
    ("segmented_mm", "a, b, segments"),
    ("from_fp8", "x, dtype=bfloat16"),
    ("to_fp8", "x"),
    ("one_hot", "a, classes, dtype=float32"),
    ("bucketize", "a, boundaries, right=False"),
    ("cdist", "a, b, p=2.0"),
    ("geomspace", "start, stop, num=50, dtype=float32"),
    ("heaviside", "a, values"),
    ("index_fill", "a, axis, indices, value"),
    ("ldexp", "a, k"),
    ("lerp", "start, end, weight"),
    ("masked_fill", "a, mask, value"),
    ("masked_select", "a, mask"),
    ("pixel_shuffle", "a, upscale_factor"),
    ("pixel_unshuffle", "a, downscale_factor"),
    ("polyval", "p, x"),
    ("repeat_interleave", "a, repeats, axis=None"),
    ("segment_max", "a, segment_ids, num_segments"),
    ("segment_mean", "a, segment_ids, num_segments"),
    ("segment_min", "a, segment_ids, num_segments"),
    ("segment_sum", "a, segment_ids, num_segments"),
    ("trapezoid", "y, x=None, dx=1.0, axis=-1"),
    ("xlogy", "x, y"),
];

/// The functions that take the stream by position, beside those of two operands.
const STREAM_BY_POSITION: &str = "diagonal fftfreq fftshift ifftshift isfinite isinf isnan isneginf isposinf rfftfreq round view";

/// The methods of `array` that do.
const METHOD_STREAM_BY_POSITION: &str = "astype diagonal";

/// Whether MLX takes the stream of a function by position.
pub fn stream_by_position(name: &str, arguments: &[Argument], is_method: bool) -> bool {
    let own = if is_method { METHOD_STREAM_BY_POSITION } else { STREAM_BY_POSITION };
    let operands = arguments.len() == 2 && arguments.iter().all(|a| a.kind == Kind::Operand);
    operands || own.split_whitespace().any(|n| n == name)
}

/// Whether a function takes no complex matrices, because MLX's does not.
pub fn is_real(module: &str, name: &str) -> bool {
    const NAMES: &str = "cholesky cholesky_inv det inv lu lu_factor pinv qr slogdet solve tri_inv";
    module == "linalg" && NAMES.split(' ').any(|real| real == name)
}

/// Whether a function takes numbers for arrays in MLX, too: what is neither is then an error of its value, not of its
/// type.
pub fn takes_numbers(module: &str, name: &str) -> bool {
    const NAMES: &str = "abs arccos arccosh arcsin arcsinh arctan arctanh broadcast_to ceil conjugate cos cosh \
                         degrees erf erfinv exp expm1 floor imag isfinite isinf isnan isneginf isposinf log \
                         log10 log1p log2 logical_not nan_to_num negative radians real reciprocal round rsqrt \
                         sigmoid sign sin sinh sqrt square tan tanh";
    module.is_empty() && NAMES.split_whitespace().any(|one| one == name)
}

/// What a submodule is.
pub fn module_docs(module: &str) -> &'static str {
    match module {
        "" => "Arrays, and the functions of them.",
        "_amp" => "What `cupola.amp` is made of.",
        "_coreml" => "What `cupola.coreml` is made of.",
        "_data" => "What `cupola.data` is made of.",
        "_graph" => "What `cupola.graph` is made of.",
        "_linalg" => "Linear algebra of complex matrices, too, which `linalg` refuses as MLX does.",
        "_suite" => "The samples of the op suite, for comparisons with other packages.",
        "_nn" => "What `cupola.nn` calls and MLX's `core` does not have.",
        "_profiler" => "What `cupola.profiler` is made of.",
        "_train" => "What `cupola.train` is made of.",
        "_onnx" => "What `cupola.onnx` is made of.",
        "cuda" => "GPUs through CUDA.",
        "distributed" => "Groups of processes: this one alone.",
        "fast" => "Layers' arithmetic, each as one function.",
        "fft" => "Fourier transforms.",
        "linalg" => "Linear algebra.",
        "metal" => "GPUs through Metal.",
        "random" => "Random numbers, from splittable keys.",
        _ => "",
    }
}

/// Operations that Python reaches in other ways: subscripts, and functions written by hand under
/// another name.
const SKIPPED: &str = "arange_in index at_set at_add at_multiply at_max at_min gather scatter \
    linspace_open scatter_along_axis select eye_at slice_at slice_update_at result_type can_cast isdtype slice slice_update max_pool avg_pool scaled_dot_product_attention rope cross_entropy group_norm stft istft \
    linalg::lstsq_full quantize_microscaling dequantize_microscaling round_microscaling \
    random::state random::set_state random::shuffle random::permutation random::randint_between";

/// What evaluates its arguments, since its shape depends on their values.
const EVALUATES: &str = "argwhere bincount masked_select repeat_interleave";

/// Whether a function evaluates its arguments.
pub fn evaluates(module: &str, name: &str) -> bool {
    module.is_empty() && EVALUATES.split_whitespace().any(|n| n == name)
}

/// What Python calls an operation.
pub fn python_name(op: &str) -> &str {
    if op == "where_" { "where" } else { op }
}

/// What `cupola.core` has beside the names of MLX.
const BEYOND: &str = "adaptive_avg_pool adaptive_max_pool addcdiv addcmul argwhere associative_scan bincount bucketize cdist cond \
    copysign corrcoef cov digamma erfc fmax fmin fmod fold fori_loop frac frexp geomspace grid_sample \
    heaviside hessian histogram hypot i0 index_fill interp interpolate jacfwd jacrev ldexp \
    lerp lgamma linearize logit logspace masked_fill masked_select max_pool_with_indices \
    max_unpool nanmax nanmean nanmedian nanmin nanpercentile nanquantile nansum nextafter \
    nonzero percentile pixel_shuffle pixel_unshuffle polyval quantile repeat_interleave scan \
    segment_max segment_mean segment_min segment_sum signbit sinc switch trapezoid tril_indices \
    triu_indices unfold while_loop xlogy";

/// Whether a function has its name in a public module.
pub fn is_public(module: &str, name: &str) -> bool {
    let own = SURFACE.iter().filter(|(m, _)| *m == module).map(|(_, names)| *names);
    let beyond = module.is_empty().then_some(BEYOND);
    own.chain(beyond).any(|names| names.split_whitespace().any(|n| n == name))
}

pub fn is_skipped(module: &str, op: &str) -> bool {
    let full = if module.is_empty() { op.to_owned() } else { format!("{module}::{op}") };
    SKIPPED.split_whitespace().any(|s| s == full)
}

/// How a parameter of an operation comes from Python.
#[derive(Clone, Debug)]
pub struct Argument {
    pub name: String,
    /// The default in Python's spelling, if there is one.
    pub default: Option<String>,
    pub kind: Kind,
}

/// The types that operations take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Array,
    Operand,
    Axes,
    OneAxis,
    AxisList,
    /// The number of an axis.
    Number,
    Sizes,
    Shape,
    Bool,
    Int(&'static str),
    Float,
    DType,
    MaybeArray,
    Arrays,
}

fn kind(ty: &str) -> Option<Kind> {
    Some(match ty {
        "&Array" => Kind::Array,
        "implInto<Operand>" => Kind::Operand,
        "implInto<Axes>" => Kind::Axes,
        "implInto<Sizes>" => Kind::Sizes,
        "implInto<Shape>" => Kind::Shape,
        "bool" => Kind::Bool,
        "isize" => Kind::Int("isize"),
        "usize" => Kind::Int("usize"),
        "i32" => Kind::Int("i32"),
        "i64" => Kind::Int("i64"),
        "u64" => Kind::Int("u64"),
        "f64" => Kind::Float,
        "DType" => Kind::DType,
        "Option<&Array>" => Kind::MaybeArray,
        "&[&Array]" => Kind::Arrays,
        _ => return None,
    })
}

/// What takes one axis or all, in MLX too.
const ONE_AXIS: &str = "argmax argmin argpartition argsort concatenate partition repeat sort take take_along_axis topk";

/// Parameters that are numbers of axes.
const NUMBERS: [&str; 7] = ["axis", "axis1", "axis2", "start", "end", "source", "destination"];

/// What takes several axes or all, in MLX too.
const AXIS_LISTS: &str = "transpose";

/// Python's arguments of an operation.
pub fn arguments(op: &Function) -> Result<Vec<Argument>, String> {
    let given = ARGUMENTS.iter().find(|(name, _)| *name == op.name);
    let given: Option<Vec<&str>> = given.map(|(_, text)| text.split(", ").collect());
    if given.as_ref().is_some_and(|g| g.len() != op.parameters.len()) {
        return Err(format!("{}: the table's arguments are not {:?}", op.name, op.parameters));
    }
    let mut out = Vec::new();
    for (at, (name, ty)) in op.parameters.iter().enumerate() {
        let Some(kind) = kind(ty) else {
            return Err(format!(
                "{}: no rule binds `{name}: {ty}`; write it by hand in crates/py/src, or skip it",
                op.path
            ));
        };
        let is_named = |names: &str| names.split_whitespace().any(|name| name == op.name);
        let kind = match kind {
            Kind::Axes if is_named(ONE_AXIS) => Kind::OneAxis,
            Kind::Axes if is_named(AXIS_LISTS) => Kind::AxisList,
            Kind::Int("isize") if NUMBERS.contains(&name.as_str()) => Kind::Number,
            kind => kind,
        };
        let (name, default) = match &given {
            Some(given) => match given[at].split_once('=') {
                Some((name, default)) => (name.to_owned(), Some(default.to_owned())),
                None => (given[at].to_owned(), None),
            },
            None => derived(name, kind, at),
        };
        out.push(Argument { name, default, kind });
    }
    Ok(out)
}

/// The rules: the first array is `a`, axes are `axis`, and what usually is not said has a default.
fn derived(name: &str, kind: Kind, at: usize) -> (String, Option<String>) {
    let name = match (name, kind) {
        ("x", Kind::Array | Kind::Operand) if at == 0 => "a",
        ("axes", Kind::Axes | Kind::OneAxis) => "axis",
        ("offset", Kind::Int(_)) => "k",
        (name, _) => name,
    };
    let default = match (name, kind) {
        (_, Kind::Axes | Kind::OneAxis | Kind::AxisList | Kind::MaybeArray) => Some("None"),
        (_, Kind::Bool) => Some("False"),
        (_, Kind::DType) if name == "dtype" && at > 0 => Some("float32"),
        ("ddof" | "k" | "minlength", Kind::Int(_)) => Some("0"),
        _ => None,
    };
    (name.to_owned(), default.map(str::to_owned))
}
