//! A short load by fio over NBD, and its figures beside the disk's own.

use super::files::run;
use api::types::{DiskView, HistogramsView, LatencyView};
use base::units::format_bytes;
use failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::process::Command;

/// What fio measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadResult {
    read: Side,
    write: Side,
}

/// Reads or writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Side {
    iops: f64,
    bytes_per_second: f64,
    latency_us_mean: f64,
    latency_us_p50: f64,
    latency_us_p99: f64,
}

/// What fio saw while everything that it wrote was read back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verified {
    /// Writes.
    pub writes: u64,
    /// Reads, each compared with what was written.
    pub reads: u64,
    /// The longest that one of them took.
    pub longest_ms: f64,
}

/// 4 KiB at random places of the first `size` bytes, each read back and compared soon after, for so many seconds.
///
/// # Errors
/// When fio is not there, or an I/O failed or brought something else.
pub async fn run_verified(address: &str, size: u64, seconds: u64) -> Result<Verified, Failure> {
    let shape = [
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=16",
        "--time_based",
        "--verify=crc32c",
        "--verify_backlog=256",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--serialize_overlap=1",
    ];
    let shape: Vec<String> =
        shape.map(str::to_owned).into_iter().chain([format!("--runtime={seconds}")]).collect();
    let answer = job(&fio(address, size, &shape).await?)?;
    let number = |side: &str, path: &[&str]| {
        let found = path.iter().fold(&answer[side], |value, key| &value[*key]);
        found
            .as_f64()
            .ok_or_else(|| Failure::failed("read the answer of fio", format!("{side} lacks a figure")))
    };
    let longest = number("write", &["clat_ns", "max"])?.max(number("read", &["clat_ns", "max"])?);
    Ok(Verified {
        writes: number("write", &["total_ios"])? as u64,
        reads: number("read", &["total_ios"])? as u64,
        longest_ms: longest / 1e6,
    })
}

/// Writes the first `size` bytes once, in order.
///
/// # Errors
/// When fio is not there or fails.
pub async fn fill(address: &str, size: u64) -> Result<(), Failure> {
    let shape = ["--rw=write".to_owned(), "--bs=1m".to_owned(), "--iodepth=8".to_owned()];
    fio(address, size, &shape).await.map(|_| ())
}

/// 4 KiB at random places of the first `size` bytes for so many seconds, with a bar if somebody looks.
///
/// # Errors
/// When fio is not there or fails, or its answer cannot be read.
pub async fn run_with_bar(address: &str, size: u64, seconds: u64) -> Result<LoadResult, Failure> {
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(seconds) } else { ProgressBar::hidden() };
    let template = "load [{bar:40}] {pos} of {len} s";
    bar.set_style(ProgressStyle::with_template(template).expect("the template is well formed"));
    let shape = ["--rw=randrw", "--rwmixread=70", "--bs=4k", "--iodepth=32", "--time_based"];
    let shape: Vec<String> =
        shape.map(str::to_owned).into_iter().chain([format!("--runtime={seconds}")]).collect();
    let load = fio(address, size, &shape);
    tokio::pin!(load);
    let output = loop {
        tokio::select! {
            output = &mut load => break output,
            () = tokio::time::sleep(Duration::from_secs(1)) => bar.inc(1),
        }
    };
    bar.finish_and_clear();
    parse(&output?)
}

async fn fio(address: &str, size: u64, shape: &[String]) -> Result<Vec<u8>, Failure> {
    let mut command = Command::new("fio");
    command.args(["--name=demo", "--ioengine=nbd", "--output-format=json"]).args(shape);
    command.args([format!("--uri={address}"), format!("--size={size}")]);
    run(&mut command, "fio", "fio").await.map(|output| output.stdout)
}

/// The job in fio's JSON. Lines before it are notes.
fn job(output: &[u8]) -> Result<Value, Failure> {
    let text = String::from_utf8_lossy(output);
    let json = text.find('{').map_or("", |start| &text[start..]);
    let mut answer: Value =
        serde_json::from_str(json).map_err(|error| Failure::failed("read the answer of fio", error))?;
    Ok(answer["jobs"][0].take())
}

/// The figures in fio's JSON. Lines before it are notes.
fn parse(output: &[u8]) -> Result<LoadResult, Failure> {
    let job = job(output)?;
    let side = |name: &str| -> Result<Side, Failure> {
        let part = &job[name];
        let number = |value: &Value| {
            value
                .as_f64()
                .ok_or_else(|| Failure::failed("read the answer of fio", format!("{name} lacks a figure")))
        };
        let latency = |key: &str| number(&part["clat_ns"]["percentile"][key]).map(|ns| ns / 1e3);
        Ok(Side {
            iops: number(&part["iops"])?,
            bytes_per_second: number(&part["bw_bytes"])?,
            latency_us_mean: number(&part["lat_ns"]["mean"])? / 1e3,
            latency_us_p50: latency("50.000000")?,
            latency_us_p99: latency("99.000000")?,
        })
    };
    Ok(LoadResult { read: side("read")?, write: side("write")? })
}

/// What fio saw from outside, and the disk from within.
pub fn table(result: &LoadResult, histograms: &HistogramsView) -> String {
    let outside = |name: &str, side: &Side| {
        vec![
            name.to_owned(),
            format!("{:.0}", side.iops),
            format!("{}/s", format_bytes(side.bytes_per_second as u64)),
            format!("{:.0} us", side.latency_us_mean),
            format!("{:.0} us", side.latency_us_p50),
            format!("{:.0} us", side.latency_us_p99),
        ]
    };
    let within = |name: &str, view: &LatencyView| {
        let latency = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |us| format!("{us:.0} us"));
        let (mean, p50, p99) = (view.latency_us_mean, view.latency_us_p50, view.latency_us_p99);
        vec![name.to_owned(), "-".to_owned(), "-".to_owned(), latency(mean), latency(p50), latency(p99)]
    };
    let rows = vec![
        outside("reads, fio", &result.read),
        within("reads, disk", &histograms.read),
        outside("writes, fio", &result.write),
        within("writes, disk", &histograms.write),
    ];
    cli::table(&["", "iops", "throughput", "mean", "p50", "p99"], &[1, 2, 3, 4, 5], rows)
}

/// Where a disk is reached by the unix socket of its host.
///
/// # Errors
/// When it has none.
pub fn unix_address(disk: &DiskView) -> Result<&str, Failure> {
    let unix = disk.addresses.iter().find(|address| address.starts_with("nbd+unix:"));
    unix.map(String::as_str).ok_or_else(|| Failure::refused("the demo's host has no unix socket"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_answer_of_fio_is_read_behind_its_notes() {
        let side = |iops: f64| {
            json!({
                "iops": iops, "bw_bytes": 4096, "lat_ns": { "mean": 2500.0 },
                "clat_ns": { "percentile": { "50.000000": 2000, "99.000000": 9000 } },
            })
        };
        let answer = json!({ "jobs": [{ "read": side(7.5), "write": side(3.0) }] });
        let result = parse(format!("fio: a note\n{answer}").as_bytes()).expect("an answer");
        assert_eq!((result.read.iops, result.write.iops), (7.5, 3.0));
        assert_eq!((result.read.latency_us_mean, result.read.latency_us_p99), (2.5, 9.0));
        parse(b"fio: failed").expect_err("no answer");
    }
}
