//! Command lines of DiskSPD: flags in single words, then targets.

use super::draft::{Draft, RATE, SEED};
use super::keys::{ByFlag, FLAGS};
use super::settings::{Buffer, Span, Target, Throughput};
use super::size;
use super::words::{Command, Word};
use super::xml::{OVERRIDABLE, Overridable, Overrides, read_with};
use crate::error::Fault;
use crate::findings::{Findings, malformed, refused, unsupported};
use crate::keys::Rule;
use crate::limits;
use crate::source::{Options, Source};
use plan::{Extent, NoteKind, Zone};

/// A flag with what follows it in its word.
#[derive(Clone, Copy)]
pub(crate) struct Flag<'a> {
    rule: &'static Rule<ByFlag>,
    name: &'static str,
    rest: &'a str,
    word: &'a Word,
}

/// The time spans of a command line: one, or those of its profile.
pub(crate) fn read(command: &Command, options: &Options<'_>, findings: &mut Findings) -> Vec<Span> {
    let (flags, paths) = parted(command, findings);
    let mut draft = Draft::new(&command.place);
    // Sizes may be given in blocks, so the block comes first wherever it stands.
    for flag in flags.iter().filter(|flag| flag.name == "-b") {
        let found = size::block(flag.rest, &flag.word.text, &flag.word.place);
        draft.target.block = findings.take(found).unwrap_or(draft.target.block);
    }
    for flag in &flags {
        if let Err(fault) = apply(flag, &mut draft, findings) {
            findings.fault(fault);
        }
    }
    check_repeats(&flags, findings);
    check_pairs(&flags, &draft, findings);
    if let Some(flag) = flags.iter().rev().find(|flag| flag.name == "-X") {
        return with_profile(flag.rest, &draft, &flags, &paths, command, options, findings);
    }
    vec![finish(&draft, &paths, command, findings)]
}

/// Flags and targets. `/` begins a flag too, unless more of them make it a path.
fn parted<'a>(command: &'a Command, findings: &mut Findings) -> (Vec<Flag<'a>>, Vec<&'a Word>) {
    let mut flags: Vec<Flag<'a>> = Vec::new();
    let mut paths: Vec<&Word> = Vec::new();
    for word in &command.words {
        let text = word.text.as_str();
        let path = text.len() < 2
            || !text.starts_with(['-', '/'])
            || text[1..].contains('/') && !text.starts_with('-');
        if path {
            paths.push(word);
            continue;
        }
        if !paths.is_empty() {
            findings.fault(refused(
                &word.place,
                format!("the option `{text}` stands behind the target `{}`", paths[0].text),
                "DiskSPD takes every word behind the first target for a target",
                "put all options first",
            ));
            continue;
        }
        let rest = &text[1..];
        let names = FLAGS.iter().flat_map(|rule| rule.key.names().map(move |name| (rule, name)));
        let found = names.filter(|(_, name)| rest.starts_with(&name[1..])).max_by_key(|(_, name)| name.len());
        let Some((rule, name)) = found else {
            findings.fault(refused(
                &word.place,
                format!("the option `{text}` is unknown"),
                "DiskSPD prints its usage",
                "remove the option; options are single words such as -b8K, and upper and lower case differ",
            ));
            continue;
        };
        if flags.len() == limits::FLAGS_MAX {
            findings.fault(malformed(
                &word.place,
                format!("the command line has more than {} options", limits::FLAGS_MAX),
                "split the command line",
            ));
            return (flags, paths);
        }
        flags.push(Flag { rule, name, rest: &rest[name.len() - 1..], word });
    }
    (flags, paths)
}

impl Flag<'_> {
    fn letter(&self) -> char {
        self.name.chars().nth(1).unwrap_or('?')
    }

    fn size(&self, block: u64) -> Result<u64, Fault> {
        size::size(self.rest, Some(block), &self.word.text, &self.word.place)
    }

    fn refused(&self, tool: &str, remedy: impl Into<String>) -> Fault {
        refused(&self.word.place, format!("`{}`", self.word.text), tool, remedy)
    }

    /// A number as `atoi` reads it: what follows its digits is not looked at.
    fn number(&self, least: u64, most: u64, findings: &mut Findings) -> Result<u64, Fault> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest[..digits].parse::<u64>().ok().filter(|number| (least..=most).contains(number));
        let Some(number) = number else {
            let separate =
                if self.rest.is_empty() { "; a value stands in the same word, without a blank" } else { "" };
            return Err(self.refused(
                "DiskSPD rejects the value",
                format!("write {}<number>, {least} to {most}{separate}", self.name),
            ));
        };
        if digits < self.rest.len() {
            let text = format!("DiskSPD reads {number} and ignores `{}`", &self.rest[digits..]);
            findings.note(NoteKind::Trap, &self.word.place, self.name, text);
        }
        Ok(number)
    }
}

