//! Requests that answers offer, so that every client has the same buttons.

use crate::cluster::FoundDevice;
use ::cluster::{NamedDevice, Remedy};
use api::client::escaped;
use api::types::{ActionView, MethodWord, MoveAction, RightWord};
use serde_json::{Value, json};

/// A request without a body that loses nothing.
fn request(method: MethodWord, path: &str, needs: RightWord, label: String, command: String) -> ActionView {
    ActionView {
        label,
        method,
        path: format!("/api/v1{path}"),
        body: None,
        command,
        needs,
        is_destructive: false,
        has_dry_run: false,
    }
}

fn with_body(action: ActionView, body: Value) -> ActionView {
    ActionView { body: Some(body), ..action }
}

/// The request of a remedy.
pub(super) fn remedy_view(remedy: &Remedy) -> ActionView {
    use MethodWord::{Delete, Patch, Post};
    use RightWord::{ChangeCluster, ChangeDisks, GiveCertificates};
    match remedy {
        Remedy::EndMaintenance { host } => end_maintenance(host),
        Remedy::RemoveHost { host } => {
            let path = format!("/hosts/{0}?confirm={0}", escaped(host));
            let label = format!("Remove host {host}, which will not return");
            let command = format!("drystone host remove {host}");
            let action = request(Delete, &path, ChangeCluster, label, command);
            ActionView { is_destructive: true, ..action }
        }
        Remedy::SetReplacements { count } => {
            let label = format!("Allow {count} components to be replaced at once");
            let command = format!("drystone cluster set replacements {count}");
            let action = request(Patch, "/cluster/settings", ChangeCluster, label, command);
            with_body(action, json!({ "replacements_max": count }))
        }
        Remedy::ResumeMove { disk } => steer_move(disk, MoveAction::Resume),
        Remedy::TurnMove { disk, is_back } => {
            steer_move(disk, if *is_back { MoveAction::Back } else { MoveAction::On })
        }
        Remedy::RollBack { disk, to } => {
            let path = format!("/disks/{}/snapshots/{}/rollback", escaped(disk), escaped(to));
            let label = format!("Roll disk {disk} back to snapshot {to}");
            let command = format!("drystone disk snapshot rollback {disk} {to} --confirm {disk}");
            let action = request(Post, &path, ChangeDisks, label, command);
            ActionView { is_destructive: true, ..with_body(action, json!({ "confirm": disk })) }
        }
        Remedy::Evacuate(device) => {
            let label = format!("Move everything off device {} of host {}", device.path, device.host);
            let command = format!("drystone device evacuate {}", place(device));
            let action = request(Post, "/devices/evacuate", ChangeCluster, label, command);
            ActionView { has_dry_run: true, ..with_body(action, json!({ "device": device.id.to_string() })) }
        }
        Remedy::Keep(device) => keep_device(device),
        Remedy::RemoveDevice(device) => {
            let label = format!("Remove device {} of host {}, which is empty", device.path, device.host);
            let command = format!("drystone device remove {}", place(device));
            request(Delete, &format!("/devices/{}", device.id), ChangeCluster, label, command)
        }
        Remedy::RaiseLevel => {
            let label = "Raise the level of the cluster's records".to_owned();
            let command = "drystone cluster upgrade".to_owned();
            // There is no way back to the former release.
            let action = request(Post, "/cluster/upgrade", ChangeCluster, label, command);
            ActionView { is_destructive: true, ..action }
        }
        Remedy::AddAuthority => {
            let label = "Add an authority that signs from now on".to_owned();
            let command = "drystone cluster certificates add-authority".to_owned();
            request(Post, "/authorities", GiveCertificates, label, command)
        }
    }
}

/// Ends the maintenance of a host, or calls off its beginning.
pub(super) fn end_maintenance(host: &str) -> ActionView {
    let path = format!("/hosts/{}/maintenance", escaped(host));
    let label = format!("End the maintenance of host {host}");
    let command = format!("drystone host maintenance {host} --end");
    request(MethodWord::Delete, &path, RightWord::ChangeCluster, label, command)
}

