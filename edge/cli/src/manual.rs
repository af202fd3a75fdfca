//! `drystone manual`: the manual pages and the completions of shells, from the same tables as `--help`.
//!
//! Hidden: packages ask for it when they are made.

use crate::arguments::ManualOptions;
use crate::examples;
use clap_complete::shells::{Bash, Fish, Zsh};
use failure::Failure;
use std::fs;
use std::path::Path;

/// What clap does not know, for the page of the program itself.
const FILES: &str = "\
.SH FILES
.TP
/etc/drystone/host.toml
Configuration of the host that the systemd unit starts.
.TP
/var/lib/drystone
Directory of disks, lock and sockets of that host.
";

/// Writes all pages and completions.
///
/// # Errors
/// When a file cannot be written.
pub fn run(options: &ManualOptions) -> Result<(), Failure> {
    write(&options.out)
        .map_err(|error| Failure::failed(format!("write the manual to {}", options.out.display()), error))
}

fn write(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = examples::command();
    clap_complete::generate_to(Bash, &mut command, "drystone", folder)?;
    clap_complete::generate_to(Zsh, &mut command, "drystone", folder)?;
    clap_complete::generate_to(Fish, &mut command, "drystone", folder)?;
    command.build();
    pages(&command, folder, FILES)
}

/// The page of a command, and those of the commands below it.
fn pages(command: &clap::Command, folder: &Path, more: &str) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        pages(below, folder, "")?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .title(name.to_uppercase())
        .source(format!("drystone {}", api::program::RELEASE))
        .manual("User Commands")
        .render(&mut page)?;
    fs::write(
        folder.join(format!("{name}.1")),
        with_section_of_examples(&String::from_utf8_lossy(&page)) + more,
    )
}

/// Gives the examples, which clap_mangen puts below everything else, a section of their own, in which lines stay as they are.
fn with_section_of_examples(page: &str) -> String {
    let Some((above, below)) = page.split_once("\n.SH EXTRA\nExamples:\n") else { return page.to_owned() };
    let end = below.split_inclusive('\n').take_while(|line| line.starts_with("  ")).map(str::len).sum();
    let (examples, notes) = below.split_at(end);
    format!("{above}\n.SH EXAMPLES\n.nf\n{examples}.fi\n{notes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::MANUAL;
    use std::path::PathBuf;

    #[test]
    fn every_command_has_a_page_with_examples_and_every_shell_its_completion() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("new");
        run(&ManualOptions { out: out.clone() }).expect("it is written");
        let read =
            |name: &str| fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (page, option) in [
            ("drystone.1", "\\-\\-json"),
            ("drystone-disk-create.1", "\\-\\-policy"),
            ("drystone-cluster-certificates-drop-authority.1", "\\-\\-confirm"),
            ("drystone-lab-run.1", "\\-\\-expect"),
        ] {
            let text = read(page);
            assert!(text.contains(option), "{page} lacks {option}:\n{text}");
            let (_, examples) = text.split_once(".SH EXAMPLES\n.nf\n  drystone ").expect("it has examples");
            assert!(examples.contains("\n.fi\n"), "{page}:\n{text}");
        }
        assert!(read("drystone.1").ends_with(FILES));
        for name in ["drystone.bash", "_drystone", "drystone.fish"] {
            let text = read(name);
            for word in ["histogram", "drop-authority", "detach-clients"] {
                assert!(text.contains(word), "{name} lacks {word}");
            }
        }
        let hidden = [format!("drystone-{MANUAL}.1"), format!("drystone-{}.1", api::program::WATCHER)];
        assert!(hidden.iter().all(|page| !out.join(page).exists()), "pages are of what people use");
        run(&ManualOptions { out: PathBuf::from("/proc/nowhere") }).expect_err("nothing can be made there");
    }
}
