// The workers of a CPU: one thread each, which wait at a doorbell and run what the step descriptor says when
// it rings.
#pragma once

#include "base/error.h"
#include "isa/x86_64/interpreter.h"

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace plow {

class WorkerThreads {
 public:
  // Starts device.n_workers threads. `scratch` is `scratch_stride` bytes a worker. With `pin`, worker i runs
  // on the i-th processor that this process may use. Errors (kDevice): no thread could be started; (kUsage)
  // `pin` and fewer processors than workers.
  static Result<std::unique_ptr<WorkerThreads>> start(const Interpreter& interpreter, const Device& device,
                                                      unsigned char* scratch, uint64_t scratch_stride,
                                                      bool pin);
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  // Rings the doorbell and returns when every worker is back at it. What the host wrote before is seen by the
  // workers, and the other way round. Whether the step was given up is in Control.
  void run();

 private:
  struct Words;  // what threads and host share

  WorkerThreads();
  void work(uint32_t index);

  const Interpreter* interpreter_ = nullptr;
  std::unique_ptr<Words> words_;
  std::vector<Worker> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace plow
