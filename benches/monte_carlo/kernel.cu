// How many of many points lie in a quarter of a circle: each thread draws its own, the sums of blocks are added up.
#define DRAWS 256

extern "C" __global__ void clear(unsigned *count) { *count = 0; }

extern "C" __global__ void inside(unsigned seed, unsigned *count) {
    __shared__ unsigned sums[256];
    int t = threadIdx.x;
    unsigned state = (blockIdx.x * blockDim.x + t + 1) * 2654435761u ^ seed, found = 0;
    for (int i = 0; i < DRAWS; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        unsigned x = state & 0x7fff, y = state >> 16 & 0x7fff;
        if (x * x + y * y < 1u << 30) found++;
    }
    sums[t] = found;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) sums[t] += sums[t + half];
    }
    if (t == 0) atomicAdd(count, sums[0]);
}
