//! What this host shows to others and whom it believes: the files of its identity, and TLS for each kind of connection.
//!
//! Relies on `trust` for every check. Must never let a listener stand open beyond this machine without a certificate.

use crate::config::Config;
use api::client::Client;
use api::identity::FOLDER;
use api::identity::store_of;
use base::{ClusterId, HostId};
use engine::{Listen, PeerTls};
use failure::Failure;
use rustls::ServerConfig;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use trust::{
    Address, Anchors, Authority, Clients, Credentials, Expected, Fingerprint, Grant, Identity, KeyPair, Name,
    Store, Trust,
};

/// This host's certificate, its key, and the authorities that it believes.
#[derive(Debug)]
pub struct Security {
    store: Store,
    /// What is shown and believed now.
    pub trust: Arc<Trust>,
}

/// Puts the identity of a host aside that has left its cluster, so that it can join one anew; where it is now.
///
/// # Errors
/// When it cannot be renamed.
pub fn put_aside(data_dir: &Path) -> Result<Option<PathBuf>, Failure> {
    let (own, aside) = (data_dir.join(FOLDER), data_dir.join(format!("{FOLDER}.left")));
    let failed = |error| Failure::failed(format!("put {} aside", own.display()), error);
    match std::fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    match std::fs::rename(&own, &aside) {
        Ok(()) => Ok(Some(aside)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// A name as certificates carry it.
///
/// # Errors
/// When it has other characters.
pub fn name(text: &str) -> Result<Name, Failure> {
    text.parse().map_err(|error: trust::NameError| Failure::usage(error.to_string()))
}

impl Security {
    /// Reads it; nothing where there is no certificate yet.
    ///
    /// # Errors
    /// When the files are damaged, open to others, or do not belong together.
    pub fn load(data_dir: &Path) -> Result<Option<Arc<Security>>, Failure> {
        let store = store_of(data_dir);
        if !store.has_identity() {
            return Ok(None);
        }
        let trust = store.load().map_err(|error| Failure::because("read this host's identity", &error))?;
        Ok(Some(Arc::new(Security { store, trust })))
    }

    /// Refuses a certificate that is over. A host that has the authority's key gives itself another one.
    ///
    /// # Errors
    /// Says when it ended, and the way out.
    pub fn check_time(&self, name: &str) -> Result<(), Failure> {
        let shown = self.trust.certificate();
        if SystemTime::now() <= shown.not_after || self.store.has_authority() {
            return Ok(());
        }
        Err(Failure::refused(format!("this host's certificate ended at {}", shown.end_text())).hint(format!(
            "compare the clock; or on another host `drystone host token --again {name}`, and here `drystone host join --replace`"
        )))
    }

    /// The cluster that the certificate is of.
    pub fn cluster(&self) -> ClusterId {
        self.trust.identity().cluster()
    }

    /// One connection with another host, for who has no engine.
    ///
    /// # Errors
    /// When the certificate is not a host's.
    pub fn peer_session(&self, host: HostId) -> Result<rustls::ClientConnection, Failure> {
        let config = trust::client_config(&self.trust, trust::Expected::Host(host), trust::system_clock())
            .map_err(|error| Failure::because("connect to another host", &error))?;
        rustls::ClientConnection::new(Arc::new(config), trust::server_name())
            .map_err(|error| Failure::because("connect to another host", &error))
    }

    /// Encryption of connections with other hosts.
    ///
    /// # Errors
    /// When the certificate is not a host's.
    pub fn peer_tls(&self) -> Result<PeerTls, Failure> {
        PeerTls::new(Arc::clone(&self.trust), trust::system_clock())
            .map_err(|error| Failure::because("encrypt connections of hosts", &error))
    }

    /// Encryption of the API. Who comes without a certificate gets in to redeem a join token, and for nothing else.
    ///
    /// # Errors
    /// When the certificate is not a host's.
    pub fn api_tls(&self) -> Result<Arc<ServerConfig>, Failure> {
        let clients = Clients::Optional(Expected::Member);
        let mut config = trust::server_config(&self.trust, clients, trust::system_clock())
            .map_err(|error| Failure::because("encrypt the API", &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Encryption of NBD: for members of the cluster alone.
    ///
    /// # Errors
    /// When the certificate is not a host's.
    pub fn nbd_tls(&self) -> Result<Arc<ServerConfig>, Failure> {
        let config =
            trust::server_config(&self.trust, Clients::Demanded(Expected::Member), trust::system_clock());
        config.map(Arc::new).map_err(|error| Failure::because("encrypt NBD", &error))
    }

    /// The way to another host's API, with this host's certificate.
    pub fn client(&self, address: String, host: HostId) -> Client {
        Client::Tls { address, trust: Arc::clone(&self.trust), expected: Expected::Host(host) }
    }

    /// The authority, if its key is here.
    ///
    /// # Errors
    /// When its file is damaged or open to others.
    pub fn authority(&self) -> Result<Option<Authority>, Failure> {
        if !self.store.has_authority() {
            return Ok(None);
        }
        let found = self.store.load_authority(self.cluster());
        found.map(Some).map_err(|error| Failure::because("read the authority's key", &error))
    }

    /// Signs with another authority from now on, which is believed already.
    ///
    /// # Errors
    /// When it is not, or the system refuses.
    pub fn keep_authority(&self, authority: &Authority) -> Result<(), Failure> {
        self.store
            .save_authority(authority)
            .map_err(|error| Failure::because("write the authority's key", &error))
    }

    /// Believes other authorities from now on; whether they are others.
    ///
    /// # Errors
    /// When none of them signed what this host shows, or the system refuses.
    pub fn believe(&self, pem: &str) -> Result<bool, Failure> {
        let anchors = Anchors::from_pem(self.cluster(), pem)
            .map_err(|error| Failure::because("read the cluster's authorities", &error))?;
        let prints = |anchors: &Anchors| -> Vec<Fingerprint> {
            anchors.certificates().map(trust::Certificate::fingerprint).collect()
        };
        if prints(&anchors) == prints(&self.trust.anchors()) {
            return Ok(false);
        }
        let replaced = self.trust.replace_anchors(anchors.clone());
        replaced.map_err(|error| Failure::because("believe the cluster's authorities", &error))?;
        self.store
            .save_anchors(&anchors)
            .map_err(|error| Failure::because("write the authorities", &error))?;
        self.save_former()?;
        Ok(true)
    }

    /// Shows another certificate of this host from now on.
    ///
    /// # Errors
    /// When it is not one of this host, no authority that is believed signed it, or the system refuses.
    pub fn show(&self, key: KeyPair, certificate: &str) -> Result<(), Failure> {
        let what = "take the new certificate";
        let credentials =
            Credentials::new(key, certificate).map_err(|error| Failure::because(what, &error))?;
        // First, as this refuses what does not belong here: nothing of that is written.
        self.trust
            .replace_credentials(credentials.clone())
            .map_err(|error| Failure::because(what, &error))?;
        self.save_former()?;
        self.store.save_credentials(&credentials).map_err(|error| Failure::because(what, &error))
    }
}

impl Security {
    /// What was shown before the authority was changed is shown after a start, too.
    fn save_former(&self) -> Result<(), Failure> {
        let former = self.trust.former();
        self.store
            .save_former(former.as_ref())
            .map_err(|error| Failure::because("write the former certificate", &error))
    }
}

/// A certificate for a host.
///
/// # Errors
/// When the request or the authority cannot be used.
pub fn issue_for_host(
    authority: &Authority,
    request: &str,
    (host, host_name): (HostId, &str),
    addresses: &[String],
) -> Result<String, Failure> {
    let identity = Identity::Host { cluster: authority.cluster(), host, name: name(host_name)? };
    let parsed: Result<Vec<Address>, _> = addresses.iter().map(|text| text.parse()).collect();
    let addresses = parsed.map_err(|error: trust::AddressError| Failure::usage(error.to_string()))?;
    let grant = Grant { identity, addresses, lifetime: trust::HOST_LIFETIME };
    issue(authority, request, &grant)
}

/// A certificate.
///
/// # Errors
/// When the request or the authority cannot be used.
pub fn issue(authority: &Authority, request: &str, grant: &Grant) -> Result<String, Failure> {
    let issued = authority.issue(request, grant, SystemTime::now());
    issued.map_err(|error| Failure::because("give a certificate out", &error))
}

/// Where a host says that it can be reached, for its certificate: its name, and the addresses that it listens at.
pub fn addresses_of(config: &Config) -> Vec<String> {
    let tcp = config.http.iter().chain(&config.nbd).filter_map(|listen| match listen {
        Listen::Tcp(address) => Some(address.ip()),
        Listen::Unix(_) => None,
    });
    let peers = config.cluster.peers.iter().map(SocketAddr::ip);
    let loopback = [IpAddr::from([127, 0, 0, 1])];
    let mut all: Vec<IpAddr> = tcp.chain(peers).chain(loopback).filter(|ip| !ip.is_unspecified()).collect();
    all.sort();
    all.dedup();
    let name = config.name.parse::<Address>().ok().map(|_| config.name.clone());
    name.into_iter().chain(all.iter().map(IpAddr::to_string)).take(trust::ADDRESSES_MAX).collect()
}

/// Refuses a configuration that would let everybody in from beyond this machine: without a certificate, or by a `[tls]` section
/// that asks nobody for one.
///
/// # Errors
/// Says which key, and the way out.
pub fn check_listeners(config: &Config, has_certificate: bool) -> Result<(), Failure> {
    let tcp = |all: &[Listen]| -> Vec<SocketAddr> {
        let address = |listen: &Listen| match listen {
            Listen::Tcp(address) => Some(*address),
            Listen::Unix(_) => None,
        };
        all.iter().filter_map(address).collect()
    };
    let peers = config.cluster.peers.into_iter().collect();
    let nbd_asks = match &config.tls {
        Some(tls) => tls.required && tls.client_authorities.is_some(),
        None => has_certificate,
    };
    let places = [
        ("[cluster] peers", peers, has_certificate),
        ("[listen] http", tcp(&config.http), has_certificate),
        ("[listen] nbd", tcp(&config.nbd), nbd_asks),
    ];
    let open = places.iter().filter(|(_, _, asks)| !asks);
    let mut open = open.flat_map(|(key, addresses, _)| addresses.iter().map(move |address| (*key, address)));
    let Some((key, address)) = open.find(|(_, address)| !address.ip().is_loopback()) else { return Ok(()) };
    let why = if has_certificate {
        "nobody is asked for a certificate there"
    } else {
        "this host has no certificate yet"
    };
    let hint = match (&config.tls, &config.cluster.peers) {
        (Some(_), _) if key == "[listen] nbd" => {
            "set [tls] required = true and client_authorities, or leave [tls] out in a cluster: its own certificates count then"
        }
        (_, Some(_)) => {
            "make the cluster with `drystone cluster init`, or become one of its hosts with `drystone host join`"
        }
        (_, None) => {
            "use a loopback address or a unix socket; NBD may be reached from elsewhere with [tls] required = true and client_authorities"
        }
    };
    Err(Failure::refused(format!("{key} = \"{address}\" would let everybody in: {why}")).hint(hint))
}
