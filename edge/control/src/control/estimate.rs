//! Estimates of reduction: passes on this host and on all others, and what they found.

use super::Control;
use crate::cluster::{OtherPasses, View, without_answer};
use crate::estimates::{Figures, Standing, figures, rates_of, rates_view, sample_of, sample_view};
use crate::events::Kind;
use crate::limits::{PASS_WATCH_PERIOD, SAMPLE_ANSWER_WAIT};
use crate::system::blocking;
use api::types::{EstimateProgressView, EstimateView, HostPassView, HostSampleView, PassWord, StartEstimate};
use base::ComponentId;
use base::units::{BLOCK_SIZE, format_bytes};
use engine::{Command, PassOrder, PassState};
use failure::Failure;
use reduction::{ComponentSample, HostSample, Rates};
use replication::Standing as MemberStanding;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

/// Whether compression and deduplication are built.
const COMPRESSION_AVAILABLE: bool = true;
const DEDUPLICATION_AVAILABLE: bool = false;

impl Control {
    /// Begins a pass on every host that can be reached.
    ///
    /// # Errors
    /// When the percentage makes no sense, a pass is under way, or the engine is gone.
    pub async fn start_estimate(
        self: &Arc<Control>,
        request: StartEstimate,
    ) -> Result<EstimateProgressView, Failure> {
        let asked = request.sample_percent.map(Rates::for_percent).transpose();
        let asked = asked.map_err(|error| Failure::usage(error.to_string()))?;
        let running = self.estimate_progress().await?;
        if let Some(host) = running.hosts.iter().find(|host| host.state == PassWord::Running) {
            let percent = host.percent.unwrap_or(0.0);
            return Err(Failure::refused(format!(
                "host {} is sampling already, {percent:.0} % are done",
                host.host
            ))
            .hint("wait for it, or end it: `drystone cluster estimate --stop`"));
        }
        let state = self.cluster.state().await?;
        let rates = match asked {
            Some(rates) => rates,
            None => {
                let locals = self.cluster.locals(&state).await;
                let used: u64 = locals.values().flat_map(|local| local.used_bytes.values()).sum();
                Rates::for_blocks(used / BLOCK_SIZE, locals.len() as u64)
            }
        };
        let own = self.begin_pass(rates).await?;
        let others = self.cluster.order_passes(&state, OtherPasses::Begin(rates_view(rates))).await;
        Ok(progress_view(own, others))
    }

    /// Ends the pass on every host that can be reached. What passes before it found stays.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn stop_estimate(&self) -> Result<EstimateProgressView, Failure> {
        let state = self.cluster.state().await?;
        let own = self.end_pass().await?;
        let others = self.cluster.order_passes(&state, OtherPasses::End).await;
        Ok(progress_view(own, others))
    }

    /// How far the passes of all hosts are.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn estimate_progress(&self) -> Result<EstimateProgressView, Failure> {
        let own = self.host_pass().await?;
        let state = self.cluster.state().await?;
        let (others, silent) = self.cluster.ask_others(&state, "/api/v1/estimate/host/progress").await;
        let silent = silent.into_iter().map(|name| without_answer(name, "it does not answer"));
        Ok(progress_view(own, others.into_values().chain(silent)))
    }

    /// What would be saved of a disk or of everything, by the samples that hosts have.
    ///
    /// # Errors
    /// When there is no such disk, or the engine is gone.
    pub async fn estimate(&self, disk: Option<&str>) -> Result<EstimateView, Failure> {
        let disk = disk.map(|name| Ok::<_, Failure>(self.find(name)?.record.id)).transpose()?;
        let state = self.cluster.state().await?;
        let path = "/api/v1/estimate/host";
        let (others, silent) = self.cluster.ask_others_within(&state, path, SAMPLE_ANSWER_WAIT).await;
        let mut hosts = vec![self.host_sample().await?];
        hosts.extend(others.into_values());
        let view = self.cluster.view();
        let silent = silent.into_iter().map(|name| without_answer(name, "it does not answer"));
        Ok(blocking(|| {
            let mut standings = standings(&view);
            standings.retain(|one| disk.is_none_or(|disk| one.disk == disk));
            let mut found = estimate_view(&standings, hosts, silent.collect());
            if disk.is_some() {
                (found.cluster, found.policies) = (None, Vec::new());
            }
            found
        }))
    }

    /// Begins a pass on this host. The events tell when it has ended.
    ///
    /// # Errors
    /// When it cannot begin, or the engine is gone.
    pub async fn begin_pass(self: &Arc<Control>, rates: Rates) -> Result<HostPassView, Failure> {
        let number = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let order = PassOrder::Begin { number, rates };
        let state = self.engine.call(|answer| Command::Pass { order, answer }).await?;
        if state.running.is_none() {
            return Err(Failure::refused(
                "the host cannot sample its data: it is stopping, or lacks threads",
            ));
        }
        let text =
            format!("samples {:.2} % of the allocated blocks for an estimate", rates.read_share() * 100.0);
        self.events.here(Kind::EstimateBegan, text);
        tokio::spawn(watch_pass(Arc::downgrade(self), number));
        Ok(self.pass_view(&state))
    }

    /// Ends the pass on this host, if there is one.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn end_pass(&self) -> Result<HostPassView, Failure> {
        if self.pass_state(PassOrder::Nothing).await?.running.is_some() {
            self.events.here(Kind::EstimateEnded, "the pass was stopped; the last sample stays");
        }
        let state = self.pass_state(PassOrder::End).await?;
        Ok(self.pass_view(&state))
    }

    /// How far the pass of this host is.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn host_pass(&self) -> Result<HostPassView, Failure> {
        Ok(self.pass_view(&self.pass_state(PassOrder::Nothing).await?))
    }

    /// What the last pass of this host found.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn host_sample(&self) -> Result<HostSampleView, Failure> {
        let state = self.pass_state(PassOrder::Nothing).await?;
        let pass = self.pass_view(&state);
        let Some(result) = state.result else {
            return Ok(HostSampleView { pass, rates: None, components: Vec::new() });
        };
        let components = result.sample.components.iter().map(|(id, sample)| sample_view(*id, sample));
        Ok(HostSampleView {
            pass,
            rates: Some(rates_view(result.sample.rates)),
            components: components.collect(),
        })
    }

    /// The pass of this host, as its engines know it.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn pass_state(&self, order: PassOrder) -> Result<PassState, Failure> {
        Ok(self.engine.call(|answer| Command::Pass { order, answer }).await?)
    }

    fn pass_view(&self, state: &PassState) -> HostPassView {
        let word = match state {
            PassState { running: Some(_), .. } => PassWord::Running,
            PassState { result: Some(_), .. } => PassWord::Done,
            PassState { running: None, result: None } => PassWord::None,
        };
        let (running, result) = (state.running, state.result.as_ref());
        let percent = |one: engine::PassRunning| match one.parts_total {
            0 => 0.0,
            total => one.parts as f64 * 100.0 / total as f64,
        };
        let of_result = result.map(|one| (one.read_bytes, one.took));
        let worked = running.map(|one| (one.read_bytes, one.elapsed)).or(of_result);
        HostPassView {
            host: self.cluster.config().name.clone(),
            state: word,
            percent: running.map(percent),
            read_bytes: worked.map_or(0, |(bytes, _)| bytes),
            seconds: worked.map(|(_, time)| time.as_secs_f64()),
            age_seconds: result.map(|one| one.ended.elapsed().as_secs_f64()),
            trouble: None,
        }
    }
}

