//! Documents of like form to fio's.

use super::*;

/// One job; reads only.
pub(crate) fn document(host: &str, eta: u32, ios: u64, runtime_ms: u64, bins: &str) -> String {
    let iops = ios as f64 * 1e3 / runtime_ms as f64;
    format!(
        r#"{{
  "fio version" : "fio-3.42",
  "global options" : {{ "bs" : "4k", "ioengine" : "libaio", "iodepth" : "16", "numjobs" : "2" }},
  "jobs" : [
    {{ "jobname" : "database", {host} "eta" : {eta}, "error" : 0, "job options" : {{ "rw" : "randrw", "rwmixread" : "70" }},
      "read" : {{ "io_bytes" : {bytes}, "bw_bytes" : {bw}, "iops" : {iops}, "runtime" : {runtime_ms}, "total_ios" : {ios},
        "lat_ns" : {{ "min" : 1001, "max" : 10001, "mean" : 3250.0, "N" : {ios} }},
        "clat_ns" : {{ "min" : 1001, "max" : 10001, "mean" : 3000.0, "N" : {ios}, "percentile" : {{ "50.000000" : 1004 }},
          "bins" : {{ {bins} }} }} }},
      "write" : {{ "total_ios" : 0, "iops" : 0.0, "lat_ns" : {{ "mean" : 0.0 }} }} }}
  ]
}}
"#,
        bytes = ios * 4096,
        bw = iops * 4096.0,
    )
}

fn histogram(figures: &Figures) -> &Histogram {
    let Latencies::Exact(histogram) = &figures.latencies else { panic!("{figures:?}") };
    histogram
}

#[test]
fn a_job_is_read_with_its_options_and_histogram() {
    let text = format!(
        "note: both iodepth >= 1\nfio: something {{odd\n{}",
        document("", 0, 4, 1_000, "\"1004\" : 3, \"9984\" : 1")
    );
    let set = read("a.json", &text).unwrap();
    assert_eq!(set.version.as_deref(), Some("fio-3.42"));
    let run = &set.runs[0];
    assert_eq!(
        (run.job.block_bytes, run.job.read_share, run.job.random_share),
        (Some(4_096), Some(0.7), Some(1.0))
    );
    assert_eq!((run.job.threads, run.job.depth, run.job.outstanding), (Some(2), Some(16), Some(32.0)));
    let total = run.total();
    assert_eq!((total.ios, total.iops, total.latency_s), (Some(4), Some(4.0), Some(3_250.0 / 1e9)));
    assert_eq!(histogram(&total).percentile(0.5), Some(1_004));
    assert!(run.notes[0].text.contains("completion latency"), "{:?}", run.notes);
}

#[test]
fn documents_that_are_glued_together_are_one_run_over_time() {
    let text = document("", 10, 4, 1_000, "\"1004\" : 4")
        + &document("", 5, 10, 2_000, "\"1004\" : 10")
        + &document("", 0, 14, 4_000, "\"1004\" : 13, \"9984\" : 1");
    let set = read("a.json", &text).unwrap();
    assert_eq!(set.runs.len(), 1);
    let run = &set.runs[0];
    assert_eq!(run.total().ios, Some(14));
    let rates: Vec<Option<f64>> = run.intervals.iter().map(|of| of.iops).collect();
    assert_eq!(rates, [Some(4.0), Some(6.0), Some(2.0)]);
    assert_eq!(run.intervals[2].histogram.as_ref().unwrap().count(), 4);
}

#[test]
fn a_run_after_one_that_ended_is_another() {
    let text = document("", 0, 4, 1_000, "\"1004\" : 4") + &document("", 0, 10, 1_000, "\"1004\" : 10");
    let set = read("a.json", &text).unwrap();
    assert_eq!(set.runs.iter().map(|run| run.total().ios).collect::<Vec<_>>(), [Some(4), Some(10)]);
}

#[test]
fn a_document_just_before_the_end_is_of_the_same_run() {
    // fio 3.33 wrote such a pair: nothing left to wait for at 3.8 s, and the end at 4.0 s.
    let stamped = |at: u64, text: String| text.replacen('{', &format!("{{ \"timestamp_ms\" : {at},"), 1);
    let first = stamped(103_826, document("", 0, 90, 3_826, "\"1004\" : 90"));
    let check = |at: u64, runs: usize| {
        let text = first.clone() + &stamped(at, document("", 0, 95, 4_001, "\"1004\" : 95"));
        let set = read("a.json", &text).unwrap();
        assert_eq!(set.runs.len(), runs, "at {at}");
        assert_eq!(set.runs[runs - 1].total().ios, Some(95));
    };
    check(104_001, 1);
    check(109_000, 2);
}

#[test]
fn what_was_before_the_end_of_ramp_time_is_left_out() {
    let text = document("", 10, 500, 5_000, "\"1004\" : 500") + &document("", 0, 14, 1_000, "\"1004\" : 14");
    let set = read("a.json", &text).unwrap();
    assert_eq!((set.runs.len(), set.runs[0].total().ios), (1, Some(14)));
    assert!(set.notes[0].text.contains("ramp_time"));
}

#[test]
fn clones_with_entries_of_their_own_are_one_run_of_several_parts() {
    let one = document("", 0, 4, 1_000, "\"1004\" : 4");
    let entry = one.split("[").nth(1).unwrap().split("\n  ]").next().unwrap().to_owned();
    let set = read("a.json", &one.replacen(&entry, &format!("{entry},{entry}"), 1)).unwrap();
    assert_eq!(set.runs.len(), 1);
    let run = &set.runs[0];
    assert_eq!((run.job.outstanding, run.total().ios, run.total().iops), (Some(32.0), Some(8), Some(8.0)));
    assert_eq!(
        run.parts.iter().map(|part| part.job.outstanding).collect::<Vec<_>>(),
        [Some(16.0), Some(16.0)]
    );
    assert_eq!(histogram(&run.total()).count(), 8);
}

