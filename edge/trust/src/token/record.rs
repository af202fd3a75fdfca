//! What the directory keeps of a join token, and whether somebody who comes with a secret gets what it is for.
//!
//! Who redeems a token marks its record as used and gives the certificate in one step: the transaction that stores the
//! changed record must name the version that was checked, so that a token is good once even if two come at a time.

use super::{JoinToken, Secret, TokenError, TokenId};
use crate::address::Endpoint;
use crate::fingerprint::Fingerprint;
use crate::limits::TOKEN_LIFETIME_MAX;
use crate::name::Name;
use crate::rights::Role;
use crate::time;
use base::HostId;
use ring::hmac;
use std::fmt;
use std::time::{Duration, SystemTime};

/// For whom a token is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Purpose {
    /// A host that is not there yet; it says itself what it is called.
    Host,
    /// This host, which is one already and has no certificate that counts: it expired, or its files were lost.
    Again {
        /// Which one.
        #[serde(with = "host_text")]
        host: HostId,
    },
    /// This person, with this role.
    Person {
        /// What they are called.
        name: Name,
        /// What they may do.
        role: Role,
    },
}

/// The id of a host as it stands in records: 32 hexadecimal digits.
mod host_text {
    use base::HostId;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(host: &HostId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(host)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HostId, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| de::Error::custom("this is not the id of a host"))
    }
}

/// What somebody wants a certificate as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As a host.
    Host,
    /// As a person.
    Person,
}

impl Purpose {
    fn kind(&self) -> Kind {
        match self {
            Purpose::Host | Purpose::Again { .. } => Kind::Host,
            Purpose::Person { .. } => Kind::Person,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kind::Host => "a host",
            Kind::Person => "a person",
        })
    }
}

/// What the directory keeps (docs/formats/certificates.md). It does not tell the secret.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    /// Which token it is.
    pub id: TokenId,
    /// SHA-256 of the 16 bytes of the secret.
    pub secret_sha256: Fingerprint,
    /// For whom it is.
    pub purpose: Purpose,
    /// When it ceases to be good, in nanoseconds since 1970.
    pub expires_ns: u64,
    /// When it was used, in nanoseconds since 1970; left out: not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_ns: Option<u64>,
}

/// Why a token gets nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// Another secret. Whoever does not know it is told nothing else about the token.
    #[error("the secret of the join token is wrong: copy the whole line again, or have a new one made")]
    Wrong,
    /// It was used before.
    #[error(
        "the join token was used at {at}: it is good once; if that was not you, tell an admin, and have a new one made"
    )]
    Used {
        /// When.
        at: String,
    },
    /// Too late.
    #[error("the join token expired at {at} and it is {now} now: have a new one made")]
    Expired {
        /// When it ceased to be good.
        at: String,
        /// The time given.
        now: String,
    },
    /// It is for the other kind.
    #[error("the join token is for {found}, and {wanted} came with it: have one made for {wanted}")]
    OtherPurpose {
        /// For whom it is.
        found: Kind,
        /// Who came.
        wanted: Kind,
    },
}

impl TokenRecord {
    /// Makes a token for a purpose, good for `lifetime` from `now`, and the record to keep of it.
    ///
    /// # Errors
    /// When there are too few or too many endpoints, when the lifetime is zero or longer than [`TOKEN_LIFETIME_MAX`], or when
    /// the kernel gives no random bytes.
    pub fn create(
        endpoints: Vec<Endpoint>,
        authority: Fingerprint,
        purpose: Purpose,
        lifetime: Duration,
        now: SystemTime,
    ) -> Result<(JoinToken, TokenRecord), TokenError> {
        if lifetime < Duration::from_secs(1) || lifetime > TOKEN_LIFETIME_MAX {
            return Err(TokenError::Lifetime(lifetime));
        }
        let token = JoinToken::create(endpoints, authority)?;
        // No longer than a week, which fits.
        let expires_ns = time::nanoseconds(now).saturating_add(lifetime.as_nanos() as u64);
        let secret_sha256 = token.secret.digest();
        let record = TokenRecord { id: token.id, secret_sha256, purpose, expires_ns, used_ns: None };
        Ok((token, record))
    }

    /// What somebody with this secret gets, who wants it as this kind. The secret is compared first, in a time that does not
    /// depend on it.
    ///
    /// # Errors
    /// When the secret is wrong; and else when the token was used, has expired, or is for the other kind.
    pub fn check(&self, secret: &Secret, wanted: Kind, now: SystemTime) -> Result<&Purpose, TokenRefusal> {
        if !self.is_secret(secret) {
            return Err(TokenRefusal::Wrong);
        }
        if let Some(used_ns) = self.used_ns {
            return Err(TokenRefusal::Used { at: time::text_of_nanoseconds(used_ns) });
        }
        if time::nanoseconds(now) >= self.expires_ns {
            let at = time::text_of_nanoseconds(self.expires_ns);
            return Err(TokenRefusal::Expired { at, now: time::text_of(now) });
        }
        if self.purpose.kind() != wanted {
            return Err(TokenRefusal::OtherPurpose { found: self.purpose.kind(), wanted });
        }
        Ok(&self.purpose)
    }

    /// Marks it as used.
    ///
    /// # Panics
    /// When it is already: `check` comes first.
    pub fn mark_used(&mut self, now: SystemTime) {
        assert!(self.used_ns.is_none(), "a token is used once");
        self.used_ns = Some(time::nanoseconds(now));
    }

    /// Compares digests by their HMACs: `ring` verifies those in constant time, and offers nothing simpler for it.
    fn is_secret(&self, secret: &Secret) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.id.0);
        let kept = hmac::sign(&key, &self.secret_sha256.0);
        hmac::verify(&key, &secret.digest().0, kept.as_ref()).is_ok()
    }
}
