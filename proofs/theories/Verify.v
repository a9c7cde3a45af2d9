(* The whole check of a bundle: its tables once, then every program for every number of row tiles that a step may have. *)
From Coq Require Import NArith List Arith Bool Lia.
From Plow Require Import Machine Loops Sync Memory Races Program Footprint.
Import ListNotations.

Record kv_group := { k_block_tokens : N; k_block_bytes : N }.
Record bundle := {
  b_workers : nat;
  b_tape_bytes : N;
  b_groups : list kv_group;
  b_programs : list program
}.

(* The tensor of an index. No tensor: a place of the tape without columns, in which no access is in bounds. *)
Definition no_tensor : tensor :=
  {| t_space := Tape; t_group := 0; t_offset := 0; t_bytes := 0; t_kind := 0; t_rows := 0; t_cols := 0; t_stride := 0;
     t_element := 0; t_layout := 0 |}.
Definition index_tensors (l : list tensor) : M.t tensor := fold_from (fun i t m => M.add i t m) 0 l (M.empty _).
Definition look (m : M.t tensor) (i : nat) : tensor := match M.find i m with Some t => t | None => no_tensor end.

Section Tables.
Variable b : bundle.
Variable p : program.
Variable tensors : nat -> tensor.

Definition most_rows (kind : nat) : nat := match kind with 0 => 1 | 1 => max_rows p | _ => max_samples p end.
Definition row_tile (kind : nat) : nat := match kind with 0 => 1 | 1 => token_row_tile p | _ => sample_row_tile p end.
Definition most_tiles (kind : nat) : nat := ceil_div (most_rows kind) (row_tile kind).

Definition shapes_of (k : packet) : list operand_shape :=
  map (fun i => let t := tensors i in {| o_kind := t_kind t; o_rows := N.to_nat (t_rows t); o_cols := t_cols t |}) (p_operands k).
Definition is_protocol (k : packet) : bool := 240 <=? p_op k.
Definition regions_of (k : packet) : list region :=
  if is_protocol k then [] else
  let shapes := shapes_of k in
  flat_map (fun run => footprint (p_attributes k) shapes (fst run) (snd run) (p_op k))
    (column_runs k (out_cols shapes)).

(* Every element that a region names is there. *)
Definition region_in_bounds (k : packet) (g : region) : bool :=
  let t := tensors (nth (g_operand g) (p_operands k) 0) in
  (g_operand g <? length (p_operands k)) && (g_first g <? g_end g) && (g_end g <=? t_cols t) &&
  match g_rows g, t_space t with
  | TileRows, Tape => false
  | TileRows, Cache => p_kind k =? 1
  | TileRows, _ => t_kind t =? p_kind k
  | AllRows, Tape => false
  | AllRows, _ => negb (g_writes g)
  | FixedRows f l, Tape => (f <? l) && (N.of_nat l <=? t_rows t)%N && negb (g_writes g)
  | FixedRows _ _, _ => false
  end.

Definition counter_in_bank (k : packet) (counter : nat) (band : bool) : bool :=
  counter + (if band then most_tiles (p_kind k) else 1) <=? n_counters p.
Definition fits_counter (n : nat) : bool := (N.of_nat n <? 4294967296)%N.
Definition wait_ok (k : packet) (w : wait_entry) : bool :=
  counter_in_bank k (w_counter w) (w_band w) && fits_counter (w_per_tile w * most_tiles (w_rows w) + w_constant w).
Definition signal_ok (k : packet) (s : signal_entry) : bool := counter_in_bank k (s_counter s) (s_band s).

Definition columns_ok (k : packet) (unit width : nat) : bool :=
  (0 <? p_col_count k) && (0 <? p_tile_cols k) && ((p_col_count k =? 1) || (0 <? p_col_stride k)) &&
  ((p_col_first k + (p_col_count k - 1) * p_col_stride k) * p_tile_cols k <? width) &&
  ((width <=? p_tile_cols k) || (p_tile_cols k mod unit =? 0)).

Definition work_ok (k : packet) : bool :=
  let shapes := shapes_of k in
  let unit := unit_of (p_attributes k) shapes (p_op k) in
  (0 <? arity (p_op k)) && (length (p_operands k) =? arity (p_op k)) && (0 <? unit) && (p_kind k =? kind_of (p_op k) shapes) &&
  columns_ok k unit (out_cols shapes) && forallb (region_in_bounds k) (regions_of k).

