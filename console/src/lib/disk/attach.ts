/** How a guest attaches by an address of the API, as text to paste. The command line prints the same, and more forms. */

export interface Target {
  kind: 'unix' | 'tcp';
  /** Path of the socket, or the host. */
  place: string;
  port: number | null;
  exportName: string;
}

/** Requests of a guest wait for as long as this while the host's daemon restarts, as `drystone attach` has it. */
const RECONNECT_SECONDS = 300;

/** Of `nbd://HOST:PORT/NAME` or `nbd+unix:///NAME?socket=PATH`; null for others, such as those with TLS. */
export function parseTarget(address: string): Target | null {
  const unix = /^nbd\+unix:\/\/\/([^?]*)\?socket=(.+)$/.exec(address);
  if (unix) return { kind: 'unix', place: decodeURIComponent(unix[2] ?? ''), port: null, exportName: decodeURIComponent(unix[1] ?? '') };
  const tcp = /^nbd:\/\/(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/(.*)$/.exec(address);
  if (!tcp) return null;
  const host = (tcp[1] ?? '').replace(/^\[|\]$/g, '');
  return { kind: 'tcp', place: host, port: Number(tcp[2] ?? '10809'), exportName: decodeURIComponent(tcp[3] ?? '') };
}

/** QEMU reads a comma in a value as two. */
const value = (text: string) => text.replaceAll(',', ',,');

export function qemuText(target: Target): string {
  const server =
    target.kind === 'unix'
      ? `server.type=unix,server.path=${value(target.place)}`
      : `server.type=inet,server.host=${value(target.place)},server.port=${target.port}`;
  const node = `disk-${target.exportName.replace(/[^A-Za-z0-9._-]/g, '-')}`;
  return (
    `-blockdev driver=nbd,node-name=${node},${server},export=${value(target.exportName)},cache.direct=on,discard=unmap,` +
    `reconnect-delay=${RECONNECT_SECONDS} -device virtio-blk-pci,drive=${node}`
  );
}

const xml = (text: string) => text.replace(/[&<>'"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

export function libvirtText(target: Target): string {
  const host =
    target.kind === 'unix'
      ? `<host transport='unix' socket='${xml(target.place)}'/>`
      : `<host name='${xml(target.place)}' port='${target.port}'/>`;
  return [
    "<disk type='network' device='disk'>",
    "  <driver name='qemu' type='raw' cache='none' discard='unmap'/>",
    `  <source protocol='nbd' name='${xml(target.exportName)}'>`,
    `    ${host}`,
    '  </source>',
    "  <target dev='vda' bus='virtio'/>",
    '</disk>',
  ].join('\n');
}
