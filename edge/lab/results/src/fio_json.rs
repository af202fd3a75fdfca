//! fio's JSON and JSON+: one document, or several glued together, with lines of text between them; of one host or several.
//!
//! With `--status-interval`, fio writes documents of the same run one after another, each cumulative: the last is the result,
//! and the differences between them are what the run did over time.

use serde_json::Value;
use statistics::Histogram;

use crate::error::{Kind, Origin, ReadError};
use crate::model::{Direction, Figures, Interval, Latencies, Note, ResultSet, Run, Tool};
use crate::pattern;

#[cfg(test)]
pub(crate) mod tests;

/// Documents of one text: 5-second intervals of a day.
const DOCUMENTS_MAX: usize = 20_000;
/// Engines that wait for each I/O: depth does not count for them.
const SYNCHRONOUS: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "splice",
    "cpuio",
    "libpmem",
    "dev-dax",
    "ftruncate",
    "falloc",
    "e4defrag",
    "filecreate",
    "filestat",
    "filedelete",
];
const DIRECTIONS: [(&str, Direction); 3] =
    [("read", Direction::Read), ("write", Direction::Write), ("trim", Direction::Trim)];

/// True for an engine that waits for each I/O, whatever the depth.
pub(crate) fn is_synchronous(engine: &str) -> bool {
    SYNCHRONOUS.contains(&engine)
}

/// True for a text with a line that opens a document of fio.
pub(crate) fn is_fio_json(text: &str) -> bool {
    begin(text).is_some() && (text.contains("\"fio version\"") || text.contains("\"client_stats\""))
}

/// Where the next line that opens a document begins.
fn begin(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start_matches('\u{feff}').trim_start();
        if trimmed.starts_with('{') {
            return Some(at + line.len() - trimmed.len());
        }
        at += line.len();
    }
    None
}

/// Reads all documents of a text.
pub(crate) fn read(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    read_valid(file, text).or_else(|error| {
        let repaired = repaired(text);
        let is_same = repaired == text;
        let read = if is_same { None } else { read_valid(file, &repaired).ok() };
        read.ok_or(error)
    })
}

/// JSON of what older programs wrote: backslashes of Windows paths as they are, and "nan" and "inf" for numbers. Lines stay where
/// they were.
fn repaired(text: &str) -> String {
    let mut repaired = String::with_capacity(text.len());
    let (mut is_quoted, mut rest) = (false, text);
    while let Some(at) = rest.find(['"', '\\', ':']) {
        let (before, from) = rest.split_at(at);
        repaired.push_str(before);
        let next = from[1..].chars().next();
        let length = match from.as_bytes()[0] {
            b'\\' if matches!(next, Some('"' | '\\')) => {
                repaired.push_str(&from[..2]);
                2
            }
            b'\\' => {
                repaired.push_str("\\\\");
                1
            }
            b'"' => {
                is_quoted = !is_quoted;
                repaired.push('"');
                1
            }
            _ => {
                repaired.push(':');
                let value = from[1..].trim_start_matches(' ');
                let odd = ["-nan", "nan", "-inf", "inf"].into_iter().find(|odd| value.starts_with(odd));
                let blanks = from.len() - 1 - value.len();
                odd.filter(|_| !is_quoted).map_or(1, |odd| {
                    repaired.push_str(" null");
                    1 + blanks + odd.len()
                })
            }
        };
        rest = &from[length..];
    }
    repaired + rest
}

fn read_valid(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::FioJson };
    let mut set = ResultSet::new(file, Tool::Fio, vec![]);
    let documents = documents(&origin, text, &mut set.notes)?;
    for series in series(documents, &mut set.notes) {
        read_series(&origin, &series, &mut set)?;
    }
    if set.runs.is_empty() {
        return Err(origin.whole(
            "no document has a \"jobs\" or \"client_stats\" list with entries",
            "run fio with --output-format=json or json+",
        ));
    }
    Ok(set)
}

