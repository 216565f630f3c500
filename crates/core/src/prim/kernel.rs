//! Primitives that run as kernels of their own.

#![deny(clippy::wildcard_enum_match_arm)]

use smallvec::{SmallVec, smallvec};

use super::{
    ArgReduce, Bitcast, Conv, Dot, Facts, Fft, Gather, GatherAxis, Iota, Linalg, Op, Pool,
    Primitive, RandomBits, Scan, Scatter, ScatterAxis, Sort,
};
use crate::shape::Aval;

/// A primitive that a backend has a kernel for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum KernelOp {
    /// 0, 1, 2, … along an axis.
    Iota(Iota),
    /// The same bytes as another dtype.
    Bitcast(Bitcast),
    /// Where an axis has its extreme value.
    ArgReduce(ArgReduce),
    /// An axis folded up to each of its elements.
    Scan(Scan),
    /// Slices at computed places.
    Gather(Gather),
    /// Slices put at computed places.
    Scatter(Scatter),
    /// Elements along one axis at computed places.
    GatherAxis(GatherAxis),
    /// Elements put along one axis at computed places.
    ScatterAxis(ScatterAxis),
    /// A batched matrix product.
    Dot(Dot),
    /// A convolution or one of its gradients.
    Conv(Box<Conv>),
    /// A pooling or one of its gradients.
    Pool(Box<Pool>),
    /// Random bits from a key.
    RandomBits(RandomBits),
    /// Elements of an axis in order.
    Sort(Sort),
    /// A discrete Fourier transform.
    Fft(Fft),
    /// A factorization of matrices, or equations.
    Linalg(Linalg),
}

/// Runs `$body` with `$p` bound to the payload of the [`KernelOp`] `$op`.
#[macro_export]
#[doc(hidden)]
macro_rules! with_kernel_payload {
    ($op:expr, $p:ident => $body:expr) => {
        match $op {
            $crate::prim::KernelOp::Iota($p) => $body,
            $crate::prim::KernelOp::Bitcast($p) => $body,
            $crate::prim::KernelOp::ArgReduce($p) => $body,
            $crate::prim::KernelOp::Scan($p) => $body,
            $crate::prim::KernelOp::Gather($p) => $body,
            $crate::prim::KernelOp::Scatter($p) => $body,
            $crate::prim::KernelOp::GatherAxis($p) => $body,
            $crate::prim::KernelOp::ScatterAxis($p) => $body,
            $crate::prim::KernelOp::Dot($p) => $body,
            $crate::prim::KernelOp::Conv($p) => {
                let $p = &**$p;
                $body
            }
            $crate::prim::KernelOp::Pool($p) => {
                let $p = &**$p;
                $body
            }
            $crate::prim::KernelOp::RandomBits($p) => $body,
            $crate::prim::KernelOp::Sort($p) => $body,
            $crate::prim::KernelOp::Fft($p) => $body,
            $crate::prim::KernelOp::Linalg($p) => $body,
        }
    };
}

impl KernelOp {
    /// The name in errors and plans.
    pub fn name(&self) -> &'static str {
        with_kernel_payload!(self, p => Primitive::name(p))
    }

    /// The inputs that are checked when it runs, because they are indices: which, and below what each
    /// element has to be.
    pub(crate) fn index_bounds(&self, inputs: &[&Aval]) -> SmallVec<[(usize, usize); 2]> {
        match self {
            KernelOp::Gather(gather) => gather.index_bounds(inputs),
            KernelOp::Scatter(scatter) => scatter.index_bounds(inputs),
            KernelOp::GatherAxis(gather) => smallvec![(1, inputs[0].shape[gather.axis])],
            KernelOp::ScatterAxis(scatter) => smallvec![(2, inputs[0].shape[scatter.axis])],
            KernelOp::Iota(_)
            | KernelOp::Bitcast(_)
            | KernelOp::ArgReduce(_)
            | KernelOp::Scan(_)
            | KernelOp::Dot(_)
            | KernelOp::Conv(_)
            | KernelOp::Pool(_)
            | KernelOp::RandomBits(_)
            | KernelOp::Sort(_)
            | KernelOp::Fft(_)
            | KernelOp::Linalg(_) => SmallVec::new(),
        }
    }

    /// About how many arithmetic operations it takes.
    pub(crate) fn operations(&self, inputs: &[&Aval], outputs: &[&Aval]) -> f64 {
        with_kernel_payload!(self, p => p.operations(inputs, outputs))
    }

    /// What the planner and the transforms must know of the primitive.
    pub fn facts(&self) -> Facts<'_> {
        with_kernel_payload!(self, p => p.facts())
    }
}

/// Wraps a payload as a [`KernelOp`] and as an [`Op`].
macro_rules! into_kernel {
    ($($type:ident $(in $wrap:path)?;)*) => {$(
        impl From<$type> for KernelOp {
            fn from(payload: $type) -> KernelOp {
                KernelOp::$type($($wrap)?(payload))
            }
        }

        impl From<$type> for Op {
            fn from(payload: $type) -> Op {
                Op::Kernel(payload.into())
            }
        }
    )*};
}

into_kernel! {
    Iota;
    Bitcast;
    ArgReduce;
    Scan;
    Gather;
    Scatter;
    GatherAxis;
    ScatterAxis;
    Dot;
    Conv in Box::new;
    Pool in Box::new;
    RandomBits;
    Sort;
    Fft;
    Linalg;
}
