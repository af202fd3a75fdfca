export const cluster = {
  harmless: 'No disk is affected for good',
  harmful: 'Disks are affected',
};
