//! Examples of every command, shown below its options by `--help` and in its manual page.
//!
//! They stand in one table, so that a test can look for commands without examples and parse each one.

use crate::arguments::Cli;
use clap::CommandFactory;

/// By the words that name a command; none for the program itself. In the order of `--help`.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("", &["drystone demo", "drystone disk create web 100GiB --policy failures_to_tolerate=1"]),
    ("demo", &["drystone demo --exit", "drystone demo --hosts 3 --seconds 30"]),
    ("demo host", &["drystone demo host pause b", "drystone demo host kill c --dir /var/tmp/demo"]),
    ("host", &["drystone host --config /etc/drystone/host.toml", "drystone host list"]),
    ("host list", &["drystone host list --sort free", "drystone host list --sort state --json"]),
    (
        "host maintenance",
        &[
            "drystone host maintenance host-2 --mode ensure-accessibility --dry-run",
            "drystone host maintenance host-2 --end",
        ],
    ),
    ("host remove", &["drystone host remove host-4", "drystone host remove host-4 --yes --json"]),
    ("host leave", &["drystone host leave --dry-run", "drystone host leave --yes"]),
    ("host token", &["drystone host token", "drystone host token --again host-2 --for 15m"]),
    (
        "host join",
        &[
            "drystone host join --config /etc/drystone/host.toml TOKEN",
            "drystone host join --config /etc/drystone/host.toml --replace TOKEN",
        ],
    ),
    (
        "host etcd",
        &["drystone host etcd --config /etc/drystone/host.toml", "drystone host etcd --config ./host.toml"],
    ),
    ("host start", &["drystone host start b", "drystone host start b --demo /var/tmp/demo"]),
    ("host stop", &["drystone host stop b", "drystone host stop b --demo /var/tmp/demo"]),
    ("host pause", &["drystone host pause b", "drystone host pause b --demo /var/tmp/demo"]),
    ("host kill", &["drystone host kill b", "drystone host kill b --demo /var/tmp/demo"]),
    ("device", &["drystone device list --sort free", "drystone device add /dev/disk/by-id/nvme-one"]),
    (
        "device list",
        &[
            "drystone device list --sort free",
            "drystone device list --cluster --json",
            "drystone device list --unclaimed --cluster",
        ],
    ),
    (
        "device add",
        &[
            "drystone device add --log /dev/disk/by-id/nvme-one /dev/disk/by-id/nvme-two",
            "drystone device add --group 1f2e3d4c5b6a7988 /dev/disk/by-id/nvme-three",
            "drystone device add --host host-2 --log /dev/disk/by-id/nvme-one /dev/disk/by-id/nvme-two",
        ],
    ),
    (
        "device evacuate",
        &[
            "drystone device evacuate /dev/disk/by-id/nvme-two --dry-run",
            "drystone device evacuate host-2:/dev/sdc --cancel",
        ],
    ),
    (
        "device replace",
        &[
            "drystone device replace /dev/disk/by-id/nvme-two /dev/disk/by-id/nvme-four --dry-run",
            "drystone device replace /dev/sdb /dev/sdb --confirm /dev/sdb",
        ],
    ),
    (
        "device remove",
        &[
            "drystone device remove /dev/disk/by-id/nvme-two",
            "drystone device remove /dev/disk/by-id/nvme-one --group",
            "drystone device remove host-2:/dev/sdc",
        ],
    ),
    ("disk", &["drystone disk create web 100GiB", "drystone disk show web"]),
    (
        "disk create",
        &[
            "drystone disk create web 100GiB --policy gold",
            "drystone disk create db 1TiB --policy gold,stripes=4 --dry-run",
            "drystone disk create web 100GiB --unless-there --json",
        ],
    ),
    (
        "disk list",
        &["drystone disk list --sort allocated", "drystone disk list --policy gold --trouble --json"],
    ),
    ("disk show", &["drystone disk show web", "drystone disk show web --json"]),
    (
        "disk resize",
        &["drystone disk resize web 200GiB", "drystone disk resize web 50GiB --confirm web --detach-clients"],
    ),
    ("disk rename", &["drystone disk rename web web-old", "drystone disk rename web-new web --json"]),
    ("disk resolve", &["drystone disk show web", "drystone disk resolve web --keep host-2 --confirm web"]),
    (
        "disk allow",
        &["drystone disk allow web --person ann --host host-1", "drystone disk allow web --anybody"],
    ),
    (
        "disk set",
        &[
            "drystone disk set web read-only on",
            "drystone disk set web iops_limit=1000 bytes_limit=64MiB/s",
            "drystone disk set web failures_to_tolerate=2",
            "drystone disk set web method=parity",
            "drystone disk set web move pause",
            "drystone disk set web policy=gold",
        ],
    ),
    (
        "disk delete",
        &[
            "drystone disk delete web --confirm web",
            "drystone disk delete web --confirm web --detach-clients",
        ],
    ),
    (
        "disk import",
        &[
            "drystone disk import web debian-12.qcow2",
            "drystone disk import web disk0 --format raw --confirm web --detach-clients",
            "drystone disk import restored tuesday.delta --apply --confirm restored",
        ],
    ),
    (
        "disk export",
        &[
            "drystone disk export web web.raw",
            "drystone disk export web@monday monday.qcow2 --format qcow2",
            "drystone disk export web@tuesday tuesday.delta --since monday",
            "drystone disk export web@tuesday tuesday.qcow2 --since monday --format qcow2 --backing monday.qcow2",
        ],
    ),
    (
        "disk clone",
        &[
            "drystone disk clone golden@base web-1",
            "drystone disk clone web web-test --policy single --size 200GiB",
        ],
    ),
    ("disk flatten", &["drystone disk flatten web-1", "drystone disk flatten web-1 --json"]),
    ("disk rewrite", &["drystone disk rewrite web", "drystone disk rewrite web --json"]),
    ("disk snapshot", &["drystone disk snapshot create web monday", "drystone disk snapshot list web"]),
    (
        "disk snapshot create",
        &[
            "drystone disk snapshot create web monday",
            "drystone disk snapshot create web before-upgrade --json",
            "drystone disk snapshot create web db --name before-upgrade",
            "drystone disk snapshot create web monday --freeze-by /usr/local/bin/quiesce",
        ],
    ),
    ("disk snapshot list", &["drystone disk snapshot list web", "drystone disk snapshot list web --json"]),
    (
        "disk snapshot changes",
        &[
            "drystone disk snapshot changes web tuesday --since monday",
            "drystone disk snapshot changes web monday --json",
        ],
    ),
    (
        "disk snapshot rollback",
        &[
            "drystone disk snapshot rollback web monday --confirm web",
            "drystone disk snapshot rollback web monday --confirm web --keep before-repair --detach-clients",
            "drystone disk snapshot rollback web monday --confirm web --no-keep --json",
        ],
    ),
    (
        "disk snapshot rename",
        &[
            "drystone disk snapshot rename web monday before-upgrade",
            "drystone disk snapshot rename web hourly-2026-11-29T07-00Z good --json",
        ],
    ),
    (
        "disk snapshot pin",
        &[
            "drystone disk snapshot pin web hourly-2026-11-29T07-00Z",
            "drystone disk snapshot pin web daily-2026-11-29T00-00Z --json",
        ],
    ),
    (
        "disk snapshot unpin",
        &[
            "drystone disk snapshot unpin web hourly-2026-11-29T07-00Z",
            "drystone disk snapshot unpin web daily-2026-11-29T00-00Z --json",
        ],
    ),
    (
        "disk snapshot delete",
        &["drystone disk snapshot list web", "drystone disk snapshot delete web monday --confirm monday"],
    ),
    ("disk estimate", &["drystone disk estimate web", "drystone disk estimate web --json"]),
    (
        "disk histogram",
        &["drystone disk histogram web", "drystone disk histogram web --since 5m --kind latency"],
    ),
    (
        "attach",
        &[
            "drystone attach web --format qemu",
            "drystone attach web --host host-2 --error-after 30s",
            "drystone attach web --by-name --format libvirt-arguments",
        ],
    ),
    ("policy", &["drystone policy list", "drystone policy show default"]),
    ("policy list", &["drystone policy list", "drystone policy list --json"]),
    ("policy show", &["drystone policy show gold", "drystone policy show default --json"]),
    (
        "policy explain",
        &[
            "drystone policy explain gold",
            "drystone policy explain method=parity failures_to_tolerate=1 --size 2TiB --json",
        ],
    ),
    (
        "policy create",
        &[
            "drystone policy create gold failures_to_tolerate=2",
            "drystone policy create wide gold stripes=4 iops_limit=20000",
            "drystone policy create safe gold --snapshots 'hourly keep 24, daily keep 7'",
        ],
    ),
    (
        "policy set",
        &[
            "drystone policy set gold iops_limit=5000",
            "drystone policy set gold failures_to_tolerate=2",
            "drystone policy set gold compression=lz4",
            "drystone policy set gold read_locality=spread --json",
            "drystone policy set gold --snapshots 'every 15m keep 8'",
        ],
    ),
    ("policy delete", &["drystone policy delete gold", "drystone policy delete wide --json"]),
    ("cluster", &["drystone cluster show", "drystone cluster set repair-delay 90m"]),
    (
        "cluster init",
        &[
            "drystone cluster init --config /etc/drystone/host.toml --dry-run",
            "drystone cluster init --config /etc/drystone/host.toml --etcd managed --name prod",
        ],
    ),
    ("cluster certificates", &["drystone cluster certificates list", "drystone cluster certificates renew"]),
    (
        "cluster certificates list",
        &["drystone cluster certificates list", "drystone cluster certificates list --json"],
    ),
    (
        "cluster certificates renew",
        &[
            "drystone cluster certificates renew",
            "drystone cluster certificates renew --api unix:/run/api.sock",
        ],
    ),
    (
        "cluster certificates add-authority",
        &[
            "drystone cluster certificates add-authority",
            "drystone cluster certificates add-authority --api https://10.0.0.2:7443",
        ],
    ),
    (
        "cluster certificates drop-authority",
        &[
            "drystone cluster certificates drop-authority 3f2a…",
            "drystone cluster certificates drop-authority 3f2a… --confirm 3f2a…",
        ],
    ),
    ("cluster show", &["drystone cluster show", "drystone cluster show --json"]),
    ("cluster set", &["drystone cluster set repair-delay 90m", "drystone cluster set balance reactive"]),
    ("cluster balance", &["drystone cluster balance", "drystone cluster balance --json"]),
    (
        "cluster estimate",
        &["drystone cluster estimate --start", "drystone cluster estimate --start --sample 1%"],
    ),
    ("cluster directory", &["drystone cluster directory", "drystone cluster directory --json"]),
    (
        "cluster rebuild-directory",
        &[
            "drystone cluster rebuild-directory --dry-run",
            "drystone cluster rebuild-directory --without host-4 --accept web",
        ],
    ),
    ("cluster upgrade", &["drystone cluster upgrade --dry-run", "drystone cluster upgrade --yes"]),
    ("person", &["drystone person token ann --role operator", "drystone person list"]),
    (
        "person token",
        &["drystone person token ann --role operator", "drystone person token bob --role admin --for 15m"],
    ),
    ("person list", &["drystone person list --sort expires", "drystone person list --json"]),
    ("person remove", &["drystone person remove ann", "drystone person remove ann --yes"]),
    ("login", &["drystone login TOKEN", "drystone login --replace TOKEN --identity ~/.drystone"]),
    ("whoami", &["drystone whoami", "drystone whoami --json --api https://10.0.0.1:7443"]),
    ("console", &["drystone console", "drystone console --api https://10.0.0.1:7443"]),
    ("health", &["drystone health", "drystone health silence host.away --about host-2 --for 24h"]),
    (
        "health silence",
        &[
            "drystone health silence host.away --about host-2 --for 24h --reason \"new fans\"",
            "drystone health silence space.low --for 7d",
        ],
    ),
    ("health silences", &["drystone health silences", "drystone health silences --json"]),
    (
        "health unsilence",
        &["drystone health unsilence host.away --about host-2", "drystone health unsilence space.low"],
    ),
    ("status", &["drystone status", "drystone status --json"]),
    ("events", &["drystone events --since 2h --about web", "drystone events --kind copy --follow"]),
    ("what-if", &["drystone what-if lose-host host-2", "drystone what-if set-policy web gold"]),
    (
        "what-if lose-host",
        &["drystone what-if lose-host host-2", "drystone what-if lose-host host-2 host-3 --json"],
    ),
    (
        "what-if lose-domain",
        &["drystone what-if lose-domain rack-1", "drystone what-if lose-domain rack-1 --json"],
    ),
    (
        "what-if add-host",
        &[
            "drystone what-if add-host --like host-2",
            "drystone what-if add-host --capacity 4TiB --capacity 4TiB --fault-domain rack-2",
        ],
    ),
    (
        "what-if set-policy",
        &[
            "drystone what-if set-policy web gold",
            "drystone what-if set-policy --all default",
            "drystone what-if set-policy --followers gold gold,method=parity",
        ],
    ),
    (
        "series",
        &[
            "drystone series",
            "drystone series disk/web --since 10m --rows 60",
            "drystone series device/host-2:/dev/sdc --since 7d --ago 7d --json",
        ],
    ),
    ("resync", &["drystone resync", "drystone resync --json"]),
    ("tasks", &["drystone tasks", "drystone tasks --json"]),
    ("tasks stop", &["drystone tasks stop move/web", "drystone tasks stop maintenance/host-2 --json"]),
    (
        "support-bundle",
        &["drystone support-bundle", "drystone support-bundle --cluster --out case-4711.tar.zst"],
    ),
    ("top", &["drystone top --sort write-latency", "drystone top --once --json"]),
    ("openapi", &["drystone openapi > drystone.json", "drystone openapi --json"]),
    (
        "lab",
        &["drystone lab run job.fio --target disk:test --size 10GiB", "drystone lab audit results/*.json"],
    ),
    (
        "lab run",
        &[
            "drystone lab run job.fio --target disk:web",
            "drystone lab run 'diskspd -b8K -d60 -o32 -t4 -r -w30 x' -t /mnt/test.img --size 20GiB",
            "drystone lab run job.fio -t disk:test --expect 'p99<=5ms' --expect 'iops>=10k'",
        ],
    ),
    ("lab plan", &["drystone lab plan job.fio", "drystone lab plan load.vdb --verbose"]),
    (
        "lab verify",
        &[
            "drystone lab verify --record records --target disk:web",
            "drystone lab verify --record records -t /dev/sdx -t /dev/sdy",
        ],
    ),
    (
        "lab agent",
        &[
            "drystone lab agent --listen 10.0.0.11:7410",
            "drystone lab agent --stay --invitation invitation.txt",
        ],
    ),
    (
        "lab experiment",
        &[
            "drystone lab experiment examples/experiments/sweet-spot.toml --dir /mnt/datastore",
            "drystone lab experiment examples/experiments/max-iops.toml --create-disks default --size 1GiB",
        ],
    ),
    ("lab profiles", &["drystone lab profiles", "drystone lab profiles --json"]),
    (
        "lab audit",
        &["drystone lab audit results/*.json", "drystone lab audit table.csv --caption 'threads = 4'"],
    ),
    (
        "lab compare",
        &[
            "drystone lab compare a1.run.json,a2.run.json b1.run.json,b2.run.json",
            "drystone lab compare --baseline release-7 b1.run.json,b2.run.json",
        ],
    ),
    (
        "lab baseline",
        &["drystone lab baseline save release-7 a1.run.json a2.run.json", "drystone lab baseline list"],
    ),
    (
        "lab report",
        &["drystone lab report run.json --html report.html", "drystone lab report run.json --csv tables"],
    ),
    (
        "lab lens",
        &["drystone lab lens trace.blkparse --html report.html", "drystone lab lens disk:web --seconds 60"],
    ),
    (
        "lab convert",
        &["drystone lab convert load.vdb", "drystone lab convert profile.xml --to fio --target /dev/sdx"],
    ),
    (
        "lens",
        &[
            "drystone lens vscsi-1.csv vscsi-2.csv --every 20",
            "drystone lens --live /dev/nvme0n1 --seconds 60",
        ],
    ),
];

