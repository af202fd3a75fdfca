//! Command lines of DiskSPD: flags in single words, then targets.

use super::keys::FLAGS;
use super::settings::{Access, Buffer, Cache, Span, Target, Throughput};
use super::size;
use super::words::{Command, Word};
use crate::error::Fault;
use crate::findings::{Findings, malformed, refused, unsupported};
use crate::keys::{Key, Treatment};
use crate::limits;
use crate::source::{Options, Source};
use plan::{Extent, NoteKind, Zone};

/// A flag with what follows it in its word.
struct Flag<'a> {
    key: &'static Key,
    rest: &'a str,
    word: &'a Word,
}

/// What is gathered before it can be checked as a whole.
struct Reading {
    span: Span,
    target: Target,
    interlocked: bool,
    random: bool,
    random_percent: Option<u64>,
    profile: Option<String>,
    cache: CacheSet,
}

/// What `-S` has set so far.
#[derive(Debug, Clone, Copy, Default)]
struct CacheSet {
    direct: Option<bool>,
    write_through: bool,
}

impl CacheSet {
    fn applied(self) -> Cache {
        Cache { direct: self.direct.unwrap_or(false), write_through: self.write_through }
    }
}

/// The time spans of a command line: one, or those of its profile.
pub(crate) fn read(command: &Command, options: &Options<'_>, findings: &mut Findings) -> Vec<Span> {
    let (flags, paths) = parted(command, findings);
    let mut reading = Reading {
        span: Span::new(command.place.clone()),
        target: Target::new("", command.place.clone()),
        interlocked: false,
        random: false,
        random_percent: None,
        profile: None,
        cache: CacheSet::default(),
    };
    // Sizes may be given in blocks, so the block comes first wherever it stands.
    for flag in flags.iter().filter(|flag| flag.key.name == "-b") {
        let found = size::block(flag.rest, &flag.word.text, &flag.word.place);
        reading.target.block = findings.take(found).unwrap_or(reading.target.block);
    }
    for flag in &flags {
        if let Err(fault) = reading.apply(flag, findings) {
            findings.fault(fault);
        }
    }
    check_pairs(&flags, &reading, findings);
    if let Some(profile) = reading.profile.clone() {
        return with_profile(&profile, &reading, &flags, &paths, command, options, findings);
    }
    reading.finish(&paths, command, findings);
    vec![reading.span]
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
        let found =
            FLAGS.iter().filter(|key| rest.starts_with(&key.name[1..])).max_by_key(|key| key.name.len());
        let Some(key) = found else {
            findings.fault(refused(
                &word.place,
                format!("the option `{text}` is unknown"),
                "DiskSPD prints its usage",
                "take it out; options are single words such as -b8K, and their letters' case counts",
            ));
            continue;
        };
        if flags.len() == limits::FLAGS_MAX {
            findings.fault(malformed(
                &word.place,
                format!("the command line has more than {} options", limits::FLAGS_MAX),
                "split it",
            ));
            return (flags, paths);
        }
        flags.push(Flag { key, rest: &rest[key.name.len() - 1..], word });
    }
    (flags, paths)
}

impl Flag<'_> {
    fn letter(&self) -> char {
        self.key.name.chars().nth(1).unwrap_or('?')
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
                "DiskSPD says that the value is invalid",
                format!("write {}<number>, {least} to {most}{separate}", self.key.name),
            ));
        };
        if digits < self.rest.len() {
            let text = format!("DiskSPD reads {number} and passes over `{}`", &self.rest[digits..]);
            findings.note(NoteKind::Trap, &self.word.place, self.key.name, text);
        }
        Ok(number)
    }
}

const SECONDS: u64 = 10 * 365 * 86_400;
const COUNT: u64 = 1 << 20;

