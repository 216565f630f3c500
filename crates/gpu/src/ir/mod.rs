//! The kernel language: what every kernel is written in once, and printed for each device.
//!
//! A [`Kernel`] is the program of a block of threads: a list of statements over scalar registers
//! in single-assignment form, mutable variables, shared memory and bound buffers. It is written
//! with a [`Build`]: `a * b + 1` on its values, `k.when(x.lt(y), || …)`, `k.range(…)`. What
//! differs between devices (how elements lie in memory, which functions exist) is settled by the
//! [`Target`] while the kernel is built, or by the printer in `emit`.

mod build;
mod divisor;
#[cfg(test)]
mod interpret;
mod math;
mod memory;
mod number;
#[cfg(test)]
mod tests;
mod value;

use cupola_core::DType;
use cupola_core::prim::call::Language;

pub use build::Build;
pub use divisor::Divisor;
pub use math::complex;
pub use number::{Number, NumberVar, SharedNumber};
pub use value::{Operand, Val, Var};

/// What a device cannot run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub String);

/// The type of a value in a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ty {
    /// True or false.
    Bool,
    /// 32 bits, signed; wraps.
    I32,
    /// 32 bits, unsigned; wraps.
    U32,
    /// 64 bits, signed; wraps.
    I64,
    /// 64 bits, unsigned; wraps.
    U64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Ty {
    /// The register that holds a real element of `dtype`; of a complex one, that of its parts.
    pub fn of(dtype: DType) -> Ty {
        match dtype {
            DType::Bool => Ty::Bool,
            DType::U8 | DType::U16 | DType::U32 => Ty::U32,
            DType::I8 | DType::I16 | DType::I32 => Ty::I32,
            DType::U64 => Ty::U64,
            DType::I64 => Ty::I64,
            DType::F16 | DType::BF16 | DType::F32 | DType::C32 | DType::C64 => Ty::F32,
            DType::F64 => Ty::F64,
        }
    }

    /// Bytes of a register.
    pub fn size(self) -> usize {
        match self {
            Ty::I64 | Ty::U64 | Ty::F64 => 8,
            Ty::Bool | Ty::I32 | Ty::U32 | Ty::F32 => 4,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }

    /// Whether it is an integer that can be negative.
    pub fn is_signed(self) -> bool {
        matches!(self, Ty::I32 | Ty::I64)
    }
}

/// A register of one thread: assigned once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reg {
    pub(crate) id: u32,
    /// Its type.
    pub ty: Ty,
}

/// A variable of one thread, as statements name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    pub(crate) id: u32,
    /// Its type.
    pub ty: Ty,
}

/// An array in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shared {
    pub(crate) id: u32,
    /// The type of its elements.
    pub ty: Ty,
    /// How many elements it has.
    pub len: u32,
    /// Whether threads add to the same elements at once.
    pub counts: bool,
}

/// An array of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Local {
    pub(crate) id: u32,
    /// The type of its elements.
    pub ty: Ty,
    /// How many elements it has; they begin as 0.
    pub len: u32,
}

/// A bound buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Buf {
    pub(crate) id: u32,
    /// The dtype of its elements.
    pub dtype: DType,
}

/// How a kernel uses a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Loads only.
    Read,
    /// Stores, and loads of what the same thread stored or overwrites.
    Write,
    /// As `Write`, and [`Expr::Atomic`] and [`Stmt::Swap`].
    Atomic,
}

/// What is done to an element of 32 bits, or of 64 where there is [`Expr::Await`], while no other
/// thread changes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Atomic {
    /// Adds.
    Add,
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

/// A buffer that a kernel is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Binding {
    /// What its elements are.
    pub dtype: DType,
    /// What the kernel does with it.
    pub access: Access,
    /// How many neighbours every load and every store moves at once: 1 where not all move as many,
    /// 0 where there are none.
    pub together: u32,
}

/// A literal, by its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lit {
    /// The bits; of a bool 0 or 1.
    pub bits: u64,
    /// The type.
    pub ty: Ty,
}

