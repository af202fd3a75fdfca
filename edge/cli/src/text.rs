//! Tables, sizes and rates for people.

use base::units::format_bytes;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::time::{SystemTime, UNIX_EPOCH};

/// A table with these headings. The columns of `right` are aligned to the right.
pub fn table(headings: &[&str], right: &[usize], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().map(|heading| heading.to_uppercase()));
    for row in rows {
        table.add_row(row);
    }
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Lines of `name  value`, the values in one column.
pub fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| {
        let indent = format!("\n{:width$}  ", "");
        format!("{name:width$}  {}", value.replace('\n', &indent)).trim_end().to_owned()
    };
    facts.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Microseconds as people read them.
pub fn latency(micros: Option<f64>) -> String {
    match micros {
        None => "-".to_owned(),
        Some(us) if us < 1000.0 => format!("{us:.0} us"),
        Some(us) if us < 1e6 => format!("{:.1} ms", us / 1e3),
        Some(us) => format!("{:.1} s", us / 1e6),
    }
}

/// Bytes per second.
pub fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", format_bytes(bytes_per_second as u64))
}

/// A time as `3d 4h`, `5m 6s`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds as u64;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Seconds since 1970.
pub fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
