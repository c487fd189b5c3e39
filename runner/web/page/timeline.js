// Who ran where: a row per GPU, a bar per attempt, marks for what went wrong.

import { h, fill } from './dom.js';
import { get } from './client.js';
import { state, now } from './live.js';
import { memory, between, ms, when, outcome, span, hue } from './format.js';

const hour = 3600e3;
const ranges = [['1 h', hour], ['6 h', 6 * hour], ['24 h', 24 * hour], ['3 days', 72 * hour], ['7 days', 168 * hour]];
const bar = 18, gap = 3, rowPad = 6, axisHeight = 24;

export async function timeline(box, signal) {
  let length = 24 * hour, end = 0; // 0: now
  const chart = h('div', { class: 'lanes' }), told = h('p', { class: 'told', role: 'status' }, 'Point at a bar, or go from bar to bar by the arrow keys.'), note = h('p', { class: 'dim' });
  const choices = ranges.map(([name, ms]) => h('button', { type: 'button', 'aria-pressed': String(ms === length), onclick: (e) => { length = ms; press(e.currentTarget); load(); } }, name));
  const press = (b) => choices.forEach((c) => c.setAttribute('aria-pressed', String(c === b)));
  const back = h('button', { type: 'button', onclick: () => { end = (end || now()) - length / 2; load(); } }, '← Earlier');
  const forth = h('button', { type: 'button', onclick: () => { end = end + length / 2 >= now() ? 0 : end && end + length / 2; load(); } }, 'Later →');
  fill(box, h('h1', { class: 'unseen' }, 'Timeline'), h('div', { class: 'row filter' }, h('span', { class: 'row group', role: 'group', 'aria-label': 'Length of time' }, choices), back, forth), legend(), chart, told, note);

  async function load(first) {
    const until = end || now();
    const line = await get(`/v1/timeline?since=${new Date(until - length).toISOString()}&until=${new Date(until).toISOString()}`, signal);
    const began = (until - Math.min(until, ...line.runs.map((r) => ms(r.from)))) / hour;
    if (first && !line.cut && began < 6) { // all there is fits into less
      length = (began < 1 ? 1 : 6) * hour;
      press(choices[began < 1 ? 0 : 1]);
      return load();
    }
    draw(chart, told, line);
    const bad = line.runs.filter((r) => ['gpu-oom', 'host-oom'].includes(r.outcome)).length, again = line.runs.filter((r) => r.again).length;
    note.textContent = `${line.runs.length} runs from ${when(ms(line.since), now())} to ${when(ms(line.until), now())}: ${bad} ran out of memory, ${again} ran again.` + (line.cut ? ' The oldest tasks are left out.' : '');
    forth.disabled = !end;
  }
  await load(true);
  let width = chart.clientWidth;
  const resized = new ResizeObserver(() => { if (Math.abs(chart.clientWidth - width) > 8) { width = chart.clientWidth; load().catch(() => {}); } });
  resized.observe(chart);
  const timer = setInterval(() => { if (!end && !document.hidden && !chart.contains(document.activeElement)) load().catch(() => {}); }, 15000);
  signal.addEventListener('abort', () => { clearInterval(timer); resized.disconnect(); });
}

function legend() {
  const item = (c, text) => h('span', {}, h('span', { class: `key ${c}` }), text);
  return h('p', { class: 'legend dim' }, 'One colour per user.', item('oom', 'out of memory'), item('failed', 'failed'), item('again', 'ran again'), item('away', 'suspended'));
}

// staysOn are the times for which a run was on a GPU, the earliest first.
const staysOn = (r, index) => (r.stays || [r]).filter((s) => s.gpus.includes(index));

// lanesOf puts the runs of one GPU into as few lanes as possible.
function lanesOf(runs, index, until) {
  const ends = [];
  return runs.map((r) => {
    const stays = staysOn(r, index), from = ms(stays[0].from), to = ms(r.away) ? until : ms(stays.at(-1).until) || until;
    let lane = ends.findIndex((e) => e <= from);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = to;
    return { run: r, lane, from };
  });
}

