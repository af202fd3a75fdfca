//! Targets of a plan, found and judged before anything is written to them.

use super::{CommandError, ErrorKind, World};
use crate::nbd::Export;
use crate::target::{self, Need, Target, TargetError, TargetName};
use plan::{Outline, Plan};
use std::io::{Seek, SeekFrom};
use std::path::Path;

/// What a person said about data that may be destroyed.
#[derive(Debug, Clone, Default)]
pub struct Consent {
    /// Names of targets that may be overwritten although they are in use.
    pub destroy: Vec<String>,
}

/// Finds all targets of a plan, in its order.
///
/// # Errors
/// When one does not exist, is too small, or is in use and nobody said that its data may be destroyed.
pub fn targets(plan: &Plan, consent: &Consent, world: &mut World) -> Result<Vec<Target>, CommandError> {
    let mut found: Vec<Target> = Vec::new();
    let is_used = |index| {
        let mut groups = plan.stages.iter().flat_map(|stage| &stage.groups);
        groups.any(|group| group.targets.contains(&index))
    };
    let planned = plan.targets.iter().enumerate();
    // Who uses them is asked before this program itself reads from any of them.
    let resolved = planned
        .clone()
        .map(|(index, planned)| is_used(index).then(|| resolve(&planned.name, world)).transpose());
    let resolved = resolved.collect::<Result<Vec<_>, _>>()?;
    for ((index, planned), resolved) in planned.zip(resolved) {
        let Some(Resolved { name, clients, about }) = resolved else {
            found.push(Target::absent(&planned.name));
            continue;
        };
        let mut need = need_of(plan, index);
        if need.writes {
            need.shares = judge(&planned.name, &name, clients, consent, world)?;
        }
        let mut said = false;
        let target = Target::find(&planned.name, &name, need, &mut |done, all| {
            if !said {
                eprintln!(
                    "lab: filling {} with random data, because reads of unallocated space are not served by the devices",
                    planned.name
                );
                said = true;
            }
            if done == all {
                eprintln!("lab: {} filled", base::units::format_bytes(all));
            }
        })
        .map_err(target_error)?;
        found.push(target.with_about(about));
    }
    fits(plan, &found)?;
    Ok(found)
}

/// What a plan would do to its targets as they are now. Nothing is created, and nothing is opened for writing.
pub fn preview(plan: &Plan, world: &World) -> Outline {
    let (sizes, files): (Vec<_>, Vec<_>) = (plan.targets.iter().enumerate())
        .map(|(index, planned)| match resolve(&planned.name, world).map(|resolved| resolved.name) {
            Ok(TargetName::Path(path)) => match std::fs::metadata(&path) {
                Ok(data) if data.is_file() => {
                    let grows = planned.size.filter(|_| need_of(plan, index).writes);
                    (grows.max(Some(data.len())), Some(data.len()))
                }
                // Without a size nothing can be created: the run will say so.
                Err(_) => (planned.size, planned.size.map(|_| 0)),
                Ok(_) => (size_of_device(&path), None),
            },
            Ok(TargetName::Null(size) | TargetName::Spindle(_, _, size)) => (Some(size), None),
            Ok(TargetName::Nbd(address)) => (Export::look(&address).ok().map(|export| export.size), None),
            Ok(TargetName::Disk(_)) | Err(_) => (planned.size, None),
        })
        .unzip();
    plan.outline(&sizes).with_files(&files)
}

fn size_of_device(path: &Path) -> Option<u64> {
    std::fs::File::open(path).ok()?.seek(SeekFrom::End(0)).ok()
}

/// A target by the name that opens it, and what is known of the virtual disk that it is.
struct Resolved {
    name: TargetName,
    clients: u64,
    about: Vec<String>,
}

fn resolve(text: &str, world: &World) -> Result<Resolved, CommandError> {
    match TargetName::parse(text).map_err(target_error)? {
        TargetName::Disk(name) => {
            let disk = world.disks.find(&name)?;
            let name = TargetName::parse(&disk.address).map_err(target_error)?;
            Ok(Resolved { name, clients: disk.clients, about: disk.about })
        }
        name => Ok(Resolved { name, clients: 0, about: Vec::new() }),
    }
}

