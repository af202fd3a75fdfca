//! Names against what they stand for: `mix_80r` on a group that reads 20 %.
//!
//! Relies on the plan's own types. Must never call a name wrong that merely says less, or says it of something else.

use crate::describe::short;
use crate::pattern::Size;
use crate::structure::Group;
use base::units::format_bytes;

/// What a name of a stage or group says that the group does not do.
pub(crate) fn contradiction(label: &str, group: &Group) -> Option<String> {
    let lower = label.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let (reads, random) = (group.pattern.reads(), group.pattern.random());
    let told = |what: String, does: String| Some(format!("`{label}` says {what}, and the job does {does}"));
    let share: Vec<f64> = words.iter().filter_map(|word| share_of_reads(word)).collect();
    if !share.is_empty() && share.iter().all(|said| (said - reads).abs() > 0.5) {
        return told(format!("{} % reads", short(share[0])), format!("{} % reads", short(reads)));
    }
    let percentages = percentages(&lower);
    for (percent, what) in &percentages {
        let (does, kind) = match *what {
            "read" | "reads" => (reads, "reads"),
            "write" | "writes" => (100.0 - reads - group.pattern.trims(), "writes"),
            "random" | "rand" => (random, "random"),
            "sequential" | "seq" => (100.0 - random, "sequential"),
            _ => continue,
        };
        if (percent - does).abs() > 0.5 {
            return told(format!("{} % {kind}", short(*percent)), format!("{} % {kind}", short(does)));
        }
    }
    let sizes: Vec<u64> = words.iter().filter_map(|word| size(word)).collect();
    let fixed: Vec<u64> = (group.pattern.lines.iter())
        .map(|line| if let Size::Fixed(size) = line.size { Some(size) } else { None })
        .collect::<Option<_>>()
        .unwrap_or_default();
    if let ([said, ..], [size]) = (sizes.as_slice(), fixed.as_slice())
        && !sizes.contains(size)
    {
        return told(format_bytes(*said), format_bytes(*size));
    }
    if !percentages.is_empty() {
        return None;
    }
    let says = |stems: &[&str]| stems.iter().any(|stem| lower.contains(stem));
    let is_pure = group.pattern.trims() == 0.0;
    if is_pure && reads == 100.0 && says(&["write"]) && !says(&["read", "rw", "mix", "after"]) {
        return told("writes".into(), "reads alone".into());
    }
    if is_pure
        && reads == 0.0
        && says(&["read"])
        && !says(&["write", "rw", "mix", "ready", "thread", "spread"])
    {
        return told("reads".into(), "writes alone".into());
    }
    let (is_random, is_sequential) = (says(&["rand"]), says(&["seq"]));
    if is_random && !is_sequential && random == 0.0 {
        return told("random".into(), "only sequential I/O".into());
    }
    if is_sequential && !is_random && random == 100.0 {
        return told("sequential".into(), "only random I/O".into());
    }
    None
}

/// Every `70% read` and `0 % random` of a name: the number and the word behind it.
fn percentages(label: &str) -> Vec<(f64, &str)> {
    let mut found = Vec::new();
    for (index, _) in label.match_indices('%') {
        let digits = |letter: char| letter.is_ascii_digit();
        let before = label[..index].trim_end();
        let number = &before[before.trim_end_matches(digits).len()..];
        let after = label[index + 1..].trim_start();
        let word = &after[..after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len())];
        found.extend(number.parse().ok().map(|percent| (percent, word)));
    }
    found
}

/// `80r`, `r80`, `80read`, `read80`, `rd80` for reads; `20w` and its like for writes.
fn share_of_reads(word: &str) -> Option<f64> {
    let digits: String = word.chars().filter(char::is_ascii_digit).collect();
    let letters: String = word.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    if digits.is_empty() || !(word.starts_with(digits.as_str()) || word.ends_with(digits.as_str())) {
        return None;
    }
    let percent: f64 = digits.parse().ok().filter(|percent| *percent <= 100.0 && digits.len() >= 2)?;
    match letters.as_str() {
        "r" | "rd" | "read" | "reads" | "pctread" => Some(percent),
        "w" | "wr" | "write" | "writes" | "pctwrite" => Some(100.0 - percent),
        _ => None,
    }
}

/// `4k`, `64kb`, `1m`: a power of two, as sizes of I/Os are.
fn size(word: &str) -> Option<u64> {
    let digits = word.len() - word.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let shift = match &word[digits..] {
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        _ => return None,
    };
    let number: u64 = word[..digits].parse().ok()?;
    (number.is_power_of_two() && number <= 4096).then(|| number << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pattern, Timing};

    #[test]
    fn a_name_that_says_something_else_than_the_job_does_is_told_of() {
        let check = |label: &str, size: u64, reads: f64, random: f64, expected: &str| {
            let group = Group::new("g", 0, 1, Pattern::simple(size, reads, random), Timing::seconds(1));
            let found = contradiction(label, &group).unwrap_or_default();
            assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{label}: {found}");
        };
        check("mix_80r", 4096, 20.0, 100.0, "`mix_80r` says 80 % reads, and the job does 20 % reads");
        check("mix_80r", 4096, 80.0, 100.0, "");
        check("oltp-20w", 8192, 80.0, 100.0, "");
        check("rand-4k-read", 65_536, 100.0, 100.0, "says 4 KiB");
        check("4k or 64k", 65_536, 100.0, 100.0, "");
        check("seq-write", 4096, 100.0, 0.0, "says writes");
        check("randread", 4096, 100.0, 0.0, "says random");
        check("sequential", 4096, 100.0, 100.0, "says sequential");
        check("threads-ready", 4096, 0.0, 100.0, "");
        check("64 KiB; 100% Read; 0% random", 65_536, 100.0, 0.0, "");
        check("4K; 70% reads, 100% random", 4096, 50.0, 100.0, "says 70 % reads");
        check("job1", 4096, 0.0, 100.0, "");
        check("iops-10k", 4096, 0.0, 100.0, "");
    }
}
