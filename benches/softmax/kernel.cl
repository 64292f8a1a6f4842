// A row to a group: its largest element, the sum of the exponentials, and the quotients.
kernel void softmax(int columns, global const float *in, global float *out) {
    local float parts[256];
    size_t thread = get_local_id(0), size = get_local_size(0), start = get_group_id(0) * columns;
    float largest = -INFINITY, sum = 0;
    for (size_t i = thread; i < columns; i += size) largest = fmax(largest, in[start + i]);
    parts[thread] = largest;
    for (size_t distance = size / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread < distance) parts[thread] = fmax(parts[thread], parts[thread + distance]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    largest = parts[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t i = thread; i < columns; i += size) {
        float value = exp(in[start + i] - largest);
        out[start + i] = value;
        sum += value;
    }
    parts[thread] = sum;
    for (size_t distance = size / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread < distance) parts[thread] += parts[thread + distance];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = parts[0];
    for (size_t i = thread; i < columns; i += size) out[start + i] /= sum;
}
