struct Pair {
    short first;
    double second;
};

// Parameters of mixed sizes: each starts at a multiple of its own alignment, so there are gaps between them.
extern "C" __global__ void unpack(char c, double d, short s, float4 v, Pair pair, double *out) {
    const double all[] = {double(c), d, double(s), v.x, v.y, v.z, v.w, double(pair.first), pair.second};
    out[threadIdx.x] = all[threadIdx.x];
}
