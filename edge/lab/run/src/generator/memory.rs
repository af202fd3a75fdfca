//! The buffers of a thread: one piece of memory, a slot for every I/O that may be outstanding.

use std::io;
use std::ptr::NonNull;

/// Slots begin at multiples of so many bytes: what `O_DIRECT` asks for on any device.
const ALIGNMENT: usize = 4096;

/// Memory of equal slots, mapped from the kernel and zero at first.
pub struct Slots {
    memory: NonNull<u8>,
    slot_size: usize,
    count: usize,
}

impl Slots {
    /// `count` slots of at least `size` bytes each.
    ///
    /// # Errors
    /// When the kernel has no such memory.
    pub fn new(count: usize, size: usize) -> io::Result<Slots> {
        let slot_size = size.max(1).next_multiple_of(ALIGNMENT);
        let bytes = slot_size.checked_mul(count.max(1)).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Slots { memory, slot_size, count: count.max(1) })
    }

    /// Where a slot begins.
    pub fn start(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.count, "slot {slot} of {}", self.count);
        // SAFETY: the slot lies within the mapping.
        unsafe { self.memory.as_ptr().add(slot * self.slot_size) }
    }

    /// The first `size` bytes of a slot that no I/O is using.
    pub fn bytes(&mut self, slot: usize, size: usize) -> &mut [u8] {
        assert!(size <= self.slot_size, "{size} bytes of a slot of {}", self.slot_size);
        // SAFETY: the bytes lie within the mapping; `&mut self` and the caller's word that no I/O uses the slot make them ours.
        unsafe { std::slice::from_raw_parts_mut(self.start(slot), size) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this very length and is unmapped once.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.slot_size * self.count) };
    }
}
