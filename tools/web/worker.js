// worker.js: one run of the program, asked by a message, in a thread of its own.
//
// SPDX-License-Identifier: Apache-2.0
//
// In: {module, model, args}: the program, the files of the model by name, and arguments of
// `generate`. Out: {said} as it prints, {step} events of its log, {data} the viewer's data of the
// run so far, after each chunk; at the end {status, seconds, data, page, picture, sha256}, or
// {error}.
import { Files, run } from './wasi.js';

const OUTPUTS = ['-o', '/video.y4m', '--animation', '/video.apng', '--latents-out',
                 '/latents.safetensors', '--decode', 'during', '--analyze', '/run',
                 '--log-json', '/log'];

async function sha256(bytes) {
    const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
    return [...sum].map(x => x.toString(16).padStart(2, '0')).join('');
}

// What the program has put into a page of reports.
function data(page) {
    const mark = '<script type="application/json" id="data">', at = page.indexOf(mark);
    return JSON.parse(page.slice(at + mark.length, page.indexOf('</script>', at)));
}

const text = (files, path) => new TextDecoder().decode(files.get(path));

// `tether analyze` reads the record so far, and the video as far as it is there.
function look(module, files) {
    files.entries.set('video.y4m', files.entries.get('video.unfinished.y4m'));
    const status = run(module, files, ['tether', 'analyze', '/run', '-o', '/now', '--html'], () => 0);
    files.entries.delete('video.y4m');
    if (status === 0) postMessage({ data: data(text(files, 'now/index.html')) });
}

onmessage = async ({ data: { module, model, args } }) => {
    try {
        const files = new Files(), start = performance.now();
        for (const [name, bytes] of Object.entries(model)) files.put(`demo/${name}`, bytes);
        let seen = 0, latents = 0;   // of the log; of the chunk that is not shown yet
        files.written = path => {
            if (path !== 'log') return;
            const lines = text(files, path).split('\n').slice(seen, -1).map(JSON.parse);
            seen += lines.length;
            for (const e of lines) {
                postMessage({ step: e });
                if (e.event === 'chunk') latents = e.latents_done;
                if (e.event === 'decode' && e.latents_done === latents) look(module, files);
            }
        };
        const status = run(module, files, ['tether', 'generate', '-m', '/demo', ...OUTPUTS, ...args],
                           said => postMessage({ said }));
        const end = { status, seconds: (performance.now() - start) / 1000 };
        if (status === 0) {
            end.page = text(files, 'run/index.html');
            end.data = data(end.page);
            end.picture = files.get('video.apng').slice();
            // Browsers have no crypto.subtle on plain http.
            end.sha256 = crypto.subtle ? await sha256(files.get('latents.safetensors').slice()) : null;
        }
        postMessage(end);
    } catch (error) {
        postMessage({ error: String(error) });
    }
};
