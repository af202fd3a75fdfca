//! A plan's outline as text: what fits on a screen, or all of it.
//!
//! Relies on the outline. Must never drop a fact without saying how much is left out.

use crate::describe::count_of;
use crate::note::{Note, NoteKind};
use crate::outline::{GroupParts, Growth, Outline, StageOutline, TargetOutline, format_seconds};
use base::units::format_bytes;
use std::fmt;

/// Lines of stages that a screen holds beside the rest: a longer plan is folded unless all of it is asked for.
const LINES_MAX: usize = 24;

impl GroupParts {
    /// One line, without what is told elsewhere.
    pub(crate) fn line(&self, told: &[String]) -> String {
        format!("{}: {}", self.name, self.facts(told))
    }

    fn facts(&self, told: &[String]) -> String {
        let mut facts: Vec<&str> =
            self.parts.iter().filter(|part| !told.contains(part)).map(String::as_str).collect();
        let on = format!("on {}", listed(&self.targets));
        facts.insert(usize::from(!facts.is_empty()), &on);
        facts.join(", ")
    }
}

/// The first names, and how many more there are.
fn listed(names: &[String]) -> String {
    let mut names = names.to_vec();
    names.dedup();
    match names.len() {
        0..=3 => names.join(" "),
        count => format!("{} and {} more", names[..3].join(" "), count - 3),
    }
}

/// The plan on a screen; with `{:#}` every stage and group.
impl fmt::Display for Outline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_full = formatter.alternate();
        let at_most = if self.stages.iter().any(|stage| stage.ends_early) { "at most " } else { "" };
        let time = |seconds| format!("{at_most}{}", format_seconds(seconds));
        let time = self.seconds.map_or("until its amounts are done".to_owned(), time);
        writeln!(formatter, "{}: {}, {time}", self.name, count_of(self.stages.len() as u64, "stage"))?;
        if !self.common.is_empty() {
            let what = if self.stages.iter().map(|stage| stage.parts.len()).sum::<usize>() > 1 {
                "all: "
            } else {
                ""
            };
            writeln!(formatter, "  {what}{}", self.common.join(", "))?;
        }
        let blocks: Vec<Vec<String>> = (self.stages.iter().enumerate())
            .map(|(index, stage)| self.block(index, stage, is_full))
            .collect();
        self.write_stages(formatter, &blocks, is_full)?;
        let most = if is_full { usize::MAX } else { 8 };
        for target in self.targets.iter().take(most) {
            writeln!(formatter, "  {target}")?;
        }
        if self.targets.len() > most {
            let more = &self.targets[most..];
            let written = more.iter().filter(|target| target.written).count();
            let more = count_of(more.len() as u64, "more target");
            writeln!(formatter, "  … {more}, {written} of them overwritten; -v shows all")?;
        }
        Ok(())
    }
}

impl Outline {
    /// As many stages as a screen holds, and the last.
    fn write_stages(
        &self,
        formatter: &mut fmt::Formatter<'_>,
        blocks: &[Vec<String>],
        is_full: bool,
    ) -> fmt::Result {
        let most = if is_full { usize::MAX } else { LINES_MAX };
        let mut lines = 0;
        let fits = |block: &&Vec<String>| {
            lines += block.len();
            lines <= most
        };
        let head = blocks.iter().take_while(fits).count().max(1);
        let left = blocks.len().saturating_sub(head);
        for (index, block) in blocks.iter().enumerate() {
            if index >= head && index + 1 < blocks.len() {
                continue;
            }
            if index >= head && left > 1 {
                writeln!(formatter, "  … {}; -v shows all", count_of(left as u64 - 1, "more stage"))?;
            }
            for line in block.iter().take(most) {
                writeln!(formatter, "  {line}")?;
            }
            if block.len() > most {
                let more = count_of((block.len() - most) as u64, "more line");
                writeln!(formatter, "     … {more}; -v shows all")?;
            }
        }
        Ok(())
    }