fn target_error(error: TargetError) -> CommandError {
    let kind = match &error {
        TargetError::Address(_)
        | TargetError::Size(_)
        | TargetError::Spindle { .. }
        | TargetError::NoSize { .. } => ErrorKind::Usage,
        TargetError::Kind { .. } | TargetError::TooSmall { .. } | TargetError::ReadOnly { .. } => {
            ErrorKind::Refused
        }
        TargetError::Export(_) | TargetError::Io { .. } | TargetError::Disk { .. } => ErrorKind::Failed,
    };
    CommandError::new(kind, error.to_string())
}

/// What the plan's groups do with a target.
fn need_of(plan: &Plan, target: usize) -> Need {
    let groups =
        || plan.stages.iter().flat_map(|stage| &stage.groups).filter(|group| group.targets.contains(&target));
    Need {
        writes: groups().any(|group| group.pattern.writes()),
        reads: groups().any(|group| group.pattern.reads() > 0.0),
        size: plan.targets[target].size,
        shares: false,
    }
}

/// Refuses a target that is in use or holds data, unless its name was given for being destroyed, or is typed now. True if somebody
/// uses it who was told of.
fn judge(
    name: &str,
    target: &TargetName,
    clients: u64,
    consent: &Consent,
    world: &mut World,
) -> Result<bool, CommandError> {
    let uses: Vec<String> = match target {
        TargetName::Path(path) => target::uses_of(path).iter().map(ToString::to_string).collect(),
        _ if clients == 1 => vec!["1 client is attached to it".to_owned()],
        _ if clients > 1 => vec![format!("{clients} clients are attached to it")],
        _ => Vec::new(),
    };
    let consented = consent.destroy.iter().any(|given| given == name);
    let held = match target::held(target) {
        Ok(held) => held,
        // With consent it does not matter what is lost.
        Err(TargetError::Io { .. }) if consented => Vec::new(),
        Err(error @ TargetError::Export(_)) => return Err(target_error(error)),
        Err(error) => {
            let hint = format!("to destroy its data, add --destroy-data {name}");
            return Err(CommandError::new(ErrorKind::Failed, error.to_string()).hint(hint));
        }
    };
    let found: Vec<String> = (!uses.is_empty())
        .then(|| format!("is in use ({})", uses.join("; ")))
        .into_iter()
        .chain((!held.is_empty()).then(|| format!("holds {}", held.join(", "))))
        .collect();
    if found.is_empty() {
        return Ok(false);
    }
    let text = format!("{name} {}, and the job would overwrite it", found.join(" and "));
    if consented {
        eprintln!("lab: {text}, as --destroy-data {name} allows");
        return Ok(!uses.is_empty());
    }
    if !world.interactive {
        let hint = format!("nothing was changed; to destroy its data, add --destroy-data {name}");
        return Err(CommandError::new(ErrorKind::Refused, text).hint(hint));
    }
    eprint!("{text}. Type its name to continue: ");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| CommandError::failed("read the answer", error))?;
    match line.trim() == name {
        true => Ok(!uses.is_empty()),
        false => Err(CommandError::new(ErrorKind::Refused, "the name does not match; nothing was changed")),
    }
}

/// Refuses a plan that asks for more than a target has.
fn fits(plan: &Plan, targets: &[Target]) -> Result<(), CommandError> {
    let sizes: Vec<Option<u64>> = targets.iter().map(|target| Some(target.size)).collect();
    for target in plan.outline(&sizes).targets {
        if let (Some(missing), Some(size)) = (target.missing, target.size) {
            let text = format!(
                "the job uses {} of {}, which has only {}: {} are missing",
                base::units::format_bytes(size.saturating_add(missing)),
                target.name,
                base::units::format_bytes(size),
                base::units::format_bytes(missing)
            );
            return Err(CommandError::new(ErrorKind::Refused, text)
                .hint("use a larger target, or reduce the span of the job"));
        }
    }
    Ok(())
}
