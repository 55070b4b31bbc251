// tour.js: the nine steps of the lesson, src/golden/README.md, each with a prepared state.
// SPDX-License-Identifier: Apache-2.0
//
// The page of `make tour` has three runs of one prompt and says so by data-tour. A step names the
// runs and the sections that it shows, the state they begin with, and what to read.

const isTether = r => r.policy === 'tether';
const hasSink = r => r.policy === 'fifo' && r.S > 0, noSink = r => r.policy === 'fifo' && r.S === 0;
const driftOf = (data, is) => number(data.rows[data.runs.findIndex(is)][1], 2);
const motionOf = (data, is) => number(lateMotion(data.runs.find(is)), 2);

const STEPS = [
  {title: 'A video is made chunk by chunk', runs: [isTether], show: ['cache'], focus: 'cache',
   state: 'chunk=0&pass=noisy', text: () => [
    'The VAE turns 8x8 pixels of four pictures into 16 numbers: 64x64 pixels are a latent frame of 16x8x8.',
    'Three latent frames are a chunk, and the network never sees more than one chunk of new frames.',
    'A chunk begins as noise, and four noisy passes take it away: its share is 1, 0.94, 0.83 and 0.63.',
    'The clean pass then reads the finished chunk once more, so that its keys and values can stay.',
    'Press the \u2192 button beside Play below: noisy, clean, noisy, clean, and three boxes more each time.'],
   read: () => source('Eq. 2', ['make_chunk'], 'sampler.c')},
  {title: 'Attention reads the past', runs: [isTether], show: ['cache'], focus: 'cache', state: 'chunk=4',
   text: ({runs: [r]}) => [
    'In self-attention a token of the chunk asks the tokens of all frames before it, never of the future.',
    'So keys and values of the past do not change, and are kept: the KV cache, a strip for each of '
      + `${r.layers} layers.`,
    'A frame in it has layers x 2 x tokens x width x 4 bytes: 98,304 here, 575 million in Wan2.1 1.3B at '
      + '832x480.',
    'A box below is one frame: its picture, its age, and the position that RoPE gives it.',
    'Choose another layer: until the cache is full, all layers hold the same frames.'],
   read: () => [source('', ['self_attention'], 'transformer.c'), source('', ['cache_attention'], 'cache.c')]},
  {title: 'Why something must leave', runs: [hasSink], show: ['cache'], focus: 'cache',
   state: 'chunk=7&pass=noisy', text: ({runs: [r]}) => [
    'A minute is 240 latent frames: in the large model they would need 138 GB, and each chunk would cost '
      + 'more than the one before.',
    `So the cache has a budget, here ${r.K} frames, and chunk 6 has filled it.`,
    'Chunk 7 needs three places.',
    `Who leaves is what a policy decides: fifo evicts the oldest frames after a sink of ${r.S}, here 3, 4 `
      + 'and 5 (dashed boxes).',
    'Press the \u2192 button beside Play: after the clean pass there are 21 boxes again.'],
   read: () => source('', ['cache_roll'], 'cache.c')},
  {title: 'The window forgets', runs: [hasSink, noSink], show: ['videos', 'drift'], state: '',
   text: data => [
    'The network now reads only what it has just made, with all errors, and was not trained for that: '
      + 'exposure bias.',
    'Statistics of the frames move away from those of the first: drift, the curves below.',
    'A sink, the first frames, which never leave, anchors them; what lies between it and the window is gone.',
    `In this one video the last quarter is ${driftOf(data, hasSink)} away with the sink and `
      + `${driftOf(data, noSink)} without: one video cannot tell them apart.`,
    'Over 64 prompts the last 90 of 240 frames are 0.097 away with the sink and 0.107 without.'],
   read: () => source('', ['by_time'], 'cache.c')},
  {title: 'Three regions', runs: [isTether], show: ['cache'], focus: 'cache', state: 'chunk=14',
   text: ({runs: [r]}) => [
    `TetherCache divides its ${r.K} places: ${r.S} sink, ${r.M} memory, ${r.R} recent (eq. 3).`,
    'A frame that leaves the recent ones may enter the memory, in place of a member.',
    'Two questions remain: which frames are worth a place (GRAB), and in which form they return (TAME).',
    'The position of a frame is its slot, so distances stay in the range that the model was trained for.',
    'Look at the ages in the memory: they are spread over the video, and other layers choose other frames.'],
   read: () => [source('Eq. 3', ['evict', 'admit'], 'tethercache.c'), source('', ['by_slot'], 'cache.c')]},
  {title: 'GRAB: one decision', runs: [isTether], show: ['cache'], focus: 'grab', state: 'chunk=7&layer=0',
   text: () => [
    'After chunk 7 layer 0 has the members 3 to 16, and frames 17 to 19 have just left the recent ones: 17 '
      + 'candidates for 14 places.',
    'Importance is the share of attention that the chunk gives to a candidate (eq. 6).',
    'Diversity is 1 less redundancy, which is large where a neighbour in time is important (eqs. 7 to 9).',
    'The score adds them, with alpha as weight (eq. 5), and the 14 best stay (eq. 10): frame 10 loses '
      + 'against 17 by 0.00003.',
    'Move alpha to 0: then 8, 9 and 14 leave, so diversity saves 8 and 9 at the cost of 5 and 10.'],
   read: () => []},
  {title: 'TAME: the edit', runs: [isTether], show: ['cache'], focus: 'tame', state: 'chunk=7&layer=0',
   text: () => [
    'Frames 17, 18 and 19 were made late, and may have drifted.',
    'Before they enter the memory, mean and deviation of each channel of their keys and values are drawn '
      + 'towards those of the trusted frames, sink and memory (eqs. 11 to 13).',
    'tau says how far: 0 leaves them, 1 gives them the trusted statistics, 0.35 is the default.',
    'The histograms show all channels before and after; the bells are the channel that is farthest away.',
    'Move tau and see the bell of "after" travel from "before" to "trusted".'],
   read: () => source('', ['tame_value'], 'operators.c')},
  {title: 'Does it help?', runs: [hasSink, noSink, isTether], show: ['videos', 'numbers', 'drift'], state: '',
   text: data => [
    'On this demo model, over 64 prompts and the last 90 of 240 frames, means drift least with TetherCache: '
      + '0.082, with fifo and a sink 0.097; shapes keep best.',
    'But no object moves any more then, where three of four still move under fifo, and standing still is '
      + 'easy to keep.',
    `In this one video the drift of the last quarter is ${driftOf(data, isTether)}, under fifo `
      + `${driftOf(data, hasSink)}; the motion is ${motionOf(data, isTether)}, under fifo `
      + `${motionOf(data, hasSink)}.`,
    'A model that knows one object on a plain background cannot show more; the figures of the paper are '
      + 'those of the 1.3B model.',
    'tether compare makes such a page for your prompts.'],
   read: () => []},
  {title: 'Your own policy', runs: [hasSink, isTether], show: ['lives', 'retention'], state: '',
   text: () => [
    'A policy says who leaves, and at which positions attention sees the rest: two functions in golden.',
    'The maps below are what two policies make of it: fifo keeps a sink and a window, TetherCache a memory '
      + 'between them.',
    'The ninth section of the lesson, src/golden/README.md, writes one that forgets every second frame, in '
      + 'twelve lines.',
    'Put yours at the end of policies.c, name it in the list of cache.c, and run golden with --cache.',
    'tether explain prints every decision; make check-golden compares it with the engine.'],
   read: () => [source('', ['policy_find'], 'cache.c'), source('', ['memrope_evict'], 'policies.c')]},
];

