// Talks to the daemon. The session's cookie cannot be read here; its key is kept where
// only this origin reads it.

let key = read();
let lost = () => {};

function read() {
  try { return localStorage.getItem('carma-key') || ''; } catch { return ''; }
}

function keep(value) {
  key = value;
  try {
    if (value) localStorage.setItem('carma-key', value);
    else localStorage.removeItem('carma-key');
  } catch { /* storage is off: signed in until the page is left */ }
}

/** onLost sets what is called when the session has ended. */
export function onLost(f) { lost = f; }

async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { 'Carma-Key': key, ...options.headers }, cache: 'no-store' });
  if (answer.status === 401 && path !== '/login') {
    keep('');
    lost();
  }
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Error(problem.detail || problem.title || `the daemon answers ${answer.status}`);
  }
  return answer;
}

export async function get(path, signal) { return (await ask(path, { signal })).json(); }

/** page returns a listing and the number with which to ask for the next page; 0: none. */
export async function page(path) {
  const answer = await ask(path);
  return { list: await answer.json(), next: Number(answer.headers.get('Carma-Next') || 0) };
}

export async function post(path, body = {}) {
  return (await ask(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).json();
}

export async function signIn(ticket) {
  const who = await post('/login', { ticket });
  keep(who.key);
  return who;
}

export async function signOut() {
  await post('/logout').catch(() => {});
  keep('');
}

export function hasKey() { return key !== ''; }

/** stream reads server-sent events until they end; it throws if the connection breaks. */
export async function stream(path, signal, on) {
  const answer = await ask(path, { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      let event = '', data = '';
      for (const line of part.split('\n')) {
        if (line.startsWith('event: ')) event = line.slice(7);
        else if (line.startsWith('data: ')) data += line.slice(6);
      }
      if (data) on(event, JSON.parse(data));
    }
  }
}
