//! What is written, how it is verified, and what is no job at all: zones and traces.

use super::Rule;
use crate::error::Fault;
use crate::findings::{Findings, unsupported};
use crate::fio::job::Job;
use crate::fio::value::Value;
use plan::{NoteKind, Verify, VerifyWhen};

pub(super) const RULES: &[Rule] = &[
    Rule::carried("zero_buffers", "Writes zeroes.", |job, value, _| value.switch().map(|on| job.zeroes = on)).alone(),
    Rule::carried("refill_buffers", "Writes new random bytes every time.", |job, value, _| {
        value.switch().map(|on| job.refill = on)
    })
    .alone(),
    Rule::carried("scramble_buffers", "Changes some words of the random bytes with every write.", |_, value, findings| {
        if !value.boolean()? {
            let text = "fio writes the same random bytes again and again; the lab changes some words";
            findings.note(NoteKind::Changed, &value.place, "scramble_buffers", text);
        }
        Ok(())
    }),
    Rule::carried("buffer_pattern", "Bytes to write again and again.", |job, value, _| {
        pattern(value).map(|bytes| job.pattern = Some(bytes))
    }),
    Rule::carried("buffer_compress_percentage", "Percentage by which data compresses.", |job, value, _| {
        value.whole(0, 100).map(|percent| job.compress = percent as u32)
    }),
    Rule::carried("buffer_compress_chunk", "Unit of compression, in bytes.", |job, value, _| {
        value.bytes().map(|unit| job.compress_unit = Some(unit))
    }),
    Rule::carried("dedupe_percentage", "Percentage of writes that repeat data.", |job, value, _| {
        value.whole(0, 100).map(|percent| job.duplicates = percent as u32)
    }),
    Rule::noted("dedupe_mode", "Which data is repeated. The lab repeats any of it, within each worker.").or(&[
        "dedupe_working_set_percentage",
        "dedupe_global",
    ]),
    Rule::carried("verify", "Reads writes back and compares them. The lab has its own checksums.", verify),
    Rule::carried(
        "do_verify",
        "Whether written data is read back at the end. With 0 it carries checksums for a later job.",
        |job, value, _| value.boolean().map(|on| job.verification.without_end = !on),
    ),
    Rule::carried("verify_interval", "Unit of verification, in bytes.", |job, value, _| {
        value.bytes().map(|unit| job.verification.interval = Some(unit))
    }),
    Rule::carried("verify_fatal", "Ends the run at the first mismatch.", |job, value, _| {
        value.boolean().map(|on| job.verification.fatal = on)
    }),
    Rule::carried("verify_backlog", "Verifies after every N writes, while the job runs.", |job, value, _| {
        value.count(0).map(|count| job.verification.backlog = count)
    }),
    Rule::noted("verify_backlog_batch", "Blocks verified at a time."),
    Rule::carried("verify_only", "Writes nothing and verifies data of an earlier run of the lab.", |job, value, _| {
        value.switch().map(|on| job.verification.only = on)
    })
    .alone(),
    Rule::noted("verify_pattern", "Pattern to verify by. The lab has its own checksums.").alike(
        "verify_pattern_interval verify_offset verify_header_seed verify_write_sequence",
    ),
    Rule::noted("verify_dump", "Writes blocks that differ to files. The lab reports them."),
    Rule::noted("verify_async", "How and in which order blocks are verified. The lab compares every block it reads.").alike(
        "verify_async_cpus verifysort verifysort_nr experimental_verify",
    ),
    Rule::noted("verify_policy", "Which writes are verified after a crash. The lab verifies completed ones."),
    Rule::noted("verify_state_load", "State of writes in a file. The lab keeps it in the data itself.")
        .or(&["verify_state_save"]),
    Rule::refused("trim_percentage", "Trims of verified blocks. Write a job of rw=randtrim.").or(&[
        "trim_verify_zero",
        "trim_backlog",
        "trim_backlog_batch",
    ]),
    Rule::carried("zonemode", "Zoned devices and strided spans. Only `none` is possible.", |job, value, _| {
        if value.text == "none" {
            return Ok(());
        }
        job.is_zoned = true;
        let remedy = "zoned devices and strided spans are not possible: use offset, size and random_distribution=zoned";
        Err(unsupported(&value.place, format!("`{}`", value.shown()), remedy))
    }),
    Rule::carried("zonesize", "Part of `zonemode`. A job with it, but without `zonemode`, is refused.", |job, value, _| {
        // Told with zonemode already.
        if job.is_zoned || value.text == "0" {
            return Ok(());
        }
        let remedy = "strided spans are not possible: use random_distribution=zoned";
        Err(unsupported(&value.place, format!("`{}`", value.shown()), remedy))
    })
    .or(&["zonerange", "zoneskip"]),
    Rule::noted("max_open_zones", "Concerns zoned devices only.").alike(
        "job_max_open_zones ignore_zone_limits read_beyond_wp recover_zbd_write_error \
         write_zone_remainder zone_reset_frequency zone_reset_threshold zonecapacity",
    ),
    Rule::refused(
        "read_iolog",
        "A recorded trace is not a job. Use `drystone lab lens` to look at it, and run the job that it suggests.",
    )
    .or(&["merge_blktrace_file", "replay_redirect"]),
    Rule::noted("replay_no_stall", "Concerns recorded traces only.").alike(
        "read_iolog_chunked replay_scale replay_align replay_time_scale replay_skip \
         merge_blktrace_scalars merge_blktrace_iters",
    ),
];

