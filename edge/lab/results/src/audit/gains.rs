//! Claims of "so much more throughput and so much less latency".

use statistics::little::audit_gains;

use super::{Code, Finding, Severity};

pub(super) fn audit(gains: &[(f64, f64)]) -> impl Iterator<Item = Finding> + '_ {
    gains.iter().map(|&(gain, fall)| {
        let (severity, sentence) = match audit_gains(gain, fall) {
            Some(audit) if audit.one_finding => (Severity::Information, audit.to_string()),
            Some(audit) => (Severity::Contradiction, audit.to_string()),
            None => (
                Severity::Contradiction,
                format!("a gain of {gain} and a fall of {fall} cannot be: give shares, 0.635 and 0.398 for +63.5 % and -39.8 %"),
            ),
        };
        Finding { code: Code::Gains, severity, sentence, rows: vec![] }
    })
}
