// SPDX-License-Identifier: Apache-2.0
// `collar train --dry-run`: what a run would do.
#pragma once

#include "apps/exit_codes.hpp"
#include "apps/train/options.hpp"

namespace collar::apps {

/// Prints the resolved options, the model, the lengths, the learning rates and the memory to
/// stdout; touches nothing.
ExitCode show_plan(const TrainOptions& options);

}  // namespace collar::apps
