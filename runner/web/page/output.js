// A task's output, as it comes. Lines are texts, whatever they look like.

import { h, fill } from './dom.js';
import { stream } from './client.js';

const most = 2000; // lines on the page; older ones are dropped

export function output(box, task, path, signal) {
  const lines = h('div', { class: 'log', role: 'log', 'aria-label': `Output of task ${task.id}`, tabindex: '0' });
  const follow = h('input', { type: 'checkbox', checked: true });
  const wrap = h('input', { type: 'checkbox', onchange: () => lines.classList.toggle('wrap', wrap.checked) });
  const note = h('p', { class: 'dim' }, task.attempts?.length ? '' : 'Nothing yet.');
  fill(box, h('div', { class: 'row' }, h('h2', {}, 'Output'), h('label', { class: 'check push' }, follow, 'follow'), h('label', { class: 'check' }, wrap, 'wrap')), lines, note);
  let waiting = [], open = {}, attempt = 0, frame = 0;

  function flush() {
    frame = 0;
    const some = document.createDocumentFragment();
    for (const l of waiting.slice(-most)) {
      if (l.attempt !== attempt) {
        attempt = l.attempt;
        open = {};
        if (attempt > 1) some.append(h('div', { class: 'mark' }, `attempt ${attempt}`));
      }
      const text = l.line.includes('\r') ? l.line.slice(l.line.replace(/\r+$/, '').lastIndexOf('\r') + 1) : l.line;
      const begun = open[l.stream];
      if (!begun) some.append(open[l.stream] = h('div', { class: l.stream }, plain(text) || ' '));
      else if (text === l.line) begun.append(plain(text));
      else fill(begun, plain(text));
      if (!l.partial) delete open[l.stream];
    }
    waiting = [];
    note.textContent = '';
    lines.append(some);
    while (lines.childElementCount > most) lines.firstChild.remove();
    if (follow.checked) lines.scrollTop = lines.scrollHeight;
  }
  const show = (l) => {
    waiting.push(l);
    frame ||= requestAnimationFrame(flush);
  };
  const ended = new AbortController();
  signal.addEventListener('abort', () => { ended.abort(); cancelAnimationFrame(frame); });
  stream(`${path}/logs?follow=true&tail=500`, ended.signal, (event, data) => { if (event === 'log') show(data); })
    .then(() => { note.textContent = 'The output ends here.'; })
    .catch((e) => { if (!ended.signal.aborted) note.textContent = e.message; });
}

// plain drops what only terminals understand: colours and movements of the cursor.
function plain(text) {
  return text.replace(/\u001b(\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(\u0007|\u001b\\)|[@-Z\\-_])/g, '').replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '');
}
