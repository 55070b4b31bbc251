// worker.js: one run of the program, asked by a message, in a thread of its own.
//
// SPDX-License-Identifier: Apache-2.0
//
// In: {args, keep}, arguments and the files that are wanted. Out: {said} as it prints; at the end
// {status, seconds, files: [{name, bytes, sha256}]}, or {error}.
import { Files, run } from './wasi.js';

const MODEL = ['config.json', 'diffusion_pytorch_model.safetensors', 'Wan2.1_VAE.safetensors',
               'models_t5_umt5-xxl-enc-bf16.safetensors', 'google/umt5-xxl/spiece.model'];

async function load(path) {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${answer.statusText}`);
    return new Uint8Array(await answer.arrayBuffer());
}

async function sha256(bytes) {
    const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
    return [...sum].map(x => x.toString(16).padStart(2, '0')).join('');
}

onmessage = async ({ data: { args, keep } }) => {
    try {
        const files = new Files();
        const [module] = await Promise.all([
            load('tether.wasm').then(bytes => WebAssembly.compile(bytes)),
            ...MODEL.map(async name => files.put(`demo/${name}`, await load(`demo/${name}`)))]);
        const start = performance.now();
        const status = run(module, files, ['tether', ...args], said => postMessage({ said }));
        const seconds = (performance.now() - start) / 1000;
        const made = [];
        for (const name of keep) {
            const bytes = files.get(name)?.slice();
            if (bytes) made.push({ name, bytes, sha256: await sha256(bytes) });
        }
        postMessage({ status, seconds, files: made });
    } catch (error) {
        postMessage({ error: String(error) });
    }
};
