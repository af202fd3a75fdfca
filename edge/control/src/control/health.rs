//! What a host tells of its devices for health, and events of findings that come and go.

use super::Control;
use crate::events::Kind;
use crate::limits::HEALTH_PERIOD;
use ::cluster::{Finding, Severity, Subject, Turn, Watch};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

/// Tells of what has become wrong, and of what is well again, until the engine is gone: on the host that decides for
/// the cluster.
pub(super) async fn watch_health(control: Weak<Control>) {
    let mut watch = Watch::default();
    let mut names: BTreeMap<Subject, String> = BTreeMap::new();
    loop {
        tokio::time::sleep(HEALTH_PERIOD).await;
        let Some(control) = control.upgrade() else { return };
        if !control.cluster.decides() {
            watch = Watch::default();
            continue;
        }
        let Ok(found) = control.all_findings().await else { return };
        names.extend(found.iter().map(|one| (one.finding.subject, one.subject.clone())));
        let findings: Vec<Finding> = found.into_iter().map(|one| one.finding).collect();
        for turn in watch.step(&findings) {
            let (kind, finding) = match turn {
                Turn::Found(finding) if finding.severity == Severity::Notice => (Kind::HealthNoted, finding),
                Turn::Found(finding) => (Kind::HealthFound, finding),
                Turn::Ended(finding) => (Kind::HealthEnded, finding),
            };
            let name = names.get(&finding.subject).cloned().unwrap_or_default();
            let text = match kind {
                Kind::HealthEnded => format!("{}: it is so no more: {}", finding.code, finding.cause),
                _ => format!("{}: {}", finding.code, finding.cause),
            };
            control.events.other(kind, name, text);
        }
        let stays: BTreeSet<Subject> = findings.iter().map(|finding| finding.subject).collect();
        names.retain(|subject, _| stays.contains(subject) || watch.knows(*subject));
    }
}
