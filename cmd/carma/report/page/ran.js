// Who ran where: a band for each GPU, in it a lane for each task that it runs at once.

import { colour } from './chart.js';
import { Plot, yAxis, xAxis, timeSeries } from './plots.js';
import { took, ended, joules } from './words.js';

const mostHeight = 620, thin = 4, thick = 18;

// bandsOf gives each attempt a lane, and each GPU as many as it needs.
function bandsOf(run) {
  const s = run.Spans, free = run.GPUs.map(() => []), lanes = [];
  for (let i = 0; i < (s.Task || []).length; i++) {
    const own = free[s.GPU[i]];
    let lane = own.findIndex((from) => from <= s.At[i] + 0.05);
    if (lane < 0) lane = own.push(0) - 1;
    own[lane] = s.At[i] + s.Length[i];
    lanes.push(lane);
  }
  let top = 0;
  const bands = free.map((own) => {
    const band = { top, lanes: Math.max(1, own.length) };
    top += band.lanes + 0.5;
    return band;
  });
  return { lanes, bands, all: top };
}

/** ran draws what ran where under one policy. */
export function ran(section, run) {
  const s = run.Spans, { lanes, bands, all } = bandsOf(run), count = lanes.length;
  const lane = Math.max(thin, Math.min(thick, mostHeight / all)), tasks = section.data.Tasks;
  let at = -1; // the attempt that was chosen by a key, or is pointed at
  let colours;
  const name = (i) => s.Task[i] < 0 ? 'a task' : `task ${tasks.ID[s.Task[i]]}: ${section.data.Names[tasks.Name[s.Task[i]]]}`;
  const words = (i) => {
    const own = run.Tasks.Energy?.[s.Task[i]], ran = s.Start[i] < 0 ? 0 : s.Length[i] - s.Start[i];
    return `${name(i)} · GPU ${run.GPUs[s.GPU[i]].Index}, attempt ${s.Attempt[i]} · launched at ${took(s.At[i])}, ran ${took(ran)}, ${ended[s.Outcome[i]]}${own ? ` · the task used ${joules(own)}` : ''}`;
  };
  const row = (i) => bands[s.GPU[i]].top + lanes[i] + 0.25;

  function paint(u) {
    const c = u.ctx, ratio = window.devicePixelRatio, px = (v) => u.valToPos(v, 'x', true), py = (v) => u.valToPos(v, 'y', true);
    c.save();
    c.beginPath();
    c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    c.clip();
    c.strokeStyle = colours.line;
    c.lineWidth = ratio;
    for (const b of bands.slice(1)) stroke(c, [[u.bbox.left, py(b.top)], [u.bbox.left + u.bbox.width, py(b.top)]]);
    c.font = `${11 * ratio}px system-ui, sans-serif`;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    const { min, max } = u.scales.x, left = new Map(), height = py(1) - py(0), gap = Math.min(2 * ratio, height / 6), late = [];
    for (let i = 0; i < count; i++) {
      const to = s.At[i] + s.Length[i], key = `${s.Task[i]}/${s.Attempt[i]}`, y = py(row(i));
      if (left.has(key)) {
        const n = left.get(key);
        late.push(() => { c.setLineDash([4 * ratio, 3 * ratio]); c.strokeStyle = colours.text; stroke(c, [[px(s.At[n] + s.Length[n]), py(row(n) + 0.5)], [px(s.At[i]), y + height / 2]]); c.setLineDash([]); });
        left.delete(key);
      }
      if (s.Outcome[i] === 3) left.set(key, i);
      if (to < min || s.At[i] > max) continue;
      const x = px(s.At[i]), width = Math.max(1.5 * ratio, px(to) - x - 0.5 * ratio);
      c.fillStyle = s.Outcome[i] === 1 ? colours.oomSoft : s.Outcome[i] === 2 ? colours.stop : colours.kinds[s.Task[i] < 0 ? colours.kinds.length - 1 : tasks.Kind[s.Task[i]]];
      c.fillRect(x, y + gap / 2, width, height - gap);
      if (s.Task[i] === section.task || i === at) {
        c.strokeStyle = colours.text;
        c.lineWidth = 2 * ratio;
        c.strokeRect(x, y + gap / 2, width, height - gap);
        c.lineWidth = ratio;
      }
      const number = String(tasks.ID[s.Task[i]] ?? ''), shown = Math.max(x, u.bbox.left), room = s.Attempt[i] > 1 ? 9 : 4;
      if (height >= 11 * ratio && x + width - shown > (number.length * 7 + room + 4) * ratio) {
        c.fillStyle = s.Outcome[i] === 1 ? colours.text : colours.bar;
        c.fillText(number, shown + room * ratio, y + height / 2);
      }
      if (s.Outcome[i] === 1) late.push(() => cross(c, x + width, y + height / 2, Math.min(4 * ratio, height / 2 - gap / 2), colours.oom, ratio));
      if (s.Attempt[i] > 1 && s.Start[i] >= 0) late.push(() => again(c, x, y + gap / 2, height - gap, colours.text, ratio));
    }
    for (const f of late) f();
    c.restore();
  }

  function under(u) {
    const x = u.posToVal(u.cursor.left, 'x'), y = u.posToVal(u.cursor.top, 'y'), near = u.posToVal(u.cursor.left + 3, 'x') - x;
    for (let i = count - 1; i >= 0; i--) {
      if (y >= row(i) && y < row(i) + 1 && x >= s.At[i] - near && x <= s.At[i] + s.Length[i] + near) return i;
    }
    return -1;
  }

  function point(u, i) {
    if (i === at) return;
    at = i;
    if (i >= 0) plot.tell(words(i));
    u.redraw(false, false);
  }

  const plot = new Plot({
    label: `What ran where under ${run.Policy}: ${count} attempts on ${run.GPUs.length} GPUs`, height: all * lane + 50, group: section.time, says: true,
    make() {
      const kinds = section.data.Kinds.map((k, i) => colour(i < 9 ? `--k${i}` : '--rest'));
      colours = { line: colour('--line'), text: colour('--text'), bar: colour('--bar'), stop: colour('--stop'), oom: colour('--bad'), oomSoft: colour('--bad').replace(/^rgb\((.*)\)$/, 'rgba($1, 0.45)'), kinds: [...kinds, colour('--rest')] };
      return {
        options: {
          legend: { show: false }, scales: { x: { time: false }, y: { range: () => [0, all], dir: -1 } },
          axes: [{ ...xAxis(), grid: { ...xAxis().grid } }, { ...yAxis((v) => v), grid: { show: false }, ticks: { show: false }, splits: () => bands.map((b) => b.top + (b.lanes + 0.5) / 2), values: () => run.GPUs.map((g) => `GPU ${g.Index}`) }],
          series: [timeSeries, { points: { show: false }, paths: () => null }], cursor: { points: { show: false }, y: false },
          hooks: { draw: [paint], setCursor: [(u) => { if (u.over.matches(':hover')) point(u, u.cursor.left >= 0 ? under(u) : -1); }] },
        },
        data: [[0, section.data.Length], [null, null]],
      };
    },
    told(u) {
      const x = u.posToVal(u.cursor.left, 'x'), now = [];
      for (let i = 0; i < count; i++) if (s.At[i] <= x && x < s.At[i] + s.Length[i]) now.push(`GPU ${run.GPUs[s.GPU[i]].Index} ${name(i)}`);
      return `at ${took(x)}: ${now.sort().slice(0, 12).join('; ') || 'nothing runs'}${now.length > 12 ? `; and ${now.length - 12} more` : ''}`;
    },
    key(e, u) {
      if (e.key === 'Enter' && at >= 0 && s.Task[at] >= 0) section.open(s.Task[at]);
      else if (count && (e.key === 'ArrowDown' || e.key === 'ArrowUp')) {
        const next = Math.max(0, Math.min(count - 1, at + (e.key === 'ArrowDown' ? 1 : -1))), middle = s.At[next] + s.Length[next] / 2, { min, max } = u.scales.x;
        if (middle < min || middle > max) section.time.zoom([middle - (max - min) / 2, middle + (max - min) / 2]);
        u.setCursor({ left: u.valToPos(middle, 'x'), top: u.valToPos(row(next) + 0.5, 'y') }, true, true);
        point(u, next);
      } else return false;
      return true;
    },
  });
  plot.element.addEventListener('click', () => { if (plot.u && at >= 0 && s.Task[at] >= 0 && plot.u.over.matches(':hover') && !plot.u.select.width) section.open(s.Task[at]); });
  section.onTask(() => plot.u?.redraw(false, false));
  return plot.element;
}

function stroke(c, points) {
  c.beginPath();
  points.forEach(([x, y], i) => i ? c.lineTo(x, y) : c.moveTo(x, y));
  c.stroke();
}

// cross marks where an attempt ran out of memory.
function cross(c, x, y, arm, ink, ratio) {
  c.strokeStyle = ink;
  c.lineWidth = 2 * ratio;
  stroke(c, [[x - arm, y - arm], [x + arm, y + arm]]);
  stroke(c, [[x - arm, y + arm], [x + arm, y - arm]]);
  c.lineWidth = ratio;
}

// again marks an attempt that is not a task's first.
function again(c, x, y, height, ink, ratio) {
  const wide = Math.min(6 * ratio, height / 2);
  c.fillStyle = ink;
  c.beginPath();
  c.moveTo(x, y);
  c.lineTo(x + wide, y + height / 2);
  c.lineTo(x, y + height);
  c.fill();
}
