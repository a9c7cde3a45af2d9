(* The bytes of model.pkt become the tables that are checked. Offsets are those of src/abi; a build step compares them with what
   the C++ compiler says, field by field. *)
From Coq Require Import NArith List Arith Bool Lia.
From Plow Require Import Memory Program Verify.
Import ListNotations.

(* A field of a record: where it begins, how many bytes it has. Little-endian. *)
Record field := Field { f_at : nat; f_bytes : nat }.

Definition header_magic := Field 0 8.
Definition header_abi_version := Field 8 4.
Definition header_workers := Field 16 4.
Definition header_n_sections := Field 20 4.
Definition header_file_bytes := Field 24 8.
Definition header_tape_bytes := Field 32 8.
Definition header_sections := Field 104 384.
Definition section_kind := Field 0 4.
Definition section_count := Field 4 4.
Definition section_offset := Field 8 8.
Definition section_size := 24.

Definition program_max_rows := Field 0 4.
Definition program_max_samples := Field 4 4.
Definition program_token_tile := Field 8 4.
Definition program_sample_tile := Field 12 4.
Definition program_first_packet := Field 16 4.
Definition program_n_packets := Field 20 4.
Definition program_first_wait := Field 24 4.
Definition program_n_waits := Field 28 4.
Definition program_first_signal := Field 32 4.
Definition program_n_signals := Field 36 4.
Definition program_first_tensor := Field 48 4.
Definition program_n_tensors := Field 52 4.
Definition program_n_counters := Field 56 4.
Definition program_arena_bytes := Field 64 8.
Definition program_size := 80.

Definition worker_first_packet := Field 0 4.
Definition worker_n_packets := Field 4 4.
Definition worker_size := 16.

Definition packet_body := Field 0 2.
Definition packet_row_kind := Field 4 1.
Definition packet_n_waits := Field 5 1.
Definition packet_n_signals := Field 6 1.
Definition packet_col_first := Field 8 4.
Definition packet_col_count := Field 12 2.
Definition packet_col_stride := Field 14 2.
Definition packet_row_first := Field 16 2.
Definition packet_row_stride := Field 18 2.
Definition packet_operands := Field 20 12.
Definition packet_first_wait := Field 32 4.
Definition packet_first_signal := Field 36 4.
Definition packet_immediates := Field 40 20.
Definition packet_tile_cols := Field 60 4.
Definition packet_size := 64.

Definition wait_counter := Field 0 4.
Definition wait_per_tile := Field 4 4.
Definition wait_constant := Field 8 4.
Definition wait_rows := Field 12 1.
Definition wait_band := Field 13 1.
Definition wait_size := 16.

Definition signal_counter := Field 0 4.
Definition signal_band := Field 4 1.
Definition signal_size := 8.

Definition tensor_offset := Field 0 8.
Definition tensor_bytes := Field 8 8.
Definition tensor_rows := Field 16 4.
Definition tensor_cols := Field 20 4.
Definition tensor_row_stride := Field 24 4.
Definition tensor_kv_group := Field 32 4.
Definition tensor_dtype := Field 40 1.
Definition tensor_row_kind := Field 41 1.
Definition tensor_space := Field 42 1.
Definition tensor_layout := Field 43 1.
Definition tensor_size := 48.

Definition group_block_tokens := Field 4 4.
Definition group_block_bytes := Field 8 8.
Definition group_size := 24.

Section Decode.
Variable byte : nat -> nat.  (* of the file; 0 behind its end *)
Variable file_bytes : nat.

Definition n256 : nat := 16 * 16.
Fixpoint little (n at_ : nat) : nat :=
  match n with 0 => 0 | S m => byte at_ + n256 * little m (S at_) end.
(* A field of up to 4 bytes, and one of 8. *)
Definition get (base : nat) (f : field) : nat := little (f_bytes f) (base + f_at f).
Definition get_wide (base : nat) (f : field) : N :=
  (N.of_nat (little 4 (base + f_at f)) + 4294967296 * N.of_nat (little 4 (base + f_at f + 4)))%N.

Definition need {A} (c : bool) (a : option A) : option A := if c then a else None.
Fixpoint all_some {A} (l : list (option A)) : option (list A) :=
  match l with
  | [] => Some []
  | None :: _ => None
  | Some a :: r => match all_some r with Some r' => Some (a :: r') | None => None end
  end.
