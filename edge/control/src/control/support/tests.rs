//! What leaves a host, and what does not.

use super::*;
use std::path::Path;

const KEY: &str =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIHk1\nbm9ib2R5LWtub3dz\n-----END PRIVATE KEY-----\n";

fn config(folder: &Path) -> Config {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("room");
        std::fs::write(path, text).expect("room");
    };
    write("tls-key.pem", KEY);
    write("d/identity/key.pem", &KEY.replace("bm9ib2R5LWtub3dz", "YW5vdGhlci1ob3N0"));
    write("password", "correct horse\n");
    let text = "name = \"a\"\ndata_dir = \"d\"\n[tls]\ncertificate = \"cert.pem\"\nkey = \"tls-key.pem\"\n[cluster]\n\
                directory = \"etcd\"\npeers = \"127.0.0.1:7400\"\n[cluster.etcd]\nendpoints = [\"http://127.0.0.1:2379\"]\n\
                user = \"drystone\"\npassword_file = \"password\"\n[[group]]\nlog = \"/dev/log\"\n";
    Config::parse(text, folder, false).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn the_configuration_is_told_without_its_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    let text = settings_of(&config).to_string();
    assert!(text.contains("tls-key.pem") && text.contains("http://127.0.0.1:2379"), "{text}");
    assert!(text.contains("\"user\":\"drystone\""), "{text}");
    for secret in ["correct horse", "MC4CAQ", "bm9ib2R5"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn what_the_host_knows_to_be_secret_leaves_in_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut all = Collection {
        redactor: Redactor::of(&config(folder.path())),
        files: Vec::new(),
        bytes: 0,
        left_out: Vec::new(),
    };
    all.text("log.txt", "etcd refused correct horse\nbm9ib2R5LWtub3dz and YW5vdGhlci1ob3N0\n");
    all.json("a.json", &json!({ "reason": "correct horse", "key": KEY }));
    assert_eq!(all.files[0].text, "etcd refused [removed]\n[removed] and [removed]\n");
    for file in &all.files {
        for secret in ["correct horse", "MC4CAQ", "bm9ib2R5", "YW5vdGhl"] {
            assert!(!file.text.contains(secret), "{}", file.text);
        }
    }
}

#[test]
fn a_bundle_is_bounded_and_names_what_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut all = Collection {
        redactor: Redactor::of(&config(folder.path())),
        files: Vec::new(),
        bytes: 0,
        left_out: Vec::new(),
    };
    let long = format!("first\n{}\nlast", "x".repeat(SUPPORT_FILE_BYTES_MAX));
    all.text("long.txt", &long);
    assert!(all.files[0].text.ends_with("last") && all.files[0].text.len() == SUPPORT_FILE_BYTES_MAX);
    assert_eq!(all.left_out.len(), 1);
    for number in 0..SUPPORT_BYTES_MAX / SUPPORT_FILE_BYTES_MAX {
        all.text(&format!("{number}.txt"), &long);
    }
    assert!(all.files.iter().map(|file| file.text.len()).sum::<usize>() <= SUPPORT_BYTES_MAX);
    assert!(all.left_out.iter().any(|what| what.contains("there is more than")), "{:?}", all.left_out);
}
