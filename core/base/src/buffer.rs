//! Aligned, reference-counted buffers from a bounded pool: what all block data travels in.
//!
//! A buffer is 4 KiB-aligned so that `O_DIRECT` takes it, and is moved or shared, never copied on the way. Memory
//! comes in chunks of 1 MiB; a chunk is cut into equal pieces of a power-of-two size, and goes back to the common
//! store when all its pieces are free. An executor may register chunks with the kernel: [`Buffer::chunk_index`] and
//! [`Buffer::chunk_start`] name the chunk.
//!
//! A pool belongs to one thread (`Rc` inside). A buffer handed to a device as the target of a read belongs to that
//! device until the read completes; nobody looks at its bytes in between. That rule is what makes the `unsafe`
//! blocks here sound, and it is kept by moving the buffer into the request and getting it back with the completion.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

/// Size of one chunk, and so of the largest buffer, in bytes.
pub const CHUNK_SIZE: usize = 1 << 20;
/// Size of the smallest buffer, and the alignment of all, in bytes.
pub const PIECE_SIZE_MIN: usize = 4096;
/// Piece sizes 4 KiB, 8 KiB, …, 1 MiB.
const CLASSES: usize = 9;

const _: () = assert!(PIECE_SIZE_MIN << (CLASSES - 1) == CHUNK_SIZE);

struct Chunk {
    memory: *mut u8,
    /// Which size its pieces have; meaningful while it is in use.
    class: Cell<usize>,
    /// Pieces that are free, by index; full length means the chunk is unused.
    free: RefCell<Vec<u16>>,
    /// Whether the chunk stands in its class's list of chunks with free pieces.
    listed: Cell<bool>,
    index: usize,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: `memory` came from `alloc` with this very layout and is freed once, here.
        unsafe { dealloc(self.memory, chunk_layout()) }
    }
}

fn chunk_layout() -> Layout {
    Layout::from_size_align(CHUNK_SIZE, PIECE_SIZE_MIN).expect("a constant layout is valid")
}

struct Store {
    chunks: RefCell<Vec<Rc<Chunk>>>,
    /// Chunks that no class uses.
    unused: RefCell<Vec<usize>>,
    /// Per class, chunks that have at least one free piece.
    partial: RefCell<[Vec<usize>; CLASSES]>,
    chunks_max: usize,
    bytes_used: Cell<usize>,
    /// Whether it had no buffer for somebody since that was looked at last.
    was_short: Cell<bool>,
}

/// A bounded store of buffers.
#[derive(Clone)]
pub struct Pool {
    store: Rc<Store>,
}

impl Pool {
    /// A pool of at most `bytes_max` bytes (rounded down to whole chunks, at least one). Takes memory as it is needed.
    pub fn new(bytes_max: usize) -> Pool {
        Pool {
            store: Rc::new(Store {
                chunks: RefCell::default(),
                unused: RefCell::default(),
                partial: RefCell::default(),
                chunks_max: (bytes_max / CHUNK_SIZE).max(1),
                bytes_used: Cell::new(0),
                was_short: Cell::new(false),
            }),
        }
    }

    /// A buffer of `len` bytes (1..=1 MiB) with unspecified (but initialised) content, or nothing when the pool is used up.
    pub fn take(&self, len: usize) -> Option<Buffer> {
        assert!(len > 0 && len <= CHUNK_SIZE, "a buffer is 1 byte to 1 MiB long");
        let class = len.div_ceil(PIECE_SIZE_MIN).next_power_of_two().trailing_zeros() as usize;
        let store = &self.store;
        let mut partial = store.partial.borrow_mut();
        let index = match partial[class].last() {
            Some(&index) => index,
            None => {
                let Some(index) = store.unused.borrow_mut().pop().or_else(|| store.grow()) else {
                    store.was_short.set(true);
                    return None;
                };
                let chunk = &store.chunks.borrow()[index];
                chunk.class.set(class);
                let pieces = (CHUNK_SIZE / (PIECE_SIZE_MIN << class)) as u16;
                chunk.free.borrow_mut().extend((0..pieces).rev());
                chunk.listed.set(true);
                partial[class].push(index);
                index
            }
        };
        let chunk = store.chunks.borrow()[index].clone();
        let mut free = chunk.free.borrow_mut();
        let piece = free.pop().expect("a listed chunk has a free piece");
        if free.is_empty() {
            chunk.listed.set(false);
            partial[class].pop();
        }
        drop(free);
        store.bytes_used.set(store.bytes_used.get() + (PIECE_SIZE_MIN << class));
        let offset = piece as usize * (PIECE_SIZE_MIN << class);
        let piece = Rc::new(Piece { chunk, piece, store: Rc::clone(store) });
        Some(Buffer { piece, offset: offset as u32, len: len as u32 })
    }

