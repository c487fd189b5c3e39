// Elements are made here, from texts only: nothing on the page is ever read as HTML.

const svgNames = new Set(['svg', 'g', 'rect', 'line', 'text', 'title', 'path', 'defs', 'pattern', 'clipPath']);

/** h makes an element. Attributes: on* are listeners, style an object, class, or any other. */
export function h(name, attributes = {}, ...children) {
  const svg = svgNames.has(name) && name !== 'title' || attributes.svg;
  const e = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false || key === 'svg') continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (key === 'style') Object.assign(e.style, value);
    else e.setAttribute(key, value === true ? '' : String(value));
  }
  e.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false).map((c) => c instanceof Node ? c : String(c)));
  return e;
}

/** fill replaces what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false));
}

/**
 * table makes a table whose rows are kept by key, so that a change of one row leaves the
 * others, the focus and the selection alone. Columns: {title, cell(row) -> content, right}.
 * update(rows, keyOf, glance): a row is looked at again only if glance(row) has changed.
 */
export function table(caption, columns, empty) {
  const body = h('tbody', { role: 'rowgroup' });
  const root = h('table', { role: 'table' }, h('caption', { class: 'unseen' }, caption),
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, columns.map((c) =>
      h('th', { role: 'columnheader', scope: 'col', class: c.right && 'right' }, c.title)))), body);
  const none = h('p', { class: 'still' }, empty);
  const box = h('div', { class: 'table' }, root, none);
  const rows = new Map(); // key -> {tr, print}
  function update(list, keyOf, glance) {
    const keep = new Set();
    let before = null;
    for (const item of list) {
      const key = keyOf(item);
      keep.add(key);
      let row = rows.get(key);
      const seen = glance?.(item);
      const cells = glance && row?.seen === seen ? null : columns.map((c) => c.cell(item));
      const print = cells ? cells.map(printOf).join('\u0000') : row.print;
      if (row) row.seen = seen;
      if (!row || row.print !== print) {
        const tr = h('tr', { role: 'row' }, columns.map((c, i) =>
          h('td', { role: 'cell', class: c.right && 'right', 'data-title': c.title }, cellOf(cells[i]))));
        if (row) {
          refocus(row.tr, tr);
        }
        row = { tr, print, seen };
        rows.set(key, row);
      }
      const at = before ? before.nextSibling : body.firstChild;
      if (at !== row.tr) move(body, row.tr, at);
      before = row.tr;
    }
    for (const [key, row] of rows) {
      if (!keep.has(key)) {
        row.tr.remove();
        rows.delete(key);
      }
    }
    root.hidden = list.length === 0;
    none.hidden = list.length !== 0;
  }
  update([], () => 0);
  return { element: box, update };
}

// cellOf keeps what is in a cell together: on a narrow screen the title stands before it.
function cellOf(content) {
  const parts = [content].flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false && c !== '');
  return parts.length ? h('div', { class: 'cell' }, parts) : [];
}

// move puts a row before another; what has the focus keeps it.
function move(body, tr, at) {
  const focused = tr.contains(document.activeElement) && document.activeElement;
  body.insertBefore(tr, at);
  if (focused) focused.focus();
}

// refocus replaces an element and gives the focus to the same place in the new one.
function refocus(old, fresh) {
  const all = 'a[href], button';
  const at = [...old.querySelectorAll(all)].indexOf(document.activeElement);
  old.replaceWith(fresh);
  if (at >= 0) fresh.querySelectorAll(all)[at]?.focus();
}

function printOf(content) {
  return [content].flat(Infinity).map((c) => c instanceof Element ? c.outerHTML : String(c ?? '')).join('');
}
