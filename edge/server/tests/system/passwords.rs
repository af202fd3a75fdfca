//! People who log in to the console with a password: from outside, with curl as their browser.

use super::cluster::SECONDS;
use super::console::{Answer, JSON, OWN_PAGE, ask, ask_from, get, log_in, opened};
use super::host::{Shape, Site};
use super::members::{expect, three};
use super::tools::{said, wait_for};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PASSWORD: &str = "correct horse battery";

fn body(name: &str, password: &str) -> String {
    json!({ "name": name, "password": password }).to_string()
}

/// A log-in with a name and a password, from an address of this machine.
fn try_from(from: &str, address: &str, body: &str) -> Answer {
    ask_from(from, "POST", &format!("{address}/api/v1/session"), &[OWN_PAGE, JSON], Some(body))
}

/// Where a host's console is. Its link is good for nobody then.
fn console_of(site: &Site) -> String {
    opened(&site.json(&["console"])).0
}

fn seconds_of(answer: &Answer) -> u64 {
    let told = answer.header("retry-after").and_then(|text| text.parse().ok());
    told.unwrap_or_else(|| panic!("when to try again: {}", answer.headers))
}

#[test]
fn people_with_passwords_are_known_to_every_host_and_their_sessions_end_on_every_host() {
    let three = three();
    let [a, b, c] = &three.sites[..] else { panic!("three hosts") };
    let added = a.cli_with(
        &format!("{PASSWORD}\n"),
        &["person", "add", "ann", "--role", "operator", "--password-stdin"],
    );
    expect(&added, 0, "ann may log in to the console as operator");
    let consoles = [a, b, c].map(console_of);
    let enter_everywhere = |password: &str| {
        consoles.clone().map(|console| {
            let entered = wait_for("the host knows of it", SECONDS, || {
                let entered = log_in(&console, &body("ann", password));
                (entered.status == 200).then_some(entered)
            });
            (format!("{console}/api/v1/me"), entered.cookie())
        })
    };
    let is_open = |(me, cookie): &(String, String)| get(me, &[OWN_PAGE, cookie]).status == 200;
    let all_end = |sessions: &[(String, String)], why: &str| {
        for (me, cookie) in sessions {
            let refused = wait_for("the host hears of it", SECONDS, || {
                Some(get(me, &[OWN_PAGE, cookie])).filter(|answer| answer.status != 200)
            });
            assert!(refused.status == 401 && refused.body.contains(why), "{}", refused.body);
        }
    };
    let sessions = enter_everywhere(PASSWORD);
    let me = get(&sessions[1].0, &[OWN_PAGE, &sessions[1].1]).json();
    assert_eq!(
        (&me["kind"], &me["name"], &me["role"], &me["session"]["begun_by"]),
        (&json!("person"), &json!("ann"), &json!("operator"), &json!("password"))
    );
    // She may what an operator may, and nothing else.
    let url = |path: &str| format!("{}/api/v1{path}", consoles[2]);
    let headers = [OWN_PAGE, JSON, &sessions[2].1];
    let made = ask("POST", &url("/disks"), &headers, Some(r#"{"name": "web", "size": 16777216}"#));
    assert_eq!(made.status, 201, "{}", made.body);
    let denied =
        ask("POST", &url("/people"), &headers, Some(r#"{"name": "eve", "role": "admin", "password": "x"}"#));
    assert!(denied.status == 403 && denied.body.contains(" may not "), "{}", denied.body);
    let events = c.ask(&["events"]);
    assert!(events.contains("operator ann (console)") && events.contains("with a password"), "{events}");
    // Another password, another role, the removal: each by another host, and each ends all of them.
    let changed = b.cli_with("another horse battery", &["person", "password", "ann", "--password-stdin"]);
    expect(&changed, 0, "ann has another password");
    all_end(&sessions, "is another one now");
    assert_eq!(log_in(&consoles[2], &body("ann", PASSWORD)).status, 403);
    let sessions = enter_everywhere("another horse battery");
    c.ask(&["person", "set", "ann", "--role", "viewer"]);
    all_end(&sessions, "is another one now");
    let sessions = enter_everywhere("another horse battery");
    let me = get(&sessions[0].0, &[OWN_PAGE, &sessions[0].1]).json();
    assert_eq!(me["role"], "viewer");
    a.ask(&["person", "remove", "ann", "--yes"]);
    all_end(&sessions, "was removed");
    assert_eq!(a.json(&["person", "list"]), json!([]));
    assert_eq!(log_in(&consoles[0], &body("ann", "another horse battery")).status, 403);
    // Who comes back is somebody new: no session of before goes on.
    let again = b.cli_with(PASSWORD, &["person", "add", "ann", "--role", "viewer", "--password-stdin"]);
    expect(&again, 0, "ann may log in to the console as viewer");
    let fresh = enter_everywhere(PASSWORD);
    assert!(fresh.iter().all(is_open) && !sessions.iter().any(is_open));
    for (site, kinds) in [(a, ["person.added", "person.removed"]), (b, ["person.changed", "person.added"])] {
        let events = site.ask(&["--json", "events", "--kind", "person"]);
        assert!(kinds.iter().all(|kind| events.contains(kind)), "{events}");
        assert!(events.contains("somebody on the host"), "by whom: {events}");
    }
    for server in three.servers {
        assert!(!server.messages().contains("horse"), "a password is in the log");
        server.stop();
    }
}

#[test]
fn people_set_another_password_of_their_own_and_their_other_sessions_end() {
    const OTHER: &str = "another horse battery";
    let site = Site::new(&Shape::One { size_mib: 128 });
    let server = site.start();
    expect(
        &site.cli_with(PASSWORD, &["person", "add", "ann", "--role", "viewer", "--password-stdin"]),
        0,
        "as viewer",
    );
    let console = console_of(&site);
    let enter = |password: &str| log_in(&console, &body("ann", password));
    let me = |cookie: &str| get(&format!("{console}/api/v1/me"), &[OWN_PAGE, cookie]);
    let change = |headers: &[&str], former: &str, password: &str| {
        let body = json!({ "former": former, "password": password }).to_string();
        ask("PUT", &format!("{console}/api/v1/me/password"), headers, Some(&body))
    };
    let (own, elsewhere) = (enter(PASSWORD).cookie(), enter(PASSWORD).cookie());
    let headers = [OWN_PAGE, JSON, &own];
    // Nobody without the session, without its page, or without the former password.
    assert_eq!(change(&[OWN_PAGE, JSON], PASSWORD, OTHER).status, 401);
    assert_eq!(change(&["sec-fetch-site: cross-site", JSON, &own], PASSWORD, OTHER).status, 403);
    let wrong = change(&headers, "not her password", OTHER);
    assert!(wrong.status == 403 && wrong.body.contains("password is wrong"), "{}", wrong.body);
    let short = change(&headers, PASSWORD, "elevenchars");
    assert!(short.status == 400 && short.body.contains("12"), "{}", short.body);
    assert_eq!((me(&own).status, me(&elsewhere).status), (200, 200));
    // She stays; what is open elsewhere ends.
    let changed = change(&headers, PASSWORD, OTHER);
    assert_eq!((changed.status, changed.body.as_str()), (204, ""), "{}", changed.headers);
    assert_eq!(me(&changed.cookie()).json()["session"]["begun_by"], "password");
    assert_eq!((me(&own).status, me(&elsewhere).status), (401, 401));
    assert_eq!((enter(PASSWORD).status, enter(OTHER).status), (403, 200));
    let events = site.ask(&["events", "--kind", "person.changed"]);
    assert!(events.contains("viewer ann (console)"), "{events}");
    // Tries with a wrong one are slowed as log-ins are.
    let headers = [OWN_PAGE, JSON, &changed.cookie()];
    let slowed = wait_for("a try is slowed", SECONDS, || {
        Some(change(&headers, "not her password", PASSWORD)).filter(|answer| answer.status == 429)
    });
    assert!(seconds_of(&slowed) > 0);
    // Whoever came with a link has none to change.
    let (address, code) = opened(&site.json(&["console"]));
    let link = try_from("127.0.0.2", &address, &code).cookie();
    let refused = change(&[OWN_PAGE, JSON, &link], OTHER, PASSWORD);
    assert!(
        refused.status == 422 && refused.body.contains("did not begin with a password"),
        "{}",
        refused.body
    );
    assert!(!server.messages().contains("horse"), "a password is in the log");
    server.stop();
}

#[test]
fn a_person_needs_a_name_a_role_and_a_password_that_is_long_enough() {
    let site = Site::new(&Shape::One { size_mib: 128 });
    let server = site.start();
    let add = |name: &str, role: &str, password: &str| {
        site.cli_with(password, &["person", "add", name, "--role", role, "--password-stdin"])
    };
    expect(&add("ann", "operator", "elevenchars"), 2, "12 are needed");
    expect(&add("ann", "operator", &"x".repeat(257)), 2, "256 are possible");
    expect(&add("ann", "operator", ""), 2, "the standard input is empty");
    expect(&add("ann", "root", PASSWORD), 2, "`root` is not a role");
    expect(&add("ann smith", "viewer", PASSWORD), 2, "is not a name");
    expect(&site.cli(&["person", "add", "ann"]), 3, "--password-stdin");
    expect(
        &site.cli_with(PASSWORD, &["person", "password", "ann", "--password-stdin"]),
        4,
        "has no password",
    );
    expect(&site.cli(&["person", "set", "ann", "--role", "admin"]), 4, "person add ann");
    expect(&add("ann", "admin", PASSWORD), 0, "as admin");
    expect(&add("ann", "admin", PASSWORD), 5, "has a password already");
    let listed = site.json(&["person", "list"]);
    assert_eq!(
        (&listed[0]["name"], &listed[0]["proof"], listed[0].get("expires")),
        (&json!("ann"), &json!("password"), None)
    );
    assert!(!listed.to_string().contains("argon2"), "{listed}");
    let table = site.ask(&["person", "list"]);
    assert!(table.contains("ann") && table.contains("password") && table.contains("admin"), "{table}");
    // What is kept of a password is kept over a start, and is no password.
    let console = console_of(&site);
    assert_eq!(log_in(&console, &body("ann", PASSWORD)).status, 200);
    let choices = get(&format!("{console}/api/v1/session"), &[OWN_PAGE]).json();
    assert_eq!(choices, json!({ "has_passwords": true }));
    server.stop();
    for entry in std::fs::read_dir(site.path("d")).expect("the data directory") {
        let path = entry.expect("an entry").path();
        let bytes = if path.is_file() { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
        assert!(!bytes.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes()), "{}", path.display());
    }
    let server = site.start();
    let console = console_of(&site);
    for odd in [
        json!({}),
        json!({ "name": "ann" }),
        json!({ "password": PASSWORD }),
        json!({ "name": "ann", "password": PASSWORD, "code": "x" }),
        json!({ "name": 7, "password": PASSWORD }),
    ] {
        assert_eq!(log_in(&console, &odd.to_string()).status, 400, "{odd}");
    }
    assert_eq!(log_in(&console, &body("ann", PASSWORD)).status, 200);
    // Programs log in nowhere: a password counts for browsers alone.
    let socket = site.path("d/api.sock").display().to_string();
    let answer = super::tools::run(
        "curl",
        &[
            "-sS",
            "--unix-socket",
            &socket,
            "-H",
            JSON,
            "-d",
            &body("ann", PASSWORD),
            "http://localhost/api/v1/session",
        ],
    );
    assert!(answer.contains("a program may not log in"), "{answer}");
    server.stop();
}

#[test]
fn who_guesses_is_slowed_and_learns_neither_a_password_nor_a_name() {
    let site = Site::new(&Shape::One { size_mib: 128 });
    let server = site.start();
    let added = site.cli_with(PASSWORD, &["person", "add", "ann", "--role", "viewer", "--password-stdin"]);
    expect(&added, 0, "as viewer");
    let console = console_of(&site);
    let wrong = |name: &str, number: usize| body(name, &format!("guess number {number:06}"));
    // Five are looked at; the rest is told when to come back, and so is the right one.
    let began = Instant::now();
    let tried: Vec<Answer> =
        (0..20).map(|number| try_from("127.0.0.2", &console, &wrong("ann", number))).collect();
    let statuses: Vec<u16> = tried.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses[..5], [403; 5]);
    assert_eq!(statuses[5..], [429; 15], "after {:?}", began.elapsed());
    let told = tried[0].json();
    assert_eq!(told["error"], "the name or the password is wrong");
    let right = try_from("127.0.0.2", &console, &body("ann", PASSWORD));
    assert_eq!((right.status, &right.json()["code"]), (429, &json!("too_many")), "{}", right.body);
    assert!((1..=12).contains(&seconds_of(&right)), "{}", right.headers);
    assert!(right.body.contains(&format!("try again in {} second", seconds_of(&right))), "{}", right.body);
    // From elsewhere as well, for it is the name that is slowed; and of that address everything is.
    let elsewhere = try_from("127.0.0.3", &console, &body("ann", PASSWORD));
    assert_eq!(elsewhere.status, 429, "{}", elsewhere.body);
    let link = opened(&site.json(&["console"])).1;
    assert_eq!(try_from("127.0.0.2", &console, &link).status, 429, "the code of a link");
    assert_eq!(try_from("127.0.0.4", &console, &link).status, 200, "it was not used up");
    // A name that nobody has is told the same, and as late.
    let unknown: Vec<Answer> =
        (0..20).map(|number| try_from("127.0.0.5", &console, &wrong("eve", number))).collect();
    let of_unknown: Vec<u16> = unknown.iter().map(|answer| answer.status).collect();
    assert_eq!(of_unknown, statuses);
    assert_eq!(unknown[0].json(), told);
    assert_eq!(unknown[0].headers.lines().count(), tried[0].headers.lines().count());
    // Codes of links that are guessed are slowed, too.
    let code = |number: usize| json!({ "code": format!("{number:032x}") }).to_string();
    let guessed: Vec<u16> =
        (0..8).map(|number| try_from("127.0.0.6", &console, &code(number)).status).collect();
    assert_eq!(guessed, [403, 403, 403, 403, 403, 429, 429, 429]);
    // Once the pause is over the right one is let in, and told how many there were.
    let entered = wait_for("the pause of the name is over", SECONDS, || {
        Some(try_from("127.0.0.3", &console, &body("ann", PASSWORD))).filter(|answer| answer.status != 429)
    });
    assert_eq!(entered.status, 200, "{}", entered.body);
    assert!(began.elapsed() >= Duration::from_secs(12), "{:?}", began.elapsed());
    let events = site.ask(&["--json", "events", "--kind", "session"]);
    let text_of = |line: &str| -> String {
        let event: Value = serde_json::from_str(line).expect("one event a line");
        event["text"].as_str().expect("a text").to_owned()
    };
    let texts: Vec<String> = events.lines().map(text_of).collect();
    let folded = texts.iter().filter(|text| text.contains("as ann from 127.0.0.2")).count();
    assert_eq!(folded, 2, "the first of 21, and ten: {texts:?}");
    assert!(
        texts.iter().any(|text| text.contains("with a name that nobody has from 127.0.0.5")),
        "{texts:?}"
    );
    assert!(!texts.iter().any(|text| text.contains("eve") || text.contains("guess")), "{texts:?}");
    let before = texts.iter().find(|text| text.contains("viewer ann has logged in")).expect("her log-in");
    assert!(before.contains("from 127.0.0.3 with a password, after "), "{before}");
    let metrics = site.metrics();
    let metric = |labels: &str| -> u64 {
        let name = format!("drystone_console_log_ins_total{{{labels}}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {metrics}"))
    };
    assert_eq!(metric("kind=\"password\",outcome=\"wrong\""), 10);
    assert_eq!(metric("kind=\"password\",outcome=\"done\""), 1);
    assert_eq!(metric("kind=\"link\",outcome=\"wrong\""), 5);
    assert_eq!(metric("kind=\"link\",outcome=\"done\""), 1);
    assert!(metric("kind=\"password\",outcome=\"slowed\"") >= 32);
    assert!(metrics.contains("drystone_console_sessions 2"), "{metrics}");
    server.stop();
}

/// The shortest of some log-ins with a wrong password; each of an address of its own, so that none is slowed.
fn shortest(console: &str, name: &str, block: u8) -> Duration {
    let tried = (1..=12).map(|number| {
        let (from, began) = (format!("127.0.{block}.{number}"), Instant::now());
        // Each name five times at most.
        let name =
            if name.is_empty() { format!("nobody-{number}") } else { format!("{name}-{}", number % 3) };
        let answer = try_from(&from, console, &body(&name, "a wrong password"));
        let took = began.elapsed();
        assert_eq!(answer.status, 403, "{}", answer.body);
        took
    });
    tried.min().expect("there are some")
}

#[test]
fn the_time_of_a_log_in_does_not_tell_whether_there_is_a_person_of_that_name() {
    let site = Site::new(&Shape::One { size_mib: 128 });
    let server = site.start();
    for number in 0..3 {
        let name = format!("ann-{number}");
        let added = site.cli_with(PASSWORD, &["person", "add", &name, "--password-stdin"]);
        expect(&added, 0, "as viewer");
    }
    let console = console_of(&site);
    let (somebody, nobody) = (shortest(&console, "ann", 7), shortest(&console, "", 8));
    let ratio = somebody.as_secs_f64() / nobody.as_secs_f64();
    assert!((0.5..2.0).contains(&ratio), "{somebody:?} with a name that somebody has, {nobody:?} without");
    server.stop();
}

#[test]
fn the_password_of_a_person_and_the_certificate_of_one_stand_beside_each_other() {
    let three = three();
    let a = &three.sites[0];
    let folder = tempfile::tempdir().expect("a folder");
    super::members::login(a, &folder.path().join("ann"), "ann", "viewer");
    expect(
        &a.cli_with(PASSWORD, &["person", "add", "ann", "--role", "admin", "--password-stdin"]),
        0,
        "as admin",
    );
    let listed = a.json(&["person", "list"]);
    let proofs: Vec<(&Value, &Value)> =
        listed.as_array().expect("people").iter().map(|one| (&one["proof"], &one["role"])).collect();
    assert_eq!(proofs, [(&json!("certificate"), &json!("viewer")), (&json!("password"), &json!("admin"))]);
    a.ask(&["person", "remove", "ann", "--yes"]);
    let whoami = super::members::remote(three.ports[0], &folder.path().join("ann"), &["whoami"]);
    assert!(!whoami.status.success() && said(&whoami).contains("refused"), "{}", said(&whoami));
    assert_eq!(log_in(&console_of(a), &body("ann", PASSWORD)).status, 403);
    three.servers.into_iter().for_each(super::host::Server::stop);
}
