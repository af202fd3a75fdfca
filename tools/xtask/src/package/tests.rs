//! A package is made of a stand-in for the program, and looked at as dpkg shows it.

use super::*;
use crate::repository;

/// A program that writes a manual as the real one does. It must be an ELF file, so it is compiled.
const STAND_IN: &str = r#"fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    assert_eq!(arguments[..2], ["manual", "--out"]);
    std::fs::create_dir(&arguments[2]).unwrap();
    for name in ["drystone.1", "drystone-disk.1", "drystone.bash", "_drystone", "drystone.fish"] {
        std::fs::write(format!("{}/{name}", arguments[2]), name).unwrap();
    }
}"#;

fn stand_in(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("main.rs"), folder.join("stand-in"));
    fs::write(&source, STAND_IN).expect("room for a file");
    output(Command::new("rustc").arg(&source).arg("-o").arg(&program)).expect("it compiles");
    program
}

fn listed(package: &Path) -> Vec<String> {
    let text = output(Command::new("dpkg-deb").arg("--contents").arg(package)).expect("a package");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_package_has_what_a_host_needs_twice_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = stand_in(folder.path());
    let make = |name: &str| package(&repository(), &program, &folder.path().join(name)).expect("a package");
    let (first, second) = (make("a"), make("b"));
    assert!(fs::read(&first).expect("it is there") == fs::read(second).expect("it is there"), "they differ");

    let lines = listed(&first);
    for (mode, path) in [
        ("-rwxr-xr-x", "./usr/bin/drystone"),
        ("-rw-r--r--", "./usr/lib/systemd/system/drystone.service"),
        ("-rw-r--r--", "./etc/drystone/host.toml.example"),
        ("-rw-r--r--", "./usr/share/man/man1/drystone.1.gz"),
        ("-rw-r--r--", "./usr/share/man/man1/drystone-disk.1.gz"),
        ("-rw-r--r--", "./usr/share/bash-completion/completions/drystone"),
        ("-rw-r--r--", "./usr/share/zsh/vendor-completions/_drystone"),
        ("-rw-r--r--", "./usr/share/fish/vendor_completions.d/drystone.fish"),
        ("-rw-r--r--", "./usr/share/doc/drystone/copyright"),
        ("-rw-r--r--", "./usr/share/doc/drystone/changelog.Debian.gz"),
        ("-rw-r--r--", "./usr/share/doc/drystone/third-party.gz"),
        ("-rw-r--r--", "./usr/share/doc/drystone/examples/clusters/single-host.toml"),
        ("-rw-r--r--", "./usr/share/drystone/grafana/drystone.json"),
    ] {
        let found = lines.iter().find(|line| line.ends_with(path));
        let found = found.unwrap_or_else(|| panic!("{path} is not in {lines:#?}"));
        assert!(found.starts_with(mode) && found.contains(" root/root "), "{found}");
    }
    for line in &lines {
        assert!(
            !line.contains("./var") && !line.contains("host.toml\n"),
            "an operator's own is shipped: {line}"
        );
    }

    let field =
        |name: &str| output(Command::new("dpkg-deb").arg("-f").arg(&first).arg(name)).expect("a field");
    let version = field("Version");
    assert!(
        first.ends_with(format!("drystone_{}_{}.deb", version.trim(), field("Architecture").trim())),
        "{first:?}"
    );
    assert!(field("Depends").contains("libc6 (>= 2."), "{}", field("Depends"));
    let control = folder.path().join("control");
    output(Command::new("dpkg-deb").arg("--control").arg(&first).arg(&control)).expect("control files");
    for script in SCRIPTS {
        let mode = fs::metadata(control.join(script)).expect("a script").permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{script}");
    }
}

/// The program stands beside this test where the whole workspace was built, as it is for `./x test`.
#[test]
fn the_real_program_writes_pages_that_man_reads_and_completions_that_bash_reads() {
    let here = std::env::current_exe().expect("this test is a file");
    let program = here.ancestors().nth(2).expect("it stands in deps").join("drystone");
    if !program.exists() {
        println!("{} was not built: its manual was not written", program.display());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("tree");
    manual(&program, &tree).expect("it is written");
    for page in ["drystone", "drystone-host-maintenance", "drystone-disk-create", "drystone-lab-run"] {
        let path = tree.join(format!("usr/share/man/man1/{page}.1.gz"));
        let text = output(Command::new("gzip").args(["-d", "-c"]).arg(&path)).expect(page);
        assert!(text.contains(".SH EXAMPLES"), "{page}:\n{text}");
    }
    let completion = tree.join(COMPLETIONS[0].1);
    output(Command::new("bash").arg("-n").arg(completion)).expect("bash reads it");
}

#[test]
fn maintainer_scripts_never_start_restart_or_delete() {
    for script in SCRIPTS {
        let text = fs::read_to_string(repository().join("packaging/debian").join(script)).expect("a script");
        let lines = text.lines().map(str::trim_start);
        for line in lines.filter(|line| !line.starts_with('#') && !line.starts_with("echo ")) {
            for word in ["start", "enable", "rm ", "deb-systemd"] {
                assert!(!line.contains(word), "{script}: {line}");
            }
        }
    }
}

/// A unit with a slip in it is noticed on the machine where it is made, if that has systemd's own tools.
#[test]
fn the_unit_is_one_that_systemd_reads() {
    let unit = fs::read_to_string(repository().join("packaging/debian/drystone.service")).expect("the unit");
    if output(Command::new("systemd-analyze").arg("--version")).is_err() {
        println!("systemd-analyze is not there: the unit was not verified");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("drystone.service");
    // Where the package is not installed there is no program, and no manual page.
    let here = unit.replace("/usr/bin/drystone", "/bin/true").replace("man:drystone(1) ", "");
    fs::write(&path, here).expect("room for a file");
    let said = Command::new("systemd-analyze").arg("verify").arg(&path).output().expect("it runs");
    let said = String::from_utf8_lossy(&said.stderr);
    assert!(!said.contains("drystone.service"), "{said}");
}
