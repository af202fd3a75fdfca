//! Findings about certificates. Hosts renew theirs by themselves; those of authorities need people.

use super::code::Code;
use super::finding::{Finding, Severity, Subject};
use super::surroundings::{Holder, Lifespan, Surroundings};
use crate::limits::{
    AUTHORITY_CRITICAL, AUTHORITY_LOW, CERTIFICATE_CRITICAL, CERTIFICATE_RENEWED_AT, RENEWAL_PATIENCE,
};
use crate::view::View;
use crate::words::{ago, duration};
use base::{HostId, Instant};

pub(super) fn find(view: &View, around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    for one in around.certificates {
        match &one.holder {
            Holder::Host(host) => found.extend(of_host(view, around.now, *host, one)),
            Holder::Authority(print) => found.extend(of_authority(around.now, print, one)),
        }
    }
}

/// A host asks for its next certificate every few seconds once a third of the life is left. A host that has none a
/// while later does not get one.
fn of_host(view: &View, now: Instant, host: HostId, one: &Lifespan) -> Option<Finding> {
    let due = one.with_left(CERTIFICATE_RENEWED_AT);
    let patience = RENEWAL_PATIENCE.min(one.life() / 30);
    if now < due + patience {
        return None;
    }
    let name = view.host_name(host);
    let is_critical = now >= one.with_left(CERTIFICATE_CRITICAL);
    let (cause, remedy) = match now >= one.ends {
        true => (
            format!(
                "the certificate of {name} ended {} ago: other hosts refuse its connections",
                ago(now, one.ends)
            ),
            format!(
                "compare its clock; or on another host `drystone host token --again {name}`, and on {name} `drystone host join --replace`"
            ),
        ),
        false => (
            format!(
                "the certificate of {name} ends in {}: it has been due for renewal for {} and was not renewed",
                duration(one.ends.since(now)),
                ago(now, due)
            ),
            format!(
                "see that {name} and the host with the authority's key run and reach each other; the log of {name} says why it gets none"
            ),
        ),
    };
    Some(Finding {
        code: Code::CertificateEnding,
        severity: if is_critical { Severity::Critical } else { Severity::Warning },
        subject: Subject::Host(host),
        cause,
        remedy,
    })
}

fn of_authority(now: Instant, print: &str, one: &Lifespan) -> Option<Finding> {
    if now < one.with_left(AUTHORITY_LOW) {
        return None;
    }
    let is_critical = now >= one.with_left(AUTHORITY_CRITICAL);
    let short = print.get(..12).unwrap_or(print);
    let cause = match now >= one.ends {
        true => {
            format!(
                "authority {short} ended {} ago: certificates that it signed are no longer trusted",
                ago(now, one.ends)
            )
        }
        false => format!(
            "authority {short} ends in {}, and so do the certificates that it signs",
            duration(one.ends.since(now))
        ),
    };
    Some(Finding {
        code: Code::AuthorityEnding,
        severity: if is_critical { Severity::Critical } else { Severity::Warning },
        subject: Subject::Cluster,
        cause,
        remedy: "add another authority with `drystone cluster certificates add-authority`, and drop this one when no host uses a certificate of it"
            .to_owned(),
    })
}
