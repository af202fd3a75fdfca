//! What a trial measured: a table for people, JSON for programs.

use crate::meter::{Stall, Summary};
use base::units::format_bytes;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

/// One fault, and what it cost.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Round {
    /// From 1 on.
    pub number: usize,
    /// What was done.
    pub fault: String,
    /// To which host or hosts.
    pub host: String,
    /// What these held of the disk.
    pub held: String,
    /// The worst of the clients that were attached elsewhere, while the fault lasted.
    pub stall: Stall,
    /// The same from the end of the fault until all was whole again.
    pub stall_after: Stall,
    /// The most that either may be, milliseconds; nothing: no limit.
    pub limit_ms: Option<f64>,
    /// Bytes copied to bring copies up to date.
    pub copied_bytes: u64,
    /// From the end of the fault until every copy counted, or from the fault itself where it has no end.
    pub whole_seconds: f64,
    /// What else was seen.
    pub note: String,
    /// Rules that were broken.
    pub broken: Vec<String>,
}

/// A whole trial.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The scenario.
    pub scenario: String,
    /// The seed of its choices.
    pub seed: u64,
    /// Where the hosts' files and logs are.
    pub folder: String,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// Reads by all clients.
    pub reads: u64,
    /// Writes by all clients.
    pub writes: u64,
    /// How long these took.
    pub latency: Summary,
    /// How many reads saw what cannot be.
    pub finding_count: usize,
    /// The first of them.
    pub findings: Vec<String>,
    /// Why it ended early.
    pub failure: Option<String>,
    /// What was seen over all rounds.
    pub notes: Vec<String>,
    /// What the hosts said had happened, of rounds in which a rule was broken.
    pub events: Vec<String>,
}

impl Round {
    /// The worse of both stalls.
    pub fn worst(&self) -> Stall {
        self.stall.worse(self.stall_after)
    }

    /// Compares with the limit.
    pub fn judge(&mut self) {
        let Some(limit_ms) = self.limit_ms else { return };
        let worst = self.worst();
        let longest = worst.silent_ms.max(worst.longest_ms);
        if longest > limit_ms {
            self.broken.push(format!(
                "a stall of {longest:.0} ms, over the limit of {limit_ms:.0} ms; the longest I/O: {} after the fault or its end",
                worst.longest()
            ));
        }
    }
}

impl Report {
    /// Whether no rule was broken.
    pub fn is_good(&self) -> bool {
        self.failure.is_none()
            && self.finding_count == 0
            && !self.rounds.is_empty()
            && self.rounds.iter().all(|round| round.broken.is_empty())
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header([
            "#",
            "FAULT",
            "HOST",
            "HELD",
            "STALL MS",
            "LONGEST I/O MS",
            "AFTER MS",
            "LIMIT MS",
            "COPIED",
            "WHOLE S",
            "",
        ]);
        for round in &self.rounds {
            let after = round.stall_after.silent_ms.max(round.stall_after.longest_ms);
            let broken = if round.broken.is_empty() { "" } else { "BROKEN " };
            table.add_row([
                round.number.to_string(),
                round.fault.clone(),
                round.host.clone(),
                round.held.clone(),
                format!("{:.0}", round.stall.silent_ms),
                format!("{:.0}", round.stall.longest_ms),
                format!("{after:.0}"),
                round.limit_ms.map_or_else(|| "-".to_owned(), |limit| format!("{limit:.0}")),
                format_bytes(round.copied_bytes),
                format!("{:.1}", round.whole_seconds),
                format!("{broken}{}", round.note),
            ]);
        }
        for index in [0, 4, 5, 6, 7, 8, 9] {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut lines = vec![format!("\n{} (seed {})", self.scenario, self.seed)];
        lines.extend(table.lines().map(|line| line.trim_end().to_owned()));
        lines.extend(self.totals());
        lines.extend(self.notes.iter().cloned());
        for round in &self.rounds {
            lines.extend(round.broken.iter().map(|rule| format!("BROKEN in round {}: {rule}", round.number)));
        }
        lines.extend(self.findings.iter().map(|finding| format!("BROKEN: {finding}")));
        lines.extend(self.failure.iter().map(|failure| format!("BROKEN, and ended by it: {failure}")));
        lines.extend(self.events.iter().map(|event| format!("  {event}")));
        if !self.is_good() {
            lines.push(format!("The hosts' files and logs are in {}", self.folder));
        }
        lines.join("\n")
    }

    fn totals(&self) -> Vec<String> {
        let mut worst = 0.0_f64;
        let mut sorted: Vec<f64> = self
            .rounds
            .iter()
            .map(|round| round.worst())
            .map(|stall| stall.silent_ms.max(stall.longest_ms))
            .inspect(|&ms| worst = worst.max(ms))
            .collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        let broken = self.rounds.iter().filter(|round| !round.broken.is_empty()).count();
        let latency = &self.latency;
        vec![
            format!(
                "{} rounds, {broken} with a broken rule; stalls: median {median:.0} ms, longest {worst:.0} ms",
                self.rounds.len()
            ),
            format!(
                "{} reads and {} writes, verified: {} findings; latency ms: median {:.2}, 99 % {:.2}, 99.9 % {:.2}, longest {:.0}",
                self.reads,
                self.writes,
                self.finding_count,
                latency.p50_ms,
                latency.p99_ms,
                latency.p999_ms,
                latency.longest_ms
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(longest_ms: f64) -> Round {
        let stall = Stall { silent_ms: 10.0, longest_ms, ..Stall::default() };
        let mut round =
            Round { number: 1, fault: "kill".into(), stall, limit_ms: Some(500.0), ..Round::default() };
        round.judge();
        round
    }

    #[test]
    fn a_stall_over_the_limit_breaks_a_rule_and_one_within_does_not() {
        let good = Report { rounds: vec![round(499.0)], ..Report::default() };
        assert!(good.is_good() && !good.text().contains("BROKEN"), "{}", good.text());
        let bad = Report { rounds: vec![round(501.0)], ..Report::default() };
        assert!(!bad.is_good());
        assert!(bad.text().contains("BROKEN in round 1: a stall of 501 ms"), "{}", bad.text());
    }

    #[test]
    fn a_finding_or_an_early_end_or_no_round_at_all_is_not_good() {
        let rounds = vec![round(1.0)];
        assert!(!Report { rounds: rounds.clone(), finding_count: 1, ..Report::default() }.is_good());
        assert!(!Report { rounds, failure: Some("no answer".into()), ..Report::default() }.is_good());
        assert!(!Report::default().is_good());
    }
}
