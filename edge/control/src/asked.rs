//! Who asked for what is being done.

/// Who asks at a socket of the host itself.
pub const ON_HOST: &str = "somebody on the host";

tokio::task_local! {
    /// Who asks for what this task does.
    pub static WHO: String;
}

/// Who asked for what is being done, for records and events: `operator ann`; nothing where the host does it by itself.
pub fn asked_by() -> Option<String> {
    WHO.try_with(Clone::clone).ok()
}
