//! The etcd that a cluster runs for itself, as one of its hosts sees it: the folder of its own member, and what that is started with.
//!
//! Hosts' certificates are the members' too: they alone have the name that members ask of everybody who connects, so that people's
//! certificates open nothing here. Which hosts run a member is told by [`::cluster::next_member_step`].

use crate::config::MemberPlace;
use api::identity::store_of;
use base::{ClusterId, HostId};
use etcd::process::{Folder, Lock, PROGRAM, Spec, Supervisor, url_of};
use failure::{Code, Failure};
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder in a data directory.
const FOLDER: &str = "etcd";

/// The folder of a host's own member.
pub fn folder_of(data_dir: &Path) -> Folder {
    Folder::new(data_dir.join(FOLDER))
}

/// An error of the folder's files.
pub fn failed(folder: &Folder) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::failed(format!("use {}", folder.path().display()), error)
}

/// How the members are reached, where that was last known.
///
/// # Errors
/// When the folder cannot be read.
pub fn options(data_dir: &Path, prefix: String) -> Result<etcd::Options, Failure> {
    let (folder, store) = (folder_of(data_dir), store_of(data_dir));
    let tls = etcd::Tls {
        authorities: store.authorities_file(),
        own: Some((store.certificate_file(), store.key_file())),
        name: Some(trust::SHARED_NAME.to_owned()),
    };
    let endpoints = folder.endpoints().map_err(failed(&folder))?;
    Ok(etcd::Options { endpoints, prefix, tls: Some(tls), user: None })
}

/// The authorities (PEM) that this host's member believes; nothing where none runs here.
///
/// # Errors
/// When the folder cannot be read.
pub fn believed_by_member(data_dir: &Path) -> Result<Option<String>, Failure> {
    let folder = folder_of(data_dir);
    let read = || match folder.spec()? {
        Some(_) => Ok(Some(folder.believed()?.unwrap_or_default())),
        None => Ok(None),
    };
    read().map_err(failed(&folder))
}

/// What a host's member is started with: the first one of its cluster if there are no `others` (names, and URLs for members). `member`:
/// its id, if the list of members has it already.
pub fn spec(
    data_dir: &Path,
    place: MemberPlace,
    (cluster, host): (ClusterId, HostId),
    others: Vec<(String, String)>,
    member: Option<u64>,
) -> Spec {
    let store = store_of(data_dir);
    let joins = !others.is_empty();
    let own = (host.to_string(), url_of(place.peers));
    Spec {
        name: own.0.clone(),
        token: cluster.to_string(),
        clients: place.clients,
        peers: place.peers,
        initial: others.into_iter().chain([own]).collect(),
        joins,
        own: (store.certificate_file(), store.key_file()),
        allowed: trust::SHARED_NAME.to_owned(),
        member,
    }
}

/// Runs the process of this host's member as its folder says; nothing where another process does: the service `drystone-etcd`.
///
/// # Errors
/// When the folder cannot be used.
pub fn supervise(data_dir: &Path) -> Result<Option<Supervisor>, Failure> {
    let folder = folder_of(data_dir);
    let Some(lock) = Lock::take(&folder).map_err(failed(&folder))? else { return Ok(None) };
    let supervisor = Supervisor::begin(lock, |text| tracing::warn!("{text}")).map_err(failed(&folder))?;
    Ok(Some(supervisor))
}

/// Checks that this host can run a member.
///
/// # Errors
/// When there is no program, or something else listens where it would.
pub fn check(data_dir: &Path, place: MemberPlace) -> Result<(), Failure> {
    let version = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output();
    if !version.is_ok_and(|version| version.status.success()) {
        return Err(Failure::refused(format!("there is no program `{PROGRAM}` on this host"))
            .hint("install it: apt install etcd-server; its own service is not needed"));
    }
    let folder = folder_of(data_dir);
    if folder.spec().map_err(failed(&folder))?.is_some() {
        // It may run already.
        return Ok(());
    }
    for (key, address) in [("clients", place.clients), ("peers", place.peers)] {
        if let Err(error) = std::net::TcpListener::bind(address) {
            return Err(Failure::new(Code::Refused, format!("etcd cannot listen at {address}: {error}"))
                .hint(format!("stop what listens there (Debian starts an etcd of its own: systemctl disable --now etcd), or name another address: [cluster.etcd] {key}")));
        }
    }
    Ok(())
}
