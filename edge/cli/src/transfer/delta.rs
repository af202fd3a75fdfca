//! The file format of what changed between two snapshots of a disk (docs/formats/delta.md).
//!
//! Must never give out a record that is not as it was written, nor take a file that ends early for a whole one.

use base::bytes::{Reader, Writer};
use base::checksum::crc32c;
use failure::Failure;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// What the file begins with.
const MAGIC: [u8; 8] = *b"DRYDELTA";
const VERSION: u16 = 1;
/// Bytes of the description at most.
const ABOUT_MAX: u32 = 64 << 10;
/// Bytes of a block; the last one of a disk may have fewer.
pub const BLOCK: u64 = 4096;
/// Bytes that a record is about at most.
pub const RECORD_MAX: u64 = 1 << 20;
const HEAD_SIZE: usize = 24;
const KIND_DATA: u8 = 1;
const KIND_ZEROES: u8 = 2;
const KIND_END: u8 = 3;

/// What a delta is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The disk's name.
    pub disk: String,
    /// Its id.
    pub disk_id: String,
    /// The older snapshot: the state that the delta is to be applied to.
    pub since: Moment,
    /// The newer one: the state that comes out.
    pub snapshot: Moment,
    /// The disk's size in the newer one.
    pub size: u64,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u32,
    /// When it was taken, in seconds since 1970.
    pub taken: u64,
}

/// Some neighbouring blocks that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where they begin on the disk; a multiple of [`BLOCK`].
    pub offset: u64,
    /// Their bytes, up to [`RECORD_MAX`].
    pub length: u64,
    /// CRC-32C of each of them as it was.
    pub before: Vec<u32>,
    /// As they are; nothing: zeroes.
    pub data: Option<Vec<u8>>,
}

impl Record {
    /// CRC-32C of each block as it is.
    pub fn after(&self) -> Vec<u32> {
        match &self.data {
            Some(data) => checksums(data),
            None => checksums(&vec![0; self.length as usize]),
        }
    }
}

/// CRC-32C of each block.
pub fn checksums(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(BLOCK as usize).map(crc32c).collect()
}

/// Writes a delta.
pub struct DeltaWriter<W> {
    out: W,
    records: u64,
    bytes: u64,
}

impl<W: Write> DeltaWriter<W> {
    /// Begins one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(mut out: W, about: &About) -> io::Result<DeltaWriter<W>> {
        let about = serde_json::to_vec(about).map_err(io::Error::other)?;
        let mut w = Writer::default();
        w.slice(&MAGIC);
        w.u16(VERSION);
        w.u16(0);
        w.u32(about.len() as u32);
        w.slice(&about);
        out.write_all(&sealed(w))?;
        Ok(DeltaWriter { out, records: 0, bytes: 0 })
    }

    /// Adds a record; they come in ascending order.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        let kind = if record.data.is_some() { KIND_DATA } else { KIND_ZEROES };
        let mut w = Writer::default();
        put_head(&mut w, kind, (record.offset, record.length));
        record.before.iter().for_each(|checksum| w.u32(*checksum));
        record.after().iter().for_each(|checksum| w.u32(*checksum));
        self.out.write_all(&sealed(w))?;
        self.records += 1;
        self.bytes += record.length;
        self.out.write_all(record.data.as_deref().unwrap_or_default())
    }

    /// Ends it, and gives back where it went.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(mut self) -> io::Result<W> {
        let mut w = Writer::default();
        put_head(&mut w, KIND_END, (self.bytes, self.records));
        self.out.write_all(&sealed(w))?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn put_head(w: &mut Writer, kind: u8, (first, second): (u64, u64)) {
    w.u8(kind);
    w.slice(&[0; 7]);
    w.u64(first);
    w.u64(second);
}

/// With the checksum of what was written behind it.
fn sealed(mut w: Writer) -> Vec<u8> {
    let checksum = crc32c(w.as_bytes());
    w.u32(checksum);
    w.into_bytes()
}

/// Reads a delta.
pub struct DeltaReader<R> {
    input: R,
    /// What it is of.
    pub about: About,
    records: u64,
    bytes: u64,
    /// Where the last record ended.
    end: u64,
}

