// One task: what was asked, estimate against measured memory, attempts, decisions, reasons, output.

import { h, fill, table } from './dom.js';
import { get } from './client.js';
import { state, watch, now } from './live.js';
import { memory, percent, minutes, ms, when, span, outcome, energy } from './format.js';
import { chip } from './parts.js';
import { buttons } from './actions.js';
import { output } from './output.js';
import { curve } from './curve.js';
import { happened } from './happened.js';

export async function task(box, signal, [ref]) {
  const path = `/v1/tasks/${encodeURIComponent(ref)}`;
  let t = await get(path, signal);
  const head = h('div', {}), why = h('section', {}), asked = h('section', {}), chart = h('section', { class: 'memory' }), life = h('section', {}), log = h('section', {});
  const attempts = table('Attempts', [
    { title: 'Attempt', cell: (a) => a.starts > 1 ? `${a.n - a.starts + 1} to ${a.n}` : a.n, right: true },
    { title: 'GPUs', cell: (a) => (a.gpus || []).map((g) => g.index).join(', ') || 'none' },
    { title: 'Booked', cell: (a) => memory(a.grant), right: true },
    { title: 'Most used', cell: (a) => a.peak ? memory(a.peak) : '', right: true },
    { title: 'Launched', cell: (a) => when(ms(a.launched), now()) },
    { title: 'Ran', cell: (a) => ms(a.started) ? minutes(((ms(a.ended) || now()) - ms(a.started)) / 1000) : 'not started' },
    { title: 'Suspended', cell: (a) => a.suspended ? span(a.suspended / 1e9) : '', right: true },
    { title: 'Energy', cell: (a) => a.energy_j ? energy(a.energy_j) : '', right: true },
    { title: 'End', cell: (a) => a.outcome ? chip(a.outcome, outcome(a.outcome)) : chip('running', 'goes on') },
    { title: 'What then', cell: (a) => a.reason || a.message || '' },
  ], 'It has not been launched yet.');
  fill(box, head, h('div', { class: 'two wide-left' }, h('div', {}, why, chart), asked), h('section', {}, h('h2', {}, 'Attempts'), attempts.element), life, log);
  const draw = curve(chart, signal), tell = happened(life, path, signal);
  let whyText = '';

  async function show() {
    drawHead(head, t);
    fill(asked, h('h2', {}, 'What was asked'), request(t));
    attempts.update(t.attempts || [], (a) => a.n);
    draw(t);
    const w = await get(path + '/why', signal);
    const text = JSON.stringify([w.summary, w.gpus, w.start, t.phase, t.waits, t.undelivered]);
    if (text !== whyText) {
      whyText = text;
      fill(why, h('h2', {}, 'Where it stands'), reasons(t, w));
    }
    await tell();
  }
  await show();
  output(log, t, path, signal);

  let busy = false, seen = '', asked_ = performance.now();
  const stop = watch(async () => {
    const fresh = JSON.stringify(state.tasks.get(t.id) ?? null);
    // Its memory changes without an event: it is asked for again after a while.
    if (busy || fresh === seen && (t.exit_code !== undefined || performance.now() - asked_ < 5000)) return;
    busy = true;
    try {
      asked_ = performance.now();
      t = await get(path, signal);
      await show();
      seen = fresh;
    } catch { /* told by the frame */ }
    busy = false;
  });
  signal.addEventListener('abort', stop);
}

