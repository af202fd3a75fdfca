//! The care for a cluster, as the API shows it: settings, health, maintenance, removal of hosts, balance.

use super::Control;
use crate::cluster::FoundDevice;
use crate::directory::shared::record::{ClusterHost, ClusterSettings};
use crate::events::Kind;
use crate::limits::{DELETION_POLL, LEAVE_WAIT};
use crate::system::blocking_seed;
use ::cluster::limits::REPLACEMENTS_PER_HOST_MAX;
use ::cluster::{Assessment, Condition, Evens, Fate, Maintenance, Mode, Question, what_if};
use api::types::{
    BalanceView, BeginMaintenance, ChangeSettings, EvacuationView, FateView, FateWord, FullnessView,
    MaintenanceMode, MaintenanceView, RemovedHost, TouchedView,
};
use base::HostId;
use clap::ValueEnum;
use failure::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Longest repair delay: a year. Whoever wants no repairs says so by placing no copies.
const REPAIR_DELAY_SECONDS_MAX: u64 = 365 * 24 * 3600;

impl Control {
    /// The cluster's settings.
    ///
    /// # Errors
    /// When this host stands alone.
    pub fn settings(&self) -> Result<ClusterSettings, Failure> {
        Ok(self.cluster.view().settings)
    }

    /// Changes the cluster's settings.
    ///
    /// # Errors
    /// When one makes no sense, or the directory does not answer.
    pub async fn change_settings(&self, change: ChangeSettings) -> Result<ClusterSettings, Failure> {
        let cluster = &self.cluster;
        let before = cluster.view().settings;
        let settings = cluster
            .change_settings(|before| {
                let settings = ClusterSettings {
                    repair_delay_seconds: change.repair_delay_seconds.unwrap_or(before.repair_delay_seconds),
                    replacements_max: change.replacements_max.unwrap_or(before.replacements_max),
                    replacements_per_host_max: change
                        .replacements_per_host_max
                        .unwrap_or(before.replacements_per_host_max),
                    balance: change.balance.unwrap_or(before.balance),
                    stand_ins: change.stand_ins.unwrap_or(before.stand_ins),
                };
                check_settings(&settings).map(|()| settings)
            })
            .await?;
        if settings != before {
            self.events.other(Kind::SettingsChanged, "cluster", settings_text(&settings));
        }
        Ok(settings)
    }

    /// Begins to service a host, or tells what that would do.
    ///
    /// # Errors
    /// When there is no such host, something has nowhere to go, or it is not confirmed that disks cannot be used meanwhile.
    pub async fn begin_maintenance(
        &self,
        name: &str,
        request: BeginMaintenance,
    ) -> Result<MaintenanceView, Failure> {
        let cluster = &self.cluster;
        let host = cluster.find_host(name)?;
        let mode = mode_of(request.mode);
        let assessment = cluster.assess(host.record.id, mode).await?;
        let devices = cluster.all_spaces();
        let mut view = maintenance_view(&host, request.mode, &assessment, &devices);
        if request.dry_run {
            return Ok(view);
        }
        if !view.is_possible {
            return Err(Failure::refused(format!(
                "host {} cannot be emptied: {}",
                host.record.name,
                view.obstacles.join("; ")
            ))
            .hint("add devices, or choose another --mode"));
        }
        if !view.inaccessible.is_empty() && request.confirm.as_deref() != Some(&host.record.name) {
            let what = format!(
                "while host {} is away these disks cannot be used: {}",
                host.record.name,
                view.inaccessible.join(", ")
            );
            return Err(Failure::refused(format!("{what}; it must be confirmed with the host's name"))
                .hint("add `--yes`, or choose `--mode ensure-accessibility`"));
        }
        let since = cluster.directory_now();
        let is_already = host.record.maintenance.mode() == Some(mode);
        if !is_already {
            cluster.set_maintenance(host.record.id, Maintenance::Entering { mode, since }).await?;
            let bytes = base::units::format_bytes(view.bytes_to_move);
            let text = format!("it is to be serviced ({mode}); {bytes} are copied elsewhere first");
            self.events.host(Kind::MaintenanceBegun, &host.record.name, text);
        }
        view.is_begun = true;
        Ok(view)
    }

    /// A host is not serviced any more.
    ///
    /// # Errors
    /// When there is no such host, or the directory does not answer.
    pub async fn end_maintenance(&self, name: &str) -> Result<(), Failure> {
        let cluster = &self.cluster;
        let host = cluster.find_host(name)?;
        cluster.set_maintenance(host.record.id, Maintenance::Off).await?;
        if host.record.maintenance != Maintenance::Off {
            self.events.host(Kind::MaintenanceEnded, &host.record.name, "it is serviced no more");
        }
        Ok(())
    }

