//! The families of primitives, as the suite reports them.

#![deny(clippy::wildcard_enum_match_arm)]

use cupola_core::prim::{Composite, Elementwise, KernelOp, Op};

use crate::sample::Sample;

macro_rules! families {
    ($d:tt $($variant:ident $name:ident $doc:literal;)*) => {
        /// A family of primitives.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Family {
            $(#[doc = $doc] $variant,)*
        }

        impl Family {
            /// Every family, in the order of the report.
            pub const ALL: &[Family] = &[$(Family::$variant),*];

            /// The name in reports and filters.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Family::$variant => stringify!($name),)*
                }
            }

            /// Its samples: those of the file of its name.
            pub fn samples(self) -> Vec<Sample> {
                match self {
                    $(Family::$variant => crate::$name::samples(),)*
                }
            }
        }

        /// Writes a test for each family, which calls a function with it.
        #[macro_export]
        macro_rules! tests {
            ($d check:path) => {
                $(
                    #[test]
                    fn $name() {
                        $d check($d crate::Family::$variant);
                    }
                )*
            };
        }
    };
}

families! { $
    Create create "Constants and counters.";
    Unary unary "One operand, element by element.";
    Binary binary "Two operands, element by element.";
    Compare compare "Comparisons.";
    Select select "Selection by a condition.";
    Cast cast "Conversions between dtypes.";
    Mark mark "Identities with a meaning.";
    Movement movement "Views, joins and pads.";
    Reduce reduce "Reductions.";
    ArgReduce arg_reduce "Indices of extremes.";
    Scan scan "Running folds.";
    Gather gather "Reading and writing at computed places.";
    Dot dot "Matrix products.";
    Conv conv "Convolutions and their gradients.";
    Pool pool "Pooling and its gradients.";
    Random random "Random bits.";
    Sort sort "Sorting.";
    Fft fft "Fourier transforms.";
    Linalg linalg "Factorizations of matrices, and equations.";
    Attention attention "Attention and its gradient.";
    Norm norm "Normalization.";
    Quantized quantized "Products with quantized matrices.";
    Control control "Loops and branches.";
    Call call "Traced functions and users' operators.";
    Functions functions "Functions that are made of primitives.";
}

impl Family {
    /// Whether samples of `op` may be in it. Functions are composites of what they record.
    pub fn has(self, op: &Op) -> bool {
        self == Family::of(op) || self == Family::Functions && matches!(op, Op::Call(_))
    }

    /// The family of `op`. Without a wildcard, so that a new primitive does not compile until it
    /// belongs to a family, and the family's samples must name it.
    pub fn of(op: &Op) -> Family {
        match op {
            Op::Input(_) | Op::Constant(_) => Family::Create,
            Op::Movement(_) => Family::Movement,
            Op::Mark(_) => Family::Mark,
            Op::Elementwise(op) => match op {
                Elementwise::Unary(_) => Family::Unary,
                Elementwise::Binary(_) => Family::Binary,
                Elementwise::Compare(_) => Family::Compare,
                Elementwise::Select(_) => Family::Select,
                Elementwise::Cast(_) => Family::Cast,
            },
            Op::Reduce(_) => Family::Reduce,
            Op::Kernel(op) => match op {
                KernelOp::Iota(_) => Family::Create,
                KernelOp::Bitcast(_) => Family::Cast,
                KernelOp::ArgReduce(_) => Family::ArgReduce,
                KernelOp::Scan(_) => Family::Scan,
                KernelOp::Gather(_)
                | KernelOp::Scatter(_)
                | KernelOp::GatherAxis(_)
                | KernelOp::ScatterAxis(_) => Family::Gather,
                KernelOp::Dot(_) => Family::Dot,
                KernelOp::Conv(_) => Family::Conv,
                KernelOp::Pool(_) => Family::Pool,
                KernelOp::RandomBits(_) => Family::Random,
                KernelOp::Sort(_) => Family::Sort,
                KernelOp::Fft(_) => Family::Fft,
                KernelOp::Linalg(_) => Family::Linalg,
            },
            Op::Composite(composite) => match composite {
                Composite::Attention(_) | Composite::AttentionGrad(_) => Family::Attention,
                Composite::BatchNorm(_) => Family::Norm,
                Composite::QuantizedDot(_) => Family::Quantized,
            },
            Op::Call(_) | Op::Custom(_) => Family::Call,
            Op::Control(_) => Family::Control,
        }
    }
}
