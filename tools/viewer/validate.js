// validate.js: the report of `tether validate` and `tether diff`.
// SPDX-License-Identifier: Apache-2.0

const FIRST_SHOWN = 6;
const AGAIN = 'this one alone: ';      // begins the note that validate_again writes
const failing = v => ['mismatch', 'missing', 'misshapen'].includes(v.outcome);
// A number that is not finite is null in JSON: a tensor out of all limits.
const times = v => known(v.ratio) ? number(v.ratio)
  : v.metrics && failing(v) ? '\u221e' : '\u2013';

// A path as a person would say it: "chunk.1/step.2/q#linear.3" becomes "chunk 1, step 2, q, call 3 of
// linear"; "op.silu.zero n=1" becomes "silu by itself, inputs of the kind zero, n=1".
function inWords(path) {
  const one = path.match(/^op\.([^. ]*)\.?([^ ]*)(.*)$/);
  if (one) return `${one[1]} by itself, inputs of the kind ${one[2]}${one[3] && ',' + one[3]}`;
  return path.split('/').flatMap(part => part.split('#').map((p, i) => {
    const m = p.match(/^([^.]*)\.(\d+)$/);
    return !m ? p : i ? `call ${m[2]} of ${m[1]}` : `${m[1]} ${m[2]}`;
  })).filter(Boolean).join(', ');
}

// 2.4, 350, 12 thousand, 1.25 million
function inTimes(x) {
  const by = [[1e9, 'thousand million'], [1e6, 'million'], [1e3, 'thousand']].find(b => x >= b[0]);
  return !by || x >= 1e12 ? number(x) : `${number(x / by[0])} ${by[1]}`;
}

