//! What is remembered of components.

use super::*;
use base::rules::Rules;
use base::{DeviceId, DiskId, HostId};
use wire::NewComponent;

/// Components, and a group that carries out at once what is stored: a component is there once it is made, until it is deleted.
struct Bench {
    components: Components,
    there: BTreeSet<ComponentId>,
}

impl Bench {
    fn ask(&mut self, request: Request) -> Answer {
        let caller = Caller { node: NodeId { host: HostId(2), shard: 0 }, session: 1 };
        let (mut out, mut answers) = (Vec::new(), Vec::new());
        self.components.request(Instant(1), caller, 7, request, &mut out);
        while let Some(output) = out.pop() {
            match output {
                Output::Answer { answer, .. } => answers.push(answer),
                Output::Store { op, component, store } => {
                    let stored = self.carry_out(component, &store);
                    self.components.stored(Instant(1), op, stored, &mut out);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    fn carry_out(&mut self, component: ComponentId, store: &Store) -> Stored {
        if matches!(store, Store::Create(_)) {
            self.there.insert(component);
        }
        let is_there = match store {
            Store::Delete => self.there.remove(&component),
            _ => self.there.contains(&component),
        };
        match store {
            _ if !is_there => Stored::Failed(Refusal::NoComponent),
            Store::State => Stored::State { promised: 0, watermark: WriteId::default(), window: Vec::new() },
            _ => Stored::Done { congestion: 0 },
        }
    }
}

/// A host that made and deleted disks for years remembered something of each.
#[test]
fn nothing_is_remembered_of_components_that_are_gone() {
    let caller = Caller { node: NodeId { host: HostId(2), shard: 0 }, session: 1 };
    let me = NodeId { host: HostId(1), shard: 0 };
    let mut components = Components::new(me, Instant(1), limits::GRANT, Rules::ALL);
    components.session_began(caller);
    let mut bench = Bench { components, there: BTreeSet::new() };
    for number in 1..=100 {
        let component = ComponentId(number);
        let open = Request::Open { component, disk: DiskId(1), epoch: 1 };
        let missing = bench.ask(open.clone());
        assert!(matches!(missing, Answer::Refused(Refusal::NoComponent)), "{missing:?}");
        assert_eq!(bench.components.held.len(), 0, "somebody asked for one that is not there");
        let device = DeviceId(3);
        let (disk_label, size) = (Vec::new(), 1 << 20);
        let new = NewComponent { id: component, disk: DiskId(1), device, size, reservation: 0, disk_label };
        assert!(matches!(bench.ask(Request::Create(new)), Answer::Done { .. }));
        assert!(matches!(bench.ask(open), Answer::Opened { .. }));
        assert_eq!(bench.components.held.len(), 1);
        let close = Request::Close { component, epoch: 1 };
        let late = Request::Read { component, epoch: 1, part: 0, block: 0, count: 1, verify: true };
        let steps = match number % 4 {
            0 => vec![close, Request::Delete { component }],
            1 => vec![Request::Delete { component }, close],
            2 => vec![Request::Delete { component }],
            _ => vec![Request::Delete { component }, late],
        };
        for step in steps {
            let is_late = matches!(step, Request::Read { .. });
            let answer = bench.ask(step);
            assert!(is_late || matches!(answer, Answer::Done { .. }), "{answer:?}");
        }
        if number % 4 >= 2 {
            bench.components.session_ended(caller.node);
        }
        assert_eq!(bench.components.held.len(), 0);
        bench.components.session_began(caller);
    }
}
