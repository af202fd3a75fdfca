//! CSV, JSON and Parquet: what is written is read back, and is what was measured.
#![allow(clippy::unwrap_used, reason = "in tests, what is missing shall stop them")]

mod common;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use measured::Run;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use reports::{NamedExperiment, NamedRun, Report, csv, json, parquet_buckets, parquet_intervals};
use statistics::Histogram;
use std::collections::BTreeMap;
use std::io::Write;

const OPERATIONS: [&str; 3] = ["read", "write", "trim"];

fn runs() -> [Run; 2] {
    let mut one = common::run("one, \"quoted\"", &[("vm1", 8, 200), ("vm2", 4, 100)], 5);
    one.stages[0].groups[0].operations[0].service =
        Some(one.stages[0].groups[0].operations[0].latency.clone());
    [one, common::run("two", &[("vm1", 1, 50)], 3)]
}

/// Reads a CSV as RFC 4180 has it, independently of who wrote it: rows of fields.
fn parsed(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quoted) {
            ('"', true) if letters.peek() == Some(&'"') => field.push(letters.next().unwrap()),
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(std::mem::take(&mut field)),
            ('\r', false) => {}
            ('\n', false) => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            (letter, _) => field.push(letter),
        }
    }
    assert!(row.is_empty() && field.is_empty() && !quoted, "the last line ends");
    rows
}

#[test]
fn csv_has_what_was_measured_in_every_field() {
    let [one, mut two] = runs();
    two.system = measured::System {
        series: vec![measured::SystemSeries {
            figure: "Resync".into(),
            unit: "MiB/s".into(),
            of: "host a".into(),
            points: vec![(0.5, 3.0), (1.5, 4.0)],
        }],
        events: vec![measured::SystemEvent { at: 0.7, text: "host b, is suspect".into() }],
        notes: Vec::new(),
    };
    let report = Report::of_runs("t", [("one, \"quoted\"\nname", &one), ("two", &two)]);
    let files = csv(&report);
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    assert_eq!(names, ["stages", "groups", "seconds", "system"]);
    let tables: Vec<Vec<BTreeMap<String, String>>> = (files.iter())
        .map(|file| {
            let mut rows = parsed(&file.text).into_iter();
            let names = rows.next().unwrap();
            rows.map(|row| {
                assert_eq!(row.len(), names.len());
                names.iter().cloned().zip(row).collect()
            })
            .collect()
        })
        .collect();
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().unwrap();
    assert_eq!(tables[0].len(), 2);
    assert_eq!(tables[0][0]["run"], "one, \"quoted\"\nname");
    let total = one.stages[0].total();
    assert_eq!(number(&tables[0][0], "iops"), one.stages[0].iops());
    assert_eq!(number(&tables[0][0], "p999_ns"), total.latency.percentile(0.999).unwrap() as f64);
    assert_eq!(number(&tables[0][0], "max_ns"), total.latency.max_ns().unwrap() as f64);
    // Reads, writes and all of three groups.
    assert_eq!(tables[1].len(), 9);
    // Reads and writes: of two groups over 5 seconds, of one over 3.
    assert_eq!(tables[2].len(), 2 * 2 * 5 + 2 * 3);
    let counted: f64 = tables[2].iter().map(|row| number(row, "ios")).sum();
    assert_eq!(counted, (total.ios + two.stages[0].total().ios) as f64);
    let system: Vec<(&str, &str)> =
        tables[3].iter().map(|row| (row["of"].as_str(), row["value"].as_str())).collect();
    assert_eq!(system, [("host a", "3"), ("host a", "4"), ("host b, is suspect", "")]);
}

#[test]
fn json_has_figures_findings_and_cells_that_name_their_runs() {
    let [one, _] = runs();
    let experiment = common::experiment();
    let report = Report {
        title: "t".into(),
        runs: vec![NamedRun { name: "one", run: &one }],
        experiments: vec![NamedExperiment { name: "sweep", experiment: &experiment }],
        ..Report::default()
    };
    let document: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    assert_eq!(document["report_version"], reports::REPORT_VERSION);
    assert_eq!(document["runs"].as_array().unwrap().len(), 1 + 36);
    let stage = &document["runs"][0]["stages"][0];
    let total = one.stages[0].total();
    assert_eq!(stage["all"]["ios"], total.ios);
    assert_eq!(stage["all"]["latency_ns"]["p9999"], total.latency.percentile(0.9999).unwrap());
    assert_eq!(stage["groups"][1]["read"]["ios"], one.stages[0].groups[1].operations[0].ios);
    assert!(stage["groups"][1]["trim"].is_null(), "nothing was trimmed");
    assert_eq!(stage["findings"].as_array().unwrap().len(), one.stages[0].findings().len());
    let cells = document["experiments"][0]["cells"].as_array().unwrap();
    for (cell, kept) in cells.iter().zip(&experiment.cells) {
        for (index, run) in cell["runs"].as_array().unwrap().iter().zip(&kept.runs) {
            let found = &document["runs"][index.as_u64().unwrap() as usize]["stages"][0]["all"]["ios"];
            assert_eq!(found, run.stages[0].total().ios);
        }
    }
    let words = document["experiments"][0]["comparisons"][0]["verdict"].as_str().unwrap();
    assert_eq!(words, "B is faster by 20 % to 30 %");
}

