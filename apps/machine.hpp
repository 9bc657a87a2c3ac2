// SPDX-License-Identifier: Apache-2.0
// What Collar finds around it: build, CPU, memory, libraries. Shown by `collar env`, and written
// beside results so that figures can be compared.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collar::apps {

/// Sections of name: value. Sizes are in bytes.
nlohmann::ordered_json describe_machine();

/// The same as lines for people.
std::string to_text(const nlohmann::ordered_json& environment);

}  // namespace collar::apps
