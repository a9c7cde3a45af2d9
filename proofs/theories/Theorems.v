(* What it means that `verify` says yes. *)
From Coq Require Import NArith List Arith Bool Lia.
From Plow Require Import Trace Machine Invariant Reachable Order Progress Ending Loops Sync Memory Races Program Footprint Verify.
Import ListNotations.

(* A step that a runtime may ask for: a program of the bundle, and how many rows. *)
Record step := { s_program : nat; s_shape : shape }.

Section Accepted.
Variable b : bundle.
Variable hints : nat -> code (list access) -> hint.
Hypothesis accepted : verify b hints = true.

Definition no_program : program :=
  {| max_rows := 0; max_samples := 0; token_row_tile := 0; sample_row_tile := 0; n_counters := 0; arena_bytes := 0;
     queues := []; tensor_table := [] |}.
Definition program_at (i : nat) : program := nth i (b_programs b) no_program.

Record allowed (s : step) : Prop := {
  program_exists : s_program s < length (b_programs b);
  some_token : 0 < tokens (s_shape s);
  tokens_fit : tokens (s_shape s) <= max_rows (program_at (s_program s));
  samples_fit : samples (s_shape s) <= max_samples (program_at (s_program s));
  token_cut : token_tile (s_shape s) = token_row_tile (program_at (s_program s));
  sample_cut : sample_tile (s_shape s) = sample_row_tile (program_at (s_program s));
  own_cells : forall i j, i < tokens (s_shape s) -> j < tokens (s_shape s) -> cell_of (s_shape s) i = cell_of (s_shape s) j -> i = j
}.

Definition tiles_of (s : step) (kind : nat) : nat := ceil_div (rows_of (s_shape s) kind) (tile_of (s_shape s) kind).
Definition tensors_in (s : step) : nat -> tensor := tensors_of (program_at (s_program s)).
Definition code_of (s : step) : code (list access) :=
  step_code (program_at (s_program s)) (tensors_in s) (step_tiles (tiles_of s 1) (tiles_of s 2)).
Definition hint_of (s : step) : hint := hints (s_program s) (code_of s).
Definition cert_of (s : step) : certificate := h_certificate (hint_of s).
Definition lines_of (s : step) : nat := n_counters (program_at (s_program s)).