// The data of some runs of a page.
function only(data, which) {
  const at = which.map(is => data.runs.findIndex(is));
  const of = list => list.length === data.runs.length ? at.map(i => list[i]) : [];
  return {...data, runs: of(data.runs), rows: of(data.rows), drift: of(data.drift)};
}

function startTour(data) {
  const told = h('section.tour', {'aria-live': 'polite'}), page = h('main', told);
  document.getElementById('plain').replaceWith(page);
  document.documentElement.dataset.shown = 'tour';
  let at = 0;
  const go = i => {
    at = Math.max(0, Math.min(STEPS.length - 1, Math.trunc(i) || 0));
    history.replaceState(null, '', `#tour=${at + 1}`);
    const step = STEPS[at], some = only(data, step.runs);
    state = new URLSearchParams(step.state);
    const sections = showRuns(some);
    const button = (to, word, label) => h('button', {type: 'button', 'aria-label': label,
      disabled: to < 0 || to >= STEPS.length, click: () => go(to)}, word);
    page.dataset.focus = step.focus || '';
    told.replaceChildren();
    fill(told, [
      h('p.kicker', `How a long video is made, step ${at + 1} of ${STEPS.length}`), h('h1', step.title),
      h('ol', step.text(some).map(t => h('li', t))),
      step.read(),
      h('nav.controls', {'aria-label': 'steps'}, button(at - 1, '\u2190', 'step before'),
        STEPS.map((s, k) => h('button', {type: 'button', click: () => go(k), title: s.title,
          'aria-label': `step ${k + 1}: ${s.title}`, 'aria-current': k === at ? 'step' : null}, k + 1)),
        button(at + 1, '\u2192', 'next step'))]);
    while (told.nextSibling) told.nextSibling.remove();
    fill(page, step.show.map(name => sections[name]));
    scrollTo(0, 0);
  };
  // In a field, at a slider and in a table that scrolls the arrows are its own.
  addEventListener('keydown', e => {
    if (e.altKey || e.ctrlKey || e.metaKey || e.target.closest?.('input, select, .wide')) return;
    const to = {ArrowRight: at + 1, PageDown: at + 1, ArrowLeft: at - 1, PageUp: at - 1, Home: 0,
                End: STEPS.length - 1}[e.key];
    if (to === undefined) return;
    e.preventDefault();
    go(to);
  });
  addEventListener('hashchange', () => go(new URLSearchParams(location.hash.slice(1)).get('tour') - 1));
  go((state.get('tour') || 1) - 1);
}
