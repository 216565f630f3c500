//! The steps of a plan as one: written down first, then run, from the third time on as a graph.
//!
//! A graph holds the parameters that it was made with. The pool gives the same work the same memory
//! again, so most runs find a graph that fits; where it does not quite, as when a learning rate
//! changes, only the launches that differ are changed. A few graphs are kept, for leaves and results
//! that take turns.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, TryLockError};

use cupola_core::backend::{Args, Executable, Stopped};
use smallvec::SmallVec;

use super::commands::Commands;
use super::gpu::{Gpu, slower};
use super::graph::Graph;
use super::library;
use super::run::Prepared;
use super::together::{Told, tell};

/// Runs that a plan has without a graph: many run once or twice.
const FIRST: u32 = 2;
/// A graph of fewer commands gains nothing.
const FEWEST: usize = 3;
/// How many graphs a plan has.
const MOST: usize = 4;
/// After so many runs in a row that no graph fits, the oldest one is made anew.
const MISSES: u32 = 8;

/// The steps of a plan.
pub struct Sequence {
    gpu: Arc<Gpu>,
    steps: Vec<Arc<Prepared>>,
    /// Those that may run at once.
    at_once: Vec<Range<usize>>,
    /// Held while the steps run. Who finds it taken runs them without graphs.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    runs: u32,
    misses: u32,
    known: Vec<Known>,
    /// Room for the next run's commands.
    spare: Commands,
    is_off: bool,
}

struct Known {
    commands: Commands,
    graph: Graph,
    /// The run that used it last.
    used: u32,
}

/// How a run is done.
#[derive(PartialEq, Eq, Debug)]
enum Way {
    /// By the graph of this number, as it is.
    Replay(usize),
    /// By this graph, when these commands have changed.
    Change(usize, Vec<usize>),
    /// By a graph that is made for it.
    Make,
    /// Without a graph.
    Direct,
}

/// What runs as a graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Graphs {
    /// What gains by it.
    Useful,
    /// Everything: so a suite, which runs little more than twice, tests them.
    All,
    /// Nothing.
    None,
}

fn graphs() -> Graphs {
    static WANTED: OnceLock<Graphs> = OnceLock::new();
    *WANTED.get_or_init(|| match std::env::var("CUPOLA_CUDA_GRAPHS").as_deref() {
        _ if library::GRAPHS.load().is_err() => Graphs::None,
        Ok("0") => Graphs::None,
        Ok("1") => Graphs::All,
        _ => Graphs::Useful,
    })
}

/// How to run `now`, where these have graphs.
fn way<'a>(known: impl ExactSizeIterator<Item = &'a Commands> + Clone, now: &Commands) -> Way {
    if let Some(same) = known.clone().position(|commands| commands.is_same(now)) {
        return Way::Replay(same);
    }
    let count = known.len();
    let alike = known.enumerate().filter(|(_, commands)| commands.is_like(now));
    let nearest = alike
        .map(|(at, commands)| (at, commands.differing(now).collect::<Vec<_>>()))
        .min_by_key(|(_, differing)| differing.len());
    match nearest {
        Some((at, differing)) if differing.len() <= (now.len() / 4).max(2) || count == MOST => {
            Way::Change(at, differing)
        }
        _ if count < MOST => Way::Make,
        _ => Way::Direct,
    }
}

impl State {
    /// Runs `now` by a graph; says whether it could.
    fn replay(&mut self, gpu: &Arc<Gpu>, now: &Commands) -> bool {
        self.runs = self.runs.wrapping_add(1);
        let is_wanted = match graphs() {
            Graphs::Useful => self.runs > FIRST && now.len() >= FEWEST,
            Graphs::All => now.len() > 0,
            Graphs::None => false,
        };
        if self.is_off || !is_wanted {
            return false;
        }
        match self.try_replay(gpu, now) {
            Ok(done) => done,
            Err(error) => {
                slower("running plans again", &error);
                self.is_off = true;
                self.known.clear();
                false
            }
        }
    }

    fn try_replay(&mut self, gpu: &Arc<Gpu>, now: &Commands) -> cupola_core::Result<bool> {
        let at = match way(self.known.iter().map(|known| &known.commands), now) {
            Way::Replay(at) => at,
            Way::Change(at, which) => {
                if self.known[at].graph.change(now, &which).is_ok() {
                    self.known[at].commands.clone_from(now);
                } else {
                    // A library may do something else for other places, which no change can say.
                    drop(self.known.swap_remove(at));
                    self.make(gpu, now)?;
                    return self.launch(self.known.len() - 1);
                }
                at
            }
            Way::Make => {
                self.make(gpu, now)?;
                self.known.len() - 1
            }
            Way::Direct => {
                self.misses += 1;
                if self.misses >= MISSES {
                    let oldest = (0..self.known.len()).min_by_key(|&at| self.known[at].used);
                    oldest.map(|at| self.known.swap_remove(at));
                }
                return Ok(false);
            }
        };
        self.launch(at)
    }