    /// The lines of a stage.
    fn block(&self, index: usize, stage: &StageOutline, is_full: bool) -> Vec<String> {
        let repeats = if stage.repeats == 1 { String::new() } else { format!(", {} times", stage.repeats) };
        let at_most = if stage.ends_early { "at most " } else { "" };
        let time = |seconds| format!("{at_most}{}", format_seconds(seconds));
        let time = stage.seconds.map_or("by amount".to_owned(), time);
        let head = format!("{}. {}: {time}{repeats}", index + 1, stage.name);
        if let Some(same) = stage.same_as.filter(|_| !is_full) {
            let mut lines = vec![format!("{head}, the same as stage {}", same + 1)];
            lines.extend(
                stage
                    .remarks
                    .iter()
                    .filter(|remark| remark.starts_with('`'))
                    .map(|remark| format!("   {remark}")),
            );
            return lines;
        }
        let told: &[String] = if is_full { &[] } else { &self.common };
        let mut lines = Vec::new();
        match stage.parts.as_slice() {
            // One group has the stage's own figures.
            [group] => {
                let name = if group.name == stage.name { String::new() } else { format!("{}: ", group.name) };
                lines.push(format!("{head}, {name}{}", group.facts(told)));
            }
            groups => {
                let workers = count_of(stage.workers, "worker");
                lines.push(format!("{head}, {} outstanding, {workers}", stage.outstanding));
                lines.extend(folded(groups, told, is_full).into_iter().map(|line| format!("   {line}")));
            }
        }
        lines.extend(stage.remarks.iter().map(|remark| format!("   {remark}")));
        lines
    }
}

/// A line for each group; groups that differ in names and targets alone are one.
fn folded(groups: &[GroupParts], told: &[String], is_full: bool) -> Vec<String> {
    let mut kinds: Vec<(Vec<&str>, GroupParts)> = Vec::new();
    for group in groups {
        match kinds.iter_mut().find(|(_, kind)| !is_full && kind.parts == group.parts) {
            Some((names, kind)) => {
                names.push(&group.name);
                kind.targets.extend(group.targets.iter().cloned());
            }
            None => kinds.push((vec![&group.name], group.clone())),
        }
    }
    kinds
        .into_iter()
        .map(|(names, kind)| match names.as_slice() {
            [name] => format!("{name}: {}", kind.facts(told)),
            [one, other] => format!("{one} and {other}: each {}", kind.facts(told)),
            [first, .., last] => {
                format!("{} groups alike, {first} … {last}: each {}", names.len(), kind.facts(told))
            }
            [] => String::new(),
        })
        .collect()
}

/// The notes of a plan as lines: the same remark stands once, with how often and where.
pub fn fold_notes(notes: &[Note], is_full: bool) -> Vec<String> {
    if is_full {
        return notes.iter().map(|note| format!("note {note}")).collect();
    }
    // What is not carried has no effect on the run: several of them are one line.
    let (idle, told): (Vec<&Note>, Vec<&Note>) =
        notes.iter().partition(|note| note.kind == NoteKind::NotCarried);
    let is_listed = idle.len() > 2;
    let mut kinds: Vec<(&Note, Vec<u32>)> = Vec::new();
    for note in told.into_iter().chain(idle.iter().copied().filter(|_| !is_listed)) {
        let same = |other: &Note| {
            (other.kind, &other.key, &other.text, &other.place.file)
                == (note.kind, &note.key, &note.text, &note.place.file)
        };
        match kinds.iter_mut().find(|(other, _)| same(other)) {
            Some((_, lines)) => lines.push(note.place.line),
            None => kinds.push((note, vec![note.place.line])),
        }
    }
    let mut texts: Vec<String> = kinds
        .into_iter()
        .map(|(note, mut lines)| {
            let count = lines.len();
            lines.dedup();
            match lines.as_slice() {
                _ if count == 1 => format!("note {note}"),
                [line] => format!("note {note} ({count} times in line {line})"),
                several => {
                    let first: Vec<String> = several.iter().take(6).map(u32::to_string).collect();
                    let more = if several.len() > 6 {
                        format!(", … {}", several[several.len() - 1])
                    } else {
                        String::new()
                    };
                    format!("note {note} ({count} times, lines {}{more})", first.join(", "))
                }
            }
        })
        .collect();
    if is_listed {
        let mut keys: Vec<&str> = idle.iter().map(|note| note.key.trim_start_matches('\'')).collect();
        keys.sort_unstable();
        keys.dedup();
        let count = idle.len();
        texts.push(format!("{count} notes on what is not carried over ({}); -v shows them", keys.join(", ")));
    }
    texts
}

