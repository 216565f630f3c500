//! What the device is told in one run: launches and library calls, with their parameters.
//!
//! They are written down before any of them begins. So what fails before has done nothing, and a
//! run can be compared with one before it.

use std::sync::Arc;

use cudarc::driver::sys::CUstream;
use cupola_core::Result;

use super::compile::Function;
use super::gpu::Gpu;

/// Work that a library does instead of a kernel of ours.
pub trait Library: Send + Sync {
    /// Gives the work to a stream, on regions that start at these places; the device has been
    /// entered. The same places give the same work.
    fn enqueue(&self, gpu: &Arc<Gpu>, stream: CUstream, places: &[u64]) -> Result<()>;
}

/// A kernel, its grid, and how many threads and shared bytes its blocks have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchConfig {
    /// The kernel.
    pub function: Function,
    /// Blocks.
    pub grid: [u32; 2],
    /// Threads in a block.
    pub threads: u32,
    /// Bytes of shared memory that a block asks for.
    pub shared: u32,
}

/// What a command does.
#[derive(Clone)]
pub enum Command {
    /// Launches a kernel; the parameters are laid out as C lays out the kernel's.
    Launch(LaunchConfig),
    /// Calls a library; the parameters are the places.
    Call(Arc<dyn Library>),
}

impl PartialEq for Command {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Command::Launch(a), Command::Launch(b)) => a == b,
            (Command::Call(a), Command::Call(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// A command, and which of the parameters are its own.
#[derive(Clone, PartialEq)]
struct Entry {
    command: Command,
    /// Its first 64-bit word.
    first: usize,
    bytes: usize,
}

/// Commands in order, for one lane.
#[derive(Clone, Default)]
pub struct Commands {
    lane: usize,
    list: Vec<Entry>,
    /// The parameters of all commands. Each command begins a new word.
    words: Vec<u64>,
}

impl Commands {
    /// Begins a command; its parameters follow.
    pub fn begin(&mut self, command: Command) {
        self.list.push(Entry { command, first: self.words.len(), bytes: 0 });
    }

    /// Adds 64 bits to the last command, which has a multiple of 64.
    pub fn pointer(&mut self, value: u64) {
        self.words.push(value);
        self.grow(8);
    }

    /// Adds 32 bits to the last command.
    pub fn word(&mut self, value: u32) {
        match self.words.last_mut().filter(|_| self.list.last().is_some_and(|c| c.bytes % 8 != 0)) {
            Some(last) => *last |= u64::from(value) << 32,
            None => self.words.push(u64::from(value)),
        }
        self.grow(4);
    }

    /// Fills the last command up with zeros: to a multiple of 8 bytes, and to so many.
    pub fn fill_to(&mut self, bytes: usize) {
        if let Some(last) = self.list.last_mut() {
            last.bytes = last.bytes.next_multiple_of(8).max(bytes);
            self.words.resize(last.first + last.bytes / 8, 0);
        }
    }

    fn grow(&mut self, bytes: usize) {
        if let Some(last) = self.list.last_mut() {
            last.bytes += bytes;
        }
    }

    /// Forgets everything; what follows is for `lane`.
    pub fn begin_for(&mut self, lane: usize) {
        self.lane = lane;
        self.list.clear();
        self.words.clear();
    }

    /// How many commands there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// What a command does, its parameters, and how many bytes they have.
    pub fn get(&self, index: usize) -> (&Command, &[u64], usize) {
        let Entry { command, first, bytes } = &self.list[index];
        (command, &self.words[*first..first + bytes.div_ceil(8)], *bytes)
    }

    /// Whether `other` does the same on the same lane, but for the values of parameters. What libraries do
    /// uses memory of a lane.
    pub fn is_like(&self, other: &Commands) -> bool {
        self.lane == other.lane && self.list == other.list
    }

    /// The commands whose parameters are others in `other`, which is like this.
    pub fn differing<'a>(&'a self, other: &'a Commands) -> impl Iterator<Item = usize> + 'a {
        (0..self.len()).filter(|&index| self.get(index).1 != other.get(index).1)
    }

    /// Whether `other` does the very same.
    pub fn is_same(&self, other: &Commands) -> bool {
        self.words == other.words && self.is_like(other)
    }

    /// Gives every command to the device, which has been entered. Where one fails its number comes
    /// back, too.
    pub fn submit(&self, gpu: &Arc<Gpu>) -> std::result::Result<(), (usize, cupola_core::Error)> {
        (0..self.len()).try_for_each(|index| {
            let (command, parameters, bytes) = self.get(index);
            match command {
                Command::Launch(config) => gpu.launch(config, parameters, bytes),
                Command::Call(library) => library.enqueue(gpu, gpu.stream(), parameters),
            }
            .map_err(|error| (index, error))
        })
    }
}

#[cfg(test)]
pub mod tests {
    use std::sync::Arc;

    use super::{Command, Commands, LaunchConfig, Library};
    use crate::cuda::compile::Function;
    use crate::cuda::gpu::Gpu;

    /// A launch of some kernel.
    pub fn launch(function: usize, blocks: u32) -> Command {
        let function = Function(std::ptr::without_provenance_mut(function));
        Command::Launch(LaunchConfig { function, grid: [blocks, 1], threads: 128, shared: 0 })
    }

    /// Launches with a parameter each, which are of the same kernel.
    pub fn launches(parameters: &[u64]) -> Commands {
        let mut commands = Commands::default();
        for &parameter in parameters {
            commands.begin(launch(1, 1));
            commands.pointer(parameter);
        }
        commands
    }

    #[test]
    fn words_follow_pointers_without_gaps() {
        let mut commands = Commands::default();
        commands.begin(launch(1, 1));
        commands.pointer(7);
        [1, 2, 3].into_iter().for_each(|word| commands.word(word));
        commands.begin(launch(2, 1));
        commands.word(4);
        assert_eq!((commands.get(0).1, commands.get(0).2), (&[7, 1 | 2 << 32, 3][..], 20));
        assert_eq!((commands.get(1).1, commands.get(1).2), (&[4][..], 4));
    }

    #[test]
    fn what_is_filled_up_is_zero() {
        let mut commands = Commands::default();
        commands.begin(launch(1, 1));
        [1, 2, 3].into_iter().for_each(|word| commands.word(word));
        commands.fill_to(8);
        commands.pointer(7);
        commands.fill_to(40);
        assert_eq!((commands.get(0).1, commands.get(0).2), (&[1 | 2 << 32, 3, 7, 0, 0][..], 40));
    }

    #[test]
    fn commands_differ_in_what_they_do_or_in_parameters() {
        let first = launches(&[1, 2, 3]);
        assert!(first.is_same(&first.clone()));
        let second = launches(&[1, 5, 3]);
        assert!(first.is_like(&second) && !first.is_same(&second));
        assert_eq!(first.differing(&second).collect::<Vec<_>>(), [1]);
        assert!(!first.is_like(&launches(&[1, 2])));
        let mut wider = launches(&[1, 2]);
        wider.begin(launch(1, 9));
        wider.pointer(3);
        assert!(!first.is_like(&wider));
    }

    #[test]
    fn calls_of_other_libraries_are_others() {
        let call = |library: &Arc<dyn Library>| {
            let mut commands = Commands::default();
            commands.begin(Command::Call(library.clone()));
            commands.pointer(8);
            commands
        };
        // Not of size zero: those may share their place.
        let [a, b]: [Arc<dyn Library>; 2] = [Arc::new(Counted(0)), Arc::new(Counted(1))];
        assert!(call(&a).is_same(&call(&a)));
        assert!(!call(&a).is_like(&call(&b)));
    }

    struct Counted(#[expect(dead_code, reason = "gives it a place of its own")] u32);

    impl Library for Counted {
        fn enqueue(
            &self,
            _: &Arc<Gpu>,
            _: cudarc::driver::sys::CUstream,
            _: &[u64],
        ) -> cupola_core::Result<()> {
            Ok(())
        }
    }
}
