"""Run a WASI program: wasmtime_run.py FILE.wasm ARGUMENT... (pip install wasmtime).

SPDX-License-Identifier: Apache-2.0
"""
import os
import sys

import wasmtime

config = wasmtime.Config()
config.wasm_relaxed_simd = True
engine = wasmtime.Engine(config)
module = wasmtime.Module.from_file(engine, sys.argv[1])
store = wasmtime.Store(engine)
wasi = wasmtime.WasiConfig()
wasi.argv = sys.argv[1:]
wasi.env = [(k, v) for k, v in os.environ.items() if k.startswith('TT_')]
wasi.inherit_stdout()
wasi.inherit_stderr()
for folder in ('.', '/tmp'):
    wasi.preopen_dir(folder, folder)
store.set_wasi(wasi)
linker = wasmtime.Linker(engine)
linker.define_wasi()
try:
    linker.instantiate(store, module).exports(store)['_start'](store)
except wasmtime.ExitTrap as end:
    sys.exit(end.code)
