//! The audit of published tables: what it must find by itself, and what with the caption.

use results::{Audit, Claims, Code, Finding, Severity, audit, read};

const SCALE_OUT: &str = include_str!("data/striping-scaleout-stripes1.csv");
const SWEEP_DISKSPD: &str = include_str!("data/striping-sweep-diskspd.csv");
const SWEEP_FIO: &str = include_str!("data/striping-sweep-fio.csv");

fn audited(file: &str, text: &str, caption: Option<&str>) -> Audit {
    let set = read(file, text, caption).unwrap_or_else(|error| panic!("{error}"));
    audit(&[set], &Claims::default())
}

fn only(audit: &Audit, code: Code) -> Finding {
    let found: Vec<&Finding> = audit.of(code).collect();
    assert_eq!(found.len(), 1, "{code:?} in {audit}");
    found[0].clone()
}

#[test]
fn without_any_claim_the_tools_are_seen_to_have_run_different_loads() {
    let audit = audited("table.csv", SCALE_OUT, None);
    let finding = only(&audit, Code::ToolsDiffer);
    assert_eq!(finding.severity, Severity::Contradiction);
    assert!(
        finding
            .sentence
            .contains("fio held 256 outstanding I/Os and DiskSPD 64 (IOPS × latency): 4 times as many"),
        "{finding}"
    );
    assert_eq!(finding.rows.len(), 12, "every row with one VM");
    assert_eq!(audit.of(Code::OutstandingOther).count(), 0, "nobody claimed anything");
}

#[test]
fn with_its_caption_the_table_contradicts_it_for_one_tool() {
    let check = |audit: Audit| {
        let other = only(&audit, Code::OutstandingOther);
        assert!(other.sentence.starts_with("fio held 256 outstanding I/Os per VM"), "{other}");
        assert!(other.sentence.contains("4 times as many as the 64 claimed"), "{other}");
        let agrees = only(&audit, Code::OutstandingAgrees);
        assert!(agrees.sentence.starts_with("DiskSPD held 64 outstanding I/Os per VM"), "{agrees}");
    };
    check(audited("table.csv", SCALE_OUT, Some("captioned threads = 4, outstanding = 16 per thread")));
    check(audited("table.csv", &format!("# threads=4, outstanding=16 per thread\n{SCALE_OUT}"), None));
    let claims = Claims { outstanding_per_vm: Some(64.0), ..Claims::default() };
    check(audit(&[read("table.csv", SCALE_OUT, None).unwrap()], &claims));
}

#[test]
fn rows_of_unequal_vms_are_named_with_their_excess() {
    let audit = audited("table.csv", SCALE_OUT, None);
    let of = |tool: &str| {
        let found = audit.of(Code::UnequalVms).find(|finding| finding.sentence.starts_with(tool));
        found.unwrap_or_else(|| panic!("{audit}")).clone()
    };
    let (diskspd, fio) = (of("DiskSPD: "), of("fio: "));
    // Counted apart from the code, straight from the table: N / (VMs x 64 or 256) > 1.05 beyond the latency's rounding.
    assert_eq!((diskspd.rows.len(), fio.rows.len()), (28, 34));
    let named = |finding: &Finding, at: usize| {
        (finding.rows[at].label.clone(), finding.rows[at].figure.clone().unwrap())
    };
    assert_eq!(named(&diskspd, 0), ("3 VMs, 4k random write, DiskSPD".to_owned(), "1.98 times".to_owned()));
    assert_eq!(named(&diskspd, 1), ("12 VMs, 64k random write, DiskSPD".to_owned(), "1.76 times".to_owned()));
    assert_eq!(named(&fio, 0), ("3 VMs, 4k random write, fio".to_owned(), "2.14 times".to_owned()));
    assert_eq!(named(&fio, 1), ("12 VMs, 64k random write, fio".to_owned(), "1.57 times".to_owned()));
    assert_eq!(audit.of(Code::Short).count(), 0, "no row holds less than its VMs could");
}

