//! The typed tree of a kernel.

use crate::error::Pos;
use crate::types::{Scalar, Ty};

/// A kernel, read and checked for the types of its arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Inputs, then outputs.
    pub arrays: Vec<Access>,
    /// How many of these are inputs.
    pub inputs: usize,
    /// Variables of a thread, those of functions included.
    pub variables: Vec<Variable>,
    /// Arrays of a thread.
    pub locals: Vec<Memory>,
    /// Arrays of a threadgroup.
    pub shared: Vec<Memory>,
    /// Functions, each of which calls only those before it.
    pub functions: Vec<Function>,
    /// What every thread runs.
    pub body: Vec<Stmt>,
    /// Whether threads of a group wait for each other.
    pub has_barriers: bool,
}

/// An array of the kernel, and what is done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Its name.
    pub name: String,
    /// Its elements.
    pub scalar: Scalar,
    /// Its number of axes.
    pub rank: usize,
    /// Whether its elements are changed atomically.
    pub is_atomic: bool,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub scalar: Scalar,
    /// Whether it keeps its first value.
    pub is_constant: bool,
}

/// An array of a thread or of a threadgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its name.
    pub name: String,
    /// Its elements.
    pub scalar: Scalar,
    /// How many there are.
    pub len: u32,
}

/// A function of the header, or of the library.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The variables that take its arguments.
    pub parameters: Vec<usize>,
    /// The variable that holds its result, if it has one.
    pub result: Option<usize>,
    /// What it runs.
    pub body: Vec<Stmt>,
}

/// What can be read and changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A variable.
    Variable(usize),
    /// An element of an input or output.
    Array(usize, Box<Expr>),
    /// An element of an array of the thread.
    Local(usize, Box<Expr>),
    /// An element of an array of the threadgroup.
    Shared(usize, Box<Expr>),
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its type.
    pub ty: Ty,
    /// What gives it.
    pub kind: Kind,
    /// Where it stands.
    pub at: Pos,
}

/// An axis of the grid.
pub type Axis = usize;

/// What gives a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A literal, by its bits.
    Literal(u64),
    /// What a place holds, in its register's type.
    Load(Place),
    /// A number of the launch.
    Builtin(Builtin, Axis),
    /// The length of an array along an axis.
    Shape(usize, Box<Expr>),
    /// The elements between neighbours of an array along an axis.
    Stride(usize, Box<Expr>),
    /// Where the element of that number is in an array: by its shape and its strides.
    Location(usize, Box<Expr>),
    /// A function of one value of the same type.
    Unary(Unary, Box<Expr>),
    /// A function of two values of the same type; shifts go by a `uint`.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// A comparison of two values of one type.
    Compare(Compare, Box<Expr>, Box<Expr>),
    /// Both; the second is computed only if the first holds.
    And(Box<Expr>, Box<Expr>),
    /// Either; the second is computed only if the first does not hold.
    Or(Box<Expr>, Box<Expr>),
    /// The second if the first holds, else the third.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Another type's value, in the register of an element: of a float what the element holds.
    Convert(Scalar, Box<Expr>),
    /// The same bits in another type.
    Bits(Box<Expr>),
    /// Rounded, or wrapped, to what an element holds.
    Narrow(Scalar, Box<Expr>),
    /// A function of floats.
    Math(Math, Vec<Expr>),
    /// Changes a place to a value of its register's type; gives the value, or what was there before.
    Assign {
        /// What is changed.
        place: Place,
        /// What it takes: of what it held, if there is an operation.
        value: Box<Expr>,
        /// Combines what it held with the value; both are converted to the operation's type first.
        operation: Option<(Binary, Ty)>,
        /// Whether what was there before is given.
        gives_old: bool,
    },
    /// Changes an element while no other thread does; gives what was there before.
    Atomic(Atomic, Place, Box<Expr>),
    /// Changes an element that has the bits of the first value to the second, while no other thread changes it; gives
    /// what was there before.
    Swap(Place, Box<Expr>, Box<Expr>),
    /// A function of the header, or of the library.
    Call(usize, Vec<Expr>),
}

/// A number of the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// The thread in the grid.
    Thread,
    /// The thread in its threadgroup.
    Local,
    /// The threadgroup.
    Group,
    /// Threads of a threadgroup.
    GroupSize,
    /// Threads of the grid.
    Grid,
    /// Threadgroups of the grid.
    Groups,
    /// The thread in its threadgroup, counted through.
    Index,
}

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// −x.
    Negate,
    /// Not, of a bool.
    Not,
    /// Every bit turned.
    Flip,
    /// |x|, of an integer too.
    Abs,
    /// How many bits of an integer are set.
    Ones,
    /// How many bits of an integer are 0 before the first that is set.
    Leading,
    /// The bits of an integer, the last first.
    Reversed,
}

