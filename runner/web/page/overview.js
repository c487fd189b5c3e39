// The overview: GPUs with their tasks stacked in memory, what comes next, what ended.

import { h, fill, table } from './dom.js';
import { state, watch, now } from './live.js';
import { memory, percent, minutes, ms, when, hue, outcome } from './format.js';
import { troubles, taskLink, chip } from './parts.js';

export function overview(box, signal) {
  const alarms = h('div', {}), figures = h('dl', { class: 'figures' }), cards = h('div', { class: 'cards' });
  const next = table('The first tasks in the queue', [
    { title: 'Task', cell: (t) => taskLink(t) },
    { title: 'User', cell: (t) => t.user },
    { title: 'Reason', cell: (t) => t.waits || '' },
    { title: 'Expected', cell: (t) => expected(t) },
  ], 'Nothing waits.');
  const ended = table('Tasks that ended last', [
    { title: 'Task', cell: (t) => taskLink(t) },
    { title: 'User', cell: (t) => t.user },
    { title: 'End', cell: (t) => chip(t.phase, t.phase + (t.reason_code && t.phase === 'failed' ? ': ' + outcome(t.reason_code) : '')) },
    { title: 'When', cell: (t) => when(ms(t.ended), now()), right: true },
  ], 'No task has ended yet.');
  fill(box, h('h1', { class: 'unseen' }, 'Overview'), alarms, figures, h('h2', { class: 'unseen' }, 'GPUs'), cards,
    h('div', { class: 'two' }, h('section', {}, h('h2', {}, 'Next in the queue'), next.element), h('section', {}, h('h2', {}, 'Ended last'), ended.element)));
  const made = new Map(); // UUID -> {print, element}
  const stop = watch(() => {
    fill(alarms, troubles());
    fill(figures, summary());
    drawCards(cards, made);
    if (!performance.getEntriesByName('carma-first').length) performance.mark('carma-first');
    next.update(state.queue.slice(0, 5).map((id) => state.tasks.get(id)).filter(Boolean), (t) => t.id);
    const done = [...state.tasks.values()].filter((t) => t.ended).sort((a, b) => ms(b.ended) - ms(a.ended) || b.id - a.id);
    ended.update(done.slice(0, 5), (t) => t.id);
  });
  signal.addEventListener('abort', stop);
}

export function expected(t) {
  if (!t.start) return '';
  const from = ms(t.start.earliest), to = ms(t.start.latest);
  const text = when(from, now());
  return to && to - from > 60e3 ? `${text} to ${when(to, now())}` : to ? `about ${text}` : `${text} or later`;
}

function summary() {
  const i = state.info, busy = state.gpus.filter((g) => g.tasks.length).length;
  const sum = (f) => state.gpus.reduce((n, g) => n + f(g), 0);
  const all = [
    ['Running', i.running], ['Queued', i.queued], ['Held', i.held], i.suspended && ['Suspended', i.suspended],
    ['GPUs with tasks', `${busy} of ${state.gpus.length}`],
    ['Memory reserved', `${memory(sum((g) => g.reserved))} of ${memory(sum((g) => g.capacity))}`],
    ['Power', `${Math.round(sum((g) => g.power_w))} W`],
  ];
  return all.filter(Boolean).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)));
}

function drawCards(cards, made) {
  const keep = new Set();
  state.gpus.forEach((g, i) => {
    const residents = g.tasks.map((r) => ({ ...r, ...pick(state.tasks.get(r.task)) }));
    const print = JSON.stringify([g, residents]);
    let card = made.get(g.uuid);
    keep.add(g.uuid);
    if (card?.print !== print) {
      const element = drawCard(g, residents);
      const focused = card?.element.contains(document.activeElement) && document.activeElement.getAttribute('href');
      if (card) card.element.replaceWith(element);
      if (focused) element.querySelector(`a[href="${focused}"]`)?.focus();
      card = { print, element };
      made.set(g.uuid, card);
    }
    if (cards.children[i] !== card.element) cards.insertBefore(card.element, cards.children[i] || null);
  });
  for (const [uuid, card] of made) {
    if (!keep.has(uuid)) {
      card.element.remove();
      made.delete(uuid);
    }
  }
}

const pick = (t) => t && { user: t.user, share: t.share, doubt: t.doubt, eta: t.eta, slowdown: t.slowdown, phase: t.phase, idle: t.idle };

