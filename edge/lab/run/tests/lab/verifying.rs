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
    check(Err("the unit of byte 0 stands here"));
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
    assert!(error.text.contains("it is no record of verified writes"), "{error}");
    let nowhere = text_of(&folder.path("nowhere"));
    assert!(lab(&["verify", "--record", &nowhere, "--target", &target]).is_err());
}
