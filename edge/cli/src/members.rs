//! Who belongs to a cluster: making one, joining, tokens, certificates.
//!
//! `cluster init`, `host join` and `login` write an identity on this machine, the first two by the program itself; the rest asks a host.

use super::sorting::PersonSort;
use crate::passwords::new_password;
use crate::program::Program;
use crate::shell::{Shell, seconds};
use crate::text;
use api::client::escaped;
use api::identity;
use api::types::{
    AddPerson, AuthorityView, CertificatesView, ChangePerson, EtcdChoice, FoundCluster, FoundedView,
    HostCertificateView, MakeToken, PersonView, TokenPerson, TokenView,
};
use clap::{Args, Subcommand};
use failure::Failure;
use std::path::{Path, PathBuf};
use trust::Store;

/// The file beside a person's certificate that says where hosts answer.
const API_FILE: &str = "api";

/// Options of `cluster init`.
#[derive(Debug, Args)]
pub struct InitOptions {
    /// Configuration file of this host, the first one of the cluster.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Name of the cluster [default: the last part of etcd's prefix].
    #[arg(long)]
    name: Option<String>,
    /// Kind of etcd: one that runs already, or the cluster's own, which Drystone runs on the first three hosts.
    #[arg(long, value_enum, default_value = "existing")]
    etcd: EtcdChoice,
    /// Check everything and say what would be done.
    #[arg(long)]
    dry_run: bool,
}

/// Options of `host join`.
#[derive(Debug, Clone, Args)]
pub struct JoinOptions {
    /// Configuration file of this host.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Token: one line that `drystone host token` printed on a host of the cluster.
    token: String,
    /// Replace an existing certificate, with a token that was made with `--again`.
    #[arg(long)]
    replace: bool,
}

/// Options of `login`.
#[derive(Debug, Args)]
pub struct LoginOptions {
    /// Token: one line that `drystone person token` printed.
    token: String,
    /// Replace an existing certificate.
    #[arg(long)]
    replace: bool,
}

