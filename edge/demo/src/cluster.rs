//! `drystone demo --hosts N`: several hosts on one machine, a mirrored disk, and a host that dies under load.
//!
//! Each host is a process of its own with files as devices; the directory that they share is served by the demo, on a socket
//! in its folder, and so are orders to its hosts.

use super::hosts::Hosts;
use super::load::{self, Verified, unix_address};
use api::client::Client;
use api::client::disk_path;
use api::types::{CreateDisk, DiskView, HostSummary, HostView, LocalView};
use axum::extract::{Path as Address, State};
use axum::routing::post;
use axum::{Json, Router};
use base::ClusterId;
use base::units::{MIB, format_bytes};
use cli::demo::{Action, DemoOptions, socket};
use control::directory::shared::{Store, router};
use control::random_bits;
use control::{host, lock};
use failure::{Code, Failure};
use serde::Serialize;
use serde_json::json;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The disk that is shown.
const DISK: &str = "mirrored";
/// Its size.
const DISK_SIZE: u64 = 1024 * MIB;
/// What the load writes and verifies.
const LOAD_AREA: u64 = 256 * MIB;
/// How long a few hosts may take to find each other, and a disk to become whole.
const PATIENCE: Duration = Duration::from_secs(120);
/// The same for each host of many: each has to find all others.
const PATIENCE_OF_HOST: Duration = Duration::from_secs(10);
/// How often that is looked at.
const POLL: Duration = Duration::from_millis(100);
/// Where hosts listen for clients: below the ports that the kernel gives to outgoing connections, one of which might have a
/// host's port while the host is down.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// Names of hosts have these; more hosts than letters have two each.
const LETTERS: usize = 26;
/// Parts of the load's time: the host dies after one, and returns after two.
const PARTS: u64 = 4;

/// What the load showed.
#[derive(Serialize)]
struct Report {
    disk: DiskView,
    killed: String,
    load: Verified,
    resync_bytes: u64,
    resync_seconds: f64,
}

/// Runs it.
///
/// # Errors
/// What stood in the way, and what to do.
pub async fn run(folder: &Path, count: usize, options: &DemoOptions, is_json: bool) -> Result<(), Failure> {
    let _lock = lock::take(folder)?;
    let store = Arc::new(Store::open(&folder.join("directory.redb"), ClusterId(random_bits()?))?);
    store.begin()?;
    let names: Vec<String> = (0..count).map(name_of).collect();
    let ports = free_ports(count)?;
    let configs = names
        .iter()
        .zip(ports)
        .map(|(name, port)| Ok((name.clone(), write_config(folder, name, port, options.shards)?)));
    let hosts = Hosts::new(configs.collect::<Result<_, Failure>>()?)?;
    let listener = control::http::doors::bind_unix(&socket(folder))
        .await
        .map_err(|error| Failure::failed(format!("listen at {}", socket(folder).display()), error))?;
    let orders = Router::new().route("/demo/v1/hosts/{name}/{action}", post(order)).with_state(hosts.clone());
    let server = axum::serve(listener, router(store).merge(orders));
    let server = tokio::spawn(async move { server.await });
    let demo = Demo { folder: folder.to_owned(), names, hosts: hosts.clone(), is_json };
    let mut told = host::told_to_stop()?;
    let shown = tokio::select! {
        shown = demo.show(options) => shown,
        signal = &mut told => Err(Failure::new(Code::Failed, format!("ended by {signal}"))),
    };
    if shown.is_ok() && !options.exit {
        told.await;
    }
    let ended = hosts.end().await;
    server.abort();
    // It may be gone already; a stale one is replaced at the next start.
    let _ = std::fs::remove_file(socket(folder));
    shown?;
    ended.map(|_| ())
}

async fn order(
    State(hosts): State<Hosts>,
    Address((name, action)): Address<(String, String)>,
) -> Result<Json<String>, Failure> {
    let action = Action::parse(&action)
        .ok_or_else(|| Failure::usage(format!("`{action}` is nothing that a host can be told")))?;
    hosts.order(&name, action).await.map(Json)
}

/// `a`, `b`, … `z`, `aa`, `ab`, … .
fn name_of(index: usize) -> String {
    let letter = |index: usize| char::from(b'a' + (index % LETTERS) as u8).to_string();
    match index / LETTERS {
        0 => letter(index),
        round => letter(round - 1) + &letter(index),
    }
}

