// The benchmark kernels in OpenCL C. Indices are size_t, which the OpenCL compilers vectorise better than int.

kernel void saxpy(int n, float a, global const float *x, global float *y) {
    size_t i = get_global_id(0);
    if (i < n) y[i] = a * x[i] + y[i];
}

#define MULTIPLY(name, tile)                                                                    \
    kernel void name(int n, global const float *a, global const float *b, global float *c) {    \
        local float tile_a[tile][tile], tile_b[tile][tile];                                     \
        size_t x = get_local_id(0), y = get_local_id(1);                                        \
        size_t row = get_global_id(1), column = get_global_id(0);                               \
        float sum = 0;                                                                          \
        for (size_t start = 0; start < n; start += tile) {                                      \
            tile_a[y][x] = a[row * n + start + x];                                              \
            tile_b[y][x] = b[(start + y) * n + column];                                         \
            barrier(CLK_LOCAL_MEM_FENCE);                                                       \
            for (int k = 0; k < tile; k++) sum += tile_a[y][k] * tile_b[k][x];                  \
            barrier(CLK_LOCAL_MEM_FENCE);                                                       \
        }                                                                                       \
        c[row * n + column] = sum;                                                              \
    }

MULTIPLY(sgemm32, 32)
MULTIPLY(sgemm16, 16)

kernel void mandelbrot(int width, int height, int limit, float step, global float *out) {
    size_t px = get_global_id(0), py = get_global_id(1);
    if (px >= width || py >= height) return;
    float cx = -2.0f + px * step, cy = -1.25f + py * step, x = 0, y = 0;
    int count = 0;
    while (count < limit && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        count++;
    }
    out[py * width + px] = count;
}

// Shuffles are an extension that not every implementation has: the warps meet in local memory.
kernel void reduce(int n, global const float *x, global float *out) {
    local float sums[256];
    size_t thread = get_local_id(0);
    float sum = 0;
    for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) sum += x[i];
    sums[thread] = sum;
    for (size_t half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread < half_size) sums[thread] += sums[thread + half_size];
    }
    if (thread == 0) out[get_group_id(0)] = sums[0];
}

float cumulative_normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float series = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * exp(-0.5f * d * d) * series;
    return d > 0 ? 1.0f - tail : tail;
}

kernel void black_scholes(int n, float rate, float volatility, global const float *price, global const float *strike,
                          global const float *years, global float *call, global float *put) {
    size_t i = get_global_id(0);
    if (i >= n) return;
    float s = price[i], x = strike[i], t = years[i], root = sqrt(t);
    float d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = cumulative_normal(d1), n2 = cumulative_normal(d2), discount = exp(-rate * t);
    call[i] = s * n1 - x * discount * n2;
    put[i] = x * discount * (1.0f - n2) - s * (1.0f - n1);
}

kernel void stencil(int width, int height, global const float *in, global float *out) {
    size_t x = get_global_id(0), y = get_global_id(1);
    if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
        size_t i = y * width + x;
        out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
    }
}

kernel void empty(void) {}
