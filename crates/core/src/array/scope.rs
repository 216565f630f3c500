//! Which transforms an array is being traced by: scopes of nodes, not a flag of the thread.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use smallvec::{SmallVec, smallvec};

/// One run of a transform over a function. It is active until the transform has read its tape.
#[derive(Debug)]
pub(crate) struct Scope {
    pub id: u64,
    /// The transform's name, for errors.
    pub transform: &'static str,
    active: AtomicBool,
    /// Whether some of its inputs have no values.
    symbolic: AtomicBool,
}

impl Scope {
    /// A scope for one run of `transform`; it ends when the guard drops.
    pub fn enter(transform: &'static str) -> ScopeGuard {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (active, symbolic) = (AtomicBool::new(true), AtomicBool::new(false));
        ScopeGuard(Arc::new(Scope { id, transform, active, symbolic }))
    }

    /// Notes that one of its inputs has no values.
    pub fn set_symbolic(&self) {
        self.symbolic.store(true, Ordering::Relaxed);
    }

    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }
}

/// Ends its scope on drop, also where the traced function failed.
pub(crate) struct ScopeGuard(pub Arc<Scope>);

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        self.0.active.store(false, Ordering::Release);
    }
}

/// The scopes whose inputs a node depends on.
#[derive(Debug)]
pub(crate) struct Scopes(SmallVec<[Arc<Scope>; 2]>);

impl Scopes {
    pub fn of(scope: &Arc<Scope>) -> Arc<Scopes> {
        Arc::new(Scopes(smallvec![scope.clone()]))
    }

    pub fn contains(&self, scope: &Scope) -> bool {
        self.0.iter().any(|s| s.id == scope.id)
    }

    pub fn is_active(&self) -> bool {
        self.0.iter().any(|s| s.is_active())
    }

    /// Whether a transform that still runs traces for others than the inputs at hand.
    pub fn is_symbolic(&self) -> bool {
        self.0.iter().any(|s| s.symbolic.load(Ordering::Relaxed) && s.is_active())
    }

    /// The name of an active transform, for errors.
    pub fn active_transform(&self) -> Option<&'static str> {
        self.0.iter().rev().find(|s| s.is_active()).map(|s| s.transform)
    }

    /// The scopes of a node whose inputs have `a` and `b`.
    pub fn union(a: Option<Arc<Scopes>>, b: &Option<Arc<Scopes>>) -> Option<Arc<Scopes>> {
        let b = b.as_ref().filter(|b| b.is_active());
        match (a, b) {
            (None, None) => None,
            (Some(a), None) => Some(a),
            (None, Some(b)) => Some(b.clone()),
            (Some(a), Some(b)) if Arc::ptr_eq(&a, b) => Some(a),
            (Some(a), Some(b)) => {
                let new: SmallVec<[&Arc<Scope>; 2]> =
                    b.0.iter().filter(|s| s.is_active() && !a.contains(s)).collect();
                if new.is_empty() {
                    return Some(a);
                }
                let mut all = a.0.clone();
                all.extend(new.into_iter().cloned());
                Some(Arc::new(Scopes(all)))
            }
        }
    }
}

thread_local! {
    /// How many bodies of loops and branches are being recorded, one in another.
    static BODIES: Cell<u32> = const { Cell::new(0) };
}

/// Runs `f`, which records the body of a loop or a branch: what is in it may never run.
pub(crate) fn recording_body<R>(f: impl FnOnce() -> R) -> R {
    struct Left;
    impl Drop for Left {
        fn drop(&mut self) {
            BODIES.set(BODIES.get() - 1);
        }
    }
    BODIES.set(BODIES.get() + 1);
    let _left = Left;
    f()
}

/// Whether what is recorded may never run.
pub(crate) fn is_in_body() -> bool {
    BODIES.get() > 0
}

thread_local! {
    static VIEWS_RECORDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`; parts of arrays that are there are recorded, and are no views at once.
pub(crate) fn recording_views<R>(f: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            VIEWS_RECORDED.set(self.0);
        }
    }
    let _before = Before(VIEWS_RECORDED.replace(true));
    f()
}

/// Whether parts of arrays that are there are recorded.
pub(crate) fn records_views() -> bool {
    VIEWS_RECORDED.get()
}

thread_local! {
    static SIZES_NOTED: Cell<bool> = const { Cell::new(false) };
}

/// Says that what is recorded depends on the sizes of its operands in a way that the graph does not
/// show: one became a number, or decided that nothing was recorded. A graph without such is right
/// for other sizes, too.
pub(crate) fn note_sizes() {
    SIZES_NOTED.set(true);
}

/// Runs `f`, which may note sizes of its own.
pub(crate) fn apart_from_sizes<R>(f: impl FnOnce() -> R) -> R {
    let before = SIZES_NOTED.get();
    let result = f();
    SIZES_NOTED.set(before);
    result
}

/// Whether `f` noted sizes; what was noted before stays so.
pub(crate) fn noting_sizes<R>(f: impl FnOnce() -> R) -> (R, bool) {
    let before = SIZES_NOTED.replace(false);
    let result = f();
    let noted = SIZES_NOTED.get();
    SIZES_NOTED.set(before || noted);
    (result, noted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_transform_that_is_over() {
        let [outer, inner] = ["grad", "vmap"].map(Scope::enter);
        let of = [Scopes::of(&outer.0), Scopes::of(&inner.0)];
        let both = Scopes::union(Some(of[0].clone()), &Some(of[1].clone()));
        assert!(both.is_some_and(|both| both.contains(&outer.0) && both.contains(&inner.0)));
        drop(of);
        assert_eq!([outer, inner].map(|scope| Arc::strong_count(&scope.0)), [1, 1]);
    }
}