function drawHead(head, t) {
  const p = t.progress;
  const parts = t.ended ? [t.energy_j && energy(t.energy_j)].filter(Boolean) : [
    p?.share && `${p.doubt ? '~' : ''}${percent(p.share)} done`, p?.done && p.unit && `${Math.round(p.done)}${p.share ? ` of ${Math.round(p.total)}` : ''} ${p.unit}`,
    p?.rate && `${p.rate.toPrecision(3)} ${p.unit}/s`, p?.doubt, ms(p?.eta) && !t.ended && `${span((ms(p.eta) - now()) / 1000)} left`,
    p?.slowdown && p.slowdown.value > 1.005 && `slowdown by its neighbours ${p.slowdown.value.toFixed(2)}× (${p.slowdown.basis})`,
    t.energy_j && energy(t.energy_j),
  ].filter(Boolean);
  const focused = head.contains(document.activeElement) && document.activeElement.textContent;
  fill(head, h('div', { class: 'row title' }, h('h1', {}, t.name, ' ', h('span', { class: 'dim' }, `#${t.id}`)), chip(t.phase), h('span', { class: 'row push' }, buttons(t))),
    h('p', { class: 'dim' }, `${t.user} submitted it ${when(ms(t.submitted), now())}`, t.group && `, in ${t.group}`, ms(t.started) > 0 && `; started ${when(ms(t.started), now())}`,
      ms(t.ended) > 0 && `; ended ${when(ms(t.ended), now())} with exit code ${t.exit_code ?? 'none'}`), parts.length > 0 && h('p', {}, parts.join(' · ')));
  if (focused) [...head.querySelectorAll('button')].find((b) => b.textContent === focused)?.focus();
}

function reasons(t, w) {
  const list = w.gpus || [];
  const start = w.start && `Expected to start ${when(ms(w.start.earliest), now())}${ms(w.start.latest) ? `, at the latest ${when(ms(w.start.latest), now())}` : ' or later'}, as things are.`;
  return [h('p', {}, w.summary || t.waits || ''), (t.undelivered || []).map((text) => h('p', { class: 'alarm' }, `Message to ${text}.`)), start && h('p', {}, start),
    list.length > 0 && h('details', { open: list.length <= 4 }, h('summary', {}, `GPU by GPU (${list.length})`),
      h('ul', { class: 'plain' }, list.map((g) => h('li', {}, h('strong', {}, `GPU ${g.index} `), g.text))))];
}

function request(t) {
  const s = t.submit, e = t.estimate || {};
  const command = [...(s.entrypoint || []), ...(s.command || [])].map((w) => /^[\w./:=@,+-]+$/.test(w) ? w : JSON.stringify(w)).join(' ');
  const rows = [
    ['Image', t.image], ['Command', command && h('code', {}, command)], ['GPUs', `${t.gpu_count}${s.exclusive ? ', alone' : ''}`],
    ['Declared memory', s.mem && memory(s.mem)], ['Model', s.est_model && `${s.est_model}${s.batch_size ? `, batch size ${s.batch_size}` : ''}`],
    ['Estimate', e.whole_gpu ? 'a whole GPU' : e.memory && `${memory(e.memory)}${e.point && e.point !== e.memory ? `, likeliest ${memory(e.point)}` : ''}`],
    ['How estimated', e.detail || e.method], ['Priority', t.priority],
    ['Time limit', s.time_limit && span(s.time_limit / 1e9)], ['Slot', s.slot && span(s.slot / 1e9)], ['Retries', s.retries],
    ['Host memory', s.host_mem && memory(s.host_mem)], ['Processors', s.cpus], ['Waits for', (s.after || []).map((a) => a.task || a.part).join(', ')],
    ['Mounts', list((s.mounts || []).map((m) => typeof m === 'string' ? m : `${m.source} → ${m.target}${m.read_only ? ' (read-only)' : ''}`))],
    ['Environment', s.env?.length && [list(s.env), t.env_hidden && h('p', { class: 'dim' }, 'The values are for its owner.')]],
    ['Labels', list(Object.entries(s.labels || {}).map(([k, v]) => v ? `${k}=${v}` : k))], ['Folder', s.workdir], ['Visibility', s.visibility],
  ];
  return h('dl', { class: 'facts' }, rows.filter(([, v]) => v).map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)]));
}

function list(items) { return items.length > 0 && h('ul', { class: 'plain' }, items.map((i) => h('li', {}, h('code', {}, i)))); }
