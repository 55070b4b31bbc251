"""A headless Chromium, driven through its DevTools pipe; no packages are needed.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import select
import subprocess
import tempfile
import time


class Browser:
    """said: what the console has said, and errors of scripts."""

    def __init__(self, program):
        self.said, self.session, self.number, self.rest = [], None, 0, b''
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()

        def pipes():   # the browser reads 3 and writes 4
            a, b = os.dup(to_read), os.dup(from_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--hide-scrollbars', '--host-resolver-rules=MAP tether.test 127.0.0.1', f'--user-data-dir={self.profile.name}', '--remote-debugging-pipe',
             'about:blank'], preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)

    def message(self, timeout):
        end = time.monotonic() + timeout
        while b'\0' not in self.rest:
            if not select.select([self.back], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError('the browser does not answer')
            more = os.read(self.back, 1 << 20)
            if not more:
                raise EOFError('the browser has ended')
            self.rest += more
        one, self.rest = self.rest.split(b'\0', 1)
        return json.loads(one)

    def event(self, m):
        p = m.get('params', {})
        if m.get('method') == 'Runtime.consoleAPICalled':
            self.said.append(' '.join(str(a.get('value', a)) for a in p['args']))
        elif m.get('method') == 'Runtime.exceptionThrown':
            self.said.append(json.dumps(p['exceptionDetails'])[:400])
        elif m.get('method') == 'Log.entryAdded':
            self.said.append(p['entry']['text'] + ' ' + p['entry'].get('url', ''))

    def ask(self, method, timeout=60, **params):
        self.number += 1
        m = {'id': self.number, 'method': method, 'params': params}
        if self.session and not method.startswith('Target.'):
            m['sessionId'] = self.session
        os.write(self.to, json.dumps(m).encode() + b'\0')
        while True:
            got = self.message(timeout)
            if got.get('id') == self.number:
                if 'error' in got:
                    raise RuntimeError(f'{method}: {got["error"]}')
                return got['result']
            self.event(got)

    def open(self, url, width=1280, height=900):
        """A fresh page."""
        target = self.ask('Target.createTarget', url='about:blank')['targetId']
        self.session = None
        self.session = self.ask('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in 'Runtime', 'Log', 'Page':
            self.ask(f'{domain}.enable')
        self.resize(width, height)
        self.ask('Page.navigate', url=url)
        self.wait('document.readyState === "complete"')

    def resize(self, width, height=900):
        self.ask('Emulation.setDeviceMetricsOverride', width=width, height=height,
                 deviceScaleFactor=1, mobile=False)

    def run(self, script):
        got = self.ask('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in got:
            raise RuntimeError(json.dumps(got['exceptionDetails'])[:600])
        return got['result'].get('value')

    def wait(self, condition, seconds=60):
        """Until it holds; how long that took, None where it did not."""
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            if self.run(f'Boolean({condition})'):
                return time.monotonic() - begin
            time.sleep(0.02)
        return None

    def key(self, name):
        for kind in 'keyDown', 'keyUp':
            self.ask('Input.dispatchKeyEvent', type=kind, key=name, code=name)

    def beyond(self):
        """Pixels by which the page is wider than its window."""
        return self.run('document.documentElement.scrollWidth - document.documentElement.clientWidth')

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.profile.cleanup()
