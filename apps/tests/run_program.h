// Runs a program as a person would, and gives back what it said.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace plow {

struct ProgramRun {
  std::vector<std::string> arguments;                            // the program first
  std::vector<std::pair<std::string, std::string>> environment;  // beside PATH; nothing else is inherited
  std::string input;                                             // of standard input
  std::filesystem::path output_file;           // where standard output goes instead of into the result
  std::function<void()> in_child;              // called in the new process before the program starts
  std::function<void(int pid)> while_running;  // called once the process is there
};

struct ProgramResult {
  int exit_code = -1;  // 128 + the number of the signal that ended it
  std::string out, err;
};

// Ends a program that takes longer than `limit`, with exit code 128 + SIGKILL.
ProgramResult run_program(const ProgramRun& run, std::chrono::seconds limit = std::chrono::seconds(120));

}  // namespace plow
