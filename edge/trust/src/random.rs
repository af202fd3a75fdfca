//! Random bytes of the kernel's, for secrets, ids and serial numbers.

use ring::rand::{SecureRandom, SystemRandom};

/// So many random bytes. Nothing when the kernel has none, which it says by an error.
pub(crate) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}
