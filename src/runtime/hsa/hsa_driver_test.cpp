// The HSA driver against a runtime that is made of functions of this file: what it asks for, in which order,
// and what it hands to the device.
#include "runtime/hsa/hsa_driver.h"

#include "isa/gpu/geometry.h"
#include "isa/gpu/object.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <vector>

namespace plow {
namespace {

using hsa::Agent;
using hsa::Code;

constexpr uint64_t kHost = 1, kGpu = 2;                              // agents
constexpr uint64_t kHostFine = 10, kHostKernarg = 11, kGpuOwn = 12;  // pools
constexpr Code kRefused = 0x1001;

// What the fake was told, and what it holds.
struct Fake {
  std::map<void*, std::pair<uint64_t, std::vector<unsigned char>>> memory;  // by address: pool, bytes
  std::set<const void*> accessible;
  std::map<uint64_t, int64_t> signals;
  std::vector<std::byte> object;
  std::vector<hsa::DispatchPacket> ring;
  hsa::Queue queue{};
  void (*on_error)(Code, hsa::Queue*, void*) = nullptr;
  void* error_data = nullptr;
  uint64_t write_index = 60;  // near the end of the ring, so that packets go round it
  std::vector<hsa::DispatchPacket> dispatched;
  std::vector<uint64_t> kernargs;  // the first word of the parameters of each
  std::vector<std::string> freed;  // what was destroyed, in order
  bool ends_at_once = true;        // a kernel
  uint64_t most_bytes = uint64_t{1} << 30;
};
Fake* fake = nullptr;

constexpr uint64_t kDoorbell = 100, kDone = 101;

void ring_doorbell(int64_t index) {
  const hsa::DispatchPacket packet = fake->ring[static_cast<uint64_t>(index) % fake->ring.size()];
  fake->dispatched.push_back(packet);
  uint64_t first = 0;
  std::memcpy(&first, packet.kernarg, sizeof(first));
  fake->kernargs.push_back(first);
  if (fake->ends_at_once) fake->signals[packet.completion.handle] -= 1;
}

Code agent_info(Agent agent, uint32_t what, void* to) {
  const bool gpu = agent.handle == kGpu;
  switch (what) {
    case hsa::kAgentDevice:
      *static_cast<uint32_t*>(to) = gpu ? hsa::kDeviceGpu : hsa::kDeviceCpu;
      return hsa::kSuccess;
    case hsa::kAgentComputeUnits:
      *static_cast<uint32_t*>(to) = 304;
      return hsa::kSuccess;
    case hsa::kAgentName:
    case hsa::kAgentProductName:
      std::memset(to, 0, 64);
      std::strcpy(static_cast<char*>(to), what == hsa::kAgentName ? "gfx942" : "AMD Instinct MI300X");
      return hsa::kSuccess;
    default:
      return kRefused;
  }
}

Code pool_info(hsa::Pool pool, uint32_t what, void* to) {
  switch (what) {
    case hsa::kPoolSegment:
      *static_cast<uint32_t*>(to) = hsa::kSegmentGlobal;
      return hsa::kSuccess;
    case hsa::kPoolFlags:
      *static_cast<uint32_t*>(to) = pool.handle == kGpuOwn     ? hsa::kFlagCoarseGrained
                                    : pool.handle == kHostFine ? hsa::kFlagFineGrained
                                                               : hsa::kFlagFineGrained | hsa::kFlagKernarg;
      return hsa::kSuccess;
    case hsa::kPoolSize:
      *static_cast<size_t*>(to) = size_t{192} << 30;
      return hsa::kSuccess;
    case hsa::kPoolMayAllocate:
      *static_cast<bool*>(to) = true;
      return hsa::kSuccess;
    default:
      return kRefused;
  }
}

Code symbol_info(hsa::Symbol symbol, uint32_t what, void* to) {
  if (what == hsa::kSymbolKernelObject) {
    *static_cast<uint64_t*>(to) = symbol.handle;
  } else {
    *static_cast<uint32_t*>(to) = what == hsa::kSymbolGroupBytes     ? 128
                                  : what == hsa::kSymbolPrivateBytes ? 144
                                                                     : 40;
  }
  return hsa::kSuccess;
}

Code allocate(hsa::Pool pool, size_t bytes, uint32_t, void** to) {
  if (bytes > fake->most_bytes) return hsa::kOutOfResources;
  std::vector<unsigned char> block(bytes + 1, 0xcc);  // never zero by itself
  *to = block.data();
  fake->memory[*to] = {pool.handle, std::move(block)};
  return hsa::kSuccess;
}

hsa::Api fake_api() {
  hsa::Api api;
  api.status_string = [](Code, const char** text) { return *text = "a fake's code", hsa::kSuccess; };
  api.iterate_agents = [](Code (*callback)(Agent, void*), void* data) {
    for (const uint64_t agent : {kHost, kGpu}) (void)callback({agent}, data);
    return hsa::kSuccess;
  };
  api.agent_info = agent_info;
  api.create_queue = [](Agent agent, uint32_t size, uint32_t, void (*on_error)(Code, hsa::Queue*, void*),
                        void* data, uint32_t, uint32_t, hsa::Queue** to) {
    if (agent.handle != kGpu) return kRefused;
    fake->ring.resize(size);
    fake->queue = {hsa::kQueueSingle, 0, fake->ring.data(), {kDoorbell}, size, 0, 7};
    fake->on_error = on_error;
    fake->error_data = data;
    *to = &fake->queue;
    return hsa::kSuccess;
  };
  api.destroy_queue = [](hsa::Queue*) { return fake->freed.push_back("queue"), hsa::kSuccess; };
  api.add_write_index = [](const hsa::Queue*, uint64_t n) {
    fake->write_index += n;
    return fake->write_index - n;
  };
  api.create_signal = [](int64_t value, uint32_t, const Agent*, hsa::Signal* to) {
    fake->signals[kDone] = value;
    *to = {kDone};
    return hsa::kSuccess;
  };
  api.destroy_signal = [](hsa::Signal) { return fake->freed.push_back("signal"), hsa::kSuccess; };
  api.store_signal = [](hsa::Signal signal, int64_t value) {
    if (signal.handle == kDoorbell) return ring_doorbell(value);
    fake->signals[signal.handle] = value;
  };
  api.load_signal = [](hsa::Signal signal) { return fake->signals[signal.handle]; };
  api.wait_signal = [](hsa::Signal signal, uint32_t, int64_t, uint64_t, uint32_t) {
    return fake->signals[signal.handle];
  };
  api.create_reader = [](const void* object, size_t bytes, hsa::Reader* to) {
    const auto* begin = static_cast<const std::byte*>(object);
    fake->object.assign(begin, begin + bytes);
    *to = {20};
    return hsa::kSuccess;
  };
  api.destroy_reader = [](hsa::Reader) { return fake->freed.push_back("reader"), hsa::kSuccess; };
  api.create_executable = [](uint32_t, uint32_t, const char*, hsa::Executable* to) {
    return *to = {21}, hsa::kSuccess;
  };
  api.load_object = [](hsa::Executable, Agent agent, hsa::Reader, const char*, void*) {
    return agent.handle == kGpu ? hsa::kSuccess : kRefused;
  };
  api.freeze = [](hsa::Executable, const char*) { return hsa::kSuccess; };
  api.destroy_executable = [](hsa::Executable) { return fake->freed.push_back("executable"), hsa::kSuccess; };
  api.find_symbol = [](hsa::Executable, const char* name, const Agent*, hsa::Symbol* to) {
    const std::string_view symbol = name;
    to->handle = symbol == "plow_resident.kd" ? 31 : symbol == "plow_fill_random.kd" ? 32 : 33;
    return symbol == "plow_read.kd" || to->handle != 33 ? hsa::kSuccess : kRefused;
  };
  api.symbol_info = symbol_info;
  api.copy = [](void* to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
    return hsa::kSuccess;
  };
  api.fill = [](void* to, uint32_t value, size_t words) {
    std::fill_n(static_cast<uint32_t*>(to), words, value);
    return hsa::kSuccess;
  };
  api.iterate_pools = [](Agent agent, Code (*callback)(hsa::Pool, void*), void* data) {
    const std::vector<uint64_t> pools =
        agent.handle == kGpu ? std::vector{kGpuOwn} : std::vector{kHostKernarg, kHostFine};
    for (const uint64_t pool : pools) {
      if (const Code code = callback({pool}, data); code != hsa::kSuccess) return code;
    }
    return hsa::kSuccess;
  };
  api.pool_info = pool_info;
  api.allocate = allocate;
  api.free = [](void* pointer) { return fake->memory.erase(pointer) == 1 ? hsa::kSuccess : kRefused; };
  api.allow_access = [](uint32_t, const Agent* agents, const uint32_t*, const void* pointer) {
    if (agents[0].handle == kGpu) fake->accessible.insert(pointer);
    return hsa::kSuccess;
  };
  return api;
}

class Hsa : public testing::Test {
 protected:
  void SetUp() override { fake = &fake_; }
  void TearDown() override { fake = nullptr; }

