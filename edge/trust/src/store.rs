//! The files of an identity: the key, the certificate, the authorities that are believed, and where it is, the authority's
//! own key.
//!
//! Each file is written whole or not at all, and a key with its certificate as one: after a crash at any moment a folder has
//! the former pair or the new one (`docs/formats/certificates.md`). Must never leave a private key open to others, not even for
//! a moment, nor use one that is.

mod files;

use crate::anchors::{Anchors, AnchorsError};
use crate::authority::{Authority, AuthorityError};
use crate::certificate::Certificate;
use crate::key::{KeyError, KeyPair};
use crate::trust::{Credentials, CredentialsError, Trust, TrustError};
use base::ClusterId;
use files::{Access, Step};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEY: &str = "key.pem";
const CERTIFICATE: &str = "certificate.pem";
const AUTHORITIES: &str = "authorities.pem";
const AUTHORITY_KEY: &str = "authority-key.pem";
/// The key and the certificate that were shown before the authority was changed, in one file, so that they are one.
const FORMER: &str = "former.pem";
/// What begins its second part.
const CERTIFICATE_BEGINS: &str = "-----BEGIN CERTIFICATE-----";
/// What a file is called until it takes its place.
const NEXT: &str = ".next";

/// The folder of one host or person. Only one process may write to it at a time.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// Why files cannot be read or written. `path` is the file or folder.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("{doing} {}", .path.display())]
    Io {
        /// What was done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Not there.
    #[error("{} is not there: join a cluster to get one, or correct the folder", .path.display())]
    Missing {
        /// What.
        path: PathBuf,
    },
    /// Others may read or change it.
    #[error("{} is open to others (mode {mode:03o}): run `chmod {wanted:03o} {}`", .path.display(), .path.display())]
    Open {
        /// What.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// The mode that it should have.
        wanted: u32,
    },
    /// Far too long for what it should be, or not text.
    #[error("{} has {bytes} bytes that are not the PEM text expected there", .path.display())]
    NotText {
        /// What.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// A key that cannot be read.
    #[error("{} cannot be used", .path.display())]
    Key {
        /// What.
        path: PathBuf,
        /// Why.
        source: KeyError,
    },
    /// A certificate that cannot be read, or a key that does not fit it.
    #[error("{} cannot be used", .path.display())]
    Credentials {
        /// What.
        path: PathBuf,
        /// Why.
        source: CredentialsError,
    },
    /// Authorities that cannot be read.
    #[error("{} cannot be used", .path.display())]
    Anchors {
        /// What.
        path: PathBuf,
        /// Why.
        source: AnchorsError,
    },
    /// The authority's key fits none of the authorities.
    #[error("{} cannot be used", .path.display())]
    Authority {
        /// What.
        path: PathBuf,
        /// Why.
        source: AuthorityError,
    },
    /// Certificate and authorities do not belong together.
    #[error("the files in {} do not belong together", .path.display())]
    Trust {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: TrustError,
    },
}

impl Store {
    /// That of a folder, which need not be there.
    pub fn new(folder: impl Into<PathBuf>) -> Store {
        Store { folder: folder.into() }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of the authorities that are believed, PEM.
    pub fn authorities_file(&self) -> PathBuf {
        self.path(AUTHORITIES)
    }

    /// The file of the certificate, PEM.
    pub fn certificate_file(&self) -> PathBuf {
        self.path(CERTIFICATE)
    }

    /// The file of its key, PEM.
    pub fn key_file(&self) -> PathBuf {
        self.path(KEY)
    }

    /// Whether a certificate is there, readable or not.
    pub fn has_identity(&self) -> bool {
        self.path(CERTIFICATE).exists()
    }

    /// Whether the authority's key is there, readable or not.
    pub fn has_authority(&self) -> bool {
        self.path(AUTHORITY_KEY).exists()
    }

    /// Writes a key and its certificate, as one, in place of those that are there.
    ///
    /// # Errors
    /// When the system refuses. Either the former pair is there then, or the new one.
    pub fn save_credentials(&self, credentials: &Credentials) -> Result<(), StoreError> {
        self.perform(&self.steps_of_credentials(credentials))
    }

    /// Writes what was shown before the authority was changed; nothing: there is none any more.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn save_former(&self, former: Option<&Credentials>) -> Result<(), StoreError> {
        let Some(former) = former else { return files::remove(&self.path(FORMER)) };
        let text = format!("{}{}", former.key().to_pem(), former.certificate().to_pem());
        self.perform(&self.replacing(FORMER, text, Access::Private))
    }

    /// Reads it, if it is there.
    ///
    /// # Errors
    /// When it is open to others or damaged.
    pub fn load_former(&self) -> Result<Option<Credentials>, StoreError> {
        let path = self.path(FORMER);
        let text = match files::read(&path, Access::Private) {
            Err(StoreError::Missing { .. }) => return Ok(None),
            read => read?,
        };
        let (key, certificate) = text.split_at(text.find(CERTIFICATE_BEGINS).unwrap_or(text.len()));
        let key = match KeyPair::from_pem(key) {
            Ok(key) => key,
            Err(source) => return Err(StoreError::Key { path, source }),
        };
        let found = Credentials::new(key, certificate);
        found.map(Some).map_err(|source| StoreError::Credentials { path, source })
    }

    /// Writes the authorities that are believed, in place of those that are there.
    ///
    /// # Errors
    /// When the system refuses. Either the former ones are there then, or the new ones.
    pub fn save_anchors(&self, anchors: &Anchors) -> Result<(), StoreError> {
        self.perform(&self.replacing(AUTHORITIES, anchors.to_pem(), Access::Readable))
    }

    /// Writes the key of the authority. Its certificate must be among the authorities that were saved before.
    ///
    /// # Errors
    /// When it is not, or the system refuses. Either the former key is there then, or the new one.
    pub fn save_authority(&self, authority: &Authority) -> Result<(), StoreError> {
        let anchors = self.load_anchors(authority.cluster())?;
        if !anchors.certificates().any(|certificate| certificate == authority.certificate()) {
            let source = AuthorityError::KeyDoesNotFit;
            return Err(StoreError::Authority { path: self.path(AUTHORITIES), source });
        }
        self.perform(&self.replacing(AUTHORITY_KEY, authority.key_pem(), Access::Private))
    }

    /// Reads the key and its certificate, checks that they fit, and completes what a crash left half done.
    ///
    /// # Errors
    /// When one is not there, open to others, or damaged, or when they do not fit together.
    pub fn load_credentials(&self) -> Result<Credentials, StoreError> {
        let path = self.path(KEY);
        let key = files::read(&path, Access::Private)?;
        let key = KeyPair::from_pem(&key).map_err(|source| StoreError::Key { path, source })?;
        let path = self.path(CERTIFICATE);
        let first = self.credentials_in(&path, &key);
        if matches!(first, Err(StoreError::Missing { .. } | StoreError::Credentials { .. })) {
            // The key took its place and a crash came before the certificate did.
            let next = self.path(&format!("{CERTIFICATE}{NEXT}"));
            if let Ok(found) = self.credentials_in(&next, &key) {
                self.perform(&[Step::Rename { from: next, to: path }, Step::SyncFolder])?;
                return Ok(found);
            }
        }
        first
    }

    /// Reads the authorities that are believed.
    ///
    /// # Errors
    /// When they are not there, may be changed by others, are damaged, or of another cluster.
    pub fn load_anchors(&self, cluster: ClusterId) -> Result<Anchors, StoreError> {
        let path = self.path(AUTHORITIES);
        let text = files::read(&path, Access::Readable)?;
        Anchors::from_pem(cluster, &text).map_err(|source| StoreError::Anchors { path, source })
    }

    /// Reads the authority: the key, and its certificate among the authorities that are believed.
    ///
    /// # Errors
    /// When one is not there, open to others, or damaged, or when the key fits none of the certificates.
    pub fn load_authority(&self, cluster: ClusterId) -> Result<Authority, StoreError> {
        let path = self.path(AUTHORITY_KEY);
        let text = files::read(&path, Access::Private)?;
        let key = match KeyPair::from_pem(&text) {
            Ok(key) => key,
            Err(source) => return Err(StoreError::Key { path, source }),
        };
        let anchors = self.load_anchors(cluster)?;
        let fits = |certificate: &&Certificate| certificate.public_key == key.public_key();
        let found = match anchors.certificates().find(fits) {
            Some(certificate) => Authority::new(certificate.clone(), key),
            None => Err(AuthorityError::KeyDoesNotFit),
        };
        found.map_err(|source| StoreError::Authority { path, source })
    }

    /// Reads all that a process shows and believes.
    ///
    /// # Errors
    /// The same, and when no authority signed the certificate.
    pub fn load(&self) -> Result<Arc<Trust>, StoreError> {
        let credentials = self.load_credentials()?;
        let anchors = self.load_anchors(credentials.identity().cluster())?;
        let path = self.folder.clone();
        let trust = Trust::new(credentials, anchors).map_err(|source| StoreError::Trust { path, source })?;
        // Without it those who know the former authority alone are shown what they do not believe. That is no reason not to start.
        if let Ok(Some(former)) = self.load_former() {
            trust.restore_former(former);
        }
        Ok(trust)
    }

    /// Whether the certificate that is there should be renewed: two thirds of its lifetime are over.
    ///
    /// # Errors
    /// When it is not there or cannot be read.
    pub fn needs_renewal(&self, now: std::time::SystemTime) -> Result<bool, StoreError> {
        Ok(self.load_credentials()?.needs_renewal(now))
    }

    fn credentials_in(&self, path: &Path, key: &KeyPair) -> Result<Credentials, StoreError> {
        let text = files::read(path, Access::Readable)?;
        Credentials::new(key.clone(), &text)
            .map_err(|source| StoreError::Credentials { path: path.to_owned(), source })
    }

    /// Both files are stable under another name before one of them takes its place. The key is first: who finds a key whose
    /// certificate is another one looks for the next certificate.
    fn steps_of_credentials(&self, credentials: &Credentials) -> Vec<Step> {
        let next = |name: &str| self.path(&format!("{name}{NEXT}"));
        let (key, certificate) = (credentials.key().to_pem(), credentials.certificate().to_pem());
        vec![
            Step::Write { path: next(KEY), text: key, access: Access::Private },
            Step::Write { path: next(CERTIFICATE), text: certificate, access: Access::Readable },
            Step::SyncFolder,
            Step::Rename { from: next(KEY), to: self.path(KEY) },
            Step::SyncFolder,
            Step::Rename { from: next(CERTIFICATE), to: self.path(CERTIFICATE) },
            Step::SyncFolder,
        ]
    }

    fn replacing(&self, name: &str, text: String, access: Access) -> Vec<Step> {
        let (next, path) = (self.path(&format!("{name}{NEXT}")), self.path(name));
        let write = Step::Write { path: next.clone(), text, access };
        vec![write, Step::Rename { from: next, to: path }, Step::SyncFolder]
    }

    fn perform(&self, steps: &[Step]) -> Result<(), StoreError> {
        files::make_folder(&self.folder)?;
        steps.iter().try_for_each(|step| step.perform(&self.folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

#[cfg(test)]
mod tests;
