#include <math.h>
#include <stddef.h>

void spheres(int width, int height, int count, const float *spheres, float *out) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int py = 0; py < height; py++)
#pragma omp simd
        for (int px = 0; px < width; px++) {
            float x = (px + 0.5f) / width - 0.5f, y = (py + 0.5f) / height - 0.5f, z = 1;
            const float scale = 1 / sqrtf(x * x + y * y + z * z);
            x *= scale, y *= scale, z *= scale;
            float nearest = 1e30f;
            int met = -1;
            for (int i = 0; i < count; i++) {
                const float *s = spheres + 4 * i;
                const float along = s[0] * x + s[1] * y + s[2] * z;
                const float inside = along * along - (s[0] * s[0] + s[1] * s[1] + s[2] * s[2]) + s[3] * s[3];
                const float distance = along - sqrtf(inside < 0 ? 0 : inside);
                const bool nearer = inside >= 0 && distance > 0 && distance < nearest;
                nearest = nearer ? distance : nearest;
                met = nearer ? i : met;
            }
            const float *s = spheres + 4 * (met < 0 ? 0 : met);
            const float lit = (nearest * x - s[0]) * -0.5f + (nearest * y - s[1]) * -0.6f + (nearest * z - s[2]) * -0.6f;
            out[size_t(py) * width + px] = met < 0 ? 0 : 0.1f + (lit > 0 ? lit : 0) / s[3];
        }
}
