# web.mk: the program for WebAssembly, and its page.
# SPDX-License-Identifier: Apache-2.0

# A compiler for wasm32-wasi: zig of PyPI, or WASM_CC="..."
WASM_CC ?= python3 -m ziglang cc -target wasm32-wasi
WASM = $(MAKE) --no-print-directory CC=$(call quoted,$(WASM_CC)) OMP=no

.PHONY: web tour check-web tether-wasm wasm-cc
tether-wasm: $(B)/tether $(B)/check_bits
tour: all   ## build/tour: the lesson of src/golden as a page of nine steps
	@sh tools/web/tour.sh $(B)/tether build/tour
	@echo "open build/tour/index.html"
wasm-cc:
	@$(WASM_CC) --version >/dev/null 2>&1 || { echo "make web: $(WASM_CC) does not work:" \
	  "pip install ziglang, or set WASM_CC"; exit 1; }
web: wasm-cc all tour   ## build/web: the program in a browser; serve it with any web server
	+@$(WASM) tether-wasm
	@mkdir -p build/web/demo
	@cp tools/web/wasi.js tools/web/worker.js tools/web/*.html tools/web/*.css tools/viewer/*.css build/web
	@cat tools/viewer/*.js tools/web/page.js > build/web/page.js
	@cp -R build/tour build/web
	@sh tools/web/native.sh $(B)/tether > build/web/native.json
	@cp -R ref_data/demo/config.json ref_data/demo/*.safetensors ref_data/demo/google build/web/demo
	@from=$$($(WASM) -s build-folder) && cp "$$from/tether" build/web/tether.wasm && \
	  cp "$$from/check_bits" build/web/check_bits.wasm
	@echo "python3 -m http.server -d build/web   and open http://localhost:8000"

check-web: web $(B)/demo-random/config.json   ## the bits in wasmtime, node and Chromium
	@sh tests/web/check.sh $(B)
