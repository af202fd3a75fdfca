//! Who is at the other end of a connection.

use crate::asked::ON_HOST;
use crate::sessions::Session;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;
use trust::Identity;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Somebody on this machine, at a socket that the file system guards, or at loopback of a host without a certificate.
    Local,
    /// Somebody who showed no certificate.
    Nobody,
    /// A host or a person of the cluster.
    Known {
        /// Who.
        identity: Identity,
        /// When the certificate was made, in nanoseconds since 1970.
        issued_ns: u64,
        /// When it ends.
        ends: SystemTime,
    },
    /// A browser, at the place that is for browsers.
    Page(Page),
}

/// A browser's connection.
#[derive(Debug, Clone)]
pub struct Page {
    /// The port where it came in: cookies do not tell ports apart, so their names do.
    pub port: u16,
    /// The session that a request came with, if it has one. Its holder is somebody local, or a person with a certificate.
    pub session: Option<Arc<Session<Caller>>>,
    /// Whether any request of the connection had a session.
    pub is_known: Arc<AtomicBool>,
}

impl PartialEq for Page {
    fn eq(&self, other: &Page) -> bool {
        (self.port, &self.session) == (other.port, &other.session)
    }
}

impl Eq for Page {}

impl Caller {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Caller::Local => ON_HOST.to_owned(),
            Caller::Nobody => "somebody without a certificate".to_owned(),
            Caller::Known { identity: Identity::Host { name, .. }, .. } => format!("host {name}"),
            Caller::Known { identity: Identity::Person { name, role, .. }, .. } => format!("{role} {name}"),
            Caller::Page(Page { session: None, .. }) => "somebody who is not logged in".to_owned(),
            Caller::Page(Page { session: Some(session), .. }) => {
                format!("{} (console)", session.holder.text())
            }
        }
    }
}
