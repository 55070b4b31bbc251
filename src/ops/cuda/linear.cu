/* linear.cu: y = x w^T + b, and convolution as the same sum.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/f32.c, conv.c. A block of threads owns a tile of outputs,
 * a thread 8 x 8 of them: acc is the chain `s` of dot_real, one per output, and
 * sum that over blocks of TT_DOT_BLOCK products. The products of a step lie in
 * shared memory; while one step is computed the next ones are on their way, and
 * while four products of it are, the next four of x come to registers. What
 * follows a sum (epilogue.h) does so when all sums of the thread are complete.
 *
 * Holds   k ascends in one thread, so the order is that of the loop. A tail of
 *         k is never filled up with zeros: -0 + 0 would be +0. Rows and columns
 *         after the end are computed from the last one and not stored. */
#include "ops/cuda/epilogue.h"
#include "ops/cuda/tile.h"

/* ---- where a row of x lies ----------------------------------------------- */

/* Row `r` of a matrix [n, k]. */
struct matrix_row {
    static const bool holes = false;
    const float *row;
    DEVICE matrix_row(const cuda_linear_args &a, int r) : row(a.x + r * a.k) {}
    DEVICE const float *at(int k) const { return row + k; }
};

/* The window of output pixel `r`, as in ops/gather.h; NULL stands for 0. */
struct window_row {
    static const bool holes = true;
    const cuda_conv_args &c;
    int i, j;                            /* first row and column it reads     */
    DEVICE window_row(const cuda_conv_args &a, int r) : c(a)
    {
        const int wo = (int)a.Wo, stride = (int)a.stride;
        i = r / wo * stride - (int)a.pad_top;
        j = r % wo * stride - (int)a.pad_left;
    }
    DEVICE const float *at(int k) const
    {
        const int cin = (int)c.Cin, kw = (int)c.kw, up = (int)c.up;
        const int plane = (int)c.kh * kw;
        const int tap = k / cin, channel = k - tap * cin;
        const int frame = tap / plane, uv = tap - frame * plane;
        const int u = uv / kw, v = uv - u * kw;
        const int row = i + u, col = j + v;
        if (!c.frame[frame] || row < 0 || col < 0 || row >= (int)c.Hi * up ||
            col >= (int)c.Wi * up)
            return nullptr;
        return c.frame[frame] +
               ((int64_t)(row / up) * c.Wi + col / up) * c.Cin + channel;
    }
};

/* ---- one step of products into shared memory ----------------------------- */

/* Products [k, k + n) of a row, n <= 4. VEC: n = 4, and they lie together. */
template <bool VEC, class ROW>
DEVICE void stage_row(float *to, const ROW &row, int k, int n)
{
    if constexpr (VEC) {
        const float *from = row.at(k);
        if (!ROW::holes || from) copy16(to, from);
        else store4(to, four(0.0f, 0.0f, 0.0f, 0.0f));
    } else {
        for (int i = 0; i < n; i++) {
            const float *from = row.at(k + i);
            if (!ROW::holes || from) copy4(to + i, from);
            else to[i] = 0.0f;
        }
    }
}

/* A row of w, as matrix_row. */
struct weight_row {
    static const bool holes = false;
    const float *row;
    DEVICE const float *at(int k) const { return row + k; }
};

/* ---- the chains ---------------------------------------------------------- */

/* The last n < TILE_K products. */
DEVICE void chain_tail(float (&acc)[8][8], const float *x, const float *w,
                       int n)
{
    for (int k = 0; k < n; k++)
        UNROLL
        for (int j = 0; j < 8; j++) {
            const float q = w[tile_col(j) * TILE_PITCH + k];
            UNROLL
            for (int i = 0; i < 8; i++)
                acc[i][j] = fma_rn(x[tile_row(i) * TILE_PITCH + k], q,
                                   acc[i][j]);
        }
}

/* ---- the sum of blocks --------------------------------------------------- */

