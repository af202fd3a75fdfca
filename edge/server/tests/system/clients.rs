//! Real clients: what libnbd, QEMU and fio see, write and read back.

use super::host::{Server, Shape, Site};
use super::members::free_port;
use super::tools::{command, run, run_command, setting, sparse_file, stored_bytes, text};
use base::Random;
use base::units::MIB;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A datastore with one disk, served.
fn site_with_disk(size: &str) -> (Site, Server) {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let server = site.start();
    site.ask(&["disk", "create", "web", size]);
    (site, server)
}

/// What `nbdinfo` tells of an export.
fn nbdinfo(uri: &str) -> Value {
    let told: Value = serde_json::from_str(&run("nbdinfo", &["--json", uri])).expect("JSON");
    let mut all = told["exports"][0].clone();
    all["tls"] = told["TLS"].clone();
    all["structured"] = told["structured"].clone();
    all
}

/// A folder with files of many sizes, the same each time.
fn make_files(folder: &Path) {
    let mut random = Random::new(7);
    for number in 0..60u32 {
        let parent = folder.join(format!("folder{}", number % 7));
        std::fs::create_dir_all(&parent).expect("room for a folder");
        let len = [0, 1, 511, 4096, 70_001, 1_500_000][number as usize % 6];
        let mut content = vec![0; len];
        random.fill(&mut content);
        std::fs::write(parent.join(format!("file{number}")), content).expect("room for a file");
    }
}

/// An image of 256 MiB with an ext4 file system that holds files.
fn make_image(site: &Site) -> PathBuf {
    let (files, image) = (site.path("files"), site.path("image"));
    make_files(&files);
    sparse_file(&image, 256 * MIB);
    run("mkfs.ext4", &["-q", "-d", text(&files), text(&image)]);
    image
}

/// Bytes of an image that hold data, by `qemu-img map`.
fn mapped_bytes(options: &[&str], image: &str) -> u64 {
    let map = run("qemu-img", &[&["map", "--output=json"], options, &[image]].concat());
    let map: Value = serde_json::from_str(&map).expect("JSON");
    let data = map.as_array().expect("a list").iter().filter(|part| part["zero"] == false);
    data.map(|part| part["length"].as_u64().expect("a number")).sum()
}

#[test]
fn nbdinfo_sees_every_ability() {
    let (site, server) = site_with_disk("1GiB");
    let told = nbdinfo(&site.uri("web"));
    for flag in [
        "can_cache",
        "can_df",
        "can_fast_zero",
        "can_flush",
        "can_fua",
        "can_multi_conn",
        "can_trim",
        "can_zero",
        "structured",
    ] {
        assert_eq!(told[flag], true, "{flag}: {told}");
    }
    assert_eq!(told["is_read_only"], false, "{told}");
    assert_eq!(told["export-size"], 1u64 << 30, "{told}");
    assert_eq!(told["contexts"], serde_json::json!(["base:allocation"]), "{told}");
    let sizes = ["block_size_minimum", "block_size_preferred", "block_size_maximum"].map(|key| &told[key]);
    assert_eq!(sizes, [512, 4096, 32 << 20], "{told}");
    site.ask(&["disk", "create", "fixed", "1MiB", "--read-only"]);
    assert_eq!(nbdinfo(&site.uri("fixed"))["is_read_only"], true);
    server.stop();
}

#[test]
fn nbdinfo_sees_what_is_allocated() {
    let (site, server) = site_with_disk("64MiB");
    let mut client = site.attach("web");
    client.write(4 * MIB, &vec![1; 2 * MIB as usize]).expect("it is written");
    client.trim(5 * MIB, MIB as u32).expect("it is trimmed");
    drop(client);
    let map = run("nbdinfo", &["--map", "--json", &site.uri("web")]);
    let map: Value = serde_json::from_str(&map).expect("JSON");
    let parts: Vec<(u64, u64, u64)> = map
        .as_array()
        .expect("a list")
        .iter()
        .map(|part| ["offset", "length", "type"].map(|key| part[key].as_u64().expect("a number")).into())
        .collect();
    // Holes that read as zeroes have type 3.
    assert_eq!(parts, [(0, 4 * MIB, 3), (4 * MIB, MIB, 0), (5 * MIB, 59 * MIB, 3)]);
    server.stop();
}

