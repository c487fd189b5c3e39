// Every task that is kept, with a search.

import { h, fill, table } from './dom.js';
import { page } from './client.js';
import { now } from './live.js';
import { memory, between, ms, when, outcome } from './format.js';
import { chip, taskLink, field } from './parts.js';

export async function history(box, signal) {
  const name = h('input', { type: 'search', placeholder: 'part of a name, or exp-*' }), user = h('input', { type: 'text', autocomplete: 'off' });
  const phase = h('select', {}, [['any', ''], ['succeeded', 'succeeded'], ['failed', 'failed'], ['cancelled', 'cancelled'], ['not ended', 'estimating,held,queued,recovering,launching,running,suspending,suspended,resuming,stopping']].map(([text, value]) => h('option', { value }, text)));
  const more = h('button', { type: 'button', hidden: true, onclick: () => load(false) }, 'Older tasks');
  const note = h('p', { class: 'dim', role: 'status' });
  const rows = table('Tasks, the newest first', [
    { title: 'Task', cell: (t) => taskLink(t) },
    { title: 'User', cell: (t) => t.user },
    { title: 'State', cell: (t) => chip(t.phase, t.phase + (t.phase === 'failed' && t.reason_code ? ': ' + outcome(t.reason_code) : '')) },
    { title: 'Submitted', cell: (t) => when(ms(t.submitted), now()) },
    { title: 'Ran', cell: (t) => ms(t.started) && ms(t.ended) ? between(ms(t.started), ms(t.ended)) : '', right: true },
    { title: 'GPUs', cell: (t) => t.gpu_count, right: true },
    { title: 'Estimated', cell: (t) => t.estimate?.memory ? memory(t.estimate.memory) : t.estimate?.whole_gpu ? 'whole GPU' : '', right: true },
    { title: 'Most used', cell: (t) => { const peak = Math.max(0, ...(t.attempts || []).map((a) => a.peak || 0)); return peak ? memory(peak) : ''; }, right: true },
    { title: 'Attempts', cell: (t) => t.attempts?.length || '', right: true },
    { title: 'Image', cell: (t) => h('code', {}, t.image) },
  ], 'No task fits.');
  let list = [], before = 0, turn = 0;
  fill(box, h('h1', {}, 'History'), h('form', { class: 'filter', onsubmit: (e) => { e.preventDefault(); load(true); } }, field('Name', name), field('User', user), field('State', phase), h('button', { class: 'main' }, 'Search')), rows.element, more, note);

  async function load(anew) {
    const mine = ++turn;
    if (anew) [list, before] = [[], 0];
    const wanted = list.length + 50;
    // A page may have few that fit: go on, but not through all of a long history.
    for (let tries = 0; list.length < wanted && tries < 20; tries++) {
      const q = new URLSearchParams({ all: 'true', limit: '50' });
      if (name.value.trim()) q.set('name', /[*?]/.test(name.value) ? name.value.trim() : `*${name.value.trim()}*`);
      if (user.value.trim()) q.set('user', user.value.trim());
      if (phase.value) q.set('phase', phase.value);
      if (before) q.set('before', before);
      let found;
      try {
        found = await page(`/v1/tasks?${q}`);
      } catch (e) {
        note.textContent = e.message;
        return;
      }
      if (mine !== turn || signal.aborted) return;
      list = list.concat(found.list || []);
      before = found.next;
      if (!before) break;
    }
    rows.update(list, (t) => t.id);
    more.hidden = !before;
    note.textContent = `${list.length} ${list.length === 1 ? 'task' : 'tasks'}${before ? ', and there are older ones' : ''}.`;
  }
  await load(true);
}
