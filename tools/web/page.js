// page.js: the live page. The program runs in workers; make puts the viewer's modules before this
// file, and they show what the program records.
// SPDX-License-Identifier: Apache-2.0
//
// What follows # in the address is the state to begin with: #a=tether:alpha=0&b=fifo,
// prompt=..., seed=7, latents=60.

const MODEL = ['config.json', 'diffusion_pytorch_model.safetensors', 'Wan2.1_VAE.safetensors',
               'models_t5_umt5-xxl-enc-bf16.safetensors', 'google/umt5-xxl/spiece.model'];

// Policies, and those of their knobs that make a difference here, with defaults.
const POLICIES = [
  'tether budget=21 sink=3 recent=4 alpha=0.35 tau=0.35 pool=chunk',
  'fifo budget=21 sink=3',
  'infinity budget=6 sink=1',
  'memrope budget=12 sink=3 alpha-long=0.01 alpha-short=0.1',
  'deep-sink budget=21 sink=14',
  'deep-forcing budget=21 sink=10 recent=4 compress-to=16',
  'rolling-sink budget=21',
  'reward budget=9 sink=3 sink-keep=0.999',
  'longlive budget=12 sink=3',
  'causvid-rolling budget=21 sink=0',
  'full'];

// What the demo model was trained on (tether demo --list).
const SHAPES = {colour: ['red', 'green', 'blue', 'yellow', 'white', 'purple'],
  shape: ['circle', 'square', 'triangle'],
  motion: ['moves left and bounces', 'moves right and bounces', 'moves up and bounces',
           'moves down and bounces', 'grows and shrinks', 'spins in place'],
  background: ['blue', 'gray', 'black', 'striped']};
const KNOWN = new Set([...Object.values(SHAPES).flat().join(' ').split(' '), 'a', 'on', 'background']);

const DEFAULT = {prompt: 'a red circle moves left and bounces, on a blue background', seed: '0',
                 latents: '42', a: 'tether', b: 'fifo'};
const first = name => state.get(name) ?? DEFAULT[name];
const labelled = (word, input) => h('label', word, input);
const note = h('p', {role: 'status', id: 'state'}), sides = h('div.sides'), after = h('div');
const go = h('button.go', {id: 'go'}, 'Generate');
const stop = h('button', {id: 'stop', type: 'button', disabled: true}, 'Stop');
const open = h('button', {id: 'open', type: 'button', hidden: true}, 'Open the report');
let running = [], urls = [];   // of what is to be saved

// ---- the form ------------------------------------------------------------------------------------

const prompt = h('input', {id: 'prompt', maxlength: 8000, value: first('prompt'), autocomplete: 'off'});
const unknown = h('p.soft', {id: 'unknown'});
const seed = h('input', {id: 'seed', inputmode: 'numeric', pattern: '[0-9]+', required: true,
                         value: first('seed')});
const latents = h('input', {id: 'latents', type: 'number', min: 3, max: 240, step: 3, required: true,
                            value: first('latents')});

function checkWords() {
  const strange = [...new Set(prompt.value.toLowerCase().match(/[^\s,.]+/g) || [])]
    .filter(w => !KNOWN.has(w));
  const parts = prompt.value.match(/^a (\w+) (\w+) (.+), on a (\w+) background$/);
  Object.values(SHAPES).forEach((all, i) => {
    if (parts && all.includes(parts[i + 1])) picks[i].querySelector('select').value = parts[i + 1];
  });
  unknown.textContent = clean(strange.length ? 'The model was trained without '
    + `${list(strange.slice(0, 5).map(w => `"${w.slice(0, 30)}"`))}: expect something else.`
    : 'The model knows all of these words; it can draw nothing else.');
}

const picks = Object.entries(SHAPES).map(([word, all]) => labelled(word, h('select', {id: word,
  change: () => {
    const [colour, shape, motion, ground] = picks.map(p => p.querySelector('select').value);
    prompt.value = `a ${colour} ${shape} ${motion}, on a ${ground} background`;
    checkWords();
  }}, all.map(x => h('option', x)))));
prompt.addEventListener('input', checkWords);

// The choice of a policy and its knobs; text() is what --cache takes.
function choice(name, title, none) {
  const [chosen, ...set] = first(name).split(':');
  const room = h('span.row'), all = none ? ['none', ...POLICIES] : POLICIES;
  const policy = h('select', {id: name}, all.map(p => p.split(' ')[0]).map(p =>
    h('option', {selected: p === chosen}, p)));
  const knobs = given => room.replaceChildren(...all.find(p => p.split(' ')[0] === policy.value)
    .split(' ').slice(1).map(k => k.split('=')).map(([knob, usual]) => h('label.knob', knob,
      knob === 'pool' ? h('select', {'data-knob': knob, 'data-usual': usual}, ['chunk', 'frame'].map(x =>
        h('option', {selected: x === given[knob]}, x)))
      : h('input', {'data-knob': knob, 'data-usual': usual, inputmode: 'decimal',
                    value: given[knob] ?? usual}))));
  policy.addEventListener('change', () => knobs({}));
  knobs(Object.fromEntries(set.map(k => k.split('='))));
  return {element: h('fieldset', h('legend', title), h('div.row', labelled('policy', policy), room)),
          text: () => [policy.value, ...[...room.querySelectorAll('[data-knob]')].filter(k =>
            k.value.trim() !== k.dataset.usual).map(k => `${k.dataset.knob}=${k.value.trim()}`)].join(':')};
}
const a = choice('a', 'Policy', false), b = choice('b', 'Second policy, on the same noise', true);

