// Figures and times for people.

const gib = 2 ** 30;

export function memory(bytes) {
  if (!bytes) return '0';
  const n = bytes / gib;
  return n >= 100 ? `${n.toFixed(0)} GiB` : n >= 0.95 ? `${n.toFixed(1)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}

export function percent(share) { return `${Math.round(share * 100)} %`; }

/** span writes a length of time in seconds. */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor(s % 3600 / 60)).padStart(2, '0')} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

export function ms(text) { return text && !text.startsWith('0001-') ? Date.parse(text) : 0; }

/** between writes the time from one instant to another, both in milliseconds. */
export function between(from, to) { return from && to ? span((to - from) / 1000) : ''; }

/** minutes writes a length of time that is not to change every second. */
export function minutes(seconds) { return seconds < 60 ? '< 1 min' : span(Math.floor(seconds / 60) * 60); }

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

/** when writes an instant, with the day if it is far from now. */
export function when(at, now) {
  if (!at) return '';
  return Math.abs(now - at) < 18 * 3600e3 ? clock.format(at) : day.format(at);
}

/** energy writes joules. */
export function energy(joules) {
  const kwh = joules / 3.6e6;
  return kwh >= 0.095 ? `${kwh.toFixed(1)} kWh` : `${(joules / 3600).toFixed(0)} Wh`;
}

const outcomes = {
  'gpu-oom': 'out of GPU memory', 'host-oom': 'out of host memory', 'mps-fault': 'MPS fault', 'cannot-start': 'could not start', program: 'program failed',
  infrastructure: 'infrastructure failed', evicted: 'evicted', stopped: 'stopped', ok: 'ended well',
};
export function outcome(word) { return outcomes[word] || word || ''; }

/** tone of a phase or outcome: good, bad, busy, quiet. */
export function tone(word) {
  if (['running', 'launching', 'resuming'].includes(word)) return 'busy';
  if (['succeeded', 'ok'].includes(word)) return 'good';
  if (['failed', 'gpu-oom', 'host-oom', 'program', 'cannot-start', 'mps-fault', 'infrastructure', 'evicted'].includes(word)) return 'bad';
  if (['suspended', 'suspending', 'recovering', 'stopping'].includes(word)) return 'warn';
  return 'quiet';
}

const hues = 12, given = new Map();

/** hue gives a user a colour, the same on every page, and one of their own while there are some. */
export function hue(user) {
  if (!given.has(user)) {
    let n = 7;
    for (const c of user) n = (n * 31 + c.codePointAt(0)) >>> 0;
    const taken = new Set(given.values());
    for (let i = 0; i < hues && taken.has(n % hues); i++) n++;
    given.set(user, n % hues);
  }
  return `hue${given.get(user)}`;
}
