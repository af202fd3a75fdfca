//! Every parameter of Vdbench's raw workloads: what becomes of it, and what sets it. One file for each kind of definition.

mod runs;
mod storage;
mod values;
mod workloads;

use super::definitions::Reader;
use super::lex::Parameter;
use super::settings::{General, Rd, Sd, Setting, Wd};
use crate::error::Fault;
use crate::findings::{Findings, shown, unsupported};
use crate::keys::{nearest, within};

/// Sets what a parameter says, in the definition that it stands in.
#[derive(Clone, Copy)]
pub(crate) enum Apply {
    /// How many times smaller the data gets.
    Ratio(fn(&mut General, f64)),
    /// A percentage of a workload.
    Percent(fn(&mut Wd, f64)),
    /// Bytes of a storage definition.
    Bytes(fn(&mut Sd, u64)),
    /// Seconds of a run.
    Seconds(fn(&mut Rd, u64)),
    /// A loop of a run: how each of its values is read.
    Loop(fn(&Parameter, &str, &mut Findings) -> Result<Setting, Fault>),
    /// Anything else.
    Set(fn(&mut Reader<'_>, &Parameter, &mut Findings) -> Result<(), Fault>),
}

use Apply::{Ratio, Set};

/// A parameter.
pub(crate) type Rule = crate::keys::Rule<Apply>;

/// All parameters, section by section in the order that Vdbench expects; then what begins with another word.
pub(crate) const PARAMETERS: [&[Rule]; 6] =
    [GENERAL, HOSTS, storage::RULES, workloads::RULES, runs::RULES, OTHERS];

const REPLAY: &str =
    "The lab replays no traces. Analyse the trace with `drystone lens` and write its workload as a job.";
const COMMAND: &str = "Command before or after a run. Run the command yourself.";
const FILES: &str =
    "The lab measures block storage, no file systems: write sd=, wd= and rd= with a large file.";

#[rustfmt::skip]
const GENERAL: &[Rule] = &within("General", [
    Rule::carried("compratio", "Compression ratio, n to 1.", Ratio(|general, ratio| general.compression = ratio)).or(&["compression"]),
    Rule::carried("dedupratio", "Deduplication ratio, n to 1.", Ratio(|general, ratio| general.deduplication = ratio)),
    Rule::carried("dedupunit", "Deduplication unit, in bytes.", Set(|reader, parameter, _| {
        set(&mut reader.job.general.unit, parameter.block_of(parameter.one()?))
    })),
    Rule::noted("dedupsets", "Choice of duplicate blocks. The lab duplicates blocks at random.").or(&["deduphotsets", "dedupflipflop", "dedupacross", "dedupmaxkey"]),
    Rule::noted("data_errors", "Number of errors that ends a run. The lab counts all errors.").or(&["dataerrors"]),
    Rule::noted("monitor", "File that ends a run."),
    Rule::noted("startcmd", COMMAND).or(&["endcmd", "start_cmd", "end_cmd"]),
    Rule::refused("validate", "Vdbench reads each block before it overwrites the block. Remove validate= and add --verify."),
    Rule::noted("pattern", "Data patterns from files. The lab writes random data.").or(&["patterns", "pattern_buffer", "compressionseed"]),
    Rule::refused("loop", "Vdbench repeats all runs. Remove loop= and pass --repeat."),
    Rule::refused("concatenatesds", "A plan cannot join devices into one. Name the devices one by one."),
    Rule::noted("formatsds", "Vdbench fills the files before a run. Fill the files with the lab.").or(&["formatxfersize"]),
    Rule::noted("abort_failed_skew", "Deviation from skew= that ends a run."),
    Rule::noted("report", "Contents of Vdbench's reports. The lab reports everything.")
        .or(&["report_run_totals", "auxreport", "histogram", "miscellaneous"]),
    Rule::noted("debug", "Debugging, and integration with other tools, Java and the operating system.")
        .or(&["swat", "ios_per_jvm", "messagescan", "psrset", "showlba", "unix2windows"]),
    Rule::noted("port", "Connection of Vdbench to other hosts.").or(&["timeout", "loginuid"]),
    Rule::noted("create_anchors", "Concerns file systems."),
]);

#[rustfmt::skip]
const HOSTS: &[Rule] = &within("hd", [
    Rule::structure("hd", "Host definition. `default` applies to the definitions below it."),
    Rule::noted("system", "Access to a host. The lab runs agents on other machines.").or(&["shell", "user", "vdbench", "jvms"]),
    Rule::noted("clients", "Clients of a host. Define each as a host of its own."),
    Rule::noted("mount", "Mounts a file system."),
]);

/// What begins none of the sections.
#[rustfmt::skip]
pub(crate) const OTHERS: &[Rule] = &within("Others", [
    Rule::refused("fsd", "The lab measures block storage, no file systems: write sd=, wd= and rd= with a large file.").or(&["fwd"]),
    Rule::refused("rg", REPLAY),
    Rule::structure("include", "Inserts another file."),
    Rule::structure("eof", "Ends the file."),
]);

/// Puts a value that was read where it belongs.
fn set<T>(field: &mut T, value: Result<T, Fault>) -> Result<(), Fault> {
    *field = value?;
    Ok(())
}

/// The rule of a parameter in a section, with the full name of its key: a key may be cut to a prefix of two letters or more.
pub(crate) fn find(
    rules: &'static [Rule],
    parameter: &Parameter,
) -> Result<(&'static Rule, &'static str), Fault> {
    let key = parameter.key.as_str();
    let named = |wanted: &dyn Fn(&str) -> bool| {
        let mut found = Vec::new();
        for rule in rules {
            found.extend(rule.key.names().find(|name| wanted(name)).map(|name| (rule, name)));
        }
        found
    };
    let mut found = named(&|name| name == key);
    if found.is_empty() && key.len() >= 2 {
        found = named(&|name| name.starts_with(key));
    }
    match found.as_slice() {
        [found] => Ok(*found),
        [] => Err(unknown(rules, parameter)),
        several => {
            let names: Vec<&str> = several.iter().map(|(_, name)| *name).collect();
            Err(unsupported(
                &parameter.place,
                format!(
                    "`{}` is short for several keys; Vdbench takes the first that it compares",
                    parameter.shown()
                ),
                format!("write one of: {}", names.join(", ")),
            ))
        }
    }
}

fn unknown(rules: &'static [Rule], parameter: &Parameter) -> Fault {
    let shown = shown(&parameter.key);
    let elsewhere = PARAMETERS.iter().copied().flatten().find(|rule| rule.key.is(&parameter.key));
    let remedy = match (nearest(&parameter.key, rules.iter().map(|rule| rule.key.name)), elsewhere) {
        (Some(near), _) => format!("did you mean {near}=?"),
        (None, Some(other)) => format!("the key belongs to {}: move it there", other.key.scope),
        (None, None) => "remove it".to_owned(),
    };
    parameter.refused(format!("Vdbench says `Unknown keyword: {shown}`"), remedy)
}