(* The places that an access of a step covers. *)
Definition place_of (s : step) (a : access) (l : location) : bool := covers (s_shape s) (tensors_in s (a_tensor a)) a l.
(* Any body may look at the step's inputs (positions, slots), named among its operands or not: only Advance changes them. *)
Definition step_input (l : location) : bool := match l with ColumnEntry c _ => negb (N.eqb c sampled_column) | _ => false end.
Definition looks_at (s : step) (w : list access) (l : location) : bool := step_input l || existsb (fun a => place_of s a l) w.
Definition alters (s : step) (w : list access) (l : location) : bool := existsb (fun a => a_writes a && place_of s a l) w.
Definition registers (w : nat) (l : location) : bool := match l with Register v _ => w =? v | _ => false end.

Lemma program_checked : forall i, i < length (b_programs b) ->
  check_program b (program_at i) (tensors_of (program_at i)) (fun _ _ => true) (hints i) = true.
Proof.
  intros i L. unfold verify, verify_part in accepted. destruct (nth_error (b_programs b) i) as [p|] eqn:Q; [|apply nth_error_None in Q; lia].
  unfold program_at. rewrite (nth_error_nth _ _ _ Q). exact (all_from_sound _ _ _ _ accepted i p Q).
Qed.

Lemma ceil_positive : forall n d, 0 < d -> 0 < n -> 0 < ceil_div n d.
Proof. intros n d D N. unfold ceil_div. apply Nat.div_str_pos. lia. Qed.
Lemma ceil_monotone : forall n m d, 0 < d -> n <= m -> ceil_div n d <= ceil_div m d.
Proof. intros n m d D L. unfold ceil_div. apply Nat.div_le_mono; lia. Qed.
Lemma row_has_tile : forall n d row, 0 < d -> row < n -> row / d < ceil_div n d.
Proof.
  intros n d row D L. unfold ceil_div. apply Nat.div_lt_upper_bound; [lia|].
  pose proof (Nat.div_mod (n + d - 1) d) as E. pose proof (Nat.mod_upper_bound (n + d - 1) d) as U. nia.
Qed.

Lemma tables_checked : forall s, allowed s -> tables_ok b (program_at (s_program s)) (tensors_in s) = true.
Proof.
  intros s A. pose proof (program_checked _ (program_exists _ A)) as K. unfold check_program in K. cbv zeta in K.
  apply andb_true_iff in K. tauto.
Qed.

Lemma tiles_positive : forall s, allowed s -> forall kind, 0 < tile_of (s_shape s) kind.
Proof.
  intros s A kind. pose proof (tables_checked s A) as T. unfold tables_ok in T. rewrite !andb_true_iff in T.
  destruct T as [[[[[[[T1 T2] T3] _] _] _] _] _]. apply Nat.ltb_lt in T2, T3.
  destruct kind as [|[|kind]]; cbn; [lia| |].
  - now rewrite (token_cut _ A).
  - now rewrite (sample_cut _ A).
Qed.

Lemma step_is_legal : forall s, allowed s -> legal (s_shape s) (most_rows (program_at (s_program s))).
Proof.
  intros s A. split.
  - intros [|[|kind]]; cbn; [lia|apply (tokens_fit _ A)|apply (samples_fit _ A)].
  - apply (tiles_positive s A).
  - apply (own_cells _ A).
Qed.

Lemma step_checked : forall s, allowed s ->
  check_step b (program_at (s_program s)) (tensors_in s) (sharing_pairs (program_at (s_program s)))
    (prepared (program_at (s_program s)) (tensors_in s)) (step_tiles (tiles_of s 1) (tiles_of s 2)) (hints (s_program s)) = true.
Proof.
  intros s A. pose proof (program_checked _ (program_exists _ A)) as K. unfold check_program in K. cbv zeta in K.
  apply andb_true_iff in K. destruct K as [_ K].
  pose proof (tiles_positive s A 1) as D1. pose proof (tiles_positive s A 2) as D2. cbn in D1, D2.
  assert (P1 : 0 < tiles_of s 1) by (apply ceil_positive; [exact D1|exact (some_token _ A)]).
  assert (L1 : tiles_of s 1 <= most_tiles (program_at (s_program s)) 1).
  { unfold tiles_of, most_tiles. cbn. rewrite (token_cut _ A) in *. apply ceil_monotone; [exact D1|exact (tokens_fit _ A)]. }
  assert (L2 : tiles_of s 2 <= most_tiles (program_at (s_program s)) 2).
  { unfold tiles_of, most_tiles. cbn. rewrite (sample_cut _ A) in *. apply ceil_monotone; [exact D2|exact (samples_fit _ A)]. }
  pose proof (all_below_sound _ _ K (tiles_of s 1 - 1)) as K1. cbn beta in K1. specialize (K1 ltac:(lia)).
  pose proof (all_below_sound _ _ K1 (tiles_of s 2)) as K2. cbn beta in K2. specialize (K2 ltac:(lia)).
  replace (S (tiles_of s 1 - 1)) with (tiles_of s 1) in K2 by lia. exact K2.
Qed.

Lemma sync_checked : forall s, allowed s ->
  check_sync (list access) (b_workers b) (lines_of s) (cert_of s) (code_of s) = true.
Proof. intros s A. pose proof (step_checked s A) as K. unfold check_step, check_code in K. cbv zeta in K. rewrite !andb_true_iff in K. exact (proj1 (proj1 K)). Qed.

Lemma memory_checked : forall s, allowed s ->
  check_memory (b_workers b) (cert_of s) (tensors_in s) (most_rows (program_at (s_program s)))
    (step_tiles (tiles_of s 1) (tiles_of s 2)) (h_uses (hint_of s)) (h_floor (hint_of s)) (sharing_pairs (program_at (s_program s))) (code_of s) = true.
Proof. intros s A. pose proof (step_checked s A) as K. unfold check_step, check_code in K. cbv zeta in K. rewrite !andb_true_iff in K. exact (proj2 (proj1 K)). Qed.

Lemma step_certified : forall s, allowed s ->
  certified (list access) (b_workers b) (code_of s) (lines_of s) (signals_of (list access) (code_of s)) (c_know (cert_of s))
    (c_rank (cert_of s)) (c_end_worker (cert_of s)) (c_end_place (cert_of s)).
Proof. intros s A. apply check_sync_sound, sync_checked, A. Qed.

Lemma index_finds : forall l i m k, look (fold_from (fun i t m => M.add i t m) i l m) k =
  if (i <=? k) && (k <? i + length l) then nth (k - i) l no_tensor else look m k.
Proof.
  induction l as [|t l IH]; intros i m k; cbn [fold_from length].
  - assert ((i <=? k) && (k <? i + 0) = false) as ->; [|reflexivity].
    apply andb_false_iff. rewrite Nat.leb_gt, Nat.ltb_ge. lia.
  - rewrite IH. destruct (Nat.eq_dec k i) as [->|N].
    + rewrite Nat.sub_diag, Nat.leb_refl. assert (S i <=? i = false) as -> by (apply Nat.leb_gt; lia).
      assert (i <? i + S (length l) = true) as -> by (apply Nat.ltb_lt; lia). cbn [andb nth].
      unfold look. now rewrite M.find_add, Nat.eqb_refl.
    + assert ((S i <=? k) && (k <? S i + length l) = (i <=? k) && (k <? i + S (length l))) as ->.
      { apply eq_true_iff_eq. rewrite !andb_true_iff, !Nat.leb_le, !Nat.ltb_lt. lia. }
      destruct ((i <=? k) && (k <? i + S (length l))) eqn:B.
      * apply andb_true_iff in B. rewrite Nat.leb_le, Nat.ltb_lt in B. replace (k - i) with (S (k - S i)) by lia. reflexivity.
      * unfold look. rewrite M.find_add. now rewrite (proj2 (Nat.eqb_neq k i) N).
Qed.

Lemma sharing_with_all : forall i t l j k, k < length l -> share t (nth k l no_tensor) = true -> In (i, j + k) (sharing_with i t j l).
Proof.
  induction l as [|u l IH]; intros j k L H; [cbn in L; lia|]. cbn [sharing_with]. destruct k as [|k]; cbn [nth length] in *.
  - rewrite H, Nat.add_0_r. now left.
  - specialize (IH (S j) k ltac:(lia) H). rewrite Nat.add_succ_r. destruct (share t u); [right|]; exact IH.
Qed.

Lemma sharing_from_all : forall l i j k, j < k -> k < length l -> is_output (nth j l no_tensor) = true ->
  share (nth j l no_tensor) (nth k l no_tensor) = true -> In (i + j, i + k) (sharing_from i l).
Proof.
  induction l as [|t l IH]; intros i j k J L O H; [cbn in L; lia|]. cbn [sharing_from].
  destruct k as [|k]; [lia|]. destruct j as [|j]; cbn [nth length] in *.
  - rewrite O. apply in_or_app. left. rewrite Nat.add_0_r, Nat.add_succ_r. apply (sharing_with_all i t l (S i) k); [lia|exact H].
  - rewrite !Nat.add_succ_r. specialize (IH (S i) j k ltac:(lia) ltac:(lia) O H).
    destruct (is_output t); [apply in_or_app; right|]; exact IH.
Qed.

Lemma share_outputs : forall t t', share t t' = true -> is_output t = is_output t' /\ share t' t = true.
Proof.
  intros t t'. unfold share, is_output. destruct (t_space t), (t_space t'); try discriminate; auto.
  - unfold apart. rewrite orb_comm. auto.
  - rewrite !andb_true_iff, !Nat.eqb_eq, !N.eqb_eq. intuition.
  - rewrite N.eqb_eq. intros ->. split; [reflexivity|apply N.eqb_refl].
