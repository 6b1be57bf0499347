#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/observe/sinks.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

TEST(JsonlSink, WritesOneObjectALineInTheOrderGiven) {
  const test::TempDir dir;
  const std::string path = dir.file("run/logging.jsonl");
  const auto sink = make_jsonl_sink(path);
  sink->write(5, {{"loss", 1.25}, {"learning_rate", 1e-4}, {"rollout/gt_objects", 12}});
  // Readable while the sink is alive: a killed run loses nothing.
  EXPECT_EQ(
      read_file(path),
      "{\"step\": 5, \"loss\": 1.25, \"learning_rate\": 0.0001, \"rollout/gt_objects\": 12}\n");
}

TEST(JsonlSink, KeepsEveryBitOfAValue) {
  const test::TempDir dir;
  const std::vector<double> values = {0.1, 1.0 / 3, 5e-324, -1.7976931348623157e308,
                                      123456789012345678.0};
  const auto sink = make_jsonl_sink(dir.file("log"));
  for (const double value : values) sink->write(1, {{"loss", value}});
  const std::string content = read_file(dir.file("log"));
  size_t begin = 0;
  for (const double value : values) {
    const size_t end = content.find('\n', begin);
    EXPECT_EQ(parse_json(content.substr(begin, end - begin), "log")["loss"].get<double>(), value);
    begin = end + 1;
  }
}

TEST(JsonlSink, WritesNullForNanAndInfinity) {
  const test::TempDir dir;
  make_jsonl_sink(dir.file("log"))
      ->write(1, {{"a", std::nan("")}, {"b", std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(read_file(dir.file("log")), "{\"step\": 1, \"a\": null, \"b\": null}\n");
}

TEST(JsonlSink, AppendsBehindATornLine) {
  const test::TempDir dir;
  const std::string path = dir.write("log", "{\"step\": 1}\n{\"step\": 2, \"lo");
  make_jsonl_sink(path)->write(3, {});
  EXPECT_EQ(read_file(path), "{\"step\": 1}\n{\"step\": 3}\n");
}

TEST(JsonlSink, NoticesThatItsFileIsGoneOrAnotherOne) {
  const test::TempDir dir;
  const auto sink = make_jsonl_sink(dir.file("run/log"));
  EXPECT_NO_THROW(sink->require_in_place());
  const auto what = [&] {
    return test::catch_user_error([&] { sink->require_in_place(); }).problems()[0].what;
  };
  std::filesystem::remove_all(dir.file("run"));
  EXPECT_EQ(what(), "it was removed or moved");
  dir.write("run/log", "");
  EXPECT_EQ(what(), "another file has its name");
}

TEST(JsonlSink, SaysThatTheDiskIsFull) {
  const auto sink = make_jsonl_sink("/dev/full");
  const UserError error = test::catch_user_error([&] { sink->write(1, {{"loss", 1}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problems()[0].where, "/dev/full");
  EXPECT_NE(error.problems()[0].fix.find("free disk space"), std::string::npos);
}

TEST(JsonlSink, RemovesAPartialLineOnAFullDisk) {
  const test::TempDir dir;
  const auto sink = make_jsonl_sink(dir.file("log"));
  sink->write(1, {{"loss", 1}});
  const std::string before = read_file(dir.file("log"));
  // A limit on the size of files stands in for the full disk: the next line fits in part.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit tight{.rlim_cur = before.size() + 10, .rlim_max = old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const UserError error = test::catch_user_error([&] { sink->write(2, {{"loss", 2}}); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(read_file(dir.file("log")), before);
}

TEST(JsonlSink, NamesADirectoryItCannotCreate) {
  const test::TempDir dir;
  dir.write("file", "");
  const UserError error =
      test::catch_user_error([&] { make_jsonl_sink(dir.file("file/run/logging.jsonl")); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
}

TEST(TruncateJsonl, DropsWhatCameAfterTheCheckpoint) {
  const test::TempDir dir;
  const std::string path = dir.write("log",
                                     "{\"step\": 1, \"loss\": 2}\n{\"step\": 2}\n{\"step\": 2, "
                                     "\"eval_loss\": 1}\n{\"step\": 3}\n{\"st");
  truncate_jsonl_after(path, 2);
  EXPECT_EQ(read_file(path),
            "{\"step\": 1, \"loss\": 2}\n{\"step\": 2}\n{\"step\": 2, \"eval_loss\": 1}\n");
  truncate_jsonl_after(path, 0);
  EXPECT_EQ(read_file(path), "");
}

TEST(TruncateJsonl, DropsTheZerosThatALossOfPowerLeaves) {
  const test::TempDir dir;
  const std::string lines = "{\"step\": 1}\n{\"step\": 2}\n";
  for (const std::string& zeros :
       {std::string(40, '\0'),
        std::string("{\"step\": 3, \"lo") + std::string(9, '\0') + "}\n{\"step\": 4}\n"}) {
    const std::string path = dir.write("log", lines + zeros);
    truncate_jsonl_after(path, 2);
    EXPECT_EQ(read_file(path), lines);
    dir.write("log", lines + zeros);
    make_jsonl_sink(path)->write(3, {});
    EXPECT_EQ(read_file(path), lines + "{\"step\": 3}\n")
        << "a run that continues the log without resuming";
  }
}

TEST(TruncateJsonl, AcceptsAMissingLog) {
  const test::TempDir dir;
  truncate_jsonl_after(dir.file("none"), 3);
  EXPECT_THROW(read_file(dir.file("none")), UserError);
}

TEST(TruncateJsonl, NamesALineThatIsNoLogEntry) {
  const test::TempDir dir;
  for (const char* line : {"nonsense", "{\"loss\": 1}", "[]", "{\"step\": \"3\"}"}) {
    const std::string path =
        dir.write("log", std::string("{\"step\": 1}\n") + line + "\n{\"step\": 3}\n");
    const UserError error = test::catch_user_error([&] { truncate_jsonl_after(path, 2); });
    EXPECT_EQ(error.kind(), ErrorKind::kData) << line;
    EXPECT_NE(error.problems()[0].where.find(path + ":2"), std::string::npos)
        << error.problems()[0].where;
  }
}

TEST(JsonlSink, AnEvaluationNamesItsSet) {
  const test::TempDir dir;
  const std::string path = dir.file("logging.jsonl");
  make_jsonl_sink(path)->write(3, {{"eval_loss", 0.5}}, "4 \"records\"");
  EXPECT_EQ(read_file(path),
            "{\"step\": 3, \"eval_loss\": 0.5, \"eval_set\": \"4 \\\"records\\\"\"}\n");
}

}  // namespace rematch
