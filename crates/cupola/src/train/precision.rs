//! What a training computes its products in.

use std::fmt;
use std::str::FromStr;

use cupola_core::precision::{MatmulPrecision, matmul_precision, set_matmul_precision};
use cupola_core::{DType, Device, DeviceKind, Error, Result};
use serde::{Deserialize, Serialize};

use crate::amp::Policy;

/// What a training computes its products in. Parameters, sums and the optimiser are `float32` always.
///
/// # Example
/// ```
/// use cupola::train::Precision;
/// assert_eq!("bf16".parse::<Precision>()?, Precision::Bf16);
/// assert_eq!(Precision::F16.to_string(), "f16");
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// `float32`, on matrix units, too.
    F32,
    /// `float32`, of which matrix units round factors to TF32.
    Tf32,
    /// Mixed with `bfloat16`.
    Bf16,
    /// Mixed with `float16`, with a scaled loss.
    F16,
}

impl Precision {
    /// All of them.
    pub const ALL: [Precision; 4] =
        [Precision::F32, Precision::Tf32, Precision::Bf16, Precision::F16];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
            Precision::F16 => "f16",
        }
    }

    /// What trains fastest on a device with the loss curve of `float32`: `bfloat16` where there are
    /// matrix units for it, and else what [`Precision::default`] is.
    pub fn best(device: Device) -> Precision {
        match device.kind {
            DeviceKind::Cuda => Precision::Bf16,
            _ => Precision::default(),
        }
    }

    /// What operations are recorded under.
    ///
    /// # Errors
    /// None: the dtypes are those that a policy takes.
    pub fn policy(self) -> Result<Option<Policy>> {
        match self {
            Precision::F32 | Precision::Tf32 => Ok(None),
            Precision::Bf16 => Policy::new(DType::BF16).map(Some),
            Precision::F16 => Policy::new(DType::F16).map(Some),
        }
    }

    /// Makes products of `float32` in this process what the precision says of them.
    pub(super) fn set(self) {
        match self {
            Precision::F32 => set_matmul_precision(MatmulPrecision::Full),
            Precision::Tf32 => set_matmul_precision(MatmulPrecision::Tf32),
            Precision::Bf16 | Precision::F16 => {}
        }
    }
}

/// What products of `float32` are in this process.
impl Default for Precision {
    fn default() -> Self {
        match matmul_precision() {
            MatmulPrecision::Full => Precision::F32,
            MatmulPrecision::Tf32 => Precision::Tf32,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|precision| precision.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Precision::name).join(", ");
            Error::argument("precision", format!("'{text}' is none of {known}"))
        })
    }
}