#[test]
fn latencies_of_the_two_tools_may_not_be_compared_and_iops_where_both_saturate() {
    let finding = only(&audited("table.csv", SCALE_OUT, None), Code::Comparable);
    assert!(finding.sentence.contains("latency cannot be compared in any row"), "{finding}");
    assert!(finding.sentence.contains("IOPS can be compared in 48 of 72 pairs"), "{finding}");
    assert_eq!(finding.rows.len(), 24);
}

#[test]
fn one_run_per_cell_supports_no_claim() {
    let finding = only(&audited("table.csv", SCALE_OUT, None), Code::OneRun);
    assert!(finding.sentence.starts_with("all 144 cells have one run each"), "{finding}");
}

#[test]
fn megabytes_are_binary_in_every_row() {
    for (text, rows) in [(SCALE_OUT, 144), (SWEEP_DISKSPD, 32), (SWEEP_FIO, 32)] {
        let audit = audited("table.csv", text, None);
        let finding = only(&audit, Code::Megabytes);
        let expected = format!("MiB/s (2^20 bytes): IOPS × I/O size agrees in {rows} of {rows} rows");
        assert!(finding.sentence.contains(&expected), "{finding}");
        assert_eq!(audit.of(Code::MegabytesWrong).count(), 0);
    }
}

#[test]
fn megabytes_that_are_not_iops_times_size_are_found() {
    let changed =
        SCALE_OUT.replace("1,4k random read,diskspd,67054,262,", "1,4k random read,diskspd,67054,362,");
    let finding = only(&audited("table.csv", &changed, None), Code::MegabytesWrong);
    assert_eq!(finding.rows.len(), 1);
    assert_eq!(finding.rows[0].figure.as_deref(), Some("362 printed, 262 by IOPS × I/O size"));
}

#[test]
fn the_sweet_spot_is_told_by_all_estimators() {
    for (file, text, unloaded) in [
        (
            "striping-sweep-diskspd.csv",
            SWEEP_DISKSPD,
            "DiskSPD, 32 points: sweet spot N = 32 (93 % of the peak IOPS at 0.50 ms)",
        ),
        (
            "striping-sweep-fio.csv",
            SWEEP_FIO,
            "fio, 32 points: sweet spot N = 32 (93 % of the peak IOPS at 0.48 ms)",
        ),
    ] {
        let finding = only(&audited(file, text, None), Code::SweetSpot);
        assert!(finding.sentence.starts_with(unloaded), "{finding}");
        for estimate in [
            "peak from N = 64",
            "knee (a doubling gains less than 20 %): 32",
            "best ratio of IOPS to latency: 16",
        ] {
            assert!(finding.sentence.contains(estimate), "{estimate} in {finding}");
        }
    }
}

#[test]
fn a_sweep_is_audited_against_what_each_row_asked_for() {
    let clean = audited("striping-sweep-diskspd.csv", SWEEP_DISKSPD, None);
    assert!(
        only(&clean, Code::OutstandingAgrees)
            .sentence
            .contains("agrees with the outstanding I/Os asked for in 32 of 32 rows")
    );
    let finding = only(&audited("striping-sweep-fio.csv", SWEEP_FIO, None), Code::Short);
    assert_eq!(finding.rows.len(), 1);
    assert_eq!(finding.rows[0].label, "threads 1 x 32");
    assert_eq!(finding.rows[0].figure.as_deref(), Some("0.90 times"));
}

#[test]
fn an_audit_is_text_and_json() {
    let audit = audited("table.csv", SCALE_OUT, None);
    let text = audit.to_string();
    assert!(
        text.contains("CONTRADICTION [tools-differ]: ") && text.contains("table.csv:4 1 VM, 4k random read"),
        "{text}"
    );
    let json = serde_json::to_value(&audit).unwrap();
    assert_eq!(json["findings"][0]["code"], "tools-differ");
    assert_eq!(serde_json::from_value::<Audit>(json).unwrap(), audit);
}
