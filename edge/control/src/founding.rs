//! How a cluster of several hosts begins: its authority, this host's certificate, and its first records in etcd.
//!
//! Used by `cluster init` on a host that does not run, and by a host that serves. Every step can be repeated: an attempt that was
//! cut short is gone on with, or what it left is replaced. Must never replace the records of a cluster that any host uses.

use crate::config::{Config, DirectoryPlace, MemberPlace};
use crate::directory::HostStore;
use crate::directory::shared::record::{Authorities, AuthorityRecord, DISKS};
use crate::directory::shared::{Alone, ClusterRecord, Entry, InEtcd, first_generation};
use crate::limits::{DIRECTORY_RETRY, MEMBER_START_WAIT};
use crate::system::now_seconds;
use crate::{managed, security};
use api::identity::save_new;
use api::identity::store_of;
use base::{ClusterId, HostId};
use etcd::process::{Supervisor, url_of};
use failure::{Code, Failure};
use std::time::{Instant, SystemTime};
use trust::{Anchors, Authority, KeyPair, Store};

/// What a host that stood alone has kept: its records, and the version of the last change.
pub type Former = (Vec<Entry>, u64);

/// A cluster that is to be made.
pub struct Founding<'a> {
    config: &'a Config,
    own: &'a HostStore,
    store: Store,
    place: etcd::Options,
    /// Where this host's member listens of an etcd that the cluster is to run for itself.
    member: Option<MemberPlace>,
    name: String,
}

