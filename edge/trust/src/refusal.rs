//! Why a connection was refused: what was found, what was expected, and the way out.
//!
//! rustls carries these errors; [`Refusal::of`] finds them again. The other side is told no more than an alert: who is not let
//! in learns little. Must never be made for anything but a handshake.

use crate::certificate::CertificateError;
use crate::fingerprint::Fingerprint;
use crate::time;
use base::{ClusterId, HostId};
use rustls::{AlertDescription, CertificateError as TlsCertificateError, Error, OtherError};
use std::sync::Arc;

/// Why the other side of a connection is not who it should be. Texts name what was found, what was expected, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The other side showed nothing.
    #[error("no certificate was shown: get one with a join token, or have an admin issue one")]
    NoCertificate,
    /// No authority that is known here signed it. What it says about itself is not to be believed.
    #[error(
        "a certificate that says it is {found} was shown, but no authority signed it that is known here, in cluster \
         {cluster}: join this cluster, or connect to the hosts of its own; if the authority was changed, get its new \
         certificate"
    )]
    UnknownAuthority {
        /// What it says it is.
        found: String,
        /// The cluster of the side that refused.
        cluster: ClusterId,
    },
    /// The authority that signed it is known, but its own certificate is not valid now.
    #[error(
        "the certificate of {found} is signed by an authority whose own certificate is valid from {from} to {to}, and it is \
         {now} now: change the authority, or correct the clock"
    )]
    AuthorityOutOfDate {
        /// Who was found.
        found: String,
        /// When the authority begins.
        from: String,
        /// When it ends.
        to: String,
        /// The time of the side that refused.
        now: String,
    },
    /// No authority with the expected fingerprint.
    #[error(
        "no authority with the fingerprint {expected} was shown: the token is of another cluster, somebody else answers at \
         this address, or the authority was changed since; have a new token made"
    )]
    OtherAuthority {
        /// The fingerprint of the token.
        expected: Fingerprint,
    },
    /// Its lifetime is over.
    #[error(
        "the certificate has expired: it was valid to {not_after} and it is {now} now; renew it or join again, and compare \
         the clocks of both sides"
    )]
    Expired {
        /// When it ended.
        not_after: String,
        /// The time of the side that refused.
        now: String,
    },
    /// Its lifetime has not begun.
    #[error(
        "the certificate is not valid before {not_before} and it is {now} now: compare the clocks of both sides"
    )]
    NotYetValid {
        /// When it begins.
        not_before: String,
        /// The time of the side that refused.
        now: String,
    },
    /// It names nobody.
    #[error("{0}; have one issued by the authority of this cluster")]
    NoIdentity(CertificateError),
    /// It names somebody of another cluster.
    #[error(
        "{found} was found, and cluster {expected} is expected: connect to the hosts of its own cluster, or join this one"
    )]
    OtherCluster {
        /// Who was found.
        found: String,
        /// The cluster of the side that refused.
        expected: ClusterId,
    },
    /// It is genuine, and its holder was taken out since.
    #[error("{found} was taken out of the cluster: join again with a new token, if you are to come back")]
    Revoked {
        /// Who was found.
        found: String,
    },
    /// It names a person where a host is needed.
    #[error(
        "{found} was found, and a host is expected: use the certificate of a host here, or connect to the API"
    )]
    NotAHost {
        /// Who was found.
        found: String,
    },
    /// It names another host than the one that is meant.
    #[error(
        "{found} was found, and host {expected} is expected: an address may have moved; correct the addresses of both hosts"
    )]
    OtherHost {
        /// Who was found.
        found: String,
        /// Who is meant.
        expected: HostId,
    },
    /// It may not be used on this side of a connection.
    #[error(
        "the certificate of {found} may not be used on this side of a connection: have one issued for that"
    )]
    WrongUse {
        /// Who was found.
        found: String,
    },
    /// Something else is wrong with it.
    #[error(
        "the certificate cannot be used: {reason}; have another one issued by the authority of this cluster"
    )]
    Unusable {
        /// What rustls found.
        reason: String,
    },
    /// The other side refused this one; it knows why.
    #[error("the other side refused this one ({alert}): {reason}; its log says more")]
    ByPeer {
        /// The alert of TLS (RFC 8446, section 6.2).
        alert: String,
        /// What the alert means here.
        reason: &'static str,
    },
}

impl Refusal {
    /// The refusal that ended a handshake; none: it ended for another reason, such as bytes that are not TLS.
    pub fn of(error: &Error) -> Option<Refusal> {
        match error {
            Error::NoCertificatesPresented => Some(Refusal::NoCertificate),
            Error::InvalidCertificate(error) => Refusal::of_certificate(error),
            Error::AlertReceived(alert) => {
                by_peer(*alert).map(|reason| Refusal::ByPeer { alert: format!("{alert:?}"), reason })
            }
            _ => None,
        }
    }

    fn of_certificate(error: &TlsCertificateError) -> Option<Refusal> {
        match error {
            TlsCertificateError::Other(OtherError(inner)) if inner.is::<Refusal>() => {
                inner.downcast_ref::<Refusal>().cloned()
            }
            TlsCertificateError::ExpiredContext { time, not_after } => Some(Refusal::Expired {
                not_after: time::text(not_after.as_secs()),
                now: time::text(time.as_secs()),
            }),
            TlsCertificateError::NotValidYetContext { time, not_before } => Some(Refusal::NotYetValid {
                not_before: time::text(not_before.as_secs()),
                now: time::text(time.as_secs()),
            }),
            other => Some(Refusal::Unusable { reason: other.to_string() }),
        }
    }
}

/// What an alert about certificates means.
fn by_peer(alert: AlertDescription) -> Option<&'static str> {
    match alert {
        AlertDescription::CertificateExpired => Some(
            "the certificate shown to it is not valid at its time: renew it, and compare the clocks of both sides",
        ),
        AlertDescription::CertificateRequired => Some("it wants a certificate and none was shown"),
        AlertDescription::CertificateUnknown => {
            Some("the certificate shown to it is not of its cluster, or not of whom it expects")
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => Some("it does not accept the certificate that was shown to it"),
        _ => None,
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::InvalidCertificate(TlsCertificateError::Other(OtherError(Arc::new(refusal))))
    }
}