/// A function of one value. Float functions are right to the last place or two; a printer that
/// cannot promise that leaves the function to [`Target::native_math`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Un {
    /// −x; integers wrap.
    Neg,
    /// Not of a bool, or of every bit.
    Not,
    /// Of a float.
    Abs,
    /// √x, rounded correctly or nearly so.
    Sqrt,
    /// The largest integer not above.
    Floor,
    /// The smallest integer not below.
    Ceil,
    /// Towards zero.
    Trunc,
    /// To the nearest integer, ties to even.
    Round,
    /// The `float32` of the `float16` whose bits are in a `u32`.
    HalfToFloat,
    /// The bits of the nearest `float16`, ties to even.
    FloatToHalf,
    /// The `float32` of the `bfloat16` whose bits are in a `u32`.
    BfloatToFloat,
    /// The bits of the nearest `bfloat16`, ties to even.
    FloatToBfloat,
    /// An `f32` whose 10 digits after the first, all that matrix units read, are those of the
    /// nearest number that has no more.
    Tf32,
    /// The `f32` itself, where a compiler may not see that it is: it could otherwise reassociate
    /// sums whose rounding matters.
    Opaque,
    /// How many bits of a `u32` are set.
    Ones,
    /// How many bits of a `u32` are 0 before the first that is set.
    Leading,
    /// The bits of a `u32`, the last first.
    Reversed,
    /// 2ˣ of an `f32`, by the device's fastest way: two units in the last place, and 0 below 2⁻¹²⁶.
    Exp2,
    /// A function of the device's own library.
    Math(Math),
}

/// The functions of a device's own library.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Math {
    /// eˣ.
    Exp,
    /// eˣ − 1.
    Expm1,
    /// ln x.
    Log,
    /// log₂ x.
    Log2,
    /// log₁₀ x.
    Log10,
    /// ln(1 + x).
    Log1p,
    /// sin x.
    Sin,
    /// cos x.
    Cos,
    /// tan x.
    Tan,
    /// arcsin x.
    Asin,
    /// arccos x.
    Acos,
    /// arctan x.
    Atan,
    /// sinh x.
    Sinh,
    /// cosh x.
    Cosh,
    /// tanh x.
    Tanh,
    /// arsinh x.
    Asinh,
    /// arcosh x.
    Acosh,
    /// artanh x.
    Atanh,
    /// The error function.
    Erf,
    /// What it lacks to 1.
    Erfc,
    /// Its inverse.
    ErfInv,
}

/// A function of two values of one type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bin {
    /// a + b.
    Add,
    /// a − b.
    Sub,
    /// a·b.
    Mul,
    /// a/b; of integers towards zero, and b is not 0.
    Div,
    /// The remainder of that.
    Rem,
    /// Bits set in both.
    And,
    /// Bits set in either.
    Or,
    /// Bits set in one.
    Xor,
    /// a·2ᵇ; b is a `u32` below the width.
    Shl,
    /// a/2ᵇ, with a's sign; b is a `u32` below the width.
    Shr,
    /// The larger of two integers; of floats too, where NaN gives way to a number.
    Max,
    /// The smaller of two integers.
    Min,
    /// The upper word of a·b of two `u32`; only where the target has `mul_high`.
    MulHigh,
    /// aᵇ of floats, of the device's own library.
    Pow,
    /// The angle of the point (b, a), of the device's own library.
    Atan2,
}

/// A comparison of two values of one type; false with NaN, but for `Ne`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmp {
    /// a = b.
    Eq,
    /// a ≠ b.
    Ne,
    /// a < b.
    Lt,
    /// a ≤ b.
    Le,
    /// a > b.
    Gt,
    /// a ≥ b.
    Ge,
}

/// What the factors of a product of matrices are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Factors {
    /// `f32` in which only the digits of [`Un::Tf32`] count.
    Tf32,
    /// Pairs of `float16`.
    F16,
    /// Pairs of `bfloat16`.
    Bf16,
}

/// What gives a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// A literal.
    Lit(Lit),
    /// A function of one value.
    Un(Un, Reg),
    /// A function of two values.
    Bin(Bin, Reg, Reg),
    /// a·b + c, rounded once where the device can.
    Fma(Reg, Reg, Reg),
    /// A comparison.
    Cmp(Cmp, Reg, Reg),
    /// The second where the first is true, else the third.
    Select(Reg, Reg, Reg),
    /// A number as another type: integers wrap; a float to an integer is in range.
    Convert(Reg),
    /// The same bits as another type of the same size.
    Bits(Reg),
    /// A variable.
    Read(Slot),
    /// An element of a buffer, decoded into its register. Of a complex element index 2i is the
    /// real and 2i + 1 the imaginary part.
    Load(Buf, Reg),
    /// An element of a shared array.
    LoadShared(Shared, Reg),
    /// An element of an array of the thread.
    LoadLocal(Local, Reg),
    /// Changes an element of a buffer that is bound so; gives what was there before.
    Atomic(Atomic, Buf, Reg, Reg),
    /// Waits until a thread has posted a word in an element of a `u64` buffer; gives the word. Only
    /// where the target `awaits`, and for blocks that have begun.
    Await(Buf, Reg),
    /// The number of the thread in its block.
    Thread,
    /// The number of the block along the first axis of the grid.
    Block,
    /// The number of the block along the second axis of the grid.
    BlockY,
    /// How many blocks there are along the first axis.
    Blocks,
    /// A 32-bit word of the arguments.
    Arg(u32),
    /// A word of the sizes, which come behind the arguments.
    Size(u32),
    /// What the thread has here whose number differs in this one bit, which is smaller than
    /// [`Target::subgroup`]. Every thread of the block has to come here; no value is a bool.
    ShuffleXor(Reg, u32),
    /// Two `f32`, rounded to neighbouring halves of a word, the first in its lower bits.
    Pair(Factors, Reg, Reg),
    /// a·b + c of the halves of three words, each rounded once.
    FmaPairs(Factors, [Reg; 3]),
}

