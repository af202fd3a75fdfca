//! The text of `vscsiStats`, read block by block: with `-c`, and as it is printed for people, line by line turned into the form of
//! `-c` first.

use iostats::{Kind, Operations};
use serde::Serialize;
use std::borrow::Cow;

use crate::error::{ReadError, quoted};

/// Dumps in one text; a day at one a second.
const DUMPS_MAX: usize = 86_400;
/// Disks in one dump.
const DISKS_MAX: usize = 1_024;
/// An interarrival time beyond this is a counter that wrapped (a day; real captures hold 5.8e11 us).
const INTERARRIVAL_US_MAX: i64 = 86_400_000_000;

/// One output of `vscsiStats -p all -c`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Dump {
    /// In the order in which they stand.
    pub disks: Vec<DumpDisk>,
    /// Titles of histograms that are unknown and left out.
    pub unknown: Vec<String>,
}

/// One disk of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DumpDisk {
    /// The number of its virtual machine.
    pub world: u64,
    /// The number of the disk; it changes when the machine is started anew.
    pub handle: u64,
    /// What stands in brackets: "scsi0:0"; empty if nothing does.
    pub name: String,
    /// Each kind and operations at most once.
    pub histograms: Vec<DumpHistogram>,
}

/// One histogram of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DumpHistogram {
    /// What it counts.
    #[serde(with = "crate::named::kind")]
    pub kind: Kind,
    /// Of which I/Os.
    #[serde(with = "crate::named::operations")]
    pub operations: Operations,
    /// The smallest value since the start; none if there is none or a counter wrapped.
    pub min: Option<i64>,
    /// The largest; as for `min`.
    pub max: Option<i64>,
    /// The mean, cut to a whole number; as for `min`.
    pub mean: Option<i64>,
    /// Number of values; the sum of `counts`.
    pub count: u64,
    /// One for each limit of the kind, and one for what is above the last.
    pub counts: Vec<u64>,
}

impl DumpDisk {
    /// One histogram, if it is there.
    pub fn histogram(&self, kind: Kind, operations: Operations) -> Option<&DumpHistogram> {
        self.histograms.iter().find(|one| one.kind == kind && one.operations == operations)
    }

    /// The same disk in another dump: its machine and its place in it, whatever its handle.
    pub fn is_same(&self, other: &DumpDisk) -> bool {
        self.world == other.world
            && self.name == other.name
            && (!self.name.is_empty() || self.handle == other.handle)
    }
}

/// Reads a text with dumps one after another: where a histogram of a disk comes again, the next dump begins.
///
/// # Errors
/// When the text is not what `vscsiStats -c` prints: a block that is cut off, other bucket limits, or counts whose sum is not
/// what the block says.
pub fn read_dumps(file: &str, text: &str) -> Result<Vec<Dump>, ReadError> {
    let text = as_table(text);
    let mut lines = text.lines().enumerate().map(|(index, line)| (index as u64 + 1, clean(line))).peekable();
    let mut dumps: Vec<Dump> = vec![Dump::default()];
    let mut any = false;
    while let Some((number, line)) = lines.next() {
        let Some(heading) = line.strip_prefix("Histogram: ") else {
            // A date, a prompt, an empty line between dumps: nothing that counts.
            continue;
        };
        let heading = Heading::read(file, number, heading)?;
        let mut block = Vec::new();
        while let Some((number, line)) = lines.next_if(|(_, line)| !line.starts_with("Histogram:")) {
            if !line.is_empty() {
                block.push((number, line));
            }
        }
        let place = heading.disk_of(dumps.last().expect("there is one"));
        let Some((kind, operations)) = titled(heading.title) else {
            let unknown = &mut dumps.last_mut().expect("there is one").unknown;
            if !unknown.iter().any(|title| title == heading.title) && unknown.len() < DISKS_MAX {
                unknown.push(heading.title.to_owned());
            }
            continue;
        };
        let histogram = read_block(file, number, (kind, operations), &block)?;
        any = true;
        let dump = dumps.last_mut().expect("there is one");
        match place {
            Some(place) if dump.disks[place].histogram(kind, operations).is_some() => {
                if dumps.len() >= DUMPS_MAX {
                    return Err(at(file, number, format!("more than {DUMPS_MAX} dumps"), "split the file"));
                }
                dumps.push(Dump { disks: vec![heading.disk(histogram)], unknown: Vec::new() });
            }
            Some(place) => dump.disks[place].histograms.push(histogram),
            None if dump.disks.len() >= DISKS_MAX => {
                return Err(at(
                    file,
                    number,
                    format!("more than {DISKS_MAX} disks"),
                    "dump fewer virtual machines at a time",
                ));
            }
            None => dump.disks.push(heading.disk(histogram)),
        }
    }
    if !any {
        return Err(at(
            file,
            1,
            "no block \"Histogram: …\"".to_owned(),
            "give what vscsiStats -p all printed, with or without -c",
        ));
    }
    Ok(dumps)
}

