//! Kernels in the device's own language: the user's text between declarations of the names that it may use.

use std::fmt::Write;

use cupola_core::DType;
use cupola_core::backend::Operand;
use cupola_core::prim::call::language::Parameter;
use cupola_core::prim::call::{Language, Text};

use super::super::{BufferRef, Draft, Missing};
use super::{Grid, access};
use crate::emit;
use crate::ir::{Ty, Val};

/// Writes a kernel of text.
pub fn write(
    k: &Draft,
    source: &Text,
    grid: &Grid<'_>,
    places: &[(BufferRef, Operand)],
    inputs: usize,
) -> Result<(), Missing> {
    let language = k.target.language;
    let mut lines = String::new();
    let is_shared = |(name, _): &&(String, Parameter)| name == Parameter::SHARED_MEMORY;
    if let (Language::Cuda, Some((_, Parameter::Integer(bytes)))) =
        (language, source.template.iter().find(is_shared))
    {
        let most = k.target.shared_bytes;
        let fitting = u32::try_from(*bytes).ok().filter(|&bytes| bytes <= most);
        k.dynamic(fitting.ok_or_else(|| {
            Missing(format!("a threadgroup shares {bytes} bytes: {most} is the most"))
        })?);
    }
    if let Some(inside) = grid.inside {
        k.when(!inside, || k.quit());
    }
    for (number, (name, (buffer, operand))) in source.names.iter().zip(places).enumerate() {
        let access = access(number < inputs, source.has_atomic_outputs);
        let dtype = operand.aval.dtype;
        let element = element(language, dtype).ok_or_else(|| {
            Missing(format!("'{name}': a source of the device's own has no arrays of {dtype}"))
        })?;
        let view = match *buffer {
            BufferRef::Scratch(scratch) => k.scratch(scratch, dtype, access),
            other => k.view(other, dtype, access),
        };
        let (buf, offset) = (emit::buffer(view.buf), named(view.offset));
        let is_value = number < inputs && operand.aval.shape.rank() == 0;
        let _ = match (language, is_value) {
            (Language::Wgsl, true) => writeln!(lines, "    let {name} = {buf}[{offset}];"),
            (Language::Wgsl, false) => {
                // Only 0 is a multiple of so many.
                if !matches!(buffer, BufferRef::Scratch(_)) {
                    k.assume(*buffer, u32::MAX);
                }
                writeln!(lines, "    let {name} = &{buf};")
            }
            (Language::Cuda, true) => {
                writeln!(lines, "    const {element} {name} = {buf}[{offset}];")
            }
            (Language::Cuda, false) => {
                let constant = if number < inputs { "const " } else { "" };
                writeln!(lines, "    {constant}{element}* const {name} = {buf} + {offset};")
            }
        };
        let shape: Vec<i64> = operand.aval.shape.iter().map(|&size| size as i64).collect();
        let strides: Vec<i64> = operand.strides.iter().map(|&stride| stride as i64).collect();
        for (what, sizes) in [("shape", shape), ("strides", strides)] {
            let own = format!("{name}_{what}");
            if sizes.is_empty() || !source.body.contains(&own) {
                continue;
            }
            let values: Vec<String> =
                sizes.iter().map(|&size| named(k.size(size, Ty::I32))).collect();
            let (count, values) = (values.len(), values.join(", "));
            let _ = match language {
                Language::Wgsl => {
                    writeln!(lines, "    let {own} = array<i32, {count}>({values});")
                }
                Language::Cuda => writeln!(lines, "    const int {own}[] = {{{values}}};"),
            };
        }
        let rank = operand.aval.shape.rank();
        let _ = match language {
            Language::Wgsl => writeln!(lines, "    const {name}_ndim = {rank};"),
            Language::Cuda => writeln!(lines, "    constexpr int {name}_ndim = {rank};"),
        };
    }
    positions(k, grid, language, &mut lines);
    let header = header(source, language)?;
    let text = match language {
        Language::Wgsl => format!("{lines}{SOURCE}\n{}\n", source.body),
        // Errors count the user's lines. What follows is a bracket.
        Language::Cuda => format!("{lines}#line 1 \"source\"\n{}\n", source.body),
    };
    k.text(&header, text);
    Ok(())
}

