// Accelerations of all bodies by all bodies, 256 of them at a time in local memory.
kernel void nbody(int n, float softening, global const float4 *bodies, global float4 *accelerations) {
    local float4 tile[256];
    size_t i = get_global_id(0), thread = get_local_id(0);
    float4 own = bodies[i];
    float ax = 0, ay = 0, az = 0;
    for (size_t start = 0; start < n; start += 256) {
        tile[thread] = bodies[start + thread];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < 256; j++) {
            float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
            float inverse = rsqrt(dx * dx + dy * dy + dz * dz + softening);
            float strength = tile[j].w * inverse * inverse * inverse;
            ax += dx * strength;
            ay += dy * strength;
            az += dz * strength;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    accelerations[i] = (float4)(ax, ay, az, 0);
}
