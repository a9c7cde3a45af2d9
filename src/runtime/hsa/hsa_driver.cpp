#include "runtime/hsa/hsa_driver.h"

#include "isa/gpu/geometry.h"
#include "isa/gpu/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <vector>

namespace plow {
namespace {

using namespace hsa;

// Pinned memory through which files go to the device.
constexpr uint64_t kStagingBytes = uint64_t{16} << 20;
// One kernel runs at a time.
constexpr uint32_t kQueuePackets = 64;
constexpr uint32_t kKernargBytes = 256;  // at least what any kernel of the object takes
// Threads of the kernels that measure (isa/amd/interpreter.cc).
constexpr uint32_t kFillThreads = 256, kReadThreads = 1024;

// Between two looks at the queue's health; of a clock of 100 MHz or of 1 GHz.
constexpr uint64_t kWaitTicks = 100'000'000;

struct Kernel {
  uint64_t object = 0;
  uint32_t group_bytes = 0, private_bytes = 0;  // LDS of a workgroup, stack of a work item
};

// Of pools: what to look for, and what was found.
struct PoolSearch {
  const Api* api;
  uint32_t wanted, unwanted;  // flags
  std::optional<Pool> found;
  size_t bytes = 0;
};

Code consider_pool(Pool pool, void* data) {
  auto& search = *static_cast<PoolSearch*>(data);
  uint32_t segment = 0, flags = 0;
  bool may_allocate = false;
  size_t bytes = 0;
  const Api& api = *search.api;
  for (const auto& [what, to] : {std::pair<uint32_t, void*>{kPoolSegment, &segment},
                                 {kPoolFlags, &flags},
                                 {kPoolSize, &bytes},
                                 {kPoolMayAllocate, &may_allocate}}) {
    if (what == kPoolFlags && segment != kSegmentGlobal) return kSuccess;  // others have no flags
    if (const Code code = api.pool_info(pool, what, to); code != kSuccess) return code;
  }
  const bool fits = (flags & search.wanted) == search.wanted && (flags & search.unwanted) == 0;
  if (!fits || !may_allocate || search.found) return kSuccess;
  search.found = pool;
  search.bytes = bytes;
  return kSuccess;
}

class HsaDriver final : public GpuDriver {
 public:
  explicit HsaDriver(const Api& api) : api_(api) {}

  ~HsaDriver() override {
    if (queue_ != nullptr) (void)api_.destroy_queue(queue_);
    for (void* pointer : memory_) (void)api_.free(pointer);
    if (done_.handle != 0) (void)api_.destroy_signal(done_);
    if (executable_.handle != 0) (void)api_.destroy_executable(executable_);
    if (reader_.handle != 0) (void)api_.destroy_reader(reader_);
  }

  Status open(const hsa::DeviceFacts& device, Isa isa, std::span<const std::byte> object) {
    agent_ = device.agent;
    facts_.name = device.name;
    facts_.isa = isa;
    facts_.n_workers = device.compute_units;
    shape_ = gpu::launch_shape(isa);
    PLOW_TRY(const Agent host, host_agent(api_));
    PLOW_TRY_STATUS(find_pool(agent_, kFlagCoarseGrained, 0, device_pool_, "memory of its own"));
    PLOW_TRY_STATUS(find_pool(host, kFlagFineGrained, kFlagKernarg, host_pool_, "memory of the host"));
    PLOW_TRY_STATUS(find_pool(host, kFlagKernarg, 0, kernarg_pool_, "memory for parameters"));
    // The runtime of 2022 does not say how much of it is free.
    facts_.memory_total = facts_.memory_free = device_pool_.bytes;
    PLOW_TRY_STATUS(load(object));
    PLOW_TRY_STATUS(said(api_.create_signal(0, 0, nullptr, &done_), "hsa_signal_create"));
    const uint32_t unknown = std::numeric_limits<uint32_t>::max();  // sizes: from each packet
    PLOW_TRY_STATUS(said(
        api_.create_queue(agent_, kQueuePackets, kQueueSingle, &on_error, this, unknown, unknown, &queue_),
        "hsa_queue_create"));
    PLOW_TRY(kernarg_, take(kernarg_pool_, kKernargBytes, "parameters"));
    PLOW_TRY(staging_, take(host_pool_, kStagingBytes, "the copies' staging"));
    return {};
  }

