(* A program of a bundle as it was decoded, and the instructions that its packets become in a step. *)
From Coq Require Import NArith List Arith Bool Lia.
From Plow Require Import Machine Memory.
Import ListNotations.

Record wait_entry := { w_counter : nat; w_per_tile : nat; w_constant : nat; w_rows : nat; w_band : bool }.
Record signal_entry := { s_counter : nat; s_band : bool }.

Record packet := {
  p_op : nat;
  p_kind : nat;       (* what its row tiles count: 0 nothing, 1 tokens, 2 samples *)
  p_col_first : nat; p_col_count : nat; p_col_stride : nat;
  p_row_first : nat; p_row_stride : nat;
  p_operands : list nat;   (* indices of tensors: inputs, then the output *)
  p_waits : list wait_entry;
  p_signals : list signal_entry;
  p_attributes : list nat; (* bit patterns *)
  p_tile_cols : nat
}.

Record program := {
  max_rows : nat; max_samples : nat;
  token_row_tile : nat; sample_row_tile : nat;
  n_counters : nat;
  arena_bytes : N;
  queues : list (list packet);
  tensor_table : list tensor
}.

(* The numbers of src/abi/ops.def that mean something here. *)
Definition op_leave := 240.
Definition op_clear := 241.
Definition op_advance := 242.

(* Rows that a tile's access takes (src/ops/tile_rule.h). *)
Inductive row_access := TileRows | AllRows | FixedRows (first last : nat).
Record region := { g_operand : nat; g_writes : bool; g_rows : row_access; g_first : nat; g_end : nat }.

Definition ceil_div (n d : nat) : nat := (n + d - 1) / d.

(* Row tiles first, first + stride, ... below n. *)
Fixpoint tile_list (fuel first stride n : nat) : list nat :=
  match fuel with
  | 0 => []
  | S f => if first <? n then first :: tile_list f (first + stride) stride n else []
  end.

Section Expand.
Variable tiles : nat -> nat.  (* row tiles of each kind in the step *)
Variable tensors : nat -> tensor.
Variable regions : packet -> list region.  (* what a packet's columns read and write, by the tile rules *)

Definition wait_instr (r : nat) (w : wait_entry) : instr (list access) :=
  Wait (if w_band w then w_counter w + r else w_counter w) (w_per_tile w * tiles (w_rows w) + w_constant w).
Definition signal_instr (r : nat) (s : signal_entry) : instr (list access) :=
  Signal (if s_band s then s_counter s + r else s_counter s).

(* The tape is never written: what is read there needs no order. *)
Definition is_tape (t : tensor) : bool := match t_space t with Tape => true | _ => false end.
(* The places that a region's columns have in a step: the tensor, and what is accessed in it. *)
Definition access_of (rows : option nat) (tg : nat * region) : access :=
  let g := snd tg in
  {| a_tensor := fst tg; a_writes := g_writes g; a_rows := match g_rows g with TileRows => rows | _ => None end;
     a_first := g_first g; a_end := g_end g |}.
(* A packet, and its regions that need an order, each with its tensor: the same in every step. *)
Definition prepare (p : packet) : packet * list (nat * region) :=
  (p, filter (fun tg => negb (is_tape (tensors (fst tg)))) (map (fun g => (nth (g_operand g) (p_operands p) 0, g)) (regions p))).

Definition work_of (p : packet) (gs : list (nat * region)) (r : nat) : instr (list access) :=
  if p_op p =? op_leave then Work []  (* nothing, but the step does not end before it *)
  else if p_op p =? op_clear then Clear
  else if p_op p =? op_advance then Advance
  else let rows := Some r in Work (map (access_of rows) gs).

(* In front of what follows. A wait without a band that was met for the packet's first row tile is not made again (src/interp/loop.h). *)
Definition tile_instrs (p : packet) (gs : list (nat * region)) (r : nat) (rest : list (instr (list access))) : list (instr (list access)) :=
  fold_right (fun w l => if w_band w || (r =? p_row_first p) then wait_instr r w :: l else l)
    (work_of p gs r :: fold_right (fun s l => signal_instr r s :: l) rest (p_signals p)) (p_waits p).

Definition packet_instrs (pg : packet * list (nat * region)) (rest : list (instr (list access))) : list (instr (list access)) :=
  let p := fst pg in
  let n := tiles (p_kind p) in
  fold_right (tile_instrs p (snd pg)) rest (tile_list n (p_row_first p) (p_row_stride p) n).

Definition expand (qs : list (list (packet * list (nat * region)))) : code (list access) := map (fold_right packet_instrs []) qs.
End Expand.
