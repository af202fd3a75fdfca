//! What browsers are shown: a certificate from elsewhere, the cluster's, or one that this host signs itself.

use crate::cluster::Cluster;
use crate::config::Config;
use crate::limits::CONSOLE_CERTIFICATE_LEFT;
use failure::Failure;
use rustls::ServerConfig;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use trust::{Address, Fingerprint, ShownToBrowsers};

/// Protocols that browsers choose from: a stream of events takes none of the few connections of HTTP/1.1.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What browsers are shown.
pub struct Browsers {
    cluster: Arc<Cluster>,
    /// A certificate and its key from elsewhere.
    given: Option<Files>,
    /// Those that this host makes itself.
    own: Files,
    name: String,
    read: Mutex<Option<Read>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// What was read of files, and when they had changed last.
struct Read {
    changed: [SystemTime; 2],
    config: Arc<ServerConfig>,
    /// Whether it names somebody else as who has signed it.
    is_vouched_for: bool,
}

impl Browsers {
    /// Of a host.
    pub fn new(cluster: Arc<Cluster>, config: &Config) -> Browsers {
        let given = config.console.certificate.clone();
        let folder = config.data_dir.join("console");
        Browsers {
            cluster,
            given: given.map(|(certificate, key)| Files { certificate, key }),
            own: Files { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") },
            name: config.name.clone(),
            read: Mutex::new(None),
        }
    }

    /// Encryption of the next connection: files that were replaced count from then on.
    ///
    /// # Errors
    /// When files cannot be read or do not belong together, or none can be made.
    pub fn tls(&self) -> Result<Arc<ServerConfig>, Failure> {
        match (&self.given, self.cluster.certified()) {
            (Some(files), _) => self.read(files),
            (None, Some(security)) => {
                config(&ShownToBrowsers::Host(Arc::clone(&security.trust))).map(Arc::new)
            }
            (None, None) => {
                self.make_own()?;
                self.read(&self.own)
            }
        }
    }

    /// SHA-256 of the certificate, where this host has signed it itself and nobody can check it otherwise.
    ///
    /// # Errors
    /// When it cannot be read or made.
    pub fn own_fingerprint(&self) -> Result<Option<String>, Failure> {
        if self.given.is_some() || self.cluster.certified().is_some() {
            return Ok(None);
        }
        self.make_own()?;
        Ok(Some(read_certificate(&self.own.certificate)?.0.to_string()))
    }

    /// Whether browsers are shown a certificate that the configuration names and that somebody else has signed: one that they know
    /// without being asked.
    pub fn is_vouched_for(&self) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        self.given.is_some() && read.as_ref().is_some_and(|read| read.is_vouched_for)
    }

    fn read(&self, files: &Files) -> Result<Arc<ServerConfig>, Failure> {
        let changed = |path: &Path| {
            let found = fs::metadata(path).and_then(|found| found.modified());
            found.map_err(|error| unread(path, &error))
        };
        let changed = [changed(&files.certificate)?, changed(&files.key)?];
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref().filter(|read| read.changed == changed) {
            return Ok(Arc::clone(&read.config));
        }
        let bytes = |path: &Path| fs::read(path).map_err(|error| unread(path, &error));
        let chain = bytes(&files.certificate)?;
        let is_vouched_for = !trust::signs_itself(&chain);
        let shown = ShownToBrowsers::Pem { chain, key: bytes(&files.key)? };
        let config = Arc::new(config(&shown)?);
        *read = Some(Read { changed, config: Arc::clone(&config), is_vouched_for });
        Ok(config)
    }

    /// Makes the host's own certificate, where there is none or it ends soon.
    fn make_own(&self) -> Result<(), Failure> {
        let soon = SystemTime::now() + CONSOLE_CERTIFICATE_LEFT;
        if read_certificate(&self.own.certificate).is_ok_and(|found| found.1 > soon) && self.own.key.exists()
        {
            return Ok(());
        }
        let failed = |error: std::io::Error| Failure::failed("keep a certificate for browsers", error);
        let mut addresses: Vec<Address> =
            ["localhost", "127.0.0.1", "::1"].iter().filter_map(|text| text.parse().ok()).collect();
        addresses.extend(self.name.parse::<Address>().ok());
        let (certificate, key) = trust::self_signed(&self.name, &addresses, SystemTime::now())
            .map_err(|error| Failure::because("make a certificate for browsers", &error))?;
        if let Some(folder) = self.own.key.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let opened =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.own.key);
        opened.and_then(|mut file| file.write_all(key.as_bytes())).map_err(failed)?;
        fs::write(&self.own.certificate, certificate).map_err(failed)
    }
}

fn config(shown: &ShownToBrowsers) -> Result<ServerConfig, Failure> {
    let mut config = trust::browser_config(shown, trust::system_clock())
        .map_err(|error| Failure::because("encrypt the console", &error))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

fn read_certificate(path: &Path) -> Result<(Fingerprint, SystemTime), Failure> {
    let text = fs::read_to_string(path).map_err(|error| unread(path, &error))?;
    trust::read_foreign(&text).map_err(|error| Failure::because(format!("read {}", path.display()), &error))
}

fn unread(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("read {}", path.display()), error)
        .hint("correct `certificate` and `key` in [console] of the host's configuration")
}
