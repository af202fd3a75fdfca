//! Virtual disks that an experiment makes for itself, and deletes when it is over.

use super::{CommandError, ErrorKind, VirtualDisks};
use plan::Plan;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Letters of an experiment's name that its disks bear.
const SLUG_LETTERS_MAX: usize = 24;

/// Which policy disks get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Of disks that are not named.
    common: Option<String>,
    named: BTreeMap<String, String>,
}

impl Rules {
    /// Reads `[DISK:][policy=]POLICY`, each once.
    ///
    /// # Errors
    /// When a disk is given two policies.
    pub fn parse(texts: &[String]) -> Result<Rules, CommandError> {
        let mut rules = Rules { common: None, named: BTreeMap::new() };
        for text in texts {
            let (disk, policy) = match text.split_once(':') {
                Some((disk, policy)) => (Some(disk), policy),
                None => (None, text.as_str()),
            };
            let policy = policy.strip_prefix("policy=").unwrap_or(policy).to_owned();
            let before = match disk {
                Some(disk) => rules.named.insert(disk.to_owned(), policy),
                None => rules.common.replace(policy),
            };
            if before.is_some() {
                let whose = disk.unwrap_or("all disks");
                let text = format!("--create-disks names two policies for {whose}");
                return Err(CommandError::new(ErrorKind::Usage, text).hint("name one for each disk"));
            }
        }
        Ok(rules)
    }

    fn of(&self, disk: &str) -> Option<&str> {
        self.named.get(disk).or(self.common.as_ref()).map(String::as_str)
    }
}

/// A disk that an experiment needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The plan's name of it.
    pub target: String,
    /// The virtual disk.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// Its policy.
    pub policy: String,
}

/// Disks that are deleted when this goes.
pub struct OwnDisks {
    disks: Arc<dyn VirtualDisks>,
    made: Vec<Wanted>,
    keeps: bool,
}

/// The disks of an experiment's plans that are to be made: all that no target is named for, and `disk:NAME`.
///
/// # Errors
/// When a disk has no size or no policy, or a policy is named for a disk that no plan has.
pub fn wanted<'a>(
    experiment: &str,
    plans: impl Iterator<Item = &'a Plan>,
    rules: &Rules,
    is_named: &dyn Fn(&str) -> bool,
) -> Result<Vec<Wanted>, CommandError> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for target in plans.flat_map(|plan| &plan.targets) {
        let virtual_disk = target.name.strip_prefix("disk:");
        let is_elsewhere = virtual_disk.is_none() && target.name.contains([':', '/']);
        if is_elsewhere || is_named(&target.name) || wanted.iter().any(|of| of.target == target.name) {
            continue;
        }
        let usage = |text: String, hint: &str| CommandError::new(ErrorKind::Usage, text).hint(hint);
        let short = virtual_disk.unwrap_or(&target.name);
        let policy = rules.of(short).ok_or_else(|| {
            let hint = format!("add --create-disks {short}:POLICY, or --create-disks POLICY for all others");
            usage(format!("--create-disks has no policy for the disk {short}"), &hint)
        })?;
        let size = target.size.ok_or_else(|| {
            let hint = "write size = '10GiB' to its [[vm]], or add --size";
            usage(format!("the disk {short} cannot be created: its size is unknown"), hint)
        })?;
        let name = match virtual_disk {
            Some(name) => name.to_owned(),
            None => format!("lab-{}-{}", slug(experiment), slug(short)),
        };
        wanted.push(Wanted { target: target.name.clone(), name, size, policy: policy.to_owned() });
    }
    let unknown = rules.named.keys().find(|disk| {
        !wanted.iter().any(|of| of.target == **disk || of.target.strip_prefix("disk:") == Some(disk))
    });
    match unknown {
        None => Ok(wanted),
        Some(disk) => {
            let known: Vec<&str> = wanted.iter().map(|of| of.target.as_str()).collect();
            let text = format!("--create-disks names the disk {disk}, which the experiment does not have");
            Err(CommandError::new(ErrorKind::Usage, text).hint(format!("the disks are {}", known.join(", "))))
        }
    }
}

fn slug(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
        _ => '-',
    });
    let mut slug = String::new();
    letters.take(SLUG_LETTERS_MAX).for_each(|letter| {
        if letter != '-' || !slug.ends_with('-') {
            slug.push(letter);
        }
    });
    slug.trim_matches('-').to_owned()
}

