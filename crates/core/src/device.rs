//! Devices and streams: where arrays live and where work runs.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A kind of device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A GPU through wgpu: Metal, Vulkan or DirectX 12.
    Wgpu,
    /// An NVIDIA GPU through CUDA.
    Cuda,
}

impl DeviceKind {
    /// Every kind.
    pub const ALL: [DeviceKind; 3] = [DeviceKind::Cpu, DeviceKind::Wgpu, DeviceKind::Cuda];
}

/// One device: a kind and a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Device {
    /// What kind of device.
    pub kind: DeviceKind,
    /// Which one of its kind, from 0.
    pub index: u16,
}

impl Device {
    /// The processor.
    pub const CPU: Device = Device { kind: DeviceKind::Cpu, index: 0 };
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DeviceKind::Cpu => f.pad("cpu"),
            DeviceKind::Wgpu => f.pad(&format!("wgpu:{}", self.index)),
            DeviceKind::Cuda => f.pad(&format!("cuda:{}", self.index)),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            Error::Device(format!(
                "'{text}' names no device: use cpu, wgpu, wgpu:N, cuda or cuda:N"
            ))
        };
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, index.parse().map_err(|_| unknown())?),
            None => (text, 0),
        };
        let kind = match kind {
            "cpu" if index == 0 => DeviceKind::Cpu,
            "wgpu" => DeviceKind::Wgpu,
            "cuda" => DeviceKind::Cuda,
            _ => return Err(unknown()),
        };
        Ok(Device { kind, index })
    }
}

/// A queue of work on a device. Work on one stream runs in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stream {
    /// The device that the stream belongs to.
    pub device: Device,
    /// Which of the device's queues, from 0.
    pub index: u16,
}

impl Stream {
    /// The first stream of `device`.
    pub const fn of(device: Device) -> Self {
        Stream { device, index: 0 }
    }
}

thread_local! {
    static DEFAULT: Cell<Stream> = const { Cell::new(Stream::of(Device::CPU)) };
}

/// The stream that new nodes on this thread record.
pub fn default_stream() -> Stream {
    DEFAULT.get()
}

/// Runs `f` with `stream` as this thread's default, and restores the former one.
pub fn with_stream<R>(stream: Stream, f: impl FnOnce() -> R) -> R {
    struct Restore(Stream);
    impl Drop for Restore {
        fn drop(&mut self) {
            DEFAULT.set(self.0);
        }
    }
    let _restore = Restore(DEFAULT.replace(stream));
    f()
}
