//! The guides as what is typed: what users read is what trials run.

use crate::failure::Failure;

/// How a cluster is made and used.
pub const CLUSTER: &str = include_str!("../../../docs/guide/cluster.md");
/// What is done day by day.
pub const OPERATING: &str = include_str!("../../../docs/guide/operating.md");

/// The commands below a heading of a guide, one by one, without what is said beside them.
///
/// # Errors
/// When there is no such heading, or no command below it.
pub fn commands(guide: &str, heading: &str) -> Result<Vec<String>, Failure> {
    let title = format!("## {heading}");
    let below = guide.lines().skip_while(|line| **line != title).skip(1);
    let section = below.take_while(|line| !line.starts_with("## "));
    let mut commands: Vec<String> = Vec::new();
    let (mut is_typed, mut goes_on) = (false, false);
    for line in section {
        if line.starts_with("```") {
            is_typed = line == "```sh";
            continue;
        }
        let line = line.split_once("  #").map_or(line, |(command, _)| command).trim();
        if !is_typed || line.is_empty() {
            continue;
        }
        let part = line.strip_suffix('\\').unwrap_or(line).trim();
        match commands.last_mut().filter(|_| goes_on) {
            Some(last) => *last = format!("{last} {part}"),
            None => commands.push(part.to_owned()),
        }
        goes_on = line.ends_with('\\');
    }
    match commands.is_empty() {
        true => Err(Failure::Refused(format!("the guide has no commands below `{heading}`"))),
        false => Ok(commands),
    }
}

/// The words of a command of `drystone`, with those replaced that stand for something else at each reader's.
///
/// # Errors
/// When it is another program's.
pub fn words(command: &str, replaced: &[(&str, &str)]) -> Result<Vec<String>, Failure> {
    let mut words = command.split_whitespace();
    if words.next() != Some("drystone") {
        return Err(Failure::Refused(format!("the guide has `{command}`, which is none of drystone's")));
    }
    let meant = |word: &str| {
        let found = replaced.iter().find(|(begins, _)| word.starts_with(begins));
        found.map_or_else(|| word.to_owned(), |(_, meant)| (*meant).to_owned())
    };
    Ok(words.map(meant).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_that_trials_type_stand_in_the_guide() {
        let made = commands(CLUSTER, "Make it").expect("commands");
        assert!(made[0].starts_with("drystone cluster init --config /etc/drystone/host.toml"), "{made:?}");
        assert!(made.iter().any(|line| line.starts_with("drystone host join ")), "{made:?}");
        // The section must hold one way to make a cluster: trials type all of its commands.
        made.iter().for_each(|line| drop(words(line, &[]).expect("all are drystone's")));
        let inits = made.iter().filter(|line| line.starts_with("drystone cluster init ")).count();
        assert_eq!(inits, 1, "{made:?}");
        let used = commands(CLUSTER, "Use it").expect("commands");
        for wanted in [
            "drystone disk create web ",
            "drystone disk show web",
            "drystone host remove b",
            "drystone host token",
        ] {
            assert!(used.iter().any(|line| line.starts_with(wanted)), "{wanted}: {used:?}");
        }
        assert!(used.iter().all(|line| !line.contains('#') && !line.ends_with('\\')), "{used:?}");
        commands(CLUSTER, "No such heading").expect_err("nothing there");
        let replaced = commands(OPERATING, "A device died").expect("commands");
        for wanted in ["systemctl restart drystone", "drystone device replace "] {
            assert!(replaced.iter().any(|line| line.starts_with(wanted)), "{wanted}: {replaced:?}");
        }
    }

    #[test]
    fn words_that_stand_for_something_else_are_replaced() {
        let typed =
            words("drystone host join --config /etc/x TOKEN-1", &[("/etc/", "/t/x"), ("TOKEN", "abc")]);
        assert_eq!(typed.expect("ours").join(" "), "host join --config /t/x abc");
        words("rm -rf /", &[]).expect_err("not ours");
    }
}
