//! Checks and chores of the repository: `cargo xtask <command>`.
//!
//! Relies on cargo alone. Must never be part of the product and never change a file but where a command says so.

mod attributes;
mod imports;
mod package;
mod rules;
mod sources;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Tests that run at once for each core. On 2 cores the system tests took 12 minutes by 2 at once, and
/// 9 by 4 while other builds kept both cores busy. They compute for 8 minutes of one core, so more than 4 gain little.
const TESTS_A_CORE: usize = 2;

const HELP: &str = "\
cargo xtask <command>

  tidy                        check the arrows between crates, circles of imports, purity of core/, dependencies, sizes, comments
  imports CRATE [--dot]       print which file of a crate imports from which, and the circles
  ci                          formatting, clippy, tidy and all tests, with the pages that stand in console/build
  sim --seeds N [--seed S]    run the simulator: N worlds from seed S on (default 1)
  model [--of MODEL]          check the protocol, parity or moves state by state; `model --help` tells the sizes
  trials [SCENARIO ...]       try real hosts with real faults under a load that verifies; `trials --help` tells more
  package --program FILE --out FOLDER   make the Debian package of a program that was built
  help                        this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = repository();
    match arguments.first().map(String::as_str) {
        Some("tidy") => report(tidy::tidy(&root)),
        Some("imports") => print(imports::run(&root, &arguments[1..])),
        Some("ci") => ci(&root),
        Some("sim") => tool(&root, "sim", &arguments[1..]),
        Some("model") => tool(&root, "model", &arguments[1..]),
        Some("package") => package::run(&root, &arguments[1..]),
        Some("trials") => trials(&root, &arguments[1..]),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Some(other) => usage(&format!("there is no command `{other}`")),
        None => usage("a command is missing"),
    }
}

fn usage(found: &str) -> ExitCode {
    eprintln!("xtask: {found}\n\n{HELP}");
    ExitCode::from(2)
}

/// The repository's root: two folders above this crate.
fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate stands in tools/xtask").to_path_buf()
}

fn report(found: Result<Vec<tidy::Breach>, String>) -> ExitCode {
    match found {
        Ok(breaches) if breaches.is_empty() => {
            eprintln!("tidy: no breach found");
            ExitCode::SUCCESS
        }
        Ok(breaches) => {
            for breach in &breaches {
                eprintln!("{breach}");
            }
            eprintln!("tidy: {} found; docs/STYLE.md says why these rules are", breaches.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: Result<String, String>) -> ExitCode {
    match text {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => usage(&error),
    }
}

fn cargo(root: &Path, arguments: &[&str]) -> bool {
    run(Command::new(env!("CARGO")).args(arguments).current_dir(root))
}

/// Runs cargo, and says how.
fn run(command: &mut Command) -> bool {
    let settings = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let settings: Vec<String> =
        settings.map(|(name, value)| format!("{}={} ", name.display(), value.display())).collect();
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    eprintln!("$ {}cargo {}", settings.concat(), arguments.join(" "));
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("xtask: run cargo: {error}");
            false
        }
    }
}

/// The program of the tests has the console's pages in it, as the one that is shipped: `./x test` builds them first.
const CONSOLE: [&str; 2] = ["--features", "server/console"];

/// Cargo's words to look at the whole workspace with the given features.
fn clippy(features: &str) -> [&str; 8] {
    ["clippy", "--workspace", "--features", features, "--all-targets", "--", "-D", "warnings"]
}

/// The cheap checks first; the tests last, so that their closing lines close the output.
fn ci(root: &Path) -> ExitCode {
    if !cargo(root, &["fmt", "--all", "--check"]) {
        eprintln!("xtask: run `cargo fmt --all`");
        return ExitCode::FAILURE;
    }
    if report(tidy::tidy(root)) != ExitCode::SUCCESS {
        return ExitCode::FAILURE;
    }
    if !cargo(root, &clippy(CONSOLE[1])) {
        return ExitCode::FAILURE;
    }
    // What stands for the next release has to be built, too, or it cannot be tried. Of the whole workspace, because the features of
    // a crate that several use would be others for one package alone, and nearly all were checked anew.
    if !cargo(root, &clippy("server/console,server/next-level")) {
        return ExitCode::FAILURE;
    }
    if tests(root) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All tests, also behind one that fails. Most of those with real programs wait for timers and other processes, so more of them run at once than there are
/// cores; a user's `RUST_TEST_THREADS` counts.
fn tests(root: &Path) -> bool {
    let mut command = Command::new(env!("CARGO"));
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        command.env("RUST_TEST_THREADS", (cores * TESTS_A_CORE).to_string());
    }
    // Comments have no programs in them (docs/STYLE.md), so no crate is searched for any.
    command.args(["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]).args(CONSOLE);
    run(command.current_dir(root))
}

/// Builds the program first: trials run the one that stands beside them.
fn trials(root: &Path, arguments: &[String]) -> ExitCode {
    if !cargo(root, &["build", "--release", "--quiet", "--package", "server"]) {
        return ExitCode::FAILURE;
    }
    let mut arguments = arguments.to_vec();
    let is_named = |word: &str| arguments.iter().any(|argument| argument == word);
    if is_named("upgrade") && !is_named("--next") {
        // It stands for the next release.
        let next = ["--features", "next-level", "--target-dir", "target/next"];
        if !cargo(root, &[&["build", "--release", "--quiet", "--package", "server"][..], &next].concat()) {
            return ExitCode::FAILURE;
        }
        let next = root.join("target/next/release/drystone");
        arguments.extend(["--next".to_owned(), next.display().to_string()]);
    }
    tool(root, "trials", &arguments)
}

/// Runs one of the tools that are programs of their own.
fn tool(root: &Path, name: &str, arguments: &[String]) -> ExitCode {
    let mut all = vec!["run", "--release", "--quiet", "--package", name, "--"];
    all.extend(arguments.iter().map(String::as_str));
    if cargo(root, &all) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
