//! Tests of `vscsiStats -c`, with what our own recorder writes.

use super::*;
use base::{Instant, Random};
use iostats::Operations;
use iostats::{Kind, Operation, Recorder, Statistics};
use proptest::prelude::*;

/// What `vscsiStats -c` prints: the 16 histograms of a disk. `world` and `handle` are the numbers that it gives machine and
/// disk, `name` is what it puts in brackets behind ("scsi0:0").
pub(crate) fn write(statistics: &Statistics, world: u64, handle: u64, name: &str) -> String {
    let mut text = String::new();
    for view in statistics.histograms() {
        let title = view.kind.title(view.operations);
        text += &format!(
            "Histogram: {title},virtual machine worldGroupID,{world},virtual disk handleID,{handle} ({name})\n"
        );
        let mean = view.mean.map_or(0, |mean| mean as i64);
        text += &format!("min,{}\nmax,{}\nmean,{mean}\n", view.min.unwrap_or(0), view.max.unwrap_or(0));
        text += &format!("count,{}\nFrequency,Histogram Bucket Limit\n", view.count);
        // The last limit stands twice: the second time it is what is above it.
        let mut limit = 0;
        for bucket in &view.buckets {
            limit = bucket.limit.unwrap_or(limit);
            text += &format!("{},{limit}\n", bucket.count);
        }
    }
    text
}

/// The only dump of a text.
pub(crate) fn read_dump(file: &str, text: &str) -> Result<Dump, crate::ReadError> {
    read_dumps(file, text)
        .map(|dumps| <[Dump; 1]>::try_from(dumps).expect("the text has one dump"))
        .map(|[dump]| dump)
}

/// A recorder after `count` I/Os of a random mix, `at_ms` after the start.
fn feed(recorder: &mut Recorder, random: &mut Random, at_ms: u64, count: u64) {
    for index in 0..count {
        let operation = if random.chance(1, 3) { Operation::Write } else { Operation::Read };
        let now = Instant((at_ms * 1_000 + index * 500) * 1_000);
        let arrival = recorder.arrive(now, operation, random.below(1 << 30), random.range(1..200) as u32);
        recorder.complete(Instant(now.0 + random.range(50_000..40_000_000)), arrival, true);
    }
}

/// Dumps of one disk after each of the counts.
fn series(seed: u64, counts: &[u64]) -> (Vec<Statistics>, String) {
    let (mut recorder, mut random) = (Recorder::new(), Random::new(seed));
    let mut all = Vec::new();
    let mut text = String::new();
    for (index, &count) in counts.iter().enumerate() {
        feed(&mut recorder, &mut random, index as u64 * 60_000, count);
        text += &write(&recorder.statistics(), 7, 8_194, "scsi0:1");
        all.push(recorder.statistics());
    }
    (all, text)
}

fn error_of(text: &str) -> String {
    read_dump("dump.csv", text).unwrap_err().to_string()
}

/// Without `-c` it was "no block" at all.
#[test]
fn what_is_printed_for_people_is_read_like_the_table() {
    let (_, table) = series(1, &[500]);
    let mut printed = String::new();
    let (mut limits, mut last) = (false, String::new());
    for line in table.lines() {
        if let Some(heading) = line.strip_prefix("Histogram: ") {
            if limits {
                printed += "   }\n}\n";
            }
            let heading = heading
                .replace(",virtual machine worldGroupID,", " for virtual machine worldGroupID : ")
                .replace(",virtual disk handleID,", ", virtual disk handleID : ");
            printed += &format!("Histogram: {heading} {{\n");
            limits = false;
        } else if line.starts_with("Frequency") {
            printed += "   {\n";
            limits = true;
        } else if limits {
            let (count, limit) = line.split_once(',').unwrap();
            let sign = if limit == last { ">" } else { "<=" };
            printed += &format!("      {count:<16}({sign}{limit:>20})\n");
            limit.clone_into(&mut last);
        } else {
            printed += &format!(" {}\n", line.replace(',', " : "));
        }
    }
    printed += "   }\n}\n";
    assert!(is_dump(&printed) && printed.contains("(<="), "{printed}");
    assert_eq!(read_dump("p.txt", &printed).unwrap(), read_dump("t.csv", &table).unwrap());
    let cut = &printed[..printed.len() / 2];
    assert!(read_dump("p.txt", cut).unwrap_err().to_string().contains("p.txt"), "{cut}");
}

