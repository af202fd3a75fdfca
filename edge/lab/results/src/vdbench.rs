//! Vdbench's results: the summary (also its standard output), the flatfile, and histograms.
//!
//! Columns differ between versions and are found by their headers. Milliseconds; MB are 2^20 bytes. The row `avg_2-10` is of
//! the intervals 2 to 10, weighted by I/Os: that is checked, and what does not agree is noted.

use statistics::{BoundedHistogram, words};

use crate::error::{Kind, Origin, ReadError};
use crate::model::{Direction, Figures, Interval, Latencies, Note, ResultSet, Run, Steps, Tool};
use crate::text;

#[cfg(test)]
pub(crate) mod tests;

const MIB: f64 = 1_048_576.0;
/// The flatfile writes codes for "max" and curves where a rate would stand: from 999,977 in older versions.
const UNCONTROLLED_MIN: f64 = 999_900.0;
/// An average may differ from the weighted mean of its intervals by so much.
const AVERAGE_TOLERANCE: f64 = 0.02;

/// One row, of an interval or an average.
#[derive(Debug, Clone, Default)]
struct Row {
    line: usize,
    /// "7", or "avg_2-10".
    interval: String,
    rate: f64,
    mib: Option<f64>,
    block: Option<f64>,
    read_percent: Option<f64>,
    /// Percent of I/Os that seek.
    seek_percent: Option<f64>,
    resp: Option<f64>,
    /// The step that `resp` was printed in.
    resp_step: f64,
    /// I/Os per second that were asked for; none for `max` and curves.
    asked: Option<f64>,
    read_resp: Option<f64>,
    write_resp: Option<f64>,
}

/// True for the summary: a header line with "interval" and "i/o".
pub(crate) fn is_summary(text: &str) -> bool {
    text::numbered(text).any(|(_, line)| is_header(line))
}

fn is_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).any(|pair| pair == ["interval", "i/o"])
}

/// True for the flatfile: a header that begins with "tod"; and for what parseflat makes of it.
pub(crate) fn is_flatfile(text: &str) -> bool {
    text::numbered(text).any(|(_, line)| is_flat_header(line)) || is_parseflat(text)
}

/// True for a CSV of a flatfile's columns.
fn is_parseflat(text: &str) -> bool {
    text::numbered(text)
        .find(|(_, line)| !line.trim().is_empty())
        .is_some_and(|(_, line)| is_csv_header(line))
}

/// Names that no other table has beside a rate.
fn is_csv_header(line: &str) -> bool {
    let fields = flat_fields(line, true);
    let has = |name: &str| fields.iter().any(|field| field.eq_ignore_ascii_case(name));
    has("rate") && !has("iops") && ["resp", "reqrate", "mb/sec", "interval"].iter().any(|name| has(name))
}

fn is_flat_header(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("tod") && words.any(|word| word == "Interval")
}

/// True for histograms.
pub(crate) fn is_histogram(text: &str) -> bool {
    text.contains("min(ms)") && text.contains("max(ms)")
}

/// The files of a Vdbench output folder that hold its figures, the one with the most columns first. Others are of single disks,
/// hosts and slaves, or of Vdbench itself.
pub(crate) const FOLDER_FILES: [&str; 4] = ["flatfile.html", "summary.html", "totals.html", "logfile.html"];

