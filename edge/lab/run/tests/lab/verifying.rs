//! Data that is verified while it is written, at the end, and after a crash.

use crate::fixtures::*;

const JOB: &str = "[w]\nrw=randrw\nbs=4k\niodepth=8\nioengine=io_uring\ndirect=0\nsize=8m\nruntime=1\ntime_based\nverify=crc32c\n";

#[test]
fn what_was_written_is_read_again_and_damage_is_found_by_the_record() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 8 << 20));
    let record = text_of(&folder.path("record"));
    let job = folder.job("w.fio", JOB);
    let (done, run) = kept_run(&folder, &["run", &job, "--target", &target, "--record", &record]);
    done.expect("a good target");
    let verified = run.stages[0].groups[0].verified.expect("it was verified");
    assert!(verified.compared > 2048 && verified.wrong == 0, "{verified:?}");

    let check = |expected: Result<(), &str>| match (
        lab(&["verify", "--record", &record, "--target", &target]),
        expected,
    ) {
        (Ok(_), Ok(())) => {}
        (Err(error), Err(words)) => assert!(error.text.contains(words), "{error}"),
        (found, expected) => panic!("{found:?}, not {expected:?}"),
    };
    check(Ok(()));
    let mut bytes = std::fs::read(&target).expect("the target");
    let good = bytes.clone();
    bytes[4096 * 100 + 1000] ^= 1;
    std::fs::write(&target, &bytes).expect("a damaged target");
    check(Err("torn or damaged"));
    bytes = good.clone();
    bytes.copy_within(0..4096, 4096 * 7);
    std::fs::write(&target, &bytes).expect("a damaged target");
    check(Err("the unit of byte 0 is here"));
    std::fs::write(&target, &good).expect("the good target");
    check(Ok(()));
}

#[test]
fn a_record_that_is_none_is_refused() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 1 << 20));
    std::fs::write(folder.path("target-1.record"), b"nothing of the kind").expect("a file");
    let here = text_of(folder.0.path());
    let error = lab(&["verify", "--record", &here, "--target", &target]).expect_err("no record");
    assert!(error.text.contains("not a record of verified writes"), "{error}");
    let nowhere = text_of(&folder.path("nowhere"));
    assert!(lab(&["verify", "--record", &nowhere, "--target", &target]).is_err());
}

const WRITER: &str = "[w]\nrw=write\nbs=4k\nsize=1m\nioengine=psync\nverify=crc32c\ndo_verify=0\n";

/// The end of a run, and how many units of its last stage were compared and wrong.
fn ended(folder: &Folder, job: &str, target: &str) -> (Result<String, String>, measured::Verified) {
    let (done, run) = kept_run(folder, &["run", job, "--target", target]);
    let last = run.stages.last().and_then(|stage| stage.groups.first()).expect("a group");
    (done.map_err(|error| error.text), last.verified.unwrap_or_default())
}

/// `verify_only=1` wrote what it was to verify, and passed. `do_verify=0` wrote without checksums, and the job behind it compared nothing.
#[test]
fn what_one_job_wrote_for_later_is_verified_by_the_next_and_by_another_run() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 1 << 20));
    let reader = "[r]\nstonewall\nrw=read\nbs=4k\nsize=1m\nioengine=psync\nverify=crc32c\n";
    let both = folder.job("both.fio", &format!("{WRITER}{reader}"));
    let (done, verified) = ended(&folder, &both, &target);
    done.expect("what was written is there");
    assert_eq!((verified.compared, verified.wrong), (256, 0));

    let only = folder.job("only.fio", &WRITER.replace("do_verify=0", "verify_only=1"));
    let reader = folder.job("reader.fio", reader);
    let before = std::fs::read(&target).expect("the target");
    for job in [&only, &reader] {
        let (done, verified) = ended(&folder, job, &target);
        done.expect("an earlier run of the lab wrote it");
        assert_eq!((verified.compared, verified.wrong), (256, 0));
    }
    assert_eq!(std::fs::read(&target).expect("the target"), before, "nothing was written");

    let mut damaged = before;
    damaged[4096 * 9 + 77] ^= 4;
    std::fs::write(&target, &damaged).expect("a damaged target");
    let (done, verified) = ended(&folder, &only, &target);
    assert!(done.expect_err("damage").contains("byte 36864"), "the place is named");
    assert_eq!(verified.wrong, 1);
}

/// A job that verifies a file of which nothing is known passed without comparing anything.
#[test]
fn what_carries_no_checksum_of_the_lab_is_an_error_and_what_fio_wrote_is_named() {
    let folder = Folder::new();
    let file = folder.file("target.img", 1 << 20);
    let target = text_of(&file);
    let reader = folder.job("r.fio", "[r]\nrw=read\nbs=4k\nsize=1m\nioengine=psync\nverify=crc32c\n");
    let (done, verified) = ended(&folder, &reader, &target);
    assert!(done.expect_err("random bytes").contains("no run with verification wrote"));
    assert_eq!((verified.compared, verified.wrong), (256, 256));

    let status = std::process::Command::new("fio")
        .args(["--name=w", "--rw=write", "--bs=4k", "--size=1m", "--verify=crc32c", "--do_verify=0"])
        .args([&format!("--filename={target}"), "--output=/dev/null", "--verify_state_save=0"])
        .status();
    assert!(status.expect("fio is installed").success());
    let (done, _) = ended(&folder, &reader, &target);
    assert!(done.expect_err("headers of fio").contains("a header that fio wrote"));
}

#[test]
fn a_verification_that_compares_nothing_has_failed() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 1 << 20));
    // Half units: none of them is read whole.
    let job = folder
        .job("r.fio", "[r]\nrw=read\nbs=4k\nsize=1m\nioengine=psync\nverify=crc32c\nverify_interval=8k\n");
    let (done, verified) = ended(&folder, &job, &target);
    assert!(done.expect_err("nothing").contains("compared nothing"), "it says so");
    assert_eq!(verified.compared, 0);
    let pattern = folder.job("p.fio", "[r]\nrw=read\nbs=4k\nsize=1m\nverify=pattern\nverify_pattern=0xaa\n");
    let error = lab(&["run", &pattern, "-t", &target]).expect_err("a pattern");
    assert!(error.text.contains("verify_pattern"), "{error}");
}

/// Trims of what is verified were taken for lost writes.
#[test]
fn trims_and_writes_without_checksums_may_stand_beside_what_is_verified() {
    let folder = Folder::new();
    let server = nbdkit(&folder, &["memory", "1M"]);
    let common = "bs=4k\nsize=1m\nruntime=2\ntime_based\nioengine=io_uring\niodepth=4\n";
    let job = folder.job(
        "t.fio",
        &format!("[w]\nrw=randrw\n{common}verify=crc32c\n[t]\nrw=randtrim\n{common}rate_iops=500\n[o]\nrw=randwrite\n{common}rate_iops=500\n"),
    );
    let (done, run) = kept_run(&folder, &["run", &job, "--target", &server.address]);
    done.expect("nothing was lost");
    let verified = run.stages[0].groups[0].verified.expect("it was verified");
    assert!(verified.compared > 256 && verified.wrong == 0, "{verified:?}");
    assert!(run.stages[0].groups[1].operations[2].ios > 100, "trims were done");
}