/// A host's folder with its configuration; one that is there stays, and with it the port.
fn write_config(folder: &Path, name: &str, port: u16, shards: u8) -> Result<PathBuf, Failure> {
    let own = folder.join(name);
    let path = own.join("host.toml");
    if path.exists() {
        return Ok(path);
    }
    let failed = |error: std::io::Error| Failure::failed(format!("make {}", path.display()), error);
    std::fs::create_dir_all(&own).map_err(failed)?;
    let text: String = std::iter::once(format!(
        "name = {name:?}\n\
         data_dir = \"d\"\n\
         [listen]\n\
         nbd = [\"127.0.0.1:{port}\", \"unix:nbd.sock\"]\n\
         [cluster]\n\
         directory = \"unix:{}\"\n\
         shards = {shards}\n\
         [memory]\n\
         buffers = \"{}MiB\"\n\
         tables = \"128MiB\"\n",
        socket(folder).display(),
        256 * u16::from(shards)
    ))
    .chain((1..=shards).map(group_config))
    .collect();
    std::fs::write(&path, text).map_err(failed)?;
    Ok(path)
}

/// One of a host's groups.
fn group_config(number: u8) -> String {
    let number = if number == 1 { String::new() } else { format!("-{number}") };
    format!(
        "[[group]]\n\
         log = \"log{number}.img\"\n\
         capacity = [\"capacity{number}.img\"]\n\
         log_size = \"512MiB\"\n\
         file_size = \"8GiB\"\n\
         create = \"if-blank\"\n"
    )
}

/// Ports that nobody has.
fn free_ports(count: usize) -> Result<Vec<u16>, Failure> {
    let room = PORTS.end - PORTS.start;
    let first = (random_bits()? % u128::from(room)) as u16;
    let ports = (0..room).map(|index| PORTS.start + (first + index) % room);
    let free: Vec<u16> =
        ports.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).take(count).collect();
    match free.len() == count {
        true => Ok(free),
        false => Err(Failure::refused(format!(
            "{count} ports of 127.0.0.1 from {} to {} are needed, and {} are free",
            PORTS.start,
            PORTS.end,
            free.len()
        ))),
    }
}

struct Demo {
    folder: PathBuf,
    names: Vec<String>,
    hosts: Hosts,
    is_json: bool,
}

impl Demo {
    fn say(&self, text: &str) {
        if !self.is_json {
            println!("{text}");
        }
    }

    fn client(&self, name: &str) -> Client {
        Client::Unix(self.folder.join(name).join("d/api.sock"))
    }

    async fn show(&self, options: &DemoOptions) -> Result<(), Failure> {
        for name in &self.names {
            self.hosts.order(name, Action::Start).await?;
        }
        self.all_see_all().await?;
        self.say(&format!(
            "{} hosts in {}: {}",
            self.names.len(),
            self.folder.display(),
            self.names.join(", ")
        ));
        if options.bare {
            self.reach(options.exit).await?;
            return Ok(());
        }
        let report = self.kill_one_under_load(options.seconds).await?;
        self.tell(&report);
        self.reach(options.exit).await?;
        if self.is_json {
            println!("{:#}", json!({ "folder": self.folder, "hosts": self.names, "report": report }));
        }
        Ok(())
    }