/// Reads an output folder: (name, text) of its files.
pub(crate) fn read_folder(folder: &str, files: &[(&str, &str)]) -> Result<ResultSet, ReadError> {
    let mut first_error = None;
    for name in FOLDER_FILES {
        let Some((path, text)) = files.iter().find(|(path, _)| path.rsplit(['/', '\\']).next() == Some(name))
        else {
            continue;
        };
        let read = if is_flatfile(text) { read_flatfile(path, text) } else { read_summary(path, text) };
        match read {
            Ok(mut set) => {
                set.source = folder.to_owned();
                set.notes.push(Note::new(format!("read {name} of this Vdbench folder")));
                return Ok(set);
            }
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let origin = Origin { file: folder, kind: Kind::VdbenchSummary };
    Err(first_error.unwrap_or_else(|| {
        origin.whole("no flatfile.html and no summary.html", "give Vdbench's output folder")
    }))
}

/// Reads the summary.
pub(crate) fn read_summary(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::VdbenchSummary };
    let plain: Vec<(usize, String)> =
        text::numbered(text).map(|(number, line)| (number, text::without_tags(line))).collect();
    let (mut columns, mut runs, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let (mut label, mut threads, mut asked) = ("run".to_owned(), None, None);
    for (at, (number, line)) in plain.iter().enumerate() {
        if let Some(begin) = line.find("Starting RD=") {
            finish(&label, threads, std::mem::take(&mut rows), &mut runs);
            let said = &line[begin + "Starting RD=".len()..];
            label = said.split(';').next().unwrap_or_default().trim().to_owned();
            asked = rate_asked(said);
            threads = said.split("threads=").nth(1).and_then(|rest| {
                rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse::<u32>().ok())
            });
        } else if is_header(line) {
            let second = plain.get(at + 1).map_or("", |(_, line)| line);
            columns = summary_columns(line, second).ok_or_else(|| {
                origin.at(
                    *number,
                    "the two lines of the header have different numbers of columns",
                    "give the file as Vdbench wrote it",
                )
            })?;
        } else if let Some(row) = summary_row(&origin, *number, line, &columns)? {
            rows.push(Row { asked, ..row });
        }
    }
    finish(&label, threads, rows, &mut runs);
    if runs.is_empty() {
        return Err(origin.whole(
            "a header and no row of figures",
            "the run did not reach its first interval, or the file was cut off",
        ));
    }
    Ok(ResultSet::new(file, Tool::Vdbench, runs))
}

/// "run1_(50%); I/O rate: 5000; elapsed=60": the rate, if it is one. "For loops: iorate=…" is the true one where a loop varies it.
fn rate_asked(said: &str) -> Option<f64> {
    let after = |name: &str| {
        let rest = said.split(name).nth(1)?.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(rest.len());
        text::number(rest[..end].trim_end_matches(',')).filter(|rate| *rate >= 1.0)
    };
    after("iorate=").or_else(|| after("I/O rate:"))
}

/// The header's two lines are read as one: "i/o rate", "read resp".
fn summary_columns(first: &str, second: &str) -> Option<Vec<String>> {
    let above: Vec<&str> = first.split_whitespace().skip_while(|word| *word != "interval").skip(1).collect();
    let below: Vec<&str> = second.split_whitespace().collect();
    let fits = above.len() == below.len() && !above.is_empty();
    fits.then(|| above.iter().zip(below).map(|(above, below)| format!("{above} {below}")).collect())
}

/// A row begins with the time of day; others are none.
fn summary_row(
    origin: &Origin<'_>,
    number: usize,
    line: &str,
    columns: &[String],
) -> Result<Option<Row>, ReadError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_time = |word: &str| {
        word.len() >= 8 && word.matches(':').count() == 2 && word.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_interval = |word: &str| word.starts_with("avg_") || word.parse::<u32>().is_ok();
    let [time, interval, values @ ..] = words.as_slice() else { return Ok(None) };
    if columns.is_empty() || !is_time(time) || !is_interval(interval) {
        return Ok(None);
    }
    if values.len() != columns.len() {
        return Err(origin.fields(number, values.len(), columns.len()));
    }
    let of = |name: &str| {
        let at = columns.iter().position(|column| column == name)?;
        text::number(values[at]).filter(|value| *value >= 0.0)
    };
    let step = |name: &str| {
        columns.iter().position(|column| column == name).map_or(0.0, |at| text::step(values[at]))
    };
    let Some(rate) = of("i/o rate") else {
        return Err(origin.at(
            number,
            "no I/O rate",
            "the second column must be a number; was the line cut off?",
        ));
    };
    Ok(Some(Row {
        line: number,
        interval: (*interval).to_owned(),
        rate,
        mib: of("MB/sec 1024**2"),
        block: of("bytes i/o"),
        read_percent: of("read pct"),
        seek_percent: None,
        resp: of("resp time"),
        resp_step: step("resp time"),
        asked: None,
        read_resp: of("read resp"),
        write_resp: of("write resp"),
    }))
}

/// A line of a flatfile, or of what `vdbench parseflat` made of one: fields by blanks, or by commas.
fn flat_fields(line: &str, is_csv: bool) -> Vec<String> {
    match is_csv {
        true => text::fields(line, ',').iter().map(|field| field.trim().to_owned()).collect(),
        false => line.split_whitespace().map(str::to_owned).collect(),
    }
}

/// Reads the flatfile, or a CSV that parseflat made of its columns.
pub(crate) fn read_flatfile(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::VdbenchFlatfile };
    let is_csv = is_parseflat(text);
    let (mut columns, mut runs, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let (mut label, mut threads) = (String::new(), None);
    for (number, line) in text::numbered(text) {
        let line = text::without_tags(line);
        if is_flat_header(&line) || (is_csv && columns.is_empty() && is_csv_header(&line)) {
            columns = flat_fields(&line, is_csv);
            continue;
        }
        let values = flat_fields(&line, is_csv);
        let is_row =
            is_csv || values.first().is_some_and(|time| time.contains(':') && !time.starts_with('*'));
        if columns.is_empty() || line.trim().is_empty() || !is_row {
            continue;
        }
        if values.len() != columns.len() {
            return Err(origin.fields(number, values.len(), columns.len()));
        }
        let flat = Flat { columns: &columns, values: &values };
        let run = flat.text("run").unwrap_or("run");
        // What parseflat was asked to keep of averages alone has no column that says so.
        let row = flat.row(number, flat.text("interval").unwrap_or("avg_"));
        let row = row.ok_or_else(|| origin.at(number, "no rate", "the column \"rate\" must be a number"))?;
        let is_done = rows.last().is_some_and(|row: &Row| row.interval.starts_with("avg_"));
        if run != label || is_done || rows.last().is_some_and(|last: &Row| last.asked != row.asked) {
            finish(&label, threads, std::mem::take(&mut rows), &mut runs);
            label = run.to_owned();
        }
        threads = flat.number("threads").map(|threads| threads as u32).filter(|threads| *threads > 0);
        rows.push(row);
    }
    finish(&label, threads, rows, &mut runs);
    if runs.is_empty() {
        return Err(origin.whole(
            "no row of figures",
            "the run did not reach its first interval, or the file was cut off",
        ));
    }
    Ok(ResultSet::new(file, Tool::Vdbench, runs))
}

/// A row of a flatfile by the names of its columns, in any case: parseflat takes them as its user spells them.
struct Flat<'a> {
    columns: &'a [String],
    values: &'a [String],
}

