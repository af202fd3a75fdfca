//! Tables of figures (CSV) as people publish them: columns are known by their names, one row is one run.

mod columns;

use crate::error::{Kind, Origin, ReadError};
use crate::model::{Direction, Figures, Job, Latencies, Note, ResultSet, Run, Steps, Tool};
use crate::pattern;
use crate::text;
use columns::Column;
use statistics::words;

/// True for a text whose first line that is no comment names a throughput and something else that is known.
pub(crate) fn is_table(text: &str) -> bool {
    text::numbered(text).find(|(_, line)| !is_comment(line)).is_some_and(|(_, line)| {
        let columns: Vec<Column> = header(line).into_iter().flatten().collect();
        columns.iter().any(|column| matches!(column, Column::Iops(_))) && columns.len() >= 2
    })
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

fn separator(line: &str) -> char {
    [';', '\t'].into_iter().find(|separator| line.contains(*separator)).unwrap_or(',')
}

fn header(line: &str) -> Vec<Option<Column>> {
    text::fields(line, separator(line)).iter().map(|name| columns::column(name)).collect()
}

/// Reads a table. Claims of threads and outstanding are taken from columns, else from `caption`, else from comments ("#") of
/// the table itself.
pub(crate) fn read(file: &str, text: &str, caption: Option<&str>) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::Table };
    let mut lines = text::numbered(text);
    let comments: String = text::numbered(text)
        .filter(|(_, line)| line.trim_start().starts_with('#'))
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    let said = caption.unwrap_or(&comments);
    let (_, first) = lines.find(|(_, line)| !is_comment(line)).ok_or_else(|| {
        origin.whole("the file is empty", "give a CSV whose first line names the columns, at least iops")
    })?;
    let columns = header(first);
    let mut set = ResultSet::new(file, tool_of(file), vec![]);
    for (name, column) in text::fields(first, separator(first)).iter().zip(&columns) {
        if column.is_none() {
            let text = format!(
                "column \"{}\" is unknown: its words distinguish cells, its figures are not used",
                name.trim()
            );
            set.notes.push(Note::new(text));
        }
    }
    if caption.is_none() && !comments.is_empty() {
        set.notes.push(Note::new("the comments of the table are used as its caption"));
    }
    for (number, line) in lines.filter(|(_, line)| !is_comment(line)) {
        let fields = text::fields(line, separator(first));
        if fields.len() != columns.len() {
            return Err(origin.fields(number, fields.len(), columns.len()));
        }
        let of_row = Fields { origin: &origin, number, columns: &columns, fields: &fields };
        let mut run = row(&of_row, said)?;
        run.job.others = others(&text::fields(first, separator(first)), &columns, &fields);
        set.runs.push(run);
    }
    if set.runs.is_empty() {
        return Err(origin.whole("a header without rows", "the file may be cut off: give it with its rows"));
    }
    alike_steps(&mut set.runs);
    Ok(set)
}

/// The tool that the file's name names ("sweep-fio.csv"), for tables without such a column.
fn tool_of(file: &str) -> Tool {
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric()).map(Tool::named);
    words.find(|tool| *tool != Tool::Unknown).unwrap_or(Tool::Unknown)
}

/// A column is printed with one number of digits, of which spreadsheets leave out zeroes at the end: its finest step is that of all.
fn alike_steps(runs: &mut [Run]) {
    let finest = |of: fn(&Figures) -> f64| {
        let steps = runs.iter().flat_map(|run| run.directions.values()).map(of).filter(|step| *step > 0.0);
        steps.reduce(f64::min).unwrap_or(0.0)
    };
    let steps = Steps { iops: finest(|of| of.steps.iops), latency_s: finest(|of| of.steps.latency_s) };
    for figures in runs.iter_mut().flat_map(|run| run.directions.values_mut()) {
        figures.steps = steps;
    }
}

/// Words in columns that are not known, with the columns' names.
fn others(names: &[String], columns: &[Option<Column>], fields: &[String]) -> Vec<String> {
    let unknown = names.iter().zip(columns).zip(fields).filter(|((_, column), _)| column.is_none());
    let worded = unknown.filter(|(_, field)| field.trim().starts_with(char::is_alphabetic));
    worded.map(|((name, _), field)| format!("{} {}", name.trim(), field.trim())).collect()
}

/// A row by what its columns hold.
struct Fields<'a> {
    origin: &'a Origin<'a>,
    number: usize,
    columns: &'a [Option<Column>],
    fields: &'a [String],
}

