//! cuDNN: it is told operations as a graph, names engines for them, and makes plans.
//!
//! Its heuristics name the engines, the best one first. The first that repeats its results, sums in
//! `float32` and needs no more memory than there is becomes the plan. None is chosen by timing.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use cudarc::cudnn::sys::{
    self, cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type,
    cudnnBackendDescriptorType_t as Kind, cudnnBackendNumericalNote_t as Note,
    cudnnDataType_t as Data, cudnnPointwiseMode_t as Pointwise, cudnnReduceTensorOp_t as Fold,
};
use cudarc::driver::sys::CUstream;
use cupola_core::{DType, Error, Result};

use super::gpu::{Gpu, lock, slower};
use super::library;

/// What cuDNN takes for granted of every operand's place, in bytes.
pub const ALIGNMENT: usize = 16;
/// How many engines are looked at.
const ENGINES: usize = 16;
/// What an engine must not do: results have to repeat, and sums are taken in `float32`.
const REFUSED: [Note; 7] = [
    Note::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
    Note::CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
    Note::CUDNN_NUMERICAL_NOTE_FFT,
    Note::CUDNN_NUMERICAL_NOTE_WINOGRAD,
    Note::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
    Note::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
    Note::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13,
];

/// The library on a device.
pub struct Dnn {
    /// One thread at a time may use it.
    handle: Mutex<Handle>,
}

struct Handle(sys::cudnnHandle_t);

// SAFETY: a handle may be used by any thread, one at a time.
unsafe impl Send for Handle {}

impl Dnn {
    /// The library on `gpu`, which has been entered; none where it is missing.
    pub fn on(gpu: &Arc<Gpu>) -> Option<&Dnn> {
        let made = gpu.dnn.get_or_init(|| {
            if std::env::var("CUPOLA_CUDNN").as_deref() == Ok("0") {
                return None;
            }
            library::DNN.load().ok()?;
            Self::new(gpu).map_err(|error| slower("what cuDNN does", &error)).ok()
        });
        made.as_ref()
    }

    fn new(gpu: &Arc<Gpu>) -> Result<Dnn> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library is loaded and a context is current.
        explain(gpu, unsafe { sys::cudnnCreate(&mut handle) })?;
        Ok(Dnn { handle: Mutex::new(Handle(handle)) })
    }

    fn get(gpu: &Arc<Gpu>) -> Result<&Dnn> {
        Self::on(gpu).ok_or_else(|| Error::Unsupported {
            device: gpu.device().to_string(),
            reason: "cuDNN is not there".to_owned(),
        })
    }
}

fn explain(gpu: &Gpu, code: sys::cudnnStatus_t) -> Result<()> {
    match code {
        sys::cudnnStatus_t::CUDNN_STATUS_SUCCESS => Ok(()),
        other => Err(gpu.error(&format!("cuDNN failed: {other:?}"))),
    }
}

/// Something that the library was told.
pub struct Descriptor(sys::cudnnBackendDescriptor_t);

// SAFETY: once finished, descriptors are only read.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once; nothing hangs on the answer.
        let _ = unsafe { sys::cudnnBackendDestroyDescriptor(self.0) };
    }
}

impl Descriptor {
    /// One of a kind, with nothing set.
    pub fn new(gpu: &Gpu, kind: Kind) -> Result<Descriptor> {
        let mut made = std::ptr::null_mut();
        // SAFETY: the place is there.
        explain(gpu, unsafe { sys::cudnnBackendCreateDescriptor(kind, &mut made) })?;
        Ok(Descriptor(made))
    }

    /// Sets an attribute, whose elements are of type `T` in C.
    pub fn set<T>(&self, gpu: &Gpu, name: Name, of: Type, values: &[T]) -> Result<()> {
        let (count, place) = (values.len() as i64, values.as_ptr().cast::<c_void>());
        // SAFETY: as many elements are there; the library copies them.
        explain(gpu, unsafe { sys::cudnnBackendSetAttribute(self.0, name, of, count, place) })
    }

