//! Runs of allocated and free bytes, joined.

use base::request::StatusRun;

pub(crate) fn push_run(runs: &mut Vec<StatusRun>, len: u64, is_set: bool) {
    match runs.last_mut() {
        Some(last) if last.is_set == is_set => last.len += len,
        Some(_) | None => runs.push(StatusRun { len, is_set }),
    }
}
