//! Image files: what format one has, and whether it is all there is.
//!
//! A format is given, or told by the file's name; never by the content, which may be a guest's. An image can name further files
//! (a backing file, a data file, extents): whoever made the image would choose what is read of this machine. Those are refused
//! here, before any tool opens the image, unless people ask for them. Must open nothing but the named file.

use failure::{Code, Failure};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Bytes of a file that are looked at: all headers are there, and the descriptor of a VMDK.
const HEAD_BYTES: usize = 64 << 10;
/// Bytes of the footer of a VHD.
const FOOTER_BYTES: u64 = 512;

/// A format that images have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The bytes of the disk.
    Raw,
    /// QEMU.
    Qcow2,
    /// VMware.
    Vmdk,
    /// Hyper-V.
    Vhdx,
    /// Hyper-V before 2012, Azure (`.vhd`).
    Vpc,
    /// VirtualBox.
    Vdi,
}

impl Format {
    /// As QEMU calls it.
    pub fn driver(self) -> &'static str {
        match self {
            Format::Raw => "raw",
            Format::Qcow2 => "qcow2",
            Format::Vmdk => "vmdk",
            Format::Vhdx => "vhdx",
            Format::Vpc => "vpc",
            Format::Vdi => "vdi",
        }
    }

    /// What the end of a file's name tells.
    fn of_extension(extension: &str) -> Option<Format> {
        match extension.to_ascii_lowercase().as_str() {
            "raw" | "img" | "bin" | "iso" => Some(Format::Raw),
            "qcow2" => Some(Format::Qcow2),
            "vmdk" => Some(Format::Vmdk),
            "vhdx" => Some(Format::Vhdx),
            "vhd" | "vpc" => Some(Format::Vpc),
            "vdi" => Some(Format::Vdi),
            _ => None,
        }
    }

    /// What the content of a file looks like. Only to warn by: a guest may have written it.
    fn resembled(head: &[u8]) -> Option<Format> {
        let magics: [(&[u8], usize, Format); 7] = [
            (b"QFI\xfb", 0, Format::Qcow2),
            (b"KDMV", 0, Format::Vmdk),
            (b"COWD", 0, Format::Vmdk),
            (b"# Disk DescriptorFile", 0, Format::Vmdk),
            (b"vhdxfile", 0, Format::Vhdx),
            (b"conectix", 0, Format::Vpc),
            (b"\x7f\x10\xda\xbe", 64, Format::Vdi),
        ];
        let has = |magic: &[u8], at: usize| head.get(at..at + magic.len()) == Some(magic);
        magics.into_iter().find(|(magic, at, _)| has(magic, *at)).map(|(_, _, format)| format)
    }
}

/// An image that may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The file, from the root: nothing in its name can mean anything else then.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Whether it is a block device.
    pub is_device: bool,
    /// Whether further files that it names are read.
    pub follows: bool,
}

impl Image {
    /// Settles the format of a file, and refuses an image that names other files, unless `follows`.
    ///
    /// # Errors
    /// When there is no such file, its format is not clear, or it is not all there is.
    pub fn open(file: &Path, given: Option<Format>, follows: bool) -> Result<Image, Failure> {
        let what = || format!("read {}", file.display());
        let path = std::path::absolute(file).map_err(|error| Failure::failed(what(), error))?;
        if path.to_str().is_none() {
            return Err(Failure::usage(format!("the name of {} is not UTF-8: rename it", file.display())));
        }
        let kind = std::fs::metadata(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::new(Code::NotFound, format!("there is no file {}", file.display()))
            }
            _ => Failure::failed(what(), error),
        })?;
        let mut open = File::open(&path).map_err(|error| Failure::failed(what(), error))?;
        let mut head = Vec::new();
        open.by_ref()
            .take(HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .map_err(|error| Failure::failed(what(), error))?;
        let is_device = kind.file_type().is_block_device();
        let format = format_of(file, given, &head, is_device)?;
        if !follows && let Some(named) = named_by(format, &head, &mut open) {
            return Err(Failure::refused(format!("{} is not a whole image: {named}", file.display())).hint(
                "convert it to a whole one where it was made, or add `--with-backing` if you trust who made it: that reads \
                 the files that it names",
            ));
        }
        Ok(Image { path, format, is_device, follows })
    }
}

/// The format that is given, or that the file's name tells.
fn format_of(file: &Path, given: Option<Format>, head: &[u8], is_device: bool) -> Result<Format, Failure> {
    if let Some(given) = given {
        return Ok(given);
    }
    let shown = file.display();
    let extension = file.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let by_name = if is_device { Some(Format::Raw) } else { Format::of_extension(extension) };
    let Some(format) = by_name else {
        return Err(Failure::usage(format!("the name of {shown} does not tell the format of the image"))
            .hint("add `--format`: raw, qcow2, vmdk, vhdx, vpc or vdi"));
    };
    match Format::resembled(head).filter(|other| *other != format && !extension.eq_ignore_ascii_case("raw")) {
        None => Ok(format),
        Some(other) => Err(Failure::refused(format!(
            "{shown} looks like an image of format {}, and its name says {}",
            other.driver(),
            format.driver()
        ))
        .hint(format!(
            "add `--format {}` if it is one; `--format {}` takes its bytes as they are named",
            other.driver(),
            format.driver()
        ))),
    }
}

/// What other files an image names, in words; nothing if it is whole.
fn named_by(format: Format, head: &[u8], file: &mut File) -> Option<String> {
    match format {
        Format::Raw | Format::Vdi => None,
        Format::Qcow2 => named_by_qcow2(head),
        Format::Vmdk => named_by_vmdk(head),
        // QEMU refuses a parent by itself; here it is told why.
        Format::Vhdx => named_by_vhdx(file),
        Format::Vpc => named_by_vhd(head, file),
    }
}