/// Values of `verify=`; every kind becomes the lab's checksums.
const KINDS: &[(&str, bool)] = &[
    ("0", false),
    ("none", false),
    ("null", false),
    ("1", true),
    ("md5", true),
    ("crc64", true),
    ("crc32", true),
    ("crc32c", true),
    ("crc32c-intel", true),
    ("crc16", true),
    ("crc7", true),
    ("sha256", true),
    ("sha512", true),
    ("sha1", true),
    ("sha3-224", true),
    ("sha3-256", true),
    ("sha3-384", true),
    ("sha3-512", true),
    ("xxhash", true),
    ("meta", true),
    ("pattern", true),
    ("pattern_hdr", true),
];

fn verify(job: &mut Job, value: &Value, findings: &mut Findings) -> Result<(), Fault> {
    let on = value.one_of(KINDS)?;
    job.verification.by_pattern = matches!(value.text.as_str(), "pattern" | "pattern_hdr");
    job.verify = on.then_some(Verify { when: VerifyWhen::After, interval: None, fatal: false });
    if on && value.text != "crc32c" {
        let text = format!("the lab uses its own checksums in place of {}", value.text);
        findings.note(NoteKind::Changed, &value.place, "verify", text);
    }
    Ok(())
}

/// `"text"`, `0xhex`, a decimal number, or several one behind another.
fn pattern(value: &Value) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let mut rest = value.text.as_str();
    let bad =
        || value.refused("fio fails to parse the pattern", "write 0x and hexadecimal digits, or \"text\"");
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').ok_or_else(bad)?;
            bytes.extend_from_slice(&quoted.as_bytes()[..end]);
            rest = &quoted[end + 1..];
        } else if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            let end = hex.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(hex.len());
            let digits = if end % 2 == 1 { format!("0{}", &hex[..end]) } else { hex[..end].to_owned() };
            for pair in digits.as_bytes().chunks(2) {
                let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
                bytes.push(u8::from_str_radix(pair, 16).map_err(|_| bad())?);
            }
            if end == 0 {
                return Err(bad());
            }
            rest = &hex[end..];
        } else {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let number: u64 = rest[..end].parse().map_err(|_| bad())?;
            let long = number.to_le_bytes();
            let used = long.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
            bytes.extend_from_slice(&long[..used]);
            rest = &rest[end..];
        }
        if bytes.len() > 512 {
            return Err(value.refused("fio takes at most 512 bytes", "write a shorter pattern"));
        }
    }
    if bytes.is_empty() { Err(bad()) } else { Ok(bytes) }
}
