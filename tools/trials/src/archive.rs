//! The first file system of a Linux guest: an archive in the format `newc` of cpio, which the kernel unpacks.
//!
//! Described in the kernel's `Documentation/driver-api/early-userspace/buffer-format.rst`.

/// Directory, `rwxr-xr-x`.
const DIRECTORY: u32 = 0o040_755;
/// Regular file, `rwxr-xr-x`.
const FILE: u32 = 0o100_755;

/// An archive being written.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    count: u32,
}

impl Archive {
    /// Adds a directory; its parents come before it. Paths have no leading slash.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, &[]);
    }

    /// Adds a file that may be executed.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE, content);
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.count += 1;
        let name_length = path.len() as u32 + 1;
        let links = if mode == DIRECTORY { 2 } else { 1 };
        // inode, mode, user, group, links, time, length, device (2), device if it is one (2), length of the name, checksum.
        let fields = [self.count, mode, 0, 0, links, 0, content.len() as u32, 0, 0, 0, 0, name_length, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// The archive's bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_contents_begin_at_multiples_of_four() {
        let mut archive = Archive::default();
        archive.directory("dev");
        archive.file("init", b"hello");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        // 110 bytes of head, `dev` with its end, filled up to 116; then the same with `init`, and its content.
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[116..122], b"070701");
        assert_eq!(&bytes[226..231], b"init\0");
        assert_eq!(&bytes[232..237], b"hello");
        assert!(bytes.windows(10).any(|window| window == b"TRAILER!!!"));
    }
}