    /// Sets an attribute to another descriptor, which the library copies.
    pub fn point(&self, gpu: &Gpu, name: Name, to: &Descriptor) -> Result<()> {
        self.set(gpu, name, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &[to.0])
    }

    /// Says that all is set.
    pub fn finish(&self, gpu: &Gpu) -> Result<()> {
        // SAFETY: the descriptor is alive.
        explain(gpu, unsafe { sys::cudnnBackendFinalize(self.0) })
    }

    /// Reads an attribute into `values`; says how many elements it has there.
    fn get<T>(&self, gpu: &Gpu, name: Name, of: Type, values: &mut [T]) -> Result<usize> {
        let (room, place) = (values.len() as i64, values.as_mut_ptr().cast::<c_void>());
        let mut count = 0;
        // SAFETY: there is room for as many elements.
        let code =
            unsafe { sys::cudnnBackendGetAttribute(self.0, name, of, room, &mut count, place) };
        explain(gpu, code)?;
        Ok(usize::try_from(count).unwrap_or(0).min(values.len()))
    }
}

/// Where the elements of a tensor are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// In memory of the device, under a number.
    Device(i64),
    /// One number in memory of the host.
    Host(i64),
    /// Nowhere: only the next operation sees them.
    Nowhere,
}

/// A tensor of a graph, by its number among the parts.
#[derive(Clone, Copy, Debug)]
pub struct Tensor(usize);

/// A graph of operations that is written down.
pub struct Operations<'g> {
    gpu: &'g Arc<Gpu>,
    parts: Vec<Descriptor>,
    nodes: Vec<Descriptor>,
}

/// Where numbers of tensors that are nowhere begin.
const NOWHERE: i64 = 1 << 20;

impl<'g> Operations<'g> {
    /// None; the device has been entered.
    pub fn new(gpu: &'g Arc<Gpu>) -> Self {
        Operations { gpu, parts: Vec::new(), nodes: Vec::new() }
    }

    /// How the library names a dtype.
    pub fn data(dtype: DType) -> Data {
        match dtype {
            DType::F16 => Data::CUDNN_DATA_HALF,
            DType::BF16 => Data::CUDNN_DATA_BFLOAT16,
            DType::I32 => Data::CUDNN_DATA_INT32,
            DType::Bool => Data::CUDNN_DATA_BOOLEAN,
            _ => Data::CUDNN_DATA_FLOAT,
        }
    }

    fn keep(&mut self, made: Descriptor) -> Result<Tensor> {
        made.finish(self.gpu)?;
        self.parts.push(made);
        Ok(Tensor(self.parts.len() - 1))
    }

