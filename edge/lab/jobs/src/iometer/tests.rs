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