impl Flat<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let at = self.columns.iter().position(|column| column.eq_ignore_ascii_case(name))?;
        Some(self.values[at].as_str())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.text(name).and_then(text::number).filter(|value| *value >= 0.0)
    }

    fn row(&self, line: usize, interval: &str) -> Option<Row> {
        Some(Row {
            line,
            interval: interval.to_owned(),
            rate: self.number("rate")?,
            mib: self.number("MB/sec"),
            block: self.number("bytes/io").or_else(|| self.number("xfersize")),
            read_percent: self.number("read%").or_else(|| self.number("rdpct")),
            seek_percent: self.number("seekpct").filter(|percent| *percent <= 100.0),
            resp: self.number("resp"),
            resp_step: self.text("resp").map_or(0.0, text::step),
            asked: self.number("reqrate").filter(|rate| (1.0..UNCONTROLLED_MIN).contains(rate)),
            read_resp: self.number("read_resp"),
            write_resp: self.number("write_resp"),
        })
    }
}

/// The rows of one run definition become runs: one per average; without any, one of all intervals but the first.
fn finish(label: &str, threads: Option<u32>, rows: Vec<Row>, runs: &mut Vec<Run>) {
    let mut intervals: Vec<Row> = Vec::new();
    for row in rows {
        if row.interval.starts_with("avg_") {
            runs.push(averaged(label, threads, &row, &std::mem::take(&mut intervals)));
        } else {
            intervals.push(row);
        }
    }
    if let Some(first) = intervals.first() {
        let counted = if intervals.len() > 1 { &intervals[1..] } else { &intervals[..] };
        let mut row = weighted(counted);
        row.line = first.line;
        let mut run = averaged(label, threads, &row, &intervals);
        run.notes.push(Note::at(
            first.line,
            "the run has no row of averages, so its figures are the means of all intervals but the first. The run was stopped, or the file is cut off",
        ));
        runs.push(run);
    }
}

