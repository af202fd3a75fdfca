//! Fuzzes a reader for as long as is asked: `cargo run --release -p jobs --example fuzz -- --parser fio --minutes 10 [--seed 1]`.
//!
//! Texts are the example jobs of `examples/jobs`, changed at random. It ends with the number of texts, or with the panic of the
//! reader, above which stands the text.

use base::Random;
use jobs::{Dialect, fuzz};
use std::path::Path;
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let index = arguments.iter().position(|argument| argument == name)?;
        arguments.get(index + 1).cloned()
    };
    let parser = value("--parser").unwrap_or_else(|| "fio".into());
    let Some(dialect) = Dialect::from_name(&parser) else {
        eprintln!("--parser is one of fio, diskspd, diskspd-xml, vdbench, iometer");
        std::process::exit(2);
    };
    let minutes: f64 = value("--minutes").and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let seed: u64 = value("--seed").and_then(|text| text.parse().ok()).unwrap_or(1);
    let corpus = corpus(dialect);
    let mut random = Random::new(seed);
    let pick =
        |random: &mut Random| usize::try_from(random.below(corpus.len() as u64)).expect("an index fits");
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let mut count = 0u64;
    while Instant::now() < end {
        for _ in 0..256 {
            let (one, other) = (pick(&mut random), pick(&mut random));
            let text = fuzz::mutate(&corpus[one], &corpus[other], &mut random);
            let found = std::panic::catch_unwind(|| fuzz::fuzz_one(dialect, &text));
            if found.is_err() {
                eprintln!("seed {seed}, text {count}:\n{}", String::from_utf8_lossy(&text));
                std::process::exit(1);
            }
            count += 1;
        }
    }
    println!(
        "{}: {count} texts in {minutes} minutes, seed {seed}: no panic, and no plan changed",
        dialect.name()
    );
}

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
    let xml = dialect == Dialect::DiskSpdXml;
    files.retain(|file| {
        folder != "diskspd" || (file.extension().is_some_and(|extension| extension == "xml") == xml)
    });
    files.iter().map(|file| std::fs::read(file).expect("an example can be read")).collect()
}
