//! Convolutions through cuDNN, each a graph of one node.

use std::sync::Arc;

use cudarc::cudnn::sys::{
    self, cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type,
    cudnnBackendDescriptorType_t as Kind,
};
use cudarc::driver::sys::CUstream;
use cupola_core::Result;
use cupola_core::prim::ConvRole;

use super::commands::Library;
use super::dnn::{Descriptor, Held, Operations, Plan};
use super::geometry::Geometry;
use super::gpu::Gpu;
use super::lane::WORKSPACE;

/// A convolution that is ready to run.
pub struct PreparedConvolution {
    /// The numbers of the inputs and the output.
    numbers: [i64; 3],
    plan: Plan,
}

impl PreparedConvolution {
    /// Prepares a convolution; the device has been entered. Fails where the library has no way to
    /// compute it.
    pub fn new(gpu: &Arc<Gpu>, geometry: &Geometry) -> Result<Self> {
        let plan = operations(gpu, geometry)?.plan(WORKSPACE)?;
        gpu.workspace()?;
        let numbers = geometry.order().map(|tensor| tensor as i64 + 1);
        Ok(PreparedConvolution { numbers, plan })
    }
}

impl Library for PreparedConvolution {
    fn enqueue(&self, gpu: &Arc<Gpu>, stream: CUstream, places: &[u64]) -> Result<()> {
        self.plan.enqueue(gpu, stream, &self.numbers, places, gpu.workspace()?)
    }
}

/// How a role is spelt: its operation, and the attributes for convolution, x, w, y and the two
/// factors.
fn spelling(role: ConvRole) -> (Kind, [Name; 6]) {
    match role {
        ConvRole::Forward => (
            Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            ],
        ),
        ConvRole::InputGrad => (
            Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            ],
        ),
        ConvRole::WeightGrad => (
            Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            ],
        ),
    }
}

/// The convolution as a graph of one node.
fn operations<'g>(gpu: &'g Arc<Gpu>, geometry: &Geometry) -> Result<Operations<'g>> {
    let conv = Descriptor::new(gpu, Kind::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?;
    let int = Type::CUDNN_TYPE_INT64;
    let sums = [sys::cudnnDataType_t::CUDNN_DATA_FLOAT];
    let mode = [sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION];
    conv.set(gpu, Name::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Type::CUDNN_TYPE_DATA_TYPE, &sums)?;
    conv.set(
        gpu,
        Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE,
        Type::CUDNN_TYPE_CONVOLUTION_MODE,
        &mode,
    )?;
    conv.set(gpu, Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int, &[2_i64])?;
    for (name, values) in [
        (Name::CUDNN_ATTR_CONVOLUTION_DILATIONS, &geometry.dilation),
        (Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, &geometry.stride),
        (Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &geometry.padding),
        (Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &geometry.padding),
    ] {
        conv.set(gpu, name, int, values)?;
    }
    let mut operations = Operations::new(gpu);
    let (kind, [conv_name, x, w, y, alpha, beta]) = spelling(geometry.role);
    let mut tensors = Vec::new();
    for (number, (name, shape)) in (1..).zip([x, w, y].into_iter().zip(&geometry.tensors)) {
        let held = Held::Device(number);
        tensors.push((name, operations.tensor(held, geometry.dtype, shape.sizes, shape.steps)?));
    }
    operations.node(kind, Some((conv_name, conv)), &tensors, |node| {
        node.set(gpu, alpha, Type::CUDNN_TYPE_FLOAT, &[1.0_f32])?;
        node.set(gpu, beta, Type::CUDNN_TYPE_FLOAT, &[0.0_f32])
    })?;
    Ok(operations)
}
