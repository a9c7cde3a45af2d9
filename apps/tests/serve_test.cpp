// plowrt serve as clients meet it: a process, a port, and answers of a tiny model.
#include "tests/serve_process.h"

namespace plow {
namespace {

using namespace std::chrono_literals;

TEST(Serve, TheReadyTextNamesUrlModelContextSlotsMemoryAndACurl) {
  ServerProcess server;
  for (const char* part : {"ready: http://127.0.0.1:", "with tiny,", "context 128", "2 at once", " of memory",
                           "/v1/chat/completions -d '{"})
    EXPECT_NE(server.ready_text().find(part), std::string::npos) << part << " in " << server.ready_text();
  EXPECT_EQ(server.get("/readyz").status, 200);
  EXPECT_EQ(json::parse(server.get("/v1/models").body).at("data").at(0).at("id"), "tiny");
  EXPECT_EQ(server.get("/").field("Content-Type"), "text/html; charset=utf-8");
}

TEST(Serve, APromptThatWasThereBeforeComesFromTheCacheWithTheSameAnswer) {
  ServerProcess server, unshared("--no-prefix-sharing");
  const std::string text = "The same beginning of many words that fill more than one block of the cache";
  std::string first;
  for (const bool again : {false, true}) {
    const std::string request = chat_body(text, R"(,"temperature":1,"seed":3,"max_tokens":20)");
    const json::value body = json::parse(server.post("/v1/chat/completions", request).body);
    const std::string answer(body.at("choices").at(0).at("message").at("content").as_string());
    const auto cached =
        body.at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<uint64_t>();
    EXPECT_EQ(cached > 0, again);
    if (first.empty()) first = answer;
    EXPECT_EQ(answer, first);
    const json::value alone = json::parse(unshared.post("/v1/chat/completions", request).body);
    EXPECT_EQ(std::string(alone.at("choices").at(0).at("message").at("content").as_string()), first);
    EXPECT_EQ(alone.at("usage").at("prompt_tokens_details").at("cached_tokens"), 0);
  }
}

TEST(Serve, ThreeModelsInAMemoryForTwoTakeTurns) {
  uint64_t bytes = 0;
  std::string expected;
  const std::string rest = R"(,"temperature":0,"max_tokens":12)";
  {
    ServerProcess alone;
    const json::object status = alone.model_status();
    for (const auto& part : status.at("memory_bytes").as_object())
      bytes += part.value().to_number<uint64_t>();
    expected =
        read_events(alone.post("/v1/chat/completions", chat_body("Hi", rest + R"(,"stream":true)")).body)
            .text;
  }
  const std::string control = (fixture_folder() / "control.sock").string();
  ServerProcess server(
      "--assets DIR/tiny.plow --assets DIR/tiny.plow --served-name a --served-name b --served-name c "
      "--control " +
      control + " --memory " + std::to_string(2 * bytes + bytes / 2));
  EXPECT_EQ(json::parse(server.get("/v1/models").body).at("data").as_array().size(), 3u);
  const auto states = [&] {
    std::string text;
    const json::value status = json::parse(server.get("/status").body);
    for (const json::value& model : status.at("models").as_array())
      text +=
          std::string(model.at("name").as_string()) + " " + std::string(model.at("state").as_string()) + "; ";
    return text;
  };
  EXPECT_EQ(states(), "a ready; b ready; c unloaded; ");
  const auto ask = [&](const std::string& model) {
    const ClientResponse response = server.post(
        "/v1/chat/completions", chat_body("Hi", rest + R"(,"stream":true,"model":")" + model + "\""));
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(read_events(response.body).text, expected);
  };
  ask("b");
  ask("c");
  EXPECT_EQ(states(), "a unloaded; b ready; c ready; ");
  {  // many requests for one that is not there: one load
    std::vector<std::thread> clients;
    for (int i = 0; i < 8; ++i) clients.emplace_back([&] { ask("a"); });
    for (std::thread& client : clients) client.join();
  }
  EXPECT_EQ(states(), "a ready; b unloaded; c ready; ");
  EXPECT_EQ(server.model_status().at("loads"), 2);
  EXPECT_EQ(server.post("/v1/chat/completions", chat_body("Hi", R"(,"model":"d")")).status, 404);
  const auto local = [&](const std::string& command) { return run_program(parse_command(command)).out; };
  EXPECT_EQ(local("plowrt unload --model c --control " + control), "c: unloaded\n");
  EXPECT_EQ(local("plowrt load --model b --control " + control), "b: ready\n");
  EXPECT_EQ(states(), "a ready; b ready; c unloaded; ");
  EXPECT_NE(local("plowrt ps --control " + control).find("unloaded"), std::string::npos);
  const ProgramResult unknown = run_program(parse_command("plowrt load --model d --control " + control));
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_NE(unknown.err.find("no such model"), std::string::npos) << unknown.err;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(control));
}