/// What stands before the first line of the user's.
pub const SOURCE: &str = "    // source";

/// What stands before the first line of the user's header, in WGSL.
pub const HEADER: &str = "// header";

/// What a value is called in the text.
fn named(v: Val<'_>) -> String {
    emit::value(v.reg())
}

/// What an element is called, where a text can have such arrays.
fn element(language: Language, dtype: DType) -> Option<&'static str> {
    Some(match (language, dtype) {
        (Language::Wgsl, DType::F32) => "f32",
        (Language::Wgsl, DType::I32) => "i32",
        (Language::Wgsl, DType::U32) => "u32",
        (Language::Wgsl, _) => return None,
        (_, DType::Bool | DType::U8) => "unsigned char",
        (_, DType::I8) => "signed char",
        (_, DType::U16) => "unsigned short",
        (_, DType::I16) => "short",
        (_, DType::U32) => "unsigned int",
        (_, DType::I32) => "int",
        (_, DType::U64) => "unsigned long long",
        (_, DType::I64) => "long long",
        (_, DType::F32) => "float",
        (_, DType::F64) => "double",
        (_, DType::F16 | DType::BF16 | DType::C32 | DType::C64) => return None,
    })
}

/// The numbers of the launch: under Metal's names, and under CUDA's in its language.
fn positions(k: &Draft, grid: &Grid<'_>, language: Language, lines: &mut String) {
    let numbers = |sizes: [u32; 3]| sizes.map(|size| k.size(size.into(), Ty::U32));
    let index = named(grid.index);
    let _ = match language {
        Language::Wgsl => writeln!(lines, "    let thread_index_in_threadgroup = {index};"),
        Language::Cuda => {
            writeln!(lines, "    const unsigned thread_index_in_threadgroup = {index};")
        }
    };
    let all = [
        ("thread_position_in_grid", "", grid.position),
        ("thread_position_in_threadgroup", "threadIdx", grid.local),
        ("threadgroup_position_in_grid", "blockIdx", grid.block),
        ("threads_per_threadgroup", "blockDim", grid.group.map(|size| k.u32(size))),
        ("threads_per_grid", "", numbers(grid.threads)),
        ("threadgroups_per_grid", "gridDim", numbers(grid.groups)),
    ];
    for (name, own, values) in all {
        let values = values.map(named).join(", ");
        let _ = match language {
            Language::Wgsl => writeln!(lines, "    let {name} = vec3<u32>({values});"),
            Language::Cuda => writeln!(lines, "    const uint3 {name} = make_uint3({values});"),
        };
        if language == Language::Cuda && !own.is_empty() {
            let _ = writeln!(lines, "    const uint3 {own} = {name};");
        }
    }
}

/// The template's names, and the user's header.
fn header(source: &Text, language: Language) -> Result<String, Missing> {
    let mut text = String::new();
    for (name, parameter) in &source.template {
        let line = match (language, *parameter) {
            (Language::Wgsl, Parameter::Type(scalar)) => {
                let dtype = super::dtype(scalar);
                let element = element(language, dtype)
                    .ok_or_else(|| Missing(format!("'{name}': WGSL has no {dtype}")))?;
                format!("alias {name} = {element};")
            }
            (Language::Wgsl, Parameter::Integer(v)) => format!("const {name} = {v};"),
            (Language::Wgsl, Parameter::Bool(v)) => format!("const {name} = {v};"),
            (Language::Cuda, Parameter::Type(scalar)) => {
                let dtype = super::dtype(scalar);
                let element = element(language, dtype)
                    .ok_or_else(|| Missing(format!("'{name}': there is no {dtype} here")))?;
                format!("using {name} = {element};")
            }
            (Language::Cuda, Parameter::Integer(v)) => {
                format!("constexpr long long {name} = {v};")
            }
            (Language::Cuda, Parameter::Bool(v)) => format!("constexpr bool {name} = {v};"),
        };
        text.push_str(&line);
        text.push('\n');
    }
    if !source.header.is_empty() {
        text.push_str(match language {
            Language::Wgsl => HEADER,
            Language::Cuda => "#line 1 \"header\"",
        });
        text.push('\n');
        text.push_str(&source.header);
        text.push('\n');
    }
    Ok(text)
}
