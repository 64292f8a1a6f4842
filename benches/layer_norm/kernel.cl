// A row to a group: its mean, its variance, and the row made even, times gamma plus beta.
float group_sum(float value, local float *parts) {
    size_t thread = get_local_id(0);
    parts[thread] = value;
    for (size_t distance = get_local_size(0) / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread < distance) parts[thread] += parts[thread + distance];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    value = parts[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return value;
}

kernel void layer_norm(int columns, float epsilon, global const float *gamma, global const float *beta,
                       global const float *in, global float *out) {
    local float parts[256];
    size_t thread = get_local_id(0), size = get_local_size(0), start = get_group_id(0) * columns;
    float sum = 0, squares = 0;
    for (size_t i = thread; i < columns; i += size) sum += in[start + i];
    float mean = group_sum(sum, parts) / columns;
    for (size_t i = thread; i < columns; i += size) squares += (in[start + i] - mean) * (in[start + i] - mean);
    float scale = rsqrt(group_sum(squares, parts) / columns + epsilon);
    for (size_t i = thread; i < columns; i += size)
        out[start + i] = (in[start + i] - mean) * scale * gamma[i] + beta[i];
}