/// Tells when a pass has come to its end. One that was stopped was told of by whoever stopped it.
async fn watch_pass(control: Weak<Control>, number: u64) {
    loop {
        tokio::time::sleep(PASS_WATCH_PERIOD).await;
        let Some(control) = control.upgrade() else { return };
        let Ok(state) = control.pass_state(PassOrder::Nothing).await else { return };
        match state.result {
            Some(result) if result.number == number => {
                let text = ended_text(&result.sample, result.read_bytes, result.took.as_secs_f64());
                return control.events.here(Kind::EstimateEnded, text);
            }
            _ if state.running.is_none() => return,
            _ => {}
        }
    }
}

fn ended_text(sample: &HostSample, read_bytes: u64, seconds: f64) -> String {
    let blocks: u64 = sample.components.values().map(|one| one.blocks).sum();
    format!(
        "sampled {} of allocated blocks in {seconds:.1} s: {} were read",
        format_bytes(blocks * BLOCK_SIZE),
        format_bytes(read_bytes)
    )
}

fn progress_view(own: HostPassView, others: impl IntoIterator<Item = HostPassView>) -> EstimateProgressView {
    let mut hosts: Vec<HostPassView> = std::iter::once(own).chain(others).collect();
    hosts.sort_by(|a, b| a.host.cmp(&b.host));
    EstimateProgressView { is_running: hosts.iter().any(|host| host.state == PassWord::Running), hosts }
}

/// The components of all disks that are up to date.
fn standings(view: &View) -> Vec<Standing> {
    let mut standings = Vec::new();
    for disk in view.disks.values() {
        let record = &disk.record;
        let active = record.roster.members.iter().filter(|one| one.standing == MemberStanding::Active);
        standings.extend(active.filter_map(|member| {
            let (_, component) = record.component(member.component)?;
            Some(Standing {
                component: member.component,
                device: component.device,
                disk: record.id,
                disk_name: record.name.clone(),
                policy: record.follows.clone().unwrap_or_else(|| "-".to_owned()),
                place: member.place,
                has_rows: member.rows.is_some(),
            })
        }));
    }
    standings
}

fn estimate_view(
    standings: &[Standing],
    hosts: Vec<HostSampleView>,
    silent: Vec<HostPassView>,
) -> EstimateView {
    let rates = hosts.iter().filter_map(|host| host.rates).map(rates_of);
    let rates = rates.reduce(|a, b| Rates {
        compression: a.compression.min(b.compression),
        deduplication: a.deduplication.min(b.deduplication),
    });
    let mut samples: BTreeMap<ComponentId, ComponentSample> = BTreeMap::new();
    let mut passes = silent;
    for HostSampleView { pass, components, .. } in hosts {
        samples.extend(components.iter().filter_map(sample_of));
        passes.push(pass);
    }
    passes.sort_by(|a, b| a.host.cmp(&b.host));
    let found = rates.map(|rates| figures(standings, &samples, rates.deduplication));
    let (cluster, policies, disks) = match found {
        Some(Figures { cluster, policies, disks }) => (Some(cluster), policies, disks),
        None => (None, Vec::new(), Vec::new()),
    };
    EstimateView {
        age_seconds: passes.iter().filter_map(|pass| pass.age_seconds).reduce(f64::max),
        hosts: passes,
        compression_rate: rates.map(|rates| rates.compression.share()),
        deduplication_rate: rates.map(|rates| rates.deduplication.share()),
        cluster,
        policies,
        disks,
        compression_available: COMPRESSION_AVAILABLE,
        deduplication_available: DEDUPLICATION_AVAILABLE,
    }
}
