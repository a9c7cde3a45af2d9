// The drift guard of the build: whether an interpreter object carries the numbers of this source tree.
//
//   check_gpu_object ISA OBJECT     exits 1 and says which number differs
#include "base/mapped_file.h"
#include "isa/gpu/object.h"

#include <cstdio>
#include <string_view>

namespace plow {
namespace {

Status check_file(std::string_view isa, const char* path) {
  PLOW_TRY(const MappedFile file, MappedFile::open(path));
#define PLOW_ISA(number, Name, text, vendor) \
  if (isa == (text)) return gpu::check_object(file.bytes(), Isa::k##Name);
#include "abi/isas.def"
  return usage_error("there is no such ISA; abi/isas.def lists them");
}

}  // namespace
}  // namespace plow

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: check_gpu_object ISA OBJECT\n");
    return 2;
  }
  const plow::Status status = plow::check_file(argv[1], argv[2]);
  if (!status.ok())
    std::fprintf(stderr, "check_gpu_object: %s: %s\n", argv[2], status.error().message.c_str());
  return status.ok() ? 0 : 1;
}
