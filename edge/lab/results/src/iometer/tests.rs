//! Results of like form to Iometer's.

use super::*;

pub(crate) const TEXT: &str = "'Test Type,Test Description
0,my test
'Version
1.1.0
'Access specifications
'Access specification name,default assignment
4K; 67% read, mine,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
4096,100,67,100,0,1,0,0
'End access specifications
'Results
'Target Type,Target Name,Access Specification Name,# Managers,# Workers,# Disks,IOps,Read IOps,Write IOps,MBps,Average Response Time,Average Read Response Time,Average Write Response Time,Errors,Bytes Read,Bytes Written,Read I/Os,Write I/Os,Queue Depth,0 to 50 uS,50 to 100 uS,0.1 to 5 mS,5 to 10 mS,>= 10 mS
ALL,All,4K; 67% read, mine,1,2,2,3000,2000,1000,11.7,5.3,5.0,6.0,0,245760000,122880000,60000,30000,8,0,10,80000,9000,990
MANAGER,PC,,1,2,2,3000,2000,1000,11.7,5.3,5.0,6.0,0,0,0,60000,30000,8,0,0,0,0,0
WORKER,Worker 1,,,,1,1800,2000,1000,11.7,5.3,5.0,6.0,0,0,0,60000,30000,8,0,0,0,0,0
WORKER,Worker 1,,,,1,1200,2000,1000,11.7,5.3,5.0,6.0,0,0,0,60000,30000,8,0,0,0,0,0
'Time Stamp
2026-01-02
";

#[test]
fn rows_of_all_are_read_by_the_names_of_columns() {
    assert!(is_iometer(TEXT));
    let set = read("results.csv", TEXT).unwrap();
    assert_eq!((set.version.as_deref(), set.runs.len()), (Some("1.1.0"), 1));
    let run = &set.runs[0];
    assert_eq!(run.label, "4K; 67% read, mine");
    assert_eq!(
        (run.job.block_bytes, run.job.read_share, run.job.outstanding),
        (Some(4_096), Some(0.67), Some(16.0))
    );
    let total = run.total();
    assert_eq!((total.ios, total.iops, total.latency_s), (Some(90_000), Some(3_000.0), Some(0.0053)));
    assert_eq!(total.latencies.percentile(0.95).as_deref(), Some("between 5 and 10 ms"));
    // It says 3000 and 5.3 ms.
    assert_eq!(total.steps.iops, 1.0);
    assert!((total.steps.latency_s - 1e-4).abs() < 1e-12, "{total:?}");
    assert_eq!(run.directions[&Direction::Write].latency_s, Some(0.006));
    assert_eq!(run.workers_iops, [1_800.0, 1_200.0]);
}

#[test]
fn a_row_that_is_cut_off_is_refused_with_its_line() {
    let cut = &TEXT[..TEXT.find(",990").unwrap() - 20];
    let error = read("results.csv", cut).unwrap_err();
    assert_eq!(error.line, Some(13), "{error}");
    let none = &TEXT[..TEXT.find("ALL,").unwrap()];
    assert!(read("results.csv", none).unwrap_err().found.contains("no row of ALL"));
}
