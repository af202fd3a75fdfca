//! What the control plane takes of the system: the time, randomness, threads that may wait.

use base::ComponentId;
use failure::Failure;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Runs what waits for the directory's file on a thread that may wait.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// Random bits from the operating system.
pub fn random_bits() -> Result<u128, Failure> {
    let mut bytes = [0; 16];
    let read = |bytes: &mut [u8]| std::fs::File::open("/dev/urandom")?.read_exact(bytes);
    read(&mut bytes).map_err(|error| Failure::failed("read /dev/urandom", error))?;
    Ok(u128::from_le_bytes(bytes))
}

/// A seed for placement.
///
/// # Errors
/// When the operating system gives no randomness.
pub fn blocking_seed() -> Result<u64, Failure> {
    random_bits().map(|bits| bits as u64)
}

/// A source of component ids from one draw of randomness. Never zero; 64 bits make a second use of one id unlikely
/// beyond concern, and the engine refuses it.
pub fn component_ids(seed: u64) -> impl FnMut() -> ComponentId {
    let mut random = base::Random::new(seed);
    move || ComponentId(random.bits().max(1))
}
