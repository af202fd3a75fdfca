//! The generator's clock: nanoseconds of the kernel's monotonic clock.

use std::time::Duration;

/// Nanoseconds since an origin that stays the same on one machine until it is booted.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a structure that the call fills.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    assert!(failed == 0, "the monotonic clock always answers");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A duration in nanoseconds.
pub fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits until the clock shows `time`: asleep until shortly before, then awake, so that many threads begin together.
pub fn sleep_until(time: u64) {
    const AWAKE: u64 = 200_000;
    loop {
        let left = time.saturating_sub(now());
        if left == 0 {
            return;
        }
        if left > AWAKE {
            std::thread::sleep(Duration::from_nanos(left - AWAKE));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Processor time of this process, of its user part and of the kernel's, in seconds.
pub fn processor_seconds() -> (f64, f64) {
    // SAFETY: zeroes are a valid value of this plain structure, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}
