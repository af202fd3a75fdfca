//! What an authority issues and what it does not, seen by another reader of certificates.

use super::world::*;
use crate::tls::SHARED_NAME;
use crate::{
    ADDRESSES_MAX, ANCHORS_MAX, AUTHORITY_LIFETIME, Anchors, Authority, AuthorityError, CLOCK_TOLERANCE,
    Certificate, Credentials, CredentialsError, Expected, Grant, HOST_LIFETIME, KeyPair, LIFETIME_MAX,
    LIFETIME_MIN, Role, Subject,
};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType};
use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

fn parsed(certificate: &Certificate) -> X509Certificate<'_> {
    X509Certificate::from_der(&certificate.der).expect("a certificate").1
}

fn names(certificate: &Certificate) -> Vec<String> {
    let parsed = parsed(certificate);
    let names = parsed.subject_alternative_name().expect("no error").expect("names");
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::URI(uri) => (*uri).to_owned(),
        GeneralName::DNSName(name) => format!("dns {name}"),
        GeneralName::IPAddress(bytes) => format!("ip {bytes:?}"),
        other => panic!("unexpected: {other:?}"),
    };
    names.value.general_names.iter().map(text).collect()
}

#[test]
fn an_authority_signs_certificates_and_no_authorities() {
    let authority = authority(CLUSTER);
    let certificate = authority.certificate();
    let parsed = parsed(certificate);
    let constraints = parsed.basic_constraints().expect("no error").expect("constraints");
    assert!(constraints.critical && constraints.value.ca);
    assert_eq!(constraints.value.path_len_constraint, Some(0));
    let usage = parsed.key_usage().expect("no error").expect("usage");
    assert!(usage.critical && usage.value.key_cert_sign() && !usage.value.digital_signature());
    assert_eq!(certificate.subject, Subject::Authority(CLUSTER));
    assert_eq!(certificate.not_before, now() - CLOCK_TOLERANCE);
    assert_eq!(certificate.not_after, now() + AUTHORITY_LIFETIME);
    assert_eq!(certificate.fingerprint(), authority.fingerprint());
    assert!(parsed.subject().to_string().contains("O=lab"), "{}", parsed.subject());
    let other = crate::tests::world::authority(CLUSTER);
    assert_ne!(
        parsed.subject(),
        self::parsed(other.certificate()).subject(),
        "others look for a signer by its name"
    );
}

#[test]
fn a_host_gets_its_identity_and_addresses_and_may_serve() {
    let authority = authority(CLUSTER);
    let addresses = ["alpha.example", "10.0.0.1", "::1"].map(|text| text.parse().expect(text));
    let grant = Grant { addresses: addresses.to_vec(), ..grant(host(CLUSTER, 1)) };
    let issued = issued(&authority, &grant, now());
    let parsed = parsed(issued.certificate());
    let mut expected =
        vec![host(CLUSTER, 1).uri(), format!("dns {SHARED_NAME}"), "dns alpha.example".to_owned()];
    expected.push("ip [10, 0, 0, 1]".to_owned());
    expected.push("ip [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]".to_owned());
    assert_eq!(names(issued.certificate()), expected);
    let usage = parsed.key_usage().expect("no error").expect("usage");
    assert!(usage.value.digital_signature() && !usage.value.key_cert_sign());
    let uses = parsed.extended_key_usage().expect("no error").expect("uses").value;
    assert!(uses.client_auth && uses.server_auth && !uses.any);
    assert!(!parsed.basic_constraints().expect("no error").expect("constraints").value.ca);
    assert_eq!(issued.certificate().not_before, now() - CLOCK_TOLERANCE);
    assert_eq!(issued.certificate().not_after, now() + HOST_LIFETIME);
    assert_eq!(parsed.subject().to_string(), "CN=h1");
}

