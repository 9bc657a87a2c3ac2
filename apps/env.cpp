// SPDX-License-Identifier: Apache-2.0
// `collar env`: what a report of a problem or of a measurement begins with.
#include <fmt/format.h>

#include <memory>

#include "apps/accelerate/json_text.hpp"
#include "apps/machine.hpp"
#include "apps/verbs.hpp"

namespace collar::apps {

Verb add_env(CLI::App& program) {
  CLI::App* env = add_command(program, "env", "Show the build, the machine and the libraries");
  const auto json = std::make_shared<bool>(false);
  env->add_flag("--json", *json, "As JSON");
  return {env, [json] {
            const auto environment = describe_machine();
            fmt::print("{}", *json ? json_text(environment, 2) + "\n" : to_text(environment));
            return ExitCode::done;
          }};
}

}  // namespace collar::apps
