//! CUDA C++, as NVRTC reads it with no headers.
//!
//! Signed integers wrap in this language of kernels and do not in C, so their sums pass through
//! unsigned ones.

use std::fmt::Write;

use cupola_core::DType;

use super::{Dialect, WideProducts, buffer, compare, shared, shared_ty, value, variable};
use crate::ir::{
    Access, Atomic, Bin, Buf, Expr, Factors, Kernel, Lit, Local, Math, Reg, Shared, Slot, Stmt, Ty,
    Un, Wide,
};

/// The language of NVRTC.
pub struct CudaC {
    /// How many launches a kernel does the work of, at most. Each has its own buffers and words; the blocks of one
    /// follow those of another.
    pub launches: u32,
}

impl CudaC {
    /// Kernels of one launch.
    pub const ALONE: CudaC = CudaC { launches: 1 };
}

const PRELUDE: &str = "\
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32;
typedef unsigned long long u64; typedef long long i64;
__device__ __forceinline__ float half_to_float(u16 h) {
    float f; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(h)); return f;
}
__device__ __forceinline__ u16 float_to_half(float f) {
    u16 h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(f)); return h;
}
__device__ __forceinline__ float float_to_tf32(float f) {
    u32 u = __float_as_uint(f);
    return fabsf(f) < __uint_as_float(0x7f800000u) ? __uint_as_float(u + 0x1000u) : f;
}
__device__ __forceinline__ float fast_exp2(float f) {
    float e; asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(e) : \"f\"(f)); return e;
}
__device__ __forceinline__ float bfloat_to_float(u16 b) { return __uint_as_float((u32)b << 16); }
__device__ __forceinline__ u16 float_to_bfloat(float f) {
#if __CUDA_ARCH__ >= 800
    u16 b; asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(b) : \"f\"(f)); return b;
#else
    u32 u = __float_as_uint(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (u16)((u >> 16) | 0x40u);
    return (u16)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
#endif
}
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ u32 pair_f16(float a, float b) {
    u32 p; asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(p) : \"f\"(b), \"f\"(a)); return p;
}
__device__ __forceinline__ u32 pair_bf16(float a, float b) {
    u32 p; asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(p) : \"f\"(b), \"f\"(a)); return p;
}
__device__ __forceinline__ u32 fma_f16(u32 a, u32 b, u32 c) {
    u32 d; asm(\"fma.rn.f16x2 %0, %1, %2, %3;\" : \"=r\"(d) : \"r\"(a), \"r\"(b), \"r\"(c)); return d;
}
__device__ __forceinline__ u32 fma_bf16(u32 a, u32 b, u32 c) {
    u32 d; asm(\"fma.rn.bf16x2 %0, %1, %2, %3;\" : \"=r\"(d) : \"r\"(a), \"r\"(b), \"r\"(c)); return d;
}
#endif
// As numbers without sign: CUDA's assembler before 13.4 takes what is negated for what it was in the signed
// maximum or minimum of three that architectures 9.0 and 10.0 have.
__device__ __forceinline__ int int_max(int a, int b) {
    u32 m; asm(\"max.u32 %0, %1, %2;\" : \"=r\"(m) : \"r\"((u32)a ^ 0x80000000u), \"r\"((u32)b ^ 0x80000000u));
    return (int)(m ^ 0x80000000u);
}
__device__ __forceinline__ int int_min(int a, int b) {
    u32 m; asm(\"min.u32 %0, %1, %2;\" : \"=r\"(m) : \"r\"((u32)a ^ 0x80000000u), \"r\"((u32)b ^ 0x80000000u));
    return (int)(m ^ 0x80000000u);
}
__device__ __forceinline__ u64 wide_columns(const float* start, u32 columns) {
    u32 at = (u32)__cvta_generic_to_shared(start);
    return (u64)((at & 0x3ffffu) >> 4) | (u64)columns << 16 | (u64)8u << 32;
}
// What was launched before is done from here on, and what comes next may take its place: its blocks
// wait here.
__device__ __forceinline__ void wait_for_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");
    asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");
#endif
}
// A word that was posted has a bit above it.
__device__ __forceinline__ u32 awaited(const u64* at) {
    u64 posted;
    do { posted = *(const volatile u64*)at; } while (!posted);
    return (u32)posted;
}
template <class T, int N> struct __align__(sizeof(T) * N) Vector { T e[N]; };
// Small elements in whole words. CUDA's assembler (13.0 and 13.5, for architecture 9.0) takes those of a vector's second
// word from a register that nothing was written to, where all threads load the same eight bytes.
template <class T, int N> struct __align__(sizeof(T) * N) Words {
    u32 w[sizeof(T) * N / 4];
    __device__ __forceinline__ T at(u32 i) const {
        u32 in_word = i * sizeof(T) % 4 * 8;
        return (T)(w[i * sizeof(T) / 4] >> in_word & ((1u << 8 * sizeof(T)) - 1u));
    }
};
";

/// What the language has of whole numbers alone.
const FLOAT_ATOMICS: &str = "\
__device__ float float_max(float* at, float v) {
    u32 seen = *(volatile u32*)at, before;
    do {
        before = seen;
        u32 next = __float_as_uint(fmaxf(__uint_as_float(before), v));
        seen = atomicCAS((u32*)at, before, next);
    } while (seen != before);
    return __uint_as_float(before);
}
__device__ float float_min(float* at, float v) {
    u32 seen = *(volatile u32*)at, before;
    do {
        before = seen;
        u32 next = __float_as_uint(fminf(__uint_as_float(before), v));
        seen = atomicCAS((u32*)at, before, next);
    } while (seen != before);
    return __uint_as_float(before);
}
";

/// An atomic change of an element.
fn atomic(op: Atomic, buf: Buf, index: Reg, v: Reg) -> String {
    let (place, v) = (format!("{} + {}", buffer(buf), value(index)), value(v));
    let is_float = buf.dtype == DType::F32;
    let name = match op {
        Atomic::Add => "atomicAdd",
        Atomic::Max if is_float => "float_max",
        Atomic::Min if is_float => "float_min",
        Atomic::Max => "atomicMax",
        Atomic::Min => "atomicMin",
        Atomic::And => "atomicAnd",
        Atomic::Or => "atomicOr",
        Atomic::Xor => "atomicXor",
        Atomic::Exchange => "atomicExch",
    };
    format!("{name}({place}, {v})")
}

/// Bytes of a shared array, with the gap to the next one.
fn shared_size(array: Shared) -> u32 {
    (array.len * shared_ty(array).size() as u32).next_multiple_of(16)
}

/// How many bytes of shared memory a launch of `kernel` has to ask for: none where what a kernel
/// gets without asking is enough.
pub fn dynamic_shared(kernel: &Kernel) -> u32 {
    let bytes = kernel.shared.iter().map(|&array| shared_size(array)).sum();
    if bytes > 48 << 10 { bytes } else { kernel.dynamic }
}

/// What several launches are given as one, and how a block finds what its own is given: nothing of it for one launch.
/// Commands are laid out as this is.
fn together(buffers: &[String], has_words: bool, launches: u32) -> Option<(String, String)> {
    if launches == 1 {
        return None;
    }
    let fields: String = buffers.iter().map(|buffer| format!("{buffer}; ")).collect();
    let words = if has_words { "Args args; " } else { "" };
    let declarations = format!(
        "struct Work {{ {fields}{words}}};\n\
         struct Together {{ u32 first[{}]; Work work[{launches}]; }};\n",
        launches + 1
    );
    let mut own = format!(
        "    u32 mine = 0, after = {launches};\n    \
         while (after - mine > 1) {{\n        \
         u32 middle = (mine + after) / 2;\n        \
         if (blockIdx.x >= together.first[middle]) mine = middle; else after = middle;\n    \
         }}\n    \
         const u32 block = blockIdx.x - together.first[mine];\n    \
         const u32 blocks = together.first[mine + 1] - together.first[mine];\n    \
         const Work& work = together.work[mine];\n",
    );
    for (index, buffer) in buffers.iter().enumerate() {
        let _ = writeln!(own, "    {buffer} = work.b{index};");
    }
    if has_words {
        own.push_str("    const Args& args = work.args;\n");
    }
    Some((declarations, own))
}

/// The type of an element in memory.
fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 => "u8",
        DType::I8 => "signed char",
        DType::U16 | DType::F16 | DType::BF16 => "u16",
        DType::I16 => "short",
        // Both halves in a word.
        DType::U32 | DType::C32 => "u32",
        DType::I32 => "int",
        DType::U64 => "u64",
        DType::I64 => "i64",
        DType::F32 | DType::C64 => "float",
        DType::F64 => "double",
    }
}

impl Dialect for CudaC {
    fn head(&self, kernel: &Kernel) -> String {
        let mut text = String::from(PRELUDE);
        let floats = |b: &crate::ir::Binding| b.access == Access::Atomic && b.dtype == DType::F32;
        if kernel.bindings.iter().any(floats) {
            text.push_str(FLOAT_ATOMICS);
        }
        text.push_str(&kernel.header);
        if kernel.words() > 0 {
            let _ = writeln!(text, "struct Args {{ u32 w[{}]; }};", kernel.words());
        }
        let mut parameters: Vec<String> = (kernel.bindings.iter().enumerate())
            .map(|(index, binding)| format!("{}* b{index}", element(binding.dtype)))
            .collect();
        let together = together(&parameters, kernel.words() > 0, self.launches);
        if let Some((declarations, _)) = &together {
            text.push_str(declarations);
            parameters = vec!["const __grid_constant__ Together together".into()];
        } else if kernel.words() > 0 {
            parameters.push("const __grid_constant__ Args args".into());
        }
        let bounds = match kernel.at_once {
            1 => kernel.block.to_string(),
            blocks => format!("{}, {blocks}", kernel.block),
        };
        let _ = writeln!(
            text,
            "extern \"C\" __global__ void __launch_bounds__({bounds}) {}({}) {{",
            kernel.name,
            parameters.join(", ")
        );
        let dynamic = dynamic_shared(kernel) > kernel.dynamic;
        if dynamic {
            text.push_str("    extern __shared__ __align__(16) u8 dynamic[];\n");
        }
        let mut start = 0;
        for array in &kernel.shared {
            let (name, ty) = (shared(*array), self.ty(shared_ty(*array)));
            let _ = match dynamic {
                true => writeln!(text, "    {ty}* const {name} = ({ty}*)(dynamic + {start});"),
                false => writeln!(text, "    __shared__ __align__(16) {ty} {name}[{}];", array.len),
            };
            start += shared_size(*array);
        }
        text.push_str("    wait_for_before();\n");
        if let Some((_, own)) = &together {
            text.push_str(own);
        }
        text
    }

    fn ty(&self, ty: Ty) -> &'static str {
        match ty {
            Ty::Bool => "bool",
            Ty::I32 => "int",
            Ty::U32 => "u32",
            Ty::I64 => "i64",
            Ty::U64 => "u64",
            Ty::F32 => "float",
            Ty::F64 => "double",
        }
    }

    fn expr(&self, kernel: &Kernel, to: Ty, expr: &Expr) -> String {
        match *expr {
            Expr::Lit(lit) => literal(lit),
            Expr::Un(op, x) => unary(op, x),
            Expr::Bin(op, a, b) => binary(op, a, b),
            Expr::Fma(a, b, c) => {
                let name = if to == Ty::F64 { "fma" } else { "fmaf" };
                format!("{name}({}, {}, {})", value(a), value(b), value(c))
            }
            Expr::Cmp(op, a, b) => format!("{} {} {}", value(a), compare(op), value(b)),
            Expr::Select(c, a, b) => format!("{} ? {} : {}", value(c), value(a), value(b)),
            Expr::Convert(x) => format!("({}){}", self.ty(to), value(x)),
            Expr::Bits(x) => {
                let v = value(x);
                match (x.ty, to) {
                    (Ty::F32, Ty::U32) => format!("__float_as_uint({v})"),
                    (Ty::F32, _) => format!("__float_as_int({v})"),
                    (Ty::U32, Ty::F32) => format!("__uint_as_float({v})"),
                    (Ty::I32, Ty::F32) => format!("__int_as_float({v})"),
                    (Ty::F64, _) => format!("({})__double_as_longlong({v})", self.ty(to)),
                    (_, Ty::F64) => format!("__longlong_as_double((i64){v})"),
                    _ => format!("({}){v}", self.ty(to)),
                }
            }
            Expr::Load(buf, index) => {
                let place = format!("{}[{}]", buffer(buf), value(index));
                decoded(kernel.bindings[buf.id as usize].dtype, place)
            }
            Expr::Thread => "threadIdx.x".into(),
            Expr::Block if self.launches > 1 => "block".into(),
            Expr::Blocks if self.launches > 1 => "blocks".into(),
            Expr::Block => "blockIdx.x".into(),
            Expr::BlockY => "blockIdx.y".into(),
            Expr::Blocks => "gridDim.x".into(),
            Expr::Arg(n) => format!("args.w[{n}]"),
            Expr::Size(n) => format!("args.w[{}]", kernel.args + n),
            Expr::ShuffleXor(v, distance) => {
                format!("__shfl_xor_sync(0xffffffffu, {}, {distance})", value(v))
            }
            Expr::Pair(factors, a, b) => {
                format!("pair_{}({}, {})", ptx(factors), value(a), value(b))
            }
            Expr::FmaPairs(factors, words) => {
                format!("fma_{}({})", ptx(factors), words.map(value).join(", "))
            }
            Expr::Atomic(op, buf, index, v) => atomic(op, buf, index, v),
            Expr::Await(buf, index) => format!("awaited({} + {})", buffer(buf), value(index)),
            Expr::Read(_) | Expr::LoadShared(..) | Expr::LoadLocal(..) => {
                unreachable!("the printer does these")
            }
        }
    }

    fn declare(&self, ty: Ty, name: &str, is_variable: bool) -> String {
        let word = if is_variable { "" } else { "const " };
        format!("{word}{} {name}", self.ty(ty))
    }

    fn store(&self, kernel: &Kernel, buf: Buf, index: Reg, val: Reg) -> String {
        let right = encoded(kernel.bindings[buf.id as usize].dtype, val);
        format!("{}[{}] = {right};", buffer(buf), value(index))
    }

    fn swap(&self, found: Reg, buf: Buf, operands: [Reg; 3]) -> String {
        let [index, expected, v] = operands.map(value);
        let left = self.declare(found.ty, &value(found), false);
        let place = format!("({}*)({} + {index})", self.ty(found.ty), buffer(buf));
        format!("{left} = atomicCAS({place}, {expected}, {v});")
    }

    fn post(&self, buf: Buf, index: Reg, word: Reg) -> String {
        let place = format!("*(volatile u64*)({} + {})", buffer(buf), value(index));
        format!("{place} = 1ull << 32 | {};", value(word))
    }

    fn vector(&self, kernel: &Kernel, stmt: &Stmt) -> Option<String> {
        let dtype = |buf: &Buf| kernel.bindings[buf.id as usize].dtype;
        Some(match stmt {
            Stmt::LoadVector(into, buf, index) => {
                let dtype = dtype(buf);
                let decode = |place| decoded(dtype, place);
                self.load_all(into, element(dtype), dtype.size(), &buffer(*buf), *index, decode)
            }
            Stmt::StoreVector(buf, index, values) => {
                let dtype = dtype(buf);
                store_all(element(dtype), &buffer(*buf), *index, values, |v| encoded(dtype, v))
            }
            Stmt::LoadSharedVector(into, array, index) => {
                let ty = self.ty(shared_ty(*array));
                let bytes = shared_ty(*array).size();
                self.load_all(into, ty, bytes, &shared(*array), *index, |place| place)
            }
            Stmt::StoreSharedVector(array, index, values) => {
                store_all(self.ty(shared_ty(*array)), &shared(*array), *index, values, value)
            }
            _ => return None,
        })
    }

    fn local(&self, array: Local) -> String {
        format!("{} a{}[{}] = {{}};", self.ty(array.ty), array.id, array.len)
    }

    fn barrier(&self) -> &'static str {
        "__syncthreads();"
    }

    fn copy(&self, array: Shared, to: Reg, buf: Buf, from: Reg) -> String {
        let (to, from) = (value(to), value(from));
        format!(
            "asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" :: \
             \"r\"((u32)__cvta_generic_to_shared({} + {to})), \"l\"({} + {from}) : \"memory\");",
            shared(array),
            buffer(buf)
        )
    }

    fn load_counter(&self, place: &str) -> String {
        place.to_owned()
    }

    fn store_counter(&self, place: &str, value: &str) -> String {
        format!("{place} = {value};")
    }

    fn add_counter(&self, place: &str, value: &str) -> String {
        format!("atomicAdd(&{place}, {value});")
    }

    fn end_copies(&self) -> String {
        "asm volatile(\"cp.async.commit_group;\" ::: \"memory\");".into()
    }

    fn await_copies(&self, batches: u32) -> String {
        format!("asm volatile(\"cp.async.wait_group {batches};\" ::: \"memory\");")
    }

    fn matrix(&self, factors: Factors, sums: [Slot; 4], a: &[Reg], b: &[Reg]) -> String {
        let list = |places: &[String]| places.join(", ");
        let outputs = changed(&sums);
        let word = |v: &Reg| match v.ty {
            Ty::F32 => format!("\"r\"(__float_as_uint({}))", value(*v)),
            _ => format!("\"r\"({})", value(*v)),
        };
        let inputs: Vec<String> = a.iter().chain(b).map(word).collect();
        let (depth, operands) = match b.len() {
            1 => (4, "{%4,%5}, {%6}"),
            _ => (8, "{%4,%5,%6,%7}, {%8,%9}"),
        };
        let depth = if factors == Factors::Tf32 { depth } else { 2 * depth };
        let ty = ptx(factors);
        format!(
            "asm volatile(\"mma.sync.aligned.m16n8k{depth}.row.col.f32.{ty}.{ty}.f32 \
             {{%0,%1,%2,%3}}, {operands}, {{%0,%1,%2,%3}};\" : {} : {});",
            list(&outputs),
            list(&inputs)
        )
    }

    fn load_matrices(
        &self,
        into: &[Reg; 4],
        array: Shared,
        index: Reg,
        is_transposed: bool,
    ) -> String {
        let names = into.map(value);
        let outputs = names.each_ref().map(|name| format!("\"=r\"({name})")).join(", ");
        let how = if is_transposed { ".trans" } else { "" };
        format!(
            "u32 {}; asm volatile(\"ldmatrix.sync.aligned.m8n8.x4{how}.shared.b16 {{%0,%1,%2,%3}}, \
             [%4];\" : {outputs} : \"r\"((u32)__cvta_generic_to_shared({} + {})) : \"memory\");",
            names.join(", "),
            shared(array),
            value(index)
        )
    }

    fn wide(&self) -> Option<&dyn WideProducts> {
        Some(self)
    }
}