#[test]
fn the_hosts_of_a_client_are_runs_and_their_sum_is_left_out() {
    let one = document("\"hostname\" : \"a\",", 0, 4, 1_000, "\"1004\" : 4")
        .replace("\"jobs\"", "\"client_stats\"");
    let entry = one.split("[").nth(1).unwrap().split("\n  ]").next().unwrap().to_owned();
    let other = entry.replace("\"a\"", "\"b\"");
    let all = entry.replace("\"database\", \"hostname\" : \"a\"", "\"All clients\", \"hostname\" : \"\"");
    let text = one.replacen(&entry, &format!("{entry},{other},{all}"), 1);
    let set = read("a.json", &text).unwrap();
    let labels: Vec<&str> = set.runs.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["database on a", "database on b"]);
}

#[test]
fn what_is_cut_off_says_where() {
    let whole = document("", 0, 4, 1_000, "\"1004\" : 4");
    let error = read("a.json", &whole[..whole.len() / 2]).unwrap_err();
    assert!(error.line.is_some() && error.way_out.contains("cut off"), "{error}");
    // With a whole document before it, that one is used.
    let set = read("a.json", &(whole.clone() + &whole[..200])).unwrap();
    assert_eq!(set.runs.len(), 1);
    assert!(set.notes[0].text.contains("cut off"));
    assert!(read("a.json", "{}").unwrap_err().found.contains("\"jobs\""));
}

#[test]
fn an_old_fio_counted_microseconds() {
    let text = document("", 0, 4, 1_000, "").replace("lat_ns", "lat").replace("clat_ns", "clat");
    let set = read("a.json", &text).unwrap();
    assert_eq!(set.runs[0].total().latency_s, Some(3_250.0 / 1e6));
    assert_eq!(set.runs[0].total().latencies, Latencies::Percentiles(vec![(0.5, 0.001004)]));
}

/// Documents of fio before 2.13 have no options: a read of depth 1 was assumed, and contradicted by the figures.
#[test]
fn a_document_without_options_claims_nothing() {
    let text = r#"{ "fio version" : "fio-2.1.10", "jobs" : [ { "jobname" : "j", "groupid" : 0, "error" : 0,
        "read" : { "io_bytes" : 16324, "bw" : 272059, "iops" : 68014.0, "runtime" : 60001, "total_ios" : 4081,
            "lat" : { "min" : 91, "max" : 18420, "mean" : 1879.61, "stddev" : 402.81 } } } ] }"#;
    let set = read("a.json", text).unwrap();
    let run = &set.runs[0];
    assert_eq!((&run.job, run.workers), (&crate::model::Job::default(), None));
    // In KiB then.
    assert_eq!(run.total().bytes, Some(16_324 * 1_024));
    let audit = crate::audit(&[set], &crate::Claims::default());
    assert!(audit.of(crate::Code::OutstandingOther).next().is_none(), "{audit}");
}

/// A rate of 100 with a depth of 32 was "short of what was asked for".
#[test]
fn a_limited_rate_claims_no_depth() {
    let text =
        document("", 0, 4, 1_000, "\"1004\" : 4").replace("\"rw\" :", "\"rate_iops\" : \"100\", \"rw\" :");
    let set = read("a.json", &text).unwrap();
    assert_eq!((set.runs[0].job.outstanding, set.runs[0].job.rate), (None, Some(100.0)));
    let audit = crate::audit(&[set], &crate::Claims::default());
    assert!(audit.of(crate::Code::Short).next().is_none(), "{audit}");
}

/// fio on Windows wrote paths as they are, and older programs "nan".
#[test]
fn what_old_programs_wrote_against_the_rules_of_json_is_read() {
    let text = document("", 0, 4, 1_000, "\"1004\" : 4")
        .replace("\"bs\" : \"4k\"", "\"filename\" : \"C\\:\\data\\test.dat\", \"bs\" : \"4k\"")
        .replace("\"mean\" : 0.0", "\"mean\" : -nan");
    let run = &read("a.json", &text).unwrap().runs[0];
    assert_eq!((run.total().ios, run.job.block_bytes), (Some(4), Some(4_096)));
    assert_eq!(run.job.target.as_deref(), Some("C\\:\\data\\test.dat"));
}

/// 16 s and 60 s were both told by the middle of fio's last bucket, 17.11 s.
#[test]
fn what_lies_in_the_last_bucket_of_fio_is_told_as_beyond_it() {
    let bins = "\"1004\" : 90, \"17112760320\" : 10";
    let text = document("", 0, 100, 1_000, bins).replace("\"max\" : 10001", "\"max\" : 60000000000");
    let total = read("a.json", &text).unwrap().runs[0].total();
    assert_eq!(total.latencies.percentile(0.99).as_deref(), Some("> 17.2 s"));
    assert_eq!(total.latencies.percentile(0.5).as_deref(), Some("0.0010 ms"));
    assert_eq!(
        (total.latencies.percentile_s(0.99), total.latencies.percentile_s(0.5)),
        (None, Some(1.004e-6))
    );
    let list = text.replace(bins, "").replace("\"50.000000\" : 1004", "\"99.000000\" : 17112760320");
    let total = read("a.json", &list).unwrap().runs[0].total();
    assert_eq!(total.latencies.percentile(0.99).as_deref(), Some("> 17.2 s"));
}
