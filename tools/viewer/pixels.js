// pixels.js: statistics of the pixels of videos.
// SPDX-License-Identifier: Apache-2.0

function showPixels(data) {
  const kinds = [['Brightness', 'mean of R, G, B, 0 to 255'], ['Saturation', '0 to 1'],
    ['Sharpness', 'variance of the Laplacian'], ['Change to the frame before', 'mean |difference|']];
  return {head: h('header.top', h('div.said', h('p.kicker', 'tether \u00b7 pixels'),
      h('h1', 'Pixels of videos')), facts(data.facts)),
    flickering: [h('h2', 'Flickering'), h('p', 'Temporal flickering as VBench defines it, over all frames.'),
    table(['video', 'frames', 'temporal flickering'], data.videos.map(v =>
      [v.label, count(v.frames.length), number(v.flickering, 6)]))],
    frames: [h('h2', 'Frame by frame'), h('p', 'Computed from pixels; no benchmark reports these numbers.'),
    h('div.plots', kinds.map(([title, y], k) => curves(title, data.videos.map((v, i) =>
      ({label: v.label, y: v.frames.map(f => f[k]), style: i})),
      {x: 'video frame (16 = 1 s)', y, zero: false})))]};
}
