// How things are, kept up to date by one stream for the whole page.

import { stream, hasKey } from './client.js';

export const state = { ready: false, info: {}, gpus: [], tasks: new Map(), queue: [], me: null };
const watchers = new Set();
let base = 0, taken = 0; // the daemon's time, and the clock's at that moment
let running = null;
let tell = () => {};

/** now is the daemon's time in milliseconds. */
export function now() {
  return base ? base + (performance.now() - taken) * (state.info.speed || 1) : Date.now();
}

/** watch calls f at every change until the returned function is called. */
export function watch(f) {
  watchers.add(f);
  if (state.ready) f();
  return () => watchers.delete(f);
}

/** onLine sets what hears whether the connection is there. */
export function onLine(f) { tell = f; }

function take(event) {
  base = Date.parse(event.now);
  taken = performance.now();
  if (event.whole) {
    state.tasks = new Map();
    state.queue = [];
  }
  if (event.info) state.info = event.info;
  if (event.gpus) state.gpus = event.gpus;
  for (const t of event.tasks || []) state.tasks.set(t.id, t);
  for (const id of event.gone || []) state.tasks.delete(id);
  if (event.queue) state.queue = event.queue;
  if (event.emptied) state.queue = [];
  state.ready = true;
  for (const f of watchers) f();
}

/** start reads the stream while the page can be seen: a browser opens few connections. */
export function start() {
  document.addEventListener('visibilitychange', turn);
  turn();
}

export function stop() {
  document.removeEventListener('visibilitychange', turn);
  running?.abort();
  running = null;
}

function turn() {
  if (document.hidden) {
    running?.abort();
    running = null;
  } else if (!running) {
    running = new AbortController();
    read(running.signal);
  }
}

async function read(signal) {
  for (let pause = 1000; !signal.aborted && hasKey(); pause = Math.min(2 * pause, 15000)) {
    const begun = performance.now();
    try {
      await stream('/v1/live/events', signal, (_, data) => { tell(true); take(data); });
    } catch { /* the daemon restarts, or the ssh connection is gone */ }
    if (signal.aborted) return;
    tell(false);
    if (performance.now() - begun > 30000) pause = 1000;
    await new Promise((go) => setTimeout(go, pause));
  }
}
