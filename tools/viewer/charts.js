// charts.js: curves, histograms and maps of coloured cells.
// SPDX-License-Identifier: Apache-2.0
//
// A chart is drawn anew for the width it has, so its words keep their size on a phone. Curves
// differ in colour (Okabe and Ito, in viewer.css) and in their dashes.

const DASHES = ['', '7 3', '2 3', '9 3 2 3', '14 4'];
const colour = i => `var(--c${i % 7})`;
const dash = i => DASHES[i % DASHES.length] || null;

// Dark blue over green to yellow, 0 to 1.
function viridis(u) {
  const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const at = Math.max(0, Math.min(0.9999, u)) * 4, i = Math.floor(at), part = at - i;
  return `rgb(${stops[i].map((c, k) => Math.round(c + part * (stops[i + 1][k] - c))).join(',')})`;
}

// Round steps of 1, 2 or 5 times a power of ten, at most n of them.
function ticks(lo, hi, n) {
  const span = hi - lo;
  if (!(span > 0) || !Number.isFinite(span)) return [lo];
  const power = 10 ** Math.floor(Math.log10(span / n));
  const step = [1, 2, 5, 10].map(k => k * power).find(k => span / k <= n);
  const out = [];
  for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + 1e-9 * span && out.length < 50; k++)
    out.push(k * step);
  return out;
}

const tick = (x, step) => step >= 1 ? String(Math.round(x))
  : Math.abs(x) < step / 1e3 ? '0'
  : step < 1e-4 ? x.toExponential(1) : x.toFixed(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));

// A figure whose picture `draw(width)` makes; `after` stands below it.
function drawn(draw, caption, ...after) {
  const room = h('div');
  let last = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    const width = Math.floor(room.clientWidth);
    if (width < 40 || width === last) return;
    last = width;
    room.replaceChildren(draw(width));
  })).observe(room);
  return h('figure', h('figcaption', caption), room, after);
}

const keys = names => h('figcaption', names.map(([label, i]) => h('span.key',
  s('svg', {width: 30, height: 8, 'aria-hidden': 'true'}, s('line', {x2: 30, y1: 4, y2: 4,
    stroke: colour(i), 'stroke-width': 2.5, 'stroke-dasharray': dash(i)})), label)));

// Axes of a plot of `width`; returns the element and the places of x and y.
function axes(width, height, {x0, x1, y0, y1, x, y, word, log, whole}) {
  const left = 58, right = 10, top = 8, low = 42;
  const at = v => left + (width - left - right) * (v - x0) / (x1 - x0 || 1);
  const up = v => height - low - (height - low - top) * (v - y0) / (y1 - y0 || 1);
  const g = s('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
                      'aria-label': word});
  const ys = log ? ticks(y0, y1, 6).filter(Number.isInteger) : ticks(y0, y1, 5);
  for (const v of ys)
    g.append(s('line.g', {x1: left, x2: width - right, y1: up(v), y2: up(v)}),
             s('text', {x: left - 6, y: up(v) + 4, 'text-anchor': 'end'},
               log ? (v === 0 ? '1' : `1e${v}`) : tick(v, ys[1] - ys[0] || 1)));
  const xs = ticks(x0, x1, Math.max(2, Math.floor(width / 90)))
    .filter(v => !whole || Number.isInteger(v));
  for (const v of xs)
    g.append(s('text', {x: at(v), y: height - low + 17, 'text-anchor': 'middle'},
               tick(v, xs[1] - xs[0] || 1)));
  g.append(s('path.a', {d: `M${left} ${top}V${height - low}H${width - right}`}),
           s('text.s', {x: (left + width - right) / 2, y: height - 6, 'text-anchor': 'middle'}, x),
           s('text.s', {transform: `translate(13 ${(height - low + top) / 2}) rotate(-90)`,
                        'text-anchor': 'middle'}, y));
  return {g, at, up, left, right, bottom: height - low, top};
}

