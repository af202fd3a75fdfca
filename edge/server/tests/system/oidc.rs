//! Log-in at an issuer of OpenID Connect, from outside: curl is the browser, and the issuer is a small one of our own at loopback,
//! which says on demand what no issuer should.

use super::cluster::SECONDS;
use super::console::{Answer, OWN_PAGE, ask_from, get, openssl};
use super::host::{Server, Shape, Site};
use super::tools::{said, wait_for};
use ::etcd::testing::free_port;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// What browsers say of a navigation from a page of somebody else.
const FROM_ELSEWHERE: [&str; 3] =
    ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate", "sec-fetch-dest: document"];
const CLIENT: &str = "drystone";
const SECRET: &str = "between-us";

/// What the issuer tells of somebody, and how.
#[derive(Clone)]
struct Tells {
    /// Claims that replace or add to the usual ones; null takes one away.
    claims: Value,
    /// Whether the nonce of the log-in stands in the token.
    has_nonce: bool,
    /// The algorithm that the token's header names.
    algorithm: &'static str,
    /// Whether the signature is one.
    is_signed: bool,
}

impl Default for Tells {
    fn default() -> Tells {
        Tells { claims: json!({}), has_nonce: true, algorithm: "RS256", is_signed: true }
    }
}

/// A log-in that waits for its code to be exchanged.
struct Code {
    nonce: String,
    challenge: String,
    redirect: String,
}

struct State {
    tells: Tells,
    /// Its key, and what that is called.
    key: (PathBuf, String),
    codes: BTreeMap<String, Code>,
}

/// A small issuer: discovery, keys, log-in, token. Its thread ends with the test's process.
struct Issuer {
    url: String,
    folder: PathBuf,
    state: Arc<Mutex<State>>,
}

impl Issuer {
    fn start(folder: &Path) -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let key = make_key(folder, "first");
        let state = Arc::new(Mutex::new(State { tells: Tells::default(), key, codes: BTreeMap::new() }));
        let (shared, own) = (Arc::clone(&state), url.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &own, &shared);
            }
        });
        Issuer { url, folder: folder.to_owned(), state }
    }

    /// What it tells from now on.
    fn tell(&self, tells: Tells) {
        self.state.lock().expect("no test panicked in it").tells = tells;
    }

    /// Signs with another key from now on, and shows that one alone.
    fn change_key(&self) {
        let key = make_key(&self.folder, "second");
        self.state.lock().expect("no test panicked in it").key = key;
    }
}

fn make_key(folder: &Path, name: &str) -> (PathBuf, String) {
    let path = folder.join(format!("{name}.key"));
    let file = path.display().to_string();
    openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", &file]);
    (path, name.to_owned())
}

/// RFC 4648, 5, without padding.
fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..=chunk.len() {
            out.push(LETTERS[(bits >> (18 - 6 * place) & 63) as usize].into());
        }
    }
    out
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = match (first, more) {
            (b'%', [high, low, more @ ..]) => {
                let hex = [*high, *low];
                let hex = std::str::from_utf8(&hex).expect("two digits");
                bytes.push(u8::from_str_radix(hex, 16).expect("hexadecimal"));
                more
            }
            (b'+', more) => {
                bytes.push(b' ');
                more
            }
            (other, more) => {
                bytes.push(*other);
                more
            }
        };
    }
    String::from_utf8(bytes).expect("a text")
}

