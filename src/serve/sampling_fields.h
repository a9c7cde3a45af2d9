// The fields of a request that say how tokens are picked.
#pragma once

#include "serve/answer_spec.h"
#include "serve/fields.h"

#include <optional>

namespace plow {

// Fills sampling, biases and seed; what the request leaves out is as the model recommends. Errors: a bias of
// something else than a token, what a float cannot hold. REQUIRES fields that passed check_fields().
std::optional<ApiError> read_sampling(const FieldReader& fields, const ServedModel& model, AnswerSpec& out);

}  // namespace plow
