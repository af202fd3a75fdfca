//! Little's law over a whole table: what was really outstanding, whether two tools held the same, and which VMs were unequal.
//!
//! What one VM of a tool holds (N0) is taken from its rows with a single VM, where nothing can be averaged wrongly. With it,
//! rows of several VMs are judged, whatever the caption says.

use statistics::little::{Side, side_of, whole_multiple};
use statistics::{fairness, words};

use super::finding::{Code, Finding, RowName, Severity};
use super::rows::{Row, distinct, grouped};
use crate::model::Tool;

/// Throughputs this near to each other, while one tool has several times the outstanding, show that both saturate.
const SATURATED_WITHIN: f64 = 0.10;

/// What one VM of a tool held.
struct Base {
    tool: Tool,
    /// As measured.
    measured: f64,
    /// The whole number that it is nearly, else as measured.
    each: f64,
    /// Rows with a single VM that it was taken from; none when it is the claim, or the least of all rows.
    from: usize,
}

pub(super) fn audit(rows: &[Row<'_>], findings: &mut Vec<Finding>) {
    let mut bases = Vec::new();
    // What was outstanding in runs of our own was measured, and is judged with them.
    for (tool, rows) in grouped(rows, |row| row.tool).into_iter().filter(|(tool, _)| *tool != Tool::Drystone)
    {
        // A limited rate holds as much outstanding as its latency needs, whatever its depth.
        let is_usable = |row: &&Row<'_>| row.latency_s.is_some() && row.run.job.rate.is_none();
        let rows: Vec<&Row<'_>> = rows.into_iter().filter(is_usable).collect();
        // Rows of which nobody says what was outstanding may each have had a depth of their own. Those of several VMs tell it.
        if rows.iter().all(|row| row.claimed.is_none() && row.vms == 1) {
            continue;
        }
        let sweeps = distinct(rows.iter().filter_map(|row| row.claimed_per_vm())) > 1;
        if sweeps {
            each_by_its_claim(tool, &rows, findings);
            continue;
        }
        let Some(base) = base(tool, &rows) else { continue };
        against_claim(&base, &rows, findings);
        by_base(&base, &rows, findings);
        bases.push(base);
    }
    for (index, one) in bases.iter().enumerate() {
        for other in &bases[index + 1..] {
            between_tools(one, other, rows, findings);
        }
    }
}

fn base(tool: Tool, rows: &[&Row<'_>]) -> Option<Base> {
    let mut single: Vec<f64> =
        rows.iter().filter(|row| row.vms == 1).filter_map(|row| row.implied()).collect();
    single.sort_by(f64::total_cmp);
    let least =
        rows.iter().filter_map(|row| Some(row.implied()? / f64::from(row.vms))).min_by(f64::total_cmp);
    let claimed = rows.iter().find_map(|row| row.claimed_per_vm());
    let measured = single.get(single.len() / 2).copied().or(claimed).or(least)?;
    // People ask for whole numbers; a mean falls a little short of them.
    let whole = measured.round();
    let each = if whole >= 1.0 && (measured / whole - 1.0).abs() < 0.01 { whole } else { measured };
    Some(Base { tool, measured, each, from: single.len() })
}

/// One number of outstanding I/Os is claimed for all rows: is it what one VM held?
fn against_claim(base: &Base, rows: &[&Row<'_>], findings: &mut Vec<Finding>) {
    let Some(claimed) = rows.iter().find_map(|row| row.claimed_per_vm()) else { return };
    if base.from == 0 {
        return;
    }
    let ratio = base.measured / claimed;
    let (tool, held, claim) = (base.tool, words::number(base.measured), words::number(claimed));
    let single = rows.iter().filter(|row| row.vms == 1);
    let names =
        single.map(|row| row.name(row.implied().map(|n| format!("{} outstanding I/Os", words::number(n)))));
    // Results of a single host speak of no VMs.
    let per = if rows.iter().any(|row| row.run.vms.is_some()) { " per VM" } else { "" };
    let median = if base.from > 1 { format!(", median of {} rows", base.from) } else { String::new() };
    let of = format!("{tool} held {held} outstanding I/Os{per} (IOPS × latency{median})");
    let (code, severity, sentence) = match (whole_multiple(ratio), whole_multiple(1.0 / ratio)) {
        _ if side_of(ratio, 0.0) == Side::Agrees => (
            Code::OutstandingAgrees,
            Severity::Information,
            format!("{of}, which agrees with the {claim} claimed"),
        ),
        (None, None) if ratio < 1.0 => (
            Code::Short,
            Severity::Warning,
            format!(
                "{of}, but {claim} are claimed. Samples were lost, the generator was idle, a rate was limited, or the tool \
                 takes time between I/Os"
            ),
        ),
        (multiple, part) => {
            let times = match (multiple, part) {
                (Some(times), _) => {
                    format!("{times} times as many as the {claim} claimed: the depth was another")
                }
                (None, Some(parts)) => format!("1/{parts} of the {claim} claimed: the depth was another"),
                (None, None) => {
                    format!("more than the {claim} claimed: latency and IOPS do not come from the same I/Os")
                }
            };
            (Code::OutstandingOther, Severity::Contradiction, format!("{of}, {times}"))
        }
    };
    findings.push(Finding { code, severity, sentence, rows: names.collect() });
}

/// Rows against what each VM holds.
fn by_base(base: &Base, rows: &[&Row<'_>], findings: &mut Vec<Finding>) {
    let (mut unequal, mut overstated, mut short) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let possible = f64::from(row.vms) * base.each;
        let Some(latency_s) = row.latency_s else { continue };
        let Some(ratio) = fairness::excess(row.iops, latency_s, f64::from(row.vms), base.each) else {
            continue;
        };
        // What rounding alone may do to it.
        let slack = row.iops * row.rounding_s / possible;
        match side_of(ratio, slack) {
            Side::Above if row.vms > 1 => unequal.push((ratio, *row)),
            Side::Above => overstated.push((ratio, *row)),
            Side::Short => short.push((ratio, *row)),
            Side::Agrees => {}
        }
    }
    let (tool, each) = (base.tool, words::number(base.each));
    let several = rows.iter().filter(|row| row.vms > 1).count();
    if let Some(worst) = worst(&mut unequal) {
        let sentence = format!(
            "{tool}: the VMs were served unequally in {} of {} with several VMs. IOPS × latency exceeds the {each} outstanding I/Os \
             of each VM. The latency is a plain average over unequal VMs, up to {worst:.2} times too high",
            unequal.len(),
            words::counted(several, "row")
        );
        findings.push(finding(Code::UnequalVms, Severity::Warning, sentence, &unequal));
    }
    if let Some(worst) = worst(&mut overstated) {
        let sentence = format!(
            "{tool}: in {} with one VM, IOPS × latency is up to {worst:.2} times the {each} outstanding I/Os of the other rows. \
             The latency is not the mean of all I/Os: were the means of reads and of writes averaged without weights?",
            words::counted(overstated.len(), "row")
        );
        findings.push(finding(Code::LatencyOverstated, Severity::Warning, sentence, &overstated));
    }
    short.sort_by(|one, other| one.0.total_cmp(&other.0));
    if let Some((least, _)) = short.first() {
        let sentence = format!(
            "{tool}: in {} less than {each} I/Os were outstanding per VM, down to {}. Samples were lost, VMs were idle for part of \
             the time, or a rate was limited",
            words::counted(short.len(), "row"),
            words::percent(*least)
        );
        findings.push(finding(Code::Short, Severity::Warning, sentence, &short));
    }
}

/// The greatest ratio; sorts the rows by it, greatest first.
fn worst(rows: &mut [(f64, &Row<'_>)]) -> Option<f64> {
    rows.sort_by(|one, other| other.0.total_cmp(&one.0));
    rows.first().map(|(ratio, _)| *ratio)
}

fn finding(code: Code, severity: Severity, sentence: String, rows: &[(f64, &Row<'_>)]) -> Finding {
    let rows = rows.iter().map(|(ratio, row)| row.name(Some(format!("{ratio:.2} times")))).collect();
    Finding { code, severity, sentence, rows }
}

/// A sweep: every row has a claim of its own.
fn each_by_its_claim(tool: Tool, rows: &[&Row<'_>], findings: &mut Vec<Finding>) {
    let mut off = Vec::new();
    let mut checked = 0;
    for row in rows {
        let (Some(implied), Some(claimed)) = (row.implied(), row.claimed) else { continue };
        checked += 1;
        let (ratio, slack) = (implied / claimed, row.iops * row.rounding_s / claimed);
        if side_of(ratio, slack) != Side::Agrees {
            off.push((ratio, *row));
        }
    }
    if checked == 0 {
        return;
    }
    let agree = checked - off.len();
    let named = if tool == Tool::Unknown { String::new() } else { format!("{tool}: ") };
    let sentence = format!(
        "{named}IOPS × latency agrees with the outstanding I/Os asked for in {agree} of {}, within rounding",
        words::counted(checked, "row")
    );
    let severity = Severity::Information;
    if agree > 0 {
        findings.push(Finding { code: Code::OutstandingAgrees, severity, sentence, rows: vec![] });
    }
    let below = off.iter().filter(|(ratio, _)| *ratio < 1.0).count();
    if worst(&mut off).is_some() {
        let reasons = [
            (below, "below: samples were lost, the generator was idle, or a rate was limited"),
            (
                off.len() - below,
                "above: latency and IOPS do not come from the same I/Os, or the depth was another",
            ),
        ];
        let found = reasons.into_iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<String> = found.map(|(count, reason)| format!("{count} {reason}")).collect();
        let sentence = format!(
            "{named}IOPS × latency differs from the outstanding I/Os asked for by more than 5 % in {}. {}",
            words::counted(off.len(), "row"),
            reasons.join(". ")
        );
        let code = if below == off.len() { Code::Short } else { Code::OutstandingOther };
        findings.push(finding(code, Severity::Warning, sentence, &off));
    }
}

/// Two tools in one table.
fn between_tools(one: &Base, other: &Base, rows: &[Row<'_>], findings: &mut Vec<Finding>) {
    let (less, more) = if one.each <= other.each { (one, other) } else { (other, one) };
    let pairs = pairs(rows, less.tool, more.tool);
    if pairs.is_empty() || less.from == 0 || more.from == 0 {
        return;
    }
    let ratio = more.measured / less.measured;
    let (few, many) = (words::number(less.each), words::number(more.each));
    let near = |pair: &&(&Row<'_>, &Row<'_>)| (pair.1.iops / pair.0.iops - 1.0).abs() <= SATURATED_WITHIN;
    let (alike, apart): (Vec<_>, Vec<_>) = pairs.iter().partition(near);
    if side_of(ratio, 0.0) != Side::Above {
        let sentence = format!(
            "{} and {} held the same number of outstanding I/Os per VM ({few}): their IOPS and latency can be compared",
            less.tool, more.tool
        );
        let severity = Severity::Information;
        findings.push(Finding { code: Code::Comparable, severity, sentence, rows: vec![] });
        return;
    }
    let times = whole_multiple(ratio).map_or(format!("{ratio:.2} times"), |times| format!("{times} times"));
    let single = pairs.iter().filter(|(one, _)| one.vms == 1).flat_map(|(one, other)| [*one, *other]);
    let held =
        |row: &Row<'_>| row.name(row.implied().map(|n| format!("{} outstanding I/Os", words::number(n))));
    findings.push(Finding {
        code: Code::ToolsDiffer,
        severity: Severity::Contradiction,
        sentence: format!(
            "the tools did not run the same load. With one VM, {} held {many} outstanding I/Os and {} {few} (IOPS × latency): \
             {times} as many. A caption for both is wrong for one of them",
            more.tool, less.tool
        ),
        rows: single.map(held).collect(),
    });
    findings.push(comparable(less, more, &times, &alike, &apart));
}

fn comparable(
    less: &Base,
    more: &Base,
    times: &str,
    alike: &[&(&Row<'_>, &Row<'_>)],
    apart: &[&(&Row<'_>, &Row<'_>)],
) -> Finding {
    let name = |pair: &&(&Row<'_>, &Row<'_>)| -> RowName {
        let change = words::percent(pair.1.iops / pair.0.iops - 1.0);
        pair.1.name(Some(format!("IOPS differ by {change} from {}", less.tool)))
    };
    let all = words::counted(alike.len() + apart.len(), "pair");
    let mut sentences = vec![format!(
        "{} against {}: latency cannot be compared in any row, as {} had {times} the outstanding I/Os",
        more.tool, less.tool, more.tool
    )];
    sentences.push(match alike.len() {
        0 => format!("IOPS differ by more than 10 % in all of {all}"),
        count => format!(
            "IOPS can be compared in {count} of {all}: they lie within 10 % despite the depths, so both tools saturate the target"
        ),
    });
    if !apart.is_empty() {
        sentences
            .push("In the pairs listed, the depth, the tool or chance may make the difference".to_owned());
    }
    Finding {
        code: Code::Comparable,
        severity: Severity::Warning,
        sentence: sentences.join(". "),
        rows: apart.iter().map(name).collect(),
    }
}

/// Rows of two tools that did the same with as many VMs.
fn pairs<'a, 'r>(rows: &'r [Row<'a>], one: Tool, other: Tool) -> Vec<(&'r Row<'a>, &'r Row<'a>)> {
    let cells = grouped(rows, |row| (row.vms, row.pattern()));
    let of = |cell: &[&'r Row<'a>], tool: Tool| cell.iter().find(|row| row.tool == tool).copied();
    cells.values().filter_map(|cell| Some((of(cell, one)?, of(cell, other)?))).collect()
}