fn be64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")))
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")))
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

/// The header of QEMU's docs/interop/qcow2.txt: bytes 8 to 15 say where the name of a backing file stands, bit 2 of the
/// incompatible features (bytes 72 to 79, from version 3) that the data are in another file.
fn named_by_qcow2(head: &[u8]) -> Option<String> {
    if !head.starts_with(b"QFI\xfb") {
        return None; // No such image: QEMU says so.
    }
    let (offset, size) = (be64(head, 8), be32(head, 16) as usize);
    if offset != 0 {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let name = at.checked_add(size).and_then(|end| head.get(at..end)).unwrap_or_default();
        return Some(format!("it needs the backing file `{}`", shown(name)));
    }
    let has_data_file = be32(head, 4) >= 3 && be64(head, 72) & 4 != 0;
    has_data_file.then(|| "its data are in another file".to_owned())
}

/// A sparse extent with a capacity and a descriptor that names no parent is whole. A descriptor alone names its extents.
fn named_by_vmdk(head: &[u8]) -> Option<String> {
    if head.starts_with(b"COWD") || !head.starts_with(b"KDMV") {
        return Some("it is a descriptor that names other files".to_owned());
    }
    // Sectors: capacity at 12, place and size of the descriptor at 28 and 36 (VMware's Virtual Disk Format 1.1).
    let (capacity, offset, size) = (le64(head, 12), le64(head, 28), le64(head, 36));
    if capacity == 0 {
        return Some("it is a descriptor that names other files".to_owned());
    }
    let start = usize::try_from(offset.saturating_mul(512)).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(size.saturating_mul(512)).unwrap_or(usize::MAX));
    let Some(descriptor) = head.get(start..end).filter(|_| size > 0) else {
        return Some("its descriptor is not where such images have it".to_owned());
    };
    let text = String::from_utf8_lossy(descriptor);
    let parent = text.lines().find_map(|line| line.trim().strip_prefix("parentFileNameHint="));
    if let Some(parent) = parent {
        return Some(format!("it needs its parent {}", shown(parent.trim_end_matches('\0').as_bytes())));
    }
    let is_apart = |line: &&str| line.trim().eq_ignore_ascii_case("parentCID=ffffffff");
    let of_parent = text.lines().find(|line| line.trim().to_ascii_lowercase().starts_with("parentcid="));
    match of_parent {
        Some(line) if !is_apart(&line) => Some("it needs its parent".to_owned()),
        Some(_) | None => None,
    }
}

/// The type of the footer, which stands at the end: 4 is a differencing disk (Microsoft's Virtual Hard Disk Image Format 1.0).
fn named_by_vhd(head: &[u8], file: &mut File) -> Option<String> {
    let mut footer = Vec::new();
    let at_end = file.seek(SeekFrom::End(-(FOOTER_BYTES as i64))).and_then(|_| file.read_to_end(&mut footer));
    let is_differencing = |bytes: &[u8]| bytes.starts_with(b"conectix") && be32(bytes, 60) == 4;
    let is_one = is_differencing(head) || (at_end.is_ok() && is_differencing(&footer));
    is_one.then(|| "it is a differencing disk that needs its parent".to_owned())
}

/// The metadata that say whether there is a parent stand at a place that the region table names (MS-VHDX §2.2.3 and §2.6).
fn named_by_vhdx(file: &mut File) -> Option<String> {
    let mut read = |at: u64, len: usize| -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        file.seek(SeekFrom::Start(at)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        Some(bytes)
    };
    let unread = || Some("its metadata cannot be read".to_owned());
    const TABLE_AT: u64 = 192 << 10;
    /// 8B7CA206-4790-4B9A-B8FE-575F050F886E, the region of the metadata.
    const METADATA: [u8; 16] =
        [0x06, 0xa2, 0x7c, 0x8b, 0x90, 0x47, 0x9a, 0x4b, 0xb8, 0xfe, 0x57, 0x5f, 0x05, 0x0f, 0x88, 0x6e];
    /// CAA16737-FA36-4D43-B3B6-33F0AA44E76B, the item of the parameters.
    const PARAMETERS: [u8; 16] =
        [0x37, 0x67, 0xa1, 0xca, 0x36, 0xfa, 0x43, 0x4d, 0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44, 0xe7, 0x6b];
    let Some(regions) = read(TABLE_AT, 64 << 10).filter(|table| table.starts_with(b"regi")) else {
        return unread();
    };
    let find = |table: &[u8], begin: usize, id: [u8; 16]| {
        table[begin..].chunks_exact(32).find(|entry| entry[..16] == id).map(<[u8]>::to_vec)
    };
    let Some(region) = find(&regions, 16, METADATA) else { return unread() };
    let at = le64(&region, 16);
    let Some(items) = read(at, 64 << 10).filter(|table| table.starts_with(b"metadata")) else {
        return unread();
    };
    let Some(item) = find(&items, 32, PARAMETERS) else { return unread() };
    let offset = u64::from(u32::from_le_bytes(item[16..20].try_into().expect("four bytes")));
    let Some(parameters) = read(at.saturating_add(offset), 8) else { return unread() };
    // Bit 1 of the second word: HasParent.
    (parameters[4] & 2 != 0).then(|| "it is a differencing disk that needs its parent".to_owned())
}

/// Part of an image as text that does nothing to a terminal.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(256)]).escape_debug().to_string()
}

#[cfg(test)]
mod tests;