impl WideProducts for CudaC {
    /// One statement, so that no compiler moves anything between the fence and the products.
    fn start(&self, array: Shared, columns: u32, products: &[Wide]) -> Vec<String> {
        let mut sums: Vec<Slot> = Vec::new();
        for product in products {
            let fresh = product.sums.iter().filter(|sum| !sums.contains(sum));
            sums.extend(fresh.copied().collect::<Vec<_>>());
        }
        let mut inputs = Vec::new();
        let mut lines = vec![
            "asm volatile(\"{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.fence.sync.aligned;\""
                .into(),
        ];
        for product in products {
            let first = sums.len() + inputs.len();
            let places = product.sums.iter().filter_map(|sum| sums.iter().position(|s| s == sum));
            let places: Vec<String> = places.map(|at| format!("%{at}")).collect();
            inputs.extend(product.rows.map(|v| format!("\"r\"(__float_as_uint({}))", value(v))));
            inputs.push(format!(
                "\"l\"(wide_columns({} + {}, {columns}u))",
                shared(array),
                value(product.columns)
            ));
            lines.push(format!(
                "    \" wgmma.mma_async.sync.aligned.m64n{}k8.f32.tf32.tf32 {{{}}}, \
                 {{%{},%{},%{},%{}}}, %{}, p, 1, 1;\"",
                product.sums.len() * 2,
                places.join(","),
                first,
                first + 1,
                first + 2,
                first + 3,
                first + 4
            ));
        }
        lines.push("    \" wgmma.commit_group.sync.aligned; }\"".into());
        let [outputs, inputs] = [changed(&sums), inputs].map(|list| list.join(", "));
        lines.push(format!("    : {outputs} : {inputs} : \"memory\");"));
        lines
    }

