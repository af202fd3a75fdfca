//! The dashboard and the alerts of `packaging/` against what hosts really tell: no name in them that no host prints.
//!
//! Relies on `promtool` where it is there; CI has it, and fails without it.

use super::cluster::{Cluster, SECONDS};
use super::tools::{command, output, run, said, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn packaging(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(packaging(path)).unwrap_or_else(|error| panic!("read {path}: {error}"))
}

fn dashboard() -> Value {
    serde_json::from_str(&read("grafana/drystone.json")).expect("the dashboard is JSON")
}

/// Every expression of the dashboard, those of its variables too.
fn expressions(dashboard: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let panels = list(&dashboard["panels"]);
    let targets = panels.iter().flat_map(|panel| list(&panel["targets"]));
    let mut found: Vec<String> =
        targets.map(|target| target["expr"].as_str().expect("an expression").to_owned()).collect();
    let variables = list(&dashboard["templating"]["list"]);
    let queries = variables.iter().filter_map(|variable| variable["query"]["query"].as_str());
    found.extend(queries.map(str::to_owned));
    found
}

/// The names of metrics that begin as ours do; what a rule records has colons in it and is not one of them.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)));
    words.filter(|word| word.starts_with("drystone_")).map(str::to_owned).collect()
}

/// What only hosts with certificates tell; `members` has them.
pub const WITH_CERTIFICATES: [&str; 2] =
    ["drystone_certificate_expires_timestamp_seconds", "drystone_authority_expires_timestamp_seconds"];

/// The expressions in the rules: lines after `expr:` that are indented deeper than it.
fn rule_expressions(rules: &str) -> String {
    let mut found = String::new();
    let mut indent = None;
    for line in rules.lines() {
        let here = line.len() - line.trim_start().len();
        if let Some(expression) = line.trim_start().strip_prefix("expr:") {
            indent = Some(here);
            found = format!("{found}\n{expression}");
        } else if indent.is_some_and(|indent| here > indent) {
            found = format!("{found}\n{line}");
        } else {
            indent = None;
        }
    }
    found
}

/// All names of samples that a host prints.
fn scraped(cluster: &Cluster, host: &str) -> BTreeSet<String> {
    let socket = cluster.path(host).join("d/api.sock");
    let answer = run("curl", &["-sS", "--unix-socket", text(&socket), "http://localhost/metrics"]);
    let samples = answer.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

#[test]
fn every_metric_of_dashboard_and_alerts_is_one_that_hosts_print() {
    let cluster = Cluster::start(3);
    cluster.mirrored("disk1", "64MiB");
    // Whoever attaches makes an owner, which tells of the disk's components.
    let client = cluster.attach("a", "disk1");
    let asked =
        expressions(&dashboard()).join("\n") + &rule_expressions(&read("prometheus/drystone.rules.yml"));
    let asked = names(&asked);
    assert!(asked.len() > 30, "the names were not found: {asked:?}");
    // Some are told once a host has looked at the cluster, or an owner at its copies.
    let deadline = Instant::now() + Duration::from_secs(SECONDS);
    loop {
        let printed: BTreeSet<String> =
            ["a", "b", "c"].iter().flat_map(|host| scraped(&cluster, host)).collect();
        let unknown = asked.difference(&printed).filter(|name| !WITH_CERTIFICATES.contains(&name.as_str()));
        let unknown: Vec<&String> = unknown.collect();
        if unknown.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "{unknown:?} are not among {printed:#?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(client);
}

#[test]
fn panels_have_an_id_of_their_own_a_unit_and_a_description() {
    let dashboard = dashboard();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}: its id is another's");
        if panel["type"] == "row" {
            continue;
        }
        let description = panel["description"].as_str().unwrap_or_default();
        assert!(description.ends_with('.'), "{title}: its description is no sentence: {description}");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title}: it has no unit");
        assert!(
            panel["targets"].as_array().is_some_and(|targets| !targets.is_empty()),
            "{title}: it shows nothing"
        );
        let place = &panel["gridPos"];
        let right = place["x"].as_u64().expect("x") + place["w"].as_u64().expect("w");
        assert!(right <= 24, "{title}: it is wider than the dashboard");
    }
}

