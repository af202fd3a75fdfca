//! `attach`: how guests of a host get at a disk, ready to paste into QEMU, libvirt and Proxmox.
//!
//! It changes nothing: a disk may be attached to at any host of its cluster, and who attaches is asked there.

mod by_name;
mod export;

use crate::shell::Shell;
use api::client::disk_path;
use api::types::{DiskView, HostSummary, HostView};
pub use export::AttachOptions;
use export::{Export, Format, RECONNECT_SECONDS, escaped, libvirt_arguments, node_name, serial};
use failure::{Code, Failure};
use serde::Serialize;

/// How a disk is attached at a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Attachment {
    /// The disk.
    disk: String,
    /// The host.
    host: String,
    /// Seconds after which a request without an answer ends with an I/O error; none if requests wait.
    error_after_seconds: Option<u64>,
    /// The same in words.
    waiting: String,
    /// For programs that speak NBD.
    uri: String,
    /// Options of QEMU.
    qemu: String,
    /// A `<disk>` element of libvirt.
    libvirt: String,
    /// The same as arguments of QEMU in libvirt's XML.
    libvirt_arguments: String,
    /// A line of `/etc/pve/qemu-server/ID.conf`.
    proxmox: String,
}

/// Where NBD is served on the guest's own host.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Unix(String),
    Tcp { address: String, port: String },
}

/// Does it.
///
/// # Errors
/// When there is no such disk or host, or the host serves nowhere that its guests reach.
pub async fn run(shell: &mut Shell<'_>, options: &AttachOptions) -> Result<(), Failure> {
    let disk: DiskView = shell.client.get(&disk_path(&options.disk)).await?;
    let own: HostView = shell.client.get("/api/v1/host").await?;
    if let Some(name) = &options.by_name {
        return by_name::run(shell, options, &disk.summary.name, name).await;
    }
    let (host, nbd) = match &options.host {
        Some(name) if *name != own.name => {
            let hosts: Vec<HostSummary> = shell.client.get("/api/v1/hosts").await?;
            let found = hosts.into_iter().find(|host| host.name == *name || host.id == *name);
            let found = found.ok_or_else(|| {
                Failure::new(Code::NotFound, format!("there is no host `{name}` in this cluster"))
                    .hint("see `drystone host list`")
            })?;
            (found.name, found.nbd)
        }
        _ => (own.name, own.nbd),
    };
    if options.format == Some(Format::Hosts) {
        return Err(Failure::usage("`--format hosts` needs `--by-name`"));
    }
    let place = place_of(&nbd).ok_or_else(|| {
        Failure::refused(format!(
            "host {host} serves NBD at no address that its own guests reach without a certificate"
        ))
        .hint("add \"unix:nbd.sock\" to [listen] nbd of its configuration")
    })?;
    let attachment = attachment(&Export::of(options, &disk.summary.name), &host, &place);
    shell.show(&attachment, |all| match options.format {
        None => format!(
            "disk {} at host {}: {}\n{}\n\nQEMU:\n{}\n\nlibvirt (its guest sees errors while the host's daemon restarts):\n{}\n\nlibvirt, for a guest that waits meanwhile, instead of \
             the element above:\n{}\n\nProxmox, in /etc/pve/qemu-server/ID.conf:\n{}",
            all.disk, all.host, all.uri, all.waiting, all.qemu, all.libvirt, all.libvirt_arguments, all.proxmox
        ),
        Some(Format::Uri) => all.uri.clone(),
        Some(Format::Qemu) => all.qemu.clone(),
        Some(Format::Libvirt) => all.libvirt.clone(),
        Some(Format::LibvirtArguments) => all.libvirt_arguments.clone(),
        Some(Format::Proxmox) => all.proxmox.clone(),
        Some(Format::Hosts) => String::new(),
    })
}

