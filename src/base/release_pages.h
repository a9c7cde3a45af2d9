// For who goes once through a large mapped file.
#pragma once

#include <cstddef>
#include <span>

namespace plow {

// Takes the whole pages within `bytes` out of this process's memory; they come in again when they are
// touched. REQUIRES bytes of a MappedFile. The kernel keeps what it likes of them in its cache.
void release_pages(std::span<const std::byte> bytes);

}  // namespace plow