/// The mean of rows; latencies weighted by rate, as every I/O counts once.
fn weighted(rows: &[Row]) -> Row {
    let total: f64 = rows.iter().map(|row| row.rate).sum();
    let n = rows.len().max(1) as f64;
    let by_rate = |of: &dyn Fn(&Row) -> Option<f64>| {
        let sum = rows.iter().try_fold(0.0, |sum, row| Some(sum + of(row)? * row.rate));
        sum.filter(|_| total > 0.0).map(|sum| sum / total)
    };
    Row {
        line: 0,
        interval: String::new(),
        rate: total / n,
        mib: rows.iter().try_fold(0.0, |sum, row| Some(sum + row.mib?)).map(|sum| sum / n),
        block: by_rate(&|row| row.block),
        read_percent: by_rate(&|row| row.read_percent),
        seek_percent: rows.first().and_then(|row| row.seek_percent),
        resp: by_rate(&|row| row.resp),
        resp_step: rows.iter().map(|row| row.resp_step).fold(0.0, f64::max),
        asked: rows.iter().find_map(|row| row.asked),
        read_resp: None,
        write_resp: None,
    }
}

fn averaged(label: &str, threads: Option<u32>, row: &Row, intervals: &[Row]) -> Run {
    let mut run = Run { label: label.to_owned(), line: Some(row.line), workers: threads, ..Run::default() };
    let job = &mut run.job;
    job.block_bytes = row.block.filter(|bytes| *bytes >= 1.0).map(|bytes| bytes.round() as u64);
    job.read_share = row.read_percent.map(|percent| (percent / 100.0).min(1.0));
    job.random_share = row.seek_percent.map(|percent| percent / 100.0);
    (job.threads, job.outstanding) = (threads, threads.map(f64::from));
    job.rate = row.asked;
    run.megabytes_printed = row.mib;
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
    let total = Figures {
        iops: Some(row.rate),
        bytes_per_s: row.mib.map(|mib| mib * MIB),
        latency_s: seconds(row.resp),
        steps: Steps { iops: 0.0, latency_s: row.resp_step / 1e3 },
        ..Figures::default()
    };
    run.directions.insert(Direction::Total, total);
    let reads = run.job.read_share;
    for (direction, share, resp) in [
        (Direction::Read, reads, row.read_resp),
        (Direction::Write, reads.map(|share| 1.0 - share), row.write_resp),
    ] {
        let Some(share) = share.filter(|share| *share > 0.0) else { continue };
        let figures =
            Figures { iops: Some(row.rate * share), latency_s: seconds(resp), ..Figures::default() };
        run.directions.insert(direction, figures);
    }
    run.intervals = intervals
        .iter()
        .filter_map(|of| {
            let number: u32 = of.interval.parse().ok()?;
            // Intervals have one length, which the rows do not tell: they are counted.
            Some(Interval {
                from_s: f64::from(number) - 1.0,
                to_s: f64::from(number),
                direction: Direction::Total,
                iops: Some(of.rate),
                bytes_per_s: of.mib.map(|mib| mib * MIB),
                latency_s: seconds(of.resp),
                histogram: None,
            })
        })
        .collect();
    run.notes.extend(check_average(row, intervals));
    run
}

