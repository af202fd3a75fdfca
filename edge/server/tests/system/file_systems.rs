//! File systems on a disk, made and used by the kernel: `nbdfuse` shows the disk as a file, a loop device makes it a
//! block device, and what was written survives a restart of the server in between.

use super::devices::{FuseFile, LoopDevice, Mount};
use super::host::{Shape, Site};
use super::tools::{run, run_as_root, text};
use base::Random;
use std::path::Path;

/// How one kind of file system is made and checked.
struct Kind {
    make: &'static [&'static str],
    check: &'static [&'static str],
}

/// Writes files, deletes some, writes others over in part, and makes holes.
fn use_folder(folder: &Path, seed: u64) {
    let mut random = Random::new(seed);
    for number in 0..80u64 {
        let parent = folder.join(format!("folder{}", number % 9));
        std::fs::create_dir_all(&parent).expect("room for a folder");
        let mut content = vec![0; random.below(1 << 20) as usize];
        random.fill(&mut content);
        std::fs::write(parent.join(format!("file{number}")), &content).expect("room for a file");
    }
    for number in (0..80u64).step_by(3) {
        std::fs::remove_file(folder.join(format!("folder{}/file{number}", number % 9))).expect("it is there");
    }
    for number in (1..80u64).step_by(3) {
        let path = folder.join(format!("folder{}/file{number}", number % 9));
        let file = std::fs::File::options().write(true).open(&path).expect("it is there");
        let mut piece = vec![0; 5000];
        random.fill(&mut piece);
        std::os::unix::fs::FileExt::write_all_at(&file, &piece, random.below(1 << 19)).expect("room");
        file.set_len(random.below(2 << 20)).expect("room");
        file.sync_all().expect("it is stable");
    }
}

fn lives_on_a_disk(kind: &Kind) {
    let site = Site::new(&Shape::Two { size_mib: 768 });
    let server = site.start();
    site.ask(&["disk", "create", "web", "512MiB"]);
    let expected = site.path("expected");
    use_folder(&expected, 1);

    let fuse = FuseFile::mount(&site.uri("web"), site.path("fuse"));
    let device = LoopDevice::attach(&fuse.file, &[]);
    run_as_root(kind.make[0], &[&kind.make[1..], &[text(&device.path)]].concat());
    let mount = Mount::new(&device.path, site.path("mounted"));
    run_as_root("chmod", &["777", text(&mount.folder)]);
    let files = mount.folder.join("files");
    use_folder(&files, 1);
    run("diff", &["-r", text(&expected), text(&files)]);
    mount.unmount();
    drop(device);
    fuse.unmount();
    server.stop();

    let server = site.start();
    let fuse = FuseFile::mount(&site.uri("web"), site.path("fuse"));
    let device = LoopDevice::attach(&fuse.file, &[]);
    run_as_root(kind.check[0], &[&kind.check[1..], &[text(&device.path)]].concat());
    let mount = Mount::new(&device.path, site.path("mounted"));
    run("diff", &["-r", text(&expected), text(&mount.folder.join("files"))]);
    run_as_root("rm", &["-r", text(&mount.folder.join("files"))]);
    mount.unmount();
    run_as_root(kind.check[0], &[&kind.check[1..], &[text(&device.path)]].concat());
    drop(device);
    fuse.unmount();
    server.stop();
}

#[test]
fn ext4_lives_on_a_disk() {
    lives_on_a_disk(&Kind { make: &["mkfs.ext4", "-q"], check: &["fsck.ext4", "-fn"] });
}

#[test]
fn xfs_lives_on_a_disk() {
    lives_on_a_disk(&Kind { make: &["mkfs.xfs", "-q"], check: &["xfs_repair", "-n"] });
}
