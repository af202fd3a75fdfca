//! `lab`: the lab's commands, with what they need of this program: its output, its API for virtual disks, a place for results.

use super::{Cli, Command, find_api, user_data_dir};
use crate::api::types::DiskView;
use crate::failure::{Code, Failure};
use lab::commands::{CommandError, ErrorKind, FoundDisk, LabCommand, World};
use std::io::IsTerminal;

/// Does what `cli` says of the lab.
///
/// # Errors
/// What the lab says.
pub fn measure(cli: Cli) -> Result<(), Failure> {
    let command = match cli.command {
        Command::Lab(command) => command,
        Command::Lens(options) => LabCommand::Lens(options),
        _ => unreachable!("only the lab's commands come here"),
    };
    let api = cli.api;
    let find_disk = |name: &str| find_disk(api.as_deref(), name);
    let mut out = std::io::stdout();
    let mut world = World {
        out: &mut out,
        json: cli.json,
        interactive: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        program: format!("drystone {}", env!("CARGO_PKG_VERSION")),
        find_disk: &find_disk,
        keep: user_data_dir().map(|folder| folder.join("lab")),
    };
    lab::commands::perform(command, &mut world).map_err(failure)
}

/// Where a host serves a disk to programs on this machine.
fn find_disk(api: Option<&str>, name: &str) -> Result<FoundDisk, CommandError> {
    let found = || {
        let client = find_api(api)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::failed("start a runtime", error))?;
        let disk: DiskView = runtime.block_on(client.get(&super::disks_path(name)))?;
        let address = super::transfer::address(&disk)?;
        Ok(FoundDisk { address, clients: disk.clients.len() as u64 })
    };
    found().map_err(|failure: Failure| {
        let kind = match failure.code {
            Code::Usage => ErrorKind::Usage,
            Code::NotFound => ErrorKind::NotFound,
            Code::Refused | Code::Conflict => ErrorKind::Refused,
            Code::Failed | Code::Unreachable => ErrorKind::Failed,
        };
        let mut error = CommandError::new(kind, format!("disk:{name}: {}", failure.error));
        error.hint = failure.hint;
        error
    })
}

fn failure(error: CommandError) -> Failure {
    let code = match error.kind {
        ErrorKind::Usage => Code::Usage,
        ErrorKind::Refused => Code::Refused,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Failed => Code::Failed,
    };
    let failure = Failure::new(code, error.text);
    match error.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
