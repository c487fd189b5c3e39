// Charts that are drawn when they come into view, and again when width or colours change.

import { h, fill } from './dom.js';
import { axis, onTheme } from './chart.js';
import { took, ticks, timeSteps } from './words.js';

const all = new Set();
const near = new IntersectionObserver((seen) => {
  for (const s of seen) if (s.isIntersecting) s.target.plot.draw();
}, { rootMargin: '400px' });
const sizes = new ResizeObserver((changed) => { for (const c of changed) c.target.plot.fit(); });

/** leftAxis is the room left of all charts, so that those below each other line up. */
const leftAxis = 58;

/** stepped is uPlot's path of steps, made once the library is there. */
export const stepped = () => window.uPlot.paths.stepped({ align: 1 });

/** soft is a colour for areas. */
export function soft(c) { return c.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.3)'); }

/** line is a series of steps in a colour. */
export function line(label, stroke, value, more) {
  return { label, stroke, width: 1.5, paths: stepped(), value: (u, v) => v === null || v === undefined ? '–' : value(v), points: { show: false }, ...more };
}

/** xAxis is one of time, or of numbers written by text. */
export function xAxis(text) {
  return text ? { ...axis(), space: 60, values: (u, at) => at.map(text) } : { ...axis(), space: 70, incrs: timeSteps, values: (u, at, i, space, step) => ticks(at, step) };
}

export function yAxis(text) { return { ...axis(), size: leftAxis, space: 28, values: (u, at) => at.map(text) }; }

/**
 * Plot is a chart in its place. Options: title, label (for those who do not see it),
 * height, group (Linked), make() -> uPlot's options and data, told(u) -> text at the
 * cursor, says (told is shown), key(event, u) -> whether it was used.
 */
export class Plot {
  constructor(o) {
    Object.assign(this, o);
    this.canvas = h('div', {});
    this.canvas.style.minHeight = `${o.height}px`;
    this.words = h('p', { class: o.says ? 'told' : 'unseen', role: 'status' }); // what a legend shows is not shown twice
    this.element = h('div', { class: 'plot', tabindex: '0', role: 'group', 'aria-roledescription': 'chart', 'aria-label': o.label || o.title }, o.title && h('h4', {}, o.title), this.canvas, this.words);
    this.element.plot = this;
    this.element.addEventListener('keydown', (e) => { if (e.target === this.element && this.key && (this.draw(), this.u) && this.key(e, this.u)) e.preventDefault(); });
    o.group.keys(this.element, () => { this.draw(); return this.u; }, (u) => this.tell(this.told(u)));
    near.observe(this.element);
    sizes.observe(this.element);
    all.add(this);
  }

  tell(text) { if (this.words.textContent !== text) this.words.textContent = text; }

  /** told is what all series say at the cursor. */
  told(u) {
    if (u.cursor.idx === null || u.cursor.idx === undefined) return '';
    return u.series.map((s, n) => `${s.label} ${s.value(u, u.data[n][u.cursor.idxs[n] ?? u.cursor.idx], n)}`).join(', ');
  }

  draw(again) {
    const width = this.element.clientWidth;
    if (this.u && !again || !width) return;
    this.close();
    const { options, data } = this.make(), group = this.group.options();
    options.hooks = { ...options.hooks, setScale: group.hooks.setScale };
    this.u = new window.uPlot({ width, height: this.height, legend: { live: true, ...options.legend }, ...options, cursor: { ...group.cursor, ...options.cursor } }, data, this.canvas);
    this.group.add(this.u);
  }

  close() {
    if (!this.u) return;
    this.group.remove(this.u);
    this.u.destroy();
    this.u = null;
    fill(this.canvas);
  }

  fit() {
    const width = this.element.clientWidth;
    if (this.u && width && Math.abs(width - this.u.width) > 2) this.u.setSize({ width, height: this.height });
  }
}

/** watch keeps all charts in the colours and the width of now, on paper too. */
export function watch() {
  const again = () => { for (const p of all) if (p.u) p.draw(true); };
  onTheme(again);
  const root = document.documentElement;
  let before;
  window.addEventListener('beforeprint', () => {
    before = root.dataset.theme;
    root.dataset.theme = 'light';
    for (const p of all) p.draw(true);
  });
  window.addEventListener('afterprint', () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    again();
  });
}

/** here is the x at which the cursor is, which is seldom that of a point. */
export function here(u, text) { return u.cursor.left >= 0 && u.cursor.idx !== null ? text(Math.max(0, u.posToVal(u.cursor.left, 'x'))) : '–'; }

/** timeSeries is the first series of a chart over time. */
export const timeSeries = { label: 'at', value: (u) => here(u, took) };

/** held is the cursor of charts of steps: a value holds until the next point, not from halfway to it. */
export const held = { dataIdx: (u, series, nearest, x) => nearest > 0 && u.data[0][nearest] > x ? nearest - 1 : nearest, points: { show: false } };

/** stepsOf are a curve's points: [xs, ys]. It ends with its replay. */
export function stepsOf(c) {
  const x = c.X || c.Y.map((v, i) => i * c.End / c.Y.length);
  return [[...x, c.End, c.End + 0.01], [...c.Y, c.Y.at(-1) ?? null, null]];
}
