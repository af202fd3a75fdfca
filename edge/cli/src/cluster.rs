//! `cluster`.

use super::estimate::{self, EstimateOptions};
use super::members::{self, CertificateCommand, InitOptions};
use super::rebuild::{self, RebuildOptions};
use super::upgrade::{self, UpgradeOptions};
use crate::shell::{Shell, seconds};
use crate::text;
use api::types::{
    BalanceMode, BalanceView, BalanceWord, ChangeSettings, DirectoryMemberView, DirectoryView, MemberRole,
    SettingsView,
};
use clap::{Subcommand, ValueEnum};
use failure::Failure;

/// What can be done with the cluster as a whole.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Initialize a cluster of several hosts with this one as the first, in the etcd that its configuration names.
    ///
    /// Writes the cluster's first records, and creates the authority that gives hosts and people their certificates. A host that
    /// stands alone keeps its disks, and continues to serve them if it runs: add [cluster] to its configuration file first.
    Init(InitOptions),
    /// Manage the certificates of hosts, and the authorities that sign them.
    #[command(subcommand)]
    Certificates(CertificateCommand),
    /// Show the settings of the cluster.
    Show,
    /// Change a setting: repair-delay 90m, replacements 16, replacements-per-host 4, balance proactive|reactive|off
    Set {
        /// Setting to change.
        setting: Setting,
        /// New value of the setting.
        value: String,
    },
    /// Show how evenly the devices are used, and what is moved to even them out.
    Balance,
    /// Estimate what compression and deduplication would save, before either is turned on.
    ///
    /// Figures are of a sample: `--start` has every host read a small share of its blocks in the background, and shows them when all
    /// hosts are done. Each figure has its standard error. The true value lies within two of these in 95 % of all samples.
    Estimate(EstimateOptions),
    /// Show where the directory is, and which members etcd has.
    Directory,
    /// Rebuild the directory of a cluster whose etcd lost its data.
    ///
    /// Creates a new directory in the empty etcd that the configuration names, from what the hosts and their devices know.
    RebuildDirectory(RebuildOptions),
    /// Raise the level of the records to the next, once all hosts run a release that understands it. Shows their releases.
    Upgrade(UpgradeOptions),
}

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Setting {
    /// Time that a component may be absent before it is rebuilt elsewhere: 60m, 90s.
    RepairDelay,
    /// Components of the whole cluster that are rebuilt at once. 0 stops all rebuilds, repairs included.
    Replacements,
    /// Components of one host that are rebuilt at once.
    ReplacementsPerHost,
    /// Devices that are relieved: proactive (nearly full or very uneven ones), reactive (nearly full ones), off.
    Balance,
    /// Whether stand-ins take the writes of absent components, so that they are kept as often as policies say: on, off.
    StandIns,
}

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, command: ClusterCommand) -> Result<(), Failure> {
    match command {
        ClusterCommand::Init(_) => unreachable!("the program itself does this"),
        ClusterCommand::Certificates(command) => members::certificates(shell, command).await,
        ClusterCommand::Show => {
            let settings: SettingsView = shell.client.get("/api/v1/cluster/settings").await?;
            shell.show(&settings, settings_text)
        }
        ClusterCommand::Set { setting, value } => {
            let change = change_of(setting, &value)?;
            let settings: SettingsView = shell.client.patch("/api/v1/cluster/settings", &change).await?;
            shell.show(&settings, settings_text)
        }
        ClusterCommand::RebuildDirectory(options) => rebuild::run(shell, options).await,
        ClusterCommand::Estimate(options) => estimate::run(shell, &options).await,
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
                Failure::usage(format!("invalid balance mode `{value}`: use proactive, reactive or off"))
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

fn settings_text(settings: &SettingsView) -> String {
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
    let state = match (balance.state, &balance.decided_by) {
        (BalanceWord::Unknown, Some(host)) => format!("host {host} decides and knows"),
        (BalanceWord::Unknown, None) => "nobody decides: no host is sure to be there".to_owned(),
        (BalanceWord::Even, _) => "devices are even".to_owned(),
        (BalanceWord::Uneven, _) => "devices differ by much".to_owned(),
        (BalanceWord::Full, _) => "a device is nearly full".to_owned(),
    };
    let mut facts =
        vec![("mode", mode_text(balance.mode)), ("state", state), ("moving", balance.moving.to_string())];
    facts.extend(balance.paused.clone().map(|why| ("paused", why)));
    facts.extend(balance.stuck.clone().map(|why| ("stuck", why)));
    let row = |device: &api::types::FullnessView| {
        let state = if device.in_service { "takes new components" } else { "takes nothing new" };
        vec![device.device.clone(), format!("{:.1} %", device.percent), state.to_owned()]
    };
    let table = text::table(&["device", "used", "state"], &[1], balance.devices.iter().map(row).collect());
    format!("{}\n\n{table}", text::facts(&facts))
}
