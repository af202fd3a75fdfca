//! How many files and sockets the process may have open: as many as the system allows, and how many of them clients get.

/// Descriptors that clients leave to devices, other hosts, the API and its connections.
const RESERVED: u64 = 256;

/// Raises the soft limit of open descriptors to the hard one. Says what it is then.
pub fn raise_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the calls read and write one structure that lives through them.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 1024; // What systems give at least.
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 {
            limit = raised;
        }
    }
    limit.rlim_cur
}

/// Clients that the process may have in all, by the limit of descriptors: some are left for what must go on.
pub fn clients_max() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one structure that lives through it.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    clients_within(if is_known { limit.rlim_cur } else { 1024 })
}

fn clients_within(limit: u64) -> usize {
    let most = limit.saturating_sub(RESERVED).max(limit / 2);
    usize::try_from(most).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_descriptors_to_what_must_go_on() {
        assert_eq!(clients_within(1024), 768);
        assert_eq!(clients_within(256), 128);
        assert_eq!(clients_within(1 << 20), (1 << 20) - 256);
    }
}
