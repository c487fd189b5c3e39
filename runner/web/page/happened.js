// What happened to a task and what was decided about it, as the journal has it.

import { h, fill, table } from './dom.js';
import { get } from './client.js';
import { now } from './live.js';
import { ms } from './format.js';

const time = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const date = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' });

const stamp = (at) => (Math.abs(now() - at) < 18 * 3600e3 ? time : date).format(at);
const many = (n, word) => `${n} ${n === 1 ? word : word + 's'}`;

/** happened fills box; the returned function brings it up to date. */
export function happened(box, path, signal) {
  const rows = table('Decisions, the earliest first', [
    { title: 'When', cell: (l) => l.at ? h('time', { datetime: l.at }, stamp(ms(l.at))) : '' },
    { title: 'Attempt', cell: (l) => l.attempt || '', right: true },
    { title: 'What', cell: (l) => l.left ? h('em', { class: 'dim' }, l.text) : l.text },
  ], 'The journal has nothing about it any more.');
  const notes = h('p', { class: 'dim' }), list = h('div', { class: 'decisions', tabindex: '0', role: 'region', 'aria-label': 'Decisions' }, rows.element);
  fill(box, h('h2', {}, 'Decisions'), list, notes);
  return async () => {
    const life = await get(`${path}/history`, signal);
    const lines = life.lines.map((l, i) => ({ ...l, key: `${i < (life.gap || 0) ? '' : (life.left_out || 0)}.${i}` }));
    if (life.left_out) lines.splice(life.gap, 0, { key: 'gap', left: true, text: `${many(life.left_out, 'line')} in between left out` });
    if (life.waits) lines.push({ key: 'waits', left: true, text: `waits now: ${life.waits}` });
    rows.update(lines, (l) => l.key);
    const said = [
      life.gone && 'The journal does not reach back to its submission.',
      life.unread && `The journal is long: from ${stamp(ms(life.unread.from))} to ${stamp(ms(life.unread.until))} it was not looked through.`,
    ].filter(Boolean);
    notes.textContent = said.join(' ');
    notes.hidden = !said.length;
  };
}
