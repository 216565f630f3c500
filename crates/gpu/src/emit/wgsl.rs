//! WGSL, as naga reads it.
//!
//! Storage has no elements of 8 bits, and of 16 only where the device has such integers: else they
//! lie in words. A store to such an element clears and sets its bits with two atomics, which is
//! right whatever other threads do to the rest of the word. A buffer of which every load and store moves
//! as many neighbours is one of vectors, and such a store writes whole words. NaN and infinity cannot
//! be written as constants, so they pass through a function.

use std::fmt::Write;

use cupola_core::DType;

use super::{Dialect, buffer, compare, shared, shared_ty, value};
use crate::ir::{
    Access, Atomic, Bin, Binding, Buf, Expr, Factors, Kernel, Lit, Local, Reg, Shared, Slot, Stmt,
    Ty, Un,
};

/// The language of wgpu.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wgsl {
    /// Whether storage has elements of 16 bits. Halves are such integers, too, and pass through
    /// the same conversions: those of the language may round as they like.
    pub int16: bool,
}

/// Conversions of halves by their bits, since the built-in ones may round as they like and may
/// lose subnormals.
const PRELUDE: &str = "\
fn float_of_bits(u: u32) -> f32 { return bitcast<f32>(u); }
fn half_to_float(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let rest = h & 0x7fffu;
    if (rest >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13u)); }
    if (rest >= 0x0400u) { return bitcast<f32>(sign | ((rest << 13u) + 0x38000000u)); }
    let small = f32(rest) * 5.9604645e-8f;
    return bitcast<f32>(sign | bitcast<u32>(small));
}
fn float_to_half(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    let sign = (u >> 16u) & 0x8000u;
    let a = u & 0x7fffffffu;
    if (a > 0x7f800000u) { return sign | 0x7e00u; }
    if (a >= 0x477ff000u) { return sign | 0x7c00u; }
    if (a >= 0x38800000u) {
        return sign | ((a - 0x38000000u + 0xfffu + ((a >> 13u) & 1u)) >> 13u);
    }
    if (a < 0x33000000u) { return sign; }
    let shift = 126u - (a >> 23u);
    let m = (a & 0x7fffffu) | 0x800000u;
    let kept = m >> shift;
    let lost = m & ((1u << shift) - 1u);
    let middle = 1u << (shift - 1u);
    let up = lost > middle || (lost == middle && (kept & 1u) == 1u);
    return sign | (kept + u32(up));
}
fn bfloat_to_float(b: u32) -> f32 { return bitcast<f32>(b << 16u); }
fn float_to_bfloat(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) { return (u >> 16u) | 0x40u; }
    return (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;
}
";

/// How an element lies in storage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// In a part of a word, of so many bytes.
    Part(u32),
    /// As a 16-bit integer.
    Half,
    /// As its register.
    Whole,
}

impl Wgsl {
    fn cell(&self, dtype: DType) -> Cell {
        match dtype {
            DType::Bool | DType::U8 | DType::I8 => Cell::Part(1),
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => match self.int16 {
                true => Cell::Half,
                false => Cell::Part(2),
            },
            DType::U32
            | DType::I32
            | DType::U64
            | DType::I64
            | DType::F32
            | DType::F64
            | DType::C32
            | DType::C64 => Cell::Whole,
        }
    }
}

/// The word that has an element, how far its bits are up in it, and its mask.
fn within(bytes: u32, index: Reg) -> (String, String, &'static str) {
    let i = value(index);
    match bytes {
        1 => (format!("{i} >> 2u"), format!("(({i} & 3u) * 8u)"), "0xffu"),
        _ => (format!("{i} >> 1u"), format!("(({i} & 1u) * 16u)"), "0xffffu"),
    }
}

/// A word of the arguments, or of the sizes behind them.
fn word(n: u32) -> String {
    format!("args.w[{}][{}]", n / 4, n % 4)
}

const NO_COPIES: &str = "no copy is printed as WGSL: the target has none";

