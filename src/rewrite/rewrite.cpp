#include "rewrite/rewrite.h"

#include <fmt/format.h>

namespace plow {

Result<RewriteResult> rewrite_graph(const OpGraph& graph, const RewriteOptions& options) {
  if (!options.disabled_rules.empty()) {
    return usage_error(fmt::format("there is no rewrite rule named '{}' (there are none yet)", options.disabled_rules[0]));
  }
  return RewriteResult{graph, options.enabled ? "0 rules, 0 firings\n" : "off\n"};
}

}  // namespace plow
