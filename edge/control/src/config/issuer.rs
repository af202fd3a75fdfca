//! The issuer of OpenID Connect at which people may log in to the console: what the configuration says of it.
//!
//! It stands with the host and not in the cluster's directory: the secret is a file of the host, the address by which browsers know
//! the console is the host's own, and who cannot reach etcd can still be let in.

use failure::Failure;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trust::Role;

/// Where Debian keeps the authorities that the system believes.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// An issuer at which people may log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerConfig {
    /// Its address, as its own documents name it.
    pub issuer: String,
    /// What people call it.
    pub name: String,
    /// What this client is called there.
    pub client_id: String,
    /// The file with the client's secret.
    pub secret: PathBuf,
    /// The console's address as browsers know it, without a path.
    pub url: String,
    /// The claim with what a person is called.
    pub name_claim: String,
    /// The claim with the groups or roles of a person.
    pub groups_claim: String,
    /// What is asked for besides `openid`.
    pub scopes: Vec<String>,
    /// By group: the role that it gives.
    pub roles: BTreeMap<String, Role>,
    /// A PEM text with the authorities that vouch for the issuer.
    pub authorities: PathBuf,
}

/// The section as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IssuerSection {
    issuer: String,
    name: Option<String>,
    client_id: String,
    client_secret_file: PathBuf,
    url: String,
    name_claim: Option<String>,
    groups_claim: Option<String>,
    scopes: Option<Vec<String>>,
    authorities: Option<PathBuf>,
    #[serde(default)]
    roles: BTreeMap<String, Vec<String>>,
}

impl IssuerSection {
    /// Relative paths count from `folder`.
    pub(super) fn read(self, folder: &Path) -> Result<IssuerConfig, Failure> {
        let issuer_host = host_of(&self.issuer).ok_or_else(|| {
            Failure::usage(format!("[console.oidc] issuer: `{}` is not a place to log in", self.issuer))
                .hint("write the issuer's address, such as \"https://login.example/realms/storage\"; http is possible at loopback alone")
        })?;
        let is_plain = self
            .url
            .strip_prefix("https://")
            .is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', '@']));
        if !is_plain {
            return Err(Failure::usage(format!(
                "[console.oidc] url: `{}` is not the console's address",
                self.url
            ))
            .hint("write it as browsers know it, without a path, such as \"https://storage.example:8443\""));
        }
        let mut roles = BTreeMap::new();
        for (role, groups) in self.roles {
            let role: Role = role.parse().map_err(|error: trust::RoleError| {
                Failure::usage(format!("[console.oidc.roles]: {error}"))
            })?;
            for group in groups {
                if let Some(other) = roles.insert(group.clone(), role) {
                    return Err(Failure::usage(format!(
                        "[console.oidc.roles]: `{group}` is named twice ({other}, {role})"
                    )));
                }
            }
        }
        if roles.is_empty() {
            return Err(Failure::usage("[console.oidc.roles] gives no group a role: nobody could log in")
                .hint("write for example: admin = [\"storage-admins\"]"));
        }
        let scopes = self.scopes.unwrap_or_else(|| vec!["profile".to_owned(), "email".to_owned()]);
        Ok(IssuerConfig {
            name: self.name.unwrap_or(issuer_host),
            issuer: self.issuer,
            client_id: self.client_id,
            secret: folder.join(self.client_secret_file),
            url: self.url,
            name_claim: self.name_claim.unwrap_or_else(|| "preferred_username".to_owned()),
            groups_claim: self.groups_claim.unwrap_or_else(|| "groups".to_owned()),
            scopes,
            roles,
            authorities: folder.join(self.authorities.unwrap_or_else(|| PathBuf::from(SYSTEM_AUTHORITIES))),
        })
    }
}

/// The host of an address where somebody may be asked for who people are: encrypted, or on this machine.
fn host_of(address: &str) -> Option<String> {
    let uri: axum::http::Uri = address.parse().ok()?;
    let host = uri.host().filter(|host| !host.is_empty())?;
    let is_here = ["127.0.0.1", "[::1]", "localhost"].contains(&host);
    let is_safe = uri.scheme_str() == Some("https") || uri.scheme_str() == Some("http") && is_here;
    (is_safe && uri.query().is_none()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        issuer = "https://login.example/realms/storage"
        client_id = "drystone"
        client_secret_file = "secret"
        url = "https://a.example:8443"
        [roles]
        admin = ["storage-admins"]
        viewer = ["everybody", "auditors"]
    "#;

    fn read(text: &str) -> Result<IssuerConfig, String> {
        let section: IssuerSection = toml::from_str(text).map_err(|error| error.to_string())?;
        section.read(Path::new("/etc/drystone")).map_err(|failure| failure.error)
    }

    #[test]
    fn what_is_left_out_has_what_most_issuers_want() {
        let config = read(WHOLE).expect("it is whole");
        assert_eq!(
            (config.name.as_str(), config.name_claim.as_str()),
            ("login.example", "preferred_username")
        );
        assert_eq!((config.groups_claim.as_str(), config.scopes.len()), ("groups", 2));
        assert_eq!(config.secret, Path::new("/etc/drystone/secret"));
        assert_eq!(config.authorities, Path::new(SYSTEM_AUTHORITIES));
        assert_eq!((config.roles["storage-admins"], config.roles.len()), (Role::Admin, 3));
    }

    #[test]
    fn what_would_let_nobody_or_anybody_in_is_refused() {
        for (from, to, word) in [
            ("https://login.example", "http://login.example", "is not a place to log in"),
            ("https://login.example/realms/storage", "login.example", "is not a place to log in"),
            ("https://login.example", "http://127.0.0.1.evil.example", "is not a place to log in"),
            ("https://a.example:8443", "http://a.example:8443", "is not the console's address"),
            ("https://a.example:8443", "https://a.example:8443/console", "is not the console's address"),
            ("admin = [\"storage-admins\"]", "root = [\"storage-admins\"]", "`root` is not a role"),
            ("\"auditors\"", "\"storage-admins\"", "is named twice"),
            ("client_id", "client", "unknown field"),
        ] {
            assert!(WHOLE.contains(from), "{from}");
            let why = read(&WHOLE.replace(from, to)).expect_err(to);
            assert!(why.contains(word), "{why}");
        }
        let (without_roles, _) = WHOLE.split_once("[roles]").expect("they are there");
        assert!(read(without_roles).expect_err("nobody").contains("nobody could log in"));
        read(&WHOLE.replace("https://login.example", "http://127.0.0.1:8080")).expect("on this machine");
    }
}
