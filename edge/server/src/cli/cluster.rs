//! `cluster`.

use super::members::{self, CertificateCommand, INIT_EXAMPLES, InitOptions};
use super::rebuild::{self, RebuildOptions};
use super::upgrade::{self, UpgradeOptions};
use super::{Shell, seconds, text};
use crate::api::types::{BalanceView, ChangeSettings, DirectoryMemberView, DirectoryView, MemberRole};
use crate::directory::shared::record::{BalanceMode, ClusterSettings};
use crate::failure::Failure;
use clap::{Subcommand, ValueEnum};

/// What can be done with the cluster as a whole.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Make this host the first of a cluster of several, in the etcd that its configuration names.
    ///
    /// Writes the cluster's first records, and makes the authority that gives hosts and people their certificates. A host that stands
    /// alone keeps its disks, and goes on serving if it runs: add [cluster] to its configuration file first.
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitOptions),
    /// Certificates of hosts, and the authorities that give them.
    #[command(subcommand)]
    Certificates(CertificateCommand),
    /// Its settings.
    Show,
    /// Change a setting: repair-delay 90m, replacements 16, replacements-per-host 4, balance proactive|reactive|off
    Set {
        /// Which.
        setting: Setting,
        /// Its value.
        value: String,
    },
    /// How even the devices are, and what is done about it.
    Balance,
    /// Show where the directory stands, and which members etcd has.
    #[command(after_help = DIRECTORY_EXAMPLES)]
    Directory,
    /// Make a new directory from what the hosts and their devices know, in the empty etcd that the configuration names:
    /// for a cluster whose etcd lost its data.
    RebuildDirectory(RebuildOptions),
    /// Raise the level of the records to the next, once all hosts run a release that understands it; shows what they run.
    Upgrade(UpgradeOptions),
}

const DIRECTORY_EXAMPLES: &str = "\
Examples:
  drystone cluster directory
  drystone cluster directory --json";

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Setting {
    /// How long a component may be missing before another takes its place: 60m, 90s.
    RepairDelay,
    /// Components of the whole cluster that are filled at once; 0: none, repairs included, and what is on its way is called off.
    Replacements,
    /// Components of one host that are filled at once.
    ReplacementsPerHost,
    /// Which devices are evened out: proactive (nearly full or very uneven ones), reactive (nearly full ones), off.
    Balance,
    /// Whether components stand in for absent ones, so that what is written meanwhile is kept as often as policies say: on, off.
    StandIns,
}

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, command: ClusterCommand) -> Result<(), Failure> {
    match command {
        ClusterCommand::Init(options) => members::init(shell, &options).await,
        ClusterCommand::Certificates(command) => members::certificates(shell, command).await,
        ClusterCommand::Show => {
            let settings: ClusterSettings = shell.client.get("/api/v1/cluster/settings").await?;
            shell.show(&settings, settings_text)
        }
        ClusterCommand::Set { setting, value } => {
            let change = change_of(setting, &value)?;
            let settings: ClusterSettings = shell.client.patch("/api/v1/cluster/settings", &change).await?;
            shell.show(&settings, settings_text)
        }
        ClusterCommand::RebuildDirectory(options) => rebuild::run(shell, options).await,
        ClusterCommand::Upgrade(options) => upgrade::run(shell, &options).await,
        ClusterCommand::Directory => {
            let directory: DirectoryView = shell.client.get("/api/v1/cluster/directory").await?;
            shell.show(&directory, directory_text)
        }
        ClusterCommand::Balance => {
            let balance: BalanceView = shell.client.get("/api/v1/cluster/balance").await?;
            shell.show(&balance, balance_text)
        }
    }
}

fn directory_text(directory: &DirectoryView) -> String {
    let mut shown = match directory.is_managed {
        true => format!("{}, which this cluster runs for itself", directory.place),
        false => directory.place.clone(),
    };
    if !directory.members.is_empty() {
        let row = |member: &DirectoryMemberView| {
            let role = match member.role {
                MemberRole::Voter => "voter",
                MemberRole::Learner => "learner",
            };
            let host = member.host.clone().unwrap_or_else(|| "-".to_owned());
            let answers = if member.answers { "yes" } else { "no" };
            vec![host, member.address.clone(), role.to_owned(), answers.to_owned()]
        };
        let rows: Vec<Vec<String>> = directory.members.iter().map(row).collect();
        shown += &format!("\n{}", text::table(&["host", "member at", "role", "answers"], &[], rows));
    }
    shown
}

fn change_of(setting: Setting, value: &str) -> Result<ChangeSettings, Failure> {
    let number = || value.parse().map_err(|_| Failure::usage(format!("`{value}` is not a number")));
    let nothing = ChangeSettings::default();
    Ok(match setting {
        Setting::RepairDelay => {
            let delay = if value.trim_end_matches(['s', 'm', 'h']) == "0" { Ok(0) } else { seconds(value) };
            ChangeSettings { repair_delay_seconds: Some(delay.map_err(Failure::usage)?), ..nothing }
        }
        Setting::Replacements => ChangeSettings { replacements_max: Some(number()?), ..nothing },
        Setting::ReplacementsPerHost => {
            ChangeSettings { replacements_per_host_max: Some(number()?), ..nothing }
        }
        Setting::Balance => {
            let mode = BalanceMode::from_str(value, false).map_err(|_| {
                Failure::usage(format!(
                    "`{value}` is no way to even devices out: proactive, reactive and off are"
                ))
            })?;
            ChangeSettings { balance: Some(mode), ..nothing }
        }
        Setting::StandIns => {
            let stand_ins = match value {
                "on" => true,
                "off" => false,
                _ => return Err(Failure::usage(format!("`{value}` is neither on nor off"))),
            };
            ChangeSettings { stand_ins: Some(stand_ins), ..nothing }
        }
    })
}

fn mode_text(mode: BalanceMode) -> String {
    mode.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn settings_text(settings: &ClusterSettings) -> String {
    let replacements = match settings.replacements_max {
        0 => "0: nothing is made anew, emptied or evened out".to_owned(),
        most => most.to_string(),
    };
    text::facts(&[
        ("repair-delay", text::duration(settings.repair_delay_seconds as f64)),
        ("replacements", replacements),
        ("replacements-per-host", settings.replacements_per_host_max.to_string()),
        ("balance", mode_text(settings.balance)),
        ("stand-ins", if settings.stand_ins { "on" } else { "off" }.to_owned()),
    ])
}

fn balance_text(balance: &BalanceView) -> String {
    let state = match (balance.state.as_str(), &balance.decided_by) {
        ("", Some(host)) => format!("host {host} decides and knows"),
        ("", None) => "nobody decides: no host is sure to be there".to_owned(),
        ("even", _) => "devices are even".to_owned(),
        ("uneven", _) => "devices differ by much".to_owned(),
        (_, _) => "a device is nearly full".to_owned(),
    };
    let mut facts =
        vec![("mode", mode_text(balance.mode)), ("state", state), ("moving", balance.moving.to_string())];
    facts.extend(balance.paused.clone().map(|why| ("paused", why)));
    facts.extend(balance.stuck.clone().map(|why| ("stuck", why)));
    let row = |device: &crate::api::types::FullnessView| {
        let state = if device.in_service { "takes new components" } else { "takes nothing new" };
        vec![device.device.clone(), format!("{:.1} %", device.percent), state.to_owned()]
    };
    let table = text::table(&["device", "used", "state"], &[1], balance.devices.iter().map(row).collect());
    format!("{}\n\n{table}", text::facts(&facts))
}