  const GpuFacts& facts() const override { return facts_; }

  Result<unsigned char*> allocate(uint64_t bytes, const char* what) override {
    PLOW_TRY(unsigned char* at, take(device_pool_, bytes, what));
    PLOW_TRY_STATUS(zero(at, bytes));
    return at;
  }

  Result<unsigned char*> allocate_host(uint64_t bytes, const char* what) override {
    PLOW_TRY(unsigned char* at, take(host_pool_, bytes, what));
    std::fill_n(at, bytes, static_cast<unsigned char>(0));
    return at;
  }

  // Copies between host and device go by an engine of their own, which a resident kernel leaves free.
  Status upload(unsigned char* to, const void* from, uint64_t bytes) override {
    const auto* source = static_cast<const unsigned char*>(from);
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t n = std::min(kStagingBytes, bytes - done);
      std::copy_n(source + done, n, staging_);
      PLOW_TRY_STATUS(said(api_.copy(to + done, staging_, n), "hsa_memory_copy"));
      done += n;
    }
    return {};
  }

  Status download(void* to, const unsigned char* from, uint64_t bytes) override {
    auto* target = static_cast<unsigned char*>(to);
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t n = std::min(kStagingBytes, bytes - done);
      PLOW_TRY_STATUS(said(api_.copy(staging_, from + done, n), "hsa_memory_copy"));
      std::copy_n(staging_, n, target + done);
      done += n;
    }
    return {};
  }

  // hsa_amd_memory_fill counts words; what is left over goes by a copy.
  Status zero(unsigned char* to, uint64_t bytes) override {
    const uint64_t words = bytes / sizeof(uint32_t), rest = bytes % sizeof(uint32_t);
    if (words > 0) PLOW_TRY_STATUS(said(api_.fill(to, 0, words), "hsa_amd_memory_fill"));
    const std::array<unsigned char, sizeof(uint32_t)> zeros{};
    return upload(to + bytes - rest, zeros.data(), rest);
  }

  Status fill_random(unsigned char* to, uint64_t n, DType dtype, float bound, uint64_t seed) override {
    const uint64_t groups = uint64_t{8} * facts_.n_workers;
    struct {
      unsigned char* to;
      uint64_t n;
      uint32_t element;
      float bound;
      uint64_t seed, groups;
    } const parameters{to, n, dtype_bytes(dtype), bound, seed, groups};
    dispatch(fill_, static_cast<uint32_t>(groups), kFillThreads, 0, &parameters, sizeof(parameters));
    return finish("plow_fill_random");
  }

  Result<double> read_bandwidth(const unsigned char* from, uint64_t bytes) override {
    PLOW_TRY(unsigned char* sum, allocate(sizeof(uint32_t), "a sum"));
    const uint64_t groups = uint64_t{2} * facts_.n_workers;
    struct {
      const unsigned char* from;
      uint64_t units;
      unsigned char* sum;
      uint64_t groups;
    } const parameters{from, bytes / 16, sum, groups};
    return median_read_rate(bytes, [&] {
      dispatch(read_, static_cast<uint32_t>(groups), kReadThreads, 0, &parameters, sizeof(parameters));
      return finish("plow_read");
    });
  }

  Status launch(const Resident* resident) override {
    dispatch(resident_, facts_.n_workers, shape_.threads, shape_.shared_bytes, &resident, sizeof(resident));
    return {};
  }

  Result<bool> running() override {
    if (const Code code = error_.load(); code != kSuccess)
      return said(code, "the interpreter kernel").error();
    return api_.load_signal(done_) != 0;
  }

 private:
  struct FoundPool {
    Pool pool{};
    uint64_t bytes = 0;
  };

