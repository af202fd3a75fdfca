//! A private key (ECDSA on P-256) and the request for a certificate that is made with it.
//!
//! A key is made where it is used and never leaves that machine: only the request does. Must never be shown by `Debug` or in
//! an error.

use crate::pem;
use rcgen::{CertificateParams, DistinguishedName, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;
use std::sync::Arc;

/// A private key with its public one. Cloning it does not copy the key.
#[derive(Clone)]
pub struct KeyPair {
    pub(crate) inner: Arc<rcgen::KeyPair>,
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not the PEM text of such a key.
    #[error("this is not a PKCS#8 PEM text of a private key on P-256: {0}")]
    Malformed(String),
    /// The kernel gives no random bytes.
    #[error("make a key: {0}")]
    NotMade(String),
}

impl KeyPair {
    /// A new one.
    ///
    /// # Errors
    /// When the kernel gives no random bytes.
    pub fn generate() -> Result<KeyPair, KeyError> {
        let key = rcgen::KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
        let key = key.map_err(|error| KeyError::NotMade(error.to_string()))?;
        Ok(KeyPair { inner: Arc::new(key) })
    }

    /// From the text that `to_pem` gave.
    ///
    /// # Errors
    /// When it is something else, or a key of another kind.
    pub fn from_pem(text: &str) -> Result<KeyPair, KeyError> {
        pem::check_size(text).map_err(|error| KeyError::Malformed(error.to_string()))?;
        let key = rcgen::KeyPair::from_pkcs8_pem_and_sign_algo(text, &PKCS_ECDSA_P256_SHA256);
        let key = key.map_err(|error| KeyError::Malformed(error.to_string()))?;
        Ok(KeyPair { inner: Arc::new(key) })
    }

    /// PKCS#8 as PEM. **Secret**: for its file and nothing else.
    pub fn to_pem(&self) -> String {
        self.inner.serialize_pem()
    }

    /// A request for a certificate (PKCS#10, as PEM). It shows that its maker has the key, and asks for no name: who issues
    /// the certificate decides what it says.
    ///
    /// # Errors
    /// When the kernel gives no random bytes.
    pub fn signing_request(&self) -> Result<String, KeyError> {
        let mut asked = CertificateParams::default();
        asked.distinguished_name = DistinguishedName::new();
        let request = asked.serialize_request(&*self.inner).and_then(|request| request.pem());
        request.map_err(|error| KeyError::NotMade(error.to_string()))
    }

    /// The public key as it stands in a certificate (DER, `SubjectPublicKeyInfo`).
    pub(crate) fn public_key(&self) -> Vec<u8> {
        self.inner.subject_public_key_info()
    }

    /// The same key for rustls.
    pub(crate) fn signer(&self) -> Arc<dyn rustls::sign::SigningKey> {
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.inner.serialize_der()));
        rustls::crypto::ring::sign::any_ecdsa_type(&der)
            .expect("a key on P-256 is one that rustls signs with")
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyPair(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_is_never_shown() {
        let key = KeyPair::generate().expect("a key");
        let text = key.to_pem();
        let read = KeyPair::from_pem(&text).expect("its text");
        assert_eq!(read.public_key(), key.public_key());
        assert_eq!(format!("{key:?}"), "KeyPair(..)");
        assert_ne!(KeyPair::generate().expect("another").public_key(), key.public_key());
    }

    #[test]
    fn other_keys_are_refused_without_showing_them() {
        let other = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key").serialize_pem();
        let middle = other.lines().nth(1).expect("the key itself").to_owned();
        for text in [other.as_str(), "", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            let error = KeyPair::from_pem(text).expect_err("no such key").to_string();
            assert!(error.contains("private key on P-256"), "{error}");
            assert!(!error.contains(&middle), "{error}");
        }
    }
}
