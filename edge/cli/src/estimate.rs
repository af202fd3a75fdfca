//! `cluster estimate` and `disk estimate`: what compression and deduplication would save.

use crate::shell::Shell;
use crate::text;
use api::client::disk_path;
use api::types::{
    CompressionView, DeduplicationView, EstimateProgressView, EstimateView, HostPassView, PassWord,
    ReductionView, StartEstimate,
};
use base::units::format_bytes;
use clap::Args;
use failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Where the API has estimates.
const PATH: &str = "/api/v1/estimate";
/// Time between two looks at a pass that runs.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// An age that hosts tell may be off by so much: the answer takes a while.
const AGE_SLACK: f64 = 2.0;

/// Options of `cluster estimate`.
#[derive(Debug, Args)]
pub struct EstimateOptions {
    /// Take a new sample on all hosts, wait for it, and show the figures.
    #[arg(long)]
    start: bool,
    /// Most allocated blocks to read, in percent [default: 128 Ki blocks for each host, or all if there are fewer].
    #[arg(long, value_name = "PERCENT", requires = "start", value_parser = percent)]
    sample: Option<f64>,
    /// Return as soon as the hosts have begun.
    #[arg(long, requires = "start")]
    no_wait: bool,
    /// Stop sampling on all hosts. The former sample stays.
    #[arg(long, conflicts_with = "start")]
    stop: bool,
}

/// For clap: `1%`, `0.5%` or `1`.
fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().trim_end_matches('%').trim_end().parse().ok();
    number
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .ok_or_else(|| format!("`{text}` is not a percentage above 0 and up to 100: use 1% or 0.5%"))
}

/// Does it.
///
/// # Errors
/// What the host says, or that the pass was stopped.
pub async fn run(shell: &mut Shell<'_>, options: &EstimateOptions) -> Result<(), Failure> {
    if options.stop {
        let stopped: EstimateProgressView = shell.client.delete(PATH).await?;
        return shell.show(&stopped, progress_text);
    }
    if options.start {
        let request = StartEstimate { sample_percent: options.sample };
        let begun: EstimateProgressView = shell.client.post(PATH, &request).await?;
        if options.no_wait {
            return shell.show(&begun, progress_text);
        }
        wait(shell, &begun).await?;
    }
    let estimate: EstimateView = shell.client.get(PATH).await?;
    shell.show(&estimate, estimate_text)
}

/// Shows the estimate of a disk.
///
/// # Errors
/// What the host says.
pub async fn of_disk(shell: &mut Shell<'_>, name: &str) -> Result<(), Failure> {
    let estimate: EstimateView = shell.client.get(&format!("{}/estimate", disk_path(name))).await?;
    shell.show(&estimate, estimate_text)
}

/// Waits until the hosts that have begun are done. Hosts that have not begun are told of.
async fn wait(shell: &Shell<'_>, begun: &EstimateProgressView) -> Result<(), Failure> {
    let since = Instant::now();
    let (sampling, others): (Vec<_>, Vec<_>) = begun.hosts.iter().partition(|host| host.trouble.is_none());
    for host in others {
        eprintln!("host {} is left out: {}", host.host, host.trouble.as_deref().unwrap_or_default());
    }
    let bar = bar();
    let progress = loop {
        let progress: EstimateProgressView = shell.client.get(&format!("{PATH}/progress")).await?;
        bar.set_position(hundredths(&progress));
        if !progress.is_running {
            break progress;
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    };
    bar.finish_and_clear();
    let is_fresh = |host: &HostPassView| {
        let age = host.age_seconds.unwrap_or(f64::INFINITY);
        age <= since.elapsed().as_secs_f64() + AGE_SLACK
    };
    let ended = |name: &str| progress.hosts.iter().find(|host| host.host == name).is_some_and(is_fresh);
    match sampling.iter().find(|host| !ended(&host.host)) {
        Some(host) => Err(Failure::refused(format!(
            "host {} did not finish its sample: it was stopped",
            host.host
        ))
        .hint("see `drystone events --kind estimate`, and start again: `drystone cluster estimate --start`")),
        None => Ok(()),
    }
}

/// The mean progress of the hosts, in hundredths of a percent.
fn hundredths(progress: &EstimateProgressView) -> u64 {
    let known = progress.hosts.iter().filter(|host| host.trouble.is_none());
    let percents: Vec<f64> = known.map(|host| host.percent.unwrap_or(100.0)).collect();
    (percents.iter().sum::<f64>() * 100.0 / percents.len().max(1) as f64) as u64
}

/// A bar of a hundred percent in hundredths; hidden when nobody looks.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("sample [{bar:40}] {percent:>3} %  {elapsed}, {eta} left")
        .expect("the template is well formed");
    ProgressBar::new(10_000).with_style(style)
}