    /// Waits until every host can reach all others.
    async fn all_see_all(&self) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE.max(PATIENCE_OF_HOST * self.names.len() as u32);
        for name in &self.names {
            let client = self.client(name);
            loop {
                let hosts = client.get::<Vec<HostSummary>>("/api/v1/hosts").await;
                let is_complete =
                    |hosts: &Vec<HostSummary>| hosts.iter().filter(|host| host.is_reachable).count();
                if hosts.as_ref().is_ok_and(|hosts| is_complete(hosts) >= self.names.len()) {
                    break;
                }
                if Instant::now() >= until {
                    let log = self.folder.join(name).join("log");
                    return Err(Failure::new(
                        Code::Unreachable,
                        format!("host {name} does not find the others"),
                    )
                    .hint(format!("{} says why", log.display())));
                }
                tokio::time::sleep(POLL).await;
            }
        }
        Ok(())
    }

    async fn disk(&self, client: &Client) -> Result<DiskView, Failure> {
        match client.get(&disk_path(DISK)).await {
            Err(failure) if failure.code == Code::NotFound => {
                let policy = Some("default,stripes=1".to_owned());
                let request =
                    CreateDisk { name: DISK.to_owned(), size: DISK_SIZE, policy, ..CreateDisk::default() };
                client.post("/api/v1/disks", &request).await
            }
            other => other,
        }
    }

    async fn kill_one_under_load(&self, seconds: u64) -> Result<Report, Failure> {
        let first = self.client(&self.names[0]);
        let disk = self.disk(&first).await?;
        self.say(&format!(
            "\nDisk `{DISK}` of {} with policy {}:\n  {}",
            format_bytes(DISK_SIZE),
            disk.summary.policy,
            disk.layout.join("\n  ")
        ));
        let holders: Vec<&String> = disk.components.iter().filter_map(|one| one.host.as_ref()).collect();
        let user = *holders.first().ok_or_else(|| Failure::refused("the disk has no components"))?;
        let victim = *holders.get(1).ok_or_else(|| Failure::refused("the disk is on one host alone"))?;
        let client = self.client(user);
        let attached: DiskView = client.get(&disk_path(DISK)).await?;
        let seconds = seconds.max(PARTS);
        self.say(&format!(
            "\nLoad: fio over NBD at host {user}, 4 KiB random writes, each verified, {seconds} s; meanwhile host {victim} is \
             killed, and returns"
        ));
        let load = load::run_verified(unix_address(&attached)?, LOAD_AREA, seconds);
        let killing = async {
            tokio::time::sleep(Duration::from_secs(seconds) / PARTS as u32).await;
            self.say(&self.hosts.order(victim, Action::Kill).await?);
            tokio::time::sleep(Duration::from_secs(seconds) / PARTS as u32).await;
            let status: HostView = client.get("/api/v1/host").await?;
            for (name, lines) in &status.not_whole {
                self.say(&format!("disk {name}: {}", lines.join("; ")));
            }
            self.say(&self.hosts.order(victim, Action::Start).await?);
            let returned = Instant::now();
            self.becomes_whole(&client).await?;
            Ok::<Duration, Failure>(returned.elapsed())
        };
        let (load, resync) = tokio::join!(load, killing);
        let (load, resync) = (load?, resync?);
        let disk: DiskView = client.get(&disk_path(DISK)).await?;
        let local: LocalView = client.get("/api/v1/cluster/local").await?;
        let owner = local.owned.iter().find(|owned| owned.disk == disk.summary.id);
        Ok(Report {
            killed: victim.clone(),
            load,
            resync_bytes: owner.map_or(0, |owner| owner.copied_bytes),
            resync_seconds: resync.as_secs_f64(),
            disk,
        })
    }

    async fn becomes_whole(&self, client: &Client) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE;
        let mut said = String::new();
        loop {
            let disk: DiskView = client.get(&disk_path(DISK)).await?;
            let lines = disk.summary.not_whole;
            if lines.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Failure::failed("wait until the disk is whole", lines.join("; ")));
            }
            let line = lines.join("; ");
            if line != said {
                self.say(&format!("  {line}"));
                said = line;
            }
            tokio::time::sleep(POLL * 5).await;
        }
    }

    fn tell(&self, report: &Report) {
        let load = &report.load;
        self.say(&format!(
            "\nNo error reached fio: {} writes, {} reads verified\n\
             Longest that an I/O took: {:.0} ms\n\
             Host {} was brought up to date by copying {}; {:.1} s after its start all was whole\n  {}",
            load.writes,
            load.reads,
            load.longest_ms,
            report.killed,
            format_bytes(report.resync_bytes),
            report.resync_seconds,
            report.disk.layout.join("\n  ")
        ));
    }

    async fn reach(&self, exit: bool) -> Result<(), Failure> {
        let program =
            std::env::current_exe().map_or_else(|_| "drystone".to_owned(), |path| path.display().to_string());
        let api = self.client(&self.names[0]);
        self.say(&format!(
            "\nTry:\n  {program} --api {api} status\n  {program} --api {api} disk show {DISK}\n  {program} host kill {} --demo {}",
            self.names[self.names.len() - 1],
            self.folder.display()
        ));
        if !exit {
            self.say(&crate::console::text(&api, &program).await?);
        }
        Ok(())
    }
}
