// dom.js: elements, numbers and tables that all modules of the viewer share.
// SPDX-License-Identifier: Apache-2.0
//
// The modules of tools/viewer are one script: make puts one after the other, in the order of their
// names, and viewer.js begins. Text of files becomes text nodes and attributes, never markup.

// What turns the direction of a text or is no character is shown as U+FFFD.
function clean(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
                              '\ufffd');
}

function fill(e, rest) {
  const plain = rest[0] && rest[0].constructor === Object;
  for (const [key, value] of Object.entries(plain ? rest[0] : {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === 'style')
      for (const [name, to] of Object.entries(value)) e.style.setProperty(name, to);
    else if (typeof value === 'function') e.addEventListener(key, value);
    else e.setAttribute(key, value === true ? '' : clean(value));
  }
  for (const child of rest.slice(plain ? 1 : 0).flat(Infinity))
    if (child !== null && child !== undefined && child !== false)
      e.append(child instanceof Node ? child : clean(child));
  return e;
}

// h('p.soft', {id: 'x', click: f}, child, ...): an element; s('line', ...): one of SVG.
function h(name, ...rest) {
  const [tag, ...classes] = name.split('.');
  const e = document.createElement(tag);
  if (classes.length) e.className = classes.join(' ');
  return fill(e, rest);
}

function s(name, ...rest) {
  const [tag, ...classes] = name.split('.');
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  if (classes.length) e.setAttribute('class', classes.join(' '));
  return fill(e, rest);
}

const known = x => typeof x === 'number' && Number.isFinite(x);

// 0.342, 1234, 1.2e-7; a dash for what is not known.
function number(x, digits = 3) {
  if (!known(x)) return '\u2013';
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e6) return String(x);
  if (size >= 10 ** digits && size < 1e6) return x.toFixed(0);
  if (size < 1e-4 || size >= 1e6) return x.toExponential(digits - 1).replace('e+', 'e');
  return x.toPrecision(digits);
}

// A number of the address, between lo and hi; null where it says none.
function asked(name, lo, hi) {
  const x = state.has(name) ? Number(state.get(name)) : NaN;
  return known(x) ? Math.max(lo, Math.min(hi, x)) : null;
}

const count = n => Number(n).toLocaleString('en');
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? '' : 's'}`;

// "3", "3 and 4", "3, 4 and 5"
function list(items) {
  return items.length < 2 ? items.join('')
    : `${items.slice(0, -1).join(', ')} and ${items[items.length - 1]}`;
}

// Rows of cells: text, a number as it is to be shown, or an element; row: classes of row i.
function table(columns, rows, {row = () => ''} = {}) {
  return h('div.wide', {tabindex: 0, role: 'region', 'aria-label': 'table'},
    h('table', h('thead', h('tr', columns.map(c => h('th', c)))),
      h('tbody', rows.map((r, i) => h('tr', {class: row(i) || null}, r.map(c => h('td', c)))))));
}

const tile = (n, word, kind = '') => h(`div.tile${kind && '.' + kind}`, h('b', n), word);

function facts(pairs) {
  return h('dl.facts', pairs.map(([name, value]) => [h('dt', name),
    h('dd', name === 'command' ? h('code', value) : value)]));
}

// Where the definition of what is shown stands. The tour has the files next to it.
const linked = (file, name, word) => document.documentElement.dataset.shown === 'tour'
  ? h('a', {href: `golden/${file}${name && `#:~:text=${name}%28`}`}, h('code', word)) : h('code', word);

const source = (equation, names, file) => h('p.source', equation && `${equation}: `,
  names.map((n, i) => [i ? ', ' : '', linked(file, n, n)]), ' in ', linked(file, '', `src/golden/${file}`));

const folded = (summary, ...inside) => h('details', h('summary', summary), inside);

const bar = (share, kind = '') => h(`span.bar${kind && '.' + kind}`,
  h('i', {style: {width: `${100 * Math.max(0, Math.min(1, share))}%`}}));
