//! The families of primitives, as the suite reports them.

use cupola_core::prim::Op;

/// A family of primitives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Constants and counters.
    Create,
    /// One operand, element by element.
    Unary,
    /// Two operands, element by element.
    Binary,
    /// Comparisons.
    Compare,
    /// Selection by a condition.
    Select,
    /// Conversions between dtypes.
    Cast,
    /// Identities with a meaning.
    Mark,
    /// Views, joins and pads.
    Movement,
    /// Reductions.
    Reduce,
    /// Indices of extremes.
    ArgReduce,
    /// Running folds.
    Scan,
    /// Reading and writing at computed places.
    Gather,
    /// Matrix products.
    Dot,
    /// Convolutions and their gradients.
    Conv,
    /// Pooling and its gradients.
    Pool,
    /// Random bits.
    Random,
    /// Sorting.
    Sort,
    /// Composites and users' operators.
    Call,
}

impl Family {
    /// Every family, in the order of the report.
    pub const ALL: [Family; 18] = [
        Family::Create,
        Family::Unary,
        Family::Binary,
        Family::Compare,
        Family::Select,
        Family::Cast,
        Family::Mark,
        Family::Movement,
        Family::Reduce,
        Family::ArgReduce,
        Family::Scan,
        Family::Gather,
        Family::Dot,
        Family::Conv,
        Family::Pool,
        Family::Random,
        Family::Sort,
        Family::Call,
    ];

    /// The family of `op`. Without a wildcard, so that a new primitive does not compile until it
    /// belongs to a family, and the family's samples must name it.
    pub fn of(op: &Op) -> Family {
        match op {
            Op::Input(_) | Op::Constant(_) | Op::Iota(_) => Family::Create,
            Op::Unary(_) => Family::Unary,
            Op::Binary(_) => Family::Binary,
            Op::Compare(_) => Family::Compare,
            Op::Select(_) => Family::Select,
            Op::Cast(_) | Op::Bitcast(_) => Family::Cast,
            Op::Mark(_) => Family::Mark,
            Op::Movement(_) => Family::Movement,
            Op::Reduce(_) => Family::Reduce,
            Op::ArgReduce(_) => Family::ArgReduce,
            Op::Scan(_) => Family::Scan,
            Op::Gather(_) | Op::Scatter(_) | Op::GatherAxis(_) | Op::ScatterAxis(_) => {
                Family::Gather
            }
            Op::Dot(_) => Family::Dot,
            Op::Conv(_) => Family::Conv,
            Op::Pool(_) => Family::Pool,
            Op::RandomBits(_) => Family::Random,
            Op::Sort(_) => Family::Sort,
            Op::Call(_) | Op::Custom(_) => Family::Call,
        }
    }

    /// The name in reports and filters.
    pub fn name(self) -> &'static str {
        match self {
            Family::Create => "create",
            Family::Unary => "unary",
            Family::Binary => "binary",
            Family::Compare => "compare",
            Family::Select => "select",
            Family::Cast => "cast",
            Family::Mark => "mark",
            Family::Movement => "movement",
            Family::Reduce => "reduce",
            Family::ArgReduce => "arg_reduce",
            Family::Scan => "scan",
            Family::Gather => "gather",
            Family::Dot => "dot",
            Family::Conv => "conv",
            Family::Pool => "pool",
            Family::Random => "random",
            Family::Sort => "sort",
            Family::Call => "call",
        }
    }
}