fn apply(flag: &Flag<'_>, draft: &mut Draft, findings: &mut Findings) -> Result<(), Fault> {
    match flag.rule.admit(flag.name, &flag.word.text, &flag.word.place, findings)? {
        None => {}
        Some(ByFlag::Number(number)) => {
            (number.set)(draft, flag.number(number.least, number.most, findings)?);
        }
        Some(ByFlag::Size(size)) => (size.set)(draft, flag.size(draft.target.block)?),
        Some(ByFlag::Own(set)) => set(draft, flag, findings)?,
    }
    Ok(())
}

/// What the flags come to, for each target.
fn finish(draft: &Draft, paths: &[&Word], command: &Command, findings: &mut Findings) -> Span {
    let mut span = draft.span.clone();
    let target = draft.target();
    if paths.is_empty() {
        findings.fault(refused(
            &command.place,
            "the command line names no target",
            "DiskSPD requires a target",
            "add a file or a device at the end",
        ));
    }
    for path in paths {
        if path.text.starts_with('*') {
            findings.fault(refused(
                &path.place,
                format!("`{}` stands for a target of a profile", path.text),
                "DiskSPD allows it only in profiles",
                "name the target",
            ));
        }
        if looks_like_value(&path.text) {
            let text = format!("`{}` is a target: the value of a flag stands in the flag's word", path.text);
            findings.note(NoteKind::Trap, &path.place, "target", text);
        }
        span.targets.push(Target { path: path.text.clone(), place: path.place.clone(), ..target.clone() });
    }
    super::convert::check(&span, findings);
    span
}

/// `-B`: `base:length`.
pub(crate) fn base(draft: &mut Draft, flag: &Flag<'_>, _: &mut Findings) -> Result<(), Fault> {
    let (base, length) =
        flag.rest.split_once(':').map_or((flag.rest, None), |(base, length)| (base, Some(length)));
    let read = |text: &str| Flag { rest: text, ..*flag }.size(draft.target.block);
    (draft.target.base, draft.target.length) = (read(base)?, length.map(read).transpose()?);
    Ok(())
}

/// `-f`: a size, or hints for opening.
pub(crate) fn end(draft: &mut Draft, flag: &Flag<'_>, findings: &mut Findings) -> Result<(), Fault> {
    if flag.rest.starts_with(|letter: char| letter.is_ascii_digit()) {
        draft.target.stop = Some(flag.size(draft.target.block)?);
        return Ok(());
    }
    if flag.rest.is_empty() || !flag.rest.chars().all(|letter| "rst".contains(letter)) {
        return Err(flag.refused("DiskSPD rejects the option", "write -f<size>, -fr, -fs or -ft"));
    }
    let text = "hints to the page cache of Windows have no effect here";
    findings.note(NoteKind::NotCarried, &flag.word.place, "-f", text);
    Ok(())
}

/// `-r`, `-s` and `-si`: how I/Os follow one another, with an alignment or a stride.
pub(crate) fn step(draft: &mut Draft, flag: &Flag<'_>, _: &mut Findings) -> Result<(), Fault> {
    match flag.name {
        "-r" => draft.random = true,
        name => draft.interlocked = name == "-si",
    }
    if !flag.rest.is_empty() {
        draft.target.step = Some(flag.size(draft.target.block)?);
    }
    Ok(())
}

/// `-z`: a seed, or none.
pub(crate) fn seed(draft: &mut Draft, flag: &Flag<'_>, findings: &mut Findings) -> Result<(), Fault> {
    draft.span.seed = match flag.rest {
        "" => None,
        _ => Some(flag.number(SEED.least, SEED.most, findings)?),
    };
    Ok(())
}

/// `-g`: bytes per millisecond, or I/Os per second with an i.
pub(crate) fn throughput(draft: &mut Draft, flag: &Flag<'_>, findings: &mut Findings) -> Result<(), Fault> {
    let rest = flag.rest.trim_end_matches('i');
    let number = Flag { rest, ..*flag }.number(1, RATE, findings)?;
    let is_iops = rest.len() < flag.rest.len();
    draft.target.throughput =
        Some(if is_iops { Throughput::Iops(number) } else { Throughput::BytesPerMillisecond(number) });
    Ok(())
}

