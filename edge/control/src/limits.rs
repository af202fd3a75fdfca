//! The bounds of the control plane. Reaching one is normal and has an answer.

use std::time::Duration;

/// How often a host looks whether there is room again for what a start took of its data directory's reserve.
pub const RESERVE_PERIOD: Duration = Duration::from_secs(10);

/// Virtual disks of one host; another is refused. Far above what a host is asked to serve (1,000).
pub const DISKS_MAX: usize = 20_000;
/// Policies of one cluster; another is refused.
pub const POLICIES_MAX: usize = 1000;
/// Longest body of an API request in bytes; a longer one is refused.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// How long samples are kept.
pub const SAMPLES_KEPT: Duration = Duration::from_secs(3600);
/// How often samples are taken.
pub const SAMPLE_PERIOD: Duration = Duration::from_secs(1);
/// Bytes of all samples together; the oldest go first. A busy disk costs about 600 bytes a second.
pub const SAMPLE_BYTES_MAX: usize = 64 << 20;
/// Longest handover of a disk.
pub const HANDOVER_MAX: Duration = Duration::from_secs(3600);
/// How long the seconds of series are kept.
pub const SERIES_KEPT: Duration = Duration::from_secs(3600);
/// Bytes of all of them together; the oldest go first. A busy disk costs about 150 bytes a second.
pub const SERIES_BYTES_MAX: usize = 48 << 20;
/// The time of a row of a series.
pub const SERIES_SLOT: Duration = Duration::from_secs(300);
/// How long rows are kept.
pub const SERIES_FILES_KEPT: Duration = Duration::from_secs(90 * 24 * 3600);
/// Bytes of all rows of a host; the oldest days go first. A disk that is busy all the time costs some 5 MiB in 90 days.
pub const SERIES_FILES_BYTES_MAX: u64 = 256 << 20;
/// Most steps that are told at once.
pub const SERIES_STEPS_MAX: usize = 1000;
/// How long a stop waits for API requests under way.
pub const STOP_WAIT: Duration = Duration::from_secs(5);
/// Longest path of a unix socket on Linux (`sun_path` has 108 bytes with the closing zero).
pub const UNIX_PATH_MAX: usize = 107;
/// How long a host waits for one answer of the shared directory.
pub const DIRECTORY_WAIT: Duration = Duration::from_secs(2);
/// How long a change that got no answer is tried again: longer than etcd takes to choose a leader, one or two seconds.
pub const COMMIT_WAIT: Duration = Duration::from_secs(4);
/// How long a watch of the shared directory waits for a change before it says that there is none.
pub const WATCH_WAIT: Duration = Duration::from_secs(10);
/// Records of the shared directory; further ones are refused. Three of each disk, and hosts and policies.
pub const SHARED_RECORDS_MAX: usize = 3 * DISKS_MAX + POLICIES_MAX + PASSWORDS_MAX + 1024;
/// Longest change of the shared directory in bytes: the record of a disk of 64 TiB in three copies, with room to spare.
pub const SHARED_BODY_BYTES_MAX: usize = 4 << 20;
/// Removed records that the shared directory remembers; who has missed more reads everything.
pub const SHARED_GONE_MAX: usize = 4096;
/// How long a starting host waits for the shared directory.
pub const DIRECTORY_PATIENCE: Duration = Duration::from_secs(30);
/// How long records of known hosts may be missing in the copy of the directory: they change each second while devices fill.
pub const COPY_LAG_MAX: Duration = Duration::from_secs(60);
/// How long a copy of the directory that could not be written is left alone.
pub const COPY_RETRY: Duration = Duration::from_secs(30);
/// How long a host may take to give its copy of the directory away: some ten MiB.
pub const COPY_WAIT: Duration = Duration::from_secs(30);
/// How long it, and a watch that broke, waits before it tries again.
pub const DIRECTORY_RETRY: Duration = Duration::from_millis(200);
/// How long what something would do is looked at again while it is not known of a host whether it is there: a little longer than a
/// host that was silent for a moment has to be well before it takes something new.
pub const DOUBT_WAIT: Duration = Duration::from_secs(25);
/// How often a host looks whether its record in the shared directory still holds.
pub const HOST_RECORD_PERIOD: Duration = Duration::from_secs(1);
/// How often a host tells the directory that it is there.
pub const BEAT_PERIOD: Duration = Duration::from_secs(1);
/// Disks of which a heartbeat tells how far they are: what a busy hour of repairs has under way, in some 100 KiB.
pub const BEAT_OWNED_MAX: usize = 256;
/// Pause between two looks at the cluster when records change all the time.
pub const KEEP_PAUSE: Duration = Duration::from_millis(200);
/// How often devices are looked at to even them out: they change slowly, and the look costs time with the disks.
pub const BALANCE_PERIOD: Duration = Duration::from_secs(10);
/// How long a disk that is to grow waits for hosts with current copies before it is called off: longer than a host may be
/// silent before its copies count no more.
pub const GROWTH_WAIT: Duration = Duration::from_secs(15);
/// How long nobody has ended a growth before the coordinator does: whoever began it has given up by then, or is gone.
pub const GROWTH_PATIENCE: Duration = Duration::from_secs(20);
/// How long a change waits for space to be given back by a disk that became smaller; it is given back all the same.
pub const SURPLUS_WAIT: Duration = Duration::from_secs(10);
/// Longest time between two looks whether disks have the rules of the policies that they follow.
pub const FOLLOW_PERIOD: Duration = Duration::from_secs(5);
/// How often the host that decides looks for scheduled snapshots that are due.
pub const SCHEDULE_PERIOD: Duration = Duration::from_secs(1);
/// How long somebody waits for a snapshot: longer than another host takes to take a disk over whose owner is lost.
pub const SNAPSHOT_WAIT: Duration = Duration::from_secs(20);
/// Disks of one snapshot at most: all their guests wait for the slowest owner (docs/design/0047).
pub const TOGETHER_DISKS_MAX: usize = 32;
/// How long the owners of several disks may take until all hold changes back, from the moment at which the first is asked for it: what one that
/// waits for the others allows.
pub const TOGETHER_HOLD_WAIT: Duration = Duration::from_secs(1);
/// How long they may take then until all have said that they took it; guests do not wait for that.
pub const TOGETHER_MARK_WAIT: Duration = Duration::from_secs(3);
/// Attempts at a snapshot of several disks while disk groups are being converted, owners begin, or the machine is too slow.
pub const TOGETHER_ATTEMPTS: usize = 8;
/// Pause after the first of them. The later ones are longer.
pub const TOGETHER_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two looks at a disk that grows or gives back, or of which a snapshot is taken.
pub const SIZE_POLL: Duration = Duration::from_millis(100);
/// How long what hosts told of their components' sizes counts.
pub const SIZES_LIFE: Duration = Duration::from_secs(10);
/// Events that a host has in memory; the oldest go first. Some megabytes, and weeks of a cluster that is well.
pub const EVENTS_KEPT: usize = 10_000;
/// Events of one answer where no other number is asked for.
pub const EVENTS_ANSWERED: usize = 1000;
/// Bytes of each of the two files that a host keeps its events in: some ten thousand of them.
pub const EVENT_FILE_BYTES_MAX: u64 = 4 << 20;
/// How long after a failure it is tried again to write events: a data directory that is full stays so for a while.
pub const EVENTS_RETRY: Duration = Duration::from_secs(5);
/// How often a host looks whether each member of etcd answers: a member that restarts is back sooner or is worth a word.
pub const MEMBERS_PERIOD: Duration = Duration::from_secs(10);
/// How long a host that leaves waits for its disk groups to give back the space of what stood there.
pub const LEAVE_WAIT: Duration = Duration::from_secs(30);
/// How long somebody who was removed a moment ago waits for a certificate that counts: they tell seconds, and clocks differ a little.
pub const REMOVAL_WAIT: Duration = Duration::from_secs(5);
/// How often a host looks which members an etcd has that the cluster runs for itself.
pub const MEMBER_LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Looks in a row that must not find a host's member in the list before it is taken for taken out.
pub const MEMBER_GONE_LOOKS: u32 = 3;
/// The time between two members that are started anew because the authorities have changed: a start takes about a second.
pub const MEMBER_RESTART_PAUSE: Duration = Duration::from_secs(5);
/// Failures in a row of what is to be done about members before people are told: etcd takes another one only some seconds after the last.
pub const MEMBER_FAILURES_TOLD: u32 = 30;
/// How long the first member may take to answer.
pub const MEMBER_START_WAIT: Duration = Duration::from_secs(30);
/// How often the host that decides for the cluster, or a host alone, looks for what has become wrong or is well again.
pub const HEALTH_PERIOD: Duration = Duration::from_secs(10);
/// How long a client that wants a disk that another host has is kept waiting before it is refused: that host may be about to
/// say that it has the disk no more, or its end may be about to become known. Clients wait ten seconds and more.
pub const ATTACH_HOLD: Duration = Duration::from_secs(5);
/// How often it is tried meanwhile.
pub const ATTACH_POLL: Duration = Duration::from_millis(100);
/// How long a host must go on saying that it has clients before a client of another host is refused: it may not have read yet that
/// their connections are closed.
pub const ATTACH_SURE: Duration = Duration::from_secs(1);
/// How often a host looks whether its clients may still have their disks, if no record changes.
pub const ATTACH_PERIOD: Duration = Duration::from_secs(1);
/// How long it may take until clients whose connections are ended are gone: what they have in flight ends first, and another
/// host looks once a second.
pub const DETACH_WAIT: Duration = Duration::from_secs(15);
/// Ranges of 1 MiB that a rollback copies at once.
pub const ROLLBACK_DEPTH: usize = 8;
/// Pause before the directory is told again that a rollback has ended.
pub const ROLLBACK_RETRY: Duration = Duration::from_millis(500);
/// How long an import may go without a connection before its program counts as gone: longer than `qemu-img` needs to start.
pub const IMPORT_IDLE_WAIT: Duration = Duration::from_secs(30);
/// How often it is looked at.
pub const IMPORT_POLL: Duration = Duration::from_secs(1);
/// How long the deletion of a disk waits for the other hosts; they finish it all the same.
pub const DELETION_WAIT: Duration = Duration::from_secs(10);
/// How often it looks, and how long a change waits that another one came before.
pub const DELETION_POLL: Duration = Duration::from_millis(50);
/// How long a component that no record names and that cannot be deleted is left alone: its device may have failed.
pub const DELETION_RETRY: Duration = Duration::from_secs(60);
/// How long connections to another host are kept at most: a certificate that was renewed is shown by then.
pub const POOL_AGE_MAX: Duration = Duration::from_secs(600);
/// How long a host waits for what another one knows before it answers without.
pub const HOST_ANSWER_WAIT: Duration = Duration::from_secs(1);
/// Connections of clients of the API over TLS at once, of those who have shown a certificate.
pub const API_CONNECTIONS_MAX: usize = 512;
/// Those of them that are not through the handshake yet.
pub const API_GREETINGS_MAX: usize = 128;
/// Those of people and hosts without a certificate, who come to redeem a token: they take no place from others.
pub const API_STRANGERS_MAX: usize = 32;
/// How long such a connection may take until it is known whose it is.
pub const API_GREETING_WAIT: Duration = Duration::from_secs(5);
/// How long a connection of somebody without a certificate lasts: long enough to redeem a join token.
pub const API_STRANGER_WAIT: Duration = Duration::from_secs(30);
/// How long a link to the console is good.
pub const SESSION_CODE_WAIT: Duration = Duration::from_secs(60);
/// Links that wait to be opened at once; another is refused.
pub const SESSION_CODES_MAX: usize = 64;
/// How long a session of the console lasts while nobody uses it.
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(3600);
/// How long a session of the console lasts at most.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// Sessions of the console at once on a host; for another one, the one that was idle longest ends.
pub const SESSIONS_MAX: usize = 1024;
/// Passwords that are hashed or compared at once: 19 MiB and tens of milliseconds of a processor each, and guests come first.
pub const PASSWORDS_AT_ONCE: usize = 2;
/// Those that wait for that; another is refused.
pub const PASSWORDS_WAITING: usize = 64;
/// How long they wait at most.
pub const PASSWORD_WAIT: Duration = Duration::from_secs(3);
/// Names and addresses whose failed log-ins are counted for events; the oldest go first.
pub const FAILURES_REMEMBERED: usize = 1024;
/// After how long without another one failed log-ins of a name from an address begin to be counted anew.
pub const FAILURES_FORGOTTEN: Duration = Duration::from_secs(3600);
/// Log-ins at an issuer that have begun and not ended, at once; the oldest go first.
pub const ISSUER_LOG_INS_MAX: usize = 1024;
/// Those from one address: tabs that somebody left open.
pub const ISSUER_LOG_INS_PER_ADDRESS_MAX: usize = 32;
/// How long one may take: people look for their second factor.
pub const ISSUER_LOG_IN_WAIT: Duration = Duration::from_secs(600);
/// How long what an issuer tells of itself, with its keys, is believed before it is asked again.
pub const ISSUER_KNOWN: Duration = Duration::from_secs(300);
/// How soon it is asked again when a token is signed with a key that is not known.
pub const ISSUER_KEYS_PAUSE: Duration = Duration::from_secs(1);
/// How long an issuer that did not answer is left alone.
pub const ISSUER_RETRY: Duration = Duration::from_secs(2);
/// How far the clocks of an issuer and of a host may differ.
pub const ISSUER_CLOCK_TOLERANCE: Duration = Duration::from_secs(300);
/// How long an issuer may take for one answer.
pub const ISSUER_WAIT: Duration = Duration::from_secs(10);
/// Bytes of one answer of an issuer: keys with their chains, or a token of somebody in many groups.
pub const ISSUER_ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long `lsblk` may take: less than what other hosts wait for an answer.
pub const LSBLK_WAIT: Duration = Duration::from_millis(800);
/// How often the stream tells figures.
pub const PULSE_PERIOD: Duration = Duration::from_secs(1);
/// How long the stream waits for more changes of records before it tells them.
pub const PULSE_GATHER: Duration = Duration::from_millis(50);
/// Beats that a slow client of the stream may be behind before it is told that all may have changed.
pub const BEATS_KEPT: usize = 16;
/// Streams of a host at once.
pub const STREAMS_MAX: usize = 512;
/// Pieces of a stream that wait for a slow client.
pub const STREAM_FRAMES: usize = 4;
/// How long nothing may come on a stream before a sign of life does.
pub const STREAM_SIGN: Duration = Duration::from_secs(9);
/// After how long without samples a host counts as silent.
pub const SAMPLES_LATE: Duration = Duration::from_secs(3);
/// Where the console is served, at loopback, if the configuration does not say; if that is taken, at any port.
pub const CONSOLE_PORT: u16 = 8443;
/// How long before its end a host replaces a certificate that it signed itself for browsers.
pub const CONSOLE_CERTIFICATE_LEFT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often a host looks whether it needs another certificate.
pub const RENEWAL_PERIOD: Duration = Duration::from_secs(5);
/// Join tokens that are good at once; another is refused.
pub const TOKENS_MAX: usize = 1000;
/// Certificates of people that are remembered, the newest: who they are is for people to know, and nobody reads a longer list.
pub const PEOPLE_KEPT: usize = 1000;
/// People with a password in a cluster; another is refused. An issuer of OpenID Connect is the better place for more.
pub const PASSWORDS_MAX: usize = 1000;
/// How long a new authority waits until all hosts believe it.
pub const AUTHORITY_WAIT: Duration = Duration::from_secs(30);
/// How long a join token is good for if nothing else is said.
pub const TOKEN_LIFETIME: Duration = Duration::from_secs(3600);
/// Silences of findings that are set at once; another is refused. More would hide what goes on.
pub const SILENCES_MAX: usize = 256;
/// How long findings can be silenced: long enough to wait for a spare part.
pub const SILENCE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Longest text that people give as a reason, or as the name of what something is about: a few lines.
pub const REASON_LENGTH_MAX: usize = 1024;
/// Capacity devices of a host that is asked about and is not there: seven groups of seven.
pub const NEW_DEVICES_MAX: usize = 49;
/// Bytes of a file of a support bundle; of a longer one the end is taken.
pub const SUPPORT_FILE_BYTES_MAX: usize = 4 << 20;
/// Bytes of all files of a host together: half of what the command line reads in one answer, as JSON makes them longer.
pub const SUPPORT_BYTES_MAX: usize = 32 << 20;
/// Disks of which a support bundle has all there is: those with trouble, and the busiest.
pub const SUPPORT_DISKS_MAX: usize = 200;
/// Disks of which it has the histograms, some 40 KiB each: the busiest.
pub const SUPPORT_HISTOGRAMS_MAX: usize = 50;
/// How long a host may take to gather what is asked of it.
pub const SUPPORT_WAIT: Duration = Duration::from_secs(60);
/// Lines of the journal that a support bundle has.
pub const JOURNAL_LINES: usize = 10_000;
/// How long `journalctl` may take.
pub const JOURNAL_WAIT: Duration = Duration::from_secs(20);
/// How long a host waits for another one to begin or end a pass that samples its data.
pub const HOST_ORDER_WAIT: Duration = Duration::from_secs(5);
/// How long a host waits for the sample of another one: 8 MiB at most, over a slow network.
pub const SAMPLE_ANSWER_WAIT: Duration = Duration::from_secs(20);
/// How often it is looked whether a pass has ended.
pub const PASS_WATCH_PERIOD: Duration = Duration::from_millis(500);