    fn make(&mut self, gpu: &Arc<Gpu>, now: &Commands) -> cupola_core::Result<()> {
        let graph = Graph::new(gpu, now)?;
        self.known.push(Known { commands: now.clone(), graph, used: self.runs });
        Ok(())
    }

    fn launch(&mut self, at: usize) -> cupola_core::Result<bool> {
        self.misses = 0;
        self.known[at].used = self.runs;
        self.known[at].graph.launch().map(|()| true)
    }
}

impl Sequence {
    /// The steps of a plan, of which those of each range may run at once.
    pub fn new(gpu: &Arc<Gpu>, steps: Vec<Arc<Prepared>>, at_once: &[Range<usize>]) -> Self {
        Sequence { gpu: gpu.clone(), steps, at_once: at_once.to_vec(), state: Mutex::default() }
    }
}

impl cupola_core::backend::Sequence for Sequence {
    fn run(&self, steps: &[Option<Args<'_>>]) -> Result<(), Stopped> {
        let none = |error| Stopped { error, begun: 0 };
        let gpu = &self.gpu;
        gpu.enter().map_err(none)?;
        let mut state = match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let mut commands = match &mut state {
            Some(state) => std::mem::take(&mut state.spare),
            None => Commands::default(),
        };
        commands.begin_for(gpu.lane().number);
        let mut todo: SmallVec<[(usize, &Prepared, &Args<'_>); 32]> = SmallVec::new();
        for (index, (prepared, args)) in self.steps.iter().zip(steps).enumerate() {
            if let Some(args) = args {
                todo.push((index, prepared.fitting(args).map_err(none)?, args));
            }
        }
        // One after another uses the same memory where it is given none.
        let lacking = todo.iter().filter(|(_, prepared, args)| prepared.given(args).is_none());
        let most = lacking.map(|(_, prepared, _)| prepared.scratch()).max().unwrap_or(0);
        let scratch = gpu.scratch(most).map_err(none)?;
        // How many commands there are before the end of each step.
        let mut ends: SmallVec<[(usize, usize); 32]> = SmallVec::new();
        let mut at_once = self.at_once.iter().peekable();
        let mut rest = &todo[..];
        while let Some(&(index, ..)) = rest.first() {
            while at_once.next_if(|range| range.end <= index).is_some() {}
            let range = at_once.peek().filter(|range| range.contains(&index));
            let end = range.map_or(index + 1, |range| range.end);
            let (now, later) = rest.split_at(rest.partition_point(|(index, ..)| *index < end));
            let told = now.iter().map(|&(_, prepared, args)| {
                let given = prepared.given(args).map(|given| gpu.start(given)).transpose()?;
                Ok((prepared, args, given.unwrap_or(scratch.start)))
            });
            let told: SmallVec<[Told<'_>; 4]> =
                told.collect::<cupola_core::Result<_>>().map_err(none)?;
            tell(gpu, &told, &mut commands).map_err(none)?;
            ends.push((now[now.len() - 1].0, commands.len()));
            rest = later;
        }
        gpu.before_run(steps.iter().flatten(), &scratch).map_err(none)?;
        let is_done = state.as_mut().is_some_and(|state| state.replay(gpu, &commands));
        let done = if is_done { Ok(()) } else { commands.submit(gpu) };
        gpu.after_run(steps.iter().flatten(), &scratch);
        if let Some(state) = &mut state {
            state.spare = commands;
        }
        done.map_err(|(at, error)| {
            let step = ends.iter().find(|(_, end)| at < *end).map_or(0, |(index, _)| *index);
            Stopped { error, begun: step + 1 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Way, way};
    use crate::cuda::commands::Commands;
    use crate::cuda::commands::tests::launches;

    fn chosen(known: &[Commands], now: &Commands) -> Way {
        way(known.iter(), now)
    }

    #[test]
    fn the_same_commands_are_replayed() {
        let known = [launches(&[1; 20]), launches(&[2; 20])];
        assert_eq!(chosen(&known, &launches(&[2; 20])), Way::Replay(1));
        assert_eq!(chosen(&[], &launches(&[2; 20])), Way::Make);
    }

    #[test]
    fn a_few_parameters_are_changed_in_the_nearest_graph() {
        let known = [launches(&[1; 20]), launches(&[2; 20])];
        let mut now = [2; 20];
        (now[3], now[19]) = (7, 8);
        assert_eq!(chosen(&known, &launches(&now)), Way::Change(1, vec![3, 19]));
    }

    #[test]
    fn memory_that_takes_turns_gets_graphs_of_its_own_while_there_is_room() {
        let mut known: Vec<_> = (0..MOST as u64 - 1).map(|i| launches(&[i; 20])).collect();
        assert_eq!(chosen(&known, &launches(&[9; 20])), Way::Make);
        known.push(launches(&[7; 20]));
        let all = (0..20).collect();
        assert_eq!(chosen(&known, &launches(&[9; 20])), Way::Change(0, all));
        assert_eq!(chosen(&known, &launches(&[9; 21])), Way::Direct);
    }
}
