//! A cluster's own authority: the key that signs the certificates of its hosts and people.
//!
//! What a request asks for is ignored but for its public key: who asks does not decide who they are. Must never sign for
//! another cluster, another authority, or longer than it is valid itself.

use crate::address::Address;
use crate::certificate::{Certificate, CertificateError, Subject};
use crate::fingerprint::Fingerprint;
use crate::identity::{Identity, authority_uri};
use crate::key::{KeyError, KeyPair};
use crate::limits::{ADDRESSES_MAX, AUTHORITY_LIFETIME, CLOCK_TOLERANCE, LIFETIME_MAX, LIFETIME_MIN};
use crate::name::Name;
use crate::random::random;
use crate::tls::SHARED_NAME;
use crate::{pem, time};
use base::ClusterId;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, SanType, SerialNumber, SubjectPublicKeyInfo,
};
use std::time::{Duration, SystemTime};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

/// Bytes of a public key on P-256 that is not compressed (SEC 1, section 2.3.3): 4, x and y.
const POINT_BYTES: usize = 65;
/// Bytes of a serial number: random, so that nobody can tell the next one (CA/Browser Forum, section 7.1: 64 bits at least).
const SERIAL_BYTES: usize = 16;

/// The authority of one cluster: its certificate and its private key.
#[derive(Debug)]
pub struct Authority {
    cluster: ClusterId,
    certificate: Certificate,
    key: KeyPair,
}

/// What a certificate is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Whose it is.
    pub identity: Identity,
    /// Where a host is reached, so that programs that know nothing of identities (curl, Prometheus) can check it too: at most
    /// [`ADDRESSES_MAX`]. Empty for a person.
    pub addresses: Vec<Address>,
    /// How long it is valid, [`LIFETIME_MIN`] to [`LIFETIME_MAX`]; cut where the authority's own certificate ends.
    pub lifetime: Duration,
}

/// Why there is no authority or no certificate of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The certificate of the authority cannot be read.
    #[error("read the certificate of the authority")]
    Certificate(#[from] CertificateError),
    /// The key of the authority cannot be read or made.
    #[error("the key of the authority cannot be used")]
    Key(#[from] KeyError),
    /// The certificate is that of somebody else.
    #[error("this is the certificate of {0}, not of an authority")]
    NotAnAuthority(Identity),
    /// Certificate and key do not belong together.
    #[error("this key does not fit the certificate of the authority: give the key that was made with it")]
    KeyDoesNotFit,
    /// A request that cannot be read, or whose signature does not fit its key.
    #[error(
        "this is not a request for a certificate: {0}; make one with the key that the certificate is for"
    )]
    Request(String),
    /// A request with a key of another kind.
    #[error("the request has a key of another kind: only ECDSA keys on P-256 get a certificate")]
    KeyKind,
    /// The certificate would be for another cluster.
    #[error("{found} cannot get a certificate of cluster {cluster}: ask the authority of its own cluster")]
    OtherCluster {
        /// Who should get it.
        found: Identity,
        /// The authority's cluster.
        cluster: ClusterId,
    },
    /// Addresses that make no sense.
    #[error("{0} addresses are too many or for a person: a host has {ADDRESSES_MAX} at most, a person none")]
    Addresses(usize),
    /// A lifetime that makes no sense.
    #[error(
        "a certificate cannot be valid for {} seconds: {} to {} can be asked for",
        .0.as_secs(), LIFETIME_MIN.as_secs(), LIFETIME_MAX.as_secs()
    )]
    Lifetime(Duration),
    /// The authority is not valid now.
    #[error(
        "the authority is valid from {from} to {to} and it is {now} now: correct the clock or change the authority"
    )]
    OutOfDate {
        /// When it begins.
        from: String,
        /// When it ends.
        to: String,
        /// The time given.
        now: String,
    },
    /// A time that no certificate can name.
    #[error("it is {0} now, which no certificate can name: correct the clock")]
    Clock(String),
    /// The bytes could not be made.
    #[error("make a certificate: {0}")]
    NotMade(String),
}

