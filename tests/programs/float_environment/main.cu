// A program may round as it likes, take subnormals for zero or have exceptions trap: kernels compute the same, and what it set stays.

#include <fenv.h>
#include <string.h>
#include <xmmintrin.h>

#include <thread>

#include "example.h"

// Each its own kernel, so that one is compiled in each environment.
template <int>
__global__ void compute(const float *in, float *out, const double *wide_in, double *wide_out) {
    out[0] = in[0] / in[1];             // rounds
    out[1] = in[2] * in[3];             // is subnormal
    out[2] = in[2] + in[2];             // of subnormals
    out[3] = sqrtf(in[1]);              // rounds
    out[4] = in[1] * (1.0f / 3.0f);     // of a constant
    out[5] = in[0] / (in[2] - in[2]);   // is infinite
    wide_out[0] = wide_in[0] / wide_in[1];
    wide_out[1] = wide_in[2] * 0.5;
    wide_out[2] = exp(wide_in[1]);
    atomicAdd(&out[6], 0x1p-25f); // rounds, perhaps after all blocks have run
}

struct Results {
    float single[7];
    double wide[3];
};

const float singles[4] = {1, 3, 1e-39f, 0.5f};
const double doubles[3] = {1, 3, 5e-310};

struct Environment {
    const char *name;
    void (*set)();
};

const Environment environments[] = {
    {"the usual environment", [] {}},
    {"subnormals taken for zero", [] { _mm_setcsr(_mm_getcsr() | 0x8040); }},
    {"rounding upwards", [] { fesetround(FE_UPWARD); }},
    {"rounding to zero", [] { fesetround(FE_TOWARDZERO); }},
    {"exceptions that trap", [] { _mm_setcsr(0x1f80 & ~(_MM_MASK_DIV_ZERO | _MM_MASK_INEXACT | _MM_MASK_DENORM | _MM_MASK_UNDERFLOW)); }},
};

template <int KERNEL>
Results run(void (*set)()) {
    static float *in, *out;
    static double *wide_in, *wide_out;
    if (!in) {
        CUDA_CHECK(cudaMalloc(&in, sizeof singles));
        CUDA_CHECK(cudaMalloc(&out, sizeof Results::single));
        CUDA_CHECK(cudaMalloc(&wide_in, sizeof doubles));
        CUDA_CHECK(cudaMalloc(&wide_out, sizeof Results::wide));
        CUDA_CHECK(cudaMemcpy(in, singles, sizeof singles, cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(wide_in, doubles, sizeof doubles, cudaMemcpyHostToDevice));
    }
    const float one = 1;
    CUDA_CHECK(cudaMemcpy(out + 6, &one, sizeof one, cudaMemcpyHostToDevice));
    set();
    const unsigned before = _mm_getcsr();
    compute<KERNEL><<<1, 1>>>(in, out, wide_in, wide_out);
    const cudaError_t launched = cudaGetLastError(), ended = cudaDeviceSynchronize();
    const unsigned after = _mm_getcsr();
    _mm_setcsr(0x1f80);
    CUDA_CHECK(launched);
    CUDA_CHECK(ended);
    REQUIRE((before & ~0x3fu) == (after & ~0x3fu), "the program's environment was %#x and is %#x", before, after);
    Results results;
    CUDA_CHECK(cudaMemcpy(results.single, out, sizeof results.single, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(results.wide, wide_out, sizeof results.wide, cudaMemcpyDeviceToHost));
    return results;
}

void check(const char *when, const Environment &environment, const Results &results) {
    static const Results usual = [] {
        Results usual;
        usual.single[0] = 1.0f / 3.0f;
        volatile float tiny = 1e-39f, half = 0.5f, three = 3;
        usual.single[1] = tiny * half;
        usual.single[2] = tiny + tiny;
        usual.single[3] = 1.7320508f;
        usual.single[4] = three * (1.0f / 3.0f);
        usual.single[5] = INFINITY;
        usual.single[6] = 1;
        volatile double wide = 5e-310;
        usual.wide[0] = 1.0 / 3.0;
        usual.wide[1] = wide * 0.5;
        usual.wide[2] = 20.085536923187668;
        return usual;
    }();
    for (int i = 0; i < 7; ++i)
        REQUIRE(!memcmp(&results.single[i], &usual.single[i], 4), "%s %s: result %d is %a, not %a", when, environment.name, i,
                results.single[i], usual.single[i]);
    for (int i = 0; i < 3; ++i)
        REQUIRE(!memcmp(&results.wide[i], &usual.wide[i], 8), "%s %s: double %d is %a, not %a", when, environment.name, i,
                results.wide[i], usual.wide[i]);
}

template <int KERNEL>
void check_all() {
    const Environment &environment = environments[KERNEL];
    check("first launch with", environment, run<KERNEL>(environment.set));
    check("second launch with", environment, run<KERNEL>(environment.set));
    for (const Environment &other : environments) check("later, with", other, run<KERNEL>(other.set));
    // What a thread starts has its environment.
    std::thread([&] {
        environment.set();
        std::thread([&] { check("in a thread with", environment, run<KERNEL>([] {})); }).join();
        _mm_setcsr(0x1f80);
    }).join();
}

int main() {
    check_all<1>();
    check_all<4>();
    check_all<2>();
    check_all<3>();
    check_all<0>();
    succeed("kernels compute the same in %zu environments", sizeof environments / sizeof *environments);
}