/// Whether a target looks like the value of a flag that a blank was put before: `8K`, `60`.
fn looks_like_value(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0
        && matches!(&text[digits..], "" | "k" | "K" | "m" | "M" | "g" | "G" | "t" | "T" | "KB" | "MB" | "GB")
}

/// `-S` and `-h`: several of them add up, and each property is set once.
pub(crate) fn cache(draft: &mut Draft, flag: &Flag<'_>, findings: &mut Findings) -> Result<(), Fault> {
    let letters = match (flag.name, flag.rest) {
        ("-h", _) => {
            findings.note(NoteKind::Default, &flag.word.place, "-h", "-h is an old spelling of -Sh");
            "h"
        }
        (_, "") => "u",
        (_, letters) => letters,
    };
    let set = &mut draft.target.cache;
    for letter in letters.chars() {
        let (mode, through) = match letter {
            'b' => (Some(false), false),
            'u' => (Some(true), false),
            'w' => (None, true),
            'h' => (Some(true), true),
            'r' => {
                let text = "cache of a remote file on this machine; Linux has no such switch";
                findings.note(NoteKind::NotCarried, &flag.word.place, "-Sr", text);
                (Some(false), false)
            }
            'm' => {
                let remedy = "write -Sh, or remove -Sm for the page cache";
                return Err(unsupported(&flag.word.place, "`-Sm` maps memory", remedy));
            }
            _ => {
                return Err(flag.refused(
                    "DiskSPD does not know the option of -S; only DiskSPD for Linux has -Sd",
                    "write -Sh, -Su, -Suw, -Sw or -Sb",
                ));
            }
        };
        if (mode.is_some() && set.direct.is_some()) || (through && set.write_through) {
            let tool = format!("DiskSPD says `-S{letter} conflicts with earlier specification`");
            return Err(flag.refused(&tool, "write -Sh, -Su, -Suw, -Sw or -Sb once"));
        }
        set.direct = set.direct.or(mode);
        set.write_through |= through;
    }
    Ok(())
}

/// `-Z` and `-Zr`: zeroes, parts of a random buffer, or new bytes in every write.
pub(crate) fn buffer(draft: &mut Draft, flag: &Flag<'_>, findings: &mut Findings) -> Result<(), Fault> {
    let block = draft.target.block;
    if flag.rest.is_empty() {
        draft.target.buffer = if flag.name == "-Zr" { Buffer::Random } else { Buffer::Zeroes };
        return Ok(());
    }
    if flag.name == "-Zr" {
        return Err(flag.refused("DiskSPD rejects the option", "write -Zr alone"));
    }
    let (length, file) = flag.rest.split_once(',').map_or((flag.rest, None), |(one, two)| (one, Some(two)));
    let length = Flag { rest: length, ..*flag }.size(block)?;
    if length < block {
        let tool = "DiskSPD requires a buffer of at least the block size";
        return Err(flag.refused(tool, format!("write -Z{block} or more")));
    }
    if file.is_some() {
        let text = "the lab fills the buffer with random bytes, not from the file";
        findings.note(NoteKind::Changed, &flag.word.place, "-Z", text);
    }
    draft.target.buffer = Buffer::Window(length);
    Ok(())
}

/// `-rdpct` and `-rdabs`: `ios/length:ios/length`; what is left of the I/Os goes to what is left of the target.
pub(crate) fn zones(draft: &mut Draft, flag: &Flag<'_>, _: &mut Findings) -> Result<(), Fault> {
    let percent = |text: &str| text.parse::<u64>().ok().filter(|percent| *percent <= 100);
    let zone = |part: &str| {
        let (ios, length) = part.split_once('/')?;
        let length = match flag.name {
            "-rdpct" => Extent::Percent(percent(length)? as f64),
            _ => Extent::Bytes(Flag { rest: length, ..*flag }.size(draft.target.block).ok()?),
        };
        Some(Zone { ios: percent(ios)? as f64, length })
    };
    let Some(zones) = flag.rest.split(':').map(zone).collect::<Option<Vec<Zone>>>() else {
        return Err(flag.refused("DiskSPD rejects the distribution", "write io%/size pairs: -rdpct95/5:4/10"));
    };
    draft.target.zones =
        super::convert::closed(zones).map_err(|tool| flag.refused(tool, "write shares of at most 100 %"))?;
    Ok(())
}

