float cumulative_normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float series = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * exp(-0.5f * d * d) * series;
    return d > 0 ? 1.0f - tail : tail;
}

kernel void black_scholes(int n, float rate, float volatility, global const float *price, global const float *strike,
                          global const float *years, global float *call, global float *put) {
    size_t i = get_global_id(0);
    if (i >= n) return;
    float s = price[i], x = strike[i], t = years[i], root = sqrt(t);
    float d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = cumulative_normal(d1), n2 = cumulative_normal(d2), discount = exp(-rate * t);
    call[i] = s * n1 - x * discount * n2;
    put[i] = x * discount * (1.0f - n2) - s * (1.0f - n1);
}
