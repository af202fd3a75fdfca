//! `cargo xtask package`: the Debian package `drystone_VERSION_ARCHITECTURE.deb`, from a program that was built already.
//!
//! Relies on `dpkg-deb`, `dpkg-shlibdeps`, `strip` and `gzip`, and on the files of `packaging/debian`. Two runs on one commit
//! with one program give the same bytes: times are the commit's, owners are root, nothing is taken from the machine.
//! Must never install anything or touch what lies outside its folder.

mod about;
mod outside;
mod third_party;

use about::About;
use outside::{files_in, output};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Where what of the repository goes.
const FILES: &[(&str, &str)] = &[
    ("packaging/debian/drystone.service", "usr/lib/systemd/system/drystone.service"),
    ("packaging/debian/drystone-etcd.service", "usr/lib/systemd/system/drystone-etcd.service"),
    ("packaging/debian/host.toml.example", "etc/drystone/host.toml.example"),
    ("packaging/debian/needrestart.conf", "etc/needrestart/conf.d/drystone.conf"),
    ("packaging/debian/copyright", "usr/share/doc/drystone/copyright"),
    ("packaging/debian/lintian-overrides", "usr/share/lintian/overrides/drystone"),
    ("docs/guide/installing.md", "usr/share/doc/drystone/installing.md"),
    ("docs/guide/getting-started.md", "usr/share/doc/drystone/getting-started.md"),
    ("docs/guide/cluster.md", "usr/share/doc/drystone/cluster.md"),
    ("docs/guide/monitoring.md", "usr/share/doc/drystone/monitoring.md"),
    ("docs/guide/operating.md", "usr/share/doc/drystone/operating.md"),
    ("packaging/grafana/drystone.json", "usr/share/drystone/grafana/drystone.json"),
    ("packaging/prometheus/drystone.rules.yml", "usr/share/drystone/prometheus/drystone.rules.yml"),
];
/// Folders whose files all go there.
const FOLDERS: &[(&str, &str)] = &[
    ("examples/clusters", "usr/share/doc/drystone/examples/clusters"),
    ("examples/experiments", "usr/share/doc/drystone/examples/experiments"),
];
/// Where shells look for the completions that the program writes.
const COMPLETIONS: &[(&str, &str)] = &[
    ("drystone.bash", "usr/share/bash-completion/completions/drystone"),
    ("_drystone", "usr/share/zsh/vendor-completions/_drystone"),
    ("drystone.fish", "usr/share/fish/vendor_completions.d/drystone.fish"),
];
/// Run by dpkg.
const SCRIPTS: &[&str] = &["postinst", "prerm", "postrm"];
/// The program in the package.
const PROGRAM: &str = "usr/bin/drystone";
/// What stands there.
const DOCUMENTS: &str = "usr/share/doc/drystone";

/// What the command line says.
struct Options {
    program: PathBuf,
    out: PathBuf,
}

