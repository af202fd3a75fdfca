//! DiskSPD's XML (`-Rxml`): `Results/{Profile, TimeSpan*}`.

use crate::error::{Kind, Origin, ReadError};
use crate::model::{Direction, Figures, Interval, Job, Latencies, ResultSet, Run, Tool};
use crate::text;

use quick_xml::Reader;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesStart, Event};

/// DiskSPD nests seven deep.
const DEPTH_MAX: usize = 64;
/// Directions and how elements of each begin their names, within `Target`.
const DIRECTIONS: [(Direction, &str); 2] = [(Direction::Read, "Read"), (Direction::Write, "Write")];

/// True for XML with DiskSPD's root.
pub(crate) fn is_xml(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
        && text.contains("<Results>")
        && text.contains("<TimeSpan")
}

/// An element with its text and what is in it.
#[derive(Debug, Default)]
struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    fn first(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.first(name).and_then(|child| text::number(&child.text)).filter(|value| *value >= 0.0)
    }

    fn whole(&self, name: &str) -> Option<u64> {
        self.first(name)?.text.trim().parse().ok()
    }
}

/// Reads DiskSPD's XML.
pub(crate) fn read(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::DiskspdXml };
    let document = parse(&origin, text)?;
    let results = document.first("Results").ok_or_else(|| {
        origin.whole("no element Results", "give the output of -Rxml; a profile for -X is not a result")
    })?;
    let version = results.first("System").and_then(|of| of.first("Tool")).and_then(|of| of.first("Version"));
    let mut set = ResultSet::new(file, Tool::Diskspd, vec![]);
    set.version = version.map(|of| of.text.trim().to_owned());
    let profile: Vec<&Element> = results
        .first("Profile")
        .and_then(|profile| profile.first("TimeSpans"))
        .map(|all| all.all("TimeSpan").collect())
        .unwrap_or_default();
    for (index, timespan) in results.all("TimeSpan").enumerate() {
        let mut run = read_timespan(&origin, timespan)?;
        run.label = format!("timespan {}", index + 1);
        run.job = profile.get(index).map(|of| job(of)).unwrap_or_default();
        set.runs.push(run);
    }
    if set.runs.is_empty() {
        return Err(
            origin.whole("no element TimeSpan in Results", "the run did not end, or the file was cut off")
        );
    }
    Ok(set)
}

fn parse(origin: &Origin<'_>, text: &str) -> Result<Element, ReadError> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut open = vec![Element::default()];
    let line_at = |position: u64| {
        let end = usize::try_from(position).unwrap_or(usize::MAX).min(text.len());
        text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count() + 1
    };
    loop {
        let event = reader.read_event().map_err(|error| {
            origin.at(
                line_at(reader.error_position()),
                error.to_string(),
                "the XML is malformed here: the file is cut off or was edited",
            )
        })?;
        match event {
            Event::Start(of) => {
                if open.len() >= DEPTH_MAX {
                    let line = line_at(reader.buffer_position());
                    return Err(origin.at(
                        line,
                        format!("elements nested {DEPTH_MAX} deep"),
                        "give the output of DiskSPD's -Rxml",
                    ));
                }
                open.push(element(&of));
            }
            Event::Empty(of) => {
                if let Some(last) = open.last_mut() {
                    last.children.push(element(&of));
                }
            }
            Event::End(_) => close(&mut open),
            Event::Text(of) => {
                if let Some(last) = open.last_mut() {
                    last.text.push_str(&of);
                }
            }
            Event::Eof if open.len() > 1 => {
                let name = open.last().map(|of| of.name.clone()).unwrap_or_default();
                let line = line_at(text.len() as u64);
                return Err(origin.at(
                    line,
                    format!("the text ends within {name}"),
                    "the file is cut off: give the whole file",
                ));
            }
            Event::Eof => return Ok(open.swap_remove(0)),
            _ => {}
        }
    }
}

/// An element with its attributes as if they were elements in it: DiskSPD writes buckets of IOPS as attributes, and all else
/// as elements.
fn element(of: &BytesStart<'_>) -> Element {
    let attribute = |attribute: Attribute<'_>| Element {
        name: attribute.key.local_name().as_ref().to_owned(),
        text: attribute.value.into_owned(),
        children: Vec::new(),
    };
    let children = of.attributes().filter_map(Result::ok).map(attribute).collect();
    Element { name: of.local_name().as_ref().to_owned(), text: String::new(), children }
}

/// The innermost element is complete.
fn close(open: &mut Vec<Element>) {
    // The reader refuses ends without a beginning, so the root stays.
    if open.len() > 1
        && let Some(done) = open.pop()
        && let Some(parent) = open.last_mut()
    {
        parent.children.push(done);
    }
}

