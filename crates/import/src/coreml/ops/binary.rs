//! Arithmetic, comparisons and choices.

use super::prelude::*;

macro_rules! binary {
    ($($f:ident => $op:path;)*) => {$(
        fn $f(n: &Node<'_>) -> Outcome {
            one($op(n.x("x")?, n.x("y")?)?)
        }
    )*};
}

binary! {
    add => ops::add;
    equal => ops::equal;
    floor_div => ops::floor_divide;
    greater => ops::greater;
    greater_equal => ops::greater_equal;
    less => ops::less;
    less_equal => ops::less_equal;
    logical_and => ops::logical_and;
    logical_or => ops::logical_or;
    logical_xor => ops::logical_xor;
    maximum => ops::maximum;
    minimum => ops::minimum;
    modulo => ops::remainder;
    multiply => ops::multiply;
    not_equal => ops::not_equal;
    power => ops::power;
    subtract => ops::subtract;
}

/// x/y; of integers what is before the point.
fn real_div(n: &Node<'_>) -> Outcome {
    one(crate::lowering::arithmetic::quotient(n.x("x")?, n.x("y")?)?)
}

fn select(n: &Node<'_>) -> Outcome {
    let condition = ops::astype(n.x("cond")?, DType::Bool)?;
    match (n.maybe("a")?, n.maybe("b")?) {
        (Some(a), Some(b)) => one(ops::where_(&condition, a, b)?),
        (None, None) => one(ops::argwhere(&condition)?),
        _ => Err(Fault::invalid("one of the arguments 'a' and 'b' is missing")),
    }
}

pub const OPS: &[Entry] = &[
    ("add", add),
    ("equal", equal),
    ("floor_div", floor_div),
    ("greater", greater),
    ("greater_equal", greater_equal),
    ("less", less),
    ("less_equal", less_equal),
    ("logical_and", logical_and),
    ("logical_or", logical_or),
    ("logical_xor", logical_xor),
    ("maximum", maximum),
    ("minimum", minimum),
    ("mod", modulo),
    ("mul", multiply),
    ("not_equal", not_equal),
    ("pow", power),
    ("real_div", real_div),
    ("select", select),
    ("sub", subtract),
];
