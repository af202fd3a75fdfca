//! `lab verify`: reads what an earlier run wrote, by the record that it kept.

use super::prepare::{self, Consent};
use super::{CommandError, ErrorKind, World, run};
use crate::generator::ledger::Ledger;
use crate::generator::stage::Settings;
use crate::runner;
use crate::verification::{read_group, record_path};
use clap::Args;
use plan::{Plan, Stage};
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `lab verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyOptions {
    /// Folder with the records of the run (`lab run --record FOLDER`).
    #[arg(long, value_name = "FOLDER")]
    pub record: PathBuf,
    /// The targets that it wrote, in the same order.
    #[arg(long = "target", short = 't', value_name = "TARGET", required = true)]
    pub targets: Vec<String>,
}

/// Reads everything again and says what is not as it must be.
pub fn verify(options: &VerifyOptions, world: &mut World) -> Result<(), CommandError> {
    let mut plan = Plan { name: "verify".to_owned(), ..Plan::default() };
    plan.targets = options.targets.iter().map(plan::Target::named).collect();
    // Targets are found first: their sizes say how large the records must be.
    let groups = |unit: &dyn Fn(usize) -> u64, sizes: &dyn Fn(usize) -> u64| {
        let group = |index: usize| read_group(&options.targets[index], index, (0, sizes(index)), unit(index));
        (0..options.targets.len()).map(group).collect::<Vec<_>>()
    };
    plan.stages = vec![Stage::new("verify", groups(&|_| 4096, &|_| 1 << 20))];
    let targets = prepare::targets(&plan, &Consent::default(), world)?;
    let mut ledgers = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        let path = record_path(&options.record, index);
        let ledger = Ledger::open(&path, target.size).map_err(|error| {
            let kind = if error.kind() == std::io::ErrorKind::NotFound {
                ErrorKind::NotFound
            } else {
                ErrorKind::Refused
            };
            CommandError::new(kind, format!("read the record {} of {}: {error}", path.display(), target.name))
        })?;
        ledgers.push(Arc::new(ledger));
    }
    plan.stages =
        vec![Stage::new("verify", groups(&|index| ledgers[index].unit(), &|index| targets[index].size))];
    let interrupted = run::on_signals();
    let settings = Settings {
        processors: runner::this_machine().processors as usize,
        go_on: true,
        interrupted: interrupted.clone(),
        ledgers: ledgers.into_iter().map(Some).collect(),
        gate: None,
    };
    let done = runner::run(&plan, &targets, &settings, &world.program, &mut |_| ());
    run::end_signals(&interrupted);
    let done = done.map_err(|error| CommandError::new(ErrorKind::Failed, error.to_string()))?;
    let mut compared = 0;
    for group in done.stages.iter().flat_map(|stage| &stage.groups) {
        let verified = group.verified.unwrap_or_default();
        compared += verified.compared;
        let text = format!("{}: {} units compared, {} wrong", group.name, verified.compared, verified.wrong);
        match world.json {
            true => world.say_json(&serde_json::json!({
                "target": group.name, "compared": verified.compared, "wrong": verified.wrong
            })),
            false => world.say(&text),
        }?;
    }
    run::end_of(&done)?;
    match compared {
        0 => Err(CommandError::new(ErrorKind::Refused, "the records contain no write: nothing was compared")),
        _ => Ok(()),
    }
}
