// run.js: one run: the cache as a strip of slots, and the decisions of GRAB and TAME.
// SPDX-License-Identifier: Apache-2.0

const REGIONS = ['empty', 'sink', 'memory', 'recent', 'new'];
// Which policies of src/golden place frames for RoPE with by_slot or by_time of cache.c.
const POSITIONS = {tether: 'slot', memrope: 'slot', reward: 'slot', full: 'frame', fifo: 'frame',
                   longlive: 'frame', causvid: 'frame', 'causvid-rolling': 'frame'};

// ---- equations of GRAB, as in src/golden/tethercache.c ------------------------------------------

// Eq. 7
function timeScale(frames) {
  return Math.max(1, 0.5 * (Math.max(...frames) - Math.min(...frames) + 1));
}

// Eq. 8: the neighbour that makes candidate c most redundant, and by how much.
function redundancy(frames, mass, c) {
  const sigma = timeScale(frames);
  let most = {by: null, much: 0};
  frames.forEach((f, o) => {
    const much = o === c ? 0 : Math.exp(-Math.abs(frames[c] - f) / sigma) * mass[o];
    if (much > most.much) most = {by: f, much};
  });
  return most;
}

// Eqs. 5, 9 and 10: scores and choice of a round with this alpha.
function choose(round, alpha) {
  const diversity = round.diversity
    || round.frames.map((f, c) => Math.max(0, 1 - redundancy(round.frames, round.mass, c).much));
  const score = round.mass.map((m, c) => m + alpha * diversity[c]);
  const rank = score.map((x, c) => score.filter((y, o) => y > x || (y === x && o < c)).length);
  return {diversity, score, rank, keep: rank.map(r => r < round.members)};
}

// The alpha of the run; where no file says it, the one that its scores tell.
function alphaOf(run, round) {
  if (known(run.alpha)) return run.alpha;
  const {diversity} = choose(round, 0);
  return (round.score[0] - round.mass[0]) / diversity[0];
}

// ---- slots ---------------------------------------------------------------------------------------

const slotsAt = (run, chunk, layer) => {
  const at = (chunk * run.layers + layer) * run.slots;
  return run.src.slice(at, at + run.slots).map((frame, i) =>
    ({frame, slot: i, region: REGIONS[+run.region[at + i]]}));
};

const frameName = f => f === -2 ? 'average of long ago' : f === -3 ? 'average of late' : `frame ${f}`;

function slotBox(run, x, newest, mark) {
  const average = x.frame < -1, empty = x.region === 'empty' || x.frame === -1;
  const place = POSITIONS[run.policy];
  return h(`div.slot.${average ? 'average' : x.region}${mark ? '.' + mark : ''}`,
    {'data-frame': empty ? null : `${x.frame}`},
    !empty && cell(run, x.frame, 56), h('b', empty ? 'empty' : average ? 'average' : x.region),
    !empty && [frameName(x.frame), !average && [h('br'), `age ${newest - x.frame}`],
               place && !average && x.slot !== null
                 && [h('br'), `position ${place === 'slot' ? x.slot : x.frame}`]],
    mark === 'leaves' && [h('br'), 'leaves'], mark === 'entered' && x.region === 'memory'
      && [h('br'), 'admitted']);
}

// Boxes of the same frame move from their old places to the new ones.
function moveTo(room, boxes) {
  const old = new Map([...room.children].map(e => [e.dataset.frame, e.getBoundingClientRect()]));
  room.replaceChildren(...boxes);
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  for (const e of room.children) {
    const was = old.get(e.dataset.frame), is = e.getBoundingClientRect();
    if (!was || (was.left === is.left && was.top === is.top)) continue;
    e.animate([{transform: `translate(${was.left - is.left}px, ${was.top - is.top}px)`}, {}],
              {duration: 350, easing: 'ease-in-out'});
  }
}

const capital = text => text[0].toUpperCase() + text.slice(1);
const frameList = frames => frames.length === 1 ? `frame ${frames[0]}` : `frames ${list(frames)}`;