  std::unique_ptr<GpuDriver> open() {
    const auto devices = hsa::list_devices(api_).value();
    auto driver = open_hsa_device(api_, devices.at(0), Isa::kGfx942, std::as_bytes(std::span("an object")));
    EXPECT_TRUE(driver.ok()) << driver.error().message;
    return driver.ok() ? std::move(driver).value() : nullptr;
  }

  Fake fake_;
  hsa::Api api_ = fake_api();
};

TEST_F(Hsa, ListsGpusOnlyWithTheirIsas) {
  const auto devices = hsa::list_devices(api_);
  ASSERT_TRUE(devices.ok()) << devices.error().message;
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ(devices->at(0).name, "AMD Instinct MI300X");
  EXPECT_EQ(devices->at(0).isa, "gfx942");
  EXPECT_EQ(isa_of_amd_name("gfx950"), Isa::kGfx950);
  EXPECT_EQ(isa_of_amd_name("gfx1100"), std::nullopt);
  EXPECT_EQ(isa_of_amd_name("sm_90a"), std::nullopt);
}

TEST_F(Hsa, AWorkerIsAComputeUnit) {
  const auto driver = open();
  EXPECT_EQ(driver->facts().n_workers, 304u);
  EXPECT_EQ(driver->facts().isa, Isa::kGfx942);
  EXPECT_EQ(driver->facts().memory_total, uint64_t{192} << 30);
  EXPECT_EQ(fake_.object.size(), sizeof("an object"));
}

TEST_F(Hsa, MemoryIsZeroedOfTheRightPoolAndGivenBack) {
  auto driver = open();
  const size_t before = fake_.memory.size();
  unsigned char* own = driver->allocate(1027, "the test").value();
  unsigned char* host = driver->allocate_host(1000, "the test").value();
  EXPECT_EQ(fake_.memory.at(own).first, kGpuOwn);
  EXPECT_EQ(fake_.memory.at(host).first, kHostFine);
  EXPECT_EQ(fake_.memory.size(), before + 2);
  for (uint32_t i = 0; i < 1027; ++i) ASSERT_EQ(own[i], 0) << i;
  EXPECT_EQ(own[1027], 0xcc) << "nothing behind it is written";
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(host[i], 0) << i;
  for (const auto& [pointer, block] : fake_.memory) EXPECT_TRUE(fake_.accessible.contains(pointer));
  driver.reset();
  EXPECT_TRUE(fake_.memory.empty());
  EXPECT_EQ(fake_.freed, (std::vector<std::string>{"queue", "signal", "executable", "reader"}));
}

TEST_F(Hsa, MemoryThatThereIsNotIsSaidWithItsName) {
  const auto driver = open();
  const auto none = driver->allocate(uint64_t{1} << 31, "the KV cache");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().error_class, ErrorClass::kDoesNotFit);
  EXPECT_NE(none.error().message.find("no memory for the KV cache"), std::string::npos)
      << none.error().message;
}

TEST_F(Hsa, CopiesLargerThanTheStagingArriveWhole) {
  const auto driver = open();
  std::vector<unsigned char> from((size_t{16} << 20) * 2 + 5), back(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 31 + i / 977);
  unsigned char* at = driver->allocate(from.size(), "the test").value();
  ASSERT_TRUE(driver->upload(at, from.data(), from.size()).ok());
  ASSERT_TRUE(driver->download(back.data(), at, back.size()).ok());
  EXPECT_EQ(from, back);
}

TEST_F(Hsa, TheInterpreterIsOneDispatchOfAWorkgroupAComputeUnit) {
  const auto driver = open();
  fake_.ends_at_once = false;
  const auto* resident = reinterpret_cast<const Resident*>(uint64_t{0x1234560});
  for (uint32_t launch = 0; launch < 10; ++launch) {
    ASSERT_FALSE(driver->running().value());
    ASSERT_TRUE(driver->launch(resident).ok());
    const hsa::DispatchPacket& packet = fake_.dispatched.back();
    EXPECT_EQ(packet.header, 0x1502) << "kernel dispatch, barrier, acquire and release of the system";
    EXPECT_EQ(packet.setup, 1);
    EXPECT_EQ(packet.group_x, gpu::launch_shape(Isa::kGfx942).threads);
    EXPECT_EQ(packet.group_y * packet.group_z * packet.grid_y * packet.grid_z, 1u);
    EXPECT_EQ(packet.grid_x, 304 * gpu::launch_shape(Isa::kGfx942).threads);
    EXPECT_EQ(packet.group_bytes, 128 + gpu::launch_shape(Isa::kGfx942).shared_bytes);
    EXPECT_EQ(packet.private_bytes, 144u);
    EXPECT_EQ(packet.kernel_object, 31u);
    EXPECT_EQ(fake_.memory.at(packet.kernarg).first, kHostKernarg);
    EXPECT_EQ(fake_.kernargs.back(), uint64_t{0x1234560});
    EXPECT_TRUE(driver->running().value());
    fake_.signals[kDone] -= 1;
  }
  EXPECT_EQ(fake_.dispatched.size(), 10u);
}

TEST_F(Hsa, KernelsThatMeasureAreWaitedFor) {
  const auto driver = open();
  unsigned char* at = driver->allocate(4096, "the test").value();
  ASSERT_TRUE(driver->fill_random(at, 1024, DType::kF32, 0.5f, 3).ok());
  EXPECT_EQ(fake_.dispatched.back().kernel_object, 32u);
  EXPECT_EQ(fake_.kernargs.back(), reinterpret_cast<uint64_t>(at));
  ASSERT_TRUE(driver->read_bandwidth(at, 4096).ok());
  EXPECT_EQ(fake_.dispatched.back().kernel_object, 33u);
  EXPECT_EQ(fake_.dispatched.size(), 10u);
}

TEST_F(Hsa, AQueueThatDiedIsAnErrorOfTheDevice) {
  const auto driver = open();
  fake_.ends_at_once = false;
  ASSERT_TRUE(driver->launch(nullptr).ok());
  fake_.on_error(kRefused, &fake_.queue, fake_.error_data);
  const auto running = driver->running();
  ASSERT_FALSE(running.ok());
  EXPECT_EQ(running.error().error_class, ErrorClass::kDevice);
  EXPECT_NE(running.error().message.find("the interpreter kernel says 0x1001 (a fake's code)"),
            std::string::npos)
      << running.error().message;
  const Status filled = driver->fill_random(nullptr, 1, DType::kF32, 1, 1);
  EXPECT_FALSE(filled.ok()) << "it does not wait for ever";
}

TEST_F(Hsa, WhatTheRuntimeRefusesIsSaidByTheNameOfTheCall) {
  api_.load_object = [](hsa::Executable, Agent, hsa::Reader, const char*, void*) { return kRefused; };
  const auto devices = hsa::list_devices(api_).value();
  const auto driver = open_hsa_device(api_, devices.at(0), Isa::kGfx942, {});
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.error().message.find("hsa_executable_load_agent_code_object says 0x1001"),
            std::string::npos)
      << driver.error().message;
  EXPECT_TRUE(fake_.memory.empty());
  EXPECT_EQ(fake_.freed, (std::vector<std::string>{"executable", "reader"}));
}

}  // namespace
}  // namespace plow