    /// Takes a host out of the cluster that does not come back, or this one once it is emptied; `confirm` must be its name.
    ///
    /// # Errors
    /// When it is not confirmed, the host is there, or it holds the only copy of something.
    pub async fn remove_host(&self, name: &str, confirm: Option<&str>) -> Result<RemovedHost, Failure> {
        let cluster = &self.cluster;
        let host = cluster.find_host(name)?;
        let name = host.record.name.clone();
        if confirm != Some(&name) {
            return Err(Failure::refused(format!(
                "removing host {name} gives up what stands on it; it must be confirmed with the host's name"
            ))
            .hint("add `--yes`"));
        }
        if host.record.id == cluster.me {
            return self.leave(&name).await;
        }
        let mut not_replaced = self.not_replaced_without(host.record.id).await?;
        let mut disks = cluster.remove_host(&host).await?;
        not_replaced.retain(|disk, _| disks.contains(disk));
        disks.retain(|disk| !not_replaced.contains_key(disk));
        let count = |disks: usize| if disks == 1 { "1 disk".to_owned() } else { format!("{disks} disks") };
        let mut text =
            format!("taken out of the cluster; copies of {} are made on other hosts", count(disks.len()));
        if !not_replaced.is_empty() {
            let names: Vec<&str> = not_replaced.keys().map(String::as_str).collect();
            text += &format!("; these keep fewer copies until there is room: {}", names.join(", "));
        }
        self.events.host(Kind::HostRemoved, &name, text);
        Ok(RemovedHost { host: name, disks, not_replaced, notes: Vec::new() })
    }

    /// The disks that would keep fewer copies than their policies ask for without a host, and why.
    async fn not_replaced_without(&self, host: HostId) -> Result<BTreeMap<String, String>, Failure> {
        let cluster = &self.cluster;
        let (view, now, seed) = (cluster.facts().await?, cluster.directory_now(), blocking_seed()?);
        let question = Question::LoseHosts(BTreeSet::from([host]));
        let forecast = crate::system::blocking(|| what_if(&view, &question, Evens::Nothing, now, seed));
        let short = forecast.disks.into_iter().filter(|one| one.then != Condition::Whole);
        let why = |lacks: &[String]| {
            lacks.first().cloned().unwrap_or_else(|| "no place for another copy".to_owned())
        };
        Ok(short.map(|one| (one.name, why(&one.lacks))).collect())
    }

    /// Takes this host out of its cluster; its devices become blank, its identity is put aside, and its process ends.
    async fn leave(&self, name: &str) -> Result<RemovedHost, Failure> {
        self.cluster.leave().await?;
        self.events.host(Kind::HostRemoved, name, "it has left the cluster: nothing stood on it any more");
        let mut logs: Vec<String> = Vec::new();
        for device in self.host_state().await?.devices.iter().filter(|device| device.is_log) {
            logs.push(device.path.display().to_string());
        }
        let mut notes = Vec::new();
        for log in logs {
            if let Err(failure) = self.remove_group_soon(&log).await {
                notes.push(format!(
                    "the disk group of {log} is still there ({}): `wipefs -a` erases it",
                    failure.error
                ));
            }
        }
        match crate::security::put_aside(&self.config().data_dir) {
            Ok(Some(folder)) => {
                notes.push(format!("its certificate is in {} now, and counts no more", folder.display()))
            }
            Ok(None) => {}
            Err(failure) => notes.push(failure.to_string()),
        }
        notes.iter().for_each(|note| tracing::info!("{note}"));
        self.left.notify_one();
        Ok(RemovedHost { host: name.to_owned(), disks: Vec::new(), not_replaced: BTreeMap::new(), notes })
    }

    /// Removes a disk group on which nothing stands any more, once it has given back the space of what stood there.
    async fn remove_group_soon(&self, log: &str) -> Result<(), Failure> {
        let until = Instant::now() + LEAVE_WAIT;
        loop {
            match self.remove_device(log, true).await {
                Err(_) if Instant::now() < until => tokio::time::sleep(DELETION_POLL).await,
                ended => return ended.map(drop),
            }
        }
    }

    /// How even the devices are, and what is done about it.
    ///
    /// # Errors
    /// When this host stands alone, or its engine is gone.
    pub async fn balance(&self) -> Result<BalanceView, Failure> {
        let cluster = &self.cluster;
        let told = cluster.balance(&cluster.state().await?);
        let mut devices: Vec<FullnessView> = cluster.spaces().await?.iter().map(fullness_view).collect();
        devices.sort_by(|a, b| b.percent.total_cmp(&a.percent).then_with(|| a.device.cmp(&b.device)));
        Ok(BalanceView { devices, ..told })
    }
}