    /// As [`Pool::take`], filled with zeroes.
    pub fn take_zeroed(&self, len: usize) -> Option<Buffer> {
        let mut buffer = self.take(len)?;
        buffer.bytes_mut().fill(0);
        Some(buffer)
    }

    /// Whether so many bytes more would leave a quarter of the pool to what requests need while they are carried out: what other members of a row have,
    /// parity, what is read of a block that is changed in part. Were all of it given to requests that come in, none could end.
    pub fn has_room_for_guests(&self, len: usize) -> bool {
        let has_room = self.bytes_used() + len <= self.bytes_max() / 4 * 3;
        self.store.was_short.set(self.store.was_short.get() || !has_room);
        has_room
    }

    /// Whether there was no buffer for somebody since this was asked last: what is kept in memory for later should go.
    pub fn was_short(&self) -> bool {
        self.store.was_short.replace(false)
    }

    /// Bytes in buffers that are alive, rounded up to their piece sizes.
    pub fn bytes_used(&self) -> usize {
        self.store.bytes_used.get()
    }

    /// The bound.
    pub fn bytes_max(&self) -> usize {
        self.store.chunks_max * CHUNK_SIZE
    }

    /// Chunks taken from the system so far.
    pub fn chunk_count(&self) -> usize {
        self.store.chunks.borrow().len()
    }

    /// Where chunk `index` starts; chunks are [`CHUNK_SIZE`] long and stay in place while the pool lives.
    pub fn chunk_start(&self, index: usize) -> *mut u8 {
        self.store.chunks.borrow()[index].memory
    }
}

impl Store {
    fn grow(&self) -> Option<usize> {
        let mut chunks = self.chunks.borrow_mut();
        if chunks.len() == self.chunks_max {
            return None;
        }
        // SAFETY: the layout's size is not zero. The fresh memory is filled before anybody can read it.
        let memory = unsafe { alloc(chunk_layout()) };
        if memory.is_null() {
            handle_alloc_error(chunk_layout());
        }
        // SAFETY: `memory` is valid for CHUNK_SIZE bytes.
        unsafe { memory.write_bytes(0, CHUNK_SIZE) };
        let index = chunks.len();
        let free = RefCell::default();
        chunks.push(Rc::new(Chunk { memory, class: Cell::new(0), free, listed: Cell::new(false), index }));
        Some(index)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} of {} bytes used)", self.bytes_used(), self.bytes_max())
    }
}

struct Piece {
    chunk: Rc<Chunk>,
    piece: u16,
    store: Rc<Store>,
}

impl Drop for Piece {
    fn drop(&mut self) {
        let class = self.chunk.class.get();
        let size = PIECE_SIZE_MIN << class;
        self.store.bytes_used.set(self.store.bytes_used.get() - size);
        let mut free = self.chunk.free.borrow_mut();
        free.push(self.piece);
        let mut partial = self.store.partial.borrow_mut();
        if free.len() == CHUNK_SIZE / size {
            free.clear();
            if self.chunk.listed.replace(false) {
                partial[class].retain(|&index| index != self.chunk.index);
            }
            self.store.unused.borrow_mut().push(self.chunk.index);
        } else if !self.chunk.listed.replace(true) {
            partial[class].push(self.chunk.index);
        }
    }
}

/// A range of bytes in a piece of a pool. Clones and slices share the memory.
#[derive(Clone)]
pub struct Buffer {
    piece: Rc<Piece>,
    /// From the start of the chunk.
    offset: u32,
    len: u32,
}

impl Buffer {
    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The part of this buffer at `offset`, `len` bytes long; shares the memory.
    pub fn slice(&self, offset: usize, len: usize) -> Buffer {
        assert!(offset + len <= self.len as usize, "a slice lies within its buffer");
        Buffer { piece: Rc::clone(&self.piece), offset: self.offset + offset as u32, len: len as u32 }
    }