/// Flags that stand more than once.
fn check_repeats(flags: &[Flag<'_>], findings: &mut Findings) {
    // Hints of `-f` go together with its size.
    let is_hint =
        |flag: &Flag<'_>| flag.name == "-f" && flag.rest.chars().all(|letter| letter.is_ascii_alphabetic());
    // `-r` and `-rs` go together.
    let kind = |flag: &Flag<'_>| match flag.letter() {
        's' => "-s",
        'Z' => "-Z",
        _ if flag.name.starts_with("-rd") => "-rd",
        _ => flag.name,
    };
    for (index, flag) in flags.iter().enumerate() {
        let repeats = |earlier: &Flag<'_>| kind(earlier) == kind(flag) && !is_hint(earlier);
        if is_hint(flag) || "aeyvS".contains(flag.letter()) || !flags[..index].iter().any(repeats) {
            continue;
        }
        if "rsXZBf".contains(flag.letter()) {
            findings.fault(flag.refused("DiskSPD allows the option once", "remove one of them"));
        } else {
            let text = format!("`{}` repeats an option: DiskSPD takes the last", flag.word.text);
            findings.note(NoteKind::Trap, &flag.word.place, flag.name, text);
        }
    }
}

/// Flags that exclude others.
const EXCLUDED: [(&str, &[&str]); 7] = [
    ("-n", &["-a"]),
    ("-F", &["-t"]),
    ("-g", &["-x"]),
    ("-O", &["-g", "-j", "-p"]),
    ("-r", &["-T", "-s", "-si", "-p"]),
    ("-rs", &["-T", "-s", "-si", "-p"]),
    ("-si", &["-T", "-p"]),
];

/// Flags that exclude each other, or need each other.
fn check_pairs(flags: &[Flag<'_>], draft: &Draft, findings: &mut Findings) {
    let find = |name: &str| flags.iter().find(|flag| flag.name == name);
    let mut refuse = |flag: &Flag<'_>, tool: &str, remedy: &str| findings.fault(flag.refused(tool, remedy));
    for (one, others) in EXCLUDED.into_iter().filter(|(one, _)| find(one).is_some()) {
        for flag in others.iter().filter_map(|other| find(other)) {
            refuse(flag, &format!("DiskSPD rejects it together with {one}"), "remove one of them");
        }
    }
    for (one, other, remedy) in [
        ("-i", "-j", "add -j<milliseconds>"),
        ("-j", "-i", "add -i<I/Os>"),
        ("-O", "-F", "add -F<threads>, or write -o"),
    ] {
        if let (Some(flag), None) = (find(one), find(other)) {
            refuse(flag, &format!("DiskSPD expects {other} with it"), remedy);
        }
    }
    let is_random = find("-r").or(find("-rs")).is_some();
    for flag in ["-rdpct", "-rdabs"].into_iter().filter_map(find).filter(|_| !is_random) {
        refuse(flag, "DiskSPD rejects a distribution of sequential I/O", "add -r");
    }
    if let Some(flag) = find("-T").filter(|_| find("-F").is_none() && draft.target.threads == 1) {
        refuse(flag, "DiskSPD rejects it with one thread", "add -t<threads>");
    }
}

/// A profile with what the command line overrides.
fn with_profile(
    name: &str,
    draft: &Draft,
    flags: &[Flag<'_>],
    paths: &[&Word],
    command: &Command,
    options: &Options<'_>,
    findings: &mut Findings,
) -> Vec<Span> {
    for flag in flags.iter().filter(|flag| !"XWdCRvz".contains(flag.letter())) {
        let tool = "DiskSPD allows only -W, -d, -C, -R, -v and -z beside -X";
        findings.fault(flag.refused(tool, "put the option into the profile"));
    }
    let text = match (options.include)(name) {
        Ok(text) => text,
        Err(reason) => {
            findings.fault(refused(
                &command.place,
                format!("the profile {name} cannot be read: {reason}"),
                "DiskSPD stops",
                "write the path of the profile behind -X, without a blank",
            ));
            return Vec::new();
        }
    };
    let variables: Vec<(String, String)> = (paths.iter().enumerate())
        .map(|(index, path)| ((index + 1).to_string(), path.text.clone()))
        .collect();
    let inner = Options {
        variables: if variables.is_empty() { options.variables.clone() } else { variables },
        additions: Vec::new(),
        ..*options
    };
    let given = |row: &&Overridable| flags.iter().any(|flag| flag.name == row.0);
    let overrides = Overrides { rows: OVERRIDABLE.iter().filter(given).collect(), span: draft.span.clone() };
    read_with(&Source::new(name, text), &inner, &overrides, findings)
}
