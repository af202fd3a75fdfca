export { shellWord } from './command';
export { formatBytes, formatCount, formatLatency, formatNumber, formatPercent, formatThroughput, parseSize, percentOf, sizeArgument } from './numbers';
export { formatDuration, formatMoment, formatShortMoment, parseDuration } from './time';