#[test]
fn qemu_img_converts_in_and_out_identical_and_sparse() {
    let (site, server) = site_with_disk("256MiB");
    let (image, copy, uri) = (make_image(&site), site.path("copy"), site.uri("web"));
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", text(&image), &uri]);
    let stored = mapped_bytes(&["-f", "raw"], text(&image));
    assert!(stored > 8 * MIB && stored < 128 * MIB, "the image has data and holes: {stored}");
    let served = mapped_bytes(&["-f", "raw"], &uri);
    assert!(served <= stored + MIB, "{served} bytes are served where the image has {stored}");
    let allocated = site.json(&["disk", "show", "web"])["allocated_bytes"].as_u64().expect("a number");
    assert!(allocated < stored + 64 * MIB, "{allocated} bytes are taken for {stored}");

    run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &uri, text(&copy)]);
    run("cmp", &[text(&image), text(&copy)]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", text(&image), &uri]);
    let (before, after) = (stored_bytes(&image), stored_bytes(&copy));
    assert!(after <= before + before / 8 + MIB, "the copy takes {after} bytes, the image {before}");
    run("fsck.ext4", &["-fn", text(&copy)]);
    server.stop();
}

#[test]
fn nbdcopy_copies_both_ways() {
    let (site, server) = site_with_disk("256MiB");
    let (image, copy, uri) = (make_image(&site), site.path("copy"), site.uri("web"));
    run("nbdcopy", &["--connections=4", text(&image), &uri]);
    run("nbdcopy", &["--connections=4", &uri, text(&copy)]);
    run("cmp", &[text(&image), text(&copy)]);
    let (before, after) = (stored_bytes(&image), stored_bytes(&copy));
    assert!(after <= before + before / 8 + MIB, "the copy takes {after} bytes, the image {before}");
    server.stop();
    let server = site.start();
    run("nbdcopy", &["--flush", &uri, text(&site.path("again"))]);
    run("cmp", &[text(&image), text(&site.path("again"))]);
    server.stop();
}

#[test]
fn qemu_io_patterns_keep_to_their_sectors() {
    let (site, server) = site_with_disk("64MiB");
    let commands = [
        "write -P 0x11 0 64k",
        "write -P 0xaa 512 1536",
        "write -P 0xbb 4608 512",
        "write -f -P 0xcc 12800 3584",
        "write -P 0xdd 33553920 1024",
        "write -z 20992 1024",
        "write -z -u 24576 512",
        "discard 28672 4096",
        "flush",
        "read -P 0x11 0 512",
        "read -P 0xaa 512 1536",
        "read -P 0x11 2048 2560",
        "read -P 0xbb 4608 512",
        "read -P 0x11 5120 7680",
        "read -P 0xcc 12800 3584",
        "read -P 0x11 16384 4608",
        "read -P 0x00 20992 1024",
        "read -P 0x11 22016 2560",
        "read -P 0x00 24576 512",
        "read -P 0x11 25088 3584",
        "read -P 0x00 28672 4096",
        "read -P 0x11 32768 32768",
        "read -P 0x00 65536 33488384",
        "read -P 0xdd 33553920 1024",
        "read -P 0x00 33554944 512",
    ];
    let check = |commands: &[&str]| {
        let mut io = command("qemu-io");
        io.args(["-f", "raw"]);
        commands.iter().for_each(|command| {
            io.args(["-c", command]);
        });
        let said = run_command(io.arg(site.uri("web")));
        assert!(!said.contains("verification failed") && !said.contains("error"), "{said}");
    };
    check(&commands);
    server.stop();
    let server = site.start();
    check(&commands[9..]);
    server.stop();
}

#[test]
fn a_mixed_load_verifies() {
    let (site, server) = site_with_disk("128MiB");
    let seconds = setting("DRYSTONE_FIO_SECONDS", 8);
    let uri = format!("--uri={}", site.uri("web"));
    let job = [
        "--name=verify",
        "--ioengine=nbd",
        "--rw=randrw",
        "--rwmixread=70",
        "--bssplit=512/10:4k/60:16k/20:128k/10",
        "--bs_unaligned",
        "--iodepth=32",
        // Two writes of one place at once have no order that could be verified.
        "--serialize_overlap=1",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_backlog=512",
        "--randseed=1",
        "--size=128M",
        "--loops=1000000",
        "--output-format=json",
    ];
    let runtime = format!("--runtime={seconds}");
    let mut fio = command("fio");
    // It leaves the state of its verification in the working directory.
    fio.current_dir(site.folder()).args(job).args([uri.as_str(), runtime.as_str()]);
    let report = run_command(&mut fio);
    let report: Value = serde_json::from_str(&report[report.find('{').expect("JSON")..]).expect("JSON");
    let job = &report["jobs"][0];
    assert_eq!(job["error"], 0, "{job}");
    let done = ["read", "write"].map(|kind| job[kind]["total_ios"].as_u64().expect("a number"));
    println!("{} reads and {} writes verified in {seconds} s", done[0], done[1]);
    assert!(done[0] > 100 && done[1] > 100, "hardly anything was done: {done:?}");
    server.stop();
}

