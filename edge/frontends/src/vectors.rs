//! A piece of memory for a scatter or gather call.

/// Laid out as `struct iovec` of POSIX, so that a slice of these can be handed to `recvmsg` and `sendmsg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct IoVec {
    /// Where it starts. Only to be read from when it is to be sent.
    pub base: *mut u8,
    /// Its length in bytes, never zero.
    pub len: usize,
}

impl IoVec {
    /// A piece to receive into.
    pub(crate) fn target(base: *mut u8, len: usize) -> IoVec {
        assert!(len > 0, "an empty piece would end a scatter call early");
        IoVec { base, len }
    }

    /// A piece to send from.
    pub(crate) fn source(base: *const u8, len: usize) -> IoVec {
        IoVec::target(base.cast_mut(), len)
    }
}