/// A place of a Parquet file: run, stage, repeat, group, operation.
type Place = (String, String, u32, String, String);

/// Buckets (from, to, count) by place and second, by the bits of its number.
type Buckets = BTreeMap<(Place, Option<u64>), Vec<(u64, u64, u64)>>;

/// A reader of its own: from a file, as others read it.
fn reader(bytes: &[u8]) -> ParquetRecordBatchReaderBuilder<std::fs::File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap()
}

fn batches(bytes: &[u8]) -> Vec<arrow_array::RecordBatch> {
    reader(bytes).build().unwrap().map(|batch| batch.unwrap()).collect()
}

fn places(batch: &arrow_array::RecordBatch) -> Vec<Place> {
    let text = |name: &str, row: usize| batch[name].as_string::<i32>().value(row).to_owned();
    let repeats = batch["repeat"].as_primitive::<UInt32Type>();
    (0..batch.num_rows())
        .map(|row| {
            (
                text("run", row),
                text("stage", row),
                repeats.value(row),
                text("group", row),
                text("operation", row),
            )
        })
        .collect()
}

fn place(run: &Run, group: &str, operation: &str) -> Place {
    (run.plan.name.clone(), run.plan.stages[0].name.clone(), 0, group.to_owned(), operation.to_owned())
}

#[test]
fn parquet_gives_back_every_second() {
    let runs = runs();
    let report = Report::of_runs("t", runs.iter().map(|run| (run.plan.name.as_str(), run)));
    let mut expected = Vec::new();
    for run in &runs {
        for group in &run.stages[0].groups {
            for interval in &group.intervals {
                for (index, operation) in OPERATIONS.iter().enumerate() {
                    let of = interval.latency[index].histogram();
                    if of.is_empty() {
                        continue;
                    }
                    let whole = [
                        of.count(),
                        interval.bytes[index],
                        of.min_ns().unwrap(),
                        of.percentile(0.5).unwrap(),
                        of.percentile(0.99).unwrap(),
                        of.percentile(0.999).unwrap(),
                        of.max_ns().unwrap(),
                    ];
                    expected.push((
                        place(run, &group.name, operation),
                        interval.at,
                        whole,
                        of.mean_ns().unwrap(),
                    ));
                }
            }
        }
    }
    let mut found = Vec::new();
    for batch in batches(&parquet_intervals(&report).unwrap()) {
        let whole = |name: &str| batch[name].as_primitive::<UInt64Type>().values().to_vec();
        let real = |name: &str| batch[name].as_primitive::<Float64Type>().values().to_vec();
        let names = ["ios", "bytes", "min_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"];
        let columns = names.map(whole);
        for (row, place) in places(&batch).into_iter().enumerate() {
            let whole = columns.each_ref().map(|column| column[row]);
            found.push((place, real("second")[row], whole, real("mean_ns")[row]));
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn parquet_gives_back_every_histogram() {
    let runs = runs();
    let report = Report::of_runs("t", runs.iter().map(|run| (run.plan.name.as_str(), run)));
    let mut expected: Buckets = BTreeMap::new();
    let buckets =
        |of: &Histogram| of.buckets().map(|of| (of.from_ns, of.to_ns, of.count)).collect::<Vec<_>>();
    for run in &runs {
        for group in &run.stages[0].groups {
            for (index, operation) in OPERATIONS.iter().enumerate() {
                let of = &group.operations[index];
                expected.insert((place(run, &group.name, operation), None), buckets(&of.latency));
                if let Some(service) = &of.service {
                    expected.insert(
                        (place(run, &group.name, &format!("{operation} service")), None),
                        buckets(service),
                    );
                }
                for interval in &group.intervals {
                    let key = (place(run, &group.name, operation), Some(interval.at.to_bits()));
                    expected.insert(key, buckets(&interval.latency[index].histogram()));
                }
            }
        }
    }
    expected.retain(|_, buckets| !buckets.is_empty());
    let mut found: Buckets = BTreeMap::new();
    for batch in batches(&parquet_buckets(&report).unwrap()) {
        let whole = |name: &str, row: usize| batch[name].as_primitive::<UInt64Type>().value(row);
        let seconds = batch["second"].as_primitive::<Float64Type>();
        for (row, place) in places(&batch).into_iter().enumerate() {
            let second = seconds.iter().nth(row).unwrap().map(f64::to_bits);
            let bucket = (whole("from_ns", row), whole("to_ns", row), whole("count", row));
            found.entry((place, second)).or_default().push(bucket);
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn tables_of_nothing_have_their_columns() {
    let report = Report::default();
    assert_eq!(reader(&parquet_intervals(&report).unwrap()).schema().fields().len(), 14);
    assert!(csv(&report).iter().all(|file| file.text.lines().count() == 1));
}
