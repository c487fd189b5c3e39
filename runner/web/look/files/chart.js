// What all charts have in common: colours of the theme, axes, steps over time, and charts
// that are looked at together.

/** colour returns a colour of the style sheet as canvases take it. */
export function colour(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  probe.hidden = true;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** axis is how axes look. */
export function axis() {
  const line = { stroke: colour('--line'), width: 1 };
  return { stroke: colour('--dim'), grid: line, ticks: line, font: '12px system-ui, sans-serif' };
}

/** onTheme calls back when the colours change, by the button or by the system. */
export function onTheme(redraw, signal) {
  document.addEventListener('carma-theme', redraw, { signal });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw, { signal });
}

/**
 * merged puts curves onto one axis. A curve is [xs, ys]; a value holds until the next x.
 * The axis goes from low to high.
 */
export function merged(curves, low, high) {
  const xs = new Float64Array(2 + curves.reduce((n, c) => n + c[0].length, 0));
  xs[0] = low;
  xs[1] = high;
  let n = 2;
  for (const [x] of curves) for (const v of x) xs[n++] = v;
  xs.sort();
  const axis = [...xs].filter((v, i) => v >= low && v <= high && v !== xs[i - 1]);
  return [axis, ...curves.map(([x, y]) => {
    let i = -1;
    return axis.map((at) => {
      while (i + 1 < x.length && x[i + 1] <= at) i++;
      return i < 0 ? null : y[i];
    });
  })];
}

/**
 * Linked are charts over the same x: they show one range and one cursor. told(x) is
 * called when a key has moved the cursor, moved(range) when the range has changed; a
 * range is [from, to], or null for all.
 */
export class Linked {
  constructor(name, low, high, moved) {
    Object.assign(this, { low, high, moved, range: null, plots: new Set(), name });
  }

  /** options are what a chart of the group adds to its own. */
  options() {
    return {
      cursor: {
        y: false, drag: { x: true, y: false }, sync: { key: this.name, scales: ['x', null], filters: { pub: (kind) => kind === 'mousemove' || kind === 'mouseleave' } },
        bind: { dblclick: () => () => { this.zoom(null); return null; } },
      },
      hooks: { setScale: [(u, key) => { if (key === 'x' && !this.busy && this.plots.has(u)) this.zoom([u.scales.x.min, u.scales.x.max]); }] },
    };
  }

  add(u) {
    this.plots.add(u);
    if (this.range) this.show(u);
  }

  remove(u) { this.plots.delete(u); }

  show(u) {
    this.busy = true;
    const [min, max] = this.range || [this.low, this.high];
    u.batch(() => u.setScale('x', { min, max }));
    this.busy = false;
  }

  zoom(range) {
    if (range) {
      const least = (this.high - this.low) / 1e4, from = Math.max(this.low, range[0]), to = Math.min(this.high, range[1]);
      range = to - from < least ? [from, Math.min(this.high, from + least)] : [from, to];
      if (range[0] <= this.low && range[1] >= this.high) range = null;
    }
    this.range = range;
    for (const u of this.plots) this.show(u);
    this.moved?.(range);
  }

  /** keys lets a chart be used without a mouse; told is called with the chart after each step. */
  keys(place, chart, told) {
    place.addEventListener('keydown', (e) => {
      const u = chart();
      if (!u || e.target !== place || e.ctrlKey || e.metaKey || e.altKey) return;
      const [from, to] = this.range || [this.low, this.high], wide = to - from, width = u.over.clientWidth;
      const here = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, 'x') : (from + to) / 2;
      const step = e.key === 'ArrowLeft' ? -1 : e.key === 'ArrowRight' ? 1 : 0;
      if (step && e.shiftKey) {
        const by = Math.max(this.low - from, Math.min(this.high - to, step * wide / 4));
        this.zoom(this.range && [from + by, to + by]);
      } else if (step) {
        const left = u.cursor.left >= 0 ? u.cursor.left + step * Math.max(2, width / 60) : width / 2;
        u.setCursor({ left: Math.max(0, Math.min(width - 1, left)), top: u.cursor.top >= 0 ? u.cursor.top : 10 }, true, true);
        told(u);
      } else if (e.key === '+' || e.key === '=') this.zoom([here - (here - from) / 2, here + (to - here) / 2]);
      else if (e.key === '-') this.zoom([here - (here - from) * 2, here + (to - here) * 2]);
      else if (e.key === '0' || e.key === 'Escape') this.zoom(null);
      else return;
      e.preventDefault();
    });
  }
}
