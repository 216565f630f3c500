//! Devices and streams: where arrays live and where work runs.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Error, Result};

/// The kinds of devices, of which later ones are preferred. `numbered` says whether there may be
/// several of a kind.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident { name: $name:literal, numbered: $numbered:literal })+) => {
        /// A kind of device.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum DeviceKind {
            $($(#[$doc])+ $kind,)+
        }

        impl DeviceKind {
            /// Every kind, the best last.
            pub const ALL: &'static [DeviceKind] = &[$(DeviceKind::$kind),+];

            /// What people and Python call it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(DeviceKind::$kind => $name,)+
                }
            }

            const fn is_numbered(self) -> bool {
                match self {
                    $(DeviceKind::$kind => $numbered,)+
                }
            }
        }
    };
}

kinds! {
    /// The processor.
    Cpu { name: "cpu", numbered: false }
    /// A GPU through wgpu: Metal, Vulkan or DirectX 12.
    Wgpu { name: "wgpu", numbered: true }
    /// An NVIDIA GPU through CUDA.
    Cuda { name: "cuda", numbered: true }
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

    /// How devices are named, for people: `cpu, wgpu, wgpu:N`.
    pub fn forms() -> String {
        let forms = DeviceKind::ALL.iter().map(|kind| match kind.is_numbered() {
            false => kind.name().to_owned(),
            true => format!("{0}, {0}:N", kind.name()),
        });
        forms.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.is_numbered() {
            false => f.pad(self.kind.name()),
            true => f.pad(&format!("{}:{}", self.kind.name(), self.index)),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown =
            || Error::Device(format!("'{text}' names no device; devices are: {}", Device::forms()));
        let (name, index) = match text.split_once(':') {
            Some((name, index)) => (name, index.parse().map_err(|_| unknown())?),
            None => (text, 0),
        };
        let fits = |kind: &&DeviceKind| kind.name() == name && (index == 0 || kind.is_numbered());
        let kind = *DeviceKind::ALL.iter().find(fits).ok_or_else(unknown)?;
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

    /// A stream of `device` that no other call gives. Where its work and that of other streams could go on at once,
    /// a device prefers the one of lower `priority`, if it has priorities: CUDA devices have 0 and a few below,
    /// and take others for the nearest of these.
    /// The work of two streams overlaps on the CPU and on CUDA devices; through wgpu there is one queue.
    ///
    /// # Errors
    /// Where the device has as many streams as there are numbers.
    ///
    /// # Example
    /// ```
    /// use cupola_core::device::{Device, Stream};
    /// let urgent = Stream::another(Device::CPU, -1)?;
    /// assert_ne!(urgent, Stream::of(Device::CPU));
    /// assert_eq!(urgent.priority(), -1);
    /// # Ok::<(), cupola_core::Error>(())
    /// ```
    pub fn another(device: Device, priority: i16) -> Result<Self> {
        let mut all = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(device).or_default();
        let index = u16::try_from(known.len() + 1)
            .map_err(|_| Error::Device(format!("{device} has no number for another stream")))?;
        known.push(priority);
        Ok(Stream { device, index })
    }

    /// What [`Stream::another`] was told; 0 for a first stream.
    pub fn priority(self) -> i16 {
        let all = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
        let at = usize::from(self.index).checked_sub(1);
        all.get(&self.device).zip(at).and_then(|(known, at)| known.get(at)).copied().unwrap_or(0)
    }
}

/// The priorities of the streams of each device but the first.
static OTHERS: Mutex<BTreeMap<Device, Vec<i16>>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The default of this thread, where it has one of its own.
    static OWN: Cell<Option<Stream>> = const { Cell::new(None) };
}

thread_local! {
    /// The number of the stream that this thread works for.
    static QUEUE: Cell<u16> = const { Cell::new(0) };
}

/// The number of the stream that this thread's work is for: what backends with several queues ask.
pub fn queue() -> u16 {
    QUEUE.get()
}

/// Runs `f`, whose work is for `stream`.
pub(crate) fn working_for<R>(stream: Stream, f: impl FnOnce() -> R) -> R {
    struct Restore(u16);
    impl Drop for Restore {
        fn drop(&mut self) {
            QUEUE.set(self.0);
        }
    }
    let _restore = Restore(QUEUE.replace(stream.index));
    f()
}

/// The default of every other thread, packed; [`UNDECIDED`] for what [`FIND`] finds.
static COMMON: AtomicU64 = AtomicU64::new(Stream::of(Device::CPU).packed());

/// A device is looked for when it is first needed.
const UNDECIDED: u64 = u64::MAX;

static FIND: OnceLock<fn() -> Device> = OnceLock::new();

impl Stream {
    const fn packed(self) -> u64 {
        (self.device.kind as u64) << 32 | (self.device.index as u64) << 16 | self.index as u64
    }

    fn unpacked(word: u64) -> Stream {
        let kind = DeviceKind::ALL[(word >> 32) as usize];
        Stream { device: Device { kind, index: (word >> 16) as u16 }, index: word as u16 }
    }
}

/// The stream that new nodes on this thread record.
pub fn default_stream() -> Stream {
    OWN.get().unwrap_or_else(common)
}

fn common() -> Stream {
    match COMMON.load(Ordering::Relaxed) {
        UNDECIDED => {
            let found = FIND.get().map_or(Device::CPU, |find| find());
            set_default_stream(Stream::of(found));
            Stream::of(found)
        }
        word => Stream::unpacked(word),
    }
}

/// Makes `stream` the default of every thread that is not inside [`with_stream`]. It is the first
/// stream of the CPU until then.
pub fn set_default_stream(stream: Stream) {
    COMMON.store(stream.packed(), Ordering::Relaxed);
}

/// Makes the device that `find` finds the default, as [`set_default_stream`]; it is called at the
/// first use.
pub(crate) fn set_default_by(find: fn() -> Device) {
    FIND.get_or_init(|| find);
    COMMON.store(UNDECIDED, Ordering::Relaxed);
}

/// [`crate::binding::replace_thread_stream`].
pub(crate) fn replace_own(stream: Option<Stream>) -> Option<Stream> {
    OWN.replace(stream)
}

/// Runs `f` with `stream` as this thread's default, and restores the former one.
pub fn with_stream<R>(stream: Stream, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Stream>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OWN.set(self.0);
        }
    }
    let _restore = Restore(OWN.replace(Some(stream)));
    f()
}
