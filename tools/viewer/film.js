// film.js: pictures of frames, and a clock that several views share.
// SPDX-License-Identifier: Apache-2.0
//
// A film is one picture with all frames of a run, `across` in a row.

let films = 0;

// A class whose background show(picture) sets. It is a rule: a custom property holds 2 MiB at most.
function reel() {
  const sheet = new CSSStyleSheet(), name = `film-${films++}`;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  return {name, show: picture => sheet.replaceSync(`.${name}{background-image:url("${picture}")}`)};
}

// Frame `frame` of a run, `width` pixels wide; null where the run has no picture of it.
function cell(run, frame, width, name = 'div.cell') {
  const f = run.film;
  if (!f || frame < 0 || frame >= f.count) return null;
  if (!f.reel) (f.reel = reel()).show(f.picture);
  const by = width / f.width, x = frame % f.across, y = Math.floor(frame / f.across);
  return h(`${name}.${f.reel.name}`, {role: 'img', 'aria-label': `frame ${frame}`, style: {
    width: `${width}px`, height: `${f.height * by}px`,
    'background-size': `${f.across * f.width * by}px ${f.rows * f.height * by}px`,
    'background-position': `${-x * width}px ${-y * f.height * by}px`}});
}

// Seconds of the video that latent frame f ends with: 4 frames each but the first, 16 a second.
const seconds = frame => `${((4 * frame + 1) / 16).toFixed(1)} s`;

// A slider with buttons that play and step through 0 .. last; show(i) is called with every place.
function clock(name, last, say, show, every = 700) {
  const slider = h('input', {type: 'range', min: 0, max: last, value: 0, step: 1,
                             'aria-label': name});
  const place = h('output'), button = h('button', {type: 'button'}, 'Play');
  let timer = 0;
  const go = i => {
    slider.value = Math.max(0, Math.min(last, i));
    place.textContent = clean(say(+slider.value));
    slider.setAttribute('aria-valuetext', place.textContent);
    show(+slider.value);
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    button.textContent = 'Play';
  };
  button.addEventListener('click', () => {
    if (timer) return stop();
    button.textContent = 'Stop';
    if (+slider.value >= last) go(0);
    timer = setInterval(() => +slider.value >= last ? stop() : go(+slider.value + 1), every);
  });
  slider.addEventListener('input', () => go(+slider.value));
  const step = (by, word, label) => h('button', {type: 'button', 'aria-label': label,
    click: () => { stop(); go(+slider.value + by); }}, word);
  return {go, at: () => +slider.value, element: h('div.controls', button,
    step(-1, '\u2190', 'one step back'), step(1, '\u2192', 'one step on'), slider, place)};
}

// All videos at the same moment, and eight moments of each under each other.
function videos(runs) {
  const seen = runs.filter(r => r.film);
  if (!seen.length) return null;
  const last = Math.max(...seen.map(r => r.film.count)) - 1;
  const width = Math.min(192, Math.max(96, seen[0].film.width));
  const screens = h('div.screens');
  const time = clock('time', last, i => `${seconds(i)}, latent frame ${i}`, i =>
    screens.replaceChildren(...seen.map(r => h('figure', cell(r, Math.min(i, r.film.count - 1),
      width, 'div.cell.large'), h('figcaption', r.label,
      i >= r.film.count && ' (ended)')))), 250);
  time.go(last);
  const moments = [0, 1, 2, 3, 4, 5, 6, 7].map(k => Math.round(k * last / 7));
  return [h('h2', seen.length > 1 ? 'The videos' : 'The video'),
    h('p', 'One picture for each latent frame, which stands for four frames of the video.',
      seen.length > 1 && ' All videos run on the same clock.'), screens, time.element,
    seen.length > 1 && seen.map(r => h('figure', h('figcaption', r.label),
      h('div.strip', moments.map(f => f < r.film.count && h('figure', cell(r, f, 96),
        h('figcaption', seconds(f)))))))];
}
