// glossary.js: what the words of the page mean, for those who meet them here.
// SPDX-License-Identifier: Apache-2.0

const GLOSSARY = {
  'noisy pass': 'the network turns the noise of a chunk into frames in a few passes; in each of them the '
    + 'chunk reads the cache',
  'clean pass': 'the network reads the finished chunk once more, so that its keys and values can stay',
  slot: 'a place in the cache for the keys and values of one frame',
  sink: 'the first frames of the video, which never leave',
  memory: 'frames that a policy has chosen to keep; it may replace them later',
  recent: 'the newest frames before the chunk',
  age: 'newest frame less this one; a latent frame is a quarter of a second',
  position: 'the place in time that attention takes the frame to have: RoPE rotates keys and queries by '
    + 'it, so only differences count. It is the slot, or the number of the frame',
  alpha: 'weight of diversity in the score (eq. 5); at 0 importance alone decides',
  candidate: 'a frame that GRAB may keep: a member of the memory, or one that has just left the recent '
    + 'frames',
  importance: 'the share of the attention of the chunk that the candidate receives (eq. 6)',
  diversity: '1 less redundancy: how little a neighbour in time says the same (eqs. 8 and 9)',
  margin: 'lowest score that is kept less the highest that is not; a small one is a close decision',
  tau: 'how far TAME edits, 0 to 1 (eq. 13)',
  'trusted frames': 'sinks and members of the memory: they were made early, or have been edited',
  drift: 'statistics of frames move away from those of the first frames: colours and contrast change, '
    + 'shapes melt. The unit is that of the axis',
  motion: 'root mean square difference of a latent frame from the one before: 0 where nothing moves',
  retention: 'how much of a frame attention can still read: all of it, some of its tokens, or nothing',
};

const words = names => folded('What the words mean',
  h('dl.facts', names.map(n => [h('dt', n), h('dd', GLOSSARY[n])])));
