#include "colbench/rank/cell_buffer.hpp"

namespace col::colbench {

CellBuffer::CellBuffer(std::size_t bytes, Device::Type device) : image_(bytes) {
  if (device == Device::Type::cpu || bytes == 0) return;
  gpu_ = std::make_unique<tools::GpuBuffer>(bytes, tools::GpuBuffer::Keep::no);
  push_all();
}

void CellBuffer::push(std::size_t offset, std::size_t bytes) const {
  if (gpu_) gpu_->write(offset, {image() + offset, bytes});
}

void CellBuffer::pull(std::size_t offset, std::size_t bytes) const {
  if (gpu_) gpu_->read(offset, {image() + offset, bytes});
}

TensorView CellBuffer::view(std::size_t offset, std::size_t count, DType dtype) const {
  if (gpu_) return {gpu_->data() + offset, count, dtype, gpu_->device()};
  return {image() + offset, count, dtype};
}

std::optional<Difference> CellBuffer::compare(std::size_t offset, const CellBuffer& expected, std::size_t count,
                                              std::size_t element_bytes) const {
  // The kernels compare up to 8 bytes at once; of anything else each byte.
  const bool has_kernel = element_bytes <= 8 && (element_bytes & (element_bytes - 1)) == 0;
  const std::size_t each = has_kernel ? element_bytes : 1;
  auto found = tools::compare_on_gpu(gpu_->data() + offset, expected.gpu_->data(), count * (element_bytes / each), each,
                                     gpu_->device().index);
  if (found && each != element_bytes) *found = {std::min(found->count, count), found->first / element_bytes};
  return found;
}

void CellBuffer::flush() const {
  if (!gpu_) flush_from_cache(image(), size());
}

}  // namespace col::colbench
