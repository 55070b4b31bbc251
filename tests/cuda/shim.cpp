/* shim.cpp: blocks of fibers. See shim.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block runs in turns: in each, every fiber that is ready runs until it
 * waits or ends. Then warps whose 32 lanes all wait go on, and the block goes
 * on when all of its threads wait at a barrier. What a GPU would do with
 * threads that never meet nobody knows: here it is the end of the program. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <map>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define TT_SHIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TT_SHIM_ASAN 1
#endif
#endif
#ifdef TT_SHIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
tc_unit shim_steps;

namespace {

enum { WARP = 32, SLOT = 64, THREADS_MAX = 1024, SHARED_MAX = 232448 };

/* ---- a switch of stacks -------------------------------------------------- */
#ifdef TT_SHIM_ASAN
const size_t STACK = 256 << 10;
#else
const size_t STACK = 64 << 10;
#endif

/* The caller's registers are saved on its stack, and `to` goes on where it was
 * saved. */
#if defined(__x86_64__)
typedef void *stack_at;
extern "C" void tt_shim_switch(stack_at *from, stack_at to);
__asm__(".text\n.globl tt_shim_switch\n.hidden tt_shim_switch\n"
        ".type tt_shim_switch,@function\ntt_shim_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\n"
        "pushq %r15\nmovq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\n"
        "ret\n");

void switch_to(stack_at *from, stack_at *to) { tt_shim_switch(from, *to); }

void begin(stack_at *at, char *stack, void (*enter)())
{
    void **top = reinterpret_cast<void **>(stack + STACK);
    *--top = nullptr;                    /* alignment as behind a call        */
    *--top = reinterpret_cast<void *>(enter);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    *at = top;
}
#else
typedef ucontext_t stack_at;

void switch_to(stack_at *from, stack_at *to) { swapcontext(from, to); }

void begin(stack_at *at, char *stack, void (*enter)())
{
    getcontext(at);
    at->uc_stack.ss_sp = stack;
    at->uc_stack.ss_size = STACK;
    at->uc_link = nullptr;
    makecontext(at, enter, 0);
}
#endif

/* ---- fibers -------------------------------------------------------------- */

enum state { READY, AT_BLOCK, AT_WARP, AT_TURN, DONE };

struct copy { void *to; const void *from; int bytes; };

/* Sums that products of a thread go into: NaN until all of them were waited
 * for. */
struct target {
    float *acc;
    int n, open;
    float sum[128];
};

struct products {
    std::vector<target> into;
    std::vector<shim_product> open;
    std::vector<std::vector<shim_product>> groups;
    bool begun = false;
};

/* Turns of what arrives. The present one ends when no thread is missing, and
 * as many bytes are on their way as were announced. */
struct turns {
    int threads, missing, number = 0;
    int64_t bytes = 0;                     /* announced, not on their way     */
    std::vector<copy> coming, ended;       /* of this turn, of those before   */
    bool by_threads = false;               /* copies, each by its own           */
};

struct fiber {
    stack_at at;
    state is;
    dim3 thread;
    char *stack;
    std::vector<copy> open;                /* not committed                   */
    std::vector<std::vector<copy>> groups; /* committed, not waited for       */
    products wgmma;
    bool unfenced;                         /* copies by threads were awaited   */
    bool stored;                           /* factors, not fenced              */
    const turns *awaits;                   /* AT_TURN: the end of turn `turn` */
    int turn;
};

enum order { FORWARD, REVERSE, RANDOM };

struct engine {
    std::vector<fiber> fibers;
    std::vector<unsigned> turn;
    std::vector<char> slots;
    char *stacks = nullptr, *shared = nullptr;
    size_t nstacks = 0, nshared = 0;
    stack_at main;
    fiber *now = nullptr;
    const shim_kernel *kernel = nullptr;
    const char *name = "";
    std::map<const void *, turns> arrivals;
    bool arrivals_shown = false;
    const void *args = nullptr;
    order by = FORWARD;
    uint64_t random = 88172645463325252u;
    void *main_fake = nullptr;
    const void *main_stack = nullptr;
    size_t main_size = 0;
};
thread_local engine E;

/* AddressSanitizer is told whose stack is in use. */
void leave_main(fiber *to)
{
    E.now = to;
    threadIdx = to->thread;
#ifdef TT_SHIM_ASAN
    __sanitizer_start_switch_fiber(&E.main_fake, to->stack, STACK);
    switch_to(&E.main, &to->at);
    __sanitizer_finish_switch_fiber(E.main_fake, nullptr, nullptr);
#else
    switch_to(&E.main, &to->at);
#endif
}

