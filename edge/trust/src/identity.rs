//! Who somebody is: a host or a person of one cluster, and how that stands in a certificate.
//!
//! An identity is carried as one URI among the certificate's subject alternative names (docs/formats/certificates.md). There
//! is exactly one spelling of each identity: what is not spelled so is refused, so that no two readers see different people.

use crate::name::Name;
use crate::rights::Role;
use base::{ClusterId, HostId};
use std::fmt;
use std::str::FromStr;

/// What all URIs of ours begin with.
pub(crate) const SCHEME: &str = "drystone://";
/// Characters of a URI that errors repeat.
const SHOWN_MAX: usize = 160;

/// A host or a person of one cluster. Two are the same only if all parts are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Identity {
    /// A machine. `host` tells it from others; `name` is for people.
    Host {
        /// Where it belongs.
        cluster: ClusterId,
        /// Which one.
        host: HostId,
        /// What it is called.
        name: Name,
    },
    /// Somebody who works with the cluster, or a program that does.
    Person {
        /// Where they belong.
        cluster: ClusterId,
        /// Who they are.
        name: Name,
        /// What they may do.
        role: Role,
    },
}

/// A URI that is no identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not an identity: drystone://CLUSTER/hosts/HOST?name=NAME or drystone://CLUSTER/people/NAME?role=ROLE is, with \
     ids of 32 lower-case hexadecimal digits",
    .uri.escape_default()
)]
pub struct IdentityError {
    /// What was found; a long one is cut.
    pub uri: String,
}

impl Identity {
    /// Where the host or person belongs.
    pub fn cluster(&self) -> ClusterId {
        match self {
            Identity::Host { cluster, .. } | Identity::Person { cluster, .. } => *cluster,
        }
    }

    /// What the host or person is called.
    pub fn name(&self) -> &Name {
        match self {
            Identity::Host { name, .. } | Identity::Person { name, .. } => name,
        }
    }

    /// Which host it is, if it is one.
    pub fn host(&self) -> Option<HostId> {
        match self {
            Identity::Host { host, .. } => Some(*host),
            Identity::Person { .. } => None,
        }
    }

    /// As it stands in a certificate: `drystone://CLUSTER/hosts/HOST?name=NAME` or
    /// `drystone://CLUSTER/people/NAME?role=ROLE`. Reads back by `parse`.
    pub fn uri(&self) -> String {
        match self {
            Identity::Host { cluster, host, name } => format!("{SCHEME}{cluster}/hosts/{host}?name={name}"),
            Identity::Person { cluster, name, role } => {
                format!("{SCHEME}{cluster}/people/{name}?role={role}")
            }
        }
    }
}

impl FromStr for Identity {
    type Err = IdentityError;
    fn from_str(uri: &str) -> Result<Identity, IdentityError> {
        let found = parse(uri).filter(|identity| identity.uri() == uri);
        found.ok_or_else(|| IdentityError { uri: uri.chars().take(SHOWN_MAX).collect() })
    }
}

/// An identity that may be spelled in another way.
fn parse(uri: &str) -> Option<Identity> {
    let (cluster, rest) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let cluster = cluster.parse().ok()?;
    let (kind, rest) = rest.split_once('/')?;
    let (path, query) = rest.split_once('?')?;
    match kind {
        "hosts" => {
            let name = query.strip_prefix("name=")?.parse().ok()?;
            Some(Identity::Host { cluster, host: path.parse().ok()?, name })
        }
        "people" => {
            let role = query.strip_prefix("role=")?.parse().ok()?;
            Some(Identity::Person { cluster, name: path.parse().ok()?, role })
        }
        _ => None,
    }
}

/// As people read it: ``host `alpha` (HOST) of cluster CLUSTER``, ``operator `ann` of cluster CLUSTER``.
impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Host { cluster, host, name } => {
                write!(formatter, "host `{name}` ({host}) of cluster {cluster}")
            }
            Identity::Person { cluster, name, role } => {
                write!(formatter, "{role} `{name}` of cluster {cluster}")
            }
        }
    }
}

/// As an authority stands in its own certificate.
pub(crate) fn authority_uri(cluster: ClusterId) -> String {
    format!("{SCHEME}{cluster}/authority")
}

/// The cluster of an authority's URI.
pub(crate) fn parse_authority(uri: &str) -> Option<ClusterId> {
    let cluster = uri.strip_prefix(SCHEME)?.strip_suffix("/authority")?.parse().ok()?;
    (authority_uri(cluster) == uri).then_some(cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str =
        "drystone://000000000000000000000000000000c1/hosts/000000000000000000000000000000a1?name=alpha";
    const PERSON: &str = "drystone://000000000000000000000000000000c1/people/ann@example.org?role=operator";

    #[test]
    fn identities_read_back_and_are_told_to_people() {
        let host: Identity = HOST.parse().expect("a host");
        assert_eq!((host.uri().as_str(), host.host()), (HOST, Some(HostId(0xa1))));
        assert_eq!(
            host.to_string(),
            "host `alpha` (000000000000000000000000000000a1) of cluster 000000000000000000000000000000c1"
        );
        let person: Identity = PERSON.parse().expect("a person");
        assert_eq!((person.uri().as_str(), person.host()), (PERSON, None));
        assert_eq!(person.cluster(), ClusterId(0xc1));
        assert_eq!(
            person.to_string(),
            "operator `ann@example.org` of cluster 000000000000000000000000000000c1"
        );
    }

    #[test]
    fn there_is_one_spelling_of_each_identity() {
        let bad = [
            HOST.replace("c1/", "C1/"),
            HOST.replace("drystone:", "Drystone:"),
            HOST.replace("00c1/", "0+c1/").replace("//0", "//+"),
            HOST.replace("0a1?", "a1?"),
            HOST.replace("alpha", "al%70ha"),
            HOST.replace("?name=", "?name=&name="),
            HOST.replace("?name=alpha", ""),
            format!("{HOST}&role=admin"),
            format!("{HOST}#x"),
            format!(" {HOST}"),
            PERSON.replace("people", "persons"),
            PERSON.replace("operator", "root"),
            PERSON.replace("people/", "people//"),
            String::new(),
            SCHEME.to_owned(),
        ];
        for uri in bad {
            let error = uri.parse::<Identity>().expect_err(&uri).to_string();
            assert!(error.contains("is not an identity"), "{error}");
        }
    }

    #[test]
    fn an_authority_is_of_one_cluster_and_no_identity() {
        let uri = authority_uri(ClusterId(7));
        assert_eq!(parse_authority(&uri), Some(ClusterId(7)));
        assert!(uri.parse::<Identity>().is_err());
        assert_eq!(parse_authority(&format!("{uri}/")), None);
        assert_eq!(parse_authority(&authority_uri(ClusterId(0xab)).replace("ab", "AB")), None);
        assert_eq!(parse_authority(HOST), None);
    }
}
