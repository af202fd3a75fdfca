//! `whoami`, `console`.

use crate::shell::Shell;
use crate::text;
use api::types::{CallerWord, MeView, RightWord, SessionLink};
use failure::Failure;

/// Shows who the host takes whoever asks for, and what they may do.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>) -> Result<(), Failure> {
    let me: MeView = shell.client.get("/api/v1/me").await?;
    shell.show(&me, me_text)
}

/// Prints a link that opens the console.
///
/// # Errors
/// What the host says.
pub async fn console(shell: &mut Shell<'_>) -> Result<(), Failure> {
    let link: SessionLink = shell.client.post("/api/v1/sessions", &serde_json::json!({})).await?;
    shell.show(&link, link_text)
}

fn link_text(link: &SessionLink) -> String {
    let mut lines = link.links.clone();
    lines.push(format!("It opens the console once, within {} seconds.", link.seconds));
    if let Some(fingerprint) = &link.fingerprint {
        lines.push(format!(
            "The browser warns, since this host has signed its certificate itself. SHA-256 of the certificate: {fingerprint}"
        ));
    }
    lines.join("\n")
}

fn me_text(me: &MeView) -> String {
    let name = me.name.as_deref().unwrap_or_default();
    let who = match me.kind {
        CallerWord::Person => name.to_owned(),
        CallerWord::Host => format!("host {name}"),
        CallerWord::Local | CallerWord::Unknown => format!("somebody on host {}", me.host),
    };
    let role = me.role.map_or_else(String::new, |role| role.to_string());
    let rights: Vec<&str> = me.rights.iter().copied().map(right_text).collect();
    let facts =
        [("you are", who), ("role", role), ("you may", rights.join("\n")), ("asked", me.host.clone())];
    let facts: Vec<(&str, String)> = facts.into_iter().filter(|(_, fact)| !fact.is_empty()).collect();
    text::facts(&facts)
}

fn right_text(right: RightWord) -> &'static str {
    match right {
        RightWord::See => "see disks, hosts, statistics and settings",
        RightWord::ChangeDisks => "create, change and delete disks and policies",
        RightWord::Operate => "silence findings, and write support bundles",
        RightWord::AttachDisks => "attach disks",
        RightWord::ChangeCluster => "change hosts, devices, settings and maintenance",
        RightWord::GiveCertificates => "give certificates and join tokens",
        RightWord::ActAsHost => "act as a host",
        RightWord::Unknown => "what this release does not know",
    }
}
