(* Where tensors lie, and what a packet's accesses cover: the places of memory that actions may touch. *)
From Coq Require Import NArith List Arith Bool Lia.
Import ListNotations.

Inductive space := Tape | Arena | Cache | Column.

Record tensor := {
  t_space : space;
  t_group : nat;      (* Cache: the KV group *)
  t_offset : N;       (* Arena, Tape: bytes; Cache: bytes from the start of a block; Column: its number *)
  t_bytes : N;
  t_kind : nat;       (* what its rows count: 0 nothing, 1 tokens, 2 samples *)
  t_rows : N;         (* the most *)
  t_cols : nat;
  t_stride : N;       (* Arena: bytes between rows *)
  t_element : N;      (* bytes; of a dtype of blocks: of 32 columns *)
  t_layout : nat      (* abi/tensor.h: 1 rows, 2 groups of 16 rows and pairs of columns, 4 atoms of 8 rows and 128 bytes; 3 and 5 blocks of the cache;
                         6 groups of 16 rows and blocks of 32 columns *)
}.

Record access := {
  a_tensor : nat;
  a_writes : bool;
  a_rows : option nat;    (* a row tile; None: any row *)
  a_first : nat; a_end : nat  (* columns [a_first, a_end) *)
}.

(* The columns of the step that the host reads; every other column is an input (abi/step.h: kSampled). *)
Definition sampled_column : N := 4.
Definition is_output (t : tensor) : bool :=
  match t_space t with Tape => false | Arena => true | Cache => true | Column => N.eqb (t_offset t) sampled_column end.

Inductive location :=
| ArenaByte (address : N)
| CacheCell (group : nat) (layer : N) (cell : nat) (column : nat)  (* key and value of one column of one position of one layer *)
| ColumnEntry (column : N) (row : nat)
| Register (worker : nat) (name : nat).  (* a worker's own *)

(* A step: how many rows, how they are cut, and where the cache keeps each row's position. *)
Record shape := { tokens : nat; samples : nat; token_tile : nat; sample_tile : nat; cell_of : nat -> nat }.
Definition rows_of (g : shape) (kind : nat) : nat := match kind with 0 => 1 | 1 => tokens g | _ => samples g end.
Definition tile_of (g : shape) (kind : nat) : nat := match kind with 0 => 1 | 1 => token_tile g | _ => sample_tile g end.

(* Row `row` of the kind is in row tile r and is there in this step. *)
Definition in_tile (g : shape) (kind r row : nat) : bool :=
  (r * tile_of g kind <=? row) && (row <? S r * tile_of g kind) && (row <? rows_of g kind).
Definition in_rows (g : shape) (kind : nat) (rows : option nat) (row : nat) : bool :=
  match rows with Some r => in_tile g kind r row | None => row <? rows_of g kind end.
Definition in_columns (a : access) (c : nat) : bool := (a_first a <=? c) && (c <? a_end a).

Definition covers (g : shape) (t : tensor) (a : access) (l : location) : bool :=
  match t_space t, l with
  | Arena, ArenaByte x =>
      let d := (x - t_offset t)%N in
      (t_offset t <=? x)%N && in_rows g (t_kind t) (a_rows a) (N.to_nat (d / t_stride t)) &&
      in_columns a (N.to_nat ((d mod t_stride t) / t_element t))
  | Cache, CacheCell gr la cell c =>
      (gr =? t_group t) && N.eqb la (t_offset t) && in_columns a c &&
      match a_rows a with
      | None => true  (* any position of any sequence *)
      | Some r => existsb (fun row => in_tile g 1 r row && (cell_of g row =? cell)) (seq 0 (tokens g))
      end
  | Column, ColumnEntry c row => N.eqb c (t_offset t) && in_rows g (t_kind t) (a_rows a) row && in_columns a 0
  | _, _ => false
  end.

(* What can be read off the tables: whether two accesses can meet. *)
Definition rows_meet (a b : access) : bool :=
  match a_rows a, a_rows b with Some r, Some r' => r =? r' | _, _ => true end.
Definition columns_meet (a b : access) : bool := (a_first a <? a_end b) && (a_first b <? a_end a).
Definition apart (o n o' n' : N) : bool := (o + n <=? o')%N || (o' + n' <=? o)%N.
Definition share (t t' : tensor) : bool :=
  match t_space t, t_space t' with
  | Arena, Arena => negb (apart (t_offset t) (t_bytes t) (t_offset t') (t_bytes t'))
  | Cache, Cache => (t_group t =? t_group t') && N.eqb (t_offset t) (t_offset t')
  | Column, Column => N.eqb (t_offset t) (t_offset t')
  | _, _ => false
  end.

(* What is checked of each tensor: it holds the rows of any step. *)
Definition holds_rows (most_rows : nat -> nat) (t : tensor) : bool :=
  match t_space t with
  | Arena => (0 <? t_element t)%N && (0 <? t_stride t)%N && (N.of_nat (t_cols t) * t_element t <=? t_stride t)%N &&
             (N.of_nat (most_rows (t_kind t)) * t_stride t <=? t_bytes t)%N
  | _ => true
  end.

(* A step that the program allows: rows within the maxima, and (asserted by the runtime for every step: TRUSTED.md) the rows of a
   step keep their positions in cells of their own. *)
Record legal (g : shape) (most_rows : nat -> nat) : Prop := {
  rows_bounded : forall kind, rows_of g kind <= most_rows kind;
  tile_positive : forall kind, 0 < tile_of g kind;
  cells_own : forall i j, i < tokens g -> j < tokens g -> cell_of g i = cell_of g j -> i = j
}.

Section Meet.
Variable g : shape.
Variable most_rows : nat -> nat.
Hypothesis g_legal : legal g most_rows.

Lemma tile_unique : forall kind r r' row, in_tile g kind r row = true -> in_tile g kind r' row = true -> r = r'.
Proof.
  intros kind r r' row H H'. unfold in_tile in *.
  apply andb_true_iff in H. destruct H as [H _]. apply andb_true_iff in H. destruct H as [H1 H2].
  apply andb_true_iff in H'. destruct H' as [H' _]. apply andb_true_iff in H'. destruct H' as [H3 H4].
  apply Nat.leb_le in H1, H3. apply Nat.ltb_lt in H2, H4. cbn [Nat.mul] in *. nia.
Qed.

Lemma rows_meet_at : forall kind a b row, in_rows g kind (a_rows a) row = true -> in_rows g kind (a_rows b) row = true ->
  rows_meet a b = true.
Proof.
  intros kind a b row. unfold in_rows, rows_meet. destruct (a_rows a) as [r|], (a_rows b) as [r'|]; auto.
  intros H H'. apply Nat.eqb_eq. exact (tile_unique kind r r' row H H').
Qed.

Lemma columns_meet_at : forall a b c, in_columns a c = true -> in_columns b c = true -> columns_meet a b = true.
Proof.
  intros a b c. unfold in_columns, columns_meet. rewrite !andb_true_iff, !Nat.leb_le, !Nat.ltb_lt. lia.
Qed.

Lemma row_there : forall kind rows row, in_rows g kind rows row = true -> row < rows_of g kind.
Proof.
  intros kind [r|] row H; cbn in H; [|now apply Nat.ltb_lt].
  unfold in_tile in H. apply andb_true_iff in H. now apply Nat.ltb_lt.
Qed.

(* THEOREM (bounds). A byte of the arena that an access covers lies inside its tensor. *)
Lemma covered_in_bounds : forall t a x, holds_rows most_rows t = true -> t_space t = Arena ->
  covers g t a (ArenaByte x) = true -> (t_offset t <= x < t_offset t + t_bytes t)%N.
Proof.
  intros t a x H A C. unfold holds_rows in H. rewrite A in H. unfold covers in C. rewrite A in C.
  rewrite !andb_true_iff in H. destruct H as [[[H1 H2] H3] H4]. rewrite !andb_true_iff in C. destruct C as [[C1 C2] C3].
  apply N.leb_le in C1, H3, H4. apply N.ltb_lt in H1, H2. apply row_there in C2.
  pose proof (rows_bounded _ _ g_legal (t_kind t)) as B.
  split; [exact C1|].
  set (d := (x - t_offset t)%N) in *.
  assert (D : (d / t_stride t < N.of_nat (most_rows (t_kind t)))%N) by lia.
  assert (d < N.of_nat (most_rows (t_kind t)) * t_stride t)%N.
  { pose proof (N.div_mod d (t_stride t)) as E. pose proof (N.mod_lt d (t_stride t)) as L. nia. }
  lia.
Qed.

Theorem covers_meet : forall t t' a b l, holds_rows most_rows t = true -> holds_rows most_rows t' = true ->
  covers g t a l = true -> covers g t' b l = true ->
  share t t' = true /\ (t = t' -> rows_meet a b = true /\ columns_meet a b = true).
Proof.
  intros t t' a b l H H' C C'. split.
  - destruct (t_space t) eqn:S; destruct (t_space t') eqn:S'; destruct l; unfold share; rewrite ?S, ?S';
      try (unfold covers in C; rewrite S in C; discriminate); try (unfold covers in C'; rewrite S' in C'; discriminate).
    + pose proof (covered_in_bounds t a _ H S C). pose proof (covered_in_bounds t' b _ H' S' C').
      unfold apart. apply negb_true_iff, orb_false_iff. split; apply N.leb_gt; lia.
    + unfold covers in C, C'. rewrite S in C. rewrite S' in C'. rewrite !andb_true_iff in C, C'.
      destruct C as [[[C1 C2] _] _]. destruct C' as [[[C1' C2'] _] _].
      apply Nat.eqb_eq in C1, C1'. apply N.eqb_eq in C2, C2'. apply andb_true_iff. split; [apply Nat.eqb_eq|apply N.eqb_eq]; congruence.
    + unfold covers in C, C'. rewrite S in C. rewrite S' in C'. rewrite !andb_true_iff in C, C'.
      destruct C as [[C1 _] _]. destruct C' as [[C1' _] _]. apply N.eqb_eq in C1, C1'. apply N.eqb_eq. congruence.
  - intros <-. unfold covers in C, C'. destruct (t_space t) eqn:S; destruct l; try discriminate; rewrite !andb_true_iff in C, C'.
    + destruct C as [[_ R] K], C' as [[_ R'] K']. split; [eapply rows_meet_at; eauto|eapply columns_meet_at; eauto].
    + destruct C as [[_ K] R], C' as [[_ K'] R']. split; [|eapply columns_meet_at; eauto].
      unfold rows_meet. destruct (a_rows a) as [r|], (a_rows b) as [r'|]; auto. apply Nat.eqb_eq.
      apply existsb_exists in R, R'. destruct R as (i & _ & R), R' as (j & _ & R').
      apply andb_true_iff in R, R'. destruct R as [R1 R2], R' as [R1' R2']. apply Nat.eqb_eq in R2, R2'.
      assert (L : forall r row, in_tile g 1 r row = true -> row < tokens g).
      { intros r0 row T. unfold in_tile in T. apply andb_true_iff in T. now apply Nat.ltb_lt. }
      assert (i = j) by (apply (cells_own _ _ g_legal); [eapply L; eauto|eapply L; eauto|congruence]). subst j.
      exact (tile_unique 1 r r' i R1 R1').
    + destruct C as [[_ R] K], C' as [[_ R'] K']. split; [eapply rows_meet_at; eauto|eapply columns_meet_at; eauto].
Qed.

End Meet.
