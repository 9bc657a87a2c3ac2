// SPDX-License-Identifier: Apache-2.0
// What the verbs share when they read the command line with CLI11: `_` is accepted for `-`, an
// unknown word is answered with the nearest known one, help is set in two columns.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/exit_codes.hpp"

namespace collar::apps {

/// A verb: its place in the command line and what it does after parsing.
struct Verb {
  const CLI::App* command = nullptr;
  std::function<ExitCode()> run;
};

/// Sets what all commands have in common: `--help`, its layout.
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description);
void set_style(CLI::App& command);

/// The arguments as CLI11 is to see them. In options' names `_` becomes `-`; numbers after an
/// option with the delimiter ',' are joined to one value (`--mean 0.5 0.5 0.5`); behind the first
/// plain word of a command with prefix_command() nothing is looked at any more. Throws UsageError
/// for an option or a verb that does not exist and names the nearest one.
std::vector<std::string> canonical_arguments(const CLI::App& program,
                                             std::span<const std::string> arguments);

/// Parses. Returns the text to print if the user asked for help or the version, and nothing if a
/// verb is to run. Throws UsageError.
std::optional<std::string> parse_command_line(CLI::App& program,
                                              std::span<const std::string> arguments);

}  // namespace collar::apps