  // The runtime's thread calls it when the queue has died.
  static void on_error(Code code, Queue*, void* driver) { static_cast<HsaDriver*>(driver)->error_ = code; }

  Status find_pool(Agent agent, uint32_t wanted, uint32_t unwanted, FoundPool& to, const char* what) {
    PoolSearch search{&api_, wanted, unwanted, std::nullopt};
    PLOW_TRY_STATUS(
        said(api_.iterate_pools(agent, &consider_pool, &search), "hsa_amd_agent_iterate_memory_pools"));
    if (!search.found)
      return device_error(fmt::format("{}: the HSA runtime offers no {}.", facts_.name, what));
    to = {*search.found, search.bytes};
    return {};
  }

  // Memory of a pool that the GPU may use, freed with the driver.
  Result<unsigned char*> take(const FoundPool& from, uint64_t bytes, const char* what) {
    void* pointer = nullptr;
    const Code code = api_.allocate(from.pool, bytes, 0, &pointer);
    if (code == kOutOfResources) {
      return does_not_fit(
          fmt::format("{} has no memory for {} ({} bytes of {}). Ask for fewer slots or a shorter context.",
                      facts_.name, what, bytes, from.bytes));
    }
    PLOW_TRY_STATUS(said(code, "hsa_amd_memory_pool_allocate"));
    memory_.push_back(pointer);
    PLOW_TRY_STATUS(said(api_.allow_access(1, &agent_, nullptr, pointer), "hsa_amd_agents_allow_access"));
    return static_cast<unsigned char*>(pointer);
  }

  Status load(std::span<const std::byte> object) {
    PLOW_TRY_STATUS(said(api_.create_reader(object.data(), object.size(), &reader_),
                         "hsa_code_object_reader_create_from_memory"));
    PLOW_TRY_STATUS(said(api_.create_executable(kProfileBase, kRoundingDefault, nullptr, &executable_),
                         "hsa_executable_create_alt"));
    PLOW_TRY_STATUS(said(api_.load_object(executable_, agent_, reader_, nullptr, nullptr),
                         "hsa_executable_load_agent_code_object"));
    PLOW_TRY_STATUS(said(api_.freeze(executable_, nullptr), "hsa_executable_freeze"));
    PLOW_TRY(resident_, find_kernel(gpu::kResidentKernel));
    PLOW_TRY(fill_, find_kernel(gpu::kFillKernel));
    PLOW_TRY(read_, find_kernel(gpu::kReadKernel));
    return {};
  }

  Result<Kernel> find_kernel(const std::string& name) {
    Symbol symbol{};
    PLOW_TRY_STATUS(said(api_.find_symbol(executable_, (name + ".kd").c_str(), &agent_, &symbol),
                         "hsa_executable_get_symbol_by_name"));
    Kernel kernel;
    uint32_t kernarg = 0;
    for (const auto& [what, to] : {std::pair<uint32_t, void*>{kSymbolKernelObject, &kernel.object},
                                   {kSymbolGroupBytes, &kernel.group_bytes},
                                   {kSymbolPrivateBytes, &kernel.private_bytes},
                                   {kSymbolKernargBytes, &kernarg}})
      PLOW_TRY_STATUS(said(api_.symbol_info(symbol, what, to), "hsa_executable_symbol_get_info"));
    if (kernarg > kKernargBytes) {
      return device_error(
          fmt::format("{} takes {} bytes of parameters; {} were expected.", name, kernarg, kKernargBytes));
    }
    return kernel;
  }