fn documents(origin: &Origin<'_>, text: &str, notes: &mut Vec<Note>) -> Result<Vec<Value>, ReadError> {
    let (mut documents, mut at) = (Vec::new(), 0);
    while let Some(skipped) = begin(&text[at..]) {
        let from = at + skipped;
        let mut stream = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
        let line_of_document = text[..from].matches('\n').count();
        match stream.next() {
            Some(Ok(document)) => documents.push(document),
            Some(Err(error)) if error.is_eof() && !documents.is_empty() => {
                let line = line_of_document + 1;
                notes.push(Note::at(line, "the last document is cut off; the one before it is used"));
                return Ok(documents);
            }
            Some(Err(error)) => {
                let place = (line_of_document + error.line(), error.column().max(1));
                let way_out = if error.is_eof() {
                    "the text ends within a document: fio was killed, or the copy is cut off"
                } else {
                    "the text is not JSON here: give what fio wrote with --output, without the output of other programs"
                };
                return Err(origin.at_column(place, error.to_string(), way_out));
            }
            None => break,
        }
        at = from + stream.byte_offset();
        if documents.len() > DOCUMENTS_MAX {
            let found = format!("more than {DOCUMENTS_MAX} documents");
            return Err(origin.whole(found, "split the file, or use a longer --status-interval"));
        }
    }
    if documents.is_empty() {
        return Err(
            origin.whole("no line opens a document with \"{\"", "run fio with --output-format=json or json+")
        );
    }
    Ok(documents)
}

/// Documents of one run each, oldest first: those that follow with the same jobs and counts that do not fall. Counts that do
/// fall before the jobs have ended were reset when ramp_time was over: what was before is left out.
fn series(documents: Vec<Value>, notes: &mut Vec<Note>) -> Vec<Vec<Value>> {
    let mut all: Vec<Vec<Value>> = Vec::new();
    for document in documents {
        match all.last_mut().and_then(|series| Some((relation(series.last()?, &document), series))) {
            Some((Relation::Continues, series)) => series.push(document),
            Some((Relation::Reset, series)) => {
                let text =
                    "counts fell while the jobs ran, as at the end of ramp_time: earlier counts are not used";
                notes.push(Note::new(text));
                *series = vec![document];
            }
            Some((Relation::Other, _)) | None => all.push(vec![document]),
        }
    }
    all
}

/// How a document follows on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// The same run, later.
    Continues,
    /// The same run, whose counts began again.
    Reset,
    /// Another run.
    Other,
}

fn relation(before: &Value, after: &Value) -> Relation {
    let (earlier, later) = (entries(before), entries(after));
    let pairs = || earlier.iter().zip(&later);
    if earlier.len() != later.len() || pairs().any(|(one, other)| name(one) != name(other)) {
        return Relation::Other;
    }
    let of = |entry: &Value, key: &str| DIRECTIONS.map(|(name, _)| unsigned(&entry[name][key]).unwrap_or(0));
    let ios = |entry: &Value| of(entry, "total_ios");
    let grow = pairs().all(|(one, other)| ios(one).iter().zip(ios(other)).all(|(one, other)| *one <= other));
    let ended = earlier.iter().all(|entry| unsigned(&entry["eta"]) == Some(0));
    if !ended {
        return if grow { Relation::Continues } else { Relation::Reset };
    }
    // fio may write a document just before the jobs end, with nothing left to wait for, and one when they have ended. Another
    // run needs at least its own running time between the two.
    let runtime =
        |entries: &[&Value]| entries.iter().flat_map(|entry| of(entry, "runtime")).max().unwrap_or(0);
    let (ran, runs) = (runtime(&earlier), runtime(&later));
    let stamp = |document: &Value| unsigned(&document["timestamp_ms"]);
    let passed = stamp(after).zip(stamp(before)).map(|(after, before)| after.saturating_sub(before));
    let soon = passed.is_some_and(|passed| passed < runs.saturating_sub(ran) + ran / 2);
    let same = pairs().all(|(one, other)| ios(one) == ios(other));
    if grow && (soon || same) { Relation::Continues } else { Relation::Other }
}

/// True for entries of one job that numjobs made several of.
fn are_clones(one: &Value, other: &Value) -> bool {
    name(one) == name(other) && one["groupid"] == other["groupid"]
}

/// The entries of a document; those of hosts without the sum of all, which is computed from them.
fn entries(document: &Value) -> Vec<&Value> {
    let list = ["jobs", "client_stats"].iter().find_map(|key| document[*key].as_array());
    let hosts = |list: &Vec<Value>| list.iter().any(|entry| entry["hostname"].is_string());
    let of_hosts = list.is_some_and(hosts);
    list.into_iter().flatten().filter(|entry| !of_hosts || entry["jobname"] != "All clients").collect()
}

