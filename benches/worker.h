// What the workers share: the cases with their inputs and references, and the protocol.
//
// A worker implements the cases in one way (our driver, an OpenCL platform, OpenMP). It reads lines `CASE MILLISECONDS`
// and answers each with the nanoseconds that one run takes, measured over at least so long, or with `error: REASON`.
// Results are checked before the first measurement of a case. scripts/bench runs several workers in turn.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Argument {
    enum Kind { buffer, integer, real } kind;
    int i;
    float f;
};

struct Case {
    std::string kernel;
    unsigned grid[2], block[2];
    std::vector<std::vector<float>> buffers;
    std::vector<Argument> arguments;
    // Compares the buffers after one run with what they should hold; throws what is wrong.
    std::function<void(const std::vector<std::vector<float>> &)> check;
};

class Builder {
public:
    Builder(std::string kernel, std::vector<unsigned> grid, std::vector<unsigned> block)
        : result_{std::move(kernel), {grid[0], grid.size() > 1 ? grid[1] : 1}, {block[0], block.size() > 1 ? block[1] : 1},
                  {}, {}, nullptr} {}
    Builder &operator<<(int value) { return add({Argument::integer, value, 0}); }
    Builder &operator<<(float value) { return add({Argument::real, 0, value}); }
    Builder &operator<<(std::vector<float> values) {
        result_.buffers.push_back(std::move(values));
        return add({Argument::buffer, int(result_.buffers.size()) - 1, 0});
    }
    Case checked_by(std::function<void(const std::vector<std::vector<float>> &)> check) {
        result_.check = std::move(check);
        return std::move(result_);
    }

private:
    Builder &add(Argument argument) {
        result_.arguments.push_back(argument);
        return *this;
    }
    Case result_;
};

inline std::vector<float> random_values(size_t count, float low, float high) {
    std::vector<float> values(count);
    uint32_t state = 12345;
    for (float &value : values) {
        state = state * 1664525 + 1013904223;
        value = low + (high - low) * float(state >> 8) / float(1 << 24);
    }
    return values;
}

inline void require_near(double found, double wanted, double tolerance, size_t index) {
    if (!(fabs(found - wanted) <= tolerance))
        throw std::runtime_error("element " + std::to_string(index) + ": " + std::to_string(found) + ", not " +
                                 std::to_string(wanted));
}

inline Case saxpy_case(int n) {
    const float a = 1e-3f;
    std::vector<float> x = random_values(n, -1, 1), y = random_values(n, 1, 2);
    auto check = [=](const std::vector<std::vector<float>> &buffers) {
        for (int i = 0; i < n; i++) require_near(buffers[1][i], double(a) * x[i] + y[i], 1e-6, i);
    };
    return (Builder("saxpy", {unsigned(n + 255) / 256}, {256}) << n << a << x << y).checked_by(check);
}

inline Case sgemm_case(const char *kernel, int n, unsigned tile) {
    std::vector<float> a = random_values(size_t(n) * n, -1, 1), b = random_values(size_t(n) * n, 0, 1);
    auto check = [=](const std::vector<std::vector<float>> &buffers) {
        for (int row = 0; row < n; row += 61)
            for (int column = 0; column < n; column++) {
                double sum = 0;
                for (int k = 0; k < n; k++) sum += double(a[size_t(row) * n + k]) * b[size_t(k) * n + column];
                require_near(buffers[2][size_t(row) * n + column], sum, 1e-3, size_t(row) * n + column);
            }
    };
    std::vector<float> c(size_t(n) * n);
    return (Builder(kernel, {unsigned(n) / tile, unsigned(n) / tile}, {tile, tile}) << n << a << b << c).checked_by(check);
}

inline Case mandelbrot_case(int size, int limit) {
    const float step = 2.5f / size;
    auto check = [=](const std::vector<std::vector<float>> &buffers) {
        // Whether a point escapes one step earlier may hang on rounding: a few in ten thousand may differ.
        size_t different = 0;
        for (int py = 0; py < size; py++)
            for (int px = 0; px < size; px++) {
                float cx = -2.0f + px * step, cy = -1.25f + py * step, x = 0, y = 0;
                int count = 0;
                for (; count < limit && x * x + y * y <= 4.0f; count++) {
                    float next = x * x - y * y + cx;
                    y = 2 * x * y + cy;
                    x = next;
                }
                different += fabsf(buffers[0][size_t(py) * size + px] - float(count)) > 1;
            }
        if (different > size_t(size) * size / 500) throw std::runtime_error(std::to_string(different) + " wrong points");
    };
    std::vector<float> out(size_t(size) * size);
    return (Builder("mandelbrot", {unsigned(size) / 32, unsigned(size) / 8}, {32, 8}) << size << size << limit << step
                                                                                     << out)
        .checked_by(check);
}