impl Dialect for Wgsl {
    fn head(&self, kernel: &Kernel) -> String {
        let half = |b: &Binding| Vector::of(b).is_none() && self.cell(b.dtype) == Cell::Half;
        let halves = kernel.bindings.iter().any(half);
        let mut text = String::from(if halves { "enable wgpu_int16;\n" } else { "" });
        text.push_str(PRELUDE);
        for (index, binding) in kernel.bindings.iter().enumerate() {
            let whole = match (self.cell(binding.dtype), binding.access) {
                (Cell::Part(_), Access::Read) => "u32",
                (Cell::Part(_), Access::Write | Access::Atomic) => "atomic<u32>",
                (Cell::Whole, Access::Atomic) if binding.dtype == DType::I32 => "atomic<i32>",
                (Cell::Whole, Access::Atomic) => "atomic<u32>",
                (Cell::Half, _) => "u16",
                // Both halves in a word.
                (Cell::Whole, _) if binding.dtype == DType::C32 => "u32",
                (Cell::Whole, _) => self.ty(Ty::of(binding.dtype)),
            };
            let element = Vector::of(binding).map_or(whole, Vector::cell);
            let access = if kernel.only_reads(index) { "read" } else { "read_write" };
            let _ = writeln!(
                text,
                "@group(0) @binding({index}) var<storage, {access}> b{index}: array<{element}>;"
            );
        }
        for (index, binding) in kernel.bindings.iter().enumerate() {
            if binding.access == Access::Atomic && binding.dtype == DType::F32 {
                float_atomics(&mut text, index);
            }
        }
        text.push_str(&kernel.header);
        if kernel.words() > 0 {
            let (words, index) = (kernel.words().div_ceil(4), kernel.bindings.len());
            let _ = writeln!(text, "struct Args {{ w: array<vec4<u32>, {words}> }}");
            let _ = writeln!(text, "@group(0) @binding({index}) var<uniform> args: Args;");
        }
        for array in &kernel.shared {
            let (name, ty) = (shared(*array), self.ty(shared_ty(*array)));
            let ty = if array.counts { format!("atomic<{ty}>") } else { ty.to_string() };
            let _ = writeln!(text, "var<workgroup> {name}: array<{ty}, {}>;", array.len);
        }
        let _ = writeln!(
            text,
            "// {}\n@compute @workgroup_size({})\nfn main(@builtin(local_invocation_index) thread: \
             u32, @builtin(workgroup_id) block: vec3<u32>, @builtin(num_workgroups) blocks: \
             vec3<u32>) {{",
            kernel.name, kernel.block
        );
        text
    }