/// A statement.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Stmt {
    /// Gives a value its one value.
    Let(Reg, Expr),
    /// Makes a variable.
    Var(Slot, Reg),
    /// Changes a variable.
    Set(Slot, Reg),
    /// Either, or.
    If(Reg, Vec<Stmt>, Vec<Stmt>),
    /// Counts a fresh value from the first to below the second in steps of the third.
    For(Reg, [Reg; 3], Vec<Stmt>),
    /// Runs the first list, and while its value holds the second, and again.
    While(Vec<Stmt>, Reg, Vec<Stmt>),
    /// Leaves the innermost loop.
    Break,
    /// Goes to the next round of it.
    Continue,
    /// Leaves the kernel.
    Return,
    /// Statements in the target's own language.
    Text(String),
    /// Puts an element in its place in an array of the thread.
    StoreLocal(Local, Reg, Reg),
    /// Puts an encoded element in its place.
    Store(Buf, Reg, Reg),
    /// Gives a value the bits of an element of 32 bits of a buffer that is bound as atomic, at the first of three
    /// values, and where these are those of the second changes them to those of the third, while no other thread
    /// changes it.
    Swap(Reg, Buf, [Reg; 3]),
    /// Posts a `u32` in an element of a `u64` buffer that is 0: for [`Expr::Await`].
    Post(Buf, Reg, Reg),
    /// Puts an element in its place in a shared array.
    StoreShared(Shared, Reg, Reg),
    /// Adds to a counter in shared memory, whatever other threads add to it at once.
    AddShared(Shared, Reg, Reg),
    /// Gives values the neighbouring elements of a buffer from an index on, which is a multiple of
    /// how many they are, as the buffer's own start is.
    LoadVector(Vec<Reg>, Buf, Reg),
    /// Puts encoded elements in such neighbouring places.
    StoreVector(Buf, Reg, Vec<Reg>),
    /// Gives values the neighbouring elements of a shared array, likewise.
    LoadSharedVector(Vec<Reg>, Shared, Reg),
    /// Puts elements in such places of a shared array.
    StoreSharedVector(Shared, Reg, Vec<Reg>),
    /// Waits for the whole block; what was shared before can be read after.
    Barrier,
    /// Copies 16 bytes from an index of a buffer to one of a shared array, as they are, both at
    /// multiples of 16 bytes, while the thread goes on; only where the target has `copies`.
    Copy(Shared, Reg, Buf, Reg),
    /// Ends a batch of copies, empty or not.
    EndCopies,
    /// Waits for the thread's copies but those of the last so many batches.
    AwaitCopies(u32),
    /// Adds the product of a 16×8 and an 8×8 matrix to a 16×8 one, which 32 neighbouring threads
    /// hold together. With g = lane/4 and t = lane mod 4, a thread has of the first the elements
    /// (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4), of the second (t, g), (t + 4, g), and of
    /// the sums (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1): the layout of NVIDIA's
    /// `mma.m16n8k8` (PTX ISA, section on warp-level matrix instructions). With half as many
    /// elements of both there are 4 depths instead of 8: those of t alone. Of halves there are twice as
    /// many depths, and a word has those of 2t and 2t + 1 where an `f32` has that of t.
    Matrix(Factors, [Slot; 4], Vec<Reg>, Vec<Reg>),
    /// Gives 32 neighbouring threads four 8×8 matrices of halves from a shared array of words. Thread 8i + j
    /// says where row j of matrix i starts, at a multiple of 4 words. A thread gets a word of each:
    /// with g and t as above the halves (g, 2t) and (g, 2t + 1), or if it is transposed
    /// (2t, g) and (2t + 1, g): NVIDIA's `ldmatrix`. Only where the target has `copies`.
    LoadMatrices([Reg; 4], Shared, Reg, bool),
    /// Starts adding products of wide matrices, one after the other, whose second ones lie in a
    /// shared array with so many columns; only where the target has `wide`. All threads of a group
    /// of 128 come here together, and touch neither the sums nor the array until they have waited.
    Wide(Shared, u32, Vec<Wide>),
    /// Waits until the products with these sums are done.
    AwaitWide(Vec<Slot>),
    /// Lets products of wide matrices see, after the next barrier, what the thread has stored in
    /// shared arrays.
    FenceWide,
}