function drawCard(g, residents) {
  const notes = [
    g.fault && chip('failed', g.fault), g.closed && chip('held', `drained${g.closed.by ? ' by ' + g.closed.by : ''}`),
    g.held_for && chip('held', `kept free for task ${g.held_for}`), ...(g.warnings || []).map((w) => chip('stopping', w)),
    ...(g.reservations || []).map((r) => chip('held', `reserved for ${r.for}`)),
  ];
  const free = g.capacity - g.headroom - g.foreign - residents.reduce((n, r) => n + Math.max(r.grant, r.used), 0);
  return h('article', { class: 'card', 'aria-label': `GPU ${g.index}` },
    h('header', {}, h('h3', {}, `GPU ${g.index}`), h('span', { class: 'dim model', title: g.model }, g.model.replace(/^NVIDIA /, '')), h('span', { class: 'dim num' }, memory(g.capacity))),
    h('div', { class: 'notes' }, notes),
    stack(g, residents, free),
    h('ul', { class: 'residents' }, residents.map(resident), (g.suspended || []).map((a) => h('li', {}, h('span', { class: 'swatch none' }), h('a', { href: `#/task/${a.task}`, title: a.name }, a.name), h('span', { class: 'more dim' }, 'suspended')))),
    residents.length === 0 && h('p', { class: 'dim idle' }, g.closed || g.fault ? 'No tasks.' : 'No tasks: free.'),
    h('footer', {}, meter('Activity', g.smact, g.metrics === 'none' ? 'not known' : (g.coarse ? '≤ ' : '') + percent(g.smact)),
      h('span', { class: 'dim' }, `${g.power_w} W`), g.temperature_c ? h('span', { class: 'dim' }, `${g.temperature_c} °C`) : null));
}

// stack is the GPU's memory: what each task has reserved, and of that what it uses.
function stack(g, residents, free) {
  const part = (bytes) => `${Math.max(0, bytes) / g.capacity * 100}%`;
  const words = residents.map((r) => `${r.name} has ${memory(r.grant)}, uses ${memory(r.used)}`);
  if (g.foreign) words.push(`others use ${memory(g.foreign)}`);
  return h('div', { class: 'stack', role: 'img', 'aria-label': `Memory of GPU ${g.index}: ${words.concat(`${memory(Math.max(0, free))} free`).join('; ')}` },
    residents.map((r) => h('div', { class: `part ${hue(r.user || '')}`, style: { width: part(Math.max(r.grant, r.used)) }, title: `${r.name}: ${memory(r.used)} used of ${memory(r.grant)} reserved` },
      h('div', { class: 'used', style: { width: `${Math.min(100, r.used / Math.max(r.grant, r.used, 1) * 100)}%` } }))),
    g.foreign ? h('div', { class: 'part foreign', style: { width: part(g.foreign) }, title: `${memory(g.foreign)} used by others` }) : null,
    h('div', { class: 'part spare' }),
    g.headroom ? h('div', { class: 'part headroom', style: { width: part(g.headroom) }, title: `${memory(g.headroom)} never booked` }) : null);
}

function resident(r) {
  const left = ms(r.eta) ? `${minutes((ms(r.eta) - now()) / 1000)} left` : '';
  return h('li', {}, h('span', { class: `swatch ${hue(r.user || '')}` }), h('a', { href: `#/task/${r.task}`, title: r.name }, r.name),
    h('span', { class: 'more dim' }, [`${memory(r.used).replace(/ GiB$/, '')} of ${memory(r.grant)}`, r.user, r.phase !== 'running' && r.phase, r.share && (r.doubt ? `~${percent(r.share)}` : percent(r.share)), left, r.slowdown > 1.005 && `slowdown ${r.slowdown.toFixed(2)}×`, r.idle && 'idle', r.alone && 'alone'].filter(Boolean).join(' · ')));
}

export function meter(name, share, text) {
  return h('div', { class: 'meter' }, h('span', { class: 'dim' }, name),
    h('div', { class: 'track', role: 'meter', 'aria-label': name, 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-valuenow': Math.round(share * 100), 'aria-valuetext': text },
      h('div', { class: 'level', style: { width: percent(Math.min(1, share)).replace(' ', '') } })), h('span', { class: 'num' }, text));
}
