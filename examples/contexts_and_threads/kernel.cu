// Each context that loads this module has its own counter.
__device__ int counter = 100;

extern "C" __global__ void advance(int step) { counter += step; }
