//! A host's way to the directory, which can fall silent like its links to other hosts: a unix socket cannot be cut by packet
//! filters, so bytes go through here.
//!
//! What is held up while it is cut arrives when it is mended, as on a connection that sends again.

use crate::failure::Failure;
use crate::namespaces::Cut;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that are passed on at once.
const CHUNK: usize = 64 << 10;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// From the host.
    Sent,
    /// To the host.
    Received,
}

/// What is held up now.
#[derive(Debug, Default)]
struct Gate {
    cut: Mutex<Option<Cut>>,
    changed: Condvar,
}

impl Gate {
    fn cut(&self) -> MutexGuard<'_, Option<Cut>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, cut: Option<Cut>) {
        *self.cut() = cut;
        self.changed.notify_all();
    }

    /// Waits until bytes may go this way.
    fn pass(&self, way: Way) {
        let mut cut = self.cut();
        while is_held(*cut, way) {
            cut = self.changed.wait(cut).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn is_held(cut: Option<Cut>, way: Way) -> bool {
    match cut {
        None => false,
        Some(Cut::Both) => true,
        Some(Cut::Sent) => way == Way::Sent,
        Some(Cut::Received) => way == Way::Received,
    }
}

/// The relay of one host. Its threads end with the connections, the one that listens with this process.
#[derive(Debug)]
pub struct Relay {
    gate: Arc<Gate>,
}

impl Relay {
    /// Listens at one socket and passes on to another, which need not be there yet.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn start(at: &Path, to: PathBuf) -> Result<Relay, Failure> {
        let listener =
            UnixListener::bind(at).map_err(Failure::machine(format!("listen at {}", at.display())))?;
        let gate = Arc::new(Gate::default());
        let own = Arc::clone(&gate);
        spawn(move || {
            for stream in listener.incoming() {
                // A connection that cannot be passed on is closed, as by a directory that is not there.
                if let Err(error) = stream.and_then(|stream| relay(stream, &to, &own)) {
                    eprintln!("trials: pass a connection on to the directory: {error}");
                }
            }
        })
        .map_err(Failure::machine("start a thread"))?;
        Ok(Relay { gate })
    }

    /// Holds up what goes that way from now on.
    pub fn cut(&self, cut: Cut) {
        self.gate.set(Some(cut));
    }

    /// Lets everything through again.
    pub fn mend(&self) {
        self.gate.set(None);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.mend();
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name("relay".to_owned()).spawn(work).map(drop)
}

fn relay(host: UnixStream, to: &Path, gate: &Arc<Gate>) -> io::Result<()> {
    let directory = UnixStream::connect(to)?;
    let pairs = [(Way::Sent, host.try_clone()?, directory.try_clone()?), (Way::Received, directory, host)];
    for (way, from, to) in pairs {
        let gate = Arc::clone(gate);
        spawn(move || {
            // Either end may close at any time; then the other is told.
            let _ = pass_on(way, &from, &to, &gate);
            let _ = from.shutdown(Shutdown::Read);
            let _ = to.shutdown(Shutdown::Write);
        })?;
    }
    Ok(())
}

fn pass_on(way: Way, mut from: &UnixStream, mut to: &UnixStream, gate: &Gate) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = from.read(&mut chunk)?;
        gate.pass(way);
        if count == 0 {
            return Ok(());
        }
        to.write_all(&chunk[..count])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_holds_up_its_own_direction_and_no_other() {
        let held = |cut| (is_held(cut, Way::Sent), is_held(cut, Way::Received));
        assert_eq!(held(None), (false, false));
        assert_eq!(held(Some(Cut::Both)), (true, true));
        assert_eq!(held(Some(Cut::Sent)), (true, false));
        assert_eq!(held(Some(Cut::Received)), (false, true));
    }

    #[test]
    fn what_was_held_up_arrives_when_it_is_mended() {
        let gate = Arc::new(Gate::default());
        gate.set(Some(Cut::Sent));
        let (mut host, near) = UnixStream::pair().expect("a pair of sockets");
        let (far, mut directory) = UnixStream::pair().expect("a pair of sockets");
        let own = Arc::clone(&gate);
        let passing = std::thread::spawn(move || pass_on(Way::Sent, &near, &far, &own));
        host.write_all(b"record").expect("it takes bytes");
        directory.set_nonblocking(true).expect("a socket");
        assert!(directory.read(&mut [0; 6]).is_err(), "it is held up");
        gate.set(None);
        directory.set_nonblocking(false).expect("a socket");
        let mut found = [0; 6];
        directory.read_exact(&mut found).expect("it arrives");
        assert_eq!(&found, b"record");
        drop(host);
        passing.join().expect("no panic").expect("an end");
    }
}
