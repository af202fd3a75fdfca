//! What "MB/s" means: IOPS × I/O size, in 2^20 or 10^6 bytes, within what rounding allows.

use statistics::words;

use super::finding::{Code, Finding, Severity};
use super::rows::Row;

const MIB: f64 = 1_048_576.0;
const MB: f64 = 1e6;
/// Sizes that an unnamed I/O size is looked for among: powers of two from 512 bytes to 4 MiB.
const SIZES: std::ops::RangeInclusive<u32> = 9..=22;
/// Beyond rounding, figures of two averages may differ by so much.
const TOLERANCE: f64 = 0.005;

pub(super) fn audit(rows: &[Row<'_>], findings: &mut Vec<Finding>) {
    let printed: Vec<(&Row<'_>, f64)> = rows
        .iter()
        .filter_map(|row| Some((row, row.run.megabytes_printed?)))
        .filter(|(_, mb)| *mb > 0.0)
        .collect();
    if printed.is_empty() {
        return;
    }
    let known = printed.iter().all(|(row, _)| row.run.job.block_bytes.is_some());
    let inferred = if known { None } else { inferred_size(&printed) };
    let size = |row: &Row<'_>| row.run.job.block_bytes.map(|bytes| bytes as f64).or(inferred);
    let fitting = |unit: f64| {
        printed
            .iter()
            .filter(|(row, mb)| size(row).is_some_and(|bytes| fits(row.iops, bytes, unit, *mb)))
            .count()
    };
    let (binary, decimal) = (fitting(MIB), fitting(MB));
    let sized = printed.iter().filter(|(row, _)| size(row).is_some()).count();
    if sized == 0 {
        return;
    }
    let by = inferred.map_or(String::new(), |bytes| {
        format!(" (I/O size {} B, inferred from the figures)", words::number(bytes))
    });
    if binary.max(decimal) * 2 > sized {
        let (count, unit) =
            if binary >= decimal { (binary, "MiB/s (2^20 bytes)") } else { (decimal, "MB/s (10^6 bytes)") };
        let sentence = format!(
            "MB/s stands for {unit}: IOPS × I/O size agrees in {count} of {}{by}",
            words::counted(sized, "row")
        );
        findings.push(Finding {
            code: Code::Megabytes,
            severity: Severity::Information,
            sentence,
            rows: vec![],
        });
    }
    let unit = if binary >= decimal { MIB } else { MB };
    let wrong: Vec<_> = printed
        .iter()
        .filter_map(|(row, mb)| {
            let bytes = size(row).filter(|bytes| !fits(row.iops, *bytes, unit, *mb))?;
            let expected = words::number(row.iops * bytes / unit);
            Some(row.name(Some(format!("{} printed, {expected} by IOPS × I/O size", words::number(*mb)))))
        })
        .collect();
    if !wrong.is_empty() {
        findings.push(Finding {
            code: Code::MegabytesWrong,
            severity: Severity::Warning,
            sentence: format!(
                "in {} the throughput is IOPS × I/O size neither in MB/s nor in MiB/s: one of the three figures comes from another run",
                words::counted(wrong.len(), "row")
            ),
            rows: wrong,
        });
    }
}

/// True when so many I/Os of this size give these megabytes, cut or rounded to whole ones.
fn fits(iops: f64, bytes: f64, unit: f64, printed: f64) -> bool {
    // IOPS are rounded too; and a table may cut instead of round.
    let (exact, slack) = (iops * bytes / unit, 0.5 * bytes / unit);
    let digits = if printed.fract() == 0.0 { 1.0 } else { 0.1 };
    (exact - printed).abs() <= digits + slack + TOLERANCE * printed
}

/// The one size that explains every row, whichever unit is meant; nothing when none or several do.
fn inferred_size(printed: &[(&Row<'_>, f64)]) -> Option<f64> {
    let explains = |bytes: f64, unit: f64| printed.iter().all(|(row, mb)| fits(row.iops, bytes, unit, *mb));
    let mut found = SIZES
        .map(|bits| 2f64.powi(bits as i32))
        .filter(|bytes| explains(*bytes, MIB) || explains(*bytes, MB));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}
