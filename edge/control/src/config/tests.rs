//! What a configuration file may say, and how a wrong one is refused.

use super::*;

fn parse(text: &str) -> Result<Config, Failure> {
    Config::parse(text, Path::new("/etc/drystone"), false)
}

const LEAST: &str = "data_dir = \"/d\"\n[[group]]\nlog = \"/dev/sdb\"\n";

#[test]
fn the_least_file_has_defaults_for_the_rest() {
    let config = parse(LEAST).expect("a configuration");
    assert_eq!(
        config.nbd,
        [
            Listen::Tcp("127.0.0.1:10809".parse().expect("an address")),
            Listen::Unix(PathBuf::from("/d/nbd.sock"))
        ]
    );
    assert_eq!(config.http, [Listen::Unix(PathBuf::from("/d/api.sock"))]);
    assert_eq!((config.buffer_bytes, config.table_bytes), (512 * MIB, 1024 * MIB));
    assert_eq!(config.groups[0].create, Create::Never);
    assert_eq!(config.groups[0].log, PathBuf::from("/dev/sdb"));
}

#[test]
fn everything_can_be_said_and_paths_count_from_the_file() {
    let config = parse(
        r#"
        name = "h1"
        data_dir = "data"
        [listen]
        nbd = ["[::1]:10810", "unix:/run/n.sock"]
        http = ["127.0.0.1:8000", "unix:a.sock"]
        [tls]
        certificate = "c.pem"
        key = "k.pem"
        client_authorities = "ca.pem"
        required = true
        [memory]
        buffers = "1GiB"
        tables = 67108864
        [scrub]
        pace = "0"
        [[group]]
        log = "log.img"
        capacity = ["a.img", "/dev/sdc"]
        log_size = "1G"
        file_size = "8G"
        create = "if-blank"
        "#,
    )
    .expect("a configuration");
    assert_eq!(config.data_dir, PathBuf::from("/etc/drystone/data"));
    assert_eq!(config.http[1], Listen::Unix(PathBuf::from("/etc/drystone/data/a.sock")));
    let tls = config.tls.as_ref().expect("tls");
    assert_eq!(tls.client_authorities, Some(PathBuf::from("/etc/drystone/ca.pem")));
    let group = &config.groups[0];
    assert_eq!(group.capacity, [PathBuf::from("/etc/drystone/a.img"), PathBuf::from("/dev/sdc")]);
    assert_eq!((group.log_size, group.file_size), (Some(1 << 30), Some(8 << 30)));
    assert_eq!(group.create, Create::IfBlank);
    assert_eq!(config.scrub_bytes_per_second, 0);
    let forced = Config::parse(LEAST, Path::new("/"), true).expect("a configuration");
    assert_eq!(forced.groups[0].create, Create::Force);
}

#[test]
fn what_makes_no_sense_is_refused_with_key_and_line() {
    let long = "x".repeat(120);
    for (text, expected) in [
        ("data_dir = \"/d\"\ncolour = 1\n".to_owned(), vec!["line 2", "colour"]),
        (format!("{LEAST}sise = \"1G\"\n"), vec!["line 4", "sise"]),
        (format!("{LEAST}log_size = \"1 elephant\"\n"), vec!["line 4", "1 elephant", "10GiB"]),
        (format!("{LEAST}log_size = \"1\"\n"), vec!["log_size", "whole number of MiB"]),
        (format!("{LEAST}create = \"always\"\n"), vec!["line 4", "always", "if-blank"]),
        (format!("{LEAST}capacity = [\"/a\",\"/b\",\"/a\"]\n"), vec!["/a is named twice"]),
        (
            format!("{LEAST}capacity = [\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\"]\n"),
            vec!["8 capacity devices", "up to 7"],
        ),
        ("[[group]]\nlog = \"/a\"\n".to_owned(), vec!["data_dir"]),
        ("data_dir = \"/d\"\n[listen]\nnbd = [\"localhost\"]\n".to_owned(), vec!["`localhost`", "unix:PATH"]),
        (format!("data_dir = \"/{long}\"\n"), vec!["too long", "107"]),
        ("data_dir = \"/d\"\n[memory]\nbuffers = \"1M\"\n".to_owned(), vec!["buffers", "64 MiB"]),
        ("data_dir = \"/d\"\nname = \"a b\"\n".to_owned(), vec!["`a b` is not a name"]),
        ("data_dir = ".to_owned(), vec!["line 1"]),
    ] {
        let failure = parse(&text).expect_err(&text);
        for part in expected {
            assert!(failure.error.contains(part), "{text}\nsaid: {}\nwithout: {part}", failure.error);
        }
        assert_eq!(failure.code, failure::Code::Usage);
    }
}

#[test]
fn the_example_is_a_configuration() {
    let path = Path::new("../../examples/clusters/single-host.toml");
    let config = Config::read(path, false).expect("the example");
    assert!(
        config.data_dir.is_absolute(),
        "what clients are told must not depend on where the host was started"
    );
    assert_eq!(config.groups.len(), 1);
    assert_eq!(config.groups[0].create, Create::IfBlank);
    assert_eq!((config.cluster.directory.clone(), config.peer_listener()), (DirectoryPlace::Embedded, None));
    assert_eq!(config.guest_buffer_bytes(), config.buffer_bytes, "a host alone has all for itself");
}

