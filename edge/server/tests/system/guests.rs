//! Real guests on clones: a Debian kernel with a file system from a golden image, emulated, so that it runs anywhere.
//!
//! The kernel need not be installed: `DRYSTONE_GUEST_KERNEL` names a folder into which its package was unpacked.

use super::host::{Shape, Site};
use super::tools::{command, run, run_command, text, wait_for};
use base::units::MIB;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const GUESTS: usize = 10;
/// How long ten emulated guests may take on a busy machine.
const PATIENCE: u64 = 300;
/// The modules that the guest's disk needs, in order.
const MODULES: [&str; 6] = [
    "drivers/virtio/virtio_ring.ko",
    "drivers/virtio/virtio.ko",
    "drivers/virtio/virtio_pci_modern_dev.ko",
    "drivers/virtio/virtio_pci_legacy_dev.ko",
    "drivers/virtio/virtio_pci.ko",
    "drivers/block/virtio_blk.ko",
];

/// What the guest does: it reads what the golden image has, writes a file of its own, and reads that back from the disk.
const INIT: &str = r#"#!/bin/busybox sh
bb=/bin/busybox
$bb mount -t devtmpfs dev /dev; $bb mount -t proc proc /proc
for module in 0 1 2 3 4 5; do $bb insmod /modules/$module.ko; done
for try in 1 2 3 4 5 6 7 8 9; do [ -b /dev/vda ] && break; $bb sleep 1; done
name=$($bb sed 's/.*guest=\([^ ]*\).*/\1/' /proc/cmdline)
fail() { echo "guest: $name failed: $1"; $bb poweroff -f; }
$bb mount -t ext4 /dev/vda /mnt || fail mount
[ "$($bb cat /mnt/golden)" = "from the golden image" ] || fail golden
(echo "$name"; $bb dd if=/dev/urandom bs=64k count=32 2>/dev/null) > /mnt/own || fail write
sum=$($bb md5sum < /mnt/own)
$bb sync; echo 3 > /proc/sys/vm/drop_caches
[ "$sum" = "$($bb md5sum < /mnt/own)" ] || fail read
$bb umount /mnt || fail umount
echo "guest: $name wrote ${sum%% *}"
$bb poweroff -f
"#;

/// The kernel and the folder of its modules, if there is one.
fn find_kernel() -> Option<(PathBuf, PathBuf)> {
    let root = std::env::var_os("DRYSTONE_GUEST_KERNEL").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let kernels = fs::read_dir(root.join("boot")).ok()?.flatten().filter_map(|entry| {
        let version = entry.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned();
        version.ends_with("cloud-amd64").then(|| (entry.path(), root.join("lib/modules").join(version)))
    });
    kernels.max()
}

/// The guest's first file system.
fn make_initramfs(site: &Site, modules: &Path) -> PathBuf {
    let (root, made) = (site.path("root"), site.path("guest.cpio"));
    for folder in ["bin", "dev", "proc", "mnt", "modules"] {
        fs::create_dir_all(root.join(folder)).expect("room for a folder");
    }
    let busybox = run("sh", &["-c", "command -v busybox || echo missing"]);
    assert!(!busybox.contains("missing"), "busybox is in the Debian package busybox-static");
    fs::copy(busybox.trim(), root.join("bin/busybox")).expect("it can be copied");
    for (index, module) in MODULES.iter().enumerate() {
        let from = modules.join("kernel").join(module);
        fs::copy(from, root.join(format!("modules/{index}.ko"))).expect("the kernel has it");
    }
    fs::write(root.join("init"), INIT).expect("room for a file");
    run("chmod", &["+x", text(&root.join("init"))]);
    let pack = format!("cd {} && find . | cpio -o -H newc --quiet > {}", text(&root), text(&made));
    run("sh", &["-c", &pack]);
    made
}

/// A file system with one file.
fn make_image(site: &Site) -> PathBuf {
    let (content, image) = (site.path("content"), site.path("golden.raw"));
    fs::create_dir_all(&content).expect("room for a folder");
    fs::write(content.join("golden"), "from the golden image\n").expect("room for a file");
    run("mkfs.ext4", &["-q", "-d", text(&content), text(&image), "64M"]);
    image
}