// ---- GRAB ----------------------------------------------------------------------------------------

function grabTable(run, round, alpha) {
  const told = [...round.keep].map(k => k === '1');
  const recorded = alphaOf(run, round), same = alpha === recorded;
  const now = choose(round, alpha);
  const score = same ? round.score : now.score, keep = same ? told : now.keep;
  const order = round.frames.map((f, c) => c);
  const most = Math.max(...round.mass);
  const rows = order.map(c => {
    const near = redundancy(round.frames, round.mass, c);
    return [round.frames[c] + (c < round.members ? '' : ' (newcomer)'),
            h(`span.pill${keep[c] ? '.ok' : '.bad'}`, keep[c] ? 'kept' : 'dropped'),
            number(score[c], 6), [bar(round.mass[c] / most, 'plain'), number(round.mass[c], 5)],
            number(now.diversity[c], 6), number(near.much, 4),
            near.by === null ? '\u2013' : `frame ${near.by}`, now.rank[c] + 1];
  });
  const stay = order.filter(c => keep[c] && !told[c]).map(c => round.frames[c]);
  const go = order.filter(c => !keep[c] && told[c]).map(c => round.frames[c]);
  const kept = order.filter(c => keep[c]).map(c => score[c]);
  const lost = order.filter(c => !keep[c]).map(c => score[c]);
  const margin = same && known(round.margin) ? round.margin : Math.min(...kept) - Math.max(...lost);
  return [h('p', {'aria-live': 'polite'}, `${order.length} candidates for ${round.members} places: `
      + `${frameList(order.filter(c => !keep[c]).map(c => round.frames[c]))} `
      + `${lost.length === 1 ? 'is' : 'are'} dropped, by a margin of ${number(margin, 2)}. `,
      same ? `This is the choice of the run, with alpha = ${number(recorded)}.`
      : stay.length ? `With this alpha ${frameList(stay)} would stay instead of ${list(go)}.`
      : 'With this alpha the choice is that of the run.'),
    table(['frame', '', 'score', 'importance', 'diversity', 'redundancy', 'by neighbour', 'rank'],
      rows, {row: c => `${keep[c] ? '' : 'dropped'}${keep[c] !== told[c] ? ' changed' : ''}`})];
}

function grabPanel(run, round) {
  const recorded = alphaOf(run, round), room = h('div', {id: 'grab'});
  const slider = h('input', {type: 'range', min: 0, max: 200, step: 1, 'aria-label': 'alpha'});
  const out = h('output');
  const show = alpha => {
    out.textContent = `alpha = ${number(alpha)}`;
    room.replaceChildren(...grabTable(run, round, alpha).flat());
  };
  const set = alpha => {
    slider.value = 200 * Math.sqrt(alpha / 5);
    show(alpha);
  };
  const back = () => set(recorded);
  slider.addEventListener('input', () => show(5 * (slider.value / 200) ** 2));
  set(asked('alpha', 0, 5) ?? recorded);
  return [h('h3', 'GRAB: which frames stay in memory'),
    h('p', 'The score is importance + alpha \u00d7 diversity. Importance: how much the queries of the '
      + 'chunk attend to the frame. Diversity: 1 less redundancy, which is the importance of the '
      + 'neighbour nearest in time and weight. Move alpha to choose anew from the same numbers.'),
    words(['alpha', 'candidate', 'importance', 'diversity', 'margin']),
    h('div.controls', slider, out, h('button', {type: 'button', click: back}, 'as in the run')), room,
    source('Eqs. 5 to 10', ['grab_score', 'grab_importance', 'grab_time_scale', 'grab_redundancy',
                            'grab_diversity', 'grab_select'], 'tethercache.c')];
}

// ---- TAME ----------------------------------------------------------------------------------------

const bytes = text => [...atob(text)].map(c => c.charCodeAt(0));

function binned(values, first, step, n) {
  const counts = Array(n).fill(0);
  for (const v of values) counts[Math.max(0, Math.min(n - 1, Math.floor((v - first) / step)))]++;
  return counts;
}

