// runs.js: a run, or several runs under each other: numbers, drift, what attention can read.
// SPDX-License-Identifier: Apache-2.0

const WINDOW = [{at: 21, word: '21 frames: the length of training'}];

// What the columns of the table of numbers mean; the order is that of src/analyze/report.c.
const MEANING = [
  'distance of the channel means of a latent frame from those of the reference, averaged over the '
    + 'last quarter of the video',
  'the same of their standard deviations',
  'frames of which attention can read anything after the last chunk, a mean over the layers',
  'newest less oldest of them',
  'how many frames back they lie, weighted by how much of them can be read',
  'the part of what can be read that is not older than the 21 frames of training',
  'frames that entered the memory, summed over the layers',
  'frames that left the window and were refused by the memory, summed over the layers',
  'frames whose keys and values were changed on entering, summed over the layers',
  'how many chunks such a frame stays in memory, until the end at most',
  'on the clock of this machine'];

function best(rows, k) {
  const all = rows.filter(r => known(r[k]));
  return all.length < 2 ? null : all.reduce((a, b) => b[k] < a[k] ? b : a);
}

const lateMotion = run => {
  const late = (run.motion || []).slice(-Math.ceil((run.motion || []).length / 4)).filter(known);
  return late.length ? late.reduce((a, b) => a + b) / late.length : null;
};

// Sentences that say what the numbers mean, and what one video cannot show.
function verdict(data) {
  const {runs, rows} = data, out = [];
  const [one] = runs;
  if (runs.length > 1) out.push(`${runs.length} runs, one cache policy each. `);
  else if (known(one.S) && known(one.K)) out.push(`The cache of each layer keeps ${one.K} frames: `,
    [[one.S, 'sink'], [one.M, 'memory'], [one.R, 'recent'],
     [one.K - one.S - (one.M || 0) - (one.R || 0), 'of the window']].filter(x => x[0] > 0)
      .map(([n, word], i) => `${i ? ', ' : ''}${n} ${word}`), '. ',
    known(rows[0][7]) && rows[0][7] > 0 && `In ${one.layers} layers ${count(rows[0][7])} frames were `
      + `admitted to memory, ${count(rows[0][8])} refused. `);
  ['mean', 'deviation'].forEach((word, k) => {
    const least = best(rows, k + 1);
    if (least) out.push(`Least drift of the ${word}: `, h('b', least[0]),
                        ` (${number(least[k + 1])}). `);
  });
  const moves = runs.map(r => [r.label, lateMotion(r)]).filter(m => known(m[1]));
  const still = moves.length > 1 && moves.reduce((a, b) => b[1] < a[1] ? b : a);
  const most = moves.length > 1 && moves.reduce((a, b) => b[1] > a[1] ? b : a);
  if (still && most[1] > 1.25 * still[1])
    out.push(`In the last quarter ${still[0]} moves least, ${number(100 * still[1] / most[1], 2)} % `
      + `of ${most[0]}: what stands still does not drift either. `);
  return out;
}

function lengths(runs) {
  const longest = Math.max(...runs.map(r => r.frames));
  const short = runs.filter(r => r.frames !== longest);
  return short.length > 0 && h('p.lead.tie', 'Runs are of unequal length: ', list(short.map(r =>
    `${r.label} has ${r.frames} latent frames`)), `, the longest ${longest}. The last quarter of a `
    + 'shorter one begins earlier.');
}

function shared(runs, key) {
  const all = new Set(runs.map(r => r[key] || ''));
  return all.size === 1 && !all.has('') ? [[key, [...all][0]]] : [];
}

function head(data) {
  const {runs} = data, longest = Math.max(...runs.map(r => r.frames));
  const size = runs.find(r => r.size), words = verdict(data);
  return h('header.top', h('div.said', h('p.kicker', `tether \u00b7 ${plural(runs.length, 'run')}`),
      h('h1', data.title), words.length > 0 && h('p.lead', words), lengths(runs)),
    h('div.tiles', tile(runs.length, runs.length === 1 ? 'run' : 'policies'),
      tile(longest, 'latent frames'), tile(seconds(longest - 1), 'of video'),
      runs.length === 1 && runs[0].chunks && [tile(runs[0].chunks, 'chunks'),
                                             tile(runs[0].layers, 'layers')]),
    facts([...data.facts.filter(f => f[0] !== 'program'), ...shared(runs, 'prompt'),
           ...shared(runs, 'seed'), ...shared(runs, 'policy'),
           ...(size ? [['size', `${size.size[0]}x${size.size[1]} pixels`]] : []),
           ...data.facts.filter(f => f[0] === 'program')]));
}

function numbers(data) {
  const marked = [best(data.rows, 1), best(data.rows, 2)];
  return [h('h2', 'Numbers'),
    h('p', data.rows.length > 1 ? 'Of the two columns of drift the least is marked. One video of each '
      + 'says little: another prompt or seed can turn the order, and drift is a distance from the '
      + 'beginning of the same video, which is also small when nothing moves.'
      : 'Frames admitted, rejected and edited are sums over the layers.'),
    table(data.columns, data.rows.map(r => r.map((x, k) => k === 0 ? x
      : k < 3 && marked[k - 1] === r ? h('b.ok', number(x)) : number(x)))),
    folded('What the columns mean', h('dl.facts', data.columns.slice(1).map((c, k) =>
      [h('dt', c), h('dd', MEANING[k])])))];
}