    fn ty(&self, ty: Ty) -> &'static str {
        match ty {
            Ty::Bool => "bool",
            Ty::I32 => "i32",
            Ty::U32 => "u32",
            Ty::I64 => "i64",
            Ty::U64 => "u64",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
        }
    }

    fn expr(&self, kernel: &Kernel, to: Ty, expr: &Expr) -> String {
        match *expr {
            Expr::Lit(lit) => literal(lit),
            Expr::Un(op, x) => unary(op, x),
            Expr::Bin(op, a, b) => binary(op, a, b),
            Expr::Fma(a, b, c) => format!("fma({}, {}, {})", value(a), value(b), value(c)),
            Expr::Cmp(op, a, b) => format!("{} {} {}", value(a), compare(op), value(b)),
            Expr::Select(c, a, b) => format!("select({}, {}, {})", value(b), value(a), value(c)),
            Expr::Convert(x) if x.ty == Ty::Bool && to.size() == 8 => {
                format!("{}(u32({}))", self.ty(to), value(x))
            }
            // naga extends by the type that it converts to, not by the one that it converts from.
            Expr::Convert(x) if x.ty == Ty::I32 && to == Ty::U64 => {
                format!("u64(i64({}))", value(x))
            }
            // Of a number that it saw extended, Mesa gets comparisons with constants wrong. So it is put
            // together from its words.
            Expr::Convert(x) if x.ty == Ty::I32 && to == Ty::I64 => {
                let (low, x) = (format!("u64(bitcast<u32>({}))", value(x)), value(x));
                format!("i64({low} | (u64(bitcast<u32>({x} >> 31u)) << 32u))")
            }
            Expr::Convert(x) if x.ty == Ty::U32 && to == Ty::I64 => {
                format!("i64(u64({}))", value(x))
            }
            Expr::Convert(x) => format!("{}({})", self.ty(to), value(x)),
            Expr::Bits(x) => format!("bitcast<{}>({})", self.ty(to), value(x)),
            Expr::Load(buf, index) => self.load(kernel, buf, index),
            Expr::Thread => "thread".into(),
            Expr::Block => "block.x".into(),
            Expr::BlockY => "block.y".into(),
            Expr::Blocks => "blocks.x".into(),
            Expr::Arg(n) => word(n),
            Expr::Size(n) => word(kernel.args + n),
            Expr::ShuffleXor(v, distance) => {
                format!("subgroupShuffleXor({}, {distance}u)", value(v))
            }
            Expr::Pair(..) | Expr::FmaPairs(..) => {
                unreachable!("nothing is paired for matrix units: the target has none")
            }
            Expr::Atomic(op, buf, index, v) => {
                let place = format!("&{}[{}]", buffer(buf), value(index));
                atomic(op, buf, &place, index, v)
            }
            Expr::Await(..) => unreachable!("no block waits for another: the target has no such"),
            Expr::Read(_) | Expr::LoadShared(..) | Expr::LoadLocal(..) => {
                unreachable!("the printer does these")
            }
        }
    }

    fn declare(&self, ty: Ty, name: &str, is_variable: bool) -> String {
        let word = if is_variable { "var" } else { "let" };
        format!("{word} {name}: {}", self.ty(ty))
    }

    fn store(&self, kernel: &Kernel, buf: Buf, index: Reg, val: Reg) -> String {
        let dtype = kernel.bindings[buf.id as usize].dtype;
        let (name, v) = (buffer(buf), value(val));
        let is_atomic = kernel.bindings[buf.id as usize].access == Access::Atomic;
        let bytes = match self.cell(dtype) {
            Cell::Whole if is_atomic => {
                let bits = if dtype == DType::F32 { format!("bitcast<u32>({v})") } else { v };
                return format!("atomicStore(&{name}[{}], {bits});", value(index));
            }
            Cell::Whole => return format!("{name}[{}] = {v};", value(index)),
            Cell::Half => 2,
            Cell::Part(bytes) => bytes,
        };
        let (word, up, mask) = within(bytes, index);
        let bits = encoded(dtype, val);
        if self.cell(dtype) == Cell::Half {
            return format!("{name}[{}] = u16({bits});", value(index));
        }
        format!(
            "atomicAnd(&{name}[{word}], ~({mask} << {up})); atomicOr(&{name}[{word}], {bits} << {up});"
        )
    }

    /// What the language has may fail for no reason.
    fn swap(&self, found: Reg, buf: Buf, operands: [Reg; 3]) -> String {
        let [index, expected, v] = operands.map(value);
        let (seen, tried) = (format!("x{}", found.id), format!("t{}", found.id));
        let first = self.declare(found.ty, &seen, true);
        let left = self.declare(found.ty, &value(found), false);
        format!(
            "{first} = {expected}; loop {{ \
             let {tried} = atomicCompareExchangeWeak(&{}[{index}], {expected}, {v}); \
             {seen} = {tried}.old_value; \
             if ({tried}.exchanged || {seen} != {expected}) {{ break; }} }} {left} = {seen};",
            buffer(buf)
        )
    }

    fn post(&self, _: Buf, _: Reg, _: Reg) -> String {
        unreachable!("no block waits for another: the target has no such")
    }

    fn vector(&self, kernel: &Kernel, stmt: &Stmt) -> Option<String> {
        match stmt {
            Stmt::LoadVector(into, buf, index) => {
                let cell = Vector::of(&kernel.bindings[buf.id as usize])?;
                Some(self.load_vector(cell, into, *buf, *index))
            }
            Stmt::StoreVector(buf, index, values) => {
                let cell = Vector::of(&kernel.bindings[buf.id as usize])?;
                Some(format!("{} = {};", cell.place(*buf, *index), cell.packed(values)))
            }
            _ => None,
        }
    }

    fn local(&self, array: Local) -> String {
        format!("var a{}: array<{}, {}>;", array.id, self.ty(array.ty), array.len)
    }

    fn barrier(&self) -> &'static str {
        "workgroupBarrier();"
    }

    fn copy(&self, _: Shared, _: Reg, _: Buf, _: Reg) -> String {
        unreachable!("{NO_COPIES}")
    }

    fn load_counter(&self, place: &str) -> String {
        format!("atomicLoad(&{place})")
    }

    fn store_counter(&self, place: &str, value: &str) -> String {
        format!("atomicStore(&{place}, {value});")
    }

    fn add_counter(&self, place: &str, value: &str) -> String {
        format!("atomicAdd(&{place}, {value});")
    }

    fn end_copies(&self) -> String {
        unreachable!("{NO_COPIES}")
    }

    fn await_copies(&self, _: u32) -> String {
        unreachable!("{NO_COPIES}")
    }

    fn matrix(&self, _: Factors, _: [Slot; 4], _: &[Reg], _: &[Reg]) -> String {
        unreachable!("no matrix is printed as WGSL: the target has none")
    }

    fn load_matrices(&self, _: &[Reg; 4], _: Shared, _: Reg, _: bool) -> String {
        unreachable!("no matrix is printed as WGSL: the target has none")
    }
}

