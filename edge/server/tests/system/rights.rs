//! Who may do what: the guide's table, asked line by line of a cluster. There is no other list.

use super::host::Server;
use super::members::{Three, login, remote, three};
use super::refusals::{greeting, say_hello};
use super::tools::{command, output, said, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The guide, as it is in the repository.
const GUIDE: &str = include_str!("../../../../docs/guide/cluster.md");
/// How its table begins.
const HEAD: &str = "| | requests of the API";
/// The columns of those who ask, in their order.
const WHO: [&str; 5] = ["nobody", "viewer", "operator", "admin", "a host"];
/// What the table calls requests that it does not name.
const REST: &str = "every `GET` but those below";
/// No request takes this: what is let in is refused for it, and nothing is changed.
const NONSENSE: &str = "{\"nobody asked for this\": 1}";
/// What a browser says of a request of our own pages.
const OWN_PAGE: &str = "sec-fetch-site: same-origin";
/// How curl ends at its own limit.
const CURL_TIMED_OUT: i32 = 28;
/// What is asked instead where a field makes the difference.
const WITH_ALLOWED: &str = "{\"allowed\": {\"people\": [\"none\"]}}";

/// A line of the table.
#[derive(Debug)]
struct Line {
    /// What it allows, as it stands there: `POST /disks`, `NBD`.
    requests: Vec<String>,
    /// Whether it has what no line names.
    has_rest: bool,
    /// Whether each of [`WHO`] may.
    may: [bool; WHO.len()],
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// The texts between backticks; a field that is told after one belongs to it.
fn quoted(cell: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut parts = cell.split('`');
    let mut before = parts.next().unwrap_or_default();
    while let (Some(inner), after) = (parts.next(), parts.next().unwrap_or_default()) {
        match before.trim() == "with" {
            true => *found.last_mut().expect("a field of a request") += &format!(" {inner}"),
            false => found.push(inner.to_owned()),
        }
        before = after;
    }
    found
}

fn table() -> Vec<Line> {
    let mut lines = GUIDE.lines().skip_while(|line| !line.starts_with(HEAD));
    let head = cells(lines.next().expect("the guide has the table"));
    assert_eq!(head[2..], WHO, "the columns");
    let line = |text: &str| {
        let cells = cells(text);
        assert_eq!(cells.len(), 2 + WHO.len(), "{text}");
        let may = |cell: &&str| match *cell {
            "yes" => true,
            "" => false,
            other => panic!("`{other}` in {text}"),
        };
        let may: Vec<bool> = cells[2..].iter().map(may).collect();
        let has_rest = cells[1].contains(REST);
        let requests = quoted(cells[1].split(REST).last().expect("the rest"));
        assert!(!requests.is_empty(), "{text}");
        Line { requests, has_rest, may: may.try_into().expect("a cell for each") }
    };
    lines.skip(1).take_while(|line| line.starts_with('|')).map(line).collect()
}

/// The operations of a host's API, as the table would name them.
fn operations(three: &Three) -> Vec<String> {
    let document = three.sites[0].json(&["openapi"]);
    let paths = document["paths"].as_object().expect("paths");
    let each = paths.iter().flat_map(|(path, methods)| {
        let path = path.strip_prefix("/api/v1").expect("all are below one path").to_owned();
        let methods = methods.as_object().into_iter().flat_map(serde_json::Map::keys);
        let is_method = |name: &&String| ["get", "post", "put", "patch", "delete"].contains(&name.as_str());
        methods.filter(is_method).map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    each.collect()
}

/// One of those who ask.
struct Asker {
    /// The column.
    name: &'static str,
    /// Its certificate, if it has one.
    identity: Option<PathBuf>,
    /// What clients of NBD look into: with the authorities, even where it has none.
    certificates: PathBuf,
}

impl Asker {
    /// A browser: it shows no certificate.
    fn page() -> Asker {
        Asker { name: "a page", identity: None, certificates: PathBuf::new() }
    }

    /// Whether a request is let in, whatever becomes of it.
    fn is_let_in(&self, three: &Three, request: &str) -> bool {
        match request {
            "NBD" => self.attaches(three),
            "peers" => self.is_heard(three),
            _ => self.is_answered(three, request),
        }
    }

    fn attaches(&self, three: &Three) -> bool {
        let hosts = three.sites[1].json(&["host", "list"]);
        let nbd = hosts[1]["nbd"][1].as_str().expect("an address").to_owned();
        // Without encryption who is at loopback is on the host: here everybody comes as from elsewhere.
        let uri = format!("nbds://{nbd}/web?tls-certificates={}", text(&self.certificates));
        output(command("nbdinfo").arg(&uri)).status.success()
    }

    /// Whether a hello is answered at the port for hosts. It means to reach nobody, so the answer is a refusal.
    fn is_heard(&self, three: &Three) -> bool {
        let hosts = three.sites[1].json(&["host", "list"]);
        let own = three.sites[2].json(&["status"]);
        let [cluster, host] = ["cluster", "host"].map(|name| own[name].as_str().expect("an id"));
        let peers = hosts[1]["peers"].as_str().expect("an address");
        let answer = say_hello(peers, self.identity.as_deref(), &greeting(cluster, host, &"7".repeat(32), 1));
        assert!(answer.is_empty() || answer[49] == 4, "another verdict than that it means another host");
        !answer.is_empty()
    }

    fn is_answered(&self, three: &Three, request: &str) -> bool {
        let url = format!("https://127.0.0.1:{}", three.ports[1]);
        let (status, body) = self.ask(&url, &[], request);
        match status.as_str() {
            "403" => {
                let is_denied =
                    body.contains("a certificate of this cluster is required") || body.contains(" may not ");
                assert!(is_denied, "{request}, by {}: {body}", self.name);
                false
            }
            _ => true,
        }
    }

    /// Asks at an address with these headers: the status, and the body.
    fn ask(&self, address: &str, headers: &[&str], request: &str) -> (String, String) {
        let mut words = request.split(' ');
        let (method, path) = (words.next().expect("a method"), words.next().expect("a path"));
        let path = path.split('/').map(|part| if part.starts_with('{') { "none" } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        let url = format!("{address}/api/v1{path}");
        let is_stream = method == "GET" && path.starts_with("/stream");
        let limit = if is_stream { "4" } else { "30" };
        let mut curl = command("curl");
        curl.args(["-sk", "--max-time", limit, "-X", method, "-w", "\n%{http_code}", &url]);
        if let Some(folder) = &self.identity {
            curl.arg("--cert").arg(folder.join("certificate.pem")).arg("--key").arg(folder.join("key.pem"));
        }
        for header in headers {
            curl.args(["-H", header]);
        }
        if !["GET", "DELETE"].contains(&method) {
            let body = match words.next() {
                None => NONSENSE,
                Some("allowed") => WITH_ALLOWED,
                Some(other) => panic!("`{other}` in {request}"),
            };
            curl.args(["-H", "content-type: application/json", "-d", body]);
        }
        let done = output(&mut curl);
        let answer = said(&done);
        // A stream that began has no end of its own: the client's limit ends it.
        let is_done = done.status.success()
            || is_stream && done.status.code() == Some(CURL_TIMED_OUT) && answer.ends_with("\n200");
        assert!(is_done, "{request}: curl ends with {:?}: {answer}", done.status.code());
        let (body, status) = answer.rsplit_once('\n').expect("the status follows the body");
        for wrong in ["there is nothing at", "does not take this method"] {
            assert!(!body.contains(wrong), "{request}: {body}");
        }
        (status.to_owned(), body.to_owned())
    }

    /// Opens the console of the second host, and gives its address with the headers of a page that has a session.
    fn open_console(&self, three: &Three) -> (String, Vec<String>) {
        let identity = self.identity.as_deref().expect("who has a certificate gets a link");
        let made = remote(three.ports[1], identity, &["--json", "console"]);
        let link: Value = serde_json::from_str(&said(&made)).expect("a link");
        let (address, code) =
            link["links"][0].as_str().and_then(|link| link.split_once("/in#")).expect("a link");
        let mut curl = command("curl");
        curl.args(["-sk", "-i", "-H", OWN_PAGE, "-H", "content-type: application/json"]);
        let done = output(curl.args([
            "-d",
            &format!("{{\"code\": {code:?}}}"),
            &format!("{address}/api/v1/session"),
        ]));
        let answer = said(&done);
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
        let cookie = cookie.split(';').next().expect("its value");
        (address.to_owned(), vec![OWN_PAGE.to_owned(), format!("cookie: {cookie}")])
    }
}

/// Certificates as they are now: those of hosts may be replaced while they are used.
fn copied(identity: &Path, folder: PathBuf) -> PathBuf {
    std::fs::create_dir_all(&folder).expect("room for a folder");
    for name in ["certificate.pem", "key.pem", "authorities.pem"] {
        std::fs::copy(identity.join(name), folder.join(name)).expect("it is there");
    }
    for (link, name) in [
        ("ca-cert.pem", "authorities.pem"),
        ("client-cert.pem", "certificate.pem"),
        ("client-key.pem", "key.pem"),
    ] {
        std::os::unix::fs::symlink(name, folder.join(link)).expect("room for a link");
    }
    folder
}

/// The same requests by pages of the console, with a session and without one.
fn pages_may_what_their_people_may(three: &Three, askers: &[Asker], table: &[Line], operations: &[String]) {
    let named: BTreeSet<&str> = table.iter().flat_map(|line| &line.requests).map(String::as_str).collect();
    let json = "content-type: application/json";
    for (column, asker) in
        askers.iter().enumerate().filter(|(_, asker)| asker.name != "a host" && asker.name != "nobody")
    {
        let (address, session) = asker.open_console(three);
        let headers: Vec<&str> = session.iter().map(String::as_str).chain([json]).collect();
        for line in table {
            let is_rest =
                |one: &&String| line.has_rest && one.starts_with("GET ") && !named.contains(one.as_str());
            let rest = operations.iter().filter(is_rest);
            let requests =
                line.requests.iter().chain(rest).filter(|one| !["NBD", "peers"].contains(&one.as_str()));
            for request in requests {
                let may = match request.as_str() {
                    // To log in anew is for everybody; who logs out is out, and the rest could not be asked.
                    "POST /session" | "GET /session" => true,
                    "GET /session/oidc" | "GET /session/oidc/callback" => true,
                    // It is one's own, whatever one may.
                    "PUT /me/password" => true,
                    "DELETE /session" => continue,
                    "POST /sessions" | "POST /join" => false,
                    _ => line.may[column],
                };
                let (status, body) = Asker::page().ask(&address, &headers, request);
                assert_eq!(status != "403", may, "{request}, by a page of {}: {body}", asker.name);
                // Those without a session are the same whoever asks otherwise.
                if asker.name != "viewer" {
                    continue;
                }
                let (status, body) = Asker::page().ask(&address, &[OWN_PAGE, json], request);
                let expected = match request.as_str() {
                    "POST /session" => "400",
                    "GET /session" => "200",
                    // This host has no issuer.
                    "GET /session/oidc" | "GET /session/oidc/callback" => "422",
                    "POST /join" => "403",
                    _ => "401",
                };
                assert_eq!(status, expected, "{request}, by a page without a session: {body}");
                let (status, body) = Asker::page().ask(&address, &headers[1..], request);
                // An issuer sends browsers back from its own page.
                let expected = if request == "GET /session/oidc/callback" { "422" } else { "403" };
                assert_eq!(status, expected, "{request}, by a page that does not say whose it is: {body}");
            }
        }
        // The cookie is nothing where certificates are asked for.
        let api = format!("https://127.0.0.1:{}", three.ports[1]);
        assert_eq!(Asker::page().ask(&api, &headers, "GET /me").0, "403");
        let (status, _) = Asker::page().ask(&address, &headers, "DELETE /session");
        assert_eq!(status, "204");
        assert_eq!(Asker::page().ask(&address, &headers, "GET /me").0, "401");
    }
}

#[test]
fn everybody_may_do_what_the_table_of_the_guide_says_and_nothing_else() {
    let three = three();
    let folder = tempfile::tempdir().expect("a folder");
    let asker = |name: &'static str| {
        // It stands in the URI of a disk.
        let own = folder.path().join(name.replace(' ', "-"));
        let identity = match name {
            "nobody" => None,
            "a host" => Some(copied(&three.sites[2].path("d/identity"), own)),
            role => {
                login(&three.sites[0], &own, &format!("ann-{role}"), role);
                Some(own)
            }
        };
        let certificates = identity.clone().unwrap_or_else(|| folder.path().to_owned());
        Asker { name, identity, certificates }
    };
    let authorities = three.sites[0].path("d/identity/authorities.pem");
    std::fs::copy(authorities, folder.path().join("ca-cert.pem")).expect("room");
    let askers = WHO.map(asker);
    let admin = askers[3].identity.as_deref().expect("she has one");
    let made = remote(three.ports[1], admin, &["disk", "create", "web", "16MiB"]);
    assert!(made.status.success(), "{}", said(&made));
    let table = table();
    let named: BTreeSet<&str> = table.iter().flat_map(|line| &line.requests).map(String::as_str).collect();
    let operations = operations(&three);
    for request in &operations {
        let is_told = named.contains(request.as_str()) || request.starts_with("GET ");
        assert!(is_told, "the table of docs/guide/cluster.md does not tell who may `{request}`");
    }
    let mut asked = 0;
    for line in &table {
        let is_rest =
            |one: &&String| line.has_rest && one.starts_with("GET ") && !named.contains(one.as_str());
        let rest = operations.iter().filter(is_rest);
        for request in line.requests.iter().chain(rest) {
            let without_field = request.split(' ').take(2).collect::<Vec<_>>().join(" ");
            let is_known =
                ["NBD", "peers"].contains(&request.as_str()) || operations.contains(&without_field);
            assert!(is_known, "`{request}` of the table is no request");
            for (asker, may) in askers.iter().zip(line.may) {
                assert_eq!(asker.is_let_in(&three, request), may, "{request}, by {}", asker.name);
                asked += 1;
            }
        }
    }
    assert!(asked >= WHO.len() * (operations.len() + 2), "{asked} were asked");
    pages_may_what_their_people_may(&three, &askers, &table, &operations);
    // All is as before: what was let in was refused for other reasons.
    let disks: Value = three.sites[1].json(&["disk", "list"]);
    assert_eq!(disks.as_array().map(Vec::len), Some(1), "{disks}");
    three.servers.into_iter().for_each(Server::stop);
}
