# Writes OUTPUT with the git revision of SOURCE, if it has changed. Run at every build.
execute_process(
  COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --match=none
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
namespace collar::apps {
extern const char* const kRevision;
const char* const kRevision = "@revision@";
}  // namespace collar::apps
]] @ONLY)
