//! How long the file system under the hosts' files takes to make a block stable by itself, while a trial runs.
//!
//! A host that stands on a file system is no quicker than that: a stall that the machine's own disk had at the same time is told
//! apart from one of the product, and a limit that was passed is passed all the same. One block is overwritten and flushed
//! twenty times a second, which costs the disk little.

use crate::failure::Failure;
use crate::spell::Spell;
use crate::stamp::BLOCK;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two flushes.
const PERIOD: Duration = Duration::from_millis(50);

/// Asks the file system all the time, until dropped.
pub struct Flushes {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    has_ended: AtomicBool,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    /// When each flush began and ended, of those that ended since this was asked for.
    ended: Vec<(Instant, Instant)>,
    /// When the flush that is under way began.
    began: Option<Instant>,
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Spell {
        let mut asked = self.asked();
        let under_way = asked.began.map(|began| (began, Instant::now()));
        let ended = std::mem::take(&mut asked.ended);
        Spell::new(ended.into_iter().chain(under_way).collect())
    }
}

impl Flushes {
    /// Begins in a folder, with a file that is removed at once.
    ///
    /// # Errors
    /// When there is no room for a block.
    pub fn start(folder: &Path) -> Result<Flushes, Failure> {
        let path = folder.join("flushes");
        let failed = || Failure::machine(format!("flush {}", path.display()));
        let file = File::create(&path).map_err(failed())?;
        // The block is there from here on: later flushes are of its data alone.
        file.write_all_at(&[1; BLOCK], 0).and_then(|()| file.sync_all()).map_err(failed())?;
        std::fs::remove_file(&path).map_err(failed())?;
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("flushes".to_owned());
        let thread = thread.spawn(move || ask(&file, &of_thread)).map_err(failed())?;
        Ok(Flushes { shared, thread: Some(thread) })
    }

    /// Those since this was asked before; one that is still under way is among them with what it took so far.
    pub fn take(&self) -> Spell {
        self.shared.take()
    }
}

impl Drop for Flushes {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        // Its end does not depend on anybody.
        self.thread.take().map(JoinHandle::join);
    }
}

fn ask(file: &File, shared: &Shared) {
    while !shared.has_ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        shared.asked().began = Some(began);
        // A file system that fails shows by far more than this.
        let _ = file.write_all_at(&[2; BLOCK], 0).and_then(|()| file.sync_data());
        let mut asked = shared.asked();
        asked.began = None;
        asked.ended.push((began, Instant::now()));
        drop(asked);
        std::thread::sleep(PERIOD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_leave_no_file_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let flushes = Flushes::start(folder.path()).expect("there is room for a block");
        assert!(std::fs::read_dir(folder.path()).expect("it is there").next().is_none());
        while flushes.take().longest_ms() == 0.0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_longest_is_told_once_and_one_under_way_as_long_as_it_lasts() {
        let (shared, now) = (Shared::default(), Instant::now());
        shared.asked().ended.push((now, now + Duration::from_millis(7)));
        assert_eq!((shared.take().longest_ms(), shared.take().longest_ms()), (7.0, 0.0));
        shared.asked().began = Instant::now().checked_sub(Duration::from_secs(3));
        assert!(shared.take().longest_ms() >= 3000.0 && shared.take().longest_ms() >= 3000.0);
    }
}