/// What can be done about people.
#[derive(Debug, Subcommand)]
pub enum PersonCommand {
    /// Print a token with which a person gets a certificate: drystone login TOKEN
    Token {
        /// Name of the person.
        name: String,
        /// Role of the person: viewer, operator, admin.
        #[arg(long, default_value = "viewer")]
        role: String,
        /// Lifetime of the token.
        #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = seconds)]
        lifetime: u64,
    },
    /// Add a person who logs in to the console with a password. The password is asked for twice.
    Add {
        /// Name of the person.
        name: String,
        /// Role of the person: viewer, operator, admin.
        #[arg(long, default_value = "viewer")]
        role: String,
        /// Read the password from the standard input: one line.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Change the password of a person. Sessions of the person end on all hosts.
    Password {
        /// Name of the person.
        name: String,
        /// Read the password from the standard input: one line.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Change the role of a person who has a password. Sessions of the person end on all hosts.
    Set {
        /// Name of the person.
        name: String,
        /// Role of the person: viewer, operator, admin.
        #[arg(long)]
        role: String,
    },
    /// List the people who have a certificate or a password, and until when certificates are valid.
    List {
        /// Column to sort by.
        #[arg(long, value_enum, default_value = "name")]
        sort: PersonSort,
        /// Reverse the order.
        #[arg(long)]
        reverse: bool,
    },
    /// Remove a person: certificates that the person has got so far are revoked, a password is deleted, and sessions end.
    Remove {
        /// Name of the person.
        name: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

/// What can be done about the cluster's certificates.
#[derive(Debug, Subcommand)]
pub enum CertificateCommand {
    /// List authorities, certificates of hosts, and revoked ones.
    List,
    /// Renew the certificates of all hosts now. Connections stay.
    Renew,
    /// Add an authority, which signs from now on. The host that is asked keeps its key.
    AddAuthority,
    /// Drop an authority: certificates of people that it signed are revoked. Those people are named first.
    DropAuthority {
        /// SHA-256 of the authority's certificate, as `list` shows it.
        fingerprint: String,
        /// Fingerprint once more: confirms that people are locked out.
        #[arg(long, value_name = "FINGERPRINT")]
        confirm: Option<String>,
        /// Do not ask for confirmation where nobody is locked out.
        #[arg(long)]
        yes: bool,
    },
}

/// `cluster init`.
///
/// # Errors
/// When there is a cluster already, or something cannot be written.
pub fn init(shell: &mut Shell<'_>, options: InitOptions, program: &dyn Program) -> Result<(), Failure> {
    let InitOptions { config, name, etcd, dry_run } = options;
    let config = config.display().to_string();
    let asked = FoundCluster { config, name, etcd, dry_run };
    let founded = program.init(&asked)?;
    shell.show(&founded, |founded| founded_text(founded, &asked.config))
}

fn founded_text(founded: &FoundedView, file: &str) -> String {
    let FoundedView { id, name, directory, host, disks, .. } = founded;
    let kept = match disks {
        0 => String::new(),
        1 => "; its disk is the cluster's first".to_owned(),
        _ => format!("; its {disks} disks are the cluster's first"),
    };
    if !founded.is_made {
        return format!(
            "nothing was changed. `cluster init` would make the cluster `{name}` in {directory}, with host `{host}` as its first{kept}"
        );
    }
    let next = match founded.is_serving {
        true => "it goes on serving".to_owned(),
        false => format!("start it: drystone host --config {file}"),
    };
    format!(
        "made the cluster `{name}` ({id}) in {directory}; this host, `{host}`, keeps its authority{kept}\n{next}\nthen let others join: drystone host token"
    )
}

/// `host join`.
///
/// # Errors
/// When the token is not good, nobody answers, or this host belongs to a cluster already.
pub fn join(shell: &mut Shell<'_>, options: &JoinOptions, program: &dyn Program) -> Result<(), Failure> {
    let joined = program.join(&options.config, &options.token, options.replace)?;
    shell.show(&joined, |joined| {
        format!(
            "{} has its certificate\nstart it: drystone host --config {}",
            joined.identity,
            options.config.display()
        )
    })
}

/// `login`.
///
/// # Errors
/// When the token is not good, or nobody answers.
pub async fn login(
    shell: &mut Shell<'_>,
    options: &LoginOptions,
    folder: Option<PathBuf>,
) -> Result<(), Failure> {
    let folder = folder.or_else(identity::usual_folder);
    let folder = folder.ok_or_else(|| {
        Failure::usage("the folder of the certificate is unknown: name it with --identity DIR")
    })?;
    let store = Store::new(&folder);
    if store.has_identity() && !options.replace {
        return Err(Failure::refused(format!("{} has a certificate already", folder.display()))
            .hint("add --replace, or name another folder with --identity DIR"));
    }
    let (identity, token, _) = identity::redeem(&options.token, None, &store).await?;
    let addresses: Vec<String> =
        token.endpoints.iter().map(|endpoint| format!("https://{endpoint}\n")).collect();
    let file = folder.join(API_FILE);
    std::fs::write(&file, addresses.concat())
        .map_err(|error| Failure::failed(format!("write {}", file.display()), error))?;
    let told =
        serde_json::json!({ "identity": identity.to_string(), "folder": folder.display().to_string() });
    shell.show(&told, |_| format!("you are {identity}; your certificate is in {}", folder.display()))
}

/// Where hosts answer somebody who has logged in.
pub fn known_api(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(API_FILE)).ok()?;
    text.lines().next().map(str::to_owned)
}

/// `host token` and `person token`.
///
/// # Errors
/// What the host says.
pub async fn token(
    shell: &mut Shell<'_>,
    person: Option<TokenPerson>,
    again: Option<String>,
    lifetime: u64,
) -> Result<(), Failure> {
    let command = match person {
        None => "drystone host join --config FILE",
        Some(_) => "drystone login",
    };
    let request = MakeToken { person, again, seconds: Some(lifetime) };
    let made: TokenView = shell.client.post("/api/v1/tokens", &request).await?;
    shell.show(&made, |made| {
        // The token alone on the standard output, so that it can be passed on.
        eprintln!("for {}, once, until {}: {command} TOKEN", made.purpose, made.expires);
        made.token.clone()
    })
}

/// `person`.
///
/// # Errors
/// What the host says.
pub async fn person(shell: &mut Shell<'_>, command: PersonCommand) -> Result<(), Failure> {
    match command {
        PersonCommand::Token { name, role, lifetime } => {
            token(shell, Some(TokenPerson { name, role }), None, lifetime).await
        }
        PersonCommand::List { sort, reverse } => {
            let mut people: Vec<PersonView> = shell.client.get("/api/v1/people").await?;
            sort.apply(&mut people, reverse);
            shell.show(&people, |people| person_table(people))
        }
        PersonCommand::Add { name, role, password_stdin } => {
            let password = new_password(shell, password_stdin, &name).await?;
            let request = AddPerson { name, role, password };
            let added: PersonView = shell.client.post("/api/v1/people", &request).await?;
            shell.show(&added, |added| format!("{} may log in to the console as {}", added.name, added.role))
        }
        PersonCommand::Password { name, password_stdin } => {
            let password = new_password(shell, password_stdin, &name).await?;
            change_person(shell, &name, &ChangePerson { password: Some(password), role: None }).await
        }
        PersonCommand::Set { name, role } => {
            change_person(shell, &name, &ChangePerson { role: Some(role), password: None }).await
        }
        PersonCommand::Remove { name, yes } => {
            shell.consent(yes, &format!("the certificates and the password of {name} will count no more, and sessions of {name} end"))?;
            let () = shell.client.delete(&format!("/api/v1/people/{}", escaped(&name))).await?;
            shell.show(&serde_json::json!({ "removed": name }), |_| {
                format!("certificates of {name} that were made up to now count no more, nor does a password")
            })
        }
    }
}

/// `cluster certificates`.
///
/// # Errors
/// What the host says.
pub async fn certificates(shell: &mut Shell<'_>, command: CertificateCommand) -> Result<(), Failure> {
    match command {
        CertificateCommand::List => {
            let all: CertificatesView = shell.client.get("/api/v1/certificates").await?;
            shell.show(&all, certificates_text)
        }
        CertificateCommand::Renew => {
            let () = shell.client.post("/api/v1/certificates/renew", &()).await?;
            shell.show(&serde_json::json!({ "renewing": true }), |_| {
                "all hosts take another certificate now; see `drystone cluster certificates list`".to_owned()
            })
        }
        CertificateCommand::AddAuthority => {
            let fingerprint: String = shell.client.post("/api/v1/authorities", &()).await?;
            shell.show(&serde_json::json!({ "fingerprint": fingerprint }), |_| {
                format!(
                    "authority {fingerprint} signs from now on; hosts take a certificate of it by themselves\npeople go on with the certificates that they have until the former authority is dropped; those of `drystone person list` log in again \
                     before that: `drystone person token NAME`\nthen: drystone cluster certificates drop-authority FINGERPRINT"
                )
            })
        }
        CertificateCommand::DropAuthority { fingerprint, confirm, yes } => {
            let is_given = yes || confirm.is_some();
            shell
                .consent(is_given, "certificates of people that this authority signed will count no more")?;
            let confirm =
                confirm.map_or_else(String::new, |confirm| format!("?confirm={}", escaped(&confirm)));
            let () = shell.client.delete(&format!("/api/v1/authorities/{fingerprint}{confirm}")).await?;
            shell.show(&serde_json::json!({ "dropped": fingerprint }), |_| {
                format!("authority {fingerprint} is believed no more")
            })
        }
    }
}

async fn change_person(shell: &mut Shell<'_>, name: &str, change: &ChangePerson) -> Result<(), Failure> {
    let changed: PersonView =
        shell.client.patch(&format!("/api/v1/people/{}", escaped(name)), change).await?;
    shell.show(&changed, |changed| {
        let PersonView { name, role, .. } = changed;
        match change.password.is_some() {
            true => format!("{name} has another password; sessions of before have ended"),
            false => format!("{name} is {role} now; sessions of before have ended"),
        }
    })
}

fn person_table(people: &[PersonView]) -> String {
    if people.is_empty() {
        return "nobody has a certificate or a password yet, as far as this cluster remembers".to_owned();
    }
    let row = |one: &PersonView| {
        let authorities: Vec<String> =
            one.authorities.iter().map(|print| print.chars().take(16).collect()).collect();
        vec![
            one.name.clone(),
            one.role.to_string(),
            one.proof.to_string(),
            one.issued.clone(),
            one.expires.clone().unwrap_or_else(|| "-".to_owned()),
            if authorities.is_empty() { "-".to_owned() } else { authorities.join(" or ") },
        ]
    };
    let headings = ["person", "role", "with", "since", "valid to", "authority"];
    text::table(&headings, &[], people.iter().map(row).collect())
}

fn certificates_text(all: &CertificatesView) -> String {
    let authority = |one: &AuthorityView| {
        let state = if one.signs { "signs" } else { "believed" };
        let hosts = if one.hosts.is_empty() { "-".to_owned() } else { one.hosts.join(" ") };
        vec![one.fingerprint.clone(), state.to_owned(), one.keeper.clone(), one.expires.clone(), hosts]
    };
    let authorities = text::table(
        &["authority", "state", "keeper", "valid to", "hosts"],
        &[],
        all.authorities.iter().map(authority).collect(),
    );
    let host = |one: &HostCertificateView| {
        let authority = one.authority.chars().take(16).collect();
        vec![one.host.clone(), one.issued.clone(), one.expires.clone(), authority]
    };
    let hosts =
        text::table(&["host", "issued", "valid to", "authority"], &[], all.hosts.iter().map(host).collect());
    let revoked = match all.revoked.is_empty() {
        true => String::new(),
        false => format!("\n\ntaken out: {}", all.revoked.join(", ")),
    };
    format!("{authorities}\n\n{hosts}{revoked}")
}
