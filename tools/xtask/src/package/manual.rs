//! The manual page and the completion for bash, both from what the program itself says to `-h`.
//!
//! The program is asked for its own help and for that of each command that it lists, so nothing is written twice and no
//! crate of the program is needed here. Relies on how clap lays its help out; what cannot be read is an error.

use super::about::About;
use super::outside::output;
use std::path::Path;
use std::process::Command;

/// Commands below commands: `drystone lab plan` is three deep. More means that the help is misread.
const DEPTH_MAX: usize = 4;

/// All that the program says of itself.
pub struct Manual {
    pages: Vec<Page>,
}

/// What the program says of one command.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    /// `drystone disk create`.
    name: String,
    about: String,
    usage: Vec<String>,
    commands: Vec<Entry>,
    arguments: Vec<Entry>,
    options: Vec<Entry>,
    /// What stands below all that.
    after: Vec<String>,
}

/// A line of a list: `--size <SIZE>` and what it is for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entry {
    term: String,
    text: String,
}

impl Manual {
    /// Asks the program.
    pub fn of(program: &Path) -> Result<Manual, String> {
        let mut pages = Vec::new();
        ask(program, &mut vec!["drystone".to_owned()], &mut pages)?;
        if pages.len() == 1 {
            return Err("the program lists no commands".to_owned());
        }
        Ok(Manual { pages })
    }

    /// `drystone(1)` for troff.
    pub fn page(&self, about: &About) -> String {
        let first = &self.pages[0];
        let mut all =
            ".\\\" What `drystone -h` says, and each of its commands; made by `cargo xtask package`.\n"
                .to_owned();
        all += &format!(".TH DRYSTONE 1 \"\" \"drystone {}\" \"User Commands\"\n", escape(&about.version));
        all += &format!(".SH NAME\ndrystone \\- {}\n.SH SYNOPSIS\n", escape(&first.about));
        all +=
            &first.usage.iter().map(|line| format!("{}\n", escape(line))).collect::<Vec<_>>().join(".br\n");
        all += ".SH DESCRIPTION\n";
        all += "One program is both the storage host (\\fBdrystone host\\fR) and the command line that asks it.\n";
        list(&mut all, ".SH OPTIONS\n", &first.options);
        all += ".SH COMMANDS\n";
        for page in &self.pages[1..] {
            all += &format!(".SS {}\n{}.\n", escape(&page.name), escape(&page.about));
            for usage in &page.usage {
                all += &format!(".PP\n.RS\n{}\n.RE\n", escape(usage));
            }
            let is_of_all = |one: &Entry| first.options.contains(one) || one.term == "-h, --help";
            let options: Vec<&Entry> = page.options.iter().filter(|one| !is_of_all(one)).collect();
            list(&mut all, "", &page.arguments);
            list(&mut all, "", options);
        }
        all += ".SH NOTES\n";
        for line in &first.after {
            all += &if line.is_empty() { ".PP\n".to_owned() } else { format!("{}\n", escape(line)) };
        }
        all += ".SH FILES\n.TP\n/etc/drystone/host.toml\nThe configuration of the host that the systemd unit starts.\n";
        all += ".TP\n/var/lib/drystone\nThe directory of disks, the lock and the sockets.\n";
        all
    }

    /// A completion that knows every command with its options; files elsewhere.
    pub fn completion(&self) -> String {
        let paths: Vec<String> = self.pages[1..].iter().map(|page| format!("\"{}\"", page.name)).collect();
        let words = |page: &Page| {
            let commands = page.commands.iter().map(|entry| entry.term.clone());
            let options = page.options.iter().flat_map(|entry| flags(&entry.term));
            commands.chain(options).collect::<Vec<_>>().join(" ")
        };
        let cases: Vec<String> = self
            .pages
            .iter()
            .map(|page| format!("    \"{}\") words=\"{}\" ;;\n", page.name, words(page)))
            .collect();
        format!(
            "# Completion of `drystone` for bash: commands and options; made by `cargo xtask package`.\n\
             _drystone() {{\n  local word path=drystone words=\n  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n\
             \x20   case \"$path $word\" in\n      {}) path=\"$path $word\" ;;\n    esac\n  done\n  case \"$path\" in\n{}  esac\n\
             \x20 mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\")\n}}\n\
             complete -o default -F _drystone drystone\n",
            paths.join(" | "),
            cases.concat()
        )
    }
}

/// Adds the page of a command, and those of the commands below it.
fn ask(program: &Path, path: &mut Vec<String>, pages: &mut Vec<Page>) -> Result<(), String> {
    let name = path.join(" ");
    if path.len() > DEPTH_MAX {
        return Err(format!("`{name} -h`: there are no commands so deep"));
    }
    let mut command = Command::new(program);
    command.args(&path[1..]).arg("-h").env_remove("DRYSTONE_API");
    let page = read(&name, &output(&mut command)?)?;
    let below: Vec<String> = page.commands.iter().map(|entry| entry.term.clone()).collect();
    pages.push(page);
    for command in below {
        path.push(command);
        ask(program, path, pages)?;
        path.pop();
    }
    Ok(())
}