TEST(Serve, AStreamSaysWhatAWholeAnswerSays) {
  ServerProcess server;
  for (const char* sampling : {R"(,"temperature":0)", R"(,"temperature":1,"seed":5)",
                               R"(,"temperature":1,"seed":6,"stop":["\u00e9","ab","a"])"}) {
    const std::string rest = std::string(sampling) + R"(,"max_tokens":60)";
    const ClientResponse whole = server.post("/v1/chat/completions", chat_body("Hello", rest));
    ASSERT_EQ(whole.status, 200) << whole.body;
    const json::value body = json::parse(whole.body);
    const Streamed streamed = stream_alone(
        server, chat_body("Hello", rest + R"(,"stream":true,"stream_options":{"include_usage":true})"));
    EXPECT_EQ(streamed.text, std::string(body.at("choices").at(0).at("message").at("content").as_string()));
    EXPECT_EQ(streamed.finish_reason, std::string(body.at("choices").at(0).at("finish_reason").as_string()));
    for (const char* count : {"prompt_tokens", "completion_tokens", "total_tokens"})
      EXPECT_EQ(streamed.usage.at(count), body.at("usage").at(count));
    EXPECT_TRUE(streamed.done);
    EXPECT_EQ(streamed.finishes, 1);
    const json::value count = json::parse(server.post("/tokenize", chat_body("Hello", "")).body).at("count");
    EXPECT_EQ(body.at("usage").at("prompt_tokens"), count);
  }
}

TEST(Serve, SixtyFourStreamsAtOnceAreEachWhatTheyAreAlone) {
  ServerProcess server;
  std::vector<std::string> bodies, alone;
  for (int i = 0; i < 64; ++i) {
    const std::string text(static_cast<size_t>(1 + i % 40), static_cast<char>('a' + i % 26));
    bodies.push_back(chat_body(text, R"(,"stream":true,"temperature":1,"max_tokens":)" +
                                         std::to_string(10 + i % 30) + ",\"seed\":" + std::to_string(i)));
    alone.push_back(stream_alone(server, bodies.back()).text);
  }
  std::vector<HttpClient> clients;
  for (const std::string& body : bodies) {
    clients.emplace_back(server.port());
    clients.back().post("/v1/chat/completions", body);
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    const ClientResponse response = clients[i].read();
    ASSERT_EQ(response.status, 200);
    const Streamed streamed = read_events(response.body);
    EXPECT_TRUE(streamed.done);
    EXPECT_EQ(streamed.text, alone[i]) << i;
  }
}

TEST(Serve, ChoicesOfASeedDifferAndComeAgain) {
  ServerProcess server;
  const std::string body = chat_body("Hi", R"(,"n":4,"seed":7,"temperature":1,"max_tokens":20)");
  const auto texts = [&] {
    std::vector<std::string> all;
    const json::value answer = json::parse(server.post("/v1/chat/completions", body).body);
    for (const json::value& choice : answer.at("choices").as_array())
      all.emplace_back(choice.at("message").at("content").as_string());
    return all;
  };
  const auto first = texts();
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(texts(), first);
  for (size_t i = 1; i < 4; ++i) EXPECT_NE(first[i], first[0]);
}

