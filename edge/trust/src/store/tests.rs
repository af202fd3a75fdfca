//! Tests of the files: what is refused, and that a crash at any step leaves a whole identity.

use super::*;
use crate::tests::world::*;
use crate::{Role, TrustError};
use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A folder with a host and its authority.
fn stored() -> (TempDir, Store, Authority, Credentials) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(folder.path().join("identity"));
    let authority = authority(CLUSTER);
    let credentials = credentials(&authority, host(CLUSTER, 1));
    store.save_anchors(&Anchors::of(&authority).expect("one")).expect("saved");
    store.save_credentials(&credentials).expect("saved");
    store.save_authority(&authority).expect("saved");
    (folder, store, authority, credentials)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// An error and all that caused it.
fn whole(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    text
}

#[test]
fn an_identity_reads_back_and_keys_are_open_to_their_owner_only() {
    let (_folder, store, authority, credentials) = stored();
    let trust = store.load().expect("all of it");
    assert_eq!(
        (trust.identity(), trust.certificate()),
        (host(CLUSTER, 1), credentials.certificate().clone())
    );
    let again = store.load_authority(CLUSTER).expect("the authority");
    assert_eq!((again.fingerprint(), again.key_pem()), (authority.fingerprint(), authority.key_pem()));
    assert!(store.has_identity() && store.has_authority());
    assert_eq!(mode(store.folder()), 0o700);
    for (name, expected) in [(KEY, 0o600), (AUTHORITY_KEY, 0o600)] {
        assert_eq!(mode(&store.path(name)), expected, "{name}");
    }
    let mut names: Vec<_> = fs::read_dir(store.folder())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, [AUTHORITIES, AUTHORITY_KEY, CERTIFICATE, KEY], "nothing else is left");
    assert_eq!(store.needs_renewal(now()).ok(), Some(false));
    assert_eq!(store.needs_renewal(now() + DAY * 61).ok(), Some(true));
}

#[test]
fn files_that_others_may_read_or_change_are_refused_with_the_way_out() {
    let (_folder, store, _, _) = stored();
    let load = || store.load().and_then(|_| store.load_authority(CLUSTER));
    for (name, right) in [(KEY, "600"), (AUTHORITY_KEY, "600"), (CERTIFICATE, "644"), (AUTHORITIES, "644")] {
        let path = store.path(name);
        let before = mode(&path);
        let bad: &[u32] = if right == "600" { &[0o640, 0o604, 0o620, 0o602, 0o610] } else { &[0o664, 0o646] };
        for mode in bad {
            set_mode(&path, *mode);
            let error = load().map(|_| ()).expect_err(name).to_string();
            assert!(error.contains("is open to others"), "{error}");
            assert!(error.contains(&format!("run `chmod {right} {}`", path.display())), "{error}");
        }
        set_mode(&path, before);
        load().expect("as it was");
    }
}

