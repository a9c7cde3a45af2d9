#include "serve/service.h"

#include "serve/testing/byte_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace plow {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() { service({}); }
  void service(std::string key) {
    ServiceOptions options;
    options.version = "1.2.3";
    options.api_key = std::move(key);
    service_ = std::make_unique<Service>(std::vector<HostedModel>{{&*model_, &source_}}, log_, options);
  }
  HttpResponse send(std::string method, std::string path, std::string body = {},
                    std::vector<HttpField> fields = {}) {
    HttpRequest request{std::move(method), std::move(path), {}, std::move(fields), {}};
    if (auto response = service_->check_head(request)) return *response;
    request.body = std::move(body);
    exchange_ = std::make_shared<RecordedExchange>();
    service_->handle(request, exchange_);
    exchange_->run();
    return exchange_->response;
  }
  static std::string field(const HttpResponse& response, std::string_view name) {
    for (const HttpField& each : response.fields) {
      if (each.name == name) return each.value;
    }
    return {};
  }
  std::string code(const HttpResponse& response) {
    return std::string(json::parse(response.body).at("error").at("code").as_string());
  }

  ByteModel model_;
  ScriptedSource source_;
  SilentLog log_;
  std::unique_ptr<Service> service_;
  std::shared_ptr<RecordedExchange> exchange_;
};