    /// Shortens the buffer to its first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        assert!(len <= self.len as usize, "truncating never lengthens");
        self.len = len as u32;
    }

    /// The bytes, to change; the buffer must not be shared.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(Rc::strong_count(&self.piece) == 1, "a shared buffer is not changed");
        // SAFETY: nobody else holds this piece, and the range lies within it.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), self.len as usize) }
    }

    /// Copies `bytes` to `offset` of a buffer that may be shared, but whose range nobody reads now: what a device does
    /// with the target of a read.
    pub fn fill_from(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len as usize, "a device stays within its buffer");
        // SAFETY: in range by the assertion; `bytes` cannot be part of it, for no reference to the range is alive while
        // a device owns it (this module's rule).
        unsafe { std::ptr::copy(bytes.as_ptr(), self.as_mut_ptr().add(offset), bytes.len()) }
    }

    /// Where the bytes are, for a device to read from or write to.
    #[inline]
    pub fn as_mut_ptr(&self) -> *mut u8 {
        // SAFETY: the offset lies within the chunk.
        unsafe { self.piece.chunk.memory.add(self.offset as usize) }
    }

    /// Which of the pool's chunks this buffer lies in.
    #[inline]
    pub fn chunk_index(&self) -> usize {
        self.piece.chunk.index
    }

    /// Where that chunk starts.
    #[inline]
    pub fn chunk_start(&self) -> *mut u8 {
        self.piece.chunk.memory
    }

    /// If `next` continues this buffer in the same piece, grows this one over it and says so.
    pub fn try_join(&mut self, next: &Buffer) -> bool {
        let joins = Rc::ptr_eq(&self.piece, &next.piece) && self.offset + self.len == next.offset;
        if joins {
            self.len += next.len;
        }
        joins
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the range lies within a live chunk whose bytes are initialised since it was taken.
        unsafe { std::slice::from_raw_parts(self.as_mut_ptr(), self.len as usize) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_returns_to_its_pool() {
        let pool = Pool::new(2 << 20);
        let mut buffers = Vec::new();
        while let Some(buffer) = pool.take(4096) {
            assert!((buffer.as_mut_ptr() as usize).is_multiple_of(4096));
            buffers.push(buffer);
        }
        assert_eq!(buffers.len(), 512);
        assert_eq!(pool.bytes_used(), 2 << 20);
        buffers.clear();
        assert_eq!(pool.bytes_used(), 0);
        // What was cut into 4 KiB pieces serves whole chunks again.
        let large = (pool.take(1 << 20), pool.take(1 << 20));
        assert!(large.0.is_some() && large.1.is_some() && pool.take(1).is_none());
    }

    #[test]
    fn slices_share_memory_and_keep_it_alive() {
        let pool = Pool::new(1 << 20);
        let mut buffer = pool.take_zeroed(8192).expect("an empty pool has room");
        buffer.bytes_mut()[4096] = 7;
        let mut first = buffer.slice(0, 4096);
        let second = buffer.slice(4096, 4096);
        drop(buffer);
        assert_eq!(second[0], 7);
        assert!(first.try_join(&second));
        assert_eq!((first.len(), first[4096]), (8192, 7));
    }

    #[test]
    #[should_panic(expected = "a shared buffer is not changed")]
    fn a_shared_buffer_is_not_changed() {
        let pool = Pool::new(1 << 20);
        let mut buffer = pool.take(4096).expect("an empty pool has room");
        let _other = buffer.clone();
        buffer.bytes_mut()[0] = 1;
    }

    #[test]
    fn mixed_sizes_never_overlap() {
        let pool = Pool::new(8 << 20);
        let mut random = crate::Random::new(7);
        let mut alive: Vec<(Buffer, u8)> = Vec::new();
        for round in 0..20_000u32 {
            if random.chance(1, 2) && !alive.is_empty() {
                let (buffer, mark) = alive.swap_remove(random.below(alive.len() as u64) as usize);
                assert!(buffer.iter().all(|&byte| byte == mark));
            } else if let Some(mut buffer) = pool.take(random.range(1..100_000) as usize) {
                buffer.bytes_mut().fill(round as u8);
                alive.push((buffer, round as u8));
            }
        }
        alive.clear();
        assert_eq!(pool.bytes_used(), 0);
    }
}
