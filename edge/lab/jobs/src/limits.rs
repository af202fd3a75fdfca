//! The most that a job file may ask of its reader. Reaching a limit is a fault that names it.

/// Bytes of one text, and of a text with all that it includes. The largest public job file known has 60 KB.
pub const TEXT_BYTES_MAX: usize = 4 << 20;
/// Stages of one plan. A Vdbench run with three loops has 343; a plan of 10,000 stages of 30 s runs for 3.5 days.
pub const STAGES_MAX: usize = 10_000;
/// Groups of one plan, all stages together.
pub const GROUPS_MAX: usize = 100_000;
/// Targets of one plan.
pub const TARGETS_MAX: usize = 65_536;
/// Definitions of one kind in one file, such as Vdbench's workloads: each is compared with the others.
pub const DEFINITIONS_MAX: usize = 4_096;
/// Options of one command line.
pub const FLAGS_MAX: usize = 256;
/// Stages of a plan times the devices and workloads of each.
pub const EXPANSION_MAX: u128 = 1 << 22;
/// Files within files. Deeper is recursion.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// Files included in all.
pub const INCLUDES_MAX: usize = 256;
/// Elements that one list or range may stand for.
pub const LIST_MAX: usize = 10_000;
/// Bytes of the options of all jobs of a file together: each job holds those of the globals above it too.
pub const JOB_BYTES_MAX: usize = 64 << 20;
/// Targets of all groups of a plan together: each group has a list of its own.
pub const ASSIGNMENTS_MAX: usize = 1 << 20;
/// Notes and faults that are kept of one file.
pub const FINDINGS_MAX: usize = 1_000;
/// Lines of one mix of sizes: fio allows 256 zones, Iometer 100 lines.
pub const MIX_LINES_MAX: usize = 1_000;
/// The longest duration that is taken, in seconds: ten years.
pub const SECONDS_MAX: f64 = 10.0 * 365.0 * 86_400.0;
