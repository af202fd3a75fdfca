//! What one connection may take, and why.

/// Requests of one connection under way. Clients keep 1 to 64 (QEMU 16, nbdcopy 64, fio as told); 256 serves all of
/// them and bounds what a hostile one can queue.
pub const REQUESTS_MAX: usize = 256;
/// Bytes of reads and writes under way or waiting to be sent, for one connection: two requests of the largest size. A
/// single request is let in whatever its size.
pub const PAYLOAD_OUTSTANDING_MAX: u64 = 64 << 20;
/// The largest read or write: what the NBD specification asks every server to take.
pub const REQUEST_LEN_MAX: u32 = 32 << 20;
/// The payload of a refused write is read and dropped up to this; a client that announces more is cut off.
pub const PAYLOAD_SKIPPED_MAX: u32 = 128 << 20;
/// Bytes of small replies that wait to be sent. A client that does not read its replies is not listened to beyond this.
pub const BACKLOG_MAX: usize = 256 << 10;
/// Payload of which so much is still to come is received alone, in one call that ends when all of it is there: a socket
/// holds less, and every piece would cost a turn of the engine.
pub const PAYLOAD_AT_ONCE: usize = 128 << 10;
/// The largest option data that is looked at: two names of the specification's 4,096 bytes and room for queries.
pub const OPTION_DATA_MAX: usize = 16 << 10;
/// Longer option data is refused and skipped up to this; beyond it the client is cut off.
pub const OPTION_DATA_SKIPPED_MAX: u32 = 1 << 20;
/// Options in one negotiation. Real clients send fewer than ten and one per export when they list.
pub const OPTIONS_MAX: u32 = 4096;
/// The longest string of the NBD specification, in bytes.
pub const NAME_MAX: usize = 4096;
/// Vectors in one scatter or gather call: `IOV_MAX` of Linux.
pub const VECTORS_MAX: usize = 1024;
/// Bytes that are taken at once while it is not known what comes: 64 requests without payload. More would mean more
/// copying when a payload comes after all.
pub const HEADERS_AT_ONCE: usize = 64 * 28;
/// Bytes kept per connection for what is not payload; an option must fit.
pub const INBOX_SIZE: usize = 32 << 10;
/// Equal writes in a row before more of them are expected. In a random mix with 30 % writes, four in a row are rare.
pub const WRITES_BEFORE_PREDICTION: u32 = 4;
/// Writes expected in one call at most.
pub const PREDICTED_WRITES_MAX: usize = 32;
/// Buffers held for expected writes at most, in bytes.
pub const PREDICTED_BYTES_MAX: usize = 1 << 20;
/// Metadata contexts that a client may select: each asks the disk anew with every question of the client. Of more, the first count.
pub const CONTEXTS_MAX: usize = 16;
/// Runs in one answer about allocation. The specification allows 2^20; a client asks again for the rest.
pub const STATUS_RUNS_MAX: usize = 1 << 15;

const _: () = assert!(OPTION_DATA_MAX + 16 <= INBOX_SIZE);
const _: () = assert!(OPTION_DATA_MAX >= 2 * NAME_MAX);
const _: () = assert!(HEADERS_AT_ONCE <= INBOX_SIZE);
const _: () = assert!(PAYLOAD_OUTSTANDING_MAX >= REQUEST_LEN_MAX as u64);
const _: () = assert!(2 * PREDICTED_WRITES_MAX < VECTORS_MAX);
