//! Members that Drystone runs: started one after the other, lost, replaced, and given other authorities.

use etcd::process::{Folder, Lock, Spec, Supervisor, url_of};
use etcd::testing::free_port;
use etcd::{Change, Committed, Error, Etcd, Options, Tls};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ALLOWED: &str = "host.test.internal";
const PATIENCE: Duration = Duration::from_secs(40);

/// An authority, and what it signs.
struct Signer(CertifiedIssuer<'static, KeyPair>);

impl Signer {
    fn new(name: &str) -> Signer {
        let mut asked = CertificateParams::default();
        asked.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        asked.distinguished_name.push(rcgen::DnType::CommonName, name);
        Signer(
            CertifiedIssuer::self_signed(asked, KeyPair::generate().expect("a key")).expect("an authority"),
        )
    }

    /// Writes a certificate for these names, and its key.
    fn sign(&self, folder: &Path, names: &[&str]) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut asked = CertificateParams::new(names).expect("names");
        asked.extended_key_usages =
            vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth, rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let made = asked.signed_by(&key, &self.0).expect("a certificate");
        let files = (folder.join("own.pem"), folder.join("own-key.pem"));
        std::fs::write(&files.0, made.pem()).expect("room");
        std::fs::write(&files.1, key.serialize_pem()).expect("room");
        files
    }
}

/// A host with a folder for a member.
struct Host {
    place: TempDir,
    folder: Folder,
    name: String,
    clients: SocketAddr,
    peers: SocketAddr,
    supervisor: Option<Supervisor>,
    reports: Arc<Mutex<Vec<String>>>,
}