fn name(entry: &Value) -> String {
    let job = entry["jobname"].as_str().unwrap_or("job");
    match entry["hostname"].as_str() {
        Some(host) => format!("{job} on {host}"),
        None => job.to_owned(),
    }
}

fn read_series(origin: &Origin<'_>, series: &[Value], set: &mut ResultSet) -> Result<(), ReadError> {
    let Some(last) = series.last() else { return Ok(()) };
    if let Some(version) = last["fio version"].as_str() {
        set.version = Some(version.to_owned());
    }
    let all = entries(last);
    for clones in
        all.iter().enumerate().collect::<Vec<_>>().chunk_by(|(_, one), (_, other)| are_clones(one, other))
    {
        let mut parts = Vec::new();
        for (index, entry) in clones {
            let mut run = read_entry(origin, last, entry)?;
            run.intervals = intervals(origin, series, *index)?;
            if unsigned(&entry["eta"]).is_some_and(|eta| eta > 0) {
                run.notes.push(Note::new(
                    "the job was still running when this was written (its \"eta\" is above 0)",
                ));
            }
            parts.push(run);
        }
        set.runs.push(if parts.len() == 1 { parts.swap_remove(0) } else { clones_together(parts) });
    }
    Ok(())
}

/// The clones of one job as one run, as group_reporting would have it.
pub(crate) fn clones_together(mut parts: Vec<Run>) -> Run {
    let first = &parts[0];
    let mut run = Run { label: first.label.clone(), job: first.job.clone(), ..Run::default() };
    run.job.threads = parts.iter().try_fold(0u32, |sum, part| sum.checked_add(part.job.threads?));
    run.job.outstanding = parts.iter().try_fold(0.0, |sum, part| Some(sum + part.job.outstanding?));
    run.workers = run.job.threads;
    run.seconds = parts.iter().filter_map(|part| part.seconds).reduce(f64::max);
    run.workers_iops = parts.iter().filter_map(|part| part.total().iops).collect();
    for (_, direction) in DIRECTIONS {
        let of: Vec<&Figures> = parts.iter().filter_map(|part| part.directions.get(&direction)).collect();
        if !of.is_empty() {
            run.directions.insert(direction, Figures::together(of.into_iter()));
        }
    }
    for note in parts.iter_mut().flat_map(|part| std::mem::take(&mut part.notes)) {
        if !run.notes.contains(&note) {
            run.notes.push(note);
        }
    }
    run.parts = parts;
    run
}

fn read_entry(origin: &Origin<'_>, document: &Value, entry: &Value) -> Result<Run, ReadError> {
    let mut run = Run { label: name(entry), ..Run::default() };
    job(document, entry, &mut run);
    for (name, direction) in DIRECTIONS {
        if let Some(figures) = figures(origin, &run.label, name, &entry[name], &mut run.notes)? {
            let seconds = unsigned(&entry[name]["runtime"]).map(|ms| ms as f64 / 1e3);
            run.seconds = seconds.into_iter().chain(run.seconds).reduce(f64::max);
            run.directions.insert(direction, figures);
        }
    }
    match entry["error"].as_i64() {
        None | Some(0) => {}
        Some(error) => run.notes.push(Note::new(format!(
            "the job ended with error {error}: its figures cover only a part of it"
        ))),
    }
    Ok(run)
}