TEST(Serve, ADroppedStreamFreesItsSlotAndItsCache) {
  ServerProcess server;
  const json::object before = server.idle_status();
  {
    std::vector<HttpClient> clients;
    for (int i = 0; i < 32; ++i) {
      clients.emplace_back(server.port());
      clients.back().post("/v1/chat/completions",
                          chat_body("Hello", R"(,"stream":true,"ignore_eos":true,"n":4)"));
    }
    for (HttpClient& client : clients) EXPECT_EQ(client.read(true).status, 200);
  }  // all sockets close
  const json::object after = server.idle_status();
  EXPECT_EQ(after.at("running"), 0);
  EXPECT_EQ(after.at("waiting"), 0);
  EXPECT_EQ(after.at("cache_blocks_free"), before.at("cache_blocks_free"));
  EXPECT_EQ(after.at("cache_blocks_free"), after.at("cache_blocks"));
  // Most of what was asked for was never made: 128 answers of some hundred tokens.
  EXPECT_LT(after.at("answer_tokens").to_number<int>(), 128 * 90);
  const std::string metrics = server.get("/metrics").body;
  EXPECT_NE(metrics.find("plow_http_answers_open 0\n"), std::string::npos);
  EXPECT_NE(metrics.find("plow_requests_running 0\n"), std::string::npos);
  EXPECT_TRUE(stream_alone(server, chat_body("Hello", R"(,"stream":true)")).done);
}

TEST(Serve, AFullQueueIsRefusedWithRetryAfterAndWhatWasTakenIsAnswered) {
  ServerProcess server("--queue 4");
  std::vector<HttpClient> clients;
  for (int i = 0; i < 100; ++i) {
    clients.emplace_back(server.port());
    clients.back().post("/v1/chat/completions", chat_body("Hello", R"(,"n":3,"ignore_eos":true)"));
  }
  int full = 0, answered = 0;
  for (HttpClient& client : clients) {
    const ClientResponse response = client.read();
    if (response.status == 503) {
      ++full;
      EXPECT_GE(std::atoi(response.field("Retry-After").c_str()), 1);
      EXPECT_EQ(json::parse(response.body).at("error").at("code"), "queue_full");
    } else {
      EXPECT_EQ(response.status, 200);
      EXPECT_EQ(json::parse(response.body).at("choices").as_array().size(), 3u);
      ++answered;
    }
  }
  EXPECT_GT(full, 0);
  EXPECT_GT(answered, 0);
  EXPECT_NE(server.get("/metrics")
                .body.find("plow_shed_total{reason=\"queue_full\"} " + std::to_string(full) + "\n"),
            std::string::npos);
  // More than can ever wait is the request's own fault.
  EXPECT_EQ(server.post("/v1/chat/completions", chat_body("Hello", R"(,"n":7)")).status, 400);
}

TEST(Serve, SigtermFinishesWhatRunsAndTakesNoMore) {
  ServerProcess server;
  std::vector<HttpClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(server.port());
    clients.back().post(
        "/v1/chat/completions",
        chat_body("Hello",
                  R"(,"stream":true,"ignore_eos":true,"n":5,"stream_options":{"include_usage":true})"));
  }
  for (HttpClient& client : clients) ASSERT_EQ(client.read(true).status, 200);
  HttpClient probe(server.port());
  server.signal(SIGTERM);
  int ready = 200;
  for (int i = 0; i < 3000 && ready == 200; ++i) {
    probe.get("/readyz");
    ready = probe.read().status;
  }
  EXPECT_EQ(ready, 503);
  const ClientResponse refused = server.post("/v1/chat/completions", chat_body("Hello", ""));
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.field("Retry-After"), "");
  EXPECT_EQ(server.get("/healthz").status, 200);
  for (HttpClient& client : clients) {
    ClientResponse response;
    response.head = "\r\nTransfer-Encoding: chunked\r\n";
    client.read_body(response);
    const Streamed streamed = read_events(response.body);
    EXPECT_TRUE(streamed.done && response.whole);
    EXPECT_EQ(streamed.finishes, 5);
  }
  EXPECT_EQ(server.wait(), 0) << server.log();
}

