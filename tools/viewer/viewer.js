// viewer.js: shows the data of the page.
// SPDX-License-Identifier: Apache-2.0
//
// What follows # in the address is the state to begin with: #chunk=7&layer=0&alpha=0&tau=1,
// pass=noisy, run=2 of several runs, show=retention for one section alone. A prepared step of a
// lesson is such a state and some sentences.

const KINDS = {runs: showRuns, pixels: showPixels, validate: showValidation};

let state = new URLSearchParams(location.hash.slice(1));

function start() {
  const data = JSON.parse(document.getElementById('data').textContent);
  if (document.getElementById('plain').dataset.tour !== undefined) return startTour(data);
  const sections = KINDS[data.kind](data), only = state.get('show');
  const page = fill(h('main'), only ? sections[only] || [] : Object.values(sections));
  document.getElementById('plain').replaceWith(page);
  document.documentElement.dataset.shown = data.kind;
}

if (document.getElementById('data')) start();
