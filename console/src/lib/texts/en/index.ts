import { admin } from './admin';
import { cluster } from './cluster';
import { disk } from './disk';
import { disks } from './disks';
import { overview } from './overview';
import { policies } from './policies';
import { shell } from './shell';
import { words } from './words';

export const en = { shell, words, overview, disks, disk, policies, cluster, admin };