TEST(Serve, WhatIsLeftAtTheDeadlineIsToldSo) {
  ServerProcess server("--drain-seconds 0");
  std::vector<HttpClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(server.port());
    clients.back().post("/v1/chat/completions",
                        chat_body("Hello", R"(,"stream":true,"ignore_eos":true,"n":5)"));
  }
  for (HttpClient& client : clients) ASSERT_EQ(client.read(true).status, 200);
  server.signal(SIGTERM);
  int told = 0;
  for (HttpClient& client : clients) {
    ClientResponse response;
    response.head = "\r\nTransfer-Encoding: chunked\r\n";
    client.read_body(response);
    const Streamed streamed = read_events(response.body);
    EXPECT_TRUE(streamed.done);
    if (streamed.error.is_object()) told += streamed.error.at("code") == "shutting_down" ? 1 : 0;
  }
  EXPECT_GT(told, 0);
  EXPECT_EQ(server.wait(), 0);
}

TEST(Serve, HostileRequestsGetErrorsAndNeighboursDoNotNotice) {
  ServerProcess server;
  const std::string fine = chat_body("Hello", R"(,"stream":true,"temperature":1,"seed":3,"max_tokens":40)");
  const std::string alone = stream_alone(server, fine).text;
  std::vector<HttpClient> half_open;
  for (int i = 0; i < 20; ++i) {
    half_open.emplace_back(server.port());
    half_open.back().send(i % 2 == 0 ? "POST /v1/chat/completions HTTP/1.1\r\nContent-Le" : "");
  }
  HttpClient neighbour(server.port());
  neighbour.post("/v1/chat/completions", fine);
  const auto status = [&](const std::string& body) {
    return server.post("/v1/chat/completions", body).status;
  };
  EXPECT_EQ(status(""), 400);
  EXPECT_EQ(status("{"), 400);
  EXPECT_EQ(status(std::string(200'000, '[')), 400);
  EXPECT_EQ(status("{\"messages\":[{\"role\":\"user\",\"content\":\"caf\xe9\"}]}"), 400);
  EXPECT_EQ(status(R"({"messages":[{"role":"user","content":"\ud800"}]})"), 400);
  EXPECT_EQ(status(std::string(1, '\xff')), 400);
  EXPECT_EQ(status(chat_body(std::string(500, 'a'), R"(,"stream":true)")), 400);
  EXPECT_EQ(status(chat_body("a", R"(,"max_tokens":1e18)")), 400);
  for (const char* bytes :
       {"\x16\x03\x01\x02\x01\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\xff HTTP/1.1\r\n\r\n"}) {
    HttpClient client(server.port());
    client.send(bytes);
    EXPECT_GE(client.read().status, 400);
  }
  HttpClient large(server.port());
  large.send("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n");
  EXPECT_EQ(large.read().status, 413);
  const Streamed streamed = read_events(neighbour.read().body);
  EXPECT_TRUE(streamed.done);
  EXPECT_EQ(streamed.text, alone);
  EXPECT_EQ(server.get("/readyz").status, 200);
}

TEST(Serve, AClientThatReadsLateGetsAllOfItsAnswer) {
  ServerProcess server;
  const std::string body = chat_body("Hello", R"(,"stream":true,"ignore_eos":true,"n":40,"logprobs":true)");
  HttpClient slow(server.port(), 4096);
  slow.post("/v1/chat/completions", body);
  server.idle_status();  // all tokens are made; what the buffers do not take waits in the server
  const ClientResponse response = slow.read();
  const Streamed streamed = read_events(response.body);
  EXPECT_GT(response.body.size(), size_t{1} << 20) << "not more than the buffers hold";
  EXPECT_TRUE(response.whole && streamed.done);
  EXPECT_EQ(streamed.finishes, 40);
}

// The model is random, so only the mask can make this so.
TEST(Serve, AStructuredAnswerIsWhatWasAskedFor) {
  ServerProcess server;
  const auto answer = [&](int seed, const std::string& rest) {
    const std::string sampling = R"(,"temperature":1.5,"seed":)" + std::to_string(seed);
    const ClientResponse response = server.post("/v1/chat/completions", chat_body("Hi", sampling + rest));
    EXPECT_EQ(response.status, 200) << response.body;
    const json::value choice = json::parse(response.body).at("choices").at(0);
    EXPECT_EQ(choice.at("finish_reason"), "stop") << response.body;
    return std::string(choice.at("message").at("content").as_string());
  };
  const std::string schema =
      R"({"type":"object","properties":{"a":{"enum":["x","yy"]},"n":{"type":"integer","minimum":-9,"maximum":99},
          "l":{"type":"array","items":{"type":"boolean"},"maxItems":2}},"required":["a","n"],"additionalProperties":false})";
  for (int seed = 0; seed < 8; ++seed) {
    const std::string text =
        answer(seed, R"(,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":)" +
                         schema + "}}");
    const json::value value = json::parse(text);
    EXPECT_TRUE(value.at("a") == "x" || value.at("a") == "yy") << text;
    EXPECT_LE(std::abs(value.at("n").to_number<int>()), 99) << text;
    const std::string choice = answer(seed, R"(,"structured_outputs":{"choice":["yes","no"]})");
    EXPECT_TRUE(choice == "yes" || choice == "no") << choice;
    const std::string digits = answer(seed, R"(,"guided_regex":"[0-9]{3}-[a-f]")");
    EXPECT_EQ(digits.size(), 5u);
    EXPECT_EQ(digits[3], '-');
  }
}

