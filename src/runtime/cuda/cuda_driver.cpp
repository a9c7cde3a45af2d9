#include "runtime/cuda/cuda_driver.h"

#include "isa/gpu/geometry.h"
#include "isa/gpu/object.h"
#include "runtime/cuda/driver_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace plow {
namespace {

using namespace cuda;

// Pinned memory through which files go to the device: two pieces, so that one is filled while the other
// travels.
constexpr uint64_t kStagingBytes = uint64_t{16} << 20;

DevicePointer address(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

class CudaDriver final : public GpuDriver {
 public:
  CudaDriver(const Api& api, int ordinal) : api_(api), ordinal_(ordinal) {}

  ~CudaDriver() override {
    for (const DevicePointer pointer : device_memory_) (void)api_.free(pointer);
    for (void* pointer : host_memory_) (void)api_.free_host(pointer);
    if (module_ != nullptr) (void)api_.unload_module(module_);
    if (copies_ != nullptr) (void)api_.destroy_stream(copies_);
    if (kernel_ != nullptr) (void)api_.destroy_stream(kernel_);
    if (context_ != nullptr) (void)api_.release_context(ordinal_);
  }

  Status open(const DeviceFacts& device, Isa isa) {
    facts_.name = device.name;
    facts_.isa = isa;
    facts_.n_workers = static_cast<uint32_t>(device.multiprocessors);
    facts_.memory_total = device.memory_total;
    const auto object = gpu::interpreter_object(isa);
    if (object.empty()) {
      return device_error(fmt::format(
          "This program was built without the interpreter for {} ({}). Build it where nvcc is installed.",
          device.name, isa_name(isa)));
    }
    PLOW_TRY_STATUS(gpu::check_object(object, isa));
    PLOW_TRY_STATUS(said(api_.retain_context(&context_, ordinal_), "cuDevicePrimaryCtxRetain"));
    PLOW_TRY_STATUS(said(api_.set_context(context_), "cuCtxSetCurrent"));
    PLOW_TRY_STATUS(said(api_.create_stream(&copies_, kStreamNonBlocking), "cuStreamCreate"));
    PLOW_TRY_STATUS(said(api_.create_stream(&kernel_, kStreamNonBlocking), "cuStreamCreate"));
    PLOW_TRY_STATUS(said(api_.load_module(&module_, object.data()), "cuModuleLoadData"));
    PLOW_TRY_STATUS(
        said(api_.find_function(&resident_, module_, gpu::kResidentKernel), "cuModuleGetFunction"));
    shape_ = gpu::launch_shape(isa);
    PLOW_TRY_STATUS(said(
        api_.set_function_attribute(resident_, kMaxDynamicSharedBytes, static_cast<int>(shape_.shared_bytes)),
        "cuFuncSetAttribute"));
    for (auto& piece : staging_) {
      PLOW_TRY(piece, allocate_host(kStagingBytes, "the copies' staging"));
    }
    size_t free = 0, total = 0;
    PLOW_TRY_STATUS(said(api_.memory_info(&free, &total), "cuMemGetInfo"));
    facts_.memory_free = free;
    return {};
  }

  const GpuFacts& facts() const override { return facts_; }

  Result<unsigned char*> allocate(uint64_t bytes, const char* what) override {
    DevicePointer pointer = 0;
    PLOW_TRY_STATUS(use());
    const Code code = api_.allocate(&pointer, bytes);
    if (code == kOutOfMemory) {
      size_t free = 0, total = 0;
      (void)api_.memory_info(&free, &total);
      return does_not_fit(fmt::format(
          "{} has no memory for {} ({} bytes; {} of {} are free). Ask for fewer slots or a shorter context.",
          facts_.name, what, bytes, free, total));
    }
    PLOW_TRY_STATUS(said(code, "cuMemAlloc"));
    device_memory_.push_back(pointer);
    auto* at = reinterpret_cast<unsigned char*>(pointer);
    PLOW_TRY_STATUS(zero(at, bytes));
    return at;
  }

  Result<unsigned char*> allocate_host(uint64_t bytes, const char* what) override {
    void* pointer = nullptr;
    PLOW_TRY_STATUS(use());
    if (const Code code = api_.allocate_host(&pointer, bytes, kHostPortableMapped); code != kSuccess)
      return does_not_fit(
          fmt::format("No pinned memory for {} ({} bytes): {}.", what, bytes, code_name(api_, code)));
    host_memory_.push_back(pointer);
    std::fill_n(static_cast<unsigned char*>(pointer), bytes, static_cast<unsigned char>(0));
    return static_cast<unsigned char*>(pointer);
  }

  // Through two staging pieces: while one travels the next is read (from disk, when the source is a mapped
  // file).
  Status upload(unsigned char* to, const void* from, uint64_t bytes) override {
    PLOW_TRY_STATUS(use());
    const auto* source = static_cast<const unsigned char*>(from);
    for (uint64_t done = 0, piece = 0; done < bytes; ++piece) {
      const uint64_t n = std::min(kStagingBytes, bytes - done);
      unsigned char* staging = staging_[piece % 2];
      // The copy before the last from this staging has ended: at most one is on its way when this piece is
      // filled.
      std::copy_n(source + done, n, staging);
      PLOW_TRY_STATUS(said(api_.synchronize(copies_), "cuStreamSynchronize"));
      PLOW_TRY_STATUS(
          said(api_.copy_to_device(address(to + done), staging, n, copies_), "cuMemcpyHtoDAsync"));
      done += n;
    }
    return said(api_.synchronize(copies_), "cuStreamSynchronize");
  }

  Status download(void* to, const unsigned char* from, uint64_t bytes) override {
    PLOW_TRY_STATUS(use());
    auto* target = static_cast<unsigned char*>(to);
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t n = std::min(kStagingBytes, bytes - done);
      PLOW_TRY_STATUS(
          said(api_.copy_to_host(staging_[0], address(from + done), n, copies_), "cuMemcpyDtoHAsync"));
      PLOW_TRY_STATUS(said(api_.synchronize(copies_), "cuStreamSynchronize"));
      std::copy_n(staging_[0], n, target + done);
      done += n;
    }
    return {};
  }

  Status zero(unsigned char* to, uint64_t bytes) override {
    PLOW_TRY_STATUS(use());
    if (bytes > 0) PLOW_TRY_STATUS(said(api_.fill_bytes(address(to), 0, bytes, copies_), "cuMemsetD8Async"));
    return said(api_.synchronize(copies_), "cuStreamSynchronize");
  }

  Status fill_random(unsigned char* to, uint64_t n, DType dtype, float bound, uint64_t seed) override {
    Function fill = nullptr;
    PLOW_TRY_STATUS(use());
    PLOW_TRY_STATUS(said(api_.find_function(&fill, module_, gpu::kFillKernel), "cuModuleGetFunction"));
    DevicePointer pointer = address(to);
    unsigned long long count = n, key = seed;
    uint32_t element = dtype_bytes(dtype);
    void* parameters[] = {&pointer, &count, &element, &bound, &key};
    PLOW_TRY_STATUS(
        said(api_.launch(fill, 8 * facts_.n_workers, 1, 1, 256, 1, 1, 0, kernel_, parameters, nullptr),
             "cuLaunchKernel"));
    return said(api_.synchronize(kernel_), "plow_fill_random");
  }

  Result<double> read_bandwidth(const unsigned char* from, uint64_t bytes) override {
    Function read = nullptr;
    PLOW_TRY_STATUS(use());
    PLOW_TRY_STATUS(said(api_.find_function(&read, module_, gpu::kReadKernel), "cuModuleGetFunction"));
    PLOW_TRY(unsigned char* sum, allocate(sizeof(uint32_t), "a sum"));
    DevicePointer pointer = address(from), sum_at = address(sum);
    unsigned long long units = bytes / 16;
    void* parameters[] = {&pointer, &units, &sum_at};
    return median_read_rate(bytes, [&]() -> Status {
      PLOW_TRY_STATUS(
          said(api_.launch(read, 2 * facts_.n_workers, 1, 1, 1024, 1, 1, 0, kernel_, parameters, nullptr),
               "cuLaunchKernel"));
      return said(api_.synchronize(kernel_), "plow_read");
    });
  }

  Status launch(const Resident* resident) override {
    PLOW_TRY_STATUS(use());
    DevicePointer pointer = address(resident);
    void* parameters[] = {&pointer};
    return said(api_.launch_cooperative(resident_, facts_.n_workers, 1, 1, shape_.threads, 1, 1,
                                        shape_.shared_bytes, kernel_, parameters),
                "cuLaunchCooperativeKernel");
  }

  Result<bool> running() override {
    PLOW_TRY_STATUS(use());
    const Code code = api_.query(kernel_);
    if (code == kNotReady) return true;
    PLOW_TRY_STATUS(said(code, "the interpreter kernel"));
    return false;
  }

 private:
  // The context belongs to a thread, and the engine's caller may change.
  Status use() { return said(api_.set_context(context_), "cuCtxSetCurrent"); }

  Status said(Code code, const char* what) const {
    if (code == kSuccess) return {};
    return device_error(
        fmt::format("{}: {} says {}. Load the bundle again; if it stays so, run plowrt doctor.", facts_.name,
                    what, code_name(api_, code)));
  }

  const Api& api_;
  int ordinal_;
  GpuFacts facts_{};
  Context context_ = nullptr;
  Stream copies_ = nullptr, kernel_ = nullptr;
  Module module_ = nullptr;
  Function resident_ = nullptr;
  gpu::LaunchShape shape_;
  unsigned char* staging_[2] = {};
  std::vector<DevicePointer> device_memory_;
  std::vector<void*> host_memory_;
};

}  // namespace

std::optional<Isa> isa_of_compute_capability(int major, int minor) {
  if (major == 9 && minor == 0) return Isa::kSm90a;
  if (major == 12 && minor == 0) return Isa::kSm120;
  return std::nullopt;
}

Result<std::unique_ptr<GpuDriver>> open_cuda(uint32_t ordinal) {
  PLOW_TRY(const Api* api, load_api());
  PLOW_TRY(const std::vector<DeviceFacts> devices, list_devices(*api));
  if (ordinal >= devices.size()) {
    return device_error(
        fmt::format("There is no device cuda:{}; this machine has {}.", ordinal, devices.size()));
  }
  const DeviceFacts& device = devices[ordinal];
  const auto isa = isa_of_compute_capability(device.major, device.minor);
  if (!isa) {
    return device_error(
        fmt::format("cuda:{} is a {} of compute capability {}.{}, which plow has no interpreter for.",
                    ordinal, device.name, device.major, device.minor));
  }
  auto driver = std::make_unique<CudaDriver>(*api, static_cast<int>(ordinal));
  PLOW_TRY_STATUS(driver->open(device, *isa));
  return std::unique_ptr<GpuDriver>(std::move(driver));
}

}  // namespace plow
