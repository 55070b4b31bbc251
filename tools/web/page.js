// page.js: what is asked and shown; the work is the worker's.
//
// SPDX-License-Identifier: Apache-2.0
const $ = id => document.getElementById(id);
let worker;

function idle(text) {
    worker?.terminate();
    worker = undefined;
    $('go').disabled = false;
    $('stop').disabled = true;
    $('state').textContent = text;
}

function show({ status, seconds, files }) {
    if (status !== 0) return idle(`The program ended with status ${status}; its words are below.`);
    for (const { name, bytes, sha256 } of files) {
        $('said').append(`\nSHA-256 of ${name}: ${sha256}`);
        if (!name.endsWith('.apng')) continue;
        URL.revokeObjectURL($('video').src);
        $('video').src = URL.createObjectURL(new Blob([bytes], { type: 'image/png' }));
        $('video').alt = $('prompt').value;
        $('video').hidden = false;
    }
    idle(`Done in ${seconds.toFixed(1)} s.`);
}

$('form').addEventListener('submit', event => {
    event.preventDefault();
    $('said').textContent = '';
    $('go').disabled = true;
    $('stop').disabled = false;
    $('state').textContent = 'Loading the program and the model (12 MB) ...';
    worker = new Worker('worker.js', { type: 'module' });
    worker.onerror = event => idle(`The worker failed: ${event.message}`);
    worker.onmessage = ({ data }) => {
        if (data.error) return idle(data.error);
        if (data.files) return show(data);
        $('said').append(data.said);
        $('state').textContent = data.said.trim().split(/[\r\n]/).pop();
    };
    worker.postMessage({
        args: ['generate', '-m', '/demo', '-p', $('prompt').value, '--cache', $('cache').value,
               '--latents', $('latents').value, '--seed', $('seed').value, '-o', '/video.apng',
               '--latents-out', '/latents.safetensors'],
        keep: ['video.apng', 'latents.safetensors'] });
});
$('stop').addEventListener('click', () => idle('Stopped.'));

// For tests/web: with ?run it begins at once, and what is shown goes to the server at the end.
if (new URLSearchParams(location.search).has('run')) {
    new MutationObserver(() => {
        if (!/^(Done|The |Stopped|Error)/.test($('state').textContent)) return;
        fetch('result', { method: 'POST', body: $('said').textContent + '\n'
                                                + $('state').textContent });
    }).observe($('state'), { childList: true, characterData: true, subtree: true });
    $('form').requestSubmit();
}
