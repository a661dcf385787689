//! An allocator that counts, so that a test can bound what a call may allocate:
//!
//! ```ignore
//! #[global_allocator]
//! static COUNTING: esker_testkit::memory::Counting = esker_testkit::memory::Counting;
//! ```
//!
//! Each thread is counted by itself, because tests run side by side, and all of them together,
//! for programs in which only one test runs at a time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, counted.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

static LIVE_OF_ALL: AtomicUsize = AtomicUsize::new(0);
static PEAK_OF_ALL: AtomicUsize = AtomicUsize::new(0);

fn more(size: usize) {
    let live = LIVE_OF_ALL.fetch_add(size, Ordering::Relaxed).wrapping_add(size);
    PEAK_OF_ALL.fetch_max(live, Ordering::Relaxed);
    // A thread that is ending has no counters any more.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
    let _ = NOW.try_with(|now| {
        now.set(now.get() + size as isize);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

fn less(size: usize) {
    LIVE_OF_ALL.fetch_sub(size, Ordering::Relaxed);
    let _ = NOW.try_with(|now| now.set(now.get() - size as isize));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        less(layout.size());
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old block lives until the new one is filled.
        more(size);
        let new = unsafe { System.realloc(at, layout, size) };
        less(layout.size());
        new
    }
}

/// What `call` gives, and the bytes that this thread had allocated at most, more than before.
pub fn peak<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    let result = call();
    (result, (PEAK.with(Cell::get) - before).max(0) as usize)
}

/// What `call` gives, and the largest allocation that this thread made.
pub fn largest<T>(call: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.with(|largest| largest.set(0));
    let result = call();
    (result, LARGEST.with(Cell::get))
}

/// The bytes that all threads have allocated now.
pub fn live_of_all() -> usize {
    LIVE_OF_ALL.load(Ordering::Relaxed)
}

/// The most that all threads had allocated at once since [`forget_peak_of_all`].
pub fn peak_of_all() -> usize {
    PEAK_OF_ALL.load(Ordering::Relaxed)
}

/// Begins to look for the most anew.
pub fn forget_peak_of_all() {
    PEAK_OF_ALL.store(live_of_all(), Ordering::Relaxed);
}
