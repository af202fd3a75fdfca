//! Makes the beats.

use super::load::{HostLoad, Loads};
use super::seen::Seen;
use super::{Beat, Pulse};
use crate::cluster::Cluster;
use crate::control::Control;
use crate::limits::{PULSE_GATHER, PULSE_PERIOD, SAMPLES_LATE};
use api::types::HostSamples;
use base::HostId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;

impl Control {
    /// What guests of this host did in the last second.
    pub fn own_load(&self) -> HostLoad {
        HostLoad { seconds: self.sampler.interval().as_secs_f64(), disks: self.sampler.busy() }
    }

    /// The same for other hosts.
    pub fn own_samples(&self) -> HostSamples {
        self.own_load().samples()
    }
}

/// Beats while somebody watches, until the host ends.
pub async fn beat(control: Weak<Control>, pulse: Arc<Pulse>) {
    loop {
        if !pulse.is_watched() {
            pulse.somebody.notified().await;
        }
        let mut followers = Followers::default();
        let Some(mut seen) = control.upgrade().map(|control| Seen::of(&control)) else { return };
        let mut next = tokio::time::Instant::now();
        while pulse.is_watched() {
            let Some(mut revision) = control.upgrade().map(|control| control.cluster.changes()) else {
                return;
            };
            let is_second = tokio::select! {
                () = tokio::time::sleep_until(next) => true,
                _ = revision.changed() => {
                    // Records change in groups: they are told together.
                    tokio::time::sleep(PULSE_GATHER).await;
                    false
                }
            };
            let Some(control) = control.upgrade() else { return };
            let now = Seen::of(&control);
            let changed = now.since(&seen);
            seen = now;
            let loads = is_second.then(|| followers.loads(&control));
            if is_second {
                next = (next + PULSE_PERIOD).max(tokio::time::Instant::now());
            }
            if is_second || !changed.is_empty() {
                // Nobody may be left by now.
                let _ = pulse.beats.send(Arc::new(Beat { changed, loads }));
            }
        }
    }
}

/// What came last of each other host.
type Latest = Arc<Mutex<BTreeMap<HostId, (Instant, Arc<HostLoad>)>>>;

/// Connections with other hosts, over which they send what their guests do. Dropped, all end.
#[derive(Default)]
struct Followers {
    tasks: BTreeMap<HostId, JoinHandle<()>>,
    latest: Latest,
}

impl Followers {
    fn loads(&mut self, control: &Control) -> Loads {
        let (cluster, view) = (&control.cluster, control.cluster.view());
        self.tasks.retain(|host, task| {
            let stays = view.hosts.contains_key(host);
            if !stays {
                task.abort();
            }
            stays
        });
        for host in view.hosts.keys().filter(|host| **host != cluster.me) {
            let (cluster, latest) = (Arc::clone(cluster), Arc::clone(&self.latest));
            let host = *host;
            self.tasks.entry(host).or_insert_with(|| tokio::spawn(follow(cluster, host, latest)));
        }
        let now = Instant::now();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.retain(|host, (came, _)| {
            view.hosts.contains_key(host) && now.saturating_duration_since(*came) < SAMPLES_LATE
        });
        let mut hosts: BTreeMap<HostId, Arc<HostLoad>> =
            latest.iter().map(|(host, (_, load))| (*host, Arc::clone(load))).collect();
        hosts.insert(cluster.me, Arc::new(control.own_load()));
        let silent = view.hosts.iter().filter(|(host, _)| !hosts.contains_key(host));
        let mut silent: Vec<String> = silent.map(|(_, known)| known.host.record.name.clone()).collect();
        silent.sort();
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Loads { time_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX), hosts, silent }
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.tasks.values().for_each(JoinHandle::abort);
    }
}

/// Follows what the guests of another host do, until it is aborted.
async fn follow(cluster: Arc<Cluster>, host: HostId, latest: Latest) {
    loop {
        if let Some(mut events) = cluster.follow_load(host).await {
            while let Ok(Some(event)) = events.next().await {
                let Ok(samples) = serde_json::from_str::<HostSamples>(&event.data) else { break };
                let load = (Instant::now(), Arc::new(HostLoad::of(&samples)));
                latest.lock().unwrap_or_else(PoisonError::into_inner).insert(host, load);
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