impl Fields<'_> {
    fn text(&self, wanted: Column) -> Option<&str> {
        let found = self.columns.iter().zip(self.fields).find(|(column, _)| **column == Some(wanted));
        found.map(|(_, field)| field.trim()).filter(|field| !field.is_empty())
    }

    fn number(&self, wanted: Column) -> Result<Option<f64>, ReadError> {
        let Some(field) = self.text(wanted) else { return Ok(None) };
        let value = text::number(field).filter(|value| *value >= 0.0);
        let column = self.columns.iter().position(|column| *column == Some(wanted)).map_or(1, |at| at + 1);
        value.map(Some).ok_or_else(|| {
            let found = format!("field {column} is \"{field}\"");
            let way_out = "write a number with a decimal point and without a unit";
            self.origin.at_column((self.number, column), found, way_out)
        })
    }

    fn count(&self, wanted: Column) -> Result<Option<u32>, ReadError> {
        Ok(self.number(wanted)?.map(|value| value as u32).filter(|count| *count > 0))
    }

    /// The step of a figure's last digit; 0 where there is none.
    fn step(&self, wanted: Column) -> f64 {
        self.text(wanted).map_or(0.0, text::step)
    }

    /// What was run, by columns, else by the pattern's words, else by what is said of the table.
    fn job(&self, said: &str, vms: u32) -> Result<Job, ReadError> {
        let worded = match self.text(Column::Pattern) {
            Some(pattern) => pattern::job(pattern),
            None if said.is_empty() => Job::default(),
            None => Job { pattern: None, ..pattern::job(said) },
        };
        let share = |percent: Option<f64>| percent.map(|percent| (percent / 100.0).min(1.0));
        let caption = pattern::caption(said);
        let threads = self.count(Column::Threads)?.or(caption.threads);
        let depth = self.count(Column::Depth)?.or(caption.depth);
        let product = threads.zip(depth).map(|(t, d)| f64::from(t) * f64::from(d) * f64::from(vms));
        Ok(Job {
            block_bytes: self.text(Column::Block).and_then(pattern::size).or(worded.block_bytes),
            read_share: share(self.number(Column::ReadPercent)?).or(worded.read_share),
            random_share: share(self.number(Column::RandomPercent)?).or(worded.random_share),
            target: self.text(Column::Target).map(str::to_owned),
            // "max" is no rate.
            rate: self.text(Column::Rate).and_then(text::number).filter(|rate| *rate > 0.0),
            threads,
            depth,
            outstanding: self.number(Column::Outstanding)?.filter(|n| *n > 0.0).or(product),
            ..worded
        })
    }

    /// The figures of each direction that has columns, and of all together.
    fn figures(&self, run: &mut Run) -> Result<(), ReadError> {
        let mut percentiles = Vec::new();
        let mut throughput = None;
        for column in self.columns.iter().flatten() {
            match column {
                Column::Iops(direction) => {
                    let figures = run.directions.entry(*direction).or_default();
                    (figures.iops, figures.steps.iops) = (self.number(*column)?, self.step(*column));
                }
                Column::Latency(direction, units) => {
                    let figures = run.directions.entry(*direction).or_default();
                    figures.latency_s = self.number(*column)?.map(|value| value / units);
                    figures.steps.latency_s = self.step(*column) / units;
                }
                Column::Throughput(None) => run.megabytes_printed = self.number(*column)?,
                Column::Throughput(Some(bytes)) => {
                    throughput = self.number(*column)?.map(|value| value * bytes);
                }
                Column::Percentile(share, units) => {
                    percentiles.extend(self.number(*column)?.map(|value| (*share, value / units)));
                }
                _ => {}
            }
        }
        // Without a column for all I/Os, their rate is that of reads and writes, and so is their latency if none is printed.
        let printed = run.directions.remove(&Direction::Total).unwrap_or_default();
        let mut total = Figures::together(run.directions.values());
        if printed.iops.is_some() || run.directions.is_empty() {
            total = printed;
        } else if printed.latency_s.is_some() {
            (total.latency_s, total.steps.latency_s) = (printed.latency_s, printed.steps.latency_s);
        }
        let computed = total.iops.zip(run.job.block_bytes).map(|(iops, bytes)| iops * bytes as f64);
        total.bytes_per_s = throughput.or(computed);
        if !percentiles.is_empty() {
            total.latencies = Latencies::Percentiles(percentiles);
        }
        run.directions.insert(Direction::Total, total);
        Ok(())
    }
}