void leave_fiber(bool forever)
{
    fiber *me = E.now;
#ifdef TT_SHIM_ASAN
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(forever ? nullptr : &fake, E.main_stack,
                                   E.main_size);
    switch_to(&me->at, &E.main);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
    (void)forever;
    switch_to(&me->at, &E.main);
#endif
}

void enter()
{
#ifdef TT_SHIM_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &E.main_stack, &E.main_size);
#endif
    E.kernel->run(E.args);
    E.now->is = DONE;
    leave_fiber(true);
    abort();
}

void wait_as(state s)
{
    if (E.now->stored) shim_fail("threads meet before stored factors are fenced");
    E.now->is = s;
    leave_fiber(false);
}

/* ---- a block ------------------------------------------------------------- */

void new_order()
{
    const size_t n = E.turn.size();
    for (size_t i = 0; i < n; i++)
        E.turn[i] = (unsigned)(E.by == REVERSE ? n - 1 - i : i);
    for (size_t i = n; E.by == RANDOM && i > 1; i--) {
        E.random = E.random * 6364136223846793005u + 1442695040888963407u;
        std::swap(E.turn[i - 1], E.turn[(E.random >> 33) % i]);
    }
}

size_t count(size_t from, size_t to, state s)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++) n += E.fibers[i].is == s;
    return n;
}

void go_on(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) E.fibers[i].is = READY;
}

/* Those of fibers from..to that are ready run; did one? */
bool run_ready(size_t from, size_t to)
{
    bool ran = false;
    for (size_t i = from; i < to; i++) {
        fiber *f = &E.fibers[E.turn[i]];
        if (f->is != READY) continue;
        leave_main(f);
        ran = true;
    }
    return ran;
}

/* Every fiber that is ready runs; did one? In random order all take one step.
 * In the others a warp goes as far as it can before the next one starts: so
 * the first and the last one are far ahead where a barrier is missing. */
bool one_turn()
{
    bool ran = false;
    const size_t n = E.fibers.size();
    new_order();
    if (E.by == RANDOM) return run_ready(0, n);
    for (size_t w = 0; w < n; w += WARP)
        while (run_ready(w, w + WARP)) {
            const size_t first = E.turn[w] / WARP * WARP;
            ran = true;
            if (count(first, first + WARP, AT_WARP) == WARP)
                go_on(first, first + WARP);
        }
    return ran;
}

/* As the GPU sees it, which knows only whether a turn is odd. */
bool ended(const turns &t, int turn) { return ((t.number ^ turn) & 1) != 0; }

/* Threads that have met, and those whose turn has ended, go on. */
void meet()
{
    const size_t n = E.fibers.size();
    for (size_t w = 0; w < n; w += WARP) {
        const size_t waiting = count(w, w + WARP, AT_WARP);
        if (waiting == WARP) go_on(w, w + WARP);
        else if (waiting && count(w, w + WARP, DONE))
            shim_fail("lanes of a warp meet, but others have left");
    }
    const size_t waiting = count(0, n, AT_BLOCK);
    if (waiting == n) go_on(0, n);
    else if (waiting && count(0, n, DONE))
        shim_fail("threads wait at a barrier, but others have left");
    for (fiber &f : E.fibers)
        if (f.is == AT_TURN && ended(*f.awaits, f.turn)) f.is = READY;
}

void run_block(size_t shared)
{
    memset(E.shared, 0xff, shared);              /* NaN */
    memset(E.slots.data(), 0xff, E.slots.size());
    E.arrivals.clear();
    E.arrivals_shown = false;
    for (fiber &f : E.fibers) {
        f.is = READY;
        f.open.clear();
        f.groups.clear();
        f.wgmma = products();
        f.unfenced = f.stored = false;
        begin(&f.at, f.stack, enter);
#ifdef TT_SHIM_ASAN
        __asan_unpoison_memory_region(f.stack, STACK);
#endif
    }
    while (one_turn()) meet();
    if (count(0, E.fibers.size(), DONE) != E.fibers.size())
        shim_fail("threads wait for others that never come");
    for (const auto &a : E.arrivals) {
        const turns &t = a.second;
        if (t.bytes || !t.coming.empty() || !t.ended.empty())
            shim_fail("a block ends, and nobody waited for a copy");
    }
    for (const fiber &f : E.fibers)
        if (!f.wgmma.into.empty() || !f.open.empty())
            shim_fail("a block ends, and nobody waited for a product or copy");
}

