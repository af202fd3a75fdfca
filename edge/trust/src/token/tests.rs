//! Tests of join tokens and their records.

use super::*;
use crate::rights::Role;
use proptest::prelude::*;
use std::time::{SystemTime, UNIX_EPOCH};

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_344_120)
}

const HOUR: Duration = Duration::from_secs(3600);

fn person() -> Purpose {
    Purpose::Person { name: "ann".parse().expect("a name"), role: Role::Operator }
}

fn endpoints(texts: &[&str]) -> Vec<Endpoint> {
    texts.iter().map(|text| text.parse().expect(text)).collect()
}

fn made(purpose: Purpose) -> (JoinToken, TokenRecord) {
    let endpoints = endpoints(&["alpha.example:7400", "10.0.0.2:7400", "[fd00::3]:7400"]);
    TokenRecord::create(endpoints, Fingerprint::of(b"authority"), purpose, HOUR, now()).expect("a token")
}

#[test]
fn a_token_is_one_line_that_reads_back() {
    let (token, _) = made(Purpose::Host);
    let text = token.to_text();
    assert!(text.starts_with("drystone-join-1/alpha.example:7400,10.0.0.2:7400,[fd00::3]:7400/"), "{text}");
    assert!(!text.contains(char::is_whitespace));
    for form in [text.clone(), format!("  {text}\n"), text.to_ascii_uppercase()] {
        let read: JoinToken = form.parse().expect("a token");
        assert_eq!(read.to_text(), text);
        assert_eq!(
            (read.endpoints, read.authority, read.id),
            (token.endpoints.clone(), token.authority, token.id)
        );
    }
    let long = format!("{0}.{0}.{0}.{1}:65535", "x".repeat(63), "y".repeat(61));
    let longest = JoinToken { endpoints: endpoints(&[long.as_str(); ENDPOINTS_MAX]), ..token };
    longest.to_text().parse::<JoinToken>().expect("the longest token is short enough to be read");
}

#[test]
fn a_wrong_character_is_told_and_the_secret_never_shown() {
    let (token, _) = made(Purpose::Host);
    let (text, secret) = (token.to_text(), token.secret.to_text());
    for at in PREFIX.len()..text.len() {
        let mut wrong = text.clone().into_bytes();
        wrong[at] = if wrong[at] == b'7' { b'1' } else { b'7' };
        let wrong = String::from_utf8(wrong).expect("ASCII");
        assert_eq!(wrong.parse::<JoinToken>().map(|_| ()), Err(TokenError::Checksum), "{wrong}");
        assert_eq!(text[..at].parse::<JoinToken>().map(|_| ()), Err(TokenError::Checksum), "cut at {at}");
    }
    let error = TokenError::Checksum.to_string();
    assert!(error.contains("copy the whole line again"), "{error}");
    assert!(!format!("{token:?}").contains(&secret), "Debug shows no secret");
}

#[test]
fn what_is_no_token_or_of_another_version_is_told() {
    let text = made(Purpose::Host).0.to_text();
    let cases = [
        (String::new(), TokenError::NotAToken),
        ("hello".to_owned(), TokenError::NotAToken),
        (text[1..].to_owned(), TokenError::NotAToken),
        (text.replace("example", "exämple"), TokenError::NotAToken),
        ("x".repeat(TOKEN_TEXT_LENGTH_MAX + 1), TokenError::NotAToken),
        (text.replace("join-1", "join-2"), TokenError::OtherVersion),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<JoinToken>().map(|_| ()), Err(expected), "{text}");
    }
    // With a checksum that matches: a program wrote it, not a typing error.
    for (body, expected) in [
        ("x", TokenError::Part("form")),
        ("x/y-z", TokenError::Part("endpoints")),
        ("a:1/ab-cd-ef-01", TokenError::Part("form")),
        ("a:1/ab-cd-ef", TokenError::Part("fingerprint")),
    ] {
        let text = format!("{PREFIX}{body}");
        let text = format!("{text}-{:08x}", base::checksum::crc32c(text.as_bytes()));
        assert_eq!(text.parse::<JoinToken>().map(|_| ()), Err(expected), "{text}");
    }
}

#[test]
fn a_token_names_some_endpoints_and_is_good_for_some_time() {
    let print = Fingerprint::of(b"authority");
    let create = |count: usize, lifetime| {
        let endpoints = endpoints(&vec!["a:1"; count]);
        TokenRecord::create(endpoints, print, Purpose::Host, lifetime, now()).map(|_| ())
    };
    assert_eq!(create(0, HOUR), Err(TokenError::Endpoints(0)));
    assert_eq!(create(ENDPOINTS_MAX, TOKEN_LIFETIME_MAX), Ok(()));
    assert_eq!(create(ENDPOINTS_MAX + 1, HOUR), Err(TokenError::Endpoints(ENDPOINTS_MAX + 1)));
    for lifetime in [Duration::ZERO, TOKEN_LIFETIME_MAX + Duration::from_secs(1)] {
        assert_eq!(create(1, lifetime), Err(TokenError::Lifetime(lifetime)));
    }
}

