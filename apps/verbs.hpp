// SPDX-License-Identifier: Apache-2.0
// The verbs of `collar`, one file each. A function adds its options to the command line and returns
// what is to run if the verb was chosen.
#pragma once

#include <span>
#include <string>

#include "apps/command_line.hpp"

namespace collar::apps {

/// `arguments` are the words of the command line: the ranks are started with the same.
Verb add_train(CLI::App& program, std::span<const std::string> arguments);  // train.cpp
Verb add_eval(CLI::App& program);                                           // eval.cpp
Verb add_predict(CLI::App& program);                                        // predict.cpp
Verb add_data(CLI::App& program);                                           // data.cpp
Verb add_launch(CLI::App& program);                                         // launch.cpp
Verb add_bench(CLI::App& program);                                          // bench.cpp
Verb add_env(CLI::App& program);                                            // env.cpp

}  // namespace collar::apps
