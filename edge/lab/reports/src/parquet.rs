//! Tables as Parquet, for DuckDB, pandas and the like: the seconds of every group, and the buckets of every histogram.
//!
//! Encodings are those that measured best for such columns: names by dictionary, counts and times by difference (delta binary
//! packed), reals with their bytes apart (byte stream split), all under zstd. Rows are handed over in batches, so memory does not
//! grow with the length of a run beyond the file itself.

use crate::figures::OPERATIONS;
use crate::report::Report;
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::schema::types::ColumnPath;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use statistics::Histogram;
use std::sync::Arc;

/// Rows of a batch.
const BATCH_ROWS: usize = 1 << 16;

/// Where a row belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    run: String,
    stage: String,
    repeat: u32,
    group: String,
    operation: &'static str,
}

/// The seconds of all groups with I/Os: columns `run`, `stage`, `repeat`, `group`, `operation` (`read`, `write`, `trim`),
/// `second` (when it began, in seconds after the stage started to count), `ios`, `bytes`, `min_ns`, `mean_ns`, `p50_ns`,
/// `p99_ns`, `p999_ns`, `max_ns`.
///
/// # Errors
/// When the writer refuses: it writes to memory, so only for want of it or by a fault of its own.
pub fn parquet_intervals(report: &Report) -> Result<Vec<u8>, ParquetError> {
    let mut table = Table::new(&[
        ("second", Kind::Real),
        ("ios", Kind::Whole),
        ("bytes", Kind::Whole),
        ("min_ns", Kind::Whole),
        ("mean_ns", Kind::Real),
        ("p50_ns", Kind::Whole),
        ("p99_ns", Kind::Whole),
        ("p999_ns", Kind::Whole),
        ("max_ns", Kind::Whole),
    ])?;
    each_interval(report, &mut |place, at, histogram, (ios, bytes)| {
        let real = |value: f64| Value::Real(Some(value));
        let whole = |value: Option<u64>| Value::Whole(value.unwrap_or(0));
        let values = vec![
            real(at),
            Value::Whole(ios),
            Value::Whole(bytes),
            whole(histogram.min_ns()),
            real(histogram.mean_ns().unwrap_or(0.0)),
            whole(histogram.percentile(0.5)),
            whole(histogram.percentile(0.99)),
            whole(histogram.percentile(0.999)),
            whole(histogram.max_ns()),
        ];
        table.push(place, values)
    })?;
    table.finish()
}

/// The buckets of all latencies that hold something: columns `run`, `stage`, `repeat`, `group`, `operation`, `second` (null for
/// the whole time), `from_ns`, `to_ns` (not included; 2^64 - 1 for the topmost), `count`. Of the whole time of an open loop,
/// operations such as `read service` are from when an I/O began.
///
/// # Errors
/// As [`parquet_intervals`].
pub fn parquet_buckets(report: &Report) -> Result<Vec<u8>, ParquetError> {
    let mut table = Table::new(&[
        ("second", Kind::RealOrNull),
        ("from_ns", Kind::Whole),
        ("to_ns", Kind::Whole),
        ("count", Kind::Whole),
    ])?;
    let mut push = |place: &Place, second: Option<f64>, histogram: &Histogram| {
        histogram.buckets().try_for_each(|bucket| {
            let whole = [bucket.from_ns, bucket.to_ns, bucket.count].map(Value::Whole);
            table.push(place, [Value::Real(second)].into_iter().chain(whole).collect())
        })
    };
    const SERVICE: [&str; 3] = ["read service", "write service", "trim service"];
    for (name, run) in report.all_runs() {
        for stage in &run.stages {
            for group in &stage.groups {
                for (index, of) in group.operations.iter().enumerate() {
                    let mut place = place(&name, run, stage, &group.name, OPERATIONS[index]);
                    push(&place, None, &of.latency)?;
                    if let Some(service) = &of.service {
                        place.operation = SERVICE[index];
                        push(&place, None, service)?;
                    }
                }
            }
        }
    }
    each_interval(report, &mut |place, at, histogram, _| push(place, Some(at), histogram))?;
    table.finish()
}

fn place(
    name: &str,
    run: &measured::Run,
    stage: &measured::StageRun,
    group: &str,
    operation: &'static str,
) -> Place {
    Place {
        run: name.to_owned(),
        stage: run.plan.stages.get(stage.stage).map_or_else(String::new, |planned| planned.name.clone()),
        repeat: stage.repeat,
        group: group.to_owned(),
        operation,
    }
}

type TakeInterval<'a> = dyn FnMut(&Place, f64, &Histogram, (u64, u64)) -> Result<(), ParquetError> + 'a;

