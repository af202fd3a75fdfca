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
use lab::nbd::{Address, Place};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

/// Requests that qemu-img keeps under way at once.
pub const PARALLEL: &str = "16";
/// How long and how often a server is waited for.
const SERVER_POLL: Duration = Duration::from_millis(20);
const SERVER_POLLS: u32 = 500;
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
        let from_elsewhere = is_from_elsewhere(shell);
        let server = reachable(shell, addresses)?;
        let server = unix(server).or_else(|| plain(server)).or_else(|| network(server));
        let server = server
            .ok_or_else(|| Failure::failed("read the address of the export", "it is of no known kind"))?;
        let mut file = json!({ "driver": "nbd", "server": server, "export": export });
        let mut object = None;
        if from_elsewhere {
            let folder = folder_of(shell)?.display().to_string().replace(',', ",,");
            object = Some(format!("tls-creds-x509,id={TLS},endpoint=client,dir={folder}"));
            file["tls-creds"] = json!(TLS);
            file["tls-hostname"] = json!(trust::SHARED_NAME);
        }
        Ok(Node { object, json: json!({ "driver": "raw", "file": file }) })
    }
}

fn is_from_elsewhere(shell: &Shell<'_>) -> bool {
    matches!(shell.client, Client::Tls { .. })
}

/// The folder of the certificate that the API is shown.
fn folder_of(shell: &Shell<'_>) -> Result<PathBuf, Failure> {
    let folder = shell.identity.clone().or_else(identity::usual_folder);
    folder.ok_or_else(|| Failure::usage("the folder of the certificate is unknown: name it with --identity"))
}

/// The address of an export at which whoever asks reaches it.
fn reachable<'a>(shell: &Shell<'_>, addresses: &'a [String]) -> Result<&'a str, Failure> {
    let with =
        |scheme: &str| addresses.iter().find(|address| address.starts_with(scheme)).map(String::as_str);
    match is_from_elsewhere(shell) {
        true => with("nbds://").ok_or_else(|| {
            Failure::refused("the host serves NBD at no address that other machines reach").hint(
                "run this on the host itself, or add an address such as \"10.0.0.1:10809\" to [listen] nbd there",
            )
        }),
        false => with("nbd+unix:").or_else(|| with("nbd://")).ok_or_else(|| {
            Failure::refused("the host has no NBD socket that needs no certificate")
                .hint("add \"unix:nbd.sock\" to [listen] nbd of its configuration")
        }),
    }
}

/// An export for a client of our own, reached as [`Node::of_export`] says.
///
/// # Errors
/// When the host serves NBD at no such address.
pub fn address_of_export(shell: &Shell<'_>, addresses: &[String], export: &str) -> Result<Address, Failure> {
    let text = reachable(shell, addresses)?;
    let mut address = Address::parse(text).map_err(|error| Failure::because("read the address", &error))?;
    export.clone_into(&mut address.export);
    if let Place::Tcp(host, _) = &mut address.place
        && let Ok(ip) = host.parse::<IpAddr>()
        && ip.is_unspecified()
    {
        *host = if ip.is_ipv4() { "127.0.0.1".to_owned() } else { "::1".to_owned() };
    }
    if is_from_elsewhere(shell) {
        address.tls = Some(Some(folder_of(shell)?));
        address.tls_hostname = Some(trust::SHARED_NAME.to_owned());
    }
    Ok(address)
}

/// Makes an empty qcow2 file on top of an image.
///
/// # Errors
/// What `qemu-img` says.
pub async fn create_overlay(file: &Path, backing: &Path, size: u64) -> Result<(), Failure> {
    let image = Image::open(backing, None, true)?;
    let file = std::path::absolute(file).map_err(|error| Failure::failed("write the image", error))?;
    // Beside it, so that both can be moved together; a name after a slash is never taken for a protocol.
    let is_beside = file.parent() == image.path.parent();
    let name = image.path.file_name().map(|name| name.to_string_lossy().into_owned()).filter(|_| is_beside);
    let named = name.map_or_else(|| image.path.display().to_string(), |name| format!("./{name}"));
    let output = Command::new("qemu-img")
        .args(["create", "-q", "-f", "qcow2", "-F", image.format.driver(), "-b", &named])
        .arg(&file)
        .arg(size.to_string())
        .output()
        .await
        .map_err(missing)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(told(&format!("make {}", file.display()), &output.stderr)),
    }
}

/// `qemu-nbd` that serves a qcow2 file for one client.
pub struct ImageServer {
    child: Child,
    folder: PathBuf,
}

impl ImageServer {
    /// Starts it.
    ///
    /// # Errors
    /// When it does not serve.
    pub async fn start(file: &Path) -> Result<ImageServer, Failure> {
        let file = std::path::absolute(file).map_err(|error| Failure::failed("open the image", error))?;
        let folder = std::env::temp_dir().join(format!("drystone-export-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| Failure::failed(format!("make {}", folder.display()), error))?;
        let socket = folder.join("nbd.sock");
        let child = Command::new("qemu-nbd")
            .args(["--format=qcow2", "--cache=writeback", "--discard=unmap", "--shared=1"])
            .arg(format!("--socket={}", socket.display()))
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(missing)?;
        let mut server = ImageServer { child, folder };
        let mut is_ended = false;
        for _ in 0..SERVER_POLLS {
            if socket.exists() {
                return Ok(server);
            }
            let ended = server.child.try_wait().map_err(|error| Failure::failed("run qemu-nbd", error))?;
            is_ended = ended.is_some();
            if is_ended {
                break;
            }
            tokio::time::sleep(SERVER_POLL).await;
        }
        match server.stop().await {
            Err(failure) if is_ended => Err(failure),
            _ => Err(Failure::failed("run qemu-nbd", "it does not serve")),
        }
    }

    /// Where it serves.
    ///
    /// # Errors
    /// When the folder has a name that no address can have.
    pub fn address(&self) -> Result<Address, Failure> {
        let text = format!("nbd+unix:///?socket={}", self.folder.join("nbd.sock").display());
        Address::parse(&text).map_err(|error| Failure::because("read the address", &error))
    }

    /// Ends it, whatever it has written.
    ///
    /// # Errors
    /// What it says; also that it was killed.
    pub async fn stop(mut self) -> Result<(), Failure> {
        let _ = self.child.start_kill();
        self.end().await
    }

    /// Waits until it has written all: it ends when its client leaves.
    ///
    /// # Errors
    /// What it says.
    pub async fn end(mut self) -> Result<(), Failure> {
        let mut stderr = Vec::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            let _ = pipe.read_to_end(&mut stderr).await;
        }
        let status = self.child.wait().await.map_err(|error| Failure::failed("run qemu-nbd", error));
        let _ = std::fs::remove_dir_all(&self.folder);
        match status?.success() {
            true => Ok(()),
            false => Err(told("write the image", &stderr)),
        }
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
    let bar = bar(what, PERCENT);
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
            bar.set_position((percent * PERCENT as f64 / 100.0) as u64);
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

/// A hundred percent in hundredths.
const PERCENT: u64 = 10_000;

/// A bar up to a length; hidden when nobody looks.
pub fn bar(what: &str, length: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent:>3} %  {elapsed}, {eta} left")
        .expect("the template is well formed");
    ProgressBar::new(length).with_message(what.to_owned()).with_style(style)
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
