//! The API over a unix socket, as clients see it: statuses, bodies, refusals, the document and the metrics.

use crate::fake;
use crate::limits::BODY_BYTES_MAX;
use api::client::Client;
use http_body_util::Full;
use serde_json::{Value, json};
use tempfile::TempDir;

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
    let text = document.to_string();
    for part in document["components"]["schemas"].as_object().expect("schemas").keys() {
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
