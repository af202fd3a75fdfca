//! What would become of the cluster, as the API shows it.

use super::Control;
use crate::cluster::Cluster;
use crate::limits::NEW_DEVICES_MAX;
use crate::system::blocking_seed;
use crate::words;
use ::cluster::{
    Condition, DiskRecord, Evens, Forecast, HostSpace, MoveRoom, NewHost, Outlook, Question, View,
    hosts_of_domain, what_if,
};
use api::types::BalanceMode;
use api::types::{AddHost, ForecastView, HostSpaceView, MoveRoomView, OutlookView, SetPolicy, WhatIf};
use base::DiskId;
use failure::{Code, Failure};

impl Control {
    /// Says what would become of it.
    ///
    /// # Errors
    /// When what is named is not there, a policy makes no sense, or the engine is gone.
    pub async fn what_if(&self, request: WhatIf) -> Result<ForecastView, Failure> {
        let cluster = &self.cluster;
        let evens = match cluster.view().settings.balance {
            BalanceMode::Proactive => Evens::Uneven,
            BalanceMode::Reactive => Evens::Full,
            BalanceMode::Off => Evens::Nothing,
        };
        let (view, now) = (cluster.facts().await?, cluster.directory_now());
        let question = match request {
            WhatIf::LoseHosts(names) => {
                if names.is_empty() {
                    return Err(Failure::usage("no host is named"));
                }
                let ids = names.iter().map(|name| Ok(cluster.find_host(name)?.record.id));
                Question::LoseHosts(ids.collect::<Result<_, Failure>>()?)
            }
            WhatIf::LoseDomain(name) => {
                let hosts = hosts_of_domain(&view, &name);
                if hosts.is_empty() {
                    return Err(Failure::new(
                        Code::NotFound,
                        format!("no host is in the fault domain `{name}`"),
                    ));
                }
                Question::LoseHosts(hosts)
            }
            WhatIf::AddHost(host) => {
                Question::AddHost(Box::new(new_host(cluster, &view, host)?.record(&view)))
            }
            WhatIf::SetPolicy(SetPolicy { disks, followers, policy }) => {
                let policy = self.resolve_policy(Some(&policy))?;
                let follows = |disk: &DiskRecord| followers.is_none() || disk.follows == followers;
                let disks = match disks.is_empty() {
                    true => view.disks.values().filter(|disk| follows(disk)).map(|disk| disk.id).collect(),
                    false => self.ids_of(&disks)?,
                };
                if let Some(name) = followers.filter(|_| disks.is_empty()) {
                    return Err(Failure::new(Code::NotFound, format!("no disk follows the policy `{name}`")));
                }
                Question::SetPolicy { disks, policy }
            }
        };
        let seed = blocking_seed()?;
        // A large cluster takes a while, and others want to be answered.
        let forecast = crate::system::blocking(|| what_if(&view, &question, evens, now, seed));
        Ok(forecast_view(&forecast))
    }

    fn ids_of(&self, names: &[String]) -> Result<Vec<DiskId>, Failure> {
        names.iter().map(|name| Ok(self.find(name)?.record.id)).collect()
    }
}

fn new_host(cluster: &Cluster, view: &View, host: AddHost) -> Result<NewHost, Failure> {
    let AddHost { like, capacities, fault_domain } = host;
    let taken = |name: &str| view.hosts.values().any(|host| host.name == name);
    let mut names = (1..).map(|number| match number {
        1 => "the new host".to_owned(),
        number => format!("the new host {number}"),
    });
    let name = names.find(|name| !taken(name)).expect("there are more names than hosts");
    let mut new = match (like, capacities.is_empty()) {
        (Some(like), true) => {
            let id = cluster.find_host(&like)?.record.id;
            let host = view.hosts.get(&id);
            let host =
                host.ok_or_else(|| Failure::new(Code::NotFound, format!("there is no host `{like}`")))?;
            NewHost::like(host, name)
        }
        (None, false) => NewHost { name, fault_domain: None, capacities },
        (Some(_), false) | (None, true) => {
            return Err(Failure::usage("say which host it is like, or how large its devices are"));
        }
    };
    if new.capacities.is_empty() || new.capacities.len() > NEW_DEVICES_MAX {
        return Err(Failure::usage(format!("a host has 1 to {NEW_DEVICES_MAX} capacity devices")));
    }
    new.fault_domain = fault_domain.or(new.fault_domain);
    Ok(new)
}

fn forecast_view(forecast: &Forecast) -> ForecastView {
    let space = |one: &HostSpace| HostSpaceView {
        host: one.name.clone(),
        capacity_bytes: one.capacity_bytes,
        used_bytes: one.used_bytes,
        free_bytes: one.free_bytes,
        largest_bytes: one.largest_bytes,
    };
    let name = |id: &base::DeviceId| forecast.device_names.get(id).cloned().unwrap_or_else(|| id.to_string());
    let outlook = |one: &Outlook| OutlookView {
        disk: one.name.clone(),
        now: words::condition(one.now),
        at_once: words::condition(one.at_once),
        then: words::condition(one.then),
        bytes: one.bytes,
        targets: one.targets.iter().map(|(id, bytes)| (name(id), *bytes)).collect(),
        lacks: one.lacks.clone(),
        change: one.change.as_ref().map(words::policy_change),
    };
    let room = |one: &MoveRoom| MoveRoomView {
        device: name(&one.device),
        used_bytes: one.used_bytes,
        peak_bytes: one.peak_bytes,
        scattered_peak_bytes: one.scattered_peak_bytes,
        limit_bytes: one.limit_bytes,
    };
    let is_harmed =
        |one: &Outlook| one.then > one.now || one.at_once == Condition::Inaccessible || !one.lacks.is_empty();
    let mut move_rooms: Vec<MoveRoomView> = forecast.move_rooms.iter().map(room).collect();
    move_rooms.sort_by(|a, b| a.device.cmp(&b.device));
    ForecastView {
        verdict: forecast.verdict.clone(),
        is_harmless: !forecast.disks.iter().any(is_harmed),
        bytes_to_copy: forecast.bytes_to_copy,
        bytes_to_even: forecast.bytes_to_even,
        bytes_freed: forecast.bytes_freed,
        before: forecast.before.iter().map(space).collect(),
        after: forecast.after.iter().map(space).collect(),
        move_rooms,
        disks: forecast.disks.iter().map(outlook).collect(),
    }
}