/// The first unix socket, or else a port of loopback: what is served there needs no certificate.
fn place_of(nbd: &[String]) -> Option<Place> {
    let unix =
        nbd.iter().find_map(|text| text.strip_prefix("unix:")).map(|path| Place::Unix(path.to_owned()));
    let tcp = || {
        nbd.iter().find_map(|text| {
            let address: std::net::SocketAddr = text.parse().ok()?;
            let is_near = address.ip().is_loopback() || address.ip().is_unspecified();
            let near = if address.is_ipv4() { "127.0.0.1" } else { "::1" };
            is_near.then(|| Place::Tcp { address: near.to_owned(), port: address.port().to_string() })
        })
    };
    unix.or_else(tcp)
}

fn attachment(export: &Export, host: &str, place: &Place) -> Attachment {
    let (disk, name) = (export.disk.as_str(), export.name.as_str());
    let (uri, server, source) = match place {
        Place::Unix(path) => (
            format!("nbd+unix:///{name}?socket={path}"),
            format!("server.type=unix,server.path={}", path.replace(',', ",,")),
            format!("<host transport='unix' socket='{}'/>", escaped(path)),
        ),
        Place::Tcp { address, port } => {
            let shown = if address.contains(':') { format!("[{address}]") } else { address.clone() };
            (
                format!("nbd://{shown}:{port}/{name}"),
                format!("server.type=inet,server.host={address},server.port={port}"),
                format!("<host name='{address}' port='{port}'/>"),
            )
        }
    };
    let node = node_name(disk);
    let qemu = format!(
        "-blockdev driver=nbd,node-name={node},{server},export={name},cache.direct=on,discard=unmap,reconnect-delay={RECONNECT_SECONDS} \
         -device virtio-blk-pci,drive={node},serial={}",
        serial(disk)
    );
    let libvirt = format!(
        "<disk type='network' device='disk'>\n  \
         <driver name='qemu' type='raw' cache='none' discard='unmap'/>\n  \
         <source protocol='nbd' name='{name}'>\n    {source}\n  </source>\n  \
         <serial>{}</serial>\n  <target dev='vda' bus='virtio'/>\n</disk>",
        serial(disk)
    );
    let proxmox = format!("args: {qemu}");
    let libvirt_arguments = libvirt_arguments(&qemu, disk);
    Attachment {
        disk: disk.to_owned(),
        host: host.to_owned(),
        error_after_seconds: export.errors.map(|after| after.as_secs()),
        waiting: export.text(),
        uri,
        qemu,
        libvirt,
        libvirt_arguments,
        proxmox,
    }
}

#[cfg(test)]
mod tests {
    use super::export::slot;
    use super::*;
    use std::time::Duration;

    fn plain(disk: &str) -> Export {
        Export { disk: disk.to_owned(), name: disk.to_owned(), errors: None }
    }

    #[test]
    fn a_guest_that_asks_for_errors_gets_the_disk_by_a_name_that_says_so_and_the_serial_stays() {
        let options = AttachOptions {
            disk: "web".to_owned(),
            host: None,
            by_name: None,
            credentials: None,
            error_after: Some(Duration::from_secs(30)),
            format: None,
        };
        let all = attachment(&Export::of(&options, "web"), "a", &Place::Unix("/d/nbd.sock".to_owned()));
        assert_eq!(all.uri, "nbd+unix:///web@error-after=30s?socket=/d/nbd.sock");
        assert!(all.qemu.contains("export=web@error-after=30s,cache"), "{}", all.qemu);
        assert!(all.qemu.ends_with("drive=disk-web,serial=web"), "{}", all.qemu);
        assert!(all.libvirt.contains("name='web@error-after=30s'"), "{}", all.libvirt);
        assert!(all.waiting.contains("after 30 s"), "{}", all.waiting);
    }

