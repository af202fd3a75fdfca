//! The same without Drystone: what fio feels on plain files of the same device, beside as many bytes copied a second and beside none.
//!
//! What a virtual disk takes for itself differs from minute to minute, and what it takes beside a copy need not be the copy's doing, nor
//! the product's. This tells how much of it plain files show.

use crate::cluster::end_with_parent;
use crate::failure::Failure;
use crate::fio::answer_in;
use base::units::MIB;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What guests ask for, as fio's jobs.
#[derive(Debug, Clone, Copy)]
pub struct Guest {
    /// I/Os a second, of 4 to 64 KiB.
    pub per_second: u32,
    /// Of a hundred of them.
    pub read_percent: u32,
    /// I/Os under way at most.
    pub depth: usize,
}

impl Guest {
    fn reads(&self) -> u32 {
        self.per_second * self.read_percent / 100
    }

    fn writes(&self) -> u32 {
        self.per_second - self.reads()
    }

    /// Bytes that it writes in a second.
    fn written(&self) -> u64 {
        u64::from(self.writes()) * GUEST_BYTES
    }
}

/// Bytes of a guest's I/O, in the mean.
const GUEST_BYTES: u64 = 34 << 10;
/// Size of the files that guests' I/O goes to.
const GUEST_FILE: u64 = 512 * MIB;
/// Size of those that are copied from and to.
const COPY_FILE: u64 = 2048 * MIB;

/// Plain files.
pub struct Control {
    folder: PathBuf,
}

impl Control {
    /// Makes the files, full: two that guests' I/O goes to as it goes to the logs of two hosts, two for what is then destaged, one to
    /// copy from.
    ///
    /// # Errors
    /// When there is no room, or no fio.
    pub fn prepare(folder: &Path) -> Result<Control, Failure> {
        let control = Control { folder: folder.join("control") };
        fs::create_dir_all(&control.folder).map_err(Failure::machine("make a folder for the control"))?;
        let mut fill = vec!["--rw=write".to_owned(), "--bs=1m".to_owned(), "--iodepth=8".to_owned()];
        for (name, bytes) in FILES {
            fill.extend(control.job(name, bytes, &[]));
        }
        control.run(&fill)?;
        Ok(control)
    }

    /// What a guest's I/Os took, microseconds, beside so many bytes a second that are read from one file and written to another as a
    /// rebuild does it: 128 KiB at a time and a flush after each MiB, to where nothing stands yet. That file is removed then, as what
    /// an emptied host had is.
    ///
    /// # Errors
    /// When fio fails, or the file cannot be made or removed.
    pub fn measure(
        &self,
        guest: Guest,
        lasts: Duration,
        copied_per_second: Option<u64>,
    ) -> Result<Vec<u32>, Failure> {
        let mut all = vec![
            "--output-format=json+".to_owned(),
            "--time_based".to_owned(),
            format!("--runtime={}", lasts.as_secs().max(1)),
        ];
        let small =
            ["--bsrange=4k-64k".to_owned(), "--sync=dsync".to_owned(), format!("--iodepth={}", guest.depth)];
        let (reads, writes) = (guest.reads(), guest.writes());
        let own = [
            "--rw=randrw".to_owned(),
            format!("--rwmixread={}", guest.read_percent),
            format!("--rate_iops={reads},{writes}"),
        ];
        all.extend(self.job("guest", GUEST_FILE, &[&small[..], &own].concat()));
        let twin = ["--rw=randwrite".to_owned(), format!("--rate_iops=,{writes}")];
        all.extend(self.job("twin", GUEST_FILE, &[&small[..], &twin].concat()));
        let large = |rw: &str, bytes: u64| {
            let rates = if rw == "read" { format!("{bytes}") } else { format!(",{bytes}") };
            [
                "--bs=128k".to_owned(),
                "--iodepth=8".to_owned(),
                "--fsync=8".to_owned(),
                format!("--rw={rw}"),
                format!("--rate={rates}"),
            ]
        };
        for name in ["destaged", "destaged-twin"] {
            all.extend(self.job(name, GUEST_FILE, &large("randwrite", guest.written())));
        }
        if let Some(bytes) = copied_per_second {
            all.extend(self.job("source", COPY_FILE, &large("read", bytes)));
            all.extend(self.job(TARGET, COPY_FILE, &large("write", bytes)));
        }
        let target = self.folder.join(TARGET);
        let failed = || Failure::machine(format!("make {} anew", target.display()));
        if copied_per_second.is_some() {
            File::create(&target).and_then(|file| file.set_len(COPY_FILE)).map_err(failed())?;
        }
        let said = self.run(&all)?;
        if copied_per_second.is_some() {
            fs::remove_file(&target).map_err(failed())?;
        }
        took_us(&said)
    }

