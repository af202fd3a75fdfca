//! `tasks`: what runs, who asked for it, and how to stop it.

use crate::shell::Shell;
use crate::text;
use api::types::{TaskView, TasksView};
use base::units::format_bytes;
use clap::{Args, Subcommand};
use failure::{Code, Failure};

/// Options of `tasks`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TaskOptions {
    /// Operation instead of listing the tasks.
    #[command(subcommand)]
    command: Option<TaskCommand>,
}

/// What can be done with tasks.
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Stop a task: end a maintenance or an evacuation, move a disk back into its former layout, end an estimate.
    Stop {
        /// Id of the task, as `tasks` shows it: move/web.
        id: String,
    },
}

/// Does it.
///
/// # Errors
/// What the host says, or that the task does not run or cannot be stopped.
pub async fn run(shell: &mut Shell<'_>, options: TaskOptions) -> Result<(), Failure> {
    let found: TasksView = shell.client.get("/api/v1/tasks").await?;
    match options.command {
        None => shell.show(&found, tasks_text),
        Some(TaskCommand::Stop { id }) => stop(shell, &found, &id).await,
    }
}

async fn stop(shell: &mut Shell<'_>, found: &TasksView, id: &str) -> Result<(), Failure> {
    let Some(task) = found.tasks.iter().find(|task| task.id == id) else {
        let hint = "see `drystone tasks`";
        return Err(Failure::new(Code::NotFound, format!("no task `{id}` runs")).hint(hint));
    };
    let Some(stop) = &task.stop else {
        return Err(Failure::refused(format!("task {id} cannot be stopped: it ends by itself")));
    };
    shell.client.act(stop).await?;
    shell.show(stop, |stop| format!("{id}: {}: done", stop.label))
}

fn tasks_text(found: &TasksView) -> String {
    let mut shown = match found.tasks.is_empty() {
        true => "no task runs".to_owned(),
        false => {
            let headings = ["id", "subject", "done", "left", "ends in", "by", "state"];
            text::table(&headings, &[2, 3, 4], found.tasks.iter().map(row).collect())
        }
    };
    if !found.silent.is_empty() {
        let hosts = found.silent.join(", ");
        shown += &format!("\n\nhosts that did not answer: {hosts}: tasks that only they know of are missing");
    }
    shown
}

fn row(task: &TaskView) -> Vec<String> {
    let or_nothing = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let waits = task.waits_for.as_ref().map(|what| format!("; waits for {what}"));
    vec![
        task.id.clone(),
        task.subject.clone(),
        or_nothing(task.progress.map(|share| format!("{:.0} %", share * 100.0))),
        or_nothing(task.left_bytes.map(format_bytes)),
        or_nothing(task.seconds_left.map(text::duration)),
        or_nothing(task.who.clone()),
        format!("{}{}", task.text, waits.unwrap_or_default()),
    ]
}
