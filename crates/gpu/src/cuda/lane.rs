//! Lanes: the queues of a device's work, which run side by side.
//!
//! What one lane writes and another uses is put in order by [`Uses`], which go with a block of memory
//! from one buffer to the next, and by [`Order`]. Nothing of this is done while there is one lane.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use cudarc::driver::sys::{self, CUevent, CUstream};
use cupola_core::backend::Buffer;
use cupola_core::{Device, Result};
use smallvec::SmallVec;

use super::answer::Answers;
use super::faults::FaultWords;
use super::gpu::check;
use super::staging::{Down, Up};

/// How many lanes a device has at most. Streams beyond share them.
pub const MOST: usize = 16;

/// Bytes that libraries may use while they run: what cuBLASLt and cuDNN are said to want on large GPUs.
pub const WORKSPACE: usize = 32 << 20;

/// The lane of a stream's number.
pub fn of(index: u16) -> usize {
    match usize::from(index) {
        0 => 0,
        index => 1 + (index - 1) % (MOST - 1),
    }
}

/// A queue of work: a stream of the driver, and what belongs to work that runs in order.
pub struct Lane {
    pub number: usize,
    pub stream: CUstream,
    /// Where its kernels leave the numbers of faults.
    pub faults: FaultWords,
    pub up: Mutex<Up>,
    pub down: Mutex<Down>,
    /// None where they cannot be.
    pub answers: OnceLock<Option<Mutex<Answers>>>,
    /// Memory that libraries use while they run.
    pub workspace: OnceLock<Buffer>,
    /// How often it was given work.
    given: AtomicU64,
    /// Its end, as it was when another lane last asked for it.
    end: CUevent,
}

// SAFETY: streams and events of the driver may be used by any thread.
unsafe impl Send for Lane {}
// SAFETY: likewise.
unsafe impl Sync for Lane {}

impl Lane {
    /// A lane whose work the device prefers by `priority`, of which less is more; the device has been
    /// entered.
    pub fn new(own: Device, number: usize, priority: i16) -> Result<Lane> {
        let mut end = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: a context is current, and the place is there.
        check(own, "making an event", unsafe { sys::cuEventCreate(&mut end, flags) })?;
        Ok(Lane {
            number,
            stream: new_stream(own, priority)?,
            faults: FaultWords::new(own)?,
            up: Mutex::default(),
            down: Mutex::default(),
            answers: OnceLock::new(),
            workspace: OnceLock::new(),
            given: AtomicU64::new(0),
            end,
        })
    }

    /// Notes that it was given work; the place of that work.
    pub fn give(&self) -> Place {
        Place { lane: self.number as u8, at: self.given.fetch_add(1, Ordering::SeqCst) + 1 }
    }

    /// Waits for what it was given.
    pub fn wait(&self, own: Device) -> Result<()> {
        // SAFETY: the stream lives as long as the program.
        check(own, "the device", unsafe { sys::cuStreamSynchronize(self.stream) })
    }
}

/// A stream that waits for no other; a context is current. Priorities beyond what the device knows are the
/// nearest that it does.
pub fn new_stream(own: Device, priority: i16) -> Result<CUstream> {
    let mut stream = std::ptr::null_mut();
    let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    let (mut least, mut greatest): (c_int, c_int) = (0, 0);
    // SAFETY: a context is current, and the places are there.
    let code = unsafe { sys::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) };
    check(own, "asking for priorities", code)?;
    let priority = c_int::from(priority).clamp(greatest.min(least), least.max(greatest));
    // SAFETY: the place is there.
    let code = unsafe { sys::cuStreamCreateWithPriority(&mut stream, flags, priority) };
    check(own, "making a stream", code)?;
    Ok(stream)
}

/// A place in a lane's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    lane: u8,
    at: u64,
}

/// Who used a block of memory last: whoever else wants it waits for them.
#[derive(Default, Debug)]
pub struct Uses {
    written: Option<Place>,
    read: SmallVec<[Place; 2]>,
}

impl Uses {
    /// Who wrote what is there: who reads it comes after.
    pub fn before_reading(&self) -> impl Iterator<Item = Place> {
        self.written.into_iter()
    }

    /// Who uses what is there: who overwrites it comes after.
    pub fn before_writing(&self) -> impl Iterator<Item = Place> {
        self.written.into_iter().chain(self.read.iter().copied())
    }

    /// Notes that work at `place` reads it.
    pub fn reads(&mut self, place: Place) {
        match self.read.iter_mut().find(|known| known.lane == place.lane) {
            Some(known) => known.at = known.at.max(place.at),
            None => self.read.push(place),
        }
    }

    /// Notes that work at `place`, which came after all that was noted, writes it.
    pub fn writes(&mut self, place: Place) {
        self.read.clear();
        self.written = Some(place);
    }
}

/// How far each lane has come after each other one.
#[derive(Default)]
pub struct Order {
    /// By the lane that waits, and the one that it waits for.
    known: [[u64; MOST]; MOST],
}

impl Order {
    /// Puts what `lane` is given from now on after `place`, which is of one of `lanes`.
    pub fn put<'l>(
        &mut self,
        own: Device,
        lane: &Lane,
        place: Place,
        lanes: impl FnOnce(usize) -> Option<&'l Lane>,
    ) -> Result<()> {
        let from = usize::from(place.lane);
        let known = &mut self.known[lane.number][from];
        if from == lane.number || *known >= place.at {
            return Ok(());
        }
        let Some(other) = lanes(from) else { return Ok(()) };
        let given = other.given.load(Ordering::SeqCst);
        follow(own, lane, other)?;
        *known = given;
        Ok(())
    }
}

/// Puts what `lane` is given from now on after all that `other` was given; both are held by who orders.
pub fn follow(own: Device, lane: &Lane, other: &Lane) -> Result<()> {
    // SAFETY: streams and events live as long as the program. The wait is for what was recorded last,
    // here, and a later record does not change it.
    unsafe {
        check(own, "an event", sys::cuEventRecord(other.end, other.stream))?;
        check(own, "waiting for a lane", sys::cuStreamWaitEvent(lane.stream, other.end, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Place, Uses, of};

    #[test]
    fn streams_beyond_the_last_lane_share_all_but_the_first() {
        assert_eq!([0, 1, 15, 16, 17].map(of), [0, 1, 15, 1, 2]);
        assert!((0..=u16::MAX).all(|index| of(index) < MOST));
    }

    #[test]
    fn readers_follow_the_writer_and_a_writer_follows_everybody() {
        let place = |lane, at| Place { lane, at };
        let mut uses = Uses::default();
        assert_eq!(uses.before_writing().count(), 0);
        uses.writes(place(0, 3));
        uses.reads(place(1, 5));
        uses.reads(place(2, 1));
        uses.reads(place(1, 4));
        assert_eq!(uses.before_reading().collect::<Vec<_>>(), [place(0, 3)]);
        let all = [place(0, 3), place(1, 5), place(2, 1)];
        assert_eq!(uses.before_writing().collect::<Vec<_>>(), all);
        uses.writes(place(2, 2));
        assert_eq!(uses.before_writing().collect::<Vec<_>>(), [place(2, 2)]);
    }
}
