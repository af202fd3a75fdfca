//! `lab agent`, and running a plan on agents.

use super::prepare::{self, Consent};
use super::{CommandError, ErrorKind, World};
use crate::agents::{self, DriveSettings, Driver, Invitation};
use crate::runner::Event;
use clap::Args;
use measured::Run;
use plan::Plan;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Options of `lab agent`.
#[derive(Debug, Clone, Args)]
pub struct AgentOptions {
    /// Address to wait for the driver at, ADDRESS:PORT. Port 0 takes any free port.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS:PORT")]
    pub listen: String,
    /// File to write the invitation to as well.
    #[arg(long, value_name = "FILE")]
    pub invitation: Option<PathBuf>,
    /// Keep running after a session, with a new invitation for the next one.
    #[arg(long)]
    pub stay: bool,
}

/// Agents that run a plan.
#[derive(Debug, Clone, Default, Args)]
pub struct AgentsOptions {
    /// Invitation of an agent, as the agent printed it; once per agent. A job runs on all agents; each machine of an experiment runs on one.
    #[arg(long = "agent", value_name = "INVITATION")]
    pub agents: Vec<String>,
    /// File with one invitation per line.
    #[arg(long = "agents", value_name = "FILE")]
    pub agents_file: Option<PathBuf>,
    /// Agent for a virtual machine of the plan, MACHINE=NUMBER (1 is the first) [default: in turn].
    #[arg(long = "place", value_name = "VM=N")]
    pub place: Vec<String>,
}

/// Serves drivers.
pub fn agent(options: &AgentOptions, world: &mut World) -> Result<(), CommandError> {
    let listener = TcpListener::bind(&options.listen)
        .map_err(|error| CommandError::failed(format!("listen on {}", options.listen), error))?;
    let address =
        listener.local_addr().map_err(|error| CommandError::failed("find the own address", error))?;
    // The name that the driver can reach is the one that was given; only its port may be new.
    let host = options.listen.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
    let address = format!("{host}:{}", address.port());
    let program = world.program.clone();
    let disks = world.disks.clone();
    let find: agents::Find = Arc::new(move |plan, destroy| {
        let consent = Consent { destroy: destroy.to_vec() };
        let mut nowhere = std::io::sink();
        let mut world = World {
            out: &mut nowhere,
            json: false,
            interactive: false,
            program: String::new(),
            disks: disks.clone(),
            keep: None,
        };
        prepare::targets(plan, &consent, &mut world).map_err(|error| match error.hint {
            Some(hint) => format!("{}; {hint}", error.text),
            None => error.text,
        })
    });
    loop {
        let mut failed = None;
        agents::serve(&listener, &address, &program, &find, &mut |invitation| {
            failed = invite(invitation, options, world).err();
        })
        .map_err(|error| CommandError::new(ErrorKind::Failed, error.to_string()))?;
        if let Some(error) = failed {
            return Err(error);
        }
        eprintln!("lab: the session has ended");
        if !options.stay {
            return Ok(());
        }
    }
}

fn invite(invitation: &Invitation, options: &AgentOptions, world: &mut World) -> Result<(), CommandError> {
    let text = invitation.to_string();
    if let Some(path) = &options.invitation {
        write_secret(path, &text).map_err(|error| {
            CommandError::failed(format!("write the invitation to {}", path.display()), error)
        })?;
    }
    match world.json {
        true => world.say_json(&serde_json::json!({ "invitation": text })),
        false => world.say(&text),
    }?;
    world.out.flush().map_err(|error| CommandError::failed("write the invitation", error))
}

/// Writes a file that only its owner reads, whole or not at all.
fn write_secret(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let beside = path.with_extension("new");
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    writeln!(file, "{text}")?;
    std::fs::rename(beside, path)
}

impl AgentsOptions {
    /// The invitations that were given, if any.
    pub fn invitations(&self) -> Result<Vec<Invitation>, CommandError> {
        let mut texts = self.agents.clone();
        if let Some(path) = &self.agents_file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| CommandError::failed(format!("read {}", path.display()), error))?;
            texts.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
        }
        texts
            .iter()
            .map(|text| {
                Invitation::parse(text)
                    .map_err(|error| CommandError::new(ErrorKind::Usage, error.to_string()))
            })
            .collect()
    }
}

/// Runs a plan on agents. The plan that is returned with the result names every machine.
pub fn run_on_agents(
    plan: &Plan,
    invitations: &[Invitation],
    options: &AgentsOptions,
    destroy: &[String],
    settings: Conditions,
    observe: &mut dyn FnMut(&Plan, Event),
) -> Result<Run, CommandError> {
    let failed = |error: agents::DriveError| CommandError::new(ErrorKind::Failed, error.to_string());
    let mut driver = Driver::connect(invitations).map_err(failed)?;
    let placement = agents::place(plan, &driver.names(), &options.place)
        .map_err(|error| CommandError::new(ErrorKind::Usage, error.to_string()))?;
    let targets = driver.find(&placement, destroy, false).map_err(failed)?;
    let settings =
        DriveSettings { program: settings.program, go_on: settings.go_on, interrupted: settings.interrupted };
    let whole = placement.plan.clone();
    driver.run(&placement, targets, &settings, &mut |event| observe(&whole, event)).map_err(failed)
}

/// How a plan is run on agents.
pub struct Conditions {
    /// The driver's program and version.
    pub program: String,
    /// Whether I/Os that fail are counted, instead of ending the run.
    pub go_on: bool,
    /// Set to end the run.
    pub interrupted: Arc<AtomicBool>,
}
