//! The command line against a host with an engine in memory.

use super::Drystone;
use api::Client;
use clap::Parser;
use cli::{Cli, Program, Shell, dispatch};
use control::fake;
use failure::{Code, Failure};
use tempfile::TempDir;

/// What a command prints, and its folder.
async fn said(client: &Client, line: &str) -> Result<String, Failure> {
    let words = std::iter::once("drystone").chain(line.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|error| Failure::usage(error.to_string()))?;
    let mut out = Vec::new();
    let mut shell =
        Shell { client: client.clone(), identity: None, json: cli.json, out: &mut out, interactive: false };
    dispatch(&mut shell, cli.command).await?;
    Ok(String::from_utf8(out).expect("text"))
}

async fn host() -> (Client, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let client = fake::api(folder.path()).await;
    (client, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_answers_as_text_and_as_json() {
    let (client, _folder) = host().await;
    for (line, expected) in [
        ("disk create a 10GiB --policy single,iops_limit=100", "single,iops_limit=100"),
        ("disk list", "10 GiB"),
        ("disk show a", "one component of 10 GiB"),
        ("disk resize a 20GiB", "a was 10 GiB and is 20 GiB"),
        ("disk rename a b", "renamed a to b"),
        ("disk set b read-only on", "b may only be read"),
        ("disk set b read-only off", "b may be read and written"),
        ("disk histogram b", "latency of IOs"),
        ("disk histogram b --since 5m --kind latency", "the last 5m 0s"),
        ("policy list", "built in"),
        ("policy create gold default stripes=3", "stripes"),
        ("policy show gold", "devices that each replica is spread over"),
        ("policy delete gold", "deleted the policy gold"),
        ("status", "all disks can be used"),
        ("device list", "/dev/log"),
        ("device add /dev/x", "log+capacity"),
        ("device remove /dev/x --group", "removed /dev/x"),
        ("top --once", "1 disk,"),
        ("health", "all is well"),
        (
            "health silence space.low --about /dev/log --for 2d --reason known",
            "space.low about /dev/log is silenced to",
        ),
        ("health silences", "/dev/log"),
        ("health unsilence space.low --about /dev/log", "silenced no more"),
        ("health silences", "nothing is silenced"),
        ("resync", "nothing waits to be"),
        ("what-if set-policy b single", "1 disk can have single"),
        ("what-if set-policy --all default", "1 disk cannot have default"),
        ("events --kind disk --about b", "clients may only read ("),
        ("disk resize b 1GiB --confirm b", "is 1 GiB"),
        ("disk delete b --confirm b", "deleted b"),
    ] {
        let text = said(&client, line).await.expect(line);
        assert!(text.contains(expected), "{line} said\n{text}");
        let changes =
            ["create", "resize", "rename", "set b", "delete", "add", "remove", "silence ", "events"];
        if !changes.iter().any(|change| line.contains(change)) {
            let text = said(&client, &format!("--json {line}")).await.expect(line);
            serde_json::from_str::<serde_json::Value>(&text).expect(&text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_says_so_with_its_code() {
    let (client, folder) = host().await;
    said(&client, "disk create a 1GiB").await.expect("made");
    for (line, code, expected) in [
        ("disk create a 1GiB", Code::Conflict, "already"),
        ("disk create b 1000", Code::Usage, "1000 bytes"),
        ("disk create b lots", Code::Usage, "`lots` is not a size"),
        ("disk create b 1G --policy default", Code::Refused, "needs 2 disk groups"),
        ("disk show x", Code::NotFound, "`x`"),
        ("disk show a/b", Code::NotFound, "`a/b`"),
        ("disk delete a", Code::Refused, "confirmed"),
        ("disk delete a --confirm b", Code::Refused, "`b` is not the name"),
        ("disk resize a 512M", Code::Refused, "confirmed"),
        ("disk resize a 70TiB", Code::Usage, "64 TiB"),
        ("disk histogram a --since 2h", Code::Usage, "7200 seconds are not kept"),
        ("disk histogram a --kind colour", Code::Usage, "`colour`"),
        ("disk histogram a --since soon", Code::Usage, "`soon` is not a time"),
        ("disk import b /no/such/file", Code::NotFound, "/no/such/file"),
        ("device add /dev/x /dev/y", Code::Usage, "--log"),
        ("device remove /dev/x", Code::NotFound, "/dev/x"),
        ("disk list --api", Code::Usage, "--api"),
    ] {
        let failure = said(&client, line).await.expect_err(line);
        assert!(failure.error.contains(expected), "{line} said {failure}");
        assert_eq!(failure.code, code, "{line}");
    }
    let nobody = Client::Unix(folder.path().join("nobody.sock"));
    assert_eq!(said(&nobody, "status").await.expect_err("nobody").code, Code::Unreachable);
}

#[test]
fn the_document_tells_of_the_api() {
    let document = Drystone.document();
    assert!(document["paths"]["/api/v1/disks/{name}"]["patch"].is_object(), "{document}");
}
