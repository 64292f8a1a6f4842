#include <algorithm>

// 16 pieces by themselves, then pairs of them into one.
void sort(int n, const unsigned *in, unsigned *out) {
    constexpr int pieces = 16;
    const auto bound = [=](int piece) { return out + static_cast<long long>(n) * piece / pieces; };
#pragma omp parallel for schedule(dynamic)
    for (int piece = 0; piece < pieces; piece++) {
        std::copy(in + (bound(piece) - out), in + (bound(piece + 1) - out), bound(piece));
        std::sort(bound(piece), bound(piece + 1));
    }
    for (int width = 1; width < pieces; width *= 2)
#pragma omp parallel for schedule(dynamic)
        for (int piece = 0; piece < pieces; piece += 2 * width)
            std::inplace_merge(bound(piece), bound(piece + width), bound(piece + 2 * width));
}