const bell = (mean, sd, lo, hi, n) => Array.from({length: n}, (_, i) => {
  const z = (lo + (hi - lo) * i / (n - 1) - mean) / sd;
  return Math.exp(-z * z / 2) / sd;
});

// Keys or values of one frame with this tau.
function tamePart(run, part, tau, what) {
  const z = bytes(part.z).map(b => (b - 128) / 16);
  const ratio = bytes(part.ratio).map(b => b / 32);
  const [mean, sd] = part.own, [to, toSd] = part.trusted;
  const after = [(1 - tau) * mean + tau * to, (1 - tau) * sd + tau * toSd];
  const lo = Math.min(mean - 3 * sd, to - 3 * toSd), hi = Math.max(mean + 3 * sd, to + 3 * toSd);
  const note = run.channels[0] < run.channels[1]
    ? `${run.channels[0]} of ${run.channels[1]} channels` : plural(run.channels[1], 'channel');
  return [
    table([what, 'before', 'after'], [
      ['distance of the means, in trusted deviations', number(part.distance, 5),
       number((1 - tau) * part.distance, 5)],
      ['deviation over the trusted one', number(part.spread, 5),
       number((1 - tau) * part.spread + tau, 5)],
      [`channel ${part.channel}: mean (trusted ${number(to, 4)})`, number(mean, 4),
       number(after[0], 4)],
      [`channel ${part.channel}: deviation (trusted ${number(toSd, 4)})`, number(sd, 4),
       number(after[1], 4)]]),
    h('div.plots',
      histogram(`${what}: distance of channel means from the trusted frames`, [
        {label: 'after', counts: binned(z.map(x => (1 - tau) * x), -2, 0.125, 32), style: 0},
        {label: 'before', counts: binned(z, -2, 0.125, 32), style: 3, outline: true}],
        {first: -2, step: 0.125, x: 'trusted deviations; the outer bins take the rest',
         y: 'channels', more: note}),
      histogram(`${what}: deviation of channels over the trusted one`, [
        {label: 'after', counts: binned(ratio.map(r => (1 - tau) * r + tau), 0, 0.125, 20), style: 0},
        {label: 'before', counts: binned(ratio, 0, 0.125, 20), style: 3, outline: true}],
        {first: 0, step: 0.125, x: 'ratio; the last bin takes the rest', y: 'channels', more: note}),
      curves(`${what}: channel ${part.channel}, the farthest away, as normal distributions`, [
        {label: 'trusted', y: bell(to, toSd, lo, hi, 80), style: 2},
        {label: 'before', y: bell(mean, sd, lo, hi, 80), style: 3},
        {label: 'after', y: bell(...after, lo, hi, 80), style: 0}],
        {from: lo, to: hi, x: 'value', y: 'density'}))];
}

function tamePanel(run, edits) {
  const room = h('div', {id: 'tame'});
  const frame = h('select', {'aria-label': 'admitted frame'}, edits.map((e, i) =>
    h('option', {value: i}, `frame ${e.frame}`)));
  const slider = h('input', {type: 'range', min: 0, max: 100, 'aria-label': 'tau'});
  const out = h('output');
  const show = () => {
    const tau = slider.value / 100, e = edits[frame.value];
    out.textContent = `tau = ${number(tau)}`;
    room.replaceChildren(...tamePart(run, e.keys, tau, 'keys').flat(),
                         ...tamePart(run, e.values, tau, 'values').flat());
  };
  const set = tau => {
    slider.value = 100 * tau;
    show();
  };
  const back = () => set(run.tau);
  slider.addEventListener('input', show);
  frame.addEventListener('change', show);
  set(asked('tau', 0, 1) ?? run.tau);
  return [h('h3', 'TAME: how an admitted frame is edited'),
    h('p', 'Each channel of its keys and values is drawn by tau towards mean and deviation of the '
      + 'trusted frames: the sinks and the members before this round. tau = 0 leaves it, tau = 1 gives '
      + 'it their statistics.'), words(['tau', 'trusted frames']),
    h('div.controls', frame, slider, out, h('button', {type: 'button', click: back}, 'as in the run')),
    room, source('Eqs. 11 to 13', ['edit_admitted', 'tame_stat', 'tame_edit'], 'tethercache.c')];
}