Fixpoint table_from {A} (f : nat -> A) (i n : nat) : list A := match n with 0 => [] | S m => f i :: table_from f (S i) m end.
Definition table {A} (f : nat -> A) (n : nat) : list A := table_from f 0 n.

(* Where the section of a kind begins and how many elements it has. Sections are in the order of their kinds. *)
Definition section_base (kind : nat) : nat := f_at header_sections + (kind - 1) * section_size.
Definition section_start (kind : nat) : nat := N.to_nat (get_wide (section_base kind) section_offset).
Definition section_elements (kind : nat) : nat := get (section_base kind) section_count.
Definition small (n : N) : bool := (n <? 1099511627776)%N.  (* 2^40: a file of that size cannot be read at once anyway *)
Definition section_ok (kind size : nat) : bool :=
  (get (section_base kind) section_kind =? kind) && small (get_wide (section_base kind) section_offset) &&
  (section_start kind + section_elements kind * size <=? file_bytes).
Definition element (kind size i : nat) : nat := section_start kind + i * size.

Definition kPrograms := 1. Definition kWorkers := 2. Definition kPackets := 3. Definition kWaits := 4.
Definition kSignals := 5. Definition kTensors := 7. Definition kGroups := 8.

Definition decode_band (b : nat) : option bool := match b with 0 => Some false | 1 => Some true | _ => None end.

Definition decode_wait (i : nat) : option wait_entry :=
  let at_ := element kWaits wait_size i in
  match decode_band (get at_ wait_band) with
  | Some band =>
      need (get at_ wait_rows <=? 2) (Some
        {| w_counter := get at_ wait_counter; w_per_tile := get at_ wait_per_tile; w_constant := get at_ wait_constant;
           w_rows := get at_ wait_rows; w_band := band |})
  | None => None
  end.
Definition decode_signal (i : nat) : option signal_entry :=
  let at_ := element kSignals signal_size i in
  match decode_band (get at_ signal_band) with
  | Some band => Some {| s_counter := get at_ signal_counter; s_band := band |}
  | None => None
  end.

Definition absent : nat := n256 * n256 - 1.  (* kNoTensor *)
(* Operands up to the first that is absent; then all are. *)
Fixpoint operands_of (l : list nat) : option (list nat) :=
  match l with
  | [] => Some []
  | x :: r =>
      if x =? absent then need (forallb (fun y => y =? absent) r) (Some [])
      else match operands_of r with Some r' => Some (x :: r') | None => None end
  end.

Record cut := { c_first_wait : nat; c_n_waits : nat; c_first_signal : nat; c_n_signals : nat; c_n_tensors : nat }.

Definition decode_packet (c : cut) (i : nat) : option packet :=
  let at_ := element kPackets packet_size i in
  let nw := get at_ packet_n_waits in let ns := get at_ packet_n_signals in
  let fw := get at_ packet_first_wait in let fs := get at_ packet_first_signal in
  need ((fw + nw <=? c_n_waits c) && (fs + ns <=? c_n_signals c) && (get at_ packet_row_kind <=? 2))
  match operands_of (table (fun j => little 2 (at_ + f_at packet_operands + 2 * j)) 6),
        all_some (table (fun j => decode_wait (c_first_wait c + fw + j)) nw),
        all_some (table (fun j => decode_signal (c_first_signal c + fs + j)) ns) with
  | Some ops, Some ws, Some ss =>
      need (forallb (fun o => o <? c_n_tensors c) ops) (Some
        {| p_op := get at_ packet_body; p_kind := get at_ packet_row_kind;
           p_col_first := get at_ packet_col_first; p_col_count := get at_ packet_col_count; p_col_stride := get at_ packet_col_stride;
           p_row_first := get at_ packet_row_first; p_row_stride := get at_ packet_row_stride;
           p_operands := ops; p_waits := ws; p_signals := ss;
           p_attributes := table (fun j => little 4 (at_ + f_at packet_immediates + 4 * j)) 5;
           p_tile_cols := get at_ packet_tile_cols |})
  | _, _, _ => None
  end.

Definition decode_space (n : nat) : option space :=
  match n with 1 => Some Tape | 2 => Some Arena | 3 => Some Cache | 4 => Some Column | _ => None end.
Definition decode_element (n : nat) : option N := match n with 1 => Some 4%N | 2 => Some 2%N | 3 => Some 2%N | 4 => Some 8%N | 5 => Some 4%N | 6 => Some 34%N | 7 => Some 18%N | _ => None end.

