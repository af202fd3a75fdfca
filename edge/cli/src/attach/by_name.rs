//! `attach --by-name`: a guest that goes on at another host when its own is lost.
//!
//! QEMU resolves the name at every connection and tries its addresses one after the other. All hosts have one name in their
//! certificates, which it is told to expect, whichever of them answers.

use super::export::{
    AttachOptions, Export, Format, RECONNECT_SECONDS, escaped, libvirt_arguments, node_name, serial,
};
use crate::shell::Shell;
use api::client::Client;
use api::identity;
use api::types::HostSummary;
use failure::Failure;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Seconds that QEMU tries to find a host when a guest starts.
const OPEN_SECONDS: u32 = 60;

/// How a disk is attached by a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ByName {
    /// The disk.
    disk: String,
    /// The name that stands for all hosts.
    name: String,
    /// Seconds after which a request without an answer ends with an I/O error; none if requests wait.
    error_after_seconds: Option<u64>,
    /// The same in words.
    waiting: String,
    /// Lines of `/etc/hosts`; a DNS server may say the same.
    hosts: Vec<String>,
    /// Hosts that cannot be reached by it, and why.
    left_out: Vec<String>,
    /// For programs that speak NBD.
    uri: String,
    /// Options of QEMU 7.0 or later.
    qemu: String,
    /// A `<disk>` element of libvirt 8.2 or later.
    libvirt: String,
    /// The same as arguments of QEMU in libvirt's XML.
    libvirt_arguments: String,
    /// A line of `/etc/pve/qemu-server/ID.conf`.
    proxmox: String,
}

/// Does it.
pub(super) async fn run(
    shell: &mut Shell<'_>,
    options: &AttachOptions,
    disk: &str,
    name: &str,
) -> Result<(), Failure> {
    check_name(name)?;
    let hosts: Vec<HostSummary> = shell.client.get("/api/v1/hosts").await?;
    let told: Vec<(&str, &str, &[String])> =
        hosts.iter().map(|host| (host.name.as_str(), host.peers.as_str(), host.nbd.as_slice())).collect();
    let (port, addresses, left_out) = doors(&told)?;
    let folder = match &options.credentials {
        Some(folder) => folder.clone(),
        None => credentials(shell)?,
    };
    let lines = addresses.iter().map(|ip| format!("{ip} {name}")).collect();
    let export = Export::of(options, disk);
    let all = by_name(&export, name, port, &folder.display().to_string(), (lines, left_out));
    shell.show(&all, |all| match options.format {
        None => text(all),
        Some(Format::Uri) => all.uri.clone(),
        Some(Format::Qemu) => all.qemu.clone(),
        Some(Format::Libvirt) => all.libvirt.clone(),
        Some(Format::LibvirtArguments) => all.libvirt_arguments.clone(),
        Some(Format::Proxmox) => all.proxmox.clone(),
        Some(Format::Hosts) => all.hosts.join("\n"),
    })
}

fn text(all: &ByName) -> String {
    let left_out: String = all.left_out.iter().map(|line| format!("not by this name: {line}\n")).collect();
    format!(
        "disk {} at whichever host of {} answers: {}\n{}\n{left_out}\nin /etc/hosts where the guest runs, or the same in DNS:\n{}\n\n\
         QEMU 7.0 or later:\n{}\n\nlibvirt 8.2 or later, with nbd_tls_x509_cert_dir in qemu.conf (its guest sees errors when its host is lost):\n{}\n\n\
         libvirt, for a guest that goes on, instead of the element above:\n{}\n\n\
         Proxmox, in /etc/pve/qemu-server/ID.conf:\n{}",
        all.disk,
        all.name,
        all.uri,
        all.waiting,
        all.hosts.join("\n"),
        all.qemu,
        all.libvirt,
        all.libvirt_arguments,
        all.proxmox
    )
}

/// A name as resolvers take it, and no address: that would be one host.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match !name.is_empty() && name.bytes().all(is_fine) && name.parse::<IpAddr>().is_err() {
        true => Ok(()),
        false => Err(Failure::usage(format!("invalid host name `{}`", name.escape_default()))
            .hint("use letters, digits, `-`, `.` and `_`, and no IP address")),
    }
}

/// Where hosts (name, peers, NBD) are reached from elsewhere: the port that most have, the addresses, and who is left out.
fn doors(hosts: &[(&str, &str, &[String])]) -> Result<(u16, Vec<IpAddr>, Vec<String>), Failure> {
    let of = |(_, peers, nbd): &(&str, &str, &[String])| -> Option<SocketAddr> {
        let known = peers.split_whitespace().next().and_then(|text| text.parse::<SocketAddr>().ok());
        nbd.iter().find_map(|text| {
            let address: SocketAddr = text.parse().ok()?;
            match address.ip().is_unspecified() {
                true => known.map(|known| SocketAddr::new(known.ip(), address.port())),
                false => Some(address),
            }
            .filter(|address| !address.ip().is_loopback())
        })
    };
    let found: Vec<(&str, Option<SocketAddr>)> = hosts.iter().map(|host| (host.0, of(host))).collect();
    let mut ports: BTreeMap<u16, usize> = BTreeMap::new();
    for address in found.iter().filter_map(|(_, address)| *address) {
        *ports.entry(address.port()).or_default() += 1;
    }
    let Some((port, _)) = ports.into_iter().max_by_key(|(_, count)| *count) else {
        return Err(Failure::refused("no host serves NBD at an address that other machines reach").hint(
            "add an address such as \"10.0.0.1:10809\" to [listen] nbd of every host's configuration",
        ));
    };
    let (mut addresses, mut left_out) = (Vec::new(), Vec::new());
    for (name, address) in found {
        match address {
            Some(address) if address.port() == port => addresses.push(address.ip()),
            Some(address) => left_out.push(format!("host {name} has port {}", address.port())),
            None => left_out.push(format!("host {name} serves NBD at no address that other machines reach")),
        }
    }
    Ok((port, addresses, left_out))
}