/* The chains of a finished block join the sum, and begin anew. */
DEVICE void add_block(float (&sum)[8][8], float (&acc)[8][8], bool first)
{
    UNROLL
    for (int i = 0; i < 8; i++)
        UNROLL
        for (int j = 0; j < 8; j++) {
            sum[i][j] = first ? acc[i][j] : add_rn(sum[i][j], acc[i][j]);
            acc[i][j] = 0.0f;
        }
}

/* All 8 x 8 sums of a thread into y, with the bias, of which `rows` and `cols`
 * count from its first output to the end of y. VEC: columns come in whole
 * groups of four. */
template <bool VEC>
DEVICE void store(float *y, int64_t pitch, const float *b, int rows, int cols,
                  float (&sum)[8][8])
{
    UNROLL
    for (int g = 0; g < 8; g += 4) {
        const int col = tile_col(g);
        float bias[4];
        UNROLL
        for (int e = 0; e < 4; e++)
            bias[e] = b && col + e < cols ? b[col + e] : 0.0f;
        UNROLL
        for (int i = 0; i < 8; i++) {
            float *const to = y + tile_row(i) * pitch + col;
            float *const s = &sum[i][g];
            UNROLL
            for (int e = 0; e < 4; e++)
                if (b) s[e] = add_rn(s[e], bias[e]);
            if (tile_row(i) >= rows) continue;
            if (VEC && col < cols) store4(to, four(s[0], s[1], s[2], s[3]));
            UNROLL
            for (int e = 0; e < 4; e++)
                if (!VEC && col + e < cols) to[e] = s[e];
        }
    }
}

/* ---- which outputs a thread has ------------------------------------------ */

/* The first of its 8 x 8 outputs, in the 64 x 32 of its warp. */
DEVICE int own_row()
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    return 64 * (warp >> 2) + (lane & 7);
}

DEVICE int own_col()
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    return 32 * (warp & 3) + 4 * (lane >> 3);
}

/* The next step of products has come, and all threads have used the one before.
 */
DEVICE void step_is_there()
{
    copy_wait<TILE_STAGES - 3>();
    __syncthreads();
}

/* ---- a tile -------------------------------------------------------------- */

/* One tile of y [n, o] = rows of k products times w [o, k]. ROW makes row r of
 * x from the arguments. VEC: k and o are multiples of 4, all rows 16-byte
 * aligned. */
template <bool VEC, class ROW, class ARGS>
DEVICE void tile(const ARGS &a, int n, int o, int K)
{
    SHARED(float, mem);
    const int t = threadIdx.x;
    const int row0 = blockIdx.y * TILE_ROWS, col0 = blockIdx.x * TILE_COLS;
    const int size = (TILE_ROWS + TILE_COLS) * TILE_PITCH;

    /* a thread stages products 4 (t % 4) of rows t / 4 and t / 4 + 64 */
    const int from_row = t >> 2, from_k = 4 * (t & 3);
    const int to = from_row * TILE_PITCH + from_k;
    const int half = 64 * TILE_PITCH, weights = TILE_ROWS * TILE_PITCH;
    const ROW x0(a, least(row0 + from_row, n - 1));
    const ROW x1(a, least(row0 + from_row + 64, n - 1));
    const weight_row w0 = {a.w + (int64_t)least(col0 + from_row, o - 1) * K};
    const weight_row w1 = {a.w + (int64_t)least(col0 + from_row + 64, o - 1) *
                                     K};
    auto stage = [&](int step, int slot) {
        const int k = step * TILE_K + from_k, count = least(4, K - k);
        float *at = mem + slot * size + to;
        if (count > 0) {
            stage_row<VEC>(at, x0, k, count);
            stage_row<VEC>(at + half, x1, k, count);
            stage_row<VEC>(at + weights, w0, k, count);
            stage_row<VEC>(at + weights + half, w1, k, count);
        }
        copy_commit();
    };

    const int row = own_row(), col = own_col();
    float *y = a.y + (int64_t)(row0 + row) * o + col0 + col;
    const float *b = a.b ? a.b + col0 + col : nullptr;
    const float *x = mem + row * TILE_PITCH;
    const float *w = mem + (TILE_ROWS + col) * TILE_PITCH;
    float acc[8][8] = {}, sum[8][8] = {};
    float4 p[2][8];                      /* rows of x, the next ones too      */

    for (int step = 0; step < TILE_STAGES - 2; step++) stage(step, step);
    const int steps = (K + TILE_K - 1) / TILE_K;
    const int per_block = TT_DOT_BLOCK / TILE_K;
    step_is_there();
    fetch<TILE_PITCH>(p[0], x);
    int s = 0;
    do {
        const bool first = s == 0;
        const int end = least(s + per_block, steps);
        for (; s < end; s++) {
            const int slot = s % TILE_STAGES * size;
            const int next = (s + 1) % TILE_STAGES * size;
            const int left = K - s * TILE_K;
            stage(s + TILE_STAGES - 2, (s + TILE_STAGES - 2) % TILE_STAGES);
            if (left < TILE_K) {
                chain_tail(acc, x + slot, w + slot, left);
                continue;
            }
            UNROLL
            for (int k = 0; k < TILE_K; k += 4) {
                const bool last = k + 4 == TILE_K;
                if (last) step_is_there();
                fetch<TILE_PITCH>(p[k / 4 % 2 ^ 1],
                                  x + (last ? next : slot + k + 4));
                four_products<TILE_PITCH>(acc, p[k / 4 % 2], w + slot + k);
            }
        }
        add_block(sum, acc, first);
    } while (s < steps);
    store<VEC>(y, o, b, n - row0 - row, o - col0 - col, sum);
}

