/** The words of the API, each with how people read it: a new word in the document does not compile until it stands here. */

import type { Schemas } from '$lib/api/client';

type Named<W extends string> = Record<W, string>;

const health: Named<Schemas['HealthWord']> = { well: 'Healthy', notice: 'Notice', warning: 'Warning', critical: 'Critical', unknown: 'Unknown' };
const host: Named<Schemas['HostWord']> = { alive: 'Online', suspect: 'Suspect', away: 'Offline', unknown: 'Unknown' };
const disk: Named<Schemas['DiskWord']> = { creating: 'Creating', active: 'Active', deleting: 'Deleting', unknown: 'Unknown' };
const compliance: Named<Schemas['ComplianceWord']> = {
  compliant: 'Compliant',
  'not compliant': 'Not compliant',
  moving: 'Changing layout',
  unknown: 'Unknown',
};
const standing: Named<Schemas['StandingWord']> = { active: 'Active', absent: 'Absent', stale: 'Stale', 'stand-in': 'Stand-in', unknown: 'Unknown' };
const condition: Named<Schemas['ConditionWord']> = { whole: 'Fully redundant', reduced: 'Reduced redundancy', inaccessible: 'Inaccessible', unknown: 'Unknown' };
const role: Named<Schemas['DeviceRoleWord']> = { log: 'Log', capacity: 'Capacity', 'log+capacity': 'Log and capacity', unknown: 'Unknown' };
const encryption: Named<Schemas['EncryptionWord']> = {
  none: 'Not encrypted',
  partly: 'Partly encrypted',
  luks2: 'LUKS2',
  luks1: 'LUKS1',
  'plain-dm-crypt': 'Plain dm-crypt',
  other: 'Encrypted',
  unknown: 'Unknown',
};
const copy: Named<Schemas['CopyWord']> = {
  return: 'Catching up after an absence',
  repair: 'Rebuild after a loss',
  evacuation: 'Evacuation',
  policy: 'Policy change',
  domain: 'Fault domain change',
  balance: 'Balancing',
  'stand-in': 'Stand-in',
  unknown: 'Unknown cause',
};
const fate: Named<Schemas['FateWord']> = {
  missed: 'Misses writes until the host returns',
  moves: 'Is copied elsewhere',
  stuck: 'Has no place elsewhere',
  inaccessible: 'Cannot be reached meanwhile',
  lost: 'Is lost',
  unknown: 'Unknown',
};
const balance: Named<Schemas['BalanceWord']> = { even: 'Even', uneven: 'Uneven', full: 'Full', unknown: 'Not known yet' };
const balanceMode: Named<Schemas['BalanceMode']> = {
  proactive: 'Proactive: whenever devices differ much',
  reactive: 'Reactive: only when a device gets full',
  off: 'Off',
};
const maintenance: Named<Schemas['MaintenanceMode']> = {
  'ensure-accessibility': 'Ensure accessibility: copy only what would be out of reach',
  'full-evacuation': 'Full evacuation: copy everything to other hosts',
  none: 'None: copy nothing',
};
const follower: Named<Schemas['FollowerWord']> = { done: 'Applied', moving: 'Changing layout', waiting: 'Waiting', refused: 'Refused', unknown: 'Unknown' };
const change: Named<Schemas['PolicyChangeWord']> = { done: 'Has it already', 'at once': 'Applies at once', moves: 'Needs another layout', refused: 'Refused', unknown: 'Unknown' };
const personRole: Named<Schemas['RoleWord']> = { viewer: 'Viewer', operator: 'Operator', admin: 'Admin', unknown: 'Unknown' };
const proof: Named<Schemas['ProofWord']> = { certificate: 'Certificate', password: 'Password', unknown: 'Unknown' };
const caller: Named<Schemas['CallerWord']> = { local: 'Local access on the host', host: 'A host', person: 'Person', unknown: 'Unknown' };
const right: Named<Schemas['RightWord']> = {
  see: 'view',
  change_disks: 'change disks',
  operate: 'operate the cluster',
  attach_disks: 'attach disks',
  change_cluster: 'change the cluster',
  give_certificates: 'issue certificates',
  act_as_host: 'act as a host',
  unknown: 'something unknown',
};
const group: Named<Schemas['HealthGroupWord']> = {
  cluster: 'Cluster',
  network: 'Network',
  data: 'Data',
  capacity: 'Capacity',
  devices: 'Devices',
  certificates: 'Certificates',
  unknown: 'Other',
};
const rollback: Named<Schemas['RollbackWord']> = { copying: 'Copying', unfinished: 'Unfinished', done: 'Done', unknown: 'Unknown' };
const task: Named<Schemas['TaskWord']> = {
  maintenance: 'Maintenance',
  evacuation: 'Evacuation',
  move: 'Change of layout',
  rollback: 'Rollback',
  import: 'Import',
  resync: 'Resync',
  rewrite: 'Rewrite',
  estimate: 'Sampling',
  deletion: 'Deletion',
  unknown: 'Unknown',
};
const member: Named<Schemas['MemberRole']> = { voter: 'Voter', learner: 'Learner' };

export const words = {
  health, host, disk, compliance, standing, condition, role, encryption, copy, fate, balance, balanceMode, maintenance,
  follower, change, personRole, proof, caller, right, group, rollback, member, task,
};