impl Wgsl {
    fn load_vector(&self, vector: Vector, into: &[Reg], buf: Buf, index: Reg) -> String {
        let whole = format!("q{}", into[0].id);
        let mut text = format!("let {whole} = {};", vector.place(buf, index));
        for (lane, &v) in into.iter().enumerate() {
            let left = self.declare(v.ty, &value(v), false);
            let _ = write!(text, " {left} = {};", vector.lane(&whole, lane));
        }
        text
    }

    fn load(&self, kernel: &Kernel, buf: Buf, index: Reg) -> String {
        let binding = kernel.bindings[buf.id as usize];
        let (name, i) = (buffer(buf), value(index));
        let bits = match self.cell(binding.dtype) {
            Cell::Whole if binding.access == Access::Atomic => {
                let bits = format!("atomicLoad(&{name}[{i}])");
                return match binding.dtype {
                    DType::F32 => format!("bitcast<f32>({bits})"),
                    _ => bits,
                };
            }
            Cell::Whole => return format!("{name}[{i}]"),
            Cell::Half => format!("u32({name}[{i}])"),
            Cell::Part(bytes) => {
                let (word, up, mask) = within(bytes, index);
                let whole = match binding.access {
                    Access::Read => format!("{name}[{word}]"),
                    Access::Write | Access::Atomic => format!("atomicLoad(&{name}[{word}])"),
                };
                format!("(({whole} >> {up}) & {mask})")
            }
        };
        decoded(binding.dtype, &bits)
    }
}

/// Functions that change elements of a buffer of floats, which lie in it as words.
fn float_atomics(text: &mut String, index: usize) {
    for (name, result) in
        [("add", "before + v"), ("max", "max(before, v)"), ("min", "min(before, v)")]
    {
        let _ = writeln!(
            text,
            "fn float_{name}_b{index}(at: u32, v: f32) -> f32 {{
    var seen = atomicLoad(&b{index}[at]);
    loop {{
        let before = bitcast<f32>(seen);
        let tried = atomicCompareExchangeWeak(&b{index}[at], seen, bitcast<u32>({result}));
        if (tried.exchanged) {{ return before; }}
        seen = tried.old_value;
    }}
    return 0.0;
}}"
        );
    }
}

