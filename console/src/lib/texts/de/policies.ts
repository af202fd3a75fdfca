/** Richtlinien. */

import type { Texts } from '..';

const count = (n: number, one: string, many: string) => `${n} ${n === 1 ? one : many}`;

export const policies: Texts['policies'] = {
  title: 'Richtlinien',
  create: 'Richtlinie anlegen',
  name: 'Name',
  rules: 'Regeln',
  disks: 'Disks',
  builtIn: 'eingebaut',
  explained: 'Was diese Richtlinie jetzt bedeutet',
  asDefault: 'Wie neue Disks sie bekommen',
  usable: 'Kann verwendet werden',
  unsupported: 'Kann jetzt nicht verwendet werden',
  usedBy: (n) => `${count(n, 'Disk folgt', 'Disks folgen')} ihr`,
  noDisks: 'Keine Disk folgt dieser Richtlinie.',
  state: 'Zustand',
  cause: 'Grund',
  change: 'Regeln ändern',
  changeTitle: (name) => `Richtlinie ${name} ändern`,
  changeWhat: 'Disks, die der Richtlinie folgen, ändern sich mit ihr. Regeln, die nicht genannt sind, bleiben.',
  deleteTitle: (name) => `Richtlinie ${name} löschen`,
  deleteWhat: 'Disks behalten die Regeln, die sie jetzt haben, und folgen keiner Richtlinie mehr.',
  newTitle: 'Richtlinie anlegen',
  base: 'Beruht auf',
  ruleHint: 'Leer: wie in der Richtlinie, auf der sie beruht',
  choices: {
    failures_to_tolerate: 'Tolerierte Ausfälle',
    method: 'Verfahren',
    stripes: 'Stripes',
    space_reservation: 'Reservierter Platz',
    iops_limit: 'IOPS-Grenze',
    bytes_limit: 'Durchsatzgrenze',
    read_locality: 'Lokalität beim Lesen',
    site_locality: 'Lokalität des Standorts',
    checksum: 'Prüfsummen',
    compression: 'Kompression',
    force_provisioning: 'Anlegen erzwingen',
    read_cache_reservation: 'Reservierter Lese-Cache',
    snapshots: 'Zeitpläne für Snapshots',
  },
  size: 'Größe einer Disk',
};
