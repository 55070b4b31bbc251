"""The live page and the tour in a headless Chromium, compared with the native program.

    page.py WEB TETHER BROWSER [PART ...]      WEB: what `make web` has made; parts: below

SPDX-License-Identifier: Apache-2.0
"""
import base64
import functools
import hashlib
import http.server
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from browser import Browser

web, tether, program = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
failed = []
HOSTILE = '\u2066</script><img src=x onerror=document.title=1>\'"$(touch owned)` --x'


PICTURE = 'getComputedStyle(e).backgroundImage.length'    # of the element e; that of `none` is 4


def check(what, good, *more):
    print('ok' if good else 'FAIL', what, *('' if good else more))
    if not good:
        failed.append(what)


class Server(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def text(b, selector):
    return b.run(f'[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)')


def click(b, name):
    b.run(f'document.getElementById("{name}").click()')


def ends(b, seconds=240):
    return b.wait('/^(Done|Not|Stopped|Error)/.test(document.getElementById("state").textContent)', seconds)


def fits(b, what):
    for width in 1280, 380:
        b.resize(width)
        check(f'{what}: nothing sticks out at {width}', b.beyond() == 0, b.beyond())
    b.resize(1280)


def pixels_apart(b):
    """In a picture of the window, which shows the videos before frames leave the caches."""
    shot = b.ask('Page.captureScreenshot', format='png')['data']
    return b.run('''(async () => {
      const of = img => { const r = img.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; };
      const shot = new Image();
      shot.src = 'data:image/png;base64,%s';
      await shot.decode();
      const [one, other] = [...document.querySelectorAll('.film img')].map(of).map(r => {
        const pen = new OffscreenCanvas(r[2], r[3]).getContext('2d');
        pen.drawImage(shot, ...r, 0, 0, r[2], r[3]);
        return pen.getImageData(8, 8, r[2] - 16, r[3] - 16).data;
      });
      return one.filter((x, i) => Math.abs(x - other[i]) > 40).length; })()''' % shot)


def same_moment(b):
    """The least of some pictures: two videos a moment apart differ where one is at its next frame."""
    b.run('document.querySelector(".film").scrollIntoView()')
    least = 1 << 30
    for _ in range(8):
        time.sleep(.7)
        least = min(least, pixels_apart(b))
        if least < 400:
            break
    return least


def two_policies(b, url):
    """The settings of the page as it opens."""
    b.open(url)
    fits(b, 'the form')
    click(b, 'go')
    b.wait('document.querySelector(".side")')
    begin, steps, pictures, films = time.monotonic(), set(), set(), set()
    while not b.run('/^Done|^Not/.test(document.getElementById("state").textContent)'):
        steps.update(text(b, '.event b'))
        pictures.update(text(b, '.film p'))
        films.update(b.run(f'[...document.querySelectorAll(".film .cell")].map(e => {PICTURE})'))
        if time.monotonic() - begin > 240:
            break
    print(f'two videos of 42 latents: {time.monotonic() - begin:.1f} s, {len(steps)} passes seen')
    check('strips grow', len([s for s in steps if 'noisy' in s]) >= 5, steps)
    check('films move', len(pictures) >= 5, pictures)
    check('films grow', len(films) >= 5 and min(films) > 1000, films)
    check('two sides', text(b, '.side h2') == ['tether', 'fifo'], text(b, '.side h2'))
    with open(f'{web}/native.json') as f:
        native = json.load(f)
    check('digests', text(b, 'code.here') == [native['tether'], native['fifo']], text(b, 'code.here'))
    check('native digests stand beside', text(b, 'code.native') == text(b, 'code.here'))
    check('equal', text(b, '.equal') == ['The same bits as the native program.'] * 2, text(b, '.equal'))
    differing = same_moment(b)
    check('one clock: a moment of both videos is the same', differing < 400, differing)
    fits(b, 'two runs')
    click(b, 'open')
    check('the report', 'Two policies on the same noise' in text(b, 'h1'), text(b, 'h1'))
    check('both are in its table', b.run('[...document.querySelectorAll("tbody td:first-child")]'
                                         '.slice(0, 2).map(e => e.textContent)') == ['tether', 'fifo'])
    fits(b, 'the report')


def all_policies(b, url):
    """Each has the native digest, with the knobs that the page shows as usual."""
    with open(f'{web}/native.json') as f:
        native = json.load(f)
    names = [n for n in native if n not in ('tether', 'fifo')]
    for one, other in zip(names, names[1:] + names[:1]):
        if names.index(one) % 2:
            continue
        knobs = b.open(url + f'#a={one}&b={other}') or b.run(
            '[...document.querySelectorAll("[data-knob]")].map(k => k.dataset.usual)')
        click(b, 'go')
        ends(b)
        got = dict(zip(text(b, '.side h2'), text(b, 'code.here')))
        for name in {one, other}:
            check(f'{name}: digest', got.get(name) == native[name], got, text(b, '.side pre'))
        check(f'{one} and {other}: knobs', len(knobs) or 'full' in (one, other))
        fits(b, f'{one} and {other}')
    usual = [b.run(f'document.getElementById("{i}").value') for i in ('prompt', 'seed', 'latents')]
    policies = dict(line.strip("  ',];\n").partition(' ')[::2] for line in open('tools/web/page.js')
                    if line.startswith("  '") and line.rstrip(",];\n").endswith("'"))
    for name in native:
        spec = ':'.join([name, *policies[name].split()])
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([tether, 'generate', '-q', '-m', f'{web}/demo', f'--prompt={usual[0]}',
                                   '--seed', usual[1], '--latents', usual[2], '--cache', spec, '--no-decode',
                                   '-o', f'{folder}/x.y4m', '--latents-out', f'{folder}/latents'],
                                  capture_output=True, text=True)
            check(f'{spec} is taken', done.returncode == 0, done.stderr)
            with open(f'{folder}/latents', 'rb') as f:
                made = hashlib.sha256(f.read()).hexdigest()
        check(f'{spec} is what the program does without knobs', made == native[name], made)


def shapes(b, url):
    """The words to choose from are those of the program."""
    b.open(url)
    said = subprocess.run([tether, 'demo', '--list'], capture_output=True, text=True).stdout
    told = re.sub(r'\n {4,}', ' ', said[said.index('COLOUR', said.index('COLOUR') + 1):])
    for name, words in re.findall(r'([A-Z]+) +(.*)', told):
        if name == 'MOTION':
            words = re.sub(r'moves (\S+) and bounces', lambda m: ', '.join(
                f'moves {to} and bounces' for to in m[1].split('|')), words)
        want = re.split(', *' if name == 'MOTION' else ' ', words)
        check(f'{name} as the program lists it', text(b, f'#{name.lower()} option') == want,
              text(b, f'#{name.lower()} option'), want)


def stops(b, url):
    b.open(url + '#latents=240')
    click(b, 'go')
    noisy = '[...document.querySelectorAll(".event b")].some(e => /[2-9], noisy/.test(e.textContent))'
    found = b.wait(f'{noisy} && (document.getElementById("stop").click(), true)')   # a clean pass is due
    check('it says so at once', found and text(b, '#state') == ['Stopped.'], text(b, '#state'))
    before = b.run('document.querySelector(".sides").innerHTML')
    time.sleep(2)
    check('nothing goes on', b.run('document.querySelector(".sides").innerHTML') == before)
    check('another run may begin', not b.run('document.getElementById("go").disabled'))


def same_command(b, url, what, state):
    """A run whose digest is not stored; the command that the page names makes it."""
    b.open(url + state)
    click(b, 'go')
    check(f'{what}: done', ends(b) is not None and text(b, '#state')[0].startswith('Done: '),
          text(b, '#state'), text(b, '.side pre'))
    lines, names = text(b, '.side pre code'), text(b, '.side h2')
    check(f'{what}: names a command for each', len(lines) == len(names), lines)
    command = ' && '.join(lines).replace('build/tether', shlex.quote(tether)).replace(
        '-m ref_data/demo', '-m ' + shlex.quote(f'{web}/demo'))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(['sh', '-c', command], cwd=folder, capture_output=True, text=True)
        made = sorted(os.listdir(folder))
    digests = re.findall(r'^([0-9a-f]{64}) ', done.stdout, re.MULTILINE)
    check(f'{what}: the command has the digest', digests and text(b, 'code.here') == digests,
          text(b, 'code.here'), done.stdout, done.stderr)
    check(f'{what}: and makes nothing else', made == sorted(
        name.replace(':', '_') + end for name in names for end in ('.apng', '.safetensors')), made)


def hostile(b, url):
    same_command(b, url, 'a hostile prompt', '#b=none&latents=6&prompt=' + urllib.parse.quote(HOSTILE))
    check('no element of it', not b.run('document.querySelector("img[src=x]")'))
    check('its title', b.run('document.title') == 'tether in the browser')
    click(b, 'open')
    check('nor in the report', not b.run('document.querySelector("img[src=x]")'))
    fits(b, 'a hostile prompt')


def no_digest(b, url):
    """On plain http the video comes without its digest; from a disk nothing comes but advice."""
    b.open(url.replace('127.0.0.1', 'tether.test') + '#b=none&latents=6')
    click(b, 'go')
    check('plain http: done', ends(b) is not None and text(b, '#state') == ['Done: 1 run.'],
          text(b, '#state'), text(b, '.side p'))
    check('plain http: says what a digest needs', 'https or localhost' in ''.join(text(b, '.side p')))
    said = len(b.said)
    b.open(f'file://{web}/index.html')
    check('from a disk: names a server', text(b, 'main code') == ['python3 -m http.server -d build/web'])
    del b.said[said:]


def refused(b, url):
    b.open(url + '#a=tether:budget=1&b=none')
    click(b, 'go')
    check('a knob that cannot be: ends', ends(b, 30) is not None)
    check('and says why', 'budget' in ''.join(text(b, '.side pre')), text(b, '.side pre'))


def long_film(b, url):
    """A film of over 2 MiB, which no custom property of CSS holds; readers of PNG stop at its end."""
    with open(f'{web}/tour/index.html') as f, tempfile.TemporaryDirectory() as folder:
        page = re.sub('(data:image/png;base64,)([^"]+)', lambda m: m[1] + base64.b64encode(
            base64.b64decode(m[2]) + bytes(2 << 20)).decode(), f.read())
        with open(f'{folder}/index.html', 'w') as out:
            out.write(page)
        b.open(f'file://{folder}/index.html')
        sizes = b.run(f'[...document.querySelectorAll(".cell")].map(e => {PICTURE})')
    check('a film of over 2 MiB is shown', sizes and min(sizes) > 2 << 20, sizes)


def tour(b, url):
    b.open(url)
    states = [('chunk 0 of', 'noisy'), ('chunk 4 of', 'clean'), ('chunk 7 of', 'noisy'), None,
              ('chunk 14 of', 'clean'), ('chunk 7 of', 'clean'), ('chunk 7 of', 'clean'), None, None]
    titles = []
    b.run('document.querySelector("[aria-live]").dataset.same = ""')
    for k in range(9):
        check(f'step {k + 1}: its address', b.run('location.hash') == f'#tour={k + 1}')
        titles += text(b, 'h1')
        check(f'step {k + 1}: five sentences', len(text(b, '.tour li')) == 5)
        at = b.run('(document.querySelector(".follow output") || {}).textContent')
        check(f'step {k + 1}: its state', at is None if states[k] is None
              else all(w in at for w in states[k]), at)
        fits(b, f'step {k + 1}')
        shown = {part: b.run(f'[...document.querySelectorAll(".part-{part}")].some(e => e.offsetHeight)')
                 for part in ('cache', 'grab', 'tame')}
        want = {5: 'grab', 6: 'tame'}.get(k, None if states[k] is None else 'cache')
        check(f'step {k + 1}: its part', [p for p in shown if shown[p]] == ([want] if want else []), shown)
        for link in b.run('[...document.querySelectorAll(".tour a, .source a")].map(e => '
                          'e.getAttribute("href"))'):
            file, name = (link.split('#:~:text=') + [''])[:2]
            with open(f'{web}/tour/{file}') as f:
                check(f'step {k + 1}: {link}', name.replace('%28', '(') in f.read())
        if k == 5:
            page = b.run('document.querySelector("main").textContent')
            with open('src/golden/README.md') as f:
                rows = [line.strip('| \n').split(' | ') for line in f
                        if line.rstrip().endswith(('keep |', 'drop |'))]
            check('17 rows of the lesson', len(rows) == 17)
            for frame, mass, diversity, score, what in rows:
                check(f'frame {frame} as in the lesson', all(x in page for x in (mass, diversity, score)))
            b.run('document.querySelector(".part-grab .wide").focus()')
            b.key('ArrowLeft')
            check('a table that scrolls has the arrows', b.run('location.hash') == '#tour=6')
            b.run('document.activeElement.blur()')
        b.key('ArrowRight')
    check('what is read aloud is one section', b.run('Boolean(document.querySelector(".tour[data-same]"))'))
    check('nine steps', len(set(titles)) == 9, titles)
    b.key('Home')
    check('Home', b.run('location.hash') == '#tour=1')
    for odd in 'x', '0', '-1', '1.5', '<img>', '':
        b.open(url + '#tour=' + urllib.parse.quote(odd))
        check(f'an odd address: {odd}', text(b, '.kicker') == ['How a long video is made, step 1 of 9'],
              text(b, '.kicker'))
    b.run('location.hash = "#tour=6"')
    check('an address', b.wait('document.querySelector("h1").textContent.startsWith("GRAB")', 5) is not None)


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Server, directory=web))
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f'http://127.0.0.1:{server.server_port}/'
browser = Browser(program)
parts = {
    'two': lambda: two_policies(browser, url),
    'all': lambda: all_policies(browser, url),
    'shapes': lambda: shapes(browser, url),
    'stop': lambda: stops(browser, url),
    'knobs': lambda: same_command(browser, url, 'knobs',
                                  '#a=tether:alpha=0:budget=12&b=fifo&latents=15&seed=7'),
    'hostile': lambda: hostile(browser, url),
    'digest': lambda: no_digest(browser, url),
    'refused': lambda: refused(browser, url),
    'long': lambda: long_film(browser, url),
    'tour': lambda: tour(browser, url + 'tour/index.html')}
try:
    for name in sys.argv[4:] or parts:
        parts[name]()
    check('no word on the console', not browser.said, browser.said)
finally:
    browser.close()
print(f'the page: {len(failed)} failed')
sys.exit(bool(failed))
