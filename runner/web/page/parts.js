// Small parts that several pages show.

import { h } from './dom.js';
import { state, now } from './live.js';
import { tone, when, ms } from './format.js';

export function chip(word, text) { return h('span', { class: `chip ${tone(word)}` }, text ?? word); }

export function taskLink(t) { return [h('a', { href: `#/task/${t.id ?? t.task}` }, t.name), ' ', h('span', { class: 'dim' }, `#${t.id ?? t.task}`)]; }

/** troubles are what keeps tasks from starting, as boxes. */
export function troubles() {
  const i = state.info;
  const list = (i.trouble || []).map((t) => h('div', { class: 'alarm', role: 'note' }, h('strong', {}, t.text), t.remedy && ` To mend it: ${t.remedy}`));
  if (i.paused) list.push(h('div', { class: 'alarm' }, `Launching is paused${i.paused.by ? ' by ' + i.paused.by : ''}${i.paused.why ? ': ' + i.paused.why : ''}.`));
  if (i.draining) list.push(h('div', { class: 'alarm' }, 'The daemon starts nothing more, and ends with its last running task.'));
  if (i.left_out) list.push(h('div', { class: 'alarm', role: 'note' }, `${i.left_out} waiting ${i.left_out === 1 ? 'task is' : 'tasks are'} not shown: there are too many. Places in the queue count only those that are shown; History finds all.`));
  if (i.simulated) list.push(h('p', { class: 'dim sim' }, `The GPUs are simulated (${i.source}); their time is ${when(now(), now())}, and runs ${i.speed} times as fast as the clock.`));
  return list;
}

export function field(label, input) { return h('label', { class: 'field' }, h('span', {}, label), input); }

export { ms };