    fn wait(&self, sums: &[Slot]) -> String {
        let sums = changed(sums).join(", ");
        format!("asm volatile(\"wgmma.wait_group.sync.aligned 0;\" : {sums} :: \"memory\");")
    }

    fn fence(&self) -> String {
        "asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");".into()
    }
}

/// What PTX calls factors.
fn ptx(factors: Factors) -> &'static str {
    match factors {
        Factors::Tf32 => "tf32",
        Factors::F16 => "f16",
        Factors::Bf16 => "bf16",
    }
}

/// Variables that a statement in PTX reads and changes.
fn changed(variables: &[Slot]) -> Vec<String> {
    variables.iter().map(|v| format!("\"+f\"({})", variable(*v))).collect()
}

impl CudaC {
    fn load_all(
        &self,
        into: &[Reg],
        element: &str,
        bytes: usize,
        array: &str,
        index: Reg,
        decoded: impl Fn(String) -> String,
    ) -> String {
        let in_words = bytes < 4 && (bytes * into.len()).is_multiple_of(4);
        let kind = if in_words { "Words" } else { "Vector" };
        let vector = format!("{kind}<{element}, {}>", into.len());
        let name = format!("w{}", into[0].id);
        let at = value(index);
        let mut text = format!("const {vector} {name} = *(const {vector}*)({array} + {at});");
        for (i, &val) in into.iter().enumerate() {
            let left = self.declare(val.ty, &value(val), false);
            let place = if in_words { format!("{name}.at({i})") } else { format!("{name}.e[{i}]") };
            let _ = write!(text, " {left} = {};", decoded(place));
        }
        text
    }
}

