//! Bytes and texts of any kind never panic. Random tests print their seed.

use super::world::*;
use crate::{
    Address, Anchors, Authority, Certificate, Credentials, Endpoint, Fingerprint, Identity, KeyPair, Name,
    Refusal, Secret, TokenId, TokenRecord, peer_identity,
};
use proptest::prelude::*;
use rustls::pki_types::CertificateDer;
use std::sync::OnceLock;

/// A genuine certificate, request and key of one host.
fn genuine() -> &'static (Authority, Vec<u8>, Vec<u8>, String) {
    static MADE: OnceLock<(Authority, Vec<u8>, Vec<u8>, String)> = OnceLock::new();
    MADE.get_or_init(|| {
        let authority = authority(CLUSTER);
        let credentials = credentials(&authority, host(CLUSTER, 1));
        let request = credentials.key().signing_request().expect("a request");
        let request = crate::pem::request(&request).expect("PEM");
        let der = credentials.certificate().der.to_vec();
        let key = credentials.key().to_pem();
        (authority, der, request, key)
    })
}

fn read_all(der: &[u8], text: &str) {
    let (authority, _, _, key) = genuine();
    let _ = Certificate::read(der);
    let shown = [CertificateDer::from(der.to_vec()), CertificateDer::from(der.to_vec())];
    let _ = peer_identity(Some(&shown));
    let _ = crate::authority_shown(Fingerprint::of(der), Some(&shown));
    let anchors = Anchors::of(authority).expect("one");
    for side in [crate::anchors::Side::Client, crate::anchors::Side::Server] {
        if let Err(error) = anchors.verify(side, &shown[0], crate::anchors::unix(now())) {
            let _ = Refusal::of(&error).map(|refusal| refusal.to_string());
        }
    }
    let _ = Certificate::from_pem(text);
    let _ = Anchors::from_pem(CLUSTER, text);
    let _ = KeyPair::from_pem(text);
    let _ = Authority::from_pem(text, key);
    let _ = authority.issue(text, &grant(host(CLUSTER, 1)), now());
    let _ = Credentials::new(KeyPair::from_pem(key).expect("a key"), text);
}

fn pem_of(tag: &str, der: &[u8]) -> String {
    ::pem::encode(&::pem::Pem::new(tag, der))
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes, &String::from_utf8_lossy(&bytes));
        for tag in ["CERTIFICATE", "CERTIFICATE REQUEST", "PRIVATE KEY"] {
            read_all(&bytes, &pem_of(tag, &bytes));
        }
    }

    #[test]
    fn damaged_certificates_never_panic_and_are_never_believed(at in any::<usize>(), bit in 0u8..8, cut in any::<bool>()) {
        let (authority, der, _, _) = genuine();
        let mut damaged = der.clone();
        let at = at % der.len();
        if cut { damaged.truncate(at) } else { damaged[at] ^= 1 << bit }
        read_all(&damaged, &pem_of("CERTIFICATE", &damaged));
        let anchors = Anchors::of(authority).expect("one");
        let shown = CertificateDer::from(damaged);
        let verified = anchors.verify(crate::anchors::Side::Server, &shown, crate::anchors::unix(now()));
        prop_assert!(verified.is_err(), "byte {at}, bit {bit}, cut: {cut}");
    }

    #[test]
    fn damaged_requests_never_panic_and_get_nothing_for_another_key(at in any::<usize>(), bit in 0u8..8, cut in any::<bool>()) {
        let (authority, _, request, key) = genuine();
        let mut damaged = request.clone();
        let at = at % request.len();
        if cut { damaged.truncate(at) } else { damaged[at] ^= 1 << bit }
        let text = pem_of("CERTIFICATE REQUEST", &damaged);
        // The name of the signature's algorithm is not signed itself, and other spellings of it may pass.
        if let Ok(issued) = authority.issue(&text, &grant(host(CLUSTER, 1)), now()) {
            let key = KeyPair::from_pem(key).expect("a key");
            prop_assert!(Credentials::new(key, &issued).is_ok(), "byte {at}, bit {bit}, cut: {cut}");
        }
    }

    #[test]
    fn damaged_keys_never_panic(at in any::<usize>(), byte in 32u8..127) {
        let (_, _, _, key) = genuine();
        let mut damaged = key.clone().into_bytes();
        let at = at % damaged.len();
        damaged[at] = byte;
        read_all(&damaged, &String::from_utf8_lossy(&damaged));
    }

    #[test]
    fn texts_of_any_kind_never_panic(text in ".{0,120}") {
        let _ = text.parse::<Identity>().map_err(|error| error.to_string());
        let _ = format!("drystone://{text}").parse::<Identity>();
        let _ = format!("drystone://{CLUSTER}/hosts/{text}").parse::<Identity>();
        let _ = format!("drystone://{CLUSTER}/people/{text}").parse::<Identity>();
        let _ = text.parse::<Name>().map_err(|error| error.to_string());
        let _ = text.parse::<Address>().map_err(|error| error.to_string());
        let _ = text.parse::<Endpoint>().map_err(|error| error.to_string());
        let _ = format!("[{text}]:1").parse::<Endpoint>();
        let _ = text.parse::<Fingerprint>();
        let _ = text.parse::<TokenId>();
        let _ = text.parse::<Secret>();
        let _ = serde_json::from_str::<TokenRecord>(&text);
    }

    #[test]
    fn identities_of_any_names_read_back(cluster in any::<u128>(), id in any::<u128>(), name in "[a-zA-Z0-9][a-zA-Z0-9._@-]{0,63}") {
        let (cluster, name) = (base::ClusterId(cluster), name.parse::<Name>().expect("a name"));
        let host = Identity::Host { cluster, host: base::HostId(id), name: name.clone() };
        prop_assert_eq!(host.uri().parse(), Ok(host));
        for role in crate::Role::ALL {
            let person = Identity::Person { cluster, name: name.clone(), role };
            prop_assert_eq!(person.uri().parse(), Ok(person));
        }
    }
}
