//! Formats by name, and images that are not all there is.

use super::*;
use std::io::Write;

fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    File::create(&path).and_then(|mut file| file.write_all(content)).expect("room for an image");
    (folder, path)
}

fn opened(name: &str, content: &[u8], given: Option<Format>) -> Result<Format, Failure> {
    let (_folder, path) = file(name, content);
    Image::open(&path, given, false).map(|image| image.format)
}

/// The head of a qcow2 of version 3.
fn qcow2(backing: Option<&str>, features: u64) -> Vec<u8> {
    let mut head = vec![0; 4096];
    head[..4].copy_from_slice(b"QFI\xfb");
    head[4..8].copy_from_slice(&3u32.to_be_bytes());
    head[72..80].copy_from_slice(&features.to_be_bytes());
    if let Some(name) = backing {
        head[8..16].copy_from_slice(&1024u64.to_be_bytes());
        head[16..20].copy_from_slice(&(name.len() as u32).to_be_bytes());
        head[1024..1024 + name.len()].copy_from_slice(name.as_bytes());
    }
    head
}

#[test]
fn a_format_is_given_or_told_by_the_name_and_never_by_the_content() {
    let magic = qcow2(None, 0);
    assert_eq!(opened("a.raw", &[0; 512], None), Ok(Format::Raw));
    assert_eq!(opened("a.QCOW2", &magic, None), Ok(Format::Qcow2));
    assert_eq!(opened("a.vhd", &[0; 512], None), Ok(Format::Vpc));
    // What a guest wrote at the beginning of its disk changes nothing.
    assert_eq!(opened("a.raw", &magic, None), Ok(Format::Raw));
    assert_eq!(opened("a", &magic, Some(Format::Raw)), Ok(Format::Raw));
    let unclear = opened("a", &magic, None).expect_err("nobody said");
    assert_eq!(unclear.code, Code::Usage);
    // Names that are used for several formats are no proof.
    let doubtful = opened("a.img", &magic, None).expect_err("it looks like another");
    assert!(doubtful.error.contains("looks like an image of format qcow2"), "{doubtful}");
    assert!(doubtful.hint.is_some_and(|hint| hint.contains("--format qcow2")));
    assert_eq!(opened("a.img", &magic, Some(Format::Raw)), Ok(Format::Raw));
}

#[test]
fn an_image_that_names_other_files_is_refused_and_told_by_which() {
    let refused = |name: &str, content: &[u8]| opened(name, content, None).expect_err(name).error;
    let backing = refused("a.qcow2", &qcow2(Some("/etc/shadow"), 0));
    assert!(backing.contains("it needs the backing file `/etc/shadow`"), "{backing}");
    let escaped = refused("a.qcow2", &qcow2(Some("\u{1b}[31m"), 0));
    assert!(!escaped.contains('\u{1b}'), "{escaped}");
    assert!(refused("a.qcow2", &qcow2(None, 4)).contains("its data are in another file"));
    let mut outside = qcow2(None, 0);
    outside[8..16].copy_from_slice(&u64::MAX.to_be_bytes());
    assert!(refused("a.qcow2", &outside).contains("needs the backing file"));
    assert!(
        refused("a.vmdk", b"# Disk DescriptorFile\nRW 1 FLAT \"/etc/shadow\" 0\n")
            .contains("names other files")
    );
    let mut sparse = vec![0; 4096];
    sparse[..4].copy_from_slice(b"KDMV");
    assert!(
        refused("a.vmdk", &sparse).contains("names other files"),
        "no capacity: QEMU reads its descriptor"
    );
    sparse[12] = 1;
    assert!(refused("a.vmdk", &sparse).contains("descriptor"), "it has none");
    (sparse[28], sparse[36]) = (1, 1);
    let with = |line: &str| {
        let mut image = sparse.clone();
        image[512..512 + line.len()].copy_from_slice(line.as_bytes());
        image
    };
    assert_eq!(opened("a.vmdk", &with("parentCID=ffffffff\n"), None), Ok(Format::Vmdk));
    assert!(refused("a.vmdk", &with("parentCID=12345678\n")).contains("parent"));
    assert!(refused("a.vmdk", &with("parentFileNameHint=\"/etc/shadow\"\n")).contains("/etc/shadow"));
    let mut vhd = vec![0; 1024];
    vhd[512..520].copy_from_slice(b"conectix");
    vhd[575] = 3;
    assert_eq!(opened("a.vhd", &vhd, None), Ok(Format::Vpc));
    vhd[575] = 4;
    assert!(refused("a.vhd", &vhd).contains("differencing"));
    assert!(refused("a.vhdx", &[0; 4096]).contains("cannot be read"));
}

#[test]
fn whoever_trusts_an_image_may_have_it_followed() {
    let (_folder, path) = file("a.qcow2", &qcow2(Some("base"), 0));
    assert!(Image::open(&path, None, true).is_ok_and(|image| image.follows));
    let missing = Image::open(&path.with_extension("raw"), None, false).expect_err("it is not there");
    assert_eq!(missing.code, Code::NotFound);
}
