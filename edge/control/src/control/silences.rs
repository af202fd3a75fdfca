//! Health as the API shows it: findings by group, without those that people silenced; and the silences themselves.

use super::Control;
use super::actions::remedy_view;
use crate::asked::{ON_HOST, asked_by};
use crate::cluster::Diagnosis;
use crate::directory::shared::record::{Silences, StoredSilence};
use crate::events::Kind;
use crate::limits::{REASON_LENGTH_MAX, SILENCE_MAX, SILENCES_MAX};
use crate::words;
use ::cluster::{Code, Group, Silence, silenced};
use api::types::{
    FindingView, GroupHealthView, HealthView, MakeSilence, NamedSilence, SeverityWord, SilenceView,
};
use base::Instant;
use failure::{Code as FailureCode, Failure};

impl Control {
    /// What is wrong with the cluster.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn health(&self) -> Result<HealthView, Failure> {
        let found = self.all_findings().await?;
        let now = self.now();
        let records = self.records();
        let stored: Vec<&StoredSilence> = records.silences.at(now.0).collect();
        let known: Vec<(&StoredSilence, Silence)> =
            stored.into_iter().filter_map(|one| Some((one, one.silence()?))).collect();
        let rules: Vec<Silence> = known.iter().map(|(_, rule)| rule.clone()).collect();
        let (mut loud, mut quiet) = (Vec::new(), Vec::new());
        for one in found {
            let silence = silenced(&rules, &one.finding, &one.subject, now);
            let silence = silence.map(|(index, _)| known[index].0);
            let list = if silence.is_some() { &mut quiet } else { &mut loud };
            list.push(finding_view(one, silence));
        }
        Ok(HealthView {
            is_well: loud.iter().all(|finding| finding.severity == SeverityWord::Notice),
            groups: Group::ALL.map(|group| group_view(group, &loud, &quiet)).to_vec(),
            findings: loud,
            silenced: quiet,
        })
    }

    /// All that is wrong, whoever wants to know.
    pub(super) async fn all_findings(&self) -> Result<Vec<Diagnosis>, Failure> {
        Ok(self.cluster.findings(&self.cluster.state().await?).await)
    }

    /// Now, by the clock that the hosts share.
    fn now(&self) -> Instant {
        self.cluster.directory_now()
    }

    /// The silences that have not ended.
    pub fn silences(&self) -> Vec<SilenceView> {
        self.records().silences.at(self.now().0).map(silence_view).collect()
    }

    /// Silences findings for a while. The same said again counts from now on.
    ///
    /// # Errors
    /// When there is no such code, the time makes no sense, or the directory does not answer.
    pub async fn silence(&self, request: MakeSilence) -> Result<SilenceView, Failure> {
        check(&request)?;
        let since_ns = self.now().0;
        let made = StoredSilence {
            code: request.code,
            about: request.about,
            since_ns,
            until_ns: since_ns + request.seconds * 1_000_000_000,
            who: self.who_silences(),
            reason: request.reason,
        };
        self.change_silences(|before| {
            let stays = |one: &&StoredSilence| (&one.code, &one.about) != (&made.code, &made.about);
            let mut silences: Vec<StoredSilence> = before.at(since_ns).filter(stays).cloned().collect();
            if silences.len() >= SILENCES_MAX {
                return Err(Failure::refused(format!("{SILENCES_MAX} silences are set, the most possible"))
                    .hint("end some: `drystone health unsilence`"));
            }
            silences.push(made.clone());
            Ok(Silences { silences })
        })
        .await?;
        let to = trust::text_of_nanoseconds(made.until_ns);
        let because = made.reason.as_deref().map_or_else(String::new, |why| format!(": {why}"));
        self.events.other(
            Kind::HealthSilenced,
            made.about.clone().unwrap_or_else(|| "cluster".to_owned()),
            format!("{} is silenced to {to}{because}", made.code),
        );
        Ok(silence_view(&made))
    }

    /// Who asks, as other hosts understand it.
    fn who_silences(&self) -> String {
        match asked_by() {
            Some(who) if who != ON_HOST => who,
            Some(_) | None => format!("somebody on host {}", self.config().name),
        }
    }

    /// Ends a silence.
    ///
    /// # Errors
    /// When there is none of that code and subject, or the directory does not answer.
    pub async fn unsilence(&self, named: &NamedSilence) -> Result<(), Failure> {
        let now_ns = self.now().0;
        self.change_silences(|before| {
            let is_it = |one: &StoredSilence| one.code == named.code && one.about == named.about;
            let (ended, silences): (Vec<StoredSilence>, Vec<StoredSilence>) =
                before.at(now_ns).cloned().partition(is_it);
            if ended.is_empty() {
                let about = named.about.as_deref().map_or_else(String::new, |name| format!(" about {name}"));
                return Err(Failure::new(
                    FailureCode::NotFound,
                    format!("no silence of {}{about} is set", named.code),
                )
                .hint("see `drystone health silences`"));
            }
            Ok(Silences { silences })
        })
        .await?;
        self.events.other(
            Kind::HealthUnsilenced,
            named.about.clone().unwrap_or_else(|| "cluster".to_owned()),
            format!("{} is silenced no more", named.code),
        );
        Ok(())
    }

    async fn change_silences(
        &self,
        change: impl Fn(Silences) -> Result<Silences, Failure>,
    ) -> Result<(), Failure> {
        self.cluster.change_silences(change).await
    }
}