/// Reads what clap prints.
fn read(name: &str, text: &str) -> Result<Page, String> {
    let mut lines = text.lines().peekable();
    let mut page = Page { name: name.to_owned(), ..Page::default() };
    page.about = lines.next().unwrap_or_default().trim().to_owned();
    let mut section = "";
    for line in lines {
        match line {
            "Commands:" | "Arguments:" | "Options:" => section = line,
            _ if line.starts_with("Usage:") => {
                section = "Usage:";
                page.usage.push(line["Usage:".len()..].trim().to_owned());
            }
            _ if line.trim().is_empty() && section != "after" => {}
            _ if !line.starts_with(' ') && !section.is_empty() => {
                section = "after";
                page.after.push(line.to_owned());
            }
            _ => match section {
                "Usage:" => page.usage.push(line.trim().to_owned()),
                "Commands:" => add(&mut page.commands, line),
                "Arguments:" => add(&mut page.arguments, line),
                "Options:" => add(&mut page.options, line),
                "after" => page.after.push(line.to_owned()),
                _ => return Err(format!("`{name} -h` has a line of no part: {line}")),
            },
        }
    }
    if page.about.is_empty() || page.usage.is_empty() || page.options.is_empty() {
        return Err(format!("`{name} -h` lacks a part: it says\n{text}"));
    }
    // Each command has `help` below it, which says the same again.
    page.commands.retain(|entry| entry.term != "help");
    Ok(page)
}

/// An entry begins at most six columns in (`  -h, --help`, `      --json`); its text may stand on lines of their own.
fn add(entries: &mut Vec<Entry>, line: &str) {
    let indent = line.len() - line.trim_start().len();
    let line = line.trim();
    match entries.last_mut() {
        Some(last) if indent > 6 => {
            last.text += if last.text.is_empty() { "" } else { " " };
            last.text += line;
        }
        _ => {
            let (term, text) = line.split_once("  ").unwrap_or((line, ""));
            entries.push(Entry { term: term.to_owned(), text: text.trim().to_owned() });
        }
    }
}

fn list<'a>(all: &mut String, heading: &str, entries: impl IntoIterator<Item = &'a Entry>) {
    all.push_str(heading);
    for entry in entries {
        *all += &format!(".TP\n\\fB{}\\fR\n{}\n", escape(&entry.term), escape(&entry.text));
    }
}

/// The flags of `-t, --target <TARGET>`.
fn flags(term: &str) -> Vec<String> {
    let words = term.split([' ', ',', '=']).filter(|word| word.starts_with('-'));
    words.map(str::to_owned).collect()
}

/// What troff takes as it is: no line may begin with a dot or a quote.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('…', "...");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Virtual disks

Usage: drystone disk [OPTIONS] <COMMAND>
       drystone disk list

Commands:
  create  Make a disk
  help    Print this message

Options:
      --api <ADDRESS>
          Where the host is
          [default: here]
  -t, --to <TO>  Somewhere
  -h, --help     Print help

Exit codes: 0 done.

Sizes: 512.
";

    fn manual() -> Manual {
        Manual {
            pages: vec![
                read("drystone", HELP).expect("a page"),
                read("drystone disk", HELP).expect("a page"),
            ],
        }
    }

    #[test]
    fn help_is_read_in_both_of_its_forms() {
        let page = read("drystone disk", HELP).expect("a page");
        let entry = |term: &str, text: &str| Entry { term: term.to_owned(), text: text.to_owned() };
        assert_eq!(page.usage, ["drystone disk [OPTIONS] <COMMAND>", "drystone disk list"]);
        assert_eq!(page.commands, [entry("create", "Make a disk")]);
        assert_eq!(
            page.options,
            [
                entry("--api <ADDRESS>", "Where the host is [default: here]"),
                entry("-t, --to <TO>", "Somewhere"),
                entry("-h, --help", "Print help"),
            ]
        );
        assert_eq!(page.after, ["Exit codes: 0 done.", "", "Sizes: 512."]);
        read("x", "It says nothing\n").expect_err("no parts");
    }

    #[test]
    fn the_page_and_the_completion_have_every_command_and_option() {
        let about = About {
            version: "1-1".to_owned(),
            architecture: "amd64".to_owned(),
            seconds: 0,
            date: String::new(),
        };
        let page = manual().page(&about);
        assert!(page.contains(".TP\n\\fB\\-t, \\-\\-to <TO>\\fR\nSomewhere\n"), "{page}");
        assert!(page.contains(".SS drystone disk\n"), "{page}");
        let completion = manual().completion();
        assert!(
            completion.contains("\"drystone disk\") words=\"create --api -t --to -h --help\" ;;"),
            "{completion}"
        );
    }
}
