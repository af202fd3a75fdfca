//! `health`: what is wrong, by group, and what nobody wants to be told again for a while.

use crate::shell::{Shell, seconds};
use crate::text;
use api::client::{Client, escaped};
use api::types::{FindingView, GroupHealthView, HealthView, MakeSilence, SeverityWord, SilenceView};
use clap::{Args, Subcommand};
use failure::{Code, Failure};
use std::time::SystemTime;

/// Options of `health`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HealthOptions {
    /// Operation instead of showing the findings.
    #[command(subcommand)]
    command: Option<HealthCommand>,
}

/// What can be done about findings.
#[derive(Debug, Subcommand)]
pub enum HealthCommand {
    /// Silence findings for a while: they are listed apart, and count neither for the exit code nor for alerts.
    Silence(SilenceOptions),
    /// List the silences: until when, by whom and why.
    Silences,
    /// End a silence.
    Unsilence {
        /// Code of the findings.
        code: String,
        /// Subject of the silence, as it was given.
        #[arg(long, value_name = "NAME")]
        about: Option<String>,
    },
}

/// Options of `health silence`.
#[derive(Debug, Args)]
pub struct SilenceOptions {
    /// Code of the findings, as `health` shows it: host.away.
    code: String,
    /// Disk, host or device that the findings are about [default: anything].
    #[arg(long, value_name = "NAME")]
    about: Option<String>,
    /// Duration of the silence: 30m, 24h, 7d.
    #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
    lifetime: u64,
    /// Reason, for other people.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Does it.
///
/// # Errors
/// What the host says; or that something needs attention, which decides the exit code.
pub async fn run(shell: &mut Shell<'_>, options: HealthOptions) -> Result<(), Failure> {
    match options.command {
        None => health(shell).await,
        Some(HealthCommand::Silences) => {
            let silences: Vec<SilenceView> = shell.client.get("/api/v1/health/silences").await?;
            shell.show(&silences, |silences| silence_table(silences))
        }
        Some(HealthCommand::Silence(SilenceOptions { code, about, lifetime, reason })) => {
            let request = MakeSilence { code, about, seconds: lifetime, reason };
            let made: SilenceView = shell.client.post("/api/v1/health/silences", &request).await?;
            shell.show(&made, |made| {
                format!(
                    "{} is silenced to {}",
                    named(made),
                    trust::text_of_nanoseconds(made.until * 1_000_000_000)
                )
            })
        }
        Some(HealthCommand::Unsilence { code, about }) => {
            let mut path = format!("/api/v1/health/silences?code={}", escaped(&code));
            if let Some(about) = &about {
                path += &format!("&about={}", escaped(about));
            }
            let () = shell.client.delete(&path).await?;
            shell.show(&serde_json::json!({ "ended": code, "about": about }), |_| {
                format!("{code} is silenced no more")
            })
        }
    }
}

async fn health(shell: &mut Shell<'_>) -> Result<(), Failure> {
    let health: HealthView = shell.client.get("/api/v1/health").await?;
    shell.show(&health, health_text)?;
    if let Client::Tls { trust, .. } = &shell.client
        && trust.certificate().needs_renewal(SystemTime::now())
    {
        eprintln!(
            "your own certificate ends at {}: have an admin make a token for you, and `drystone login --replace TOKEN`",
            trust.certificate().end_text()
        );
    }
    if health.is_well {
        return Ok(());
    }
    let bad = health.findings.iter().filter(|finding| finding.severity != SeverityWord::Notice).count();
    Err(Failure::new(Code::Failed, format!("{bad} findings need attention")))
}

fn health_text(health: &HealthView) -> String {
    let mut shown = match (health.findings.is_empty(), health.silenced.len()) {
        (true, 0) => return "all is well".to_owned(),
        (true, count) => vec![format!("all is well, but for {count} findings that are silenced")],
        (false, _) => vec![groups_text(&health.groups)],
    };
    for group in &health.groups {
        let of_group = health.findings.iter().filter(|finding| finding.group == group.group);
        shown.extend(of_group.map(finding_text));
    }
    if !health.silenced.is_empty() {
        let lines: Vec<String> = health.silenced.iter().map(silenced_text).collect();
        shown.push(format!("silenced\n{}", lines.join("\n")));
    }
    shown.join("\n\n")
}

fn groups_text(groups: &[GroupHealthView]) -> String {
    let count = |group: &GroupHealthView| match (group.findings, group.silenced) {
        (0, 0) => String::new(),
        (found, 0) => found.to_string(),
        (found, silenced) => format!("{found}, and {silenced} silenced"),
    };
    let row = |group: &GroupHealthView| vec![group.group.to_string(), group.state.to_string(), count(group)];
    text::table(&["group", "state", "findings"], &[], groups.iter().map(row).collect())
}

fn finding_text(finding: &FindingView) -> String {
    let mut lines = format!(
        "{} {}: {}\n  {}\n  to do: {}",
        finding.severity, finding.code, finding.subject, finding.cause, finding.remedy
    );
    // A remedy that names the command says it better.
    let commands = finding.actions.iter().map(|action| &action.command);
    for command in commands.filter(|command| !finding.remedy.contains(command.as_str())) {
        lines += &format!("\n  command: {command}");
    }
    lines
}

fn silenced_text(finding: &FindingView) -> String {
    let until = finding.silenced_until.unwrap_or_default();
    let because = finding.silenced_because.as_deref().map_or_else(String::new, |why| format!(": {why}"));
    format!(
        "  {} {}: {}\n    {}\n    to {} by {}{because}",
        finding.severity,
        finding.code,
        finding.subject,
        finding.cause,
        trust::text_of_nanoseconds(until * 1_000_000_000),
        finding.silenced_by.as_deref().unwrap_or_default()
    )
}

fn named(silence: &SilenceView) -> String {
    let about = silence.about.as_deref().map_or_else(String::new, |about| format!(" about {about}"));
    format!("{}{about}", silence.code)
}

fn silence_table(silences: &[SilenceView]) -> String {
    if silences.is_empty() {
        return "nothing is silenced".to_owned();
    }
    let row = |one: &SilenceView| {
        vec![
            one.code.clone(),
            one.about.clone().unwrap_or_else(|| "anything".to_owned()),
            trust::text_of_nanoseconds(one.until * 1_000_000_000),
            one.who.clone(),
            one.reason.clone().unwrap_or_default(),
        ]
    };
    text::table(&["code", "about", "until", "by", "reason"], &[], silences.iter().map(row).collect())
}
