//! `qemu-img`: the words for it, its progress and its complaints.
//!
//! Files and addresses are told to it as JSON, each with its driver: nothing in a name, and nothing in a file, decides what it opens.
//! Must never let it find a format out.

use super::image::Image;
use crate::shell::Shell;
use api::client::Client;
use api::identity;
use failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// Requests that qemu-img keeps under way at once.
pub const PARALLEL: &str = "16";
/// The name of the object that has the certificate.
const TLS: &str = "tls";

/// What `qemu-img` is told to open.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Options of an object that it needs first.
    pub object: Option<String>,
    /// The node.
    json: Value,
}

impl Node {
    /// As an argument.
    pub fn argument(&self) -> String {
        format!("json:{}", self.json)
    }

    /// An image file, and nothing that it names unless that was asked for.
    pub fn of_image(image: &Image) -> Node {
        let driver = if image.is_device { "host_device" } else { "file" };
        let file = json!({ "driver": driver, "filename": image.path, "read-only": true });
        let mut json = json!({ "driver": image.format.driver(), "file": file, "read-only": true });
        if image.format == super::image::Format::Qcow2 && !image.follows {
            json["backing"] = Value::Null;
        }
        Node { object: None, json }
    }

    /// So many bytes of zeroes.
    pub fn of_zeroes(bytes: u64) -> Node {
        let json =
            json!({ "driver": "raw", "file": { "driver": "null-co", "size": bytes, "read-zeroes": true } });
        Node { object: None, json }
    }

    /// An export, by the address at which whoever asks reaches it: on the host itself its socket, from elsewhere the network with
    /// the certificate that the API is shown.
    ///
    /// # Errors
    /// When the host serves NBD at no such address.
    pub fn of_export(shell: &Shell<'_>, addresses: &[String], export: &str) -> Result<Node, Failure> {
        let from_elsewhere = matches!(shell.client, Client::Tls { .. });
        let server = match from_elsewhere {
            true => addresses.iter().find_map(|address| network(address)),
            false => {
                let unix = addresses.iter().find_map(|address| unix(address));
                unix.or_else(|| addresses.iter().find_map(|address| plain(address)))
            }
        };
        let Some(server) = server else {
            return Err(match from_elsewhere {
                true => Failure::refused("the host serves NBD at no address that other machines reach")
                    .hint("run this on the host itself, or add an address such as \"10.0.0.1:10809\" to [listen] nbd there"),
                false => Failure::refused("the host has no NBD socket that needs no certificate")
                    .hint("add \"unix:nbd.sock\" to [listen] nbd of its configuration"),
            });
        };
        let mut file = json!({ "driver": "nbd", "server": server, "export": export });
        let mut object = None;
        if from_elsewhere {
            let folder = shell.identity.clone().or_else(identity::usual_folder);
            let folder: PathBuf = folder.ok_or_else(|| {
                Failure::usage("the folder of the certificate is unknown: name it with --identity")
            })?;
            let folder = folder.display().to_string().replace(',', ",,");
            object = Some(format!("tls-creds-x509,id={TLS},endpoint=client,dir={folder}"));
            file["tls-creds"] = json!(TLS);
            file["tls-hostname"] = json!(trust::SHARED_NAME);
        }
        Ok(Node { object, json: json!({ "driver": "raw", "file": file }) })
    }
}

fn inet(address: &str) -> Option<(SocketAddr, Value)> {
    let address: SocketAddr = address.split('/').next()?.parse().ok()?;
    let server =
        json!({ "type": "inet", "host": address.ip().to_string(), "port": address.port().to_string() });
    Some((address, server))
}

/// A unix socket of this machine.
fn unix(address: &str) -> Option<Value> {
    let (_, path) = address.strip_prefix("nbd+unix:")?.split_once("?socket=")?;
    Some(json!({ "type": "unix", "path": path }))
}

