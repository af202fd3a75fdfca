//! The file system of a host's data directory is full: its disks go on, what changes nothing is answered, and all returns with the
//! room.

use super::host::{Shape, Site};
use super::tools::{root_command, run_as_root, said, text, wait_for};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// A file system in memory at a folder, which is made.
struct Memory {
    folder: PathBuf,
}

impl Memory {
    fn mount(folder: PathBuf, bytes: u64) -> Memory {
        std::fs::create_dir_all(&folder).expect("room for a folder");
        let options = format!("size={bytes},mode=0777");
        run_as_root("mount", &["-t", "tmpfs", "-o", &options, "drystone-test", text(&folder)]);
        Memory { folder }
    }

    /// Takes all that is left, or that came back since.
    fn fill(&self) {
        let ballast = std::fs::File::options().create(true).append(true).open(self.folder.join("ballast"));
        let mut ballast = ballast.expect("room for a file");
        while ballast.write_all(&[1; 4096]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.folder.join("ballast")).expect("it is there");
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Nothing may stay mounted, whatever failed.
        let _ = root_command("umount").args(["--lazy", text(&self.folder)]).status();
    }
}

#[test]
fn a_full_data_directory_stops_no_guest_and_all_returns_with_the_room() {
    let site = Site::new(&Shape::Two { size_mib: 256 });
    let memory = Memory::mount(site.path("d"), 16 << 20);
    let server = site.start();
    site.ask(&["disk", "create", "web", "16MiB"]);
    let mut client = site.attach("web");
    memory.fill();
    // The store's file has some pages left.
    let mut count = 0;
    let refused = wait_for("there is no room for a record", 60, || {
        count += 1;
        let done = site.cli(&["disk", "create", &format!("more-{count}"), "1MiB"]);
        (!done.status.success()).then(|| said(&done))
    });
    assert!(refused.contains("No space left on device"), "{refused}");
    client.write(0, &[7; 65536]).expect("a guest goes on");
    assert_eq!(client.read(0, 65536), Ok(vec![7; 65536]));
    let again = site.cli(&["disk", "create", "more", "1MiB"]);
    assert!(!again.status.success(), "{}", said(&again));
    memory.free();
    site.ask(&["disk", "create", "after", "1MiB"]);
    drop(client);
    server.stop();
    let server = site.start();
    let disks = site.json(&["disk", "list"]);
    let names: Vec<&str> =
        disks.as_array().expect("disks").iter().filter_map(|disk| disk["name"].as_str()).collect();
    assert!(names.contains(&"after") && names.contains(&"web"), "{names:?}");
    assert_eq!(site.attach("web").read(0, 65536), Ok(vec![7; 65536]));
    server.stop();
}

#[test]
fn a_host_starts_where_no_room_is_left_even_if_it_has_to_make_its_directory_anew() {
    let site = Site::new(&Shape::Two { size_mib: 256 });
    let memory = Memory::mount(site.path("d"), 16 << 20);
    let server = site.start();
    site.ask(&["disk", "create", "web", "16MiB"]);
    let mut client = site.attach("web");
    client.write(0, &[7; 65536]).expect("it is written");
    drop(client);
    server.stop();
    std::fs::remove_file(site.path("d").join("directory.redb")).expect("it is there");
    memory.fill();
    // What the first start did not need is there for the second.
    for _ in 0..2 {
        let server = site.start();
        assert_eq!(site.attach("web").read(0, 65536), Ok(vec![7; 65536]));
        let killer = server.kill_after(Duration::ZERO);
        server.killed(killer);
        memory.fill();
    }
    memory.free();
    let server = site.start();
    site.ask(&["disk", "create", "more", "1MiB"]);
    server.stop();
}