fn fields(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// A file for openssl, with what it is to read.
fn openssl_on(folder: &Path, input: &[u8], arguments: &[&str]) -> Vec<u8> {
    let path = folder.join("input");
    std::fs::write(&path, input).expect("room");
    openssl(&[arguments, &[&path.display().to_string()]].concat())
}

/// Answers one request, and closes.
fn serve(mut stream: TcpStream, url: &str, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request");
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).expect("headers") == 0 || header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').expect("a header");
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().expect("a number"),
            "authorization" => value.trim().clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    let path = line.split(' ').nth(1).expect("a path").to_owned();
    let (path, query) = path.split_once('?').unwrap_or((&path, ""));
    let state = &mut *state.lock().expect("no test panicked in it");
    let (status, extra, answer) = match path {
        "/.well-known/openid-configuration" => ("200 OK", String::new(), discovery(url)),
        "/jwks" => ("200 OK", String::new(), keys(state)),
        "/authorize" => {
            let asked = fields(query);
            assert_eq!((asked["response_type"].as_str(), asked["client_id"].as_str()), ("code", CLIENT));
            assert_eq!(asked["code_challenge_method"], "S256");
            assert!(asked["scope"].split(' ').any(|scope| scope == "openid"), "{asked:?}");
            let code = format!("code-{}", state.codes.len());
            let [nonce, challenge, redirect] =
                ["nonce", "code_challenge", "redirect_uri"].map(|name| asked[name].clone());
            let to = format!("location: {redirect}?code={code}&state={}\r\n", asked["state"]);
            state.codes.insert(code, Code { nonce, challenge, redirect });
            ("302 Found", to, json!({}))
        }
        "/token" => {
            let asked = fields(std::str::from_utf8(&body).expect("a text"));
            match token(state, url, &asked, &authorization) {
                Some(token) => ("200 OK", String::new(), token),
                None => ("400 Bad Request", String::new(), json!({ "error": "invalid_grant" })),
            }
        }
        _ => ("404 Not Found", String::new(), json!({})),
    };
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{extra}content-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    // The client may be gone.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes()));
}

fn discovery(url: &str) -> Value {
    json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "jwks_uri": format!("{url}/jwks"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
    })
}

fn keys(state: &State) -> Value {
    let (path, name) = &state.key;
    let modulus = openssl(&["rsa", "-in", &path.display().to_string(), "-noout", "-modulus"]);
    let modulus = String::from_utf8(modulus).expect("a text");
    let digits = modulus.trim().strip_prefix("Modulus=").expect("as openssl prints it");
    let byte = |place: usize| u8::from_str_radix(&digits[place..place + 2], 16).expect("hexadecimal");
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    json!({ "keys": [{
        "kty": "RSA", "use": "sig", "alg": "RS256", "kid": name, "n": base64url(&bytes), "e": base64url(&[1, 0, 1]),
    }] })
}

