//! Rows of like form to Vdbench's.

use super::*;

pub(crate) const SUMMARY: &str = "
10:56:59.001 Starting RD=run1; I/O rate: Uncontrolled MAX; elapsed=4 warmup=1; For loops: threads=8

Jan 02, 2026 interval        i/o   MB/sec   bytes   read     resp     read    write     resp     resp queue  cpu%  cpu%
                            rate  1024**2     i/o    pct     time     resp    resp      max   stddev depth sys+u   sys
10:57:00.106        1     100.00     0.39    4096  70.00   80.000   80.000   80.000   99.000    1.000   8.0   1.6   1.2
10:57:01.106        2    3000.00    11.72    4096  70.00    2.000    1.000    4.333    9.000    1.000   6.0   1.6   1.2
10:57:02.106        3    1000.00     3.91    4096  70.00   10.000    9.000   12.333   90.000    1.000  10.0   1.6   1.2
10:57:02.110  avg_2-3    2000.00     7.81    4096  70.00    4.000    3.000    6.333   90.000    1.000   8.0   1.6   1.2
";

pub(crate) const FLATFILE: &str = "<pre>
* tod: time of day
tod Run Interval reqrate rate MB/sec bytes/io read% resp threads note
10:57:01.1 r1 1 9999988 100 0.39 4096 100 8.0 8 n/a
10:57:02.1 r1 2 9999988 2000 7.8 4096 100 4.0 8 n/a
10:57:02.2 r1 avg_2-2 9999988 2000 7.8 4096 100 4.0 8 n/a
10:58:01.1 r2 avg_2-2 9999988 500 1.9 4096 0 16.0 8 n/a
";

pub(crate) const HISTOGRAM: &str = "<a name=\"x\"></a>Reads:
       min(ms) <       max(ms)        count       %%   cum%%
         0.000 <         1.000        9,000  90.0000  90.0000
         1.000 <        10.000          900   9.0000  99.0000
        10.000 <           max          100   1.0000 100.0000
";

#[test]
fn a_summary_is_read_by_its_two_headers() {
    assert!(is_summary(SUMMARY));
    let set = read_summary("summary.html", SUMMARY).unwrap();
    assert_eq!(set.runs.len(), 1);
    let run = &set.runs[0];
    assert_eq!(
        (run.label.as_str(), run.job.outstanding, run.job.block_bytes),
        ("run1", Some(8.0), Some(4_096))
    );
    let total = run.total();
    assert_eq!((total.iops, total.latency_s), (Some(2_000.0), Some(0.004)));
    assert_eq!(run.directions[&Direction::Write].latency_s, Some(6.333 / 1e3));
    assert_eq!(run.intervals.len(), 3);
    // (3000 * 2 + 1000 * 10) / 4000 = 4: the file's own average; the plain mean would be 6.
    assert_eq!(run.notes, []);
}

#[test]
fn an_average_that_is_not_that_of_its_intervals_is_noted() {
    let edited = SUMMARY.replace("70.00    4.000    3.000", "70.00    6.000    3.000");
    let run = read_summary("summary.html", &edited).unwrap().runs.remove(0);
    assert!(
        run.notes[0].text.contains("latency is 6 ms, but the mean of its intervals weighted by I/Os is 4 ms"),
        "{:?}",
        run.notes
    );
}

/// "0.008 ms is not the mean of its intervals, 0.008 ms": three digits are printed, and the mean of 0.008 and 0.009 is within them.
#[test]
fn a_difference_that_disappears_when_printed_is_none() {
    let small = SUMMARY
        .replace("70.00    2.000", "70.00    0.008")
        .replace("70.00   10.000", "70.00    0.009")
        .replace("70.00    4.000", "70.00    0.008");
    assert_eq!(read_summary("summary.html", &small).unwrap().runs[0].notes, []);
}

