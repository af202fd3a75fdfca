//! TLS for browsers: they show no certificate and are asked for none. Who uses one is told by a session, not by the connection.
//!
//! Must never be used where a connection itself has to say who is at its other end.

use crate::address::Address;
use crate::authority::{AuthorityError, not_made, params};
use crate::certificate::CertificateError;
use crate::fingerprint::Fingerprint;
use crate::key::KeyPair;
use crate::tls::{Clock, TlsError, provider};
use crate::trust::{ShownToClients, Trust};
use crate::{pem, time};
use rcgen::{DnType, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WantsServerCert};
use rustls::version::TLS13;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// What browsers are shown.
#[derive(Debug, Clone)]
pub enum ShownToBrowsers {
    /// The host's certificate of its cluster, as it is at each handshake.
    Host(Arc<Trust>),
    /// A certificate from elsewhere with its chain, and its key, as PEM. Keys that rustls signs with: ECDSA, Ed25519, RSA.
    Pem {
        /// The certificate, and what links it to an authority.
        chain: Vec<u8>,
        /// Its private key.
        key: Vec<u8>,
    },
}

/// For a host that serves pages. TLS 1.3, which every browser since 2018 speaks. The caller may add protocols (ALPN).
///
/// # Errors
/// When the certificate is a person's, or the texts are malformed or do not belong together.
pub fn browser_config(shown: &ShownToBrowsers, clock: Clock) -> Result<ServerConfig, TlsError> {
    let rejected = |error: rustls::Error| TlsError::Rejected(error.to_string());
    let builder: rustls::ConfigBuilder<ServerConfig, WantsServerCert> =
        ServerConfig::builder_with_details(provider(), Arc::clone(&clock))
            .with_protocol_versions(&[&TLS13])
            .map_err(rejected)?
            .with_no_client_auth();
    let mut config = match shown {
        ShownToBrowsers::Host(trust) => {
            let identity = trust.identity();
            if identity.host().is_none() {
                return Err(TlsError::NotAHost(identity));
            }
            builder.with_cert_resolver(Arc::new(ShownToClients(Arc::clone(trust), clock)))
        }
        ShownToBrowsers::Pem { chain, key } => {
            let unread = |what: &str, why: &dyn std::fmt::Display| {
                TlsError::Rejected(format!("{what} is not a PEM text: {why}"))
            };
            let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
                .collect::<Result<_, _>>()
                .map_err(|error| unread("the certificate", &error))?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unread("the key", &error))?;
            builder.with_single_cert(chain, key).map_err(rejected)?
        }
    };
    // A host that is replaced or whose certificate ends is noticed at the next connection.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// How long a certificate of [`self_signed`] is valid: Apple's limit for what people trust by hand, 825 days.
const SELF_SIGNED_LIFETIME: Duration = Duration::from_secs(825 * 24 * 3600);

/// A certificate that a host signs itself, for browsers alone while no authority has signed one: its text, and its key's as PEM.
/// A browser warns until somebody compares its fingerprint.
///
/// # Errors
/// When the kernel gives no random bytes, or an address cannot be in a certificate.
pub fn self_signed(
    name: &str,
    addresses: &[Address],
    now: SystemTime,
) -> Result<(String, String), AuthorityError> {
    let key = KeyPair::generate()?;
    let mut asked = params(now, SELF_SIGNED_LIFETIME)?;
    asked.distinguished_name.push(DnType::CommonName, name);
    for address in addresses {
        asked.subject_alt_names.push(match address {
            Address::Ip(ip) => SanType::IpAddress(*ip),
            Address::Dns(name) => {
                SanType::DnsName(name.as_str().try_into().map_err(|error| not_made(&error))?)
            }
        });
    }
    asked.is_ca = IsCa::ExplicitNoCa;
    asked.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    asked.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let made = asked.self_signed(&*key.inner).map_err(|error| not_made(&error))?;
    Ok((pem::certificate_text(made.der()), key.to_pem()))
}

/// The SHA-256 of any certificate, whoever it names, and when it ends.
///
/// # Errors
/// When the text is not one certificate.
pub fn read_foreign(text: &str) -> Result<(Fingerprint, SystemTime), CertificateError> {
    let damaged = |reason: String| CertificateError::Damaged(reason);
    let der = pem::certificate(text).map_err(|error| damaged(error.to_string()))?;
    let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| damaged(error.to_string()))?;
    let end = u64::try_from(parsed.validity().not_after.timestamp()).ok().and_then(time::from_seconds);
    Ok((Fingerprint::of(&der), end.ok_or_else(|| damaged("no such time".to_owned()))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::system_clock;

    #[test]
    fn a_host_signs_a_certificate_that_serves_and_another_key_does_not() {
        let addresses = ["localhost", "127.0.0.1", "::1"].map(|one| one.parse().expect("an address"));
        let (chain, key) = self_signed("a", &addresses, SystemTime::now()).expect("made");
        let pem = |chain: &str, key: &str| ShownToBrowsers::Pem {
            chain: chain.as_bytes().to_vec(),
            key: key.as_bytes().to_vec(),
        };
        let config = browser_config(&pem(&chain, &key), system_clock()).expect("it serves");
        assert_eq!(config.send_tls13_tickets, 0);
        let (_, end) = read_foreign(&chain).expect("a certificate");
        assert!(end > SystemTime::now() + SELF_SIGNED_LIFETIME - Duration::from_secs(60));
        let (_, other) = self_signed("a", &addresses, SystemTime::now()).expect("made");
        assert!(browser_config(&pem(&chain, &other), system_clock()).is_err(), "the key is another's");
        assert!(browser_config(&pem("", &key), system_clock()).is_err(), "there is no certificate");
        assert!(browser_config(&pem(&chain, "no key"), system_clock()).is_err(), "there is no key");
    }
}
