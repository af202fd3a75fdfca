//! fio as a second judge: it writes and verifies by its own means.

use crate::cluster::end_with_parent;
use crate::failure::Failure;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// A run of fio under way.
pub struct Fio {
    child: Child,
}

/// What it saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Writes.
    pub writes: u64,
    /// Reads, each compared with what was written.
    pub reads: u64,
    /// The longest that one took, milliseconds.
    pub longest_ms: f64,
}

impl Fio {
    /// Random 4 KiB writes over `size` bytes for so many seconds, each read back and compared.
    ///
    /// # Errors
    /// When fio is not there.
    pub fn start(uri: &str, size: u64, seconds: u64) -> Result<Fio, Failure> {
        let mut command = Command::new("fio");
        command.args(["--name=trial", "--ioengine=nbd", "--output-format=json", "--rw=randwrite", "--bs=4k"]);
        command.args(["--iodepth=16", "--time_based", "--verify=crc32c", "--verify_backlog=256"]);
        command.args(["--verify_fatal=1", "--verify_state_save=0", "--serialize_overlap=1"]);
        command.args([format!("--uri={uri}"), format!("--size={size}"), format!("--runtime={seconds}")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = end_with_parent(&mut command).spawn();
        let child = child.map_err(Failure::machine("run fio, of the Debian package fio"))?;
        Ok(Fio { child })
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When an I/O failed, or brought something else than was written.
    pub fn finish(self) -> Result<Seen, Failure> {
        let done = self.child.wait_with_output().map_err(Failure::machine("wait for fio"))?;
        let said = String::from_utf8_lossy(&done.stdout);
        if !done.status.success() {
            let errors = String::from_utf8_lossy(&done.stderr);
            return Err(Failure::Client(format!("fio failed: {errors}{said}")));
        }
        parse(&said)
    }
}

/// fio's JSON. Lines before it are notes.
///
/// # Errors
/// When it is none.
pub fn answer_in(said: &str) -> Result<Value, Failure> {
    let json = said.find('{').map_or("", |start| &said[start..]);
    serde_json::from_str(json)
        .map_err(|error| Failure::Client(format!("the answer of fio makes no sense: {error}")))
}

fn parse(said: &str) -> Result<Seen, Failure> {
    let answer = answer_in(said)?;
    let job = &answer["jobs"][0];
    let count = |side: &str| job[side]["total_ios"].as_u64();
    let longest = |side: &str| job[side]["clat_ns"]["max"].as_f64();
    match (count("write"), count("read"), longest("write"), longest("read")) {
        (Some(writes), Some(reads), Some(write_ns), Some(read_ns)) => {
            Ok(Seen { writes, reads, longest_ms: write_ns.max(read_ns) / 1e6 })
        }
        _ => Err(Failure::Client("the answer of fio lacks a figure".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_answer_of_fio_is_read_behind_its_notes() {
        let side = |count: u64, max: u64| json!({ "total_ios": count, "clat_ns": { "max": max } });
        let answer = json!({ "jobs": [{ "read": side(3, 1_000_000), "write": side(7, 2_000_000) }] });
        let seen = parse(&format!("fio: a note\n{answer}")).expect("an answer");
        assert_eq!(seen, Seen { writes: 7, reads: 3, longest_ms: 2.0 });
        parse("fio: failed").expect_err("no answer");
    }
}