/// What the profile says of a timespan.
fn job(timespan: &Element) -> Job {
    let targets: Vec<Job> = timespan
        .first("Targets")
        .into_iter()
        .flat_map(|targets| targets.all("Target"))
        .map(|target| Job {
            block_bytes: target.whole("BlockSize").filter(|bytes| *bytes > 0),
            read_share: Some(1.0 - target.number("WriteRatio").unwrap_or(0.0).min(100.0) / 100.0),
            random_share: Some(random_share(target)),
            threads: target.whole("ThreadsPerFile").and_then(|threads| u32::try_from(threads).ok()),
            depth: target.whole("RequestCount").and_then(|depth| u32::try_from(depth).ok()),
            ..Job::default()
        })
        .collect();
    super::together(&targets)
}

fn random_share(target: &Element) -> f64 {
    if target.first("Random").is_none() {
        return 0.0;
    }
    target.number("RandomRatio").map_or(1.0, |percent| percent.min(100.0) / 100.0)
}

fn read_timespan(origin: &Origin<'_>, timespan: &Element) -> Result<Run, ReadError> {
    let seconds = timespan.number("TestTimeSeconds").filter(|seconds| *seconds > 0.0).ok_or_else(|| {
        origin.whole("a TimeSpan without TestTimeSeconds", "the run failed, or the file was edited")
    })?;
    let threads: Vec<&Element> = timespan.all("Thread").collect();
    let targets = || threads.iter().flat_map(|thread| thread.all("Target"));
    let sum = |name: &str| targets().filter_map(|target| target.whole(name)).fold(0u64, u64::saturating_add);
    let mut run = Run { seconds: Some(seconds), ..Run::default() };
    run.workers = u32::try_from(threads.len()).ok();
    run.workers_iops = threads
        .iter()
        .map(|thread| {
            thread.all("Target").filter_map(|of| of.whole("IOCount")).map(|n| n as f64).sum::<f64>() / seconds
        })
        .collect();
    let latency = timespan.first("Latency");
    for (direction, name) in DIRECTIONS {
        let ios = sum(&format!("{name}Count"));
        if ios == 0 {
            continue;
        }
        let bytes = sum(&format!("{name}Bytes"));
        let figures = Figures {
            ios: Some(ios),
            bytes: Some(bytes),
            iops: Some(ios as f64 / seconds),
            bytes_per_s: Some(bytes as f64 / seconds),
            latency_s: latency
                .and_then(|of| of.number(&format!("Average{name}Milliseconds")))
                .map(|ms| ms / 1e3),
            latencies: percentiles(latency, &format!("{name}Milliseconds")),
            ..Figures::default()
        };
        run.directions.insert(direction, figures);
    }
    let (ios, bytes) = (sum("IOCount"), sum("BytesCount"));
    let total = Figures {
        ios: Some(ios),
        bytes: Some(bytes),
        iops: Some(ios as f64 / seconds),
        bytes_per_s: Some(bytes as f64 / seconds),
        latency_s: latency.and_then(|of| of.number("AverageTotalMilliseconds")).map(|ms| ms / 1e3),
        latencies: percentiles(latency, "TotalMilliseconds"),
        ..Figures::default()
    };
    run.directions.insert(Direction::Total, total);
    run.intervals = intervals(timespan);
    Ok(run)
}

fn percentiles(latency: Option<&Element>, name: &str) -> Latencies {
    let list: Vec<(f64, f64)> = latency
        .into_iter()
        .flat_map(|of| of.all("Bucket"))
        .filter_map(|bucket| Some((bucket.number("Percentile")? / 100.0, bucket.number(name)? / 1e3)))
        .filter(|(share, _)| *share <= 1.0)
        .collect();
    if list.is_empty() { Latencies::None } else { Latencies::Percentiles(list) }
}

/// The buckets of `-D`: IOPS over time, each up to its time.
fn intervals(timespan: &Element) -> Vec<Interval> {
    let mut before = 0.0;
    let buckets = timespan.first("Iops").into_iter().flat_map(|of| of.all("Bucket"));
    buckets
        .filter_map(|bucket| {
            let to_s = bucket.number("SampleMillisecond")? / 1e3;
            let interval = Interval {
                from_s: before,
                to_s,
                direction: Direction::Total,
                iops: Some(bucket.number("Total")?),
                bytes_per_s: None,
                latency_s: None,
                histogram: None,
            };
            before = to_s;
            Some(interval)
        })
        .collect()
}
