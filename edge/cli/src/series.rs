//! `series`: what guests or a device did over time.

use crate::shell::{Shell, seconds};
use crate::text;
use api::client::escaped;
use api::types::SeriesView;
use clap::Args;
use failure::Failure;

/// Options of `series`.
#[derive(Debug, Args)]
pub struct SeriesOptions {
    /// Subject: cluster, host/NAME, disk/NAME, device/HOST:PATH or device/ID.
    #[arg(default_value = "cluster")]
    of: String,
    /// Time that it covers: 10m, 1h, 7d; up to 90d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = seconds)]
    since: u64,
    /// Age of the end of that time: 1d, to compare with the day before.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    ago: Option<u64>,
    /// Number of rows at most.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rows: u64,
}

/// Shows it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, options: SeriesOptions) -> Result<(), Failure> {
    let SeriesOptions { of, since, ago, rows } = options;
    let mut path = format!("/api/v1/series?of={}&seconds={since}&points={rows}", escaped(&of));
    if let Some(ago) = ago {
        path += &format!("&until={}", text::now_seconds().saturating_sub(ago));
    }
    let found: SeriesView = shell.client.get(&path).await?;
    shell.show(&found, series_text)
}

fn series_text(found: &SeriesView) -> String {
    let is_device = found.busy_percent.is_some();
    let row = |step: usize| {
        let time = found.start + found.step_seconds * step as u64;
        let mut row = vec![trust::text_of_nanoseconds(time * 1_000_000_000)];
        for side in [&found.read, &found.write] {
            row.push(figure(side.iops[step], |iops| format!("{iops:.0}")));
            if !is_device {
                row.push(figure(side.bytes_per_second[step], text::rate));
            }
            row.push(text::latency(side.latency_us_p50[step]));
            row.push(text::latency(side.latency_us_p99[step]));
        }
        if let Some(busy) = &found.busy_percent {
            row.push(figure(busy[step], |percent| format!("{percent:.0} %")));
        }
        row
    };
    let headings: &[&str] = match is_device {
        true => &["from", "reads/s", "p50", "p99", "writes/s", "p50", "p99", "busy"],
        false => &["from", "reads/s", "read", "p50", "p99", "writes/s", "written", "p50", "p99"],
    };
    let right: Vec<usize> = (1..headings.len()).collect();
    let table = text::table(headings, &right, (0..found.read.iops.len()).map(row).collect());
    let mut shown =
        format!("{}, steps of {}\n\n{table}", found.of, text::duration(found.step_seconds as f64));
    if !found.silent.is_empty() {
        let hosts = found.silent.join(", ");
        shown += &format!("\n\nhosts that did not answer: {hosts}: what only they know is missing");
    }
    shown
}

fn figure(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}
