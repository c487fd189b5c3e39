// The list of tasks: under one policy at a time, sorted and filtered, and one task under
// all policies.

import { h, fill } from './dom.js';
import { took, slower, joules } from './words.js';

const firstRows = 50, moreRows = 500;

/** tasks fills the list, and returns open(place of a task), show(policy, text). */
export function tasks(section, box) {
  const d = section.data, t = d.Tasks, count = (t.ID || []).length, name = (i) => d.Names[t.Name[i]];
  const state = { run: 0, sort: 'ID', down: false, text: '', rows: firstRows };
  const of = (key) => (i) => d.Runs[state.run].Tasks[key]?.[i];
  const has = (key) => d.Runs.some((r) => (r.Tasks[key] || []).some((v) => v > 0));
  const columns = [
    { key: 'ID', title: 'Task', value: (i) => t.ID[i], cell: (i) => h('button', { type: 'button', class: 'quiet', 'aria-label': `Task ${t.ID[i]} under all policies`, onclick: () => section.open(i) }, String(t.ID[i])) },
    { key: 'Name', title: 'Name', left: true, value: name, cell: name },
    { key: 'At', title: 'Submitted', value: (i) => t.At[i], cell: (i) => took(t.At[i]) },
    ...[['Waiting', 'Waiting'], ['Execution', 'Execution'], ['Lost', 'Lost'], ['Away', 'Suspended'], ['JCT', 'JCT']].map(([key, title]) => ({ key, title, value: of(key), cell: (i) => took(of(key)(i) ?? 0) })),
    { key: 'Slowdown', title: 'Slowdown', value: of('Slowdown'), cell: (i) => slower(of('Slowdown')(i)) },
    { key: 'Attempts', title: 'Attempts', value: of('Attempts'), cell: of('Attempts') },
    { key: 'OOMs', title: 'OOMs', value: of('OOMs'), cell: of('OOMs') },
    { key: 'Energy', title: 'Energy', value: of('Energy'), cell: (i) => joules(of('Energy')(i) ?? 0) },
  ].filter((c) => !['Lost', 'Away', 'Energy'].includes(c.key) || has(c.key));
  const heads = columns.map((c) => h('th', { scope: 'col', class: c.left && 'left' }, h('button', { type: 'button', onclick: () => { state.down = state.sort === c.key && !state.down; state.sort = c.key; draw(); } }, c.title)));
  const body = h('tbody', {}), said = h('p', { class: 'note', role: 'status' }), chosen = h('div', {});
  const more = h('button', { type: 'button', class: 'more', onclick: () => { state.rows += moreRows; draw(); } });
  const choice = h('select', { onchange: () => { state.run = choice.selectedIndex; draw(); section.remember(); } }, d.Runs.map((r) => h('option', {}, r.Policy)));
  const field = h('input', { type: 'search', oninput: () => { state.text = field.value; state.rows = firstRows; draw(); section.remember(); } });
  fill(box, h('div', { class: 'filter' }, h('label', { class: 'field' }, h('span', {}, 'Filter by name or number'), field), h('label', { class: 'field' }, h('span', {}, 'Under policy'), choice)), chosen, said,
    h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Tasks' }, h('table', {}, h('caption', { class: 'unseen' }, 'Tasks under one policy'), h('thead', {}, h('tr', {}, heads)), body)), more);

  function draw() {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean), column = columns.find((c) => c.key === state.sort), sign = state.down ? -1 : 1, list = [];
    for (let i = 0; i < count; i++) if (words.every((w) => name(i).toLowerCase().includes(w) || String(t.ID[i]) === w)) list.push(i);
    list.sort((a, b) => {
      const x = column.value(a) ?? 0, y = column.value(b) ?? 0;
      return sign * (typeof x === 'string' ? x.localeCompare(y, 'en', { numeric: true }) : x - y) || a - b;
    });
    heads.forEach((th, i) => {
      if (columns[i] === column) th.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
      else th.removeAttribute('aria-sort');
    });
    fill(body, list.slice(0, state.rows).map((i) => h('tr', { 'aria-current': i === section.task && 'true' }, columns.map((c) => h('td', { class: c.left && 'left' }, c.cell(i) ?? '–')))));
    said.textContent = `${list.length} of ${count} tasks${list.length > state.rows ? `, the first ${state.rows} are shown` : ''}.`;
    more.hidden = list.length <= state.rows;
    more.textContent = `Show ${Math.min(moreRows, list.length - state.rows)} more`;
  }

  // open shows one task under all policies; -1: none.
  function open(i) {
    if (i < 0) {
      fill(chosen);
      return draw();
    }
    const close = h('button', { type: 'button', onclick: () => { section.open(-1); field.focus(); } }, 'Close');
    const title = h('h3', { tabindex: '-1' }, `Task ${t.ID[i]}: ${name(i)}, under all policies`);
    const ran = (r) => [...new Set((r.Spans.Task || []).flatMap((n, j) => n === i ? [r.GPUs[r.Spans.GPU[j]].Index] : []))].join(', ') || '–';
    const cells = [['Waiting', (o) => took(o.Waiting[i])], ['Execution', (o) => took(o.Execution[i])], ['Lost', (o) => took(o.Lost[i])], ['JCT', (o) => took(o.JCT[i])], ['Slowdown', (o) => slower(o.Slowdown[i])], ['Attempts', (o) => o.Attempts[i]], ['OOMs', (o) => o.OOMs[i]], ['State', (o) => o.Phase?.[i] || 'succeeded']];
    fill(chosen, h('div', { class: 'chosen' }, h('div', { class: 'row' }, title, h('span', { class: 'push' }), close), h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': `Task ${t.ID[i]}` }, h('table', {},
      h('thead', {}, h('tr', {}, ['Policy', ...cells.map((c) => c[0]), 'GPUs'].map((c) => h('th', { scope: 'col' }, c)))),
      h('tbody', {}, d.Runs.filter((r) => r.Tasks.JCT?.[i] !== undefined).map((r) => h('tr', {}, h('th', { scope: 'row' }, r.Policy), cells.map((c) => h('td', {}, String(c[1](r.Tasks)))), h('td', {}, ran(r)))))))));
    draw();
    return title;
  }
  draw();
  return {
    open, state, field,
    show(run, text) {
      state.run = choice.selectedIndex = Math.max(0, Math.min(d.Runs.length - 1, run));
      state.text = field.value = text;
      draw();
    },
  };
}
