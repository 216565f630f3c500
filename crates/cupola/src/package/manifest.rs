//! `manifest.json`: what is in a package, by name.

use serde::{Deserialize, Serialize};

use super::{Port, Size};
use cupola_core::DType;

/// The version of the layout of packages.
pub const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the layout.
    pub format: u32,
    /// The program that wrote it.
    pub producer: String,
    /// The least version of Cupola that reads it.
    pub runtime: String,
    /// The systems that it was converted for, as `macos` or `macos 14`; none where it is for all.
    #[serde(default)]
    pub targets: Vec<String>,
    /// A text of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    /// The hashes of the other files.
    pub files: Vec<FileEntry>,
    /// The names of the weights, which are the tensors of `weights.safetensors`.
    pub weights: Vec<String>,
    pub functions: Vec<FunctionEntry>,
}

#[derive(Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

#[derive(Serialize, Deserialize)]
pub struct FunctionEntry {
    pub name: String,
    pub traces: Vec<TraceEntry>,
}

#[derive(Serialize, Deserialize)]
pub struct TraceEntry {
    /// The program's number in `graph.bin`.
    pub program: u32,
    pub inputs: Vec<PortEntry>,
    pub outputs: Vec<PortEntry>,
}

#[derive(Serialize, Deserialize)]
pub struct PortEntry {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<SizeEntry>,
    /// Whether the caller gives it by name only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keyword: bool,
}

/// A number, the name of one, or `null`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub enum SizeEntry {
    Known(u64),
    Named(String),
    Any(()),
}

impl PortEntry {
    pub fn of(port: &Port) -> PortEntry {
        let size = |size: &Size| match size {
            Size::Known(n) => SizeEntry::Known(*n as u64),
            Size::Named(name) => SizeEntry::Named(name.clone()),
            Size::Any => SizeEntry::Any(()),
        };
        PortEntry {
            name: port.name.clone(),
            dtype: port.dtype.name().into(),
            shape: port.sizes.iter().map(size).collect(),
            keyword: port.is_keyword,
        }
    }

    pub fn port(self) -> Result<Port, String> {
        let dtype: DType = self.dtype.parse().map_err(|e: cupola_core::Error| e.to_string())?;
        let size = |size: SizeEntry| match size {
            SizeEntry::Known(n) => {
                usize::try_from(n).map(Size::Known).map_err(|_| format!("the size {n} is no size"))
            }
            SizeEntry::Named(name) => Ok(Size::Named(name)),
            SizeEntry::Any(()) => Ok(Size::Any),
        };
        let sizes = self.shape.into_iter().map(size).collect::<Result<_, _>>()?;
        Ok(Port { name: self.name, dtype, sizes, is_keyword: self.keyword })
    }
}
