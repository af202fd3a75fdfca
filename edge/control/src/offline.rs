//! What is done to a host that does not run: making a cluster of it, joining one, running its member of etcd alone.
//!
//! The command line has these done on its own machine. Whoever does one has the host's folder for itself meanwhile.

use crate::config::{Config, DirectoryPlace};
use crate::directory::HostStore;
use crate::directory::shared::InEtcd;
use crate::founding::{Founding, disks_of};
use crate::host::told_to_stop;
use crate::limits::MEMBER_LOOK_PERIOD;
use crate::lock::{self, Lock};
use crate::system::random_bits;
use crate::{managed, security};
use api::Client;
use api::identity::redeem;
use api::identity::store_of;
use api::types::{EtcdChoice, FoundCluster, FoundedView, JoinedView, JoiningHost};
use base::HostId;
use engine::Listen;
use failure::Failure;
use std::path::Path;

/// A host's own folder, which nobody else uses meanwhile.
struct Own {
    config: Config,
    own: HostStore,
    _lock: Lock,
}

impl Own {
    fn of(config: Config) -> Result<Own, Failure> {
        let lock = lock::take(&config.data_dir)?;
        let own = HostStore::open(&config.directory_file(), HostId(random_bits()?))?;
        Ok(Own { config, own, _lock: lock })
    }
}

/// `cluster init`: by the host itself if it serves.
///
/// # Errors
/// When there is a cluster already, or something cannot be written.
pub async fn init(asked: &FoundCluster) -> Result<FoundedView, Failure> {
    let config = Config::read(Path::new(&asked.config), false)?;
    match serving(&config).await {
        Some(client) => {
            let path = std::path::absolute(&asked.config)
                .map_err(|error| Failure::usage(format!("{}: {error}", asked.config)))?;
            let asked = FoundCluster { config: path.display().to_string(), ..asked.clone() };
            client.post("/api/v1/cluster", &asked).await
        }
        None => found(Own::of(config)?, asked).await,
    }
}

/// The way to the host of a configuration, if it runs.
async fn serving(config: &Config) -> Option<Client> {
    for listen in &config.http {
        let client = match listen {
            Listen::Unix(path) => Client::Unix(path.clone()),
            Listen::Tcp(address) => Client::Tcp(address.to_string()),
        };
        if client.get::<serde_json::Value>("/api/v1/host").await.is_ok() {
            return Some(client);
        }
    }
    None
}

/// Makes a cluster of a host that does not run.
async fn found(own: Own, asked: &FoundCluster) -> Result<FoundedView, Failure> {
    let is_managed = asked.etcd == EtcdChoice::Managed;
    let founding = Founding::of(&own.config, &own.own, asked.name.as_deref(), is_managed)?;
    let former = own.own.alone()?;
    founding.check(former.is_some()).await?;
    let place = own.config.cluster.directory.to_string();
    let view = |id: String, is_made| FoundedView {
        id,
        name: founding.name().to_owned(),
        directory: place.clone(),
        host: own.config.name.clone(),
        disks: former.as_ref().map_or(0, disks_of),
        is_serving: false,
        is_made,
    };
    if asked.dry_run {
        let known = own.own.cluster()?;
        return Ok(view(known.map_or_else(String::new, |id| id.to_string()), false));
    }
    let authority = founding.authority(former.is_some())?;
    // Its process ends with this one; the host's starts it anew.
    let _member = founding.run_member(former.is_some(), &authority).await?;
    let view = view(authority.cluster().to_string(), true);
    founding.write(&authority, former).await?;
    own.own.set_cluster(authority.cluster())?;
    own.own.set_elsewhere()?;
    Ok(view)
}

/// `host join`.
///
/// # Errors
/// When the token is not good, nobody answers, or this host belongs to a cluster already.
pub async fn join(file: &Path, token: &str, is_replaced: bool) -> Result<JoinedView, Failure> {
    let own = Own::of(Config::read(file, false)?)?;
    let identity_store = store_of(&own.config.data_dir);
    if own.config.cluster.directory == DirectoryPlace::Embedded {
        return Err(Failure::usage(format!("{} names no directory in a [cluster] section", file.display()))
            .hint("copy it from a host of the cluster, with this machine's address as `peers`"));
    }
    if identity_store.has_identity() && !is_replaced {
        let credentials = identity_store.load_credentials();
        let credentials =
            credentials.map_err(|error| Failure::because("read this host's identity", &error))?;
        return Err(Failure::refused(format!("this host is {} already", credentials.identity()))
            .hint(format!("start it with `drystone host --config {}`; if its certificate has expired: `--replace` and a token made with `--again`", file.display())));
    }
    if let (DirectoryPlace::Etcd(place), None) = (&own.config.cluster.directory, own.config.cluster.member) {
        // Before the token is spent.
        InEtcd::new(place)?.check_level().await?;
    }
    let host = JoiningHost {
        id: own.own.host.to_string(),
        name: own.config.name.clone(),
        addresses: security::addresses_of(&own.config),
    };
    let (identity, _, etcd) = redeem(token, Some(host), &identity_store).await?;
    if own.config.cluster.member.is_some() {
        let folder = managed::folder_of(&own.config.data_dir);
        if etcd.is_empty() {
            return Err(Failure::refused("this cluster does not run etcd for itself, and the configuration names no endpoints")
                .hint(format!("name them in [cluster.etcd] of {}, as on the other hosts; then start it: it has its certificate", file.display())));
        }
        // What a member knew that this host ran before it left is of no use, and would keep it from becoming one again. A host that gets
        // another certificate has not left.
        if !is_replaced {
            folder.leave().map_err(managed::failed(&folder))?;
        }
        folder.set_endpoints(&etcd).map_err(managed::failed(&folder))?;
    }
    own.own.set_cluster(identity.cluster())?;
    Ok(JoinedView {
        host: own.config.name.clone(),
        id: own.own.host.to_string(),
        cluster: identity.cluster().to_string(),
        identity: identity.to_string(),
    })
}

/// `host etcd`.
///
/// # Errors
/// When the configuration makes no sense, or its folder cannot be used.
pub async fn run_etcd(config: &Path) -> Result<(), Failure> {
    let config = Config::read(config, false)?;
    if config.cluster.member.is_none() {
        eprintln!("etcd is not this cluster's own: nothing to run");
        return Ok(());
    }
    let mut stop = told_to_stop()?;
    let mut supervisor = None;
    loop {
        if supervisor.is_none() {
            // The host runs its member by itself until it is started anew.
            supervisor = managed::supervise(&config.data_dir)?;
        }
        if tokio::time::timeout(MEMBER_LOOK_PERIOD, &mut stop).await.is_ok() {
            return Ok(());
        }
    }
}