fn row(fields: &Fields<'_>, said: &str) -> Result<Run, ReadError> {
    let mut run = Run { line: Some(fields.number), ..Run::default() };
    run.tool = fields.text(Column::Tool).map(Tool::named);
    run.vms = fields.count(Column::Vms)?;
    let vms = run.vms.unwrap_or(1);
    run.job = fields.job(said, vms)?;
    run.workers = run.job.threads.map(|threads| threads.saturating_mul(vms));
    fields.figures(&mut run)?;
    run.label = fields.text(Column::Label).map_or_else(|| label(&run), str::to_owned);
    if run.label.is_empty() {
        run.label = fields.text(Column::Repeat).unwrap_or_default().to_owned();
    }
    Ok(run)
}

/// "2 VMs, 4k random write, fio", or "threads 4 x 16".
fn label(run: &Run) -> String {
    let mut parts = Vec::new();
    parts.extend(run.vms.map(|vms| words::counted(vms, "VM")));
    parts.extend(run.job.pattern.clone());
    if run.vms.is_none() {
        parts.extend(run.job.threads.zip(run.job.depth).map(|(t, d)| format!("threads {t} x {d}")));
    }
    parts.extend(run.tool.map(|tool| tool.to_string()));
    parts.extend(run.job.target.clone());
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_run_by_the_names_of_its_columns() {
        let set = read(
            "a.csv",
            "# threads=4, outstanding=16 per thread\nvms,pattern,tool,iops,mb_s,latency_ms\n\
            2,\"8k random 70/30\",FIO,95021,742,5.5\n",
            None,
        )
        .unwrap();
        let run = &set.runs[0];
        assert_eq!((run.vms, run.tool, run.line), (Some(2), Some(Tool::Fio), Some(3)));
        assert_eq!((run.job.threads, run.job.depth, run.job.outstanding), (Some(4), Some(16), Some(128.0)));
        assert_eq!(run.job.read_share, Some(0.7));
        assert_eq!(run.total().latency_s, Some(0.0055));
        assert_eq!(run.megabytes_printed, Some(742.0));
        assert_eq!(run.label, "2 VMs, 8k random 70/30, fio");
    }

    #[test]
    fn what_is_no_number_is_refused_with_its_place() {
        let error = read("a.csv", "threads;iops\n4;many\n", None).unwrap_err();
        assert_eq!((error.line, error.column), (Some(2), Some(2)));
        assert!(
            error.to_string().starts_with("a.csv:2:2: cannot be read as a table: field 2 is \"many\""),
            "{error}"
        );
        let error = read("a.csv", "threads,iops\n4\n", None).unwrap_err();
        assert_eq!(error.line, Some(2));
        assert!(read("a.csv", "threads,iops\n", None).is_err());
    }

    /// The columns went unread, and the table was none.
    #[test]
    fn totals_and_sides_are_read_with_their_units_and_digits() {
        let text = "RIOPS;WIOPS;RLAT (us);WLAT (us);BW (KiB/s);p99 (ms)\n30;10;500.0;900.0;160;2.5\n";
        let run = &read("a.csv", text, None).unwrap().runs[0];
        let total = run.total();
        assert_eq!((total.iops, total.bytes_per_s), (Some(40.0), Some(160.0 * 1_024.0)));
        assert!((total.latency_s.unwrap() - 0.0006).abs() < 1e-12, "{total:?}");
        assert_eq!(total.steps.iops, 1.0);
        assert!((total.steps.latency_s - 1e-7).abs() < 1e-15, "{total:?}");
        assert_eq!(total.latencies, Latencies::Percentiles(vec![(0.99, 0.0025)]));
    }

    #[test]
    fn a_latency_of_all_ios_stays_where_rates_are_by_direction() {
        let total = read("a.csv", "riops,wiops,tlat\n30,10,0.6\n", None).unwrap().runs[0].total();
        assert_eq!((total.iops, total.latency_s), (Some(40.0), Some(0.0006)));
    }

    #[test]
    fn a_column_that_is_not_understood_is_told() {
        let set = read("a.csv", "iops\tthreads\tmood\n10\t1\tgood\n", None).unwrap();
        assert_eq!(set.notes.len(), 1);
        assert!(set.notes[0].text.contains("\"mood\""));
    }
}
