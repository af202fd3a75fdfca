//! `top`: what every disk does, again every second.

use super::{Shell, text};
use crate::api::types::{FiguresView, TopView};
use crate::failure::Failure;
use clap::Args;
use std::io::IsTerminal;
use std::time::Duration;

/// Options of `top`.
#[derive(Debug, Args)]
pub struct TopOptions {
    /// Print once and end.
    #[arg(long)]
    once: bool,
    /// Seconds between two tables.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Disks to show, the busiest first.
    #[arg(long, default_value_t = 30)]
    disks: usize,
}

/// To the upper left corner, and clear what is below.
const REDRAW: &str = "\x1b[H\x1b[J";

/// Shows it until the output is closed or the host is gone.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, options: TopOptions) -> Result<(), Failure> {
    let redraw = !shell.json && !options.once && std::io::stdout().is_terminal();
    loop {
        let top: TopView = shell.client.get("/api/v1/top").await?;
        shell.show(&top, |top| {
            let start = if redraw { REDRAW } else { "" };
            format!("{start}{}", top_text(top, options.disks))
        })?;
        if options.once {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(options.interval)).await;
    }
}

fn top_text(top: &TopView, count: usize) -> String {
    let row = |disk: &FiguresView| {
        vec![
            disk.disk.clone(),
            format!("{:.0}", disk.read.iops),
            text::rate(disk.read.bytes_per_second),
            text::latency(disk.read.latency_us_p50),
            text::latency(disk.read.latency_us_p99),
            format!("{:.0}", disk.write.iops),
            text::rate(disk.write.bytes_per_second),
            text::latency(disk.write.latency_us_p50),
            text::latency(disk.write.latency_us_p99),
            disk.outstanding.to_string(),
            disk.client_count.to_string(),
        ]
    };
    let headings = [
        "disk",
        "read iops",
        "read",
        "p50",
        "p99",
        "write iops",
        "write",
        "p50",
        "p99",
        "outstanding",
        "clients",
    ];
    let iops: f64 = top.disks.iter().map(|disk| disk.read.iops + disk.write.iops).sum();
    let bytes: f64 =
        top.disks.iter().map(|disk| disk.read.bytes_per_second + disk.write.bytes_per_second).sum();
    let congestion = top.congestion.values().max().copied().unwrap_or(0);
    let table = text::table(
        &headings,
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        top.disks.iter().take(count).map(row).collect(),
    );
    let hidden = top.disks.len().saturating_sub(count);
    let more = if hidden > 0 { format!("\n… and {hidden} more") } else { String::new() };
    format!(
        "{} disks, {iops:.0} IOPS, {}, congestion {congestion} of 255\n\n{table}{more}",
        top.disks.len(),
        text::rate(bytes)
    )
}
