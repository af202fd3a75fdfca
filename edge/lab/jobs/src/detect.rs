//! Which dialect a text is: by its content first, by its name second.

use crate::Dialect;

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
    let mut words = line.split_whitespace();
    let command = words.next().unwrap_or_default().trim_start_matches(['.', '&', '/', '\\']);
    let command = command.rsplit(['/', '\\']).next().unwrap_or_default();
    if command.trim_end_matches(".exe").starts_with("diskspd") || line.contains("diskspd.exe ") {
        return Some(Dialect::DiskSpd);
    }
    if command == "fio" || line.starts_with("--name=") || line.contains(" --name=") {
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
        check("x", "<Profile><TimeSpans/></Profile>", Some(Dialect::DiskSpdXml));
        check("x", "* comment\ncompratio=2\nsd=sd1,lun=/dev/sdb\n", Some(Dialect::Vdbench));
        check("x", "Version 1.1.0\n'TEST SETUP ====\n", Some(Dialect::Iometer));
        check("x.vdb", "data_errors=5\n", Some(Dialect::Vdbench));
        check("x", "hello\n", None);
        check("x", "", None);
    }
}