/// The folder with the certificate that is shown: of the host whose socket is asked, or of the person who asks.
fn credentials(shell: &Shell<'_>) -> Result<PathBuf, Failure> {
    let of_host = match &shell.client {
        Client::Unix(socket) => socket.parent().map(|folder| folder.join("identity")),
        _ => None,
    };
    let of_person = || shell.identity.clone().or_else(identity::usual_folder);
    let folder = of_host.filter(|folder| folder.exists()).or_else(of_person);
    folder
        .ok_or_else(|| Failure::usage("the folder of the certificate is unknown: name it with --credentials"))
}

fn by_name(
    export: &Export,
    name: &str,
    port: u16,
    folder: &str,
    (hosts, left_out): (Vec<String>, Vec<String>),
) -> ByName {
    let (disk, wanted) = (export.disk.as_str(), export.name.as_str());
    let (node, shared) = (node_name(disk), trust::SHARED_NAME);
    let qemu = format!(
        "-object tls-creds-x509,id={node}-tls,endpoint=client,dir={} \
         -blockdev driver=nbd,node-name={node},server.type=inet,server.host={name},server.port={port},server.keep-alive=on,tls-creds={node}-tls,\
         tls-hostname={shared},export={wanted},cache.direct=on,discard=unmap,reconnect-delay={RECONNECT_SECONDS},\
         open-timeout={OPEN_SECONDS} \
         -device virtio-blk-pci,drive={node},serial={}",
        folder.replace(',', ",,"),
        serial(disk)
    );
    let libvirt = format!(
        "<disk type='network' device='disk'>\n  \
         <driver name='qemu' type='raw' cache='none' discard='unmap'/>\n  \
         <source protocol='nbd' name='{wanted}' tls='yes' tlsHostname='{shared}'>\n    \
         <host name='{}' port='{port}'/>\n  </source>\n  \
         <serial>{}</serial>\n  <target dev='vda' bus='virtio'/>\n</disk>",
        escaped(name),
        serial(disk)
    );
    ByName {
        disk: disk.to_owned(),
        name: name.to_owned(),
        error_after_seconds: export.errors.map(|after| after.as_secs()),
        waiting: export.text(),
        hosts,
        left_out,
        uri: format!("nbds://{name}:{port}/{wanted}?tls-certificates={folder}"),
        proxmox: format!("args: {qemu}"),
        libvirt_arguments: libvirt_arguments(&qemu, disk),
        qemu,
        libvirt,
    }
}

#[cfg(test)]
fn plain() -> Export {
    Export { disk: "web".to_owned(), name: "web".to_owned(), errors: None }
}

/// An element of libvirt, and the same as arguments, for the test that has libvirt read them.
#[cfg(test)]
pub(super) fn example() -> (String, String) {
    let all = by_name(&plain(), "storage", 10809, "/var/lib/drystone/identity", (Vec::new(), Vec::new()));
    (all.libvirt, all.libvirt_arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_that_others_reach_by_the_same_port_is_named() {
        let nbd = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<String>>();
        let (a, b) = (nbd(&["unix:/d/nbd.sock", "10.0.0.1:10809"]), nbd(&["0.0.0.0:10809"]));
        let (c, d) = (nbd(&["10.0.0.3:1"]), nbd(&["127.0.0.1:10809"]));
        let peers = "10.0.0.2:7400 10.0.0.2:7401";
        let (port, addresses, left_out) =
            doors(&[("a", peers, &a), ("b", peers, &b), ("c", peers, &c), ("d", peers, &d)])
                .expect("two of them");
        assert_eq!(port, 10809);
        assert_eq!(addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>(), ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(
            left_out,
            ["host c has port 1", "host d serves NBD at no address that other machines reach"]
        );
        let failure = doors(&[("d", peers, &d)]).expect_err("nobody reaches it");
        assert!(failure.error.contains("no host serves NBD"), "{failure}");
    }

    #[test]
    fn texts_are_ready_to_paste() {
        let lines = vec!["10.0.0.1 storage".to_owned()];
        let all = by_name(&plain(), "storage", 10809, "/var/lib/drystone/identity", (lines, Vec::new()));
        for part in [
            "tls-creds-x509,id=disk-web-tls,endpoint=client,dir=/var/lib/drystone/identity ",
            "server.host=storage,server.port=10809,server.keep-alive=on,tls-creds=disk-web-tls,tls-hostname=host.drystone.internal,export=web",
            "reconnect-delay=300,open-timeout=60 -device",
        ] {
            assert!(all.qemu.contains(part), "{}", all.qemu);
        }
        assert!(all.libvirt.contains("tls='yes' tlsHostname='host.drystone.internal'"), "{}", all.libvirt);
        assert!(check_name("storage.example").is_ok());
        assert!(check_name("10.0.0.1").is_err() && check_name("a,b").is_err());
    }
}
