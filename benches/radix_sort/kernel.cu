// Four bits in a pass: how often each digit is in each block of 1024 keys, where each begins, and the keys to their places.
#define KEYS 1024

extern "C" __global__ void radix_count(int shift, const unsigned *keys, int *counts) {
    __shared__ int own[16];
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < KEYS; i += blockDim.x) atomicAdd(&own[keys[blockIdx.x * KEYS + i] >> shift & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = own[threadIdx.x];
}

// The exclusive sum of all counts, by one block.
extern "C" __global__ void radix_scan(int n, int *counts) {
    __shared__ int totals[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, before = 0;
    for (int start = 0; start < n; start += 1024) {
        int i = start + threadIdx.x, own = i < n ? counts[i] : 0, value = own;
        for (int distance = 1; distance < 32; distance *= 2) {
            int left = __shfl_up_sync(0xffffffffu, value, distance);
            if (lane >= distance) value += left;
        }
        if (lane == 31) totals[warp] = value;
        __syncthreads();
        if (warp == 0) {
            int total = totals[lane];
            for (int distance = 1; distance < 32; distance *= 2) {
                int left = __shfl_up_sync(0xffffffffu, total, distance);
                if (lane >= distance) total += left;
            }
            totals[lane] = total;
        }
        __syncthreads();
        if (warp > 0) value += totals[warp - 1];
        if (i < n) counts[i] = before + value - own;
        before += totals[31];
        __syncthreads();
    }
}

extern "C" __global__ void radix_scatter(int shift, const unsigned *keys, const int *begins, unsigned *out) {
    __shared__ int next[16], before[8][16];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x < 16) next[threadIdx.x] = begins[threadIdx.x * gridDim.x + blockIdx.x];
    for (int start = 0; start < KEYS; start += 256) {
        unsigned key = keys[blockIdx.x * KEYS + start + threadIdx.x], digit = key >> shift & 15;
        // The threads of the warp with the same digit, bit by bit.
        unsigned same = 0xffffffffu;
        for (int bit = 0; bit < 4; bit++) {
            unsigned set = __ballot_sync(0xffffffffu, digit >> bit & 1);
            same &= digit >> bit & 1 ? set : ~set;
        }
        if (lane < 16) before[warp][lane] = 0;
        __syncwarp();
        int rank = __popc(same & ((1u << lane) - 1));
        if (rank == 0) before[warp][digit] = __popc(same);
        __syncthreads();
        if (threadIdx.x < 16) {
            int place = next[threadIdx.x];
            for (int w = 0; w < 8; w++) {
                int count = before[w][threadIdx.x];
                before[w][threadIdx.x] = place;
                place += count;
            }
            next[threadIdx.x] = place;
        }
        __syncthreads();
        out[before[warp][digit] + rank] = key;
        __syncthreads();
    }
}