/// `cargo xtask package --program FILE --out FOLDER`: prints the package's path.
pub fn run(root: &Path, arguments: &[String]) -> ExitCode {
    let made = read(arguments).and_then(|options| package(root, &options.program, &options.out));
    match made {
        Ok(path) => {
            println!("{}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("package: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(arguments: &[String]) -> Result<Options, String> {
    let (mut program, mut out) = (None, None);
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--program" => program = Some(PathBuf::from(value)),
            "--out" => out = Some(PathBuf::from(value)),
            _ => return Err(format!("there is no option {name}: --program FILE and --out FOLDER are")),
        }
    }
    match (program, out) {
        (Some(program), Some(out)) => Ok(Options { program, out }),
        _ => Err("both --program FILE and --out FOLDER are needed".to_owned()),
    }
}

/// Makes the package of `program` in the folder `out`, and gives its path.
pub fn package(root: &Path, program: &Path, out: &Path) -> Result<PathBuf, String> {
    let about = About::of(root)?;
    let work = out.join("work");
    if work.exists() {
        fs::remove_dir_all(&work).map_err(|error| format!("remove {}: {error}", work.display()))?;
    }
    let tree = work.join("tree");
    let program = fs::canonicalize(program).map_err(|error| format!("{}: {error}", program.display()))?;
    fill(root, &program, &tree, &about)?;
    let depends = depends(&work, &tree)?;
    control(root, &tree, &about, &depends)?;
    let package = out.join(format!("drystone_{}_{}.deb", about.version, about.architecture));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zxz", "--build"]).arg(&tree).arg(&package);
    dpkg.env("SOURCE_DATE_EPOCH", about.seconds.to_string());
    output(&mut dpkg)?;
    fs::remove_dir_all(&work).map_err(|error| format!("remove {}: {error}", work.display()))?;
    Ok(package)
}

/// All that is installed.
fn fill(root: &Path, program: &Path, tree: &Path, about: &About) -> Result<(), String> {
    for (source, target) in FILES {
        copy(&root.join(source), &tree.join(target), 0o644)?;
    }
    for (source, target) in FOLDERS {
        for file in files_in(&root.join(source))? {
            let name = file.file_name().expect("a file has a name");
            copy(&file, &tree.join(target).join(name), 0o644)?;
        }
    }
    let installed = tree.join(PROGRAM);
    copy(program, &installed, 0o755)?;
    output(
        Command::new("strip").arg("--strip-unneeded").args(["-R", ".comment", "-R", ".note"]).arg(&installed),
    )?;
    manual(program, tree)?;
    let documents = tree.join(DOCUMENTS);
    write_compressed(&documents.join("changelog.Debian"), &about.changelog())?;
    write_compressed(&documents.join("third-party"), &third_party::notice(root)?)
}

/// The manual pages and the completions that the program writes of itself.
fn manual(program: &Path, tree: &Path) -> Result<(), String> {
    let folder = tree.with_file_name("manual");
    output(Command::new(program).args(["manual", "--out"]).arg(&folder))?;
    for (source, target) in COMPLETIONS {
        copy(&folder.join(source), &tree.join(target), 0o644)?;
    }
    for page in files_in(&folder)?.iter().filter(|file| file.extension().is_some_and(|kind| kind == "1")) {
        let text = fs::read_to_string(page).map_err(|error| format!("read {}: {error}", page.display()))?;
        let name = page.file_name().expect("a file has a name");
        write_compressed(&tree.join("usr/share/man/man1").join(name), &text)?;
    }
    match tree.join("usr/share/man/man1/drystone.1.gz").exists() {
        true => Ok(()),
        false => Err(format!("{} wrote no manual page of itself", program.display())),
    }
}

/// The libraries that the program needs, as packages with versions.
fn depends(work: &Path, tree: &Path) -> Result<String, String> {
    // It reads a source package's control file, of which it needs little.
    write(&work.join("debian/control"), "Source: drystone\n\nPackage: drystone\nArchitecture: any\n")?;
    let program =
        fs::canonicalize(tree.join(PROGRAM)).map_err(|error| format!("find the program: {error}"))?;
    let found = output(Command::new("dpkg-shlibdeps").arg("-O").arg(program).current_dir(work))?;
    let found = found.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    found.map(str::to_owned).ok_or_else(|| "dpkg-shlibdeps named no library".to_owned())
}

/// What dpkg reads of the package.
fn control(root: &Path, tree: &Path, about: &About, depends: &str) -> Result<(), String> {
    let control = tree.join("DEBIAN");
    let mut sizes = 0;
    let mut sums = String::new();
    for file in all_files(tree)? {
        let path = file.strip_prefix(tree).expect("it was found there");
        sizes += fs::metadata(&file)
            .map_err(|error| format!("{}: {error}", file.display()))?
            .size()
            .div_ceil(1024);
        let sum = output(Command::new("md5sum").arg(&file))?;
        let sum = sum.split_whitespace().next().ok_or("md5sum printed nothing")?;
        sums += &format!("{sum}  {}\n", path.display());
    }
    let template = fs::read_to_string(root.join("packaging/debian/control"))
        .map_err(|error| format!("read packaging/debian/control: {error}"))?;
    let filled = template
        .replace("@VERSION@", &about.version)
        .replace("@ARCHITECTURE@", &about.architecture)
        .replace("@MAINTAINER@", about::MAINTAINER)
        .replace("@INSTALLED_SIZE@", &sizes.to_string())
        .replace("@DEPENDS@", depends);
    write(&control.join("control"), &filled)?;
    write(&control.join("md5sums"), &sums)?;
    copy(&root.join("packaging/debian/conffiles"), &control.join("conffiles"), 0o644)?;
    SCRIPTS
        .iter()
        .try_for_each(|name| copy(&root.join("packaging/debian").join(name), &control.join(name), 0o755))
}

/// The files below a folder, in order.
fn all_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in files_in(folder)? {
        if path.is_dir() { found.extend(all_files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

/// Makes a folder that everybody may read, whatever the umask is.
fn folder(path: &Path) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    path.parent().map_or(Ok(()), folder)?;
    let failed = |error| format!("make {}: {error}", path.display());
    fs::create_dir(path).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(failed)
}

fn copy(source: &Path, target: &Path, mode: u32) -> Result<(), String> {
    let failed = |error| format!("copy {} to {}: {error}", source.display(), target.display());
    target.parent().map_or(Ok(()), folder)?;
    fs::copy(source, target).map_err(failed)?;
    fs::set_permissions(target, fs::Permissions::from_mode(mode)).map_err(failed)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error| format!("write {}: {error}", path.display());
    path.parent().map_or(Ok(()), folder)?;
    fs::write(path, text).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).map_err(failed)
}

/// Writes a text compressed, with `.gz` after its name and no time in it.
fn write_compressed(path: &Path, text: &str) -> Result<(), String> {
    write(path, text)?;
    output(Command::new("gzip").args(["-9", "-n", "-f"]).arg(path)).map(|_| ())
}

#[cfg(test)]
mod tests;
