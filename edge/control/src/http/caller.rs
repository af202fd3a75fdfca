//! Who is at the other end of a connection.

use crate::asked::ON_HOST;
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
    },
}

impl Caller {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Caller::Local => ON_HOST.to_owned(),
            Caller::Nobody => "somebody without a certificate".to_owned(),
            Caller::Known { identity: Identity::Host { name, .. }, .. } => format!("host {name}"),
            Caller::Known { identity: Identity::Person { name, role, .. }, .. } => format!("{role} {name}"),
        }
    }
}