impl OwnDisks {
    /// Makes disks. What was made before one fails is deleted again.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn create(
        disks: Arc<dyn VirtualDisks>,
        wanted: Vec<Wanted>,
        keeps: bool,
    ) -> Result<OwnDisks, CommandError> {
        let mut own = OwnDisks { disks, made: Vec::new(), keeps: false };
        for disk in wanted {
            own.disks.create(&disk.name, disk.size, &disk.policy).map_err(|error| {
                let hint = format!(
                    "if an earlier run left it, delete it: drystone disk delete {0} --confirm {0}",
                    disk.name
                );
                match error.hint {
                    Some(_) => error,
                    None => error.hint(hint),
                }
            })?;
            own.made.push(disk);
        }
        own.keeps = keeps;
        Ok(own)
    }

    /// The target that stands for a disk of the plan, if it was made.
    pub fn target_of(&self, disk: &str) -> Option<String> {
        self.made.iter().find(|of| of.target == disk).map(|of| format!("disk:{}", of.name))
    }
}

impl Drop for OwnDisks {
    fn drop(&mut self) {
        if self.keeps {
            return;
        }
        for disk in &self.made {
            if let Err(error) = self.disks.delete(&disk.name) {
                eprintln!(
                    "lab: the disk {0} could not be deleted: {error}; delete it with `drystone disk delete {0}`",
                    disk.name
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FoundDisk, NoDisks};
    use super::*;
    use iostats::Statistics;
    use std::sync::Mutex;

    fn plan(targets: &[(&str, Option<u64>)]) -> Plan {
        let target =
            |(name, size): &(&str, Option<u64>)| plan::Target { size: *size, ..plan::Target::named(*name) };
        Plan { targets: targets.iter().map(target).collect(), ..Plan::default() }
    }

    fn rules(texts: &[&str]) -> Rules {
        Rules::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).expect("rules")
    }

    #[test]
    fn every_disk_without_a_target_is_made_once_with_its_own_policy_or_the_common_one() {
        let plans =
            [plan(&[("vm1", Some(1)), ("/dev/x", None)]), plan(&[("vm1", Some(1)), ("disk:b", Some(2))])];
        let rules = rules(&["policy=mirror", "b:single,stripes=2"]);
        let found = wanted("4k: Read!", plans.iter(), &rules, &|_| false).expect("disks");
        let each: Vec<(&str, &str, &str)> =
            found.iter().map(|of| (of.target.as_str(), of.name.as_str(), of.policy.as_str())).collect();
        assert_eq!(each, [("vm1", "lab-4k-read-vm1", "mirror"), ("disk:b", "b", "single,stripes=2")]);
        assert!(wanted("e", plans.iter(), &rules, &|disk| disk == "disk:b").is_err(), "b is not made");
        let no_size = [plan(&[("vm1", None)])];
        assert!(wanted("e", no_size.iter(), &super::tests::rules(&["x"]), &|_| false).is_err());
        assert!(Rules::parse(&["a".to_owned(), "b".to_owned()]).is_err());
    }

    /// Knows which disks there are; refuses the name `taken`.
    #[derive(Default)]
    struct Known(Mutex<Vec<String>>);

    impl VirtualDisks for Known {
        fn find(&self, name: &str) -> Result<FoundDisk, CommandError> {
            NoDisks.find(name)
        }

        fn statistics(&self, name: &str) -> Result<Statistics, CommandError> {
            NoDisks.statistics(name)
        }

        fn create(&self, name: &str, _size: u64, _policy: &str) -> Result<(), CommandError> {
            if name == "taken" {
                return Err(CommandError::new(ErrorKind::Refused, "there is a disk taken"));
            }
            self.0.lock().expect("no panic").push(name.to_owned());
            Ok(())
        }

        fn serve(&self, address: &str, text: super::super::MetricsText) -> Result<String, CommandError> {
            NoDisks.serve(address, text)
        }

        fn exporter(&self, address: Option<&str>) -> Result<Box<dyn crate::system::Exporter>, CommandError> {
            NoDisks.exporter(address)
        }

        fn delete(&self, name: &str) -> Result<(), CommandError> {
            self.0.lock().expect("no panic").retain(|known| known != name);
            Ok(())
        }
    }

    #[test]
    fn what_was_made_is_deleted_at_the_end_and_when_one_cannot_be_made() {
        let known = Arc::new(Known::default());
        let disk =
            |name: &str| Wanted { target: name.into(), name: name.into(), size: 1, policy: "p".into() };
        let there = || known.0.lock().expect("no panic").clone();
        let own = OwnDisks::create(known.clone(), vec![disk("a"), disk("b")], false).expect("disks");
        assert_eq!(own.target_of("a").as_deref(), Some("disk:a"));
        assert_eq!(there(), ["a", "b"]);
        drop(own);
        assert!(there().is_empty());
        let failed = OwnDisks::create(known.clone(), vec![disk("a"), disk("taken")], true).err();
        assert!(failed.expect("it is taken").hint.is_some_and(|hint| hint.contains("disk delete taken")));
        assert!(there().is_empty(), "a is not left behind");
        drop(OwnDisks::create(known.clone(), vec![disk("kept")], true).expect("a disk"));
        assert_eq!(there(), ["kept"]);
    }
}
