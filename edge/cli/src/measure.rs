//! `lab`: the lab's commands, with what they need of this program: its output, its API for virtual disks, a place for results.

use crate::arguments::{Cli, Command};
use crate::find::find_api;
use api::client::Client;
use api::client::disk_path;
use api::identity::user_data_dir;
use api::types::{CreateDisk, DiskView, EventQuery, EventView, EventsView, HistogramsView};
use failure::{Code, Failure};
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST};
use iostats::Statistics;
use lab::commands::{CommandError, ErrorKind, FoundDisk, LabCommand, MetricsText, VirtualDisks, World};
use lab::system::Exporter;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

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
    let mut out = std::io::stdout();
    let mut world = World {
        out: &mut out,
        json: cli.json,
        interactive: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        program: format!("drystone {}", api::program::RELEASE),
        disks: Arc::new(HostDisks { api: cli.api, identity: cli.identity }),
        keep: user_data_dir().map(|folder| folder.join("lab")),
    };
    lab::commands::perform(command, &mut world).map_err(failure)
}

/// The virtual disks that a host serves to programs on this machine.
struct HostDisks {
    /// Where its API is, if somebody said so.
    api: Option<String>,
    /// The folder of the identity to show there.
    identity: Option<PathBuf>,
}

impl HostDisks {
    /// Asks the host's API something, and waits for the answer.
    fn ask<T>(&self, question: impl AsyncFnOnce(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let client = find_api(self.api.as_deref(), self.identity.as_deref())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::failed("start a runtime", error))?;
        runtime.block_on(question(&client))
    }
}

impl VirtualDisks for HostDisks {
    fn find(&self, name: &str) -> Result<FoundDisk, CommandError> {
        let found = || {
            let disk: DiskView = self.ask(async |client| client.get(&disk_path(name)).await)?;
            let address = address(&disk)?;
            Ok(FoundDisk { address, clients: disk.clients.len() as u64, about: about(&disk) })
        };
        told(name, found())
    }

    fn statistics(&self, name: &str) -> Result<Statistics, CommandError> {
        let found = || {
            let path = format!("{}/histograms", disk_path(name));
            let view: HistogramsView = self.ask(async |client| client.get(&path).await)?;
            let bytes = base::unhex(&view.encoded)
                .ok_or_else(|| Failure::failed("read its histograms", "they are not hexadecimal"))?;
            Statistics::decode(&bytes).map_err(|error| Failure::failed("read its histograms", error))
        };
        told(name, found())
    }

    fn create(&self, name: &str, size: u64, policy: &str) -> Result<(), CommandError> {
        let policy = Some(policy.to_owned()).filter(|policy| !policy.is_empty());
        let request = CreateDisk { name: name.to_owned(), size, policy, ..CreateDisk::default() };
        let made = self.ask(async |client| client.post::<DiskView>("/api/v1/disks", &request).await);
        let made = made.map(|disk| {
            disk.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        });
        told(name, made)
    }

    fn serve(&self, address: &str, text: MetricsText) -> Result<String, CommandError> {
        let failed =
            |error: std::io::Error| converted(Failure::failed(format!("listen on {address}"), error));
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                let answer = move || {
                    let text = text();
                    async move { ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text) }
                };
                axum::serve(listener, axum::Router::new().route("/metrics", axum::routing::get(answer))).await
            })
        });
        Ok(bound.to_string())
    }

    fn exporter(&self, address: Option<&str>) -> Result<Box<dyn Exporter>, CommandError> {
        ApiExporter::new(self, address).map(|made| Box::new(made) as Box<dyn Exporter>).map_err(converted)
    }

    fn delete(&self, name: &str) -> Result<(), CommandError> {
        let path = disk_path(name);
        let escaped = path.rsplit('/').next().unwrap_or_default();
        let path = format!("{path}?confirm={escaped}");
        told(name, self.ask(async |client| client.delete::<()>(&path).await))
    }
}

/// Metrics at an address: a host's, or another exporter's.
struct ApiExporter {
    client: Client,
    path: String,
    runtime: tokio::runtime::Runtime,
    /// Whether it is a host of Drystone, which tells of events too.
    is_host: bool,
}

