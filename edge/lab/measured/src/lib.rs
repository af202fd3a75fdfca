//! What a run measured: raw histograms per second, never averages; the plan, the targets and machines, and what went wrong.
//!
//! Made by the generator, kept in bundles, read by reports, audits and comparisons. Relies on `base`, `plan`,
//! `statistics` and `iostats`. Must never hold a figure that can be computed from other fields: percentiles and rates are methods.

mod compact;
mod expected;
mod experiment;
mod findings;
mod kept;
mod run;
mod series;
mod system;

pub use compact::Compact;
pub use expected::Expected;
pub use experiment::{Cell, Compared, ComparedFigure, Conclusion, EXPERIMENT_VERSION, ExperimentRun, series};
pub use findings::{Finding, FindingKind};
pub use kept::{Kept, KeptError, SETS_MAX, is_kept, read, read_experiment, read_run};
pub use run::{
    AgentPart, Ended, GroupRun, Interval, Machine, Measured, Run, SourceText, StageRun, Stall, TargetFacts,
    VERSION, Verified,
};
pub use series::{DiskSeries, Sample};
pub use system::{System, SystemEvent, SystemSeries};
