extern "C" __global__ void next(unsigned *values) { values[threadIdx.x] = values[threadIdx.x] * 3 + 1; }