fn progress_text(progress: &EstimateProgressView) -> String {
    let row = |host: &HostPassView| {
        vec![
            host.host.clone(),
            host.state.to_string(),
            host.percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.0} %")),
            format_bytes(host.read_bytes),
            host.age_seconds.map_or_else(|| "-".to_owned(), text::duration),
            host.trouble.clone().unwrap_or_default(),
        ]
    };
    let headings = ["host", "sample", "progress", "read", "age", "trouble"];
    text::table(&headings, &[2, 3, 4], progress.hosts.iter().map(row).collect())
}

fn estimate_text(estimate: &EstimateView) -> String {
    let mut shown = Vec::new();
    let named = |what: &str, one: &ReductionView| row(format!("{what} {}", one.name), one);
    let mut rows: Vec<Vec<String>> = Vec::new();
    rows.extend(estimate.cluster.as_ref().map(|one| row("cluster".to_owned(), one)));
    rows.extend(estimate.policies.iter().map(|one| named("policy", one)));
    rows.extend(estimate.disks.iter().map(|one| named("disk", one)));
    match estimate.age_seconds {
        None => {
            shown.push("no host has a sample; take one: `drystone cluster estimate --start`".to_owned());
        }
        Some(age) => {
            shown.push(facts(estimate, age));
            shown.push(text::table(&HEADINGS, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], rows));
            shown.push(notes(estimate));
        }
    }
    let troubled = estimate.hosts.iter().any(|host| host.state != PassWord::Done);
    if troubled {
        let progress = EstimateProgressView { is_running: false, hosts: estimate.hosts.clone() };
        shown.push(progress_text(&progress));
    }
    shown.join("\n\n")
}

const HEADINGS: [&str; 11] = [
    "scope",
    "allocated",
    "zero",
    "lz4",
    "packed",
    "zstd",
    "packed",
    "dedup/device",
    "dedup/cluster",
    "blocks sampled",
    "contents",
];

fn facts(estimate: &EstimateView, age: f64) -> String {
    let have = estimate.hosts.iter().filter(|host| host.age_seconds.is_some()).count();
    let share =
        |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.3} %", rate * 100.0));
    let sample = format!(
        "{} of blocks for compression, {} of contents for deduplication",
        share(estimate.compression_rate),
        share(estimate.deduplication_rate)
    );
    text::facts(&[
        ("age", text::duration(age)),
        ("hosts", format!("{have} of {} have a sample", estimate.hosts.len())),
        ("sample", sample),
    ])
}

fn row(name: String, one: &ReductionView) -> Vec<String> {
    let zero = match one.allocated_bytes {
        0 => "-".to_owned(),
        all => format!("{:.1} %", one.zero_bytes as f64 * 100.0 / all as f64),
    };
    vec![
        name,
        format_bytes(one.allocated_bytes),
        zero,
        ratio(one.lz4),
        packed(one.lz4),
        ratio(one.zstd),
        packed(one.zstd),
        saved(one.deduplication_per_device),
        saved(one.deduplication_cluster),
        format!("{} of {}", one.compression_sampled_blocks, one.blocks),
        one.deduplication_sampled_contents.to_string(),
    ]
}

fn ratio(found: Option<CompressionView>) -> String {
    match found {
        None => "-".to_owned(),
        Some(CompressionView { ratio, ratio_error: Some(error), .. }) => format!("{ratio:.2} ± {error:.2}"),
        Some(CompressionView { ratio, .. }) => format!("{ratio:.2} ± -"),
    }
}

fn packed(found: Option<CompressionView>) -> String {
    found.map_or_else(|| "-".to_owned(), |found| format!("{:.2}", found.packed_ratio))
}