inline Case reduce_case(int n) {
    const unsigned blocks = 64;
    std::vector<float> x = random_values(n, 0, 1);
    auto check = [=](const std::vector<std::vector<float>> &buffers) {
        double wanted = 0, found = 0;
        for (float value : x) wanted += value;
        for (float value : buffers[1]) found += value;
        require_near(found, wanted, wanted * 1e-5, 0);
    };
    return (Builder("reduce", {blocks}, {256}) << n << x << std::vector<float>(blocks)).checked_by(check);
}

inline Case black_scholes_case(int n) {
    const float rate = 0.02f, volatility = 0.3f;
    std::vector<float> price = random_values(n, 5, 30), strike = random_values(n, 1, 100), years = random_values(n, 0.25f, 10);
    auto check = [=](const std::vector<std::vector<float>> &buffers) {
        auto normal = [](double d) { return 0.5 * erfc(-d / sqrt(2.0)); };
        for (int i = 0; i < n; i += 17) {
            double s = price[i], x = strike[i], t = years[i], root = sqrt(t);
            double d1 = (log(s / x) + (rate + 0.5 * volatility * volatility) * t) / (volatility * root);
            double d2 = d1 - volatility * root, discount = exp(-rate * t);
            require_near(buffers[3][i], s * normal(d1) - x * discount * normal(d2), 1e-4 * (s + x), i);
            require_near(buffers[4][i], x * discount * normal(-d2) - s * normal(-d1), 1e-4 * (s + x), i);
        }
    };
    std::vector<float> call(n), put(n);
    return (Builder("black_scholes", {unsigned(n + 255) / 256}, {256}) << n << rate << volatility << price << strike
                                                                      << years << call << put)
        .checked_by(check);
}

inline Case stencil_case(int size) {
    std::vector<float> in = random_values(size_t(size) * size, -1, 1);
    auto check = [=](const std::vector<std::vector<float>> &buffers) {
        for (int y = 1; y < size - 1; y++)
            for (int x = 1; x < size - 1; x++) {
                size_t i = size_t(y) * size + x;
                double wanted = 0.5 * in[i] + 0.125 * (double(in[i - 1]) + in[i + 1] + in[i - size] + in[i + size]);
                require_near(buffers[1][i], wanted, 1e-6, i);
            }
    };
    std::vector<float> out(size_t(size) * size);
    return (Builder("stencil", {unsigned(size) / 32, unsigned(size) / 8}, {32, 8}) << size << size << in << out)
        .checked_by(check);
}

inline Case make_case(const std::string &name) {
    if (name == "saxpy_64k") return saxpy_case(1 << 16);
    if (name == "saxpy_16m") return saxpy_case(1 << 24);
    if (name == "sgemm32") return sgemm_case("sgemm32", 512, 32);
    if (name == "sgemm16") return sgemm_case("sgemm16", 512, 16);
    if (name == "mandelbrot") return mandelbrot_case(1024, 256);
    if (name == "reduce") return reduce_case(1 << 20);
    if (name == "black_scholes") return black_scholes_case(1 << 18);
    if (name == "stencil") return stencil_case(1024);
    if (name == "empty") return Builder("empty", {1}, {1}).checked_by([](const auto &) {});
    throw std::runtime_error("no case " + name);
}

// One case made ready in one way.
class Prepared {
public:
    virtual ~Prepared() = default;
    virtual void start() = 0;                                    // may return before the work is done
    virtual void finish() = 0;                                   // waits for everything started
    virtual std::vector<std::vector<float>> buffers() = 0;       // as they are now
};

using Prepare = std::function<std::unique_ptr<Prepared>(const Case &)>;

// Nanoseconds for one run. Runs are started in batches and waited for together, as programs do.
inline double measure(Prepared &prepared, double milliseconds) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    size_t runs = 0, batch = 1;
    double spent = 0;
    while (spent < milliseconds) {
        for (size_t i = 0; i < batch; i++) prepared.start();
        prepared.finish();
        runs += batch;
        spent = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        if (spent / double(runs) * double(batch) < 1 && batch < 256) batch *= 2;
    }
    return spent * 1e6 / double(runs);
}

inline int serve(const Prepare &prepare) {
    std::map<std::string, std::unique_ptr<Prepared>> ready;
    std::string name;
    double milliseconds;
    while (std::cin >> name >> milliseconds) {
        try {
            std::unique_ptr<Prepared> &prepared = ready[name];
            if (!prepared) {
                Case c = make_case(name);
                std::unique_ptr<Prepared> made = prepare(c);
                made->start();
                made->finish();
                c.check(made->buffers());
                prepared = std::move(made);
            }
            printf("%.1f\n", measure(*prepared, milliseconds));
        } catch (const std::exception &error) {
            ready.erase(name);
            printf("error: %s\n", error.what());
        }
        fflush(stdout);
    }
    return 0;
}
