// Memory streams with 16-byte accesses: a threadgroup owns UNROLL * threads vectors, and loads come
// before stores (see stream.cu).
template <int UNROLL>
void nnbt_copy(const device float* a, device float* out, uint group, uint thread_index,
               uint threads) {
  const device float4* source = reinterpret_cast<const device float4*>(a);
  device float4* target = reinterpret_cast<device float4*>(out);
  const uint first = group * UNROLL * threads + thread_index;
  float4 v[UNROLL];
  for (int u = 0; u < UNROLL; ++u) v[u] = source[first + u * threads];
  for (int u = 0; u < UNROLL; ++u) target[first + u * threads] = v[u];
}

template <int UNROLL>
void nnbt_triad(const device float* a, const device float* b, device float* out, float scalar,
                uint group, uint thread_index, uint threads) {
  const device float4* left = reinterpret_cast<const device float4*>(a);
  const device float4* right = reinterpret_cast<const device float4*>(b);
  device float4* target = reinterpret_cast<device float4*>(out);
  const uint first = group * UNROLL * threads + thread_index;
  float4 v[UNROLL], w[UNROLL];
  for (int u = 0; u < UNROLL; ++u) {
    v[u] = left[first + u * threads];
    w[u] = right[first + u * threads];
  }
  for (int u = 0; u < UNROLL; ++u) {
    target[first + u * threads] = metal::fma(float4(scalar), w[u], v[u]);
  }
}
