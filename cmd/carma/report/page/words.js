// Figures as the console writes them.

/** took is a time in seconds, in two units: 120h, 7h02m, 12m05s, 5s. */
export function took(seconds) {
  const s = Math.round(seconds), two = (n) => String(n).padStart(2, '0');
  if (s >= 360000) return `${Math.round(s / 3600)}h`;
  if (s >= 3600) return `${Math.floor(Math.round(s / 60) / 60)}h${two(Math.round(s / 60) % 60)}m`;
  return s >= 60 ? `${Math.floor(s / 60)}m${two(s % 60)}s` : `${s}s`;
}

/** slower is a slowdown; there is none where it is 0. */
export function slower(f) { return f ? `${f.toFixed(2)}x` : '–'; }

export function joules(j) { return j >= 1e6 ? `${(j / 1e6).toFixed(2)} MJ` : j >= 1e3 ? `${(j / 1e3).toFixed(1)} kJ` : `${j} J`; }

// Distances of ticks in seconds that people count in.
export const timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 180000, 360000, 720000, 1800000, 3600000, 7200000, 18000000, 36000000];

/** ticks names instants on an axis of time whose ticks are so far apart. */
export function ticks(all, step) {
  const most = all.at(-1), two = (n) => String(n).padStart(2, '0');
  return all.map((t) => {
    if (t === 0) return '0';
    if (most <= 180 && step < 60) return `${t} s`;
    if (most <= 7200 && step >= 60) return `${t / 60} min`;
    if (step % 3600 === 0) return `${t / 3600} h`;
    const clock = `${Math.floor(t / 3600)}:${two(Math.floor(t % 3600 / 60))}`;
    return step >= 60 ? clock : `${clock}:${two(t % 60)}`;
  });
}

export const ended = ['finished', 'ran out of GPU memory', 'failed or stopped', 'suspended'];
