//! Who is who in a cluster: its authority, the identities of hosts and people, what each may do, the TLS configurations
//! that check them, join tokens, passwords and how fast they may be tried, and the files that an identity is kept in.
//!
//! Relies on rustls with `ring`, given explicitly, on rcgen and x509-parser for the bytes of certificates, and on argon2 for passwords. It has no
//! socket, no thread, no HTTP and no clock: the time comes in as an argument, or as the clock that a TLS configuration is
//! given. It must never send a private key anywhere, show a secret in an error or in `Debug`, or believe a certificate that
//! no known authority signed.

mod address;
mod anchors;
mod authority;
mod browser;
mod certificate;
mod fingerprint;
mod identity;
mod key;
mod limits;
mod name;
mod outside;
mod password;
mod pem;
mod random;
mod refusal;
mod rights;
mod store;
mod time;
mod tls;
mod token;
mod tries;
mod trust;
mod verify;

#[cfg(test)]
mod tests;

pub use address::{Address, AddressError, Endpoint};
pub use anchors::{Anchors, AnchorsError};
pub use authority::{Authority, AuthorityError, Grant};
pub use browser::{ShownToBrowsers, browser_config, read_foreign, self_signed};
pub use certificate::{Certificate, CertificateError, Subject};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use identity::{Identity, IdentityError};
pub use key::{KeyError, KeyPair};
pub use limits::{
    ADDRESSES_MAX, ANCHORS_MAX, AUTHORITY_LIFETIME, CLOCK_TOLERANCE, ENDPOINTS_MAX, HOST_LIFETIME,
    LIFETIME_MAX, LIFETIME_MIN, NAME_LENGTH_MAX, PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN, PEM_SIZE_MAX,
    PERSON_LIFETIME, TOKEN_LIFETIME_MAX, TOKEN_TEXT_LENGTH_MAX,
};
pub use name::{Name, NameError};
pub use outside::{outside_config, signs_itself};
pub use password::{Password, PasswordError, PasswordHash};
pub use refusal::Refusal;
pub use rights::{Action, Denied, RIGHTS, Right, Role, RoleError, decide};
pub use store::{Store, StoreError};
pub use time::{nanoseconds, text_of_nanoseconds};
pub use tls::{
    Clients, Clock, SHARED_NAME, TlsError, authority_shown, client_config, joining_client_config,
    joining_server_name, peer_identity, server_config, server_name, system_clock,
};
pub use token::{JoinToken, Kind, Purpose, Secret, TokenError, TokenId, TokenRecord, TokenRefusal};
pub use tries::{Tries, Try};
pub use trust::{Credentials, CredentialsError, Revoked, Trust, TrustError};
pub use verify::Expected;