#[test]
fn a_person_gets_a_role_and_may_not_serve() {
    let authority = authority(CLUSTER);
    let issued = issued(&authority, &grant(person(CLUSTER, Role::Operator)), now());
    assert_eq!(names(issued.certificate()), [person(CLUSTER, Role::Operator).uri()]);
    let parsed = parsed(issued.certificate());
    let uses = parsed.extended_key_usage().expect("no error").expect("uses").value;
    assert!(uses.client_auth && !uses.server_auth && !uses.any);
}

#[test]
fn what_a_request_asks_for_is_ignored() {
    let authority = authority(CLUSTER);
    let key = KeyPair::generate().expect("a key");
    let mut greedy = CertificateParams::new(vec!["everybody.example".to_owned()]).expect("names");
    let admin = person(CLUSTER, Role::Admin).uri();
    greedy.subject_alt_names.push(SanType::URI(admin.as_str().try_into().expect("ASCII")));
    greedy.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    greedy.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    greedy.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any];
    let request = greedy.serialize_request(&*key.inner).and_then(|request| request.pem()).expect("a request");
    let viewer = grant(person(CLUSTER, Role::Viewer));
    let certificate = authority.issue(&request, &viewer, now()).expect("a certificate");
    let modest = Credentials::new(key, &certificate).expect("they fit");
    assert_eq!(modest.identity(), &viewer.identity);
    assert_eq!(names(modest.certificate()), [viewer.identity.uri()]);
    let parsed = parsed(modest.certificate());
    assert_eq!(parsed.subject().to_string(), "CN=ann");
    assert!(!parsed.is_ca());
    assert!(!parsed.extended_key_usage().expect("no error").expect("uses").value.any);
}

#[test]
fn a_request_shows_that_its_maker_has_the_key() {
    let authority = authority(CLUSTER);
    let (mine, theirs) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let request = crate::pem::request(&mine.signing_request().expect("a request")).expect("PEM");
    // Another public key of the same form in its place.
    let find =
        |der: &[u8], what: &[u8]| der.windows(what.len()).position(|part| part == what).expect("there");
    let at = find(&request, mine.inner.public_key_raw());
    let mut stolen = request.clone();
    stolen[at..at + 65].copy_from_slice(theirs.inner.public_key_raw());
    let text = ::pem::encode(&::pem::Pem::new("CERTIFICATE REQUEST", stolen));
    let error = authority.issue(&text, &grant(host(CLUSTER, 1)), now()).expect_err("stolen").to_string();
    assert!(error.contains("its signature does not fit its key"), "{error}");
}

#[test]
fn requests_with_other_keys_and_other_texts_get_nothing() {
    let authority = authority(CLUSTER);
    let issue = |request: &str| {
        let error = authority.issue(request, &grant(host(CLUSTER, 1)), now()).expect_err("nothing is issued");
        error.to_string()
    };
    for algorithm in [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P384_SHA384] {
        let key = rcgen::KeyPair::generate_for(algorithm).expect("a key");
        let request = CertificateParams::default().serialize_request(&key).and_then(|request| request.pem());
        let error = issue(&request.expect("a request"));
        assert!(error.contains("only ECDSA keys on P-256"), "{error}");
    }
    let request = KeyPair::generate().expect("a key").signing_request().expect("a request");
    for text in [
        "",
        "hello",
        &authority.certificate_pem(),
        &request
            .replace("BEGIN CERTIFICATE REQUEST", "BEGIN REQUEST")
            .replace("END CERTIFICATE REQUEST", "END REQUEST"),
        &"x".repeat(crate::PEM_SIZE_MAX + 1),
    ] {
        let error = issue(text);
        assert!(error.contains("is not a request for a certificate"), "{error}");
    }
    let mut longer = crate::pem::request(&request).expect("PEM");
    longer.push(0);
    let error = issue(&::pem::encode(&::pem::Pem::new("CERTIFICATE REQUEST", longer)));
    assert!(error.contains("bytes follow it"), "{error}");
}