TEST(Serve, AStructureThatIsNoneIsRefusedAtOnceAndNeighboursDoNotNotice) {
  ServerProcess server;
  const std::string fine = chat_body("Hello", R"(,"stream":true,"temperature":1,"seed":3,"max_tokens":40)");
  const std::string alone = stream_alone(server, fine).text;
  HttpClient neighbour(server.port());
  neighbour.post("/v1/chat/completions", fine);
  const std::string many =
      R"(,"grammar":"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"","temperature":0)";
  for (const std::string& bad :
       {std::string(R"(,"guided_regex":"[")"),
        std::string(R"(,"guided_regex":"((a{1000}){1000}){1000}(b{99999}){2}b{99999}")"),
        std::string(R"(,"guided_json":{"type":"thing"})"), std::string(R"(,"guided_json":{"$ref":"#"})")}) {
    const ClientResponse response = server.post("/v1/chat/completions", chat_body("Hi", bad));
    EXPECT_EQ(response.status, 400) << bad;
    EXPECT_NE(json::parse(response.body).at("error").at("param"), json::value()) << response.body;
  }
  // A grammar that is read in more and more ways fails its own answer, if it fails at all.
  EXPECT_NE(server.post("/v1/chat/completions", chat_body("Hi", many)).status, 0);
  EXPECT_EQ(read_events(neighbour.read().body).text, alone);
  EXPECT_EQ(server.get("/readyz").status, 200);
}

TEST(Serve, AStreamThatIsCancelledLeavesTheOthersAsTheyAre) {
  ServerProcess server;
  const std::string body =
      chat_body("Hello", R"(,"stream":true,"temperature":1,"seed":5,"ignore_eos":true,"max_tokens":60)");
  const std::string alone = stream_alone(server, body).text;
  for (int round = 0; round < 5; ++round) {
    HttpClient leaves(server.port()), stays(server.port());
    leaves.post("/v1/chat/completions", body);
    stays.post("/v1/chat/completions", body);
    ClientResponse begun = leaves.read(true);
    for (int chunk = 0; chunk <= round; ++chunk) leaves.read_chunk(begun);
    leaves.drop();
    EXPECT_EQ(read_events(stays.read().body).text, alone) << round;
  }
  EXPECT_EQ(server.idle_status().at("running"), 0);
}

TEST(Serve, AKilledServerServesAgainWithTheSameAnswers) {
  const std::string body = chat_body("Hello", R"(,"temperature":1,"seed":11,"max_tokens":30)");
  std::string first;
  uint16_t port = 0;
  {
    ServerProcess server;
    port = server.port();
    first = json::serialize(json::parse(server.post("/v1/chat/completions", body).body).at("choices"));
    HttpClient open(port);
    open.post("/v1/chat/completions", chat_body("Hello", R"(,"stream":true,"ignore_eos":true,"n":20)"));
    EXPECT_EQ(open.read(true).status, 200);
    server.signal(SIGKILL);
    EXPECT_EQ(server.wait(), 128 + SIGKILL);
  }
  ServerProcess again("--port " + std::to_string(port));  // the same port, at once
  EXPECT_EQ(again.port(), port);
  EXPECT_EQ(json::serialize(json::parse(again.post("/v1/chat/completions", body).body).at("choices")), first);
}

TEST(Serve, ABundleThatVanishesWhileItIsServedIsNotMissed) {
  std::filesystem::copy(fixture_folder() / "tiny.plow", fixture_folder() / "vanishes.plow");
  ServerProcess server("", "", "vanishes.plow");
  const std::string body = chat_body("Hello", R"(,"max_tokens":20)");
  const json::value before = json::parse(server.post("/v1/chat/completions", body).body).at("choices");
  std::filesystem::remove_all(fixture_folder() / "vanishes.plow");
  EXPECT_EQ(json::parse(server.post("/v1/chat/completions", body).body).at("choices"), before);
  const ProgramResult second = run_program(parse_command("plowrt serve --assets DIR/vanishes.plow --port 0"));
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_NE(second.err.find("vanishes.plow"), std::string::npos) << second.err;
}

TEST(Serve, AKeyIsAskedForAndNotLogged) {
  ServerProcess server("", "s3cret");
  EXPECT_EQ(server.get("/v1/models").status, 401);
  EXPECT_EQ(server.get("/healthz").status, 200);
  EXPECT_EQ(server.get("/v1/models", "Authorization: Bearer s3cret\r\n").status, 200);
  EXPECT_EQ(server.log().find("s3cret"), std::string::npos);
}

TEST(Serve, TheLogHasNoPromptsAndCanBeJson) {
  ServerProcess server("--log-json");
  server.post("/v1/chat/completions", chat_body("xylophone", R"(,"max_tokens":3)"));
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 0);
  const std::string log = server.log();
  EXPECT_EQ(log.find("xylophone"), std::string::npos);
  bool found = false;
  for (size_t at = 0; at < log.size();) {
    const size_t end = log.find('\n', at);
    const json::value line = json::parse(log.substr(at, end - at));
    found |= line.at("event") == "request" && line.at("status") == 200 && line.at("answer_tokens") == 3;
    at = end + 1;
  }
  EXPECT_TRUE(found) << log;
}

TEST(Serve, BenchStartupTimesServersThatItStartsAndEnds) {
  const ProgramResult result = run_program(
      parse_command("plowrt bench startup --assets DIR/tiny.plow --runs 2 --requests 3 --warm-only --json"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json::object figures = json::parse(result.out).as_object();
  EXPECT_FALSE(figures.contains("on_disk"));
  const json::object& warm = figures.at("in_memory").as_object();
  const auto of = [&](const char* key, const char* which) { return warm.at(key).at(which).as_double(); };
  for (const char* key : {"ready", "first_token", "first_request", "last_request"}) {
    EXPECT_GT(of(key, "least_ms"), 0) << key;
    EXPECT_LE(of(key, "least_ms"), of(key, "median_ms")) << key;
    EXPECT_LE(of(key, "median_ms"), of(key, "most_ms")) << key;
  }
  EXPECT_LT(of("ready", "least_ms") + of("first_request", "least_ms"), of("first_token", "most_ms") + 1);
}

TEST(Serve, PsSaysWhatAServerDoes) {
  ServerProcess server;
  const std::string port = std::to_string(server.port());
  const ProgramResult ps = run_program(parse_command("plowrt ps --port " + port));
  EXPECT_EQ(ps.exit_code, 0) << ps.err;
  EXPECT_NE(ps.out.find("tiny"), std::string::npos);
  EXPECT_NE(ps.out.find("ready"), std::string::npos);
  server.signal(SIGTERM);
  server.wait();
  EXPECT_EQ(run_program(parse_command("plowrt ps --port " + port)).exit_code, 3);
}

TEST(Serve, ATakenPortIsAnErrorBeforeTheModelIsRead) {
  ServerProcess server;
  const ProgramResult second = run_program(
      parse_command("plowrt serve --assets DIR/tiny.plow --port " + std::to_string(server.port())));
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_NE(second.err.find("--port"), std::string::npos) << second.err;
}

}  // namespace
}  // namespace plow
