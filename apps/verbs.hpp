// SPDX-License-Identifier: Apache-2.0
// The verbs of `collar`, one file each. A function adds its options to the command line and returns
// what is to run if the verb was chosen.
#pragma once

#include "apps/command_line.hpp"

namespace collar::apps {

Verb add_env(CLI::App& program);     // env.cpp
Verb add_data(CLI::App& program);    // data.cpp
Verb add_launch(CLI::App& program);  // launch.cpp

}  // namespace collar::apps
