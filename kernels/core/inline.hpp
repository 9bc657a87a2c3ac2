// SPDX-License-Identifier: Apache-2.0
// COLLAR_INLINE marks the arithmetic that host and device share. It is always inlined, for two
// reasons: kernels call it once an element, and a copy compiled for AVX-512 must never be the one
// the linker picks for everybody.
#pragma once

#if defined(__CUDACC__)
#define COLLAR_INLINE __host__ __device__ __forceinline__
#else
#define COLLAR_INLINE [[gnu::always_inline]] inline
#endif