#[test]
fn the_example_of_a_host_among_others_is_a_configuration() {
    let path = Path::new("../../examples/clusters/one-of-several.toml");
    let config = Config::read(path, false).expect("the example");
    let cluster = &config.cluster;
    assert_eq!(cluster.directory, DirectoryPlace::Socket("/run/drystone/demo.sock".into()));
    assert_eq!(cluster.peers, Some("127.0.0.1:0".parse().expect("an address")));
    assert_eq!((cluster.fault_domain.as_deref(), cluster.prefers_local), (Some("rack1"), false));
    assert_eq!((cluster.resync_floor, cluster.resync_latency_percent), (32 * MIB, 125));
    assert_eq!(config.guest_buffer_bytes() + config.peer_buffer_bytes(), config.buffer_bytes);
}

#[test]
fn a_floor_of_resyncs_that_makes_no_sense_is_refused_with_those_that_do() {
    let text = |floor: &str| {
        format!("data_dir = \"/d\"\n[cluster]\ndirectory = \"unix:s\"\nresync_floor = \"{floor}\"\n")
    };
    for floor in ["0", "512KiB", "5GiB"] {
        let failure = Config::parse(&text(floor), Path::new("/x"), false).expect_err(floor);
        assert!(
            failure.error.contains("resync_floor") && failure.error.contains("from 1 MiB to 4 GiB"),
            "{failure}"
        );
    }
    let config = Config::parse(&text("1MiB"), Path::new("/x"), false).expect("the least");
    assert_eq!(config.cluster.resync_floor, MIB);
}

#[test]
fn a_cost_of_resyncs_that_makes_no_sense_is_refused_with_those_that_do() {
    let read = |percent: u64| {
        let text = format!(
            "data_dir = \"/d\"\n[cluster]\ndirectory = \"unix:s\"\nresync_latency_percent = {percent}\n"
        );
        Config::parse(&text, Path::new("/x"), false)
    };
    for percent in [0, 100, 1001] {
        let failure = read(percent).expect_err("it makes no sense");
        let says =
            failure.error.contains("resync_latency_percent") && failure.error.contains("from 105 to 1000");
        assert!(says, "{failure}");
    }
    let cluster = read(200).expect("twice as long").cluster;
    assert_eq!(cluster.resync_latency_percent, 200);
}

#[test]
fn nothing_listens_beyond_this_machine_without_a_certificate() {
    let check = |text: &str, expected: &str| {
        let config =
            Config::parse(&format!("data_dir = \"/d\"\n{text}"), Path::new("/x"), false).expect(text);
        let failure = crate::security::check_listeners(&config, false).expect_err(text);
        assert!(failure.error.contains(expected) && failure.error.contains("everybody"), "{failure}");
        let with = crate::security::check_listeners(&config, true);
        assert_eq!(with.is_ok(), !text.contains("[tls]"), "a [tls] that asks nobody is no better for it");
    };
    check("[listen]\nhttp = [\"0.0.0.0:80\"]\n", "[listen] http = \"0.0.0.0:80\"");
    check("[listen]\nnbd = [\"10.0.0.1:80\"]\n", "[listen] nbd = \"10.0.0.1:80\"");
    let tls = "[tls]\ncertificate = \"c\"\nkey = \"k\"\nclient_authorities = \"a\"\n";
    check(&format!("[listen]\nnbd = [\"10.0.0.1:80\"]\n{tls}"), "[listen] nbd");
    check(
        "[cluster]\ndirectory = \"unix:s\"\npeers = \"10.0.0.1:7400\"\n",
        "[cluster] peers = \"10.0.0.1:7400\"",
    );
    let safe = [
        format!("[listen]\nnbd = [\"10.0.0.1:80\"]\n{tls}required = true\n"),
        "[listen]\nhttp = [\"127.0.0.1:80\", \"[::1]:80\", \"unix:a\"]\nnbd = [\"127.0.0.1:1\"]\n".to_owned(),
    ];
    for text in safe {
        let config =
            Config::parse(&format!("data_dir = \"/d\"\n{text}"), Path::new("/x"), false).expect("text");
        crate::security::check_listeners(&config, false).expect("it is safe");
    }
}