// The mean of each value and those before it, `width` together.
const runningMean = (x, width) => x.map((v, i) => {
  const last = x.slice(Math.max(0, i - width + 1), i + 1).filter(known);
  return known(v) ? last.reduce((a, b) => a + b, 0) / last.length : v;
});

function drift(data) {
  // Many curves at full detail cannot be told apart.
  const many = data.runs.length > 4 && Math.min(...data.runs.map(r => r.frames)) >= 36;
  const smooth = y => many ? runningMean(y, 12) : y;
  const kinds = [['mean', 'Mean of the channels of the latents'],
    ['std', 'Standard deviation of the channels of the latents'], ['k_mean', 'Keys: mean'],
    ['k_std', 'Keys: standard deviation'], ['v_mean', 'Values: mean'],
    ['v_std', 'Values: standard deviation']];
  const chart = ([kind, title]) => {
    const set = data.drift.map((d, i) => ({label: d.label, y: smooth(d[kind] || []), style: i}))
      .filter(c => c.y.length);
    return set.length > 0 && curves(title, set, {x: 'latent frame (4 = 1 s)', y: data.unit,
                                                 marks: WINDOW});
  };
  const motion = data.runs.map((r, i) => ({label: r.label, y: smooth(r.motion || []), style: i}))
    .filter(c => c.y.length);
  const [latents, cached] = [kinds.slice(0, 2).map(chart), kinds.slice(2).map(chart)];
  if (!latents.some(Boolean) && !motion.length) return null;
  return [h('h2', 'Drift and motion'),
    h('p', 'How far frames move from the beginning: distance of statistics per channel from ',
      typeof data.reference === 'number' ? `those of the first ${plural(data.reference, 'frame')} of `
      + 'the same video.' : `all frames of ${data.reference}.`,
      ' Motion: how far a latent frame is from the one before.',
      many && ' Curves are running means over 12 frames; the numbers above are not.'),
    words(['drift', 'motion']), h('div.plots', latents, motion.length > 0 && curves('Motion', motion,
      {x: 'latent frame (4 = 1 s)', y: 'root mean square'})),
    cached.some(Boolean) && folded('Drift of what enters the cache: keys and values',
                                   h('div.plots', cached))];
}

// On light and on dark ground: the more can be read, the stronger.
const ink = u => u > 0 ? `rgba(40, 125, 215, ${0.2 + 0.8 * u})` : null;

function retention(runs) {
  const seen = runs.filter(r => r.readable);
  if (!seen.length) return null;
  return [h('h2', 'What attention can read'),
    h('p', 'Each row is a chunk, each column a frame of the video: how much of it the chunk can read, '
      + 'a mean over the layers. ', scale('little', 'the whole frame', u => ink(u || 0.01))),
    words(['retention']),
    h('div.maps', seen.map(r => map(r.label, r.chunks, r.frames,
      (i, j) => ink(r.readable[i * r.frames + j] / 100), {x: 'source frame', y: 'chunk',
        say: (i, j) => `chunk ${i} reads ${r.readable[i * r.frames + j]} % of frame ${j}`}))),
    source('', ['cache_attention'], 'cache.c')];
}

function biography(runs) {
  const seen = runs.filter(r => r.src && r.chunks);
  if (!seen.length) return null;
  const last = Math.max(1, ...seen.map(r => r.frames - 1));
  const averages = seen.some(r => r.src.some(f => f < -1));
  const paint = (r, i, j) => {
    const f = r.src[j * r.layers * r.slots + i];
    return f === -2 ? '#d55e00' : f === -3 ? '#cc79a7' : f < 0 ? null : viridis(f / last);
  };
  return [h('h2', 'The life of every frame'),
    h('p', 'Each row is a slot of the cache of layer 0, each column a chunk: which frame lives there. ',
      scale('first frame', 'last', viridis)),
    averages && legend([['#d55e00', 'long-term average'], ['#cc79a7', 'short-term average']]),
    h('div.maps', seen.map(r => map(r.label, r.slots, r.chunks, (i, j) => paint(r, i, j),
      {x: 'chunk', y: 'slot', say: (i, j) => {
        const f = r.src[j * r.layers * r.slots + i];
        return `chunk ${j}, slot ${i}: ${f === -1 ? 'empty' : frameName(f)}`;
      }})))];
}

function inside(runs) {
  const seen = runs.filter(r => r.src && r.chunks);
  if (!seen.length) return null;
  const first = asked('run', 0, seen.length - 1)
    ?? Math.max(0, seen.findIndex(r => r.grab && r.grab.length));
  const room = h('div');
  const choice = h('select', {'aria-label': 'run'}, seen.map((r, i) =>
    h('option', {value: i, selected: i === first}, r.label)));
  const show = () => room.replaceChildren(...runView(seen[+choice.value]).flat(Infinity)
    .filter(Boolean));
  choice.addEventListener('change', show);
  show();
  return [seen.length > 1 && h('div.controls', h('label', 'Look inside a run: ', choice)), room];
}

function showRuns(data) {
  const {runs} = data, one = runs.length === 1;
  const rest = {drift: drift(data), retention: retention(runs), lives: biography(runs)};
  const first = {head: head(data), [one ? 'videos' : 'numbers']: one ? videos(runs) : numbers(data)};
  return one ? {...first, cache: inside(runs), ...rest, numbers: numbers(data)}
    : {...first, videos: videos(runs), ...rest, cache: inside(runs)};
}