impl ApiExporter {
    fn new(disks: &HostDisks, address: Option<&str>) -> Result<ApiExporter, Failure> {
        let exporter = address.and_then(|text| text.strip_prefix("http://"));
        let (client, path) = match exporter {
            Some(rest) => {
                let (place, path) = rest.split_once('/').unwrap_or((rest, "metrics"));
                (Client::Tcp(place.to_owned()), format!("/{path}"))
            }
            None => {
                let api = address.or(disks.api.as_deref());
                (find_api(api, disks.identity.as_deref())?, "/metrics".to_owned())
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::failed("start a runtime", error))?;
        Ok(ApiExporter { client, path, runtime, is_host: exporter.is_none() })
    }
}

impl Exporter for ApiExporter {
    fn name(&self) -> String {
        self.client.to_string()
    }

    fn scrape(&mut self) -> Result<String, String> {
        let host = match &self.client {
            Client::Tcp(address) => address.as_str(),
            Client::Unix(_) | Client::Tls { .. } | Client::Joining { .. } => "localhost",
        };
        let request = Request::get(&self.path).header(HOST, host).body(Full::default());
        let request = request.map_err(|error| error.to_string())?;
        let (status, body) =
            self.runtime.block_on(self.client.send(request)).map_err(|failure| failure.error)?;
        match status.is_success() {
            true => String::from_utf8(body).map_err(|_| "its answer is no text".to_owned()),
            false => Err(format!("it answered {status}")),
        }
    }

    fn events(&mut self, seconds: u64) -> Result<Vec<(u64, String)>, String> {
        if !self.is_host {
            return Ok(Vec::new());
        }
        let query = EventQuery { since: Some(seconds), ..EventQuery::default() }.text();
        let client = &self.client;
        let found = self.runtime.block_on(async {
            match client.get::<EventsView>(&format!("/api/v1/cluster/events{query}")).await {
                Ok(view) => Ok(view.events),
                // A host alone has no cluster to ask.
                Err(_) => client.get::<Vec<EventView>>(&format!("/api/v1/events{query}")).await,
            }
        });
        let events = found.map_err(|failure| failure.error)?;
        let told = |event: EventView| (event.time_ms, format!("{}: {}", event.subject, event.text));
        Ok(events.into_iter().map(told).collect())
    }
}

/// The address by which a program on this machine reaches a disk: a unix socket if there is one.
fn address(disk: &DiskView) -> Result<String, Failure> {
    let unix = disk.addresses.iter().find(|address| address.starts_with("nbd+unix:"));
    let plain = disk.addresses.iter().find(|address| address.starts_with("nbd://"));
    unix.or(plain).cloned().ok_or_else(|| {
        Failure::refused("the host has no NBD socket that needs no certificate")
            .hint("add a unix socket to [listen] nbd")
    })
}

/// A disk in lines for people, to be kept with results.
fn about(disk: &DiskView) -> Vec<String> {
    let rules: Vec<String> = disk.rules.iter().map(|(rule, value)| format!("{rule}={value}")).collect();
    let mut lines = vec![format!("policy {} ({})", disk.summary.policy, rules.join(", "))];
    lines.extend(disk.owner.iter().map(|owner| format!("owner {owner}")));
    lines.extend(disk.layout.iter().cloned());
    lines
}

fn told<T>(name: &str, found: Result<T, Failure>) -> Result<T, CommandError> {
    found.map_err(|failure| {
        let error = converted(failure);
        CommandError { text: format!("disk:{name}: {}", error.text), ..error }
    })
}

fn converted(failure: Failure) -> CommandError {
    let kind = match failure.code {
        Code::Usage => ErrorKind::Usage,
        Code::NotFound => ErrorKind::NotFound,
        Code::Refused | Code::Conflict | Code::Denied | Code::Unauthenticated => ErrorKind::Refused,
        Code::Failed | Code::Unreachable | Code::TooMany => ErrorKind::Failed,
    };
    CommandError { kind, text: failure.error, hint: failure.hint }
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
