//! Who asks, as the host knows them.

use super::words::{CallerWord, LogInWord, RightWord, RoleWord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who asks, and what they may.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MeView {
    /// What they are.
    pub kind: CallerWord,
    /// Their name; nothing for somebody on the host itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of a person: their role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleWord>,
    /// What they may do.
    pub rights: Vec<RightWord>,
    /// The host that answers.
    pub host: String,
    /// Of a page of the console: the session that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<MySession>,
}

/// A session of the console, as its page sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MySession {
    /// How it began.
    pub begun_by: LogInWord,
    /// When it ends, in seconds since 1970.
    pub ends: u64,
    /// After so many seconds without a request it ends before that.
    pub idle_seconds: u64,
}

/// A link that opens the console, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionLink {
    /// The link; where the host serves the console at several addresses, one for each, with the same code.
    pub links: Vec<String>,
    /// Seconds until it is good no more.
    pub seconds: u64,
    /// SHA-256 of the certificate that the browser is shown, if no authority has signed it: for whoever wants to compare it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// What a browser logs in with: the code of a link, or a name and a password.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    /// The code of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The name of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The person's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

impl std::fmt::Debug for LogIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogIn(…)")
    }
}

/// How people may log in to the console of a host, besides with a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogInChoices {
    /// Whether anybody has a password.
    pub has_passwords: bool,
    /// What people call the issuer of OpenID Connect; left out: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
}
