//! Where the lines of the log go: through a bounded queue to a thread that writes them to the standard error output.
//!
//! Whoever logs never waits: a pipe or a journal that takes nothing would make the engine stand still otherwise. What does not fit
//! is dropped and counted, and the count is told once lines are taken again.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Lines that wait at most: some hundred KiB, and minutes of a log that is not flooded.
const LINES_MAX: usize = 4096;
/// How long an end of the process waits for lines to be written.
const FLUSH_WAIT: Duration = Duration::from_secs(1);

/// The queue.
#[derive(Debug)]
struct Queue {
    sender: SyncSender<Vec<u8>>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Lines that were queued and are not written yet.
    waiting: AtomicU64,
    /// Lines that found no room since that was told last.
    dropped: AtomicU64,
}

impl Queue {
    fn start(out: impl Write + Send + 'static, lines_max: usize) -> Queue {
        let (sender, lines) = sync_channel(lines_max);
        let counts = Arc::new(Counts::default());
        let seen = Arc::clone(&counts);
        // Without the thread every line is dropped, and the process goes on.
        let _ =
            std::thread::Builder::new().name("log".to_owned()).spawn(move || write_on(&lines, out, &seen));
        Queue { sender, counts }
    }

    fn put(&self, line: Vec<u8>) {
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.sender.try_send(line) {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {
        let until = Instant::now() + FLUSH_WAIT;
        while self.counts.waiting.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn write_on(lines: &Receiver<Vec<u8>>, mut out: impl Write, counts: &Counts) {
    for line in lines {
        // A reader that is gone changes nothing: the next line may find another.
        let _ = out.write_all(&line);
        counts.waiting.fetch_sub(1, Ordering::Relaxed);
        let dropped = counts.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let _ = writeln!(
                out,
                "{dropped} lines of the log were dropped: they were not taken as fast as they came"
            );
        }
    }
}

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// One line that is being put together.
#[derive(Debug, Default)]
pub struct Writer {
    line: Vec<u8>,
}

impl Writer {
    /// Begins a line.
    pub fn start() -> Writer {
        Writer::default()
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            let queue = QUEUE.get_or_init(|| Queue::start(io::stderr(), LINES_MAX));
            queue.put(std::mem::take(&mut self.line));
        }
    }
}

/// Waits a little for lines that are not written yet, before the process ends.
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::{Sender, channel};

    /// Takes a line only when it is told to.
    struct Gate {
        open: Receiver<()>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.open.recv();
            self.taken.lock().expect("nobody panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A journal that took no line made the engine stand still, and every guest with it.
    #[test]
    fn a_log_that_nobody_takes_keeps_nobody_waiting_and_tells_what_it_dropped() {
        let (open, gate): (Sender<()>, _) = channel();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let queue = Queue::start(Gate { open: gate, taken: Arc::clone(&taken) }, 8);
        // The thread holds one line, eight wait: the others are dropped, and this returns.
        for number in 0..100 {
            queue.put(format!("line {number}\n").into_bytes());
        }
        drop(open); // From now on all is taken.
        queue.flush();
        queue.put(b"the last\n".to_vec());
        queue.flush();
        let text = String::from_utf8(taken.lock().expect("nobody panics").clone()).expect("it is text");
        assert!(text.starts_with("line 0\n") && text.contains("the last"), "{text}");
        assert!(text.contains("lines of the log were dropped"), "{text}");
        assert!(!text.contains("line 99"), "{text}");
    }
}
