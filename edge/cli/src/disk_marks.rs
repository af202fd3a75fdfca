//! `disk label` and `disk handover`: what is said of a disk, beside what it is.

use crate::shell::{Shell, seconds};
use api::client::disk_path;
use api::types::{ChangeDisk, DiskSummary, DiskView, HandOver, HandoverView};
use clap::Args;
use failure::Failure;

/// Options of `disk handover`.
#[derive(Debug, Args)]
pub struct HandoverOptions {
    /// Name or id of the disk.
    name: String,
    /// Host that may attach the disk, too.
    #[arg(long, value_name = "HOST", required_unless_present = "cancel")]
    to: Option<String>,
    /// Time within which the guest moves.
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = seconds)]
    lifetime: u64,
    /// End the handover.
    #[arg(long, conflicts_with = "to")]
    cancel: bool,
}

/// `KEY=VALUE` as its two parts.
pub fn label_pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not KEY=VALUE"))?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Sets and removes labels.
pub async fn label(shell: &mut Shell<'_>, name: &str, labels: &[String]) -> Result<(), Failure> {
    let change = |text: &String| match (label_pair(text), text.strip_suffix('-')) {
        (Ok((key, value)), _) => Ok((key, Some(value))),
        (Err(_), Some(key)) => Ok((key.to_owned(), None)),
        (Err(_), None) => Err(Failure::usage(format!("`{text}` is neither KEY=VALUE nor KEY-"))),
    };
    let labels = labels.iter().map(change).collect::<Result<_, _>>()?;
    let request = ChangeDisk { labels: Some(labels), ..ChangeDisk::default() };
    let disk: DiskView = shell.client.patch(&disk_path(name), &request).await?;
    shell.show(&disk, |disk| format!("{}: {}", disk.summary.name, labels_text(&disk.summary)))
}

/// `env=test, team=db`.
pub fn labels_text(disk: &DiskSummary) -> String {
    let pairs = disk.labels.iter().map(|(key, value)| format!("{key}={value}"));
    match disk.labels.is_empty() {
        true => "no labels".to_owned(),
        false => pairs.collect::<Vec<_>>().join(", "),
    }
}

/// Hands a disk over.
pub async fn handover(shell: &mut Shell<'_>, options: HandoverOptions) -> Result<(), Failure> {
    let path = format!("{}/handover", disk_path(&options.name));
    let Some(host) = options.to.filter(|_| !options.cancel) else {
        let () = shell.client.delete(&path).await?;
        return shell.show(&serde_json::json!({ "ended": options.name }), |_| {
            format!("disk {} is handed over to nobody", options.name)
        });
    };
    let made: HandoverView = shell.client.post(&path, &HandOver { host, seconds: options.lifetime }).await?;
    shell.show(&made, |made| match made.until {
        Some(until) => format!(
            "host {} may attach disk {} too, until {}",
            made.host,
            made.disk,
            trust::text_of_nanoseconds(until * 1_000_000_000)
        ),
        None => format!("host {} may attach disk {}: no other host has it", made.host, made.disk),
    })
}
