//! Bodies about who belongs to the cluster: join tokens, certificates, authorities.

use super::words::{ProofWord, RoleWord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A token is to be made: for a host, or for the person that is named.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeToken {
    /// For a host that is one of the cluster already and has lost its certificate: its name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// For whom; left out: for a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<TokenPerson>,
    /// Seconds that it is good for; left out: an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// A person who is to have a certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenPerson {
    /// What they are called.
    pub name: String,
    /// What they are to be.
    #[schema(value_type = RoleWord)]
    pub role: String,
}

/// A token that was made. Secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// The line to give to who joins.
    pub token: String,
    /// For whom it is: `a host`, `viewer ann`.
    pub purpose: String,
    /// When it ceases to be good.
    pub expires: String,
}

/// Somebody comes with a token.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The token's id.
    pub token: String,
    /// Its secret.
    pub secret: String,
    /// The request for a certificate, PEM.
    pub request: String,
    /// Of a host: itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<JoiningHost>,
}

impl std::fmt::Debug for JoinRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JoinRequest({}, {:?})", self.token, self.host)
    }
}

/// What a host says of itself that joins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoiningHost {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Where it can be reached: DNS names and IP addresses.
    pub addresses: Vec<String>,
}

/// What somebody gets for a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JoinAnswer {
    /// The certificate, PEM.
    pub certificate: String,
    /// The authorities to believe, PEM.
    pub authorities: String,
    /// Where the members of etcd answer that the cluster runs for itself; nothing where it does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub etcd: Vec<String>,
}

/// A host asks for its next certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateRequest {
    /// The request, PEM.
    pub request: String,
    /// Where the host can be reached: DNS names and IP addresses.
    pub addresses: Vec<String>,
}

/// It.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CertificateAnswer {
    /// The certificate, PEM.
    pub certificate: String,
}

/// An authority of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuthorityView {
    /// SHA-256 of its certificate.
    pub fingerprint: String,
    /// The host that has its key.
    pub keeper: String,
    /// To when it is valid.
    pub expires: String,
    /// Whether it signs: the newest does.
    pub signs: bool,
    /// Hosts that show a certificate of it.
    pub hosts: Vec<String>,
}

/// A host's certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostCertificateView {
    /// The host.
    pub host: String,
    /// The authority that signed it.
    pub authority: String,
    /// When it was made.
    pub issued: String,
    /// To when it is valid.
    pub expires: String,
}

/// All certificates that the cluster knows of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CertificatesView {
    /// The authorities, oldest first.
    pub authorities: Vec<AuthorityView>,
    /// Those of hosts.
    pub hosts: Vec<HostCertificateView>,
    /// Whose certificates count no more: `host b`, `person ann`.
    pub revoked: Vec<String>,
}

/// A person who may log in: a certificate of theirs, or that they have a password.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PersonView {
    /// What they are called.
    pub name: String,
    /// What they are.
    pub role: RoleWord,
    /// How they prove who they are.
    pub proof: ProofWord,
    /// When the certificate was made, or the password or the role was set last.
    pub issued: String,
    /// To when the certificate is valid; left out: a password is valid until it is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// SHA-256 of the certificate of the authority that signed theirs; two where it was made while the authority changed, none for a
    /// password.
    pub authorities: Vec<String>,
}

/// A person is to log in to the console with a password.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddPerson {
    /// What they are called.
    pub name: String,
    /// What they are to be.
    #[schema(value_type = RoleWord)]
    pub role: String,
    /// The password: 12 to 256 characters.
    pub password: String,
}

impl std::fmt::Debug for AddPerson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AddPerson({}, {})", self.name, self.role)
    }
}

/// What is to be another of a person with a password. All their sessions end.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePerson {
    /// The role; left out: as before.
    #[schema(value_type = Option<RoleWord>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The password; left out: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

impl std::fmt::Debug for ChangePerson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChangePerson({:?}, {})", self.role, if self.password.is_some() { "…" } else { "-" })
    }
}

/// Another password of one's own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeOwnPassword {
    /// The password up to now.
    pub former: String,
    /// The one from now on.
    pub password: String,
}

impl std::fmt::Debug for ChangeOwnPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChangeOwnPassword(…)")
    }
}

/// An authority is dropped although people are locked out by that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ConfirmAuthority {
    /// Its fingerprint.
    #[serde(default)]
    pub confirm: Option<String>,
}

/// Whose the etcd of a cluster is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum EtcdChoice {
    /// One that runs already: the configuration names its endpoints.
    #[default]
    Existing,
    /// The cluster's own: Drystone runs its members on the first three hosts.
    Managed,
}

/// A host that stands alone becomes the first of a cluster of several, and goes on serving.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FoundCluster {
    /// The host's configuration file, which names etcd now: the absolute path. Only `[cluster]` may differ from what the host was
    /// started with.
    pub config: String,
    /// What people call the cluster; the last part of etcd's prefix if nothing is said.
    #[serde(default)]
    pub name: Option<String>,
    /// Whose the etcd is.
    #[serde(default)]
    pub etcd: EtcdChoice,
    /// Whether it is only checked.
    #[serde(default)]
    pub dry_run: bool,
}

/// A cluster that was made, or would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundedView {
    /// Its id; empty where it is drawn only when it is made.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Where its directory stands.
    pub directory: String,
    /// Its first host, which keeps its authority.
    pub host: String,
    /// The host's disks, which are the cluster's.
    pub disks: usize,
    /// Whether the host serves, and goes on.
    pub is_serving: bool,
    /// Whether it was made; false for a dry run.
    pub is_made: bool,
}

/// A host that has its certificate, and may be started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JoinedView {
    /// Its name.
    pub host: String,
    /// Its id.
    pub id: String,
    /// The id of the cluster.
    pub cluster: String,
    /// What its certificate says of it.
    pub identity: String,
}