fn store_all(
    element: &str,
    array: &str,
    index: Reg,
    values: &[Reg],
    encoded: impl Fn(Reg) -> String,
) -> String {
    let vector = format!("Vector<{element}, {}>", values.len());
    let list: Vec<String> = values.iter().map(|&v| encoded(v)).collect();
    let list = list.join(", ");
    format!("*({vector}*)({array} + {}) = {vector}{{{{{list}}}}};", value(index))
}

/// What an element in memory is in its register.
fn decoded(dtype: DType, place: String) -> String {
    match dtype {
        DType::Bool => format!("{place} != 0"),
        DType::F16 => format!("half_to_float({place})"),
        DType::BF16 => format!("bfloat_to_float({place})"),
        _ => place,
    }
}

/// What a value is in memory.
fn encoded(dtype: DType, val: Reg) -> String {
    let v = value(val);
    match dtype {
        DType::F16 => format!("float_to_half({v})"),
        DType::BF16 => format!("float_to_bfloat({v})"),
        _ => format!("({}){v}", element(dtype)),
    }
}

fn literal(lit: Lit) -> String {
    match lit.ty {
        Ty::Bool => (lit.bits != 0).to_string(),
        Ty::U32 => format!("{}u", lit.bits as u32),
        Ty::I32 => format!("(int){:#x}u", lit.bits as u32),
        Ty::U64 => format!("{}ull", lit.bits),
        Ty::I64 => format!("(i64){:#x}ull", lit.bits),
        Ty::F32 => format!("__uint_as_float({:#x}u)", lit.bits as u32),
        Ty::F64 => format!("__longlong_as_double((i64){:#x}ull)", lit.bits),
    }
}