/// The command line with its examples.
pub fn command() -> clap::Command {
    with_examples(Cli::command(), "")
}

fn with_examples(mut command: clap::Command, path: &str) -> clap::Command {
    if let Some((_, examples)) = EXAMPLES.iter().find(|(of, _)| *of == path) {
        let notes = command.get_after_help().map(|notes| format!("\n\n{notes}")).unwrap_or_default();
        command = command.after_help(format!("Examples:\n  {}{notes}", examples.join("\n  ")));
    }
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_examples(below, path.trim_start())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the first line of a command's help begins with.
    const VERBS: &[&str] = &[
        "Add",
        "Audit",
        "Change",
        "Compare",
        "Convert",
        "Create",
        "Decide",
        "Delete",
        "Drop",
        "Empty",
        "End",
        "Estimate",
        "Explain",
        "Export",
        "Flatten",
        "Forecast",
        "Get",
        "Import",
        "Initialize",
        "Join",
        "Keep",
        "Kill",
        "Leave",
        "List",
        "Manage",
        "Measure",
        "Pause",
        "Print",
        "Raise",
        "Rebuild",
        "Remove",
        "Rename",
        "Renew",
        "Replace",
        "Resize",
        "Restore",
        "Resume",
        "Rewrite",
        "Run",
        "Set",
        "Show",
        "Silence",
        "Start",
        "Stop",
        "Take",
        "Try",
        "Verify",
        "Wait",
        "Write",
    ];
    /// A noun phrase does not begin with these.
    const NO_NOUNS: &[&str] = &["Its", "Their", "They", "Which", "What", "Those", "That", "It", "Whose"];

    /// Every command that people see, with the words that name it.
    fn commands() -> Vec<(String, clap::Command)> {
        fn walk(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
            found.push((path.to_owned(), command.clone()));
            for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
                walk(below, format!("{path} {}", below.get_name()).trim_start(), found);
            }
        }
        let mut found = Vec::new();
        walk(&command(), "", &mut found);
        found
    }

    fn text(styled: Option<&clap::builder::StyledStr>) -> String {
        styled.map(ToString::to_string).unwrap_or_default()
    }

    /// Words of a line as a shell takes them, up to where its output goes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for letter in line.chars() {
            match (letter, quote) {
                ('\'' | '"', None) => quote = Some(letter),
                (letter, Some(end)) if letter == end => quote = None,
                (' ', None) => words.push(String::new()),
                (letter, _) => words.last_mut().expect("there is a word").push(letter),
            }
        }
        words.into_iter().take_while(|word| word != ">").collect()
    }

    #[test]
    fn every_command_has_examples_that_the_command_line_takes() {
        for (path, shown) in commands() {
            let help = text(shown.get_after_help());
            let examples: Vec<&str> = help
                .lines()
                .filter_map(|line| line.strip_prefix("  "))
                .filter(|line| line.starts_with("drystone "))
                .collect();
            assert!(examples.len() >= 2, "`{path}` has fewer than two examples:\n{help}");
            let mut is_named = false;
            for example in examples {
                let matches = command()
                    .try_get_matches_from(words(example))
                    .unwrap_or_else(|error| panic!("`{path}`: `{example}`: {error}"));
                let mut named = Vec::new();
                let mut at = &matches;
                while let Some((name, below)) = at.subcommand() {
                    named.push(name);
                    at = below;
                }
                is_named |= named.join(" ").starts_with(&path);
            }
            assert!(is_named, "no example of `{path}` is of it");
        }
    }

    #[test]
    fn every_example_is_of_a_command() {
        let known: Vec<String> = commands().into_iter().map(|(path, _)| path).collect();
        for (path, _) in EXAMPLES {
            assert!(known.iter().any(|known| known == path), "there is no command `{path}`");
        }
    }

    #[test]
    fn commands_are_imperatives_and_arguments_are_nouns() {
        for (path, shown) in commands().into_iter().skip(1) {
            let about = text(shown.get_about());
            let first = about.split([' ', ',']).next().unwrap_or_default();
            assert!(VERBS.contains(&first), "`{path}`: {about}");
            for argument in shown.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let help = text(argument.get_help());
                let first = help.split_whitespace().next().unwrap_or_default();
                let is_written = first.chars().next().is_some_and(|letter| !letter.is_lowercase());
                assert!(is_written && !NO_NOUNS.contains(&first), "`{path}` {}: {help}", argument.get_id());
            }
        }
    }
}