Definition packet_ok (k : packet) : bool :=
  (0 <? p_row_stride k) && forallb (wait_ok k) (p_waits k) && forallb (signal_ok k) (p_signals k) &&
  if is_protocol k then (p_kind k =? 0) && (p_row_first k =? 0) && (p_op k <=? 242) else work_ok k.

Definition round_up (n unit : N) : N := ((n + unit - 1) / unit * unit)%N.
Definition group_of (t : tensor) : kv_group := nth (t_group t) (b_groups b) {| k_block_tokens := 0; k_block_bytes := 0 |}.
Definition extent (t : tensor) : N :=
  match t_layout t with
  | 1 => ((t_rows t - 1) * t_stride t + N.of_nat (t_cols t) * t_element t)%N
  | 2 => (round_up (t_rows t) 16 * round_up (N.of_nat (t_cols t)) 2 * t_element t)%N
  | 4 => (round_up (t_rows t) 8 * round_up (N.of_nat (t_cols t) * t_element t) 128)%N
  | 6 => (round_up (t_rows t) 16 * ((N.of_nat (t_cols t) + 31) / 32) * t_element t)%N
  | _ => (2 * N.of_nat (t_cols t) * k_block_tokens (group_of t) * t_element t)%N
  end.
Definition size_of_space (t : tensor) : N :=
  match t_space t with Tape => b_tape_bytes b | Arena => arena_bytes p | Cache => k_block_bytes (group_of t) | Column => 0 end.

(* Matrices of blocks lie in a layout of their own, and nothing else does. *)
Definition is_of_blocks (t : tensor) : bool := (t_element t =? 34)%N || (t_element t =? 18)%N.

Definition tensor_ok (t : tensor) : bool :=
  (0 <? t_cols t) && holds_rows most_rows t &&
  match t_space t with
  | Column => (t_offset t <=? 4)%N
  | Cache => (t_group t <? length (b_groups b)) && ((t_layout t =? 3) || (t_layout t =? 5)) && (t_offset t + t_bytes t <=? size_of_space t)%N && (extent t <=? t_bytes t)%N
  | Arena => (t_layout t =? 1) && (t_offset t + t_bytes t <=? size_of_space t)%N && (extent t <=? t_bytes t)%N
  | Tape => ((t_layout t =? 1) || (t_layout t =? 2) || (t_layout t =? 4) || (t_layout t =? 6)) &&
            Bool.eqb (t_layout t =? 6) (is_of_blocks t) &&
            (t_offset t + t_bytes t <=? size_of_space t)%N && (extent t <=? t_bytes t)%N
  end.