function wrong(data, v) {
  const bits = data.arith && data.arith.compared === 'by bits', m = v.metrics;
  const said = /[/#]/.test(v.path) || v.path.startsWith('op.');
  const out = [h('code', v.path), said && `: ${inWords(v.path)}`,
               v.op && !v.path.includes('#') && !v.path.startsWith('op.') && `, made by ${v.op}`];
  if (v.outcome !== 'mismatch') out.push('. It is ', h('b', v.outcome));
  else if (m) {
    out.push(`. Its largest error${bits ? ' is' : ','} ${number(m.max_abs)}`,
             `${bits ? ', and the first value that differs is' : ''} at ${v.where || '[]'}`);
    if (!bits && known(v.ratio) && data.arith && v.ratio > 0)
      out.push(', is ', h('b', `${inTimes(v.ratio)} times`),
               ` what ${data.arith.name} may err on the same inputs`);
    else if (!bits) out.push(', is more than is allowed');
  }
  out.push('.');
  const named = m && !/^(none of|it arises)/.test(v.hint);
  if (v.hint) out.push(named ? ' It looks like this: ' : ' ', h('b', v.hint), '.');
  return out;
}

// What was found, in sentences, and what follows from it.
function sentences(data) {
  const {verdicts, first, largest, bits} = data, out = [];
  const fails = verdicts.filter(failing).length + data.left[0];
  if (first !== null) {
    out.push(h('p.lead', 'The first wrong tensor is ', wrong(data, verdicts[first])));
    if (largest !== null)
      out.push(h('p.lead', 'The largest failure is ', wrong(data, verdicts[largest])));
    if (fails > 1) out.push(h('p.lead', `${count(fails)} tensors are wrong. `,
      verdicts[first].path.startsWith('op.') ? 'Operators are checked one by one, on right inputs.'
      : 'What comes later in the order of execution may follow from the first: repair that one, and '
        + 'look again.'));
  } else if (!data.compared) {
    out.push(h('p.lead', 'Nothing was compared, which counts as a failure.'));
  } else {
    const near = verdicts.filter(v => v.outcome === 'pass' && v.metrics && v.ratio > 0)
      .reduce((a, b) => a && a.ratio >= b.ratio ? a : b, null);
    out.push(h('p.lead', `${plural(data.compared, 'tensor')} `
      + `${data.compared === 1 ? 'was' : 'were'} compared, none of them is wrong.`,
      data.arith && near && [' The nearest to its limit is ', h('code', near.path),
                             `, at ${Math.round(100 * near.ratio)}\u00a0% of it.`]));
  }
  const again = data.notes.find(n => n.startsWith(AGAIN));
  if (again) out.push(h('p', 'To check this one alone: ', h('code', again.slice(AGAIN.length))));
  if (bits.of) out.push(h('p', `${count(bits.equal)} of ${count(bits.of)} tensors are equal in every `
    + 'bit.'));
  return out;
}

function limits({arith, slack}) {
  return !arith ? [] : [['limits', arith.compared === 'by bits' ? `class ${arith.name}: ${arith.summary}`
    : `${slack} times what ${arith.name} errs on the same inputs (${arith.summary})`]];
}

function validateHead(data) {
  const said = data.facts.map(f => `${f[0]} ${f[1]}`);
  const notes = data.notes.filter(n => !said.includes(n)
                                    && !(data.arith && n.startsWith('arithmetic ')));
  const kind = o => ['mismatch', 'missing', 'misshapen'].includes(o) ? 'bad' : o === 'pass' ? 'ok' : 'tie';
  return [h('header.top', h(`div.said.${data.passed ? 'pass' : 'fail'}`,
      h('p.kicker', `tether \u00b7 ${data.title}`),
      h(`h1.${data.passed ? 'ok' : 'bad'}`, data.passed ? 'PASS' : 'FAIL'), sentences(data)),
    h('div.tiles', tile(count(data.compared), 'compared'), Object.entries(data.counts)
      .filter(([o, n]) => n || o === 'pass' || o === 'mismatch')
      .map(([o, n]) => tile(count(n), o, n ? kind(o) : ''))),
    facts([...data.facts.slice(0, -3), ...limits(data), ...data.facts.slice(-3)])),
    notes.length > 0 && h('ul.notes.first', notes.filter(n => !n.startsWith(AGAIN))
      .map(n => h('li', n)))];
}

// ---- rows ----------------------------------------------------------------------------------------

function verdictRows(data, set) {
  const bits = data.arith && data.arith.compared === 'by bits';
  return table(['tensor', 'times allowed', 'largest error', 'relative L2', 'shape',
                `${bits ? 'first' : 'worst'} at`],
    set.map(v => [[v.outcome !== 'pass' && [h(`span.pill.${failing(v) ? 'bad' : 'tie'}`, v.outcome), ' '],
                   h('code', v.path), ' ', h('span.soft', v.op), v.hint && h('p', v.hint)],
                  times(v), number(v.metrics && v.metrics.max_abs), number(v.metrics && v.metrics.rel_l2),
                  `[${v.shape.join(', ')}]`, v.metrics ? v.where : '']));
}

const more = left => left > 0 && h('p.soft', `${count(left)} more are left out of this page; `,
                                   h('code', '--json'), ' has them all.');

function failures(data) {
  const set = data.verdicts.filter(failing), all = set.length + data.left[0];
  if (!all) return null;
  const numbers = set.filter(v => v.metrics).slice(0, 200);
  return [h('h2', 'Failures'),
    h('p', 'In order of execution. Times allowed: the error over the largest that passes.'),
    verdictRows(data, set.slice(0, FIRST_SHOWN)),
    all > FIRST_SHOWN && folded(`${count(all - FIRST_SHOWN)} more failures`,
      verdictRows(data, set.slice(FIRST_SHOWN)), more(data.left[0])),
    numbers.length > 0 && folded('Further numbers of the failures', table(['tensor', 'SNR, dB',
      'cosine', 'max ULP', 'limit at the worst row', 'different', 'NaN', 'Inf', 'denormal'],
      numbers.map(v => [h('code', v.path), ...['snr_db', 'cosine', 'max_ulp']
      .map(k => number(v.metrics[k])), data.arith ? number(data.slack * v.earned) : '\u2013',
      ...['differ', 'nan', 'inf', 'denormal'].map(k => v.metrics[k])])), more(set.length - numbers.length))];
}

function operators(data) {
  const groups = new Map();
  for (const v of data.verdicts) {
    const g = groups.get(v.op) || {op: v.op, compared: 0, wrong: 0, worst: 0};
    groups.set(v.op, g);
    g.compared += failing(v) || v.outcome === 'pass' || v.outcome === 'tie';
    g.wrong += failing(v);
    if (v.metrics) g.worst = Math.max(g.worst, known(v.ratio) ? v.ratio : Infinity);
  }
  const all = [...groups.values()];
  if (all.length < 2) return null;
  const order = [...all.filter(g => g.wrong), ...all.filter(g => !g.wrong)];
  const most = data.first === null ? 20 : 6;
  const rows = set => table(['operator', 'compared', 'wrong', 'worst, times allowed'], set.map(g =>
    [h('code', g.op || 'other tensors'), count(g.compared), g.wrong ? h('b.bad', count(g.wrong)) : '0',
     [bar(Math.min(g.worst, 1), g.worst > 1 ? 'bad' : ''),
      isFinite(g.worst) ? number(g.worst, 2) : '\u221e']]));
  return [h('h2', 'By operator'), h('p', 'The worst error of each, in parts of what is allowed there: '
    + 'more than 1 is wrong.'), rows(order.slice(0, most)), more(data.left[0] + data.left[1]),
    order.length > most && folded(`${order.length - most} more operators`, rows(order.slice(most)))];
}

// ---- pictures ------------------------------------------------------------------------------------

function growth(data) {
  const names = [...new Set(data.growth.map(g => g.curve))];
  if (!names.length) return null;
  return [h('h2', 'Error growth'), h('p', 'How far each chunk of the video is from ours.'),
    h('div.plots', names.map(name => {
      const set = data.growth.filter(g => g.curve === name);
      const line = (label, of, style) => {
        const y = [];
        for (const g of set) y[g.chunk] = of(g);
        return {label, y: [...y].map(v => v === undefined ? null : v), style};
      };
      const one = set[0], allowed = one.earned > 0;
      if (set.length === 1) return h('figure', h('figcaption', h('b', name), h('br'),
        `relative L2 error of the only chunk: ${number(one.rel_l2)}`,
        allowed && `, of at most ${number(data.slack * one.earned)}`));
      return curves(name, [line('measured', g => g.rel_l2, 0),
        ...(allowed ? [line('what the declared arithmetic errs', g => g.earned, 2),
          line(`${data.slack} times that, beyond which nothing passes`, g => data.slack * g.earned, 3)]
          : [])], {x: 'chunk', y: 'relative L2 error', log: true, points: true});
    }))];
}

// A cell: 0 no error, 255 not finite, else log2 of the error in eighths.
function errorMap(data, v) {
  const {rows, cols, split, least, cells} = v.map, e = bytes(cells);
  const some = e.filter(x => x && x < 255), hi = Math.max(...some);
  const lo = Math.max(Math.min(...some), hi - 107);   // four decades
  const size = x => 2 ** ((x + least) / 8);
  const limit = data.arith && v.earned > 0 ? data.slack * v.earned : null;
  const paint = x => !x ? null : x === 255 ? '#2040c0' : viridis((x - lo) / Math.max(1, hi - lo));
  const dims = (a, b) => v.shape.slice(a, b).join(' x ') || '1';
  return h('figure', map(v.path, rows, cols, (i, j) => paint(e[i * cols + j]), {
      x: `columns: ${dims(split)}`, y: `rows: ${dims(0, split)}`,
      tall: Math.max(0.12, Math.min(1, rows / cols)),
      ends: ['0', String(v.shape.slice(split).reduce((a, b) => a * b, 1) - 1)],
      say: (i, j) => {
        const x = e[i * cols + j];
        return x === 255 ? 'NaN or infinity on one side only'
          : x ? `error ${number(size(x), 2)}` : 'no error';
      }}),
    h('figcaption', some.length ? scale(number(size(lo), 2), number(size(hi), 2), viridis) : 'No finite '
      + 'error. ', limit && `The limit of the worst row is ${number(limit, 2)}. `,
      e.includes(255) && 'Blue: NaN or infinity on one side only.'));
}

function maps(data) {
  const set = data.verdicts.filter(v => v.map && v.metrics);
  if (!set.length) return null;
  return [h('h2', 'Where the error is'),
    h('p', 'Of each tensor the largest absolute error per place.'),
    h('div.plots', set.slice(0, 2).map(v => errorMap(data, v))),
    set.length > 2 && folded(`${set.length - 2} more tensors`, h('div.plots', set.slice(2)
      .map(v => errorMap(data, v))))];
}

function rest(data) {
  const others = data.verdicts.filter(v => !failing(v) && v.outcome !== 'pass');
  const passed = data.verdicts.filter(v => v.outcome === 'pass');
  if (!others.length && !passed.length) return null;
  return [h('h2', 'Everything else'),
    others.length > 0 && folded(`${count(others.length)} ties in selections, unsupported or not checked`,
                                verdictRows(data, others)),
    passed.length > 0 && folded(`${count(data.counts.pass)} passed`, verdictRows(data, passed)),
    more(data.left[1])];
}

function showValidation(data) {
  return {head: validateHead(data), failures: failures(data), growth: growth(data), maps: maps(data),
          operators: operators(data), rest: rest(data)};
}