/// The product of a 64×8 matrix, of which each 32 of 128 neighbouring threads hold 16 rows as in
/// [`Stmt::Matrix`], and one of 8 rows in shared memory, added to sums that the threads hold as
/// those of such matrices side by side. In shared memory 4 rows of a column are neighbours, then
/// come the columns, then the other 4 rows: the layout of NVIDIA's `wgmma` without a swizzle (PTX
/// ISA, section on asynchronous warpgroup-level matrix instructions).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Wide {
    /// The sums: 4 for every 8 columns.
    pub sums: Vec<Slot>,
    /// The thread's elements of the first matrix.
    pub rows: [Reg; 4],
    /// Where the second starts: at a multiple of 4 elements.
    pub columns: Reg,
}

/// A kernel, ready to be printed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kernel {
    /// What it does, in letters, digits and underscores.
    pub name: String,
    /// Threads in a block.
    pub block: u32,
    /// How many blocks a multiprocessor should have registers for at once.
    pub at_once: u32,
    /// Its buffers, in order.
    pub bindings: Vec<Binding>,
    /// Words of arguments.
    pub args: u32,
    /// Words of sizes, which come behind them: see [`Build::size`].
    pub sizes: u32,
    /// Its shared arrays.
    pub shared: Vec<Shared>,
    /// The arrays of each thread.
    pub locals: Vec<Local>,
    /// Bytes that a block shares besides, which a text of CUDA C++ declares itself.
    pub dynamic: u32,
    /// Declarations in the target's own language that stand before it.
    pub header: String,
    /// What each thread runs.
    pub body: Vec<Stmt>,
}

impl Kernel {
    /// Words that it is given: its arguments, and then its sizes.
    pub fn words(&self) -> u32 {
        self.args + self.sizes
    }

    /// What it runs in the target's own language, if it does.
    pub fn text(&self) -> Option<&str> {
        self.body.iter().find_map(|stmt| match stmt {
            Stmt::Text(text) => Some(&**text),
            _ => None,
        })
    }

    /// Whether a binding can be read alone: inputs of a text, of which nobody knows what it does.
    pub fn only_reads(&self, binding: usize) -> bool {
        self.text().is_some() && self.bindings[binding].access == Access::Read
    }
}

/// What a device can do, as far as kernels are built differently for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Whether there are 64-bit integers.
    pub int64: bool,
    /// Whether there are doubles.
    pub float64: bool,
    /// What kernels are printed in.
    pub language: Language,
    /// Whether [`Un::Math`], [`Bin::Pow`] and [`Bin::Atan2`] exist and are accurate.
    pub native_math: bool,
    /// Whether elements of 16 bits can be loaded and stored by themselves.
    pub int16: bool,
    /// How many neighbouring threads can exchange values without shared memory: a power of two,
    /// or 0.
    pub subgroup: u32,
    /// Whether offsets can have 64 bits.
    pub wide_offsets: bool,
    /// The most threads in a block.
    pub max_threads: u32,
    /// The most blocks along an axis of the grid.
    pub max_blocks: u32,
    /// The most bytes that a block can share.
    pub shared_bytes: u32,
    /// The most buffers that a kernel can have.
    pub max_bindings: usize,
    /// The most bytes that a thread loads or stores at once; no more than an element where there
    /// are no vectors.
    pub vector_bytes: usize,
    /// Roughly how many threads fill the device.
    pub threads: u32,
    /// Whether there is [`Stmt::Copy`].
    pub copies: bool,
    /// Whether there is [`Stmt::Matrix`].
    pub matrix: bool,
    /// Whether there is [`Stmt::Wide`].
    pub wide: bool,
    /// Whether products of `float32` may be taken of operands rounded to [`Un::Tf32`].
    pub tf32: bool,
    /// Whether there is [`Bin::MulHigh`].
    pub mul_high: bool,
    /// Whether there are [`Expr::Await`] and [`Stmt::Post`]: every block that has begun goes on,
    /// whatever others wait for.
    pub awaits: bool,
    /// How many rounds of loops a thread goes through, all its loops together. A software adapter may leave a loop
    /// after so many, whatever its condition says, and results are wrong then.
    pub rounds: usize,
}

impl Target {
    /// Says whether a thread may take so many rounds.
    pub fn allows(&self, rounds: usize) -> Result<(), Missing> {
        match rounds <= self.rounds {
            true => Ok(()),
            false => Err(Missing(format!(
                "the device leaves loops after {} rounds, and a thread would need {rounds}",
                self.rounds
            ))),
        }
    }
}