fn saved(found: Option<DeduplicationView>) -> String {
    match found {
        None => "-".to_owned(),
        Some(DeduplicationView { saved_percent, error_percent }) => {
            let error = error_percent.map_or_else(|| "-".to_owned(), |error| format!("{error:.1}"));
            // Nothing can be lost: an estimate below zero is one of about zero.
            format!("{:.1} ± {error} %", saved_percent.max(0.0))
        }
    }
}

fn notes(estimate: &EstimateView) -> String {
    let mut notes = vec![
        "Ratios are bytes now for each byte then, ± one standard error; packed is with the gaps that packing leaves (a model).".to_owned(),
        "Deduplication is in percent of the blocks that it would save. All but `zero` is of blocks that are not zero.".to_owned(),
    ];
    let parts = [
        ("compression", estimate.compression_available),
        ("deduplication", estimate.deduplication_available),
    ];
    let missing: Vec<&str> = parts.iter().filter(|(_, is)| !is).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        notes.push(format!(
            "This release has no {} of data at rest: the figures are forecasts.",
            missing.join(" and no ")
        ));
    }
    let all = estimate.cluster.iter().chain(&estimate.disks);
    let lacks = all.map(|one| one.components - one.sampled_components).max().unwrap_or(0);
    if lacks > 0 {
        notes.push(format!(
            "Components without a sample: {lacks}. They are in no figure; take a new sample when all hosts can be reached."
        ));
    }
    notes.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduction(name: &str) -> ReductionView {
        let compression = CompressionView { ratio: 1.854, ratio_error: Some(0.012), packed_ratio: 1.79 };
        ReductionView {
            name: name.to_owned(),
            components: 4,
            sampled_components: 3,
            allocated_bytes: 1 << 30,
            zero_bytes: 1 << 28,
            blocks: 196_608,
            compression_sampled_blocks: 3072,
            deduplication_sampled_contents: 2900,
            lz4: Some(compression),
            zstd: Some(CompressionView { ratio_error: None, ..compression }),
            deduplication_per_device: Some(DeduplicationView {
                saved_percent: -1.2,
                error_percent: Some(1.8),
            }),
            deduplication_cluster: None,
            changed_blocks: 0,
            unreadable_blocks: 0,
        }
    }

    fn estimate() -> EstimateView {
        EstimateView {
            hosts: vec![HostPassView {
                host: "a".to_owned(),
                state: PassWord::Done,
                percent: None,
                read_bytes: 1 << 20,
                seconds: Some(3.0),
                age_seconds: Some(125.0),
                trouble: None,
            }],
            age_seconds: Some(125.0),
            compression_rate: Some(0.015_625),
            deduplication_rate: Some(0.015_625),
            cluster: Some(reduction("cluster")),
            policies: vec![reduction("gold")],
            disks: vec![reduction("web")],
            compression_available: true,
            deduplication_available: false,
        }
    }

    #[test]
    fn figures_come_with_their_errors_and_with_what_they_are_not() {
        let shown = estimate_text(&estimate());
        for part in [
            "age     2m 5s",
            "1 of 1 have a sample",
            "1.562 % of blocks",
            "policy gold",
            "disk web",
            "1.85 ± 0.01",
            "1.85 ± -",
            "0.0 ± 1.8 %",
            "25.0 %",
            "3072 of 196608",
            "no deduplication of data",
            "Components without a sample: 1",
        ] {
            assert!(shown.contains(part), "{part}:\n{shown}");
        }
    }

    #[test]
    fn without_a_sample_the_way_to_one_is_told() {
        let host = HostPassView { state: PassWord::None, age_seconds: None, ..estimate().hosts[0].clone() };
        let nothing = EstimateView {
            hosts: vec![host],
            age_seconds: None,
            cluster: None,
            policies: Vec::new(),
            disks: Vec::new(),
            ..estimate()
        };
        assert!(estimate_text(&nothing).contains("drystone cluster estimate --start"));
    }

    #[test]
    fn percentages_are_read_with_and_without_their_sign() {
        assert_eq!((percent("1%"), percent("0.5 %"), percent("100")), (Ok(1.0), Ok(0.5), Ok(100.0)));
        for wrong in ["0", "101%", "some", "-1", "nan"] {
            assert!(percent(wrong).is_err_and(|error| error.contains("use 1%")), "{wrong}");
        }
    }
}
