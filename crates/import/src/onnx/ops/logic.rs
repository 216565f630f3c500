//! Comparisons, logic and selection.

use super::binary::pair;
use super::prelude::*;

macro_rules! compare {
    ($($f:ident => $op:path;)*) => {$(
        fn $f(n: &Node<'_>) -> Outcome {
            let (a, b) = pair(n)?;
            one($op(&a, &b)?)
        }
    )*};
}

compare! {
    and => ops::logical_and;
    or => ops::logical_or;
    xor => ops::logical_xor;
    equal => ops::equal;
    greater => ops::greater;
    greater_equal => ops::greater_equal;
    less => ops::less;
    less_equal => ops::less_equal;
}

fn where_(n: &Node<'_>) -> Outcome {
    n.like(ops::where_(n.x(0)?, n.x(1)?, n.x(2)?)?, 1)
}

pub const OPS: &[Entry] = &[
    ("And", 1, and),
    ("Equal", 1, equal),
    ("Greater", 1, greater),
    ("GreaterOrEqual", 12, greater_equal),
    ("Less", 1, less),
    ("LessOrEqual", 12, less_equal),
    ("Or", 1, or),
    ("Where", 9, where_),
    ("Xor", 1, xor),
];