impl Host {
    fn new(name: &str, signer: &Signer) -> Host {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::new(place.path().join("etcd"));
        signer.sign(place.path(), &["127.0.0.1", ALLOWED]);
        std::fs::write(place.path().join("authorities.pem"), signer.0.pem()).expect("room");
        let port = || SocketAddr::from(([127, 0, 0, 1], free_port()));
        let (clients, peers) = (port(), port());
        Host {
            place,
            folder,
            name: name.to_owned(),
            clients,
            peers,
            supervisor: None,
            reports: Arc::default(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn is_to_run(&self, before: &[(String, String)], member: Option<u64>) {
        let mut initial = before.to_vec();
        initial.push((self.name.clone(), url_of(self.peers)));
        let spec = Spec {
            name: self.name.clone(),
            token: "test".to_owned(),
            clients: self.clients,
            peers: self.peers,
            initial,
            joins: !before.is_empty(),
            own: (self.file("own.pem"), self.file("own-key.pem")),
            allowed: ALLOWED.to_owned(),
            member,
        };
        let authorities = std::fs::read_to_string(self.file("authorities.pem")).expect("authorities");
        self.folder.run(&spec, &authorities).expect("room");
    }

    fn keep(&mut self) {
        let lock = Lock::take(&self.folder).expect("a lock").expect("nobody else supervises it");
        assert!(Lock::take(&self.folder).expect("a lock").is_none(), "a folder has one supervisor");
        let reports = Arc::clone(&self.reports);
        let report = move |text| reports.lock().expect("not broken").push(text);
        self.supervisor = Some(Supervisor::begin(lock, report).expect("a thread"));
    }

    fn etcd(&self, endpoints: &[String]) -> Etcd {
        let tls = Tls {
            authorities: self.file("authorities.pem"),
            own: Some((self.file("own.pem"), self.file("own-key.pem"))),
            name: Some(ALLOWED.to_owned()),
        };
        let options =
            Options { endpoints: endpoints.to_vec(), prefix: "/t/".to_owned(), tls: Some(tls), user: None };
        Etcd::new(options).expect("its files")
    }
}

/// Does something until it succeeds.
async fn done<T, F: Future<Output = Result<T, Error>>>(what: &str, doing: impl Fn() -> F) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match doing().await {
            Ok(done) => return done,
            Err(error) => assert!(Instant::now() < until, "{what}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn put(etcd: &Etcd, key: &str) {
    let change = Change { key: key.to_owned(), expected: 0, value: Some(b"x".to_vec()) };
    let committed = done("a change", || etcd.commit(std::slice::from_ref(&change), Duration::ZERO)).await;
    assert!(matches!(committed, Committed::Done { .. }), "{committed:?}");
}

/// Adds a host's member to those that there are, and gives it its vote.
async fn join(etcd: &Etcd, host: &mut Host) {
    let url = url_of(host.peers);
    done("a member is added", || etcd.add_member(&url)).await;
    let members = done("members", || etcd.members()).await;
    let known = members.iter().filter_map(|one| Some((one.name.clone()?, one.peers.first()?.clone())));
    let id = members.iter().find(|one| one.peers == [url_of(host.peers)]).expect("it was added").id;
    host.is_to_run(&known.collect::<Vec<_>>(), Some(id));
    if host.supervisor.is_none() {
        host.keep();
    }
    done("it catches up", || etcd.promote_member(id)).await;
    let members = done("members", || etcd.members()).await;
    let voters = members.iter().filter(|one| !one.is_learner && one.name.is_some());
    etcd.set_endpoints(&voters.flat_map(|one| one.clients.clone()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_member_becomes_three_and_a_lost_one_is_replaced() {
    let signer = Signer::new("one");
    let mut hosts: Vec<Host> = ["a", "b", "c", "d"].iter().map(|name| Host::new(name, &signer)).collect();
    hosts[0].is_to_run(&[], None);
    hosts[0].keep();
    let etcd = hosts[0].etcd(&[url_of(hosts[0].clients)]);
    put(&etcd, "first").await;
    for host in &mut hosts[1..3] {
        join(&etcd, host).await;
    }
    assert_eq!(etcd.endpoint_count(), 3);
    put(&etcd, "second").await;

    // A host is lost: two go on, and another one takes the place.
    drop(hosts[1].supervisor.take());
    put(&etcd, "third").await;
    let members = done("members", || etcd.members()).await;
    let lost = members.iter().find(|one| one.name.as_deref() == Some("b")).expect("it is one still").id;
    done("it is taken out", || etcd.remove_member(lost)).await;
    join(&etcd, &mut hosts[3]).await;
    let (first, third) = (hosts[0].supervisor.take(), hosts[3].etcd(&[url_of(hosts[3].clients)]));
    drop(first);
    let found = done("the new one has all of it", || third.get("first")).await;
    assert!(found.is_some_and(|record| record.value == b"x"));

    // The one that was taken out comes back as a member with nothing, once it has put its data aside.
    hosts[0].keep();
    hosts[1].folder.leave().expect("room");
    hosts[1].keep();
    let aside = hosts[1].folder.path().join("data.left");
    let until = Instant::now() + PATIENCE;
    while !aside.exists() {
        assert!(Instant::now() < until, "its data are put aside");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let gone = members.iter().find(|one| one.name.as_deref() == Some("c")).expect("it is one").id;
    done("another one is taken out", || etcd.remove_member(gone)).await;
    join(&etcd, &mut hosts[1]).await;
    put(&etcd, "fourth").await;
}

/// What a member knew that was taken out keeps nobody from becoming one again, though the host was told nothing in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_gets_another_place_starts_with_nothing_and_the_first_member_learns_its_id_while_it_runs()
{
    let signer = Signer::new("one");
    let mut hosts: Vec<Host> = ["a", "b"].iter().map(|name| Host::new(name, &signer)).collect();
    hosts[0].is_to_run(&[], None);
    hosts[0].keep();
    let etcd = hosts[0].etcd(&[url_of(hosts[0].clients)]);
    put(&etcd, "first").await;
    let first = done("members", || etcd.members()).await[0].id;
    hosts[0].is_to_run(&[], Some(first));

    join(&etcd, &mut hosts[1]).await;
    let members = done("members", || etcd.members()).await;
    let former = members.iter().find(|one| one.name.as_deref() == Some("b")).expect("it is one").id;
    done("it is taken out", || etcd.remove_member(former)).await;
    drop(hosts[1].supervisor.take());
    etcd.set_endpoints(&[url_of(hosts[0].clients)]);
    join(&etcd, &mut hosts[1]).await;
    assert!(hosts[1].folder.path().join("data.left").exists(), "what the former one knew is put aside");
    put(&etcd, "second").await;
    let second = hosts[1].etcd(&[url_of(hosts[1].clients)]);
    let found = done("all is there", || second.get("first")).await;
    assert!(found.is_some());
    let reports = hosts[0].reports.lock().expect("not broken").clone();
    assert!(reports.is_empty(), "the first one was not started anew: {reports:?}");
    let owner = std::fs::read_to_string(hosts[0].folder.path().join("data.member")).expect("it is known");
    assert_eq!(owner, first.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_serves_those_alone_who_have_the_name_and_believes_other_authorities_when_told() {
    let (signer, other) = (Signer::new("one"), Signer::new("other"));
    let mut host = Host::new("a", &signer);
    host.is_to_run(&[], None);
    host.keep();
    let endpoints = [url_of(host.clients)];
    put(&host.etcd(&endpoints), "first").await;

    // Whom the same authority signed, and who has not the name.
    let person = Host::new("ann", &signer);
    signer.sign(person.place.path(), &["ann"]);
    let refused = person.etcd(&endpoints).get("first").await;
    assert!(refused.is_err(), "{refused:?}");
    // Who has the name of another authority, before that is believed, and afterwards.
    let stranger = Host::new("b", &other);
    let both = format!("{}{}", signer.0.pem(), other.0.pem());
    std::fs::write(stranger.file("authorities.pem"), &both).expect("room");
    let refused = stranger.etcd(&endpoints).get("first").await;
    assert!(refused.is_err(), "{refused:?}");
    host.folder.believe(&both).expect("room");
    let stranger = stranger.etcd(&endpoints);
    let found = done("it is believed", || stranger.get("first")).await;
    assert!(found.is_some());
    assert!(host.reports.lock().expect("not broken").is_empty(), "a start is no end by itself");
}