fn settings_text(settings: &ClusterSettings) -> String {
    let ClusterSettings { repair_delay_seconds, replacements_max, replacements_per_host_max, .. } = settings;
    let balance =
        settings.balance.to_possible_value().map_or_else(String::new, |one| one.get_name().to_owned());
    format!(
        "settings are now: repair-delay {repair_delay_seconds}s, replacements {replacements_max}, replacements-per-host \
         {replacements_per_host_max}, balance {balance}, stand-ins {}",
        if settings.stand_ins { "on" } else { "off" }
    )
}

fn check_settings(settings: &ClusterSettings) -> Result<(), Failure> {
    let ClusterSettings { repair_delay_seconds, replacements_per_host_max, .. } = *settings;
    if repair_delay_seconds > REPAIR_DELAY_SECONDS_MAX {
        return Err(Failure::usage(format!(
            "a repair delay of {repair_delay_seconds} s is not possible: up to {REPAIR_DELAY_SECONDS_MAX} s are"
        )));
    }
    if replacements_per_host_max == 0 {
        return Err(Failure::usage("with no component of a host filled at once, nothing would ever be repaired")
            .hint(format!(
                "the default is {REPLACEMENTS_PER_HOST_MAX}; `replacements 0` is for repairs that are not wanted for now"
            )));
    }
    Ok(())
}

fn mode_of(mode: MaintenanceMode) -> Mode {
    match mode {
        MaintenanceMode::EnsureAccessibility => Mode::EnsureAccessibility,
        MaintenanceMode::FullEvacuation => Mode::FullEvacuation,
        MaintenanceMode::None => Mode::NoAction,
    }
}

fn maintenance_view(
    host: &ClusterHost,
    mode: MaintenanceMode,
    assessment: &Assessment,
    devices: &[placement::DeviceSpace],
) -> MaintenanceView {
    let is_inaccessible = |touched: &&::cluster::Touched| {
        touched.components.iter().any(|(_, _, fate)| *fate == Fate::Inaccessible)
    };
    MaintenanceView {
        host: host.record.name.clone(),
        mode,
        is_begun: false,
        is_possible: assessment.is_possible(),
        obstacles: assessment.obstacles.clone(),
        bytes_to_move: assessment.bytes_to_move,
        inaccessible: assessment.disks.iter().filter(is_inaccessible).map(|one| one.name.clone()).collect(),
        disks: touched_views(assessment, devices),
    }
}

/// What emptying a device does, as the API shows it.
pub(super) fn evacuation_view(
    device: &FoundDevice,
    assessment: &Assessment,
    devices: &[placement::DeviceSpace],
) -> EvacuationView {
    EvacuationView {
        device: device.path.clone(),
        host: device.host_name.clone(),
        is_begun: false,
        is_possible: assessment.is_possible(),
        obstacles: assessment.obstacles.clone(),
        bytes_to_move: assessment.bytes_to_move,
        disks: touched_views(assessment, devices),
    }
}

fn touched_views(assessment: &Assessment, devices: &[placement::DeviceSpace]) -> Vec<TouchedView> {
    let name = |id: base::DeviceId| {
        devices.iter().find(|device| device.id == id).map_or_else(|| id.to_string(), |one| one.name.clone())
    };
    let fate = |(place, component, fate): &(usize, base::ComponentId, Fate)| {
        let (word, target, bytes) = match fate {
            Fate::Missed { .. } => (FateWord::Missed, None, 0),
            Fate::Moves { target, bytes, .. } => (FateWord::Moves, Some(name(*target)), *bytes),
            Fate::Stuck { bytes, .. } => (FateWord::Stuck, None, *bytes),
            Fate::Inaccessible => (FateWord::Inaccessible, None, 0),
            Fate::Lost => (FateWord::Lost, None, 0),
        };
        FateView { component: component.to_string(), place: *place, fate: word, target, bytes }
    };
    let touched = |touched: &::cluster::Touched| TouchedView {
        disk: touched.name.clone(),
        summary: touched.summary.clone(),
        components: touched.components.iter().map(fate).collect(),
    };
    assessment.disks.iter().map(touched).collect()
}

fn fullness_view(device: &placement::DeviceSpace) -> FullnessView {
    FullnessView {
        host: device.host_name.clone(),
        device: device.name.clone(),
        percent: device.fullness() as f64 / 100.0,
        in_service: device.in_service,
    }
}
