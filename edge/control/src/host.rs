//! A running host: lock, directory, engine, API; and its end.
//!
//! Relies on the engine only through its handle. Must end cleanly on SIGTERM and Ctrl-C: requests under way are finished
//! and the devices are left as a clean start wants them.

use crate::cluster::{self, Cluster};
use crate::config::Config;
use crate::control::Control;
use crate::data_dir;
use crate::directory::HostStore;
use crate::events::EventLog;
use crate::http;
use crate::http::doors::{Bound, Doors};
use crate::limits::RESERVE_PERIOD;
use crate::lock::{self, Lock};
use crate::security::{self, Security};
use crate::system::random_bits;
use base::HostId;
use engine::{self, EngineError, Settings, Started};
use failure::Failure;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;

/// Starts an engine.
pub type StartEngine = fn(Settings) -> Result<Started, EngineError>;

/// A host that serves.
pub struct Host {
    /// What the API answers with.
    pub control: Arc<Control>,
    doors: Arc<Doors>,
    stop: watch::Sender<bool>,
    engine: thread::JoinHandle<()>,
    _lock: Lock,
}

/// The threads of the control plane: two, so that a request that waits for the directory keeps no other waiting.
///
/// # Errors
/// When the machine has no threads left.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("control")
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("start the control plane", error))
}

/// `drystone host`, by an engine that `start_engine` starts. `force`: devices are formatted even if they hold other data.
///
/// # Errors
/// Why the host cannot start, or what ended it.
pub fn run(path: &Path, force: bool, start_engine: StartEngine) -> Result<(), Failure> {
    let config = Config::read(path, force)?;
    let descriptors = engine::descriptors::raise_limit();
    tracing::debug!("at most {descriptors} descriptors are open at once");
    runtime()?.block_on(async {
        let mut told = told_to_stop()?;
        let host = tokio::select! {
            host = Host::start(config, start_engine) => host?,
            // Nothing is served yet: it ends as if it were killed.
            signal = &mut told => {
                tracing::info!("stopped while it started: {signal}");
                return Ok(());
            }
        };
        let view = host.control.host_view().await?;
        tracing::info!(
            "host {} serves {} disks: nbd at {}, api at {}",
            view.name,
            view.disk_count,
            view.nbd.join(" "),
            view.http.join(" ")
        );
        host.serve_until(told).await
    })
}

/// Completes when the process is asked to end, with what asked. From this call on, and not only once that is waited for, a signal does not
/// end the process by itself.
///
/// # Errors
/// When signals cannot be received.
pub fn told_to_stop() -> Result<Pin<Box<dyn Future<Output = &'static str> + Send>>, Failure> {
    let failed = |error| Failure::failed("wait for signals", error);
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "Ctrl-C",
        }
    }))
}

