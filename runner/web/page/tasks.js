// All unfinished tasks: those with GPUs, the queue with its reasons, those that are held.

import { h, fill, table } from './dom.js';
import { state, watch, now } from './live.js';
import { memory, percent, minutes, ms, when } from './format.js';
import { chip, taskLink, troubles, field } from './parts.js';
import { buttons } from './actions.js';
import { expected } from './overview.js';

const gpus = (t) => t.gpus?.length ? t.gpus.join(', ') : t.gpu_count ? `${t.gpu_count} wanted` : 'none';
const common = { title: 'Task', cell: (t) => [...taskLink(t), t.priority && [' ', chip('held', t.priority)]] };
const user = { title: 'User', cell: (t) => t.user };
const actions = (only) => ({ title: 'Actions', cell: (t) => h('div', { class: 'row' }, buttons(t, only)) });

export function tasks(box, signal) {
  const search = h('input', { type: 'search', placeholder: 'name, user, group or number', 'aria-label': 'Filter tasks', oninput: () => draw() });
  const mine = h('input', { type: 'checkbox', onchange: () => draw() });
  const running = table('Tasks with GPUs', [
    common, user,
    { title: 'State', cell: (t) => [chip(t.phase), t.idle && ' idle'] },
    { title: 'GPUs', cell: gpus },
    { title: 'Progress', cell: (t) => progress(t) },
    { title: 'Left', cell: (t) => ms(t.eta) ? minutes((ms(t.eta) - now()) / 1000) : '', right: true },
    { title: 'Slowdown', cell: (t) => t.slowdown ? `${t.slowdown.toFixed(2)}×` : '', right: true },
    { title: 'Booked', cell: (t) => t.need ? memory(t.need) : 'whole GPU', right: true },
    { title: 'Used', cell: (t) => memory(used(t)), right: true },
    actions(['suspend', 'stop']),
  ], 'Nothing runs.');
  const queue = table('The queue', [
    { title: 'Place', cell: (t) => t.place, right: true },
    common, user,
    { title: 'GPUs', cell: (t) => t.gpu_count, right: true },
    { title: 'Memory', cell: (t) => t.need ? memory(t.need) : 'whole GPU', right: true },
    { title: 'Waiting', cell: (t) => minutes((now() - ms(t.submitted)) / 1000), right: true },
    { title: 'Reason', cell: (t) => [t.phase === 'recovering' && [chip(t.phase), ' '], t.waits || (t.place > 100 ? 'see the task' : '')] },
    { title: 'Expected start', cell: (t) => expected(t) },
    actions(['hold', 'stop']),
  ], 'Nothing waits.');
  const held = table('Held and suspended tasks', [
    common, user,
    { title: 'State', cell: (t) => chip(t.phase) },
    { title: 'Reason', cell: (t) => t.waits || (t.away ? `off its GPUs since ${when(ms(t.away), now())}` : '') },
    { title: 'Submitted', cell: (t) => when(ms(t.submitted), now()), right: true },
    actions(['release', 'resume', 'stop']),
  ], 'None.');
  const alarms = h('div', {}), counts = [h('span', { class: 'count' }), h('span', { class: 'count' }), h('span', { class: 'count' })];
  fill(box, h('h1', { class: 'unseen' }, 'Tasks'), alarms,
    h('form', { class: 'filter', onsubmit: (e) => e.preventDefault() }, field('Filter', search), h('label', { class: 'check' }, mine, 'only mine')),
    h('section', {}, h('h2', {}, 'Running ', counts[0]), running.element), h('section', {}, h('h2', {}, 'Queue ', counts[1]), queue.element),
    h('section', {}, h('h2', {}, 'Held and suspended ', counts[2]), held.element));

  function draw() {
    fill(alarms, troubles());
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = (t) => !t.ended && (!mine.checked || t.uid === state.me.uid) && words.every((w) => `${t.name} ${t.user} ${t.group || ''} #${t.id} ${t.phase}`.toLowerCase().includes(w));
    const all = [...state.tasks.values()].filter(wanted).sort((a, b) => a.id - b.id);
    const minute = Math.floor(now() / 60000);
    const places = new Map(state.queue.map((id, i) => [id, i + 1]));
    const placed = ['launching', 'running', 'stopping', 'suspending', 'resuming'];
    const lists = [all.filter((t) => placed.includes(t.phase)),
      all.filter((t) => places.has(t.id)).map((t) => ({ ...t, place: places.get(t.id) })).sort((a, b) => a.place - b.place),
      all.filter((t) => !placed.includes(t.phase) && !places.has(t.id))];
    [running, queue, held].forEach((table, i) => {
      table.update(lists[i], (t) => t.id, (t) => JSON.stringify(t) + minute + used(t));
      counts[i].textContent = lists[i].length;
    });
  }
  const stop = watch(draw);
  signal.addEventListener('abort', stop);
}

// used is the most that a task uses on one of its GPUs.
function used(t) {
  return state.gpus.reduce((n, g) => Math.max(n, ...g.tasks.filter((r) => r.task === t.id).map((r) => r.used)), 0);
}

function progress(t) {
  if (!t.share) return '';
  return h('div', { class: 'meter' }, h('div', { class: 'track', role: 'progressbar', 'aria-label': `Progress of task ${t.id}`, 'aria-valuenow': Math.round(t.share * 100), 'aria-valuemin': 0, 'aria-valuemax': 100 },
    h('div', { class: 'level', style: { width: `${t.share * 100}%` } })), h('span', { class: 'num' }, t.doubt ? `~${percent(t.share)}` : percent(t.share)));
}
