//! `lab convert` and `lab profiles`.

use super::job::{self, JobOptions};
use super::{CommandError, ErrorKind, World};
use clap::Args;

/// Options of `lab convert`.
#[derive(Debug, Clone, Args)]
pub struct ConvertOptions {
    /// Job to convert.
    #[command(flatten)]
    pub job: JobOptions,
    /// Tool to write the job for.
    #[arg(long, value_name = "fio", value_parser = ["fio"], default_value = "fio")]
    pub to: String,
}

/// Writes a job as a job file of fio; what was lost goes to the standard error output.
pub fn convert(options: &ConvertOptions, world: &mut World) -> Result<(), CommandError> {
    let plan = job::read(&options.job)?.plan;
    let exported =
        jobs::export(&plan).map_err(|error| CommandError::new(ErrorKind::Refused, error.to_string()))?;
    if world.json {
        #[derive(serde::Serialize)]
        struct Answer {
            text: String,
            losses: Vec<String>,
        }
        let losses = exported.losses.iter().map(ToString::to_string).collect();
        return world.say_json(&Answer { text: exported.text, losses });
    }
    world.say(&exported.text)?;
    for loss in &exported.losses {
        eprintln!("lost: {loss}");
    }
    Ok(())
}

/// Lists the named workloads.
pub fn profiles(world: &mut World) -> Result<(), CommandError> {
    let all = plan::profiles::list();
    if world.json {
        #[derive(serde::Serialize)]
        struct Profile {
            name: String,
            source: &'static str,
            description: String,
            pattern: String,
        }
        let profiles: Vec<Profile> = (all.into_iter())
            .map(|of| Profile {
                pattern: of.pattern().describe(),
                name: of.name,
                source: of.source,
                description: of.description,
            })
            .collect();
        return world.say_json(&profiles);
    }
    let width = all.iter().map(|of| of.name.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        all.iter().map(|of| format!("{:width$}  {} ({})", of.name, of.description, of.source)).collect();
    world.say(&lines.join("\n"))
}
