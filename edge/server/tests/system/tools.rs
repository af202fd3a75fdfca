//! Other programs: running them, and saying which package brings one that is missing.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Where programs for root stand, which a user's `PATH` may lack.
const PATH_OF_ROOT: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// The Debian package of every tool in use.
const PACKAGES: &[(&str, &str)] = &[
    ("blockdev", "util-linux"),
    ("cmp", "diffutils"),
    ("debugfs", "e2fsprogs"),
    ("diff", "diffutils"),
    ("curl", "curl"),
    ("fio", "fio"),
    ("fsck.ext4", "e2fsprogs"),
    ("fusermount3", "fuse3"),
    ("losetup", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mount", "mount"),
    ("nbdcopy", "libnbd-bin"),
    ("nbdfuse", "libnbd-bin"),
    ("nbdinfo", "libnbd-bin"),
    ("openssl", "openssl"),
    ("qemu-img", "qemu-utils"),
    ("qemu-io", "qemu-utils"),
    ("sudo", "sudo"),
    ("umount", "mount"),
    ("xfs_repair", "xfsprogs"),
];

/// A command that finds the programs of root too.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{PATH_OF_ROOT}")).stdin(Stdio::null());
    command
}

/// The same with the rights of root, which devices need: by `sudo` when the tests have them not.
pub fn root_command(program: &str) -> Command {
    if is_root() {
        return command(program);
    }
    let mut sudo = command("sudo");
    sudo.args(["-n", program]);
    sudo
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Runs to the end; a tool that is not there fails the test by its package's name.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        let package = PACKAGES.iter().find(|(tool, _)| *tool == program).map_or("?", |(_, package)| package);
        panic!("run {program}: {error}; it is in the Debian package {package}, which `./x test -y` installs")
    })
}

/// Both outputs as text.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs to the end and asserts success; gives the standard output.
pub fn run_command(command: &mut Command) -> String {
    let done = output(command);
    assert!(done.status.success(), "{command:?}: {}\n{}", done.status, said(&done));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Runs a tool with arguments; gives what it said.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> String {
    run_command(command(program).args(arguments))
}

/// Has qemu-io carry commands out on an export; that of a snapshot is only read.
pub fn qemu_io(uri: &str, commands: &[&str]) {
    let mut all = vec!["-f", "raw"];
    all.extend(uri.contains('@').then_some("-r"));
    commands.iter().for_each(|command| all.extend(["-c", *command]));
    all.push(uri);
    run("qemu-io", &all);
}

/// Runs a tool as root.
pub fn run_as_root<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> String {
    run_command(root_command(program).args(arguments))
}

/// Asks again and again until the answer is there.
///
/// # Panics
/// After `seconds`, with `what` was waited for.
pub fn wait_for<T>(what: &str, seconds: u64, ask: impl FnMut() -> Option<T>) -> T {
    wait_or_say(what, seconds, String::new, ask)
}

/// The same, where there is more to say of what did not come.
///
/// # Panics
/// After `seconds`, with `what` was waited for and what `say` says then.
pub fn wait_or_say<T>(
    what: &str,
    seconds: u64,
    say: impl Fn() -> String,
    mut ask: impl FnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: not within {seconds} s\n{}", say());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the clock shows so many further seconds: certificates and tokens know no smaller time.
pub fn wait_for_clock(seconds: u64) {
    let clock = || std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let until = clock() + seconds;
    wait_for("the clock goes on", seconds + 10, || (clock() >= until).then_some(()));
}

/// Waits until a disk was written to by a load that has just begun. `histogram` asks for what `disk histogram` shows.
pub fn wait_for_writes(histogram: impl Fn() -> serde_json::Value) {
    let count = || histogram()["write"]["count"].as_u64().expect("a number");
    let before = count();
    wait_for("the load writes", 90, || (count() > before + 100).then_some(()));
}

/// A path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are plain text")
}

/// Bytes that a file really takes.
pub fn stored_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).blocks() * 512
}

/// Makes a sparse file.
pub fn sparse_file(path: &Path, size: u64) {
    let file = std::fs::File::create(path).expect("the folder is there");
    file.set_len(size).expect("sparse files take no room");
}

/// A number from the environment, for longer runs than the usual one.
pub fn setting(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")),
        Err(_) => usual,
    }
}

/// A seed: from the environment to play a run again, else new. It is printed, and shown when the test fails.
pub fn seed(name: &str) -> u64 {
    let clock = std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64 % 1_000_000_007);
    let seed = setting(name, clock);
    println!("seed: {name}={seed}");
    seed
}