    #[test]
    fn the_nearest_place_that_needs_no_certificate_is_named() {
        let place = |nbd: &[&str]| place_of(&nbd.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        let tcp = |address: &str| Some(Place::Tcp { address: address.to_owned(), port: "10809".to_owned() });
        assert_eq!(
            place(&["10.0.0.1:10809", "unix:/d/nbd.sock"]),
            Some(Place::Unix("/d/nbd.sock".to_owned()))
        );
        assert_eq!(place(&["10.0.0.1:10809", "127.0.0.1:10809"]), tcp("127.0.0.1"));
        assert_eq!(place(&["0.0.0.0:10809"]), tcp("127.0.0.1"));
        assert_eq!(place(&["[::1]:10809"]), tcp("::1"));
        assert_eq!(place(&["10.0.0.1:10809"]), None);
    }

    /// Names were cut off: two disks whose names begin alike had one serial number in a guest, and QEMU refused the second node.
    #[test]
    fn disks_whose_names_begin_alike_have_serials_and_node_names_of_their_own() {
        let names =
            ["customer-database-production-1", "customer-database-production-2", "customer-database-pro"];
        for of in [serial as fn(&str) -> String, node_name] {
            let found: std::collections::BTreeSet<String> = names.iter().map(|name| of(name)).collect();
            assert_eq!(found.len(), names.len(), "{found:?}");
        }
        assert!(names.iter().all(|name| serial(name).len() <= 20 && node_name(name).len() <= 31));
        assert_eq!(
            (serial("web").as_str(), node_name("web").as_str()),
            ("web", "disk-web"),
            "short names stay"
        );
        assert_eq!(serial(&"x".repeat(20)), "x".repeat(20));
    }

    /// libvirt 9.0 refuses `<reconnect>` in the source of an NBD disk where it validates, and drops it where it does not.
    #[test]
    fn libvirt_of_debian_12_takes_what_is_printed() {
        let is_there = std::process::Command::new("virt-xml-validate").arg("--version").output().is_ok();
        if !is_there {
            assert!(
                std::env::var("CI").is_err(),
                "virt-xml-validate is missing (Debian packages libvirt-clients and libxml2-utils)"
            );
            println!(
                "virt-xml-validate is not there (Debian package libvirt-clients): libvirt did not read it"
            );
            return;
        }
        let tcp = Place::Tcp { address: "127.0.0.1".to_owned(), port: "10809".to_owned() };
        let all = [
            attachment(&plain("web"), "a", &Place::Unix("/d,'/nbd.sock".to_owned())),
            attachment(&plain("web"), "a", &tcp),
        ];
        let by_name = by_name::example();
        let disks = all.iter().map(|one| (one.libvirt.as_str(), one.libvirt_arguments.as_str()));
        let folder = tempfile::tempdir().expect("a folder");
        for (disk, arguments) in disks.chain([(by_name.0.as_str(), by_name.1.as_str())]) {
            let domain = format!(
                "<domain type='kvm'><name>x</name><memory unit='MiB'>512</memory><vcpu>1</vcpu>\
                 <os><type arch='x86_64' machine='q35'>hvm</type></os><devices>{disk}</devices>{arguments}</domain>"
            );
            let path = folder.path().join("domain.xml");
            std::fs::write(&path, domain).expect("room for a file");
            let done = std::process::Command::new("virt-xml-validate").arg(&path).arg("domain").output();
            let done = done.expect("it runs");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{said}: {disk}");
        }
    }

    #[test]
    fn texts_are_ready_to_paste() {
        let all = attachment(&plain("web"), "a", &Place::Unix("/d,'/nbd.sock".to_owned()));
        assert_eq!(all.uri, "nbd+unix:///web?socket=/d,'/nbd.sock");
        assert!(all.qemu.contains("server.path=/d,,'/nbd.sock,export=web"), "{}", all.qemu);
        assert!(all.libvirt.contains("socket='/d,&apos;/nbd.sock'"), "{}", all.libvirt);
        assert!(all.proxmox.starts_with("args: -blockdev driver=nbd"), "{}", all.proxmox);
        // QEMU refused the machine: libvirt's memory balloon had the address that the disk had got.
        let device = format!("serial=web,addr={:#x}'/>", slot("web"));
        assert!(all.libvirt_arguments.contains(&device), "{}", all.libvirt_arguments);
        assert!((0x10..0x19).contains(&slot("web")));
        let long = attachment(
            &plain(&"x".repeat(64)),
            "a",
            &Place::Tcp { address: "::1".to_owned(), port: "1".to_owned() },
        );
        assert!(long.uri.starts_with("nbd://[::1]:1/xxx"), "{}", long.uri);
        assert!(long.qemu.contains(&format!("serial={}-", "x".repeat(9))), "{}", long.qemu);
    }
}