/* ---- a grid -------------------------------------------------------------- */

void make_fibers(dim3 block)
{
    const size_t n = (size_t)block.x * block.y * block.z;
    if (E.nstacks < n) {
        if (E.stacks) munmap(E.stacks, E.nstacks * STACK);
        E.stacks = static_cast<char *>(mmap(nullptr, n * STACK,
                                            PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                            0));
        if (E.stacks == MAP_FAILED) shim_fail("no memory for stacks");
        E.nstacks = n;
    }
    E.fibers.resize(n);
    E.turn.resize(n);
    E.slots.resize(n * SLOT);
    for (size_t i = 0; i < n; i++) {
        E.fibers[i].stack = E.stacks + i * STACK;
        E.fibers[i].thread = dim3((unsigned)(i % block.x),
                                  (unsigned)(i / block.x % block.y),
                                  (unsigned)(i / block.x / block.y));
    }
}

order order_asked_for()
{
    const char *s = getenv("TT_SHIM_ORDER");
    if (!s || !*s || !strcmp(s, "forward")) return FORWARD;
    if (!strcmp(s, "reverse")) return REVERSE;
    if (!strcmp(s, "random")) return RANDOM;
    shim_fail("TT_SHIM_ORDER is forward, reverse or random");
    return FORWARD;
}

void check_launch(dim3 grid, dim3 block, size_t shared)
{
    const size_t n = (size_t)block.x * block.y * block.z;
    if (n == 0 || n % WARP || n > THREADS_MAX)
        shim_fail("a block is not of whole warps, at most 1024 threads");
    if (n > E.kernel->threads)
        shim_fail("a block has more threads than its kernel was made for");
    if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu ||
        grid.y > 65535 || grid.z > 65535)
        shim_fail("a grid has no block, or too many");
    if (shared > SHARED_MAX) shim_fail("too much shared memory");
}

}  // namespace

int shim_gpu()
{
    const char *s = getenv("TT_SHIM_GPU");
    return s && *s ? atoi(s) : 90;
}

void shim_fail(const char *what)
{
    printf("FAIL shim: %s: %s (block %u %u %u)\n", E.name, what, blockIdx.x,
           blockIdx.y, blockIdx.z);
    fflush(stdout);
    abort();
}

