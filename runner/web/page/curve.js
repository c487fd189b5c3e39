// The memory that a task was seen to use, against what was estimated and booked.

import { h, fill } from './dom.js';
import { memory, ms } from './format.js';
import { now } from './live.js';
import { axis, colour, onTheme } from './chart.js';

/** curve returns what draws a task's memory into a box. */
export function curve(box, signal) {
  const title = h('h2', {}, 'Memory'), words = h('p', {}), place = h('div', { class: 'chart' });
  fill(box, title, words, place);
  let plot = null, last = null, print = '';
  function draw(t) {
    last = t;
    const series = seriesOf(t), points = series.times.length;
    words.textContent = sentence(t);
    place.hidden = points < 2;
    const fresh = JSON.stringify(series);
    if (points < 2 || fresh === print && plot) return;
    print = fresh;
    plot?.destroy();
    plot = make(place, series);
  }
  const redraw = () => { print = ''; if (last) draw(last); };
  const size = new ResizeObserver(() => { if (plot && Math.abs(plot.width - place.clientWidth) > 2) plot.setSize({ width: place.clientWidth, height: 240 }); });
  size.observe(place);
  onTheme(redraw, signal);
  signal.addEventListener('abort', () => {
    size.disconnect();
    plot?.destroy();
  });
  return draw;
}

function estimated(t) { return t.estimate?.whole_gpu ? 0 : t.estimate?.memory || 0; }

function sentence(t) {
  const peak = Math.max(0, ...(t.attempts || []).flatMap((a) => [a.peak || 0, ...(a.curve || []).map((p) => p.used)])), estimate = estimated(t);
  const said = t.estimate?.whole_gpu ? 'It gets whole GPUs.' : estimate ? `Estimated ${memory(estimate)}.` : 'There is no estimate yet.';
  if (!peak) return `${said} Nothing was measured yet.`;
  const more = estimate ? (peak > estimate ? ` ${memory(peak - estimate)} more than estimated.` : ` ${Math.round(peak / estimate * 100)} % of the estimate.`) : '';
  return `${said} Most used on one GPU: ${memory(peak)}.${more}`;
}

// seriesOf puts the curves of all attempts on one axis of time.
function seriesOf(t) {
  const times = [], used = [], booked = [], estimate = [], level = estimated(t) || null;
  const add = (at, u, b) => { times.push(at / 1000); used.push(u); booked.push(b); estimate.push(level); };
  for (const a of t.attempts || []) {
    const grant = a.grant || null, begin = ms(a.started) || ms(a.launched);
    if (!a.curve?.length) continue;
    if (begin < ms(a.curve[0].at)) add(begin, 0, grant);
    for (const p of a.curve) add(ms(p.at), p.used, grant);
    const at = a.curve.at(-1), end = Math.max(ms(at.at), ms(a.ended) || Math.floor(now() / 5000) * 5000);
    add(end, at.used, grant);
    add(end + 1, null, null); // the curve breaks between attempts
  }
  for (let i = 1; i < times.length; i++) times[i] = Math.max(times[i], times[i - 1]);
  return { times, used, booked, estimate };
}

const clocks = [undefined, '2-digit'].map((second) => new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second, hourCycle: 'h23' }));
const days = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

function time(seconds, step) { return (step >= 86400 ? days : clocks[step < 60 ? 1 : 0]).format(seconds * 1000); }

function make(place, s) {
  const stepped = window.uPlot.paths.stepped({ align: 1 });
  const gib = (u, v) => v === null || v === undefined ? '–' : memory(v);
  return new window.uPlot({
    width: place.clientWidth, height: 240, padding: [null, 32, null, null], legend: { live: true }, cursor: { drag: { x: true, y: false } },
    scales: { y: { range: (u, low, high) => [0, Math.max(high, 1) * 1.08] } },
    axes: [{ ...axis(), space: 80, values: (u, all, i, space, step) => all.map((at) => time(at, step)) }, { ...axis(), size: 76, values: (u, all) => all.map((v) => memory(v)), incrs: [0.25, 0.5, 1, 2, 5, 10, 20, 40].map((n) => n * 2 ** 30) }],
    series: [{ label: 'Time', value: (u, at) => at ? time(at, 1) : '–' },
      { label: 'Used', stroke: colour('--accent'), fill: colour('--accent-soft'), width: 2, paths: stepped, value: gib, points: { show: false } },
      { label: 'Booked', stroke: colour('--warn'), width: 1.5, dash: [6, 4], paths: stepped, value: gib, points: { show: false } },
      { label: 'Estimated', stroke: colour('--good'), width: 1.5, dash: [2, 3], value: gib, points: { show: false } }],
  }, [s.times, s.used, s.booked, s.estimate], place);
}
