// What the browser tests run against: the program itself, as `drystone demo --hosts 4`, and a host with certificates and people.
// All of it is on loopback and below one folder, and ends with the tests.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PATIENCE_MS = 120_000;
/** Longer than all tests take. */
const GUEST_MS = 3_600_000;
/** As many as RAID-5 needs. */
const HOSTS = 4;

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What a process said that has ended: there is nothing more to wait for. */
class Ended extends Error {}

/** Asks until the answer is one; `what` is in the failure. */
export async function eventually(what, ask, patience = PATIENCE_MS) {
  const until = performance.now() + patience;
  let failure;
  while (performance.now() < until) {
    try {
      const answer = await ask();
      if (answer) return answer;
    } catch (error) {
      if (error instanceof Ended) throw error;
      failure = error;
    }
    await sleep(100);
  }
  throw new Error(`waited ${patience / 1000} s for: ${what}`, { cause: failure });
}

export function freePort() {
  const server = createServer();
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  }));
}

/** Asks a process to end, and waits until it has. */
function ended(child) {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.on('exit', resolve);
    child.kill('SIGTERM');
  });
}

/** The program, the folder and the processes that a run of tests has. */
export class Stage {
  #processes = [];
  #devices = [];

  constructor(program) {
    this.program = program;
    this.folder = mkdtempSync(join(tmpdir(), 'drystone-browser-'));
    process.on('exit', () => this.#clear());
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
  }

  /** Runs the program and gives what it printed. */
  run(...words) {
    return execFileSync(this.program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** Starts a process that lives as long as the tests; `text()` is what it has printed so far. */
  start(command, ...words) {
    const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    for (const pipe of [child.stdout, child.stderr]) pipe.on('data', (part) => (text += part));
    child.on('error', (error) => (text += error.message));
    this.#processes.push(child);
    return { text: () => text, hasEnded: () => child.exitCode !== null, end: () => ended(child) };
  }

  /** A blank block device of its own: a loop device, for which root is needed. */
  loopDevice(name, bytes) {
    const file = join(this.folder, name);
    execFileSync('truncate', ['--size', String(bytes), file]);
    const device = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim();
    this.#devices.push(device);
    return device;
  }

  async end() {
    await Promise.all(this.#processes.reverse().map(ended));
    this.#clear();
  }

  #clear() {
    for (const child of this.#processes) if (child.exitCode === null) child.kill('SIGKILL');
    for (const device of this.#devices.splice(0)) execFileSync('losetup', ['--detach', device]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** `drystone demo` with several hosts, and orders to them. */
export class Demo {
  #process;

  constructor(stage, hosts = HOSTS) {
    this.stage = stage;
    this.hosts = hosts;
    this.folder = join(stage.folder, 'demo');
  }

  async start() {
    const demo = this.stage.start(this.stage.program, 'demo', '--hosts', String(this.hosts), '--bare', '--dir', this.folder);
    this.#process = demo;
    await eventually('the hosts of the demo', () => {
      if (demo.hasEnded()) throw new Ended(demo.text());
      return demo.text().includes('/in#');
      // Many hosts on few cores start one after another.
    }, PATIENCE_MS * Math.max(1, this.hosts / 8));
  }

  /** Stops all hosts. What they have stays, for another demo in the same folder. */
  async stop() {
    await this.#process.end();
  }

  /** Asks a host by the command line, and gives the answer. */
  ask(...words) {
    return this.askAt('a', ...words);
  }

  askAt(host, ...words) {
    const text = this.stage.run('--json', '--api', `unix:${this.folder}/${host}/d/api.sock`, ...words);
    return text.trim() === '' ? null : JSON.parse(text);
  }

  order(action, host) {
    return this.stage.run('demo', 'host', action, host, '--dir', this.folder);
  }

  /** A link that logs in once. */
  link() {
    return this.ask('console').links[0];
  }

  /** What needs attention; for that the command line fails. */
  findings() {
    try {
      return this.ask('health').findings;
    } catch (error) {
      return JSON.parse(error.stdout).findings;
    }
  }

  #address(disk, host = 'a') {
    return this.askAt(host, 'disk', 'show', disk).addresses.find((each) => each.startsWith('nbd+unix'));
  }

  /** Writes a pattern to a disk as a guest does, by NBD. */
  write(disk, bytes) {
    execFileSync('qemu-io', ['-f', 'raw', '-c', `write -P 90 0 ${bytes}`, this.#address(disk)], { stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** A guest that has a disk for as long as the tests run, or the disk is there, and does nothing with it. */
  attach(disk) {
    this.stage.start('qemu-io', '-f', 'raw', '-c', `sleep ${GUEST_MS}`, this.#address(disk));
  }

  /** Whether a guest of a host may attach a disk. */
  mayAttach(disk, host) {
    try {
      execFileSync('qemu-io', ['-r', '-f', 'raw', '-c', 'read 0 4k', this.#address(disk, host)], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  }

  /** Has fio work on a disk for as long as the tests run. */
  load(disk, ...options) {
    this.stage.start('fio', `--name=${disk}`, '--ioengine=nbd', `--uri=${this.#address(disk)}`, ...options);
  }
}

/** One host of a cluster with certificates: people with roles log in to its console. */
export class SecuredHost {
  constructor(stage) {
    this.stage = stage;
    this.folder = join(stage.folder, 'secured');
  }

  async start() {
    const [etcd, etcdPeers, api, peers] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
    this.api = `https://127.0.0.1:${api}`;
    const client = `http://127.0.0.1:${etcd}`;
    const peer = `http://127.0.0.1:${etcdPeers}`;
    mkdirSync(this.folder);
    this.stage.start('etcd', '--data-dir', join(this.folder, 'etcd'), '--listen-client-urls', client, '--advertise-client-urls', client,
      '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`);
    const config = join(this.folder, 'host.toml');
    writeFileSync(config, `name = "s"
data_dir = "d"
[listen]
http = ["unix:api.sock", "127.0.0.1:${api}"]
nbd = ["unix:nbd.sock"]
[cluster]
directory = "etcd"
peers = "127.0.0.1:${peers}"
[cluster.etcd]
endpoints = ["${client}"]
[memory]
buffers = "128MiB"
tables = "64MiB"
[[group]]
log = "log.img"
capacity = ["capacity.img"]
log_size = "512MiB"
file_size = "4GiB"
create = "if-blank"
`);
    await eventually('etcd', () => this.stage.run('cluster', 'init', '--config', config, '--name', 'browser'));
    const host = this.stage.start(this.stage.program, 'host', '--config', config);
    await eventually('the host with certificates', () => {
      if (host.hasEnded()) throw new Ended(host.text());
      return this.#asRoot('status');
    });
  }

  #asRoot(...words) {
    return this.stage.run('--api', `unix:${this.folder}/d/api.sock`, ...words);
  }

  /** Gives a person a certificate with a role. */
  addPerson(name, role) {
    const token = this.#asRoot('person', 'token', name, '--role', role).trim();
    this.stage.run('--identity', join(this.folder, name), 'login', token);
  }

  removePerson(name) {
    this.#asRoot('person', 'remove', name, '--yes');
  }

  /** A link with the rights of a person. */
  link(name) {
    return JSON.parse(this.stage.run('--json', '--api', this.api, '--identity', join(this.folder, name), 'console')).links[0];
  }
}