#[test]
fn what_is_written_reads_back_histogram_by_histogram() {
    let (all, text) = series(1, &[500]);
    assert!(text.starts_with("Histogram: IO lengths of commands,virtual machine worldGroupID,7,virtual disk handleID,8194 (scsi0:1)\nmin,"));
    assert!(is_dump(&text) && !is_dump("Histogram: of another tool\n"));
    assert_eq!(text.matches("Histogram: ").count(), 16);
    // The limit of the last bucket stands twice.
    assert_eq!(text.matches(",524288\n").count(), 6);
    let dump = read_dump("dump.csv", &text).unwrap();
    let disk = &dump.disks[0];
    assert_eq!(
        (disk.world, disk.handle, disk.name.as_str(), disk.histograms.len()),
        (7, 8_194, "scsi0:1", 16)
    );
    for view in all[0].histograms() {
        let found = disk.histogram(view.kind, view.operations).unwrap();
        let counts: Vec<u64> = view.buckets.iter().map(|bucket| bucket.count).collect();
        assert_eq!(
            (&found.counts, found.count, found.min, found.max),
            (&counts, view.count, view.min, view.max)
        );
        assert_eq!(found.mean, view.mean.map(|mean| mean as i64));
    }
}

#[test]
fn windows_of_a_series_are_the_differences_of_its_dumps() {
    let (all, text) = series(2, &[300, 0, 700]);
    let dumps = read_dumps("s.csv", &text).unwrap();
    assert_eq!(dumps.len(), 3);
    let capture = capture("s.csv", &dumps, &[60.0, 120.0, 180.0], Counting::FindOut).unwrap();
    let disk = &capture.disks[0];
    assert_eq!((disk.name.as_str(), disk.windows.len(), disk.gaps.len()), ("vm 7 scsi0:1", 3, 0));
    let ios: Vec<u64> = disk.windows.iter().map(|window| window.total(Operations::Both).ios).collect();
    assert_eq!(ios, [300, 0, 700]);
    let last = all[2].difference(&all[1]);
    let window = &disk.windows[2];
    for view in last.histograms() {
        let counts: Vec<u64> = view.buckets.iter().map(|bucket| bucket.count).collect();
        assert_eq!(window.counts(view.kind, view.operations), Some(counts.as_slice()));
    }
    assert!((window.iops(Operations::Both) - 700.0 / 60.0).abs() < 1e-9);
    let near = |found: f64, exact: f64| assert!((found / exact - 1.0).abs() < 0.01, "{found} for {exact}");
    near(window.total(Operations::Reads).bytes as f64, last.bytes(Operations::Reads) as f64);
    near(
        window.latency_mean_s(Operations::Both).unwrap(),
        last.latency_mean(Operations::Both).unwrap().as_secs_f64(),
    );
}

#[test]
fn a_reset_is_a_gap_and_a_reset_each_time_is_found_out() {
    let (one, two) = (series(3, &[900, 950]).1, series(4, &[40, 80]).1);
    let dumps = read_dumps("s.csv", &format!("{one}{two}")).unwrap();
    let capture_of = |dumps: &[Dump], counting| {
        let times: Vec<f64> = (0..dumps.len()).map(|index| 60.0 * (index + 1) as f64).collect();
        capture("s.csv", dumps, &times, counting)
    };
    let found = capture_of(&dumps, Counting::FindOut).unwrap();
    let disk = &found.disks[0];
    assert_eq!((disk.windows.len(), disk.gaps.len()), (3, 1));
    assert_eq!((disk.gaps[0].at_s, disk.gaps[0].reason.as_str()), (120.0, "the counters were reset"));
    let each: String = (0..4).map(|seed| series(seed, &[400 + seed]).1).collect();
    let dumps = read_dumps("s.csv", &each).unwrap();
    let found = capture_of(&dumps, Counting::FindOut).unwrap();
    let ios: Vec<u64> =
        found.disks[0].windows.iter().map(|window| window.total(Operations::Both).ios).collect();
    assert_eq!(ios, [400, 401, 402, 403]);
    assert!(found.notes[0].contains("each dump is taken as reset"), "{:?}", found.notes);
}

#[test]
fn a_count_that_falls_without_a_reset_is_an_error() {
    let (_, text) = series(5, &[100, 100]);
    let mut dumps = read_dumps("s.csv", &text).unwrap();
    // One value moves to another bucket: as many as before, and none beyond the smallest and largest.
    let counts = &mut dumps[0].disks[0].histograms[0].counts;
    let from = counts.iter().position(|&count| count > 0).unwrap();
    counts[from] += 50;
    let error = capture("s", &dumps, &[1.0, 2.0], Counting::Cumulative).unwrap_err();
    assert!(matches!(error, SeriesError::Negative { before: 0, index: 1, .. }), "{error}");
    assert!(error.to_string().contains("IO lengths of commands"), "{error}");
    assert!(matches!(
        capture("s", &dumps, &[1.0], Counting::Cumulative),
        Err(SeriesError::Times { dumps: 2, times: 1 })
    ));
    let times = capture("s", &dumps, &[2.0, 2.0], Counting::Cumulative).unwrap_err();
    assert!(matches!(times, SeriesError::Order { index: 1, .. }), "{times}");
}

