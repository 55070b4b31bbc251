/* norm.cu: the three normalisations, and per-channel statistics over rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Golden: ops/golden/norm.c. The 16 double lanes of a row are 16 threads, two
 * rows a warp; the tree that joins them is four exchanges. A column statistic
 * is one chain over rows, so it is one thread.
 *
 * Holds   a + b = b + a in every bit, so after join_lanes all 16 threads have
 *         lane 0's sum. Threads of a row after the end take part in the
 *         exchanges, which need whole warps, and store nothing. */
#include "ops/cuda/wgmma.h"

#define LANES 16
#define AHEAD 16         /* numbers that are asked for before they are needed */
#define AHEAD_DOWN 64    /* the same of a column, where few threads run       */

/* add(x[0]), add(x[stride]) and so on, `count` of them in this order: while N
 * are used the next N are on their way, to registers of their own, so that none
 * is moved before it has arrived. */
template <int N, class ADD>
DEVICE void in_turn(const float *x, int64_t count, int64_t stride, ADD add)
{
    const int64_t whole = count / N * N;
    float even[N] = {}, odd[N];
    auto ask = [&](float (&v)[N], int64_t from) {
        const float *at = x + (from < whole ? from : 0) * stride;
        UNROLL
        for (int k = 0; k < N; k++) v[k] = at[k * stride];
    };
    auto use = [&](const float (&v)[N]) {
        UNROLL
        for (int k = 0; k < N; k++) add(v[k]);
    };
    if (whole) ask(even, 0);
    UNROLL_1
    for (int64_t i = 0; i < whole; i += 2 * N) {
        ask(odd, i + N);
        use(even);
        if (i + N == whole) break;
        ask(even, i + 2 * N);
        use(odd);
    }
    UNROLL_1
    for (int64_t i = whole; i < count; i++) add(x[i * stride]);
}

/* put(i, of(i)) for a lane's part of a row: several are computed before the
 * first one is stored. */
template <class PUT, class OF>
DEVICE void fill_lane(PUT put, int64_t c, int64_t first, OF of)
{
    const int some = AHEAD / 2;
    int64_t i = first;
    for (; i + (some - 1) * LANES < c; i += some * LANES) {
        float v[some];
        UNROLL
        for (int k = 0; k < some; k++) v[k] = of(i + k * LANES);
        UNROLL
        for (int k = 0; k < some; k++) put(i + k * LANES, v[k]);
    }
    UNROLL_1
    for (; i < c; i += LANES) put(i, of(i));
}

template <class OF>
DEVICE void fill_lane(float *y, int64_t c, int64_t first, OF of)
{
    fill_lane([=](int64_t i, float v) { y[i] = v; }, c, first, of);
}

DEVICE double join_lanes(double lane)
{
    UNROLL
    for (int h = LANES / 2; h > 0; h /= 2)
        lane = add_rn(lane, lane_xor(lane, h));
    return lane;
}

/* This thread's row, and which lane of it. */
struct row_lane {
    int64_t row, first;
    bool live;
    DEVICE row_lane(int64_t n)
    {
        row = grid_thread() / LANES;
        first = threadIdx.x % LANES;
        live = row < n;
        if (!live) row = n - 1;
    }
};

/* Numbers of a row that belong to a lane. */
DEVICE int64_t lane_count(int64_t c, int64_t first)
{
    return (c - first + LANES - 1) / LANES;
}

DEVICE double row_mean(const float *x, int64_t c, int64_t first)
{
    double lane = 0.0;
    in_turn<AHEAD>(x + first, lane_count(c, first), LANES,
            [&](float v) { lane = add_rn(lane, wide(v)); });
    return div_rn(join_lanes(lane), wide(c));
}

/* sum of (x - mean)^2 */
DEVICE double row_moment(const float *x, int64_t c, int64_t first, double mean)
{
    double lane = 0.0;
    in_turn<AHEAD>(x + first, lane_count(c, first), LANES, [&](float v) {
        const double d = add_rn(wide(v), -mean);
        lane = fma_rn(d, d, lane);
    });
    return join_lanes(lane);
}

/* 1 / sqrt(moment / c + eps) */
DEVICE double row_scale(double moment, int64_t c, double eps)
{
    return div_rn(1.0, sqrt_rn(add_rn(div_rn(moment, wide(c)), eps)));
}

