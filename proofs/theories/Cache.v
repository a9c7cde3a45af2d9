(* Block tables and sliding windows: src/runtime/kv_cache.cpp as a machine of small changes, of one KV group. What it keeps is what
   `allowed` in Theorems.v asks of a step (rows keep their positions in cells of their own), and more: what a row reads at a position
   of its sequence is what that position of that sequence wrote, whatever blocks were given back and taken again meanwhile. *)
From Coq Require Import Arith Bool Lia.

Section Cache.
Variable block_tokens : nat.  (* positions of a block *)
Variable window : nat.        (* 0: rows read all positions of their sequence *)
Hypothesis some_tokens : 0 < block_tokens.

(* The first position that a row at p reads. *)
Definition window_begin (p : nat) : nat := if window =? 0 then 0 else p + 1 - window.

Record state := {
  table : nat -> nat -> option nat;         (* slot, run of positions: its block *)
  free : nat -> Prop;                       (* blocks *)
  first : nat -> nat;                       (* by slot: runs before this one were given back *)
  next : nat -> nat;                        (* by slot: the sequence has so many positions *)
  content : nat -> nat -> option (nat * nat)  (* block, place in it: slot and position of who wrote it last *)
}.

Definition initial (s : state) : Prop :=
  (forall q i, table s q i = None) /\ (forall q, first s q = 0) /\ (forall q, next s q = 0).

Definition set {A} (f : nat -> A) (i : nat) (v : A) : nat -> A := fun j => if j =? i then v else f j.
Definition run_of (p : nat) : nat := p / block_tokens.
Definition place_of (p : nat) : nat := p mod block_tokens.

(* What a step may do: blocks are taken, and positions written. *)
Inductive fills (s : state) : state -> Prop :=
| takes : forall q i b, table s q i = None -> free s b ->
    fills s {| table := set (table s) q (set (table s q) i (Some b)); free := fun x => free s x /\ x <> b;
               first := first s; next := next s; content := content s |}
| writes : forall q b, table s q (run_of (next s q)) = Some b ->
    fills s {| table := table s; free := free s; first := first s; next := set (next s) q (S (next s q));
               content := set (content s) b (set (content s b) (place_of (next s q)) (Some (q, next s q))) |}.

(* What happens between steps: a run that has left the window of all rows to come is given back (leave_window), a sequence is taken
   back to a position whose window is still there (holds_window_of), or it ends (release). *)
Inductive frees (s : state) : state -> Prop :=
| leaves : forall q, first s q < run_of (window_begin (next s q)) ->
    frees s {| table := set (table s) q (set (table s q) (first s q) None);
               free := fun x => free s x \/ table s q (first s q) = Some x;
               first := set (first s) q (S (first s q)); next := next s; content := content s |}
| rewinds : forall q p, p <= next s q -> first s q <= run_of (window_begin p) ->
    frees s {| table := table s; free := free s; first := first s; next := set (next s) q p; content := content s |}
| releases : forall q,
    frees s {| table := set (table s) q (fun _ => None); free := fun x => free s x \/ exists i, table s q i = Some x;
               first := set (first s) q 0; next := set (next s) q 0; content := content s |}.

Inductive reached : state -> Prop :=
| reached_first : forall s, initial s -> reached s
| reached_fills : forall s s', reached s -> fills s s' -> reached s'
| reached_frees : forall s s', reached s -> frees s s' -> reached s'.

(* What every state keeps. *)
Record kept (s : state) : Prop := {
  held_once : forall q i q' i' b, table s q i = Some b -> table s q' i' = Some b -> q = q' /\ i = i';
  held_not_free : forall q i b, table s q i = Some b -> ~ free s b;
  window_held : forall q, first s q <= run_of (window_begin (next s q));
  own_content : forall q p, p < next s q -> first s q <= run_of p ->
    exists b, table s q (run_of p) = Some b /\ content s b (place_of p) = Some (q, p)
}.

