//! The API over a unix socket, as clients see it: statuses, bodies, refusals, the document and the metrics.

use crate::fake;
use crate::limits::BODY_BYTES_MAX;
use api::client::Client;
use http_body_util::Full;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// An API on a fake engine; the folder lives as long as it.
async fn api() -> (Client, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let client = fake::api(folder.path()).await;
    (client, folder)
}

async fn ask(client: &Client, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let headers = [("host", "localhost"), ("content-type", "application/json")];
    send(client, method, path, &headers, body.map_or_else(String::new, |body| body.to_string())).await
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> (u16, Value) {
    let mut request = hyper::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into())).expect("a request");
    let (status, bytes) = client.send(request).await.expect("an answer");
    let text = String::from_utf8(bytes).expect("text");
    (status.as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test(flavor = "multi_thread")]
async fn disks_are_made_changed_and_deleted_with_the_right_statuses() {
    let (client, _folder) = api().await;
    let (status, made) =
        ask(&client, "POST", "/api/v1/disks", Some(json!({"name": "a", "size": 1 << 30}))).await;
    assert_eq!((status, &made["name"], &made["policy"]), (201, &json!("a"), &json!("single")));
    let again = json!({"name": "a", "size": 512});
    assert_eq!(ask(&client, "POST", "/api/v1/disks", Some(again)).await.0, 409);
    let (status, list) = ask(&client, "GET", "/api/v1/disks", None).await;
    assert_eq!((status, list.as_array().map(Vec::len)), (200, Some(1)));
    let rename = json!({"name": "b"});
    assert_eq!(ask(&client, "PATCH", "/api/v1/disks/a", Some(rename)).await.1["name"], "b");
    let by_id = format!("/api/v1/disks/{}", made["id"].as_str().expect("an id"));
    assert_eq!(ask(&client, "GET", &by_id, None).await.1["name"], "b");
    let (status, refused) = ask(&client, "DELETE", "/api/v1/disks/b", None).await;
    assert_eq!(
        (status, &refused["code"], &refused["hint"]),
        (422, &json!("refused"), &json!("add `--confirm b`"))
    );
    assert_eq!(ask(&client, "DELETE", "/api/v1/disks/b?confirm=b", None).await.0, 204);
    assert_eq!(ask(&client, "GET", "/api/v1/disks/b", None).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_make_no_sense_are_told_what_is_wrong() {
    let (client, _folder) = api().await;
    for (method, path, body, status, error) in [
        ("POST", "/api/v1/disks", json!({"name": "a", "size": 1, "colour": 1}), 400, "colour"),
        ("POST", "/api/v1/disks", json!({"name": "a"}), 400, "size"),
        ("POST", "/api/v1/disks", json!({"name": "a", "size": 513}), 400, "513"),
        ("POST", "/api/v1/disks", json!({"name": "a b", "size": 512}), 400, "`a b` is not a name"),
        ("POST", "/api/v1/disks", json!({"name": "a", "size": 512, "policy": "x=1"}), 400, "`x`"),
        ("POST", "/api/v1/disks", json!({"name": "a", "size": 512, "policy": "gold"}), 404, "`gold`"),
        (
            "POST",
            "/api/v1/disks",
            json!({"name": "a", "size": 512, "policy": "default"}),
            422,
            "failures_to_tolerate",
        ),
        ("PATCH", "/api/v1/disks/none", json!({}), 404, "`none`"),
        ("GET", "/api/v1/disks/none/histograms?since=x", json!(null), 400, "since"),
        ("GET", "/api/v1/nothing", json!(null), 404, "/api/v1/nothing"),
        ("PUT", "/api/v1/disks", json!({}), 400, "method"),
        ("DELETE", "/api/v1/policies/single", json!(null), 422, "built-in"),
    ] {
        let (found, answer) = ask(&client, method, path, Some(body.clone())).await;
        let text = answer["error"].as_str().unwrap_or_default().to_owned();
        assert_eq!(found, status, "{method} {path} {body}: {answer}");
        assert!(text.contains(error), "{method} {path} {body}: {text}");
    }
    let long = "x".repeat(BODY_BYTES_MAX);
    let body = json!({"name": long, "size": 512});
    assert_eq!(ask(&client, "POST", "/api/v1/disks", Some(body)).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_page_can_neither_ask_nor_send_a_form() {
    let (client, _folder) = api().await;
    let form = [("host", "localhost"), ("content-type", "text/plain")];
    let body = json!({"name": "a", "size": 512}).to_string();
    let (status, answer) = send(&client, "POST", "/api/v1/disks", &form, body).await;
    assert_eq!(status, 400, "{answer}");
    for (host, status) in [
        ("evil.example", 400),
        ("evil.example:80", 400),
        ("localhost:80", 200),
        ("127.0.0.1:80", 200),
        ("[::1]:80", 200),
    ] {
        let found = send(&client, "GET", "/api/v1/host", &[("host", host)], String::new()).await.0;
        assert_eq!(found, status, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_names_every_path_and_type() {
    let (client, _folder) = api().await;
    let (status, document) = ask(&client, "GET", "/api/v1/openapi.json", None).await;
    assert_eq!(status, 200);
    let paths: Vec<&String> = document["paths"].as_object().expect("paths").keys().collect();
    assert_eq!(
        paths,
        super::document().paths.paths.keys().collect::<Vec<_>>(),
        "as the table of routes has them"
    );
    for path in paths {
        assert!(path.starts_with("/api/v1/"), "{path}");
    }
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let of = |operation: &Value| operation["parameters"].as_array().cloned().unwrap_or_default();
        for parameter in operations.as_object().expect("operations").values().flat_map(of) {
            let name = parameter["name"].as_str().expect("a name");
            let is_in_path = path.contains(&format!("{{{name}}}"));
            assert_eq!(parameter["in"], if is_in_path { "path" } else { "query" }, "{name} of {path}");
        }
    }
    let text = document.to_string();
    // Events of the stream: the document says that it is text.
    let in_events = ["Changed", "StreamFigures"];
    let schemas = document["components"]["schemas"].as_object().expect("schemas").keys();
    for part in schemas.filter(|part| !in_events.contains(&part.as_str())) {
        assert!(text.contains(&format!("#/components/schemas/{part}")), "{part} is used");
    }
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().expect("a name");
        assert!(document["components"]["schemas"][name].is_object(), "{name} is described");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_can_be_scraped() {
    let (client, _folder) = api().await;
    ask(&client, "POST", "/api/v1/disks", Some(json!({"name": "a", "size": 1 << 30}))).await;
    let (status, text) = ask(&client, "GET", "/metrics", None).await;
    let text = text.as_str().expect("text");
    assert_eq!(status, 200);
    for line in [
        "drystone_disks 1.0",
        "drystone_disk_size_bytes{disk=\"a\"} 1073741824.0",
        "drystone_disk_ios_total{disk=\"a\",operation=\"writes\"} 1",
        "drystone_disk_bytes_total{disk=\"a\",operation=\"writes\"} 4096",
        "drystone_disk_latency_seconds_bucket{le=\"0.0001\",disk=\"a\",operation=\"writes\"} 1",
        "drystone_disk_latency_seconds_bucket{le=\"+Inf\",disk=\"a\",operation=\"writes\"} 1",
        "# TYPE drystone_disk_latency_seconds histogram",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

/// Whoever asks for devices learns which of them are encrypted at rest, and the document says so.
#[tokio::test(flavor = "multi_thread")]
async fn devices_tell_of_their_encryption() {
    let (client, _folder) = api().await;
    let body = json!({"log": "/dev/mapper/store1", "capacity": ["/dev/sdb"]});
    let (status, added) = ask(&client, "POST", "/api/v1/devices", Some(body)).await;
    assert_eq!(status, 201, "{added}");
    let (status, devices) = ask(&client, "GET", "/api/v1/devices", None).await;
    assert_eq!(status, 200);
    let of = |path: &str| {
        let devices = devices.as_array().expect("devices");
        devices.iter().find(|one| one["path"] == path).expect("it was added")["encryption"].clone()
    };
    assert_eq!((of("/dev/mapper/store1"), of("/dev/sdb")), (json!("luks2"), json!("none")));
    let (_, text) = ask(&client, "GET", "/metrics", None).await;
    let text = text.as_str().expect("text");
    for (device, value) in [("/dev/mapper/store1", "1.0"), ("/dev/sdb", "0.0")] {
        let start = format!("drystone_device_encrypted{{device=\"{device}\"");
        let found = text.lines().find(|line| line.starts_with(&start));
        assert!(found.is_some_and(|line| line.ends_with(value)), "{start} is not {value} in\n{text}");
    }
    let (_, document) = ask(&client, "GET", "/api/v1/openapi.json", None).await;
    let words = document["components"]["schemas"]["EncryptionWord"].to_string();
    assert!(words.contains("\"luks2\""), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn histograms_and_top_have_figures() {
    let (client, _folder) = api().await;
    ask(&client, "POST", "/api/v1/disks", Some(json!({"name": "a", "size": 1 << 30}))).await;
    let (status, all) = ask(&client, "GET", "/api/v1/disks/a/histograms", None).await;
    assert_eq!((status, all["histograms"].as_array().map(Vec::len)), (200, Some(16)));
    assert_eq!((&all["write"]["count"], &all["read"]["count"]), (&json!(1), &json!(0)));
    let (status, recent) = ask(&client, "GET", "/api/v1/disks/a/histograms?since=60", None).await;
    assert_eq!((status, &recent["write"]["count"]), (200, &json!(0)));
    let (status, top) = ask(&client, "GET", "/api/v1/top", None).await;
    assert_eq!((status, &top["disks"][0]["disk"]), (200, &json!("a")));
}

/// The head and the body of an answer, as they come over the socket.
async fn raw(folder: &TempDir, path: &str, headers: &str) -> (String, String) {
    let mut stream =
        tokio::net::UnixStream::connect(folder.path().join("api.sock")).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("it takes the request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

/// What a header of an answer says.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_has_already_is_not_sent_again() {
    let (client, folder) = api().await;
    ask(&client, "POST", "/api/v1/disks", Some(json!({"name": "a", "size": 1 << 30}))).await;
    let (head, body) = raw(&folder, "/api/v1/policies", "").await;
    let tag = header(&head, "etag").expect("a tag").to_owned();
    assert!(head.starts_with("HTTP/1.1 200") && body.starts_with('['), "{head}");
    let (head, body) = raw(&folder, "/api/v1/policies", &format!("if-none-match: {tag}\r\n")).await;
    assert!(head.starts_with("HTTP/1.1 304") && body.is_empty(), "{head}\n{body}");
    assert_eq!(header(&head, "etag"), Some(tag.as_str()));
    ask(&client, "POST", "/api/v1/policies", Some(json!({"name": "gold", "rules": "single,stripes=2"})))
        .await;
    let (head, body) = raw(&folder, "/api/v1/policies", &format!("if-none-match: {tag}\r\n")).await;
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("gold"), "{head}");
    // Neither figures for monitoring nor refusals have one.
    for path in ["/metrics", "/api/v1/disks/none"] {
        assert_eq!(header(&raw(&folder, path, "").await.0, "etag"), None, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn disks_are_listed_page_by_page_and_by_what_is_asked_for() {
    let (client, folder) = api().await;
    for (name, policy) in
        [("db-1", "single"), ("db-2", "single,iops_limit=500"), ("web-1", "single"), ("web-2", "single")]
    {
        let body = json!({"name": name, "size": 1 << 30, "policy": policy});
        assert_eq!(ask(&client, "POST", "/api/v1/disks", Some(body)).await.0, 201, "{name}");
    }
    let (mut path, mut pages) = ("/api/v1/disks?limit=2&policy=single".to_owned(), Vec::new());
    loop {
        let (head, body) = raw(&folder, &path, "").await;
        let disks: Vec<Value> = serde_json::from_str(&body).expect("disks");
        pages.push(
            disks.iter().map(|disk| disk["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>(),
        );
        match header(&head, "link").and_then(|link| link.strip_prefix('<')?.strip_suffix(">; rel=\"next\"")) {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(pages, [vec!["db-1", "web-1"], vec!["web-2"]]);
    for (query, names) in [
        ("name=b-1", vec!["db-1", "web-1"]),
        ("policy=single,iops_limit=500", vec!["db-2"]),
        ("trouble=true", vec![]),
        ("after=web-1", vec!["web-2"]),
        ("limit=4", vec!["db-1", "db-2", "web-1", "web-2"]),
    ] {
        let (status, found) = ask(&client, "GET", &format!("/api/v1/disks?{query}"), None).await;
        let found: Vec<&str> =
            found.as_array().expect("disks").iter().filter_map(|disk| disk["name"].as_str()).collect();
        assert_eq!((status, found), (200, names), "{query}");
    }
    for query in ["limit=0", "limit=x", "colour=red"] {
        assert_eq!(ask(&client, "GET", &format!("/api/v1/disks?{query}"), None).await.0, 400, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_is_planned_before_it_is_created_and_created_once() {
    let (client, _folder) = api().await;
    let body = json!({"name": "a", "size": 1u64 << 30, "policy": "single,stripes=1"});
    let with = |more: Value| {
        let mut body = body.clone();
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        Some(body)
    };
    let (status, plan) = ask(&client, "POST", "/api/v1/disks", with(json!({"dry_run": true}))).await;
    assert_eq!((status, &plan["disk"]["full_bytes"]), (200, &json!(1u64 << 30)), "{plan}");
    assert_eq!(plan["disk"]["components"].as_array().map(Vec::len), Some(1));
    assert_eq!(ask(&client, "GET", "/api/v1/disks", None).await.1, json!([]), "nothing is made");
    let again = || with(json!({"unless_there": true}));
    let (status, made) = ask(&client, "POST", "/api/v1/disks", again()).await;
    assert_eq!((status, &made["name"]), (201, &json!("a")));
    let (status, found) = ask(&client, "POST", "/api/v1/disks", again()).await;
    assert_eq!((status, &found["id"]), (200, &made["id"]), "it is there");
    for (more, told) in [
        (json!({"size": 1u64 << 31}), "1 GiB"),
        (json!({"policy": "single,stripes=2"}), "stripes=1"),
        (json!({"read_only": true}), "write"),
        (json!({"share": true}), "one host"),
    ] {
        let mut body = again().expect("a body");
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let (status, refused) = ask(&client, "POST", "/api/v1/disks", Some(body)).await;
        let text = refused["error"].as_str().unwrap_or_default();
        assert!(status == 409 && text.contains("another disk `a`") && text.contains(told), "{status} {text}");
    }
    assert_eq!(ask(&client, "POST", "/api/v1/disks", Some(body.clone())).await.0, 409, "as ever");
    assert_eq!(ask(&client, "POST", "/api/v1/disks", with(json!({"dry_run": true}))).await.0, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_explained_whether_a_disk_can_have_it_or_not() {
    let (client, _folder) = api().await;
    let explain = async |body: Value| ask(&client, "POST", "/api/v1/policies/explain", Some(body)).await;
    let (status, told) = explain(json!({})).await;
    let capacity = &told["capacity"];
    assert_eq!((status, &told["short"], &capacity["cost"]), (200, &json!("single"), &json!(1.0)), "{told}");
    assert!(
        capacity["largest_bytes"].as_u64() > Some(0) && told["refusal"].is_null() && told["disk"].is_null()
    );
    let (status, told) = explain(json!({"policy": "default", "size": 1u64 << 40})).await;
    assert_eq!((status, &told["capacity"], &told["disk"]), (200, &Value::Null, &Value::Null), "one group");
    assert_eq!((&told["domains"], &told["domains_needed"]), (&json!(1), &json!(2)));
    assert!(told["refusal"]["nearest"].as_str().is_some_and(|near| near.contains("single")), "{told}");
    let full = json!({"policy": "single,space_reservation=100", "size": 1u64 << 50});
    let told = explain(full).await.1;
    assert!(
        told["capacity"].is_object() && told["refusal"].is_object(),
        "the policy can be had, not the disk: {told}"
    );
    assert_eq!(explain(json!({"policy": "colour=red"})).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_on_the_host_learns_that_they_may_do_all() {
    let (client, _folder) = api().await;
    let (status, me) = ask(&client, "GET", "/api/v1/me", None).await;
    assert_eq!((status, &me["kind"], &me["name"]), (200, &json!("local"), &Value::Null));
    assert_eq!(me["rights"].as_array().map(Vec::len), Some(trust::RIGHTS.len()), "{me}");
}