// curves: [{label, y: [..], style}], what is null interrupts a curve. marks: [{at, word}]. x counts
// from 0, or its `longest` places lie from `from` to `to`.
function curves(title, set, {x = '', y = '', zero = true, marks = [], log = false, points = false,
                             more = null, from, to} = {}) {
  const value = v => log ? (v > 0 ? Math.log10(v) : null) : v;
  const all = set.flatMap(c => c.y.map(value)).filter(known);
  const longest = Math.max(2, ...set.map(c => c.y.length));
  let lo = Math.min(...all), hi = Math.max(...all);
  if (!all.length) lo = 0, hi = 1;
  if (zero && !log) lo = Math.min(0, lo);
  if (log) lo = Math.floor(lo), hi = Math.ceil(hi);
  if (!(hi > lo)) hi = lo + (Math.abs(lo) || 1);
  const readout = h('p.readout', {'aria-live': 'off'});
  const draw = width => {
    const first = from ?? 0, end = to ?? longest - 1;
    const place = i => a.at(first + i * (end - first) / (longest - 1));
    const a = axes(width, 240, {x0: first, x1: end, y0: lo, y1: hi, x, y, word: title, log,
                           whole: from === undefined});
    for (const m of marks.filter(m => m.at < longest - 1))
      a.g.append(s('line.g', {x1: a.at(m.at), x2: a.at(m.at), y1: a.top, y2: a.bottom,
                              'stroke-dasharray': '4 3'}, s('title', m.word)));
    for (const c of set) {
      let path = '', pen = 'M';
      c.y.map(value).forEach((v, i) => {
        path += known(v) ? `${pen}${place(i).toFixed(1)} ${a.up(v).toFixed(1)}` : '';
        pen = known(v) ? 'L' : 'M';
        if (points && known(v) && c.style === 0)
          a.g.append(s('circle', {cx: place(i), cy: a.up(v), r: 3, fill: colour(0)}));
      });
      a.g.append(s('path', {d: path, fill: 'none', stroke: colour(c.style), 'stroke-width': 2,
                            'stroke-dasharray': dash(c.style)}));
    }
    a.g.addEventListener('pointermove', e => {
      const box = a.g.getBoundingClientRect();
      const i = Math.round((e.clientX - box.left - a.left) / (width - a.left - a.right)
                           * (longest - 1));
      if (i < 0 || i >= longest || from !== undefined) return;
      readout.textContent = clean(`${x.split(' (')[0]} ${i}: `
        + set.map(c => `${c.label} ${number(c.y[i])}`).join(', '));
    });
    return a.g;
  };
  return drawn(draw, [h('b', title), more && h('br'), more],
               keys(set.map(c => [c.label, c.style])), readout);
}

// bars: [{label, counts, style, outline}] over bins that begin at `first` and are `step` wide.
function histogram(title, bars, {first, step, x, y, more}) {
  const bins = bars[0].counts.length;
  const top = Math.max(1, ...bars.flatMap(b => b.counts));
  return drawn(width => {
    const a = axes(width, 220, {x0: first, x1: first + bins * step, y0: 0, y1: top, x, y,
                                word: title});
    for (const b of bars) b.counts.forEach((n, i) => n && a.g.append(s('rect', {
      x: a.at(first + i * step) + 1, width: Math.max(1, a.at(step) - a.at(0) - 2), y: a.up(n),
      height: a.bottom - a.up(n), fill: b.outline ? 'none' : colour(b.style),
      stroke: colour(b.style), 'stroke-width': b.outline ? 2 : 0,
      'stroke-dasharray': b.outline ? '4 2' : null}, s('title', `${b.label}: ${n}`))));
    return a.g;
  }, [h('b', title), more && h('br'), more],
  h('figcaption', bars.map(b => h('span.key', h('i', {style: b.outline
    ? {border: `2px dashed ${colour(b.style)}`} : {background: colour(b.style)}}), b.label))));
}

// A map: paint(row, column) is a colour or null, say(row, column) what the pointer reads.
function map(title, rows, columns, paint, {x, y, say, tall = 0.75, more = null, ends = null}) {
  const canvas = h('canvas', {width: columns, height: rows, role: 'img', 'aria-label': title,
    style: {'aspect-ratio': `1 / ${tall}`, 'max-width': `${24 * columns}px`}});
  const pen = canvas.getContext('2d');
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) {
      const c = paint(i, j);
      if (!c) continue;
      pen.fillStyle = c;
      pen.fillRect(j, i, 1, 1);
    }
  const readout = h('p.readout');
  canvas.addEventListener('pointermove', e => {
    const box = canvas.getBoundingClientRect();
    const i = Math.floor((e.clientY - box.top) / box.height * rows);
    const j = Math.floor((e.clientX - box.left) / box.width * columns);
    if (i >= 0 && j >= 0 && i < rows && j < columns) readout.textContent = clean(say(i, j));
  });
  return h('figure', h('figcaption', h('b', title), more && h('br'), more),
    h('div.map', h('span.y', y), canvas,
      h('div.x', h('span', ends ? ends[0] : '0'), h('span', x),
        h('span', ends ? ends[1] : String(columns - 1)))), readout);
}

const legend = pairs => h('p.soft', pairs.map(([paint, word]) => h('span.key',
  h('i', {style: {background: paint}}), word)));

const scale = (from, to, paint) => h('span.key', from, h('span.scale', {style: {background:
  `linear-gradient(90deg, ${[0, .25, .5, .75, 1].map(paint).join(', ')})`}}), to);
