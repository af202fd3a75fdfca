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
    /// The longest that the file system under the hosts took meanwhile for a flush of its own, milliseconds
    /// ([`crate::flushes`]).
    pub flush_ms: f64,
    /// Bytes copied to bring copies up to date.
    pub copied_bytes: u64,
    /// From the end of the fault until every copy counted, or from the fault itself where it has no end.
    pub whole_seconds: f64,
    /// What else was seen.
    pub note: String,
    /// Rules that were broken.
    pub broken: Vec<String>,
}

/// A figure over all rounds of a fault.
///
/// By nearest rank: each is what a round was seen to cost, the smallest that half of the rounds, or 99 of a hundred, did not
/// exceed. With fewer than a hundred rounds the 99th percentile is therefore the longest, and no estimate of what a thousand
/// rounds would show; with an even number the median is the lower of the two in the middle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Half of the rounds took no longer, milliseconds.
    pub median_ms: f64,
    /// 99 of a hundred took no longer, milliseconds.
    pub p99_ms: f64,
    /// The longest, milliseconds.
    pub max_ms: f64,
}

/// What one fault cost, over all rounds in which clients were watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cost {
    /// What was done, as the rounds have it.
    pub fault: String,
    /// Rounds.
    pub rounds: usize,
    /// The longest time without any answer, of each round.
    pub silent: Spread,
    /// The longest that one I/O took, of each round.
    pub longest: Spread,
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
    /// What each fault cost; [`costs`] of the rounds.
    pub costs: Vec<Cost>,
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

impl Spread {
    /// That of some figures in any order; all zero where there is none.
    pub fn of(mut figures_ms: Vec<f64>) -> Spread {
        figures_ms.sort_by(f64::total_cmp);
        // The nearest rank, from 1 on, of a percentile.
        let at = |percent: usize| {
            let rank = (figures_ms.len() * percent).div_ceil(100);
            rank.checked_sub(1).map_or(0.0, |index| figures_ms[index])
        };
        Spread { median_ms: at(50), p99_ms: at(99), max_ms: at(100) }
    }

    fn cells(self) -> [String; 3] {
        [self.median_ms, self.p99_ms, self.max_ms].map(|ms| format!("{ms:.0}"))
    }
}

/// What each fault cost, in the order in which they came first. Rounds that watched no client are left out.
pub fn costs(rounds: &[Round]) -> Vec<Cost> {
    let mut names: Vec<&str> = Vec::new();
    for round in rounds.iter().filter(|round| round.is_measured()) {
        if !names.contains(&round.fault.as_str()) {
            names.push(&round.fault);
        }
    }
    let cost = |name: &str| {
        let worst: Vec<Stall> = rounds
            .iter()
            .filter(|round| round.is_measured() && round.fault == name)
            .map(Round::worst)
            .collect();
        Cost {
            fault: name.to_owned(),
            rounds: worst.len(),
            silent: Spread::of(worst.iter().map(|stall| stall.silent_ms).collect()),
            longest: Spread::of(worst.iter().map(|stall| stall.longest_ms).collect()),
        }
    };
    names.into_iter().map(cost).collect()
}

impl Round {
    /// Whether a client was watched: one that was has been answered at some time.
    fn is_measured(&self) -> bool {
        self.worst().silent_ms > 0.0
    }

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
            "FLUSH MS",
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
                format!("{:.0}", round.flush_ms),
                format_bytes(round.copied_bytes),
                format!("{:.1}", round.whole_seconds),
                format!("{broken}{}", round.note),
            ]);
        }
        for index in [0, 4, 5, 6, 7, 8, 9, 10] {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut lines = vec![format!("\n{} (seed {})", self.scenario, self.seed)];
        lines.extend(table.lines().map(|line| line.trim_end().to_owned()));
        lines.extend(self.totals());
        lines.extend(self.cost_table());
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
        let broken = self.rounds.iter().filter(|round| !round.broken.is_empty()).count();
        let latency = &self.latency;
        vec![
            format!("{} rounds, {broken} with a broken rule", self.rounds.len()),
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

    /// What each fault cost, where any client was watched.
    fn cost_table(&self) -> Vec<String> {
        if self.costs.is_empty() {
            return Vec::new();
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header([
            "FAULT",
            "ROUNDS",
            "STALL MS: MEDIAN",
            "99 %",
            "MAX",
            "LONGEST I/O MS: MEDIAN",
            "99 %",
            "MAX",
        ]);
        for cost in &self.costs {
            let [silent, longest] = [cost.silent, cost.longest].map(Spread::cells);
            let names = [cost.fault.clone(), cost.rounds.to_string()];
            table.add_row(names.into_iter().chain(silent).chain(longest));
        }
        for index in 1..8 {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
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

    fn seen(fault: &str, silent_ms: f64, longest_ms: f64, after_ms: f64) -> Round {
        let stall = Stall { silent_ms, longest_ms, ..Stall::default() };
        let stall_after = Stall { silent_ms: after_ms, longest_ms: after_ms, ..Stall::default() };
        Round { fault: fault.into(), stall, stall_after, ..Round::default() }
    }

    #[test]
    fn each_fault_has_its_spread_and_the_worse_of_both_stalls_counts() {
        let rounds = [
            seen("kill", 10.0, 40.0, 5.0),
            seen("cut", 7.0, 8.0, 0.0),
            seen("kill", 30.0, 20.0, 50.0),
            seen("kill", 20.0, 30.0, 0.0),
            seen("rebuild", 0.0, 0.0, 0.0),
        ];
        let found = costs(&rounds);
        let kill = Cost {
            fault: "kill".into(),
            rounds: 3,
            silent: Spread { median_ms: 20.0, p99_ms: 50.0, max_ms: 50.0 },
            longest: Spread { median_ms: 40.0, p99_ms: 50.0, max_ms: 50.0 },
        };
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0], kill);
        assert_eq!((found[1].fault.as_str(), found[1].rounds, found[1].silent.max_ms), ("cut", 1, 7.0));
        let text = Report { costs: found, ..Report::default() }.text();
        let line = text.lines().find(|line| line.trim_start().starts_with("kill")).expect("a row");
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["kill", "3", "20", "50", "50", "40", "50", "50"], "{text}");
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let spread = |count: u32| Spread::of((1..=count).rev().map(f64::from).collect());
        let expected = |median_ms, p99_ms, max_ms| Spread { median_ms, p99_ms, max_ms };
        assert_eq!(spread(0), Spread::default());
        assert_eq!(spread(1), expected(1.0, 1.0, 1.0));
        assert_eq!(spread(2), expected(1.0, 2.0, 2.0));
        assert_eq!(spread(99), expected(50.0, 99.0, 99.0));
        assert_eq!(spread(100), expected(50.0, 99.0, 100.0));
        assert_eq!(spread(200), expected(100.0, 198.0, 200.0));
    }
}
