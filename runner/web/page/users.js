// What each user has now, and has used lately.

import { h, fill, table } from './dom.js';
import { get } from './client.js';
import { state, now } from './live.js';
import { memory, percent, ms, energy, hue } from './format.js';

const hour = 3600e3;

export async function users(box, signal) {
  let length = 24 * hour;
  const pick = h('select', { onchange: () => { length = Number(pick.value); load(); } }, [['the last 24 hours', 24], ['the last 7 days', 168], ['the last 30 days', 720]].map(([text, hours]) => h('option', { value: hours * hour }, text)));
  const note = h('p', { class: 'dim' });
  let top = 1;
  const rows = table('Users', [
    { title: 'User', cell: (u) => [h('span', { class: `swatch ${hue(u.name)}` }), ' ', u.name] },
    { title: 'Tasks with GPUs', cell: (u) => of(u.tasks, u.account?.quota_tasks), right: true },
    { title: 'Waiting', cell: (u) => u.waiting, right: true },
    { title: 'GPUs', cell: (u) => of(u.gpus, u.account?.quota_gpus), right: true },
    { title: 'Memory booked', cell: (u) => [memory(u.memory), u.account?.quota_memory ? ` of ${memory(u.account.quota_memory)}` : ''], right: true },
    { title: 'Fair share', cell: (u) => u.account?.share ? percent(u.account.share) : '', right: true },
    { title: 'GPU hours', cell: (u) => h('div', { class: 'meter' }, h('div', { class: 'track' }, h('div', { class: 'level', style: { width: `${u.hours / top * 100}%` } })), h('span', { class: 'num' }, u.hours.toFixed(1))) },
    { title: 'Runs', cell: (u) => u.runs, right: true },
    { title: 'Out of memory', cell: (u) => u.ooms || '', right: true },
    { title: 'Energy in all', cell: (u) => u.energy ? energy(u.energy) : '', right: true },
  ], 'Nobody has submitted a task in this time.');
  fill(box, h('h1', {}, 'Users'), h('form', { class: 'filter', onsubmit: (e) => e.preventDefault() }, h('label', { class: 'field' }, h('span', {}, 'GPU hours and runs of'), pick)), rows.element, note);

  async function load() {
    const until = now(), since = until - length;
    const [line, accounts, info] = await Promise.all([
      get(`/v1/timeline?since=${new Date(since).toISOString()}&until=${new Date(until).toISOString()}`, signal), get('/v1/quotas', signal), get('/v1/info', signal)]);
    const all = sums(line, accounts, info, since, until);
    top = Math.max(0.01, ...all.map((u) => u.hours));
    rows.update(all, (u) => u.name);
    note.textContent = 'A GPU that several tasks share counts for each of them. Time for which a task was suspended does not count.' + (line.cut ? ' The oldest tasks are left out.' : '') + ' carma report has more.';
  }
  await load();
  const timer = setInterval(() => { if (!document.hidden) load().catch(() => {}); }, 15000);
  signal.addEventListener('abort', () => clearInterval(timer));
}

const of = (n, most) => most ? `${n} of ${most}` : n;

function sums(line, accounts, info, since, until) {
  const users = new Map();
  const user = (name) => {
    if (!users.has(name)) users.set(name, { name, tasks: 0, waiting: 0, gpus: 0, memory: 0, hours: 0, runs: 0, ooms: 0, energy: info.energy?.users?.[name] || 0 });
    return users.get(name);
  };
  for (const r of line.runs) {
    const u = user(r.user), end = Math.min(until, ms(r.until) || until), begin = Math.max(since, ms(r.from));
    u.runs++;
    u.hours += Math.max(0, end - begin - (r.suspended || 0) / 1e6) / hour * r.gpus.length;
    if (r.outcome === 'gpu-oom' || r.outcome === 'host-oom') u.ooms++;
  }
  for (const t of state.tasks.values()) if (!t.ended && !t.gpus?.length) user(t.user).waiting++;
  for (const a of accounts.filter((a) => a.user)) Object.assign(user(a.user), { account: a, tasks: a.tasks, gpus: a.gpus, memory: a.memory });
  return [...users.values()].sort((a, b) => b.hours - a.hours || a.name.localeCompare(b.name));
}