TEST_F(ServiceTest, RoutesAnswerWithAndWithoutV1) {
  for (const char* path : {"/v1/chat/completions", "/chat/completions"}) {
    send("POST", path, R"({"messages":[{"role":"user","content":"x"}]})");
    source_.say(source_.asked.size() - 1, "ok");
    source_.end(source_.asked.size() - 1, EndReason::kStopToken);
    exchange_->run();
    EXPECT_EQ(exchange_->response.status, 200) << path;
  }
  for (const char* path : {"/v1/models", "/models", "/v1/models/byte-model", "/models/byte%2Dmodel"})
    EXPECT_EQ(send("GET", path).status, 200) << path;
  EXPECT_EQ(json::parse(send("GET", "/v1/models").body).at("data").at(0).at("max_model_len"), 200);
  EXPECT_EQ(code(send("GET", "/v1/models/other")), "model_not_found");
  EXPECT_EQ(send("GET", "/v1/models/%zz").status, 404);
  EXPECT_EQ(send("GET", "/v1/nothing").status, 404);
  const HttpResponse wrong = send("GET", "/v1/chat/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(field(wrong, "Allow"), "POST");
  EXPECT_EQ(field(send("DELETE", "/v1/models"), "Allow"), "GET, HEAD");
  EXPECT_EQ(send("HEAD", "/v1/models").status, 200);
}

TEST_F(ServiceTest, EveryRouteButLivenessAndThePageAsksForTheKey) {
  service("secret");
  std::set<std::string> keyless;
  for (const Route& route : routes()) {
    for (const char* given :
         {"", "Bearer wrong", "Bearer secre", "Bearer secrett", "Basic secret", "Bearer "}) {
      std::vector<HttpField> fields;
      if (*given != '\0') fields.push_back({"authorization", given});
      const HttpResponse response = send(route.method, route.path, "{}", fields);
      if (response.status != 401) {
        keyless.insert(route.path);
      } else {
        EXPECT_EQ(json::parse(response.body).at("error").at("type"), "authentication_error");
        EXPECT_EQ(field(response, "WWW-Authenticate"), "Bearer");
      }
    }
    EXPECT_NE(send(route.method, route.path, "{}", {{"Authorization", "Bearer secret"}}).status, 401)
        << route.path;
  }
  EXPECT_EQ(keyless, (std::set<std::string>{"/", "/healthz"}));
}

TEST_F(ServiceTest, PagesOfOtherSitesAreNotAnswered) {
  const auto with = [&](const char* origin) {
    return send("GET", "/v1/models", "", {{"Host", "127.0.0.1:8080"}, {"Origin", origin}}).status;
  };
  EXPECT_EQ(with("http://127.0.0.1:8080"), 200);
  EXPECT_EQ(with("http://evil.example"), 403);
  EXPECT_EQ(with("null"), 403);
}

TEST_F(ServiceTest, ARequestsIdComesBackWhenItIsHarmless) {
  EXPECT_EQ(field(send("GET", "/version", "", {{"x-request-id", "abc-1"}}), "X-Request-Id"), "abc-1");
  const std::string made = field(send("GET", "/version", "", {{"X-Request-Id", "a\r\nb"}}), "X-Request-Id");
  EXPECT_EQ(made.find('\r'), std::string::npos);
  EXPECT_NE(made, field(send("GET", "/version"), "X-Request-Id"));
}

TEST_F(ServiceTest, ReadinessFollowsTheDispatcher) {
  EXPECT_EQ(send("GET", "/readyz").status, 200);
  const auto now = std::chrono::steady_clock::now();
  source_.now.in_step = true;
  source_.now.since = now - 59s;
  EXPECT_EQ(not_ready_because(source_.now, now, 60s), "");
  source_.now.since = now - 61s;
  EXPECT_NE(not_ready_because(source_.now, now, 60s), "");
  EXPECT_EQ(send("GET", "/readyz").status, 503);
  EXPECT_EQ(send("GET", "/health").status, 503);
  EXPECT_EQ(send("GET", "/healthz").status, 200);
  source_.now.in_step = false;  // idle for long
  EXPECT_EQ(send("GET", "/readyz").status, 200);
  source_.now.draining = true;
  EXPECT_EQ(send("GET", "/readyz").status, 503);
  EXPECT_EQ(send("GET", "/healthz").status, 200);
}

TEST_F(ServiceTest, TokenizeSpeaksBothDialects) {
  EXPECT_EQ(json::parse(send("POST", "/tokenize", R"({"prompt":"ab"})").body),
            json::parse(R"({"count":2,"max_model_len":200,"tokens":[97,98],"token_strs":null})"));
  EXPECT_EQ(json::parse(send("POST", "/tokenize", R"({"content":"a","with_pieces":true})").body).at("tokens"),
            json::parse(R"([{"id":97,"piece":"a"}])"));
  EXPECT_EQ(json::parse(send("POST", "/tokenize", R"({"content":"é","with_pieces":true})").body).at("tokens"),
            json::parse(R"([{"id":195,"piece":[195]},{"id":169,"piece":[169]}])"));
  EXPECT_EQ(json::parse(send("POST", "/tokenize", R"({"content":"<|im_end|>","parse_special":true})").body)
                .at("tokens"),
            json::parse("[257]"));
  EXPECT_EQ(json::parse(send("POST", "/tokenize", R"({"content":"<|im_end|>"})").body).at("count"), 10);
  EXPECT_EQ(json::parse(send("POST", "/tokenize", R"({"messages":[{"role":"user","content":"x"}]})").body)
                .at("count"),
            20);
  EXPECT_EQ(json::parse(send("POST", "/tokenize", R"({"prompt":"","return_token_strs":true})").body)
                .at("token_strs"),
            json::array());
  EXPECT_EQ(send("POST", "/tokenize", "{}").status, 400);
  EXPECT_EQ(send("POST", "/tokenize", R"({"prompt":null})").status, 400);
  EXPECT_EQ(send("POST", "/tokenize", R"({"prompt":"a","content":"b"})").status, 400);
  const json::value text = json::parse(send("POST", "/detokenize", R"({"tokens":[97,98,257]})").body);
  EXPECT_EQ(text.at("prompt"), "ab<|im_end|>");
  EXPECT_EQ(text.at("content"), "ab<|im_end|>");
  EXPECT_EQ(send("POST", "/detokenize", R"({"tokens":[260]})").status, 400);
  EXPECT_EQ(json::parse(send("GET", "/tokenizer_info").body).at("eos_token"), "<|im_end|>");
}

TEST_F(ServiceTest, UnknownFieldsAreWarnedOfOnce) {
  for (int i = 0; i < 3; ++i) send("POST", "/tokenize", R"({"prompt":"a","zzz":1})");
  ASSERT_EQ(log_.warnings.size(), 1u);
  EXPECT_NE(log_.warnings[0].find("zzz"), std::string::npos);
}

TEST_F(ServiceTest, HostileBodiesGetA400AndTheNextRequestIsFine) {
  for (const std::string& body :
       {std::string(), std::string("\xff\xfe"), std::string("[]"), std::string(1 << 20, '['),
        std::string(R"({"messages":[{"role":"user","content":"\ud800"}]})")}) {
    const HttpResponse response = send("POST", "/v1/chat/completions", body);
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(code(response), "invalid_json");
  }
  send("POST", "/v1/completions", R"({"prompt":"a"})");
  EXPECT_EQ(source_.asked.size(), 1u);
}

// The names and label sets of all series, by an independent reading of the format.
std::set<std::string> series(const std::string& text) {
  std::set<std::string> names;
  std::istringstream lines(text);
  std::set<std::string> typed;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) typed.insert(line.substr(7, line.find(' ', 7) - 7));
    if (line.starts_with("#")) continue;
    const size_t space = line.rfind(' ');
    EXPECT_NO_THROW((void)std::stod(line.substr(space + 1))) << line;
    const std::string name = line.substr(0, line.find_first_of("{ "));
    bool has_type = false;
    for (const char* end : {"", "_bucket", "_sum", "_count"}) {
      const std::string_view tail = end;
      has_type |= name.ends_with(tail) && typed.contains(name.substr(0, name.size() - tail.size()));
    }
    EXPECT_TRUE(has_type) << line;
    EXPECT_TRUE(names.insert(line.substr(0, space)).second) << "twice: " << line;
  }
  return names;
}

