//! All disks of a capture on one clock.

use iostats::Operations;

use crate::capture::{Capture, Disk};
use crate::window::Window;

/// Cells at most: finer changes are not looked for in a longer capture.
const CELLS_MAX: usize = 2_000;

/// One disk in one cell of time; no window where nothing is known.
pub(super) type Row = Vec<Option<Window>>;

/// Equal cells of time, and what each disk did in each.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) begin_s: f64,
    pub(super) cell_s: f64,
    pub(super) rows: Vec<Row>,
}

impl Grid {
    pub(super) fn new(capture: &Capture) -> Grid {
        let (begin_s, end_s) = (capture.begin_s(), capture.end_s());
        let mut lengths: Vec<f64> =
            capture.disks.iter().flat_map(|disk| &disk.windows).map(|window| window.seconds).collect();
        lengths.sort_by(f64::total_cmp);
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(1.0);
        let cell_s = usual.max((end_s - begin_s) / CELLS_MAX as f64);
        let cells = ((end_s - begin_s) / cell_s).round().clamp(0.0, CELLS_MAX as f64) as usize;
        let rows = capture.disks.iter().map(|disk| row(disk, begin_s, cell_s, cells)).collect();
        Grid { begin_s, cell_s, rows }
    }

    pub(super) fn cells(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// When a cell begins, in seconds after the capture did.
    pub(super) fn at_s(&self, cell: usize) -> f64 {
        self.begin_s + cell as f64 * self.cell_s
    }
}

fn row(disk: &Disk, begin_s: f64, cell_s: f64, cells: usize) -> Row {
    let quiet = |cell: usize| {
        let at_s = begin_s + cell as f64 * cell_s;
        let middle = at_s + cell_s / 2.0;
        let unknown = disk.gaps.iter().any(|gap| gap.at_s <= middle && middle < gap.at_s + gap.seconds);
        (!unknown).then(|| Window { at_s, seconds: cell_s, ..Window::default() })
    };
    let mut row: Row = (0..cells).map(quiet).collect();
    for window in &disk.windows {
        // A long window is known in all cells that it covers; a short one lies in that of its middle.
        let first = ((window.at_s - begin_s) / cell_s + 0.5).floor().max(0.0) as usize;
        let last = ((window.end_s() - begin_s) / cell_s - 0.5).ceil().max(0.0) as usize;
        if last > first + 1 {
            row.iter_mut().take(last).skip(first).for_each(|cell| *cell = Some(window.clone()));
            continue;
        }
        let middle = ((window.at_s + window.seconds / 2.0 - begin_s) / cell_s).max(0.0) as usize;
        let Some(cell) = row.get_mut(middle) else { continue };
        match cell {
            Some(known) if known.total(Operations::Both).ios > 0 => known.append(window),
            _ => *cell = Some(window.clone()),
        }
    }
    row
}
