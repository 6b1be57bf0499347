#include "report/report_fixture.h"
#include "tools/report/sections.h"

namespace rematch {

TEST_F(ReportTest, ARestartInTheSameDirectoryStartsANewLine) {
  directory_.write("twice/logging.jsonl",
                   "{\"step\": 1, \"loss\": 3.0}\n{\"step\": 4, \"loss\": 2.0}\n"
                   "{\"step\": 1, \"loss\": 3.5}\n{\"step\": 4, \"loss\": 2.5}\n");
  const Json curves = collect_curves({read_run(directory_.file("twice"))});
  EXPECT_EQ(curves["charts"][0]["runs"][0]["lines"],
            parse_json("[[[1.0, 3.0], [4.0, 2.0]], [[1.0, 3.5], [4.0, 2.5]]]", "lines"));
}

TEST_F(ReportTest, NoLineJoinsEvaluationsOverDifferentSets) {
  directory_.write("sets/logging.jsonl",
                   "{\"step\": 0, \"eval_rollout_f1\": 0.1, \"eval_set\": \"a\"}\n"
                   "{\"step\": 1, \"loss\": 3.0}\n"
                   "{\"step\": 2, \"eval_rollout_f1\": 0.2, \"eval_set\": \"a\"}\n"
                   "{\"step\": 4, \"eval_rollout_f1\": 0.3, \"eval_set\": \"b\"}\n"
                   "{\"step\": 1, \"eval_rollout_f1\": 0.4, \"eval_set\": \"b\"}\n");
  const Json charts = collect_curves({read_run(directory_.file("sets"))})["charts"];
  EXPECT_EQ(charts[1]["title"], "gate F1");
  EXPECT_EQ(charts[1]["runs"][0]["dots"],
            parse_json("[[[0.0, 0.1], [2.0, 0.2]], [[4.0, 0.3]], [[1.0, 0.4]]]", "dots"));
}

TEST_F(ReportTest, MalformedAnswersHaveACurve) {
  directory_.write("format/logging.jsonl",
                   "{\"step\": 0, \"eval_rollout_parse_malformed_rate\": 1.0, "
                   "\"eval_rollout_f1_iou50\": 0.1, \"eval_set\": \"a\"}\n"
                   "{\"step\": 4, \"rollout/parse_malformed_rate\": 0.5}\n");
  const Json charts = collect_curves({read_run(directory_.file("format"))})["charts"];
  ASSERT_EQ(charts.size(), 2u);
  EXPECT_EQ(charts[0]["title"], "F1 @ IoU 0.5");
  EXPECT_EQ(charts[1]["title"], "malformed answers");
  EXPECT_EQ(charts[1]["runs"][0]["lines"], parse_json("[[[4.0, 0.5]]]", "lines"));
}

TEST_F(ReportTest, ALossThatFallsFarHasALogarithmicAxis) {
  const auto is_log = [&](double last) {
    directory_.write("far/logging.jsonl",
                     fmt::format("{{\"step\": 1, \"loss\": 21.0}}\n{{\"step\": 2, \"loss\": "
                                 "{}}}\n",
                                 last));
    return collect_curves({read_run(directory_.file("far"))})["charts"][0]["log"];
  };
  EXPECT_EQ(is_log(2.0), true);
  EXPECT_EQ(is_log(12.0), false);
  EXPECT_EQ(is_log(0.0), false);
  EXPECT_EQ(is_log(-1.0), false);
}

TEST_F(ReportTest, LongCurvesBecomeMeans) {
  std::string log;
  for (int step = 1; step <= 1000; ++step)
    log += fmt::format("{{\"step\": {}, \"loss\": {}}}\n", step, step % 2);
  directory_.write("long/logging.jsonl", log);
  const Json line =
      collect_curves({read_run(directory_.file("long"))})["charts"][0]["runs"][0]["lines"][0];
  EXPECT_EQ(line.size(), 334u);
  EXPECT_EQ(line[0], Json::array({2.0, 0.66667}));
}

}  // namespace rematch