Lemma run_monotone : forall p p', p <= p' -> run_of p <= run_of p'.
Proof. intros. apply Nat.div_le_mono; lia. Qed.
Lemma window_monotone : forall p p', p <= p' -> window_begin p <= window_begin p'.
Proof. intros. unfold window_begin. destruct (window =? 0); lia. Qed.
Lemma same_position : forall p p', run_of p = run_of p' -> place_of p = place_of p' -> p = p'.
Proof.
  intros p p' R P. unfold run_of, place_of in *.
  rewrite (Nat.div_mod p block_tokens), (Nat.div_mod p' block_tokens) by lia. congruence.
Qed.

Lemma set_same : forall A (f : nat -> A) i v, set f i v i = v.
Proof. intros. unfold set. now rewrite Nat.eqb_refl. Qed.
Lemma set_other : forall A (f : nat -> A) i j v, j <> i -> set f i v j = f j.
Proof. intros A f i j v N. unfold set. now rewrite (proj2 (Nat.eqb_neq j i) N). Qed.

(* What a table holds after a run of one slot was set. *)
Lemma entry_cases : forall (t : nat -> nat -> option nat) q i v q' i' b,
  set t q (set (t q) i v) q' i' = Some b -> (q' = q /\ i' = i /\ v = Some b) \/ ((q' <> q \/ i' <> i) /\ t q' i' = Some b).
Proof.
  intros t q i v q' i' b H. destruct (Nat.eq_dec q' q) as [->|N].
  - rewrite set_same in H. destruct (Nat.eq_dec i' i) as [->|M].
    + rewrite set_same in H. auto.
    + rewrite set_other in H by exact M. auto.
  - rewrite set_other in H by exact N. auto.
Qed.

Lemma initial_kept : forall s, initial s -> kept s.
Proof.
  intros s (T & F & N). split.
  - intros q i q' i' b H. now rewrite T in H.
  - intros q i b H. now rewrite T in H.
  - intro q. rewrite F. lia.
  - intros q p H. rewrite N in H. lia.
Qed.

Lemma fills_kept : forall s s', kept s -> fills s s' -> kept s'.
Proof.
  intros s s' K C. destruct C as [q i b No Fr | q b Tb]; split; cbn [table free first next content].
  - intros q1 i1 q2 i2 x H1 H2. apply entry_cases in H1, H2.
    destruct H1 as [(-> & -> & E1)|[_ H1]], H2 as [(-> & -> & E2)|[_ H2]].
    + auto.
    + injection E1 as ->. exfalso. exact (held_not_free s K _ _ _ H2 Fr).
    + injection E2 as ->. exfalso. exact (held_not_free s K _ _ _ H1 Fr).
    + exact (held_once s K _ _ _ _ _ H1 H2).
  - intros q1 i1 x H (Fx & Nx). apply entry_cases in H. destruct H as [(_ & _ & E)|[_ H]]; [congruence|].
    exact (held_not_free s K _ _ _ H Fx).
  - exact (window_held s K).
  - intros q1 p L W. destruct (own_content s K q1 p L W) as (x & H & O). exists x. split; [|exact O].
    destruct (Nat.eq_dec q1 q) as [->|N]; [|now rewrite set_other by exact N].
    rewrite set_same. destruct (Nat.eq_dec (run_of p) i) as [<-|M]; [congruence|now rewrite set_other by exact M].
  - exact (held_once s K).
  - exact (held_not_free s K).
  - intro q1. destruct (Nat.eq_dec q1 q) as [->|N]; [|rewrite set_other by exact N; exact (window_held s K q1)].
    rewrite set_same. pose proof (window_held s K q) as W.
    pose proof (run_monotone _ _ (window_monotone (next s q) (S (next s q)) ltac:(lia))). lia.
  - intros q1 p L W. destruct (Nat.eq_dec q1 q) as [->|N].
    + rewrite set_same in L. destruct (Nat.eq_dec p (next s q)) as [->|M].
      * exists b. split; [exact Tb|]. now rewrite !set_same.
      * destruct (own_content s K q p ltac:(lia) W) as (x & H & O). exists x. split; [exact H|].
        destruct (Nat.eq_dec x b) as [->|B]; [|now rewrite set_other by exact B].
        rewrite set_same, set_other; [exact O|]. intro E. apply M.
        destruct (held_once s K _ _ _ _ _ H Tb) as [_ R]. exact (same_position _ _ R E).
    + rewrite set_other in L by exact N. destruct (own_content s K q1 p L W) as (x & H & O). exists x. split; [exact H|].
      destruct (Nat.eq_dec x b) as [->|B]; [|now rewrite set_other by exact B].
      exfalso. destruct (held_once s K _ _ _ _ _ H Tb) as [E _]. exact (N E).
Qed.

Lemma frees_kept : forall s s', kept s -> frees s s' -> kept s'.
Proof.
  intros s s' K C. destruct C as [q Lt | q p Le W | q]; split; cbn [table free first next content].
  - intros q1 i1 q2 i2 x H1 H2. apply entry_cases in H1, H2.
    destruct H1 as [(_ & _ & E)|[_ H1]]; [discriminate|]. destruct H2 as [(_ & _ & E)|[_ H2]]; [discriminate|].
    exact (held_once s K _ _ _ _ _ H1 H2).
  - intros q1 i1 x H Fx. apply entry_cases in H. destruct H as [(_ & _ & E)|[D H]]; [discriminate|].
    destruct Fx as [Fx|Fx]; [exact (held_not_free s K _ _ _ H Fx)|].
    destruct (held_once s K _ _ _ _ _ H Fx) as [E1 E2]. destruct D; congruence.
  - intro q1. destruct (Nat.eq_dec q1 q) as [->|N]; [rewrite set_same; lia|rewrite set_other by exact N; exact (window_held s K q1)].
  - intros q1 x L W. destruct (Nat.eq_dec q1 q) as [->|N].
    + rewrite set_same in W. destruct (own_content s K q x L ltac:(lia)) as (b & H & O). exists b. split; [|exact O].
      rewrite set_same, set_other; [exact H|lia].
    + rewrite set_other in W by exact N. destruct (own_content s K q1 x L W) as (b & H & O). exists b. split; [|exact O].
      now rewrite set_other by exact N.
  - exact (held_once s K).
  - exact (held_not_free s K).
  - intro q1. destruct (Nat.eq_dec q1 q) as [->|N]; [now rewrite set_same|rewrite set_other by exact N; exact (window_held s K q1)].
  - intros q1 x L F. apply (own_content s K q1 x); [|exact F].
    destruct (Nat.eq_dec q1 q) as [->|N]; [rewrite set_same in L; lia|now rewrite set_other in L by exact N].
  - intros q1 i1 q2 i2 x H1 H2.
    destruct (Nat.eq_dec q1 q) as [->|N1]; [rewrite set_same in H1; discriminate|rewrite set_other in H1 by exact N1].
    destruct (Nat.eq_dec q2 q) as [->|N2]; [rewrite set_same in H2; discriminate|rewrite set_other in H2 by exact N2].
    exact (held_once s K _ _ _ _ _ H1 H2).
  - intros q1 i1 x H Fx. destruct (Nat.eq_dec q1 q) as [->|N]; [rewrite set_same in H; discriminate|].
    rewrite set_other in H by exact N. destruct Fx as [Fx|(i & Fx)]; [exact (held_not_free s K _ _ _ H Fx)|].
    destruct (held_once s K _ _ _ _ _ H Fx) as [E _]. exact (N E).
  - intro q1. destruct (Nat.eq_dec q1 q) as [->|N]; [rewrite set_same; lia|rewrite !set_other by exact N; exact (window_held s K q1)].
  - intros q1 x L F. destruct (Nat.eq_dec q1 q) as [->|N]; [rewrite set_same in L; lia|].
    rewrite set_other in L, F by exact N. destruct (own_content s K q1 x L F) as (b & H & O). exists b. split; [|exact O].
    now rewrite set_other by exact N.
Qed.

Theorem reached_kept : forall s, reached s -> kept s.
Proof. induction 1; [now apply initial_kept|now apply fills_kept with s|now apply frees_kept with s]. Qed.

(* Rows of a step, each a slot and a position of it, no two alike, keep their positions in cells of their own: what Theorems.v calls
   own_cells, of block tables that the runtime made. *)
Definition cell (s : state) (q p : nat) : nat :=
  match table s q (run_of p) with Some b => b * block_tokens + place_of p | None => 0 end.

Theorem tables_give_own_cells : forall s, reached s -> forall rows (slot position : nat -> nat),
  (forall r, r < rows -> table s (slot r) (run_of (position r)) <> None) ->
  (forall r r', r < rows -> r' < rows -> slot r = slot r' -> position r = position r' -> r = r') ->
  forall r r', r < rows -> r' < rows -> cell s (slot r) (position r) = cell s (slot r') (position r') -> r = r'.
Proof.
  intros s R rows slot position Held Other r r' L L' E. pose proof (reached_kept s R) as K.
  pose proof (Held r L) as H. pose proof (Held r' L') as H'. unfold cell in E.
  destruct (table s (slot r) (run_of (position r))) as [b|] eqn:T; [|congruence].
  destruct (table s (slot r') (run_of (position r'))) as [b'|] eqn:T'; [|congruence].
  pose proof (Nat.mod_upper_bound (position r) block_tokens ltac:(lia)) as U.
  pose proof (Nat.mod_upper_bound (position r') block_tokens ltac:(lia)) as U'. fold (place_of (position r)) in U.
  fold (place_of (position r')) in U'.
  assert (B : b = b') by nia. subst b'. assert (P : place_of (position r) = place_of (position r')) by lia.
  destruct (held_once s K _ _ _ _ _ T T') as [Q I]. apply Other; auto. exact (same_position _ _ I P).
Qed.

(* A step: from the state in which it begins, blocks are taken and positions written, and nothing is given back. *)
Inductive steps_on : state -> state -> Prop :=
| steps_nothing : forall s, steps_on s s
| steps_more : forall s s' s'', steps_on s s' -> fills s' s'' -> steps_on s s''.

(* A row of the step at position p reads, from the first position of its window to its own, what its own sequence wrote there. *)
Theorem rows_read_their_own : forall s s', reached s -> steps_on s s' -> forall q p, next s q <= p -> p < next s' q ->
  forall x, window_begin p <= x <= p ->
  exists b, table s' q (run_of x) = Some b /\ content s' b (place_of x) = Some (q, x).
Proof.
  intros s s' R St q p Lo Hi x W.
  assert (G : reached s' /\ first s' q = first s q).
  { clear Hi W. induction St as [s|s s' s'' St IH C]; [auto|]. destruct (IH R Lo) as [R' F]. split.
    - exact (reached_fills _ _ R' C).
    - destruct C; exact F. }
  destruct G as [R' F]. apply (own_content s' (reached_kept s' R')); [lia|]. rewrite F.
  pose proof (window_held s (reached_kept s R) q).
  pose proof (run_monotone _ _ (window_monotone _ _ Lo)). pose proof (run_monotone _ _ (proj1 W)). lia.
Qed.

End Cache.
