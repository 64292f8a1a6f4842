#include <stddef.h>

#include <utility>
#include <vector>

// Eight bits in a pass; each of 16 pieces counts, and later places, its own keys.
void radix_sort(int n, const unsigned *keys, unsigned *out) {
    constexpr int pieces = 16;
    std::vector<unsigned> from(keys, keys + n), to(static_cast<size_t>(n));
    for (int shift = 0; shift < 32; shift += 8) {
        unsigned places[pieces][256] = {};
        const auto bound = [=](int piece) { return size_t(n) * size_t(piece) / pieces; };
#pragma omp parallel for
        for (int piece = 0; piece < pieces; piece++)
            for (size_t i = bound(piece); i < bound(piece + 1); i++) places[piece][from[i] >> shift & 255]++;
        unsigned place = 0;
        for (int digit = 0; digit < 256; digit++)
            for (int piece = 0; piece < pieces; piece++) place += std::exchange(places[piece][digit], place);
#pragma omp parallel for
        for (int piece = 0; piece < pieces; piece++)
            for (size_t i = bound(piece); i < bound(piece + 1); i++) to[places[piece][from[i] >> shift & 255]++] = from[i];
        from.swap(to);
    }
#pragma omp parallel for simd
    for (int i = 0; i < n; i++) out[i] = from[size_t(i)];
}
