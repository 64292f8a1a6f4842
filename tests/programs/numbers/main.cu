// Arithmetic that must be exact, on numbers chosen to hurt, compared with the host's.

#include <cuda_fp16.h>
#include <math.h>
#include <string.h>

#include <vector>

#include "example.h"

#define BOTH __host__ __device__

template <class To, class From>
BOTH To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

struct Pair {
    unsigned long long a, b;
};

BOTH unsigned long long hash(unsigned long long sum, unsigned long long value) {
    return (sum ^ value) * 0x9e3779b97f4a7c15ull + (sum >> 29);
}

// NaNs are one class: which bits an operation gives is the hardware's business.
BOTH unsigned bits(float x) { return x != x ? 0x7fc00000u : same_bits<unsigned>(x); }
BOTH unsigned long long bits(double x) { return x != x ? 0x7ff8000000000000ull : same_bits<unsigned long long>(x); }

BOTH unsigned long long integers(Pair p) {
    const int a = int(p.a), b = int(p.b);
    const unsigned ua = unsigned(p.a), ub = unsigned(p.b);
    const long long la = (long long)p.a, lb = (long long)p.b;
    unsigned long long sum = 0;
    sum = hash(sum, ua + ub);
    sum = hash(sum, ua - ub);
    sum = hash(sum, ua * ub);
    sum = hash(sum, (unsigned long long)ua * ub);
    sum = hash(sum, (unsigned long long)((long long)a * b));
    if (ub) sum = hash(sum, ua / ub * 3 + ua % ub);
    if (b && !(ua == 0x80000000u && b == -1)) sum = hash(sum, unsigned(a / b) * 5 + unsigned(a % b));
    if (p.b) sum = hash(sum, p.a / p.b + p.a % p.b);
    if (lb && !(p.a == 1ull << 63 && lb == -1)) sum = hash(sum, (unsigned long long)(la / lb ^ la % lb));
    sum = hash(sum, p.a * p.b);
    sum = hash(sum, p.a >> (p.b & 63) ^ p.a << (p.b >> 8 & 63));
    sum = hash(sum, (unsigned long long)(la >> (p.b & 63)));
    sum = hash(sum, unsigned(a >> (ub & 31)));
    sum = hash(sum, (a < b) + 2 * (ua < ub) + 4 * (la < lb) + 8 * (p.a < p.b));
    sum = hash(sum, (unsigned long long)(signed char)a + (unsigned short)b + (unsigned long long)(short)a);
    return sum;
}

BOTH unsigned long long singles(Pair p) {
    const float a = same_bits<float>(unsigned(p.a)), b = same_bits<float>(unsigned(p.b));
    unsigned long long sum = 0;
    sum = hash(sum, bits(a + b));
    sum = hash(sum, bits(a - b));
    sum = hash(sum, bits(fmaf(a, b, -a)));
    sum = hash(sum, bits(a / b));
    sum = hash(sum, bits(sqrtf(a)));
    if (a == a) sum = hash(sum, bits(fmaxf(a, 1.5f)));
    sum = hash(sum, bits(floorf(a)));
    sum = hash(sum, bits(truncf(b)));
    sum = hash(sum, bits(rintf(a)));
    sum = hash(sum, (a < b) + 2 * (a == b) + 4 * (a >= b) + 8 * (a != b));
    if (fabsf(a) < 2e9f) sum = hash(sum, unsigned(int(a)));
    sum = hash(sum, bits(double(a)));
    sum = hash(sum, bits(float(int(p.a))));
    sum = hash(sum, bits(float(p.b)));
    return sum;
}

BOTH unsigned long long doubles(Pair p) {
    const double a = same_bits<double>(p.a), b = same_bits<double>(p.b);
    unsigned long long sum = 0;
    sum = hash(sum, bits(a + b));
    sum = hash(sum, bits(a - b));
    sum = hash(sum, bits(fma(a, b, -b)));
    sum = hash(sum, bits(a / b));
    sum = hash(sum, bits(sqrt(b)));
    sum = hash(sum, bits(ceil(a)));
    sum = hash(sum, bits(rint(b)));
    sum = hash(sum, bits(float(a)));
    sum = hash(sum, (a < b) + 2 * (a == b) + 4 * (a <= b));
    if (fabs(a) < 9e18) sum = hash(sum, (unsigned long long)(long long)a);
    sum = hash(sum, bits(double((long long)p.a)));
    sum = hash(sum, bits(double(p.b)));
    return sum;
}

template <unsigned long long (*function)(Pair)>
__global__ void apply(const Pair *pairs, unsigned long long *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = function(pairs[i]);
}

