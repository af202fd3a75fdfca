//! A member of etcd that Drystone runs: what it is started with, and the process.
//!
//! A folder says what is to run: [`Folder::write`] sets it, and who holds the folder's lock ([`Lock::take`]) starts, restarts and
//! stops the process accordingly. Exactly one process of Drystone supervises a folder. The process ends with its supervisor. Must never delete a
//! member's data but those of a member that was taken out.

mod supervisor;

pub use supervisor::{Lock, Supervisor};

use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The program, found by `PATH`. Debian: etcd-server.
pub const PROGRAM: &str = "etcd";
/// Bytes that the member's database may take: what etcd recommends at most is four times that.
const QUOTA_BYTES: u64 = 2 << 30;

/// What a member is started with. All connections are encrypted, and take only certificates that have `allowed` among their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Its name: the id of its host.
    pub name: String,
    /// What the cluster's members have in common, so that those of another one are refused.
    pub token: String,
    /// Where clients connect.
    pub clients: SocketAddr,
    /// Where other members connect.
    pub peers: SocketAddr,
    /// The members at its first start, itself among them: names, and URLs for other members.
    pub initial: Vec<(String, String)>,
    /// Whether it joins members that run already.
    pub joins: bool,
    /// Its certificate and its key, PEM. etcd reads them anew for each connection.
    pub own: (PathBuf, PathBuf),
    /// A name that certificates of those must have who connect.
    pub allowed: String,
    /// The id that the list of members gives it; nothing of the first member before it has answered. Data of a member with another id
    /// are put aside at a start: that one was taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u64>,
}

/// What a folder says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Wish {
    /// A member is to run.
    Run(Box<Spec>),
    /// A member ran here and was taken out: its data are put aside.
    Left,
}

/// The URL for an address of a member.
pub fn url_of(address: SocketAddr) -> String {
    format!("https://{address}")
}

/// Where a host keeps what it knows of etcd, and the data of its own member.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at a path; nothing is made yet.
    pub fn new(path: PathBuf) -> Folder {
        Folder { path }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn wish_file(&self) -> PathBuf {
        self.path.join("member.json")
    }

    fn endpoints_file(&self) -> PathBuf {
        self.path.join("endpoints.json")
    }

    fn authorities_file(&self) -> PathBuf {
        self.path.join("authorities.pem")
    }

    fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Where etcd writes what it has to say.
    pub fn log(&self) -> PathBuf {
        self.path.join("etcd.log")
    }

    /// Where members answered when that was last known: URLs. Empty where nothing is known.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn endpoints(&self) -> io::Result<Vec<String>> {
        Ok(read_json(&self.endpoints_file())?.unwrap_or_default())
    }

    /// Remembers where members answer.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_endpoints(&self, urls: &[String]) -> io::Result<()> {
        self.put(&self.endpoints_file(), &serde_json::to_vec(urls)?)
    }

    /// What the member of this host is started with; nothing where none is to run.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn spec(&self) -> io::Result<Option<Spec>> {
        Ok(match read_json(&self.wish_file())? {
            Some(Wish::Run(spec)) => Some(*spec),
            Some(Wish::Left) | None => None,
        })
    }

    /// Has a member run, which takes certificates that these authorities (PEM) signed.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn run(&self, spec: &Spec, authorities: &str) -> io::Result<()> {
        self.believe(authorities)?;
        self.put(&self.wish_file(), &serde_json::to_vec_pretty(&Wish::Run(Box::new(spec.clone())))?)
    }

    /// The authorities that the member believes; nothing before there is one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn believed(&self) -> io::Result<Option<String>> {
        found(std::fs::read_to_string(self.authorities_file()))
    }

    /// Has the member believe these authorities (PEM). It is started anew for that, where they are others.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn believe(&self, authorities: &str) -> io::Result<()> {
        self.put(&self.authorities_file(), authorities.as_bytes())
    }

    /// Has no member run any more, and its data put aside: it was taken out.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn leave(&self) -> io::Result<()> {
        self.put(&self.wish_file(), &serde_json::to_vec_pretty(&Wish::Left)?)
    }

    /// Whose the data are: the id of the member, once it is known.
    fn owner_file(&self) -> PathBuf {
        self.path.join("data.member")
    }

    /// Writes a file as a whole or not at all.
    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if found(std::fs::read(path))?.as_deref() == Some(bytes) {
            return Ok(());
        }
        self.make()?;
        let new = path.with_extension("new");
        let mut file = std::fs::File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        std::fs::File::open(&self.path)?.sync_all()
    }

    /// Makes the folder, for nobody else to look into.
    fn make(&self) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)
    }
}

fn found<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> io::Result<Option<T>> {
    let Some(bytes) = found(std::fs::read(path))? else { return Ok(None) };
    let read = serde_json::from_slice(&bytes);
    read.map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display())))
}

impl Spec {
    /// The words that the program is started with.
    fn words(&self, folder: &Folder) -> Vec<String> {
        let (clients, peers) = (url_of(self.clients), url_of(self.peers));
        let initial: Vec<String> = self.initial.iter().map(|(name, url)| format!("{name}={url}")).collect();
        let path = |path: &Path| path.display().to_string();
        let (certificate, key) = (path(&self.own.0), path(&self.own.1));
        let authorities = path(&folder.authorities_file());
        let values = [
            ("name", self.name.clone()),
            ("data-dir", path(&folder.data())),
            ("listen-client-urls", clients.clone()),
            ("advertise-client-urls", clients),
            ("listen-peer-urls", peers.clone()),
            ("initial-advertise-peer-urls", peers),
            ("initial-cluster", initial.join(",")),
            ("initial-cluster-state", if self.joins { "existing" } else { "new" }.to_owned()),
            ("initial-cluster-token", self.token.clone()),
            ("cert-file", certificate.clone()),
            ("key-file", key.clone()),
            ("trusted-ca-file", authorities.clone()),
            ("client-cert-auth", "true".to_owned()),
            ("client-cert-allowed-hostname", self.allowed.clone()),
            ("peer-cert-file", certificate),
            ("peer-key-file", key),
            ("peer-trusted-ca-file", authorities),
            ("peer-client-cert-auth", "true".to_owned()),
            ("peer-cert-allowed-hostname", self.allowed.clone()),
            // A host may connect from another address than the one that its certificate names.
            ("experimental-peer-skip-client-san-verification", "true".to_owned()),
            // A member that was cut off does not end the leader's term when it comes back.
            ("pre-vote", "true".to_owned()),
            ("heartbeat-interval", "50".to_owned()),
            ("election-timeout", "500".to_owned()),
            ("auto-compaction-mode", "periodic".to_owned()),
            ("auto-compaction-retention", "1h".to_owned()),
            ("quota-backend-bytes", QUOTA_BYTES.to_string()),
            ("enable-v2", "false".to_owned()),
            ("logger", "zap".to_owned()),
            ("log-outputs", path(&folder.log())),
        ];
        values.map(|(name, value)| format!("--{name}={value}")).into()
    }
}