fn check(request: &MakeSilence) -> Result<(), Failure> {
    if Code::read(&request.code).is_none() {
        let codes = Code::ALL.map(Code::as_str).join(", ");
        return Err(Failure::usage(format!("there is no finding `{}`", request.code)).hint(codes));
    }
    if request.seconds == 0 || request.seconds > SILENCE_MAX.as_secs() {
        return Err(Failure::usage(format!(
            "a silence of {} s is not possible: up to {} days are",
            request.seconds,
            SILENCE_MAX.as_secs() / 86_400
        ))
        .hint("what is known for longer is to be mended, or said again"));
    }
    let is_long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() > REASON_LENGTH_MAX);
    if is_long(&request.about) || is_long(&request.reason) {
        return Err(Failure::usage(format!("a reason or a name has {REASON_LENGTH_MAX} bytes at most")));
    }
    Ok(())
}

fn group_view(group: Group, loud: &[FindingView], quiet: &[FindingView]) -> GroupHealthView {
    let group = words::group(group);
    let of = |all: &[FindingView]| all.iter().filter(|one| one.group == group).count();
    // The worst comes first.
    let worst = loud.iter().find(|one| one.group == group);
    GroupHealthView {
        group,
        state: words::health(worst.map(|worst| worst.severity)),
        findings: of(loud),
        silenced: of(quiet),
    }
}

fn finding_view(found: Diagnosis, silence: Option<&StoredSilence>) -> FindingView {
    let Diagnosis { finding, subject, remedies } = found;
    FindingView {
        code: finding.code.as_str().to_owned(),
        group: words::group(finding.code.group()),
        severity: words::severity(finding.severity),
        subject,
        cause: finding.cause,
        remedy: finding.remedy,
        actions: remedies.iter().map(remedy_view).collect(),
        silenced_until: silence.map(|silence| silence.until_ns / 1_000_000_000),
        silenced_by: silence.map(|silence| silence.who.clone()),
        silenced_because: silence.and_then(|silence| silence.reason.clone()),
    }
}

fn silence_view(silence: &StoredSilence) -> SilenceView {
    SilenceView {
        code: silence.code.clone(),
        about: silence.about.clone(),
        since: silence.since_ns / 1_000_000_000,
        until: silence.until_ns / 1_000_000_000,
        who: silence.who.clone(),
        reason: silence.reason.clone(),
    }
}