// ---- one run -------------------------------------------------------------------------------------

// 'it''s' for a shell.
const quoted = text => `'${text.replaceAll("'", "'\\''")}'`;

const fileName = cache => cache.replace(/[^a-z0-9.=-]/g, '_');

const command = (cache, s) => `build/tether generate -m ref_data/demo --prompt=${quoted(s.prompt)} `
  + `--seed ${s.seed} --latents ${s.latents} --cache ${quoted(cache)} -o ${fileName(cache)}.apng `
  + `--latents-out ${fileName(cache)}.safetensors && sha256sum ${fileName(cache)}.safetensors`;

// The digest, and what it is to be compared with.
function compared(sha256, cache, s, native) {
  if (!sha256) return [h('p.soft', 'The digest of the latents needs https or localhost.')];
  const usual = s.prompt === DEFAULT.prompt && s.seed === DEFAULT.seed && s.latents === DEFAULT.latents;
  const want = usual ? native[cache] : null;
  return [facts([['digest of the latents', h('code.here', sha256)],
      want && ['native program', h('code.native', want)]].filter(Boolean)),
    want ? h(`p.${want === sha256 ? 'ok' : 'bad'}`, {class: want === sha256 ? 'ok equal' : 'bad equal'},
      want === sha256 ? 'The same bits as the native program.' : 'Not the bits of the native program.')
    : h('p.soft', 'Of these settings no native digest was stored; this command makes it:'),
    !want && h('pre', h('code', command(cache, s)))];
}

// One for each side: a picture that grows has no rule for each chunk.
const reels = [reel(), reel()];

function side(cache, s, native, film) {
  const say = h('p', {role: 'status'}), bar = h('progress', {max: s.latents, value: 0});
  const strip = h('div.slots', {role: 'group', 'aria-label': 'slots of the cache, layer 0'});
  const event = h('div.event'), legends = h('div'), large = h('div'), caption = h('p.soft');
  const end = h('div'), words = h('pre'), box = h('div.film', large, caption);
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  let run = null, frame = 0, later = 0, timer = 0, spoken = '';
  const picture = f => {
    large.replaceChildren(cell(run, f, 192, 'div.cell.large') || '');
    caption.textContent = `latent frame ${f}, ${seconds(f)}`;
  };
  // The film so far, four latent frames a second as in the video.
  const play = () => {
    if (!run?.film) return;
    frame = still ? run.film.count - 1 : (frame + 1) % run.film.count;
    picture(frame);
  };
  const me = {cache, done: null, worker: new Worker('worker.js', {type: 'module'}),
    element: h('section.side', h('h2', cache), say, bar, box, legends, strip, event,
               words, end)};
  me.end = (text, kind) => {
    me.worker.terminate();
    clearInterval(timer);
    if (!me.done) clearTimeout(later);
    if (!run) [box, legends, strip, event].forEach(e => e.remove());
    say.textContent = clean(text);
    say.className = kind || '';
    me.ended = true;
    ended();
  };
  const show = data => {
    run = data.runs[0];
    if (run.film) (run.film.reel = film).show(run.film.picture);
    legends.replaceChildren(h('p.soft', 'The cache of layer 0'), regions(run));
    const chunk = run.chunks - 1;
    clearTimeout(later);
    showPass({strip, event}, run, chunk, 0, false);
    later = setTimeout(() => showPass({strip, event}, run, chunk, 0, true), still ? 0 : 350);
  };
  const finish = m => {
    const [url, saved] = [[m.picture, 'image/png'], [m.page, 'text/html']].map(([bytes, type]) =>
      URL.createObjectURL(new Blob([bytes], {type})));
    urls.push(url, saved);
    show(m.data);
    me.done = m;
    if (!still) large.replaceChildren(h('img', {src: url, alt: s.prompt}));
    caption.textContent = `${plural(m.data.runs[0].frames, 'latent frame')}, `
      + `${seconds(m.data.runs[0].frames - 1)} of video`;
    bar.value = s.latents;
    end.replaceChildren(...[compared(m.sha256, cache, s, native),
      h('p', h('a', {href: saved, download: `${fileName(cache)}.html`}, 'Save its page'), ' \u00b7 ',
        h('a', {href: url, download: `${fileName(cache)}.apng`}, 'Save the video'))]
      .flat(Infinity).filter(Boolean));
    me.end(`Done in ${m.seconds.toFixed(1)} s.`, 'ok');
  };
  me.worker.onerror = e => me.end(`The worker failed: ${e.message}`, 'bad');
  me.worker.onmessage = ({data: m}) => {
    if (me.ended) return;
    if (m.error) return me.end(m.error, 'bad');
    spoken += m.said || '';
    if (m.step?.event === 'chunk') say.textContent = `Chunk ${m.step.chunk + 1} of ${m.step.chunks} `
      + `in ${m.step.chunk_seconds.toFixed(2)} s`;
    if (m.step?.event === 'decode') bar.value = m.step.latents_done;
    if (m.status === 0) return finish(m);
    if (m.status !== undefined) {
      words.append(clean(spoken.trim()));
      return me.end(`The program ended with status ${m.status}.`, 'bad');
    }
    if (m.data) show(m.data);
  };
  timer = setInterval(play, 250);
  return me;
}

