// SPDX-License-Identifier: Apache-2.0
// The program `collar`: chooses the verb, and turns whatever is thrown into one message on stderr
// and an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>

#include "apps/accelerate/screen.hpp"
#include "apps/build_info.hpp"
#include "apps/idle_threads.hpp"
#include "apps/variables.hpp"
#include "apps/verbs.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

std::string version_text() {
  const BuildInfo build = build_info();
  return fmt::format("collar {} ({})\ncompiler {}, {}{}{}\nOpenMP {}\noneDNN {}\nCUDA {}",
                     build.version, build.revision, build.compiler, build.build_type,
                     build.sanitizers.empty() ? "" : ", sanitizers ", build.sanitizers,
                     build.openmp, build.onednn, build.cuda);
}

ExitCode run(std::span<const std::string> arguments) {
  CLI::App program("Trains image classifiers on one or many processes.", "collar");
  set_style(program);
  program.set_version_flag("--version", version_text());
  program.require_subcommand(1);
  const Verb verbs[] = {
      add_train(program, arguments), add_eval(program),  add_predict(program), add_data(program),
      add_launch(program),           add_bench(program), add_env(program)};
  program.footer("`collar VERB --help` explains a verb.");

  if (arguments.empty()) {
    say(program.help());
    return ExitCode::usage;
  }
  if (const auto text = parse_command_line(program, arguments)) {
    fmt::print("{}", *text);
    return ExitCode::done;
  }
  for (const Verb& verb : verbs) {
    if (verb.command->parsed()) return verb.run();
  }
  throw Error("no verb was chosen");
}

/// Whether nobody reads the pipe that stdout is any more: who has seen enough makes no error.
bool reader_has_left() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// Results are not done until they have left.
ExitCode flush_results(ExitCode code) {
  const int error = std::fflush(stdout) == 0 ? 0 : errno;
  if ((error == 0 && std::ferror(stdout) == 0) || reader_has_left()) return code;
  say(fmt::format("collar: error: cannot write the results to stdout: {}",
                  error != 0 ? std::strerror(error) : "lines before the last are missing"));
  return code == ExitCode::done ? ExitCode::internal : code;
}

/// A file that is opened must not become stdout or stderr where these are closed: what is written
/// there would end up in it.
void keep_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    if (open("/dev/null", O_RDONLY) != descriptor) return;
  }
}

}  // namespace
}  // namespace collar::apps

int main(int argc, char** argv) {
  using namespace collar::apps;
  keep_standard_descriptors();
  // What `launch` starts is not ours: its threads wait as they like.
  if (argc > 1 && std::string_view(argv[1]) != "launch") let_idle_threads_sleep(argv);
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): a closed pipe is seen by who writes
  ExitCode code = ExitCode::internal;
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    for (const std::string& warning : misspelt_variables()) say("collar: warning: " + warning);
    code = run(arguments);
  } catch (const std::bad_alloc&) {
    say("collar: error: out of memory");
  } catch (const std::system_error& error) {
    if (error.code().value() == EPIPE) return to_int(ExitCode::done);
    say(fmt::format("collar: error: {}", error.what()));
  } catch (const std::exception& error) {
    say(fmt::format("collar: error: {}", error.what()));
    code = exit_code_of(error);
  }
  return to_int(flush_results(code));
}
