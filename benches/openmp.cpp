// The cases as a C++ programmer would write them for the CPU, with OpenMP: not the kernels' shape, the problem's.

#include <algorithm>

#include "worker.h"

static void saxpy(int n, float a, const float *x, float *y) {
#pragma omp parallel for simd
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

// Four rows and 64 columns of the product stay in registers.
static void sgemm(int n, const float *a, const float *b, float *c) {
    constexpr int rows = 4, columns = 64;
#pragma omp parallel for collapse(2) schedule(static)
    for (int row = 0; row < n; row += rows)
        for (int column = 0; column < n; column += columns) {
            float sums[rows][columns] = {};
            for (int k = 0; k < n; k++)
                for (int r = 0; r < rows; r++) {
                    const float left = a[size_t(row + r) * n + k];
#pragma omp simd
                    for (int j = 0; j < columns; j++) sums[r][j] += left * b[size_t(k) * n + column + j];
                }
            for (int r = 0; r < rows; r++) std::copy_n(sums[r], columns, c + size_t(row + r) * n + column);
        }
}

static void mandelbrot(int width, int height, int limit, float step, float *out) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int py = 0; py < height; py++)
        for (int px = 0; px < width; px++) {
            float cx = -2.0f + px * step, cy = -1.25f + py * step, x = 0, y = 0;
            int count = 0;
            for (; count < limit && x * x + y * y <= 4.0f; count++) {
                float next = x * x - y * y + cx;
                y = 2 * x * y + cy;
                x = next;
            }
            out[size_t(py) * width + px] = float(count);
        }
}

static void reduce(int n, const float *x, float *out) {
    float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += x[i];
    out[0] = sum;
}

static float cumulative_normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float series = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * expf(-0.5f * d * d) * series;
    return d > 0 ? 1.0f - tail : tail;
}

static void black_scholes(int n, float rate, float volatility, const float *price, const float *strike, const float *years,
                          float *call, float *put) {
#pragma omp parallel for simd
    for (int i = 0; i < n; i++) {
        float s = price[i], x = strike[i], t = years[i], root = sqrtf(t);
        float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
        float d2 = d1 - volatility * root;
        float n1 = cumulative_normal(d1), n2 = cumulative_normal(d2), discount = expf(-rate * t);
        call[i] = s * n1 - x * discount * n2;
        put[i] = x * discount * (1.0f - n2) - s * (1.0f - n1);
    }
}

static void stencil(int width, int height, const float *in, float *out) {
#pragma omp parallel for
    for (int y = 1; y < height - 1; y++)
#pragma omp simd
        for (int x = 1; x < width - 1; x++) {
            size_t i = size_t(y) * width + x;
            out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
        }
}

static void empty() {
#pragma omp parallel
    asm volatile("");
}

class OpenmpCase : public Prepared {
public:
    explicit OpenmpCase(const Case &c) : case_(c) {}
    void start() override {
        const std::string &kernel = case_.kernel;
        auto i = [&](size_t at) { return case_.arguments[at].i; };
        auto f = [&](size_t at) { return case_.arguments[at].f; };
        auto p = [&](size_t at) { return case_.buffers[case_.arguments[at].i].data(); };
        if (kernel == "saxpy") saxpy(i(0), f(1), p(2), p(3));
        else if (kernel == "sgemm32" || kernel == "sgemm16") sgemm(i(0), p(1), p(2), p(3));
        else if (kernel == "mandelbrot") mandelbrot(i(0), i(1), i(2), f(3), p(4));
        else if (kernel == "reduce") reduce(i(0), p(1), p(2));
        else if (kernel == "black_scholes") black_scholes(i(0), f(1), f(2), p(3), p(4), p(5), p(6), p(7));
        else if (kernel == "stencil") stencil(i(0), i(1), p(2), p(3));
        else if (kernel == "empty") empty();
        else throw std::runtime_error("no kernel " + kernel);
    }
    void finish() override {}
    std::vector<std::vector<float>> buffers() override { return case_.buffers; }

private:
    Case case_;
};

int main() {
    return serve([](const Case &c) { return std::make_unique<OpenmpCase>(c); });
}
