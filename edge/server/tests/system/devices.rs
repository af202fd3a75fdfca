//! Loop devices and mounts that go away with the test.

use super::tools::{root_command, run_as_root, text, wait_for};
use std::path::{Path, PathBuf};

/// A file as a block device.
pub struct LoopDevice {
    /// Where it is.
    pub path: PathBuf,
}

impl LoopDevice {
    /// Attaches a file; `options` are those of `losetup`.
    pub fn attach(file: &Path, options: &[&str]) -> LoopDevice {
        let arguments = [&["--find", "--show"], options, &[text(file)]].concat();
        LoopDevice { path: PathBuf::from(run_as_root("losetup", &arguments).trim()) }
    }

    /// Looks anew how large the file is.
    pub fn look_at_size(&self) {
        run_as_root("losetup", &["--set-capacity", text(&self.path)]);
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // A device that is still open goes away when it is closed.
        let _ = root_command("losetup").args(["--detach", text(&self.path)]).status();
    }
}

/// A mounted file system.
pub struct Mount {
    /// Where it is mounted.
    pub folder: PathBuf,
    is_mounted: bool,
}

impl Mount {
    /// Mounts a device at a folder, which is made.
    pub fn new(device: &Path, folder: PathBuf) -> Mount {
        std::fs::create_dir_all(&folder).expect("room for a folder");
        run_as_root("mount", &[text(device), text(&folder)]);
        Mount { folder, is_mounted: true }
    }

    /// Unmounts it, which writes all that is cached.
    pub fn unmount(mut self) {
        run_as_root("umount", &[text(&self.folder)]);
        self.is_mounted = false;
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.is_mounted {
            // The test has failed already; nothing may stay mounted.
            let _ = root_command("umount").args(["--lazy", text(&self.folder)]).status();
        }
    }
}

/// A disk as a file, by `nbdfuse`.
pub struct FuseFile {
    child: std::process::Child,
    folder: PathBuf,
    /// The file.
    pub file: PathBuf,
}

impl FuseFile {
    /// Shows the disk at `uri` as a file in `folder`, which is made.
    pub fn mount(uri: &str, folder: PathBuf) -> FuseFile {
        std::fs::create_dir_all(&folder).expect("room for a folder");
        let file = folder.join("disk");
        let child = root_command("nbdfuse").args([text(&file), uri]).spawn();
        let child = child
            .unwrap_or_else(|error| panic!("run nbdfuse: {error}; it is in the Debian package libnbd-bin"));
        let mut fuse = FuseFile { child, folder, file };
        wait_for("nbdfuse shows the disk", 30, || {
            assert!(fuse.child.try_wait().expect("it is our child").is_none(), "nbdfuse ended");
            fuse.file.exists().then_some(())
        });
        fuse
    }

    /// Ends it.
    pub fn unmount(mut self) {
        run_as_root("fusermount3", &["-u", text(&self.folder)]);
        wait_for("nbdfuse ends", 30, || self.child.try_wait().expect("it is our child"));
    }
}

impl Drop for FuseFile {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = root_command("fusermount3").args(["-u", "-z", text(&self.folder)]).status();
            // Both fail only when it has ended already.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
