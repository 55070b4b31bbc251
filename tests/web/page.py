"""Open build/web in a headless Chromium, let it generate, print what it shows.

    page.py FOLDER BROWSER

SPDX-License-Identifier: Apache-2.0

The page posts what it shows to the server that it comes from (?run), here.
"""
import functools
import http.server
import subprocess
import sys
import tempfile
import threading

folder, browser = sys.argv[1:3]
ended = threading.Event()
result = b''


class Server(http.server.SimpleHTTPRequestHandler):
    extensions_map = {'.js': 'text/javascript', '.html': 'text/html', '.wasm': 'application/wasm',
                      '': 'application/octet-stream'}

    def do_POST(self):
        global result
        result = self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(204)
        self.end_headers()
        ended.set()

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0),
                                         functools.partial(Server, directory=folder))
threading.Thread(target=server.serve_forever, daemon=True).start()
with tempfile.TemporaryDirectory() as profile:
    page = subprocess.Popen(
        [browser, '--headless', '--no-sandbox', '--disable-gpu', f'--user-data-dir={profile}',
         '--remote-debugging-port=0', f'http://127.0.0.1:{server.server_port}/?run'],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended.wait(300)
    page.terminate()
    page.wait()
print(result.decode() or 'no answer of the page in 300 s')
