//! A small file system of its own for a folder, which can be filled to the last byte and emptied again.
//!
//! In memory (tmpfs), so that it needs nothing but root. Dropped, it is unmounted, with all that is in it.

use crate::failure::Failure;
use crate::undo::Undo;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What takes the room. No name that the product knows.
const BALLAST: &str = "ballast";
/// Bytes that are written at once: the last ones fill what is left of the last page.
const PIECES: [usize; 2] = [64 << 10, 512];

/// A mounted file system.
pub struct Room {
    folder: PathBuf,
    _left: Undo,
}

impl Drop for Room {
    fn drop(&mut self) {
        // Lazily: a process that was just killed may still hold files.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.folder).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("trials: {} stays mounted", self.folder.display());
        }
    }
}

impl Room {
    /// Mounts one of so many bytes at a folder, which is made.
    ///
    /// # Errors
    /// When this is not root.
    pub fn mount(folder: &Path, bytes: u64) -> Result<Room, Failure> {
        let failed = || Failure::machine(format!("mount a file system at {}", folder.display()));
        fs::create_dir_all(folder).map_err(failed())?;
        let options = format!("size={bytes},mode=0700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "drystone-trials"]).arg(folder);
        let done = mount.output().map_err(failed())?;
        match done.status.success() {
            true => {
                let left = Undo::by(&["umount", "--lazy", &folder.display().to_string()]);
                Ok(Room { folder: folder.to_owned(), _left: left })
            }
            false => Err(Failure::Refused(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
        }
    }

    /// Takes all that is left.
    ///
    /// # Errors
    /// When a write fails for another reason than that there is no room.
    pub fn fill(&self) -> Result<(), Failure> {
        let failed = || Failure::machine(format!("fill {}", self.folder.display()));
        let ballast = File::options().create(true).append(true).open(self.folder.join(BALLAST));
        let mut ballast = ballast.map_err(failed())?;
        for size in PIECES {
            loop {
                match ballast.write_all(&vec![1; size]) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(failed()(error)),
                }
            }
        }
        Ok(())
    }

    /// Whether a file is there, with something in it.
    pub fn holds(&self, name: &str) -> bool {
        fs::metadata(self.folder.join(name)).is_ok_and(|file| file.len() > 0)
    }

    /// Removes a file of those that have its room, if it is there.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::machine(format!("remove {}", path.display()))(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Gives it back.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn free(&self) -> Result<(), Failure> {
        self.remove(BALLAST)
    }
}