// ---- what a chunk does ---------------------------------------------------------------------------

function whatHappens(run, chunk, layer, clean) {
  const first = run.start[chunk], chunkFrames = Array.from({length: run.count[chunk]},
                                                          (_, i) => first + i);
  const now = slotsAt(run, chunk, layer).map(x => x.frame).filter(f => f >= 0);
  const before = chunk ? slotsAt(run, chunk - 1, layer).map(x => x.frame).filter(f => f >= 0) : [];
  const gone = before.filter(f => !now.includes(f));
  const rounds = (run.grab || []).filter(r => r.chunk === chunk && r.layer === layer);
  const waiting = rounds.flatMap(r => r.frames.filter((f, c) => c >= r.members));
  const kept = rounds.flatMap(r => r.frames.filter((f, c) => c >= r.members && r.keep[c] === '1'));
  if (!clean)
    return [h('p', h('b', `Chunk ${chunk}, noisy passes. `),
              `${capital(frameList(chunkFrames))} begin${chunkFrames.length === 1 ? 's' : ''} as noise and `
              + 'become clean in a few passes, each of which reads the cache.'),
            waiting.length ? h('p', `There is no room for all: ${frameList(waiting)} leave`
              + `${waiting.length === 1 ? 's' : ''} the recent frames and wait`
              + `${waiting.length === 1 ? 's' : ''}, unseen, for the clean pass.`)
            : gone.length ? h('p', `There is no room for all: ${frameList(gone)} leave`
              + `${gone.length === 1 ? 's' : ''} the cache.`) : h('p', 'The cache has room.')];
  return [h('p', h('b', `Chunk ${chunk}, clean pass. `),
            'The finished frames go through the network once more, and their keys and values stay.'),
          rounds.length ? h('p', `GRAB admits ${kept.length ? frameList(kept) : 'no frame'} to memory; `
            + `${gone.length ? frameList(gone) : 'no frame'} `
            + `${gone.length > 1 ? 'are' : 'is'} forgotten.`
            + (kept.length && run.tau > 0 ? ' TAME edits what is admitted.' : ''))
          : h('p', !gone.length ? 'Nothing is forgotten.'
              : `${capital(frameList(gone))} ${gone.length > 1 ? 'are' : 'is'} `
                + (run.src.some(f => f < -1) ? 'blended into the averages.'
                   : run.policy === 'deep-forcing' ? 'compressed: chosen tokens of them stay.'
                   : 'forgotten.'))];
}

// One pass of a chunk in one layer: the slots, what happens, and the pictures of the chunk.
function showPass({strip, event, screen}, run, chunk, at, clean) {
  const newest = run.start[chunk] + run.count[chunk] - 1;
  const now = slotsAt(run, chunk, at);
  const before = chunk ? slotsAt(run, chunk - 1, at) : [];
  const has = (set, f) => set.some(x => x.frame === f);
  // The chunk has the slots of what leaves; members stay where they are until the clean pass.
  const stays = x => x.region === 'memory' && run.grab;
  // What GRAB will decide on has left its slot, and no query sees it.
  const decided = (run.grab || []).some(r => r.chunk === chunk && r.layer === at);
  const waits = x => decided && !['sink', 'memory'].includes(x.region)
    && !now.some(y => y.frame === x.frame && y.region !== 'memory');
  const noisy = x => ({...x, region: x.region === 'new' ? 'recent' : x.region,
    slot: stays(x) ? x.slot : waits(x) ? null : now.find(y => y.frame === x.frame)?.slot ?? null});
  const admitted = x => chunk && x.frame >= 0 && (!has(before, x.frame) || (x.region === 'memory'
    && !['memory', 'sink'].includes(before.find(y => y.frame === x.frame).region)));
  moveTo(strip, clean ? now.map(x => slotBox(run, x, newest, admitted(x) ? 'entered' : ''))
    : [...before.filter(x => x.region !== 'empty').map(x => slotBox(run, noisy(x), newest,
         waits(x) || (x.frame >= 0 && !has(now, x.frame) && !stays(x)) ? 'leaves' : '')),
       ...now.filter(x => x.region === 'new').map(x => slotBox(run, x, newest, ''))]);
  event.replaceChildren(...whatHappens(run, chunk, at, clean));
  if (screen)
    screen.replaceChildren(...Array.from({length: run.count[chunk]}, (_, k) => run.start[chunk] + k)
      .map(f => h('figure', cell(run, f, Math.max(128, run.film ? run.film.width : 0),
        'div.cell.large') || '', h('figcaption', `frame ${f}, ${seconds(f)}`))));
}