impl fmt::Display for TargetOutline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size.map_or("of unknown size".to_owned(), format_bytes);
        write!(formatter, "target {} ({size}): ", self.name)?;
        let fill = |filled: bool| if filled { " and filled with random data" } else { "" };
        match self.growth {
            Some(Growth::Created { filled }) => write!(formatter, "the file is created{}; ", fill(filled))?,
            Some(Growth::Extended { from, filled }) => {
                write!(formatter, "the file is extended from {}{}; ", format_bytes(from), fill(filled))?;
            }
            None => {}
        }
        match (self.written, self.touched, self.destroyed) {
            (false, touched, _) if self.growth.is_some() => {
                write!(formatter, "{} are read", touched.map_or("its bytes".to_owned(), format_bytes))?;
            }
            (true, _, destroyed) if matches!(self.growth, Some(Growth::Created { .. })) => {
                write!(formatter, "{} are written", destroyed.map_or("its bytes".to_owned(), format_bytes))?;
            }
            (false, Some(touched), _) => {
                write!(formatter, "{} are read, nothing is written", format_bytes(touched))?
            }
            (false, None, _) => write!(formatter, "nothing is written")?,
            (true, _, Some(destroyed)) => write!(
                formatter,
                "{} will be overwritten; the data there is destroyed",
                format_bytes(destroyed)
            )?,
            (true, _, None) => write!(formatter, "will be overwritten; the data there is destroyed")?,
        }
        match self.missing {
            Some(missing) => {
                write!(formatter, "; the job asks for {} more than it has", format_bytes(missing))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Amount, Caching, Extent, Group, Length, Line, Pace, Pattern, Place, Plan, Rate, RateOf, RatePer,
        Size, Span, Stage, Target, Timing, Zone,
    };
    use std::time::Duration;

    fn group(name: &str, size: u64, reads: f64, random: f64) -> Group {
        Group::new(name, 0, 4, Pattern::simple(size, reads, random), Timing::seconds(60))
    }

    fn text(stages: Vec<Stage>) -> String {
        let plan = Plan { targets: vec![Target::named("disk")], stages, ..Plan::default() };
        plan.outline(&[Some(1 << 30)]).to_string()
    }

    fn of(group: Group) -> String {
        text(vec![Stage::new("s", vec![group])])
    }

    fn says(text: &str, expected: &[&str]) {
        expected.iter().for_each(|part| assert!(text.contains(part), "`{part}` is not in: {text}"));
    }

    #[test]
    fn a_plan_says_where_when_and_how_it_runs() {
        let mut one = group("g", 4096, 100.0, 100.0);
        one.pattern.span = Span {
            offset: Extent::Bytes(1 << 20),
            length: Some(Extent::Percent(50.0)),
            worker_step: Extent::Bytes(4096),
        };
        one.timing.delay = Duration::from_secs(5);
        one.timing.ramp = Duration::from_secs(10);
        one.timing.length = Length::First { time: Duration::from_secs(60), amount: Amount::Bytes(32 << 20) };
        one.caching = Caching { direct: false, ..Caching::default() };
        one.pattern.distribution = crate::Distribution::Zoned(vec![
            Zone { ios: 90.0, length: Extent::Percent(10.0) },
            Zone { ios: 10.0, length: Extent::Percent(90.0) },
        ]);
        says(
            &of(one),
            &[
                "50 % from 1 MiB on, each worker 4 KiB further",
                "zones: 90 % of the I/Os on 10 %, 10 % of the I/Os on 90 %",
                "32 MiB per worker, at most 1 min after 10 s ramp-up, starts at 5 s",
                "page cache",
                "different random I/Os in every run",
                "nothing is written",
            ],
        );
    }

    /// `nothing is written` stood beside a file that the run was about to create and fill.
    #[test]
    fn a_file_that_is_created_or_extended_is_told() {
        let told = |reads: f64, file: Option<u64>| {
            let stages = vec![Stage::new("s", vec![group("g", 4096, reads, 100.0)])];
            let plan = Plan { targets: vec![Target::named("disk")], stages, ..Plan::default() };
            plan.outline(&[Some(1 << 30)]).with_files(&[file]).to_string()
        };
        let made = told(100.0, Some(0));
        says(&made, &["the file is created and filled with random data; 1 GiB are read"]);
        assert!(!made.contains("nothing is written"));
        says(&told(0.0, Some(0)), &["the file is created; 1 GiB are written"]);
        says(&told(0.0, Some(1 << 20)), &["the file is extended from 1 MiB; 1 GiB will be overwritten"]);
        says(&told(100.0, Some(1 << 30)), &["1 GiB are read, nothing is written"]);
        says(&told(100.0, None), &["nothing is written"]);
    }

    #[test]
    fn a_rate_says_what_it_amounts_to() {
        let mut one = group("g", 4096, 0.0, 0.0);
        let rate = Rate {
            pace: Pace::Bytes(1250.0),
            per: RatePer::Worker,
            of: RateOf::Writes,
            arrivals: crate::Arrivals::Even,
            clock: crate::Loop::Closed,
        };
        one.rates = vec![rate];
        one.timing.length = Length::Amount(Amount::Bytes(32 << 20));
        one.data.compressible = 50.0;
        says(&of(one), &["(one I/O in 3.3 s)", "32 MiB at this rate take 7 h 27 min", "50 % compressible"]);
    }

    #[test]
    fn a_mix_says_its_shares_and_its_mean() {
        let mut one = group("g", 4096, 70.0, 100.0);
        one.pattern.lines = vec![
            Line::new(3.0, Size::Fixed(4096), 70.0, 100.0),
            Line::new(1.0, Size::Fixed(65_536), 70.0, 100.0),
        ];
        says(&of(one.clone()), &["4 KiB 75 %, 64 KiB 25 % (mean 19 KiB), 70 % reads, 100 % random"]);
        one.pattern.lines[1].reads = 0.0;
        says(&of(one), &["75 % are 4 KiB, 70 % reads", "25 % are 64 KiB, 0 % reads", "in all 52.5 % reads"]);
    }

    #[test]
    fn groups_that_do_not_run_together_say_who_runs_when() {
        let one = group("early", 4096, 100.0, 100.0);
        let mut other = group("late", 8192, 100.0, 100.0);
        other.timing.delay = Duration::from_secs(30);
        says(
            &text(vec![Stage::new("s", vec![one, other])]),
            &[
                "0 s to 30 s: early (4 outstanding); 30 s to 1 min: early late (8 outstanding); 1 min to 1 min 30 s: late (4 outstanding)",
            ],
        );
    }

    #[test]
    fn a_stage_that_repeats_another_says_so_and_names_are_held_against_what_is_done() {
        let stage = |name: &str| Stage::new(name, vec![group("mix_80r", 4096, 20.0, 100.0)]);
        let text = text(vec![stage("a"), stage("b")]);
        says(
            &text,
            &["2. b: 1 min, the same as stage 1", "`mix_80r` says 80 % reads, and the job does 20 % reads"],
        );
    }

    #[test]
    fn machines_are_told_apart() {
        let on = |host: &str| {
            let mut one = group("g", 4096, 100.0, 100.0);
            one.vm = Some(host.to_owned());
            one
        };
        says(&text(vec![Stage::new("s", vec![on("h1"), on("h2")])]), &["outstanding: 4 on h1, 4 on h2"]);
    }

    #[test]
    fn a_long_plan_fits_on_a_screen_and_is_shown_in_full_when_asked_for() {
        let names: Vec<String> = (1..=32).map(|number| format!("job{number}")).collect();
        let different = |(index, name): (usize, &String)| group(name, 4096 << (index % 5), 100.0, 100.0);
        let groups: Vec<Group> = names.iter().enumerate().map(different).collect();
        let stages: Vec<Stage> =
            (groups.iter()).map(|group| Stage::new(&group.name, vec![group.clone()])).collect();
        let targets = vec![Target::named("disk")];
        for stages in [vec![Stage::new("together", groups)], stages] {
            let plan = Plan { targets: targets.clone(), stages, ..Plan::default() };
            let outline = plan.outline(&[Some(1 << 30)]);
            let (short, full) = (outline.to_string(), format!("{outline:#}"));
            assert!(short.lines().count() <= 30, "{short}");
            assert!(names.iter().all(|name| full.contains(&format!("{name}: "))), "{full}");
        }
    }

    #[test]
    fn the_same_note_stands_once_with_how_often_and_where() {
        let note = |line: u32, kind: NoteKind, key: &str| Note {
            kind,
            place: Place { file: "f".into(), line, column: 1 },
            key: key.into(),
            text: "text".into(),
        };
        let notes: Vec<Note> = (1..=32).map(|line| note(line, NoteKind::Trap, "bs")).collect();
        assert_eq!(
            fold_notes(&notes, false),
            ["note f:1:1: bs (trap): text (32 times, lines 1, 2, 3, 4, 5, 6, … 32)"]
        );
        assert_eq!(fold_notes(&notes, true).len(), 32);
        let idle = ["a", "b", "c"].map(|key| note(1, NoteKind::NotCarried, key));
        assert_eq!(
            fold_notes(&idle, false),
            ["3 notes on what is not carried over (a, b, c); -v shows them"]
        );
    }
}
