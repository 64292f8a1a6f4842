// The sphere that a ray through each pixel meets first, lit from one side.
extern "C" __global__ void spheres(int width, int height, int count, const float4 *spheres, float *out) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float x = (px + 0.5f) / width - 0.5f, y = (py + 0.5f) / height - 0.5f, z = 1;
    float scale = rsqrtf(x * x + y * y + z * z);
    x *= scale, y *= scale, z *= scale;
    float nearest = 1e30f;
    int met = -1;
    for (int i = 0; i < count; i++) {
        float4 s = spheres[i];
        float along = s.x * x + s.y * y + s.z * z;
        float inside = along * along - (s.x * s.x + s.y * s.y + s.z * s.z) + s.w * s.w;
        if (inside < 0) continue;
        float distance = along - sqrtf(inside);
        if (distance > 0 && distance < nearest) {
            nearest = distance;
            met = i;
        }
    }
    float light = 0;
    if (met >= 0) {
        float4 s = spheres[met];
        light = 0.1f + fmaxf(0.0f, (nearest * x - s.x) * -0.5f + (nearest * y - s.y) * -0.6f + (nearest * z - s.z) * -0.6f) / s.w;
    }
    out[py * width + px] = light;
}
