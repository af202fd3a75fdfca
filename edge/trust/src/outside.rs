//! TLS to servers that are no part of a cluster, as the issuer of an OpenID Connect log-in: whom they may be is vouched for by
//! authorities that the operating system or a person names.
//!
//! Must never be used between members of a cluster, who are known by their cluster's authority alone.

use crate::tls::{Clock, TlsError, provider};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// For a client of servers for which authorities of `authorities`, a PEM text, vouch. TLS 1.2 is spoken, too: we do not choose these
/// servers. The caller may add protocols (ALPN).
///
/// # Errors
/// When the text has no certificate of an authority.
pub fn outside_config(authorities: &[u8], clock: Clock) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    let read: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(authorities).collect();
    let read =
        read.map_err(|error| TlsError::Rejected(format!("the authorities are not a PEM text: {error}")))?;
    // A bundle of the system has some that webpki does not take, for their age; the others count.
    let (taken, _) = roots.add_parsable_certificates(read);
    if taken == 0 {
        return Err(TlsError::Rejected("there is no authority among the certificates".to_owned()));
    }
    let builder = ClientConfig::builder_with_details(provider(), clock);
    let builder = builder.with_protocol_versions(&[&TLS13, &TLS12]);
    let builder = builder.map_err(|error| TlsError::Rejected(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Whether the first certificate of a PEM text names itself as who has signed it: nobody else vouches for it. A text that is none does
/// so as little.
pub fn signs_itself(chain: &[u8]) -> bool {
    let first = CertificateDer::pem_slice_iter(chain).next().and_then(Result::ok);
    first.is_none_or(|first| {
        X509Certificate::from_der(&first)
            .map_or(true, |(_, read)| read.issuer().as_raw() == read.subject().as_raw())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::system_clock;
    use crate::{Authority, Grant, Identity, KeyPair, self_signed};
    use base::ClusterId;
    use std::time::SystemTime;

    #[test]
    fn only_certificates_of_authorities_are_believed_and_an_empty_text_is_refused() {
        let authority = Authority::create(ClusterId(1), &"a".parse().expect("a name"), SystemTime::now());
        let authority = authority.expect("made").certificate_pem();
        outside_config(authority.as_bytes(), system_clock()).expect("one authority");
        for none in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(outside_config(none.as_bytes(), system_clock()).is_err(), "{none}");
        }
    }

    #[test]
    fn a_certificate_that_signs_itself_is_told_from_one_that_an_authority_signed() {
        let now = SystemTime::now();
        let (own, _) = self_signed("a", &[], now).expect("made");
        assert!(signs_itself(own.as_bytes()) && signs_itself(b"") && signs_itself(b"no PEM"));
        let (cluster, name) = (ClusterId(1), || "a".parse().expect("a name"));
        let authority = Authority::create(cluster, &name(), now).expect("made");
        let request = KeyPair::generate().and_then(|key| key.signing_request()).expect("made");
        let identity = Identity::Host { cluster, host: base::HostId(1), name: name() };
        let grant = Grant { identity, addresses: Vec::new(), lifetime: crate::HOST_LIFETIME };
        let issued = authority.issue(&request, &grant, now).expect("issued");
        assert!(!signs_itself(issued.as_bytes()));
    }
}