    /// A tensor of four axes with these sizes and steps.
    pub fn tensor(
        &mut self,
        held: Held,
        dtype: DType,
        sizes: [i64; 4],
        steps: [i64; 4],
    ) -> Result<Tensor> {
        let (gpu, int, bool) = (self.gpu, Type::CUDNN_TYPE_INT64, Type::CUDNN_TYPE_BOOLEAN);
        let made = Descriptor::new(gpu, Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
        let data = [Self::data(dtype)];
        made.set(gpu, Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &data)?;
        made.set(gpu, Name::CUDNN_ATTR_TENSOR_DIMENSIONS, int, &sizes)?;
        made.set(gpu, Name::CUDNN_ATTR_TENSOR_STRIDES, int, &steps)?;
        let number = match held {
            Held::Device(number) | Held::Host(number) => number,
            Held::Nowhere => NOWHERE + self.parts.len() as i64,
        };
        made.set(gpu, Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, int, &[number])?;
        made.set(gpu, Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int, &[ALIGNMENT as i64])?;
        match held {
            Held::Device(_) => {}
            Held::Host(_) => made.set(gpu, Name::CUDNN_ATTR_TENSOR_IS_BY_VALUE, bool, &[true])?,
            Held::Nowhere => made.set(gpu, Name::CUDNN_ATTR_TENSOR_IS_VIRTUAL, bool, &[true])?,
        }
        self.keep(made)
    }

    /// A tensor that is nowhere, its elements in the order of its axes.
    pub fn between(&mut self, dtype: DType, sizes: [i64; 4]) -> Result<Tensor> {
        let [_, b, c, d] = sizes;
        self.tensor(Held::Nowhere, dtype, sizes, [b * c * d, c * d, d, 1])
    }

    /// One number that the host gives.
    pub fn number(&mut self, number: i64, dtype: DType) -> Result<Tensor> {
        self.tensor(Held::Host(number), dtype, [1; 4], [1; 4])
    }

    /// Adds an operation with these tensors.
    pub fn add(&mut self, kind: Kind, tensors: &[(Name, Tensor)]) -> Result<()> {
        self.node(kind, None, tensors, |_| Ok(()))
    }

    /// Adds an operation with these tensors, what `of` says of it, and what `more` sets.
    pub fn node(
        &mut self,
        kind: Kind,
        of: Option<(Name, Descriptor)>,
        tensors: &[(Name, Tensor)],
        more: impl FnOnce(&Descriptor) -> Result<()>,
    ) -> Result<()> {
        let gpu = self.gpu;
        let node = Descriptor::new(gpu, kind)?;
        if let Some((name, of)) = of {
            of.finish(gpu)?;
            node.point(gpu, name, &of)?;
            self.parts.push(of);
        }
        for &(name, Tensor(at)) in tensors {
            node.point(gpu, name, &self.parts[at])?;
        }
        more(&node)?;
        node.finish(gpu)?;
        self.nodes.push(node);
        Ok(())
    }

    /// Adds the product of `a` and `b`.
    pub fn product(&mut self, a: Tensor, b: Tensor, to: Tensor) -> Result<()> {
        let of = Descriptor::new(self.gpu, Kind::CUDNN_BACKEND_MATMUL_DESCRIPTOR)?;
        let sums = [Data::CUDNN_DATA_FLOAT];
        of.set(self.gpu, Name::CUDNN_ATTR_MATMUL_COMP_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &sums)?;
        let tensors = [
            (Name::CUDNN_ATTR_OPERATION_MATMUL_ADESC, a),
            (Name::CUDNN_ATTR_OPERATION_MATMUL_BDESC, b),
            (Name::CUDNN_ATTR_OPERATION_MATMUL_CDESC, to),
        ];
        let of = (Name::CUDNN_ATTR_OPERATION_MATMUL_DESC, of);
        self.node(Kind::CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, Some(of), &tensors, |_| Ok(()))
    }

    /// Adds an elementwise operation, computed in `dtype`: of `x`, of `b` where it has one more, where
    /// `t` is if it selects. What it numbers are the places along `axis`.
    pub fn each(
        &mut self,
        mode: Pointwise,
        dtype: DType,
        [x, to]: [Tensor; 2],
        [b, t]: [Option<Tensor>; 2],
        axis: Option<i64>,
    ) -> Result<()> {
        let gpu = self.gpu;
        let of = Descriptor::new(gpu, Kind::CUDNN_BACKEND_POINTWISE_DESCRIPTOR)?;
        let kind = Type::CUDNN_TYPE_POINTWISE_MODE;
        of.set(gpu, Name::CUDNN_ATTR_POINTWISE_MODE, kind, &[mode])?;
        let data = [Self::data(dtype)];
        of.set(gpu, Name::CUDNN_ATTR_POINTWISE_MATH_PREC, Type::CUDNN_TYPE_DATA_TYPE, &data)?;
        if let Some(axis) = axis {
            of.set(gpu, Name::CUDNN_ATTR_POINTWISE_AXIS, Type::CUDNN_TYPE_INT64, &[axis])?;
        }
        let mut tensors = vec![
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x),
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to),
        ];
        tensors.extend(b.map(|b| (Name::CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b)));
        tensors.extend(t.map(|t| (Name::CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t)));
        let of = (Name::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, of);
        let kind = Kind::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
        self.node(kind, Some(of), &tensors, |_| Ok(()))
    }

    /// Adds a reduction of the axes along which `to` has size 1.
    pub fn fold(&mut self, fold: Fold, x: Tensor, to: Tensor) -> Result<()> {
        let gpu = self.gpu;
        let of = Descriptor::new(gpu, Kind::CUDNN_BACKEND_REDUCTION_DESCRIPTOR)?;
        let kind = Type::CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
        of.set(gpu, Name::CUDNN_ATTR_REDUCTION_OPERATOR, kind, &[fold])?;
        let sums = [Data::CUDNN_DATA_FLOAT];
        of.set(gpu, Name::CUDNN_ATTR_REDUCTION_COMP_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &sums)?;
        let tensors = [
            (Name::CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x),
            (Name::CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to),
        ];
        let of = (Name::CUDNN_ATTR_OPERATION_REDUCTION_DESC, of);
        let kind = Kind::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR;
        self.node(kind, Some(of), &tensors, |_| Ok(()))
    }

    /// Adds a reading of `x` in the shape and with the steps of `to`.
    pub fn view(&mut self, x: Tensor, to: Tensor) -> Result<()> {
        let tensors = [
            (Name::CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x),
            (Name::CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to),
        ];
        self.add(Kind::CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, &tensors)
    }

    /// A plan for all of them that needs at most so many bytes while it runs.
    pub fn plan(self, most: usize) -> Result<Plan> {
        let Operations { gpu, mut parts, nodes } = self;
        let handle = lock(&Dnn::get(gpu)?.handle);
        let graph = Descriptor::new(gpu, Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
        let (one, of_handle) = (Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, Type::CUDNN_TYPE_HANDLE);
        let all: Vec<_> = nodes.iter().map(|node| node.0).collect();
        graph.set(gpu, Name::CUDNN_ATTR_OPERATIONGRAPH_OPS, one, &all)?;
        graph.set(gpu, Name::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, of_handle, &[handle.0])?;
        graph.finish(gpu)?;
        parts.extend(nodes);
        for mode in [
            sys::cudnnBackendHeurMode_t::CUDNN_HEUR_MODE_A,
            sys::cudnnBackendHeurMode_t::CUDNN_HEUR_MODE_FALLBACK,
        ] {
            for config in engines(gpu, &graph, mode).unwrap_or_default() {
                if let Ok((plan, workspace)) = plan(gpu, &handle, &config, most) {
                    parts.extend([graph, config]);
                    return Ok(Plan { plan, workspace, _parts: parts });
                }
            }
        }
        Err(gpu.error("cuDNN has no engine for it"))
    }
}