/// A port that needs no certificate.
fn plain(address: &str) -> Option<Value> {
    let (found, mut server) = inet(address.strip_prefix("nbd://")?)?;
    if found.ip().is_unspecified() {
        server["host"] = json!(if found.is_ipv4() { "127.0.0.1" } else { "::1" });
    }
    Some(server)
}

/// A port where certificates are shown.
fn network(address: &str) -> Option<Value> {
    inet(address.strip_prefix("nbds://")?).map(|(_, server)| server)
}

/// The size of an image.
///
/// # Errors
/// What `qemu-img` says.
pub async fn image_size(image: &Image) -> Result<u64, Failure> {
    let what = format!("read {}", image.path.display());
    let node = Node::of_image(image);
    let output = Command::new("qemu-img")
        .args(["info", "--output=json"])
        .arg(node.argument())
        .output()
        .await
        .map_err(missing)?;
    if !output.status.success() {
        return Err(told(&what, &output.stderr));
    }
    let info: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::failed("read the answer of qemu-img info", error))?;
    info["virtual-size"]
        .as_u64()
        .ok_or_else(|| Failure::failed("read the answer of qemu-img info", "it has no size"))
}

fn missing(error: std::io::Error) -> Failure {
    Failure::failed("run qemu-img", error).hint("install it: apt-get install qemu-utils")
}

fn told(what: &str, stderr: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim().strip_prefix("qemu-img: ").unwrap_or(text.trim()).to_owned();
    Failure::failed(what, text)
}

/// Runs `qemu-img convert`, shows its progress, and gives the seconds that it took.
///
/// # Errors
/// What it says.
pub async fn convert(what: &str, arguments: &[String]) -> Result<f64, Failure> {
    let start = Instant::now();
    let mut child = Command::new("qemu-img")
        .arg("convert")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(missing)?;
    let bar = bar(what);
    let mut stdout = child.stdout.take().expect("it is piped");
    let mut seen = String::new();
    let mut bytes = [0; 256];
    loop {
        let count = stdout.read(&mut bytes).await.map_err(|error| Failure::failed(what, error))?;
        if count == 0 {
            break;
        }
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        if let Some(percent) = last_percent(&seen) {
            bar.set_position((percent * 100.0) as u64);
        }
        let keep = seen.len().saturating_sub(64);
        seen = seen.chars().skip(keep).collect();
    }
    let output = child.wait_with_output().await.map_err(|error| Failure::failed(what, error))?;
    bar.finish_and_clear();
    match output.status.success() {
        true => Ok(start.elapsed().as_secs_f64()),
        false => Err(told(what, &output.stderr)),
    }
}

/// A bar of a hundred percent in hundredths; hidden when nobody looks.
fn bar(what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent:>3} %  {elapsed}, {eta} left")
        .expect("the template is well formed");
    ProgressBar::new(10_000).with_message(what.to_owned()).with_style(style)
}

/// The newest figure of `    (12.34/100%)\r`.
fn last_percent(text: &str) -> Option<f64> {
    let end = text.rfind("/100%)")?;
    let start = text[..end].rfind('(')?;
    text[start + 1..end].trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_of_qemu_img_is_read() {
        assert_eq!(last_percent("    (0.00/100%)\r    (12.34/100%)\r   (13"), Some(12.34));
        assert_eq!(last_percent("    (0.0"), None);
    }

    #[test]
    fn addresses_of_exports_become_servers() {
        assert_eq!(unix("nbd+unix:///web?socket=/d/n"), Some(json!({ "type": "unix", "path": "/d/n" })));
        let at = |host: &str| Some(json!({ "type": "inet", "host": host, "port": "10809" }));
        assert_eq!(plain("nbd://0.0.0.0:10809/web"), at("127.0.0.1"));
        assert_eq!(network("nbds://10.0.0.1:10809/web"), at("10.0.0.1"));
        assert_eq!(network("nbds://[fd00::1]:10809/web"), at("fd00::1"));
        assert_eq!(network("nbd://10.0.0.1:10809/web"), None);
    }
}
