//! Silences: findings that people know and do not want to see for a while.

use super::code::Code;
use super::finding::Finding;
use base::Instant;

/// Silenced findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// Of this kind.
    pub code: Code,
    /// About this alone, as people call it: `disk web` or `web`; nothing: about anything.
    pub about: Option<String>,
    /// To when.
    pub until: Instant,
}

impl Silence {
    /// Whether it silences findings about `name`.
    pub fn covers(&self, finding: &Finding, name: &str, now: Instant) -> bool {
        let is_meant = self.about.as_deref().is_none_or(|about| is_about(name, about));
        now < self.until && self.code == finding.code && is_meant
    }
}

/// The end of the longest silence of a finding, with the index of that silence; none when the finding is not
/// silenced.
pub fn silenced(
    silences: &[Silence],
    finding: &Finding,
    name: &str,
    now: Instant,
) -> Option<(usize, Instant)> {
    let meant = silences.iter().enumerate().filter(|(_, one)| one.covers(finding, name, now));
    meant.map(|(index, one)| (index, one.until)).max_by_key(|(_, until)| *until)
}

/// Whether people mean the subject `name` by `about`: `disk web`, or `web` alone; of `device /dev/sdb of host a` also
/// `/dev/sdb`.
pub fn is_about(name: &str, about: &str) -> bool {
    let bare = name.split_once(' ').map_or(name, |(_, bare)| bare);
    let own = bare.split_once(" of host ").map_or(bare, |(own, _)| own);
    [name, bare, own].contains(&about)
}

#[cfg(test)]
mod tests {
    use super::super::{Severity, Subject};
    use super::*;
    use base::DiskId;

    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000_000)
    }

    #[test]
    fn a_silence_covers_what_it_names_until_it_ends() {
        let finding = Finding {
            code: Code::DiskReduced,
            severity: Severity::Warning,
            subject: Subject::Disk(DiskId(1)),
            cause: String::new(),
            remedy: String::new(),
        };
        let silence =
            |code, about: Option<&str>| Silence { code, about: about.map(str::to_owned), until: at(100) };
        for (code, about, name, second, expected) in [
            (Code::DiskReduced, None, "disk web", 99, true),
            (Code::DiskReduced, None, "disk web", 100, false),
            (Code::HostAway, None, "disk web", 99, false),
            (Code::DiskReduced, Some("web"), "disk web", 99, true),
            (Code::DiskReduced, Some("disk web"), "disk web", 99, true),
            (Code::DiskReduced, Some("we"), "disk web", 99, false),
            (Code::DiskReduced, Some("disk"), "disk web", 99, false),
            (Code::DiskReduced, Some("/dev/sdb"), "device /dev/sdb of host a", 0, true),
            (Code::DiskReduced, Some("a"), "device /dev/sdb of host a", 0, false),
            (Code::DiskReduced, Some("cluster"), "cluster", 0, true),
        ] {
            let covers = silence(code, about).covers(&finding, name, at(second));
            assert_eq!(covers, expected, "{code} {about:?} {name} {second}");
        }
        let longer = Silence { until: at(200), ..silence(Code::DiskReduced, Some("web")) };
        let all = [silence(Code::DiskReduced, None), longer, silence(Code::HostAway, None)];
        assert_eq!(silenced(&all, &finding, "disk web", at(50)), Some((1, at(200))));
        assert_eq!(silenced(&all, &finding, "disk db", at(50)), Some((0, at(100))));
        assert_eq!(silenced(&all, &finding, "disk db", at(150)), None);
    }
}
