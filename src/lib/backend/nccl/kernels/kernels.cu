// The kernels by name: col_fold_OPERATOR_DTYPE, col_compare_BYTES. Names of C, so that the driver finds them, need the
// preprocessor.
#include "backend/nccl/kernels/compare.hpp"
#include "backend/nccl/kernels/fold.hpp"

namespace col::nccl_backend {
namespace {

// The part of the calling thread in the loop.
template <class Loop, class Arguments>
__device__ void run(const Arguments& arguments) {
  const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  Loop::run(arguments, static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x, threads);
}

}  // namespace

#define COL_KERNEL(op, Operator, dtype, Element)                                 \
  extern "C" __global__ void __launch_bounds__(kThreadsOfBlock)                  \
      col_fold_##op##_##dtype(const __grid_constant__ FoldArguments arguments) { \
    run<Fold<Operator, Element>>(arguments);                                     \
  }
#define COL_ARITHMETIC_KERNELS(dtype, Element) \
  COL_KERNEL(sum, Sum, dtype, Element)         \
  COL_KERNEL(product, Product, dtype, Element) \
  COL_KERNEL(min, Min, dtype, Element)         \
  COL_KERNEL(max, Max, dtype, Element)
#define COL_INTEGER_KERNELS(dtype, Element) \
  COL_ARITHMETIC_KERNELS(dtype, Element)    \
  COL_KERNEL(band, BitAnd, dtype, Element)  \
  COL_KERNEL(bor, BitOr, dtype, Element)    \
  COL_KERNEL(bxor, BitXor, dtype, Element)

COL_INTEGER_KERNELS(int8, PlainElement<std::int8_t>)
COL_INTEGER_KERNELS(uint8, PlainElement<std::uint8_t>)
COL_INTEGER_KERNELS(int32, PlainElement<std::int32_t>)
COL_INTEGER_KERNELS(uint32, PlainElement<std::uint32_t>)
COL_INTEGER_KERNELS(int64, PlainElement<std::int64_t>)
COL_INTEGER_KERNELS(uint64, PlainElement<std::uint64_t>)
COL_ARITHMETIC_KERNELS(float16, Float16Element)
COL_ARITHMETIC_KERNELS(bfloat16, Bfloat16Element)
COL_ARITHMETIC_KERNELS(float8_e4m3fn, Float8E4m3fnElement)
COL_ARITHMETIC_KERNELS(float8_e5m2, Float8E5m2Element)
COL_ARITHMETIC_KERNELS(float32, PlainElement<float>)
COL_ARITHMETIC_KERNELS(float64, PlainElement<double>)

#define COL_COMPARE_KERNEL(bytes)                                               \
  extern "C" __global__ void __launch_bounds__(kThreadsOfBlock)                 \
      col_compare_##bytes(const __grid_constant__ CompareArguments arguments) { \
    run<Compare<bytes>>(arguments);                                             \
  }

COL_COMPARE_KERNEL(1)
COL_COMPARE_KERNEL(2)
COL_COMPARE_KERNEL(4)
COL_COMPARE_KERNEL(8)

}  // namespace col::nccl_backend
