//! Lines of like form to fio's logs.

use super::*;

#[test]
fn a_line_per_io_gives_every_latency() {
    let text = "10, 100000, 0, 4096, 0\n900, 300000, 0, 4096, 8192, 0x0000\n1500, 50000, 1, 8192, 0\n";
    let set = read("x_clat.1.log", text).unwrap();
    let run = &set.runs[0];
    let total = run.total();
    assert_eq!((total.ios, total.bytes, total.iops), (Some(3), Some(16_384), Some(2.0)));
    let Latencies::Exact(histogram) = total.latencies else { panic!("{run:?}") };
    assert_eq!((histogram.min_ns(), histogram.max_ns()), (Some(50_000), Some(300_000)));
    assert_eq!(run.intervals.len(), 2);
    assert_eq!(run.intervals[0].latency_s, Some(0.0002));
}

#[test]
fn averages_are_a_series_and_no_distribution() {
    let set = read("x_lat.1.log", "500, 200000, 0, 0, 0\n1000, 400000, 0, 0, 0\n").unwrap();
    assert_eq!(set.runs[0].total().latencies, Latencies::None);
    assert!(set.runs[0].notes[0].text.contains("percentiles are unknown"));
    let set = read("x_iops.1.log", "500, 100, 0, 0\n500, 50, 0, 0\n1500, 300, 0, 0\n").unwrap();
    // Two jobs in the first half second, one in the second after it: (150 * 0.5 + 300) / 1.5.
    assert_eq!(set.runs[0].total().iops, Some(250.0));
    let set = read("x_bw.1.log", "500, 100, 1, 0\n").unwrap();
    assert_eq!(set.runs[0].total().bytes_per_s, Some(102_400.0));
}

/// Written by fio 3.33 without log_avg_msec: every I/O of the IOPS log is "1", which was read as one IOPS.
#[test]
fn logs_of_rates_without_averaging_have_a_line_per_io() {
    let text = "0, 1, 0, 4096, 0\n500, 1, 0, 4096, 0\n1500, 1, 1, 4096, 0\n2000, 1, 0, 4096, 0\n";
    let total = read("x_iops.1.log", text).unwrap().runs[0].total();
    assert_eq!((total.iops, total.bytes_per_s, total.latency_s), (Some(2.0), Some(8_192.0), None));
    let text = "0, 18009, 0, 4096, 0\n1000, 78890, 0, 4096, 0\n2000, 120276, 0, 4096, 0\n";
    let total = read("x_bw.1.log", text).unwrap().runs[0].total();
    assert_eq!((total.ios, total.bytes_per_s), (Some(3), Some(6_144.0)));
}

#[test]
fn a_log_without_its_name_or_with_an_odd_line_is_refused() {
    assert!(read("log.txt", "500, 100, 1, 0\n").unwrap_err().way_out.contains("_lat.1.log"));
    assert_eq!(read("x_lat.1.log", "500, 100, 1, 0\n900, 1").unwrap_err().line, Some(2));
    assert!(read("x_lat.1.log", "500, 100, 7, 0\n").unwrap_err().found.contains("direction 7"));
}

#[test]
fn histograms_are_of_the_time_since_the_line_before() {
    let line = |ms: u64, bucket: usize, count: u64| {
        let counts: Vec<String> =
            (0..1_856).map(|at| if at == bucket { count } else { 0 }.to_string()).collect();
        format!("{ms}, 0, 4096, {}\n", counts.join(", "))
    };
    let text = line(1_000, 317, 5) + &line(2_000, 400, 15);
    assert!(is_fio_histogram_log(&text) && !is_fio_log(&text));
    let set = read_histograms("x_clat_hist.1.log", &text).unwrap();
    let run = &set.runs[0];
    assert_eq!((run.total().ios, run.total().iops), (Some(20), Some(10.0)));
    assert_eq!(run.intervals[1].iops, Some(15.0));
    let error = read_histograms("x", "1000, 0, 4096, 1, 2\n").unwrap_err();
    assert!(error.found.contains("1856") && error.line == Some(1), "{error}");
}