/// An atomic change of an element.
fn atomic(op: Atomic, buf: Buf, place: &str, index: Reg, v: Reg) -> String {
    let (is_float, at, v) = (buf.dtype == DType::F32, value(index), value(v));
    let name = match op {
        Atomic::Add if is_float => return format!("float_add_b{}({at}, {v})", buf.id),
        Atomic::Max if is_float => return format!("float_max_b{}({at}, {v})", buf.id),
        Atomic::Min if is_float => return format!("float_min_b{}({at}, {v})", buf.id),
        Atomic::Exchange if is_float => {
            return format!("bitcast<f32>(atomicExchange({place}, bitcast<u32>({v})))");
        }
        Atomic::Add => "Add",
        Atomic::Max => "Max",
        Atomic::Min => "Min",
        Atomic::And => "And",
        Atomic::Or => "Or",
        Atomic::Xor => "Xor",
        Atomic::Exchange => "Exchange",
    };
    format!("atomic{name}({place}, {v})")
}

/// How neighbours lie in storage that are always moved at once: in one, two or four words.
#[derive(Clone, Copy)]
struct Vector {
    dtype: DType,
    /// How many there are: a power of two.
    count: u32,
}

impl Vector {
    /// Of what is bound here, where its elements go together and fill such words.
    fn of(binding: &Binding) -> Option<Vector> {
        let (dtype, count) = (binding.dtype, binding.together);
        let fits =
            count > 1 && dtype.size() <= 4 && matches!(dtype.size() as u32 * count, 4 | 8 | 16);
        fits.then_some(Vector { dtype, count })
    }

    /// The type of the words.
    fn cell(self) -> &'static str {
        let word = if self.dtype.size() == 4 { Ty::of(self.dtype) } else { Ty::U32 };
        match (self.dtype.size() as u32 * self.count, word) {
            (4, _) => "u32",
            (8, Ty::F32) => "vec2<f32>",
            (8, Ty::I32) => "vec2<i32>",
            (8, _) => "vec2<u32>",
            (_, Ty::F32) => "vec4<f32>",
            (_, Ty::I32) => "vec4<i32>",
            _ => "vec4<u32>",
        }
    }

    /// The words that begin with the element at an index, which is a multiple of the count.
    fn place(self, buf: Buf, index: Reg) -> String {
        format!("{}[{} >> {}u]", buffer(buf), value(index), self.count.trailing_zeros())
    }

    /// The element at `lane` of the words called `whole`.
    fn lane(self, whole: &str, lane: usize) -> String {
        let (size, each) = (self.dtype.size(), 4 / self.dtype.size());
        let word = match self.cell() {
            "u32" => whole.to_owned(),
            _ => format!("{whole}.{}", ["x", "y", "z", "w"][lane / each]),
        };
        match size {
            1 => decoded(self.dtype, &format!("(({word} >> {}u) & 0xffu)", 8 * (lane % each))),
            2 => decoded(self.dtype, &format!("(({word} >> {}u) & 0xffffu)", 16 * (lane % each))),
            _ => word,
        }
    }

    /// The words of `values`.
    fn packed(self, values: &[Reg]) -> String {
        let size = self.dtype.size();
        let element = |(lane, &v): (usize, &Reg)| match (size, lane) {
            (4, _) => value(v),
            (_, 0) => encoded(self.dtype, v),
            _ => format!("({} << {}u)", encoded(self.dtype, v), 8 * size * lane),
        };
        let word = |own: &[Reg]| -> String {
            own.iter().enumerate().map(element).collect::<Vec<_>>().join(" | ")
        };
        let words: Vec<String> = values.chunks(4 / size).map(word).collect();
        match &words[..] {
            [word] => word.clone(),
            words => format!("{}({})", self.cell(), words.join(", ")),
        }
    }
}

/// The element whose bits are in a word of their own.
fn decoded(dtype: DType, bits: &str) -> String {
    match dtype {
        DType::F16 => format!("half_to_float({bits})"),
        DType::BF16 => format!("bfloat_to_float({bits})"),
        DType::Bool => format!("{bits} != 0u"),
        DType::I8 => format!("(bitcast<i32>({bits} << 24u) >> 24u)"),
        DType::I16 => format!("(bitcast<i32>({bits} << 16u) >> 16u)"),
        _ => bits.to_owned(),
    }
}