/// What the options say, those of the job before the global ones.
fn job(document: &Value, entry: &Value, run: &mut Run) {
    let places = [&entry["job options"], &document["global options"]];
    // Before 2.13 fio did not write its options down, and others leave them out: then nothing is assumed.
    if !places.iter().any(|place| place.is_object()) {
        return;
    }
    let option = |names: &[&str]| {
        places.iter().find_map(|place| names.iter().find_map(|name| place[*name].as_str())).map(str::to_owned)
    };
    let job = &mut run.job;
    // "4k,8k" is reads and writes: one size is known only when there is one.
    job.block_bytes =
        option(&["bs", "blocksize"]).and_then(|text| pattern::size(&text)).filter(|bytes| *bytes > 0);
    let rw = option(&["rw", "readwrite"]).unwrap_or_else(|| "read".to_owned());
    let rw = rw.split(':').next().unwrap_or_default().to_owned();
    let percent = |names: &[&str]| {
        option(names).and_then(|text| text.parse::<f64>().ok()).map(|p| (p / 100.0).clamp(0.0, 1.0))
    };
    let random = percent(&["percentage_random"]).unwrap_or(1.0);
    job.random_share = Some(if rw.starts_with("rand") { random } else { 0.0 });
    let mix = percent(&["rwmixread"]).or(percent(&["rwmixwrite"]).map(|writes| 1.0 - writes)).unwrap_or(0.5);
    job.read_share = match rw.as_str() {
        "read" | "randread" => Some(1.0),
        "write" | "randwrite" => Some(0.0),
        "rw" | "readwrite" | "randrw" => Some(mix),
        _ => None,
    };
    let number = |names: &[&str]| option(names).and_then(|text| text.parse::<u32>().ok()).filter(|n| *n > 0);
    let jobs = number(&["numjobs"]).unwrap_or(1);
    // Without group_reporting every clone has an entry of its own. fio does not write that option down: it is told by how
    // many entries there are.
    let clones = entries(document).into_iter().filter(|other| are_clones(other, entry)).count();
    let here = if clones > 1 { 1 } else { jobs };
    let engine = option(&["ioengine"]).unwrap_or_else(|| "psync".to_owned());
    let depth = if is_synchronous(&engine) { 1 } else { number(&["iodepth"]).unwrap_or(1) };
    (job.threads, job.depth) = (Some(here), Some(depth));
    // What is limited or paused holds as much outstanding as its latency needs.
    let limits = [
        "rate_iops",
        "rate",
        "thinktime",
        "latency_target",
        "rate_process",
        "flow",
        "max_latency",
        "thinktime_iotime",
    ];
    let is_free = !limits.iter().any(|name| option(&[name]).is_some_and(|value| value != "0"));
    job.outstanding = Some(f64::from(here) * f64::from(depth)).filter(|_| is_free);
    job.rate = option(&["rate_iops"])
        .and_then(|rate| rate.split(',').next()?.parse().ok())
        .filter(|rate| *rate > 0.0);
    job.target = option(&["filename"]);
    run.workers = Some(here);
}

fn figures(
    origin: &Origin<'_>,
    label: &str,
    name: &str,
    part: &Value,
    notes: &mut Vec<Note>,
) -> Result<Option<Figures>, ReadError> {
    let ios = unsigned(&part["total_ios"]);
    if !part.is_object() || ios == Some(0) {
        return Ok(None);
    }
    let (total, completion) = (latency(part, "lat"), latency(part, "clat"));
    // Before 3.0, "io_bytes" was in KiB, and there was neither "io_kbytes" nor "bw_bytes".
    let is_old = part["io_kbytes"].is_null() && part["bw_bytes"].is_null();
    let bytes =
        unsigned(&part["io_bytes"]).and_then(|bytes| bytes.checked_mul(if is_old { 1024 } else { 1 }));
    let bytes = bytes.or_else(|| unsigned(&part["io_kbytes"])?.checked_mul(1024));
    let bytes_per_s = number(&part["bw_bytes"]).or_else(|| number(&part["bw"]).map(|kib| kib * 1024.0));
    // Before anything is counted, fio prints zero for a mean.
    let mean = |of: &Option<(&Value, f64)>| {
        of.and_then(|(object, unit)| Some(number(&object["mean"])? * unit / 1e9)).filter(|mean| *mean > 0.0)
    };
    let mut latencies = Latencies::None;
    for (of, what) in [(&total, "lat"), (&completion, "clat")] {
        let Some((object, unit)) = of else { continue };
        latencies = distribution(origin, label, name, object, *unit)?;
        if latencies != Latencies::None {
            if what == "clat" && total.is_some() {
                notes.push(Note::new(format!(
                    "percentiles of {name}s are of the completion latency, without submission: fio keeps those of the total \
                     latency only with lat_percentiles=1"
                )));
            }
            break;
        }
    }
    let latency_s = mean(&total).or(mean(&completion));
    Ok(Some(Figures {
        ios,
        bytes,
        iops: number(&part["iops"]),
        bytes_per_s,
        latency_s,
        latencies,
        ..Figures::default()
    }))
}

/// A latency object and how many nanoseconds its unit has: fio before 3.0 wrote microseconds, under names without unit.
fn latency<'a>(part: &'a Value, name: &str) -> Option<(&'a Value, f64)> {
    [("_ns", 1.0), ("", 1e3)].into_iter().find_map(|(suffix, unit)| {
        let object = part.get(format!("{name}{suffix}"))?;
        object.is_object().then_some((object, unit))
    })
}