/// An authority, and a certificate by it for the server and for a client, as files with the names that clients expect.
fn make_certificates(folder: &Path) {
    std::fs::create_dir_all(folder).expect("room for a folder");
    let openssl = |arguments: &[&str]| run_command(command("openssl").current_dir(folder).args(arguments));
    let key = ["-newkey", "rsa:2048", "-nodes", "-batch"];
    let authority = ["req", "-x509", "-days", "2", "-subj", "/CN=authority"];
    openssl(&[&authority[..], &key, &["-keyout", "ca-key.pem", "-out", "ca-cert.pem"]].concat());
    for (name, usage) in [("server", "serverAuth"), ("client", "clientAuth")] {
        let [key_file, request, certificate] =
            ["key.pem", "request.pem", "cert.pem"].map(|kind| format!("{name}-{kind}"));
        let subject = format!("/CN={name}");
        let ask = ["req", "-subj", &subject, "-keyout", &key_file, "-out", &request];
        openssl(&[&ask[..], &key].concat());
        let extensions = format!(
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={usage}\nbasicConstraints=CA:false\n"
        );
        std::fs::write(folder.join("extensions"), extensions).expect("room for a file");
        let sign =
            ["x509", "-req", "-days", "2", "-CA", "ca-cert.pem", "-CAkey", "ca-key.pem", "-CAcreateserial"];
        openssl(&[&sign[..], &["-extfile", "extensions", "-in", &request, "-out", &certificate]].concat());
    }
}

/// A port of this machine that nothing uses.
#[test]
fn clients_over_tcp_encrypt_and_show_certificates() {
    let mut site = Site::new(&Shape::Two { size_mib: 256 });
    let (tls, others) = (site.path("tls"), site.path("others"));
    make_certificates(&tls);
    make_certificates(&others);
    let port = free_port();
    let config =
        site.config().replace("\"unix:nbd.sock\"", &format!("\"unix:nbd.sock\", \"127.0.0.1:{port}\""));
    site.set_config(&config);
    site.add_config(
        "[tls]\ncertificate = \"tls/server-cert.pem\"\nkey = \"tls/server-key.pem\"\n\
         client_authorities = \"tls/ca-cert.pem\"\nrequired = true\n",
    );
    let server = site.start();
    site.ask(&["disk", "create", "web", "64MiB"]);
    let uri = |folder: &Path| format!("nbds://127.0.0.1:{port}/web?tls-certificates={}", text(folder));
    let told = nbdinfo(&uri(&tls));
    assert_eq!((&told["tls"], &told["can_multi_conn"]), (&true.into(), &true.into()), "{told}");

    let image = site.path("image");
    let mut content = vec![0; 64 * MIB as usize];
    Random::new(3).fill(&mut content[5 << 20..9 << 20]);
    std::fs::write(&image, &content).expect("room for a file");
    run("nbdcopy", &[text(&image), &uri(&tls)]);
    run("nbdcopy", &[&uri(&tls), text(&site.path("copy"))]);
    run("cmp", &[text(&image), text(&site.path("copy"))]);
    let object = format!("tls-creds-x509,id=tls,endpoint=client,dir={}", text(&tls));
    let options = format!("driver=nbd,host=127.0.0.1,port={port},export=web,tls-creds=tls");
    run(
        "qemu-img",
        &[
            "compare",
            "--object",
            &object,
            "--image-opts",
            &format!("driver=raw,file.filename={}", text(&image)),
            &options,
        ],
    );

    let job = site.path("job.fio");
    std::fs::write(&job, "[j]\nrw=randrw\nbs=4k\nsize=16m\niodepth=8\nruntime=1\ntime_based\n")
        .expect("a job");
    let measured = site.json(&["lab", "run", text(&job), "--target", &uri(&tls), "--verify"]);
    assert_eq!(measured["stages"][0]["ended"], "done", "{measured}");

    for refused in [uri(&others), format!("nbd://127.0.0.1:{port}/web")] {
        let tried = super::tools::output(command("nbdinfo").arg(&refused));
        assert!(!tried.status.success(), "{refused} was let in");
        let tried = site.cli(&["lab", "run", text(&job), "--target", &refused]);
        assert!(!tried.status.success(), "the lab was let in by {refused}");
    }
    let told = nbdinfo(&site.uri("web"));
    assert_eq!(told["export-size"], 64 * MIB, "refused clients harm nobody: {told}");
    server.stop();
}
