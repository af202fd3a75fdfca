//! How I/Os are handed over: engine, queue depth, page cache, flushes.

use super::Rule;
use crate::error::Fault;
use crate::findings::{Findings, unsupported};
use crate::fio::job::Job;
use crate::fio::value::Value;
use plan::{NoteKind, WriteThrough};

pub(super) const RULES: &[Rule] = &[
    Rule::carried(
        "ioengine",
        "I/O engine: io_uring, libaio, or blocking calls for psync, sync, pvsync, vsync, mmap.",
        engine,
    ),
    Rule::carried("uri", "NBD export of the engine `nbd`.", |job, value, _| {
        job.uri = Some(value.text.clone());
        Ok(())
    }),
    Rule::carried("iodepth", "Queue depth of each job, with asynchronous engines.", |job, value, _| {
        value.count(1).map(|depth| job.depth = depth)
    }),
    Rule::carried("iodepth_batch", "I/Os submitted at a time.", |job, value, _| {
        value.count(0).map(|count| job.batch.submit = count)
    })
    .or(&["iodepth_batch_submit"]),
    Rule::carried("iodepth_batch_complete_min", "Completions to wait for.", |job, value, findings| {
        let count = value.count(0)?;
        if count == 0 {
            let text = "fio polls for completions; the lab waits for one";
            findings.note(NoteKind::Changed, &value.place, "iodepth_batch_complete_min", text);
        }
        job.batch.complete = count.max(1);
        Ok(())
    })
    .or(&["iodepth_batch_complete"]),
    Rule::noted(
        "iodepth_batch_complete_max",
        "Most completions taken at a time. The lab takes all that are there.",
    ),
    Rule::carried(
        "iodepth_low",
        "A full queue drains to this depth before it is filled again: the lab waits for as many completions.",
        |job, value, _| value.count(0).map(|count| job.depth_low = count),
    ),
    Rule::refused(
        "serialize_overlap",
        "Overlapping I/Os wait for each other. Leave the option out: without norandommap, random I/Os do not overlap.",
    ),
    Rule::carried("numjobs", "Number of clones of the job.", |job, value, _| match value.count(0)? {
        0 => Err(value.refused("fio says `maximum number of jobs reached`", "write numjobs=1")),
        count => {
            job.count = count;
            Ok(())
        }
    }),
    Rule::carried("direct", "Bypasses the page cache.", |job, value, _| {
        value.boolean().map(|on| job.direct = Some(on))
    }),
    Rule::carried("buffered", "The opposite of `direct`.", |job, value, _| {
        value.boolean().map(|on| job.direct = Some(!on))
    }),
    Rule::refused("atomic", "Atomic writes. Leave the option out."),
    Rule::carried("sync", "Writes are stable when they complete: `sync`, `dsync`.", |job, value, _| {
        let kinds = [
            ("0", WriteThrough::No),
            ("none", WriteThrough::No),
            ("1", WriteThrough::All),
            ("sync", WriteThrough::All),
            ("dsync", WriteThrough::Data),
        ];
        value.one_of(&kinds).map(|through| job.write_through = through)
    }),
    Rule::carried("fsync", "Number of writes between flushes.", |job, value, _| {
        value.count(0).map(|every| job.flush_every = every)
    }),
    Rule::carried("fdatasync", "Number of writes between flushes of data.", |job, value, _| {
        value.count(0).map(|every| job.flush_data_every = every)
    }),
    Rule::carried("end_fsync", "Flushes at the end.", flush_end),
    Rule::carried("fsync_on_close", "Flushes a file when it is closed, which is at the end.", flush_end),
    Rule::noted("end_syncfs", "Flushes the whole file system at the end. Use end_fsync to flush the file."),
    Rule::refused("write_barrier", "Every N-th write is a barrier. Write fsync=N."),
    Rule::refused(
        "sync_file_range",
        "Starts write-back of ranges while writing. Write fdatasync=N, or leave it out.",
    ),
];

fn flush_end(job: &mut Job, value: &Value, _: &mut Findings) -> Result<(), Fault> {
    value.boolean().map(|on| job.flush_end |= on)
}

/// Engines that the plan has an engine for.
const ENGINES: &[&str] = &[
    "io_uring",
    "libaio",
    "psync",
    "sync",
    "pvsync",
    "pvsync2",
    "vsync",
    "mmap",
    "posixaio",
    "windowsaio",
    "solarisaio",
    "nbd",
];

/// Engines of fio that read and write blocks of something that the lab does not reach by itself, and what does the same on the
/// target that stands for it: with the depth of the job, or one I/O at a time.
const ENGINES_OF_OTHER_STORES: &[(&str, &str)] = &[
    ("null", "io_uring"),
    ("io_uring_cmd", "io_uring"),
    ("sg", "io_uring"),
    ("rbd", "io_uring"),
    ("rados", "io_uring"),
    ("gfapi_async", "io_uring"),
    ("libiscsi", "io_uring"),
    ("nfs", "io_uring"),
    ("xnvme", "io_uring"),
    ("libblkio", "io_uring"),
    ("dfs", "io_uring"),
    ("ime_aio", "io_uring"),
    ("guasi", "io_uring"),
    ("syslet-rw", "io_uring"),
    ("http", "psync"),
    ("gfapi", "psync"),
    ("libhdfs", "psync"),
    ("mtd", "psync"),
    ("pmemblk", "psync"),
    ("dev-dax", "psync"),
    ("libpmem", "psync"),
    ("libpmem2", "psync"),
    ("ime_psync", "psync"),
    ("ime_psyncv", "psync"),
    ("libcufile", "psync"),
    ("libhipfile", "psync"),
];

/// Engines of fio that do something else than to read and write blocks.
const ENGINES_OF_FIO_ALONE: &[&str] = &[
    "net",
    "netsplice",
    "splice",
    "cpuio",
    "rdma",
    "falloc",
    "ftruncate",
    "e4defrag",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
    "exec",
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
    "external",
    "page_fault",
];

fn engine(job: &mut Job, value: &Value, findings: &mut Findings) -> Result<(), Fault> {
    let word = value.text.split(':').next().unwrap_or_default();
    if let Some(engine) = ENGINES.iter().find(|engine| **engine == word && !value.spaced) {
        job.engine = Some(engine);
        if matches!(*engine, "posixaio" | "windowsaio" | "solarisaio") {
            findings.note(
                NoteKind::Changed,
                &value.place,
                "ioengine",
                format!("{engine} becomes io_uring, with the same depth"),
            );
        }
        if *engine == "mmap" {
            findings.note(
                NoteKind::Changed,
                &value.place,
                "ioengine",
                "memory mapping becomes blocking calls through the page cache",
            );
        }
        return Ok(());
    }
    if let Some((_, engine)) = ENGINES_OF_OTHER_STORES.iter().find(|(other, _)| *other == word) {
        job.engine = Some(engine);
        let text = format!(
            "the lab has no engine {word}: its I/Os go to the target by {engine}; name the target with --target"
        );
        findings.note(NoteKind::Changed, &value.place, "ioengine", text);
        return Ok(());
    }
    if ENGINES_OF_FIO_ALONE.contains(&word) {
        job.is_no_io = true;
        return Err(unsupported(
            &value.place,
            format!("the engine {word}"),
            "write ioengine=io_uring, libaio or psync, or ioengine=nbd with uri=",
        ));
    }
    let all: Vec<(&str, ())> = ENGINES.iter().map(|engine| (*engine, ())).collect();
    value.one_of(&all)
}
