//! Fourier transforms through cuFFT.

use std::sync::{Arc, Mutex, OnceLock};

use cudarc::cufft::sys::{self, cufftType as Type};
use cudarc::driver::sys::CUstream;
use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Fft, FftKind};
use cupola_core::{Result, is_row_major};

use super::commands::Library;
use super::gpu::{Gpu, lock};
use super::library;
use crate::kernels::fft;
use crate::kernels::view::Axes;

/// The most axes that the library transforms at once.
const AXES: usize = 3;
/// Elements of the smallest transform that is worth it: for a size that it has not seen the library takes about a
/// tenth of a second to load its kernels, and up to here ours take no more than 50 µs.
const LARGE: usize = 1 << 22;
/// So many times as long ours take where a size has a large prime factor: three transforms of more than twice the size.
const CONVOLVED: usize = 8;
/// The exponent's sign of e^(−2πi·jk/n), and of its inverse.
const FORWARD: i32 = -1;
const INVERSE: i32 = 1;

/// A transform as the library takes it: a batch of neighbouring axes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transform {
    kind: FftKind,
    /// The sizes in the time domain.
    sizes: Vec<i64>,
    input: Layout,
    output: Layout,
    batch: i64,
}

/// How an operand lies: element i, j, k of transform b at `b·apart + ((i·whole[1] + j)·whole[2] + k)·step`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Layout {
    whole: Vec<i64>,
    step: i64,
    apart: i64,
}

impl Transform {
    /// What `op` of a segment is for the library, where it has a way to take it. From half a spectrum it may write
    /// over what it reads, and reads imaginary parts that count for nothing; those are left to a kernel.
    pub fn of(op: &Fft, segment: &Segment) -> Option<Transform> {
        let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
        let mut axes = op.axes.to_vec();
        axes.sort_unstable();
        let (first, last) = (*axes.first()?, *axes.last()?);
        let is_half = matches!(op.kind, FftKind::HalfComplex { .. });
        if is_half || axes.len() > AXES || last - first + 1 != axes.len() {
            return None;
        }
        if x.aval.shape.size() == 0 || !is_row_major(&out.aval.shape, &out.strides) {
            return None;
        }
        let others = |all: &[isize]| -> Vec<isize> { [&all[..first], &all[last + 1..]].concat() };
        let shape = &x.aval.shape;
        let sizes = [&shape[..first], &shape[last + 1..]].concat();
        let batch = Axes::joined(&sizes, &[&others(&x.strides), &others(&out.strides)]);
        let apart: [isize; 2] = match (&batch.sizes[..], &batch.strides[..]) {
            ([], _) => [1, 1],
            ([_], [from, to]) => [from[0], to[0]],
            _ => return None,
        };
        let layout = |operand: &Operand, apart: isize| {
            let steps = &operand.strides[first..=last];
            let mut whole = vec![1];
            for pair in steps.windows(2) {
                let times = pair[0].checked_div(pair[1]).filter(|t| t * pair[1] == pair[0])?;
                whole.push(times as i64);
            }
            let step = steps[steps.len() - 1];
            let is_taken = step > 0 && apart > 0 && whole.iter().all(|&times| times > 0);
            is_taken.then_some(Layout { whole, step: step as i64, apart: apart as i64 })
        };
        Some(Transform {
            kind: op.kind,
            sizes: shape[first..=last].iter().map(|&size| size as i64).collect(),
            input: layout(x, apart[0])?,
            output: layout(out, apart[1])?,
            batch: batch.count() as i64,
        })
    }

    /// Whether the library is to do it: it is there, and that is worth it, or as `CUPOLA_CUFFT` in the environment says:
    /// with 0 it never is, with 1 always.
    pub fn is_wanted(&self, elements: usize) -> bool {
        static LEAST: OnceLock<usize> = OnceLock::new();
        let least = LEAST.get_or_init(|| match std::env::var("CUPOLA_CUFFT").as_deref() {
            Ok("0") => usize::MAX,
            Ok("1") => 0,
            _ => LARGE,
        });
        let are_direct = self.sizes.iter().all(|&size| fft::is_direct(size as usize));
        let work = if are_direct { elements } else { elements.saturating_mul(CONVOLVED) };
        work >= *least && library::TRANSFORMS.load().is_ok()
    }
}

/// A transform that is ready to run. Its last region is memory that it needs meanwhile.
pub struct PreparedTransform {
    kind: FftKind,
    /// One thread at a time may use it.
    plan: Mutex<Plan>,
    workspace: usize,
}

struct Plan(sys::cufftHandle);

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: the plan was made, and nobody uses it any more.
        unsafe { sys::cufftDestroy(self.0) };
    }
}

