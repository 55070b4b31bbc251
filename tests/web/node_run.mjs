// The program under node: node_run.mjs TETHER.wasm MODEL OUT ARGUMENT...; prints what it prints.
// The file system is the page's (tools/web/wasi.js), with the model in /demo; OUT gets /latents.
//
// SPDX-License-Identifier: Apache-2.0
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { Files, run } from '../../tools/web/wasi.js';

const [, , wasm, model, out, ...args] = process.argv;
const files = new Files();
const copy = (from, to) => {
    for (const name of readdirSync(from)) {
        if (statSync(`${from}/${name}`).isDirectory()) copy(`${from}/${name}`, `${to}/${name}`);
        else files.put(`${to}/${name}`, new Uint8Array(readFileSync(`${from}/${name}`)));
    }
};
copy(model, 'demo');
const module = new WebAssembly.Module(readFileSync(wasm));
const status = run(module, files, ['tether', ...args], said => process.stderr.write(said));
if (status === 0) writeFileSync(out, files.get('latents.safetensors'));
process.exitCode = status;