function draw(chart, told, line) {
  const width = Math.max(280, chart.clientWidth), left = width < 500 ? 44 : 64, since = ms(line.since), until = ms(line.until);
  const x = (t) => left + (Math.min(until, Math.max(since, t)) - since) / (until - since) * (width - left - 4);
  const known = state.gpus.map((g) => g.index), indexes = [...new Set([...known, ...line.runs.flatMap((r) => r.gpus)])].sort((a, b) => a - b);
  const parts = [], bars = [];
  let y = axisHeight;
  for (const index of indexes) {
    const lanes = lanesOf(line.runs.filter((r) => staysOn(r, index).length), index, until), tall = Math.max(1, ...lanes.map((l) => l.lane + 1)) * (bar + gap) + rowPad;
    parts.push(h('line', { x1: 0, x2: width, y1: y, y2: y, class: 'rule' }), h('text', { x: 0, y: y + rowPad / 2 + bar - 4, class: 'label' }, `GPU ${index}`.replace('GPU ', width < 500 ? '' : 'GPU ')));
    for (const { run, lane } of lanes) bars.push(barOf(run, index, x, y + rowPad / 2 + lane * (bar + gap), until, told));
    y += tall;
  }
  const svg = h('svg', { width, height: y + 4, viewBox: `0 0 ${width} ${y + 4}`, role: 'group', 'aria-label': 'Runs by GPU and time. Arrow keys go from run to run, Enter opens the task.' }, ticks(since, until, x, y, width), parts, bars);
  roam(svg, bars);
  fill(chart, svg);
}

function barOf(r, index, x, y, until, told) {
  const stays = staysOn(r, index), away = ms(r.away), lastHere = ms(stays.at(-1).until);
  const from = x(ms(stays[0].from)), to = Math.max(from + 2, x(lastHere && !(away && lastHere === away) ? lastHere : ms(r.until) || until)), ends = !r.stays || lastHere === ms(r.until), kind = !ends ? '' : ['gpu-oom', 'host-oom'].includes(r.outcome) ? 'oom' : ['program', 'cannot-start', 'infrastructure', 'mps-fault', 'evicted'].includes(r.outcome) ? 'failed' : '';
  const text = `${r.name} (#${r.task}) of ${r.user} on GPU ${index}, attempt ${r.attempt}: ${when(ms(r.from), now())} to ${ms(r.until) ? when(ms(r.until), now()) : 'now'}, ${between(ms(r.from), ms(r.until) || now())}` +
    `, ${memory(r.grant)} booked${r.peak ? `, ${memory(r.peak)} used` : ''}${r.outcome ? `; ${outcome(r.outcome)}` : ''}${r.again ? '; it ran again' : ''}${r.suspended ? `; suspended for ${span(r.suspended / 1e9)}` : ''}`;
  const marks = [], off = (a, b) => marks.push(h('rect', { x: x(a), y, width: Math.max(2, x(b) - x(a)), height: bar, class: 'away' }));
  for (let i = 1; i < stays.length; i++) off(ms(stays[i - 1].until), ms(stays[i].from));
  if (away && lastHere === away || away && !r.stays) off(away, until);
  if (kind) marks.push(h('rect', { x: Math.max(from, to - 5), y, width: Math.min(5, to - from), height: bar, class: kind }));
  if (r.again && ends) marks.push(h('path', { d: `M${to} ${y} l6 ${bar / 2} l-6 ${bar / 2} z`, class: 'again' }));
  const letters = Math.floor((to - from - 10) / 7);
  return h('a', { svg: true, href: `#/task/${r.task}`, class: `run ${hue(r.user)}`, 'aria-label': text, tabindex: '-1', onfocus: () => { told.textContent = text; }, onmouseenter: () => { told.textContent = text; } },
    h('rect', { x: from, y, width: to - from, height: bar, rx: 2, class: 'bar' }), marks,
    letters > 3 && h('text', { x: from + 5, y: y + bar - 5, class: 'name', 'aria-hidden': 'true' }, r.name.length > letters ? r.name.slice(0, letters - 1) + '…' : r.name));
}

// roam lets the arrow keys go from bar to bar; only one of them takes the Tab key.
function roam(svg, bars) {
  bars[0]?.setAttribute('tabindex', '0');
  svg.addEventListener('keydown', (e) => {
    const at = bars.indexOf(document.activeElement), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (at < 0 || !step || !bars[at + step]) return;
    e.preventDefault();
    bars[at].setAttribute('tabindex', '-1');
    bars[at + step].setAttribute('tabindex', '0');
    bars[at + step].focus();
  });
}

function ticks(since, until, x, height, width) {
  const steps = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880].map((m) => m * 60e3), most = Math.max(2, Math.floor(width / 110));
  const step = steps.find((s) => (until - since) / s <= most) || steps.at(-1), shift = new Date(until).getTimezoneOffset() * 60e3, all = [];
  for (let t = Math.ceil((since - shift) / step) * step + shift; t < until; t += step) {
    all.push(h('line', { x1: x(t), x2: x(t), y1: axisHeight - 4, y2: height, class: 'rule' }), x(t) < width - 40 && h('text', { x: x(t) + 3, y: 14, class: 'label' }, step >= 24 * hour ? when(t, 0).replace(/,? \d+:\d+$/, '') : when(t, t)));
  }
  return all;
}
