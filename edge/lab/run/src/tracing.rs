//! Live tracing of a block device: the kernel's block tracepoints, in an instance of their own.
//!
//! The instance has its own buffer and filter, so that nothing else that is traced on the machine is touched, and goes when
//! this is dropped. Needs root. What the lines mean is [`lens::trace`]'s affair.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const TRACEFS: &str = "/sys/kernel/tracing";
/// KiB of each processor's buffer: about 100,000 events.
const BUFFER_KIB: &str = "16384";
const EVENTS: [&str; 2] = ["block_rq_issue", "block_rq_complete"];

/// Why a device cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TracingError {
    /// No block device.
    #[error("{path} is not a block device: name one, for example /dev/sda")]
    NoDevice {
        /// What was named.
        path: String,
    },
    /// The kernel refuses.
    #[error("{doing}: {source}; tracing needs root and a kernel with CONFIG_BLK_DEV_IO_TRACE")]
    Kernel {
        /// What was tried.
        doing: String,
        /// Why not.
        source: io::Error,
    },
}

/// A device that is being traced.
pub struct Tracing {
    instance: PathBuf,
    /// Gone before the instance is taken away: the kernel keeps one that is read.
    pipe: Option<File>,
    /// The end of a line that is not whole yet.
    partial: String,
    /// Lines that were read.
    pub lines: u64,
}

fn kernel(doing: impl Into<String>) -> impl FnOnce(io::Error) -> TracingError {
    move |source| TracingError::Kernel { doing: doing.into(), source }
}

impl Tracing {
    /// Traces a device from now on.
    ///
    /// # Errors
    /// When it is none, or the kernel does not let it be traced.
    pub fn start(device: &Path) -> Result<Tracing, TracingError> {
        let data = fs::metadata(device).map_err(kernel(format!("look at {}", device.display())))?;
        if !data.file_type().is_block_device() {
            return Err(TracingError::NoDevice { path: device.display().to_string() });
        }
        let number = u64::from(libc::major(data.rdev())) << 20 | u64::from(libc::minor(data.rdev()));
        mount()?;
        let instance = Path::new(TRACEFS).join(format!("instances/drystone-{}", std::process::id()));
        fs::create_dir(&instance).map_err(kernel("make an instance of the kernel's tracing"))?;
        let made = set_up(&instance, number);
        match made {
            Ok(pipe) => Ok(Tracing { instance, pipe: Some(pipe), partial: String::new(), lines: 0 }),
            Err(error) => {
                remove(&instance);
                Err(error)
            }
        }
    }

    /// Gives on the lines that came since; returns at once.
    ///
    /// # Errors
    /// When the kernel's pipe cannot be read.
    pub fn lines(&mut self, mut take: impl FnMut(&str)) -> Result<(), TracingError> {
        let mut buffer = [0; 64 << 10];
        loop {
            let Some(pipe) = &mut self.pipe else { return Ok(()) };
            let count = match pipe.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    return Ok(());
                }
                Err(source) => return Err(kernel("read the kernel's trace")(source)),
            };
            self.partial.push_str(&String::from_utf8_lossy(&buffer[..count]));
            while let Some(end) = self.partial.find('\n') {
                self.lines += 1;
                take(&self.partial[..end]);
                self.partial.drain(..=end);
            }
        }
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.pipe = None;
        remove(&self.instance);
    }
}

/// Whoever made an instance takes it away; a kernel that keeps it does so until it is booted.
fn remove(instance: &Path) {
    let _ = fs::write(instance.join("tracing_on"), "0");
    for event in EVENTS {
        let _ = fs::write(instance.join(format!("events/block/{event}/enable")), "0");
    }
    let _ = fs::remove_dir(instance);
}

fn mount() -> Result<(), TracingError> {
    if Path::new(TRACEFS).join("events/block").exists() {
        return Ok(());
    }
    let (source, target, kind) = (c"nodev", c"/sys/kernel/tracing", c"tracefs");
    // SAFETY: all pointers are to constant texts that end in a zero, or null where nothing is said.
    let failed = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    match failed {
        0 => Ok(()),
        _ => Err(kernel("mount tracefs at /sys/kernel/tracing")(io::Error::last_os_error())),
    }
}

fn set_up(instance: &Path, device: u64) -> Result<File, TracingError> {
    let set = |file: &str, value: &str| {
        fs::write(instance.join(file), value).map_err(kernel(format!("set {file} of the kernel's tracing")))
    };
    set("buffer_size_kb", BUFFER_KIB)?;
    for event in EVENTS {
        set(&format!("events/block/{event}/filter"), &format!("dev == {device}"))?;
        set(&format!("events/block/{event}/enable"), "1")?;
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(instance.join("trace_pipe"))
        .map_err(kernel("open the kernel's trace"))
}
