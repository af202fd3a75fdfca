//! Tests of DiskSPD's readers.

use crate::{Options, Source, import};
use plan::{Content, WriteThrough};
use std::time::Duration;

#[test]
fn a_simple_command_line_is_one_stage() {
    let text = "diskspd.exe -b8K -d60 -W10 -o4 -t8 -r -w30 -Sh -L -Zr -c10G E:\\test.dat\n";
    let plan = import(&Source::new("x.cmd", text), &Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .plan;
    let group = &plan.stages[0].groups[0];
    assert_eq!((group.outstanding(), group.pattern.reads(), group.pattern.random()), (32, 70.0, 100.0));
    assert_eq!(group.timing.longest(), Some(Duration::from_secs(70)));
    assert_eq!((group.caching.direct, group.caching.write_through), (true, WriteThrough::Data));
    assert_eq!((plan.targets[0].size, &group.data.content), (Some(10 << 30), &Content::Random));
}

#[test]
fn a_simple_profile_is_a_stage_for_each_time_span() {
    let text = "<Profile><TimeSpans><TimeSpan><Duration>30</Duration><Warmup>5</Warmup><Targets><Target><Path>/dev/sdx</Path><BlockSize>4096</BlockSize><Random>4096</Random><RequestCount>8</RequestCount><ThreadsPerFile>2</ThreadsPerFile><WriteRatio>100</WriteRatio></Target></Targets></TimeSpan></TimeSpans></Profile>";
    let plan = import(&Source::new("x.xml", text), &Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .plan;
    assert_eq!((plan.stages.len(), plan.stages[0].outstanding()), (1, 16));
}