impl<'a> Founding<'a> {
    /// The cluster that a configuration describes; named as its prefix in etcd, if nothing else is said. `is_managed`: it is to run etcd
    /// for itself.
    ///
    /// # Errors
    /// When the configuration names no etcd, or one where the cluster is to run it, or the name is none.
    pub fn of(
        config: &'a Config,
        own: &'a HostStore,
        name: Option<&str>,
        is_managed: bool,
    ) -> Result<Founding<'a>, Failure> {
        let DirectoryPlace::Etcd(place) = &config.cluster.directory else {
            return Err(Failure::usage(
                "the configuration names no etcd: a cluster of several hosts needs one",
            )
            .hint("set [cluster] directory = \"etcd\", and [cluster.etcd] endpoints or `--etcd managed`"));
        };
        match (config.cluster.member, is_managed) {
            (None, true) => {
                return Err(Failure::usage(
                    "the configuration names the endpoints of an etcd: it is not Drystone's to run",
                )
                .hint("take endpoints out of [cluster.etcd], or leave --etcd managed out"));
            }
            (Some(_), false) => {
                return Err(Failure::usage("the configuration names no endpoints of etcd")
                    .hint("name them in [cluster.etcd], or have Drystone run etcd on the first three hosts: --etcd managed"));
            }
            (Some(_), true) | (None, false) => {}
        }
        let by_prefix = || place.prefix.trim_matches('/').rsplit('/').next().unwrap_or_default();
        let name = name.unwrap_or_else(by_prefix).to_owned();
        api::name::check_name(&name)?;
        let (store, member) = (store_of(&config.data_dir), config.cluster.member);
        Ok(Founding { config, own, store, place: place.clone(), member, name })
    }

    /// How etcd is reached; the member that this host runs, once it does.
    pub fn place(&self) -> etcd::Options {
        match self.member {
            Some(member) => etcd::Options { endpoints: vec![url_of(member.clients)], ..self.place.clone() },
            None => self.place.clone(),
        }
    }

    fn etcd(&self) -> Result<InEtcd, Failure> {
        InEtcd::new(&self.place())
    }

    /// What people call the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that etcd answers, and has room for the cluster: nothing of another one. `is_former`: of a host that stood alone.
    ///
    /// # Errors
    /// When it does not.
    pub async fn check(&self, is_former: bool) -> Result<(), Failure> {
        match self.member {
            Some(place) => managed::check(&self.config.data_dir, place),
            None => self.check_room(is_former).await,
        }
    }

    async fn check_room(&self, is_former: bool) -> Result<(), Failure> {
        match is_former {
            // What an interrupted attempt left is removed by the next.
            true => self.etcd()?.ground(Some(self.alone()?)).await.map(drop),
            false => self.etcd()?.check_free().await,
        }
    }

    /// Has this host run the first member of etcd, if the cluster is to run it for itself, and waits until that answers. What is given
    /// keeps its process; nothing where another process does.
    ///
    /// # Errors
    /// When the member does not start, or has another cluster's records.
    pub async fn run_member(
        &self,
        is_former: bool,
        authority: &Authority,
    ) -> Result<Option<Supervisor>, Failure> {
        let Some(place) = self.member else { return Ok(None) };
        let data_dir = &self.config.data_dir;
        let folder = managed::folder_of(data_dir);
        let failed = managed::failed(&folder);
        if folder.spec().map_err(&failed)?.is_none() {
            let spec = managed::spec(data_dir, place, (authority.cluster(), self.own.host), Vec::new(), None);
            folder.run(&spec, &authority.certificate_pem()).map_err(&failed)?;
        }
        folder.set_endpoints(&self.place().endpoints).map_err(&failed)?;
        let supervisor = managed::supervise(data_dir)?;
        let etcd = self.etcd()?;
        let until = Instant::now() + MEMBER_START_WAIT;
        while let Err(error) = etcd.etcd.get("").await {
            if Instant::now() >= until {
                return Err(Failure::new(
                    Code::Unreachable,
                    format!("the member of etcd on this host does not start: {error}"),
                )
                .hint(format!("see what it says in {}, and try again", folder.log().display())));
            }
            tokio::time::sleep(DIRECTORY_RETRY).await;
        }
        self.check_room(is_former).await?;
        Ok(supervisor)
    }

    fn alone(&self) -> Result<Alone, Failure> {
        let cluster = self.own.cluster()?.ok_or_else(|| Failure::refused("this host has no cluster yet"))?;
        Ok(Alone { cluster, host: self.own.host })
    }

    /// The authority of the cluster, and this host's certificate of it; those of an attempt that was cut short, if there are.
    ///
    /// # Errors
    /// When the files cannot be written, or this host belongs to a cluster already.
    pub fn authority(&self, is_former: bool) -> Result<Authority, Failure> {
        let made = |error: &dyn std::error::Error| Failure::because("make the cluster's authority", error);
        if self.store.has_identity() {
            let credentials = self.store.load_credentials().map_err(|error| made(&error))?;
            return self.store.load_authority(credentials.identity().cluster()).map_err(|error| made(&error));
        }
        let cluster = match self.own.cluster()? {
            // A cluster of one becomes one of several: its devices are of it already.
            Some(cluster) if is_former => cluster,
            Some(cluster) => {
                return Err(Failure::refused(format!("this host has devices of cluster {cluster} already"))
                    .hint("give it a data_dir and devices of its own"));
            }
            None => ClusterId(crate::system::random_bits()?),
        };
        let authority = Authority::create(cluster, &security::name(&self.name)?, SystemTime::now());
        let authority = authority.map_err(|error| made(&error))?;
        let anchors = Anchors::of(&authority).map_err(|error| made(&error))?;
        self.store.save_anchors(&anchors).map_err(|error| made(&error))?;
        self.store.save_authority(&authority).map_err(|error| made(&error))?;
        let key = KeyPair::generate().map_err(|error| made(&error))?;
        let request = key.signing_request().map_err(|error| made(&error))?;
        let whose: (HostId, &str) = (self.own.host, &self.config.name);
        let addresses = security::addresses_of(self.config);
        let certificate = security::issue_for_host(&authority, &request, whose, &addresses)?;
        save_new(&self.store, key, &certificate, &authority.certificate_pem())?;
        Ok(authority)
    }

    /// Writes the first records: those of a host that stood alone, if it is one.
    ///
    /// # Errors
    /// When etcd does not answer, or holds a cluster: nothing counts before the last step, and the next attempt begins anew.
    pub async fn write(
        &self,
        authority: &Authority,
        former: Option<Former>,
    ) -> Result<ClusterRecord, Failure> {
        let record = ClusterRecord {
            id: authority.cluster().to_string(),
            name: self.name.clone(),
            created: now_seconds(),
            generation: first_generation(),
            versions_from: former.as_ref().map_or(0, |(_, revision)| *revision),
        };
        let authorities = Authorities {
            authorities: vec![AuthorityRecord {
                certificate: authority.certificate_pem(),
                keeper: self.own.host.to_string(),
                created_ns: trust::nanoseconds(SystemTime::now()),
                signs: true,
            }],
            renew_before_ns: 0,
        };
        match former {
            Some((records, _)) => {
                let whose = (self.alone()?, self.config.name.as_str());
                self.etcd()?.take_over(&record, whose, records, &authorities).await?;
            }
            None => self.etcd()?.make(&record, &authorities).await?,
        }
        Ok(record)
    }
}

/// Disks among the records of a host that stood alone.
pub fn disks_of(former: &Former) -> usize {
    former.0.iter().filter(|one| one.key.starts_with(DISKS)).count()
}