#[test]
fn serial_numbers_are_random_even_for_one_key() {
    let authority = authority(CLUSTER);
    let key = KeyPair::generate().expect("a key");
    let request = key.signing_request().expect("a request");
    let serials = (0..64).map(|_| {
        let text = authority.issue(&request, &grant(host(CLUSTER, 1)), now()).expect("a certificate");
        Certificate::from_pem(&text).expect("a certificate").serial
    });
    let serials: BTreeSet<String> = serials.collect();
    assert_eq!(serials.len(), 64);
    assert!(serials.iter().all(|serial| serial.len() == 32), "{serials:?}");
}

#[test]
fn an_authority_signs_for_its_own_cluster_and_within_limits() {
    let authority = authority(CLUSTER);
    let request = KeyPair::generate().expect("a key").signing_request().expect("a request");
    let issue = |grant: &Grant, at| authority.issue(&request, grant, at).map(|_| ());
    let error = issue(&grant(host(OTHER_CLUSTER, 1)), now()).expect_err("another cluster").to_string();
    assert!(error.contains("ask the authority of its own cluster"), "{error}");
    for lifetime in
        [Duration::ZERO, LIFETIME_MIN - Duration::from_secs(1), LIFETIME_MAX + Duration::from_secs(1)]
    {
        let asked = Grant { lifetime, ..grant(host(CLUSTER, 1)) };
        assert_eq!(issue(&asked, now()), Err(AuthorityError::Lifetime(lifetime)));
    }
    let address = || "10.0.0.1".parse().expect("an address");
    let with = |identity, count| Grant { addresses: vec![address(); count], ..grant(identity) };
    assert_eq!(issue(&with(host(CLUSTER, 1), ADDRESSES_MAX), now()), Ok(()));
    for (asked, count) in [
        (with(host(CLUSTER, 1), ADDRESSES_MAX + 1), ADDRESSES_MAX + 1),
        (with(person(CLUSTER, Role::Viewer), 1), 1),
    ] {
        assert_eq!(issue(&asked, now()), Err(AuthorityError::Addresses(count)));
    }
}

#[test]
fn no_certificate_outlives_its_authority() {
    let authority = authority(CLUSTER);
    let end = now() + AUTHORITY_LIFETIME;
    let last = issued(&authority, &grant(host(CLUSTER, 1)), end - DAY);
    assert_eq!(last.certificate().not_after, end);
    let request = KeyPair::generate().expect("a key").signing_request().expect("a request");
    for at in [end + Duration::from_secs(1), now() - CLOCK_TOLERANCE - Duration::from_secs(1)] {
        let error =
            authority.issue(&request, &grant(host(CLUSTER, 1)), at).expect_err("out of date").to_string();
        assert!(error.contains("correct the clock or change the authority"), "{error}");
    }
    let far = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    let name = "lab".parse().expect("a name");
    let error = Authority::create(CLUSTER, &name, far).expect_err("no such time");
    assert!(error.to_string().contains("correct the clock"), "{error}");
    assert!(Authority::create(CLUSTER, &name, UNIX_EPOCH - DAY).is_err());
}

#[test]
fn an_authority_read_back_signs_what_is_believed() {
    let first = authority(CLUSTER);
    let again = Authority::from_pem(&first.certificate_pem(), &first.key_pem()).expect("itself");
    assert_eq!((again.cluster(), again.fingerprint()), (CLUSTER, first.fingerprint()));
    let (server, client) = (member(&first, host(CLUSTER, 1)), member(&again, host(CLUSTER, 2)));
    shake(client_of(&client, Expected::AnyHost), server_of(&server, Expected::AnyHost)).expect_good();

    let other = authority(CLUSTER);
    let error = Authority::from_pem(&first.certificate_pem(), &other.key_pem()).expect_err("another key");
    assert_eq!(error, AuthorityError::KeyDoesNotFit);
    let host_1 = credentials(&first, host(CLUSTER, 1));
    let error =
        Authority::from_pem(&host_1.certificate().to_pem(), &host_1.key().to_pem()).expect_err("a host");
    assert!(error.to_string().contains("not of an authority"), "{error}");
    let shown = format!("{first:?}");
    assert!(!shown.contains("PRIVATE") && shown.contains("KeyPair(..)"), "{shown}");
}

