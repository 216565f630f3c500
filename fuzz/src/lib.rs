//! What the targets of cargo-fuzz check, a module each: any bytes are read or refused, with
//! memory in proportion to them, and what was read is the same after it was written.

pub mod cifar;
pub mod coreml;
mod edits;
pub mod graph;
pub mod gzip;
pub mod idx;
pub mod jpeg;
mod memory;
pub mod model;
pub mod npy;
pub mod package;
pub mod png;
pub mod safetensors;
mod scratch;
pub mod state;
mod training;

// The program's own reader of pictures: it is no library.
#[allow(dead_code)]
#[path = "../../crates/cli/src/failure.rs"]
mod failure;
mod picture;
#[allow(dead_code)]
#[path = "../../crates/cli/src/pictures.rs"]
mod pictures;

#[doc(hidden)]
pub use libfuzzer_sys;

/// Where the files go that a target begins with; it then has nothing else to do.
const SEEDS: &str = "CUPOLA_FUZZ_SEEDS";

/// Writes the valid files that the mutations start from, where they are asked for.
pub fn begin(seeds: fn() -> Vec<Vec<u8>>) {
    let Some(folder) = std::env::var_os(SEEDS) else { return };
    for (index, seed) in seeds().iter().enumerate() {
        let path = std::path::Path::new(&folder).join(format!("seed-{index}"));
        std::fs::write(path, seed).expect("the folder of the seeds can be written to");
    }
}

/// Runs one case under the limit on memory.
pub fn case(check: fn(&[u8]), data: &[u8]) {
    memory::limited(data.len(), || check(data));
}

/// The target of a module that has `seeds` and `check`.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        use $crate::libfuzzer_sys;
        libfuzzer_sys::fuzz_target!(init: $crate::begin($crate::$name::seeds), |data: &[u8]| {
            $crate::case($crate::$name::check, data)
        });
    };
}