#[test]
fn what_is_not_there_or_damaged_is_told_with_its_path() {
    for name in [KEY, CERTIFICATE, AUTHORITIES, AUTHORITY_KEY] {
        let (_folder, store, _, _) = stored();
        let path = store.path(name);
        let load = || {
            let result = store.load().and_then(|_| store.load_authority(CLUSTER)).map(|_| ());
            let text = whole(&result.expect_err(name));
            assert!(text.contains(&path.display().to_string()), "{text}");
            text
        };
        for damage in [b"".as_slice(), b"hello", &[0xff, 0xfe], &vec![b'x'; crate::PEM_SIZE_MAX + 1]] {
            fs::write(&path, damage).expect("written");
            load();
        }
        fs::remove_file(&path).expect("removed");
        assert!(load().contains("is not there"));
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let (_folder, store, authority, _) = stored();
    let (_other_folder, other, _, _) = stored();
    let copy = |name: &str| fs::copy(other.path(name), store.path(name)).expect("copied");
    let undo = |name: &str, text: &str| fs::write(store.path(name), text).expect("written");

    let before = fs::read_to_string(store.path(KEY)).expect("a key");
    copy(KEY);
    let text = whole(&store.load_credentials().expect_err("another key"));
    assert!(text.contains("does not fit the certificate of host `h1`"), "{text}");
    undo(KEY, &before);

    let before = fs::read_to_string(store.path(AUTHORITY_KEY)).expect("a key");
    copy(AUTHORITY_KEY);
    let text = whole(&store.load_authority(CLUSTER).expect_err("another key"));
    assert!(text.contains("does not fit the certificate of the authority"), "{text}");
    undo(AUTHORITY_KEY, &before);

    copy(AUTHORITIES);
    let error = store.load().expect_err("other authorities");
    assert!(matches!(error, StoreError::Trust { source: TrustError::NotSigned(_), .. }), "{}", whole(&error));
    assert!(store.load_authority(CLUSTER).is_err());
    let error = store.save_authority(&authority).expect_err("it is not among them");
    assert!(matches!(error, StoreError::Authority { .. }), "{}", whole(&error));
    let text = whole(&store.load_anchors(OTHER_CLUSTER).expect_err("another cluster"));
    assert!(text.contains("each cluster has its own"), "{text}");
}

#[test]
fn a_crash_at_any_step_leaves_the_former_identity_or_the_new_one() {
    let (_folder, store, authority, former) = stored();
    let pairs = [
        // A new key, a new certificate for the former key, another role of a person.
        credentials(&authority, host(CLUSTER, 1)),
        {
            let request = former.key().signing_request().expect("a request");
            let text =
                authority.issue(&request, &grant(host(CLUSTER, 1)), now() + DAY).expect("a certificate");
            Credentials::new(former.key().clone(), &text).expect("they fit")
        },
        credentials(&authority, person(CLUSTER, Role::Admin)),
    ];
    for new in &pairs {
        let steps = store.steps_of_credentials(new);
        let mut has_changed = false;
        for count in 0..=steps.len() {
            store.save_credentials(&former).expect("as before");
            steps[..count].iter().for_each(|step| step.perform(store.folder()).expect("performed"));
            for _ in 0..2 {
                let found = store.load_credentials().expect("a whole identity");
                let is_new = found.certificate() == new.certificate();
                assert!(is_new || found.certificate() == former.certificate(), "after {count} steps");
                assert!(is_new || !has_changed, "after {count} steps the former one is back");
                has_changed = is_new;
            }
            store.save_credentials(new).expect("what a crash left is no hindrance");
        }
        assert!(has_changed, "all steps make it the new one");
    }
}

#[test]
fn a_crash_at_any_step_of_the_first_time_leaves_nothing_or_the_identity() {
    let authority = authority(CLUSTER);
    let new = credentials(&authority, host(CLUSTER, 1));
    let folder = tempfile::tempdir().expect("a folder");
    for count in 0..=7 {
        let store = Store::new(folder.path().join(count.to_string()));
        files::make_folder(store.folder()).expect("made");
        let steps = store.steps_of_credentials(&new);
        assert_eq!(steps.len(), 7);
        steps[..count].iter().for_each(|step| step.perform(store.folder()).expect("performed"));
        match store.load_credentials() {
            Ok(found) => assert!(count >= 4 && found.certificate() == new.certificate()),
            Err(StoreError::Missing { .. }) => assert!(count < 4, "after {count} steps"),
            Err(error) => panic!("after {count} steps: {}", whole(&error)),
        }
    }
}

#[test]
fn what_a_crash_left_is_never_written_over() {
    let (_folder, store, authority, _) = stored();
    let left = store.path(&format!("{KEY}{NEXT}"));
    fs::write(&left, "left").expect("written");
    set_mode(&left, 0o666);
    store.save_credentials(&credentials(&authority, host(CLUSTER, 1))).expect("saved");
    assert_eq!(mode(&store.path(KEY)), 0o600);
}

#[test]
fn a_file_is_stable_before_it_takes_its_place_and_its_name_is_before_the_end() {
    let (_folder, store, authority, credentials) = stored();
    let all = [
        store.steps_of_credentials(&credentials),
        store.replacing(AUTHORITIES, authority.certificate_pem(), Access::Readable),
    ];
    for steps in all {
        assert!(matches!(steps.last(), Some(Step::SyncFolder)));
        let write = steps.iter().rposition(|step| matches!(step, Step::Write { .. }));
        let rename = steps.iter().position(|step| matches!(step, Step::Rename { .. }));
        assert!(write < rename, "{steps:?}");
    }
}

#[test]
fn no_more_is_read_than_such_a_file_can_have() {
    let (_folder, store, authority, _) = stored();
    let long = format!("{}{}", authority.certificate_pem(), "\n".repeat(crate::PEM_SIZE_MAX));
    fs::write(store.path(AUTHORITIES), &long).expect("written");
    let error = store.load_anchors(CLUSTER).expect_err("too long");
    assert!(matches!(error, StoreError::NotText { bytes, .. } if bytes == long.len() as u64), "{error}");
}