#[test]
fn alerts_say_how_bad_it_is_and_what_to_do() {
    let rules = read("prometheus/drystone.rules.yml");
    let tests = read("prometheus/drystone.tests.yml");
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 20, "{}", alerts.len());
    for alert in alerts {
        let name = alert.lines().next().expect("a name").trim();
        for part in ["severity: ", "summary: ", "description: ", "remedy: "] {
            assert!(alert.contains(part), "{name} has no {part}");
        }
        let is_known =
            ["critical", "warning", "info"].iter().any(|level| alert.contains(&format!("severity: {level}")));
        assert!(is_known, "{name} has a severity of its own");
        assert!(tests.contains(&format!("- name: {name}\n")), "{name} has no unit test");
    }
}

/// `promtool check metrics` complained thirteen times: it knows counters by the names of their samples, and found no help for them.
#[test]
fn prometheus_own_linter_is_silent_about_what_hosts_print() {
    let is_there = std::process::Command::new("promtool").arg("--version").output().is_ok();
    if !is_there {
        assert!(std::env::var("CI").is_err(), "promtool is missing (Debian package prometheus)");
        println!("promtool is not there (Debian package prometheus): it did not read the metrics");
        return;
    }
    let cluster = Cluster::start(3);
    cluster.mirrored("disk1", "64MiB");
    let mut client = cluster.attach("a", "disk1");
    client.write(0, &[1; 4096]).expect("it writes");
    let socket = cluster.path("a").join("d/api.sock");
    let scrape = |accept: &str| {
        let header = format!("accept: {accept}");
        let url = "http://localhost/metrics";
        run("curl", &["-sS", "-i", "-H", &header, "--unix-socket", text(&socket), url])
    };
    let plain = scrape("*/*");
    let (head, body) = plain.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics");
    std::fs::write(&path, body).expect("room for a file");
    let stdin = std::fs::File::open(&path).expect("it is there");
    let linted = output(command("promtool").args(["check", "metrics"]).stdin(stdin));
    assert!(linted.status.success() && said(&linted).is_empty(), "{}", said(&linted));
    // Prometheus asks for OpenMetrics, and gets it: the same samples.
    let open = scrape("application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
    assert!(open.contains("application/openmetrics-text") && open.trim_end().ends_with("# EOF"), "{open}");
    let samples = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().filter(|line| line.starts_with("drystone_"));
        lines.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(samples(&plain), samples(&open));
}

/// Prometheus' own reader: of the rules, of their tests, and of every expression of the dashboard.
#[test]
fn prometheus_takes_the_rules_and_the_expressions() {
    let is_there = std::process::Command::new("promtool").arg("--version").output().is_ok();
    if !is_there {
        assert!(std::env::var("CI").is_err(), "promtool is missing (Debian package prometheus)");
        println!(
            "promtool is not there (Debian package prometheus): neither rules nor dashboard were read by it"
        );
        return;
    }
    let check = |arguments: &[&str], path: &Path| {
        let done = output(command("promtool").args(arguments).arg(path));
        assert!(done.status.success(), "{arguments:?} {}: {}", path.display(), said(&done));
    };
    check(&["check", "rules"], &packaging("prometheus/drystone.rules.yml"));
    check(&["test", "rules"], &packaging("prometheus/drystone.tests.yml"));

    let expressions = expressions(&dashboard()).into_iter().filter(|one| !one.starts_with("label_values("));
    let rules = expressions.enumerate().map(|(index, expression)| {
        let plain = expression.replace("$__rate_interval", "5m").replace('$', "");
        json!({"record": format!("panel:{index}"), "expr": plain})
    });
    // What is JSON is YAML.
    let rules = json!({"groups": [{"name": "dashboard", "rules": rules.collect::<Vec<_>>()}]});
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dashboard.yml");
    std::fs::write(&path, rules.to_string()).expect("room for a file");
    check(&["check", "rules"], &path);
}
