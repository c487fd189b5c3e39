// The report: each trace's data are read and drawn; the address says what is looked at.

import { h, fill } from './dom.js';
import { Linked } from './chart.js';
import { themeButton } from './themes.js';
import { watch } from './plots.js';
import { ran } from './ran.js';
import { memoryOf, activityOf, queueOf, compared } from './curves.js';
import { tasks } from './tasks.js';

/** Section is one trace. */
class Section {
  constructor(root, data) {
    Object.assign(this, { root, data, task: -1, listeners: [] });
    this.time = new Linked(`${data.ID}-time`, 0, data.Length, () => { this.controls?.(); this.remember(); });
    fill(root.querySelector('[data-charts=compared]'), compared(this));
    data.Runs.forEach((run) => {
      const box = document.querySelector(`#${run.ID} > [data-charts=run]`);
      if (!box || !run.GPUs.length) return;
      const draw = () => fill(box, h('h3', {}, 'What ran where'), data.Many ? h('p', { class: 'note' }, 'The attempts are too many to show each; --chrome-trace writes all, for Perfetto.') : ran(this, run), h('h3', {}, 'Memory (GiB)'), memoryOf(this, run), h('h3', {}, 'SM activity (%)'), activityOf(this, run), h('h3', {}, 'The whole server'), queueOf(this, run));
      const part = box.closest('details');
      if (part.open) draw();
      else part.addEventListener('toggle', draw, { once: true });
    });
    this.list = tasks(this, root.querySelector('[data-tasks]'));
    if (data.Many) fill(root.querySelector('[data-tasks]'), h('p', { class: 'note' }, 'The tasks are too many to list; --csv writes a line for each.'));
    this.offer(root.querySelector('[data-controls]'));
  }

  onTask(f) { this.listeners.push(f); }

  /** open shows a task, by its place; -1: none. */
  open(i, still) {
    this.task = i;
    const title = this.list.open(i);
    for (const f of this.listeners) f();
    if (!still) {
      this.remember();
      title?.focus({ preventScroll: true });
      title?.scrollIntoView({ block: 'center' });
    }
  }

  offer(box) {
    if (!box) return;
    const runs = this.root.querySelector('[data-runs]'), parts = [...runs.querySelectorAll('details')];
    const whole = h('button', { type: 'button', onclick: () => this.time.zoom(null) }, 'All of the time');
    const beside = (on) => h('button', { type: 'button', 'aria-pressed': String(!on), onclick: (e) => {
      runs.classList.toggle('beside', on);
      for (const b of e.currentTarget.parentElement.children) b.setAttribute('aria-pressed', String(b === e.currentTarget));
    } }, on ? 'Side by side' : 'One below the other');
    const fold = (open) => h('button', { type: 'button', onclick: () => { for (const p of parts) p.open = open; } }, open ? 'Unfold all' : 'Fold all');
    fill(box, parts.length > 1 && [h('span', { class: 'row', role: 'group', 'aria-label': 'Policies' }, beside(false), beside(true)), fold(true), fold(false)], whole);
    this.controls = () => { whole.disabled = !this.time.range; };
    this.controls();
  }

  /** remember puts what is looked at into the address, so that it can be passed on. */
  remember() {
    if (this.still) return;
    const p = new URLSearchParams(), { run, text } = this.list.state;
    if (this.time.range) { p.set('from', String(Math.round(this.time.range[0]))); p.set('to', String(Math.round(this.time.range[1]))); }
    if (this.task >= 0) p.set('task', this.data.Tasks.ID[this.task]);
    if (run) p.set('policy', this.data.Runs[run].Policy);
    if (text) p.set('filter', text);
    const search = p.toString();
    try { history.replaceState(null, '', `#${this.data.ID}${search && `?${search}`}`); } catch { /* the browser lets no file change its address */ }
  }

  /** recall shows what an address says. */
  recall(search) {
    const p = new URLSearchParams(search), from = Number(p.get('from') || NaN), to = Number(p.get('to') || NaN);
    this.still = true;
    this.time.zoom(to > (from || 0) ? [from || 0, to] : null);
    this.list.show(this.data.Runs.findIndex((r) => r.Policy === p.get('policy')), p.get('filter') || '');
    this.open((this.data.Tasks.ID || []).findIndex((id) => String(id) === p.get('task')), true);
    this.still = false;
    if (p.get('task')) this.root.querySelector('.chosen')?.scrollIntoView({ block: 'center' });
    else this.root.scrollIntoView();
  }
}

const sections = [...document.querySelectorAll('script[data-for]')].map((s) => new Section(document.getElementById(s.dataset.for), JSON.parse(s.textContent)));

function recall() {
  const [id, search] = location.hash.slice(1).split('?');
  if (search) sections.find((s) => s.data.ID === id)?.recall(search);
  else if (id) {
    const at = document.getElementById(id);
    if (at instanceof HTMLDetailsElement) at.open = true;
  }
}

watch();
themeButton(document.getElementById('theme'));
const keyHelp = document.getElementById('ask');
document.getElementById('keys').addEventListener('click', () => keyHelp.showModal());
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || keyHelp.open || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  if (e.key === '?') keyHelp.showModal();
  else if (e.key === '/') {
    e.preventDefault();
    const seen = sections.find((s) => s.root.getBoundingClientRect().bottom > 0) || sections[0];
    seen?.list.field.focus();
  }
});
window.addEventListener('hashchange', recall);
recall();
performance.mark('carma-drawn');