/// Every second with I/Os: where, when it began, its latencies, its I/Os and bytes.
fn each_interval(report: &Report, take: &mut TakeInterval) -> Result<(), ParquetError> {
    for (name, run) in report.all_runs() {
        for stage in &run.stages {
            for group in &stage.groups {
                let places = OPERATIONS.map(|operation| place(&name, run, stage, &group.name, operation));
                for interval in &group.intervals {
                    for (index, place) in places.iter().enumerate() {
                        let histogram = interval.latency[index].histogram();
                        let counted = (interval.ios[index], interval.bytes[index]);
                        if counted.0 > 0 || !histogram.is_empty() {
                            take(place, interval.at, &histogram, counted)?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Counts and times in ns.
    Whole,
    /// Reals, in every row.
    Real,
    /// Reals, in some rows.
    RealOrNull,
}

enum Value {
    Whole(u64),
    Real(Option<f64>),
}

enum Column {
    Whole(Vec<u64>),
    Real(Vec<Option<f64>>),
}

/// A file that grows batch by batch.
struct Table {
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaRef,
    places: Vec<Place>,
    columns: Vec<Column>,
    kinds: Vec<Kind>,
}

const NAMES: [&str; 4] = ["run", "stage", "group", "operation"];

impl Table {
    /// A table of places and these columns.
    fn new(columns: &[(&str, Kind)]) -> Result<Table, ParquetError> {
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let mut fields = vec![text("run"), text("stage"), Field::new("repeat", DataType::UInt32, false)];
        fields.extend([text("group"), text("operation")]);
        fields.extend(columns.iter().map(|&(name, kind)| match kind {
            Kind::Whole => Field::new(name, DataType::UInt64, false),
            Kind::Real => Field::new(name, DataType::Float64, false),
            Kind::RealOrNull => Field::new(name, DataType::Float64, true),
        }));
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_dictionary_enabled(false);
        for name in NAMES {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), true);
        }
        for &(name, kind) in columns {
            let encoding = match kind {
                Kind::Real | Kind::RealOrNull => Encoding::BYTE_STREAM_SPLIT,
                Kind::Whole => Encoding::DELTA_BINARY_PACKED,
            };
            properties = properties.set_column_encoding(ColumnPath::from(name), encoding);
        }
        let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties.build()))?;
        let kinds: Vec<Kind> = columns.iter().map(|&(_, kind)| kind).collect();
        let empty = |kind: &Kind| match kind {
            Kind::Whole => Column::Whole(Vec::new()),
            Kind::Real | Kind::RealOrNull => Column::Real(Vec::new()),
        };
        Ok(Table { writer, schema, places: Vec::new(), columns: kinds.iter().map(empty).collect(), kinds })
    }

    fn push(&mut self, place: &Place, values: Vec<Value>) -> Result<(), ParquetError> {
        assert_eq!(values.len(), self.columns.len(), "a value for each column");
        for (column, value) in self.columns.iter_mut().zip(values) {
            match (column, value) {
                (Column::Whole(column), Value::Whole(value)) => column.push(value),
                (Column::Real(column), Value::Real(value)) => column.push(value),
                (Column::Whole(_), Value::Real(_)) | (Column::Real(_), Value::Whole(_)) => {
                    panic!("a value is of its column's kind")
                }
            }
        }
        self.places.push(place.clone());
        if self.places.len() == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.places.is_empty() {
            return Ok(());
        }
        let text = |of: fn(&Place) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(self.places.iter().map(of)))
        };
        let repeats = UInt32Array::from_iter_values(self.places.iter().map(|place| place.repeat));
        let mut arrays: Vec<ArrayRef> =
            vec![text(|place| &place.run), text(|place| &place.stage), Arc::new(repeats)];
        arrays.extend([text(|place| &place.group), text(|place| place.operation)]);
        for (column, kind) in self.columns.iter_mut().zip(&self.kinds) {
            arrays.push(match column {
                Column::Whole(values) => Arc::new(UInt64Array::from(std::mem::take(values))),
                Column::Real(values) if *kind == Kind::RealOrNull => {
                    Arc::new(Float64Array::from(std::mem::take(values)))
                }
                Column::Real(values) => {
                    Arc::new(Float64Array::from_iter_values(std::mem::take(values).into_iter().flatten()))
                }
            });
        }
        self.places.clear();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays)?;
        self.writer.write(&batch)
    }

    fn finish(mut self) -> Result<Vec<u8>, ParquetError> {
        self.flush()?;
        self.writer.into_inner()
    }
}
