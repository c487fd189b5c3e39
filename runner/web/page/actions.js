// What can be done with a task, by its owner. The daemon decides who may.

import { h, fill } from './dom.js';
import { post } from './client.js';
import { state } from './live.js';

const verbs = {
  hold: { title: 'Hold', when: (p) => ['estimating', 'queued', 'recovering'].includes(p), text: 'It stays in the list and is not started until it is released.' },
  release: { title: 'Release', when: (p) => p === 'held', text: 'It may start as soon as there is room.' },
  suspend: { title: 'Suspend', when: (p) => p === 'running', text: 'It is taken off its GPUs without ending. Its memory goes to the host. Where the driver cannot do that, it goes on running.' },
  resume: { title: 'Resume', when: (p) => p === 'suspended', text: 'It comes back as soon as there is room.' },
  stop: { title: 'Stop', danger: true, when: (p) => !['stopping', 'succeeded', 'failed', 'cancelled'].includes(p), text: 'It ends for good. What it has not saved is lost.' },
};

/** buttons are those for a task; for another user's only admins have some. */
export function buttons(task, only) {
  if (!state.me || state.me.uid !== task.uid && !state.me.admin) return [];
  return Object.entries(verbs).filter(([name, v]) => v.when(task.phase) && (!only || only.includes(name)))
    .map(([name, v]) => h('button', { type: 'button', class: v.danger ? 'danger' : '', 'aria-label': `${v.title} task ${task.id}, ${task.name}`, 'data-does': `${name} ${task.id}`, onclick: (e) => confirm(name, task, e.currentTarget) }, v.title));
}

function confirm(name, task, from) {
  const v = verbs[name], dialog = document.getElementById('ask');
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const go = h('button', { type: 'button', class: v.danger ? 'danger' : 'main' }, `${v.title} task ${task.id}`);
  const back = h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel');
  go.addEventListener('click', async () => {
    go.disabled = true;
    try {
      await post(`/v1/tasks/${task.id}/${name}`);
      dialog.close();
      say(`Task ${task.id}: ${name} was asked for.`);
    } catch (e) {
      wrong.textContent = e.message;
      go.disabled = false;
    }
  });
  fill(dialog, h('h2', { id: 'ask-title' }, `${v.title} task ${task.id}?`), h('p', {}, h('strong', {}, task.name), ` of ${task.user}. `, v.text), wrong, h('div', { class: 'row end' }, back, go));
  // The row may have been drawn anew meanwhile, and a task that ended has no such button.
  const same = () => document.querySelector(`main [data-does="${name} ${task.id}"]`);
  dialog.onclose = () => (from.isConnected ? from : same() || document.querySelector('main')).focus();
  dialog.showModal();
  back.focus();
}

/** say shows a sentence for a while; screen readers read it. */
export function say(text, bad) {
  const line = h('p', { class: bad ? 'note wrong' : 'note' }, text);
  const all = document.getElementById('alerts');
  all.append(line);
  setTimeout(() => line.remove(), 6000);
}

/** help shows the keys. */
export function help(keys) {
  const dialog = document.getElementById('ask');
  fill(dialog, h('h2', { id: 'ask-title' }, 'Keys'), h('dl', { class: 'keys' }, keys.map(([k, text]) => [h('dt', {}, h('kbd', {}, k)), h('dd', {}, text)])),
    h('div', { class: 'row end' }, h('button', { type: 'button', onclick: () => dialog.close() }, 'Close')));
  dialog.onclose = null;
  dialog.showModal();
}