impl Host {
    /// Starts the host of a configuration.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn start(config: Config, start_engine: StartEngine) -> Result<Host, Failure> {
        let data_dir = config.data_dir.clone();
        let lock = lock::take(&data_dir)?;
        if data_dir::take_reserve(&data_dir)? {
            tracing::warn!("{} is full: the room kept for starts is taken", data_dir.display());
        }
        let started = Host::start_locked(config, start_engine, lock).await;
        data_dir::keep_reserve(&data_dir);
        let host = started.map_err(|failure| data_dir::explained(&data_dir, failure))?;
        tokio::spawn(tend_reserve(data_dir, host.stop.subscribe()));
        Ok(host)
    }

    async fn start_locked(config: Config, start_engine: StartEngine, lock: Lock) -> Result<Host, Failure> {
        let store = HostStore::open(&config.directory_file(), HostId(random_bits()?))?;
        let security = Security::load(&config.data_dir)?;
        security::check_listeners(&config, security.is_some())?;
        security.as_ref().map_or(Ok(()), |security| security.check_time(&config.name))?;
        let nbd_tls = security.as_ref().map(|security| security.nbd_tls()).transpose()?;
        let found = cluster::find(&config, &store, security.clone()).await?;
        let fabric = found.fabric(&config, &store)?;
        let events = Arc::new(EventLog::open(&config.data_dir, &config.name)?);
        let (sender, notices) = unbounded_channel();
        let doors = Arc::new(Doors::default());
        let settings = Settings { cluster_tls: nbd_tls, ..config.settings(fabric.clone(), sender) };
        let Started { handle, thread: engine, peers } = start_engine(settings)?;
        let started = match Cluster::new(found, &config, &fabric, (handle.clone(), peers), events) {
            Ok(cluster) => {
                Control::start(store, cluster, notices, (handle.clone(), Arc::clone(&doors))).await
            }
            Err(failure) => Err(failure),
        };
        let control = match started {
            Ok(control) => control,
            Err(failure) => {
                // The devices that were opened are left clean.
                let _ = handle.call(|answer| engine::Command::Stop { answer }).await;
                join(engine).await?;
                return Err(failure);
            }
        };
        let host = Host { control, doors, stop: watch::Sender::new(false), engine, _lock: lock };
        let control = &host.control;
        host.doors.set_routers(http::router(Arc::clone(control)), http::pages(Arc::clone(control)));
        match host.open_doors(&config).await {
            Ok(()) => Ok(host),
            Err(failure) => {
                host.stop().await?;
                Err(failure)
            }
        }
    }

    /// Serves at all places of the configuration.
    async fn open_doors(&self, config: &Config) -> Result<(), Failure> {
        for listen in &config.http {
            self.doors.serve(Bound::at(listen).await?, &self.control.cluster);
        }
        self.control.open_console(config.console.listen.as_deref().unwrap_or_default()).await
    }

    /// Serves until it is told to stop, the host leaves its cluster, or the engine ends by itself, which is a failure.
    ///
    /// # Errors
    /// When the engine ended by itself, or the cluster's records are not understood any more.
    pub async fn serve_until(self, told: impl Future<Output = &'static str>) -> Result<(), Failure> {
        let engine_gone = async {
            while !self.engine.is_finished() {
                tokio::time::sleep(crate::limits::SAMPLE_PERIOD).await;
            }
        };
        tokio::select! {
            signal = told => {
                tracing::info!("stopping: {signal}");
                self.stop().await
            }
            () = self.control.has_left() => {
                tracing::info!("stopping: this host has left its cluster");
                self.stop().await
            }
            // At once and with no word to the directory, as if it were killed: other hosts are told so, and take over.
            why = self.control.outgrown() => Err(why),
            () = engine_gone => {
                join(self.engine).await?;
                Err(Failure::new(failure::Code::Failed, "the storage engine ended by itself"))
            }
        }
    }

    /// Ends it: the API first, then the engine.
    ///
    /// # Errors
    /// When the engine's thread broke.
    pub async fn stop(self) -> Result<(), Failure> {
        self.stop.send_replace(true);
        self.doors.stop().await;
        self.control.stop().await;
        let ended = join(self.engine).await;
        self.doors.remove_sockets();
        ended
    }
}

/// What a start took is kept for the next one as soon as there is room again.
async fn tend_reserve(data_dir: PathBuf, mut stop: watch::Receiver<bool>) {
    while tokio::time::timeout(RESERVE_PERIOD, stop.wait_for(|stop| *stop)).await.is_err() {
        data_dir::restore_reserve(&data_dir);
    }
}

/// Waits for the engine's thread, off the threads of the control plane.
async fn join(engine: thread::JoinHandle<()>) -> Result<(), Failure> {
    let joined = tokio::task::spawn_blocking(move || engine.join()).await;
    match joined {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Failure::new(
            failure::Code::Failed,
            "the storage engine's thread broke; its message is above",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;
    use api::client::Client;
    use failure::Code;
    use std::path::Path;
    use tokio::net::UnixListener;

    fn fake_engine(_: Settings) -> Result<Started, EngineError> {
        Ok(Started { handle: fake::start().0, thread: thread::spawn(|| {}), peers: vec![None] })
    }

    fn config(folder: &Path) -> Config {
        let text = format!(
            "data_dir = \"{}\"\n[listen]\nhttp = [\"unix:api.sock\", \"127.0.0.1:0\"]\n[[group]]\nlog = \"/dev/log\"\n",
            folder.display()
        );
        Config::parse(&text, folder, false).expect("a configuration")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_host_answers_until_it_is_stopped_and_then_starts_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let client = Client::Unix(folder.path().join("api.sock"));
        for _ in 0..2 {
            let host = Host::start(config(folder.path()), fake_engine).await.expect("it starts");
            let view: serde_json::Value = client.get("/api/v1/host").await.expect("it answers");
            assert_eq!(view["disk_count"], 0);
            let second = Host::start(config(folder.path()), fake_engine).await.err().expect("one is enough");
            assert_eq!(second.code, Code::Refused);
            assert!(second.error.contains("running on it already"), "{second}");
            host.stop().await.expect("it stops");
            let failure = client.get::<serde_json::Value>("/api/v1/host").await.expect_err("it is gone");
            assert_eq!(failure.code, Code::Unreachable);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_socket_that_another_program_answers_at_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let _other = UnixListener::bind(folder.path().join("api.sock")).expect("bound");
        let failure = Host::start(config(folder.path()), fake_engine).await.err().expect("taken");
        assert!(failure.error.contains("another program answers there"), "{failure}");
    }
}
