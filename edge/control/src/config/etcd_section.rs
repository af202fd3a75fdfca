//! `[cluster.etcd]` of a configuration: an etcd that exists, or one that the cluster runs for itself.

use super::member_place::{MemberPlace, any_loopback_port};
use failure::Failure;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The section. Without `endpoints` the cluster runs etcd for itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EtcdSection {
    endpoints: Option<Vec<String>>,
    clients: Option<SocketAddr>,
    peers: Option<SocketAddr>,
    #[serde(default = "etcd_prefix")]
    prefix: String,
    authorities: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    user: Option<String>,
    password_file: Option<PathBuf>,
}

fn etcd_prefix() -> String {
    "/drystone/".to_owned()
}

impl Default for EtcdSection {
    /// The cluster runs etcd by itself.
    fn default() -> EtcdSection {
        EtcdSection {
            endpoints: None,
            clients: None,
            peers: None,
            prefix: etcd_prefix(),
            authorities: None,
            certificate: None,
            key: None,
            user: None,
            password_file: None,
        }
    }
}

/// Where a member of etcd listens for clients, and for other members, if nothing else is said (IANA: etcd-client, etcd-server).
const ETCD_PORTS: [u16; 2] = [2379, 2380];

impl EtcdSection {
    /// How hosts reach an etcd that they run themselves, and where this host's member listens.
    fn managed(
        self,
        hosts: Option<SocketAddr>,
        data_dir: &Path,
    ) -> Result<(etcd::Options, MemberPlace), Failure> {
        let is_told = self.authorities.is_some() || self.certificate.is_some() || self.user.is_some();
        if is_told || self.key.is_some() || self.password_file.is_some() {
            return Err(Failure::usage(
                "[cluster.etcd] without endpoints: Drystone runs etcd, with the cluster's own certificates",
            )
            .hint("name the endpoints, or take authorities, certificate, key, user and password_file out"));
        }
        let address = hosts.map_or_else(|| any_loopback_port().ip(), |peers| peers.ip());
        let [clients, peers] = ETCD_PORTS.map(|port| SocketAddr::new(address, port));
        let place =
            MemberPlace { clients: self.clients.unwrap_or(clients), peers: self.peers.unwrap_or(peers) };
        for (key, at) in [("clients", place.clients), ("peers", place.peers)] {
            if at.ip().is_unspecified() || at.port() == 0 {
                return Err(Failure::usage(format!(
                    "[cluster.etcd] {key} = \"{at}\": other hosts connect there, so an address of this host and a port are needed"
                ))
                .hint(format!("for example {key} = \"10.0.0.1:{}\"", at.port().max(ETCD_PORTS[0]))));
            }
        }
        check_prefix(&self.prefix)?;
        Ok((crate::managed::options(data_dir, self.prefix)?, place))
    }

    /// How etcd is reached, and where this host's own member listens, if the cluster runs etcd for itself. `hosts`: where other hosts
    /// connect.
    pub(super) fn read(
        self,
        hosts: Option<SocketAddr>,
        folder: &Path,
        data_dir: &Path,
    ) -> Result<(etcd::Options, Option<MemberPlace>), Failure> {
        match self.endpoints {
            Some(_) => Ok((self.existing(folder)?, None)),
            None => self.managed(hosts, data_dir).map(|(options, place)| (options, Some(place))),
        }
    }

    fn existing(self, folder: &Path) -> Result<etcd::Options, Failure> {
        let endpoints = self.endpoints.unwrap_or_default();
        if endpoints.is_empty() {
            return Err(Failure::usage("[cluster.etcd] endpoints is empty: one of each member is needed")
                .hint("or leave it out: then Drystone runs etcd (`drystone cluster init --etcd managed`)"));
        }
        if self.clients.is_some() || self.peers.is_some() {
            return Err(Failure::usage(
                "[cluster.etcd] clients and peers are of an etcd that Drystone runs; endpoints are named, so it does not",
            ));
        }
        for endpoint in &endpoints {
            let is_plain = endpoint.starts_with("http://");
            if !is_plain && !endpoint.starts_with("https://") {
                return Err(Failure::usage(format!(
                    "[cluster.etcd] endpoints: \"{endpoint}\" is none: http://HOST:2379 and https://HOST:2379 are"
                )));
            }
            if is_plain && self.authorities.is_some() {
                return Err(Failure::usage(format!(
                    "[cluster.etcd] endpoints: \"{endpoint}\" is without TLS, and authorities are named"
                )));
            }
        }
        check_prefix(&self.prefix)?;
        let own = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some((folder.join(certificate), folder.join(key))),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(Failure::usage("[cluster.etcd] certificate and key go together"));
            }
        };
        if own.is_some() && self.authorities.is_none() {
            return Err(Failure::usage(
                "[cluster.etcd] certificate needs authorities too: those of etcd's own",
            ));
        }
        let user = match (self.user, self.password_file) {
            (Some(user), Some(path)) => {
                let path = folder.join(path);
                let password = std::fs::read_to_string(&path)
                    .map_err(|error| Failure::failed(format!("read {}", path.display()), error))?;
                Some((user, password.trim_end_matches(['\r', '\n']).to_owned()))
            }
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(Failure::usage("[cluster.etcd] user and password_file go together"));
            }
        };
        let tls = self.authorities.map(|authorities| etcd::Tls {
            authorities: folder.join(authorities),
            own,
            name: None,
        });
        Ok(etcd::Options { endpoints, prefix: self.prefix, tls, user })
    }
}

fn check_prefix(prefix: &str) -> Result<(), Failure> {
    match prefix.starts_with('/') && prefix.ends_with('/') && prefix.len() > 2 {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "[cluster.etcd] prefix = \"{prefix}\" does not begin and end with a slash and a name between"
        ))),
    }
}