TEST_F(ServiceTest, AllSeriesAreThereFromTheStart) {
  const std::set<std::string> before = series(send("GET", "/metrics").body);
  EXPECT_TRUE(before.contains("plow_http_requests_total{route=\"/v1/chat/completions\",status=\"200\"}"));
  EXPECT_TRUE(before.contains("plow_time_to_first_token_seconds_bucket{le=\"+Inf\"}"));
  EXPECT_TRUE(before.contains("plow_shed_total{reason=\"queue_full\"}"));
  send("POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}]})");
  source_.say(0, "ab");
  source_.end(0, EndReason::kStopToken);
  exchange_->run();
  send("GET", "/nothing");
  const HttpResponse after = send("GET", "/metrics");
  EXPECT_EQ(series(after.body), before);
  EXPECT_NE(after.body.find("plow_http_requests_total{route=\"/v1/chat/completions\",status=\"200\"} 1\n"),
            std::string::npos);
  EXPECT_NE(after.body.find("plow_http_requests_total{route=\"other\",status=\"404\"} 1\n"),
            std::string::npos);
  EXPECT_NE(after.body.find("plow_time_to_first_token_seconds_count 1\n"), std::string::npos);
  EXPECT_NE(after.body.find("plow_inter_token_seconds_count 1\n"), std::string::npos);
  EXPECT_NE(after.body.find("plow_answers_total{reason=\"stop\"} 1\n"), std::string::npos);
}

TEST_F(ServiceTest, TheServersOwnTimeIsTold) {
  const std::string chat = R"({"messages":[{"role":"user","content":"x"}])";
  send("POST", "/v1/chat/completions", chat + "}");
  source_.say(0, "ab");
  source_.end(0, EndReason::kStopToken);
  exchange_->run();
  const std::string whole = field(exchange_->response, "Server-Timing");
  for (const char* part : {"read;dur=", ", first-token;dur=", ", answer;dur="})
    EXPECT_NE(whole.find(part), std::string::npos) << whole;
  const auto tokens_timed = [&](const char* count) {
    const std::string text = send("GET", "/metrics").body;
    EXPECT_NE(text.find(std::string("plow_token_overhead_seconds_count ") + count + "\n"), std::string::npos)
        << text;
  };
  tokens_timed("0");  // there was no stream
  send("POST", "/v1/chat/completions", chat + R"(,"stream":true})");
  const auto stream = exchange_;
  EXPECT_TRUE(field(stream->response, "Server-Timing").starts_with("read;dur="));
  source_.say(1, "abc");
  stream->run();
  tokens_timed("3");
  stream->pretend_unsent = kStreamRoom;  // the client does not read
  source_.say(1, "defg");
  stream->run();
  stream->pretend_unsent = 0;
  source_.say(1, "h");
  stream->run();
  tokens_timed("4");  // h alone did not wait
}

TEST_F(ServiceTest, EveryFigureThatTheDashboardShowsIsThere) {
  const std::string metrics = send("GET", "/metrics").body;
  std::ifstream file(PLOW_SOURCE_DIR "/packaging/grafana.json");
  std::stringstream text;
  text << file.rdbuf();
  const json::value dashboard = json::parse(text.str());
  size_t names = 0;
  for (const json::value& panel : dashboard.at("panels").as_array()) {
    for (const json::value& target : panel.at("targets").as_array()) {
      const std::string expression(target.at("expr").as_string());
      for (size_t at = 0; (at = expression.find("plow_", at)) != std::string::npos; ++names) {
        const size_t end =
            std::min(expression.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at), expression.size());
        const std::string name = expression.substr(at, end - at);
        EXPECT_TRUE(metrics.find("\n" + name + " ") != std::string::npos ||
                    metrics.find("\n" + name + "{") != std::string::npos)
            << name;
        at = end;
      }
    }
  }
  EXPECT_GT(names, 20u);
}

TEST_F(ServiceTest, TheOpenApiDocumentHasEveryRouteAndItsFields) {
  const json::value document = json::parse(send("GET", "/openapi.json").body);
  for (const Route& route : routes()) {
    const json::value* path = document.at("paths").as_object().if_contains(route.path);
    ASSERT_NE(path, nullptr) << route.path;
    EXPECT_TRUE(path->as_object().contains(route.method == std::string_view("GET") ? "get" : "post"));
  }
  const json::value& chat = document.at("components").at("schemas").at("ChatCompletionRequest");
  EXPECT_EQ(chat.at("required"), json::parse(R"(["messages"])"));
  EXPECT_TRUE(chat.at("properties").as_object().contains("temperature"));
  EXPECT_FALSE(chat.at("properties").as_object().contains("min_tokens"));
}