/// A text that was printed without `-c`, line by line as `-c` prints it; any other as it is.
fn as_table(text: &str) -> Cow<'_, str> {
    if !text.lines().any(|line| line.contains("worldGroupID :")) {
        return Cow::Borrowed(text);
    }
    let mut table = String::with_capacity(text.len());
    let mut follows_count = false;
    for line in text.lines() {
        let line = clean(line);
        let row = heading_as_row(line).or_else(|| figure_as_row(line)).or_else(|| bucket_as_row(line));
        table += match (line, &row) {
            ("{", _) if follows_count => "Frequency,Histogram Bucket Limit",
            ("{" | "}", _) => "",
            (_, Some(row)) => row,
            (line, None) => line,
        };
        table.push('\n');
        follows_count = row.is_some_and(|row| row.starts_with("count,"));
    }
    Cow::Owned(table)
}

/// `Histogram: <title> for virtual machine worldGroupID : 7, virtual disk handleID : 8194 (scsi0:1) {`.
fn heading_as_row(line: &str) -> Option<String> {
    let (title, rest) = line.split_once(" for virtual machine worldGroupID :")?;
    let (world, rest) = rest.split_once(", virtual disk handleID :")?;
    let disk = rest.trim_end_matches('{').trim();
    Some(format!("{title},virtual machine worldGroupID,{},virtual disk handleID,{disk}", world.trim()))
}

/// `min : 512`.
fn figure_as_row(line: &str) -> Option<String> {
    let (name, value) = line.split_once(':')?;
    let name = ["min", "max", "mean", "count"].into_iter().find(|known| *known == name.trim())?;
    Some(format!("{name},{}", value.trim()))
}

/// `42 (<= 512)`, and `3 (> 524288)`.
fn bucket_as_row(line: &str) -> Option<String> {
    let (count, limit) = line.strip_suffix(')')?.split_once('(')?;
    let limit = limit.trim_start_matches(['<', '=', '>']).trim();
    Some(format!("{},{limit}", count.trim()))
}

/// Without what terminals and spreadsheets add.
fn clean(line: &str) -> &str {
    line.trim_matches(|letter: char| {
        letter.is_control() || letter.is_whitespace() || "\"\u{feff}".contains(letter)
    })
}

fn at(file: &str, line: u64, found: String, way_out: &str) -> ReadError {
    ReadError::Text {
        file: file.to_owned(),
        line,
        column: 1,
        what: "output of vscsiStats",
        found,
        way_out: way_out.to_owned(),
    }
}

/// `title,virtual machine worldGroupID,N,virtual disk handleID,N (name)`.
struct Heading<'a> {
    title: &'a str,
    world: u64,
    handle: u64,
    name: &'a str,
}

