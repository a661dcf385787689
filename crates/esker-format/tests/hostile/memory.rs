//! An allocator that counts, so that a test can bound what a call may allocate. This is the
//! only `unsafe` of the tests: the trait demands it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts for each thread by itself: tests run side by side.
pub(crate) struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // A thread that is ending has no counters any more.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old block lives until the new one is filled.
        count(size as isize);
        let new = unsafe { System.realloc(at, layout, size) };
        count(-(layout.size() as isize));
        new
    }
}

/// What `call` gives, and the bytes that it had allocated at most.
pub(crate) fn peak<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    let result = call();
    (result, (PEAK.with(Cell::get) - before).max(0) as usize)
}
