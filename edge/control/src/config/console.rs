//! Where the console is served, what browsers are shown there, and where people log in.

use super::issuer::{IssuerConfig, IssuerSection};
use failure::Failure;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where the console is served, and what browsers are shown there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsoleConfig {
    /// Where browsers connect. Nothing: at loopback, from the first time that somebody asks for a link. Empty: nowhere.
    pub listen: Option<Vec<SocketAddr>>,
    /// A certificate from elsewhere with its chain, and its key. Nothing: the host's own.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Where people may log in besides here.
    pub issuer: Option<IssuerConfig>,
}

/// The section as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsoleSection {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    oidc: Option<IssuerSection>,
}

impl ConsoleSection {
    /// With what `[listen] console` says; relative paths count from `folder`.
    pub(super) fn read(self, listen: Option<Vec<String>>, folder: &Path) -> Result<ConsoleConfig, Failure> {
        let address = |text: &String| {
            text.parse::<SocketAddr>().map_err(|_| {
                Failure::usage(format!("[listen] console: `{text}` is not a place for browsers"))
                    .hint("write an address with a port, such as \"10.0.0.1:8443\"")
            })
        };
        let listen = listen.map(|all| all.iter().map(address).collect::<Result<_, _>>()).transpose()?;
        let certificate = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some((folder.join(certificate), folder.join(key))),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(Failure::usage("[console] needs `certificate` and `key`, or neither"));
            }
        };
        let issuer = self.oidc.map(|section| section.read(folder)).transpose()?;
        Ok(ConsoleConfig { listen, certificate, issuer })
    }
}