  // Hands one kernel to the device; `done_` is 0 when it has ended. REQUIRES that none runs. (HSA's system
  // architecture 1.2, sections 2.8 and 2.9: the packet is the device's once its header says what it is.)
  void dispatch(const Kernel& kernel, uint32_t groups, uint32_t threads, uint32_t shared_bytes,
                const void* parameters, size_t parameter_bytes) {
    std::memcpy(kernarg_, parameters, parameter_bytes);
    api_.store_signal(done_, 1);
    const uint64_t index = api_.add_write_index(queue_, 1);
    auto* packet = static_cast<DispatchPacket*>(queue_->base) + index % queue_->size;
    DispatchPacket filled{};
    filled.group_x = static_cast<uint16_t>(threads);
    filled.group_y = filled.group_z = 1;
    filled.grid_x = groups * threads;
    filled.grid_y = filled.grid_z = 1;
    filled.private_bytes = kernel.private_bytes;
    filled.group_bytes = kernel.group_bytes + shared_bytes;
    filled.kernel_object = kernel.object;
    filled.kernarg = kernarg_;
    filled.completion = done_;
    // All but the first word, which is header and setup (one dimension).
    std::memcpy(reinterpret_cast<unsigned char*>(packet) + sizeof(uint32_t),
                reinterpret_cast<const unsigned char*>(&filled) + sizeof(uint32_t),
                sizeof(filled) - sizeof(uint32_t));
    constexpr uint32_t kOneDimension = 1;
    __atomic_store_n(reinterpret_cast<uint32_t*>(packet), kDispatchHeader | kOneDimension << 16,
                     __ATOMIC_RELEASE);
    api_.store_signal(queue_->doorbell, static_cast<int64_t>(index));
  }

  Status finish(const char* what) {
    while (api_.wait_signal(done_, kConditionLess, 1, kWaitTicks, kWaitBlocked) >= 1) {
      if (const Code code = error_.load(); code != kSuccess) return said(code, what);
    }
    return {};
  }

  Status said(Code code, const char* what) const {
    if (code == kSuccess) return {};
    return device_error(
        fmt::format("{}: {} says {}. Load the bundle again; if it stays so, run plowrt doctor.", facts_.name,
                    what, code_text(api_, code)));
  }

  const Api& api_;
  GpuFacts facts_{};
  gpu::LaunchShape shape_{};
  Agent agent_{};
  FoundPool device_pool_, host_pool_, kernarg_pool_;
  Reader reader_{};
  Executable executable_{};
  Kernel resident_, fill_, read_;
  Queue* queue_ = nullptr;
  hsa::Signal done_{};
  unsigned char *kernarg_ = nullptr, *staging_ = nullptr;
  std::vector<void*> memory_;
  std::atomic<Code> error_{kSuccess};
};

}  // namespace

std::optional<Isa> isa_of_amd_name(std::string_view name) {
  for (const Isa isa : {Isa::kGfx942, Isa::kGfx950}) {
    if (name == isa_name(isa)) return isa;
  }
  return std::nullopt;
}

Result<std::unique_ptr<GpuDriver>> open_hsa_device(const Api& api, const hsa::DeviceFacts& device, Isa isa,
                                                   std::span<const std::byte> object) {
  auto driver = std::make_unique<HsaDriver>(api);
  PLOW_TRY_STATUS(driver->open(device, isa, object));
  return std::unique_ptr<GpuDriver>(std::move(driver));
}

Result<std::unique_ptr<GpuDriver>> open_hsa(uint32_t ordinal) {
  PLOW_TRY(const Api* api, hsa::load_api());
  PLOW_TRY(const std::vector<hsa::DeviceFacts> devices, hsa::list_devices(*api));
  if (ordinal >= devices.size()) {
    return device_error(
        fmt::format("There is no device hsa:{}; this machine has {}.", ordinal, devices.size()));
  }
  const hsa::DeviceFacts& device = devices[ordinal];
  const auto isa = isa_of_amd_name(device.isa);
  if (!isa) {
    return device_error(fmt::format("hsa:{} is a {} ({}), which plow has no interpreter for.", ordinal,
                                    device.name, device.isa));
  }
  const auto object = gpu::interpreter_object(*isa);
  if (object.empty()) {
    return device_error(
        fmt::format("This program was built without the interpreter for {} ({}). Build it where clang++-22 "
                    "and lld-22 are "
                    "installed.",
                    device.name, device.isa));
  }
  PLOW_TRY_STATUS(gpu::check_object(object, *isa));
  return open_hsa_device(*api, device, *isa, object);
}

}  // namespace plow