fn unary(op: Un, x: Reg) -> String {
    let v = value(x);
    let float = |name: &str| match x.ty {
        Ty::F64 => format!("{name}({v})"),
        _ => format!("{name}f({v})"),
    };
    match op {
        Un::Neg => match x.ty {
            Ty::I32 => format!("(int)(0u - (u32){v})"),
            Ty::I64 => format!("(i64)(0ull - (u64){v})"),
            _ => format!("-{v}"),
        },
        Un::Not if x.ty == Ty::Bool => format!("!{v}"),
        Un::Not => format!("~{v}"),
        Un::Abs => float("fabs"),
        Un::Sqrt => float("sqrt"),
        Un::Floor => float("floor"),
        Un::Ceil => float("ceil"),
        Un::Trunc => float("trunc"),
        Un::Round => float("rint"),
        Un::HalfToFloat => format!("half_to_float((u16){v})"),
        Un::FloatToHalf => format!("(u32)float_to_half({v})"),
        Un::BfloatToFloat => format!("bfloat_to_float((u16){v})"),
        Un::FloatToBfloat => format!("(u32)float_to_bfloat({v})"),
        Un::Tf32 => format!("float_to_tf32({v})"),
        Un::Ones => format!("(u32)__popc({v})"),
        Un::Leading => format!("(u32)__clz((int){v})"),
        Un::Reversed => format!("__brev({v})"),
        Un::Exp2 => format!("fast_exp2({v})"),
        // NVRTC reassociates nothing.
        Un::Opaque => v,
        Un::Math(f) => float(match f {
            Math::Exp => "exp",
            Math::Expm1 => "expm1",
            Math::Log => "log",
            Math::Log2 => "log2",
            Math::Log10 => "log10",
            Math::Log1p => "log1p",
            Math::Sin => "sin",
            Math::Cos => "cos",
            Math::Tan => "tan",
            Math::Asin => "asin",
            Math::Acos => "acos",
            Math::Atan => "atan",
            Math::Sinh => "sinh",
            Math::Cosh => "cosh",
            Math::Tanh => "tanh",
            Math::Asinh => "asinh",
            Math::Acosh => "acosh",
            Math::Atanh => "atanh",
            Math::Erf => "erf",
            Math::Erfc => "erfc",
            Math::ErfInv => "erfinv",
        }),
    }
}

