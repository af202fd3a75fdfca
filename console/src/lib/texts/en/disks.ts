export const disks = {};