/// A token for a code, if whoever asks is the client, and the one who began the log-in (RFC 7636, 4.6).
fn token(
    state: &mut State,
    url: &str,
    asked: &BTreeMap<String, String>,
    authorization: &str,
) -> Option<Value> {
    let folder = state.key.0.parent().expect("a folder").to_owned();
    let Code { nonce, challenge, redirect } = state.codes.remove(asked.get("code")?)?;
    let printed =
        openssl_on(&folder, asked.get("code_verifier")?.as_bytes(), &["dgst", "-sha256", "-binary"]);
    let basic = openssl_on(&folder, format!("{CLIENT}:{SECRET}").as_bytes(), &["base64", "-A", "-in"]);
    let basic = format!("Basic {}", String::from_utf8(basic).expect("a text").trim());
    if base64url(&printed) != challenge || authorization != basic || *asked.get("redirect_uri")? != redirect {
        return None;
    }
    let tells = state.tells.clone();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let mut claims = json!({
        "iss": url, "sub": "4711", "aud": CLIENT, "iat": now, "exp": now + 300,
        "preferred_username": "ann@example.org", "groups": ["everybody", "storage"],
    });
    if tells.has_nonce {
        claims["nonce"] = nonce.into();
    }
    for (name, value) in tells.claims.as_object().expect("claims") {
        match value {
            Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    let header = json!({ "alg": tells.algorithm, "typ": "JWT", "kid": state.key.1 });
    let signed =
        format!("{}.{}", base64url(header.to_string().as_bytes()), base64url(claims.to_string().as_bytes()));
    let key = state.key.0.display().to_string();
    let signature = match (tells.is_signed, tells.algorithm) {
        (false, _) => vec![7; 256],
        (true, "RS256") => openssl_on(&folder, signed.as_bytes(), &["dgst", "-sha256", "-sign", &key]),
        (true, "HS256") => {
            openssl_on(&folder, signed.as_bytes(), &["dgst", "-sha256", "-hmac", SECRET, "-binary"])
        }
        (true, _) => Vec::new(),
    };
    let token = format!("{signed}.{}", base64url(&signature));
    Some(json!({ "access_token": "unused", "token_type": "Bearer", "expires_in": 300, "id_token": token }))
}

/// A host with an issuer.
struct Setting {
    site: Site,
    server: Server,
    issuer: Issuer,
    console: String,
}

fn setting() -> Setting {
    let mut site = Site::new(&Shape::One { size_mib: 128 });
    let issuer = Issuer::start(site.folder());
    let port = free_port();
    let console = format!("https://127.0.0.1:{port}");
    std::fs::write(site.path("secret"), format!("{SECRET}\n")).expect("room");
    let listen = format!("[listen]\nconsole = [\"127.0.0.1:{port}\"]\n");
    let config = site.config().replace("[listen]\n", &listen);
    site.set_config(&format!(
        "{config}[console.oidc]\nissuer = \"{}\"\nname = \"Example\"\nclient_id = \"{CLIENT}\"\nclient_secret_file = \"secret\"\n\
         url = \"{console}\"\n[console.oidc.roles]\nadmin = [\"storage-admins\"]\noperator = [\"storage\"]\n",
        issuer.url
    ));
    set_mode(&site.path("secret"), 0o644);
    let (code, told) = site.refused(&[]);
    assert!(code == 3 && told.contains("others may read") && told.contains("chmod 600"), "{code}: {told}");
    set_mode(&site.path("secret"), 0o600);
    let server = site.start();
    Setting { site, server, issuer, console }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

impl Setting {
    /// A browser goes to the issuer: where it is sent back to, and its cookie.
    fn goes(&self, from: &str) -> (String, String) {
        let begin = format!("{}/api/v1/session/oidc", self.console);
        let sent = ask_from(from, "GET", &begin, &[OWN_PAGE], None);
        assert_eq!(sent.status, 303, "{}", sent.body);
        let set = sent.header("set-cookie").expect("a cookie");
        for part in
            ["__Host-drystone-oidc-", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Lax", "; Max-Age=600"]
        {
            assert!(set.contains(part), "{set}");
        }
        let there = get(sent.header("location").expect("the issuer's page"), &[]);
        assert_eq!(there.status, 302, "{}", there.body);
        (there.header("location").expect("the way back").to_owned(), sent.cookie())
    }

    /// It comes back.
    fn comes(&self, from: &str, back: &str, cookie: Option<&str>) -> Answer {
        let headers: Vec<&str> = FROM_ELSEWHERE.into_iter().chain(cookie).collect();
        ask_from(from, "GET", back, &headers, None)
    }

    /// Both, while the issuer tells something.
    fn logs_in(&self, from: &str, tells: Tells) -> Answer {
        self.issuer.tell(tells);
        let (back, cookie) = self.goes(from);
        self.comes(from, &back, Some(&cookie))
    }

    fn refuses(&self, from: &str, tells: Tells, status: u16, word: &str) {
        let refused = self.logs_in(from, tells);
        assert!(
            refused.status == status && refused.body.contains(word),
            "{word}: {} {}",
            refused.status,
            refused.body
        );
        assert!(
            refused.header("content-type").is_some_and(|kind| kind.starts_with("text/html")),
            "{}",
            refused.headers
        );
        assert!(refused.header("set-cookie").is_none(), "{}", refused.headers);
    }
}

fn session_of(answer: &Answer) -> String {
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{}", answer.body);
    let set = answer.header("set-cookie").expect("the session's comes first");
    assert!(
        set.contains("; SameSite=Strict") && set.contains("; HttpOnly") && set.contains("; Secure"),
        "{set}"
    );
    answer.cookie()
}

fn claims(claims: Value) -> Tells {
    Tells { claims, ..Tells::default() }
}

#[test]
fn people_log_in_at_an_issuer_with_the_role_that_their_groups_give() {
    let setting = setting();
    let choices = get(&format!("{}/api/v1/session", setting.console), &[OWN_PAGE]).json();
    assert_eq!(choices, json!({ "has_passwords": false, "issuer": "Example" }));
    let entered = setting.logs_in("127.0.0.1", Tells::default());
    let cookie = session_of(&entered);
    let me = format!("{}/api/v1/me", setting.console);
    let found = get(&me, &[OWN_PAGE, &cookie]).json();
    assert_eq!(
        (&found["name"], &found["role"], &found["session"]["begun_by"]),
        (&json!("ann@example.org"), &json!("operator"), &json!("issuer"))
    );
    let admin = setting.logs_in("127.0.0.1", claims(json!({ "groups": ["storage", "storage-admins"] })));
    assert_eq!(get(&me, &[OWN_PAGE, &session_of(&admin)]).json()["role"], "admin");
    let events = setting.site.ask(&["events", "--kind", "session"]);
    assert!(
        events.contains("operator ann@example.org has logged in") && events.contains("at the issuer"),
        "{events}"
    );
    // What a page of somebody else has the browser ask for begins nothing.
    let begin = format!("{}/api/v1/session/oidc", setting.console);
    for headers in [&[][..], &["sec-fetch-site: cross-site"], &["sec-fetch-site: none"]] {
        assert_eq!(get(&begin, headers).status, 403, "{headers:?}");
    }
    // The issuer takes another key; who is removed here is out, and may log in again while the issuer has them.
    setting.issuer.change_key();
    let cookie = wait_for("the new key is believed", SECONDS, || {
        let entered = setting.logs_in("127.0.0.1", Tells::default());
        (entered.status == 303).then(|| session_of(&entered))
    });
    setting.site.ask(&["person", "remove", "ann@example.org", "--yes"]);
    let refused = get(&me, &[OWN_PAGE, &cookie]);
    assert!(refused.status == 401 && refused.body.contains("was removed"), "{}", refused.body);
    let again = session_of(&setting.logs_in("127.0.0.1", Tells::default()));
    assert_eq!(get(&me, &[OWN_PAGE, &again]).status, 200);
    assert!(!setting.server.messages().contains(SECRET), "the secret is in the log");
    setting.server.stop();
}

#[test]
fn what_an_issuer_must_not_tell_lets_nobody_in() {
    let setting = setting();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    // Each from an address of its own, or they would be slowed.
    setting.refuses("127.0.0.2", claims(json!({ "nonce": "of another log-in" })), 403, "nonce");
    setting.refuses("127.0.0.3", Tells { has_nonce: false, ..Tells::default() }, 403, "nonce");
    setting.refuses("127.0.0.4", claims(json!({ "exp": now - 5 })), 403, "expired");
    setting.refuses("127.0.0.5", claims(json!({ "iat": now - 3600 })), 403, "too long ago");
    setting.refuses("127.0.0.6", claims(json!({ "iat": now + 3600 })), 403, "later than it is now");
    setting.refuses("127.0.0.7", claims(json!({ "aud": "another-client" })), 403, "udience");
    setting.refuses("127.0.0.8", claims(json!({ "aud": [CLIENT, "another-client"] })), 403, "udience");
    setting.refuses("127.0.0.9", claims(json!({ "iss": "https://elsewhere.example" })), 403, "nvalid issuer");
    setting.refuses("127.0.0.10", Tells { is_signed: false, ..Tells::default() }, 403, "ignature");
    setting.refuses("127.0.0.11", Tells { algorithm: "HS256", ..Tells::default() }, 403, "not believed");
    setting.refuses("127.0.0.12", Tells { algorithm: "none", ..Tells::default() }, 403, "not");
    setting.refuses("127.0.0.13", claims(json!({ "groups": ["everybody"] })), 403, "[console.oidc.roles]");
    setting.refuses(
        "127.0.0.14",
        claims(json!({ "groups": null })),
        403,
        "tells no groups of ann@example.org",
    );
    setting.refuses("127.0.0.15", claims(json!({ "preferred_username": "<b>ann</b>" })), 403, "&lt;b&gt;");
    setting.refuses("127.0.0.16", claims(json!({ "preferred_username": null })), 403, "name_claim");
    // The way back is good once, in the browser that went there, and with the state that it went with.
    setting.issuer.tell(Tells::default());
    let (back, cookie) = setting.goes("127.0.0.20");
    let (_, other) = setting.goes("127.0.0.20");
    for (from, back, cookie) in [
        ("127.0.0.20", back.replace("state=", "state=x"), Some(cookie.as_str())),
        ("127.0.0.21", back.split("&state=").next().expect("a code").to_owned(), Some(cookie.as_str())),
    ] {
        let refused = setting.comes(from, &back, cookie);
        assert!(refused.status == 403 && refused.body.contains("another browser"), "{}", refused.body);
    }
    let framed = [FROM_ELSEWHERE[0], FROM_ELSEWHERE[1], "sec-fetch-dest: iframe", &cookie];
    assert_eq!(ask_from("127.0.0.22", "GET", &back, &framed, None).status, 403, "in a frame");
    session_of(&setting.comes("127.0.0.23", &back, Some(&cookie)));
    assert_eq!(setting.comes("127.0.0.23", &back, Some(&cookie)).status, 403, "once");
    for cookie in [None, Some(other.as_str())] {
        let (back, _) = setting.goes("127.0.0.24");
        assert_eq!(setting.comes("127.0.0.24", &back, cookie).status, 403, "{cookie:?}");
    }
    // Two tabs of one browser.
    let begin = format!("{}/api/v1/session/oidc", setting.console);
    let (first, cookie) = setting.goes("127.0.0.25");
    let second = ask_from("127.0.0.25", "GET", &begin, &[OWN_PAGE, &cookie], None);
    assert_eq!(second.cookie(), cookie);
    session_of(&setting.comes("127.0.0.25", &first, Some(&cookie)));
    // The issuer says no, in words that are text here.
    let (back, cookie) = setting.goes("127.0.0.26");
    let (begin, state) = back
        .split_once("?code=")
        .and_then(|(begin, rest)| Some((begin, rest.split_once('&')?.1)))
        .expect("both");
    let no = format!("{begin}?error=access_denied&error_description=%3Cscript%3E&{state}");
    let refused = setting.comes("127.0.0.26", &no, Some(&cookie));
    assert!(
        refused.status == 403 && refused.body.contains("access_denied (&lt;script&gt;)"),
        "{}",
        refused.body
    );
    // Who guesses is slowed here, too.
    let guessed: Vec<u16> = (0..7)
        .map(|number| {
            setting.comes("127.0.0.30", &format!("{begin}?code=x&state={number}"), Some(&cookie)).status
        })
        .collect();
    assert_eq!(guessed, [403, 403, 403, 403, 403, 429, 429]);
    let metrics = setting.site.metrics();
    let denied = "drystone_console_log_ins_total{kind=\"issuer\",outcome=\"denied\"} 4";
    assert!(metrics.contains(denied), "{metrics}");
    setting.server.stop();
}

#[test]
fn an_issuer_that_is_away_keeps_nobody_from_another_way() {
    let mut site = Site::new(&Shape::One { size_mib: 128 });
    let (port, gone) = (free_port(), free_port());
    std::fs::write(site.path("secret"), SECRET).expect("room");
    set_mode(&site.path("secret"), 0o600);
    let listen = format!("[listen]\nconsole = [\"127.0.0.1:{port}\"]\n");
    let config = site.config().replace("[listen]\n", &listen);
    let begin = format!("https://127.0.0.1:{port}/api/v1/session/oidc");
    site.set_config(&config);
    let server = site.start();
    let refused = get(&begin, &[OWN_PAGE]);
    assert!(refused.status == 422 && refused.body.contains("names no issuer"), "{}", refused.body);
    server.stop();
    site.set_config(&format!(
        "{config}[console.oidc]\nissuer = \"http://127.0.0.1:{gone}\"\nclient_id = \"{CLIENT}\"\nclient_secret_file = \"secret\"\n\
         url = \"https://127.0.0.1:{port}\"\nroles = {{ viewer = [\"all\"] }}\n"
    ));
    let server = site.start();
    let refused = get(&begin, &[OWN_PAGE]);
    assert!(refused.status == 503 && refused.body.contains("log in another way"), "{}", refused.body);
    let link = site.cli(&["console"]);
    assert!(link.status.success(), "{}", said(&link));
    server.stop();
}
