(* The checker of memory: every output is made once, reads come after the writes that they need, and tensors that lie over each
   other are never in use together. *)
From Coq Require Import NArith List Arith Bool Lia Sorting Mergesort Orders Permutation.
From Plow Require Import Machine Invariant Loops Sync Memory.
Import ListNotations.

(* An access and who makes it: worker, place. *)
Definition touch := (nat * nat * access)%type.

Module ByColumn <: TotalLeBool.
  Definition t := touch.
  Definition leb (a b : touch) : bool := a_first (snd a) <=? a_first (snd b).
  Infix "<=?" := leb.
  Theorem leb_total : forall a b, a <=? b = true \/ b <=? a = true.
  Proof. intros a b. unfold leb. rewrite !Nat.leb_le. lia. Qed.
End ByColumn.
Module Sorted := Sort ByColumn.

(* Columns [from, end) in pieces that follow each other without gap or overlap. *)
Fixpoint chain (from : nat) (l : list touch) (cols : nat) : bool :=
  match l with
  | [] => from =? cols
  | x :: r => (a_first (snd x) =? from) && (from <? a_end (snd x)) && chain (a_end (snd x)) r cols
  end.

Lemma chain_covers : forall l from cols, chain from l cols = true ->
  forall c, from <= c < cols -> exists x, In x l /\ in_columns (snd x) c = true.
Proof.
  induction l as [|x l IH]; intros from cols H c L; cbn in H.
  - apply Nat.eqb_eq in H. lia.
  - rewrite !andb_true_iff in H. destruct H as [[H1 H2] H3]. apply Nat.eqb_eq in H1. apply Nat.ltb_lt in H2.
    destruct (lt_dec c (a_end (snd x))) as [C|C].
    + exists x. split; [now left|]. unfold in_columns. apply andb_true_iff. split; [apply Nat.leb_le|apply Nat.ltb_lt]; lia.
    + destruct (IH _ _ H3 c) as (y & I & Y); [lia|]. exists y. split; [now right|exact Y].
Qed.

Lemma chain_later : forall l from cols, chain from l cols = true -> forall y, In y l -> from <= a_first (snd y).
Proof.
  induction l as [|x l IH]; intros from cols H y I; [destruct I|]. cbn in H. rewrite !andb_true_iff in H.
  destruct H as [[H1 H2] H3]. apply Nat.eqb_eq in H1. apply Nat.ltb_lt in H2. destruct I as [<-|I]; [lia|].
  specialize (IH _ _ H3 y I). lia.
Qed.

Lemma chain_apart : forall l from cols, chain from l cols = true -> forall x y, In x l -> In y l -> x <> y ->
  columns_meet (snd x) (snd y) = false.
Proof.
  induction l as [|z l IH]; intros from cols H x y Ix Iy N; [destruct Ix|]. cbn in H. rewrite !andb_true_iff in H.
  destruct H as [[H1 H2] H3]. unfold columns_meet. rewrite andb_false_iff, !Nat.ltb_ge.
  destruct Ix as [<-|Ix], Iy as [<-|Iy]; [congruence| | |].
  - pose proof (chain_later _ _ _ H3 y Iy). lia.
  - pose proof (chain_later _ _ _ H3 x Ix). lia.
  - pose proof (IH _ _ H3 x y Ix Iy N) as K. unfold columns_meet in K. rewrite andb_false_iff, !Nat.ltb_ge in K. exact K.
Qed.

Lemma chain_ends : forall l from cols, chain from l cols = true -> from <= cols /\ forall y, In y l -> a_end (snd y) <= cols.
Proof.
  induction l as [|x l IH]; intros from cols H; cbn in H.
  - apply Nat.eqb_eq in H. split; [lia|intros y []].
  - rewrite !andb_true_iff in H. destruct H as [[H1 H2] H3]. apply Nat.ltb_lt in H2.
    destruct (IH _ _ H3) as [K1 K2]. split; [lia|]. intros y [<-|I]; [exact K1|exact (K2 y I)].
Qed.

Section Races.
Definition work := list access.

Definition note_access (w p : nat) (a : access) (m : M.t (list touch)) : M.t (list touch) := put (a_tensor a) (w, p, a) m.
Definition note_instr (w p : nat) (i : instr work) (m : M.t (list touch)) : M.t (list touch) :=
  match i with Work b => fold_right (note_access w p) m b | _ => m end.