TEST_F(ServiceTest, ThePageNeedsNothingElse) {
  const HttpResponse page = send("GET", "/");
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(page.body.find("/*CHAT_"), std::string::npos);
  for (const char* outside : {"src=", "<link", "@import", "http://", "https://"})
    EXPECT_EQ(page.body.find(outside), std::string::npos) << outside;
}

// Two models, of which the second is not in memory.
class TwoModels : public ServiceTest {
 protected:
  TwoModels() {
    service_ = std::make_unique<Service>(
        std::vector<HostedModel>{{&*model_, &source_}, {&*other_, &other_source_}}, log_, ServiceOptions{});
    other_source_.there.state = ModelState::kUnloaded;
  }
  ByteModel other_{ToolDialect::kNone, false, "other"};
  ScriptedSource other_source_;
};

TEST_F(TwoModels, RequestsGoToTheModelThatTheyNameAndElseToTheFirst) {
  send("POST", "/v1/completions", R"({"prompt":"a","model":"other"})");
  EXPECT_EQ(source_.asked.size(), 0u);
  ASSERT_EQ(other_source_.asked.size(), 1u);
  other_source_.say(0, "x");
  other_source_.end(0, EndReason::kStopToken);
  exchange_->run();
  EXPECT_EQ(json::parse(exchange_->response.body).at("model"), "other");
  send("POST", "/v1/completions", R"({"prompt":"a"})");
  send("POST", "/v1/completions", R"({"prompt":"a","model":"byte-model"})");
  EXPECT_EQ(source_.asked.size(), 2u);
  for (const char* path : {"/v1/completions", "/tokenize"}) {
    const HttpResponse none = send("POST", path, R"({"prompt":"a","model":"third"})");
    EXPECT_EQ(none.status, 404);
    EXPECT_EQ(code(none), "model_not_found");
    EXPECT_NE(none.body.find(R"(There is no model \"third\"; this server has \"byte-model\", \"other\".)"),
              std::string::npos)
        << none.body;
  }
  EXPECT_EQ(send("GET", "/v1/models/third").status, 404);
  EXPECT_EQ(json::parse(send("GET", "/v1/models/other").body).at("id"), "other");
}

TEST_F(TwoModels, AllAreListedWithWhatTheyDo) {
  const json::value list = json::parse(send("GET", "/v1/models").body);
  EXPECT_EQ(list.at("data").as_array().size(), 2u);
  EXPECT_EQ(list.at("data").at(1).at("id"), "other");
  source_.now.counts.answer_tokens = 5;
  other_source_.now.counts.answer_tokens = 7;
  const json::value status = json::parse(send("GET", "/status").body);
  EXPECT_EQ(status.at("models").at(0).at("state"), "ready");
  EXPECT_EQ(status.at("models").at(1).at("state"), "unloaded");
  const std::string metrics = send("GET", "/metrics").body;
  series(metrics);
  for (const char* line : {"plow_generation_tokens_total 12\n", "plow_model_loaded{model=\"byte-model\"} 1\n",
                           "plow_model_loaded{model=\"other\"} 0\n"})
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
}

TEST_F(TwoModels, AModelThatHasToComeFirstSaysWhenToComeAgain) {
  other_source_.refuse_with = Refused{Refusal::kQueueFull, "full", 37};
  const HttpResponse response = send("POST", "/v1/completions", R"({"prompt":"a","model":"other"})");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(field(response, "Retry-After"), "37");
}

TEST_F(ServiceTest, StatusSaysWhatRuns) {
  source_.now.counts.running = 2;
  const json::value status = json::parse(send("GET", "/status").body);
  EXPECT_EQ(status.at("models").at(0).at("running"), 2);
  EXPECT_EQ(status.at("models").at(0).at("state"), "ready");
}

TEST(QueueEstimateTest, IsTheWaitForAsManyEndsAsAreAhead) {
  QueueEstimate estimate;
  const QueueEstimate::Time begin{};
  EXPECT_EQ(estimate.seconds(0), 1u);
  EXPECT_EQ(estimate.seconds(9), 10u);
  estimate.began(begin + 100s);  // what was before is no time of work
  estimate.began(begin + 100s);
  estimate.ended(begin + 103s);
  EXPECT_EQ(estimate.seconds(0), 3u);
  EXPECT_EQ(estimate.seconds(4), 15u);
  estimate.ended(begin + 106s);
  estimate.began(begin + 500s);
  estimate.left();
  estimate.began(begin + 700s);
  estimate.ended(begin + 703s);
  EXPECT_EQ(estimate.seconds(4), 15u);
  EXPECT_EQ(estimate.seconds(1'000'000), 600u);
}

}  // namespace
}  // namespace plow
