import type { Texts } from '..';
import { admin } from './admin';
import { cluster } from './cluster';
import { disk } from './disk';
import { disks } from './disks';
import { overview } from './overview';
import { policies } from './policies';
import { shell } from './shell';
import { words } from './words';

export const de: Texts = { shell, words, overview, disks, disk, policies, cluster, admin };