impl PreparedTransform {
    /// Prepares a transform; the library is loaded, and the device has been entered.
    pub fn new(gpu: &Gpu, transform: &Transform) -> Result<Self> {
        let Transform { kind, sizes, input, output, batch } = transform;
        let mut sizes = sizes.clone();
        let [mut from, mut to] = [input, output].map(|layout| layout.whole.clone());
        let name = match kind {
            FftKind::Real => Type::CUFFT_R2C,
            FftKind::Forward | FftKind::Inverse | FftKind::HalfComplex { .. } => Type::CUFFT_C2C,
        };
        let (mut handle, mut workspace) = (0, 0);
        // SAFETY: the library is loaded, a context is current, and the places are there.
        let plan = unsafe {
            explain(gpu, sys::cufftCreate(&mut handle))?;
            let plan = Plan(handle);
            explain(gpu, sys::cufftSetAutoAllocation(handle, 0))?;
            let made = sys::cufftMakePlanMany64(
                handle,
                sizes.len() as i32,
                sizes.as_mut_ptr(),
                from.as_mut_ptr(),
                input.step,
                input.apart,
                to.as_mut_ptr(),
                output.step,
                output.apart,
                name,
                *batch,
                &mut workspace,
            );
            explain(gpu, made)?;
            plan
        };
        Ok(PreparedTransform { kind: *kind, plan: Mutex::new(plan), workspace })
    }

    /// How many bytes of the device's memory it needs.
    pub fn workspace(&self) -> usize {
        self.workspace
    }
}

impl Library for PreparedTransform {
    fn enqueue(&self, gpu: &Arc<Gpu>, stream: CUstream, places: &[u64]) -> Result<()> {
        let [from, to, workspace] = [places[0], places[1], places[2]];
        let plan = lock(&self.plan);
        // SAFETY: the regions have what the layouts say, and `workspace` the bytes that the library asked for.
        unsafe {
            explain(gpu, sys::cufftSetStream(plan.0, stream.cast()))?;
            if self.workspace > 0 {
                explain(gpu, sys::cufftSetWorkArea(plan.0, workspace as *mut _))?;
            }
            let complex = |sign| sys::cufftExecC2C(plan.0, from as *mut _, to as *mut _, sign);
            let done = match self.kind {
                FftKind::Real => sys::cufftExecR2C(plan.0, from as *mut _, to as *mut _),
                FftKind::Forward => complex(FORWARD),
                FftKind::Inverse | FftKind::HalfComplex { .. } => complex(INVERSE),
            };
            explain(gpu, done)
        }
    }
}

fn explain(gpu: &Gpu, code: sys::cufftResult) -> Result<()> {
    match code {
        sys::cufftResult::CUFFT_SUCCESS => Ok(()),
        other => Err(gpu.error(&format!("a Fourier transform failed: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use cupola_core::backend::Kernel;
    use cupola_core::prim::{FftScale, KernelOp};
    use cupola_core::{Aval, Shape};

    use super::*;

    fn transform(
        kind: FftKind,
        axes: &[usize],
        shape: &[usize],
        strides: &[isize],
    ) -> Option<Transform> {
        let op = Fft { kind, axes: axes.iter().copied().collect(), scale: FftScale::One };
        let (from, to) = kind.dtypes();
        let aval = |dtype| Aval { shape: Shape::from(shape), dtype };
        let segment = Segment {
            kernel: Kernel::Op(KernelOp::Fft(op.clone())),
            inputs: vec![Operand { aval: aval(from), strides: strides.into() }],
            outputs: vec![Operand::contiguous(&aval(to))],
            scalars: Vec::new(),
            epilogue: None,
        };
        Transform::of(&op, &segment)
    }

    #[test]
    fn what_the_library_takes() {
        let found = transform(FftKind::Forward, &[2, 1], &[4, 6, 8], &[48, 8, 1]).unwrap();
        assert_eq!((found.batch, &found.sizes[..]), (4, &[6, 8][..]));
        assert_eq!((found.input.apart, &found.input.whole[..]), (48, &[1, 8][..]));
        // Columns, which lie in a larger array.
        let found = transform(FftKind::Inverse, &[0], &[4, 6], &[20, 2]).unwrap();
        assert_eq!((found.batch, found.input.step, found.input.apart), (6, 20, 2));
        assert_eq!((found.output.step, found.output.apart), (6, 1));
        let found = transform(FftKind::Forward, &[0], &[4], &[3]).unwrap();
        assert_eq!((found.batch, found.input.step), (1, 3));
        let none = [
            transform(FftKind::Forward, &[1], &[4, 6, 8], &[48, 8, 1]),
            transform(FftKind::Forward, &[0, 2], &[4, 6, 8], &[48, 8, 1]),
            transform(FftKind::Forward, &[0], &[4], &[-1]),
            transform(FftKind::Forward, &[1], &[4, 6], &[0, 1]),
            transform(FftKind::HalfComplex { odd: false }, &[0], &[4], &[1]),
            transform(FftKind::Forward, &[0], &[0], &[1]),
        ];
        assert!(none.iter().all(Option::is_none), "{none:?}");
    }
}
