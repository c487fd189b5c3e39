// What GPUs and queue did over time, and how all policies compare.

import { h } from './dom.js';
import { colour, merged, Linked } from './chart.js';
import { Plot, line, soft, xAxis, yAxis, here, held, timeSeries, stepsOf } from './plots.js';
import { took } from './words.js';

const low = 170;

/**
 * overTime is a chart of curves. Options: title, label, most (of the y axis), text(v),
 * height; lines(): [curve, label, colour, more] each.
 */
export function overTime(section, o) {
  return new Plot({
    title: o.title, label: o.label, height: o.height || low, group: section.time,
    make() {
      const lines = o.lines();
      return {
        options: {
          scales: { x: { time: false }, y: { range: (u, a, b) => [0, Math.max(o.most || b || 1, 1e-9) * 1.05] } }, axes: [xAxis(), yAxis(o.axis || o.text)],
          cursor: held, series: [timeSeries, ...lines.map(([, label, ink, more]) => line(label, ink, o.text, more))],
        },
        data: merged(lines.map(([c]) => stepsOf(c)), 0, section.data.Length),
      };
    },
  }).element;
}

/** plain is a number with two decimals at most. */
export const plain = (v) => String(Math.round(v * 100) / 100);

const gib = (v) => `${v.toFixed(v < 10 ? 1 : 0)} GiB`, per = (v) => `${Math.round(v)} %`, watts = (v) => `${Math.round(v)} W`;

/** memoryOf is the memory of each GPU: used below reserved below capacity, were all estimates right. */
export function memoryOf(section, run) {
  const most = Math.max(...run.GPUs.map((g) => g.Capacity));
  return grid(run, (g) => overTime(section, {
    title: `GPU ${g.Index}`, label: `Memory of GPU ${g.Index} under ${run.Policy}, used and booked`, most, text: gib, axis: plain,
    lines: () => [[g.Used, 'used', colour(run.Colour), { fill: soft(colour(run.Colour)) }], [g.Reserved, 'booked', colour('--text'), { dash: [6, 3] }], [{ X: [0], Y: [g.Capacity], End: section.data.Length }, 'capacity', colour('--bad'), { dash: [2, 3], width: 1 }]],
  }));
}

export function activityOf(section, run) {
  return grid(run, (g) => overTime(section, {
    title: `GPU ${g.Index}`, label: `SM activity of GPU ${g.Index} under ${run.Policy}`, most: 100, text: per, axis: plain,
    lines: () => [[g.SMACT, 'SM activity', colour(run.Colour), { fill: soft(colour(run.Colour)) }]],
  }));
}

function grid(run, one) {
  const shown = run.GPUs.filter((g) => g.Used);
  return h('div', {}, h('div', { class: 'small' }, shown.map(one)), shown.length < run.GPUs.length && h('p', { class: 'note' }, `The first ${shown.length} of ${run.GPUs.length} GPUs.`));
}

/** queueOf is how many tasks waited, and for how long each did. */
export function queueOf(section, run) {
  const area = (c, title, most, text) => overTime(section, { title, label: `${title} under ${run.Policy}`, most, text, axis: plain, lines: () => [[c, title, colour(run.Colour), { fill: soft(colour(run.Colour)) }]] });
  return h('div', { class: 'small' }, area(run.Queue, 'Tasks in the queue', section.data.Queue, plain), !section.data.Many && waitingOf(section, run), area(run.Power, 'Power of all GPUs', section.data.Power, watts));
}

// waitingOf is a dot for each task, at its submission.
function waitingOf(section, run) {
  const at = section.data.Tasks.At || [], wait = run.Tasks.Waiting || [], order = at.map((v, i) => i).sort((a, b) => at[a] - at[b] || a - b);
  const most = Math.max(1, ...section.data.Runs.map((r) => (r.Tasks.Waiting || []).reduce((a, b) => Math.max(a, b), 0)));
  return new Plot({
    title: 'Waiting of each task, by its submission', label: `Waiting of each task under ${run.Policy}, by its submission`, height: low, group: section.time,
    make: () => ({
      options: {
        scales: { x: { time: false }, y: { range: () => [0, most * 1.05] } }, axes: [xAxis(), { ...yAxis(took), incrs: [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000, 720000, 1800000, 3600000] }],
        series: [{ label: 'submitted at', value: (u, v) => v === null || v === undefined ? '–' : took(Math.max(0, v)) }, { label: 'waited', stroke: colour(run.Colour), paths: () => null, points: { show: true, size: 4, fill: colour(run.Colour) }, value: (u, v) => v === null || v === undefined ? '–' : took(v) }],
      },
      data: [[-1e-9, ...order.map((i) => at[i]), section.data.Length], [null, ...order.map((i) => wait[i] ?? null), null]],
    }),
  }).element;
}

const dashes = [undefined, [8, 3], [3, 3], [9, 3, 2, 3]];

/** compared are the charts that have all policies in one. */
export function compared(section) {
  const d = section.data, runs = d.Runs, of = (name) => runs.map((r) => (r.Tasks[name] || []).filter((v) => name !== 'Slowdown' || v > 0).sort((a, b) => a - b));
  const times = (v) => `${Math.round(v * 100) / 100}x`;
  const made = [
    share(section, 'jct', 'JCT: share of the tasks that are done within', of('JCT'), 0, took),
    share(section, 'slowdown', 'Slowdown: share of the tasks that take at most so many times as long as alone', of('Slowdown'), 1, times, () => xAxis(times)),
    share(section, 'waiting', 'Waiting: share of the tasks that wait at most', of('Waiting'), 0, took),
  ];
  if (runs.some((r) => r.Queue)) {
    made.push(h('div', { class: 'box' }, h('h3', {}, 'Queue: tasks that wait for GPUs'), overTime(section, {
      label: 'Tasks in the queue over time, all policies', most: d.Queue, text: plain, height: 230,
      lines: () => runs.filter((r) => r.Queue).map((r, i) => [r.Queue, r.Policy, colour(r.Colour), { width: 2, dash: dashes[i % 4] }]),
    })));
  }
  return made;
}

/** share is a distribution: which share of the tasks is at most at a value, whose axis axisOf makes. */
export function share(section, name, title, sorted, from, text, axisOf = xAxis) {
  const runs = section.data.Runs, begin = Math.min(from || Infinity, ...sorted.map((l) => l[0] ?? Infinity)), start = from === 0 || begin === Infinity ? 0 : begin;
  const end = Math.max(start + 1e-3, from === 0 ? 1 : 1.1, ...sorted.map((l) => l.at(-1) ?? 0)), group = new Linked(`${section.data.ID}-${name}`, start, end);
  const curves = sorted.map((l) => [[start, ...l, end], [0, ...l.map((v, i) => (i + 1) / l.length * 100), l.length ? 100 : null]]);
  return h('div', { class: 'box' }, h('h3', {}, title), new Plot({
    label: runs.length > 1 ? `${title}, all policies` : title, height: 230, group,
    make: () => ({
      options: {
        scales: { x: { time: false }, y: { range: () => [0, 102] } }, axes: [axisOf(), yAxis(per)],
        cursor: held, series: [{ label: 'within', value: (u) => here(u, text) }, ...runs.map((r, i) => line(r.Policy, colour(r.Colour), (v) => `${v.toFixed(1)} %`, { width: 2, dash: dashes[i % 4] }))],
      },
      data: merged(curves, start, end),
    }),
  }).element);
}
