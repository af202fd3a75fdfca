//! The console's place, from outside: links, sessions, what is believed of a browser, and what it is held to.

use super::cluster::SECONDS;
use super::host::{Shape, Site};
use super::members::{login, remote, three};
use super::tools::{command, output, said, text, wait_for};
use ::etcd::testing::free_port;
use serde_json::{Value, json};
use std::io::Read;
use std::process::Stdio;

/// What a browser says of a request of our own pages.
pub const OWN_PAGE: &str = "sec-fetch-site: same-origin";
/// What a change must be.
pub const JSON: &str = "content-type: application/json";

/// What came back: status, headers, body.
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The cookie that is set, as it is sent back.
    pub fn cookie(&self) -> String {
        let set = self.headers.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        format!("cookie: {}", set.and_then(|set| set.split(';').next()).expect("a cookie"))
    }
}

/// Asks as a browser would, but for what a browser adds by itself.
pub fn ask(method: &str, url: &str, headers: &[&str], body: Option<&str>) -> Answer {
    ask_from("127.0.0.1", method, url, headers, body)
}

/// The same from an address of this machine.
pub fn ask_from(from: &str, method: &str, url: &str, headers: &[&str], body: Option<&str>) -> Answer {
    let mut curl = command("curl");
    curl.args(["-sk", "-i", "--max-time", "30", "--interface", from, "-X", method]);
    for header in headers {
        curl.args(["-H", header]);
    }
    if let Some(body) = body {
        curl.args(["-d", body]);
    }
    let done = output(curl.arg(url));
    assert!(done.status.success(), "{url}: {}", said(&done));
    let answer = said(&done).replace('\r', "");
    let (head, body) = answer.split_once("\n\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, headers: head.to_owned(), body: body.to_owned() }
}

pub fn get(url: &str, headers: &[&str]) -> Answer {
    ask("GET", url, headers, None)
}

/// The address and the code of a link that was printed as JSON.
pub fn opened(link: &Value) -> (String, String) {
    let (address, code) = link["links"][0].as_str().and_then(|link| link.split_once("/in#")).expect("a link");
    (address.to_owned(), json!({ "code": code }).to_string())
}

pub fn log_in(address: &str, code: &str) -> Answer {
    ask("POST", &format!("{address}/api/v1/session"), &[OWN_PAGE, JSON], Some(code))
}

#[test]
fn a_link_opens_the_console_once_and_only_our_own_pages_are_believed() {
    let mut site = Site::new(&Shape::One { size_mib: 128 });
    let port = free_port();
    site.set_config(
        &site.config().replace("[listen]\n", &format!("[listen]\nconsole = [\"127.0.0.1:{port}\"]\n")),
    );
    let server = site.start();
    let (address, code) = opened(&site.json(&["console"]));
    assert_eq!(address, format!("https://127.0.0.1:{port}"));
    let (me, disks) = (format!("{address}/api/v1/me"), format!("{address}/api/v1/disks"));
    // Nobody yet.
    let nobody = get(&me, &[OWN_PAGE]);
    assert_eq!((nobody.status, &nobody.json()["code"]), (401, &json!("unauthenticated")));
    for headers in [
        vec![JSON],
        vec!["sec-fetch-site: cross-site", JSON],
        vec!["origin: https://evil.example", JSON],
        vec![OWN_PAGE],
    ] {
        let refused = ask("POST", &format!("{address}/api/v1/session"), &headers, Some(&code));
        assert_eq!(refused.status, 403, "{headers:?}: {}", refused.body);
    }
    let made = log_in(&address, &code);
    assert_eq!((made.status, &made.json()["kind"]), (200, &json!("local")), "{}", made.body);
    let set = made.headers.lines().find(|line| line.starts_with("set-cookie: ")).expect("a cookie");
    for part in ["__Host-drystone-", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict"] {
        assert!(set.contains(part), "{set}");
    }
    assert_eq!(log_in(&address, &code).status, 403, "once");
    let cookie = made.cookie();
    let found = get(&me, &[OWN_PAGE, &cookie]);
    assert_eq!(
        (found.status, &found.json()["session"]["idle_seconds"]),
        (200, &json!(3600)),
        "{}",
        found.body
    );
    // What is not of our pages, with the cookie that a browser sends all the same.
    let new = r#"{"name": "web", "size": 16777216}"#;
    for (headers, body) in [
        (vec![], None),
        (vec!["sec-fetch-site: cross-site"], None),
        (vec!["sec-fetch-site: same-site"], None),
        (vec!["origin: https://evil.example"], None),
        (vec!["origin: null"], None),
        (vec!["sec-fetch-site: cross-site", JSON], Some(new)),
        (vec![OWN_PAGE, "content-type: text/plain"], Some(new)),
        (vec![OWN_PAGE, "content-type: application/x-www-form-urlencoded"], Some(new)),
    ] {
        let headers: Vec<&str> = headers.iter().copied().chain([cookie.as_str()]).collect();
        let method = if body.is_some() { "POST" } else { "GET" };
        let refused = ask(method, &disks, &headers, body);
        assert_eq!(refused.status, 403, "{headers:?}: {}", refused.body);
    }
    assert_eq!(site.json(&["disk", "list"]), json!([]), "nothing was made");
    let made = ask("POST", &disks, &[OWN_PAGE, JSON, &cookie], Some(new));
    assert_eq!(made.status, 201, "{}", made.body);
    let events = site.ask(&["events"]);
    assert!(events.contains("by somebody on the host (console)") || events.contains("(console)"), "{events}");
    // The pages are held to what is ours.
    for url in [&format!("{address}/"), &me] {
        let headers = get(url, &[OWN_PAGE, &cookie]).headers;
        for part in [
            "content-security-policy: default-src 'none'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-opener-policy: same-origin",
            "HTTP/2",
        ] {
            assert!(headers.contains(part), "{url}: {part} in {headers}");
        }
    }
    assert!(get(&me, &[OWN_PAGE, &cookie]).headers.contains("cache-control: no-store"));
    let mut stream = command("curl");
    stream.args([
        "-skN",
        "--max-time",
        "60",
        "-H",
        OWN_PAGE,
        "-H",
        &cookie,
        &format!("{address}/api/v1/stream"),
    ]);
    let mut stream = stream.stdout(Stdio::piped()).spawn().expect("curl, of the Debian package curl");
    let mut first = [0; 10];
    stream.stdout.as_mut().expect("it is piped").read_exact(&mut first).expect("the stream begins");
    assert_eq!(&first, b"event: all");
    let out = ask("DELETE", &format!("{address}/api/v1/session"), &[OWN_PAGE, JSON, &cookie], None);
    assert_eq!(out.status, 204, "{}", out.body);
    // What went on with the session ends with it.
    wait_for("the stream ends", SECONDS, || stream.try_wait().expect("it is our child"));
    assert_eq!(get(&me, &[OWN_PAGE, &cookie]).status, 401);
    // A start ends all sessions.
    let cookie = log_in(&address, &opened(&site.json(&["console"])).1).cookie();
    assert_eq!(get(&me, &[OWN_PAGE, &cookie]).status, 200);
    server.stop();
    let server = site.start();
    assert_eq!(get(&me, &[OWN_PAGE, &cookie]).status, 401);
    server.stop();
    site.set_config(&site.config().replace(&format!("[\"127.0.0.1:{port}\"]"), "[]"));
    let server = site.start();
    let (code, told) = (site.cli(&["console"]).status.code(), said(&site.cli(&["console"])));
    assert!(code == Some(3) && told.contains("turns the console off"), "{told}");
    server.stop();
}

#[test]
fn a_certificate_from_elsewhere_is_shown_and_taken_anew_when_it_is_replaced() {
    let mut site = Site::new(&Shape::One { size_mib: 128 });
    let (key, certificate) = (site.path("web.key"), site.path("web.pem"));
    let make = |name: &str| {
        let mut openssl = command("openssl");
        openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]);
        openssl.args(["-subj", &format!("/CN={name}"), "-keyout", text(&key), "-out", text(&certificate)]);
        let done = output(&mut openssl);
        assert!(done.status.success(), "{}", said(&done));
    };
    make("first.example");
    let port = free_port();
    let listen = format!("[listen]\nconsole = [\"127.0.0.1:{port}\"]\n");
    let config = site.config().replace("[listen]\n", &listen);
    site.set_config(&format!("{config}[console]\ncertificate = \"web.pem\"\nkey = \"web.key\"\n"));
    let server = site.start();
    let shown = || {
        let mut curl = command("curl");
        said(&output(curl.args(["-skv", "-o", "/dev/null", &format!("https://127.0.0.1:{port}/")])))
    };
    let told =
        wait_for("it is shown", SECONDS, || Some(shown()).filter(|told| told.contains("first.example")));
    assert!(told.contains("TLSv1.3"), "{told}");
    assert!(site.json(&["console"])["fingerprint"].is_null(), "somebody else has signed it");
    make("second.example");
    wait_for("the new one is shown", SECONDS, || shown().contains("second.example").then_some(()));
    server.stop();
    std::fs::remove_file(&key).expect("it is there");
    let (code, told) = site.refused(&[]);
    assert!(code == 1 && told.contains("web.key") && told.contains("[console]"), "{code}: {told}");
}