impl Reading {
    fn apply(&mut self, flag: &Flag<'_>, findings: &mut Findings) -> Result<(), Fault> {
        let block = self.target.block;
        match flag.key.treatment {
            Treatment::Noted => {
                findings.note(NoteKind::NotCarried, &flag.word.place, flag.key.name, flag.key.sentence);
                return Ok(());
            }
            Treatment::Refused => {
                return Err(unsupported(
                    &flag.word.place,
                    format!("`{}`", flag.word.text),
                    flag.key.sentence,
                ));
            }
            Treatment::Carried => {}
        }
        let target = &mut self.target;
        match flag.key.name {
            "-b" => {}
            "-B" => (target.base, target.length) = base(flag, block)?,
            "-f" => return self.apply_end(flag, findings),
            "-c" => target.create = Some(flag.size(block)?),
            "-r" => {
                self.random = true;
                if !flag.rest.is_empty() {
                    target.step = Some(flag.size(block)?);
                }
            }
            "-rs" => {
                self.random = true;
                self.random_percent = Some(flag.number(1, 100, findings)?);
            }
            "-rdpct" => target.zones = zones(flag, percent)?,
            "-rdabs" => target.zones = zones(flag, |text| bytes(text, block, flag))?,
            "-s" | "-si" => {
                self.interlocked = flag.key.name == "-si";
                if !flag.rest.is_empty() {
                    target.step = Some(flag.size(block)?);
                }
            }
            "-T" => target.thread_stride = flag.size(block)?,
            "-S" => {
                cache(flag, &mut self.cache, findings)?;
                self.target.cache = self.cache.applied();
            }
            "-h" => {
                let text = "-h is an old spelling of -Sh";
                findings.note(NoteKind::Default, &flag.word.place, "-h", text);
                cache(&Flag { key: flag.key, rest: "h", word: flag.word }, &mut self.cache, findings)?;
                self.target.cache = self.cache.applied();
            }
            "-Zr" if flag.rest.is_empty() => target.buffer = Buffer::Random,
            "-Zr" => return Err(flag.refused("DiskSPD says that it is invalid", "write -Zr alone")),
            "-Z" => target.buffer = buffer(flag, block, findings)?,
            "-X" => self.profile = Some(flag.rest.to_owned()),
            _ => return self.apply_number(flag, findings),
        }
        Ok(())
    }

    /// `-f`: a size, or hints for opening.
    fn apply_end(&mut self, flag: &Flag<'_>, findings: &mut Findings) -> Result<(), Fault> {
        if flag.rest.starts_with(|letter: char| letter.is_ascii_digit()) {
            self.target.stop = Some(flag.size(self.target.block)?);
            return Ok(());
        }
        if flag.rest.is_empty() || !flag.rest.chars().all(|letter| "rst".contains(letter)) {
            return Err(flag.refused("DiskSPD says that it is invalid", "write -f<size>, -fr, -fs or -ft"));
        }
        let text = "hints for opening a file have no effect without the page cache";
        findings.note(NoteKind::NotCarried, &flag.word.place, "-f", text);
        Ok(())
    }

    fn apply_number(&mut self, flag: &Flag<'_>, findings: &mut Findings) -> Result<(), Fault> {
        let (span, target) = (&mut self.span, &mut self.target);
        match flag.key.name {
            "-d" => span.duration = flag.number(1, SECONDS, findings)?,
            "-W" => span.warmup = flag.number(0, SECONDS, findings)?,
            "-C" => span.cooldown = flag.number(0, SECONDS, findings)?,
            "-o" => target.depth = flag.number(1, COUNT, findings)?,
            "-t" => target.threads = flag.number(1, COUNT, findings)?,
            "-F" => span.threads = Some(flag.number(1, COUNT, findings)?),
            "-O" => span.depth = Some(flag.number(1, COUNT, findings)?),
            "-w" => target.writes = flag.number(0, 100, findings)?,
            "-i" => target.burst = Some(flag.number(1, COUNT, findings)?),
            "-j" => target.think_ms = Some(flag.number(1, SECONDS, findings)?),
            "-g" => {
                let iops = flag.rest.ends_with('i');
                let digits = Flag { key: flag.key, rest: flag.rest.trim_end_matches('i'), word: flag.word };
                let number = digits.number(1, u64::MAX >> 20, findings)?;
                target.throughput = Some(if iops {
                    Throughput::Iops(number)
                } else {
                    Throughput::BytesPerMillisecond(number)
                });
            }
            "-z" => {
                span.seed = match flag.rest {
                    "" => None,
                    _ => Some(flag.number(0, u64::MAX, findings)?),
                }
            }
            _ => return Err(unsupported(&flag.word.place, format!("`{}`", flag.word.text), "take it out")),
        }
        Ok(())
    }

    /// What the flags come to, for each target.
    fn finish(&mut self, paths: &[&Word], command: &Command, findings: &mut Findings) {
        self.target.access = match (self.random, self.random_percent) {
            (true, percent) => Access::Random(percent.unwrap_or(100)),
            (false, _) if self.interlocked => Access::Interlocked,
            (false, _) => Access::Sequential,
        };
        if paths.is_empty() {
            findings.fault(refused(
                &command.place,
                "the command line names no target",
                "DiskSPD says that at least one is needed",
                "add a file or a device at the end",
            ));
        }
        for path in paths {
            if path.text.starts_with('*') {
                findings.fault(refused(
                    &path.place,
                    format!("`{}` stands for a target of a profile", path.text),
                    "DiskSPD takes it in profiles alone",
                    "name the target",
                ));
            }
            if looks_like_value(&path.text) {
                let text = format!("`{}` is a target: a flag's value stands in the same word", path.text);
                findings.note(NoteKind::Trap, &path.place, "target", text);
            }
            self.span.targets.push(Target {
                path: path.text.clone(),
                place: path.place.clone(),
                ..self.target.clone()
            });
        }
        super::convert::check(&self.span, findings);
    }
}

