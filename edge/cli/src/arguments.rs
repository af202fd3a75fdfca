//! What the program can be called with. Every module brings the options of its own commands.

use crate::demo::DemoOptions;
use crate::{
    attach, cluster, devices, disks, events, health, hosts, members, policies, series, support, tasks, top,
    what_if,
};
use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand};
use lab::commands::{LabCommand, LensOptions};
use std::path::PathBuf;

/// The command that writes the manual.
pub const MANUAL: &str = "manual";

const AFTER_HELP: &str = "\
Exit codes: 0 success, 1 failure (of `health`: something needs attention), 2 malformed input, 3 refused in the present state, 4 not
found, 5 exists already or changed meanwhile, 6 no host answers, 7 not allowed.

Sizes: 512, 4K, 10GiB, 1.5T; units are powers of 1024.";

/// Run virtual disks with a policy each on the local disks of Linux hosts.
#[derive(Debug, Parser)]
#[command(name = "drystone", version = api::program::RELEASE, after_help = AFTER_HELP)]
pub struct Cli {
    /// Address of the host's API: `https://ADDRESS:PORT`, `unix:PATH` or `127.0.0.1:PORT`.
    #[arg(long, global = true, env = "DRYSTONE_API", value_name = "ADDRESS")]
    pub(crate) api: Option<String>,
    /// Folder with the certificate to show there [default: drystone/identity in the user's data directory].
    #[arg(long, global = true, env = "DRYSTONE_IDENTITY", value_name = "DIR", value_parser = clap::builder::OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) identity: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Try Drystone: a datastore in a directory, a disk, real data and a real load.
    Demo(DemoOptions),
    /// Run a storage host until it is told to stop (SIGTERM, Ctrl-C); or list the hosts of a cluster.
    Host(HostOptions),
    /// Watch over the process of a host; not for people.
    #[command(name = api::program::WATCHER, hide = true)]
    Watcher(WatcherOptions),
    /// Write man pages and completions; for the package.
    #[command(name = MANUAL, hide = true)]
    Manual(ManualOptions),
    /// Manage the devices of hosts.
    #[command(subcommand)]
    Device(devices::DeviceCommand),
    /// Manage virtual disks.
    #[command(subcommand)]
    Disk(disks::DiskCommand),
    /// Show how guests attach to a disk: its address, and text to paste into QEMU, libvirt, Proxmox.
    Attach(attach::AttachOptions),
    /// Manage policies.
    #[command(subcommand)]
    Policy(policies::PolicyCommand),
    /// Manage the cluster as a whole: settings, balance, certificates, upgrades.
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Manage the people who work with the cluster.
    #[command(subcommand)]
    Person(members::PersonCommand),
    /// Get your certificate with a token.
    Login(members::LoginOptions),
    /// Show who the host takes you for, and what you may do.
    Whoami,
    /// Print a link that opens the web console of the host, once and within a minute, with your rights.
    Console,
    /// Show what is wrong and what to do about it. Exit code 1 if something needs attention.
    Health(health::HealthOptions),
    /// Show the host, its disk groups and devices; in a cluster also what is not compliant, and when it will be.
    Status,
    /// List what happened on all hosts: when, of which kind, to what, and why.
    Events(events::EventOptions),
    /// Forecast a change of the cluster: space, disks, resync. Nothing is changed.
    #[command(subcommand, name = "what-if")]
    WhatIf(what_if::WhatIfCommand),
    /// Show the resync of disks: what is copied, how much is left, and what waits for what.
    Resync,
    /// List the tasks that run: maintenance, evacuations, moves, copies, imports, rollbacks; or stop one.
    Tasks(tasks::TaskOptions),
    /// Write a support bundle: configuration, status, events, metrics and logs in one file, without secrets.
    SupportBundle(support::SupportOptions),
    /// Show what guests or a device did over time: the last hour by the second, 90 days by five minutes.
    Series(series::SeriesOptions),
    /// Show the load of every disk now.
    Top(top::TopOptions),
    /// Print the OpenAPI document of the API.
    Openapi,
    /// Measure any datastore with the jobs of fio, DiskSPD, Vdbench and Iometer.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Show what disks did: from vscsiStats captures, traces, results of the lab, or live from a block device.
    Lens(LensOptions),
}

/// Options of `host`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HostOptions {
    /// Configuration file of the host.
    #[arg(long, value_name = "FILE", required = true)]
    pub config: Option<PathBuf>,
    /// What to do instead of running one.
    #[command(subcommand)]
    pub command: Option<hosts::HostCommand>,
    /// Format the configured devices even if they hold other data, which is destroyed.
    #[arg(long)]
    pub force: bool,
}

/// What a watcher is started with; not for people.
#[derive(Debug, Clone, Args)]
pub struct WatcherOptions {
    /// The process to watch: the parent.
    #[arg(long)]
    pub pid: u32,
    /// Where the host's certificate is.
    #[arg(long)]
    pub data_dir: PathBuf,
}

/// Options of `manual`.
#[derive(Debug, Args)]
pub struct ManualOptions {
    /// Folder to create and write `*.1`, `drystone.bash`, `_drystone` and `drystone.fish` to.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
}
