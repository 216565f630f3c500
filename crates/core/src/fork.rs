//! What stays usable in a process that forks.
//!
//! The child has one thread, the one that forked, and copies of all memory: of locks that other
//! threads held, too, and of arrays that they were computing. So evaluations run and take their locks
//! [`inside`] of a gate, which is closed while the process forks: it waits for those under way. What
//! was not begun is computed anew in the child, which tells it by its [`generation`]. A thread that
//! waits [`outside`] of the gate, which it does before it has overwritten anything, does not go on in
//! the child either: what it has begun is [undone](Begun) there, and computed anew, too.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::ThreadId;

use crate::error::{Error, Result};

/// Shared by who holds locks, exclusive to who forks.
static GATE: RwLock<()> = RwLock::new(());

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Work that a thread has begun.
pub trait Begun: Send + Sync {
    /// Makes it as if it had not been begun, in a process that its thread was not copied to.
    fn undo(&self);
}

/// What threads that are outside of the gate have begun.
static LEFT: Mutex<Vec<(ThreadId, Arc<dyn Begun>)>> = Mutex::new(Vec::new());

thread_local! {
    /// What this thread has begun, the innermost last.
    static BEGUN: RefCell<Vec<Arc<dyn Begun>>> = const { RefCell::new(Vec::new()) };
    /// How often this thread is inside, and its share of the gate.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static SHARED: RefCell<Option<RwLockReadGuard<'static, ()>>> = const { RefCell::new(None) };
    static CLOSED: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// How many forks lie between this process and the one that started.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// An error in a child for what was begun in `generation`, before the fork.
///
/// # Errors
/// Where this process was forked since.
pub fn check(generation: u32, what: &str) -> Result<()> {
    if generation == self::generation() {
        return Ok(());
    }
    Err(Error::Device(format!(
        "{what} does not work in a process that was forked since: start processes by spawn instead"
    )))
}

/// While this lives the process is not forked. It stays on its thread.
pub struct Inside(PhantomData<*const ()>);

/// Keeps others from forking while this thread computes or holds locks. Meanwhile it must not wait for
/// an evaluation of another thread, nor for who may fork.
pub fn inside() -> Inside {
    // A thread that is inside does not queue up behind who waits to fork.
    if DEPTH.get() == 0 {
        enter();
    }
    joined()
}

/// For a thread that works for one that is inside, and waits for it.
pub fn joined() -> Inside {
    DEPTH.set(DEPTH.get() + 1);
    Inside(PhantomData)
}

fn enter() {
    let shared = GATE.read().unwrap_or_else(PoisonError::into_inner);
    // Where the thread is at its end, what it drops last is not kept from forks.
    _ = SHARED.try_with(|own| own.replace(Some(shared)));
}

/// Notes `work` as begun by this thread while `f` runs.
pub fn begun<R>(work: Arc<dyn Begun>, f: impl FnOnce() -> R) -> R {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            BEGUN.with_borrow_mut(Vec::pop);
        }
    }
    BEGUN.with_borrow_mut(|begun| begun.push(work));
    let _ends = Ends;
    f()
}

/// Calls `f`, which may wait for who forks, outside of the gate. What this thread has begun must not
/// have overwritten anything yet.
pub fn outside<R>(f: impl FnOnce() -> R) -> R {
    let own = std::thread::current().id();
    let count = BEGUN.with_borrow(|begun| {
        lock(&LEFT).extend(begun.iter().map(|work| (own, work.clone())));
        begun.len()
    });
    let was_inside = SHARED.take().is_some();
    let result = f();
    if was_inside {
        enter();
    }
    // Its last ones: what it waits for may have gone outside, too.
    let mut left = lock(&LEFT);
    for _ in 0..count {
        if let Some(last) = left.iter().rposition(|(thread, _)| *thread == own) {
            left.remove(last);
        }
    }
    result
}

impl Drop for Inside {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            _ = SHARED.try_with(RefCell::take);
        }
    }
}

/// What a mutex guards, locked inside of the gate.
pub struct Locked<'m, T> {
    guard: MutexGuard<'m, T>,
    _inside: Inside,
}

/// Locks inside of the gate, and goes on where another thread panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> Locked<'_, T> {
    let inside = inside();
    Locked { guard: mutex.lock().unwrap_or_else(PoisonError::into_inner), _inside: inside }
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// To be called before the process forks, on the thread that does it: waits until nobody is inside.
pub fn before() {
    if DEPTH.get() == 0 {
        let closed = GATE.write().unwrap_or_else(PoisonError::into_inner);
        CLOSED.set(Some(closed));
    }
}

/// To be called after the process forked, in it.
pub fn after_in_parent() {
    CLOSED.set(None);
}

/// To be called after the process forked, in the child.
pub fn after_in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    CLOSED.set(None);
    let own = std::thread::current().id();
    let mut left = lock(&LEFT);
    left.extract_if(.., |(thread, _)| *thread != own).for_each(|(_, work)| work.undo());
}