    fn job(&self, name: &str, bytes: u64, options: &[String]) -> Vec<String> {
        let file = self.folder.join(name);
        let first =
            [format!("--name={name}"), format!("--filename={}", file.display()), format!("--size={bytes}")];
        first.into_iter().chain(options.iter().cloned()).collect()
    }

    fn run(&self, arguments: &[String]) -> Result<String, Failure> {
        let mut command = Command::new("fio");
        command.args(["--ioengine=io_uring", "--direct=1", "--thread"]).args(arguments);
        command.current_dir(&self.folder).stdin(Stdio::null());
        let done = end_with_parent(&mut command).output();
        let done = done.map_err(Failure::machine("run fio, of the Debian package fio"))?;
        if !done.status.success() {
            let errors = String::from_utf8_lossy(&done.stderr);
            return Err(Failure::Client(format!("fio failed on plain files: {errors}")));
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

/// The file that is copied to.
const TARGET: &str = "target";
/// The others, and how long they are.
const FILES: [(&str, u64); 5] = [
    ("guest", GUEST_FILE),
    ("twin", GUEST_FILE),
    ("destaged", GUEST_FILE),
    ("destaged-twin", GUEST_FILE),
    ("source", COPY_FILE),
];

/// What the I/Os of the first job took, from fio's JSON with bins: nanoseconds, and how many.
fn took_us(said: &str) -> Result<Vec<u32>, Failure> {
    let answer = answer_in(said)?;
    let bins = ["read", "write"].map(|side| answer["jobs"][0][side]["clat_ns"]["bins"].as_object());
    let mut took_us = Vec::new();
    for (bin, count) in bins.into_iter().flatten().flatten() {
        let (nanoseconds, count) = (bin.parse::<u64>().ok(), count.as_u64());
        let (Some(nanoseconds), Some(count)) = (nanoseconds, count) else {
            return Err(Failure::Client(format!("fio has a bin {bin} of {count:?}")));
        };
        let took = u32::try_from(nanoseconds / 1000).unwrap_or(u32::MAX);
        took_us.extend(std::iter::repeat_n(took, count as usize));
    }
    match took_us.is_empty() {
        true => Err(Failure::Client("fio did nothing on plain files".to_owned())),
        false => Ok(took_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn bins_of_fio_are_latencies() {
        let side = |bins: Value| json!({ "clat_ns": { "bins": bins } });
        let job = json!({ "read": side(json!({ "1500": 2 })), "write": side(json!({ "90000000": 1 })) });
        let other = json!({ "read": side(json!({ "7000": 2 })) });
        let answer = json!({ "jobs": [job, other] });
        assert_eq!(took_us(&answer.to_string()).expect("latencies"), [1, 1, 90_000]);
        took_us(r#"{"jobs": []}"#).expect_err("nothing was done");
    }

    #[test]
    fn a_guest_is_split_into_reads_and_writes() {
        let guest = Guest { per_second: 300, read_percent: 30, depth: 16 };
        assert_eq!((guest.reads(), guest.writes(), guest.written()), (90, 210, 210 * 34 * 1024));
    }
}