#[test]
fn the_right_secret_gets_what_the_token_is_for_until_it_expires() {
    let again = Purpose::Again { host: base::HostId(7) };
    for (purpose, kind) in [(Purpose::Host, Kind::Host), (again, Kind::Host), (person(), Kind::Person)] {
        let (token, record) = made(purpose.clone());
        assert_eq!(record.check(&token.secret, kind, now()), Ok(&purpose));
        let end = now() + HOUR;
        assert_eq!(record.check(&token.secret, kind, end - Duration::from_nanos(1)), Ok(&purpose));
        let error = record.check(&token.secret, kind, end).expect_err("too late").to_string();
        assert!(error.contains("expired at 2026-11-22 11:42:00 UTC"), "{error}");
        assert!(error.contains("have a new one made"), "{error}");
    }
}

#[test]
fn a_wrong_secret_is_told_nothing_else() {
    let (token, mut record) = made(Purpose::Host);
    record.mark_used(now());
    let (other, _) = made(Purpose::Host);
    let late = now() + HOUR * 2;
    assert_eq!(record.check(&other.secret, Kind::Person, late), Err(TokenRefusal::Wrong));
    for bit in 0..SECRET_BYTES * 8 {
        let mut near = token.secret.clone();
        near.0[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(record.check(&near, Kind::Host, now()), Err(TokenRefusal::Wrong), "bit {bit}");
    }
    assert!(TokenRefusal::Wrong.to_string().contains("secret of the join token is wrong"));
}

#[test]
fn a_token_is_good_once() {
    let (token, mut record) = made(Purpose::Host);
    record.mark_used(now());
    let error = record.check(&token.secret, Kind::Host, now()).expect_err("used").to_string();
    assert!(error.contains("was used at 2026-11-22 10:42:00 UTC: it is good once"), "{error}");
}

#[test]
fn a_token_for_a_person_makes_no_host_and_the_other_way_round() {
    let (token, record) = made(person());
    let error = record.check(&token.secret, Kind::Host, now()).expect_err("for a person").to_string();
    assert!(error.contains("is for a person, and a host came with it"), "{error}");
    let (token, record) = made(Purpose::Host);
    let error = record.check(&token.secret, Kind::Person, now()).expect_err("for a host").to_string();
    assert!(error.contains("is for a host, and a person came with it"), "{error}");
}

#[test]
fn a_record_keeps_no_secret_and_its_form_is_the_documented_one() {
    let id = TokenId([1, 2, 3, 4, 5, 6, 7, 8]);
    let secret_sha256 = Secret([7; SECRET_BYTES]).digest();
    let mut record = TokenRecord { id, secret_sha256, purpose: person(), expires_ns: 5, used_ns: None };
    let text = serde_json::to_string(&record).expect("JSON");
    let expected = format!(
        r#"{{"id":"0102030405060708","secret_sha256":"{secret_sha256}","purpose":{{"person":{{"name":"ann","role":"operator"}}}},"expires_ns":5}}"#
    );
    assert_eq!(text, expected);
    assert!(!text.contains(&"07".repeat(SECRET_BYTES)), "no secret");
    assert_eq!(serde_json::from_str::<TokenRecord>(&text).expect("itself"), record);

    (record.purpose, record.used_ns) = (Purpose::Host, Some(4));
    let text = serde_json::to_string(&record).expect("JSON");
    assert!(text.ends_with(r#""purpose":"host","expires_ns":5,"used_ns":4}"#), "{text}");
    assert_eq!(serde_json::from_str::<TokenRecord>(&text).expect("itself"), record);
    for bad in
        [text.replace("used_ns", "unknown"), text.replace("\"01", "\"1"), text.replace("host", "guest")]
    {
        assert!(serde_json::from_str::<TokenRecord>(&bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn texts_of_any_kind_never_panic(text in ".{0,200}") {
        let _ = text.parse::<JoinToken>();
        let _ = format!("{PREFIX}{text}").parse::<JoinToken>();
        let sealed = format!("{PREFIX}{text}").to_ascii_lowercase();
        let _ = format!("{sealed}-{:08x}", base::checksum::crc32c(sealed.as_bytes())).parse::<JoinToken>();
    }

    #[test]
    fn damaged_tokens_never_panic_and_never_pass(at in 0usize..400, byte in 32u8..127) {
        let text = made(Purpose::Host).0.to_text();
        let at = at % text.len();
        let mut damaged = text.clone().into_bytes();
        damaged[at] = byte;
        let damaged = String::from_utf8(damaged).expect("ASCII");
        let is_same = damaged.eq_ignore_ascii_case(&text);
        prop_assert_eq!(damaged.parse::<JoinToken>().is_ok(), is_same);
    }
}