impl<R: Read> DeltaReader<R> {
    /// Begins.
    ///
    /// # Errors
    /// When it is no delta, or one of a later release.
    pub fn open(mut input: R) -> Result<DeltaReader<R>, Failure> {
        let mut head = [0; 16];
        input.read_exact(&mut head).map_err(|_| no_delta("it is too short"))?;
        let mut r = Reader::new(&head);
        let (magic, version, flags, length) = (r.slice(8), r.u16(), r.u16(), r.u32());
        if magic != MAGIC.as_slice() {
            return Err(no_delta("it does not begin as one"));
        }
        if version != VERSION || flags != 0 {
            return Err(no_delta(&format!("it is of version {version}, which this release does not know")));
        }
        if length > ABOUT_MAX {
            return Err(damaged("its description is too long"));
        }
        let mut bytes = head.to_vec();
        bytes.resize(head.len() + length as usize, 0);
        input.read_exact(&mut bytes[head.len()..]).map_err(|_| damaged("it ends early"))?;
        check(&mut input, &bytes)?;
        let about = serde_json::from_slice(&bytes[head.len()..])
            .map_err(|error| damaged(&format!("its description is malformed: {error}")))?;
        Ok(DeltaReader { input, about, records: 0, bytes: 0, end: 0 })
    }

    /// The next record; none at the end.
    ///
    /// # Errors
    /// When it is not as it was written, or the file ends early.
    pub fn next(&mut self) -> Result<Option<Record>, Failure> {
        let mut bytes = vec![0; HEAD_SIZE];
        self.input.read_exact(&mut bytes).map_err(|_| damaged("it ends early"))?;
        let mut r = Reader::new(&bytes);
        let (kind, reserved, first, second) = (r.u8(), r.slice(7), r.u64(), r.u64());
        if kind == KIND_END {
            check(&mut self.input, &bytes)?;
            let is_all = (first, second) == (self.bytes, self.records);
            return if is_all { Ok(None) } else { Err(damaged("it lacks records")) };
        }
        let (offset, length) = (first, second);
        let is_known = matches!(kind, KIND_DATA | KIND_ZEROES) && reserved == [0; 7].as_slice();
        let end = offset.checked_add(length).filter(|end| *end <= self.about.size);
        let is_placed = offset >= self.end && offset % BLOCK == 0 && (1..=RECORD_MAX).contains(&length);
        let Some(end) =
            end.filter(|end| is_known && is_placed && (length % BLOCK == 0 || *end == self.about.size))
        else {
            return Err(damaged("a record is malformed"));
        };
        let blocks = length.div_ceil(BLOCK) as usize;
        bytes.resize(HEAD_SIZE + 8 * blocks, 0);
        self.input.read_exact(&mut bytes[HEAD_SIZE..]).map_err(|_| damaged("it ends early"))?;
        check(&mut self.input, &bytes)?;
        let mut r = Reader::new(&bytes[HEAD_SIZE..]);
        let before: Vec<u32> = (0..blocks).map(|_| r.u32()).collect();
        let after: Vec<u32> = (0..blocks).map(|_| r.u32()).collect();
        let data = match kind {
            KIND_DATA => {
                let mut data = vec![0; length as usize];
                self.input.read_exact(&mut data).map_err(|_| damaged("it ends early"))?;
                Some(data)
            }
            _ => None,
        };
        let record = Record { offset, length, before, data };
        if record.after() != after {
            return Err(damaged(&format!("what it has for byte {offset} does not match its checksum")));
        }
        (self.records, self.bytes, self.end) = (self.records + 1, self.bytes + length, end);
        Ok(Some(record))
    }
}

/// Compares bytes with the checksum that follows them.
fn check(input: &mut impl Read, bytes: &[u8]) -> Result<(), Failure> {
    let mut checksum = [0; 4];
    input.read_exact(&mut checksum).map_err(|_| damaged("it ends early"))?;
    match crc32c(bytes) == u32::from_le_bytes(checksum) {
        true => Ok(()),
        false => Err(damaged("a record does not match its checksum")),
    }
}

fn no_delta(why: &str) -> Failure {
    Failure::usage(format!("the file is no delta of this program: {why}"))
        .hint("`drystone disk export DISK@SNAPSHOT FILE --since SNAPSHOT` makes one; whole images are imported without `--apply`")
}

fn damaged(why: &str) -> Failure {
    Failure::failed("read the delta", format!("it is damaged: {why}"))
        .hint("nothing was changed; export it anew, or use another copy of the file")
}

#[cfg(test)]
mod tests;