// What only the device has: bit instructions and half precision, compared with definitions of our own.
__global__ void device_only(const Pair *pairs, unsigned long long *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned a = unsigned(pairs[i].a), b = unsigned(pairs[i].b);
    unsigned long long sum = 0;
    sum = hash(sum, __popc(a) + 100 * __clz(b) + 10000 * __ffs(int(a)));
    sum = hash(sum, __brev(a));
    sum = hash(sum, __byte_perm(a, b, 0x5261));
    sum = hash(sum, __umulhi(a, b));
    sum = hash(sum, unsigned(__mulhi(int(a), int(b))));
    sum = hash(sum, __funnelshift_l(a, b, a & 31));
    sum = hash(sum, __sad(int(a), int(b), 5u));
    const __half h = __ushort_as_half((unsigned short)a);
    const float widened = __half2float(h);
    sum = hash(sum, bits(widened));
    sum = hash(sum, __half_as_ushort(__float2half_rn(float(int(b) >> 12))));
    out[i] = sum;
}

float half_value(unsigned short h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const float sign = h >> 15 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpf(float(fraction + 1024), exponent - 25) : ldexpf(float(fraction), -24));
}

unsigned short to_half(float x) {
    // Whole numbers up to 2^20 only: round to 11 bits, ties to even.
    const unsigned short sign = x < 0 ? 0x8000 : 0;
    float size = fabsf(x);
    if (size == 0) return sign;
    int exponent = 0;
    frexpf(size, &exponent);
    const float unit = ldexpf(1, exponent - 11);
    size = rintf(size / unit) * unit;
    if (size >= 65520) return sign | 0x7c00;
    frexpf(size, &exponent);
    return sign | (unsigned short)((exponent + 14) << 10 | (unsigned(ldexpf(size, 11 - exponent)) & 1023));
}

unsigned long long device_only_on_host(Pair p) {
    const unsigned a = unsigned(p.a), b = unsigned(p.b);
    unsigned reversed = 0, permuted = 0;
    for (int k = 0; k < 32; k++) reversed |= (a >> k & 1) << (31 - k);
    const unsigned long long both = (unsigned long long)b << 32 | a;
    for (int k = 0; k < 4; k++) permuted |= unsigned(both >> (0x5261 >> 4 * k & 7) * 8 & 255) << 8 * k;
    unsigned long long sum = 0;
    sum = hash(sum, __builtin_popcount(a) + 100 * (b ? __builtin_clz(b) : 32) + 10000 * __builtin_ffs(int(a)));
    sum = hash(sum, reversed);
    sum = hash(sum, permuted);
    sum = hash(sum, unsigned((unsigned long long)a * b >> 32));
    sum = hash(sum, unsigned((long long)int(a) * int(b) >> 32));
    sum = hash(sum, unsigned((((unsigned long long)b << 32 | a) << (a & 31)) >> 32));
    const long long difference = (long long)int(a) - int(b);
    sum = hash(sum, unsigned(difference < 0 ? -difference : difference) + 5);
    sum = hash(sum, bits(half_value((unsigned short)a)));
    sum = hash(sum, to_half(float(int(b) >> 12)));
    return sum;
}

// Corners of every type, and numbers in between.
std::vector<Pair> make_pairs() {
    const unsigned long long corners[] = {0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
                                          0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00800000,
                                          0x007fffff, 0x00000001, 0x7f7fffff, 0x4b000001, 0x3effffff, 0x7fffffffffffffff,
                                          0x8000000000000000, ~0ull, 0x3ff0000000000000, 0x7ff0000000000000,
                                          0x0010000000000000, 0x000fffffffffffff, 0x7fefffffffffffff, 0x41dfffffffe00000,
                                          0x3fe0000000000001, 0x80000000ull << 1};
    std::vector<Pair> pairs;
    for (unsigned long long a : corners)
        for (unsigned long long b : corners) pairs.push_back({a, b});
    unsigned long long state = 1;
    auto next = [&] { return state = hash(state, state >> 7); };
    for (int i = 0; i < 4000; i++) pairs.push_back({next(), next() >> (i % 50)});
    return pairs;
}

template <class Function>
void compare(const char *name, const std::vector<Pair> &pairs, void (*kernel)(const Pair *, unsigned long long *, unsigned),
             Function function) {
    const unsigned n = unsigned(pairs.size());
    Pair *in;
    unsigned long long *out;
    CUDA_CHECK(cudaMalloc(&in, n * sizeof(Pair)));
    CUDA_CHECK(cudaMalloc(&out, n * sizeof *out));
    CUDA_CHECK(cudaMemcpy(in, pairs.data(), n * sizeof(Pair), cudaMemcpyHostToDevice));
    kernel<<<(n + 127) / 128, 128>>>(in, out, n);
    CUDA_CHECK(cudaGetLastError());
    std::vector<unsigned long long> found(n);
    CUDA_CHECK(cudaMemcpy(found.data(), out, n * sizeof *out, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < n; i++)
        REQUIRE(found[i] == function(pairs[i]), "%s of %#llx and %#llx", name, pairs[i].a, pairs[i].b);
    CUDA_CHECK(cudaFree(in));
    CUDA_CHECK(cudaFree(out));
}

int main() {
    const std::vector<Pair> pairs = make_pairs();
    compare("integers", pairs, apply<integers>, integers);
    compare("singles", pairs, apply<singles>, singles);
    compare("doubles", pairs, apply<doubles>, doubles);
    compare("device only", pairs, device_only, device_only_on_host);
    succeed("%zu pairs of numbers, some 50 operations each", pairs.size());
}
