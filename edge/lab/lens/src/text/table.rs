//! Tables of text.

/// Columns as wide as they need: the first to the left, the others to the right.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &[String], column: usize| row.get(column).map_or(0, |text| text.chars().count());
    let widths: Vec<usize> =
        (0..columns).map(|column| rows.iter().map(|row| cell(row, column)).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (text, &width))| match column {
            0 => format!("{text:<width$}"),
            _ => format!("{text:>width$}"),
        });
        let line = cells.collect::<Vec<String>>().join("  ");
        text += &format!("  {}\n", line.trim_end());
    }
    text
}