/// Runs of a curve were told to be noisy repeats of one cell.
#[test]
fn runs_of_different_rates_are_different_cells() {
    let rated = SUMMARY.replace("Uncontrolled MAX", "1500");
    let other =
        SUMMARY.replace("Uncontrolled MAX", "3000").replace("    2000.00     7.81", "    3000.00     7.81");
    let set = read_summary("summary.html", &format!("{rated}{other}")).unwrap();
    assert_eq!(set.runs[0].job.rate, Some(1_500.0));
    let audit = crate::audit(&[set], &crate::Claims::default());
    assert_eq!(audit.of(crate::Code::NoisyRuns).count(), 0, "{audit}");
    // What is asked for is less than the threads could do: no contradiction with eight threads.
    assert_eq!(audit.of(crate::Code::Short).count(), 0, "{audit}");
    let flat = FLATFILE.replace("9999988", "500");
    assert_eq!(read_flatfile("flatfile.html", &flat).unwrap().runs[0].job.rate, Some(500.0));
}

#[test]
fn a_summary_without_average_is_used_and_told() {
    let cut = &SUMMARY[..SUMMARY.find("10:57:02.110").unwrap()];
    let run = read_summary("summary.html", cut).unwrap().runs.remove(0);
    assert_eq!((run.total().iops, run.total().latency_s), (Some(2_000.0), Some(0.004)));
    assert!(run.notes[0].text.contains("no row of averages"));
    let within = &SUMMARY[..SUMMARY.find(" 90.000    1.000   8.0").unwrap()];
    assert!(read_summary("summary.html", within).unwrap_err().line.is_some());
}

#[test]
fn a_flatfile_is_read_by_its_header() {
    assert!(is_flatfile(FLATFILE));
    let set = read_flatfile("flatfile.html", FLATFILE).unwrap();
    let labels: Vec<(&str, Option<f64>)> =
        set.runs.iter().map(|run| (run.label.as_str(), run.total().latency_s)).collect();
    assert_eq!(labels, [("r1", Some(0.004)), ("r2", Some(0.016))]);
    assert_eq!(set.runs[0].job.threads, Some(8));
}

#[test]
fn histograms_are_bounded() {
    let set = read_histograms("histogram.html", HISTOGRAM).unwrap();
    let figures = &set.runs[0].directions[&Direction::Read];
    assert_eq!(figures.ios, Some(10_000));
    assert_eq!(figures.latencies.percentile(0.99).as_deref(), Some("between 1 and 10 ms"));
    assert_eq!(figures.latencies.percentile(0.999).as_deref(), Some("above 10 ms"));
    let gap = HISTOGRAM.replace("         1.000 <", "         2.000 <");
    assert!(read_histograms("histogram.html", &gap).unwrap_err().found.contains("not contiguous"));
}

#[test]
fn what_parseflat_makes_of_a_flatfile_is_read() {
    let text = "Run,xfersize,seekpct,threads,reqrate,rate,resp,MB/sec\nr1,4096,100,8,500,499.8,0.412,1.95\n\
        r1,4096,100,8,1000,998.1,0.522,3.90\nr2,4096,0,8,9999988,5000.0,1.600,19.53\n";
    assert!(is_flatfile(text));
    let set = read_flatfile("out.csv", text).unwrap();
    let found: Vec<_> = set
        .runs
        .iter()
        .map(|run| (run.label.as_str(), run.job.random_share, run.job.rate, run.total().iops))
        .collect();
    assert_eq!(
        found,
        [
            ("r1", Some(1.0), Some(500.0), Some(499.8)),
            ("r1", Some(1.0), Some(1_000.0), Some(998.1)),
            ("r2", Some(0.0), None, Some(5_000.0)),
        ]
    );
    let audit = crate::audit(&[set], &crate::Claims::default());
    assert_eq!(audit.of(crate::Code::NoisyRuns).count(), 0, "{audit}");
}

#[test]
fn an_output_folder_is_read_once_by_the_file_that_tells_most() {
    let files = [
        ("out/summary.html", SUMMARY),
        ("out/flatfile.html", FLATFILE),
        ("out/sd1.html", SUMMARY),
        ("out/errorlog.html", "nothing"),
    ];
    let set = read_folder("out", &files).unwrap();
    assert_eq!((set.source.as_str(), set.runs.len()), ("out", 2));
    assert_eq!(read_folder("out", &files[..1]).unwrap().runs[0].label, "run1");
    assert!(read_folder("out", &files[3..]).is_err());
}
