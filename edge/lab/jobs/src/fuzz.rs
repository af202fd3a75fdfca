//! Readers under texts that nobody wrote: whatever the bytes, a reader gives a plan or an error; a plan of fio can be written.

use crate::{Dialect, Options, Source, difference, export, import_as};
use base::Random;

/// Reads bytes as a job of a dialect. A plan of fio that comes of them is written and read again: what lost nothing must
/// be the same work.
///
/// # Panics
/// When a reader or writer does, or when the law is broken: this is what a fuzzer looks for.
pub fn fuzz_one(dialect: Dialect, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // Included files are the text itself, so that circles are met.
    let own = text.clone().into_owned();
    let include = |_: &str| Ok(own.clone());
    let options = Options {
        include: &include,
        variables: vec![("lun".into(), "/dev/sdx".into()), ("1".into(), "/dev/sdy".into())],
        ..Options::default()
    };
    let Ok(read) = import_as(dialect, &Source::new("fuzz", text), &options) else { return };
    // A plan of fio is also written again, if it is not too long.
    let stages = read.plan.stages.iter().map(|stage| u64::from(stage.repeats)).sum::<u64>();
    let groups: usize = read.plan.stages.iter().map(|stage| stage.groups.len()).sum();
    let workers: u64 = (read.plan.stages.iter())
        .flat_map(|stage| &stage.groups)
        .map(|group| group.worker_count() * group.targets.len() as u64)
        .fold(0, u64::saturating_add);
    if dialect != Dialect::Fio || stages > 300 || groups > 300 || workers > 3000 {
        return;
    }
    let exported = export(&read.plan).expect("a plan that was read has no problem");
    if exported.losses.is_empty() {
        let again = import_as(dialect, &Source::new("again", exported.text), &Options::default())
            .expect("what was written without losses can be read");
        assert_eq!(difference(&read.plan, &again.plan), None);
    }
}

/// Words that mean something to one reader or another.
const WORDS: &[&str] = &[
    "=",
    ",",
    ":",
    "/",
    "(",
    ")",
    "-",
    "*",
    "'",
    "\"",
    "\n",
    "\t",
    " ",
    "[",
    "]",
    "0",
    "1",
    "4k",
    "8kib",
    "64-1,d",
    "100",
    "%",
    "max",
    "curve",
    "${X}",
    "$ncpus",
    "include x\n",
    "include=x\n",
    "stonewall\n",
    "numjobs=1000000",
    "forthreads=(1-64,d)",
    "-b4K ",
    "-rdpct10/10",
    "-X",
    "<Target>",
    "</Target>",
    "&amp;",
    "]]>",
    "18446744073709551615",
    "99999999999999999999",
    "zoned:50/5:",
    "bssplit=4k/50:",
    "Version 1998.01.01",
    "CYCLE_TARGETS",
    "\\:",
    "é",
    "\u{0}",
    "1e309",
    "nan",
];

/// A text like this one with up to eight changes: bytes, words, lines repeated, moved or left out.
pub fn mutate(text: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..=random.below(8) {
        let length = bytes.len() as u64;
        let at = usize::try_from(random.below(length + 1)).expect("an index fits");
        let end = (at + usize::try_from(random.below(40)).expect("a small number fits")).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] = u8::try_from(random.below(256)).expect("a byte fits"),
            1 | 2 => {
                let word = WORDS[usize::try_from(random.below(WORDS.len() as u64)).expect("an index fits")];
                bytes.splice(at..at, word.bytes());
            }
            3 => {
                bytes.drain(at..end);
            }
            4 => {
                let piece = bytes[at..end].to_vec();
                let to = usize::try_from(random.below(length + 1)).expect("an index fits");
                bytes.splice(to..to, piece);
            }
            5 => {
                let lines: Vec<&[u8]> = other.split(|&byte| byte == b'\n').collect();
                let line =
                    lines[usize::try_from(random.below(lines.len() as u64)).expect("an index fits")].to_vec();
                bytes.splice(at..at, line);
            }
            _ => {
                let word = WORDS[usize::try_from(random.below(WORDS.len() as u64)).expect("an index fits")];
                bytes.splice(at..end, word.bytes());
            }
        }
        bytes.truncate(1 << 16);
    }
    bytes
}