Definition note_queue (w : nat) (l : list (instr work)) (m : M.t (list touch)) : M.t (list touch) :=
  fold_from (note_instr w) 0 l m.
Definition touch_map (c : code work) : M.t (list touch) := fold_from note_queue 0 c (M.empty _).
Definition touches_of (c : code work) (t : nat) : list touch := get t (touch_map c).

Lemma note_work_in : forall w p b m t x, In x (get t (fold_right (note_access w p) m b)) <->
  In x (get t m) \/ exists a, In a b /\ a_tensor a = t /\ x = (w, p, a).
Proof.
  intros w p b m t x. induction b as [|a b IH]; cbn [fold_right].
  - split; [now left|]. intros [H|(a & [] & _)]. exact H.
  - unfold note_access at 1. rewrite get_put. destruct (t =? a_tensor a) eqn:E.
    + apply Nat.eqb_eq in E. cbn [In]. rewrite IH. split.
      * intros [<-|[H|(a' & I & E' & ->)]]; [right; exists a; cbn; auto|now left|right; exists a'; cbn; auto].
      * intros [H|(a' & [<-|I] & E' & ->)]; [auto|auto|right; right; exists a'; auto].
    + apply Nat.eqb_neq in E. rewrite IH. split.
      * intros [H|(a' & I & E' & ->)]; [now left|right; exists a'; cbn; auto].
      * intros [H|(a' & [<-|I] & E' & ->)]; [auto|congruence|right; exists a'; auto].
Qed.

Lemma note_queue_in : forall w l p m t x, In x (get t (fold_from (note_instr w) p l m)) <->
  In x (get t m) \/ exists j b a, nth_error l j = Some (Work b) /\ In a b /\ a_tensor a = t /\ x = (w, p + j, a).
Proof.
  intros w. induction l as [|i l IH]; intros p m t x; cbn [fold_from].
  - split; [now left|]. intros [H|(j & b & a & H & _)]; [exact H|destruct j; discriminate].
  - rewrite IH.
    assert (G : In x (get t (note_instr w p i m)) <-> In x (get t m) \/ exists b a, i = Work b /\ In a b /\ a_tensor a = t /\ x = (w, p, a)).
    { unfold note_instr. destruct i; try (split; [now left|intros [H|(b & a & H & _)]; [exact H|discriminate]]).
      rewrite note_work_in. split.
      - intros [H|(a & I & E & ->)]; [now left|right; exists b, a; auto].
      - intros [H|(b' & a & Q & I & E & ->)]; [now left|right; exists a; injection Q as ->; auto]. }
    rewrite G. split.
    + intros [[H|(b & a & -> & I & E & ->)]|(j & b & a & H & I & E & ->)]; [now left| |].
      * right. exists 0, b, a. rewrite Nat.add_0_r. auto.
      * right. exists (S j), b, a. rewrite Nat.add_succ_r. auto.
    + intros [H|(j & b & a & H & I & E & ->)]; [now left; left|]. destruct j as [|j]; cbn in H.
      * left. right. exists b, a. injection H as ->. rewrite Nat.add_0_r. auto.
      * right. exists j, b, a. rewrite Nat.add_succ_r. auto.
Qed.

Lemma touches_from : forall c w m t x, In x (get t (fold_from note_queue w c m)) <->
  In x (get t m) \/ exists j q b a, nth_error (nth j c []) q = Some (Work b) /\ In a b /\ a_tensor a = t /\ x = (w + j, q, a).
Proof.
  induction c as [|l c IH]; intros w m t x; cbn [fold_from].
  - split; [now left|]. intros [H|(j & q & b & a & H & _)]; [exact H|destruct j, q; discriminate].
  - rewrite IH. unfold note_queue. rewrite note_queue_in. split.
    + intros [[H|(q & b & a & H & I & E & ->)]|(j & q & b & a & H & I & E & ->)]; [now left| |].
      * right. exists 0, q, b, a. rewrite Nat.add_0_r. auto.
      * right. exists (S j), q, b, a. rewrite Nat.add_succ_r. auto.
    + intros [H|(j & q & b & a & H & I & E & ->)]; [now left; left|]. destruct j as [|j]; cbn in H.
      * left. right. exists q, b, a. rewrite Nat.add_0_r. auto.
      * right. exists j, q, b, a. rewrite Nat.add_succ_r. auto.
Qed.

Lemma touches_of_all : forall c t w p a, In (w, p, a) (touches_of c t) <->
  a_tensor a = t /\ exists b, at_ c w p = Some (Work b) /\ In a b.
Proof.
  intros c t w p a. unfold touches_of, touch_map. rewrite touches_from, get_empty. cbn. split.
  - intros [[]|(j & q & b & a' & H & I & E & Q)]. injection Q as -> -> ->. split; [exact E|]. exists b. auto.
  - intros (E & b & H & I). right. exists w, p, b, a. auto.
Qed.

Variable workers : nat.
Variable cert : certificate.
Variable tensors : nat -> tensor.
Variable most_rows : nat -> nat.   (* by kind, in any step *)
Variable tiles : nat -> nat.       (* by kind, in this step *)
(* Of each tensor and worker: between which places it touches it (the first behind the last: it does not); and how far each worker is, at
   least, when any of them begins. *)
Variable uses : nat -> nat -> nat * nat.
Variable floor : nat -> nat -> nat.

(* The instruction at (v, q) is done before (w, p) begins, of which `know` is what is known there. *)
Definition is_before (know : nat -> nat) (v q w p : nat) : bool := q <? (if v =? w then p else know v).

Definition tile_kind (t : tensor) : nat := match t_space t with Cache => 1 | _ => t_kind t end.
Definition of_tile (r : nat) (x : touch) : bool := match a_rows (snd x) with Some r' => r' =? r | None => false end.
Definition writes_it (x : touch) : bool := a_writes (snd x).
Definition reads_it (x : touch) : bool := negb (a_writes (snd x)).

Definition follows (know : nat -> nat) (w p : nat) (a : access) (writes : list touch) : bool :=
  forallb (fun y => match y with (v, q, b) => negb (rows_meet a b && columns_meet a b) || is_before know v q w p end) writes.
Definition read_after_writes (writes : list touch) (x : touch) : bool :=
  match x with (w, p, a) =>
    follows (c_clock cert (c_segment cert w p)) w p a writes && (a_end a <=? t_cols (tensors (a_tensor a)))
  end.

(* Whoever knows this much knows that all the writes are done. *)
Definition knows_all (know : nat -> nat) (writes : list touch) : bool :=
  forallb (fun y => match y with (v, q, _) => q <? know v end) writes.
Definition is_sure (sure : option nat) (s : nat) : bool := match sure with Some s' => s =? s' | None => false end.
(* Reads come after writes. `sure` is a segment in which all the writes are done, so that those who read in it need no look at them. *)
Fixpoint check_reads (writes : list touch) (sure : option nat) (reads : list touch) : bool :=
  match reads with
  | [] => true
  | (w, p, a) :: rest =>
      let s := c_segment cert w p in
      let know := c_clock cert s in
      (a_end a <=? t_cols (tensors (a_tensor a))) &&
      if (know w <=? p) && is_sure sure s then check_reads writes sure rest
      else if (know w <=? p) && knows_all know writes then check_reads writes (Some s) rest
      else follows know w p a writes && check_reads writes sure rest
  end.

Lemma knows_all_follows : forall know w p a writes, know w <= p -> knows_all know writes = true -> follows know w p a writes = true.
Proof.
  intros know w p a writes P H. unfold knows_all, follows in *. rewrite forallb_forall in *. intros ((v, q), b) I. specialize (H _ I).
  cbn beta iota in H. apply Nat.ltb_lt in H. apply orb_true_iff. right. unfold is_before. apply Nat.ltb_lt.
  destruct (v =? w) eqn:E; [apply Nat.eqb_eq in E; subst v; lia|exact H].
Qed.

Lemma check_reads_sound : forall writes reads sure,
  (forall s, sure = Some s -> knows_all (c_clock cert s) writes = true) -> check_reads writes sure reads = true ->
  forall x, In x reads -> read_after_writes writes x = true.
Proof.
  intros writes. induction reads as [|((w, p), a) reads IH]; intros sure Su H x I; [destruct I|].
  cbn [check_reads] in H. cbv zeta in H. apply andb_true_iff in H. destruct H as [E H].
  assert (Here : follows (c_clock cert (c_segment cert w p)) w p a writes = true -> read_after_writes writes (w, p, a) = true).
  { intro F. cbn. rewrite F, E. reflexivity. }
  destruct ((c_clock cert (c_segment cert w p) w <=? p) && is_sure sure (c_segment cert w p)) eqn:C1.
  - apply andb_true_iff in C1. destruct C1 as [P C1]. apply Nat.leb_le in P. destruct I as [<-|I]; [|exact (IH sure Su H x I)].
    apply Here, knows_all_follows; [exact P|]. unfold is_sure in C1. destruct sure as [s'|]; [|discriminate]. apply Nat.eqb_eq in C1. rewrite C1. now apply Su.
  - destruct ((c_clock cert (c_segment cert w p) w <=? p) && knows_all (c_clock cert (c_segment cert w p)) writes) eqn:C2.
    + apply andb_true_iff in C2. destruct C2 as [P C2]. apply Nat.leb_le in P. destruct I as [<-|I]; [now apply Here, knows_all_follows|].
      refine (IH _ _ H x I). intros s Q. injection Q as <-. exact C2.
    + apply andb_true_iff in H. destruct H as [F H]. destruct I as [<-|I]; [now apply Here|exact (IH sure Su H x I)].
Qed.
Lemma all_reads_follow : forall writes reads, check_reads writes None reads = true -> forall x, In x reads -> read_after_writes writes x = true.
Proof. intros writes reads. apply check_reads_sound. discriminate. Qed.

(* The accesses of one row tile: written once, and read after that. *)
Definition check_tile (te : tensor) (writes reads : list touch) : bool :=
  chain 0 (Sorted.sort writes) (t_cols te) && check_reads writes None reads.

Definition of_any_row (x : touch) : bool := match a_rows (snd x) with Some _ => false | None => true end.
Definition check_output (t : nat) (l : list touch) : bool :=
  let writes := filter writes_it l in
  let reads := filter reads_it l in
  let te := tensors t in
  holds_rows most_rows te &&
  all_below (fun r => check_tile te (filter (of_tile r) writes) (filter (of_tile r) reads)) (tiles (tile_kind te)) &&
  forallb (fun x => match a_rows (snd x) with Some r => r <? tiles (tile_kind te) | None => false end) writes &&
  (forallb (fun x => match a_rows (snd x) with Some r => r <? tiles (tile_kind te) | None => true end) reads &&
   check_reads writes None (filter of_any_row reads)).

Definition used_by (t : nat) (x : touch) : bool :=
  match x with (w, p, _) => let u := uses t w in (fst u <=? p) && (p <=? snd u) end.
Definition floor_below (know : nat -> nat) (t v f : nat) : bool :=
  all_below (fun w => floor t w <=? (if w =? v then f else know w)) workers.
(* Of users below n. `sure` is a segment in which every floor is reached, so that of others who begin in it only their own is looked at. *)
Fixpoint check_floor (t : nat) (sure : option nat) (n : nat) : bool :=
  match n with
  | 0 => true
  | S v =>
      let u := uses t v in
      if snd u <? fst u then check_floor t sure v
      else
        let s := c_segment cert v (fst u) in
        let know := c_clock cert s in
        if is_sure sure s && (floor t v <=? fst u) then check_floor t sure v
        else floor_below know t v (fst u) && check_floor t (if floor t v <=? know v then Some s else sure) v
  end.

Lemma check_floor_sound : forall t n sure,
  (forall s, sure = Some s -> forall w, w < workers -> floor t w <= c_clock cert s w) -> check_floor t sure n = true ->
  forall v, v < n -> fst (uses t v) <= snd (uses t v) ->
  forall w, w < workers -> floor t w <= reached (c_know cert) v (fst (uses t v)) w.
Proof.
  intros t. induction n as [|n IH]; intros sure Su H v V Used; [lia|]. cbn [check_floor] in H. cbv zeta in H.
  destruct (snd (uses t n) <? fst (uses t n)) eqn:E.
  - apply Nat.ltb_lt in E. destruct (Nat.eq_dec v n) as [->|N]; [lia|apply (IH sure Su H); [lia|exact Used]].
  - destruct (is_sure sure (c_segment cert n (fst (uses t n))) && (floor t n <=? fst (uses t n))) eqn:C.
    + apply andb_true_iff in C. destruct C as [C1 C2]. apply Nat.leb_le in C2.
      destruct (Nat.eq_dec v n) as [->|N]; [|apply (IH sure Su H); [lia|exact Used]].
      intros w W. unfold reached. destruct (w =? n) eqn:Q; [apply Nat.eqb_eq in Q; now subst w|].
      unfold is_sure in C1. destruct sure as [s|]; [|discriminate]. apply Nat.eqb_eq in C1. unfold c_know. rewrite C1. now apply Su.
    + apply andb_true_iff in H. destruct H as [F H].
      assert (F' : forall w, w < workers -> floor t w <= reached (c_know cert) n (fst (uses t n)) w).
      { intros w W. pose proof (all_below_sound _ _ F w W) as X. cbn beta in X. now apply Nat.leb_le in X. }
      destruct (Nat.eq_dec v n) as [->|N]; [exact F'|].
      refine (IH _ _ H v ltac:(lia) Used). intros s Q w W.
      destruct (floor t n <=? c_clock cert (c_segment cert n (fst (uses t n))) n) eqn:K; [|now apply Su].
      injection Q as <-. specialize (F' w W). unfold reached, c_know in F'.
      destruct (Nat.eq_dec w n) as [->|Z]; [now apply Nat.leb_le|]. rewrite (proj2 (Nat.eqb_neq w n) Z) in F'. exact F'.
Qed.

Definition check_tensor (t : nat) (l : list touch) : bool :=
  if is_output (tensors t) then check_output t l && forallb (used_by t) l && check_floor t None workers else forallb reads_it l.

Definition all_before (t t' : nat) : bool :=
  all_below (fun w => let u := uses t w in (snd u <? fst u) || (snd u <? floor t' w)) workers.

(* Tensors that share memory: first the one, for good, then the other. *)
Definition check_pair (tt : nat * nat) : bool := all_before (fst tt) (snd tt) || all_before (snd tt) (fst tt).

Variable sharing : list (nat * nat).
Definition check_touches (touched : M.t (list touch)) : bool := all_lists check_tensor touched && forallb check_pair sharing.
Definition check_memory (c : code work) : bool := check_touches (touch_map c).

Variable lines : nat.
Variable c : code work.
Hypothesis synced : check_sync work workers lines cert c = true.
Hypothesis checked : check_memory c = true.

Lemma tensor_checked : forall t, touches_of c t <> [] -> check_tensor t (touches_of c t) = true.
Proof.
  intros t N. pose proof checked as H. unfold check_memory, check_touches in H. apply andb_true_iff in H. destruct H as [H _].
  exact (all_lists_sound _ _ _ H t N).
Qed.

Lemma output_checked : forall t x, In x (touches_of c t) -> is_output (tensors t) = true ->
  check_output t (touches_of c t) = true /\ (forall y, In y (touches_of c t) -> used_by t y = true) /\ check_floor t None workers = true.
Proof.
  intros t x I O. assert (N : touches_of c t <> []) by (intro Q; rewrite Q in I; destruct I).
  pose proof (tensor_checked t N) as K. unfold check_tensor in K. rewrite O, !andb_true_iff, forallb_forall in K. tauto.
Qed.

Lemma all_before_sound : forall t t', all_before t t' = true ->
  (exists x, In x (touches_of c t)) -> (exists x, In x (touches_of c t')) ->
  is_output (tensors t) = true -> is_output (tensors t') = true ->
  forall w p a v q b, In (w, p, a) (touches_of c t) -> In (v, q, b) (touches_of c t') ->
  w < workers -> v < workers -> w <> v -> q < size c v -> before (c_know cert) w p v q.
Proof.
  intros t t' H (x & Ix) (y & Iy) O O' w p a v q b I I' W V N Sz.
  destruct (output_checked t x Ix O) as (_ & U & _). destruct (output_checked t' y Iy O') as (_ & U' & Fl).
  specialize (U _ I). specialize (U' _ I'). cbv beta iota zeta delta [used_by] in U, U'. rewrite !andb_true_iff, !Nat.leb_le in U, U'.
  pose proof (all_below_sound _ _ H w W) as B. cbv beta zeta in B.
  rewrite (proj2 (Nat.ltb_ge (snd (uses t w)) (fst (uses t w)))) in B by lia. cbn [orb] in B. apply Nat.ltb_lt in B.
  assert (Fl' := check_floor_sound t' workers None (fun s Q => ltac:(discriminate)) Fl v V ltac:(lia) w W).
  unfold before. unfold reached in *.
  destruct (w =? v) eqn:Q; [apply Nat.eqb_eq in Q; contradiction|].
  pose proof (knowledge_grows work workers lines cert c synced v w (fst (uses t' v)) q V W N (proj1 U') Sz). unfold c_know in *. lia.
Qed.

(* Who makes an element, and that nobody else does. *)
Theorem made_once : forall t x r col, In x (touches_of c t) -> is_output (tensors t) = true ->
  r < tiles (tile_kind (tensors t)) -> col < t_cols (tensors t) ->
  exists y, (In y (touches_of c t) /\ writes_it y = true /\ a_rows (snd y) = Some r /\ in_columns (snd y) col = true) /\
    forall z, In z (touches_of c t) -> writes_it z = true -> a_rows (snd z) = Some r -> in_columns (snd z) col = true -> z = y.
Proof.
  intros t x r col I O R C. destruct (output_checked t x I O) as (K & _).
  unfold check_output in K. rewrite !andb_true_iff in K. destruct K as [[[_ K] _] _].
  pose proof (all_below_sound _ _ K r R) as Ch. cbn beta in Ch. unfold check_tile in Ch. apply andb_true_iff in Ch. destruct Ch as [Ch _].
  pose proof (Sorted.Permuted_sort (filter (of_tile r) (filter writes_it (touches_of c t)))) as Perm.
  destruct (chain_covers _ _ _ Ch col) as (y & Iy & Cy); [lia|].
  assert (Back : forall z, In z (Sorted.sort (filter (of_tile r) (filter writes_it (touches_of c t)))) <->
    In z (touches_of c t) /\ writes_it z = true /\ a_rows (snd z) = Some r).
  { intro z. split.
    - intro J. apply (Permutation_in _ (Permutation_sym Perm)) in J. apply filter_In in J. destruct J as [J1 J2].
      apply filter_In in J1. unfold of_tile in J2. destruct (a_rows (snd z)) as [r'|] eqn:Q; [|discriminate].
      apply Nat.eqb_eq in J2. subst. tauto.
    - intros (J1 & J2 & J3). apply (Permutation_in _ Perm). apply filter_In. split; [now apply filter_In|].
      unfold of_tile. rewrite J3. apply Nat.eqb_refl. }
  exists y. apply Back in Iy as Iy'. split; [tauto|].
  intros z Iz Wz Rz Cz. assert (Jz : In z (Sorted.sort (filter (of_tile r) (filter writes_it (touches_of c t))))) by (apply Back; auto).
  assert (D : z = y \/ z <> y) by (repeat decide equality). destruct D as [D|D]; [exact D|]. exfalso.
  pose proof (chain_apart _ _ _ Ch z y Jz Iy D) as A.
  rewrite (columns_meet_at (snd z) (snd y) col Cz Cy) in A. discriminate.
Qed.

Lemma read_ordered : forall t w p a v q b, In (w, p, a) (touches_of c t) -> In (v, q, b) (touches_of c t) ->
  check_output t (touches_of c t) = true ->
  a_writes a = false -> a_writes b = true -> rows_meet a b = true -> columns_meet a b = true -> before (c_know cert) v q w p.
Proof.
  intros t w p a v q b I J K Ra Wb Rm Cm. unfold check_output in K. cbv zeta in K. rewrite !andb_true_iff in K.
  destruct K as [[[_ K1] K2] [K3 K4]].
  assert (I' : In (w, p, a) (filter reads_it (touches_of c t))) by (apply filter_In; split; [exact I|unfold reads_it; cbn; now rewrite Ra]).
  assert (J' : In (v, q, b) (filter writes_it (touches_of c t))) by (apply filter_In; split; [exact J|exact Wb]).
  assert (Found : forall ws, In (v, q, b) ws -> read_after_writes ws (w, p, a) = true -> before (c_know cert) v q w p).
  { intros ws Jw R. unfold read_after_writes in R. apply andb_true_iff in R. destruct R as [R _]. unfold follows in R.
    rewrite forallb_forall in R. specialize (R _ Jw). cbn beta iota in R. rewrite Rm, Cm in R. cbn [andb negb orb] in R.
    unfold is_before in R. now apply Nat.ltb_lt in R. }
  rewrite forallb_forall in K3. specialize (K3 _ I'). cbn [snd] in K3.
  destruct (a_rows a) as [r|] eqn:Ea.
  2: { apply (Found _ J'), (all_reads_follow _ _ K4), filter_In. split; [exact I'|]. unfold of_any_row. cbn. now rewrite Ea. }
  apply Nat.ltb_lt in K3. pose proof (all_below_sound _ _ K1 r K3) as T. cbn beta in T. unfold check_tile in T.
  apply andb_true_iff in T. destruct T as [_ T]. pose proof (all_reads_follow _ _ T) as T'. clear T. rename T' into T.
  assert (Ir : In (w, p, a) (filter (of_tile r) (filter reads_it (touches_of c t))))
    by (apply filter_In; split; [exact I'|unfold of_tile; cbn; rewrite Ea; apply Nat.eqb_refl]).
  specialize (T _ Ir). unfold rows_meet in Rm. rewrite Ea in Rm.
  destruct (a_rows b) as [r'|] eqn:Eb.
  - apply Nat.eqb_eq in Rm. subst r'. apply (Found (filter (of_tile r) (filter writes_it (touches_of c t)))); [|exact T].
    apply filter_In. split; [exact J'|unfold of_tile; cbn; rewrite Eb; apply Nat.eqb_refl].
  - (* a write of all rows is refused *)
    exfalso. rewrite forallb_forall in K2. specialize (K2 _ J'). cbn [snd] in K2. rewrite Eb in K2. discriminate.
Qed.

(* THEOREM. What a step reads of its own outputs has been written before, by the one who makes it. *)
Theorem read_after_write : forall t w p a v q b, In (w, p, a) (touches_of c t) -> In (v, q, b) (touches_of c t) ->
  is_output (tensors t) = true -> a_writes a = false -> a_writes b = true ->
  rows_meet a b = true -> columns_meet a b = true -> before (c_know cert) v q w p.
Proof.
  intros t w p a v q b I J O. destruct (output_checked t _ I O) as (K & _). now apply read_ordered with (t := t).
Qed.

Hypothesis sharing_all : forall t t', t <> t' -> share (tensors t) (tensors t') = true -> is_output (tensors t) = true ->
  In (t, t') sharing \/ In (t', t) sharing.

Lemma pair_ordered : forall t t', t <> t' -> share (tensors t) (tensors t') = true -> is_output (tensors t) = true ->
  all_before t t' = true \/ all_before t' t = true.
Proof.
  intros t t' N Sh O. pose proof checked as H. unfold check_memory, check_touches in H. apply andb_true_iff in H. destruct H as [_ H].
  rewrite forallb_forall in H. destruct (sharing_all t t' N Sh O) as [I|I]; specialize (H _ I); unfold check_pair in H;
    cbn in H; apply orb_true_iff in H; tauto.
Qed.

(* Accesses that can meet and of which one writes are ordered. *)
Theorem meeting_accesses_ordered : forall w p a v q b,
  In (w, p, a) (touches_of c (a_tensor a)) -> In (v, q, b) (touches_of c (a_tensor b)) ->
  w < workers -> v < workers -> w <> v -> p < size c w -> q < size c v ->
  a_writes a || a_writes b = true ->
  share (tensors (a_tensor a)) (tensors (a_tensor b)) = true ->
  (a_tensor a = a_tensor b -> rows_meet a b = true /\ columns_meet a b = true) ->
  before (c_know cert) w p v q \/ before (c_know cert) v q w p.
Proof.
  intros w p a v q b Ia Ib W V N Sp Sq Wr Sh Meet.
  assert (Out : is_output (tensors (a_tensor a)) = is_output (tensors (a_tensor b))).
  { unfold share in Sh. unfold is_output. destruct (t_space (tensors (a_tensor a))), (t_space (tensors (a_tensor b)));
      try discriminate; auto. apply N.eqb_eq in Sh. now rewrite Sh. }
  assert (O : is_output (tensors (a_tensor a)) = true).
  { destruct (is_output (tensors (a_tensor a))) eqn:O; [reflexivity|]. exfalso.
    assert (Ra : forall w p a, In (w, p, a) (touches_of c (a_tensor a)) -> is_output (tensors (a_tensor a)) = false -> a_writes a = false).
    { intros w' p' a' I O'. assert (NN : touches_of c (a_tensor a') <> []) by (intro Q; rewrite Q in I; destruct I).
      pose proof (tensor_checked _ NN) as K. unfold check_tensor in K. rewrite O', forallb_forall in K.
      specialize (K _ I). unfold reads_it in K. now apply negb_true_iff in K. }
    rewrite (Ra _ _ _ Ia O), (Ra _ _ _ Ib (eq_sym Out)) in Wr. discriminate. }
  assert (O' : is_output (tensors (a_tensor b)) = true) by (rewrite <- Out; exact O).
  destruct (Nat.eq_dec (a_tensor a) (a_tensor b)) as [E|E].
  - destruct (Meet E) as [Rm Cm]. destruct (output_checked _ _ Ia O) as (K & _). pose proof K as Kall.
    unfold check_output in K. cbv zeta in K. rewrite !andb_true_iff in K. destruct K as [[[_ K1] K2] K3].
    rewrite <- E in Ib.
    destruct (a_writes a) eqn:Wa.
    + destruct (a_writes b) eqn:Wb.
      * (* two writes of one tensor never meet *)
        exfalso. rewrite forallb_forall in K2.
        assert (Fa : In (w, p, a) (filter writes_it (touches_of c (a_tensor a)))) by (apply filter_In; split; [exact Ia|exact Wa]).
        assert (Fb : In (v, q, b) (filter writes_it (touches_of c (a_tensor a)))) by (apply filter_In; split; [exact Ib|exact Wb]).
        pose proof (K2 _ Fa) as Ta. pose proof (K2 _ Fb) as Tb. cbn in Ta, Tb.
        unfold rows_meet in Rm. destruct (a_rows a) as [r|] eqn:Ea; [|discriminate]. destruct (a_rows b) as [r'|] eqn:Eb; [|discriminate].
        apply Nat.eqb_eq in Rm. subst r'. apply Nat.ltb_lt in Ta.
        pose proof (all_below_sound _ _ K1 r Ta) as Ch. cbn beta in Ch. unfold check_tile in Ch. apply andb_true_iff in Ch. destruct Ch as [Ch _].
        pose proof (Sorted.Permuted_sort (filter (of_tile r) (filter writes_it (touches_of c (a_tensor a))))) as Perm.
        assert (Ja : In (w, p, a) (filter (of_tile r) (filter writes_it (touches_of c (a_tensor a)))))
          by (apply filter_In; split; [exact Fa|unfold of_tile; cbn; rewrite Ea; apply Nat.eqb_refl]).
        assert (Jb : In (v, q, b) (filter (of_tile r) (filter writes_it (touches_of c (a_tensor a)))))
          by (apply filter_In; split; [exact Fb|unfold of_tile; cbn; rewrite Eb; apply Nat.eqb_refl]).
        apply (Permutation_in _ Perm) in Ja, Jb.
        pose proof (chain_apart _ _ _ Ch (w, p, a) (v, q, b) Ja Jb) as X. cbn in X.
        rewrite Cm in X. assert ((w, p, a) <> (v, q, b)) by congruence. specialize (X H). discriminate.
      * left. apply (read_ordered (a_tensor a) v q b w p a); auto.
        -- unfold rows_meet in *. destruct (a_rows a), (a_rows b); auto. now rewrite Nat.eqb_sym.
        -- unfold columns_meet in *. now rewrite andb_comm.
    + cbn in Wr. right. apply (read_ordered (a_tensor a) w p a v q b); auto.
  - assert (AB : all_before (a_tensor a) (a_tensor b) = true \/ all_before (a_tensor b) (a_tensor a) = true) by now apply pair_ordered.
    destruct AB as [AB|AB].
    + left. exact (all_before_sound _ _ AB (ex_intro (fun x => In x _) _ Ia) (ex_intro (fun x => In x _) _ Ib) O O' w p a v q b Ia Ib W V N Sq).
    + right. apply (all_before_sound _ _ AB (ex_intro (fun x => In x _) _ Ib) (ex_intro (fun x => In x _) _ Ia) O' O v q b w p a Ib Ia V W); auto.
Qed.

End Races.
