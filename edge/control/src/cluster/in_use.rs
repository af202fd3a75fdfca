//! Disks that clients have, and locks that keep clients from disks.

use base::HostId;
use failure::Failure;

/// What a lock found, for the way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeforeLock {
    /// Whether clients of several hosts could have the disk at once. Not while it is locked.
    pub was_shared: bool,
}

/// Where clients have a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The host.
    pub host: HostId,
    /// Its name.
    pub name: String,
    /// How many clients; nothing where the host does not answer.
    pub clients: Option<usize>,
}

/// The refusal of what would pull a disk from under its clients.
pub fn in_use(disk: &str, places: &[Place]) -> Failure {
    let clients = |place: &Place| match place.clients {
        None => "which does not answer".to_owned(),
        Some(1) => "1 client".to_owned(),
        Some(count) => format!("{count} clients"),
    };
    let text = |place: &Place| format!("at host {} ({})", place.name, clients(place));
    let places: Vec<String> = places.iter().map(text).collect();
    Failure::refused(format!("disk {disk} is in use: it is attached {}", places.join(" and ")))
        .hint("detach it there first, or add `--detach-clients` to end these connections")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_tells_where_a_disk_is_attached_and_the_way_out() {
        let place = |host, name: &str, clients| Place { host: HostId(host), name: name.to_owned(), clients };
        let failure = in_use("web", &[place(1, "a", Some(2)), place(2, "b", None)]);
        assert_eq!(
            failure.error,
            "disk web is in use: it is attached at host a (2 clients) and at host b (which does not answer)"
        );
        assert!(failure.hint.is_some_and(|hint| hint.contains("--detach-clients")));
    }
}
