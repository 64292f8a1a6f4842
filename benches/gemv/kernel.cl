// A matrix by rows times a vector, 32 items to a row.
kernel void gemv(int rows, int columns, global const float *a, global const float *x, global float *y) {
    local float sums[256];
    size_t thread = get_local_id(0), lane = thread % 32, row = get_global_id(0) / 32;
    float sum = 0;
    if (row < rows)
        for (size_t i = lane; i < columns; i += 32) sum += a[row * columns + i] * x[i];
    sums[thread] = sum;
    for (size_t distance = 16; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < distance) sums[thread] += sums[thread + distance];
    }
    if (lane == 0 && row < rows) y[row] = sums[thread];
}
