//! Which dialect a text is: by its content first, by its name second.

use crate::Dialect;
use std::borrow::Cow;

/// The dialect that this text is most likely written in. The name is asked only where the text does not tell.
pub fn detect(name: &str, text: &str) -> Option<Dialect> {
    by_content(text).or_else(|| by_extension(name))
}

fn by_content(text: &str) -> Option<Dialect> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['*', '#', ';']) && !line.starts_with("//"))
        .take(200)
        .peekable();
    let first = lines.peek()?.to_ascii_lowercase();
    if first.starts_with("version ") || first.starts_with('\'') {
        return Some(Dialect::Iometer);
    }
    if first.starts_with("<?xml") || first.starts_with("<!--") || first.starts_with("<profile") {
        return Some(Dialect::DiskSpdXml);
    }
    lines.find_map(|line| by_line(&line.to_ascii_lowercase()))
}

/// What one line in lower case tells.
fn by_line(line: &str) -> Option<Dialect> {
    if line.starts_with('[') && line.ends_with(']') {
        return Some(Dialect::Fio);
    }
    if let Some(tool) = tool_called(line) {
        return Some(tool);
    }
    let line = &plain_dash(line).unwrap_or_else(|| line.to_owned());
    if line.starts_with("--") || line.contains(" --name=") {
        return Some(Dialect::Fio);
    }
    let definitions = ["sd=", "wd=", "rd=", "hd=", "fsd=", "fwd=", "rg="];
    if definitions.iter().any(|definition| line.starts_with(definition)) {
        return Some(Dialect::Vdbench);
    }
    let flag = line.strip_prefix('-').and_then(|rest| rest.chars().next());
    if flag.is_some_and(|flag| "bBcdwotrsWCSLZ".to_ascii_lowercase().contains(flag)) && line.contains(' ') {
        return Some(Dialect::DiskSpd);
    }
    None
}

/// The tool that a line of a shell calls: its program behind `sudo`, `VAR=value`, a prompt and folders, before any option.
fn tool_called(line: &str) -> Option<Dialect> {
    if line.starts_with('[') {
        return None;
    }
    // A folder of Windows may have blanks.
    if line.contains("diskspd.exe") {
        return Some(Dialect::DiskSpd);
    }
    let before_options = line.split_whitespace().take_while(|word| !is_option(word));
    before_options.take(8).find_map(|word| match program_of(word).as_str() {
        "fio" => Some(Dialect::Fio),
        name if name.starts_with("diskspd") => Some(Dialect::DiskSpd),
        _ => None,
    })
}

fn is_option(word: &str) -> bool {
    word.starts_with(['-', '\u{2013}', '\u{2014}', '\u{2212}'])
}

/// The name of a program without folders, quotes and `.exe`, in lower case.
pub(crate) fn program_of(word: &str) -> String {
    let name = word.trim_matches(['"', '\'', '&']).rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".exe").map_or(name.clone(), str::to_owned)
}

/// The word of a web page whose hyphens became dashes, as it was typed: `–b8K` is `-b8K`, and `—name` is `--name`.
pub(crate) fn plain_dash(word: &str) -> Option<String> {
    let hyphens = match word.chars().next()? {
        '\u{2010}' | '\u{2011}' | '\u{2013}' | '\u{2212}' => "-",
        '\u{2014}' => "--",
        _ => return None,
    };
    let rest: String = word.chars().skip(1).collect();
    // Two dashes are two hyphens.
    Some(format!("{hyphens}{}", plain_dash(&rest).unwrap_or(rest)))
}

/// Whether a text is a command line of fio or DiskSPD rather than the name of a file: it calls one of them, or begins with an
/// option.
pub fn is_command_line(text: &str) -> bool {
    let text = unfenced(text);
    let line = text.trim_start().lines().next().unwrap_or_default().to_ascii_lowercase();
    line.contains(char::is_whitespace) && (tool_called(&line).is_some() || is_option(&line))
}

/// The text of a block of Markdown without its fences; lines keep their numbers.
pub(crate) fn unfenced(text: &str) -> Cow<'_, str> {
    if !text.trim_start().starts_with("```") {
        return text.into();
    }
    let lines = text.lines().map(|line| if line.trim_start().starts_with("```") { "" } else { line });
    lines.collect::<Vec<_>>().join("\n").into()
}

fn by_extension(name: &str) -> Option<Dialect> {
    let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
    match extension.as_str() {
        "fio" | "job" | "ini" => Some(Dialect::Fio),
        "diskspd" | "cmd" | "bat" | "ps1" => Some(Dialect::DiskSpd),
        "xml" => Some(Dialect::DiskSpdXml),
        "vdb" | "vdbench" | "cfg" | "parm" => Some(Dialect::Vdbench),
        "icf" => Some(Dialect::Iometer),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_before_the_name_does() {
        let check = |name: &str, text: &str, expected: Option<Dialect>| {
            assert_eq!(detect(name, text), expected, "{name} {text}");
        };
        check("x.icf", "[global]\nbs=4k\n", Some(Dialect::Fio));
        check("x", "; comment\n[job one]\n", Some(Dialect::Fio));
        check("x", "fio --name=a --rw=read --size=1g\n", Some(Dialect::Fio));
        check("x", "diskspd -b8K -d60 x.dat\n", Some(Dialect::DiskSpd));
        check("x", ".\\diskspd.exe -b8K -d60 x.dat\n", Some(Dialect::DiskSpd));
        check("x", "-b8K -d60 x.dat\n", Some(Dialect::DiskSpd));
        check("x", "\u{2013}b8K \u{2013}d60 x.dat\n", Some(Dialect::DiskSpd));
        check("x", "\"C:\\Program Files\\diskspd.exe\" -b8K -d60 x.dat\n", Some(Dialect::DiskSpd));
        check("x", "PS C:\\> .\\DiskSpd.exe -b8K -d60 x.dat\n", Some(Dialect::DiskSpd));
        check("x", "sudo /usr/bin/fio -name=a -rw=read\n", Some(Dialect::Fio));
        check("x", "$ fio \u{2013}\u{2013}name=a --rw=read\n", Some(Dialect::Fio));
        check("x", "<Profile><TimeSpans/></Profile>", Some(Dialect::DiskSpdXml));
        check("x", "* comment\ncompratio=2\nsd=sd1,lun=/dev/sdb\n", Some(Dialect::Vdbench));
        check("x", "Version 1.1.0\n'TEST SETUP ====\n", Some(Dialect::Iometer));
        check("x.vdb", "data_errors=5\n", Some(Dialect::Vdbench));
        check("x", "hello\n", None);
        check("x", "", None);
    }
}
