//! What the GPUs of a system can hold.

use std::fmt;
use std::str::FromStr;

use cupola_core::{DType, Error, Result};

use super::decomposed::Offender;
use super::{Package, Trace};

/// A system that a package is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum System {
    /// macOS: Metal.
    Macos,
    /// iOS: Metal.
    Ios,
    /// tvOS: Metal.
    Tvos,
    /// Linux: Vulkan and CUDA.
    Linux,
    /// Windows: DirectX 12, Vulkan and CUDA.
    Windows,
    /// Browsers: WebGPU.
    Web,
}

impl System {
    /// Every system.
    pub const ALL: [System; 6] =
        [System::Macos, System::Ios, System::Tvos, System::Linux, System::Windows, System::Web];

    /// Its name in arguments.
    pub const fn name(self) -> &'static str {
        match self {
            System::Macos => "macos",
            System::Ios => "ios",
            System::Tvos => "tvos",
            System::Linux => "linux",
            System::Windows => "windows",
            System::Web => "web",
        }
    }

    /// The version from which on it has elements of `dtype`: `Some(0)` where every one does, `None` where
    /// none does.
    pub const fn since(self, dtype: DType) -> Option<u32> {
        match (self, dtype) {
            (System::Linux | System::Windows, _) => Some(0),
            (System::Macos | System::Ios | System::Tvos | System::Web, DType::F64) => None,
            (System::Macos, DType::BF16) => Some(14),
            (System::Ios | System::Tvos, DType::BF16) => Some(17),
            (System::Macos | System::Ios | System::Tvos, _) => Some(0),
            (System::Web, DType::I64 | DType::U64) => None,
            (System::Web, _) => Some(0),
        }
    }
}

impl FromStr for System {
    type Err = Error;

    fn from_str(text: &str) -> Result<System> {
        System::ALL.into_iter().find(|system| system.name() == text).ok_or_else(|| {
            let names: Vec<&str> = System::ALL.iter().map(|system| system.name()).collect();
            Error::argument("target", format!("'{text}' is none of {}", names.join(", ")))
        })
    }
}

/// A system, and the least version of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The system.
    pub system: System,
    /// The least version that a package has to run on; `None` where the latest will do.
    pub minimum: Option<u32>,
    /// Whether `float64` may become `float32`, where the system has no doubles. What is computed is another then.
    pub narrow: bool,
}

impl Target {
    /// The latest version of a system, or the least that is given.
    pub fn new(system: System, minimum: Option<u32>) -> Target {
        Target { system, minimum, narrow: false }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.system.name())?;
        self.minimum.map_or(Ok(()), |version| write!(f, " {version}"))
    }
}

/// Something that a target lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lack {
    /// The function.
    pub function: String,
    /// The node in its graph.
    pub node: usize,
    /// What the node is.
    pub op: &'static str,
    /// What it reads or gives.
    pub dtype: DType,
    /// Where it would work.
    pub works: Vec<String>,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lack { function, node, op, dtype, works } = self;
        let works = works.join(", ");
        write!(f, "'{function}', node {node} ({op}): {dtype}, which works on {works}")
    }
}

impl Target {
    /// Whether its GPUs have elements of `dtype`.
    pub fn has(self, dtype: DType) -> bool {
        self.system.since(dtype).is_some_and(|since| self.minimum.is_none_or(|own| own >= since))
    }

    /// All that a package needs, that the target lacks, and that nothing else can stand for: of each node the first such
    /// dtype.
    ///
    /// # Errors
    /// Where a weight cannot be computed.
    pub fn lacks(self, package: &Package) -> Result<Vec<Lack>> {
        let mut found = Vec::new();
        for function in package.functions() {
            for trace in &function.traces {
                if let Err(offenders) = self.decomposed(trace)? {
                    found.extend(self.listed(&function.name, trace, &offenders));
                }
            }
        }
        Ok(found)
    }

    pub(super) fn listed(self, function: &str, trace: &Trace, offenders: &[Offender]) -> Vec<Lack> {
        let lack = |&(node, dtype): &Offender| Lack {
            function: function.to_owned(),
            node,
            op: trace.graph().nodes[node].op.name(),
            dtype,
            works: works(dtype),
        };
        offenders.iter().map(lack).collect()
    }
}

/// The systems whose GPUs have elements of `dtype`.
fn works(dtype: DType) -> Vec<String> {
    let known = |system: System| match system.since(dtype)? {
        0 => Some(system.name().to_owned()),
        version => Some(format!("{} {version}", system.name())),
    };
    System::ALL.into_iter().filter_map(known).collect()
}
