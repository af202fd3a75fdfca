//! A folder of like form to HCIBench's.

use super::folder::read_folder;
use super::*;
use crate::model::Latencies;

fn vm(ms: u64, ios: u64) -> String {
    let ns = ms * 1_000_000;
    format!(
        r#"{{ "fio version" : "fio-3.42", "jobs" : [ {{ "jobname" : "job0", "eta" : 0,
  "job options" : {{ "bs" : "4k", "rw" : "randread", "iodepth" : "4", "ioengine" : "libaio" }},
  "read" : {{ "io_bytes" : {}, "iops" : {ios}.0, "runtime" : 1000, "total_ios" : {ios},
    "lat_ns" : {{ "min" : {ns}, "max" : {ns}, "mean" : {ns}.0, "percentile" : {{ "95.000000" : {ns} }},
      "bins" : {{ "{ns}" : {ios} }} }} }} }} ] }}"#,
        ios * 4_096
    )
}

pub(crate) const SUMMARY: &str = "Datastore  = ds1\n=====\nJOB_NAME   = job0\nVMs        = 2\nIOPS       = 1100.0 IO/S\nTHROUGHPUT = 4.3 MB/s\n\
    R_LATENCY  = 5.5 ms\nW_LATENCY  = 0.0 ms\n95%tile_R_LAT = 5.5 ms\n95%tile_W_LAT = 0 ms\n";

#[test]
fn vms_are_merged_and_the_averages_of_percentiles_are_told() {
    // One VM has 1,000 I/Os of 1 ms, the other 100 of 10 ms.
    let (one, other) = (vm(1, 1_000), vm(10, 100));
    let files = [
        ("t/case-1/vm-1.json", one.as_str()),
        ("t/case-1/vm-2.json", other.as_str()),
        ("t/case-1/hcibench.cfg", "x"),
        ("t/case-1-res.txt", SUMMARY),
    ];
    let sets = read_folder(&files).unwrap();
    assert_eq!(sets.len(), 1);
    let all = &sets[0].runs[0];
    assert_eq!((all.vms, all.job.outstanding, all.parts.len()), (Some(2), Some(8.0), 2));
    let total = all.total();
    assert_eq!((total.ios, total.iops), (Some(1_100), Some(1_100.0)));
    assert!((total.latency_s.unwrap() - 2.0 / 1_100.0).abs() < 1e-9);
    assert_eq!(all.workers_iops, [1_000.0, 100.0]);
    let Latencies::Exact(histogram) = &total.latencies else { panic!("{total:?}") };
    assert_eq!(histogram.percentile(0.95), Some(10_000_000));
    let said: Vec<&str> = all.notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("read latency (ms) 5.5, but the results of the VMs give 1.82"), "{said:?}");
    assert!(said[1].contains("p95 (ms) 5.5") && said[1].contains("give 10"), "{said:?}");
}

/// Two runs of 0.85 ms were two runs of exactly 0.85 ms.
#[test]
fn figures_of_a_summary_are_as_sure_as_their_digits() {
    let text = SUMMARY.replace("THROUGHPUT", "LATENCY    = 0.85 ms\nTHROUGHPUT");
    let set = read_summary("case-1-res.txt", &text).unwrap();
    let total = set.runs[0].total();
    assert_eq!((total.latency_s, total.steps.iops), (Some(0.00085), 0.1));
    assert!((total.steps.latency_s - 1e-5).abs() < 1e-12, "{total:?}");
}

#[test]
fn a_summary_alone_is_read_without_its_percentiles() {
    assert!(is_summary(SUMMARY));
    let set = read_summary("case-1-res.txt", SUMMARY).unwrap();
    assert_eq!(set.runs[0].total().iops, Some(1_100.0));
    assert_eq!(set.runs[0].directions[&Direction::Read].latencies, Latencies::None);
    assert!(set.notes[0].text.contains("without weights"));
}

#[test]
fn what_failed_or_is_missing_is_told() {
    let one = vm(1, 1_000);
    let files =
        [("t/c/vm-1.json", one.as_str()), ("t/c/vm-2.json", "{ \"jobs\" : ["), ("t/c-res.txt", SUMMARY)];
    let set = read_folder(&files).unwrap().remove(0);
    assert!(set.notes[0].text.starts_with("left out: t/c/vm-2.json:"), "{:?}", set.notes);
    assert!(
        set.runs[0].notes.iter().any(|note| note.text.contains("covers 2 VMs, but there are files of 1 VM:"))
    );
    assert!(read_folder(&[("t/a.cfg", "")]).is_err());
    let failed = SUMMARY.replace("1100.0 IO/S", "n/a");
    assert_eq!(read_summary("x", &failed).unwrap_err().line, Some(5));
}

#[test]
fn run_definitions_of_vdbench_are_not_added_up() {
    let text = |rate: u32| {
        let table = crate::vdbench::tests::SUMMARY.replace("3000.00", &format!("{rate}.00"));
        format!("{table}{}", table.replace("RD=run1", "RD=run2"))
    };
    let (one, other) = (text(3_000), text(3_000));
    let set = read_folder(&[("c/vm-1.txt", &one), ("c/vm-2.txt", &other)]).unwrap().remove(0);
    let found: Vec<(&str, Option<f64>)> =
        set.runs.iter().map(|run| (run.label.as_str(), run.total().iops)).collect();
    assert_eq!(found, [("c (all VMs), run1", Some(4_000.0)), ("c (all VMs), run2", Some(4_000.0))]);
}
