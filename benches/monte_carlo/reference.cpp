static constexpr int draws = 256;

void monte_carlo(int threads, unsigned seed, unsigned *count) {
    unsigned all = 0;
#pragma omp parallel for simd reduction(+ : all)
    for (int i = 0; i < threads; i++) {
        unsigned state = (unsigned(i) + 1) * 2654435761u ^ seed, found = 0;
        for (int draw = 0; draw < draws; draw++) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            const unsigned x = state & 0x7fff, y = state >> 16 & 0x7fff;
            found += x * x + y * y < 1u << 30;
        }
        all += found;
    }
    *count = all;
}
