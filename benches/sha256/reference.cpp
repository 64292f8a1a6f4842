#include <stddef.h>

static constexpr unsigned k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))

static inline void compress(unsigned *state, unsigned *words) {
    unsigned a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
#pragma unroll
    for (int i = 0; i < 64; i++) {
        if (i >= 16) {
            unsigned x = words[(i + 1) & 15], y = words[(i + 14) & 15];
            unsigned s0 = ROTATE(x, 7) ^ ROTATE(x, 18) ^ x >> 3, s1 = ROTATE(y, 17) ^ ROTATE(y, 19) ^ y >> 10;
            words[i & 15] += s0 + words[(i + 9) & 15] + s1;
        }
        unsigned s1 = ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25), chosen = (e & f) ^ (~e & g);
        unsigned first = h + s1 + chosen + k[i] + words[i & 15];
        unsigned s0 = ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
        h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + s0 + majority;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void sha256(int count, const unsigned *messages, unsigned *hashes) {
#pragma omp parallel for
    for (int message = 0; message < count; message++) {
        unsigned state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
        unsigned words[16];
        for (int i = 0; i < 16; i++) words[i] = __builtin_bswap32(messages[16 * size_t(message) + i]);
        compress(state, words);
        for (int i = 0; i < 16; i++) words[i] = 0;
        words[0] = 0x80000000, words[15] = 512;
        compress(state, words);
        for (int i = 0; i < 8; i++) hashes[8 * size_t(message) + i] = __builtin_bswap32(state[i]);
    }
}