/// `base:length`.
fn base(flag: &Flag<'_>, block: u64) -> Result<(u64, Option<u64>), Fault> {
    let (base, length) =
        flag.rest.split_once(':').map_or((flag.rest, None), |(base, length)| (base, Some(length)));
    let read = |text: &str| size::size(text, Some(block), &flag.word.text, &flag.word.place);
    Ok((read(base)?, length.map(read).transpose()?))
}

fn percent(text: &str) -> Option<Extent> {
    let percent = text.parse::<u64>().ok().filter(|percent| *percent <= 100)?;
    Some(Extent::Percent(percent as f64))
}

fn bytes(text: &str, block: u64, flag: &Flag<'_>) -> Option<Extent> {
    size::size(text, Some(block), "-rdabs", &flag.word.place).ok().map(Extent::Bytes)
}

/// Whether a target looks like the value of a flag that a blank was put before: `8K`, `60`.
fn looks_like_value(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0
        && matches!(&text[digits..], "" | "k" | "K" | "m" | "M" | "g" | "G" | "t" | "T" | "KB" | "MB" | "GB")
}

/// `-S`: several of them add up, and each property is set once.
fn cache(flag: &Flag<'_>, set: &mut CacheSet, findings: &mut Findings) -> Result<(), Fault> {
    let letters = if flag.rest.is_empty() { "u" } else { flag.rest };
    let conflict = |letter: char| {
        let tool = format!("DiskSPD says `-S{letter} conflicts with earlier specification`");
        flag.refused(&tool, "write -Sh, -Su, -Suw, -Sw or -Sb once")
    };
    for letter in letters.chars() {
        let (mode, through) = match letter {
            'b' => (Some(false), false),
            'u' => (Some(true), false),
            'w' => (None, true),
            'h' => (Some(true), true),
            'r' => {
                let text = "the cache of a remote file on this machine; Linux has no such switch";
                findings.note(NoteKind::NotCarried, &flag.word.place, "-Sr", text);
                (Some(false), false)
            }
            'm' => {
                return Err(unsupported(
                    &flag.word.place,
                    "`-Sm` maps memory",
                    "write -Sh, or leave it out for the page cache",
                ));
            }
            _ => {
                return Err(flag.refused(
                    "DiskSPD says that the option of -S is unrecognized; -Sd is of DiskSPD for Linux alone",
                    "write -Sh, -Su, -Suw, -Sw or -Sb",
                ));
            }
        };
        if (mode.is_some() && set.direct.is_some()) || (through && set.write_through) {
            return Err(conflict(letter));
        }
        set.direct = set.direct.or(mode);
        set.write_through |= through;
    }
    Ok(())
}

fn buffer(flag: &Flag<'_>, block: u64, findings: &mut Findings) -> Result<Buffer, Fault> {
    if flag.rest.is_empty() {
        return Ok(Buffer::Zeroes);
    }
    let (length, file) = flag.rest.split_once(',').map_or((flag.rest, None), |(one, two)| (one, Some(two)));
    let length = size::size(length, Some(block), &flag.word.text, &flag.word.place)?;
    if length < block {
        return Err(flag.refused(
            "DiskSPD says that the buffer must be at least as large as the block",
            format!("write -Z{block} or more"),
        ));
    }
    if file.is_some() {
        let text = "the buffer is filled with random bytes in place of the file's";
        findings.note(NoteKind::Changed, &flag.word.place, "-Z", text);
    }
    Ok(Buffer::Window(length))
}

/// `ios/length:ios/length`; what is left of the I/Os goes to what is left of the target.
fn zones(flag: &Flag<'_>, length: impl Fn(&str) -> Option<Extent>) -> Result<Vec<Zone>, Fault> {
    let mut zones = Vec::new();
    for part in flag.rest.split(':') {
        let found = part.split_once('/').and_then(|(ios, size)| {
            let ios = ios.parse::<u64>().ok().filter(|ios| *ios <= 100)?;
            Some(Zone { ios: ios as f64, length: length(size)? })
        });
        let Some(zone) = found else {
            return Err(flag.refused(
                "DiskSPD says that the distribution is invalid",
                "write io%/size pairs: -rdpct95/5:4/10",
            ));
        };
        zones.push(zone);
    }
    super::convert::closed(zones).map_err(|tool| flag.refused(tool, "write shares of at most 100 %"))
}