#[test]
fn a_stop_after_half_an_hour_is_no_idle_time() {
    let mut counts = vec![100; 30];
    counts.extend([0; 5]);
    let (_, text) = series(6, &counts);
    let dumps = read_dumps("s.csv", &text).unwrap();
    let times: Vec<f64> = (1..=35).map(|index| 60.0 * f64::from(index)).collect();
    let capture = capture("s.csv", &dumps, &times, Counting::FindOut).unwrap();
    let disk = &capture.disks[0];
    assert_eq!((disk.windows.len(), disk.gaps[0].at_s, disk.gaps[0].seconds), (30, 1_800.0, 300.0));
    assert!(capture.notes[0].contains("30 minutes"), "{:?}", capture.notes);
}

#[test]
fn a_wrapped_interarrival_time_is_no_figure_and_its_counts_stay() {
    let (_, text) = series(7, &[10]);
    let begin = text.find("Histogram: latency of IO interarrival time in").unwrap();
    let (before, block) = text.split_at(begin);
    let max = block.lines().find(|line| line.starts_with("max,")).unwrap();
    let text = format!("{before}{}", block.replacen(max, "max,581013626718", 1));
    let dump = read_dump("d", &text).unwrap();
    let found = dump.disks[0].histogram(Kind::Interarrival, Operations::Both).unwrap();
    assert_eq!((found.min, found.max, found.mean, found.count), (None, None, None, 9));
}

#[test]
fn damage_is_refused_where_it_is() {
    let (_, text) = series(8, &[10]);
    let check = |text: &str, parts: &[&str]| {
        let error = error_of(text);
        for part in parts {
            assert!(error.contains(part), "{error} lacks {part}");
        }
    };
    check("", &["dump.csv:1:1", "vscsiStats -p all"]);
    check(
        &text.replacen("count,10", "count,11", 1),
        &["dump.csv:1:1", "buckets with 10 values", "in a block of 11"],
    );
    check(&text.replacen(",1024\n", ",1000\n", 1), &["dump.csv:8:1", "<count>,1024"]);
    check(&text.replacen("min,", "least,", 1), &["dump.csv:2:1", "min,<number>"]);
    check(&text.replacen(",virtual disk handleID", "", 1), &["dump.csv:1:1", "worldGroupID,<number>"]);
    check(text.trim_end().rsplit_once('\n').unwrap().0, &["cut off"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_count_that_falls_is_told_with_its_disk_bucket_dumps_and_the_way_out(bucket in 0usize..18, less in 1u64..50) {
        let (_, text) = series(12, &[400, 400]);
        let mut dumps = read_dumps("s", &text).unwrap();
        // One bucket of the second dump has fewer than in the first; its count and extremes do not show a reset.
        let earlier = dumps[0].disks[0].histograms[0].counts[bucket];
        prop_assume!(earlier >= less);
        dumps[1].disks[0].histograms[0].counts[bucket] = earlier - less;
        let error = capture("s", &dumps, &[60.0, 120.0], Counting::Cumulative).unwrap_err().to_string();
        let told = format!("fell from {earlier} in dump 1 to {} in dump 2", earlier - less);
        for part in ["vm 7 scsi0:1", "IO lengths of commands", "pass --separate", &told] {
            prop_assert!(error.contains(part), "{} lacks {}", error, part);
        }
        // That is no series, but each dump by itself is still one.
        prop_assert!(capture("s", &dumps, &[60.0, 120.0], Counting::ResetEachTime).is_ok());
    }

    #[test]
    fn no_io_is_lost_or_invented(seed in 0u64..1_000, counts in prop::collection::vec(0u64..200, 1..6)) {
        let (_, text) = series(seed, &counts);
        let dumps = read_dumps("s", &text).unwrap();
        let times: Vec<f64> = (1..=dumps.len()).map(|index| index as f64).collect();
        let capture = capture("s", &dumps, &times, Counting::Cumulative).unwrap();
        let whole = capture.disks[0].whole().unwrap();
        prop_assert_eq!(whole.total(Operations::Both).ios, counts.iter().sum::<u64>());
    }
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(600), ..ProptestConfig::default() })]

    #[test]
    fn no_mutation_of_a_dump_makes_the_reader_panic(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let (_, text) = series(9, &[20, 30]);
        let mut bytes = text.into_bytes();
        for _ in 0..random.range(1..5) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes[at] = b"0123456789,-\n H"[random.below(15) as usize],
                1 => bytes.truncate(at.max(1)),
                _ => drop(bytes.splice(at..at, *b"9999999999999999999")),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match read_dumps("m.csv", &text) {
            Ok(dumps) => {
                let times: Vec<f64> = (1..=dumps.len()).map(|index| index as f64).collect();
                for counting in [Counting::FindOut, Counting::Cumulative, Counting::ResetEachTime] {
                    let _ = capture("m.csv", &dumps, &times, counting);
                }
            }
            Err(error) => prop_assert!(error.to_string().starts_with("m.csv:"), "{}", error),
        }
    }
}
