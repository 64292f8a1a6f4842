// The functions of CUDA's headers that plain kernels use, on the host.
#include <cmath>
#include <cstdint>
#include <cstring>
#define __global__
#define __device__
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline
#define __constant__
#define __restrict__
#define CUDART_INF_F ((float)INFINITY)
struct dim3 { unsigned x, y, z; dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {} };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
typedef unsigned u;
typedef int64_t i64;
typedef uint64_t u64;
#define VECTOR2(name, type, bytes) struct alignas(bytes) name { type x, y; }; static name make_##name(type x, type y) { return {x, y}; }
#define VECTOR4(name, type, bytes) struct alignas(bytes) name { type x, y, z, w; }; static name make_##name(type x, type y, type z, type w) { return {x, y, z, w}; }
VECTOR2(uint2, u, 8) VECTOR4(uint4, u, 16) VECTOR4(uchar4, unsigned char, 4) VECTOR2(uchar2, unsigned char, 2)
VECTOR2(ushort2, unsigned short, 4) VECTOR4(ushort4, unsigned short, 8) VECTOR2(ulonglong2, unsigned long long, 16)
template <class To, class From> static To as(From from) { To to; memcpy(&to, &from, sizeof to); return to; }
static int64_t __double_as_longlong(double x) { return as<int64_t>(x); }
static int __float_as_int(float x) { return as<int>(x); }
static float __int_as_float(int x) { return as<float>(x); }
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
static u umin(u a, u b) { return a < b ? a : b; }
static u umax(u a, u b) { return a > b ? a : b; }
static u __umulhi(u a, u b) { return (u64)a * b >> 32; }
static int __mulhi(int a, int b) { return (i64)a * b >> 32; }
static u __umul24(u a, u b) { return (a & 0xffffff) * (b & 0xffffff); }
static int __mul24(int a, int b) { return (u)((int)((u)a << 8) >> 8) * (u)((int)((u)b << 8) >> 8); }
static u __uhadd(u a, u b) { return ((u64)a + b) >> 1; }
static u __urhadd(u a, u b) { return ((u64)a + b + 1) >> 1; }
static int __hadd(int a, int b) { return ((i64)a + b) >> 1; }
static int __rhadd(int a, int b) { return ((i64)a + b + 1) >> 1; }
static u __byte_perm(u a, u b, u s) {
    const u64 all = (u64)b << 32 | a;
    u r = 0;
    for (int i = 0; i < 4; i++) r |= (u)(all >> (s >> 4 * i & 7) * 8 & 255) << 8 * i;
    return r;
}
static u __funnelshift_l(u lo, u hi, u s) { s &= 31; return ((u64)hi << 32 | lo) << s >> 32; }
static u __funnelshift_r(u lo, u hi, u s) { s &= 31; return ((u64)hi << 32 | lo) >> s; }
static u __funnelshift_lc(u lo, u hi, u s) { s = umin(s, 32); return s == 32 ? lo : __funnelshift_l(lo, hi, s); }
static u __funnelshift_rc(u lo, u hi, u s) { s = umin(s, 32); return s == 32 ? hi : __funnelshift_r(lo, hi, s); }
static int __popc(u x) { return __builtin_popcount(x); }
static int __clz(u x) { return x ? __builtin_clz(x) : 32; }
static int __ffs(u x) { return __builtin_ffs((int)x); }
static int __popcll(u64 x) { return __builtin_popcountll(x); }
static int __clzll(u64 x) { return x ? __builtin_clzll(x) : 64; }
static int __ffsll(u64 x) { return __builtin_ffsll((i64)x); }
static u64 __brevll(u64 x) { u64 r = 0; for (int i = 0; i < 64; i++) r |= (x >> i & 1) << (63 - i); return r; }
static u __brev(u x) { return __brevll(x) >> 32; }
static u __dp4a(u a, u b, u c) { for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255); return c; }
static int __dp4a(int a, int b, int c) {
    u r = c;
    for (int i = 0; i < 32; i += 8) r += (int8_t)((u)a >> i) * (int8_t)((u)b >> i);
    return r;
}
static u __usad(u a, u b, u c) { return (a > b ? a - b : b - a) + c; }
static u __sad(int a, int b, u c) { return (u)(a > b ? (i64)a - b : (i64)b - a) + c; }
static u64 __umul64hi(u64 a, u64 b) { return (unsigned __int128)a * b >> 64; }
static i64 __mul64hi(i64 a, i64 b) { return (__int128)a * b >> 64; }
// In each field of a word; S: as signed numbers.
#define FIELDS(name, bits, type, result) static u name(u a, u b) { u r = 0; for (int i = 0; i < 32; i += bits) { \
    const int x = (type)(a >> i), y = (type)(b >> i); r |= ((u)(result) & ((1u << bits) - 1)) << i; } return r; }