/// Flags that exclude each other, or need each other.
fn check_pairs(flags: &[Flag<'_>], reading: &Reading, findings: &mut Findings) {
    let find = |name: &str| flags.iter().find(|flag| flag.key.name == name);
    for (index, flag) in flags.iter().enumerate() {
        let repeated = flags[..index].iter().find(|earlier| {
            // `-r` and `-rs` go together, and so do a size and hints of `-f`.
            let same = earlier.key.name == flag.key.name
                || matches!((earlier.letter(), flag.letter()), ('s', 's') | ('Z', 'Z'))
                || (earlier.key.name.starts_with("-rd") && flag.key.name.starts_with("-rd"));
            let hints =
                flag.key.name == "-f" && earlier.rest.chars().all(|letter| letter.is_ascii_alphabetic());
            let hint = flag.key.name == "-f" && flag.rest.chars().all(|letter| letter.is_ascii_alphabetic());
            same && !hints && !hint && !matches!(flag.letter(), 'a' | 'e' | 'y' | 'v')
        });
        if repeated.is_none() || flag.letter() == 'S' {
            continue;
        }
        if matches!(flag.letter(), 'r' | 's' | 'X' | 'Z' | 'B' | 'f') {
            let tool = "DiskSPD says that it is specified multiple times";
            findings.fault(flag.refused(tool, "take one of them out"));
        } else {
            let text = format!("`{}` stands beside another one: DiskSPD takes the last", flag.word.text);
            findings.note(NoteKind::Trap, &flag.word.place, flag.key.name, text);
        }
    }
    let mut refuse = |flag: &Flag<'_>, tool: &str, remedy: &str| findings.fault(flag.refused(tool, remedy));
    let excluded = [
        ("-n", "-a"),
        ("-F", "-t"),
        ("-g", "-x"),
        ("-O", "-g"),
        ("-O", "-j"),
        ("-O", "-p"),
        ("-r", "-T"),
        ("-r", "-s"),
        ("-r", "-si"),
        ("-r", "-p"),
        ("-rs", "-T"),
        ("-rs", "-s"),
        ("-rs", "-si"),
        ("-rs", "-p"),
        ("-si", "-T"),
        ("-si", "-p"),
    ];
    for (one, other) in excluded {
        if let (Some(_), Some(flag)) = (find(one), find(other)) {
            refuse(flag, &format!("DiskSPD refuses it together with {one}"), "take one of them out");
        }
    }
    for (one, other) in [("-i", "-j"), ("-j", "-i")] {
        if let (Some(flag), None) = (find(one), find(other)) {
            refuse(flag, &format!("DiskSPD wants {other} with it"), &format!("add {other}<number>"));
        }
    }
    if let (Some(flag), None) = (find("-O"), find("-F")) {
        refuse(flag, "DiskSPD wants -F with it", "add -F<threads>, or write -o");
    }
    for name in ["-rdpct", "-rdabs"] {
        if let (Some(flag), false) = (find(name), reading.random) {
            refuse(flag, "DiskSPD refuses a distribution of sequential I/O", "add -r");
        }
    }
    if let Some(flag) = find("-T")
        && find("-F").is_none()
        && reading.target.threads == 1
    {
        refuse(flag, "DiskSPD refuses it with one thread", "add -t<threads>");
    }
}

/// A profile with what the command line overrides.
fn with_profile(
    name: &str,
    reading: &Reading,
    flags: &[Flag<'_>],
    paths: &[&Word],
    command: &Command,
    options: &Options<'_>,
    findings: &mut Findings,
) -> Vec<Span> {
    for flag in flags.iter().filter(|flag| !"XWdCRvz".contains(flag.letter())) {
        findings.fault(
            flag.refused("DiskSPD takes only -W, -d, -C, -R, -v and -z beside -X", "put it into the profile"),
        );
    }
    let text = match (options.include)(name) {
        Ok(text) => text,
        Err(reason) => {
            findings.fault(refused(
                &command.place,
                format!("the profile {name} cannot be read: {reason}"),
                "DiskSPD stops",
                "give the path of the profile behind -X, without a blank",
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
    let given = |name: &str| flags.iter().any(|flag| flag.key.name == name);
    let overrides = super::xml::Overrides {
        duration: given("-d").then_some(reading.span.duration),
        warmup: given("-W").then_some(reading.span.warmup),
        cooldown: given("-C").then_some(reading.span.cooldown),
        seed: given("-z").then_some(reading.span.seed),
    };
    super::xml::read_with(&Source::new(name, text), &inner, &overrides, findings)
}