const regions = run => legend([['var(--sink)', 'sink'], ['var(--memory)', 'memory'],
  ['var(--recent)', 'recent'], ['var(--new)', 'new'],
  run.src.some(f => f < -1) ? ['var(--average)', 'average'] : null].filter(Boolean));

// The whole view of a run with a trace.
function runView(run) {
  const strip = h('div.slots', {role: 'group', 'aria-label': 'slots of the cache'});
  const event = h('div.event', {'aria-live': 'polite'}), screen = h('div.strip');
  const decisions = h('div');
  const layer = h('select', {'aria-label': 'layer', id: 'layer'},
    Array.from({length: run.layers}, (_, i) => h('option', {value: i}, `layer ${i}`)));
  let shown = '';
  const show = i => {
    const chunk = i >> 1, at = +layer.value;
    showPass({strip, event, screen}, run, chunk, at, i % 2 === 1);
    if (shown === `${chunk} ${at}`) return;
    shown = `${chunk} ${at}`;
    const rounds = (run.grab || []).filter(r => r.chunk === chunk && r.layer === at);
    const edits = (run.edits || []).filter(e => e.chunk === chunk && e.layer === at);
    decisions.replaceChildren(
      ...rounds.map(r => h('section.part-grab', grabPanel(run, r))),
      ...(edits.length ? [h('section.part-tame', tamePanel(run, edits))] : []),
      ...(run.grab && !rounds.length ? [h('p.soft', 'No decision in this chunk: GRAB begins when the '
        + 'cache is full.')] : []));
  };
  const time = clock('time', 2 * run.chunks - 1, i =>
    `chunk ${i >> 1} of ${run.chunks - 1}, ${i % 2 ? 'clean pass' : 'noisy passes'}`, show, 900);
  layer.addEventListener('change', () => time.go(time.at()));
  const chunk = (run.grab || []).length ? run.grab[0].chunk : run.chunks - 1;
  const positions = {slot: source('', ['by_slot'], 'cache.c'), frame: source('', ['by_time'], 'cache.c')};
  layer.value = asked('layer', 0, run.layers - 1) ?? 0;
  time.go(2 * (asked('chunk', 0, run.chunks - 1) ?? chunk) + (state.get('pass') !== 'noisy'));
  return [h('section.part-cache', h('h2', {id: 'cache'}, `What the cache holds: ${run.label}`),
    h('p', 'One box is one slot of the cache: room for the keys and values of a frame. The strip is the '
      + 'cache of one layer. Play, or step: noisy passes, clean pass, next chunk.'),
    words(['noisy pass', 'clean pass', 'slot', 'sink', 'memory', 'recent', 'age', 'position']),
    h('div.follow', time.element), screen, h('div.controls', layer, regions(run)), strip, event,
    source(run.policy === 'tether' ? 'Eqs. 2 and 3' : '', ['make_chunk'], 'sampler.c'),
    source('', ['cache_attention'], 'cache.c'), positions[POSITIONS[run.policy]]), decisions];
}
