//! A bounded round of fuzzing for each reader; the example `fuzz` goes on for as long as is asked.

use base::Random;
use jobs::{Dialect, fuzz};
use std::path::Path;

fn corpus(dialect: Dialect) -> Vec<Vec<u8>> {
    let folder = match dialect {
        Dialect::Fio => "fio",
        Dialect::DiskSpd | Dialect::DiskSpdXml => "diskspd",
        Dialect::Vdbench => "vdbench",
        Dialect::Iometer => "iometer",
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/jobs").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(path)
        .expect("the examples are there")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("an example can be read")).collect()
}

fn rounds(dialect: Dialect) {
    let corpus = corpus(dialect);
    let seed = 0x5eed + dialect as u64;
    let mut random = Random::new(seed);
    for round in 0..1500 {
        let mut pick = || usize::try_from(random.below(corpus.len() as u64)).expect("an index fits");
        let (one, other) = (pick(), pick());
        let text = fuzz::mutate(&corpus[one], &corpus[other], &mut random);
        let found = std::panic::catch_unwind(|| fuzz::fuzz_one(dialect, &text));
        assert!(
            found.is_ok(),
            "{} seed {seed} round {round}:\n{}",
            dialect.name(),
            String::from_utf8_lossy(&text)
        );
    }
}

#[test]
fn no_text_makes_the_reader_of_fio_panic() {
    rounds(Dialect::Fio);
}

#[test]
fn no_text_makes_the_reader_of_diskspd_panic() {
    rounds(Dialect::DiskSpd);
}

#[test]
fn no_text_makes_the_reader_of_profiles_panic() {
    rounds(Dialect::DiskSpdXml);
}

#[test]
fn no_text_makes_the_reader_of_vdbench_panic() {
    rounds(Dialect::Vdbench);
}

#[test]
fn no_text_makes_the_reader_of_iometer_panic() {
    rounds(Dialect::Iometer);
}

#[test]
fn nothing_at_all_is_an_error_of_every_reader() {
    for dialect in Dialect::ALL {
        for bytes in
            [&b""[..], b"\n", b"\xff\xfe", b"'", b"[", b"<", b"=", b"-", b"sd=", b"rd=a,", b"Version"]
        {
            fuzz::fuzz_one(dialect, bytes);
        }
    }
}
