//! How much one report shows. What is left out or joined is said where it happens; the tables as CSV and Parquet have it all.

/// Points of a line over time: about what a wide screen has room for. More seconds are joined, their histograms added.
pub const TIME_POINTS_MAX: usize = 600;
/// Columns of a heat map of latency over time.
pub const HEAT_COLUMNS_MAX: usize = 240;
/// Points of a line of a distribution.
pub const DISTRIBUTION_POINTS_MAX: usize = 240;
/// Lines of one chart: more cannot be told apart. The busiest are shown.
pub const LINES_MAX: usize = 10;
/// Stages of which every chart is drawn; of others, only the figures are shown.
pub const STAGES_DRAWN_MAX: usize = 30;
/// Captures of which surfaces are drawn.
pub const CAPTURES_DRAWN_MAX: usize = 12;
/// Disks of one capture that are drawn: behind one another, more hide each other.
pub const DISKS_DRAWN_MAX: usize = 8;
/// Columns of a surface at most, and at least where there are so many samples.
pub const SURFACE_COLUMNS_MAX: usize = 150;
/// As above: fewer do not show a course of time.
pub const SURFACE_COLUMNS_MIN: usize = 24;
/// Numbers of all surfaces of one report together: about 3 MB.
pub const SURFACE_NUMBERS_MAX: usize = 700_000;
/// Rows of the table that stands behind a chart. More are joined or thinned.
pub const CHART_TABLE_ROWS_MAX: usize = 60;
/// Findings, sentences and notes of one list.
pub const SENTENCES_MAX: usize = 200;
/// Rows of a table of figures.
pub const FIGURE_ROWS_MAX: usize = 2_000;
/// Bytes that a bundle may unpack to: a run of a day with ten groups has about a tenth of it.
pub const BUNDLE_BYTES_MAX: u64 = 1 << 30;
/// Files of a bundle.
pub const BUNDLE_FILES_MAX: usize = 10_000;
