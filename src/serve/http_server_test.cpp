#include "serve/http_server.h"

#include "serve/testing/http_client.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace plow {
namespace {

using namespace std::chrono_literals;

// Answers GET and POST with what was asked, keeps exchanges of /hold, and streams /stream without end.
class TestHandler : public HttpHandler {
 public:
  std::optional<HttpResponse> check_head(const HttpRequest& head) override {
    if (head.path != "/early") return {};
    return HttpResponse{401, "text/plain", {}, "early"};
  }
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) override {
    if (request.path == "/hold" || request.path == "/stream") {
      exchange->post([this, exchange, stream = request.path == "/stream"] { hold(exchange, stream); });
      return;
    }
    exchange->post(
        [exchange, text = request.method + " " + request.path + "?" + request.query + " " + request.body] {
          exchange->respond({200, "text/plain", {{"X-Test", "1"}}, text});
        });
  }
  HttpResponse refuse(int status, const std::string& why) override { return {status, "text/plain", {}, why}; }

  // Waits until `count` is at least n.
  void await(int TestHandler::*count, int n) {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 60s, [&] { return this->*count >= n; }));
  }
  std::shared_ptr<HttpExchange> held() {
    const std::lock_guard lock(mutex);
    return exchanges.front();
  }

  void forget() {
    const std::lock_guard lock(mutex);
    exchanges.clear();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<HttpExchange>> exchanges;
  int n_held = 0, n_gone = 0, n_stalled = 0, n_room = 0;

 private:
  void hold(const std::shared_ptr<HttpExchange>& exchange, bool stream) {
    const auto count = [this](int TestHandler::*counter) {
      const std::lock_guard lock(mutex);
      ++(this->*counter);
      changed.notify_all();
    };
    const std::weak_ptr weak = exchange;
    const auto fill = [weak] {
      const auto e = weak.lock();
      while (e && e->unsent() < kStreamRoom) e->send(std::string(4096, 'x'));
    };
    exchange->listen({[count, fill, stream] {
                        count(&TestHandler::n_room);
                        if (stream) fill();
                      },
                      [count, weak] {
                        count(&TestHandler::n_stalled);
                        if (const auto e = weak.lock()) {
                          e->send("too slow");
                          e->end();
                        }
                      },
                      [count] { count(&TestHandler::n_gone); }});
    if (stream) {
      exchange->begin_stream({});
      fill();
    }
    {
      const std::lock_guard lock(mutex);
      exchanges.push_back(exchange);
    }
    count(&TestHandler::n_held);
  }
};

class HttpServerTest : public testing::Test {
 protected:
  void open(HttpServerOptions options = {}) {
    options.port = 0;
    auto server = HttpServer::open(options);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_.emplace(std::move(*server));
    server_->start(handler_);
  }
  HttpClient client(int receive_bytes = 0) { return HttpClient(server_->port(), receive_bytes); }
  ~HttpServerTest() override {
    if (server_) server_->stop();
    handler_.exchanges.clear();  // they live in the server
  }

  TestHandler handler_;
  std::optional<HttpServer> server_;
};

TEST_F(HttpServerTest, AConnectionCarriesManyRequests) {
  open();
  HttpClient c = client();
  for (int i = 0; i < 3; ++i) {
    c.get("/a?b=c");
    ClientResponse response = c.read();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "GET /a?b=c ");
    EXPECT_EQ(response.field("x-test"), "1");
    c.post("/p", "body");
    EXPECT_EQ(c.read().body, "POST /p? body");
  }
  c.get("/1");
  c.get("/2");  // sent ahead
  EXPECT_EQ(c.read().body, "GET /1? ");
  EXPECT_EQ(c.read().body, "GET /2? ");
  c.send("HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(c.read(true).status, 200);
  c.get("/after");
  EXPECT_EQ(c.read().body, "GET /after? ");
}

TEST_F(HttpServerTest, HttpOneZeroAndCloseEndTheConnection) {
  open();
  HttpClient old = client();
  old.send("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.read().body, "GET /old? ");
  EXPECT_FALSE(old.more());
  HttpClient close = client();
  close.get("/c", "Connection: close\r\n");
  EXPECT_EQ(close.read().body, "GET /c? ");
  EXPECT_FALSE(close.more());
}

TEST_F(HttpServerTest, ABodyIsAskedForWhenTheClientWaits) {
  open();
  HttpClient c = client();
  c.send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(c.more());
  c.send("ab");
  EXPECT_EQ(c.read().body, "POST /p? ab");
}

TEST_F(HttpServerTest, WhatIsNotHttpOrTooLargeIsRefused) {
  HttpServerOptions options;
  options.header_bytes = 1024;
  options.body_bytes = 1000;
  open(options);
  const auto status = [&](const std::string& bytes) {
    HttpClient c = client();
    c.send(bytes);
    const ClientResponse response = c.read();
    EXPECT_FALSE(c.more()) << "still open after " << response.status;
    return response.status;
  };
  EXPECT_EQ(status("garbage\r\n\r\n"), 400);
  EXPECT_EQ(status(std::string("\0\1\2\3\r\n\r\n", 8)), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nBad Header\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA: " + std::string(2000, 'a') + "\r\n\r\n"), 431);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n"), 413);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"), 400);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'a') +
                   "\r\n0\r\n\r\n"),
            413);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 400);
  EXPECT_EQ(status("POST /early HTTP/1.1\r\nContent-Length: 900\r\n\r\npart"), 401);
  HttpClient c = client();
  c.get("/fine");
  EXPECT_EQ(c.read().status, 200);
}