#[test]
fn a_cluster_that_cannot_be_reached_or_has_no_directory_is_refused() {
    let check = |cluster: &str, expected: &str| {
        let text = format!("data_dir = \"d\"\n[cluster]\n{cluster}\n");
        let failure = Config::parse(&text, Path::new("/x"), false).expect_err(cluster);
        assert!(failure.error.contains(expected), "{failure}");
    };
    check("directory = \"unix:s\"\npeers = \"0.0.0.0:7000\"", "does not say where other hosts connect");
    check("directory = \"127.0.0.1:1\"", "is not where a directory is");
    check("peers = \"127.0.0.1:0\"", "needs a directory that other hosts reach");
    check("directory = \"unix:s\"\n[memory]\nbuffers = \"64MiB\"", "at least 128 MiB");
    check("directory = \"etcd\"\npeers = \"0.0.0.0:7000\"", "other hosts connect there");
    let managed =
        |etcd: &str| format!("directory = \"etcd\"\npeers = \"10.0.0.1:7400\"\n[cluster.etcd]\n{etcd}");
    check(&managed("user = \"u\""), "with the cluster's own certificates");
    check(&managed("clients = \"10.0.0.1:0\""), "an address of this host and a port are needed");
    check(&managed("endpoints = []"), "one of each member is needed");
    check(
        &managed("endpoints = [\"http://a:1\"]\nclients = \"10.0.0.1:2379\""),
        "endpoints are named, so it does not",
    );
    check("directory = \"unix:s\"\n[cluster.etcd]\nendpoints = []", "is of use only with");
    check("directory = \"unix:s\"\nshards = 0", "from 1 to 16");
    check("directory = \"unix:s\"\nshards = 17", "from 1 to 16");
    check(
        "directory = \"unix:s\"\nshards = 5\n[memory]\nbuffers = \"512MiB\"",
        "with 5 shards: at least 640 MiB",
    );
}

#[test]
fn the_example_of_a_host_with_its_directory_in_etcd_is_a_configuration() {
    let config = Config::read(Path::new("../../examples/clusters/in-etcd.toml"), false).expect("the example");
    assert_eq!(config.cluster.directory.to_string(), "etcd (http://127.0.0.1:2379, /drystone/)");
}

#[test]
fn a_cluster_that_runs_etcd_for_itself_needs_no_word_of_it() {
    let parse = |etcd: &str| {
        let text =
            format!("data_dir = \"d\"\n[cluster]\ndirectory = \"etcd\"\npeers = \"10.0.0.1:7400\"\n{etcd}\n");
        Config::parse(&text, Path::new("/x"), false).expect("a configuration").cluster
    };
    let plain = parse("");
    let at = |text: &str| text.parse().expect("an address");
    let usual = MemberPlace { clients: at("10.0.0.1:2379"), peers: at("10.0.0.1:2380") };
    assert_eq!(plain.member, Some(usual));
    let DirectoryPlace::Etcd(options) = plain.directory else { panic!("it is in etcd") };
    assert_eq!((options.endpoints.len(), options.prefix.as_str()), (0, "/drystone/"));
    let tls = options.tls.expect("it is encrypted");
    assert_eq!(tls.authorities, Path::new("/x/d/identity/authorities.pem"));
    let told = parse("[cluster.etcd]\nclients = \"10.0.0.1:1\"\nprefix = \"/other/\"");
    assert_eq!(told.member, Some(MemberPlace { clients: at("10.0.0.1:1"), ..usual }));
}

#[test]
fn a_directory_in_etcd_is_named_with_all_that_it_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("password"), "secret\n").expect("written");
    let parse = |etcd: &str| {
        let text = format!("data_dir = \"d\"\n[cluster]\ndirectory = \"etcd\"\n[cluster.etcd]\n{etcd}\n");
        Config::parse(&text, folder.path(), false).map(|config| config.cluster)
    };
    let plain = parse("endpoints = [\"http://127.0.0.1:2379\"]").expect("a configuration");
    let DirectoryPlace::Etcd(options) = plain.directory else { panic!("it is in etcd") };
    assert_eq!((options.prefix.as_str(), options.tls, options.user), ("/drystone/", None, None));
    let full = parse(
        "endpoints = [\"https://a:1\", \"https://b:1\"]\nprefix = \"/x/\"\nauthorities = \"ca\"\ncertificate = \"c\"\nkey = \"/k\"\n\
         user = \"u\"\npassword_file = \"password\"",
    );
    let DirectoryPlace::Etcd(options) = full.expect("a configuration").directory else {
        panic!("it is in etcd")
    };
    assert_eq!(options.user, Some(("u".to_owned(), "secret".to_owned())));
    let tls = options.tls.expect("files");
    assert_eq!(tls.own, Some((folder.path().join("c"), "/k".into())));
    let check = |etcd: &str, expected: &str| {
        let failure = parse(etcd).expect_err(expected);
        assert!(failure.error.contains(expected), "{failure}");
    };
    check("endpoints = []", "one of each member is needed");
    check("endpoints = [\"127.0.0.1:2379\"]", "is none: http://HOST:2379");
    check("endpoints = [\"http://a:1\"]\nauthorities = \"ca\"", "is without TLS");
    check("endpoints = [\"http://a:1\"]\nprefix = \"x\"", "begin and end with a slash");
    check("endpoints = [\"https://a:1\"]\ncertificate = \"c\"", "go together");
    check("endpoints = [\"https://a:1\"]\ncertificate = \"c\"\nkey = \"k\"", "needs authorities too");
    check("endpoints = [\"http://a:1\"]\nuser = \"u\"", "go together");
    check("endpoints = [\"http://a:1\"]\nuser = \"u\"\npassword_file = \"none\"", "none");
    check("endpoints = [\"http://a:1\"]\nurl = 1", "unknown field `url`");
}
