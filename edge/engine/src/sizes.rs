//! Looks now and then whether a device that is in use has become shorter than its datastore: a file that was truncated, a
//! volume that was made smaller. On a thread of its own, for the question may block.

use crate::devices::shrinkage;
use crate::mailbox::{Mailbox, Message};
use base::DeviceId;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(2);

/// A device that is looked at.
#[derive(Debug)]
struct Watched {
    device: DeviceId,
    path: PathBuf,
    file: File,
    size: u64,
}

/// The devices of an engine that are looked at; the thread ends with it.
#[derive(Debug, Clone)]
pub(crate) struct Sizes(Arc<Mutex<Vec<Watched>>>);

impl Sizes {
    /// Begins to look; what is found goes to the mailbox.
    pub(crate) fn start(mailbox: Mailbox) -> Sizes {
        let watched = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::downgrade(&watched);
        let run = move || look_on(&seen, &mailbox);
        // Without the thread, a truncated file is found when it is read.
        if let Err(error) = std::thread::Builder::new().name("sizes".to_owned()).spawn(run) {
            tracing::warn!("the sizes of devices are not watched: {error}");
        }
        Sizes(watched)
    }

    /// Looks at one more device.
    pub(crate) fn add(&self, device: DeviceId, path: PathBuf, file: File, size: u64) {
        self.lock().push(Watched { device, path, file, size });
    }

    /// Looks at a device no more, and closes its descriptor.
    pub(crate) fn remove(&self, device: DeviceId) {
        self.lock().retain(|one| one.device != device);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn look_on(watched: &Weak<Mutex<Vec<Watched>>>, mailbox: &Mailbox) {
    loop {
        std::thread::sleep(PERIOD);
        let Some(watched) = watched.upgrade() else { return };
        // The lock is not held while a device is asked: that may take long, and the engine takes it.
        let all: Vec<(DeviceId, PathBuf, std::io::Result<File>, u64)> = {
            let watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
            let copy = |one: &Watched| (one.device, one.path.clone(), one.file.try_clone(), one.size);
            watched.iter().map(copy).collect()
        };
        for (device, path, file, size) in all {
            let Some(why) = file.ok().and_then(|file| shrinkage(&path, &file, size)) else { continue };
            watched.lock().unwrap_or_else(PoisonError::into_inner).retain(|one| one.device != device);
            if mailbox.send(Message::Shrunk(device, why)).is_err() {
                return;
            }
        }
    }
}