/// Operations that are ready to run.
pub struct Plan {
    plan: Descriptor,
    workspace: usize,
    /// What the plan was made of.
    _parts: Vec<Descriptor>,
}

impl Plan {
    /// How many bytes it needs while it runs.
    pub fn workspace(&self) -> usize {
        self.workspace
    }

    /// Gives the work to a stream, on tensors of these numbers at these places, and as much memory as it
    /// needs; the device has been entered.
    pub fn enqueue(
        &self,
        gpu: &Arc<Gpu>,
        stream: CUstream,
        numbers: &[i64],
        places: &[u64],
        workspace: u64,
    ) -> Result<()> {
        let pack = Descriptor::new(gpu, Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
        let (pointer, number) = (Type::CUDNN_TYPE_VOID_PTR, Type::CUDNN_TYPE_INT64);
        pack.set(gpu, Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, number, numbers)?;
        pack.set(gpu, Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointer, places)?;
        pack.set(gpu, Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, pointer, &[workspace])?;
        pack.finish(gpu)?;
        let handle = lock(&Dnn::get(gpu)?.handle);
        // SAFETY: the handle is this call's while it is locked, and the stream is the device's.
        explain(gpu, unsafe { sys::cudnnSetStream(handle.0, stream.cast()) })?;
        // SAFETY: the plan fits the regions, which the planner has laid out so and whose alignment
        // was looked at before.
        explain(gpu, unsafe { sys::cudnnBackendExecute(handle.0, self.plan.0, pack.0) })
    }
}

/// The engines that the library names for a graph, the best first, but for those that are refused.
fn engines(
    gpu: &Gpu,
    graph: &Descriptor,
    mode: sys::cudnnBackendHeurMode_t,
) -> Result<Vec<Descriptor>> {
    let one = Type::CUDNN_TYPE_BACKEND_DESCRIPTOR;
    let search = Descriptor::new(gpu, Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?;
    search.point(gpu, Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)?;
    search.set(gpu, Name::CUDNN_ATTR_ENGINEHEUR_MODE, Type::CUDNN_TYPE_HEUR_MODE, &[mode])?;
    search.finish(gpu)?;
    let mut configs = (0..ENGINES)
        .map(|_| Descriptor::new(gpu, Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))
        .collect::<Result<Vec<_>>>()?;
    let mut places: Vec<_> = configs.iter().map(|config| config.0).collect();
    let count = search.get(gpu, Name::CUDNN_ATTR_ENGINEHEUR_RESULTS, one, &mut places)?;
    configs.truncate(count);
    configs.retain(|config| is_welcome(gpu, config).unwrap_or(false));
    Ok(configs)
}

fn is_welcome(gpu: &Gpu, config: &Descriptor) -> Result<bool> {
    let engine = Descriptor::new(gpu, Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR)?;
    let one = Type::CUDNN_TYPE_BACKEND_DESCRIPTOR;
    config.get(gpu, Name::CUDNN_ATTR_ENGINECFG_ENGINE, one, &mut [engine.0])?;
    // Numbers, since a later library has notes that this does not know.
    let mut notes = [0_u32; 64];
    let note = Type::CUDNN_TYPE_NUMERICAL_NOTE;
    let count = engine.get(gpu, Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, note, &mut notes)?;
    Ok(is_exact(&notes[..count]))
}

/// Whether an engine with these notes does nothing that is refused.
fn is_exact(notes: &[u32]) -> bool {
    notes.iter().all(|note| REFUSED.iter().all(|&refused| refused as u32 != *note))
}

/// A plan by the engine of `config`, and how many bytes it needs, if these are at most `most`.
fn plan(
    gpu: &Gpu,
    handle: &Handle,
    config: &Descriptor,
    most: usize,
) -> Result<(Descriptor, usize)> {
    let plan = Descriptor::new(gpu, Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
    plan.set(gpu, Name::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Type::CUDNN_TYPE_HANDLE, &[handle.0])?;
    plan.point(gpu, Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)?;
    plan.finish(gpu)?;
    let mut bytes = [0_i64];
    let name = Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE;
    plan.get(gpu, name, Type::CUDNN_TYPE_INT64, &mut bytes)?;
    match usize::try_from(bytes[0]) {
        Ok(bytes) if bytes <= most => Ok((plan, bytes)),
        _ => Err(gpu.error("it needs too much memory")),
    }
}

#[cfg(test)]
mod tests {
    use super::is_exact;

    #[test]
    fn engines_repeat_their_results() {
        // On matrix units, with factors rounded for them.
        assert!(is_exact(&[0, 1]) && is_exact(&[]));
        // Of a later library.
        assert!(is_exact(&[0, 99]));
        assert!(!is_exact(&[0, 4]) && !is_exact(&[2]) && !is_exact(&[5, 6]));
    }
}
