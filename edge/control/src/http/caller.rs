//! Who is at the other end of a connection.

use crate::asked::ON_HOST;
use crate::sessions::Session;
use std::net::IpAddr;
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
    /// A person who logged in to the console without a certificate: nobody but the holder of a session.
    Person(LoggedIn),
    /// A browser, at the place that is for browsers.
    Page(Page),
}

/// A person who logged in to the console without a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedIn {
    /// Who. Always a person.
    pub identity: Identity,
    /// How they proved it.
    pub proof: Proof,
}

/// How a person without a certificate proved who they are, and what it rests on: once that is another, the session has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// With the password that was set then, in nanoseconds since 1970.
    Password {
        /// Of the person's record.
        changed_ns: u64,
    },
    /// At an issuer of OpenID Connect.
    Issuer {
        /// When the person was removed last before that.
        removed_ns: Option<u64>,
    },
}

impl LoggedIn {
    /// What they are called.
    pub fn name(&self) -> &str {
        self.identity.name().as_str()
    }
}

/// A browser's connection.
#[derive(Debug, Clone)]
pub struct Page {
    /// The port where it came in: cookies do not tell ports apart, so their names do.
    pub port: u16,
    /// The address that it comes from.
    pub from: IpAddr,
    /// The session that a request came with, if it has one. Its holder is somebody local, or a person.
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
            Caller::Known { identity: Identity::Person { name, role, .. }, .. }
            | Caller::Person(LoggedIn { identity: Identity::Person { name, role, .. }, .. }) => {
                format!("{role} {name}")
            }
            Caller::Person(LoggedIn { identity: Identity::Host { .. }, .. }) => {
                unreachable!("only people log in to the console")
            }
            Caller::Page(Page { session: None, .. }) => "somebody who is not logged in".to_owned(),
            Caller::Page(Page { session: Some(session), .. }) => {
                format!("{} (console)", session.holder.text())
            }
        }
    }
}
