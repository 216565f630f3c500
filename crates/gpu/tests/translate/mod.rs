//! What Metal and DirectX 12 would be given for a kernel: checked here, since no test of ours runs
//! on a Mac or on Windows.

use cupola_gpu::ir::Kernel;
use naga::Module;
use naga::back::{hlsl, msl};
use naga::valid::{
    Capabilities, ModuleInfo, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator,
};

/// Translates the text of a kernel to both languages, and panics where that does not work.
pub fn translate(kernel: &Kernel, text: &str) {
    let name = &kernel.name;
    let module = naga::front::wgsl::parse_str(text)
        .unwrap_or_else(|e| panic!("{name}: {}\n{text}", e.emit_to_string(text)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .subgroup_stages(ShaderStages::COMPUTE)
        .subgroup_operations(SubgroupOperationSet::all())
        .validate(&module)
        .unwrap_or_else(|e| panic!("{name}: {}\n{text}", e.emit_to_string(text)));
    // Neither has doubles in wgpu, and a device without them gets no such kernel.
    if text.contains(": f64") || text.contains("<f64>") {
        return;
    }
    let expect = |language: &str, result: &str, needed: &[String]| {
        for part in needed {
            assert!(
                result.contains(part),
                "{name}: '{part}' is missing in the {language}\n{result}"
            );
        }
    };
    let buffers = 0..kernel.bindings.len();
    let metal =
        metal(&module, &info).unwrap_or_else(|e| panic!("{name} has no Metal text: {e}\n{text}"));
    let mut needed = vec!["kernel void main_(".to_owned(), "#include <metal_stdlib>".to_owned()];
    needed.extend(buffers.clone().map(|b| format!("[[buffer({b})]]")));
    if !kernel.shared.is_empty() {
        needed.push("threadgroup ".into());
        needed.push("threadgroup_barrier(metal::mem_flags::mem_threadgroup)".into());
    }
    if text.contains("subgroupShuffleXor") {
        needed.push("metal::simd_shuffle_xor(".into());
    }
    expect("Metal text", &metal, &needed);
    let direct =
        direct(&module, &info).unwrap_or_else(|e| panic!("{name} has no HLSL text: {e}\n{text}"));
    let mut needed = vec![format!("[numthreads({}, 1, 1)]", kernel.block), "void main(".into()];
    needed.extend(buffers.map(|b| format!("RWByteAddressBuffer b{b}_ : register(u{b})")));
    if !kernel.shared.is_empty() {
        needed.push("groupshared ".into());
        needed.push("GroupMemoryBarrierWithGroupSync()".into());
    }
    if text.contains("subgroupShuffleXor") {
        needed.push("WaveReadLaneAt(".into());
    }
    expect("HLSL text", &direct, &needed);
}

fn metal(module: &Module, info: &ModuleInfo) -> Result<String, msl::Error> {
    // As wgpu binds: buffers in order, their sizes behind them.
    let mut resources = msl::EntryPointResources { sizes_buffer: Some(30), ..Default::default() };
    for (_, variable) in module.global_variables.iter() {
        if let Some(binding) = variable.binding {
            let slot = binding.binding as u8;
            let target =
                msl::BindTarget { buffer: Some(slot), mutable: true, ..Default::default() };
            resources.resources.insert(binding, target);
        }
    }
    let options = msl::Options {
        lang_version: (2, 4),
        per_entry_point_map: [("main".to_owned(), resources)].into(),
        ..Default::default()
    };
    let pipeline = msl::PipelineOptions::default();
    msl::write_string(module, info, &options, &pipeline).map(|(text, _)| text)
}

fn direct(module: &Module, info: &ModuleInfo) -> Result<String, hlsl::Error> {
    let mut options = hlsl::Options {
        // The first with elements of 16 bits.
        shader_model: hlsl::ShaderModel::V6_2,
        fake_missing_bindings: false,
        zero_initialize_workgroup_memory: false,
        ..Default::default()
    };
    for (_, variable) in module.global_variables.iter() {
        if let Some(binding) = variable.binding {
            let target = hlsl::BindTarget { register: binding.binding, ..Default::default() };
            options.binding_map.insert(binding, target);
        }
    }
    let mut text = String::new();
    let pipeline = hlsl::PipelineOptions::default();
    hlsl::Writer::new(&mut text, &options, &pipeline).write(module, info, None)?;
    Ok(text)
}
