//! What fio 3.33 wrote of one job file in each form, and a text in the form of 2.1.

use super::*;

pub(crate) const NORMAL: &str = include_str!("../../tests/data/fio-3.33-normal.txt");
pub(crate) const TERSE: &str = include_str!("../../tests/data/fio-3.33-terse3.txt");
const TERSE_2: &str = include_str!("../../tests/data/fio-3.33-terse2.txt");
const TERSE_5: &str = include_str!("../../tests/data/fio-3.33-terse5.txt");
const OLD: &str = include_str!("../../tests/data/fio-2.1.10-normal.txt");

fn near(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
}

#[test]
fn the_normal_output_of_fio_is_read_with_all_its_digits() {
    let set = read("n.txt", NORMAL).unwrap();
    assert_eq!(set.version.as_deref(), Some("fio-3.33"));
    let [mix, seq] = &set.runs[..] else { panic!("{set:?}") };
    assert_eq!((mix.label.as_str(), mix.job.threads, mix.job.outstanding), ("mix", Some(2), Some(2.0)));
    assert_eq!(
        (mix.job.block_bytes, mix.job.random_share, mix.job.read_share),
        (Some(4_096), Some(1.0), None)
    );
    let read = &mix.directions[&Direction::Read];
    // 52,424 reads in 1.001 s, printed as 52.4k.
    near(read.iops, 52_424.0 / 1.001);
    near(read.latency_s, 26_062.24e-9);
    assert_eq!(read.latencies.percentile(0.99).as_deref(), Some("0.089 ms"));
    assert_eq!(mix.directions[&Direction::Write].ios, Some(22_503));
    assert_eq!((seq.job.block_bytes, seq.job.read_share), (Some(65_536), Some(0.0)));
    near(seq.directions[&Direction::Write].bytes_per_s, 8_627.0 * 1_048_576.0);
    assert_eq!((mix.notes.len(), seq.notes.len()), (0, 0));
}

#[test]
fn the_normal_output_of_older_programs_is_read() {
    let set = read("o.txt", OLD).unwrap();
    let run = &set.runs[0];
    assert_eq!((set.version.as_deref(), run.job.outstanding), (Some("fio-2.1.10"), Some(128.0)));
    let total = run.total();
    near(total.iops, 4_080_889.0 / 60.001);
    near(total.latency_s, 1_879.61e-6);
    near(total.bytes_per_s, 272_059.0 * 1_024.0);
    assert_eq!(total.latencies.percentile(0.9999).as_deref(), Some("11.58 ms"));
    let audit = crate::audit(&[set], &crate::Claims::default());
    assert_eq!(audit.of(crate::Code::OutstandingAgrees).count(), 1, "{audit}");
}

#[test]
fn every_version_of_the_terse_output_is_read_with_its_units() {
    for (text, version, iops, mean_us) in [
        (TERSE_2, None, [44_475.0, 19_105.0], 22.555568),
        (TERSE, Some("fio-3.33"), [43_921.0, 18_886.0], 27.388772),
        (TERSE_5, Some("fio-3.33"), [41_468.0, 17_764.0], 22.917533),
    ] {
        let set = read_terse("t.txt", text).unwrap();
        assert_eq!((set.version.as_deref(), set.runs.len()), (version, 2));
        let mix = &set.runs[0];
        let [reads, writes] = [Direction::Read, Direction::Write].map(|of| mix.directions[&of].clone());
        assert_eq!([reads.iops, writes.iops], iops.map(Some));
        near(reads.latency_s, mean_us / 1e6);
        assert!(!mix.directions.contains_key(&Direction::Trim));
        assert!(reads.latencies.percentile(0.999).is_some() && reads.latencies.percentile(0.01).is_none());
        assert_eq!(mix.job, Job::default(), "no option is named, so none is assumed");
    }
}

#[test]
fn what_is_cut_off_says_so() {
    assert!(read("n.txt", &NORMAL[..NORMAL.find("read: IOPS").unwrap()]).is_err());
    let cut = &TERSE[..TERSE.find(";18886").unwrap()];
    let error = read_terse("t.txt", &format!("{cut}{}", ";0%=0".repeat(4))).unwrap_err();
    assert_eq!((error.kind, error.line), (Kind::FioTerse, None));
}

#[test]
fn what_lies_in_the_last_bucket_of_fio_is_told_as_beyond_it() {
    let slow =
        NORMAL.replace("clat percentiles (usec)", "clat percentiles (msec)").replace("[ 4047]", "[17113]");
    let writes = &read("n.txt", &slow).unwrap().runs[1].directions[&Direction::Write];
    assert_eq!(writes.latencies.percentile(0.9999).as_deref(), Some("> 17.2 s"));
}
