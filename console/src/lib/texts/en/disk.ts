export const disk = {
  histogramFacts: (count: string, min: string, mean: string, max: string) => `${count} values · min ${min} · mean ${mean} · max ${max}`,
  bucket: 'Range',
  count: 'Count',
  share: 'Share',
};