fn binary(op: Bin, a: Reg, b: Reg) -> String {
    let (x, y) = (value(a), value(b));
    let suffix = if a.ty == Ty::F64 { "" } else { "f" };
    let sign = match op {
        Bin::Add => "+",
        Bin::Sub => "-",
        Bin::Mul => "*",
        Bin::Div => "/",
        Bin::Rem if a.ty.is_float() => return format!("fmod{suffix}({x}, {y})"),
        Bin::Rem => "%",
        Bin::And => "&",
        Bin::Or => "|",
        Bin::Xor => "^",
        Bin::Shl => "<<",
        Bin::Shr => ">>",
        Bin::Max if a.ty == Ty::F32 => return format!("fmaxf({x}, {y})"),
        Bin::Max if a.ty == Ty::I32 => return format!("int_max({x}, {y})"),
        Bin::Min if a.ty == Ty::I32 => return format!("int_min({x}, {y})"),
        Bin::Max => return format!("({x} > {y} ? {x} : {y})"),
        Bin::Min => return format!("({x} < {y} ? {x} : {y})"),
        Bin::MulHigh => return format!("__umulhi({x}, {y})"),
        Bin::Pow => return format!("pow{suffix}({x}, {y})"),
        Bin::Atan2 => return format!("atan2{suffix}({x}, {y})"),
    };
    let wraps = matches!(op, Bin::Add | Bin::Sub | Bin::Mul | Bin::Shl);
    match a.ty {
        Ty::I32 if wraps => format!("(int)((u32){x} {sign} (u32){y})"),
        Ty::I64 if wraps => format!("(i64)((u64){x} {sign} (u64){y})"),
        _ => format!("{x} {sign} {y}"),
    }
}