impl Authority {
    /// A new one with a new key, valid for [`AUTHORITY_LIFETIME`].
    ///
    /// # Errors
    /// When the kernel gives no random bytes, or the time is one that no certificate can name.
    pub fn create(cluster: ClusterId, name: &Name, now: SystemTime) -> Result<Authority, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut asked = params(now, AUTHORITY_LIFETIME)?;
        // Two authorities never have one name, for a verifier looks for the signer by it.
        let print = Fingerprint::of(&key.public_key()).to_string();
        asked.distinguished_name.push(DnType::OrganizationName, name.as_str());
        asked.distinguished_name.push(DnType::CommonName, format!("Drystone authority {}", &print[..16]));
        asked.subject_alt_names = vec![uri_name(&authority_uri(cluster))?];
        // It signs hosts and people, and no further authority.
        asked.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        asked.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let made = asked.self_signed(&*key.inner).map_err(|error| not_made(&error))?;
        let certificate = Certificate::read(made.der())?;
        Ok(Authority { cluster, certificate, key })
    }

    /// From its certificate and its key.
    ///
    /// # Errors
    /// When one of them cannot be read, is of something else, or they do not belong together.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Authority, AuthorityError> {
        Authority::new(Certificate::from_pem(certificate)?, KeyPair::from_pem(key)?)
    }

    /// The same, from what was read already.
    pub(crate) fn new(certificate: Certificate, key: KeyPair) -> Result<Authority, AuthorityError> {
        let cluster = match &certificate.subject {
            Subject::Authority(cluster) => *cluster,
            Subject::Holder(identity) => return Err(AuthorityError::NotAnAuthority(identity.clone())),
        };
        if certificate.public_key != key.public_key() {
            return Err(AuthorityError::KeyDoesNotFit);
        }
        Ok(Authority { cluster, certificate, key })
    }

    /// Whose hosts and people it signs.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// Its certificate, which everybody may see.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The same as PEM.
    pub fn certificate_pem(&self) -> String {
        self.certificate.to_pem()
    }

    /// Its key as PEM. **Secret**: for its file and nothing else.
    pub fn key_pem(&self) -> String {
        self.key.to_pem()
    }

    /// SHA-256 of its certificate's DER bytes.
    pub fn fingerprint(&self) -> Fingerprint {
        self.certificate.fingerprint()
    }

    /// Signs a certificate (PEM) for the key of a request (PKCS#10, PEM) that says what `grant` says. It is valid from
    /// [`CLOCK_TOLERANCE`] ago.
    ///
    /// # Errors
    /// When the request is none, its signature does not fit its key or the key is of another kind, when the grant makes no
    /// sense, or when the authority is not valid now.
    pub fn issue(&self, request: &str, grant: &Grant, now: SystemTime) -> Result<String, AuthorityError> {
        let public_key = requested_key(request)?;
        if grant.identity.cluster() != self.cluster {
            return Err(AuthorityError::OtherCluster {
                found: grant.identity.clone(),
                cluster: self.cluster,
            });
        }
        if !self.certificate.is_valid_at(now) {
            return Err(AuthorityError::OutOfDate {
                from: time::text_of(self.certificate.not_before),
                to: time::text_of(self.certificate.not_after),
                now: time::text_of(now),
            });
        }
        self.sign(self.params_of(grant, now)?, &public_key)
    }

    /// What a grant's certificate says.
    fn params_of(&self, grant: &Grant, now: SystemTime) -> Result<CertificateParams, AuthorityError> {
        let is_host = grant.identity.host().is_some();
        if grant.addresses.len() > if is_host { ADDRESSES_MAX } else { 0 } {
            return Err(AuthorityError::Addresses(grant.addresses.len()));
        }
        let left = self.certificate.not_after.duration_since(now).unwrap_or_default();
        if !(LIFETIME_MIN..=LIFETIME_MAX).contains(&grant.lifetime) {
            return Err(AuthorityError::Lifetime(grant.lifetime));
        }
        let mut asked = params(now, grant.lifetime.min(left))?;
        asked.distinguished_name.push(DnType::CommonName, grant.identity.name().as_str());
        asked.subject_alt_names.push(uri_name(&grant.identity.uri())?);
        if is_host {
            asked.subject_alt_names.push(dns_name(SHARED_NAME)?);
        }
        for address in &grant.addresses {
            asked.subject_alt_names.push(match address {
                Address::Ip(ip) => SanType::IpAddress(*ip),
                Address::Dns(name) if name.as_str() == SHARED_NAME => continue,
                Address::Dns(name) => dns_name(name.as_str())?,
            });
        }
        asked.is_ca = IsCa::ExplicitNoCa;
        asked.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        asked.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if is_host {
            asked.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        Ok(asked)
    }

    /// Signs whatever it is given.
    pub(crate) fn sign(
        &self,
        mut asked: CertificateParams,
        public_key: &SubjectPublicKeyInfo,
    ) -> Result<String, AuthorityError> {
        asked.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_ca_cert_der(&self.certificate.der, &*self.key.inner);
        let made = issuer.and_then(|issuer| asked.signed_by(public_key, &issuer));
        Ok(pem::certificate_text(made.map_err(|error| not_made(&error))?.der()))
    }
}

