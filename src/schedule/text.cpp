// The text form of a schedule:
//
//   schedule workers 2 counters 40 arena 65536 ns 1234.5 rows 16 samples 16 row_tiles 16 16
//   buffer %12 offset 0 bytes 4096 row_stride 256
//   worker 0
//   task op 3 tiles 0 18 rows 0 1 ns 10 20
//   wait 4 a 0 b 2 rows T row
//   signal 5 all
//   task leave rows 0 1 ns 20 20

#include "base/word_reader.h"
#include "schedule/schedule.h"

namespace plow {

namespace {

void print_task(const Schedule& schedule, const OpGraph& graph, const TileGraph& tiles, const Task& task, std::string& text) {
  if (task.op.valid()) {
    text += fmt::format("task op {} tiles {} {}", task.op.value, task.first_tile, task.n_tiles);
  } else {
    text += fmt::format("task {}", op_name(task.protocol));
  }
  text += fmt::format(" rows {} {} ns {:.17g} {:.17g}", task.row_first, task.row_stride, task.start_ns, task.end_ns);
  if (task.op.valid()) {
    const NodeId node = tiles.ops[task.op.value].from;
    text += fmt::format("  # %{} {}", node.value, op_name(graph.node(node).op));
  }
  text += "\n";
  for (uint32_t i = 0; i < task.n_waits; ++i) {
    const Wait& wait = schedule.waits[task.first_wait + i];
    text += fmt::format("wait {} a {} b {} rows {} {}\n", wait.counter, wait.per_row_tile, wait.constant, rows_name(wait.rows),
                        wait.band == Band::kRow ? "row" : "all");
  }
  for (uint32_t i = 0; i < task.n_signals; ++i) {
    const Signal& signal = schedule.signals[task.first_signal + i];
    text += fmt::format("signal {} {}\n", signal.counter, signal.band == Band::kRow ? "row" : "all");
  }
}

bool parse_header(WordReader& words, Schedule& schedule) {
  words.expect("workers");
  schedule.n_workers = words.number();
  words.expect("counters");
  schedule.n_counters = words.number();
  words.expect("arena");
  schedule.arena_bytes = words.number64();
  words.expect("ns");
  schedule.predicted_ns = words.real();
  words.expect("rows");
  schedule.shape.max_rows = words.number();
  words.expect("samples");
  schedule.shape.max_samples = words.number();
  words.expect("row_tiles");
  schedule.shape.token_row_tile = words.number();
  schedule.shape.sample_row_tile = words.number();
  return words.ok();
}

bool parse_buffer(WordReader& words, Schedule& schedule) {
  Buffer buffer;
  buffer.node = NodeId(words.number_after('%'));
  words.expect("offset");
  buffer.offset = words.number64();
  words.expect("bytes");
  buffer.bytes = words.number64();
  words.expect("row_stride");
  buffer.row_stride = words.number();
  schedule.buffers.push_back(buffer);
  return words.ok();
}

bool parse_task(WordReader& words, Schedule& schedule) {
  Task task;
  task.worker = static_cast<uint32_t>(schedule.task_begin.size()) - 1;
  task.first_wait = static_cast<uint32_t>(schedule.waits.size());
  task.first_signal = static_cast<uint32_t>(schedule.signals.size());
  const std::string_view kind = words.word();
  if (kind == "op") {
    task.op = TileOpId(words.number());
    words.expect("tiles");
    task.first_tile = words.number();
    task.n_tiles = words.number();
  } else if (kind == "leave") {
    task.protocol = Op::kLeave;
  } else if (kind == "clear_bank") {
    task.protocol = Op::kClearBank;
  } else if (kind == "advance") {
    task.protocol = Op::kAdvance;
  } else {
    return false;
  }
  words.expect("rows");
  task.row_first = words.number();
  task.row_stride = words.number();
  words.expect("ns");
  task.start_ns = words.real();
  task.end_ns = words.real();
  schedule.tasks.push_back(task);
  return words.ok() && !schedule.task_begin.empty();
}

bool parse_wait(WordReader& words, Schedule& schedule) {
  if (schedule.tasks.empty()) return false;
  Wait wait{};
  wait.counter = words.number();
  words.expect("a");
  wait.per_row_tile = words.number();
  words.expect("b");
  wait.constant = words.number();
  words.expect("rows");
  const std::string_view rows = words.word();
  wait.rows = rows == "T" ? Rows::kTokens : rows == "S" ? Rows::kSamples : Rows::kFixed;
  const std::string_view band = words.word();
  wait.band = band == "row" ? Band::kRow : Band::kNone;
  schedule.waits.push_back(wait);
  ++schedule.tasks.back().n_waits;
  return words.ok() && (band == "row" || band == "all");
}

bool parse_signal(WordReader& words, Schedule& schedule) {
  if (schedule.tasks.empty()) return false;
  Signal signal{};
  signal.counter = words.number();
  const std::string_view band = words.word();
  signal.band = band == "row" ? Band::kRow : Band::kNone;
  schedule.signals.push_back(signal);
  ++schedule.tasks.back().n_signals;
  return words.ok() && (band == "row" || band == "all");
}

}  // namespace

std::string print_schedule(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule) {
  std::string text = fmt::format("schedule workers {} counters {} arena {} ns {:.17g} rows {} samples {} row_tiles {} {}\n",
                                 schedule.n_workers, schedule.n_counters, schedule.arena_bytes, schedule.predicted_ns,
                                 schedule.shape.max_rows, schedule.shape.max_samples, schedule.shape.token_row_tile,
                                 schedule.shape.sample_row_tile);
  for (const Buffer& buffer : schedule.buffers) {
    text += fmt::format("buffer %{} offset {} bytes {} row_stride {}\n", buffer.node.value, buffer.offset, buffer.bytes, buffer.row_stride);
  }
  for (uint32_t w = 0; w < schedule.n_workers; ++w) {
    text += fmt::format("worker {}\n", w);
    for (uint32_t t = schedule.task_begin[w]; t < schedule.task_begin[w + 1]; ++t) print_task(schedule, graph, tiles, schedule.tasks[t], text);
  }
  return text;
}

Result<Schedule> parse_schedule(std::string_view text) {
  Schedule schedule;
  schedule.n_workers = 0;
  for (LineReader lines(text); lines.next();) {
    WordReader words(lines.line().substr(0, lines.line().find("  #")));
    const std::string_view kind = words.word();
    bool ok = true;
    if (kind == "schedule") {
      ok = parse_header(words, schedule);
    } else if (kind == "buffer") {
      ok = parse_buffer(words, schedule);
    } else if (kind == "worker") {
      ok = words.number() == schedule.task_begin.size();
      schedule.task_begin.push_back(static_cast<uint32_t>(schedule.tasks.size()));
    } else if (kind == "task") {
      ok = parse_task(words, schedule);
    } else if (kind == "wait") {
      ok = parse_wait(words, schedule);
    } else if (kind == "signal") {
      ok = parse_signal(words, schedule);
    } else if (!kind.empty()) {
      ok = false;
    }
    if (!ok) return input_error("schedule text: bad line: " + std::string(lines.line()));
  }
  schedule.task_begin.push_back(static_cast<uint32_t>(schedule.tasks.size()));
  return schedule;
}

}  // namespace plow
