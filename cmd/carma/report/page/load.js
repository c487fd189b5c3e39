// The page of a load: what arrives over time, and how gaps and run times are distributed.

import { fill, h } from './dom.js';
import { colour, Linked } from './chart.js';
import { themeButton } from './themes.js';
import { soft, xAxis, watch } from './plots.js';
import { overTime, share, plain } from './curves.js';
import { took, timeSteps } from './words.js';

const load = JSON.parse(document.getElementById('data').textContent), length = load.Bin * load.Demand.length;
const part = { time: new Linked('time', 0, length), data: { ID: 'load', Length: length, Runs: [{ Policy: 'share', Colour: '--p0' }] } };

const over = (title, label, Y) => h('div', { class: 'box' }, h('h3', {}, title), overTime(part, { label: title, text: plain, height: 200, lines: () => [[{ Y, End: length }, label, colour('--p0'), { fill: soft(colour('--p0')) }]] }));
fill(document.querySelector('[data-charts=over]'), over('GPUs in demand: busy if every task began as it arrives', 'GPUs', load.Demand), over(`Tasks that arrive within ${took(load.Bin)}`, 'tasks', load.Arrivals));

// logAxis is an axis of logarithms of seconds.
function logAxis() {
  const name = (s) => s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : `${s / 3600} h`;
  return {
    ...xAxis((log) => name(Math.round(10 ** log))),
    splits(u, axis, min, max, distance) {
      let last = -distance;
      return timeSteps.map(Math.log10).filter((v) => v >= min && v <= max && v - last >= distance - 1e-9 && (last = v, true));
    },
  };
}

const distribution = (name, title, times) => share(part, name, title, [(times || []).map((s) => Math.log10(Math.max(1, s)))], 0, (log) => took(10 ** log), logAxis);
fill(document.querySelector('[data-charts=distributions]'), distribution('gaps', 'Gaps: share of those of at most', load.Gaps), distribution('runs', 'Run times: share of those of at most', load.RunTimes));

watch();
themeButton(document.getElementById('theme'));
performance.mark('carma-drawn');