/// A function of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// a + b.
    Add,
    /// a − b.
    Subtract,
    /// a·b.
    Multiply,
    /// a/b; of an integer by 0, 0.
    Divide,
    /// The remainder; of an integer by 0, 0.
    Remainder,
    /// Bits set in both.
    And,
    /// Bits set in either.
    Or,
    /// Bits set in one.
    Xor,
    /// a·2ᵇ.
    Left,
    /// a/2ᵇ.
    Right,
    /// The larger; of floats a number before NaN.
    Max,
    /// The smaller, likewise.
    Min,
}

/// A comparison; false with NaN, but for `NotEqual`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// a = b.
    Equal,
    /// a ≠ b.
    NotEqual,
    /// a < b.
    Less,
    /// a ≤ b.
    LessEqual,
    /// a > b.
    Greater,
    /// a ≥ b.
    GreaterEqual,
}

/// What is done atomically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Adds.
    Add,
    /// Subtracts.
    Subtract,
    /// Keeps the larger.
    Max,
    /// Keeps the smaller.
    Min,
    /// Keeps the bits set in both.
    And,
    /// Sets bits.
    Or,
    /// Turns bits.
    Xor,
    /// Puts a value there.
    Exchange,
}

macro_rules! math {
    ($($variant:ident $count:literal $($name:literal)+;)*) => {
        /// A function of floats.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Math {
            $(#[doc = concat!("`", stringify!($variant), "`, as C has it.")] $variant,)*
        }

        impl Math {
            /// The function of that name, and how many arguments it takes.
            pub(crate) fn named(name: &str) -> Option<(Math, usize)> {
                match name {
                    $($($name)|+ => Some((Math::$variant, $count)),)*
                    _ => None,
                }
            }
        }
    };
}

math! {
    Exp 1 "exp" "expf" "__expf";
    Exp2 1 "exp2" "exp2f";
    Exp10 1 "exp10" "exp10f";
    Expm1 1 "expm1" "expm1f";
    Log 1 "log" "logf" "__logf";
    Log2 1 "log2" "log2f";
    Log10 1 "log10" "log10f";
    Log1p 1 "log1p" "log1pf";
    Sqrt 1 "sqrt" "sqrtf";
    Rsqrt 1 "rsqrt" "rsqrtf" "inverseSqrt";
    Sin 1 "sin" "sinf" "__sinf";
    Cos 1 "cos" "cosf" "__cosf";
    Tan 1 "tan" "tanf";
    Asin 1 "asin" "asinf";
    Acos 1 "acos" "acosf";
    Atan 1 "atan" "atanf";
    Sinh 1 "sinh" "sinhf";
    Cosh 1 "cosh" "coshf";
    Tanh 1 "tanh" "tanhf";
    Asinh 1 "asinh" "asinhf";
    Acosh 1 "acosh" "acoshf";
    Atanh 1 "atanh" "atanhf";
    Erf 1 "erf" "erff";
    Erfc 1 "erfc" "erfcf";
    Floor 1 "floor" "floorf";
    Ceil 1 "ceil" "ceilf";
    Trunc 1 "trunc" "truncf";
    Round 1 "round" "roundf";
    Rint 1 "rint" "rintf";
    IsNan 1 "isnan";
    IsInf 1 "isinf";
    IsFinite 1 "isfinite";
    Pow 2 "pow" "powf" "powr";
    Atan2 2 "atan2" "atan2f";
    Fmod 2 "fmod" "fmodf";
    Fma 3 "fma" "fmaf" "mad";
}

impl Math {
    /// Whether it gives true or false.
    pub fn is_test(self) -> bool {
        matches!(self, Math::IsNan | Math::IsInf | Math::IsFinite)
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// Computes something, for what it changes.
    Do(Expr),
    /// Either, or.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// A loop.
    Loop {
        /// What has to hold for another round.
        condition: Option<Expr>,
        /// Whether the first round runs without being asked for.
        runs_once: bool,
        /// What follows each round, after a `continue` too.
        step: Vec<Expr>,
        /// A round.
        body: Vec<Stmt>,
        /// Where it stands.
        at: Pos,
    },
    /// Leaves the innermost loop.
    Break,
    /// Goes to the next round of it.
    Continue,
    /// Leaves the function, or the kernel.
    Return,
    /// Waits for the threadgroup.
    Barrier(Pos),
}