pub(crate) fn not_made(error: &rcgen::Error) -> AuthorityError {
    AuthorityError::NotMade(error.to_string())
}

fn dns_name(name: &str) -> Result<SanType, AuthorityError> {
    Ok(SanType::DnsName(name.try_into().map_err(|error| not_made(&error))?))
}

fn uri_name(uri: &str) -> Result<SanType, AuthorityError> {
    Ok(SanType::URI(uri.try_into().map_err(|error| not_made(&error))?))
}

/// A certificate without names: a random serial number, valid from a little ago until `lifetime` from now.
pub(crate) fn params(now: SystemTime, lifetime: Duration) -> Result<CertificateParams, AuthorityError> {
    let clock = || AuthorityError::Clock(time::text_of(now));
    let moment = |seconds: u64| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    let begin = time::seconds(now).ok_or_else(clock)?;
    let end = now.checked_add(lifetime).and_then(time::seconds).ok_or_else(clock)?;
    let mut serial: [u8; SERIAL_BYTES] = random().ok_or_else(|| {
        AuthorityError::NotMade("the kernel gives no random bytes for a serial number".to_owned())
    })?;
    // Positive, and of the same length always.
    serial[0] = serial[0] & 0x7f | 0x40;
    let mut asked = CertificateParams::default();
    asked.distinguished_name = DistinguishedName::new();
    asked.serial_number = Some(SerialNumber::from_slice(&serial));
    asked.not_before = moment(begin.saturating_sub(CLOCK_TOLERANCE.as_secs()));
    asked.not_after = moment(end);
    Ok(asked)
}

/// The key that a request is for, after its signature has shown that the key is its maker's.
pub(crate) fn requested_key(request: &str) -> Result<SubjectPublicKeyInfo, AuthorityError> {
    let der = pem::request(request).map_err(|error| AuthorityError::Request(error.to_string()))?;
    let (rest, parsed) = X509CertificationRequest::from_der(&der)
        .map_err(|error| AuthorityError::Request(format!("it cannot be read ({error})")))?;
    if !rest.is_empty() {
        return Err(AuthorityError::Request("bytes follow it".to_owned()));
    }
    let asked = &parsed.certification_request_info.subject_pki;
    let is_point = asked.subject_public_key.data.len() == POINT_BYTES;
    let key = SubjectPublicKeyInfo::from_der(asked.raw).map_err(|_| AuthorityError::KeyKind)?;
    if !is_point || rcgen::PublicKeyData::algorithm(&key) != &rcgen::PKCS_ECDSA_P256_SHA256 {
        return Err(AuthorityError::KeyKind);
    }
    parsed
        .verify_signature()
        .map_err(|_| AuthorityError::Request("its signature does not fit its key".to_owned()))?;
    Ok(key)
}