KERNEL(layer_norm, cuda_layer_norm_args, ROW_THREADS, 1)
{
    const tt_layer_norm_args &n = a.norm;
    const tt_modulate_args &m = a.mod;
    const row_lane r(n.n);
    const float *x = n.x + r.row * n.c;
    float *y = n.y + r.row * n.c;
    const double mean = row_mean(x, n.c, r.first);
    const double moment = row_moment(x, n.c, r.first, mean);
    const double scale = row_scale(moment, n.c, n.eps);
    const int64_t group = m.scale ? r.row / m.rows * m.stride : 0;
    if (!r.live) return;
    auto put = [&](int64_t i, float v) {
        if (!a.blocks) y[i] = v;
        else a.blocks[in_blocks((int)r.row, i, n.c / BLOCK_K)] =
                 (bf16)two_factors(v, 0.0f);
    };
    fill_lane(put, n.c, r.first, [&](int64_t i) {
        float v = narrow(mul_rn(add_rn(wide(x[i]), -mean), scale));
        if (n.w) v = fma_rn(v, n.w[i], n.b[i]);
        if (m.scale)
            v = fma_rn(v, add_rn(1.0f, m.scale[group + i]), m.shift[group + i]);
        return v;
    });
}

KERNEL(rms_norm, tt_rms_norm_args, ROW_THREADS, 1)
{
    const row_lane r(a.n);
    const float *x = a.x + r.row * a.c;
    float *y = a.y + r.row * a.c;
    const double moment = row_moment(x, a.c, r.first, 0.0);
    const double scale = row_scale(moment, a.c, a.eps);
    if (!r.live) return;
    fill_lane(y, a.c, r.first, [&](int64_t i) {
        return mul_rn(narrow(mul_rn(wide(x[i]), scale)), a.w[i]);
    });
}

KERNEL(channel_norm, tt_channel_norm_args, ROW_THREADS, 1)
{
    const row_lane r(a.n);
    const float *x = a.x + r.row * a.c;
    float *y = a.y + r.row * a.c;
    const float root = narrow(sqrt_rn(wide(a.c)));
    double norm = sqrt_rn(row_moment(x, a.c, r.first, 0.0));
    if (norm < 1e-12) norm = 1e-12;   /* a floor, not an addition */
    const double scale = div_rn(1.0, norm);
    if (!r.live) return;
    fill_lane(y, a.c, r.first, [&](int64_t i) {
        const float v = narrow(mul_rn(wide(x[i]), scale));
        return mul_rn(mul_rn(v, root), a.gamma[i]);
    });
}

/* ---- columns ------------------------------------------------------------- */

KERNEL(col_mean, tt_col_mean_args, COLUMN_THREADS, 1)
{
    const int64_t i = grid_thread();
    if (i >= a.c) return;
    double s = 0.0;
    in_turn<AHEAD_DOWN>(a.x + i, a.n, a.c,
                        [&](float v) { s = add_rn(s, wide(v)); });
    a.mean[i] = div_rn(s, wide(a.n));
}

KERNEL(col_moment, tt_col_moment_args, COLUMN_THREADS, 1)
{
    const int64_t i = grid_thread();
    if (i >= a.c) return;
    double s = 0.0;
    const double mean = a.mean[i];
    in_turn<AHEAD_DOWN>(a.x + i, a.n, a.c, [&](float v) {
        const double d = add_rn(wide(v), -mean);
        s = fma_rn(d, d, s);
    });
    a.m2[i] = s;
}

KERNEL(col_blend, tt_col_blend_args, ELEMENT_THREADS, 1)
{
    const double rest = add_rn(1.0, -a.tau);
    for (int64_t e = grid_thread(); e < a.n * a.c; e += grid_threads()) {
        const int64_t i = e % a.c;
        const double v = wide(a.x[e]), kept = mul_rn(rest, v);
        if (!a.gain) {                            /* a moving average */
            a.x[e] = narrow(add_rn(mul_rn(a.tau, a.target[i]), kept));
            continue;
        }
        const double edit = fma_rn(a.gain[i], add_rn(v, -a.mean[i]),
                                   a.target[i]);
        a.x[e] = narrow(fma_rn(a.tau, edit, kept));
    }
}
