#include "tune/tunedb.h"

namespace plow {

std::string body_digest(Op op) {
  const char* name = op_name(op);
#define PLOW_BODY_DIGEST(text, digest) \
  if (name != nullptr && std::string_view(name) == #text) return digest;
#define PLOW_ALL_BODIES(digest) \
  return digest;  // what is no operator's own, a program's row tile, hangs on all bodies
#include "tune/body_digests.inc"
}

std::string digest_of_all_bodies() { return body_digest(Op::kLeave); }

}  // namespace plow
