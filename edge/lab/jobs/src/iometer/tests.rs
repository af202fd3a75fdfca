//! Tests of Iometer's reader.

use crate::{Options, Source, import};
use plan::{Depth, Workers};
use std::time::Duration;

#[test]
fn a_simple_file_is_a_stage_for_each_assigned_pattern() {
    let text = "Version 1.1.0\n'TEST SETUP ====\n'Test Description\n\tmine\n'Run Time\n'\thours      minutes    seconds\n\t0          1          30\n'Ramp Up Time (s)\n\t10\n'END test setup\n'ACCESS SPECIFICATIONS ====\n'Access specification name,default assignment\n\t4K, 70/30,NONE\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t4096,100,70,100,0,1,4096,0\n'END access specifications\n'MANAGER LIST ====\n'Manager ID, manager name\n\t1,HOST1\n'Manager network address\n\t\n'Worker\n\tWorker 1\n'Worker type\n\tDISK\n'Default target settings for worker\n'Number of outstanding IOs,test connection rate,transactions per connection\n\t16,DISABLED,1\n'Disk maximum size,starting sector\n\t0,0\n'End default target settings for worker\n'Assigned access specs\n\t4K, 70/30\n'End assigned access specs\n'Target assignments\n'Target\n\tsdx\n'Target type\n\tDISK\n'End target\n'Target\n\tsdy\n'Target type\n\tDISK\n'End target\n'End target assignments\n'End worker\n'End manager\n'END manager list\nVersion 1.1.0\n";
    let plan = import(&Source::new("x.icf", text), &Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .plan;
    assert_eq!((plan.name.as_str(), plan.stages[0].name.as_str()), ("mine", "4K, 70/30"));
    let group = &plan.stages[0].groups[0];
    assert_eq!(
        (group.workers, group.depth, group.outstanding()),
        (Workers::Together(1), Depth::PerTarget(16), 32)
    );
    assert_eq!(group.timing.longest(), Some(Duration::from_secs(100)));
}

const HEAD: &str = "Version 1.1.0\n'TEST SETUP ====\n'Run Time\n\t0 1 0\n'END test setup\n'ACCESS SPECIFICATIONS ====\n'Access specification name,default assignment\n\t4K,NONE\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t4096,100,70,100,0,1,0,0\n'END access specifications\n'MANAGER LIST ====\n";
const END: &str = "'END manager list\nVersion 1.1.0\n";

fn manager(name: &str) -> String {
    format!(
        "'Manager ID, manager name\n\t1,{name}\n'Worker\n\tW\n'Default target settings for worker\n'Number of outstanding IOs,test connection rate,transactions per connection\n\t8,DISABLED,1\n'End default target settings for worker\n'Assigned access specs\n\t4K\n'End assigned access specs\n'Target assignments\n'Target\n\tsdx\n'End target\n'End target assignments\n'End worker\n'End manager\n"
    )
}

fn faults(text: &str, options: &Options<'_>) -> Vec<crate::Fault> {
    import(&Source::new("x.icf", text), options).map(|_| ()).expect_err(text).faults
}

/// A library ran all its patterns, the writes among them, on whatever target was named.
#[test]
fn a_library_of_patterns_is_listed_and_not_run() {
    let text = format!("{HEAD}{END}");
    let found = faults(&text, &Options { has_targets: true, ..Options::default() });
    assert_eq!(found.len(), 1, "{found:?}");
    let told = found[0].to_string();
    assert!(told.contains("a library of 1 patterns") && told.contains("4K: 4 KiB, 70 % reads"), "{told}");
    let variables = vec![("pattern".into(), "4K".into()), ("depth".into(), "16".into())];
    let plan = import(&Source::new("x.icf", text.as_str()), &Options { variables, ..Options::default() })
        .expect("one of them is named")
        .plan;
    assert_eq!((plan.stages.len(), plan.stages[0].outstanding()), (1, 16));
    let variables = vec![("pattern".into(), "8K".into())];
    assert!(faults(&text, &Options { variables, ..Options::default() })[0].found.contains("no pattern `8K`"));
}

#[test]
fn the_same_disk_of_two_managers_is_two_disks() {
    let text = format!("{HEAD}{}{}{END}", manager("HOST1"), manager("HOST2"));
    let plan = import(&Source::new("x.icf", text), &Options::default()).expect("it is a job").plan;
    let labels: Vec<String> = plan.targets.iter().map(plan::Target::label).collect();
    assert_eq!((labels, plan.stages[0].outstanding()), (vec!["HOST1:sdx".into(), "HOST2:sdx".into()], 16));
}

#[test]
fn a_file_without_a_version_is_one_fault() {
    let text = format!("{HEAD}{}{END}", manager("HOST1"));
    let found = faults(text.trim_start_matches("Version 1.1.0\n"), &Options::default());
    assert!(found.len() == 1 && found[0].to_string().contains("Version 1.1.0"), "{found:?}");
}

#[test]
fn the_number_of_an_old_test_type_is_read() {
    let setup = "'Test Type\n\t6\n'Queue Depth Cycling\n\t1 4 2 EXPONENTIAL\n'END test setup";
    let text = format!("{}{}{END}", HEAD.replacen("'END test setup", setup, 1), manager("HOST1"));
    let plan = import(&Source::new("x.icf", text), &Options::default()).expect("it is a job").plan;
    let depths: Vec<u64> = plan.stages.iter().map(plan::Stage::outstanding).collect();
    assert_eq!(depths, [1, 2, 4]);
}

/// Each line that was missing made an error of every line below it, and a value that was missing took the name of the worker.
#[test]
fn a_missing_line_is_one_fault() {
    let text = format!("{HEAD}{}{}{END}", manager("HOST1"), manager("HOST2"));
    let without = |line: &str, expected: &str| {
        let found = faults(&text.replacen(line, "", 1), &Options::default());
        assert!(found.len() == 1 && found[0].to_string().contains(expected), "{line}: {found:?}");
    };
    without("'END access specifications\n", "'manager list stands within ACCESS SPECIFICATIONS");
    without("'End worker\n", "'manager id, manager name stands within Worker");
    without(
        "'Number of outstanding IOs,test connection rate,transactions per connection\n",
        "belongs to no key",
    );
    without("\t8,DISABLED,1\n", "number of outstanding ios has no value");
    without("\tW\n", "'worker has no value");
    without("\tsdx\n", "'target has no value");
    let renamed = text.replacen("'ACCESS SPECIFICATIONS", "'ACCES SPECIFICATIONS", 1);
    let found = faults(&renamed, &Options::default());
    assert!(found.len() == 1 && found[0].remedy == "did you mean 'access specifications?", "{found:?}");
}
