//! Answers that do not belong to what was asked.

use crate::interface::{FabricOutput, FabricSettings, Output, Token};
use crate::node::Node;
use base::{ComponentId, HostId, Instant, NodeId};
use replication::OwnedBy;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Answer, Message, Request};

const NOW: Instant = Instant(1 << 40);

fn host(host: u128) -> NodeId {
    NodeId { host: HostId(host), shard: 0 }
}

/// A node with channels to two others, and the sessions of these.
fn among_two() -> (Node, BTreeMap<NodeId, u64>) {
    let settings = FabricSettings {
        me: OwnedBy { node: host(1), incarnation: 1 },
        prefers_local: false,
        copy_floor: crate::limits::COPY_RATE_FLOOR,
        copy_blocks_max: replication::limits::COPY_BLOCKS_MAX,
        move_granules: crate::limits::MOVE_GRANULES,
        fold_after: Some(replication::limits::FOLD_AFTER),
        row_check_pace: 0,
        copy_tail_percent: crate::limits::COPY_TAIL_PERCENT,
        start_patience: Duration::ZERO,
        former_grants: Duration::ZERO,
        rules: base::rules::Rules::ALL,
    };
    let mut node = Node::new(base::Pool::new(1 << 20), NOW, settings);
    let mut out = Vec::new();
    node.set_peers(NOW, &[host(2), host(3)], &mut out);
    node.advance(NOW, &mut out);
    let sessions = out.into_iter().filter_map(|output| match output {
        Output::Fabric(FabricOutput::Connect { peer, session }) => Some((peer, session)),
        _ => None,
    });
    let sessions: BTreeMap<NodeId, u64> = sessions.collect();
    for (peer, session) in &sessions {
        node.connected(NOW, *peer, (*session, wire::Version::LATEST), &mut Vec::new());
    }
    (node, sessions)
}

/// What the control plane was told.
fn told(out: &[Output]) -> Vec<Token> {
    let told = |output: &Output| match output {
        Output::Fabric(FabricOutput::Component { token, answer: Some(Answer::Done { .. }) }) => Some(*token),
        _ => None,
    };
    out.iter().filter_map(told).collect()
}

/// An answer was known by its number alone: one from a node that was not asked ended what another was asked for.
#[test]
fn an_answer_counts_only_from_the_node_that_was_asked() {
    let (mut node, sessions) = among_two();
    let mut out = Vec::new();
    let request = Request::Delete { component: ComponentId(1) };
    node.ask_component(NOW, Token(7), host(2), request, &mut out);
    let sent = out.iter().find_map(|output| match output {
        Output::Fabric(FabricOutput::Request { message, .. }) => Some(message.token),
        _ => None,
    });
    let token = sent.expect("the channel is up");
    let mut answer = |from: NodeId| {
        let body = Answer::Done { congestion: 0 };
        let message = Message { session: sessions[&from], sequence: 1, stamp: 0, token, body };
        let mut out = Vec::new();
        node.answer_received(NOW, from, message, &mut out);
        told(&out)
    };
    assert_eq!(answer(host(3)), [], "it was not asked");
    assert_eq!(answer(host(2)), [Token(7)]);
}
