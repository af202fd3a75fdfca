//! The seam as an executor uses it: transfers by their ends, whatever the protocol.

use super::*;

const POOL_SIZE: usize = 64 << 20;

fn session() -> Session {
    Session::new(Protocol::Nbd, TlsPolicy::Off, Pool::new(POOL_SIZE))
}

/// All transfers that the session wants now.
fn transfers(session: &mut Session) -> Vec<Transfer> {
    let mut vectors = Vec::new();
    std::iter::from_fn(|| session.next_transfer(&mut vectors)).collect()
}

#[test]
fn at_most_one_transfer_of_each_kind_is_under_way() {
    let (mut session, mut events) = (session(), Vec::new());
    assert_eq!(transfers(&mut session), [Transfer::Transmit, Transfer::Receive(Reach::Any)]);
    assert_eq!(transfers(&mut session), []);
    session.transmitted(TransferEnd::Interrupted, &mut events);
    assert_eq!(transfers(&mut session), [Transfer::Transmit], "the greeting is still to be sent");
    session.received(TransferEnd::Interrupted, &mut events);
    assert_eq!(transfers(&mut session), [Transfer::Receive(Reach::Any)]);
    assert!(!session.is_finished() && events.is_empty());
}

#[test]
fn a_session_is_over_once_the_peer_has_closed_or_the_connection_is_broken() {
    for end in [TransferEnd::Moved(0), TransferEnd::Broken] {
        let (mut session, mut events) = (session(), Vec::new());
        assert_eq!(transfers(&mut session).len(), Transfer::COUNT_MAX);
        session.received(end, &mut events);
        assert!(!session.is_finished(), "{end:?}: a send is under way");
        session.transmitted(TransferEnd::Broken, &mut events);
        assert!(session.is_finished(), "{end:?}");
        assert_eq!(transfers(&mut session), []);
    }
}