FIELDS(__vadd4, 8, uint8_t, x + y) FIELDS(__vsub4, 8, uint8_t, x - y) FIELDS(__vadd2, 16, uint16_t, x + y) FIELDS(__vsub2, 16, uint16_t, x - y)
FIELDS(__vmaxu4, 8, uint8_t, x > y ? x : y) FIELDS(__vminu4, 8, uint8_t, x < y ? x : y) FIELDS(__vmaxs4, 8, int8_t, x > y ? x : y)
FIELDS(__vmins4, 8, int8_t, x < y ? x : y) FIELDS(__vmaxu2, 16, uint16_t, x > y ? x : y) FIELDS(__vmins2, 16, int16_t, x < y ? x : y)
FIELDS(__vabsdiffu4, 8, uint8_t, x > y ? x - y : y - x) FIELDS(__vavgu4, 8, uint8_t, (x + y + 1) >> 1) FIELDS(__vhaddu4, 8, uint8_t, (x + y) >> 1)
FIELDS(__vcmpgtu4, 8, uint8_t, x > y ? -1 : 0) FIELDS(__vcmpeq4, 8, uint8_t, x == y ? -1 : 0) FIELDS(__vcmpges2, 16, int16_t, x >= y ? -1 : 0)
FIELDS(__vcmpltu2, 16, uint16_t, x < y ? -1 : 0) FIELDS(__vsetgtu4, 8, uint8_t, x > y) FIELDS(__vseteq2, 16, uint16_t, x == y)
FIELDS(__vaddus4, 8, uint8_t, min(x + y, 255)) FIELDS(__vsubus4, 8, uint8_t, max(x - y, 0)) FIELDS(__vaddss2, 16, int16_t, max(min(x + y, 32767), -32768))
static u __vsadu4(u a, u b) { const u d = __vabsdiffu4(a, b); return __dp4a(d, 0x01010101u, 0u); }
static float __uint2float_rn(u x) { return (float)x; }
static float __int2float_rn(int x) { return (float)x; }
template <class T> static T clamp_to(double x, double low, double high, T most) {
    return x != x ? (T)0 : x <= low ? (T)low : x >= high ? most : (T)x;
}
static u __float2uint(double x) { return clamp_to<u>(x, 0, 4294967296.0, 0xffffffffu); }
static int __float2int(double x) { return x != x ? 0 : clamp_to<int>(x, -2147483648.0, 2147483648.0, 0x7fffffff); }
static u __float2uint_rz(float x) { return __float2uint(trunc(x)); }
static u __float2uint_ru(float x) { return __float2uint(ceil(x)); }
static u __float2uint_rn(float x) { return __float2uint(rint(x)); }
static int __float2int_rn(float x) { return __float2int(rint(x)); }
static int __float2int_rd(float x) { return __float2int(floor(x)); }
template <class T, class V> static void atomicAdd(T* p, V v) { *p += v; }
template <class T, class V> static void atomicSub(T* p, V v) { *p -= v; }
template <class T, class V> static void atomicMin(T* p, V v) { if (v < *p) *p = v; }
template <class T, class V> static void atomicMax(T* p, V v) { if (v > *p) *p = v; }
template <class T, class V> static void atomicAnd(T* p, V v) { *p &= v; }
template <class T, class V> static void atomicOr(T* p, V v) { *p |= v; }
template <class T, class V> static void atomicXor(T* p, V v) { *p ^= v; }
static void cas_add(unsigned* p, unsigned v) { *p += v; }
static void cas_max(unsigned long long* p, unsigned long long v) { if (v > *p) *p = v; }
