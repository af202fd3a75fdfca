//! `events`: what happened, on all hosts.

use crate::shell::{Shell, seconds};
use api::types::{EventQuery, EventView, EventsView};
use clap::Args;
use failure::{Code, Failure};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How often `--follow` asks.
const FOLLOW_PAUSE: Duration = Duration::from_secs(1);
/// How far `--follow` looks back each time: hosts' clocks differ, and one that was slow to answer is asked again.
const FOLLOW_SECONDS: u64 = 30;

/// Options of `events`.
#[derive(Debug, Args)]
pub struct EventOptions {
    /// Age of the oldest event, e.g. 10m, 2h or 7d.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    since: Option<u64>,
    /// Disk or host that the events are about.
    #[arg(long, value_name = "NAME")]
    about: Option<String>,
    /// Kind of events: copy.left; or copy, for all that begin with it.
    #[arg(long)]
    kind: Option<String>,
    /// Number of events at most, the newest [default: 1000].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Keep running, and show events as they happen.
    #[arg(long)]
    follow: bool,
}

/// Does it. As JSON there is one event a line.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, options: EventOptions) -> Result<(), Failure> {
    let EventOptions { since, about, kind, limit, follow } = options;
    let query = EventQuery { since, about, kind, limit };
    let first = ask(shell, &query).await?;
    let mut shown: BTreeSet<(String, u64)> = BTreeSet::new();
    let mut silent = BTreeSet::new();
    tell_silent(&first.silent, &mut silent);
    show_new(shell, first.events, &mut shown)?;
    if !follow {
        return Ok(());
    }
    let mut answered = Instant::now();
    loop {
        tokio::time::sleep(FOLLOW_PAUSE).await;
        let since = Some(FOLLOW_SECONDS + answered.elapsed().as_secs());
        let query = EventQuery { since, limit: None, ..query.clone() };
        let more = match ask(shell, &query).await {
            // It may be restarting; what happens meanwhile is told when it is back.
            Err(failure) if failure.code == Code::Unreachable => {
                tell_silent(&[shell.client.to_string()], &mut silent);
                continue;
            }
            answer => answer?,
        };
        answered = Instant::now();
        tell_silent(&more.silent, &mut silent);
        // What is asked for no more need not be remembered.
        let asked: BTreeSet<(String, u64)> = more.events.iter().map(key).collect();
        shown.retain(|one| asked.contains(one));
        show_new(shell, more.events, &mut shown)?;
    }
}

async fn ask(shell: &Shell<'_>, query: &EventQuery) -> Result<EventsView, Failure> {
    shell.client.get(&format!("/api/v1/cluster/events{}", query.text())).await
}

fn key(event: &EventView) -> (String, u64) {
    (event.host.clone(), event.number)
}

/// Says once of each host that it does not answer.
fn tell_silent(now: &[String], told: &mut BTreeSet<String>) {
    let new: Vec<&str> = now.iter().filter(|host| !told.contains(*host)).map(String::as_str).collect();
    if !new.is_empty() {
        eprintln!("host {} does not answer: what only it knows is missing", new.join(", "));
    }
    *told = now.iter().cloned().collect();
}

fn show_new(
    shell: &mut Shell<'_>,
    events: Vec<EventView>,
    shown: &mut BTreeSet<(String, u64)>,
) -> Result<(), Failure> {
    for event in events {
        if shown.insert(key(&event)) {
            shell.line(&event, event_text)?;
        }
    }
    Ok(())
}

/// `2026-11-22 10:42:00 UTC  a  copy.left  disk web: … (operator ann)`.
pub fn event_text(event: &EventView) -> String {
    let when = trust::text_of_nanoseconds(event.time_ms * 1_000_000);
    let who = event.who.as_deref().map_or_else(String::new, |who| format!(" ({who})"));
    let EventView { host, kind, subject, text, .. } = event;
    format!("{when}  {host}  {kind}  {subject}: {text}{who}")
}
