//! The program as a whole, from outside: the real binary, real devices and files, real clients.
//!
//! Relies on the tools that `./x test` installs; one that is missing fails the test and is named with its package.
//! Nothing here may reach into the program's own modules.

mod attach;
mod away;
mod backups;
mod bad_input;
mod care;
mod change;
mod clients;
mod clones;
mod cluster;
mod compression;
mod crash;
mod damage;
mod devices;
mod emptying;
mod estimate;
mod etcd;
mod file_systems;
mod former;
mod groups;
mod grow;
mod guide;
mod host;
mod images;
mod in_use;
mod lab;
mod leave;
mod limits;
mod live_rules;
mod managed;
mod members;
mod monitoring;
mod moves;
mod nbd;
mod operate;
mod overdue;
mod parity;
mod rebuild;
mod refusals;
mod repair;
mod replace;
mod rights;
mod room;
mod schedules;
mod shards;
mod snapshots;
mod space;
mod sparse;
mod stand_in;
mod together;
mod tools;
mod upgrade;
