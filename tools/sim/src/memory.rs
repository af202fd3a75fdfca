//! How many bytes of memory are in use: an allocator that counts.
//!
//! It stands in front of the system's, so that what a thing takes can be asked by making a copy of it. Must be the global
//! allocator of the program that asks; where it is not, nothing is known.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, and a count of the bytes that were asked of it and not given back.
pub struct Counting;

// SAFETY: all requests go to the system's allocator as they are; beside that only a number changes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of `GlobalAlloc::alloc`, which are those of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above, and so from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that a copy of `thing` takes beside itself; nothing where the allocator does not count.
pub fn bytes_of<T: Clone>(thing: &T) -> Option<usize> {
    let before = IN_USE.load(Ordering::Relaxed);
    let copy = std::hint::black_box(thing.clone());
    let after = IN_USE.load(Ordering::Relaxed);
    drop(copy);
    (before > 0).then(|| after.saturating_sub(before))
}
