// SPDX-License-Identifier: Apache-2.0
// What `--resume` means: the checkpoint that a run goes on from, the options it had, and whether
// there is anything left to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/accelerate/run_folder.hpp"
#include "apps/train/checkpoints.hpp"
#include "apps/train/options.hpp"

namespace collar::apps {

struct ResumePoint {
  std::optional<CheckpointFile> checkpoint = {};
  std::optional<TrainOptions> recorded = {};  ///< the options of that run, where they are known
  std::vector<std::string> warnings = {};     ///< about checkpoints that were passed over
};

/// What options.resume names: nothing, `auto` for the newest good checkpoint of options.output, the
/// folder of a run, or a checkpoint. Throws FileError for a folder that holds no run and a
/// checkpoint that cannot be read.
ResumePoint find_resume_point(const TrainOptions& options);

/// How a run with these options begins in its folder. Going on from another run's checkpoint is a
/// new run.
RunFolder::Start start_of(const TrainOptions& options);

/// The options that differ from the recorded ones and change results, a line each. Throws
/// UsageError with that list, unless --force.
std::string accepted_differences(const TrainOptions& options, const TrainOptions& recorded);

/// Whether the run has done everything that is asked of it now (more epochs or steps may be), and
/// its model is there. Throws FileError if starting afresh would write over what it has done.
bool is_finished(const TrainOptions& options, const ResumePoint& point);

}  // namespace collar::apps