impl<'a> Heading<'a> {
    fn read(file: &str, line: u64, text: &'a str) -> Result<Heading<'a>, ReadError> {
        let parts = || -> Option<Heading<'a>> {
            let (title, rest) = text.split_once(",virtual machine worldGroupID,")?;
            let (world, rest) = rest.split_once(",virtual disk handleID,")?;
            let (handle, name) = rest.split_once(' ').unwrap_or((rest, ""));
            let name = name.trim().trim_start_matches('(').trim_end_matches(')');
            Some(Heading {
                title,
                world: world.trim().parse().ok()?,
                handle: handle.trim().parse().ok()?,
                name,
            })
        };
        let shape = "a block begins with Histogram: <title>,virtual machine worldGroupID,<number>,virtual disk handleID,\
                     <number> (<name>)";
        parts().ok_or_else(|| at(file, line, quoted(text), shape))
    }

    fn disk(&self, histogram: DumpHistogram) -> DumpDisk {
        let name = self.name.chars().take(128).collect();
        DumpDisk { world: self.world, handle: self.handle, name, histograms: vec![histogram] }
    }

    fn disk_of(&self, dump: &Dump) -> Option<usize> {
        dump.disks.iter().position(|disk| disk.world == self.world && disk.handle == self.handle)
    }
}

fn read_block(
    file: &str,
    heading: u64,
    (kind, operations): (Kind, Operations),
    block: &[(u64, &str)],
) -> Result<DumpHistogram, ReadError> {
    let cut_off =
        || at(file, heading, "a block that is cut off".to_owned(), "dump again and keep the whole output");
    let figure = |index: usize, name: &str| -> Result<i64, ReadError> {
        let &(line, text) = block.get(index).ok_or_else(cut_off)?;
        let value = text.split_once(',').filter(|(found, _)| found.trim() == name);
        let value = value.and_then(|(_, value)| value.trim().parse().ok());
        value.ok_or_else(|| at(file, line, quoted(text), &format!("{name},<number> must stand here")))
    };
    let (min, max, mean) = (figure(0, "min")?, figure(1, "max")?, figure(2, "mean")?);
    let count = u64::try_from(figure(3, "count")?).map_err(|_| cut_off())?;
    let &(line, text) = block.get(4).ok_or_else(cut_off)?;
    if !text.starts_with("Frequency,") {
        return Err(at(file, line, quoted(text), "Frequency,Histogram Bucket Limit must stand here"));
    }
    let limits = kind.limits();
    let last = *limits.last().expect("every kind has limits");
    let mut counts = Vec::with_capacity(limits.len() + 1);
    for (index, expected) in limits.iter().copied().chain([last]).enumerate() {
        let &(line, text) = block.get(5 + index).ok_or_else(cut_off)?;
        let pair = text.split_once(',').and_then(|(count, limit)| {
            Some((count.trim().parse::<u64>().ok()?, limit.trim().parse::<i64>().ok()?))
        });
        match pair {
            Some((count, limit)) if limit == i64::from(expected) => counts.push(count),
            _ => {
                let way_out =
                    format!("<count>,{expected} must stand here: the buckets are those of ESXi 5 and later");
                return Err(at(file, line, quoted(text), &way_out));
            }
        }
    }
    let sum = counts.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
    if sum != count {
        let found = format!("buckets with {sum} values in a block of {count}");
        return Err(at(
            file,
            heading,
            found,
            "the dump is damaged or was taken during a change: leave it out",
        ));
    }
    let wrapped = kind == Kind::Interarrival && max > INTERARRIVAL_US_MAX;
    let known = |value| (count > 0 && !wrapped).then_some(value);
    Ok(DumpHistogram { kind, operations, min: known(min), max: known(max), mean: known(mean), count, counts })
}

/// The kind and operations of a title, as `vscsiStats` prints it.
fn titled(title: &str) -> Option<(Kind, Operations)> {
    Kind::ALL.into_iter().find_map(|kind| {
        let operations =
            Operations::ALL.into_iter().find(|&operations| kind.title(operations) == title.trim())?;
        Some((kind, operations))
    })
}