TEST_F(HttpServerTest, ClientsThatSayNothingAreCutAndOthersDoNotNotice) {
  HttpServerOptions options;
  options.header_time = 300ms;
  options.body_time = 300ms;
  open(options);
  std::vector<HttpClient> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(client());
  for (size_t i = 0; i < silent.size(); ++i) {
    if (i % 3 == 1) silent[i].send("GET / HTT");
    if (i % 3 == 2) silent[i].send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");
  }
  HttpClient c = client();
  c.get("/fine");
  EXPECT_EQ(c.read().status, 200);
  for (HttpClient& each : silent) EXPECT_FALSE(each.more());
}

TEST_F(HttpServerTest, AClientThatLeavesIsNoticedWhileItsAnswerIsMade) {
  open();
  {
    HttpClient c = client();
    c.post("/hold", "x");
    handler_.await(&TestHandler::n_held, 1);
  }
  handler_.await(&TestHandler::n_gone, 1);
  // What is written now goes nowhere, and harms nothing.
  handler_.held()->post([e = handler_.held()] { e->respond({}); });
  HttpClient next = client();
  next.get("/fine");
  EXPECT_EQ(next.read().status, 200);
}

TEST_F(HttpServerTest, AStreamWaitsForItsReader) {
  open();
  HttpClient c = client(4096);
  c.get("/stream");
  ClientResponse response = c.read(true);
  handler_.await(&TestHandler::n_held, 1);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(c.read_chunk(response));
  EXPECT_EQ(response.body, std::string(200 * 4096, 'x'));
  handler_.await(&TestHandler::n_room, 1);
}

TEST_F(HttpServerTest, AStalledReaderIsToldAndThenCut) {
  HttpServerOptions options;
  options.stall_time = 500ms;
  open(options);
  HttpClient c = client(4096);
  c.get("/stream");
  handler_.await(&TestHandler::n_stalled, 1);
  ClientResponse response = c.read();  // reads on in time: the end arrives
  EXPECT_TRUE(response.whole);
  EXPECT_TRUE(response.body.ends_with("too slow"));
  HttpClient never = client(4096);
  never.get("/stream");
  handler_.await(&TestHandler::n_stalled, 2);
  handler_.forget();
  EXPECT_TRUE(server_->finish(60s)) << "a client that never reads holds its exchange";
}

TEST_F(HttpServerTest, ASilentStreamGetsAComment) {
  HttpServerOptions options;
  options.ping_time = 200ms;
  open(options);
  HttpClient c = client();
  c.get("/hold");
  handler_.await(&TestHandler::n_held, 1);
  handler_.held()->post([e = handler_.held()] { e->begin_stream({}); });
  ClientResponse response = c.read(true);
  ASSERT_TRUE(c.read_chunk(response));
  EXPECT_EQ(response.body, ": ping\n\n");
  handler_.held()->post([e = handler_.held()] {
    e->send("data");
    e->end();
  });
  c.read_body(response);
  EXPECT_TRUE(response.whole);
  EXPECT_TRUE(response.body.ends_with("data"));
}

TEST_F(HttpServerTest, FinishingWaitsForExchangesAndTakesNoMore) {
  open();
  HttpClient c = client();
  c.get("/hold");
  handler_.await(&TestHandler::n_held, 1);
  EXPECT_FALSE(server_->finish(0ms));
  EXPECT_FALSE(client().more());
  handler_.held()->post([e = handler_.held()] { e->respond({200, "text/plain", {}, "last"}); });
  const ClientResponse response = c.read();
  EXPECT_EQ(response.body, "last");
  EXPECT_EQ(response.field("Connection"), "close");
  handler_.forget();
  EXPECT_TRUE(server_->finish(60s));
}

TEST_F(HttpServerTest, TooManyConnectionsAreRefused) {
  HttpServerOptions options;
  options.connections = 2;
  open(options);
  HttpClient a = client(), b = client();
  a.get("/a");
  EXPECT_EQ(a.read().status, 200);
  b.get("/b");
  EXPECT_EQ(b.read().status, 200);
  EXPECT_EQ(client().read().status, 503);
}

TEST_F(HttpServerTest, AnAddressThatIsTakenIsAnError) {
  open();
  HttpServerOptions options;
  options.port = server_->port();
  const auto second = HttpServer::open(options);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("--port"), std::string::npos);
}

}  // namespace
}  // namespace plow
