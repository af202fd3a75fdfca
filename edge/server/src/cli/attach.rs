//! `attach`: how guests of a host get at a disk, ready to paste into QEMU, libvirt and Proxmox.
//!
//! It changes nothing: a disk may be attached to at any host of its cluster, and who attaches is asked there.

mod by_name;

use super::{Shell, disks};
use crate::api::types::{DiskView, HostSummary, HostView};
use crate::failure::{Code, Failure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// Seconds that QEMU and libvirt keep a guest's requests while its host's daemon is restarted, before the guest sees errors.
const RECONNECT_SECONDS: u32 = 300;

/// Options of `attach`.
#[derive(Debug, Args)]
pub struct AttachOptions {
    /// The disk's name or id.
    disk: String,
    /// The host that the guest runs on [default: the one that is asked].
    #[arg(long)]
    host: Option<String>,
    /// By a name that stands for all hosts, so that the guest goes on at another host when its own is lost [the name, if none
    /// follows: host.drystone.internal].
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = trust::SHARED_NAME, conflicts_with = "host")]
    by_name: Option<String>,
    /// With `--by-name`: the folder of the certificate that the guest shows [default: that of the host that is asked, or yours].
    #[arg(long, value_name = "DIR", requires = "by_name")]
    credentials: Option<PathBuf>,
    /// Only one of them, with nothing around it.
    #[arg(long, value_enum)]
    format: Option<Format>,
}

/// What the text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The NBD URI.
    Uri,
    /// Options of QEMU.
    Qemu,
    /// A `<disk>` element of libvirt.
    Libvirt,
    /// A line of a Proxmox machine's configuration.
    Proxmox,
    /// With `--by-name`: lines of `/etc/hosts` that give the name its addresses.
    Hosts,
}

/// How a disk is attached at a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Attachment {
    /// The disk.
    disk: String,
    /// The host.
    host: String,
    /// For programs that speak NBD.
    uri: String,
    /// Options of QEMU.
    qemu: String,
    /// A `<disk>` element of libvirt.
    libvirt: String,
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
    let disk: DiskView = shell.client.get(&disks::path(&options.disk)).await?;
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
        return Err(Failure::usage("there are no names without `--by-name`"));
    }
    let place = place_of(&nbd).ok_or_else(|| {
        Failure::refused(format!(
            "host {host} serves NBD nowhere that its own guests reach without a certificate"
        ))
        .hint("add \"unix:nbd.sock\" to [listen] nbd of its configuration")
    })?;
    let attachment = attachment(&disk.summary.name, &host, &place);
    shell.show(&attachment, |all| match options.format {
        None => format!(
            "disk {} at host {}: {}\n\nQEMU:\n{}\n\nlibvirt:\n{}\n\nProxmox, in /etc/pve/qemu-server/ID.conf:\n{}",
            all.disk, all.host, all.uri, all.qemu, all.libvirt, all.proxmox
        ),
        Some(Format::Uri) => all.uri.clone(),
        Some(Format::Qemu) => all.qemu.clone(),
        Some(Format::Libvirt) => all.libvirt.clone(),
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

fn attachment(disk: &str, host: &str, place: &Place) -> Attachment {
    let (uri, server, source) = match place {
        Place::Unix(path) => (
            format!("nbd+unix:///{disk}?socket={path}"),
            format!("server.type=unix,server.path={}", path.replace(',', ",,")),
            format!("<host transport='unix' socket='{}'/>", escaped(path)),
        ),
        Place::Tcp { address, port } => {
            let shown = if address.contains(':') { format!("[{address}]") } else { address.clone() };
            (
                format!("nbd://{shown}:{port}/{disk}"),
                format!("server.type=inet,server.host={address},server.port={port}"),
                format!("<host name='{address}' port='{port}'/>"),
            )
        }
    };
    let node = node_name(disk);
    let qemu = format!(
        "-blockdev driver=nbd,node-name={node},{server},export={disk},cache.direct=on,discard=unmap,reconnect-delay={RECONNECT_SECONDS} \
         -device virtio-blk-pci,drive={node},serial={}",
        serial(disk)
    );
    let libvirt = format!(
        "<disk type='network' device='disk'>\n  \
         <driver name='qemu' type='raw' cache='none' discard='unmap'/>\n  \
         <source protocol='nbd' name='{disk}'>\n    {source}\n    <reconnect delay='{RECONNECT_SECONDS}'/>\n  </source>\n  \
         <serial>{}</serial>\n  <target dev='vda' bus='virtio'/>\n</disk>",
        serial(disk)
    );
    let proxmox = format!("args: {qemu}");
    Attachment { disk: disk.to_owned(), host: host.to_owned(), uri, qemu, libvirt, proxmox }
}

/// QEMU wants a letter first, and takes 31 characters.
fn node_name(disk: &str) -> String {
    format!("disk-{}", &disk[..disk.len().min(26)])
}

/// What a guest finds the disk by (`/dev/disk/by-id/virtio-…`): virtio carries 20 bytes of it.
fn serial(disk: &str) -> &str {
    &disk[..disk.len().min(20)]
}

/// As text of XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn texts_are_ready_to_paste() {
        let all = attachment("web", "a", &Place::Unix("/d,'/nbd.sock".to_owned()));
        assert_eq!(all.uri, "nbd+unix:///web?socket=/d,'/nbd.sock");
        assert!(all.qemu.contains("server.path=/d,,'/nbd.sock,export=web"), "{}", all.qemu);
        assert!(all.libvirt.contains("socket='/d,&apos;/nbd.sock'"), "{}", all.libvirt);
        assert!(all.proxmox.starts_with("args: -blockdev driver=nbd"), "{}", all.proxmox);
        let long =
            attachment(&"x".repeat(64), "a", &Place::Tcp { address: "::1".to_owned(), port: "1".to_owned() });
        assert!(long.uri.starts_with("nbd://[::1]:1/xxx"), "{}", long.uri);
        assert!(long.qemu.ends_with(&format!("serial={}", "x".repeat(20))), "{}", long.qemu);
    }
}
