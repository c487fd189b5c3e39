// The frame of the page: signing in, which page is shown, keys, theme.

import { h, fill } from './dom.js';
import * as client from './client.js';
import * as live from './live.js';
import { help, say } from './actions.js';
import { overview } from './overview.js';
import { tasks } from './tasks.js';
import { themeButton } from './themes.js';

const main = document.getElementById('main');
const pages = {
  '': ['Overview', overview],
  tasks: ['Tasks', tasks],
  timeline: ['Timeline', async (...a) => (await import('./timeline.js')).timeline(...a)],
  users: ['Users', async (...a) => (await import('./users.js')).users(...a)],
  history: ['History', async (...a) => (await import('./history.js')).history(...a)],
  task: ['Task', async (...a) => (await import('./task.js')).task(...a)],
};
let leave = null; // ends what the page shown now has begun
let shown = 0;

async function show() {
  if (!live.state.me) return;
  const [name, ...rest] = location.hash.replace(/^#\/?/, '').split('?')[0].split('/').map(decodeURIComponent);
  const [title, page] = pages[name] || pages[''];
  leave?.abort();
  leave = new AbortController();
  document.title = rest[0] ? `${title} ${rest[0]} · carma` : `${title} · carma`;
  for (const a of document.querySelectorAll('#nav a')) {
    const here = a.hash.replace(/^#\/?/, '') === (name === 'task' ? 'tasks' : name);
    if (here) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  const box = h('div', { class: `page ${name || 'overview'}` });
  fill(main, box);
  window.scrollTo(0, 0);
  if (shown++ && !document.activeElement?.closest('nav')) main.focus({ preventScroll: true });
  try {
    await page(box, leave.signal, rest);
  } catch (e) {
    if (e.name !== 'AbortError') fill(box, h('h1', {}, title), h('p', { class: 'wrong', role: 'alert' }, e.message));
  }
}

function door(why) {
  live.stop();
  live.state.me = null;
  leave?.abort();
  for (const id of ['nav', 'leave']) document.getElementById(id).hidden = true;
  document.getElementById('line').textContent = '';
  document.title = 'Sign in · carma';
  fill(main, h('div', { class: 'door' }, h('h1', {}, 'Sign in'), why && h('p', { class: 'wrong', role: 'alert' }, why),
    h('p', {}, 'On the server, run'), h('pre', {}, 'carma web'),
    h('p', {}, 'and open the address that it prints. It works once, for the user who has run it.')));
}

async function enter() {
  const ticket = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  try {
    if (ticket) {
      history.replaceState(null, '', '/#/'); // it is used up, and nobody needs to see it
      live.state.me = await client.signIn(ticket);
    } else if (client.hasKey()) {
      live.state.me = await client.get('/session');
    }
  } catch (e) {
    return door(ticket || live.state.me ? e.message : '');
  }
  if (!live.state.me) return door('');
  document.getElementById('nav').hidden = false;
  const out = document.getElementById('leave');
  out.hidden = false;
  out.textContent = `Sign out ${live.state.me.user}`;
  live.start();
  await show();
}

live.onLine((there) => {
  const line = document.getElementById('line');
  const text = there ? '' : 'No connection; trying again';
  if (line.textContent !== text) line.textContent = text;
});
client.onLost(() => { if (live.state.me) door('The session has ended.'); });
window.addEventListener('hashchange', () => { if (location.hash.startsWith('#login=')) enter(); else if (location.hash !== '#main') show(); });
document.querySelector('.skip').addEventListener('click', (e) => { e.preventDefault(); main.focus(); });
document.getElementById('leave').addEventListener('click', async () => { await client.signOut(); door(''); });

themeButton(document.getElementById('theme'));

const keys = [['1 … 5', 'Overview, Tasks, Timeline, Users, History'], ['/', 'filter or search'], ['?', 'these keys'], ['Esc', 'close']];
document.getElementById('keys').addEventListener('click', () => help(keys));
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || !live.state.me || document.getElementById('ask').open || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  const nth = ['', 'tasks', 'timeline', 'users', 'history'];
  if (/^[1-5]$/.test(e.key)) location.hash = `#/${nth[e.key - 1]}`;
  else if (e.key === '?') help(keys);
  else if (e.key === '/') {
    const field = main.querySelector('input[type=search]');
    if (!field) return;
    e.preventDefault();
    field.focus();
  }
});

enter().catch((e) => say(e.message, true));
