//! When the device under the hosts' files had requests and answered none of them, by the kernel's own counts.
//!
//! A virtual disk stands still now and then, for all requests at once: what hosts and clients feel then is not the product's. Asking it
//! something and waiting would miss the short ones, or cost it much; its counters are read a thousand times a second, and
//! cost it nothing. Files in memory have no device, and no standstills.

use crate::failure::Failure;
use crate::spell::Spell;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(1);
/// What is shorter is forgotten: a device answers within that, however busy.
const SHORTEST: Duration = Duration::from_millis(2);

/// Looks all the time, until dropped.
pub struct Standstills {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    has_ended: AtomicBool,
    watch: Mutex<Watch>,
}

/// What a device has done, and has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    /// Requests that it answered, of all kinds.
    answered: u64,
    /// Requests that it has.
    in_flight: u64,
}

impl Counts {
    /// From `/sys/dev/block/*/stat` (Documentation/block/stat.rst): requests of reads, writes, discards and flushes that were answered
    /// are the fields 1, 5, 12 and 16, and those under way field 9.
    fn read(text: &str) -> Option<Counts> {
        let fields: Vec<u64> = text.split_whitespace().map_while(|one| one.parse().ok()).collect();
        let of = |field: usize| fields.get(field - 1).copied();
        let later = [12, 16].map(|field| of(field).unwrap_or(0)).iter().sum::<u64>();
        Some(Counts { answered: of(1)? + of(5)? + later, in_flight: of(9)? })
    }
}

/// Finds standstills in looks.
#[derive(Debug, Default)]
struct Watch {
    /// The last look, and since when it has had requests and answered none.
    last: Option<(Counts, Instant)>,
    found: Vec<(Instant, Instant)>,
    /// Since when it stands still, and until when that is known.
    still: Option<(Instant, Instant)>,
}

impl Watch {
    /// One more look. A standstill lasts from one look to another between which nothing is answered, so a look that comes late makes
    /// none longer.
    fn note(&mut self, now: Instant, counts: Counts) {
        let before = self.last.replace((counts, now));
        match before {
            Some((before, at)) if before.answered == counts.answered && before.in_flight > 0 => {
                let (since, _) = self.still.unwrap_or((at, at));
                self.still = Some((since, now));
            }
            Some(_) | None => self.end(),
        }
    }

    fn end(&mut self) {
        self.found.extend(self.still.take().filter(|(from, to)| *to - *from >= SHORTEST));
    }

    fn take(&mut self) -> Spell {
        let under_way = self.still.filter(|(from, to)| *to - *from >= SHORTEST);
        Spell::new(std::mem::take(&mut self.found).into_iter().chain(under_way).collect())
    }
}

impl Shared {
    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standstills {
    /// Begins with the device that a folder is on, if it is on one.
    ///
    /// # Errors
    /// When the folder is not there, or there can be no more threads.
    pub fn start(folder: &Path) -> Result<Standstills, Failure> {
        let failed = || Failure::machine(format!("look at the device of {}", folder.display()));
        let device = fs::metadata(folder).map_err(failed())?.dev();
        let (major, minor) = (libc::major(device), libc::minor(device));
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let thread = match File::open(format!("/sys/dev/block/{major}:{minor}/stat")) {
            Err(_) => None, // Files in memory, or of several devices.
            Ok(stat) => {
                let thread = std::thread::Builder::new().name("standstills".to_owned());
                Some(thread.spawn(move || look(&stat, &of_thread)).map_err(failed())?)
            }
        };
        Ok(Standstills { shared, thread })
    }

    /// Whether there is a device to be looked at.
    pub fn has_device(&self) -> bool {
        self.thread.is_some()
    }

    /// Those since this was asked before; one that goes on is among them with what it took so far.
    pub fn take(&self) -> Spell {
        self.shared.watch().take()
    }
}

impl Drop for Standstills {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        // Its end does not depend on anybody.
        self.thread.take().map(JoinHandle::join);
    }
}

fn look(stat: &File, shared: &Shared) {
    let mut bytes = [0; 512];
    while !shared.has_ended.load(Ordering::Relaxed) {
        let text = stat.read_at(&mut bytes, 0).ok().and_then(|len| std::str::from_utf8(&bytes[..len]).ok());
        if let Some(counts) = text.and_then(Counts::read) {
            shared.watch().note(Instant::now(), counts);
        }
        std::thread::sleep(PERIOD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_answered_is_counted_of_all_kinds() {
        let text = "  10  1 2 3  20 4 5 6  7 8 9  30 1 2 3 40 5\n";
        assert_eq!(Counts::read(text), Some(Counts { answered: 100, in_flight: 7 }));
        let of_an_older_kernel = "10 1 2 3 20 4 5 6 0 8 9";
        assert_eq!(Counts::read(of_an_older_kernel), Some(Counts { answered: 30, in_flight: 0 }));
        assert_eq!(Counts::read("10 1 2"), None);
    }

    /// What is found in looks at these milliseconds, each with what was answered and what is under way.
    fn found(looks: &[(u64, u64, u64)]) -> Vec<(u64, u64)> {
        let (now, mut watch) = (Instant::now(), Watch::default());
        for &(ms, answered, in_flight) in looks {
            watch.note(now + Duration::from_millis(ms), Counts { answered, in_flight });
        }
        let since = |at: Instant| (at - now).as_millis() as u64;
        watch.end();
        watch.found.iter().map(|(from, to)| (since(*from), since(*to))).collect()
    }

    #[test]
    fn a_standstill_is_a_time_with_requests_and_without_answers() {
        assert_eq!(found(&[(0, 5, 2), (1, 5, 2), (4, 5, 3), (9, 5, 3), (10, 9, 1)]), [(0, 9)]);
        // It had nothing to do until 3; then it answered.
        assert_eq!(found(&[(0, 5, 0), (3, 5, 1), (4, 6, 0), (30, 6, 0)]), []);
        // A look that comes late finds that it went on.
        assert_eq!(found(&[(0, 5, 2), (50, 9, 2), (51, 10, 2)]), []);
        // Shorter than what counts, then one that goes on at the end.
        assert_eq!(found(&[(0, 5, 1), (1, 5, 1), (2, 6, 1), (40, 6, 1)]), [(2, 40)]);
    }

    #[test]
    fn the_device_of_a_folder_is_looked_at_if_it_has_one() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Standstills::start(folder.path()).is_ok());
        assert!(Standstills::start(Path::new("/nowhere")).is_err());
        let of_none = Standstills::start(Path::new("/proc")).expect("it is there");
        assert!(!of_none.has_device() && of_none.take().longest_ms() == 0.0);
    }
}