/// The average against the weighted mean of its intervals.
fn check_average(row: &Row, intervals: &[Row]) -> Option<Note> {
    let (from, to) = row.interval.strip_prefix("avg_")?.split_once('-')?;
    let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
    let of = |row: &&Row| row.interval.parse::<u32>().is_ok_and(|number| (from..=to).contains(&number));
    let counted: Vec<Row> = intervals.iter().filter(of).cloned().collect();
    if counted.len() as u64 != u64::from(to.checked_sub(from)?) + 1 {
        return None;
    }
    let (expected, printed) = (weighted(&counted).resp?, row.resp?);
    let off = (expected - printed).abs();
    // Both are of figures that were rounded, each by up to half a step.
    if printed <= 0.0 || off <= AVERAGE_TOLERANCE * printed || off <= row.resp_step {
        return None;
    }
    // What is the same when it is printed is no difference.
    if words::number(printed) == words::number(expected) {
        return None;
    }
    Some(Note::at(
        row.line,
        format!(
            "the average latency is {} ms, but the mean of its intervals weighted by I/Os is {} ms: rows are missing or were edited",
            words::number(printed),
            words::number(expected)
        ),
    ))
}

/// A bucket: where it begins and ends in ms, and its count.
type Counted = (f64, Option<f64>, u64);

/// Reads histograms: one run per table, `min(ms) < max(ms) count …`.
pub(crate) fn read_histograms(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::VdbenchHistogram };
    let mut tables: Vec<(String, usize, Vec<Counted>)> = Vec::new();
    let mut title = String::new();
    for (number, line) in text::numbered(text) {
        let line = text::without_tags(line);
        let line = line.trim();
        if line.contains("min(ms)") {
            tables.push((std::mem::take(&mut title), number, vec![]));
        } else if let Some(bucket) = bucket(line) {
            match tables.last_mut() {
                Some((.., buckets)) => buckets.push(bucket),
                None => {
                    return Err(origin.at(
                        number,
                        "a bucket before any header",
                        "give the file from its beginning",
                    ));
                }
            }
        } else if !line.is_empty() {
            title = line.to_owned();
        }
    }
    let mut runs = Vec::new();
    for (title, line, buckets) in tables {
        runs.push(histogram_run(&origin, title, line, &buckets)?);
    }
    if runs.is_empty() {
        return Err(origin
            .whole("no histogram", "a header with min(ms) and max(ms) is needed; was the file cut off?"));
    }
    Ok(ResultSet::new(file, Tool::Vdbench, runs))
}

/// "0.020 < 0.040  123 …": where it begins and ends in ms, and its count.
fn bucket(line: &str) -> Option<Counted> {
    let (from, rest) = line.split_once('<')?;
    let mut words = rest.split_whitespace();
    let to = words.next()?;
    let count = text::number(words.next()?).filter(|count| *count >= 0.0 && count.fract() == 0.0)?;
    let to = if to.eq_ignore_ascii_case("max") { None } else { Some(text::number(to)?) };
    Some((text::number(from).filter(|ms| *ms >= 0.0)?, to, count as u64))
}

fn histogram_run(
    origin: &Origin<'_>,
    title: String,
    line: usize,
    buckets: &[Counted],
) -> Result<Run, ReadError> {
    let ns = |ms: f64| (ms * 1e6).round() as u64;
    let first = buckets.first().map_or(0, |(from, ..)| ns(*from));
    let joined = buckets.windows(2).all(|pair| pair[0].1 == Some(pair[1].0));
    let ends = buckets.iter().map(|(_, to, count)| (to.map(ns), *count)).collect();
    let histogram = BoundedHistogram::new(first, ends)
        .ok()
        .filter(|_| joined && !buckets.is_empty())
        .ok_or_else(|| {
            origin.at(
                line,
                "the buckets are not contiguous",
                "a line is missing or was edited: give the original file",
            )
        })?;
    let lower = title.to_ascii_lowercase();
    let direction = match (lower.contains("read"), lower.contains("write")) {
        (true, false) => Direction::Read,
        (false, true) => Direction::Write,
        _ => Direction::Total,
    };
    let figures = Figures {
        ios: Some(histogram.count()),
        latencies: Latencies::Bounded(histogram),
        ..Figures::default()
    };
    let mut run = Run { label: title, line: Some(line), ..Run::default() };
    run.directions.insert(direction, figures);
    Ok(run)
}
