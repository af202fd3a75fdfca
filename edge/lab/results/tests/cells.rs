//! Which rows are runs of one cell.
#![allow(clippy::unwrap_used, reason = "in tests, what is missing shall stop them")]

use results::{Claims, Code, audit, read};

fn noisy(text: &str) -> usize {
    audit(&[read("t.csv", text, None).unwrap()], &Claims::default()).of(Code::NoisyRuns).count()
}

/// A table of random and sequential rows was told to be "two runs of one cell that vary by 139 %".
#[test]
fn cells_differ_when_any_column_of_the_workload_differs() {
    let check = |header: &str, rows: [&str; 2], expected: usize| {
        let text = format!("{header},iops,latency_ms\n{},10000,1.0\n{},90000,1.0\n", rows[0], rows[1]);
        assert_eq!(noisy(&text), expected, "{text}");
    };
    check("workload,seekpct", ["4k read,100", "4k read,0"], 0);
    check("workload,xfersize", ["read,4k", "read,64k"], 0);
    check("workload,rdpct", ["4k random,100", "4k random,70"], 0);
    check("workload,threads", ["4k random read,1", "4k random read,8"], 0);
    check("workload,lun", ["4k random read,/dev/sdb", "4k random read,/dev/sdc"], 0);
    check("workload,iorate", ["4k random read,1000", "4k random read,2000"], 0);
    check("workload,engine", ["4k random read,libaio", "4k random read,io_uring"], 0);
    // The same again is a repeat, whatever the run is called, and whatever else was measured.
    check("workload,run,cpu", ["4k random read,1,20", "4k random read,2,30"], 1);
    check("workload,date", ["4k random read,2026-01-02", "4k random read,2026-01-03"], 1);
}

/// Each file was audited by itself: three runs of one workload were told three times that there is one run.
#[test]
fn runs_of_one_workload_in_files_of_their_own_are_repeats() {
    let set = |file: &str, iops: u32, depth: u32| {
        let text = format!("workload,threads,depth,iops,latency_ms\n4k random read,1,{depth},{iops},1.0\n");
        read(file, &text, None).unwrap()
    };
    let sets = [set("a1.csv", 1_000, 1), set("a2.csv", 1_010, 1), set("a3.csv", 990, 1)];
    let found = audit(&sets, &Claims::default());
    assert_eq!((found.of(Code::OneRun).count(), found.of(Code::NoisyRuns).count()), (0, 0), "{found}");
    let apart = [set("a1.csv", 1_000, 1), set("a2.csv", 1_500, 1), set("b.csv", 8_000, 8)];
    let found = audit(&apart, &Claims::default());
    let noisy: Vec<_> = found.of(Code::NoisyRuns).collect();
    assert_eq!(noisy.len(), 1, "{found}");
    assert!(
        noisy[0].sentence.starts_with("2 runs of one workload vary by 28 % of their mean (limit 5 %)"),
        "{found}"
    );
    let sources: Vec<&str> = noisy[0].rows.iter().map(|row| row.source.as_str()).collect();
    assert_eq!(sources, ["a1.csv", "a2.csv"]);
    let once = found.of(Code::OneRun).next().unwrap();
    assert!(once.sentence.starts_with("1 of 2 cells has one run."), "{found}");
    assert_eq!(once.rows.iter().map(|row| row.source.as_str()).collect::<Vec<_>>(), ["b.csv"]);
}

#[test]
fn small_rates_are_printed_with_their_digits() {
    let text = "workload,iops,latency_ms\n1M write,0.13,7700.0\n1M write,0.23,4300.0\n";
    let audit = audit(&[read("t.csv", text, None).unwrap()], &Claims::default()).to_string();
    assert!(audit.contains("0.13 IOPS") && audit.contains("0.23 IOPS"), "{audit}");
}

#[test]
fn an_agreement_of_no_row_is_no_finding() {
    let text = "workload,threads,iops,latency_ms\n4k random read,4,1000,1.00\n4k random read,8,1000,2.00\n";
    let set = read("t.csv", &text.replace("threads", "outstanding"), None).unwrap();
    let audit = audit(&[set], &Claims::default());
    assert_eq!(audit.of(Code::OutstandingAgrees).count(), 0, "{audit}");
    assert_eq!(audit.of(Code::Short).count(), 1, "{audit}");
}
