//! Which systems a run watches besides its load.

use super::live::Live;
use super::{CommandError, ErrorKind, VirtualDisks};
use crate::system::{Source, Watching};
use clap::Args;
use plan::Plan;
use std::sync::Arc;

/// Metrics to watch while a job runs.
#[derive(Debug, Clone, Default, Args)]
pub struct WatchOptions {
    /// Metrics of the system under test to read once a second: a Prometheus exporter (http://HOST:PORT/metrics), or the API of a Drystone
    /// host. Metrics behind `#`, separated by commas, replace the usual ones. May be repeated [default: the host of `disk:` targets].
    #[arg(long = "watch", value_name = "ADDRESS[#METRICS]")]
    pub watch: Vec<String>,
    /// Do not watch any metrics.
    #[arg(long, conflicts_with = "watch")]
    pub no_watch: bool,
    /// Address to serve live results at, as http://ADDRESS:PORT/metrics for Prometheus to scrape. Port 0 takes any free port.
    #[arg(long = "metrics", value_name = "ADDRESS:PORT")]
    pub metrics: Option<String>,
}

impl WatchOptions {
    /// Serves what a run tells, if it was asked for.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn live(&self, disks: &dyn VirtualDisks) -> Result<Option<Arc<Live>>, CommandError> {
        let Some(address) = &self.metrics else { return Ok(None) };
        let live = Arc::new(Live::default());
        let told = live.clone();
        let address = disks.serve(address, Arc::new(move || told.text()))?;
        eprintln!("lab: live results are at http://{address}/metrics");
        Ok(Some(live))
    }

    /// The sources for plans with these targets; those that were named are asked once.
    fn sources(&self, has_disks: bool, disks: &dyn VirtualDisks) -> Result<Vec<Source>, CommandError> {
        let mut sources = Vec::new();
        for text in &self.watch {
            let (address, metrics) = text.split_once('#').unwrap_or((text, ""));
            let metrics: Vec<String> = metrics
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect();
            let mut exporter = disks.exporter(Some(address))?;
            exporter.scrape().map_err(|error| {
                CommandError::new(ErrorKind::Failed, format!("watch {address}: {error}"))
                    .hint("check the address, or leave out --watch")
            })?;
            sources.push(Source::new(exporter, &metrics));
        }
        if self.watch.is_empty() && !self.no_watch && has_disks {
            sources.push(Source::new(disks.exporter(None)?, &[]));
        }
        Ok(sources)
    }

    /// Begins to watch for a plan; nothing if there is no source.
    ///
    /// # Errors
    /// When a source that was named does not answer.
    pub fn begin(&self, plan: &Plan, disks: &dyn VirtualDisks) -> Result<Option<Watching>, CommandError> {
        let has_disks = plan.targets.iter().any(|target| target.name.starts_with("disk:"));
        let sources = self.sources(has_disks, disks)?;
        Ok((!sources.is_empty()).then(|| Watching::begin(sources)))
    }
}
