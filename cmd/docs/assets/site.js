"use strict";
const up = document.body.dataset.up;
const menu = document.getElementById("menu"), open = document.getElementById("open");
open.addEventListener("click", () => {
  const now = menu.classList.toggle("open");
  open.setAttribute("aria-expanded", String(now));
});
// Wide tables scroll by themselves; those that do are reached by the keyboard.
const widths = new ResizeObserver(all => {
  for (const { target: box } of all) {
    const scrolls = box.scrollWidth > box.clientWidth;
    for (const [name, value] of [["tabindex", 0], ["role", "region"], ["aria-label", box.dataset.name]]) {
      if (scrolls) box.setAttribute(name, value); else box.removeAttribute(name);
    }
  }
});
for (const [n, t] of document.querySelectorAll("article table").entries()) {
  const box = document.createElement("div");
  box.className = "wide";
  box.dataset.name = `table ${n + 1}`;
  t.replaceWith(box);
  box.append(t);
  widths.observe(box);
}
for (const p of document.querySelectorAll("article pre")) p.tabIndex = 0;
for (const a of document.querySelectorAll("a.away")) a.addEventListener("click", e => e.preventDefault());

const input = document.getElementById("search"), found = document.getElementById("found");
const article = document.querySelector("article");
document.addEventListener("keydown", e => {
  if (e.key === "/" && !/INPUT|TEXTAREA/.test(e.target.tagName)) { e.preventDefault(); input.focus(); }
  if (e.key === "Escape" && input.value) { input.value = ""; look(); }
});
input.form.addEventListener("submit", e => { e.preventDefault(); found.querySelector("a")?.focus(); });
input.addEventListener("input", look);

// score of a part for words that must all occur: more in headings, less in the text.
function score(part, words) {
  let sum = 0;
  const title = part.t.toLowerCase(), page = part.p.toLowerCase(), text = part.x.toLowerCase();
  for (const w of words) {
    const n = (title.includes(w) ? 10 : 0) + (page.includes(w) ? 3 : 0) + Math.min(4, text.split(w).length - 1);
    if (n === 0) return 0;
    sum += n;
  }
  return sum;
}

function look() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const list = found.querySelector("ol");
  list.replaceChildren();
  found.hidden = words.length === 0;
  article.hidden = words.length > 0;
  if (!words.length) return;
  const hits = pages.map(p => [score(p, words), p]).filter(h => h[0] > 0).sort((a, b) => b[0] - a[0]);
  found.querySelector("h1").textContent = hits.length ? `${hits.length} found` : "Nothing found";
  for (const [, p] of hits.slice(0, 30)) {
    const li = document.createElement("li"), a = document.createElement("a"), small = document.createElement("small");
    a.href = up + p.f;
    a.textContent = p.t === p.p ? p.t : `${p.p}: ${p.t}`;
    a.addEventListener("click", () => { input.value = ""; look(); });
    const at = Math.max(0, p.x.toLowerCase().indexOf(words[0]) - 60);
    excerpt(small, p.x.slice(at, at + 180), words);
    li.append(a, small);
    list.append(li);
  }
}

function excerpt(into, text, words) {
  const rest = new RegExp(`(${words.map(w => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "i");
  for (const piece of text.split(rest)) {
    if (words.includes(piece.toLowerCase())) { const m = document.createElement("mark"); m.textContent = piece; into.append(m); } else into.append(piece);
  }
}