/// Pauses, resumes or turns a move into another layout.
pub(super) fn steer_move(disk: &str, steer: MoveAction) -> ActionView {
    let (label, word) = match steer {
        MoveAction::Pause => (format!("Pause the move of disk {disk}"), "pause"),
        MoveAction::Resume => (format!("Resume the move of disk {disk}"), "resume"),
        MoveAction::Back => (format!("Move disk {disk} back into its former layout"), "back"),
        MoveAction::On => (format!("Move disk {disk} on into its new layout"), "on"),
    };
    let command = format!("drystone disk set {disk} move {word}");
    let path = format!("/disks/{}", escaped(disk));
    let action = request(MethodWord::Patch, &path, RightWord::ChangeDisks, label, command);
    with_body(action, json!({ "move": word }))
}

/// The same of a device that was found.
pub(super) fn call_off_evacuation(device: &FoundDevice) -> ActionView {
    let FoundDevice { id, path, host_name, .. } = device.clone();
    keep_device(&NamedDevice { id, host: host_name, path })
}

/// Ends the passes that sample data, on all hosts.
pub(super) fn stop_estimate() -> ActionView {
    let label = "Stop the estimate on all hosts".to_owned();
    let command = "drystone cluster estimate --stop".to_owned();
    request(MethodWord::Delete, "/estimate", RightWord::Operate, label, command)
}

/// Lets a device that is being emptied stay in use.
fn keep_device(device: &NamedDevice) -> ActionView {
    let label = format!("Keep device {} of host {} in use", device.path, device.host);
    let command = format!("drystone device evacuate {} --cancel", place(device));
    let action = request(MethodWord::Post, "/devices/keep", RightWord::ChangeCluster, label, command);
    with_body(action, json!({ "device": device.id.to_string() }))
}

fn place(device: &NamedDevice) -> String {
    format!("{}:{}", device.host, device.path)
}

/// One of each that answers offer.
#[cfg(test)]
pub(crate) fn sample_actions() -> Vec<ActionView> {
    let name = |text: &str| text.to_owned();
    let device = NamedDevice { id: base::DeviceId(7), host: name("b"), path: name("/dev/sdb") };
    let remedies = [
        Remedy::EndMaintenance { host: name("b") },
        Remedy::RemoveHost { host: name("b") },
        Remedy::SetReplacements { count: 16 },
        Remedy::ResumeMove { disk: name("web") },
        Remedy::TurnMove { disk: name("web"), is_back: true },
        Remedy::RollBack { disk: name("web"), to: name("monday") },
        Remedy::Evacuate(device.clone()),
        Remedy::Keep(device.clone()),
        Remedy::RemoveDevice(device),
        Remedy::RaiseLevel,
        Remedy::AddAuthority,
    ];
    let mut actions: Vec<ActionView> = remedies.iter().map(remedy_view).collect();
    actions.extend([
        stop_estimate(),
        steer_move("web", MoveAction::Pause),
        steer_move("web", MoveAction::On),
    ]);
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::types::{ChangeDisk, ChangeSettings, EvacuateDevice, KeepDevice, RollBack};
    use serde::de::DeserializeOwned;

    /// Whether a handler that takes this type takes the body.
    fn is_taken<T: DeserializeOwned>(body: &Value) -> bool {
        serde_json::from_value::<T>(body.clone()).is_ok()
    }

    #[test]
    fn the_bodies_of_requests_are_those_that_handlers_take() {
        for action in sample_actions() {
            let Some(body) = &action.body else { continue };
            let path = action.path.trim_start_matches("/api/v1");
            let is_right = match path.split('/').collect::<Vec<_>>()[..] {
                ["", "disks", _] => is_taken::<ChangeDisk>(body),
                ["", "disks", _, "snapshots", _, "rollback"] => is_taken::<RollBack>(body),
                ["", "cluster", "settings"] => is_taken::<ChangeSettings>(body),
                ["", "devices", "evacuate"] => is_taken::<EvacuateDevice>(body),
                ["", "devices", "keep"] => is_taken::<KeepDevice>(body),
                _ => panic!("nobody knows the body of {action:?}"),
            };
            assert!(is_right, "{action:?}");
        }
    }
}