Definition decode_tensor (i : nat) : option tensor :=
  let at_ := element kTensors tensor_size i in
  match decode_space (get at_ tensor_space), decode_element (get at_ tensor_dtype) with
  | Some sp, Some el =>
      need ((get at_ tensor_row_kind <=? 2) && (1 <=? get at_ tensor_layout) && (get at_ tensor_layout <=? 6)) (Some
        {| t_space := sp; t_group := get at_ tensor_kv_group; t_offset := get_wide at_ tensor_offset;
           t_bytes := get_wide at_ tensor_bytes; t_kind := get at_ tensor_row_kind; t_rows := N.of_nat (get at_ tensor_rows);
           t_cols := get at_ tensor_cols; t_stride := N.of_nat (get at_ tensor_row_stride); t_element := el;
           t_layout := get at_ tensor_layout |})
  | _, _ => None
  end.

(* The workers' lists follow each other and hold every packet of the program. *)
Fixpoint decode_queues (c : cut) (first worker n next : nat) : option (nat * list (list packet)) :=
  match n with
  | 0 => Some (next, [])
  | S m =>
      let at_ := element kWorkers worker_size worker in
      let count := get at_ worker_n_packets in
      need (get at_ worker_first_packet =? next)
      match all_some (table (fun j => decode_packet c (first + next + j)) count),
            decode_queues c first (S worker) m (next + count) with
      | Some q, Some (e, qs) => Some (e, q :: qs)
      | _, _ => None
      end
  end.

Definition decode_program (workers i : nat) : option program :=
  let at_ := element kPrograms program_size i in
  let c := {| c_first_wait := get at_ program_first_wait; c_n_waits := get at_ program_n_waits;
              c_first_signal := get at_ program_first_signal; c_n_signals := get at_ program_n_signals;
              c_n_tensors := get at_ program_n_tensors |} in
  let first := get at_ program_first_packet in let n := get at_ program_n_packets in
  need ((c_first_wait c + c_n_waits c <=? section_elements kWaits) && (c_first_signal c + c_n_signals c <=? section_elements kSignals) &&
        (get at_ program_first_tensor + c_n_tensors c <=? section_elements kTensors) && (first + n <=? section_elements kPackets))
  match decode_queues c first (i * workers) workers 0,
        all_some (table (fun j => decode_tensor (get at_ program_first_tensor + j)) (c_n_tensors c)) with
  | Some (e, qs), Some ts =>
      need (e =? n) (Some
        {| max_rows := get at_ program_max_rows; max_samples := get at_ program_max_samples;
           token_row_tile := get at_ program_token_tile; sample_row_tile := get at_ program_sample_tile;
           n_counters := get at_ program_n_counters; arena_bytes := get_wide at_ program_arena_bytes;
           queues := qs; tensor_table := ts |})
  | _, _ => None
  end.

Definition decode_group (i : nat) : kv_group :=
  let at_ := element kGroups group_size i in
  {| k_block_tokens := N.of_nat (get at_ group_block_tokens); k_block_bytes := get_wide at_ group_block_bytes |}.

Definition header_size := 488.
Definition magic : N := 0x31574f4c50574f4c.  (* kBundleMagic: "LOWPLOW1" *)
Definition abi_version : nat := 1.            (* kAbiVersion *)
Definition decode : option bundle :=
  need ((header_size <=? file_bytes) && (get_wide 0 header_magic =? magic)%N && (get 0 header_abi_version =? abi_version) &&
        (get 0 header_n_sections =? 13) && (get_wide 0 header_file_bytes =? N.of_nat file_bytes)%N)
  (let workers := get 0 header_workers in
   let n := section_elements kPrograms in
   need ((0 <? workers) && (0 <? n) &&
         section_ok kPrograms program_size && section_ok kWorkers worker_size && section_ok kPackets packet_size &&
         section_ok kWaits wait_size && section_ok kSignals signal_size && section_ok kTensors tensor_size && section_ok kGroups group_size &&
         (section_elements kWorkers =? n * workers))
   match all_some (table (decode_program workers) n) with
   | Some ps => Some {| b_workers := workers; b_tape_bytes := get_wide 0 header_tape_bytes;
                        b_groups := table decode_group (section_elements kGroups); b_programs := ps |}
   | None => None
   end).
End Decode.