#[test]
fn a_key_and_a_certificate_must_fit() {
    let authority = authority(CLUSTER);
    let certificate = credentials(&authority, host(CLUSTER, 1)).certificate().to_pem();
    let key = KeyPair::generate().expect("a key");
    let error = Credentials::new(key, &certificate).expect_err("another key").to_string();
    assert!(error.contains("does not fit the certificate of host `h1`"), "{error}");
    let key = KeyPair::from_pem(&authority.key_pem()).expect("its key");
    let error = Credentials::new(key, &authority.certificate_pem()).expect_err("an authority");
    assert_eq!(error, CredentialsError::IsAuthority);
}

#[test]
fn a_certificate_is_renewed_after_two_thirds_of_its_lifetime() {
    let authority = authority(CLUSTER);
    let credentials = credentials(&authority, host(CLUSTER, 1));
    assert!(!credentials.needs_renewal(now()));
    assert!(!credentials.needs_renewal(now() + DAY * 60 - Duration::from_secs(1)));
    assert!(credentials.needs_renewal(now() + DAY * 60));
    assert!(credentials.needs_renewal(now() + DAY * 1000));
}

#[test]
fn anchors_are_some_and_not_too_many_and_count_once() {
    let authorities: Vec<_> = (0..=ANCHORS_MAX).map(|_| authority(CLUSTER).certificate().clone()).collect();
    let text = |count: usize| authorities[..count].iter().map(Certificate::to_pem).collect::<String>();
    let full = Anchors::from_pem(CLUSTER, &text(ANCHORS_MAX)).expect("as many as there may be");
    assert_eq!(full.to_pem(), text(ANCHORS_MAX));
    let again = full.with(authorities[0].clone()).expect("it is there already");
    assert_eq!(again.certificates().count(), ANCHORS_MAX);
    let error = Anchors::from_pem(CLUSTER, &text(ANCHORS_MAX + 1)).expect_err("too many").to_string();
    assert!(error.contains("9 authorities cannot be believed at once"), "{error}");
    let one = Anchors::from_pem(CLUSTER, &text(1)).expect("one");
    assert!(one.without(authorities[0].fingerprint()).is_err(), "one is left");
    assert!(Anchors::from_pem(CLUSTER, "").is_err());
    assert!(Anchors::from_pem(OTHER_CLUSTER, &text(1)).is_err());
}

#[test]
fn a_certificate_is_one_and_does_not_end_before_it_begins() {
    let authority = authority(CLUSTER);
    let mut der = credentials(&authority, host(CLUSTER, 1)).certificate().der.to_vec();
    der.push(0);
    let error = Certificate::read(&der).expect_err("a byte too many").to_string();
    assert!(error.contains("bytes follow it"), "{error}");

    let mut asked = crate::authority::params(now(), DAY).expect("a time");
    (asked.not_before, asked.not_after) = (asked.not_after, asked.not_before);
    let request = KeyPair::generate().expect("a key").signing_request().expect("a request");
    let public_key = crate::authority::requested_key(&request).expect("a key");
    let text = authority.sign(asked, &public_key).expect("a certificate");
    let error = Certificate::from_pem(&text).expect_err("it ends first").to_string();
    assert!(error.contains("ends before it begins"), "{error}");

    let long = format!("{}{}", authority.certificate_pem(), "\n".repeat(crate::PEM_SIZE_MAX));
    let error = Certificate::from_pem(&long).expect_err("too long").to_string();
    assert!(error.contains("65536 are allowed"), "{error}");
    let error = Anchors::from_pem(CLUSTER, &long).expect_err("too long").to_string();
    assert!(error.contains("65536 are allowed"), "{error}");

    let two = authority.certificate_pem().repeat(2);
    let error = Certificate::from_pem(&two).expect_err("two").to_string();
    assert!(error.contains("has 2 PEM blocks `CERTIFICATE`; one is expected"), "{error}");
}