// ---- all of them ---------------------------------------------------------------------------------

function ended() {
  if (running.some(r => !r.ended)) return;
  for (const video of sides.querySelectorAll('img')) video.src = video.src;   // from its start
  go.disabled = false;
  stop.disabled = true;
  const done = running.filter(r => r.done);
  open.hidden = !done.length;
  note.textContent = done.length === running.length ? `Done: ${plural(done.length, 'run')}.`
    : 'Not all runs came to their end.';
}

// The report of one run, or of both as one comparison.
function report() {
  const [one, other] = running.filter(r => r.done).map(r => r.done.data);
  const data = other ? {...one, title: 'Two policies on the same noise', runs: [...one.runs, ...other.runs],
    rows: [...one.rows, ...other.rows], drift: [...one.drift, ...other.drift]} : one;
  after.replaceChildren(...Object.values(showRuns(data)).flat(Infinity).filter(Boolean));
  after.scrollIntoView();
}

async function load(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${answer.statusText}`);
  return answer;
}

let kept;
const assets = () => kept ??= (async () => {
  const bytes = async path => new Uint8Array(await (await load(path)).arrayBuffer());
  const [program, native, ...files] = await Promise.all([bytes('tether.wasm'),
    load('native.json').then(x => x.json()), ...MODEL.map(name => bytes(`demo/${name}`))]);
  return {module: await WebAssembly.compile(program), native,
          model: Object.fromEntries(MODEL.map((name, i) => [name, files[i]]))};
})().catch(error => { kept = undefined; throw error; });

async function begin() {
  // What cannot be shown in the command is not run either.
  const s = {prompt: clean(prompt.value), seed: seed.value.trim(), latents: latents.value};
  const caches = [a.text(), b.text()].filter(c => c !== 'none');
  go.disabled = true;
  stop.disabled = false;
  open.hidden = true;
  after.replaceChildren();
  sides.replaceChildren();
  urls.forEach(URL.revokeObjectURL);
  running = [];
  urls = [];
  note.textContent = 'Loading the program and the model (10 MB) \u2026';
  const mine = begin.number = (begin.number || 0) + 1;
  let x;
  try {
    x = await assets();
  } catch (error) {
    note.textContent = clean(error);
    go.disabled = false;
    stop.disabled = true;
    return;
  }
  if (begin.number !== mine) return;   // stopped meanwhile
  note.textContent = caches.length > 1 ? 'Two workers make one video each.' : 'A worker makes the video.';
  running = caches.map((cache, i) => side(cache, s, x.native, reels[i]));
  sides.replaceChildren(...running.map(r => r.element));
  for (const r of running) r.worker.postMessage({module: x.module, model: x.model,
    args: [`--prompt=${s.prompt}`, '--seed', s.seed, '--latents', s.latents, '--cache', r.cache,
           '--label', r.cache]});
}

stop.addEventListener('click', () => {
  begin.number++;
  for (const r of running.filter(r => !r.ended)) r.end('Stopped.', 'tie');
  go.disabled = false;
  stop.disabled = true;
  note.textContent = 'Stopped.';
});
open.addEventListener('click', report);

document.getElementById('live').replaceWith(h('main', {id: 'live'},
  h('p.kicker', 'tether \u00b7 live'), h('h1', 'Watch a cache policy make a video'),
  h('p.lead', 'The real program runs in this page, with the small demo model; nothing is sent anywhere. '
    + 'It makes the bits that the native program makes: compare the digests.'),
  h('form', {submit: e => { e.preventDefault(); begin(); }},
    h('div.prompt', labelled('Prompt', prompt), unknown), h('fieldset', picks),
    h('fieldset', labelled('Seed', seed), labelled('Latent frames (4 = 1 s)', latents)),
    a.element, b.element, h('div.controls', go, stop, open, note)),
  sides, words(['noisy pass', 'clean pass', 'slot', 'sink', 'memory', 'recent', 'age', 'position', 'alpha',
                'tau']), after,
  h('p.soft', h('a', {href: 'tour/index.html'}, 'The tour'), ' explains in nine steps what is seen here.')));
checkWords();
document.documentElement.dataset.shown = 'live';
