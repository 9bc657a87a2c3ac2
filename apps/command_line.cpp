// SPDX-License-Identifier: Apache-2.0
#include "apps/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/nearest.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

constexpr std::size_t kNamesWidth = 30;
constexpr std::size_t kLineWidth = 96;

/// Breaks text between words so that it fits right of the column of names.
std::string wrapped(const std::string& text) {
  std::string out;
  std::size_t column = kNamesWidth;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t size = end - begin;
    if (column + size + 1 > kLineWidth) {
      out += "\n" + std::string(kNamesWidth, ' ');
      column = kNamesWidth;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out.append(text, begin, size);
    column += size;
    begin = end + 1;
  }
  return out;
}

std::string two_columns(const std::string& names, const std::string& text) {
  const std::string left = "  " + names;
  if (left.size() + 2 > kNamesWidth) {
    return left + "\n" + std::string(kNamesWidth, ' ') + wrapped(text) + "\n";
  }
  return left + std::string(kNamesWidth - left.size(), ' ') + wrapped(text) + "\n";
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string names = make_option_name(option, is_positional);
    for (auto comma = names.find(','); comma != std::string::npos;
         comma = names.find(',', comma + 1)) {
      names.insert(comma + 1, " ");
    }
    if (!is_positional && option->get_items_expected_max() > 0) {
      names += " " + option->get_type_name();
    }
    std::string text = option->get_description();
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
    return two_columns(names, text);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return two_columns(command->get_name(), command->get_description());
  }
  std::string make_usage(const CLI::App* command, std::string name) const override {
    return "\n" + CLI::Formatter::make_usage(command, name);
  }
};

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

const CLI::Option& find_option(const CLI::App& command, const std::string& name) {
  if (const CLI::Option* option = command.get_option_no_throw(name)) return *option;
  throw UsageError(fmt::format("unknown option {} of `{}`{} (all of them: `{} --help`)", name,
                               full_name(command), did_you_mean_option(name, option_names(command)),
                               full_name(command)));
}

const CLI::App& find_verb(const CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* verb : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == word) return *verb;
    names.push_back(verb->get_name());
  }
  throw UsageError(fmt::format("`{}` has no verb \"{}\"{} (it has: {})", full_name(command), word,
                               did_you_mean(word, names), fmt::join(names, ", ")));
}

bool has_verbs(const CLI::App& command) {
  return !command.get_subcommands([](const CLI::App*) { return true; }).empty();
}

bool is_number(const std::string& word) {
  double value = 0;
  return CLI::detail::lexical_cast(word, value);
}

/// Walks along the arguments once, knowing which command and option it is in.
class Walker {
 public:
  Walker(const CLI::App& program, std::span<const std::string> arguments)
      : command_(&program), rest_(arguments) {}

  std::vector<std::string> walk() {
    while (!rest_.empty()) {
      const std::string word = take();
      if (word == "--") {
        done_.push_back(word);
        pass_the_rest();
      } else if (word.starts_with("--")) {
        long_option(word);
      } else if (word.size() > 1 && word[0] == '-' && !is_number(word)) {
        const CLI::Option& option = find_option(*command_, word.substr(0, 2));
        done_.push_back(word);
        if (word.size() == 2) values_of(option);
      } else if (has_verbs(*command_)) {
        command_ = &find_verb(*command_, word);
        done_.push_back(word);
      } else if (command_->get_prefix_command()) {
        done_.insert(done_.end(), {"--", word});
        pass_the_rest();
      } else {
        done_.push_back(word);
      }
    }
    return std::move(done_);
  }

 private:
  std::string take() {
    const std::string word = rest_.front();
    rest_ = rest_.subspan(1);
    return word;
  }
  void pass_the_rest() {
    done_.insert(done_.end(), rest_.begin(), rest_.end());
    rest_ = {};
  }
  void long_option(const std::string& word) {
    const auto equals = std::min(word.find('='), word.size());
    std::string name = word.substr(0, equals);
    std::replace(name.begin(), name.end(), '_', '-');
    const CLI::Option& option = find_option(*command_, name);
    done_.push_back(name + word.substr(equals));
    if (equals == word.size()) values_of(option);
  }
  void values_of(const CLI::Option& option) {
    if (option.get_items_expected_min() < 1 || rest_.empty()) return;
    std::string value = take();
    while (option.get_delimiter() == ',' && is_number(value.substr(value.rfind(',') + 1)) &&
           !rest_.empty() && is_number(rest_.front())) {
      value += "," + take();
    }
    done_.push_back(value);
  }

  const CLI::App* command_;
  std::span<const std::string> rest_;
  std::vector<std::string> done_;
};

}  // namespace

void set_style(CLI::App& command) {
  command.formatter(std::make_shared<HelpFormatter>());
  command.set_help_flag("-h,--help", "Show this text and exit");
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description) {
  CLI::App* command = parent.add_subcommand(name, description);
  set_style(*command);
  return command;
}

std::vector<std::string> canonical_arguments(const CLI::App& program,
                                             std::span<const std::string> arguments) {
  return Walker(program, arguments).walk();
}

std::optional<std::string> parse_command_line(CLI::App& program,
                                              std::span<const std::string> arguments) {
  std::vector<std::string> words = canonical_arguments(program, arguments);
  std::reverse(words.begin(), words.end());  // CLI11 reads them from the back
  const CLI::App* command = &program;
  const auto innermost = [&] {
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    return command;
  };
  try {
    program.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    const CLI::App* parent = innermost()->get_parent();
    return innermost()->help(parent != nullptr ? full_name(*parent) : "");
  } catch (const CLI::CallForVersion&) {
    return program.version() + "\n";
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("{} (see `{} --help`)", error.what(), full_name(*innermost())));
  }
  return std::nullopt;
}

}  // namespace collar::apps