/// Runs openssl, which must succeed.
pub fn openssl(arguments: &[&str]) -> Vec<u8> {
    let done = output(command("openssl").args(arguments));
    assert!(done.status.success(), "openssl {arguments:?}: {}", said(&done));
    done.stdout
}

/// A browser that was told once to come encrypted alone cannot be told otherwise by a host whose certificate it does not know.
#[test]
fn browsers_are_bound_to_encryption_only_where_somebody_vouches_for_the_certificate() {
    let mut site = Site::new(&Shape::One { size_mib: 128 });
    let path = |name: &str| site.path(name).display().to_string();
    let [authority, authority_key, request, key, own, signed, names] =
        ["ca.pem", "ca.key", "web.csr", "web.key", "own.pem", "signed.pem", "names"].map(path);
    std::fs::write(&names, "subjectAltName = DNS:a.example\n").expect("room");
    let new = ["req", "-newkey", "rsa:2048", "-nodes", "-subj"];
    let run = |more: &[&str]| openssl(&[&new[..], more].concat());
    run(&["/CN=authority", "-x509", "-keyout", &authority_key, "-out", &authority]);
    run(&["/CN=a.example", "-keyout", &key, "-out", &request]);
    openssl(&["req", "-x509", "-key", &key, "-subj", "/CN=a.example", "-out", &own]);
    openssl(&[
        "x509",
        "-req",
        "-in",
        &request,
        "-CA",
        &authority,
        "-CAkey",
        &authority_key,
        "-CAcreateserial",
        "-extfile",
        &names,
        "-out",
        &signed,
    ]);
    let port = free_port();
    let listen = format!("[listen]\nconsole = [\"127.0.0.1:{port}\"]\n");
    let plain = site.config().replace("[listen]\n", &listen);
    for (name, is_bound) in [(None, false), (Some("own.pem"), false), (Some("signed.pem"), true)] {
        let section = name.map(|name| format!("[console]\ncertificate = \"{name}\"\nkey = \"web.key\"\n"));
        site.set_config(&format!("{plain}{}", section.unwrap_or_default()));
        let server = site.start();
        for path in ["/", "/api/v1/me"] {
            let answer = get(&format!("https://127.0.0.1:{port}{path}"), &[OWN_PAGE]);
            let told = answer.header("strict-transport-security");
            assert_eq!(told, is_bound.then_some("max-age=2592000"), "{name:?} {path}: {}", answer.headers);
        }
        server.stop();
    }
}

#[test]
fn a_session_ends_with_the_right_of_whoever_it_is_for() {
    let three = three();
    let folder = tempfile::tempdir().expect("a folder");
    let ann = folder.path().join("ann");
    login(&three.sites[0], &ann, "ann", "operator");
    let made = remote(three.ports[1], &ann, &["--json", "console"]);
    let (address, code) = opened(&serde_json::from_str(&said(&made)).expect("a link"));
    let entered = log_in(&address, &code);
    assert_eq!((&entered.json()["name"], &entered.json()["role"]), (&json!("ann"), &json!("operator")));
    let (cookie, me) = (entered.cookie(), format!("{address}/api/v1/me"));
    assert_eq!(get(&me, &[OWN_PAGE, &cookie]).status, 200);
    three.sites[0].ask(&["person", "remove", "ann", "--yes"]);
    let refused = wait_for("host b hears of it", SECONDS, || {
        Some(get(&me, &[OWN_PAGE, &cookie])).filter(|answer| answer.status != 200)
    });
    assert_eq!(refused.status, 401, "{}", refused.body);
    assert!(refused.body.contains("revoked"), "{}", refused.body);
    for server in three.servers {
        server.stop();
    }
}
