// wasi.js: a file system in memory, and what the program asks of WASI.
//
// SPDX-License-Identifier: Apache-2.0
//
// Of wasi_snapshot_preview1 (github.com/WebAssembly/WASI) only what the program
// imports. Paths are absolute; a directory is null, a file {bytes, size}.

const OK = 0, BADF = 8, EXIST = 20, INVAL = 28, NOENT = 44, NOSYS = 52, NOTEMPTY = 55,
      SPIPE = 70;
const CREATE = 1, DIRECTORY = 2, EXCLUSIVE = 4, TRUNCATE = 8;   // of path_open
const APPEND = 1;

export class Exit extends Error {
    constructor(status) {
        super(`exit ${status}`);
        this.status = status;
    }
}

export class Files {
    written;    // (path): called after each write to a file
    constructor() {
        this.entries = new Map([['', null]]);
        this.mkdir('tmp');
    }
    mkdir(path) {
        const parts = path.split('/');
        for (let i = 1; i <= parts.length; i++) {
            const at = parts.slice(0, i).join('/');
            if (!this.entries.has(at)) this.entries.set(at, null);
        }
    }
    put(path, bytes) {
        const slash = path.lastIndexOf('/');
        if (slash > 0) this.mkdir(path.slice(0, slash));
        this.entries.set(path, { bytes, size: bytes.length });
    }
    get(path) {
        const file = this.entries.get(path);
        return file ? file.bytes.subarray(0, file.size) : undefined;
    }
    children(path) {
        const prefix = path ? path + '/' : '';
        return [...this.entries.keys()].filter(k => k && k.startsWith(prefix) &&
            !k.slice(prefix.length).includes('/')).map(k => k.slice(prefix.length));
    }
}

function resize(file, size) {
    if (size > file.bytes.length) {
        const more = new Uint8Array(Math.max(size, 2 * file.bytes.length));
        more.set(file.bytes.subarray(0, file.size));
        file.bytes = more;
    } else if (size < file.size) {
        file.bytes.fill(0, size, file.size);
    }
    file.size = size;
}

