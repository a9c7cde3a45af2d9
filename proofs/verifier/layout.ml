(* What the decoder takes the layout of the bundle's records for, one field a line. Compared with the C++ compiler's offsets. *)
open Plow

let fields = [
  "BundleHeader.n_workers", header_workers; "BundleHeader.n_sections", header_n_sections;
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

let print () =
  List.iter (fun (name, n) -> Printf.printf "%s %d\n" name n) sizes;
  List.iter (fun (name, f) -> Printf.printf "%s %d %d\n" name f.f_at f.f_bytes) fields
