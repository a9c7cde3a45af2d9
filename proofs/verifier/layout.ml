(* What the decoder takes the layout of the bundle's records for, one field a line, and the numbers that mean something to it.
   Compared with what the C++ compiler says. *)
open Plow

let fields = [
  "BundleHeader.magic", header_magic; "BundleHeader.abi_version", header_abi_version; "BundleHeader.n_workers", header_workers; "BundleHeader.n_sections", header_n_sections;
  "BundleHeader.file_bytes", header_file_bytes; "BundleHeader.tape_bytes", header_tape_bytes;
  "BundleHeader.sections", header_sections;
  "Section.kind", section_kind; "Section.count", section_count; "Section.offset", section_offset;
  "ProgramEntry.max_rows", program_max_rows; "ProgramEntry.max_samples", program_max_samples;
  "ProgramEntry.token_row_tile", program_token_tile; "ProgramEntry.sample_row_tile", program_sample_tile;
  "ProgramEntry.first_packet", program_first_packet; "ProgramEntry.n_packets", program_n_packets;
  "ProgramEntry.first_wait", program_first_wait; "ProgramEntry.n_waits", program_n_waits;
  "ProgramEntry.first_signal", program_first_signal; "ProgramEntry.n_signals", program_n_signals;
  "ProgramEntry.first_tensor", program_first_tensor; "ProgramEntry.n_tensors", program_n_tensors;
  "ProgramEntry.n_counters", program_n_counters; "ProgramEntry.arena_bytes", program_arena_bytes;
  "WorkerEntry.first_packet", worker_first_packet; "WorkerEntry.n_packets", worker_n_packets;
  "Packet.body", packet_body; "Packet.row_kind", packet_row_kind; "Packet.n_waits", packet_n_waits;
  "Packet.n_signals", packet_n_signals; "Packet.col_first", packet_col_first; "Packet.col_count", packet_col_count;
  "Packet.col_stride", packet_col_stride; "Packet.row_first", packet_row_first; "Packet.row_stride", packet_row_stride;
  "Packet.operand", packet_operands; "Packet.wait_first", packet_first_wait; "Packet.signal_first", packet_first_signal;
  "Packet.immediate", packet_immediates; "Packet.tile_cols", packet_tile_cols;
  "Wait.counter", wait_counter; "Wait.per_row_tile", wait_per_tile; "Wait.constant", wait_constant;
  "Wait.rows", wait_rows; "Wait.band", wait_band;
  "Signal.counter", signal_counter; "Signal.band", signal_band;
  "TensorEntry.offset", tensor_offset; "TensorEntry.bytes", tensor_bytes; "TensorEntry.rows", tensor_rows;
  "TensorEntry.cols", tensor_cols; "TensorEntry.row_stride", tensor_row_stride; "TensorEntry.kv_group", tensor_kv_group;
  "TensorEntry.dtype", tensor_dtype; "TensorEntry.row_kind", tensor_row_kind; "TensorEntry.space", tensor_space;
  "TensorEntry.layout", tensor_layout;
  "KvGroup.block_tokens", group_block_tokens; "KvGroup.block_bytes", group_block_bytes;
]

let sizes = [
  "BundleHeader", header_size; "Section", section_size; "ProgramEntry", program_size; "WorkerEntry", worker_size;
  "Packet", packet_size; "Wait", wait_size; "Signal", signal_size; "TensorEntry", tensor_size; "KvGroup", group_size;
]

(* The number that a decoder of numbers takes for a value. *)
let number_of decode value =
  let rec find n = if n > 255 then -1 else if decode n = Some value then n else find (n + 1) in
  find 0

let numbers = [
  "kAbiVersion", abi_version; "kNoTensor", absent;
  "SectionKind::kPrograms", kPrograms; "SectionKind::kWorkers", kWorkers; "SectionKind::kPackets", kPackets;
  "SectionKind::kWaits", kWaits; "SectionKind::kSignals", kSignals; "SectionKind::kTensors", kTensors;
  "SectionKind::kKvGroups", kGroups;
  "Space::kTape", number_of decode_space Tape; "Space::kArena", number_of decode_space Arena;
  "Space::kKv", number_of decode_space Cache; "Space::kStep", number_of decode_space Column;
  "Band::kNone", number_of decode_band false; "Band::kRow", number_of decode_band true;
  "StepColumn::kSampled", Big_int_Z.int_of_big_int sampled_column;
  (* Rows and layouts are plain numbers in Memory.v and Verify.v. *)
  "Rows::kFixed", 0; "Rows::kTokens", 1; "Rows::kSamples", 2;
  "Layout::kRowMajor", 1; "Layout::kRows16Pairs", 2; "Layout::kKvBlocks", 3; "Layout::kAtoms8x128", 4; "Layout::kKvRows", 5; "Layout::kRows16Blocks", 6;
  "Op::kLeave", op_leave; "Op::kClearBank", op_clear; "Op::kAdvance", op_advance;
]

(* The names of the numbers in Footprint.v. *)
let operators = [
  16, "embed"; 17, "scale"; 18, "rms_norm"; 19, "linear"; 20, "bias_add"; 21, "rope_table"; 22, "rope"; 23, "kv_append";
  24, "attention"; 25, "add"; 26, "glu"; 27, "gather_rows"; 28, "soft_cap"; 29, "sample"; 30, "linear_add"; 31, "linear_part";
  32, "norm_linear"; 33, "glu_linear"; 34, "norm_glu_linear"; 35, "linear_bias"; 36, "norm_linear_bias"; 37, "norm_rope";
  38, "rope_kv_append"; 39, "norm_rope_kv_append"; 40, "rope_attention"; 41, "norm_rope_attention"; 42, "norm_add"; 43, "attention_part"; 44, "attention_merge";
]

let print () =
  List.iter (fun (name, n) -> Printf.printf "%s %d\n" name n) sizes;
  List.iter (fun (name, f) -> Printf.printf "%s %d %d\n" name f.f_at f.f_bytes) fields;
  List.iter (fun (name, n) -> Printf.printf "%s = %d\n" name n) numbers;
  Printf.printf "kBundleMagic = %s\n" (Big_int_Z.string_of_big_int magic);
  for n = 0 to 15 do
    Printf.printf "bytes of DType %d = %s\n" n (match decode_element n with Some b -> Big_int_Z.string_of_big_int b | None -> "0")
  done;
  for n = 0 to 239 do
    if arity n > 0 then Printf.printf "operator %d = %s\n" n (Option.value (List.assoc_opt n operators) ~default:"?")
  done