Qed.

Lemma sharing_complete : forall s, allowed s -> forall t t', t <> t' ->
  share (tensors_in s t) (tensors_in s t') = true -> is_output (tensors_in s t) = true ->
  In (t, t') (sharing_pairs (program_at (s_program s))) \/ In (t', t) (sharing_pairs (program_at (s_program s))).
Proof.
  intros s A t t' N Sh O. destruct (share_outputs _ _ Sh) as [O' Sh']. rewrite O in O'.
  assert (At : forall i, is_output (tensors_in s i) = true -> i < length (tensor_table (program_at (s_program s))) /\
     tensors_in s i = nth i (tensor_table (program_at (s_program s))) no_tensor).
  { intros i Oi. unfold tensors_in, tensors_of, index_tensors in *. rewrite index_finds, Nat.sub_0_r in *.
    cbn [Nat.leb andb Nat.add] in *. destruct (i <? length (tensor_table (program_at (s_program s)))) eqn:L.
    - split; [now apply Nat.ltb_lt|reflexivity].
    - discriminate Oi. }
  destruct (At t O) as [L E], (At t' (eq_sym O')) as [L' E']. rewrite E, E' in *.
  destruct (lt_eq_lt_dec t t') as [[Lt|Eq]|Lt]; [left|contradiction|right].
  - exact (sharing_from_all _ 0 t t' Lt L' O Sh).
  - exact (sharing_from_all _ 0 t' t Lt L (eq_sym O') Sh').
Qed.

Lemma tensor_is_ok : forall s i, allowed s ->
  tensors_in s i = no_tensor \/ tensor_ok b (program_at (s_program s)) (tensors_in s i) = true.
Proof.
  intros s i A. unfold tensors_in, tensors_of, index_tensors. rewrite index_finds, Nat.sub_0_r.
  cbn [Nat.leb andb Nat.add]. destruct (i <? length (tensor_table (program_at (s_program s)))) eqn:L.
  - right. pose proof (tables_checked s A) as T. unfold tables_ok in T. rewrite !andb_true_iff in T.
    destruct T as [[[[_ T] _] _] _]. rewrite forallb_forall in T. apply T. apply nth_In. now apply Nat.ltb_lt.
  - left. reflexivity.
Qed.

Lemma tensor_holds : forall s i, allowed s -> holds_rows (most_rows (program_at (s_program s))) (tensors_in s i) = true.
Proof.
  intros s i A. destruct (tensor_is_ok s i A) as [->|T]; [reflexivity|]. unfold tensor_ok in T. rewrite !andb_true_iff in T. tauto.
Qed.

Lemma nobody_alters_inputs : forall s, allowed s -> forall w p x l, at_ (code_of s) w p = Some (Work x) -> alters s x l = true ->
  step_input l = false.
Proof.
  intros s A w p x l At H. unfold alters in H. apply existsb_exists in H. destruct H as (a & I & H). apply andb_true_iff in H.
  destruct H as [Wr P]. destruct l as [ad|gr la ce co|c ro|u n]; try reflexivity. cbn.
  unfold place_of, covers in P. destruct (t_space (tensors_in s (a_tensor a))) eqn:S; try discriminate.
  rewrite !andb_true_iff in P. destruct P as [[P _] _]. apply N.eqb_eq in P. rewrite P.
  destruct (N.eqb (t_offset (tensors_in s (a_tensor a))) sampled_column) eqn:O; [reflexivity|exfalso].
  assert (T : In (w, p, a) (touches_of (code_of s) (a_tensor a))) by (apply touches_of_all; split; [reflexivity|exists x; auto]).
  assert (N : touches_of (code_of s) (a_tensor a) <> []) by (intro Q; rewrite Q in T; destruct T).
  pose proof (tensor_checked _ _ _ _ _ _ _ _ _ (memory_checked s A) _ N) as K. unfold check_tensor, is_output in K. rewrite S, O in K.
  rewrite forallb_forall in K. specialize (K _ T). unfold reads_it in K. cbn in K. rewrite Wr in K. discriminate.
Qed.

(* Where two works of a step may meet, one comes after the other. *)
Lemma step_race_free : forall s, allowed s -> forall w p x v q y, w < b_workers b -> v < b_workers b -> w <> v ->
  at_ (code_of s) w p = Some (Work x) -> at_ (code_of s) v q = Some (Work y) ->
  (exists l, (alters s x l = true /\ looks_at s y l = true) \/ (looks_at s x l = true /\ alters s y l = true)) ->
  before (c_know (cert_of s)) w p v q \/ before (c_know (cert_of s)) v q w p.
Proof.
  intros s A w p x v q y W V N Ax Ay (l & C).
  assert (D : exists a a', In a x /\ In a' y /\ place_of s a l = true /\ place_of s a' l = true /\ a_writes a || a_writes a' = true).
  { assert (C' : (alters s x l = true /\ existsb (fun a => place_of s a l) y = true) \/
                 (existsb (fun a => place_of s a l) x = true /\ alters s y l = true)).
    { unfold looks_at in C. destruct C as [[C1 C2]|[C1 C2]]; [left|right].
      - rewrite (nobody_alters_inputs s A _ _ _ _ Ax C1) in C2. auto.
      - rewrite (nobody_alters_inputs s A _ _ _ _ Ay C2) in C1. auto. }
    clear C. destruct C' as [[C1 C2]|[C1 C2]]; unfold alters in C1, C2; apply existsb_exists in C1, C2;
      destruct C1 as (a & I & C1), C2 as (a' & I' & C2); exists a, a'.
    - apply andb_true_iff in C1. destruct C1 as [Wr C1]. rewrite Wr. auto.
    - apply andb_true_iff in C2. destruct C2 as [Wr C2]. rewrite Wr, orb_true_r. auto. }
  destruct D as (a & a' & I & I' & P & P' & Wr).
  destruct (covers_meet (s_shape s) _ (step_is_legal s A) _ _ a a' l (tensor_holds s _ A) (tensor_holds s _ A) P P') as [Sh M].
  apply (meeting_accesses_ordered (b_workers b) (cert_of s) (tensors_in s) (most_rows (program_at (s_program s)))
           (step_tiles (tiles_of s 1) (tiles_of s 2)) (h_uses (hint_of s)) (h_floor (hint_of s)) (sharing_pairs (program_at (s_program s))) (lines_of s) (code_of s)
           (sync_checked s A) (memory_checked s A) (sharing_complete s A) w p a v q a'); auto.
  - apply touches_of_all. split; [reflexivity|]. exists x. auto.
  - apply touches_of_all. split; [reflexivity|]. exists y. auto.
  - now apply at_size in Ax.
  - now apply at_size in Ay.
Qed.

(* ---- The theorems, of any number of steps, each an allowed one ---- *)
Variable steps : nat -> step.
Hypothesis all_allowed : forall e, allowed (steps e).
(* How many actions the work at each place takes is not known. *)
Variable turns : nat -> nat -> nat -> nat.

Definition machine_runs := runs (list access) (b_workers b) (fun e => code_of (steps e)) (fun e => lines_of (steps e)) turns.
Definition machine_moves := moves (list access) (fun e => code_of (steps e)) (fun e => lines_of (steps e)) turns.

Let certs := fun e => step_certified (steps e) (all_allowed e).

(* (a) No execution ever comes to a state in which no worker can move. *)
Theorem accepted_never_deadlocks : forall t s, machine_runs t s -> exists w a s', w < b_workers b /\ machine_moves s w a s'.
Proof. exact (never_deadlocks _ _ _ _ _ _ _ _ _ _ certs). Qed.

(* (b) Executions that came equally far left the same memory. What the bodies do is not known, only where. *)
Section Bodies.
Variable value : Type.
Variable perform : action -> (location -> value) -> location -> value.
Definition may_touch : action -> location -> bool :=
  Order.touch (list access) (b_workers b) (fun e => code_of (steps e)) location (fun e => looks_at (steps e)) registers.
Definition may_change : action -> location -> bool :=
  Order.change (list access) (b_workers b) (fun e => code_of (steps e)) location (fun e => alters (steps e)) registers.
Hypothesis bodies_change : forall a m l, may_change a l = false -> perform a m l = m l.
Hypothesis bodies_look : forall a m m',
  (forall l, may_touch a l = true -> m l = m' l) -> forall l, may_change a l = true -> perform a m l = perform a m' l.

Theorem accepted_one_result : forall t1 s1 t2 s2, machine_runs t1 s1 -> machine_runs t2 s2 ->
  (forall w, w < b_workers b -> step_of s1 w = step_of s2 w /\ place s1 w = place s2 w /\ turn s1 w = turn s2 w) ->
  forall m l, exec action location value perform t1 m l = exec action location value perform t2 m l.
Proof.
  apply (same_memory (list access) (b_workers b) (fun e => code_of (steps e)) (fun e => lines_of (steps e)) turns
    (fun e => signals_of (list access) (code_of (steps e))) (fun e => c_know (cert_of (steps e)))
    (fun e => c_rank (cert_of (steps e))) (fun e => c_end_worker (cert_of (steps e))) (fun e => c_end_place (cert_of (steps e)))
    certs location value (fun e => looks_at (steps e)) (fun e => alters (steps e))) with (own := registers).
  - intros e x l H. unfold alters, looks_at in *. apply existsb_exists in H. destruct H as (a & I & H).
    apply andb_true_iff in H. apply orb_true_iff. right. apply existsb_exists. exists a. tauto.
  - intros e w p x v q y W V N Ax Ay C. exact (step_race_free (steps e) (all_allowed e) w p x v q y W V N Ax Ay C).
  - intros w v [ad|gr la ce co|co ro|u n] H H'; try discriminate. cbn in *. apply Nat.eqb_eq in H, H'. congruence.
  - intros e w x [ad|gr la ce co|co ro|u n] H; try discriminate. unfold looks_at. cbn [step_input orb].
    induction x as [|a x IH]; [reflexivity|]. cbn. rewrite IH. unfold place_of, covers. now destruct (t_space (tensors_in (steps e) (a_tensor a))).
  - exact bodies_change.
  - exact bodies_look.
Qed.
End Bodies.

(* (b') What a step reads of its own outputs was written before, in every execution: the write's work is over. *)
Theorem accepted_reads_follow_writes : forall e w p a v q a' b1 b2, w < b_workers b -> v < b_workers b ->
  at_ (code_of (steps e)) w p = Some (Work b1) -> In a b1 -> a_writes a = false ->
  at_ (code_of (steps e)) v q = Some (Work b2) -> In a' b2 -> a_writes a' = true ->
  a_tensor a = a_tensor a' -> is_output (tensors_in (steps e) (a_tensor a)) = true ->
  rows_meet a a' = true -> columns_meet a a' = true ->
  forall t s, machine_runs t s -> done s = e -> step_of s w = e -> p <= place s w ->
  step_of s v = e /\ q < place s v \/ v = w /\ q < p.
Proof.
  intros e w p a v q a' b1 b2 W V A1 I1 R A2 I2 Wr E O Rm Cm t s Rn D St P.
  pose proof (fine_runs _ _ _ _ _ _ _ _ _ _ certs t s Rn) as F.
  assert (B : before (c_know (cert_of (steps e))) v q w p).
  { apply (read_after_write (b_workers b) (cert_of (steps e)) (tensors_in (steps e)) (most_rows (program_at (s_program (steps e))))
      (step_tiles (tiles_of (steps e) 1) (tiles_of (steps e) 2)) (h_uses (hint_of (steps e))) (h_floor (hint_of (steps e))) (sharing_pairs (program_at (s_program (steps e)))) (code_of (steps e))
      (memory_checked _ (all_allowed e)) (a_tensor a) w p a v q a'); auto.
    - apply touches_of_all. split; [reflexivity|]. exists b1. auto.
    - apply touches_of_all. split; [now symmetry|]. exists b2. auto. }
  unfold before in B. destruct (Nat.eq_dec v w) as [->|N].
  - right. split; [reflexivity|]. unfold reached in B. now rewrite Nat.eqb_refl in B.
  - left. pose proof (knows F w v p W V) as K. unfold progress in K. rewrite D, St, Nat.eqb_refl in K. specialize (K P).
    destruct (step_of s v =? e) eqn:Q; [|lia]. apply Nat.eqb_eq in Q. split; [exact Q|lia].
Qed.

(* (c) Of every output that a step touches, each row tile and column is written by exactly one packet, once. *)
Theorem accepted_made_once : forall e t x r col, In x (touches_of (code_of (steps e)) t) ->
  is_output (tensors_in (steps e) t) = true ->
  r < step_tiles (tiles_of (steps e) 1) (tiles_of (steps e) 2) (tile_kind (tensors_in (steps e) t)) ->
  col < t_cols (tensors_in (steps e) t) ->
  exists y, (In y (touches_of (code_of (steps e)) t) /\ writes_it y = true /\ a_rows (snd y) = Some r /\ in_columns (snd y) col = true) /\
    forall z, In z (touches_of (code_of (steps e)) t) -> writes_it z = true -> a_rows (snd z) = Some r ->
      in_columns (snd z) col = true -> z = y.
Proof.
  intros e t x r col I O R C.
  exact (made_once (b_workers b) (cert_of (steps e)) (tensors_in (steps e)) (most_rows (program_at (s_program (steps e))))
    _ (h_uses (hint_of (steps e))) (h_floor (hint_of (steps e))) (sharing_pairs (program_at (s_program (steps e)))) (code_of (steps e)) (memory_checked _ (all_allowed e)) t x r col I O R C).
Qed.

(* (d) Every byte of the arena that an access covers is a byte of its tensor, and the tensor lies in the arena. *)
Theorem accepted_in_bounds : forall e a x, t_space (tensors_in (steps e) (a_tensor a)) = Arena ->
  place_of (steps e) a (ArenaByte x) = true ->
  let t := tensors_in (steps e) (a_tensor a) in
  (t_offset t <= x < t_offset t + t_bytes t)%N /\ (t_offset t + t_bytes t <= arena_bytes (program_at (s_program (steps e))))%N.
Proof.
  intros e a x S P. cbv zeta. pose proof (all_allowed e) as A.
  pose proof (covered_in_bounds _ _ (step_is_legal _ A) _ a x (tensor_holds _ _ A) S P) as B.
  destruct (tensor_is_ok (steps e) (a_tensor a) A) as [Q|T]; [rewrite Q in S; discriminate|].
  unfold tensor_ok, size_of_space in T. rewrite S in T. rewrite !andb_true_iff, !N.leb_le in T. lia.
Qed.

(* (e) While a worker is in a step, the step's bank holds exactly the signals given in that step. *)
Theorem accepted_banks : forall t s, machine_runs t s -> forall w i, w < b_workers b ->
  at_ (code_of (steps (step_of s w))) w (place s w) = Some i -> forall k,
  bank s (step_of s w mod 3) k = length (filter (fun vq =>
    (step_of s (fst vq) =? step_of s w) && (snd vq <? place s (fst vq))) (signals_of (list access) (code_of (steps (step_of s w))) k)).
Proof. exact (banks_hold_this_step _ _ _ _ _ _ _ _ _ _ certs). Qed.

(* (a') Every step ends: executions of more moves than the budget of a step are past it, and there are executions of any length. *)
Definition machine_runs_in := runs_in (list access) (b_workers b) (fun e => code_of (steps e)) (fun e => lines_of (steps e)) turns.
Definition moves_up_to := budget (list access) (b_workers b) (fun e => code_of (steps e)) turns.

Theorem accepted_steps_end : forall n t s, machine_runs_in n t s -> forall e, moves_up_to e < n -> e < done s.
Proof.
  intros n t s R. apply (steps_end _ _ _ _ _ _ _ _ _ _ certs n t s R). intro w.
  apply (turns_kept _ _ _ _ _ _ _ _ _ _ certs t s).
  exact (runs_in_runs _ _ _ _ _ _ _ _ R).
Qed.

Theorem accepted_goes_on_for_ever : forall e, exists n t s, machine_runs_in n t s /\ e < done s.
Proof.
  intro e. assert (Any : forall n, exists t s, machine_runs_in n t s).
  { induction n as [|n (t & s & R)].
    - exists [], initial. constructor.
    - destruct (accepted_never_deadlocks t s (runs_in_runs _ _ _ _ _ _ _ _ R)) as (w & a & s' & W & Mv).
      eexists. exists s'. exact (in_more _ _ _ _ _ _ _ _ _ _ _ R W Mv). }
  destruct (Any (S (moves_up_to e))) as (t & s & R). exists (S (moves_up_to e)), t, s. split; [exact R|].
  apply (accepted_steps_end _ _ _ R). lia.
Qed.

(* (c') The same of elements: each row that is there and each column of an output is written by exactly one packet, once. *)
Theorem accepted_elements_made_once : forall e t x row col, In x (touches_of (code_of (steps e)) t) ->
  is_output (tensors_in (steps e) t) = true ->
  row < rows_of (s_shape (steps e)) (tile_kind (tensors_in (steps e) t)) -> col < t_cols (tensors_in (steps e) t) ->
  let makes := fun y => In y (touches_of (code_of (steps e)) t) /\ writes_it y = true /\
    in_rows (s_shape (steps e)) (tile_kind (tensors_in (steps e) t)) (a_rows (snd y)) row = true /\ in_columns (snd y) col = true in
  exists y, makes y /\ forall z, makes z -> z = y.
Proof.
  intros e t x row col I O R C. cbv zeta. set (k := tile_kind (tensors_in (steps e) t)) in *.
  pose proof (all_allowed e) as A. pose proof (tiles_positive _ A k) as D.
  set (r := row / tile_of (s_shape (steps e)) k).
  assert (Rt : r < step_tiles (tiles_of (steps e) 1) (tiles_of (steps e) 2) k).
  { unfold r. destruct k as [|[|k']]; cbn [step_tiles].
    - cbn [rows_of tile_of] in *. rewrite Nat.div_1_r. exact R.
    - exact (row_has_tile _ _ _ D R).
    - exact (row_has_tile _ _ _ D R). }
  assert (In_r : in_tile (s_shape (steps e)) k r row = true).
  { unfold in_tile. rewrite !andb_true_iff, Nat.leb_le, !Nat.ltb_lt. unfold r.
    pose proof (Nat.div_mod row (tile_of (s_shape (steps e)) k)) as E. pose proof (Nat.mod_upper_bound row (tile_of (s_shape (steps e)) k)) as U.
    split; [split|exact R]; [|cbn [Nat.mul]]; nia. }
  destruct (accepted_made_once e t x r col I O Rt C) as (y & (Y1 & Y2 & Y3 & Y4) & Only).
  exists y. split.
  - repeat split; auto. rewrite Y3. exact In_r.
  - intros z (Z1 & Z2 & Z3 & Z4). apply Only; auto.
    pose proof (memory_checked _ A) as K.
    destruct (output_checked _ _ _ _ _ _ _ _ _ K t z Z1 O) as (Co & _). unfold check_output in Co. rewrite !andb_true_iff in Co.
    destruct Co as [[_ Co] _]. rewrite forallb_forall in Co.
    assert (Zi : In z (filter writes_it (touches_of (code_of (steps e)) t))) by (apply filter_In; auto).
    specialize (Co _ Zi). destruct (a_rows (snd z)) as [r'|]; [|discriminate]. f_equal.
    cbn in Z3. exact (tile_unique (s_shape (steps e)) k r' r row Z3 In_r).
Qed.

(* (d') Whatever a packet of an allowed step may read or write, of the tape and the caches too, by its operator's footprint: the
   operand is there, has those columns and rows, and lies inside its memory. *)
Theorem accepted_regions_in_bounds : forall s, allowed s -> forall q k g,
  In q (queues (program_at (s_program s))) -> In k q -> is_protocol k = false -> In g (regions_of (tensors_in s) k) ->
  region_in_bounds (tensors_in s) k g = true /\
  let t := tensors_in s (nth (g_operand g) (p_operands k) 0) in
  match t_space t with
  | Column => (t_offset t <= 4)%N
  | _ => (t_offset t + t_bytes t <= size_of_space b (program_at (s_program s)) t /\ extent b t <= t_bytes t)%N
  end.
Proof.
  intros s A q k g Iq Ik Np Ig. pose proof (tables_checked s A) as T. unfold tables_ok in T. rewrite !andb_true_iff in T.
  destruct T as [_ T]. rewrite forallb_forall in T. specialize (T _ Iq). rewrite forallb_forall in T. specialize (T _ Ik).
  unfold packet_ok in T. rewrite Np, !andb_true_iff in T. destruct T as [_ T]. unfold work_ok in T. rewrite !andb_true_iff in T.
  destruct T as [_ T]. rewrite forallb_forall in T. specialize (T _ Ig). split; [exact T|]. cbv zeta.
  destruct (tensor_is_ok s (nth (g_operand g) (p_operands k) 0) A) as [Q|Q].
  - exfalso. unfold region_in_bounds in T. rewrite Q in T. cbn in T. rewrite !andb_true_iff in T. destruct T as [[[_ T1] T2] _].
    apply Nat.ltb_lt in T1. apply Nat.leb_le in T2. lia.
  - unfold tensor_ok in Q. rewrite !andb_true_iff in Q. destruct Q as [_ Q].
    destruct (t_space (tensors_in s (nth (g_operand g) (p_operands k) 0))); rewrite ?andb_true_iff, ?N.leb_le in Q; tauto.
Qed.

End Accepted.