/// A machine that runs. Dropped, it is killed.
struct Guest {
    process: Child,
    console: PathBuf,
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Guest {
    fn start(site: &Site, kernel: &Path, initramfs: &Path, name: &str) -> Guest {
        let console = site.path(&format!("{name}.console"));
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-machine", "pc,accel=tcg", "-m", "128M", "-smp", "1", "-nodefaults", "-display", "none"]);
        qemu.args(["-no-reboot", "-no-user-config", "-kernel", text(kernel), "-initrd", text(initramfs)]);
        // Ten machines at once may stand still for so long that a kernel takes its timer for broken.
        qemu.args(["-append", &format!("console=ttyS0 quiet panic=-1 no_timer_check guest={name}")]);
        let disk =
            format!("driver=nbd,node-name=disk,server.type=unix,export={name},cache.direct=on,server.path=");
        qemu.args(["-blockdev", &(disk + text(&site.path("d/nbd.sock")))]);
        qemu.args(["-device", "virtio-blk-pci,drive=disk", "-serial", &format!("file:{}", text(&console))]);
        let log = File::create(site.path(&format!("{name}.qemu"))).expect("room for a log");
        qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = qemu.spawn().expect("qemu-system-x86_64, of the Debian package qemu-system-x86");
        Guest { process, console }
    }

    fn console(&self) -> String {
        fs::read_to_string(&self.console).unwrap_or_default()
    }

    /// What it wrote, as it says itself.
    fn sum(&self, name: &str) -> String {
        let said = self.console();
        let told = said.lines().find_map(|line| line.trim().strip_prefix(&format!("guest: {name} wrote ")));
        told.unwrap_or_else(|| panic!("{name} said: {said}")).to_owned()
    }
}

#[test]
fn ten_guests_boot_from_clones_of_one_image_at_once_and_each_has_its_own_files() {
    let Some((kernel, modules)) = find_kernel() else {
        println!("skipped: there is no /boot/vmlinuz-*-cloud-amd64, and DRYSTONE_GUEST_KERNEL names none");
        return;
    };
    let site = Site::new(&Shape::Two { size_mib: 1024 });
    let (initramfs, image) = (make_initramfs(&site, &modules), make_image(&site));
    let server = site.start();
    site.ask(&["disk", "import", "golden", text(&image)]);
    // The group is converted in the first second.
    wait_for("the snapshot is taken", 30, || {
        site.cli(&["disk", "snapshot", "create", "golden", "base"]).status.success().then_some(())
    });
    let names: Vec<String> = (0..GUESTS).map(|number| format!("guest-{number}")).collect();
    for name in &names {
        site.ask(&["disk", "clone", "golden@base", name]);
    }
    let start = Instant::now();
    let mut guests: Vec<Guest> =
        names.iter().map(|name| Guest::start(&site, &kernel, &initramfs, name)).collect();
    for guest in &mut guests {
        wait_for("the guest turns its machine off", PATIENCE, || {
            guest.process.try_wait().expect("its state")
        });
    }
    println!("{GUESTS} guests booted, wrote and read 2 MiB each in {:.1} s", start.elapsed().as_secs_f64());
    let copy = site.path("copy.raw");
    for (name, guest) in names.iter().zip(&guests) {
        let sum = guest.sum(name);
        run("nbdcopy", &[&site.uri(name), text(&copy)]);
        run("fsck.ext4", &["-fn", text(&copy)]);
        let own = site.path("own");
        run("debugfs", &["-R", &format!("dump /own {}", text(&own)), text(&copy)]);
        assert!(run("md5sum", &[text(&own)]).starts_with(&sum), "{name} wrote {sum}");
        let content = fs::read(&own).expect("it was dumped");
        assert!(content.starts_with(format!("{name}\n").as_bytes()), "{name} has its own file");
        let allocated = site.json(&["disk", "show", name])["allocated_bytes"].as_u64().expect("a number");
        assert!(allocated < 32 * MIB, "{name} takes {allocated} bytes");
    }
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", text(&image), &site.uri("golden")]);
    server.stop();
}

/// What a hundred clones cost is told, and that each is a disk of its own.
#[test]
fn a_disk_is_cloned_a_hundred_times() {
    let site = Site::new(&Shape::Two { size_mib: 1024 });
    let server = site.start();
    site.ask(&["disk", "create", "golden", "256MiB"]);
    let qemu_io = |disk: &str, commands: &[&str]| {
        let mut io = command("qemu-io");
        io.args(["-f", "raw"]);
        commands.iter().for_each(|command| {
            io.args(["-c", command]);
        });
        run_command(io.arg(site.uri(disk)));
    };
    qemu_io("golden", &["write -P 1 0 64M"]);
    wait_for("the snapshot is taken", 30, || {
        site.cli(&["disk", "snapshot", "create", "golden", "base"]).status.success().then_some(())
    });
    let used = || {
        let disks = site.json(&["disk", "list"]);
        let all = disks.as_array().expect("disks").iter();
        all.map(|disk| disk["allocated_bytes"].as_u64().expect("a number")).sum::<u64>()
    };
    let before = used();
    let (start, mut slowest) = (Instant::now(), Duration::ZERO);
    for number in 0..100 {
        let began = Instant::now();
        site.ask(&["disk", "clone", "golden@base", &format!("clone-{number}")]);
        slowest = slowest.max(began.elapsed());
    }
    let took = start.elapsed();
    let empty = used() - before;
    for number in [0, 49, 99] {
        let (name, own) = (format!("clone-{number}"), format!("write -P {} 8M 64k", number + 2));
        qemu_io(&name, &["read -P 1 0 64M", "read -P 0 64M 192M", &own]);
        let is_own = format!("read -P {} 8M 64k", number + 2);
        qemu_io(&name, &[&is_own, "read -P 1 0 8M", "read -P 1 8454144 55M"]);
    }
    qemu_io("golden", &["read -P 1 0 64M"]);
    println!(
        "100 clones of a disk with 64 MiB of data in {:.1} s, {:.0} ms at most for one; they take {empty} bytes, and {} once 3 are written",
        took.as_secs_f64(),
        slowest.as_secs_f64() * 1e3,
        used() - before
    );
    assert!(empty <= MIB, "100 clones take {empty} bytes before anything is written");
    assert!(used() - before <= 8 * MIB, "{} bytes", used() - before);
    assert_eq!(site.json(&["disk", "snapshot", "list", "golden"])[0]["clones"], 100);
    server.stop();
}
