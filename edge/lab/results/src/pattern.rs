//! What people write in tables and captions: "4k random write", "8k random 70/30", "threads = 4, outstanding = 16 per thread".

use crate::model::Job;

/// Bytes of a size like "4k", "64KiB", "1M", "512"; powers of 1024, as in every tool that is read here.
pub(crate) fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// A larger size in a text is that of a disk or of memory.
const BLOCK_MAX: u64 = 64 << 20;

/// What a pattern in words says, of each thing the first; what it does not say stays unknown.
pub(crate) fn job(pattern: &str) -> Job {
    let lower = pattern.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split([' ', ',', ';', '_', '-', '\t']).filter(|word| !word.is_empty()).collect();
    let mut job = Job { pattern: Some(pattern.trim().to_owned()), ..Job::default() };
    for (at, word) in words.iter().enumerate() {
        let unit = words.get(at + 1).filter(|next| matches!(**next, "kib" | "kb" | "k" | "mib" | "mb" | "m"));
        let has_unit = word.ends_with(|c: char| c.is_ascii_alphabetic());
        let bytes =
            unit.and_then(|unit| size(&format!("{word}{unit}"))).or_else(|| size(word).filter(|_| has_unit));
        job.block_bytes = job.block_bytes.or(bytes.filter(|bytes| (1..=BLOCK_MAX).contains(bytes)));
        match *word {
            "random" | "rand" | "rnd" => job.random_share = job.random_share.or(Some(1.0)),
            "sequential" | "seq" => job.random_share = job.random_share.or(Some(0.0)),
            "read" | "reads" => job.read_share = job.read_share.or(Some(1.0)),
            "write" | "writes" => job.read_share = job.read_share.or(Some(0.0)),
            "randread" => (job.random_share, job.read_share) = (Some(1.0), Some(1.0)),
            "randwrite" => (job.random_share, job.read_share) = (Some(1.0), Some(0.0)),
            _ => {}
        }
        let mix = word
            .split_once('/')
            .and_then(|(read, write)| Some((read.parse::<f64>().ok()?, write.parse::<f64>().ok()?)));
        if let Some((read, write)) = mix
            && (read + write - 100.0).abs() < 0.5
        {
            job.read_share = Some(read / 100.0);
        }
    }
    job
}

/// What a caption says of outstanding I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Caption {
    /// Threads per VM.
    pub(crate) threads: Option<u32>,
    /// Outstanding I/Os per thread.
    pub(crate) depth: Option<u32>,
}

/// Reads "threads=4, outstanding=16 per thread" and its like, wherever they stand in a text. What is not a single number
/// ("threads 1, 2, 4, 8"; "outstanding 1..128") is the variable of a sweep, and no claim.
pub(crate) fn caption(text: &str) -> Caption {
    let lower = text.to_ascii_lowercase();
    let after = |names: &[&str]| {
        names.iter().find_map(|name| {
            lower.match_indices(name).find_map(|(at, _)| {
                // A longer word ("multithreads") is another one.
                let begins = !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
                if begins { single_number(&lower[at + name.len()..]) } else { None }
            })
        })
    };
    Caption {
        threads: after(&["threads per vm", "threads", "thread count"]),
        depth: after(&[
            "outstanding i/os",
            "outstanding i/o",
            "outstanding ios",
            "outstanding io",
            "outstanding",
            "queue depth",
            "queue_depth",
            "iodepth",
            "oio",
            "qd",
        ]),
    }
}

/// A number right after "=", ":" or "of", unless it is one of a list or range.
fn single_number(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let text =
        text.strip_prefix(['=', ':']).or_else(|| text.strip_prefix("of ")).unwrap_or(text).trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..end].parse().ok().filter(|number| *number > 0)?;
    let rest = text[end..].trim_start();
    let listed = rest
        .strip_prefix(',')
        .is_some_and(|next| next.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    (!listed && !rest.starts_with("..") && !rest.starts_with('-')).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, expected) in [
            ("4k", Some(4_096)),
            ("64 KiB", Some(65_536)),
            ("1M", Some(1 << 20)),
            ("512", Some(512)),
            ("x", None),
            ("4q", None),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
        assert_eq!(size("99999999999999999999G"), None);
        assert_eq!(size("9999999999999999999G"), None);
    }

    #[test]
    fn a_pattern_is_understood_as_far_as_it_goes() {
        let check = |text: &str, expected: (Option<u64>, Option<f64>, Option<f64>)| {
            let job = job(text);
            assert_eq!((job.block_bytes, job.read_share, job.random_share), expected, "{text}");
        };
        check("4k random write", (Some(4_096), Some(0.0), Some(1.0)));
        check("8k random 70/30", (Some(8_192), Some(0.7), Some(1.0)));
        check("1M seq read", (Some(1 << 20), Some(1.0), Some(0.0)));
        check("4 KiB random read, 60 s", (Some(4_096), Some(1.0), Some(1.0)));
        check("boot storm", (None, None, None));
        check(
            "64GB of memory; 4 KiB random read, then 1M sequential write",
            (Some(4_096), Some(1.0), Some(1.0)),
        );
    }

    #[test]
    fn a_caption_claims_what_is_a_single_number() {
        let check =
            |text: &str, threads, depth| assert_eq!(caption(text), Caption { threads, depth }, "{text}");
        check("captioned threads = 4, outstanding = 16 per thread", Some(4), Some(16));
        check("(threads=4, Outstanding I/O=16)", Some(4), Some(16));
        check("threads 1, 2, 4, 8 × outstanding 1..128 per thread", None, None);
        check("Threads: 8; queue depth of 32", Some(8), Some(32));
        check("multithreads 4", None, None);
        check(
            "one VM, threads 1, 2, 4, 8; 12 VMs with threads = 4, outstanding = 16 per thread",
            Some(4),
            Some(16),
        );
        check("", None, None);
    }
}