/* ---- what follows -------------------------------------------------------- */

/* Four outputs at once. */
DEVICE void put4(const cuda_epilogue &e, float *y, int row, int col, int64_t o)
{
    const int64_t at = row * o + col;
    const float4 v = load4(y + at);
    float4 x = four(0.0f, 0.0f, 0.0f, 0.0f), g = x;
    if (e.x) x = load4(e.x + at);
    if (e.kind == CUDA_GATE) g = load4(gates(e, row) + col);
    store4(e.x ? e.x + at : y + at, followed4(e, v, x, g));
}

/* The sums of a thread stand in y, where it alone has been: they are taken up
 * again, when the registers of its chains are free. */
template <bool VEC> DEVICE void follow(const cuda_linear_args &a)
{
    const int n = (int)a.n, o = (int)a.o;
    const int row0 = blockIdx.y * TILE_ROWS + own_row();
    const int col0 = blockIdx.x * TILE_COLS + own_col();
    for (int i = 0; i < 8; i++)
        UNROLL_1
        for (int j = 0; j < 8; j += VEC ? 4 : 1) {
            const int row = row0 + tile_row(i), col = col0 + tile_col(j);
            if (row >= n || col >= o) continue;
            if constexpr (VEC) put4(a.then, a.y, row, col, a.o);
            else put(a.then, a.y, row, col, a.o, a.y[row * a.o + col]);
        }
}

template <bool VEC> DEVICE void linear_tile(const cuda_linear_args &a)
{
    tile<VEC, matrix_row>(a, (int)a.n, (int)a.o, (int)a.k);
    if (a.then.kind != CUDA_PLAIN) follow<VEC>(a);
}

template <bool VEC> DEVICE void conv_tile(const cuda_conv_args &a)
{
    tile<VEC, window_row>(a, (int)(a.Ho * a.Wo), (int)a.Cout,
                          (int)(a.kt * a.kh * a.kw * a.Cin));
}

/* _vec: inputs, outputs and widths are multiples of 16 bytes. */
KERNEL(linear, cuda_linear_args, TILE_THREADS, 1) { linear_tile<false>(a); }
KERNEL(linear_vec, cuda_linear_args, TILE_THREADS, 1) { linear_tile<true>(a); }
KERNEL(conv, cuda_conv_args, TILE_THREADS, 1) { conv_tile<false>(a); }
KERNEL(conv_vec, cuda_conv_args, TILE_THREADS, 1) { conv_tile<true>(a); }