(* A cache lives from step to step: two layers' parts of a block never have a byte in common. *)
Definition layers_apart (t t' : tensor) : bool :=
  negb (t_group t =? t_group t') || apart (t_offset t) (t_bytes t) (t_offset t') (t_bytes t').
Fixpoint all_apart (l : list tensor) : bool :=
  match l with [] => true | t :: r => forallb (layers_apart t) r && all_apart r end.
Definition is_cache (t : tensor) : bool := match t_space t with Cache => true | _ => false end.

(* The columns of a cache mean the same to all who use it: its heads are of one size, the first attribute of those operators. *)
Definition note_heads (k : packet) (m : M.t (list nat)) : M.t (list nat) :=
  fold_right (fun i m => if is_cache (tensors i) then put i (nth 0 (p_attributes k) 0) m else m) m (p_operands k).
Definition same_heads (l : list nat) : bool := match l with [] => true | h :: r => forallb (fun h' => h' =? h) r end.
Definition heads_agree : bool :=
  all_lists (fun _ l => same_heads l) (fold_right (fun q m => fold_right note_heads m q) (M.empty _) (queues p)).

Definition tables_ok : bool :=
  let caches := filter is_cache (tensor_table p) in
  (0 <? max_rows p) && (0 <? token_row_tile p) && (0 <? sample_row_tile p) &&
  (length (queues p) =? b_workers b) &&
  forallb tensor_ok (tensor_table p) && all_apart caches && heads_agree &&
  forallb (forallb packet_ok) (queues p).

(* The pairs of outputs that share memory. *)
Fixpoint sharing_with (i : nat) (t : tensor) (j : nat) (l : list tensor) : list (nat * nat) :=
  match l with [] => [] | u :: r => if share t u then (i, j) :: sharing_with i t (S j) r else sharing_with i t (S j) r end.
Fixpoint sharing_from (i : nat) (l : list tensor) : list (nat * nat) :=
  match l with
  | [] => []
  | t :: r => if is_output t then sharing_with i t (S i) r ++ sharing_from (S i) r else sharing_from (S i) r
  end.
Definition sharing_pairs : list (nat * nat) := sharing_from 0 (tensor_table p).

(* One step: the numbers of row tiles, and what the untrusted side says of it. *)
Record hint := { h_certificate : certificate; h_uses : nat -> nat -> nat * nat; h_floor : nat -> nat -> nat }.
Definition step_tiles (token_tiles sample_tiles kind : nat) : nat :=
  match kind with 0 => 1 | 1 => token_tiles | _ => sample_tiles end.
Definition prepared : list (list (packet * list (nat * region))) := map (map (prepare tensors regions_of)) (queues p).
Definition step_code (tiles : nat -> nat) : code (list access) := expand tiles prepared.

Definition writes_samples (touched : M.t (list touch)) : bool :=
  existsb (fun tl => let t := tensors (fst tl) in match t_space t with Column => is_output t && negb (length (snd tl) =? 0) | _ => false end)
    (M.elements touched).

Definition check_code (sharing : list (nat * nat)) (tiles : nat -> nat) (c : code (list access)) (h : hint) : bool :=
  let touched := touch_map c in
  check_sync (list access) (b_workers b) (n_counters p) (h_certificate h) c &&
  check_touches (b_workers b) (h_certificate h) tensors most_rows tiles (h_uses h) (h_floor h) sharing touched &&
  ((tiles 2 =? 0) || writes_samples touched).
(* Pairs that share memory and packets made ready are worked out once for all steps. *)
Definition check_step (sharing : list (nat * nat)) (ready : list (list (packet * list (nat * region)))) (tiles : nat -> nat)
    (hints : code (list access) -> hint) : bool :=
  let c := expand tiles ready in check_code sharing tiles c (hints c).

(* Of the steps that `keep` names by their row tiles of tokens and of samples. *)
Definition check_program (keep : nat -> nat -> bool) (hints : code (list access) -> hint) : bool :=
  tables_ok &&
  let sharing := sharing_pairs in
  let ready := prepared in
  all_below (fun t => all_below (fun s => negb (keep (S t) s) || check_step sharing ready (step_tiles (S t) s) hints)
    (S (most_tiles 2))) (most_tiles 1).
End Tables.

Definition tensors_of (p : program) : nat -> tensor := look (index_tensors (tensor_table p)).

Definition verify_part (keep : nat -> nat -> bool) (b : bundle) (hints : nat -> code (list access) -> hint) : bool :=
  all_from (fun i p => check_program b p (tensors_of p) keep (hints i)) 0 (b_programs b).
(* THE CHECK. `hints` may be made by anyone: no answer of theirs makes a wrong bundle pass. *)
Definition verify : bundle -> (nat -> code (list access) -> hint) -> bool := verify_part (fun _ _ => true).

(* The work in n parts, for as many processors: each step is in one of them. *)
Definition in_part (n j t s : nat) : bool := (2 * t + s) mod n =? j.
Theorem parts_are_the_whole : forall b hints n, 0 < n -> (forall j, j < n -> verify_part (in_part n j) b hints = true) ->
  verify b hints = true.
Proof.
  intros b hints n P H. unfold verify, verify_part. apply all_from_complete. intros i p I. cbn [Nat.add].
  assert (K : forall j, j < n -> check_program b p (tensors_of p) (in_part n j) (hints i) = true).
  { intros j J. specialize (H j J). unfold verify_part in H. exact (all_from_sound _ _ _ _ H i p I). }
  unfold check_program in *. cbv zeta in *. apply andb_true_iff. split.
  - specialize (K 0 P). apply andb_true_iff in K. tauto.
  - apply all_below_complete. intros t T. apply all_below_complete. intros s S. cbn [negb orb].
    assert (J : (2 * Datatypes.S t + s) mod n < n) by (apply Nat.mod_upper_bound; lia).
    specialize (K _ J). apply andb_true_iff in K. destruct K as [_ K].
    pose proof (all_below_sound _ _ K t T) as K1. cbn beta in K1. pose proof (all_below_sound _ _ K1 s S) as K2. cbn beta in K2.
    unfold in_part in K2. rewrite Nat.eqb_refl in K2. exact K2.
Qed.
