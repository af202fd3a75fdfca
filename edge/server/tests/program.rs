//! The program as a person starts it: the example's configuration, the demo, and starts that must be refused.
//!
//! Needs qemu-img, mkfs.ext4 and fio, which `./x test` installs.

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_drystone");
const EXAMPLE: &str = include_str!("../../../examples/clusters/single-host.toml");

/// A host that is stopped when the test ends, however it ends.
struct Host(Child);

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Host {
    /// Starts the host of `config` and waits until it answers.
    fn start(folder: &Path, config: &Path) -> Host {
        let child =
            Command::new(PROGRAM).args(["host", "--config"]).arg(config).stderr(Stdio::null()).spawn();
        let host = Host(child.expect("the program is there"));
        let deadline = Instant::now() + Duration::from_secs(30);
        while !drystone(folder, &["status"]).status.success() {
            assert!(Instant::now() < deadline, "the host answers within 30 s");
            std::thread::sleep(Duration::from_millis(50));
        }
        host
    }

    /// Asks it to end, and gives whether it did so cleanly.
    fn terminate(mut self) -> bool {
        let told = Command::new("kill").arg(self.0.id().to_string()).status().expect("kill is there");
        assert!(told.success());
        self.0.wait().expect("it ends").success()
    }
}

fn drystone(folder: &Path, arguments: &[&str]) -> Output {
    let api = format!("unix:{}", folder.join("drystone-data/api.sock").display());
    Command::new(PROGRAM).env("DRYSTONE_API", api).args(arguments).output().expect("the program is there")
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The example in a folder of its own, with a port that is free.
fn example(folder: &Path) -> std::path::PathBuf {
    assert!(EXAMPLE.contains("127.0.0.1:10809"));
    let config = folder.join("single-host.toml");
    std::fs::write(&config, EXAMPLE.replace("\"127.0.0.1:10809\", ", "")).expect("written");
    config
}

#[test]
fn the_example_serves_disks_and_finds_them_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = example(folder.path());
    let host = Host::start(folder.path(), &config);
    let made = json(&drystone(folder.path(), &["--json", "disk", "create", "vm1", "20GiB"]));
    assert_eq!(
        (&made["name"], &made["policy"], &made["state"]),
        (&"vm1".into(), &"single".into(), &"active".into())
    );

    let second = Command::new(PROGRAM).args(["host", "--config"]).arg(&config).output().expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(3), "{said}");
    assert!(said.contains("a server is running on it already"), "{said}");

    assert!(host.terminate(), "SIGTERM ends it cleanly");
    let host = Host::start(folder.path(), &config);
    let disks = json(&drystone(folder.path(), &["--json", "disk", "list"]));
    assert_eq!((&disks[0]["name"], &disks[0]["unavailable"]), (&"vm1".into(), &Value::Null));
    let refused = drystone(folder.path(), &["disk", "delete", "vm1"]);
    assert_eq!(refused.status.code(), Some(3), "nobody confirmed it");
    assert!(drystone(folder.path(), &["disk", "delete", "vm1", "--confirm", "vm1"]).status.success());
    assert!(host.terminate());
    assert_eq!(drystone(folder.path(), &["status"]).status.code(), Some(6), "no host answers");
}

/// `DRYSTONE_API=` in a file of variables was an address of nowhere: every command ended with 2.
#[test]
fn a_variable_that_is_set_to_nothing_counts_as_unset() {
    let folder = tempfile::tempdir().expect("a folder");
    let ask = |variable: &str, value: &str| {
        let mut program = Command::new(PROGRAM);
        program.env("XDG_DATA_HOME", folder.path()).env("HOME", folder.path());
        program.env_remove("DRYSTONE_API").env_remove("DRYSTONE_IDENTITY");
        program.env(variable, value).arg("status").output().expect("it runs")
    };
    for variable in ["DRYSTONE_API", "DRYSTONE_IDENTITY"] {
        let done = ask(variable, "");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(6), "{variable}: {said}");
        assert!(said.contains("no host answers at unix:"), "{said}");
    }
    assert_eq!(ask("DRYSTONE_API", "nonsense").status.code(), Some(2));
}

#[test]
fn images_come_in_and_go_out_unchanged_and_sparse() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::start(folder.path(), &example(folder.path()));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().expect(program);
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for format in ["raw", "qcow2"] {
        let (image, copy) = (path(&format!("in.{format}")), path(&format!("out.{format}")));
        run("qemu-img", &["create", "-q", "-f", format, &image, "300M"]);
        run("qemu-io", &["-f", format, "-c", "write -P 7 10M 5M", "-c", "write -P 8 299M 1M", &image]);
        let imported = json(&drystone(folder.path(), &["--json", "disk", "import", format, &image]));
        assert_eq!(imported["size"], 300 << 20);
        assert_eq!(imported["allocated_bytes"], 6 << 20, "holes stay holes");
        json(&drystone(folder.path(), &["--json", "disk", "export", format, &copy, "--format", format]));
        run("qemu-img", &["compare", "-f", format, "-F", format, &image, &copy]);
        let stored =
            std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&copy).expect("the copy")) * 512;
        assert!(stored < 16 << 20, "the copy is sparse: {stored} bytes");
    }
    assert!(host.terminate());
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("wrong.toml");
    std::fs::write(&config, "data_dir = \"d\"\ncolour = \"red\"\n").expect("written");
    let output = Command::new(PROGRAM).args(["host", "--config"]).arg(&config).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("line 2") && said.contains("colour"), "{said}");
}

#[test]
fn the_demo_shows_a_load_and_uses_what_is_there_the_second_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("d");
    for second in [false, true] {
        let mut demo = Command::new(PROGRAM);
        demo.args(["demo", "--exit", "--seconds", "2", "--dir"]).arg(&dir);
        let output = demo.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        for part in ["reads, fio", "writes, disk", "IO lengths of commands", "The demo has ended."] {
            assert!(said.contains(part), "{part} is not in\n{said}");
        }
        // It told how to attach to what it served no more.
        assert!(!said.contains("Attach") && !said.contains("nbdinfo"), "{said}");
        assert_eq!(said.contains("identical"), !second, "{said}");
        assert_eq!(said.contains("from a former run"), second, "{said}");
    }
}
