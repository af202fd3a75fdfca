//! Changes of an open disk: its size, its name, its policy; and freeing the space beyond the end of a disk that
//! became smaller (docs/design/0009).

use crate::changes::ChangedRange;
use crate::interface::{DiskSpec, FabricOutput, Output, Token};
use crate::mover::Progress;
use crate::node::Node;
use crate::request::Requester;
use base::request::Request;
use base::units::BLOCK_SIZE;
use base::{DiskId, Instant};
use replication::owner::Input;

impl Node {
    /// The record of an open disk has changed. False if this version is older than the known one, or the disk is not
    /// open.
    pub fn update_disk(&mut self, now: Instant, version: u64, spec: DiskSpec, out: &mut Vec<Output>) -> bool {
        self.now = now;
        let Some(key) = self.disk(spec.id) else { return false };
        let disk = &mut self.disks[key.0];
        let ownership = &mut disk.ownership;
        if version < ownership.spec_version {
            return false;
        }
        ownership.spec_version = version;
        disk.pace.set(spec.limits);
        if disk.spec != spec {
            let is_reshaped = disk.spec.shape != spec.shape;
            let boundary = disk.spec.layout.boundary();
            if disk.spec.origin != spec.origin {
                disk.regions.forget();
            }
            disk.spec = spec;
            if is_reshaped {
                disk.progress = Progress::default();
            }
            if let Some(boundary) = boundary.filter(|_| disk.mover.is_some() && !is_reshaped) {
                // As the owner has read it.
                disk.spec.layout.set_boundary(boundary);
            }
            // Its places have other numbers: what it is asked for from now on is not asked of an owner that knows the former ones.
            let is_of_another = |owner: &replication::Owner| owner.shape() != disk.spec.shape;
            if is_reshaped && disk.ownership.owner.as_deref().is_some_and(is_of_another) {
                self.step_owner(key.0, Input::Reshaped);
            }
            self.look_soon(key.0); // It may have to move from now on.
            let reading = self.reading_of(key.0);
            self.step_owner(key.0, Input::Reading(reading));
            // Requests waited for a size that this node did not know.
            self.serve_held_if_serving(key.0, out);
            self.begin_paced(key.0, out);
            self.pump(out);
        }
        true
    }

    /// Frees the space between the end of a disk that became smaller and `end`, for all components. Refused unless
    /// the disk is served, its size is known as `size`, and no earlier request reaches further. Ends with
    /// [`FabricOutput::Component`].
    pub fn give_back(
        &mut self,
        now: Instant,
        token: Token,
        disk: DiskId,
        (size, end): (u64, u64),
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        let Some(key) = self.disk(disk).map(|key| key.0).filter(|key| self.may_start(*key)) else {
            return out.push(Output::Fabric(FabricOutput::given_back(token, false)));
        };
        let state = &self.disks[key];
        let end = end.min(state.spec.layout.size());
        let reaches_further = |change: &ChangedRange| change.end > size.next_multiple_of(BLOCK_SIZE);
        let is_quiet = !state.changes.iter().any(reaches_further);
        if state.closing.is_some() || state.spec.size != size || end <= size || !is_quiet {
            return out.push(Output::Fabric(FabricOutput::given_back(token, false)));
        }
        let request = Request::WriteZeroes { offset: size, len: end - size, allocate: false };
        self.begin_unchecked(Requester::Surplus(token), key, request, out);
        self.pump(out);
    }
}