/// The bits of an element that is smaller than a word, in a word of their own.
fn encoded(dtype: DType, v: Reg) -> String {
    let mask = if dtype.size() == 1 { "0xffu" } else { "0xffffu" };
    let v = value(v);
    match dtype {
        DType::F16 => format!("float_to_half({v})"),
        DType::BF16 => format!("float_to_bfloat({v})"),
        DType::Bool => format!("u32({v})"),
        DType::I8 | DType::I16 => format!("(bitcast<u32>({v}) & {mask})"),
        _ => format!("({v} & {mask})"),
    }
}

fn literal(lit: Lit) -> String {
    match lit.ty {
        Ty::Bool => (lit.bits != 0).to_string(),
        Ty::U32 => format!("{}u", lit.bits as u32),
        Ty::I32 if lit.bits as u32 == 0x8000_0000 => "bitcast<i32>(0x80000000u)".into(),
        Ty::I32 => format!("{}i", lit.bits as u32 as i32),
        Ty::U64 => format!("{}lu", lit.bits),
        Ty::I64 if lit.bits as i64 == i64::MIN => "(-9223372036854775807li - 1li)".into(),
        Ty::I64 => format!("{}li", lit.bits as i64),
        Ty::F32 => {
            let v = f32::from_bits(lit.bits as u32);
            match v.is_finite() && (v != 0.0 || v.is_sign_positive()) {
                true => format!("{v:e}f"),
                false => format!("float_of_bits({:#x}u)", lit.bits as u32),
            }
        }
        Ty::F64 => {
            let v = f64::from_bits(lit.bits);
            match v.is_finite() {
                true => format!("{v:e}lf"),
                false => format!("f64(float_of_bits({:#x}u))", (v as f32).to_bits()),
            }
        }
    }
}

fn unary(op: Un, x: Reg) -> String {
    let v = value(x);
    match op {
        Un::Neg => format!("-{v}"),
        Un::Not if x.ty == Ty::Bool => format!("!{v}"),
        Un::Not => format!("~{v}"),
        Un::Abs => format!("abs({v})"),
        Un::Sqrt => format!("sqrt({v})"),
        Un::Floor => format!("floor({v})"),
        Un::Ceil => format!("ceil({v})"),
        Un::Trunc => format!("trunc({v})"),
        Un::Round => format!("round({v})"),
        Un::HalfToFloat => format!("half_to_float({v})"),
        Un::FloatToHalf => format!("float_to_half({v})"),
        Un::BfloatToFloat => format!("bfloat_to_float({v})"),
        Un::FloatToBfloat => format!("float_to_bfloat({v})"),
        // A grid has one layer, which a compiler cannot know.
        Un::Opaque => format!("bitcast<f32>(bitcast<u32>({v}) ^ (blocks.z - 1u))"),
        Un::Ones => format!("countOneBits({v})"),
        Un::Leading => format!("countLeadingZeros({v})"),
        Un::Reversed => format!("reverseBits({v})"),
        Un::Exp2 => format!("exp2({v})"),
        Un::Tf32 => unreachable!("nothing is rounded for matrix units: the target has none"),
        Un::Math(f) => unreachable!("{f:?} is not printed as WGSL: the target has no native_math"),
    }
}

fn binary(op: Bin, a: Reg, b: Reg) -> String {
    let (x, y) = (value(a), value(b));
    let sign = match op {
        Bin::Add => "+",
        Bin::Sub => "-",
        Bin::Mul => "*",
        Bin::Div => "/",
        Bin::Rem => "%",
        Bin::And => "&",
        Bin::Or => "|",
        Bin::Xor if a.ty == Ty::Bool => "!=",
        Bin::Xor => "^",
        Bin::Shl => "<<",
        Bin::Shr => ">>",
        Bin::Max => return format!("max({x}, {y})"),
        Bin::Min => return format!("min({x}, {y})"),
        Bin::MulHigh | Bin::Pow | Bin::Atan2 => {
            unreachable!("{op:?} is not printed as WGSL: the target has no native_math")
        }
    };
    format!("{x} {sign} {y}")
}