fn distribution(
    origin: &Origin<'_>,
    label: &str,
    name: &str,
    object: &Value,
    unit: f64,
) -> Result<Latencies, ReadError> {
    if let Some(bins) = object["bins"].as_object().filter(|bins| !bins.is_empty() && unit == 1.0) {
        let mut pairs = Vec::with_capacity(bins.len());
        for (ns, count) in bins {
            let pair = ns.parse::<u64>().ok().zip(unsigned(count));
            pairs.push(pair.ok_or_else(|| {
                origin.whole(
                    format!(
                        "job \"{label}\", {name}: bin \"{ns}\" with {count} is not a latency with its count"
                    ),
                    "another program may have changed the file: give it as fio wrote it",
                )
            })?);
        }
        let mut histogram = Histogram::from_fio_bins(pairs).map_err(|error| {
            origin.whole(
                format!("job \"{label}\", {name}: {error}"),
                "another program may have changed the file: give it as fio wrote it",
            )
        })?;
        let exact = unsigned(&object["min"]).zip(unsigned(&object["max"])).zip(number(&object["mean"]));
        if let Some(((min, max), mean)) = exact {
            histogram.set_extremes(min, max, mean);
        }
        return Ok(Latencies::of_fio(histogram));
    }
    let Some(list) = object["percentile"].as_object() else { return Ok(Latencies::None) };
    let mut percentiles: Vec<(f64, f64)> = list
        .iter()
        .filter_map(|(share, value)| Some((share.parse::<f64>().ok()? / 100.0, number(value)? * unit / 1e9)))
        .filter(|(share, _)| (0.0..=1.0).contains(share))
        .collect();
    percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
    Ok(if percentiles.is_empty() { Latencies::None } else { Latencies::Percentiles(percentiles) })
}

/// What the `index`-th entry did between the documents of a series, and before the first.
fn intervals(origin: &Origin<'_>, series: &[Value], index: usize) -> Result<Vec<Interval>, ReadError> {
    let mut intervals = Vec::new();
    if series.len() < 2 {
        return Ok(intervals);
    }
    let states: Vec<&Value> =
        series.iter().filter_map(|document| entries(document).get(index).copied()).collect();
    for (at, after) in states.iter().enumerate() {
        let before = at.checked_sub(1).map_or(&Value::Null, |at| states[at]);
        for (name, direction) in DIRECTIONS {
            intervals.extend(interval(origin, &before[name], &after[name], (name, direction))?);
        }
    }
    Ok(intervals)
}

/// What a direction did between two documents; `before` is null at the beginning.
fn interval(
    origin: &Origin<'_>,
    before: &Value,
    after: &Value,
    (name, direction): (&str, Direction),
) -> Result<Option<Interval>, ReadError> {
    let earlier = |key: &str| unsigned(&before[key]).unwrap_or(0);
    let grown = |key: &str| unsigned(&after[key])?.checked_sub(earlier(key));
    let (Some(ms), Some(ios)) = (grown("runtime").filter(|ms| *ms > 0), grown("total_ios")) else {
        return Ok(None);
    };
    let seconds = ms as f64 / 1e3;
    let mut unused = Vec::new();
    let now = figures(origin, "", name, after, &mut unused)?;
    let then = figures(origin, "", name, before, &mut unused)?;
    let histogram = match (now.map(|of| of.latencies), then.map(|of| of.latencies)) {
        // Buckets that fell are of documents that do not belong together: then only the counts are told.
        (Some(Latencies::Exact(now)), Some(Latencies::Exact(then))) => now.difference(&then).ok(),
        (Some(Latencies::Exact(now)), None) => Some(now),
        _ => None,
    };
    let from_s = earlier("runtime") as f64 / 1e3;
    Ok(Some(Interval {
        from_s,
        to_s: from_s + seconds,
        direction,
        iops: Some(ios as f64 / seconds),
        bytes_per_s: grown("io_bytes").map(|bytes| bytes as f64 / seconds),
        latency_s: histogram.as_ref().and_then(|of| of.mean_ns()).map(|ns| ns / 1e9),
        histogram,
    }))
}

/// A count; fio writes some of them as floating point.
fn unsigned(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        value.as_f64().filter(|of| *of >= 0.0 && of.fract() == 0.0 && *of < 1e18).map(|of| of as u64)
    })
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|of| of.is_finite() && *of >= 0.0)
}