// Run the module with these arguments; say(text) gets what it prints. Returns the exit status.
export function run(module, files, args, say) {
    const text = new TextEncoder(), decoder = new TextDecoder();
    const inode = new Map();
    const open = [{}, {}, {}, { path: '', file: null, preopened: true }];
    let memory;
    const view = () => new DataView(memory.buffer);
    const bytes = (at, n) => new Uint8Array(memory.buffer, at, n);
    const string = (at, n) => decoder.decode(bytes(at, n).slice());
    const set32 = (at, x) => view().setUint32(at, x, true);
    const set64 = (at, x) => view().setBigUint64(at, BigInt(x), true);

    function resolve(fd, at, n) {
        const parts = [];
        for (const part of `${open[fd].path}/${string(at, n)}`.split('/')) {
            if (part === '..') parts.pop();
            else if (part && part !== '.') parts.push(part);
        }
        return parts.join('/');
    }
    function status(at, entry, key) {
        if (!inode.has(key)) inode.set(key, inode.size + 1);
        bytes(at, 64).fill(0);
        set64(at, 1);
        set64(at + 8, inode.get(key));
        view().setUint8(at + 16, entry === null ? 3 : entry ? 4 : 2);
        set64(at + 24, 1);
        set64(at + 32, entry ? entry.size : 0);
        return OK;
    }
    function buffers(at, n) {
        return Array.from({ length: n }, (_, i) => bytes(view().getUint32(at + 8 * i, true),
            view().getUint32(at + 8 * i + 4, true)));
    }
    function strings(list, pointers, at) {
        for (const s of list) {
            const b = text.encode(s + '\0');
            set32(pointers, at);
            bytes(at, b.length).set(b);
            pointers += 4;
            at += b.length;
        }
        return OK;
    }
    function sizes(list, count, total) {
        set32(count, list.length);
        set32(total, list.reduce((sum, s) => sum + text.encode(s).length + 1, 0));
        return OK;
    }
    function read(handle, at, n, from, count) {
        let got = 0;
        for (const to of handle.file ? buffers(at, n) : []) {
            const left = Math.max(0, handle.file.size - from - got);
            const part = handle.file.bytes.subarray(from + got, from + got +
                                                    Math.min(to.length, left));
            to.set(part);
            got += part.length;
        }
        set32(count, got);
        return got;
    }
    function write(handle, at, n, to, count) {
        let put = 0;
        for (const part of buffers(at, n)) {
            if (!handle.file) {
                say(decoder.decode(part.slice()));
            } else {
                const end = to + put + part.length;
                if (end > handle.file.size) resize(handle.file, end);
                handle.file.bytes.set(part, to + put);
            }
            put += part.length;
        }
        if (handle.file) files.written?.(handle.path);
        set32(count, put);
        return put;
    }
    const env = ['TERM=dumb'];
    const calls = {
        args_get: (pointers, at) => strings(args, pointers, at),
        args_sizes_get: (count, total) => sizes(args, count, total),
        environ_get: (pointers, at) => strings(env, pointers, at),
        environ_sizes_get: (count, total) => sizes(env, count, total),
        clock_time_get(id, precision, at) {
            set64(at, Math.round(1e6 * (id === 0 ? Date.now() : performance.now())));
            return OK;
        },
        random_get(at, n) {
            crypto.getRandomValues(bytes(at, n));
            return OK;
        },
        proc_exit(code) {
            throw new Exit(code);
        },
        // Everything is ready at once: an event of 32 bytes for a subscription of 48.
        poll_oneoff(subscriptions, events, n, count) {
            for (let i = 0; i < n; i++) {
                bytes(events + 32 * i, 32).fill(0);
                bytes(events + 32 * i, 8).set(bytes(subscriptions + 48 * i, 8).slice());
                view().setUint8(events + 32 * i + 10,
                                view().getUint8(subscriptions + 48 * i + 8));
            }
            set32(count, n);
            return OK;
        },
        fd_prestat_get(fd, at) {
            if (!open[fd]?.preopened) return BADF;
            set32(at, 0);
            set32(at + 4, 1);
            return OK;
        },
        fd_prestat_dir_name(fd, at) {
            bytes(at, 1).set(text.encode('/'));
            return OK;
        },
        fd_fdstat_get(fd, at) {
            const h = open[fd];
            if (!h) return BADF;
            bytes(at, 24).fill(0);
            view().setUint8(at, h.file === null ? 3 : h.file ? 4 : 2);
            view().setUint16(at + 2, h.append ? APPEND : 0, true);
            set64(at + 8, 0xffffffffn);
            set64(at + 16, 0xffffffffn);
            return OK;
        },
        fd_fdstat_set_flags: () => OK,
        fd_sync: () => OK,
        fd_allocate(fd, from, n) {
            const end = Number(from + n), file = open[fd].file;
            if (end > file.size) resize(file, end);
            return OK;
        },
        fd_filestat_get(fd, at) {
            const h = open[fd];
            return h ? status(at, h.file, h.file ?? h.path ?? h) : BADF;
        },
        fd_filestat_set_size(fd, n) {
            resize(open[fd].file, Number(n));
            return OK;
        },
        fd_close(fd) {
            if (!open[fd]) return BADF;
            open[fd] = undefined;
            return OK;
        },
        fd_renumber(from, to) {
            open[to] = open[from];
            open[from] = undefined;
            return OK;
        },
        fd_seek(fd, offset, whence, to) {
            const h = open[fd];
            if (!h?.file) return SPIPE;
            h.at = [0, h.at, h.file.size][whence] + Number(offset);
            set64(to, h.at);
            return OK;
        },
        fd_read(fd, at, n, count) {
            const h = open[fd];
            if (!h) return BADF;
            h.at += read(h, at, n, h.at, count);
            return OK;
        },
        fd_pread(fd, at, n, from, count) {
            read(open[fd], at, n, Number(from), count);
            return OK;
        },
        fd_write(fd, at, n, count) {
            const h = open[fd];
            if (!h) return BADF;
            if (h.append) h.at = h.file.size;
            h.at += write(h, at, n, h.at, count);
            return OK;
        },
        fd_pwrite(fd, at, n, to, count) {
            write(open[fd], at, n, Number(to), count);
            return OK;
        },
        fd_readdir(fd, at, n, cookie, used) {
            const path = open[fd].path;
            const names = ['.', '..', ...files.children(path)];
            let filled = 0;
            for (let i = Number(cookie); i < names.length && filled < n; i++) {
                const name = text.encode(names[i]), entry = new Uint8Array(24 + name.length);
                const v = new DataView(entry.buffer), key = path ? `${path}/${names[i]}` : names[i];
                v.setBigUint64(0, BigInt(i + 1), true);
                v.setBigUint64(8, BigInt(i + 1), true);
                v.setUint32(16, name.length, true);
                v.setUint8(20, files.entries.get(key) ? 4 : 3);
                entry.set(name, 24);
                const part = entry.subarray(0, n - filled);
                bytes(at + filled, part.length).set(part);
                filled += part.length;
            }
            set32(used, filled);
            return OK;
        },
        path_open(fd, lookup, at, n, how, rights, inheriting, flags, to) {
            const path = resolve(fd, at, n), there = files.entries.has(path);
            if (!there && !(how & CREATE)) return NOENT;
            if (there && how & EXCLUSIVE) return EXIST;
            if (!there) files.put(path, new Uint8Array(0));
            const file = files.entries.get(path);
            if (file && how & DIRECTORY) return 54;
            if (file && how & TRUNCATE) resize(file, 0);
            let free = 4;
            while (open[free]) free++;
            open[free] = { path, file, at: 0, append: flags & APPEND };
            set32(to, free);
            return OK;
        },
        path_filestat_get(fd, flags, at, n, to) {
            const path = resolve(fd, at, n);
            if (!files.entries.has(path)) return NOENT;
            const entry = files.entries.get(path);
            return status(to, entry, entry ?? path);
        },
        path_create_directory(fd, at, n) {
            const path = resolve(fd, at, n);
            if (files.entries.has(path)) return EXIST;
            files.entries.set(path, null);
            return OK;
        },
        path_remove_directory(fd, at, n) {
            const path = resolve(fd, at, n);
            if (files.children(path).length) return NOTEMPTY;
            files.entries.delete(path);
            return OK;
        },
        path_unlink_file(fd, at, n) {
            return files.entries.delete(resolve(fd, at, n)) ? OK : NOENT;
        },
        path_rename(fd, at, n, fd2, at2, n2) {
            const from = resolve(fd, at, n), to = resolve(fd2, at2, n2);
            if (!files.entries.has(from)) return NOENT;
            files.entries.set(to, files.entries.get(from));
            files.entries.delete(from);
            return OK;
        },
        path_link(fd, flags, at, n, fd2, at2, n2) {
            const from = resolve(fd, at, n), to = resolve(fd2, at2, n2);
            if (!files.entries.has(from)) return NOENT;
            if (files.entries.has(to)) return EXIST;
            files.entries.set(to, files.entries.get(from));
            return OK;
        },
        path_readlink: () => INVAL,
    };
    const imports = new Proxy(calls, { get: (all, name) => all[name] ?? (() => NOSYS) });
    const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports });
    memory = instance.exports.memory;
    try {
        instance.exports._start();
        return 0;
    } catch (error) {
        if (error instanceof Exit) return error.status;
        throw error;
    }
}