void shim_run(const shim_kernel *k, const char *name, dim3 grid, dim3 block,
              size_t shared, const void *args)
{
    E.kernel = k;
    E.name = name;
    E.args = args;
    E.by = order_asked_for();
    shim_steps = shim_gpu() < 90 ? tc_sm80 : tc_sm90;
    check_launch(grid, block, shared);
    make_fibers(block);
    /* of its own, to the byte, so that AddressSanitizer knows its end */
    if (posix_memalign(reinterpret_cast<void **>(&E.shared), 1024,
                       shared ? shared : 1))
        shim_fail("no memory for a block");
    E.nshared = shared;
    gridDim = grid;
    blockDim = block;
    const size_t blocks = (size_t)grid.x * grid.y * grid.z;
    for (size_t i = 0; i < blocks; i++) {
        const size_t b = E.by == REVERSE ? blocks - 1 - i : i;
        blockIdx = dim3((unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                        (unsigned)(b / grid.x / grid.y));
        run_block(shared);
    }
    free(E.shared);
}

/* ---- what kernels call --------------------------------------------------- */

void shim_block_barrier() { wait_as(AT_BLOCK); }
void shim_warp_barrier() { wait_as(AT_WARP); }
void *shim_shared() { return E.shared; }
int shim_lane() { return (int)(E.now - E.fibers.data()) % WARP; }

char *shim_slots()
{
    return E.slots.data() + (E.now - E.fibers.data()) / WARP * WARP * SLOT;
}

void shim_copy(void *to, const void *from, int bytes)
{
    const uintptr_t low = (uintptr_t)to | (uintptr_t)from;
    if (low & (uintptr_t)(bytes - 1))
        shim_fail("an asynchronous copy is not aligned");
    memset(to, 0xff, (size_t)bytes);   /* what was there is gone */
    E.now->open.push_back({to, from, bytes});
}

void shim_commit()
{
    E.now->groups.push_back(std::move(E.now->open));
    E.now->open.clear();
}

void shim_wait(int leave)
{
    auto &g = E.now->groups;
    while ((int)g.size() > leave) {
        for (const copy &c : g.front())
            memcpy(c.to, c.from, (size_t)c.bytes);
        g.erase(g.begin());
    }
}

uint32_t shim_shared_offset(const void *p)
{
    return (uint32_t)(static_cast<const char *>(p) - E.shared);
}

const void *shim_shared_at(uint32_t offset, int bytes)
{
    if (offset + (size_t)bytes > E.nshared)
        shim_fail("a matrix lies outside of shared memory");
    return E.shared + offset;
}

/* ---- what arrives -------------------------------------------------------- */

namespace {

turns &turns_at(void *at)
{
    auto t = E.arrivals.find(at);
    if (t == E.arrivals.end()) shim_fail("nothing arrives there");
    return t->second;
}

void end_turn(turns &t)
{
    if (t.missing || t.bytes) return;
    for (const copy &c : t.coming) t.ended.push_back(c);
    t.coming.clear();
    t.missing = t.threads;
    t.number++;
}

}  // namespace

void shim_arrivals_of(void *at, int threads)
{
    shim_shared_at(shim_shared_offset(at), 8);
    if ((uintptr_t)at % 8) shim_fail("arrivals are not aligned");
    E.arrivals[at].threads = E.arrivals[at].missing = threads;
    E.arrivals_shown = false;
}

void shim_arrivals_show() { E.arrivals_shown = true; }

void shim_arrive(void *at, int bytes)
{
    turns &t = turns_at(at);
    if (!t.missing) shim_fail("more threads arrive than a turn waits for");
    t.missing--;
    t.bytes += bytes;
    end_turn(t);
}

void shim_await(void *at, int turn)
{
    turns &t = turns_at(at);
    while (!ended(t, turn)) {
        E.now->awaits = &t;
        E.now->turn = turn;
        wait_as(AT_TURN);
    }
    for (const copy &c : t.ended) memcpy(c.to, c.from, (size_t)c.bytes);
    t.ended.clear();
    E.now->unfenced |= t.by_threads;
}

void shim_arrive_after_copies(void *at)
{
    turns &t = turns_at(at);
    t.by_threads = true;
    for (const copy &c : E.now->open) t.coming.push_back(c);
    E.now->open.clear();
    shim_arrive(at, 0);
}

void shim_fence_async_proxy() { E.now->unfenced = false; }

void shim_stored_factors() { E.now->stored = true; }

void shim_written() { E.now->stored = false; }

void shim_copy_block(void *to, const void *from, int bytes, void *at)
{
    turns &t = turns_at(at);
    if (!E.arrivals_shown) shim_fail("a copy before arrivals are shown");
    if (((uintptr_t)to | (uintptr_t)from | (uintptr_t)bytes) & 15)
        shim_fail("a copy of a block is not aligned");
    shim_shared_at(shim_shared_offset(to), bytes);
    memset(to, 0xff, (size_t)bytes);
    t.coming.push_back({to, from, bytes});
    t.bytes -= bytes;
    end_turn(t);
}

/* ---- products ------------------------------------------------------------ */

void shim_product_begin() { E.now->wgmma.begun = true; }

void shim_product_open(const shim_product &p)
{
    products &w = E.now->wgmma;
    if (!w.begun) shim_fail("a product without a fence before it");
    if (E.now->unfenced)
        shim_fail("a product of copied factors without a proxy fence");
    auto t = std::find_if(w.into.begin(), w.into.end(),
                          [&](const target &i) { return i.acc == p.acc; });
    if (t == w.into.end()) {
        w.into.push_back({p.acc, p.n, 0, {}});
        t = w.into.end() - 1;
        memcpy(t->sum, p.acc, (size_t)p.n * 4);
        memset(p.acc, 0xff, (size_t)p.n * 4);  /* NaN */
    }
    t->open++;
    w.open.push_back(p);
}

void shim_product_commit()
{
    products &w = E.now->wgmma;
    w.groups.push_back(std::move(w.open));
    w.open.clear();
}

void shim_product_wait(int leave)
{
    products &w = E.now->wgmma;
    w.begun = false;                       /* sums may be used from here on   */
    while ((int)w.groups.size() > leave) {
        for (const shim_product &p : w.groups.front()) {
            auto t = std::find_if(w.into.begin(), w.into.end(),
                                  [&](const target &i) {
                                      return i.acc == p.acc;
                                  });
            if (p.from && memcmp(p.from, &p.held, sizeof p.held))
                shim_fail("rows of a product changed before it was done");
            shim_multiply(t->sum, p, (int)threadIdx.x % 128);
            if (--t->open) continue;
            memcpy(t->acc, t->sum, (size_t)t->n * 4);
            w.into.erase(t);
        }
        w.groups.erase(w.groups.begin());
    }
}
