//! WGSL, as naga reads it.
//!
//! Storage has no elements of 8 or 16 bits: they lie in words. A store to such an element clears
//! and sets its bits with two atomics, which is right whatever other threads do to the rest of the
//! word. NaN and infinity cannot be written as constants, so they pass through a function.

use std::fmt::Write;

use cupola_core::DType;

use super::{Dialect, buffer, compare, shared, shared_ty, value};
use crate::ir::{Access, Bin, Buf, Expr, Kernel, Lit, Ty, Un, Val, Var};

/// The language of wgpu.
pub struct Wgsl;

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

/// Bytes of an element that is smaller than a word.
fn narrow(dtype: DType) -> Option<u32> {
    match dtype {
        DType::Bool | DType::U8 | DType::I8 => Some(1),
        DType::U16 | DType::I16 | DType::F16 | DType::BF16 => Some(2),
        DType::U32
        | DType::I32
        | DType::U64
        | DType::I64
        | DType::F32
        | DType::F64
        | DType::C64 => None,
    }
}

/// The word that has an element, how far its bits are up in it, and its mask.
fn within(bytes: u32, index: Val) -> (String, String, &'static str) {
    let i = value(index);
    match bytes {
        1 => (format!("{i} >> 2u"), format!("(({i} & 3u) * 8u)"), "0xffu"),
        _ => (format!("{i} >> 1u"), format!("(({i} & 1u) * 16u)"), "0xffffu"),
    }
}

impl Dialect for Wgsl {
    fn head(&self, kernel: &Kernel) -> String {
        let mut text = String::from(PRELUDE);
        for (index, binding) in kernel.bindings.iter().enumerate() {
            let element = match (narrow(binding.dtype), binding.access) {
                (Some(_), Access::Read) => "u32",
                (Some(_), Access::Write) => "atomic<u32>",
                (None, _) => self.ty(Ty::of(binding.dtype)),
            };
            let _ = writeln!(
                text,
                "@group(0) @binding({index}) var<storage, read_write> b{index}: array<{element}>;"
            );
        }
        if kernel.args > 0 {
            let (words, index) = (kernel.args.div_ceil(4), kernel.bindings.len());
            let _ = writeln!(text, "struct Args {{ w: array<vec4<u32>, {words}> }}");
            let _ = writeln!(text, "@group(0) @binding({index}) var<uniform> args: Args;");
        }
        for array in &kernel.shared {
            let (name, ty) = (shared(*array), self.ty(shared_ty(*array)));
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
            Expr::Convert(x) => format!("{}({})", self.ty(to), value(x)),
            Expr::Bits(x) => format!("bitcast<{}>({})", self.ty(to), value(x)),
            Expr::Load(buf, index) => load(kernel, buf, index),
            Expr::Thread => "thread".into(),
            Expr::Block => "block.x".into(),
            Expr::BlockY => "block.y".into(),
            Expr::Blocks => "blocks.x".into(),
            Expr::Arg(n) => format!("args.w[{}][{}]", n / 4, n % 4),
            Expr::Read(_) | Expr::LoadShared(..) => unreachable!("the printer does these"),
        }
    }

    fn declare(&self, ty: Ty, name: &str, is_variable: bool) -> String {
        let word = if is_variable { "var" } else { "let" };
        format!("{word} {name}: {}", self.ty(ty))
    }

    fn store(&self, kernel: &Kernel, buf: Buf, index: Val, val: Val) -> String {
        let dtype = kernel.bindings[buf.0 as usize].dtype;
        let (name, v) = (buffer(buf), value(val));
        let Some(bytes) = narrow(dtype) else {
            return format!("{name}[{}] = {v};", value(index));
        };
        let (word, up, mask) = within(bytes, index);
        let bits = match dtype {
            DType::F16 => format!("float_to_half({v})"),
            DType::BF16 => format!("float_to_bfloat({v})"),
            DType::Bool => format!("u32({v})"),
            DType::I8 | DType::I16 => format!("(bitcast<u32>({v}) & {mask})"),
            _ => format!("({v} & {mask})"),
        };
        format!(
            "atomicAnd(&{name}[{word}], ~({mask} << {up})); atomicOr(&{name}[{word}], {bits} << {up});"
        )
    }

    fn barrier(&self) -> &'static str {
        "workgroupBarrier();"
    }

    fn matrix(&self, _: [Var; 4], _: [Val; 4], _: [Val; 2]) -> String {
        unreachable!("no matrix is printed as WGSL: the target has none")
    }
}

fn load(kernel: &Kernel, buf: Buf, index: Val) -> String {
    let binding = kernel.bindings[buf.0 as usize];
    let name = buffer(buf);
    let Some(bytes) = narrow(binding.dtype) else {
        return format!("{name}[{}]", value(index));
    };
    let (word, up, mask) = within(bytes, index);
    let whole = match binding.access {
        Access::Read => format!("{name}[{word}]"),
        Access::Write => format!("atomicLoad(&{name}[{word}])"),
    };
    let bits = format!("(({whole} >> {up}) & {mask})");
    match binding.dtype {
        DType::F16 => format!("half_to_float({bits})"),
        DType::BF16 => format!("bfloat_to_float({bits})"),
        DType::Bool => format!("{bits} != 0u"),
        DType::I8 => format!("(bitcast<i32>({bits} << 24u) >> 24u)"),
        DType::I16 => format!("(bitcast<i32>({bits} << 16u) >> 16u)"),
        _ => bits,
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

fn unary(op: Un, x: Val) -> String {
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
        // A grid has one layer, which a compiler cannot know.
        Un::Opaque => format!("bitcast<f32>(bitcast<u32>({v}) ^ (blocks.z - 1u))"),
        Un::Tf32 => unreachable!("nothing is rounded for matrix units: the target has none"),
        Un::Math(f) => unreachable!("{f:?} is not printed as WGSL: the target has no native_math"),
    }
}

fn binary(op: Bin, a: Val, b: Val) -> String {
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
        Bin::Pow | Bin::Atan2 => {
            unreachable!("{op:?} is not printed as WGSL: the target has no native_math")
        }
    };
    format!("{x} {sign} {y}")
}
